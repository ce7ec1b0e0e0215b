/* Metadata documents: protected resource metadata (RFC 9728). */
#ifndef MCP_WELLKNOWN_H
#define MCP_WELLKNOWN_H

#include "mcp_config.h"

/* Answers /.well-known/oauth-protected-resource and its path forms where this server has an endpoint; DECLINED for all else. */
int mcp_wellknown_handler(request_rec *r);
/* True for a path that mcp_wellknown_handler() would answer. */
int mcp_wellknown_is_ours(const request_rec *r);
/* URL of an endpoint's metadata document, for challenges. */
const char *mcp_wellknown_url(const mcp_dir_conf_t *conf, const server_rec *server, apr_pool_t *pool);

#endif
