/* grants list, get, create, revoke. */
#include "op_grants.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "op_find.h"
#include "op_roles.h"
#include "pd_settings.h"
#include "pd_span.h"

#define TOKEN_BYTES 32
#define TOKEN_PREFIX "mcp_"
#define TOKEN_TEXT (sizeof(TOKEN_PREFIX) + 4 * (TOKEN_BYTES + 2) / 3 + 1)
#define DEFAULT_SECONDS (90 * (int64_t)86400)
#define MAX_SECONDS (3650 * (int64_t)86400)

/* --- showing --------------------------------------------------------------------- */

static const char *state_of(const pd_object_t *grant)
{
    const char *state = mcp_json_str(grant->doc, "state");
    int64_t expires_us = (int64_t)mcp_json_int(grant->doc, "expires_us", 0);

    if (state == NULL || strcmp(state, "active") != 0) {
        return "revoked";
    }
    return expires_us != 0 && expires_us <= pd_wall_steady().us ? "expired" : "active";
}

/* Field by field: token_key stays inside. */
static json_t *show_grant(const pd_op_call_t *call, const pd_object_t *object)
{
    int64_t expires_us = (int64_t)mcp_json_int(object->doc, "expires_us", 0);
    char expires[32];
    json_t *shown;

    (void)call;
    pd_wall_text((pd_wall_t){expires_us}, expires);
    shown = json_pack(
        "{s:s, s:s*, s:s*, s:O*, s:s*, s:s*, s:s, s:s*}", "grant", object->id, "member",
        mcp_json_str(object->doc, "member"), "client", mcp_json_str(object->doc, "client"),
        "scopes", json_object_get(object->doc, "scopes"), "resource",
        mcp_json_str(object->doc, "resource"), "expires_at", expires_us != 0 ? expires : NULL,
        "state", state_of(object), "created_by", mcp_json_str(object->doc, "created_by"));
    if (shown != NULL && pd_op_stamp(shown, object) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    return shown;
}

/* --- list and get ---------------------------------------------------------------- */

static int sees_all(const pd_op_call_t *call)
{
    return pd_actor_may(call->actor, "grant:read_all");
}

/* Somebody else's grant is as one that never existed. */
static pd_status_t find_grant(pd_op_call_t *call, int may_any, pd_object_t **ret)
{
    const char *own = call->actor->member_id;
    pd_status_t status = pd_tx_get(call->tx, "grant", pd_op_text(call, "grant"), ret);

    if (status == PD_OK && !may_any &&
        (own == NULL || (*ret)->owner == NULL || strcmp(own, (*ret)->owner) != 0)) {
        status = PD_E_NOT_FOUND;
    }
    if (status == PD_E_NOT_FOUND) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "grants list shows them.",
                        "There is no such grant; name one by id.");
    }
    return status;
}

static int is_wanted(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    const char *state = pd_op_text(call, "state");
    const char *client = pd_op_text(call, "client");
    const char *has = mcp_json_str(object->doc, "client");

    (void)baton;
    return (state == NULL || strcmp(state_of(object), state) == 0) &&
           (client == NULL || (has != NULL && strcmp(has, client) == 0));
}

pd_status_t pd_op_grants_list(pd_op_call_t *call)
{
    pd_op_list_t list = {"grant", "gra_", NULL, is_wanted, NULL, show_grant};
    const char *named = pd_op_text(call, "member");
    const char *own = call->actor->member_id;
    pd_object_t *member = NULL;

    if (!sees_all(call)) {
        if (own == NULL) {
            return pd_op_items(call, json_array(), NULL);
        }
        list.owner = own;
    }
    if (named != NULL) {
        pd_status_t status = pd_op_member(call, named, &member);

        if (status != PD_OK && status != PD_E_INVALID) {
            return status;
        }
        /* whether another member exists is not told to one who sees only himself */
        if (!sees_all(call) && (member == NULL || strcmp(member->id, own) != 0)) {
            memset(&call->fault, 0, sizeof(call->fault));
            return pd_op_items(call, json_array(), NULL);
        }
        if (status != PD_OK) {
            return status;
        }
        list.owner = member->id;
    }
    return pd_op_list_answer(call, &list);
}

pd_status_t pd_op_grants_get(pd_op_call_t *call)
{
    pd_object_t *grant = NULL;
    pd_status_t status = find_grant(call, sees_all(call), &grant);

    return status == PD_OK ? pd_op_answer(call, show_grant(call, grant)) : status;
}

/* --- create ---------------------------------------------------------------------- */

/* The member it is for: active, and with no more than the actor holds. */
static pd_status_t check_member(pd_op_call_t *call, pd_object_t **ret)
{
    pd_status_t status = pd_op_member(call, pd_op_text(call, "member"), ret);
    const char *state;

    if (status != PD_OK) {
        return status;
    }
    state = mcp_json_str((*ret)->doc, "state");
    if (state == NULL || strcmp(state, "active") != 0) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "members reinstate ends a suspension.",
                        "This member is not active.");
    }
    return pd_op_roles_givable(call, json_object_get((*ret)->doc, "roles"));
}

/* Scopes as asked or the default, none beyond those of the grant that asks. */
static pd_status_t check_scopes(pd_op_call_t *call, json_t **ret)
{
    json_t *asked = json_object_get(call->args, "scopes");
    unsigned scopes = 0;
    size_t i;

    if (asked == NULL) {
        asked = pd_op_keep(call, json_pack("[s, s]", "mcp:read", "mcp:tools"));
    }
    for (i = 0; i < json_array_size(asked); i++) {
        const char *name = json_string_value(json_array_get(asked, i));
        unsigned bit = name != NULL ? mcp_scope_from_text(name) : 0;

        if (bit == 0) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                            "Scopes are mcp:read, mcp:write, mcp:destructive and mcp:tools.",
                            "Scope number %u of the list does not exist.", (unsigned)i + 1);
        }
        scopes |= bit;
    }
    if ((scopes & ~mcp_scope_close(call->actor->scopes)) != 0) {
        return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED,
                        "Ask with a grant that has the scopes, or at the admin socket.",
                        "Nobody gives what they don't hold: the grant that you use lacks a scope "
                        "that you ask for.");
    }
    *ret = asked;
    return asked != NULL ? PD_OK : PD_E_NOMEM;
}

/* Audience: as asked, else the setting, else the first endpoint that httpd named. */
static pd_status_t check_resource(pd_op_call_t *call, const char **ret)
{
    const char *resource = pd_op_text(call, "resource");
    const json_t *setting = NULL;
    pd_status_t status;

    if (resource == NULL) {
        status = pd_settings_read(call->tx, pd_settings_find("endpoint.resource"), NULL, NULL,
                                  &setting, NULL);
        if (status != PD_OK) {
            return status;
        }
        resource = setting != NULL ? json_string_value(setting) : call->first_resource;
    }
    if (resource == NULL) {
        return pd_fault(
            &call->fault, MCP_CODE_INVALID_REQUEST,
            "settings set {\"key\":\"endpoint.resource\",\"value\":URL} says it once for "
            "all grants.",
            "No endpoint is known yet: give `resource`, the URL that clients type.");
    }
    if (!pd_settings_is_url(resource)) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                        "For example https://mcp.example.com/mcp",
                        "resource is not an absolute http or https URL without userinfo, query and "
                        "fragment.");
    }
    *ret = apr_pstrdup(call->pool, resource);
    return PD_OK;
}

static pd_status_t check_expiry(pd_op_call_t *call, int64_t *ret_us)
{
    const json_t *asked = json_object_get(call->args, "expires_in");
    int64_t seconds = DEFAULT_SECONDS;

    if (json_is_integer(asked)) {
        seconds = (int64_t)json_integer_value(asked);
    } else if (asked != NULL && !pd_span_parse(json_string_value(asked), &seconds)) {
        seconds = 0;
    }
    if (seconds < 1 || seconds > MAX_SECONDS) {
        return pd_fault(
            &call->fault, MCP_CODE_INVALID_REQUEST, "For example 3600, \"12h\" or \"90d\"",
            "expires_in takes seconds, or a number with s, m, h, d or w, up to 10 years.");
    }
    *ret_us = pd_wall_now().us + seconds * 1000000;
    return PD_OK;
}

/* A new token: its text into token, the grant's key for it in *ret_key. */
static void make_token(pd_op_call_t *call, char token[TOKEN_TEXT], const char **ret_key)
{
    unsigned char random[TOKEN_BYTES];
    char hash[MCP_DIGEST_HEX + 1];

    mcp_random(random, sizeof(random));
    memcpy(token, TOKEN_PREFIX, sizeof(TOKEN_PREFIX));
    mcp_b64url(random, sizeof(random), token + sizeof(TOKEN_PREFIX) - 1);
    mcp_token_hash(token, strlen(token), hash);
    *ret_key = pd_access_token_key(hash, call->pool);
    mcp_wipe(random, sizeof(random));
    mcp_wipe(hash, sizeof(hash));
}

static pd_status_t insert_grant(pd_op_call_t *call, const char *member_id, json_t *doc,
                                const char *key)
{
    const char *id = pd_store_new_id("gra", call->pool);
    const char *keys[] = {key, NULL};
    pd_status_t status;

    if (doc == NULL) {
        return PD_E_NOMEM;
    }
    pd_op_detail(call, "grant=%s member=%s", id, member_id);
    status = pd_tx_insert(call->tx, "grant", id, member_id, doc, keys);
    return status == PD_OK ? pd_op_answer_again(call, "grant", id, show_grant) : status;
}

pd_status_t pd_op_grants_create(pd_op_call_t *call)
{
    char token[TOKEN_TEXT];
    pd_object_t *member = NULL;
    json_t *scopes = NULL;
    const char *resource = NULL;
    const char *key = NULL;
    int64_t expires_us = 0;
    pd_status_t status = check_member(call, &member);

    if (status == PD_OK) {
        status = check_scopes(call, &scopes);
    }
    if (status == PD_OK) {
        status = check_resource(call, &resource);
    }
    if (status == PD_OK) {
        status = check_expiry(call, &expires_us);
    }
    if (status != PD_OK) {
        return status;
    }
    make_token(call, token, &key);
    status = insert_grant(
        call, member->id,
        pd_op_keep(call,
                   json_pack("{s:s, s:s, s:O, s:s, s:I, s:s, s:s, s:s}", "member", member->id,
                             "client", pd_op_text(call, "client"), "scopes", scopes, "resource",
                             resource, "expires_us", (json_int_t)expires_us, "state", "active",
                             "created_by", pd_op_actor(call), "token_key", key)),
        key);
    if (status == PD_OK && json_object_set_new(call->result, "token", json_string(token)) != 0) {
        status = PD_E_NOMEM;
    }
    mcp_wipe(token, sizeof(token));
    return status;
}

/* --- revoke ---------------------------------------------------------------------- */

/* Everybody with grant:write may end any grant: it takes and gives nothing. */
pd_status_t pd_op_grants_revoke(pd_op_call_t *call)
{
    const char *keys[2] = {NULL, NULL};
    pd_object_t *grant = NULL;
    json_t *doc;
    pd_status_t status = find_grant(call, 1, &grant);
    int64_t expected = pd_op_if_revision(call);

    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "grant=%s", grant->id);
    if (expected != 0 && expected != grant->revision) {
        return PD_E_REVISION;
    }
    if (strcmp(state_of(grant), "revoked") == 0) {
        return pd_op_answer(call, show_grant(call, grant));
    }
    doc = pd_op_copy(call, grant->doc);
    if (doc == NULL || json_object_set_new(doc, "state", json_string("revoked")) != 0 ||
        json_object_set_new(doc, "revoked_by", json_string(pd_op_actor(call))) != 0) {
        return PD_E_NOMEM;
    }
    keys[0] = mcp_json_str(doc, "token_key");
    status = pd_tx_update(call->tx, "grant", grant->id, grant->owner, doc, keys, expected, NULL);
    return status == PD_OK ? pd_op_answer_again(call, "grant", grant->id, show_grant) : status;
}
