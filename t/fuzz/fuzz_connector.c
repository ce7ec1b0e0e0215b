/* Connector files of any kind: whatever is taken must compile, come back as a file that gives the
 * same document, and give base URLs that are absolute. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>

#include "../../policyd/pd_catalog.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_FILE (256u * 1024)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    json_object_seed(1);
    return apr_initialize() == APR_SUCCESS && mcp_hash_init() == MCP_OK ? 0 : -1;
}

static void require(int holds)
{
    if (!holds) {
        __builtin_trap();
    }
}

static void check_operations(const pd_connector_t *connector)
{
    int i;

    for (i = 0; i < connector->operations->nelts; i++) {
        const pd_operation_t *o = &APR_ARRAY_IDX(connector->operations, i, pd_operation_t);
        json_t *blob = NULL;

        require(pd_catalog_operation(connector, o->id) == o);
        require(o->klass != MCP_CLASS_NONE);
        require(mcp_json_parse(o->blob, o->blob_bytes, 2 * MCP_MAX_DEPTH, &blob, NULL) == MCP_OK);
        json_decref(blob);
    }
}

static void check_base(const json_t *doc)
{
    apr_pool_t *pool;
    const char *base = NULL;
    pd_fault_t fault = {.code = MCP_CODE_NONE};

    require(apr_pool_create(&pool, NULL) == APR_SUCCESS);
    if (pd_catalog_base_url(doc, NULL, pool, &base, &fault) == PD_OK) {
        const char *origin = pd_catalog_origin(base, pool);

        require(origin != NULL && strncmp(base, origin, strlen(origin)) == 0);
        require(strpbrk(base, "?#\\ ") == NULL && strchr(origin, '@') == NULL);
        require(base[strlen(base) - 1] != '/');
    } else {
        require(fault.code != MCP_CODE_NONE);
    }
    apr_pool_destroy(pool);
}

static void check_way_back(const json_t *doc)
{
    json_t *file = NULL;
    json_t *again = NULL;
    pd_fault_t fault = {.code = MCP_CODE_NONE};

    require(pd_catalog_file(doc, &file) == PD_OK);
    require(pd_catalog_check(file, &again, &fault) == PD_OK);
    require(json_equal(doc, again));
    json_decref(again);
    json_decref(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *file = NULL;
    json_t *doc = NULL;
    pd_connector_t *connector = NULL;
    pd_fault_t fault = {.code = MCP_CODE_NONE};

    if (size > MAX_FILE ||
        mcp_json_parse((const char *)data, size, MCP_MAX_DEPTH, &file, NULL) != MCP_OK) {
        return 0;
    }
    if (pd_catalog_check(file, &doc, &fault) == PD_OK) {
        require(pd_catalog_compile("con_1", doc, &connector) == PD_OK);
        check_operations(connector);
        check_base(doc);
        check_way_back(doc);
        pd_catalog_release(&connector);
        json_decref(doc);
    } else {
        require(fault.code != MCP_CODE_NONE && fault.message[0] != '\0');
    }
    json_decref(file);
    return 0;
}
