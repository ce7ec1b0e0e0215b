/* Handlers that bring connector files into the catalog: connectors import, review, accept, dismiss. What a foreign description said was
 * converted before (policyctl, oas.h); here files are judged, compared with what is there, and put in force as far as nobody has to look
 * first (op_import_diff.h). The rest is kept as the connector's pending file. */
#ifndef PD_OP_IMPORT_H
#define PD_OP_IMPORT_H

#include "pd_ops.h"

pd_status_t pd_op_connectors_import(pd_op_call_t *call);
pd_status_t pd_op_connectors_review(pd_op_call_t *call);
pd_status_t pd_op_connectors_accept(pd_op_call_t *call);
pd_status_t pd_op_connectors_dismiss(pd_op_call_t *call);

#endif
