/* Header lines and body pieces of an answer. Input: lines; a line that starts with '>' is a
 * piece of body. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>

#include "mcp_egress_answer.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : -1;
}

/* Each line in a block of its exact size, so that a checker sees a read beyond. */
static mcp_egress_cause_t feed(mcp_egress_answer_t *answer, const uint8_t *line, size_t bytes)
{
    int is_body = bytes > 0 && line[0] == '>';
    char *copy = malloc(bytes > 0 ? bytes : 1);
    if (copy == NULL)
        return MCP_EGRESS_MEMORY;
    memcpy(copy, line, bytes);
    mcp_egress_cause_t cause = is_body ? mcp_egress_answer_body(answer, copy, bytes)
                                       : mcp_egress_answer_header(answer, copy, bytes);
    free(copy);
    return cause;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mcp_egress_answer_t answer = {.max_bytes = 100};
    mcp_egress_cause_t cause = MCP_EGRESS_OK;
    mcp_response_t response;
    if (apr_pool_create(&answer.pool, NULL) != APR_SUCCESS)
        return 0;
    while (size > 0 && cause == MCP_EGRESS_OK) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t bytes = end != NULL ? (size_t)(end - data) + 1 : size;
        cause = feed(&answer, data, bytes);
        data += bytes;
        size -= bytes;
    }
    if (cause == MCP_EGRESS_OK && mcp_egress_answer_judge(&answer) == MCP_EGRESS_OK) {
        if (mcp_egress_answer_is_redirect(&answer) && answer.location == NULL)
            __builtin_trap();
        mcp_egress_answer_give(&answer, &response);
        if (response.status < 200 || response.body_bytes > 100 ||
            response.body[response.body_bytes] != '\0' ||
            strpbrk(response.content_type, "\r\n") != NULL)
            __builtin_trap();
    }
    free(answer.body);
    apr_pool_destroy(answer.pool);
    return 0;
}
