/* Bodies: JSON, URL-encoded forms, multipart forms, and text or bytes that are sent as the string
 * they came as. */
#include "mcp_template_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"

#define BOUNDARY_BYTES 16

typedef enum form_of {
    FORM_JSON,
    FORM_URLENCODED,
    FORM_MULTIPART,
    FORM_TEXT, /* whatever else: the argument's own text */
    FORM_ANY   /* a media type range that JSON is in */
} form_of_t;

typedef struct field {
    const char *arg;
    const char *name;
    const json_t *value;
} field_t;

typedef struct fields {
    field_t *rows;
    size_t count;
} fields_t;

static int ends_with(const char *text, const char *end)
{
    size_t bytes = strlen(text);
    size_t tail = strlen(end);

    return bytes >= tail && strcasecmp(text + bytes - tail, end) == 0;
}

/* The form of a media type; *ret_sent is what goes into Content-Type: a range can't be sent, so it
 * becomes a type. */
static form_of_t form_of(const char *content_type, apr_pool_t *pool, const char **ret_sent)
{
    const char *type = apr_pstrmemdup(pool, content_type, strcspn(content_type, "; \t"));

    *ret_sent = content_type;
    if (strchr(type, '*') != NULL) {
        if (ends_with(type, "+json")) {
            *ret_sent = "application/json";
            return FORM_JSON;
        }
        *ret_sent = strcasecmp(type, "text/*") == 0 ? "text/plain; charset=utf-8"
                                                    : "application/octet-stream";
        return strcmp(type, "*/*") == 0 || strcasecmp(type, "application/*") == 0 ? FORM_ANY
                                                                                  : FORM_TEXT;
    }
    if (strcasecmp(type, "application/json") == 0 || strcasecmp(type, "text/json") == 0 ||
        ends_with(type, "+json")) {
        return FORM_JSON;
    }
    if (strcasecmp(type, "application/x-www-form-urlencoded") == 0) {
        return FORM_URLENCODED;
    }
    return strcasecmp(type, "multipart/form-data") == 0 ? FORM_MULTIPART : FORM_TEXT;
}

/* The fields of a flattened body that the caller gave. */
static apr_status_t given_fields(const mcp_template_t *t, const json_t *body, fields_t *ret,
                                 mcp_err_t *err)
{
    const json_t *list = json_object_get(body, "fields");
    size_t count = json_array_size(list);

    if (!json_is_array(list) || count > MCP_TEMPLATE_PARAMS) {
        return mcp_template_broken(t, err);
    }
    ret->rows = apr_palloc(t->pool, (count + 1) * sizeof(*ret->rows));
    ret->count = 0;
    for (size_t i = 0; i < count; ++i) {
        const json_t *row = json_array_get(list, i);
        field_t field = {mcp_json_str(row, "arg"), mcp_json_str(row, "name"), NULL};

        if (field.arg == NULL || field.name == NULL) {
            return mcp_template_broken(t, err);
        }
        field.value = json_object_get(t->args, field.arg);
        if (field.value != NULL) {
            ret->rows[ret->count++] = field;
        }
    }
    return APR_SUCCESS;
}

/* The members of an object body that is one argument. */
static void member_fields(const mcp_template_t *t, const json_t *value, fields_t *ret)
{
    json_t *object = mcp_template_iterable(value);

    ret->rows = apr_palloc(t->pool, (json_object_size(value) + 1) * sizeof(*ret->rows));
    ret->count = 0;
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);

        ret->rows[ret->count++] = (field_t){key, key, json_object_iter_value(at)};
    }
}

/* Members of one field's value go out as name[key], beside fields that may be called so. */
static apr_status_t check_fields(const mcp_template_t *t, const fields_t *fields, mcp_err_t *err)
{
    apr_status_t status = APR_SUCCESS;

    for (size_t i = 0; i < fields->count; ++i) {
        const field_t *field = &fields->rows[i];

        for (size_t k = 0; k < fields->count && status == APR_SUCCESS; ++k) {
            status = mcp_template_check_field(t, field->arg, field->name, field->value,
                                              fields->rows[k].name, err);
        }
    }
    return status;
}

static apr_status_t json_body(const mcp_template_t *t, const json_t *value,
                              mcp_template_body_t *ret, mcp_err_t *err)
{
    size_t bytes = 0;
    char *text = mcp_json_text(value, &bytes);

    if (text == NULL) {
        return mcp_template_broken(t, err);
    }
    ret->data = apr_pstrmemdup(t->pool, text, bytes);
    ret->bytes = bytes;
    free(text);
    return APR_SUCCESS;
}

static apr_status_t json_fields(const mcp_template_t *t, const fields_t *fields,
                                mcp_template_body_t *ret, mcp_err_t *err)
{
    json_t *object = json_object();
    apr_status_t status = APR_SUCCESS;

    for (size_t i = 0; i < fields->count && status == APR_SUCCESS; ++i) {
        const field_t *field = &fields->rows[i];

        /* The values are shared, not copied: the object lives until the end of this function. */
        if (json_object_set_new(object, field->name,
                                json_incref(mcp_template_iterable(field->value))) != 0) {
            status = mcp_template_broken(t, err);
        }
    }
    if (status == APR_SUCCESS) {
        status = json_body(t, object, ret, err);
    }
    json_decref(object);
    return status;
}

static apr_status_t finish(const mcp_template_t *t, mcp_encode_buf_t *buf, mcp_template_body_t *ret,
                           mcp_err_t *err)
{
    const char *text = mcp_encode_finish(buf);

    if (text == NULL) {
        return mcp_err_set(err, t->pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS,
                           "Send less at a time.", "The request's body would be too large.");
    }
    ret->data = text;
    ret->bytes = buf->bytes;
    return APR_SUCCESS;
}

static apr_status_t urlencoded(const mcp_template_t *t, const fields_t *fields,
                               mcp_template_body_t *ret, mcp_err_t *err)
{
    mcp_encode_buf_t buf;

    mcp_encode_start(&buf, t->pool, MCP_TEMPLATE_BODY_BYTES);
    for (size_t i = 0; i < fields->count; ++i) {
        apr_status_t status =
            mcp_template_put_deep(t, fields->rows[i].name, fields->rows[i].value, &buf, err);

        if (status != APR_SUCCESS) {
            return status;
        }
    }
    return finish(t, &buf, ret, err);
}

/* A name between quotes as browsers write it: the three characters that would end it are escaped.
 */
static void put_quoted(mcp_encode_buf_t *buf, const char *name)
{
    for (; *name != '\0'; ++name) {
        if (*name == '"' || *name == '\r' || *name == '\n') {
            mcp_encode_part(buf, name, 1, "");
        } else {
            mcp_encode_raw(buf, name, 1);
        }
    }
}

/* 1 if the schema says that the argument holds a file's bytes: receivers take a part for a file by
 * its filename. */
static int is_file(const mcp_template_t *t, const char *arg)
{
    const json_t *schema = json_object_get(t->operation, "schema");
    const json_t *property = json_object_get(json_object_get(schema, "properties"), arg);
    const char *format = mcp_json_str(property, "format");

    return (format != NULL && strcmp(format, "binary") == 0) ||
           mcp_json_str(property, "contentMediaType") != NULL;
}

static void put_part(const mcp_template_t *t, const char *boundary, const field_t *field,
                     const json_t *value, mcp_encode_buf_t *buf)
{
    size_t bytes = 0;
    const char *text = mcp_template_scalar(value, t->pool, &bytes);

    if (text == NULL) {
        buf->is_full = 1;
        return;
    }
    mcp_encode_text(buf, "--");
    mcp_encode_text(buf, boundary);
    mcp_encode_text(buf, "\r\nContent-Disposition: form-data; name=\"");
    put_quoted(buf, field->name);
    mcp_encode_text(buf, "\"");
    if (json_is_object(value) || json_is_array(value)) {
        mcp_encode_text(buf, "\r\nContent-Type: application/json");
    } else if (json_is_string(value) && is_file(t, field->arg)) {
        mcp_encode_text(buf, "; filename=\"");
        put_quoted(buf, field->name);
        mcp_encode_text(buf, "\"\r\nContent-Type: application/octet-stream");
    }
    mcp_encode_text(buf, "\r\n\r\n");
    mcp_encode_raw(buf, text, bytes);
    mcp_encode_text(buf, "\r\n");
}

/* A list becomes one part an element, as OpenAPI says. The boundary has 128 random bits, so no
 * value can hold it. */
static apr_status_t multipart(const mcp_template_t *t, const fields_t *fields,
                              mcp_template_body_t *ret, mcp_err_t *err)
{
    unsigned char random[BOUNDARY_BYTES];
    char boundary[2 * BOUNDARY_BYTES + 1];
    mcp_encode_buf_t buf;

    mcp_random(random, sizeof(random));
    mcp_hex(random, sizeof(random), boundary);
    mcp_encode_start(&buf, t->pool, MCP_TEMPLATE_BODY_BYTES);
    for (size_t i = 0; i < fields->count; ++i) {
        const field_t *field = &fields->rows[i];

        if (json_is_array(field->value)) {
            for (size_t k = 0; k < json_array_size(field->value) && !buf.is_full; ++k) {
                put_part(t, boundary, field, json_array_get(field->value, k), &buf);
            }
        } else if (!json_is_null(field->value)) {
            put_part(t, boundary, field, field->value, &buf);
        }
    }
    mcp_encode_text(&buf, "--");
    mcp_encode_text(&buf, boundary);
    mcp_encode_text(&buf, "--\r\n");
    ret->content_type = apr_pstrcat(t->pool, "multipart/form-data; boundary=", boundary, NULL);
    return finish(t, &buf, ret, err);
}

static apr_status_t put_fields(const mcp_template_t *t, form_of_t form, const fields_t *fields,
                               mcp_template_body_t *ret, mcp_err_t *err)
{
    switch (form) {
    case FORM_URLENCODED:
        return urlencoded(t, fields, ret, err);
    case FORM_MULTIPART:
        return multipart(t, fields, ret, err);
    case FORM_ANY:
        ret->content_type = "application/json";
        return json_fields(t, fields, ret, err);
    case FORM_JSON:
        return json_fields(t, fields, ret, err);
    case FORM_TEXT:
    default:
        return mcp_template_broken(t, err); /* an image can't be flattened */
    }
}

/* A body that is one argument. */
static apr_status_t put_whole(const mcp_template_t *t, form_of_t form, const char *arg,
                              const json_t *value, mcp_template_body_t *ret, mcp_err_t *err)
{
    int is_form = form == FORM_URLENCODED || form == FORM_MULTIPART;
    int is_tree = json_is_object(value) || json_is_array(value);
    const char *text;
    fields_t fields;

    if (is_form && json_is_object(value)) {
        apr_status_t status = mcp_template_check_members(t, arg, value, err);

        if (status != APR_SUCCESS) {
            return status;
        }
        member_fields(t, value, &fields);
        return put_fields(t, form, &fields, ret, err);
    }
    if (form == FORM_JSON || (form == FORM_ANY && is_tree)) {
        ret->content_type = form == FORM_ANY ? "application/json" : ret->content_type;
        return json_body(t, value, ret, err);
    }
    if (form == FORM_MULTIPART) {
        return mcp_template_invalid(t, err, arg, "must be an object of form fields");
    }
    if (is_tree) {
        return mcp_template_invalid(t, err, arg, "must be a string: it is sent as it is");
    }
    text = mcp_template_scalar(value, t->pool, &ret->bytes);
    if (text == NULL) {
        return mcp_template_broken(t, err);
    }
    ret->data = apr_pstrmemdup(t->pool, text, ret->bytes);
    return APR_SUCCESS;
}

apr_status_t mcp_template_make_body(const mcp_template_t *t, mcp_template_body_t *ret,
                                    mcp_err_t *err)
{
    const json_t *body = json_object_get(t->operation, "body");
    const char *content_type = mcp_json_str(body, "content_type");
    const char *arg = mcp_json_str(body, "arg");
    int is_required = mcp_json_bool(body, "required");
    mcp_template_body_t made = {NULL, NULL, 0};
    form_of_t form;
    apr_status_t status;

    if (body == NULL || json_is_null(body)) {
        *ret = made;
        return APR_SUCCESS;
    }
    if (content_type == NULL || content_type[0] == '\0' ||
        mcp_encode_has_control(content_type, strlen(content_type))) {
        return mcp_template_broken(t, err);
    }
    form = form_of(content_type, t->pool, &made.content_type);
    if (mcp_json_bool(body, "flatten")) {
        fields_t fields;

        status = given_fields(t, body, &fields, err);
        if (status == APR_SUCCESS && form == FORM_URLENCODED) {
            status = check_fields(t, &fields, err);
        }
        if (status == APR_SUCCESS && (fields.count > 0 || is_required)) {
            status = put_fields(t, form, &fields, &made, err);
        }
    } else if (arg == NULL) {
        status = mcp_template_broken(t, err);
    } else {
        const json_t *value = json_object_get(t->args, arg);

        if (value != NULL && !json_is_null(value)) {
            status = put_whole(t, form, arg, value, &made, err);
        } else {
            status = is_required ? mcp_template_invalid(t, err, arg, "is required") : APR_SUCCESS;
        }
    }
    if (status == APR_SUCCESS) {
        made.content_type = made.data != NULL ? made.content_type : NULL;
        *ret = made;
    }
    return status;
}
