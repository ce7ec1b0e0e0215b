/* Merging and renaming of arguments: input is {"defaults","caller","frozen","rename"}. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <apr_general.h>
#include <jansson.h>

#include "mcp_args.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : 1;
}

/* A top-level frozen key has its value in the result whatever the caller sent, unless a default
 * object lies below. */
static void check_frozen(json_t *frozen, const json_t *merged)
{
    const char *key;
    json_t *value;

    json_object_foreach(frozen, key, value)
    {
        const json_t *got = key[0] == '/' ? NULL : json_object_get(merged, key);
        int has_pointers = 0;
        const char *other;
        json_t *ignored;

        json_object_foreach(frozen, other, ignored)
        {
            has_pointers = has_pointers || other[0] == '/';
        }
        if (key[0] != '/' && !has_pointers && !json_is_object(value) && !json_equal(got, value)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *input = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    json_t *merged = NULL;
    json_t *stripped = NULL;
    json_t *renamed = NULL;
    apr_pool_t *pool = NULL;
    size_t count = 0;

    if (input == NULL || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        json_decref(input);
        return 0;
    }
    if (mcp_args_merge(json_object_get(input, "defaults"), json_object_get(input, "caller"),
                       json_object_get(input, "frozen"), pool, &merged, NULL) == APR_SUCCESS) {
        check_frozen(json_object_get(input, "frozen"), merged);
    }
    (void)mcp_args_strip(json_object_get(input, "caller"), json_object_get(input, "frozen"), pool,
                         &stripped, NULL); /* a refusal is as good */
    if (mcp_args_rename(json_object_get(input, "caller"), json_object_get(input, "rename"), pool,
                        &renamed, NULL) == APR_SUCCESS &&
        json_object_size(renamed) > json_object_size(json_object_get(input, "caller"))) {
        abort();
    }
    json_decref(mcp_args_names(json_object_get(input, "caller"), &count));
    apr_pool_destroy(pool);
    json_decref(input);
    return 0;
}
