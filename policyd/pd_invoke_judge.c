/* Whether an operation may run at all: see pd_invoke_private.h. */
#include <apr_strings.h>

#include "pd_invoke_private.h"

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

#define DEFAULT_BYTES (1024u * 1024)

static pd_status_t deny_permission(pd_op_call_t *call, const char *permission)
{
    call->detail = apr_psprintf(call->pool, "lacks=%s", permission);
    (void)apr_cpystrn(call->fault.permission, permission, sizeof(call->fault.permission));
    return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED,
                    "Ask an administrator for a role that holds it.",
                    "Your roles do not hold the permission %s.", permission);
}

pd_status_t pd_invocation_permission(pd_op_call_t *call)
{
    const char *permission = call->op != NULL ? call->op->permission : NULL;

    if (call->actor->surface == MCP_SURFACE_MCP && !pd_actor_may(call->actor, "tool:execute")) {
        return deny_permission(call, "tool:execute");
    }
    if (permission != NULL && !pd_actor_may(call->actor, permission)) {
        return deny_permission(call, permission);
    }
    return PD_OK;
}

static pd_status_t step_exists(pd_op_call_t *call)
{
    if (call->op != NULL) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_UNKNOWN_TOOL, NULL, "There is no such operation.");
}

/* Before the scope: no scope cures a door. */
static pd_status_t step_door(pd_op_call_t *call)
{
    const pd_op_t *op = call->op;
    char hint[256];

    if (call->actor->surface != MCP_SURFACE_MCP || op->secret == PD_SECRET_NO ||
        (op->secret == PD_SECRET_WITH_CREDENTIAL &&
         json_object_get(call->args, "credential") == NULL)) {
        return PD_OK;
    }
    apr_snprintf(hint, sizeof(hint), "Use policyctl %s %s, or %s %s of the REST API.", op->resource,
                 op->verb, op->rest_method, op->rest_path);
    return pd_fault(&call->fault, MCP_CODE_USE_OTHER_DOOR, hint,
                    op->secret == PD_SECRET_ALWAYS
                        ? "This operation answers a secret, which must not enter a model's context."
                        : "A credential must not pass through a model's context.");
}

static pd_status_t step_scope(pd_op_call_t *call)
{
    unsigned needed = mcp_scope_of_class(call->op->klass);
    char hint[128];

    if ((call->actor->surface != MCP_SURFACE_MCP && call->actor->surface != MCP_SURFACE_REST) ||
        (mcp_scope_close(call->actor->scopes) & needed) == needed) {
        return PD_OK;
    }
    apr_snprintf(hint, sizeof(hint), "Authorize again with the scope %s.", mcp_scope_text(needed));
    call->fault.scopes = needed;
    return pd_fault(&call->fault, MCP_CODE_INSUFFICIENT_SCOPE, hint,
                    "The grant lacks the scope %s that this operation needs.",
                    mcp_scope_text(needed));
}

static pd_status_t step_size(pd_op_call_t *call)
{
    size_t max = call->op->max_bytes != 0 ? call->op->max_bytes : DEFAULT_BYTES;

    if (json_dumpb(call->args, NULL, 0, JSON_COMPACT) <= max) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "Send fewer or smaller arguments.",
                    "The arguments are larger than the %lu bytes that this operation takes.",
                    (unsigned long)max);
}

static pd_status_t step_schema(pd_op_call_t *call)
{
    return pd_ops_check(call->op, call->args, &call->fault);
}

pd_status_t pd_invocation_judge(pd_op_call_t *call)
{
    static pd_status_t (*const steps[])(pd_op_call_t *) = {
        pd_invocation_permission, step_exists, step_door, step_scope, step_size, step_schema};
    size_t i;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        pd_status_t status = steps[i](call);

        if (status != PD_OK) {
            return status;
        }
    }
    return PD_OK;
}
