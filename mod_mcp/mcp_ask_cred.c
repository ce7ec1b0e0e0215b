/* Questions to policyd about credentials: see mcp_ask_cred.h. */
#include "mcp_ask_cred.h"

#include <string.h>

#include <apr_time.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "mcp_ask_private.h"

#define RESEND_PAUSE_US 20000
#define OFFER_MS        2000 /* how long one offer of a token waits: a policyd that died with it in hand does not answer */
#define WIPE_DEPTH      4    /* of the answers' objects, of which every kind has fewer */

/* --- secrets ----------------------------------------------------------------------------- */

/* Overwrites the strings of an answer. jansson keeps no other copy of them. */
static void wipe(const json_t *value, int depth)
{
    json_t *members = (json_t *)(uintptr_t)value; /* jansson's iterators want it mutable */
    const char *name;
    json_t *member;
    size_t i;

    if (json_is_string(value)) {
        mcp_wipe((char *)(uintptr_t)json_string_value(value), json_string_length(value));
    } else if (depth > 0 && json_is_object(value)) {
        json_object_foreach(members, name, member)
        {
            wipe(member, depth - 1);
        }
    } else if (depth > 0) {
        json_array_foreach(members, i, member)
        {
            wipe(member, depth - 1);
        }
    }
}

static apr_status_t wipe_answer(void *value)
{
    wipe(value, WIPE_DEPTH);
    return APR_SUCCESS;
}

/* --- asking -------------------------------------------------------------------------------- */

/* An error reply as what the call, or the browser, is told: policyd's words. What stands for policyd itself is none of them. */
static apr_status_t refused(const mcp_link_reply_t *reply, apr_pool_t *pool, mcp_err_t *err)
{
    mcp_code_t code = mcp_code_from_text(mcp_json_str(reply->body, "code"));
    const char *message = mcp_json_str(reply->body, "message");

    if (code == MCP_CODE_NONE || code == MCP_CODE_MALFORMED || code == MCP_CODE_UNSUPPORTED ||
        code == MCP_CODE_HELLO_REQUIRED || code == MCP_CODE_POLICY_UNAVAILABLE) {
        return mcp_ask_not_understood(err, pool, message);
    }
    (void)mcp_err_set(err, pool, code == MCP_CODE_OVERLOADED ? MCP_FAIL_UNAVAILABLE : MCP_FAIL_TOOL,
                      code, mcp_json_str(reply->body, "hint"), "%s", message);
    return MCP_STATUS_REFUSED;
}

/* The body of an answer, whose strings go with the pool; NULL: a refusal, which is in err. */
static const json_t *answer(const mcp_link_reply_t *reply, apr_pool_t *pool, mcp_err_t *err)
{
    if ((reply->frame.flags & MCP_FLAG_ERROR) != 0) {
        (void)refused(reply, pool, err);
        return NULL;
    }
    if (reply->body == NULL) {
        (void)mcp_ask_not_understood(err, pool, "policyd answers bytes where JSON is due");
        return NULL;
    }
    /* registered after the body's own cleanup, so it runs before it */
    apr_pool_cleanup_register(pool, reply->body, wipe_answer, apr_pool_cleanup_null);
    return reply->body;
}

/* One question that is not asked twice. Steals body. */
static const json_t *ask_once(mcp_ask_t *ask, mcp_kind_t kind, json_t *body, int64_t budget_ms,
                              apr_pool_t *pool, mcp_err_t *err)
{
    mcp_link_reply_t reply;
    apr_status_t status;

    if (body == NULL) {
        (void)mcp_ask_not_understood(err, pool, "the question can't be written");
        return NULL;
    }
    status = mcp_ask_question(ask, kind, body, -1, budget_ms, pool, &reply, err);
    json_decref(body);
    return status == APR_SUCCESS ? answer(&reply, pool, err) : NULL;
}

static void add_text(json_t *body, const char *name, const char *text)
{
    if (text != NULL) {
        json_object_set_new(body, name, json_string(text));
    }
}

/* --- leases --------------------------------------------------------------------------------- */

/* A question that waits in policyd, and why it may stop waiting here. */
typedef struct waiting {
    mcp_ask_t *ask;
    const mcp_link_wait_t *outer;
    uint64_t generation; /* of the policyd that has the question; 0: none was known */
    int is_over;         /* whoever asks is not there any more */
    int has_restarted;   /* the policyd that had the question is not there any more */
} waiting_t;

/* The caller's own look sends the beats, which tell of a policyd that is another one now. */
static int look(void *baton)
{
    waiting_t *waiting = baton;
    uint64_t now;

    if (waiting->outer != NULL && waiting->outer->is_over(waiting->outer->baton) != 0) {
        waiting->is_over = 1;
    }
    now = mcp_ask_generation(waiting->ask);
    if (waiting->generation == 0) {
        waiting->generation = now;
    }
    if (now != waiting->generation) {
        waiting->has_restarted = 1;
    }
    return waiting->is_over || waiting->has_restarted;
}

static apr_status_t cancelled(apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_CANCELLED, NULL, "the call was cancelled");
}

/* Asks until there is an answer, the time is over, or nobody waits for it. */
static apr_status_t ask_waiting(mcp_ask_t *ask, const json_t *body, int64_t budget_ms,
                                const mcp_link_wait_t *outer, apr_pool_t *pool, mcp_link_reply_t *ret,
                                mcp_err_t *err)
{
    int64_t until_ms = mcp_ask_now_ms() + budget_ms;
    waiting_t waiting;
    mcp_link_wait_t wait;
    apr_status_t status;
    int was_sent = 0;

    wait.is_over = look;
    wait.baton = &waiting;
    do {
        memset(&waiting, 0, sizeof(waiting));
        waiting.ask = ask;
        waiting.outer = outer;
        waiting.generation = mcp_ask_generation(ask);
        status = mcp_ask_question_while(ask, MCP_KIND_CRED_LEASE, body, -1, until_ms - mcp_ask_now_ms(),
                                        &wait, pool, ret, &was_sent, err);
        if (status == APR_SUCCESS || status == MCP_STATUS_CLOSED) {
            return status;
        }
        if (waiting.is_over || (outer != NULL && outer->is_over(outer->baton) != 0)) {
            return cancelled(pool, err);
        }
        apr_sleep(RESEND_PAUSE_US);
    } while (mcp_ask_now_ms() < until_ms);
    return was_sent ? mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_UPSTREAM_TIMEOUT,
                                  "try again in a moment",
                                  "a new token for this account was waited for in vain")
                    : status;
}

/* The lease of an answer that has one; 0 unless it is whole. */
static int take_lease(const json_t *body, mcp_lease_t *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->lease = mcp_json_str(body, "lease");
    ret->request = json_object_get(body, "request");
    ret->expires_ms = mcp_json_int(body, "expires_ms", 0);
    return ret->lease != NULL && ret->request != NULL;
}

apr_status_t mcp_ask_lease(mcp_ask_t *ask, const mcp_begun_t *begun, const char *connection,
                           int64_t rejected, int64_t budget_ms, const mcp_link_wait_t *wait,
                           apr_pool_t *pool, mcp_lease_t *ret, mcp_err_t *err)
{
    json_t *question = json_pack("{s:s,s:s,s:s}", "child", ask->child, "audit", begun->audit,
                                 "connection", connection);
    mcp_link_reply_t reply;
    const json_t *body;
    apr_status_t status;

    if (question == NULL) {
        return mcp_ask_not_understood(err, pool, "the question can't be written");
    }
    if (rejected >= 0) {
        json_object_set_new(question, "rejected", json_integer((json_int_t)rejected));
    }
    status = ask_waiting(ask, question, budget_ms, wait, pool, &reply, err);
    json_decref(question);
    if (status != APR_SUCCESS) {
        return status;
    }
    body = answer(&reply, pool, err);
    if (body == NULL) {
        return MCP_STATUS_REFUSED;
    }
    memset(ret, 0, sizeof(*ret));
    ret->auth = json_object_get(body, "auth");
    if (ret->auth == NULL && !take_lease(body, ret)) {
        return mcp_ask_not_understood(err, pool, "policyd gives neither a credential nor a lease");
    }
    return APR_SUCCESS;
}

int64_t mcp_ask_left_ms(const mcp_begun_t *begun, int64_t call_ms)
{
    int64_t left_ms = call_ms - (mcp_ask_now_us() - begun->began) / 1000;

    return left_ms > 0 ? left_ms : 0;
}

static json_t *store_body(const mcp_ask_t *ask, const char *lease, const mcp_token_t *token)
{
    json_t *body = json_pack("{s:s,s:s,s:b}", "child", ask->child, "lease", lease, "ok",
                             token->error == NULL);

    if (body == NULL || token->error != NULL) {
        add_text(body, "error", token->error);
        return body;
    }
    add_text(body, "access_token", token->access_token);
    add_text(body, "refresh_token", token->refresh_token);
    add_text(body, "scope", token->scope);
    if (token->expires_in >= 0) {
        json_object_set_new(body, "expires_in", json_integer((json_int_t)token->expires_in));
    }
    return body;
}

apr_status_t mcp_ask_store(mcp_ask_t *ask, const char *lease, const mcp_token_t *token, int64_t budget_ms,
                           apr_pool_t *pool, const json_t **ret_auth, mcp_err_t *err)
{
    int64_t until_ms = mcp_ask_now_ms() + budget_ms;
    json_t *question = store_body(ask, lease, token);
    mcp_link_reply_t reply;
    const json_t *body;
    apr_status_t status = MCP_STATUS_REFUSED;
    int is_answered = 0;

    if (question == NULL) {
        return mcp_ask_not_understood(err, pool, "the question can't be written");
    }
    while (!is_answered && status != MCP_STATUS_CLOSED && mcp_ask_now_ms() < until_ms) {
        int64_t left_ms = until_ms - mcp_ask_now_ms();

        status = mcp_ask_question(ask, MCP_KIND_CRED_STORE, question, -1,
                                  left_ms < OFFER_MS ? left_ms : OFFER_MS, pool, &reply, err);
        /* one that is starting or busy may take it later */
        is_answered = status == APR_SUCCESS &&
                      ((reply.frame.flags & MCP_FLAG_ERROR) == 0 ||
                       (mcp_code_from_text(mcp_json_str(reply.body, "code")) != MCP_CODE_OVERLOADED &&
                        mcp_code_from_text(mcp_json_str(reply.body, "code")) !=
                            MCP_CODE_POLICY_UNAVAILABLE));
        if (!is_answered) {
            apr_sleep(RESEND_PAUSE_US);
        }
    }
    wipe(question, WIPE_DEPTH);
    json_decref(question);
    if (status != APR_SUCCESS) {
        return status;
    }
    body = answer(&reply, pool, err);
    if (body == NULL) {
        return MCP_STATUS_REFUSED;
    }
    *ret_auth = json_object_get(body, "auth");
    return APR_SUCCESS;
}

/* --- connecting with a browser ------------------------------------------------------------------ */

apr_status_t mcp_ask_connect_show(mcp_ask_t *ask, const char *ticket_hash, const mcp_browser_t *browser,
                                  int64_t budget_ms, apr_pool_t *pool, mcp_connect_shown_t *ret,
                                  mcp_err_t *err)
{
    json_t *question =
        json_pack("{s:s,s:s}", "ticket_hash", ticket_hash, "resource", browser->resource);
    const json_t *body;

    add_text(question, "user", browser->user);
    body = ask_once(ask, MCP_KIND_CONNECT_SHOW, question, budget_ms, pool, err);
    if (body == NULL) {
        return MCP_STATUS_REFUSED;
    }
    ret->member = mcp_json_str(body, "member");
    ret->connection = mcp_json_str(body, "connection");
    ret->connector = mcp_json_str(body, "connector");
    ret->host = mcp_json_str(body, "host");
    ret->scopes = json_object_get(body, "scopes");
    return APR_SUCCESS;
}

apr_status_t mcp_ask_connect_start(mcp_ask_t *ask, const char *ticket_hash, const char *binding,
                                   const mcp_browser_t *browser, int64_t budget_ms, apr_pool_t *pool,
                                   const char **ret_url, mcp_err_t *err)
{
    json_t *question = json_pack("{s:s,s:s,s:s}", "ticket_hash", ticket_hash, "binding", binding,
                                 "resource", browser->resource);
    const json_t *body;

    add_text(question, "user", browser->user);
    body = ask_once(ask, MCP_KIND_CONNECT_START, question, budget_ms, pool, err);
    if (body == NULL) {
        return MCP_STATUS_REFUSED;
    }
    *ret_url = mcp_json_str(body, "url");
    return APR_SUCCESS;
}

apr_status_t mcp_ask_connect_take(mcp_ask_t *ask, const char *state_hash, const char *binding,
                                  const char *resource, const char *iss, const char *error,
                                  int64_t budget_ms, apr_pool_t *pool, mcp_lease_t *ret,
                                  mcp_err_t *err)
{
    json_t *question = json_pack("{s:s,s:s,s:s}", "state_hash", state_hash, "binding", binding,
                                 "resource", resource);
    const json_t *body;

    add_text(question, "iss", iss);
    add_text(question, "error", error);
    body = ask_once(ask, MCP_KIND_CONNECT_TAKE, question, budget_ms, pool, err);
    if (body == NULL) {
        return MCP_STATUS_REFUSED;
    }
    return take_lease(body, ret) ? APR_SUCCESS
                                 : mcp_ask_not_understood(err, pool, "policyd gives no lease");
}
