/* Questions to policyd about calls: which of this child run (the beat tells policyd), begin and end. See mcp_ask.h. */
#include "mcp_ask_private.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"

#define BEAT_BUDGET_MS 200
#define RESEND_PAUSE_US 20000
#define OFFER_MS                                                                                   \
    1000 /* how long one offer of an outcome waits: a policyd that died with it in hand does not answer */

/* --- the calls that run ------------------------------------------------------------ */

static void running_add(mcp_ask_t *ask, const char *audit)
{
    (void)pthread_mutex_lock(&ask->mutex);
    if (ask->running_count < MCP_ASK_MAX_RUNNING) {
        (void)apr_cpystrn(ask->running[ask->running_count++], audit, MCP_ASK_AUDIT_BYTES);
    }
    (void)pthread_mutex_unlock(&ask->mutex);
}

static void running_remove(mcp_ask_t *ask, const char *audit)
{
    int i;

    (void)pthread_mutex_lock(&ask->mutex);
    for (i = 0; i < ask->running_count; i++) {
        if (strcmp(ask->running[i], audit) == 0) {
            ask->running_count--;
            memcpy(ask->running[i], ask->running[ask->running_count], MCP_ASK_AUDIT_BYTES);
            break;
        }
    }
    (void)pthread_mutex_unlock(&ask->mutex);
}

static json_t *running_ids(mcp_ask_t *ask)
{
    json_t *ids = json_array();
    int i;

    (void)pthread_mutex_lock(&ask->mutex);
    for (i = 0; i < ask->running_count; i++) {
        json_array_append_new(ids, json_string(ask->running[i]));
    }
    (void)pthread_mutex_unlock(&ask->mutex);
    return ids;
}

void mcp_ask_beat(mcp_ask_t *ask)
{
    mcp_link_reply_t reply;
    apr_pool_t *pool;
    json_t *body;
    int is_due;

    (void)pthread_mutex_lock(&ask->mutex);
    is_due = !ask->is_beating &&
             (ask->last_beat_ms == 0 || mcp_ask_now_ms() - ask->last_beat_ms >= MCP_BEAT_MS);
    if (is_due) {
        ask->is_beating = 1;
        ask->last_beat_ms = mcp_ask_now_ms();
    }
    (void)pthread_mutex_unlock(&ask->mutex);
    if (!is_due) {
        return;
    }
    if (apr_pool_create(&pool, NULL) == APR_SUCCESS) {
        body = json_pack("{s:s,s:o}", "child", ask->child, "running", running_ids(ask));
        /* a beat that fails is a beat missed: policyd allows for three */
        (void)mcp_ask_question(ask, MCP_KIND_CHILD_BEAT, body, -1, BEAT_BUDGET_MS, pool, &reply,
                               NULL);
        json_decref(body);
        apr_pool_destroy(pool);
    }
    (void)pthread_mutex_lock(&ask->mutex);
    ask->is_beating = 0;
    (void)pthread_mutex_unlock(&ask->mutex);
}

apr_status_t mcp_ask_knock(mcp_ask_t *ask, int64_t budget_ms, apr_pool_t *pool, mcp_err_t *err)
{
    mcp_link_reply_t reply;
    json_t *body = json_pack("{s:s,s:o}", "child", ask->child, "running", running_ids(ask));
    apr_status_t status =
        mcp_ask_question(ask, MCP_KIND_CHILD_BEAT, body, -1, budget_ms, pool, &reply, err);

    json_decref(body);
    return status;
}

/* --- begin and end ------------------------------------------------------------------- */

static unsigned scopes_of(const json_t *names)
{
    unsigned scopes = 0;
    const json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
    {
        scopes |= mcp_scope_from_text(json_string_value(name));
    }
    return scopes;
}

mcp_fail_t mcp_ask_fail_of(mcp_code_t code)
{
    if (code == MCP_CODE_INSUFFICIENT_SCOPE) {
        return MCP_FAIL_SCOPE;
    }
    if (code == MCP_CODE_UNKNOWN_TOOL) {
        return MCP_FAIL_PARAMS;
    }
    if (code == MCP_CODE_RATE_LIMITED) {
        return MCP_FAIL_BUSY;
    }
    if (code == MCP_CODE_OVERLOADED) {
        return MCP_FAIL_UNAVAILABLE;
    }
    return MCP_FAIL_TOOL;
}

static void take_denial(const json_t *denied, const char *audit, const char *tool, apr_pool_t *pool,
                        mcp_err_t *err)
{
    mcp_code_t code = mcp_code_from_text(mcp_json_str(denied, "code"));
    const char *message = mcp_json_str(denied, "message");

    if (code == MCP_CODE_NONE || message == NULL) {
        code = MCP_CODE_INTERNAL;
        message = "the call was refused";
    }
    (void)mcp_err_set(err, pool, mcp_ask_fail_of(code), code, mcp_json_str(denied, "hint"),
                      code == MCP_CODE_UNKNOWN_TOOL ? "Unknown tool: %s" : "%s",
                      code == MCP_CODE_UNKNOWN_TOOL ? tool : message);
    err->permission = mcp_json_str(denied, "permission");
    err->scopes = scopes_of(json_object_get(denied, "scopes"));
    err->has_credentials = 1;
    err->audit = audit;
}

/* A plan holds a credential: its strings are overwritten before jansson lets go of them. */
static apr_status_t wipe_plan(void *value)
{
    json_t *auth = json_object_get(value, "auth");
    const char *name;
    json_t *member;

    json_object_foreach(auth, name, member)
    {
        char *text = (char *)(uintptr_t)json_string_value(member);

        if (text != NULL) {
            mcp_wipe(text, json_string_length(member));
        }
    }
    return APR_SUCCESS;
}

/* What begin and note say of an attempt; new reference. */
static json_t *attempt_body(const mcp_ask_t *ask, const mcp_who_t *who, const mcp_attempt_t *attempt)
{
    json_t *body = mcp_ask_who_body(who);

    json_object_set_new(body, "child", json_string(ask->child));
    json_object_set_new(body, "tool", json_string(attempt->tool));
    json_object_set_new(body, "via", json_string(attempt->via));
    json_object_set_new(body, "arg_names", json_incref(attempt->arg_names));
    json_object_set_new(body, "arg_count", json_integer((json_int_t)attempt->arg_count));
    json_object_set_new(body, "request_bytes", json_integer((json_int_t)attempt->request_bytes));
    if (attempt->trace_id != NULL) {
        json_object_set_new(body, "trace_id", json_string(attempt->trace_id));
    }
    return body;
}

apr_status_t mcp_ask_note(mcp_ask_t *ask, const mcp_who_t *who, const mcp_attempt_t *attempt,
                          mcp_outcome_t outcome, mcp_code_t code, int64_t duration_us,
                          int64_t budget_ms, apr_pool_t *pool, const char **ret_audit, mcp_err_t *err)
{
    int64_t until_ms = mcp_ask_now_ms() + budget_ms;
    json_t *body = attempt_body(ask, who, attempt);
    mcp_link_reply_t reply;
    unsigned char id[16];
    char hex[2 * sizeof(id) + 1];
    apr_status_t status;

    mcp_random(id, sizeof(id));
    mcp_hex(id, sizeof(id), hex);
    json_object_set_new(body, "id", json_string(hex));
    json_object_set_new(body, "outcome", json_string(mcp_outcome_text(outcome)));
    json_object_set_new(body, "duration_us", json_integer((json_int_t)duration_us));
    if (code != MCP_CODE_NONE) {
        json_object_set_new(body, "code", json_string(mcp_code_text(code)));
    }
    if (attempt->response_bytes != 0) {
        json_object_set_new(body, "response_bytes", json_integer((json_int_t)attempt->response_bytes));
    }
    do {
        status = mcp_ask_question(ask, MCP_KIND_CALL_NOTE, body, -1, until_ms - mcp_ask_now_ms(), pool,
                                  &reply, err);
    } while (status != APR_SUCCESS && status != MCP_STATUS_CLOSED && mcp_ask_now_ms() < until_ms);
    json_decref(body);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return mcp_ask_refused(&reply, pool, err);
    }
    *ret_audit = mcp_json_str(reply.body, "audit");
    return APR_SUCCESS;
}

apr_status_t mcp_ask_begin(mcp_ask_t *ask, const mcp_who_t *who, const mcp_attempt_t *attempt,
                           int64_t budget_ms, apr_pool_t *pool, mcp_begun_t *ret, mcp_err_t *err)
{
    json_t *body = attempt_body(ask, who, attempt);
    mcp_link_reply_t reply;
    const json_t *denied;
    apr_status_t status;

    json_object_set_new(body, "deadline_ms", json_integer((json_int_t)attempt->deadline_ms));
    if (attempt->connection != NULL) {
        json_object_set_new(body, "connection", json_string(attempt->connection));
    }
    status = mcp_ask_question(ask, MCP_KIND_CALL_BEGIN, body, -1, budget_ms, pool, &reply, err);
    json_decref(body);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return mcp_ask_refused(&reply, pool, err);
    }
    memset(ret, 0, sizeof(*ret));
    ret->audit = mcp_json_str(reply.body, "audit");
    ret->endpoint = reply.endpoint;
    ret->began = mcp_ask_now_us();
    denied = json_object_get(reply.body, "denied");
    ret->plan = json_object_get(reply.body, "plan");
    if (ret->plan != NULL) {
        /* registered after the body's own cleanup, so it runs before it */
        apr_pool_cleanup_register(pool, ret->plan, wipe_plan, apr_pool_cleanup_null);
    }
    ret->choose = denied == NULL && ret->plan == NULL ? mcp_json_str(reply.body, "choose") : NULL;
    if (ret->choose != NULL) {
        return attempt->connection == NULL
                   ? APR_SUCCESS
                   : mcp_ask_not_understood(err, pool,
                                            "policyd asks for a choice that it was given");
    }
    if (ret->audit == NULL) {
        return mcp_ask_not_understood(err, pool, "policyd decided and names no record");
    }
    if (denied != NULL) {
        take_denial(denied, ret->audit, attempt->tool, pool, &ret->denied);
        ret->plan = NULL;
        return APR_SUCCESS;
    }
    if (ret->plan == NULL) {
        return mcp_ask_not_understood(err, pool, "policyd neither denied nor planned");
    }
    running_add(ask, ret->audit);
    return APR_SUCCESS;
}

static json_t *end_body(const mcp_ask_t *ask, const mcp_begun_t *begun, const mcp_ended_t *ended)
{
    json_t *body = json_pack("{s:s,s:s,s:s,s:I,s:I,s:I}", "audit", begun->audit, "child",
                             ask->child, "outcome", mcp_outcome_text(ended->outcome), "duration_us",
                             (json_int_t)(mcp_ask_now_us() - begun->began), "request_bytes",
                             (json_int_t)ended->request_bytes, "response_bytes",
                             (json_int_t)ended->response_bytes);

    if (ended->code != MCP_CODE_NONE) {
        json_object_set_new(body, "code", json_string(mcp_code_text(ended->code)));
    }
    if (ended->upstream_status != 0) {
        json_object_set_new(body, "upstream_status", json_integer(ended->upstream_status));
    }
    return body;
}

/* What an offered end came to. */
typedef enum offer { OFFER_RECORDED, OFFER_AGAIN, OFFER_NEVER } offer_t;

/* A policyd that is busy, restarting or away may take it later; one that does not know the attempt, or does not understand us, never will. */
static offer_t offer_end(mcp_ask_t *ask, const json_t *body, int endpoint, int64_t budget_ms,
                         apr_pool_t *pool)
{
    mcp_link_reply_t reply;
    apr_status_t status =
        mcp_ask_question(ask, MCP_KIND_CALL_END, body, endpoint, budget_ms, pool, &reply, NULL);

    if (status != APR_SUCCESS) {
        return status == MCP_STATUS_CLOSED ? OFFER_NEVER : OFFER_AGAIN;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) == 0) {
        return OFFER_RECORDED;
    }
    switch ((int)mcp_code_from_text(mcp_json_str(reply.body, "code"))) {
    case MCP_CODE_NOT_FOUND:
    case MCP_CODE_MALFORMED:
    case MCP_CODE_TOO_LARGE:
    case MCP_CODE_UNSUPPORTED:
        return OFFER_NEVER;
    default:
        return OFFER_AGAIN;
    }
}

apr_status_t mcp_ask_end(mcp_ask_t *ask, const mcp_begun_t *begun, const mcp_ended_t *ended,
                         int64_t budget_ms, apr_pool_t *pool, mcp_err_t *err)
{
    int64_t until_ms = mcp_ask_now_ms() + budget_ms;
    json_t *body = end_body(ask, begun, ended);
    offer_t offer = OFFER_AGAIN;
    apr_pool_t *round = NULL;
    int64_t left_ms;

    if (body == NULL || apr_pool_create(&round, pool) != APR_SUCCESS) {
        offer = OFFER_NEVER;
    }
    while (offer == OFFER_AGAIN && mcp_ask_now_ms() < until_ms) {
        apr_pool_clear(round);
        left_ms = until_ms - mcp_ask_now_ms();
        offer =
            offer_end(ask, body, begun->endpoint, left_ms < OFFER_MS ? left_ms : OFFER_MS, round);
        if (offer == OFFER_AGAIN) {
            apr_sleep(RESEND_PAUSE_US);
        }
    }
    if (round != NULL) {
        apr_pool_destroy(round);
    }
    json_decref(body);
    running_remove(ask, begun->audit);
    if (offer == OFFER_RECORDED) {
        return APR_SUCCESS;
    }
    (void)mcp_err_set(
        err, pool, MCP_FAIL_TOOL, MCP_CODE_OUTCOME_UNRECORDED,
        "check the application before you try again",
        "the call may have been executed but its outcome could not be recorded; do not "
        "repeat it blindly");
    if (err != NULL) {
        err->audit = begun->audit;
    }
    return MCP_STATUS_REFUSED;
}
