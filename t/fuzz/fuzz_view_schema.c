/* Advertised schemas: input is {"schema","frozen","defaults","labels","key"}. What was a schema that
 * compiles must still be one, without the top-level names that were frozen. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <apr_general.h>
#include <jansson.h>

#include "mcp_schema.h"
#include "view_schema.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : 1;
}

static mcp_wire_status_t compile(const json_t *schema)
{
    mcp_schema_t *ret = NULL;
    apr_pool_t *pool = NULL;
    mcp_wire_status_t status;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return MCP_E_NOMEM;
    }
    status = mcp_schema_compile(schema, pool, &ret, NULL);
    apr_pool_destroy(pool);
    return status;
}

/* Patterns that stand twice now may be too large together; nothing else may have become wrong. */
static void check_sound(const json_t *schema)
{
    if (compile(schema) == MCP_E_FIELD) {
        abort();
    }
}

static void check_gone(const json_t *stripped, json_t *frozen)
{
    const char *key;
    json_t *ignored;

    json_object_foreach(frozen, key, ignored)
    {
        if (key[0] != '/' &&
            json_object_get(json_object_get(stripped, "properties"), key) != NULL) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *input = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    json_t *schema = json_object_get(input, "schema");
    json_t *frozen = json_object_get(input, "frozen");
    const char *key = json_string_value(json_object_get(input, "key"));
    int is_sound = schema != NULL && compile(schema) == MCP_OK;
    char name[MCP_VIEW_SCHEMA_NAME];
    json_t *stripped = NULL;
    char why[64];

    if (key != NULL) {
        (void)mcp_view_schema_knows(schema, key); /* either will do */
    }
    if (mcp_view_schema_strip(schema, frozen, json_object_get(input, "defaults"), &stripped, why,
                              sizeof(why)) == MCP_OK) {
        if (is_sound) {
            check_sound(stripped);
        }
        check_gone(stripped, frozen);
        json_decref(stripped);
    }
    if (schema != NULL &&
        mcp_view_schema_choose(schema, json_object_get(input, "labels"), 1, name) == MCP_OK &&
        is_sound) {
        check_sound(schema);
    }
    json_decref(input);
    return 0;
}
