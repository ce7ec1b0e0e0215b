/* The last check before anything is sent: does the substituted URL still belong to the operation
 * that was decided? Pure. */
#ifndef MCP_URLGUARD_H
#define MCP_URLGUARD_H

#include <jansson.h>

#include "mcp_err.h"

typedef struct mcp_guard mcp_guard_t;

/* Compiles a guard blob (PROTOCOL.md, Guard) into pool; immutable afterwards, any thread. The blob
 * is not needed any more then. A path writes a placeholder over several segments as {+name};
 * literals of a query may stand in `query` or behind '?' in the path; what follows '#' is ignored.
 * A row that breaks the form refuses the whole blob (internal). */
apr_status_t mcp_urlguard_compile(const json_t *blob, apr_pool_t *pool, mcp_guard_t **ret,
                                  mcp_err_t *err);

/* Judges url: same origin as base, under base's path, no userinfo or fragment, and as written
 * claimed by `operation` as the most specific template of `method`, or by another whose verdict is
 * allow. In every other reading that an upstream may have of it (decoded again until stable,
 * doubled slashes, backslashes, matrix parameters, trailing slash, dots or blanks, case, overlong
 * UTF-8, look-alikes; mcp_urlguard.c lists them) it must be claimed likewise, or by nobody; a dot
 * segment in any reading refuses. Identical templates: an explicit block refuses, a twin that is
 * merely denied does not. A `deny` on `operation` itself is policyd's business, which let it begin;
 * a `block` refuses. APR_SUCCESS, or err with url_restricted. Each call may run in any thread; pool
 * is the caller's. */
apr_status_t mcp_urlguard_check(const mcp_guard_t *guard, const char *base, const char *method,
                                const char *operation, const char *url, apr_pool_t *pool,
                                mcp_err_t *err);

#endif
