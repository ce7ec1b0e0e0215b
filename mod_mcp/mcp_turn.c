/* Who asks, found out at most once a POST: see mcp_turn.h. */
#include "mcp_turn.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../proto/mcp_hash.h"

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
        mcp_wipe(&ring, sizeof(ring));
    }
    if (status == APR_SUCCESS) {
        turn->has_session = 1;
        turn->who.client_name = turn->session.client_name;
        turn->who.client_version = turn->session.client_version;
    }
    return status;
}

/* Lower-case hex digits at `text`, exactly `count`, not all zero where that means "none". */
static int is_hex_id(const char *text, size_t count, int may_be_zero)
{
    return strspn(text, "0123456789abcdef") >= count && (may_be_zero || strspn(text, "0") < count);
}

/* W3C Trace Context, 3.2.2: version "-" trace-id "-" parent-id "-" flags. Version ff is none; a higher one than 00 may go on after
 * another "-". Where any part is wrong the whole header is. */
void mcp_turn_trace(mcp_turn_t *turn, const char *traceparent)
{
    size_t bytes = traceparent != NULL ? strlen(traceparent) : 0;
    int is_first;

    if (bytes < 55 || !is_hex_id(traceparent, 2, 1) || strncmp(traceparent, "ff", 2) == 0) {
        return;
    }
    is_first = strncmp(traceparent, "00", 2) == 0;
    if (traceparent[2] != '-' || !is_hex_id(traceparent + 3, 32, 0) || traceparent[35] != '-' ||
        !is_hex_id(traceparent + 36, 16, 0) || traceparent[52] != '-' ||
        !is_hex_id(traceparent + 53, 2, 1) || (bytes > 55 && (is_first || traceparent[55] != '-'))) {
        return;
    }
    turn->trace_id = apr_pstrmemdup(turn->pool, traceparent + 3, 32);
}
