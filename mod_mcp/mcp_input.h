/* The bounded reading of a request body. */
#ifndef MCP_INPUT_H
#define MCP_INPUT_H

#include "mcp_err.h"
#include "mcp_private.h"

/* The whole body, NUL-terminated beyond its length, from r->pool. MCP_FAIL_TOO_LARGE above max (declared or chunked); the rest is then left to
 * httpd, which closes the connection. MCP_FAIL_PARSE when the client ended it early, or sends it too slowly: 20 seconds, and one more for each
 * 10 KiB of it. */
apr_status_t mcp_input_read(request_rec *r, apr_off_t max, const char **ret, size_t *ret_bytes, mcp_err_t *err);

/* Gives each connection the filter that ends slow reads of a body, also inside a TLS record or a chunk's line. A pre_connection hook; DECLINED. */
int mcp_input_pre_connection(conn_rec *connection, void *socket);

/* Makes the filter known; once, when the hooks are registered. */
void mcp_input_register(void);

#endif
