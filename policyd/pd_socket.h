/* Paths of unix sockets: is a live process there, and a listener that replaces only a dead one's. */
#ifndef PD_SOCKET_H
#define PD_SOCKET_H

#include <stddef.h>

#include "pd_err.h"

/* 1 when a process accepts connections at the path. */
int pd_socket_is_live(const char *path);

/* Listens at path (stream, non-blocking, close-on-exec): mode 0660 for `group`, 0600 without one (NULL);
 * owner uid, -1 for the caller's. PD_E_LOCKED when a live process is there; the socket of a dead one is
 * removed; anything else at the path is refused. `why` has the remedy. Start-up only: sets the umask. */
pd_status_t pd_socket_listen(const char *path, long uid, const char *group, int *ret_fd, char *why,
                             size_t size);

/* Gives an existing socket mode 0660 and `group` (NULL: only the mode). */
pd_status_t pd_socket_share(const char *path, const char *group, char *why, size_t size);

#endif
