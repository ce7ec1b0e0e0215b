/* What the actor of a call, or somebody else, can have of the catalog: the one resolver (pd_reach.h) as the handlers of connectors,
 * connections and tools ask it.  What somebody can't have is left out of every answer and count, and named, it is as what never was.
 * Runs on the thread of the call's lane. */
#ifndef PD_OP_REACH_H
#define PD_OP_REACH_H

#include "pd_ops.h"
#include "pd_reach.h"

/* The actor as the resolver takes him; texts are the actor's. */
pd_subject_t pd_op_subject(const pd_actor_t *actor);

/* 1 when an id or email names the actor himself. */
int pd_op_is_actor(const pd_op_call_t *call, const char *named);

/* The roles of a member's document as the resolver takes them: NULL-terminated, in the call's pool. */
const char *const *pd_op_role_names(const pd_op_call_t *call, const json_t *roles);

/* Whom an argument `member` names: the actor himself where it is NULL, names him, or else, with member:read, another member. PD_E_INVALID with
 * fault PERMISSION_DENIED, which does not tell whether there is such a member, or NOT_FOUND. Texts are in the call's pool or the
 * actor's. */
pd_status_t pd_op_subject_named(pd_op_call_t *call, const char *named, pd_subject_t *ret);

/* As pd_op_subject_named(), and what he holds: *caller is the actor himself, or another member with the permissions of his roles and all
 * scopes, which belong to a grant. */
pd_status_t pd_op_caller_named(pd_op_call_t *call, const char *named, pd_subject_t *ret,
                               pd_actor_t *caller);

/* PD_OK when the call has a policy to decide by, else fault POLICY_UNAVAILABLE: without one nothing is shown. */
pd_status_t pd_op_has_policy(pd_op_call_t *call);

/* One connector as somebody sees it. Operations that are classified `forbidden` nobody can have, but whoever may write connectors sees
 * them, as far as his rules reach, since he must be able to classify them anew. */
typedef struct pd_op_sight {
    const pd_connector_t *connector; /* NULL: the policy in force does not hold it (yet) */
    pd_reach_on_t on;
    int shows_forbidden;
} pd_op_sight_t;

/* Gathers the rules of `subject` for a connector; shows_forbidden is the actor's right in any case. call->snapshot must be there. */
void pd_op_sight_begin(const pd_op_call_t *call, const pd_subject_t *subject, const char *connector_id,
                       pd_op_sight_t *ret);
/* 1 when an operation, given as its normalised document, is seen. */
int pd_op_sight_has(const pd_op_sight_t *sight, const json_t *operation);
/* Operations seen, by class (index: mcp_class_t), and their number: 0 hides the connector. `total` (may be NULL) gets the number that
 * there is. -1 for a connector that the policy in force does not hold, and that no rule touches: seen, but not counted. */
int pd_op_sight_count(const pd_op_sight_t *sight, int by_class[MCP_CLASS_FORBIDDEN + 1], int *total);

/* 1 when the subject sees anything of the connector. */
int pd_op_sees(const pd_op_call_t *call, const pd_subject_t *subject, const char *connector_id);

/* 1 when the actor sees anything of the connector; `sights` (a hash in the call's pool) remembers what was looked at. */
int pd_op_sees_connector(const pd_op_call_t *call, apr_hash_t *sights, const char *connector_id);
/* 1 when the actor sees an operation, as far as his rules reach also one that the catalog has lost. */
int pd_op_sees_operation(const pd_op_call_t *call, apr_hash_t *sights, const char *connector_id,
                         const char *operation_id);

/* A connector by id or slug that the actor sees something of: as pd_op_connector(), and one that he does not see answers the same bytes
 * as one that there is not. */
pd_status_t pd_op_connector_seen(pd_op_call_t *call, const char *named, pd_object_t **ret);

#endif
