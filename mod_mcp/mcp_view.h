/* What a child keeps of policyd's blobs, ready for use: tool views with their list pre-serialised, operations and advertised schemas compiled,
 * guards compiled, callers' verdicts. All immutable and shared by the child's threads. */
#ifndef MCP_VIEW_H
#define MCP_VIEW_H

#include "../proto/mcp_schema.h"
#include "../proto/view_index.h"
#include "mcp_ask.h"
#include "mcp_cache.h"
#include "mcp_urlguard.h"

typedef struct mcp_views mcp_views_t;

/* One tool of a view. */
typedef struct mcp_view_tool {
    const char *name;  /* as advertised: a control-plane tool's has its prefix */
    const char *op;    /* id of its operation; "" where the chunk says none */
    mcp_class_t klass; /* effective classification */
    int is_control;    /* of the control plane: runs in policyd */
    int is_pinned;     /* always visible */
    const char *account;   /* label of its connection or toolbox; NULL: of the control plane */
    const char *connector; /* slug; NULL likewise */
    const char *label;     /* what a person calls that: the connector's label, or the toolbox's description */
} mcp_view_tool_t;

/* Tool objects as `tools/list` sends them, in bytewise order of names, joined by commas, so that any page is one slice. */
typedef struct mcp_list {
    int count;
    const char *joined;      /* as policyd made them: 2025-06-18 and later */
    const size_t *offsets;   /* count + 1: tool i is joined[offsets[i] .. offsets[i + 1] - 1) */
    const char *old_joined;  /* without `title`: 2025-03-26 */
    const size_t *old_offsets;
    const char *whole;       /* the result of a modern tools/list that shows all on one page */
    size_t whole_bytes;
} mcp_list_t;

/* A tool view. */
typedef struct mcp_view {
    const char *key;         /* names these very bytes: digest and prefix */
    int count;
    const mcp_view_tool_t *tools; /* sorted bytewise by name; tool i stands at flat's i */
    mcp_list_t flat;         /* every tool */
    mcp_list_t collapsed;    /* control plane, pinned tools and the two meta-tools; empty where there is nothing to hide */
    mcp_collapse_counts_t counts;
    const char *applications; /* digest: names of what this caller might connect; NULL: none */
} mcp_view_t;

/* Last members of a modern list's result. */
#define MCP_VIEW_LIST_TAIL ",\"ttlMs\":30000,\"cacheScope\":\"private\""

/* An operation as calls need it. */
typedef struct mcp_operation {
    const json_t *definition; /* read only: shared by threads */
    const char *id;
    const char *method;
    const json_t *schema;
    const mcp_schema_t *compiled;
} mcp_operation_t;

/* A schema that callers see in the place of an operation's own. */
typedef struct mcp_advertised {
    const json_t *schema; /* read only: shared by threads */
    const mcp_schema_t *compiled;
} mcp_advertised_t;

/* max_bytes: of all that is kept. */
apr_status_t mcp_view_create(mcp_ask_t *ask, size_t max_bytes, mcp_views_t **ret);
void mcp_view_free(mcp_views_t **views);

/* Each asks policyd for what is not there, and holds the result until `pool` is cleared. Failures: MCP_FAIL_UNAVAILABLE.
 * prefix: of control-plane tools at this endpoint, a label; NULL: the one that the view names. */
apr_status_t mcp_view_get(mcp_views_t *views, const char *digest, const char *prefix, int64_t budget_ms,
                          apr_pool_t *pool, const mcp_view_t **ret, mcp_err_t *err);
apr_status_t mcp_view_operation(mcp_views_t *views, const char *digest, int64_t budget_ms,
                                apr_pool_t *pool, const mcp_operation_t **ret, mcp_err_t *err);
apr_status_t mcp_view_schema(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                             const mcp_advertised_t **ret, mcp_err_t *err);
apr_status_t mcp_view_guard(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                            const mcp_guard_t **ret, mcp_err_t *err);
/* A caller's verdicts about a guard's rows, for mcp_urlguard_check(), which compares their number with the rows'. */
apr_status_t mcp_view_verdicts(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                               const char **ret, mcp_err_t *err);

/* The index over the view's connected tools, made at its first search, held until pool is cleared. *ret_tools: the view's number of each tool of the
 * index. lexicon: digest of the words that policyd ships, or NULL. */
apr_status_t mcp_view_search_index(mcp_views_t *views, const mcp_view_t *view, const char *lexicon,
                                   int64_t budget_ms, apr_pool_t *pool, const mcp_view_index_t **ret,
                                   const int **ret_tools, mcp_err_t *err);

/* The view's tool of this advertised name, or NULL. Lives as long as the view. */
const mcp_view_tool_t *mcp_view_find(const mcp_view_t *view, const char *name);

/* The grant's id that a token's hash was resolved to before in this child, or NULL; remembering it is safe because a hash never changes its
 * grant, and it decides nothing: it only spares a question when a sealed session is opened. In pool. */
const char *mcp_view_grant(mcp_views_t *views, const char *token_hash, apr_pool_t *pool);
void mcp_view_remember(mcp_views_t *views, const char *token_hash, const char *grant);

#endif
