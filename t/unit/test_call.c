/* A tool call from the caller's arguments to the application: a policyd and an application of the tests' own, both of which remember what they got. */
#include "link_peer.h"

#include <apr_time.h>

#include "egress_server.h"

#include "../../mod_mcp/mcp_call.h"
#include "../../mod_mcp/mcp_egress.h"
#include "../../mod_mcp/mcp_failure.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BLOBS        16

typedef struct world {
    apr_pool_t *pool;
    server_t server;
    peer_t *peer;
    mcp_child_t child;
    mcp_terms_t terms;
    char digest[BLOBS][MCP_DIGEST_HEX + 1];
    const char *blob[BLOBS];
    _Atomic int blobs;
    json_t *plan;      /* of the next call.begin; read only for the peer */
    const char *choose; /* of a call.begin without `connection`; NULL: it is planned at once */
    int asks_always;    /* choose is answered to whatever comes */
    pthread_mutex_t mutex; /* guards the rest */
    json_t *begins;     /* array of call.begin's bodies */
    json_t *end;        /* the last call.end's */
    const char *mirrored_name, *mirrored_value; /* one Mcp-Param header */
} world_t;

/* --- the application ------------------------------------------------------------------- */

static int answer(int fd, int connection, int request, const char *text)
{
    (void)connection;
    (void)request;
    if (strstr(text, "/items/moved ") != NULL) {
        server_say(fd, "HTTP/1.1 302 Found\r\nLocation: /acme/items/there\r\nContent-Length: 0\r\n\r\n");
        return 1;
    }
    server_say(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"done\":1} ");
    return 1;
}

/* --- the policyd ------------------------------------------------------------------------ */

static void serve_blob(world_t *world, peer_t *peer, const peer_question_t *question)
{
    const char *digest = mcp_json_str(question->body, "digest");
    int i;

    for (i = 0; i < world->blobs; i++) {
        if (strcmp(world->digest[i], digest) == 0) {
            peer_send_frame(peer, question, peer_frame(peer, question, MCP_FLAG_RAW), world->blob[i],
                            strlen(world->blob[i]));
            return;
        }
    }
    peer_refuse(peer, question, "not_found");
}

static void serve_begin(world_t *world, peer_t *peer, const peer_question_t *question)
{
    const char *connection = mcp_json_str(question->body, "connection");

    (void)pthread_mutex_lock(&world->mutex);
    json_array_append_new(world->begins, json_deep_copy(question->body));
    (void)pthread_mutex_unlock(&world->mutex);
    if (world->choose != NULL && (connection == NULL || world->asks_always)) {
        peer_reply(peer, question, json_pack("{s:i,s:s}", "revision", 3, "choose", world->choose));
    } else if (connection != NULL && connection[0] == '\0') {
        peer_reply(peer, question,
                   json_pack("{s:s,s:i,s:{s:s,s:s}}", "audit", "17-7", "revision", 3, "denied", "code",
                             "invalid_arguments", "message", "choose one of: red, blue"));
    } else {
        peer_reply(peer, question,
                   json_pack("{s:s,s:i,s:o}", "audit", "17-1", "revision", 3, "plan",
                             json_deep_copy(world->plan)));
    }
}

static void serve(peer_t *peer, const peer_question_t *question)
{
    world_t *world = peer->baton;

    switch ((int)question->frame.kind) {
    case MCP_KIND_BLOB_GET:
        serve_blob(world, peer, question);
        break;
    case MCP_KIND_CALL_BEGIN:
        serve_begin(world, peer, question);
        break;
    case MCP_KIND_CALL_END:
        (void)pthread_mutex_lock(&world->mutex);
        json_decref(world->end);
        world->end = json_deep_copy(question->body);
        (void)pthread_mutex_unlock(&world->mutex);
        peer_honest(peer, question);
        break;
    default:
        peer_honest(peer, question);
        break;
    }
}

static const char *have(world_t *world, const char *text)
{
    int place = world->blobs;

    assert_true(place < BLOBS);
    mcp_digest_hex(text, strlen(text), world->digest[place]);
    world->blob[place] = text;
    world->blobs = place + 1;
    return world->digest[place];
}

/* --- a world -------------------------------------------------------------------------------- */

#define SCHEMA                                                                                     \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"id\",\"tenant\"],\"properties\":{"        \
    "\"id\":{\"type\":\"string\"},\"tenant\":{\"type\":\"string\",\"x-mcp-header\":\"Tenant\"},"                \
    "\"filter\":{\"type\":\"object\"},\"limit\":{\"type\":\"integer\"}}}"
#define OPERATION                                                                                  \
    "{\"connector\":\"shop\",\"id\":\"update\",\"method\":\"POST\",\"path\":\"/{tenant}/items/{id}\",\"parameters\":["  \
    "{\"arg\":\"tenant\",\"name\":\"tenant\",\"in\":\"path\",\"required\":true},{\"arg\":\"id\",\"name\":\"id\",\"in\":"  \
    "\"path\",\"required\":true}],\"body\":{\"content_type\":\"application/json\",\"flatten\":true,\"fields\":["     \
    "{\"arg\":\"filter\",\"name\":\"filter\"},{\"arg\":\"limit\",\"name\":\"limit\"}]},\"schema\":" SCHEMA "}"
#define GUARD                                                                                      \
    "{\"connector\":\"shop\",\"operations\":[{\"id\":\"update\",\"method\":\"POST\",\"path\":\"/{tenant}/items/{id}\"," \
    "\"query\":[]},{\"id\":\"wipe\",\"method\":\"POST\",\"path\":\"/{tenant}/items/all\",\"query\":[]}]}"

static json_t *plan_of(world_t *world, const char *verdicts)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:{s:s},s:{},s:{},s:i,s:i,s:s}", "tool", "shop__update",
                     "connection", "cxn_1", "operation", have(world, OPERATION), "guard",
                     have(world, GUARD), "verdicts", have(world, verdicts), "base",
                     apr_psprintf(world->pool, "http://127.0.0.1:%d", world->server.port), "auth", "type",
                     "none", "defaults", "frozen", "timeout_ms", 20000, "max_bytes", 10000, "class",
                     "write");
}

static int set_up_child(world_t *world)
{
    mcp_egress_options_t options;
    apr_array_header_t *allow = apr_array_make(world->pool, 1, sizeof(const char *));
    mcp_err_t err;

    memset(&options, 0, sizeof(options));
    options.max_calls = 8;
    options.max_per_connection = 8;
    options.connect_ms = 5000;
    world->child.link = peer_link(world->peer, 6, world->pool);
    world->child.ask = peer_ask(world->child.link, world->pool);
    APR_ARRAY_PUSH(allow, const char *) =
        apr_psprintf(world->pool, "http://127.0.0.1:%d", world->server.port);
    world->terms.policy_ms = 5000;
    world->terms.call_ms = 20000;
    world->terms.max_result = 100000;
    world->terms.egress_allow = allow;
    return mcp_view_create(world->child.ask, 1024 * 1024, &world->child.views) == APR_SUCCESS &&
                   mcp_egress_create(&options, world->pool, &world->child.egress, &err) == APR_SUCCESS
               ? 0
               : -1;
}

static int setup(void **state)
{
    world_t *world = calloc(1, sizeof(*world));

    if (world == NULL || apr_pool_create(&world->pool, NULL) != APR_SUCCESS) {
        free(world);
        return -1;
    }
    world->server = server_start(answer); /* forks, so before the peer's thread */
    (void)pthread_mutex_init(&world->mutex, NULL);
    world->begins = json_array();
    world->peer = peer_open(NULL, peer_honest);
    world->peer->baton = world;
    peer_set(world->peer, serve);
    *state = world;
    if (set_up_child(world) != 0) {
        return -1;
    }
    world->plan = plan_of(world, "ab");
    return 0;
}

static int teardown(void **state)
{
    world_t *world = *state;

    mcp_egress_close(world->child.egress);
    peer_close(&world->peer);
    apr_pool_destroy(world->pool);
    mcp_view_free(&world->child.views);
    mcp_ask_free(&world->child.ask);
    mcp_link_close(world->child.link);
    server_stop(&world->server);
    json_decref(world->plan);
    json_decref(world->begins);
    json_decref(world->end);
    (void)pthread_mutex_destroy(&world->mutex);
    free(world);
    return 0;
}

static const char *header_of(void *baton, const char *name)
{
    const world_t *world = baton;

    return world->mirrored_name != NULL && strcasecmp(name, world->mirrored_name) == 0
               ? world->mirrored_value
               : NULL;
}

static int never_gone(void *baton)
{
    (void)baton;
    return 0;
}

/* The result's text stays in *ret_text. */
static apr_status_t run_for(world_t *world, const char *arguments, const char **ret_text, mcp_err_t *err)
{
    mcp_turn_t *turn = apr_pcalloc(world->pool, sizeof(*turn));
    json_t *given = arguments != NULL ? json_loads(arguments, 0, NULL) : NULL;
    size_t bytes = 0;
    mcp_era_t era;
    apr_status_t status;

    memset(&era, 0, sizeof(era));
    memset(err, 0, sizeof(*err));
    era.is_modern = 1;
    era.revision = MCP_REV_2026_07_28;
    turn->pool = world->pool;
    turn->child = &world->child;
    turn->terms = &world->terms;
    memset(turn->who.token_hash, 'a', MCP_DIGEST_HEX);
    turn->who.surface = "mcp";
    turn->who.resource = "https://mcp.example.com/mcp";
    turn->header = header_of;
    turn->is_gone = never_gone;
    turn->baton = world;
    status = mcp_call_run(turn, &era, "shop__update", given, "direct", ret_text, &bytes, err);
    json_decref(given);
    return status;
}

static apr_status_t run(world_t *world, const char *arguments, mcp_err_t *err)
{
    const char *text = NULL;

    return run_for(world, arguments, &text, err);
}

static int requests(const world_t *world)
{
    return atomic_load(&world->server.seen->requests);
}

/* The call went out with this request line and JSON body ("": none). */
static void expect_sent(world_t *world, const char *arguments, const char *line, const char *body)
{
    const char *seen = world->server.seen->last;
    int before = requests(world);
    mcp_err_t err;
    json_t *got;
    json_t *wanted = json_loads(body, 0, NULL);

    if (run(world, arguments, &err) != APR_SUCCESS) {
        fail_msg("%s: %s (%s)", arguments, err.message, err.log != NULL ? err.log : "-");
    }
    assert_int_equal(requests(world), before + 1);
    if (strncmp(seen, line, strlen(line)) != 0) {
        fail_msg("sent %.80s", seen);
    }
    got = json_loads(strstr(seen, "\r\n\r\n") + 4, 0, NULL);
    if ((wanted != NULL || got != NULL) && !json_equal(got, wanted)) {
        fail_msg("sent %s", strstr(seen, "\r\n\r\n") + 4);
    }
    json_decref(got);
    json_decref(wanted);
    (void)pthread_mutex_lock(&world->mutex);
    assert_string_equal(mcp_json_str(world->end, "outcome"), "ok");
    (void)pthread_mutex_unlock(&world->mutex);
}

/* The call was refused with this code, nothing went out, and its end is on record. */
static mcp_err_t expect_refused(world_t *world, const char *arguments, mcp_code_t code)
{
    int before = requests(world);
    mcp_err_t err;

    assert_int_equal(run(world, arguments, &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.code, code);
    assert_int_equal(requests(world), before);
    (void)pthread_mutex_lock(&world->mutex);
    assert_string_equal(mcp_json_str(world->end, "code"), mcp_code_text(code));
    (void)pthread_mutex_unlock(&world->mutex);
    return err;
}

/* Makes it an entry's plan: its parts as JSON, NULL for none. */
static void plan_entry(world_t *world, const char *advertised, const char *defaults, const char *frozen,
                       const char *rename)
{
    if (advertised != NULL) {
        json_object_set_new(world->plan, "advertised",
                            json_string(have(world, apr_pstrcat(world->pool, "{\"schema\":", advertised, "}",
                                                                NULL))));
    }
    if (defaults != NULL) {
        json_object_set_new(world->plan, "defaults", json_loads(defaults, 0, NULL));
    }
    if (frozen != NULL) {
        json_object_set_new(world->plan, "frozen", json_loads(frozen, 0, NULL));
    }
    if (rename != NULL) {
        json_object_set_new(world->plan, "rename", json_loads(rename, 0, NULL));
    }
}

/* --- tools as they are ----------------------------------------------------------------------- */

static void an_operation_gets_the_callers_arguments(void **state)
{
    world_t *world = *state;

    world->mirrored_name = "Mcp-Param-Tenant";
    world->mirrored_value = "t";
    expect_sent(world, "{\"id\":\"7\",\"tenant\":\"t\",\"limit\":3}", "POST /t/items/7 ", "{\"limit\":3}");
    (void)pthread_mutex_lock(&world->mutex);
    assert_int_equal(json_array_size(world->begins), 1);
    assert_null(json_object_get(json_array_get(world->begins, 0), "connection")); /* no tool to choose for */
    (void)pthread_mutex_unlock(&world->mutex);
}

static void verdicts_decide_about_the_url(void **state)
{
    world_t *world = *state;
    mcp_err_t err;

    world->mirrored_name = "Mcp-Param-Tenant";
    world->mirrored_value = "t";
    (void)expect_refused(world, "{\"id\":\"all\",\"tenant\":\"t\"}", MCP_CODE_URL_RESTRICTED);
    json_object_set_new(world->plan, "verdicts", json_string(have(world, "aa")));
    expect_sent(world, "{\"id\":\"all\",\"tenant\":\"t\"}", "POST /t/items/all ", "");
    json_object_set_new(world->plan, "verdicts", json_string(have(world, "a"))); /* of another guard */
    assert_int_equal(run(world, "{\"id\":\"7\",\"tenant\":\"t\"}", &err), MCP_STATUS_REFUSED);
    json_object_del(world->plan, "verdicts");
    (void)expect_refused(world, "{\"id\":\"7\",\"tenant\":\"t\"}", MCP_CODE_INTERNAL);
    assert_int_equal(requests(world), 1);
}

/* --- entries ------------------------------------------------------------------------------------ */

#define SEEN                                                                                       \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"id\"],\"properties\":{"                   \
    "\"id\":{\"type\":\"string\"},\"filter\":{\"type\":\"object\"},\"limit\":{\"type\":\"integer\"}}}"

static void the_application_gets_frozen_values_whatever_was_passed(void **state)
{
    world_t *world = *state;

    plan_entry(world, SEEN, "{\"limit\":1}", "{\"tenant\":\"acme\"}", NULL);
    expect_sent(world, "{\"id\":\"7\"}", "POST /acme/items/7 ", "{\"limit\":1}");
    expect_sent(world, "{\"id\":\"7\",\"tenant\":\"evil\",\"limit\":2}", "POST /acme/items/7 ",
                "{\"limit\":2}");
    expect_sent(world, "{\"id\":\"7\",\"tenant\":[\"evil\"]}", "POST /acme/items/7 ", "{\"limit\":1}");
}

static void the_order_holds_two_levels_down_on_the_wire(void **state)
{
    world_t *world = *state;

    plan_entry(world, SEEN, "{\"filter\":{\"owner\":{\"a\":1,\"b\":1,\"c\":1}}}",
               "{\"tenant\":\"acme\",\"/filter/owner/c\":3}", NULL);
    expect_sent(world, "{\"id\":\"7\"}", "POST /acme/items/7 ",
                "{\"filter\":{\"owner\":{\"a\":1,\"b\":1,\"c\":3}}}");
    expect_sent(world, "{\"id\":\"7\",\"filter\":{\"owner\":{\"b\":2,\"c\":2}}}", "POST /acme/items/7 ",
                "{\"filter\":{\"owner\":{\"a\":1,\"b\":2,\"c\":3}}}");
}

static void a_frozen_value_that_does_not_fit_is_never_named(void **state)
{
    static const char *const frozen[] = {"{\"tenant\":7}", "{\"tenant\":\"\"}",
                                         "{\"tenant\":\"acme\",\"hidden_key\":\"hidden_value\"}"};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(frozen); i++) {
        mcp_answer_t answer_sent;
        mcp_err_t err;

        plan_entry(world, i == 0 ? SEEN : NULL, NULL, frozen[i], NULL);
        err = expect_refused(world, "{\"id\":\"7\"}", MCP_CODE_INVALID_ARGUMENTS);
        mcp_failure_answer(&err, "1", NULL, world->pool, &answer_sent);
        assert_null(strstr(answer_sent.body, "tenant"));
        assert_null(strstr(answer_sent.body, "hidden"));
        assert_non_null(strstr(answer_sent.body,
                               "the arguments and the toolbox's fixed values do not fit together"));
        assert_non_null(strstr(answer_sent.body, "17-1")); /* IT finds it in the record */
    }
}

static void a_redirect_does_not_tell_a_frozen_value(void **state)
{
    world_t *world = *state;
    const char *text = NULL;
    mcp_err_t err;

    plan_entry(world, SEEN, NULL, "{\"tenant\":\"acme\"}", NULL);
    assert_int_equal(run_for(world, "{\"id\":\"moved\"}", &text, &err), APR_SUCCESS);
    assert_non_null(strstr(text, "HTTP 302"));
    assert_null(strstr(text, "acme"));
    json_object_set_new(world->plan, "frozen", json_object()); /* without, it is told */
    json_object_del(world->plan, "advertised");
    world->mirrored_name = "Mcp-Param-Tenant";
    world->mirrored_value = "acme";
    assert_int_equal(run_for(world, "{\"id\":\"moved\",\"tenant\":\"acme\"}", &text, &err), APR_SUCCESS);
    assert_non_null(strstr(text, "/acme/items/there"));
}

static void a_client_mirrors_what_is_advertised(void **state)
{
    static const char seen[] =
        "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"id\"],\"properties\":{"
        "\"id\":{\"type\":\"string\",\"x-mcp-header\":\"Id\"},\"limit\":{\"type\":\"integer\"}}}";
    world_t *world = *state;
    mcp_err_t err;

    plan_entry(world, seen, NULL, "{\"tenant\":\"acme\"}", NULL);
    world->mirrored_name = "Mcp-Param-Id";
    world->mirrored_value = "8";
    assert_int_equal(run(world, "{\"id\":\"7\"}", &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_HEADER);
    assert_int_equal(requests(world), 0);
    world->mirrored_value = "7";
    expect_sent(world, "{\"id\":\"7\"}", "POST /acme/items/7 ", "");
}

/* --- merged tools ---------------------------------------------------------------------------------- */

#define MERGED                                                                                     \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"connection\",\"id\",\"tenant\"],"           \
    "\"properties\":{\"connection\":{\"enum\":[\"red\",\"blue\"]},\"id\":{\"type\":\"string\"},\"tenant\":{},"        \
    "\"limit\":{}}}"

static const char *begun_with(world_t *world, size_t place)
{
    const char *connection;

    (void)pthread_mutex_lock(&world->mutex);
    connection = mcp_json_str(json_array_get(world->begins, place), "connection");
    (void)pthread_mutex_unlock(&world->mutex);
    return connection;
}

static void a_merged_tool_is_begun_again_with_the_callers_choice(void **state)
{
    world_t *world = *state;

    world->choose = "connection";
    plan_entry(world, MERGED, NULL, NULL, "{\"connection\":null}");
    expect_sent(world, "{\"connection\":\"red\",\"id\":\"7\",\"tenant\":\"t\"}", "POST /t/items/7 ", "");
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_BEGIN), 2);
    assert_null(begun_with(world, 0));
    assert_string_equal(begun_with(world, 1), "red");
    (void)pthread_mutex_lock(&world->mutex);
    assert_string_equal(mcp_json_str(world->end, "audit"), "17-1");
    (void)pthread_mutex_unlock(&world->mutex);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_END), 1); /* the first question recorded nothing */
}

static void only_a_label_is_told_as_a_choice(void **state)
{
    static const char *const sent[] = {NULL,
                                       "{}",
                                       "{\"connection\":7}",
                                       "{\"connection\":null}",
                                       "{\"connection\":[\"red\"]}",
                                       "{\"connection\":\"\"}",
                                       "{\"connection\":\"Red\"}",
                                       "{\"connection\":\"red \"}",
                                       "{\"connection\":\"a secret that was pasted here\"}",
                                       "{\"connection\":\"abcdefghijklmnopqrstuvwxyz0123456\"}"};
    world_t *world = *state;
    mcp_err_t err;
    size_t i;

    world->choose = "connection";
    for (i = 0; i < COUNT(sent); i++) {
        assert_int_equal(run(world, sent[i], &err), MCP_STATUS_REFUSED);
        assert_int_equal(err.code, MCP_CODE_INVALID_ARGUMENTS);
        assert_string_equal(err.message, "choose one of: red, blue");
        assert_string_equal(begun_with(world, 2 * i + 1), "");
    }
    assert_int_equal(requests(world), 0);
}

static void a_choice_is_made_once(void **state)
{
    world_t *world = *state;
    mcp_err_t err;

    world->choose = "connection";
    world->asks_always = 1;
    assert_int_equal(run(world, "{\"connection\":\"red\"}", &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_CALL_BEGIN), 2);
    assert_int_equal(requests(world), 0);
}

static int set_up_group(void **state)
{
    mcp_err_t err;

    return peer_setup(state) != 0 || mcp_egress_init(&err) != APR_SUCCESS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_operation_gets_the_callers_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(verdicts_decide_about_the_url, setup, teardown),
        cmocka_unit_test_setup_teardown(the_application_gets_frozen_values_whatever_was_passed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_order_holds_two_levels_down_on_the_wire, setup, teardown),
        cmocka_unit_test_setup_teardown(a_frozen_value_that_does_not_fit_is_never_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_redirect_does_not_tell_a_frozen_value, setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_mirrors_what_is_advertised, setup, teardown),
        cmocka_unit_test_setup_teardown(a_merged_tool_is_begun_again_with_the_callers_choice, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(only_a_label_is_told_as_a_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(a_choice_is_made_once, setup, teardown)};

    return cmocka_run_group_tests(tests, set_up_group, peer_teardown);
}
