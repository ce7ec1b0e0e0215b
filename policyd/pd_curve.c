/* CURVE keys and the authentication handler: see pd_curve.h. */
#include "pd_curve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "../proto/mcp_hash.h"
#include "pd_log.h"

#define KEY_BYTES      32
#define KEY_CHARS      40
#define FILE_MAX       (256u * 1024)
#define ZAP_ENDPOINT   "inproc://zeromq.zap.01"
#define ZAP_FRAMES     7 /* version, id, domain, address, routing id, mechanism, client key */
#define ZAP_FRAME_MAX  256

struct pd_curve_allow {
    size_t count, room;
    unsigned char (*keys)[KEY_BYTES]; /* sorted */
};

struct pd_curve {
    pthread_t thread;
    pthread_mutex_t lock; /* around allow, for a look-up or a swap */
    pd_curve_allow_t *allow;
    void *socket; /* the thread's once it runs */
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

/* --- keys ------------------------------------------------------------------ */

static int decode_key(const char *text, unsigned char key[KEY_BYTES])
{
    /* libzmq's decoder takes any byte of the text as an index below 128; ours is checked first */
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   ".-:+=^!/*?&<>()[]{}@%$#";

    return strlen(text) == KEY_CHARS && strspn(text, alphabet) == KEY_CHARS &&
           zmq_z85_decode(key, text) != NULL;
}

int pd_curve_is_key(const char *text)
{
    unsigned char key[KEY_BYTES];
    int is_key = decode_key(text, key);

    mcp_wipe(key, sizeof key);
    return is_key;
}

pd_status_t pd_curve_make(pd_curve_pair_t *ret)
{
    pd_curve_pair_t pair;

    if (zmq_curve_keypair(pair.public_key, pair.secret_key) != 0) {
        return PD_E_CRYPTO;
    }
    *ret = pair;
    mcp_wipe(&pair, sizeof pair);
    return PD_OK;
}

#define ANYBODY (-1L)

/* Whole text of a small plain file, malloc'd with a NUL. owner: of a secret, which nobody else (but root)
 * may own or read; ANYBODY for what is no secret of ours. */
static pd_status_t read_file(const char *file, long owner, char **ret, size_t *ret_bytes, char *why,
                             size_t size)
{
    struct stat info;
    char *text;
    size_t done = 0;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        return refuse(why, size, PD_E_SYSTEM, "%s cannot be read: %s; policyd --init makes what is missing",
                      file, strerror(errno));
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > FILE_MAX) {
        (void)close(fd); /* only read */
        return refuse(why, size, PD_E_INVALID, "%s is not a plain file of at most %u bytes", file,
                      FILE_MAX);
    }
    if (owner != ANYBODY &&
        ((info.st_mode & 077) != 0 || ((long)info.st_uid != owner && info.st_uid != 0))) {
        (void)close(fd); /* only read */
        return refuse(why, size, PD_E_INVALID,
                      "%s is open to others; chown it to policyd's user and chmod it to 0600", file);
    }
    text = malloc((size_t)info.st_size + 1);
    while (text != NULL && done < (size_t)info.st_size) {
        ssize_t got = read(fd, text + done, (size_t)info.st_size - done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    (void)close(fd); /* only read */
    if (text == NULL) {
        return refuse(why, size, PD_E_NOMEM, "%s: out of memory", file);
    }
    text[done] = '\0';
    *ret = text;
    *ret_bytes = done;
    return PD_OK;
}

/* Value of the line `name = KEY` into out; 0 when there is no such line or no key in it. */
static int find_key(const char *text, const char *name, char out[PD_CURVE_TEXT])
{
    size_t name_bytes = strlen(name);

    while (*text != '\0') {
        const char *at = text + strspn(text, " \t");
        size_t line = strcspn(text, "\n");

        if (strncmp(at, name, name_bytes) == 0) {
            at += name_bytes;
            at += strspn(at, " \t");
            if (*at == '=') {
                at++;
                at += strspn(at, " \t");
                if (strcspn(at, " \t\r\n") == KEY_CHARS) {
                    memcpy(out, at, KEY_CHARS);
                    out[KEY_CHARS] = '\0';
                    return pd_curve_is_key(out);
                }
            }
        }
        text += line + (text[line] == '\n');
    }
    return 0;
}

pd_status_t pd_curve_load(const char *file, pd_curve_pair_t *ret, char *why, size_t size)
{
    return pd_curve_load_as(file, (long)geteuid(), ret, why, size);
}

pd_status_t pd_curve_load_as(const char *file, long uid, pd_curve_pair_t *ret, char *why, size_t size)
{
    pd_curve_pair_t pair;
    char derived[PD_CURVE_TEXT];
    char *text = NULL;
    size_t bytes = 0;
    pd_status_t status = read_file(file, uid, &text, &bytes, why, size);

    if (status != PD_OK) {
        return status;
    }
    memset(&pair, 0, sizeof pair);
    if (!find_key(text, "public", pair.public_key) || !find_key(text, "secret", pair.secret_key)) {
        status = refuse(why, size, PD_E_INVALID,
                        "%s lacks `public = KEY` or `secret = KEY`; move it away and run policyd --init",
                        file);
    } else if (zmq_curve_public(derived, pair.secret_key) != 0 ||
               strcmp(derived, pair.public_key) != 0) {
        status = refuse(why, size, PD_E_INVALID,
                        "%s: the public key is not that of the secret key; move it away and run "
                        "policyd --init",
                        file);
    } else {
        *ret = pair;
    }
    mcp_wipe(&pair, sizeof pair);
    mcp_wipe(text, bytes);
    free(text);
    return status;
}

pd_status_t pd_curve_load_httpd(const char *file, pd_curve_httpd_t *ret, char *why, size_t size)
{
    char *text = NULL;
    size_t bytes = 0;
    pd_status_t status = read_file(file, ANYBODY, &text, &bytes, why, size);

    if (status != PD_OK) {
        return status;
    }
    if (!find_key(text, "server_public", ret->server_public) ||
        !find_key(text, "client_public", ret->client_public)) {
        status = refuse(why, size, PD_E_INVALID,
                        "%s lacks `server_public = KEY` or `client_public = KEY`; move it away and run "
                        "policyd --init",
                        file);
    }
    mcp_wipe(text, bytes); /* it has the client's secret key */
    free(text);
    return status;
}

/* --- allowlist ------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, KEY_BYTES);
}

static pd_status_t add_key(pd_curve_allow_t *allow, const unsigned char key[KEY_BYTES])
{
    if (allow->count == allow->room) {
        size_t room = allow->room == 0 ? 16 : allow->room * 2;
        unsigned char(*keys)[KEY_BYTES] = realloc(allow->keys, room * KEY_BYTES);

        if (keys == NULL) {
            return PD_E_NOMEM;
        }
        allow->keys = keys;
        allow->room = room;
    }
    memcpy(allow->keys[allow->count++], key, KEY_BYTES);
    return PD_OK;
}

static pd_status_t take_allow_line(const char *file, unsigned number, const char *line, size_t bytes,
                                   pd_curve_allow_t *allow, char *why, size_t size)
{
    char text[PD_CURVE_TEXT];
    unsigned char key[KEY_BYTES];
    size_t chars = 0;

    while (bytes > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        bytes--;
    }
    while (bytes > 0 && strchr(" \t\r", line[bytes - 1]) != NULL && line[bytes - 1] != '\0') {
        bytes--;
    }
    /* '#' is a letter of Z85 too, but no key begins with it: its value would leave 32 bits */
    while (chars < bytes && line[chars] != ' ' && line[chars] != '\t') {
        chars++;
    }
    if (bytes == 0 || *line == '#') {
        return PD_OK;
    }
    if (chars == KEY_CHARS) {
        memcpy(text, line, KEY_CHARS);
        text[KEY_CHARS] = '\0';
    }
    if (chars != KEY_CHARS || !decode_key(text, key)) {
        return refuse(why, size, PD_E_INVALID,
                      "%s:%u: no public key of 40 Z85 characters; write one, or begin a comment with #",
                      file, number);
    }
    if (allow->count >= PD_CURVE_MAX_ALLOW) {
        return refuse(why, size, PD_E_INVALID, "%s:%u: more than %d keys", file, number,
                      PD_CURVE_MAX_ALLOW);
    }
    return add_key(allow, key) == PD_OK
               ? PD_OK
               : refuse(why, size, PD_E_NOMEM, "%s: out of memory", file);
}

pd_status_t pd_curve_allow_parse(const char *file, const char *text, size_t bytes,
                                 pd_curve_allow_t **ret, char *why, size_t size)
{
    pd_curve_allow_t *allow = calloc(1, sizeof *allow);
    pd_status_t status = PD_OK;
    unsigned number = 0;
    size_t at = 0;

    if (allow == NULL) {
        return refuse(why, size, PD_E_NOMEM, "%s: out of memory", file);
    }
    while (at < bytes && status == PD_OK) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t line = end == NULL ? bytes - at : (size_t)(end - (text + at));

        status = take_allow_line(file, ++number, text + at, line, allow, why, size);
        at += end == NULL ? line : line + 1;
    }
    if (status != PD_OK) {
        pd_curve_allow_free(&allow);
        return status;
    }
    if (allow->count > 1) {
        qsort(allow->keys, allow->count, KEY_BYTES, compare_keys);
    }
    *ret = allow;
    return PD_OK;
}

pd_status_t pd_curve_allow_load(const char *file, pd_curve_allow_t **ret, char *why, size_t size)
{
    char *text = NULL;
    size_t bytes = 0;
    pd_status_t status = read_file(file, ANYBODY, &text, &bytes, why, size);

    if (status == PD_OK) {
        status = pd_curve_allow_parse(file, text, bytes, ret, why, size);
    }
    free(text);
    return status;
}

void pd_curve_allow_free(pd_curve_allow_t **allow)
{
    if (allow != NULL && *allow != NULL) {
        free((*allow)->keys);
        free(*allow);
        *allow = NULL;
    }
}

size_t pd_curve_allow_count(const pd_curve_allow_t *allow)
{
    return allow->count;
}

static int has_bytes(const pd_curve_allow_t *allow, const unsigned char key[KEY_BYTES])
{
    return allow->count > 0 &&
           bsearch(key, allow->keys, allow->count, KEY_BYTES, compare_keys) != NULL;
}

int pd_curve_allow_has(const pd_curve_allow_t *allow, const char *key)
{
    unsigned char bytes[KEY_BYTES];

    return decode_key(key, bytes) && has_bytes(allow, bytes);
}

/* --- handler --------------------------------------------------------------- */

typedef struct zap_request {
    size_t count; /* of frames, as received; beyond ZAP_FRAMES only counted */
    size_t bytes[ZAP_FRAMES];
    unsigned char frames[ZAP_FRAMES][ZAP_FRAME_MAX];
} zap_request_t;

enum { ZAP_VERSION, ZAP_ID, ZAP_DOMAIN_FRAME, ZAP_ADDRESS, ZAP_ROUTING, ZAP_MECHANISM, ZAP_KEY };

/* 0, or -1 when the context ends. */
static int zap_receive(void *socket, zap_request_t *request)
{
    int more = 1;
    size_t more_bytes = sizeof more;

    request->count = 0;
    while (more) {
        unsigned char spill[ZAP_FRAME_MAX];
        unsigned char *to = request->count < ZAP_FRAMES ? request->frames[request->count] : spill;
        int got = zmq_recv(socket, to, ZAP_FRAME_MAX, 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (request->count < ZAP_FRAMES) {
            /* a frame that was cut has no legal length here and fails its comparison */
            request->bytes[request->count] = (size_t)got;
        }
        request->count++;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &more_bytes) != 0) {
            return -1;
        }
    }
    return 0;
}

static int frame_is(const zap_request_t *request, size_t i, const char *text)
{
    return request->bytes[i] == strlen(text) && memcmp(request->frames[i], text, strlen(text)) == 0;
}

/* The list's answer; the key's text is set whenever the request has one. */
static int zap_judge(pd_curve_t *curve, const zap_request_t *request, char key[PD_CURVE_TEXT])
{
    int is_admitted;

    key[0] = '\0';
    if (request->count != ZAP_FRAMES || !frame_is(request, ZAP_VERSION, "1.0") ||
        !frame_is(request, ZAP_MECHANISM, "CURVE") || request->bytes[ZAP_KEY] != KEY_BYTES ||
        zmq_z85_encode(key, request->frames[ZAP_KEY], KEY_BYTES) == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&curve->lock); /* a default mutex fails only for bugs */
    is_admitted = has_bytes(curve->allow, request->frames[ZAP_KEY]);
    (void)pthread_mutex_unlock(&curve->lock);
    return is_admitted;
}

static int zap_send(void *socket, const void *bytes, size_t count, int flags)
{
    int sent;

    do {
        sent = zmq_send(socket, bytes, count, flags);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -1 : 0;
}

/* The user id is the key's text: the bus reads it off each message (pd_curve_admits). */
static int zap_answer(void *socket, const zap_request_t *request, int is_admitted, const char *key)
{
    const char *code = is_admitted ? "200" : "400";
    const char *text = is_admitted ? "OK" : "not on the list";
    const char *user = is_admitted ? key : "";
    size_t id_bytes = request->count > ZAP_ID ? request->bytes[ZAP_ID] : 0;

    if (id_bytes > ZAP_FRAME_MAX) {
        id_bytes = ZAP_FRAME_MAX; /* libzmq's own ids have one byte */
    }
    return zap_send(socket, "1.0", 3, ZMQ_SNDMORE) == 0 &&
                   zap_send(socket, request->frames[ZAP_ID], id_bytes, ZMQ_SNDMORE) == 0 &&
                   zap_send(socket, code, 3, ZMQ_SNDMORE) == 0 &&
                   zap_send(socket, text, strlen(text), ZMQ_SNDMORE) == 0 &&
                   zap_send(socket, user, strlen(user), ZMQ_SNDMORE) == 0 &&
                   zap_send(socket, "", 0, 0) == 0
               ? 0
               : -1;
}

static void zap_report(const zap_request_t *request, const char *key)
{
    char address[ZAP_FRAME_MAX + 1];
    char quoted[128];
    size_t bytes = request->count > ZAP_ADDRESS ? request->bytes[ZAP_ADDRESS] : 0;

    bytes = bytes > ZAP_FRAME_MAX ? ZAP_FRAME_MAX : bytes;
    memcpy(address, request->frames[ZAP_ADDRESS], bytes);
    address[bytes] = '\0';
    pd_log(PD_LOG_WARNING, 1101,
           "an asker at %s was refused: its key %s is not in clients.allow",
           pd_log_quote(address, quoted, sizeof quoted), key[0] == '\0' ? "(none)" : key);
}

static void *zap_main(void *baton)
{
    pd_curve_t *curve = baton;
    zap_request_t request;

    memset(&request, 0, sizeof request);
    while (zap_receive(curve->socket, &request) == 0) {
        char key[PD_CURVE_TEXT];
        int is_admitted = zap_judge(curve, &request, key);

        if (!is_admitted) {
            zap_report(&request, key);
        }
        if (zap_answer(curve->socket, &request, is_admitted, key) != 0) {
            break;
        }
    }
    (void)zmq_close(curve->socket); /* fails for no socket that is one */
    return NULL;
}

pd_status_t pd_curve_start(void *context, pd_curve_allow_t *allow, pd_curve_t **ret)
{
    pd_curve_t *curve = calloc(1, sizeof *curve);
    sigset_t all, before;
    int linger = 0;
    int failed;

    if (curve == NULL) {
        pd_curve_allow_free(&allow);
        return PD_E_NOMEM;
    }
    curve->allow = allow;
    curve->socket = zmq_socket(context, ZMQ_REP);
    if (curve->socket == NULL || pthread_mutex_init(&curve->lock, NULL) != 0) {
        goto failed;
    }
    if (zmq_setsockopt(curve->socket, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_bind(curve->socket, ZAP_ENDPOINT) != 0) {
        goto failed_lock;
    }
    (void)sigfillset(&all); /* signals are the loop's */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&curve->thread, NULL, zap_main, curve);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        goto failed_lock;
    }
    *ret = curve;
    return PD_OK;

failed_lock:
    (void)pthread_mutex_destroy(&curve->lock);
failed:
    if (curve->socket != NULL) {
        (void)zmq_close(curve->socket); /* fails for no socket that is one */
    }
    pd_curve_allow_free(&curve->allow);
    free(curve);
    return PD_E_SYSTEM;
}

void pd_curve_swap(pd_curve_t *curve, pd_curve_allow_t *allow)
{
    pd_curve_allow_t *old;

    (void)pthread_mutex_lock(&curve->lock); /* a default mutex fails only for bugs */
    old = curve->allow;
    curve->allow = allow;
    (void)pthread_mutex_unlock(&curve->lock);
    pd_curve_allow_free(&old);
}

int pd_curve_admits(pd_curve_t *curve, const char *key)
{
    int is_admitted;

    if (key == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&curve->lock); /* a default mutex fails only for bugs */
    is_admitted = pd_curve_allow_has(curve->allow, key);
    (void)pthread_mutex_unlock(&curve->lock);
    return is_admitted;
}

void pd_curve_join(pd_curve_t **curve)
{
    pd_curve_t *gone = curve == NULL ? NULL : *curve;

    if (gone == NULL) {
        return;
    }
    *curve = NULL;
    (void)pthread_join(gone->thread, NULL); /* the thread is ours and joined once */
    (void)pthread_mutex_destroy(&gone->lock);
    pd_curve_allow_free(&gone->allow);
    free(gone);
}
