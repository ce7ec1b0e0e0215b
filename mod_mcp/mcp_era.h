/* Which protocol revision a message speaks: the classifier of the specification digest 2.2, the modern envelope in `_meta`, the
 * mirrored headers (1.3, 1.4). Pure. */
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

const char *mcp_era_text(mcp_revision_t revision);
mcp_revision_t mcp_era_from_text(const char *text); /* MCP_REV_NONE for others */
/* JSON array text of what `server/discover` lists, newest first; without: leave this one out (may be NULL). modern_only for the -32022 of a
 * legacy date in `_meta`. */
const char *mcp_era_supported(const char *without, int modern_only, apr_pool_t *pool);

/* Headers of a request that the classifier and the checks look at; NULL: absent. Values as httpd gives them (duplicates joined by ", "). */
typedef struct mcp_era_headers {
    const char *version;  /* MCP-Protocol-Version */
    const char *method;   /* Mcp-Method */
    const char *name;     /* Mcp-Name */
    const char *session;  /* Mcp-Session-Id */
} mcp_era_headers_t;

typedef struct mcp_era {
    int is_modern;
    int is_initialize;        /* the legacy handshake */
    mcp_revision_t revision;  /* legacy: of the header, else MCP_REV_NONE until the session tells */
    const json_t *meta;       /* modern: params._meta */
    const json_t *capabilities; /* modern: clientCapabilities of this request */
    const char *client_name, *client_version; /* modern: clientInfo, "" when absent */
    const json_t *progress_token; /* NULL: none */
} mcp_era_t;

/* Rows 1 to 11 of the classifier, then the rest of the modern envelope and the mirrored headers, for one request or notification. On refusal err is
 * the digest's answer (MCP_FAIL_ENVELOPE, _HEADER, _VERSION, _METHOD). */
apr_status_t mcp_era_classify(const mcp_era_headers_t *headers, const mcp_rpc_message_t *message, apr_pool_t *pool, mcp_era_t *ret,
                              mcp_err_t *err);

/* Decodes one mirrored value (sentinel base64 of 1.4, blanks stripped). Plain bytes outside 0x20-0x7E and tab are refused. */
apr_status_t mcp_era_decode(const char *value, apr_pool_t *pool, const char **ret, mcp_err_t *err);

/* Legacy `initialize`: the revision to answer for the one asked (never 2026-07-28). */
mcp_revision_t mcp_era_negotiate(const char *asked);

/* Mcp-Param-* against schema annotations (`x-mcp-header`) and arguments (1.5): get(name) returns the request's header or NULL. */
apr_status_t mcp_era_check_params(const json_t *schema, const json_t *arguments, const char *(*get)(void *, const char *), void *baton,
                                  apr_pool_t *pool, mcp_err_t *err);
/* 1 when the annotations of a schema are valid (1.5); a tool with others is not advertised. */
int mcp_era_annotations_valid(const json_t *schema);

#endif
