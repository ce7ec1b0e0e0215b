/* The compiled form of connectors: texts in one pool, operations sorted by id, each with its blob
 * and digest, and the guard of them all. See pd_catalog.h. */
#include "pd_catalog.h"

#include <stdlib.h>
#include <string.h>

#include <apr_atomic.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "pd_catalog_private.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define DEFAULT_TIMEOUT_MS 30000
#define DEFAULT_MAX_BYTES (10 * 1024 * 1024)

/* --- the blob of an operation ----------------------------------------------------------- */

static const char *const parameter_members[] = {
    "arg", "name", "in", "required", "style", "explode", "multi_segment", "format", "fixed"};
static const char *const flat_body_members[] = {"content_type", "required", "flatten", "fields"};
static const char *const whole_body_members[] = {"content_type", "required", "arg"};

/* The members of `from` that are named; new reference. */
static json_t *pick(const json_t *from, const char *const *names, size_t count)
{
    json_t *to = json_object();
    size_t i;

    for (i = 0; i < count; i++) {
        const json_t *value = json_object_get(from, names[i]);

        if (value != NULL && json_object_set_new(to, names[i], json_deep_copy(value)) != 0) {
            json_decref(to);
            return NULL;
        }
    }
    return to;
}

/* Parameters, and behind them the literals of the template's query as fixed ones. */
static json_t *blob_parameters(const json_t *op)
{
    json_t *parameters = json_array();
    const json_t *element;
    int failed = 0;
    size_t i;

    json_array_foreach(json_object_get(op, "parameters"), i, element)
    {
        failed |= json_array_append_new(parameters,
                                        pick(element, parameter_members, COUNT(parameter_members)));
    }
    json_array_foreach(json_object_get(op, "query"), i, element)
    {
        const char *name = json_string_value(json_array_get(element, 0));

        failed |= json_array_append_new(
            parameters, json_pack("{s:s,s:s,s:s,s:b,s:O}", "arg", name, "name", name, "in", "query",
                                  "required", 1, "fixed", json_array_get(element, 1)));
    }
    if (failed != 0) {
        json_decref(parameters);
        return NULL;
    }
    return parameters;
}

static json_t *blob_body(const json_t *body)
{
    if (mcp_json_bool(body, "flatten")) {
        return pick(body, flat_body_members, COUNT(flat_body_members));
    }
    return pick(body, whole_body_members, COUNT(whole_body_members));
}

/* All of it but the schema, whose text is there already. */
static json_t *make_head(const char *connector, const json_t *op)
{
    const json_t *body = json_object_get(op, "body");
    json_t *blob = json_object();
    int failed = json_object_set_new(blob, "connector", json_string(connector));

    failed |= json_object_set_new(blob, "id", json_string(mcp_json_str(op, "id")));
    failed |= json_object_set_new(blob, "method", json_string(mcp_json_str(op, "method")));
    failed |= json_object_set_new(blob, "path", json_string(mcp_json_str(op, "path")));
    failed |= json_object_set_new(blob, "parameters", blob_parameters(op));
    if (body != NULL) {
        failed |= json_object_set_new(blob, "body", blob_body(body));
    }
    if (failed != 0) {
        json_decref(blob);
        return NULL;
    }
    return blob;
}

/* {HEAD…,"schema":SCHEMA} */
static pd_status_t join_blob(pd_connector_t *c, const json_t *head, pd_operation_t *o)
{
    static const char name[] = ",\"schema\":";
    size_t bytes = 0;
    char *text = mcp_json_text(head, &bytes);
    char *blob;

    if (text == NULL) {
        return PD_E_NOMEM;
    }
    o->blob_bytes = bytes + sizeof(name) - 1 + o->schema_bytes;
    blob = apr_palloc(c->pool, o->blob_bytes + 1);
    memcpy(blob, text, bytes - 1); /* without the brace */
    memcpy(blob + bytes - 1, name, sizeof(name) - 1);
    memcpy(blob + bytes - 1 + sizeof(name) - 1, o->schema, o->schema_bytes);
    blob[o->blob_bytes - 1] = '}';
    blob[o->blob_bytes] = '\0';
    o->blob = blob;
    free(text);
    return PD_OK;
}

/* --- one operation ------------------------------------------------------------------------ */

static int is_multi_segment(const json_t *op, const char *name, size_t bytes)
{
    const json_t *parameter;
    size_t i;

    json_array_foreach(json_object_get(op, "parameters"), i, parameter)
    {
        const char *own = mcp_json_str(parameter, "name");

        if (mcp_json_bool(parameter, "multi_segment") && strlen(own) == bytes &&
            strncmp(own, name, bytes) == 0) {
            return 1;
        }
    }
    return 0;
}

/* {name} becomes {+name} where it spans several segments: what a guard needs to know of the
 * parameters. NULL: the operation is not a completed one. */
static const char *guard_path(apr_pool_t *pool, const json_t *op)
{
    const char *path = pd_catalog_file_path(pool, op);
    char *buf = path != NULL ? apr_palloc(pool, 2 * strlen(path) + 1) : NULL;
    char *to = buf;

    if (path == NULL) {
        return NULL;
    }
    for (; *path != '\0'; path++) {
        *to++ = *path;
        if (*path == '{' && is_multi_segment(op, path + 1, strcspn(path + 1, "}"))) {
            *to++ = '+';
        }
    }
    *to = '\0';
    return buf;
}

static pd_status_t text_of(apr_pool_t *pool, const json_t *value, const char **ret,
                           size_t *ret_bytes)
{
    size_t bytes;
    char *text = mcp_json_text(value, &bytes);

    if (text == NULL) {
        return PD_E_NOMEM;
    }
    *ret = apr_pstrmemdup(pool, text, bytes);
    *ret_bytes = bytes;
    free(text);
    return PD_OK;
}

static apr_status_t json_cleanup(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

static const char *text_or_null(apr_pool_t *pool, const char *text)
{
    return text == NULL ? NULL : apr_pstrdup(pool, text);
}

static pd_status_t copy_query(pd_connector_t *c, const json_t *op, pd_operation_t *o)
{
    json_t *query = json_object_get(op, "query") == NULL
                        ? json_array()
                        : json_deep_copy(json_object_get(op, "query"));

    if (query == NULL) {
        return PD_E_NOMEM;
    }
    apr_pool_cleanup_register(c->pool, query, json_cleanup, apr_pool_cleanup_null);
    o->query = query;
    return PD_OK;
}

static pd_status_t compile_blob(pd_connector_t *c, const pd_check_t *check, const json_t *op,
                                pd_operation_t *o)
{
    json_t *schema;
    json_t *head;
    pd_status_t status = pd_catalog_input_schema(check, "", op, &schema);

    if (status != PD_OK) {
        return status;
    }
    status = text_of(c->pool, schema, &o->schema, &o->schema_bytes);
    json_decref(schema);
    if (status != PD_OK) {
        return status;
    }
    head = make_head(c->id, op);
    status = head == NULL ? PD_E_NOMEM : join_blob(c, head, o);
    json_decref(head);
    if (status == PD_OK) {
        mcp_digest_hex(o->blob, o->blob_bytes, o->digest);
    }
    return status;
}

static pd_status_t compile_operation(pd_connector_t *c, const pd_check_t *check, const json_t *op,
                                     pd_operation_t *o)
{
    pd_status_t status = copy_query(c, op, o);

    if (status != PD_OK) {
        return status;
    }
    o->id = apr_pstrdup(c->pool, mcp_json_str(op, "id"));
    o->method = apr_pstrdup(c->pool, mcp_json_str(op, "method"));
    o->path = guard_path(c->pool, op);
    if (o->path == NULL) {
        return PD_E_INVALID;
    }
    o->klass = mcp_class_from_text(mcp_json_str(op, "classification"));
    o->title = text_or_null(c->pool, mcp_json_str(op, "summary"));
    o->description = apr_pstrdup(c->pool, mcp_json_str(op, "description"));
    return compile_blob(c, check, op, o);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const pd_operation_t *)a)->id, ((const pd_operation_t *)b)->id);
}

static pd_status_t compile_operations(pd_connector_t *c, const json_t *doc)
{
    const json_t *operations = json_object_get(doc, "operations");
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    pd_check_t check = {.pool = c->pool, .fault = &fault, .slug = c->slug};
    const json_t *op;
    pd_status_t status = PD_OK;
    size_t i;

    if (apr_pool_create(&check.round, c->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    c->operations =
        apr_array_make(c->pool, (int)json_array_size(operations), sizeof(pd_operation_t));
    json_array_foreach(operations, i, op)
    {
        status = compile_operation(c, &check, op, apr_array_push(c->operations));
        apr_pool_clear(check.round);
        if (status != PD_OK) {
            break;
        }
    }
    apr_pool_destroy(check.round);
    qsort(c->operations->elts, (size_t)c->operations->nelts, sizeof(pd_operation_t), by_id);
    return status;
}

/* --- the guard ------------------------------------------------------------------------------- */

/* Splits the required query literals off a template path: [["name","value"], …], as they stand there, percent-encoded. */
static json_t *query_literals(const char *query)
{
    json_t *literals = json_array();
    int failed = literals == NULL;

    while (!failed && *query != '\0') {
        size_t length = strcspn(query, "&");
        size_t name = strcspn(query, "=&");
        const char *value = name < length ? query + name + 1 : "";
        size_t value_length = name < length ? length - name - 1 : 0;

        failed |= json_array_append_new(literals,
                                        json_pack("[s%,s%]", query, name, value, value_length));
        query += length;
        query += *query == '&';
    }
    if (failed != 0) {
        json_decref(literals);
        return NULL;
    }
    return literals;
}

static json_t *guard_row(const pd_operation_t *operation)
{
    size_t path_length = strcspn(operation->path, "?");
    const char *query = operation->path + path_length;

    return json_pack("{s:s,s:s,s:s%,s:o}", "id", operation->id, "method", operation->method, "path",
                     operation->path, path_length, "query",
                     query_literals(*query == '?' ? query + 1 : query));
}

/* All operations as a URL is checked against them, the same for every caller. */
static pd_status_t compile_guard(pd_connector_t *c)
{
    json_t *rows = json_array();
    json_t *guard;
    pd_status_t status = PD_OK;
    int failed = 0;
    int i;

    for (i = 0; i < c->operations->nelts; i++) {
        failed |= json_array_append_new(
            rows, guard_row(&APR_ARRAY_IDX(c->operations, i, pd_operation_t)));
    }
    guard = json_pack("{s:s,s:o}", "connector", c->slug, "operations", rows);
    if (failed != 0 || guard == NULL) {
        status = PD_E_NOMEM;
    }
    if (status == PD_OK) {
        status = text_of(c->pool, guard, &c->guard, &c->guard_bytes);
    }
    json_decref(guard);
    if (status == PD_OK && c->guard_bytes > MCP_MAX_BLOB_BYTES) {
        status = PD_E_INVALID; /* no worker could read it: nothing of the connector can be called */
    }
    if (status == PD_OK) {
        mcp_digest_hex(c->guard, c->guard_bytes, c->guard_digest);
    }
    return status;
}

/* --- the connector -------------------------------------------------------------------------- */

static const char *const frame_members[] = {"slug",      "label", "description", "base_url",
                                            "variables", "auth",  "timeout_ms",  "max_bytes"};

/* What compiling relies on without asking again; a document that pd_catalog_check() made has it. */
static int is_normalised(const json_t *doc)
{
    static const char *const texts[] = {"id", "method", "path", "description", "classification"};
    const json_t *op;
    size_t i;
    size_t k;

    if (mcp_json_str(doc, "slug") == NULL || mcp_json_str(doc, "label") == NULL ||
        mcp_json_str(doc, "base_url") == NULL ||
        mcp_json_str(json_object_get(doc, "auth"), "type") == NULL ||
        json_array_size(json_object_get(doc, "operations")) > PD_MAX_OPERATIONS) {
        return 0;
    }
    json_array_foreach(json_object_get(doc, "operations"), i, op)
    {
        for (k = 0; k < COUNT(texts); k++) {
            if (mcp_json_str(op, texts[k]) == NULL) {
                return 0;
            }
        }
    }
    return 1;
}

static pd_status_t compile_frame(pd_connector_t *c, const char *id, const json_t *doc)
{
    json_t *frame = pick(doc, frame_members, COUNT(frame_members));

    if (frame == NULL) {
        return PD_E_NOMEM;
    }
    apr_pool_cleanup_register(c->pool, frame, json_cleanup, apr_pool_cleanup_null);
    c->id = apr_pstrdup(c->pool, id);
    c->slug = mcp_json_str(frame, "slug");
    c->label = mcp_json_str(frame, "label");
    c->description = mcp_json_str(frame, "description");
    if (c->description == NULL) {
        c->description = "";
    }
    c->base_url = mcp_json_str(frame, "base_url");
    c->doc = frame;
    c->timeout_ms = mcp_json_int(frame, "timeout_ms", DEFAULT_TIMEOUT_MS);
    c->max_bytes = mcp_json_int(frame, "max_bytes", DEFAULT_MAX_BYTES);
    return PD_OK;
}

pd_status_t pd_catalog_compile(const char *id, const json_t *doc, pd_connector_t **ret)
{
    apr_pool_t *pool;
    pd_connector_t *c;
    pd_status_t status;

    if (!is_normalised(doc)) {
        return PD_E_INVALID;
    }
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    c = apr_pcalloc(pool, sizeof(*c));
    c->pool = pool;
    c->refs = 1;
    status = compile_frame(c, id, doc);
    if (status == PD_OK) {
        status = compile_operations(c, doc);
    }
    if (status == PD_OK) {
        status = compile_guard(c);
    }
    if (status != PD_OK) {
        apr_pool_destroy(pool);
        return status;
    }
    *ret = c;
    return PD_OK;
}

void pd_catalog_retain(pd_connector_t *connector)
{
    (void)apr_atomic_inc32(&connector->refs); /* the count before is nobody's business */
}

void pd_catalog_release(pd_connector_t **connector)
{
    pd_connector_t *c = *connector;

    *connector = NULL;
    if (c != NULL && apr_atomic_dec32(&c->refs) == 0) {
        apr_pool_destroy(c->pool);
    }
}

const pd_operation_t *pd_catalog_operation(const pd_connector_t *connector, const char *id)
{
    const pd_operation_t key = {.id = id};

    return bsearch(&key, connector->operations->elts, (size_t)connector->operations->nelts,
                   sizeof(pd_operation_t), by_id);
}
