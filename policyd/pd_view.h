/* Tool views, guards' verdicts and operations: what a caller may see and what his URLs are judged by, as blobs (PROTOCOL.md, Blobs).
 * A chunk belongs to a connection and is the same for everybody; what of it a caller has is a selection in his manifest, which
 * belongs to his policy class and is made once for all members of the class. Loop's thread only. */
#ifndef PD_VIEW_H
#define PD_VIEW_H

#include "pd_access.h"
#include "pd_entry.h"
#include "pd_reach.h"

typedef struct pd_views pd_views_t;

pd_status_t pd_views_new(pd_views_t **ret);
void pd_views_free(pd_views_t **views);
/* Forgets all that was made: the snapshot changes. Before the old one is let go, since it points into it. */
void pd_views_clear(pd_views_t *views);
/* Forgets all that was made where it has become more than a cache should hold. For those who hold nothing of it. */
void pd_views_trim(pd_views_t *views);

/* Index of a scope set among the rungs: 0 none, 1 read, 2 write, 3 destructive. */
int pd_view_rung(unsigned scopes);

/* The actor as the resolver is asked about him; borrows from it. */
pd_subject_t pd_view_subject(const pd_actor_t *actor);

/* Digest of the actor's view, with all its blobs readable. */
pd_status_t pd_view_digest(pd_core_t *core, const pd_actor_t *actor, const char **ret);

/* The definition of one tool, connected or of the control plane (by its name without the prefix), as it is advertised to the actor, with "connector",
 * "account" and "classification" beside it; new reference. PD_E_NOT_FOUND for what is not advertised to him, whatever the reason. */
pd_status_t pd_view_definition(pd_core_t *core, const pd_actor_t *actor, const char *name, json_t **ret);

/* The tool object of what was found, exactly as `tools/list` shows it; advertised: what an entry looks like, NULL for a plain tool. New
 * reference, NULL: out of memory. Nothing is cached: any thread that holds the snapshot. */
json_t *pd_view_tool(const pd_found_t *found, const pd_advertised_t *advertised);

/* What an entry looks like over these connections; kept until the snapshot changes. */
pd_status_t pd_view_entry(pd_core_t *core, const pd_found_t *found, const pd_advertised_t **ret);

/* Digest of the actor's verdicts on the operations of a connection, readable. */
pd_status_t pd_view_verdicts(pd_core_t *core, const pd_actor_t *actor, const pd_connection_t *connection,
                             const char **ret);
/* Digest of a connector's guard, readable. */
pd_status_t pd_view_guard(pd_core_t *core, const pd_connector_t *connector, const char **ret);
/* Makes an operation's blob readable; its digest stands in the operation. */
pd_status_t pd_view_operation(pd_core_t *core, const pd_operation_t *operation);

#endif
