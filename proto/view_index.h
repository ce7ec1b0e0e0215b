/* An index over the tools of one view, for mcp_view_search(). Built once, immutable, read by any
 * number of threads. Memory grows with the text of the tools; a query touches the postings of its
 * own words only. Pure. */
#ifndef MCP_VIEW_INDEX_H
#define MCP_VIEW_INDEX_H

#include <apr_pools.h>
#include <jansson.h>

#include "mcp_proto.h"
#include "view_lexicon.h"

typedef struct mcp_view_index mcp_view_index_t;

#define MCP_VIEW_INDEX_TOOLS 100000 /* of one index */
#define MCP_VIEW_INDEX_TEXT                                                                        \
    (16u *                                                                                         \
     1024) /* bytes of one tool's description, and of its arguments' names and texts together */
#define MCP_VIEW_INDEX_NAME 512 /* bytes of an advertised name */
#define MCP_VIEW_INDEX_DEPTH 6  /* of arguments within arguments */

/* A connected tool; the control plane's own are never given to an index. Strings are UTF-8; all but
 * name may be NULL. */
typedef struct mcp_view_entry {
    const char *name;        /* as advertised: {account}__{operation} */
    const char *account;     /* label of the account or toolbox; several with a space between */
    const char *connector;   /* slug; several with a space between */
    const char *label;       /* the connector's label */
    const char *description; /* as advertised */
    const json_t
        *schema; /* input schema as advertised: names and descriptions of arguments are read */
} mcp_view_entry_t;

/* Builds. Nothing of tools is kept, lexicon is (NULL: knows no application and no ordinary word).
 * The index lives in a pool of its own below `pool`, which no other thread may use meanwhile; on
 * failure nothing stays. What the rooms answer names a tool by its number in tools. MCP_E_SIZE: too
 * many tools, or a name beyond MCP_VIEW_INDEX_NAME, or more text than 2 GiB of index hold;
 * MCP_E_FIELD: a tool without a name; MCP_E_NOMEM. */
mcp_wire_status_t mcp_view_index_build(const mcp_view_entry_t *tools, size_t count,
                                       const mcp_view_lexicon_t *lexicon, apr_pool_t *pool,
                                       mcp_view_index_t **ret);

size_t mcp_view_index_count(const mcp_view_index_t *index);
/* The advertised name of a tool; lives as long as the index. */
const char *mcp_view_index_name(const mcp_view_index_t *index, size_t tool);
/* What it holds: distinct words, postings, bytes. For status pages and the bench. */
typedef struct mcp_view_index_size {
    size_t tools, words, postings, bytes;
} mcp_view_index_size_t;
void mcp_view_index_size(const mcp_view_index_t *index, mcp_view_index_size_t *ret);

#endif
