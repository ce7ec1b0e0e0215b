/* Typed questions to a policyd of the tests' own: hello by itself, what is resent and what never is, what a denial becomes, beats. */
#include "link_peer.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BUDGET_MS    5000
#define SHORT_MS     300
#define SLACK_MS     3000

#define VIEW "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

typedef struct world {
    apr_pool_t *pool;
    peer_t *peer;
    mcp_link_t *link;
    mcp_ask_t *ask;
    mcp_who_t who;
    mcp_attempt_t attempt;
    json_t *names;
} world_t;

static int setup(void **state)
{
    world_t *world = calloc(1, sizeof(*world));

    if (world == NULL || apr_pool_create(&world->pool, NULL) != APR_SUCCESS) {
        free(world);
        return -1;
    }
    world->peer = peer_open(NULL, peer_honest);
    world->link = peer_link(world->peer, 4, world->pool);
    world->ask = peer_ask(world->link, world->pool);
    world->names = json_pack("[s,s]", "a", "b");
    memset(world->who.token_hash, 'a', MCP_DIGEST_HEX);
    world->who.surface = "mcp";
    world->who.resource = "https://mcp.example.com/mcp";
    world->who.client_name = "client";
    world->who.client_version = "1.0";
    world->attempt.tool = "shop__get";
    world->attempt.via = "direct";
    world->attempt.arg_names = world->names;
    world->attempt.arg_count = 2;
    world->attempt.deadline_ms = 1000;
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
    json_decref(world->names);
    free(world);
    return 0;
}

static apr_status_t resolve(world_t *world, mcp_resolved_t *ret, mcp_err_t *err)
{
    memset(ret, 0, sizeof(*ret));
    memset(err, 0, sizeof(*err));
    return mcp_ask_resolve(world->ask, &world->who, BUDGET_MS, world->pool, ret, err);
}

static apr_status_t begin(world_t *world, int64_t budget_ms, mcp_begun_t *ret, mcp_err_t *err)
{
    memset(ret, 0, sizeof(*ret));
    memset(err, 0, sizeof(*err));
    return mcp_ask_begin(world->ask, &world->who, &world->attempt, budget_ms, world->pool, ret, err);
}

static mcp_begun_t begun_well(world_t *world)
{
    mcp_begun_t begun;
    mcp_err_t err;

    assert_int_equal(begin(world, BUDGET_MS, &begun, &err), APR_SUCCESS);
    assert_int_equal(begun.denied.fail, MCP_FAIL_NONE);
    assert_non_null(begun.plan);
    return begun;
}

static apr_status_t end(world_t *world, const mcp_begun_t *begun, int64_t budget_ms, mcp_err_t *err)
{
    mcp_ended_t ended;

    memset(&ended, 0, sizeof(ended));
    memset(err, 0, sizeof(*err));
    ended.outcome = MCP_OUTCOME_ERROR;
    ended.code = MCP_CODE_UPSTREAM_STATUS;
    ended.upstream_status = 502;
    ended.request_bytes = 10;
    ended.response_bytes = 20;
    return mcp_ask_end(world->ask, begun, &ended, budget_ms, world->pool, err);
}

/* --- hello ------------------------------------------------------------------------- */

static void hello_is_said_once_and_by_itself(void **state)
{
    world_t *world = *state;
    mcp_resolved_t resolved;
    mcp_err_t err;
    int i;

    for (i = 0; i < 3; i++) {
        assert_int_equal(resolve(world, &resolved, &err), APR_SUCCESS);
        assert_string_equal(resolved.grant, "grt_1");
        assert_string_equal(resolved.member, "mem_1");
        assert_string_equal(resolved.view, VIEW);
        assert_int_equal(resolved.may_execute, 1);
        assert_int_equal(resolved.scopes, 15);
    }
    assert_int_equal(peer_asked(world->peer, MCP_KIND_HELLO), 1);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 3);
}

static void after_a_restart_hello_is_said_and_the_question_resent(void **state)
{
    world_t *world = *state;
    mcp_resolved_t resolved;
    mcp_begun_t begun;
    mcp_err_t err;

    assert_int_equal(resolve(world, &resolved, &err), APR_SUCCESS);
    atomic_store(&world->peer->generation, 8);
    assert_int_equal(begin(world, BUDGET_MS, &begun, &err), APR_SUCCESS);
    assert_non_null(begun.plan);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_HELLO), 2);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_BEGIN), 2); /* the first was told hello_required */
    assert_int_equal(resolve(world, &resolved, &err), APR_SUCCESS);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_HELLO), 2);
}

static void after_a_real_restart_the_kept_sockets_are_good_again(void **state)
{
    world_t *world = *state;
    const char *endpoint = apr_pstrdup(world->pool, world->peer->endpoint);
    mcp_resolved_t resolved;
    mcp_err_t err;
    apr_status_t status;
    int lost = 0;

    assert_int_equal(resolve(world, &resolved, &err), APR_SUCCESS);
    peer_close(&world->peer);
    world->peer = peer_open(endpoint, peer_honest);
    atomic_store(&world->peer->generation, 9);
    do { /* one that left before libzmq noticed the end is lost; it is not sent twice behind the asker's back */
        memset(&err, 0, sizeof(err));
        status = mcp_ask_resolve(world->ask, &world->who, SHORT_MS, world->pool, &resolved, &err);
        lost += status != APR_SUCCESS;
    } while (status != APR_SUCCESS && lost < 20);
    assert_int_equal(status, APR_SUCCESS);
    assert_int_equal(resolve(world, &resolved, &err), APR_SUCCESS);
    assert_true(peer_asked(world->peer, MCP_KIND_HELLO) >= 1);
}

static void say_hello_for_ever(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind == MCP_KIND_HELLO) {
        peer_honest(peer, question);
    } else {
        peer_refuse(peer, question, "hello_required");
    }
}

static void a_policyd_that_always_wants_hello_is_not_asked_for_ever(void **state)
{
    world_t *world = *state;
    mcp_resolved_t resolved;
    mcp_err_t err;

    peer_set(world->peer, say_hello_for_ever);
    assert_int_equal(resolve(world, &resolved, &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 2);
}

static const char *_Atomic hello_flaw;

static void flawed_hello(peer_t *peer, const peer_question_t *question)
{
    json_t *body;

    if (question->frame.kind != MCP_KIND_HELLO) {
        peer_honest(peer, question);
        return;
    }
    body = peer_hello_body(peer);
    if (strcmp(hello_flaw, "version") == 0) {
        json_object_set_new(body, "version", json_integer(MCP_VERSION + 1));
    } else if (strcmp(hello_flaw, "no keys") == 0) {
        json_object_set_new(body, "keys", json_array());
    } else if (strcmp(hello_flaw, "bad key") == 0) {
        json_object_set_new(body, "keys",
                            json_pack("[{s:s,s:s,s:b}]", "id", "k1", "key", "short", "current", 1));
    } else if (strcmp(hello_flaw, "error") == 0) {
        json_decref(body);
        peer_refuse(peer, question, "unsupported");
        return;
    }
    peer_reply(peer, question, body);
}

static void a_hello_that_is_not_sound_serves_nobody(void **state)
{
    static const char *const flaws[] = {"version", "no keys", "bad key", "error"};
    world_t *world = *state;
    mcp_resolved_t resolved;
    mcp_ring_t ring;
    mcp_err_t err;
    size_t i;

    for (i = 0; i < COUNT(flaws); i++) {
        hello_flaw = flaws[i];
        peer_set(world->peer, flawed_hello);
        if (resolve(world, &resolved, &err) == APR_SUCCESS) {
            fail_msg("hello with the flaw \"%s\" was taken", flaws[i]);
        }
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
        assert_int_equal(err.code, MCP_CODE_POLICY_UNAVAILABLE);
        assert_int_not_equal(mcp_ask_ring(world->ask, BUDGET_MS, world->pool, &ring, NULL),
                             APR_SUCCESS);
    }
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 0);
}

static void the_ring_is_asked_for_once(void **state)
{
    world_t *world = *state;
    mcp_ring_t ring;
    int i;

    for (i = 0; i < 3; i++) {
        memset(&ring, 0, sizeof(ring));
        assert_int_equal(mcp_ask_ring(world->ask, BUDGET_MS, world->pool, &ring, NULL), APR_SUCCESS);
        assert_int_equal(ring.count, 1);
        assert_string_equal(ring.keys[0].id, "k1");
        assert_int_equal(ring.keys[0].key[31], 31);
    }
    assert_int_equal(peer_asked(world->peer, MCP_KIND_HELLO), 1);
}

/* --- refusals --------------------------------------------------------------------------- */

static const char *_Atomic refusal;

static void refuse_all(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind == MCP_KIND_HELLO) {
        peer_honest(peer, question);
    } else {
        peer_reply_flags(peer, question,
                         json_pack("{s:s,s:s,s:s}", "code", refusal, "message", "because", "audit",
                                   "17-9"),
                         MCP_FLAG_ERROR);
    }
}

static void a_refused_token_is_401_and_everything_else_503(void **state)
{
    static const struct {
        const char *code;
        mcp_fail_t fail;
    } cases[] = {{"invalid_token", MCP_FAIL_UNAUTHORIZED},
                 {"grant_revoked", MCP_FAIL_UNAUTHORIZED},
                 {"grant_expired", MCP_FAIL_UNAUTHORIZED},
                 {"member_suspended", MCP_FAIL_UNAUTHORIZED},
                 {"policy_unavailable", MCP_FAIL_UNAVAILABLE},
                 {"overloaded", MCP_FAIL_UNAVAILABLE},
                 {"malformed", MCP_FAIL_UNAVAILABLE},
                 {"internal", MCP_FAIL_UNAVAILABLE},
                 {"permission_denied", MCP_FAIL_UNAVAILABLE}, /* not as an error reply */
                 {"no_such_code", MCP_FAIL_UNAVAILABLE}};
    world_t *world = *state;
    mcp_resolved_t resolved;
    mcp_begun_t begun;
    mcp_err_t err;
    size_t i;

    peer_set(world->peer, refuse_all);
    for (i = 0; i < COUNT(cases); i++) {
        refusal = cases[i].code;
        assert_int_equal(resolve(world, &resolved, &err), MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, cases[i].fail);
        assert_null(resolved.grant);
        assert_int_equal(begin(world, BUDGET_MS, &begun, &err), MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, cases[i].fail);
        assert_null(begun.plan);
        if (cases[i].fail == MCP_FAIL_UNAUTHORIZED) {
            assert_int_equal(err.has_credentials, 1);
            assert_string_equal(mcp_code_text(err.code), cases[i].code);
            assert_string_equal(err.message, "because");
            assert_string_equal(err.audit, "17-9");
        } else {
            assert_int_equal(err.code, MCP_CODE_POLICY_UNAVAILABLE);
            assert_null(strstr(err.message, "because")); /* policyd's own words are for the log */
        }
    }
}

static const char *_Atomic denial;

static void deny(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind != MCP_KIND_CALL_BEGIN) {
        peer_honest(peer, question);
        return;
    }
    peer_reply(peer, question,
               json_pack("{s:s,s:i,s:o}", "audit", "17-5", "revision", 3, "denied",
                         json_loads(denial, 0, NULL)));
}

static void a_denial_becomes_the_answer_of_its_code(void **state)
{
    static const struct {
        const char *denied;
        mcp_fail_t fail;
        mcp_code_t code;
        const char *message;
        unsigned scopes;
    } cases[] = {
        {"{\"code\":\"unknown_tool\",\"message\":\"there is no such tool\"}", MCP_FAIL_PARAMS,
         MCP_CODE_UNKNOWN_TOOL, "Unknown tool: shop__get", 0},
        {"{\"code\":\"permission_denied\",\"message\":\"no\",\"hint\":\"ask\",\"permission\":\"tool:"
         "execute\"}",
         MCP_FAIL_TOOL, MCP_CODE_PERMISSION_DENIED, "no", 0},
        {"{\"code\":\"insufficient_scope\",\"message\":\"no\",\"scopes\":[\"mcp:write\",\"mcp:tools\"]}",
         MCP_FAIL_SCOPE, MCP_CODE_INSUFFICIENT_SCOPE, "no", MCP_SCOPE_WRITE | MCP_SCOPE_TOOLS},
        {"{\"code\":\"rate_limited\",\"message\":\"no\"}", MCP_FAIL_BUSY, MCP_CODE_RATE_LIMITED, "no",
         0},
        {"{\"code\":\"overloaded\",\"message\":\"no\"}", MCP_FAIL_UNAVAILABLE, MCP_CODE_OVERLOADED,
         "no", 0},
        {"{\"code\":\"needs_reauth\",\"message\":\"no\"}", MCP_FAIL_TOOL, MCP_CODE_NEEDS_REAUTH, "no",
         0},
        /* what can't be read is no permission */
        {"{}", MCP_FAIL_TOOL, MCP_CODE_INTERNAL, "the call was refused", 0},
        {"{\"code\":\"no_such_code\",\"message\":\"no\"}", MCP_FAIL_TOOL, MCP_CODE_INTERNAL,
         "the call was refused", 0},
        {"{\"code\":1,\"message\":2,\"scopes\":3}", MCP_FAIL_TOOL, MCP_CODE_INTERNAL,
         "the call was refused", 0}};
    world_t *world = *state;
    mcp_begun_t begun;
    mcp_err_t err;
    size_t i;

    peer_set(world->peer, deny);
    for (i = 0; i < COUNT(cases); i++) {
        denial = cases[i].denied;
        assert_int_equal(begin(world, BUDGET_MS, &begun, &err), APR_SUCCESS);
        assert_null(begun.plan);
        assert_string_equal(begun.audit, "17-5");
        assert_int_equal(begun.denied.fail, cases[i].fail);
        assert_int_equal(begun.denied.code, cases[i].code);
        assert_string_equal(begun.denied.message, cases[i].message);
        assert_int_equal(begun.denied.scopes, cases[i].scopes);
        assert_string_equal(begun.denied.audit, "17-5");
    }
    mcp_ask_beat(world->ask); /* a denied call does not run */
    assert_int_equal(atomic_load(&world->peer->last_child_running), 0);
}

static void neither_denied_nor_planned(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind == MCP_KIND_CALL_BEGIN) {
        peer_reply(peer, question, json_pack("{s:s,s:i}", "audit", "17-5", "revision", 3));
    } else {
        peer_honest(peer, question);
    }
}

static void denied_and_planned(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind == MCP_KIND_CALL_BEGIN) {
        json_t *body = peer_plan_body();

        json_object_set_new(body, "denied",
                            json_pack("{s:s,s:s}", "code", "forbidden", "message", "no"));
        peer_reply(peer, question, body);
    } else {
        peer_honest(peer, question);
    }
}

static void without_a_plan_nothing_runs(void **state)
{
    world_t *world = *state;
    mcp_begun_t begun;
    mcp_err_t err;

    peer_set(world->peer, neither_denied_nor_planned);
    assert_int_equal(begin(world, BUDGET_MS, &begun, &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    peer_set(world->peer, denied_and_planned);
    assert_int_equal(begin(world, BUDGET_MS, &begun, &err), APR_SUCCESS);
    assert_null(begun.plan); /* a denial wins */
    assert_int_equal(begun.denied.code, MCP_CODE_FORBIDDEN);
}

/* --- a choice ------------------------------------------------------------------------------- */

/* Asks for a choice until one comes. */
static void ask_for_a_choice(peer_t *peer, const peer_question_t *question)
{
    const char *connection = mcp_json_str(question->body, "connection");

    if (question->frame.kind != MCP_KIND_CALL_BEGIN) {
        peer_honest(peer, question);
    } else if (connection == NULL || strcmp(connection, "again") == 0) {
        peer_reply(peer, question, json_pack("{s:i,s:s}", "revision", 3, "choose", "account"));
    } else if (strcmp(connection, "nameless") == 0) {
        json_t *body = peer_plan_body();

        json_object_del(body, "audit");
        peer_reply(peer, question, body);
    } else {
        peer_reply(peer, question, peer_plan_body());
    }
}

static void a_choice_is_asked_for_and_nothing_runs_until_it_is_made(void **state)
{
    world_t *world = *state;
    mcp_begun_t begun;
    mcp_err_t err;

    peer_set(world->peer, ask_for_a_choice);
    assert_int_equal(begin(world, BUDGET_MS, &begun, &err), APR_SUCCESS);
    assert_string_equal(begun.choose, "account");
    assert_null(begun.plan);
    assert_null(begun.audit);
    assert_int_equal(begun.denied.fail, MCP_FAIL_NONE);
    mcp_ask_beat(world->ask);
    assert_int_equal(atomic_load(&world->peer->last_child_running), 0);
    world->attempt.connection = "red";
    assert_int_equal(begin(world, BUDGET_MS, &begun, &err), APR_SUCCESS);
    assert_null(begun.choose);
    assert_non_null(begun.plan);
    world->attempt.connection = ""; /* no choice is one, too */
    assert_int_equal(begin(world, BUDGET_MS, &begun, &err), APR_SUCCESS);
    assert_non_null(begun.plan);
}

static void what_is_no_answer_to_a_choice_runs_nothing(void **state)
{
    static const char *const connections[] = {"again", "nameless"};
    world_t *world = *state;
    mcp_begun_t begun;
    mcp_err_t err;
    size_t i;

    peer_set(world->peer, ask_for_a_choice);
    for (i = 0; i < COUNT(connections); i++) {
        world->attempt.connection = connections[i];
        assert_int_equal(begin(world, BUDGET_MS, &begun, &err), MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    }
    mcp_ask_beat(world->ask);
    assert_int_equal(atomic_load(&world->peer->last_child_running), 0);
}

/* --- begin and end ------------------------------------------------------------------------ */

static _Atomic int left_to_fail;
static const char *_Atomic end_refusal; /* NULL: silence */
static json_t *last_begin, *last_end;
static pthread_mutex_t last_mutex = PTHREAD_MUTEX_INITIALIZER;

static void remember(json_t **place, const peer_question_t *question)
{
    (void)pthread_mutex_lock(&last_mutex);
    json_decref(*place);
    *place = json_deep_copy(question->body);
    (void)pthread_mutex_unlock(&last_mutex);
}

static void forget_last(void)
{
    json_decref(last_begin);
    json_decref(last_end);
    last_begin = NULL;
    last_end = NULL;
}

static void remember_all(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind == MCP_KIND_CALL_BEGIN) {
        remember(&last_begin, question);
    } else if (question->frame.kind == MCP_KIND_CALL_END) {
        remember(&last_end, question);
    }
    peer_honest(peer, question);
}

static void what_begin_and_end_say_is_what_policyd_reads(void **state)
{
    world_t *world = *state;
    const mcp_field_t *table;
    const char *field = NULL;
    size_t count = 0;
    mcp_begun_t begun;
    mcp_err_t err;

    world->attempt.trace_id = "0123456789abcdef0123456789abcdef";
    world->attempt.request_bytes = 77;
    peer_set(world->peer, remember_all);
    begun = begun_well(world);
    assert_int_equal(end(world, &begun, BUDGET_MS, &err), APR_SUCCESS);
    (void)pthread_mutex_lock(&last_mutex);
    table = mcp_body_table(MCP_KIND_CALL_BEGIN, &count);
    assert_int_equal(mcp_body_check(last_begin, table, count, &field), MCP_OK);
    assert_int_equal(mcp_json_int(last_begin, "request_bytes", 0), 77);
    assert_int_equal(mcp_json_int(last_begin, "arg_count", 0), 2);
    assert_string_equal(mcp_json_str(last_begin, "trace_id"), world->attempt.trace_id);
    assert_string_equal(mcp_json_str(json_object_get(last_begin, "client"), "name"), "client");
    table = mcp_body_table(MCP_KIND_CALL_END, &count);
    assert_int_equal(mcp_body_check(last_end, table, count, &field), MCP_OK);
    assert_string_equal(mcp_json_str(last_end, "audit"), "17-1");
    assert_string_equal(mcp_json_str(last_end, "child"), mcp_json_str(last_begin, "child"));
    assert_string_equal(mcp_json_str(last_end, "outcome"), "error");
    assert_string_equal(mcp_json_str(last_end, "code"), "upstream_status");
    assert_int_equal(mcp_json_int(last_end, "upstream_status", 0), 502);
    assert_in_range(mcp_json_int(last_end, "duration_us", -1), 0, 60000000);
    (void)pthread_mutex_unlock(&last_mutex);
    forget_last();
}

static void silent_begin(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind != MCP_KIND_CALL_BEGIN) {
        peer_honest(peer, question);
    }
}

static void garbled_begin(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind != MCP_KIND_CALL_BEGIN) {
        peer_honest(peer, question);
    } else {
        peer_send_frame(peer, question, peer_frame(peer, question, 0), "{\"audit\":", 9);
    }
}

static void a_begin_that_may_be_on_record_is_never_sent_again(void **state)
{
    world_t *world = *state;
    peer_t *second = peer_open(NULL, peer_honest);
    const char *endpoints[3] = {world->peer->endpoint, second->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    mcp_link_t *link = peer_link_to(endpoints, &keys, 4, world->pool);
    mcp_ask_t *ask = peer_ask(link, world->pool);
    mcp_resolved_t resolved;
    mcp_begun_t begun;
    mcp_err_t err;

    /* both have shaken hands and said hello: what is short below is the answer's time alone */
    assert_int_equal(resolve(world, &resolved, &err), APR_SUCCESS);
    assert_int_equal(mcp_ask_resolve(ask, &world->who, BUDGET_MS, world->pool, &resolved, &err), APR_SUCCESS);
    peer_set(world->peer, silent_begin);
    assert_int_equal(begin(world, SHORT_MS, &begun, &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_BEGIN), 1);
    peer_set(world->peer, garbled_begin);
    assert_int_equal(begin(world, SHORT_MS, &begun, &err), MCP_STATUS_REFUSED);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_BEGIN), 2);
    /* nor to another policyd */
    assert_int_equal(mcp_ask_begin(ask, &world->who, &world->attempt, SHORT_MS, world->pool, &begun,
                                   &err),
                     MCP_STATUS_REFUSED);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_BEGIN), 3);
    assert_int_equal(peer_asked(second, MCP_KIND_CALL_BEGIN), 0);
    mcp_ask_free(&ask);
    mcp_link_close(link);
    peer_close(&second);
}

static void fail_some_ends(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind != MCP_KIND_CALL_END || atomic_fetch_sub(&left_to_fail, 1) <= 0) {
        peer_honest(peer, question);
    } else if (end_refusal != NULL) {
        peer_refuse(peer, question, end_refusal);
    }
}

static void an_end_is_resent_until_it_is_on_record(void **state)
{
    static const char *const refusals[] = {"overloaded", "policy_unavailable", "internal"};
    world_t *world = *state;
    mcp_begun_t begun;
    mcp_err_t err;
    size_t i;
    int before;

    peer_set(world->peer, fail_some_ends);
    for (i = 0; i < COUNT(refusals); i++) {
        begun = begun_well(world);
        end_refusal = refusals[i];
        atomic_store(&left_to_fail, 3);
        before = peer_asked(world->peer, MCP_KIND_CALL_END);
        assert_int_equal(end(world, &begun, BUDGET_MS, &err), APR_SUCCESS);
        assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_END) - before, 4);
    }
}

static void an_end_survives_a_restart_of_policyd(void **state)
{
    world_t *world = *state;
    const char *endpoint = apr_pstrdup(world->pool, world->peer->endpoint);
    mcp_begun_t begun = begun_well(world);
    mcp_err_t err;

    peer_close(&world->peer);
    world->peer = peer_open(endpoint, peer_honest);
    atomic_store(&world->peer->generation, 99);
    assert_int_equal(end(world, &begun, BUDGET_MS, &err), APR_SUCCESS);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_END), 2);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_HELLO), 1);
}

static void an_end_that_is_never_recorded_says_so(void **state)
{
    world_t *world = *state;
    mcp_begun_t begun = begun_well(world);
    int64_t from = peer_now_ms();
    mcp_err_t err;

    peer_set(world->peer, fail_some_ends);
    end_refusal = NULL; /* silence */
    atomic_store(&left_to_fail, 1000000);
    assert_int_equal(end(world, &begun, SHORT_MS, &err), MCP_STATUS_REFUSED);
    assert_in_range(peer_now_ms() - from, SHORT_MS - 1, SHORT_MS + SLACK_MS);
    assert_int_equal(err.fail, MCP_FAIL_TOOL);
    assert_int_equal(err.code, MCP_CODE_OUTCOME_UNRECORDED);
    assert_string_equal(err.audit, "17-1");
    assert_true(peer_asked(world->peer, MCP_KIND_CALL_END) >= 1);
}

static void an_end_that_policyd_will_never_take_is_offered_once(void **state)
{
    static const char *const refusals[] = {"not_found", "malformed", "too_large", "unsupported"};
    world_t *world = *state;
    mcp_begun_t begun;
    mcp_err_t err;
    size_t i;
    int before;

    peer_set(world->peer, fail_some_ends);
    atomic_store(&left_to_fail, 1000000);
    for (i = 0; i < COUNT(refusals); i++) {
        begun = begun_well(world);
        end_refusal = refusals[i];
        before = peer_asked(world->peer, MCP_KIND_CALL_END);
        assert_int_equal(end(world, &begun, 60000, &err), MCP_STATUS_REFUSED);
        assert_int_equal(err.code, MCP_CODE_OUTCOME_UNRECORDED);
        assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_END) - before, 1);
    }
}

static void an_end_over_a_shut_link_does_not_hold_the_child_up(void **state)
{
    world_t *world = *state;
    mcp_begun_t begun = begun_well(world);
    int64_t from = peer_now_ms();
    mcp_err_t err;

    mcp_link_shut(world->link);
    assert_int_equal(end(world, &begun, 60000, &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.code, MCP_CODE_OUTCOME_UNRECORDED);
    assert_in_range(peer_now_ms() - from, 0, SLACK_MS);
}

/* Two daemons with generations of their own. */
static void an_end_goes_to_where_its_begin_went(void **state)
{
    world_t *world = *state;
    peer_t *second = peer_open(NULL, peer_honest);
    const char *endpoints[3] = {world->peer->endpoint, second->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    mcp_link_t *link = peer_link_to(endpoints, &keys, 4, world->pool);
    mcp_begun_t begun;
    mcp_resolved_t resolved;
    mcp_err_t err;

    atomic_store(&second->generation, 1000);
    mcp_ask_free(&world->ask);
    world->ask = peer_ask(link, world->pool);
    begun = begun_well(world);
    assert_int_equal(begun.endpoint, 0);
    peer_set(world->peer, peer_silent); /* others go to the second meanwhile */
    while (mcp_ask_resolve(world->ask, &world->who, SHORT_MS, world->pool, &resolved, &err) != APR_SUCCESS) {
    }
    assert_true(peer_asked(second, MCP_KIND_RESOLVE) >= 2); /* one told it to say hello */
    peer_set(world->peer, peer_honest);
    assert_int_equal(end(world, &begun, BUDGET_MS, &err), APR_SUCCESS);
    assert_int_equal(peer_asked(second, MCP_KIND_CALL_END), 0);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_END), 2); /* hello came between */
    mcp_ask_free(&world->ask);
    mcp_link_close(link);
    peer_close(&second);
}

static void a_plans_secret_is_overwritten_before_it_goes(void **state)
{
    world_t *world = *state;
    apr_pool_t *request;
    mcp_begun_t begun;
    mcp_err_t err;
    json_t *auth;
    const char *secret;

    assert_int_equal(apr_pool_create(&request, world->pool), APR_SUCCESS);
    memset(&err, 0, sizeof(err));
    assert_int_equal(mcp_ask_begin(world->ask, &world->who, &world->attempt, BUDGET_MS, request,
                                   &begun, &err),
                     APR_SUCCESS);
    auth = json_incref(json_object_get(begun.plan, "auth"));
    secret = mcp_json_str(auth, "value");
    assert_string_equal(secret, "Bearer s3cret");
    apr_pool_destroy(request);
    assert_int_equal(secret[0], '\0');
    assert_int_equal(secret[12], '\0');
    json_decref(auth);
}

/* --- blobs ---------------------------------------------------------------------------------- */

static struct {
    char bytes[3000];
    _Atomic size_t count;
    _Atomic size_t part;    /* bytes of one answer */
    _Atomic int is_changed; /* one byte is another than the digest says */
    _Atomic int no_end;     /* MORE for ever, with nothing in it */
} blob;

static void serve_blob(peer_t *peer, const peer_question_t *question)
{
    size_t offset = (size_t)mcp_json_int(question->body, "offset", 0);
    size_t count = blob.count;
    size_t most = blob.part;
    size_t left = offset <= count ? count - offset : 0;
    size_t part = left > most ? most : left;
    char bytes[sizeof(blob.bytes)];

    if (question->frame.kind != MCP_KIND_BLOB_GET) {
        peer_honest(peer, question);
        return;
    }
    memcpy(bytes, blob.bytes, sizeof(bytes));
    bytes[17] = blob.is_changed ? 'X' : bytes[17];
    peer_send_frame(peer, question,
                    peer_frame(peer, question,
                               MCP_FLAG_RAW | (left > part || blob.no_end ? MCP_FLAG_MORE : 0)),
                    bytes + offset, part);
}

static apr_status_t get_blob(world_t *world, char **ret, size_t *ret_bytes)
{
    char digest[MCP_DIGEST_HEX + 1];
    mcp_err_t err;
    apr_status_t status;

    memset(&err, 0, sizeof(err));
    mcp_digest_hex(blob.bytes, blob.count, digest);
    *ret = NULL;
    status = mcp_ask_blob(world->ask, digest, BUDGET_MS, world->pool, ret, ret_bytes, &err);
    if (status != APR_SUCCESS) {
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
        assert_non_null(err.log);
        assert_null(*ret);
    }
    return status;
}

static void a_blob_comes_in_parts_and_has_its_hash(void **state)
{
    static const size_t parts[] = {1000, 999, 3000, 1501, 2999};
    world_t *world = *state;
    char *bytes = NULL;
    size_t count = 0;
    size_t i;

    for (i = 0; i < sizeof(blob.bytes); i++) {
        blob.bytes[i] = (char)(i * 7);
    }
    blob.count = sizeof(blob.bytes);
    peer_set(world->peer, serve_blob);
    for (i = 0; i < COUNT(parts); i++) {
        blob.part = parts[i];
        assert_int_equal(get_blob(world, &bytes, &count), APR_SUCCESS);
        assert_int_equal(count, blob.count);
        assert_memory_equal(bytes, blob.bytes, count);
        free(bytes);
    }
    blob.is_changed = 1;
    assert_int_equal(get_blob(world, &bytes, &count), MCP_STATUS_REFUSED);
    blob.is_changed = 0;
    blob.no_end = 1;
    assert_int_equal(get_blob(world, &bytes, &count), MCP_STATUS_REFUSED);
    blob.no_end = 0;
    blob.count = 0;
    assert_int_equal(get_blob(world, &bytes, &count), MCP_STATUS_REFUSED);
    peer_set(world->peer, peer_honest); /* which has no blobs */
    assert_int_equal(get_blob(world, &bytes, &count), MCP_STATUS_REFUSED);
}

/* --- beats -------------------------------------------------------------------------------------- */

static void a_beat_names_the_calls_that_run(void **state)
{
    world_t *world = *state;
    mcp_begun_t begun = begun_well(world);
    mcp_err_t err;

    mcp_ask_beat(world->ask);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CHILD_BEAT), 1);
    assert_int_equal(atomic_load(&world->peer->last_child_running), 1);
    mcp_ask_beat(world->ask); /* not due */
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CHILD_BEAT), 1);
    assert_int_equal(end(world, &begun, BUDGET_MS, &err), APR_SUCCESS);
    while (peer_asked(world->peer, MCP_KIND_CHILD_BEAT) < 2) {
        mcp_ask_beat(world->ask); /* due in MCP_BEAT_MS */
        (void)sched_yield();
    }
    assert_int_equal(atomic_load(&world->peer->last_child_running), 0);
}

static void a_beat_waits_a_fifth_of_a_second_at_most(void **state)
{
    world_t *world = *state;
    int64_t from;

    (void)begun_well(world);
    peer_set(world->peer, peer_silent);
    from = peer_now_ms();
    mcp_ask_beat(world->ask);
    assert_in_range(peer_now_ms() - from, 150, 200 + SLACK_MS);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CHILD_BEAT), 1);
}

typedef struct beater {
    pthread_t thread;
    mcp_ask_t *ask;
} beater_t;

static void *beat(void *baton)
{
    mcp_ask_beat(((beater_t *)baton)->ask);
    return NULL;
}

static void of_many_threads_one_beats(void **state)
{
    world_t *world = *state;
    beater_t beaters[8];
    int i;

    (void)begun_well(world);
    for (i = 0; i < 8; i++) {
        beaters[i].ask = world->ask;
        assert_int_equal(pthread_create(&beaters[i].thread, NULL, beat, &beaters[i]), 0);
    }
    for (i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(beaters[i].thread, NULL), 0);
    }
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CHILD_BEAT), 1);
}

/* --- many threads ---------------------------------------------------------------------------------- */

typedef struct caller {
    pthread_t thread;
    world_t *world;
    int failed;
} caller_t;

static void *call_often(void *baton)
{
    caller_t *caller = baton;
    apr_pool_t *pool;
    int i;

    if (apr_pool_create_unmanaged_ex(&pool, NULL, NULL) != APR_SUCCESS) {
        caller->failed = 1;
        return NULL;
    }
    for (i = 0; i < 50; i++) {
        mcp_begun_t begun;
        mcp_ended_t ended;
        json_t *names = json_pack("[s]", "a");
        mcp_attempt_t attempt = caller->world->attempt;

        apr_pool_clear(pool);
        memset(&ended, 0, sizeof(ended));
        attempt.arg_names = names;
        ended.outcome = MCP_OUTCOME_OK;
        if (mcp_ask_begin(caller->world->ask, &caller->world->who, &attempt, 60000, pool, &begun, NULL) !=
                APR_SUCCESS ||
            mcp_ask_end(caller->world->ask, &begun, &ended, 60000, pool, NULL) != APR_SUCCESS) {
            caller->failed++;
        }
        mcp_ask_beat(caller->world->ask);
        json_decref(names);
        if (i % 10 == 5) { /* policyd restarts under way */
            atomic_fetch_add(&caller->world->peer->generation, 1);
        }
    }
    apr_pool_destroy(pool);
    return NULL;
}

static void threads_share_one_ask_while_policyd_restarts(void **state)
{
    world_t *world = *state;
    caller_t callers[6];
    int failed = 0;
    int i;

    memset(callers, 0, sizeof(callers));
    for (i = 0; i < 6; i++) {
        callers[i].world = world;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        failed += callers[i].failed;
    }
    assert_in_range(failed, 0, 30); /* one that met two restarts in a row was told so */
    peer_set(world->peer, peer_honest);
    (void)begun_well(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hello_is_said_once_and_by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_restart_hello_is_said_and_the_question_resent, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(after_a_real_restart_the_kept_sockets_are_good_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_policyd_that_always_wants_hello_is_not_asked_for_ever, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_hello_that_is_not_sound_serves_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(the_ring_is_asked_for_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refused_token_is_401_and_everything_else_503, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_denial_becomes_the_answer_of_its_code, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_plan_nothing_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_choice_is_asked_for_and_nothing_runs_until_it_is_made, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_no_answer_to_a_choice_runs_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_begin_and_end_say_is_what_policyd_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(a_begin_that_may_be_on_record_is_never_sent_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_end_is_resent_until_it_is_on_record, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_survives_a_restart_of_policyd, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_that_is_never_recorded_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_that_policyd_will_never_take_is_offered_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_end_over_a_shut_link_does_not_hold_the_child_up, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_end_goes_to_where_its_begin_went, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plans_secret_is_overwritten_before_it_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_blob_comes_in_parts_and_has_its_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(a_beat_names_the_calls_that_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_beat_waits_a_fifth_of_a_second_at_most, setup, teardown),
        cmocka_unit_test_setup_teardown(of_many_threads_one_beats, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_share_one_ask_while_policyd_restarts, setup, teardown)};

    return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
