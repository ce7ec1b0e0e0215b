/* Execution plans (PROTOCOL.md, call.begin): everything a worker needs to run one call, the credential among it. A plan
 * is a secret: it is never logged and is wiped after it was sent. */
#ifndef PD_PLAN_H
#define PD_PLAN_H

#include "pd_access.h"
#include "pd_reach.h"

/* The plan of what was found for an actor, over one of its connections; new reference. credential: opened, borrowed, or NULL where the
 * scheme needs none. PD_E_INVALID: an entry that does not fit its operation any more. */
pd_status_t pd_plan_make(pd_core_t *core, const pd_actor_t *actor, const pd_found_t *found,
                         const pd_connection_t *connection, const json_t *credential, json_t **ret);

/* Opens the sealed credential of a connection inside a unit of the loop lane; new reference, wiped by the caller with pd_seal_wipe().
 * PD_E_NOT_FOUND: there is none; PD_E_CRYPTO: it does not open. */
pd_status_t pd_plan_credential(pd_core_t *core, pd_tx_t *tx, const pd_connection_t *connection,
                               json_t **ret);

/* Origin of a base URL ("https://host:port"), as credentials are bound to it; in pool. */
const char *pd_plan_origin(const char *base, apr_pool_t *pool);

#endif
