/* Handlers of the grants resource. A grant is
 * {"member","client","scopes","resource","expires_us"?,"state", "created_by","token_key"}, owner
 * its member, key = token_key (pd_access_token_key of its token's hash). A revoked one keeps its
 * key, so that the denial can say so. The token itself is shown once and never stored. */
#ifndef PD_OP_GRANTS_H
#define PD_OP_GRANTS_H

#include "pd_ops.h"

pd_status_t pd_op_grants_list(pd_op_call_t *call);
pd_status_t pd_op_grants_get(pd_op_call_t *call);
pd_status_t pd_op_grants_create(pd_op_call_t *call);
pd_status_t pd_op_grants_revoke(pd_op_call_t *call);

#endif
