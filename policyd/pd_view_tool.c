/* Tool objects as lists show them, and single ones by name: see pd_view.h. */
#include "pd_view.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "pd_control.h"
#include "pd_ops.h"
#include "pd_policy.h"
#include "pd_view_private.h"

int pd_view_has_step_up(const pd_core_t *core)
{
    return pd_snapshot_setting_bool(core->policy->snapshot, "advertise.step_up", 0);
}

/* 1 when tools of this class are listed for the scopes. */
int pd_view_is_listed(int is_stepped_up, unsigned scopes, mcp_class_t klass)
{
    unsigned needed = MCP_SCOPE_TOOLS | mcp_scope_of_class(klass);

    return is_stepped_up || (mcp_scope_close(scopes) & needed) == needed;
}

/* --- objects ---------------------------------------------------------------------- */

/* Our own hints, from the classification. */
static json_t *annotations(const pd_operation_t *operation)
{
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT", "PUT",
                                             "DELETE"};
    int is_idempotent = 0;
    size_t i;

    for (i = 0; i < sizeof(idempotent) / sizeof(idempotent[0]); i++) {
        is_idempotent |= strcmp(operation->method, idempotent[i]) == 0;
    }
    return json_pack("{s:b,s:b,s:b,s:b}", "readOnlyHint", operation->klass == MCP_CLASS_READ,
                     "destructiveHint", operation->klass == MCP_CLASS_DESTRUCTIVE, "idempotentHint",
                     is_idempotent, "openWorldHint", 1);
}

/* The tool object exactly as `tools/list` shows it; new reference, or NULL. */
static json_t *definition(const char *name, const pd_operation_t *operation, const char *title,
                          const char *description, int is_ready, const char *schema_text,
                          size_t schema_bytes)
{
    json_t *schema = NULL;
    json_t *def;

    if (mcp_json_parse(schema_text, schema_bytes, MCP_MAX_DEPTH, &schema, NULL) != MCP_OK) {
        return NULL;
    }
    def = json_pack("{s:s}", "name", name);
    if (def == NULL) {
        json_decref(schema);
        return NULL;
    }
    if (title != NULL) {
        json_object_set_new(def, "title", json_string(title));
    }
    json_object_set_new(def, "description",
                        is_ready ? json_string(description)
                                 : json_sprintf("[needs reauthorisation] %s", description));
    json_object_set_new(def, "inputSchema", schema);
    json_object_set_new(def, "annotations", annotations(operation));
    return def;
}

json_t *pd_view_plain(const pd_connection_t *connection, const pd_tool_t *tool)
{
    const pd_operation_t *operation = tool->operation;
    const char *description = operation->description != NULL && operation->description[0] != '\0'
                                  ? operation->description
                                  : operation->id;

    return definition(tool->name, operation, operation->title, description, connection->is_ready,
                      operation->schema, operation->schema_bytes);
}

/* An entry is marked only when none of its connections can be used. */
static json_t *entry_definition(const pd_found_t *found, const pd_advertised_t *advertised)
{
    const char *title = found->entry->title != NULL ? found->entry->title : found->operation->title;
    int is_ready = 0;
    int i;

    for (i = 0; i < found->connections->nelts; i++) {
        is_ready |= APR_ARRAY_IDX(found->connections, i, const pd_connection_t *)->is_ready;
    }
    return definition(found->name, found->operation, title, advertised->description, is_ready,
                      advertised->schema, advertised->schema_bytes);
}

json_t *pd_view_tool(const pd_found_t *found, const pd_advertised_t *advertised)
{
    return found->entry != NULL
               ? entry_definition(found, advertised)
               : pd_view_plain(APR_ARRAY_IDX(found->connections, 0, const pd_connection_t *),
                                  found->tool);
}

/* --- by name ----------------------------------------------------------------------- */

/* A tool of the control plane that the actor has, by its name without the prefix. */
static pd_status_t control_definition(pd_core_t *core, const pd_actor_t *actor, const char *name,
                                      json_t **ret)
{
    const pd_op_t *op = pd_ops_find(name);
    pd_actor_t asked = *actor;
    json_t *rest = NULL;
    json_t *def;
    pd_status_t status;

    if (pd_view_has_step_up(core)) { /* what only lacks a scope is listed too */
        asked.scopes = ~0u;
    }
    status = op != NULL ? pd_control_definition(&asked, name, &rest) : PD_E_NOT_FOUND;
    if (status != PD_OK) {
        return status;
    }
    def = json_pack("{s:s}", "name", name);
    if (json_object_update(def, rest) != 0 ||
        json_object_set_new(def, "classification", json_string(mcp_class_text(op->klass))) != 0) {
        json_decref(def);
        def = NULL;
    }
    json_decref(rest);
    *ret = def;
    return def != NULL ? PD_OK : PD_E_NOMEM;
}

static pd_status_t found_definition(pd_core_t *core, const pd_found_t *found, json_t **ret)
{
    const pd_advertised_t *advertised = NULL;
    const char *account;
    json_t *def;
    pd_status_t status;

    if (found->entry != NULL) {
        status = pd_view_entry(core, found, &advertised);
        if (status != PD_OK) {
            return status == PD_E_INVALID ? PD_E_NOT_FOUND : status;
        }
        account = found->toolbox->name;
    } else {
        account = APR_ARRAY_IDX(found->connections, 0, const pd_connection_t *)->label;
    }
    def = pd_view_tool(found, advertised);
    if (json_object_set_new(def, "connector", json_string(found->connector->slug)) != 0 ||
        json_object_set_new(def, "account", json_string(account)) != 0 ||
        json_object_set_new(def, "classification",
                            json_string(mcp_class_text(found->operation->klass))) != 0) {
        json_decref(def);
        return PD_E_NOMEM;
    }
    *ret = def;
    return PD_OK;
}

pd_status_t pd_view_definition(pd_core_t *core, const pd_actor_t *actor, const char *name, json_t **ret)
{
    pd_subject_t subject = pd_view_subject(actor);
    pd_found_t found;
    apr_pool_t *scratch;
    pd_status_t status = PD_E_NOT_FOUND;

    if (!pd_actor_may(actor, "tool:execute")) {
        return PD_E_NOT_FOUND;
    }
    if (apr_pool_create(&scratch, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    if (pd_reach_tool(core->policy->snapshot, &subject, name, scratch, &found, NULL) == PD_REACH_OK) {
        if (pd_view_is_listed(pd_view_has_step_up(core), actor->scopes, found.operation->klass)) {
            status = found_definition(core, &found, ret);
        }
    } else {
        status = control_definition(core, actor, name, ret);
    }
    apr_pool_destroy(scratch);
    return status;
}
