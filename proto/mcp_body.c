/* Strict reading of JSON bodies: see mcp_body.h. */
#include "mcp_body.h"

#include <stdlib.h>
#include <string.h>

#include "mcp_fields.h"

typedef struct table_row {
    uint16_t kind;
    const mcp_field_t *fields;
    size_t count;
} table_row_t;

#define TABLE(kind, fields) {(uint16_t)(kind), fields, sizeof(fields) / sizeof((fields)[0])}

static const table_row_t tables[] = {
    TABLE(MCP_KIND_HELLO, fields_hello),
    TABLE(MCP_KIND_HELLO + 1, fields_hello_reply),
    TABLE(MCP_KIND_RESOLVE, fields_resolve),
    TABLE(MCP_KIND_RESOLVE + 1, fields_resolve_reply),
    TABLE(MCP_KIND_BLOB_GET, fields_blob_get),
    TABLE(MCP_KIND_CALL_BEGIN, fields_call_begin),
    TABLE(MCP_KIND_CALL_BEGIN + 1, fields_call_begin_reply),
    TABLE(MCP_KIND_CALL_END, fields_call_end),
    TABLE(MCP_KIND_CALL_END + 1, fields_call_end_reply),
    TABLE(MCP_KIND_CALL_NOTE, fields_call_note),
    TABLE(MCP_KIND_CALL_NOTE + 1, fields_call_note_reply),
    TABLE(MCP_KIND_OP_INVOKE, fields_op_invoke),
    TABLE(MCP_KIND_OP_INVOKE + 1, fields_op_invoke_reply),
    TABLE(MCP_KIND_CHILD_BEAT, fields_child_beat),
    TABLE(MCP_KIND_CHILD_BEAT + 1, fields_child_beat_reply),
    /* kind 1 is no message: it names the error object, which any reply with MCP_FLAG_ERROR carries */
    TABLE(1, fields_error)};

/* jansson's own depth limit (2048) is deeper than what our recursive consumers accept, so the nesting is
 * counted over the text before anything is built.  Strings are skipped with their escapes. */
static int depth_is_within(const char *text, size_t bytes, int max_depth)
{
    int depth = 0;
    int in_string = 0;
    size_t i;

    for (i = 0; i < bytes; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = 0;
            }
        } else if (c == '"') {
            in_string = 1;
        } else if (c == '{' || c == '[') {
            if (++depth > max_depth) {
                return 0;
            }
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return 1;
}

size_t mcp_json_values(const char *text, size_t bytes)
{
    size_t values = 1;
    int in_string = 0;
    size_t i;

    for (i = 0; i < bytes; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = 0;
            }
        } else if (c == '"') {
            in_string = 1;
        } else if (c == ',' || c == '[' || c == '{') {
            values++;
        }
    }
    return values;
}

mcp_wire_status_t mcp_json_parse(const char *text, size_t bytes, int max_depth, json_t **ret,
                                 size_t *err_pos)
{
    json_error_t error;
    json_t *value;

    if (!depth_is_within(text, bytes, max_depth)) {
        if (err_pos != NULL) {
            *err_pos = 0;
        }
        return MCP_E_SIZE;
    }
    value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (value == NULL) {
        if (err_pos != NULL) {
            *err_pos = error.position > 0 ? (size_t)error.position : 0;
        }
        return json_error_code(&error) == json_error_out_of_memory ? MCP_E_NOMEM : MCP_E_JSON;
    }
    *ret = value;
    return MCP_OK;
}

mcp_wire_status_t mcp_body_parse(const char *text, size_t bytes, json_t **ret)
{
    json_t *value = NULL;
    mcp_wire_status_t status;

    if (bytes > MCP_MAX_BODY_BYTES) {
        return MCP_E_SIZE;
    }
    status = mcp_json_parse(text, bytes, MCP_MAX_DEPTH, &value, NULL);
    if (status != MCP_OK) {
        return status;
    }
    if (!json_is_object(value)) {
        json_decref(value);
        return MCP_E_JSON;
    }
    *ret = value;
    return MCP_OK;
}

static int is_hex64(const json_t *value)
{
    const char *text = json_string_value(value);

    return text != NULL && json_string_length(value) == MCP_DIGEST_HEX &&
           strspn(text, "0123456789abcdef") == MCP_DIGEST_HEX;
}

static int are_strings(const json_t *value, size_t max)
{
    size_t i;
    const json_t *element;

    if (!json_is_array(value) || json_array_size(value) > max) {
        return 0;
    }
    json_array_foreach(value, i, element)
    {
        if (!json_is_string(element) || json_string_length(element) > MCP_MAX_TEXT) {
            return 0;
        }
    }
    return 1;
}

static int field_is_sound(const mcp_field_t *field, const json_t *value)
{
    switch (field->type) {
    case MCP_F_STRING:
        return json_is_string(value) &&
               json_string_length(value) <= (field->max != 0 ? field->max : MCP_MAX_TEXT);
    case MCP_F_INT:
        return json_is_integer(value) && json_integer_value(value) >= 0 &&
               (field->max == 0 || (uint64_t)json_integer_value(value) <= field->max);
    case MCP_F_BOOL:
        return json_is_boolean(value);
    case MCP_F_OBJECT:
        return json_is_object(value);
    case MCP_F_ARRAY:
        return json_is_array(value) &&
               json_array_size(value) <= (field->max != 0 ? field->max : 4096);
    case MCP_F_STRINGS:
        return are_strings(value, field->max != 0 ? field->max : 4096);
    case MCP_F_HEX64:
        return is_hex64(value);
    default:
        return 0;
    }
}

mcp_wire_status_t mcp_body_check(const json_t *body, const mcp_field_t *table, size_t count,
                                 const char **ret_field)
{
    size_t known = 0;
    size_t i;

    if (ret_field != NULL) {
        *ret_field = NULL;
    }
    if (!json_is_object(body)) {
        return MCP_E_JSON;
    }
    for (i = 0; i < count; i++) {
        const json_t *value = json_object_get(body, table[i].name);

        if (value == NULL ? table[i].is_required : !field_is_sound(&table[i], value)) {
            if (ret_field != NULL) {
                *ret_field = table[i].name;
            }
            return MCP_E_FIELD;
        }
        known += value != NULL;
    }
    return known == json_object_size(body) ? MCP_OK : MCP_E_FIELD;
}

const mcp_field_t *mcp_body_table(uint16_t kind, size_t *ret_count)
{
    size_t i;

    for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (tables[i].kind == kind) {
            *ret_count = tables[i].count;
            return tables[i].fields;
        }
    }
    *ret_count = 0;
    return NULL;
}

char *mcp_json_text(const json_t *value, size_t *ret_bytes)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));

    if (text != NULL && ret_bytes != NULL) {
        *ret_bytes = strlen(text);
    }
    return text;
}

const char *mcp_json_str(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

json_int_t mcp_json_int(const json_t *object, const char *name, json_int_t otherwise)
{
    const json_t *value = json_object_get(object, name);

    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

int mcp_json_bool(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}
