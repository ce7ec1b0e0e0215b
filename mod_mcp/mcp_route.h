/* Routes of the REST door: from method, path, query string, body and If-Match to an operation and its arguments. The table is policyd's
 * (PROTOCOL.md, Blobs). Pure, thread-safe; memory from the pool given. */
#ifndef MCP_ROUTE_H
#define MCP_ROUTE_H

#include "mcp_err.h"

#define MCP_ROUTE_MAX_SEGMENTS 16
#define MCP_ROUTE_MAX_PAIRS    64 /* parameters of a query string */

/* How the text of a parameter becomes a value: of several scalars the first that it has the form of, in this order. */
#define MCP_ROUTE_INTEGER 0x01u
#define MCP_ROUTE_NUMBER  0x02u
#define MCP_ROUTE_BOOLEAN 0x04u
#define MCP_ROUTE_STRING  0x08u
#define MCP_ROUTE_STRINGS 0x10u /* may be repeated: an array */
#define MCP_ROUTE_JSON    0x20u /* JSON text */

typedef struct mcp_route_param {
    const char *name;
    unsigned types;
} mcp_route_param_t;

typedef struct mcp_route {
    const char *op;         /* "members__get" */
    const char *method;
    const char *path;       /* "/members/{member}" */
    const char *permission; /* NULL: none */
    const char *location;   /* path of what was made, or NULL */
    mcp_class_t klass;
    size_t max_bytes;       /* of a body */
    int status;             /* of success */
    int takes_if_revision;
    int segment_count;
    const char *segments[MCP_ROUTE_MAX_SEGMENTS];    /* literals; NULL: a word */
    mcp_route_param_t words[MCP_ROUTE_MAX_SEGMENTS]; /* at the same index; name NULL: a literal */
    int query_count;
    const mcp_route_param_t *query;
} mcp_route_t;

typedef struct mcp_routes mcp_routes_t;

/* Reads a table. MCP_FAIL_UNAVAILABLE when it is not sound. */
apr_status_t mcp_route_compile(const char *text, size_t bytes, apr_pool_t *pool,
                               const mcp_routes_t **ret, mcp_err_t *err);

typedef struct mcp_route_match {
    const mcp_route_t *route;
    const char *words[MCP_ROUTE_MAX_SEGMENTS]; /* decoded; NULL: a literal */
    const char *allow; /* with MCP_FAIL_HTTP_METHOD: the methods that this path has */
} mcp_route_match_t;

/* path: below the door's own, "" or from '/' on, as it was sent, without the query string. HEAD is GET. Literals win over words, from left to right.
 * MCP_FAIL_TOOL with not_found for a path that no operation has, an empty segment or a dot segment; MCP_FAIL_REQUEST for one that is not
 * percent-encoded UTF-8 without control characters; MCP_FAIL_HTTP_METHOD where only the method is another. */
apr_status_t mcp_route_find(const mcp_routes_t *routes, const char *method, const char *path,
                            apr_pool_t *pool, mcp_route_match_t *ret, mcp_err_t *err);

typedef struct mcp_route_input {
    const char *query;    /* as it was sent, or NULL */
    const char *body;     /* NULL: none */
    size_t body_bytes;
    const char *if_match; /* the header, or NULL */
} mcp_route_input_t;

/* The operation's arguments, freed with the pool. MCP_FAIL_REQUEST names the parameter or member that is unknown, repeated, of another type or
 * said twice differently; MCP_FAIL_PARSE: the body is no JSON object; MCP_FAIL_TOO_LARGE: too many values; MCP_FAIL_TOOL with revision_mismatch: no
 * revision can have the ETag that If-Match asks for. No error has a value in it. */
apr_status_t mcp_route_args(const mcp_route_match_t *match, const mcp_route_input_t *input,
                            apr_pool_t *pool, json_t **ret, mcp_err_t *err);

/* The path that was asked for, encoded anew. */
const char *mcp_route_self(const mcp_route_match_t *match, apr_pool_t *pool);
/* The query string of the next page: the one that was sent, which mcp_route_args() took, with another cursor. */
const char *mcp_route_next(const char *query, const char *cursor, apr_pool_t *pool);

/* Path of what an operation made, encoded; NULL where the route has none or the result does not say it. */
const char *mcp_route_location(const mcp_route_t *route, const json_t *result, apr_pool_t *pool);

/* The ETag of an object's revision; NULL where the result has none. */
const char *mcp_route_etag(const json_t *result, apr_pool_t *pool);
/* 1 when If-None-Match names this ETag (weak comparison) or is `*`. */
int mcp_route_is_none_match(const char *header, const char *etag);

#endif
