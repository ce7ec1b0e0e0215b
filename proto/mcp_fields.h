/* Every JSON field of the link's messages, once, grouped by kind (PROTOCOL.md has the same tables; a guard compares).
 * Included by mcp_body.c alone; a row is {name, type, is_required, max}. */
#ifndef MCP_FIELDS_H
#define MCP_FIELDS_H

#include "mcp_body.h"

#define FIELDS_WHO                                                                                 \
    {"token_hash", MCP_F_HEX64, 1, 0}, {"surface", MCP_F_STRING, 1, 8},                            \
        {"resource", MCP_F_STRING, 1, 512}, {"client", MCP_F_OBJECT, 0, 0}

#define FIELDS_ATTEMPT                                                                             \
    {"child", MCP_F_STRING, 1, MCP_MAX_ID}, {"tool", MCP_F_STRING, 1, MCP_MAX_REQUESTED},          \
        {"via", MCP_F_STRING, 1, 16}, {"arg_names", MCP_F_STRINGS, 1, MCP_MAX_ARG_NAMES},          \
        {"arg_count", MCP_F_INT, 1, 0}, {"trace_id", MCP_F_STRING, 0, 32},                         \
        {"request_bytes", MCP_F_INT, 0, 0}

static const mcp_field_t fields_error[] = {{"code", MCP_F_STRING, 1, 64},
                                           {"message", MCP_F_STRING, 1, MCP_MAX_TEXT},
                                           {"hint", MCP_F_STRING, 0, MCP_MAX_TEXT},
                                           {"audit", MCP_F_STRING, 0, MCP_MAX_ID},
                                           {"permission", MCP_F_STRING, 0, 64},
                                           {"scopes", MCP_F_INT, 0, 255}};

static const mcp_field_t fields_hello[] = {{"version_min", MCP_F_INT, 1, 65535},
                                           {"version_max", MCP_F_INT, 1, 65535},
                                           {"software", MCP_F_STRING, 1, 64},
                                           {"child", MCP_F_STRING, 1, MCP_MAX_ID},
                                           {"resources", MCP_F_STRINGS, 0, 64},
                                           {"max_calls", MCP_F_INT, 0, 1000000},
                                           {"server", MCP_F_STRING, 0, MCP_MAX_ID},
                                           {"server_calls", MCP_F_INT, 0, 1000000},
                                           {"connection_calls", MCP_F_INT, 0, 1000000}};

static const mcp_field_t fields_hello_reply[] = {{"version", MCP_F_INT, 1, 65535},
                                                 {"software", MCP_F_STRING, 1, 64},
                                                 {"generation", MCP_F_STRING, 1, 24},
                                                 {"beat_ms", MCP_F_INT, 1, 60000},
                                                 {"keys", MCP_F_ARRAY, 1, 4},
                                                 {"control_prefix", MCP_F_STRING, 1, MCP_MAX_LABEL},
                                                 {"routes", MCP_F_HEX64, 0, 0},
                                                 {"openapi", MCP_F_HEX64, 0, 0},
                                                 {"lexicon", MCP_F_HEX64, 0, 0}};

static const mcp_field_t fields_resolve[] = {FIELDS_WHO, {"have", MCP_F_STRINGS, 0, MCP_MAX_HAVE}};

static const mcp_field_t fields_resolve_reply[] = {
    {"revision", MCP_F_INT, 1, 0},    {"grant", MCP_F_STRING, 1, MCP_MAX_ID},
    {"member", MCP_F_STRING, 1, MCP_MAX_ID}, {"may_execute", MCP_F_BOOL, 1, 0},
    {"scopes", MCP_F_INT, 1, 255},    {"view", MCP_F_HEX64, 1, 0},
    {"expires_at", MCP_F_INT, 0, 0},  {"collapse", MCP_F_OBJECT, 0, 0},
    {"search", MCP_F_OBJECT, 0, 0}};

static const mcp_field_t fields_blob_get[] = {{"digest", MCP_F_HEX64, 1, 0},
                                              {"offset", MCP_F_INT, 1, MCP_MAX_BLOB_BYTES}};

static const mcp_field_t fields_call_begin[] = {
    FIELDS_WHO, FIELDS_ATTEMPT, {"deadline_ms", MCP_F_INT, 1, 3600000},
    {"connection", MCP_F_STRING, 0, MCP_MAX_LABEL}};

static const mcp_field_t fields_call_begin_reply[] = {{"audit", MCP_F_STRING, 0, MCP_MAX_ID},
                                                      {"revision", MCP_F_INT, 1, 0},
                                                      {"choose", MCP_F_STRING, 0, 64},
                                                      {"denied", MCP_F_OBJECT, 0, 0},
                                                      {"plan", MCP_F_OBJECT, 0, 0}};

static const mcp_field_t fields_call_end[] = {{"audit", MCP_F_STRING, 1, MCP_MAX_ID},
                                              {"child", MCP_F_STRING, 1, MCP_MAX_ID},
                                              {"outcome", MCP_F_STRING, 1, 16},
                                              {"code", MCP_F_STRING, 0, 64},
                                              {"upstream_status", MCP_F_INT, 0, 999},
                                              {"duration_us", MCP_F_INT, 1, 0},
                                              {"request_bytes", MCP_F_INT, 0, 0},
                                              {"response_bytes", MCP_F_INT, 0, 0},
                                              {"redactions", MCP_F_INT, 0, 0}};

static const mcp_field_t fields_call_end_reply[] = {{"recorded", MCP_F_BOOL, 1, 0}};

static const mcp_field_t fields_call_note[] = {FIELDS_WHO,
                                               FIELDS_ATTEMPT,
                                               {"outcome", MCP_F_STRING, 1, 16},
                                               {"code", MCP_F_STRING, 0, 64},
                                               {"duration_us", MCP_F_INT, 1, 0},
                                               {"response_bytes", MCP_F_INT, 0, 0},
                                               {"id", MCP_F_STRING, 0, MCP_MAX_ID}};

static const mcp_field_t fields_call_note_reply[] = {{"audit", MCP_F_STRING, 1, MCP_MAX_ID}};

static const mcp_field_t fields_op_invoke[] = {FIELDS_WHO,
                                               {"op", MCP_F_STRING, 1, 64},
                                               {"args", MCP_F_OBJECT, 1, 0},
                                               {"trace_id", MCP_F_STRING, 0, 32},
                                               {"via", MCP_F_STRING, 0, 16}};

static const mcp_field_t fields_op_invoke_reply[] = {{"audit", MCP_F_STRING, 1, MCP_MAX_ID},
                                                     {"result", MCP_F_OBJECT, 1, 0}};

static const mcp_field_t fields_child_beat[] = {{"child", MCP_F_STRING, 1, MCP_MAX_ID},
                                                {"running", MCP_F_STRINGS, 1, 4096}};

static const mcp_field_t fields_child_beat_reply[] = {{"generation", MCP_F_STRING, 1, 24}};

#endif
