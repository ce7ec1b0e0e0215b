/* The story of one tool call: see mcp_call.h. */
#include "mcp_call.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/mcp_names.h"
#include "mcp_args.h"
#include "mcp_prepare.h"
#include "mcp_result.h"
#include "mcp_retry.h"
#include "mcp_template.h"
#include "mcp_urlguard.h"

#define END_MS    10000 /* how long an outcome is offered to policyd at most */
#define HIDDEN_PLACE "//" /* names no place: where a redirect points, a frozen value may stand in the path */
#define MARGIN_MS 5000  /* of the recorded deadline, for everything around the upstream's time */

/* One call on its way. */
typedef struct call {
    mcp_turn_t *turn;
    const mcp_era_t *era;
    const json_t *arguments;
    mcp_begun_t begun;
    mcp_prepare_t prepare; /* what the plan says of arguments */
    const mcp_guard_t *guard;
    const char *verdicts;
    mcp_request_t request;
    mcp_response_t response;
    mcp_ended_t ended;
    int was_sent;   /* the upstream may have got something */
    const char *result;
    size_t result_bytes;
} call_t;

/* The account that the caller chose: the argument's value where that is a label at all, else none. */
static const char *choice(const call_t *call)
{
    const char *label = mcp_json_str(call->arguments, call->begun.choose);

    return label != NULL && mcp_name_is_label(label) ? label : "";
}

/* A merged tool's first question records nothing, and learns which argument to send with the second. */
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
    if (status == APR_SUCCESS && call->begun.choose != NULL) {
        attempt.connection = choice(call);
        status = mcp_ask_begin(turn->child->ask, &turn->who, &attempt, turn->terms->policy_ms,
                               turn->pool, &call->begun, err);
    }
    json_decref(attempt.arg_names);
    return status;
}

/* The immutable parts of the plan. */
static apr_status_t fetch(call_t *call, mcp_err_t *err)
{
    mcp_turn_t *turn = call->turn;
    mcp_views_t *views = turn->child->views;
    int64_t budget_ms = turn->terms->policy_ms;
    const char *operation = mcp_json_str(call->begun.plan, "operation");
    const char *guard = mcp_json_str(call->begun.plan, "guard");
    const char *verdicts = mcp_json_str(call->begun.plan, "verdicts");
    const char *advertised = mcp_json_str(call->begun.plan, "advertised");
    apr_status_t status;

    if (operation == NULL || guard == NULL || verdicts == NULL) {
        return mcp_err_set(err, turn->pool, MCP_FAIL_TOOL, MCP_CODE_INTERNAL, NULL,
                           "the call can't be prepared");
    }
    status = mcp_view_operation(views, operation, budget_ms, turn->pool, &call->prepare.operation, err);
    if (status == APR_SUCCESS && advertised != NULL) {
        status = mcp_view_schema(views, advertised, budget_ms, turn->pool, &call->prepare.advertised, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_view_guard(views, guard, budget_ms, turn->pool, &call->guard, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_view_verdicts(views, verdicts, budget_ms, turn->pool, &call->verdicts, err);
    }
    call->prepare.defaults = json_object_get(call->begun.plan, "defaults");
    call->prepare.frozen = json_object_get(call->begun.plan, "frozen");
    call->prepare.rename = json_object_get(call->begun.plan, "rename");
    return status;
}

/* Headers and arguments. The client mirrors what it sends, by the schema that it sees. */
static apr_status_t prepare(call_t *call, json_t **ret_args, mcp_err_t *err)
{
    mcp_turn_t *turn = call->turn;
    apr_status_t status = APR_SUCCESS;

    if (call->era->is_modern && !call->era->is_indirect) {
        status = mcp_era_check_params(mcp_prepare_schema(&call->prepare), call->arguments, turn->header,
                                      turn->baton, turn->pool, err);
    }
    return status == APR_SUCCESS
               ? mcp_prepare_args(&call->prepare, call->arguments, turn->pool, ret_args, err)
               : status;
}

/* Does the URL still belong to the operation that was decided? */
static apr_status_t guard_url(const call_t *call, const char *url, mcp_err_t *err)
{
    const mcp_operation_t *operation = call->prepare.operation;

    return mcp_urlguard_check(call->guard, call->verdicts, mcp_json_str(call->begun.plan, "base"),
                              operation->method, operation->id, url, call->turn->pool, err);
}

/* The request as it will leave, judged byte for byte as it was built. */
static apr_status_t build(call_t *call, const json_t *args, mcp_err_t *err)
{
    apr_pool_t *pool = call->turn->pool;
    apr_status_t status = mcp_template_expand(
        call->prepare.operation->definition, mcp_json_str(call->begun.plan, "base"), args,
        json_object_get(call->begun.plan, "auth"), pool, &call->request, err);
    int i;

    if (status != APR_SUCCESS) {
        mcp_prepare_blame(&call->prepare, pool, err);
        return status;
    }
    call->ended.request_bytes = call->request.body_bytes;
    status = guard_url(call, call->request.url, err);
    for (i = 0; status == APR_SUCCESS && call->request.extra_urls != NULL &&
                i < call->request.extra_urls->nelts;
         i++) {
        status = guard_url(call, APR_ARRAY_IDX(call->request.extra_urls, i, const char *), err);
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
    return guard_url(baton, url, NULL) == APR_SUCCESS;
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
    status = mcp_retry_send(turn->child->egress, &call->request, &limits, turn->terms->egress_allow,
                            poll_call, call, turn->pool, &call->response, NULL, err);
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
    if (call->response.location != NULL && json_object_size(call->prepare.frozen) > 0) {
        call->response.location = HIDDEN_PLACE;
    }
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
