/* Why something did not go on: a class that decides the wire's answer (mcp_failure.c alone maps
 * it), a contract code, and words for the client that say what to change. Log text is apart. */
#ifndef MCP_ERR_H
#define MCP_ERR_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <jansson.h>

#include "../proto/mcp_proto.h"

typedef enum mcp_fail {
    MCP_FAIL_NONE = 0,
    /* JSON-RPC errors */
    MCP_FAIL_PARSE,      /* -32700, 400 */
    MCP_FAIL_REQUEST,    /* -32600, 400 */
    MCP_FAIL_METHOD,     /* -32601, 404 modern, 200 legacy */
    MCP_FAIL_ENVELOPE,   /* -32602, 400: the modern envelope */
    MCP_FAIL_PARAMS,     /* -32602, 200: unknown tool, bad cursor, bad params */
    MCP_FAIL_HEADER,     /* -32020, 400 */
    MCP_FAIL_CAPABILITY, /* -32021, 400 */
    MCP_FAIL_VERSION,    /* -32022, 400, data supported/requested */
    MCP_FAIL_INTERNAL,   /* -32603, 200 */
    /* HTTP refusals */
    MCP_FAIL_UNAUTHORIZED, /* 401 with challenge */
    MCP_FAIL_SCOPE,        /* 403 insufficient_scope with challenge */
    MCP_FAIL_ORIGIN,       /* 403 */
    MCP_FAIL_HTTP_METHOD,  /* 405 with Allow */
    MCP_FAIL_ACCEPT,       /* 406 */
    MCP_FAIL_TOO_LARGE,    /* 413 */
    MCP_FAIL_MEDIA,        /* 415 */
    MCP_FAIL_BUSY,         /* 429 with Retry-After */
    MCP_FAIL_SESSION,      /* 404: a legacy session that is unknown or over */
    MCP_FAIL_UNAVAILABLE,  /* 503 with Retry-After */
    /* in-band */
    MCP_FAIL_TOOL /* 200, isError with structuredContent.error */
} mcp_fail_t;

typedef struct mcp_err {
    mcp_fail_t fail;
    mcp_code_t code;     /* contract code; NONE where JSON-RPC says it all */
    apr_status_t status; /* for the log */
    const char *message; /* for the client; holds nothing the caller may not see */
    const char *hint;    /* for the client: what to change; may be NULL */
    const char *log;     /* for the log; may be NULL */
    unsigned scopes;     /* MCP_FAIL_SCOPE: all that are needed */
    int has_credentials; /* MCP_FAIL_UNAUTHORIZED: a token was presented (challenge gets error=) */
    const char *permission; /* permission_denied: which */
    const char *audit;      /* audit id, may be NULL */
    const char *requested;  /* MCP_FAIL_VERSION: what was asked for */
    int is_modern_only;     /* MCP_FAIL_VERSION: the endpoint serves no legacy revision */
} mcp_err_t;

/* Own status codes count up from APR_OS_START_USERERR; compared only inside our files. */
#define MCP_STATUS_REFUSED (APR_OS_START_USERERR + 1) /* err says why */
#define MCP_STATUS_CLOSED (APR_OS_START_USERERR + 2)  /* the link or pool is shut */

/* Fills *err (may be NULL) and returns MCP_STATUS_REFUSED. message from a literal format. */
apr_status_t mcp_err_set(mcp_err_t *err, apr_pool_t *pool, mcp_fail_t fail, mcp_code_t code,
                         const char *hint, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

#endif
