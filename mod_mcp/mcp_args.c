/* Defaults, caller's arguments and frozen values become one argument object. Frozen keys are the
 * administrator's word: whatever the caller sends at such a place, in whatever shape, is gone
 * before the frozen value is laid over. */
#include "mcp_args.h"

#include <stdint.h>
#include <string.h>

#include <apr_strings.h>

#define MAX_PLACES 1024 /* frozen keys of one entry, and as many defaults */

/* A frozen or default key as the path of names that leads to its place. */
typedef struct place {
    const char *tokens[MCP_MAX_DEPTH];
    size_t count;
    const json_t *value;
} place_t;

/* jansson's iterators want a mutable object though they change nothing. */
static json_t *iterable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

static apr_status_t drop_json(void *data)
{
    json_decref(data);
    return APR_SUCCESS;
}

static apr_status_t no_memory(apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                       "The arguments could not be prepared.");
}

static apr_status_t bad_definition(apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL,
                       "Ask an administrator to check the toolbox entry.",
                       "This tool's stored values can't be used.");
}

/* 1 if value nests at most `left` containers deep. The recursion ends with `left`. */
static int is_shallow(const json_t *value, size_t left)
{
    if (!json_is_object(value) && !json_is_array(value)) {
        return 1;
    }
    if (left == 0) {
        return 0;
    }
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); ++i) {
            if (!is_shallow(json_array_get(value, i), left - 1)) {
                return 0;
            }
        }
        return 1;
    }
    for (void *at = json_object_iter(iterable(value)); at != NULL;
         at = json_object_iter_next(iterable(value), at)) {
        if (!is_shallow(json_object_iter_value(at), left - 1)) {
            return 0;
        }
    }
    return 1;
}

/* Objects merge member by member, everything else replaces. 0, or -1 without memory. The depth of
 * `over` was checked before, so the recursion is bounded. */
static int merge_into(json_t *target, const json_t *over)
{
    for (void *at = json_object_iter(iterable(over)); at != NULL;
         at = json_object_iter_next(iterable(over), at)) {
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        json_t *old = json_object_get(target, key);

        if (json_is_object(old) && json_is_object(value)) {
            if (merge_into(old, value) != 0) {
                return -1;
            }
        } else if (json_object_set_new(target, key, json_deep_copy(value)) != 0) {
            return -1;
        }
    }
    return 0;
}

/* One reference token of RFC 6901: ~1 is '/', ~0 is '~', any other '~' is an error (NULL). */
static const char *unescape(const char *text, size_t bytes, apr_pool_t *pool)
{
    char *out = apr_palloc(pool, bytes + 1);
    size_t used = 0;

    for (size_t i = 0; i < bytes; ++i) {
        char c = text[i];

        if (c == '~') {
            if (i + 1 >= bytes || (text[i + 1] != '0' && text[i + 1] != '1')) {
                return NULL;
            }
            c = text[++i] == '0' ? '~' : '/';
        }
        out[used++] = c;
    }
    out[used] = '\0';
    return out;
}

static int read_place(const char *key, const json_t *value, apr_pool_t *pool, place_t *ret)
{
    const char *at = key;

    ret->count = 0;
    ret->value = value;
    if (key[0] != '/') {
        ret->tokens[ret->count++] = key;
        return 0;
    }
    while (*at == '/') {
        size_t bytes = strcspn(at + 1, "/");

        if (ret->count == MCP_MAX_DEPTH) {
            return -1;
        }
        ret->tokens[ret->count] = unescape(at + 1, bytes, pool);
        if (ret->tokens[ret->count] == NULL) {
            return -1;
        }
        ++ret->count;
        at += 1 + bytes;
    }
    return 0;
}

static apr_status_t read_places(const json_t *keys, apr_pool_t *pool, place_t **ret,
                                size_t *ret_count, mcp_err_t *err)
{
    size_t count = json_object_size(keys);
    size_t used = 0;
    place_t *places;

    if (keys != NULL &&
        (!json_is_object(keys) || count > MAX_PLACES || !is_shallow(keys, MCP_MAX_DEPTH))) {
        return bad_definition(pool, err);
    }
    places = apr_palloc(pool, (count + 1) * sizeof(*places));
    for (void *at = count > 0 ? json_object_iter(iterable(keys)) : NULL; at != NULL;
         at = json_object_iter_next(iterable(keys), at)) {
        if (read_place(json_object_iter_key(at), json_object_iter_value(at), pool, &places[used]) !=
            0) {
            return bad_definition(pool, err);
        }
        ++used;
    }
    *ret = places;
    *ret_count = used;
    return APR_SUCCESS;
}

/* The array index that token is (no leading zeros, RFC 6901 section 4), or -1. */
static json_int_t index_of(const char *token)
{
    json_int_t index = 0;
    size_t bytes = strlen(token);

    if (bytes == 0 || bytes > 9 || (token[0] == '0' && bytes > 1)) {
        return -1;
    }
    for (size_t i = 0; i < bytes; ++i) {
        if (token[i] < '0' || token[i] > '9') {
            return -1;
        }
        index = index * 10 + (token[i] - '0');
    }
    return index;
}

static json_t *child_of(const json_t *container, const char *token)
{
    json_int_t index;

    if (json_is_object(container)) {
        return json_object_get(container, token);
    }
    index = index_of(token);
    return json_is_array(container) && index >= 0 ? json_array_get(container, (size_t)index) : NULL;
}

/* Removes what stands at the place. An element of an array stays until the frozen one replaces it:
 * taking it out would move its neighbours. */
static void drop_at(json_t *root, const place_t *place)
{
    json_t *at = root;

    for (size_t i = 0; at != NULL && i + 1 < place->count; ++i) {
        at = child_of(at, place->tokens[i]);
    }
    if (json_is_object(at)) {
        (void)json_object_del(at, place->tokens[place->count - 1]); /* absent is fine */
    }
}

/* Sets a member or an element; an array grows by one at most. 0, or -1 where there is no such
 * place. */
static int set_child(json_t *container, const char *token, json_t *value)
{
    json_int_t index;

    if (json_is_object(container)) {
        return json_object_set_new(container, token, value);
    }
    index = strcmp(token, "-") == 0 ? (json_int_t)json_array_size(container) : index_of(token);
    if (index >= 0 && (size_t)index == json_array_size(container)) {
        return json_array_append_new(container, value);
    }
    if (index < 0) {
        json_decref(value);
        return -1;
    }
    return json_array_set_new(container, (size_t)index, value); /* refuses beyond the end */
}

/* 1 if token can name something in the container. */
static int fits(const json_t *container, const char *token)
{
    return json_is_object(container) ||
           (json_is_array(container) && (index_of(token) >= 0 || strcmp(token, "-") == 0));
}

/* Walks to the place's parent. What stands in the way (a caller's string where the frozen key needs
 * an object) is replaced, so that it can't keep the frozen value out. */
static json_t *parent_for(json_t *root, const place_t *place)
{
    json_t *at = root;

    for (size_t i = 0; i + 1 < place->count; ++i) {
        const char *next = place->tokens[i + 1];
        json_t *child = child_of(at, place->tokens[i]);

        if (child == NULL || !fits(child, next)) {
            int is_array = strcmp(next, "0") == 0 || strcmp(next, "-") == 0;

            child = is_array ? json_array() : json_object();
            if (set_child(at, place->tokens[i], child) != 0) {
                return NULL;
            }
        }
        at = child;
    }
    return at;
}

static int put_at(json_t *root, const place_t *place)
{
    const char *last = place->tokens[place->count - 1];
    json_t *parent = parent_for(root, place);
    json_t *old = parent != NULL ? child_of(parent, last) : NULL;

    if (parent == NULL) {
        return -1;
    }
    if (json_is_object(parent) && json_is_object(old) && json_is_object(place->value)) {
        return merge_into(old, place->value);
    }
    return set_child(parent, last, json_deep_copy(place->value));
}

/* Shallow places first: a deeper key refines an object around it, whatever order they stand in. */
static int put_all(json_t *root, const place_t *places, size_t count)
{
    for (size_t depth = 1; depth <= MCP_MAX_DEPTH; ++depth) {
        for (size_t i = 0; i < count; ++i) {
            if (places[i].count == depth && put_at(root, &places[i]) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* A copy of the caller's arguments without frozen places, owned by pool. */
static apr_status_t stripped(const json_t *caller, const place_t *places, size_t count,
                             apr_pool_t *pool, json_t **ret, mcp_err_t *err)
{
    json_t *copy;

    if (caller != NULL && (!json_is_object(caller) || !is_shallow(caller, MCP_MAX_DEPTH))) {
        return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                           "Send one JSON object, nested at most 64 levels deep.",
                           "The arguments are not an object or are nested too deeply.");
    }
    copy = caller != NULL ? json_deep_copy(caller) : json_object();
    if (copy == NULL) {
        return no_memory(pool, err);
    }
    apr_pool_cleanup_register(pool, copy, drop_json, apr_pool_cleanup_null);
    for (size_t i = 0; i < count; ++i) {
        drop_at(copy, &places[i]);
    }
    *ret = copy;
    return APR_SUCCESS;
}

apr_status_t mcp_args_strip(const json_t *caller, const json_t *frozen, apr_pool_t *pool,
                            json_t **ret, mcp_err_t *err)
{
    place_t *places = NULL;
    size_t count = 0;
    apr_status_t status = read_places(frozen, pool, &places, &count, err);

    return status == APR_SUCCESS ? stripped(caller, places, count, pool, ret, err) : status;
}

apr_status_t mcp_args_merge(const json_t *defaults, const json_t *caller, const json_t *frozen,
                            apr_pool_t *pool, json_t **ret, mcp_err_t *err)
{
    place_t *places = NULL;
    place_t *fills = NULL;
    size_t count = 0;
    size_t fill_count = 0;
    json_t *own = NULL;
    json_t *merged;
    apr_status_t status = read_places(frozen, pool, &places, &count, err);

    if (status == APR_SUCCESS) {
        status = stripped(caller, places, count, pool, &own, err);
    }
    if (status == APR_SUCCESS) {
        status = read_places(defaults, pool, &fills, &fill_count, err);
    }
    if (status != APR_SUCCESS) {
        return status;
    }
    merged = json_object();
    if (merged == NULL) {
        return no_memory(pool, err);
    }
    apr_pool_cleanup_register(pool, merged, drop_json, apr_pool_cleanup_null);
    if (put_all(merged, fills, fill_count) != 0) {
        return bad_definition(pool, err);
    }
    /* The depths of both are checked before the merge recurses, the sum's after it. */
    if (!is_shallow(merged, MCP_MAX_DEPTH)) {
        return bad_definition(pool, err);
    }
    if (merge_into(merged, own) != 0) {
        return no_memory(pool, err);
    }
    if (put_all(merged, places, count) != 0 || !is_shallow(merged, MCP_MAX_DEPTH)) {
        /* No word about which place: frozen keys and values are not the caller's to see. */
        return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                           "Send the arguments in the shape of the tool's input schema.",
                           "The arguments can't be combined with this tool's own values.");
    }
    *ret = merged;
    return APR_SUCCESS;
}

/* The name that an argument gets, or NULL where the gateway consumes it. */
static const char *name_after(const json_t *rename, const char *key)
{
    const json_t *to = json_object_get(rename, key);

    return to == NULL ? key : json_string_value(to);
}

static int is_rename(const json_t *rename)
{
    if (rename != NULL && (!json_is_object(rename) || json_object_size(rename) > MAX_PLACES)) {
        return 0;
    }
    for (void *at = rename != NULL ? json_object_iter(iterable(rename)) : NULL; at != NULL;
         at = json_object_iter_next(iterable(rename), at)) {
        const json_t *to = json_object_iter_value(at);

        if (!json_is_null(to) && !json_is_string(to)) {
            return 0;
        }
    }
    return 1;
}

apr_status_t mcp_args_rename(const json_t *caller, const json_t *rename, apr_pool_t *pool,
                             json_t **ret, mcp_err_t *err)
{
    json_t *own = NULL;
    json_t *renamed;
    apr_status_t status;

    if (!is_rename(rename)) {
        return bad_definition(pool, err);
    }
    status = stripped(caller, NULL, 0, pool, &own, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    renamed = json_object();
    if (renamed == NULL) {
        return no_memory(pool, err);
    }
    apr_pool_cleanup_register(pool, renamed, drop_json, apr_pool_cleanup_null);
    for (void *at = json_object_iter(own); at != NULL; at = json_object_iter_next(own, at)) {
        const char *name = name_after(rename, json_object_iter_key(at));

        if (name == NULL) {
            continue;
        }
        if (json_object_get(renamed, name) != NULL) {
            return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                               "Send the arguments that the tool's input schema names.",
                               "Two arguments stand for the same parameter.");
        }
        if (json_object_set_new(renamed, name, json_incref(json_object_iter_value(at))) != 0) {
            return no_memory(pool, err);
        }
    }
    *ret = renamed;
    return APR_SUCCESS;
}

json_t *mcp_args_names(const json_t *caller, size_t *ret_count)
{
    json_t *names = json_array();

    if (ret_count != NULL) {
        *ret_count = json_object_size(caller);
    }
    for (void *at = json_is_object(caller) ? json_object_iter(iterable(caller)) : NULL;
         at != NULL && json_array_size(names) < MCP_MAX_ARG_NAMES;
         at = json_object_iter_next(iterable(caller), at)) {
        const char *key = json_object_iter_key(at);

        /* A longer key is counted, never cut: cut, it could look like another one. */
        if (strlen(key) <= MCP_MAX_ARG_NAME) {
            (void)json_array_append_new(names,
                                        json_string(key)); /* short of memory: a shorter list */
        }
    }
    return names;
}
