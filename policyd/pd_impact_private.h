/* What the parts of the comparison share: who there is (pd_impact.c), and what happens to them (pd_impact_compare.c). */
#ifndef PD_IMPACT_PRIVATE_H
#define PD_IMPACT_PRIVATE_H

#include "pd_impact.h"

enum { PD_BEFORE, PD_AFTER, PD_SIDES };

/* A set of role names, as it stands in a member. */
typedef struct pd_impact_role_set {
    const char *const *names; /* sorted, NULL-terminated */
    int count;
    const char *key; /* the names, each with a line's end; "" for one who has nothing */
} pd_impact_role_set_t;

typedef struct pd_impact_person {
    const char *id;
    const char *email;
    pd_impact_role_set_t roles[PD_SIDES];
    int is_active[PD_SIDES];
} pd_impact_person_t;

/* Members for whom the answer is the same. */
typedef struct pd_impact_class {
    const pd_impact_person_t *first;
    int has_tools[PD_SIDES];
    apr_array_header_t *people; /* of const pd_impact_person_t * */
} pd_impact_class_t;

typedef struct pd_impact_tool {
    const char *name; /* the snapshot's */
    int is_own;       /* over a connection that a member owns */
} pd_impact_tool_t;

/* Classes to which the same happens, under the same roles. */
typedef struct pd_impact_group {
    const pd_impact_role_set_t *roles;
    apr_array_header_t *people; /* of const pd_impact_person_t * */
    const pd_impact_tool_t *shown[PD_SIDES]; /* [PD_BEFORE]: lost, [PD_AFTER]: gained; the first ones */
    int shown_count[PD_SIDES];
    int count[PD_SIDES];
} pd_impact_group_t;

struct pd_impact {
    apr_pool_t *pool;
    const pd_snapshot_t *snapshot[PD_SIDES];
    int64_t revision; /* of the store, before the change */
    const char *only; /* the one member who is asked about, or NULL */
    pd_boot_t deadline;
    apr_array_header_t *people;  /* of pd_impact_person_t *, in the order of their ids */
    apr_hash_t *by_id;           /* member id -> pd_impact_person_t * */
    apr_hash_t *executes[PD_SIDES]; /* role name -> YES or NO: whether it holds tool:execute */
    apr_hash_t *sets;            /* key -> const char *const *: role sets are shared */
    /* what of the ground differs */
    int is_shared_touched;
    apr_hash_t *touched_owners;   /* member id */
    apr_array_header_t *touched_toolboxes; /* of const pd_toolbox_t *, of either side */
    apr_hash_t *named;            /* member ids that some toolbox names */
    apr_hash_t *groups;           /* key -> pd_impact_group_t * */
    int touched, gaining, losing; /* members */
};

/* PD_E_TIMEOUT's reason: 1 when the time is over. */
int pd_impact_is_late(const pd_impact_t *impact);
/* Whether the person has tools at all on a side: is active, with a role that holds tool:execute. */
int pd_impact_has_tools(const pd_impact_t *impact, const pd_impact_person_t *person, int side);

/* Compares all classes: fills groups and counts. Both snapshots are set. */
pd_status_t pd_impact_compare(pd_impact_t *impact);
/* Groups and counts as pd_impact_end() answers them; NULL: out of memory. */
json_t *pd_impact_show(pd_impact_t *impact, const pd_impact_sight_t *sight);

#endif
