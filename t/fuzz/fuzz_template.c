/* Expansion of a definition: input is {"operation","base","args","auth"}. What comes out must be
 * fit to send: an absolute URL below the base without a fragment, header lines without control
 * characters. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <jansson.h>

#include "../../proto/mcp_hash.h"
#include "mcp_encode.h"
#include "mcp_template.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS && mcp_hash_init() == MCP_OK ? 0 : 1;
}

static void check(const mcp_request_t *request, const char *base)
{
    mcp_encode_url_t from;
    mcp_encode_url_t to;

    if (mcp_encode_split(base, &from) != 0 || mcp_encode_split(request->url, &to) != 0 ||
        from.host_bytes != to.host_bytes || memcmp(from.host, to.host, to.host_bytes) != 0 ||
        from.port != to.port || strchr(request->url, '#') != NULL) {
        abort();
    }
    for (int i = 0; i < request->headers->nelts; ++i) {
        const char *line = APR_ARRAY_IDX(request->headers, i, const char *);

        if (mcp_encode_has_control(line, strlen(line)) || strstr(line, ": ") == NULL) {
            abort();
        }
    }
    for (int i = 0; i < request->extra_urls->nelts; ++i) {
        if (mcp_encode_split(APR_ARRAY_IDX(request->extra_urls, i, const char *), &to) != 0 ||
            from.host_bytes != to.host_bytes || memcmp(from.host, to.host, to.host_bytes) != 0) {
            abort();
        }
    }
    if (request->body != NULL && request->body[request->body_bytes] != '\0') {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *input =
        json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    const char *base = json_string_value(json_object_get(input, "base"));
    mcp_request_t request = {0};
    apr_pool_t *pool = NULL;

    if (base == NULL || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        json_decref(input);
        return 0;
    }
    if (mcp_template_expand(json_object_get(input, "operation"), base,
                            json_object_get(input, "args"), json_object_get(input, "auth"), pool,
                            &request, NULL) == APR_SUCCESS) {
        check(&request, base);
    }
    apr_pool_destroy(pool);
    json_decref(input);
    return 0;
}
