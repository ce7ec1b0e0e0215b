/* The credential of a call: see mcp_credential.h. */
#include "mcp_credential.h"

#include <stdint.h>
#include <string.h>

#include "../proto/mcp_body.h"

#define STORE_MS  30000 /* how long a token is offered to policyd, which may be restarting */
#define MARGIN_MS 500   /* before a lease ends its request does */
#define NO_TOKEN  (-1)

/* policyd took note of a failure, and has no word of its own for it. */
static apr_status_t no_token(apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_UPSTREAM_UNREACHABLE, "try again later",
                       "the application's server gave no token for this account");
}

static int child_stops(void *baton)
{
    return mcp_link_is_shut(((const mcp_child_t *)baton)->link);
}

apr_status_t mcp_credential_fetch(const mcp_child_t *child, const apr_array_header_t *allow,
                                  const mcp_lease_t *lease, const char *code, apr_pool_t *pool,
                                  const json_t **ret_auth, mcp_err_t *err)
{
    int64_t timeout_ms = lease->expires_ms > 2 * MARGIN_MS ? lease->expires_ms - MARGIN_MS : MARGIN_MS;
    mcp_token_t token;
    mcp_err_t unsent;
    apr_status_t status;

    memset(&unsent, 0, sizeof(unsent));
    mcp_token_send(child->egress, lease->request, code, allow, timeout_ms, child_stops,
                   (void *)(uintptr_t)child, pool, &token, &unsent);
    status = mcp_ask_store(child->ask, lease->lease, &token, STORE_MS, pool, ret_auth, err);
    if (unsent.code == MCP_CODE_EGRESS_DENIED && err != NULL) { /* says more than "could not be reached" */
        *err = unsent;
        return MCP_STATUS_REFUSED;
    }
    if (status == APR_SUCCESS && token.error != NULL) {
        return no_token(pool, err);
    }
    return status;
}

/* A credential by a lease. rejected: as of mcp_ask_lease(). */
static apr_status_t fetch(mcp_credential_t *credential, int64_t rejected, mcp_err_t *err)
{
    const mcp_turn_t *turn = credential->turn;
    const mcp_begun_t *begun = credential->begun;
    const char *connection = mcp_json_str(begun->plan, "connection");
    mcp_lease_t lease;
    const json_t *auth;
    apr_status_t status;

    if (connection == NULL) {
        return mcp_err_set(err, turn->pool, MCP_FAIL_TOOL, MCP_CODE_INTERNAL, NULL,
                           "the call can't be prepared");
    }
    status = mcp_ask_lease(turn->child->ask, begun, connection, rejected,
                           mcp_ask_left_ms(begun, turn->terms->call_ms), &credential->wait, turn->pool,
                           &lease, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    auth = lease.auth;
    if (auth == NULL) {
        status = mcp_credential_fetch(turn->child, turn->terms->egress_allow, &lease, NULL, turn->pool,
                                      &auth, err);
    }
    if (status == APR_SUCCESS && auth == NULL) {
        status = no_token(turn->pool, err);
    }
    if (status == APR_SUCCESS) {
        credential->auth = auth;
    }
    return status;
}

apr_status_t mcp_credential_get(mcp_credential_t *credential, mcp_err_t *err)
{
    const json_t *auth = json_object_get(credential->begun->plan, "auth");
    const char *type = mcp_json_str(auth, "type");

    if (type != NULL && strcmp(type, "lease") == 0) {
        return fetch(credential, NO_TOKEN, err);
    }
    credential->auth = auth;
    return APR_SUCCESS;
}

int mcp_credential_is_renewable(const mcp_credential_t *credential)
{
    return json_is_integer(json_object_get(credential->auth, "generation"));
}

apr_status_t mcp_credential_renew(mcp_credential_t *credential, mcp_err_t *err)
{
    return fetch(credential, mcp_json_int(credential->auth, "generation", 0), err);
}
