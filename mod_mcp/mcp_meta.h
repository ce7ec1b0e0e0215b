/* The two meta-tools: search_tools, which this child answers from the caller's view, and execute_tool, which is another spelling of a call. */
#ifndef MCP_META_H
#define MCP_META_H

#include "mcp_turn.h"

/* Searches the caller's connected tools. The attempt is on record before this returns; the query's text goes nowhere. */
apr_status_t mcp_meta_search(mcp_turn_t *turn, const mcp_era_t *era, const json_t *arguments,
                             const char *via, const char **ret, size_t *ret_bytes, mcp_err_t *err);

/* Unwraps name and arguments and runs them as a direct call would be run; only the record's `via` tells. Refuses itself. */
apr_status_t mcp_meta_execute(mcp_turn_t *turn, const mcp_era_t *era, const json_t *arguments,
                              const char *via, const char **ret, size_t *ret_bytes, mcp_err_t *err);

#endif
