/* The wire as policyd meets it: 36 bytes of header, the rest a body, read by the table of its kind. */
#include <stddef.h>
#include <stdint.h>

#include "mcp_body.h"
#include "mcp_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t header = size < MCP_HEADER_BYTES ? size : MCP_HEADER_BYTES;
    mcp_direction_t direction = size % 2 == 0 ? MCP_TO_POLICYD : MCP_FROM_POLICYD;
    mcp_frame_t frame = {0};
    json_t *body = NULL;
    size_t count = 0;
    const mcp_field_t *table;

    (void)mcp_frame_decode(data, header, size - header, direction, &frame);
    table = mcp_body_table(frame.kind, &count);
    if (mcp_body_parse((const char *)data + header, size - header, &body) == MCP_OK && table != NULL) {
        (void)mcp_body_check(body, table, count, NULL);
    }
    json_decref(body);
    return 0;
}
