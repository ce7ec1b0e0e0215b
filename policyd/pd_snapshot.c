/* Building, sharing and reading of snapshots: see pd_snapshot.h. */
#include "pd_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "pd_log.h"

#define PAGE 500 /* objects of one listing step */

/* --- connections ----------------------------------------------------------- */

void pd_snapshot_release(pd_connection_t **connection)
{
    pd_connection_t *gone = *connection;

    *connection = NULL;
    if (gone == NULL || --gone->refs > 0) {
        return;
    }
    pd_catalog_release(&gone->connector);
    apr_pool_destroy(gone->pool);
}

static int by_tool_name(const void *a, const void *b)
{
    return strcmp(((const pd_tool_t *)a)->name, ((const pd_tool_t *)b)->name);
}

/* Names of all operations under the connection's label. An operation that no name can be made for does not exist. */
static pd_status_t make_tools(pd_connection_t *made)
{
    const apr_array_header_t *operations = made->connector->operations;
    char name[MCP_MAX_TOOL_NAME + 1];
    int i;

    made->tools = apr_array_make(made->pool, operations->nelts, sizeof(pd_tool_t));
    made->by_name = apr_hash_make(made->pool);
    for (i = 0; i < operations->nelts; i++) {
        const pd_operation_t *operation = &APR_ARRAY_IDX(operations, i, pd_operation_t);
        pd_tool_t *tool;

        if (mcp_name_tool(made->label, made->connector->slug, operation->id, name, sizeof(name)) !=
            MCP_OK) {
            return PD_E_INVALID;
        }
        tool = apr_array_push(made->tools);
        tool->name = apr_pstrdup(made->pool, name);
        tool->operation = operation;
        tool->arg_names = NULL;
    }
    qsort(made->tools->elts, (size_t)made->tools->nelts, sizeof(pd_tool_t), by_tool_name);
    for (i = 0; i < made->tools->nelts; i++) {
        pd_tool_t *tool = &APR_ARRAY_IDX(made->tools, i, pd_tool_t);

        apr_hash_set(made->by_name, tool->name, APR_HASH_KEY_STRING, tool);
    }
    return PD_OK;
}

/* From a stored object. PD_E_NOT_FOUND when its connector is not in the snapshot. */
static pd_status_t connection_make(const pd_snapshot_t *snapshot, const pd_object_t *object,
                                   pd_connection_t **ret)
{
    const char *connector_id = mcp_json_str(object->doc, "connector");
    const char *label = mcp_json_str(object->doc, "label");
    const char *base = mcp_json_str(object->doc, "base");
    const char *state = mcp_json_str(object->doc, "state");
    pd_connector_t *connector =
        connector_id != NULL
            ? apr_hash_get(snapshot->connectors, connector_id, APR_HASH_KEY_STRING)
            : NULL;
    pd_connection_t *made;
    apr_pool_t *pool;

    if (connector == NULL || label == NULL || base == NULL || state == NULL) {
        return PD_E_NOT_FOUND;
    }
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    made->refs = 1;
    made->id = apr_pstrdup(pool, object->id);
    made->label = apr_pstrdup(pool, label);
    made->owner = object->owner != NULL ? apr_pstrdup(pool, object->owner) : NULL;
    made->base = apr_pstrdup(pool, base);
    made->is_ready = strcmp(state, "ready") == 0;
    made->is_toolbox_only = mcp_json_bool(object->doc, "toolbox_only");
    made->connector = connector;
    pd_catalog_retain(connector);
    if (make_tools(made) != PD_OK) {
        pd_snapshot_release(&made);
        return PD_E_INVALID;
    }
    *ret = made;
    return PD_OK;
}

/* --- the whole --------------------------------------------------------------- */

static pd_status_t snapshot_new(pd_snapshot_t **ret)
{
    apr_pool_t *pool;
    pd_snapshot_t *made;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    made->connectors = apr_hash_make(pool);
    made->connections = apr_hash_make(pool);
    made->left_out = apr_hash_make(pool);
    made->settings = apr_hash_make(pool);
    *ret = made;
    return PD_OK;
}

void pd_snapshot_free(pd_snapshot_t **snapshot)
{
    pd_snapshot_t *gone = *snapshot;
    apr_hash_index_t *i;

    *snapshot = NULL;
    if (gone == NULL) {
        return;
    }
    for (i = apr_hash_first(gone->pool, gone->connections); i != NULL; i = apr_hash_next(i)) {
        pd_connection_t *connection = apr_hash_this_val(i);

        pd_snapshot_release(&connection);
    }
    for (i = apr_hash_first(gone->pool, gone->connectors); i != NULL; i = apr_hash_next(i)) {
        pd_connector_t *connector = apr_hash_this_val(i);

        pd_catalog_release(&connector);
    }
    for (i = apr_hash_first(gone->pool, gone->settings); i != NULL; i = apr_hash_next(i)) {
        json_decref(apr_hash_this_val(i));
    }
    apr_pool_destroy(gone->pool);
}

static void put_connector(pd_snapshot_t *made, pd_connector_t *connector)
{
    pd_connector_t *old = apr_hash_get(made->connectors, connector->id, APR_HASH_KEY_STRING);

    apr_hash_set(made->connectors, connector->id, APR_HASH_KEY_STRING, NULL);
    apr_hash_set(made->connectors, connector->id, APR_HASH_KEY_STRING, connector);
    if (old != NULL) {
        pd_catalog_release(&old);
    }
}

static void drop_connector(pd_snapshot_t *made, const char *id)
{
    pd_connector_t *old = apr_hash_get(made->connectors, id, APR_HASH_KEY_STRING);

    apr_hash_set(made->connectors, id, APR_HASH_KEY_STRING, NULL);
    if (old != NULL) {
        pd_catalog_release(&old);
    }
}

static void drop_connection(pd_snapshot_t *made, const char *id)
{
    pd_connection_t *old = apr_hash_get(made->connections, id, APR_HASH_KEY_STRING);

    apr_hash_set(made->left_out, id, APR_HASH_KEY_STRING, NULL);
    apr_hash_set(made->connections, id, APR_HASH_KEY_STRING, NULL);
    pd_snapshot_release(&old);
}

static void leave_out(pd_snapshot_t *made, const char *id, const char *connector_id)
{
    apr_hash_set(made->left_out, apr_pstrdup(made->pool, id), APR_HASH_KEY_STRING,
                 apr_pstrdup(made->pool, connector_id));
}

static void put_setting(pd_snapshot_t *made, const pd_object_t *object)
{
    const char *key = mcp_json_str(object->doc, "key");
    json_t *value = json_object_get(object->doc, "value");
    const char *name;
    json_t *old;

    /* narrower settings (per client, per grant) are read by those who need them, with their whole key */
    if (key == NULL || value == NULL) {
        return;
    }
    name = key;
    if (mcp_json_str(object->doc, "client") != NULL) {
        name = apr_psprintf(made->pool, "%s:client:%s", key, mcp_json_str(object->doc, "client"));
    } else if (mcp_json_str(object->doc, "grant") != NULL) {
        name = apr_psprintf(made->pool, "%s:grant:%s", key, mcp_json_str(object->doc, "grant"));
    }
    old = apr_hash_get(made->settings, name, APR_HASH_KEY_STRING);
    apr_hash_set(made->settings, apr_pstrdup(made->pool, name), APR_HASH_KEY_STRING,
                 json_incref(value));
    json_decref(old);
}

static pd_status_t take_connector(pd_snapshot_t *made, const pd_object_t *object)
{
    pd_connector_t *connector = NULL;
    pd_status_t status = pd_catalog_compile(object->id, object->doc, &connector);

    if (status != PD_OK) {
        pd_log(PD_LOG_ERR, 101, "connector %s can't be compiled (%s): its tools are left out", object->id,
               pd_status_text(status));
        drop_connector(made, object->id); /* what it was before is not in force any more */
        return status == PD_E_NOMEM ? status : PD_OK;
    }
    put_connector(made, connector);
    return PD_OK;
}

static pd_status_t take_connection(pd_snapshot_t *made, const pd_object_t *object)
{
    pd_connection_t *connection = NULL;
    pd_status_t status;

    drop_connection(made, object->id);
    status = connection_make(made, object, &connection);
    if (status != PD_OK) {
        const char *connector_id = mcp_json_str(object->doc, "connector");

        pd_log(PD_LOG_ERR, 102, "connection %s can't be used (%s): its tools are left out", object->id,
               pd_status_text(status));
        leave_out(made, object->id, connector_id != NULL ? connector_id : "");
        return status == PD_E_NOMEM ? status : PD_OK;
    }
    apr_hash_set(made->connections, connection->id, APR_HASH_KEY_STRING, connection);
    return PD_OK;
}

static int by_label(const void *a, const void *b)
{
    return strcmp((*(pd_connection_t *const *)a)->label, (*(pd_connection_t *const *)b)->label);
}

static void sort_connections(apr_array_header_t *array)
{
    qsort(array->elts, (size_t)array->nelts, sizeof(pd_connection_t *), by_label);
}

/* The look-up tables, made anew for each snapshot. */
static void make_indices(pd_snapshot_t *made)
{
    apr_hash_index_t *i;

    made->shared = apr_array_make(made->pool, 16, sizeof(pd_connection_t *));
    made->by_label = apr_hash_make(made->pool);
    made->by_owner = apr_hash_make(made->pool);
    made->any_label = apr_hash_make(made->pool);
    for (i = apr_hash_first(made->pool, made->connections); i != NULL; i = apr_hash_next(i)) {
        pd_connection_t *connection = apr_hash_this_val(i);
        apr_array_header_t *own = made->shared;

        apr_hash_set(made->any_label, connection->label, APR_HASH_KEY_STRING, connection);
        if (connection->owner == NULL) {
            apr_hash_set(made->by_label, connection->label, APR_HASH_KEY_STRING, connection);
        } else {
            own = apr_hash_get(made->by_owner, connection->owner, APR_HASH_KEY_STRING);
            if (own == NULL) {
                own = apr_array_make(made->pool, 4, sizeof(pd_connection_t *));
                apr_hash_set(made->by_owner, connection->owner, APR_HASH_KEY_STRING, own);
            }
        }
        APR_ARRAY_PUSH(own, pd_connection_t *) = connection;
    }
    sort_connections(made->shared);
    for (i = apr_hash_first(made->pool, made->by_owner); i != NULL; i = apr_hash_next(i)) {
        sort_connections(apr_hash_this_val(i));
    }
}

/* Calls take for every object of a kind. */
static pd_status_t take_all(pd_tx_t *tx, pd_snapshot_t *made, const char *kind,
                            pd_status_t (*take)(pd_snapshot_t *, const pd_object_t *))
{
    const char *after = NULL;

    for (;;) {
        apr_array_header_t *page = NULL;
        pd_status_t status = pd_tx_list(tx, kind, NULL, after, PAGE, &page);
        int i;

        for (i = 0; status == PD_OK && i < page->nelts; i++) {
            const pd_object_t *object = APR_ARRAY_IDX(page, i, pd_object_t *);

            status = take(made, object);
            after = object->id;
        }
        if (status != PD_OK || page->nelts < PAGE) {
            return status;
        }
    }
}

static pd_status_t take_setting(pd_snapshot_t *made, const pd_object_t *object)
{
    put_setting(made, object);
    return PD_OK;
}

pd_status_t pd_snapshot_load(pd_tx_t *tx, pd_snapshot_t **ret)
{
    pd_snapshot_t *made = NULL;
    pd_status_t status = snapshot_new(&made);

    if (status == PD_OK) {
        made->revision = pd_tx_revision(tx);
        status = take_all(tx, made, "connector", take_connector);
    }
    if (status == PD_OK) {
        status = take_all(tx, made, "connection", take_connection);
    }
    if (status == PD_OK) {
        status = take_all(tx, made, "setting", take_setting);
    }
    if (status != PD_OK) {
        pd_snapshot_free(&made);
        return status;
    }
    make_indices(made);
    *ret = made;
    return PD_OK;
}

static pd_status_t share_parts(const pd_snapshot_t *old, pd_snapshot_t *made)
{
    apr_hash_index_t *i;

    for (i = apr_hash_first(made->pool, old->connectors); i != NULL; i = apr_hash_next(i)) {
        pd_connector_t *connector = apr_hash_this_val(i);

        pd_catalog_retain(connector);
        apr_hash_set(made->connectors, connector->id, APR_HASH_KEY_STRING, connector);
    }
    for (i = apr_hash_first(made->pool, old->connections); i != NULL; i = apr_hash_next(i)) {
        pd_connection_t *connection = apr_hash_this_val(i);

        connection->refs++;
        apr_hash_set(made->connections, connection->id, APR_HASH_KEY_STRING, connection);
    }
    for (i = apr_hash_first(made->pool, old->left_out); i != NULL; i = apr_hash_next(i)) {
        leave_out(made, apr_hash_this_key(i), apr_hash_this_val(i));
    }
    for (i = apr_hash_first(made->pool, old->settings); i != NULL; i = apr_hash_next(i)) {
        apr_hash_set(made->settings, apr_pstrdup(made->pool, apr_hash_this_key(i)),
                     APR_HASH_KEY_STRING, json_incref(apr_hash_this_val(i)));
    }
    return PD_OK;
}

/* Ids of the connections made from a connector, or left out for want of it: collected first, since replacing one changes the
 * tables. */
static apr_array_header_t *connections_of(const pd_snapshot_t *made, const char *connector_id,
                                          apr_pool_t *pool)
{
    apr_array_header_t *ids = apr_array_make(pool, 8, sizeof(const char *));
    apr_hash_index_t *i;

    for (i = apr_hash_first(pool, made->connections); i != NULL; i = apr_hash_next(i)) {
        const pd_connection_t *connection = apr_hash_this_val(i);

        if (strcmp(connection->connector->id, connector_id) == 0) {
            APR_ARRAY_PUSH(ids, const char *) = apr_pstrdup(pool, connection->id);
        }
    }
    for (i = apr_hash_first(pool, made->left_out); i != NULL; i = apr_hash_next(i)) {
        if (strcmp(apr_hash_this_val(i), connector_id) == 0) {
            APR_ARRAY_PUSH(ids, const char *) = apr_pstrdup(pool, apr_hash_this_key(i));
        }
    }
    return ids;
}

static pd_status_t follow_connection(pd_tx_t *tx, pd_snapshot_t *made, const char *id)
{
    pd_object_t *object = NULL;
    pd_status_t status = pd_tx_get(tx, "connection", id, &object);

    if (status == PD_E_NOT_FOUND) {
        drop_connection(made, id);
        return PD_OK;
    }
    return status == PD_OK ? take_connection(made, object) : status;
}

/* A connector changed: its connections are made of it and follow. */
static pd_status_t follow_connector(pd_tx_t *tx, pd_snapshot_t *made, const char *id)
{
    apr_array_header_t *ids = connections_of(made, id, pd_tx_pool(tx));
    pd_object_t *object = NULL;
    pd_status_t status = pd_tx_get(tx, "connector", id, &object);
    int i;

    if (status == PD_E_NOT_FOUND) {
        drop_connector(made, id);
        status = PD_OK;
    } else if (status == PD_OK) {
        status = take_connector(made, object);
    }
    for (i = 0; status == PD_OK && i < ids->nelts; i++) {
        status = follow_connection(tx, made, APR_ARRAY_IDX(ids, i, const char *));
    }
    return status;
}

static pd_status_t follow_settings(pd_tx_t *tx, pd_snapshot_t *made)
{
    apr_hash_index_t *i;

    for (i = apr_hash_first(made->pool, made->settings); i != NULL; i = apr_hash_next(i)) {
        json_decref(apr_hash_this_val(i));
    }
    apr_hash_clear(made->settings);
    return take_all(tx, made, "setting", take_setting);
}

pd_status_t pd_snapshot_follow(pd_tx_t *tx, const pd_snapshot_t *old, pd_snapshot_t **ret)
{
    apr_array_header_t *changes = NULL;
    pd_snapshot_t *made = NULL;
    int settings_changed = 0;
    pd_status_t status = pd_tx_changes(tx, old->revision, &changes);
    int i;

    if (status == PD_E_REVISION) { /* the log of changes does not reach back so far */
        return pd_snapshot_load(tx, ret);
    }
    if (status == PD_OK) {
        status = snapshot_new(&made);
    }
    if (status == PD_OK) {
        made->revision = pd_tx_revision(tx);
        status = share_parts(old, made);
    }
    for (i = 0; status == PD_OK && i < changes->nelts; i++) {
        const pd_change_t *change = &APR_ARRAY_IDX(changes, i, pd_change_t);

        if (strcmp(change->kind, "connector") == 0) {
            status = follow_connector(tx, made, change->id);
        }
    }
    /* connections after all connectors: a new one may stand on a connector that changed later than it */
    for (i = 0; status == PD_OK && i < changes->nelts; i++) {
        const pd_change_t *change = &APR_ARRAY_IDX(changes, i, pd_change_t);

        if (strcmp(change->kind, "connection") == 0) {
            status = follow_connection(tx, made, change->id);
        } else if (strcmp(change->kind, "setting") == 0) {
            settings_changed = 1;
        }
    }
    if (status == PD_OK && settings_changed) {
        status = follow_settings(tx, made);
    }
    if (status != PD_OK) {
        pd_snapshot_free(&made);
        return status;
    }
    make_indices(made);
    *ret = made;
    return PD_OK;
}

/* --- reading ----------------------------------------------------------------- */

const apr_array_header_t *pd_snapshot_own(const pd_snapshot_t *snapshot, const char *member_id)
{
    return member_id != NULL ? apr_hash_get(snapshot->by_owner, member_id, APR_HASH_KEY_STRING)
                             : NULL;
}

pd_connection_t *pd_snapshot_reach(const pd_snapshot_t *snapshot, const char *member_id,
                                   const char *label, size_t label_bytes)
{
    const apr_array_header_t *own = pd_snapshot_own(snapshot, member_id);
    int i;

    for (i = 0; own != NULL && i < own->nelts; i++) {
        pd_connection_t *connection = APR_ARRAY_IDX(own, i, pd_connection_t *);

        if (strlen(connection->label) == label_bytes &&
            memcmp(connection->label, label, label_bytes) == 0) {
            return connection;
        }
    }
    return apr_hash_get(snapshot->by_label, label, (apr_ssize_t)label_bytes);
}

pd_tool_t *pd_snapshot_tool(const pd_connection_t *connection, const char *name)
{
    return apr_hash_get(connection->by_name, name, APR_HASH_KEY_STRING);
}

const char *pd_snapshot_setting(const pd_snapshot_t *snapshot, const char *key, const char *otherwise)
{
    const json_t *value = apr_hash_get(snapshot->settings, key, APR_HASH_KEY_STRING);

    return json_is_string(value) ? json_string_value(value) : otherwise;
}

int64_t pd_snapshot_setting_int(const pd_snapshot_t *snapshot, const char *key, int64_t otherwise)
{
    const json_t *value = apr_hash_get(snapshot->settings, key, APR_HASH_KEY_STRING);

    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}
