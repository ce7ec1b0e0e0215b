/* Parameters: see oas_conv.h. Those of the path item and of the operation are one list, in which the nearer of two has its way. */
#include "oas_conv.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

#define MAX_PARAMS 250
#define PARAM_BYTES 6144 /* of a parameter's schema */

typedef struct param {
    const char *name;
    const char *in;
    oas_at_t at;
} param_t;

/* --- gathering ------------------------------------------------------------------------------ */

static void add(apr_array_header_t *list, const param_t *one)
{
    int i;

    for (i = 0; i < list->nelts; i++) {
        param_t *there = &APR_ARRAY_IDX(list, i, param_t);
        int is_same = strcmp(there->in, "header") == 0 ? strcasecmp(there->name, one->name) == 0 : strcmp(there->name, one->name) == 0;

        if (strcmp(there->in, one->in) == 0 && is_same) {
            *there = *one; /* the nearer, or the later, one */
            return;
        }
    }
    APR_ARRAY_PUSH(list, param_t) = *one;
}

static void gather(oas_conv_t *conv, const oas_found_t *found, oas_at_t holder, apr_array_header_t *list)
{
    oas_at_t all = oas_member(conv->doc, holder, "parameters");
    json_t *value;
    size_t i;

    json_array_foreach(oas_iterable(all.value), i, value)
    {
        param_t one = {NULL, NULL, {value, all.file}};
        char why[200] = "";

        if (oas_resolve(conv->doc, one.at, &one.at, NULL, why, sizeof why) != OAS_OK) {
            oas_note(conv, conv->left_out, oas_where(conv, found), apr_psprintf(conv->pool, "parameter %d", (int)i), why);
            conv->counts.dangling++;
            continue;
        }
        one.name = mcp_json_str(one.at.value, "name");
        one.in = mcp_json_str(one.at.value, "in");
        if (one.name != NULL && one.in != NULL && one.name[0] != '\0') {
            add(list, &one);
        } else if (one.in != NULL && strcmp(one.in, "body") == 0) {
            one.name = "body";
            add(list, &one);
        }
    }
}

/* --- schemas ----------------------------------------------------------------------------------- */

json_t *oas_param_schema(oas_conv_t *conv, oas_at_t at, size_t max_bytes)
{
    oas_schema_options_t options = {conv->version, max_bytes, 0};
    oas_at_t schema = {json_object_get(at.value, "schema"), at.file};
    json_t *made;

    options.max_text = conv->options->max_parameter != 0 ? conv->options->max_parameter : 300;
    if (schema.value == NULL) { /* in 2.0 the parameter is the schema */
        schema = conv->version == 20 ? at : (oas_at_t){NULL, at.file};
    }
    made = oas_schema(conv->doc, schema, &options, &conv->counts, conv->pool);
    if (made != NULL && schema.value == at.value) {
        (void)json_object_del(made, "description"); /* the parameter's own: it stands beside */
    }
    return made;
}

/* Parameters that are documents of their own go as text. */
static json_t *text_schema(void)
{
    return json_pack("{s:s}", "type", "string");
}

/* --- forms ----------------------------------------------------------------------------------------- */

static int has_style(const char *in, const char *style)
{
    static const char *const rows[][2] = {{"path", "simple"},         {"path", "label"},          {"path", "matrix"},
                                          {"query", "form"},          {"query", "spaceDelimited"}, {"query", "pipeDelimited"},
                                          {"query", "deepObject"},    {"header", "simple"},       {"cookie", "form"}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i][0], in) == 0 && strcmp(rows[i][1], style) == 0) {
            return 1;
        }
    }
    return 0;
}

static void put_style(json_t *to, const char *style, int explode)
{
    if (style != NULL) {
        (void)json_object_set_new(to, "style", json_string(style));
    }
    (void)json_object_set_new(to, "explode", json_boolean(explode));
}

/* collectionFormat of 2.0. */
static void put_collection(oas_conv_t *conv, const oas_found_t *found, json_t *to, const param_t *param)
{
    const char *format = mcp_json_str(param->at.value, "collectionFormat");
    const char *type = mcp_json_str(param->at.value, "type");
    int is_query = strcmp(param->in, "query") == 0;

    if (type == NULL || strcmp(type, "array") != 0) {
        return;
    }
    if (format == NULL || strcmp(format, "csv") == 0) {
        put_style(to, is_query ? "form" : NULL, 0);
    } else if (strcmp(format, "multi") == 0 && is_query) {
        put_style(to, "form", 1);
    } else if (strcmp(format, "ssv") == 0 && is_query) {
        put_style(to, "spaceDelimited", 0);
    } else if (strcmp(format, "pipes") == 0 && is_query) {
        put_style(to, "pipeDelimited", 0);
    } else {
        put_style(to, is_query ? "form" : NULL, 0);
        oas_note(conv, conv->changed, oas_where(conv, found), apr_pstrcat(conv->pool, "parameter ", param->name, (char *)NULL),
                 "its collectionFormat can't be sent there; commas are");
    }
}

static void put_form(oas_conv_t *conv, const oas_found_t *found, json_t *to, const param_t *param)
{
    const char *style = mcp_json_str(param->at.value, "style");
    const json_t *explode = json_object_get(param->at.value, "explode");

    if (conv->version == 20) {
        put_collection(conv, found, to, param);
        return;
    }
    if (style != NULL && has_style(param->in, style)) {
        (void)json_object_set_new(to, "style", json_string(style));
    } else if (style != NULL) {
        oas_note(conv, conv->changed, oas_where(conv, found), apr_pstrcat(conv->pool, "parameter ", param->name, (char *)NULL),
                 "its style is not one of its place; the usual one is used");
    }
    if (json_is_boolean(explode)) {
        (void)json_object_set_new(to, "explode", json_incref(oas_iterable(explode)));
    }
}

/* --- one --------------------------------------------------------------------------------------------- */

/* 1 when the path's own query has a name. */
static int is_literal(const char *path, const char *name)
{
    const char *at = strchr(path, '?');
    size_t bytes = strlen(name);

    while (at != NULL) {
        at++;
        if (strncmp(at, name, bytes) == 0 && (at[bytes] == '=' || at[bytes] == '&' || at[bytes] == '\0')) {
            return 1;
        }
        at = strchr(at, '&');
    }
    return 0;
}

/* Why a parameter is not taken, or NULL. */
static const char *why_not(const oas_conv_t *conv, const param_t *param, const char *path)
{
    static const char *const reserved[] = {"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer",
                                           "Upgrade", "HTTP2-Settings", "Expect", "Authorization", "Cookie", "Cookie2",
                                           "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override", "Accept", "Content-Type", "User-Agent"};
    const oas_scheme_t *scheme = &conv->scheme;
    int is_header = strcmp(param->in, "header") == 0;
    size_t i;

    if (strlen(param->name) > 128 || strpbrk(param->name, "\r\n\t") != NULL) {
        return "its name is too long, or holds control characters";
    }
    for (i = 0; is_header && i < sizeof reserved / sizeof reserved[0]; i++) {
        if (strcasecmp(reserved[i], param->name) == 0) {
            return "is a header of the transport, the protocol or the credential";
        }
    }
    if (is_header && (strncasecmp(param->name, "Proxy-", 6) == 0 || strncasecmp(param->name, "Mcp-", 4) == 0)) {
        return "is a header of the transport or the protocol";
    }
    if ((is_header || strcmp(param->in, "cookie") == 0) && strspn(param->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!#$%&'*+^`|~") != strlen(param->name)) {
        return "is no name of a header or cookie";
    }
    if (scheme->in != NULL && strcmp(scheme->in, param->in) == 0 &&
        (is_header ? strcasecmp(scheme->key, param->name) == 0 : strcmp(scheme->key, param->name) == 0)) {
        return "carries the connector's credential";
    }
    if (strcmp(param->in, "query") == 0 && is_literal(path, param->name)) {
        return "stands in the path with its value";
    }
    if (strcmp(param->in, "path") == 0 && strstr(path, apr_pstrcat(conv->pool, "{", param->name, "}", (char *)NULL)) == NULL) {
        return "is not in the path";
    }
    return NULL;
}

static json_t *make(oas_conv_t *conv, const oas_found_t *found, const param_t *param)
{
    const json_t *content = json_object_get(param->at.value, "content");
    const char *text = oas_describe(conv, param->at.value, "description",
                                    conv->options->max_parameter != 0 ? conv->options->max_parameter : 300);
    json_t *made = json_pack("{s:s,s:s}", "name", param->name, "in", param->in);

    if (strcmp(param->in, "path") == 0 || json_is_true(json_object_get(param->at.value, "required"))) {
        (void)json_object_set_new(made, "required", json_true());
    }
    if (json_object_size(content) > 0) {
        const char *type = json_object_iter_key(json_object_iter(oas_iterable(content)));

        (void)json_object_set_new(made, "schema", text_schema());
        text = apr_pstrcat(conv->pool, text != NULL ? text : "", text != NULL ? " " : "", "Text in ", type, ".", (char *)NULL);
    } else {
        put_form(conv, found, made, param);
        (void)json_object_set_new(made, "schema", oas_param_schema(conv, param->at, PARAM_BYTES));
    }
    if (text != NULL && text[0] != '\0') {
        (void)json_object_set_new(made, "description", json_string(text));
    }
    return made;
}

/* Adds what the template has and the document forgot. */
static void add_missing(oas_conv_t *conv, const oas_found_t *found, const char *path, json_t *params)
{
    const char *open = strchr(path, '{');

    while (open != NULL) {
        const char *close = strchr(open, '}');
        const char *name;
        json_t *one;
        size_t i;
        int is_there = 0;

        if (close == NULL) {
            return;
        }
        name = apr_pstrmemdup(conv->pool, open + 1, (apr_size_t)(close - open - 1));
        json_array_foreach(params, i, one)
        {
            is_there |= strcmp(mcp_json_str(one, "in"), "path") == 0 && strcmp(mcp_json_str(one, "name"), name) == 0;
        }
        if (!is_there) {
            (void)json_array_append_new(params, json_pack("{s:s,s:s,s:b,s:{s:s}}", "name", name, "in", "path", "required", 1,
                                                          "schema", "type", "string"));
            oas_note(conv, conv->changed, oas_where(conv, found), apr_pstrcat(conv->pool, "parameter ", name, (char *)NULL),
                     "is in the path and nowhere described; it is text");
        }
        open = strchr(close, '{');
    }
}

json_t *oas_params(oas_conv_t *conv, const oas_found_t *found, const char *path, oas_at_t *ret_body,
                   apr_array_header_t *ret_form)
{
    apr_array_header_t *list = apr_array_make(conv->pool, 8, sizeof(param_t));
    json_t *params = json_array();
    int i;

    gather(conv, found, found->item, list);
    gather(conv, found, found->operation, list);
    *ret_body = (oas_at_t){NULL, 0};
    for (i = 0; i < list->nelts; i++) {
        const param_t *param = &APR_ARRAY_IDX(list, i, param_t);
        const char *why;

        if (strcmp(param->in, "body") == 0) {
            *ret_body = param->at;
        } else if (strcasecmp(param->in, "formData") == 0) {
            APR_ARRAY_PUSH(ret_form, oas_at_t) = param->at;
        } else if (strcmp(param->in, "path") == 0 || strcmp(param->in, "query") == 0 || strcmp(param->in, "header") == 0 ||
                   strcmp(param->in, "cookie") == 0) {
            why = json_array_size(params) >= MAX_PARAMS ? "there are too many" : why_not(conv, param, path);
            if (why == NULL) {
                (void)json_array_append_new(params, make(conv, found, param));
            } else {
                oas_note(conv, conv->left_out, oas_where(conv, found),
                         apr_psprintf(conv->pool, "parameter %.128s in %s", param->name, param->in), why);
            }
        } else {
            oas_note(conv, conv->left_out, oas_where(conv, found), apr_psprintf(conv->pool, "parameter %.128s", param->name),
                     "is in no place that we know");
        }
    }
    add_missing(conv, found, path, params);
    return params;
}
