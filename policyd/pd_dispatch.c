/* The message table: see pd_dispatch.h.
 *
 * The checks stand in the order of PROTOCOL.md: header, generation, kind, state, size, time, body.  The
 * first one that fails decides; a question that passes all of them reaches its handler whole. */
#include "pd_dispatch.h"

#include <string.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

#define ALWAYS     (PD_STATE_READY | PD_STATE_DRAINING)
#define KIB(count) ((size_t)(count)*1024)

/* What ends or reports a running call is served to the last; what begins one is not. */
static const pd_dispatch_row_t rows[] = {
    {MCP_KIND_HELLO, ALWAYS, KIB(64), pd_on_hello},
    {MCP_KIND_RESOLVE, ALWAYS, KIB(64), pd_on_resolve},
    {MCP_KIND_BLOB_GET, ALWAYS, KIB(4), pd_on_blob_get},
    {MCP_KIND_CALL_BEGIN, PD_STATE_READY, KIB(128), pd_on_call_begin},
    {MCP_KIND_CALL_END, ALWAYS, KIB(16), pd_on_call_end},
    {MCP_KIND_CALL_NOTE, ALWAYS, KIB(128), pd_on_call_note},
    {MCP_KIND_OP_INVOKE, PD_STATE_READY, MCP_MAX_BODY_BYTES, pd_on_op_invoke},
    {MCP_KIND_CHILD_BEAT, ALWAYS, KIB(512), pd_on_child_beat},
};

const pd_dispatch_row_t *pd_dispatch_row(uint16_t kind)
{
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].kind == kind) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Refusal of a header that could be read, from what the decoder said. */
static pd_verdict_t refuse_header(mcp_wire_status_t status, size_t body_bytes, pd_inbound_t *ret)
{
    if (status == MCP_E_VERSION) {
        (void)pd_fault(&ret->fault, MCP_CODE_UNSUPPORTED, NULL,
                       "this policyd speaks versions %u to %u of the protocol", MCP_VERSION_MIN,
                       MCP_VERSION);
    } else if (status == MCP_E_KIND && (ret->frame.kind & 1) != 0) {
        (void)pd_fault(&ret->fault, MCP_CODE_MALFORMED, NULL,
                       "kind %u is a reply; policyd takes questions", ret->frame.kind);
    } else if (status == MCP_E_KIND) {
        (void)pd_fault(&ret->fault, MCP_CODE_UNSUPPORTED, NULL, "no kind has the number %u",
                       ret->frame.kind);
    } else if (status == MCP_E_SIZE && body_bytes > MCP_MAX_BODY_BYTES) {
        (void)pd_fault(&ret->fault, MCP_CODE_TOO_LARGE, NULL, "a body has at most %u bytes",
                       MCP_MAX_BODY_BYTES);
    } else if (status == MCP_E_SIZE) {
        (void)pd_fault(&ret->fault, MCP_CODE_MALFORMED, NULL,
                       "the header says %u body bytes, the frame has %zu", ret->frame.body_bytes,
                       body_bytes);
    } else {
        (void)pd_fault(&ret->fault, MCP_CODE_MALFORMED, NULL, "flags of a question must be 0");
    }
    return PD_VERDICT_REFUSE;
}

static pd_verdict_t judge_body(const void *body, size_t bytes, pd_inbound_t *ret)
{
    const mcp_field_t *table;
    const char *field = NULL;
    json_t *value = NULL;
    size_t count = 0;

    if (mcp_body_parse(body, bytes, &value) != MCP_OK) {
        (void)pd_fault(&ret->fault, MCP_CODE_MALFORMED, NULL,
                       "the body is not one JSON object without duplicate keys, at most %d levels deep",
                       MCP_MAX_DEPTH);
        return PD_VERDICT_REFUSE;
    }
    table = mcp_body_table(ret->frame.kind, &count);
    if (table == NULL || mcp_body_check(value, table, count, &field) != MCP_OK) {
        json_decref(value);
        if (field == NULL) {
            (void)pd_fault(&ret->fault, MCP_CODE_MALFORMED, NULL,
                           "%s has a field that the protocol does not know",
                           mcp_kind_text(ret->frame.kind));
        } else {
            (void)pd_fault(&ret->fault, MCP_CODE_MALFORMED, NULL,
                           "field %s of %s is missing, of another type or out of range", field,
                           mcp_kind_text(ret->frame.kind));
        }
        return PD_VERDICT_REFUSE;
    }
    ret->body = value;
    return PD_VERDICT_RUN;
}

pd_verdict_t pd_dispatch_judge(const void *header, size_t header_bytes, const void *body,
                               size_t body_bytes, uint64_t generation, unsigned state,
                               pd_inbound_t *ret)
{
    mcp_wire_status_t status;

    memset(ret, 0, sizeof *ret);
    status = mcp_frame_decode(header, header_bytes, body_bytes, MCP_TO_POLICYD, &ret->frame);
    if (status != MCP_OK && status != MCP_E_VERSION && status != MCP_E_KIND &&
        status != MCP_E_FLAGS && status != MCP_E_SIZE) {
        return PD_VERDICT_DROP;
    }
    if (status != MCP_OK) {
        return refuse_header(status, body_bytes, ret);
    }
    if (ret->frame.kind != MCP_KIND_HELLO && ret->frame.generation != 0 &&
        ret->frame.generation != generation) {
        (void)pd_fault(&ret->fault, MCP_CODE_HELLO_REQUIRED, "say hello and ask again",
                       "another policyd was meant; nothing was recorded");
        return PD_VERDICT_REFUSE;
    }
    ret->row = pd_dispatch_row(ret->frame.kind);
    if (ret->row == NULL) {
        (void)pd_fault(&ret->fault, MCP_CODE_UNSUPPORTED, NULL, "%s is reserved and not served",
                       mcp_kind_text(ret->frame.kind));
        return PD_VERDICT_REFUSE;
    }
    if ((ret->row->states & state) == 0) {
        (void)pd_fault(&ret->fault, MCP_CODE_POLICY_UNAVAILABLE, NULL, "policyd is shutting down");
        return PD_VERDICT_REFUSE;
    }
    if (body_bytes > ret->row->max_bytes) {
        (void)pd_fault(&ret->fault, MCP_CODE_TOO_LARGE, NULL, "a body of %s has at most %zu bytes",
                       mcp_kind_text(ret->frame.kind), ret->row->max_bytes);
        return PD_VERDICT_REFUSE;
    }
    if (ret->frame.budget_ms == 0) {
        (void)pd_fault(&ret->fault, MCP_CODE_POLICY_UNAVAILABLE, NULL,
                       "the budget was used up when the question arrived");
        return PD_VERDICT_REFUSE;
    }
    if (ret->frame.budget_ms > PD_MAX_BUDGET_MS) {
        ret->frame.budget_ms = PD_MAX_BUDGET_MS;
    }
    return judge_body(body, body_bytes, ret);
}
