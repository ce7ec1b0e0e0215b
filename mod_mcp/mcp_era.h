/* Which protocol revision a message speaks: the classifier of the specification, the
 * modern envelope in `_meta`, the mirrored headers (1.3 to 1.5; those in mcp_header.c).  Pure. */
#ifndef MCP_ERA_H
#define MCP_ERA_H

#include "mcp_err.h"
#include "mcp_rpc.h"

typedef enum mcp_revision {
    MCP_REV_NONE = 0,
    MCP_REV_2025_03_26,
    MCP_REV_2025_06_18,
    MCP_REV_2025_11_25,
    MCP_REV_2026_07_28
} mcp_revision_t;

/* The `_meta` keys (digest, section 0). */
#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_CLIENT       "io.modelcontextprotocol/clientInfo"
#define MCP_META_LOG_LEVEL    "io.modelcontextprotocol/logLevel"
#define MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"
#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

const char *mcp_era_text(mcp_revision_t revision); /* "" for MCP_REV_NONE */
mcp_revision_t mcp_era_from_text(const char *text); /* MCP_REV_NONE for others and NULL */
/* JSON array text of what `server/discover` lists, newest first; without: leave this one out (may
 * be NULL). modern_only for the -32022 of a legacy date in `_meta`. */
const char *mcp_era_supported(const char *without, int modern_only, apr_pool_t *pool);

/* Headers of a request that the classifier and the checks look at; NULL: absent. Values as httpd
 * gives them (duplicates joined by ", "). */
typedef struct mcp_era_headers {
    const char *version; /* MCP-Protocol-Version */
    const char *method;  /* Mcp-Method */
    const char *name;    /* Mcp-Name */
    const char *session; /* Mcp-Session-Id; not looked at here */
} mcp_era_headers_t;

typedef struct mcp_era {
    int is_modern;
    int is_initialize;       /* the legacy handshake */
    mcp_revision_t revision; /* legacy: of the header, else MCP_REV_NONE until the session tells;
                                of an `initialize`: the one to answer (mcp_era_negotiate) */
    const json_t *meta;         /* params._meta, or NULL; always there in a modern request */
    const json_t *capabilities; /* modern: clientCapabilities of this request */
    const char *client_name, *client_version; /* modern: clientInfo, "" when absent; each cut to
                                                 MCP_MAX_TEXT bytes */
    const json_t *progress_token; /* string or integer; NULL: none */
    int is_indirect;         /* the call came by execute_tool: headers mirror that tool's arguments */
} mcp_era_t;

/* Rows 1 to 11 of the classifier, then the rest of the modern envelope and the mirrored headers,
 * for one request or notification whose err.fail is MCP_FAIL_NONE. On refusal err is the digest's
 * answer (MCP_FAIL_ENVELOPE, _HEADER, _VERSION with `requested`, _METHOD; _PARAMS for a bad log
 * level). A notification is modern when header or `_meta` names 2026-07-28; neither its envelope
 * nor its headers are enforced then. A posted response is refused (MCP_FAIL_REQUEST) with a modern
 * header, else classified legacy; whether anything was asked is the caller's to know. */
apr_status_t mcp_era_classify(const mcp_era_headers_t *headers, const mcp_rpc_message_t *message,
                              apr_pool_t *pool, mcp_era_t *ret, mcp_err_t *err);

/* Whether an array body may be served at all: MCP_FAIL_REQUEST unless header and
 * session, where there, both say 2025-03-26 (neither: assumed), no element makes a claim in `_meta`
 * and none is an `initialize`; MCP_FAIL_VERSION for a header that is not served. session:
 * MCP_REV_NONE without one. To be asked before any element is run. */
apr_status_t mcp_era_check_batch(const mcp_era_headers_t *headers, const mcp_rpc_body_t *body,
                                 mcp_revision_t session, apr_pool_t *pool, mcp_err_t *err);

/* Decodes one mirrored value (sentinel base64 of 1.4, blanks stripped). Plain bytes outside
 * 0x20-0x7E and tab, and sentinels that are not canonical base64 of UTF-8, are refused
 * (MCP_FAIL_HEADER). */
apr_status_t mcp_era_decode(const char *value, apr_pool_t *pool, const char **ret, mcp_err_t *err);

/* Legacy `initialize`: the revision to answer for the one asked (never 2026-07-28; NULL gives the
 * newest legacy one). */
mcp_revision_t mcp_era_negotiate(const char *asked);

/* Mcp-Param-* against schema annotations (`x-mcp-header`) and arguments (1.5): get(name) returns
 * the request's header or NULL. arguments may be NULL. An argument that is an object or array, or a
 * number with a fraction, is left to argument validation, which has to follow.
 * Annotations at invalid places are not looked at. */
apr_status_t mcp_era_check_params(const json_t *schema, const json_t *arguments,
                                  const char *(*get)(void *, const char *), void *baton,
                                  apr_pool_t *pool, mcp_err_t *err);
/* 1 when the annotations of a schema are valid (1.5), none included; a tool with others is not
 * advertised. At most MCP_ERA_MAX_ANNOTATIONS, in at most MCP_MAX_DEPTH levels of schemas. */
#define MCP_ERA_MAX_ANNOTATIONS 32
int mcp_era_annotations_valid(const json_t *schema);

#endif
