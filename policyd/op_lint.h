/* Handler of tools lint: advice on the catalog as the actor sees it (pd_lint.h). */
#ifndef PD_OP_LINT_H
#define PD_OP_LINT_H

#include "pd_ops.h"

pd_status_t pd_op_tools_lint(pd_op_call_t *call);

#endif
