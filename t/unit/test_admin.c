/* The admin socket: lines read, requests judged, answers and hang-ups over a real socket.  Access and
 * operations are stand-ins of this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../policyd/pd_admin.h"
#include "../../policyd/pd_admin_rpc.h"
#include "../../policyd/pd_log.h"
#include "../../policyd/pd_loop.h"
#include "../../policyd/pd_ops.h"
#include "../../policyd/pd_seal.h"
#include "../../proto/mcp_body.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct world {
    apr_pool_t *pool;
    char dir[256], path[300];
    pd_config_t config;
    pd_core_t core;
    int client;
    int is_done, watchdog_fired;
    void (*step)(struct world *world);
    int steps;
    char heard[1 << 16];
    size_t heard_bytes;
    int has_ended;
    int is_deaf; /* the step reads by itself */
    mcp_code_t verdict; /* of access */
    pd_invoke_fn *later; /* an operation that has not ended */
    void *later_baton;
    const pd_op_t *later_op;
    int invocations, refusals, wiped;
    long asked_uid;
} world_t;

static world_t *the_world;

/* --- stand-ins ------------------------------------------------------------- */

static const pd_op_t ops[] = {
    {.resource = "echo", .verb = "get", .secret = PD_SECRET_NO},
    {.resource = "secret", .verb = "set", .secret = PD_SECRET_ALWAYS},
    {.resource = "slow", .verb = "get", .secret = PD_SECRET_NO},
    {.resource = "fault", .verb = "get", .secret = PD_SECRET_NO},
    {.resource = "full", .verb = "get", .secret = PD_SECRET_NO},
    {.resource = "big", .verb = "get", .secret = PD_SECRET_NO},
};

const pd_op_t *pd_ops_find(const char *name)
{
    size_t i;

    for (i = 0; i < COUNT(ops); i++) {
        char full[64];

        (void)snprintf(full, sizeof full, "%s__%s", ops[i].resource, ops[i].verb);
        if (strcmp(full, name) == 0) {
            return &ops[i];
        }
    }
    return NULL;
}

json_t *pd_ops_describe(void)
{
    return json_pack("[{s:s}]", "name", "echo__get");
}

void pd_seal_wipe(json_t *secret)
{
    assert_true(json_is_object(secret));
    the_world->wiped++;
}

void pd_access_peer(pd_core_t *core, long uid, pd_boot_t deadline, apr_pool_t *pool, pd_access_fn *done,
                    void *baton)
{
    static const pd_actor_t actor = {.label = "unix:0", .is_owner = 1};

    (void)core;
    (void)pool;
    assert_true(pd_boot_left_ms(deadline) > 0);
    the_world->asked_uid = uid;
    done(the_world->verdict, the_world->verdict == MCP_CODE_INTERNAL ? NULL : &actor, baton);
}

pd_status_t pd_invoke_refuse(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                             const json_t *args, const pd_fault_t *fault, pd_boot_t deadline,
                             pd_invoke_fn *done, void *baton)
{
    pd_op_call_t call;

    (void)deadline;
    assert_non_null(actor);
    the_world->refusals++;
    memset(&call, 0, sizeof call);
    call.core = core;
    call.op = op;
    call.actor = actor;
    call.args = args;
    call.fault = *fault;
    done(&call, "7-6", baton);
    return PD_OK;
}

pd_status_t pd_invoke(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor, const json_t *args,
                      const char *trace_id, pd_boot_t deadline, apr_pool_t *pool, pd_invoke_fn *done,
                      void *baton)
{
    pd_op_call_t call;

    (void)deadline;
    assert_null(trace_id);
    the_world->invocations++;
    memset(&call, 0, sizeof call);
    call.core = core;
    call.op = op;
    call.actor = actor;
    call.args = args;
    call.pool = pool;
    if (strcmp(op->resource, "full") == 0) {
        return PD_E_FULL;
    }
    if (strcmp(op->resource, "slow") == 0) {
        the_world->later = done;
        the_world->later_baton = baton;
        the_world->later_op = op;
        return PD_OK;
    }
    if (strcmp(op->resource, "fault") == 0) {
        (void)pd_fault(&call.fault, MCP_CODE_CONFLICT, "take another name", "it is taken");
        done(&call, "7-7", baton);
        return PD_OK;
    }
    if (strcmp(op->resource, "big") == 0) {
        char *text = calloc(1, 3000001);

        assert_non_null(text);
        memset(text, 'b', 3000000);
        call.result = json_pack("{s:s}", "big", text);
        free(text);
    } else {
        call.result = json_pack("{s:O}", "args", args);
    }
    done(&call, "7-8", baton);
    json_decref(call.result);
    return PD_OK;
}

/* Ends the slow operation. */
static void end_slow(world_t *world)
{
    pd_op_call_t call;

    memset(&call, 0, sizeof call);
    call.core = &world->core;
    call.op = world->later_op;
    call.result = json_pack("{s:b}", "late", 1);
    world->later(&call, "7-9", world->later_baton);
    world->later = NULL;
    json_decref(call.result);
}

/* --- world ----------------------------------------------------------------- */

static int connect_client(const world_t *world)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, world->path, strlen(world->path) + 1);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void hear(world_t *world)
{
    while (!world->is_deaf && world->client >= 0 && world->heard_bytes < sizeof world->heard - 1) {
        ssize_t got = recv(world->client, world->heard + world->heard_bytes,
                           sizeof world->heard - 1 - world->heard_bytes, 0);

        if (got <= 0) {
            world->has_ended = world->has_ended || got == 0 || errno == ECONNRESET;
            return;
        }
        world->heard_bytes += (size_t)got;
        world->heard[world->heard_bytes] = '\0';
    }
}

static void on_step(void *baton)
{
    world_t *world = baton;

    hear(world);
    world->step(world);
    world->steps++;
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

static int setup(void **state)
{
    const char *base = getenv("TMPDIR");
    world_t *world = calloc(1, sizeof *world);
    char why[512] = "";
    int fd = -1;

    if (world == NULL || apr_initialize() != APR_SUCCESS ||
        apr_pool_create(&world->pool, NULL) != APR_SUCCESS) {
        return -1;
    }
    *state = the_world = world;
    pd_log_open(0, PD_LOG_ERR);
    (void)snprintf(world->dir, sizeof world->dir, "%s/adminXXXXXX", base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(world->dir));
    (void)snprintf(world->path, sizeof world->path, "%s/admin.sock", world->dir);
    world->config.admin_socket = world->path;
    world->core.pool = world->pool;
    world->core.config = &world->config;
    assert_int_equal(pd_loop_new(world->pool, &world->core.loop), PD_OK);
    assert_true(pd_loop_every(world->core.loop, 1, on_step, world) > 0);
    assert_true(pd_loop_every(world->core.loop, 30000, watchdog, world) > 0);
    if (pd_admin_listen(&world->config, -1, &fd, why, sizeof why) != PD_OK) {
        fail_msg("%s", why);
    }
    assert_int_equal(pd_admin_new(&world->core, fd, &world->core.admin), PD_OK);
    world->client = connect_client(world);
    return 0;
}

static int teardown(void **state)
{
    world_t *world = *state;

    if (world->client >= 0) {
        (void)close(world->client);
    }
    pd_admin_free(&world->core.admin);
    pd_loop_free(&world->core.loop);
    (void)rmdir(world->dir);
    apr_pool_destroy(world->pool);
    apr_terminate();
    free(world);
    return 0;
}

static void run(world_t *world, void (*step)(world_t *world))
{
    world->step = step;
    world->steps = 0;
    assert_int_equal(pd_loop_run(world->core.loop, NULL, NULL, NULL), PD_OK);
    if (world->watchdog_fired) {
        fail_msg("nothing happened; heard: %s", world->heard);
    }
}

static void say(const world_t *world, const char *text)
{
    assert_int_equal(send(world->client, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static int lines(const world_t *world)
{
    size_t i;
    int count = 0;

    for (i = 0; i < world->heard_bytes; i++) {
        count += world->heard[i] == '\n';
    }
    return count;
}

/* Stops once as many lines have been heard as `wanted` says. */
static int wanted;

static void until_lines(world_t *world)
{
    world->is_done = lines(world) >= wanted;
}

static void until_end(world_t *world)
{
    world->is_done = world->has_ended;
}

static void exchange(world_t *world, const char *text, int answers)
{
    wanted = answers;
    world->is_done = 0;
    say(world, text);
    run(world, until_lines);
}

/* --- lines ----------------------------------------------------------------- */

static void a_request_is_read(void **state)
{
    static const char line[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"a__b\",\"params\":{\"k\":1}}";
    pd_admin_request_t request;
    pd_fault_t fault;

    (void)state;
    memset(&fault, 0, sizeof fault);
    assert_int_equal(pd_admin_parse(line, sizeof line - 1, &request, &fault), 0);
    assert_string_equal(request.method, "a__b");
    assert_string_equal(json_string_value(request.id), "x");
    assert_int_equal(mcp_json_int(request.params, "k", 0), 1);
    assert_false(request.is_notification);
    json_decref(request.message);
}

static void a_bad_line_has_its_code(void **state)
{
    static const struct {
        const char *line;
        int code;
    } cases[] = {
        {"", PD_RPC_PARSE},
        {"{", PD_RPC_PARSE},
        {"{} {}", PD_RPC_PARSE},
        {"{\"id\":1,\"id\":2}", PD_RPC_PARSE},
        {"\"a\"", PD_RPC_INVALID_REQUEST},
        {"[]", PD_RPC_INVALID_REQUEST},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]", PD_RPC_INVALID_REQUEST},
        {"{\"id\":1,\"method\":\"m\"}", PD_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}", PD_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", PD_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", PD_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}", PD_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"m\"}", PD_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"uid\":0}", PD_RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[1]}", PD_RPC_INVALID_PARAMS},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":null}", PD_RPC_INVALID_PARAMS},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        pd_admin_request_t request;
        pd_fault_t fault;

        memset(&fault, 0, sizeof fault);
        assert_int_equal(pd_admin_parse(cases[i].line, strlen(cases[i].line), &request, &fault),
                         cases[i].code);
        assert_true(fault.code != MCP_CODE_NONE && fault.message[0] != '\0');
        json_decref(request.message);
    }
}

static void nesting_has_its_limit(void **state)
{
    char line[512];
    pd_admin_request_t request;
    pd_fault_t fault;
    int depth;

    (void)state;
    for (depth = MCP_MAX_DEPTH; depth <= MCP_MAX_DEPTH + 1; depth++) {
        int used = snprintf(line, sizeof line,
                            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":");
        int i;

        /* params itself is a level, the request object another */
        for (i = 0; i < depth - 1; i++) {
            line[used++] = '[';
        }
        for (i = 0; i < depth - 1; i++) {
            line[used++] = ']';
        }
        line[used++] = '}';
        line[used++] = '}';
        memset(&fault, 0, sizeof fault);
        assert_int_equal(pd_admin_parse(line, (size_t)used, &request, &fault),
                         depth <= MCP_MAX_DEPTH ? 0 : PD_RPC_PARSE);
        json_decref(request.message);
    }
}

/* --- socket ---------------------------------------------------------------- */

#define CALL(id, method, rest) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\"" rest "}\n"

static void an_operation_is_run_and_answered(void **state)
{
    world_t *world = *state;

    exchange(world, CALL("1", "echo__get", ",\"params\":{\"a\":[1,2]}"), 1);
    assert_string_equal(world->heard,
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"args\":{\"a\":[1,2]}}}\n");
    assert_int_equal(world->asked_uid, (long)geteuid());
    assert_int_equal(world->wiped, 0);
}

static void absent_params_are_an_empty_object(void **state)
{
    world_t *world = *state;

    exchange(world, CALL("null", "echo__get", ""), 1);
    assert_string_equal(world->heard, "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{\"args\":{}}}\n");
}

static void a_secret_operations_arguments_are_wiped(void **state)
{
    world_t *world = *state;

    exchange(world, CALL("1", "secret__set", ",\"params\":{\"token\":\"s\"}"), 1);
    assert_int_equal(world->wiped, 1);
}

static void the_registry_is_described_without_asking_who(void **state)
{
    world_t *world = *state;

    world->verdict = MCP_CODE_PERMISSION_DENIED;
    world->asked_uid = -7;
    exchange(world, CALL("1", "rpc.describe", ""), 1);
    assert_string_equal(world->heard,
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[{\"name\":\"echo__get\"}]}\n");
    assert_int_equal(world->asked_uid, -7);
}

static void an_unmapped_peer_is_refused_and_told_how(void **state)
{
    world_t *world = *state;

    world->verdict = MCP_CODE_PERMISSION_DENIED;
    exchange(world, CALL("1", "echo__get", ""), 1);
    assert_non_null(strstr(world->heard, "\"error\":{\"code\":1,"));
    assert_non_null(strstr(world->heard, "\"data\":{\"code\":\"permission_denied\""));
    assert_non_null(strstr(world->heard, "policyd.conf"));
    assert_non_null(strstr(world->heard, "\"audit\":\"7-6\""));
    assert_int_equal(world->invocations, 0);
    assert_int_equal(world->refusals, 1);
}

static void a_suspended_peer_is_refused_on_record(void **state)
{
    world_t *world = *state;

    world->verdict = MCP_CODE_MEMBER_SUSPENDED;
    exchange(world, CALL("1", "echo__get", ""), 1);
    assert_non_null(strstr(world->heard, "\"data\":{\"code\":\"member_suspended\""));
    assert_non_null(strstr(world->heard, "\"audit\":\"7-6\""));
    assert_int_equal(world->invocations, 0);
}

static void a_peer_who_cannot_be_settled_is_refused(void **state)
{
    world_t *world = *state;

    world->verdict = MCP_CODE_INTERNAL;
    exchange(world, CALL("1", "echo__get", ""), 1);
    assert_non_null(strstr(world->heard, "\"data\":{\"code\":\"internal\""));
    assert_int_equal(world->invocations, 0);
    assert_int_equal(world->refusals, 0);
}

static void a_refusal_carries_code_hint_and_audit(void **state)
{
    world_t *world = *state;

    exchange(world, CALL("1", "fault__get", ""), 1);
    assert_string_equal(world->heard,
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"it is taken\","
                        "\"data\":{\"code\":\"conflict\",\"message\":\"it is taken\","
                        "\"hint\":\"take another name\",\"audit\":\"7-7\"}}}\n");
}

static void a_full_queue_is_overloaded(void **state)
{
    world_t *world = *state;

    exchange(world, CALL("1", "full__get", ""), 1);
    assert_non_null(strstr(world->heard, "\"code\":\"overloaded\""));
}

static void an_unknown_method_is_json_rpcs_own_error(void **state)
{
    world_t *world = *state;

    exchange(world, CALL("1", "nobody__knows", "") "garbage\n", 2);
    assert_non_null(strstr(world->heard, "\"code\":-32601"));
    assert_non_null(strstr(world->heard, "\"id\":null,\"error\":{\"code\":-32700"));
}

static void a_notification_runs_and_is_not_answered(void **state)
{
    world_t *world = *state;

    exchange(world, "{\"jsonrpc\":\"2.0\",\"method\":\"echo__get\"}\n" CALL("2", "echo__get", ""), 1);
    assert_int_equal(lines(world), 1);
    assert_non_null(strstr(world->heard, "\"id\":2"));
    assert_int_equal(world->invocations, 2);
}

static void slow_step(world_t *world)
{
    if (world->later != NULL && world->steps > 5) {
        assert_int_equal(world->heard_bytes, 0); /* the next line waits behind it */
        assert_int_equal(pd_admin_waiting(world->core.admin), 1);
        end_slow(world);
    }
    world->is_done = lines(world) == 2;
}

static void requests_of_a_connection_run_one_after_the_other(void **state)
{
    world_t *world = *state;

    say(world, CALL("1", "slow__get", "") "\r\n\n" CALL("2", "echo__get", ""));
    run(world, slow_step);
    assert_true(strstr(world->heard, "\"id\":1") < strstr(world->heard, "\"id\":2"));
    assert_int_equal(pd_admin_waiting(world->core.admin), 0);
}

static void pieces_step(world_t *world)
{
    static const char text[] = CALL("1", "echo__get", "");

    if ((size_t)world->steps < sizeof text - 1) {
        assert_int_equal(send(world->client, text + world->steps, 1, MSG_NOSIGNAL), 1);
    }
    world->is_done = lines(world) == 1;
}

static void a_line_may_come_byte_by_byte(void **state)
{
    world_t *world = *state;

    run(world, pieces_step);
    assert_non_null(strstr(world->heard, "result"));
}

static void a_half_closed_connection_is_answered_and_closed(void **state)
{
    world_t *world = *state;

    say(world, CALL("1", "echo__get", ""));
    assert_int_equal(shutdown(world->client, SHUT_WR), 0);
    run(world, until_end);
    assert_int_equal(lines(world), 1);
}

static void half_slow_step(world_t *world)
{
    if (world->later != NULL && world->steps > 5) {
        end_slow(world);
    }
    world->is_done = world->has_ended;
}

static void a_half_closed_connection_waits_for_its_operation(void **state)
{
    world_t *world = *state;

    say(world, CALL("1", "slow__get", ""));
    assert_int_equal(shutdown(world->client, SHUT_WR), 0);
    run(world, half_slow_step);
    assert_non_null(strstr(world->heard, "late"));
}

static void vanish_step(world_t *world)
{
    if (world->later != NULL && world->client >= 0) {
        (void)close(world->client);
        world->client = -1;
        world->steps = 0;
    } else if (world->later != NULL && world->steps > 20) {
        end_slow(world);
        world->is_done = 1;
    }
}

static void an_operation_outlives_its_peer(void **state)
{
    world_t *world = *state;

    say(world, CALL("1", "slow__get", ""));
    run(world, vanish_step);
    assert_int_equal(pd_admin_waiting(world->core.admin), 0);
}

static char *flood; /* a line that never ends */
static size_t flood_at;

static void flood_step(world_t *world)
{
    while (flood_at < PD_ADMIN_MAX_LINE + (1u << 20)) {
        ssize_t sent = send(world->client, flood, 1u << 20, MSG_NOSIGNAL);

        if (sent <= 0) {
            break;
        }
        flood_at += (size_t)sent;
    }
    world->is_done = world->has_ended;
}

static void a_line_without_an_end_is_cut_off(void **state)
{
    world_t *world = *state;

    flood = malloc(1u << 20);
    assert_non_null(flood);
    memset(flood, ' ', 1u << 20);
    flood_at = 0;
    run(world, flood_step);
    free(flood);
    assert_non_null(strstr(world->heard, "too_large"));
}

static void drain_step(world_t *world)
{
    if (world->steps == 0) {
        say(world, CALL("1", "echo__get", ""));
    } else if (lines(world) == 1 && world->steps < 1000) {
        pd_admin_drain(world->core.admin);
        say(world, CALL("2", "echo__get", ""));
        world->steps = 1000;
    }
    world->is_done = lines(world) == 2;
}

static void a_draining_daemon_takes_no_request(void **state)
{
    world_t *world = *state;

    run(world, drain_step);
    assert_non_null(strstr(world->heard, "\"code\":\"policy_unavailable\""));
    assert_int_equal(world->invocations, 1);
}

static void crowd_step(world_t *world)
{
    static int extra[PD_ADMIN_MAX_PER_UID];
    static size_t count;

    if (world->steps == 0) {
        count = 0;
        while (count < PD_ADMIN_MAX_PER_UID - 1) {
            extra[count++] = connect_client(world);
        }
    } else if (world->steps == 50) {
        /* all seats are taken: the next one is turned away */
        extra[count++] = connect_client(world);
    } else if (world->steps > 50) {
        char byte[256];
        ssize_t got = recv(extra[count - 1], byte, sizeof byte - 1, 0);

        if (got > 0) {
            byte[got] = '\0';
            assert_non_null(strstr(byte, "too many connections"));
            while (count > 0) {
                (void)close(extra[--count]);
            }
            world->is_done = 1;
        }
    }
}

static void a_uid_has_so_many_connections_and_no_more(void **state)
{
    run(*state, crowd_step);
}

/* The client reads nothing for a while: the daemon must neither block nor lose a byte. */
static size_t big_bytes;

static void big_step(world_t *world)
{
    char buf[65536];
    ssize_t got = world->steps < 20 ? 0 : recv(world->client, buf, sizeof buf, 0);

    while (got > 0) {
        big_bytes += (size_t)got;
        if (buf[got - 1] == '\n') {
            world->is_done = 1;
            return;
        }
        got = recv(world->client, buf, sizeof buf, 0);
    }
}

static void a_large_answer_waits_for_a_slow_reader(void **state)
{
    world_t *world = *state;

    world->is_deaf = 1;
    big_bytes = 0;
    say(world, CALL("1", "big__get", ""));
    run(world, big_step);
    assert_int_equal(big_bytes, 3000000 + strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"big\":\"\"}}\n"));
}

/* --- listening ------------------------------------------------------------- */

static void a_live_socket_is_not_taken(void **state)
{
    world_t *world = *state;
    char why[512] = "";
    int fd = -1;

    assert_int_equal(pd_admin_listen(&world->config, -1, &fd, why, sizeof why), PD_E_LOCKED);
    assert_int_equal(fd, -1);
    exchange(world, CALL("1", "echo__get", ""), 1);
}

static void a_dead_socket_is_replaced_and_a_file_is_not(void **state)
{
    world_t *world = *state;
    pd_config_t config = {.admin_socket = NULL};
    char path[320], why[512] = "";
    struct stat info;
    int fd = -1;

    (void)snprintf(path, sizeof path, "%s/other", world->dir);
    config.admin_socket = path;
    assert_int_equal(pd_admin_listen(&config, -1, &fd, why, sizeof why), PD_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(close(fd), 0);
    assert_int_equal(pd_admin_listen(&config, -1, &fd, why, sizeof why), PD_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(pd_admin_listen(&config, -1, &fd, why, sizeof why), PD_E_INVALID);
    assert_int_equal(unlink(path), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read),
        cmocka_unit_test(a_bad_line_has_its_code),
        cmocka_unit_test(nesting_has_its_limit),
        TEST(an_operation_is_run_and_answered),
        TEST(absent_params_are_an_empty_object),
        TEST(a_secret_operations_arguments_are_wiped),
        TEST(the_registry_is_described_without_asking_who),
        TEST(an_unmapped_peer_is_refused_and_told_how),
        TEST(a_suspended_peer_is_refused_on_record),
        TEST(a_peer_who_cannot_be_settled_is_refused),
        TEST(a_refusal_carries_code_hint_and_audit),
        TEST(a_full_queue_is_overloaded),
        TEST(an_unknown_method_is_json_rpcs_own_error),
        TEST(a_notification_runs_and_is_not_answered),
        TEST(requests_of_a_connection_run_one_after_the_other),
        TEST(a_line_may_come_byte_by_byte),
        TEST(a_half_closed_connection_is_answered_and_closed),
        TEST(a_half_closed_connection_waits_for_its_operation),
        TEST(an_operation_outlives_its_peer),
        TEST(a_line_without_an_end_is_cut_off),
        TEST(a_draining_daemon_takes_no_request),
        TEST(a_uid_has_so_many_connections_and_no_more),
        TEST(a_large_answer_waits_for_a_slow_reader),
        TEST(a_live_socket_is_not_taken),
        TEST(a_dead_socket_is_replaced_and_a_file_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
