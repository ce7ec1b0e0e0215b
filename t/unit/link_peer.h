/* A policyd of the tests' own for the module's end of the link: a real ROUTER socket under CURVE with a thread of its own, which
 * answers as a handler of the test says, and therefore also wrongly. Handlers run on the peer's thread: they assert nothing, they
 * count. */
#ifndef LINK_PEER_H
#define LINK_PEER_H

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
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "../../mod_mcp/mcp_ask.h"
#include "../../mod_mcp/mcp_link.h"
#include "../../policyd/pd_curve.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"
#include "../../proto/mcp_kind_text.h"

#define UNUSED         __attribute__((unused))
#define PEER_WATCHDOG_S 120
#define PEER_ROUTING   256
#define PEER_KINDS     70

typedef struct peer peer_t;

/* A question as it came. */
typedef struct peer_question {
    unsigned char routing[PEER_ROUTING];
    size_t routing_bytes;
    mcp_frame_t frame;
    json_t *body;
} peer_question_t;

typedef void peer_fn(peer_t *peer, const peer_question_t *question);

struct peer {
    void *context, *socket;
    pd_curve_t *curve;
    pthread_t thread;
    int stop_fd;
    char endpoint[96];
    pthread_mutex_t mutex; /* guards handler and on_idle */
    peer_fn *handler;
    void (*on_idle)(peer_t *peer); /* when nothing came for 2 ms; NULL: never */
    void *baton;                   /* the test's */
    _Atomic uint64_t generation;
    _Atomic int asked[PEER_KINDS]; /* questions by kind */
    _Atomic int last_child_running; /* ids in the last beat */
};

/* Keys of a test: one server pair for all its peers, one client pair that they let in. */
static pd_curve_pair_t peer_server_keys, peer_client_keys;

static UNUSED int64_t peer_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- answering ------------------------------------------------------------------- */

/* Sends frames as they are. */
static UNUSED void peer_send(peer_t *peer, const peer_question_t *question, const void *const *parts,
                             const size_t *bytes, size_t count)
{
    size_t i;

    (void)zmq_send(peer->socket, question->routing, question->routing_bytes, ZMQ_SNDMORE);
    for (i = 0; i < count; i++) {
        (void)zmq_send(peer->socket, parts[i], bytes[i], i + 1 < count ? ZMQ_SNDMORE : 0);
    }
}

/* The frame that an honest answer to the question has. */
static UNUSED mcp_frame_t peer_frame(const peer_t *peer, const peer_question_t *question,
                                     uint32_t flags)
{
    mcp_frame_t frame;

    memset(&frame, 0, sizeof(frame));
    frame.version = MCP_VERSION;
    frame.kind = MCP_KIND_REPLY(question->frame.kind);
    frame.flags = flags;
    frame.request_id = question->frame.request_id;
    frame.generation = atomic_load(&peer->generation);
    return frame;
}

static UNUSED void peer_send_frame(peer_t *peer, const peer_question_t *question, mcp_frame_t frame,
                                   const void *body, size_t body_bytes)
{
    unsigned char header[MCP_HEADER_BYTES];
    const void *parts[2];
    size_t bytes[2];

    frame.body_bytes = (uint32_t)body_bytes;
    (void)mcp_frame_encode(&frame, header, sizeof(header)); /* has the size */
    parts[0] = header;
    parts[1] = body;
    bytes[0] = sizeof(header);
    bytes[1] = body_bytes;
    peer_send(peer, question, parts, bytes, 2);
}

static UNUSED void peer_reply_flags(peer_t *peer, const peer_question_t *question, json_t *body,
                                    uint32_t flags)
{
    size_t bytes = 0;
    char *text = mcp_json_text(body, &bytes);

    peer_send_frame(peer, question, peer_frame(peer, question, flags), text, bytes);
    free(text);
    json_decref(body);
}

/* body: stolen. */
static UNUSED void peer_reply(peer_t *peer, const peer_question_t *question, json_t *body)
{
    peer_reply_flags(peer, question, body, 0);
}

static UNUSED void peer_refuse(peer_t *peer, const peer_question_t *question, const char *code)
{
    peer_reply_flags(peer, question, json_pack("{s:s,s:s}", "code", code, "message", "refused"),
                     MCP_FLAG_ERROR);
}

static UNUSED json_t *peer_hello_body(const peer_t *peer)
{
    return json_pack(
        "{s:i,s:s,s:o,s:i,s:[{s:s,s:s,s:b}],s:s}", "version", (int)MCP_VERSION, "software", "peer/1",
        "generation", json_sprintf("%llu", (unsigned long long)atomic_load(&peer->generation)),
        "beat_ms", MCP_BEAT_MS, "keys", "id", "k1", "key",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "current", 1, "control_prefix", "elaichi");
}

static UNUSED json_t *peer_plan_body(void)
{
    return json_pack("{s:s,s:i,s:{s:s,s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s},s:{},s:{},s:i,s:i,s:s}}", "audit",
                     "17-1", "revision", 3, "plan", "tool", "shop__get", "connection", "cxn_1",
                     "operation", "00", "guard", "00", "base", "https://shop.example", "auth", "type",
                     "header", "name", "Authorization", "value", "Bearer s3cret", "defaults", "frozen",
                     "timeout_ms", 1000, "max_bytes", 1000, "class", "read");
}

static UNUSED json_t *peer_resolve_body(const char *grant, const char *view)
{
    return json_pack("{s:i,s:s,s:s,s:b,s:i,s:s}", "revision", 3, "grant", grant, "member", "mem_1",
                     "may_execute", 1, "scopes", 15, "view", view);
}

/* Answers everything as policyd would, but for blobs: it has none. Questions of another generation are told to say hello. */
static UNUSED void peer_honest(peer_t *peer, const peer_question_t *question)
{
    static const char view[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    uint64_t generation = question->frame.generation;

    if (question->frame.kind != MCP_KIND_HELLO && generation != 0 &&
        generation != atomic_load(&peer->generation)) {
        peer_refuse(peer, question, "hello_required");
        return;
    }
    switch ((int)question->frame.kind) {
    case MCP_KIND_HELLO:
        peer_reply(peer, question, peer_hello_body(peer));
        break;
    case MCP_KIND_RESOLVE:
        peer_reply(peer, question, peer_resolve_body("grt_1", view));
        break;
    case MCP_KIND_CALL_BEGIN:
        peer_reply(peer, question, peer_plan_body());
        break;
    case MCP_KIND_CALL_END:
        peer_reply(peer, question, json_pack("{s:b}", "recorded", 1));
        break;
    case MCP_KIND_CHILD_BEAT:
        atomic_store(&peer->last_child_running,
                     (int)json_array_size(json_object_get(question->body, "running")));
        peer_reply(peer, question, json_pack("{s:s}", "generation", "1"));
        break;
    default:
        peer_refuse(peer, question, "not_found");
        break;
    }
}

static UNUSED void peer_silent(peer_t *peer, const peer_question_t *question)
{
    (void)peer;
    (void)question;
}

/* --- the peer's thread -------------------------------------------------------------- */

/* One message; 0 when it is no question, which the module never sends. */
static int peer_receive(peer_t *peer, peer_question_t *question)
{
    unsigned char header[MCP_HEADER_BYTES + 1];
    zmq_msg_t body;
    int routing = zmq_recv(peer->socket, question->routing, PEER_ROUTING, 0);
    int bytes = zmq_recv(peer->socket, header, sizeof(header), 0);
    int got;

    question->routing_bytes = routing > 0 ? (size_t)routing : 0;
    (void)zmq_msg_init(&body);
    got = zmq_msg_recv(&body, peer->socket, 0) >= 0 && bytes == (int)MCP_HEADER_BYTES &&
          mcp_frame_decode(header, (size_t)bytes, zmq_msg_size(&body), MCP_TO_POLICYD,
                           &question->frame) == MCP_OK &&
          mcp_body_parse(zmq_msg_data(&body), zmq_msg_size(&body), &question->body) == MCP_OK;
    (void)zmq_msg_close(&body);
    return got;
}

static void *peer_run(void *baton)
{
    peer_t *peer = baton;

    for (;;) {
        zmq_pollitem_t items[2];
        peer_fn *handler;
        void (*on_idle)(peer_t *);
        peer_question_t question;
        int ready;

        (void)pthread_mutex_lock(&peer->mutex);
        handler = peer->handler;
        on_idle = peer->on_idle;
        (void)pthread_mutex_unlock(&peer->mutex);
        memset(items, 0, sizeof(items));
        items[0].socket = peer->socket;
        items[0].events = ZMQ_POLLIN;
        items[1].fd = peer->stop_fd;
        items[1].events = ZMQ_POLLIN;
        ready = zmq_poll(items, 2, on_idle != NULL ? 2 : 50);
        if ((items[1].revents & ZMQ_POLLIN) != 0) {
            return NULL;
        }
        if (ready == 0 && on_idle != NULL) {
            on_idle(peer);
        }
        if ((items[0].revents & ZMQ_POLLIN) == 0) {
            continue;
        }
        memset(&question, 0, sizeof(question));
        if (peer_receive(peer, &question)) {
            (void)pthread_mutex_lock(&peer->mutex);
            handler = peer->handler; /* set before the question was asked, perhaps after the poll began */
            (void)pthread_mutex_unlock(&peer->mutex);
            atomic_fetch_add(&peer->asked[question.frame.kind % PEER_KINDS], 1);
            handler(peer, &question);
        }
        json_decref(question.body);
    }
}

/* --- life ------------------------------------------------------------------------------ */

static UNUSED void peer_set(peer_t *peer, peer_fn *handler)
{
    (void)pthread_mutex_lock(&peer->mutex);
    peer->handler = handler;
    (void)pthread_mutex_unlock(&peer->mutex);
}

static UNUSED int peer_asked(peer_t *peer, mcp_kind_t kind)
{
    return atomic_load(&peer->asked[(int)kind]);
}

static void peer_bind(peer_t *peer, const char *endpoint)
{
    int is_server = 1;
    int linger = 0;
    size_t bytes = sizeof(peer->endpoint);

    peer->socket = zmq_socket(peer->context, ZMQ_ROUTER);
    assert_non_null(peer->socket);
    assert_int_equal(zmq_setsockopt(peer->socket, ZMQ_LINGER, &linger, sizeof(linger)), 0);
    assert_int_equal(zmq_setsockopt(peer->socket, ZMQ_CURVE_SERVER, &is_server, sizeof(is_server)),
                     0);
    assert_int_equal(zmq_setsockopt(peer->socket, ZMQ_ZAP_DOMAIN, "mcp", 3), 0);
    assert_int_equal(
        zmq_setsockopt(peer->socket, ZMQ_CURVE_SECRETKEY, peer_server_keys.secret_key, 41), 0);
    assert_int_equal(zmq_bind(peer->socket, endpoint), 0);
    assert_int_equal(zmq_getsockopt(peer->socket, ZMQ_LAST_ENDPOINT, peer->endpoint, &bytes), 0);
}

/* endpoint NULL: a free port of the loopback. */
static UNUSED peer_t *peer_open(const char *endpoint, peer_fn *handler)
{
    peer_t *peer = calloc(1, sizeof(*peer));
    pd_curve_allow_t *allow = NULL;
    char text[64];
    char why[256] = "";

    assert_non_null(peer);
    (void)pthread_mutex_init(&peer->mutex, NULL);
    peer->handler = handler;
    atomic_store(&peer->generation, 7);
    peer->stop_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(peer->stop_fd >= 0);
    (void)snprintf(text, sizeof(text), "%s\n", peer_client_keys.public_key);
    assert_int_equal(pd_curve_allow_parse("allow", text, strlen(text), &allow, why, sizeof(why)),
                     PD_OK);
    peer->context = zmq_ctx_new();
    assert_non_null(peer->context);
    assert_int_equal(pd_curve_start(peer->context, allow, &peer->curve), PD_OK);
    peer_bind(peer, endpoint != NULL ? endpoint : "tcp://127.0.0.1:*");
    assert_int_equal(pthread_create(&peer->thread, NULL, peer_run, peer), 0);
    return peer;
}

static UNUSED void peer_close(peer_t **peer)
{
    peer_t *gone = *peer;
    uint64_t one = 1;

    *peer = NULL;
    if (gone == NULL) {
        return;
    }
    if (write(gone->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one)) {
        (void)pthread_join(gone->thread, NULL);
    }
    (void)zmq_close(gone->socket);
    (void)zmq_ctx_term(gone->context);
    pd_curve_join(&gone->curve);
    (void)close(gone->stop_fd);
    (void)pthread_mutex_destroy(&gone->mutex);
    free(gone);
}

/* --- the module's end --------------------------------------------------------------------- */

static UNUSED mcp_link_keys_t peer_link_keys(void)
{
    mcp_link_keys_t keys;

    (void)snprintf(keys.server_public, sizeof(keys.server_public), "%s", peer_server_keys.public_key);
    (void)snprintf(keys.client_public, sizeof(keys.client_public), "%s", peer_client_keys.public_key);
    (void)snprintf(keys.client_secret, sizeof(keys.client_secret), "%s", peer_client_keys.secret_key);
    return keys;
}

/* A link to these endpoints (NULL-terminated). */
static UNUSED mcp_link_t *peer_link_to(const char *const *endpoints, const mcp_link_keys_t *keys,
                                       int max_sockets, apr_pool_t *pool)
{
    apr_array_header_t *array = apr_array_make(pool, 2, sizeof(const char *));
    mcp_link_t *link = NULL;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    for (; *endpoints != NULL; endpoints++) {
        APR_ARRAY_PUSH(array, const char *) = *endpoints;
    }
    assert_int_equal(mcp_link_create(array, keys, max_sockets, pool, &link, &err), APR_SUCCESS);
    return link;
}

static UNUSED mcp_link_t *peer_link(const peer_t *peer, int max_sockets, apr_pool_t *pool)
{
    const char *endpoints[2] = {peer->endpoint, NULL};
    mcp_link_keys_t keys = peer_link_keys();

    return peer_link_to(endpoints, &keys, max_sockets, pool);
}

static UNUSED mcp_ask_t *peer_ask(mcp_link_t *link, apr_pool_t *pool)
{
    mcp_ask_identity_t identity;
    mcp_ask_t *ask = NULL;

    memset(&identity, 0, sizeof(identity));
    identity.resources = apr_array_make(pool, 1, sizeof(const char *));
    identity.max_calls = 8;
    assert_int_equal(mcp_ask_create(link, &identity, &ask), APR_SUCCESS);
    return ask;
}

/* Once a test program. */
static UNUSED int peer_setup(void **state)
{
    (void)state;
    (void)alarm(PEER_WATCHDOG_S);
    return apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK ||
           pd_curve_make(&peer_server_keys) != PD_OK || pd_curve_make(&peer_client_keys) != PD_OK;
}

static UNUSED int peer_teardown(void **state)
{
    (void)state;
    apr_terminate();
    return 0;
}

#endif
