/* Counters of all children in memory that they share, and the section of mod_status that shows them. What leaves no row in the trail (broken
 * envelopes, unknown tokens) is counted here. */
#ifndef MCP_STATUS_H
#define MCP_STATUS_H

#include "mcp_err.h"
#include "mcp_private.h"

/* In post_config, in the parent: a segment that lives as long as this configuration. */
apr_status_t mcp_status_create(apr_pool_t *pconf);
/* One request to an endpoint; any thread of any child. */
void mcp_status_request(void);
/* One refusal, by its class. */
void mcp_status_refusal(mcp_fail_t fail);
/* Hook of mod_status (optional hook status_hook). */
int mcp_status_show(request_rec *r, int flags);

#endif
