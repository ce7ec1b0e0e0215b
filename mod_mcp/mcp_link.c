/* The link to policyd: see mcp_link.h.
 *
 * DEALER sockets are kept in idle lists, one list an endpoint; a question checks a socket out, uses it alone for one round
 * trip and hands it back under the mutex, which is the full barrier libzmq asks for. A socket goes back only after a
 * complete reply with the right id; anything else closes it, so that a late reply can't answer the next question. */
#include "mcp_link.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <apr_strings.h>
#include <zmq.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"

#define MAX_ENDPOINTS  8
#define BACKOFF_MS     500 /* a silent endpoint is passed over so long, where there is another; doubled each time */
#define BACKOFF_MAX_MS 16000
#define HANDSHAKE_MS   2000
#define RECONNECT_MS   20
#define RECONNECT_MAX_MS 500

typedef struct idle_socket {
    void *socket;
    struct idle_socket *next;
} idle_socket_t;

typedef struct endpoint {
    char *address;
    idle_socket_t *idle;
    int64_t silent_until_ms; /* boot clock */
    int64_t backoff_ms;      /* of the last silence; 0 after an answer */
} endpoint_t;

struct mcp_link {
    pid_t pid;       /* whose context this is: a fork's copy is silently dead */
    void *context;
    mcp_link_keys_t keys;
    int count;
    endpoint_t endpoints[MAX_ENDPOINTS];
    int max_sockets;
    pthread_mutex_t mutex; /* guards the endpoints' lists and silences and what follows; never held across I/O */
    pthread_cond_t returned;
    int open;        /* sockets that exist, idle or not */
    int asking;      /* threads inside mcp_link_ask() */
    uint64_t next_id;
    int is_shut;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static apr_status_t unavailable(mcp_err_t *err, apr_pool_t *pool, const char *log)
{
    (void)mcp_err_set(err, pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE,
                      "try again in a moment", "the policy service is not available");
    if (err != NULL) {
        err->log = log;
    }
    return MCP_STATUS_REFUSED;
}

static apr_status_t closed(mcp_err_t *err, apr_pool_t *pool, const char *log)
{
    (void)unavailable(err, pool, log);
    if (err != NULL) {
        err->status = MCP_STATUS_CLOSED;
    }
    return MCP_STATUS_CLOSED;
}

/* --- the key file --------------------------------------------------------------- */

/* 40 characters of the alphabet, each five of them a number of 32 bits: else libzmq refuses the key at every socket. */
static int is_z85(const char *text, size_t bytes)
{
    static const char alphabet[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    uint64_t number = 0;
    size_t i;

    if (bytes != 40) {
        return 0;
    }
    for (i = 0; i < bytes; i++) {
        const char *place = text[i] != '\0' ? strchr(alphabet, text[i]) : NULL;

        if (place == NULL) {
            return 0;
        }
        number = (i % 5 == 0 ? 0 : number * 85) + (uint64_t)(place - alphabet);
        if (number > UINT32_MAX) {
            return 0;
        }
    }
    return 1;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* One line "name = value" into its member; 0 when it is not one of ours or is doubled. */
static int take_key(mcp_link_keys_t *keys, const char *name, size_t name_bytes, const char *value,
                    size_t value_bytes)
{
    struct {
        const char *name;
        char *to;
    } rows[3];
    size_t i;

    rows[0].name = "server_public";
    rows[0].to = keys->server_public;
    rows[1].name = "client_public";
    rows[1].to = keys->client_public;
    rows[2].name = "client_secret";
    rows[2].to = keys->client_secret;
    for (i = 0; i < 3; i++) {
        if (strlen(rows[i].name) == name_bytes && memcmp(rows[i].name, name, name_bytes) == 0) {
            if (rows[i].to[0] != '\0' || !is_z85(value, value_bytes)) {
                return 0;
            }
            memcpy(rows[i].to, value, value_bytes);
            return 1;
        }
    }
    return 0;
}

apr_status_t mcp_link_parse_keys(const char *text, size_t bytes, mcp_link_keys_t *ret, apr_pool_t *pool,
                                 mcp_err_t *err)
{
    mcp_link_keys_t keys;
    size_t at = 0;
    int line = 0;

    memset(&keys, 0, sizeof(keys));
    while (at < bytes) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end != NULL ? (size_t)(end - text) - at : bytes - at;
        const char *from = text + at;
        const char *equals = memchr(from, '=', length);
        size_t name;

        line++;
        at += length + 1;
        while (length > 0 && is_blank(from[length - 1])) {
            length--;
        }
        if (length == 0 || from[0] == '#') {
            continue;
        }
        name = equals != NULL ? (size_t)(equals - from) : 0;
        while (name > 0 && is_blank(from[name - 1])) {
            name--;
        }
        if (equals != NULL) {
            equals++;
            while ((size_t)(equals - from) < length && is_blank(*equals)) {
                equals++;
            }
        }
        if (equals == NULL ||
            !take_key(&keys, from, name, equals, length - (size_t)(equals - from))) {
            mcp_wipe(&keys, sizeof(keys));
            return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                               "line %d is not one of server_public, client_public, client_secret = "
                               "40 characters of Z85", line);
        }
    }
    if (keys.server_public[0] == '\0' || keys.client_public[0] == '\0' ||
        keys.client_secret[0] == '\0') {
        mcp_wipe(&keys, sizeof(keys));
        return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "server_public, client_public and client_secret are all needed "
                           "(policyd --init writes such a file)");
    }
    *ret = keys;
    mcp_wipe(&keys, sizeof(keys));
    return APR_SUCCESS;
}

/* --- life ------------------------------------------------------------------------ */

apr_status_t mcp_link_create(const apr_array_header_t *endpoints, const mcp_link_keys_t *keys,
                             int max_sockets, apr_pool_t *pool, mcp_link_t **ret, mcp_err_t *err)
{
    pthread_condattr_t attributes;
    mcp_link_t *link;
    int i;

    if (endpoints->nelts == 0 || endpoints->nelts > MAX_ENDPOINTS) {
        return unavailable(err, pool, "between one and eight policyd endpoints are needed");
    }
    link = calloc(1, sizeof(*link));
    if (link == NULL) {
        return unavailable(err, pool, "out of memory");
    }
    link->pid = getpid();
    link->keys = *keys;
    link->max_sockets = max_sockets > 0 ? max_sockets : 1;
    mcp_random(&link->next_id, sizeof(link->next_id));
    (void)pthread_mutex_init(&link->mutex, NULL); /* default attributes: can't fail on Linux */
    (void)pthread_condattr_init(&attributes);      /* nor can these */
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&link->returned, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    for (i = 0; i < endpoints->nelts; i++) {
        link->endpoints[i].address = strdup(APR_ARRAY_IDX(endpoints, i, const char *));
        if (link->endpoints[i].address == NULL) {
            mcp_link_close(link);
            return unavailable(err, pool, "out of memory");
        }
        link->count++;
    }
    link->context = zmq_ctx_new();
    if (link->context == NULL) {
        mcp_link_close(link);
        return unavailable(err, pool, "no ZeroMQ context");
    }
    (void)zmq_ctx_set(link->context, ZMQ_IO_THREADS, 1);
    /* closed ones keep their slot until libzmq's reaper is done with them, which a busy machine delays: ours is the other bound */
    (void)zmq_ctx_set(link->context, ZMQ_MAX_SOCKETS, 2 * link->max_sockets + 1000);
    *ret = link;
    return APR_SUCCESS;
}

void mcp_link_shut(mcp_link_t *link)
{
    if (link == NULL || link->pid != getpid()) {
        return;
    }
    (void)pthread_mutex_lock(&link->mutex);
    link->is_shut = 1;
    (void)pthread_cond_broadcast(&link->returned);
    (void)pthread_mutex_unlock(&link->mutex);
    (void)zmq_ctx_shutdown(link->context);
}

int mcp_link_is_shut(mcp_link_t *link)
{
    int is_shut;

    if (link == NULL || link->pid != getpid()) {
        return 1;
    }
    (void)pthread_mutex_lock(&link->mutex);
    is_shut = link->is_shut;
    (void)pthread_mutex_unlock(&link->mutex);
    return is_shut;
}

int mcp_link_close(mcp_link_t *link)
{
    int is_in_use;
    int i;

    if (link == NULL || link->pid != getpid()) {
        return 1;
    }
    (void)pthread_mutex_lock(&link->mutex);
    link->is_shut = 1;
    for (i = 0; i < link->count; i++) {
        while (link->endpoints[i].idle != NULL) {
            idle_socket_t *idle = link->endpoints[i].idle;

            link->endpoints[i].idle = idle->next;
            (void)zmq_close(idle->socket); /* hands it to the reaper: no I/O of ours */
            free(idle);
            link->open--;
        }
    }
    is_in_use = link->open > 0 || link->asking > 0;
    (void)pthread_mutex_unlock(&link->mutex);
    if (is_in_use) {
        return 0; /* terminating would wait for its socket for ever; the process ends anyway */
    }
    if (link->context != NULL) {
        (void)zmq_ctx_term(link->context);
    }
    for (i = 0; i < link->count; i++) {
        free(link->endpoints[i].address);
    }
    mcp_wipe(&link->keys, sizeof(link->keys));
    (void)pthread_cond_destroy(&link->returned);
    (void)pthread_mutex_destroy(&link->mutex);
    free(link);
    return 1;
}

/* --- sockets ----------------------------------------------------------------------- */

/* All options and why. */
static int set_options(void *socket, const mcp_link_keys_t *keys)
{
    static const struct {
        int option;
        int value;
    } rows[] = {
        {ZMQ_LINGER, 0},       /* closing never waits for a peer that is gone */
        {ZMQ_IMMEDIATE, 1},    /* no question queues for a policyd that is not there */
        {ZMQ_SNDHWM, 8},       /* one question at a time: more would be a bug */
        {ZMQ_RCVHWM, 8},
        {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
        {ZMQ_RECONNECT_IVL, RECONNECT_MS},
        {ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_IPV6, 1}};
    /* a body at its limit is judged by us; CURVE wraps it in some bytes more, and only what is far beyond cuts the connection */
    int64_t max = (int64_t)MCP_MAX_BODY_BYTES + 65536;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (zmq_setsockopt(socket, rows[i].option, &rows[i].value, sizeof(rows[i].value)) != 0) {
            return 0;
        }
    }
    return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof(max)) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys->server_public, 41) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->client_public, 41) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->client_secret, 41) == 0;
}

static void *socket_new(mcp_link_t *link, int endpoint)
{
    void *socket = zmq_socket(link->context, ZMQ_DEALER);

    if (socket != NULL && (!set_options(socket, &link->keys) ||
                           zmq_connect(socket, link->endpoints[endpoint].address) != 0)) {
        (void)zmq_close(socket);
        socket = NULL;
    }
    return socket;
}

/* Waits for a socket to come back; 0 when the deadline has passed. Under the mutex. */
static int wait_returned(mcp_link_t *link, int64_t deadline_ms)
{
    int64_t left = deadline_ms - now_ms();
    struct timespec until;

    if (left <= 0) {
        return 0;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += left / 1000;
    until.tv_nsec += (left % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_cond_timedwait(&link->returned, &link->mutex, &until);
    return 1;
}

/* The first idle socket of the endpoint, taken off its list, or NULL. Under the mutex. */
static void *take_idle(mcp_link_t *link, int endpoint)
{
    idle_socket_t *idle = link->endpoints[endpoint].idle;
    void *socket = NULL;

    if (idle != NULL) {
        link->endpoints[endpoint].idle = idle->next;
        socket = idle->socket;
        free(idle);
    }
    return socket;
}

/* An idle socket of the endpoint or the right to make one; waits for either until the deadline. Where all sockets there may be
 * lie idle at other endpoints, one of those gives way: *ret_close is to be closed then.
 * *ret_socket NULL: make one. 0: none to be had. */
static int checkout(mcp_link_t *link, int endpoint, int64_t deadline_ms, void **ret_socket,
                    void **ret_close, uint64_t *ret_id)
{
    int got = 0;
    int i;

    *ret_close = NULL;
    (void)pthread_mutex_lock(&link->mutex);
    while (!got && !link->is_shut) {
        *ret_socket = take_idle(link, endpoint);
        got = *ret_socket != NULL;
        if (!got && link->open < link->max_sockets) {
            link->open++;
            got = 1;
        }
        for (i = 0; !got && i < link->count; i++) {
            *ret_close = take_idle(link, i);
            got = *ret_close != NULL;
        }
        if (!got && !wait_returned(link, deadline_ms)) {
            break;
        }
    }
    *ret_id = link->next_id++;
    (void)pthread_mutex_unlock(&link->mutex);
    return got;
}

/* Hands a socket back, or closes it when it may still have something to say. */
static void checkin(mcp_link_t *link, int endpoint, void *socket, int is_clean)
{
    idle_socket_t *idle = is_clean ? malloc(sizeof(*idle)) : NULL;

    if (idle == NULL && socket != NULL) {
        (void)zmq_close(socket);
    }
    (void)pthread_mutex_lock(&link->mutex);
    if (idle != NULL) {
        idle->socket = socket;
        idle->next = link->endpoints[endpoint].idle;
        link->endpoints[endpoint].idle = idle;
        link->endpoints[endpoint].silent_until_ms = 0;
        link->endpoints[endpoint].backoff_ms = 0;
    } else {
        link->open--;
    }
    (void)pthread_cond_signal(&link->returned);
    (void)pthread_mutex_unlock(&link->mutex);
}

/* The endpoint to ask, of those whose bit is not in `tried`: the first that was not silent lately, else the one whose silence
 * ends first. */
static int choose(mcp_link_t *link, unsigned tried)
{
    int64_t now = now_ms();
    int best = -1;
    int i;

    (void)pthread_mutex_lock(&link->mutex);
    for (i = 0; i < link->count; i++) {
        if ((tried & (1u << i)) != 0) {
            continue;
        }
        if (link->endpoints[i].silent_until_ms <= now) {
            best = i;
            break;
        }
        if (best < 0 ||
            link->endpoints[i].silent_until_ms < link->endpoints[best].silent_until_ms) {
            best = i;
        }
    }
    (void)pthread_mutex_unlock(&link->mutex);
    return best;
}

static void mark_silent(mcp_link_t *link, int endpoint)
{
    endpoint_t *silent = &link->endpoints[endpoint];
    int64_t now = now_ms();

    (void)pthread_mutex_lock(&link->mutex);
    if (silent->silent_until_ms <= now) { /* of several threads that waited for it the first counts */
        silent->backoff_ms = silent->backoff_ms == 0 ? BACKOFF_MS : 2 * silent->backoff_ms;
        if (silent->backoff_ms > BACKOFF_MAX_MS) {
            silent->backoff_ms = BACKOFF_MAX_MS;
        }
        silent->silent_until_ms = now + silent->backoff_ms;
    }
    (void)pthread_mutex_unlock(&link->mutex);
}

/* --- one round trip ------------------------------------------------------------------ */

/* Waits for events until the deadline; EINTR waits on with the rest (prefork's graceful restart interrupts). */
static int wait_for(void *socket, short events, int64_t deadline_ms)
{
    for (;;) {
        zmq_pollitem_t item;
        int64_t left = deadline_ms - now_ms();
        int ready;

        memset(&item, 0, sizeof(item));
        item.socket = socket;
        item.events = events;
        if (left < 0) {
            left = 0;
        }
        ready = zmq_poll(&item, 1, left);
        if (ready > 0) {
            return 1;
        }
        if (ready == 0 || errno != EINTR) {
            return 0;
        }
    }
}

/* Writable now, with all that the library has learnt of the connection taken in. With IMMEDIATE a
 * socket is writable only when policyd is connected and has shaken hands. One from the idle list
 * nearly always is, and this look costs one system call where a poll costs four. */
static int is_writable(void *socket)
{
    int events = 0;
    size_t size = sizeof(events);

    return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLOUT) != 0;
}

/* A signal (prefork's graceful restart) may interrupt it before anything was taken. */
static int send_part(void *socket, const void *data, size_t bytes, int flags)
{
    int sent = -1;

    do {
        sent = zmq_send(socket, data, bytes, flags);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static int send_question(void *socket, mcp_frame_t *frame, const char *body, int64_t connect_ms,
                         int64_t deadline_ms)
{
    unsigned char header[MCP_HEADER_BYTES];
    int64_t left;

    if (!is_writable(socket) && !wait_for(socket, ZMQ_POLLOUT, connect_ms)) {
        return 0;
    }
    left = deadline_ms - now_ms();
    if (left <= 0) {
        return 0;
    }
    frame->budget_ms = (uint32_t)left;
    (void)mcp_frame_encode(frame, header, sizeof(header)); /* the buffer has the size */
    return send_part(socket, header, sizeof(header), ZMQ_SNDMORE | ZMQ_DONTWAIT) &&
           send_part(socket, body, frame->body_bytes, ZMQ_DONTWAIT);
}

/* Waits for a part in the library itself, which costs one system call where a poll before it costs four. */
static int receive_part(void *socket, zmq_msg_t *part, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - now_ms();
        int wait_ms = left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;

        if (zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms)) != 0) {
            return 0;
        }
        if (zmq_msg_recv(part, socket, 0) >= 0) {
            return 1;
        }
        if (errno != EINTR) { /* prefork's graceful restart interrupts: the rest is waited for */
            return 0;
        }
    }
}

/* Receives both frames; 0 unless they are exactly two and decode. */
static int receive_reply(void *socket, int64_t deadline_ms, mcp_frame_t *ret, zmq_msg_t *body)
{
    zmq_msg_t header;
    int is_sound;

    (void)zmq_msg_init(&header); /* always succeeds, says its manual */
    is_sound = receive_part(socket, &header, deadline_ms) && zmq_msg_more(&header) &&
               receive_part(socket, body, deadline_ms) && !zmq_msg_more(body) &&
               mcp_frame_decode(zmq_msg_data(&header), zmq_msg_size(&header), zmq_msg_size(body),
                                MCP_FROM_POLICYD, ret) == MCP_OK;
    (void)zmq_msg_close(&header); /* initialised above */
    return is_sound;
}

static apr_status_t decref(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

/* Reads the body of a reply as its kind says. */
static int take_body(zmq_msg_t *body, apr_pool_t *pool, mcp_link_reply_t *reply)
{
    const mcp_field_t *table;
    size_t count = 0;

    if ((reply->frame.flags & MCP_FLAG_RAW) != 0) {
        reply->raw_bytes = zmq_msg_size(body);
        reply->raw = apr_pmemdup(pool, zmq_msg_data(body), reply->raw_bytes);
        return 1;
    }
    if (mcp_body_parse(zmq_msg_data(body), zmq_msg_size(body), &reply->body) != MCP_OK) {
        return 0;
    }
    apr_pool_cleanup_register(pool, reply->body, decref, apr_pool_cleanup_null);
    table = mcp_body_table((reply->frame.flags & MCP_FLAG_ERROR) != 0 ? 1 : reply->frame.kind, &count);
    return table != NULL && mcp_body_check(reply->body, table, count, NULL) == MCP_OK;
}

/* connect_ms: until when the endpoint may take to be there; deadline_ms: until when to answer. */
static int round_trip(void *socket, mcp_frame_t *frame, const char *text, int64_t connect_ms,
                      int64_t deadline_ms, apr_pool_t *pool, mcp_link_reply_t *reply, int *was_sent)
{
    zmq_msg_t body;
    int is_sound;

    if (!send_question(socket, frame, text, connect_ms, deadline_ms)) {
        return 0;
    }
    *was_sent = 1;
    (void)zmq_msg_init(&body);
    is_sound = receive_reply(socket, deadline_ms, &reply->frame, &body) &&
               reply->frame.request_id == frame->request_id &&
               reply->frame.kind == MCP_KIND_REPLY(frame->kind) && take_body(&body, pool, reply);
    /* plans carry credentials: libzmq's copy is wiped before its memory is given back */
    mcp_wipe(zmq_msg_data(&body), zmq_msg_size(&body));
    (void)zmq_msg_close(&body);
    return is_sound;
}

/* 1 when the link takes questions; then leave() follows. */
static int enter(mcp_link_t *link)
{
    int is_open;

    (void)pthread_mutex_lock(&link->mutex);
    is_open = !link->is_shut;
    link->asking += is_open;
    (void)pthread_mutex_unlock(&link->mutex);
    return is_open;
}

static int leave(mcp_link_t *link)
{
    int is_shut;

    (void)pthread_mutex_lock(&link->mutex);
    link->asking--;
    is_shut = link->is_shut;
    (void)pthread_mutex_unlock(&link->mutex);
    return is_shut;
}

/* One question on its way. */
typedef struct asking {
    mcp_frame_t frame;
    const char *text;
    int64_t deadline_ms;
    apr_pool_t *pool;
    mcp_link_reply_t *reply;
    int was_sent;
    const char *why; /* it failed, for the log */
} asking_t;

/* Asks one endpoint; it has until connect_ms to be there. */
static int ask_one(mcp_link_t *link, int endpoint, int64_t connect_ms, asking_t *asking)
{
    void *socket = NULL;
    void *stale = NULL;
    int is_sound;

    if (!checkout(link, endpoint, asking->deadline_ms, &socket, &stale, &asking->frame.request_id)) {
        asking->why = "all sockets to policyd are in use or the link is shut";
        return 0;
    }
    if (stale != NULL) {
        (void)zmq_close(stale);
    }
    if (socket == NULL) {
        socket = socket_new(link, endpoint);
    }
    is_sound = socket != NULL && round_trip(socket, &asking->frame, asking->text, connect_ms,
                                            asking->deadline_ms, asking->pool, asking->reply,
                                            &asking->was_sent);
    checkin(link, endpoint, socket, is_sound);
    if (!is_sound) {
        mark_silent(link, endpoint);
        asking->why = asking->was_sent ? "policyd did not answer in time"
                                       : "policyd can't be reached";
    }
    asking->reply->endpoint = endpoint;
    return is_sound;
}

/* The endpoint named, or one after the other until one is there: each gets its share of the time left to be connected. What was
 * sent is never sent again. */
static int ask_any(mcp_link_t *link, int endpoint, asking_t *asking)
{
    int tries = endpoint >= 0 ? 1 : link->count;
    unsigned tried = 0;
    int is_sound = 0;

    for (; tries > 0 && !is_sound && !asking->was_sent; tries--) {
        int64_t now = now_ms();
        int chosen = endpoint >= 0 ? endpoint : choose(link, tried);

        if (now >= asking->deadline_ms) {
            break;
        }
        tried |= 1u << chosen;
        is_sound = ask_one(link, chosen, now + (asking->deadline_ms - now) / tries, asking);
    }
    return is_sound;
}

apr_status_t mcp_link_ask(mcp_link_t *link, mcp_kind_t kind, const json_t *body, uint64_t generation,
                          int endpoint, int64_t budget_ms, apr_pool_t *pool, mcp_link_reply_t *ret,
                          int *ret_was_sent, mcp_err_t *err)
{
    mcp_link_reply_t reply;
    asking_t asking;
    size_t bytes = 0;
    char *text;
    int is_sound;

    if (ret_was_sent != NULL) {
        *ret_was_sent = 0;
    }
    if (link == NULL || link->pid != getpid()) {
        return closed(err, pool, "the link is not open in this process");
    }
    text = mcp_json_text(body, &bytes);
    if (text == NULL || bytes > MCP_MAX_BODY_BYTES) {
        free(text);
        return unavailable(err, pool, "the question can't be written");
    }
    if (!enter(link)) {
        free(text);
        return closed(err, pool, "the link is shut");
    }
    memset(&reply, 0, sizeof(reply));
    memset(&asking, 0, sizeof(asking));
    asking.frame.version = MCP_VERSION;
    asking.frame.kind = (uint16_t)kind;
    asking.frame.body_bytes = (uint32_t)bytes;
    asking.frame.generation = generation;
    asking.text = text;
    asking.deadline_ms = now_ms() + budget_ms;
    asking.pool = pool;
    asking.reply = &reply;
    asking.why = "there was no time left to ask policyd";
    is_sound = ask_any(link, endpoint < link->count ? endpoint : -1, &asking);
    free(text);
    if (ret_was_sent != NULL) {
        *ret_was_sent = asking.was_sent;
    }
    if (leave(link) && !is_sound) {
        return closed(err, pool, "the link is shut");
    }
    if (!is_sound) {
        return unavailable(err, pool, asking.why);
    }
    *ret = reply;
    return APR_SUCCESS;
}
