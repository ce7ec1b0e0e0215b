/* What a change of policy does to people: which members lose or gain which connected tools.
 *
 * Asked inside one unit of the write lane, around the change: pd_impact_begin() before it, pd_impact_end() after it, each with the
 * snapshot as the unit sees it then.  Members are compared by policy class (the same roles before and after, and nothing of their own:
 * no connection, no rule, no toolbox), and a class that the change can't reach is not walked at all.
 *
 * A member has the tools that the resolver gives him (pd_reach_each), if he is active and one of his roles holds tool:execute; else none.
 * Scopes belong to grants and are left out. */
#ifndef PD_IMPACT_H
#define PD_IMPACT_H

#include "pd_snapshot.h"

#define PD_IMPACT_GROUPS  50 /* shown at most; the counts are whole */
#define PD_IMPACT_MEMBERS 20 /* of a group */
#define PD_IMPACT_NAMES   50 /* gained, and as many lost, of a group */
#define PD_IMPACT_MS      5000 /* the writer serves everybody: no comparison holds it longer */

typedef struct pd_impact pd_impact_t;

/* What the asker may be told beside counts. */
typedef struct pd_impact_sight {
    int shows_members; /* emails */
    int shows_own;     /* names of tools over connections that members own */
} pd_impact_sight_t;

/* Remembers who the members are, and what they hold, as tx sees it; only: id of the one member who is asked about ("": nobody), or NULL
 * for all. `before` and `only` are borrowed until the end; everything made lives in pool. PD_E_TIMEOUT past the deadline (or PD_IMPACT_MS
 * from here, whichever comes first). */
pd_status_t pd_impact_begin(pd_tx_t *tx, const pd_snapshot_t *before, const char *only,
                            pd_boot_t deadline, apr_pool_t *pool, pd_impact_t **ret);

/* Compares with what tx and `after` say now. *ret (new reference): {"members","gains","loses","groups":[{"member_count","members"?,
 * "roles","gain_count","gains","lose_count","loses"}],"is_cut"?,"only_you"?: not of all}: how many members are touched, how many of them gain and lose
 * something; groups with the most members first, emails, roles and names sorted bytewise. PD_E_TIMEOUT as above. */
pd_status_t pd_impact_end(pd_impact_t *impact, pd_tx_t *tx, const pd_snapshot_t *after,
                          const pd_impact_sight_t *sight, json_t **ret);

#endif
