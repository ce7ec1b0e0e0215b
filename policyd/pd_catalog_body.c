/* The body of an operation, and the names of its arguments: object bodies lie flat
 * beside the parameters, clashes get a prefix that depends on nothing but the operation itself. */
#include "pd_catalog.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "pd_catalog_private.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- the body ------------------------------------------------------------------------ */

/* BODY_ANY is a range that JSON is in: sent as JSON, unless it is a text. */
typedef enum body_kind { BODY_JSON, BODY_FORM, BODY_TEXT, BODY_ANY, BODY_BAD } body_kind_t;

static body_kind_t kind_of(apr_pool_t *pool, const char *content_type)
{
    size_t bytes = strcspn(content_type, "; \t");
    char *type = apr_pstrmemdup(pool, content_type, bytes);
    char *slash = strchr(type, '/');
    size_t subtype;

    if (slash == NULL) {
        return BODY_BAD;
    }
    *slash = '\0';
    if (!pd_check_is_token(type) || !pd_check_is_token(slash + 1)) {
        return BODY_BAD;
    }
    *slash = '/';
    subtype = strlen(slash + 1);
    if (strcmp(type, "*/*") == 0 || strcasecmp(type, "application/*") == 0) {
        return BODY_ANY;
    }
    if (strcasecmp(type, "application/json") == 0 || strcasecmp(type, "text/json") == 0 ||
        (subtype > 5 && strcasecmp(slash + 1 + subtype - 5, "+json") == 0)) {
        return BODY_JSON;
    }
    if (strcasecmp(type, "application/x-www-form-urlencoded") == 0 ||
        strcasecmp(type, "multipart/form-data") == 0) {
        return BODY_FORM;
    }
    return strncasecmp(type, "multipart/", 10) == 0 ? BODY_BAD : BODY_TEXT;
}

/* Members of an object schema that leave it flat: form and annotations. Any other (allOf,
 * dependentRequired, minProperties, …) says something about the object as a whole that would be
 * lost. */
static const char *const flat_members[] = {
    "type",        "properties",  "required",   "additionalProperties",
    "$defs",       "definitions", "$schema",    "title",
    "default",     "description", "deprecated", "examples",
    "example",     "$comment",    "readOnly",   "writeOnly",
    "externalDocs"};

static int is_flat_member(const char *name)
{
    size_t i;

    for (i = 0; i < COUNT(flat_members); i++) {
        if (strcmp(name, flat_members[i]) == 0) {
            return 1;
        }
    }
    return strncmp(name, "x-", 2) == 0;
}

/* A required name that is no property would be lost too. */
static int required_are_known(const json_t *schema)
{
    const json_t *required = json_object_get(schema, "required");
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *name;
    size_t i;

    if (required != NULL && !json_is_array(required)) {
        return 0;
    }
    json_array_foreach(required, i, name)
    {
        if (!json_is_string(name) || json_object_get(properties, json_string_value(name)) == NULL) {
            return 0;
        }
    }
    return 1;
}

static int is_flat(json_t *schema)
{
    const char *type = mcp_json_str(schema, "type");
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *beyond = json_object_get(schema, "additionalProperties");
    const char *name;
    json_t *value;

    if (type == NULL || strcmp(type, "object") != 0 || json_object_size(properties) == 0 ||
        (beyond != NULL && !json_is_false(beyond)) || json_object_get(properties, "") != NULL) {
        return 0;
    }
    json_object_foreach(schema, name, value)
    {
        if (!is_flat_member(name)) {
            return 0;
        }
    }
    return required_are_known(schema);
}

/* NULL or why the body's argument can't have the name that the file wishes. */
static const char *judge_wish(const pd_check_t *check, const json_t *op, const char *wish)
{
    char name[MCP_MAX_ARG_NAME + 1];

    if (mcp_name_arg(check->slug, mcp_json_str(op, "id"), wish, name, sizeof(name)) != MCP_OK ||
        strcmp(name, wish) != 0) {
        return "its \"arg\" must be 1 to 64 of A-Z, a-z, 0-9, '_', '.', '-' and not end like a "
               "hashed name";
    }
    return NULL;
}

static const char *judge_body(const pd_check_t *check, const json_t *op, const json_t *body,
                              body_kind_t kind, int is_flat_body)
{
    const char *method = mcp_json_str(op, "method");
    const char *type = mcp_json_str(json_object_get(body, "schema"), "type");
    const char *wish = mcp_json_str(body, "arg");

    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) {
        return "GET and HEAD have no body; make its members query parameters";
    }
    if (kind == BODY_BAD) {
        return "its content_type must be a media type that can be built: JSON, "
               "application/x-www-form-urlencoded, multipart/form-data or a text";
    }
    if (kind == BODY_FORM && (type == NULL || strcmp(type, "object") != 0)) {
        return "a form needs a schema of type \"object\"";
    }
    if (kind == BODY_TEXT && (type == NULL || strcmp(type, "string") != 0)) {
        return "a body that is neither JSON nor a form needs a schema of type \"string\"";
    }
    if (wish != NULL && is_flat_body) {
        return "its members are arguments themselves; remove \"arg\"";
    }
    return wish == NULL ? NULL : judge_wish(check, op, wish);
}

/* [{"name"}] of the properties of a flat body; the arguments' names come later. */
static json_t *fields_of(const json_t *schema)
{
    json_t *properties = json_object_get(schema, "properties");
    json_t *fields = json_array();
    const char *name;
    json_t *value;

    json_object_foreach(properties, name, value)
    {
        if (json_array_append_new(fields, json_pack("{s:s}", "name", name)) != 0) {
            json_decref(fields);
            return NULL;
        }
    }
    return fields;
}

pd_status_t pd_check_body(const pd_check_t *check, const char *at, json_t *op)
{
    json_t *body = json_object_get(op, "body");
    body_kind_t kind;
    const char *why;
    int flat;

    if (body == NULL) {
        return PD_OK;
    }
    kind = kind_of(check->round, mcp_json_str(body, "content_type"));
    flat = kind != BODY_TEXT && is_flat(json_object_get(body, "schema"));
    why = judge_body(check, op, body, kind, flat);
    if (why != NULL) {
        return pd_check_fault(check, apr_pstrcat(check->round, at, "/body", NULL), NULL, "%s", why);
    }
    if (json_object_set_new(body, "flatten", json_boolean(flat)) != 0) {
        return PD_E_NOMEM;
    }
    if (flat) {
        json_t *fields = fields_of(json_object_get(body, "schema"));

        return fields != NULL && json_object_set_new(body, "fields", fields) == 0 ? PD_OK
                                                                                  : PD_E_NOMEM;
    }
    return PD_OK;
}

/* --- names of arguments ------------------------------------------------------------------ */

/* Something that needs a name: a parameter, a field of the body, or the body. */
typedef struct slot {
    json_t *holder;     /* gets "arg" */
    const char *name;   /* on the wire */
    const char *prefix; /* when the name is taken */
    int is_named;
} slot_t;

static void add_slot(apr_array_header_t *slots, json_t *holder, const char *name,
                     const char *prefix)
{
    slot_t *slot = apr_array_push(slots);

    slot->holder = holder;
    slot->name = name;
    slot->prefix = prefix;
    slot->is_named = 0;
}

/* The order decides who keeps a bare name: path, query, header, cookie, body; fixed parameters,
 * which no caller names, come last. */
static const struct {
    const char *in;
    const char *prefix;
} ranks[] = {{"path", "path_"}, {"query", "query_"}, {"header", "header_"}, {"cookie", "cookie_"}};

static void add_parameters(apr_array_header_t *slots, const json_t *op, int are_fixed)
{
    json_t *parameter;
    size_t rank;
    size_t i;

    for (rank = 0; rank < COUNT(ranks); rank++) {
        json_array_foreach(json_object_get(op, "parameters"), i, parameter)
        {
            int is_fixed = json_object_get(parameter, "fixed") != NULL;

            if (is_fixed == are_fixed &&
                strcmp(mcp_json_str(parameter, "in"), ranks[rank].in) == 0) {
                add_slot(slots, parameter, mcp_json_str(parameter, "name"), ranks[rank].prefix);
            }
        }
    }
}

static void add_body(apr_array_header_t *slots, const json_t *op)
{
    json_t *body = json_object_get(op, "body");
    const char *wish = mcp_json_str(body, "arg");
    json_t *field;
    size_t i;

    if (body == NULL) {
        return;
    }
    if (!mcp_json_bool(body, "flatten")) {
        add_slot(slots, body, wish == NULL ? "body" : wish, "body_");
        return;
    }
    json_array_foreach(json_object_get(body, "fields"), i, field)
    {
        add_slot(slots, field, mcp_json_str(field, "name"), "body_");
    }
}

/* Gives the slot the argument name made of `name`; *ret_taken when another has it. */
static pd_status_t give(const pd_check_t *check, apr_hash_t *taken, const json_t *op, slot_t *slot,
                        const char *name)
{
    char *arg = apr_palloc(check->round, MCP_MAX_ARG_NAME + 1);

    if (mcp_name_arg(check->slug, mcp_json_str(op, "id"), name, arg, MCP_MAX_ARG_NAME + 1) !=
        MCP_OK) {
        return PD_E_INTERNAL;
    }
    if (apr_hash_get(taken, arg, APR_HASH_KEY_STRING) != NULL) {
        return PD_OK;
    }
    if (json_object_set_new(slot->holder, "arg", json_string(arg)) != 0) {
        return PD_E_NOMEM;
    }
    apr_hash_set(taken, arg, APR_HASH_KEY_STRING, slot);
    slot->is_named = 1;
    return PD_OK;
}

/* Bare names first for all, so that a made-up name never takes a real one. */
static pd_status_t name_slots(const pd_check_t *check, const char *at, const json_t *op,
                              apr_array_header_t *slots)
{
    apr_hash_t *taken = apr_hash_make(check->round);
    slot_t *all = (slot_t *)(void *)slots->elts;
    pd_status_t status = PD_OK;
    int i;
    int n;

    for (i = 0; status == PD_OK && i < slots->nelts; i++) {
        status = give(check, taken, op, &all[i], all[i].name);
    }
    for (i = 0; status == PD_OK && i < slots->nelts; i++) {
        const char *name;

        if (all[i].is_named) {
            continue; /* its wish may be gone: give() replaced it */
        }
        if (json_object_get(all[i].holder, "arg") != NULL) {
            return pd_check_fault(check, apr_pstrcat(check->round, at, "/body/arg", NULL), NULL,
                                  "a parameter has the argument name \"%s\"; choose another",
                                  pd_check_quote(check, all[i].name));
        }
        name = apr_pstrcat(check->round, all[i].prefix, all[i].name, NULL);
        status = give(check, taken, op, &all[i], name);
        /* among n slots at most n - 1 names are taken */
        for (n = 2; status == PD_OK && !all[i].is_named && n <= slots->nelts + 1; n++) {
            status = give(check, taken, op, &all[i], apr_psprintf(check->round, "%s_%d", name, n));
        }
    }
    return status;
}

pd_status_t pd_check_arguments(const pd_check_t *check, const char *at, json_t *op)
{
    apr_array_header_t *slots = apr_array_make(check->round, 16, sizeof(slot_t));

    add_parameters(slots, op, 0);
    add_body(slots, op);
    add_parameters(slots, op, 1);
    if (slots->nelts > PD_MAX_PARAMETERS) {
        return pd_check_fault(check, at, NULL, "more than %d parameters and members of the body",
                              PD_MAX_PARAMETERS);
    }
    return name_slots(check, at, op, slots);
}
