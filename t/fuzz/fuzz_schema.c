/* Fuzzes the schema rooms: a schema, then a newline or NUL, then an instance.
 *
 * Beside memory safety: every schema is taken or refused with a reason, every verdict is
 * the same when asked again, and every message is a text. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <jansson.h>

#include "mcp_schema.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FLAGS (JSON_DECODE_ANY | JSON_REJECT_DUPLICATES)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : -1;
}

static void require(int is_so)
{
    if (!is_so) {
        __builtin_trap();
    }
}

static void check_text(const char *text, size_t room)
{
    json_t *json;

    require(memchr(text, '\0', room) != NULL);
    json = json_string(text); /* NULL for what is not UTF-8 */
    require(json != NULL);
    json_decref(json);
}

static void check_error(const mcp_schema_error_t *err)
{
    check_text(err->path, sizeof(err->path));
    check_text(err->rule, sizeof(err->rule));
    check_text(err->message, sizeof(err->message));
    require(err->rule[0] != '\0' && err->message[0] != '\0');
}

static void judge(const mcp_schema_t *schema, const json_t *instance)
{
    mcp_schema_error_t err;
    mcp_schema_error_t again;
    mcp_wire_status_t status = mcp_schema_validate(schema, instance, &err);

    require(status == MCP_OK || status == MCP_E_FIELD || status == MCP_E_SIZE);
    memset(&again, 0, sizeof(again));
    require(mcp_schema_validate(schema, instance, &again) == status);
    if (status != MCP_OK) {
        check_error(&err);
        require(strcmp(err.message, again.message) == 0 && strcmp(err.path, again.path) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t split = 0;
    apr_pool_t *pool;
    json_t *document;
    json_t *instance;
    mcp_schema_t *schema = NULL;
    mcp_schema_error_t err;

    while (split < size && data[split] != '\n' && data[split] != '\0') {
        split++;
    }
    document = json_loadb(text, split, FLAGS, NULL);
    instance = split < size ? json_loadb(text + split + 1, size - split - 1, FLAGS, NULL) : NULL;
    if (document != NULL && apr_pool_create(&pool, NULL) == APR_SUCCESS) {
        if (mcp_schema_compile(document, pool, &schema, &err) != MCP_OK) {
            require(schema == NULL);
            check_error(&err);
        } else if (instance != NULL) {
            judge(schema, instance);
        }
        apr_pool_destroy(pool);
    }
    json_decref(document);
    json_decref(instance);
    return 0;
}
