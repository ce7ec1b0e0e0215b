/* An outbound request and its response, as template, guard and egress share them. */
#ifndef MCP_REQUEST_H
#define MCP_REQUEST_H

#include <apr_pools.h>
#include <apr_tables.h>

typedef struct mcp_request {
    const char *method;
    const char *url;          /* absolute; sent byte for byte */
    apr_array_header_t *headers; /* of const char *: "Name: value", no CR, LF or NUL */
    const char *body;         /* NULL: none */
    size_t body_bytes;
    apr_array_header_t *extra_urls; /* of const char *: URL-valued parameters, guarded like url */
    int is_idempotent;        /* may be sent again when nothing was answered */
} mcp_request_t;

typedef struct mcp_response {
    int status;
    const char *content_type; /* "" if none */
    const char *body;         /* NUL-terminated beyond body_bytes */
    size_t body_bytes;
    const char *location;     /* of a redirect that was not followed, or NULL */
    const char *retry_after;  /* as the application wrote it, or NULL */
} mcp_response_t;

#endif
