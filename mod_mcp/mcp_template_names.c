/* Names that a caller chooses, beside those of the definition. The keys of an exploded object, of a
 * deepObject and of a form become names of fields; one that a receiver could take for another
 * field's name might overrule what is fixed or frozen there, or the credential. What the schema
 * declares may stand as it is declared. */
#include "mcp_template_private.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_names.h"
#include "../proto/view_schema.h"

#define MANY_KEYS 16384 /* of one location: no URL and no header holds more */

/* Who has a name. */
typedef struct owner {
    const mcp_template_param_t *param; /* NULL: the path's own, the credential, or several */
    int is_free;                       /* somebody has it from a caller, and no schema declares it */
} owner_t;

/* The names of one location. */
typedef struct names {
    apr_pool_t *pool;
    apr_hash_t *exact;  /* whole names in lower case */
    apr_hash_t *fields; /* fields that they may lead to, in both readings */
    size_t count;
} names_t;

static const char *lower(const char *name, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, name);

    for (char *at = copy; *at != '\0'; ++at) {
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    }
    return copy;
}

/* A name's field in one reading; NULL: none. */
static const char *field_of(const char *name, int is_whole, apr_pool_t *pool)
{
    char *field = apr_palloc(pool, strlen(name) + 1);

    return mcp_name_field(name, is_whole, field) > 0 ? field : NULL;
}

static json_t *declared_names(const mcp_template_t *t, const char *arg)
{
    const char *const path[] = {arg};

    return mcp_view_schema_names(json_object_get(t->operation, "schema"), path, 1);
}

/* --- one location ------------------------------------------------------------------------ */

static void put_owner(apr_hash_t *table, const char *name, const mcp_template_param_t *param,
                      int is_free, apr_pool_t *pool)
{
    owner_t *owner = name != NULL ? apr_hash_get(table, name, APR_HASH_KEY_STRING) : NULL;

    if (name == NULL) {
        return;
    }
    if (owner == NULL) {
        owner = apr_pcalloc(pool, sizeof(*owner));
        owner->param = param;
        apr_hash_set(table, name, APR_HASH_KEY_STRING, owner);
    }
    owner->param = owner->param == param ? param : NULL;
    owner->is_free = owner->is_free || is_free;
}

static void add_name(names_t *names, const char *name, const mcp_template_param_t *param,
                     int is_free)
{
    put_owner(names->exact, lower(name, names->pool), param, is_free, names->pool);
    for (int is_whole = 0; is_whole < 2; ++is_whole) {
        put_owner(names->fields, field_of(name, is_whole, names->pool), param, is_free,
                  names->pool);
    }
    ++names->count;
}

/* The names in a path's literal query. */
static void add_literals(names_t *names, const char *at)
{
    while (at != NULL && *at != '\0') {
        size_t bytes = strcspn(at, "=&");
        char *name = apr_pstrmemdup(names->pool, at, bytes);

        name[mcp_encode_decode(name, bytes, name)] = '\0';
        add_name(names, name, NULL, 0);
        at += strcspn(at, "&");
        at += *at == '&' ? 1 : 0;
    }
}

static int is_exploded(const mcp_template_param_t *param)
{
    return param->explode && json_is_object(param->value) && !param->style->is_deep;
}

static int is_deep(const mcp_template_param_t *param)
{
    return param->style->is_deep && json_is_object(param->value);
}

/* The gateway's own names of a location: NULL: none. */
static const char *auth_of(const mcp_template_t *t, mcp_template_in_t in)
{
    if (in == MCP_TEMPLATE_COOKIE) {
        return t->auth_cookie;
    }
    return in == MCP_TEMPLATE_QUERY && strcmp(t->auth_type, "query") == 0 ? t->auth_name : NULL;
}

static void add_declared(const mcp_template_t *t, mcp_template_in_t in, names_t *names)
{
    for (size_t i = 0; i < t->count; ++i) {
        if (t->params[i].in == in) {
            add_name(names, t->params[i].name, &t->params[i], 0);
        }
    }
    if (auth_of(t, in) != NULL) {
        add_name(names, auth_of(t, in), NULL, 0);
    }
    if (in == MCP_TEMPLATE_QUERY) {
        add_literals(names, t->literals);
    }
}

static const owner_t *other_owner(apr_hash_t *table, const char *name,
                                  const mcp_template_param_t *param)
{
    const owner_t *owner =
        name != NULL ? apr_hash_get(table, name, APR_HASH_KEY_STRING) : NULL;

    return owner != NULL && owner->param != param ? owner : NULL;
}

static int is_taken(const names_t *names, const mcp_template_param_t *param, const char *key,
                    int is_declared)
{
    if (other_owner(names->exact, lower(key, names->pool), param) != NULL) {
        return 1;
    }
    for (int is_whole = 0; is_whole < 2; ++is_whole) {
        const owner_t *owner =
            other_owner(names->fields, field_of(key, is_whole, names->pool), param);

        if (owner != NULL && (owner->is_free || !is_declared)) {
            return 1;
        }
    }
    return 0;
}

/* Keys of an exploded object become names. */
static apr_status_t check_exploded(const mcp_template_t *t, const mcp_template_param_t *param,
                                   names_t *names, mcp_err_t *err)
{
    json_t *object = mcp_template_iterable(param->value);
    json_t *declared = declared_names(t, param->arg);
    int is_clash = 0;

    for (void *at = json_object_iter(object); at != NULL && !is_clash;
         at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        int is_declared = json_object_get(declared, key) != NULL;

        if (json_is_null(json_object_iter_value(at))) {
            continue;
        }
        is_clash = names->count > MANY_KEYS || is_taken(names, param, key, is_declared);
        if (!is_clash) {
            add_name(names, key, param, !is_declared);
        }
    }
    json_decref(declared);
    if (is_clash) {
        return names->count > MANY_KEYS ? mcp_template_invalid(t, err, param->arg, "is too long")
                                        : mcp_template_invalid(t, err, param->arg, MCP_TEMPLATE_CLASH);
    }
    return APR_SUCCESS;
}

static int is_tree(const json_t *value)
{
    return json_is_object(value) || json_is_array(value);
}

/* 1 if a key of the object that goes out as name[key] leads where `other`, a name with brackets,
 * leads. */
static int is_within(const char *name, const json_t *value, const char *other)
{
    json_t *object = mcp_template_iterable(value);
    size_t head = strcspn(other, "[");
    const char *rest = other + head;

    if (head == 0 || *rest == '\0' || !json_is_object(value) ||
        !mcp_name_is_same_field(name, other)) {
        return 0;
    }
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *member = json_object_iter_value(at);

        if (!json_is_null(member) && (mcp_name_is_same_field(key, rest) ||
                                      (mcp_name_is_no_field(key) && is_tree(member)))) {
            return 1;
        }
    }
    return 0;
}

static apr_status_t check_deep(const mcp_template_t *t, const mcp_template_param_t *param,
                               mcp_err_t *err)
{
    const char *auth = auth_of(t, param->in);
    int is_clash = auth != NULL && is_within(param->name, param->value, auth);

    for (size_t i = 0; i < t->count && !is_clash; ++i) {
        is_clash = t->params[i].in == param->in && &t->params[i] != param &&
                   is_within(param->name, param->value, t->params[i].name);
    }
    return is_clash ? mcp_template_invalid(t, err, param->arg, MCP_TEMPLATE_CLASH) : APR_SUCCESS;
}

static apr_status_t check_place(const mcp_template_t *t, mcp_template_in_t in, mcp_err_t *err)
{
    names_t names = {t->pool, NULL, NULL, 0};
    apr_status_t status = APR_SUCCESS;

    for (size_t i = 0; i < t->count && status == APR_SUCCESS; ++i) {
        const mcp_template_param_t *param = &t->params[i];

        if (param->in != in) {
            continue;
        }
        if (is_deep(param)) {
            status = check_deep(t, param, err);
        } else if (is_exploded(param)) {
            if (names.exact == NULL) {
                names.exact = apr_hash_make(t->pool);
                names.fields = apr_hash_make(t->pool);
                add_declared(t, in, &names);
            }
            status = check_exploded(t, param, &names, err);
        }
    }
    return status;
}

apr_status_t mcp_template_check_names(const mcp_template_t *t, mcp_err_t *err)
{
    static const mcp_template_in_t places[] = {MCP_TEMPLATE_PATH, MCP_TEMPLATE_QUERY,
                                               MCP_TEMPLATE_HEADER_LINE, MCP_TEMPLATE_COOKIE};
    apr_status_t status = APR_SUCCESS;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && status == APR_SUCCESS; ++i) {
        status = check_place(t, places[i], err);
    }
    return status;
}

/* --- a form's body -------------------------------------------------------------------------- */

/* Fields that the declared names lead to. */
static apr_hash_t *fields_of(const json_t *declared, apr_pool_t *pool)
{
    json_t *object = mcp_template_iterable(declared);
    apr_hash_t *fields = apr_hash_make(pool);

    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        for (int is_whole = 0; is_whole < 2; ++is_whole) {
            const char *field = field_of(json_object_iter_key(at), is_whole, pool);

            if (field != NULL) {
                apr_hash_set(fields, field, APR_HASH_KEY_STRING, field);
            }
        }
    }
    return fields;
}

/* 1 if a key that no schema declares leads to one of the fields. One that leads nowhere by itself
 * leads where the keys below it do. */
static int is_astray(apr_hash_t *fields, const char *key, const json_t *value, char *buf)
{
    if (mcp_name_is_no_field(key) && is_tree(value)) {
        return 1;
    }
    for (int is_whole = 0; is_whole < 2; ++is_whole) {
        size_t bytes = mcp_name_field(key, is_whole, buf);

        if (bytes > 0 && apr_hash_get(fields, buf, (apr_ssize_t)bytes) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* 1 if a declared name with brackets leads into the member. */
static int is_entered(const json_t *declared, const char *name, const json_t *value)
{
    json_t *object = mcp_template_iterable(declared);

    for (void *at = json_is_object(value) ? json_object_iter(object) : NULL; at != NULL;
         at = json_object_iter_next(object, at)) {
        const char *other = json_object_iter_key(at);

        if (strcmp(other, name) != 0 && is_within(name, value, other)) {
            return 1;
        }
    }
    return 0;
}

static size_t longest_key(const json_t *value)
{
    json_t *object = mcp_template_iterable(value);
    size_t longest = 0;

    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        size_t bytes = strlen(json_object_iter_key(at));

        longest = bytes > longest ? bytes : longest;
    }
    return longest;
}

apr_status_t mcp_template_check_members(const mcp_template_t *t, const char *arg,
                                        const json_t *value, mcp_err_t *err)
{
    json_t *object = mcp_template_iterable(value);
    json_t *declared = declared_names(t, arg);
    apr_hash_t *fields = fields_of(declared, t->pool);
    char *buf = apr_palloc(t->pool, longest_key(value) + 1);
    int is_clash = 0;

    for (void *at = json_object_iter(object); at != NULL && !is_clash;
         at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *member = json_object_iter_value(at);

        is_clash = !json_is_null(member) && ((json_object_get(declared, key) == NULL &&
                                              is_astray(fields, key, member, buf)) ||
                                             is_entered(declared, key, member));
    }
    json_decref(declared);
    return is_clash ? mcp_template_invalid(t, err, arg, MCP_TEMPLATE_CLASH) : APR_SUCCESS;
}

apr_status_t mcp_template_check_field(const mcp_template_t *t, const char *arg, const char *name,
                                      const json_t *value, const char *other, mcp_err_t *err)
{
    return strcmp(name, other) != 0 && is_within(name, value, other)
               ? mcp_template_invalid(t, err, arg, MCP_TEMPLATE_CLASH)
               : APR_SUCCESS;
}
