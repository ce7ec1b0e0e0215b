/* Route table and OpenAPI document of a child: see mcp_api.h. */
#include "mcp_api.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "mcp_cache.h"

#define CACHE_BYTES (16u * 1024 * 1024) /* two documents of two policyds, with room */
#define WEIGHT      8 /* a compiled table weighs so many times its text at most */

struct mcp_api {
    mcp_ask_t *ask;
    mcp_cache_t *tables;
    mcp_cache_t *documents;
};

typedef struct document {
    const char *text;
    size_t bytes;
} document_t;

/* What a blob becomes, in the pool that it will live in; NULL when it is not sound. */
typedef void *make_fn(const char *text, size_t bytes, apr_pool_t *own);

apr_status_t mcp_api_create(mcp_ask_t *ask, mcp_api_t **ret)
{
    mcp_api_t *api = calloc(1, sizeof(*api));

    if (api == NULL) {
        return APR_ENOMEM;
    }
    api->ask = ask;
    if (mcp_cache_create(CACHE_BYTES, &api->tables) != APR_SUCCESS ||
        mcp_cache_create(CACHE_BYTES, &api->documents) != APR_SUCCESS) {
        mcp_api_free(&api);
        return APR_ENOMEM;
    }
    *ret = api;
    return APR_SUCCESS;
}

void mcp_api_free(mcp_api_t **api)
{
    if (*api == NULL) {
        return;
    }
    mcp_cache_free(&(*api)->tables);
    mcp_cache_free(&(*api)->documents);
    free(*api);
    *api = NULL;
}

static apr_status_t not_sound(mcp_err_t *err, apr_pool_t *pool, const char *log)
{
    (void)mcp_err_set(err, pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE,
                      "try again in a moment", "the policy service is not available");
    if (err != NULL) {
        err->log = log;
    }
    return MCP_STATUS_REFUSED;
}

/* Fetches a blob and keeps what it becomes; where two threads do so at once the first one's is kept. */
static apr_status_t fetch(mcp_api_t *api, mcp_cache_t *cache, const char *digest, make_fn *make,
                          int64_t budget_ms, apr_pool_t *pool, mcp_cached_t **ret, mcp_err_t *err)
{
    apr_pool_t *own = NULL;
    char *text = NULL;
    size_t bytes = 0;
    void *value;
    apr_status_t status = mcp_ask_blob(api->ask, digest, budget_ms, pool, &text, &bytes, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    if (mcp_cache_pool(&own) != APR_SUCCESS) {
        free(text);
        return not_sound(err, pool, "out of memory");
    }
    value = make(text, bytes, own);
    free(text);
    if (value == NULL) {
        apr_pool_destroy(own);
        return not_sound(err, pool, "the route table or its description is not what this module reads");
    }
    *ret = mcp_cache_put(cache, digest, own, value, bytes * WEIGHT);
    return *ret != NULL ? APR_SUCCESS : not_sound(err, pool, "out of memory");
}

/* What hello names, made ready and held until pool is cleared. */
static apr_status_t get(mcp_api_t *api, mcp_hello_text_t which, mcp_cache_t *cache, make_fn *make,
                        int64_t budget_ms, apr_pool_t *pool, const void **ret, const char **ret_digest,
                        mcp_err_t *err)
{
    mcp_cached_t *cached;
    apr_status_t status =
        mcp_ask_hello_text(api->ask, which, budget_ms, pool, ret_digest, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    cached = mcp_cache_get(cache, *ret_digest);
    if (cached == NULL) {
        const char *asked = *ret_digest;

        status = fetch(api, cache, asked, make, budget_ms, pool, &cached, err);
        /* a policyd that took the place of the one that named it has its own, and has said so by now */
        if (status != APR_SUCCESS &&
            mcp_ask_hello_text(api->ask, which, budget_ms, pool, ret_digest, err) == APR_SUCCESS &&
            strcmp(asked, *ret_digest) != 0) {
            cached = mcp_cache_get(cache, *ret_digest);
            status = cached != NULL
                         ? APR_SUCCESS
                         : fetch(api, cache, *ret_digest, make, budget_ms, pool, &cached, err);
        }
    }
    if (status == APR_SUCCESS) {
        *ret = cached->value;
        mcp_cache_release_with(cache, cached, pool);
    }
    return status;
}

static void *make_table(const char *text, size_t bytes, apr_pool_t *own)
{
    const mcp_routes_t *routes = NULL;

    return mcp_route_compile(text, bytes, own, &routes, NULL) == APR_SUCCESS
               ? (void *)(uintptr_t)routes
               : NULL;
}

static void *make_document(const char *text, size_t bytes, apr_pool_t *own)
{
    document_t *document = apr_palloc(own, sizeof(*document));

    document->text = apr_pstrmemdup(own, text, bytes);
    document->bytes = bytes;
    return document;
}

apr_status_t mcp_api_routes(mcp_api_t *api, int64_t budget_ms, apr_pool_t *pool, const mcp_routes_t **ret,
                            mcp_err_t *err)
{
    const void *value = NULL;
    const char *digest = NULL;
    apr_status_t status = get(api, MCP_HELLO_ROUTES, api->tables, make_table, budget_ms, pool, &value,
                              &digest, err);

    if (status == APR_SUCCESS) {
        *ret = value;
    }
    return status;
}

apr_status_t mcp_api_document(mcp_api_t *api, int64_t budget_ms, apr_pool_t *pool, const char **ret,
                              size_t *ret_bytes, const char **ret_digest, mcp_err_t *err)
{
    const void *value = NULL;
    apr_status_t status = get(api, MCP_HELLO_OPENAPI, api->documents, make_document, budget_ms, pool,
                              &value, ret_digest, err);

    if (status == APR_SUCCESS) {
        *ret = ((const document_t *)value)->text;
        *ret_bytes = ((const document_t *)value)->bytes;
    }
    return status;
}
