/* The only mapping from an error to what a client sees: HTTP status, headers, JSON-RPC error or
 * in-band result.  Pure, thread-safe. */
#ifndef MCP_FAILURE_H
#define MCP_FAILURE_H

#include "mcp_era.h"
#include "mcp_err.h"

/* serverInfo of every door. The build sets the version. */
#define MCP_SERVER_NAME "mod_mcp"
#ifndef MCP_SERVER_VERSION
#ifdef PACKAGE_VERSION
#define MCP_SERVER_VERSION PACKAGE_VERSION
#else
#define MCP_SERVER_VERSION "0.1.0"
#endif
#endif

typedef struct mcp_answer {
    int http;
    const char *content_type; /* NULL: no body */
    const char *body;
    size_t body_bytes;
    int retry_after_s; /* 0: no header */
    int is_challenge;  /* the caller adds WWW-Authenticate */
    const char *allow; /* 405: value of Allow; NULL: none */
} mcp_answer_t;

/* id: raw token or NULL. era may be NULL (not known yet: modern statuses and shapes); id is left
 * out when NULL. A MCP_FAIL_TOOL becomes the result
 * {"content":[{"type":"text","text":…}],"structuredContent":{"error":{code,message,hint?,audit?,
 * permission?}},"isError":true}, shaped for the era (resultType and `_meta` serverInfo only modern;
 * structuredContent from 2025-06-18 on; a legacy revision that is not known counts as the oldest).
 *
 * Never fails: an err that is NULL or empty is answered as an internal error.
 *
 * Two members of err mean more to this room:
 * - requested: for MCP_FAIL_VERSION the version asked for (NULL or a legacy date, or with
 *   err->is_modern_only any: `supported` lists modern versions only); for the codes unknown_tool, restricted
 *   and forbidden the tool's name as the caller sent it. These three give one and the same answer,
 *   -32602 "Unknown tool: NAME", whatever else err says; hint, audit and permission are left out.
 *   Without `requested`, a message that starts with "Unknown tool" is taken as it is.
 *   For MCP_FAIL_CAPABILITY the required capabilities as a JSON object, `{"elicitation":{}}`.
 * - hint: goes into `data` of a JSON-RPC error, and behind the message of an in-band one.
 * 401 and 403 of scope have a body {"error","error_description"[,"scope"]} that is no JSON-RPC. */
void mcp_failure_answer(const mcp_err_t *err, const char *id, const mcp_era_t *era,
                        apr_pool_t *pool, mcp_answer_t *ret);

/* Members that a modern result starts with: "resultType":"complete","_meta":{serverInfo} (no
 * braces, no comma after it), or "" for legacy. era NULL: modern. */
const char *mcp_failure_result_head(const mcp_era_t *era, apr_pool_t *pool);
/* The same of a modern result, with a description of the server that needs no escape in JSON. */
const char *mcp_failure_described_head(const char *description, apr_pool_t *pool);

#endif
