/* Listing and calling of tools: see mcp_tools.h. */
#include "mcp_tools.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "mcp_call.h"
#include "mcp_control.h"
#include "mcp_failure.h"

/* Where the page starts: at the cursor, which is of this view and grant. */
static apr_status_t page_start(mcp_turn_t *turn, const char *view, const json_t *params, int64_t *ret,
                               mcp_err_t *err)
{
    const json_t *cursor = json_object_get(params, "cursor");
    mcp_ring_t ring;
    apr_status_t status;

    *ret = 0;
    if (cursor == NULL) {
        return APR_SUCCESS;
    }
    if (!json_is_string(cursor)) {
        return mcp_err_set(err, turn->pool, MCP_FAIL_PARAMS, MCP_CODE_NONE, NULL,
                           "params.cursor must be a string");
    }
    status = mcp_ask_ring(turn->child->ask, turn->terms->policy_ms, turn->pool, &ring, err);
    if (status == APR_SUCCESS) {
        status = mcp_unseal_cursor(&ring, json_string_value(cursor), view, turn->resolved.grant,
                                   turn->pool, ret, err);
        mcp_wipe(&ring, sizeof(ring));
    }
    return status;
}

static apr_status_t next_cursor(mcp_turn_t *turn, const char *view, int64_t offset, const char **ret,
                                mcp_err_t *err)
{
    mcp_ring_t ring;
    const char *sealed;
    apr_status_t status =
        mcp_ask_ring(turn->child->ask, turn->terms->policy_ms, turn->pool, &ring, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    sealed = mcp_seal_cursor(&ring, view, turn->resolved.grant, offset, turn->pool);
    mcp_wipe(&ring, sizeof(ring));
    if (sealed == NULL) {
        return mcp_err_set(err, turn->pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "the list can't be continued");
    }
    *ret = apr_pstrcat(turn->pool, ",\"nextCursor\":\"", sealed, "\"", NULL);
    return APR_SUCCESS;
}

apr_status_t mcp_tools_list(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                            const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    const mcp_view_t *view = NULL;
    const char *head = mcp_failure_result_head(era, turn->pool);
    const char *tail = era->is_modern ? MCP_VIEW_LIST_TAIL : "";
    const char *cursor = "";
    int is_old = !era->is_modern && era->revision < MCP_REV_2025_06_18;
    int64_t from = 0;
    int64_t to;
    size_t bytes = 0;
    char *text;
    apr_status_t status =
        mcp_view_get(turn->child->views, turn->resolved.view, turn->terms->control_prefix,
                     turn->terms->policy_ms, turn->pool, &view, err);
    const char *joined;
    const size_t *offsets;

    if (status == APR_SUCCESS) {
        status = page_start(turn, view->key, message->params, &from, err);
    }
    if (status != APR_SUCCESS) {
        return status;
    }
    from = from > view->count ? view->count : from;
    to = view->count - from > turn->terms->list_page ? from + turn->terms->list_page : view->count;
    if (to < view->count) {
        status = next_cursor(turn, view->key, to, &cursor, err);
        if (status != APR_SUCCESS) {
            return status;
        }
    }
    if (era->is_modern && from == 0 && to == view->count) {
        *ret = view->whole;
        *ret_bytes = view->whole_bytes;
        return APR_SUCCESS;
    }
    joined = is_old ? view->old_joined : view->joined;
    offsets = is_old ? view->old_offsets : view->offsets;
    bytes = to > from ? offsets[to] - offsets[from] - 1 : 0; /* without the last comma */
    text = apr_palloc(turn->pool, strlen(head) + bytes + strlen(cursor) + strlen(tail) + 32);
    *ret = text;
    text = apr_cpystrn(text, "{", 2);
    text = apr_cpystrn(text, head, strlen(head) + 1);
    text = apr_cpystrn(text, head[0] != '\0' ? ",\"tools\":[" : "\"tools\":[", 11);
    memcpy(text, joined + offsets[from], bytes);
    text = apr_cpystrn(text + bytes, "]", 2);
    text = apr_cpystrn(text, cursor, strlen(cursor) + 1);
    text = apr_cpystrn(text, tail, strlen(tail) + 1);
    text = apr_cpystrn(text, "}", 2);
    *ret_bytes = (size_t)(text - *ret);
    return APR_SUCCESS;
}

/* A call that breaks the shape of tools/call is no attempt, but its caller is told 401 first. */
static apr_status_t bad_shape(mcp_turn_t *turn, const char *message, mcp_err_t *err)
{
    apr_status_t status = mcp_turn_resolve(turn, err);

    return status == APR_SUCCESS ? mcp_err_set(err, turn->pool, MCP_FAIL_PARAMS, MCP_CODE_NONE, NULL,
                                               "%s", message)
                                 : status;
}

apr_status_t mcp_tools_call(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                            const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    const json_t *name = json_object_get(message->params, "name");
    const json_t *arguments = json_object_get(message->params, "arguments");
    const char *op = NULL;
    apr_status_t status;

    if (!json_is_string(name) || json_string_length(name) == 0) {
        return bad_shape(turn, "tools/call needs params.name, a string", err);
    }
    if (json_string_length(name) > MCP_MAX_REQUESTED) {
        return bad_shape(turn, "params.name is longer than any tool's name", err);
    }
    if (arguments != NULL && !json_is_object(arguments)) {
        return bad_shape(turn, "params.arguments must be an object", err);
    }
    status = mcp_control_op(turn, json_string_value(name), &op, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    if (op != NULL) {
        return mcp_control_run(turn, era, json_string_value(name), op, arguments, ret, ret_bytes, err);
    }
    return mcp_call_run(turn, era, json_string_value(name), arguments, "direct", ret, ret_bytes, err);
}
