/* Compiling a schema: from a checked copy of the document to nodes. */
#include "mcp_schema_private.h"

#include <string.h>

bool mcp_schema_refuse(mcp_schema_compiler_t *c, const mcp_schema_path_t *path, const char *rule,
                       const char *message, const char *name)
{
    mcp_schema_text_t text = mcp_schema_error_start(c->err, path, rule);

    c->status = MCP_E_FIELD;
    mcp_schema_text_add(&text, message);
    if (name != NULL) {
        mcp_schema_text_add(&text, ": ");
        mcp_schema_text_quote(&text, name);
    }
    return false;
}

const mcp_schema_node_t *mcp_schema_node(mcp_schema_compiler_t *c, const json_t *json,
                                         mcp_schema_resource_t *resource,
                                         const mcp_schema_path_t *path)
{
    const mcp_schema_node_t *known;
    mcp_schema_node_t *node;
    const json_t **key;

    if (json_is_boolean(json)) {
        return json_is_true(json) ? &mcp_schema_true : &mcp_schema_false;
    }
    if (!json_is_object(json)) {
        (void)mcp_schema_refuse(c, path, "schema", "must be an object or a boolean", NULL);
        return NULL;
    }
    known = apr_hash_get(c->nodes, &json, sizeof(json));
    if (known != NULL) {
        return known;
    }
    if (++c->n_nodes > MCP_SCHEMA_MAX_NODES) {
        (void)mcp_schema_refuse(c, path, "limit", "too many subschemas", NULL);
        c->status = MCP_E_SIZE;
        return NULL;
    }
    node = apr_pcalloc(c->pool, sizeof(*node));
    node->boolean = -1;
    node->resource = mcp_schema_enter(c, json, resource, path);
    if (node->resource == NULL) {
        return NULL;
    }
    /* Known before its keywords are: they may lead back here. */
    key = apr_palloc(c->temp, sizeof(const json_t *));
    *key = json;
    apr_hash_set(c->nodes, key, sizeof(*key), node);
    if (!mcp_schema_anchors(c, json, node, path) || !mcp_schema_keywords(c, json, node, path)) {
        return NULL;
    }
    return node;
}
