/* Whether a schema knows a place, and which names it declares: every schema that applies to a value is gathered, and together they
 * say what members it has. */
#include "view_schema_private.h"

#include <stdlib.h>
#include <string.h>

void mcp_vschema_join(mcp_vschema_crowd_t *crowd, const json_t *schema, int is_choice)
{
    for (size_t i = 0; i < crowd->count; ++i) {
        if (crowd->members[i].schema == schema) {
            crowd->members[i].is_choice = crowd->members[i].is_choice && is_choice;
            return;
        }
    }
    if (crowd->count < MCP_VSCHEMA_CROWD && schema != NULL) {
        crowd->members[crowd->count].schema = schema;
        crowd->members[crowd->count++].is_choice = is_choice;
    }
}

static void join_list(mcp_vschema_crowd_t *crowd, const json_t *list, int is_choice)
{
    for (size_t i = 0; i < json_array_size(list); ++i) {
        mcp_vschema_join(crowd, json_array_get(list, i), is_choice);
    }
}

/* Who comes along with the schema. */
void mcp_vschema_follow(mcp_vschema_run_t *run, mcp_vschema_crowd_t *crowd, const json_t *schema,
                        int is_choice)
{
    static const char *const choices[] = {"anyOf", "oneOf"};
    static const char *const branches[] = {"if", "then", "else"};
    static const char *const references[] = {"$ref", "$dynamicRef"};
    static const char *const maps[] = {"dependentSchemas", "dependencies"};

    for (size_t i = 0; i < (run->is_old ? 1u : 2u); ++i) {
        const char *reference = json_string_value(json_object_get(schema, references[i]));

        if (reference != NULL) {
            mcp_vschema_join(crowd, mcp_vschema_resolve(run, reference, NULL, NULL), is_choice);
        }
    }
    if (run->is_old && json_object_get(schema, "$ref") != NULL) {
        return;
    }
    join_list(crowd, json_object_get(schema, "allOf"), is_choice);
    for (size_t i = 0; i < 2; ++i) {
        const json_t *map = json_object_get(schema, maps[i]);

        join_list(crowd, json_object_get(schema, choices[i]), 1);
        for (void *at = json_is_object(map) ? json_object_iter(mcp_vschema_iterable(map)) : NULL;
             at != NULL; at = json_object_iter_next(mcp_vschema_iterable(map), at)) {
            if (json_is_object(json_object_iter_value(at))) {
                mcp_vschema_join(crowd, json_object_iter_value(at), 1);
            }
        }
    }
    for (size_t i = 0; i < 3; ++i) {
        mcp_vschema_join(crowd, json_object_get(schema, branches[i]), 1);
    }
}

/* 1 if the schema's own keywords take an object: its type says so, or nothing does and it doesn't
 * speak of items alone. */
static int takes_object(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    const char *one = json_string_value(type);

    if (!json_is_object(schema)) {
        return !json_is_false(schema);
    }
    for (size_t i = 0; i < json_array_size(type); ++i) {
        const char *name = json_string_value(json_array_get(type, i));

        if (name != NULL && strcmp(name, "object") == 0) {
            return 1;
        }
    }
    if (type != NULL) {
        return one != NULL && strcmp(one, "object") == 0;
    }
    return json_object_get(schema, "properties") != NULL ||
           (json_object_get(schema, "items") == NULL &&
            json_object_get(schema, "prefixItems") == NULL);
}

/* A schema that says what it takes by others alone. */
static int is_wrapper(const json_t *schema)
{
    static const char *const wraps[] = {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"};
    int is_wrapping = 0;

    for (size_t i = 0; i < sizeof(wraps) / sizeof(wraps[0]); ++i) {
        is_wrapping = is_wrapping || json_object_get(schema, wraps[i]) != NULL;
    }
    return is_wrapping && json_object_get(schema, "type") == NULL &&
           json_object_get(schema, "properties") == NULL;
}

/* Completes the crowd with all who come along. */
void mcp_vschema_gather(mcp_vschema_run_t *run, mcp_vschema_crowd_t *crowd)
{
    for (size_t i = 0; i < crowd->count && mcp_vschema_spend(run, 1) == 0; ++i) {
        const json_t *schema = crowd->members[i].schema;
        /* What draft-07 ignores beside a reference says nothing. */
        int is_alone = run->is_old && json_object_get(schema, "$ref") != NULL;
        int is_fitting = is_alone || takes_object(schema);

        if (crowd->members[i].is_choice && is_wrapper(schema)) {
            /* Whom it brings along is counted. */
        } else if (crowd->members[i].is_choice) {
            ++crowd->choices;
            crowd->fitting += is_fitting ? 1 : 0;
        } else if (!is_fitting) {
            crowd->is_closed = 1;
        }
        if (is_fitting) {
            mcp_vschema_follow(run, crowd, schema, crowd->members[i].is_choice);
        }
        if (is_alone || !is_fitting) {
            crowd->members[i].schema = NULL;
        }
    }
    if (crowd->choices > 0 && crowd->fitting == 0) {
        crowd->is_closed = 1;
    }
}

/* The crowd of a member. 1: declared, or what a map says of all; 0: closed to it; -1: open. */
static int step_to(const mcp_vschema_crowd_t *crowd, const char *token, mcp_vschema_crowd_t *ret)
{
    static const char *const others[] = {"additionalProperties", "unevaluatedProperties"};
    int has_names = 0;

    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < crowd->count; ++i) {
        const json_t *named = json_object_get(crowd->members[i].schema, "properties");

        has_names = has_names || json_object_size(named) > 0;
        mcp_vschema_join(ret, json_object_get(named, token), crowd->members[i].is_choice);
    }
    if (ret->count > 0 || has_names) {
        return ret->count > 0;
    }
    for (size_t i = 0; i < crowd->count; ++i) {
        for (size_t k = 0; k < 2; ++k) {
            const json_t *rest = json_object_get(crowd->members[i].schema, others[k]);

            if (json_is_false(rest) && !crowd->members[i].is_choice) {
                return 0;
            }
            if (json_is_object(rest)) {
                mcp_vschema_join(ret, rest, crowd->members[i].is_choice);
            }
        }
    }
    return ret->count > 0 ? 1 : -1;
}

/* 1 if the token may mean an element of an array. */
static int is_index(const char *token)
{
    return strcmp(token, "-") == 0 ||
           (token[0] != '\0' && strspn(token, "0123456789") == strlen(token));
}

static int is_known(mcp_vschema_run_t *run, const mcp_vschema_place_t *place,
                    mcp_vschema_crowd_t *crowd, mcp_vschema_crowd_t *next)
{
    memset(crowd, 0, sizeof(*crowd));
    mcp_vschema_join(crowd, run->root, 0);
    for (size_t i = 0; i < place->count; ++i) {
        mcp_vschema_crowd_t *swap = crowd;
        int found;

        if (i > 0 && is_index(place->tokens[i])) {
            return 0;
        }
        mcp_vschema_gather(run, crowd);
        if (crowd->is_closed || run->status != MCP_OK) {
            return 0;
        }
        found = step_to(crowd, place->tokens[i], next);
        if (found <= 0) {
            /* Open: nobody forbids what is further below, but indices. */
            for (size_t k = i + 1; found < 0 && k < place->count; ++k) {
                found = is_index(place->tokens[k]) ? 0 : found;
            }
            return found < 0;
        }
        crowd = next;
        next = swap;
    }
    return 1;
}

int mcp_view_schema_knows(const json_t *schema, const char *key)
{
    mcp_vschema_run_t run;
    mcp_vschema_place_t place;
    mcp_vschema_crowd_t *crowds;
    int known;

    if (key == NULL || mcp_vschema_start(&run, schema) != 0 ||
        mcp_vschema_place(key, &place) != MCP_OK) {
        return 0;
    }
    crowds = calloc(2, sizeof(*crowds));
    if (crowds == NULL) {
        return 0;
    }
    known = is_known(&run, &place, &crowds[0], &crowds[1]);
    free(crowds);
    return known;
}

/* --- declared names ------------------------------------------------------------------- */

static int add_names(mcp_vschema_run_t *run, const mcp_vschema_crowd_t *crowd, json_t *names)
{
    int status = 0;

    for (size_t i = 0; i < crowd->count; ++i) {
        const json_t *named = json_object_get(crowd->members[i].schema, "properties");

        for (void *at = json_is_object(named) ? json_object_iter(mcp_vschema_iterable(named)) : NULL;
             status == 0 && at != NULL;
             at = json_object_iter_next(mcp_vschema_iterable(named), at)) {
            status = mcp_vschema_spend(run, 1) != 0
                         ? -1
                         : mcp_vschema_set(run, names, json_object_iter_key(at), json_null());
        }
    }
    return status;
}

static int list_names(mcp_vschema_run_t *run, const char *const *path, size_t count,
                      mcp_vschema_crowd_t *crowd, mcp_vschema_crowd_t *next, json_t *names)
{
    memset(crowd, 0, sizeof(*crowd));
    mcp_vschema_join(crowd, run->root, 0);
    for (size_t i = 0; i < count; ++i) {
        mcp_vschema_crowd_t *swap = crowd;

        mcp_vschema_gather(run, crowd);
        if (run->status != MCP_OK) {
            return -1;
        }
        if (step_to(crowd, path[i], next) <= 0) {
            return 0;
        }
        crowd = next;
        next = swap;
    }
    mcp_vschema_gather(run, crowd);
    return run->status != MCP_OK ? -1 : add_names(run, crowd, names);
}

json_t *mcp_view_schema_names(const json_t *schema, const char *const *path, size_t count)
{
    mcp_vschema_run_t run;
    mcp_vschema_crowd_t *crowds;
    json_t *names;
    int status = -1;

    if (count > MCP_VIEW_SCHEMA_TOKENS || mcp_vschema_start(&run, schema) != 0) {
        return NULL;
    }
    names = json_object();
    crowds = calloc(2, sizeof(*crowds));
    if (names != NULL && crowds != NULL) {
        status = list_names(&run, path, count, &crowds[0], &crowds[1], names);
    }
    free(crowds);
    if (status != 0) {
        json_decref(names);
        return NULL;
    }
    return names;
}
