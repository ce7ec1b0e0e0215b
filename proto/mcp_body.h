/* Strict reading of a JSON body: every field of a message kind stands in a table, and a body that
 * lacks one, has another, or has one of another type or size, is refused whole.
 * Thread-safe; a json_t stays with the thread that made it. */
#ifndef MCP_BODY_H
#define MCP_BODY_H

#include <jansson.h>

#include "mcp_proto.h"

typedef enum mcp_field_type {
    MCP_F_STRING,  /* max = bytes; NUL inside is refused */
    MCP_F_INT,     /* 0 .. max */
    MCP_F_BOOL,
    MCP_F_OBJECT,  /* any object; its members are read by its own table or stay opaque */
    MCP_F_ARRAY,   /* max = elements */
    MCP_F_STRINGS, /* array of strings; max = elements, each at most MCP_MAX_TEXT bytes */
    MCP_F_HEX64    /* exactly 64 lower-case hex digits */
} mcp_field_type_t;

typedef struct mcp_field {
    const char *name;
    mcp_field_type_t type;
    int is_required;
    size_t max; /* 0: the type's own limit */
} mcp_field_t;

/* Parses text strictly: duplicate keys, trailing bytes, embedded NUL, nesting beyond MCP_MAX_DEPTH
 * and a root that is not an object are refused. New reference in *ret, which the caller owns. */
mcp_wire_status_t mcp_body_parse(const char *text, size_t bytes, json_t **ret);

/* The same for any JSON value with its own depth limit; duplicate keys refused.  For bodies of
 * clients, upstreams and documents.  err_pos (may be NULL) gets the byte where parsing failed. */
mcp_wire_status_t mcp_json_parse(const char *text, size_t bytes, int max_depth, json_t **ret,
                                 size_t *err_pos);

/* How many values a JSON text holds at most: its commas, brackets and braces outside strings. A tree weighs some 75 bytes a value, so hostile texts are
 * counted before they are parsed. */
size_t mcp_json_values(const char *text, size_t bytes);

/* Checks body against table (`count` rows). On failure *ret_field (may be NULL) names the field
 * (a pointer into the table, or NULL for an unknown one). */
mcp_wire_status_t mcp_body_check(const json_t *body, const mcp_field_t *table, size_t count,
                                 const char **ret_field);

/* The table of a request or reply kind; NULL with *ret_count 0 for a kind without one. */
const mcp_field_t *mcp_body_table(uint16_t kind, size_t *ret_count);

/* Serialises compactly, with key order kept and 17 significant digits. malloc'd; NULL on failure. */
char *mcp_json_text(const json_t *value, size_t *ret_bytes);

/* String member or NULL; integer member or `otherwise`; boolean member or 0. Never fail. */
const char *mcp_json_str(const json_t *object, const char *name);
json_int_t mcp_json_int(const json_t *object, const char *name, json_int_t otherwise);
int mcp_json_bool(const json_t *object, const char *name);

#endif
