/* Making of views and guards: see pd_view.h. */
#include "pd_view.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "pd_blob.h"
#include "pd_log.h"
#include "pd_policy.h"

#define MAX_CLASSES 10000 /* manifests kept; beyond, all are made anew */

typedef struct manifest {
    char digest[MCP_DIGEST_HEX + 1];
    const char *bytes;
    size_t count;
    apr_array_header_t *connections; /* of pd_connection_t *, whose chunks it names; of the snapshot in force */
} manifest_t;

struct pd_views {
    apr_pool_t *pool; /* cleared whole: manifests are of one snapshot */
    apr_hash_t *by_class;
};

pd_status_t pd_views_new(pd_views_t **ret)
{
    pd_views_t *views = calloc(1, sizeof(*views));

    if (views == NULL || apr_pool_create(&views->pool, NULL) != APR_SUCCESS) {
        free(views);
        return PD_E_NOMEM;
    }
    views->by_class = apr_hash_make(views->pool);
    *ret = views;
    return PD_OK;
}

void pd_views_free(pd_views_t **views)
{
    if (*views != NULL) {
        apr_pool_destroy((*views)->pool);
        free(*views);
        *views = NULL;
    }
}

void pd_views_clear(pd_views_t *views)
{
    apr_pool_clear(views->pool);
    views->by_class = apr_hash_make(views->pool);
}

int pd_view_rung(unsigned scopes)
{
    scopes = mcp_scope_close(scopes);
    if ((scopes & MCP_SCOPE_DESTRUCTIVE) != 0) {
        return 3;
    }
    if ((scopes & MCP_SCOPE_WRITE) != 0) {
        return 2;
    }
    return (scopes & MCP_SCOPE_READ) != 0 ? 1 : 0;
}

static unsigned scopes_of_rung(int rung)
{
    static const unsigned scopes[PD_RUNGS] = {0, MCP_SCOPE_READ, MCP_SCOPE_WRITE,
                                              MCP_SCOPE_DESTRUCTIVE};

    return mcp_scope_close(scopes[rung]);
}

static int rung_reaches(int rung, mcp_class_t klass)
{
    unsigned needed = mcp_scope_of_class(klass);

    return (scopes_of_rung(rung) & needed) == needed;
}

/* Serialises value (stolen) into pool. */
static pd_status_t text_of(json_t *value, apr_pool_t *pool, const char **ret, size_t *ret_count)
{
    size_t count = 0;
    char *text = value != NULL ? mcp_json_text(value, &count) : NULL;

    json_decref(value);
    if (text == NULL) {
        return PD_E_NOMEM;
    }
    *ret = apr_pstrmemdup(pool, text, count);
    *ret_count = count;
    free(text);
    return PD_OK;
}

/* Our own hints, from the classification. */
static json_t *annotations(const pd_operation_t *operation)
{
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT", "PUT",
                                             "DELETE"};
    int is_idempotent = 0;
    size_t i;

    for (i = 0; i < sizeof(idempotent) / sizeof(idempotent[0]); i++) {
        is_idempotent |= strcmp(operation->method, idempotent[i]) == 0;
    }
    return json_pack("{s:b,s:b,s:b,s:b}", "readOnlyHint", operation->klass == MCP_CLASS_READ,
                     "destructiveHint", operation->klass == MCP_CLASS_DESTRUCTIVE, "idempotentHint",
                     is_idempotent, "openWorldHint", 1);
}

/* The tool object exactly as `tools/list` shows it. */
static json_t *definition(const pd_connection_t *connection, const pd_tool_t *tool)
{
    const pd_operation_t *operation = tool->operation;
    const char *description = operation->description != NULL && operation->description[0] != '\0'
                                  ? operation->description
                                  : operation->id;
    json_t *schema = NULL;
    json_t *def;

    if (mcp_json_parse(operation->schema, operation->schema_bytes, MCP_MAX_DEPTH, &schema, NULL) !=
        MCP_OK) {
        return NULL;
    }
    def = json_pack("{s:s}", "name", tool->name);
    if (def == NULL) {
        json_decref(schema);
        return NULL;
    }
    if (operation->title != NULL) {
        json_object_set_new(def, "title", json_string(operation->title));
    }
    json_object_set_new(def, "description",
                        connection->is_ready
                            ? json_string(description)
                            : json_sprintf("[needs reauthorisation] %s", description));
    json_object_set_new(def, "inputSchema", schema);
    json_object_set_new(def, "annotations", annotations(operation));
    return def;
}

/* The chunk of a connection for a rung, made at its first use and kept in the connection's pool. */
static pd_status_t make_chunk(pd_connection_t *connection, int rung)
{
    json_t *tools = json_array();
    int count = 0;
    pd_status_t status;
    int i;

    for (i = 0; i < connection->tools->nelts; i++) {
        const pd_tool_t *tool = &APR_ARRAY_IDX(connection->tools, i, pd_tool_t);
        json_t *def;

        if (!rung_reaches(rung, tool->operation->klass)) {
            continue;
        }
        def = definition(connection, tool);
        if (def == NULL ||
            json_array_append_new(tools, json_pack("{s:s,s:o,s:s,s:s}", "name", tool->name, "def", def,
                                                   "class", mcp_class_text(tool->operation->klass),
                                                   "op", tool->operation->id)) != 0) {
            json_decref(tools);
            return PD_E_NOMEM;
        }
        count++;
    }
    status = text_of(json_pack("{s:o}", "tools", tools), connection->pool,
                     &connection->chunk[rung].bytes, &connection->chunk[rung].count);
    if (status == PD_OK && connection->chunk[rung].count > MCP_MAX_BLOB_BYTES) {
        pd_log(PD_LOG_ERR, 145, "the tools of connection %s are larger than a blob may be: left out",
               connection->id);
        count = 0;
    }
    if (status == PD_OK) {
        connection->chunk[rung].tools = count;
        mcp_digest_hex(connection->chunk[rung].bytes, connection->chunk[rung].count,
                       connection->chunk[rung].digest);
    }
    return status;
}

static pd_status_t put_chunk(pd_core_t *core, const pd_connection_t *connection, int rung)
{
    return pd_blobs_put(core->policy->blobs, connection->chunk[rung].digest,
                        connection->chunk[rung].bytes, connection->chunk[rung].count);
}

/* Adds one connection to the manifest's chunks. */
static pd_status_t add_chunk(pd_core_t *core, pd_connection_t *connection, int rung,
                             manifest_t *manifest, json_t *chunks)
{
    pd_status_t status = PD_OK;

    if (connection->is_toolbox_only) {
        return PD_OK;
    }
    if (connection->chunk[rung].digest[0] == '\0') {
        status = make_chunk(connection, rung);
    }
    if (status != PD_OK || connection->chunk[rung].tools == 0) {
        return status;
    }
    status = put_chunk(core, connection, rung);
    if (status == PD_OK) {
        APR_ARRAY_PUSH(manifest->connections, pd_connection_t *) = connection;
    }
    if (status == PD_OK &&
        json_array_append_new(
            chunks,
            json_pack("{s:s,s:s,s:s,s:s,s:s,s:i}", "connection", connection->id, "account",
                      connection->label, "connector", connection->connector->slug, "label",
                      connection->connector->label, "digest", connection->chunk[rung].digest, "tools",
                      connection->chunk[rung].tools)) != 0) {
        status = PD_E_NOMEM;
    }
    return status;
}

/* All connections the actor reaches, in the order of their labels: own and shared lists are sorted, and merged. */
static pd_status_t add_chunks(pd_core_t *core, const pd_actor_t *actor, int rung,
                              manifest_t *manifest, json_t *chunks)
{
    const pd_snapshot_t *snapshot = core->policy->snapshot;
    const apr_array_header_t *shared = snapshot->shared;
    const apr_array_header_t *own = pd_snapshot_own(snapshot, actor->member_id);
    int own_count = own != NULL ? own->nelts : 0;
    int i = 0;
    int k = 0;
    pd_status_t status = PD_OK;

    while (status == PD_OK && (i < shared->nelts || k < own_count)) {
        pd_connection_t *a = i < shared->nelts ? APR_ARRAY_IDX(shared, i, pd_connection_t *) : NULL;
        pd_connection_t *b = k < own_count ? APR_ARRAY_IDX(own, k, pd_connection_t *) : NULL;

        if (b == NULL || (a != NULL && strcmp(a->label, b->label) < 0)) {
            status = add_chunk(core, a, rung, manifest, chunks);
            i++;
        } else {
            status = add_chunk(core, b, rung, manifest, chunks);
            k++;
        }
    }
    return status;
}

static pd_status_t make_manifest(pd_core_t *core, const pd_actor_t *actor, int rung, int may_see,
                                 manifest_t *manifest)
{
    json_t *chunks = json_array();
    pd_status_t status = PD_OK;

    manifest->connections = apr_array_make(core->policy->views->pool, 8, sizeof(pd_connection_t *));
    if (may_see) {
        status = add_chunks(core, actor, rung, manifest, chunks);
    }
    if (status != PD_OK) {
        json_decref(chunks);
        return status;
    }
    status = text_of(json_pack("{s:i,s:s,s:o}", "v", 1, "control_prefix",
                               core->config->control_prefix, "chunks", chunks),
                     core->policy->views->pool, &manifest->bytes, &manifest->count);
    if (status == PD_OK) {
        mcp_digest_hex(manifest->bytes, manifest->count, manifest->digest);
    }
    return status;
}

/* Keeps the manifest and every chunk it names readable, and puts again those whose hold ran out. The chunks are held with each
 * naming of the manifest, since whoever reads it asks for them next. */
static pd_status_t hold(pd_core_t *core, int rung, const manifest_t *manifest)
{
    pd_status_t status =
        pd_blobs_put(core->policy->blobs, manifest->digest, manifest->bytes, manifest->count);
    int i;

    for (i = 0; status == PD_OK && i < manifest->connections->nelts; i++) {
        status = put_chunk(core, APR_ARRAY_IDX(manifest->connections, i, const pd_connection_t *), rung);
    }
    return status;
}

pd_status_t pd_view_digest(pd_core_t *core, const pd_actor_t *actor, const char **ret)
{
    pd_views_t *views = core->policy->views;
    int rung = pd_view_rung(actor->scopes);
    int may_see = pd_actor_may(actor, "tool:execute") && (actor->scopes & MCP_SCOPE_TOOLS) != 0;
    int has_own = may_see && pd_snapshot_own(core->policy->snapshot, actor->member_id) != NULL;
    char class_key[MCP_MAX_ID + 16];
    manifest_t *manifest;
    pd_status_t status = PD_OK;

    (void)apr_snprintf(class_key, sizeof(class_key), "%d %d %s", may_see, rung,
                       has_own ? actor->member_id : "");
    manifest = apr_hash_get(views->by_class, class_key, APR_HASH_KEY_STRING);
    if (manifest == NULL) {
        if (apr_hash_count(views->by_class) >= MAX_CLASSES) {
            pd_views_clear(views);
        }
        manifest = apr_pcalloc(views->pool, sizeof(*manifest));
        status = make_manifest(core, actor, rung, may_see, manifest);
        if (status == PD_OK) {
            apr_hash_set(views->by_class, apr_pstrdup(views->pool, class_key), APR_HASH_KEY_STRING,
                         manifest);
        }
    }
    if (status == PD_OK) {
        status = hold(core, rung, manifest);
    }
    if (status == PD_OK) {
        *ret = manifest->digest;
    }
    return status;
}

/* --- guards and operations ------------------------------------------------------ */

/* Splits the required query literals off a template path: [["name","value"], …]. */
static json_t *query_literals(const char *query)
{
    json_t *literals = json_array();

    while (query != NULL && *query != '\0') {
        size_t length = strcspn(query, "&");
        size_t name = strcspn(query, "=&");
        const char *value = name < length ? query + name + 1 : "";
        size_t value_length = name < length ? length - name - 1 : 0;

        json_array_append_new(literals, json_pack("[s%,s%]", query, name, value, value_length));
        query += length;
        query += *query == '&';
    }
    return literals;
}

static json_t *guard_row(const pd_operation_t *operation, int rung)
{
    const char *mark = strchr(operation->path, '?');
    size_t path_length = mark != NULL ? (size_t)(mark - operation->path) : strlen(operation->path);
    const char *verdict = "allow";

    if (operation->klass == MCP_CLASS_FORBIDDEN) {
        verdict = "block";
    } else if (!rung_reaches(rung, operation->klass)) {
        verdict = "deny";
    }
    return json_pack("{s:s,s:s,s:s%,s:o,s:s}", "id", operation->id, "method", operation->method, "path",
                     operation->path, path_length, "query",
                     query_literals(mark != NULL ? mark + 1 : NULL), "verdict", verdict);
}

pd_status_t pd_view_guard(pd_core_t *core, pd_connection_t *connection, int rung, const char **ret)
{
    const apr_array_header_t *operations = connection->connector->operations;
    pd_status_t status = PD_OK;

    if (connection->guard[rung].digest[0] == '\0') {
        json_t *rows = json_array();
        int i;

        for (i = 0; i < operations->nelts; i++) {
            json_array_append_new(
                rows, guard_row(&APR_ARRAY_IDX(operations, i, pd_operation_t), rung));
        }
        status = json_array_size(rows) == (size_t)operations->nelts ? PD_OK : PD_E_NOMEM;
        if (status != PD_OK) {
            json_decref(rows);
            return status;
        }
        status = text_of(json_pack("{s:s,s:o}", "connector", connection->connector->slug, "operations",
                                   rows),
                         connection->pool, &connection->guard[rung].bytes,
                         &connection->guard[rung].count);
        if (status != PD_OK) {
            return status;
        }
        mcp_digest_hex(connection->guard[rung].bytes, connection->guard[rung].count,
                       connection->guard[rung].digest);
    }
    status = pd_blobs_put(core->policy->blobs, connection->guard[rung].digest,
                          connection->guard[rung].bytes, connection->guard[rung].count);
    if (status == PD_OK) {
        *ret = connection->guard[rung].digest;
    }
    return status;
}

pd_status_t pd_view_operation(pd_core_t *core, const pd_operation_t *operation)
{
    return pd_blobs_put(core->policy->blobs, operation->digest, operation->blob,
                        operation->blob_bytes);
}
