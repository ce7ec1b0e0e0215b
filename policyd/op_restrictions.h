/* Handlers of the restrictions resource. A restriction is an object of kind "restriction", id
 * "rst_…", owner the member it is for, or none when it is for a role:
 *
 *   {"effect":"allow"|"block","target":{"role":NAME}|{"member":ID},"items":[
 *      {"connector":ID,"slug"}, {"connector":ID,"slug","operation"},
 *      {"tool":NAME,"pins":[{"connector":ID,"slug","operation"}]}],
 *    "name"?,"note"?,"created_by"}
 *
 * Key: "name:NAME" when it has a name. Items stand by stable ids; the slug is for readers; what a
 * tool's name was pinned to when it was written stands beside it, and in an allow the name is a
 * label alone. The target never changes. */
#ifndef PD_OP_RESTRICTIONS_H
#define PD_OP_RESTRICTIONS_H

#include "pd_ops.h"

pd_status_t pd_op_restrictions_list(pd_op_call_t *call);
pd_status_t pd_op_restrictions_get(pd_op_call_t *call);
pd_status_t pd_op_restrictions_create(pd_op_call_t *call);
pd_status_t pd_op_restrictions_update(pd_op_call_t *call);
pd_status_t pd_op_restrictions_delete(pd_op_call_t *call);
/* op_explain.c */
pd_status_t pd_op_restrictions_explain(pd_op_call_t *call);

#endif
