/* Caches by digest: see mcp_cache.h. */
#include "mcp_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <apr_allocator.h>
#include <apr_strings.h>

#define SLOTS 4096 /* a power of two; digests are uniform, so their first digits are the hash */

struct mcp_cache {
    pthread_mutex_t mutex;
    size_t max_bytes;
    size_t bytes;
    mcp_cached_t *slots[SLOTS];
    mcp_cached_t *newest, *oldest;
};

typedef struct release {
    mcp_cache_t *cache;
    mcp_cached_t *cached;
} release_t;

apr_status_t mcp_cache_create(size_t max_bytes, mcp_cache_t **ret)
{
    mcp_cache_t *cache = calloc(1, sizeof(*cache));

    if (cache == NULL) {
        return APR_ENOMEM;
    }
    cache->max_bytes = max_bytes;
    (void)pthread_mutex_init(&cache->mutex, NULL); /* default attributes: can't fail on Linux */
    *ret = cache;
    return APR_SUCCESS;
}

apr_status_t mcp_cache_pool(apr_pool_t **ret)
{
    apr_allocator_t *allocator;
    apr_status_t status = apr_allocator_create(&allocator);

    if (status != APR_SUCCESS) {
        return status;
    }
    status = apr_pool_create_ex(ret, NULL, NULL, allocator);
    if (status != APR_SUCCESS) {
        apr_allocator_destroy(allocator);
        return status;
    }
    apr_allocator_owner_set(allocator, *ret);
    return APR_SUCCESS;
}

static mcp_cached_t **slot_of(mcp_cache_t *cache, const char *digest)
{
    unsigned hash = 0;
    int i;

    for (i = 0; i < 4 && digest[i] != '\0'; i++) {
        hash = hash * 31u + (unsigned char)digest[i];
    }
    return &cache->slots[hash & (SLOTS - 1)];
}

static mcp_cached_t *find(mcp_cache_t *cache, const char *digest)
{
    mcp_cached_t *cached;

    for (cached = *slot_of(cache, digest); cached != NULL; cached = cached->next_hash) {
        if (strcmp(cached->digest, digest) == 0) {
            return cached;
        }
    }
    return NULL;
}

static void unlink_age(mcp_cache_t *cache, mcp_cached_t *cached)
{
    if (cached->newer != NULL) {
        cached->newer->older = cached->older;
    } else {
        cache->newest = cached->older;
    }
    if (cached->older != NULL) {
        cached->older->newer = cached->newer;
    } else {
        cache->oldest = cached->newer;
    }
}

static void link_newest(mcp_cache_t *cache, mcp_cached_t *cached)
{
    cached->newer = NULL;
    cached->older = cache->newest;
    if (cache->newest != NULL) {
        cache->newest->newer = cached;
    } else {
        cache->oldest = cached;
    }
    cache->newest = cached;
}

/* Takes an entry out of the tables; 1 when nobody uses it, so that the caller destroys it outside the mutex. */
static int unlist(mcp_cache_t *cache, mcp_cached_t *cached)
{
    mcp_cached_t **at = slot_of(cache, cached->digest);

    while (*at != cached) {
        at = &(*at)->next_hash;
    }
    *at = cached->next_hash;
    unlink_age(cache, cached);
    cache->bytes -= cached->bytes;
    cached->is_listed = 0;
    return cached->refs == 0;
}

static void destroy(mcp_cached_t *cached)
{
    apr_pool_destroy(cached->pool);
    free(cached);
}

void mcp_cache_free(mcp_cache_t **cache)
{
    if (*cache == NULL) {
        return;
    }
    while ((*cache)->oldest != NULL) {
        mcp_cached_t *cached = (*cache)->oldest;

        if (unlist(*cache, cached)) {
            destroy(cached);
        }
    }
    (void)pthread_mutex_destroy(&(*cache)->mutex);
    free(*cache);
    *cache = NULL;
}

mcp_cached_t *mcp_cache_get(mcp_cache_t *cache, const char *digest)
{
    mcp_cached_t *cached;

    (void)pthread_mutex_lock(&cache->mutex);
    cached = find(cache, digest);
    if (cached != NULL) {
        cached->refs++;
        unlink_age(cache, cached);
        link_newest(cache, cached);
    }
    (void)pthread_mutex_unlock(&cache->mutex);
    return cached;
}

/* Drops the oldest until the rest fits; returns the chain of those to destroy. The newest always stays: a value larger than
 * the cache must not be fetched anew for each request. */
static mcp_cached_t *shrink(mcp_cache_t *cache)
{
    mcp_cached_t *gone = NULL;

    while (cache->bytes > cache->max_bytes && cache->oldest != cache->newest) {
        mcp_cached_t *cached = cache->oldest;

        if (unlist(cache, cached)) {
            cached->next_hash = gone;
            gone = cached;
        }
    }
    return gone;
}

mcp_cached_t *mcp_cache_put(mcp_cache_t *cache, const char *digest, apr_pool_t *pool, void *value,
                            size_t bytes)
{
    mcp_cached_t *made = calloc(1, sizeof(*made));
    mcp_cached_t *other;
    mcp_cached_t *gone = NULL;

    if (made == NULL) {
        apr_pool_destroy(pool);
        return NULL;
    }
    (void)apr_cpystrn(made->digest, digest, sizeof(made->digest));
    made->pool = pool;
    made->value = value;
    made->bytes = bytes;
    made->refs = 1;
    (void)pthread_mutex_lock(&cache->mutex);
    other = find(cache, digest);
    if (other != NULL) {
        other->refs++;
    } else {
        mcp_cached_t **slot = slot_of(cache, digest);

        made->next_hash = *slot;
        *slot = made;
        made->is_listed = 1;
        link_newest(cache, made);
        cache->bytes += bytes;
        gone = shrink(cache);
    }
    (void)pthread_mutex_unlock(&cache->mutex);
    while (gone != NULL) {
        mcp_cached_t *next = gone->next_hash;

        destroy(gone);
        gone = next;
    }
    if (other != NULL) {
        destroy(made);
        return other;
    }
    return made;
}

void mcp_cache_release(mcp_cache_t *cache, mcp_cached_t *cached)
{
    int is_last;

    (void)pthread_mutex_lock(&cache->mutex);
    cached->refs--;
    is_last = cached->refs == 0 && !cached->is_listed;
    (void)pthread_mutex_unlock(&cache->mutex);
    if (is_last) {
        destroy(cached);
    }
}

static apr_status_t release_cleanup(void *baton)
{
    const release_t *release = baton;

    mcp_cache_release(release->cache, release->cached);
    return APR_SUCCESS;
}

void mcp_cache_release_with(mcp_cache_t *cache, mcp_cached_t *cached, apr_pool_t *pool)
{
    release_t *release = apr_palloc(pool, sizeof(*release));

    release->cache = cache;
    release->cached = cached;
    apr_pool_cleanup_register(pool, release, release_cleanup, apr_pool_cleanup_null);
}
