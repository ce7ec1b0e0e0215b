/* The ground of a snapshot: connectors, and the connections with the tools that are made of both. See pd_snapshot.h. */
#include "pd_snapshot_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_atomic.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "pd_log.h"

/* --- connections ----------------------------------------------------------- */

void pd_snapshot_retain(pd_connection_t *connection)
{
    if (connection != NULL) {
        (void)apr_atomic_inc32(&connection->refs); /* the count before is nobody's business */
    }
}

void pd_snapshot_release(pd_connection_t **connection)
{
    pd_connection_t *gone = *connection;

    *connection = NULL;
    if (gone == NULL || apr_atomic_dec32(&gone->refs) != 0) {
        return;
    }
    pd_catalog_release(&gone->connector);
    apr_pool_destroy(gone->pool);
}

static int by_tool_name(const void *a, const void *b)
{
    return strcmp(((const pd_tool_t *)a)->name, ((const pd_tool_t *)b)->name);
}

typedef struct hashed {
    apr_uint32_t hash;
    int tool;
} hashed_t;

static int by_hash(const void *a, const void *b)
{
    const hashed_t *x = a;
    const hashed_t *y = b;

    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : x->tool - y->tool;
}

void pd_snapshot_index(pd_connection_t *made)
{
    size_t count = (size_t)made->tools->nelts;
    hashed_t *all = apr_pcalloc(made->pool, (count + 1) * sizeof(*all));
    apr_uint32_t *hashes = apr_pcalloc(made->pool, (count + 1) * sizeof(*hashes));
    pd_place_t *places = apr_pcalloc(made->pool, (count + 1) * sizeof(*places));
    int i;

    made->by_name = apr_hash_make(made->pool);
    for (i = 0; i < made->tools->nelts; i++) {
        pd_tool_t *tool = &APR_ARRAY_IDX(made->tools, i, pd_tool_t);

        apr_hash_set(made->by_name, tool->name, APR_HASH_KEY_STRING, tool);
        all[i] = (hashed_t){pd_rule_hash(tool->operation->id), i};
    }
    qsort(all, count, sizeof(*all), by_hash);
    for (i = 0; i < made->tools->nelts; i++) {
        const pd_operation_t *operation = APR_ARRAY_IDX(made->tools, all[i].tool, pd_tool_t).operation;

        hashes[i] = all[i].hash;
        places[i] = (pd_place_t){all[i].tool, operation, operation->id};
    }
    made->hashes = hashes;
    made->places = places;
}

/* Names of all operations under the connection's label. A connection that a name can't be made for does not exist. */
static pd_status_t make_tools(pd_connection_t *made)
{
    const apr_array_header_t *operations = made->connector->operations;
    char name[MCP_MAX_TOOL_NAME + 1];
    int i;

    made->tools = apr_array_make(made->pool, operations->nelts, sizeof(pd_tool_t));
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
    pd_snapshot_index(made);
    return PD_OK;
}

/* From a stored object. PD_E_NOT_FOUND when its connector is not in the ground. */
static pd_status_t connection_make(const pd_ground_t *ground, const pd_object_t *object,
                                   pd_connection_t **ret)
{
    const char *connector_id = mcp_json_str(object->doc, "connector");
    const char *label = mcp_json_str(object->doc, "label");
    const char *base = mcp_json_str(object->doc, "base");
    const char *state = mcp_json_str(object->doc, "state");
    pd_connector_t *connector =
        connector_id != NULL ? apr_hash_get(ground->connectors, connector_id, APR_HASH_KEY_STRING)
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

/* --- the block --------------------------------------------------------------- */

static pd_status_t ground_new(pd_ground_t **ret)
{
    apr_pool_t *pool;
    pd_ground_t *made;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    made->refs = 1;
    made->connectors = apr_hash_make(pool);
    made->connections = apr_hash_make(pool);
    made->left_out = apr_hash_make(pool);
    *ret = made;
    return PD_OK;
}

void pd_ground_release(pd_ground_t **ground)
{
    pd_ground_t *gone = *ground;
    apr_hash_index_t *i;

    *ground = NULL;
    if (gone == NULL || apr_atomic_dec32(&gone->refs) != 0) {
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
    apr_pool_destroy(gone->pool);
}

static void drop_connector(pd_ground_t *made, const char *id)
{
    pd_connector_t *old = apr_hash_get(made->connectors, id, APR_HASH_KEY_STRING);

    apr_hash_set(made->connectors, id, APR_HASH_KEY_STRING, NULL);
    if (old != NULL) {
        pd_catalog_release(&old);
    }
}

static void drop_connection(pd_ground_t *made, const char *id)
{
    pd_connection_t *old = apr_hash_get(made->connections, id, APR_HASH_KEY_STRING);

    apr_hash_set(made->left_out, id, APR_HASH_KEY_STRING, NULL);
    apr_hash_set(made->connections, id, APR_HASH_KEY_STRING, NULL);
    pd_snapshot_release(&old);
}

static void leave_out(pd_ground_t *made, const char *id, const char *connector_id)
{
    apr_hash_set(made->left_out, apr_pstrdup(made->pool, id), APR_HASH_KEY_STRING,
                 apr_pstrdup(made->pool, connector_id));
}

static pd_status_t take_compiled(void *building, const char *id, pd_status_t status,
                                 pd_connector_t *connector)
{
    pd_ground_t *made = building;

    drop_connector(made, id); /* what it was before is not in force any more */
    if (status != PD_OK) {
        pd_log(PD_LOG_ERR, 101, "connector %s can't be compiled (%s): its tools are left out", id,
               pd_status_text(status));
        return status == PD_E_NOMEM ? status : PD_OK;
    }
    apr_hash_set(made->connectors, connector->id, APR_HASH_KEY_STRING, connector);
    return PD_OK;
}

static pd_status_t take_connector(void *building, const pd_object_t *object)
{
    pd_connector_t *connector = NULL;
    pd_status_t status = pd_catalog_compile(object->id, object->doc, &connector);

    return take_compiled(building, object->id, status, connector);
}

static pd_status_t take_connection(void *building, const pd_object_t *object)
{
    pd_ground_t *made = building;
    pd_connection_t *connection = NULL;
    pd_status_t status;

    drop_connection(made, object->id);
    status = connection_make(made, object, &connection);
    if (status != PD_OK) {
        const char *connector_id = mcp_json_str(object->doc, "connector");

        pd_log(PD_LOG_ERR, 102, "connection %s can't be used (%s): its tools are left out",
               object->id, pd_status_text(status));
        leave_out(made, object->id, connector_id != NULL ? connector_id : "");
        return status == PD_E_NOMEM ? status : PD_OK;
    }
    apr_hash_set(made->connections, connection->id, APR_HASH_KEY_STRING, connection);
    return PD_OK;
}

/* --- look-up tables, made anew for each block ---------------------------------- */

/* Ids decide between two that share a label: the order is the same however the block came about. */
static int by_label_and_id(const void *a, const void *b)
{
    const pd_connection_t *x = *(pd_connection_t *const *)a;
    const pd_connection_t *y = *(pd_connection_t *const *)b;
    int order = strcmp(x->label, y->label);

    return order != 0 ? order : strcmp(x->id, y->id);
}

static apr_array_header_t *sorted_connections(const pd_ground_t *made, apr_pool_t *pool)
{
    apr_array_header_t *all =
        apr_array_make(pool, (int)apr_hash_count(made->connections) + 1, sizeof(pd_connection_t *));
    apr_hash_index_t *i;

    for (i = apr_hash_first(pool, made->connections); i != NULL; i = apr_hash_next(i)) {
        APR_ARRAY_PUSH(all, pd_connection_t *) = apr_hash_this_val(i);
    }
    qsort(all->elts, (size_t)all->nelts, sizeof(pd_connection_t *), by_label_and_id);
    return all;
}

/* The list under a key, made where there is none. key is not copied. */
static apr_array_header_t *list_of(const pd_ground_t *made, apr_hash_t *lists, const char *key)
{
    apr_array_header_t *list = apr_hash_get(lists, key, APR_HASH_KEY_STRING);

    if (list == NULL) {
        list = apr_array_make(made->pool, 1, sizeof(pd_connection_t *));
        apr_hash_set(lists, key, APR_HASH_KEY_STRING, list);
    }
    return list;
}

static void add_once(apr_array_header_t *list, pd_connection_t *connection)
{
    int i;

    for (i = 0; i < list->nelts; i++) {
        if (APR_ARRAY_IDX(list, i, const pd_connection_t *)->connector == connection->connector) {
            return;
        }
    }
    APR_ARRAY_PUSH(list, pd_connection_t *) = connection;
}

/* Called in the order of labels and ids. */
static void index_connection(pd_ground_t *made, pd_connection_t *connection)
{
    apr_array_header_t *list = made->shared;

    add_once(list_of(made, made->any_label, connection->label), connection);
    if (connection->owner != NULL) {
        list = list_of(made, made->by_owner, connection->owner);
    } else if (apr_hash_get(made->by_label, connection->label, APR_HASH_KEY_STRING) == NULL) {
        apr_hash_set(made->by_label, connection->label, APR_HASH_KEY_STRING, connection);
    }
    APR_ARRAY_PUSH(list, pd_connection_t *) = connection;
}

static int by_slug(const void *a, const void *b)
{
    const pd_connector_t *x = *(pd_connector_t *const *)a;
    const pd_connector_t *y = *(pd_connector_t *const *)b;
    int order = strcmp(x->slug, y->slug);

    return order != 0 ? order : strcmp(x->id, y->id);
}

static void index_unshared(pd_ground_t *made, apr_pool_t *scratch)
{
    apr_hash_t *shared = apr_hash_make(scratch);
    apr_hash_index_t *i;
    int k;

    made->unshared = apr_array_make(made->pool, 4, sizeof(pd_connector_t *));
    for (k = 0; k < made->shared->nelts; k++) {
        const pd_connector_t *connector =
            APR_ARRAY_IDX(made->shared, k, const pd_connection_t *)->connector;

        apr_hash_set(shared, connector->id, APR_HASH_KEY_STRING, connector);
    }
    for (i = apr_hash_first(scratch, made->connectors); i != NULL; i = apr_hash_next(i)) {
        pd_connector_t *connector = apr_hash_this_val(i);

        if (apr_hash_get(shared, connector->id, APR_HASH_KEY_STRING) == NULL) {
            APR_ARRAY_PUSH(made->unshared, pd_connector_t *) = connector;
        }
    }
    qsort(made->unshared->elts, (size_t)made->unshared->nelts, sizeof(pd_connector_t *), by_slug);
}

/* scratch: of the unit. */
static void make_indices(pd_ground_t *made, apr_pool_t *scratch)
{
    apr_array_header_t *all = sorted_connections(made, scratch);
    apr_hash_index_t *i;
    int k;

    made->by_slug = apr_hash_make(made->pool);
    made->shared = apr_array_make(made->pool, 16, sizeof(pd_connection_t *));
    made->by_label = apr_hash_make(made->pool);
    made->by_owner = apr_hash_make(made->pool);
    made->any_label = apr_hash_make(made->pool);
    for (k = 0; k < all->nelts; k++) {
        index_connection(made, APR_ARRAY_IDX(all, k, pd_connection_t *));
    }
    index_unshared(made, scratch);
    for (i = apr_hash_first(scratch, made->connectors); i != NULL; i = apr_hash_next(i)) {
        pd_connector_t *connector = apr_hash_this_val(i);
        const pd_connector_t *other =
            apr_hash_get(made->by_slug, connector->slug, APR_HASH_KEY_STRING);

        if (other == NULL || strcmp(connector->id, other->id) < 0) { /* the store lets no two share one */
            apr_hash_set(made->by_slug, connector->slug, APR_HASH_KEY_STRING, NULL);
            apr_hash_set(made->by_slug, connector->slug, APR_HASH_KEY_STRING, connector);
        }
    }
}

/* --- load and follow -------------------------------------------------------------- */

/* Hands the block out, or gives it up. */
static pd_status_t ground_done(pd_tx_t *tx, pd_status_t status, pd_ground_t *made, pd_ground_t **ret)
{
    if (status != PD_OK) {
        pd_ground_release(&made);
        return status;
    }
    make_indices(made, pd_tx_pool(tx));
    *ret = made;
    return PD_OK;
}

pd_status_t pd_ground_load(pd_tx_t *tx, pd_ground_t **ret)
{
    pd_ground_t *made = NULL;
    pd_status_t status = ground_new(&made);

    if (status == PD_OK) {
        status = pd_ground_compile(tx, take_compiled, made);
    }
    if (status == PD_OK) {
        status = pd_snapshot_take_all(tx, PD_KIND_CONNECTION, take_connection, made);
    }
    return ground_done(tx, status, made, ret);
}

/* The tables of `old`, with one reference more to each part. Keys lie in the parts. */
static void share_parts(const pd_ground_t *old, pd_ground_t *made, apr_pool_t *scratch)
{
    apr_hash_index_t *i;

    made->connectors = apr_hash_copy(made->pool, old->connectors);
    made->connections = apr_hash_copy(made->pool, old->connections);
    for (i = apr_hash_first(scratch, made->connectors); i != NULL; i = apr_hash_next(i)) {
        pd_catalog_retain(apr_hash_this_val(i));
    }
    for (i = apr_hash_first(scratch, made->connections); i != NULL; i = apr_hash_next(i)) {
        pd_snapshot_retain(apr_hash_this_val(i));
    }
    for (i = apr_hash_first(scratch, old->left_out); i != NULL; i = apr_hash_next(i)) {
        leave_out(made, apr_hash_this_key(i), apr_hash_this_val(i));
    }
}

/* Ids of the connections made from a connector, or left out for want of it: collected first, since replacing one changes the
 * tables. */
static apr_array_header_t *connections_of(const pd_ground_t *made, const char *connector_id,
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

static pd_status_t follow_connection(pd_tx_t *tx, pd_ground_t *made, const char *id)
{
    pd_object_t *object = NULL;
    pd_status_t status = pd_tx_get(tx, PD_KIND_CONNECTION, id, &object);

    if (status == PD_E_NOT_FOUND) {
        drop_connection(made, id);
        return PD_OK;
    }
    return status == PD_OK ? take_connection(made, object) : status;
}

/* A connector changed: its connections are made of it and follow. */
static pd_status_t follow_connector(pd_tx_t *tx, pd_ground_t *made, const char *id)
{
    apr_array_header_t *ids = connections_of(made, id, pd_tx_pool(tx));
    pd_object_t *object = NULL;
    pd_status_t status = pd_tx_get(tx, PD_KIND_CONNECTOR, id, &object);
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

static pd_status_t follow_kind(pd_tx_t *tx, pd_ground_t *made, const apr_array_header_t *changes,
                               const char *kind,
                               pd_status_t (*follow)(pd_tx_t *, pd_ground_t *, const char *))
{
    pd_status_t status = PD_OK;
    int i;

    for (i = 0; status == PD_OK && i < changes->nelts; i++) {
        const pd_change_t *change = &APR_ARRAY_IDX(changes, i, pd_change_t);

        if (strcmp(change->kind, kind) == 0) {
            status = follow(tx, made, change->id);
        }
    }
    return status;
}

pd_status_t pd_ground_follow(pd_tx_t *tx, pd_ground_t *old, const apr_array_header_t *changes,
                             pd_ground_t **ret)
{
    pd_ground_t *made = NULL;
    pd_status_t status;

    if (!pd_snapshot_is_touched(changes, PD_KIND_CONNECTOR) &&
        !pd_snapshot_is_touched(changes, PD_KIND_CONNECTION)) {
        (void)apr_atomic_inc32(&old->refs); /* the count before is nobody's business */
        *ret = old;
        return PD_OK;
    }
    status = ground_new(&made);
    if (status != PD_OK) {
        return status;
    }
    share_parts(old, made, pd_tx_pool(tx));
    status = follow_kind(tx, made, changes, PD_KIND_CONNECTOR, follow_connector);
    /* connections after all connectors: a new one may stand on a connector that changed later than it */
    if (status == PD_OK) {
        status = follow_kind(tx, made, changes, PD_KIND_CONNECTION, follow_connection);
    }
    return ground_done(tx, status, made, ret);
}
