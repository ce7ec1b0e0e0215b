/* What a child keeps for the REST door: the compiled route table and the OpenAPI document of the policyd of the day. Both are immutable
 * blobs, kept by digest and shared by the child's threads; a policyd that was upgraded names others. */
#ifndef MCP_API_H
#define MCP_API_H

#include "mcp_ask.h"
#include "mcp_route.h"

typedef struct mcp_api mcp_api_t;

apr_status_t mcp_api_create(mcp_ask_t *ask, mcp_api_t **ret);
/* NULL is fine. */
void mcp_api_free(mcp_api_t **api);

/* Each asks policyd for what is not there and holds the result until `pool` is cleared. Failures: MCP_FAIL_UNAVAILABLE. */
apr_status_t mcp_api_routes(mcp_api_t *api, int64_t budget_ms, apr_pool_t *pool, const mcp_routes_t **ret,
                            mcp_err_t *err);
/* NUL-terminated beyond its length; *ret_digest (in pool) names it. */
apr_status_t mcp_api_document(mcp_api_t *api, int64_t budget_ms, apr_pool_t *pool, const char **ret,
                              size_t *ret_bytes, const char **ret_digest, mcp_err_t *err);

#endif
