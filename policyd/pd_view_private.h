/* Shared by the files of the view room alone. Loop's thread, but for pd_view_plain(). */
#ifndef PD_VIEW_PRIVATE_H
#define PD_VIEW_PRIVATE_H

#include "pd_view.h"

/* 1 when tools that only lack a scope are listed. */
int pd_view_has_step_up(const pd_core_t *core);
/* 1 when tools of this class are listed for the scopes. */
int pd_view_is_listed(int is_stepped_up, unsigned scopes, mcp_class_t klass);

/* A plain tool's object; new reference, NULL: out of memory. Any thread. */
json_t *pd_view_plain(const pd_connection_t *connection, const pd_tool_t *tool);

#endif
