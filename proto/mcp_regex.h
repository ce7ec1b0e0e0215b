/* Regular expressions with limits, over PCRE2 used directly (decisions 6.9). Compiled ones are immutable and thread-safe to match. */
#ifndef MCP_REGEX_H
#define MCP_REGEX_H

#include <apr_pools.h>

#include "mcp_proto.h"

typedef struct mcp_regex mcp_regex_t;

/* ECMA-262 pattern in UTF-8 (as JSON Schema `pattern` has it), unanchored. Freed with pool. MCP_E_FIELD: not a pattern. */
mcp_wire_status_t mcp_regex_compile(const char *pattern, size_t bytes, apr_pool_t *pool, mcp_regex_t **ret);

/* 1 matches, 0 does not, negative: a limit was hit (match, depth, heap) or the text is not UTF-8. */
int mcp_regex_match(const mcp_regex_t *regex, const char *text, size_t bytes);

#endif
