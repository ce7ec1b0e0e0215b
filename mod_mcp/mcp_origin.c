/* Origins and CORS: see mcp_origin.h. */
#include "mcp_origin.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "mcp_parse.h"

static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};

/* Scheme and port of an origin, with the host cut out. */
static const char *without_host(const char *origin, const char **ret_host, apr_pool_t *pool)
{
    const char *host = strstr(origin, "://") + 3;
    const char *port = host[0] == '[' ? strchr(host, ']') + 1 : host + strcspn(host, ":");

    *ret_host = apr_pstrmemdup(pool, host, (size_t)(port - host));
    return apr_pstrcat(pool, apr_pstrmemdup(pool, origin, (size_t)(host - origin)), port, NULL);
}

static int is_loopback(const char *host)
{
    size_t i;

    for (i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++) {
        if (strcmp(host, loopback[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The same origin; an endpoint on loopback is the same under each of loopback's names. */
static int is_own(const char *origin, const char *own, apr_pool_t *pool)
{
    const char *host = NULL;
    const char *own_host = NULL;

    if (strcmp(origin, own) == 0) {
        return 1;
    }
    return strcmp(without_host(origin, &host, pool), without_host(own, &own_host, pool)) == 0 &&
           is_loopback(host) && is_loopback(own_host);
}

static int is_allowed(const mcp_dir_conf_t *conf, const char *origin)
{
    int i;

    for (i = 0; conf->origins != NULL && i < conf->origins->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(conf->origins, i, const char *), origin) == 0) {
            return 1;
        }
    }
    return 0;
}

apr_status_t mcp_origin_check(request_rec *r, const mcp_dir_conf_t *conf, mcp_err_t *err)
{
    const char *header = apr_table_get(r->headers_in, "Origin");
    const char *resource = mcp_config_resource(conf, r->server, r->pool);
    const char *origin = NULL;
    const char *own = NULL;

    if (header == NULL) {
        return APR_SUCCESS;
    }
    if (mcp_parse_origin(r->pool, header, &origin) != NULL ||
        mcp_parse_origin(r->pool, mcp_config_origin(resource, r->pool), &own) != NULL ||
        (!is_own(origin, own, r->pool) && !is_allowed(conf, origin))) {
        return mcp_err_set(err, r->pool, MCP_FAIL_ORIGIN, MCP_CODE_NONE, NULL,
                           "this origin may not use the endpoint (MCPAllowOrigin)");
    }
    apr_table_setn(r->err_headers_out, "Access-Control-Allow-Origin", header);
    apr_table_mergen(r->err_headers_out, "Vary", "Origin");
    apr_table_setn(r->err_headers_out, "Access-Control-Expose-Headers",
                   "WWW-Authenticate, Mcp-Session-Id");
    return APR_SUCCESS;
}

/* The headers that a browser asks for, when each is one that this protocol uses. `*` would not cover Authorization. */
static const char *allowed_headers(request_rec *r)
{
    static const char always[] = "authorization, content-type, accept, mcp-protocol-version, mcp-method, "
                                 "mcp-name, mcp-session-id, last-event-id";
    const char *asked = apr_table_get(r->headers_in, "Access-Control-Request-Headers");
    const char *list = always;
    char *state = NULL;
    char *name;

    if (asked == NULL || strlen(asked) > 2048) {
        return list;
    }
    for (name = apr_strtok(apr_pstrdup(r->pool, asked), ", \t", &state); name != NULL;
         name = apr_strtok(NULL, ", \t", &state)) {
        if (strncasecmp(name, "mcp-param-", 10) == 0 &&
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
                strlen(name)) {
            list = apr_pstrcat(r->pool, list, ", ", name, NULL);
        }
    }
    return list;
}

int mcp_origin_preflight(request_rec *r)
{
    apr_table_setn(r->headers_out, "Access-Control-Allow-Methods", "POST, GET, DELETE");
    apr_table_setn(r->headers_out, "Access-Control-Allow-Headers", allowed_headers(r));
    apr_table_setn(r->headers_out, "Access-Control-Max-Age", "600");
    apr_table_setn(r->headers_out, "Allow", "POST, OPTIONS");
    r->status = HTTP_NO_CONTENT;
    return OK;
}
