/* The only mapping from an error to what a client sees: HTTP status, headers, JSON-RPC error or in-band result. Pure. */
#ifndef MCP_FAILURE_H
#define MCP_FAILURE_H

#include "mcp_era.h"
#include "mcp_err.h"

typedef struct mcp_answer {
    int http;
    const char *content_type; /* NULL: no body */
    const char *body;
    size_t body_bytes;
    int retry_after_s;    /* 0: no header */
    int is_challenge;     /* the caller adds WWW-Authenticate */
    const char *allow;    /* 405 */
} mcp_answer_t;

/* id: raw token or NULL. era may be NULL (not known yet: modern statuses, and id left out when NULL). A MCP_FAIL_TOOL becomes the result
 * {"content":[{"type":"text","text":…}],"isError":true,"structuredContent":{"error":{code,message,hint?,audit?}}}, shaped for the era (resultType and
 * `_meta` serverInfo only modern; structuredContent from 2025-06-18 on). server: "name/version" of ours. */
void mcp_failure_answer(const mcp_err_t *err, const char *id, const mcp_era_t *era, apr_pool_t *pool, mcp_answer_t *ret);

/* Members that a modern result starts with: "resultType":"complete","_meta":{serverInfo} (no braces), or "" for legacy. */
const char *mcp_failure_result_head(const mcp_era_t *era, apr_pool_t *pool);

#endif
