/* The link to httpd: see pd_bus.h.
 *
 * A socket's descriptor (ZMQ_FD) is edge-triggered and says only that something may have happened: it is
 * drained until EAGAIN, a bounded batch at a time, and every socket's ZMQ_EVENTS is looked at again before
 * each poll, because a send can swallow the edge of an arrival (libzmq, zmq_getsockopt(3)).
 *
 * A routing id is a return address and nothing else: who asks is decided from the body's token, and
 * whether a message is read at all from the key that its connection proved. */
#include "pd_bus.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_allocator.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <zmq.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_frame.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "pd_curve.h"
#include "pd_dispatch.h"
#include "pd_log.h"
#include "pd_seal.h"
#include "pd_loop.h"
#include "pd_socket.h"

#define BATCH          64  /* messages of one socket before others get their turn */
#define ROUTING_MAX    255 /* bytes of a routing id */
#define MAX_FREE_BYTES (8u * 1024 * 1024) /* of memory that ended asks leave for the next ones */
#define REPORT_MS      60000

typedef struct bus_socket {
    pd_bus_t *bus;
    void *zmq;
    int fd;           /* -1: not watched */
    const char *path; /* of an ipc endpoint that we bound; NULL: none to remove */
} bus_socket_t;

/* An ask with its way back. Slots are kept until the bus goes, so that a second end of one is noticed
 * instead of writing into freed memory. */
typedef struct ask_slot {
    pd_ask_t ask; /* first: an ask is its slot */
    struct ask_slot *next; /* in the free list, or among all */
    struct ask_slot *next_of_all;
    int is_waiting;
    bus_socket_t *socket;
    uint64_t request_id;
    uint16_t version;
    unsigned char routing_bytes;
    unsigned char routing[ROUTING_MAX];
} ask_slot_t;

struct pd_bus {
    pd_core_t *core;
    apr_pool_t *pool;
    apr_allocator_t *allocator; /* of the asks' pools; locked, since a unit's thread may use one */
    void *context;
    pd_curve_t *curve;
    pd_curve_pair_t keys;
    bus_socket_t sockets[PD_CONFIG_MAX_ENDPOINTS];
    size_t socket_count;
    ask_slot_t *free_slots, *all_slots;
    size_t waiting;
    pd_bus_counts_t counts, reported;
    int timer;
};

static pd_status_t refuse(char *why, size_t size, pd_status_t status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static pd_status_t refuse(char *why, size_t size, pd_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, size, format, args);
    va_end(args);
    return status;
}

/* --- answers --------------------------------------------------------------- */

/* zmq_msg_init_data's free function: bodies can hold a credential (plan.auth). */
static void free_wiped(void *data, void *hint)
{
    mcp_wipe(data, (size_t)(uintptr_t)hint);
    free(data);
}

static void free_slot(pd_bus_t *bus, ask_slot_t *slot)
{
    json_decref(slot->ask.body);
    slot->ask.body = NULL;
    if (slot->ask.pool != NULL) {
        apr_pool_destroy(slot->ask.pool);
        slot->ask.pool = NULL;
    }
    slot->is_waiting = 0;
    slot->next = bus->free_slots;
    bus->free_slots = slot;
    bus->waiting--;
}

static int send_part(void *socket, const void *bytes, size_t count, int flags)
{
    int sent;

    do {
        sent = zmq_send(socket, bytes, count, flags | ZMQ_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -1 : 0;
}

/* Sends routing id, header and body; body is stolen. Never blocks: an asker that is gone or takes nothing
 * is counted, and asks again or gives up by its own deadline. */
static void send_reply(bus_socket_t *socket, const void *routing, size_t routing_bytes,
                       const mcp_frame_t *frame, zmq_msg_t *body)
{
    pd_bus_t *bus = socket->bus;
    unsigned char header[MCP_HEADER_BYTES];
    int sent = -1;

    if (mcp_frame_encode(frame, header, sizeof header) == MCP_OK &&
        send_part(socket->zmq, routing, routing_bytes, ZMQ_SNDMORE) == 0 &&
        send_part(socket->zmq, header, sizeof header, ZMQ_SNDMORE) == 0) {
        do {
            sent = zmq_msg_send(body, socket->zmq, ZMQ_DONTWAIT);
        } while (sent < 0 && errno == EINTR);
    }
    if (sent < 0) {
        if (errno == EHOSTUNREACH) {
            bus->counts.gone++;
        } else {
            bus->counts.stuck++;
        }
        (void)zmq_msg_close(body); /* valid: it was not sent */
    } else if ((frame->flags & MCP_FLAG_ERROR) != 0) {
        bus->counts.refused++;
    } else {
        bus->counts.answered++;
    }
}

static mcp_frame_t reply_frame(const pd_core_t *core, uint16_t version, uint16_t kind,
                               uint32_t flags, uint64_t request_id, size_t body_bytes)
{
    mcp_frame_t frame;

    frame.version = version;
    frame.kind = (uint16_t)(kind | 1);
    frame.flags = flags;
    frame.request_id = request_id;
    frame.budget_ms = 0;
    frame.body_bytes = (uint32_t)body_bytes;
    frame.generation = core->generation;
    return frame;
}

/* Text for a field of an error object: at most MCP_MAX_TEXT bytes, cut between characters; a text that is
 * not UTF-8 gives NULL. */
static json_t *bounded_text(const char *text)
{
    size_t bytes = strlen(text);

    if (bytes > MCP_MAX_TEXT) {
        bytes = MCP_MAX_TEXT;
        while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80) {
            bytes--;
        }
    }
    return json_stringn(text, bytes);
}

static json_t *error_body(mcp_code_t code, const char *message, const char *hint, const char *audit)
{
    json_t *body = json_object();
    json_t *text = bounded_text(message == NULL || *message == '\0' ? mcp_code_text(code) : message);

    /* a failed insert leaves the field out; the reader refuses the reply then, which is an error too */
    (void)json_object_set_new(body, "code", json_string(mcp_code_text(code)));
    (void)json_object_set_new(body, "message",
                              text != NULL ? text : json_string(mcp_code_text(code)));
    if (hint != NULL && *hint != '\0') {
        text = bounded_text(hint);
        if (text != NULL) {
            (void)json_object_set_new(body, "hint", text);
        }
    }
    if (audit != NULL && *audit != '\0') {
        (void)json_object_set_new(body, "audit", json_string(audit));
    }
    return body;
}

/* Makes `ret` of a body (stolen). */
static pd_status_t body_message(json_t *body, zmq_msg_t *ret, size_t *ret_bytes)
{
    size_t bytes = 0;
    char *text = mcp_json_text(body, &bytes);

    pd_seal_wipe(json_object_get(json_object_get(body, "plan"), "auth")); /* the tree holds it too */
    json_decref(body);
    if (text == NULL) {
        return PD_E_NOMEM;
    }
    if (bytes > MCP_MAX_BODY_BYTES) {
        free_wiped(text, (void *)(uintptr_t)bytes);
        return PD_E_FULL;
    }
    if (zmq_msg_init_data(ret, text, bytes, free_wiped, (void *)(uintptr_t)bytes) != 0) {
        free_wiped(text, (void *)(uintptr_t)bytes);
        return PD_E_NOMEM;
    }
    *ret_bytes = bytes;
    return PD_OK;
}

static void send_error(bus_socket_t *socket, const void *routing, size_t routing_bytes,
                       uint16_t version, uint16_t kind, uint64_t request_id, json_t *body)
{
    mcp_frame_t frame;
    zmq_msg_t message;
    size_t bytes = 0;

    if (body_message(body, &message, &bytes) != PD_OK) {
        pd_log(PD_LOG_ERR, 1111, "a refusal could not be built: out of memory");
        return;
    }
    frame = reply_frame(socket->bus->core, version, kind, MCP_FLAG_ERROR, request_id, bytes);
    send_reply(socket, routing, routing_bytes, &frame, &message);
}

/* The slot of an ask that is to end now, or NULL when it ended before: a bug of a handler, which must
 * not answer a stranger's question. */
static ask_slot_t *ending(pd_ask_t *ask)
{
    ask_slot_t *slot = ask->route;

    if (!slot->is_waiting) {
        pd_log(PD_LOG_ERR, 1112, "an answered question (%s) was answered again: ignored",
               mcp_kind_text(ask->kind));
        return NULL;
    }
    return slot;
}

void pd_ask_refuse(pd_ask_t *ask, mcp_code_t code, const char *message, const char *hint,
                   const char *audit)
{
    ask_slot_t *slot = ending(ask);

    if (slot == NULL) {
        return;
    }
    send_error(slot->socket, slot->routing, slot->routing_bytes, slot->version, ask->kind,
               slot->request_id, error_body(code, message, hint, audit));
    free_slot(slot->socket->bus, slot);
}

void pd_ask_refuse_fault(pd_ask_t *ask, const pd_fault_t *fault, const char *audit)
{
    ask_slot_t *slot = ending(ask);
    json_t *body;

    if (slot == NULL) {
        return;
    }
    body = error_body(fault->code, fault->message, fault->hint, audit);
    if (fault->permission[0] != '\0') {
        (void)json_object_set_new(body, "permission", json_string(fault->permission)); /* a help, no more */
    }
    if (fault->scopes != 0) {
        (void)json_object_set_new(body, "scopes", json_integer((json_int_t)fault->scopes));
    }
    send_error(slot->socket, slot->routing, slot->routing_bytes, slot->version, ask->kind,
               slot->request_id, body);
    free_slot(slot->socket->bus, slot);
}

void pd_ask_reply(pd_ask_t *ask, json_t *body)
{
    ask_slot_t *slot = ending(ask);
    const mcp_field_t *table;
    const char *field = NULL;
    mcp_frame_t frame;
    zmq_msg_t message;
    pd_status_t status;
    size_t count = 0, bytes = 0;

    if (slot == NULL) {
        json_decref(body);
        return;
    }
    table = mcp_body_table(MCP_KIND_REPLY(ask->kind), &count);
    if (body == NULL || table == NULL || mcp_body_check(body, table, count, &field) != MCP_OK) {
        json_decref(body);
        pd_log(PD_LOG_ERR, 1113, "an answer to %s breaks the protocol (field %s): refused instead",
               mcp_kind_text(ask->kind), field == NULL ? "unknown" : field);
        pd_ask_refuse(ask, MCP_CODE_INTERNAL, "the answer could not be built", NULL, NULL);
        return;
    }
    status = body_message(body, &message, &bytes);
    if (status != PD_OK) {
        pd_log(PD_LOG_ERR, 1114, "an answer to %s could not be built: %s", mcp_kind_text(ask->kind),
               pd_status_text(status));
        pd_ask_refuse(ask, status == PD_E_FULL ? MCP_CODE_TOO_LARGE : MCP_CODE_INTERNAL,
                      status == PD_E_FULL ? "the answer is larger than a message may be"
                                          : "out of memory",
                      status == PD_E_FULL ? "ask for less, as with limit" : NULL, NULL);
        return;
    }
    frame = reply_frame(ask->core, slot->version, ask->kind, 0, slot->request_id, bytes);
    send_reply(slot->socket, slot->routing, slot->routing_bytes, &frame, &message);
    free_slot(slot->socket->bus, slot);
}

void pd_ask_reply_raw(pd_ask_t *ask, const void *bytes, size_t count, int more)
{
    ask_slot_t *slot = ending(ask);
    mcp_frame_t frame;
    zmq_msg_t message;

    if (slot == NULL) {
        return;
    }
    if (count > MCP_MAX_BLOB_PART || zmq_msg_init_size(&message, count) != 0) {
        pd_ask_refuse(ask, MCP_CODE_INTERNAL, "the part could not be built", NULL, NULL);
        return;
    }
    if (count > 0) {
        memcpy(zmq_msg_data(&message), bytes, count);
    }
    frame = reply_frame(ask->core, slot->version, ask->kind,
                        MCP_FLAG_RAW | (more ? MCP_FLAG_MORE : 0u), slot->request_id, count);
    send_reply(slot->socket, slot->routing, slot->routing_bytes, &frame, &message);
    free_slot(slot->socket->bus, slot);
}

/* --- questions ------------------------------------------------------------- */

typedef struct parts {
    zmq_msg_t routing, header, body;
    size_t count; /* frames behind the routing id; two are kept, the rest only counted */
} parts_t;

static ask_slot_t *take_slot(pd_bus_t *bus)
{
    ask_slot_t *slot = bus->free_slots;

    if (bus->waiting >= PD_BUS_MAX_ASKS) {
        return NULL;
    }
    if (slot != NULL) {
        bus->free_slots = slot->next;
        slot->next = NULL;
    } else {
        slot = calloc(1, sizeof *slot);
        if (slot == NULL) {
            return NULL;
        }
        slot->next_of_all = bus->all_slots;
        bus->all_slots = slot;
    }
    slot->ask.pool = NULL;
    if (apr_pool_create_unmanaged_ex(&slot->ask.pool, NULL, bus->allocator) != APR_SUCCESS) {
        slot->next = bus->free_slots;
        bus->free_slots = slot;
        return NULL;
    }
    slot->is_waiting = 1;
    bus->waiting++;
    return slot;
}

/* Hands a judged question to its handler; inbound->body is stolen. */
static void run_ask(bus_socket_t *socket, parts_t *parts, pd_inbound_t *inbound)
{
    pd_bus_t *bus = socket->bus;
    ask_slot_t *slot = take_slot(bus);

    if (slot == NULL) {
        json_decref(inbound->body);
        send_error(socket, zmq_msg_data(&parts->routing), zmq_msg_size(&parts->routing),
                   inbound->frame.version, inbound->frame.kind, inbound->frame.request_id,
                   error_body(MCP_CODE_OVERLOADED, "too many questions wait for their answer",
                              "ask again in a moment", NULL));
        return;
    }
    slot->socket = socket;
    slot->request_id = inbound->frame.request_id;
    slot->version = inbound->frame.version;
    slot->routing_bytes = (unsigned char)zmq_msg_size(&parts->routing);
    memcpy(slot->routing, zmq_msg_data(&parts->routing), slot->routing_bytes);
    slot->ask.core = bus->core;
    slot->ask.kind = inbound->frame.kind;
    slot->ask.body = inbound->body;
    slot->ask.deadline = pd_boot_in((int64_t)inbound->frame.budget_ms);
    slot->ask.route = slot;
    inbound->row->handler(&slot->ask);
}

static void take_message(bus_socket_t *socket, parts_t *parts)
{
    pd_bus_t *bus = socket->bus;
    pd_inbound_t inbound;

    bus->counts.received++;
    if (parts->count != MCP_FRAMES || zmq_msg_size(&parts->routing) > ROUTING_MAX) {
        bus->counts.frames++;
        return;
    }
    if (!pd_curve_admits(bus->curve, zmq_msg_gets(&parts->header, "User-Id"))) {
        bus->counts.strangers++;
        return;
    }
    switch (pd_dispatch_judge(zmq_msg_data(&parts->header), zmq_msg_size(&parts->header),
                              zmq_msg_data(&parts->body), zmq_msg_size(&parts->body),
                              bus->core->generation,
                              bus->core->is_draining ? PD_STATE_DRAINING : PD_STATE_READY,
                              &inbound)) {
    case PD_VERDICT_RUN:
        run_ask(socket, parts, &inbound);
        break;
    case PD_VERDICT_REFUSE:
        pd_log(PD_LOG_DEBUG, 1115, "a question (%s) is refused: %s", mcp_kind_text(inbound.frame.kind),
               inbound.fault.message);
        send_error(socket, zmq_msg_data(&parts->routing), zmq_msg_size(&parts->routing),
                   inbound.fault.code == MCP_CODE_UNSUPPORTED ? MCP_VERSION : inbound.frame.version,
                   inbound.frame.kind, inbound.frame.request_id,
                   error_body(inbound.fault.code, inbound.fault.message, inbound.fault.hint, NULL));
        break;
    case PD_VERDICT_DROP:
        bus->counts.headers++;
        break;
    default:
        break;
    }
}

static int receive_part(void *socket, zmq_msg_t *part)
{
    int got;

    do {
        got = zmq_msg_recv(part, socket, ZMQ_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? -1 : 0;
}

/* One whole message; -1 when none waits. Frames beyond the second are read into one place and let go. */
static int receive(void *socket, parts_t *parts)
{
    zmq_msg_t spill, *to[] = {&parts->routing, &parts->header, &parts->body, &spill};
    size_t i = 0;
    int status = 0, more = 1;

    parts->count = 0;
    (void)zmq_msg_init(&spill); /* always succeeds, says its manual */
    while (more && status == 0) {
        zmq_msg_t *part = to[i < 3 ? i : 3];

        status = receive_part(socket, part);
        if (status == 0) {
            more = zmq_msg_more(part);
            i++;
        }
    }
    (void)zmq_msg_close(&spill); /* initialised above */
    parts->count = i == 0 ? 0 : i - 1;
    return i == 0 ? -1 : 0;
}

/* A batch of one socket; when more waits, the loop is told to come back. */
static void drain(bus_socket_t *socket)
{
    parts_t parts;
    int i;

    for (i = 0; i < BATCH; i++) {
        int status;

        (void)zmq_msg_init(&parts.routing); /* always succeeds, says its manual */
        (void)zmq_msg_init(&parts.header);
        (void)zmq_msg_init(&parts.body);
        status = receive(socket->zmq, &parts);
        if (status == 0) {
            take_message(socket, &parts);
        }
        (void)zmq_msg_close(&parts.routing); /* initialised above */
        (void)zmq_msg_close(&parts.header);
        (void)zmq_msg_close(&parts.body);
        if (status != 0) {
            return;
        }
    }
    pd_loop_wake(socket->bus->core->loop);
}

static void on_readable(int fd, short revents, void *baton)
{
    (void)fd;
    (void)revents; /* the descriptor says only that ZMQ_EVENTS is worth a look */
    drain(baton);
}

/* 1 if a socket had something to read. */
static int drain_all(pd_bus_t *bus)
{
    int had_any = 0;
    size_t i;

    for (i = 0; i < bus->socket_count; i++) {
        int events = 0;
        size_t bytes = sizeof events;

        if (zmq_getsockopt(bus->sockets[i].zmq, ZMQ_EVENTS, &events, &bytes) == 0 &&
            (events & ZMQ_POLLIN) != 0) {
            drain(&bus->sockets[i]);
            had_any = 1;
        }
    }
    return had_any;
}

/* A handler of one socket's question may answer at another socket and swallow an edge there: the round
 * ends only when none of them has anything, or the loop is told to come back. */
static void before_poll(void *baton)
{
    pd_bus_t *bus = baton;
    int round;

    for (round = 0; round < 4; round++) {
        if (!drain_all(bus)) {
            return;
        }
    }
    pd_loop_wake(bus->core->loop);
}

/* What was dropped in the last minute; nothing when nothing was. */
static void report(void *baton)
{
    pd_bus_t *bus = baton;
    const pd_bus_counts_t *now = &bus->counts, *was = &bus->reported;
    uint64_t frames = now->frames - was->frames, headers = now->headers - was->headers;
    uint64_t strangers = now->strangers - was->strangers;
    uint64_t gone = now->gone - was->gone, stuck = now->stuck - was->stuck;

    if (frames + headers + strangers + stuck > 0) {
        pd_log(PD_LOG_WARNING, 1116,
               "in the last minute: dropped %llu messages of another count of frames, %llu without a "
               "header, %llu of keys off the list; %llu answers to full queues, %llu to askers that left",
               (unsigned long long)frames, (unsigned long long)headers, (unsigned long long)strangers,
               (unsigned long long)stuck, (unsigned long long)gone);
    } else if (gone > 0) {
        pd_log(PD_LOG_INFO, 1117, "in the last minute: %llu answers to askers that had left",
               (unsigned long long)gone);
    }
    bus->reported = bus->counts;
}

/* --- life ------------------------------------------------------------------ */

static const char *key_file(const pd_bus_t *bus, const char *name, apr_pool_t *pool)
{
    return apr_pstrcat(pool, bus->core->config->key_dir, "/", name, NULL);
}

static pd_status_t make_allocator(pd_bus_t *bus)
{
    apr_thread_mutex_t *mutex = NULL;

    if (apr_allocator_create(&bus->allocator) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    apr_allocator_max_free_set(bus->allocator, MAX_FREE_BYTES);
    if (apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT, bus->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    apr_allocator_mutex_set(bus->allocator, mutex);
    return PD_OK;
}

static pd_status_t load_allow(const pd_bus_t *bus, pd_curve_allow_t **ret, char *why, size_t size)
{
    apr_pool_t *scratch = NULL;
    pd_status_t status;

    if (apr_pool_create(&scratch, bus->pool) != APR_SUCCESS) {
        return refuse(why, size, PD_E_NOMEM, "out of memory");
    }
    status = pd_curve_allow_load(key_file(bus, "clients.allow", scratch), ret, why, size);
    if (status == PD_OK && pd_curve_allow_count(*ret) == 0) {
        pd_log(PD_LOG_WARNING, 1118, "%s names no key: no httpd is let in",
               key_file(bus, "clients.allow", scratch));
    }
    apr_pool_destroy(scratch);
    return status;
}

pd_status_t pd_bus_new(pd_core_t *core, pd_bus_t **ret, char *why, size_t size)
{
    pd_bus_t *bus = calloc(1, sizeof *bus);
    pd_curve_allow_t *allow = NULL;
    pd_status_t status = PD_E_NOMEM;

    if (bus == NULL) {
        return refuse(why, size, PD_E_NOMEM, "out of memory");
    }
    bus->core = core;
    if (apr_pool_create(&bus->pool, core->pool) != APR_SUCCESS || make_allocator(bus) != PD_OK) {
        status = refuse(why, size, PD_E_NOMEM, "out of memory");
        goto failed;
    }
    status = pd_curve_load(key_file(bus, "server.key", bus->pool), &bus->keys, why, size);
    if (status == PD_OK) {
        status = load_allow(bus, &allow, why, size);
    }
    if (status != PD_OK) {
        goto failed;
    }
    bus->context = zmq_ctx_new();
    if (bus->context == NULL) {
        pd_curve_allow_free(&allow);
        status = refuse(why, size, PD_E_SYSTEM, "no ZeroMQ context: %s", zmq_strerror(zmq_errno()));
        goto failed;
    }
    status = pd_curve_start(bus->context, allow, &bus->curve);
    if (status != PD_OK) {
        (void)refuse(why, size, status, "the authentication handler does not start");
        goto failed;
    }
    *ret = bus;
    return PD_OK;

failed:
    pd_bus_free(&bus);
    return status;
}

typedef struct int_option {
    int name, value;
    int is_tcp_only;
} int_option_t;

static const int_option_t options[] = {
    {ZMQ_ROUTER_MANDATORY, 1, 0},    /* a reply to nobody is an error that is counted, not silence */
    {ZMQ_CURVE_SERVER, 1, 0},        /* on ipc too: a mode can't tell httpd from a CGI of its uid */
    {ZMQ_LINGER, 500, 0},            /* ms for answers under way at exit; the default is for ever */
    {ZMQ_HANDSHAKE_IVL, 5000, 0},    /* ms: half-open connections do not pile up */
    {ZMQ_RCVHWM, 256, 0},            /* messages of one asker that wait here */
    {ZMQ_SNDHWM, 1000, 0},           /* answers that one asker leaves unread */
    {ZMQ_BACKLOG, 512, 0},           /* a graceful restart connects all children at once */
    {ZMQ_IPV6, 1, 1},
    {ZMQ_TCP_KEEPALIVE, 1, 1},       /* a host that vanished gives its descriptors back */
    {ZMQ_TCP_KEEPALIVE_IDLE, 60, 1}, /* s */
};

static pd_status_t set_options(const pd_bus_t *bus, void *socket, int is_tcp)
{
    /* a body at its limit is judged by us and answered; only what is far beyond cuts the connection */
    int64_t max_bytes = (int64_t)MCP_MAX_BODY_BYTES + 65536;
    size_t i;

    for (i = 0; i < sizeof options / sizeof options[0]; i++) {
        if ((!options[i].is_tcp_only || is_tcp) &&
            zmq_setsockopt(socket, options[i].name, &options[i].value, sizeof options[i].value) != 0) {
            return PD_E_SYSTEM;
        }
    }
    if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes) != 0 ||
        zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "mcp", 3) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, bus->keys.secret_key, PD_CURVE_TEXT) != 0) {
        return PD_E_SYSTEM;
    }
    return PD_OK;
}

static pd_status_t bind_one(pd_bus_t *bus, const char *endpoint, char *why, size_t size)
{
    bus_socket_t *socket = &bus->sockets[bus->socket_count];
    const char *path = strncmp(endpoint, "ipc://", 6) == 0 ? endpoint + 6 : NULL;
    size_t bytes = sizeof socket->fd;
    mode_t before;
    int bound;

    /* libzmq unlinks whatever is there before it binds: a live daemon would lose its endpoint in silence */
    if (path != NULL && pd_socket_is_live(path)) {
        return refuse(why, size, PD_E_LOCKED,
                      "%s: another process answers there; stop it, or configure another query_endpoint",
                      endpoint);
    }
    memset(socket, 0, sizeof *socket);
    socket->bus = bus;
    socket->fd = -1;
    socket->zmq = zmq_socket(bus->context, ZMQ_ROUTER);
    if (socket->zmq == NULL) {
        return refuse(why, size, PD_E_SYSTEM, "%s: no socket: %s", endpoint,
                      zmq_strerror(zmq_errno()));
    }
    bus->socket_count++; /* from here on pd_bus_free() closes it */
    if (set_options(bus, socket->zmq, path == NULL) != PD_OK) {
        return refuse(why, size, PD_E_SYSTEM, "%s: an option is refused: %s", endpoint,
                      zmq_strerror(zmq_errno()));
    }
    before = umask(0117);
    bound = zmq_bind(socket->zmq, endpoint);
    (void)umask(before); /* cannot fail */
    if (bound != 0) {
        return refuse(why, size, PD_E_SYSTEM, "%s: cannot be bound: %s", endpoint,
                      zmq_strerror(zmq_errno()));
    }
    socket->path = path;
    if (path != NULL) {
        pd_status_t status = pd_socket_share(path, bus->core->config->httpd_group, why, size);

        if (status != PD_OK) {
            return status;
        }
    }
    if (zmq_getsockopt(socket->zmq, ZMQ_FD, &socket->fd, &bytes) != 0 ||
        pd_loop_watch(bus->core->loop, socket->fd, POLLIN, on_readable, socket) != PD_OK) {
        socket->fd = -1;
        return refuse(why, size, PD_E_SYSTEM, "%s: cannot be watched", endpoint);
    }
    return PD_OK;
}

pd_status_t pd_bus_bind(pd_bus_t *bus, char *why, size_t size)
{
    const apr_array_header_t *endpoints = bus->core->config->query_endpoints;
    pd_status_t status;
    int i;

    for (i = 0; i < endpoints->nelts && i < PD_CONFIG_MAX_ENDPOINTS; i++) {
        status = bind_one(bus, APR_ARRAY_IDX(endpoints, i, const char *), why, size);
        if (status != PD_OK) {
            return status;
        }
    }
    mcp_wipe(bus->keys.secret_key, sizeof bus->keys.secret_key); /* libzmq has its copies */
    status = pd_loop_prepare(bus->core->loop, before_poll, bus);
    bus->timer = pd_loop_every(bus->core->loop, REPORT_MS, report, bus);
    if (status != PD_OK || bus->timer < 0) {
        return refuse(why, size, PD_E_FULL, "the loop has no room for the link");
    }
    return PD_OK;
}

pd_status_t pd_bus_reload(pd_bus_t *bus, char *why, size_t size)
{
    pd_curve_allow_t *allow = NULL;
    pd_status_t status = load_allow(bus, &allow, why, size);

    if (status == PD_OK) {
        pd_curve_swap(bus->curve, allow);
    }
    return status;
}

size_t pd_bus_waiting(const pd_bus_t *bus)
{
    return bus->waiting;
}

const pd_bus_counts_t *pd_bus_counts(const pd_bus_t *bus)
{
    return &bus->counts;
}

static void free_asks(pd_bus_t *bus)
{
    ask_slot_t *slot = bus->all_slots;

    while (slot != NULL) {
        ask_slot_t *next = slot->next_of_all;

        if (slot->is_waiting) {
            free_slot(bus, slot);
        }
        free(slot);
        slot = next;
    }
}

void pd_bus_free(pd_bus_t **bus)
{
    pd_bus_t *gone = bus == NULL ? NULL : *bus;
    size_t i;

    if (gone == NULL) {
        return;
    }
    *bus = NULL;
    pd_loop_cancel(gone->core->loop, gone->timer);
    for (i = 0; i < gone->socket_count; i++) {
        pd_loop_unwatch(gone->core->loop, gone->sockets[i].fd);
        (void)zmq_close(gone->sockets[i].zmq); /* fails for no socket that is one */
        if (gone->sockets[i].path != NULL) {
            (void)unlink(gone->sockets[i].path); /* libzmq leaves it; absent: nobody minds */
        }
    }
    gone->socket_count = 0;
    if (gone->context != NULL) {
        /* ends the handler's wait, then waits for its socket and for answers under way (LINGER) */
        while (zmq_ctx_term(gone->context) != 0 && zmq_errno() == EINTR) {
        }
    }
    pd_curve_join(&gone->curve);
    mcp_wipe(&gone->keys, sizeof gone->keys);
    free_asks(gone);
    if (gone->allocator != NULL) {
        apr_allocator_mutex_set(gone->allocator, NULL); /* its pool goes first */
        apr_allocator_destroy(gone->allocator);
    }
    if (gone->pool != NULL) {
        apr_pool_destroy(gone->pool);
    }
    free(gone);
}
