/* An operation of the control plane, asked of policyd: see mcp_ask.h. */
#include "mcp_ask_private.h"

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

#define ENVELOPE_BYTES 8192 /* of op.invoke, around the arguments */

/* The class of an operation's refusal; what stands for policyd itself or the way to it is no answer of the operation. */
static mcp_fail_t fail_of_operation(mcp_code_t code)
{
    if (mcp_code_http(code) == 401) {
        return MCP_FAIL_UNAUTHORIZED;
    }
    return code == MCP_CODE_POLICY_UNAVAILABLE ? MCP_FAIL_UNAVAILABLE : mcp_ask_fail_of(code);
}

static apr_status_t refused_operation(const mcp_link_reply_t *reply, apr_pool_t *pool,
                                      mcp_err_t *err)
{
    mcp_code_t code = mcp_code_from_text(mcp_json_str(reply->body, "code"));

    if (code == MCP_CODE_NONE || code == MCP_CODE_MALFORMED || code == MCP_CODE_UNSUPPORTED ||
        code == MCP_CODE_HELLO_REQUIRED) {
        return mcp_ask_not_understood(err, pool, mcp_json_str(reply->body, "message"));
    }
    (void)mcp_err_set(err, pool, fail_of_operation(code), code, mcp_json_str(reply->body, "hint"),
                      "%s", mcp_json_str(reply->body, "message"));
    if (err != NULL) {
        err->has_credentials = 1;
        err->audit = mcp_json_str(reply->body, "audit");
        err->permission = mcp_json_str(reply->body, "permission");
        err->scopes = (unsigned)mcp_json_int(reply->body, "scopes", 0);
    }
    return MCP_STATUS_REFUSED;
}

static apr_status_t no_answer(apr_pool_t *pool, mcp_err_t *err)
{
    (void)mcp_err_set(
        err, pool, MCP_FAIL_TOOL, MCP_CODE_OUTCOME_UNRECORDED,
        "look at the object before you try again",
        "no answer came: the operation may have been executed; do not repeat it blindly");
    return MCP_STATUS_REFUSED;
}

/* Numbers may grow when they are written anew, so that it is this text that counts. */
static int fits_a_message(const json_t *args)
{
    return json_dumpb(args, NULL, 0, JSON_COMPACT | JSON_REAL_PRECISION(17)) <=
           MCP_MAX_BODY_BYTES - ENVELOPE_BYTES;
}

apr_status_t mcp_ask_invoke(mcp_ask_t *ask, const mcp_who_t *who, const char *op,
                            const json_t *args, const char *via, const char *trace_id, int64_t budget_ms,
                            apr_pool_t *pool, json_t **ret_result, const char **ret_audit,
                            mcp_err_t *err)
{
    mcp_link_reply_t reply;
    json_t *body;
    int was_sent = 0;
    apr_status_t status;

    if (!fits_a_message(args)) {
        return mcp_err_set(
            err, pool, MCP_FAIL_TOO_LARGE, MCP_CODE_TOO_LARGE,
            "use policyctl on policyd's own host",
            "the arguments are larger than the %u bytes that an operation takes here",
            MCP_MAX_BODY_BYTES - ENVELOPE_BYTES);
    }
    body = mcp_ask_who_body(who);
    json_object_set_new(body, "op", json_string(op));
    json_object_set_new(body, "args", json_incref((json_t *)(uintptr_t)args));
    json_object_set_new(body, "via", json_string(via));
    if (trace_id != NULL) {
        json_object_set_new(body, "trace_id", json_string(trace_id));
    }
    status = mcp_ask_question_sent(ask, MCP_KIND_OP_INVOKE, body, -1, budget_ms, pool, &reply,
                                   &was_sent, err);
    json_decref(body);
    if (status != APR_SUCCESS) {
        return was_sent ? no_answer(pool, err) : status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return refused_operation(&reply, pool, err);
    }
    *ret_result = json_object_get(reply.body, "result");
    *ret_audit = mcp_json_str(reply.body, "audit");
    return APR_SUCCESS;
}
