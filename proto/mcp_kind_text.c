/* Ids and codes to text and back: everything is generated from the lists of mcp_proto.h, so that a new
 * code can't lack its text. */
#include "mcp_kind_text.h"

#include <string.h>

typedef struct text_row {
    int value;
    const char *text;
} text_row_t;

typedef struct kind_row {
    uint16_t kind;
    const char *text;
    int is_built;
} kind_row_t;

#define KIND_ROW(name, number, text, is_built) {number, text, is_built},
static const kind_row_t kinds[] = {MCP_KIND_LIST(KIND_ROW)};

typedef struct code_row {
    mcp_code_t code;
    const char *text;
    int http;
    mcp_outcome_t outcome;
} code_row_t;

#define CODE_ROW(name, text, http, outcome) {MCP_CODE_##name, text, http, MCP_OUTCOME_##outcome},
static const code_row_t codes[] = {MCP_CODE_LIST(CODE_ROW)};

#define OUTCOME_ROW(name, text) {MCP_OUTCOME_##name, text},
static const text_row_t outcomes[] = {MCP_OUTCOME_LIST(OUTCOME_ROW)};

#define SURFACE_ROW(name, text) {MCP_SURFACE_##name, text},
static const text_row_t surfaces[] = {MCP_SURFACE_LIST(SURFACE_ROW)};

#define VIA_ROW(name, text) {MCP_VIA_##name, text},
static const text_row_t vias[] = {MCP_VIA_LIST(VIA_ROW)};

#define CLASS_ROW(name, text) {MCP_CLASS_##name, text},
static const text_row_t classes[] = {MCP_CLASS_LIST(CLASS_ROW)};

/* Ladder first: mcp_scope_list() writes them in this order. */
static const text_row_t scopes[] = {{MCP_SCOPE_READ, "mcp:read"},
                                    {MCP_SCOPE_WRITE, "mcp:write"},
                                    {MCP_SCOPE_DESTRUCTIVE, "mcp:destructive"},
                                    {MCP_SCOPE_TOOLS, "mcp:tools"}};

/* Methods whose classification is not the default. */
static const struct {
    const char *method;
    mcp_class_t klass;
} methods[] = {{"GET", MCP_CLASS_READ},    {"HEAD", MCP_CLASS_READ},    {"OPTIONS", MCP_CLASS_READ},
               {"PROPFIND", MCP_CLASS_READ}, {"REPORT", MCP_CLASS_READ}, {"POST", MCP_CLASS_WRITE},
               {"PUT", MCP_CLASS_WRITE},   {"PATCH", MCP_CLASS_WRITE}};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int value_of(const text_row_t *rows, size_t count, const char *text)
{
    size_t i;

    if (text == NULL) {
        return 0;
    }
    for (i = 0; i < count; i++) {
        if (strcmp(rows[i].text, text) == 0) {
            return rows[i].value;
        }
    }
    return 0;
}

static const char *text_of(const text_row_t *rows, size_t count, int value)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (rows[i].value == value) {
            return rows[i].text;
        }
    }
    return "unknown";
}

static const kind_row_t *kind_row(uint16_t kind)
{
    size_t i;

    for (i = 0; i < COUNT(kinds); i++) {
        if (kinds[i].kind == (kind & 0xfffe)) {
            return &kinds[i];
        }
    }
    return NULL;
}

const char *mcp_kind_text(uint16_t kind)
{
    const kind_row_t *row = kind_row(kind);

    return row != NULL ? row->text : "unknown";
}

int mcp_kind_is_built(uint16_t kind)
{
    const kind_row_t *row = (kind & 1) == 0 ? kind_row(kind) : NULL;

    return row != NULL ? row->is_built : -1;
}

static const code_row_t *code_row(mcp_code_t code)
{
    size_t i;

    for (i = 0; i < COUNT(codes); i++) {
        if (codes[i].code == code) {
            return &codes[i];
        }
    }
    return NULL;
}

const char *mcp_code_text(mcp_code_t code)
{
    const code_row_t *row = code_row(code);

    return row != NULL ? row->text : "internal";
}

int mcp_code_http(mcp_code_t code)
{
    const code_row_t *row = code_row(code);

    return row != NULL ? row->http : 500;
}

mcp_outcome_t mcp_code_outcome(mcp_code_t code)
{
    const code_row_t *row = code_row(code);

    return row != NULL ? row->outcome : MCP_OUTCOME_ERROR;
}

mcp_code_t mcp_code_from_text(const char *text)
{
    size_t i;

    for (i = 0; text != NULL && i < COUNT(codes); i++) {
        if (strcmp(codes[i].text, text) == 0) {
            return codes[i].code;
        }
    }
    return MCP_CODE_NONE;
}

mcp_outcome_t mcp_outcome_from_text(const char *text)
{
    return (mcp_outcome_t)value_of(outcomes, COUNT(outcomes), text);
}

mcp_surface_t mcp_surface_from_text(const char *text)
{
    return (mcp_surface_t)value_of(surfaces, COUNT(surfaces), text);
}

mcp_via_t mcp_via_from_text(const char *text)
{
    return (mcp_via_t)value_of(vias, COUNT(vias), text);
}

mcp_class_t mcp_class_from_text(const char *text)
{
    return (mcp_class_t)value_of(classes, COUNT(classes), text);
}

const char *mcp_outcome_text(mcp_outcome_t outcome)
{
    return text_of(outcomes, COUNT(outcomes), (int)outcome);
}

const char *mcp_surface_text(mcp_surface_t surface)
{
    return text_of(surfaces, COUNT(surfaces), (int)surface);
}

const char *mcp_via_text(mcp_via_t via)
{
    return text_of(vias, COUNT(vias), (int)via);
}

const char *mcp_class_text(mcp_class_t klass)
{
    return text_of(classes, COUNT(classes), (int)klass);
}

unsigned mcp_scope_from_text(const char *text)
{
    return (unsigned)value_of(scopes, COUNT(scopes), text);
}

const char *mcp_scope_text(unsigned bit)
{
    size_t i;

    for (i = 0; i < COUNT(scopes); i++) {
        if ((unsigned)scopes[i].value == bit) {
            return scopes[i].text;
        }
    }
    return NULL;
}

unsigned mcp_scope_close(unsigned held)
{
    if ((held & MCP_SCOPE_DESTRUCTIVE) != 0) {
        held |= MCP_SCOPE_WRITE;
    }
    if ((held & MCP_SCOPE_WRITE) != 0) {
        held |= MCP_SCOPE_READ;
    }
    return held;
}

unsigned mcp_scope_of_class(mcp_class_t klass)
{
    switch (klass) {
    case MCP_CLASS_READ:
        return MCP_SCOPE_READ;
    case MCP_CLASS_WRITE:
        return MCP_SCOPE_WRITE;
    case MCP_CLASS_DESTRUCTIVE:
        return MCP_SCOPE_DESTRUCTIVE;
    case MCP_CLASS_FORBIDDEN:
    case MCP_CLASS_NONE:
    default:
        return 0x80000000u;
    }
}

void mcp_scope_list(unsigned set, char *buf, size_t size)
{
    size_t used = 0;
    size_t i;

    if (size == 0) {
        return;
    }
    for (i = 0; i < COUNT(scopes); i++) {
        size_t length = strlen(scopes[i].text);

        if ((set & (unsigned)scopes[i].value) == 0 || size - used < length + 2) {
            continue;
        }
        if (used > 0) {
            buf[used++] = ' ';
        }
        memcpy(buf + used, scopes[i].text, length);
        used += length;
    }
    buf[used] = '\0';
}

mcp_class_t mcp_class_of_method(const char *method)
{
    size_t i;

    for (i = 0; i < COUNT(methods); i++) {
        if (strcmp(methods[i].method, method) == 0) {
            return methods[i].klass;
        }
    }
    return MCP_CLASS_DESTRUCTIVE;
}

const char *mcp_status_text(mcp_wire_status_t status)
{
    switch (status) {
    case MCP_OK:
        return "ok";
    case MCP_E_INCOMPLETE:
        return "incomplete";
    case MCP_E_TRAILING:
        return "trailing data";
    case MCP_E_MAGIC:
        return "not a message of this protocol";
    case MCP_E_VERSION:
        return "unsupported protocol version";
    case MCP_E_KIND:
        return "unknown message kind";
    case MCP_E_FLAGS:
        return "unknown flags";
    case MCP_E_SIZE:
        return "a limit was exceeded";
    case MCP_E_JSON:
        return "malformed JSON";
    case MCP_E_FIELD:
        return "bad field";
    case MCP_E_NAME:
        return "bad name";
    case MCP_E_SPACE:
        return "buffer too small";
    case MCP_E_NOMEM:
        return "out of memory";
    case MCP_E_CRYPTO:
        return "seal does not open";
    default:
        return "unknown status";
    }
}
