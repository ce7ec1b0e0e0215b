/* From the configuration to a child's objects and back: nothing of ZeroMQ, curl, jansson or libsodium lives in the parent. */
#ifndef MCP_LIFECYCLE_H
#define MCP_LIFECYCLE_H

#include "mcp_private.h"
#include "mcp_turn.h"

/* The child's objects, or NULL where child_init failed or has not run: requests then answer 503. */
const mcp_child_t *mcp_lifecycle_child(void);

/* Hooks, with their reasons in mod_mcp.c. */
int mcp_lifecycle_post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *server);
void mcp_lifecycle_child_init(apr_pool_t *pchild, server_rec *server);
void mcp_lifecycle_child_stopping(apr_pool_t *pchild, int graceful);

#endif
