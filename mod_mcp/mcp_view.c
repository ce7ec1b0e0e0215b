/* Blobs made ready for use: see mcp_view.h. */
#include "mcp_view.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../proto/mcp_body.h"
#include "mcp_failure.h"

#define GRANTS 1024 /* remembered; a power of two, direct-mapped */

typedef struct known_grant {
    char token_hash[MCP_DIGEST_HEX + 1];
    char grant[MCP_MAX_ID + 1];
} known_grant_t;

/* A view that a thread is making. */
typedef struct making {
    const char *digest;
    struct making *next;
} making_t;

struct mcp_views {
    mcp_ask_t *ask;
    mcp_cache_t *views;
    mcp_cache_t *chunks;
    mcp_cache_t *operations;
    mcp_cache_t *guards;
    pthread_mutex_t mutex; /* guards grants and making */
    pthread_cond_t made;
    making_t *making;
    known_grant_t grants[GRANTS];
};

/* One connection's tools as they came. */
typedef struct chunk {
    json_t *tools; /* read only */
} chunk_t;

apr_status_t mcp_view_create(mcp_ask_t *ask, size_t max_bytes, mcp_views_t **ret)
{
    mcp_views_t *views = calloc(1, sizeof(*views));
    pthread_condattr_t attributes;

    if (views == NULL) {
        return APR_ENOMEM;
    }
    (void)pthread_mutex_init(&views->mutex, NULL); /* default attributes: can't fail on Linux */
    (void)pthread_condattr_init(&attributes); /* nor can these */
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&views->made, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    views->ask = ask;
    if (mcp_cache_create(max_bytes / 2, &views->views) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 4, &views->chunks) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 8, &views->operations) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 8, &views->guards) != APR_SUCCESS) {
        mcp_view_free(&views);
        return APR_ENOMEM;
    }
    *ret = views;
    return APR_SUCCESS;
}

void mcp_view_free(mcp_views_t **views)
{
    if (*views == NULL) {
        return;
    }
    mcp_cache_free(&(*views)->views);
    mcp_cache_free(&(*views)->chunks);
    mcp_cache_free(&(*views)->operations);
    mcp_cache_free(&(*views)->guards);
    (void)pthread_cond_destroy(&(*views)->made);
    (void)pthread_mutex_destroy(&(*views)->mutex);
    free(*views);
    *views = NULL;
}

static apr_status_t decref(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
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

/* A blob as JSON that lives in a new pool of its own. */
static apr_status_t fetch(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                          apr_pool_t **ret_own, json_t **ret, size_t *ret_bytes, mcp_err_t *err)
{
    char *bytes = NULL;
    apr_pool_t *own;
    json_t *value = NULL;
    apr_status_t status = mcp_ask_blob(views->ask, digest, budget_ms, pool, &bytes, ret_bytes, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    if (mcp_json_parse(bytes, *ret_bytes, MCP_MAX_DEPTH + 8, &value, NULL) != MCP_OK ||
        !json_is_object(value)) {
        json_decref(value);
        free(bytes);
        return not_sound(err, pool, "a blob is not the JSON it should be");
    }
    free(bytes);
    if (mcp_cache_pool(&own) != APR_SUCCESS) {
        json_decref(value);
        return not_sound(err, pool, "out of memory");
    }
    apr_pool_cleanup_register(own, value, decref, apr_pool_cleanup_null);
    *ret_own = own;
    *ret = value;
    return APR_SUCCESS;
}

/* --- one maker a view ------------------------------------------------------------------- */

static int is_in_the_making(const mcp_views_t *views, const char *digest)
{
    const making_t *making;

    for (making = views->making; making != NULL; making = making->next) {
        if (strcmp(making->digest, digest) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The right to make this view, waited for until another thread that makes it is done; 0 when the
 * budget is over before. A new child gets all its first lists at once: made by each thread, a large
 * view would cost as many times its memory and time. */
static int claim(mcp_views_t *views, making_t *claimed, int64_t budget_ms)
{
    struct timespec until;
    int is_claimed;
    int code = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* fails for a bad id only */
    until.tv_sec += (time_t)(budget_ms / 1000);
    until.tv_nsec += (long)(budget_ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)pthread_mutex_lock(&views->mutex);
    while (code == 0 && is_in_the_making(views, claimed->digest)) {
        code = pthread_cond_timedwait(&views->made, &views->mutex, &until);
    }
    is_claimed = !is_in_the_making(views, claimed->digest);
    if (is_claimed) {
        claimed->next = views->making;
        views->making = claimed;
    }
    (void)pthread_mutex_unlock(&views->mutex);
    return is_claimed;
}

static void unclaim(mcp_views_t *views, const making_t *claimed)
{
    making_t **at;

    (void)pthread_mutex_lock(&views->mutex);
    for (at = &views->making; *at != claimed; at = &(*at)->next) {
    }
    *at = claimed->next;
    (void)pthread_cond_broadcast(&views->made);
    (void)pthread_mutex_unlock(&views->mutex);
}

/* --- tool views ----------------------------------------------------------------------- */

typedef struct row {
    const char *name;
    const json_t *def;
} row_t;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const row_t *)a)->name, ((const row_t *)b)->name);
}

static apr_status_t get_chunk(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                              const chunk_t **ret, mcp_err_t *err)
{
    mcp_cached_t *cached = mcp_cache_get(views->chunks, digest);

    if (cached == NULL) {
        apr_pool_t *own = NULL;
        json_t *value = NULL;
        size_t bytes = 0;
        chunk_t *chunk;
        apr_status_t status = fetch(views, digest, budget_ms, pool, &own, &value, &bytes, err);

        if (status != APR_SUCCESS) {
            return status;
        }
        chunk = apr_palloc(own, sizeof(*chunk));
        chunk->tools = json_object_get(value, "tools");
        if (!json_is_array(chunk->tools)) {
            apr_pool_destroy(own);
            return not_sound(err, pool, "a chunk has no tools");
        }
        cached = mcp_cache_put(views->chunks, digest, own, chunk, bytes * 7); /* jansson's weight, measured */
        if (cached == NULL) {
            return not_sound(err, pool, "out of memory");
        }
    }
    mcp_cache_release_with(views->chunks, cached, pool);
    *ret = cached->value;
    return APR_SUCCESS;
}

/* What is left of a budget that ends at `until`, by a clock that may be set: never more than the budget. */
static int64_t left_ms(apr_time_t until, int64_t budget_ms)
{
    int64_t left = apr_time_as_msec(until - apr_time_now());

    return left < budget_ms ? left : budget_ms;
}

/* All tools of all chunks, sorted. The budget is that of all of them. */
static apr_status_t gather(mcp_views_t *views, const json_t *manifest, int64_t budget_ms,
                           apr_pool_t *pool, row_t **ret_rows, int *ret_count, mcp_err_t *err)
{
    const json_t *chunks = json_object_get(manifest, "chunks");
    apr_array_header_t *rows = apr_array_make(pool, 256, sizeof(row_t));
    apr_time_t until = apr_time_now() + apr_time_from_msec(budget_ms);
    const json_t *entry;
    size_t i;

    if (!json_is_array(chunks)) {
        return not_sound(err, pool, "a manifest has no chunks");
    }
    json_array_foreach(chunks, i, entry)
    {
        const char *digest = mcp_json_str(entry, "digest");
        const chunk_t *chunk = NULL;
        const json_t *tool;
        size_t k;
        apr_status_t status = digest != NULL
                                  ? get_chunk(views, digest, left_ms(until, budget_ms), pool, &chunk, err)
                                  : not_sound(err, pool, "a manifest names no digest");

        if (status != APR_SUCCESS) {
            return status;
        }
        json_array_foreach(chunk->tools, k, tool)
        {
            row_t *row = apr_array_push(rows);

            row->name = mcp_json_str(tool, "name");
            row->def = json_object_get(tool, "def");
            if (row->name == NULL || !json_is_object(row->def)) {
                return not_sound(err, pool, "a chunk lacks a name or definition");
            }
        }
    }
    qsort(rows->elts, (size_t)rows->nelts, sizeof(row_t), by_name);
    *ret_rows = (row_t *)(void *)rows->elts;
    *ret_count = rows->nelts;
    return APR_SUCCESS;
}

/* Tool objects as one text with the offset of each; without `title` for the oldest revision. */
static apr_status_t join(const row_t *rows, int count, int without_title, apr_pool_t *own,
                         apr_pool_t *scratch, const char **ret, const size_t **ret_offsets,
                         size_t *ret_bytes)
{
    size_t *offsets = apr_palloc(own, sizeof(*offsets) * (size_t)(count + 1));
    const char **texts = apr_palloc(scratch, sizeof(*texts) * (size_t)(count + 1));
    size_t total = 0;
    char *joined;
    int i;

    for (i = 0; i < count; i++) {
        size_t bytes = 0;
        json_t *def = json_copy((json_t *)(uintptr_t)rows[i].def);
        char *text;

        if (def != NULL && without_title) {
            (void)json_object_del(def, "title"); /* absent is fine */
        }
        text = def != NULL ? mcp_json_text(def, &bytes) : NULL;
        json_decref(def);
        if (text == NULL) {
            return APR_ENOMEM;
        }
        texts[i] = apr_pstrmemdup(scratch, text, bytes);
        free(text);
        offsets[i] = total;
        total += bytes + 1; /* and a comma */
    }
    offsets[count] = total;
    joined = apr_palloc(own, total + 1);
    for (i = 0; i < count; i++) {
        size_t bytes = offsets[i + 1] - offsets[i] - 1;

        memcpy(joined + offsets[i], texts[i], bytes);
        joined[offsets[i] + bytes] = ',';
    }
    joined[total] = '\0';
    *ret = joined;
    *ret_offsets = offsets;
    *ret_bytes += total;
    return APR_SUCCESS;
}

/* The list that nearly every client asks for, ready to be sent as it lies here: copying a thousand tools for each
 * request would cost more than sending them. */
static void make_whole(mcp_view_t *view, apr_pool_t *own, apr_pool_t *scratch, size_t *ret_bytes)
{
    mcp_era_t modern;

    memset(&modern, 0, sizeof(modern));
    modern.is_modern = 1;
    view->whole = apr_pstrcat(
        own, "{", mcp_failure_result_head(&modern, scratch), ",\"tools\":[",
        view->count > 0 ? apr_pstrmemdup(scratch, view->joined, view->offsets[view->count] - 1) : "",
        "]" MCP_VIEW_LIST_TAIL "}", NULL);
    view->whole_bytes = strlen(view->whole);
    *ret_bytes += view->whole_bytes;
}

static apr_status_t make_view(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                              mcp_cached_t **ret, mcp_err_t *err)
{
    apr_pool_t *scratch;
    apr_pool_t *own = NULL;
    json_t *manifest = NULL;
    size_t bytes = 0;
    mcp_view_t *view;
    row_t *rows = NULL;
    apr_status_t status;

    status = fetch(views, digest, budget_ms, pool, &own, &manifest, &bytes, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    (void)apr_pool_create(&scratch, pool);
    view = apr_pcalloc(own, sizeof(*view));
    status = gather(views, manifest, budget_ms, scratch, &rows, &view->count, err);
    if (status == APR_SUCCESS &&
        (join(rows, view->count, 0, own, scratch, &view->joined, &view->offsets, &bytes) !=
             APR_SUCCESS ||
         join(rows, view->count, 1, own, scratch, &view->old_joined, &view->old_offsets, &bytes) !=
             APR_SUCCESS)) {
        status = not_sound(err, pool, "out of memory");
    }
    if (status == APR_SUCCESS) {
        make_whole(view, own, scratch, &bytes);
    }
    if (status != APR_SUCCESS) {
        if (err != NULL && err->message != NULL) { /* its texts are of scratch perhaps */
            err->message = apr_pstrdup(pool, err->message);
            err->hint = err->hint != NULL ? apr_pstrdup(pool, err->hint) : NULL;
            err->log = err->log != NULL ? apr_pstrdup(pool, err->log) : NULL;
        }
        apr_pool_destroy(scratch);
        apr_pool_destroy(own);
        return status;
    }
    apr_pool_destroy(scratch);
    *ret = mcp_cache_put(views->views, digest, own, view, bytes);
    return *ret != NULL ? APR_SUCCESS : not_sound(err, pool, "out of memory");
}

apr_status_t mcp_view_get(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                          const mcp_view_t **ret, mcp_err_t *err)
{
    mcp_cached_t *cached = mcp_cache_get(views->views, digest);
    making_t claimed = {digest, NULL};
    apr_status_t status = APR_SUCCESS;

    if (cached == NULL && !claim(views, &claimed, budget_ms)) {
        return not_sound(err, pool, "another request did not get the view in time");
    }
    if (cached == NULL) {
        cached = mcp_cache_get(views->views, digest); /* made while this thread waited */
        if (cached == NULL) {
            status = make_view(views, digest, budget_ms, pool, &cached, err);
        }
        unclaim(views, &claimed);
    }
    if (status == APR_SUCCESS) {
        mcp_cache_release_with(views->views, cached, pool);
        *ret = cached->value;
    }
    return status;
}


/* --- operations and guards --------------------------------------------------------------- */

apr_status_t mcp_view_operation(mcp_views_t *views, const char *digest, int64_t budget_ms,
                                apr_pool_t *pool, const mcp_operation_t **ret, mcp_err_t *err)
{
    mcp_cached_t *cached = mcp_cache_get(views->operations, digest);

    if (cached == NULL) {
        apr_pool_t *own = NULL;
        json_t *value = NULL;
        size_t bytes = 0;
        mcp_schema_t *compiled = NULL;
        mcp_operation_t *operation;
        apr_status_t status = fetch(views, digest, budget_ms, pool, &own, &value, &bytes, err);

        if (status != APR_SUCCESS) {
            return status;
        }
        operation = apr_pcalloc(own, sizeof(*operation));
        operation->definition = value;
        operation->id = mcp_json_str(value, "id");
        operation->method = mcp_json_str(value, "method");
        operation->schema = json_object_get(value, "schema");
        if (operation->id == NULL || operation->method == NULL ||
            mcp_schema_compile(operation->schema, own, &compiled, NULL) != MCP_OK) {
            apr_pool_destroy(own);
            return not_sound(err, pool, "an operation's definition is not sound");
        }
        operation->compiled = compiled;
        cached = mcp_cache_put(views->operations, digest, own, operation, bytes * 15);
        if (cached == NULL) {
            return not_sound(err, pool, "out of memory");
        }
    }
    mcp_cache_release_with(views->operations, cached, pool);
    *ret = cached->value;
    return APR_SUCCESS;
}

apr_status_t mcp_view_guard(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                            const mcp_guard_t **ret, mcp_err_t *err)
{
    mcp_cached_t *cached = mcp_cache_get(views->guards, digest);

    if (cached == NULL) {
        apr_pool_t *own = NULL;
        json_t *value = NULL;
        size_t bytes = 0;
        mcp_guard_t *guard = NULL;
        apr_status_t status = fetch(views, digest, budget_ms, pool, &own, &value, &bytes, err);

        if (status != APR_SUCCESS) {
            return status;
        }
        if (mcp_urlguard_compile(value, own, &guard, NULL) != APR_SUCCESS) {
            apr_pool_destroy(own);
            return not_sound(err, pool, "a guard is not sound");
        }
        cached = mcp_cache_put(views->guards, digest, own, guard, bytes * 10);
        if (cached == NULL) {
            return not_sound(err, pool, "out of memory");
        }
    }
    mcp_cache_release_with(views->guards, cached, pool);
    *ret = cached->value;
    return APR_SUCCESS;
}

/* --- grants -------------------------------------------------------------------------------- */

static known_grant_t *place(mcp_views_t *views, const char *token_hash)
{
    unsigned hash = 0;
    int i;

    for (i = 0; i < 8 && token_hash[i] != '\0'; i++) {
        hash = hash * 31u + (unsigned char)token_hash[i];
    }
    return &views->grants[hash & (GRANTS - 1)];
}

const char *mcp_view_grant(mcp_views_t *views, const char *token_hash, apr_pool_t *pool)
{
    known_grant_t *known = place(views, token_hash);
    const char *grant = NULL;

    (void)pthread_mutex_lock(&views->mutex);
    if (strcmp(known->token_hash, token_hash) == 0) {
        grant = apr_pstrdup(pool, known->grant);
    }
    (void)pthread_mutex_unlock(&views->mutex);
    return grant;
}

void mcp_view_remember(mcp_views_t *views, const char *token_hash, const char *grant)
{
    known_grant_t *known = place(views, token_hash);

    (void)pthread_mutex_lock(&views->mutex);
    (void)apr_cpystrn(known->token_hash, token_hash, sizeof(known->token_hash));
    (void)apr_cpystrn(known->grant, grant, sizeof(known->grant));
    (void)pthread_mutex_unlock(&views->mutex);
}
