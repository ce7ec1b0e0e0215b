/* The binary header of every message (PROTOCOL.md, Envelope).
 * Big-endian, fixed size, no allocation; decoders return views into the caller's bytes.
 * Pure, thread-safe. */
#ifndef MCP_FRAME_H
#define MCP_FRAME_H

#include "mcp_proto.h"

typedef struct mcp_frame {
    uint16_t version;
    uint16_t kind;
    uint32_t flags;
    uint64_t request_id;
    uint32_t budget_ms;  /* what is left of the asker's time; 0 in replies */
    uint32_t body_bytes; /* length of the second frame */
    uint64_t generation; /* of the policyd that is meant (request; 0 = any) or answers (reply) */
} mcp_frame_t;

/* Which way a message travels; decides whether even or odd kinds are right. */
typedef enum mcp_direction { MCP_TO_POLICYD, MCP_FROM_POLICYD } mcp_direction_t;

/* Writes the header into buf. MCP_E_SPACE if size < MCP_HEADER_BYTES. */
mcp_wire_status_t mcp_frame_encode(const mcp_frame_t *frame, unsigned char *buf, size_t size);

/* Reads a header and checks magic, version, direction, flags and body size.
 * On MCP_E_VERSION, MCP_E_KIND, MCP_E_FLAGS and MCP_E_SIZE `ret` is filled nevertheless, so that
 * an error reply can echo the request id; on every other failure it is untouched.
 * body_bytes is the length of the second frame as received. A kind off the list is MCP_E_KIND. */
mcp_wire_status_t mcp_frame_decode(const unsigned char *buf, size_t size, size_t body_bytes,
                                   mcp_direction_t direction, mcp_frame_t *ret);

#endif
