/* From an operation's definition and merged arguments to the request that goes out. Every value
 * that comes to stand in the path is percent-encoded whole, so it can't grow into another segment,
 * a query or a fragment; the guard (mcp_urlguard.c) judges the result once more without knowing how
 * it was made. */
#include "mcp_template.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "mcp_template_private.h"

#define LITERAL_KEEP                                                                               \
    "!$&'()*+,;=:@/%" /* what a path's literal text keeps; '%' only before two hex digits */
#define QUERY_KEEP "!$&'()*+,;=:@/?%"

/* The head of a request that takes shape. */
typedef struct draft {
    mcp_encode_buf_t query;
    mcp_encode_buf_t cookie;
    apr_array_header_t *headers;
    apr_array_header_t *extra_urls;
} draft_t;

/* May be sent again when nothing was answered. PUT and DELETE are idempotent by RFC 9110, yet a
 * second DELETE answers differently and a second PUT may overwrite what came between: only what
 * changes nothing is safe. */
static int is_safe_to_resend(const char *method)
{
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT"};

    for (size_t i = 0; i < sizeof(safe) / sizeof(safe[0]); ++i) {
        if (strcmp(method, safe[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* --- URL-valued parameters -------------------------------- */

static apr_status_t drop_json(void *data)
{
    json_decref(data);
    return APR_SUCCESS;
}

/* The rest of an absolute URL behind the base: encoded by whoever wrote it, so each segment is
 * decoded first. */
static apr_status_t put_encoded_segments(const mcp_template_t *t, const char *arg, const char *rest,
                                         mcp_encode_buf_t *buf, mcp_err_t *err)
{
    if (strpbrk(rest, "?#") != NULL) {
        return mcp_template_restricted(t, err);
    }
    if (rest[0] == '\0' || strcmp(rest, "/") == 0) {
        mcp_encode_text(buf, "/");
        return APR_SUCCESS;
    }
    for (const char *at = rest; *at == '/'; at += 1 + strcspn(at + 1, "/")) {
        size_t bytes = strcspn(at + 1, "/");
        char *segment = apr_pstrmemdup(t->pool, at + 1, bytes);
        size_t decoded = mcp_encode_decode(segment, bytes, segment);
        int is_end = at[1] == '\0';

        if (memchr(segment, '\0', decoded) != NULL) {
            return mcp_template_invalid(t, err, arg, "holds a control character");
        }
        if (mcp_encode_is_dots(segment, decoded) || (decoded == 0 && !is_end)) {
            return mcp_template_restricted(t, err);
        }
        mcp_encode_text(buf, "/");
        mcp_encode_part(buf, segment, decoded, "");
    }
    return APR_SUCCESS;
}

/* A path below the connection's base, or an absolute URL that starts with the base, as an absolute
 * URL. */
static apr_status_t absolute_url(const mcp_template_t *t, const char *arg, const json_t *value,
                                 const char **ret, mcp_err_t *err)
{
    const char *text = json_string_value(value);
    size_t base_bytes = strlen(t->base);
    mcp_encode_buf_t buf;
    apr_status_t status;

    if (text == NULL || json_string_length(value) == 0 || mcp_template_holds_control(value, 0, 0)) {
        return mcp_template_invalid(t, err, arg, "must be a path below the connection's base URL");
    }
    mcp_encode_start(&buf, t->pool, MCP_URL_BYTES);
    mcp_encode_text(&buf, t->base);
    if (strstr(text, "://") != NULL) {
        const char *rest = text + base_bytes;

        if (strncmp(text, t->base, base_bytes) != 0 || (rest[0] != '\0' && rest[0] != '/')) {
            return mcp_template_restricted(t, err);
        }
        status = put_encoded_segments(t, arg, rest, &buf, err);
    } else {
        mcp_encode_text(&buf, "/");
        status = strcmp(text, "/") == 0 ? APR_SUCCESS
                                        : mcp_template_put_segments(t, arg, text, &buf, err);
    }
    if (status != APR_SUCCESS) {
        return status;
    }
    *ret = mcp_encode_finish(&buf);
    return *ret != NULL ? APR_SUCCESS : mcp_template_invalid(t, err, arg, "is too long");
}

/* Replaces the value of a URL parameter (a string, or a list of them) by absolute URLs, which the
 * guard will see. */
static apr_status_t expand_url(const mcp_template_t *t, mcp_template_param_t *param,
                               apr_array_header_t *extra_urls, mcp_err_t *err)
{
    int is_list = json_is_array(param->value);
    size_t count = is_list ? json_array_size(param->value) : 1;
    json_t *list = json_array();

    if (list == NULL) {
        return mcp_template_broken(t, err);
    }
    apr_pool_cleanup_register(t->pool, list, drop_json, apr_pool_cleanup_null);
    for (size_t i = 0; i < count; ++i) {
        const json_t *item = is_list ? json_array_get(param->value, i) : param->value;
        const char *url = NULL;
        apr_status_t status = absolute_url(t, param->arg, item, &url, err);

        if (status != APR_SUCCESS) {
            return status;
        }
        APR_ARRAY_PUSH(extra_urls, const char *) = url;
        if (json_array_append_new(list, json_string(url)) != 0) {
            return mcp_template_broken(t, err);
        }
    }
    param->value = is_list ? list : json_array_get(list, 0);
    return APR_SUCCESS;
}

static apr_status_t expand_urls(mcp_template_t *t, apr_array_header_t *extra_urls, mcp_err_t *err)
{
    for (size_t i = 0; i < t->count; ++i) {
        mcp_template_param_t *param = &t->params[i];

        if (param->is_url && !mcp_template_is_void(param->value)) {
            apr_status_t status = expand_url(t, param, extra_urls, err);

            if (status != APR_SUCCESS) {
                return status;
            }
        }
    }
    return APR_SUCCESS;
}

/* --- path ---------------------------------------------------------------- */

/* Literal text of the catalog: what is no URL character is encoded, escapes stay. */
static void put_literal(mcp_encode_buf_t *buf, const char *text, size_t bytes, const char *keep)
{
    for (size_t i = 0; i < bytes; ++i) {
        int is_escape = text[i] == '%' && i + 2 < bytes && mcp_encode_hex(text[i + 1]) >= 0 &&
                        mcp_encode_hex(text[i + 2]) >= 0;

        if (text[i] == '%' && !is_escape) {
            mcp_encode_text(buf, "%25");
        } else {
            mcp_encode_part(buf, text + i, 1, keep);
        }
    }
}

static mcp_template_param_t *path_param(const mcp_template_t *t, const char *name, size_t bytes)
{
    for (size_t i = 0; i < t->count; ++i) {
        mcp_template_param_t *param = &t->params[i];

        if (param->in == MCP_TEMPLATE_PATH && strlen(param->name) == bytes &&
            memcmp(param->name, name, bytes) == 0) {
            return param;
        }
    }
    return NULL;
}

static apr_status_t put_path_param(const mcp_template_t *t, const mcp_template_param_t *param,
                                   int is_multi, mcp_encode_buf_t *buf, mcp_err_t *err)
{
    size_t before = buf->bytes;
    size_t bytes = 0;
    apr_status_t status;

    if (mcp_template_is_void(param->value) ||
        (json_is_string(param->value) && json_string_length(param->value) == 0)) {
        return mcp_template_invalid(t, err, param->arg, "must not be empty");
    }
    if (is_multi) {
        const char *text = NULL;

        if (!json_is_object(param->value) && !json_is_array(param->value)) {
            text = mcp_template_scalar(param->value, t->pool, &bytes);
        }
        status = text != NULL ? mcp_template_put_segments(t, param->arg, text, buf, err)
                              : mcp_template_invalid(t, err, param->arg, "must be a path");
    } else {
        status = mcp_template_put(t, param, buf, err);
    }
    if (status == APR_SUCCESS && buf->bytes == before && !buf->is_full) {
        return mcp_template_invalid(t, err, param->arg, "must not be empty");
    }
    return status;
}

/* 1 if a whole segment of the encoded path is "." or "..", however it came about. */
static int has_dot_segment(const char *path, apr_pool_t *pool)
{
    while (*path != '\0') {
        size_t bytes = strcspn(path, "/");
        char *segment = apr_palloc(pool, bytes + 1);

        if (mcp_encode_is_dots(segment, mcp_encode_decode(path, bytes, segment))) {
            return 1;
        }
        path += bytes + (path[bytes] == '/' ? 1 : 0);
    }
    return 0;
}

/* The path of the template, up to '?' or '#', with its values. */
static apr_status_t put_path(const mcp_template_t *t, const char *path, size_t bytes,
                             mcp_encode_buf_t *buf, mcp_err_t *err)
{
    const char *end = path + bytes;

    while (path < end) {
        size_t literal = strcspn(path, "{}");
        const char *close;
        const mcp_template_param_t *param;
        apr_status_t status;
        int is_multi;

        literal = literal < (size_t)(end - path) ? literal : (size_t)(end - path);
        put_literal(buf, path, literal, LITERAL_KEEP);
        path += literal;
        if (path == end) {
            break;
        }
        close = memchr(path, '}', (size_t)(end - path));
        if (*path != '{' || close == NULL) {
            return mcp_template_broken(t, err);
        }
        is_multi = path[1] == '+';
        path += 1 + is_multi;
        param = path_param(t, path, (size_t)(close - path));
        if (param == NULL) {
            return mcp_template_broken(t, err);
        }
        status = put_path_param(t, param, is_multi || param->is_multi, buf, err);
        if (status != APR_SUCCESS) {
            return status;
        }
        path = close + 1;
    }
    return APR_SUCCESS;
}

/* --- query, headers, cookies ---------------------------------------------- */

/* Appends what a parameter expands to, if it is anything. */
static apr_status_t put_pairs(const mcp_template_t *t, const mcp_template_param_t *param,
                              mcp_encode_buf_t *buf, const char *between, mcp_err_t *err)
{
    mcp_encode_buf_t pairs;
    const char *text;
    apr_status_t status;

    mcp_encode_start(&pairs, t->pool, MCP_URL_BYTES);
    status = mcp_template_put(t, param, &pairs, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    text = mcp_encode_finish(&pairs);
    if (text == NULL) {
        return mcp_template_invalid(t, err, param->arg, "is too long");
    }
    if (text[0] != '\0') {
        mcp_encode_text(buf, buf->bytes > 0 ? between : "");
        mcp_encode_text(buf, text);
    }
    return APR_SUCCESS;
}

static apr_status_t put_query(const mcp_template_t *t, const mcp_template_param_t *param,
                              draft_t *draft, mcp_err_t *err)
{
    if (strcmp(t->auth_type, "query") == 0 && strcasecmp(t->auth_name, param->name) == 0) {
        return APR_SUCCESS; /* the credential's own */
    }
    return put_pairs(t, param, &draft->query, "&", err);
}

static apr_status_t put_cookie(const mcp_template_t *t, const mcp_template_param_t *param,
                               draft_t *draft, mcp_err_t *err)
{
    if (!mcp_encode_is_token(param->name)) {
        return mcp_template_broken(t, err);
    }
    if (t->auth_cookie != NULL && strcasecmp(t->auth_cookie, param->name) == 0) {
        return APR_SUCCESS;
    }
    return put_pairs(t, param, &draft->cookie, "; ", err);
}

/* Headers by which many frameworks take another method than the one that was decided. */
static int is_method_override(const char *name)
{
    return strcasecmp(name, "X-HTTP-Method-Override") == 0 ||
           strcasecmp(name, "X-HTTP-Method") == 0 || strcasecmp(name, "X-Method-Override") == 0;
}

static apr_status_t put_header(const mcp_template_t *t, const mcp_template_param_t *param,
                               draft_t *draft, mcp_err_t *err)
{
    mcp_encode_buf_t value;
    const char *text;
    apr_status_t status;

    if (!mcp_encode_is_token(param->name)) {
        return mcp_template_broken(t, err);
    }
    if (strcmp(t->auth_type, "header") == 0 && strcasecmp(t->auth_name, param->name) == 0) {
        return APR_SUCCESS; /* the credential's own */
    }
    if (mcp_template_is_reserved(param->name) ||
        (!param->is_fixed && is_method_override(param->name))) {
        return mcp_template_broken(t, err);
    }
    mcp_encode_start(&value, t->pool, MCP_TEMPLATE_HEADER);
    status = mcp_template_put(t, param, &value, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    text = mcp_encode_finish(&value);
    if (text == NULL) {
        return mcp_template_invalid(t, err, param->arg, "is too long for a header");
    }
    if (text[0] != '\0') {
        APR_ARRAY_PUSH(draft->headers, const char *) =
            apr_pstrcat(t->pool, param->name, ": ", text, NULL);
    }
    return APR_SUCCESS;
}

static apr_status_t put_params(const mcp_template_t *t, int has_body, draft_t *draft,
                               mcp_err_t *err)
{
    apr_status_t status = APR_SUCCESS;

    for (size_t i = 0; i < t->count && status == APR_SUCCESS; ++i) {
        const mcp_template_param_t *param = &t->params[i];

        if (mcp_template_is_void(param->value)) {
            continue;
        }
        switch (param->in) {
        case MCP_TEMPLATE_QUERY:
            status = put_query(t, param, draft, err);
            break;
        case MCP_TEMPLATE_COOKIE:
            status = put_cookie(t, param, draft, err);
            break;
        case MCP_TEMPLATE_HEADER_LINE:
            /* The body says of itself what it is. */
            if (!has_body || strcasecmp(param->name, "Content-Type") != 0) {
                status = put_header(t, param, draft, err);
            }
            break;
        case MCP_TEMPLATE_PATH:
        default:
            break;
        }
    }
    return status;
}

/* The credential, and the one Cookie line. */
static apr_status_t put_auth(const mcp_template_t *t, draft_t *draft, mcp_err_t *err)
{
    const char *cookies = mcp_encode_finish(&draft->cookie);

    if (cookies == NULL) {
        return mcp_err_set(err, t->pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                           "Send shorter values.", "The request's cookies would be too long.");
    }
    if (t->auth_cookie != NULL) {
        cookies =
            apr_pstrcat(t->pool, t->auth_value, cookies[0] != '\0' ? "; " : "", cookies, NULL);
    } else if (strcmp(t->auth_type, "header") == 0) {
        APR_ARRAY_PUSH(draft->headers, const char *) =
            apr_pstrcat(t->pool, t->auth_name, ": ", t->auth_value, NULL);
    } else if (strcmp(t->auth_type, "query") == 0) {
        mcp_encode_text(&draft->query, draft->query.bytes > 0 ? "&" : "");
        mcp_encode_part(&draft->query, t->auth_name, strlen(t->auth_name), "");
        mcp_encode_text(&draft->query, "=");
        mcp_encode_part(&draft->query, t->auth_value, strlen(t->auth_value), "");
    }
    if (cookies[0] != '\0') {
        APR_ARRAY_PUSH(draft->headers, const char *) =
            apr_pstrcat(t->pool, "Cookie: ", cookies, NULL);
    }
    return APR_SUCCESS;
}

/* Base, path and query. */
static apr_status_t make_url(mcp_template_t *t, const char *path, const draft_t *draft,
                             const char **ret, mcp_err_t *err)
{
    mcp_encode_buf_t url;
    mcp_encode_buf_t query = draft->query;
    size_t base_bytes = strlen(t->base);
    const char *pairs = mcp_encode_finish(&query);
    const char *text;
    apr_status_t status;

    mcp_encode_start(&url, t->pool, MCP_URL_BYTES);
    mcp_encode_text(&url, t->base);
    status = put_path(t, path, strcspn(path, "?#"), &url, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    text = mcp_encode_finish(&url);
    if (text != NULL && has_dot_segment(text + base_bytes, t->pool)) {
        return mcp_template_restricted(t, err);
    }
    mcp_encode_text(&url, pairs != NULL && pairs[0] != '\0' ? "?" : "");
    mcp_encode_text(&url, pairs != NULL ? pairs : "");
    text = pairs != NULL ? mcp_encode_finish(&url) : NULL;
    if (text == NULL) {
        return mcp_err_set(err, t->pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                           "Send shorter values.", "The request's URL would be too long.");
    }
    *ret = text;
    return APR_SUCCESS;
}

/* The literal query of a path such as "/objects?acl", encoded. -1 if it holds placeholders: those
 * are parameters. */
static int read_literals(mcp_template_t *t, const char *path, draft_t *draft)
{
    size_t bytes = strcspn(path, "?#");
    const char *query = path[bytes] == '?' ? path + bytes + 1 : "";

    bytes = strcspn(query, "#");
    if (strcspn(query, "{}") < bytes) {
        return -1;
    }
    put_literal(&draft->query, query, bytes, QUERY_KEEP);
    t->literals = draft->query.is_full
                      ? NULL
                      : apr_pstrmemdup(t->pool, draft->query.data, draft->query.bytes);
    return 0;
}

apr_status_t mcp_template_expand(const json_t *operation, const char *base, const json_t *args,
                                 const json_t *auth, apr_pool_t *pool, mcp_request_t *ret,
                                 mcp_err_t *err)
{
    mcp_template_t t = {.operation = operation, .args = args, .pool = pool, .auth_type = "none"};
    mcp_template_body_t body = {NULL, NULL, 0};
    mcp_request_t request = {0};
    draft_t draft;
    const char *path = mcp_json_str(operation, "path");
    apr_status_t status = mcp_template_read(&t, base, auth, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    mcp_encode_start(&draft.query, pool, MCP_URL_BYTES);
    mcp_encode_start(&draft.cookie, pool, MCP_TEMPLATE_HEADER / 2);
    draft.headers = apr_array_make(pool, 8, sizeof(const char *));
    draft.extra_urls = apr_array_make(pool, 1, sizeof(const char *));
    if (read_literals(&t, path, &draft) != 0) {
        return mcp_template_broken(&t, err);
    }
    status = expand_urls(&t, draft.extra_urls, err);
    if (status == APR_SUCCESS) {
        status = mcp_template_check_names(&t, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_template_make_body(&t, &body, err);
    }
    if (status == APR_SUCCESS) {
        status = put_params(&t, body.data != NULL, &draft, err);
    }
    if (status == APR_SUCCESS) {
        status = put_auth(&t, &draft, err);
    }
    if (status == APR_SUCCESS) {
        status = make_url(&t, path, &draft, &request.url, err);
    }
    if (status != APR_SUCCESS) {
        return status;
    }
    if (body.data != NULL) {
        APR_ARRAY_PUSH(draft.headers, const char *) =
            apr_pstrcat(pool, "Content-Type: ", body.content_type, NULL);
    }
    request.method = t.method;
    request.headers = draft.headers;
    request.extra_urls = draft.extra_urls;
    request.body = body.data;
    request.body_bytes = body.bytes;
    request.is_idempotent = is_safe_to_resend(t.method);
    *ret = request;
    return APR_SUCCESS;
}
