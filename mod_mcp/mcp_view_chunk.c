/* Chunks: tools of one connection, toolbox or control plane, turned into texts once, however many views select from them. */
#include "mcp_view_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

/* --- texts ------------------------------------------------------------------------- */

/* def as text in own; NULL without memory. */
static const char *text_of(const json_t *def, apr_pool_t *own, size_t *ret_bytes)
{
    char *text = mcp_json_text(def, ret_bytes);
    const char *kept = text != NULL ? apr_pstrmemdup(own, text, *ret_bytes) : NULL;

    free(text);
    return kept;
}

/* The oldest revision knows no `title` of a tool; those inside schemas are the schema's own. */
static int put_old_text(mcp_chunk_tool_t *tool, const json_t *def, apr_pool_t *own)
{
    json_t *old;

    tool->old_text = tool->text;
    tool->old_bytes = tool->bytes;
    if (json_object_get(def, "title") == NULL) {
        return 1;
    }
    old = json_copy((json_t *)(uintptr_t)def);
    (void)json_object_del(old, "title"); /* of NULL: the text fails below */
    tool->old_text = old != NULL ? text_of(old, own, &tool->old_bytes) : NULL;
    json_decref(old);
    return tool->old_text != NULL;
}

/* What a collapsed list shows instead of the definition, if anything; 0: out of memory. */
static int put_brief(mcp_chunk_tool_t *tool, const json_t *brief, apr_pool_t *own)
{
    tool->brief = json_is_object(brief) ? text_of(brief, own, &tool->brief_bytes) : NULL;
    return !json_is_object(brief) || tool->brief != NULL;
}

/* What is wrong with an entry, or NULL when *ret has it. */
static const char *read_tool(const json_t *entry, apr_pool_t *own, mcp_chunk_tool_t *ret,
                             size_t *weight)
{
    const char *name = mcp_json_str(entry, "name");
    const char *op = mcp_json_str(entry, "op");
    const char *connector = mcp_json_str(entry, "connector");
    const json_t *def = json_object_get(entry, "def");
    const char *shown = mcp_json_str(def, "name");

    if (name == NULL || !json_is_object(def)) {
        return "a chunk lacks a name or definition";
    }
    if (json_object_get(def, "name") != NULL && (shown == NULL || strcmp(shown, name) != 0)) {
        return "a chunk has a tool under two names";
    }
    ret->name = apr_pstrdup(own, name);
    ret->op = op != NULL ? apr_pstrdup(own, op) : "";
    ret->connector = connector != NULL ? apr_pstrdup(own, connector) : NULL;
    ret->klass = mcp_class_from_text(mcp_json_str(entry, "class"));
    ret->is_pinned = mcp_json_bool(entry, "pin");
    ret->is_named = shown != NULL;
    ret->text = text_of(def, own, &ret->bytes);
    if (ret->text == NULL || !put_old_text(ret, def, own) ||
        !put_brief(ret, json_object_get(entry, "brief"), own)) {
        return "out of memory";
    }
    *weight += sizeof(*ret) + strlen(name) + strlen(ret->op) + ret->bytes + ret->brief_bytes +
               (ret->old_text != ret->text ? ret->old_bytes : 0);
    return NULL;
}

static apr_status_t make_chunk(const json_t *blob, apr_pool_t *own, mcp_chunk_t **ret, size_t *weight,
                               apr_pool_t *pool, mcp_err_t *err)
{
    const json_t *entries = json_object_get(blob, "tools");
    mcp_chunk_t *chunk = apr_palloc(own, sizeof(*chunk));
    mcp_chunk_tool_t *tools;
    const json_t *entry;
    size_t i;

    if (!json_is_array(entries)) {
        return mcp_view_not_sound(err, pool, "a chunk has no tools");
    }
    tools = apr_pcalloc(own, sizeof(*tools) * (json_array_size(entries) + 1));
    chunk->count = (int)json_array_size(entries); /* a blob has 64 MiB at most */
    chunk->tools = tools;
    json_array_foreach(entries, i, entry)
    {
        const char *why = read_tool(entry, own, &tools[i], weight);

        if (why != NULL) {
            return mcp_view_not_sound(err, pool, why);
        }
    }
    *ret = chunk;
    return APR_SUCCESS;
}

/* --- the cache ----------------------------------------------------------------------- */

/* Fetches and keeps it; NULL: err says why. */
static mcp_cached_t *keep_chunk(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                               mcp_err_t *err)
{
    json_t *blob = NULL;
    apr_pool_t *own = NULL;
    mcp_chunk_t *chunk = NULL;
    size_t bytes = 0;
    size_t weight = 0;
    mcp_cached_t *cached;
    apr_status_t status = mcp_view_fetch(views, digest, budget_ms, pool, &blob, &bytes, err);

    if (status != APR_SUCCESS) {
        return NULL;
    }
    if (mcp_cache_pool(&own) != APR_SUCCESS) {
        json_decref(blob);
        (void)mcp_view_not_sound(err, pool, "out of memory");
        return NULL;
    }
    status = make_chunk(blob, own, &chunk, &weight, pool, err);
    json_decref(blob); /* a tree weighs seven times its text */
    if (status != APR_SUCCESS) {
        apr_pool_destroy(own);
        return NULL;
    }
    cached = mcp_cache_put(views->chunks, digest, own, chunk, weight);
    if (cached == NULL) {
        (void)mcp_view_not_sound(err, pool, "out of memory");
    }
    return cached;
}

apr_status_t mcp_view_chunk(mcp_views_t *views, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                            const mcp_chunk_t **ret, mcp_err_t *err)
{
    mcp_cached_t *cached = mcp_cache_get(views->chunks, digest);

    if (cached == NULL) {
        cached = keep_chunk(views, digest, budget_ms, pool, err);
    }
    if (cached == NULL) {
        return MCP_STATUS_REFUSED;
    }
    mcp_cache_release_with(views->chunks, cached, pool);
    *ret = cached->value;
    return APR_SUCCESS;
}

/* --- selections ------------------------------------------------------------------------ */

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

int mcp_view_select(const json_t *select, int count, apr_pool_t *pool, const unsigned char **ret)
{
    size_t bytes = ((size_t)count + 7) / 8;
    const char *text = json_string_value(select);
    unsigned char *bits;
    size_t i;

    *ret = NULL;
    if (select == NULL) {
        return 1;
    }
    if (text == NULL || json_string_length(select) != 2 * bytes) {
        return 0;
    }
    bits = apr_palloc(pool, bytes + 1);
    for (i = 0; i < bytes; i++) {
        int high = digit_of(text[2 * i]);
        int low = digit_of(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return 0;
        }
        bits[i] = (unsigned char)(high << 4 | low);
    }
    if ((count & 7) != 0 && (bits[bytes - 1] >> (count & 7)) != 0) {
        return 0; /* a tool that is not there: the chunk is another than policyd meant */
    }
    *ret = bits;
    return 1;
}
