/* One schema of a description as JSON Schema 2020-12: see oas_schema_private.h. What is no sound keyword is left out, never guessed: the result
 * takes every value that a sound reading of the original takes. */
#include "oas_schema_private.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_regex.h"

#define MAX_LEVELS  48 /* of schemas within schemas: the validator takes 128 */
#define MAX_DEFAULT 200 /* bytes of a default that is kept */
#define MAX_ENUM    500
#define MAX_WORK    50000 /* schemas made for one */
#define MAX_NAME    64

/* --- names of definitions ------------------------------------------------------------------ */

/* A safe name; another number where it is taken by another definition. */
static const char *def_name(oas_making_t *m, const char *wish)
{
    char *name = apr_pcalloc(m->pool, MAX_NAME + 16);
    size_t count = 0;
    int number;

    for (; wish != NULL && *wish != '\0' && count < MAX_NAME; wish++) {
        int is_safe = (*wish >= 'a' && *wish <= 'z') || (*wish >= 'A' && *wish <= 'Z') || (*wish >= '0' && *wish <= '9') ||
                      *wish == '_' || *wish == '.' || *wish == '-';

        name[count++] = (char)(is_safe ? *wish : '_');
    }
    if (count == 0) {
        name[count++] = 'd';
    }
    for (number = 2; apr_hash_get(m->by_name, name, APR_HASH_KEY_STRING) != NULL; number++) {
        (void)apr_snprintf(name + count, 15, "_%d", number);
    }
    return name;
}

static const oas_def_t *define(oas_making_t *m, oas_at_t at, const char *wish)
{
    oas_def_t *def = apr_hash_get(m->by_value, &at.value, sizeof(at.value));

    if (def == NULL) {
        def = apr_pcalloc(m->pool, sizeof(*def));
        def->name = def_name(m, wish);
        def->at = at;
        apr_hash_set(m->by_value, &def->at.value, sizeof(def->at.value), def);
        apr_hash_set(m->by_name, def->name, APR_HASH_KEY_STRING, def);
        APR_ARRAY_PUSH(m->defs, oas_def_t *) = def;
    }
    return def;
}

/* --- types ------------------------------------------------------------------------------------ */

/* What a type's word means; NULL: any. */
static const char *type_word(const char *word)
{
    static const struct {
        const char *word;
        const char *type;
    } rows[] = {{"object", "object"},   {"string", "string"},   {"number", "number"},    {"integer", "integer"},
                {"boolean", "boolean"}, {"array", "array"},     {"null", "null"},        {"file", "string"},
                {"int", "integer"},     {"int32", "integer"},   {"int64", "integer"},    {"long", "integer"},
                {"float", "number"},    {"double", "number"},   {"decimal", "number"},   {"bool", "boolean"},
                {"str", "string"},      {"text", "string"},     {"date", "string"},      {"datetime", "string"},
                {"date-time", "string"}, {"uuid", "string"},    {"list", "array"},       {"map", "object"},
                {"dict", "object"}};
    size_t i;

    for (i = 0; word != NULL && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].word, word) == 0) {
            return rows[i].type;
        }
    }
    return NULL;
}

/* The type of a place as JSON, or NULL; new reference. */
static json_t *type_of(const json_t *value)
{
    const json_t *type = json_object_get(value, "type");
    json_t *list;
    json_t *word;
    size_t i;

    if (json_is_string(type)) {
        const char *known = type_word(json_string_value(type));

        return known != NULL ? json_string(known) : NULL;
    }
    if (!json_is_array(type)) {
        if (json_is_object(json_object_get(value, "properties"))) {
            return json_string("object");
        }
        return json_object_get(value, "items") != NULL ? json_string("array") : NULL;
    }
    list = json_array();
    json_array_foreach(type, i, word)
    {
        const char *known = type_word(json_string_value(word));

        if (known != NULL) {
            (void)json_array_append_new(list, json_string(known));
        }
    }
    if (json_array_size(list) > 1) {
        return list;
    }
    word = json_array_size(list) == 1 ? json_incref(json_array_get(list, 0)) : NULL;
    json_decref(list);
    return word;
}

json_t *oas_make_stub(oas_making_t *m, oas_at_t at)
{
    json_t *type;
    char ignored[64];

    if (oas_resolve(m->doc, at, &at, NULL, ignored, sizeof ignored) != OAS_OK) {
        return json_object();
    }
    type = type_of(at.value);
    if (json_is_true(json_object_get(at.value, "nullable")) || json_is_true(json_object_get(at.value, "x-nullable"))) {
        json_decref(type);
        return json_object();
    }
    return type != NULL ? json_pack("{s:o}", "type", type) : json_object();
}

/* --- keywords that hold no schema ---------------------------------------------------------------- */

static int is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static int is_pattern(const oas_making_t *m, const char *pattern)
{
    apr_pool_t *pool;
    mcp_regex_t *regex;
    int takes;

    if (pattern == NULL || apr_pool_create(&pool, m->pool) != APR_SUCCESS) {
        return 0;
    }
    takes = mcp_regex_compile(pattern, strlen(pattern), pool, &regex) == MCP_OK;
    apr_pool_destroy(pool);
    if (!takes) {
        m->counts->cut_schemas++;
    }
    return takes;
}

static void put(json_t *to, const char *name, const json_t *value)
{
    (void)json_object_set_new(to, name, json_incref(oas_iterable(value)));
}

static void copy_numbers(json_t *to, const json_t *from)
{
    static const char *const bounds[][2] = {{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}};
    static const char *const counts[] = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"};
    const json_t *value;
    size_t i;

    for (i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const json_t *bound = json_object_get(from, bounds[i][0]);
        const json_t *open = json_object_get(from, bounds[i][1]);

        if (json_is_number(bound)) { /* a boolean beside it is what drafts before 6 say */
            put(to, json_is_true(open) ? bounds[i][1] : bounds[i][0], bound);
        }
        if (json_is_number(open)) {
            put(to, bounds[i][1], open);
        }
    }
    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        value = json_object_get(from, counts[i]);
        if (is_count(value)) {
            put(to, counts[i], value);
        }
    }
    value = json_object_get(from, "multipleOf");
    if (json_is_number(value) && json_number_value(value) > 0) {
        put(to, "multipleOf", value);
    }
    if (json_is_true(json_object_get(from, "uniqueItems"))) {
        put(to, "uniqueItems", json_true());
    }
}

static void copy_values(const oas_making_t *m, json_t *to, const json_t *from)
{
    const json_t *value = json_object_get(from, "enum");
    const char *pattern = mcp_json_str(from, "pattern");
    const char *format = mcp_json_str(from, "format");
    const char *type = mcp_json_str(from, "type");

    if (json_is_array(value) && json_array_size(value) > 0 && json_array_size(value) <= MAX_ENUM) {
        put(to, "enum", value);
    }
    value = json_object_get(from, "const");
    if (value != NULL) {
        put(to, "const", value);
    }
    value = json_object_get(from, "default");
    if (value != NULL && json_dumpb(value, NULL, 0, JSON_ENCODE_ANY | JSON_COMPACT) <= MAX_DEFAULT) {
        put(to, "default", value);
    }
    if (pattern != NULL && is_pattern(m, pattern)) {
        put(to, "pattern", json_object_get(from, "pattern"));
    }
    if (type != NULL && strcmp(type, "file") == 0) {
        (void)json_object_set_new(to, "format", json_string("binary"));
    } else if (format != NULL && strlen(format) <= 40) {
        put(to, "format", json_object_get(from, "format"));
    }
}

static void copy_text(const oas_making_t *m, json_t *to, const json_t *from)
{
    const char *text = mcp_json_str(from, "description");
    size_t cut = 0;

    if (text == NULL || m->options->max_text == 0) {
        return;
    }
    text = oas_text(text, m->options->max_text, m->pool, &cut);
    m->counts->cut_text += cut;
    if (text[0] != '\0') {
        (void)json_object_set_new(to, "description", json_string(text));
    }
}

/* Names of required members; a boolean is what draft 3 says of a member and not of an object. */
static void copy_required(json_t *to, const json_t *from)
{
    const json_t *required = json_object_get(from, "required");
    json_t *names;
    json_t *name;
    size_t i;
    size_t k;

    if (!json_is_array(required)) {
        return;
    }
    names = json_array();
    json_array_foreach(required, i, name)
    {
        int is_new = json_is_string(name);

        for (k = 0; k < json_array_size(names); k++) {
            is_new = is_new && !json_equal(json_array_get(names, k), name);
        }
        if (is_new) {
            (void)json_array_append_new(names, json_incref(name));
        }
    }
    if (json_array_size(names) > 0) {
        (void)json_object_set_new(to, "required", names);
    } else {
        json_decref(names);
    }
}

/* --- keywords that hold schemas -------------------------------------------------------------------- */

/* A schema one level further down. */
static json_t *below(oas_making_t *m, const json_t *value, int file, int depth)
{
    return oas_make(m, (oas_at_t){value, file}, depth + 1);
}

/* 1 for a member that a request must not have. */
static int is_read_only(oas_making_t *m, oas_at_t at)
{
    char ignored[64];

    if (json_is_true(json_object_get(at.value, "readOnly"))) {
        return 1;
    }
    return json_object_get(at.value, "$ref") != NULL && m->options->version == 31 &&
           oas_resolve(m->doc, at, &at, NULL, ignored, sizeof ignored) == OAS_OK && json_is_true(json_object_get(at.value, "readOnly"));
}

static void make_properties(oas_making_t *m, json_t *to, oas_at_t from, int depth)
{
    const json_t *properties = json_object_get(from.value, "properties");
    json_t *made;
    const char *name;
    json_t *value;

    if (!json_is_object(properties)) {
        return;
    }
    made = json_object();
    json_object_foreach(oas_iterable(properties), name, value)
    {
        if (name[0] != '\0' && !is_read_only(m, (oas_at_t){value, from.file})) {
            (void)json_object_set_new(made, name, below(m, value, from.file, depth));
        }
    }
    (void)json_object_set_new(to, "properties", made);
}

/* A list of schemas under `name`. */
static void make_list(oas_making_t *m, json_t *to, const char *name, oas_at_t from, int depth)
{
    const json_t *list = json_object_get(from.value, name);
    json_t *made;
    json_t *value;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > MAX_ENUM) {
        return;
    }
    made = json_array();
    json_array_foreach(list, i, value)
    {
        (void)json_array_append_new(made, below(m, value, from.file, depth));
    }
    (void)json_object_set_new(to, name, made);
}

static void make_items(oas_making_t *m, json_t *to, oas_at_t from, int depth)
{
    const json_t *items = json_object_get(from.value, "items");

    if (json_is_object(items)) {
        (void)json_object_set_new(to, "items", below(m, items, from.file, depth));
    } else if (json_is_array(items)) { /* before 2020-12 a list of them was what prefixItems is */
        oas_at_t list = {json_pack("{s:O}", "prefixItems", oas_iterable(items)), from.file};

        make_list(m, to, "prefixItems", list, depth);
        json_decref(oas_iterable(list.value));
    }
    make_list(m, to, "prefixItems", from, depth);
}

static void make_rest(oas_making_t *m, json_t *to, oas_at_t from, int depth)
{
    static const char *const one[] = {"not", "contains", "propertyNames", "if", "then", "else"};
    const json_t *value = json_object_get(from.value, "additionalProperties");
    json_t *patterns;
    const char *name;
    json_t *schema;
    size_t i;

    if (json_is_false(value)) {
        put(to, "additionalProperties", value);
    } else if (json_is_object(value) && json_object_size(value) > 0) {
        (void)json_object_set_new(to, "additionalProperties", below(m, value, from.file, depth));
    }
    value = json_object_get(from.value, "patternProperties");
    if (json_is_object(value)) {
        patterns = json_object();
        json_object_foreach(oas_iterable(value), name, schema)
        {
            if (is_pattern(m, name)) {
                (void)json_object_set_new(patterns, name, below(m, schema, from.file, depth));
            }
        }
        (void)json_object_set_new(to, "patternProperties", patterns);
    }
    for (i = 0; i < sizeof one / sizeof one[0]; i++) {
        value = json_object_get(from.value, one[i]);
        if (m->options->version == 31 && json_is_object(value)) {
            (void)json_object_set_new(to, one[i], below(m, value, from.file, depth));
        }
    }
}

/* What may also be null. */
static json_t *or_null(json_t *schema)
{
    json_t *type = json_object_get(schema, "type");
    json_t *values = json_object_get(schema, "enum");

    if (json_is_string(type)) {
        (void)json_object_set_new(schema, "type", json_pack("[O,s]", type, "null"));
        if (values != NULL) {
            json_t *more = json_copy(values);

            (void)json_array_append_new(more, json_null());
            (void)json_object_set_new(schema, "enum", more);
        }
        return schema;
    }
    return json_object_size(schema) == 0 || json_is_array(type)
               ? schema
               : json_pack("{s:[o,{s:s}]}", "anyOf", schema, "type", "null");
}

/* An object that has no reference. */
static json_t *make_own(oas_making_t *m, oas_at_t at, int depth)
{
    const json_t *all = json_object_get(at.value, "allOf");
    json_t *made = json_object();
    json_t *type;

    if (++m->work > MAX_WORK) {
        m->counts->cut_schemas++;
        return made;
    }
    type = type_of(at.value);
    if (type != NULL) {
        (void)json_object_set_new(made, "type", type);
    }
    copy_text(m, made, at.value);
    copy_values(m, made, at.value);
    copy_numbers(made, at.value);
    make_properties(m, made, at, depth);
    copy_required(made, at.value);
    make_items(m, made, at, depth);
    make_list(m, made, "oneOf", at, depth);
    make_list(m, made, "anyOf", at, depth);
    make_rest(m, made, at, depth);
    if (json_is_array(all) && json_array_size(all) > 0 && json_array_size(all) <= MAX_ENUM) {
        json_t *parts = json_array();
        json_t *part;
        size_t i;

        json_array_foreach(all, i, part)
        {
            (void)json_array_append_new(parts, oas_make_inline(m, (oas_at_t){part, at.file}, depth + 1));
        }
        made = oas_merge_all(parts, made);
        json_decref(parts);
    } else {
        oas_tidy_required(made);
    }
    if (json_is_true(json_object_get(at.value, "nullable")) || json_is_true(json_object_get(at.value, "x-nullable"))) {
        made = or_null(made);
    }
    return made;
}

/* 1 for a definition that is shorter where it is used than as one: it holds no further schema. */
static int is_leaf(const json_t *value)
{
    static const char *const inner[] = {"properties", "items", "allOf", "oneOf", "anyOf", "additionalProperties",
                                        "patternProperties", "prefixItems", "not", "$ref"};
    size_t i;

    for (i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        if (json_object_get(value, inner[i]) != NULL) {
            return 0;
        }
    }
    return json_array_size(json_object_get(value, "enum")) <= 20;
}

/* A reference as such, or what it names where that is short. */
static json_t *make_reference(oas_making_t *m, oas_at_t at, int depth)
{
    const char *name = NULL;
    oas_at_t target;
    char ignored[64];
    json_t *made;

    if (oas_resolve(m->doc, at, &target, &name, ignored, sizeof ignored) != OAS_OK) {
        m->counts->dangling++;
        return json_object();
    }
    if (!json_is_object(target.value)) {
        return json_object();
    }
    if (is_leaf(target.value)) {
        made = make_own(m, target, depth);
    } else {
        made = json_pack("{s:o}", "$ref", json_sprintf("#/$defs/%s", define(m, target, name)->name));
    }
    if (m->options->version == 31 || json_object_get(at.value, "description") != NULL) {
        copy_text(m, made, at.value);
    }
    if (json_is_true(json_object_get(at.value, "nullable"))) {
        made = or_null(made);
    }
    return made;
}

json_t *oas_make(oas_making_t *m, oas_at_t at, int depth)
{
    if (json_is_false(at.value)) {
        return json_pack("{s:{}}", "not");
    }
    if (!json_is_object(at.value)) {
        return json_object();
    }
    if (depth > m->max_depth || depth > MAX_LEVELS) {
        m->counts->cut_schemas++;
        return oas_make_stub(m, at);
    }
    return json_object_get(at.value, "$ref") != NULL ? make_reference(m, at, depth) : make_own(m, at, depth);
}

json_t *oas_make_inline(oas_making_t *m, oas_at_t at, int depth)
{
    char ignored[64];

    if (depth > MAX_LEVELS) {
        m->counts->cut_schemas++;
        return json_object();
    }
    if (oas_resolve(m->doc, at, &at, NULL, ignored, sizeof ignored) != OAS_OK) {
        m->counts->dangling += at.value != NULL;
        return json_object();
    }
    return json_is_object(at.value) ? make_own(m, at, depth) : json_object();
}
