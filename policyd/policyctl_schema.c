/* What a schema says of an argument: see policyctl.h. */
#include "policyctl.h"

#include <string.h>

#include "../proto/mcp_body.h"

#define MAX_KEY  128
#define MAX_REFS 8

int ctl_args_same(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        char x = *a == '_' ? '-' : *a;
        char y = *b == '_' ? '-' : *b;

        if (x != y) {
            return 0;
        }
        a++;
        b++;
    }
    return *a == *b;
}

const json_t *ctl_schema_resolve(const json_t *schema, const json_t *root)
{
    int i;

    for (i = 0; i < MAX_REFS; i++) {
        const char *ref = mcp_json_str(schema, "$ref");
        const json_t *at = root;

        if (ref == NULL || strncmp(ref, "#/", 2) != 0) {
            return schema;
        }
        ref += 2;
        while (at != NULL && *ref != '\0') {
            char part[MAX_KEY];
            size_t bytes = strcspn(ref, "/");

            if (bytes >= sizeof part) {
                return schema;
            }
            memcpy(part, ref, bytes);
            part[bytes] = '\0';
            at = json_object_get(at, part);
            ref += bytes + (ref[bytes] == '/');
        }
        if (at == NULL) {
            return schema;
        }
        schema = at;
    }
    return schema;
}

static unsigned type_bit(const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } types[] = {{"string", CTL_TYPE_STRING},
                 {"integer", CTL_TYPE_INTEGER},
                 {"number", CTL_TYPE_NUMBER | CTL_TYPE_INTEGER},
                 {"boolean", CTL_TYPE_BOOLEAN},
                 {"array", CTL_TYPE_ARRAY},
                 {"object", CTL_TYPE_OBJECT},
                 {"null", CTL_TYPE_NULL}};
    size_t i;

    for (i = 0; name != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return types[i].bit;
        }
    }
    return 0;
}

unsigned ctl_schema_type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return CTL_TYPE_OBJECT;
    case JSON_ARRAY:
        return CTL_TYPE_ARRAY;
    case JSON_STRING:
        return CTL_TYPE_STRING;
    case JSON_INTEGER:
        return CTL_TYPE_INTEGER;
    case JSON_REAL:
        return CTL_TYPE_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE:
        return CTL_TYPE_BOOLEAN;
    case JSON_NULL:
        return CTL_TYPE_NULL;
    default:
        return 0;
    }
}

unsigned ctl_schema_types(const json_t *schema, const json_t *root)
{
    const json_t *type, *choices;
    unsigned bits = 0;
    size_t i;

    schema = ctl_schema_resolve(schema, root);
    type = json_object_get(schema, "type");
    choices = json_object_get(schema, "enum");
    if (json_is_string(type)) {
        bits = type_bit(json_string_value(type));
    }
    for (i = 0; i < json_array_size(type); i++) {
        bits |= type_bit(json_string_value(json_array_get(type, i)));
    }
    for (i = 0; type == NULL && i < json_array_size(choices); i++) {
        bits |= ctl_schema_type_of(json_array_get(choices, i));
    }
    return bits == 0 ? CTL_TYPE_ANY : bits;
}

const json_t *ctl_schema_keys(const json_t *schema, const json_t *root)
{
    schema = ctl_schema_resolve(schema, root);
    if (ctl_schema_types(schema, root) == CTL_TYPE_ARRAY) {
        schema = ctl_schema_resolve(json_object_get(schema, "items"), root);
    }
    return ctl_schema_types(schema, root) == CTL_TYPE_OBJECT &&
                   json_object_get(schema, "properties") != NULL
               ? schema
               : NULL;
}

const char *ctl_args_type(const json_t *schema, const json_t *root)
{
    const char *structure = ctl_schema_keys(schema, root) != NULL ? "KEY=VALUE,..." : "JSON";

    switch (ctl_schema_types(schema, root)) {
    case CTL_TYPE_STRING:
        return "TEXT";
    case CTL_TYPE_INTEGER:
        return "INTEGER";
    case CTL_TYPE_NUMBER | CTL_TYPE_INTEGER:
        return "NUMBER";
    case CTL_TYPE_BOOLEAN:
        return "true|false";
    case CTL_TYPE_OBJECT:
        return structure;
    case CTL_TYPE_ARRAY:
        schema = json_object_get(ctl_schema_resolve(schema, root), "items");
        return ctl_schema_types(schema, root) == CTL_TYPE_OBJECT ? structure : "A,B,...";
    default:
        return "VALUE";
    }
}

int ctl_schema_requires(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");
    size_t i;

    for (i = 0; i < json_array_size(required); i++) {
        const char *text = json_string_value(json_array_get(required, i));

        if (text != NULL && strcmp(text, name) == 0) {
            return 1;
        }
    }
    return 0;
}

const char *ctl_args_positional(const json_t *schema, int *ret_is_file)
{
    json_t *properties = json_object_get(schema, "properties");
    const char *only = NULL;
    const char *name;
    json_t *property;
    int required = 0;

    json_object_foreach(properties, name, property)
    {
        if (json_object_get(property, "contentMediaType") != NULL) {
            *ret_is_file = 1;
            return name;
        }
        if (ctl_schema_requires(schema, name)) {
            required++;
            only = name;
        }
    }
    if (required != 1) {
        return NULL;
    }
    *ret_is_file = ctl_schema_types(json_object_get(properties, only), schema) == CTL_TYPE_OBJECT;
    return only;
}

/* The property's own spelling of a name that may mix '-' and '_', or NULL. */
static const char *spelling(const json_t *schema, const char *name)
{
    json_t *properties = json_object_get(schema, "properties");
    const char *key;
    json_t *property;

    if (json_object_get(properties, name) != NULL) {
        return name;
    }
    json_object_foreach(properties, key, property)
    {
        if (ctl_args_same(key, name)) {
            return key;
        }
    }
    return NULL;
}

int ctl_schema_step(const json_t *schema, const json_t *root, const char *name,
                    const json_t **ret_schema, const char **ret_key)
{
    const json_t *object = ctl_schema_resolve(schema, root);
    const json_t *rest = json_object_get(object, "additionalProperties");
    const char *key = spelling(object, name);

    *ret_key = key == NULL ? name : key;
    *ret_schema = json_is_object(rest) ? rest : NULL;
    if (key != NULL) {
        *ret_schema = json_object_get(json_object_get(object, "properties"), key);
        return 0;
    }
    return json_is_false(rest) || (ctl_schema_types(object, root) & CTL_TYPE_OBJECT) == 0 ? -1 : 0;
}
