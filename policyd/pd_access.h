/* Who asks: from a token's hash or a peer of the admin socket to an actor, by reading the store anew
 * each time. Grants and members are never cached. */
#ifndef PD_ACCESS_H
#define PD_ACCESS_H

#include "pd_core.h"

/* Who acts, with everything that the later checks need. Texts live in `pool` given at the asking. */
typedef struct pd_actor {
    const char *member_id; /* NULL: an admin peer that is no member (unix:0) */
    const char *email;
    const char *name;
    const char *roles;     /* names, comma-separated, for the record */
    const char *const *role_names; /* NULL-terminated */
    const char *grant_id;  /* NULL at the admin socket */
    const char *client;    /* what the client says of itself */
    const char *label;     /* "unix:0" at the admin socket, else NULL */
    mcp_surface_t surface;
    unsigned scopes;       /* closed downwards; all at the admin socket */
    int64_t expires_us;    /* of the grant; 0: never */
    int is_owner;
    const char *const *permissions; /* sorted, NULL-terminated; unused when is_owner */
    int64_t revision;      /* policy revision that was read with it */
} pd_actor_t;

/* 1 if the actor's roles hold the permission ("member:read"). */
int pd_actor_may(const pd_actor_t *actor, const char *permission);

/* Result of an asking: code MCP_CODE_NONE and an actor; or a refusal: INVALID_TOKEN, GRANT_REVOKED,
 * GRANT_EXPIRED, MEMBER_SUSPENDED, INTERNAL, POLICY_UNAVAILABLE, then with `actor` filled as far as known
 * (a denial of a known grant is recorded) or NULL. */
typedef void pd_access_fn(mcp_code_t code, const pd_actor_t *actor, void *baton);

/* By token hash (hex) for the endpoint `resource`. done may run before this returns. */
void pd_access_token(pd_core_t *core, const char *token_hash, mcp_surface_t surface,
                     const char *resource, const char *client, pd_boot_t deadline, apr_pool_t *pool,
                     pd_access_fn *done, void *baton);

/* By uid of an admin peer: root is Owner; others as policyd.conf maps them; else PERMISSION_DENIED. */
void pd_access_peer(pd_core_t *core, long uid, pd_boot_t deadline, apr_pool_t *pool,
                    pd_access_fn *done, void *baton);

/* Alternative key of a grant for the hash of its token (a hash of the hash). */
const char *pd_access_token_key(const char *token_hash, apr_pool_t *pool);

/* True when the actor's roles contain all permissions of `permissions` (NULL-terminated): nobody gives
 * what they don't hold. *ret_missing (may be NULL) names the first one lacking. */
int pd_actor_covers(const pd_actor_t *actor, const char *const *permissions, const char **ret_missing);

#endif
