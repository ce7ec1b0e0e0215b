/* toolboxes list, get, create, update, delete: see op_toolboxes.h. */
#include "op_toolboxes.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_connections.h"
#include "op_find.h"
#include "op_reach.h"
#include "op_toolbox_entries.h"
#include "op_toolbox_show.h"
#include "pd_roles.h"
#include "pd_snapshot.h"

#define KIND "toolbox"

/* --- list and get ---------------------------------------------------------------- */

typedef struct wanted {
    const char *query;
    const char *connector; /* id or slug, as named */
    const char *role;
    const char *member_id;
} wanted_t;

static int has_text(const json_t *array, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(array, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), text) == 0) {
            return 1;
        }
    }
    return 0;
}

static int has_part(const pd_op_call_t *call, const pd_object_t *object, const char *name,
                    const char *part)
{
    const char *text = mcp_json_str(object->doc, name);

    return text != NULL && strstr(pd_op_lower(call, text), part) != NULL;
}

static int uses_connector(const json_t *doc, const char *named)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(doc, "entries"), i, entry)
    {
        const char *id = mcp_json_str(entry, "connector");
        const char *slug = mcp_json_str(entry, "connector_slug");

        if ((id != NULL && strcmp(id, named) == 0) || (slug != NULL && strcmp(slug, named) == 0)) {
            return 1;
        }
    }
    return 0;
}

static int is_wanted(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    const wanted_t *wanted = baton;

    if (wanted->connector != NULL && !uses_connector(object->doc, wanted->connector)) {
        return 0;
    }
    if (!pd_op_toolbox_sees_all(call) && pd_op_toolbox_own(call, object->id) == NULL) {
        return 0;
    }
    if ((wanted->role != NULL && !has_text(json_object_get(object->doc, "roles"), wanted->role)) ||
        (wanted->member_id != NULL &&
         !has_text(json_object_get(object->doc, "members"), wanted->member_id))) {
        return 0;
    }
    return wanted->query == NULL || has_part(call, object, "name", wanted->query) ||
           has_part(call, object, "description", wanted->query);
}

/* A role by name or id, to its name. */
static pd_status_t role_name(pd_op_call_t *call, const char *named, const char **ret)
{
    pd_object_t *role = NULL;
    pd_status_t status;

    if (pd_roles_builtin(named) != NULL) {
        *ret = named;
        return PD_OK;
    }
    status = pd_op_role(call, named, &role);
    if (status != PD_OK) {
        return status;
    }
    *ret = mcp_json_str(role->doc, "name");
    return *ret != NULL ? PD_OK : PD_E_INTERNAL;
}

/* For whom a toolbox is, is for those to know who see all of them. */
static pd_status_t check_filters(pd_op_call_t *call, wanted_t *wanted)
{
    const char *role = pd_op_text(call, "role");
    const char *named = pd_op_text(call, "member");
    pd_object_t *member = NULL;
    pd_status_t status = PD_OK;

    if ((role != NULL || named != NULL) && !pd_op_toolbox_sees_all(call)) {
        pd_op_detail(call, "lacks=toolbox:read_all");
        (void)apr_cpystrn(call->fault.permission, "toolbox:read_all",
                          sizeof(call->fault.permission));
        return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED,
                        "Without these filters the list shows your own toolboxes.",
                        "Asking for whom toolboxes are needs the permission toolbox:read_all.");
    }
    if (role != NULL) {
        status = role_name(call, role, &wanted->role);
    }
    if (status == PD_OK && named != NULL) {
        status = pd_op_member(call, named, &member);
        wanted->member_id = status == PD_OK ? member->id : NULL;
    }
    return status;
}

pd_status_t pd_op_toolboxes_list(pd_op_call_t *call)
{
    const char *query = pd_op_text(call, "query");
    wanted_t wanted = {query != NULL ? pd_op_lower(call, query) : NULL,
                       pd_op_text(call, "connector"), NULL, NULL};
    const pd_op_list_t list = {KIND, "tbx_", NULL, is_wanted, &wanted, pd_op_toolbox_show_listed};
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = check_filters(call, &wanted);
    }
    return status == PD_OK ? pd_op_list_answer(call, &list) : status;
}

static const char *name_key(const pd_op_call_t *call, const char *name)
{
    return apr_pstrcat(call->pool, "name:", name, (char *)NULL);
}

/* By id or name; one that the actor does not see is as one that never was. */
static pd_status_t find_toolbox(pd_op_call_t *call, pd_object_t **ret)
{
    const char *named = pd_op_text(call, KIND);
    pd_status_t status = pd_op_has_policy(call);

    if (status != PD_OK) {
        return status;
    }
    status = strncmp(named, "tbx_", 4) == 0
                 ? pd_tx_get(call->tx, KIND, named, ret)
                 : pd_tx_find(call->tx, KIND, name_key(call, named), ret);
    if (status == PD_E_NOT_FOUND || (status == PD_OK && !pd_op_toolbox_sees_all(call) &&
                                     pd_op_toolbox_own(call, (*ret)->id) == NULL)) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "toolboxes list shows them.",
                        "There is no such toolbox; name one by id or name.");
    }
    return status;
}

pd_status_t pd_op_toolboxes_get(pd_op_call_t *call)
{
    pd_object_t *toolbox = NULL;
    pd_status_t status = find_toolbox(call, &toolbox);

    return status == PD_OK ? pd_op_answer(call, pd_op_toolbox_show_whole(call, toolbox)) : status;
}

/* --- for whom -------------------------------------------------------------------- */

static pd_status_t add_once(json_t *array, const char *text)
{
    if (has_text(array, text)) {
        return PD_OK;
    }
    return json_array_append_new(array, json_string(text)) == 0 ? PD_OK : PD_E_NOMEM;
}

/* Roles by name or id, to names; kept. */
static pd_status_t choose_roles(pd_op_call_t *call, const json_t *given, json_t **ret)
{
    json_t *roles = pd_op_keep(call, json_array());
    size_t i;

    for (i = 0; i < json_array_size(given); i++) {
        const char *name = NULL;
        pd_status_t status = role_name(call, json_string_value(json_array_get(given, i)), &name);

        if (status == PD_OK) {
            status = add_once(roles, name);
        }
        if (status != PD_OK) {
            return status;
        }
    }
    *ret = roles;
    return PD_OK;
}

/* Members by id or email, to ids; kept. */
static pd_status_t choose_members(pd_op_call_t *call, const json_t *given, json_t **ret)
{
    json_t *members = pd_op_keep(call, json_array());
    size_t i;

    for (i = 0; i < json_array_size(given); i++) {
        pd_object_t *member = NULL;
        const char *state;
        pd_status_t status =
            pd_op_member(call, json_string_value(json_array_get(given, i)), &member);

        if (status != PD_OK) {
            return status;
        }
        state = mcp_json_str(member->doc, "state");
        if (state == NULL || strcmp(state, "removed") == 0) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT, NULL,
                            "Member number %lu of the list was removed.", (unsigned long)i + 1);
        }
        status = add_once(members, member->id);
        if (status != PD_OK) {
            return status;
        }
    }
    *ret = members;
    return PD_OK;
}

/* --- writing --------------------------------------------------------------------- */

static pd_status_t name_taken(pd_op_call_t *call)
{
    return pd_fault(&call->fault, MCP_CODE_CONFLICT, "toolboxes update changes it.",
                    "A toolbox of this name exists.");
}

/* What we are about to store has to be sound, or nobody would have the toolbox. It is, unless a stored one that
 * was damaged still is. */
static pd_status_t check_sound(pd_op_call_t *call, const char *id, const json_t *doc)
{
    pd_toolbox_t *toolbox = NULL;
    pd_status_t status = pd_toolbox_make(id, doc, &toolbox);

    if (status == PD_OK) {
        pd_toolbox_release(&toolbox);
    }
    return status != PD_E_INVALID
               ? status
               : pd_fault(&call->fault, MCP_CODE_CONFLICT,
                          "Give all of it anew, `description` too, or delete it.",
                          "This toolbox is damaged, and would still be.");
}

static pd_status_t answer_write(pd_op_call_t *call, const char *id, json_t *warnings)
{
    pd_status_t status = pd_op_answer_again(call, KIND, id, pd_op_toolbox_show_whole);

    if (status == PD_OK &&
        json_object_set_new(call->result, "warnings", json_incref(warnings)) != 0) {
        return PD_E_NOMEM;
    }
    return status;
}

pd_status_t pd_op_toolboxes_create(pd_op_call_t *call)
{
    const char *name = pd_op_text(call, "name");
    const char *id = pd_store_new_id("tbx", call->pool);
    const char *keys[2] = {name_key(call, name), NULL};
    json_t *warnings = pd_op_keep(call, json_array());
    json_t *roles = NULL;
    json_t *members = NULL;
    json_t *entries = NULL;
    json_t *doc = NULL;
    pd_status_t status = pd_op_connections_label_free(call, name);

    if (status == PD_OK) {
        status = choose_roles(call, json_object_get(call->args, "roles"), &roles);
    }
    if (status == PD_OK) {
        status = choose_members(call, json_object_get(call->args, "members"), &members);
    }
    if (status == PD_OK) {
        status = pd_op_toolbox_entries(call, name, json_object_get(call->args, "entries"), NULL,
                                       warnings, &entries);
    }
    if (status == PD_OK) {
        doc = pd_op_keep(call,
                         json_pack("{s:s, s:s*, s:O, s:O, s:O, s:s}", "name", name, "description",
                                   pd_op_text(call, "description"), "roles", roles, "members",
                                   members, "entries", entries, "created_by", pd_op_actor(call)));
        status = doc != NULL ? check_sound(call, id, doc) : PD_E_NOMEM;
    }
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "toolbox=%s", id);
    status = pd_tx_insert(call->tx, KIND, id, NULL, doc, keys);
    if (status == PD_E_CONFLICT) {
        return name_taken(call);
    }
    return status == PD_OK ? answer_write(call, id, warnings) : status;
}

static pd_status_t put(json_t *doc, const char *name, json_t *kept)
{
    return json_object_set_new(doc, name, json_incref(kept)) == 0 ? PD_OK : PD_E_NOMEM;
}

static pd_status_t merge_description(const pd_op_call_t *call, json_t *doc)
{
    json_t *given = json_object_get(call->args, "description");

    if (json_is_null(given)) {
        (void)json_object_del(doc, "description"); /* not there: nothing to take away */
        return PD_OK;
    }
    return given != NULL ? put(doc, "description", given) : PD_OK;
}

/* Another name gives all tools other names, so these are looked at again too. */
static pd_status_t merge_name(pd_op_call_t *call, const pd_object_t *old, json_t *doc)
{
    const char *name = pd_op_text(call, "name");
    const char *was = mcp_json_str(old->doc, "name");
    pd_status_t status;

    if (name == NULL || (was != NULL && strcmp(name, was) == 0)) {
        return PD_OK;
    }
    status = pd_op_connections_label_free(call, name);
    if (status == PD_OK && json_object_get(call->args, "entries") == NULL) {
        status = pd_op_toolbox_names(call, name, json_object_get(old->doc, "entries"));
    }
    if (status != PD_OK) {
        return status;
    }
    return json_object_set_new(doc, "name", json_string(name)) == 0 ? PD_OK : PD_E_NOMEM;
}

/* Another name for a damaged one that has none. */
static pd_status_t check_has_name(pd_op_call_t *call, const json_t *doc)
{
    return mcp_json_str(doc, "name") != NULL
               ? PD_OK
               : pd_fault(&call->fault, MCP_CODE_CONFLICT, "Give `name`, or delete it.",
                          "This toolbox is damaged: it has no name.");
}

static pd_status_t merge(pd_op_call_t *call, const pd_object_t *old, json_t *doc, json_t *warnings)
{
    const json_t *roles = json_object_get(call->args, "roles");
    const json_t *members = json_object_get(call->args, "members");
    const json_t *entries = json_object_get(call->args, "entries");
    json_t *made = NULL;
    pd_status_t status = merge_name(call, old, doc);

    if (status == PD_OK) {
        status = check_has_name(call, doc);
    }
    if (status == PD_OK) {
        status = merge_description(call, doc);
    }
    if (status == PD_OK && roles != NULL) {
        status = choose_roles(call, roles, &made);
        status = status == PD_OK ? put(doc, "roles", made) : status;
    }
    if (status == PD_OK && members != NULL) {
        status = choose_members(call, members, &made);
        status = status == PD_OK ? put(doc, "members", made) : status;
    }
    if (status == PD_OK && entries != NULL) {
        status = pd_op_toolbox_entries(call, mcp_json_str(doc, "name"), entries,
                                       json_object_get(old->doc, "entries"), warnings, &made);
        status = status == PD_OK ? put(doc, "entries", made) : status;
    }
    return status;
}

pd_status_t pd_op_toolboxes_update(pd_op_call_t *call)
{
    json_t *warnings = pd_op_keep(call, json_array());
    const char *keys[2] = {NULL, NULL};
    pd_object_t *old = NULL;
    json_t *doc = NULL;
    pd_status_t status = find_toolbox(call, &old);

    if (status == PD_OK) {
        doc = json_is_object(old->doc) ? pd_op_copy(call, old->doc)
                                       : pd_op_keep(call, json_object());
        status = doc != NULL ? merge(call, old, doc, warnings) : PD_E_NOMEM;
    }
    if (status == PD_OK) {
        status = check_sound(call, old->id, doc);
    }
    if (status != PD_OK) {
        return status;
    }
    keys[0] = name_key(call, mcp_json_str(doc, "name"));
    pd_op_detail(call, "toolbox=%s", old->id);
    status = pd_tx_update(call->tx, KIND, old->id, NULL, doc, keys, pd_op_if_revision(call), NULL);
    if (status == PD_E_CONFLICT) {
        return name_taken(call);
    }
    return status == PD_OK ? answer_write(call, old->id, warnings) : status;
}

pd_status_t pd_op_toolboxes_delete(pd_op_call_t *call)
{
    pd_object_t *toolbox = NULL;
    pd_status_t status = find_toolbox(call, &toolbox);

    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "toolbox=%s", toolbox->id);
    status = pd_tx_delete(call->tx, KIND, toolbox->id, pd_op_if_revision(call));
    return status == PD_OK
               ? pd_op_answer(call, json_pack("{s:s, s:b}", KIND, toolbox->id, "deleted", 1))
               : status;
}

/* --- a member who goes ----------------------------------------------------------- */

static pd_status_t forget_in(pd_op_call_t *call, const char *id, const char *member_id)
{
    const char *keys[2] = {NULL, NULL};
    pd_object_t *toolbox = NULL;
    json_t *members;
    json_t *doc;
    size_t i;
    pd_status_t status = pd_tx_get(call->tx, KIND, id, &toolbox);

    if (status != PD_OK) {
        return status;
    }
    doc = pd_op_copy(call, toolbox->doc);
    if (doc == NULL) {
        return PD_E_NOMEM;
    }
    members = json_object_get(doc, "members");
    for (i = json_array_size(members); i-- > 0;) {
        const char *one = json_string_value(json_array_get(members, i));

        if (one != NULL && strcmp(one, member_id) == 0) {
            (void)json_array_remove(members, i); /* it is there */
        }
    }
    keys[0] = name_key(call, mcp_json_str(doc, "name"));
    return pd_tx_update(call->tx, KIND, id, NULL, doc, keys, 0, NULL);
}

/* One that can't be read serves nobody, and the id never comes again, so those in force are all. */
pd_status_t pd_op_toolboxes_forget_member(pd_op_call_t *call, const char *member_id)
{
    const apr_array_header_t *toolboxes;
    pd_status_t status = pd_op_has_policy(call);
    int i;

    if (status != PD_OK) {
        return status;
    }
    toolboxes = call->snapshot->toolboxes->sorted;
    for (i = 0; status == PD_OK && i < toolboxes->nelts; i++) {
        const pd_toolbox_t *toolbox = APR_ARRAY_IDX(toolboxes, i, const pd_toolbox_t *);

        if (apr_hash_get(toolbox->members, member_id, APR_HASH_KEY_STRING) != NULL) {
            status = forget_in(call, toolbox->id, member_id);
        }
    }
    return status;
}
