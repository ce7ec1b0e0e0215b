/* Policy as a document: exporting and applying is the identity, applying is idempotent, prunes only where it is told to, does all or
 * nothing, and lets nobody do by a document what he may not do one by one. */
#include "policy_random.h"

#include "../../policyd/pd_snapshot.h"

static int64_t revision(void)
{
    return world.core.policy->snapshot->revision;
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (value == NULL) {
        fail_msg("the test's own JSON is bad: %s", error.text);
    }
    return value;
}

static json_t *export_all(void)
{
    return world_do("policy__export", json_object());
}

/* args of apply; document stolen. */
static json_t *with(json_t *document, int is_pruning)
{
    return json_pack("{s:o,s:b}", "policy", document, "prune", is_pruning);
}

static json_t *apply(json_t *document, int is_pruning)
{
    return world_do("policy__apply", with(document, is_pruning));
}

static json_t *apply_text(const char *document, int is_pruning)
{
    return apply(parse(document), is_pruning);
}

/* Refused, with these texts in the message. */
static void refused(const char *document, mcp_code_t code, const char *place, const char *why)
{
    int64_t was = revision();
    json_t *result = world_try("policy__apply", with(parse(document), 0));

    if (result != NULL || world.code != code || strstr(world.message, place) == NULL ||
        strstr(world.message, why) == NULL) {
        fail_msg("%s: %s: %s", document, mcp_code_text(world.code), world.message);
    }
    assert_int_equal(revision(), was);
}

static void counts(json_t *result, int created, int updated, int deleted, int unchanged)
{
    if (mcp_json_int(result, "created", -1) != created ||
        mcp_json_int(result, "updated", -1) != updated ||
        mcp_json_int(result, "deleted", -1) != deleted ||
        (unchanged >= 0 && mcp_json_int(result, "unchanged", -1) != unchanged)) {
        fail_msg("other counts: %s", json_dumps(result, JSON_COMPACT)); /* leaks into a failure */
    }
    assert_int_equal(json_array_size(json_object_get(result, "changes")),
                     created + updated + deleted);
    json_decref(result);
}

static const char *change_at(const json_t *result, size_t i)
{
    const json_t *change = json_array_get(json_object_get(result, "changes"), i);

    return apr_pstrcat(world.scratch, mcp_json_str(change, "op"), " ", mcp_json_str(change, "name"),
                       (char *)NULL);
}

static size_t objects_of(const json_t *document)
{
    const char *name;
    json_t *section;
    size_t count = 0;

    json_object_foreach((json_t *)(uintptr_t)document, name, section)
    {
        count += json_array_size(section);
    }
    return count;
}

/* --- round trip --------------------------------------------------------------------- */

static void check_identity(int is_pruning)
{
    json_t *document = export_all();
    int64_t was = revision();
    json_t *again;

    counts(apply(json_deep_copy(document), is_pruning), 0, 0, 0, (int)objects_of(document));
    assert_int_equal(revision(), was);
    again = export_all();
    assert_true(json_equal(document, again));
    json_decref(document);
    json_decref(again);
}

static void exporting_and_applying_random_policies_is_the_identity(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= 12; seed++) {
        if (seed > 1) {
            (void)world_teardown(NULL);
            (void)world_setup(NULL);
        }
        random_policy(seed, 60);
        check_identity(0);
        check_identity(1);
    }
}

/* Everybody of an exported document, so that its rules have somebody to be for. */
static void make_people(void)
{
    unsigned i;

    for (i = 0; i < RANDOM_MEMBERS; i++) {
        (void)world_member(apr_psprintf(world.scratch, "m%u@example.com", i), "Member");
    }
    (void)world_member("owner@example.com", "Owner");
}

/* Without what is gone and stands by id, and without pins: written anew, a name is pinned to what bears it now as well. */
static int is_complete(const json_t *document)
{
    char *text = json_dumps(document, JSON_COMPACT);
    int is = strstr(text, "\"con_") == NULL && strstr(text, "\"cxn_") == NULL;

    free(text);
    return is;
}

static void drop_pins(json_t *document)
{
    json_t *rule;
    json_t *item;
    size_t i;
    size_t k;

    json_array_foreach(json_object_get(document, "restrictions"), i, rule)
    {
        json_array_foreach(json_object_get(rule, "items"), k, item)
        {
            (void)json_object_del(item, "pins");
        }
    }
}

static void a_policy_moves_to_an_empty_daemon_whole(void **state)
{
    int moved = 0;
    uint64_t seed;

    (void)state;
    for (seed = 100; seed < 140 && moved < 4; seed++) {
        json_t *document;
        json_t *there;
        json_t *result;

        (void)world_teardown(NULL);
        (void)world_setup(NULL);
        random_policy(seed, 25);
        document = export_all();
        (void)world_teardown(NULL);
        (void)world_setup(NULL);
        make_people();
        result = is_complete(document)
                     ? world_try("policy__apply", with(json_deep_copy(document), 1))
                     : NULL;
        if (result == NULL) {
            /* an operation that went out of the catalog can't be pinned anew */
            json_decref(document);
            continue;
        }
        json_decref(result);
        check_identity(1);
        there = export_all();
        drop_pins(document);
        drop_pins(there);
        assert_true(json_equal(document, there));
        json_decref(document);
        json_decref(there);
        moved++;
    }
    assert_int_equal(moved, 4);
}

#define SHOP                                                                                       \
    "{\"slug\":\"shop\",\"label\":\"Shop\",\"base_url\":\"https://{host}\",\"variables\":{\"host\":"   \
    "{\"default\":\"a.example\",\"pattern\":\"[a-z.]+\"}},\"auth\":{\"type\":\"bearer\"},"             \
    "\"operations\":[{\"id\":\"list\",\"method\":\"get\",\"path\":\"/a\",\"description\":\"Lists.\","  \
    "\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"schema\":{\"type\":\"string\"}}]},"            \
    "{\"id\":\"wipe\",\"method\":\"DELETE\",\"path\":\"/a?all\",\"description\":\"Wipes.\"}]}"
#define WHOLE                                                                                      \
    "{\"version\":1,\"roles\":[{\"name\":\"Ops\",\"permissions\":[\"tool:read\",\"tool:execute\"],"   \
    "\"description\":\"\"}],\"connectors\":[" SHOP "],"                                            \
    "\"connections\":[{\"connector\":\"shop\",\"label\":\"shop-eu\",\"toolbox_only\":false,"        \
    "\"variables\":{}}],\"settings\":[{\"key\":\"collapse.threshold\",\"value\":12},"              \
    "{\"key\":\"collapse.mode\",\"value\":\"never\",\"client\":\"laptop\"}],"                        \
    "\"recipes\":[{\"name\":\"greet\",\"text\":\"Hi {{who}}\",\"arguments\":[{\"name\":\"who\","       \
    "\"required\":false}],\"roles\":[]}],"                                                         \
    "\"toolboxes\":[{\"name\":\"kit\",\"roles\":[\"Ops\",\"Member\"],\"members\":[\"Ada@Example.com\"]," \
    "\"entries\":[{\"connector\":\"shop\",\"operation\":\"list\",\"connections\":[\"shop-eu\"],"       \
    "\"frozen\":{\"q\":\"x\"},\"defaults\":{}},{\"connector\":\"shop\",\"operation\":\"wipe\","        \
    "\"connections\":[\"@own\"],\"name\":\"a-wipe\",\"always_visible\":false}]}],"                    \
    "\"restrictions\":[{\"effect\":\"block\",\"target\":{\"role\":\"Ops\"},\"items\":"                 \
    "[{\"tool\":\"shop-eu__wipe\"},{\"connector\":\"shop\",\"operation\":\"wipe\"}]},"                 \
    "{\"name\":\"pilot\",\"note\":\"For now\",\"effect\":\"allow\",\"target\":{\"member\":"            \
    "\"ADA@example.com\"},\"items\":[{\"connector\":\"shop\"}]}]}"

static void make_whole(void)
{
    (void)world_member("ada@example.com", "Member");
    counts(apply_text(WHOLE, 0), 9, 0, 0, 0);
}

static void a_document_by_hand_is_applied_once(void **state)
{
    int64_t was;

    (void)state;
    make_whole();
    was = revision();
    counts(apply_text(WHOLE, 0), 0, 0, 0, 9);
    counts(apply_text(WHOLE, 1), 0, 0, 0, 9);
    assert_int_equal(revision(), was);
    check_identity(1);
}

static void an_export_is_canonical(void **state)
{
    json_t *document;
    json_t *wanted = parse(
        "{\"version\":1,\"roles\":[{\"name\":\"Ops\",\"permissions\":[\"tool:execute\",\"tool:read\"]}],"
        "\"connections\":[{\"connector\":\"shop\",\"label\":\"shop-eu\",\"shared\":true}],"
        "\"settings\":[{\"client\":\"laptop\",\"key\":\"collapse.mode\",\"value\":\"never\"},"
        "{\"key\":\"collapse.threshold\",\"value\":12}],"
        "\"recipes\":[{\"arguments\":[{\"name\":\"who\"}],\"name\":\"greet\",\"text\":\"Hi {{who}}\"}],"
        "\"toolboxes\":[{\"entries\":[{\"connections\":[\"@own\"],\"connector\":\"shop\",\"name\":"
        "\"a-wipe\",\"operation\":\"wipe\"},{\"connections\":[\"shop-eu\"],\"connector\":\"shop\","
        "\"frozen\":{\"q\":\"x\"},\"name\":\"list\",\"operation\":\"list\"}],\"members\":"
        "[\"ada@example.com\"],\"name\":\"kit\",\"roles\":[\"Member\",\"Ops\"]}],"
        "\"restrictions\":[{\"effect\":\"block\",\"items\":[{\"connector\":\"shop\",\"operation\":"
        "\"wipe\"},{\"pins\":[{\"connector\":\"shop\",\"operation\":\"wipe\"}],\"tool\":"
        "\"shop-eu__wipe\"}],\"target\":{\"role\":\"Ops\"}},{\"effect\":\"allow\",\"items\":"
        "[{\"connector\":\"shop\"}],\"name\":\"pilot\",\"note\":\"For now\",\"target\":{\"member\":"
        "\"ada@example.com\"}}]}");

    (void)state;
    make_whole();
    world_done("connections__create", json_pack("{s:s,s:s,s:s}", "connector", "shop", "label", "mine",
                                                "owner", "ada@example.com"));
    document = export_all();
    assert_int_equal(json_array_size(json_object_get(document, "connectors")), 1);
    assert_int_equal(json_object_del(document, "connectors"), 0);
    if (!json_equal(document, wanted)) {
        fail_msg("%s", json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS));
    }
    json_decref(document);
    json_decref(wanted);
}

static void only_the_sections_that_are_asked_for_are_exported(void **state)
{
    json_t *document;

    (void)state;
    make_whole();
    document = world_do("policy__export", parse("{\"sections\":[\"settings\",\"roles\"]}"));
    assert_int_equal(json_object_size(document), 3);
    assert_int_equal(json_array_size(json_object_get(document, "settings")), 2);
    json_decref(document);
}

/* --- what is made to be --------------------------------------------------------------- */

static void what_a_section_lists_is_created_updated_and_with_prune_deleted(void **state)
{
    static const char changed[] =
        "{\"version\":1,\"roles\":[{\"name\":\"Ops\",\"permissions\":[\"tool:execute\"]},"
        "{\"name\":\"New\",\"permissions\":[]}],\"settings\":[],"
        "\"recipes\":[{\"name\":\"greet\",\"text\":\"Hello\"}]}";
    json_t *result;
    json_t *role;

    (void)state;
    make_whole();
    result = apply_text(changed, 0);
    assert_string_equal(change_at(result, 0), "roles__update Ops");
    assert_string_equal(change_at(result, 1), "roles__create New");
    assert_string_equal(change_at(result, 2), "recipes__update greet");
    counts(result, 1, 2, 0, 0);
    role = world_do("roles__get", json_pack("{s:s}", "role", "Ops"));
    assert_int_equal(json_array_size(json_object_get(role, "permissions")), 1);
    json_decref(role);
    result = apply_text(changed, 1);
    assert_string_equal(change_at(result, 0), "settings__unset collapse.threshold");
    assert_string_equal(change_at(result, 1), "settings__unset collapse.mode of client laptop");
    counts(result, 0, 0, 2, 3);
    counts(apply_text(changed, 1), 0, 0, 0, 3);
}

static void deletions_follow_the_references_backwards(void **state)
{
    static const char nothing[] =
        "{\"version\":1,\"roles\":[],\"connectors\":[],\"connections\":[],\"settings\":[],"
        "\"recipes\":[],\"toolboxes\":[],\"restrictions\":[]}";
    json_t *document;

    (void)state;
    make_whole();
    counts(apply_text(nothing, 0), 0, 0, 0, 0);
    counts(apply_text(nothing, 1), 0, 0, 9, 0);
    document = export_all();
    assert_int_equal(objects_of(document), 0);
    json_decref(document);
    assert_null(world_try("roles__get", json_pack("{s:s}", "role", "Ops")));
    world_done("roles__get", json_pack("{s:s}", "role", "Admin")); /* never a built-in one */
}

static void what_a_member_owns_and_a_grant_has_is_left_alone(void **state)
{
    const char *grant = NULL;

    (void)state;
    make_whole();
    world_done("connections__create", json_pack("{s:s,s:s,s:s}", "connector", "shop", "label", "mine",
                                                "owner", "ada@example.com"));
    (void)world_grant("ada@example.com", json_pack("[s]", "mcp:tools"), &grant);
    world_done("settings__set", json_pack("{s:s,s:s,s:s}", "key", "collapse.mode", "value", "always",
                                          "grant", grant));
    counts(apply_text("{\"version\":1,\"settings\":[],\"connections\":[]}", 1), 0, 0, 3, 0);
    json_decref(world_do("connections__list", json_pack("{s:s}", "owner", "ada@example.com")));
    check_identity(1);
}

static void a_rule_whose_target_changes_is_made_anew(void **state)
{
    json_t *result;

    (void)state;
    make_whole();
    result = apply_text("{\"version\":1,\"restrictions\":[{\"name\":\"pilot\",\"effect\":\"allow\","
                        "\"target\":{\"role\":\"Ops\"},\"items\":[{\"connector\":\"shop\"}]}]}",
                        0);
    assert_string_equal(change_at(result, 0), "restrictions__delete pilot");
    assert_string_equal(change_at(result, 1), "restrictions__create pilot");
    counts(result, 1, 0, 1, 0);
    check_identity(1);
}

static void what_an_update_cannot_take_away_is_made_anew(void **state)
{
    static const char titled[] = "{\"version\":1,\"recipes\":[{\"name\":\"r\",\"text\":\"T\","
                                 "\"title\":\"A title\"}]}";
    static const char bare[] = "{\"version\":1,\"recipes\":[{\"name\":\"r\",\"text\":\"T\"}]}";

    (void)state;
    counts(apply_text(titled, 0), 1, 0, 0, 0);
    counts(apply_text(bare, 0), 1, 0, 1, 0);
    counts(apply_text(bare, 0), 0, 0, 0, 1);
}

static void entries_keep_their_ids_and_nameless_rules_their_content(void **state)
{
    static const char two[] =
        "{\"version\":1,\"restrictions\":["
        "{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":[{\"connector\":\"shop\"}]},"
        "{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":[{\"connector\":\"shop\"}]}]}";
    static const char one[] =
        "{\"version\":1,\"restrictions\":["
        "{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":[{\"connector\":\"shop\"}]}]}";
    json_t *before;
    json_t *after;
    json_t *entry;

    (void)state;
    make_whole();
    before = world_do("toolboxes__get", json_pack("{s:s}", "toolbox", "kit"));
    counts(apply_text("{\"version\":1,\"toolboxes\":[{\"name\":\"kit\",\"entries\":[{\"connector\":"
                      "\"shop\",\"operation\":\"list\",\"connections\":[\"shop-eu\"]}]}]}",
                      0),
           0, 1, 0, 0);
    after = world_do("toolboxes__get", json_pack("{s:s}", "toolbox", "kit"));
    entry = json_array_get(json_object_get(after, "entries"), 0);
    assert_string_equal(mcp_json_str(entry, "entry"),
                        mcp_json_str(json_array_get(json_object_get(before, "entries"), 1), "entry"));
    assert_int_equal(json_array_size(json_object_get(after, "roles")), 0);
    assert_int_equal(json_array_size(json_object_get(after, "members")), 0);
    json_decref(before);
    json_decref(after);
    counts(apply_text(two, 0), 2, 0, 0, 0);
    counts(apply_text(two, 0), 0, 0, 0, 2);
    counts(apply_text(one, 1), 0, 0, 3, 1);
}

static void a_block_never_forgets_its_pins_and_is_not_written_for_them(void **state)
{
    static const char rule[] =
        "{\"version\":1,\"restrictions\":[{\"name\":\"n\",\"effect\":\"block\",\"target\":{\"role\":"
        "\"Ops\"},\"items\":[{\"tool\":\"shop-eu__wipe\"}]}]}";
    json_t *document;

    (void)state;
    make_whole();
    counts(apply_text(rule, 0), 1, 0, 0, 0);
    world_done("connections__update", json_pack("{s:s,s:s}", "connection", "shop-eu", "label", "other"));
    counts(apply_text(rule, 0), 0, 0, 0, 1);
    document = export_all();
    json_decref(document);
    counts(apply_text("{\"version\":1,\"restrictions\":[{\"name\":\"n\",\"effect\":\"block\",\"target\":"
                      "{\"role\":\"Ops\"},\"items\":[{\"tool\":\"shop-eu__wipe\",\"pins\":[{\"connector\":"
                      "\"shop\",\"operation\":\"list\"}]}]}]}",
                      0),
           0, 1, 0, 0);
}

static void an_allow_by_name_is_exported_by_operation(void **state)
{
    json_t *document;
    json_t *rule;

    (void)state;
    make_whole();
    world_done("restrictions__create",
               json_pack("{s:s,s:s,s:{s:s},s:[{s:s}]}", "name", "a", "effect", "allow", "target",
                         "role", "Ops", "items", "tool", "shop-eu__list"));
    document = export_all();
    rule = json_array_get(json_object_get(document, "restrictions"), 0);
    assert_string_equal(mcp_json_str(rule, "name"), "a");
    rule = json_array_get(json_object_get(rule, "items"), 0);
    assert_string_equal(mcp_json_str(rule, "operation"), "list");
    json_decref(document);
    check_identity(1);
}

/* As a store of before can be: operations delete no connector that rules or entries name. */
static pd_status_t lose_shop(pd_tx_t *tx, void *baton)
{
    pd_object_t *shop = NULL;
    pd_status_t status = pd_tx_find(tx, "connector", "slug:shop", &shop);

    (void)baton;
    if (status == PD_OK) {
        const char *id = apr_pstrdup(world.scratch, shop->id);

        status = pd_tx_delete(tx, "connector", id, 0);
        status = status == PD_OK ? pd_tx_delete(tx, "connector_summary", id, 0) : status;
    }
    return status;
}

static void what_is_gone_stands_by_id_and_is_not_taken_for_its_namesake(void **state)
{
    static const char meant[] =
        "{\"version\":1,\"restrictions\":[{\"name\":\"pilot\",\"note\":\"For now\",\"effect\":\"allow\","
        "\"target\":{\"member\":\"ada@example.com\"},\"items\":[{\"connector\":\"shop\"}]}]}";
    json_t *document;
    char *text;

    (void)state;
    make_whole();
    world_done("toolboxes__delete", json_pack("{s:s}", "toolbox", "kit"));
    world_done("connections__delete", json_pack("{s:s}", "connection", "shop-eu"));
    assert_null(world_try("connectors__delete", json_pack("{s:s}", "connector", "shop")));
    assert_int_equal(world.code, MCP_CODE_CONFLICT);
    assert_int_equal(world_unit(PD_LANE_WRITE, lose_shop, NULL), PD_OK);
    counts(apply_text("{\"version\":1,\"connectors\":[" SHOP "]}", 0), 1, 0, 0, 0);
    document = export_all();
    text = json_dumps(json_object_get(document, "restrictions"), JSON_COMPACT);
    assert_non_null(strstr(text, "con_"));
    assert_null(strstr(text, "\"shop\""));
    free(text);
    json_decref(document);
    check_identity(1);
    counts(apply_text(meant, 0), 0, 1, 0, 0); /* the document means the connector that there is */
    counts(apply_text(meant, 0), 0, 0, 0, 1);
}

static void rules_and_toolboxes_of_the_removed_are_in_no_document(void **state)
{
    json_t *document;
    char *text;

    (void)state;
    make_whole();
    world_done("members__remove", json_pack("{s:s}", "member", "ada@example.com"));
    document = export_all();
    text = json_dumps(document, JSON_COMPACT);
    assert_null(strstr(text, "ada@example.com"));
    assert_null(strstr(text, "mem_"));
    free(text);
    json_decref(document);
    check_identity(1);
}

/* --- all or nothing ------------------------------------------------------------------- */

static void a_fault_names_its_place_and_undoes_everything(void **state)
{
    (void)state;
    make_whole();
    refused("{\"version\":1,\"roles\":[{\"name\":\"Fine\",\"permissions\":[]}],\"toolboxes\":[{\"name\":"
            "\"other\",\"entries\":[{\"connector\":\"shop\",\"operation\":\"nope\",\"connections\":"
            "[\"@own\"]}]}]}",
            MCP_CODE_NOT_FOUND, "toolboxes[0] (other)", "no operation");
    refused("{\"version\":1,\"roles\":[{\"name\":\"A\",\"permissions\":[]},{\"name\":\"A\","
            "\"permissions\":[\"tool:read\"]}]}",
            MCP_CODE_INVALID_REQUEST, "roles[1] (A)", "same name");
    refused("{\"version\":1,\"connectors\":[" SHOP "," SHOP "]}", MCP_CODE_INVALID_REQUEST,
            "connectors[1] (shop)", "same name");
    refused("{\"version\":1,\"roles\":[{\"name\":\"B\"}]}", MCP_CODE_INVALID_REQUEST, "roles[0]",
            "permissions");
    refused("{\"version\":1,\"roles\":[{\"name\":\"Admin\",\"permissions\":[]}]}", MCP_CODE_CONFLICT,
            "roles[0] (Admin)", "built-in");
    refused("{\"version\":1,\"connections\":[{\"connector\":\"shop\",\"label\":\"x\",\"credential\":"
            "{\"token\":\"t\"}}]}",
            MCP_CODE_INVALID_REQUEST, "connections[0]", "credential");
    refused("{\"version\":1,\"connections\":[{\"connector\":\"shop\",\"label\":\"x\",\"owner\":"
            "\"ada@example.com\"}]}",
            MCP_CODE_INVALID_REQUEST, "connections[0]", "shared");
    refused("{\"version\":1,\"settings\":[{\"key\":\"collapse.mode\",\"value\":\"never\",\"grant\":\"g\"}]}",
            MCP_CODE_INVALID_REQUEST, "settings[0]", "grant");
    refused("{\"version\":1,\"settings\":[{\"key\":\"collapse.mode\",\"value\":\"sometimes\"}]}",
            MCP_CODE_INVALID_REQUEST, "settings[0] (collapse.mode)", "");
    refused("{\"version\":1,\"restrictions\":[{\"effect\":\"allow\",\"target\":{\"role\":\"Ops\"},"
            "\"items\":[{\"tool\":\"shop-eu__list\"}]}]}",
            MCP_CODE_INVALID_REQUEST, "restrictions[0]", "name of a tool");
    refused("{\"version\":1,\"toolboxes\":[{\"name\":\"kit\",\"entries\":[{\"entry\":\"ent_1\","
            "\"connector\":\"shop\",\"operation\":\"list\",\"connections\":[\"@own\"]}]}]}",
            MCP_CODE_INVALID_REQUEST, "toolboxes[0]", "an id");
    refused("{\"version\":1,\"recipes\":[{\"name\":\"r\",\"text\":\"{{x}}\"}]}",
            MCP_CODE_INVALID_REQUEST, "recipes[0] (r)", "placeholder");
    refused("{\"version\":2}", MCP_CODE_INVALID_REQUEST, "/policy/version", "");
    refused("{\"version\":1,\"members\":[]}", MCP_CODE_INVALID_REQUEST, "/policy", "");
    check_identity(1);
}

static void a_connection_does_not_change_its_connector(void **state)
{
    json_t *file = random_connector("mail");

    (void)state;
    make_whole();
    world_done("connectors__create", file);
    refused("{\"version\":1,\"connections\":[{\"connector\":\"mail\",\"label\":\"shop-eu\"}]}",
            MCP_CODE_CONFLICT, "connections[0] (shop-eu)", "credential");
}

static void a_role_that_members_hold_is_not_pruned(void **state)
{
    int64_t was;

    (void)state;
    make_whole();
    (void)world_member("bob@example.com", "Ops");
    was = revision();
    assert_null(world_try("policy__apply",
                          with(parse("{\"version\":1,\"settings\":[],\"roles\":[]}"), 1)));
    assert_int_equal(world.code, MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.message, "roles (Ops): Members hold this role"));
    assert_int_equal(revision(), was);
}

/* --- dry runs and plans ------------------------------------------------------------------ */

static json_t *dry_run(const char *document)
{
    json_t *args = with(parse(document), 0);

    json_object_set_new(args, "dry_run", json_true());
    return world_do("policy__apply", args);
}

static void a_dry_run_shows_plan_and_impact_and_changes_nothing(void **state)
{
    json_t *result;
    json_t *impact;
    int64_t was;

    (void)state;
    (void)world_member("ada@example.com", "Member");
    was = revision();
    result = dry_run(WHOLE);
    impact = json_object_get(result, "impact");
    assert_int_equal(mcp_json_int(result, "created", -1), 9);
    assert_int_equal(mcp_json_int(impact, "gains", -1), 1);
    assert_string_equal(
        json_string_value(json_array_get(
            json_object_get(json_array_get(json_object_get(impact, "groups"), 0), "gains"), 0)),
        "kit__list");
    assert_int_equal(revision(), was);
    json_decref(result);
    result = export_all();
    assert_int_equal(objects_of(result), 0);
    json_decref(result);
}

static void what_was_looked_at_is_what_is_applied(void **state)
{
    static const char roles[] = "{\"version\":1,\"roles\":[{\"name\":\"A\",\"permissions\":[]},"
                                "{\"name\":\"B\",\"permissions\":[]}]}";
    json_t *plan;
    json_t *args;

    (void)state;
    plan = dry_run(roles);
    args = with(parse(roles), 0);
    json_object_set(args, "plan", json_object_get(plan, "plan"));
    (void)world_member("ada@example.com", "Member"); /* changes, but not this plan */
    counts(world_do("policy__apply", json_deep_copy(args)), 2, 0, 0, 0);
    world_done("roles__delete", json_pack("{s:s}", "role", "A"));
    assert_null(world_try("policy__apply", args));
    assert_int_equal(world.code, MCP_CODE_REVISION_MISMATCH);
    json_decref(plan);
}

/* --- who may ------------------------------------------------------------------------------ */

static json_t *ask_as(const char *const *permissions, const char *name, json_t *args)
{
    pd_actor_t actor = {.label = "unix:1000", .roles = "", .permissions = permissions,
                        .surface = MCP_SURFACE_ADMIN, .scopes = 15};
    world_call_t made = {NULL, 0};

    assert_int_equal(pd_invoke(&world.core, pd_ops_find(name), &actor, args, NULL, pd_boot_in(30000),
                               world.scratch, world_on_done, &made),
                     PD_OK);
    world_wait(&made.is_done);
    json_decref(args);
    return made.result;
}

static void an_export_opens_no_more_than_reading_its_parts_does(void **state)
{
    static const struct {
        const char *section;
        const char *permission;
        int names_members; /* in WHOLE */
    } cases[] = {{"roles", "role:read", 0},
                 {"connectors", "connector:read", 0},
                 {"connections", "connection:read_all", 0},
                 {"connections", "connection:admin", 0},
                 {"settings", "setting:read", 0},
                 {"recipes", "recipe:write", 0},
                 {"toolboxes", "toolbox:write", 1},
                 {"restrictions", "restriction:read", 1}};
    static const char *const lacking[] = {"connection:read", "policy:read", "recipe:read",
                                          "toolbox:read", "toolbox:read_all", NULL};
    size_t i;

    (void)state;
    make_whole();
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *first = strcmp(cases[i].permission, "policy:read") < 0 ? cases[i].permission
                                                                           : "policy:read";
        const char *last = first == cases[i].permission ? "policy:read" : cases[i].permission;
        const char *nameless[] = {first, last, NULL};
        const char *naming[4] = {NULL};
        json_t *args = json_pack("{s:[s]}", "sections", cases[i].section);
        json_t *document;
        size_t k = 0;

        if (strcmp(first, "member:read") < 0) {
            naming[k++] = first;
        }
        naming[k++] = "member:read";
        if (strcmp(first, "member:read") > 0) {
            naming[k++] = first;
        }
        naming[k] = last;
        assert_null(ask_as(lacking, "policy__export", json_incref(args)));
        assert_int_equal(world.code, MCP_CODE_PERMISSION_DENIED);
        assert_non_null(strstr(world.message, cases[i].section));
        assert_non_null(strstr(world.message,
                               strcmp(cases[i].permission, "connection:admin") != 0
                                   ? cases[i].permission
                                   : "connection:read_all"));
        document = ask_as(nameless, "policy__export", json_incref(args));
        assert_int_equal(document == NULL, cases[i].names_members);
        if (cases[i].names_members) {
            assert_int_equal(world.code, MCP_CODE_PERMISSION_DENIED);
            assert_non_null(strstr(world.message, "member:read"));
        }
        json_decref(document);
        document = ask_as(naming, "policy__export", args);
        assert_non_null(document);
        json_decref(document);
        assert_null(ask_as(naming, "policy__export", json_object()));
        assert_int_equal(world.code, MCP_CODE_PERMISSION_DENIED);
    }
}

static void the_record_of_an_apply_names_what_it_changed(void **state)
{
    json_t *roles = json_array();
    const char *detail;
    const char *last;
    int i;

    (void)state;
    make_whole();
    detail = world_last_row().detail;
    assert_true(strncmp(detail, "created=9 updated=0 deleted=0: created role=rol_", 48) == 0);
    assert_non_null(strstr(detail, ", created connector=con_"));
    assert_non_null(strstr(detail, ", created connection=cxn_"));
    assert_non_null(strstr(detail, ", created key=collapse.mode client"));
    assert_non_null(strstr(detail, ", created restriction=rst_"));
    json_decref(apply_text("{\"version\":1,\"restrictions\":[]}", 1));
    detail = world_last_row().detail;
    assert_non_null(strstr(detail, "deleted=2: deleted restriction=rst_"));
    for (i = 0; i < 700; i++) {
        json_array_append_new(roles, json_pack("{s:o,s:[]}", "name", json_sprintf("R%d", i),
                                               "permissions"));
    }
    json_decref(apply(json_pack("{s:i,s:o}", "version", 1, "roles", roles), 0));
    detail = world_last_row().detail;
    assert_true(strlen(detail) <= 16384);
    assert_true(strlen(detail) > 15000);
    last = strstr(detail, ", and ");
    assert_non_null(last);
    i = (int)strtol(last + 6, NULL, 10);
    assert_true(i > 0 && i < 700);
    for (; (detail = strstr(detail, "created role=")) != NULL; detail++) {
        i++;
    }
    assert_int_equal(i, 700);
}

static void each_section_takes_the_permission_of_its_operations(void **state)
{
    static const struct {
        const char *section;
        const char *permission;
    } cases[] = {{"roles", "role:write"},           {"connectors", "connector:write"},
                 {"connections", "connection:write"}, {"settings", "setting:write"},
                 {"recipes", "recipe:write"},       {"toolboxes", "toolbox:write"},
                 {"restrictions", "restriction:write"}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *lacking[] = {"policy:write", NULL};
        const char *holding[] = {"policy:write", cases[i].permission, NULL};
        json_t *args = json_pack("{s:{s:i,s:[]}}", "policy", "version", 1, cases[i].section);
        json_t *result;

        if (strcmp(holding[0], holding[1]) > 0) {
            holding[0] = holding[1];
            holding[1] = "policy:write";
        }
        assert_null(ask_as(lacking, "policy__apply", json_deep_copy(args)));
        assert_int_equal(world.code, MCP_CODE_PERMISSION_DENIED);
        assert_non_null(strstr(world.message, cases[i].permission));
        result = ask_as(holding, "policy__apply", args);
        if (result == NULL) {
            fail_msg("%s: %s", cases[i].section, world.message);
        }
        json_decref(result);
    }
}

static void nobody_gives_by_a_document_what_he_does_not_hold(void **state)
{
    static const char *const helper[] = {"policy:write", "role:write", "tool:read", NULL};
    static const char *const sharer[] = {"connection:write", "policy:write", NULL};

    (void)state;
    make_whole();
    assert_null(ask_as(helper, "policy__apply",
                       with(parse("{\"version\":1,\"roles\":[{\"name\":\"Big\",\"permissions\":"
                                  "[\"tool:execute\"]}]}"),
                            0)));
    assert_int_equal(world.code, MCP_CODE_PERMISSION_DENIED);
    assert_non_null(strstr(world.message, "roles[0] (Big)"));
    assert_non_null(strstr(world.message, "tool:execute"));
    assert_null(ask_as(sharer, "policy__apply",
                       with(parse("{\"version\":1,\"connections\":[{\"connector\":\"shop\",\"label\":"
                                  "\"n\"}]}"),
                            0)));
    assert_int_equal(world.code, MCP_CODE_PERMISSION_DENIED);
    assert_non_null(strstr(world.message, "connection:admin"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exporting_and_applying_random_policies_is_the_identity),
        TEST(a_policy_moves_to_an_empty_daemon_whole),
        TEST(a_document_by_hand_is_applied_once),
        TEST(an_export_is_canonical),
        TEST(only_the_sections_that_are_asked_for_are_exported),
        TEST(what_a_section_lists_is_created_updated_and_with_prune_deleted),
        TEST(deletions_follow_the_references_backwards),
        TEST(what_a_member_owns_and_a_grant_has_is_left_alone),
        TEST(a_rule_whose_target_changes_is_made_anew),
        TEST(what_an_update_cannot_take_away_is_made_anew),
        TEST(entries_keep_their_ids_and_nameless_rules_their_content),
        TEST(a_block_never_forgets_its_pins_and_is_not_written_for_them),
        TEST(an_allow_by_name_is_exported_by_operation),
        TEST(what_is_gone_stands_by_id_and_is_not_taken_for_its_namesake),
        TEST(rules_and_toolboxes_of_the_removed_are_in_no_document),
        TEST(a_fault_names_its_place_and_undoes_everything),
        TEST(a_connection_does_not_change_its_connector),
        TEST(a_role_that_members_hold_is_not_pruned),
        TEST(a_dry_run_shows_plan_and_impact_and_changes_nothing),
        TEST(what_was_looked_at_is_what_is_applied),
        TEST(an_export_opens_no_more_than_reading_its_parts_does),
        TEST(the_record_of_an_apply_names_what_it_changed),
        TEST(each_section_takes_the_permission_of_its_operations),
        TEST(nobody_gives_by_a_document_what_he_does_not_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
