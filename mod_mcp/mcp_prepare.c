/* Arguments made ready for an operation: see mcp_prepare.h. */
#include "mcp_prepare.h"

#include <stdint.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_names.h"
#include "../proto/view_schema.h"
#include "mcp_args.h"
#include "mcp_template.h"

/* jansson's iterators want a mutable object though they change nothing. */
static json_t *iterable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

static apr_status_t decref(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

const json_t *mcp_prepare_schema(const mcp_prepare_t *prepare)
{
    return prepare->advertised != NULL ? prepare->advertised->schema : prepare->operation->schema;
}

/* --- refusals ------------------------------------------------------------------------ */

static apr_status_t no_fit(apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                       "tell whoever maintains the toolbox, or try other arguments",
                       "the arguments and the toolbox's fixed values do not fit together");
}

static apr_status_t invalid(const mcp_schema_error_t *why, apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                       "correct the arguments to match the tool's inputSchema and call again",
                       "invalid arguments: %s%s%s%s", why->path, why->path[0] != '\0' ? ": " : "",
                       why->message[0] != '\0' ? why->message : "the schema's limits are exceeded",
                       why->rule[0] != '\0' ? apr_psprintf(pool, " (%s)", why->rule) : "");
}

/* --- names ---------------------------------------------------------------------------- */

/* The caller's name of an operation's argument: NULL where no name of his leads there, because his argument of that name is another one's. The name
 * is `bytes` long. */
static const char *name_for_caller(const json_t *rename, const char *name, size_t bytes, apr_pool_t *pool)
{
    const char *own = apr_pstrmemdup(pool, name, bytes);
    void *at;

    for (at = json_object_iter(iterable(rename)); at != NULL;
         at = json_object_iter_next(iterable(rename), at)) {
        const char *target = json_string_value(json_object_iter_value(at)); /* NULL of null */

        if (target != NULL && strcmp(target, own) == 0) {
            return json_object_iter_key(at);
        }
    }
    return json_object_get(rename, own) == NULL ? own : NULL;
}

/* Frozen places in the caller's names. Argument names have no '/' and no '~', so the first token of a pointer is the name as it stands. */
static apr_status_t caller_places(const mcp_prepare_t *prepare, apr_pool_t *pool, json_t **ret,
                                  mcp_err_t *err)
{
    json_t *places = json_object();
    int is_failed = places == NULL;
    void *at;

    for (at = json_object_iter(iterable(prepare->frozen)); at != NULL && !is_failed;
         at = json_object_iter_next(iterable(prepare->frozen), at)) {
        const char *key = json_object_iter_key(at);
        size_t slash = key[0] == '/' ? 1 : 0;
        size_t bytes = slash != 0 ? strcspn(key + 1, "/") : strlen(key);
        const char *name = name_for_caller(prepare->rename, key + slash, bytes, pool);

        if (name != NULL) {
            is_failed = json_object_set_new(places,
                                            apr_pstrcat(pool, slash != 0 ? "/" : "", name,
                                                        key + slash + bytes, NULL),
                                            json_null()) != 0;
        }
    }
    if (is_failed) {
        json_decref(places);
        return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "the arguments could not be prepared");
    }
    apr_pool_cleanup_register(pool, places, decref, apr_pool_cleanup_null);
    *ret = places;
    return APR_SUCCESS;
}

/* --- what stands beside a frozen value --------------------------------------------------- */

static const char *unescaped(char *token)
{
    char *to = token;
    const char *at;

    for (at = token; *at != '\0'; at++) {
        if (at[0] == '~' && (at[1] == '0' || at[1] == '1')) {
            *to++ = at[1] == '0' ? '~' : '/';
            at++;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return token;
}

/* 1 if the schema declares the member's name as it is. */
static int is_declared(const json_t *schema, const char *const *path, size_t count, const char *name)
{
    json_t *names = mcp_view_schema_names(schema, path, count);
    int is_there = json_object_get(names, name) != NULL;

    json_decref(names);
    return is_there;
}

/* 1 if the object that holds a frozen place, or one on the way there, has a key beside it that whoever gets the request may take for the frozen one. What
 * the schema declares is another. */
static int is_overlaid(const json_t *schema, const json_t *value, const char *const *path, size_t count)
{
    size_t i;

    for (i = 0; i < count && json_is_object(value); i++) {
        void *at = i > 0 ? json_object_iter(iterable(value)) : NULL; /* arguments are sent by their declared names */

        for (; at != NULL; at = json_object_iter_next(iterable(value), at)) {
            const char *key = json_object_iter_key(at);
            const json_t *member = json_object_iter_value(at);
            int is_open = mcp_name_is_no_field(key) && (json_is_object(member) || json_is_array(member));

            if (strcmp(key, path[i]) != 0 && (is_open || mcp_name_is_same_field(key, path[i])) &&
                !is_declared(schema, path, i, key)) {
                return 1;
            }
        }
        value = json_object_get(value, path[i]);
    }
    return 0;
}

/* Refuses what would say a frozen value once more under a name that receivers may read as the same. */
static apr_status_t check_overlay(const mcp_prepare_t *prepare, const json_t *arguments, apr_pool_t *pool,
                                  mcp_err_t *err)
{
    void *at;

    for (at = json_object_iter(iterable(prepare->frozen)); at != NULL;
         at = json_object_iter_next(iterable(prepare->frozen), at)) {
        const char *key = json_object_iter_key(at);
        char *rest = key[0] == '/' ? apr_pstrdup(pool, key + 1) : NULL; /* a whole argument has nothing beside it */
        const char *path[MCP_VIEW_SCHEMA_TOKENS];
        size_t count = 0;

        while (rest != NULL && count < MCP_VIEW_SCHEMA_TOKENS) {
            char *token = rest;

            rest = strchr(token, '/');
            if (rest != NULL) {
                *rest++ = '\0';
            }
            path[count++] = unescaped(token);
        }
        if (is_overlaid(prepare->operation->schema, arguments, path, count)) {
            return no_fit(pool, err);
        }
    }
    return APR_SUCCESS;
}

/* --- the steps ------------------------------------------------------------------------- */

/* The arguments as the caller sees the tool. */
static apr_status_t validate_caller(const mcp_prepare_t *prepare, const json_t *arguments, apr_pool_t *pool,
                                    mcp_err_t *err)
{
    const mcp_schema_t *schema = prepare->advertised != NULL ? prepare->advertised->compiled
                                                             : prepare->operation->compiled;
    mcp_schema_error_t why;
    json_t *none = NULL;
    mcp_wire_status_t status;

    memset(&why, 0, sizeof(why));
    if (arguments == NULL) {
        none = json_object();
        arguments = none;
    }
    status = mcp_schema_validate(schema, arguments, &why);
    json_decref(none);
    if (status == MCP_OK) {
        return APR_SUCCESS;
    }
    if (prepare->advertised == NULL && json_object_size(prepare->frozen) > 0) {
        return no_fit(pool, err); /* the operation's own schema may ask for a frozen key by name */
    }
    return invalid(&why, pool, err);
}

/* Of a tool that stands for its operation as it is. */
static int is_plain(const mcp_prepare_t *prepare)
{
    return prepare->advertised == NULL && json_object_size(prepare->defaults) == 0 &&
           json_object_size(prepare->frozen) == 0 && json_object_size(prepare->rename) == 0;
}

apr_status_t mcp_prepare_args(const mcp_prepare_t *prepare, const json_t *arguments, apr_pool_t *pool,
                              json_t **ret, mcp_err_t *err)
{
    json_t *places = NULL;
    json_t *own = NULL;
    json_t *merged = NULL;
    apr_status_t status;

    if (is_plain(prepare)) {
        status = validate_caller(prepare, arguments, pool, err);
        return status == APR_SUCCESS ? mcp_args_merge(prepare->defaults, arguments, prepare->frozen,
                                                      pool, ret, err)
                                     : status;
    }
    status = caller_places(prepare, pool, &places, err);
    if (status == APR_SUCCESS) {
        status = mcp_args_strip(arguments, places, pool, &own, err);
    }
    if (status == APR_SUCCESS) {
        status = validate_caller(prepare, own, pool, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_args_rename(own, prepare->rename, pool, &own, err);
    }
    if (status == APR_SUCCESS) {
        status = check_overlay(prepare, own, pool, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_args_merge(prepare->defaults, own, prepare->frozen, pool, &merged, err);
    }
    if (status == APR_SUCCESS &&
        mcp_schema_validate(prepare->operation->compiled, merged, NULL) != MCP_OK) {
        status = no_fit(pool, err);
    }
    if (status == APR_SUCCESS) {
        *ret = merged;
    }
    return status;
}

/* --- words of others ----------------------------------------------------------------------- */

/* 1 when message has this argument's name between quotes. */
static int names(const char *message, const char *name, size_t bytes, apr_pool_t *pool)
{
    return strstr(message, apr_pstrcat(pool, "\"", apr_pstrmemdup(pool, name, bytes), "\"", NULL)) != NULL;
}

void mcp_prepare_blame(const mcp_prepare_t *prepare, apr_pool_t *pool, mcp_err_t *err)
{
    void *at;

    if (err == NULL || err->message == NULL) {
        return;
    }
    if (json_object_size(prepare->frozen) > 0 && strstr(err->message, MCP_TEMPLATE_CLASH) != NULL) {
        (void)no_fit(pool, err); /* the other one may be frozen */
        return;
    }
    for (at = json_object_iter(iterable(prepare->frozen)); at != NULL;
         at = json_object_iter_next(iterable(prepare->frozen), at)) {
        const char *key = json_object_iter_key(at);
        size_t slash = key[0] == '/' ? 1 : 0;

        if (names(err->message, key + slash, strcspn(key + slash, slash != 0 ? "/" : ""), pool)) {
            (void)no_fit(pool, err);
            return;
        }
    }
    for (at = json_object_iter(iterable(prepare->rename)); at != NULL;
         at = json_object_iter_next(iterable(prepare->rename), at)) {
        const char *target = json_string_value(json_object_iter_value(at));
        const char *quoted = target != NULL ? apr_pstrcat(pool, "\"", target, "\"", NULL) : "";
        const char *found = target != NULL ? strstr(err->message, quoted) : NULL;

        if (found != NULL) {
            err->message = apr_pstrcat(
                pool, apr_pstrmemdup(pool, err->message, (apr_size_t)(found - err->message)), "\"",
                json_object_iter_key(at), "\"", found + strlen(quoted), NULL);
            return;
        }
    }
}
