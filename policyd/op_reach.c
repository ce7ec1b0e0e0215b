/* The resolver as handlers ask it: see op_reach.h. */
#include "op_reach.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "op_find.h"
#include "pd_roles.h"

/* No connector has this id, and no slug has its form. */
#define NOBODYS "con_"

pd_subject_t pd_op_subject(const pd_actor_t *actor)
{
    static const char *const none[] = {NULL};
    pd_subject_t subject = {actor->member_id,
                            actor->role_names != NULL ? actor->role_names : none};

    return subject;
}

const char *const *pd_op_role_names(const pd_op_call_t *call, const json_t *roles)
{
    const char **names = apr_pcalloc(call->pool, sizeof(*names) * (json_array_size(roles) + 1));
    size_t count = 0;
    size_t i;

    for (i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));

        if (name != NULL) {
            names[count++] = apr_pstrdup(call->pool, name);
        }
    }
    return names;
}

int pd_op_is_actor(const pd_op_call_t *call, const char *named)
{
    const pd_actor_t *actor = call->actor;

    return (actor->member_id != NULL && strcmp(named, actor->member_id) == 0) ||
           (actor->email != NULL &&
            strcmp(pd_op_lower(call, named), pd_op_lower(call, actor->email)) == 0);
}

pd_status_t pd_op_subject_named(pd_op_call_t *call, const char *named, pd_subject_t *ret)
{
    pd_object_t *member = NULL;
    const char *state;
    pd_status_t status;

    *ret = pd_op_subject(call->actor);
    if (named == NULL || pd_op_is_actor(call, named)) {
        return PD_OK;
    }
    if (!pd_actor_may(call->actor, "member:read")) {
        pd_op_detail(call, "lacks=member:read");
        (void)apr_cpystrn(call->fault.permission, "member:read", sizeof(call->fault.permission));
        return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED,
                        "Leave `member` out to ask about yourself.",
                        "Asking about another member needs the permission member:read.");
    }
    status = pd_op_member(call, named, &member);
    if (status != PD_OK) {
        return status;
    }
    state = mcp_json_str(member->doc, "state");
    if (state != NULL && strcmp(state, "removed") == 0) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, NULL,
                        "This member was removed and has nothing any more.");
    }
    ret->member_id = apr_pstrdup(call->pool, member->id);
    ret->role_names = pd_op_role_names(call, json_object_get(member->doc, "roles"));
    return PD_OK;
}

pd_status_t pd_op_caller_named(pd_op_call_t *call, const char *named, pd_subject_t *ret,
                               pd_actor_t *caller)
{
    const pd_actor_t *actor = call->actor;
    pd_object_t *member = NULL;
    pd_status_t status = pd_op_subject_named(call, named, ret);

    if (status != PD_OK) {
        return status;
    }
    *caller = *actor;
    if (ret->member_id == NULL ||
        (actor->member_id != NULL && strcmp(ret->member_id, actor->member_id) == 0)) {
        return PD_OK;
    }
    status = pd_tx_get(call->tx, "member", ret->member_id, &member);
    if (status != PD_OK) {
        return status;
    }
    memset(caller, 0, sizeof(*caller));
    caller->member_id = ret->member_id;
    caller->role_names = ret->role_names;
    caller->scopes =
        MCP_SCOPE_READ | MCP_SCOPE_WRITE | MCP_SCOPE_DESTRUCTIVE | MCP_SCOPE_TOOLS;
    return pd_roles_permissions(call->tx, json_object_get(member->doc, "roles"), call->pool,
                                &caller->permissions, &caller->is_owner);
}

pd_status_t pd_op_has_policy(pd_op_call_t *call)
{
    if (call->snapshot != NULL) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_POLICY_UNAVAILABLE, "Try again later.",
                    "There is no policy in force to decide by.");
}

void pd_op_sight_begin(const pd_op_call_t *call, const pd_subject_t *subject,
                       const char *connector_id, pd_op_sight_t *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->shows_forbidden = pd_actor_may(call->actor, "connector:write");
    ret->connector = pd_snapshot_connector(call->snapshot, connector_id);
    if (ret->connector != NULL) {
        pd_reach_begin(call->snapshot, subject, ret->connector, call->pool, &ret->on);
        return;
    }
    pd_snapshot_rules(call->snapshot, subject->member_id, subject->role_names, call->pool,
                      &ret->on.rules);
    pd_rules_bear(&ret->on.rules, connector_id, call->pool, &ret->on.bearing);
}

static int may_have(const pd_op_sight_t *sight, const char *id)
{
    return pd_rules_judge(&sight->on.bearing, id, NULL, NULL) == PD_VERDICT_ALLOWED;
}

static int sees(const pd_op_sight_t *sight, const pd_operation_t *operation)
{
    switch (pd_reach_ask(&sight->on, operation, NULL, NULL)) {
    case PD_REACH_OK:
        return 1;
    case PD_REACH_FORBIDDEN:
        return sight->shows_forbidden && may_have(sight, operation->id);
    case PD_REACH_UNREADABLE:
    case PD_REACH_UNKNOWN:
    case PD_REACH_OTHERS:
    case PD_REACH_TOOLBOX_ONLY:
    case PD_REACH_NO_TOOLBOX:
    case PD_REACH_NO_CONNECTION:
    case PD_REACH_NOT_ALLOWED:
    case PD_REACH_BLOCKED:
        break;
    }
    return 0;
}

/* The document decides what an operation is: a read may be newer than the policy that it is judged by. */
int pd_op_sight_has(const pd_op_sight_t *sight, const json_t *operation)
{
    const char *id = mcp_json_str(operation, "id");
    const char *klass = mcp_json_str(operation, "classification");
    const pd_operation_t *compiled =
        sight->connector != NULL && id != NULL ? pd_catalog_operation(sight->connector, id) : NULL;

    if (id == NULL || klass == NULL) {
        return 0;
    }
    if (strcmp(klass, mcp_class_text(MCP_CLASS_FORBIDDEN)) == 0) {
        return sight->shows_forbidden && may_have(sight, id);
    }
    return compiled != NULL ? sees(sight, compiled) : may_have(sight, id);
}

int pd_op_sight_count(const pd_op_sight_t *sight, int by_class[MCP_CLASS_FORBIDDEN + 1], int *total)
{
    const apr_array_header_t *operations =
        sight->connector != NULL ? sight->connector->operations : NULL;
    int count = 0;
    int i;

    memset(by_class, 0, sizeof(*by_class) * (MCP_CLASS_FORBIDDEN + 1));
    if (total != NULL) {
        *total = operations != NULL ? operations->nelts : 0;
    }
    if (operations == NULL || operations->nelts == 0) {
        const pd_bearing_t *bearing = &sight->on.bearing;

        return bearing->is_uniform && bearing->uniform == PD_VERDICT_ALLOWED ? -1 : 0;
    }
    for (i = 0; i < operations->nelts; i++) {
        const pd_operation_t *operation = &APR_ARRAY_IDX(operations, i, pd_operation_t);

        if (sees(sight, operation)) {
            by_class[operation->klass]++;
            count++;
        }
    }
    return count;
}

int pd_op_sees(const pd_op_call_t *call, const pd_subject_t *subject, const char *connector_id)
{
    int by_class[MCP_CLASS_FORBIDDEN + 1];
    pd_op_sight_t sight;

    pd_op_sight_begin(call, subject, connector_id, &sight);
    return pd_op_sight_count(&sight, by_class, NULL) != 0;
}

/* What is remembered of a connector. */
typedef struct look {
    pd_op_sight_t sight;
    int is_seen;
} look_t;

static const look_t *look_at(const pd_op_call_t *call, apr_hash_t *sights, const char *connector_id)
{
    look_t *look = apr_hash_get(sights, connector_id, APR_HASH_KEY_STRING);
    pd_subject_t subject = pd_op_subject(call->actor);
    int by_class[MCP_CLASS_FORBIDDEN + 1];

    if (look == NULL) {
        look = apr_pcalloc(call->pool, sizeof(*look));
        pd_op_sight_begin(call, &subject, connector_id, &look->sight);
        look->is_seen = pd_op_sight_count(&look->sight, by_class, NULL) != 0;
        apr_hash_set(sights, apr_pstrdup(call->pool, connector_id), APR_HASH_KEY_STRING, look);
    }
    return look;
}

int pd_op_sees_connector(const pd_op_call_t *call, apr_hash_t *sights, const char *connector_id)
{
    return look_at(call, sights, connector_id)->is_seen;
}

int pd_op_sees_operation(const pd_op_call_t *call, apr_hash_t *sights, const char *connector_id,
                         const char *operation_id)
{
    const look_t *look = look_at(call, sights, connector_id);
    const pd_operation_t *operation =
        look->sight.connector != NULL
            ? pd_catalog_operation(look->sight.connector, operation_id)
            : NULL;

    return operation != NULL ? sees(&look->sight, operation) : may_have(&look->sight, operation_id);
}

pd_status_t pd_op_connector_seen(pd_op_call_t *call, const char *named, pd_object_t **ret)
{
    pd_subject_t subject = pd_op_subject(call->actor);
    pd_object_t *found = NULL;
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = pd_op_connector(call, named, &found);
    }
    if (status != PD_OK) {
        return status;
    }
    if (!pd_op_sees(call, &subject, found->id)) {
        pd_op_detail(call, "withheld connector=%s", found->id);
        /* the very refusal of a name that there is not */
        status = pd_op_connector(call, NOBODYS, ret);
        return status == PD_OK ? PD_E_INTERNAL : status;
    }
    *ret = found;
    return PD_OK;
}
