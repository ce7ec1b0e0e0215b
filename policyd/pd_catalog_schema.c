/* The inputSchema of an operation: schemas of parameters and body side by side in one object.
 * Definitions that they bring move to the root's $defs, and their references follow. See
 * pd_catalog.h. */
#include "pd_catalog.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "pd_catalog_private.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Also bounds the search for a suffix, which looks at each definition of the root at most once a
 * source. */
#define MAX_DEFINITIONS 1000

static const char dialect[] = "https://json-schema.org/draft/2020-12/schema";

/* A definition at the root: what it was before its references were rewritten, and whose. */
typedef struct hoisted {
    const char *base;       /* its name in the schema it came from */
    int suffix;             /* 1: the name as it was; n: base_n */
    const json_t *original; /* borrowed from the operation */
} hoisted_t;

typedef struct builder {
    const pd_check_t *check;
    const char *at;
    json_t *properties;
    json_t *required;
    json_t *defs;
    json_t *dependent;   /* of an optional flat body; NULL: none */
    apr_hash_t *hoisted; /* name at the root -> hoisted_t */
} builder_t;

/* One schema on its way into the root. */
typedef struct source {
    const builder_t *b;
    const char *at;
    const json_t *schema; /* as the file has it */
    int suffix;           /* what its definitions' names get */
} source_t;

/* --- definitions of a source ---------------------------------------------------------- */

static const char *const def_members[] = {"$defs", "definitions"};

static const json_t *definition(const json_t *schema, const char *name)
{
    const json_t *found = json_object_get(json_object_get(schema, def_members[0]), name);

    return found != NULL ? found : json_object_get(json_object_get(schema, def_members[1]), name);
}

static const char *root_name(apr_pool_t *pool, const char *base, int suffix)
{
    return suffix == 1 ? base : apr_psprintf(pool, "%s_%d", base, suffix);
}

/* Whether the definitions fit the root under this suffix: each name is free, or has the same
 * definition from a source of the same suffix. All or none: a definition refers to its neighbours
 * by their new names. */
static int suffix_fits(const builder_t *b, const json_t *schema, int suffix)
{
    const char *name;
    json_t *value;
    size_t i;

    for (i = 0; i < COUNT(def_members); i++) {
        json_object_foreach(json_object_get(schema, def_members[i]), name, value)
        {
            const hoisted_t *there = apr_hash_get(
                b->hoisted, root_name(b->check->round, name, suffix), APR_HASH_KEY_STRING);

            if (there != NULL && (there->suffix != suffix || strcmp(there->base, name) != 0 ||
                                  !json_equal(there->original, value))) {
                return 0;
            }
        }
    }
    return 1;
}

static pd_status_t check_definitions(const source_t *s)
{
    json_t *modern = json_object_get(s->schema, def_members[0]);
    json_t *old = json_object_get(s->schema, def_members[1]);
    const char *name;
    json_t *value;

    if ((modern != NULL && !json_is_object(modern)) || (old != NULL && !json_is_object(old))) {
        return pd_check_fault(s->b->check, s->at, NULL, "$defs must be an object of schemas");
    }
    json_object_foreach(old, name, value)
    {
        const json_t *twin = json_object_get(modern, name);

        if (twin != NULL && !json_equal(twin, value)) {
            return pd_check_fault(s->b->check, s->at, NULL,
                                  "\"%s\" is defined in $defs and in definitions; rename one",
                                  pd_check_quote(s->b->check, name));
        }
    }
    return PD_OK;
}

/* --- references -------------------------------------------------------------------------- */

/* Decodes the token of a reference (percent-encoding of the fragment, then ~1 and ~0); NULL when
 * it is bad. */
static const char *decode_token(apr_pool_t *pool, const char *token, size_t bytes)
{
    char *text = apr_palloc(pool, bytes + 1);
    char *to = text;
    const char *from;
    size_t i;

    for (i = 0; i < bytes; i++) {
        if (token[i] == '%') {
            int high = i + 2 < bytes ? pd_check_hex(token[i + 1]) : -1;
            int low = i + 2 < bytes ? pd_check_hex(token[i + 2]) : -1;

            if (high < 0 || low < 0) {
                return NULL;
            }
            *to++ = (char)(high * 16 + low);
            i += 2;
        } else {
            *to++ = token[i];
        }
    }
    *to = '\0';
    to = text;
    for (from = text; *from != '\0'; from++) {
        if (*from != '~') {
            *to++ = *from;
        } else if (from[1] == '0' || from[1] == '1') {
            *to++ = from[1] == '0' ? '~' : '/';
            from++;
        } else {
            return NULL;
        }
    }
    *to = '\0';
    return text;
}

static pd_status_t refuse_reference(const source_t *s, const char *reference)
{
    return pd_check_fault(
        s->b->check, s->at, "Put the schema that is meant into this schema's own \"$defs\".",
        "the reference \"%s\" can't be taken; only \"#/$defs/NAME\" of the same schema can",
        pd_check_quote(s->b->check, reference));
}

/* "#/$defs/NAME…" or "#/definitions/NAME…" to the place at the root. */
static pd_status_t rewrite_reference(const source_t *s, json_t *schema)
{
    apr_pool_t *pool = s->b->check->round;
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    const char *token = NULL;
    const char *name;
    const char *text;
    size_t bytes;
    size_t i;

    for (i = 0; reference != NULL && token == NULL && i < COUNT(def_members); i++) {
        const char *prefix = apr_pstrcat(pool, "#/", def_members[i], "/", NULL);

        if (strncmp(reference, prefix, strlen(prefix)) == 0) {
            token = reference + strlen(prefix);
        }
    }
    if (token == NULL) {
        return refuse_reference(s, reference == NULL ? "(no string)" : reference);
    }
    bytes = strcspn(token, "/");
    name = decode_token(pool, token, bytes);
    if (name == NULL || definition(s->schema, name) == NULL) {
        return refuse_reference(s, reference);
    }
    text = apr_pstrcat(pool, "#/$defs/",
                       root_name(pool, apr_pstrmemdup(pool, token, bytes), s->suffix),
                       token + bytes, NULL);
    return json_object_set_new(schema, "$ref", json_string(text)) == 0 ? PD_OK : PD_E_NOMEM;
}

/* --- the walk ------------------------------------------------------------------------------ */

/* What stands under a keyword. Values of other keywords (enum, const, default, examples) are data
 * and stay. */
typedef enum holds { HOLDS_SCHEMA, HOLDS_LIST, HOLDS_MAP } holds_t;

static const struct {
    const char *keyword;
    holds_t holds;
} keywords[] = {{"additionalProperties", HOLDS_SCHEMA},
                {"additionalItems", HOLDS_SCHEMA},
                {"unevaluatedProperties", HOLDS_SCHEMA},
                {"unevaluatedItems", HOLDS_SCHEMA},
                {"propertyNames", HOLDS_SCHEMA},
                {"items", HOLDS_SCHEMA},
                {"items", HOLDS_LIST}, /* of older drafts */
                {"contains", HOLDS_SCHEMA},
                {"contentSchema", HOLDS_SCHEMA},
                {"not", HOLDS_SCHEMA},
                {"if", HOLDS_SCHEMA},
                {"then", HOLDS_SCHEMA},
                {"else", HOLDS_SCHEMA},
                {"allOf", HOLDS_LIST},
                {"anyOf", HOLDS_LIST},
                {"oneOf", HOLDS_LIST},
                {"prefixItems", HOLDS_LIST},
                {"properties", HOLDS_MAP},
                {"patternProperties", HOLDS_MAP},
                {"dependentSchemas", HOLDS_MAP},
                {"dependencies", HOLDS_MAP},
                {"$defs", HOLDS_MAP},
                {"definitions", HOLDS_MAP}};

/* Keywords that would mean something else at another place, or reach outside. */
static const char *const refused[] = {
    "$id",           "$anchor",          "$dynamicRef", "$dynamicAnchor",
    "$recursiveRef", "$recursiveAnchor", "id",          "$vocabulary"};

static pd_status_t check_keywords(const source_t *s, json_t *schema)
{
    const char *named = mcp_json_str(schema, "$schema");
    size_t i;

    for (i = 0; i < COUNT(refused); i++) {
        if (json_is_string(json_object_get(schema, refused[i])) ||
            (refused[i][0] == '$' && json_object_get(schema, refused[i]) != NULL)) {
            return pd_check_fault(
                s->b->check, s->at, NULL,
                "\"%s\" can't be taken, since the schema becomes part of another; remove it",
                refused[i]);
        }
    }
    if (json_object_get(schema, "$schema") != NULL &&
        (named == NULL || strncmp(named, dialect, strlen(dialect)) != 0)) {
        return pd_check_fault(s->b->check, s->at, NULL, "only JSON Schema 2020-12 can be taken");
    }
    (void)json_object_del(schema, "$schema"); /* absent is fine */
    return PD_OK;
}

/* A schema that waits to be walked. */
typedef struct waiting {
    json_t *schema;
    int depth;
} waiting_t;

static void push(apr_array_header_t *stack, json_t *schema, int depth)
{
    if (json_is_object(schema)) {
        waiting_t *w = apr_array_push(stack);

        w->schema = schema;
        w->depth = depth;
    }
}

static void push_children(apr_array_header_t *stack, json_t *schema, int depth)
{
    const char *name;
    json_t *value;
    json_t *child;
    size_t i;
    size_t k;

    for (k = 0; k < COUNT(keywords); k++) {
        value = json_object_get(schema, keywords[k].keyword);
        switch (keywords[k].holds) {
        case HOLDS_SCHEMA:
            push(stack, value, depth);
            break;
        case HOLDS_LIST:
            json_array_foreach(value, i, child)
            {
                push(stack, child, depth);
            }
            break;
        case HOLDS_MAP:
            json_object_foreach(value, name, child)
            {
                push(stack, child, depth);
            }
            break;
        default:
            break;
        }
    }
}

/* Rewrites every reference below `schema`, a copy of our own. A stack instead of recursion. */
static pd_status_t rewrite(const source_t *s, json_t *schema)
{
    apr_array_header_t *stack = apr_array_make(s->b->check->round, 16, sizeof(waiting_t));

    push(stack, schema, 1);
    while (stack->nelts > 0) {
        const waiting_t next = *(const waiting_t *)apr_array_pop(stack);
        pd_status_t status = check_keywords(s, next.schema);

        if (status == PD_OK && next.depth > MCP_MAX_DEPTH) {
            return pd_check_fault(s->b->check, s->at, NULL, "nested deeper than %d levels",
                                  MCP_MAX_DEPTH);
        }
        if (status == PD_OK && json_object_get(next.schema, "$ref") != NULL) {
            status = rewrite_reference(s, next.schema);
        }
        if (status != PD_OK) {
            return status;
        }
        push_children(stack, next.schema, next.depth + 1);
    }
    return PD_OK;
}

/* A rewritten copy of `part`, which belongs to the source; new reference. */
static pd_status_t copy_part(const source_t *s, const json_t *part, json_t **ret)
{
    json_t *copy = json_deep_copy(part);
    size_t i;
    pd_status_t status;

    if (copy == NULL) {
        return PD_E_NOMEM;
    }
    if (part == s->schema) {
        for (i = 0; i < COUNT(def_members); i++) {
            (void)json_object_del(copy, def_members[i]); /* they go to the root */
        }
    }
    status = rewrite(s, copy);
    if (status != PD_OK) {
        json_decref(copy);
        return status;
    }
    *ret = copy;
    return PD_OK;
}

static pd_status_t hoist_one(const source_t *s, const char *name, const json_t *value)
{
    apr_pool_t *pool = s->b->check->round;
    const char *to = root_name(pool, name, s->suffix);
    hoisted_t *h;
    json_t *copy;
    pd_status_t status;

    if (apr_hash_get(s->b->hoisted, to, APR_HASH_KEY_STRING) != NULL) {
        return PD_OK; /* the same one, by suffix_fits() */
    }
    if (apr_hash_count(s->b->hoisted) >= MAX_DEFINITIONS) {
        return pd_check_fault(s->b->check, s->at, NULL,
                              "the operation's schemas have more than %d definitions",
                              MAX_DEFINITIONS);
    }
    status = copy_part(s, value, &copy);
    if (status != PD_OK) {
        return status;
    }
    if (json_object_set_new(s->b->defs, to, copy) != 0) {
        return PD_E_NOMEM;
    }
    h = apr_pcalloc(pool, sizeof(*h));
    h->base = name;
    h->suffix = s->suffix;
    h->original = value;
    apr_hash_set(s->b->hoisted, apr_pstrdup(pool, to), APR_HASH_KEY_STRING, h);
    return PD_OK;
}

/* Finds a suffix for the source's definitions and moves them to the root. */
static pd_status_t open_source(source_t *s)
{
    const char *name;
    json_t *value;
    size_t i;
    pd_status_t status = check_definitions(s);

    s->suffix = 1;
    while (status == PD_OK && !suffix_fits(s->b, s->schema, s->suffix)) {
        s->suffix++; /* ends: the root holds finitely many names */
    }
    for (i = 0; status == PD_OK && i < COUNT(def_members); i++) {
        json_object_foreach(json_object_get(s->schema, def_members[i]), name, value)
        {
            if (status == PD_OK) {
                status = hoist_one(s, name, value);
            }
        }
    }
    return status;
}

/* --- the object ---------------------------------------------------------------------------- */

static pd_status_t add_property(builder_t *b, const char *arg, json_t *schema,
                                const json_t *description)
{
    int failed = 0;

    if (json_is_string(description) && json_is_object(schema)) {
        failed = json_object_set_new(schema, "description", json_deep_copy(description));
    }
    if (failed != 0) {
        json_decref(schema);
        return PD_E_NOMEM;
    }
    return json_object_set_new(b->properties, arg, schema) == 0 ? PD_OK : PD_E_NOMEM;
}

static pd_status_t require(builder_t *b, const char *arg)
{
    return json_array_append_new(b->required, json_string(arg)) == 0 ? PD_OK : PD_E_NOMEM;
}

/* A parameter, or a body that is one argument: same members. */
static pd_status_t add_whole(builder_t *b, const char *at, const json_t *holder)
{
    source_t s = {.b = b, .at = at, .schema = json_object_get(holder, "schema")};
    const char *arg = mcp_json_str(holder, "arg");
    json_t *copy;
    pd_status_t status = open_source(&s);

    if (status == PD_OK) {
        status = copy_part(&s, s.schema, &copy);
    }
    if (status == PD_OK) {
        status = add_property(b, arg, copy, json_object_get(holder, "description"));
    }
    if (status == PD_OK && mcp_json_bool(holder, "required")) {
        status = require(b, arg);
    }
    return status;
}

static int is_required(const json_t *schema, const char *name)
{
    const json_t *element;
    size_t i;

    json_array_foreach(json_object_get(schema, "required"), i, element)
    {
        if (strcmp(json_string_value(element), name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* An optional body has required members only once it is there: every member needs the first
 * required one, and that one needs the others, so that the rule stays linear in size. */
static pd_status_t add_dependence(builder_t *b, const json_t *body)
{
    const json_t *schema = json_object_get(body, "schema");
    const json_t *fields = json_object_get(body, "fields");
    const json_t *field;
    const char *first = NULL;
    json_t *others = json_array();
    size_t i;
    int failed = 0;

    json_array_foreach(fields, i, field)
    {
        const char *arg = mcp_json_str(field, "arg");

        if (is_required(schema, mcp_json_str(field, "name"))) {
            if (first != NULL) {
                failed |= json_array_append_new(others, json_string(arg));
            } else {
                first = arg;
            }
        }
    }
    if (first == NULL) {
        json_decref(others);
        return PD_OK;
    }
    b->dependent = json_object();
    json_array_foreach(fields, i, field)
    {
        const char *arg = mcp_json_str(field, "arg");

        if (strcmp(arg, first) != 0) {
            failed |= json_object_set_new(b->dependent, arg, json_pack("[s]", first));
        }
    }
    if (json_array_size(others) > 0) {
        failed |= json_object_set_new(b->dependent, first, json_incref(others));
    }
    json_decref(others);
    return failed == 0 ? PD_OK : PD_E_NOMEM;
}

static pd_status_t add_flat(builder_t *b, const char *at, const json_t *body)
{
    source_t s = {.b = b, .at = at, .schema = json_object_get(body, "schema")};
    const json_t *properties = json_object_get(s.schema, "properties");
    const json_t *field;
    int is_body_required = mcp_json_bool(body, "required");
    size_t i;
    pd_status_t status;

    /* the properties are copied one by one, so the root's own keywords are judged here */
    json_t *root = json_pack("{}");
    const json_t *named = json_object_get(s.schema, "$schema");

    if (named != NULL) {
        (void)json_object_set_new(root, "$schema", json_deep_copy(named));
    }
    status = check_keywords(&s, root);
    json_decref(root);
    if (status == PD_OK) {
        status = open_source(&s);
    }
    json_array_foreach(json_object_get(body, "fields"), i, field)
    {
        const char *name = mcp_json_str(field, "name");
        const char *arg = mcp_json_str(field, "arg");
        json_t *copy;

        if (status == PD_OK) {
            status = copy_part(&s, json_object_get(properties, name), &copy);
        }
        if (status == PD_OK) {
            status = add_property(b, arg, copy, NULL);
        }
        if (status == PD_OK && is_body_required && is_required(s.schema, name)) {
            status = require(b, arg);
        }
    }
    if (status == PD_OK && !is_body_required) {
        status = add_dependence(b, body);
    }
    return status;
}

static pd_status_t add_all(builder_t *b, const json_t *op)
{
    apr_pool_t *pool = b->check->round;
    const json_t *body = json_object_get(op, "body");
    const json_t *parameter;
    pd_status_t status = PD_OK;
    size_t i;

    json_array_foreach(json_object_get(op, "parameters"), i, parameter)
    {
        if (status == PD_OK && json_object_get(parameter, "fixed") == NULL) {
            status = add_whole(
                b, apr_psprintf(pool, "%s/parameters/%lu/schema", b->at, (unsigned long)i),
                parameter);
        }
    }
    if (status == PD_OK && body != NULL) {
        const char *at = apr_pstrcat(pool, b->at, "/body/schema", NULL);

        status = mcp_json_bool(body, "flatten") ? add_flat(b, at, body) : add_whole(b, at, body);
    }
    return status;
}

/* {"type","properties","required","additionalProperties"} and what else is needed. */
static json_t *assemble(const builder_t *b)
{
    json_t *schema = json_object();
    int failed = json_object_set_new(schema, "type", json_string("object"));

    failed |= json_object_set_new(schema, "properties", json_incref(b->properties));
    failed |= json_object_set_new(schema, "required", json_incref(b->required));
    failed |= json_object_set_new(schema, "additionalProperties", json_false());
    if (b->dependent != NULL) {
        failed |= json_object_set_new(schema, "dependentRequired", json_incref(b->dependent));
    }
    if (json_object_size(b->defs) > 0) {
        failed |= json_object_set_new(schema, "$defs", json_incref(b->defs));
    }
    if (failed != 0) {
        json_decref(schema);
        return NULL;
    }
    return schema;
}

pd_status_t pd_catalog_input_schema(const pd_check_t *check, const char *at, const json_t *op,
                                    json_t **ret)
{
    builder_t b = {.check = check,
                   .at = at,
                   .properties = json_object(),
                   .required = json_array(),
                   .defs = json_object(),
                   .hoisted = apr_hash_make(check->round)};
    pd_status_t status = add_all(&b, op);
    json_t *schema = NULL;

    if (status == PD_OK) {
        schema = assemble(&b);
        status = schema == NULL ? PD_E_NOMEM : PD_OK;
    }
    json_decref(b.properties);
    json_decref(b.required);
    json_decref(b.defs);
    json_decref(b.dependent);
    if (status == PD_OK) {
        *ret = schema;
    }
    return status;
}
