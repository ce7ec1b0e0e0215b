/* Roles: built-in ones as a table in code, custom ones as objects of kind "role": {name,
 * description?, permissions}, key "name:NAME". The set of all permissions is what the registry's
 * rows name, and a few that no row names (tool:execute, the ones that widen a list to what others
 * own). Thread-safe. */
#ifndef PD_ROLES_H
#define PD_ROLES_H

#include <apr_hash.h>

#include "pd_store.h"

/* Permissions of a built-in role (sorted, NULL-terminated), or NULL if the name is not built in.
 * "Owner" answers the list of all permissions that the registry names. */
const char *const *pd_roles_builtin(const char *name);
/* i-th built-in role's name, NULL after the last. */
const char *pd_roles_builtin_name(int i);
/* 1 when any row of the registry, or a check outside it, asks for this permission. */
int pd_roles_is_permission(const char *permission);
/* Description of a built-in role for listings. */
const char *pd_roles_builtin_text(const char *name);

/* All permissions of the roles named in `roles` (JSON array of names), united, sorted,
 * NULL-terminated, in `pool`. A custom role that is gone gives nothing. *ret_owner: "Owner" is
 * among them. */
pd_status_t pd_roles_permissions(pd_tx_t *tx, const json_t *roles, apr_pool_t *pool,
                                 const char *const **ret, int *ret_owner);
/* The same with a memory: known maps names of custom roles to NULL-terminated permissions as the
 * store has them at the revision that this unit reads; what is missing is read and added, in its
 * pool. NULL: none. */
pd_status_t pd_roles_permissions_by(pd_tx_t *tx, const json_t *roles, apr_hash_t *known,
                                    apr_pool_t *pool, const char *const **ret, int *ret_owner);

#endif
