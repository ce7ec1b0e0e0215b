/* The story of one POST, top to bottom. */
#ifndef MCP_HANDLER_H
#define MCP_HANDLER_H

#include "mcp_private.h"

/* Content handler of a location with MCPEndpoint On; DECLINED elsewhere. */
int mcp_handler(request_rec *r);

#endif
