/* Making of execution plans: see pd_plan.h. */
#include "pd_plan.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "pd_blob.h"
#include "pd_policy.h"
#include "pd_seal.h"
#include "pd_view.h"

const char *pd_plan_origin(const char *base, apr_pool_t *pool)
{
    const char *host = strstr(base, "://");
    size_t length;

    if (host == NULL) {
        return "";
    }
    length = (size_t)(host - base) + 3;
    length += strcspn(base + length, "/?#");
    return apr_pstrmemdup(pool, base, length);
}

pd_status_t pd_plan_credential(pd_core_t *core, pd_tx_t *tx, const pd_connection_t *connection,
                               json_t **ret)
{
    const void *sealed = NULL;
    size_t bytes = 0;
    pd_status_t status = pd_tx_secret_get(tx, "connection", connection->id, &sealed, &bytes);

    if (status != PD_OK) {
        return status;
    }
    return pd_unseal_credential(core->master_key, connection->id,
                                pd_plan_origin(connection->base, pd_tx_pool(tx)), sealed, bytes, ret);
}

/* A setting of the organisation caps what a connector asks for. */
static int64_t limit(pd_core_t *core, const char *key, int64_t otherwise, int64_t connectors)
{
    int64_t organisation = pd_snapshot_setting_int(core->policy->snapshot, key, otherwise);

    return connectors > 0 && connectors < organisation ? connectors : organisation;
}

/* What an entry adds: its schema, its values, its renamed arguments. */
static pd_status_t add_entry(pd_core_t *core, const pd_found_t *found, json_t *plan)
{
    const pd_advertised_t *advertised = NULL;
    pd_status_t status = pd_view_entry(core, found, &advertised);
    int failed = 0;

    if (status == PD_OK) {
        status = pd_blobs_put(core->policy->blobs, advertised->digest, advertised->blob,
                              advertised->blob_bytes);
    }
    if (status != PD_OK) {
        return status;
    }
    /* the entry's values belong to the snapshot; the plan is wiped after it was sent */
    failed |= json_object_set_new(plan, "defaults", json_deep_copy(found->entry->defaults));
    failed |= json_object_set_new(plan, "frozen", json_deep_copy(found->entry->frozen));
    failed |= json_object_set_new(plan, "advertised", json_string(advertised->digest));
    if (advertised->rename != NULL) {
        failed |= json_object_set_new(plan, "rename", json_deep_copy(advertised->rename));
    }
    return failed == 0 ? PD_OK : PD_E_NOMEM;
}

pd_status_t pd_plan_make(pd_core_t *core, const pd_actor_t *actor, const pd_found_t *found,
                         const pd_connection_t *connection, const json_t *credential, json_t **ret)
{
    const char *guard = NULL;
    const char *verdicts = NULL;
    json_t *auth = NULL;
    json_t *plan;
    pd_status_t status;

    pd_views_trim(core->policy->views);
    status = pd_view_operation(core, found->operation);
    if (status == PD_OK) {
        status = pd_view_guard(core, connection->connector, &guard);
    }
    if (status == PD_OK) {
        status = pd_view_verdicts(core, actor, connection, &verdicts);
    }
    if (status == PD_OK) {
        status = pd_catalog_auth(connection->connector->doc, credential, &auth);
    }
    if (status != PD_OK) {
        return status;
    }
    plan = json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:{},s:{},s:I,s:I,s:s}", "tool", found->name, "connection",
        connection->id, "operation", found->operation->digest, "guard", guard, "verdicts", verdicts,
        "base", connection->base, "auth", auth, "defaults", "frozen", "timeout_ms",
        (json_int_t)limit(core, "execution.timeout_ms", 30000, connection->connector->timeout_ms),
        "max_bytes",
        (json_int_t)limit(core, "execution.max_bytes", 10485760, connection->connector->max_bytes),
        "class", mcp_class_text(found->operation->klass));
    if (plan == NULL) {
        return PD_E_NOMEM;
    }
    if (found->entry != NULL) {
        status = add_entry(core, found, plan);
    }
    if (status != PD_OK) {
        pd_seal_wipe(plan);
        json_decref(plan);
        return status;
    }
    *ret = plan;
    return PD_OK;
}
