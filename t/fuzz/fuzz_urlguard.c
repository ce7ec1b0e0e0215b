/* The guard: five lines of guard blob, verdicts, operation, base and URL (the URL takes the rest).
 * An empty first line means the blob and the verdicts below, for which the outcome is checked
 * against the plainest reading of what was let through. */
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
    "{\"operations\":[{\"id\":\"get\",\"method\":\"GET\",\"path\":\"/users/{id}\"},"
    "{\"id\":\"admin\",\"method\":\"GET\",\"path\":\"/users/admin\"},"
    "{\"id\":\"file\",\"method\":\"GET\",\"path\":\"/files/{+p}\"},"
    "{\"id\":\"log\",\"method\":\"GET\",\"path\":\"/files/{+p}/log\"},"
    "{\"id\":\"do\",\"method\":\"GET\",\"path\":\"/do\"},"
    "{\"id\":\"wipe\",\"method\":\"GET\",\"path\":\"/do\",\"query\":[[\"a\",\"wipe\"]]}]}";
static const char blob_verdicts[] = "adabad";

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
    char *lines[5];
    const char *base;
    const char *url;
    char *at;
    int is_fixed;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return 0;
    }
    at = apr_pstrmemdup(pool, (const char *)data, size);
    for (size_t i = 0; i < 5; ++i) {
        lines[i] = at;
        at += i < 4 ? strcspn(at, "\n") : strlen(at);
        if (*at != '\0') {
            *at++ = '\0';
        }
    }
    is_fixed = lines[0][0] == '\0';
    base = lines[3];
    url = lines[4];
    rules = json_loads(is_fixed ? blob : lines[0], JSON_REJECT_DUPLICATES, NULL);
    if (rules != NULL && mcp_urlguard_compile(rules, pool, &guard, NULL) == APR_SUCCESS &&
        mcp_urlguard_check(guard, is_fixed ? blob_verdicts : lines[1], base, "GET", lines[2], url,
                           pool, NULL) == APR_SUCCESS &&
        is_fixed && strncmp(url, base, strlen(base)) == 0 && strcmp(lines[2], "admin") != 0) {
        check(base, url);
    }
    json_decref(rules);
    apr_pool_destroy(pool);
    return 0;
}
