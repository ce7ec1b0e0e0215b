/* Fuzzes the parsers of directive values: what one accepts it accepts again after normalising, to
 * the same value; what it refuses has a text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../mod_mcp/mcp_parse.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static apr_pool_t *root;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&root, NULL) != APR_SUCCESS)
        __builtin_trap();
    return 0;
}

typedef const char *parse_url_fn(apr_pool_t *, const char *, const char **);

static void normalises(parse_url_fn *parse, const char *text, apr_pool_t *pool)
{
    const char *once = NULL;
    const char *twice = NULL;
    const char *error = parse(pool, text, &once);
    if (error != NULL) {
        if (*error == '\0' || once != NULL)
            __builtin_trap();
        return;
    }
    if (strlen(once) > MCP_PARSE_MAX_URL + 64)
        __builtin_trap();
    if (strlen(once) <= MCP_PARSE_MAX_URL &&
        (parse(pool, once, &twice) != NULL || strcmp(once, twice) != 0))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mcp_parse_word_t words[] = {{"one", 1}, {"two", 2}};
    apr_pool_t *pool = NULL;
    apr_interval_time_t us = -1;
    size_t bytes = 0;
    int64_t number = -1;
    int word = 0;
    int flag = -1;
    if (apr_pool_create(&pool, root) != APR_SUCCESS)
        __builtin_trap();
    const char *text = apr_pstrmemdup(pool, (const char *)data, size);
    if (mcp_parse_duration(pool, text, 1000, 3600000000LL, &us) == NULL &&
        (us < 1000 || us > 3600000000LL))
        __builtin_trap();
    if (mcp_parse_size(pool, text, 1, 1 << 20, &bytes) == NULL && (bytes < 1 || bytes > 1 << 20))
        __builtin_trap();
    if (mcp_parse_int(pool, text, 0, 10, &number) == NULL && (number < 0 || number > 10))
        __builtin_trap();
    if (mcp_parse_enum(pool, text, words, 2, &word) == NULL && word != 1 && word != 2)
        __builtin_trap();
    if (mcp_parse_flag(pool, text, &flag) == NULL && flag != 0 && flag != 1)
        __builtin_trap();
    normalises(mcp_parse_origin, text, pool);
    normalises(mcp_parse_url, text, pool);
    apr_pool_destroy(pool);
    return 0;
}
