/* Questions to policyd about credentials that are fetched: the token of a running call's account, what a token endpoint answered, and the three steps
 * in which a person connects an account with a browser. Answers hold secrets: their strings are overwritten when the pool goes. Thread-safe. */
#ifndef MCP_ASK_CRED_H
#define MCP_ASK_CRED_H

#include "mcp_ask.h"
#include "mcp_token.h"

/* Either `auth` is set, or this child is to send `request` (mcp_token_send) and to tell what came of it (mcp_ask_store). */
typedef struct mcp_lease {
    const json_t *auth;    /* as in a plan, with `generation` */
    const char *lease;     /* opaque */
    const json_t *request; /* {"url","form":{NAME:TEXT},"authorization"?} */
    int64_t expires_ms;    /* how long the request may take */
} mcp_lease_t;

/* The credential of `connection` for the attempt. rejected: generation of the token that the application answered 401 to, -1: none. Waits in
 * policyd while another call fetches a token, up to budget_ms or until `wait` (may be NULL) is over, which is MCP_FAIL_TOOL with cancelled; asks again when
 * policyd has restarted meanwhile. Where the time ends it is MCP_FAIL_TOOL with upstream_timeout; a refusal has policyd's code, of which
 * needs_reauth is for the person to cure. */
apr_status_t mcp_ask_lease(mcp_ask_t *ask, const mcp_begun_t *begun, const char *connection,
                           int64_t rejected, int64_t budget_ms, const mcp_link_wait_t *wait,
                           apr_pool_t *pool, mcp_lease_t *ret, mcp_err_t *err);

/* What is left of call_ms since the attempt began; 0 when nothing is. */
int64_t mcp_ask_left_ms(const mcp_begun_t *begun, int64_t call_ms);

/* What the token endpoint answered. Resent until policyd answers or budget_ms have passed, also over a restart: a token that is lost here may be the last
 * one that the account had. *ret_auth: what calls go on with; NULL where there is none. A token that policyd took note of and that
 * says an error is a refusal as of mcp_ask_lease(). */
apr_status_t mcp_ask_store(mcp_ask_t *ask, const char *lease, const mcp_token_t *token, int64_t budget_ms,
                           apr_pool_t *pool, const json_t **ret_auth, mcp_err_t *err);

/* Where a browser stands: the endpoint's resource, and whom httpd signed in there (NULL: nobody). */
typedef struct mcp_browser {
    const char *resource;
    const char *user;
} mcp_browser_t;

typedef struct mcp_connect_shown {
    const char *member;     /* e-mail address */
    const char *connection; /* label */
    const char *connector;  /* label */
    const char *host;       /* where the person will sign in */
    const json_t *scopes;   /* array of strings */
} mcp_connect_shown_t;

/* What a ticket is for; it stays good. Refusals of this and the next two: MCP_FAIL_TOOL with policyd's code (not_found: no such ticket or
 * state, or it is used up or too old), or MCP_FAIL_UNAVAILABLE. */
apr_status_t mcp_ask_connect_show(mcp_ask_t *ask, const char *ticket_hash, const mcp_browser_t *browser,
                                  int64_t budget_ms, apr_pool_t *pool, mcp_connect_shown_t *ret,
                                  mcp_err_t *err);

/* Uses the ticket up. binding: hash of the nonce that the browser keeps. *ret_url: where it goes next; a secret. */
apr_status_t mcp_ask_connect_start(mcp_ask_t *ask, const char *ticket_hash, const char *binding,
                                   const mcp_browser_t *browser, int64_t budget_ms, apr_pool_t *pool,
                                   const char **ret_url, mcp_err_t *err);

/* The browser came back. iss and error: as the application's server gave them, or NULL. On success ret has the lease, to which the
 * caller adds the code. Takes the state, so that it is asked once. */
apr_status_t mcp_ask_connect_take(mcp_ask_t *ask, const char *state_hash, const char *binding,
                                  const char *resource, const char *iss, const char *error,
                                  int64_t budget_ms, apr_pool_t *pool, mcp_lease_t *ret,
                                  mcp_err_t *err);

#endif
