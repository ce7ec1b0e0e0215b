/* Handler of the footprint resource: what the tools that a caller lists weigh in a prompt. */
#ifndef PD_OP_FOOTPRINT_H
#define PD_OP_FOOTPRINT_H

#include "pd_ops.h"

/* {"member"?,"client"?} -> {"member"?,"client"?,"mode","scopes","tools","instructions","control","connected","connectors","heaviest","note"}.
 * Characters are exact; tokens are an estimate that says so. For the actor himself what his grant lists, for another member
 * (member:read) what a grant with every scope would list. `mode` is "flat": every tool is listed by itself, whatever the client. */
pd_status_t pd_op_footprint_get(pd_op_call_t *call);

#endif
