/* What a request may hold before it is handed to the library: it writes method and headers out
 * as they are. Pure; private to the outbound rooms. */
#ifndef MCP_EGRESS_REQUEST_H
#define MCP_EGRESS_REQUEST_H

#include "mcp_request.h"

/* 1 if the method is a word in capitals that asks for an answer (no CONNECT), and HEAD has no
 * body. */
int mcp_egress_request_has_sendable_method(const mcp_request_t *request);

/* 1 if text is "Name: value" with a token for a name (RFC 9110, 5.1), no control bytes but tabs
 * in the value, and no field that frames the message or names its host. */
int mcp_egress_request_has_sendable_header(const char *text);

#endif
