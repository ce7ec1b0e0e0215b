/* How lenient readers see text: escapes of escapes, overlong UTF-8, case, look-alikes. Nothing here
 * decides; the guard compares what comes out. */
#include "mcp_urlguard_private.h"

#include <string.h>

#include <apr_strings.h>

#include "mcp_encode.h"

/* %uXXXX, which old IIS decodes, becomes UTF-8. In place; returns the new length. */
static size_t decode_wide(char *text, size_t bytes)
{
    size_t used = 0;

    for (size_t i = 0; i < bytes; ++i) {
        int is_wide = i + 5 < bytes && text[i] == '%' && (text[i + 1] == 'u' || text[i + 1] == 'U');
        unsigned code = 0;

        for (size_t k = i + 2; is_wide && k < i + 6; ++k) {
            int digit = mcp_encode_hex(text[k]);

            is_wide = digit >= 0;
            code = code * 16 + (unsigned)(is_wide ? digit : 0);
        }
        if (!is_wide) {
            text[used++] = text[i];
            continue;
        }
        if (code < 0x80) {
            text[used++] = (char)code;
        } else if (code < 0x800) {
            text[used++] = (char)(unsigned char)(0xc0u | code >> 6);
            text[used++] = (char)(unsigned char)(0x80u | (code & 0x3fu));
        } else {
            text[used++] = (char)(unsigned char)(0xe0u | code >> 12);
            text[used++] = (char)(unsigned char)(0x80u | (code >> 6 & 0x3fu));
            text[used++] = (char)(unsigned char)(0x80u | (code & 0x3fu));
        }
        i += 5;
    }
    return used;
}

static unsigned byte_at(const char *text, size_t bytes, size_t at)
{
    return at < bytes ? (unsigned char)text[at] : 0;
}

/* Overlong UTF-8 of an ASCII character becomes that character. In place; returns the new length. */
static size_t decode_overlong(char *text, size_t bytes)
{
    size_t used = 0;

    for (size_t i = 0; i < bytes; ++i) {
        unsigned a = byte_at(text, bytes, i);
        unsigned b = byte_at(text, bytes, i + 1);
        unsigned c = byte_at(text, bytes, i + 2);
        unsigned d = byte_at(text, bytes, i + 3);

        if ((a == 0xc0 || a == 0xc1) && (b & 0xc0u) == 0x80) {
            text[used++] = (char)((a & 1u) << 6 | (b & 0x3fu));
            i += 1;
        } else if (a == 0xe0 && (b == 0x80 || b == 0x81) && (c & 0xc0u) == 0x80) {
            text[used++] = (char)((b & 1u) << 6 | (c & 0x3fu));
            i += 2;
        } else if (a == 0xf0 && b == 0x80 && (c == 0x80 || c == 0x81) && (d & 0xc0u) == 0x80) {
            text[used++] = (char)((c & 1u) << 6 | (d & 0x3fu));
            i += 3;
        } else {
            text[used++] = text[i];
        }
    }
    return used;
}

mcp_guard_text_t mcp_guard_lenient_decode(const mcp_guard_text_t *text, apr_pool_t *pool)
{
    char *out = apr_palloc(pool, text->bytes + 1);
    size_t bytes = mcp_encode_decode(text->data, text->bytes, out);

    bytes = decode_wide(out, bytes);
    bytes = decode_overlong(out, bytes);
    return (mcp_guard_text_t){out, bytes};
}

/* Length of the UTF-8 sequence at text, with its code point; 1 and the byte itself if it is none.
 */
static size_t sequence(const char *text, size_t bytes, uint32_t *ret)
{
    static const struct {
        unsigned char first; /* lead bytes from here on */
        unsigned char mask;
        size_t length;
    } leads[] = {
        {0xf5, 0xff, 1}, {0xf0, 0x07, 4}, {0xe0, 0x0f, 3}, {0xc2, 0x1f, 2}, {0x00, 0xff, 1}};
    unsigned char lead = (unsigned char)text[0];
    size_t row = 0;
    uint32_t code;

    while (lead < leads[row].first) {
        ++row; /* the last row takes all */
    }
    code = lead & leads[row].mask;
    *ret = lead;
    if (leads[row].length > bytes) {
        return 1;
    }
    for (size_t i = 1; i < leads[row].length; ++i) {
        unsigned char next = (unsigned char)text[i];

        if ((next & 0xc0u) != 0x80u) {
            return 1;
        }
        code = code << 6 | (next & 0x3fu);
    }
    *ret = code;
    return leads[row].length;
}

/* The ASCII text that lenient upstreams take the code point for, or NULL. */
static const char *look_alike(uint32_t code)
{
    static const struct {
        uint32_t code;
        const char *text;
    } alikes[] = {{0x0130, "i"}, {0x0131, "i"},  {0x017f, "s"}, {0x212a, "k"}, {0x037e, ";"},
                  {0x2024, "."}, {0x2025, ".."}, {0x2044, "/"}, {0x2215, "/"}};

    for (size_t i = 0; i < sizeof(alikes) / sizeof(alikes[0]); ++i) {
        if (alikes[i].code == code) {
            return alikes[i].text;
        }
    }
    return NULL;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

size_t mcp_guard_lenient_fold(char *text, size_t bytes)
{
    size_t used = 0;
    size_t i = 0;

    while (i < bytes) {
        uint32_t code;
        size_t length = sequence(text + i, bytes - i, &code);
        const char *alike = length > 1 ? look_alike(code) : NULL;

        if (length == 1) {
            text[used++] = lower(text[i]);
        } else if (alike != NULL) {
            memcpy(text + used, alike, strlen(alike)); /* never longer than the sequence */
            used += strlen(alike);
        } else if (code >= 0xff01 && code <= 0xff5e) {
            text[used++] = lower((char)(code - 0xfee0));
        } else {
            memmove(text + used, text + i, length);
            used += length;
        }
        i += length;
    }
    return used;
}

static int is_blank(char c)
{
    return (unsigned char)c <= 0x20 || c == 0x7f;
}

void mcp_guard_lenient_trim(mcp_guard_text_t *segment)
{
    mcp_guard_text_t text = *segment;

    while (text.bytes > 0 && is_blank(text.data[0])) {
        ++text.data;
        --text.bytes;
    }
    while (text.bytes > 0 &&
           (is_blank(text.data[text.bytes - 1]) || text.data[text.bytes - 1] == '.')) {
        --text.bytes;
    }
    if (text.bytes > 0) {
        *segment = text;
    }
}
