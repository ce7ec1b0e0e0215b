/* policyd.conf: `key = value` lines, `#` comments; an unknown key, a doubled key or a bad value is refused
 * with file, line and remedy. Reference: doc/policyd.conf.5. */
#ifndef PD_CONFIG_H
#define PD_CONFIG_H

#include <apr_pools.h>
#include <apr_tables.h>

#include "pd_err.h"

#define PD_CONFIG_MAX_BYTES     (256u * 1024) /* of the file */
#define PD_CONFIG_MAX_LINE      2048          /* bytes of one line */
#define PD_CONFIG_MAX_ENDPOINTS 8
#define PD_CONFIG_MAX_ACTORS    256
#define PD_CONFIG_MAX_RESERVED  64

/* One `actor = unix:UID EMAIL` line: who a peer of the admin socket is. */
typedef struct pd_config_actor {
    long uid;
    const char *email;
} pd_config_actor_t;

/* Immutable and read by any thread, but for `actors` and `log_level`, which belong to the loop's thread:
 * SIGHUP replaces them (pd_config_adopt). */
typedef struct pd_config {
    const char *file;
    const char *organisation;    /* display name */
    const char *state_dir;       /* policy.db, trail.db, audit.db */
    const char *data_dir;        /* applications.txt and words.txt, which searches know */
    apr_array_header_t *query_endpoints; /* of const char *: ipc:// or tcp:// */
    const char *admin_socket;
    const char *key_dir;         /* server.key, clients.allow, master.key; httpd.key for httpd's MCPPolicyKey */
    const char *user, *group;    /* drop to these when started as root; NULL: stay */
    const char *httpd_group;     /* group of the query socket's directory */
    const char *audit_group;     /* group that may read audit.db */
    const char *admin_group;     /* group that may connect to the admin socket */
    const char *pid_file;
    int log_to_syslog;
    int log_level;               /* PD_LOG_* */
    apr_array_header_t *actors;  /* of pd_config_actor_t; uid 0 is always Owner */
    apr_array_header_t *reserved_labels; /* of const char *; "elaichi" always among them */
    const char *control_prefix;  /* default "elaichi" */
} pd_config_t;

/* Reads and judges the file, users and groups included. On failure `why` holds "FILE:LINE: what and remedy". */
pd_status_t pd_config_load(const char *file, apr_pool_t *pool, pd_config_t **ret, char *why, size_t size);

/* The same for text already read; `file` is for messages. Pure: users and groups are not looked up. */
pd_status_t pd_config_parse(const char *file, const char *text, size_t bytes, apr_pool_t *pool,
                            pd_config_t **ret, char *why, size_t size);

/* Takes over what SIGHUP may change (actors, log level) into `live`; everything is copied into `pool`.
 * Returns the name of the first key that differs but needs a restart, or NULL. Loop's thread. */
const char *pd_config_adopt(pd_config_t *live, const pd_config_t *fresh, apr_pool_t *pool);

#endif
