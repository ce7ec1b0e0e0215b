/* Lines of the admin socket as values: see pd_admin_rpc.h. */
#include "pd_admin_rpc.h"

#include <string.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

/* the line's own depth: params of MCP_MAX_DEPTH levels inside the request object */
#define LINE_DEPTH (MCP_MAX_DEPTH + 1)

static int wrong(pd_fault_t *fault, int rpc, mcp_code_t code, const char *text)
{
    (void)pd_fault(fault, code, NULL, "%s", text);
    return rpc;
}

static int only_known_members(const json_t *message)
{
    static const char *const known[] = {"jsonrpc", "id", "method", "params"};
    size_t i, found = 0;

    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        found += json_object_get(message, known[i]) != NULL;
    }
    return found == json_object_size(message);
}

int pd_admin_parse(const char *line, size_t bytes, pd_admin_request_t *ret, pd_fault_t *fault)
{
    const json_t *id;
    const char *version;
    mcp_wire_status_t status;

    memset(ret, 0, sizeof *ret);
    status = mcp_json_parse(line, bytes, LINE_DEPTH, &ret->message, NULL);
    if (status == MCP_E_SIZE) {
        return wrong(fault, PD_RPC_PARSE, MCP_CODE_TOO_LARGE, "the message is nested too deeply");
    }
    if (status != MCP_OK) {
        return wrong(fault, PD_RPC_PARSE, MCP_CODE_MALFORMED,
                     "the line is not one JSON value without duplicate keys");
    }
    if (!json_is_object(ret->message)) {
        return wrong(fault, PD_RPC_INVALID_REQUEST, MCP_CODE_MALFORMED,
                     json_is_array(ret->message) ? "a batch is not taken; send one message a line"
                                                 : "a request is a JSON object");
    }
    id = json_object_get(ret->message, "id");
    if (id != NULL && !json_is_string(id) && !json_is_number(id) && !json_is_null(id)) {
        return wrong(fault, PD_RPC_INVALID_REQUEST, MCP_CODE_MALFORMED,
                     "id is a string, a number or null");
    }
    ret->id = id;
    ret->is_notification = id == NULL;
    version = mcp_json_str(ret->message, "jsonrpc");
    if (version == NULL || strcmp(version, "2.0") != 0) {
        return wrong(fault, PD_RPC_INVALID_REQUEST, MCP_CODE_MALFORMED, "jsonrpc must be \"2.0\"");
    }
    ret->method = mcp_json_str(ret->message, "method");
    if (ret->method == NULL) {
        return wrong(fault, PD_RPC_INVALID_REQUEST, MCP_CODE_MALFORMED, "method must be a string");
    }
    if (!only_known_members(ret->message)) {
        return wrong(fault, PD_RPC_INVALID_REQUEST, MCP_CODE_MALFORMED,
                     "a request has jsonrpc, id, method and params, nothing else");
    }
    ret->params = json_object_get(ret->message, "params");
    if (ret->params != NULL && !json_is_object(ret->params)) {
        return wrong(fault, PD_RPC_INVALID_PARAMS, MCP_CODE_INVALID_REQUEST,
                     "params is an object of named arguments");
    }
    return 0;
}

json_t *pd_admin_envelope(const json_t *id)
{
    json_t *message = json_object();

    /* a failed insert leaves a member out, which the client then refuses */
    (void)json_object_set_new(message, "jsonrpc", json_string("2.0"));
    (void)json_object_set_new(message, "id", id == NULL ? json_null() : json_deep_copy(id));
    return message;
}

json_t *pd_admin_error(const json_t *id, int rpc, const pd_fault_t *fault, const char *audit)
{
    json_t *message = pd_admin_envelope(id);
    json_t *error = json_object();
    json_t *data = json_object();
    const char *code = mcp_code_text(fault->code);
    /* a text that is no UTF-8 (never one of ours) is replaced by its code */
    json_t *text = json_string(fault->message[0] == '\0' ? code : fault->message);

    (void)json_object_set_new(error, "code", json_integer(rpc));
    (void)json_object_set_new(error, "message", text == NULL ? json_string(code) : json_incref(text));
    (void)json_object_set_new(data, "code", json_string(code));
    (void)json_object_set_new(data, "message", text == NULL ? json_string(code) : text);
    if (fault->hint[0] != '\0') {
        (void)json_object_set_new(data, "hint", json_string(fault->hint));
    }
    if (audit != NULL && *audit != '\0') {
        (void)json_object_set_new(data, "audit", json_string(audit));
    }
    (void)json_object_set_new(error, "data", data);
    (void)json_object_set_new(message, "error", error);
    return message;
}
