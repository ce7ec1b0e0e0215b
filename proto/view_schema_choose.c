/* The argument that chooses an account of a merged tool, and the sentences about it. */
#include "view_schema_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RENAMES 8 /* arg_ in front of `connection` */

/* --- choosing an account ---------------------------------------------------------------- */

static int names_it(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); ++i) {
        const char *one = json_string_value(json_array_get(list, i));

        if (one != NULL && strcmp(one, name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* 1 if one of the crowd speaks of an argument by its name. */
static int is_spoken_of(const mcp_vschema_crowd_t *crowd, const char *name)
{
    static const char *const maps[] = {"properties", "dependentRequired", "dependentSchemas",
                                       "dependencies"};
    int is_found = 0;

    for (size_t i = 0; i < crowd->count && !is_found; ++i) {
        const json_t *schema = crowd->members[i].schema;

        is_found = names_it(json_object_get(schema, "required"), name);
        for (size_t k = 0; k < sizeof(maps) / sizeof(maps[0]) && !is_found; ++k) {
            const json_t *map = json_object_get(schema, maps[k]);

            is_found = json_object_get(map, name) != NULL;
            for (void *at = k > 0 && json_is_object(map)
                                ? json_object_iter(mcp_vschema_iterable(map))
                                : NULL;
                 at != NULL && !is_found;
                 at = json_object_iter_next(mcp_vschema_iterable(map), at)) {
                is_found = names_it(json_object_iter_value(at), name);
            }
        }
    }
    return is_found;
}

/* The name that an own `connection` gets: "" if there is none. 0, or -1. */
static int find_name(mcp_vschema_run_t *run, char ret[MCP_VIEW_SCHEMA_NAME])
{
    char name[MCP_VIEW_SCHEMA_NAME] = MCP_VSCHEMA_CHOICE;
    mcp_vschema_crowd_t *crowd = calloc(1, sizeof(*crowd));
    int is_taken;

    if (crowd == NULL) {
        return mcp_vschema_fail(run, MCP_E_NOMEM, "Out of memory.");
    }
    mcp_vschema_join(crowd, run->root, 0);
    mcp_vschema_gather(run, crowd);
    for (size_t i = 0; i < crowd->count; ++i) {
        /* `not` says nothing that is known, but it speaks of arguments too. */
        const json_t *inner = json_object_get(crowd->members[i].schema, "not");

        if (inner != NULL) {
            mcp_vschema_join(crowd, inner, 1);
            mcp_vschema_follow(run, crowd, inner, 1);
        }
    }
    is_taken = is_spoken_of(crowd, name);
    ret[0] = '\0';
    for (size_t i = 0; is_taken && i < RENAMES; ++i) {
        (void)snprintf(ret, MCP_VIEW_SCHEMA_NAME, "arg_%.*s", (int)sizeof(name) - 8, name);
        (void)snprintf(name, sizeof(name), "%s", ret);
        is_taken = is_spoken_of(crowd, name);
    }
    free(crowd);
    return is_taken                ? mcp_vschema_fail(run, MCP_E_FIELD, "No name is left.")
           : run->status == MCP_OK ? 0
                                   : -1;
}

static int are_labels(const json_t *labels)
{
    size_t count = json_array_size(labels);

    for (size_t i = 0; i < count; ++i) {
        const json_t *label = json_array_get(labels, i);

        if (!json_is_string(label) || json_string_length(label) == 0) {
            return 0;
        }
        for (size_t k = 0; k < i; ++k) {
            if (json_equal(label, json_array_get(labels, k))) {
                return 0;
            }
        }
    }
    return count > 0;
}

/* The new argument stands first: it is what the description speaks of. */
static int put_choice(mcp_vschema_run_t *run, json_t *out, const json_t *labels)
{
    const json_t *old = json_object_get(out, "properties");
    json_t *properties = json_object();
    json_t *choice = json_pack("{s:s,s:o,s:s}", "type", "string", "enum", json_deep_copy(labels),
                               "description", "The account to use.");
    int status = mcp_vschema_set(run, properties, MCP_VSCHEMA_CHOICE, choice);

    for (void *at = json_is_object(old) ? json_object_iter(mcp_vschema_iterable(old)) : NULL;
         status == 0 && at != NULL; at = json_object_iter_next(mcp_vschema_iterable(old), at)) {
        if (strcmp(json_object_iter_key(at), MCP_VSCHEMA_CHOICE) != 0) {
            status = mcp_vschema_set(run, properties, json_object_iter_key(at),
                                     json_incref(json_object_iter_value(at)));
        }
    }
    if (status != 0) {
        json_decref(properties);
        return -1;
    }
    return mcp_vschema_set(run, out, "properties", properties);
}

static int put_required(mcp_vschema_run_t *run, json_t *out)
{
    json_t *required = json_object_get(out, "required");

    if (!run->is_required) {
        return 0;
    }
    if (required == NULL) {
        required = json_array();
        if (mcp_vschema_set(run, out, "required", required) != 0) {
            return -1;
        }
    }
    return mcp_vschema_append(run, required, json_string(MCP_VSCHEMA_CHOICE));
}

/* Draft-07 ignores what stands beside a reference. */
static int free_reference(mcp_vschema_run_t *run, json_t *out)
{
    json_t *reference = json_object_get(out, "$ref");

    if (!run->is_old || reference == NULL) {
        return 0;
    }
    if (mcp_vschema_set(run, out, "allOf", json_pack("[{s:o}]", "$ref", json_incref(reference))) !=
        0) {
        return -1;
    }
    return json_object_del(out, "$ref");
}

mcp_wire_status_t mcp_view_schema_choose(json_t *schema, const json_t *labels, int is_required,
                                         char ret_name[MCP_VIEW_SCHEMA_NAME])
{
    mcp_vschema_run_t run;
    json_t *out = NULL;
    char name[MCP_VIEW_SCHEMA_NAME] = "";
    int status = mcp_vschema_start(&run, schema);

    if (json_array_size(labels) > MCP_VIEW_SCHEMA_LABELS) {
        return MCP_E_SIZE;
    }
    if (!are_labels(labels)) {
        return MCP_E_FIELD;
    }
    run.is_choosing = 1;
    run.is_required = is_required;
    if (status == 0) {
        status = find_name(&run, name);
    }
    run.rename_to = name[0] != '\0' ? name : NULL;
    if (status == 0) {
        out = mcp_vschema_strip_root(&run);
        status = out != NULL ? 0 : -1;
    }
    if (status == 0) {
        status = free_reference(&run, out);
    }
    if (status == 0) {
        status = put_choice(&run, out, labels);
    }
    if (status == 0) {
        status = put_required(&run, out);
    }
    if (status == 0 && json_object_clear(schema) == 0) {
        for (void *at = json_object_iter(out); status == 0 && at != NULL;
             at = json_object_iter_next(out, at)) {
            status = mcp_vschema_set(&run, schema, json_object_iter_key(at),
                                     json_incref(json_object_iter_value(at)));
        }
        memcpy(ret_name, name, sizeof(name));
    }
    json_decref(out);
    return status == 0 ? MCP_OK : run.status != MCP_OK ? run.status : MCP_E_NOMEM;
}

/* --- texts --------------------------------------------------------------------------------- */

/* Appends to buf; 0, or -1 if it doesn't fit. */
static int add(char *buf, size_t size, size_t *used, const char *text)
{
    size_t bytes = strlen(text);

    if (bytes >= size - *used) {
        return -1;
    }
    memcpy(buf + *used, text, bytes + 1);
    *used += bytes;
    return 0;
}

mcp_wire_status_t mcp_view_schema_text_choose(const json_t *labels, char *buf, size_t size)
{
    size_t count = json_array_size(labels);
    size_t used = 0;
    char more[48] = ".";
    int status = size > 0 ? add(buf, size, &used, "Set `" MCP_VSCHEMA_CHOICE "`: ") : -1;

    if (count == 0) {
        return MCP_E_FIELD;
    }
    for (size_t i = 0; i < count && i < 3; ++i) {
        const char *label = json_string_value(json_array_get(labels, i));

        if (label == NULL) {
            return MCP_E_FIELD;
        }
        if (status == 0 && i > 0) {
            status = add(buf, size, &used, ", ");
        }
        if (status == 0) {
            status = add(buf, size, &used, label);
        }
    }
    if (count > 3) {
        (void)snprintf(more, sizeof(more), " and %zu more.", count - 3);
    }
    return status == 0 && add(buf, size, &used, more) == 0 ? MCP_OK : MCP_E_SPACE;
}

const char *mcp_view_schema_text_frozen(void)
{
    return "Some values are frozen.";
}
