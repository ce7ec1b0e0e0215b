/* Percent-encoding, the parts of an absolute URL, and a growing text with a maximum: what template
 * and guard share. Pure, thread-safe; memory from the pool given. */
#ifndef MCP_ENCODE_H
#define MCP_ENCODE_H

#include <stddef.h>

#include <apr_pools.h>

#define MCP_URL_BYTES (32u * 1024) /* longest URL that is built or judged */

/* Text that grows in a pool up to `max` bytes. Once it would exceed them it takes no more, and
 * finish says so. */
typedef struct mcp_encode_buf {
    apr_pool_t *pool;
    char *data;
    size_t bytes;
    size_t size;
    size_t max;
    int is_full;
} mcp_encode_buf_t;

void mcp_encode_start(mcp_encode_buf_t *buf, apr_pool_t *pool, size_t max);
/* As it is. */
void mcp_encode_raw(mcp_encode_buf_t *buf, const char *data, size_t bytes);
void mcp_encode_text(mcp_encode_buf_t *buf, const char *text);
/* Percent-encoded: RFC 3986 unreserved characters and those in `keep` stay, each other byte becomes
 * %XX. */
void mcp_encode_part(mcp_encode_buf_t *buf, const char *data, size_t bytes, const char *keep);
/* NUL-terminated; NULL if the text did not fit. */
const char *mcp_encode_finish(mcp_encode_buf_t *buf);

/* Decodes %XX once into out (at least `bytes` long, may be data itself); what is no escape stays.
 * Returns the length. */
size_t mcp_encode_decode(const char *data, size_t bytes, char *out);

/* 1 if text holds only characters that RFC 3986 allows in path and query, each '%' before two hex
 * digits. */
int mcp_encode_is_clean(const char *text, size_t bytes);
/* 1 if the whole is "." or "..". */
int mcp_encode_is_dots(const char *text, size_t bytes);
/* 1 if text is a token of RFC 9110 section 5.6.2: at least one character. */
int mcp_encode_is_token(const char *text);
/* 1 if the bytes hold a control character: below 0x20, or 0x7f. */
int mcp_encode_has_control(const char *data, size_t bytes);
/* The value of a hex digit, or -1. */
int mcp_encode_hex(char c);

/* Pointers into the URL that was split. */
typedef struct mcp_encode_url {
    int is_https;
    const char *host; /* with brackets if IPv6 */
    size_t host_bytes;
    unsigned port;    /* the scheme's own where none is written */
    const char *path; /* "" or from '/' on */
    size_t path_bytes;
    const char *query; /* after '?', or NULL */
    size_t query_bytes;
} mcp_encode_url_t;

/* Splits an absolute http or https URL. 0, or -1 for another scheme, userinfo, a fragment, a host
 * that is not letters, digits, '-', '_', '.' or an IPv6 literal, a bad port, or characters that
 * belong in no URL. */
int mcp_encode_split(const char *url, mcp_encode_url_t *ret);

#endif
