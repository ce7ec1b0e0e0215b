/* The last check before anything is sent: does the substituted URL still belong to the operation
 * that was decided (contract 4, decisions 6.2)? Pure. */
#ifndef MCP_URLGUARD_H
#define MCP_URLGUARD_H

#include <jansson.h>

#include "mcp_err.h"

typedef struct mcp_guard mcp_guard_t;

/* Compiles a guard blob (PROTOCOL.md, Guard) into pool; immutable afterwards, any thread. */
apr_status_t mcp_urlguard_compile(const json_t *blob, apr_pool_t *pool, mcp_guard_t **ret,
                                  mcp_err_t *err);

/* Judges url: same origin as base, under base's path, and after normalisation (percent-decoding,
 * repeatedly until stable or refused; dot segments; doubled slashes; host case; userinfo; default
 * port; matrix parameters; trailing slash; case of the path) still claimed by `operation` as the
 * most specific template of `method`, or by another whose verdict is allow; identical templates: an
 * explicit block refuses. APR_SUCCESS, or err with url_restricted. */
apr_status_t mcp_urlguard_check(const mcp_guard_t *guard, const char *base, const char *method,
                                const char *operation, const char *url, apr_pool_t *pool,
                                mcp_err_t *err);

#endif
