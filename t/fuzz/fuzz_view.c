/* Tool views: input is {"prefix","lexicon","blobs":{"manifest":…, digest:…}}, blobs as policyd would send them. What becomes a view must be a list
 * of sound JSON objects under their names, in both texts, and each part that becomes ready must be usable. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <jansson.h>

#include "mcp_view_private.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const json_t *blobs; /* of the input being run */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : 1;
}

/* In the place of the product's, which asks policyd: a string is the bytes themselves, all else its text. */
apr_status_t mcp_ask_blob(mcp_ask_t *ask, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                          char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    const json_t *blob = json_object_get(blobs, digest);
    size_t bytes = json_string_length(blob);
    char *copy;

    (void)ask;
    (void)budget_ms;
    if (blob == NULL || strlen(digest) > MCP_DIGEST_HEX) {
        return mcp_view_not_sound(err, pool, "there is no such blob");
    }
    if (!json_is_string(blob)) {
        char *text = json_dumps(blob, JSON_COMPACT | JSON_ENCODE_ANY);

        if (text == NULL) {
            return mcp_view_not_sound(err, pool, "out of memory");
        }
        *ret = text;
        *ret_bytes = strlen(text);
        return APR_SUCCESS;
    }
    copy = malloc(bytes > 0 ? bytes : 1);
    if (copy == NULL) {
        return mcp_view_not_sound(err, pool, "out of memory");
    }
    memcpy(copy, json_string_value(blob), bytes);
    *ret = copy;
    *ret_bytes = bytes;
    return APR_SUCCESS;
}

static void require(int holds)
{
    if (!holds) {
        abort();
    }
}

/* One text of the tools against the offsets of each: sound objects in bytewise order of names. */
static void check_text(const char *joined, const size_t *offsets, int count, int is_old)
{
    json_t *last = NULL;
    int i;

    for (i = 0; i < count; i++) {
        size_t bytes = offsets[i + 1] - 1 - offsets[i];
        json_t *tool = json_loadb(joined + offsets[i], bytes, JSON_REJECT_DUPLICATES, NULL);
        const char *name = json_string_value(json_object_get(tool, "name"));

        require(joined[offsets[i + 1] - 1] == ',');
        require(name != NULL);
        require(last == NULL || strcmp(json_string_value(json_object_get(last, "name")), name) <= 0);
        require(!is_old || json_object_get(tool, "title") == NULL);
        json_decref(last);
        last = tool;
    }
    json_decref(last);
    require(joined[offsets[count]] == '\0');
}

static void check_list(const mcp_list_t *list)
{
    json_t *whole = json_loadb(list->whole, list->whole_bytes, JSON_REJECT_DUPLICATES, NULL);

    require(json_array_size(json_object_get(whole, "tools")) == (size_t)list->count);
    json_decref(whole);
    check_text(list->joined, list->offsets, list->count, 0);
    check_text(list->old_joined, list->old_offsets, list->count, 1);
}

static void check_view(const mcp_view_t *view)
{
    int64_t hidden = view->counts.connected - view->counts.pinned;
    int i;

    require(view->flat.count == view->count);
    require(view->counts.control + view->counts.connected == view->count);
    check_list(&view->flat);
    if (hidden > 0) {
        require(view->collapsed.count == view->count - hidden + 2); /* and the two meta-tools */
        check_list(&view->collapsed);
    } else {
        require(view->collapsed.count == 0);
    }
    for (i = 0; i < view->count; i++) {
        const mcp_view_tool_t *found = mcp_view_find(view, view->tools[i].name);

        require(found != NULL && strcmp(found->name, view->tools[i].name) == 0);
    }
}

/* The index over them, and the words that the input brings. */
static void check_search(mcp_views_t *views, const mcp_view_t *view, const char *lexicon, apr_pool_t *pool)
{
    const mcp_view_index_t *index = NULL;
    const int *tools = NULL;
    mcp_err_t err = {0};
    int64_t i;

    if (mcp_view_search_index(views, view, lexicon, 10000, pool, &index, &tools, &err) != APR_SUCCESS) {
        require(err.fail == MCP_FAIL_UNAVAILABLE && err.log != NULL);
        return;
    }
    for (i = 0; i < view->counts.connected; i++) {
        require(tools[i] >= 0 && tools[i] < view->count && !view->tools[tools[i]].is_control);
    }
}

/* What is refused is refused with a reason. */
static void read_parts(mcp_views_t *views, const char *digest, apr_pool_t *pool)
{
    const mcp_operation_t *operation = NULL;
    const mcp_advertised_t *advertised = NULL;
    const mcp_guard_t *guard = NULL;
    const char *verdicts = NULL;
    mcp_err_t err = {0};

    if (mcp_view_operation(views, digest, 0, pool, &operation, &err) == APR_SUCCESS) {
        require(operation->id != NULL && operation->method != NULL && operation->compiled != NULL);
    }
    if (mcp_view_schema(views, digest, 0, pool, &advertised, &err) == APR_SUCCESS) {
        require(advertised->schema != NULL && advertised->compiled != NULL);
    }
    if (mcp_view_guard(views, digest, 0, pool, &guard, &err) == APR_SUCCESS) {
        require(guard != NULL);
    }
    if (mcp_view_verdicts(views, digest, 0, pool, &verdicts, &err) == APR_SUCCESS) {
        require(verdicts[strspn(verdicts, "adb")] == '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *input = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    mcp_views_t *views = NULL;
    const mcp_view_t *view = NULL;
    mcp_err_t err = {0};
    apr_pool_t *pool = NULL;
    const char *digest;
    json_t *ignored;

    blobs = json_object_get(input, "blobs");
    if (blobs == NULL || apr_pool_create(&pool, NULL) != APR_SUCCESS ||
        mcp_view_create(NULL, 1024 * 1024, &views) != APR_SUCCESS) {
        json_decref(input);
        return 0;
    }
    if (mcp_view_get(views, "manifest", json_string_value(json_object_get(input, "prefix")), 10000, pool,
                     &view, &err) == APR_SUCCESS) {
        check_view(view);
        check_search(views, view, json_string_value(json_object_get(input, "lexicon")), pool);
    } else {
        require(err.fail == MCP_FAIL_UNAVAILABLE && err.log != NULL);
    }
    json_object_foreach((json_t *)(uintptr_t)blobs, digest, ignored)
    {
        read_parts(views, digest, pool);
    }
    apr_pool_destroy(pool);
    mcp_view_free(&views);
    json_decref(input);
    return 0;
}
