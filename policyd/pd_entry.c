/* Making of advertised entries: see pd_entry.h. */
#include "pd_entry.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/view_schema.h"
#include "pd_log.h"

/* What an entry is without its connections, kept in the entry for the operation's digest. */
typedef struct made {
    apr_pool_t *pool; /* below the toolbox's */
    char operation[MCP_DIGEST_HEX + 1];
    const json_t *stripped; /* freed with the pool */
} made_t;

#define MADE "made"

static apr_status_t decref(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

int pd_entry_is_merged(const pd_entry_t *entry)
{
    return entry->is_own || entry->connection_ids->nelts > 1;
}

/* The operation's schema without what is frozen and with the defaults told; new reference. */
static pd_status_t strip(const pd_entry_t *entry, const pd_operation_t *operation, json_t **ret)
{
    char why[256] = "";
    json_t *schema = NULL;
    mcp_wire_status_t status;

    if (mcp_json_parse(operation->schema, operation->schema_bytes, MCP_MAX_DEPTH, &schema, NULL) !=
        MCP_OK) {
        return PD_E_INTERNAL;
    }
    status = mcp_view_schema_strip(schema, entry->frozen, entry->defaults, ret, why, sizeof(why));
    json_decref(schema);
    if (status == MCP_OK) {
        return PD_OK;
    }
    pd_log(PD_LOG_WARNING, 146, "entry %s of toolbox %s does not fit its operation any more: left out",
           entry->id, entry->toolbox->id);
    return status == MCP_E_NOMEM ? PD_E_NOMEM : PD_E_INVALID;
}

static pd_status_t make(pd_entry_t *entry, const pd_operation_t *operation, const made_t **ret)
{
    made_t *made = apr_hash_get(entry->made, MADE, APR_HASH_KEY_STRING);
    json_t *stripped = NULL;
    apr_pool_t *pool;
    pd_status_t status;

    if (made != NULL && strcmp(made->operation, operation->digest) == 0) {
        *ret = made;
        return PD_OK;
    }
    status = strip(entry, operation, &stripped);
    if (status != PD_OK) {
        return status;
    }
    if (apr_pool_create(&pool, entry->toolbox->pool) != APR_SUCCESS) {
        json_decref(stripped);
        return PD_E_NOMEM;
    }
    apr_pool_cleanup_register(pool, stripped, decref, apr_pool_cleanup_null);
    apr_hash_set(entry->made, MADE, APR_HASH_KEY_STRING, NULL);
    if (made != NULL) {
        apr_pool_destroy(made->pool);
    }
    made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    memcpy(made->operation, operation->digest, sizeof(made->operation));
    made->stripped = stripped;
    apr_hash_set(entry->made, MADE, APR_HASH_KEY_STRING, made);
    *ret = made;
    return PD_OK;
}

/* Labels of the connections, in their order; new reference. */
static json_t *labels_of(const apr_array_header_t *connections)
{
    json_t *labels = json_array();
    int i;

    for (i = 0; i < connections->nelts; i++) {
        json_array_append_new(labels,
                              json_string(APR_ARRAY_IDX(connections, i, pd_connection_t *)->label));
    }
    return labels;
}

/* Adds the choosing argument, and keeps under which name the operation's own argument of that name goes. */
static pd_status_t add_choice(const pd_found_t *found, json_t *schema, apr_pool_t *pool,
                              pd_advertised_t *made)
{
    char renamed[MCP_VIEW_SCHEMA_NAME] = "";
    json_t *labels = labels_of(found->connections);
    json_t *rename;
    mcp_wire_status_t status = mcp_view_schema_choose(schema, labels, found->connections->nelts > 1,
                                                      renamed);

    json_decref(labels);
    if (status != MCP_OK) {
        return status == MCP_E_NOMEM ? PD_E_NOMEM : PD_E_INVALID;
    }
    rename = json_pack("{s:n}", PD_ENTRY_CHOICE);
    if (rename == NULL) {
        return PD_E_NOMEM;
    }
    apr_pool_cleanup_register(pool, rename, decref, apr_pool_cleanup_null);
    if (renamed[0] != '\0' &&
        json_object_set_new(rename, renamed, json_string(PD_ENTRY_CHOICE)) != 0) {
        return PD_E_NOMEM;
    }
    made->rename = rename;
    return PD_OK;
}

static const char *describe(const pd_found_t *found, apr_pool_t *pool)
{
    const pd_operation_t *operation = found->operation;
    const char *text = found->entry->description;
    char suffix[3 * (MCP_MAX_LABEL + 1) + 64];
    json_t *labels;

    if (text == NULL) {
        text = operation->description != NULL && operation->description[0] != '\0'
                   ? operation->description
                   : operation->id;
    }
    if (pd_entry_is_merged(found->entry)) {
        labels = labels_of(found->connections);
        if (mcp_view_schema_text_choose(labels, suffix, sizeof(suffix)) == MCP_OK) {
            text = apr_pstrcat(pool, text, " ", suffix, NULL);
        }
        json_decref(labels);
    }
    return json_object_size(found->entry->frozen) > 0
               ? apr_pstrcat(pool, text, " ", mcp_view_schema_text_frozen(), NULL)
               : text;
}

static pd_status_t finish(json_t *schema, apr_pool_t *pool, pd_advertised_t *made)
{
    const json_t *properties = json_object_get(schema, "properties");
    char *text = mcp_json_text(schema, &made->schema_bytes);
    const char *name;
    const json_t *value;

    if (text == NULL) {
        return PD_E_NOMEM;
    }
    made->schema = apr_pstrmemdup(pool, text, made->schema_bytes);
    free(text);
    made->blob = apr_pstrcat(pool, "{\"schema\":", made->schema, "}", NULL);
    made->blob_bytes = strlen(made->blob);
    mcp_digest_hex(made->blob, made->blob_bytes, made->digest);
    made->arg_names = apr_hash_make(pool);
    json_object_foreach((json_t *)(uintptr_t)properties, name, value)
    {
        const char *kept = apr_pstrdup(pool, name);

        apr_hash_set(made->arg_names, kept, APR_HASH_KEY_STRING, kept);
    }
    return PD_OK;
}

pd_status_t pd_entry_advertise(const pd_found_t *found, apr_pool_t *pool, const pd_advertised_t **ret)
{
    const made_t *base = NULL;
    pd_advertised_t *made;
    json_t *schema;
    pd_status_t status = make(found->entry, found->operation, &base);

    if (status != PD_OK) {
        return status;
    }
    made = apr_pcalloc(pool, sizeof(*made));
    schema = json_deep_copy(base->stripped);
    if (schema == NULL) {
        return PD_E_NOMEM;
    }
    if (pd_entry_is_merged(found->entry)) {
        status = add_choice(found, schema, pool, made);
    }
    if (status == PD_OK) {
        status = finish(schema, pool, made);
    }
    json_decref(schema);
    if (status != PD_OK) {
        return status;
    }
    made->description = describe(found, pool);
    *ret = made;
    return PD_OK;
}

pd_status_t pd_entry_advertise_apart(const pd_found_t *found, apr_pool_t *pool, const pd_advertised_t **ret)
{
    pd_toolbox_t toolbox = *found->toolbox;
    pd_entry_t entry = *found->entry;
    pd_found_t apart = *found;

    toolbox.pool = pool;
    entry.toolbox = &toolbox;
    entry.made = apr_hash_make(pool);
    apart.entry = &entry;
    apart.toolbox = &toolbox;
    return pd_entry_advertise(&apart, pool, ret);
}
