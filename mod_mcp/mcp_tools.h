/* tools/list and the entry of tools/call. */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include "mcp_turn.h"

/* One page of the caller's view, pre-serialised; the turn is resolved. */
apr_status_t mcp_tools_list(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                            const char **ret, size_t *ret_bytes, mcp_err_t *err);

/* Checks the shape of the call and runs it; asks policyd itself who the caller is. */
apr_status_t mcp_tools_call(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                            const char **ret, size_t *ret_bytes, mcp_err_t *err);

/* A call of `name` with arguments (an object or NULL), whoever spelled it: a meta-tool, an operation or a connected tool. via: "direct" or
 * "execute_tool". */
apr_status_t mcp_tools_run(mcp_turn_t *turn, const mcp_era_t *era, const char *name,
                           const json_t *arguments, const char *via, const char **ret,
                           size_t *ret_bytes, mcp_err_t *err);

#endif
