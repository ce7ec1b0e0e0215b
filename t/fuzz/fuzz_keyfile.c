/* Fuzzes the reader of the link's key file: what it takes is three keys that stand in the text, what it refuses leaves nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <zmq.h>

#include "../../mod_mcp/mcp_link.h"
#include "../../proto/mcp_hash.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static apr_pool_t *root;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK ||
        apr_pool_create(&root, NULL) != APR_SUCCESS) {
        __builtin_trap();
    }
    return 0;
}

/* A key that libzmq takes and that the text has. */
static void check(const char *key, const char *text, size_t bytes)
{
    unsigned char raw[32];

    if (strlen(key) != 40 || zmq_z85_decode(raw, key) == NULL || memmem(text, bytes, key, 40) == NULL) {
        __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    mcp_link_keys_t keys;
    mcp_link_keys_t before;
    mcp_err_t err;
    apr_pool_t *pool = NULL;

    if (apr_pool_create(&pool, root) != APR_SUCCESS) {
        __builtin_trap();
    }
    memset(&keys, 0x55, sizeof(keys));
    memset(&err, 0, sizeof(err));
    before = keys;
    if (mcp_link_parse_keys(text, size, &keys, pool, &err) == APR_SUCCESS) {
        check(keys.server_public, text, size);
        check(keys.client_public, text, size);
        check(keys.client_secret, text, size);
    } else if (memcmp(&keys, &before, sizeof(keys)) != 0 || err.fail == MCP_FAIL_NONE ||
               err.message == NULL) {
        __builtin_trap();
    }
    apr_pool_destroy(pool);
    return 0;
}
