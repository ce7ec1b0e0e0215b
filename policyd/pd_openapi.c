/* The OpenAPI description: see pd_openapi.h. */
#include "pd_openapi.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define MAX_DEPTH   80 /* of a schema; the registry's have at most MCP_MAX_DEPTH levels */
#define MAX_POINTER 512
#define REF(what)   "#/components/" what

/* --- schemas of the registry --------------------------------------------------------- */

/* Values of these keywords are data, in which "$ref" means nothing. */
static int holds_data(const char *keyword)
{
    static const char *const keywords[] = {"const", "enum", "default", "examples"};
    size_t i;

    for (i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
        if (strcmp(keywords[i], keyword) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A schema's own "#/..." speaks of the schema; within the document that is another place. */
static json_t *moved_ref(const char *ref, const char *op)
{
    char pointer[MAX_POINTER];

    if (ref[0] != '#' || snprintf(pointer, sizeof(pointer), REF("schemas/%s%s"), op, ref + 1) >=
                             (int)sizeof(pointer)) {
        return json_string(ref);
    }
    return json_string(pointer);
}

static json_t *moved(const json_t *schema, const char *op, int depth);

static json_t *moved_object(const json_t *schema, const char *op, int depth)
{
    json_t *copy = json_object();
    const char *key;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)schema, key, value)
    {
        json_t *own;

        if (depth == 0 && (strcmp(key, "$id") == 0 || strcmp(key, "$schema") == 0)) {
            continue;
        }
        if (strcmp(key, "$ref") == 0 && json_is_string(value)) {
            own = moved_ref(json_string_value(value), op);
        } else {
            own = holds_data(key) ? json_deep_copy(value) : moved(value, op, depth + 1);
        }
        if (json_object_set_new(copy, key, own) != 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

/* A copy whose references hold inside the document. The depth is bounded by that of the registry's
 * schemas. */
static json_t *moved(const json_t *schema, const char *op, int depth)
{
    json_t *copy;
    size_t i;

    if (depth > MAX_DEPTH) {
        return NULL;
    }
    if (json_is_object(schema)) {
        return moved_object(schema, op, depth);
    }
    if (!json_is_array(schema)) {
        return json_deep_copy(schema);
    }
    copy = json_array();
    for (i = 0; i < json_array_size(schema); i++) {
        if (json_array_append_new(copy, moved(json_array_get(schema, i), op, depth + 1)) != 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

static void drop_name(json_t *names, const char *name)
{
    size_t i = 0;

    while (i < json_array_size(names)) {
        const char *text = json_string_value(json_array_get(names, i));

        if (text != NULL && strcmp(text, name) == 0) {
            (void)json_array_remove(names, i); /* it is there */
        } else {
            i++;
        }
    }
}

/* What the body holds: the arguments without those of the path and the header. */
static json_t *body_schema(const json_t *row, const json_t *route)
{
    json_t *schema = moved(json_object_get(row, "schema"), mcp_json_str(row, "name"), 0);
    json_t *properties = json_object_get(schema, "properties");
    json_t *required = json_object_get(schema, "required");
    const char *word;
    const json_t *type;

    json_object_foreach(json_object_get(route, "words"), word, type)
    {
        (void)json_object_del(properties, word); /* it may be there */
        drop_name(required, word);
    }
    (void)json_object_del(properties, "if_revision");
    drop_name(required, "if_revision");
    if (json_array_size(required) == 0) {
        (void)json_object_del(schema, "required");
    }
    return schema;
}

static int has_body(const json_t *route)
{
    const char *method = mcp_json_str(route, "method");

    return strcmp(method, "GET") != 0 && strcmp(method, "DELETE") != 0;
}

/* Schemas that references may lead into have to stand somewhere, also where there is no body. */
static int has_definitions(const json_t *row)
{
    const json_t *schema = json_object_get(row, "schema");

    return json_object_get(schema, "$defs") != NULL || json_object_get(schema, "definitions") != NULL;
}

/* --- parameters ------------------------------------------------------------------------ */

static int is_required(const json_t *row, const char *name)
{
    const json_t *required = json_object_get(json_object_get(row, "schema"), "required");
    size_t i;

    for (i = 0; i < json_array_size(required); i++) {
        if (strcmp(json_string_value(json_array_get(required, i)), name) == 0) {
            return 1;
        }
    }
    return 0;
}

static json_t *parameter(const json_t *row, const char *in, const char *name, const char *type)
{
    const json_t *properties = json_object_get(json_object_get(row, "schema"), "properties");
    json_t *schema = moved(json_object_get(properties, name), mcp_json_str(row, "name"), 1);
    json_t *made = json_pack("{s:s, s:s, s:b, s:s*}", "name", name, "in", in, "required",
                             strcmp(in, "path") == 0 || is_required(row, name), "description",
                             mcp_json_str(schema, "description"));

    (void)json_object_del(schema, "description");
    if (strcmp(type, "json") == 0) {
        (void)json_object_set_new(made, "content",
                                  json_pack("{s:{s:o}}", "application/json", "schema", schema));
    } else {
        (void)json_object_set_new(made, "schema", schema); /* missing: the document breaks its test */
    }
    return made;
}

static json_t *parameters(const json_t *row, const json_t *route)
{
    json_t *all = json_array();
    const char *name;
    const json_t *type;

    json_object_foreach(json_object_get(route, "words"), name, type)
    {
        (void)json_array_append_new(all, parameter(row, "path", name, json_string_value(type)));
    }
    json_object_foreach(json_object_get(route, "query"), name, type)
    {
        (void)json_array_append_new(all, parameter(row, "query", name, json_string_value(type)));
    }
    if (json_is_true(json_object_get(route, "if_revision"))) {
        (void)json_array_append_new(all, json_pack("{s:s}", "$ref", REF("parameters/IfMatch")));
    }
    return all;
}

/* --- operations ------------------------------------------------------------------------ */

static json_t *ref(const char *pointer)
{
    return json_pack("{s:s}", "$ref", pointer);
}

/* A list answers pages, everything else one object. */
static int is_list(const json_t *row)
{
    return json_object_get(json_object_get(json_object_get(row, "schema"), "properties"), "cursor") !=
           NULL;
}

static json_t *responses(const json_t *row, const json_t *route)
{
    static const char *const problems[] = {"400", "401", "403", "404"};
    char status[8];
    json_t *headers = json_pack("{s:o}", "MCP-Audit", ref(REF("headers/MCP-Audit")));
    json_t *all = json_object();
    size_t i;

    if (is_list(row)) {
        (void)json_object_set_new(headers, "Link", ref(REF("headers/Link")));
    } else {
        (void)json_object_set_new(headers, "ETag", ref(REF("headers/ETag")));
    }
    if (json_object_get(route, "location") != NULL) {
        (void)json_object_set_new(headers, "Location", ref(REF("headers/Location")));
    }
    (void)snprintf(status, sizeof(status), "%d", (int)mcp_json_int(route, "status", 200));
    (void)json_object_set_new(
        all, status,
        json_pack("{s:s, s:o, s:{s:{s:o}}}", "description",
                  strcmp(status, "201") == 0 ? "Made." : "Done.", "headers", headers, "content",
                  "application/json", "schema",
                  ref(is_list(row) ? REF("schemas/Page") : REF("schemas/Object"))));
    for (i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        (void)json_object_set_new(all, problems[i], ref(REF("responses/Problem")));
    }
    if (has_body(route) || strcmp(mcp_json_str(route, "method"), "DELETE") == 0) {
        (void)json_object_set_new(all, "409", ref(REF("responses/Problem")));
    }
    if (json_is_true(json_object_get(route, "if_revision"))) {
        (void)json_object_set_new(all, "412", ref(REF("responses/Problem")));
    }
    (void)json_object_set_new(all, "default", ref(REF("responses/Problem")));
    return all;
}

static json_t *request_body(const json_t *row, const json_t *schema)
{
    char pointer[MAX_POINTER];

    (void)snprintf(pointer, sizeof(pointer), REF("schemas/%s"), mcp_json_str(row, "name"));
    return json_pack("{s:b, s:{s:{s:o}}}", "required",
                     json_array_size(json_object_get(schema, "required")) > 0, "content",
                     "application/json", "schema", ref(pointer));
}

static json_t *operation(const json_t *row, const json_t *route, json_t *schemas)
{
    const char *permission = mcp_json_str(row, "permission");
    const char *klass = mcp_json_str(row, "classification");
    const char *scope = mcp_scope_text(mcp_scope_of_class(mcp_class_from_text(klass)));
    json_t *schema = body_schema(row, route);
    int takes_body = has_body(route) && json_object_size(json_object_get(schema, "properties")) > 0;
    json_t *made = json_pack(
        "{s:s, s:[s], s:s, s:s, s:[{s:[s]}], s:s*, s:s, s:s*, s:o}", "operationId",
        mcp_json_str(row, "name"), "tags", mcp_json_str(row, "resource"), "summary",
        mcp_json_str(row, "title"), "description", mcp_json_str(row, "description"), "security",
        "bearer", scope != NULL ? scope : "", "x-permission", permission, "x-class", klass, "x-secret",
        mcp_json_str(route, "secret"), "parameters", parameters(row, route));

    if (takes_body) {
        (void)json_object_set_new(made, "requestBody", request_body(row, schema));
    }
    (void)json_object_set_new(made, "responses", responses(row, route));
    if (takes_body || has_definitions(row)) {
        (void)json_object_set_new(schemas, mcp_json_str(row, "name"), schema);
    } else {
        json_decref(schema);
    }
    return made;
}

/* Lower-case letters of a method, the name of an operation in a path item. */
static const char *item_name(const char *method, char buf[16])
{
    size_t i;

    for (i = 0; method[i] != '\0' && i < 15; i++) {
        buf[i] = (char)(method[i] | 0x20);
    }
    buf[i] = '\0';
    return buf;
}

/* --- what all operations share ------------------------------------------------------------ */

static json_t *header(const char *description)
{
    return json_pack("{s:s, s:{s:s}}", "description", description, "schema", "type", "string");
}

static json_t *code_names(void)
{
    json_t *names = json_array();
    int code;

    for (code = MCP_CODE_NONE + 1; code < MCP_CODE_COUNT; code++) {
        (void)json_array_append_new(names, json_string(mcp_code_text((mcp_code_t)code)));
    }
    return names;
}

static json_t *problem_schema(void)
{
    return json_pack(
        "{s:s, s:s, s:[s,s,s,s], s:{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s, s:o}, s:{s:s, s:s}, "
        "s:{s:s, s:s}, s:{s:s, s:s}, s:{s:s, s:{s:s}, s:s}}}",
        "type", "object", "description", "RFC 9457 problem details.", "required", "type", "title",
        "status", "code", "properties", "type", "type", "string", "title", "type", "string", "status",
        "type", "integer", "detail", "type", "string", "code", "type", "string", "examples",
        code_names(), "hint", "type", "string", "description", "What to change.", "audit", "type",
        "string", "description", "Id of the row in the audit trail.", "permission", "type", "string",
        "description", "The permission that is missing.", "scopes", "type", "array", "items", "type",
        "string", "description", "All scopes that are needed.");
}

static json_t *shared_schemas(void)
{
    return json_pack("{s:o, s:{s:s, s:{s:{s:s, s:s}}}, s:{s:s, s:[s], s:{s:{s:s, s:{s:s}}, s:{s:s, s:s}}}}",
                     "Problem", problem_schema(), "Object", "type", "object", "properties", "revision",
                     "type", "integer", "description", "Of the object; the ETag too.", "Page", "type",
                     "object", "required", "items", "properties", "items", "type", "array", "items",
                     "type", "object", "next_cursor", "type", "string", "description",
                     "Argument `cursor` of the next page; absent on the last one.");
}

static json_t *components(json_t *schemas)
{
    return json_pack(
        "{s:o, s:{s:{s:s, s:s, s:b, s:s, s:{s:s}}}, s:{s:o, s:o, s:o, s:o}, s:{s:{s:s, s:{s:{s:o}}}}, "
        "s:{s:{s:s, s:s, s:s}}}",
        "schemas", schemas, "parameters", "IfMatch", "name", "If-Match", "in", "header", "required", 0,
        "description", "ETag of the revision that is to be changed; another one answers 412.",
        "schema", "type", "string", "headers", "MCP-Audit",
        header("Id of the row in the audit trail."), "ETag",
        header("The object's revision in quotes, where it has one."), "Link",
        header("The next page, rel=\"next\"; absent on the last one."), "Location",
        header("Path of what was made."), "responses", "Problem", "description", "Refused or failed.",
        "content", "application/problem+json", "schema", ref(REF("schemas/Problem")),
        "securitySchemes", "bearer", "type", "http", "scheme", "bearer", "description",
        "The token of a grant. An operation names the scope that the grant needs, and in x-permission "
        "what the member's roles have to hold.");
}

static int has_tag(const json_t *tags, const char *name)
{
    size_t i;

    for (i = 0; i < json_array_size(tags); i++) {
        if (strcmp(mcp_json_str(json_array_get(tags, i), "name"), name) == 0) {
            return 1;
        }
    }
    return 0;
}

static int add_operation(json_t *paths, json_t *tags, json_t *schemas, const json_t *row,
                         const json_t *route)
{
    const char *path = mcp_json_str(route, "path");
    const char *tag = mcp_json_str(row, "resource");
    json_t *item = json_object_get(paths, path);
    char method[16];
    int is_bad = 0;

    if (item == NULL) {
        item = json_object();
        is_bad |= json_object_set_new(paths, path, item);
    }
    is_bad |= json_object_set_new(item, item_name(mcp_json_str(route, "method"), method),
                                  operation(row, route, schemas));
    if (!has_tag(tags, tag)) {
        is_bad |= json_array_append_new(tags, json_pack("{s:s}", "name", tag));
    }
    return is_bad;
}

json_t *pd_openapi_make(const json_t *rows, const json_t *routes)
{
    json_t *paths = json_object();
    json_t *tags = json_array();
    json_t *schemas = shared_schemas();
    int is_bad = 0;
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        is_bad |= add_operation(paths, tags, schemas, json_array_get(rows, i),
                                json_array_get(routes, i));
    }
    if (is_bad != 0) {
        json_decref(paths);
        json_decref(tags);
        json_decref(schemas);
        return NULL;
    }
    return json_pack("{s:s, s:[{s:s}], s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:[]}], s:o, s:o, s:o}",
                     "openapi", "3.1.0", "servers", "url", PD_OPENAPI_BASE, "info", "title",
                     "mod_mcp control plane", "version", PACKAGE_VERSION, "description",
                     "Members, roles, grants, connectors, connections and policy of one gateway. Every "
                     "operation is a tool, a policyctl command and a path here.",
                     "license", "name", "Apache-2.0", "identifier", "Apache-2.0", "security", "bearer",
                     "tags", tags, "paths", paths, "components", components(schemas));
}
