/* Tool views and guards: what a caller may see and what his URLs are judged by, as blobs (PROTOCOL.md, Blobs).
 * Chunks belong to a connection and a rung, manifests to a policy class; both are made once and shared by all members of the
 * class. Loop's thread only. */
#ifndef PD_VIEW_H
#define PD_VIEW_H

#include "pd_access.h"
#include "pd_snapshot.h"

typedef struct pd_views pd_views_t;

pd_status_t pd_views_new(pd_views_t **ret);
void pd_views_free(pd_views_t **views);
/* Forgets all manifests: the snapshot changes. Before the old one is let go, since they point into it. */
void pd_views_clear(pd_views_t *views);

/* Index of a scope set among the rungs: 0 none, 1 read, 2 write, 3 destructive. */
int pd_view_rung(unsigned scopes);

/* Digest of the actor's view, with all its blobs readable. */
pd_status_t pd_view_digest(pd_core_t *core, const pd_actor_t *actor, const char **ret);

/* Digest of the guard of a connection's connector for a rung, readable. */
pd_status_t pd_view_guard(pd_core_t *core, pd_connection_t *connection, int rung, const char **ret);

/* Makes an operation's blob readable; its digest stands in the operation. */
pd_status_t pd_view_operation(pd_core_t *core, const pd_operation_t *operation);

#endif
