/* Defaults and frozen values of toolbox entries: see op_toolbox_values.h. */
#include "op_toolbox_values.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_schema.h"
#include "../proto/view_schema.h"

#define MAX_BYTES (64u * 1024) /* of an entry's defaults and frozen values together */
#define NAMES_BYTES 400        /* of a hint that lists arguments */

/* "a, b, c and 4 more" of the operation's arguments. */
static const char *argument_names(const pd_op_call_t *call, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties");
    const char *text = "";
    const char *name;
    const json_t *value;
    size_t shown = 0;

    json_object_foreach((json_t *)(uintptr_t)properties, name, value)
    {
        if (strlen(text) + strlen(name) > NAMES_BYTES) {
            break;
        }
        text = apr_pstrcat(call->pool, text, shown > 0 ? ", " : "", name, (char *)NULL);
        shown++;
    }
    if (shown < json_object_size(properties)) {
        text = apr_psprintf(call->pool, "%s and %lu more", text,
                            (unsigned long)(json_object_size(properties) - shown));
    }
    return apr_pstrcat(call->pool, "Its arguments: ", text[0] != '\0' ? text : "none", ".",
                       (char *)NULL);
}

static pd_status_t check_keys(pd_op_call_t *call, const pd_op_toolbox_values_t *values,
                              const json_t *schema, const json_t *of, const char *what)
{
    const char *key;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)of, key, value)
    {
        if (!mcp_view_schema_knows(schema, key)) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, argument_names(call, schema),
                            "Entry number %lu: a key of `%s` is neither an argument of the "
                            "operation nor a JSON Pointer to a place in one.",
                            values->number, what);
        }
    }
    return PD_OK;
}

/* What the operation's schema says of single arguments, without what it demands of all of them
 * together: a frozen value or a default is only a part. New reference. */
static json_t *arguments_alone(const json_t *schema)
{
    static const char *const kept[] = {"$schema", "$id", "$defs", "definitions", "properties"};
    json_t *made = json_object();
    size_t i;

    for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        json_t *value = json_object_get(schema, kept[i]);

        if (value != NULL && json_object_set_new(made, kept[i], json_incref(value)) != 0) {
            json_decref(made);
            return NULL;
        }
    }
    return made;
}

static int fits(const mcp_schema_t *compiled, const json_t *of)
{
    json_t *alone = json_object();
    const char *key;
    json_t *value;
    int is_valid;

    json_object_foreach((json_t *)(uintptr_t)of, key, value)
    {
        if (key[0] != '/') {
            (void)json_object_set_new(alone, key, json_incref(value)); /* else it is not judged */
        }
    }
    is_valid = mcp_schema_validate(compiled, alone, NULL) == MCP_OK;
    json_decref(alone);
    return is_valid;
}

/* Values of whole arguments against what the schema says of them. What can't be judged here is
 * judged at the call. */
static pd_status_t check_fit(pd_op_call_t *call, const pd_op_toolbox_values_t *values,
                             const json_t *schema)
{
    json_t *alone = arguments_alone(schema);
    mcp_schema_t *compiled = NULL;
    apr_pool_t *pool;
    int is_valid = 1;

    if (alone == NULL || apr_pool_create(&pool, call->pool) != APR_SUCCESS) {
        json_decref(alone);
        return PD_E_NOMEM;
    }
    if (mcp_schema_compile(alone, pool, &compiled, NULL) == MCP_OK) {
        is_valid = fits(compiled, values->defaults) && fits(compiled, values->frozen);
    }
    apr_pool_destroy(pool);
    json_decref(alone);
    if (is_valid) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                    "Compare them with the operation as connectors get shows it.",
                    "Entry number %lu: a default or frozen value is none that its argument takes.",
                    values->number);
}

static pd_status_t check_strip(pd_op_call_t *call, const pd_op_toolbox_values_t *values,
                               const json_t *schema)
{
    char why[256] = "";
    json_t *stripped = NULL;
    mcp_wire_status_t status = mcp_view_schema_strip(schema, values->frozen, values->defaults,
                                                     &stripped, why, sizeof(why));

    json_decref(stripped);
    if (status == MCP_OK) {
        return PD_OK;
    }
    if (status == MCP_E_NOMEM) {
        return PD_E_NOMEM;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, NULL,
                    "Entry number %lu: its defaults and frozen values can't be taken out of the "
                    "operation's schema: %.200s",
                    values->number, why);
}

static pd_status_t check_size(pd_op_call_t *call, const pd_op_toolbox_values_t *values)
{
    if (json_dumpb(values->defaults, NULL, 0, JSON_COMPACT) +
            json_dumpb(values->frozen, NULL, 0, JSON_COMPACT) <=
        MAX_BYTES) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, NULL,
                    "Entry number %lu: defaults and frozen values have %u bytes at most.",
                    values->number, MAX_BYTES);
}

/* Values for an operation that is gone can't be judged. */
static pd_status_t check_unjudged(pd_op_call_t *call, const pd_op_toolbox_values_t *values)
{
    if (json_equal(values->defaults, json_object_get(values->old, "defaults")) &&
        json_equal(values->frozen, json_object_get(values->old, "frozen"))) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Leave them as they are, or drop the entry.",
                    "Entry number %lu: its operation is not in the catalog any more, so new values "
                    "can't be checked.",
                    values->number);
}

pd_status_t pd_op_toolbox_values(pd_op_call_t *call, const pd_op_toolbox_values_t *values)
{
    json_t *schema = NULL;
    pd_status_t status;

    if (json_object_size(values->defaults) + json_object_size(values->frozen) == 0) {
        return PD_OK;
    }
    if (values->operation == NULL) {
        return check_unjudged(call, values);
    }
    if (mcp_json_parse(values->operation->schema, values->operation->schema_bytes, MCP_MAX_DEPTH,
                       &schema, NULL) != MCP_OK) {
        return PD_E_INTERNAL;
    }
    status = check_size(call, values);
    if (status == PD_OK) {
        status = check_keys(call, values, schema, values->frozen, "frozen");
    }
    if (status == PD_OK) {
        status = check_keys(call, values, schema, values->defaults, "defaults");
    }
    if (status == PD_OK) {
        status = check_fit(call, values, schema);
    }
    if (status == PD_OK) {
        status = check_strip(call, values, schema);
    }
    json_decref(schema);
    return status;
}
