/* Messages of the schema room: bounded texts that name paths, rules, and names and values
 * of the schema.  Values of an instance never come here. */
#include "mcp_schema_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES  80u /* of one name or value in a message */
#define VALUE_MAX_BYTES 80u
#define FRAMES_MAX      64u /* of a path, from the root down, before it is cut anyway */

/* --- texts -------------------------------------------------------------------- */

/* The largest size up to bytes at which no UTF-8 character is cut. */
static size_t whole_bytes(const char *text, size_t bytes)
{
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80) {
        bytes--;
    }
    return bytes;
}

void mcp_schema_text_start(mcp_schema_text_t *text, char *buffer, size_t room)
{
    text->buffer = buffer;
    text->room = room;
    text->used = 0;
    text->is_cut = false;
    buffer[0] = '\0';
}

static void add_bytes(mcp_schema_text_t *text, const char *add, size_t bytes)
{
    static const char dots[] = "...";
    size_t keep;

    if (text->is_cut) {
        return;
    }
    if (bytes < text->room - text->used) {
        memcpy(text->buffer + text->used, add, bytes);
        text->used += bytes;
        text->buffer[text->used] = '\0';
        return;
    }
    /* Fill the buffer, then put the dots over its end. */
    text->is_cut = true;
    keep = text->room - 1 - text->used;
    memcpy(text->buffer + text->used, add, keep);
    keep = whole_bytes(text->buffer, text->room - sizeof(dots));
    memcpy(text->buffer + keep, dots, sizeof(dots));
    text->used = keep + sizeof(dots) - 1;
}

void mcp_schema_text_add(mcp_schema_text_t *text, const char *add)
{
    add_bytes(text, add, strlen(add));
}

void mcp_schema_text_count(mcp_schema_text_t *text, size_t count)
{
    char number[32];

    (void)snprintf(number, sizeof(number), "%zu", count); /* fits */
    mcp_schema_text_add(text, number);
}

void mcp_schema_text_quote(mcp_schema_text_t *text, const char *name)
{
    size_t bytes = strlen(name);
    bool is_cut = bytes > NAME_MAX_BYTES;
    char escape[8];

    if (is_cut) {
        bytes = whole_bytes(name, NAME_MAX_BYTES);
    }
    add_bytes(text, "\"", 1);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)name[i];

        if (c < 0x20 || c == 0x7f) {
            (void)snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)c); /* fits */
            mcp_schema_text_add(text, escape);
        } else {
            if (c == '"' || c == '\\') {
                add_bytes(text, "\\", 1);
            }
            /* A character as a whole, so that a cut falls between two. */
            size_t width = 1;

            while (i + width < bytes && ((unsigned char)name[i + width] & 0xc0) == 0x80) {
                width++;
            }
            add_bytes(text, name + i, width);
            i += width - 1;
        }
    }
    mcp_schema_text_add(text, is_cut ? "...\"" : "\"");
}

/* A number with as many digits as it needs: jansson prints 0.1 with 17. */
static size_t print_real(double value, char *buffer, size_t room)
{
    int n = 0;

    for (int digits = 15; digits <= 17; digits++) {
        double back;

        n = snprintf(buffer, room, "%.*g", digits, value);
        back = strtod(buffer, NULL);
        if (!(back < value) && !(back > value)) {
            break;
        }
    }
    return n < 0 ? 0 : (size_t)n;
}

/* The beginning of a printed value. */
typedef struct print {
    char buffer[VALUE_MAX_BYTES + 1];
    size_t used;
    bool is_cut;
} print_t;

/* Ends the printing once there is enough. */
static int print_more(const char *bytes, size_t n, void *data)
{
    print_t *print = data;
    size_t room = VALUE_MAX_BYTES - print->used;

    if (n <= room) {
        memcpy(print->buffer + print->used, bytes, n);
        print->used += n;
        return 0;
    }
    room = whole_bytes(bytes, room);
    memcpy(print->buffer + print->used, bytes, room);
    print->used += room;
    print->is_cut = true;
    return -1;
}

void mcp_schema_text_json(mcp_schema_text_t *text, const json_t *value)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);
    print_t print;

    memset(&print, 0, sizeof(print));
    if (json_is_real(value)) {
        print.used = print_real(json_real_value(value), print.buffer, sizeof(print.buffer));
    } else if (json_dump_callback(value, print_more, &print, flags) != 0) {
        print.is_cut = true;
    }
    add_bytes(text, print.buffer, print.used);
    if (print.is_cut) {
        mcp_schema_text_add(text, "...");
    }
}

static void add_frame(mcp_schema_text_t *text, const mcp_schema_path_t *frame)
{
    const char *at = frame->key;
    size_t plain;

    mcp_schema_text_add(text, "/");
    if (at == NULL) {
        mcp_schema_text_count(text, frame->index);
        return;
    }
    for (;;) {
        plain = strcspn(at, "~/");
        add_bytes(text, at, plain);
        at += plain;
        if (*at == '\0') {
            return;
        }
        mcp_schema_text_add(text, *at == '~' ? "~0" : "~1");
        at++;
    }
}

void mcp_schema_text_path(mcp_schema_text_t *text, const mcp_schema_path_t *path)
{
    const mcp_schema_path_t *frames[FRAMES_MAX];
    size_t depth = 0;
    size_t n;

    for (const mcp_schema_path_t *at = path; at != NULL; at = at->parent) {
        depth++;
    }
    n = depth;
    for (const mcp_schema_path_t *at = path; at != NULL; at = at->parent) {
        n--;
        if (n < FRAMES_MAX) {
            frames[n] = at;
        }
    }
    for (n = 0; n < depth && n < FRAMES_MAX; n++) {
        add_frame(text, frames[n]);
    }
    if (depth > FRAMES_MAX) {
        mcp_schema_text_add(text, "/...");
    }
}

/* --- errors -------------------------------------------------------------------- */

mcp_schema_text_t mcp_schema_error_start(mcp_schema_error_t *err, const mcp_schema_path_t *path,
                                         const char *rule)
{
    mcp_schema_text_t text;

    mcp_schema_text_start(&text, err->path, sizeof(err->path));
    mcp_schema_text_path(&text, path);
    mcp_schema_text_start(&text, err->rule, sizeof(err->rule));
    mcp_schema_text_add(&text, rule);
    mcp_schema_text_start(&text, err->message, sizeof(err->message));
    return text;
}

mcp_schema_verdict_t mcp_schema_fail(mcp_schema_run_t *run, const mcp_schema_path_t *path,
                                     const char *rule, const char *message)
{
    if (mcp_schema_is_loud(run)) {
        mcp_schema_text_t text = mcp_schema_error_start(run->err, path, rule);

        mcp_schema_text_add(&text, message);
    }
    return MCP_SCHEMA_INVALID;
}
