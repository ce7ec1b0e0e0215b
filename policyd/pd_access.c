/* From a token's hash or an admin peer to an actor: see pd_access.h.  First the grant, then the member; whatever
 * can't be read denies. */
#include "pd_access.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "pd_policy.h"
#include "pd_roles.h"
#include "pd_snapshot.h"

typedef struct access_work {
    pd_core_t *core;
    apr_pool_t *pool;
    const char *token_key; /* NULL: by email */
    const char *email;
    const char *resource;
    pd_access_fn *done;
    void *baton;
    mcp_code_t code;   /* out */
    pd_actor_t *actor; /* out; NULL: nobody known */
} access_work_t;

int pd_actor_may(const pd_actor_t *actor, const char *permission)
{
    int i;

    if (actor->is_owner) {
        return 1;
    }
    for (i = 0; actor->permissions != NULL && actor->permissions[i] != NULL; i++) {
        if (strcmp(actor->permissions[i], permission) == 0) {
            return 1;
        }
    }
    return 0;
}

int pd_actor_covers(const pd_actor_t *actor, const char *const *permissions, const char **ret_missing)
{
    int i;

    for (i = 0; permissions != NULL && permissions[i] != NULL; i++) {
        if (!pd_actor_may(actor, permissions[i])) {
            if (ret_missing != NULL) {
                *ret_missing = permissions[i];
            }
            return 0;
        }
    }
    return 1;
}

const char *pd_access_token_key(const char *token_hash, apr_pool_t *pool)
{
    unsigned char hash[MCP_HASH_BYTES];
    char hex[MCP_DIGEST_HEX + 1];

    mcp_sha256_label("policyd-grant-v1", token_hash, strlen(token_hash), hash);
    mcp_hex(hash, sizeof(hash), hex);
    return apr_pstrcat(pool, "token:", hex, NULL);
}

static const char *copy(apr_pool_t *pool, const char *text)
{
    return text != NULL ? apr_pstrdup(pool, text) : NULL;
}

/* Copies a NULL-terminated list out of the unit's pool. */
static const char *const *copy_list(apr_pool_t *pool, const char *const *list)
{
    const char **made;
    int count = 0;
    int i;

    while (list != NULL && list[count] != NULL) {
        count++;
    }
    made = apr_pcalloc(pool, sizeof(*made) * (size_t)(count + 1));
    for (i = 0; i < count; i++) {
        made[i] = apr_pstrdup(pool, list[i]);
    }
    return made;
}

/* Names of the member's roles, as a list and as text for the record. */
static void take_roles(pd_actor_t *actor, const json_t *roles, apr_pool_t *pool)
{
    const char **names = apr_pcalloc(pool, sizeof(*names) * (json_array_size(roles) + 1));
    const json_t *role;
    size_t i;
    int count = 0;

    actor->roles = "";
    json_array_foreach(roles, i, role)
    {
        if (json_is_string(role)) {
            names[count] = apr_pstrdup(pool, json_string_value(role));
            actor->roles = count == 0 ? names[0]
                                      : apr_pstrcat(pool, actor->roles, ",", names[count], NULL);
            count++;
        }
    }
    actor->role_names = names;
}

/* What is remembered of custom roles, where the policy in force is of the revision that was read: after any change of the store,
 * whoever made it, nothing is. */
static apr_hash_t *known_roles(const access_work_t *work)
{
    const pd_policy_t *policy = work->core->policy;

    return policy != NULL && policy->snapshot != NULL &&
                   policy->snapshot->revision == work->actor->revision
               ? policy->snapshot->roles
               : NULL;
}

static pd_status_t take_member(access_work_t *work, pd_tx_t *tx, const pd_object_t *member)
{
    pd_actor_t *actor = work->actor;
    const json_t *roles = json_object_get(member->doc, "roles");
    const char *const *permissions = NULL;
    pd_status_t status;

    actor->member_id = copy(work->pool, member->id);
    actor->email = copy(work->pool, mcp_json_str(member->doc, "email"));
    actor->name = copy(work->pool, mcp_json_str(member->doc, "name"));
    take_roles(actor, roles, work->pool);
    status = pd_roles_permissions_by(tx, roles, known_roles(work), pd_tx_pool(tx), &permissions,
                                     &actor->is_owner);
    if (status == PD_OK) {
        actor->permissions = copy_list(work->pool, permissions);
    }
    return status;
}

static int member_is_active(const pd_object_t *member)
{
    const char *state = member != NULL ? mcp_json_str(member->doc, "state") : NULL;

    return state != NULL && strcmp(state, "active") == 0;
}

static unsigned scopes_of(const json_t *names)
{
    unsigned scopes = 0;
    const json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
    {
        scopes |= mcp_scope_from_text(json_string_value(name));
    }
    return mcp_scope_close(scopes);
}

/* What a grant that was found is refused for; NONE if for nothing. */
static mcp_code_t judge_grant(const access_work_t *work, const pd_object_t *grant,
                              const pd_object_t *member)
{
    const char *state = mcp_json_str(grant->doc, "state");
    const char *resource = mcp_json_str(grant->doc, "resource");
    const json_t *expires = json_object_get(grant->doc, "expires_us");
    int64_t expires_us = json_is_integer(expires) ? json_integer_value(expires) : 0;

    if (expires != NULL && !json_is_integer(expires)) {
        return MCP_CODE_GRANT_EXPIRED; /* not ours: an end that can't be read has passed */
    }
    if (state == NULL || strcmp(state, "active") != 0) {
        return MCP_CODE_GRANT_REVOKED;
    }
    if (expires_us != 0 && expires_us <= pd_wall_steady().us) {
        return MCP_CODE_GRANT_EXPIRED;
    }
    if (!member_is_active(member)) {
        return MCP_CODE_MEMBER_SUSPENDED;
    }
    if (resource == NULL || strcmp(resource, work->resource) != 0) {
        return MCP_CODE_INVALID_TOKEN;
    }
    return MCP_CODE_NONE;
}

static pd_status_t token_unit(pd_tx_t *tx, void *baton)
{
    access_work_t *work = baton;
    pd_object_t *grant = NULL;
    pd_object_t *member = NULL;
    pd_status_t status =
        pd_tx_grant(tx, work->token_key, &grant, &member, &work->actor->revision);

    if (status == PD_E_NOT_FOUND) {
        work->actor = NULL;
        work->code = MCP_CODE_INVALID_TOKEN;
        return PD_OK;
    }
    if (status != PD_OK) {
        return status;
    }
    work->actor->grant_id = copy(work->pool, grant->id);
    work->actor->scopes = scopes_of(json_object_get(grant->doc, "scopes"));
    work->actor->expires_us = mcp_json_int(grant->doc, "expires_us", 0);
    if (work->actor->client == NULL) {
        work->actor->client = copy(work->pool, mcp_json_str(grant->doc, "client"));
    }
    if (member != NULL) {
        status = take_member(work, tx, member);
    }
    if (status == PD_OK) {
        work->code = judge_grant(work, grant, member);
    }
    return status;
}

static pd_status_t peer_unit(pd_tx_t *tx, void *baton)
{
    access_work_t *work = baton;
    pd_object_t *member = NULL;
    const char *key = apr_pstrcat(pd_tx_pool(tx), "email:", work->email, NULL);
    pd_status_t status = pd_tx_find(tx, "member", key, &member);

    work->actor->revision = pd_tx_revision(tx);
    if (status == PD_E_NOT_FOUND) {
        work->code = MCP_CODE_PERMISSION_DENIED;
        return PD_OK;
    }
    if (status == PD_OK) {
        status = take_member(work, tx, member);
    }
    if (status == PD_OK) {
        work->code = member_is_active(member) ? MCP_CODE_NONE : MCP_CODE_MEMBER_SUSPENDED;
    }
    return status;
}

static void access_done(pd_status_t status, int64_t revision, void *baton)
{
    access_work_t *work = baton;

    (void)revision; /* the unit read its own */
    if (status != PD_OK) {
        work->code = status == PD_E_TIMEOUT ? MCP_CODE_POLICY_UNAVAILABLE : MCP_CODE_INTERNAL;
        if (work->actor != NULL && work->actor->grant_id == NULL) {
            work->actor = NULL; /* a grant that was found is known: its attempt is recorded */
        }
    }
    work->done(work->code, work->actor, work->baton);
}

static access_work_t *work_new(pd_core_t *core, mcp_surface_t surface, apr_pool_t *pool,
                               pd_access_fn *done, void *baton)
{
    access_work_t *work = apr_pcalloc(pool, sizeof(*work));

    work->core = core;
    work->pool = pool;
    work->done = done;
    work->baton = baton;
    work->code = MCP_CODE_INTERNAL; /* denied until a unit says otherwise */
    work->actor = apr_pcalloc(pool, sizeof(*work->actor));
    work->actor->surface = surface;
    work->actor->roles = "";
    return work;
}

void pd_access_token(pd_core_t *core, const char *token_hash, mcp_surface_t surface,
                     const char *resource, const char *client, pd_boot_t deadline, apr_pool_t *pool,
                     pd_access_fn *done, void *baton)
{
    access_work_t *work = work_new(core, surface, pool, done, baton);

    work->token_key = pd_access_token_key(token_hash, pool);
    work->resource = resource;
    work->actor->client = client;
    if (pd_store_submit(core->store, PD_LANE_LOOP, deadline, token_unit, access_done, work) != PD_OK) {
        done(MCP_CODE_POLICY_UNAVAILABLE, NULL, baton);
    }
}

static const char *mapped_email(const pd_config_t *config, long uid)
{
    int i;

    for (i = 0; i < config->actors->nelts; i++) {
        const pd_config_actor_t *actor = &APR_ARRAY_IDX(config->actors, i, pd_config_actor_t);

        if (actor->uid == uid) {
            return actor->email;
        }
    }
    return NULL;
}

static const char *lower(apr_pool_t *pool, const char *text)
{
    char *made = apr_pstrdup(pool, text);
    char *c;

    for (c = made; *c != '\0'; c++) {
        if (*c >= 'A' && *c <= 'Z') {
            *c = (char)(*c - 'A' + 'a');
        }
    }
    return made;
}

void pd_access_peer(pd_core_t *core, long uid, pd_boot_t deadline, apr_pool_t *pool,
                    pd_access_fn *done, void *baton)
{
    access_work_t *work = work_new(core, MCP_SURFACE_ADMIN, pool, done, baton);
    const char *email = mapped_email(core->config, uid);
    pd_actor_t *actor = work->actor;

    actor->label = apr_psprintf(pool, "unix:%ld", uid);
    actor->client = "policyctl";
    actor->scopes =
        MCP_SCOPE_READ | MCP_SCOPE_WRITE | MCP_SCOPE_DESTRUCTIVE | MCP_SCOPE_TOOLS;
    if (uid == 0) {
        static const char *const owner[] = {"Owner", NULL};

        actor->is_owner = 1;
        actor->roles = "Owner";
        actor->role_names = owner;
        actor->email = NULL;
        actor->revision = core->policy != NULL && core->policy->snapshot != NULL
                              ? core->policy->snapshot->revision
                              : 0;
        done(MCP_CODE_NONE, actor, baton);
        return;
    }
    if (email == NULL) {
        done(MCP_CODE_PERMISSION_DENIED, actor, baton);
        return;
    }
    work->email = lower(pool, email);
    if (pd_store_submit(core->store, PD_LANE_LOOP, deadline, peer_unit, access_done, work) != PD_OK) {
        done(MCP_CODE_POLICY_UNAVAILABLE, NULL, baton);
    }
}
