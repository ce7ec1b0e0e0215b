/* Texts that the endpoint tells a model, the same on either side of the link.  Pure. */
#ifndef MCP_VIEW_TEXT_H
#define MCP_VIEW_TEXT_H

#include <stddef.h>

#define MCP_VIEW_TEXT_MAX 2001 /* bytes of the longest, with its NUL */

/* How to read the list of tools, into buf (MCP_VIEW_TEXT_MAX bytes). prefix: of the control plane, a label. Answers the bytes written
 * without the NUL. */
size_t mcp_view_text_instructions(const char *prefix, char *buf, size_t size);

#endif
