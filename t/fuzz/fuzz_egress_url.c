/* URL reading and redirect resolution: whatever is taken is one clean line with a clean origin,
 * and reads the same again. Input: base, newline, location. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "mcp_egress_url.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : -1;
}

static void check(const mcp_egress_url_t *url, apr_pool_t *pool)
{
    mcp_egress_url_t again;
    const char *text = apr_pstrcat(pool, url->origin, url->target, NULL);
    if (url->target[0] != '/' || strpbrk(text, " \r\n#\t") != NULL ||
        mcp_egress_url_parse(text, pool, &again) != APR_SUCCESS ||
        strcmp(again.origin, url->origin) != 0 || strcmp(again.target, url->target) != 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    mcp_egress_url_t base;
    mcp_egress_url_t next;
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS)
        return 0;
    char *text = apr_pstrmemdup(pool, (const char *)data, size);
    char *location = strchr(text, '\n');
    if (location != NULL)
        *location++ = '\0';
    if (mcp_egress_url_parse(text, pool, &base) == APR_SUCCESS) {
        check(&base, pool);
        if (location != NULL && mcp_egress_url_resolve(&base, location, pool, &next) == APR_SUCCESS)
            check(&next, pool);
    }
    apr_pool_destroy(pool);
    return 0;
}
