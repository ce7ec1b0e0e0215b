/* Handlers of the tools resource: what a member can have, and how it is described to him. */
#ifndef PD_OP_TOOLS_H
#define PD_OP_TOOLS_H

#include "pd_ops.h"

/* {"member"?,"query"?,"account"?,"limit"?,"cursor"?} -> items {"name","connector","account","classification"} in order of their names: what
 * tools/list shows the actor, so nothing that his grant lacks a scope for; of another member, which takes member:read, all that the policy
 * lets him have. Who lacks tool:execute has none. */
pd_status_t pd_op_tools_list(pd_op_call_t *call);

/* {"names":[1 to 5]} -> items: the complete definitions as they are advertised to the actor, with "connector", "account" and
 * "classification", and "unknown": the names of which the actor has none. Loop's thread. */
pd_status_t pd_op_tools_get(pd_op_call_t *call);

#endif
