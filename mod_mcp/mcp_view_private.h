/* Shared by the files of the view room alone: the caches, how a blob is fetched, and chunks. */
#ifndef MCP_VIEW_PRIVATE_H
#define MCP_VIEW_PRIVATE_H

#include <pthread.h>

#include "mcp_view.h"

#define MCP_VIEW_GRANTS 1024 /* remembered; a power of two, direct-mapped */

typedef struct mcp_view_known {
    char token_hash[MCP_DIGEST_HEX + 1];
    char grant[MCP_MAX_ID + 1];
} mcp_view_known_t;

/* A view that a thread is making. */
typedef struct mcp_view_making {
    const char *key;
    struct mcp_view_making *next;
} mcp_view_making_t;

struct mcp_views {
    mcp_ask_t *ask;
    mcp_cache_t *views;
    mcp_cache_t *chunks;
    mcp_cache_t *operations;
    mcp_cache_t *schemas;
    mcp_cache_t *guards;
    mcp_cache_t *verdicts;
    pthread_mutex_t mutex; /* guards grants and making */
    pthread_cond_t made;
    mcp_view_making_t *making;
    mcp_view_known_t grants[MCP_VIEW_GRANTS];
};

/* A tool of a chunk as the texts that lists are made of. */
typedef struct mcp_chunk_tool {
    const char *name;
    const char *op;
    mcp_class_t klass;
    int is_pinned;
    int is_named;      /* its text begins with the name; a control-plane tool's has none */
    const char *text;  /* its object */
    size_t bytes;
    const char *old_text; /* without `title`; the same where it has none */
    size_t old_bytes;
} mcp_chunk_tool_t;

/* The tools of one connection, one toolbox, or the control plane: shared by all views that select from them. */
typedef struct mcp_chunk {
    int count;
    const mcp_chunk_tool_t *tools; /* sorted bytewise by name */
} mcp_chunk_t;

/* Refuses what policyd sent; log says what is wrong with it. */
apr_status_t mcp_view_not_sound(mcp_err_t *err, apr_pool_t *pool, const char *log);

/* A blob as a JSON object: a new reference, which the caller owns. */
apr_status_t mcp_view_fetch(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                            json_t **ret, size_t *ret_bytes, mcp_err_t *err);

/* A chunk, held until `pool` is cleared. */
apr_status_t mcp_view_chunk(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                            const mcp_chunk_t **ret, mcp_err_t *err);

/* Reads which of `count` tools are selected: *ret NULL for all, else bit i & 7 of byte i >> 3 for tool i. 0 when select (NULL: absent) is
 * not exactly as many bytes of lower-case hex as count needs, or has a bit beyond it. Pure. */
int mcp_view_select(const json_t *select, int count, apr_pool_t *pool, const unsigned char **ret);

#endif
