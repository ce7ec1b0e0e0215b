/* Handler of whoami: what the caller is and may. */
#ifndef PD_OP_WHOAMI_H
#define PD_OP_WHOAMI_H

#include "pd_ops.h"

pd_status_t pd_op_whoami_get(pd_op_call_t *call);

#endif
