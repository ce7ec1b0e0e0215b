/* Directories and keys: what --init makes when it is missing, and what a start expects and makes of it. */
#ifndef PD_INIT_H
#define PD_INIT_H

#include "pd_privs.h"

/* Makes the directories of sockets and pid file where they are missing (a /run is empty after each boot) and
 * checks that nobody else can write to any directory that policyd relies on. */
pd_status_t pd_init_directories(const pd_config_t *config, const pd_privs_t *privs, char *why,
                                size_t size);

/* `policyd --init`: makes state_dir, key_dir, the run directories, server.key, httpd.key, clients.allow and
 * master.key where they are missing; nothing that exists is overwritten. tell(line) is called for each,
 * "made PATH" or "kept PATH". */
pd_status_t pd_init_run(const pd_config_t *config, const pd_privs_t *privs, apr_pool_t *pool,
                        void (*tell)(const char *line), char *why, size_t size);

#endif
