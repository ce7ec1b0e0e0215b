/* From an operation's definition (PROTOCOL.md, Operation) and merged arguments to the request that
 * is sent: path, query, header and cookie serialisation with style and explode as OpenAPI says, and
 * JSON, form, multipart and text bodies. Pure. */
#ifndef MCP_TEMPLATE_H
#define MCP_TEMPLATE_H

#include <jansson.h>

#include "mcp_err.h"
#include "mcp_request.h"

/* base: the plan's base URL. auth: the plan's `auth` object. Every value that ends in the path is
 * percent-encoded so that it stays one segment (multi_segment: several, each by itself, dot
 * segments refused); a value that is "." or ".." as a whole segment, or holds NUL, is refused as
 * url_restricted; CR, LF and NUL in header or cookie values are refused as invalid_arguments.
 * Memory from pool. */
apr_status_t mcp_template_expand(const json_t *operation, const char *base, const json_t *args,
                                 const json_t *auth, apr_pool_t *pool, mcp_request_t *ret,
                                 mcp_err_t *err);

#endif
