/* The guard: four lines of guard blob, operation, base and URL (the URL takes the rest). An empty
 * first line means the blob below, for which the verdict is checked against the plainest reading of
 * what was let through. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <jansson.h>

#include "mcp_urlguard.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char blob[] =
    "{\"operations\":[{\"id\":\"get\",\"method\":\"GET\",\"path\":\"/users/"
    "{id}\",\"verdict\":\"allow\"},"
    "{\"id\":\"admin\",\"method\":\"GET\",\"path\":\"/users/admin\",\"verdict\":\"deny\"},"
    "{\"id\":\"file\",\"method\":\"GET\",\"path\":\"/files/{+p}\",\"verdict\":\"allow\"},"
    "{\"id\":\"log\",\"method\":\"GET\",\"path\":\"/files/{+p}/log\",\"verdict\":\"block\"},"
    "{\"id\":\"do\",\"method\":\"GET\",\"path\":\"/do\",\"verdict\":\"allow\"},"
    "{\"id\":\"wipe\",\"method\":\"GET\",\"path\":\"/do\",\"query\":[[\"a\",\"wipe\"]],"
    "\"verdict\":\"deny\"}]}";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : 1;
}

static void check(const char *base, const char *url)
{
    char path[4096];
    size_t bytes = strcspn(url + strlen(base), "?");

    if (bytes >= sizeof(path)) {
        return;
    }
    memcpy(path, url + strlen(base), bytes);
    path[bytes] = '\0';

    if (strncasecmp(base, "http", 4) != 0 || strpbrk(url, " #\\\r\n\t") != NULL) {
        abort();
    }
    if ((bytes == strlen("/users/admin") && strncasecmp(path, "/users/admin", bytes) == 0) ||
        strstr(path, "/../") != NULL || strstr(path, "/%2e%2e/") != NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = NULL;
    mcp_guard_t *guard = NULL;
    json_t *rules;
    char *lines[4];
    char *at;
    int is_fixed;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return 0;
    }
    at = apr_pstrmemdup(pool, (const char *)data, size);
    for (size_t i = 0; i < 4; ++i) {
        lines[i] = at;
        at += i < 3 ? strcspn(at, "\n") : strlen(at);
        if (*at != '\0') {
            *at++ = '\0';
        }
    }
    is_fixed = lines[0][0] == '\0';
    rules = json_loads(is_fixed ? blob : lines[0], JSON_REJECT_DUPLICATES, NULL);
    if (rules != NULL && mcp_urlguard_compile(rules, pool, &guard, NULL) == APR_SUCCESS &&
        mcp_urlguard_check(guard, lines[2], "GET", lines[1], lines[3], pool, NULL) == APR_SUCCESS &&
        is_fixed && strncmp(lines[3], lines[2], strlen(lines[2])) == 0 &&
        strcmp(lines[1], "admin") != 0) {
        check(lines[2], lines[3]);
    }
    json_decref(rules);
    apr_pool_destroy(pool);
    return 0;
}
