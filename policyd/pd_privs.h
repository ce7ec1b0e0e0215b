/* What the process may do: user and groups, limits, the lock against a second instance, and the word to the
 * supervisor.  Start-up only, on the main thread, before any other thread exists. */
#ifndef PD_PRIVS_H
#define PD_PRIVS_H

#include <sys/types.h>

#include "pd_config.h"

#define PD_PRIVS_MAX_GROUPS 64

/* Who policyd will be. Without `user`, or when not started as root: who it is. */
typedef struct pd_privs {
    int is_root;  /* started as root */
    int may_drop; /* and there is a user to become */
    uid_t uid;
    gid_t gid;
    const char *user;      /* name to become */
    gid_t httpd_gid;       /* (gid_t)-1: none configured */
    gid_t audit_gid;
    gid_t admin_gid;
} pd_privs_t;

/* Looks up every account before anything is done with one. */
pd_status_t pd_privs_find(const pd_config_t *config, pd_privs_t *ret, char *why, size_t size);

/* No core file, no ptrace, SIGPIPE ignored, descriptors up to the hard limit. */
pd_status_t pd_privs_harden(char *why, size_t size);

/* Groups, gid, uid, each checked; then that there is no way back; then no-new-privs. The groups are the
 * user's own and those that files and sockets are given to. */
pd_status_t pd_privs_drop(const pd_privs_t *privs, char *why, size_t size);

/* Takes the lock of the pid file and writes the pid into it. PD_E_LOCKED when another instance holds it.
 * The descriptor holds the lock: keep it open. The file stays when policyd ends: removing it would let two
 * instances lock two files of one name. */
pd_status_t pd_privs_lock(const char *file, const pd_privs_t *privs, int *ret_fd, char *why, size_t size);

/* Tells the supervisor (the protocol of sd_notify(3)); nothing happens without one. */
void pd_privs_notify(const char *state);

#endif
