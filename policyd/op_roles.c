/* roles list, get, create, update, delete. A built-in role is named by its name alone and never
 * changes. */
#include "op_roles.h"

#include <string.h>

#include <apr_cstr.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_roles.h"
#include "pd_snapshot.h"

#define MAX_NAME 64

/* --- who may give what ----------------------------------------------------------- */

int pd_op_roles_has_owner(const json_t *roles)
{
    size_t i;

    for (i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));

        if (name != NULL && strcmp(name, "Owner") == 0) {
            return 1;
        }
    }
    return 0;
}

pd_status_t pd_op_roles_exist(pd_op_call_t *call, const json_t *roles)
{
    size_t i;

    for (i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));
        pd_object_t *role = NULL;
        pd_status_t status;

        if (pd_roles_builtin(name) != NULL) {
            continue;
        }
        status = pd_tx_find(
            call->tx, "role",
            apr_pstrcat(call->pool, "name:", name != NULL ? name : "", (char *)NULL), &role);
        if (status == PD_E_NOT_FOUND) {
            return pd_fault(&call->fault, MCP_CODE_NOT_FOUND,
                            "Roles are named as roles list shows them, letter for letter.",
                            "Role number %u of the list does not exist.", (unsigned)i + 1);
        }
        if (status != PD_OK) {
            return status;
        }
    }
    return PD_OK;
}

static pd_status_t covers(pd_op_call_t *call, const char *const *permissions)
{
    const char *missing = NULL;

    if (pd_actor_covers(call->actor, permissions, &missing)) {
        return PD_OK;
    }
    pd_op_detail(call, "lacks=%s", missing != NULL ? missing : "");
    return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED,
                    "Ask somebody who holds it, such as an Owner.",
                    "Nobody gives what they don't hold: your roles lack the permission %s.",
                    missing != NULL ? missing : "");
}

pd_status_t pd_op_roles_givable(pd_op_call_t *call, const json_t *roles)
{
    const char *const *permissions = NULL;
    int is_owner = 0;
    pd_status_t status = pd_roles_permissions(call->tx, roles, call->pool, &permissions, &is_owner);

    if (status != PD_OK) {
        return status;
    }
    if (is_owner && !call->actor->is_owner) {
        pd_op_detail(call, "needs=Owner");
        return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED, "Ask an Owner.",
                        "Only an Owner makes, changes or ends an Owner, or acts for one.");
    }
    return covers(call, permissions);
}

/* --- showing --------------------------------------------------------------------- */

static json_t *names_array(const char *const *names)
{
    json_t *array = json_array();

    for (; array != NULL && *names != NULL; names++) {
        if (json_array_append_new(array, json_string(*names)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *show_builtin(const char *name)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:o}", "role", name, "name", name, "description",
                     pd_roles_builtin_text(name), "builtin", 1, "permissions",
                     names_array(pd_roles_builtin(name)));
}

static json_t *show_role(const pd_op_call_t *call, const pd_object_t *object)
{
    json_t *shown = json_pack("{s:s, s:s*, s:s*, s:b, s:O*}", "role", object->id, "name",
                              mcp_json_str(object->doc, "name"), "description",
                              mcp_json_str(object->doc, "description"), "builtin", 0, "permissions",
                              json_object_get(object->doc, "permissions"));

    (void)call;
    if (shown != NULL && pd_op_stamp(shown, object) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    return shown;
}

/* --- list and get ---------------------------------------------------------------- */

static int builtin_after(const char *cursor)
{
    int i;

    for (i = 0; cursor != NULL && pd_roles_builtin_name(i) != NULL; i++) {
        if (strcmp(pd_roles_builtin_name(i), cursor) == 0) {
            return i + 1;
        }
    }
    return -1;
}

/* Built-in roles first; a cursor is the name of the last built-in or the id of the last custom
 * role. */
pd_status_t pd_op_roles_list(pd_op_call_t *call)
{
    const pd_op_list_t custom = {"role", "rol_", NULL, NULL, NULL, show_role};
    const char *cursor = pd_op_text(call, "cursor");
    size_t limit = pd_op_limit(call);
    const char *next = NULL;
    json_t *items;
    pd_status_t status;
    int i = builtin_after(cursor);

    if (cursor != NULL && i < 0 && strncmp(cursor, "rol_", 4) != 0) {
        return pd_op_bad_cursor(call);
    }
    items = json_array();
    if (cursor == NULL || i >= 0) {
        const char *last = cursor;

        for (i = i < 0 ? 0 : i; pd_roles_builtin_name(i) != NULL && json_array_size(items) < limit;
             i++) {
            last = pd_roles_builtin_name(i);
            if (json_array_append_new(items, show_builtin(last)) != 0) {
                json_decref(items);
                return PD_E_NOMEM;
            }
        }
        if (pd_roles_builtin_name(i) != NULL) {
            return pd_op_items(call, items, last);
        }
        cursor = NULL;
        next = last; /* where custom roles go on from, should the page be full already */
    }
    status = pd_op_list_more(call, &custom, cursor, limit, items, &next);
    if (status != PD_OK) {
        json_decref(items);
        return status;
    }
    return pd_op_items(call, items, next);
}

pd_status_t pd_op_roles_get(pd_op_call_t *call)
{
    const char *named = pd_op_text(call, "role");
    pd_object_t *role = NULL;
    pd_status_t status;

    if (pd_roles_builtin(named) != NULL) {
        return pd_op_answer(call, show_builtin(named));
    }
    status = pd_op_role(call, named, &role);
    return status == PD_OK ? pd_op_answer(call, show_role(call, role)) : status;
}

/* --- writing --------------------------------------------------------------------- */

static int is_name(const char *name)
{
    size_t bytes = strlen(name);
    size_t i;

    if (bytes == 0 || bytes > MAX_NAME || name[0] == ' ' || name[bytes - 1] == ' ') {
        return 0;
    }
    for (i = 0; i < bytes; i++) {
        char c = name[i];

        /* no comma: records join role names by it */
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr(" ._-", c) != NULL)) {
            return 0;
        }
    }
    return strncmp(name, "rol_", 4) != 0;
}

static pd_status_t check_name(pd_op_call_t *call, const char *name)
{
    int i;

    if (!is_name(name)) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, NULL,
                        "A role's name has 1 to 64 letters, digits, blanks, dots, dashes or "
                        "underscores, no blank at an end, and does not begin like an id.");
    }
    for (i = 0; pd_roles_builtin_name(i) != NULL; i++) {
        if (apr_cstr_casecmp(pd_roles_builtin_name(i), name) == 0) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Choose another name.",
                            "%s is a built-in role.", pd_roles_builtin_name(i));
        }
    }
    return PD_OK;
}

/* Known permissions only, and those that the actor holds. */
static pd_status_t check_permissions(pd_op_call_t *call, const json_t *permissions)
{
    size_t count = json_array_size(permissions);
    const char **names = apr_palloc(call->pool, (count + 1) * sizeof(*names));
    size_t i;

    for (i = 0; i < count; i++) {
        names[i] = json_string_value(json_array_get(permissions, i));
        if (names[i] == NULL || !pd_roles_is_permission(names[i])) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                            "roles get {\"role\":\"Owner\"} lists all permissions.",
                            "Permission number %u of the list does not exist.", (unsigned)i + 1);
        }
    }
    names[count] = NULL;
    return covers(call, names);
}

pd_status_t pd_op_roles_create(pd_op_call_t *call)
{
    const char *name = pd_op_text(call, "name");
    json_t *permissions = json_object_get(call->args, "permissions");
    const char *id = pd_store_new_id("rol", call->pool);
    const char *keys[] = {apr_pstrcat(call->pool, "name:", name, (char *)NULL), NULL};
    pd_status_t status = check_name(call, name);
    json_t *doc;

    if (status == PD_OK) {
        status = check_permissions(call, permissions);
    }
    if (status != PD_OK) {
        return status;
    }
    doc = pd_op_keep(call, json_pack("{s:s, s:s*, s:O}", "name", name, "description",
                                     pd_op_text(call, "description"), "permissions", permissions));
    if (doc == NULL) {
        return PD_E_NOMEM;
    }
    pd_op_detail(call, "role=%s", id);
    status = pd_tx_insert(call->tx, "role", id, NULL, doc, keys);
    if (status == PD_E_CONFLICT) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "roles update changes it.",
                        "A role of this name exists.");
    }
    return status == PD_OK ? pd_op_answer_again(call, "role", id, show_role) : status;
}

/* *ret_name: the role's name, NULL where the stored one is damaged (nobody can hold such a role). */
static pd_status_t find_custom(pd_op_call_t *call, pd_object_t **ret, const char **ret_name)
{
    const char *named = pd_op_text(call, "role");
    pd_status_t status;

    if (pd_roles_builtin(named) != NULL) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                        "roles create makes a role with the permissions you choose.",
                        "Built-in roles can't be changed or deleted.");
    }
    status = pd_op_role(call, named, ret);
    if (status == PD_OK) {
        *ret_name = mcp_json_str((*ret)->doc, "name");
    }
    return status;
}

pd_status_t pd_op_roles_update(pd_op_call_t *call)
{
    json_t *permissions = json_object_get(call->args, "permissions");
    json_t *description = json_object_get(call->args, "description");
    pd_object_t *role = NULL;
    const char *name = NULL;
    const char *keys[2] = {NULL, NULL};
    json_t *doc;
    pd_status_t status = find_custom(call, &role, &name);

    if (status == PD_OK && name == NULL) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "roles delete takes it away.",
                        "This role is damaged: it has no name.");
    }
    if (status == PD_OK && permissions != NULL) {
        status = check_permissions(call, permissions);
    }
    if (status != PD_OK) {
        return status;
    }
    doc = pd_op_copy(call, role->doc);
    if (doc == NULL ||
        (permissions != NULL &&
         json_object_set_new(doc, "permissions", json_incref(permissions)) != 0) ||
        (description != NULL &&
         json_object_set_new(doc, "description", json_incref(description)) != 0)) {
        return PD_E_NOMEM;
    }
    keys[0] = apr_pstrcat(call->pool, "name:", name, (char *)NULL);
    pd_op_detail(call, "role=%s", role->id);
    status =
        pd_tx_update(call->tx, "role", role->id, NULL, doc, keys, pd_op_if_revision(call), NULL);
    return status == PD_OK ? pd_op_answer_again(call, "role", role->id, show_role) : status;
}

static int member_has_role(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    const json_t *roles = json_object_get(object->doc, "roles");
    size_t i;

    (void)call;
    for (i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));

        if (name != NULL && strcmp(name, baton) == 0) {
            return 1;
        }
    }
    return 0;
}

static json_t *show_nothing(const pd_op_call_t *call, const pd_object_t *object)
{
    (void)call;
    (void)object;
    return json_true();
}

static int is_target_of(const pd_rulebook_t *book, const char *target, apr_pool_t *pool)
{
    apr_hash_index_t *i;

    for (i = apr_hash_first(pool, book->targets); i != NULL; i = apr_hash_next(i)) {
        if (strcmp(apr_hash_this_val(i), target) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Policy that names the role would hold for whoever gets a role of this name later. */
static pd_status_t check_not_named(pd_op_call_t *call, const char *name)
{
    const apr_array_header_t *toolboxes;
    pd_status_t status = pd_op_has_policy(call);
    int i;

    if (status != PD_OK) {
        return status;
    }
    if (is_target_of(call->snapshot->rulebook, apr_pstrcat(call->pool, "role:", name, (char *)NULL),
                     call->pool)) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                        "restrictions list {\"role\":…} shows them; delete them first.",
                        "Restrictions are for this role.");
    }
    toolboxes = call->snapshot->toolboxes->sorted;
    for (i = 0; i < toolboxes->nelts; i++) {
        if (apr_hash_get(APR_ARRAY_IDX(toolboxes, i, const pd_toolbox_t *)->roles, name,
                         APR_HASH_KEY_STRING) != NULL) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                            "toolboxes list {\"role\":…} shows them; take the role off them first.",
                            "Toolboxes are for this role.");
        }
    }
    return PD_OK;
}

static pd_status_t check_not_held(pd_op_call_t *call, const char *name)
{
    const pd_op_list_t holders = {"member", "mem_", NULL, member_has_role, name, show_nothing};
    json_t *found = pd_op_keep(call, json_array());
    const char *next = NULL;
    pd_status_t status = pd_op_list_more(call, &holders, NULL, 1, found, &next);
    if (status != PD_OK) {
        return status;
    }
    if (json_array_size(found) > 0) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                        "members list {\"role\":…} shows them; give them other roles first.",
                        "Members hold this role.");
    }
    return PD_OK;
}

pd_status_t pd_op_roles_delete(pd_op_call_t *call)
{
    pd_object_t *role = NULL;
    const char *name = NULL;
    pd_status_t status = find_custom(call, &role, &name);

    if (status == PD_OK && name != NULL) {
        status = check_not_held(call, name);
    }
    if (status == PD_OK && name != NULL) {
        status = check_not_named(call, name);
    }
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "role=%s", role->id);
    status = pd_tx_delete(call->tx, "role", role->id, pd_op_if_revision(call));
    return status == PD_OK
               ? pd_op_answer(call, json_pack("{s:s, s:b}", "role", role->id, "deleted", 1))
               : status;
}
