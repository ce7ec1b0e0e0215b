/* connections list, get, create, update, delete. Everybody manages connections of their own; shared
 * ones, and those of others, take connection:admin. What the actor may not see is as one that never
 * existed, and so is, for all but those who see every connection, one on a connector that is withheld
 * from the actor. */
#include "op_connections.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "op_find.h"
#include "op_reach.h"
#include "op_roles.h"
#include "pd_catalog.h"
#include "pd_seal.h"
#include "pd_snapshot.h"

const char *pd_op_connections_key(const char *owner, const char *label, apr_pool_t *pool)
{
    return owner != NULL ? apr_pstrcat(pool, "own:", owner, ":", label, (char *)NULL)
                         : apr_pstrcat(pool, "label:", label, (char *)NULL);
}

/* --- showing and finding --------------------------------------------------------- */

/* Field by field: whatever else a document may hold stays inside. */
static json_t *show_connection(const pd_op_call_t *call, const pd_object_t *object)
{
    json_t *shown =
        json_pack("{s:s, s:s*, s:s*, s:s*, s:s*, s:b, s:b, s:O*, s:s*, s:s*}", "connection",
                  object->id, "label", mcp_json_str(object->doc, "label"), "connector",
                  mcp_json_str(object->doc, "connector"), "connector_slug",
                  mcp_json_str(object->doc, "connector_slug"), "owner", object->owner, "shared",
                  object->owner == NULL, "toolbox_only", mcp_json_bool(object->doc, "toolbox_only"),
                  "variables", json_object_get(object->doc, "variables"), "base",
                  mcp_json_str(object->doc, "base"), "state", mcp_json_str(object->doc, "state"));

    (void)call;
    if (shown != NULL && pd_op_stamp(shown, object) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    return shown;
}

static int is_own(const pd_op_call_t *call, const pd_object_t *object)
{
    return object->owner != NULL && call->actor->member_id != NULL &&
           strcmp(object->owner, call->actor->member_id) == 0;
}

static int sees_all(const pd_op_call_t *call)
{
    return pd_actor_may(call->actor, "connection:read_all") ||
           pd_actor_may(call->actor, "connection:admin");
}

/* `seen` (NULL: not kept) remembers answers by connector: a list asks for the same ones again. */
static int sees_connector(const pd_op_call_t *call, const char *connector_id, apr_hash_t *seen)
{
    static const char yes[] = "y";
    static const char no[] = "n";
    pd_subject_t subject = pd_op_subject(call->actor);
    const char *known = seen != NULL ? apr_hash_get(seen, connector_id, APR_HASH_KEY_STRING) : NULL;

    if (known == NULL) {
        known = pd_op_sees(call, &subject, connector_id) ? yes : no;
        if (seen != NULL) {
            apr_hash_set(seen, apr_pstrdup(call->pool, connector_id), APR_HASH_KEY_STRING, known);
        }
    }
    return known == yes;
}

static int may_see(const pd_op_call_t *call, const pd_object_t *object, apr_hash_t *seen)
{
    const char *connector = mcp_json_str(object->doc, "connector");

    if (sees_all(call)) {
        return 1;
    }
    return (object->owner == NULL || is_own(call, object)) && connector != NULL &&
           sees_connector(call, connector, seen);
}

/* By id; else by label: the actor's own before a shared one. */
static pd_status_t find_connection(pd_op_call_t *call, pd_object_t **ret)
{
    const char *named = pd_op_text(call, "connection");
    const char *own = call->actor->member_id;
    pd_status_t status = pd_op_has_policy(call);

    if (status != PD_OK) {
        return status;
    }
    status = PD_E_NOT_FOUND;
    if (strncmp(named, "cxn_", 4) == 0) {
        status = pd_tx_get(call->tx, "connection", named, ret);
    }
    if (status == PD_E_NOT_FOUND && own != NULL) {
        status =
            pd_tx_find(call->tx, "connection", pd_op_connections_key(own, named, call->pool), ret);
    }
    if (status == PD_E_NOT_FOUND) {
        status =
            pd_tx_find(call->tx, "connection", pd_op_connections_key(NULL, named, call->pool), ret);
    }
    if (status == PD_E_NOT_FOUND || (status == PD_OK && !may_see(call, *ret, NULL))) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connections list shows them.",
                        "There is no such connection; name one by id or label, another member's by "
                        "id.");
    }
    return status;
}

static pd_status_t check_admin(pd_op_call_t *call, int is_needed)
{
    if (!is_needed || pd_actor_may(call->actor, "connection:admin")) {
        return PD_OK;
    }
    pd_op_detail(call, "lacks=connection:admin");
    (void)apr_cpystrn(call->fault.permission, "connection:admin", sizeof(call->fault.permission));
    return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED, "Connections of your own need none.",
                    "Shared connections, and those of other members, need the permission "
                    "connection:admin.");
}

typedef struct wanted {
    const char *connector_id;
    const char *owner_id;
    const char *query;
    apr_hash_t *seen; /* see sees_connector() */
} wanted_t;

static int has_part(const pd_op_call_t *call, const pd_object_t *object, const char *name,
                    const char *part)
{
    const char *text = mcp_json_str(object->doc, name);

    return text != NULL && strstr(pd_op_lower(call, text), part) != NULL;
}

static int is_wanted(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    const wanted_t *wanted = baton;
    const json_t *shared = json_object_get(call->args, "shared");
    const char *connector = mcp_json_str(object->doc, "connector");

    if (wanted->connector_id != NULL &&
        (connector == NULL || strcmp(connector, wanted->connector_id) != 0)) {
        return 0;
    }
    if (wanted->owner_id != NULL &&
        (object->owner == NULL || strcmp(object->owner, wanted->owner_id) != 0)) {
        return 0;
    }
    if (shared != NULL && json_is_true(shared) != (object->owner == NULL)) {
        return 0;
    }
    return (wanted->query == NULL || has_part(call, object, "label", wanted->query) ||
            has_part(call, object, "connector_slug", wanted->query)) &&
           may_see(call, object, wanted->seen);
}

/* A filter by a member whose connections the actor does not see finds nothing, whether that member
 * exists or not. */
static pd_status_t find_owner(pd_op_call_t *call, const char *named, wanted_t *wanted,
                              int *ret_nothing)
{
    pd_object_t *member = NULL;
    pd_status_t status = pd_op_member(call, named, &member);
    const char *own = call->actor->member_id;

    *ret_nothing = 0;
    if (status == PD_OK) {
        wanted->owner_id = member->id;
        return PD_OK;
    }
    if (status == PD_E_INVALID && !sees_all(call)) {
        memset(&call->fault, 0, sizeof(call->fault));
        *ret_nothing = 1;
        wanted->owner_id = own;
        return PD_OK;
    }
    return status;
}

pd_status_t pd_op_connections_list(pd_op_call_t *call)
{
    const char *connector = pd_op_text(call, "connector");
    const char *owner = pd_op_text(call, "owner");
    const char *query = pd_op_text(call, "query");
    wanted_t wanted = {NULL, NULL, query != NULL ? pd_op_lower(call, query) : NULL,
                       apr_hash_make(call->pool)};
    pd_op_list_t list = {"connection", "cxn_", NULL, is_wanted, &wanted, show_connection};
    pd_object_t *found = NULL;
    pd_status_t status = pd_op_has_policy(call);
    int is_nothing = 0;

    if (status == PD_OK && connector != NULL) {
        status = sees_all(call) ? pd_op_connector(call, connector, &found)
                                : pd_op_connector_seen(call, connector, &found);
        wanted.connector_id = status == PD_OK ? found->id : NULL;
    }
    if (status == PD_OK && owner != NULL) {
        status = find_owner(call, owner, &wanted, &is_nothing);
    }
    if (status != PD_OK) {
        return status;
    }
    list.owner = wanted.owner_id;
    return is_nothing ? pd_op_items(call, json_array(), NULL) : pd_op_list_answer(call, &list);
}

pd_status_t pd_op_connections_get(pd_op_call_t *call)
{
    pd_object_t *connection = NULL;
    pd_status_t status = find_connection(call, &connection);

    return status == PD_OK ? pd_op_answer(call, show_connection(call, connection)) : status;
}

/* --- labels ---------------------------------------------------------------------- */

static int is_reserved(const pd_op_call_t *call, const char *label)
{
    const pd_config_t *config = call->core->config;
    int i;

    if (config->control_prefix != NULL && strcmp(config->control_prefix, label) == 0) {
        return 1;
    }
    for (i = 0; config->reserved_labels != NULL && i < config->reserved_labels->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(config->reserved_labels, i, const char *), label) == 0) {
            return 1;
        }
    }
    return 0;
}

static pd_status_t label_taken(pd_op_call_t *call)
{
    return pd_fault(
        &call->fault, MCP_CODE_CONFLICT, "Choose another label.",
        "A connection with this label exists: labels are unique among shared connections, "
        "among a member's own, and between these two.");
}

/* What begins the names of a toolbox's tools can't begin those of a connection's. */
static pd_status_t check_no_toolbox(pd_op_call_t *call, const char *label)
{
    pd_object_t *toolbox = NULL;
    pd_status_t status = pd_tx_find(
        call->tx, "toolbox", apr_pstrcat(call->pool, "name:", label, (char *)NULL), &toolbox);

    if (status == PD_OK) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Choose another label.",
                        "A toolbox has this name: toolboxes and connections share one name space.");
    }
    return status == PD_E_NOT_FOUND ? PD_OK : status;
}

/* No member's own connection has the label, which no single key tells. Those in use stand in the
 * policy by label; the few that can't be used have theirs nonetheless. */
static pd_status_t check_no_own_label(pd_op_call_t *call, const char *label)
{
    const pd_ground_t *ground = call->snapshot->ground;
    apr_hash_index_t *i;

    if (apr_hash_get(ground->any_label, label, APR_HASH_KEY_STRING) != NULL) {
        return label_taken(call);
    }
    for (i = apr_hash_first(call->pool, ground->left_out); i != NULL; i = apr_hash_next(i)) {
        pd_object_t *other = NULL;
        pd_status_t status = pd_tx_get(call->tx, "connection", apr_hash_this_key(i), &other);
        const char *taken = status == PD_OK ? mcp_json_str(other->doc, "label") : NULL;

        if (status != PD_OK && status != PD_E_NOT_FOUND) {
            return status;
        }
        if (taken != NULL && strcmp(taken, label) == 0) {
            return label_taken(call);
        }
    }
    return PD_OK;
}

static pd_status_t check_no_shared_label(pd_op_call_t *call, const char *label)
{
    pd_object_t *other = NULL;
    pd_status_t status =
        pd_tx_find(call->tx, "connection", pd_op_connections_key(NULL, label, call->pool), &other);

    return status == PD_E_NOT_FOUND ? PD_OK : status == PD_OK ? label_taken(call) : status;
}

static pd_status_t check_form(pd_op_call_t *call, const char *label)
{
    if (!mcp_name_is_label(label)) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "For example notion-legal",
                        "A label or a toolbox's name has 1 to 32 characters a-z, 0-9 and inner "
                        "dashes.");
    }
    if (is_reserved(call, label)) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Choose another label.",
                        "This label is reserved.");
    }
    return PD_OK;
}

pd_status_t pd_op_connections_label_free(pd_op_call_t *call, const char *label)
{
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = check_form(call, label);
    }
    if (status == PD_OK) {
        status = check_no_shared_label(call, label);
    }
    return status == PD_OK ? check_no_own_label(call, label) : status;
}

/* In the write transaction, so that two creations can't both find the label free. The connection's
 * own layer is left to its unique key. */
static pd_status_t check_label(pd_op_call_t *call, const char *label, const char *owner)
{
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = check_form(call, label);
    }
    if (status == PD_OK) {
        status = check_no_toolbox(call, label);
    }
    if (status != PD_OK) {
        return status;
    }
    return owner != NULL ? check_no_shared_label(call, label) : check_no_own_label(call, label);
}

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
        return check_admin(call, is_shared);
    }
    status = pd_op_member(call, named, &member);
    if (!pd_actor_may(call->actor, "connection:admin") &&
        (status == PD_OK || status == PD_E_INVALID) &&
        (member == NULL || own == NULL || strcmp(member->id, own) != 0)) {
        /* whether that member exists is not told */
        memset(&call->fault, 0, sizeof(call->fault));
        return check_admin(call, 1);
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
    return pd_fault(&call->fault, MCP_CODE_RESTRICTED,
                    "restrictions explain shows which rule withholds it.",
                    "The connector is withheld from the member whose connection it is to be.");
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
        status = check_label(call, label, owner);
    }
    if (status == PD_OK) {
        status = pd_op_connector_seen(call, pd_op_text(call, "connector"), &connector);
    }
    if (status == PD_OK) {
        status = check_owner_has(call, owner, connector->id);
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
        return label_taken(call);
    }
    if (status == PD_OK && credential != NULL) {
        status = seal(call, id, base, connector->doc, credential);
    }
    return status == PD_OK ? pd_op_answer_again(call, "connection", id, show_connection) : status;
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
        pd_status_t status = check_label(call, label, old->owner);

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
    pd_status_t status = find_connection(call, &old);

    if (status == PD_OK) {
        status = check_admin(call, !is_own(call, old));
    }
    if (status == PD_OK) {
        const char *connector_id = mcp_json_str(old->doc, "connector");

        doc = pd_op_copy(call, old->doc);
        status = doc == NULL || connector_id == NULL
                     ? PD_E_INTERNAL
                     : pd_op_connector_seen(call, connector_id, &connector);
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
        return label_taken(call);
    }
    return status == PD_OK ? pd_op_answer_again(call, "connection", old->id, show_connection)
                           : status;
}

/* --- delete ---------------------------------------------------------------------- */

pd_status_t pd_op_connections_delete(pd_op_call_t *call)
{
    pd_object_t *connection = NULL;
    pd_status_t status = find_connection(call, &connection);

    if (status == PD_OK) {
        status = check_admin(call, !is_own(call, connection));
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
