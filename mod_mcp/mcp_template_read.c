/* Reading of an operation's definition, the plan's base and credential, and the values for each
 * parameter. What is wrong here is the catalog's fault (internal) or a value that no style could
 * carry (invalid_arguments). */
#include "mcp_template_private.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

int mcp_template_is_reserved(const char *name)
{
    static const char *const reserved[] = {"Host",           "Content-Length", "Transfer-Encoding",
                                           "Connection",     "Keep-Alive",     "TE",
                                           "Trailer",        "Upgrade",        "Expect",
                                           "HTTP2-Settings", "Cookie",         "Authorization",
                                           "Cookie2"};

    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); ++i) {
        if (strcasecmp(name, reserved[i]) == 0) {
            return 1;
        }
    }
    return strncasecmp(name, "Proxy-", 6) == 0;
}

int mcp_template_holds_control(const json_t *value, int is_any, size_t left)
{
    json_t *object = mcp_template_iterable(value);

    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        size_t bytes = json_string_length(value);

        return is_any ? mcp_encode_has_control(text, bytes) : memchr(text, '\0', bytes) != NULL;
    }
    if (!json_is_array(value) && !json_is_object(value)) {
        return 0;
    }
    if (left == 0) {
        return 1;
    }
    for (size_t i = 0; i < json_array_size(value); ++i) {
        if (mcp_template_holds_control(json_array_get(value, i), is_any, left - 1)) {
            return 1;
        }
    }
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);

        if ((is_any && mcp_encode_has_control(key, strlen(key))) ||
            mcp_template_holds_control(json_object_iter_value(at), is_any, left - 1)) {
            return 1;
        }
    }
    return 0;
}

static int place_of(const char *text, mcp_template_in_t *ret)
{
    static const struct {
        const char *text;
        mcp_template_in_t in;
    } places[] = {{"path", MCP_TEMPLATE_PATH},
                  {"query", MCP_TEMPLATE_QUERY},
                  {"header", MCP_TEMPLATE_HEADER_LINE},
                  {"cookie", MCP_TEMPLATE_COOKIE}};

    for (size_t i = 0; text != NULL && i < sizeof(places) / sizeof(places[0]); ++i) {
        if (strcmp(text, places[i].text) == 0) {
            *ret = places[i].in;
            return 0;
        }
    }
    return -1;
}

static int read_param(const mcp_template_t *t, const json_t *row, mcp_template_param_t *ret)
{
    const json_t *fixed = json_object_get(row, "fixed");
    const json_t *explode = json_object_get(row, "explode");
    const char *format = mcp_json_str(row, "format");

    memset(ret, 0, sizeof(*ret));
    ret->name = mcp_json_str(row, "name");
    ret->arg = mcp_json_str(row, "arg");
    if (ret->name == NULL || ret->name[0] == '\0' ||
        place_of(mcp_json_str(row, "in"), &ret->in) != 0 || (fixed == NULL && ret->arg == NULL)) {
        return -1;
    }
    ret->style = mcp_template_style(mcp_json_str(row, "style"), ret->in);
    if (ret->style == NULL) {
        return -1;
    }
    ret->explode = json_is_boolean(explode) ? json_is_true(explode) : ret->style->explodes;
    ret->is_required = ret->in == MCP_TEMPLATE_PATH || mcp_json_bool(row, "required");
    ret->is_fixed = fixed != NULL;
    ret->is_multi = mcp_json_bool(row, "multi_segment");
    ret->is_url = format != NULL && strcmp(format, "url") == 0;
    ret->value = fixed != NULL ? fixed : json_object_get(t->args, ret->arg);
    ret->arg = ret->arg != NULL ? ret->arg : ret->name;
    return 0;
}

static apr_status_t check_value(const mcp_template_t *t, const mcp_template_param_t *param,
                                mcp_err_t *err)
{
    int is_line = param->in == MCP_TEMPLATE_HEADER_LINE || param->in == MCP_TEMPLATE_COOKIE;

    if (param->value == NULL || json_is_null(param->value)) {
        return param->is_required ? mcp_template_invalid(t, err, param->arg, "is required")
                                  : APR_SUCCESS;
    }
    if (!mcp_template_holds_control(param->value, is_line, MCP_MAX_DEPTH)) {
        return APR_SUCCESS;
    }
    return param->in == MCP_TEMPLATE_PATH
               ? mcp_template_restricted(t, err)
               : mcp_template_invalid(t, err, param->arg, "holds a control character");
}

static apr_status_t read_params(mcp_template_t *t, mcp_err_t *err)
{
    const json_t *list = json_object_get(t->operation, "parameters");
    size_t count = json_array_size(list);

    if ((list != NULL && !json_is_array(list)) || count > MCP_TEMPLATE_PARAMS) {
        return mcp_template_broken(t, err);
    }
    t->params = apr_pcalloc(t->pool, (count + 1) * sizeof(*t->params));
    for (size_t i = 0; i < count; ++i) {
        apr_status_t status;

        if (read_param(t, json_array_get(list, i), &t->params[i]) != 0) {
            return mcp_template_broken(t, err);
        }
        status = check_value(t, &t->params[i], err);
        if (status != APR_SUCCESS) {
            return status;
        }
    }
    t->count = count;
    return APR_SUCCESS;
}

static apr_status_t read_auth(mcp_template_t *t, const json_t *auth, mcp_err_t *err)
{
    t->auth_type = auth != NULL ? mcp_json_str(auth, "type") : "none";
    if (t->auth_type != NULL && strcmp(t->auth_type, "none") == 0) {
        return APR_SUCCESS;
    }
    t->auth_name = mcp_json_str(auth, "name");
    t->auth_value = mcp_json_str(auth, "value");
    if (t->auth_type == NULL || t->auth_name == NULL || t->auth_value == NULL ||
        t->auth_name[0] == '\0') {
        return mcp_template_broken(t, err);
    }
    if (strcmp(t->auth_type, "query") == 0) {
        return APR_SUCCESS;
    }
    if (strcmp(t->auth_type, "header") != 0 || !mcp_encode_is_token(t->auth_name)) {
        return mcp_template_broken(t, err);
    }
    if (strcasecmp(t->auth_name, "Cookie") == 0) {
        t->auth_cookie = apr_pstrmemdup(t->pool, t->auth_value, strcspn(t->auth_value, "="));
    } else if (strcasecmp(t->auth_name, "Authorization") != 0 &&
               mcp_template_is_reserved(t->auth_name)) {
        return mcp_template_broken(t, err);
    }
    if (mcp_encode_has_control(t->auth_value, strlen(t->auth_value)) ||
        strlen(t->auth_value) > MCP_TEMPLATE_HEADER - 256) {
        return mcp_err_set(err, t->pool, MCP_FAIL_TOOL, MCP_CODE_NEEDS_REAUTH,
                           "Connect the account again.",
                           "The connection's credential can't be sent.");
    }
    return APR_SUCCESS;
}

static apr_status_t read_target(mcp_template_t *t, const char *base, mcp_err_t *err)
{
    const char *method = mcp_json_str(t->operation, "method");
    mcp_encode_url_t parts;
    size_t bytes;
    char *upper;

    if (base == NULL || mcp_encode_split(base, &parts) != 0 || parts.query != NULL ||
        method == NULL || !mcp_encode_is_token(method) || strlen(method) > 32) {
        return mcp_template_broken(t, err);
    }
    bytes = strlen(base);
    while (bytes > (size_t)(parts.path - base) && base[bytes - 1] == '/') {
        --bytes;
    }
    t->base = apr_pstrmemdup(t->pool, base, bytes);
    upper = apr_pstrdup(t->pool, method);
    for (char *at = upper; *at != '\0'; ++at) {
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    }
    t->method = upper;
    if (strcmp(upper, "CONNECT") == 0 || strcmp(upper, "TRACE") == 0) {
        return mcp_template_broken(t, err);
    }
    return APR_SUCCESS;
}

/* Every path parameter has its place: one that had none could not be sent, and the request would
 * mean another thing. */
static int all_placed(const mcp_template_t *t, const char *path)
{
    for (size_t i = 0; i < t->count; ++i) {
        const char *name = t->params[i].name;

        if (t->params[i].in == MCP_TEMPLATE_PATH &&
            strstr(path, apr_psprintf(t->pool, "{%s}", name)) == NULL &&
            strstr(path, apr_psprintf(t->pool, "{+%s}", name)) == NULL) {
            return 0;
        }
    }
    return 1;
}

apr_status_t mcp_template_read(mcp_template_t *t, const char *base, const json_t *auth,
                               mcp_err_t *err)
{
    const char *path = mcp_json_str(t->operation, "path");
    apr_status_t status = read_target(t, base, err);

    if (status == APR_SUCCESS) {
        status = read_auth(t, auth, err);
    }
    if (status == APR_SUCCESS) {
        status = read_params(t, err);
    }
    if (status == APR_SUCCESS &&
        (path == NULL || (path[0] != '/' && path[0] != '\0') || !all_placed(t, path))) {
        status = mcp_template_broken(t, err);
    }
    return status;
}
