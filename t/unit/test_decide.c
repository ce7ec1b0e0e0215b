/* The decisions about calls, from the question to the row: in which order they are made, what is told and what is recorded. */
#include "policy_world.h"

#include "../../policyd/pd_keys.h"
#include "../../policyd/pd_running.h"
#include "../../policyd/pd_snapshot.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Who and what every test has. */
static struct {
    const char *ada, *bob;          /* members */
    const char *full;               /* ada's token hashes, by their scopes: all */
    const char *reader;             /* mcp:read mcp:tools */
    const char *revoked;            /* all, but revoked */
    const char *auditor;            /* of an Auditor, with all scopes */
    const char *shop, *bare;        /* connections: one that works, one without its credential */
} cast;

static json_t *shop_file(const char *slug, const char *auth)
{
    return json_pack(
        "{s:s,s:s,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s,s:[{s:s,s:s,s:b,s:{s:s}},{s:s,s:s,s:{s:s}}]},{s:s,s:s,s:s,"
        "s:s},{s:s,s:s,s:s,s:s,s:s}]}",
        "slug", slug, "label", slug, "base_url", "https://shop.example", "auth", "type", auth, "operations",
        "id", "get", "method", "GET", "path", "/items/{id}", "description", "Reads.", "parameters", "name",
        "id", "in", "path", "required", 1, "schema", "type", "string", "name", "fields", "in", "query",
        "schema", "type", "string", "id", "drop", "method", "DELETE", "path", "/items", "description",
        "Drops.", "id", "burn", "method", "GET", "path", "/burn", "description", "Burns.", "classification",
        "forbidden");
}

static void greet(const char *child, int64_t server_calls)
{
    json_t *body = json_pack("{s:i,s:i,s:s,s:s}", "version_min", 1, "version_max", 1, "software", "t", "child",
                             child);

    if (server_calls > 0) {
        json_object_set_new(body, "server", json_string("server-a"));
        json_object_set_new(body, "server_calls", json_integer(server_calls));
    }
    world_ask(MCP_KIND_HELLO, pd_on_hello, body);
    assert_int_equal(world.refused, MCP_CODE_NONE);
}

static int setup(void **state)
{
    const char *grant = NULL;
    json_t *all;

    if (world_setup(state) != 0) {
        return -1;
    }
    cast.ada = world_member("ada@example.com", "Member");
    cast.bob = world_member("bob@example.com", "Member");
    (void)world_member("eve@example.com", "Auditor");
    all = json_pack("[s,s]", "mcp:destructive", "mcp:tools");
    cast.full = world_grant("ada@example.com", json_deep_copy(all), NULL);
    cast.auditor = world_grant("eve@example.com", json_deep_copy(all), NULL);
    cast.revoked = world_grant("ada@example.com", all, &grant);
    cast.reader = world_grant("ada@example.com", json_pack("[s,s]", "mcp:read", "mcp:tools"), NULL);
    world_done("grants__revoke", json_pack("{s:s}", "grant", grant));
    world_done("connectors__create", shop_file("shop", "none"));
    world_done("connectors__create", shop_file("vault", "bearer"));
    cast.shop = world_make("connections__create", "connection",
                           json_pack("{s:s,s:s,s:b}", "connector", "shop", "label", "shop", "shared", 1));
    cast.bare = world_make("connections__create", "connection",
                           json_pack("{s:s,s:s,s:b}", "connector", "vault", "label", "bare", "shared", 1));
    world_done("connections__create", json_pack("{s:s,s:s,s:b,s:b}", "connector", "shop", "label", "box",
                                                "shared", 1, "toolbox_only", 1));
    world_done("connections__create",
               json_pack("{s:s,s:s,s:s}", "connector", "shop", "label", "bobs", "owner", cast.bob));
    greet("c1", 0);
    return 0;
}

/* --- asking ------------------------------------------------------------------------------ */

static json_t *begin_body(const char *hash, const char *tool)
{
    return json_pack("{s:s,s:s,s:s,s:{s:s,s:s},s:s,s:s,s:s,s:[s,s],s:i,s:i,s:s,s:i}", "token_hash", hash,
                     "surface", "mcp", "resource", WORLD_RESOURCE, "client", "name", "claude", "version", "1",
                     "child", "c1", "tool", tool, "via", "direct", "arg_names", "id", "password", "arg_count",
                     3, "deadline_ms", 30000, "trace_id", "0123456789abcdef0123456789abcdef", "request_bytes",
                     55);
}

static void ask_begin(json_t *body)
{
    world_ask(MCP_KIND_CALL_BEGIN, pd_on_call_begin, body);
}

static void begin(const char *hash, const char *tool)
{
    ask_begin(begin_body(hash, tool));
}

/* The code of the answer: of a refusal or of a denial; "" when there is a plan. */
static const char *answer(void)
{
    if (world.refused != MCP_CODE_NONE) {
        return mcp_code_text(world.refused);
    }
    if (json_object_get(world.reply, "plan") != NULL) {
        assert_null(json_object_get(world.reply, "denied"));
        return "";
    }
    return mcp_json_str(json_object_get(world.reply, "denied"), "code");
}

static pd_running_t *table(void)
{
    return world.core.policy->running;
}

/* --- a call that may run -------------------------------------------------------------------- */

static void an_allowed_call_is_on_record_before_its_plan_leaves(void **state)
{
    char audit[MCP_MAX_ID + 1];
    const json_t *plan;
    pd_record_t row;

    (void)state;
    begin(cast.full, "shop__get");
    assert_string_equal(answer(), "");
    plan = json_object_get(world.reply, "plan");
    assert_string_equal(mcp_json_str(plan, "tool"), "shop__get");
    assert_string_equal(mcp_json_str(plan, "connection"), cast.shop);
    assert_int_equal(pd_running_count(table()), 1);
    row = world_last_row();
    pd_trail_id(world.core.trail, row.seq, audit);
    assert_string_equal(mcp_json_str(world.reply, "audit"), audit);
    assert_int_equal(row.kind, PD_RECORD_BEGIN);
    assert_string_equal(row.member_id, cast.ada);
    assert_string_equal(row.role, "Member");
    assert_non_null(row.grant_id);
    assert_string_equal(row.client, "claude/1");
    assert_null(row.actor);
    assert_string_equal(row.surface, "mcp");
    assert_string_equal(row.operation, "shop/get");
    assert_string_equal(row.tool, "shop__get");
    assert_string_equal(row.via, "direct");
    assert_string_equal(row.connector, "shop");
    assert_string_equal(row.connection, "shop");
    assert_string_equal(row.connection_id, cast.shop);
    assert_string_equal(row.classification, "read");
    assert_string_equal(row.approved, "not_needed");
    assert_string_equal(row.arg_names, "[\"id\"]"); /* `password` is no argument of it */
    assert_int_equal(row.arg_count, 3);
    assert_int_equal(row.arg_unknown, 2);
    assert_string_equal(row.child, "c1");
    assert_int_equal(row.deadline_ms, 30000);
    assert_string_equal(row.trace_id, "0123456789abcdef0123456789abcdef");
    assert_int_equal(row.request_bytes, 55);
    assert_null(row.outcome);
    assert_null(row.detail);
    assert_int_equal(row.revision, world.core.policy->snapshot->revision);
}

static void via_and_surface_are_recorded_as_they_came(void **state)
{
    static const struct {
        const char *via, *surface;
        mcp_code_t code;
    } cases[] = {{"execute_tool", "mcp", MCP_CODE_NONE},
                 {"direct", "rest", MCP_CODE_NONE},
                 {"direct", "oauth", MCP_CODE_NONE},
                 {"direct", "admin", MCP_CODE_MALFORMED}, /* has no door to tools, and skips scopes */
                 {"direct", "", MCP_CODE_MALFORMED},
                 {"direct", "MCP", MCP_CODE_MALFORMED},
                 {"indirect", "mcp", MCP_CODE_MALFORMED},
                 {"", "mcp", MCP_CODE_MALFORMED}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        json_t *body = begin_body(cast.full, "shop__get");
        int64_t head = world_head();

        json_object_set_new(body, "via", json_string(cases[i].via));
        json_object_set_new(body, "surface", json_string(cases[i].surface));
        ask_begin(body);
        assert_int_equal(world.refused, cases[i].code);
        assert_int_equal(world_head() - head, cases[i].code == MCP_CODE_NONE);
        if (cases[i].code == MCP_CODE_NONE) {
            assert_string_equal(world_last_row().via, cases[i].via);
            assert_string_equal(world_last_row().surface, cases[i].surface);
        }
    }
}

/* --- the order -------------------------------------------------------------------------------- */

/* Each case breaks the step named and every step after it that can be broken beside it; the first one answers. */
static void the_first_failing_step_decides(void **state)
{
    static const struct {
        const char *const *hash;
        const char *tool;
        const char *told, *recorded;
        const char *outcome;
        const char *detail;
    } cases[] = {
        /* grant, before permission and visibility */
        {&cast.revoked, "shop__burn", "grant_revoked", "grant_revoked", "denied", NULL},
        {&cast.revoked, "no__such", "grant_revoked", "grant_revoked", "denied", NULL},
        /* permission, before visibility: what exists is not told */
        {&cast.auditor, "no__such", "permission_denied", "permission_denied", "denied", NULL},
        {&cast.auditor, "shop__burn", "permission_denied", "permission_denied", "denied", NULL},
        {&cast.auditor, "bobs__get", "permission_denied", "permission_denied", "denied", NULL},
        /* visibility, before scope: only a visible tool answers 403 */
        {&cast.reader, "no__such", "unknown_tool", "unknown_tool", "denied", NULL},
        {&cast.reader, "shop__nope", "unknown_tool", "unknown_tool", "denied", NULL},
        {&cast.reader, "shop", "unknown_tool", "unknown_tool", "denied", NULL},
        {&cast.reader, "__get", "unknown_tool", "unknown_tool", "denied", NULL},
        {&cast.reader, "", "unknown_tool", "unknown_tool", "denied", NULL},
        {&cast.reader, "elaichi__whoami", "unknown_tool", "unknown_tool", "denied", NULL},
        {&cast.reader, "bobs__drop", "unknown_tool", "restricted", "denied", "connection of another member"},
        {&cast.reader, "bobs__nope", "unknown_tool", "unknown_tool", "denied", NULL},
        {&cast.reader, "box__drop", "unknown_tool", "restricted", "denied", "connection serves toolboxes only"},
        {&cast.reader, "shop__burn", "unknown_tool", "forbidden", "denied", "classified forbidden"},
        {&cast.full, "shop__burn", "unknown_tool", "forbidden", "denied", "classified forbidden"},
        {&cast.full, "bare__burn", "unknown_tool", "forbidden", "denied", "classified forbidden"},
        /* scope, before the connection's state */
        {&cast.reader, "shop__drop", "insufficient_scope", "insufficient_scope", "denied", NULL},
        {&cast.reader, "bare__drop", "insufficient_scope", "insufficient_scope", "denied", NULL},
        /* the connection's state, before the caps */
        {&cast.full, "bare__get", "needs_reauth", "needs_reauth", "error", NULL},
        {&cast.full, "shop__get", "overloaded", "overloaded", "denied", NULL}};
    size_t i;

    (void)state;
    greet("c1", 1); /* one call in all */
    begin(cast.full, "shop__get");
    assert_string_equal(answer(), ""); /* takes it */
    for (i = 0; i < COUNT(cases); i++) {
        int64_t head = world_head();
        pd_record_t row;

        begin(*cases[i].hash, cases[i].tool);
        if (strcmp(answer(), cases[i].told) != 0) {
            fail_msg("case %u (%s): %s instead of %s", (unsigned)i, cases[i].tool, answer(),
                     cases[i].told);
        }
        assert_int_equal(world_head(), head + 1); /* exactly one row, an end alone */
        row = world_last_row();
        assert_int_equal(row.kind, PD_RECORD_END);
        assert_int_equal(row.begin_seq, 0);
        assert_string_equal(row.outcome, cases[i].outcome);
        assert_string_equal(row.error_code, cases[i].recorded);
        assert_int_equal(row.detail != NULL, cases[i].detail != NULL);
        if (cases[i].detail != NULL) {
            assert_string_equal(row.detail, cases[i].detail);
        }
        assert_non_null(row.member_id);
        assert_int_equal(pd_running_count(table()), 1);
    }
}

static void a_denial_says_what_is_needed(void **state)
{
    const json_t *denied;
    json_t *scopes = json_pack("[s,s]", "mcp:destructive", "mcp:tools");

    (void)state;
    begin(cast.reader, "shop__drop");
    denied = json_object_get(world.reply, "denied");
    assert_true(json_equal(json_object_get(denied, "scopes"), scopes)); /* all that are needed (step-up) */
    assert_null(json_object_get(denied, "permission"));
    begin(cast.auditor, "shop__get");
    denied = json_object_get(world.reply, "denied");
    assert_string_equal(mcp_json_str(denied, "permission"), "tool:execute");
    assert_null(json_object_get(denied, "scopes"));
    begin(cast.full, "bare__get");
    assert_non_null(mcp_json_str(json_object_get(world.reply, "denied"), "hint"));
    json_decref(scopes);
}

/* The answer but for what is each attempt's own. */
static char *answer_text(void)
{
    json_t *copy = json_deep_copy(world.reply);
    char *text;

    assert_int_equal(world.refused, MCP_CODE_NONE);
    assert_int_equal(json_object_del(copy, "audit"), 0);
    assert_int_equal(json_object_del(copy, "revision"), 0);
    text = json_dumps(copy, JSON_SORT_KEYS);
    json_decref(copy);
    return text;
}

static void what_is_withheld_looks_like_what_never_existed(void **state)
{
    static const char *const withheld[] = {"shop__burn", "bobs__get", "box__get", "bare__burn"};
    char *unknown;
    size_t i;

    (void)state;
    begin(cast.full, "nobody__get");
    unknown = answer_text();
    assert_non_null(strstr(unknown, "\"unknown_tool\""));
    for (i = 0; i < COUNT(withheld); i++) {
        char *text;

        begin(cast.full, withheld[i]);
        text = answer_text();
        assert_string_equal(text, unknown);
        free(text);
        assert_string_not_equal(world_last_row().error_code, "unknown_tool"); /* the row says why */
    }
    free(unknown);
}

/* --- who asks ------------------------------------------------------------------------------------ */

static void a_token_that_nobody_has_leaves_no_row(void **state)
{
    int64_t head = world_head();

    (void)state;
    begin("0000000000000000000000000000000000000000000000000000000000000000", "shop__get");
    assert_int_equal(world.refused, MCP_CODE_INVALID_TOKEN);
    assert_string_equal(world.refusal_audit, "");
    assert_int_equal(world_head(), head);
}

static void a_known_grant_that_is_refused_leaves_one_row(void **state)
{
    json_t *body = begin_body(cast.full, "shop__get");
    char audit[MCP_MAX_ID + 1];
    pd_record_t row;

    (void)state;
    json_object_set_new(body, "resource", json_string("https://other.example/mcp"));
    ask_begin(body);
    assert_int_equal(world.refused, MCP_CODE_INVALID_TOKEN);
    row = world_last_row();
    pd_trail_id(world.core.trail, row.seq, audit);
    assert_string_equal(world.refusal_audit, audit);
    assert_string_equal(row.error_code, "invalid_token");
    assert_string_equal(row.outcome, "denied");
    assert_string_equal(row.member_id, cast.ada);
    assert_string_equal(row.tool, "shop__get");
    assert_null(row.connection); /* nothing was looked up for it */
    assert_string_equal(row.arg_names, "[]");
    assert_int_equal(row.arg_unknown, 3);
    world_done("members__suspend", json_pack("{s:s}", "member", cast.ada));
    begin(cast.full, "shop__get");
    assert_int_equal(world.refused, MCP_CODE_MEMBER_SUSPENDED);
    assert_string_equal(world_last_row().error_code, "member_suspended");
}

static void a_child_that_said_no_hello_is_asked_for_it(void **state)
{
    json_t *body = begin_body(cast.full, "shop__get");
    int64_t head = world_head();

    (void)state;
    json_object_set_new(body, "child", json_string("stranger"));
    ask_begin(json_incref(body));
    assert_int_equal(world.refused, MCP_CODE_HELLO_REQUIRED);
    assert_int_equal(world_head(), head); /* so that it may resend */
    greet("stranger", 0);
    ask_begin(body);
    assert_string_equal(answer(), "");
}

/* --- what is recorded of a caller's words ----------------------------------------------------------- */

static json_t *names_of(const char *const *names, size_t count)
{
    json_t *array = json_array();
    size_t i;

    for (i = 0; i < count; i++) {
        json_array_append_new(array, json_string(names[i]));
    }
    return array;
}

static void only_names_that_the_schema_knows_are_recorded(void **state)
{
    static const char *const none[] = {""};
    static const char *const both[] = {"fields", "id"};
    static const char *const mixed[] = {"id ", "ID", "id", "my-secret-4711", "fields2"};
    static const struct {
        const char *const *names;
        size_t count;
        int sent;
        const char *tool;
        const char *recorded;
        int unknown;
    } cases[] = {{none, 0, 0, "shop__get", "[]", 0},
                 {both, 2, 2, "shop__get", "[\"fields\",\"id\"]", 0},
                 {mixed, 5, 5, "shop__get", "[\"id\"]", 4},
                 {both, 2, 300, "shop__get", "[\"fields\",\"id\"]", 298}, /* more than the list carries */
                 {both, 2, 1, "shop__get", "[\"fields\",\"id\"]", 0},     /* never below nothing */
                 {both, 2, 2, "shop__drop", "[]", 2},
                 {both, 2, 2, "no__such", "[]", 2},
                 {both, 2, 2, "bobs__get", "[]", 2},
                 {both, 2, 2, "shop__burn", "[]", 2}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        json_t *body = begin_body(cast.full, cases[i].tool);
        pd_record_t row;

        json_object_set_new(body, "arg_names", names_of(cases[i].names, cases[i].count));
        json_object_set_new(body, "arg_count", json_integer(cases[i].sent));
        ask_begin(body);
        row = world_last_row();
        assert_string_equal(row.arg_names, cases[i].recorded);
        assert_int_equal(row.arg_count, cases[i].sent);
        assert_int_equal(row.arg_unknown, cases[i].unknown);
    }
}

static void a_tool_name_without_the_form_of_one_is_recorded_as_its_length_and_hash(void **state)
{
    static const char *const names[] = {
        "sk-live 4711",
        "\xc3\xa9t\xc3\xa9__get",
        "shop.get",
        "shop__get\n",
        "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg", /* 65 */
        "",
        "\"},{\""};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++) {
        char tag[17];
        const char *tool;

        begin(cast.full, names[i]);
        assert_string_equal(answer(), "unknown_tool");
        tool = world_last_row().tool;
        pd_keys_tag(world.core.policy->keys, names[i], tag);
        assert_string_equal(tool, apr_psprintf(world.scratch, "#%u:%s", (unsigned)strlen(names[i]), tag));
        begin(cast.full, names[i]);
        assert_string_equal(world_last_row().tool, tool); /* alike can be told alike */
    }
    begin(cast.full, "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg"); /* 64 */
    assert_string_equal(world_last_row().tool,
                        "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg");
}

static void a_clients_name_is_cut_between_characters(void **state)
{
    static const struct {
        const char *name, *version, *recorded; /* NULL: the grant's own */
    } cases[] = {
        {"n", "", "n"},
        {"n", "2.0", "n/2.0"},
        {"", "2.0", "test"},
        {"0123456789012345678901234567890123456789012345678901234567890123", "",
         "0123456789012345678901234567890123456789012345678901234567890123"},
        {"01234567890123456789012345678901234567890123456789012345678901234", "",
         "0123456789012345678901234567890123456789012345678901234567890123"},
        /* two bytes at the cut, three, four */
        {"012345678901234567890123456789012345678901234567890123456789012\xc3\xa9x", "",
         "012345678901234567890123456789012345678901234567890123456789012"},
        {"01234567890123456789012345678901234567890123456789012345678901\xc3\xa9x", "",
         "01234567890123456789012345678901234567890123456789012345678901\xc3\xa9"},
        {"012345678901234567890123456789012345678901234567890123456789012\xe2\x82\xacx", "1",
         "012345678901234567890123456789012345678901234567890123456789012/1"},
        {"0123456789012345678901234567890123456789012345678901234567890\xf0\x9f\x98\x80x", "",
         "0123456789012345678901234567890123456789012345678901234567890"},
        {"n", "0123456789012345678901234567890\xc3\xa9", "n/0123456789012345678901234567890"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        json_t *body = begin_body(cast.full, "shop__get");
        json_t *text;

        json_object_set_new(body, "client",
                            json_pack("{s:s,s:s}", "name", cases[i].name, "version", cases[i].version));
        ask_begin(body);
        assert_string_equal(world_last_row().client, cases[i].recorded);
        text = json_string(world_last_row().client); /* it becomes JSON again */
        assert_non_null(text);
        json_decref(text);
    }
    {
        json_t *body = begin_body(cast.full, "shop__get");

        json_object_set_new(body, "client", json_pack("{s:i,s:[]}", "name", 17, "version"));
        ask_begin(json_incref(body));
        assert_string_equal(world_last_row().client, "test");
        assert_int_equal(json_object_del(body, "client"), 0);
        ask_begin(body);
        assert_string_equal(world_last_row().client, "test");
    }
}

/* --- credentials ------------------------------------------------------------------------------------- */

static void give_credential(const char *token)
{
    world_done("connections__update",
               json_pack("{s:s,s:{s:s}}", "connection", "bare", "credential", "token", token));
}

static void a_credential_that_does_not_open_is_asked_for_anew(void **state)
{
    const json_t *auth;

    (void)state;
    begin(cast.full, "bare__get");
    assert_string_equal(answer(), "needs_reauth");
    give_credential("s3cret");
    begin(cast.full, "bare__get");
    assert_string_equal(answer(), "");
    auth = json_object_get(json_object_get(world.reply, "plan"), "auth");
    assert_string_equal(mcp_json_str(auth, "value"), "Bearer s3cret");
    world.core.master_key[5] ^= 1;
    begin(cast.full, "bare__get");
    assert_string_equal(answer(), "needs_reauth");
    assert_string_equal(world_last_row().outcome, "error");
    assert_int_equal(pd_running_count(table()), 1);
    world.core.master_key[5] ^= 1;
    begin(cast.full, "bare__get"); /* nothing was remembered against it */
    assert_string_equal(answer(), "");
}

static void no_row_holds_a_secret(void **state)
{
    world_rows_t rows;
    int i;

    (void)state;
    give_credential("s3cret-4711");
    begin(cast.full, "bare__get");
    rows = world_rows(0);
    for (i = 0; i < rows.count; i++) {
#define NO_SECRET(name)                                                                            \
    if (rows.rows[i].name != NULL) {                                                               \
        assert_null(strstr(rows.rows[i].name, "4711"));                                            \
    }
        PD_TRAIL_TEXTS(NO_SECRET, NO_SECRET)
#undef NO_SECRET
    }
}

/* --- under way ------------------------------------------------------------------------------------------- */

static pd_status_t drop_all(pd_tx_t *tx, void *baton)
{
    static const char *const kinds[] = {"connection", "connector"};
    pd_status_t status = PD_OK;
    size_t i;
    int k;

    (void)baton;
    for (i = 0; status == PD_OK && i < COUNT(kinds); i++) {
        apr_array_header_t *objects = NULL;

        status = pd_tx_list(tx, kinds[i], NULL, NULL, 100, &objects);
        for (k = 0; status == PD_OK && k < objects->nelts; k++) {
            status = pd_tx_delete(tx, kinds[i], APR_ARRAY_IDX(objects, k, pd_object_t *)->id, 0);
        }
    }
    return status;
}

/* Writes over what pools gave back, so that whoever still looks there is found out. */
static void spoil_freed_pools(void)
{
    apr_pool_t *pools[64];
    size_t i;

    for (i = 0; i < COUNT(pools); i++) {
        assert_int_equal(apr_pool_create(&pools[i], NULL), APR_SUCCESS);
        memset(apr_palloc(pools[i], 7000), 'X', 7000);
    }
    for (i = 0; i < COUNT(pools); i++) {
        apr_pool_destroy(pools[i]);
    }
}

/* All connections and connectors go between the decision and its record. */
static void a_decision_outlives_the_snapshot_it_was_made_from(void **state)
{
    pd_record_t row;
    int before;

    (void)state;
    give_credential("s3cret");
    before = world.is_answered;
    world.is_trail_held = 1;
    pd_on_call_begin(world_ask_new(MCP_KIND_CALL_BEGIN, begin_body(cast.full, "bare__get")));
    pd_on_call_begin(world_ask_new(MCP_KIND_CALL_BEGIN, begin_body(cast.reader, "bare__drop")));
    pd_on_call_begin(world_ask_new(MCP_KIND_CALL_BEGIN, begin_body(cast.full, "shop__get")));
    assert_int_equal(world_unit(PD_LANE_WRITE, drop_all, NULL), PD_OK);
    assert_int_equal(apr_hash_count(world.core.policy->snapshot->ground->connections), 0);
    assert_int_equal(world.is_answered, before);
    spoil_freed_pools();
    world.is_trail_held = 0;
    world_reap(); /* what has come meanwhile woke nobody */
    world_wait_for(&world.is_answered, before + 3);
    assert_int_equal(pd_running_count(table()), 2);
    assert_int_equal(world.refused, MCP_CODE_NONE);
    assert_string_equal(mcp_json_str(json_object_get(world.reply, "plan"), "tool"), "shop__get");
    world_ask(MCP_KIND_CALL_END, pd_on_call_end,
              json_pack("{s:s,s:s,s:s,s:i}", "audit", mcp_json_str(world.reply, "audit"), "child", "c1",
                        "outcome", "ok", "duration_us", 1));
    row = world_last_row();
    assert_string_equal(row.connector, "shop");
    assert_string_equal(row.connection, "shop");
    assert_string_equal(row.connection_id, cast.shop);
    assert_string_equal(row.operation, "shop/get");
    begin(cast.full, "bare__get");
    assert_string_equal(answer(), "unknown_tool"); /* and the next one sees the change */
}

static void what_can_not_be_recorded_does_not_run(void **state)
{
    static const char *const tools[] = {"shop__get", "no__such", "shop__drop"};
    pd_running_place_t place;
    size_t i;

    (void)state;
    greet("c1", 1);
    pd_trail_stop(world.core.trail);
    for (i = 0; i < COUNT(tools); i++) {
        begin(cast.reader, tools[i]);
        assert_int_equal(world.refused, MCP_CODE_POLICY_UNAVAILABLE);
        assert_int_equal(pd_running_count(table()), 0);
        /* the one place was given back */
        assert_int_equal(pd_running_enter(table(), "c1", cast.shop, &place), MCP_CODE_NONE);
        pd_running_leave(&place);
    }
}

static void a_question_past_its_time_is_not_decided(void **state)
{
    pd_ask_t *ask = world_ask_new(MCP_KIND_CALL_BEGIN, begin_body(cast.full, "shop__get"));
    int before = world.is_answered;
    int64_t head = world_head();

    (void)state;
    ask->deadline = pd_boot_in(-1);
    pd_on_call_begin(ask);
    world_wait_for(&world.is_answered, before + 1);
    assert_int_equal(world.refused, MCP_CODE_POLICY_UNAVAILABLE);
    assert_int_equal(world_head(), head);
}

static void a_policy_that_can_not_follow_its_store_decides_nothing_after_a_minute(void **state)
{
    int64_t head = world_head();

    (void)state;
    world.core.policy->stale_since = pd_boot_now();
    world_pass_ms(59000);
    begin(cast.full, "shop__get");
    assert_string_equal(answer(), "");
    world_pass_ms(2000);
    begin(cast.full, "shop__get");
    assert_int_equal(world.refused, MCP_CODE_POLICY_UNAVAILABLE);
    assert_int_equal(world_head(), head + 1);
    world_done("settings__set", json_pack("{s:s,s:i}", "key", "collapse.threshold", "value", 5));
    begin(cast.full, "shop__get"); /* it has followed again */
    assert_string_equal(answer(), "");
}

/* --- resolve ----------------------------------------------------------------------------------------------- */

static json_t *resolve_body(const char *hash)
{
    return json_pack("{s:s,s:s,s:s}", "token_hash", hash, "surface", "mcp", "resource", WORLD_RESOURCE);
}

static void resolve_says_who_and_what_view_and_records_nothing(void **state)
{
    int64_t head = world_head();
    char *view;

    (void)state;
    world_ask(MCP_KIND_RESOLVE, pd_on_resolve, resolve_body(cast.reader));
    assert_int_equal(world.refused, MCP_CODE_NONE);
    assert_string_equal(mcp_json_str(world.reply, "member"), cast.ada);
    assert_int_equal(mcp_json_bool(world.reply, "may_execute"), 1);
    assert_int_equal(mcp_json_int(world.reply, "scopes", 0), MCP_SCOPE_READ | MCP_SCOPE_TOOLS);
    assert_int_equal(mcp_json_int(world.reply, "revision", 0), world.core.policy->snapshot->revision);
    assert_true(mcp_json_int(world.reply, "expires_at", 0) > pd_wall_now().us); /* grants end by themselves */
    view = apr_pstrdup(world.scratch, mcp_json_str(world.reply, "view"));
    world_ask(MCP_KIND_BLOB_GET, pd_on_blob_get, json_pack("{s:s,s:i}", "digest", view, "offset", 0));
    assert_int_equal(world.refused, MCP_CODE_NONE);
    world_ask(MCP_KIND_RESOLVE, pd_on_resolve, resolve_body(cast.auditor));
    assert_int_equal(mcp_json_bool(world.reply, "may_execute"), 0);
    assert_string_not_equal(mcp_json_str(world.reply, "view"), view);
    world_ask(MCP_KIND_RESOLVE, pd_on_resolve, resolve_body(cast.revoked));
    assert_int_equal(world.refused, MCP_CODE_GRANT_REVOKED);
    world_ask(MCP_KIND_RESOLVE, pd_on_resolve,
              resolve_body("0000000000000000000000000000000000000000000000000000000000000000"));
    assert_int_equal(world.refused, MCP_CODE_INVALID_TOKEN);
    assert_int_equal(world_head(), head);
}

/* --- notes ---------------------------------------------------------------------------------------------------- */

static json_t *note_body(const char *hash, const char *tool, const char *outcome, const char *code,
                         const char *id)
{
    json_t *body = begin_body(hash, tool);

    assert_int_equal(json_object_del(body, "deadline_ms"), 0);
    json_object_set_new(body, "outcome", json_string(outcome));
    json_object_set_new(body, "duration_us", json_integer(4242));
    if (code != NULL) {
        json_object_set_new(body, "code", json_string(code));
    }
    if (id != NULL) {
        json_object_set_new(body, "id", json_string(id));
    }
    return body;
}

static void note(json_t *body)
{
    world_ask(MCP_KIND_CALL_NOTE, pd_on_call_note, body);
}

static void a_note_is_one_complete_row(void **state)
{
    pd_record_t row;
    char audit[MCP_MAX_ID + 1];

    (void)state;
    note(note_body(cast.full, "shop__get", "error", "invalid_arguments", NULL));
    assert_int_equal(world.refused, MCP_CODE_NONE);
    row = world_last_row();
    pd_trail_id(world.core.trail, row.seq, audit);
    assert_string_equal(mcp_json_str(world.reply, "audit"), audit);
    assert_int_equal(row.kind, PD_RECORD_END);
    assert_int_equal(row.begin_seq, 0);
    assert_string_equal(row.outcome, "error");
    assert_string_equal(row.error_code, "invalid_arguments");
    assert_int_equal(row.duration_us, 4242);
    assert_string_equal(row.operation, "shop/get");
    assert_string_equal(row.connection, "shop");
    assert_string_equal(row.arg_names, "[\"id\"]");
    assert_int_equal(pd_running_count(table()), 0);
    note(note_body(cast.full, "search_tools", "ok", NULL, NULL)); /* a tool that the worker has */
    assert_string_equal(world_last_row().tool, "search_tools");
    assert_null(world_last_row().operation);
    assert_null(world_last_row().error_code);
    note(note_body(cast.full, "bobs__get", "denied", "unknown_tool", NULL));
    assert_null(world_last_row().connection);
    assert_null(world_last_row().detail);
}

static void a_resent_note_is_recorded_once(void **state)
{
    int64_t head = world_head();
    char *audit;

    (void)state;
    note(note_body(cast.full, "shop__get", "ok", NULL, "note-1"));
    audit = apr_pstrdup(world.scratch, mcp_json_str(world.reply, "audit"));
    note(note_body(cast.full, "shop__get", "ok", NULL, "note-1"));
    assert_string_equal(mcp_json_str(world.reply, "audit"), audit);
    assert_int_equal(world_head(), head + 1);
    note(note_body(cast.full, "shop__get", "ok", NULL, "note-2"));
    assert_int_equal(world_head(), head + 2);
}

static void a_note_that_is_not_sound_or_of_nobody_is_none(void **state)
{
    static const struct {
        const char *outcome, *code;
    } bad[] = {{"running", NULL}, {"interrupted", NULL}, {"", NULL}, {"fine", NULL}, {"error", "no_such_code"}};
    int64_t head = world_head();
    json_t *body;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(bad); i++) {
        note(note_body(cast.full, "shop__get", bad[i].outcome, bad[i].code, NULL));
        assert_int_equal(world.refused, MCP_CODE_MALFORMED);
    }
    body = note_body(cast.full, "shop__get", "ok", NULL, NULL);
    json_object_set_new(body, "via", json_string("other"));
    note(body);
    assert_int_equal(world.refused, MCP_CODE_MALFORMED);
    note(note_body(cast.revoked, "shop__get", "ok", NULL, NULL));
    assert_int_equal(world.refused, MCP_CODE_GRANT_REVOKED);
    note(note_body("0000000000000000000000000000000000000000000000000000000000000000", "shop__get", "ok", NULL,
                   NULL));
    assert_int_equal(world.refused, MCP_CODE_INVALID_TOKEN);
    assert_int_equal(world_head(), head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_allowed_call_is_on_record_before_its_plan_leaves, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(via_and_surface_are_recorded_as_they_came, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(the_first_failing_step_decides, setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_denial_says_what_is_needed, setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_is_withheld_looks_like_what_never_existed, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_token_that_nobody_has_leaves_no_row, setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_known_grant_that_is_refused_leaves_one_row, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_child_that_said_no_hello_is_asked_for_it, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(only_names_that_the_schema_knows_are_recorded, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(
            a_tool_name_without_the_form_of_one_is_recorded_as_its_length_and_hash, setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(a_clients_name_is_cut_between_characters, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_credential_that_does_not_open_is_asked_for_anew, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(no_row_holds_a_secret, setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_decision_outlives_the_snapshot_it_was_made_from, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(what_can_not_be_recorded_does_not_run, setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_question_past_its_time_is_not_decided, setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            a_policy_that_can_not_follow_its_store_decides_nothing_after_a_minute, setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(resolve_says_who_and_what_view_and_records_nothing, setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_note_is_one_complete_row, setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_resent_note_is_recorded_once, setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_note_that_is_not_sound_or_of_nobody_is_none, setup,
                                        world_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
