/* The credential of a call: the plan's own, or one that is fetched because the account's token is missing, too old, or refused by the application. Of
 * all calls on one account one fetches while the others wait for what it brings. */
#ifndef MCP_CREDENTIAL_H
#define MCP_CREDENTIAL_H

#include "mcp_ask_cred.h"
#include "mcp_turn.h"

/* Of one call; belongs to its thread and pool. */
typedef struct mcp_credential {
    const mcp_turn_t *turn;
    const mcp_begun_t *begun;
    mcp_link_wait_t wait; /* whether the caller still wants an answer */
    const json_t *auth;   /* what the request is built with; NULL until mcp_credential_get() */
} mcp_credential_t;

/* Sets auth. Failures as of mcp_ask_lease() and mcp_ask_store(), and egress_denied where the token URL may not be asked. */
apr_status_t mcp_credential_get(mcp_credential_t *credential, mcp_err_t *err);

/* 1 if another could be fetched for a token that the application refused. */
int mcp_credential_is_renewable(const mcp_credential_t *credential);

/* The application answered 401 to auth: another one, or a failure, which is needs_reauth where a new token was refused, too. */
apr_status_t mcp_credential_renew(mcp_credential_t *credential, mcp_err_t *err);

/* Uses a lease up: sends its request, with code (NULL: none) in the form, and tells policyd what came. It goes on when the caller has gone, since what
 * the endpoint gives, it gives once; only a child that stops ends it. *ret_auth may be NULL after the code of a person's consent. */
apr_status_t mcp_credential_fetch(const mcp_child_t *child, const apr_array_header_t *allow,
                                  const mcp_lease_t *lease, const char *code, apr_pool_t *pool,
                                  const json_t **ret_auth, mcp_err_t *err);

#endif
