/* Handlers of the roles resource, and the rule that nobody gives what they don't hold. */
#ifndef PD_OP_ROLES_H
#define PD_OP_ROLES_H

#include "pd_ops.h"

/* PD_OK when every name of the array is a built-in or custom role; else fault NOT_FOUND. */
pd_status_t pd_op_roles_exist(pd_op_call_t *call, const json_t *roles);

/* PD_OK when the actor may give, or act with, everything that these roles hold: their permissions
 * are among the actor's, and Owner is given by an Owner alone. Else fault PERMISSION_DENIED. */
pd_status_t pd_op_roles_givable(pd_op_call_t *call, const json_t *roles);

/* 1 when "Owner" is among the names. */
int pd_op_roles_has_owner(const json_t *roles);

pd_status_t pd_op_roles_list(pd_op_call_t *call);
pd_status_t pd_op_roles_get(pd_op_call_t *call);
pd_status_t pd_op_roles_create(pd_op_call_t *call);
pd_status_t pd_op_roles_update(pd_op_call_t *call);
pd_status_t pd_op_roles_delete(pd_op_call_t *call);

#endif
