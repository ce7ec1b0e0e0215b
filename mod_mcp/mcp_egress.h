/* Outbound HTTP: idle handles by origin, address checks on connect and on reuse, caps, timeouts, response limits
 * (decisions 6). One object per child, made after fork; thread-safe. Only this room knows libcurl. */
#ifndef MCP_EGRESS_H
#define MCP_EGRESS_H

#include <apr_tables.h>

#include "mcp_err.h"
#include "mcp_request.h"

typedef struct mcp_egress mcp_egress_t;

typedef struct mcp_egress_options {
    int max_calls;       /* running at once in this child */
    int max_per_connection; /* of them, on one connection */
    int idle_per_origin; /* kept-alive handles */
    int idle_total;
    int64_t idle_ms;     /* a kept handle older than this is closed */
    int64_t connect_ms;
    const char *ca_file; /* NULL: the system's */
} mcp_egress_options_t;

/* Once in each child before threads: curl_global_init and checks (asynchronous DNS). */
apr_status_t mcp_egress_init(mcp_err_t *err);
apr_status_t mcp_egress_create(const mcp_egress_options_t *options, apr_pool_t *pool, mcp_egress_t **ret,
                               mcp_err_t *err);
/* Closes idle handles. Only when no call runs. NULL is fine. */
void mcp_egress_close(mcp_egress_t *egress);

/* Takes a place for a call on `connection` (its id); refusal is rate_limited (429) for the connection's cap and overloaded
 * (503) for the child's, at once. Each success is given back by leave. */
apr_status_t mcp_egress_enter(mcp_egress_t *egress, const char *connection, apr_pool_t *pool, mcp_err_t *err);
void mcp_egress_leave(mcp_egress_t *egress, const char *connection);

typedef struct mcp_egress_limits {
    int64_t timeout_ms; /* whole exchange */
    size_t max_bytes;   /* of the response body as received */
} mcp_egress_limits_t;

/* Sends the request byte for byte (PATH_AS_IS, no proxy of the environment, no netrc, cookies, alt-svc, HSTS, Expect). Redirects
 * are followed only within the origin, by us, at most 5, with GET or HEAD only. allow: array of const char * origins that may be private
 * (MCPEgressAllow). is_gone (may be NULL) is polled about every 200 ms; nonzero cancels. Idempotent requests are sent again at most once
 * when a reused connection died before any answer; others never (decisions 6.3).
 * Failures: egress_denied, upstream_timeout, upstream_unreachable, upstream_invalid, result_too_large, cancelled (all MCP_FAIL_TOOL). */
apr_status_t mcp_egress_send(mcp_egress_t *egress, const mcp_request_t *request,
                             const mcp_egress_limits_t *limits, const apr_array_header_t *allow,
                             int (*is_gone)(void *), void *baton, apr_pool_t *pool, mcp_response_t *ret,
                             mcp_err_t *err);

/* 1 if the address may be dialled without MCPEgressAllow: globally reachable unicast. family AF_INET or AF_INET6, bytes in network
 * order. Knows IPv4-mapped, 6to4, NAT64, Teredo, site-local, ULA, documentation, CGNAT, multicast, 0.0.0.0/8 and so on. Pure. */
int mcp_egress_is_public(int family, const unsigned char *address);

#endif
