/* A line of the admin socket. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../policyd/pd_admin_rpc.h"
#include "../../proto/mcp_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever came in, the error that goes out is one line of sound JSON with a code. */
static void check_error(const pd_admin_request_t *request, int code, const pd_fault_t *fault)
{
    json_t *message = pd_admin_error(request->id, code, fault, NULL);
    size_t bytes = 0;
    char *text = mcp_json_text(message, &bytes);
    json_t *again = NULL;

    if (text == NULL || memchr(text, '\n', bytes) != NULL ||
        mcp_json_parse(text, bytes, 16 + MCP_MAX_DEPTH, &again, NULL) != MCP_OK ||
        json_integer_value(json_object_get(json_object_get(again, "error"), "code")) != code) {
        abort();
    }
    json_decref(again);
    free(text);
    json_decref(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pd_admin_request_t request;
    pd_fault_t fault;
    int code;

    memset(&fault, 0, sizeof fault);
    code = pd_admin_parse((const char *)data, size, &request, &fault);
    if (code == 0) {
        if (request.method == NULL || (request.params != NULL && !json_is_object(request.params)) ||
            json_is_object(request.id) || json_is_array(request.id)) {
            abort();
        }
    } else if (code >= 0 || fault.code == MCP_CODE_NONE) {
        abort();
    } else {
        check_error(&request, code, &fault);
    }
    json_decref(request.message);
    return 0;
}
