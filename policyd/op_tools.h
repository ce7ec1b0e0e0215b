/* Handlers of the tools resource: what a member can have, and how it is described to him. */
#ifndef PD_OP_TOOLS_H
#define PD_OP_TOOLS_H

#include "pd_ops.h"

/* {"member"?,"query"?,"account"?,"limit"?,"cursor"?} -> items {"name","connector","account","classification"} in order of their names: all
 * that the policy lets the member have, whatever the scopes of a grant. Another member's list takes member:read. */
pd_status_t pd_op_tools_list(pd_op_call_t *call);

/* {"names":[1 to 5]} -> items: the complete definitions as they are advertised to the actor, with "connector", "account" and
 * "classification", and "unknown": the names of which the actor has none. Loop's thread. */
pd_status_t pd_op_tools_get(pd_op_call_t *call);

#endif
