/* Metadata documents: see mcp_wellknown.h. */
#include "mcp_wellknown.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>
#include <http_request.h>

#include "mcp_rpc.h"

#define PREFIX "/.well-known/oauth-protected-resource"

/* Scopes of basic use, not the catalogue of all. */
static const char scopes[] = "[\"mcp:read\",\"mcp:tools\"]";

/* The endpoint that a metadata path speaks of. The bare form speaks of the only endpoint, or of the first. */
static const mcp_dir_conf_t *endpoint_of(const request_rec *r)
{
    const apr_array_header_t *endpoints = mcp_config_server(r->server)->endpoints;
    const char *rest;
    int i;

    if (strncmp(r->uri, PREFIX, strlen(PREFIX)) != 0) {
        return NULL;
    }
    rest = r->uri + strlen(PREFIX);
    for (i = 0; i < endpoints->nelts; i++) {
        const mcp_dir_conf_t *conf = APR_ARRAY_IDX(endpoints, i, const mcp_dir_conf_t *);

        if (conf->is_endpoint == 1 && (rest[0] == '\0' || strcmp(rest, conf->path) == 0)) {
            return conf;
        }
    }
    return NULL;
}

int mcp_wellknown_is_ours(const request_rec *r)
{
    return r->uri != NULL && endpoint_of(r) != NULL;
}

const char *mcp_wellknown_url(const mcp_dir_conf_t *conf, const server_rec *server, apr_pool_t *pool)
{
    const char *resource = mcp_config_resource(conf, server, pool);

    return apr_pstrcat(pool, mcp_config_origin(resource, pool), PREFIX, conf->path, NULL);
}

static const char *quoted(const char *text, apr_pool_t *pool)
{
    return mcp_rpc_quote(text, strlen(text), pool);
}

static const char *issuers(const mcp_dir_conf_t *conf, const char *resource, apr_pool_t *pool)
{
    const char *list = "";
    int i;

    if (conf->issuers == NULL) { /* this server is its own authorization server */
        return quoted(mcp_config_origin(resource, pool), pool);
    }
    for (i = 0; i < conf->issuers->nelts; i++) {
        list = apr_pstrcat(pool, list, i > 0 ? "," : "",
                           quoted(APR_ARRAY_IDX(conf->issuers, i, const char *), pool), NULL);
    }
    return list;
}

int mcp_wellknown_handler(request_rec *r)
{
    const mcp_dir_conf_t *conf = endpoint_of(r);
    const char *resource;
    const char *document;
    request_rec *endpoint;

    if (conf == NULL) {
        return DECLINED;
    }
    /* what requests to the endpoint see: its section merged with the others that match its path */
    endpoint = ap_sub_req_lookup_uri(conf->path, r, NULL);
    if (mcp_config_dir(endpoint) != NULL && mcp_config_dir(endpoint)->is_endpoint == 1) {
        conf = mcp_config_dir(endpoint);
    }
    apr_table_setn(r->headers_out, "Access-Control-Allow-Origin", "*");
    apr_table_setn(r->headers_out, "Access-Control-Allow-Headers", "mcp-protocol-version");
    if (r->method_number == M_OPTIONS) {
        apr_table_setn(r->headers_out, "Access-Control-Allow-Methods", "GET, OPTIONS");
        r->status = HTTP_NO_CONTENT;
        return OK;
    }
    if (r->method_number != M_GET) {
        apr_table_setn(r->err_headers_out, "Allow", "GET, HEAD, OPTIONS");
        return HTTP_METHOD_NOT_ALLOWED;
    }
    resource = mcp_config_resource(conf, r->server, r->pool);
    document = apr_pstrcat(r->pool, "{\"resource\":", quoted(resource, r->pool),
                           ",\"authorization_servers\":[", issuers(conf, resource, r->pool),
                           "],\"scopes_supported\":", scopes,
                           ",\"bearer_methods_supported\":[\"header\"],\"resource_name\":\"mod_mcp\"}", NULL);
    ap_set_content_type(r, "application/json");
    apr_table_setn(r->headers_out, "Cache-Control", "max-age=300");
    ap_set_content_length(r, (apr_off_t)strlen(document));
    (void)ap_rputs(document, r); /* a client that left is not our concern */
    return OK;
}
