/* Compiling a schema: the table of keywords with their dialects, forms and evaluations.
 *
 * A keyword that is not in the table is an annotation, as the specification has it; one
 * that is there and malformed refuses the schema, for what it was meant to forbid would
 * pass otherwise. */
#include "mcp_schema_private.h"

#include <stdlib.h>
#include <string.h>

#define BOTH ((unsigned)MCP_SCHEMA_2020 | (unsigned)MCP_SCHEMA_07)
#define NEW  ((unsigned)MCP_SCHEMA_2020)
#define OLD  ((unsigned)MCP_SCHEMA_07)

typedef bool parse_t(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                     mcp_schema_keyword_t *keyword);

typedef struct rule {
    const char *name;
    unsigned dialects;
    bool is_late; /* evaluated after all others of its node */
    parse_t *parse;
    mcp_schema_eval_t *eval; /* NULL: the parser sets it, or nothing is evaluated */
    unsigned detail;
} rule_t;

/* --- values of keywords ------------------------------------------------------------ */

static bool refuse(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                   const mcp_schema_keyword_t *keyword, const char *message)
{
    return mcp_schema_refuse(c, place->path, keyword->name, message, NULL);
}

/* A count: a non-negative integer, which may be written 2.0. */
static bool take_count(const json_t *value, size_t *ret)
{
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *ret = (size_t)json_integer_value(value);
        return true;
    }
    if (json_is_real(value) && mcp_schema_is_integer(value) && json_real_value(value) >= 0) {
        /* More than this no instance has. */
        *ret = json_real_value(value) >= 0x1p62 ? SIZE_MAX / 2 : (size_t)json_real_value(value);
        return true;
    }
    return false;
}

static bool parse_most(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                       mcp_schema_keyword_t *keyword)
{
    return take_count(place->value, &keyword->most) ||
           refuse(c, place, keyword, "must be a non-negative integer");
}

static bool parse_least(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                        mcp_schema_keyword_t *keyword)
{
    return take_count(place->value, &keyword->least) ||
           refuse(c, place, keyword, "must be a non-negative integer");
}

static bool parse_number(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                         mcp_schema_keyword_t *keyword)
{
    return json_is_number(place->value) || refuse(c, place, keyword, "must be a number");
}

static bool parse_divisor(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                          mcp_schema_keyword_t *keyword)
{
    if (!json_is_number(place->value) || !(json_number_value(place->value) > 0)) {
        return refuse(c, place, keyword, "must be a number above 0");
    }
    keyword->divisor = mcp_schema_decimal(place->value);
    return true;
}

static bool parse_value(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                        mcp_schema_keyword_t *keyword)
{
    (void)c; /* any value will do */
    (void)place;
    (void)keyword;
    return true;
}

static bool parse_enum(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                       mcp_schema_keyword_t *keyword)
{
    return json_is_array(place->value) || refuse(c, place, keyword, "must be an array");
}

static bool parse_flag(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                       mcp_schema_keyword_t *keyword)
{
    if (json_is_false(place->value)) {
        keyword->eval = NULL;
    }
    return json_is_boolean(place->value) || refuse(c, place, keyword, "must be true or false");
}

static bool take_type(const json_t *value, unsigned *types)
{
    for (unsigned i = 0; json_is_string(value) && i < MCP_SCHEMA_TYPES; i++) {
        if (strcmp(json_string_value(value), mcp_schema_type_names[i]) == 0) {
            *types |= 1u << i;
            return true;
        }
    }
    return false;
}

static bool parse_type(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                       mcp_schema_keyword_t *keyword)
{
    size_t n = json_array_size(place->value);
    bool is_good = take_type(place->value, &keyword->types) || n > 0;

    for (size_t i = 0; i < n && is_good; i++) {
        is_good = take_type(json_array_get(place->value, i), &keyword->types);
    }
    return is_good || refuse(c, place, keyword, "must be a type or an array of types");
}

static bool take_names(mcp_schema_compiler_t *c, const json_t *value, const char *const **ret,
                       size_t *ret_n)
{
    size_t n = json_array_size(value);
    const char **names;

    if (!json_is_array(value)) {
        return false;
    }
    names = apr_pcalloc(c->pool, (n + 1) * sizeof(*names));
    for (size_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(value, i);

        /* A name with a NUL could be no member's, and would be taken for a shorter one. */
        if (!json_is_string(name) || strlen(json_string_value(name)) != json_string_length(name)) {
            return false;
        }
        names[i] = json_string_value(name);
    }
    *ret = names;
    *ret_n = n;
    return true;
}

static bool parse_names(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                        mcp_schema_keyword_t *keyword)
{
    return take_names(c, place->value, &keyword->names, &keyword->n) ||
           refuse(c, place, keyword, "must be an array of property names");
}

static bool take_pattern(mcp_schema_compiler_t *c, const mcp_schema_path_t *path, const char *rule,
                         const char *pattern, size_t bytes, const mcp_regex_t **ret)
{
    mcp_regex_t *regex;
    mcp_wire_status_t status = mcp_regex_compile(pattern, bytes, c->pool, &regex);

    if (status == MCP_OK) {
        *ret = regex;
        c->pattern_bytes += mcp_regex_bytes(regex);
        if (c->pattern_bytes <= MCP_SCHEMA_MAX_PATTERNS) {
            return true;
        }
        (void)mcp_schema_refuse(c, path, "limit", "patterns too large", NULL);
        c->status = MCP_E_SIZE;
        return false;
    }
    (void)mcp_schema_refuse(c, path, rule, "not a regular expression that is supported", pattern);
    if (status == MCP_E_NOMEM) {
        c->status = MCP_E_NOMEM;
    }
    return false;
}

static bool parse_pattern(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                          mcp_schema_keyword_t *keyword)
{
    if (!json_is_string(place->value)) {
        return refuse(c, place, keyword, "must be a string");
    }
    return take_pattern(c, place->path, keyword->name, json_string_value(place->value),
                        json_string_length(place->value), &keyword->regex);
}

/* --- subschemas --------------------------------------------------------------------- */

static bool parse_node(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                       mcp_schema_keyword_t *keyword)
{
    keyword->node = mcp_schema_node(c, place->value, place->resource, place->path);
    return keyword->node != NULL;
}

static bool parse_nodes(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                        mcp_schema_keyword_t *keyword)
{
    size_t n = json_array_size(place->value);
    const mcp_schema_node_t **nodes;

    if (n == 0) {
        return refuse(c, place, keyword, "must be an array of at least one schema");
    }
    nodes = apr_pcalloc(c->pool, n * sizeof(*nodes));
    for (size_t i = 0; i < n; i++) {
        mcp_schema_path_t path = {place->path, NULL, i};

        nodes[i] = mcp_schema_node(c, json_array_get(place->value, i), place->resource, &path);
        if (nodes[i] == NULL) {
            return false;
        }
    }
    keyword->nodes = nodes;
    keyword->n = n;
    return true;
}

/* A map from names to schemas; rule details say what else a member may be. */
#define MAP_PATTERNS 1u /* the names are patterns */
#define MAP_NAMES    2u /* a value may be an array of names */
#define MAP_SCHEMAS  4u /* a value may be a schema */

static bool parse_member(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                         const mcp_schema_keyword_t *keyword, const char *name,
                         const json_t *value, mcp_schema_member_t *ret)
{
    mcp_schema_path_t path = {place->path, name, 0};

    ret->name = name;
    if ((keyword->types & MAP_PATTERNS) != 0 &&
        !take_pattern(c, &path, keyword->name, name, strlen(name), &ret->regex)) {
        return false;
    }
    if ((keyword->types & MAP_NAMES) != 0 && json_is_array(value)) {
        return take_names(c, value, &ret->names, &ret->n_names) ||
               mcp_schema_refuse(c, &path, keyword->name, "must be an array of property names",
                                 NULL);
    }
    if ((keyword->types & MAP_SCHEMAS) == 0) {
        return mcp_schema_refuse(c, &path, keyword->name, "must be an array of property names",
                                 NULL);
    }
    ret->node = mcp_schema_node(c, value, place->resource, &path);
    return ret->node != NULL;
}

static bool parse_map(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                      mcp_schema_keyword_t *keyword)
{
    mcp_schema_member_t *members;
    size_t n = 0;

    if (!json_is_object(place->value)) {
        return refuse(c, place, keyword, "must be an object");
    }
    members = apr_pcalloc(c->pool, (json_object_size(place->value) + 1) * sizeof(*members));
    for (void *at = mcp_schema_first(place->value); at != NULL;
         at = mcp_schema_next(place->value, at)) {
        if (!parse_member(c, place, keyword, json_object_iter_key(at), json_object_iter_value(at),
                          &members[n++])) {
            return false;
        }
    }
    keyword->members = members;
    keyword->n = n;
    return true;
}

/* --- keywords that look at their siblings ------------------------------------------- */

static const json_t *sibling(const mcp_schema_place_t *place, const char *name)
{
    return json_object_get(place->schema, name);
}

static bool parse_items(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                        mcp_schema_keyword_t *keyword)
{
    if (place->resource->dialect == MCP_SCHEMA_07 && json_is_array(place->value)) {
        keyword->eval = json_array_size(place->value) == 0 ? NULL : mcp_schema_eval_prefix;
        return keyword->eval == NULL || parse_nodes(c, place, keyword);
    }
    if (place->resource->dialect == MCP_SCHEMA_2020) {
        keyword->n = json_array_size(sibling(place, "prefixItems"));
    }
    return parse_node(c, place, keyword);
}

/* Draft-07: counts where items is an array. */
static bool parse_additional_items(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                                   mcp_schema_keyword_t *keyword)
{
    const json_t *items = sibling(place, "items");

    keyword->n = json_array_size(items);
    if (!json_is_array(items)) {
        keyword->eval = NULL;
    }
    return parse_node(c, place, keyword);
}

static bool parse_contains(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                           mcp_schema_keyword_t *keyword)
{
    keyword->least = 1;
    if (place->resource->dialect == MCP_SCHEMA_2020) {
        /* Malformed ones are refused where they stand. */
        (void)take_count(sibling(place, "minContains"), &keyword->least);
        (void)take_count(sibling(place, "maxContains"), &keyword->most);
    }
    return parse_node(c, place, keyword);
}

static bool parse_branch(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                         const char *name, const mcp_schema_node_t **ret)
{
    const json_t *branch = sibling(place, name);
    mcp_schema_path_t path = {place->path->parent, name, 0};

    *ret = branch == NULL ? &mcp_schema_true
                          : mcp_schema_node(c, branch, place->resource, &path);
    return *ret != NULL;
}

static bool parse_if(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                     mcp_schema_keyword_t *keyword)
{
    return parse_node(c, place, keyword) && parse_branch(c, place, "then", &keyword->then_node) &&
           parse_branch(c, place, "else", &keyword->else_node);
}

static bool parse_others(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                         mcp_schema_keyword_t *keyword)
{
    const json_t *named = sibling(place, "properties");

    keyword->siblings = json_is_object(named) ? named : NULL;
    return parse_node(c, place, keyword);
}

static bool parse_unevaluated(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                              mcp_schema_keyword_t *keyword)
{
    place->node->has_unevaluated = true;
    return parse_others(c, place, keyword);
}

/* --- the table ------------------------------------------------------------------------ */

/* Signs that fail a bound, see mcp_schema_eval_bound(). */
#define BELOW 1u
#define EQUAL 2u
#define ABOVE 4u

/* Sorted by name: it is searched by halves.  Entries without an evaluation hold subschemas
 * that references may lead to, or values that a sibling uses. */
static const rule_t rules[] = {
    {"$defs", BOTH, false, parse_map, NULL, MAP_SCHEMAS},
    {"$dynamicRef", NEW, false, mcp_schema_wait, mcp_schema_eval_dynamic, 0},
    {"$ref", BOTH, false, mcp_schema_wait, mcp_schema_eval_ref, 0},
    {"additionalItems", OLD, false, parse_additional_items, mcp_schema_eval_rest, 0},
    {"additionalProperties", BOTH, false, parse_others, mcp_schema_eval_additional, 0},
    {"allOf", BOTH, false, parse_nodes, mcp_schema_eval_all, 0},
    {"anyOf", BOTH, false, parse_nodes, mcp_schema_eval_any, 0},
    {"const", BOTH, false, parse_value, mcp_schema_eval_const, 0},
    {"contains", BOTH, false, parse_contains, mcp_schema_eval_contains, 0},
    {"contentSchema", NEW, false, parse_node, NULL, 0},
    {"definitions", BOTH, false, parse_map, NULL, MAP_SCHEMAS},
    {"dependencies", BOTH, false, parse_map, mcp_schema_eval_dependent, MAP_NAMES | MAP_SCHEMAS},
    {"dependentRequired", NEW, false, parse_map, mcp_schema_eval_dependent, MAP_NAMES},
    {"dependentSchemas", NEW, false, parse_map, mcp_schema_eval_dependent, MAP_SCHEMAS},
    {"else", BOTH, false, parse_node, NULL, 0},
    {"enum", BOTH, false, parse_enum, mcp_schema_eval_enum, 0},
    {"exclusiveMaximum", BOTH, false, parse_number, mcp_schema_eval_bound, EQUAL | ABOVE},
    {"exclusiveMinimum", BOTH, false, parse_number, mcp_schema_eval_bound, BELOW | EQUAL},
    {"if", BOTH, false, parse_if, mcp_schema_eval_if, 0},
    {"items", BOTH, false, parse_items, mcp_schema_eval_rest, 0},
    {"maxContains", NEW, false, parse_most, NULL, 0},
    {"maxItems", BOTH, false, parse_most, mcp_schema_eval_items, 0},
    {"maxLength", BOTH, false, parse_most, mcp_schema_eval_length, 0},
    {"maxProperties", BOTH, false, parse_most, mcp_schema_eval_members, 0},
    {"maximum", BOTH, false, parse_number, mcp_schema_eval_bound, ABOVE},
    {"minContains", NEW, false, parse_least, NULL, 0},
    {"minItems", BOTH, false, parse_least, mcp_schema_eval_items, 0},
    {"minLength", BOTH, false, parse_least, mcp_schema_eval_length, 0},
    {"minProperties", BOTH, false, parse_least, mcp_schema_eval_members, 0},
    {"minimum", BOTH, false, parse_number, mcp_schema_eval_bound, BELOW},
    {"multipleOf", BOTH, false, parse_divisor, mcp_schema_eval_multiple, 0},
    {"not", BOTH, false, parse_node, mcp_schema_eval_not, 0},
    {"oneOf", BOTH, false, parse_nodes, mcp_schema_eval_one, 0},
    {"pattern", BOTH, false, parse_pattern, mcp_schema_eval_pattern, 0},
    {"patternProperties", BOTH, false, parse_map, mcp_schema_eval_patterns,
     MAP_PATTERNS | MAP_SCHEMAS},
    {"prefixItems", NEW, false, parse_nodes, mcp_schema_eval_prefix, 0},
    {"properties", BOTH, false, parse_map, mcp_schema_eval_properties, MAP_SCHEMAS},
    {"propertyNames", BOTH, false, parse_node, mcp_schema_eval_names, 0},
    {"required", BOTH, false, parse_names, mcp_schema_eval_required, 0},
    {"then", BOTH, false, parse_node, NULL, 0},
    {"type", BOTH, false, parse_type, mcp_schema_eval_type, 0},
    {"unevaluatedItems", NEW, true, parse_unevaluated, mcp_schema_eval_unevaluated_items, 0},
    {"unevaluatedProperties", NEW, true, parse_unevaluated,
     mcp_schema_eval_unevaluated_properties, 0},
    {"uniqueItems", BOTH, false, parse_flag, mcp_schema_eval_unique, 0},
};

static int by_name(const void *key, const void *entry)
{
    const rule_t *rule = entry;

    return strcmp(key, rule->name);
}

static const rule_t *find_rule(const char *name, mcp_schema_dialect_t dialect)
{
    const rule_t *rule =
        bsearch(name, rules, sizeof(rules) / sizeof(rules[0]), sizeof(rules[0]), by_name);

    return rule != NULL && (rule->dialects & (unsigned)dialect) != 0 ? rule : NULL;
}

/* Draft-07 8.3: beside $ref all else is ignored.  The definitions are still read, for the
 * names that references may need. */
static bool is_ignored(const rule_t *rule, bool is_ref_alone)
{
    return rule == NULL || (is_ref_alone && strcmp(rule->name, "$ref") != 0 &&
                            strcmp(rule->name, "definitions") != 0 &&
                            strcmp(rule->name, "$defs") != 0);
}

static bool parse_keyword(mcp_schema_compiler_t *c, const rule_t *rule, mcp_schema_place_t *place,
                          mcp_schema_keyword_t *keyword, const mcp_schema_path_t *parent)
{
    mcp_schema_path_t path = {parent, rule->name, 0};

    memset(keyword, 0, sizeof(*keyword));
    keyword->name = rule->name;
    keyword->eval = rule->eval;
    keyword->value = place->value;
    keyword->types = rule->detail;
    keyword->most = SIZE_MAX;
    place->path = &path;
    return rule->parse(c, place, keyword);
}

/* additionalProperties needs the patterns beside it, which may be parsed after it. */
static void join_patterns(mcp_schema_keyword_t *keywords, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; keywords[i].eval == mcp_schema_eval_additional && k < n; k++) {
            if (keywords[k].eval == mcp_schema_eval_patterns) {
                keywords[i].patterns = &keywords[k];
            }
        }
    }
}

bool mcp_schema_keywords(mcp_schema_compiler_t *c, const json_t *json, mcp_schema_node_t *node,
                         const mcp_schema_path_t *path)
{
    mcp_schema_place_t place = {json, NULL, node, node->resource, NULL};
    mcp_schema_dialect_t dialect = node->resource->dialect;
    bool is_ref_alone = dialect == MCP_SCHEMA_07 && json_object_get(json, "$ref") != NULL;
    mcp_schema_keyword_t *keywords;
    size_t room = 0;
    size_t n = 0;

    for (void *at = mcp_schema_first(json); at != NULL; at = mcp_schema_next(json, at)) {
        room += !is_ignored(find_rule(json_object_iter_key(at), dialect), is_ref_alone);
    }
    /* References keep pointers to their keywords, so these never move. */
    keywords = apr_pcalloc(c->pool, (room + 1) * sizeof(*keywords));
    for (int late = 0; late < 2; late++) {
        for (void *at = mcp_schema_first(json); at != NULL; at = mcp_schema_next(json, at)) {
            const rule_t *rule = find_rule(json_object_iter_key(at), dialect);

            if (is_ignored(rule, is_ref_alone) || rule->is_late != (late == 1)) {
                continue;
            }
            place.value = json_object_iter_value(at);
            if (!parse_keyword(c, rule, &place, &keywords[n], path)) {
                return false;
            }
            n += keywords[n].eval != NULL;
        }
    }
    join_patterns(keywords, n);
    node->keywords = keywords;
    node->n_keywords = n;
    return true;
}
