/* Fuzzes what reads header values: the sentinel decoder, the mirrored parameters, the bearer reader
 * and the challenge.  Input: the value, or after a NUL byte a schema with annotations and after
 * another its arguments. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../mod_mcp/mcp_bearer.h"
#include "../../mod_mcp/mcp_era.h"
#include "../../proto/mcp_hash.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static apr_pool_t *root;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK ||
        apr_pool_create(&root, NULL) != APR_SUCCESS)
        __builtin_trap();
    return 0;
}

static const char *get(void *baton, const char *name)
{
    (void)name;
    return baton;
}

static void params(char *value, const char *schema_text, const char *arguments_text,
                   apr_pool_t *pool)
{
    json_t *schema = json_loads(schema_text, JSON_DECODE_ANY, NULL);
    json_t *arguments = json_loads(arguments_text, JSON_DECODE_ANY, NULL);
    (void)mcp_era_annotations_valid(schema);
    (void)mcp_era_check_params(schema, arguments, get, value, pool, NULL);
    json_decref(schema);
    json_decref(arguments);
}

/* No challenge may have a byte that ends the header or a quoted string too early. */
static void challenge(const char *text, apr_pool_t *pool)
{
    mcp_err_t err;
    memset(&err, 0, sizeof err);
    err.fail = MCP_FAIL_SCOPE;
    err.message = text;
    const char *header = mcp_bearer_challenge(&err, text, text, pool);
    int quotes = 0;
    for (const char *p = header; *p != '\0'; p++) {
        if (*p < 0x20 || *p > 0x7e || *p == '\\')
            __builtin_trap();
        quotes += *p == '"';
    }
    if (quotes % 2 != 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = NULL;
    const char *decoded = NULL;
    const char *token = NULL;
    size_t bytes = 0;
    if (apr_pool_create(&pool, root) != APR_SUCCESS)
        __builtin_trap();
    char *text = apr_pstrmemdup(pool, (const char *)data, size);
    if (mcp_era_decode(text, pool, &decoded, NULL) == APR_SUCCESS &&
        !mcp_rpc_is_utf8(decoded, strlen(decoded)))
        __builtin_trap();
    if (mcp_bearer_token(text, pool, &token, &bytes, NULL) == APR_SUCCESS &&
        (bytes == 0 || bytes != strlen(token) || strchr(token, ',') != NULL))
        __builtin_trap();
    challenge(text, pool);
    /* apr_pstrmemdup ends the copy in a NUL, so each part is a text; parts beyond it are empty. */
    const char *end = text + size;
    const char *schema = text + strlen(text);
    schema += schema < end;
    const char *arguments = schema + strlen(schema);
    arguments += arguments < end;
    params(text, schema, arguments, pool);
    apr_pool_destroy(pool);
    return 0;
}
