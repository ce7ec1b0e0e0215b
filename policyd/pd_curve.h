/* CURVE keys of the link and the allowlist of askers.
 *
 * libzmq lets every client key in unless an authentication handler (ZeroMQ RFC 27) answers in the same
 * context.  Ours is a thread that owns one socket and the list; it must run before the first bind.
 * The list is consulted again for each message, so that a key that was taken off it loses a connection
 * that it already has. */
#ifndef PD_CURVE_H
#define PD_CURVE_H

#include <stddef.h>

#include "pd_err.h"

#define PD_CURVE_TEXT      41   /* a key in Z85 with its NUL */
#define PD_CURVE_MAX_ALLOW 1024 /* keys of clients.allow */

typedef struct pd_curve_pair {
    char public_key[PD_CURVE_TEXT];
    char secret_key[PD_CURVE_TEXT]; /* wipe after use */
} pd_curve_pair_t;

/* A new pair. PD_E_CRYPTO when libzmq was built without CURVE. */
pd_status_t pd_curve_make(pd_curve_pair_t *ret);

/* Reads server.key (`public = Z85`, `secret = Z85`): a plain file that nobody but its owner may read, with the
 * two halves belonging together. `why` has file and remedy. */
pd_status_t pd_curve_load(const char *file, pd_curve_pair_t *ret, char *why, size_t size);
/* The same where policyd's user is another (uid) than the caller, as for root's --init. */
pd_status_t pd_curve_load_as(const char *file, long uid, pd_curve_pair_t *ret, char *why, size_t size);

/* Public keys of httpd.key (`server_public`, `client_public`), whose secret half is httpd's alone. */
typedef struct pd_curve_httpd {
    char server_public[PD_CURVE_TEXT];
    char client_public[PD_CURVE_TEXT];
} pd_curve_httpd_t;
pd_status_t pd_curve_load_httpd(const char *file, pd_curve_httpd_t *ret, char *why, size_t size);

/* 1 if text is a key in Z85 (exactly 40 characters of its alphabet that decode). */
int pd_curve_is_key(const char *text);

/* The allowlist: one key a line, then an optional comment; `#` lines are comments. */
typedef struct pd_curve_allow pd_curve_allow_t;
pd_status_t pd_curve_allow_load(const char *file, pd_curve_allow_t **ret, char *why, size_t size);
/* The same for text already read; pure. */
pd_status_t pd_curve_allow_parse(const char *file, const char *text, size_t bytes,
                                 pd_curve_allow_t **ret, char *why, size_t size);
void pd_curve_allow_free(pd_curve_allow_t **allow);
size_t pd_curve_allow_count(const pd_curve_allow_t *allow);
int pd_curve_allow_has(const pd_curve_allow_t *allow, const char *key);

/* The handler. context is a ZeroMQ context; allow is stolen. */
typedef struct pd_curve pd_curve_t;
pd_status_t pd_curve_start(void *context, pd_curve_allow_t *allow, pd_curve_t **ret);
/* Another list from now on; stolen. Any thread. */
void pd_curve_swap(pd_curve_t *curve, pd_curve_allow_t *allow);
/* 1 if the key is on the list now; NULL is on none. Any thread. */
int pd_curve_admits(pd_curve_t *curve, const char *key);
/* Waits for the thread, which ends when its context is terminated: call after that. */
void pd_curve_join(pd_curve_t **curve);

#endif
