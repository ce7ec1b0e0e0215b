/* Which classes of members a change reaches, and what it does to each. See pd_impact.h. */
#include "pd_impact_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_hash.h"
#include "pd_reach.h"

#define CLOCK_STEP 1024 /* tools between two looks at the clock */

static const char yes[] = "yes";

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
    const pd_snapshot_t *before = impact->snapshot[PD_BEFORE];
    const pd_snapshot_t *after = impact->snapshot[PD_AFTER];

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
static int is_same_rules(const pd_impact_t *impact, const pd_impact_person_t *person,
                         apr_pool_t *pool)
{
    pd_rules_t rules[PD_SIDES];
    int side;
    int i;

    for (side = PD_BEFORE; side < PD_SIDES; side++) {
        pd_snapshot_rules(impact->snapshot[side], person->id, person->roles[side].names, pool,
                          &rules[side]);
    }
    if (rules[PD_BEFORE].governed != rules[PD_AFTER].governed ||
        rules[PD_BEFORE].layers->nelts != rules[PD_AFTER].layers->nelts) {
        return 0;
    }
    for (i = 0; i < rules[PD_BEFORE].layers->nelts; i++) {
        if (APR_ARRAY_IDX(rules[PD_BEFORE].layers, i, const pd_layer_t *) !=
            APR_ARRAY_IDX(rules[PD_AFTER].layers, i, const pd_layer_t *)) {
            return 0;
        }
    }
    return 1;
}

static int is_touched_by_toolbox(const pd_impact_t *impact, const pd_impact_person_t *person)
{
    int i;

    for (i = 0; i < impact->touched_toolboxes->nelts; i++) {
        const pd_toolbox_t *toolbox =
            APR_ARRAY_IDX(impact->touched_toolboxes, i, const pd_toolbox_t *);

        if (pd_toolbox_is_for(toolbox, person->id, person->roles[PD_BEFORE].names) ||
            pd_toolbox_is_for(toolbox, person->id, person->roles[PD_AFTER].names)) {
            return 1;
        }
    }
    return 0;
}

/* 0 where the change can't make a difference: what decides is the very same on both sides. */
static int is_reached(const pd_impact_t *impact, const pd_impact_class_t *class, apr_pool_t *pool)
{
    const pd_impact_person_t *person = class->first;

    if (!class->has_tools[PD_BEFORE] && !class->has_tools[PD_AFTER]) {
        return 0;
    }
    return class->has_tools[PD_BEFORE] != class->has_tools[PD_AFTER] ||
           strcmp(person->roles[PD_BEFORE].key, person->roles[PD_AFTER].key) != 0 ||
           impact->is_shared_touched ||
           apr_hash_get(impact->touched_owners, person->id, APR_HASH_KEY_STRING) != NULL ||
           !is_same_rules(impact, person, pool) || is_touched_by_toolbox(impact, person);
}

/* --- classes ------------------------------------------------------------------------ */

/* Whether something is there for this member alone, on either side. */
static int has_own(const pd_impact_t *impact, const char *id)
{
    int side;

    for (side = PD_BEFORE; side < PD_SIDES; side++) {
        const pd_snapshot_t *snapshot = impact->snapshot[side];

        if (apr_hash_get(snapshot->ground->by_owner, id, APR_HASH_KEY_STRING) != NULL ||
            apr_hash_get(snapshot->rulebook->by_member, id, APR_HASH_KEY_STRING) != NULL) {
            return 1;
        }
    }
    return apr_hash_get(impact->named, id, APR_HASH_KEY_STRING) != NULL;
}

/* Role names hold no control characters, so that the parts of a key can't run into each other. */
static const char *class_key(const pd_impact_t *impact, const pd_impact_person_t *person,
                             const int with_tools[PD_SIDES], apr_pool_t *pool)
{
    return apr_pstrcat(pool, with_tools[PD_BEFORE] ? "+" : "-", person->roles[PD_BEFORE].key, "\t",
                       with_tools[PD_AFTER] ? "+" : "-", person->roles[PD_AFTER].key, "\t",
                       has_own(impact, person->id) ? person->id : "", (char *)NULL);
}

/* The classes in the order of their first members. */
static apr_array_header_t *make_classes(pd_impact_t *impact)
{
    apr_array_header_t *classes = apr_array_make(impact->pool, 32, sizeof(pd_impact_class_t *));
    apr_hash_t *by_key = apr_hash_make(impact->pool);
    int i;

    for (i = 0; i < impact->people->nelts; i++) {
        const pd_impact_person_t *person = APR_ARRAY_IDX(impact->people, i, pd_impact_person_t *);
        int with_tools[PD_SIDES] = {pd_impact_has_tools(impact, person, PD_BEFORE),
                                    pd_impact_has_tools(impact, person, PD_AFTER)};
        const char *key = class_key(impact, person, with_tools, impact->pool);
        pd_impact_class_t *class = apr_hash_get(by_key, key, APR_HASH_KEY_STRING);

        if (class == NULL) {
            class = apr_pcalloc(impact->pool, sizeof(*class));
            class->first = person;
            memcpy(class->has_tools, with_tools, sizeof(with_tools));
            class->people = apr_array_make(impact->pool, 4, sizeof(const pd_impact_person_t *));
            apr_hash_set(by_key, key, APR_HASH_KEY_STRING, class);
            APR_ARRAY_PUSH(classes, pd_impact_class_t *) = class;
        }
        APR_ARRAY_PUSH(class->people, const pd_impact_person_t *) = person;
    }
    return classes;
}

/* --- tools ---------------------------------------------------------------------------- */

typedef struct walk {
    const pd_impact_t *impact;
    apr_array_header_t *tools; /* of pd_impact_tool_t */
} walk_t;

static pd_status_t take_tool(const pd_found_t *found, void *baton)
{
    walk_t *walk = baton;
    pd_impact_tool_t *tool = apr_array_push(walk->tools);

    /* names of the snapshot's parts: what was found need not outlast this call */
    tool->name = found->entry != NULL ? found->entry->tool_name : found->tool->name;
    tool->is_own = found->entry == NULL && found->connections->nelts > 0 &&
                   APR_ARRAY_IDX(found->connections, 0, const pd_connection_t *)->owner != NULL;
    return walk->tools->nelts % CLOCK_STEP == 0 && pd_impact_is_late(walk->impact) ? PD_E_TIMEOUT
                                                                                   : PD_OK;
}

static pd_status_t list_tools(const pd_impact_t *impact, const pd_impact_class_t *class, int side,
                              apr_pool_t *pool, apr_array_header_t **ret)
{
    walk_t walk = {impact, apr_array_make(pool, 256, sizeof(pd_impact_tool_t))};
    pd_subject_t subject = {class->first->id, class->first->roles[side].names};
    pd_status_t status = PD_OK;

    if (class->has_tools[side]) {
        status = pd_reach_each(impact->snapshot[side], &subject, pool, take_tool, &walk);
    }
    *ret = walk.tools;
    return status;
}

static int same_name(const pd_impact_tool_t *a, const pd_impact_tool_t *b)
{
    return a->name == b->name || strcmp(a->name, b->name) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pd_impact_tool_t *)a)->name, ((const pd_impact_tool_t *)b)->name);
}

/* A part of a walk's tools. */
typedef struct part {
    pd_impact_tool_t *tools;
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
    part_t only = {apr_palloc(pool, ((size_t)one->count + 1) * sizeof(pd_impact_tool_t)), 0};
    int k = 0;
    int i;

    for (i = 0; i < one->count; i++) {
        const pd_impact_tool_t *tool = &one->tools[i];

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
static const pd_impact_role_set_t *roles_shown(const pd_impact_person_t *person)
{
    return person->roles[PD_AFTER].count > 0 ? &person->roles[PD_AFTER] : &person->roles[PD_BEFORE];
}

/* The same for the same roles and the very same changes. */
static const char *group_key(const pd_impact_class_t *class, const part_t changed[PD_SIDES],
                             apr_pool_t *pool)
{
    const pd_impact_role_set_t *roles = roles_shown(class->first);
    size_t bytes = strlen(roles->key) + 2;
    char digest[MCP_DIGEST_HEX + 1];
    char *text;
    char *at;
    int side;
    int i;

    for (side = PD_BEFORE; side < PD_SIDES; side++) {
        for (i = 0; i < changed[side].count; i++) {
            bytes += strlen(changed[side].tools[i].name) + 1;
        }
    }
    text = apr_palloc(pool, bytes + 1);
    at = apr_cpystrn(text, roles->key, bytes);
    for (side = PD_BEFORE; side < PD_SIDES; side++) {
        *at++ = '\t';
        for (i = 0; i < changed[side].count; i++) {
            at = apr_cpystrn(at, changed[side].tools[i].name, bytes - (size_t)(at - text));
            *at++ = '\n';
        }
    }
    mcp_digest_hex(text, (size_t)(at - text), digest);
    return apr_pstrdup(pool, digest);
}

static pd_impact_group_t *new_group(pd_impact_t *impact, const pd_impact_class_t *class,
                                    const part_t changed[PD_SIDES])
{
    pd_impact_group_t *group = apr_pcalloc(impact->pool, sizeof(*group));
    int side;

    group->roles = roles_shown(class->first);
    group->people =
        apr_array_make(impact->pool, class->people->nelts, sizeof(const pd_impact_person_t *));
    for (side = PD_BEFORE; side < PD_SIDES; side++) {
        int count = changed[side].count < PD_IMPACT_NAMES ? changed[side].count : PD_IMPACT_NAMES;

        group->count[side] = changed[side].count;
        group->shown_count[side] = count;
        group->shown[side] = apr_pmemdup(impact->pool, changed[side].tools,
                                         (size_t)count * sizeof(pd_impact_tool_t));
    }
    return group;
}

static void note_class(pd_impact_t *impact, const pd_impact_class_t *class,
                       const part_t changed[PD_SIDES], apr_pool_t *round)
{
    const char *key = group_key(class, changed, round);
    pd_impact_group_t *group = apr_hash_get(impact->groups, key, APR_HASH_KEY_STRING);
    int people = class->people->nelts;

    if (group == NULL) {
        group = new_group(impact, class, changed);
        apr_hash_set(impact->groups, apr_pstrdup(impact->pool, key), APR_HASH_KEY_STRING, group);
    }
    apr_array_cat(group->people, class->people);
    impact->touched += people;
    impact->losing += changed[PD_BEFORE].count > 0 ? people : 0;
    impact->gaining += changed[PD_AFTER].count > 0 ? people : 0;
}

static pd_status_t compare_class(pd_impact_t *impact, const pd_impact_class_t *class,
                                 apr_pool_t *round)
{
    apr_array_header_t *tools[PD_SIDES] = {NULL, NULL};
    part_t parts[PD_SIDES];
    part_t changed[PD_SIDES];
    pd_status_t status;

    if (pd_impact_is_late(impact)) {
        return PD_E_TIMEOUT;
    }
    if (!is_reached(impact, class, round)) {
        return PD_OK;
    }
    status = list_tools(impact, class, PD_BEFORE, round, &tools[PD_BEFORE]);
    if (status == PD_OK) {
        status = list_tools(impact, class, PD_AFTER, round, &tools[PD_AFTER]);
    }
    if (status != PD_OK) {
        return status;
    }
    parts[PD_BEFORE] =
        (part_t){(pd_impact_tool_t *)(void *)tools[PD_BEFORE]->elts, tools[PD_BEFORE]->nelts};
    parts[PD_AFTER] =
        (part_t){(pd_impact_tool_t *)(void *)tools[PD_AFTER]->elts, tools[PD_AFTER]->nelts};
    trim(&parts[PD_BEFORE], &parts[PD_AFTER]);
    sort_part(&parts[PD_BEFORE]);
    sort_part(&parts[PD_AFTER]);
    changed[PD_BEFORE] = only_in(&parts[PD_BEFORE], &parts[PD_AFTER], round);
    changed[PD_AFTER] = only_in(&parts[PD_AFTER], &parts[PD_BEFORE], round);
    if (changed[PD_BEFORE].count > 0 || changed[PD_AFTER].count > 0) {
        note_class(impact, class, changed, round);
    }
    return PD_OK;
}

pd_status_t pd_impact_compare(pd_impact_t *impact)
{
    apr_array_header_t *classes;
    apr_pool_t *round = NULL;
    pd_status_t status = PD_OK;
    int i;

    if (apr_pool_create(&round, impact->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    find_touched(impact);
    classes = make_classes(impact);
    for (i = 0; status == PD_OK && i < classes->nelts; i++) {
        status = compare_class(impact, APR_ARRAY_IDX(classes, i, const pd_impact_class_t *), round);
        apr_pool_clear(round);
    }
    apr_pool_destroy(round);
    return status;
}

/* --- the answer ---------------------------------------------------------------------- */

static int by_email(const void *a, const void *b)
{
    const pd_impact_person_t *one = *(const pd_impact_person_t *const *)a;
    const pd_impact_person_t *other = *(const pd_impact_person_t *const *)b;
    int order = strcmp(one->email, other->email);

    return order != 0 ? order : strcmp(one->id, other->id);
}

/* People of each group sorted; then the largest groups, then by roles, then by the first member: no two have the same. */
static int by_size(const void *a, const void *b)
{
    const pd_impact_group_t *one = *(const pd_impact_group_t *const *)a;
    const pd_impact_group_t *other = *(const pd_impact_group_t *const *)b;
    int order;

    if (one->people->nelts != other->people->nelts) {
        return one->people->nelts > other->people->nelts ? -1 : 1;
    }
    order = strcmp(one->roles->key, other->roles->key);
    return order != 0 ? order : by_email(one->people->elts, other->people->elts);
}

static json_t *show_people(const pd_impact_group_t *group)
{
    json_t *shown = json_array();
    int i;

    for (i = 0; i < group->people->nelts && i < PD_IMPACT_MEMBERS; i++) {
        if (json_array_append_new(
                shown,
                json_string(APR_ARRAY_IDX(group->people, i, const pd_impact_person_t *)->email)) !=
            0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

static json_t *show_roles(const pd_impact_role_set_t *roles)
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

static json_t *show_tools(const pd_impact_group_t *group, int side, const pd_impact_sight_t *sight)
{
    json_t *shown = json_array();
    int i;

    for (i = 0; i < group->shown_count[side]; i++) {
        const pd_impact_tool_t *tool = &group->shown[side][i];

        if ((sight->shows_own || !tool->is_own) &&
            json_array_append_new(shown, json_string(tool->name)) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

static json_t *show_group(const pd_impact_group_t *group, const pd_impact_sight_t *sight)
{
    return json_pack("{s:i, s:o*, s:o, s:i, s:o, s:i, s:o}", "member_count", group->people->nelts,
                     "members", sight->shows_members ? show_people(group) : NULL, "roles",
                     show_roles(group->roles), "gain_count", group->count[PD_AFTER], "gains",
                     show_tools(group, PD_AFTER, sight), "lose_count", group->count[PD_BEFORE],
                     "loses", show_tools(group, PD_BEFORE, sight));
}

static apr_array_header_t *sort_groups(pd_impact_t *impact)
{
    apr_array_header_t *sorted = apr_array_make(impact->pool, 8, sizeof(pd_impact_group_t *));
    apr_hash_index_t *at;

    for (at = apr_hash_first(impact->pool, impact->groups); at != NULL; at = apr_hash_next(at)) {
        pd_impact_group_t *group = apr_hash_this_val(at);

        qsort(group->people->elts, (size_t)group->people->nelts, sizeof(const pd_impact_person_t *),
              by_email);
        APR_ARRAY_PUSH(sorted, pd_impact_group_t *) = group;
    }
    qsort(sorted->elts, (size_t)sorted->nelts, sizeof(pd_impact_group_t *), by_size);
    return sorted;
}

json_t *pd_impact_show(pd_impact_t *impact, const pd_impact_sight_t *sight)
{
    apr_array_header_t *groups = sort_groups(impact);
    json_t *shown = json_array();
    int is_cut = groups->nelts > PD_IMPACT_GROUPS;
    int i;

    for (i = 0; i < groups->nelts && i < PD_IMPACT_GROUPS; i++) {
        if (json_array_append_new(
                shown, show_group(APR_ARRAY_IDX(groups, i, const pd_impact_group_t *), sight)) !=
            0) {
            json_decref(shown);
            return NULL;
        }
    }
    return json_pack("{s:i, s:i, s:i, s:o, s:o*, s:o*}", "members", impact->touched, "gains",
                     impact->gaining, "loses", impact->losing, "groups", shown, "is_cut",
                     is_cut ? json_true() : NULL, "only_you",
                     impact->only != NULL ? json_true() : NULL);
}
