/* JSON Schema: compiling a document and judging an instance.  The parts are in
 * mcp_schema_*.c; mcp_schema_private.h says which is where. */
#include "mcp_schema.h"

#include <string.h>

#include "mcp_schema_private.h"

/* --- compiling -------------------------------------------------------------------------- */

static bool is_nested(const json_t *json)
{
    return json_is_object(json) || json_is_array(json);
}

/* Recurses to MCP_SCHEMA_MAX_DEPTH at most. */
static bool is_shallow(const json_t *json, size_t depth)
{
    if (!is_nested(json)) {
        return true;
    }
    if (depth >= MCP_SCHEMA_MAX_DEPTH) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        if (!is_shallow(json_array_get(json, i), depth + 1)) {
            return false;
        }
    }
    for (void *at = mcp_schema_first(json); at != NULL; at = mcp_schema_next(json, at)) {
        if (!is_shallow(json_object_iter_value(at), depth + 1)) {
            return false;
        }
    }
    return true;
}

static apr_status_t free_json(void *json)
{
    json_decref(json);
    return APR_SUCCESS;
}

static mcp_wire_status_t compile(mcp_schema_compiler_t *c, const json_t *document,
                                 mcp_schema_t **ret)
{
    mcp_schema_t *schema = apr_pcalloc(c->pool, sizeof(*schema));

    if (document == NULL || !is_shallow(document, 0)) {
        (void)mcp_schema_refuse(c, NULL, "schema", "nested too deeply", NULL);
        return c->status;
    }
    /* A copy of its own: nobody else changes it, and no part of it is in two places, so a
     * place can be told by its address. */
    schema->json = json_deep_copy(document);
    if (schema->json == NULL) {
        return MCP_E_NOMEM;
    }
    apr_pool_cleanup_register(c->pool, schema->json, free_json, apr_pool_cleanup_null);
    c->root = schema->json;
    c->nodes = apr_hash_make(c->temp);
    c->resources = apr_hash_make(c->temp);
    c->pending = apr_array_make(c->temp, 8, sizeof(mcp_schema_pending_t *));
    schema->root = mcp_schema_node(c, schema->json, NULL, NULL);
    if (schema->root == NULL || !mcp_schema_resolve(c)) {
        return c->status;
    }
    *ret = schema;
    return MCP_OK;
}

mcp_wire_status_t mcp_schema_compile(const json_t *schema, apr_pool_t *pool, mcp_schema_t **ret,
                                     mcp_schema_error_t *err)
{
    mcp_schema_error_t own;
    mcp_schema_compiler_t c;
    mcp_wire_status_t status = MCP_E_NOMEM;

    memset(&c, 0, sizeof(c));
    c.err = err == NULL ? &own : err;
    c.status = MCP_E_FIELD;
    /* A pool of the tree's own, so that a refused schema leaves nothing behind. */
    if (apr_pool_create(&c.pool, pool) == APR_SUCCESS) {
        if (apr_pool_create(&c.temp, c.pool) == APR_SUCCESS) {
            if (apr_pool_create(&c.scratch, c.temp) == APR_SUCCESS) {
                status = compile(&c, schema, ret);
            }
            apr_pool_destroy(c.temp);
        }
        if (status != MCP_OK) {
            apr_pool_destroy(c.pool);
        }
    }
    if (status == MCP_E_NOMEM) {
        mcp_schema_text_t text = mcp_schema_error_start(c.err, NULL, "limit");

        mcp_schema_text_add(&text, "out of memory");
    }
    return status;
}

/* --- validating --------------------------------------------------------------------------- */

mcp_wire_status_t mcp_schema_validate(const mcp_schema_t *schema, const json_t *instance,
                                      mcp_schema_error_t *err)
{
    mcp_schema_error_t own;
    mcp_schema_run_t run = {MCP_SCHEMA_MAX_STEPS * (uint64_t)MCP_SCHEMA_UNITS, MCP_SCHEMA_WORK, 0,
                            0, err == NULL ? &own : err};
    mcp_schema_spot_t spot = {instance, NULL, NULL, NULL};

    if (instance == NULL) {
        (void)mcp_schema_fail(&run, NULL, "schema", "there is no value");
        return MCP_E_FIELD;
    }
    switch (mcp_schema_eval(&run, schema->root, &spot, "schema")) {
    case MCP_SCHEMA_VALID:
        return MCP_OK;
    case MCP_SCHEMA_INVALID:
        return MCP_E_FIELD;
    case MCP_SCHEMA_LIMIT:
        (void)mcp_schema_fail(&run, NULL, "limit", "too much work to validate");
        return MCP_E_SIZE;
    case MCP_SCHEMA_NOMEM:
    default:
        (void)mcp_schema_fail(&run, NULL, "limit", "out of memory");
        return MCP_E_NOMEM;
    }
}
