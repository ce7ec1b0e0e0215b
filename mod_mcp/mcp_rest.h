/* The REST door of the control plane: every operation of policyd's registry below a location with MCPApi On, by the route table, and its
 * description as openapi.json (doc/rest.md). */
#ifndef MCP_REST_H
#define MCP_REST_H

#include "mcp_private.h"

/* DECLINED outside of such a location. */
int mcp_rest_handler(request_rec *r);

#endif
