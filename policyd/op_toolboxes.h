/* Handlers of the toolboxes resource. A toolbox is an object of kind "toolbox", id "tbx_…", no
 * owner, key "name:NAME":
 *
 *   {"name","description"?,"roles":[NAME],"members":[ID],"entries":[
 *      {"entry":"ent_…","connector":ID,"connector_slug","operation",
 *       "connections":["cxn_…"]|["@own"],"name","title"?,"description"?,"defaults":{},"frozen":{},
 *       "always_visible"}],"created_by"}
 *
 * Whoever may write toolboxes, or holds toolbox:read_all, sees all of them; others see the ones that
 * are for them, and in these what they can have. Frozen values are shown to writers alone. */
#ifndef PD_OP_TOOLBOXES_H
#define PD_OP_TOOLBOXES_H

#include "pd_ops.h"

pd_status_t pd_op_toolboxes_list(pd_op_call_t *call);
pd_status_t pd_op_toolboxes_get(pd_op_call_t *call);
pd_status_t pd_op_toolboxes_create(pd_op_call_t *call);
pd_status_t pd_op_toolboxes_update(pd_op_call_t *call);
pd_status_t pd_op_toolboxes_delete(pd_op_call_t *call);

/* Takes a member, who is being removed, off every toolbox that names him. */
pd_status_t pd_op_toolboxes_forget_member(pd_op_call_t *call, const char *member_id);

#endif
