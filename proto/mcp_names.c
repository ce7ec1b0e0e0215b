/* Name rules: see mcp_names.h. */
#include "mcp_names.h"

#include <string.h>

#include "mcp_hash.h"

#define SUFFIX_DIGITS 12 /* of base32: 60 bits of the hash */
#define SUFFIX_BYTES  (1 + SUFFIX_DIGITS)

static const char base32[] = "abcdefghijklmnopqrstuvwxyz234567";

static int is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static int is_tool_char(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

static int is_arg_char(char c)
{
    return is_tool_char(c) || c == '.';
}

int mcp_name_is_label(const char *text)
{
    size_t length = strlen(text);
    size_t i;

    if (length == 0 || length > MCP_MAX_LABEL || text[0] == '-' || text[length - 1] == '-') {
        return 0;
    }
    for (i = 0; i < length; i++) {
        if (!is_lower_alnum(text[i]) && text[i] != '-') {
            return 0;
        }
    }
    return 1;
}

int mcp_name_is_tool(const char *text)
{
    size_t length = strlen(text);
    size_t i;

    if (length == 0 || length > MCP_MAX_TOOL_NAME) {
        return 0;
    }
    for (i = 0; i < length; i++) {
        if (!is_tool_char(text[i])) {
            return 0;
        }
    }
    return 1;
}

/* True when a name ends as a hashed one does: an honest name that looks like that is hashed too, so that
 * nobody can pick an operation id which collides with another's hashed name. */
static int ends_like_suffix(const char *name, size_t length)
{
    size_t i;

    if (length < SUFFIX_BYTES || name[length - SUFFIX_BYTES] != '_') {
        return 0;
    }
    for (i = length - SUFFIX_DIGITS; i < length; i++) {
        if (strchr(base32, name[i]) == NULL) {
            return 0;
        }
    }
    return 1;
}

static void write_suffix(const char *const *parts, size_t count, char *to)
{
    unsigned char material[3 * 1024];
    unsigned char hash[MCP_HASH_BYTES];
    size_t used = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        size_t length = strlen(parts[i]) + 1;

        if (length > sizeof(material) / 3) {
            /* beyond the limits of any caller: hash the part first, which keeps it distinct */
            mcp_sha256(parts[i], length - 1, material + used);
            used += MCP_HASH_BYTES;
        } else {
            memcpy(material + used, parts[i], length);
            used += length;
        }
    }
    mcp_sha256(material, used, hash);
    to[0] = '_';
    for (i = 0; i < SUFFIX_DIGITS; i++) {
        size_t bit = i * 5;
        unsigned pair = ((unsigned)hash[bit / 8] << 8) | hash[bit / 8 + 1];

        to[1 + i] = base32[(pair >> (11 - bit % 8)) & 31];
    }
    to[SUFFIX_BYTES] = '\0';
}

/* Appends `text` to buf with characters outside the form replaced; returns 1 if anything was replaced or cut. */
static int append(char *buf, size_t *used, size_t limit, const char *text, int (*is_char)(char))
{
    int is_changed = 0;

    for (; *text != '\0'; text++) {
        if (*used == limit) {
            return 1;
        }
        if (!is_char(*text)) {
            is_changed = 1;
        }
        buf[(*used)++] = is_char(*text) ? *text : '_';
    }
    return is_changed;
}

/* Ends buf at `used`, with the hash where the name is not the plain one. */
static void finish(char *buf, size_t used, size_t limit, int is_changed, const char *const *parts,
                   size_t count)
{
    buf[used] = '\0';
    if (is_changed || ends_like_suffix(buf, used)) {
        if (used > limit - SUFFIX_BYTES) {
            used = limit - SUFFIX_BYTES;
        }
        write_suffix(parts, count, buf + used);
    }
}

mcp_wire_status_t mcp_name_tool(const char *label, const char *connector, const char *operation,
                                char *buf, size_t size)
{
    const char *parts[3] = {label, connector, operation};
    size_t used = 0;
    int is_changed = 0;

    if (size < MCP_MAX_TOOL_NAME + 1) {
        return MCP_E_SPACE;
    }
    if (!mcp_name_is_label(label) || operation[0] == '\0') {
        return MCP_E_NAME;
    }
    is_changed |= append(buf, &used, MCP_MAX_TOOL_NAME, label, is_tool_char);
    is_changed |= append(buf, &used, MCP_MAX_TOOL_NAME, "__", is_tool_char);
    is_changed |= append(buf, &used, MCP_MAX_TOOL_NAME, operation, is_tool_char);
    finish(buf, used, MCP_MAX_TOOL_NAME, is_changed, parts, 3);
    return MCP_OK;
}

mcp_wire_status_t mcp_name_arg(const char *connector, const char *operation, const char *name,
                               char *buf, size_t size)
{
    const char *parts[3] = {connector, operation, name};
    size_t used = 0;
    int is_changed;

    if (size < MCP_MAX_ARG_NAME + 1) {
        return MCP_E_SPACE;
    }
    if (name[0] == '\0') {
        return MCP_E_NAME;
    }
    is_changed = append(buf, &used, MCP_MAX_ARG_NAME, name, is_arg_char);
    finish(buf, used, MCP_MAX_ARG_NAME, is_changed, parts, 3);
    return MCP_OK;
}

/* --- names of fields ------------------------------------------------------------------ */

typedef struct span {
    const char *text;
    size_t bytes;
} span_t;

static int is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

static int is_bracket(char c)
{
    return c == '[' || c == ']';
}

static char folded(char c)
{
    return is_blank(c) || is_bracket(c) || c == '.' ? '_'
           : c >= 'A' && c <= 'Z'                   ? (char)(c - 'A' + 'a')
                                                    : c;
}

static span_t field_of(const char *name, int is_whole)
{
    span_t span = {name, 0};

    while (*span.text != '\0' && (is_blank(*span.text) || (!is_whole && is_bracket(*span.text)))) {
        span.text++;
    }
    span.bytes = is_whole ? strlen(span.text) : strcspn(span.text, "[]");
    while (span.bytes > 0 && is_blank(span.text[span.bytes - 1])) {
        span.bytes--;
    }
    return span;
}

size_t mcp_name_field(const char *name, int is_whole, char *buf)
{
    span_t span = field_of(name, is_whole);
    size_t i;

    for (i = 0; i < span.bytes; i++) {
        buf[i] = folded(span.text[i]);
    }
    buf[i] = '\0';
    return i;
}

int mcp_name_is_no_field(const char *name)
{
    return field_of(name, 0).bytes == 0;
}

static int is_same(span_t one, span_t other)
{
    size_t i;

    if (one.bytes != other.bytes || one.bytes == 0) {
        return 0;
    }
    for (i = 0; i < one.bytes && folded(one.text[i]) == folded(other.text[i]); i++) {
    }
    return i == one.bytes;
}

int mcp_name_is_same_field(const char *one, const char *other)
{
    return is_same(field_of(one, 0), field_of(other, 0)) ||
           is_same(field_of(one, 1), field_of(other, 1));
}
