/* Outbound HTTP: idle handles by origin and connection, address checks on connect and on reuse,
 * caps, timeouts, response limits. One object per child, made after fork;
 * thread-safe. Only this room knows libcurl. */
#ifndef MCP_EGRESS_H
#define MCP_EGRESS_H

#include <apr_tables.h>

#include "mcp_err.h"
#include "mcp_request.h"

typedef struct mcp_egress mcp_egress_t;

typedef struct mcp_egress_options {
    int max_calls;          /* running at once in this child; at least 1 */
    int max_per_connection; /* of them, on one connection; at least 1 */
    int idle_per_origin;    /* kept-alive handles; 0: none is kept */
    int idle_total;
    int64_t idle_ms;     /* a kept handle older than this is closed */
    int64_t connect_ms;  /* for name, TCP and TLS together; at least 1 */
    const char *ca_file; /* NULL: the system's; else this file alone. Copied. */
} mcp_egress_options_t;

/* Once in each child before threads: curl_global_init and checks (version, thread safety,
 * asynchronous DNS, TLS). */
apr_status_t mcp_egress_init(mcp_err_t *err);
/* pool carries a mutex and the text of an error; it must outlive the calls. Everything else is
 * on malloc until mcp_egress_close; no cleanup is registered, because a pool of a child without
 * threads is destroyed inside a signal handler, where nothing must be closed. */
apr_status_t mcp_egress_create(const mcp_egress_options_t *options, apr_pool_t *pool,
                               mcp_egress_t **ret, mcp_err_t *err);
/* Closes idle handles; handles of a parent process are forgotten. Only when no call runs. NULL
 * is fine. */
void mcp_egress_close(mcp_egress_t *egress);
/* Closes idle handles past idle_ms; every send does so too, this is for quiet times. Any thread. */
void mcp_egress_tidy(mcp_egress_t *egress);

/* Takes a place for a call on `connection` (its id); refusal is rate_limited (429) for the
 * connection's cap and overloaded (503) for the child's, at once. Each success is given back by
 * leave. Any thread. */
apr_status_t mcp_egress_enter(mcp_egress_t *egress, const char *connection, apr_pool_t *pool,
                              mcp_err_t *err);
void mcp_egress_leave(mcp_egress_t *egress, const char *connection);

typedef struct mcp_egress_limits {
    int64_t timeout_ms; /* whole exchange, redirects and repetition included */
    size_t max_bytes;   /* of the response body as received */
    /* Id of the connection (an account, not a socket) whose credential the request carries: a
     * kept-alive handle serves one connection only, since some servers sign in a socket and not
     * a request. NULL: a fresh handle, closed after. */
    const char *connection;
    /* Judges the URL of a redirect within the origin before it is followed, with send's baton, on
     * its thread; 0 leaves the redirect as the result. NULL: none is followed. */
    int (*may_follow)(void *baton, const char *url);
} mcp_egress_limits_t;

/* Sends the request: target byte for byte, the given headers, Host, Accept and User-Agent unless
 * given, and what frames the body. No proxy of the environment, no netrc, cookies, alt-svc,
 * HSTS, Expect, and no content coding is asked for or undone. Redirects are followed only within
 * the origin and where limits->may_follow agrees, by us, at most 5, with GET or HEAD only; another one is the result, with
 * `location` as the upstream wrote it. allow: array of const char * origins that may be private
 * (MCPEgressAllow), compared by scheme, host and port; NULL: none. is_gone (may be NULL) is
 * called on this thread about every 200 ms; nonzero cancels. Idempotent requests are sent again
 * at most once when a reused connection died before any answer; others never.
 * ret lives in pool. Failures, all MCP_FAIL_TOOL: egress_denied (private address, or no URL we
 * would dial), invalid_arguments (method or header that cannot be sent), upstream_timeout,
 * upstream_unreachable (err->status is APR_ECONNREFUSED where no connection came about),
 * upstream_invalid, result_too_large, cancelled, internal (memory). Any
 * thread; pool is the caller's alone. */
apr_status_t mcp_egress_send(mcp_egress_t *egress, const mcp_request_t *request,
                             const mcp_egress_limits_t *limits, const apr_array_header_t *allow,
                             int (*is_gone)(void *), void *baton, apr_pool_t *pool,
                             mcp_response_t *ret, mcp_err_t *err);

/* 1 if the address may be dialled without MCPEgressAllow: globally reachable unicast. family
 * AF_INET or AF_INET6, bytes in network order. Knows IPv4-mapped, 6to4, NAT64, Teredo, ISATAP,
 * site-local, ULA, documentation, CGNAT, multicast, 0.0.0.0/8 and so on. Pure. */
int mcp_egress_is_public(int family, const unsigned char *address);

#endif
