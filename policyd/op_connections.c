/* connections list, get, and what all five need. Everybody manages connections of their own; shared
 * ones, and those of others, take connection:admin. What the actor may not see is as one that never
 * existed, and so is, for all but those who see every connection, one on a connector that is withheld
 * from the actor. */
#include "op_connections.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_connections_private.h"
#include "op_find.h"
#include "op_reach.h"
#include "op_roles.h"
#include "pd_snapshot.h"

const char *pd_op_connections_key(const char *owner, const char *label, apr_pool_t *pool)
{
    return owner != NULL ? apr_pstrcat(pool, "own:", owner, ":", label, (char *)NULL)
                         : apr_pstrcat(pool, "label:", label, (char *)NULL);
}

/* --- showing and finding --------------------------------------------------------- */

static int sees_all(const pd_op_call_t *call)
{
    return pd_actor_may(call->actor, "connection:read_all") ||
           pd_actor_may(call->actor, "connection:admin");
}

/* A shared one that serves toolboxes alone: where it leads is for those who see all. */
static int is_behind_toolboxes(const pd_object_t *object)
{
    return object->owner == NULL && mcp_json_bool(object->doc, "toolbox_only");
}

/* Field by field: whatever else a document may hold stays inside. */
json_t *pd_op_connections_show(const pd_op_call_t *call, const pd_object_t *object)
{
    int tells_where = sees_all(call) || !is_behind_toolboxes(object);
    json_t *shown =
        json_pack("{s:s, s:s*, s:s*, s:s*, s:s*, s:b, s:b, s:O*, s:s*, s:s*}", "connection",
                  object->id, "label", mcp_json_str(object->doc, "label"), "connector",
                  mcp_json_str(object->doc, "connector"), "connector_slug",
                  mcp_json_str(object->doc, "connector_slug"), "owner", object->owner, "shared",
                  object->owner == NULL, "toolbox_only", mcp_json_bool(object->doc, "toolbox_only"),
                  "variables", tells_where ? json_object_get(object->doc, "variables") : NULL,
                  "base", tells_where ? mcp_json_str(object->doc, "base") : NULL, "state",
                  mcp_json_str(object->doc, "state"));

    if (shown != NULL && pd_op_stamp(shown, object) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    return shown;
}

int pd_op_connections_is_own(const pd_op_call_t *call, const pd_object_t *object)
{
    return object->owner != NULL && call->actor->member_id != NULL &&
           strcmp(object->owner, call->actor->member_id) == 0;
}

#define NAMED "op_connections named"

/* Ids of the connections that entries of the actor's toolboxes name. Made once a call. */
static apr_hash_t *named_by_toolboxes(const pd_op_call_t *call)
{
    const apr_array_header_t *toolboxes = call->snapshot->toolboxes->sorted;
    pd_subject_t subject = pd_op_subject(call->actor);
    apr_hash_t *named;
    void *made = NULL;
    int i;
    int k;
    int n;

    if (apr_pool_userdata_get(&made, NAMED, call->pool) == APR_SUCCESS && made != NULL) {
        return made;
    }
    named = apr_hash_make(call->pool);
    for (i = 0; i < toolboxes->nelts; i++) {
        const pd_toolbox_t *toolbox = APR_ARRAY_IDX(toolboxes, i, const pd_toolbox_t *);

        if (!pd_toolbox_is_for(toolbox, subject.member_id, subject.role_names)) {
            continue;
        }
        for (k = 0; k < toolbox->entries->nelts; k++) {
            const apr_array_header_t *ids =
                APR_ARRAY_IDX(toolbox->entries, k, pd_entry_t).connection_ids;

            for (n = 0; n < ids->nelts; n++) {
                const char *id = APR_ARRAY_IDX(ids, n, const char *);

                apr_hash_set(named, id, APR_HASH_KEY_STRING, id);
            }
        }
    }
    (void)apr_pool_userdata_setn(named, NAMED, NULL, call->pool); /* else it is made again */
    return named;
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
    if (is_behind_toolboxes(object) && apr_hash_get(named_by_toolboxes(call), object->id,
                                                    APR_HASH_KEY_STRING) == NULL) {
        return 0;
    }
    return (object->owner == NULL || pd_op_connections_is_own(call, object)) && connector != NULL &&
           sees_connector(call, connector, seen);
}

pd_status_t pd_op_connections_find(pd_op_call_t *call, pd_object_t **ret)
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

pd_status_t pd_op_connections_check_admin(pd_op_call_t *call, int is_needed)
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
    pd_op_list_t list = {"connection", "cxn_", NULL, is_wanted, &wanted, pd_op_connections_show};
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
    pd_status_t status = pd_op_connections_find(call, &connection);

    return status == PD_OK ? pd_op_answer(call, pd_op_connections_show(call, connection)) : status;
}
