/* Start, follow-up and once-a-second upkeep of the policy in force: see pd_policy.h. */
#include "pd_policy.h"

#include <stdio.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "../proto/mcp_body.h"
#include "pd_blob.h"
#include "pd_keys.h"
#include "pd_log.h"
#include "pd_running.h"
#include "pd_snapshot.h"
#include "pd_view.h"

#define POLL_S      5 /* how often a change made elsewhere is looked for */
#define BLOBS_S     15
#define DEADLINE_MS 10000
#define MEMBER_PAGE 500
#define STALE_S     60 /* the longest that resolution may lag behind the store */

typedef struct following {
    pd_core_t *core;
    pd_snapshot_t *made;
} following_t;

/* The side table of emails may be new (audit.db was removed): everybody is told to it again at start. */
static pd_status_t tell_members(pd_core_t *core, pd_tx_t *tx)
{
    const char *after = NULL;

    for (;;) {
        apr_array_header_t *page = NULL;
        pd_status_t status = pd_tx_list(tx, "member", NULL, after, MEMBER_PAGE, &page);
        int i;

        for (i = 0; status == PD_OK && i < page->nelts; i++) {
            const pd_object_t *member = APR_ARRAY_IDX(page, i, pd_object_t *);

            after = member->id;
            pd_audit_member(core->audit, member->id, mcp_json_str(member->doc, "email"),
                            mcp_json_str(member->doc, "name"));
        }
        if (status != PD_OK || page->nelts < MEMBER_PAGE) {
            return status;
        }
    }
}

static pd_status_t load_unit(pd_tx_t *tx, void *baton)
{
    following_t *following = baton;
    pd_status_t status = pd_snapshot_load(tx, &following->made);

    return status == PD_OK && following->core->audit != NULL ? tell_members(following->core, tx)
                                                             : status;
}

static pd_status_t follow_unit(pd_tx_t *tx, void *baton)
{
    following_t *following = baton;
    const pd_snapshot_t *old = following->core->policy->snapshot;

    if (pd_tx_revision(tx) == old->revision) {
        return PD_OK;
    }
    return pd_snapshot_follow(tx, old, &following->made);
}

/* Puts what was made in force. The unit's status decides; without a new snapshot the old one stays. */
static void follow_done(pd_status_t status, int64_t revision, void *baton)
{
    following_t *following = baton;
    pd_policy_t *policy = following->core->policy;

    (void)revision;
    if (status == PD_OK) {
        policy->stale_since.us = 0;
    } else if (policy->stale_since.us == 0) {
        policy->stale_since = pd_boot_now();
    }
    if (status != PD_OK) {
        pd_log(PD_LOG_ERR, 140, "the policy in force can't follow the store: %s",
               pd_status_text(status));
        pd_snapshot_free(&following->made);
    } else if (following->made != NULL) {
        if (policy->views != NULL) {
            pd_views_clear(policy->views); /* they point into the old one */
        }
        pd_snapshot_free(&policy->snapshot);
        policy->snapshot = following->made;
    }
    free(following);
}

static pd_status_t follow(pd_core_t *core, pd_unit_fn *unit)
{
    following_t *following = calloc(1, sizeof(*following));
    pd_status_t status;

    if (following == NULL) {
        return PD_E_NOMEM;
    }
    following->core = core;
    status = pd_store_submit(core->store, PD_LANE_LOOP, pd_boot_in(DEADLINE_MS), unit, follow_done,
                             following);
    if (status != PD_OK) {
        free(following);
    }
    return status;
}

int pd_policy_is_stale(const pd_policy_t *policy)
{
    return policy->stale_since.us != 0 &&
           pd_boot_now().us - policy->stale_since.us > (int64_t)STALE_S * 1000000;
}

void pd_policy_changed(pd_core_t *core, int64_t revision)
{
    if (core->policy->snapshot->revision < revision && follow(core, follow_unit) != PD_OK) {
        pd_log(PD_LOG_ERR, 141, "the policy in force can't follow the store: it will be tried again");
    }
}

/* All documents were parsed to make the snapshot, which takes several times its memory; the allocator would keep that (of a large
 * policy two thirds of the process, measured). */
static void give_back(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0); /* whether there was anything to give makes no difference */
#endif
}

pd_status_t pd_policy_new(pd_core_t *core, char *why, size_t size)
{
    pd_policy_t *policy = calloc(1, sizeof(*policy));
    pd_status_t status = policy != NULL ? PD_OK : PD_E_NOMEM;

    core->policy = policy;
    if (status == PD_OK) {
        status = pd_blobs_new(&policy->blobs);
    }
    if (status == PD_OK) {
        status = pd_views_new(&policy->views);
    }
    if (status == PD_OK) {
        status = follow(core, load_unit);
    }
    if (status == PD_OK && policy->snapshot == NULL) {
        status = PD_E_INTERNAL;
    }
    give_back();
    if (status == PD_OK) {
        status = pd_running_new(core, &policy->running);
    }
    if (status == PD_OK) {
        status = pd_keys_new(core, &policy->keys); /* last: it may leave a write under way */
    }
    if (status != PD_OK) {
        (void)snprintf(why, size, "the policy can't be loaded from the store: %s",
                       pd_status_text(status));
        pd_policy_free(core);
    }
    return status;
}

void pd_policy_free(pd_core_t *core)
{
    pd_policy_t *policy = core->policy;

    if (policy == NULL) {
        return;
    }
    pd_running_free(&policy->running);
    pd_keys_free(&policy->keys);
    pd_views_free(&policy->views);
    pd_snapshot_free(&policy->snapshot);
    pd_blobs_free(&policy->blobs);
    free(policy->first_resource);
    free(policy);
    core->policy = NULL;
}

/* The copy thread does not log: a copy that fails, and one that is well again, are told here, once each. */
static void watch_audit(pd_core_t *core)
{
    pd_status_t health = pd_audit_health(core->audit, NULL);

    if (health == core->policy->audit_health) {
        return;
    }
    core->policy->audit_health = health;
    if (health == PD_OK) {
        pd_log(PD_LOG_NOTICE, 142, "audit.db follows the trail again");
    } else {
        pd_log(PD_LOG_WARNING, 143, "audit.db does not follow the trail: %s; the trail itself is written",
               pd_status_text(health));
    }
}

void pd_policy_tick(pd_core_t *core)
{
    pd_policy_t *policy = core->policy;

    policy->ticks++;
    pd_running_tick(core, policy->running);
    if (policy->ticks % POLL_S == 0) {
        (void)follow(core, follow_unit); /* logged where it fails; tried again in POLL_S */
        pd_keys_tick(core, policy->keys);
        if (core->audit != NULL) {
            watch_audit(core);
        }
    }
    if (policy->ticks % BLOBS_S == 0) {
        pd_blobs_tick(policy->blobs);
    }
}
