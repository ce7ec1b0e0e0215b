/* A child's caches of immutable things by digest: least recently used first out, bounded in bytes, entries counted by reference so that
 * one that is dropped while in use lives on until its last user lets go. Thread-safe; the mutex is never held across I/O. */
#ifndef MCP_CACHE_H
#define MCP_CACHE_H

#include <apr_pools.h>

#include "../proto/mcp_proto.h"

typedef struct mcp_cache mcp_cache_t;

/* What is kept: made by the caller in a pool of its own, which the cache destroys with the last reference. */
typedef struct mcp_cached {
    char digest[MCP_DIGEST_HEX + 1];
    apr_pool_t *pool;
    void *value;
    size_t bytes; /* what it weighs */
    int refs;     /* the cache's own */
    int is_listed;
    struct mcp_cached *next_hash, *newer, *older;
} mcp_cached_t;

apr_status_t mcp_cache_create(size_t max_bytes, mcp_cache_t **ret);
/* Only when nothing of it is in use. NULL is fine. */
void mcp_cache_free(mcp_cache_t **cache);

/* A pool with an allocator of its own, for a value that several threads will share. */
apr_status_t mcp_cache_pool(apr_pool_t **ret);

/* The entry, referenced for the caller, or NULL. */
mcp_cached_t *mcp_cache_get(mcp_cache_t *cache, const char *digest);
/* Keeps value (and its pool) under digest and returns it referenced; where another thread was faster, its entry comes back and the pool given is
 * destroyed. NULL when out of memory (the pool is destroyed too). */
mcp_cached_t *mcp_cache_put(mcp_cache_t *cache, const char *digest, apr_pool_t *pool, void *value,
                            size_t bytes);
/* Lets go of one reference. */
void mcp_cache_release(mcp_cache_t *cache, mcp_cached_t *cached);
/* The same when `pool` is cleared. */
void mcp_cache_release_with(mcp_cache_t *cache, mcp_cached_t *cached, apr_pool_t *pool);

#endif
