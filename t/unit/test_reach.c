/* What a member can have, point by point: browse, connect, advertise, execute, and the verdicts
 * for the URL's check. */
#include "reach_fixture.h"

static apr_pool_t *pool;

static int start(void **state)
{
    (void)state;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

/* --- an organisation ------------------------------------------------------------------------ */

/* JSON with ' for ", so that the cases stay legible. */
static json_t *json(const char *text)
{
    char *copy = apr_pstrdup(pool, text);
    json_t *value = NULL;
    char *at;

    for (at = copy; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    if (mcp_json_parse(copy, strlen(copy), MCP_MAX_DEPTH, &value, NULL) != MCP_OK) {
        fail_msg("the test's own JSON is bad: %s", copy);
    }
    return value;
}

static const char connectors[] =
    "[{'id':'con_crm','slug':'crm','operations':[{'id':'del','classification':'destructive'},"
    "{'id':'get','classification':'read'},{'id':'purge','classification':'forbidden'},"
    "{'id':'put','classification':'write'}]},"
    "{'id':'con_wiki','slug':'wiki','operations':[{'id':'read','classification':'read'},"
    "{'id':'write','classification':'write'}]},"
    "{'id':'con_bomb','slug':'bomb','operations':[{'id':'fire','classification':'forbidden'}]},"
    "{'id':'con_new','slug':'new','operations':[]}]";

static const char connections[] =
    "[{'id':'cxn_acc','connector':'con_crm','label':'acc'},"
    "{'id':'cxn_box','connector':'con_crm','label':'backoffice','toolbox_only':true,'state':'needs_"
    "reauth'},"
    "{'id':'cxn_wiki','connector':'con_wiki','label':'wiki'},"
    "{'id':'cxn_own','connector':'con_wiki','label':'notes','owner':'mem_a'},"
    "{'id':'cxn_own2','connector':'con_wiki','label':'diary','owner':'mem_a','toolbox_only':true},"
    "{'id':'cxn_theirs','connector':'con_crm','label':'theirs','owner':'mem_b'},"
    "{'id':'cxn_notes','connector':'con_crm','label':'notes','owner':'mem_b'}]";

/* clang-format off */
#define ENTRY(id, name, connector, operation, chosen)                                        \
    "{'entry':'" id "','name':'" name "','connector':'con_" connector "','connector_slug':'" \
    connector "','operation':'" operation "','connections':" chosen                          \
    ",'defaults':{},'frozen':{},'always_visible':false}"

static const char toolboxes[] =
    "[{'id':'tbx_sales','name':'sales','roles':['Sales'],'members':['mem_c'],'entries':["
    ENTRY("ent_1", "find", "crm", "get", "['cxn_box','cxn_acc']") ","
    ENTRY("ent_2", "note", "wiki", "read", "['@own']") ","
    ENTRY("ent_3", "gone", "crm", "nothing", "['cxn_acc']") ","
    ENTRY("ent_4", "stolen", "crm", "get", "['cxn_theirs']") ","
    ENTRY("ent_5", "purge", "crm", "purge", "['cxn_acc']") ","
    ENTRY("ent_6", "wrong", "wiki", "write", "['cxn_acc']") ","
    ENTRY("ent_7", "drop", "crm", "del", "['cxn_box','cxn_theirs','cxn_none']") "]},"
    "{'id':'tbx_none','name':'nobodys','roles':[],'members':[],'entries':["
    ENTRY("ent_8", "find", "crm", "get", "['cxn_acc']") "]}]";
/* clang-format on */

/* The organisation under these restrictions (without their brackets). */
static reach_world_t *world_of(const char *restrictions)
{
    json_t *policy = json_pack("{s:o,s:o,s:o,s:o}", "connectors", json(connectors), "connections",
                               json(connections), "toolboxes", json(toolboxes), "restrictions",
                               json(apr_psprintf(pool, "[%s]", restrictions)));

    return reach_world_make(policy);
}

static void world_end(reach_world_t *world)
{
    json_t *policy = world->policy;

    reach_world_free(world);
    json_decref(policy);
}

/* "A,B" as a NULL-terminated list. */
static const char *const *list(const char *text)
{
    apr_array_header_t *names = apr_array_make(pool, 4, sizeof(const char *));

    while (*text != '\0') {
        size_t bytes = strcspn(text, ",");

        APR_ARRAY_PUSH(names, const char *) = apr_pstrmemdup(pool, text, bytes);
        text += bytes;
        text += *text == ',';
    }
    APR_ARRAY_PUSH(names, const char *) = NULL;
    return (const char *const *)names->elts;
}

static pd_subject_t subject(const char *member, const char *roles)
{
    return (pd_subject_t){member, list(roles)};
}

/* Of the last question. */
static pd_found_t found;
static pd_reach_trace_t trace;

static pd_reach_t execute(reach_world_t *world, const char *member, const char *roles,
                          const char *name)
{
    pd_subject_t who = subject(member, roles);
    pd_found_t again;
    pd_reach_t reach = pd_reach_tool(&world->snapshot, &who, name, pool, &found, NULL);

    /* recorded or not, the answer is the same */
    assert_int_equal(pd_reach_tool(&world->snapshot, &who, name, pool, &again, &trace), reach);
    assert_ptr_equal(again.operation, found.operation);
    assert_int_equal(again.connections->nelts, found.connections->nelts);
    return reach;
}

/* Labels of the connections found, with commas. */
static const char *labels(void)
{
    const char *text = "";
    int i;

    for (i = 0; i < found.connections->nelts; i++) {
        text =
            apr_pstrcat(pool, text, i > 0 ? "," : "",
                        APR_ARRAY_IDX(found.connections, i, const pd_connection_t *)->label, NULL);
    }
    return text;
}

static pd_reach_t browse(reach_world_t *world, const char *member, const char *roles,
                         const char *connector_id, const char *operation_id)
{
    pd_subject_t who = subject(member, roles);
    const pd_connector_t *connector = pd_snapshot_connector(&world->snapshot, connector_id);
    const pd_operation_t *operation = pd_catalog_operation(connector, operation_id);
    pd_reach_on_t on;
    pd_reach_t reach = pd_reach_operation(&world->snapshot, &who, connector, operation, pool, NULL);

    assert_int_equal(pd_reach_operation(&world->snapshot, &who, connector, operation, pool, &trace),
                     reach);
    pd_reach_begin(&world->snapshot, &who, connector, pool, &on);
    assert_int_equal(pd_reach_ask(&on, operation, NULL, NULL), reach);
    return reach;
}

static pd_reach_t connect_to(reach_world_t *world, const char *member, const char *roles,
                             const char *connector_id)
{
    pd_subject_t who = subject(member, roles);
    const pd_connector_t *connector = pd_snapshot_connector(&world->snapshot, connector_id);
    pd_reach_t reach = pd_reach_connector(&world->snapshot, &who, connector, pool, NULL);

    assert_int_equal(pd_reach_connector(&world->snapshot, &who, connector, pool, &trace), reach);
    return reach;
}

static pd_status_t add_name(const pd_found_t *tool, void *baton)
{
    const char **text = baton;

    *text = apr_pstrcat(pool, *text, (*text)[0] != '\0' ? " " : "", tool->name, NULL);
    return PD_OK;
}

/* All names, with blanks. */
static const char *advertise(reach_world_t *world, const char *member, const char *roles)
{
    pd_subject_t who = subject(member, roles);
    const char *text = "";

    assert_int_equal(pd_reach_each(&world->snapshot, &who, pool, add_name, &text), PD_OK);
    return text;
}

static const char *verdicts(reach_world_t *world, const char *member, const char *roles,
                            const char *connection_id, int rung)
{
    pd_subject_t who = subject(member, roles);

    return pd_reach_verdicts(&world->snapshot, &who,
                             pd_snapshot_connection(&world->snapshot, connection_id), rung, pool);
}

#define BLOCK(target, items)                                                                       \
    "{'id':'rul_b','effect':'block','target':" target ",'items':[" items "]}"
#define ALLOW(target, items)                                                                       \
    "{'id':'rul_a','effect':'allow','target':" target ",'items':[" items "]}"
#define SALES "{'role':'Sales'}"

/* --- execute: whose it is --------------------------------------------------------------------- */

static void a_shared_connections_tools_are_everybodys(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__get"), PD_REACH_OK);
    assert_string_equal(found.name, "acc__get");
    assert_string_equal(found.operation->id, "get");
    assert_string_equal(found.connector->id, "con_crm");
    assert_non_null(found.tool);
    assert_null(found.entry);
    assert_string_equal(labels(), "acc");
    assert_int_equal(execute(world, "mem_b", "", "acc__get"), PD_REACH_OK);
    assert_int_equal(execute(world, NULL, "", "acc__get"), PD_REACH_OK);
    world_end(world);
}

static void somebody_elses_connection_answers_as_a_name_that_never_existed(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_int_equal(execute(world, "mem_b", "", "theirs__get"), PD_REACH_OK);
    assert_int_equal(execute(world, "mem_a", "Owner", "theirs__get"), PD_REACH_OTHERS);
    assert_int_equal(pd_reach_code(PD_REACH_OTHERS), MCP_CODE_RESTRICTED);
    assert_string_equal(found.operation->id, "get"); /* for the record */
    assert_string_equal(labels(), "");
    assert_int_equal(execute(world, NULL, "", "theirs__get"), PD_REACH_OTHERS);
    /* the same label, another connector: what is somebody else's is not what nobody has */
    assert_int_equal(execute(world, "mem_a", "", "notes__read"), PD_REACH_OK);
    assert_int_equal(execute(world, "mem_a", "", "notes__get"), PD_REACH_OTHERS);
    assert_int_equal(execute(world, "mem_b", "", "notes__read"), PD_REACH_OTHERS);
    assert_int_equal(execute(world, "mem_b", "", "notes__get"), PD_REACH_OK);
    assert_int_equal(execute(world, "mem_c", "", "notes__get"), PD_REACH_OTHERS);
    world_end(world);
}

static void a_name_that_nobody_has_is_unknown(void **state)
{
    static const char *const names[] = {"acc__nothing",
                                        "theirs__nothing",
                                        "nowhere__get",
                                        "sales__nothing",
                                        "acc",
                                        "acc_get",
                                        "acc__",
                                        "__get",
                                        "",
                                        "_",
                                        "__",
                                        "acc__get__x",
                                        "ACC__get",
                                        "cc__get",
                                        "acc__ge",
                                        "acc__gett"};
    reach_world_t *world = world_of("");
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++) {
        assert_int_equal(execute(world, "mem_a", "Sales", names[i]), PD_REACH_UNKNOWN);
        assert_null(found.name);
        assert_null(found.operation);
        assert_int_equal(found.connections->nelts, 0);
    }
    assert_int_equal(pd_reach_code(PD_REACH_UNKNOWN), MCP_CODE_UNKNOWN_TOOL);
    world_end(world);
}

/* No writer lets two share a label; if a store comes to it, one of the two is not there at any
 * point. */
static void his_own_connection_comes_before_a_shared_one(void **state)
{
    json_t *policy =
        json_pack("{s:o,s:o,s:[],s:[]}", "connectors", json(connectors), "connections",
                  json("[{'id':'cxn_1','connector':'con_crm','label':'same'},"
                       "{'id':'cxn_2','connector':'con_wiki','label':'same','owner':'mem_a'}]"),
                  "toolboxes", "restrictions");
    reach_world_t *world = reach_world_make(policy);

    (void)state;
    assert_int_equal(execute(world, "mem_a", "", "same__read"), PD_REACH_OK);
    assert_int_equal(execute(world, "mem_a", "", "same__get"), PD_REACH_OTHERS);
    assert_string_equal(advertise(world, "mem_a", ""), "same__read same__write");
    assert_string_equal(verdicts(world, "mem_a", "", "cxn_1", 3), "ddbd");
    assert_string_equal(advertise(world, "mem_b", ""), "same__del same__get same__put");
    world_end(world);
}

static void a_connection_that_serves_toolboxes_only_yields_no_plain_tools(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "backoffice__get"), PD_REACH_TOOLBOX_ONLY);
    assert_int_equal(pd_reach_code(PD_REACH_TOOLBOX_ONLY), MCP_CODE_RESTRICTED);
    assert_int_equal(execute(world, "mem_a", "Sales", "diary__read"), PD_REACH_TOOLBOX_ONLY);
    assert_null(strstr(advertise(world, "mem_a", "Sales"), "backoffice"));
    assert_null(strstr(advertise(world, "mem_a", "Sales"), "diary"));
    world_end(world);
}

/* --- execute: entries ------------------------------------------------------------------------- */

static void an_entry_is_for_the_roles_and_members_of_its_toolbox(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Member,Sales", "sales__find"), PD_REACH_OK);
    assert_string_equal(found.name, "sales__find");
    assert_string_equal(found.toolbox->id, "tbx_sales");
    assert_string_equal(found.entry->id, "ent_1");
    assert_string_equal(found.operation->id, "get");
    assert_null(found.tool);
    assert_int_equal(execute(world, "mem_c", "", "sales__find"), PD_REACH_OK);
    assert_int_equal(execute(world, "mem_a", "Member", "sales__find"), PD_REACH_NO_TOOLBOX);
    assert_int_equal(execute(world, NULL, "Sales", "sales__find"), PD_REACH_NO_TOOLBOX);
    assert_int_equal(execute(world, "mem_a", "Sales", "nobodys__find"), PD_REACH_NO_TOOLBOX);
    assert_int_equal(pd_reach_code(PD_REACH_NO_TOOLBOX), MCP_CODE_RESTRICTED);
    world_end(world);
}

static void an_entry_whose_operation_is_gone_is_unknown(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__gone"), PD_REACH_UNKNOWN);
    assert_int_equal(execute(world, "mem_a", "", "sales__gone"), PD_REACH_NO_TOOLBOX);
    world_end(world);
}

static void a_merged_entry_has_all_its_connections_by_label(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__find"), PD_REACH_OK);
    assert_string_equal(
        labels(), "acc,backoffice"); /* that it needs to be authorised again changes nothing */
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__drop"), PD_REACH_OK);
    assert_string_equal(labels(),
                        "backoffice"); /* the other's and the one that is gone are not there */
    world_end(world);
}

static void an_owners_connection_serves_nobody_through_its_id(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__stolen"), PD_REACH_NO_CONNECTION);
    assert_int_equal(execute(world, "mem_b", "Sales", "sales__stolen"), PD_REACH_NO_CONNECTION);
    assert_int_equal(pd_reach_code(PD_REACH_NO_CONNECTION), MCP_CODE_RESTRICTED);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__wrong"), PD_REACH_NO_CONNECTION);
    world_end(world);
}

static void own_stands_for_the_callers_own_connections_on_that_connector(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__note"), PD_REACH_OK);
    assert_string_equal(labels(),
                        "diary,notes"); /* one of them serves toolboxes only: this is one */
    assert_int_equal(execute(world, "mem_b", "Sales", "sales__note"), PD_REACH_NO_CONNECTION);
    assert_int_equal(execute(world, "mem_c", "", "sales__note"), PD_REACH_NO_CONNECTION);
    world_end(world);
}

/* --- execute: forbidden and rules ------------------------------------------------------------- */

static void forbidden_is_reachable_under_no_role_and_no_rule(void **state)
{
    reach_world_t *world = world_of(
        ALLOW(SALES, "{'connector':'con_crm'},{'connector':'con_crm','operation':'purge'}"));

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(execute(world, "mem_a", "Owner", "acc__purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(execute(world, NULL, "", "acc__purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(browse(world, "mem_a", "Owner", "con_crm", "purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(connect_to(world, "mem_a", "Owner", "con_bomb"), PD_REACH_FORBIDDEN);
    assert_int_equal(pd_reach_code(PD_REACH_FORBIDDEN), MCP_CODE_FORBIDDEN);
    world_end(world);
}

static void ownership_comes_before_forbidden_and_forbidden_before_the_rules(void **state)
{
    reach_world_t *world = world_of(BLOCK(SALES, "{'connector':'con_crm'}"));

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "theirs__purge"), PD_REACH_OTHERS);
    assert_int_equal(execute(world, "mem_a", "Sales", "theirs__get"), PD_REACH_OTHERS);
    assert_int_equal(execute(world, "mem_a", "Sales", "backoffice__purge"), PD_REACH_TOOLBOX_ONLY);
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__get"), PD_REACH_BLOCKED);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__stolen"), PD_REACH_NO_CONNECTION);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__find"), PD_REACH_BLOCKED);
    world_end(world);
}

static void the_record_tells_what_the_rules_say_even_where_something_else_decided(void **state)
{
    reach_world_t *world = world_of(BLOCK(SALES, "{'connector':'con_crm'}"));

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "theirs__get"), PD_REACH_OTHERS);
    assert_int_equal(trace.verdict, PD_VERDICT_BLOCKED);
    assert_string_equal(trace.decided.rule->id, "rul_b");
    assert_int_equal(trace.decided.item, PD_ITEM_CONNECTOR);
    assert_int_equal(trace.rules.governed, PD_GOVERNED_BY_ROLES);
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(trace.verdict, PD_VERDICT_BLOCKED);
    assert_int_equal(execute(world, "mem_a", "Sales", "wiki__read"), PD_REACH_OK);
    assert_int_equal(trace.verdict, PD_VERDICT_ALLOWED);
    assert_null(trace.decided.rule);
    assert_int_equal(execute(world, "mem_a", "Sales", "nowhere__x"), PD_REACH_UNKNOWN);
    assert_int_equal(trace.rules.governed, PD_GOVERNED_BY_ROLES);
    assert_int_equal(execute(world, "mem_a", "", "acc__get"), PD_REACH_OK);
    assert_int_equal(trace.rules.governed, PD_GOVERNED_FREE);
    world_end(world);
}

#define RENAMED_ACC "[{'id':'cxn_acc','connector':'con_crm','label':'fresh'}]"

/* The organisation's one account under another label, with these rules. */
static reach_world_t *renamed(const char *restrictions)
{
    return reach_world_make(json_pack("{s:o,s:o,s:[],s:o}", "connectors", json(connectors),
                                      "connections", json(RENAMED_ACC), "toolboxes", "restrictions",
                                      json(apr_psprintf(pool, "[%s]", restrictions))));
}

static void renaming_an_account_neither_escapes_a_block_nor_gains_an_allow(void **state)
{
    static const char block[] =
        BLOCK(SALES, "{'tool':'acc__get','pins':[{'connector':'con_crm','operation':'get'}]}");
    static const char allow[] =
        ALLOW(SALES, "{'tool':'fresh__del','pins':[{'connector':'con_crm','operation':'get'}]}");
    reach_world_t *world = world_of(block);

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__get"), PD_REACH_BLOCKED);
    assert_int_equal(execute(world, "mem_b", "Sales", "theirs__get"),
                     PD_REACH_BLOCKED); /* all accounts */
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__find"),
                     PD_REACH_BLOCKED); /* all entries */
    world_end(world);
    world = renamed(block);
    assert_int_equal(execute(world, "mem_a", "Sales", "fresh__get"), PD_REACH_BLOCKED);
    assert_int_equal(execute(world, "mem_a", "Sales", "fresh__put"), PD_REACH_OK);
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__get"), PD_REACH_UNKNOWN);
    world_end(world);
    world = renamed(allow); /* the account now has the very name that was written */
    assert_int_equal(execute(world, "mem_a", "Sales", "fresh__del"), PD_REACH_NOT_ALLOWED);
    assert_int_equal(execute(world, "mem_a", "Sales", "fresh__get"), PD_REACH_OK);
    world_end(world);
}

static void renaming_an_entry_neither_escapes_a_block_nor_gains_an_allow(void **state)
{
    static const char block[] =
        BLOCK(SALES, "{'tool':'sales__old','pins':[{'connector':'con_crm','operation':'get'}]}");
    static const char allow[] =
        ALLOW(SALES, "{'tool':'sales__drop','pins':[{'connector':'con_crm','operation':'get'}]}");
    reach_world_t *world = world_of(block);

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__find"), PD_REACH_BLOCKED);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__drop"), PD_REACH_OK);
    world_end(world);
    world = world_of(allow);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__drop"), PD_REACH_NOT_ALLOWED);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__find"), PD_REACH_OK);
    world_end(world);
}

static void a_block_by_name_matches_the_canonical_name_of_an_entry_or_a_plain_tool(void **state)
{
    reach_world_t *world =
        world_of(BLOCK(SALES, "{'tool':'sales__find','pins':[]},{'tool':'acc__put','pins':[]}"));

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__find"), PD_REACH_BLOCKED);
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__get"), PD_REACH_OK);
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__put"), PD_REACH_BLOCKED);
    assert_int_equal(execute(world, "mem_b", "Sales", "theirs__put"), PD_REACH_OK);
    assert_int_equal(browse(world, "mem_a", "Sales", "con_crm", "put"),
                     PD_REACH_OK); /* it has no name there */
    world_end(world);
}

/* --- the other points ------------------------------------------------------------------------- */

static void browse_shows_no_withheld_connector_or_operation(void **state)
{
    reach_world_t *world = world_of(
        BLOCK(SALES, "{'connector':'con_wiki'},{'connector':'con_crm','operation':'del'},"
                     "{'tool':'x__y','pins':[{'connector':'con_crm','operation':'put'}]}"));

    (void)state;
    assert_int_equal(browse(world, "mem_a", "Sales", "con_wiki", "read"), PD_REACH_BLOCKED);
    assert_int_equal(connect_to(world, "mem_a", "Sales", "con_wiki"), PD_REACH_BLOCKED);
    assert_int_equal(browse(world, "mem_a", "Sales", "con_crm", "del"), PD_REACH_BLOCKED);
    assert_int_equal(browse(world, "mem_a", "Sales", "con_crm", "put"), PD_REACH_BLOCKED);
    assert_int_equal(browse(world, "mem_a", "Sales", "con_crm", "get"), PD_REACH_OK);
    assert_int_equal(connect_to(world, "mem_a", "Sales", "con_crm"), PD_REACH_OK);
    assert_int_equal(browse(world, "mem_a", "Other", "con_wiki", "read"), PD_REACH_OK);
    world_end(world);
}

static void connect_is_refused_where_nothing_of_the_connector_can_be_had(void **state)
{
    static const char one_by_one[] =
        BLOCK(SALES,
              "{'connector':'con_crm','operation':'del'},{'connector':'con_crm','operation':'get'},"
              "{'connector':'con_crm','operation':'put'}");
    reach_world_t *world = world_of(one_by_one);

    (void)state;
    assert_int_equal(connect_to(world, "mem_a", "Sales", "con_crm"), PD_REACH_BLOCKED);
    assert_string_equal(trace.decided.rule->id, "rul_b");
    assert_int_equal(trace.decided.item, PD_ITEM_OPERATION);
    assert_int_equal(connect_to(world, "mem_a", "Sales", "con_wiki"), PD_REACH_OK);
    world_end(world);
    world = world_of(ALLOW(SALES, "{'connector':'con_crm','operation':'purge'}"));
    assert_int_equal(connect_to(world, "mem_a", "Sales", "con_crm"), PD_REACH_NOT_ALLOWED);
    assert_int_equal(connect_to(world, "mem_a", "Sales", "con_bomb"), PD_REACH_FORBIDDEN);
    world_end(world);
}

static void a_connector_without_operations_is_withheld_by_rules_for_the_whole_of_it(void **state)
{
    static const struct {
        const char *rules;
        pd_reach_t expected;
    } cases[] = {
        {"", PD_REACH_OK},
        {BLOCK(SALES, "{'connector':'con_new'}"), PD_REACH_BLOCKED},
        {BLOCK(SALES, "{'connector':'con_crm'}"), PD_REACH_OK},
        {BLOCK(SALES, "{'connector':'con_new','operation':'gone'}"), PD_REACH_OK},
        {ALLOW(SALES, "{'connector':'con_new'}"), PD_REACH_OK},
        {ALLOW(SALES, "{'connector':'con_new','operation':'gone'}"), PD_REACH_NOT_ALLOWED},
        {ALLOW(SALES, ""), PD_REACH_NOT_ALLOWED},
        {"{'id':'rul_x','unreadable':true,'target':{'role':'Sales'}}", PD_REACH_UNREADABLE},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        reach_world_t *world = world_of(cases[i].rules);

        assert_int_equal(connect_to(world, "mem_a", "Sales", "con_new"), cases[i].expected);
        world_end(world);
    }
}

static void advertise_walks_plain_tools_by_connection_then_entries_by_toolbox(void **state)
{
    reach_world_t *world = world_of("");

    (void)state;
    assert_string_equal(
        advertise(world, "mem_a", "Sales"),
        "acc__del acc__get acc__put notes__read notes__write wiki__read wiki__write "
        "sales__drop sales__find sales__note");
    assert_string_equal(advertise(world, "mem_b", ""),
                        "acc__del acc__get acc__put notes__del notes__get notes__put theirs__del "
                        "theirs__get theirs__put wiki__read wiki__write");
    assert_string_equal(
        advertise(world, "mem_c", ""),
        "acc__del acc__get acc__put wiki__read wiki__write sales__drop sales__find");
    assert_string_equal(advertise(world, NULL, "Sales"),
                        "acc__del acc__get acc__put wiki__read wiki__write");
    world_end(world);
}

static void an_allow_rule_with_no_items_leaves_nothing_at_any_point_until_it_goes(void **state)
{
    reach_world_t *world = world_of("");
    const char *all = advertise(world, "mem_a", "Sales");
    size_t i;

    (void)state;
    world_end(world);
    world = world_of(ALLOW(SALES, ""));
    assert_string_equal(advertise(world, "mem_a", "Sales"), "");
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__get"), PD_REACH_NOT_ALLOWED);
    assert_int_equal(execute(world, "mem_a", "Sales", "sales__find"), PD_REACH_NOT_ALLOWED);
    assert_int_equal(pd_reach_code(PD_REACH_NOT_ALLOWED), MCP_CODE_RESTRICTED);
    for (i = 0; i < 4; i++) {
        static const char *const ids[] = {"con_crm", "con_wiki", "con_bomb", "con_new"};

        assert_int_not_equal(connect_to(world, "mem_a", "Sales", ids[i]), PD_REACH_OK);
    }
    assert_int_equal(browse(world, "mem_a", "Sales", "con_wiki", "read"), PD_REACH_NOT_ALLOWED);
    assert_string_equal(verdicts(world, "mem_a", "Sales", "cxn_acc", 3), "ddbd");
    assert_int_equal(execute(world, "mem_a", "Other", "acc__get"), PD_REACH_OK);
    world_end(world);
    world = world_of("");
    assert_string_equal(advertise(world, "mem_a", "Sales"), all);
    world_end(world);
}

static void rules_that_could_not_be_read_withhold_everything_they_may_have_governed(void **state)
{
    static const char lost[] =
        "{'id':'rul_x','unreadable':true,'target':{'role':'Sales'},'effect':'allow'}";
    reach_world_t *world = world_of(lost);

    (void)state;
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__get"), PD_REACH_UNREADABLE);
    assert_int_equal(pd_reach_code(PD_REACH_UNREADABLE), MCP_CODE_POLICY_UNAVAILABLE);
    assert_int_equal(trace.rules.governed, PD_GOVERNED_UNREADABLE);
    assert_int_equal(browse(world, "mem_a", "Sales", "con_crm", "get"), PD_REACH_UNREADABLE);
    assert_int_equal(connect_to(world, "mem_a", "Sales", "con_crm"), PD_REACH_UNREADABLE);
    assert_string_equal(advertise(world, "mem_a", "Sales"), "");
    assert_string_equal(verdicts(world, "mem_a", "Sales", "cxn_acc", 3), "ddbd");
    assert_int_equal(execute(world, "mem_a", "Sales", "acc__purge"), PD_REACH_FORBIDDEN);
    assert_int_equal(execute(world, "mem_a", "Other", "acc__get"), PD_REACH_OK);
    world->snapshot.rulebook->has_lost_target =
        1; /* whom a rule is for is not known: it may be anybody */
    assert_int_equal(execute(world, "mem_a", "Other", "acc__get"), PD_REACH_UNREADABLE);
    assert_string_equal(advertise(world, "mem_a", "Other"), "");
    world_end(world);
}

static pd_status_t stop_at_third(const pd_found_t *tool, void *baton)
{
    int *count = baton;

    assert_non_null(tool->name);
    return ++*count == 3 ? PD_E_FULL : PD_OK;
}

static void the_walk_stops_where_it_is_told_to(void **state)
{
    reach_world_t *world = world_of("");
    pd_subject_t who = subject("mem_a", "Sales");
    int count = 0;

    (void)state;
    assert_int_equal(pd_reach_each(&world->snapshot, &who, pool, stop_at_third, &count), PD_E_FULL);
    assert_int_equal(count, 3);
    world_end(world);
}

static void an_admin_peer_that_is_no_member_has_shared_tools_and_no_rules(void **state)
{
    reach_world_t *world = world_of(BLOCK(SALES, "{'connector':'con_crm'}"));

    (void)state;
    assert_int_equal(execute(world, NULL, "Sales", "acc__get"), PD_REACH_OK);
    assert_int_equal(execute(world, NULL, "Sales", "notes__read"), PD_REACH_OTHERS);
    assert_int_equal(browse(world, NULL, "Sales", "con_crm", "get"), PD_REACH_OK);
    world_end(world);
}

/* --- verdicts of the URL's check -------------------------------------------------------------- */

static void the_url_check_knows_what_is_withheld_and_why(void **state)
{
    /* operations in the order of their ids: del get purge put; read write */
    static const struct {
        const char *rules;
        const char *member;
        const char *roles;
        const char *connection;
        int rung;
        const char *expected;
    } cases[] = {
        {"", "mem_a", "", "cxn_acc", 3, "aaba"},
        {"", "mem_a", "", "cxn_acc", 2, "daba"},
        {"", "mem_a", "", "cxn_acc", 1, "dabd"},
        {"", "mem_a", "", "cxn_acc", 0, "ddbd"},
        {"", "mem_a", "", "cxn_acc", -1, "ddbd"},
        {"", "mem_a", "", "cxn_acc", 4, "ddbd"},
        {"", "mem_a", "", "cxn_wiki", 2, "aa"},
        /* an explicit block, by what it is or by its name, against what is merely not allowed */
        {BLOCK(SALES, "{'connector':'con_crm','operation':'get'}"), "mem_a", "Sales", "cxn_acc", 3,
         "abba"},
        {BLOCK(SALES, "{'connector':'con_crm','operation':'get'}"), "mem_a", "Sales", "cxn_acc", 0,
         "dbbd"},
        {BLOCK(SALES, "{'connector':'con_crm'}"), "mem_a", "Sales", "cxn_acc", 3, "bbbb"},
        {BLOCK(SALES, "{'tool':'acc__put','pins':[]}"), "mem_a", "Sales", "cxn_acc", 3, "aabb"},
        {BLOCK(SALES, "{'tool':'x__y','pins':[{'connector':'con_crm','operation':'put'}]}"),
         "mem_a", "Sales", "cxn_acc", 3, "aabb"},
        {ALLOW(SALES, "{'connector':'con_crm','operation':'get'}"), "mem_a", "Sales", "cxn_acc", 3,
         "dabd"},
        {ALLOW(SALES, "{'connector':'con_crm','operation':'purge'}"), "mem_a", "Sales", "cxn_acc",
         3, "ddbd"},
        /* another member's connection */
        {"", "mem_a", "", "cxn_theirs", 3, "ddbd"},
        {"", "mem_b", "", "cxn_theirs", 3, "aaba"},
        /* one that serves toolboxes only: what the subject's entries reach */
        {"", "mem_a", "Sales", "cxn_box", 3, "aabd"},
        {"", "mem_a", "Sales", "cxn_box", 1, "dabd"},
        {"", "mem_a", "", "cxn_box", 3, "ddbd"},
        {"", NULL, "Sales", "cxn_box", 3, "ddbd"},
        {"", "mem_a", "Sales", "cxn_own2", 3, "ad"},
        {"", "mem_a", "", "cxn_own2", 3, "dd"},
        {BLOCK(SALES, "{'connector':'con_crm','operation':'put'}"), "mem_a", "Sales", "cxn_box", 3,
         "aabb"},
        {BLOCK(SALES, "{'tool':'backoffice__put','pins':[]}"), "mem_a", "Sales", "cxn_box", 3,
         "aabb"},
        {BLOCK(SALES, "{'tool':'sales__drop','pins':[]}"), "mem_a", "Sales", "cxn_box", 3, "babd"},
        {BLOCK("{'role':'Other'}", "{'tool':'sales__drop','pins':[]}"), "mem_a", "Sales", "cxn_box",
         3, "aabd"},
        {ALLOW(SALES, "{'connector':'con_crm','operation':'del'}"), "mem_a", "Sales", "cxn_box", 3,
         "adbd"},
        /* what one name is blocked for and another still has, he has */
        {BLOCK(SALES, "{'tool':'acc__get','pins':[]}"), "mem_a", "Sales", "cxn_acc", 3, "aaba"},
        {BLOCK(SALES, "{'tool':'acc__get','pins':[]}"), "mem_b", "Sales,x", "cxn_theirs", 3,
         "aaba"},
        {BLOCK(SALES, "{'tool':'sales__find','pins':[]}"), "mem_a", "Sales", "cxn_acc", 3, "aaba"},
        {BLOCK(SALES, "{'tool':'sales__find','pins':[]},{'tool':'acc__get','pins':[]}"), "mem_a",
         "Sales", "cxn_acc", 3, "abba"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        reach_world_t *world = world_of(cases[i].rules);
        const char *is =
            verdicts(world, cases[i].member, cases[i].roles, cases[i].connection, cases[i].rung);

        if (strcmp(is, cases[i].expected) != 0) {
            fail_msg("case %d: %s, not %s", (int)i, is, cases[i].expected);
        }
        world_end(world);
    }
}

static void every_answer_has_its_code_and_its_word(void **state)
{
    static const struct {
        pd_reach_t reach;
        mcp_code_t code;
    } rows[] = {
        {PD_REACH_UNREADABLE, MCP_CODE_POLICY_UNAVAILABLE},
        {PD_REACH_OK, MCP_CODE_NONE},
        {PD_REACH_UNKNOWN, MCP_CODE_UNKNOWN_TOOL},
        {PD_REACH_OTHERS, MCP_CODE_RESTRICTED},
        {PD_REACH_TOOLBOX_ONLY, MCP_CODE_RESTRICTED},
        {PD_REACH_NO_TOOLBOX, MCP_CODE_RESTRICTED},
        {PD_REACH_NO_CONNECTION, MCP_CODE_RESTRICTED},
        {PD_REACH_FORBIDDEN, MCP_CODE_FORBIDDEN},
        {PD_REACH_NOT_ALLOWED, MCP_CODE_RESTRICTED},
        {PD_REACH_BLOCKED, MCP_CODE_RESTRICTED},
    };
    size_t i;
    size_t k;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        assert_int_equal(pd_reach_code(rows[i].reach), rows[i].code);
        for (k = 0; k < i; k++) {
            assert_string_not_equal(pd_reach_text(rows[i].reach), pd_reach_text(rows[k].reach));
        }
    }
    assert_string_equal(pd_reach_text(PD_REACH_OTHERS), "connection of another member");
    assert_string_equal(pd_reach_text(PD_REACH_BLOCKED), "blocked");
    assert_int_equal(pd_reach_code((pd_reach_t)99), MCP_CODE_POLICY_UNAVAILABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_shared_connections_tools_are_everybodys),
        TEST(somebody_elses_connection_answers_as_a_name_that_never_existed),
        TEST(a_name_that_nobody_has_is_unknown),
        TEST(his_own_connection_comes_before_a_shared_one),
        TEST(a_connection_that_serves_toolboxes_only_yields_no_plain_tools),
        TEST(an_entry_is_for_the_roles_and_members_of_its_toolbox),
        TEST(an_entry_whose_operation_is_gone_is_unknown),
        TEST(a_merged_entry_has_all_its_connections_by_label),
        TEST(an_owners_connection_serves_nobody_through_its_id),
        TEST(own_stands_for_the_callers_own_connections_on_that_connector),
        TEST(forbidden_is_reachable_under_no_role_and_no_rule),
        TEST(ownership_comes_before_forbidden_and_forbidden_before_the_rules),
        TEST(the_record_tells_what_the_rules_say_even_where_something_else_decided),
        TEST(renaming_an_account_neither_escapes_a_block_nor_gains_an_allow),
        TEST(renaming_an_entry_neither_escapes_a_block_nor_gains_an_allow),
        TEST(a_block_by_name_matches_the_canonical_name_of_an_entry_or_a_plain_tool),
        TEST(browse_shows_no_withheld_connector_or_operation),
        TEST(connect_is_refused_where_nothing_of_the_connector_can_be_had),
        TEST(a_connector_without_operations_is_withheld_by_rules_for_the_whole_of_it),
        TEST(advertise_walks_plain_tools_by_connection_then_entries_by_toolbox),
        TEST(an_allow_rule_with_no_items_leaves_nothing_at_any_point_until_it_goes),
        TEST(rules_that_could_not_be_read_withhold_everything_they_may_have_governed),
        TEST(the_walk_stops_where_it_is_told_to),
        TEST(an_admin_peer_that_is_no_member_has_shared_tools_and_no_rules),
        TEST(the_url_check_knows_what_is_withheld_and_why),
        TEST(every_answer_has_its_code_and_its_word),
    };

    return cmocka_run_group_tests(tests, reach_begin, reach_end);
}
