/* Texts that the endpoint tells a model, the same on either side of the link.  Pure. */
#ifndef MCP_VIEW_TEXT_H
#define MCP_VIEW_TEXT_H

#include <stddef.h>

#define MCP_VIEW_TEXT_MAX 2001 /* bytes of the longest, with its NUL */

/* What the text is about. */
typedef struct mcp_view_about {
    const char *prefix;     /* of the control plane, a label */
    int is_collapsed;       /* connected tools are found by search */
    const char *const *applications; /* labels of the connectors that the caller has tools of, sorted; may be NULL when there is none */
    size_t application_count;
} mcp_view_about_t;

/* How to read the list of tools, into buf (MCP_VIEW_TEXT_MAX bytes), whole sentences alone; applications that find no room are counted.
 * Answers the bytes written without the NUL. */
size_t mcp_view_text_instructions(const mcp_view_about_t *about, char *buf, size_t size);

/* The server's description: one sentence for hosts that show a model nothing else before it asks. Plain ASCII without
 * quotes and backslashes: it stands in JSON as it is. */
const char *mcp_view_text_server(int is_collapsed);

#endif
