/* Operations over the link, and what hello says beside the ring, asked of a policyd of the test's own. */
#include "link_peer.h"

#include "../../mod_mcp/mcp_api.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BUDGET_MS    5000
#define SHORT_MS     300

typedef struct world {
    apr_pool_t *pool;
    peer_t *peer;
    mcp_link_t *link;
    mcp_ask_t *ask;
    mcp_who_t who;
} world_t;

static const char routes_blob[] =
    "{\"v\":1,\"routes\":[{\"op\":\"a__get\",\"method\":\"GET\",\"path\":\"/a\",\"class\":\"read\",\"max_bytes\":9,"
    "\"if_revision\":false,\"status\":200,\"words\":{},\"query\":{}}]}";
static const char openapi_blob[] = "{\"openapi\":\"3.1.0\"}";
static char routes_digest[MCP_DIGEST_HEX + 1];
static char openapi_digest[MCP_DIGEST_HEX + 1];

/* Hello with both digests, the blobs, and operations by their name. */
static void serve(peer_t *peer, const peer_question_t *question)
{
    const char *op = mcp_json_str(question->body, "op");
    const char *digest = mcp_json_str(question->body, "digest");
    const char *blob = routes_blob;
    json_t *body;

    if (question->frame.kind == MCP_KIND_BLOB_GET) {
        if (digest != NULL && strcmp(digest, openapi_digest) == 0) {
            blob = openapi_blob;
        }
        peer_send_frame(peer, question, peer_frame(peer, question, MCP_FLAG_RAW), blob, strlen(blob));
        return;
    }
    if (question->frame.kind == MCP_KIND_HELLO) {
        body = peer_hello_body(peer);
        json_object_set_new(body, "routes", json_string(routes_digest));
        json_object_set_new(body, "openapi", json_string(openapi_digest));
        peer_reply(peer, question, body);
        return;
    }
    if (question->frame.kind != MCP_KIND_OP_INVOKE || op == NULL ||
        question->frame.generation != atomic_load(&peer->generation)) {
        peer_honest(peer, question);
    } else if (strcmp(op, "members__get") == 0) {
        peer_reply(peer, question, json_pack("{s:s, s:{s:O, s:O, s:O}}", "audit", "17-1", "result", "args",
                                             json_object_get(question->body, "args"), "surface",
                                             json_object_get(question->body, "surface"), "trace",
                                             json_object_get(question->body, "trace_id")));
    } else if (strcmp(op, "no__answer") != 0) {
        peer_reply_flags(peer, question,
                         json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "code", op, "message", "no", "hint",
                                   "do so", "audit", "17-2", "permission", "member:read", "scopes", 9),
                         MCP_FLAG_ERROR);
    }
}

static int setup(void **state)
{
    world_t *world = calloc(1, sizeof(*world));

    if (world == NULL || apr_pool_create(&world->pool, NULL) != APR_SUCCESS) {
        free(world);
        return -1;
    }
    mcp_digest_hex(routes_blob, sizeof(routes_blob) - 1, routes_digest);
    mcp_digest_hex(openapi_blob, sizeof(openapi_blob) - 1, openapi_digest);
    world->peer = peer_open(NULL, serve);
    world->link = peer_link(world->peer, 4, world->pool);
    world->ask = peer_ask(world->link, world->pool);
    memset(world->who.token_hash, 'a', MCP_DIGEST_HEX);
    world->who.surface = "rest";
    world->who.resource = "https://mcp.example.com/mcp";
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_t *world = *state;

    mcp_ask_free(&world->ask);
    mcp_link_close(world->link);
    peer_close(&world->peer);
    apr_pool_destroy(world->pool);
    free(world);
    return 0;
}

/* args: stolen. */
static apr_status_t invoke(world_t *world, const char *op, json_t *args, int64_t budget_ms,
                           json_t **ret, const char **ret_audit, mcp_err_t *err)
{
    apr_status_t status;

    memset(err, 0, sizeof(*err));
    status = mcp_ask_invoke(world->ask, &world->who, op, args, "direct", "0af7651916cd43dd8448eb211c80319c",
                            budget_ms, world->pool, ret, ret_audit, err);
    json_decref(args);
    return status;
}

static void an_operation_is_asked_as_it_stands_and_answers_its_result(void **state)
{
    world_t *world = *state;
    json_t *result = NULL;
    const char *audit = NULL;
    mcp_err_t err;

    assert_int_equal(invoke(world, "members__get", json_pack("{s:s}", "member", "m"), BUDGET_MS,
                            &result, &audit, &err),
                     APR_SUCCESS);
    assert_string_equal(audit, "17-1");
    assert_string_equal(mcp_json_str(result, "surface"), "rest");
    assert_string_equal(mcp_json_str(result, "trace"), "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(mcp_json_str(json_object_get(result, "args"), "member"), "m");
}

static void a_refusal_says_all_that_policyd_said(void **state)
{
    static const struct {
        const char *code;
        mcp_fail_t fail;
    } cases[] = {
        {"permission_denied", MCP_FAIL_TOOL},      {"not_found", MCP_FAIL_TOOL},
        {"insufficient_scope", MCP_FAIL_SCOPE},    {"revision_mismatch", MCP_FAIL_TOOL},
        {"invalid_token", MCP_FAIL_UNAUTHORIZED},  {"grant_revoked", MCP_FAIL_UNAUTHORIZED},
        {"member_suspended", MCP_FAIL_UNAUTHORIZED}, {"unknown_tool", MCP_FAIL_PARAMS},
        {"overloaded", MCP_FAIL_UNAVAILABLE},      {"policy_unavailable", MCP_FAIL_UNAVAILABLE},
        {"rate_limited", MCP_FAIL_BUSY},           {"outcome_unrecorded", MCP_FAIL_TOOL},
        {"use_other_door", MCP_FAIL_TOOL},         {"internal", MCP_FAIL_TOOL},
    };
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        json_t *result = NULL;
        const char *audit = NULL;
        mcp_err_t err;

        assert_int_equal(invoke(world, cases[i].code, json_object(), BUDGET_MS, &result, &audit, &err),
                         MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, cases[i].fail);
        assert_string_equal(mcp_code_text(err.code), cases[i].code);
        assert_string_equal(err.message, "no");
        assert_string_equal(err.hint, "do so");
        assert_string_equal(err.audit, "17-2");
        assert_string_equal(err.permission, "member:read");
        assert_int_equal(err.scopes, MCP_SCOPE_READ | MCP_SCOPE_TOOLS);
        assert_null(result);
    }
}

/* Codes of the link itself are no answer of an operation. */
static void what_the_link_says_is_not_what_the_operation_says(void **state)
{
    static const char *const codes[] = {"malformed", "unsupported", "nonsense"};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(codes); i++) {
        json_t *result = NULL;
        const char *audit = NULL;
        mcp_err_t err;

        assert_int_equal(invoke(world, codes[i], json_object(), BUDGET_MS, &result, &audit, &err),
                         MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
        assert_int_equal(err.code, MCP_CODE_POLICY_UNAVAILABLE);
    }
}

static void a_restart_of_policyd_is_told_by_hello_and_the_operation_asked_again(void **state)
{
    world_t *world = *state;
    json_t *result = NULL;
    const char *audit = NULL;
    mcp_err_t err;

    assert_int_equal(
        invoke(world, "members__get", json_object(), BUDGET_MS, &result, &audit, &err), APR_SUCCESS);
    atomic_store(&world->peer->generation, 8);
    assert_int_equal(
        invoke(world, "members__get", json_object(), BUDGET_MS, &result, &audit, &err), APR_SUCCESS);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_HELLO), 2);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_OP_INVOKE), 3);
}

static void what_may_have_been_done_is_never_asked_again(void **state)
{
    world_t *world = *state;
    json_t *result = NULL;
    const char *audit = NULL;
    mcp_err_t err;

    assert_int_equal(invoke(world, "no__answer", json_object(), SHORT_MS, &result, &audit, &err),
                     MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_TOOL);
    assert_int_equal(err.code, MCP_CODE_OUTCOME_UNRECORDED);
    assert_null(err.audit);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_OP_INVOKE), 1);
}

static void without_a_policyd_nothing_was_done(void **state)
{
    world_t *world = *state;
    json_t *result = NULL;
    const char *audit = NULL;
    mcp_err_t err;

    peer_close(&world->peer);
    assert_int_not_equal(invoke(world, "members__get", json_object(), SHORT_MS, &result, &audit, &err),
                         APR_SUCCESS);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    memset(&err, 0, sizeof(err));
    assert_int_not_equal(mcp_ask_knock(world->ask, SHORT_MS, world->pool, &err), APR_SUCCESS);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
}

static void a_knock_is_a_beat(void **state)
{
    world_t *world = *state;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    assert_int_equal(mcp_ask_knock(world->ask, BUDGET_MS, world->pool, &err), APR_SUCCESS);
    assert_int_equal(mcp_ask_knock(world->ask, BUDGET_MS, world->pool, &err), APR_SUCCESS);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CHILD_BEAT), 2);
}

static void arguments_that_fill_no_message_are_not_sent(void **state)
{
    world_t *world = *state;
    char *text = malloc(MCP_MAX_BODY_BYTES);
    json_t *result = NULL;
    const char *audit = NULL;
    mcp_err_t err;

    memset(text, 'x', MCP_MAX_BODY_BYTES);
    assert_int_equal(invoke(world, "members__get",
                            json_pack("{s:s#}", "member", text, (int)MCP_MAX_BODY_BYTES - 8192),
                            BUDGET_MS, &result, &audit, &err),
                     MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_TOO_LARGE);
    assert_int_equal(err.code, MCP_CODE_TOO_LARGE);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_OP_INVOKE), 0);
    free(text);
}

/* --- hello ------------------------------------------------------------------------------ */

static void hello_is_said_once_for_all_its_texts(void **state)
{
    world_t *world = *state;
    const char *text = NULL;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    assert_int_equal(mcp_ask_hello_text(world->ask, MCP_HELLO_ROUTES, BUDGET_MS, world->pool, &text, &err),
                     APR_SUCCESS);
    assert_string_equal(text, routes_digest);
    assert_int_equal(
        mcp_ask_hello_text(world->ask, MCP_HELLO_OPENAPI, BUDGET_MS, world->pool, &text, &err),
        APR_SUCCESS);
    assert_string_equal(text, openapi_digest);
    assert_int_equal(mcp_ask_hello_text(world->ask, MCP_HELLO_PREFIX, BUDGET_MS, world->pool, &text, &err),
                     APR_SUCCESS);
    assert_string_equal(text, "elaichi");
    assert_int_equal(peer_asked(world->peer, MCP_KIND_HELLO), 1);
}

static void a_policyd_without_routes_is_told_apart(void **state)
{
    world_t *world = *state;
    const char *text = NULL;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    peer_set(world->peer, peer_honest);
    assert_int_not_equal(
        mcp_ask_hello_text(world->ask, MCP_HELLO_ROUTES, BUDGET_MS, world->pool, &text, &err), APR_SUCCESS);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    assert_non_null(strstr(err.log, "older"));
}

static void the_routes_are_fetched_once_and_kept(void **state)
{
    world_t *world = *state;
    const mcp_routes_t *routes = NULL;
    const char *text = NULL;
    const char *digest = NULL;
    size_t bytes = 0;
    mcp_route_match_t match;
    mcp_api_t *api = NULL;
    apr_pool_t *pool = NULL;
    mcp_err_t err;
    int i;

    memset(&err, 0, sizeof(err));
    assert_int_equal(mcp_api_create(world->ask, &api), APR_SUCCESS);
    for (i = 0; i < 3; i++) {
        assert_int_equal(apr_pool_create(&pool, world->pool), APR_SUCCESS);
        assert_int_equal(mcp_api_routes(api, BUDGET_MS, pool, &routes, &err), APR_SUCCESS);
        assert_int_equal(mcp_route_find(routes, "GET", "/a", pool, &match, &err), APR_SUCCESS);
        assert_int_equal(mcp_api_document(api, BUDGET_MS, pool, &text, &bytes, &digest, &err),
                         APR_SUCCESS);
        assert_string_equal(text, openapi_blob);
        assert_string_equal(digest, openapi_digest);
        apr_pool_destroy(pool);
    }
    assert_int_equal(peer_asked(world->peer, MCP_KIND_BLOB_GET), 2);
    mcp_api_free(&api);
    assert_null(api);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_operation_is_asked_as_it_stands_and_answers_its_result, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_refusal_says_all_that_policyd_said, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_link_says_is_not_what_the_operation_says, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restart_of_policyd_is_told_by_hello_and_the_operation_asked_again,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_may_have_been_done_is_never_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_policyd_nothing_was_done, setup, teardown),
        cmocka_unit_test_setup_teardown(a_knock_is_a_beat, setup, teardown),
        cmocka_unit_test_setup_teardown(arguments_that_fill_no_message_are_not_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(hello_is_said_once_for_all_its_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_policyd_without_routes_is_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(the_routes_are_fetched_once_and_kept, setup, teardown)};

    return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
