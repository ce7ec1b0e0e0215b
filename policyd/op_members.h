/* Handlers of the members resource. A member is {"email","name"?,"roles":[NAME],"state"}, state
 * `active`, `suspended` or `removed`; key "email:LOWER-CASE" until removed. Removed ones stay as
 * tombstones: an email that comes back is a new member. */
#ifndef PD_OP_MEMBERS_H
#define PD_OP_MEMBERS_H

#include "pd_ops.h"

pd_status_t pd_op_members_list(pd_op_call_t *call);
pd_status_t pd_op_members_get(pd_op_call_t *call);
pd_status_t pd_op_members_create(pd_op_call_t *call);
pd_status_t pd_op_members_update(pd_op_call_t *call);
pd_status_t pd_op_members_suspend(pd_op_call_t *call);
pd_status_t pd_op_members_reinstate(pd_op_call_t *call);
pd_status_t pd_op_members_remove(pd_op_call_t *call);

/* After a commit: who the member is now, for the auditors' side table. */
void pd_op_members_after(const pd_op_call_t *call);

#endif
