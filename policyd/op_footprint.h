/* Handler of the footprint resource: what the tools that a caller lists weigh in a prompt. */
#ifndef PD_OP_FOOTPRINT_H
#define PD_OP_FOOTPRINT_H

#include "pd_ops.h"

/* {"member"?,"client"?} -> {"member"?,"client"?,"mode","why","scopes","tools","callable","listed","registered"?,"digest","flat","collapsed"?,
 * "saved_per_mille"?,"control","connected","connectors","heaviest","results","note"}.
 * Characters are exact; tokens are an estimate that says so. For the actor himself what his grant lists, for another member
 * (member:read) what a grant with every scope would list. `flat` and `collapsed` are both lists that there can be, whichever `mode` is in
 * force; without a connected tool to hide there is no `collapsed`. `registered` counts what the caller may not have: for those who read all
 * connections and toolboxes. `digest` is of the definitions of the flat list. `results` are means of the member's last calls by the audit
 * trail, as far as it has any. */
pd_status_t pd_op_footprint_get(pd_op_call_t *call);

#endif
