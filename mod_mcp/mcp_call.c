/* The story of one tool call: see mcp_call.h. */
#include "mcp_call.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "mcp_args.h"
#include "mcp_result.h"
#include "mcp_template.h"
#include "mcp_urlguard.h"

#define END_MS    10000 /* how long an outcome is offered to policyd at most */
#define MARGIN_MS 5000  /* of the recorded deadline, for everything around the upstream's time */

/* One call on its way. */
typedef struct call {
    mcp_turn_t *turn;
    const mcp_era_t *era;
    const json_t *arguments;
    mcp_begun_t begun;
    const mcp_operation_t *operation;
    const mcp_guard_t *guard;
    mcp_request_t request;
    mcp_response_t response;
    mcp_ended_t ended;
    int was_sent;   /* the upstream may have got something */
    const char *result;
    size_t result_bytes;
} call_t;

static apr_status_t begin(call_t *call, const char *name, const char *via, mcp_err_t *err)
{
    mcp_turn_t *turn = call->turn;
    mcp_attempt_t attempt;
    apr_status_t status;

    memset(&attempt, 0, sizeof(attempt));
    attempt.tool = name;
    attempt.via = via;
    attempt.arg_names = mcp_args_names(call->arguments, &attempt.arg_count);
    attempt.request_bytes =
        call->arguments != NULL ? json_dumpb(call->arguments, NULL, 0, JSON_COMPACT) : 0;
    attempt.deadline_ms = turn->terms->call_ms + MARGIN_MS;
    attempt.trace_id = turn->trace_id;
    status = mcp_ask_begin(turn->child->ask, &turn->who, &attempt, turn->terms->policy_ms, turn->pool,
                           &call->begun, err);
    json_decref(attempt.arg_names);
    return status;
}

/* The immutable parts of the plan. */
static apr_status_t fetch(call_t *call, mcp_err_t *err)
{
    mcp_turn_t *turn = call->turn;
    const char *operation = mcp_json_str(call->begun.plan, "operation");
    const char *guard = mcp_json_str(call->begun.plan, "guard");
    apr_status_t status;

    if (operation == NULL || guard == NULL) {
        return mcp_err_set(err, turn->pool, MCP_FAIL_TOOL, MCP_CODE_INTERNAL, NULL,
                           "the call can't be prepared");
    }
    status = mcp_view_operation(turn->child->views, operation, turn->terms->policy_ms, turn->pool,
                                &call->operation, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    return mcp_view_guard(turn->child->views, guard, turn->terms->policy_ms, turn->pool, &call->guard,
                          err);
}

static apr_status_t validate(call_t *call, const json_t *arguments, mcp_err_t *err)
{
    mcp_schema_error_t why;
    json_t *none = NULL;
    mcp_wire_status_t status;

    memset(&why, 0, sizeof(why));
    if (arguments == NULL) {
        none = json_object();
        arguments = none;
    }
    status = mcp_schema_validate(call->operation->compiled, arguments, &why);
    json_decref(none);
    if (status == MCP_OK) {
        return APR_SUCCESS;
    }
    return mcp_err_set(err, call->turn->pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                       "correct the arguments to match the tool's inputSchema and call again",
                       "invalid arguments: %s%s%s%s", why.path, why.path[0] != '\0' ? ": " : "",
                       why.message[0] != '\0' ? why.message : "the schema's limits are exceeded",
                       why.rule[0] != '\0' ? apr_psprintf(call->turn->pool, " (%s)", why.rule) : "");
}

/* Headers, arguments, merge. */
static apr_status_t prepare(call_t *call, json_t **ret_args, mcp_err_t *err)
{
    mcp_turn_t *turn = call->turn;
    const json_t *defaults = json_object_get(call->begun.plan, "defaults");
    const json_t *frozen = json_object_get(call->begun.plan, "frozen");
    int is_plain = json_object_size(defaults) == 0 && json_object_size(frozen) == 0;
    json_t *own = NULL;
    apr_status_t status = APR_SUCCESS;

    if (call->era->is_modern) {
        status = mcp_era_check_params(call->operation->schema, call->arguments, turn->header,
                                      turn->baton, turn->pool, err);
    }
    if (status == APR_SUCCESS && is_plain) {
        status = validate(call, call->arguments, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_args_merge(defaults, call->arguments, frozen, turn->pool, ret_args, err);
    }
    if (status == APR_SUCCESS && !is_plain) {
        status = mcp_args_strip(call->arguments, frozen, turn->pool, &own, err);
    }
    if (status == APR_SUCCESS && !is_plain) {
        status = validate(call, *ret_args, err);
    }
    return status;
}

/* The request as it will leave, judged byte for byte as it was built. */
static apr_status_t build(call_t *call, const json_t *args, mcp_err_t *err)
{
    apr_pool_t *pool = call->turn->pool;
    const char *base = mcp_json_str(call->begun.plan, "base");
    apr_status_t status =
        mcp_template_expand(call->operation->definition, base, args,
                            json_object_get(call->begun.plan, "auth"), pool, &call->request, err);
    int i;

    if (status == APR_SUCCESS) {
        call->ended.request_bytes = call->request.body_bytes;
        status = mcp_urlguard_check(call->guard, base, call->operation->method, call->operation->id,
                                    call->request.url, pool, err);
    }
    for (i = 0; status == APR_SUCCESS && call->request.extra_urls != NULL &&
                i < call->request.extra_urls->nelts;
         i++) {
        status = mcp_urlguard_check(call->guard, base, call->operation->method, call->operation->id,
                                    APR_ARRAY_IDX(call->request.extra_urls, i, const char *), pool,
                                    err);
    }
    return status;
}

/* Polled while the upstream is waited for. A child that stops waits for nobody; of clients only a modern one's going away ends a call. */
static int poll_call(void *baton)
{
    call_t *call = baton;

    if (mcp_link_is_shut(call->turn->child->link)) {
        return 1;
    }
    mcp_ask_beat(call->turn->child->ask);
    return call->era->is_modern && call->turn->is_gone(call->turn->baton);
}

/* A redirect may go where the call itself might have gone, and nowhere else. */
static int may_follow(void *baton, const char *url)
{
    call_t *call = baton;

    return mcp_urlguard_check(call->guard, mcp_json_str(call->begun.plan, "base"),
                              call->operation->method, call->operation->id, url, call->turn->pool,
                              NULL) == APR_SUCCESS;
}

static apr_status_t transfer(call_t *call, mcp_err_t *err)
{
    mcp_turn_t *turn = call->turn;
    const char *connection = mcp_json_str(call->begun.plan, "connection");
    mcp_egress_limits_t limits;
    apr_status_t status;

    limits.timeout_ms = mcp_json_int(call->begun.plan, "timeout_ms", turn->terms->call_ms);
    if (limits.timeout_ms > turn->terms->call_ms) {
        limits.timeout_ms = turn->terms->call_ms;
    }
    limits.max_bytes = (size_t)mcp_json_int(call->begun.plan, "max_bytes", 0);
    if (limits.max_bytes == 0 || limits.max_bytes > turn->terms->max_result) {
        limits.max_bytes = turn->terms->max_result;
    }
    limits.connection = connection;
    limits.may_follow = may_follow;
    status = mcp_egress_enter(turn->child->egress, connection, turn->pool, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    call->was_sent = 1;
    status = mcp_egress_send(turn->child->egress, &call->request, &limits, turn->terms->egress_allow,
                             poll_call, call, turn->pool, &call->response, err);
    mcp_egress_leave(turn->child->egress, connection);
    return status;
}

static apr_status_t run(call_t *call, mcp_err_t *err)
{
    json_t *args = NULL;
    int is_error = 0;
    apr_status_t status = fetch(call, err);

    if (status == APR_SUCCESS) {
        status = prepare(call, &args, err);
    }
    if (status == APR_SUCCESS) {
        status = build(call, args, err);
    }
    if (status == APR_SUCCESS) {
        status = transfer(call, err);
    }
    if (status != APR_SUCCESS) {
        return status;
    }
    call->ended.upstream_status = call->response.status;
    call->ended.response_bytes = call->response.body_bytes;
    status = mcp_result_shape(&call->response, call->era, call->begun.audit, call->turn->pool,
                              &call->result, &call->result_bytes, &is_error, err);
    call->ended.outcome = is_error ? MCP_OUTCOME_ERROR : MCP_OUTCOME_OK;
    call->ended.code = is_error ? MCP_CODE_UPSTREAM_STATUS : MCP_CODE_NONE;
    return status;
}

/* The outcome of what failed on the way, by its code. A mismatched Mcp-Param header has none of its own. */
static void end_of_failure(call_t *call, const mcp_err_t *err)
{
    mcp_code_t code = err->code;

    if (code == MCP_CODE_NONE) {
        code = err->fail == MCP_FAIL_HEADER ? MCP_CODE_INVALID_ARGUMENTS : MCP_CODE_INTERNAL;
    }
    call->ended.code = code;
    call->ended.outcome = mcp_code_outcome(code);
}

static apr_status_t end(call_t *call, apr_status_t status, mcp_err_t *err)
{
    mcp_turn_t *turn = call->turn;
    mcp_err_t unrecorded;
    int64_t budget_ms = turn->terms->call_ms < END_MS ? turn->terms->call_ms : END_MS;

    if (budget_ms < turn->terms->policy_ms || !call->was_sent) {
        budget_ms = turn->terms->policy_ms;
    }
    memset(&unrecorded, 0, sizeof(unrecorded));
    if (status != APR_SUCCESS) {
        end_of_failure(call, err);
        err->audit = call->begun.audit;
    }
    if (mcp_ask_end(turn->child->ask, &call->begun, &call->ended, budget_ms, turn->pool,
                    &unrecorded) != APR_SUCCESS) {
        if (!call->was_sent) { /* nothing happened: the caller may try again */
            return mcp_err_set(err, turn->pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE,
                               "try again in a moment", "the policy service is not available");
        }
        *err = unrecorded;
        return MCP_STATUS_REFUSED;
    }
    return status;
}

apr_status_t mcp_call_run(mcp_turn_t *turn, const mcp_era_t *era, const char *name,
                          const json_t *arguments, const char *via, const char **ret, size_t *ret_bytes,
                          mcp_err_t *err)
{
    call_t *call = apr_pcalloc(turn->pool, sizeof(*call));
    apr_status_t status;

    call->turn = turn;
    call->era = era;
    call->arguments = arguments;
    status = begin(call, name, via, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    if (call->begun.denied.fail != MCP_FAIL_NONE) {
        *err = call->begun.denied;
        return MCP_STATUS_REFUSED;
    }
    status = end(call, run(call, err), err);
    if (status == APR_SUCCESS) {
        *ret = call->result;
        *ret_bytes = call->result_bytes;
    }
    return status;
}
