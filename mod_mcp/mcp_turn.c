/* Who asks, found out at most once a POST: see mcp_turn.h. */
#include "mcp_turn.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

apr_status_t mcp_turn_resolve(mcp_turn_t *turn, mcp_err_t *err)
{
    apr_status_t status;

    if (turn->is_resolved) {
        return APR_SUCCESS;
    }
    status = mcp_ask_resolve(turn->child->ask, &turn->who, turn->terms->policy_ms, turn->pool,
                             &turn->resolved, err);
    if (status == APR_SUCCESS) {
        turn->is_resolved = 1;
        mcp_view_remember(turn->child->views, turn->who.token_hash, turn->resolved.grant);
    }
    return status;
}

/* The grant's id, from this child's memory or by asking. */
static apr_status_t grant_id(mcp_turn_t *turn, const char **ret, mcp_err_t *err)
{
    const char *known = mcp_view_grant(turn->child->views, turn->who.token_hash, turn->pool);

    if (known == NULL) {
        apr_status_t status = mcp_turn_resolve(turn, err);

        if (status != APR_SUCCESS) {
            return status;
        }
        known = turn->resolved.grant;
    }
    *ret = known;
    return APR_SUCCESS;
}

apr_status_t mcp_turn_session(mcp_turn_t *turn, const char *session_id, mcp_err_t *err)
{
    const char *grant = NULL;
    mcp_ring_t ring;
    apr_status_t status;

    if (session_id == NULL) {
        return APR_SUCCESS;
    }
    status = grant_id(turn, &grant, err);
    if (status == APR_SUCCESS) {
        status = mcp_ask_ring(turn->child->ask, turn->terms->policy_ms, turn->pool, &ring, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_unseal_session(&ring, session_id, grant, apr_time_now(), turn->pool,
                                    &turn->session, err);
    }
    if (status == APR_SUCCESS) {
        turn->has_session = 1;
        turn->who.client_name = turn->session.client_name;
        turn->who.client_version = turn->session.client_version;
    }
    return status;
}

void mcp_turn_trace(mcp_turn_t *turn, const char *traceparent)
{
    static const char hex[] = "0123456789abcdef";

    /* version 00: "00-" 32 hex "-" 16 hex "-" 2 hex; an all-zero trace id is not one */
    if (traceparent == NULL || strlen(traceparent) != 55 || strspn(traceparent, "0") != 2 ||
        traceparent[2] != '-' || strspn(traceparent + 3, hex) != 32 || traceparent[35] != '-' ||
        strspn(traceparent + 3, "0") == 32) {
        return;
    }
    turn->trace_id = apr_pstrmemdup(turn->pool, traceparent + 3, 32);
}
