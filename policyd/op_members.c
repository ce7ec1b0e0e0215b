/* members list, get, create, update, suspend, reinstate, remove. */
#include "op_members.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "op_reach.h"
#include "op_roles.h"
#include "op_toolboxes.h"
#include "pd_snapshot.h"

#define MAX_EMAIL 254
#define STEP 200

/* --- showing and listing --------------------------------------------------------- */

static json_t *show_member(const pd_op_call_t *call, const pd_object_t *object)
{
    json_t *shown = json_pack(
        "{s:s, s:s*, s:s*, s:O*, s:s*}", "member", object->id, "email",
        mcp_json_str(object->doc, "email"), "name", mcp_json_str(object->doc, "name"), "roles",
        json_object_get(object->doc, "roles"), "state", mcp_json_str(object->doc, "state"));

    (void)call;
    if (shown != NULL && pd_op_stamp(shown, object) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    return shown;
}

static int is_state(const pd_object_t *member, const char *state)
{
    const char *is = mcp_json_str(member->doc, "state");

    return is != NULL && strcmp(is, state) == 0;
}

static int has_role(const pd_object_t *member, const char *role)
{
    const json_t *roles = json_object_get(member->doc, "roles");
    size_t i;

    for (i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));

        if (name != NULL && strcmp(name, role) == 0) {
            return 1;
        }
    }
    return 0;
}

static int contains(const pd_op_call_t *call, const char *text, const char *lower_part)
{
    return text != NULL && strstr(pd_op_lower(call, text), lower_part) != NULL;
}

/* Removed members show only where their state is asked for. */
static int is_wanted(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    const char *state = pd_op_text(call, "state");
    const char *role = pd_op_text(call, "role");
    const char *query = baton;

    if (state != NULL ? !is_state(object, state) : is_state(object, "removed")) {
        return 0;
    }
    if (role != NULL && !has_role(object, role)) {
        return 0;
    }
    return query == NULL || contains(call, mcp_json_str(object->doc, "email"), query) ||
           contains(call, mcp_json_str(object->doc, "name"), query);
}

pd_status_t pd_op_members_list(pd_op_call_t *call)
{
    const char *query = pd_op_text(call, "query");
    const pd_op_list_t list = {
        "member",   "mem_", NULL, is_wanted, query != NULL ? pd_op_lower(call, query) : NULL,
        show_member};

    return pd_op_list_answer(call, &list);
}

pd_status_t pd_op_members_get(pd_op_call_t *call)
{
    pd_object_t *member = NULL;
    pd_status_t status = pd_op_member(call, pd_op_text(call, "member"), &member);

    return status == PD_OK ? pd_op_answer(call, show_member(call, member)) : status;
}

/* --- rules ----------------------------------------------------------------------- */

/* One '@', printable ASCII without what mail headers and lists are made of. The email is an
 * identity here, not an address that we send to. */
static int is_email(const char *text)
{
    const char *at = strchr(text, '@');
    size_t bytes = strlen(text);
    size_t i;

    if (at == NULL || at == text || at[1] == '\0' || strchr(at + 1, '@') != NULL ||
        bytes > MAX_EMAIL) {
        return 0;
    }
    for (i = 0; i < bytes; i++) {
        if (text[i] <= ' ' || text[i] > '~' || strchr("\"(),:;<>[\\]", text[i]) != NULL) {
            return 0;
        }
    }
    return 1;
}

static pd_status_t check_email(pd_op_call_t *call, const char *email)
{
    if (is_email(email)) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "For example ada@example.com",
                    "email is not an address of the form name@domain in plain ASCII.");
}

/* Roles that exist and that the actor may give. */
static pd_status_t check_roles(pd_op_call_t *call, const json_t *roles)
{
    pd_status_t status = pd_op_roles_exist(call, roles);

    return status == PD_OK ? pd_op_roles_givable(call, roles) : status;
}

/* An Owner is touched by Owners alone. */
static pd_status_t check_owner_touch(pd_op_call_t *call, const pd_object_t *member)
{
    if (!has_role(member, "Owner") || call->actor->is_owner) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED, "Ask an Owner.",
                    "Only an Owner makes, changes or ends an Owner.");
}

/* PD_OK when another active Owner stays; else fault CONFLICT. Asked only when an active Owner is
 * about to go. */
static pd_status_t check_not_last_owner(pd_op_call_t *call, const pd_object_t *leaving)
{
    const char *after = NULL;

    for (;;) {
        apr_array_header_t *step = NULL;
        pd_status_t status = pd_tx_list(call->tx, "member", NULL, after, STEP, &step);
        int i;

        if (status != PD_OK) {
            return status;
        }
        for (i = 0; i < step->nelts; i++) {
            const pd_object_t *member = APR_ARRAY_IDX(step, i, pd_object_t *);

            if (strcmp(member->id, leaving->id) != 0 && is_state(member, "active") &&
                has_role(member, "Owner")) {
                return PD_OK;
            }
            after = member->id;
        }
        if (step->nelts < STEP) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Make another member an Owner first.",
                            "This is the last active Owner.");
        }
    }
}

static int is_active_owner(const pd_object_t *member)
{
    return is_state(member, "active") && has_role(member, "Owner");
}

/* The member that an argument names, alive. */
static pd_status_t find_alive(pd_op_call_t *call, pd_object_t **ret)
{
    pd_status_t status = pd_op_member(call, pd_op_text(call, "member"), ret);

    if (status == PD_OK && is_state(*ret, "removed")) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                        "members create with the same email makes a new member.",
                        "This member was removed.");
    }
    return status;
}

/* --- writing --------------------------------------------------------------------- */

pd_status_t pd_op_members_create(pd_op_call_t *call)
{
    const char *email = pd_op_text(call, "email");
    json_t *roles = json_object_get(call->args, "roles");
    const char *id = pd_store_new_id("mem", call->pool);
    const char *keys[] = {apr_pstrcat(call->pool, "email:", pd_op_lower(call, email), (char *)NULL),
                          NULL};
    pd_status_t status = check_email(call, email);
    json_t *doc;

    if (roles == NULL) {
        roles = pd_op_keep(call, json_pack("[s]", "Member"));
    }
    if (status == PD_OK) {
        status = check_roles(call, roles);
    }
    if (status != PD_OK) {
        return status;
    }
    doc = pd_op_keep(call, json_pack("{s:s, s:s*, s:O, s:s, s:s}", "email", email, "name",
                                     pd_op_text(call, "name"), "roles", roles, "state", "active",
                                     "created_by", pd_op_actor(call)));
    if (doc == NULL) {
        return PD_E_NOMEM;
    }
    pd_op_detail(call, "member=%s", id);
    status = pd_tx_insert(call->tx, "member", id, NULL, doc, keys);
    if (status == PD_E_CONFLICT) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "members update changes it.",
                        "A member with this email exists.");
    }
    return status == PD_OK ? pd_op_answer_again(call, "member", id, show_member) : status;
}

/* Writes the changed document; the email key follows it. */
static pd_status_t store_member(pd_op_call_t *call, const pd_object_t *member, json_t *doc)
{
    const char *email = mcp_json_str(doc, "email");
    const char *keys[2] = {NULL, NULL};
    const char *state = mcp_json_str(doc, "state");
    pd_status_t status;

    if (email != NULL && state != NULL && strcmp(state, "removed") != 0) {
        keys[0] = apr_pstrcat(call->pool, "email:", pd_op_lower(call, email), (char *)NULL);
    }
    pd_op_detail(call, "member=%s", member->id);
    status = pd_tx_update(call->tx, "member", member->id, NULL, doc, keys, pd_op_if_revision(call),
                          NULL);
    if (status == PD_E_CONFLICT) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, NULL, "A member with this email exists.");
    }
    return status == PD_OK ? pd_op_answer_again(call, "member", member->id, show_member) : status;
}

static int is_in(const json_t *roles, const char *name)
{
    size_t i;

    for (i = 0; i < json_array_size(roles); i++) {
        const char *one = json_string_value(json_array_get(roles, i));

        if (one != NULL && strcmp(one, name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Nobody takes off himself what restrictions hold him by, unless he could change these. */
static pd_status_t check_own_restrictions(pd_op_call_t *call, const pd_object_t *member,
                                          const json_t *becomes)
{
    static const char permission[] = "restriction:write";
    const pd_actor_t *actor = call->actor;
    const json_t *roles = json_object_get(member->doc, "roles");
    pd_status_t status;
    size_t i;

    if (actor->member_id == NULL || strcmp(actor->member_id, member->id) != 0 || actor->is_owner ||
        pd_actor_may(actor, permission)) {
        return PD_OK;
    }
    status = pd_op_has_policy(call);
    for (i = 0; status == PD_OK && i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));

        if (name == NULL || is_in(becomes, name) ||
            apr_hash_get(call->snapshot->rulebook->by_role, name, APR_HASH_KEY_STRING) == NULL) {
            continue;
        }
        pd_op_detail(call, "lacks=%s", permission);
        (void)apr_cpystrn(call->fault.permission, permission, sizeof(call->fault.permission));
        return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED,
                        "Ask another one who holds member:write.",
                        "Restrictions are for the role %s: taking it off yourself needs the "
                        "permission %s.",
                        name, permission);
    }
    return status;
}

/* A new email is a new way to sign in as the member: only for who may act with the member's roles.
 */
static pd_status_t check_update(pd_op_call_t *call, const pd_object_t *member)
{
    const char *email = pd_op_text(call, "email");
    const json_t *roles = json_object_get(call->args, "roles");
    pd_status_t status = check_owner_touch(call, member);

    if (status == PD_OK && email != NULL) {
        status = check_email(call, email);
        if (status == PD_OK) {
            status = pd_op_roles_givable(call, json_object_get(member->doc, "roles"));
        }
    }
    if (status == PD_OK && roles != NULL) {
        status = check_roles(call, roles);
        if (status == PD_OK) {
            status = check_own_restrictions(call, member, roles);
        }
        if (status == PD_OK && is_active_owner(member) && !pd_op_roles_has_owner(roles)) {
            status = check_not_last_owner(call, member);
        }
    }
    return status;
}

pd_status_t pd_op_members_update(pd_op_call_t *call)
{
    static const char *const fields[] = {"email", "name", "roles"};
    pd_object_t *member = NULL;
    json_t *doc;
    pd_status_t status = find_alive(call, &member);
    size_t i;

    if (status == PD_OK) {
        status = check_update(call, member);
    }
    if (status != PD_OK) {
        return status;
    }
    doc = pd_op_copy(call, member->doc);
    if (doc == NULL) {
        return PD_E_NOMEM;
    }
    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        json_t *value = json_object_get(call->args, fields[i]);

        if (value != NULL && json_object_set_new(doc, fields[i], json_incref(value)) != 0) {
            return PD_E_NOMEM;
        }
    }
    return store_member(call, member, doc);
}

/* To another state; the same state again is answered without a change. */
static pd_status_t move_to(pd_op_call_t *call, const pd_object_t *member, const char *state)
{
    int64_t expected = pd_op_if_revision(call);
    json_t *doc;

    if (expected != 0 && expected != member->revision) {
        return PD_E_REVISION;
    }
    if (is_state(member, state)) {
        pd_op_detail(call, "member=%s", member->id);
        return pd_op_answer(call, show_member(call, member));
    }
    doc = pd_op_copy(call, member->doc);
    if (doc == NULL || json_object_set_new(doc, "state", json_string(state)) != 0) {
        return PD_E_NOMEM;
    }
    return store_member(call, member, doc);
}

pd_status_t pd_op_members_suspend(pd_op_call_t *call)
{
    pd_object_t *member = NULL;
    pd_status_t status = find_alive(call, &member);

    if (status == PD_OK) {
        status = check_owner_touch(call, member);
    }
    if (status == PD_OK && is_active_owner(member)) {
        status = check_not_last_owner(call, member);
    }
    return status == PD_OK ? move_to(call, member, "suspended") : status;
}

/* Gives back everything that the roles hold, so the actor has to hold it. */
pd_status_t pd_op_members_reinstate(pd_op_call_t *call)
{
    pd_object_t *member = NULL;
    pd_status_t status = find_alive(call, &member);

    if (status == PD_OK) {
        status = pd_op_roles_givable(call, json_object_get(member->doc, "roles"));
    }
    return status == PD_OK ? move_to(call, member, "active") : status;
}

/* What is the member's alone goes too: connections with their credentials, since nobody is left to use
 * them, and restrictions, since nobody is left to be restricted. */
static pd_status_t drop_owned(pd_op_call_t *call, const char *kind, const char *member_id)
{
    for (;;) {
        apr_array_header_t *step = NULL;
        pd_status_t status = pd_tx_list(call->tx, kind, member_id, NULL, STEP, &step);
        int i;

        for (i = 0; status == PD_OK && i < step->nelts; i++) {
            status = pd_tx_delete(call->tx, kind, APR_ARRAY_IDX(step, i, pd_object_t *)->id, 0);
        }
        if (status != PD_OK || step->nelts < STEP) {
            return status;
        }
    }
}

/* A tombstone without key and roles; with `erase`, without email and name too. */
pd_status_t pd_op_members_remove(pd_op_call_t *call)
{
    int is_erased = mcp_json_bool(call->args, "erase");
    pd_object_t *member = NULL;
    json_t *doc;
    pd_status_t status = pd_op_member(call, pd_op_text(call, "member"), &member);

    if (status == PD_OK) {
        status = check_owner_touch(call, member);
    }
    if (status == PD_OK && is_active_owner(member)) {
        status = check_not_last_owner(call, member);
    }
    if (status == PD_OK) {
        status = drop_owned(call, "connection", member->id);
    }
    if (status == PD_OK) {
        status = drop_owned(call, "restriction", member->id);
    }
    if (status == PD_OK) {
        status = pd_op_toolboxes_forget_member(call, member->id);
    }
    if (status != PD_OK) {
        return status;
    }
    doc = pd_op_copy(call, member->doc);
    if (doc == NULL || json_object_set_new(doc, "state", json_string("removed")) != 0 ||
        json_object_set_new(doc, "roles", json_array()) != 0) {
        return PD_E_NOMEM;
    }
    if (is_erased) {
        (void)json_object_del(doc, "email"); /* not there: erased already */
        (void)json_object_del(doc, "name");
    }
    return store_member(call, member, doc);
}

void pd_op_members_after(const pd_op_call_t *call)
{
    pd_audit_member(call->core->audit, mcp_json_str(call->result, "member"),
                    mcp_json_str(call->result, "email"), mcp_json_str(call->result, "name"));
}
