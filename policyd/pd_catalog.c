/* Connector files as a whole: the JSON Schema of the form, then what a schema can't say, and the
 * way from the file to the normalised document and back. See pd_catalog.h. */
#include "pd_catalog.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "../proto/mcp_schema.h"
#include "pd_catalog_private.h"
#include "pd_connector_schema.h"
#include "pd_log.h"

#define QUOTE_BYTES 100 /* of a name of the file in a message */
#define TEXT_BYTES 280  /* of a whole text */

pd_status_t pd_check_fault(const pd_check_t *check, const char *at, const char *hint,
                           const char *format, ...)
{
    char text[sizeof(check->fault->message)];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* a cut message is still a message */
    va_end(args);
    return pd_fault(check->fault, MCP_CODE_INVALID_REQUEST, hint, "%.200s: %.300s",
                    at[0] == '\0' ? "/" : at, text);
}

static const char *quote(const pd_check_t *check, const char *text, unsigned size)
{
    char *buf = apr_palloc(check->round, size);

    return pd_log_quote(text, buf, size);
}

const char *pd_check_quote(const pd_check_t *check, const char *text)
{
    return quote(check, text, QUOTE_BYTES);
}

/* --- the form ----------------------------------------------------------- */

typedef struct form {
    mcp_schema_t *file;
    mcp_schema_t *operation;
} form_t;

/* The schema of one operation: that of the file with another root, so that each operation is
 * judged with a budget of its own. */
static json_t *operation_schema(const json_t *file_schema)
{
    json_t *schema = json_object();

    if (json_object_set_new(schema, "$schema",
                            json_deep_copy(json_object_get(file_schema, "$schema"))) != 0 ||
        json_object_set_new(schema, "$ref", json_string("#/$defs/operation")) != 0 ||
        json_object_set_new(schema, "$defs",
                            json_deep_copy(json_object_get(file_schema, "$defs"))) != 0) {
        json_decref(schema);
        return NULL;
    }
    return schema;
}

static pd_status_t load_form(apr_pool_t *pool, form_t *form)
{
    mcp_schema_error_t error;
    json_t *text = NULL;
    json_t *operation;
    pd_status_t status = PD_E_INTERNAL;

    if (mcp_json_parse(pd_catalog_file_schema, strlen(pd_catalog_file_schema), MCP_MAX_DEPTH, &text,
                       NULL) != MCP_OK) {
        return PD_E_INTERNAL;
    }
    operation = operation_schema(text);
    if (operation != NULL && mcp_schema_compile(text, pool, &form->file, &error) == MCP_OK &&
        mcp_schema_compile(operation, pool, &form->operation, &error) == MCP_OK) {
        status = PD_OK;
    }
    json_decref(operation);
    json_decref(text);
    return status;
}

static pd_status_t judge(const pd_check_t *check, const mcp_schema_t *schema, const json_t *value,
                         const char *at)
{
    mcp_schema_error_t error = {.path = "", .rule = "", .message = ""};
    mcp_wire_status_t status = mcp_schema_validate(schema, value, &error);
    char where[320];

    if (status == MCP_OK) {
        return PD_OK;
    }
    (void)snprintf(where, sizeof(where), "%s%s", at,
                   error.path); /* cut: still tells the operation */
    if (status == MCP_E_SIZE) {
        return pd_check_fault(check, at, NULL, "too large to be checked; make it smaller");
    }
    return pd_check_fault(check, quote(check, where, TEXT_BYTES),
                          "The form is described in doc/connector-file.md.", "%s",
                          quote(check, error.message, TEXT_BYTES));
}

/* The file with its first operation alone; the others follow one by one. */
static pd_status_t judge_frame(const pd_check_t *check, const form_t *form, json_t *doc)
{
    const json_t *operations = json_object_get(doc, "operations");
    json_t *frame;
    json_t *first;
    pd_status_t status;

    if (!json_is_array(operations) || json_array_size(operations) < 2) {
        return judge(check, form->file, doc, "");
    }
    frame = json_copy(doc);
    first = json_array();
    if (json_array_append_new(first, json_incref(json_array_get(operations, 0))) != 0 ||
        json_object_set_new(frame, "operations", json_incref(first)) != 0) {
        status = PD_E_NOMEM;
    } else {
        status = judge(check, form->file, frame, "");
    }
    json_decref(first);
    json_decref(frame);
    return status;
}

static pd_status_t judge_form(pd_check_t *check, json_t *doc)
{
    const json_t *operations;
    const json_t *operation;
    form_t form;
    pd_status_t status;
    size_t i;

    if (!json_is_object(doc)) {
        return pd_check_fault(check, "", NULL, "a connector file is one JSON object");
    }
    status = load_form(check->pool, &form);
    if (status != PD_OK) {
        return status;
    }
    status = judge_frame(check, &form, doc);
    if (status != PD_OK) {
        return status;
    }
    operations = json_object_get(doc, "operations");
    if (json_array_size(operations) > PD_MAX_OPERATIONS) {
        return pd_check_fault(
            check, "/operations", NULL,
            "at most %d operations fit one connector; make several connectors of it",
            PD_MAX_OPERATIONS);
    }
    json_array_foreach(operations, i, operation)
    {
        if (i > 0) {
            const char *at = apr_psprintf(check->round, "/operations/%lu", (unsigned long)i);

            status = judge(check, form.operation, operation, at);
            if (status != PD_OK) {
                return status;
            }
            apr_pool_clear(check->round);
        }
    }
    return PD_OK;
}

/* --- beyond the form ------------------------------------------------------ */

/* oauth2 is a scheme that readers of the format know and this build lacks: said before the schema
 * says "none of the values". */
static pd_status_t refuse_oauth2(const pd_check_t *check, const json_t *doc)
{
    const char *type = mcp_json_str(json_object_get(doc, "auth"), "type");

    if (type == NULL || strcmp(type, "oauth2") != 0) {
        return PD_OK;
    }
    return pd_check_fault(check, "/auth/type",
                          "An API that takes a long-lived token works with bearer or api_key.",
                          "oauth2 is not served yet; use none, api_key, basic or bearer");
}

static pd_status_t check_slug(const pd_check_t *check)
{
    if (mcp_name_is_label(check->slug)) {
        return PD_OK;
    }
    return pd_check_fault(
        check, "/slug", NULL,
        "\"%s\" is no slug; use 1 to %d of a-z, 0-9 and '-', with no '-' at either end",
        pd_check_quote(check, check->slug), MCP_MAX_LABEL);
}

static pd_status_t check_unique_id(const pd_check_t *check, apr_hash_t *ids, const json_t *op,
                                   size_t index)
{
    const char *id = mcp_json_str(op, "id");

    if (apr_hash_get(ids, id, APR_HASH_KEY_STRING) != NULL) {
        return pd_check_fault(
            check, apr_psprintf(check->round, "/operations/%lu/id", (unsigned long)index), NULL,
            "\"%s\" is the id of an earlier operation too; ids are unique",
            pd_check_quote(check, id));
    }
    apr_hash_set(ids, id, APR_HASH_KEY_STRING, id);
    return PD_OK;
}

static pd_status_t check_operations(pd_check_t *check, const json_t *doc)
{
    const json_t *operations = json_object_get(doc, "operations");
    apr_hash_t *ids = apr_hash_make(check->pool);
    json_t *op;
    size_t i;

    json_array_foreach(operations, i, op)
    {
        pd_status_t status = check_unique_id(check, ids, op, i);

        if (status == PD_OK) {
            status = pd_check_operation(check, op, i);
        }
        if (status != PD_OK) {
            return status;
        }
        apr_pool_clear(check->round);
    }
    return PD_OK;
}

static pd_status_t check_all(pd_check_t *check, json_t *doc)
{
    pd_status_t status = refuse_oauth2(check, doc);

    if (status == PD_OK) {
        status = judge_form(check, doc);
    }
    if (status != PD_OK) {
        return status;
    }
    (void)json_object_del(doc, "$schema"); /* absent is fine */
    check->slug = mcp_json_str(doc, "slug");
    check->auth = json_object_get(doc, "auth");
    status = check_slug(check);
    if (status == PD_OK) {
        status = pd_check_auth(check, doc);
    }
    if (status == PD_OK) {
        status = pd_check_base(check, doc);
    }
    if (status == PD_OK) {
        status = check_operations(check, doc);
    }
    return status;
}

pd_status_t pd_catalog_check(const json_t *file, json_t **ret_doc, pd_fault_t *fault)
{
    pd_check_t check = {.fault = fault};
    json_t *doc;
    pd_status_t status;

    if (apr_pool_create(&check.pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    if (apr_pool_create(&check.round, check.pool) != APR_SUCCESS) {
        apr_pool_destroy(check.pool);
        return PD_E_NOMEM;
    }
    doc = json_deep_copy(file);
    status = doc == NULL ? PD_E_NOMEM : check_all(&check, doc);
    apr_pool_destroy(check.pool);
    if (status != PD_OK) {
        json_decref(doc);
        return status;
    }
    *ret_doc = doc;
    return PD_OK;
}

/* --- and back --------------------------------------------------------------- */

static const char *encode_literal(apr_pool_t *pool, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    char *buf = apr_palloc(pool, 3 * strlen(text) + 1);
    char *to = buf;

    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (pd_check_is_pchar(*text) && strchr("&=+;", c) == NULL) {
            *to++ = *text;
        } else {
            *to++ = '%';
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        }
    }
    *to = '\0';
    return buf;
}

const char *pd_catalog_file_path(apr_pool_t *pool, const json_t *op)
{
    const char *path = mcp_json_str(op, "path");
    const json_t *pair;
    size_t i;

    json_array_foreach(json_object_get(op, "query"), i, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0));
        const char *value = json_string_value(json_array_get(pair, 1));

        if (path == NULL || name == NULL || value == NULL) {
            return NULL; /* not a normalised document */
        }
        path = apr_pstrcat(pool, path, i == 0 ? "?" : "&", encode_literal(pool, name),
                           value[0] == '\0' ? "" : "=", encode_literal(pool, value), NULL);
    }
    return path;
}

/* json_object_del() says no more than that there was nothing to delete. */
static void drop(json_t *object, const char *name)
{
    (void)json_object_del(object, name);
}

static pd_status_t operation_to_file(apr_pool_t *pool, json_t *op)
{
    json_t *body = json_object_get(op, "body");
    json_t *parameter;
    const char *arg;
    const char *path = pd_catalog_file_path(pool, op);
    size_t i;

    if (path == NULL) {
        return PD_E_CORRUPT;
    }
    if (json_object_set_new(op, "path", json_string(path)) != 0) {
        return PD_E_NOMEM;
    }
    drop(op, "query");
    json_array_foreach(json_object_get(op, "parameters"), i, parameter)
    {
        drop(parameter, "arg");
    }
    if (body != NULL) {
        drop(body, "flatten");
        drop(body, "fields");
        arg = mcp_json_str(body, "arg");
        if (arg != NULL && strcmp(arg, "body") == 0) {
            drop(body, "arg");
        }
    }
    return PD_OK;
}

pd_status_t pd_catalog_file(const json_t *doc, json_t **ret)
{
    apr_pool_t *pool;
    json_t *file;
    json_t *op;
    pd_status_t status = PD_OK;
    size_t i;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    file = json_deep_copy(doc);
    json_array_foreach(json_object_get(file, "operations"), i, op)
    {
        status = operation_to_file(pool, op);
        apr_pool_clear(pool);
        if (status != PD_OK) {
            break;
        }
    }
    apr_pool_destroy(pool);
    if (file == NULL || status != PD_OK) {
        json_decref(file);
        return status == PD_OK ? PD_E_NOMEM : status;
    }
    *ret = file;
    return PD_OK;
}
