/* Policies out of a seed, for the resolver's tests: few names over and over, so that rules,
 * accounts and entries meet; what is gone, was renamed, belongs to others or can't be read among
 * them. */
#ifndef POLICY_MAKER_H
#define POLICY_MAKER_H

#include "slow_resolver.h"

static uint64_t random_state;

static uint64_t random_next(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(size_t count)
{
    return (size_t)(random_next() % count);
}

static int chance(unsigned percent)
{
    return random_next() % 100 < percent;
}

#define ONE_OF(array) ((array)[below(COUNT(array))])

static const char *const all_roles[] = {"Member", "Admin", "Auditor", "sales", "field-team"};
static const char *const all_members[] = {"mem_a", "mem_b", "mem_c"};
static const char *const all_connectors[] = {"con_1", "con_2", "con_3", "con_4", "con_5"};
static const char *const all_labels[] = {"acc", "acc-2", "work", "crm", "x"};
static const char *const all_toolboxes[] = {"box", "kit", "crm-box"};
static const char *const all_entries[] = {"get", "del", "find it", "Über", "admin"};
/* The last two get names that are changed and cut. */
static const char *const all_operations[] = {
    "get",      "list",
    "del",      "admin",
    "odd/op.x", "an.operation/whose/id/is/much/longer/than/the/name/of/a/tool/may/ever/be"};

/* Some connectors lost operations since rules and entries were written; one is left with a
 * forbidden one or none. */
static json_t *make_connector(const char *id)
{
    static const char *const classes[] = {"read", "read", "destructive", "write", "write", "read"};
    json_t *operations = json_array();
    size_t variant = below(8);
    size_t i;

    for (i = 0; i < COUNT(all_operations) && variant != 7; i++) {
        if ((variant == 6 && i != 3) || (variant == 5 && i % 2 == 1) || (variant == 4 && i > 2)) {
            continue;
        }
        json_array_append_new(operations,
                              json_pack("{s:s,s:s}", "id", all_operations[i], "classification",
                                        i == 3 ? "forbidden" : classes[i]));
    }
    return json_pack("{s:s,s:s,s:o}", "id", id, "slug", id[4] == '1' ? "crm" : id + 4, "operations",
                     operations);
}

/* A label is the organisation's alone, or anybody's but not the organisation's; a member has it
 * once. */
static int label_is_free(const json_t *connections, const char *label, const char *owner)
{
    const json_t *other;
    size_t i;

    json_array_foreach(connections, i, other)
    {
        const char *others = text_of(other, "owner");

        if (is_text(other, "label", label) &&
            (owner == NULL || others == NULL || strcmp(others, owner) == 0)) {
            return 0;
        }
    }
    return 1;
}

static json_t *make_connections(void)
{
    json_t *connections = json_array();
    const char *connector = ONE_OF(all_connectors);
    size_t count = below(6);
    size_t i;

    for (i = 0; i < count; i++) {
        const char *owner = chance(50) ? ONE_OF(all_members) : NULL;
        const char *label = ONE_OF(all_labels);
        char id[16];
        json_t *made;

        if (!label_is_free(connections, label, owner)) {
            continue;
        }
        connector = chance(40) ? connector : ONE_OF(all_connectors); /* several accounts on one */
        (void)snprintf(id, sizeof(id), "cxn_%d", (int)i);
        made = json_pack("{s:s,s:s,s:s}", "id", id, "connector", connector, "label", label);
        if (owner != NULL) {
            json_object_set_new(made, "owner", json_string(owner));
        }
        if (chance(25)) {
            json_object_set_new(made, "toolbox_only", json_true());
        }
        if (chance(15)) {
            json_object_set_new(made, "state", json_string("needs_reauth"));
        }
        json_array_append_new(connections, made);
    }
    return connections;
}

static json_t *some_of(const char *const *all, size_t count, unsigned percent)
{
    json_t *array = json_array();
    size_t i;

    for (i = 0; i < count; i++) {
        if (chance(percent)) {
            json_array_append_new(array, json_string(all[i]));
        }
    }
    return array;
}

/* Own, or ids: of any connection, wrong ones, and one that is no more. */
static json_t *make_choices(void)
{
    static const char *const ids[] = {"cxn_0", "cxn_1", "cxn_2", "cxn_3", "cxn_4", "cxn_gone"};

    if (chance(35)) {
        return json_pack("[s]", "@own");
    }
    return some_of(ids, COUNT(ids), 60);
}

static json_t *make_toolboxes(const json_t *connections)
{
    json_t *toolboxes = json_array();
    size_t i;
    size_t k;

    for (i = 0; i < COUNT(all_toolboxes); i++) {
        json_t *entries = json_array();

        for (k = 0; k < COUNT(all_entries); k++) {
            const json_t *model =
                json_array_get(connections, below(json_array_size(connections) + 1));
            const char *connector =
                model != NULL && chance(80) ? text_of(model, "connector") : ONE_OF(all_connectors);
            char id[16];

            if (!chance(30)) {
                continue;
            }
            (void)snprintf(id, sizeof(id), "ent_%d%d", (int)i, (int)k);
            json_array_append_new(entries,
                                  json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:{},s:o,s:b}", "entry", id,
                                            "name", all_entries[k], "connector", connector,
                                            "connector_slug", connector + 4, "operation",
                                            ONE_OF(all_operations), "connections", make_choices(),
                                            "defaults", "frozen", chance(25) ? json_pack("{s:i}", "kept", 1) : json_object(),
                                            "always_visible", chance(10)));
        }
        if (json_array_size(entries) == 0) {
            json_decref(entries);
            continue;
        }
        json_array_append_new(
            toolboxes,
            json_pack("{s:s,s:s,s:o,s:o,s:o}", "id", all_toolboxes[i], "name", all_toolboxes[i],
                      "roles", some_of(all_roles, COUNT(all_roles), 30), "members",
                      some_of(all_members, COUNT(all_members), 30), "entries", entries));
    }
    return toolboxes;
}

/* A name as a rule holds it: what somebody has now, what was called so before an account or an
 * entry was renamed, or nothing. What it was pinned to, likewise. */
static json_t *make_tool_item(const slow_t *slow, int is_block)
{
    static const char *const strangers[] = {"old-acc__get", "box__gone", "acc__nothing",
                                            "nowhere__get"};
    const named_t *named = slow->name_count > 0 ? &slow->names[below(slow->name_count)] : NULL;
    const char *name = named != NULL && chance(75) ? named->name : ONE_OF(strangers);
    json_t *pins = json_array();
    size_t i;

    for (i = 0; i < slow->name_count && chance(80); i++) {
        const named_t *other = &slow->names[i];

        if (other->operation != NULL && strcmp(other->name, name) == 0) {
            json_array_append_new(pins, json_pack("{s:s,s:s}", "connector",
                                                  text_of(other->connector, "id"), "operation",
                                                  text_of(other->operation, "id")));
        }
    }
    if (chance(is_block ? 25 : 60)) {
        json_array_append_new(pins, json_pack("{s:s,s:s}", "connector", ONE_OF(all_connectors),
                                              "operation", ONE_OF(all_operations)));
    }
    return json_pack("{s:s,s:o}", "tool", name, "pins", pins);
}

static json_t *make_item(const slow_t *slow, int is_block)
{
    /* most rules speak of what somebody has */
    const named_t *named = slow->name_count > 0 ? &slow->names[below(slow->name_count)] : NULL;
    const char *connector = named != NULL && named->connector != NULL && chance(70)
                                ? text_of(named->connector, "id")
                                : ONE_OF(all_connectors);

    switch (below(4)) {
    case 0:
        return json_pack("{s:s,s:s}", "connector", connector, "slug", "label");
    case 1:
        return make_tool_item(slow, is_block);
    default:
        return json_pack("{s:s,s:s}", "connector", connector, "operation", ONE_OF(all_operations));
    }
}

/* Breaks a rule in one of the ways that a reader has to refuse. */
static void break_rule(json_t *rule)
{
    json_object_set_new(rule, "unreadable", json_true());
    switch (below(4)) {
    case 0:
        json_object_set_new(rule, "effect", json_string("deny"));
        return;
    case 1:
        json_object_del(rule, "items");
        return;
    case 2:
        json_array_append_new(json_object_get(rule, "items"),
                              json_pack("{s:s,s:s}", "connector", "con_1", "class", "read"));
        return;
    default:
        json_array_append_new(json_object_get(rule, "items"),
                              json_pack("{s:s}", "tool", "acc__get"));
        return;
    }
}

static json_t *make_rule(const slow_t *slow, size_t number)
{
    int is_block = chance(60);
    size_t count = chance(15) ? 0 : 1 + below(4);
    json_t *items = json_array();
    json_t *rule;
    char id[16];
    size_t i;

    for (i = 0; i < count; i++) {
        json_array_append_new(items, make_item(slow, is_block));
    }
    (void)snprintf(id, sizeof(id), "rul_%d",
                   (int)(number * 7 % 10)); /* not in the order of their making */
    rule = json_pack("{s:s,s:s,s:o}", "id", id, "effect", is_block ? "block" : "allow", "items",
                     items);
    if (chance(22)) {
        json_object_set_new(rule, "target", json_pack("{s:s}", "member", ONE_OF(all_members)));
    } else {
        json_object_set_new(rule, "target", json_pack("{s:s}", "role", ONE_OF(all_roles)));
    }
    if (chance(3)) {
        break_rule(rule);
    }
    return rule;
}

static json_t *make_policy(slow_t *slow)
{
    json_t *policy = json_object();
    json_t *connectors = json_array();
    json_t *restrictions = json_array();
    size_t rules = below(9);
    size_t i;

    for (i = 0; i < COUNT(all_connectors); i++) {
        if (chance(85)) {
            json_array_append_new(connectors, make_connector(all_connectors[i]));
        }
    }
    json_object_set_new(policy, "connectors", connectors);
    json_object_set_new(policy, "connections", make_connections());
    json_object_set_new(policy, "toolboxes",
                        make_toolboxes(json_object_get(policy, "connections")));
    slow_names(slow, policy);
    for (i = 0; i < rules; i++) {
        json_array_append_new(restrictions, make_rule(slow, i));
    }
    json_object_set_new(policy, "restrictions", restrictions);
    if (chance(1)) {
        json_object_set_new(policy, "lost_target", json_true());
    }
    return policy;
}

#endif
