/* The last check before anything is sent: does the substituted URL still belong to the operation
 * that was decided? Pure. */
#ifndef MCP_URLGUARD_H
#define MCP_URLGUARD_H

#include <jansson.h>

#include "mcp_err.h"

typedef struct mcp_guard mcp_guard_t;

/* One caller's word about one row of a guard, as it stands in the caller's verdicts: a
 * NUL-terminated string with one character for each row, in the rows' order. */
#define MCP_GUARD_ALLOW 'a'
#define MCP_GUARD_DENY 'd'  /* not for this caller */
#define MCP_GUARD_BLOCK 'b' /* an explicit block */

/* Compiles a guard blob (PROTOCOL.md, Guard) into pool; immutable afterwards, any thread. The blob
 * is not needed any more then. A path writes a placeholder over several segments as {+name};
 * literals of a query may stand in `query` or behind '?' in the path; what follows '#' is ignored.
 * A row that breaks the form refuses the whole blob (internal). Nothing in it depends on a caller. */
apr_status_t mcp_urlguard_compile(const json_t *blob, apr_pool_t *pool, mcp_guard_t **ret,
                                  mcp_err_t *err);

/* How many rows the blob had, so how many verdicts belong to it. */
size_t mcp_urlguard_rows(const mcp_guard_t *guard);

/* Judges url for the caller whose verdicts these are: same origin as base, under base's path, no userinfo or fragment, and as written
 * claimed by `operation` as the most specific template of `method`, or by another whose verdict is
 * allow. In every other reading that an upstream may have of it (decoded again until stable,
 * doubled slashes, backslashes, matrix parameters, trailing slash, dots or blanks, case, overlong
 * UTF-8, look-alikes; mcp_urlguard.c lists them) it must be claimed likewise, or by nobody; a dot
 * segment in any reading refuses. Identical templates: an explicit block refuses, a twin that is
 * merely denied does not. A `deny` on `operation` itself is policyd's business, which let it begin;
 * a `block` refuses. Verdicts that are not exactly one known character for each row belong to
 * another guard and refuse everything (internal). APR_SUCCESS, or err with url_restricted or
 * internal. Each call may run in any thread; pool is the caller's. */
apr_status_t mcp_urlguard_check(const mcp_guard_t *guard, const char *verdicts, const char *base,
                                const char *method, const char *operation, const char *url,
                                apr_pool_t *pool, mcp_err_t *err);

#endif
