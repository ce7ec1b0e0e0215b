/* The binary header: see mcp_frame.h and PROTOCOL.md, Envelope. */
#include "mcp_frame.h"

#include "mcp_kind_text.h"

static void put16(unsigned char *to, uint16_t value)
{
    to[0] = (unsigned char)(value >> 8);
    to[1] = (unsigned char)(value & 0xff);
}

static void put32(unsigned char *to, uint32_t value)
{
    put16(to, (uint16_t)(value >> 16));
    put16(to + 2, (uint16_t)(value & 0xffff));
}

static void put64(unsigned char *to, uint64_t value)
{
    put32(to, (uint32_t)(value >> 32));
    put32(to + 4, (uint32_t)(value & 0xffffffffu));
}

static uint16_t get16(const unsigned char *from)
{
    return (uint16_t)((from[0] << 8) | from[1]);
}

static uint32_t get32(const unsigned char *from)
{
    return ((uint32_t)get16(from) << 16) | get16(from + 2);
}

static uint64_t get64(const unsigned char *from)
{
    return ((uint64_t)get32(from) << 32) | get32(from + 4);
}

mcp_wire_status_t mcp_frame_encode(const mcp_frame_t *frame, unsigned char *buf, size_t size)
{
    if (size < MCP_HEADER_BYTES) {
        return MCP_E_SPACE;
    }
    put32(buf, MCP_MAGIC);
    put16(buf + 4, frame->version);
    put16(buf + 6, frame->kind);
    put32(buf + 8, frame->flags);
    put64(buf + 12, frame->request_id);
    put32(buf + 20, frame->budget_ms);
    put32(buf + 24, frame->body_bytes);
    put64(buf + 28, frame->generation);
    return MCP_OK;
}

/* What a header that could be read is refused for; MCP_OK if for nothing. */
static mcp_wire_status_t judge(const mcp_frame_t *frame, size_t body_bytes,
                               mcp_direction_t direction)
{
    int is_reply = (frame->kind & 1) != 0;

    if (frame->version < MCP_VERSION_MIN || frame->version > MCP_VERSION) {
        return MCP_E_VERSION;
    }
    if (is_reply != (direction == MCP_FROM_POLICYD) ||
        mcp_kind_is_built((uint16_t)(frame->kind & 0xfffe)) < 0) {
        return MCP_E_KIND;
    }
    if ((frame->flags & ~MCP_FLAG_KNOWN) != 0 || (!is_reply && frame->flags != 0) ||
        ((frame->flags & MCP_FLAG_MORE) != 0 && (frame->flags & MCP_FLAG_RAW) == 0) ||
        ((frame->flags & MCP_FLAG_RAW) != 0 && (frame->flags & MCP_FLAG_ERROR) != 0)) {
        return MCP_E_FLAGS;
    }
    if (frame->body_bytes != body_bytes || body_bytes > MCP_MAX_BODY_BYTES ||
        ((frame->flags & MCP_FLAG_RAW) != 0 && body_bytes > MCP_MAX_BLOB_PART)) {
        return MCP_E_SIZE;
    }
    return MCP_OK;
}

mcp_wire_status_t mcp_frame_decode(const unsigned char *buf, size_t size, size_t body_bytes,
                                   mcp_direction_t direction, mcp_frame_t *ret)
{
    mcp_frame_t frame;

    if (size < MCP_HEADER_BYTES) {
        return MCP_E_INCOMPLETE;
    }
    if (size > MCP_HEADER_BYTES) {
        return MCP_E_TRAILING;
    }
    if (get32(buf) != MCP_MAGIC) {
        return MCP_E_MAGIC;
    }
    frame.version = get16(buf + 4);
    frame.kind = get16(buf + 6);
    frame.flags = get32(buf + 8);
    frame.request_id = get64(buf + 12);
    frame.budget_ms = get32(buf + 20);
    frame.body_bytes = get32(buf + 24);
    frame.generation = get64(buf + 28);
    *ret = frame;
    return judge(&frame, body_bytes, direction);
}
