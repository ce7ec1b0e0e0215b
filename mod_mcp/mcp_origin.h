/* Browser origins: which may use an endpoint, and the CORS headers they need. */
#ifndef MCP_ORIGIN_H
#define MCP_ORIGIN_H

#include "mcp_config.h"
#include "mcp_err.h"

/* Judges the Origin header, where there is one: MCP_FAIL_ORIGIN when it is not this endpoint's own, not in MCPAllowOrigin, `null`, doubled or
 * unparsable. On success the answer's CORS headers are set. */
apr_status_t mcp_origin_check(request_rec *r, const mcp_dir_conf_t *conf, mcp_err_t *err);

/* Answers a preflight (OPTIONS) of an origin that was judged: no token is needed. */
int mcp_origin_preflight(request_rec *r);

#endif
