/* Sending again what changes nothing: a request that an application could not take now is repeated, within the time that it had. Everything else
 * is sent once. Stands between a call and mcp_egress.h. */
#ifndef MCP_RETRY_H
#define MCP_RETRY_H

#include "mcp_egress.h"

#define MCP_RETRY_TRIES   3     /* in all */
#define MCP_RETRY_WAIT_MS 10000 /* longer is not waited: the answer says it to the caller */

/* As mcp_egress_send(). Where request->is_idempotent, it is sent again when no connection came about, and after 429 and 503: as
 * Retry-After says (RFC 9110, 10.2.3: seconds or a date), else after 0.2 s, 0.8 s, with up to a quarter more by chance. Never beyond limits->timeout_ms, which
 * is for all tries together; where the wait does not fit, the last answer is the result. is_gone is polled while waiting. *ret_tries (may be NULL): how often
 * it was sent. */
apr_status_t mcp_retry_send(mcp_egress_t *egress, const mcp_request_t *request,
                            const mcp_egress_limits_t *limits, const apr_array_header_t *allow,
                            int (*is_gone)(void *), void *baton, apr_pool_t *pool,
                            mcp_response_t *ret, int *ret_tries, mcp_err_t *err);

/* Milliseconds that a Retry-After asks for at `now` (microseconds of UTC); -1: none, or one that says nothing. Pure. */
int64_t mcp_retry_after_ms(const char *value, apr_time_t now);

#endif
