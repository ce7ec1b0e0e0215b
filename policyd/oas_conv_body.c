/* Bodies: see oas_conv.h. Of several media types the one that a model fills most easily. */
#include "oas_conv.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

#define MAX_ARGUMENTS 250

/* How well a media type can be built; 0: not at all. */
static int rank_of(const char *type)
{
    size_t bytes = strcspn(type, "; \t");
    const char *plus = memchr(type, '+', bytes);

    if (bytes < 3 || strlen(type) > 128 || strpbrk(type, "\r\n") != NULL) {
        return 0;
    }
    if (memchr(type, '/', bytes) == NULL) {
        return strstr(type, "json") != NULL ? 1 : 0; /* a slip of the pen */
    }
    if (strncasecmp(type, "application/json", 16) == 0 && bytes == 16) {
        return 9;
    }
    if ((plus != NULL && strncasecmp(plus, "+json", 5) == 0) || strncasecmp(type, "text/json", 9) == 0) {
        return 8;
    }
    if (strncasecmp(type, "application/x-www-form-urlencoded", 33) == 0) {
        return 7;
    }
    if (strncasecmp(type, "multipart/form-data", 19) == 0) {
        return 6;
    }
    if (strncmp(type, "*/*", 3) == 0 || strncasecmp(type, "application/*", 13) == 0) {
        return 5;
    }
    if (strncasecmp(type, "multipart/", 10) == 0) {
        return 0;
    }
    return strncasecmp(type, "text/", 5) == 0 ? 4 : 3;
}

static int is_form(const char *type)
{
    return rank_of(type) == 7 || rank_of(type) == 6;
}

static int is_text(const char *type)
{
    return rank_of(type) == 4 || rank_of(type) == 3;
}

/* The schema as the format of the body wants it; stolen. */
static json_t *fit(json_t *schema, const char *type, size_t count)
{
    const char *said = mcp_json_str(schema, "type");

    if (is_text(type)) {
        json_t *text = json_pack("{s:s}", "type", "string");
        json_t *description = json_object_get(schema, "description");

        if (description != NULL) {
            (void)json_object_set_new(text, "description", json_incref(description));
        }
        json_decref(schema);
        return text;
    }
    if (is_form(type) && (said == NULL || strcmp(said, "object") != 0)) {
        json_decref(schema);
        return json_pack("{s:s,s:b}", "type", "object", "additionalProperties", 1);
    }
    if (json_object_size(json_object_get(schema, "properties")) + count > MAX_ARGUMENTS && json_object_get(schema, "additionalProperties") == NULL) {
        (void)json_object_set_new(schema, "additionalProperties", json_true()); /* one argument, not hundreds */
    }
    return schema;
}

static json_t *make(oas_conv_t *conv, const char *type, oas_at_t schema, int is_required, const char *text, size_t count)
{
    oas_schema_options_t options = {conv->version, 0, 0};
    json_t *made;
    json_t *body;

    options.max_bytes = conv->options->max_schema != 0 ? conv->options->max_schema : 24576;
    options.max_text = conv->options->max_parameter != 0 ? conv->options->max_parameter : 300;
    made = fit(oas_schema(conv->doc, schema, &options, &conv->counts, conv->pool), type, count);
    body = json_pack("{s:s,s:o}", "content_type", type, "schema", made);
    if (is_required) {
        (void)json_object_set_new(body, "required", json_true());
    }
    if (text != NULL && text[0] != '\0') {
        (void)json_object_set_new(body, "description", json_string(text));
    }
    return body;
}

/* --- 3.x --------------------------------------------------------------------------------------- */

static json_t *of_content(oas_conv_t *conv, const oas_found_t *found, oas_at_t body, size_t count)
{
    oas_at_t content = oas_member(conv->doc, body, "content");
    const char *best = NULL;
    const char *others = "";
    oas_at_t media;
    const char *name;
    json_t *value;

    json_object_foreach(oas_iterable(content.value), name, value)
    {
        if (best == NULL || rank_of(name) > rank_of(best)) {
            best = name;
        }
    }
    json_object_foreach(oas_iterable(content.value), name, value)
    {
        if (name != best) {
            others = apr_pstrcat(conv->pool, others, others[0] != '\0' ? ", " : "", name, (char *)NULL);
        }
    }
    if (best == NULL || rank_of(best) == 0) { /* nothing, or multipart of another kind */
        oas_note(conv, conv->left_out, oas_where(conv, found), "its body", "has no media type that can be built");
        return NULL;
    }
    media = oas_member(conv->doc, content, best);
    best = rank_of(best) == 1 ? "application/json" : best;
    if (others[0] != '\0') {
        oas_note(conv, conv->changed, oas_where(conv, found), apr_pstrcat(conv->pool, "its body is sent as ", best, (char *)NULL),
                 apr_psprintf(conv->pool, "not as %.200s", others));
    }
    media.value = json_object_get(media.value, "schema");
    return make(conv, best, media, json_is_true(json_object_get(body.value, "required")),
                oas_describe(conv, body.value, "description", 300), count);
}

/* --- 2.0 ----------------------------------------------------------------------------------------- */

/* What an operation takes, or the document. */
static const json_t *consumes(const oas_conv_t *conv, const oas_found_t *found)
{
    const json_t *own = json_object_get(found->operation.value, "consumes");

    return json_array_size(own) > 0 ? own : json_object_get(oas_doc_root(conv->doc).value, "consumes");
}

static const char *best_of(const json_t *types, const char *otherwise, int wants_form)
{
    const char *best = NULL;
    json_t *type;
    size_t i;

    json_array_foreach(types, i, type)
    {
        const char *one = json_string_value(type);

        if (one != NULL && is_form(one) == wants_form && rank_of(one) > 0 && (best == NULL || rank_of(one) > rank_of(best))) {
            best = one;
        }
    }
    return best != NULL ? best : otherwise;
}

/* Parameters of a form as an object. */
static json_t *of_form(oas_conv_t *conv, const oas_found_t *found, const apr_array_header_t *form, size_t count)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    int has_file = 0;
    json_t *schema;
    int i;

    for (i = 0; i < form->nelts; i++) {
        oas_at_t at = APR_ARRAY_IDX(form, i, oas_at_t);
        const char *name = mcp_json_str(at.value, "name");
        const char *type = mcp_json_str(at.value, "type");
        const char *text = oas_describe(conv, at.value, "description", 300);
        json_t *one = oas_param_schema(conv, at, 6144);

        has_file |= type != NULL && strcmp(type, "file") == 0;
        if (text != NULL && text[0] != '\0') {
            (void)json_object_set_new(one, "description", json_string(text));
        }
        (void)json_object_set_new(properties, name, one);
        if (json_is_true(json_object_get(at.value, "required"))) {
            (void)json_array_append_new(required, json_string(name));
        }
    }
    schema = json_pack("{s:s,s:o,s:o}", "type", "object", "properties", properties, "required", required);
    if (json_array_size(required) == 0) {
        (void)json_object_del(schema, "required");
    }
    return json_pack("{s:s,s:o}", "content_type",
                     best_of(consumes(conv, found), has_file ? "multipart/form-data" : "application/x-www-form-urlencoded", 1),
                     "schema", fit(schema, "application/x-www-form-urlencoded", count));
}

json_t *oas_body(oas_conv_t *conv, const oas_found_t *found, oas_at_t body, const apr_array_header_t *form, size_t count)
{
    oas_at_t request = oas_member(conv->doc, found->operation, "requestBody");
    int has_body = request.value != NULL || body.value != NULL || form->nelts > 0;

    if (!has_body) {
        return NULL;
    }
    if (strcmp(found->method, "GET") == 0 || strcmp(found->method, "HEAD") == 0) {
        oas_note(conv, conv->left_out, oas_where(conv, found), "its body", "GET and HEAD have none");
        return NULL;
    }
    if (conv->version != 20) {
        return request.value != NULL ? of_content(conv, found, request, count) : NULL;
    }
    if (body.value != NULL) {
        oas_at_t schema = {json_object_get(body.value, "schema"), body.file};

        return make(conv, best_of(consumes(conv, found), "application/json", 0), schema,
                    json_is_true(json_object_get(body.value, "required")), oas_describe(conv, body.value, "description", 300), count);
    }
    return of_form(conv, found, form, count);
}
