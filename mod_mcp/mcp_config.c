/* Directives: see mcp_config.h.  A setter checks its context, calls one pure parser and stores; what only the whole configuration can tell is judged
 * in mcp_config_check(). */
#include "mcp_config.h"

#include <string.h>

#include <apr_file_io.h>
#include <apr_strings.h>
#include <http_core.h>

#include "../proto/mcp_hash.h"
#include "../proto/mcp_names.h"
#include "mcp_parse.h"

#define KEY_FILE_MAX 4096
#define SECONDS(n)   ((apr_interval_time_t)(n) * APR_USEC_PER_SEC)

/* --- create and merge -------------------------------------------------------------- */

void *mcp_config_create_server(apr_pool_t *pool, server_rec *server)
{
    mcp_server_conf_t *conf = apr_pcalloc(pool, sizeof(*conf));

    (void)server;
#define MCP_MEMBER(type, name, unset, directive) conf->name = unset;
    MCP_SERVER_MEMBERS(MCP_MEMBER)
#undef MCP_MEMBER
    conf->endpoints = apr_array_make(pool, 2, sizeof(mcp_dir_conf_t *));
    conf->apis = apr_array_make(pool, 2, sizeof(mcp_dir_conf_t *));
    return conf;
}

void *mcp_config_merge_server(apr_pool_t *pool, void *base, void *add)
{
    const mcp_server_conf_t *outer = base;
    const mcp_server_conf_t *inner = add;
    mcp_server_conf_t *conf = apr_pcalloc(pool, sizeof(*conf));

#define MCP_MEMBER(type, name, unset, directive)                                                   \
    conf->name = inner->name != (type)(unset) ? inner->name : outer->name;
    MCP_SERVER_MEMBERS(MCP_MEMBER)
#undef MCP_MEMBER
    conf->endpoints = apr_array_append(pool, outer->endpoints, inner->endpoints);
    conf->apis = apr_array_append(pool, outer->apis, inner->apis);
    return conf;
}

void *mcp_config_create_dir(apr_pool_t *pool, char *path)
{
    mcp_dir_conf_t *conf = apr_pcalloc(pool, sizeof(*conf));

    (void)path;
#define MCP_MEMBER(type, name, unset, directive) conf->name = unset;
    MCP_DIR_MEMBERS(MCP_MEMBER)
#undef MCP_MEMBER
    return conf;
}

void *mcp_config_merge_dir(apr_pool_t *pool, void *base, void *add)
{
    const mcp_dir_conf_t *outer = base;
    const mcp_dir_conf_t *inner = add;
    mcp_dir_conf_t *conf = apr_pcalloc(pool, sizeof(*conf));

#define MCP_MEMBER(type, name, unset, directive)                                                   \
    conf->name = inner->name != (type)(unset) ? inner->name : outer->name;
    MCP_DIR_MEMBERS(MCP_MEMBER)
#undef MCP_MEMBER
    return conf;
}

mcp_server_conf_t *mcp_config_server(const server_rec *server)
{
    return ap_get_module_config(server->module_config, &mcp_module);
}

mcp_dir_conf_t *mcp_config_dir(const request_rec *r)
{
    return ap_get_module_config(r->per_dir_config, &mcp_module);
}

/* --- setters ------------------------------------------------------------------------- */

static mcp_server_conf_t *server_conf(cmd_parms *cmd)
{
    return mcp_config_server(cmd->server);
}

/* The child's own objects are made once, from the main server. */
static const char *main_only(cmd_parms *cmd)
{
    return ap_check_cmd_context(cmd, GLOBAL_ONLY);
}

static const char *says(cmd_parms *cmd, const char *why)
{
    return why != NULL ? apr_pstrcat(cmd->pool, cmd->cmd->name, ": ", why, NULL) : NULL;
}

static const char *set_policy_endpoint(cmd_parms *cmd, void *dir, const char *value)
{
    mcp_server_conf_t *conf = server_conf(cmd);
    const char *why = main_only(cmd);

    (void)dir;
    if (why != NULL) {
        return why;
    }
    if (strncmp(value, "ipc:///", 7) != 0 && strncmp(value, "tcp://", 6) != 0) {
        return says(cmd, "name an endpoint of policyd as ipc:///path/to/socket or tcp://host:port");
    }
    if (conf->policy_endpoints == NULL) {
        conf->policy_endpoints = apr_array_make(cmd->pool, 2, sizeof(const char *));
    }
    if (conf->policy_endpoints->nelts == 8) {
        return says(cmd, "at most eight endpoints can be named");
    }
    APR_ARRAY_PUSH(conf->policy_endpoints, const char *) = value;
    return NULL;
}

/* The file is read here, by root in the parent, as bytes: children run as another user that may not read it. */
static const char *set_policy_key(cmd_parms *cmd, void *dir, const char *value)
{
    mcp_server_conf_t *conf = server_conf(cmd);
    const char *path = ap_server_root_relative(cmd->pool, value);
    const char *why = main_only(cmd);
    mcp_link_keys_t *keys;
    mcp_err_t err;
    char text[KEY_FILE_MAX];
    apr_size_t bytes = sizeof(text);
    apr_file_t *file = NULL;
    apr_status_t status;

    (void)dir;
    if (why != NULL) {
        return why;
    }
    memset(&err, 0, sizeof(err));
    status = path != NULL ? apr_file_open(&file, path, APR_FOPEN_READ, APR_FPROT_OS_DEFAULT, cmd->temp_pool)
                          : APR_EBADPATH;
    if (status == APR_SUCCESS) {
        status = apr_file_read(file, text, &bytes);
        (void)apr_file_close(file); /* it was only read */
    }
    if (status != APR_SUCCESS) {
        char reason[120];

        return says(cmd, apr_psprintf(cmd->pool,
                                      "can't read '%s' (%s); policyd --init writes httpd.key into its "
                                      "key_dir",
                                      value, apr_strerror(status, reason, sizeof(reason))));
    }
    keys = apr_pcalloc(cmd->pool, sizeof(*keys));
    status = mcp_link_parse_keys(text, bytes, keys, cmd->temp_pool, &err);
    mcp_wipe(text, sizeof(text));
    if (status != APR_SUCCESS) {
        return says(cmd, apr_psprintf(cmd->pool, "'%s': %s", value, err.message));
    }
    conf->policy_key = keys;
    return NULL;
}

static const char *set_policy_timeout(cmd_parms *cmd, void *dir, const char *value)
{
    const char *why = main_only(cmd);

    (void)dir;
    return why != NULL ? why
                       : says(cmd, mcp_parse_duration(cmd->pool, value, 10000, SECONDS(60),
                                                      &server_conf(cmd)->policy_timeout));
}

static const char *set_egress_allow(cmd_parms *cmd, void *dir, const char *value)
{
    mcp_server_conf_t *conf = server_conf(cmd);
    const char *why = ap_check_cmd_context(cmd, NOT_IN_DIR_CONTEXT);
    const char *origin = NULL;

    (void)dir;
    if (why != NULL) {
        return why;
    }
    if (conf->egress_allow == NULL) {
        conf->egress_allow = apr_array_make(cmd->pool, 4, sizeof(const char *));
    }
    if (strcasecmp(value, "none") == 0) {
        apr_array_clear(conf->egress_allow);
        return NULL;
    }
    why = mcp_parse_origin(cmd->pool, value, &origin);
    if (why == NULL) {
        APR_ARRAY_PUSH(conf->egress_allow, const char *) = origin;
    }
    return says(cmd, why);
}

static const char *set_egress_ca(cmd_parms *cmd, void *dir, const char *value)
{
    const char *why = main_only(cmd);
    const char *path = ap_server_root_relative(cmd->pool, value);
    apr_finfo_t info;

    (void)dir;
    if (why != NULL) {
        return why;
    }
    if (path == NULL ||
        apr_stat(&info, path, APR_FINFO_TYPE, cmd->temp_pool) != APR_SUCCESS ||
        info.filetype != APR_REG) {
        return says(cmd, apr_psprintf(cmd->pool, "there is no file '%s'", value));
    }
    server_conf(cmd)->egress_ca = path;
    return NULL;
}

static const char *set_max_calls(cmd_parms *cmd, void *dir, const char *value)
{
    const char *why = main_only(cmd);
    int64_t number = 0;

    (void)dir;
    if (why == NULL) {
        why = says(cmd, mcp_parse_int(cmd->pool, value, 1, 4096, &number));
    }
    if (why == NULL) {
        server_conf(cmd)->max_calls = (int)number;
    }
    return why;
}

static const char *set_view_cache(cmd_parms *cmd, void *dir, const char *value)
{
    const char *why = main_only(cmd);
    size_t bytes = 0;

    (void)dir;
    if (why == NULL) {
        why = says(cmd, mcp_parse_size(cmd->pool, value, 1024 * 1024, (size_t)16 << 30, &bytes));
    }
    if (why == NULL) {
        server_conf(cmd)->cache_bytes = (apr_int64_t)bytes;
    }
    return why;
}

/* In a <Location> of one path, not one of a pattern. */
static int names_a_path(const cmd_parms *cmd)
{
    return cmd->path != NULL && cmd->path[0] == '/' && strchr(cmd->path, '*') == NULL &&
           (cmd->directive->parent == NULL ||
            strcasecmp(cmd->directive->parent->directive, "<Location") == 0);
}

static const char *set_endpoint(cmd_parms *cmd, void *dir, const char *value)
{
    mcp_dir_conf_t *conf = dir;
    int is_on = 0;
    const char *why = says(cmd, mcp_parse_flag(cmd->pool, value, &is_on));

    if (why != NULL) {
        return why;
    }
    if (!names_a_path(cmd)) {
        return says(cmd, "belongs into <Location \"/path\">, which names the endpoint's own path");
    }
    conf->is_endpoint = is_on;
    conf->path = apr_pstrdup(cmd->pool, cmd->path);
    if (is_on) {
        APR_ARRAY_PUSH(server_conf(cmd)->endpoints, mcp_dir_conf_t *) = conf;
    }
    return NULL;
}

static const char *set_api(cmd_parms *cmd, void *dir, const char *value)
{
    mcp_dir_conf_t *conf = dir;
    int is_on = 0;
    const char *why = says(cmd, mcp_parse_flag(cmd->pool, value, &is_on));
    size_t length;

    if (why != NULL) {
        return why;
    }
    if (!names_a_path(cmd)) {
        return says(cmd, "belongs into <Location \"/api/v1\">, or another path that the API's begin with");
    }
    length = strlen(cmd->path);
    conf->is_api = is_on;
    /* paths of the API begin with '/' themselves */
    conf->api_path = apr_pstrmemdup(cmd->pool, cmd->path, cmd->path[length - 1] == '/' ? length - 1 : length);
    if (is_on) {
        APR_ARRAY_PUSH(server_conf(cmd)->apis, mcp_dir_conf_t *) = conf;
    }
    return NULL;
}

static const char *set_resource(cmd_parms *cmd, void *dir, const char *value)
{
    if (strlen(value) > MCP_MAX_TEXT) {
        return says(cmd, "a resource may have at most 512 bytes");
    }
    return says(cmd, mcp_parse_url(cmd->pool, value, &((mcp_dir_conf_t *)dir)->resource));
}

static const char *add_issuer(cmd_parms *cmd, void *dir, const char *value)
{
    mcp_dir_conf_t *conf = dir;
    const char *url = NULL;
    const char *why = mcp_parse_url(cmd->pool, value, &url);

    if (why == NULL) {
        if (conf->issuers == NULL) {
            conf->issuers = apr_array_make(cmd->pool, 2, sizeof(const char *));
        }
        APR_ARRAY_PUSH(conf->issuers, const char *) = value; /* byte for byte: clients compare so */
    }
    return says(cmd, why);
}

static const char *add_origin(cmd_parms *cmd, void *dir, const char *value)
{
    mcp_dir_conf_t *conf = dir;
    const char *origin = NULL;
    const char *why = NULL;

    if (conf->origins == NULL) {
        conf->origins = apr_array_make(cmd->pool, 2, sizeof(const char *));
    }
    if (strcasecmp(value, "none") == 0) {
        apr_array_clear(conf->origins);
        return NULL;
    }
    why = mcp_parse_origin(cmd->pool, value, &origin);
    if (why == NULL) {
        APR_ARRAY_PUSH(conf->origins, const char *) = origin;
    }
    return says(cmd, why);
}

static const char *set_size(cmd_parms *cmd, const char *value, size_t min, size_t max, apr_int64_t *ret)
{
    size_t bytes = 0;
    const char *why = says(cmd, mcp_parse_size(cmd->pool, value, min, max, &bytes));

    if (why == NULL) {
        *ret = (apr_int64_t)bytes;
    }
    return why;
}

static const char *set_max_body(cmd_parms *cmd, void *dir, const char *value)
{
    return set_size(cmd, value, 1024, (size_t)256 << 20, &((mcp_dir_conf_t *)dir)->max_body);
}

static const char *set_max_result(cmd_parms *cmd, void *dir, const char *value)
{
    return set_size(cmd, value, 1024, (size_t)1 << 30, &((mcp_dir_conf_t *)dir)->max_result);
}

static const char *set_call_timeout(cmd_parms *cmd, void *dir, const char *value)
{
    return says(cmd, mcp_parse_duration(cmd->pool, value, 100000, SECONDS(3500),
                                        &((mcp_dir_conf_t *)dir)->call_timeout));
}

static const char *set_list_page(cmd_parms *cmd, void *dir, const char *value)
{
    int64_t number = 0;
    const char *why = says(cmd, mcp_parse_int(cmd->pool, value, 1, 100000, &number));

    if (why == NULL) {
        ((mcp_dir_conf_t *)dir)->list_page = (int)number;
    }
    return why;
}

static const char *set_control_prefix(cmd_parms *cmd, void *dir, const char *value)
{
    if (!mcp_name_is_label(value)) {
        return says(cmd, "a prefix has 1 to 32 of a-z, 0-9 and inner '-', and no underscore");
    }
    ((mcp_dir_conf_t *)dir)->control_prefix = value;
    return NULL;
}

static const char *set_session_lifetime(cmd_parms *cmd, void *dir, const char *value)
{
    return says(cmd, mcp_parse_duration(cmd->pool, value, SECONDS(60), SECONDS(31 * 86400),
                                        &((mcp_dir_conf_t *)dir)->session_lifetime));
}

static const char *set_legacy(cmd_parms *cmd, void *dir, const char *value)
{
    return says(cmd, mcp_parse_flag(cmd->pool, value, &((mcp_dir_conf_t *)dir)->serves_legacy));
}

const command_rec mcp_config_commands[] = {
    AP_INIT_ITERATE("MCPPolicyEndpoint", set_policy_endpoint, NULL, RSRC_CONF,
                    "policyd's query socket, ipc:///path or tcp://host:port; several are tried in turn"),
    AP_INIT_TAKE1("MCPPolicyKey", set_policy_key, NULL, RSRC_CONF,
                  "file with the CURVE keys of the link to policyd (httpd.key of policyd --init)"),
    AP_INIT_TAKE1("MCPPolicyTimeout", set_policy_timeout, NULL, RSRC_CONF,
                  "how long one question to policyd may take, such as 2s"),
    AP_INIT_ITERATE("MCPEgressAllow", set_egress_allow, NULL, RSRC_CONF,
                    "origins that may resolve to private addresses, such as http://10.1.2.3:8081, or none"),
    AP_INIT_TAKE1("MCPEgressCAFile", set_egress_ca, NULL, RSRC_CONF,
                  "PEM file of the authorities that upstreams are verified against"),
    AP_INIT_TAKE1("MCPMaxCalls", set_max_calls, NULL, RSRC_CONF,
                  "tool calls that a child runs at once; default half of its threads"),
    AP_INIT_TAKE1("MCPViewCache", set_view_cache, NULL, RSRC_CONF,
                  "memory of a child for tool views and schemas, such as 64M"),
    AP_INIT_TAKE1("MCPEndpoint", set_endpoint, NULL, ACCESS_CONF, "On or Off: serve MCP at this location"),
    AP_INIT_TAKE1("MCPApi", set_api, NULL, ACCESS_CONF,
                  "On or Off: serve the control plane as a REST API below this location"),
    AP_INIT_TAKE1("MCPResource", set_resource, NULL, ACCESS_CONF,
                  "the URL that clients type for this endpoint; tokens are bound to it"),
    AP_INIT_ITERATE("MCPIssuer", add_issuer, NULL, ACCESS_CONF,
                    "issuers of the authorization servers that the metadata names"),
    AP_INIT_ITERATE("MCPAllowOrigin", add_origin, NULL, ACCESS_CONF,
                    "browser origins that may use this endpoint beside its own, or none"),
    AP_INIT_TAKE1("MCPMaxBody", set_max_body, NULL, ACCESS_CONF, "largest request body, such as 4M"),
    AP_INIT_TAKE1("MCPMaxResult", set_max_result, NULL, ACCESS_CONF,
                  "largest answer of an upstream, such as 10M"),
    AP_INIT_TAKE1("MCPCallTimeout", set_call_timeout, NULL, ACCESS_CONF,
                  "longest time of a tool call, such as 60s"),
    AP_INIT_TAKE1("MCPListPage", set_list_page, NULL, ACCESS_CONF, "tools on one page of tools/list"),
    AP_INIT_TAKE1("MCPControlPrefix", set_control_prefix, NULL, ACCESS_CONF,
                  "what the names of control-plane tools begin with, before two underscores"),
    AP_INIT_TAKE1("MCPSessionLifetime", set_session_lifetime, NULL, ACCESS_CONF,
                  "lifetime of a session of a client before 2026-07-28, such as 24h"),
    AP_INIT_TAKE1("MCPLegacy", set_legacy, NULL, ACCESS_CONF,
                  "On or Off: serve the protocol revisions before 2026-07-28"),
    {NULL, {NULL}, NULL, 0, RAW_ARGS, NULL}};

/* --- the whole -------------------------------------------------------------------------- */

int mcp_config_serves(const server_rec *server)
{
    for (; server != NULL; server = server->next) {
        const mcp_server_conf_t *conf = mcp_config_server(server);

        if (conf->endpoints->nelts > 0 || conf->apis->nelts > 0) {
            return 1;
        }
    }
    return 0;
}

/* The path of a REST API that has no resource, on any server; NULL: all have one. */
static const char *api_without_resource(const server_rec *server)
{
    for (; server != NULL; server = server->next) {
        const mcp_server_conf_t *conf = mcp_config_server(server);
        int i;

        for (i = 0; conf->endpoints->nelts == 0 && i < conf->apis->nelts; i++) {
            const mcp_dir_conf_t *api = APR_ARRAY_IDX(conf->apis, i, const mcp_dir_conf_t *);

            if (api->resource == NULL) {
                return api->api_path;
            }
        }
    }
    return NULL;
}

int mcp_config_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *server)
{
    const mcp_server_conf_t *conf = mcp_config_server(server);

    (void)pconf;
    (void)plog;
    (void)ptemp;
    if (!mcp_config_serves(server)) {
        return OK;
    }
    if (conf->policy_endpoints == NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                     "MCP0101: MCPEndpoint needs MCPPolicyEndpoint: name policyd's query socket");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (conf->policy_key == NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                     "MCP0102: MCPEndpoint needs MCPPolicyKey: name the httpd.key that policyd --init made");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (api_without_resource(server) != NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                     "MCP0103: MCPApi at %s/ needs to know what its tokens are for: add MCPResource with the URL of "
                     "the endpoint that grants name, or an MCPEndpoint to this server",
                     api_without_resource(server));
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

/* --- getters ------------------------------------------------------------------------------- */

apr_interval_time_t mcp_config_policy_timeout(const mcp_server_conf_t *conf)
{
    return conf->policy_timeout >= 0 ? conf->policy_timeout : SECONDS(2);
}

apr_int64_t mcp_config_cache_bytes(const mcp_server_conf_t *conf)
{
    return conf->cache_bytes >= 0 ? conf->cache_bytes : 64 * 1024 * 1024;
}

int mcp_config_max_calls(const mcp_server_conf_t *conf, int threads)
{
    if (conf->max_calls > 0) {
        return conf->max_calls;
    }
    return threads > 1 ? threads / 2 : 1;
}

apr_int64_t mcp_config_max_body(const mcp_dir_conf_t *conf)
{
    return conf->max_body >= 0 ? conf->max_body : 4 * 1024 * 1024;
}

apr_int64_t mcp_config_max_result(const mcp_dir_conf_t *conf)
{
    return conf->max_result >= 0 ? conf->max_result : 10 * 1024 * 1024;
}

apr_interval_time_t mcp_config_call_timeout(const mcp_dir_conf_t *conf)
{
    return conf->call_timeout >= 0 ? conf->call_timeout : SECONDS(60);
}

int mcp_config_list_page(const mcp_dir_conf_t *conf)
{
    return conf->list_page > 0 ? conf->list_page : 1000;
}

apr_interval_time_t mcp_config_session_lifetime(const mcp_dir_conf_t *conf)
{
    return conf->session_lifetime >= 0 ? conf->session_lifetime : SECONDS(86400);
}

int mcp_config_serves_legacy(const mcp_dir_conf_t *conf)
{
    return conf->serves_legacy != 0;
}

const char *mcp_config_resource(const mcp_dir_conf_t *conf, const server_rec *server, apr_pool_t *pool)
{
    const char *scheme = server->server_scheme != NULL ? server->server_scheme : "http";
    apr_port_t usual = strcmp(scheme, "https") == 0 ? 443 : 80;
    apr_port_t port = server->port != 0 ? server->port
                      : server->addrs != NULL && server->addrs->host_port != 0
                          ? server->addrs->host_port
                          : usual;

    if (conf->resource != NULL) {
        return conf->resource;
    }
    return port == usual ? apr_pstrcat(pool, scheme, "://", server->server_hostname, conf->path, NULL)
                         : apr_psprintf(pool, "%s://%s:%u%s", scheme, server->server_hostname, port,
                                        conf->path);
}

const char *mcp_config_api_resource(const mcp_dir_conf_t *conf, const server_rec *server, apr_pool_t *pool)
{
    const apr_array_header_t *endpoints = mcp_config_server(server)->endpoints;

    if (conf->resource != NULL) {
        return conf->resource;
    }
    return endpoints->nelts > 0
               ? mcp_config_resource(APR_ARRAY_IDX(endpoints, 0, const mcp_dir_conf_t *), server, pool)
               : NULL;
}

const char *mcp_config_origin(const char *url, apr_pool_t *pool)
{
    const char *host = strstr(url, "://");
    size_t length = host != NULL ? (size_t)(host - url) + 3 : 0;

    return apr_pstrmemdup(pool, url, length + strcspn(url + length, "/?#"));
}
