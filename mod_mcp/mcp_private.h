/* The module's symbol and its log macro; included by the [G] rooms alone. */
#ifndef MCP_PRIVATE_H
#define MCP_PRIVATE_H

#include <httpd.h>
#include <http_config.h>
#include <http_log.h>

extern module AP_MODULE_DECLARE_DATA mcp_module;
APLOG_USE_MODULE(mcp);

#endif
