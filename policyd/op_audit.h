/* Handlers of the audit resource: the trail's query copy through every door. Job
 * lane. */
#ifndef PD_OP_AUDIT_H
#define PD_OP_AUDIT_H

#include "pd_ops.h"

pd_status_t pd_op_audit_list(pd_op_call_t *call);
pd_status_t pd_op_audit_get(pd_op_call_t *call);

#endif
