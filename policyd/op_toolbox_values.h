/* Defaults and frozen values of toolbox entries against the schema of their operation.  No refusal
 * names a key or a value.  Runs inside a unit of the write lane. */
#ifndef PD_OP_TOOLBOX_VALUES_H
#define PD_OP_TOOLBOX_VALUES_H

#include "pd_catalog.h"
#include "pd_ops.h"

/* The values of one entry; borrowed. */
typedef struct pd_op_toolbox_values {
    unsigned long number;            /* of the entry, from 1, for messages */
    const pd_operation_t *operation; /* NULL: not in the catalog any more */
    const json_t *old;               /* the stored entry that this one goes on with, or NULL */
    const json_t *defaults;          /* objects */
    const json_t *frozen;
} pd_op_toolbox_values_t;

/* PD_OK when every key is an argument of the operation or a place in one, values of whole arguments
 * are ones that these take, and the frozen places can be taken out of the schema. For an operation
 * that is gone only values that stand already may stay. Else PD_E_INVALID with the call's fault. */
pd_status_t pd_op_toolbox_values(pd_op_call_t *call, const pd_op_toolbox_values_t *values);

#endif
