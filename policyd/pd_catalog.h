/* Connectors: from a connector file to the normalised document that the store keeps,
 * and from that document to the compiled form that views, plans and guards are made of. Pure but
 * for memory. */
#ifndef PD_CATALOG_H
#define PD_CATALOG_H

#include <apr_pools.h>
#include <apr_tables.h>
#include <jansson.h>

#include "pd_err.h"

#define PD_MAX_OPERATIONS   5000          /* a connector */
#define PD_MAX_PARAMETERS   256           /* an operation, its body's properties counted in */
#define PD_MAX_SCHEMA_BYTES (256u * 1024) /* of an operation's inputSchema */

/* The JSON Schema of connector files: the text of conf/connector.schema.json, NUL-terminated. An
 * array, so that a registry row can hold its address. */
extern const char pd_catalog_file_schema[];

/* One operation, compiled. Texts live in the connector's pool. */
typedef struct pd_operation {
    const char *id;      /* as the file names it; pinned */
    const char *method;  /* upper case */
    const char *path;    /* URL template as guards want it: `{name}`, `{+name}` over several
                          * segments, `?a=b` at the end for required literals of its query
                          * (percent-encoded) */
    const json_t *query; /* those literals decoded: array of ["name","value"], may be empty */
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
    apr_uint32_t refs;   /* atomic: any thread */
    const char *id;      /* stable */
    const char *slug;
    const char *label;
    const char *description;
    const char *base_url; /* with {variables} */
    const json_t *doc;   /* the normalised document without its operations; read only */
    int64_t timeout_ms;
    int64_t max_bytes;
    apr_array_header_t *operations; /* of pd_operation_t, sorted bytewise by id */
    const char *guard;   /* the `Guard` blob of PROTOCOL.md: its rows are the operations in this order */
    size_t guard_bytes;
    char guard_digest[MCP_DIGEST_HEX + 1];
} pd_connector_t;

/* Judges a connector file and makes the normalised document: classification filled in, argument
 * names assigned (`arg`), object bodies flattened. file is not changed; *ret_doc:
 * new reference. PD_E_INVALID with *fault, which names the JSON Pointer of the place and what to
 * change. Takes time in the order of 0.1 ms an operation: not for the loop's thread.
 * Thread-safe. */
pd_status_t pd_catalog_check(const json_t *file, json_t **ret_doc, pd_fault_t *fault);

/* The connector file that a normalised document came from, as pd_catalog_check() takes it again
 * with the same result. *ret: new reference. PD_E_CORRUPT: the document is not one. */
pd_status_t pd_catalog_file(const json_t *doc, json_t **ret);

/* Compiles a normalised document (not kept, may be let go afterwards). refs is 1. Any thread. */
pd_status_t pd_catalog_compile(const char *id, const json_t *doc, pd_connector_t **ret);
void pd_catalog_retain(pd_connector_t *connector);
void pd_catalog_release(pd_connector_t **connector);

/* Operation by id, or NULL. */
const pd_operation_t *pd_catalog_operation(const pd_connector_t *connector, const char *id);

/* Base URL with the variables of a connection (defaults applied), in pool: absolute http(s) URL
 * without query and fragment, no userinfo, no trailing slash. Values in host or port must match
 * their enum or pattern. */
pd_status_t pd_catalog_base_url(const json_t *doc, const json_t *variables, apr_pool_t *pool,
                                const char **ret, pd_fault_t *fault);

/* Origin ("https://host:8443": lower case, default port left out) of an URL that
 * pd_catalog_base_url() gave: what a connection's credential is bound to. NULL when it is no such
 * URL. */
const char *pd_catalog_origin(const char *base_url, apr_pool_t *pool);

/* Judges a credential object against the connector's auth scheme: none {}, api_key {"value"}, basic
 * {"username","password"}, bearer {"token"}. */
pd_status_t pd_catalog_credential_check(const json_t *doc, const json_t *credential,
                                        pd_fault_t *fault);

/* `auth` of a plan (PROTOCOL.md call.begin) for a credential; new reference. credential NULL for
 * type none. */
pd_status_t pd_catalog_auth(const json_t *doc, const json_t *credential, json_t **ret);

/* 1 when the scheme needs a credential. */
int pd_catalog_needs_credential(const json_t *doc);

#endif
