/* Values in OpenAPI's styles. OpenAPI defines them as RFC 6570 expansions, so a style is a row of
 * that document's table and one function expands them all; deepObject, which has no such row,
 * stands apart. */
#include "mcp_template_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

#define MAX_BRACKETS 32 /* nesting of name[a][b]... */
#define NAME_KEEP                                                                                  \
    "$:" /* what a wire name from the catalog keeps: OData and XML names are compared undecoded by \
            some */

static const mcp_template_style_t styles[] = {
    /* name, places, first, between, list, is_named, is_deep, explodes */
    {"simple", MCP_TEMPLATE_PATH | MCP_TEMPLATE_HEADER_LINE, "", ",", ",", 0, 0, 0},
    {"label", MCP_TEMPLATE_PATH, ".", ".", ",", 0, 0, 0},
    {"matrix", MCP_TEMPLATE_PATH, ";", ";", ",", 1, 0, 0},
    {"form", MCP_TEMPLATE_QUERY, "", "&", ",", 1, 0, 1},
    {"form", MCP_TEMPLATE_COOKIE, "", "; ", ",", 1, 0, 1},
    {"spaceDelimited", MCP_TEMPLATE_QUERY, "", "&", "%20", 1, 0, 0},
    {"pipeDelimited", MCP_TEMPLATE_QUERY, "", "&", "%7C", 1, 0, 0},
    {"deepObject", MCP_TEMPLATE_QUERY, "", "&", ",", 1, 1, 1}};

apr_status_t mcp_template_broken(const mcp_template_t *t, mcp_err_t *err)
{
    return mcp_err_set(err, t->pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL,
                       "Ask an administrator to check the connector's definition.",
                       "This tool's definition can't be turned into a request.");
}

apr_status_t mcp_template_invalid(const mcp_template_t *t, mcp_err_t *err, const char *arg,
                                  const char *what)
{
    return mcp_err_set(err, t->pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                       "Send arguments that follow the tool's input schema.",
                       "The argument \"%s\" %s.", arg, what);
}

apr_status_t mcp_template_restricted(const mcp_template_t *t, mcp_err_t *err)
{
    return mcp_err_set(err, t->pool, MCP_FAIL_TOOL, MCP_CODE_URL_RESTRICTED,
                       "Use plain names or ids, without dot segments.",
                       "An argument would lead outside the URL of this tool.");
}

const mcp_template_style_t *mcp_template_style(const char *name, mcp_template_in_t in)
{
    for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); ++i) {
        /* The first row of a place is its default. */
        if ((styles[i].places & in) != 0 && (name == NULL || strcmp(styles[i].name, name) == 0)) {
            return &styles[i];
        }
    }
    return NULL;
}

int mcp_template_is_void(const json_t *value)
{
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); ++i) {
            if (!json_is_null(json_array_get(value, i))) {
                return 0;
            }
        }
        return 1;
    }
    if (json_is_object(value)) {
        json_t *object = mcp_template_iterable(value);

        for (void *at = json_object_iter(object); at != NULL;
             at = json_object_iter_next(object, at)) {
            if (!json_is_null(json_object_iter_value(at))) {
                return 0;
            }
        }
        return 1;
    }
    return value == NULL || json_is_null(value);
}

/* The shortest decimal that reads back as the same number: 0.1, not 0.10000000000000001. */
static const char *real_text(const json_t *value, apr_pool_t *pool, size_t *ret_bytes)
{
    char text[64];
    size_t bytes = 0;

    for (size_t digits = 15; digits <= 17; ++digits) {
        json_t *again;
        int is_same;

        bytes =
            json_dumpb(value, text, sizeof(text), JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        if (bytes == 0 || bytes > sizeof(text)) {
            return NULL;
        }
        again = json_loadb(text, bytes, JSON_DECODE_ANY, NULL);
        is_same = again != NULL && json_equal(again, value);
        json_decref(again);
        if (is_same) {
            break;
        }
    }
    *ret_bytes = bytes;
    return apr_pstrmemdup(pool, text, bytes);
}

const char *mcp_template_scalar(const json_t *value, apr_pool_t *pool, size_t *ret_bytes)
{
    const char *copy = NULL;
    char *text;

    if (json_is_string(value)) {
        *ret_bytes = json_string_length(value);
        return json_string_value(value);
    }
    if (json_is_real(value)) {
        return real_text(value, pool, ret_bytes);
    }
    text = mcp_json_text(value, ret_bytes);
    if (text != NULL) {
        copy = apr_pstrmemdup(pool, text, *ret_bytes);
        free(text);
    }
    return copy;
}

/* A header carries text as it is, everything else is encoded. */
static void put_bytes(const mcp_template_param_t *param, mcp_encode_buf_t *buf, const char *text,
                      size_t bytes)
{
    if (param->in == MCP_TEMPLATE_HEADER_LINE) {
        mcp_encode_raw(buf, text, bytes);
    } else {
        mcp_encode_part(buf, text, bytes, "");
    }
}

static void put_value(const mcp_template_t *t, const mcp_template_param_t *param,
                      mcp_encode_buf_t *buf, const json_t *value)
{
    size_t bytes = 0;
    const char *text = mcp_template_scalar(value, t->pool, &bytes);

    if (text == NULL) {
        buf->is_full = 1; /* no memory: the text can't be finished */
        return;
    }
    put_bytes(param, buf, text, bytes);
}

/* "name=" before a named value; RFC 6570 leaves the '=' out before an empty matrix value. */
static void put_name(const mcp_template_param_t *param, mcp_encode_buf_t *buf, const json_t *value)
{
    int is_bare =
        param->in == MCP_TEMPLATE_PATH && json_is_string(value) && json_string_length(value) == 0;

    if (param->style->is_named) {
        mcp_encode_part(buf, param->name, strlen(param->name), NAME_KEEP);
        mcp_encode_text(buf, is_bare ? "" : "=");
    }
}

static void put_list(const mcp_template_t *t, const mcp_template_param_t *param,
                     mcp_encode_buf_t *buf)
{
    const mcp_template_style_t *style = param->style;
    int is_first = 1;

    if (!param->explode) {
        put_name(param, buf, NULL);
    }
    for (size_t i = 0; i < json_array_size(param->value); ++i) {
        const json_t *item = json_array_get(param->value, i);

        if (json_is_null(item)) {
            continue;
        }
        if (!is_first) {
            mcp_encode_text(buf, param->explode ? style->between : style->list);
        }
        if (param->explode) {
            put_name(param, buf, item);
        }
        put_value(t, param, buf, item);
        is_first = 0;
    }
}

/* What separates members stays as it is in a header, and '.' does everywhere: there, a key or value
 * that holds it would read as one member more. */
static int runs_over(const mcp_template_t *t, const mcp_template_param_t *param, const char *key,
                     const json_t *member)
{
    size_t bytes = 0;
    const char *text;

    if (param->in != MCP_TEMPLATE_HEADER_LINE) {
        return param->explode && strcmp(param->style->between, ".") == 0 && strchr(key, '.') != NULL;
    }
    text = mcp_template_scalar(member, t->pool, &bytes);
    return strpbrk(key, param->explode ? ",=" : ",") != NULL ||
           (text != NULL && memchr(text, ',', bytes) != NULL);
}

static apr_status_t put_members(const mcp_template_t *t, const mcp_template_param_t *param,
                                mcp_encode_buf_t *buf, mcp_err_t *err)
{
    const mcp_template_style_t *style = param->style;
    json_t *object = mcp_template_iterable(param->value);
    int is_first = 1;

    if (!param->explode) {
        put_name(param, buf, NULL);
    }
    for (void *at = json_object_iter(object); at != NULL && !buf->is_full;
         at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *member = json_object_iter_value(at);

        if (json_is_null(member)) {
            continue;
        }
        if (runs_over(t, param, key, member)) {
            return mcp_template_invalid(t, err, param->arg,
                                        "has a member that would read as two");
        }
        if (!is_first) {
            mcp_encode_text(buf, param->explode ? style->between : style->list);
        }
        put_bytes(param, buf, key, strlen(key));
        mcp_encode_text(buf, param->explode ? "=" : style->list);
        put_value(t, param, buf, member);
        is_first = 0;
    }
    return APR_SUCCESS;
}

static int is_flat(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); ++i) {
        const json_t *item = json_array_get(list, i);

        if (json_is_object(item) || json_is_array(item)) {
            return 0;
        }
    }
    return 1;
}

/* name is encoded already. The recursion ends with MAX_BRACKETS. 0, or -1 if nested deeper. */
static int put_brackets(const mcp_template_t *t, const char *name, const json_t *value, int depth,
                        mcp_encode_buf_t *buf)
{
    json_t *object = mcp_template_iterable(value);
    int status = 0;

    if (depth > MAX_BRACKETS) {
        return -1;
    }
    if (json_is_object(value)) {
        for (void *at = json_object_iter(object); status == 0 && at != NULL && !buf->is_full;
             at = json_object_iter_next(object, at)) {
            const char *key = json_object_iter_key(at);
            mcp_encode_buf_t inner;
            const char *longer;

            mcp_encode_start(&inner, t->pool, MCP_TEMPLATE_HEADER);
            mcp_encode_text(&inner, name);
            mcp_encode_text(&inner, "%5B");
            mcp_encode_part(&inner, key, strlen(key), "");
            mcp_encode_text(&inner, "%5D");
            longer = mcp_encode_finish(&inner);
            status = longer != NULL
                         ? put_brackets(t, longer, json_object_iter_value(at), depth + 1, buf)
                         : -1;
        }
    } else if (json_is_array(value)) {
        int flat = is_flat(value);

        for (size_t i = 0; status == 0 && i < json_array_size(value) && !buf->is_full; ++i) {
            const char *indexed =
                flat ? name : apr_psprintf(t->pool, "%s%%5B%" APR_SIZE_T_FMT "%%5D", name, i);

            status = put_brackets(t, indexed, json_array_get(value, i), depth + 1, buf);
        }
    } else if (!json_is_null(value)) {
        size_t bytes = 0;
        const char *text = mcp_template_scalar(value, t->pool, &bytes);

        mcp_encode_text(buf, buf->bytes > 0 ? "&" : "");
        mcp_encode_text(buf, name);
        mcp_encode_text(buf, "=");
        if (text == NULL) {
            buf->is_full = 1;
            return 0;
        }
        mcp_encode_part(buf, text, bytes, "");
    }
    return status;
}

apr_status_t mcp_template_put_deep(const mcp_template_t *t, const char *name, const json_t *value,
                                   mcp_encode_buf_t *buf, mcp_err_t *err)
{
    mcp_encode_buf_t encoded;
    const char *text;

    mcp_encode_start(&encoded, t->pool, MCP_TEMPLATE_HEADER);
    mcp_encode_part(&encoded, name, strlen(name), NAME_KEEP);
    text = mcp_encode_finish(&encoded);
    if (text == NULL) {
        return mcp_template_broken(t, err);
    }
    if (put_brackets(t, text, value, 0, buf) != 0) {
        return mcp_template_invalid(t, err, name, "is nested too deeply for a form");
    }
    return APR_SUCCESS;
}

apr_status_t mcp_template_put(const mcp_template_t *t, const mcp_template_param_t *param,
                              mcp_encode_buf_t *buf, mcp_err_t *err)
{
    if (param->style->is_deep && json_is_object(param->value)) {
        mcp_encode_buf_t pairs;
        const char *text;
        apr_status_t status;

        mcp_encode_start(&pairs, t->pool, MCP_URL_BYTES);
        status = mcp_template_put_deep(t, param->name, param->value, &pairs, err);
        if (status != APR_SUCCESS) {
            return status;
        }
        text = mcp_encode_finish(&pairs);
        if (text == NULL) {
            return mcp_template_invalid(t, err, param->arg, "is too long");
        }
        mcp_encode_text(buf, text);
        return APR_SUCCESS;
    }
    mcp_encode_text(buf, param->style->first);
    if (json_is_array(param->value)) {
        put_list(t, param, buf);
    } else if (json_is_object(param->value)) {
        return put_members(t, param, buf, err);
    } else {
        put_name(param, buf, param->value);
        put_value(t, param, buf, param->value);
    }
    return APR_SUCCESS;
}

apr_status_t mcp_template_put_segments(const mcp_template_t *t, const char *arg, const char *text,
                                       mcp_encode_buf_t *buf, mcp_err_t *err)
{
    const char *at = text + (text[0] == '/' ? 1 : 0);

    if (*at == '\0') {
        return mcp_template_invalid(t, err, arg, "must not be empty");
    }
    for (;;) {
        size_t bytes = strcspn(at, "/");

        if (bytes == 0 || mcp_encode_is_dots(at, bytes)) {
            return mcp_template_restricted(t, err);
        }
        mcp_encode_part(buf, at, bytes, "");
        at += bytes;
        if (*at == '\0') {
            return APR_SUCCESS;
        }
        mcp_encode_text(buf, "/");
        ++at;
        if (*at == '\0') {
            return APR_SUCCESS;
        }
    }
}
