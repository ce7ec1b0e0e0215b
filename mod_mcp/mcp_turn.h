/* One POST as the core sees it: who asks, under which terms, with which of the child's objects.  The glue fills it from httpd's request; nothing
 * here knows httpd. Belongs to the request's thread and pool. */
#ifndef MCP_TURN_H
#define MCP_TURN_H

#include "mcp_ask.h"
#include "mcp_egress.h"
#include "mcp_era.h"
#include "mcp_view.h"

/* What all requests of a child share. */
typedef struct mcp_child {
    mcp_link_t *link;
    mcp_ask_t *ask;
    mcp_views_t *views;
    mcp_egress_t *egress;
    struct mcp_api *api; /* what the REST door keeps (mcp_api.h) */
} mcp_child_t;

/* The endpoint's directives. */
typedef struct mcp_terms {
    int64_t policy_ms;   /* MCPPolicyTimeout */
    int64_t call_ms;     /* MCPCallTimeout: no call runs longer, whatever the connector says */
    size_t max_result;   /* MCPMaxResult */
    int list_page;       /* MCPListPage: tools of one page */
    int64_t session_us;  /* MCPSessionLifetime */
    int serves_legacy;   /* MCPLegacy */
    const apr_array_header_t *egress_allow; /* MCPEgressAllow */
    const char *control_prefix; /* MCPControlPrefix, a label; NULL: policyd's own */
} mcp_terms_t;

typedef struct mcp_turn {
    apr_pool_t *pool;
    const mcp_child_t *child;
    const mcp_terms_t *terms;
    mcp_who_t who;
    int is_resolved;
    mcp_resolved_t resolved;
    const char *trace_id;    /* NULL: none */
    const char *session_id;  /* out: a legacy session that initialize opened */
    mcp_session_t session;   /* of a legacy request that named one */
    int has_session;
    const char *(*header)(void *baton, const char *name); /* a request header, or NULL */
    int (*is_gone)(void *baton); /* the client closed its connection */
    void *baton;
} mcp_turn_t;

/* Asks policyd who this is, once a turn. */
apr_status_t mcp_turn_resolve(mcp_turn_t *turn, mcp_err_t *err);

/* Opens the session that a legacy request names, if any: MCP_FAIL_SESSION when it is not one of this grant. */
apr_status_t mcp_turn_session(mcp_turn_t *turn, const char *session_id, mcp_err_t *err);

/* Takes the trace id out of a W3C traceparent, or leaves the turn without one. */
void mcp_turn_trace(mcp_turn_t *turn, const char *traceparent);

#endif
