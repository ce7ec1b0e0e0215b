/* The control plane as tools of an MCP client: the chunk `control` of a view (proto/PROTOCOL.md, View), made once from the registry and the
 * same for everybody; a bit string says which of its tools are a caller's.  Names stand without the prefix and definitions without
 * their name, since the prefix is the module's to choose.
 *
 * Operations that always answer a secret are not in it.  Those that may take a credential are, without that argument: what comes
 * through here has been read by a model. */
#ifndef PD_CONTROL_H
#define PD_CONTROL_H

#include "pd_access.h"

/* Bytes that a selection takes at most. */
#define PD_CONTROL_BITS 16

/* Makes the chunk; after pd_ops_init, before threads. `pool` must outlive its use; a second call replaces the first. Everything below is
 * read only then: any thread. */
pd_status_t pd_control_make(apr_pool_t *pool);

/* SHA-256 of the chunk in hex, its bytes, and how many tools it holds. */
const char *pd_control_digest(void);
const char *pd_control_bytes(size_t *count);
int pd_control_count(void);

/* Which of them the actor has the permission and the scopes for: tool i is bit i & 7 of byte i >> 3 of `bits` (PD_CONTROL_BITS bytes, all
 * written). Answers how many. Nobody without tool:execute has any. Who wants those too that only lack a scope asks for an actor
 * with all of them. */
int pd_control_select(const pd_actor_t *actor, unsigned char *bits);

/* The definition of one of the actor's own, by unprefixed name, as `tools/list` shows it but for the name; *ret: new reference.
 * PD_E_NOT_FOUND where pd_control_select() leaves it out. */
pd_status_t pd_control_definition(const pd_actor_t *actor, const char *name, json_t **ret);
/* The same in short, as a list shows it in which connected tools have collapsed: the first clause of the description, and of the
 * arguments those that are required, without words about them. Looser than the definition, never stricter. */
pd_status_t pd_control_brief(const pd_actor_t *actor, const char *name, json_t **ret);

#endif
