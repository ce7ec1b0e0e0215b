/* connections create, update, delete. Everybody has connections of their own; shared ones, and those of others, take
 * connection:admin. A credential is sealed for the connection's id and origin. */
#include <string.h>

#include <apr_strings.h>

#include "op_connections_private.h"

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "op_reach.h"
#include "op_roles.h"
#include "pd_catalog.h"
#include "pd_seal.h"
#include "pd_settings.h"
#include "pd_snapshot.h"

/* --- credential ------------------------------------------------------------------ */

/* Seals the argument `credential` for the connection at this base URL. */
static pd_status_t seal(pd_op_call_t *call, const char *id, const char *base,
                        const json_t *connector, const json_t *credential)
{
    const char *origin = pd_catalog_origin(base, call->pool);
    const void *sealed = NULL;
    size_t bytes = 0;
    pd_status_t status = pd_catalog_credential_check(connector, credential, &call->fault);

    if (status != PD_OK) {
        return status;
    }
    if (origin == NULL) {
        return PD_E_INTERNAL;
    }
    status = pd_seal_credential(call->core->master_key, id, origin, credential, call->pool, &sealed,
                                &bytes);
    return status == PD_OK ? pd_tx_secret_put(call->tx, "connection", id, sealed, bytes) : status;
}

static const char *state_text(const json_t *connector, int has_credential)
{
    return !pd_catalog_needs_credential(connector) || has_credential ? "ready" : "needs_reauth";
}

/* --- create ---------------------------------------------------------------------- */

/* Whose it becomes: *ret_owner NULL for a shared one. */
static pd_status_t choose_owner(pd_op_call_t *call, const char **ret_owner)
{
    const char *named = pd_op_text(call, "owner");
    int is_shared = mcp_json_bool(call->args, "shared");
    const char *own = call->actor->member_id;
    pd_object_t *member = NULL;
    const char *state;
    pd_status_t status;

    if (is_shared && named != NULL) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "Leave one of them out.",
                        "A connection is shared or has an owner.");
    }
    if (is_shared || named == NULL) {
        *ret_owner = is_shared ? NULL : own;
        if (!is_shared && own == NULL) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                            "Give \"owner\" or \"shared\": true.",
                            "You are no member who could own the connection.");
        }
        return pd_op_connections_check_admin(call, is_shared);
    }
    status = pd_op_member(call, named, &member);
    if (!pd_actor_may(call->actor, "connection:admin") &&
        (status == PD_OK || status == PD_E_INVALID) &&
        (member == NULL || own == NULL || strcmp(member->id, own) != 0)) {
        /* whether that member exists is not told */
        memset(&call->fault, 0, sizeof(call->fault));
        return pd_op_connections_check_admin(call, 1);
    }
    if (status != PD_OK) {
        return status;
    }
    state = mcp_json_str(member->doc, "state");
    if (state == NULL || strcmp(state, "active") != 0) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, NULL,
                        "The owner is not an active member.");
    }
    *ret_owner = member->id;
    return PD_OK;
}

/* Nobody makes for another what that one can't have. */
static pd_status_t check_owner_has(pd_op_call_t *call, const char *owner, const char *connector_id)
{
    static const char *const none[] = {NULL};
    const char *own = call->actor->member_id;
    pd_subject_t subject = {owner, none};
    pd_object_t *member = NULL;
    pd_status_t status;

    if (owner == NULL || (own != NULL && strcmp(owner, own) == 0)) {
        return PD_OK;
    }
    status = pd_tx_get(call->tx, "member", owner, &member);
    if (status != PD_OK) {
        return status;
    }
    subject.role_names = pd_op_role_names(call, json_object_get(member->doc, "roles"));
    if (pd_op_sees(call, &subject, connector_id)) {
        return PD_OK;
    }
    pd_op_detail(call, "withheld connector=%s owner=%s", connector_id, owner);
    return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                    "restrictions explain shows which rule withholds it.",
                    "The connector is withheld from the member whose connection it is to be.");
}

/* Everybody makes connections of his own, and each costs every snapshot: there is a bound, which is counted
 * in the writer's transaction. */
static pd_status_t check_room(pd_op_call_t *call, const char *owner)
{
    const apr_array_header_t *own = owner != NULL ? pd_snapshot_own(call->snapshot, owner) : NULL;
    int64_t most = pd_snapshot_setting_int(call->snapshot, "connections.max_own", PD_MAX_OWN);

    if (owner == NULL || (own != NULL ? own->nelts : 0) < most) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                    "Delete one of them, or ask for a higher setting connections.max_own.",
                    "A member has at most %ld connections of their own.", (long)most);
}

static json_t *new_document(pd_op_call_t *call, const pd_object_t *connector, const char *owner,
                            const char *base)
{
    json_t *variables = json_object_get(call->args, "variables");
    int has_credential = json_object_get(call->args, "credential") != NULL;

    return pd_op_keep(
        call, json_pack("{s:s, s:s*, s:s, s:b, s:b, s:o, s:s, s:s, s:s}", "connector",
                        connector->id, "connector_slug", mcp_json_str(connector->doc, "slug"),
                        "label", pd_op_text(call, "label"), "shared", owner == NULL, "toolbox_only",
                        mcp_json_bool(call->args, "toolbox_only"), "variables",
                        variables != NULL ? json_deep_copy(variables) : json_object(), "base", base,
                        "state", state_text(connector->doc, has_credential), "created_by",
                        pd_op_actor(call)));
}

pd_status_t pd_op_connections_create(pd_op_call_t *call)
{
    const json_t *credential = json_object_get(call->args, "credential");
    const char *label = pd_op_text(call, "label");
    const char *id = pd_store_new_id("cxn", call->pool);
    const char *keys[2] = {NULL, NULL};
    const char *owner = NULL;
    const char *base = NULL;
    pd_object_t *connector = NULL;
    json_t *doc;
    pd_status_t status = choose_owner(call, &owner);

    if (status == PD_OK) {
        status = pd_op_connections_check_label(call, label, owner);
    }
    if (status == PD_OK) {
        status = pd_op_connector_seen(call, pd_op_text(call, "connector"), &connector);
    }
    if (status == PD_OK) {
        status = check_owner_has(call, owner, connector->id);
    }
    if (status == PD_OK) {
        status = check_room(call, owner);
    }
    if (status == PD_OK) {
        status = pd_catalog_base_url(connector->doc, json_object_get(call->args, "variables"),
                                     call->pool, &base, &call->fault);
    }
    if (status != PD_OK) {
        return status;
    }
    doc = new_document(call, connector, owner, base);
    if (doc == NULL) {
        return PD_E_NOMEM;
    }
    keys[0] = pd_op_connections_key(owner, label, call->pool);
    pd_op_detail(call, "connection=%s connector=%s", id, connector->id);
    status = pd_tx_insert(call->tx, "connection", id, owner, doc, keys);
    if (status == PD_E_CONFLICT) {
        return pd_op_connections_label_taken(call);
    }
    if (status == PD_OK && credential != NULL) {
        status = seal(call, id, base, connector->doc, credential);
    }
    return status == PD_OK ? pd_op_answer_again(call, "connection", id, pd_op_connections_show)
                           : status;
}

/* --- update ---------------------------------------------------------------------- */

/* Puts the arguments over the document: label, toolbox_only, variables. */
static pd_status_t merge(pd_op_call_t *call, const pd_object_t *old, json_t *doc)
{
    static const char *const fields[] = {"label", "toolbox_only", "variables"};
    const char *label = pd_op_text(call, "label");
    const char *old_label = mcp_json_str(old->doc, "label");
    size_t i;

    if (label != NULL && (old_label == NULL || strcmp(label, old_label) != 0)) {
        pd_status_t status = pd_op_connections_check_label(call, label, old->owner);

        if (status != PD_OK) {
            return status;
        }
    }
    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const json_t *value = json_object_get(call->args, fields[i]);

        if (value != NULL && json_object_set_new(doc, fields[i], json_deep_copy(value)) != 0) {
            return PD_E_NOMEM;
        }
    }
    if (mcp_json_str(doc, "label") == NULL) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Give `label`, or delete it.",
                        "This connection is damaged: it has no label.");
    }
    return PD_OK;
}

/* A credential is bound to the origin it was given for: another origin drops it, unless it comes
 * along again. */
static pd_status_t follow_origin(pd_op_call_t *call, const pd_object_t *old,
                                 const json_t *connector, const char *base, json_t *doc)
{
    const json_t *credential = json_object_get(call->args, "credential");
    const char *old_base = mcp_json_str(old->doc, "base");
    const char *old_origin = old_base != NULL ? pd_catalog_origin(old_base, call->pool) : NULL;
    const char *origin = pd_catalog_origin(base, call->pool);
    pd_status_t status;

    if (credential != NULL) {
        if (json_object_set_new(doc, "state", json_string("ready")) != 0) {
            return PD_E_NOMEM;
        }
        return seal(call, old->id, base, connector, credential);
    }
    if (origin != NULL && old_origin != NULL && strcmp(origin, old_origin) == 0) {
        return PD_OK;
    }
    status = pd_tx_secret_delete(call->tx, "connection", old->id);
    if (status != PD_OK && status != PD_E_NOT_FOUND) {
        return status;
    }
    return json_object_set_new(doc, "state", json_string(state_text(connector, 0))) == 0
               ? PD_OK
               : PD_E_NOMEM;
}

pd_status_t pd_op_connections_update(pd_op_call_t *call)
{
    const char *keys[2] = {NULL, NULL};
    const char *base = NULL;
    pd_object_t *old = NULL;
    pd_object_t *connector = NULL;
    json_t *doc = NULL;
    pd_status_t status = pd_op_connections_find(call, &old);

    if (status == PD_OK) {
        status = pd_op_connections_check_admin(call, !pd_op_connections_is_own(call, old));
    }
    if (status == PD_OK) {
        const char *connector_id = mcp_json_str(old->doc, "connector");

        if (connector_id == NULL) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT, "connections delete takes it away.",
                            "This connection is damaged: it is on no connector.");
        }
        doc = pd_op_copy(call, old->doc);
        status = doc == NULL ? PD_E_NOMEM : pd_op_connector_seen(call, connector_id, &connector);
    }
    if (status == PD_OK) {
        status = check_owner_has(call, old->owner, connector->id);
    }
    if (status == PD_OK) {
        status = merge(call, old, doc);
    }
    if (status == PD_OK) {
        status = pd_catalog_base_url(connector->doc, json_object_get(doc, "variables"), call->pool,
                                     &base, &call->fault);
    }
    if (status == PD_OK) {
        status = follow_origin(call, old, connector->doc, base, doc);
    }
    if (status != PD_OK) {
        return status;
    }
    if (json_object_set_new(doc, "base", json_string(base)) != 0) {
        return PD_E_NOMEM;
    }
    keys[0] = pd_op_connections_key(old->owner, mcp_json_str(doc, "label"), call->pool);
    pd_op_detail(call, "connection=%s", old->id);
    status = pd_tx_update(call->tx, "connection", old->id, old->owner, doc, keys,
                          pd_op_if_revision(call), NULL);
    if (status == PD_E_CONFLICT) {
        return pd_op_connections_label_taken(call);
    }
    return status == PD_OK ? pd_op_answer_again(call, "connection", old->id, pd_op_connections_show)
                           : status;
}

/* --- delete ---------------------------------------------------------------------- */

pd_status_t pd_op_connections_delete(pd_op_call_t *call)
{
    pd_object_t *connection = NULL;
    pd_status_t status = pd_op_connections_find(call, &connection);

    if (status == PD_OK) {
        status = pd_op_connections_check_admin(call, !pd_op_connections_is_own(call, connection));
    }
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "connection=%s", connection->id);
    status = pd_tx_delete(call->tx, "connection", connection->id, pd_op_if_revision(call));
    return status == PD_OK ? pd_op_answer(call, json_pack("{s:s, s:b}", "connection",
                                                          connection->id, "deleted", 1))
                           : status;
}
