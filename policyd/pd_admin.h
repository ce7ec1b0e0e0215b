/* The admin socket: a stream socket that speaks JSON-RPC 2.0, one message a line, so that policyctl, socat
 * and a shell can use it.  The kernel says who the peer is (SO_PEERCRED at accept); the configuration says
 * which actor that is, anew for each request.
 *
 * `method` is an operation's unprefixed name ("members__create"), `params` its arguments.  `rpc.describe`
 * answers the registry.  One request of a connection runs at a time; the next line waits.
 * An error's `data` is {"code","message","hint"?,"audit"?}.  Loop's thread only. */
#ifndef PD_ADMIN_H
#define PD_ADMIN_H

#include "pd_core.h"

#define PD_ADMIN_MAX_LINE     (16u * 1024 * 1024) /* bytes of a request without its newline */
#define PD_ADMIN_MAX_CONNS    64
#define PD_ADMIN_MAX_PER_UID  16
#define PD_ADMIN_MAX_INPUT    (128u * 1024 * 1024) /* bytes of unfinished lines of all connections */
#define PD_ADMIN_IDLE_MS      600000
#define PD_ADMIN_DEADLINE_MS  300000 /* of one operation */
#define PD_ADMIN_OUTPUT_HIGH  (1024u * 1024) /* above it no further request is taken ... */
#define PD_ADMIN_OUTPUT_LOW   (64u * 1024)   /* ... until the peer has read down to this */

typedef struct pd_admin pd_admin_t;

/* Binds and listens under the configured path: mode 0660 for admin_group, 0600 without one, owner uid
 * (unless (uid_t)-1). A live process at the path is refused, a dead one's socket is removed. */
pd_status_t pd_admin_listen(const pd_config_t *config, long uid, int *ret_fd, char *why, size_t size);

/* Serves connections of fd, which becomes its own. */
pd_status_t pd_admin_new(pd_core_t *core, int fd, pd_admin_t **ret);
/* Takes no further connection and no further request. */
void pd_admin_drain(pd_admin_t *admin);
/* Requests that run, and connections whose answer has not left. */
size_t pd_admin_waiting(const pd_admin_t *admin);
/* Closes everything; the socket's path is removed. */
void pd_admin_free(pd_admin_t **admin);

#endif
