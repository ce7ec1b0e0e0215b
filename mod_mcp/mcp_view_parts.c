/* The parts of a plan that travel by digest: operations, advertised schemas, guards and verdicts, each made ready once. */
#include "mcp_view_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

#define POOL_BYTES 8192 /* that a pool has at least: more than most verdicts */

/* Makes what is kept out of the JSON, in own, which keeps the JSON too; NULL when it is not sound. */
typedef void *make_fn(json_t *value, apr_pool_t *own);

static apr_status_t decref(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

static void *make_operation(json_t *value, apr_pool_t *own)
{
    mcp_operation_t *operation = apr_pcalloc(own, sizeof(*operation));
    mcp_schema_t *compiled = NULL;

    operation->definition = value;
    operation->id = mcp_json_str(value, "id");
    operation->method = mcp_json_str(value, "method");
    operation->schema = json_object_get(value, "schema");
    if (operation->id == NULL || operation->method == NULL ||
        mcp_schema_compile(operation->schema, own, &compiled, NULL) != MCP_OK) {
        return NULL;
    }
    operation->compiled = compiled;
    return operation;
}

static void *make_schema(json_t *value, apr_pool_t *own)
{
    mcp_advertised_t *advertised = apr_pcalloc(own, sizeof(*advertised));
    mcp_schema_t *compiled = NULL;

    advertised->schema = json_object_get(value, "schema");
    if (mcp_schema_compile(advertised->schema, own, &compiled, NULL) != MCP_OK) {
        return NULL;
    }
    advertised->compiled = compiled;
    return advertised;
}

static void *make_guard(json_t *value, apr_pool_t *own)
{
    mcp_guard_t *guard = NULL;

    return mcp_urlguard_compile(value, own, &guard, NULL) == APR_SUCCESS ? guard : NULL;
}

/* A kind of part: how it is made, and how much heavier than its text it is (measured). */
typedef struct kind {
    make_fn *make;
    size_t weight;
    const char *log; /* it is not sound */
} kind_t;

static const kind_t an_operation = {make_operation, 15, "an operation's definition is not sound"};
static const kind_t a_schema = {make_schema, 15, "an advertised schema is not sound"};
static const kind_t a_guard = {make_guard, 10, "a guard is not sound"};

/* Fetches, makes and keeps it; NULL: err says why. */
static mcp_cached_t *keep(mcp_views_t *views, mcp_cache_t *cache, const kind_t *kind, const char *digest,
                         int64_t budget_ms, apr_pool_t *pool, mcp_err_t *err)
{
    json_t *value = NULL;
    apr_pool_t *own = NULL;
    size_t bytes = 0;
    void *made;
    mcp_cached_t *cached;
    apr_status_t status = mcp_view_fetch(views, digest, budget_ms, pool, &value, &bytes, err);

    if (status != APR_SUCCESS) {
        return NULL;
    }
    if (mcp_cache_pool(&own) != APR_SUCCESS) {
        json_decref(value);
        (void)mcp_view_not_sound(err, pool, "out of memory");
        return NULL;
    }
    apr_pool_cleanup_register(own, value, decref, apr_pool_cleanup_null);
    made = kind->make(value, own);
    if (made == NULL) {
        apr_pool_destroy(own);
        (void)mcp_view_not_sound(err, pool, kind->log);
        return NULL;
    }
    cached = mcp_cache_put(cache, digest, own, made, bytes * kind->weight);
    if (cached == NULL) {
        (void)mcp_view_not_sound(err, pool, "out of memory");
    }
    return cached;
}

/* The part, from the cache or made; held until pool is cleared. */
static apr_status_t get(mcp_views_t *views, mcp_cache_t *cache, const kind_t *kind, const char *digest,
                        int64_t budget_ms, apr_pool_t *pool, const void **ret, mcp_err_t *err)
{
    mcp_cached_t *cached = mcp_cache_get(cache, digest);

    if (cached == NULL) {
        cached = keep(views, cache, kind, digest, budget_ms, pool, err);
    }
    if (cached == NULL) {
        return MCP_STATUS_REFUSED;
    }
    mcp_cache_release_with(cache, cached, pool);
    *ret = cached->value;
    return APR_SUCCESS;
}

apr_status_t mcp_view_operation(mcp_views_t *views, const char *digest, int64_t budget_ms,
                                apr_pool_t *pool, const mcp_operation_t **ret, mcp_err_t *err)
{
    const void *part = NULL;
    apr_status_t status =
        get(views, views->operations, &an_operation, digest, budget_ms, pool, &part, err);

    if (status == APR_SUCCESS) {
        *ret = part;
    }
    return status;
}

apr_status_t mcp_view_schema(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                             const mcp_advertised_t **ret, mcp_err_t *err)
{
    const void *part = NULL;
    apr_status_t status = get(views, views->schemas, &a_schema, digest, budget_ms, pool, &part, err);

    if (status == APR_SUCCESS) {
        *ret = part;
    }
    return status;
}

apr_status_t mcp_view_guard(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                            const mcp_guard_t **ret, mcp_err_t *err)
{
    const void *part = NULL;
    apr_status_t status = get(views, views->guards, &a_guard, digest, budget_ms, pool, &part, err);

    if (status == APR_SUCCESS) {
        *ret = part;
    }
    return status;
}

/* --- verdicts --------------------------------------------------------------------------- */

/* Fetches and keeps them; NULL: err says why. */
static mcp_cached_t *keep_verdicts(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                                  mcp_err_t *err)
{
    static const char known[] = {MCP_GUARD_ALLOW, MCP_GUARD_DENY, MCP_GUARD_BLOCK, '\0'};
    apr_pool_t *own = NULL;
    char *bytes = NULL;
    char *kept;
    size_t count = 0;
    mcp_cached_t *cached;
    apr_status_t status = mcp_ask_blob(views->ask, digest, budget_ms, pool, &bytes, &count, err);

    if (status != APR_SUCCESS) {
        return NULL;
    }
    if (mcp_cache_pool(&own) != APR_SUCCESS) {
        free(bytes);
        (void)mcp_view_not_sound(err, pool, "out of memory");
        return NULL;
    }
    kept = apr_pstrmemdup(own, bytes, count); /* ends with NUL */
    free(bytes);
    if (strspn(kept, known) != count) { /* a NUL inside ends it before */
        apr_pool_destroy(own);
        (void)mcp_view_not_sound(err, pool, "verdicts have another character than a, d and b");
        return NULL;
    }
    cached = mcp_cache_put(views->verdicts, digest, own, kept, count + POOL_BYTES);
    if (cached == NULL) {
        (void)mcp_view_not_sound(err, pool, "out of memory");
    }
    return cached;
}

apr_status_t mcp_view_verdicts(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                               const char **ret, mcp_err_t *err)
{
    mcp_cached_t *cached = mcp_cache_get(views->verdicts, digest);

    if (cached == NULL) {
        cached = keep_verdicts(views, digest, budget_ms, pool, err);
    }
    if (cached == NULL) {
        return MCP_STATUS_REFUSED;
    }
    mcp_cache_release_with(views->verdicts, cached, pool);
    *ret = cached->value;
    return APR_SUCCESS;
}
