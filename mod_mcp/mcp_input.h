/* The bounded reading of a request body. */
#ifndef MCP_INPUT_H
#define MCP_INPUT_H

#include "mcp_err.h"
#include "mcp_private.h"

/* The whole body, NUL-terminated beyond its length, from r->pool. MCP_FAIL_TOO_LARGE above max (declared or chunked); the rest is then left to
 * httpd, which closes the connection. MCP_FAIL_PARSE when the client ended it early. */
apr_status_t mcp_input_read(request_rec *r, apr_off_t max, const char **ret, size_t *ret_bytes, mcp_err_t *err);

#endif
