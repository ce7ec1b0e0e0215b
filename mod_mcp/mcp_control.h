/* Control-plane tools over MCP: policyd runs them, this room names them and shapes their results. */
#ifndef MCP_CONTROL_H
#define MCP_CONTROL_H

#include "mcp_turn.h"

/* What names of control-plane tools begin with at this endpoint, before two underscores: MCPControlPrefix or else policyd's own. */
apr_status_t mcp_control_prefix(mcp_turn_t *turn, const char **ret, mcp_err_t *err);

/* *ret: the operation's name, within `name`, when this is one of a control-plane tool here; else NULL, and it is a connected tool's or
 * nobody's. Whether there is such an operation policyd tells. */
apr_status_t mcp_control_op(mcp_turn_t *turn, const char *name, const char **ret, mcp_err_t *err);

/* Runs op, which was called as `name`, with arguments (an object or NULL). via: "direct" or "execute_tool". On success *ret is the text of the result object. On failure err says
 * what the client is told: an operation that is not there, or not for him, is an unknown tool. */
apr_status_t mcp_control_run(mcp_turn_t *turn, const mcp_era_t *era, const char *name, const char *op,
                             const json_t *arguments, const char *via, const char **ret,
                             size_t *ret_bytes, mcp_err_t *err);

/* The result object of a tool call for what the operation answered; NULL without memory. Pure. */
const char *mcp_control_shape(const json_t *result, const mcp_era_t *era, apr_pool_t *pool);

#endif
