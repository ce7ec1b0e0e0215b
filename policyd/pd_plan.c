/* Making of execution plans: see pd_plan.h. */
#include "pd_plan.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
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

pd_status_t pd_plan_make(pd_core_t *core, const pd_actor_t *actor, pd_connection_t *connection,
                         const pd_tool_t *tool, const json_t *credential, json_t **ret)
{
    const char *guard = NULL;
    json_t *auth = NULL;
    json_t *plan;
    pd_status_t status = pd_view_operation(core, tool->operation);

    if (status == PD_OK) {
        status = pd_view_guard(core, connection, pd_view_rung(actor->scopes), &guard);
    }
    if (status == PD_OK) {
        status = pd_catalog_auth(connection->connector->doc, credential, &auth);
    }
    if (status != PD_OK) {
        return status;
    }
    plan = json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:o,s:{},s:{},s:I,s:I,s:s}", "tool", tool->name, "connection",
        connection->id, "operation", tool->operation->digest, "guard", guard, "base", connection->base,
        "auth", auth, "defaults", "frozen", "timeout_ms",
        (json_int_t)limit(core, "execution.timeout_ms", 30000, connection->connector->timeout_ms),
        "max_bytes",
        (json_int_t)limit(core, "execution.max_bytes", 10485760, connection->connector->max_bytes),
        "class", mcp_class_text(tool->operation->klass));
    if (plan == NULL) {
        return PD_E_NOMEM;
    }
    *ret = plan;
    return PD_OK;
}
