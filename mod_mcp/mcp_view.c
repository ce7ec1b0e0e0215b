/* Tool views made ready for use, and what the room shares: see mcp_view.h. */
#include "mcp_view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_names.h"
#include "../proto/view_footprint.h"
#include "mcp_view_private.h"

/* --- life -------------------------------------------------------------------------------- */

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
    if (mcp_cache_create(max_bytes / 4, &views->views) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 16 * 3, &views->chunks) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 8, &views->operations) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 16, &views->schemas) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 32 * 3, &views->guards) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 64, &views->verdicts) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 64, &views->lexica) != APR_SUCCESS ||
        mcp_cache_create(max_bytes / 4, &views->indices) != APR_SUCCESS) {
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
    mcp_cache_free(&(*views)->schemas);
    mcp_cache_free(&(*views)->guards);
    mcp_cache_free(&(*views)->verdicts);
    mcp_cache_free(&(*views)->indices); /* before the lexica, which they hold */
    mcp_cache_free(&(*views)->lexica);
    (void)pthread_cond_destroy(&(*views)->made);
    (void)pthread_mutex_destroy(&(*views)->mutex);
    free(*views);
    *views = NULL;
}

apr_status_t mcp_view_not_sound(mcp_err_t *err, apr_pool_t *pool, const char *log)
{
    (void)mcp_err_set(err, pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE,
                      "try again in a moment", "the policy service is not available");
    if (err != NULL) {
        err->log = log;
    }
    return MCP_STATUS_REFUSED;
}

apr_status_t mcp_view_fetch(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                            json_t **ret, size_t *ret_bytes, mcp_err_t *err)
{
    char *bytes = NULL;
    json_t *value = NULL;
    apr_status_t status = mcp_ask_blob(views->ask, digest, budget_ms, pool, &bytes, ret_bytes, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    if (mcp_json_parse(bytes, *ret_bytes, MCP_MAX_DEPTH + 8, &value, NULL) != MCP_OK ||
        !json_is_object(value)) {
        json_decref(value);
        free(bytes);
        return mcp_view_not_sound(err, pool, "a blob is not the JSON it should be");
    }
    free(bytes);
    *ret = value;
    return APR_SUCCESS;
}

/* --- one maker a view ------------------------------------------------------------------- */

static int is_in_the_making(const mcp_views_t *views, const char *key)
{
    const mcp_view_making_t *making;

    for (making = views->making; making != NULL; making = making->next) {
        if (strcmp(making->key, key) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A new child gets all its first lists at once: made by each thread, a large
 * view would cost as many times its memory and time. */
int mcp_view_claim(mcp_views_t *views, mcp_view_making_t *claimed, int64_t budget_ms)
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
    while (code == 0 && is_in_the_making(views, claimed->key)) {
        code = pthread_cond_timedwait(&views->made, &views->mutex, &until);
    }
    is_claimed = !is_in_the_making(views, claimed->key);
    if (is_claimed) {
        claimed->next = views->making;
        views->making = claimed;
    }
    (void)pthread_mutex_unlock(&views->mutex);
    return is_claimed;
}

void mcp_view_unclaim(mcp_views_t *views, const mcp_view_making_t *claimed)
{
    mcp_view_making_t **at;

    (void)pthread_mutex_lock(&views->mutex);
    for (at = &views->making; *at != claimed; at = &(*at)->next) {
    }
    *at = claimed->next;
    (void)pthread_cond_broadcast(&views->made);
    (void)pthread_mutex_unlock(&views->mutex);
}

/* --- the tools of a view ------------------------------------------------------------------ */

/* A view in the making. */
typedef struct build {
    mcp_views_t *views;
    const char *prefix; /* of control-plane tools */
    int64_t budget_ms;
    apr_time_t until;
    apr_pool_t *pool;   /* gone when the view is made */
    apr_array_header_t *rows;
    mcp_err_t *err;
} build_t;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mcp_view_row_t *)a)->name, ((const mcp_view_row_t *)b)->name);
}

/* What is left of the budget, which ends by a clock that may be set: never more than the whole. */
static int64_t left_ms(const build_t *build)
{
    int64_t left = apr_time_as_msec(build->until - apr_time_now());

    return left < build->budget_ms ? left : build->budget_ms;
}

/* 0 when the tool can't stand in a list: one of the control plane gets its name here, others bring theirs. */
static int push(build_t *build, const mcp_chunk_tool_t *tool, const json_t *entry, int is_control)
{
    mcp_view_row_t *row;

    if (tool->is_named == is_control) {
        return 0;
    }
    row = apr_array_push(build->rows);
    row->tool = tool;
    row->is_control = is_control;
    row->account = is_control ? NULL : mcp_json_str(entry, "account");
    row->connector = tool->connector != NULL ? tool->connector : mcp_json_str(entry, "connector");
    row->label = mcp_json_str(entry, "label");
    row->name = is_control ? apr_pstrcat(build->pool, build->prefix, "__", tool->name, NULL) : tool->name;
    return !is_control || mcp_name_is_tool(row->name);
}

/* The selected tools of one entry of the manifest. */
static apr_status_t gather_chunk(build_t *build, const json_t *entry, int is_control)
{
    const char *digest = mcp_json_str(entry, "digest");
    const json_t *counted = json_object_get(entry, "tools");
    const mcp_chunk_t *chunk = NULL;
    const unsigned char *bits = NULL;
    int before = build->rows->nelts;
    apr_status_t status;
    int i;

    if (digest == NULL) {
        return mcp_view_not_sound(build->err, build->pool, "a manifest names no digest");
    }
    status = mcp_view_chunk(build->views, digest, left_ms(build), build->pool, &chunk, build->err);
    if (status != APR_SUCCESS) {
        return status;
    }
    if (!mcp_view_select(json_object_get(entry, "select"), chunk->count, build->pool, &bits)) {
        return mcp_view_not_sound(build->err, build->pool, "a manifest's selection does not fit its chunk");
    }
    for (i = 0; i < chunk->count; i++) {
        if (bits != NULL && bits[i >> 3] == 0) {
            i |= 7; /* to the next byte: a view costs what it selects */
            continue;
        }
        if (bits != NULL && (bits[i >> 3] >> (i & 7) & 1) == 0) {
            continue;
        }
        if (!push(build, &chunk->tools[i], entry, is_control)) {
            return mcp_view_not_sound(build->err, build->pool, "a chunk's tool lacks a name, or has one too many");
        }
    }
    if (counted != NULL && json_integer_value(counted) != (json_int_t)(build->rows->nelts - before)) {
        return mcp_view_not_sound(build->err, build->pool, "a manifest counts other tools than it selects");
    }
    return APR_SUCCESS;
}

/* All selected tools, sorted by advertised name. The budget is that of all chunks. */
static apr_status_t gather(build_t *build, const json_t *manifest)
{
    const json_t *chunks = json_object_get(manifest, "chunks");
    const json_t *control = json_object_get(manifest, "control");
    const json_t *entry;
    size_t i;
    apr_status_t status;

    if (!json_is_array(chunks)) {
        return mcp_view_not_sound(build->err, build->pool, "a manifest has no chunks");
    }
    json_array_foreach(chunks, i, entry)
    {
        status = gather_chunk(build, entry, 0);
        if (status != APR_SUCCESS) {
            return status;
        }
    }
    if (control != NULL) {
        if (build->prefix == NULL) {
            build->prefix = mcp_json_str(manifest, "control_prefix");
        }
        if (build->prefix == NULL || !mcp_name_is_label(build->prefix)) {
            return mcp_view_not_sound(build->err, build->pool, "a manifest names no control prefix");
        }
        status = gather_chunk(build, control, 1);
        if (status != APR_SUCCESS) {
            return status;
        }
    }
    qsort(build->rows->elts, (size_t)build->rows->nelts, sizeof(mcp_view_row_t), by_name);
    return APR_SUCCESS;
}

/* A copy of the text, or the copy that was made of the same text before. */
static const char *shared(apr_pool_t *own, const char *text, const char *last, size_t *ret_bytes)
{
    if (text == NULL || (last != NULL && strcmp(last, text) == 0)) {
        return text != NULL ? last : NULL;
    }
    *ret_bytes += strlen(text) + 1;
    return apr_pstrdup(own, text);
}

static void count_tools(const mcp_view_tool_t *tools, int count, mcp_collapse_counts_t *ret)
{
    int i;

    for (i = 0; i < count; i++) {
        ret->control += tools[i].is_control;
        ret->connected += !tools[i].is_control;
        ret->pinned += !tools[i].is_control && tools[i].is_pinned;
    }
}

/* What the view keeps of each tool, whatever becomes of its chunk. */
static const mcp_view_tool_t *describe(const mcp_view_row_t *rows, int count, apr_pool_t *own, size_t *ret_bytes)
{
    mcp_view_tool_t *tools = apr_pcalloc(own, sizeof(*tools) * (size_t)(count + 1));
    mcp_view_tool_t last;
    int i;

    memset(&last, 0, sizeof(last));
    for (i = 0; i < count; i++) {
        tools[i].name = apr_pstrdup(own, rows[i].name);
        tools[i].op = apr_pstrdup(own, rows[i].tool->op);
        tools[i].klass = rows[i].tool->klass;
        tools[i].is_control = rows[i].is_control;
        tools[i].is_pinned = rows[i].tool->is_pinned;
        *ret_bytes += sizeof(*tools) + strlen(tools[i].name) + strlen(tools[i].op) + 2;
        if (rows[i].is_control) {
            continue;
        }
        /* neighbours mostly have the same ones */
        tools[i].account = shared(own, rows[i].account, last.account, ret_bytes);
        tools[i].connector = shared(own, rows[i].connector, last.connector, ret_bytes);
        tools[i].label = shared(own, rows[i].label, last.label, ret_bytes);
        last = tools[i];
    }
    return tools;
}

/* Everything of a view but its manifest. build->pool is scratch. */
static apr_status_t fill_view(build_t *build, const json_t *manifest, mcp_view_t *view, apr_pool_t *own,
                              size_t *ret_bytes)
{
    const char *applications = mcp_json_str(manifest, "applications");
    const mcp_view_row_t *rows;
    apr_status_t status = gather(build, manifest);

    if (status != APR_SUCCESS) {
        return status;
    }
    rows = (const mcp_view_row_t *)(const void *)build->rows->elts;
    view->count = build->rows->nelts;
    view->tools = describe(rows, view->count, own, ret_bytes);
    mcp_view_list(rows, view->count, own, build->pool, &view->flat, ret_bytes);
    mcp_view_list_collapsed(rows, view->count, own, build->pool, &view->collapsed, ret_bytes);
    count_tools(view->tools, view->count, &view->counts);
    /* of the definitions alone, as footprint counts them: without the commas */
    view->counts.characters = (int64_t)mcp_footprint_characters(view->flat.joined) - view->count;
    if (applications != NULL && strlen(applications) == MCP_DIGEST_HEX) {
        view->applications = apr_pstrdup(own, applications);
    }
    return APR_SUCCESS;
}

/* err's texts, which may be of a pool that ends. */
static void keep_err(mcp_err_t *err, apr_pool_t *pool)
{
    if (err != NULL && err->message != NULL) {
        err->message = apr_pstrdup(pool, err->message);
        err->hint = err->hint != NULL ? apr_pstrdup(pool, err->hint) : NULL;
        err->log = err->log != NULL ? apr_pstrdup(pool, err->log) : NULL;
    }
}

static apr_status_t make_view(mcp_views_t *views, const char *digest, const char *prefix, const char *key,
                              int64_t budget_ms, apr_pool_t *pool, mcp_cached_t **ret, mcp_err_t *err)
{
    build_t build = {views, prefix, budget_ms, 0, NULL, NULL, err};
    apr_pool_t *own = NULL;
    json_t *manifest = NULL;
    size_t bytes = 0;
    mcp_view_t *view;
    apr_status_t status;

    build.until = apr_time_now() + apr_time_from_msec(budget_ms);
    if (apr_pool_create(&build.pool, pool) != APR_SUCCESS || mcp_cache_pool(&own) != APR_SUCCESS) {
        return mcp_view_not_sound(err, pool, "out of memory");
    }
    build.rows = apr_array_make(build.pool, 256, sizeof(mcp_view_row_t));
    view = apr_pcalloc(own, sizeof(*view));
    view->key = apr_pstrdup(own, key);
    status = mcp_view_fetch(views, digest, budget_ms, build.pool, &manifest, &bytes, err);
    bytes = sizeof(*view);
    if (status == APR_SUCCESS) {
        status = fill_view(&build, manifest, view, own, &bytes);
    }
    json_decref(manifest);
    if (status != APR_SUCCESS) {
        keep_err(err, pool);
        apr_pool_destroy(build.pool);
        apr_pool_destroy(own);
        return status;
    }
    apr_pool_destroy(build.pool);
    *ret = mcp_cache_put(views->views, key, own, view, bytes);
    return *ret != NULL ? APR_SUCCESS : mcp_view_not_sound(err, pool, "out of memory");
}

/* What a view is kept under: the same digest gives other texts under another prefix. */
static const char *key_of(const char *digest, const char *prefix, char *buf, apr_pool_t *pool)
{
    const char *both;

    if (prefix == NULL) {
        return digest;
    }
    both = apr_pstrcat(pool, digest, " ", prefix, NULL);
    mcp_digest_hex(both, strlen(both), buf);
    return buf;
}

apr_status_t mcp_view_get(mcp_views_t *views, const char *digest, const char *prefix, int64_t budget_ms,
                          apr_pool_t *pool, const mcp_view_t **ret, mcp_err_t *err)
{
    char buf[MCP_DIGEST_HEX + 1];
    const char *key = key_of(digest, prefix, buf, pool);
    mcp_cached_t *cached = mcp_cache_get(views->views, key);
    mcp_view_making_t claimed = {key, NULL};
    apr_status_t status = APR_SUCCESS;

    if (cached == NULL && !mcp_view_claim(views, &claimed, budget_ms)) {
        return mcp_view_not_sound(err, pool, "another request did not get the view in time");
    }
    if (cached == NULL) {
        cached = mcp_cache_get(views->views, key); /* made while this thread waited */
        if (cached == NULL) {
            status = make_view(views, digest, prefix, key, budget_ms, pool, &cached, err);
        }
        mcp_view_unclaim(views, &claimed);
    }
    if (status == APR_SUCCESS && cached != NULL) {
        mcp_cache_release_with(views->views, cached, pool);
        *ret = cached->value;
    }
    return status;
}

static int against_name(const void *name, const void *tool)
{
    return strcmp(name, ((const mcp_view_tool_t *)tool)->name);
}

const mcp_view_tool_t *mcp_view_find(const mcp_view_t *view, const char *name)
{
    return bsearch(name, view->tools, (size_t)view->count, sizeof(*view->tools), against_name);
}

/* --- grants -------------------------------------------------------------------------------- */

static mcp_view_known_t *place(mcp_views_t *views, const char *token_hash)
{
    unsigned hash = 0;
    int i;

    for (i = 0; i < 8 && token_hash[i] != '\0'; i++) {
        hash = hash * 31u + (unsigned char)token_hash[i];
    }
    return &views->grants[hash & (MCP_VIEW_GRANTS - 1)];
}

const char *mcp_view_grant(mcp_views_t *views, const char *token_hash, apr_pool_t *pool)
{
    mcp_view_known_t *known = place(views, token_hash);
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
    mcp_view_known_t *known = place(views, token_hash);

    (void)pthread_mutex_lock(&views->mutex);
    (void)apr_cpystrn(known->token_hash, token_hash, sizeof(known->token_hash));
    (void)apr_cpystrn(known->grant, grant, sizeof(known->grant));
    (void)pthread_mutex_unlock(&views->mutex);
}
