/* Toolboxes as different people see them: whole to those who may write or read all of them, frozen
 * values to writers alone, and to all others their own ones with what they can have of these. On the
 * thread of the call's lane; call->snapshot must be there. */
#ifndef PD_OP_TOOLBOX_SHOW_H
#define PD_OP_TOOLBOX_SHOW_H

#include "op_find.h"
#include "pd_snapshot.h"

/* 1 when the actor sees toolboxes that are for others, and for whom they are. */
int pd_op_toolbox_sees_all(const pd_op_call_t *call);

/* The toolbox in force by id, when it is for the actor; else NULL. */
const pd_toolbox_t *pd_op_toolbox_own(const pd_op_call_t *call, const char *id);

/* A stored toolbox as the actor sees it, which he must; without its entries, and with them. New
 * reference, or NULL. */
json_t *pd_op_toolbox_show_listed(const pd_op_call_t *call, const pd_object_t *object);
json_t *pd_op_toolbox_show_whole(const pd_op_call_t *call, const pd_object_t *object);

#endif
