/* The two tools that stand for all connected ones when these collapse: their names and definitions.  Compiled by both programs. Pure. */
#ifndef MCP_VIEW_META_H
#define MCP_VIEW_META_H

#include <stddef.h>

#define MCP_META_EXECUTE "execute_tool"
#define MCP_META_SEARCH  "search_tools"

typedef enum mcp_meta { MCP_META_NONE = -1, MCP_META_IS_EXECUTE, MCP_META_IS_SEARCH, MCP_METAS } mcp_meta_t;

/* Which of them a name is; no connected tool has such a name, since theirs have "__" in them. */
mcp_meta_t mcp_view_meta(const char *name);
const char *mcp_view_meta_name(mcp_meta_t meta);
/* The tool object as `tools/list` shows it: JSON text without a `title`. */
const char *mcp_view_meta_definition(mcp_meta_t meta);
/* 1 when the tool has a top-level argument of this name. */
int mcp_view_meta_knows(mcp_meta_t meta, const char *argument);

#endif
