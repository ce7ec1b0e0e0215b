/* The link to httpd: ROUTER sockets, asks and their answers.  One object a daemon, used on the loop's
 * thread.  Asks (pd_core.h) are made here and end here. */
#ifndef PD_BUS_H
#define PD_BUS_H

#include "pd_core.h"

#define PD_BUS_MAX_ASKS 8192 /* that wait for their answer; one more is answered `overloaded` */

typedef struct pd_bus pd_bus_t;

/* What happened to messages since the start. */
typedef struct pd_bus_counts {
    uint64_t received;
    uint64_t answered;
    uint64_t refused;   /* answered with an error */
    uint64_t frames;    /* dropped: not exactly two frames */
    uint64_t headers;   /* dropped: a header that cannot be read */
    uint64_t strangers; /* dropped: key no longer on the list */
    uint64_t gone;      /* replies to an asker that has left */
    uint64_t stuck;     /* replies that the asker's full queue did not take */
} pd_bus_counts_t;

/* Loads server.key and clients.allow from config->key_dir and starts the authentication handler. */
pd_status_t pd_bus_new(pd_core_t *core, pd_bus_t **ret, char *why, size_t size);
/* Binds every query_endpoint and watches it. An ipc path that a live process answers at is refused. */
pd_status_t pd_bus_bind(pd_bus_t *bus, char *why, size_t size);
/* Reads clients.allow again; on failure the list in force stays. */
pd_status_t pd_bus_reload(pd_bus_t *bus, char *why, size_t size);
/* Asks that wait for their answer. */
size_t pd_bus_waiting(const pd_bus_t *bus);
const pd_bus_counts_t *pd_bus_counts(const pd_bus_t *bus);
/* Closes the sockets (answers that were handed over still leave, for half a second), ends the handler and
 * the context. Asks that still wait are let go unanswered. */
void pd_bus_free(pd_bus_t **bus);

#endif
