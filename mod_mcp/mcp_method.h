/* The methods of the protocol: which exist in which era, and what each answers. */
#ifndef MCP_METHOD_H
#define MCP_METHOD_H

#include "mcp_turn.h"

/* Answers one request: *ret is the text of the result object. Every path has asked policyd who the caller is before it answers anything but
 * MCP_FAIL_UNAVAILABLE. `era->revision` of a legacy request is settled (never NONE). */
apr_status_t mcp_method_run(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                            const char **ret, size_t *ret_bytes, mcp_err_t *err);

#endif
