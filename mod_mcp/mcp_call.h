/* The story of one tool call: begin, check, merge, build, guard, send, shape, end. */
#ifndef MCP_CALL_H
#define MCP_CALL_H

#include "mcp_turn.h"

/* Runs `name` with `arguments` (an object or NULL). via: "direct" or "execute_tool". On success *ret is the text of the result object, which an
 * upstream's 4xx is too (isError); its outcome is durable before this returns. On failure err says what the client is told; what began has its end on
 * record. */
apr_status_t mcp_call_run(mcp_turn_t *turn, const mcp_era_t *era, const char *name,
                          const json_t *arguments, const char *via, const char **ret, size_t *ret_bytes,
                          mcp_err_t *err);

#endif
