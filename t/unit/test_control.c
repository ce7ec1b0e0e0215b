/* Control-plane tools over MCP: which names are theirs, what results look like in each era, and what each refusal becomes. */
#include "link_peer.h"

#include "../../mod_mcp/mcp_control.h"
#include "../../mod_mcp/mcp_failure.h"
#include "../../mod_mcp/mcp_tools.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct world {
    apr_pool_t *pool;
    peer_t *peer;
    mcp_child_t child;
    mcp_terms_t terms;
    const char *_Atomic reply; /* to op.invoke: JSON; NULL: silence */
    _Atomic int is_error;
    pthread_mutex_t mutex; /* guards asked */
    json_t *asked;         /* the last op.invoke */
} world_t;

static void serve(peer_t *peer, const peer_question_t *question)
{
    world_t *world = peer->baton;
    const char *reply = world->reply;

    if (question->frame.kind != MCP_KIND_OP_INVOKE) {
        if (question->frame.kind == MCP_KIND_CALL_BEGIN) {
            peer_reply(peer, question,
                       json_pack("{s:s,s:i,s:{s:s,s:s}}", "audit", "17-9", "revision", 3, "denied", "code",
                                 "unknown_tool", "message", "no"));
            return;
        }
        peer_honest(peer, question);
        return;
    }
    (void)pthread_mutex_lock(&world->mutex);
    json_decref(world->asked);
    world->asked = json_deep_copy(question->body);
    (void)pthread_mutex_unlock(&world->mutex);
    if (reply != NULL) {
        peer_reply_flags(peer, question, json_loads(reply, 0, NULL), world->is_error ? MCP_FLAG_ERROR : 0);
    }
}

static int setup(void **state)
{
    world_t *world = calloc(1, sizeof(*world));

    if (world == NULL || apr_pool_create(&world->pool, NULL) != APR_SUCCESS) {
        free(world);
        return -1;
    }
    (void)pthread_mutex_init(&world->mutex, NULL);
    world->peer = peer_open(NULL, peer_honest);
    world->peer->baton = world;
    peer_set(world->peer, serve);
    world->child.link = peer_link(world->peer, 6, world->pool);
    world->child.ask = peer_ask(world->child.link, world->pool);
    if (mcp_view_create(world->child.ask, 1024 * 1024, &world->child.views) != APR_SUCCESS) {
        return -1;
    }
    world->terms.policy_ms = 5000;
    world->terms.call_ms = 5000;
    world->terms.list_page = 1000;
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_t *world = *state;

    peer_close(&world->peer);
    apr_pool_destroy(world->pool);
    mcp_view_free(&world->child.views);
    mcp_ask_free(&world->child.ask);
    mcp_link_close(world->child.link);
    json_decref(world->asked);
    (void)pthread_mutex_destroy(&world->mutex);
    free(world);
    return 0;
}

static mcp_turn_t *turn_of(world_t *world)
{
    mcp_turn_t *turn = apr_pcalloc(world->pool, sizeof(*turn));

    turn->pool = world->pool;
    turn->child = &world->child;
    turn->terms = &world->terms;
    memset(turn->who.token_hash, 'a', MCP_DIGEST_HEX);
    turn->who.surface = "mcp";
    turn->who.resource = "https://mcp.example.com/mcp";
    turn->trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
    return turn;
}

static mcp_era_t era_of(mcp_revision_t revision)
{
    mcp_era_t era;

    memset(&era, 0, sizeof(era));
    era.is_modern = revision == MCP_REV_2026_07_28;
    era.revision = revision;
    return era;
}

/* A tools/call as it comes; its result as text in the pool, or NULL and err. */
static const char *call(world_t *world, mcp_revision_t revision, const char *name, const char *arguments,
                        mcp_err_t *err)
{
    mcp_era_t era = era_of(revision);
    mcp_rpc_message_t message;
    const char *text = NULL;
    size_t bytes = 0;
    apr_status_t status;

    memset(err, 0, sizeof(*err));
    memset(&message, 0, sizeof(message));
    message.params = json_pack("{s:s}", "name", name);
    if (arguments != NULL) {
        json_object_set_new(message.params, "arguments", json_loads(arguments, 0, NULL));
    }
    status = mcp_tools_call(turn_of(world), &era, &message, &text, &bytes, err);
    json_decref(message.params);
    if (status != APR_SUCCESS) {
        assert_int_not_equal(err->fail, MCP_FAIL_NONE);
        return NULL;
    }
    assert_int_equal(bytes, strlen(text));
    return text;
}

static void answers(world_t *world, const char *reply)
{
    world->is_error = 0;
    world->reply = reply;
}

static void refuses(world_t *world, const char *reply)
{
    world->is_error = 1;
    world->reply = reply;
}

/* --- names ------------------------------------------------------------------------------ */

static void names_with_the_prefix_are_operations(void **state)
{
    static const struct {
        const char *prefix, *name, *op;
    } cases[] = {{NULL, "elaichi__whoami__get", "whoami__get"},
                 {NULL, "elaichi__x", "x"},
                 {NULL, "elaichi__no_such__thing", "no_such__thing"},
                 {NULL, "elaichi__", NULL},
                 {NULL, "elaichi_whoami__get", NULL},
                 {NULL, "elaichi", NULL},
                 {NULL, "elaichix__whoami__get", NULL},
                 {NULL, "Elaichi__whoami__get", NULL},
                 {NULL, "shop__elaichi__whoami__get", NULL},
                 {NULL, "whoami__get", NULL},
                 {NULL, "elaichi__a b", NULL},
                 {NULL, "elaichi__a\nb", NULL},
                 {NULL,
                  "elaichi__0123456789012345678901234567890123456789012345678901234567890123",
                  "0123456789012345678901234567890123456789012345678901234567890123"},
                 {NULL, "elaichi__01234567890123456789012345678901234567890123456789012345678901234", NULL},
                 {"gate", "gate__whoami__get", "whoami__get"},
                 {"gate", "elaichi__whoami__get", NULL},
                 {"gate", "gate__gate__whoami__get", "gate__whoami__get"}};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        const char *op = "untouched";

        world->terms.control_prefix = cases[i].prefix;
        assert_int_equal(mcp_control_op(turn_of(world), cases[i].name, &op, NULL), APR_SUCCESS);
        if ((op == NULL) != (cases[i].op == NULL) || (op != NULL && strcmp(op, cases[i].op) != 0)) {
            fail_msg("%s gave %s", cases[i].name, op != NULL ? op : "nothing");
        }
    }
}

static void an_operation_is_invoked_without_its_prefix(void **state)
{
    world_t *world = *state;
    mcp_err_t err;

    answers(world, "{\"audit\":\"17-1\",\"result\":{}}");
    assert_non_null(call(world, MCP_REV_2026_07_28, "elaichi__members__list", "{\"limit\":3}", &err));
    (void)pthread_mutex_lock(&world->mutex);
    assert_string_equal(mcp_json_str(world->asked, "op"), "members__list");
    assert_string_equal(mcp_json_str(world->asked, "surface"), "mcp");
    assert_string_equal(mcp_json_str(world->asked, "resource"), "https://mcp.example.com/mcp");
    assert_string_equal(mcp_json_str(world->asked, "trace_id"), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_int_equal(mcp_json_int(json_object_get(world->asked, "args"), "limit", 0), 3);
    (void)pthread_mutex_unlock(&world->mutex);
    assert_non_null(call(world, MCP_REV_2026_07_28, "elaichi__whoami__get", NULL, &err));
    (void)pthread_mutex_lock(&world->mutex);
    assert_int_equal(json_object_size(json_object_get(world->asked, "args")), 0);
    (void)pthread_mutex_unlock(&world->mutex);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_OP_INVOKE), 2);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_BEGIN), 0);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_END), 0);
}

/* --- results ------------------------------------------------------------------------------- */

#define MODERN_HEAD "{\"resultType\":\"complete\",\"_meta\":{"
#define TEXT        "\"content\":[{\"type\":\"text\",\"text\":\"{\\\"name\\\":\\\"a\\\\\\\"b\\\",\\\"count\\\":[1,2.5]}\"}]"
#define STRUCTURED  ",\"structuredContent\":{\"name\":\"a\\\"b\",\"count\":[1,2.5]}}"

static void a_result_is_text_and_structure_as_the_revision_has_it(void **state)
{
    static const struct {
        mcp_revision_t revision;
        const char *wanted; /* whole, but for a modern one's head */
    } cases[] = {{MCP_REV_2025_03_26, "{" TEXT "}"},
                 {MCP_REV_2025_06_18, "{" TEXT STRUCTURED},
                 {MCP_REV_2025_11_25, "{" TEXT STRUCTURED},
                 {MCP_REV_2026_07_28, "," TEXT STRUCTURED}};
    world_t *world = *state;
    mcp_err_t err;
    size_t i;

    answers(world, "{\"audit\":\"17-1\",\"result\":{\"name\":\"a\\\"b\",\"count\":[1,2.5]}}");
    for (i = 0; i < COUNT(cases); i++) {
        const char *text = call(world, cases[i].revision, "elaichi__whoami__get", NULL, &err);
        json_t *whole = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

        assert_non_null(whole);
        assert_null(json_object_get(whole, "isError"));
        json_decref(whole);
        if (cases[i].revision == MCP_REV_2026_07_28) {
            assert_int_equal(strncmp(text, MODERN_HEAD, strlen(MODERN_HEAD)), 0);
            assert_string_equal(text + strlen(text) - strlen(cases[i].wanted), cases[i].wanted);
        } else {
            assert_string_equal(text, cases[i].wanted);
        }
    }
}

/* --- refusals -------------------------------------------------------------------------------- */

static void refusals_become_what_clients_understand(void **state)
{
    static const struct {
        const char *error;
        mcp_fail_t fail;
        mcp_code_t code;
        int http;
        const char *in_body; /* of the answer */
    } cases[] = {
        {"{\"code\":\"permission_denied\",\"message\":\"no\",\"permission\":\"member:read\",\"audit\":\"17-2\"}",
         MCP_FAIL_TOOL, MCP_CODE_PERMISSION_DENIED, 200, "\"permission\":\"member:read\""},
        {"{\"code\":\"use_other_door\",\"message\":\"no\",\"hint\":\"Use policyctl.\",\"audit\":\"17-2\"}",
         MCP_FAIL_TOOL, MCP_CODE_USE_OTHER_DOOR, 200, "\"hint\":\"Use policyctl.\""},
        {"{\"code\":\"insufficient_scope\",\"message\":\"no\",\"scopes\":11,\"audit\":\"17-2\"}", MCP_FAIL_SCOPE,
         MCP_CODE_INSUFFICIENT_SCOPE, 403, "\"scope\":\"mcp:read mcp:write mcp:tools\""},
        {"{\"code\":\"revision_mismatch\",\"message\":\"no\",\"audit\":\"17-2\"}", MCP_FAIL_TOOL,
         MCP_CODE_REVISION_MISMATCH, 200, "\"code\":\"revision_mismatch\""},
        {"{\"code\":\"conflict\",\"message\":\"no\",\"audit\":\"17-2\"}", MCP_FAIL_TOOL, MCP_CODE_CONFLICT, 200,
         "\"isError\":true"},
        {"{\"code\":\"not_found\",\"message\":\"no\",\"audit\":\"17-2\"}", MCP_FAIL_TOOL, MCP_CODE_NOT_FOUND, 200,
         "\"audit\":\"17-2\""},
        {"{\"code\":\"invalid_request\",\"message\":\"no\",\"audit\":\"17-2\"}", MCP_FAIL_TOOL,
         MCP_CODE_INVALID_REQUEST, 200, "\"message\":\"no\""},
        {"{\"code\":\"approval_required\",\"message\":\"no\",\"audit\":\"17-2\"}", MCP_FAIL_TOOL,
         MCP_CODE_APPROVAL_REQUIRED, 200, "\"isError\":true"},
        {"{\"code\":\"outcome_unrecorded\",\"message\":\"no\",\"audit\":\"17-2\"}", MCP_FAIL_TOOL,
         MCP_CODE_OUTCOME_UNRECORDED, 200, "\"audit\":\"17-2\""},
        {"{\"code\":\"internal\",\"message\":\"no\",\"audit\":\"17-2\"}", MCP_FAIL_TOOL, MCP_CODE_INTERNAL, 200,
         "\"isError\":true"},
        {"{\"code\":\"rate_limited\",\"message\":\"no\"}", MCP_FAIL_BUSY, MCP_CODE_RATE_LIMITED, 429, "\"error\""},
        {"{\"code\":\"overloaded\",\"message\":\"no\"}", MCP_FAIL_UNAVAILABLE, MCP_CODE_OVERLOADED, 503,
         "\"error\""},
        {"{\"code\":\"policy_unavailable\",\"message\":\"no\"}", MCP_FAIL_UNAVAILABLE,
         MCP_CODE_POLICY_UNAVAILABLE, 503, "\"error\""},
        {"{\"code\":\"grant_revoked\",\"message\":\"no\"}", MCP_FAIL_UNAUTHORIZED, MCP_CODE_GRANT_REVOKED, 401,
         "\"error\":\"invalid_token\""},
        {"{\"code\":\"too_large\",\"message\":\"no\"}", MCP_FAIL_TOOL, MCP_CODE_INVALID_REQUEST, 200,
         "\"code\":\"invalid_request\""},
        {"{\"code\":\"malformed\",\"message\":\"no\"}", MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE, 503,
         "\"error\""},
        {"{\"code\":\"no_such_code\",\"message\":\"no\"}", MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE, 503,
         "\"error\""}};
    world_t *world = *state;
    mcp_era_t era = era_of(MCP_REV_2026_07_28);
    mcp_err_t err;
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        mcp_answer_t answer;

        refuses(world, cases[i].error);
        assert_null(call(world, MCP_REV_2026_07_28, "elaichi__members__list", "{}", &err));
        mcp_failure_answer(&err, "1", &era, world->pool, &answer);
        if (err.fail != cases[i].fail || err.code != cases[i].code || answer.http != cases[i].http ||
            strstr(answer.body, cases[i].in_body) == NULL) {
            fail_msg("%s became %d, code %d, HTTP %d: %s", cases[i].error, (int)err.fail, (int)err.code,
                     answer.http, answer.body);
        }
        assert_int_equal(answer.is_challenge, cases[i].http == 401 || cases[i].http == 403);
    }
}

static void an_unknown_operation_answers_the_bytes_of_an_unknown_tool(void **state)
{
    static const char *const errors[] = {
        "{\"code\":\"unknown_tool\",\"message\":\"There is no such operation.\",\"hint\":\"h\",\"audit\":\"17-2\"}",
        "{\"code\":\"restricted\",\"message\":\"withheld\",\"permission\":\"member:read\"}",
        "{\"code\":\"forbidden\",\"message\":\"withheld\",\"scopes\":3}"};
    static const mcp_revision_t revisions[] = {MCP_REV_2025_03_26, MCP_REV_2026_07_28};
    world_t *world = *state;
    mcp_answer_t wanted, got;
    mcp_err_t err;
    size_t i;
    size_t k;

    for (k = 0; k < COUNT(revisions); k++) {
        mcp_era_t era = era_of(revisions[k]);

        char *wanted_body;

        assert_null(call(world, revisions[k], "elaichj__members__list", "{}", &err)); /* by call.begin */
        mcp_failure_answer(&err, "1", &era, world->pool, &wanted);
        wanted_body = apr_pstrdup(world->pool, wanted.body);
        assert_non_null(strstr(wanted_body, "Unknown tool: elaichj__members__list"));
        strstr(wanted_body, "elaichj")[6] = 'i'; /* names of one length: the rest must be the same */
        for (i = 0; i < COUNT(errors); i++) {
            refuses(world, errors[i]);
            assert_null(call(world, revisions[k], "elaichi__members__list", "{}", &err));
            mcp_failure_answer(&err, "1", &era, world->pool, &got);
            assert_int_equal(got.http, wanted.http);
            assert_string_equal(got.body, wanted_body);
        }
    }
}

/* --- time ------------------------------------------------------------------------------------ */

static void no_answer_to_what_was_sent_is_no_invitation_to_repeat_it(void **state)
{
    world_t *world = *state;
    mcp_err_t err;

    world->terms.call_ms = 300;
    world->reply = NULL;
    assert_null(call(world, MCP_REV_2026_07_28, "elaichi__members__remove", "{}", &err));
    assert_int_equal(err.fail, MCP_FAIL_TOOL);
    assert_int_equal(err.code, MCP_CODE_OUTCOME_UNRECORDED);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_OP_INVOKE), 1);
}

static void a_policyd_that_is_silent_is_found_out_before_anything_is_sent(void **state)
{
    world_t *world = *state;
    int64_t from;
    mcp_err_t err;

    world->terms.policy_ms = 300;
    world->terms.call_ms = 60000;
    world->terms.control_prefix = "gate"; /* nothing needs to be asked for it */
    peer_set(world->peer, peer_silent);
    from = peer_now_ms();
    assert_null(call(world, MCP_REV_2026_07_28, "gate__members__list", "{}", &err));
    assert_in_range(peer_now_ms() - from, 0, 300 + 5000);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_OP_INVOKE), 0);
}

static void arguments_beyond_a_message_are_told_in_band(void **state)
{
    world_t *world = *state;
    char *filler = apr_palloc(world->pool, MCP_MAX_BODY_BYTES + 1);
    mcp_err_t err;

    memset(filler, 'f', MCP_MAX_BODY_BYTES);
    filler[MCP_MAX_BODY_BYTES] = '\0';
    answers(world, "{\"audit\":\"17-1\",\"result\":{}}");
    assert_null(call(world, MCP_REV_2026_07_28, "elaichi__members__list",
                     apr_pstrcat(world->pool, "{\"a\":\"", filler, "\"}", NULL), &err));
    assert_int_equal(err.fail, MCP_FAIL_TOOL);
    assert_int_equal(err.code, MCP_CODE_INVALID_REQUEST);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_OP_INVOKE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_with_the_prefix_are_operations, setup, teardown),
        cmocka_unit_test_setup_teardown(an_operation_is_invoked_without_its_prefix, setup, teardown),
        cmocka_unit_test_setup_teardown(a_result_is_text_and_structure_as_the_revision_has_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(refusals_become_what_clients_understand, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unknown_operation_answers_the_bytes_of_an_unknown_tool, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_answer_to_what_was_sent_is_no_invitation_to_repeat_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_policyd_that_is_silent_is_found_out_before_anything_is_sent,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(arguments_beyond_a_message_are_told_in_band, setup, teardown)};

    return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
