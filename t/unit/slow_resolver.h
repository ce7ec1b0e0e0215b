/* What a member can have, slowly and obviously: it reads the documents of a policy
 * (reach_fixture.h) with loops and strcmp, in the order in which the product's promise is
 * worded, and shares no code with the resolver but the rule of names and the words of its
 * answers. */
#ifndef SLOW_RESOLVER_H
#define SLOW_RESOLVER_H

#include "reach_fixture.h"

#define MAX_NAMES 160
#define MAX_RULES 24

/* A name that somebody has. */
typedef struct named {
    char name[MCP_MAX_TOOL_NAME + 1];
    const json_t *connector;  /* NULL: an entry over one that is not in the catalog */
    const json_t *operation;  /* NULL: or over an operation that is not */
    const json_t *connection; /* of a plain tool */
    const json_t *toolbox;    /* of an entry */
    const json_t *entry;
} named_t;

typedef struct slow {
    const json_t *policy;
    const char *member;
    const char *const *roles;
    named_t names[MAX_NAMES];
    size_t name_count;
    const json_t *rules[MAX_RULES]; /* that govern the subject */
    size_t rule_count;
    int is_unreadable;
} slow_t;

typedef struct slow_answer {
    pd_reach_t reach;
    const named_t *of;
    const json_t *connections[MAX_NAMES];
    size_t connection_count;
} slow_answer_t;

static int is_text(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL && text != NULL && strcmp(value, text) == 0;
}

static int is_in(const json_t *array, const char *text)
{
    const json_t *element;
    size_t i;

    json_array_foreach(array, i, element)
    {
        if (strcmp(json_string_value(element), text) == 0) {
            return 1;
        }
    }
    return 0;
}

static int is_role(const slow_t *slow, const char *role)
{
    size_t i;

    for (i = 0; slow->roles[i] != NULL; i++) {
        if (strcmp(slow->roles[i], role) == 0) {
            return 1;
        }
    }
    return 0;
}

static const json_t *with_id(const json_t *array, const char *id)
{
    const json_t *element;
    size_t i;

    json_array_foreach(array, i, element)
    {
        if (is_text(element, "id", id)) {
            return element;
        }
    }
    return NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* All names of everybody: operations under the labels of connections, and entries under the
 * names of toolboxes. */
static void slow_names(slow_t *slow, const json_t *policy)
{
    const json_t *connectors = json_object_get(policy, "connectors");
    const json_t *outer;
    const json_t *inner;
    size_t i;
    size_t k;

    slow->name_count = 0;
    json_array_foreach(json_object_get(policy, "connections"), i, outer)
    {
        const json_t *connector = with_id(connectors, text_of(outer, "connector"));

        json_array_foreach(json_object_get(connector, "operations"), k, inner)
        {
            named_t *named = &slow->names[slow->name_count++];

            assert_true(slow->name_count < MAX_NAMES);
            *named = (named_t){.connector = connector, .operation = inner, .connection = outer};
            assert_int_equal(mcp_name_tool(text_of(outer, "label"), text_of(connector, "slug"),
                                           text_of(inner, "id"), named->name, sizeof(named->name)),
                             MCP_OK);
        }
    }
    json_array_foreach(json_object_get(policy, "toolboxes"), i, outer)
    {
        json_array_foreach(json_object_get(outer, "entries"), k, inner)
        {
            const json_t *connector = with_id(connectors, text_of(inner, "connector"));
            named_t *named = &slow->names[slow->name_count++];

            assert_true(slow->name_count < MAX_NAMES);
            *named = (named_t){.connector = connector,
                               .operation = with_id(json_object_get(connector, "operations"),
                                                    text_of(inner, "operation")),
                               .toolbox = outer,
                               .entry = inner};
            assert_int_equal(mcp_name_tool(text_of(outer, "name"), text_of(inner, "connector_slug"),
                                           text_of(inner, "name"), named->name,
                                           sizeof(named->name)),
                             MCP_OK);
        }
    }
}

/* Any user rule: user rules alone. Else those of all roles. */
static void slow_govern(slow_t *slow)
{
    const json_t *restrictions = json_object_get(slow->policy, "restrictions");
    const json_t *rule;
    int has_user_rule = 0;
    size_t i;

    slow->rule_count = 0;
    slow->is_unreadable = 0;
    if (slow->member == NULL) {
        return;
    }
    slow->is_unreadable = json_is_true(json_object_get(slow->policy, "lost_target"));
    json_array_foreach(restrictions, i, rule)
    {
        has_user_rule |= is_text(json_object_get(rule, "target"), "member", slow->member);
    }
    json_array_foreach(restrictions, i, rule)
    {
        const json_t *target = json_object_get(rule, "target");
        const char *role = text_of(target, "role");

        if (has_user_rule ? is_text(target, "member", slow->member)
                          : role != NULL && is_role(slow, role)) {
            assert_true(slow->rule_count < MAX_RULES);
            slow->rules[slow->rule_count++] = rule;
            slow->is_unreadable |= json_is_true(json_object_get(rule, "unreadable"));
        }
    }
}

static int slow_is_pinned(const json_t *pin, const char *connector, const char *operation)
{
    return operation != NULL && is_text(pin, "connector", connector) &&
           is_text(pin, "operation", operation);
}

/* How an item matches: not at all, by the connector, by the operation, by the name (blocks
 * alone). */
static pd_item_t slow_match(const json_t *item, int is_block, const char *connector,
                            const char *operation, const char *name)
{
    const json_t *pin;
    size_t i;

    if (json_object_get(item, "tool") != NULL) {
        json_array_foreach(json_object_get(item, "pins"), i, pin)
        {
            if (slow_is_pinned(pin, connector, operation)) {
                return PD_ITEM_OPERATION;
            }
        }
        return is_block && is_text(item, "tool", name) ? PD_ITEM_NAME : PD_ITEM_NONE;
    }
    if (json_object_get(item, "operation") != NULL) {
        return slow_is_pinned(item, connector, operation) ? PD_ITEM_OPERATION : PD_ITEM_NONE;
    }
    return is_text(item, "connector", connector) ? PD_ITEM_CONNECTOR : PD_ITEM_NONE;
}

/* The best match among a rule's items: connector before operation before name. */
static pd_item_t slow_best(const json_t *rule, int is_block, const char *connector,
                           const char *operation, const char *name)
{
    pd_item_t best = PD_ITEM_NONE;
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(rule, "items"), i, item)
    {
        pd_item_t match = slow_match(item, is_block, connector, operation, name);

        if (match != PD_ITEM_NONE && (best == PD_ITEM_NONE || match < best)) {
            best = match;
        }
    }
    return best;
}

/* ret_rule, ret_item: which rule decides, and how. */
static pd_verdict_t slow_verdict(const slow_t *slow, const char *connector, const char *operation,
                                 const char *name, const char **ret_rule, pd_item_t *ret_item)
{
    const char *allow = NULL;
    const char *block = NULL;
    pd_item_t allow_item = PD_ITEM_NONE;
    pd_item_t block_item = PD_ITEM_NONE;
    int has_allow = 0;
    size_t i;

    *ret_rule = NULL;
    *ret_item = PD_ITEM_NONE;
    if (slow->is_unreadable) {
        return PD_VERDICT_UNREADABLE;
    }
    for (i = 0; i < slow->rule_count; i++) {
        int is_block = is_text(slow->rules[i], "effect", "block");
        const char *id = text_of(slow->rules[i], "id");
        pd_item_t match = slow_best(slow->rules[i], is_block, connector, operation, name);

        has_allow |= !is_block;
        if (match == PD_ITEM_NONE) {
            continue;
        }
        if (is_block && (block == NULL || match < block_item ||
                         (match == block_item && strcmp(id, block) < 0))) {
            block = id;
            block_item = match;
        }
        if (!is_block && (allow == NULL || strcmp(id, allow) < 0)) {
            allow = id;
            allow_item = match;
        }
    }
    *ret_rule = block != NULL ? block : allow;
    *ret_item = block != NULL ? block_item : allow_item;
    if (block != NULL) {
        return PD_VERDICT_BLOCKED;
    }
    return has_allow && allow == NULL ? PD_VERDICT_NOT_ALLOWED : PD_VERDICT_ALLOWED;
}

static int slow_is_blocked(const slow_t *slow, const char *connector, const char *operation,
                           const char *name)
{
    const char *rule;
    pd_item_t item;

    return slow_verdict(slow, connector, operation, name, &rule, &item) == PD_VERDICT_BLOCKED;
}

static pd_reach_t slow_judge(const slow_t *slow, const json_t *connector, const json_t *operation,
                             const char *name)
{
    const char *rule;
    pd_item_t item;

    if (is_text(operation, "classification", "forbidden")) {
        return PD_REACH_FORBIDDEN;
    }
    switch (slow_verdict(slow, text_of(connector, "id"), text_of(operation, "id"), name, &rule,
                         &item)) {
    case PD_VERDICT_ALLOWED:
        return PD_REACH_OK;
    case PD_VERDICT_NOT_ALLOWED:
        return PD_REACH_NOT_ALLOWED;
    case PD_VERDICT_BLOCKED:
        return PD_REACH_BLOCKED;
    case PD_VERDICT_UNREADABLE:
        break;
    }
    return PD_REACH_UNREADABLE;
}

static int slow_has_toolbox(const slow_t *slow, const json_t *toolbox)
{
    const json_t *roles = json_object_get(toolbox, "roles");
    size_t i;

    if (slow->member == NULL) {
        return 0;
    }
    if (is_in(json_object_get(toolbox, "members"), slow->member)) {
        return 1;
    }
    for (i = 0; slow->roles[i] != NULL; i++) {
        if (is_in(roles, slow->roles[i])) {
            return 1;
        }
    }
    return 0;
}

/* 1 when the subject may use the connection for the entry. */
static int slow_serves(const slow_t *slow, const json_t *connection, const json_t *entry)
{
    const json_t *chosen = json_object_get(entry, "connections");

    if (!is_text(connection, "connector", text_of(entry, "connector"))) {
        return 0;
    }
    if (is_in(chosen, "@own")) {
        return is_text(connection, "owner", slow->member);
    }
    return json_object_get(connection, "owner") == NULL && is_in(chosen, text_of(connection, "id"));
}

static int slow_is_mine(const slow_t *slow, const json_t *connection)
{
    return json_object_get(connection, "owner") == NULL ||
           is_text(connection, "owner", slow->member);
}

static pd_reach_t slow_entry(const slow_t *slow, const named_t *named, slow_answer_t *answer)
{
    const json_t *connection;
    size_t i;

    if (!slow_has_toolbox(slow, named->toolbox)) {
        return PD_REACH_NO_TOOLBOX;
    }
    if (named->operation == NULL) {
        return PD_REACH_UNKNOWN;
    }
    json_array_foreach(json_object_get(slow->policy, "connections"), i, connection)
    {
        if (slow_serves(slow, connection, named->entry)) {
            answer->connections[answer->connection_count++] = connection;
        }
    }
    if (answer->connection_count == 0) {
        return PD_REACH_NO_CONNECTION;
    }
    return slow_judge(slow, named->connector, named->operation, named->name);
}

/* What calling the name comes to. */
static void slow_tool(const slow_t *slow, const char *name, slow_answer_t *answer)
{
    const named_t *others = NULL;
    size_t i;

    answer->reach = PD_REACH_UNKNOWN;
    answer->of = NULL;
    answer->connection_count = 0;
    for (i = 0; i < slow->name_count; i++) {
        const named_t *named = &slow->names[i];

        if (strcmp(named->name, name) != 0) {
            continue;
        }
        if (named->entry != NULL) {
            answer->of = named;
            answer->reach = slow_entry(slow, named, answer);
            return;
        }
        if (slow_is_mine(slow, named->connection)) {
            answer->of = named;
            answer->connections[answer->connection_count++] = named->connection;
            answer->reach = json_is_true(json_object_get(named->connection, "toolbox_only"))
                                ? PD_REACH_TOOLBOX_ONLY
                                : slow_judge(slow, named->connector, named->operation, name);
            return;
        }
        if (others == NULL ||
            strcmp(text_of(named->connection, "id"), text_of(others->connection, "id")) < 0) {
            others = named;
        }
    }
    if (others != NULL) {
        answer->of = others;
        answer->reach = PD_REACH_OTHERS;
    }
}

static pd_reach_t slow_connector(const slow_t *slow, const json_t *connector)
{
    const json_t *operations = json_object_get(connector, "operations");
    const json_t *operation;
    pd_reach_t why = PD_REACH_FORBIDDEN;
    const char *first = NULL;
    const char *rule;
    pd_item_t item;
    size_t i;

    if (json_array_size(operations) == 0) {
        switch (slow_verdict(slow, text_of(connector, "id"), NULL, NULL, &rule, &item)) {
        case PD_VERDICT_ALLOWED:
            return PD_REACH_OK;
        case PD_VERDICT_NOT_ALLOWED:
            return PD_REACH_NOT_ALLOWED;
        case PD_VERDICT_BLOCKED:
            return PD_REACH_BLOCKED;
        case PD_VERDICT_UNREADABLE:
            break;
        }
        return PD_REACH_UNREADABLE;
    }
    json_array_foreach(operations, i, operation)
    {
        pd_reach_t reach = slow_judge(slow, connector, operation, NULL);

        if (reach == PD_REACH_OK) {
            return PD_REACH_OK;
        }
        if (reach != PD_REACH_FORBIDDEN &&
            (first == NULL || strcmp(text_of(operation, "id"), first) < 0)) {
            first = text_of(operation, "id");
            why = reach;
        }
    }
    return why;
}

/* The character of one operation over one connection. */
static char slow_verdict_char(const slow_t *slow, const json_t *connection, const json_t *connector,
                              const json_t *operation, int rung)
{
    static const struct {
        const char *name;
        int rung;
    } classes[] = {{"read", 1}, {"write", 2}, {"destructive", 3}, {"forbidden", 4}};
    const char *connector_id = text_of(connector, "id");
    const char *operation_id = text_of(operation, "id");
    int is_had = 0;
    int is_narrowed = 0;
    int is_blocked = is_text(operation, "classification", "forbidden");
    int needed = 4;
    size_t i;

    for (i = 0; i < COUNT(classes); i++) {
        needed = is_text(operation, "classification", classes[i].name) ? classes[i].rung : needed;
    }
    for (i = 0; i < slow->name_count; i++) {
        const named_t *named = &slow->names[i];
        int is_way = named->operation == operation &&
                     (named->entry != NULL ? slow_has_toolbox(slow, named->toolbox) &&
                                                 slow_serves(slow, connection, named->entry)
                                           : named->connection == connection);

        if (!is_way) {
            continue;
        }
        is_blocked |= slow_is_blocked(slow, connector_id, operation_id, named->name);
        if (named->entry != NULL || (slow_is_mine(slow, connection) &&
                                     !json_is_true(json_object_get(connection, "toolbox_only")))) {
            int is_ok = slow_judge(slow, connector, operation, named->name) == PD_REACH_OK;

            if (named->entry != NULL && json_object_size(json_object_get(named->entry, "frozen")) > 0) {
                is_narrowed |= is_ok;
            } else {
                is_had |= is_ok;
            }
        }
    }
    if (!is_had) {
        return is_blocked && !is_narrowed ? 'b' : 'd';
    }
    return rung >= needed ? 'a' : 'd';
}

#endif
