/* URLs as the outbound room reads them: one strict reading of scheme, host and port, the rest
 * kept as bytes. What the library dials is put together from this reading, so that two parsers
 * cannot disagree about the host. Pure; private to the outbound rooms. */
#ifndef MCP_EGRESS_URL_H
#define MCP_EGRESS_URL_H

#include <apr_pools.h>
#include <apr_tables.h>

#define MCP_EGRESS_URL_MAX 65536 /* bytes of a URL */

typedef struct mcp_egress_url {
    const char *
        origin; /* "https://host:port": lower case, port always there, IPv6 in its canonical form */
    const char *target; /* path and query as they were, at least "/" */
} mcp_egress_url_t;

/* Reads an absolute http or https URL. APR_EINVAL for anything else: user information,
 * fragments, escapes, zones or non-ASCII bytes in the host, port 0, control bytes, spaces, bytes
 * beyond ASCII. Memory from pool. */
apr_status_t mcp_egress_url_parse(const char *text, apr_pool_t *pool, mcp_egress_url_t *ret);

/* 1 if url's origin is one of `allow` (of const char *; NULL: none). Entries that cannot be read
 * allow nothing. Scratch memory from pool. */
int mcp_egress_url_is_allowed(const mcp_egress_url_t *url, const apr_array_header_t *allow,
                              apr_pool_t *pool);

/* Where a Location header leads from base (RFC 3986, 5.2; the fragment is left out). APR_EINVAL
 * if nowhere we could go. Memory from pool. */
apr_status_t mcp_egress_url_resolve(const mcp_egress_url_t *base, const char *location,
                                    apr_pool_t *pool, mcp_egress_url_t *ret);

#endif
