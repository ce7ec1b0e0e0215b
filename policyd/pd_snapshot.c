/* The snapshot as a whole: its blocks put together, its settings, and reading it. See pd_snapshot.h. */
#include "pd_snapshot.h"

#include <string.h>

#include <apr_atomic.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "pd_snapshot_private.h"

#define PAGE 500 /* objects of one listing step */

/* --- what the blocks share ------------------------------------------------------ */

pd_status_t pd_snapshot_take_all(pd_tx_t *tx, const char *kind, pd_take_fn *take, void *building)
{
    const char *after = NULL;

    for (;;) {
        apr_array_header_t *page = NULL;
        pd_status_t status = pd_tx_list(tx, kind, NULL, after, PAGE, &page);
        int i;

        for (i = 0; status == PD_OK && i < page->nelts; i++) {
            const pd_object_t *object = APR_ARRAY_IDX(page, i, pd_object_t *);

            status = take(building, object);
            after = object->id;
        }
        if (status != PD_OK || page->nelts < PAGE) {
            return status;
        }
    }
}

int pd_snapshot_is_touched(const apr_array_header_t *changes, const char *kind)
{
    int i;

    for (i = 0; i < changes->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(changes, i, pd_change_t).kind, kind) == 0) {
            return 1;
        }
    }
    return 0;
}

/* --- settings --------------------------------------------------------------------- */

/* value is copied: no two snapshots share one. key: copied too. */
static pd_status_t put_setting(pd_snapshot_t *made, const char *key, const json_t *value)
{
    json_t *old = apr_hash_get(made->settings, key, APR_HASH_KEY_STRING);
    json_t *copy = json_deep_copy(value);

    if (copy == NULL) {
        return PD_E_NOMEM;
    }
    apr_hash_set(made->settings, apr_pstrdup(made->pool, key), APR_HASH_KEY_STRING, copy);
    json_decref(old);
    return PD_OK;
}

static pd_status_t take_setting(void *building, const pd_object_t *object)
{
    pd_snapshot_t *made = building;
    const char *key = mcp_json_str(object->doc, "key");
    const json_t *value = json_object_get(object->doc, "value");
    const char *client = mcp_json_str(object->doc, "client");
    const char *grant = mcp_json_str(object->doc, "grant");

    if (key == NULL || value == NULL) {
        return PD_OK;
    }
    /* narrower settings (per client, per grant) are read by those who need them, with their whole key */
    if (client != NULL) {
        key = apr_psprintf(made->pool, "%s:client:%s", key, client);
    } else if (grant != NULL) {
        key = apr_psprintf(made->pool, "%s:grant:%s", key, grant);
    }
    return put_setting(made, key, value);
}

static pd_status_t copy_settings(const pd_snapshot_t *old, pd_snapshot_t *made)
{
    pd_status_t status = PD_OK;
    apr_hash_index_t *i;

    for (i = apr_hash_first(made->pool, old->settings); status == PD_OK && i != NULL;
         i = apr_hash_next(i)) {
        status = put_setting(made, apr_hash_this_key(i), apr_hash_this_val(i));
    }
    return status;
}

/* --- the whole ----------------------------------------------------------------------- */

static pd_status_t snapshot_new(int64_t revision, pd_snapshot_t **ret)
{
    apr_pool_t *pool;
    pd_snapshot_t *made;

    if (revision < 0) {
        return PD_E_IO;
    }
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    made->refs = 1;
    made->revision = revision;
    made->settings = apr_hash_make(pool);
    made->roles = apr_hash_make(pool);
    *ret = made;
    return PD_OK;
}

pd_snapshot_t *pd_snapshot_hold(pd_snapshot_t *snapshot)
{
    (void)apr_atomic_inc32(&snapshot->refs); /* the count before is nobody's business */
    return snapshot;
}

void pd_snapshot_free(pd_snapshot_t **snapshot)
{
    pd_snapshot_t *gone = *snapshot;
    apr_hash_index_t *i;

    *snapshot = NULL;
    if (gone == NULL || apr_atomic_dec32(&gone->refs) != 0) {
        return;
    }
    pd_ground_release(&gone->ground);
    pd_rulebook_release(&gone->rulebook);
    pd_toolboxes_release(&gone->toolboxes);
    for (i = apr_hash_first(gone->pool, gone->settings); i != NULL; i = apr_hash_next(i)) {
        json_decref(apr_hash_this_val(i));
    }
    apr_pool_destroy(gone->pool);
}

/* Hands it out, or gives it up, half-built as it may be. */
static pd_status_t snapshot_done(pd_status_t status, pd_snapshot_t *made, pd_snapshot_t **ret)
{
    if (status != PD_OK) {
        pd_snapshot_free(&made);
        return status;
    }
    *ret = made;
    return PD_OK;
}

pd_status_t pd_snapshot_load(pd_tx_t *tx, pd_snapshot_t **ret)
{
    pd_snapshot_t *made = NULL;
    pd_status_t status = snapshot_new(pd_tx_revision(tx), &made);

    if (status == PD_OK) {
        status = pd_ground_load(tx, &made->ground);
    }
    if (status == PD_OK) {
        status = pd_rulebook_load(tx, &made->rulebook);
    }
    if (status == PD_OK) {
        status = pd_toolboxes_load(tx, &made->toolboxes);
    }
    if (status == PD_OK) {
        status = pd_snapshot_take_all(tx, PD_KIND_SETTING, take_setting, made);
    }
    return snapshot_done(status, made, ret);
}

pd_status_t pd_snapshot_follow(pd_tx_t *tx, const pd_snapshot_t *old, pd_snapshot_t **ret)
{
    apr_array_header_t *changes = NULL;
    pd_snapshot_t *made = NULL;
    int64_t revision = pd_tx_revision(tx);
    pd_status_t status = pd_tx_changes(tx, old->revision, &changes);

    /* the log of changes does not reach back so far, or the store was put back to an earlier state */
    if (status == PD_E_REVISION || (revision >= 0 && revision < old->revision)) {
        return pd_snapshot_load(tx, ret);
    }
    if (status == PD_OK) {
        status = snapshot_new(revision, &made);
    }
    if (status == PD_OK) {
        status = pd_ground_follow(tx, old->ground, changes, &made->ground);
    }
    if (status == PD_OK) {
        status = pd_rulebook_follow(tx, old->rulebook, changes, &made->rulebook);
    }
    if (status == PD_OK) {
        status = pd_toolboxes_follow(tx, old->toolboxes, changes, &made->toolboxes);
    }
    if (status == PD_OK) {
        status = pd_snapshot_is_touched(changes, PD_KIND_SETTING)
                     ? pd_snapshot_take_all(tx, PD_KIND_SETTING, take_setting, made)
                     : copy_settings(old, made);
    }
    return snapshot_done(status, made, ret);
}

/* --- reading ----------------------------------------------------------------------------- */

const apr_array_header_t *pd_snapshot_own(const pd_snapshot_t *snapshot, const char *member_id)
{
    return member_id != NULL
               ? apr_hash_get(snapshot->ground->by_owner, member_id, APR_HASH_KEY_STRING)
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
    return apr_hash_get(snapshot->ground->by_label, label, (apr_ssize_t)label_bytes);
}

pd_connector_t *pd_snapshot_connector(const pd_snapshot_t *snapshot, const char *id)
{
    return apr_hash_get(snapshot->ground->connectors, id, APR_HASH_KEY_STRING);
}

pd_connection_t *pd_snapshot_connection(const pd_snapshot_t *snapshot, const char *id)
{
    return apr_hash_get(snapshot->ground->connections, id, APR_HASH_KEY_STRING);
}

pd_tool_t *pd_snapshot_tool(const pd_connection_t *connection, const char *name)
{
    return apr_hash_get(connection->by_name, name, APR_HASH_KEY_STRING);
}

void pd_snapshot_rules(const pd_snapshot_t *snapshot, const char *member_id,
                       const char *const *role_names, apr_pool_t *pool, pd_rules_t *ret)
{
    const pd_rulebook_t *rulebook = snapshot->rulebook;

    if (rulebook->has_lost_target && member_id != NULL) {
        *ret = (pd_rules_t){.governed = PD_GOVERNED_UNREADABLE,
                            .layers = apr_array_make(pool, 1, sizeof(const pd_layer_t *))};
        return;
    }
    pd_rules_choose(rulebook->by_role, rulebook->by_member, member_id, role_names, pool, ret);
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

int pd_snapshot_setting_bool(const pd_snapshot_t *snapshot, const char *key, int otherwise)
{
    const json_t *value = apr_hash_get(snapshot->settings, key, APR_HASH_KEY_STRING);

    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

const json_t *pd_snapshot_setting_for(const pd_snapshot_t *snapshot, const char *key, const char *client,
                                      const char *grant, apr_pool_t *pool)
{
    const json_t *value = NULL;

    if (grant != NULL) {
        value = apr_hash_get(snapshot->settings, apr_pstrcat(pool, key, ":grant:", grant, NULL),
                             APR_HASH_KEY_STRING);
    }
    if (value == NULL && client != NULL) {
        value = apr_hash_get(snapshot->settings, apr_pstrcat(pool, key, ":client:", client, NULL),
                             APR_HASH_KEY_STRING);
    }
    return value != NULL ? value : apr_hash_get(snapshot->settings, key, APR_HASH_KEY_STRING);
}
