/* Restrictions, compiled, and the one function that applies them.
 *
 * A rule allows or blocks, for a role or for one member.  The rules of one target are a layer.  A member with a layer of
 * his own is governed by it alone, else by the layers of all his roles; within what governs, allows unite, blocks unite, blocks
 * beat allows, and the presence of an allow rule, with items or without, engages the allowlist.  Items name connectors and
 * operations by their stable ids; only a block can also name a tool as it is advertised.
 *
 * "There are no rules" and "the rules could not be read" are different values, and nothing that is zero means allowed.
 * Rules and layers are immutable and counted by atomic references: any thread may hold and read them.  Pure. */
#ifndef PD_RULES_H
#define PD_RULES_H

#include <apr_hash.h>
#include <apr_tables.h>
#include <jansson.h>

#include "pd_catalog.h"

#define PD_MAX_RULES 1000  /* for one target */
#define PD_MAX_ITEMS 20000 /* of one rule */

typedef enum pd_effect { PD_EFFECT_ALLOW = 1, PD_EFFECT_BLOCK } pd_effect_t;

/* What a rule says of one connector. */
typedef struct pd_rule_part {
    int is_whole;                   /* the connector itself is an item */
    apr_array_header_t *operations; /* of const char *: ids, sorted bytewise, each once */
} pd_rule_part_t;

/* Hash of an id, for those who look for many of them. */
apr_uint32_t pd_rule_hash(const char *id);

typedef struct pd_rule {
    apr_pool_t *pool;
    apr_uint32_t refs;
    const char *id;
    const char *name; /* as people know it, or NULL */
    pd_effect_t effect;
    const char *role;   /* name of the role it is for, or NULL */
    const char *member; /* id of the member it is for, or NULL */
    apr_hash_t *parts;  /* connector id -> pd_rule_part_t *; what a name block pinned is among them */
    apr_hash_t *names;  /* advertised name -> that name; empty in an allow */
} pd_rule_t;

/* Compiles the stored document of a restriction (op_restrictions.h). PD_E_INVALID: it is not sound. refs is 1. */
pd_status_t pd_rule_make(const char *id, const json_t *doc, pd_rule_t **ret);
void pd_rule_retain(pd_rule_t *rule);
void pd_rule_release(pd_rule_t **rule);

/* One rule's word on a connector: what is asked of it while many connectors are walked stands here, close to its neighbours'. */
typedef struct pd_bearing_part {
    const pd_rule_t *rule;
    pd_effect_t effect;
    int is_whole;
    int count; /* of single operations */
    const char *const *operations; /* their ids, sorted bytewise */
    const apr_uint32_t *hashes;    /* pd_rule_hash() of each */
} pd_bearing_part_t;

struct pd_layer_on;
struct pd_layer_place;

#define PD_NAME_MARKS 1024

/* The rules of one target. */
typedef struct pd_layer {
    apr_pool_t *pool;
    apr_uint32_t refs;
    int is_readable; /* 0: a rule of this target can't be read, so nobody knows what holds */
    int has_allow;
    apr_array_header_t *rules; /* of pd_rule_t *, retained, in the order of their ids */
    /* The same, found by what is asked: pointers into the rules above. */
    struct pd_layer_on *on;        /* a row for each connector that a rule names */
    struct pd_layer_place *places; /* hash table over them (pd_layer_parts) */
    apr_uint32_t place_mask;
    apr_hash_t *by_name; /* advertised name -> the first pd_rule_t * that blocks it */
    unsigned char name_marks[PD_NAME_MARKS / 8]; /* a bit for each of them: most names are seen at once not to be there */
} pd_layer_t;

/* rules: of pd_rule_t *, each retained by this; may be empty only when is_readable is 0. refs is 1. */
pd_status_t pd_layer_make(const apr_array_header_t *rules, int is_readable, pd_layer_t **ret);
void pd_layer_retain(pd_layer_t *layer);
void pd_layer_release(pd_layer_t **layer);
/* What the layer's rules say of a connector (hash: pd_rule_hash() of its id): pd_bearing_part_t in the order of the rules' ids, or NULL. */
const apr_array_header_t *pd_layer_parts(const pd_layer_t *layer, const char *connector_id,
                                         apr_uint32_t hash);
/* The first rule that blocks this advertised name, or NULL. */
const pd_rule_t *pd_layer_name(const pd_layer_t *layer, const char *name);

/* What governs one member. */
typedef enum pd_governed {
    PD_GOVERNED_UNREADABLE = 0, /* rules exist that could not be read: everything is denied */
    PD_GOVERNED_FREE,           /* there is no rule */
    PD_GOVERNED_BY_ROLES,
    PD_GOVERNED_BY_USER
} pd_governed_t;

typedef struct pd_rules {
    pd_governed_t governed;
    int has_allow; /* of any layer that governs */
    int has_names; /* some rule blocks by advertised name */
    apr_array_header_t *layers; /* of const pd_layer_t *, borrowed */
} pd_rules_t;

/* Chooses what governs: by_role: role name -> pd_layer_t *; by_member: member id -> pd_layer_t *. member_id may be NULL (an admin peer that is
 * no member: free). role_names: NULL-terminated. *ret is filled in any case; its array is in pool. */
void pd_rules_choose(apr_hash_t *by_role, apr_hash_t *by_member, const char *member_id,
                     const char *const *role_names, apr_pool_t *pool, pd_rules_t *ret);

/* What the rules say of one tool. */
typedef enum pd_verdict {
    PD_VERDICT_UNREADABLE = 0,
    PD_VERDICT_ALLOWED,
    PD_VERDICT_NOT_ALLOWED, /* an allowlist is engaged and does not name it */
    PD_VERDICT_BLOCKED
} pd_verdict_t;

/* The words of explain: "unreadable", "allowed", "not_allowed", "blocked"; and "unreadable", "none", "roles", "user". */
const char *pd_verdict_text(pd_verdict_t verdict);
const char *pd_governed_text(pd_governed_t governed);

/* Which rule decided, and by which of its items; all NULL where none did (no rule at all, or no allow named it). */
typedef enum pd_item { PD_ITEM_NONE = 0, PD_ITEM_CONNECTOR, PD_ITEM_OPERATION, PD_ITEM_NAME } pd_item_t;
typedef struct pd_decided {
    const pd_rule_t *rule;
    pd_item_t item;
} pd_decided_t;

/* Which operations of a connector may be allowed at all, for those who walk over many: what is left out here pd_rules_judge() allows under
 * no name, and what is not it may still deny. */
typedef enum pd_bears {
    PD_BEARS_NONE = 0, /* none */
    PD_BEARS_LISTED,   /* those alone that an allow in `parts` names */
    PD_BEARS_ANY
} pd_bears_t;

/* The rules as they bear on one connector: gathered once, then asked for each of its operations. Borrows from the layers. */
typedef struct pd_bearing {
    const pd_rules_t *rules;
    const char *connector_id;
    int is_uniform;       /* one verdict for all of its operations, names aside */
    pd_verdict_t uniform;
    pd_bears_t bears;
    const apr_array_header_t *parts; /* of pd_bearing_part_t, in the order of the rules' ids */
} pd_bearing_t;

void pd_rules_bear(const pd_rules_t *rules, const char *connector_id, apr_pool_t *pool, pd_bearing_t *ret);

/* THE resolver: what holds for one operation of the bearing's connector under the canonical name `name` (NULL: under no name, for the
 * catalog). operation_id NULL: the connector by itself, which only an item for the whole of it names. decided (NULL: not recorded) names the
 * rule that decided: of blocks one that names the connector before one that names the operation before one that names the tool, else
 * the allow that names it, and among equals the first by id. Recording changes no verdict. Every point of the product that asks
 * about restrictions asks this. */
pd_verdict_t pd_rules_judge(const pd_bearing_t *bearing, const char *operation_id, const char *name,
                            pd_decided_t *decided);

#endif
