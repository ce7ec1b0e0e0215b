/* The store of policy state: what everything above it may know of a database.
 *
 * Model.  Objects of a kind ("member", "role", "grant", "connector", "connection", "setting", …)
 * have a stable id, a revision, an optional owner and a JSON document.  An object can have
 * alternative unique keys ("email:ada@example.com", "token:…", "label:notion-legal"); a key belongs
 * to one object of the kind.  Sealed secrets stand apart from documents.  Every commit that changed
 * something raises the store's policy revision by one and notes which objects it touched, so that
 * any policyd on the same store can follow.
 *
 * Every call is submit + completion: a unit of work is handed over with a deadline, runs on a
 * thread of the store inside one transaction, and its completion is called on the loop's thread.
 * A backend that answers at once (SQLite reads) may run unit and completion before submit returns.
 * Backends: pd_store_sqlite.c.  Nothing above this header knows which one is in use.
 */
#ifndef PD_STORE_H
#define PD_STORE_H

#include <apr_pools.h>
#include <apr_tables.h>
#include <jansson.h>

#include "pd_err.h"
#include "pd_time.h"

typedef struct pd_store pd_store_t;
typedef struct pd_tx pd_tx_t;

typedef enum pd_lane {
    PD_LANE_LOOP,  /* a read of at most a millisecond, on the loop's own connection */
    PD_LANE_WRITE, /* the writer's transaction; commits in groups */
    PD_LANE_JOB    /* long reads on a job thread's connection */
} pd_lane_t;

typedef struct pd_object {
    const char *kind;
    const char *id;
    const char *owner; /* member id or NULL */
    int64_t revision;  /* of this object: 1 when created, +1 each update */
    pd_wall_t created;
    pd_wall_t updated;
    json_t *doc; /* owned by the pool the object was read into (decref'd with it) */
} pd_object_t;

/* What runs inside a transaction. PD_OK commits; anything else rolls this unit back (its neighbours
 * in the group commit stay) and is handed to the completion. */
typedef pd_status_t pd_unit_fn(pd_tx_t *tx, void *baton);
/* Called once on the loop's thread. `revision` is the store's policy revision after the unit. */
typedef void pd_done_fn(pd_status_t status, int64_t revision, void *baton);

/* Opens the store at `path` (a directory for SQLite: policy.db in it), migrates it forward, checks
 * it. wake(wake_baton) is called from a store thread when completions wait; the loop then calls
 * pd_store_reap(). On failure `why` (size bytes) says what to do. */
pd_status_t pd_store_open(const char *path, void (*wake)(void *), void *wake_baton,
                          pd_store_t **ret, char *why, size_t size);
/* Commits what is queued, ends the threads, and runs all completions; what those submit to the write
 * and job lanes is refused as closed, reads on the loop's lane still work. Once more, or NULL, is
 * fine. On the loop's thread, outside of units. */
void pd_store_stop(pd_store_t *store);
/* Stops, and closes the databases. NULL is fine. On the loop's thread, outside of units. */
void pd_store_close(pd_store_t **store);

/* Hands a unit over. On the loop's thread. PD_E_FULL when the lane's bounded queue is full (4096
 * writes, 256 jobs, each counted until its completion has run), PD_E_CLOSED during close: done is
 * then not called. A unit whose deadline has passed before it starts ends with PD_E_TIMEOUT, as
 * does a job that still reads then. After a failed commit all units of the group end with PD_E_IO.
 * A loop-lane unit must not submit to the loop lane itself (PD_E_INVALID); completions may. */
pd_status_t pd_store_submit(pd_store_t *store, pd_lane_t lane, pd_boot_t deadline, pd_unit_fn *unit,
                            pd_done_fn *done, void *baton);
/* Runs waiting completions; only on the loop's thread. */
void pd_store_reap(pd_store_t *store);

/* --- inside a unit -------------------------------------------------------- */

/* Pool that lives as long as the unit and its completion. */
apr_pool_t *pd_tx_pool(pd_tx_t *tx);

pd_status_t pd_tx_get(pd_tx_t *tx, const char *kind, const char *id, pd_object_t **ret);
/* By alternative key. */
pd_status_t pd_tx_find(pd_tx_t *tx, const char *kind, const char *key, pd_object_t **ret);
/* Objects of a kind in id order, after `after` (NULL: from the start), at most `limit`; owner NULL:
 * all. *ret is an array of pd_object_t *. */
pd_status_t pd_tx_list(pd_tx_t *tx, const char *kind, const char *owner, const char *after,
                       int limit, apr_array_header_t **ret);
/* Changes are for the write lane (elsewhere PD_E_INVALID). One that is refused (PD_E_CONFLICT,
 * PD_E_NOT_FOUND, PD_E_REVISION, PD_E_INVALID) has changed nothing, and the unit may go on.
 * keys: NULL-terminated array of alternative keys, or NULL. PD_E_CONFLICT when one is taken.
 * Key order is by creation: ids sort by time of creation (pd_store_new_id). */
pd_status_t pd_tx_insert(pd_tx_t *tx, const char *kind, const char *id, const char *owner,
                         json_t *doc, const char *const *keys);
/* Replaces owner, document and keys (NULL: it has none afterwards). expected: the revision it must
 * have, 0 for any. ret_revision may be NULL. */
pd_status_t pd_tx_update(pd_tx_t *tx, const char *kind, const char *id, const char *owner,
                         json_t *doc, const char *const *keys, int64_t expected,
                         int64_t *ret_revision);
/* Its keys and its secret go with it. */
pd_status_t pd_tx_delete(pd_tx_t *tx, const char *kind, const char *id, int64_t expected);

/* Sealed bytes of an object that exists (PD_E_NOT_FOUND); put replaces, get copies into the unit's
 * pool and answers PD_E_NOT_FOUND where there are none. Put and delete count as changes of the
 * object. */
pd_status_t pd_tx_secret_put(pd_tx_t *tx, const char *kind, const char *id, const void *sealed,
                             size_t bytes);
pd_status_t pd_tx_secret_get(pd_tx_t *tx, const char *kind, const char *id, const void **ret,
                             size_t *ret_bytes);
pd_status_t pd_tx_secret_delete(pd_tx_t *tx, const char *kind, const char *id);

/* The policy revision as this unit sees it: once it has changed something, the one it is about to
 * make. -1 when it cannot be read, which also fails the unit. */
int64_t pd_tx_revision(pd_tx_t *tx);
/* Objects changed after `revision`: array of pd_change_t, oldest first, each object once.
 * PD_E_REVISION when that is older than what is kept (the last 100,000 rows): read all anew. */
typedef struct pd_change {
    const char *kind;
    const char *id;
} pd_change_t;
pd_status_t pd_tx_changes(pd_tx_t *tx, int64_t revision, apr_array_header_t **ret);
/* Stores the audit id of the control-plane change beside the new revision. */
void pd_tx_audit(pd_tx_t *tx, const char *audit_id);
/* The revision that a control-plane change of this audit id made, or PD_E_NOT_FOUND: tells recovery
 * whether the change that an open attempt announced was committed. */
pd_status_t pd_tx_audit_find(pd_tx_t *tx, const char *audit_id, int64_t *ret_revision);

/* Grant, its member and the policy revision in one statement: the hot path.
 * token_key: alternative key of the grant. PD_E_NOT_FOUND when there is none; *ret_member may be
 * NULL when the member is gone. The two documents may be shared with later units: read only. */
pd_status_t pd_tx_grant(pd_tx_t *tx, const char *token_key, pd_object_t **ret_grant,
                        pd_object_t **ret_member, int64_t *ret_revision);

/* A new id: prefix, '_', and 26 characters that sort by time of creation. Pool-allocated; NULL when
 * the system has no randomness. Any thread. */
const char *pd_store_new_id(const char *prefix, apr_pool_t *pool);

#endif
