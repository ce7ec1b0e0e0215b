/* References of a schema that parts were taken out of. Each must go on meaning what it meant: users
 * of a definition that a frozen place was stripped from elsewhere keep the whole of it. So the
 * result gets its definitions anew, copied from the original as references ask for them; what was
 * referred to by a path of its own becomes a definition; and what nobody refers to is left behind,
 * with all it says about frozen places. */
#include "view_schema_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEW 1u
#define OLD 2u

static const char *const homes[2] = {"$defs", "definitions"};

static const struct {
    const char *name;
    mcp_vschema_form_t form;
    unsigned dialects;
} forms[] = {
    {"properties", MCP_VSCHEMA_MAP, NEW | OLD},
    {"required", MCP_VSCHEMA_DATA, NEW | OLD},
    {"type", MCP_VSCHEMA_DATA, NEW | OLD},
    {"description", MCP_VSCHEMA_DATA, NEW | OLD},
    {"title", MCP_VSCHEMA_DATA, NEW | OLD},
    {"items", MCP_VSCHEMA_ITEMS, NEW | OLD},
    {"enum", MCP_VSCHEMA_DATA, NEW | OLD},
    {"default", MCP_VSCHEMA_DATA, NEW | OLD},
    {"examples", MCP_VSCHEMA_DATA, NEW | OLD},
    {"const", MCP_VSCHEMA_DATA, NEW | OLD},
    {"format", MCP_VSCHEMA_DATA, NEW | OLD},
    {"$ref", MCP_VSCHEMA_DATA, NEW | OLD},
    {"$dynamicRef", MCP_VSCHEMA_DATA, NEW},
    {"$schema", MCP_VSCHEMA_DATA, NEW | OLD},
    {"$id", MCP_VSCHEMA_DATA, NEW | OLD},
    {"$anchor", MCP_VSCHEMA_DATA, NEW},
    {"$dynamicAnchor", MCP_VSCHEMA_DATA, NEW},
    {"$vocabulary", MCP_VSCHEMA_DATA, NEW},
    {"$comment", MCP_VSCHEMA_DATA, NEW | OLD},
    {"$defs", MCP_VSCHEMA_MAP, NEW | OLD},
    {"definitions", MCP_VSCHEMA_MAP, NEW | OLD},
    {"allOf", MCP_VSCHEMA_LIST, NEW | OLD},
    {"anyOf", MCP_VSCHEMA_LIST, NEW | OLD},
    {"oneOf", MCP_VSCHEMA_LIST, NEW | OLD},
    {"not", MCP_VSCHEMA_ONE, NEW | OLD},
    {"if", MCP_VSCHEMA_ONE, NEW | OLD},
    {"then", MCP_VSCHEMA_ONE, NEW | OLD},
    {"else", MCP_VSCHEMA_ONE, NEW | OLD},
    {"additionalProperties", MCP_VSCHEMA_ONE, NEW | OLD},
    {"patternProperties", MCP_VSCHEMA_MAP, NEW | OLD},
    {"propertyNames", MCP_VSCHEMA_ONE, NEW | OLD},
    {"unevaluatedProperties", MCP_VSCHEMA_ONE, NEW},
    {"unevaluatedItems", MCP_VSCHEMA_ONE, NEW},
    {"additionalItems", MCP_VSCHEMA_ONE, OLD},
    {"prefixItems", MCP_VSCHEMA_LIST, NEW},
    {"contains", MCP_VSCHEMA_ONE, NEW | OLD},
    {"contentSchema", MCP_VSCHEMA_ONE, NEW},
    {"contentEncoding", MCP_VSCHEMA_DATA, NEW | OLD},
    {"contentMediaType", MCP_VSCHEMA_DATA, NEW | OLD},
    {"dependencies", MCP_VSCHEMA_DEPENDENCIES, NEW | OLD},
    {"dependentSchemas", MCP_VSCHEMA_MAP, NEW},
    {"dependentRequired", MCP_VSCHEMA_DATA, NEW},
    {"minProperties", MCP_VSCHEMA_DATA, NEW | OLD},
    {"maxProperties", MCP_VSCHEMA_DATA, NEW | OLD},
    {"minItems", MCP_VSCHEMA_DATA, NEW | OLD},
    {"maxItems", MCP_VSCHEMA_DATA, NEW | OLD},
    {"minContains", MCP_VSCHEMA_DATA, NEW},
    {"maxContains", MCP_VSCHEMA_DATA, NEW},
    {"uniqueItems", MCP_VSCHEMA_DATA, NEW | OLD},
    {"minLength", MCP_VSCHEMA_DATA, NEW | OLD},
    {"maxLength", MCP_VSCHEMA_DATA, NEW | OLD},
    {"pattern", MCP_VSCHEMA_DATA, NEW | OLD},
    {"minimum", MCP_VSCHEMA_DATA, NEW | OLD},
    {"maximum", MCP_VSCHEMA_DATA, NEW | OLD},
    {"exclusiveMinimum", MCP_VSCHEMA_DATA, NEW | OLD},
    {"exclusiveMaximum", MCP_VSCHEMA_DATA, NEW | OLD},
    {"multipleOf", MCP_VSCHEMA_DATA, NEW | OLD},
    {"deprecated", MCP_VSCHEMA_DATA, NEW | OLD},
    {"readOnly", MCP_VSCHEMA_DATA, NEW | OLD},
    {"writeOnly", MCP_VSCHEMA_DATA, NEW | OLD},
};

mcp_vschema_form_t mcp_vschema_form(const mcp_vschema_run_t *run, const char *keyword)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i) {
        if (strcmp(forms[i].name, keyword) == 0) {
            return (forms[i].dialects & (run->is_old ? OLD : NEW)) != 0 ? forms[i].form
                                                                        : MCP_VSCHEMA_UNKNOWN;
        }
    }
    return MCP_VSCHEMA_UNKNOWN;
}

/* In draft-07 an $id that is only a fragment is an anchor, and one beside $ref is ignored. */
int mcp_vschema_is_resource(const mcp_vschema_run_t *run, const json_t *schema)
{
    const char *id = json_string_value(json_object_get(schema, "$id"));

    return id != NULL && schema != run->root &&
           !(run->is_old && (id[0] == '#' || json_object_get(schema, "$ref") != NULL));
}

/* --- where a reference leads -------------------------------------------------- */

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    char lower = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    const char *at = lower != '\0' ? strchr(digits, lower) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* The decoded fragment (the caller frees it), or NULL for a reference that leads out of the
 * document, is malformed, or is beyond what memory there is. */
static char *fragment_of(const mcp_vschema_run_t *run, const char *reference)
{
    const char *id = json_string_value(json_object_get(run->root, "$id"));
    size_t id_bytes = id != NULL ? strcspn(id, "#") : 0;
    size_t used = 0;
    char *ret;

    if (reference[0] != '#') {
        if (reference[0] != '\0' && (id_bytes == 0 || strcspn(reference, "#") != id_bytes ||
                                     strncmp(reference, id, id_bytes) != 0)) {
            return NULL;
        }
        reference += strcspn(reference, "#");
    }
    reference += reference[0] == '#' ? 1 : 0;
    ret = malloc(strlen(reference) + 1);
    for (; ret != NULL && *reference != '\0'; ++reference) {
        if (*reference != '%') {
            ret[used++] = *reference;
        } else if (hex_digit(reference[1]) >= 0 && hex_digit(reference[2]) >= 0) {
            ret[used++] = (char)(hex_digit(reference[1]) * 16 + hex_digit(reference[2]));
            reference += 2;
        } else {
            free(ret);
            return NULL;
        }
    }
    if (ret != NULL) {
        ret[used] = '\0';
    }
    return ret;
}

/* Unescapes a pointer's token in place; -1 for a '~' that is none. */
static int unescape(char *token)
{
    char *to = token;

    for (const char *at = token; *at != '\0'; ++at) {
        if (*at != '~') {
            *to++ = *at;
        } else if (at[1] == '0' || at[1] == '1') {
            *to++ = at[1] == '0' ? '~' : '/';
            ++at;
        } else {
            return -1;
        }
    }
    *to = '\0';
    return 0;
}

static const json_t *step(const json_t *json, const char *token)
{
    size_t index = 0;
    size_t bytes = strlen(token);

    if (json_is_object(json)) {
        return json_object_get(json, token);
    }
    if (!json_is_array(json) || bytes == 0 || bytes > 9 || (token[0] == '0' && bytes > 1) ||
        strspn(token, "0123456789") != bytes) {
        return NULL;
    }
    for (; *token != '\0'; ++token) {
        index = index * 10 + (size_t)(*token - '0');
    }
    return json_array_get(json, index);
}

/* Follows pointer, which it takes apart. */
static const json_t *follow(const mcp_vschema_run_t *run, char *pointer, int *ret_home,
                            char **ret_name)
{
    const json_t *json = run->root;
    int home = -1;
    size_t count = 0;

    while (json != NULL && *pointer == '/') {
        char *token = pointer + 1;
        size_t bytes = strcspn(token, "/");
        char *next = token + bytes;
        int is_last = *next == '\0';

        *next = '\0';
        if (unescape(token) != 0) {
            return NULL;
        }
        for (int i = 0; i < 2 && count == 0; ++i) {
            home = strcmp(token, homes[i]) == 0 ? i : home;
        }
        json = step(json, token);
        ++count;
        if (is_last) {
            if (json != NULL && count == 2 && home >= 0 && ret_name != NULL) {
                *ret_name = strdup(token);
                *ret_home = *ret_name != NULL ? home : -1;
            }
            return json;
        }
        *next = '/';
        pointer = next;
    }
    return json;
}

static int is_anchor(const mcp_vschema_run_t *run, const json_t *schema, const char *name)
{
    static const char *const keys[] = {"$anchor", "$dynamicAnchor"};
    const char *id = json_string_value(json_object_get(schema, "$id"));

    if (run->is_old) {
        return id != NULL && id[0] == '#' && strcmp(id + 1, name) == 0;
    }
    for (size_t i = 0; i < 2; ++i) {
        const char *anchor = json_string_value(json_object_get(schema, keys[i]));

        if (anchor != NULL && strcmp(anchor, name) == 0) {
            return 1;
        }
    }
    return 0;
}

static const json_t *find_anchor(mcp_vschema_run_t *run, const json_t *schema, const char *name);

/* The anchor among what one keyword holds. Recursion as deep as the document, whose depth was
 * checked. */
static const json_t *find_in(mcp_vschema_run_t *run, mcp_vschema_form_t form, const json_t *value,
                             const char *name)
{
    const json_t *found = NULL;

    if (form == MCP_VSCHEMA_ONE || (form == MCP_VSCHEMA_ITEMS && json_is_object(value))) {
        return find_anchor(run, value, name);
    }
    if (form == MCP_VSCHEMA_LIST || form == MCP_VSCHEMA_ITEMS) {
        for (size_t i = 0; found == NULL && i < json_array_size(value); ++i) {
            found = find_anchor(run, json_array_get(value, i), name);
        }
    }
    if (form == MCP_VSCHEMA_MAP || form == MCP_VSCHEMA_DEPENDENCIES) {
        for (void *at = json_object_iter(mcp_vschema_iterable(value)); found == NULL && at != NULL;
             at = json_object_iter_next(mcp_vschema_iterable(value), at)) {
            found = find_anchor(run, json_object_iter_value(at), name);
        }
    }
    return found;
}

static const json_t *find_anchor(mcp_vschema_run_t *run, const json_t *schema, const char *name)
{
    const json_t *found = NULL;

    if (!json_is_object(schema) || mcp_vschema_spend(run, 1) != 0 ||
        mcp_vschema_is_resource(run, schema)) {
        return NULL;
    }
    if (is_anchor(run, schema, name)) {
        return schema;
    }
    for (void *at = json_object_iter(mcp_vschema_iterable(schema)); found == NULL && at != NULL;
         at = json_object_iter_next(mcp_vschema_iterable(schema), at)) {
        found = find_in(run, mcp_vschema_form(run, json_object_iter_key(at)),
                        json_object_iter_value(at), name);
    }
    return found;
}

const json_t *mcp_vschema_resolve(mcp_vschema_run_t *run, const char *reference, int *ret_home,
                                  char **ret_name)
{
    char *fragment = fragment_of(run, reference);
    const json_t *found;

    if (ret_home != NULL) {
        *ret_home = -1;
    }
    if (fragment == NULL || mcp_vschema_spend(run, 1) != 0) {
        free(fragment);
        return NULL;
    }
    if (fragment[0] == '\0' || fragment[0] == '/') {
        found = follow(run, fragment, ret_home, ret_name);
    } else {
        found = find_anchor(run, run->root, fragment);
    }
    free(fragment);
    return found;
}

/* --- settling ------------------------------------------------------------------- */

/* Copies what is referred to into the result's definitions, where it waits to be settled. */
static int define(mcp_vschema_run_t *run, int home, const char *name, const json_t *target)
{
    json_t *copy = mcp_vschema_copy(run, target);

    if (copy == NULL) {
        return -1;
    }
    if (target == run->root) {
        /* Its own definitions are reached through the new root. */
        (void)json_object_del(copy, "$schema");
        (void)json_object_del(copy, "$id");
        (void)json_object_del(copy, homes[0]);
        (void)json_object_del(copy, homes[1]);
    }
    if (mcp_vschema_append(run, run->queue, json_incref(copy)) != 0) {
        json_decref(copy);
        return -1;
    }
    return mcp_vschema_set(run, run->definitions[home], name, copy);
}

/* Gives what is no definition of the root a name as one. The reference in *ret is borrowed. */
static int move(mcp_vschema_run_t *run, const json_t *target, const char **ret)
{
    int home = run->is_old ? 1 : 0;
    const json_t *taken = json_object_get(run->root, homes[home]);
    char address[2 + 2 * sizeof(void *) + 1];
    char reference[48];
    char name[24];

    (void)snprintf(address, sizeof(address), "%p", (const void *)target);
    *ret = json_string_value(json_object_get(run->moved, address));
    if (*ret != NULL) {
        return 0;
    }
    for (size_t i = json_object_size(run->moved) + 1;; ++i) {
        (void)snprintf(name, sizeof(name), "part%zu", i);
        if (json_object_get(taken, name) == NULL &&
            json_object_get(run->definitions[home], name) == NULL) {
            break;
        }
        if (mcp_vschema_spend(run, 1) != 0) {
            return -1;
        }
    }
    (void)snprintf(reference, sizeof(reference), "#/%s/%s", homes[home], name);
    if (define(run, home, name, target) != 0 ||
        mcp_vschema_set(run, run->moved, address, json_string(reference)) != 0) {
        return -1;
    }
    *ret = json_string_value(json_object_get(run->moved, address));
    return 0;
}

/* What a reference must say in the result. */
static int place_of(mcp_vschema_run_t *run, const char *reference, const char **ret)
{
    char *name = NULL;
    int home = -1;
    int status = 0;
    const json_t *target = mcp_vschema_resolve(run, reference, &home, &name);

    if (target == NULL) {
        free(name);
        return mcp_vschema_fail(run, MCP_E_FIELD, "The schema has a reference that leads nowhere.");
    }
    if (home >= 0) {
        *ret = reference;
        if (json_object_get(run->definitions[home], name) == NULL) {
            status = define(run, home, name, target);
        }
    } else {
        status = move(run, target, ret);
    }
    free(name);
    return status;
}

static int settle_schema(mcp_vschema_run_t *run, json_t *schema);

static int settle_in(mcp_vschema_run_t *run, mcp_vschema_form_t form, json_t *value)
{
    if (form == MCP_VSCHEMA_ONE || (form == MCP_VSCHEMA_ITEMS && json_is_object(value))) {
        return settle_schema(run, value);
    }
    if (form == MCP_VSCHEMA_LIST || form == MCP_VSCHEMA_ITEMS) {
        for (size_t i = 0; i < json_array_size(value); ++i) {
            if (settle_schema(run, json_array_get(value, i)) != 0) {
                return -1;
            }
        }
    }
    if (form == MCP_VSCHEMA_MAP || form == MCP_VSCHEMA_DEPENDENCIES) {
        for (void *at = json_object_iter(value); at != NULL;
             at = json_object_iter_next(value, at)) {
            if (settle_schema(run, json_object_iter_value(at)) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* Beside $ref draft-07 ignores all else; it goes, with what it may refer to. */
static int keep_reference_alone(mcp_vschema_run_t *run, json_t *schema)
{
    static const char *const kept[] = {"$ref",        "$schema", "$id",      "title",
                                       "description", "default", "examples", "$comment"};
    json_t *copy = json_object();
    int status = copy != NULL ? 0 : mcp_vschema_fail(run, MCP_E_NOMEM, "Out of memory.");

    for (size_t i = 0; status == 0 && i < sizeof(kept) / sizeof(kept[0]); ++i) {
        json_t *value = json_object_get(schema, kept[i]);

        if (value != NULL) {
            status = mcp_vschema_set(run, copy, kept[i], json_incref(value));
        }
    }
    if (status == 0) {
        (void)json_object_clear(schema);
        for (void *at = json_object_iter(copy); status == 0 && at != NULL;
             at = json_object_iter_next(copy, at)) {
            status = mcp_vschema_set(run, schema, json_object_iter_key(at),
                                     json_incref(json_object_iter_value(at)));
        }
    }
    json_decref(copy);
    return status;
}

static int settle_references(mcp_vschema_run_t *run, json_t *schema)
{
    static const char *const keys[] = {"$ref", "$dynamicRef"};

    for (size_t i = 0; i < (run->is_old ? 1u : 2u); ++i) {
        const char *reference = json_string_value(json_object_get(schema, keys[i]));
        const char *place = NULL;
        json_t *all;

        if (reference == NULL) {
            continue;
        }
        if (place_of(run, reference, &place) != 0) {
            return -1;
        }
        if (i == 0 || json_object_get(schema, "$ref") == NULL) {
            if ((i > 0 || place != reference) &&
                mcp_vschema_set(run, schema, "$ref", json_string(place)) != 0) {
                return -1;
            }
        } else {
            all = json_object_get(schema, "allOf");
            if (all == NULL) {
                all = json_array();
                if (mcp_vschema_set(run, schema, "allOf", all) != 0) {
                    return -1;
                }
            }
            if (mcp_vschema_append(run, all, json_pack("{s:s}", "$ref", place)) != 0) {
                return -1;
            }
        }
        if (i > 0) {
            /* One resource alone has no other to look the anchor up in. */
            (void)json_object_del(schema, "$dynamicRef");
        }
    }
    return 0;
}

/* Recursion as deep as the schema, which consists of parts of a document whose depth was checked. */
static int settle_schema(mcp_vschema_run_t *run, json_t *schema)
{
    static const char *const gone[] = {"$anchor", "$dynamicAnchor", "$defs", "definitions"};
    const char *id;

    if (!json_is_object(schema)) {
        return 0;
    }
    id = json_string_value(json_object_get(schema, "$id"));
    if (run->depth == MCP_VSCHEMA_DEPTH) {
        return mcp_vschema_fail(run, MCP_E_SIZE, "The schema is nested too deeply.");
    }
    if (id != NULL && run->depth > 0) {
        if (!run->is_old || (id[0] != '#' && json_object_get(schema, "$ref") == NULL)) {
            return mcp_vschema_fail(run, MCP_E_FIELD,
                                    "The schema has a part with an identifier of its own.");
        }
        (void)json_object_del(schema, "$id");
    }
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); ++i) {
        (void)json_object_del(schema, gone[i]); /* references don't need them any more */
    }
    if (run->is_old && json_object_get(schema, "$ref") != NULL &&
        keep_reference_alone(run, schema) != 0) {
        return -1;
    }
    ++run->depth;
    for (void *at = json_object_iter(schema); at != NULL; at = json_object_iter_next(schema, at)) {
        if (mcp_vschema_spend(run, 1) != 0 ||
            settle_in(run, mcp_vschema_form(run, json_object_iter_key(at)),
                      json_object_iter_value(at)) != 0) {
            return -1;
        }
    }
    --run->depth;
    return settle_references(run, schema); /* last: what it puts in is settled */
}

int mcp_vschema_settle(mcp_vschema_run_t *run, json_t *out)
{
    int status;

    run->depth = 0;
    run->definitions[0] = json_object();
    run->definitions[1] = json_object();
    run->moved = json_object();
    run->queue = json_array();
    status = settle_schema(run, out);
    for (size_t i = 0; status == 0 && i < json_array_size(run->queue); ++i) {
        run->depth = 1; /* not the root: no identifier of its own */
        status = settle_schema(run, json_array_get(run->queue, i));
    }
    for (int i = 0; i < 2; ++i) {
        if (status == 0 && json_object_size(run->definitions[i]) > 0) {
            status = mcp_vschema_set(run, out, homes[i], json_incref(run->definitions[i]));
        }
        json_decref(run->definitions[i]);
    }
    json_decref(run->moved);
    json_decref(run->queue);
    return status;
}
