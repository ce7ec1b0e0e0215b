/* One operation of a connector file: id, method, path template and parameters judged and completed
 * in place. See pd_catalog.h and doc/connector-file.md. */
#include "pd_catalog.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/mcp_schema.h"
#include "pd_catalog_private.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_LITERALS 16      /* query literals of one template */
#define MAX_FIXED_BYTES 2048 /* of a fixed value, as JSON */

/* --- id, method, classification --------------------------------------------------- */

static pd_status_t check_id(const pd_check_t *check, const char *at, const json_t *op)
{
    const char *c;

    for (c = mcp_json_str(op, "id"); *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') {
            return pd_check_fault(check, apr_pstrcat(check->round, at, "/id", NULL), NULL,
                                  "use printable ASCII without spaces");
        }
    }
    return PD_OK;
}

static pd_status_t check_method(const pd_check_t *check, const char *at, json_t *op)
{
    char *method = apr_pstrdup(check->round, mcp_json_str(op, "method"));
    char *c;

    at = apr_pstrcat(check->round, at, "/method", NULL);
    if (!pd_check_is_token(method)) {
        return pd_check_fault(check, at, NULL, "\"%s\" is no HTTP method",
                              pd_check_quote(check, method));
    }
    for (c = method; *c != '\0'; c++) {
        if (*c >= 'a' && *c <= 'z') {
            *c = (char)(*c - 'a' + 'A');
        }
    }
    if (strcmp(method, "CONNECT") == 0 || strcmp(method, "TRACE") == 0) {
        return pd_check_fault(check, at, NULL,
                              "%s is not sent: it opens tunnels or echoes credentials", method);
    }
    return json_object_set_new(op, "method", json_string(method)) == 0 ? PD_OK : PD_E_NOMEM;
}

static pd_status_t set_class(json_t *op)
{
    const char *text = mcp_json_str(op, "classification");

    if (text == NULL) {
        text = mcp_class_text(mcp_class_of_method(mcp_json_str(op, "method")));
    }
    return json_object_set_new(op, "classification", json_string(text)) == 0 ? PD_OK : PD_E_NOMEM;
}

/* --- the path template --------------------------------------------------------------- */

typedef struct placeholder {
    const char *name;
    int is_segment;    /* it is a whole segment */
    json_t *parameter; /* found later */
} placeholder_t;

typedef struct template
{
    char *path; /* without the query */
    apr_array_header_t *places;
    json_t *query;
}
template_t;

static int is_placeholder_char(char c)
{
    return c > ' ' && c <= '~' && strchr("{}/?#%+*\\\"<>^`|", c) == NULL;
}

/* One {name} at text; NULL or why not. */
static const char *take_placeholder(apr_pool_t *pool, const char *path, const char **text,
                                    template_t *t)
{
    const char *open = *text;
    const char *close = open + 1;
    placeholder_t *place;
    int i;

    while (is_placeholder_char(*close)) {
        close++;
    }
    if (*close != '}' || close == open + 1) {
        return "a placeholder is {name}, with the name of a path parameter";
    }
    if (open > path && open[-1] == '}') {
        return "two placeholders need literal text between them";
    }
    place = apr_array_push(t->places);
    place->name = apr_pstrmemdup(pool, open + 1, (apr_size_t)(close - open - 1));
    place->is_segment = open > path && open[-1] == '/' && (close[1] == '/' || close[1] == '\0');
    place->parameter = NULL;
    for (i = 0; i < t->places->nelts - 1; i++) {
        if (strcmp(((placeholder_t *)(void *)t->places->elts)[i].name, place->name) == 0) {
            return "a placeholder may stand once only";
        }
    }
    *text = close + 1;
    return NULL;
}

static const char *parse_path(apr_pool_t *pool, template_t *t)
{
    const char *text = t->path;
    const char *segment;

    if (text[0] != '/') {
        return "must begin with '/'";
    }
    if (strstr(text, "//") != NULL) {
        return "has an empty segment; write one '/'";
    }
    for (segment = text; segment != NULL; segment = strchr(segment + 1, '/')) {
        size_t bytes = strcspn(segment + 1, "/");

        if (bytes > 0 && bytes <= 2 && strncmp(segment + 1, "..", bytes) == 0) {
            return "must have no segment \".\" or \"..\"";
        }
    }
    while (*text != '\0') {
        size_t triplet = pd_check_triplet(text);

        if (*text == '{') {
            const char *why = take_placeholder(pool, t->path, &text, t);

            if (why != NULL) {
                return why;
            }
        } else if (triplet != 0) {
            text += triplet;
        } else if (*text == '/' || pd_check_is_pchar(*text)) {
            text++;
        } else {
            return "has a character that must be percent-encoded, or an encoded slash, backslash "
                   "or dot";
        }
    }
    return NULL;
}

/* Percent-decodes in place; 0 when it can't be a literal. */
static int decode_literal(char *text)
{
    char *to = text;

    while (*text != '\0') {
        int high;
        int low;

        if (*text != '%') {
            if (*text == '+' || *text == '{' || *text == '}' || *text == ' ') {
                return 0;
            }
            *to++ = *text++;
            continue;
        }
        high = pd_check_hex(text[1]);
        low = high < 0 ? -1 : pd_check_hex(text[2]);
        if (low < 0 || high * 16 + low == 0) {
            return 0;
        }
        *to++ = (char)(high * 16 + low);
        text += 3;
    }
    *to = '\0';
    return 1;
}

/* One "name=value" of the query; NULL or why not. */
static const char *take_literal(char *pair, json_t *query)
{
    char *equals = strchr(pair, '=');
    char *value = equals == NULL ? pair + strlen(pair) : equals + 1;
    const json_t *earlier;
    json_t *literal;
    size_t i;

    if (equals != NULL) {
        *equals = '\0';
    }
    if (!decode_literal(pair) || !decode_literal(value) || pair[0] == '\0' ||
        pd_check_has_control(pair) || pd_check_has_control(value)) {
        return "has a query that is not name=value&name=value of literal text "
               "(%20 for a space, %2B for a plus; what varies is a parameter in \"query\")";
    }
    json_array_foreach(query, i, earlier)
    {
        if (strcmp(json_string_value(json_array_get(earlier, 0)), pair) == 0) {
            return "names a query literal twice";
        }
    }
    literal = json_pack("[s,s]", pair, value);
    if (literal == NULL || json_array_append_new(query, literal) != 0) {
        return "has a query that is not UTF-8";
    }
    return json_array_size(query) > MAX_LITERALS ? "has more than 16 query literals" : NULL;
}

static const char *parse_query(char *query, template_t *t)
{
    while (query != NULL) {
        char *next = strchr(query, '&');
        const char *why;

        if (next != NULL) {
            *next++ = '\0';
        }
        why = take_literal(query, t->query);
        if (why != NULL) {
            return why;
        }
        query = next;
    }
    return NULL;
}

/* Parses "path" and leaves it without its query; places in *t, whose query the caller owns. */
static pd_status_t check_path(const pd_check_t *check, const char *at, json_t *op, template_t *t)
{
    char *query;
    const char *why;

    t->path = apr_pstrdup(check->round, mcp_json_str(op, "path"));
    t->places = apr_array_make(check->round, 8, sizeof(placeholder_t));
    t->query = json_array();
    query = strchr(t->path, '?');
    if (query != NULL) {
        *query++ = '\0';
    }
    why = parse_path(check->round, t);
    if (why == NULL) {
        why = parse_query(query, t);
    }
    if (why != NULL) {
        return pd_check_fault(check, apr_pstrcat(check->round, at, "/path", NULL), NULL, "%s", why);
    }
    if (json_object_set_new(op, "path", json_string(t->path)) != 0) {
        return PD_E_NOMEM;
    }
    if (json_array_size(t->query) > 0 &&
        json_object_set_new(op, "query", json_incref(t->query)) != 0) {
        return PD_E_NOMEM;
    }
    return PD_OK;
}

/* --- parameters ------------------------------------------------------------------------- */

/* Which styles OpenAPI has where. */
static const struct {
    const char *in;
    const char *style;
} styles[] = {{"path", "simple"},      {"path", "label"},           {"path", "matrix"},
              {"query", "form"},       {"query", "spaceDelimited"}, {"query", "pipeDelimited"},
              {"query", "deepObject"}, {"header", "simple"},        {"cookie", "form"}};

static const char *judge_style(const char *in, const char *style)
{
    size_t i;

    for (i = 0; style != NULL && i < COUNT(styles); i++) {
        if (strcmp(styles[i].in, in) == 0 && strcmp(styles[i].style, style) == 0) {
            return NULL;
        }
    }
    return style == NULL
               ? NULL
               : "has a style that its place does not have (path: simple, label, matrix; query: "
                 "form, spaceDelimited, pipeDelimited, deepObject; header: simple; cookie: form)";
}

static int schema_is_string(const json_t *parameter)
{
    const char *type = mcp_json_str(json_object_get(parameter, "schema"), "type");

    return type != NULL && strcmp(type, "string") == 0;
}

static placeholder_t *find_place(const template_t *t, const char *name)
{
    placeholder_t *places = (placeholder_t *)(void *)t->places->elts;
    int i;

    for (i = 0; i < t->places->nelts; i++) {
        if (strcmp(places[i].name, name) == 0) {
            return &places[i];
        }
    }
    return NULL;
}

static const char *judge_path_parameter(const pd_check_t *check, const template_t *t,
                                        json_t *parameter, const json_t *op)
{
    placeholder_t *place = find_place(t, mcp_json_str(parameter, "name"));

    (void)check;
    (void)op;
    if (place == NULL) {
        return "is not in the path; add its {name} there or remove it";
    }
    if (json_is_false(json_object_get(parameter, "required"))) {
        return "is in the path and so always required";
    }
    if (mcp_json_bool(parameter, "multi_segment")) {
        if (!place->is_segment) {
            return "is multi_segment and must stand alone between slashes";
        }
        if (!schema_is_string(parameter) && json_object_get(parameter, "fixed") == NULL) {
            return "is multi_segment and needs a schema of type \"string\"";
        }
    }
    place->parameter = parameter;
    return json_object_set_new(parameter, "required", json_true()) == 0 ? NULL : "can't be stored";
}

static const char *judge_query_parameter(const pd_check_t *check, const template_t *t,
                                         json_t *parameter, const json_t *op)
{
    const char *name = mcp_json_str(parameter, "name");
    const char *in = mcp_json_str(check->auth, "in");
    const json_t *literal;
    size_t i;

    (void)op;
    json_array_foreach(t->query, i, literal)
    {
        if (strcmp(json_string_value(json_array_get(literal, 0)), name) == 0) {
            return "is a literal of the path's query already";
        }
    }
    if (in != NULL && strcmp(in, "query") == 0 &&
        strcmp(mcp_json_str(check->auth, "name"), name) == 0) {
        return "carries the connector's credential; remove it here";
    }
    return NULL;
}

static const char *judge_header_parameter(const pd_check_t *check, const template_t *t,
                                          json_t *parameter, const json_t *op)
{
    const char *name = mcp_json_str(parameter, "name");
    const char *in = mcp_json_str(check->auth, "in");

    (void)t;
    if (!pd_check_is_token(name)) {
        return "is no name of a header";
    }
    if (pd_check_is_reserved_header(name)) {
        return "is a header of the transport, the protocol or the credential; remove it";
    }
    if (strcasecmp(name, "Content-Type") == 0 && json_object_get(op, "body") != NULL) {
        return "repeats the body's content_type; remove it";
    }
    if (in != NULL && strcmp(in, "header") == 0 &&
        strcasecmp(mcp_json_str(check->auth, "name"), name) == 0) {
        return "carries the connector's credential; remove it here";
    }
    return NULL;
}

static const char *judge_cookie_parameter(const pd_check_t *check, const template_t *t,
                                          json_t *parameter, const json_t *op)
{
    (void)check;
    (void)t;
    (void)op;
    return pd_check_is_token(mcp_json_str(parameter, "name")) ? NULL : "is no name of a cookie";
}

static const struct {
    const char *in;
    const char *(*judge)(const pd_check_t *check, const template_t *t, json_t *parameter,
                         const json_t *op);
} places[] = {{"path", judge_path_parameter},
              {"query", judge_query_parameter},
              {"header", judge_header_parameter},
              {"cookie", judge_cookie_parameter}};

/* What holds wherever a parameter is. */
static const char *judge_common(const json_t *parameter, const char *in)
{
    const char *style = mcp_json_str(parameter, "style");
    const char *why = judge_style(in, style);

    if (why != NULL) {
        return why;
    }
    if (json_object_get(parameter, "schema") == NULL &&
        json_object_get(parameter, "fixed") == NULL) {
        return "needs a schema (or a fixed value)";
    }
    if (json_object_get(parameter, "multi_segment") != NULL &&
        (strcmp(in, "path") != 0 || (style != NULL && strcmp(style, "simple") != 0))) {
        return "is multi_segment, which only path parameters of style simple can be";
    }
    if (json_object_get(parameter, "format") != NULL) {
        if (strcmp(in, "header") != 0 && strcmp(in, "query") != 0) {
            return "has format url, which only headers and query parameters can have";
        }
        if (!schema_is_string(parameter)) {
            return "has format url and needs a schema of type \"string\"";
        }
    }
    return NULL;
}

/* A fixed value is sent as it is, so it must be fit to be sent; with a schema, it must match. */
static const char *judge_fixed(const pd_check_t *check, const json_t *parameter)
{
    const json_t *value = json_object_get(parameter, "fixed");
    const json_t *schema_json = json_object_get(parameter, "schema");
    mcp_schema_error_t error;
    mcp_schema_t *schema;
    size_t bytes;

    if (value == NULL) {
        return NULL;
    }
    if (json_is_null(value)) {
        return "has a fixed value of null; remove it to make the parameter an argument";
    }
    bytes = json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    if (bytes > MAX_FIXED_BYTES) {
        return "has a fixed value longer than 2048 bytes";
    }
    if (json_is_string(value) && pd_check_has_control(json_string_value(value))) {
        return "has a fixed value with control characters";
    }
    if (schema_json == NULL) {
        return NULL;
    }
    if (mcp_schema_compile(schema_json, check->round, &schema, &error) != MCP_OK) {
        return "has a schema that can't be taken";
    }
    return mcp_schema_validate(schema, value, &error) == MCP_OK
               ? NULL
               : "has a fixed value that its schema refuses";
}

/* Names of headers are equal in any case. */
static const char *key_of(apr_pool_t *pool, const char *in, const char *name)
{
    char *key = apr_pstrcat(pool, in, " ", name, NULL);
    char *c;

    for (c = key; strcmp(in, "header") == 0 && *c != '\0'; c++) {
        if (*c >= 'A' && *c <= 'Z') {
            *c = (char)(*c - 'A' + 'a');
        }
    }
    return key;
}

static pd_status_t check_parameter(const pd_check_t *check, const char *at, const template_t *t,
                                   apr_hash_t *seen, json_t *parameter, const json_t *op)
{
    const char *name = mcp_json_str(parameter, "name");
    const char *in = mcp_json_str(parameter, "in");
    const char *key = key_of(check->round, in, name);
    const char *why = judge_common(parameter, in);
    size_t i;

    for (i = 0; why == NULL && i < COUNT(places); i++) {
        if (strcmp(places[i].in, in) == 0) {
            why = places[i].judge(check, t, parameter, op);
        }
    }
    if (why == NULL) {
        why = judge_fixed(check, parameter);
    }
    if (why == NULL && apr_hash_get(seen, key, APR_HASH_KEY_STRING) != NULL) {
        why = "is there twice; remove one";
    }
    apr_hash_set(seen, key, APR_HASH_KEY_STRING, key);
    return why == NULL ? PD_OK
                       : pd_check_fault(check, at, NULL, "parameter \"%s\" %s",
                                        pd_check_quote(check, name), why);
}

static pd_status_t check_places(const pd_check_t *check, const char *at, const template_t *t)
{
    const placeholder_t *all = (const placeholder_t *)(const void *)t->places->elts;
    int multi = 0;
    int i;

    at = apr_pstrcat(check->round, at, "/path", NULL);
    for (i = 0; i < t->places->nelts; i++) {
        if (all[i].parameter == NULL) {
            return pd_check_fault(check, at, NULL,
                                  "{%s} has no parameter in \"path\"; add it to \"parameters\"",
                                  pd_check_quote(check, all[i].name));
        }
        multi += mcp_json_bool(all[i].parameter, "multi_segment");
    }
    return multi <= 1 ? PD_OK
                      : pd_check_fault(check, at, NULL,
                                       "at most one parameter of a path can be multi_segment");
}

static pd_status_t check_parameters(const pd_check_t *check, const char *at, json_t *op,
                                    const template_t *t)
{
    apr_hash_t *seen = apr_hash_make(check->round);
    json_t *parameter;
    size_t i;

    json_array_foreach(json_object_get(op, "parameters"), i, parameter)
    {
        const char *where = apr_psprintf(check->round, "%s/parameters/%lu", at, (unsigned long)i);
        pd_status_t status = check_parameter(check, where, t, seen, parameter, op);

        if (status != PD_OK) {
            return status;
        }
    }
    return check_places(check, at, t);
}

/* --- all of it ---------------------------------------------------------------------------- */

static pd_status_t check_schema(const pd_check_t *check, const char *at, const json_t *op)
{
    mcp_schema_error_t error = {.path = "", .rule = "", .message = ""};
    mcp_schema_t *compiled;
    json_t *schema;
    mcp_wire_status_t wire;
    size_t bytes;
    pd_status_t status = pd_catalog_input_schema(check, at, op, &schema);

    if (status != PD_OK) {
        return status;
    }
    bytes = json_dumpb(schema, NULL, 0, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (bytes > PD_MAX_SCHEMA_BYTES) {
        json_decref(schema);
        return pd_check_fault(
            check, at, NULL,
            "its arguments' schema has more than %u bytes; shorten descriptions or schemas",
            PD_MAX_SCHEMA_BYTES);
    }
    wire = mcp_schema_compile(schema, check->round, &compiled, &error);
    json_decref(schema);
    if (wire == MCP_OK) {
        return PD_OK;
    }
    return pd_check_fault(check, at, "The place is that in the schema made of all arguments.",
                          "its arguments' schema can't be taken: %s (%s at %s)",
                          pd_check_quote(check, error.message), pd_check_quote(check, error.rule),
                          pd_check_quote(check, error.path));
}

pd_status_t pd_check_operation(pd_check_t *check, json_t *op, size_t index)
{
    const char *at = apr_psprintf(check->round, "/operations/%lu", (unsigned long)index);
    template_t t = {.query = NULL};
    pd_status_t status = check_id(check, at, op);

    if (status == PD_OK) {
        status = check_method(check, at, op);
    }
    if (status == PD_OK) {
        status = set_class(op);
    }
    if (status == PD_OK) {
        status = check_path(check, at, op, &t);
    }
    if (status == PD_OK) {
        status = check_parameters(check, at, op, &t);
    }
    json_decref(t.query);
    if (status == PD_OK) {
        status = pd_check_body(check, at, op);
    }
    if (status == PD_OK) {
        status = pd_check_arguments(check, at, op);
    }
    if (status == PD_OK) {
        status = check_schema(check, at, op);
    }
    return status;
}
