/* allOf of plain objects as one object: a model reads it more easily, and its members can be arguments. See oas_schema_private.h. */
#include "oas_schema_private.h"

#include <string.h>

/* 1 for an object that says nothing but what members it has. */
static int is_plain_object(const json_t *schema)
{
    static const char *const known[] = {"type",  "properties", "required", "additionalProperties", "description",
                                        "title", "default"};
    const char *type = json_string_value(json_object_get(schema, "type"));
    const char *name;
    json_t *value;

    if (!json_is_object(schema) || (json_object_get(schema, "type") != NULL && (type == NULL || strcmp(type, "object") != 0))) {
        return 0;
    }
    json_object_foreach(oas_iterable(schema), name, value)
    {
        size_t i;
        int is_known = 0;

        for (i = 0; i < sizeof known / sizeof known[0]; i++) {
            is_known |= strcmp(known[i], name) == 0;
        }
        if (!is_known) {
            return 0;
        }
    }
    return 1;
}

/* Adds a member; where there is another form of it, both have to hold. */
static void add_property(json_t *properties, const char *name, json_t *schema)
{
    json_t *there = json_object_get(properties, name);

    if (there == NULL) {
        (void)json_object_set_new(properties, name, json_incref(schema));
    } else if (!json_equal(there, schema)) {
        json_t *both = json_pack("{s:[O,O]}", "allOf", there, schema);
        const json_t *text = json_object_get(there, "description");

        if (text != NULL && both != NULL) {
            (void)json_object_set_new(both, "description", json_incref(oas_iterable(text)));
        }
        (void)json_object_set_new(properties, name, both);
    }
}

static int holds_text(const json_t *list, const char *text)
{
    json_t *entry;
    size_t i;

    json_array_foreach(list, i, entry)
    {
        if (json_is_string(entry) && strcmp(json_string_value(entry), text) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Adds what a plain object says. That nothing else may be there is said of parts that did not know of each other: it is left out. */
static void add_object(json_t *into, const json_t *from)
{
    json_t *properties = json_object_get(into, "properties");
    json_t *required = json_object_get(into, "required");
    json_t *text = json_object_get(from, "description");
    const char *name;
    json_t *value;
    size_t i;

    json_object_foreach(oas_iterable(json_object_get(from, "properties")), name, value)
    {
        add_property(properties, name, value);
    }
    json_array_foreach(json_object_get(from, "required"), i, value)
    {
        if (json_is_string(value) && !holds_text(required, json_string_value(value))) {
            (void)json_array_append_new(required, json_incref(value));
        }
    }
    if (text != NULL && json_object_get(into, "description") == NULL) {
        (void)json_object_set_new(into, "description", json_incref(text));
    }
    value = json_object_get(from, "additionalProperties");
    if (json_is_object(value) && json_object_get(into, "additionalProperties") == NULL) {
        (void)json_object_set_new(into, "additionalProperties", json_incref(value));
    }
}

void oas_tidy_required(json_t *schema)
{
    json_t *required = json_object_get(schema, "required");
    json_t *properties = json_object_get(schema, "properties");
    json_t *kept;
    json_t *name;
    size_t i;

    if (required == NULL || properties == NULL) {
        return;
    }
    kept = json_array();
    json_array_foreach(required, i, name)
    {
        if (json_object_get(properties, json_string_value(name)) != NULL) {
            (void)json_array_append_new(kept, json_incref(name));
        }
    }
    if (json_array_size(kept) == 0) {
        json_decref(kept);
        (void)json_object_del(schema, "required");
    } else {
        (void)json_object_set_new(schema, "required", kept);
    }
}

json_t *oas_merge_all(const json_t *parts, json_t *beside)
{
    json_t *whole;
    json_t *text = json_object_get(beside, "description");
    json_t *part;
    size_t i;
    int is_plain = is_plain_object(beside) || json_object_size(beside) == 0;

    json_array_foreach(parts, i, part)
    {
        is_plain = is_plain && is_plain_object(part);
    }
    if (!is_plain) {
        if (json_array_size(parts) == 1 && json_is_object(json_array_get(parts, 0)) &&
            (json_object_size(beside) == 0 || (json_object_size(beside) == 1 && text != NULL))) {
            whole = json_copy(json_array_get(parts, 0)); /* what stands beside only describes */
            if (text != NULL) {
                (void)json_object_set_new(whole, "description", json_incref(text));
            }
            json_decref(beside);
            return whole;
        }
        (void)json_object_set_new(beside, "allOf", json_incref(oas_iterable(parts)));
        return beside;
    }
    whole = json_pack("{s:s,s:{},s:[]}", "type", "object", "properties", "required");
    if (text != NULL) {
        (void)json_object_set_new(whole, "description", json_incref(text));
    }
    json_array_foreach(parts, i, part)
    {
        add_object(whole, part);
    }
    add_object(whole, beside);
    json_decref(beside);
    if (json_object_size(json_object_get(whole, "properties")) == 0) {
        (void)json_object_del(whole, "properties");
    }
    oas_tidy_required(whole);
    if (json_array_size(json_object_get(whole, "required")) == 0) {
        (void)json_object_del(whole, "required");
    }
    return whole;
}
