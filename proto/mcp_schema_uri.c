/* URI references of the schema room: RFC 3986 section 5.2, on texts.  Nothing is fetched;
 * a URI is a name to find a subschema of the same document by. */
#include "mcp_schema_private.h"

#include <apr_strings.h>
#include <string.h>

/* A part that is absent has no start. */
typedef struct part {
    const char *start;
    size_t bytes;
} part_t;

typedef struct uri {
    part_t scheme;
    part_t authority;
    part_t path; /* always there, may be empty */
    part_t query;
} uri_t;

static bool is_scheme(const char *text, size_t bytes)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char other[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";

    return bytes > 0 && strchr(first, text[0]) != NULL && strspn(text, other) >= bytes;
}

/* Reads up to the fragment. */
static void split(const char *text, uri_t *ret)
{
    size_t n = strcspn(text, ":/?#");

    memset(ret, 0, sizeof(*ret));
    if (text[n] == ':' && is_scheme(text, n)) {
        ret->scheme.start = text;
        ret->scheme.bytes = n;
        text += n + 1;
    }
    if (strncmp(text, "//", 2) == 0) {
        text += 2;
        ret->authority.start = text;
        ret->authority.bytes = strcspn(text, "/?#");
        text += ret->authority.bytes;
    }
    ret->path.start = text;
    ret->path.bytes = strcspn(text, "?#");
    text += ret->path.bytes;
    if (*text == '?') {
        text++;
        ret->query.start = text;
        ret->query.bytes = strcspn(text, "#");
    }
}

static bool begins(const char *at, const char *end, const char *with)
{
    size_t bytes = strlen(with);

    return (size_t)(end - at) >= bytes && memcmp(at, with, bytes) == 0;
}

static bool is_rest(const char *at, const char *end, const char *all)
{
    return (size_t)(end - at) == strlen(all) && begins(at, end, all);
}

/* RFC 3986 5.2.4, in place; returns the bytes left. */
static size_t remove_dots(char *path, size_t bytes)
{
    const char *at = path;
    const char *end = path + bytes;
    size_t used = 0;

    while (at < end) {
        size_t n;

        if (begins(at, end, "../")) {
            at += 3;
        } else if (begins(at, end, "./")) {
            at += 2;
        } else if (begins(at, end, "/./")) {
            at += 2;
        } else if (is_rest(at, end, "/.")) {
            path[used++] = '/';
            break;
        } else if (begins(at, end, "/../") || is_rest(at, end, "/..")) {
            bool is_last = is_rest(at, end, "/..");

            while (used > 0 && path[--used] != '/') {
            }
            if (is_last) {
                path[used++] = '/';
                break;
            }
            at += 3;
        } else if (is_rest(at, end, ".") || is_rest(at, end, "..")) {
            break;
        } else {
            n = *at == '/' ? 1 : 0;
            while (at + n < end && at[n] != '/') {
                n++;
            }
            memmove(path + used, at, n); /* used never passes at */
            used += n;
            at += n;
        }
    }
    return used;
}

/* 5.2.3: the reference's path in the place of the base's last segment. */
static const char *merge(apr_pool_t *pool, const uri_t *base, const part_t *path)
{
    size_t keep = base->path.bytes;

    if (base->authority.start != NULL && keep == 0) {
        return apr_psprintf(pool, "/%.*s", (int)path->bytes, path->start);
    }
    while (keep > 0 && base->path.start[keep - 1] != '/') {
        keep--;
    }
    return apr_psprintf(pool, "%.*s%.*s", (int)keep, base->path.start,
                        (int)path->bytes, path->start);
}

static const char *compose(apr_pool_t *pool, const uri_t *uri)
{
    return apr_psprintf(pool, "%.*s%s%s%.*s%.*s%s%.*s", (int)uri->scheme.bytes,
                        uri->scheme.start == NULL ? "" : uri->scheme.start,
                        uri->scheme.start == NULL ? "" : ":",
                        uri->authority.start == NULL ? "" : "//", (int)uri->authority.bytes,
                        uri->authority.start == NULL ? "" : uri->authority.start,
                        (int)uri->path.bytes, uri->path.start, uri->query.start == NULL ? "" : "?",
                        (int)uri->query.bytes, uri->query.start == NULL ? "" : uri->query.start);
}

const char *mcp_schema_uri_resolve(apr_pool_t *pool, const char *base, const char *reference)
{
    uri_t from;
    uri_t uri;
    const char *path;
    char *clean;

    if (strlen(base) > MCP_SCHEMA_MAX_URI || strlen(reference) > MCP_SCHEMA_MAX_URI) {
        return NULL;
    }
    split(base, &from);
    split(reference, &uri);
    path = apr_pstrmemdup(pool, uri.path.start, uri.path.bytes);
    if (uri.scheme.start == NULL) {
        uri.scheme = from.scheme;
        if (uri.authority.start == NULL) {
            uri.authority = from.authority;
            if (uri.path.bytes == 0) {
                if (uri.query.start == NULL) {
                    uri.query = from.query;
                }
                uri.path = from.path;
                return compose(pool, &uri);
            }
            if (path[0] != '/') {
                path = merge(pool, &from, &uri.path);
            }
        }
    }
    clean = apr_pstrdup(pool, path);
    uri.path.start = clean;
    uri.path.bytes = remove_dots(clean, strlen(clean));
    return compose(pool, &uri);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const char *mcp_schema_uri_fragment(apr_pool_t *pool, const char *reference)
{
    const char *at = strchr(reference, '#');
    char *ret;
    size_t used = 0;

    if (at == NULL) {
        return "";
    }
    at++;
    ret = apr_palloc(pool, strlen(at) + 1);
    for (; *at != '\0'; at++) {
        if (*at != '%') {
            ret[used++] = *at;
        } else if (hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0 && (at[1] | at[2]) != '0') {
            ret[used++] = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
            at += 2;
        } else {
            return NULL;
        }
    }
    ret[used] = '\0';
    return ret;
}
