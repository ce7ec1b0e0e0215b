/* API descriptions of any kind: whatever is read and converted, is a connector file that policyd takes, and the same bytes give the same file. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>

#include "../../policyd/oas.h"
#include "../../policyd/pd_catalog.h"
#include "../../proto/mcp_hash.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_DOCUMENT (64u * 1024)

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

/* The connector files of a document, or NULL. */
static json_t *convert(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    char why[256] = "";
    oas_options_t options;
    json_t *root = NULL;
    json_t *files = NULL;
    json_t *report = NULL;
    oas_doc_t *doc = NULL;

    memset(&options, 0, sizeof(options));
    if (oas_read((const char *)data, size, &root, why, sizeof(why)) != OAS_OK) {
        require(why[0] != '\0' && root == NULL);
        return NULL;
    }
    if (oas_doc_make(root, "", NULL, NULL, pool, &doc, why, sizeof(why)) != OAS_OK ||
        oas_convert(doc, &options, pool, &files, &report, why, sizeof(why)) != OAS_OK) {
        require(why[0] != '\0');
        return NULL;
    }
    require(json_is_object(report));
    json_decref(report);
    return files;
}

static void judge(const json_t *file)
{
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    pd_connector_t *connector = NULL;
    json_t *doc = NULL;

    if (pd_catalog_check(file, &doc, &fault) != PD_OK) {
        return; /* refused with its reason: names that are too long, and the like */
    }
    require(pd_catalog_compile("con_fuzz", doc, &connector) == PD_OK);
    pd_catalog_release(&connector);
    json_decref(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    json_t *files;
    json_t *again;
    json_t *file;
    size_t i;

    if (size > MAX_DOCUMENT || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return 0;
    }
    files = convert(data, size, pool);
    again = files != NULL ? convert(data, size, pool) : NULL;
    require(files == NULL || json_equal(files, again));
    json_array_foreach(files, i, file)
    {
        judge(file);
    }
    json_decref(files);
    json_decref(again);
    apr_pool_destroy(pool);
    return 0;
}
