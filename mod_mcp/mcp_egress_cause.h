/* Why an outbound call came to nothing, in our words: the library's results stop at
 * mcp_egress.c. Pure; private to the outbound rooms. */
#ifndef MCP_EGRESS_CAUSE_H
#define MCP_EGRESS_CAUSE_H

#include "mcp_err.h"

typedef enum mcp_egress_cause {
    MCP_EGRESS_OK = 0,
    /* before anything is sent */
    MCP_EGRESS_BAD_METHOD,
    MCP_EGRESS_BAD_HEADER,
    MCP_EGRESS_BAD_URL,
    MCP_EGRESS_ADDRESS,
    MCP_EGRESS_NO_NAME,
    MCP_EGRESS_NO_CONNECTION,
    MCP_EGRESS_CONNECT_TIME,
    MCP_EGRESS_NO_TRUST,
    MCP_EGRESS_CA_FILE,
    MCP_EGRESS_NO_TLS,
    /* while the request or its answer is on the way */
    MCP_EGRESS_RESENT, /* the library was about to repeat it */
    MCP_EGRESS_BROKEN,
    MCP_EGRESS_NO_ANSWER,
    MCP_EGRESS_TIME, /* number: milliseconds */
    MCP_EGRESS_GONE,
    MCP_EGRESS_NOT_HTTP,
    MCP_EGRESS_CUT,          /* the answer began and did not end */
    MCP_EGRESS_STATUS,       /* no final status */
    MCP_EGRESS_CODING,       /* a content coding that was not asked for */
    MCP_EGRESS_LARGE_HEADER, /* number: bytes */
    MCP_EGRESS_LARGE_BODY,   /* number: bytes */
    MCP_EGRESS_MEMORY,
    MCP_EGRESS_UNKNOWN,
    MCP_EGRESS_CAUSE_COUNT
} mcp_egress_cause_t;

/* Fills *err (may be NULL) and returns MCP_STATUS_REFUSED. number: what the cause says above,
 * else 0. has_run: the request was sent and must not be repeated blindly; the message says so. */
apr_status_t mcp_egress_cause_fail(mcp_egress_cause_t cause, apr_int64_t number, int has_run,
                                   apr_pool_t *pool, mcp_err_t *err);

#endif
