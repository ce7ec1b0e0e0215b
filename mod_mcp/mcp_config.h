/* Directives of mod_mcp: their table, the configuration they make, and getters with the defaults (doc/directives.md). */
#ifndef MCP_CONFIG_H
#define MCP_CONFIG_H

#include <apr_tables.h>
#include <apr_time.h>

#include "mcp_link.h"
#include "mcp_members.h"
#include "mcp_private.h"

typedef struct mcp_server_conf {
#define MCP_MEMBER(type, name, unset, directive) type name;
    MCP_SERVER_MEMBERS(MCP_MEMBER)
    /* all locations with MCPEndpoint On, in the order of the configuration, of mcp_dir_conf_t *; a virtual host adds to those of the main
     * server, as httpd's own merging of locations does */
    apr_array_header_t *endpoints;
    apr_array_header_t *apis; /* the same for MCPApi On */
    char server_id[33]; /* main server: drawn in post_config, the same in all children of this configuration */
} mcp_server_conf_t;

typedef struct mcp_dir_conf {
    MCP_DIR_MEMBERS(MCP_MEMBER)
#undef MCP_MEMBER
} mcp_dir_conf_t;

extern const command_rec mcp_config_commands[];

void *mcp_config_create_server(apr_pool_t *pool, server_rec *server);
void *mcp_config_merge_server(apr_pool_t *pool, void *base, void *add);
void *mcp_config_create_dir(apr_pool_t *pool, char *path);
void *mcp_config_merge_dir(apr_pool_t *pool, void *base, void *add);

mcp_server_conf_t *mcp_config_server(const server_rec *server);
mcp_dir_conf_t *mcp_config_dir(const request_rec *r);

/* Judges what only the whole configuration tells; httpd runs it with -t too. OK or an error that was logged. */
int mcp_config_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *server);

/* 1 when any server of this configuration has an endpoint or a REST API: then the children need policyd. */
int mcp_config_serves(const server_rec *server);

/* Getters; times in microseconds as apr_interval_time_t. */
apr_interval_time_t mcp_config_policy_timeout(const mcp_server_conf_t *conf); /* 2 s */
apr_int64_t mcp_config_cache_bytes(const mcp_server_conf_t *conf);            /* 64M a child */
/* Half of the child's threads, at least 1. */
int mcp_config_max_calls(const mcp_server_conf_t *conf, int threads);
apr_int64_t mcp_config_max_body(const mcp_dir_conf_t *conf);                  /* 4M */
apr_int64_t mcp_config_max_result(const mcp_dir_conf_t *conf);                /* 10M */
apr_interval_time_t mcp_config_call_timeout(const mcp_dir_conf_t *conf);      /* 60 s */
int mcp_config_list_page(const mcp_dir_conf_t *conf);                         /* 1000 */
apr_interval_time_t mcp_config_session_lifetime(const mcp_dir_conf_t *conf);  /* 24 h */
int mcp_config_serves_legacy(const mcp_dir_conf_t *conf);                     /* on */

/* The endpoint's resource URI: MCPResource, else scheme, ServerName and port of the server and the location's path; in pool. */
const char *mcp_config_resource(const mcp_dir_conf_t *conf, const server_rec *server, apr_pool_t *pool);
/* The resource of a REST API: MCPResource, else that of the server's first endpoint; NULL where there is neither, which mcp_config_check() refuses. */
const char *mcp_config_api_resource(const mcp_dir_conf_t *conf, const server_rec *server, apr_pool_t *pool);
/* Origin of an absolute URL; in pool. */
const char *mcp_config_origin(const char *url, apr_pool_t *pool);

#endif
