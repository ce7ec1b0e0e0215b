/* Percent-encoding and the parts of a URL. One strict reading for template and guard, so that what
 * the one builds the other judges by the same rules. */
#include "mcp_encode.h"

#include <string.h>
#include <strings.h>

#define FIRST_BYTES 128

/* Characters of RFC 3986 section 2.3. Not isalnum: the locale has no say in what goes on the wire.
 */
static int is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static int is_in(const char *set, char c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

int mcp_encode_hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void mcp_encode_start(mcp_encode_buf_t *buf, apr_pool_t *pool, size_t max)
{
    buf->pool = pool;
    buf->size = FIRST_BYTES;
    buf->data = apr_palloc(pool, buf->size);
    buf->bytes = 0;
    buf->max = max;
    buf->is_full = 0;
}

void mcp_encode_raw(mcp_encode_buf_t *buf, const char *data, size_t bytes)
{
    if (buf->is_full || bytes > buf->max - buf->bytes) {
        buf->is_full = 1;
        return;
    }
    if (bytes == 0) {
        return;
    }
    if (buf->bytes + bytes + 1 > buf->size) {
        size_t size = buf->size;
        char *grown;

        while (buf->bytes + bytes + 1 > size) {
            size *= 2; /* max is far below SIZE_MAX / 2 */
        }
        grown = apr_palloc(buf->pool, size);
        memcpy(grown, buf->data, buf->bytes);
        buf->data = grown;
        buf->size = size;
    }
    memcpy(buf->data + buf->bytes, data, bytes);
    buf->bytes += bytes;
}

void mcp_encode_text(mcp_encode_buf_t *buf, const char *text)
{
    mcp_encode_raw(buf, text, strlen(text));
}

void mcp_encode_part(mcp_encode_buf_t *buf, const char *data, size_t bytes, const char *keep)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < bytes && !buf->is_full; ++i) {
        unsigned char byte = (unsigned char)data[i];
        char escape[3] = {'%', digits[byte >> 4], digits[byte & 0x0f]};

        if (is_unreserved(data[i]) || is_in(keep, data[i])) {
            mcp_encode_raw(buf, data + i, 1);
        } else {
            mcp_encode_raw(buf, escape, sizeof(escape));
        }
    }
}

const char *mcp_encode_finish(mcp_encode_buf_t *buf)
{
    if (buf->is_full) {
        return NULL;
    }
    buf->data[buf->bytes] = '\0'; /* raw always leaves room for it */
    return buf->data;
}

size_t mcp_encode_decode(const char *data, size_t bytes, char *out)
{
    size_t used = 0;

    for (size_t i = 0; i < bytes; ++i) {
        int high = i + 2 < bytes && data[i] == '%' ? mcp_encode_hex(data[i + 1]) : -1;
        int low = high >= 0 ? mcp_encode_hex(data[i + 2]) : -1;

        if (low >= 0) {
            out[used++] = (char)(unsigned char)(high * 16 + low);
            i += 2;
        } else {
            out[used++] = data[i];
        }
    }
    return used;
}

int mcp_encode_is_clean(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        if (text[i] == '%') {
            if (i + 2 >= bytes || mcp_encode_hex(text[i + 1]) < 0 ||
                mcp_encode_hex(text[i + 2]) < 0) {
                return 0;
            }
        } else if (!is_unreserved(text[i]) && !is_in("!$&'()*+,;=:@/?", text[i])) {
            return 0;
        }
    }
    return 1;
}

int mcp_encode_is_dots(const char *text, size_t bytes)
{
    return (bytes == 1 || bytes == 2) && text[0] == '.' && text[bytes - 1] == '.';
}

int mcp_encode_is_token(const char *text)
{
    size_t i;

    for (i = 0; text[i] != '\0'; ++i) {
        if (!is_unreserved(text[i]) && !is_in("!#$%&'*+^`|", text[i])) {
            return 0;
        }
    }
    return i > 0;
}

int mcp_encode_has_control(const char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        unsigned char byte = (unsigned char)data[i];

        if (byte < 0x20 || byte == 0x7f) {
            return 1;
        }
    }
    return 0;
}

/* Bytes of the host at text, 0 if there is none that we take. Escapes, zone ids and raw Unicode are
 * not taken. */
static size_t host_bytes(const char *text)
{
    size_t bytes = 0;

    if (text[0] == '[') {
        bytes = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
        return bytes > 2 && text[bytes] == ']' ? bytes + 1 : 0;
    }
    while (text[bytes] != '~' && (is_unreserved(text[bytes]))) {
        ++bytes;
    }
    return bytes;
}

/* ":port" or nothing at *at, which moves behind it. 0 or -1. */
static int read_port(const char **at, unsigned *ret)
{
    unsigned port = 0;
    const char *digit = *at;

    if (*digit != ':') {
        return 0;
    }
    for (++digit; *digit >= '0' && *digit <= '9'; ++digit) {
        port = port * 10 + (unsigned)(*digit - '0');
        if (port > 65535) {
            return -1;
        }
    }
    if (port == 0) {
        return -1;
    }
    *at = digit;
    *ret = port;
    return 0;
}

int mcp_encode_split(const char *url, mcp_encode_url_t *ret)
{
    mcp_encode_url_t parts = {0};
    const char *at = url;
    size_t rest;

    if (strncasecmp(url, "https://", 8) == 0) {
        parts.is_https = 1;
        at += 8;
    } else if (strncasecmp(url, "http://", 7) == 0) {
        at += 7;
    } else {
        return -1;
    }
    parts.port = parts.is_https ? 443 : 80;
    parts.host = at;
    parts.host_bytes = host_bytes(at);
    at += parts.host_bytes;
    /* "user@", "host\@other" and the like all end here: nothing but a path or query follows host
     * and port. */
    if (parts.host_bytes == 0 || read_port(&at, &parts.port) != 0 ||
        !(*at == '\0' || is_in("/?", *at))) {
        return -1;
    }
    rest = strlen(at);
    if (rest > MCP_URL_BYTES || !mcp_encode_is_clean(at, rest)) {
        return -1; /* a fragment too: '#' is no character of path or query */
    }
    parts.path = at;
    parts.path_bytes = strcspn(at, "?");
    if (at[parts.path_bytes] == '?') {
        parts.query = at + parts.path_bytes + 1;
        parts.query_bytes = rest - parts.path_bytes - 1;
    }
    *ret = parts;
    return 0;
}
