/* The policy in force: what the loop decides from.  One object a daemon; everything here belongs to the loop's
 * thread.  Its parts: the snapshot (catalog, connections and settings as of one revision), blobs by digest, views by policy
 * class, the key ring, and the attempts that run. */
#ifndef PD_POLICY_H
#define PD_POLICY_H

#include "pd_core.h"

struct pd_snapshot;
struct pd_blobs;
struct pd_views;
struct pd_running;
struct pd_keys;

typedef struct pd_policy {
    struct pd_snapshot *snapshot; /* one reference; whoever reads it elsewhere takes one of his own on the loop's thread first */
    struct pd_blobs *blobs;
    struct pd_views *views;
    struct pd_running *running;
    struct pd_keys *keys;
    int ticks;            /* seconds since start */
    pd_boot_t stale_since;    /* the first following that failed since the last that did not; 0: none */
    pd_status_t audit_health; /* of the query copy, as last told */
    char *first_resource; /* the first endpoint that a child named in its hello, or NULL */
} pd_policy_t;

/* Loads the snapshot and the ring from core->store and the open attempts from core->trail into core->policy. */
pd_status_t pd_policy_new(pd_core_t *core, char *why, size_t size);
void pd_policy_free(pd_core_t *core);

/* Once a second: missed beats, deadlines, blobs past their hold, changes made elsewhere, old keys. */
void pd_policy_tick(pd_core_t *core);

/* 1 when the snapshot could not follow the store for longer than a cache may be old: nothing is decided by it then. */
int pd_policy_is_stale(const pd_policy_t *policy);

/* A commit of this policyd raised the store to `revision`: the snapshot follows before this returns. */
void pd_policy_changed(struct pd_core *core, int64_t revision);

#endif
