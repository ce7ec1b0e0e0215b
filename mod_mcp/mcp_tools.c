/* Listing and calling of tools: see mcp_tools.h. */
#include "mcp_tools.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/view_meta.h"
#include "mcp_call.h"
#include "mcp_control.h"
#include "mcp_failure.h"
#include "mcp_meta.h"

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

/* The list that this caller gets: hidden tools stay callable by name. *ret_key names its bytes, for cursors. */
static const mcp_list_t *list_of(const mcp_turn_t *turn, const mcp_view_t *view, const char **ret_key)
{
    int is_collapsed = mcp_collapse_decide(&view->counts, &turn->resolved.collapse, NULL);

    *ret_key = is_collapsed ? apr_pstrcat(turn->pool, view->key, " collapsed", NULL) : view->key;
    return is_collapsed ? &view->collapsed : &view->flat;
}

/* The part of the list from one tool to before another, as a whole result. */
static void shape_page(const mcp_turn_t *turn, const mcp_era_t *era, const mcp_list_t *list, int64_t from,
                       int64_t to, const char *cursor, const char **ret, size_t *ret_bytes)
{
    const char *head = mcp_failure_result_head(era, turn->pool);
    const char *tail = era->is_modern ? MCP_VIEW_LIST_TAIL : "";
    int is_old = !era->is_modern && era->revision < MCP_REV_2025_06_18;
    const char *joined = is_old ? list->old_joined : list->joined;
    const size_t *offsets = is_old ? list->old_offsets : list->offsets;
    size_t bytes = to > from ? offsets[to] - offsets[from] - 1 : 0; /* without the last comma */
    char *text = apr_palloc(turn->pool, strlen(head) + bytes + strlen(cursor) + strlen(tail) + 32);

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
}

apr_status_t mcp_tools_list(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                            const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    const mcp_view_t *view = NULL;
    const mcp_list_t *list;
    const char *cursor = "";
    const char *key = NULL;
    int64_t from = 0;
    int64_t to;
    apr_status_t status =
        mcp_view_get(turn->child->views, turn->resolved.view, turn->terms->control_prefix,
                     turn->terms->policy_ms, turn->pool, &view, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    list = list_of(turn, view, &key);
    status = page_start(turn, key, message->params, &from, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    from = from > list->count ? list->count : from;
    to = list->count - from > turn->terms->list_page ? from + turn->terms->list_page : list->count;
    if (to < list->count) {
        status = next_cursor(turn, key, to, &cursor, err);
        if (status != APR_SUCCESS) {
            return status;
        }
    }
    if (era->is_modern && from == 0 && to == list->count) {
        *ret = list->whole;
        *ret_bytes = list->whole_bytes;
        return APR_SUCCESS;
    }
    shape_page(turn, era, list, from, to, cursor, ret, ret_bytes);
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

    if (!json_is_string(name) || json_string_length(name) == 0) {
        return bad_shape(turn, "tools/call needs params.name, a string", err);
    }
    if (json_string_length(name) > MCP_MAX_REQUESTED) {
        return bad_shape(turn, "params.name is longer than any tool's name", err);
    }
    if (arguments != NULL && !json_is_object(arguments)) {
        return bad_shape(turn, "params.arguments must be an object", err);
    }
    return mcp_tools_run(turn, era, json_string_value(name), arguments, "direct", ret, ret_bytes, err);
}

/* Names the operation that helps after a refusal, as it is called here; a role that lets nobody call an operation either is helped by
 * none. Behind a failure of the link the prefix may be unknown: then the hint stays as it is. */
static void name_the_cure(mcp_turn_t *turn, mcp_err_t *err)
{
    static const struct {
        mcp_code_t code;
        const char *what;
    } cures[] = {
        {MCP_CODE_INVALID_ARGUMENTS, "__tools__get shows the whole inputSchema"},
        {MCP_CODE_INVALID_REQUEST, "__tools__get shows the whole inputSchema"},
        {MCP_CODE_NEEDS_REAUTH, "__connections__list shows which connections need it"},
        {MCP_CODE_PERMISSION_DENIED, "__whoami__get tells your roles"},
    };
    const char *prefix = NULL;
    mcp_err_t ignored;
    size_t i;

    if (err->permission != NULL && strcmp(err->permission, "tool:execute") == 0) {
        return;
    }
    for (i = 0; i < sizeof(cures) / sizeof(cures[0]); i++) {
        memset(&ignored, 0, sizeof(ignored));
        if (cures[i].code == err->code && mcp_control_prefix(turn, &prefix, &ignored) == APR_SUCCESS) {
            const char *hint = err->hint != NULL ? err->hint : "";
            size_t bytes = strlen(hint);
            const char *between = bytes == 0 ? "" : hint[bytes - 1] == '.' ? " " : "; ";

            err->hint = apr_pstrcat(turn->pool, hint, between, prefix, cures[i].what, NULL);
        }
    }
}

apr_status_t mcp_tools_run(mcp_turn_t *turn, const mcp_era_t *era, const char *name,
                           const json_t *arguments, const char *via, const char **ret,
                           size_t *ret_bytes, mcp_err_t *err)
{
    mcp_meta_t meta = mcp_view_meta(name);
    const char *op = NULL;
    apr_status_t status;

    if (meta == MCP_META_IS_SEARCH) {
        return mcp_meta_search(turn, era, arguments, via, ret, ret_bytes, err);
    }
    if (meta == MCP_META_IS_EXECUTE) {
        return mcp_meta_execute(turn, era, arguments, via, ret, ret_bytes, err);
    }
    status = mcp_control_op(turn, name, &op, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    status = op != NULL ? mcp_control_run(turn, era, name, op, arguments, via, ret, ret_bytes, err)
                        : mcp_call_run(turn, era, name, arguments, via, ret, ret_bytes, err);
    if (status != APR_SUCCESS && err->fail == MCP_FAIL_TOOL) {
        name_the_cure(turn, err);
    }
    return status;
}
