/* audit list, get. */
#include "op_audit.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "pd_span.h"

/* Number behind the dash of an audit id "CHAIN-SEQ"; 0: it is none. */
static int64_t seq_of(const char *audit_id)
{
    const char *dash = audit_id != NULL ? strrchr(audit_id, '-') : NULL;
    const char *at = dash != NULL ? dash + 1 : "";
    int64_t seq = 0;
    size_t digits = strspn(at, "0123456789");

    if (digits == 0 || digits > 18 || at[digits] != '\0') {
        return 0;
    }
    for (; *at != '\0'; at++) {
        seq = seq * 10 + (*at - '0');
    }
    return seq;
}

static pd_status_t read_moment(pd_op_call_t *call, const char *name, int64_t *ret_us)
{
    const char *text = pd_op_text(call, name);

    if (text == NULL || pd_span_moment(text, pd_wall_now().us, ret_us)) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                    "For example 2026-03-01T12:00:00Z, 2026-03-01, 90m or 7d",
                    "%s is neither an RFC 3339 time nor a span before now.", name);
}

static pd_status_t read_position(pd_op_call_t *call, pd_audit_query_t *query)
{
    const char *after = pd_op_text(call, "after");
    const char *cursor = pd_op_text(call, "cursor");
    int64_t seq = seq_of(cursor);

    if (cursor != NULL && seq == 0) {
        return pd_op_bad_cursor(call);
    }
    if (after == NULL) {
        query->before_seq = seq;
        return PD_OK;
    }
    query->oldest_first = 1;
    query->after_seq = cursor != NULL ? seq : seq_of(after);
    if (query->after_seq == 0) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                        "The field `audit_id` of a row is one.", "after is not an audit id.");
    }
    return PD_OK;
}

pd_status_t pd_op_audit_list(pd_op_call_t *call)
{
    pd_audit_query_t query = {.member = pd_op_text(call, "member"),
                              .tool = pd_op_text(call, "tool"),
                              .connection = pd_op_text(call, "connection"),
                              .outcome = pd_op_text(call, "outcome"),
                              .operation = pd_op_text(call, "operation"),
                              .surface = pd_op_text(call, "surface"),
                              .error_code = pd_op_text(call, "error_code"),
                              .grant = pd_op_text(call, "grant"),
                              .limit = (int)pd_op_limit(call)};
    json_t *items = NULL;
    const char *next = NULL;
    size_t count;
    pd_status_t status = read_moment(call, "since", &query.since_us);

    if (status == PD_OK) {
        status = read_moment(call, "until", &query.until_us);
    }
    if (status == PD_OK) {
        status = read_position(call, &query);
    }
    if (status == PD_OK) {
        status = pd_audit_list(call->core->audit, &query, call->deadline, &items);
    }
    if (status != PD_OK) {
        return status;
    }
    count = json_array_size(items);
    if (count >= (size_t)query.limit) {
        next = mcp_json_str(json_array_get(items, count - 1), "audit_id");
    }
    return pd_op_items(call, items, next);
}

pd_status_t pd_op_audit_get(pd_op_call_t *call)
{
    json_t *row = NULL;
    pd_status_t status =
        pd_audit_get(call->core->audit, pd_op_text(call, "audit"), call->deadline, &row);

    if (status == PD_E_NOT_FOUND || status == PD_E_INVALID) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "audit list shows them.",
                        "There is no such row; name one by its audit id.");
    }
    return status == PD_OK ? pd_op_answer(call, row) : status;
}
