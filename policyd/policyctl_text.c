/* Texts for a terminal: see policyctl.h.  Names come from members and documents that nobody vouches for, so
 * whatever a terminal would obey or hide is shown as an escape. */
#include "policyctl.h"

#include <stdlib.h>
#include <string.h>

void ctl_text_add(ctl_text_t *to, const char *bytes, size_t count)
{
    if (to->room - to->count <= count) {
        size_t room = (to->count + count + 1) * 2;
        char *more = realloc(to->bytes, room);

        if (more == NULL) {
            return;
        }
        to->bytes = more;
        to->room = room;
    }
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
    to->bytes[to->count] = '\0';
}

/* Length of the UTF-8 character at `at` and its code point; jansson admits no broken ones. */
static size_t character(const char *at, unsigned *ret_point)
{
    unsigned char lead = (unsigned char)*at;
    size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    unsigned point = bytes == 1 ? lead : lead & (0xffu >> (bytes + 1));
    size_t i;

    for (i = 1; i < bytes; i++) {
        if (((unsigned char)at[i] & 0xc0) != 0x80) {
            *ret_point = 0xfffd;
            return 1;
        }
        point = (point << 6) | ((unsigned char)at[i] & 0x3fu);
    }
    *ret_point = point;
    return bytes;
}

/* 1 for what moves the cursor, changes the direction or cannot be seen. */
static int is_hidden(unsigned point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0xad || point == 0x61c ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff || point == 0xfffd ||
           (point >= 0xe0000 && point <= 0xe0fff);
}

/* Ranges of characters that a terminal shows two columns wide, or none: they go onto the one before. */
static const struct {
    unsigned first, last;
    unsigned char columns;
} widths[] = {{0x300, 0x36f, 0},     {0x591, 0x5bd, 0},     {0x64b, 0x65f, 0},   {0x1100, 0x115f, 2},
              {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},   {0x20d0, 0x20ff, 0}, {0x2e80, 0x303e, 2},
              {0x3041, 0x4dbf, 2},   {0x4e00, 0xa4cf, 2},   {0xa960, 0xa97c, 2}, {0xac00, 0xd7a3, 2},
              {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0}, {0xfe30, 0xfe6f, 2},
              {0xff01, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2},
              {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2}};

static size_t columns_of(unsigned point)
{
    size_t i;

    for (i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        if (point >= widths[i].first && point <= widths[i].last) {
            return widths[i].columns;
        }
    }
    return 1;
}

void ctl_text_visible(ctl_text_t *to, const char *from, size_t limit)
{
    size_t shown = 0;

    while (*from != '\0') {
        unsigned point = 0;
        size_t bytes = character(from, &point);

        if (limit > 0 && shown >= limit) {
            ctl_text_add(to, "...", 3);
            return;
        }
        if (is_hidden(point)) {
            char escape[16];
            int used = snprintf(escape, sizeof escape, point < 0x10000 ? "\\u%04x" : "\\u{%x}", point);

            ctl_text_add(to, escape, (size_t)used);
            shown += (size_t)used;
        } else {
            ctl_text_add(to, from, bytes);
            shown += columns_of(point) == 0 ? 1 : columns_of(point); /* marks without end are no text */
        }
        from += bytes;
    }
}

size_t ctl_text_width(const char *text)
{
    size_t width = 0;

    while (*text != '\0') {
        unsigned point = 0;

        text += character(text, &point);
        width += columns_of(point);
    }
    return width;
}

const char *ctl_text_of(const ctl_text_t *text)
{
    return text->bytes == NULL ? "" : text->bytes;
}

void ctl_print_text(FILE *to, const char *from)
{
    ctl_text_t text = {NULL, 0, 0};

    ctl_text_visible(&text, from, 0);
    (void)fputs(ctl_text_of(&text), to);
    free(text.bytes);
}
