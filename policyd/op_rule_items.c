/* From named items to stored ones: see op_rule_items.h. */
#include "op_rule_items.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "op_find.h"
#include "pd_snapshot.h"

#define LOOK_EVERY 256 /* items between looks at the clock */
#define LABELS "op_rule_items labels"

/* One judgement. */
typedef struct judging {
    pd_op_call_t *call;
    pd_effect_t effect;
    apr_hash_t *kept;  /* "CONNECTOR OPERATION" or "CONNECTOR" of an old item or pin, by id and by
                           * slug -> itself */
    apr_hash_t *names; /* tool name of an old item -> its pins */
    apr_hash_t *seen;  /* items that stand already: key -> stored json_t * */
    json_t *items;
    json_t *warnings;
    size_t count;  /* items and pins */
    size_t number; /* of the item at work, from 1 */
} judging_t;

/* What one item or pin comes down to. */
typedef struct pinned {
    const char *connector_id;
    const char *slug;
    const char *operation; /* NULL: the whole connector */
} pinned_t;

static pd_status_t warn(judging_t *j, const char *text)
{
    return json_array_append_new(j->warnings, json_string(text)) == 0 ? PD_OK : PD_E_NOMEM;
}

static const char *pair_key(apr_pool_t *pool, const char *connector, const char *operation)
{
    return operation != NULL ? apr_pstrcat(pool, connector, " ", operation, (char *)NULL)
                             : connector;
}

/* --- what the rule holds already ------------------------------------------------- */

static void keep_pin(judging_t *j, const json_t *item)
{
    apr_pool_t *pool = j->call->pool;
    const char *id = mcp_json_str(item, "connector");
    const char *slug = mcp_json_str(item, "slug");
    const char *operation = mcp_json_str(item, "operation");

    if (id == NULL || slug == NULL) {
        return;
    }
    apr_hash_set(j->kept, pair_key(pool, id, operation), APR_HASH_KEY_STRING, item);
    apr_hash_set(j->kept, pair_key(pool, slug, operation), APR_HASH_KEY_STRING, item);
}

static void keep_old(judging_t *j, const json_t *old)
{
    const json_t *item;
    const json_t *pin;
    size_t i;
    size_t k;

    json_array_foreach(old, i, item)
    {
        const json_t *pins = json_object_get(item, "pins");
        const char *tool = mcp_json_str(item, "tool");

        if (tool == NULL) {
            keep_pin(j, item);
        } else {
            apr_hash_set(j->names, tool, APR_HASH_KEY_STRING, pins);
        }
        json_array_foreach(pins, k, pin)
        {
            keep_pin(j, pin);
        }
    }
}

/* --- pinning --------------------------------------------------------------------- */

static const pd_connector_t *find_connector(const pd_snapshot_t *snapshot, const char *named)
{
    const pd_connector_t *found = pd_snapshot_connector(snapshot, named);

    return found != NULL ? found
                         : apr_hash_get(snapshot->ground->by_slug, named, APR_HASH_KEY_STRING);
}

/* A connector and perhaps an operation of it, as named, to stable ids. */
static pd_status_t pin(judging_t *j, const char *named, const char *operation, pinned_t *ret)
{
    pd_op_call_t *call = j->call;
    const pd_connector_t *connector = find_connector(call->snapshot, named);
    const json_t *old =
        apr_hash_get(j->kept, pair_key(call->pool, named, operation), APR_HASH_KEY_STRING);

    if (connector != NULL &&
        (operation == NULL || pd_catalog_operation(connector, operation) != NULL)) {
        *ret = (pinned_t){connector->id, connector->slug, operation};
        return PD_OK;
    }
    if (old != NULL) {
        *ret = (pinned_t){mcp_json_str(old, "connector"), mcp_json_str(old, "slug"), operation};
        return PD_OK;
    }
    if (connector == NULL) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connectors list shows them.",
                        "Item number %lu: there is no connector \"%s\".", (unsigned long)j->number,
                        named);
    }
    return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connectors get shows its operations.",
                    "Item number %lu: the connector %s has no operation \"%s\".",
                    (unsigned long)j->number, connector->slug, operation);
}

static json_t *pinned_json(const pinned_t *pinned)
{
    return json_pack("{s:s, s:s, s:s*}", "connector", pinned->connector_id, "slug", pinned->slug,
                     "operation", pinned->operation);
}

static pd_status_t count_one(judging_t *j)
{
    if (++j->count <= PD_MAX_ITEMS) {
        return PD_OK;
    }
    return pd_fault(&j->call->fault, MCP_CODE_INVALID_REQUEST,
                    "Name whole connectors, or split it into several rules.",
                    "A restriction has at most %d items, pinned operations counted in.",
                    PD_MAX_ITEMS);
}

/* Adds an item unless it stands already; stolen. */
static pd_status_t add_item(judging_t *j, const char *key, json_t *item)
{
    pd_status_t status;

    if (item == NULL) {
        return PD_E_NOMEM;
    }
    if (apr_hash_get(j->seen, key, APR_HASH_KEY_STRING) != NULL) {
        json_decref(item);
        return PD_OK;
    }
    status = count_one(j);
    if (status != PD_OK) {
        json_decref(item);
        return status;
    }
    apr_hash_set(j->seen, key, APR_HASH_KEY_STRING, item);
    return json_array_append_new(j->items, item) == 0 ? PD_OK : PD_E_NOMEM;
}

/* --- names ----------------------------------------------------------------------- */

/* Connections by label (label -> array of pd_connection_t *), one for each connector: others of
 * that label and connector give the same names to the same operations. Made once a call. */
static apr_hash_t *labels(const pd_op_call_t *call)
{
    apr_hash_t *by_label;
    apr_hash_index_t *i;
    void *made = NULL;

    if (apr_pool_userdata_get(&made, LABELS, call->pool) == APR_SUCCESS && made != NULL) {
        return made;
    }
    by_label = apr_hash_make(call->pool);
    for (i = apr_hash_first(call->pool, call->snapshot->ground->connections); i != NULL;
         i = apr_hash_next(i)) {
        const pd_connection_t *connection = apr_hash_this_val(i);
        apr_array_header_t *same = apr_hash_get(by_label, connection->label, APR_HASH_KEY_STRING);
        int k;

        if (same == NULL) {
            same = apr_array_make(call->pool, 1, sizeof(pd_connection_t *));
            apr_hash_set(by_label, connection->label, APR_HASH_KEY_STRING, same);
        }
        for (k = 0; k < same->nelts; k++) {
            if (strcmp(APR_ARRAY_IDX(same, k, const pd_connection_t *)->connector->id,
                       connection->connector->id) == 0) {
                break;
            }
        }
        if (k == same->nelts) {
            APR_ARRAY_PUSH(same, const pd_connection_t *) = connection;
        }
    }
    (void)apr_pool_userdata_setn(by_label, LABELS, NULL, call->pool); /* else it is made again */
    return by_label;
}

/* The {account} of a tool's name, or NULL. A label has no underscore, so the first two end it. */
static const char *account_of(const char *name, apr_pool_t *pool)
{
    const char *end = strstr(name, "__");

    return end != NULL ? apr_pstrmemdup(pool, name, (apr_size_t)(end - name)) : NULL;
}

/* What bears the name now, as an array of pinned_t. */
static apr_array_header_t *bearers(const pd_op_call_t *call, const char *name)
{
    apr_array_header_t *found = apr_array_make(call->pool, 2, sizeof(pinned_t));
    const char *account = account_of(name, call->pool);
    const apr_array_header_t *connections =
        account != NULL ? apr_hash_get(labels(call), account, APR_HASH_KEY_STRING) : NULL;
    const pd_toolbox_t *toolbox = account != NULL ? apr_hash_get(call->snapshot->toolboxes->by_name,
                                                                 account, APR_HASH_KEY_STRING)
                                                  : NULL;
    const pd_entry_t *entry =
        toolbox != NULL ? apr_hash_get(toolbox->by_name, name, APR_HASH_KEY_STRING) : NULL;
    int i;

    for (i = 0; connections != NULL && i < connections->nelts; i++) {
        const pd_connection_t *connection = APR_ARRAY_IDX(connections, i, const pd_connection_t *);
        const pd_tool_t *tool = pd_snapshot_tool(connection, name);

        if (tool != NULL) {
            pinned_t *one = apr_array_push(found);

            *one = (pinned_t){connection->connector->id, connection->connector->slug,
                              tool->operation->id};
        }
    }
    if (entry != NULL) {
        pinned_t *one = apr_array_push(found);

        *one = (pinned_t){entry->connector_id, entry->connector_slug, entry->operation_id};
    }
    return found;
}

int pd_op_rule_name_matches(const pd_op_call_t *call, const char *name)
{
    return bearers(call, name)->nelts > 0;
}

/* 1 when the name begins as those of the control plane do, at this endpoint or another. */
static int is_control_name(const pd_config_t *config, const char *account)
{
    int i;

    if (config->control_prefix != NULL && strcmp(config->control_prefix, account) == 0) {
        return 1;
    }
    for (i = 0; config->reserved_labels != NULL && i < config->reserved_labels->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(config->reserved_labels, i, const char *), account) == 0) {
            return 1;
        }
    }
    return 0;
}

static pd_status_t check_tool_name(judging_t *j, const char *name)
{
    pd_op_call_t *call = j->call;
    const char *account;

    if (!mcp_name_is_tool(name)) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "For example notion-legal__getPage",
                        "Item number %lu: no tool can have such a name.", (unsigned long)j->number);
    }
    account = account_of(name, call->pool);
    if (account != NULL && is_control_name(call->core->config, account)) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                        "Operations of the control plane are given and taken by roles.",
                        "Item number %lu is no connected tool.", (unsigned long)j->number);
    }
    return PD_OK;
}

static int by_slug(const void *a, const void *b)
{
    const pinned_t *x = a;
    const pinned_t *y = b;
    int order = strcmp(x->slug, y->slug);

    order = order != 0 ? order : strcmp(x->connector_id, y->connector_id);
    return order != 0 ? order : strcmp(x->operation, y->operation);
}

/* Pins that were judged before, added to `pins`. */
static void take_stored(const json_t *stored, apr_array_header_t *pins)
{
    const json_t *one;
    size_t i;

    json_array_foreach(stored, i, one)
    {
        pinned_t made = {mcp_json_str(one, "connector"), mcp_json_str(one, "slug"),
                         mcp_json_str(one, "operation")};

        if (made.connector_id != NULL && made.slug != NULL && made.operation != NULL) {
            APR_ARRAY_PUSH(pins, pinned_t) = made;
        }
    }
}

/* Pins that are given, added to `pins`. */
static pd_status_t take_pins(judging_t *j, const json_t *given, apr_array_header_t *pins)
{
    const json_t *one;
    size_t i;

    json_array_foreach(given, i, one)
    {
        const char *connector = mcp_json_str(one, "connector");
        const char *operation = mcp_json_str(one, "operation");
        pinned_t made;
        pd_status_t status;

        if (connector == NULL || operation == NULL) {
            return PD_E_INTERNAL; /* the schema has seen them */
        }
        status = pin(j, connector, operation, &made);
        if (status != PD_OK) {
            return status;
        }
        APR_ARRAY_PUSH(pins, pinned_t) = made;
    }
    return PD_OK;
}

/* Sorted pins, each once, as JSON; new reference. */
static pd_status_t pins_json(judging_t *j, apr_array_header_t *pins, json_t **ret)
{
    json_t *array = json_array();
    pd_status_t status = PD_OK;
    int i;

    qsort(pins->elts, (size_t)pins->nelts, sizeof(pinned_t), by_slug);
    for (i = 0; status == PD_OK && i < pins->nelts; i++) {
        const pinned_t *one = &APR_ARRAY_IDX(pins, i, pinned_t);

        if (i > 0 && by_slug(one, &APR_ARRAY_IDX(pins, i - 1, pinned_t)) == 0) {
            continue;
        }
        status = count_one(j);
        if (status == PD_OK && json_array_append_new(array, pinned_json(one)) != 0) {
            status = PD_E_NOMEM;
        }
    }
    if (status != PD_OK) {
        json_decref(array);
        return status;
    }
    *ret = array;
    return PD_OK;
}

static int is_in_catalog(const pd_snapshot_t *snapshot, const pinned_t *pinned)
{
    const pd_connector_t *connector = pd_snapshot_connector(snapshot, pinned->connector_id);

    return connector != NULL && pd_catalog_operation(connector, pinned->operation) != NULL;
}

/* All that bears the name now, added to `pins`; into an allow only what the catalog has. */
static void take_bearers(judging_t *j, const char *name, apr_array_header_t *pins)
{
    const apr_array_header_t *found = bearers(j->call, name);
    int i;

    for (i = 0; i < found->nelts; i++) {
        const pinned_t *one = &APR_ARRAY_IDX(found, i, pinned_t);

        if (j->effect == PD_EFFECT_BLOCK || is_in_catalog(j->call->snapshot, one)) {
            APR_ARRAY_PUSH(pins, pinned_t) = *one;
        }
    }
}

static pd_status_t no_bearer(judging_t *j, const char *name)
{
    if (j->effect == PD_EFFECT_BLOCK) {
        return warn(j, apr_psprintf(j->call->pool,
                                    "No tool has the name %s now: it is kept, and blocks what "
                                    "comes to have it.",
                                    name));
    }
    return pd_fault(&j->call->fault, MCP_CODE_NOT_FOUND,
                    "Name the connector and the operation instead.",
                    "Item number %lu: no tool has the name \"%s\", so there is nothing to allow.",
                    (unsigned long)j->number, name);
}

/* Writes the pins into the item of this name: a new one, or the one that stands already. */
static pd_status_t store_tool(judging_t *j, const char *name, apr_array_header_t *pins)
{
    const char *key = apr_pstrcat(j->call->pool, "t ", name, (char *)NULL);
    json_t *standing = apr_hash_get(j->seen, key, APR_HASH_KEY_STRING);
    json_t *array = NULL;
    pd_status_t status;

    if (standing != NULL) {
        j->count -= json_array_size(json_object_get(standing, "pins"));
    }
    status = pins_json(j, pins, &array);
    if (status != PD_OK) {
        return status;
    }
    if (standing != NULL) {
        return json_object_set_new(standing, "pins", array) == 0 ? PD_OK : PD_E_NOMEM;
    }
    return add_item(j, key, json_pack("{s:s, s:o}", "tool", name, "pins", array));
}

/* An advertised name. In an allow it stands for the operations that bear it now and for nothing
 * else; a block keeps the name beside them, and what the name was pinned to before: an account that
 * was renamed since does not come free by writing the rule again. */
static pd_status_t judge_tool(judging_t *j, const json_t *item, const char *name)
{
    pd_op_call_t *call = j->call;
    apr_array_header_t *pins = apr_array_make(call->pool, 4, sizeof(pinned_t));
    const json_t *standing = apr_hash_get(
        j->seen, apr_pstrcat(call->pool, "t ", name, (char *)NULL), APR_HASH_KEY_STRING);
    pd_status_t status = check_tool_name(j, name);

    if (status == PD_OK) {
        status = take_pins(j, json_object_get(item, "pins"), pins);
    }
    if (status != PD_OK) {
        return status;
    }
    take_stored(json_object_get(standing, "pins"), pins);
    if (j->effect == PD_EFFECT_BLOCK) {
        take_stored(apr_hash_get(j->names, name, APR_HASH_KEY_STRING), pins);
    }
    take_bearers(j, name, pins);
    if (pins->nelts == 0 && standing == NULL) {
        status = no_bearer(j, name);
    }
    return status == PD_OK ? store_tool(j, name, pins) : status;
}

/* --- items ----------------------------------------------------------------------- */

static pd_status_t judge_item(judging_t *j, const json_t *item)
{
    pd_op_call_t *call = j->call;
    const char *connector = mcp_json_str(item, "connector");
    const char *operation = mcp_json_str(item, "operation");
    const char *tool = mcp_json_str(item, "tool");
    pinned_t pinned;
    pd_status_t status;

    if ((connector == NULL) == (tool == NULL) || (operation != NULL && connector == NULL) ||
        (json_object_get(item, "pins") != NULL && tool == NULL)) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                        "Write {\"connector\"}, {\"connector\",\"operation\"} or {\"tool\"}.",
                        "Item number %lu names neither one connector, nor one operation of it, nor "
                        "one tool.",
                        (unsigned long)j->number);
    }
    if (tool != NULL) {
        return judge_tool(j, item, tool);
    }
    status = pin(j, connector, operation, &pinned);
    if (status != PD_OK) {
        return status;
    }
    return add_item(j,
                    apr_pstrcat(call->pool, "c ",
                                pair_key(call->pool, pinned.connector_id, pinned.operation),
                                (char *)NULL),
                    pinned_json(&pinned));
}

static pd_status_t warn_of_nothing(judging_t *j)
{
    if (json_array_size(j->items) > 0) {
        return PD_OK;
    }
    return warn(j, j->effect == PD_EFFECT_ALLOW
                       ? "It allows nothing, and so it denies every connected tool to those it is "
                         "for."
                       : "It names nothing and blocks nothing.");
}

pd_status_t pd_op_rule_items(pd_op_call_t *call, pd_effect_t effect, const json_t *items,
                             const json_t *old, json_t *warnings, json_t **ret)
{
    judging_t j = {.call = call,
                   .effect = effect,
                   .kept = apr_hash_make(call->pool),
                   .names = apr_hash_make(call->pool),
                   .seen = apr_hash_make(call->pool),
                   .items = pd_op_keep(call, json_array()),
                   .warnings = warnings};
    const json_t *item;
    size_t i;

    keep_old(&j, old);
    json_array_foreach(items, i, item)
    {
        pd_status_t status;

        j.number = i + 1;
        if (i % LOOK_EVERY == 0 && pd_boot_left_ms(call->deadline) <= 0) {
            return PD_E_TIMEOUT;
        }
        status = judge_item(&j, item);
        if (status != PD_OK) {
            return status;
        }
    }
    *ret = j.items;
    return warn_of_nothing(&j);
}
