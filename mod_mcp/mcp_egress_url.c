/* URLs as the outbound room reads them (see the header). Pure. */
#include "mcp_egress_url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>

#define HOST_MAX 253 /* bytes of a DNS name without its last dot */

static const struct scheme {
    const char *prefix;
    unsigned port;
} schemes[] = {
    {"http://", 80},
    {"https://", 443},
};

static const struct scheme *find_scheme(const char *text)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strncasecmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) == 0)
            return &schemes[i];
    }
    return NULL;
}

/* A DNS name or an IPv4 address in any of its forms: what it resolves to is judged when it is
 * dialled. */
static int is_name(const char *host, size_t bytes)
{
    if (bytes == 0 || bytes > HOST_MAX + 1)
        return 0;
    for (size_t i = 0; i < bytes; i++) {
        char c = host[i];
        int is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_word && c != '-' && c != '.' && c != '_')
            return 0;
    }
    return host[0] != '.';
}

/* "[...]" to its one canonical spelling, NULL if it is no IPv6 address. Zones are refused by
 * inet_pton. */
static const char *read_ipv6(const char *host, size_t bytes, apr_pool_t *pool)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (bytes < 3 || bytes - 2 >= sizeof text || host[bytes - 1] != ']')
        return NULL;
    memcpy(text, host + 1, bytes - 2);
    text[bytes - 2] = '\0';
    if (inet_pton(AF_INET6, text, &address) != 1)
        return NULL;
    if (inet_ntop(AF_INET6, &address, text, sizeof text) == NULL)
        return NULL;
    return apr_psprintf(pool, "[%s]", text);
}

static int read_port(const char *text, size_t bytes, unsigned *ret)
{
    unsigned port = 0;
    if (bytes == 0 || bytes > 5)
        return 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    if (port == 0 || port > 65535)
        return 0;
    *ret = port;
    return 1;
}

static const char *read_origin(const struct scheme *scheme, const char *authority, size_t bytes,
                               apr_pool_t *pool)
{
    const char *host;
    size_t host_bytes = bytes;
    unsigned port = scheme->port;
    const char *end = bytes > 0 && authority[0] == '[' ? memchr(authority, ']', bytes) : NULL;
    const char *from = end != NULL ? end : authority;
    const char *colon = memchr(from, ':', bytes - (size_t)(from - authority));
    if (colon != NULL) {
        host_bytes = (size_t)(colon - authority);
        if (!read_port(colon + 1, bytes - host_bytes - 1, &port))
            return NULL;
    }
    if (end != NULL) {
        host = read_ipv6(authority, host_bytes, pool);
    } else if (is_name(authority, host_bytes)) {
        char *name = apr_pstrmemdup(pool, authority, host_bytes);
        for (char *c = name; *c != '\0'; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        host = name;
    } else {
        host = NULL;
    }
    if (host == NULL)
        return NULL;
    return apr_psprintf(pool, "%s%s:%u", scheme->prefix, host, port);
}

/* The request line is these bytes: nothing that could end it, and no bytes that some servers
 * would rewrite. */
static int is_target(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || *c == '#')
            return 0;
    }
    return 1;
}

apr_status_t mcp_egress_url_parse(const char *text, apr_pool_t *pool, mcp_egress_url_t *ret)
{
    const struct scheme *scheme = find_scheme(text);
    if (scheme == NULL || strnlen(text, MCP_EGRESS_URL_MAX + 1) > MCP_EGRESS_URL_MAX)
        return APR_EINVAL;
    const char *authority = text + strlen(scheme->prefix);
    size_t bytes = strcspn(authority, "/?#");
    const char *target = authority + bytes;
    const char *origin = read_origin(scheme, authority, bytes, pool);
    if (origin == NULL || !is_target(target))
        return APR_EINVAL;
    ret->origin = origin;
    ret->target = apr_pstrcat(pool, target[0] == '/' ? "" : "/", target, NULL);
    return APR_SUCCESS;
}

int mcp_egress_url_is_allowed(const mcp_egress_url_t *url, const apr_array_header_t *allow,
                              apr_pool_t *pool)
{
    for (int i = 0; allow != NULL && i < allow->nelts; i++) {
        mcp_egress_url_t entry;
        if (mcp_egress_url_parse(APR_ARRAY_IDX(allow, i, const char *), pool, &entry) !=
            APR_SUCCESS)
            continue;
        if (strcmp(entry.target, "/") == 0 && strcmp(entry.origin, url->origin) == 0)
            return 1;
    }
    return 0;
}

/* RFC 3986, 5.2.4, for a path that starts with a slash; query appended as it is. */
static const char *remove_dots(const char *path, apr_pool_t *pool)
{
    size_t bytes = strcspn(path, "?");
    char *out = apr_palloc(pool, strlen(path) + 2);
    size_t filled = 0;
    size_t at = 0;
    while (at < bytes) {
        size_t segment = strcspn(path + at + 1, "/?");
        int is_last = at + 1 + segment >= bytes;
        int is_dot = segment == 1 && path[at + 1] == '.';
        int is_dotdot = segment == 2 && path[at + 1] == '.' && path[at + 2] == '.';
        if (is_dotdot) {
            while (filled > 0 && out[filled - 1] != '/')
                filled--;
            filled -= filled > 0;
        }
        if (!is_dot && !is_dotdot) {
            memcpy(out + filled, path + at, segment + 1);
            filled += segment + 1;
        } else if (is_last) {
            out[filled++] = '/';
        }
        at += segment + 1;
    }
    memcpy(out + filled, path + bytes, strlen(path + bytes) + 1);
    return out;
}

static int has_scheme(const char *text)
{
    size_t bytes =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return bytes > 0 && text[bytes] == ':' && apr_isalpha(text[0]);
}

apr_status_t mcp_egress_url_resolve(const mcp_egress_url_t *base, const char *location,
                                    apr_pool_t *pool, mcp_egress_url_t *ret)
{
    if (strnlen(location, MCP_EGRESS_URL_MAX + 1) > MCP_EGRESS_URL_MAX)
        return APR_EINVAL;
    const char *text = apr_pstrmemdup(pool, location, strcspn(location, "#"));
    const char *full;
    size_t path_bytes = strcspn(base->target, "?");
    if (has_scheme(text)) {
        full = text;
    } else if (text[0] == '/' && text[1] == '/') {
        full = apr_pstrcat(pool, apr_pstrmemdup(pool, base->origin, strcspn(base->origin, "/")),
                           text, NULL);
    } else if (text[0] == '\0') {
        full = apr_pstrcat(pool, base->origin, base->target, NULL);
    } else if (text[0] == '/') {
        full = apr_pstrcat(pool, base->origin, text, NULL);
    } else {
        if (text[0] != '?') {
            while (path_bytes > 0 && base->target[path_bytes - 1] != '/')
                path_bytes--;
        }
        full = apr_pstrcat(pool, base->origin, apr_pstrmemdup(pool, base->target, path_bytes), text,
                           NULL);
    }
    mcp_egress_url_t url;
    apr_status_t status = mcp_egress_url_parse(full, pool, &url);
    if (status != APR_SUCCESS)
        return status;
    ret->origin = url.origin;
    ret->target = remove_dots(url.target, pool);
    return APR_SUCCESS;
}
