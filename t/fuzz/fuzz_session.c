/* Fuzzes sealed values: ids and cursors as a client may send them, and plain forms that are sealed
 * with our own key, so that what stands behind the seal is reached.  Also the ring of hello. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../mod_mcp/mcp_seal.h"
#include "../../proto/mcp_hash.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static apr_pool_t *root;
static mcp_ring_t ring;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK ||
        apr_pool_create(&root, NULL) != APR_SUCCESS)
        __builtin_trap();
    ring.count = 1;
    memcpy(ring.keys[0].id, "k1", 3);
    memset(ring.keys[0].key, 7, sizeof ring.keys[0].key);
    ring.keys[0].is_current = 1;
    return 0;
}

static void open_both(const char *text, apr_pool_t *pool)
{
    mcp_session_t session;
    int64_t offset = -1;
    if (mcp_unseal_session(&ring, text, "g1", 0, pool, &session, NULL) == APR_SUCCESS &&
        (strcmp(session.grant, "g1") != 0 || session.expires_us <= 0 ||
         session.revision == MCP_REV_NONE || session.capabilities == NULL))
        __builtin_trap();
    if (mcp_unseal_cursor(&ring, text, "v", "g1", pool, &offset, NULL) == APR_SUCCESS && offset < 0)
        __builtin_trap();
}

static void read_ring(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    mcp_ring_t read;
    json_t *keys = json_loadb((const char *)data, size, 0, NULL);
    if (keys != NULL && mcp_seal_ring(keys, &read, pool, NULL) == APR_SUCCESS &&
        mcp_seal_text(&read, "p", "x", 1, pool) == NULL)
        __builtin_trap();
    json_decref(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const purposes[] = {"legacy-session-v1", "list-cursor-v1"};
    apr_pool_t *pool = NULL;
    if (apr_pool_create(&pool, root) != APR_SUCCESS)
        __builtin_trap();
    open_both(apr_pstrmemdup(pool, (const char *)data, size), pool);
    for (size_t i = 0; i < sizeof purposes / sizeof purposes[0]; i++) {
        const char *sealed = mcp_seal_text(&ring, purposes[i], data, size, pool);
        if (sealed != NULL)
            open_both(sealed, pool);
    }
    read_ring(data, size, pool);
    apr_pool_destroy(pool);
    return 0;
}
