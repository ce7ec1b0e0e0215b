/* The module's end of the link against a policyd that misbehaves: whatever comes back, a question ends in time with its own answer or
 * with none. And the key file that lets it in. */
#include "link_peer.h"

#include <sys/wait.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BUDGET_MS    400
#define SLACK_MS     3000 /* of a busy machine */
#define THREADS      16
#define QUESTIONS    200

typedef struct world {
    apr_pool_t *pool;
    peer_t *peer;
    mcp_link_t *link;
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
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_t *world = *state;

    mcp_link_shut(world->link);
    mcp_link_close(world->link);
    peer_close(&world->peer);
    apr_pool_destroy(world->pool);
    free(world);
    return 0;
}

/* --- the key file ------------------------------------------------------------------ */

#define Z85_A "0123456789abcdefghijklmnopqrstuvwxyzABCD"
#define Z85_B "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define Z85_C "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"

static void key_files_are_read_strictly(void **state)
{
    static const struct {
        const char *text;
        int is_good;
        int line; /* that the refusal names; 0: none */
    } cases[] = {
        {"server_public = " Z85_A "\nclient_public = " Z85_B "\nclient_secret = " Z85_C "\n", 1, 0},
        {"server_public=" Z85_A "\nclient_public=" Z85_B "\nclient_secret=" Z85_C, 1, 0},
        {"# a comment = \n\n  \t\r\nclient_secret \t= \t" Z85_C " \t\r\nserver_public = " Z85_A
         "\r\nclient_public = " Z85_B "\n\n#",
         1, 0},
        {"", 0, 0},
        {"\n\n# nothing\n", 0, 0},
        {"server_public = " Z85_A "\nclient_public = " Z85_B "\n", 0, 0},
        {"client_public = " Z85_A "\nclient_secret = " Z85_B "\n", 0, 0},
        /* doubled */
        {"server_public = " Z85_A "\nserver_public = " Z85_A "\nclient_public = " Z85_B
         "\nclient_secret = " Z85_C "\n",
         0, 2},
        /* not ours */
        {"server_public = " Z85_A "\nserver_secret = " Z85_B "\n", 0, 2},
        {" server_public = " Z85_A "\n", 0, 1},
        {"server_publi = " Z85_A "\n", 0, 1},
        {"server_publicc = " Z85_A "\n", 0, 1},
        {"SERVER_PUBLIC = " Z85_A "\n", 0, 1},
        {"= " Z85_A "\n", 0, 1},
        {"server_public\n", 0, 1},
        {"server_public " Z85_A "\n", 0, 1},
        /* not a key */
        {"server_public =\n", 0, 1},
        {"server_public = \n", 0, 1},
        {"server_public = 0123456789abcdefghijklmnopqrstuvwxyzABC\n", 0, 1},
        {"server_public = " Z85_A "D\n", 0, 1},
        {"server_public = " Z85_A " # why\n", 0, 1},
        {"server_public = 0123456789abcdefghij lmnopqrstuvwxyzABCD\n", 0, 1},
        {"server_public = 0123456789abcdefghij\"lmnopqrstuvwxyzABCD\n", 0, 1},
        {"server_public = 0123456789abcdefghij\xc3\xa9mnopqrstuvwxyzABCD\n", 0, 1},
        /* characters of the alphabet, but five of them are more than 32 bits: libzmq takes no such key */
        {"server_public = #####56789abcdefghijklmnopqrstuvwxyzABCD\n", 0, 1},
        {"server_public = 0123456789abcdefghijklmnopqrstuvwxy%nSc1\n", 0, 1}};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        size_t bytes = strlen(cases[i].text);
        char *exact = malloc(bytes > 0 ? bytes : 1); /* a step beyond shows */
        mcp_link_keys_t keys;
        mcp_err_t err;
        apr_status_t status;

        assert_non_null(exact);
        memcpy(exact, cases[i].text, bytes);
        memset(&keys, 'x', sizeof(keys));
        memset(&err, 0, sizeof(err));
        status = mcp_link_parse_keys(exact, bytes, &keys, world->pool, &err);
        free(exact);
        if ((status == APR_SUCCESS) != cases[i].is_good) {
            fail_msg("case %u: %s", (unsigned)i, cases[i].text);
        }
        if (status == APR_SUCCESS) {
            assert_string_equal(keys.server_public, Z85_A);
            assert_string_equal(keys.client_public, Z85_B);
            assert_string_equal(keys.client_secret, Z85_C);
            continue;
        }
        assert_int_equal(keys.server_public[0], 'x'); /* never half a result */
        assert_non_null(err.message);
        assert_null(strstr(err.message, "0123456789")); /* and no key in a message */
        if (cases[i].line != 0) {
            assert_non_null(strstr(err.message, apr_psprintf(world->pool, "line %d ", cases[i].line)));
        }
    }
}

static void a_nul_in_a_key_file_is_no_end(void **state)
{
    static const char text[] = "server_public = " Z85_A "\0\nclient_public = " Z85_B
                               "\nclient_secret = " Z85_C "\n";
    world_t *world = *state;
    mcp_link_keys_t keys;

    assert_int_not_equal(mcp_link_parse_keys(text, sizeof(text) - 1, &keys, world->pool, NULL),
                         APR_SUCCESS);
}

/* --- one question -------------------------------------------------------------------- */

typedef struct asked {
    apr_status_t status;
    mcp_link_reply_t reply;
    mcp_err_t err;
    int was_sent;
    int64_t took_ms;
} asked_t;

static json_t *resolve_question(const char *resource)
{
    return json_pack("{s:s,s:s,s:s}", "token_hash",
                     "0000000000000000000000000000000000000000000000000000000000000000", "surface",
                     "mcp", "resource", resource);
}

static asked_t ask_link(mcp_link_t *link, const char *resource, int endpoint, int64_t budget_ms,
                        apr_pool_t *pool)
{
    json_t *body = resolve_question(resource);
    int64_t from = peer_now_ms();
    asked_t asked;

    memset(&asked, 0, sizeof(asked));
    asked.was_sent = -1;
    asked.status = mcp_link_ask(link, MCP_KIND_RESOLVE, body, 0, endpoint, budget_ms, pool,
                                &asked.reply, &asked.was_sent, &asked.err);
    asked.took_ms = peer_now_ms() - from;
    json_decref(body);
    return asked;
}

static void expect_nothing(const asked_t *asked, int was_sent)
{
    assert_int_equal(asked->status, MCP_STATUS_REFUSED);
    assert_int_equal(asked->err.fail, MCP_FAIL_UNAVAILABLE);
    assert_int_equal(asked->err.code, MCP_CODE_POLICY_UNAVAILABLE);
    assert_int_equal(asked->was_sent, was_sent);
    assert_null(asked->reply.body);
    assert_in_range(asked->took_ms, 0, BUDGET_MS + SLACK_MS);
}

/* An honest peer's answer to a resolve with this resource: it names it as the grant. */
static void echo(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind != MCP_KIND_RESOLVE) {
        peer_honest(peer, question);
        return;
    }
    peer_reply(peer, question,
               peer_resolve_body(mcp_json_str(question->body, "resource"),
                                 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
}

/* The link still works, and the answer is that of this question. */
static void expect_well(world_t *world, const char *resource)
{
    asked_t asked;

    peer_set(world->peer, echo);
    asked = ask_link(world->link, resource, -1, 20000, world->pool);
    if (asked.status != APR_SUCCESS) {
        fail_msg("%s: %s (%d, after %d ms)", resource, asked.err.log, asked.was_sent, (int)asked.took_ms);
    }
    assert_int_equal(asked.was_sent, 1);
    assert_string_equal(mcp_json_str(asked.reply.body, "grant"), resource);
    assert_int_equal(asked.reply.frame.generation, 7);
    assert_int_equal(asked.reply.endpoint, 0);
}

static void a_question_gets_its_answer(void **state)
{
    world_t *world = *state;
    int i;

    for (i = 0; i < 20; i++) {
        expect_well(world, apr_psprintf(world->pool, "r%d", i));
    }
}

static void an_error_reply_is_an_answer(void **state)
{
    world_t *world = *state;
    json_t *body = json_pack("{s:s,s:i}", "digest",
                             "0000000000000000000000000000000000000000000000000000000000000000",
                             "offset", 0);
    mcp_link_reply_t reply;

    assert_int_equal(mcp_link_ask(world->link, MCP_KIND_BLOB_GET, body, 0, -1, 5000, world->pool,
                                  &reply, NULL, NULL),
                     APR_SUCCESS);
    assert_int_equal(reply.frame.flags, MCP_FLAG_ERROR);
    assert_string_equal(mcp_json_str(reply.body, "code"), "not_found");
    json_decref(body);
}

/* --- a peer that misbehaves ------------------------------------------------------------- */

static void answer_with_the_id_before(peer_t *peer, const peer_question_t *question)
{
    peer_question_t late = *question;

    late.frame.request_id--;
    echo(peer, &late);
}

static void answer_with_a_wrong_id(peer_t *peer, const peer_question_t *question)
{
    peer_question_t wrong = *question;

    wrong.frame.request_id ^= 0x8000000000000000u;
    echo(peer, &wrong);
}

static void answer_as_another_kind(peer_t *peer, const peer_question_t *question)
{
    mcp_frame_t frame = peer_frame(peer, question, 0);

    frame.kind = MCP_KIND_REPLY(MCP_KIND_CALL_END);
    peer_send_frame(peer, question, frame, "{\"recorded\":true}", 17);
}

static void answer_as_a_question(peer_t *peer, const peer_question_t *question)
{
    mcp_frame_t frame = peer_frame(peer, question, 0);

    frame.kind = MCP_KIND_RESOLVE;
    peer_send_frame(peer, question, frame, "{}", 2);
}

static void answer_in_another_version(peer_t *peer, const peer_question_t *question)
{
    mcp_frame_t frame = peer_frame(peer, question, 0);

    frame.version = MCP_VERSION + 1;
    peer_send_frame(peer, question, frame, "{}", 2);
}

static void answer_with_unknown_flags(peer_t *peer, const peer_question_t *question)
{
    peer_send_frame(peer, question, peer_frame(peer, question, 0x100), "{}", 2);
}

static void answer_in_three_frames(peer_t *peer, const peer_question_t *question)
{
    mcp_frame_t frame = peer_frame(peer, question, 0);
    unsigned char header[MCP_HEADER_BYTES];
    const void *parts[3];
    const size_t bytes[3] = {sizeof(header), 2, 2};

    frame.body_bytes = 2;
    (void)mcp_frame_encode(&frame, header, sizeof(header));
    parts[0] = header;
    parts[1] = "{}";
    parts[2] = "{}";
    peer_send(peer, question, parts, bytes, 3);
}

static void answer_in_one_frame(peer_t *peer, const peer_question_t *question)
{
    mcp_frame_t frame = peer_frame(peer, question, 0);
    unsigned char header[MCP_HEADER_BYTES];
    const void *parts[1];
    const size_t bytes[1] = {sizeof(header)};

    (void)mcp_frame_encode(&frame, header, sizeof(header));
    parts[0] = header;
    peer_send(peer, question, parts, bytes, 1);
}

static void answer_with_a_short_header(peer_t *peer, const peer_question_t *question)
{
    const void *const parts[2] = {"MCPD", "{}"};
    const size_t bytes[2] = {4, 2};

    peer_send(peer, question, parts, bytes, 2);
}

static void answer_with_a_long_header(peer_t *peer, const peer_question_t *question)
{
    mcp_frame_t frame = peer_frame(peer, question, 0);
    unsigned char header[MCP_HEADER_BYTES + 64];
    const void *parts[2];
    const size_t bytes[2] = {sizeof(header), 2};

    memset(header, 0, sizeof(header));
    frame.body_bytes = 2;
    (void)mcp_frame_encode(&frame, header, sizeof(header));
    parts[0] = header;
    parts[1] = "{}";
    peer_send(peer, question, parts, bytes, 2);
}

static void answer_with_another_length(peer_t *peer, const peer_question_t *question)
{
    mcp_frame_t frame = peer_frame(peer, question, 0);
    unsigned char header[MCP_HEADER_BYTES];
    const void *parts[2];
    const size_t bytes[2] = {sizeof(header), 2};

    frame.body_bytes = 3;
    (void)mcp_frame_encode(&frame, header, sizeof(header));
    parts[0] = header;
    parts[1] = "{}";
    peer_send(peer, question, parts, bytes, 2);
}

static void answer_with(peer_t *peer, const peer_question_t *question, const char *body)
{
    peer_send_frame(peer, question, peer_frame(peer, question, 0), body, strlen(body));
}

static void answer_with_garbage(peer_t *peer, const peer_question_t *question)
{
    answer_with(peer, question, "\xff\x80{]");
}

static void answer_with_nothing(peer_t *peer, const peer_question_t *question)
{
    answer_with(peer, question, "");
}

static void answer_with_a_field_missing(peer_t *peer, const peer_question_t *question)
{
    answer_with(peer, question, "{\"revision\":1}");
}

static void answer_with_a_field_more(peer_t *peer, const peer_question_t *question)
{
    json_t *body = peer_resolve_body("g", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b785"
                                          "2b855");

    json_object_set_new(body, "is_owner", json_true());
    peer_reply(peer, question, body);
}

static void answer_with_a_field_twice(peer_t *peer, const peer_question_t *question)
{
    answer_with(peer, question,
                "{\"revision\":1,\"revision\":1,\"grant\":\"g\",\"member\":\"m\",\"may_execute\":true,"
                "\"scopes\":1,\"view\":"
                "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}");
}

static void answer_with_another_type(peer_t *peer, const peer_question_t *question)
{
    json_t *body = peer_resolve_body("g", "not a digest");

    peer_reply(peer, question, body);
}

static void answer_with_an_error_that_is_none(peer_t *peer, const peer_question_t *question)
{
    peer_reply_flags(peer, question, json_pack("{s:s}", "code", "not_found"), MCP_FLAG_ERROR);
}

/* Far above what a body may have: libzmq cuts the connection before it is read whole. */
static void answer_with_too_much(peer_t *peer, const peer_question_t *question)
{
    size_t bytes = 2 * MCP_MAX_BODY_BYTES;
    char *body = malloc(bytes);

    if (body != NULL) {
        memset(body, ' ', bytes);
        peer_send_frame(peer, question, peer_frame(peer, question, 0), body, bytes);
        free(body);
    }
}

static void what_is_no_sound_answer_is_none_and_the_next_question_is_not_hurt(void **state)
{
    static const struct {
        const char *name;
        peer_fn *handler;
    } cases[] = {{"the id of an earlier question", answer_with_the_id_before},
                 {"a wrong id", answer_with_a_wrong_id},
                 {"a wrong kind", answer_as_another_kind},
                 {"a question", answer_as_a_question},
                 {"another version", answer_in_another_version},
                 {"unknown flags", answer_with_unknown_flags},
                 {"three frames", answer_in_three_frames},
                 {"one frame", answer_in_one_frame},
                 {"a short header", answer_with_a_short_header},
                 {"a long header", answer_with_a_long_header},
                 {"another length", answer_with_another_length},
                 {"garbage", answer_with_garbage},
                 {"an empty body", answer_with_nothing},
                 {"a field missing", answer_with_a_field_missing},
                 {"a field more", answer_with_a_field_more},
                 {"a field twice", answer_with_a_field_twice},
                 {"a field of another type", answer_with_another_type},
                 {"an error that is none", answer_with_an_error_that_is_none},
                 {"too much", answer_with_too_much},
                 {"silence", peer_silent}};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        asked_t asked;

        expect_well(world, cases[i].name); /* a socket lies idle */
        peer_set(world->peer, cases[i].handler);
        asked = ask_link(world->link, "bad", -1, BUDGET_MS, world->pool);
        if (asked.status == APR_SUCCESS) {
            fail_msg("%s was taken for an answer", cases[i].name);
        }
        expect_nothing(&asked, 1);
        expect_well(world, apr_pstrcat(world->pool, "after ", cases[i].name, NULL));
    }
    /* never sent a second time: one question a case, and the good ones around it */
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 3 * (int)COUNT(cases));
}

/* An operation's answer of exactly `wanted` bytes. */
static void answer_sized(peer_t *peer, const peer_question_t *question, size_t wanted)
{
    static const char head[] = "{\"audit\":\"17-1\",\"result\":{\"x\":\"";
    char *body = malloc(wanted);

    if (body != NULL) {
        memset(body, 'x', wanted);
        memcpy(body, head, sizeof(head) - 1);
        memcpy(body + wanted - 3, "\"}}", 3);
        peer_send_frame(peer, question, peer_frame(peer, question, 0), body, wanted);
        free(body);
    }
}

static void answer_as_much_as_may_be(peer_t *peer, const peer_question_t *question)
{
    answer_sized(peer, question, MCP_MAX_BODY_BYTES);
}

static void answer_one_byte_more(peer_t *peer, const peer_question_t *question)
{
    answer_sized(peer, question, MCP_MAX_BODY_BYTES + 1);
}

static void a_body_of_the_largest_size_is_taken_and_one_byte_more_is_not(void **state)
{
    world_t *world = *state;
    json_t *body = json_object();
    mcp_link_reply_t reply;

    peer_set(world->peer, answer_as_much_as_may_be);
    assert_int_equal(mcp_link_ask(world->link, MCP_KIND_OP_INVOKE, body, 0, -1, 20000, world->pool,
                                  &reply, NULL, NULL),
                     APR_SUCCESS);
    assert_int_equal(reply.frame.body_bytes, MCP_MAX_BODY_BYTES);
    peer_set(world->peer, answer_one_byte_more);
    assert_int_equal(mcp_link_ask(world->link, MCP_KIND_OP_INVOKE, body, 0, -1, 20000, world->pool,
                                  &reply, NULL, NULL),
                     MCP_STATUS_REFUSED);
    json_decref(body);
    expect_well(world, "r");
}

static peer_question_t held;

static void hold(peer_t *peer, const peer_question_t *question)
{
    (void)peer;
    held = *question; /* without the body, which goes */
    held.body = NULL;
}

/* The answer to the held question, in front of the right one. */
static void answer_late_and_then_well(peer_t *peer, const peer_question_t *question)
{
    peer_reply(peer, &held,
               peer_resolve_body("late",
                                 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    echo(peer, question);
}

static void an_answer_after_the_budget_reaches_nobody(void **state)
{
    world_t *world = *state;
    asked_t asked;
    int i;

    for (i = 0; i < 3; i++) {
        expect_well(world, "there"); /* it is sent at once */
        peer_set(world->peer, hold);
        asked = ask_link(world->link, "slow", -1, 100, world->pool);
        expect_nothing(&asked, 1);
        assert_true(asked.took_ms >= 99);
        peer_set(world->peer, answer_late_and_then_well);
        asked = ask_link(world->link, "quick", -1, 5000, world->pool);
        assert_int_equal(asked.status, APR_SUCCESS);
        assert_string_equal(mcp_json_str(asked.reply.body, "grant"), "quick");
    }
}

static void a_question_too_large_is_not_sent(void **state)
{
    world_t *world = *state;
    char *large = malloc(MCP_MAX_BODY_BYTES + 1);
    asked_t asked;

    assert_non_null(large);
    memset(large, 'r', MCP_MAX_BODY_BYTES);
    large[MCP_MAX_BODY_BYTES] = '\0';
    asked = ask_link(world->link, large, -1, BUDGET_MS, world->pool);
    free(large);
    expect_nothing(&asked, 0);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 0);
}

static void without_a_budget_nothing_is_asked(void **state)
{
    world_t *world = *state;
    asked_t asked = ask_link(world->link, "r", -1, 0, world->pool);

    expect_nothing(&asked, 0);
    asked = ask_link(world->link, "r", -1, -5, world->pool);
    expect_nothing(&asked, 0);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 0);
    expect_well(world, "r");
}

/* --- who may ask, and whom ----------------------------------------------------------------- */

static void a_foreign_client_key_gets_nothing(void **state)
{
    world_t *world = *state;
    const char *endpoints[2] = {world->peer->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    pd_curve_pair_t stranger;
    mcp_link_t *link;
    asked_t asked;

    assert_int_equal(pd_curve_make(&stranger), PD_OK);
    (void)snprintf(keys.client_public, sizeof(keys.client_public), "%s", stranger.public_key);
    (void)snprintf(keys.client_secret, sizeof(keys.client_secret), "%s", stranger.secret_key);
    link = peer_link_to(endpoints, &keys, 2, world->pool);
    asked = ask_link(link, "r", -1, BUDGET_MS, world->pool);
    expect_nothing(&asked, 0);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 0);
    mcp_link_close(link);
    expect_well(world, "r");
}

static void a_client_whose_halves_do_not_belong_together_gets_nothing(void **state)
{
    world_t *world = *state;
    const char *endpoints[2] = {world->peer->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    pd_curve_pair_t stranger;
    mcp_link_t *link;
    asked_t asked;

    assert_int_equal(pd_curve_make(&stranger), PD_OK);
    (void)snprintf(keys.client_secret, sizeof(keys.client_secret), "%s", stranger.secret_key);
    link = peer_link_to(endpoints, &keys, 2, world->pool);
    asked = ask_link(link, "r", -1, BUDGET_MS, world->pool);
    expect_nothing(&asked, 0);
    mcp_link_close(link);
}

static void a_server_without_the_key_is_told_nothing(void **state)
{
    world_t *world = *state;
    const char *endpoints[2] = {world->peer->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    pd_curve_pair_t other;
    mcp_link_t *link;
    asked_t asked;

    assert_int_equal(pd_curve_make(&other), PD_OK);
    (void)snprintf(keys.server_public, sizeof(keys.server_public), "%s", other.public_key);
    link = peer_link_to(endpoints, &keys, 2, world->pool);
    asked = ask_link(link, "r", -1, BUDGET_MS, world->pool);
    expect_nothing(&asked, 0);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 0);
    mcp_link_close(link);
}

/* A socket that speaks no CURVE at all. */
static void a_server_without_curve_is_told_nothing(void **state)
{
    world_t *world = *state;
    void *context = zmq_ctx_new();
    void *plain = zmq_socket(context, ZMQ_ROUTER);
    const char *endpoints[2] = {NULL, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    char endpoint[96];
    size_t bytes = sizeof(endpoint);
    char byte;
    mcp_link_t *link;
    asked_t asked;

    assert_non_null(plain);
    assert_int_equal(zmq_bind(plain, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(plain, ZMQ_LAST_ENDPOINT, endpoint, &bytes), 0);
    endpoints[0] = endpoint;
    link = peer_link_to(endpoints, &keys, 2, world->pool);
    asked = ask_link(link, "r", -1, BUDGET_MS, world->pool);
    expect_nothing(&asked, 0);
    assert_int_equal(zmq_recv(plain, &byte, 1, ZMQ_DONTWAIT), -1);
    mcp_link_close(link);
    assert_int_equal(zmq_close(plain), 0);
    assert_int_equal(zmq_ctx_term(context), 0);
}

static void between_one_and_eight_endpoints_are_taken(void **state)
{
    world_t *world = *state;
    apr_array_header_t *endpoints = apr_array_make(world->pool, 9, sizeof(const char *));
    mcp_link_keys_t keys = peer_link_keys();
    mcp_link_t *link = NULL;
    int i;

    assert_int_equal(mcp_link_create(endpoints, &keys, 1, world->pool, &link, NULL),
                     MCP_STATUS_REFUSED);
    for (i = 0; i < 9; i++) {
        APR_ARRAY_PUSH(endpoints, const char *) = world->peer->endpoint;
    }
    assert_int_equal(mcp_link_create(endpoints, &keys, 1, world->pool, &link, NULL),
                     MCP_STATUS_REFUSED);
    assert_null(link);
}

/* --- failover -------------------------------------------------------------------------------- */

/* An endpoint that was free a moment ago: nobody listens. */
static const char *dead_endpoint(apr_pool_t *pool)
{
    peer_t *peer = peer_open(NULL, peer_honest);
    const char *endpoint = apr_pstrdup(pool, peer->endpoint);

    peer_close(&peer);
    return endpoint;
}

static void where_the_first_endpoint_is_dead_the_second_answers(void **state)
{
    world_t *world = *state;
    const char *endpoints[3] = {dead_endpoint(world->pool), world->peer->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    mcp_link_t *link = peer_link_to(endpoints, &keys, 4, world->pool);
    asked_t asked;
    int i;

    peer_set(world->peer, echo);
    asked = ask_link(link, "first", -1, 2000, world->pool);
    assert_int_equal(asked.status, APR_SUCCESS);
    assert_int_equal(asked.reply.endpoint, 1);
    assert_string_equal(mcp_json_str(asked.reply.body, "grant"), "first");
    for (i = 0; i < 10; i++) { /* and is not waited for again each time */
        asked = ask_link(link, "more", -1, 2000, world->pool);
        assert_int_equal(asked.status, APR_SUCCESS);
        assert_int_equal(asked.reply.endpoint, 1);
    }
    asked = ask_link(link, "there", 0, 100, world->pool); /* the one named, or none */
    expect_nothing(&asked, 0);
    mcp_link_close(link);
}

/* Both endpoints answer one question, so that the next is sent at once. */
static void connect_both(world_t *world, mcp_link_t *link)
{
    int i;

    peer_set(world->peer, echo);
    for (i = 0; i < 2; i++) {
        assert_int_equal(ask_link(link, "first", i, 20000, world->pool).status, APR_SUCCESS);
    }
}

static void what_one_endpoint_was_sent_is_not_sent_to_another(void **state)
{
    static peer_fn *const handlers[] = {answer_with_garbage, answer_in_one_frame, peer_silent};
    world_t *world = *state;
    peer_t *second = peer_open(NULL, echo);
    const char *endpoints[3] = {world->peer->endpoint, second->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    asked_t asked;
    size_t i;

    for (i = 0; i < COUNT(handlers); i++) {
        mcp_link_t *link = peer_link_to(endpoints, &keys, 4, world->pool);

        connect_both(world, link);
        peer_set(world->peer, handlers[i]);
        asked = ask_link(link, "r", -1, BUDGET_MS, world->pool); /* there is time left for another, mostly */
        expect_nothing(&asked, 1);
        assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 2 * ((int)i + 1));
        assert_int_equal(peer_asked(second, MCP_KIND_RESOLVE), (int)i + 1);
        mcp_link_close(link);
    }
    peer_close(&second);
}

static void an_endpoint_that_was_silent_is_passed_over_for_a_while(void **state)
{
    world_t *world = *state;
    peer_t *second = peer_open(NULL, echo);
    const char *endpoints[3] = {world->peer->endpoint, second->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    mcp_link_t *link = peer_link_to(endpoints, &keys, 4, world->pool);
    int silences = 0;
    asked_t asked;

    connect_both(world, link);
    peer_set(world->peer, peer_silent);
    do { /* a slow machine may come too late the first time; the while doubles */
        asked = ask_link(link, "r", -1, 300, world->pool);
        silences += asked.status != APR_SUCCESS;
    } while (asked.status != APR_SUCCESS && silences < 20);
    assert_int_equal(asked.status, APR_SUCCESS);
    assert_int_equal(asked.reply.endpoint, 1);
    assert_in_range(silences, 1, 19);
    mcp_link_close(link);
    peer_close(&second);
}

/* All sockets there may be lie idle at the endpoint that is no more. */
static void idle_sockets_of_one_endpoint_give_way_to_another(void **state)
{
    world_t *world = *state;
    peer_t *second = peer_open(NULL, echo);
    const char *endpoints[3] = {world->peer->endpoint, second->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();
    mcp_link_t *link = peer_link_to(endpoints, &keys, 1, world->pool);
    asked_t asked;
    int i;

    peer_set(world->peer, echo);
    for (i = 0; i < 6; i++) {
        asked = ask_link(link, "r", i % 2, 5000, world->pool);
        assert_int_equal(asked.status, APR_SUCCESS);
        assert_int_equal(asked.reply.endpoint, i % 2);
    }
    mcp_link_close(link);
    peer_close(&second);
}

static void a_peer_that_comes_back_is_found_again(void **state)
{
    world_t *world = *state;
    const char *endpoint = apr_pstrdup(world->pool, world->peer->endpoint);
    asked_t asked;

    expect_well(world, "before");
    peer_close(&world->peer);
    asked = ask_link(world->link, "gone", -1, BUDGET_MS, world->pool);
    expect_nothing(&asked, asked.was_sent); /* libzmq may not have noticed yet */
    world->peer = peer_open(endpoint, echo);
    expect_well(world, "after");
}

/* --- processes and threads --------------------------------------------------------------------- */

static void a_forked_child_refuses_to_use_the_link(void **state)
{
    world_t *world = *state;
    int status = -1;
    pid_t child;

    expect_well(world, "parent");
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        asked_t asked = ask_link(world->link, "child", -1, 200, world->pool);

        mcp_link_shut(world->link); /* touch nothing that is the parent's */
        mcp_link_close(world->link);
        _exit(asked.status == MCP_STATUS_CLOSED && asked.was_sent == 0 &&
                      asked.err.fail == MCP_FAIL_UNAVAILABLE && asked.took_ms < 150
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    expect_well(world, "parent still");
}

typedef struct asker {
    pthread_t thread;
    mcp_link_t *link;
    int number;
    int crossed, failed;
    apr_status_t status;
} asker_t;

static void *ask_many(void *baton)
{
    asker_t *asker = baton;
    apr_pool_t *pool;
    int i;

    if (apr_pool_create_unmanaged_ex(&pool, NULL, NULL) != APR_SUCCESS) {
        asker->failed = QUESTIONS;
        return NULL;
    }
    for (i = 0; i < QUESTIONS; i++) {
        char resource[32];
        asked_t asked;
        const char *grant;

        apr_pool_clear(pool);
        (void)snprintf(resource, sizeof(resource), "t%d-q%d", asker->number, i);
        asked = ask_link(asker->link, resource, -1, 60000, pool);
        grant = asked.status == APR_SUCCESS ? mcp_json_str(asked.reply.body, "grant") : NULL;
        asker->failed += grant == NULL;
        asker->crossed += grant != NULL && strcmp(grant, resource) != 0;
    }
    apr_pool_destroy(pool);
    return NULL;
}

/* Questions are kept for a moment and answered last first, so that none is answered in turn. */
#define KEPT_MAX 5
static peer_question_t kept[KEPT_MAX];
static int kept_count;

static void answer_kept(peer_t *peer)
{
    while (kept_count > 0) {
        peer_question_t *question = &kept[--kept_count];

        echo(peer, question);
        json_decref(question->body);
    }
}

static void keep(peer_t *peer, const peer_question_t *question)
{
    kept[kept_count] = *question;
    (void)json_incref(question->body);
    kept_count++;
    if (kept_count == KEPT_MAX) {
        answer_kept(peer);
    }
}

static void answers_never_cross_between_threads(void **state)
{
    world_t *world = *state;
    static const int sockets[] = {THREADS + 4, 5}; /* one each; and too few, so that they wait */
    asker_t askers[THREADS];
    size_t round;
    int i;

    (void)pthread_mutex_lock(&world->peer->mutex);
    world->peer->handler = keep;
    world->peer->on_idle = answer_kept;
    (void)pthread_mutex_unlock(&world->peer->mutex);
    for (round = 0; round < COUNT(sockets); round++) {
        mcp_link_t *link = peer_link(world->peer, sockets[round], world->pool);

        memset(askers, 0, sizeof(askers));
        for (i = 0; i < THREADS; i++) {
            askers[i].link = link;
            askers[i].number = i;
            assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_many, &askers[i]), 0);
        }
        for (i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
        }
        for (i = 0; i < THREADS; i++) {
            assert_int_equal(askers[i].crossed, 0);
            assert_int_equal(askers[i].failed, 0);
        }
        mcp_link_close(link);
    }
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE),
                     (int)COUNT(sockets) * THREADS * QUESTIONS);
}

static void *ask_and_wait(void *baton)
{
    asker_t *asker = baton;
    apr_pool_t *pool;

    if (apr_pool_create_unmanaged_ex(&pool, NULL, NULL) == APR_SUCCESS) {
        asker->status = ask_link(asker->link, "r", -1, 100000, pool).status;
        apr_pool_destroy(pool);
    }
    return NULL;
}

/* Three wait for an answer that never comes, three for a socket. */
static void shutting_wakes_everybody_who_waits(void **state)
{
    world_t *world = *state;
    mcp_link_t *link = peer_link(world->peer, 3, world->pool);
    asker_t askers[6];
    int64_t from;
    int i;

    peer_set(world->peer, peer_silent);
    memset(askers, 0, sizeof(askers));
    for (i = 0; i < 6; i++) {
        askers[i].link = link;
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_and_wait, &askers[i]), 0);
    }
    while (peer_asked(world->peer, MCP_KIND_RESOLVE) < 3) {
        (void)sched_yield();
    }
    from = peer_now_ms();
    mcp_link_shut(link);
    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
        assert_int_equal(askers[i].status, MCP_STATUS_CLOSED);
    }
    assert_in_range(peer_now_ms() - from, 0, SLACK_MS);
    assert_int_equal(ask_link(link, "r", -1, 100, world->pool).status, MCP_STATUS_CLOSED);
    mcp_link_close(link);
    assert_int_equal(ask_link(NULL, "r", -1, 100, world->pool).status, MCP_STATUS_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(key_files_are_read_strictly, setup, teardown),
        cmocka_unit_test_setup_teardown(a_nul_in_a_key_file_is_no_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_gets_its_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(an_error_reply_is_an_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(
            what_is_no_sound_answer_is_none_and_the_next_question_is_not_hurt, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_body_of_the_largest_size_is_taken_and_one_byte_more_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_after_the_budget_reaches_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_too_large_is_not_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_budget_nothing_is_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(a_foreign_client_key_gets_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_client_whose_halves_do_not_belong_together_gets_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_without_the_key_is_told_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_without_curve_is_told_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(between_one_and_eight_endpoints_are_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(where_the_first_endpoint_is_dead_the_second_answers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_one_endpoint_was_sent_is_not_sent_to_another, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_endpoint_that_was_silent_is_passed_over_for_a_while, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(idle_sockets_of_one_endpoint_give_way_to_another, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_comes_back_is_found_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_forked_child_refuses_to_use_the_link, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_never_cross_between_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(shutting_wakes_everybody_who_waits, setup, teardown)};

    return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
