/* Reading places, and stripping a whole document. */
#include "view_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_schema.h"
#include "view_schema_private.h"

/* --- helpers of the room ------------------------------------------------------------ */

json_t *mcp_vschema_iterable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

int mcp_vschema_fail(mcp_vschema_run_t *run, mcp_wire_status_t status, const char *why)
{
    if (run->status == MCP_OK) {
        run->status = status;
        run->why = why;
    }
    return -1;
}

int mcp_vschema_spend(mcp_vschema_run_t *run, size_t values)
{
    if (run->status != MCP_OK) {
        return -1;
    }
    if (run->work < values) {
        run->work = 0;
        return mcp_vschema_fail(run, MCP_E_SIZE, "The schema is too large.");
    }
    run->work -= values;
    return 0;
}

/* How many values there are. Recursion as deep as the document, whose depth was checked. */
static size_t count_of(const json_t *value)
{
    size_t count = 1;

    for (size_t i = 0; i < json_array_size(value); ++i) {
        count += count_of(json_array_get(value, i));
    }
    for (void *at = json_is_object(value) ? json_object_iter(mcp_vschema_iterable(value)) : NULL;
         at != NULL; at = json_object_iter_next(mcp_vschema_iterable(value), at)) {
        count += count_of(json_object_iter_value(at));
    }
    return count;
}

json_t *mcp_vschema_copy(mcp_vschema_run_t *run, const json_t *value)
{
    json_t *copy;

    if (mcp_vschema_spend(run, count_of(value)) != 0) {
        return NULL;
    }
    copy = json_deep_copy(value);
    if (copy == NULL) {
        (void)mcp_vschema_fail(run, MCP_E_NOMEM, "Out of memory.");
    }
    return copy;
}

int mcp_vschema_set(mcp_vschema_run_t *run, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) { /* refuses NULL; takes value anyway */
        return mcp_vschema_fail(run, MCP_E_NOMEM, "Out of memory.");
    }
    return 0;
}

int mcp_vschema_append(mcp_vschema_run_t *run, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0) {
        return mcp_vschema_fail(run, MCP_E_NOMEM, "Out of memory.");
    }
    return 0;
}

static int is_shallow(const json_t *value, size_t left)
{
    if (!json_is_object(value) && !json_is_array(value)) {
        return 1;
    }
    if (left == 0) {
        return 0;
    }
    for (size_t i = 0; i < json_array_size(value); ++i) {
        if (!is_shallow(json_array_get(value, i), left - 1)) {
            return 0;
        }
    }
    for (void *at = json_is_object(value) ? json_object_iter(mcp_vschema_iterable(value)) : NULL;
         at != NULL; at = json_object_iter_next(mcp_vschema_iterable(value), at)) {
        if (!is_shallow(json_object_iter_value(at), left - 1)) {
            return 0;
        }
    }
    return 1;
}

/* --- places -------------------------------------------------------------------------- */

/* Appends one token, unescaped, at *to. */
static mcp_wire_status_t read_token(const char *from, size_t bytes, char **to)
{
    for (size_t i = 0; i < bytes; ++i) {
        char c = from[i];

        if (c == '~') {
            if (i + 1 >= bytes || (from[i + 1] != '0' && from[i + 1] != '1')) {
                return MCP_E_FIELD;
            }
            c = from[++i] == '0' ? '~' : '/';
        }
        *(*to)++ = c;
    }
    *(*to)++ = '\0';
    return MCP_OK;
}

mcp_wire_status_t mcp_vschema_place(const char *key, mcp_vschema_place_t *ret)
{
    char *to = ret->text;
    const char *at = key;

    ret->count = 0;
    if (strlen(key) > MCP_VIEW_SCHEMA_POINTER) {
        return MCP_E_SIZE;
    }
    if (key[0] != '/') {
        memcpy(ret->text, key, strlen(key) + 1);
        ret->tokens[ret->count++] = ret->text;
        return MCP_OK;
    }
    /* Unescaped tokens take no more room than escaped ones with their slash. */
    while (*at == '/') {
        size_t bytes = strcspn(at + 1, "/");
        mcp_wire_status_t status;

        if (ret->count == MCP_VIEW_SCHEMA_TOKENS) {
            return MCP_E_SIZE;
        }
        ret->tokens[ret->count++] = to;
        status = read_token(at + 1, bytes, &to);
        if (status != MCP_OK) {
            return status;
        }
        at += 1 + bytes;
    }
    return MCP_OK;
}

static int read_places(mcp_vschema_run_t *run, const json_t *keys, mcp_vschema_place_t **ret,
                       size_t *ret_count)
{
    size_t count = json_object_size(keys);
    size_t used = 0;

    if (keys != NULL && !json_is_object(keys)) {
        return mcp_vschema_fail(run, MCP_E_FIELD, "The keys are not an object.");
    }
    if (count > MCP_VIEW_SCHEMA_KEYS) {
        return mcp_vschema_fail(run, MCP_E_SIZE, "There are too many keys.");
    }
    *ret = calloc(count + 1, sizeof(**ret));
    if (*ret == NULL) {
        return mcp_vschema_fail(run, MCP_E_NOMEM, "Out of memory.");
    }
    for (void *at = count > 0 ? json_object_iter(mcp_vschema_iterable(keys)) : NULL; at != NULL;
         at = json_object_iter_next(mcp_vschema_iterable(keys), at)) {
        mcp_wire_status_t status = mcp_vschema_place(json_object_iter_key(at), &(*ret)[used]);

        (*ret)[used].value = json_object_iter_value(at);
        if (status != MCP_OK) {
            return mcp_vschema_fail(run, status,
                                    status == MCP_E_SIZE ? "A key is too long or too deep."
                                                         : "A key is not a JSON Pointer.");
        }
        if (!is_shallow((*ret)[used].value, MCP_MAX_DEPTH)) {
            return mcp_vschema_fail(run, MCP_E_SIZE, "A value is nested too deeply.");
        }
        ++used;
    }
    *ret_count = used;
    return 0;
}

/* 1 if the place is the other or within it. */
static int is_within(const mcp_vschema_place_t *place, const mcp_vschema_place_t *other)
{
    for (size_t i = 0; i < other->count; ++i) {
        if (i >= place->count || strcmp(place->tokens[i], other->tokens[i]) != 0) {
            return 0;
        }
    }
    return 1;
}

/* The spot of the arguments themselves. A default that a frozen key covers is never seen. */
static mcp_vschema_spot_t top_of(const mcp_vschema_run_t *run)
{
    mcp_vschema_spot_t top = {0, 0, 0};

    for (size_t i = 0; i < run->frozen_count; ++i) {
        top.frozen |= UINT64_C(1) << i;
    }
    for (size_t i = 0; i < run->default_count; ++i) {
        int is_covered = 0;

        for (size_t k = 0; k < run->frozen_count && !is_covered; ++k) {
            is_covered = is_within(&run->defaults[i], &run->frozen[k]);
        }
        top.defaults |= is_covered ? 0 : UINT64_C(1) << i;
    }
    return top;
}

/* What stands at the place in a value that stands at depth; NULL: nothing. *ret_parent gets the
 * object that holds it. */
static json_t *find_place(json_t *value, const mcp_vschema_place_t *place, size_t depth,
                          json_t **ret_parent)
{
    json_t *parent = NULL;

    for (size_t i = depth; i < place->count && value != NULL; ++i) {
        parent = value;
        value = json_object_get(value, place->tokens[i]); /* NULL of what is no object */
    }
    *ret_parent = parent;
    return value;
}

int mcp_vschema_has_frozen(const mcp_vschema_run_t *run, const json_t *value,
                           mcp_vschema_spot_t spot)
{
    json_t *parent;

    for (size_t i = 0; i < run->frozen_count; ++i) {
        if ((spot.frozen >> i & 1) != 0 &&
            find_place(mcp_vschema_iterable(value), &run->frozen[i], spot.depth, &parent) != NULL) {
            return 1;
        }
    }
    return 0;
}

int mcp_vschema_drop_frozen(const mcp_vschema_run_t *run, json_t *value, mcp_vschema_spot_t spot)
{
    json_t *parent;
    int is_changed = 0;

    for (size_t i = 0; i < run->frozen_count; ++i) {
        const mcp_vschema_place_t *place = &run->frozen[i];

        if ((spot.frozen >> i & 1) != 0 && find_place(value, place, spot.depth, &parent) != NULL) {
            (void)json_object_del(parent, place->tokens[place->count - 1]);
            is_changed = 1;
        }
    }
    return is_changed;
}

/* Recursion as deep as the document, whose depth was checked. */
int mcp_vschema_mentions(mcp_vschema_run_t *run, const json_t *value, const char *word)
{
    if (mcp_vschema_spend(run, 1) != 0) {
        return 1;
    }
    if (json_is_string(value)) {
        return strcmp(json_string_value(value), word) == 0;
    }
    for (size_t i = 0; i < json_array_size(value); ++i) {
        if (mcp_vschema_mentions(run, json_array_get(value, i), word)) {
            return 1;
        }
    }
    for (void *at = json_is_object(value) ? json_object_iter(mcp_vschema_iterable(value)) : NULL;
         at != NULL; at = json_object_iter_next(mcp_vschema_iterable(value), at)) {
        if (strcmp(json_object_iter_key(at), word) == 0 ||
            mcp_vschema_mentions(run, json_object_iter_value(at), word)) {
            return 1;
        }
    }
    return 0;
}

/* --- stripping ------------------------------------------------------------------------ */

/* draft-07 as mcp_schema_compile() knows it; whatever else it takes is 2020-12. */
static int is_old_dialect(const json_t *schema)
{
    const char *dialect = json_string_value(json_object_get(schema, "$schema"));

    return dialect != NULL && strstr(dialect, "/draft-07/schema") != NULL;
}

int mcp_vschema_start(mcp_vschema_run_t *run, const json_t *schema)
{
    memset(run, 0, sizeof(*run));
    run->root = schema;
    run->work = MCP_VIEW_SCHEMA_WORK;
    if (!json_is_object(schema)) {
        return mcp_vschema_fail(run, MCP_E_FIELD, "The schema is not an object.");
    }
    if (!is_shallow(schema, MCP_SCHEMA_MAX_DEPTH)) {
        return mcp_vschema_fail(run, MCP_E_SIZE, "The schema is nested too deeply.");
    }
    run->is_old = is_old_dialect(schema);
    return 0;
}

json_t *mcp_vschema_strip_root(mcp_vschema_run_t *run)
{
    unsigned touched = 0;
    json_t *out = mcp_vschema_strip(run, run->root, top_of(run), &touched);

    if (out != NULL && touched == 0 && !run->is_choosing) {
        json_decref(out);
        return mcp_vschema_copy(run, run->root);
    }
    if (out != NULL && mcp_vschema_settle(run, out) != 0) {
        json_decref(out);
        return NULL;
    }
    if (out != NULL && !is_shallow(out, MCP_SCHEMA_MAX_DEPTH)) {
        json_decref(out);
        (void)mcp_vschema_fail(run, MCP_E_SIZE, "The schema is nested too deeply.");
        return NULL;
    }
    return out;
}

mcp_wire_status_t mcp_view_schema_strip(const json_t *schema, const json_t *frozen,
                                        const json_t *defaults, json_t **ret, char *why,
                                        size_t why_size)
{
    mcp_vschema_run_t run;
    json_t *out = NULL;

    if (mcp_vschema_start(&run, schema) == 0 &&
        read_places(&run, frozen, &run.frozen, &run.frozen_count) == 0 &&
        read_places(&run, defaults, &run.defaults, &run.default_count) == 0) {
        out = mcp_vschema_strip_root(&run);
    }
    free(run.frozen);
    free(run.defaults);
    if (out == NULL || run.status != MCP_OK) {
        json_decref(out);
        if (why != NULL && why_size > 0) {
            (void)snprintf(why, why_size, "%s", run.why != NULL ? run.why : "Out of memory.");
        }
        return run.status != MCP_OK ? run.status : MCP_E_NOMEM;
    }
    *ret = out;
    return MCP_OK;
}
