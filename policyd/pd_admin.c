/* The admin socket: see pd_admin.h. */
#include "pd_admin.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <apr_allocator.h>
#include <apr_thread_mutex.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "pd_admin_rpc.h"
#include "pd_log.h"
#include "pd_loop.h"
#include "pd_ops.h"
#include "pd_seal.h"
#include "pd_socket.h"

#define BACKLOG        64
#define READ_CHUNK     65536
#define FIRST_ROOM     4096
#define IDLE_CHECK_MS  10000
#define RESUME_MS      1000
#define MAX_FREE_BYTES (8u * 1024 * 1024)

typedef struct run run_t;

typedef struct conn {
    pd_admin_t *admin;
    struct conn *next;
    int fd;
    long uid, pid;
    char *in; /* bytes [0, in_count) wait; the first in_seen of them hold no newline */
    size_t in_count, in_seen, in_room;
    char *out; /* bytes [out_at, out_count) wait */
    size_t out_at, out_count, out_room;
    int64_t last_us;  /* boot clock of the last byte either way */
    run_t *running;   /* NULL: free for the next line */
    int is_throttled; /* the output passed its high mark */
    int is_ending;    /* close once the output has left */
    int has_ended;    /* the peer sends no more */
} conn_t;

/* One request on its way through access and operation. It outlives its connection. */
struct run {
    pd_admin_t *admin;
    conn_t *conn; /* NULL: the peer has gone */
    apr_pool_t *pool;
    pd_admin_request_t request;
    json_t *empty; /* arguments when no params were given */
    const pd_op_t *op;
    pd_boot_t deadline;
};

struct pd_admin {
    pd_core_t *core;
    apr_pool_t *pool;
    apr_allocator_t *allocator; /* of the requests' pools; locked, since operations use them on threads */
    int fd;
    conn_t *conns;
    size_t conn_count;
    size_t run_count;
    size_t input_bytes;
    int is_draining;
    int idle_timer, resume_timer;
};

static void on_conn(int fd, short revents, void *baton);

/* --- connections ----------------------------------------------------------- */

static void end_run(run_t *run)
{
    pd_admin_t *admin = run->admin;

    if (run->conn != NULL) {
        run->conn->running = NULL;
    }
    if (run->op != NULL && run->op->secret != PD_SECRET_NO && run->request.params != NULL) {
        /* the one thing that is done to a request's values, when nobody reads them any more */
        pd_seal_wipe(json_object_get(run->request.message, "params"));
    }
    json_decref(run->request.message);
    json_decref(run->empty);
    admin->run_count--;
    apr_pool_destroy(run->pool); /* the run itself was in it */
}

static void close_conn(conn_t *conn)
{
    pd_admin_t *admin = conn->admin;
    conn_t **at = &admin->conns;

    while (*at != conn) {
        at = &(*at)->next;
    }
    *at = conn->next;
    admin->conn_count--;
    admin->input_bytes -= conn->in_room;
    pd_loop_unwatch(admin->core->loop, conn->fd);
    (void)close(conn->fd); /* what has not left is lost to a peer that does not read */
    if (conn->running != NULL) {
        conn->running->conn = NULL; /* the operation ends by itself and finds nobody */
    }
    if (conn->in != NULL) {
        mcp_wipe(conn->in, conn->in_room);
    }
    if (conn->out != NULL) {
        mcp_wipe(conn->out, conn->out_room);
    }
    free(conn->in);
    free(conn->out);
    free(conn);
}

static size_t output_bytes(const conn_t *conn)
{
    return conn->out_count - conn->out_at;
}

/* What the connection waits for now. */
static void watch_conn(conn_t *conn)
{
    short events = 0;

    if (conn->running == NULL && !conn->is_throttled && !conn->is_ending && !conn->has_ended) {
        events |= POLLIN;
    }
    if (output_bytes(conn) > 0) {
        events |= POLLOUT;
    }
    /* with no events poll still tells a hang-up; the call cannot fail for a watched descriptor */
    (void)pd_loop_watch(conn->admin->core->loop, conn->fd, events, on_conn, conn);
}

/* Grows a buffer without leaving its old bytes, which can hold a credential, in freed memory. */
static char *grow_wiped(char *from, size_t used, size_t *room, size_t need)
{
    size_t more = *room == 0 ? FIRST_ROOM : *room;
    char *to;

    while (more < need) {
        more *= 2;
    }
    to = malloc(more);
    if (to == NULL) {
        return NULL;
    }
    if (from != NULL) {
        memcpy(to, from, used);
        mcp_wipe(from, *room);
        free(from);
    }
    *room = more;
    return to;
}

/* Writes what the peer takes; 0, or -1 when the connection is gone. */
static int flush(conn_t *conn)
{
    while (output_bytes(conn) > 0) {
        ssize_t sent = send(conn->fd, conn->out + conn->out_at, output_bytes(conn),
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && errno == EAGAIN) {
            break;
        }
        if (sent <= 0) {
            return -1;
        }
        conn->out_at += (size_t)sent;
        conn->last_us = pd_boot_now().us;
    }
    if (output_bytes(conn) == 0 && conn->out != NULL) {
        mcp_wipe(conn->out, conn->out_room);
        free(conn->out);
        conn->out = NULL;
        conn->out_at = conn->out_count = conn->out_room = 0;
    }
    if (conn->is_throttled && output_bytes(conn) <= PD_ADMIN_OUTPUT_LOW) {
        conn->is_throttled = 0;
    }
    return 0;
}

/* Queues a message and its newline; body is stolen. */
static void put_line(conn_t *conn, json_t *message)
{
    size_t bytes = 0;
    char *text = mcp_json_text(message, &bytes);
    char *out = conn->out;

    json_decref(message);
    if (text != NULL && conn->out_room - conn->out_count < bytes + 1) {
        out = grow_wiped(conn->out, conn->out_count, &conn->out_room, conn->out_count + bytes + 1);
    }
    if (text == NULL || out == NULL) {
        pd_log(PD_LOG_ERR, 1201, "an answer at the admin socket could not be built: out of memory");
        conn->is_ending = 1;
    } else {
        conn->out = out;
        memcpy(out + conn->out_count, text, bytes);
        out[conn->out_count + bytes] = '\n';
        conn->out_count += bytes + 1;
        conn->is_throttled = output_bytes(conn) > PD_ADMIN_OUTPUT_HIGH;
    }
    if (text != NULL) {
        mcp_wipe(text, bytes); /* `grants create` answers a token */
        free(text);
    }
}

/* --- running a request ----------------------------------------------------- */

/* Answers (message stolen, NULL for a notification), ends the run and lets the connection go on. */
static void finish(run_t *run, json_t *message)
{
    conn_t *conn = run->conn;

    if (conn != NULL && message != NULL) {
        put_line(conn, message);
    } else {
        json_decref(message);
    }
    end_run(run);
    if (conn != NULL) {
        if (flush(conn) != 0) {
            close_conn(conn);
            return;
        }
        /* the next line is taken from the loop: an operation that ends at once must not nest */
        watch_conn(conn);
        if (conn->in_count > 0 || conn->has_ended || conn->is_ending) {
            pd_loop_wake(conn->admin->core->loop);
        }
    }
}

static void finish_fault(run_t *run, int rpc, const pd_fault_t *fault, const char *audit)
{
    finish(run, run->request.is_notification && rpc != PD_RPC_PARSE && rpc != PD_RPC_INVALID_REQUEST
                    ? NULL
                    : pd_admin_error(run->request.id, rpc, fault, audit));
}

static void finish_code(run_t *run, int rpc, mcp_code_t code, const char *hint, const char *text)
{
    pd_fault_t fault;

    memset(&fault, 0, sizeof fault);
    (void)pd_fault(&fault, code, hint, "%s", text);
    finish_fault(run, rpc, &fault, NULL);
}

static void finish_result(run_t *run, json_t *result)
{
    json_t *message;

    if (run->request.is_notification) {
        json_decref(result);
        finish(run, NULL);
        return;
    }
    message = pd_admin_envelope(run->request.id);
    (void)json_object_set_new(message, "result", result); /* fails only out of memory: see pd_admin_envelope() */
    finish(run, message);
}

static void on_invoked(const pd_op_call_t *call, const char *audit_id, void *baton)
{
    run_t *run = baton;

    if (call->fault.code != MCP_CODE_NONE) {
        finish_fault(run, PD_RPC_REFUSED, &call->fault, audit_id);
    } else if (call->result == NULL) {
        finish_code(run, PD_RPC_REFUSED, MCP_CODE_INTERNAL, NULL, "the operation answered nothing");
    } else {
        finish_result(run, json_incref(call->result));
    }
}

/* Somebody who is known, if only by uid, leaves a row. */
static void refuse_peer(run_t *run, mcp_code_t code, const pd_actor_t *actor, const json_t *args)
{
    pd_fault_t fault;

    memset(&fault, 0, sizeof fault);
    if (code == MCP_CODE_PERMISSION_DENIED) {
        (void)pd_fault(&fault, code,
                       "name your uid and a member's email in an `actor` line of policyd.conf, then send "
                       "policyd a SIGHUP",
                       "your uid is mapped to no member");
    } else if (code == MCP_CODE_MEMBER_SUSPENDED) {
        (void)pd_fault(&fault, code, "ask an administrator", "your membership is suspended or has ended");
    } else {
        (void)pd_fault(&fault, code, NULL, "who you are could not be settled");
    }
    if (actor == NULL || pd_invoke_refuse(run->admin->core, run->op, actor, args, &fault, run->deadline,
                                          on_invoked, run) != PD_OK) {
        finish_fault(run, PD_RPC_REFUSED, &fault, NULL);
    }
}

static void on_actor(mcp_code_t code, const pd_actor_t *actor, void *baton)
{
    run_t *run = baton;
    const json_t *args = run->request.params == NULL ? run->empty : run->request.params;
    pd_status_t status;

    if (code != MCP_CODE_NONE || actor == NULL) {
        if (run->conn != NULL) {
            pd_log(PD_LOG_INFO, 1202, "uid %ld is refused at the admin socket: %s", run->conn->uid,
                   mcp_code_text(code));
        }
        refuse_peer(run, code == MCP_CODE_NONE ? MCP_CODE_INTERNAL : code, actor, args);
        return;
    }
    status = pd_invoke(run->admin->core, run->op, actor, args, NULL, run->deadline, run->pool,
                       on_invoked, run);
    if (status == PD_E_FULL) {
        finish_code(run, PD_RPC_REFUSED, MCP_CODE_OVERLOADED, "try again in a moment",
                    "too many operations wait");
    } else if (status == PD_E_CLOSED) {
        finish_code(run, PD_RPC_REFUSED, MCP_CODE_POLICY_UNAVAILABLE, NULL, "policyd is shutting down");
    } else if (status != PD_OK) {
        finish_code(run, PD_RPC_REFUSED, MCP_CODE_INTERNAL, NULL, "the operation could not be started");
    }
}

static run_t *new_run(conn_t *conn)
{
    pd_admin_t *admin = conn->admin;
    apr_pool_t *pool = NULL;
    run_t *run;

    if (apr_pool_create_unmanaged_ex(&pool, NULL, admin->allocator) != APR_SUCCESS) {
        return NULL;
    }
    run = apr_pcalloc(pool, sizeof *run);
    run->admin = admin;
    run->conn = conn;
    run->pool = pool;
    run->empty = json_object();
    run->deadline = pd_boot_in(PD_ADMIN_DEADLINE_MS);
    conn->running = run;
    admin->run_count++;
    return run;
}

/* Takes one line, whose bytes are wiped by the caller afterwards. */
static void take_request(conn_t *conn, const char *line, size_t bytes)
{
    pd_core_t *core = conn->admin->core;
    run_t *run = new_run(conn);
    pd_fault_t fault;
    json_t *description;
    int rpc;

    if (run == NULL) {
        conn->is_ending = 1;
        return;
    }
    memset(&fault, 0, sizeof fault);
    rpc = pd_admin_parse(line, bytes, &run->request, &fault);
    if (rpc != 0) {
        finish_fault(run, rpc, &fault, NULL);
        return;
    }
    if (conn->admin->is_draining) {
        finish_code(run, PD_RPC_REFUSED, MCP_CODE_POLICY_UNAVAILABLE, NULL, "policyd is shutting down");
        return;
    }
    if (strcmp(run->request.method, "rpc.describe") == 0) {
        description = pd_ops_describe();
        if (description == NULL) {
            finish_code(run, PD_RPC_REFUSED, MCP_CODE_INTERNAL, NULL, "out of memory");
        } else {
            finish_result(run, description);
        }
        return;
    }
    run->op = pd_ops_find(run->request.method);
    if (run->op == NULL) {
        finish_code(run, PD_RPC_UNKNOWN_METHOD, MCP_CODE_NOT_FOUND,
                    "rpc.describe answers the methods; policyctl help lists them",
                    "no operation has this name");
        return;
    }
    pd_access_peer(core, conn->uid, run->deadline, run->pool, on_actor, run);
}

/* --- lines ----------------------------------------------------------------- */

/* Says why (unless text is NULL) and ends the connection once that has left. */
static void end_conn(conn_t *conn, mcp_code_t code, const char *text)
{
    pd_fault_t fault;

    memset(&fault, 0, sizeof fault);
    (void)pd_fault(&fault, code, NULL, "%s", text);
    put_line(conn, pd_admin_error(NULL, PD_RPC_INVALID_REQUEST, &fault, NULL));
    conn->is_ending = 1;
}

/* Removes the first count bytes, which have been served. */
static void consume(conn_t *conn, size_t count)
{
    size_t rest = conn->in_count - count;

    memmove(conn->in, conn->in + count, rest);
    mcp_wipe(conn->in + rest, count);
    conn->in_count = rest;
    conn->in_seen = 0;
    if (rest == 0 && conn->in_room > READ_CHUNK) {
        conn->admin->input_bytes -= conn->in_room;
        free(conn->in);
        conn->in = NULL;
        conn->in_room = 0;
    }
}

/* Takes at most one line that waits; 1 if it took one. */
static int take_line(conn_t *conn)
{
    char *end;
    size_t bytes, shown;

    if (conn->running != NULL || conn->is_throttled || conn->is_ending || conn->in_count == 0) {
        return 0;
    }
    end = memchr(conn->in + conn->in_seen, '\n', conn->in_count - conn->in_seen);
    if (end == NULL) {
        conn->in_seen = conn->in_count;
        if (conn->in_count > PD_ADMIN_MAX_LINE) {
            end_conn(conn, MCP_CODE_TOO_LARGE, "a request has at most 16 MiB");
        }
        return 0;
    }
    bytes = (size_t)(end - conn->in);
    shown = bytes > 0 && conn->in[bytes - 1] == '\r' ? bytes - 1 : bytes;
    if (shown > PD_ADMIN_MAX_LINE) {
        end_conn(conn, MCP_CODE_TOO_LARGE, "a request has at most 16 MiB");
        return 0;
    }
    if (shown > 0) {
        /* may answer, and even close the connection, before it returns: the bytes go first */
        char *line = malloc(shown);

        if (line == NULL) {
            conn->is_ending = 1;
            return 0;
        }
        memcpy(line, conn->in, shown);
        consume(conn, bytes + 1);
        take_request(conn, line, shown);
        mcp_wipe(line, shown);
        free(line);
    } else {
        consume(conn, bytes + 1);
    }
    return 1;
}

static int is_alive(const pd_admin_t *admin, const conn_t *conn)
{
    const conn_t *at;

    for (at = admin->conns; at != NULL; at = at->next) {
        if (at == conn) {
            return 1;
        }
    }
    return 0;
}

/* Reads what waits, within the bounds; 0, or -1 when the connection is gone. */
static int fill(conn_t *conn)
{
    pd_admin_t *admin = conn->admin;

    while (conn->in_count <= PD_ADMIN_MAX_LINE) {
        ssize_t got;

        if (conn->in_room - conn->in_count < READ_CHUNK) {
            size_t before = conn->in_room;
            char *in;

            if (admin->input_bytes + conn->in_room > PD_ADMIN_MAX_INPUT) {
                end_conn(conn, MCP_CODE_OVERLOADED, "too many large requests are under way");
                return 0;
            }
            in = grow_wiped(conn->in, conn->in_count, &conn->in_room, conn->in_count + READ_CHUNK);
            if (in == NULL) {
                return -1;
            }
            conn->in = in;
            admin->input_bytes += conn->in_room - before;
        }
        got = recv(conn->fd, conn->in + conn->in_count, READ_CHUNK, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return errno == EAGAIN ? 0 : -1;
        }
        if (got == 0) {
            conn->has_ended = 1; /* half-closed: what was asked is still answered */
            return 0;
        }
        conn->in_count += (size_t)got;
        conn->last_us = pd_boot_now().us;
        if (memchr(conn->in + conn->in_count - (size_t)got, '\n', (size_t)got) != NULL) {
            return 0; /* a line is served before more is read */
        }
    }
    return 0;
}

/* Serves what waits and decides whether the connection stays. It may be gone afterwards. */
static void serve(conn_t *conn)
{
    pd_admin_t *admin = conn->admin;

    while (take_line(conn)) {
        if (!is_alive(admin, conn)) {
            return;
        }
    }
    if (flush(conn) != 0) {
        close_conn(conn);
        return;
    }
    if (conn->running == NULL && !conn->is_throttled && !conn->is_ending &&
        conn->in_count > conn->in_seen) {
        /* the throttle has just been lifted: lines that are here already make no descriptor readable */
        pd_loop_wake(admin->core->loop);
    } else if (output_bytes(conn) == 0 && conn->running == NULL &&
               (conn->is_ending || (conn->has_ended && !conn->is_throttled))) {
        close_conn(conn);
        return;
    }
    watch_conn(conn);
}

static void on_conn(int fd, short revents, void *baton)
{
    conn_t *conn = baton;

    (void)fd;
    if ((revents & (POLLERR | POLLNVAL)) != 0 ||
        ((revents & POLLHUP) != 0 && (revents & POLLIN) == 0)) {
        close_conn(conn);
        return;
    }
    if ((revents & POLLIN) != 0 && fill(conn) != 0) {
        close_conn(conn);
        return;
    }
    serve(conn);
}

/* Lines that waited behind a request that has ended. */
static void on_wake(void *baton)
{
    pd_admin_t *admin = baton;
    conn_t *conn = admin->conns;

    while (conn != NULL) {
        conn_t *next = conn->next;

        if (conn->running == NULL && (conn->in_count > 0 || conn->has_ended || conn->is_ending)) {
            serve(conn);
        }
        conn = next;
    }
}

/* --- accepting ------------------------------------------------------------- */

static size_t count_uid(const pd_admin_t *admin, long uid)
{
    const conn_t *conn;
    size_t count = 0;

    for (conn = admin->conns; conn != NULL; conn = conn->next) {
        count += conn->uid == uid;
    }
    return count;
}

/* Tells a peer that finds no room, as far as its socket takes it. */
static void turn_away(int fd, long uid)
{
    static const char line[] =
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"too many connections\","
        "\"data\":{\"code\":\"overloaded\",\"message\":\"too many connections\","
        "\"hint\":\"close one and try again\"}}}\n";

    (void)send(fd, line, sizeof line - 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* best effort */
    (void)close(fd); /* nothing of it is kept */
    pd_log(PD_LOG_WARNING, 1203, "a connection of uid %ld to the admin socket finds no room", uid);
}

static void accept_one(pd_admin_t *admin, int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    conn_t *conn;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || bytes != sizeof peer) {
        pd_log(PD_LOG_ERR, 1204, "a peer of the admin socket has no credentials: closed");
        (void)close(fd); /* nothing was said */
        return;
    }
    if (admin->conn_count >= PD_ADMIN_MAX_CONNS ||
        count_uid(admin, (long)peer.uid) >= PD_ADMIN_MAX_PER_UID) {
        turn_away(fd, (long)peer.uid);
        return;
    }
    conn = calloc(1, sizeof *conn);
    if (conn == NULL || pd_loop_watch(admin->core->loop, fd, POLLIN, on_conn, conn) != PD_OK) {
        free(conn);
        turn_away(fd, (long)peer.uid);
        return;
    }
    conn->admin = admin;
    conn->fd = fd;
    conn->uid = (long)peer.uid;
    conn->pid = (long)peer.pid;
    conn->last_us = pd_boot_now().us;
    conn->next = admin->conns;
    admin->conns = conn;
    admin->conn_count++;
    pd_log(PD_LOG_DEBUG, 1205, "uid %ld (pid %ld) connects to the admin socket", conn->uid, conn->pid);
}

static void on_listen(int fd, short revents, void *baton);

static void resume(void *baton)
{
    pd_admin_t *admin = baton;

    pd_loop_cancel(admin->core->loop, admin->resume_timer);
    admin->resume_timer = 0;
    if (!admin->is_draining) {
        (void)pd_loop_watch(admin->core->loop, admin->fd, POLLIN, on_listen, admin); /* it had room */
    }
}

static void on_listen(int fd, short revents, void *baton)
{
    pd_admin_t *admin = baton;
    int i;

    (void)revents;
    for (i = 0; i < BACKLOG; i++) {
        int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (peer >= 0) {
            accept_one(admin, peer);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* the listener stays readable: without a pause the loop would spin on it */
            pd_log(PD_LOG_WARNING, 1206, "the admin socket pauses for a second: %s", strerror(errno));
            pd_loop_unwatch(admin->core->loop, fd);
            admin->resume_timer = pd_loop_every(admin->core->loop, RESUME_MS, resume, admin);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void close_idle(void *baton)
{
    pd_admin_t *admin = baton;
    int64_t since = pd_boot_now().us - (int64_t)PD_ADMIN_IDLE_MS * 1000;
    conn_t *conn = admin->conns;

    while (conn != NULL) {
        conn_t *next = conn->next;

        if (conn->running == NULL && conn->last_us < since) {
            close_conn(conn);
        }
        conn = next;
    }
}

/* --- life ------------------------------------------------------------------ */

pd_status_t pd_admin_listen(const pd_config_t *config, long uid, int *ret_fd, char *why, size_t size)
{
    return pd_socket_listen(config->admin_socket, uid, config->admin_group, ret_fd, why, size);
}

static pd_status_t make_allocator(pd_admin_t *admin)
{
    apr_thread_mutex_t *mutex = NULL;

    if (apr_allocator_create(&admin->allocator) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    apr_allocator_max_free_set(admin->allocator, MAX_FREE_BYTES);
    if (apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT, admin->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    apr_allocator_mutex_set(admin->allocator, mutex);
    return PD_OK;
}

pd_status_t pd_admin_new(pd_core_t *core, int fd, pd_admin_t **ret)
{
    pd_admin_t *admin = calloc(1, sizeof *admin);
    pd_status_t status = PD_E_NOMEM;

    if (admin == NULL) {
        (void)close(fd); /* nothing was accepted */
        return PD_E_NOMEM;
    }
    admin->core = core;
    admin->fd = fd;
    if (apr_pool_create(&admin->pool, core->pool) != APR_SUCCESS || make_allocator(admin) != PD_OK) {
        goto failed;
    }
    status = pd_loop_on_wake(core->loop, on_wake, admin);
    if (status == PD_OK) {
        status = pd_loop_watch(core->loop, fd, POLLIN, on_listen, admin);
    }
    admin->idle_timer = pd_loop_every(core->loop, IDLE_CHECK_MS, close_idle, admin);
    if (status != PD_OK || admin->idle_timer < 0) {
        status = PD_E_FULL;
        goto failed;
    }
    *ret = admin;
    return PD_OK;

failed:
    pd_admin_free(&admin);
    return status;
}

void pd_admin_drain(pd_admin_t *admin)
{
    admin->is_draining = 1;
    pd_loop_unwatch(admin->core->loop, admin->fd);
}

size_t pd_admin_waiting(const pd_admin_t *admin)
{
    const conn_t *conn;
    size_t count = admin->run_count;

    for (conn = admin->conns; conn != NULL; conn = conn->next) {
        count += output_bytes(conn) > 0;
    }
    return count;
}

void pd_admin_free(pd_admin_t **admin)
{
    pd_admin_t *gone = admin == NULL ? NULL : *admin;

    if (gone == NULL) {
        return;
    }
    *admin = NULL;
    while (gone->conns != NULL) {
        close_conn(gone->conns);
    }
    pd_loop_cancel(gone->core->loop, gone->idle_timer);
    pd_loop_cancel(gone->core->loop, gone->resume_timer);
    pd_loop_unwatch(gone->core->loop, gone->fd);
    (void)close(gone->fd);                          /* nothing was accepted since */
    (void)unlink(gone->core->config->admin_socket); /* absent: nobody minds */
    if (gone->run_count > 0) {
        /* operations that never ended still hold pools of this allocator: it ends with the process */
        return;
    }
    if (gone->allocator != NULL) {
        apr_allocator_mutex_set(gone->allocator, NULL); /* its pool goes first */
        apr_allocator_destroy(gone->allocator);
    }
    if (gone->pool != NULL) {
        apr_pool_destroy(gone->pool);
    }
    free(gone);
}
