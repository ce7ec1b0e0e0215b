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
    mcp_cache_t *lexica;
    mcp_cache_t *indices;
    pthread_mutex_t mutex; /* guards grants and making */
    pthread_cond_t made;
    mcp_view_making_t *making;
    mcp_view_known_t grants[MCP_VIEW_GRANTS];
};

/* A tool of a chunk as the texts that lists are made of. */
typedef struct mcp_chunk_tool {
    const char *name;
    const char *op;
    const char *connector; /* slug, where the chunk says it of each tool; else NULL */
    mcp_class_t klass;
    int is_pinned;
    int is_named;      /* its text begins with the name; a control-plane tool's has none */
    const char *text;  /* its object */
    size_t bytes;
    const char *old_text; /* without `title`; the same where it has none */
    size_t old_bytes;
    const char *brief; /* what stands for both in a collapsed list, or NULL */
    size_t brief_bytes;
} mcp_chunk_tool_t;

/* The tools of one connection, one toolbox, or the control plane: shared by all views that select from them. */
typedef struct mcp_chunk {
    int count;
    const mcp_chunk_tool_t *tools; /* sorted bytewise by name */
} mcp_chunk_t;

/* A selected tool under its advertised name. */
typedef struct mcp_view_row {
    const char *name;
    const mcp_chunk_tool_t *tool;
    int is_control;
    const char *account;
    const char *connector;
    const char *label;
} mcp_view_row_t;

/* The right to make what is named by claimed->key, waited for until another thread that makes it is done; 0 when the budget is over before. */
int mcp_view_claim(mcp_views_t *views, mcp_view_making_t *claimed, int64_t budget_ms);
void mcp_view_unclaim(mcp_views_t *views, const mcp_view_making_t *claimed);

/* Makes the list of these rows in own; *ret_bytes grows by what it holds. scratch ends with the caller. */
void mcp_view_list(const mcp_view_row_t *rows, int count, apr_pool_t *own, apr_pool_t *scratch,
                   mcp_list_t *ret, size_t *ret_bytes);
/* The list of what is not hidden, with the meta-tools among it; empty when every connected tool is pinned, or there is none. */
void mcp_view_list_collapsed(const mcp_view_row_t *rows, int count, apr_pool_t *own, apr_pool_t *scratch,
                             mcp_list_t *ret, size_t *ret_bytes);

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
