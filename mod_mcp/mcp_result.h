/* From an upstream's HTTP response to the result of a tool call, shaped for the caller's revision. Pure. */
#ifndef MCP_RESULT_H
#define MCP_RESULT_H

#include "mcp_era.h"
#include "mcp_request.h"

/* Text of the result object. 4xx, 5xx and redirects that
 * were not followed give isError with status and body. audit: id for the error object. *ret_is_error tells which. */
apr_status_t mcp_result_shape(const mcp_response_t *response, const mcp_era_t *era, const char *audit,
                              apr_pool_t *pool, const char **ret, size_t *ret_bytes, int *ret_is_error,
                              mcp_err_t *err);

#endif
