/* tools search: what a member's search_tools would find, and why. */
#ifndef OP_SEARCH_H
#define OP_SEARCH_H

#include "pd_ops.h"

pd_status_t pd_op_tools_search(pd_op_call_t *call);

#endif
