/* Which members gain or lose which tools by a change: see pd_impact.h. */
#include "pd_impact.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "pd_reach.h"
#include "pd_roles.h"

#define PAGE       500  /* members read at once */
#define CLOCK_STEP 1024 /* tools between two looks at the clock */
#define MAX_ROLES  64   /* of a member */

enum { BEFORE, AFTER, SIDES };

/* A set of role names, as it stands in a member. */
typedef struct role_set {
    const char *const *names; /* sorted, NULL-terminated */
    int count;
    const char *key; /* the names, each with a line's end; "" for one who has nothing */
} role_set_t;

typedef struct person {
    const char *id;
    const char *email;
    role_set_t roles[SIDES];
    int is_active[SIDES];
} person_t;

/* Members for whom the answer is the same. */
typedef struct class {
    const person_t *first;
    int has_tools[SIDES];
    apr_array_header_t *people; /* of const person_t * */
} class_t;

typedef struct tool {
    const char *name; /* the snapshot's */
    int is_own;       /* over a connection that a member owns */
} tool_t;

/* Classes to which the same happens, under the same roles. */
typedef struct group {
    const role_set_t *roles;
    apr_array_header_t *people; /* of const person_t * */
    const tool_t *shown[SIDES]; /* [BEFORE]: lost, [AFTER]: gained; the first ones */
    int shown_count[SIDES];
    int count[SIDES];
} group_t;

struct pd_impact {
    apr_pool_t *pool;
    const pd_snapshot_t *snapshot[SIDES];
    int64_t revision; /* of the store, before the change */
    pd_boot_t deadline;
    apr_array_header_t *people;  /* of person_t *, in the order of their ids */
    apr_hash_t *by_id;           /* member id -> person_t * */
    apr_hash_t *executes[SIDES]; /* role name -> YES or NO: whether it holds tool:execute */
    apr_hash_t *sets;            /* key -> const char *const *: role sets are shared */
    /* what of the ground differs */
    int is_shared_touched;
    apr_hash_t *touched_owners;   /* member id */
    apr_array_header_t *touched_toolboxes; /* of const pd_toolbox_t *, of either side */
    apr_hash_t *named;            /* member ids that some toolbox names */
    apr_hash_t *groups;           /* key -> group_t * */
    int touched, gaining, losing; /* members */
};

static const char yes[] = "yes";
static const char no[] = "no";

static int is_late(const pd_impact_t *impact)
{
    return pd_boot_left_ms(impact->deadline) <= 0;
}

/* --- who there is ---------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The roles of a member's document, sorted, each once. */
static void read_roles(pd_impact_t *impact, const json_t *doc, role_set_t *ret)
{
    const json_t *roles = json_object_get(doc, "roles");
    const char *names[MAX_ROLES + 1];
    const char *const *shared;
    const char **own;
    char *key = apr_pstrdup(impact->pool, "");
    size_t i;
    int count = 0;
    int kept = 0;
    int k;

    for (i = 0; i < json_array_size(roles) && count < MAX_ROLES; i++) {
        names[count] = json_string_value(json_array_get(roles, i));
        count += names[count] != NULL;
    }
    qsort(names, (size_t)count, sizeof(*names), by_text);
    for (k = 0; k < count; k++) {
        if (kept == 0 || strcmp(names[kept - 1], names[k]) != 0) {
            names[kept++] = names[k];
            key = apr_pstrcat(impact->pool, key, names[k], "\n", (char *)NULL);
        }
    }
    ret->count = kept;
    ret->key = key;
    shared = apr_hash_get(impact->sets, key, APR_HASH_KEY_STRING);
    if (shared == NULL) {
        own = apr_pcalloc(impact->pool, ((size_t)kept + 1) * sizeof(*own));
        for (k = 0; k < kept; k++) {
            own[k] = apr_pstrdup(impact->pool, names[k]);
        }
        shared = own;
        apr_hash_set(impact->sets, key, APR_HASH_KEY_STRING, shared);
    }
    ret->names = shared;
}

static const role_set_t nobody = {(const char *const[]){NULL}, 0, ""};

static void read_side(pd_impact_t *impact, const pd_object_t *member, person_t *person, int side)
{
    const char *state = mcp_json_str(member->doc, "state");
    const char *email = mcp_json_str(member->doc, "email");

    read_roles(impact, member->doc, &person->roles[side]);
    person->is_active[side] = state != NULL && strcmp(state, "active") == 0;
    if (email != NULL) {
        person->email = apr_pstrdup(impact->pool, email);
    }
}

static person_t *add_person(pd_impact_t *impact, const char *id)
{
    person_t *person = apr_pcalloc(impact->pool, sizeof(*person));

    person->id = apr_pstrdup(impact->pool, id);
    person->email = person->id; /* until one is read */
    person->roles[BEFORE] = nobody;
    person->roles[AFTER] = nobody;
    APR_ARRAY_PUSH(impact->people, person_t *) = person;
    apr_hash_set(impact->by_id, person->id, APR_HASH_KEY_STRING, person);
    return person;
}

static pd_status_t read_people(pd_impact_t *impact, pd_tx_t *tx)
{
    const char *after = NULL;

    for (;;) {
        apr_array_header_t *page = NULL;
        pd_status_t status = pd_tx_list(tx, "member", NULL, after, PAGE, &page);
        int i;

        if (status == PD_OK && is_late(impact)) {
            status = PD_E_TIMEOUT;
        }
        for (i = 0; status == PD_OK && i < page->nelts; i++) {
            const pd_object_t *member = APR_ARRAY_IDX(page, i, pd_object_t *);
            person_t *person = add_person(impact, member->id);

            read_side(impact, member, person, BEFORE);
            person->roles[AFTER] = person->roles[BEFORE];
            person->is_active[AFTER] = person->is_active[BEFORE];
            after = person->id;
        }
        if (status != PD_OK || page->nelts < PAGE) {
            return status;
        }
    }
}

/* Members that the unit itself has touched. */
static pd_status_t read_changed(pd_impact_t *impact, pd_tx_t *tx)
{
    apr_array_header_t *changes = NULL;
    pd_status_t status = pd_tx_changes(tx, impact->revision, &changes);
    int i;

    for (i = 0; status == PD_OK && i < changes->nelts; i++) {
        const pd_change_t *change = &APR_ARRAY_IDX(changes, i, pd_change_t);
        pd_object_t *member = NULL;
        person_t *person;

        if (strcmp(change->kind, "member") != 0) {
            continue;
        }
        person = apr_hash_get(impact->by_id, change->id, APR_HASH_KEY_STRING);
        if (person == NULL) {
            person = add_person(impact, change->id);
        }
        status = pd_tx_get(tx, "member", change->id, &member);
        if (status == PD_OK) {
            read_side(impact, member, person, AFTER);
        } else if (status == PD_E_NOT_FOUND) {
            person->roles[AFTER] = nobody;
            person->is_active[AFTER] = 0;
            status = PD_OK;
        }
    }
    return status;
}

/* --- who may execute ------------------------------------------------------------- */

static pd_status_t ask_role(pd_impact_t *impact, pd_tx_t *tx, const char *name, int side)
{
    json_t *roles = json_pack("[s]", name);
    const char *const *held = NULL;
    const char *found = no;
    int is_owner = 0;
    pd_status_t status = roles == NULL ? PD_E_NOMEM
                                       : pd_roles_permissions(tx, roles, impact->pool, &held,
                                                              &is_owner);

    json_decref(roles);
    if (status != PD_OK) {
        return status;
    }
    for (; *held != NULL; held++) {
        found = strcmp(*held, "tool:execute") == 0 ? yes : found;
    }
    apr_hash_set(impact->executes[side], name, APR_HASH_KEY_STRING, is_owner ? yes : found);
    return PD_OK;
}

/* Every role that anybody has or had. */
static pd_status_t ask_roles(pd_impact_t *impact, pd_tx_t *tx, int side)
{
    pd_status_t status = PD_OK;
    apr_hash_index_t *at;
    void *value;

    for (at = apr_hash_first(NULL, impact->sets); at != NULL && status == PD_OK;
         at = apr_hash_next(at)) {
        const char *const *name;

        apr_hash_this(at, NULL, NULL, &value);
        for (name = value; *name != NULL && status == PD_OK; name++) {
            if (apr_hash_get(impact->executes[side], *name, APR_HASH_KEY_STRING) == NULL) {
                status = ask_role(impact, tx, *name, side);
            }
        }
    }
    return status;
}

static int has_tools(const pd_impact_t *impact, const person_t *person, int side)
{
    const char *const *name;

    for (name = person->roles[side].names; person->is_active[side] && *name != NULL; name++) {
        if (apr_hash_get(impact->executes[side], *name, APR_HASH_KEY_STRING) == yes) {
            return 1;
        }
    }
    return 0;
}

pd_status_t pd_impact_begin(pd_tx_t *tx, const pd_snapshot_t *before, pd_boot_t deadline,
                            apr_pool_t *pool, pd_impact_t **ret)
{
    pd_impact_t *impact = apr_pcalloc(pool, sizeof(*impact));
    pd_boot_t most = pd_boot_in(PD_IMPACT_MS);
    pd_status_t status;

    impact->pool = pool;
    impact->snapshot[BEFORE] = before;
    impact->revision = pd_tx_revision(tx);
    impact->deadline = deadline.us < most.us ? deadline : most;
    impact->people = apr_array_make(pool, 64, sizeof(person_t *));
    impact->by_id = apr_hash_make(pool);
    impact->sets = apr_hash_make(pool);
    impact->executes[BEFORE] = apr_hash_make(pool);
    impact->executes[AFTER] = apr_hash_make(pool);
    impact->groups = apr_hash_make(pool);
    status = impact->revision < 0 ? PD_E_IO : read_people(impact, tx);
    if (status == PD_OK) {
        status = ask_roles(impact, tx, BEFORE);
    }
    if (status == PD_OK) {
        *ret = impact;
    }
    return status;
}

/* --- what the change reaches ------------------------------------------------------- */

/* Connections of `one` that `other` has not, or has made anew. */
static void find_touched_connections(pd_impact_t *impact, const pd_ground_t *one,
                                     const pd_ground_t *other)
{
    apr_hash_index_t *at;

    /* with a pool: the iterator inside a hash is one for all threads */
    for (at = apr_hash_first(impact->pool, one->connections); at != NULL; at = apr_hash_next(at)) {
        const pd_connection_t *connection = apr_hash_this_val(at);

        if (apr_hash_get(other->connections, connection->id, APR_HASH_KEY_STRING) == connection) {
            continue;
        }
        if (connection->owner == NULL) {
            impact->is_shared_touched = 1;
        } else {
            apr_hash_set(impact->touched_owners, connection->owner, APR_HASH_KEY_STRING, yes);
        }
    }
}

static void find_touched_toolboxes(pd_impact_t *impact, const pd_toolboxes_t *one,
                                   const pd_toolboxes_t *other)
{
    int i;

    for (i = 0; i < one->sorted->nelts; i++) {
        const pd_toolbox_t *toolbox = APR_ARRAY_IDX(one->sorted, i, const pd_toolbox_t *);
        apr_hash_index_t *at;

        for (at = apr_hash_first(impact->pool, toolbox->members); at != NULL;
             at = apr_hash_next(at)) {
            apr_hash_set(impact->named, apr_hash_this_key(at), APR_HASH_KEY_STRING, yes);
        }
        if (apr_hash_get(other->by_id, toolbox->id, APR_HASH_KEY_STRING) != toolbox) {
            APR_ARRAY_PUSH(impact->touched_toolboxes, const pd_toolbox_t *) = toolbox;
        }
    }
}

static void find_touched(pd_impact_t *impact)
{
    const pd_snapshot_t *before = impact->snapshot[BEFORE];
    const pd_snapshot_t *after = impact->snapshot[AFTER];

    impact->touched_owners = apr_hash_make(impact->pool);
    impact->named = apr_hash_make(impact->pool);
    impact->touched_toolboxes = apr_array_make(impact->pool, 4, sizeof(const pd_toolbox_t *));
    if (before->ground != after->ground) {
        find_touched_connections(impact, before->ground, after->ground);
        find_touched_connections(impact, after->ground, before->ground);
    }
    find_touched_toolboxes(impact, before->toolboxes, after->toolboxes);
    find_touched_toolboxes(impact, after->toolboxes, before->toolboxes);
}

/* Whether the same rules govern the person on both sides. */
static int is_same_rules(const pd_impact_t *impact, const person_t *person, apr_pool_t *pool)
{
    pd_rules_t rules[SIDES];
    int side;
    int i;

    for (side = BEFORE; side < SIDES; side++) {
        pd_snapshot_rules(impact->snapshot[side], person->id, person->roles[side].names, pool,
                          &rules[side]);
    }
    if (rules[BEFORE].governed != rules[AFTER].governed ||
        rules[BEFORE].layers->nelts != rules[AFTER].layers->nelts) {
        return 0;
    }
    for (i = 0; i < rules[BEFORE].layers->nelts; i++) {
        if (APR_ARRAY_IDX(rules[BEFORE].layers, i, const pd_layer_t *) !=
            APR_ARRAY_IDX(rules[AFTER].layers, i, const pd_layer_t *)) {
            return 0;
        }
    }
    return 1;
}

static int is_touched_by_toolbox(const pd_impact_t *impact, const person_t *person)
{
    int i;

    for (i = 0; i < impact->touched_toolboxes->nelts; i++) {
        const pd_toolbox_t *toolbox =
            APR_ARRAY_IDX(impact->touched_toolboxes, i, const pd_toolbox_t *);

        if (pd_toolbox_is_for(toolbox, person->id, person->roles[BEFORE].names) ||
            pd_toolbox_is_for(toolbox, person->id, person->roles[AFTER].names)) {
            return 1;
        }
    }
    return 0;
}

/* 0 where the change can't make a difference: what decides is the very same on both sides. */
static int is_reached(const pd_impact_t *impact, const class_t *class, apr_pool_t *pool)
{
    const person_t *person = class->first;

    if (!class->has_tools[BEFORE] && !class->has_tools[AFTER]) {
        return 0;
    }
    return class->has_tools[BEFORE] != class->has_tools[AFTER] ||
           strcmp(person->roles[BEFORE].key, person->roles[AFTER].key) != 0 ||
           impact->is_shared_touched ||
           apr_hash_get(impact->touched_owners, person->id, APR_HASH_KEY_STRING) != NULL ||
           !is_same_rules(impact, person, pool) || is_touched_by_toolbox(impact, person);
}

/* --- classes ------------------------------------------------------------------------ */

/* Whether something is there for this member alone, on either side. */
static int has_own(const pd_impact_t *impact, const char *id)
{
    int side;

    for (side = BEFORE; side < SIDES; side++) {
        const pd_snapshot_t *snapshot = impact->snapshot[side];

        if (apr_hash_get(snapshot->ground->by_owner, id, APR_HASH_KEY_STRING) != NULL ||
            apr_hash_get(snapshot->rulebook->by_member, id, APR_HASH_KEY_STRING) != NULL) {
            return 1;
        }
    }
    return apr_hash_get(impact->named, id, APR_HASH_KEY_STRING) != NULL;
}

/* Role names hold no control characters, so that the parts of a key can't run into each other. */
static const char *class_key(const pd_impact_t *impact, const person_t *person,
                             const int with_tools[SIDES], apr_pool_t *pool)
{
    return apr_pstrcat(pool, with_tools[BEFORE] ? "+" : "-", person->roles[BEFORE].key, "\t",
                       with_tools[AFTER] ? "+" : "-", person->roles[AFTER].key, "\t",
                       has_own(impact, person->id) ? person->id : "", (char *)NULL);
}

/* The classes in the order of their first members. */
static apr_array_header_t *make_classes(pd_impact_t *impact)
{
    apr_array_header_t *classes = apr_array_make(impact->pool, 32, sizeof(class_t *));
    apr_hash_t *by_key = apr_hash_make(impact->pool);
    int i;

    for (i = 0; i < impact->people->nelts; i++) {
        const person_t *person = APR_ARRAY_IDX(impact->people, i, person_t *);
        int with_tools[SIDES] = {has_tools(impact, person, BEFORE),
                                 has_tools(impact, person, AFTER)};
        const char *key = class_key(impact, person, with_tools, impact->pool);
        class_t *class = apr_hash_get(by_key, key, APR_HASH_KEY_STRING);

        if (class == NULL) {
            class = apr_pcalloc(impact->pool, sizeof(*class));
            class->first = person;
            memcpy(class->has_tools, with_tools, sizeof(with_tools));
            class->people = apr_array_make(impact->pool, 4, sizeof(const person_t *));
            apr_hash_set(by_key, key, APR_HASH_KEY_STRING, class);
            APR_ARRAY_PUSH(classes, class_t *) = class;
        }
        APR_ARRAY_PUSH(class->people, const person_t *) = person;
    }
    return classes;
}

/* --- tools ---------------------------------------------------------------------------- */

typedef struct walk {
    const pd_impact_t *impact;
    apr_array_header_t *tools; /* of tool_t */
} walk_t;

static pd_status_t take_tool(const pd_found_t *found, void *baton)
{
    walk_t *walk = baton;
    tool_t *tool = apr_array_push(walk->tools);

    /* names of the snapshot's parts: what was found need not outlast this call */
    tool->name = found->entry != NULL ? found->entry->tool_name : found->tool->name;
    tool->is_own = found->entry == NULL && found->connections->nelts > 0 &&
                   APR_ARRAY_IDX(found->connections, 0, const pd_connection_t *)->owner != NULL;
    return walk->tools->nelts % CLOCK_STEP == 0 && is_late(walk->impact) ? PD_E_TIMEOUT : PD_OK;
}

static pd_status_t list_tools(const pd_impact_t *impact, const class_t *class, int side,
                              apr_pool_t *pool, apr_array_header_t **ret)
{
    walk_t walk = {impact, apr_array_make(pool, 256, sizeof(tool_t))};
    pd_subject_t subject = {class->first->id, class->first->roles[side].names};
    pd_status_t status = PD_OK;

    if (class->has_tools[side]) {
        status = pd_reach_each(impact->snapshot[side], &subject, pool, take_tool, &walk);
    }
    *ret = walk.tools;
    return status;
}

static int same_name(const tool_t *a, const tool_t *b)
{
    return a->name == b->name || strcmp(a->name, b->name) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tool_t *)a)->name, ((const tool_t *)b)->name);
}

/* A part of a walk's tools. */
typedef struct part {
    tool_t *tools;
    int count;
} part_t;

/* Most of what a walk gives is in order already. */
static void sort_part(part_t *part)
{
    int i;

    for (i = 1; i < part->count; i++) {
        if (by_name(&part->tools[i - 1], &part->tools[i]) > 0) {
            qsort(part->tools, (size_t)part->count, sizeof(*part->tools), by_name);
            return;
        }
    }
}

/* Both walks go the same way, so what a change left alone begins and ends them alike: only what lies between is sorted. */
static void trim(part_t *before, part_t *after)
{
    while (before->count > 0 && after->count > 0 && same_name(before->tools, after->tools)) {
        before->tools++;
        before->count--;
        after->tools++;
        after->count--;
    }
    while (before->count > 0 && after->count > 0 &&
           same_name(&before->tools[before->count - 1], &after->tools[after->count - 1])) {
        before->count--;
        after->count--;
    }
}

/* What is in `one` and not in `other`, both sorted; in pool. */
static part_t only_in(const part_t *one, const part_t *other, apr_pool_t *pool)
{
    part_t only = {apr_palloc(pool, ((size_t)one->count + 1) * sizeof(tool_t)), 0};
    int k = 0;
    int i;

    for (i = 0; i < one->count; i++) {
        const tool_t *tool = &one->tools[i];

        while (k < other->count && by_name(&other->tools[k], tool) < 0) {
            k++;
        }
        if ((k == other->count || by_name(&other->tools[k], tool) != 0) &&
            (only.count == 0 || by_name(&only.tools[only.count - 1], tool) != 0)) {
            only.tools[only.count++] = *tool;
        }
    }
    return only;
}

/* --- groups ------------------------------------------------------------------------ */

/* Roles as they are now, or were if the members have none any more. */
static const role_set_t *roles_shown(const person_t *person)
{
    return person->roles[AFTER].count > 0 ? &person->roles[AFTER] : &person->roles[BEFORE];
}

/* The same for the same roles and the very same changes. */
static const char *group_key(const class_t *class, const part_t changed[SIDES], apr_pool_t *pool)
{
    const role_set_t *roles = roles_shown(class->first);
    size_t bytes = strlen(roles->key) + 2;
    char digest[MCP_DIGEST_HEX + 1];
    char *text;
    char *at;
    int side;
    int i;

    for (side = BEFORE; side < SIDES; side++) {
        for (i = 0; i < changed[side].count; i++) {
            bytes += strlen(changed[side].tools[i].name) + 1;
        }
    }
    text = apr_palloc(pool, bytes + 1);
    at = apr_cpystrn(text, roles->key, bytes);
    for (side = BEFORE; side < SIDES; side++) {
        *at++ = '\t';
        for (i = 0; i < changed[side].count; i++) {
            at = apr_cpystrn(at, changed[side].tools[i].name, bytes - (size_t)(at - text));
            *at++ = '\n';
        }
    }
    mcp_digest_hex(text, (size_t)(at - text), digest);
    return apr_pstrdup(pool, digest);
}

static group_t *new_group(pd_impact_t *impact, const class_t *class, const part_t changed[SIDES])
{
    group_t *group = apr_pcalloc(impact->pool, sizeof(*group));
    int side;

    group->roles = roles_shown(class->first);
    group->people = apr_array_make(impact->pool, class->people->nelts, sizeof(const person_t *));
    for (side = BEFORE; side < SIDES; side++) {
        int count = changed[side].count < PD_IMPACT_NAMES ? changed[side].count : PD_IMPACT_NAMES;

        group->count[side] = changed[side].count;
        group->shown_count[side] = count;
        group->shown[side] =
            apr_pmemdup(impact->pool, changed[side].tools, (size_t)count * sizeof(tool_t));
    }
    return group;
}

static void note_class(pd_impact_t *impact, const class_t *class, const part_t changed[SIDES],
                       apr_pool_t *round)
{
    const char *key = group_key(class, changed, round);
    group_t *group = apr_hash_get(impact->groups, key, APR_HASH_KEY_STRING);
    int people = class->people->nelts;

    if (group == NULL) {
        group = new_group(impact, class, changed);
        apr_hash_set(impact->groups, apr_pstrdup(impact->pool, key), APR_HASH_KEY_STRING, group);
    }
    apr_array_cat(group->people, class->people);
    impact->touched += people;
    impact->losing += changed[BEFORE].count > 0 ? people : 0;
    impact->gaining += changed[AFTER].count > 0 ? people : 0;
}

static pd_status_t compare_class(pd_impact_t *impact, const class_t *class, apr_pool_t *round)
{
    apr_array_header_t *tools[SIDES] = {NULL, NULL};
    part_t parts[SIDES];
    part_t changed[SIDES];
    pd_status_t status;

    if (is_late(impact)) {
        return PD_E_TIMEOUT;
    }
    if (!is_reached(impact, class, round)) {
        return PD_OK;
    }
    status = list_tools(impact, class, BEFORE, round, &tools[BEFORE]);
    if (status == PD_OK) {
        status = list_tools(impact, class, AFTER, round, &tools[AFTER]);
    }
    if (status != PD_OK) {
        return status;
    }
    parts[BEFORE] = (part_t){(tool_t *)(void *)tools[BEFORE]->elts, tools[BEFORE]->nelts};
    parts[AFTER] = (part_t){(tool_t *)(void *)tools[AFTER]->elts, tools[AFTER]->nelts};
    trim(&parts[BEFORE], &parts[AFTER]);
    sort_part(&parts[BEFORE]);
    sort_part(&parts[AFTER]);
    changed[BEFORE] = only_in(&parts[BEFORE], &parts[AFTER], round);
    changed[AFTER] = only_in(&parts[AFTER], &parts[BEFORE], round);
    if (changed[BEFORE].count > 0 || changed[AFTER].count > 0) {
        note_class(impact, class, changed, round);
    }
    return PD_OK;
}

static pd_status_t compare_all(pd_impact_t *impact)
{
    apr_array_header_t *classes = make_classes(impact);
    apr_pool_t *round = NULL;
    pd_status_t status = PD_OK;
    int i;

    if (apr_pool_create(&round, impact->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    for (i = 0; status == PD_OK && i < classes->nelts; i++) {
        status = compare_class(impact, APR_ARRAY_IDX(classes, i, const class_t *), round);
        apr_pool_clear(round);
    }
    apr_pool_destroy(round);
    return status;
}

/* --- the answer ---------------------------------------------------------------------- */

static int by_email(const void *a, const void *b)
{
    const person_t *one = *(const person_t *const *)a;
    const person_t *other = *(const person_t *const *)b;
    int order = strcmp(one->email, other->email);

    return order != 0 ? order : strcmp(one->id, other->id);
}

/* People of each group sorted; then the largest groups, then by roles, then by the first member: no two have the same. */
static int by_size(const void *a, const void *b)
{
    const group_t *one = *(const group_t *const *)a;
    const group_t *other = *(const group_t *const *)b;
    int order;

    if (one->people->nelts != other->people->nelts) {
        return one->people->nelts > other->people->nelts ? -1 : 1;
    }
    order = strcmp(one->roles->key, other->roles->key);
    return order != 0 ? order : by_email(one->people->elts, other->people->elts);
}

static json_t *show_people(const group_t *group)
{
    json_t *shown = json_array();
    int i;

    for (i = 0; i < group->people->nelts && i < PD_IMPACT_MEMBERS; i++) {
        if (json_array_append_new(shown, json_string(APR_ARRAY_IDX(group->people, i,
                                                                   const person_t *)
                                                         ->email)) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

static json_t *show_roles(const role_set_t *roles)
{
    json_t *shown = json_array();
    int i;

    for (i = 0; i < roles->count; i++) {
        if (json_array_append_new(shown, json_string(roles->names[i])) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

static json_t *show_tools(const group_t *group, int side, const pd_impact_sight_t *sight)
{
    json_t *shown = json_array();
    int i;

    for (i = 0; i < group->shown_count[side]; i++) {
        const tool_t *tool = &group->shown[side][i];

        if ((sight->shows_own || !tool->is_own) &&
            json_array_append_new(shown, json_string(tool->name)) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

static json_t *show_group(const group_t *group, const pd_impact_sight_t *sight)
{
    return json_pack("{s:i, s:o*, s:o, s:i, s:o, s:i, s:o}", "member_count", group->people->nelts,
                     "members", sight->shows_members ? show_people(group) : NULL, "roles",
                     show_roles(group->roles), "gain_count", group->count[AFTER], "gains",
                     show_tools(group, AFTER, sight), "lose_count", group->count[BEFORE], "loses",
                     show_tools(group, BEFORE, sight));
}

static apr_array_header_t *sort_groups(pd_impact_t *impact)
{
    apr_array_header_t *sorted = apr_array_make(impact->pool, 8, sizeof(group_t *));
    apr_hash_index_t *at;

    for (at = apr_hash_first(impact->pool, impact->groups); at != NULL; at = apr_hash_next(at)) {
        group_t *group = apr_hash_this_val(at);

        qsort(group->people->elts, (size_t)group->people->nelts, sizeof(const person_t *),
              by_email);
        APR_ARRAY_PUSH(sorted, group_t *) = group;
    }
    qsort(sorted->elts, (size_t)sorted->nelts, sizeof(group_t *), by_size);
    return sorted;
}

static json_t *show_impact(pd_impact_t *impact, const pd_impact_sight_t *sight)
{
    apr_array_header_t *groups = sort_groups(impact);
    json_t *shown = json_array();
    int is_cut = groups->nelts > PD_IMPACT_GROUPS;
    int i;

    for (i = 0; i < groups->nelts && i < PD_IMPACT_GROUPS; i++) {
        if (json_array_append_new(shown, show_group(APR_ARRAY_IDX(groups, i, const group_t *),
                                                    sight)) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return json_pack("{s:i, s:i, s:i, s:o, s:o*}", "members", impact->touched, "gains",
                     impact->gaining, "loses", impact->losing, "groups", shown, "is_cut",
                     is_cut ? json_true() : NULL);
}

pd_status_t pd_impact_end(pd_impact_t *impact, pd_tx_t *tx, const pd_snapshot_t *after,
                          const pd_impact_sight_t *sight, json_t **ret)
{
    pd_status_t status = read_changed(impact, tx);

    if (status == PD_OK) {
        status = ask_roles(impact, tx, AFTER);
    }
    if (status != PD_OK) {
        return status;
    }
    impact->snapshot[AFTER] = after;
    find_touched(impact);
    status = compare_all(impact);
    if (status != PD_OK) {
        return status;
    }
    *ret = show_impact(impact, sight);
    return *ret != NULL ? PD_OK : PD_E_NOMEM;
}
