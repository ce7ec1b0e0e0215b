/* The only mapping from an error to what a client of the REST door sees: HTTP status, headers and problem details (RFC 9457). What
 * mcp_failure.h is for MCP. Pure, thread-safe. */
#ifndef MCP_PROBLEM_H
#define MCP_PROBLEM_H

#include "mcp_err.h"
#include "mcp_failure.h"

/* {"type","title","status","detail"?,"code","hint"?,"audit"?,"permission"?,"scopes"?} and its status: of the class where that is one of HTTP
 * (401, 403 of a scope or an origin, 405, 406, 413, 415, 429, 503), else of the code. ret->allow is err's own to fill by the caller. A tool that is
 * withheld has the same answer as one that never was. Never fails: an err that is NULL or empty is an internal error. */
void mcp_problem_answer(const mcp_err_t *err, apr_pool_t *pool, mcp_answer_t *ret);

#endif
