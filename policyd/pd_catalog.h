/* Connectors: from a connector file (contract 12) to the normalised document that the store keeps, and
 * from that document to the compiled form that views, plans and guards are made of. Pure but for memory. */
#ifndef PD_CATALOG_H
#define PD_CATALOG_H

#include <apr_pools.h>
#include <apr_tables.h>
#include <jansson.h>

#include "pd_err.h"

#define PD_MAX_OPERATIONS 5000 /* a connector */

/* One operation, compiled. Texts live in the connector's pool. */
typedef struct pd_operation {
    const char *id;      /* as the file names it; pinned */
    const char *method;  /* upper case */
    const char *path;    /* URL template */
    mcp_class_t klass;
    const char *title;   /* summary, may be NULL */
    const char *description;
    const char *schema;  /* inputSchema text (compact JSON), as advertised and as validated */
    size_t schema_bytes;
    const char *blob;    /* the `Operation` blob of PROTOCOL.md */
    size_t blob_bytes;
    char digest[MCP_DIGEST_HEX + 1];
} pd_operation_t;

typedef struct pd_connector {
    apr_pool_t *pool;    /* its own; destroyed by pd_catalog_release() at the last reference */
    int refs;            /* loop's thread only */
    const char *id;      /* stable */
    const char *slug;
    const char *label;
    const char *description;
    const char *base_url; /* with {variables} */
    const json_t *doc;   /* the normalised document; read only */
    int64_t timeout_ms;
    int64_t max_bytes;
    apr_array_header_t *operations; /* of pd_operation_t, sorted bytewise by id */
} pd_connector_t;

/* Judges a connector file and makes the normalised document: classification filled in, argument names
 * assigned (`arg`), object bodies flattened (decisions 7.1). *ret_doc: new reference. */
pd_status_t pd_catalog_check(const json_t *file, json_t **ret_doc, pd_fault_t *fault);

/* Compiles a normalised document. refs is 1. */
pd_status_t pd_catalog_compile(const char *id, const json_t *doc, pd_connector_t **ret);
void pd_catalog_retain(pd_connector_t *connector);
void pd_catalog_release(pd_connector_t **connector);

/* Operation by id, or NULL. */
const pd_operation_t *pd_catalog_operation(const pd_connector_t *connector, const char *id);

/* Base URL with the variables of a connection (defaults applied), in pool: absolute http(s) URL without
 * query and fragment, no userinfo, no trailing slash. Values in host or port must match their enum or pattern. */
pd_status_t pd_catalog_base_url(const json_t *doc, const json_t *variables, apr_pool_t *pool,
                                const char **ret, pd_fault_t *fault);

/* Judges a credential object against the connector's auth scheme: none {}, api_key {"value"}, basic
 * {"username","password"}, bearer {"token"}. */
pd_status_t pd_catalog_credential_check(const json_t *doc, const json_t *credential, pd_fault_t *fault);

/* `auth` of a plan (PROTOCOL.md call.begin) for a credential; new reference. credential NULL for type none. */
pd_status_t pd_catalog_auth(const json_t *doc, const json_t *credential, json_t **ret);

/* 1 when the scheme needs a credential. */
int pd_catalog_needs_credential(const json_t *doc);

#endif
