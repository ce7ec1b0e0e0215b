/* What an invocation does on its lane's thread. A write reads its actor and the policy anew, as its own transaction sees them; a dry
 * run is a write that measures what it did to people and is undone. */
#include <string.h>

#include <apr_strings.h>

#include "pd_invoke_private.h"

#include "../proto/mcp_body.h"
#include "pd_impact.h"
#include "pd_roles.h"

static int has_state(const pd_object_t *object, const char *state)
{
    const char *is = mcp_json_str(object->doc, "state");

    return is != NULL && strcmp(is, state) == 0;
}

/* The grant as it is now still stands. */
static pd_status_t check_grant(pd_op_call_t *call)
{
    pd_object_t *grant = NULL;
    pd_status_t status;

    if (call->actor->grant_id == NULL) {
        return PD_OK;
    }
    status = pd_tx_get(call->tx, "grant", call->actor->grant_id, &grant);
    if (status == PD_E_NOT_FOUND || (status == PD_OK && !has_state(grant, "active"))) {
        return pd_fault(&call->fault, MCP_CODE_GRANT_REVOKED, NULL, "The grant was revoked.");
    }
    return status;
}

/* Role names of a member's document, NULL-terminated: rules are chosen by them too. */
static const char *const *names_of(const json_t *roles, apr_pool_t *pool)
{
    const char **names = apr_pcalloc(pool, sizeof(*names) * (json_array_size(roles) + 1));
    size_t count = 0;
    size_t i;

    for (i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));

        if (name != NULL) {
            names[count++] = apr_pstrdup(pool, name);
        }
    }
    return names;
}

/* Between the asking and this transaction another change may have come: the writer decides by what
 * it sees itself, so that a right just taken away changes nothing any more. */
static pd_status_t read_actor_again(pd_op_call_t *call)
{
    const pd_actor_t *asked = call->actor;
    pd_actor_t *fresh;
    pd_object_t *member = NULL;
    pd_status_t status;

    if (asked->member_id == NULL || pd_tx_revision(call->tx) == asked->revision) {
        return PD_OK;
    }
    status = check_grant(call);
    if (status == PD_OK) {
        status = pd_tx_get(call->tx, "member", asked->member_id, &member);
    }
    if (status == PD_E_NOT_FOUND || (status == PD_OK && !has_state(member, "active"))) {
        return pd_fault(&call->fault, MCP_CODE_MEMBER_SUSPENDED, NULL, "The member is not active.");
    }
    if (status != PD_OK) {
        return status;
    }
    fresh = apr_pmemdup(call->pool, asked, sizeof(*asked));
    status = pd_roles_permissions(call->tx, json_object_get(member->doc, "roles"), call->pool,
                                  &fresh->permissions, &fresh->is_owner);
    if (status != PD_OK) {
        return status;
    }
    fresh->role_names = names_of(json_object_get(member->doc, "roles"), call->pool);
    call->actor = fresh;
    return pd_invocation_permission(call);
}

/* Other writes may have come before this one, in this very group of commits too: the handler
 * decides by the policy that its transaction begins from. */
static pd_status_t catch_up(pd_invocation_t *inv, pd_tx_t *tx)
{
    pd_status_t status;

    if (inv->held == NULL || pd_tx_revision(tx) == inv->held->revision) {
        return PD_OK;
    }
    status = pd_snapshot_follow(tx, inv->held, &inv->current);
    if (status == PD_OK) {
        inv->call.snapshot = inv->current;
    }
    return status;
}

/* Who can't read members asks about himself alone: no walk over all of them for everybody who may make a connection. NULL: all. */
static const char *asks_about(const pd_actor_t *actor)
{
    if (pd_actor_may(actor, "member:read")) {
        return NULL;
    }
    return actor->member_id != NULL ? actor->member_id : "";
}

/* Adds to the handler's result what it did to people. The names of members, and of tools over what
 * they own, are for those who could read them elsewhere. */
static pd_status_t add_impact(pd_op_call_t *call, pd_impact_t *impact, const pd_snapshot_t *before)
{
    const pd_impact_sight_t sight = {pd_actor_may(call->actor, "member:read"),
                                     asks_about(call->actor) != NULL ||
                                         pd_actor_may(call->actor, "connection:read_all") ||
                                         pd_actor_may(call->actor, "connection:admin")};
    pd_snapshot_t *after = NULL;
    json_t *found = NULL;
    pd_status_t status = pd_snapshot_follow(call->tx, before, &after);

    if (status == PD_OK) {
        status = pd_impact_end(impact, call->tx, after, &sight, &found);
    }
    if (status == PD_OK && (json_object_set_new(call->result, "dry_run", json_true()) != 0 ||
                            json_object_set_new(call->result, "impact", json_incref(found)) != 0)) {
        status = PD_E_NOMEM;
    }
    json_decref(found);
    pd_snapshot_free(&after);
    return status;
}

/* Lets the handler do it, measures what that does to people, and asks for the undoing. */
static pd_status_t run_dry(pd_invocation_t *inv)
{
    pd_op_call_t *call = &inv->call;
    pd_snapshot_t *own = NULL;
    const pd_snapshot_t *before = call->snapshot;
    pd_impact_t *impact = NULL;
    int is_measuring = 1;
    pd_status_t status = PD_OK;

    if (before == NULL) { /* no policy in force: read what is stored */
        status = pd_snapshot_load(call->tx, &own);
        before = own;
    }
    if (status == PD_OK) {
        status = pd_impact_begin(call->tx, before, asks_about(call->actor), call->deadline,
                                 call->pool, &impact);
    }
    if (status == PD_OK) {
        is_measuring = 0;
        status = call->op->handler(call);
    }
    if (status == PD_OK) {
        is_measuring = 1;
        status = call->result != NULL ? add_impact(call, impact, before) : PD_E_INTERNAL;
    }
    pd_snapshot_free(&own);
    call->detail = apr_pstrcat(call->pool, call->detail != NULL ? call->detail : "",
                               call->detail != NULL ? " dry_run" : "dry_run", (char *)NULL);
    if (status == PD_E_TIMEOUT && is_measuring) {
        return pd_fault(
            &call->fault, MCP_CODE_OVERLOADED,
            "Try again with more time, or make the change without dry_run.",
            "The time ran out before it was known what the change does to whom; nothing "
            "was changed.");
    }
    return status == PD_OK ? PD_E_ROLLBACK : status;
}

static pd_status_t run_write(pd_invocation_t *inv, pd_tx_t *tx)
{
    pd_op_call_t *call = &inv->call;
    pd_status_t status = read_actor_again(call);

    pd_tx_audit(tx, inv->audit_id);
    if (status == PD_OK) {
        status = catch_up(inv, tx);
    }
    if (status != PD_OK) {
        return status;
    }
    if (inv->plain_args != NULL) {
        call->args = inv->plain_args;
    }
    status = inv->is_dry_run ? run_dry(inv) : call->op->handler(call);
    call->args = inv->args;
    return status;
}

pd_status_t pd_invocation_unit(pd_tx_t *tx, void *baton)
{
    pd_invocation_t *inv = baton;
    pd_op_call_t *call = &inv->call;
    const pd_op_t *op = call->op;
    pd_status_t status;

    pd_invocation_drop_result(inv);
    memset(&call->fault, 0, sizeof(call->fault));
    call->detail = NULL;
    call->actor = inv->actor;
    pd_snapshot_free(&inv->current);
    call->snapshot = inv->held;
    call->tx = op->lane != PD_LANE_JOB || op->needs_tx ? tx : NULL;
    status = op->lane == PD_LANE_WRITE ? run_write(inv, tx) : op->handler(call);
    call->tx = NULL;
    return status;
}
