/* The indices that searches run over: one a view, made when it is first searched, and the words that they know. See mcp_view.h. */
#include "mcp_view_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"

/* What is kept of an index. */
typedef struct kept {
    const mcp_view_index_t *index;
    const int *tools; /* the view's number of each of the index's tools */
} kept_t;

/* Words, by the digest of their blob; held until pool is cleared. base: what they add to, or NULL; it is held as long. */
static apr_status_t get_lexicon(mcp_views_t *views, const char *digest, const char *base_digest,
                                int64_t budget_ms, apr_pool_t *pool, const mcp_view_lexicon_t **ret,
                                mcp_err_t *err)
{
    const char *key = base_digest != NULL ? apr_pstrcat(pool, digest, base_digest, NULL) : digest;
    char hex[MCP_DIGEST_HEX + 1];
    mcp_cached_t *cached;
    const mcp_view_lexicon_t *base = NULL;
    mcp_view_lexicon_t *made = NULL;
    apr_pool_t *own = NULL;
    char *bytes = NULL;
    size_t count = 0;
    apr_status_t status;

    mcp_digest_hex(key, strlen(key), hex);
    cached = mcp_cache_get(views->lexica, hex);
    if (cached != NULL) {
        mcp_cache_release_with(views->lexica, cached, pool);
        *ret = cached->value;
        return APR_SUCCESS;
    }
    if (mcp_cache_pool(&own) != APR_SUCCESS) {
        return mcp_view_not_sound(err, pool, "out of memory");
    }
    status = mcp_ask_blob(views->ask, digest, budget_ms, pool, &bytes, &count, err);
    if (status == APR_SUCCESS && base_digest != NULL) {
        status = get_lexicon(views, base_digest, NULL, budget_ms, own, &base, err);
    }
    if (status == APR_SUCCESS && mcp_view_lexicon_parse(bytes, count, base, own, &made) != MCP_OK) {
        status = mcp_view_not_sound(err, pool, "a lexicon is not sound");
    }
    free(bytes);
    if (status != APR_SUCCESS) {
        apr_pool_destroy(own);
        return status;
    }
    cached = mcp_cache_put(views->lexica, hex, own, made, count * 4);
    if (cached == NULL) {
        return mcp_view_not_sound(err, pool, "out of memory");
    }
    mcp_cache_release_with(views->lexica, cached, pool);
    *ret = cached->value; /* another thread's, where it was faster: `made` is gone then */
    return APR_SUCCESS;
}

/* The words for this view: the shipped ones, and the names of what its caller might connect. *ret NULL: there are none. */
static apr_status_t lexicon_of(mcp_views_t *views, const mcp_view_t *view, const char *shipped,
                               int64_t budget_ms, apr_pool_t *pool, const mcp_view_lexicon_t **ret,
                               mcp_err_t *err)
{
    if (view->applications != NULL) {
        return get_lexicon(views, view->applications, shipped, budget_ms, pool, ret, err);
    }
    return shipped != NULL ? get_lexicon(views, shipped, NULL, budget_ms, pool, ret, err) : APR_SUCCESS;
}

static apr_status_t decref(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

/* The connected tools as the index takes them; their definitions live in scratch. *ret_tools is in own. */
static int entries_of(const mcp_view_t *view, apr_pool_t *own, apr_pool_t *scratch,
                      mcp_view_entry_t **ret, int **ret_tools)
{
    size_t count = (size_t)view->counts.connected;
    mcp_view_entry_t *entries = apr_pcalloc(scratch, sizeof(*entries) * (count + 1));
    int *tools = apr_pcalloc(own, sizeof(*tools) * (count + 1));
    size_t n = 0;
    int i;

    for (i = 0; i < view->count && n < count; i++) {
        const mcp_view_tool_t *tool = &view->tools[i];
        const size_t *at = &view->flat.offsets[i];
        json_t *def = NULL;

        if (tool->is_control) {
            continue;
        }
        if (mcp_json_parse(view->flat.joined + at[0], at[1] - at[0] - 1, MCP_MAX_DEPTH + 8, &def, NULL) !=
            MCP_OK) {
            return 0;
        }
        apr_pool_cleanup_register(scratch, def, decref, apr_pool_cleanup_null);
        entries[n].name = tool->name;
        entries[n].account = tool->account;
        entries[n].connector = tool->connector;
        entries[n].label = tool->label;
        entries[n].description = mcp_json_str(def, "description");
        entries[n].schema = json_object_get(def, "inputSchema");
        tools[n++] = i;
    }
    *ret = entries;
    *ret_tools = tools;
    return n == count;
}

static apr_status_t build(mcp_views_t *views, const mcp_view_t *view, const char *key, const char *shipped,
                          int64_t budget_ms, apr_pool_t *pool, mcp_cached_t **ret, mcp_err_t *err)
{
    const mcp_view_lexicon_t *lexicon = NULL;
    mcp_view_entry_t *entries = NULL;
    mcp_view_index_size_t size;
    mcp_view_index_t *index = NULL;
    int *tools = NULL;
    apr_pool_t *own = NULL;
    apr_pool_t *scratch = NULL;
    kept_t *kept;
    apr_status_t status;

    if (mcp_cache_pool(&own) != APR_SUCCESS || apr_pool_create(&scratch, pool) != APR_SUCCESS) {
        return mcp_view_not_sound(err, pool, "out of memory");
    }
    status = lexicon_of(views, view, shipped, budget_ms, own, &lexicon, err);
    if (status == APR_SUCCESS && (!entries_of(view, own, scratch, &entries, &tools) ||
                                  mcp_view_index_build(entries, (size_t)view->counts.connected, lexicon,
                                                       own, &index) != MCP_OK)) {
        status = mcp_view_not_sound(err, pool, "the index of a view can't be built");
    }
    apr_pool_destroy(scratch);
    if (status != APR_SUCCESS) {
        apr_pool_destroy(own);
        return status;
    }
    kept = apr_palloc(own, sizeof(*kept));
    kept->index = index;
    kept->tools = tools;
    mcp_view_index_size(index, &size);
    *ret = mcp_cache_put(views->indices, key, own, kept,
                         size.bytes + sizeof(*tools) * (size_t)view->counts.connected);
    return *ret != NULL ? APR_SUCCESS : mcp_view_not_sound(err, pool, "out of memory");
}

apr_status_t mcp_view_search_index(mcp_views_t *views, const mcp_view_t *view, const char *lexicon,
                                   int64_t budget_ms, apr_pool_t *pool, const mcp_view_index_t **ret,
                                   const int **ret_tools, mcp_err_t *err)
{
    const char *shipped = lexicon != NULL && lexicon[0] != '\0' ? lexicon : NULL;
    const char *named = apr_pstrcat(pool, "index ", view->key, " ", shipped != NULL ? shipped : "", NULL);
    char key[MCP_DIGEST_HEX + 1];
    mcp_view_making_t claimed = {key, NULL};
    mcp_cached_t *cached;
    apr_status_t status = APR_SUCCESS;

    mcp_digest_hex(named, strlen(named), key);
    cached = mcp_cache_get(views->indices, key);
    if (cached == NULL && !mcp_view_claim(views, &claimed, budget_ms)) {
        return mcp_view_not_sound(err, pool, "another request did not get the index in time");
    }
    if (cached == NULL) {
        cached = mcp_cache_get(views->indices, key); /* made while this thread waited */
        if (cached == NULL) {
            status = build(views, view, key, shipped, budget_ms, pool, &cached, err);
        }
        mcp_view_unclaim(views, &claimed);
    }
    if (status == APR_SUCCESS && cached != NULL) {
        const kept_t *kept = cached->value;

        mcp_cache_release_with(views->indices, cached, pool);
        *ret = kept->index;
        *ret_tools = kept->tools;
    }
    return status;
}
