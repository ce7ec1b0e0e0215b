/* Private to the regex rooms: what the translation hands to the compiler. */
#ifndef MCP_REGEX_PRIVATE_H
#define MCP_REGEX_PRIVATE_H

#include <stddef.h>

#include "mcp_proto.h"

/* Callouts in a translated pattern, by what they stand before. */
#define MCP_REGEX_AT_PLACE   0u /* a place that matching can go back to or has run up to */
#define MCP_REGEX_AT_REF     1u /* a back reference */
#define MCP_REGEX_AT_REF_RUN 2u /* a repeated one */

typedef struct mcp_regex_source {
    char *text; /* PCRE2 syntax; malloc'd, the caller's to free */
    size_t bytes;
    size_t stretch; /* longest row of characters that is matched without a callout */
} mcp_regex_source_t;

/* MCP_E_FIELD: not an ECMA-262 pattern; MCP_E_NOMEM.  Sets *ret on success alone. */
mcp_wire_status_t mcp_regex_translate(const char *pattern, size_t bytes, mcp_regex_source_t *ret);

#endif
