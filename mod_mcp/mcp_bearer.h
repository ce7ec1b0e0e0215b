/* Bearer tokens and challenges (RFC 6750, RFC 9728).  Pure: header text in, header
 * text out.  Thread-safe. */
#ifndef MCP_BEARER_H
#define MCP_BEARER_H

#include "mcp_err.h"

#define MCP_BEARER_MAX_BYTES 8000 /* of a token */

/* The token of an Authorization header's value; MCP_FAIL_UNAUTHORIZED when it is absent or empty
 * (has_credentials 0), of another scheme, malformed, longer than MCP_BEARER_MAX_BYTES, or sent more
 * than once (httpd joins with ", "). *ret points into pool memory and is a secret; no error text
 * has any of it. Scheme compares case-insensitively. */
apr_status_t mcp_bearer_token(const char *authorization, apr_pool_t *pool, const char **ret,
                              size_t *ret_bytes, mcp_err_t *err);

/* WWW-Authenticate value for err (UNAUTHORIZED or SCOPE). metadata_url: of the protected resource
 * metadata; base_scope: named when nothing else is needed; an attribute whose value would be empty
 * is left out. Each attribute once; error_description in printable ASCII without quote and
 * backslash. */
const char *mcp_bearer_challenge(const mcp_err_t *err, const char *metadata_url,
                                 const char *base_scope, apr_pool_t *pool);

#endif
