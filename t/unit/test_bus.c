/* The link, over real sockets: who is let in, what is answered, what happens to answers of askers that left.
 * Handlers are stand-ins of this file; the loop runs on the test's own thread, clients are stepped from a
 * timer of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "../../policyd/pd_bus.h"
#include "../../policyd/pd_curve.h"
#include "../../policyd/pd_log.h"
#include "../../policyd/pd_loop.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_frame.h"
#include "../../proto/mcp_hash.h"

#define GENERATION 4711u

typedef struct world {
    apr_pool_t *pool;
    char dir[256];
    char endpoint[300];
    pd_config_t config;
    pd_core_t core;
    pd_curve_pair_t server, known, stranger;
    void *context;
    void *client;
    void (*step)(struct world *world);
    int steps;
    int is_done;
    int watchdog_fired;
    int twice; /* the beat's handler answers twice */
    pd_ask_t *held; /* by the note's handler */
} world_t;

static world_t *the_world;

/* --- handlers -------------------------------------------------------------- */

void pd_on_hello(pd_ask_t *ask)
{
    pd_ask_reply(ask, json_pack("{s:b}", "no_such_field", 1)); /* must come out as `internal` */
}

void pd_on_child_beat(pd_ask_t *ask)
{
    pd_ask_reply(ask, json_pack("{s:s}", "generation", "4711"));
    if (the_world->twice) {
        pd_ask_refuse(ask, MCP_CODE_INTERNAL, "again", NULL, NULL);
    }
}

void pd_on_blob_get(pd_ask_t *ask)
{
    pd_ask_reply_raw(ask, "blob\0bytes", 10, 1);
}

void pd_on_resolve(pd_ask_t *ask)
{
    char text[2000];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    pd_ask_refuse(ask, MCP_CODE_GRANT_REVOKED, text, "a hint", "1-2");
}

void pd_on_call_begin(pd_ask_t *ask)
{
    pd_ask_refuse(ask, MCP_CODE_INTERNAL, "unused", NULL, NULL);
}

void pd_on_call_end(pd_ask_t *ask)
{
    the_world->held = ask;
}

void pd_on_call_note(pd_ask_t *ask)
{
    pd_ask_refuse(ask, MCP_CODE_INTERNAL, "unused", NULL, NULL);
}

void pd_on_op_invoke(pd_ask_t *ask)
{
    pd_fault_t fault = {.code = MCP_CODE_PERMISSION_DENIED, .message = "no", .permission = "a:b", .scopes = 5};

    pd_ask_refuse_fault(ask, &fault, "1-3");
}

/* --- world ----------------------------------------------------------------- */

static void on_step(void *baton)
{
    world_t *world = baton;

    world->step(world);
    if (world->is_done) {
        pd_loop_stop(world->core.loop);
    }
}

static void watchdog(void *baton)
{
    world_t *world = baton;

    world->watchdog_fired = 1;
    pd_loop_stop(world->core.loop);
}

static void write_file(const world_t *world, const char *name, mode_t mode, const char *text)
{
    char path[400];
    FILE *to;

    (void)snprintf(path, sizeof path, "%s/%s", world->dir, name);
    to = fopen(path, "w");
    assert_non_null(to);
    assert_true(fputs(text, to) >= 0);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void write_keys(world_t *world, const char *allowed)
{
    char text[256];

    (void)snprintf(text, sizeof text, "public = %s\nsecret = %s\n", world->server.public_key,
                   world->server.secret_key);
    write_file(world, "server.key", 0600, text);
    (void)snprintf(text, sizeof text, "# who may ask\n%s httpd\n", allowed);
    write_file(world, "clients.allow", 0640, text);
}

static int setup(void **state)
{
    const char *base = getenv("TMPDIR");
    world_t *world = calloc(1, sizeof *world);
    char why[512] = "";

    if (world == NULL || apr_initialize() != APR_SUCCESS ||
        apr_pool_create(&world->pool, NULL) != APR_SUCCESS) {
        return -1;
    }
    *state = the_world = world;
    pd_log_open(0, PD_LOG_ERR);
    (void)snprintf(world->dir, sizeof world->dir, "%s/busXXXXXX", base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(world->dir));
    (void)snprintf(world->endpoint, sizeof world->endpoint, "ipc://%s/q", world->dir);
    assert_int_equal(pd_curve_make(&world->server), PD_OK);
    assert_int_equal(pd_curve_make(&world->known), PD_OK);
    assert_int_equal(pd_curve_make(&world->stranger), PD_OK);
    write_keys(world, world->known.public_key);
    world->config.key_dir = world->dir;
    world->config.query_endpoints = apr_array_make(world->pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(world->config.query_endpoints, const char *) = world->endpoint;
    world->core.pool = world->pool;
    world->core.config = &world->config;
    world->core.generation = GENERATION;
    assert_int_equal(pd_loop_new(world->pool, &world->core.loop), PD_OK);
    assert_true(pd_loop_every(world->core.loop, 1, on_step, world) > 0);
    assert_true(pd_loop_every(world->core.loop, 30000, watchdog, world) > 0);
    if (pd_bus_new(&world->core, &world->core.bus, why, sizeof why) != PD_OK ||
        pd_bus_bind(world->core.bus, why, sizeof why) != PD_OK) {
        fail_msg("%s", why);
    }
    world->context = zmq_ctx_new();
    assert_non_null(world->context);
    return 0;
}

static void remove_file(const world_t *world, const char *name)
{
    char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", world->dir, name);
    (void)unlink(path);
}

static int teardown(void **state)
{
    world_t *world = *state;

    if (world->client != NULL) {
        (void)zmq_close(world->client);
    }
    (void)zmq_ctx_term(world->context);
    pd_bus_free(&world->core.bus);
    pd_loop_free(&world->core.loop);
    remove_file(world, "server.key");
    remove_file(world, "clients.allow");
    remove_file(world, "q");
    (void)rmdir(world->dir);
    apr_pool_destroy(world->pool);
    apr_terminate();
    free(world);
    return 0;
}

static void run(world_t *world, void (*step)(world_t *world))
{
    world->step = step;
    assert_int_equal(pd_loop_run(world->core.loop, NULL, NULL, NULL), PD_OK);
    assert_false(world->watchdog_fired);
}

static void connect_as(world_t *world, const pd_curve_pair_t *who)
{
    static const int linger = 0;
    static const int timeout_ms = 2000; /* a send to nobody must not hang the test */

    world->client = zmq_socket(world->context, ZMQ_DEALER);
    assert_non_null(world->client);
    assert_int_equal(zmq_setsockopt(world->client, ZMQ_LINGER, &linger, sizeof linger), 0);
    assert_int_equal(
        zmq_setsockopt(world->client, ZMQ_SNDTIMEO, &timeout_ms, sizeof timeout_ms), 0);
    if (who != NULL) {
        assert_int_equal(zmq_setsockopt(world->client, ZMQ_CURVE_SERVERKEY, world->server.public_key, 41), 0);
        assert_int_equal(zmq_setsockopt(world->client, ZMQ_CURVE_PUBLICKEY, who->public_key, 41), 0);
        assert_int_equal(zmq_setsockopt(world->client, ZMQ_CURVE_SECRETKEY, who->secret_key, 41), 0);
    }
    assert_int_equal(zmq_connect(world->client, world->endpoint), 0);
}

/* 0 when there is nobody to send to: a refused client's pipe is gone at once, or a moment later. */
static int try_ask(world_t *world, uint16_t kind, uint64_t id, const char *body)
{
    mcp_frame_t frame = {MCP_VERSION, kind, 0, id, 5000, (uint32_t)strlen(body), 0};
    unsigned char header[MCP_HEADER_BYTES];

    assert_int_equal(mcp_frame_encode(&frame, header, sizeof header), MCP_OK);
    return zmq_send(world->client, header, sizeof header, ZMQ_SNDMORE) == MCP_HEADER_BYTES &&
           zmq_send(world->client, body, strlen(body), 0) == (int)strlen(body);
}

static void ask(world_t *world, uint16_t kind, uint64_t id, const char *body)
{
    assert_true(try_ask(world, kind, id, body));
}

/* 1 with the answer, 0 when there is none yet. */
static int hear(world_t *world, mcp_frame_t *frame, char *body, size_t size)
{
    unsigned char header[MCP_HEADER_BYTES];
    int got = zmq_recv(world->client, header, sizeof header, ZMQ_DONTWAIT);
    int bytes;

    if (got < 0) {
        return 0;
    }
    assert_int_equal(got, MCP_HEADER_BYTES);
    bytes = zmq_recv(world->client, body, size - 1, ZMQ_DONTWAIT);
    assert_true(bytes >= 0 && (size_t)bytes < size);
    body[bytes] = '\0';
    assert_int_equal(mcp_frame_decode(header, sizeof header, (size_t)bytes, MCP_FROM_POLICYD, frame),
                     MCP_OK);
    assert_int_equal(frame->generation, GENERATION);
    assert_int_equal(frame->budget_ms, 0);
    return 1;
}

static const char beat[] = "{\"child\":\"c\",\"running\":[]}";

/* --- tests ----------------------------------------------------------------- */

static void beat_step(world_t *world)
{
    mcp_frame_t frame;
    char body[4096];

    if (world->steps++ == 0) {
        ask(world, MCP_KIND_CHILD_BEAT, 9, beat);
    } else if (hear(world, &frame, body, sizeof body)) {
        assert_int_equal(frame.kind, MCP_KIND_CHILD_BEAT + 1);
        assert_int_equal(frame.flags, 0);
        assert_int_equal(frame.request_id, 9);
        assert_string_equal(body, "{\"generation\":\"4711\"}");
        world->is_done = 1;
    }
}

static void a_known_key_is_answered(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->known);
    run(world, beat_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->answered, 1);
    assert_int_equal(pd_bus_waiting(world->core.bus), 0);
}

/* Long enough for a handshake and a question: a known key needs a few milliseconds. */
static void silence_step(world_t *world)
{
    mcp_frame_t frame;
    char body[4096];

    if (world->steps == 0) {
        (void)try_ask(world, MCP_KIND_CHILD_BEAT, 9, beat); /* not sent is as good as not answered */
    }
    if (hear(world, &frame, body, sizeof body)) {
        fail_msg("a stranger was answered");
    }
    world->is_done = ++world->steps > 300;
}

static void an_unknown_key_gets_nothing(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->stranger);
    run(world, silence_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->received, 0);
}

static void a_client_without_a_key_gets_nothing(void **state)
{
    world_t *world = *state;

    connect_as(world, NULL);
    run(world, silence_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->received, 0);
}

static void removed_step(world_t *world)
{
    mcp_frame_t frame;
    char body[4096], why[512] = "";

    if (world->steps == 0) {
        ask(world, MCP_KIND_CHILD_BEAT, 1, beat);
        world->steps = 1;
    } else if (world->steps == 1 && hear(world, &frame, body, sizeof body)) {
        write_keys(world, world->stranger.public_key);
        assert_int_equal(pd_bus_reload(world->core.bus, why, sizeof why), PD_OK);
        ask(world, MCP_KIND_CHILD_BEAT, 2, beat);
        world->steps = 2;
    } else if (world->steps == 2) {
        assert_false(hear(world, &frame, body, sizeof body));
        world->is_done = pd_bus_counts(world->core.bus)->strangers == 1;
    }
}

static void a_key_taken_off_the_list_loses_its_connection(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->known);
    run(world, removed_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->answered, 1);
}

static void a_broken_list_leaves_the_old_one_in_force(void **state)
{
    world_t *world = *state;
    char why[512] = "";

    write_file(world, "clients.allow", 0640, "not a key\n");
    assert_int_equal(pd_bus_reload(world->core.bus, why, sizeof why), PD_E_INVALID);
    assert_non_null(strstr(why, "clients.allow:1"));
    connect_as(world, &world->known);
    run(world, beat_step);
}

static void frames_step(world_t *world)
{
    mcp_frame_t frame;
    char body[4096];

    if (world->steps++ == 0) {
        assert_int_equal(zmq_send(world->client, "one", 3, 0), 3);
        assert_int_equal(zmq_send(world->client, "1", 1, ZMQ_SNDMORE), 1);
        assert_int_equal(zmq_send(world->client, "2", 1, ZMQ_SNDMORE), 1);
        assert_int_equal(zmq_send(world->client, "3", 1, 0), 1);
        assert_int_equal(zmq_send(world->client, "no header", 9, ZMQ_SNDMORE), 9);
        assert_int_equal(zmq_send(world->client, "{}", 2, 0), 2);
        ask(world, MCP_KIND_CHILD_BEAT, 9, beat);
    } else if (hear(world, &frame, body, sizeof body)) {
        assert_int_equal(frame.request_id, 9);
        world->is_done = 1;
    }
}

static void messages_without_form_are_dropped_and_counted(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->known);
    run(world, frames_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->frames, 2);
    assert_int_equal(pd_bus_counts(world->core.bus)->headers, 1);
    assert_int_equal(pd_bus_counts(world->core.bus)->answered, 1);
}

static void errors_step(world_t *world)
{
    static const char resolve[] =
        "{\"token_hash\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
        "\"surface\":\"mcp\",\"resource\":\"r\"}";
    static const char invoke[] =
        "{\"token_hash\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
        "\"surface\":\"mcp\",\"resource\":\"r\",\"op\":\"a__b\",\"args\":{}}";
    mcp_frame_t frame;
    char body[4096];
    json_t *error = NULL;

    if (world->steps == 0) {
        ask(world, MCP_KIND_CHILD_BEAT, 1, "{}");
        ask(world, MCP_KIND_CRED_LEASE, 2, "{}");
        ask(world, MCP_KIND_RESOLVE, 3, resolve);
        ask(world, MCP_KIND_HELLO, 4,
            "{\"version_min\":1,\"version_max\":1,\"software\":\"s\",\"child\":\"c\"}");
        ask(world, MCP_KIND_OP_INVOKE, 5, invoke);
        world->steps = 1;
        return;
    }
    while (hear(world, &frame, body, sizeof body)) {
        static const char *const codes[] = {"malformed", "unsupported", "grant_revoked", "internal",
                                            "permission_denied"};

        assert_int_equal(frame.flags, MCP_FLAG_ERROR);
        assert_int_equal(frame.request_id, (uint64_t)world->steps);
        assert_int_equal(mcp_body_parse(body, strlen(body), &error), MCP_OK);
        assert_string_equal(mcp_json_str(error, "code"), codes[world->steps - 1]);
        assert_true(strlen(mcp_json_str(error, "message")) <= MCP_MAX_TEXT);
        if (world->steps == 3) {
            assert_int_equal(strlen(mcp_json_str(error, "message")), MCP_MAX_TEXT);
            assert_string_equal(mcp_json_str(error, "hint"), "a hint");
            assert_string_equal(mcp_json_str(error, "audit"), "1-2");
            assert_null(json_object_get(error, "permission"));
            assert_null(json_object_get(error, "scopes"));
        }
        if (world->steps == 5) {
            assert_string_equal(mcp_json_str(error, "audit"), "1-3");
            assert_string_equal(mcp_json_str(error, "permission"), "a:b");
            assert_int_equal(mcp_json_int(error, "scopes", 0), 5);
            assert_null(json_object_get(error, "hint"));
        }
        json_decref(error);
        world->is_done = world->steps++ == 5;
    }
}

static void refusals_are_error_replies_with_the_askers_id(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->known);
    run(world, errors_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->refused, 5);
}

static void raw_step(world_t *world)
{
    mcp_frame_t frame;
    char body[4096];

    if (world->steps++ == 0) {
        ask(world, MCP_KIND_BLOB_GET, 5,
            "{\"digest\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"offset\":0}");
    } else if (hear(world, &frame, body, sizeof body)) {
        assert_int_equal(frame.flags, MCP_FLAG_RAW | MCP_FLAG_MORE);
        assert_int_equal(frame.body_bytes, 10);
        assert_memory_equal(body, "blob\0bytes", 10);
        world->is_done = 1;
    }
}

static void raw_bytes_travel_as_they_are(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->known);
    run(world, raw_step);
}

static void flood_step(world_t *world)
{
    mcp_frame_t frame;
    char body[4096];
    uint64_t i;

    if (world->steps == 0) {
        for (i = 1; i <= 500; i++) {
            ask(world, MCP_KIND_CHILD_BEAT, i, beat);
        }
        world->steps = 1;
    }
    while (hear(world, &frame, body, sizeof body)) {
        assert_int_equal(frame.request_id, (uint64_t)world->steps);
        world->is_done = world->steps++ == 500;
    }
}

static void more_than_a_batch_is_answered_without_another_edge(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->known);
    run(world, flood_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->answered, 500);
}

static void twice_is_told_once(void **state)
{
    world_t *world = *state;

    world->twice = 1;
    pd_log_open(0, PD_LOG_ERR - 1);
    connect_as(world, &world->known);
    run(world, beat_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->answered, 1);
    assert_int_equal(pd_bus_counts(world->core.bus)->refused, 0);
}

static void leave_step(world_t *world)
{
    if (world->steps == 0) {
        ask(world, MCP_KIND_CALL_END, 5,
            "{\"audit\":\"1-1\",\"child\":\"c\",\"outcome\":\"ok\",\"duration_us\":1}");
        world->steps = 1;
    } else if (world->steps == 1 && world->held != NULL) {
        assert_int_equal(pd_bus_waiting(world->core.bus), 1);
        assert_int_equal(zmq_close(world->client), 0);
        world->client = NULL;
        world->steps = 2;
    } else if (world->steps >= 2 && world->steps++ == 300) {
        /* by now the ROUTER has seen the disconnection */
        pd_ask_reply(world->held, json_pack("{s:b}", "recorded", 1));
        world->is_done = 1;
    }
}

static void an_answer_to_one_who_left_is_counted_and_dropped(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->known);
    run(world, leave_step);
    assert_int_equal(pd_bus_counts(world->core.bus)->gone, 1);
    assert_int_equal(pd_bus_waiting(world->core.bus), 0);
}

static void hold_step(world_t *world)
{
    if (world->steps == 0) {
        ask(world, MCP_KIND_CALL_END, 5,
            "{\"audit\":\"1-1\",\"child\":\"c\",\"outcome\":\"ok\",\"duration_us\":1}");
        world->steps = 1;
    }
    world->is_done = world->held != NULL;
}

static void an_ask_that_never_ends_goes_with_the_bus(void **state)
{
    world_t *world = *state;

    connect_as(world, &world->known);
    run(world, hold_step);
    assert_int_equal(pd_bus_waiting(world->core.bus), 1); /* teardown frees it; LeakSanitizer looks */
}

static void a_live_endpoint_is_not_taken(void **state)
{
    world_t *world = *state;
    pd_core_t second = world->core;
    pd_bus_t *bus = NULL;
    char why[512] = "";

    assert_int_equal(pd_bus_new(&second, &bus, why, sizeof why), PD_OK);
    assert_int_equal(pd_bus_bind(bus, why, sizeof why), PD_E_LOCKED);
    assert_non_null(strstr(why, "another process answers there"));
    pd_bus_free(&bus);
    connect_as(world, &world->known);
    run(world, beat_step); /* the first one is still reached */
}

static void the_socket_is_for_owner_and_group_only(void **state)
{
    world_t *world = *state;
    struct stat info;

    assert_int_equal(stat(world->endpoint + 6, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0660);
}

static void a_key_file_that_others_can_read_is_refused(void **state)
{
    world_t *world = *state;
    pd_core_t second = world->core;
    pd_bus_t *bus = NULL;
    char path[400], why[512] = "";

    (void)snprintf(path, sizeof path, "%s/server.key", world->dir);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(pd_bus_new(&second, &bus, why, sizeof why), PD_E_INVALID);
    assert_non_null(strstr(why, "open to others"));
    assert_null(bus);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_known_key_is_answered),
        TEST(an_unknown_key_gets_nothing),
        TEST(a_client_without_a_key_gets_nothing),
        TEST(a_key_taken_off_the_list_loses_its_connection),
        TEST(a_broken_list_leaves_the_old_one_in_force),
        TEST(messages_without_form_are_dropped_and_counted),
        TEST(refusals_are_error_replies_with_the_askers_id),
        TEST(raw_bytes_travel_as_they_are),
        TEST(more_than_a_batch_is_answered_without_another_edge),
        TEST(twice_is_told_once),
        TEST(an_answer_to_one_who_left_is_counted_and_dropped),
        TEST(an_ask_that_never_ends_goes_with_the_bus),
        TEST(a_live_endpoint_is_not_taken),
        TEST(the_socket_is_for_owner_and_group_only),
        TEST(a_key_file_that_others_can_read_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
