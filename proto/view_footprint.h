/* What tool definitions weigh in a prompt, counted in characters by what they are spent on.  A pure function of definitions, compiled by
 * both programs.  A character is a Unicode code point of the text as it is sent. */
#ifndef MCP_VIEW_FOOTPRINT_H
#define MCP_VIEW_FOOTPRINT_H

#include <stddef.h>

#include <jansson.h>

#include "mcp_proto.h"

typedef struct mcp_footprint {
    size_t tools;
    size_t descriptions; /* titles and descriptions of the tools */
    size_t parameters;   /* titles and descriptions of their parameters, at every depth; part of `schemas` */
    size_t names;        /* names and types of their parameters, at every depth; part of `schemas` */
    size_t schemas;      /* input schemas, serialised */
    size_t definitions;  /* whole definitions, serialised: what stands above, names and annotations */
} mcp_footprint_t;

/* Adds a tool object as `tools/list` shows it. MCP_E_FIELD: no object; MCP_E_NOMEM; *sum is unchanged then. */
mcp_wire_status_t mcp_footprint_add(const json_t *def, mcp_footprint_t *sum);
/* Adds one sum to another. */
void mcp_footprint_join(const mcp_footprint_t *part, mcp_footprint_t *sum);

/* Characters of UTF-8 text; NULL has none. */
size_t mcp_footprint_characters(const char *text);
/* An estimate that no tokenizer made: a token for four characters. */
size_t mcp_footprint_tokens(size_t characters);
#define MCP_FOOTPRINT_NOTE "rough; not a tokenizer's result, not billing"

#endif
