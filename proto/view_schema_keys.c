/* The keywords of a schema on the way to a place, one row each: what of them stays. */
#include "view_schema_private.h"

#include <string.h>

typedef int take_t(mcp_vschema_node_t *node, const char *key, const json_t *value);

static void *first(const json_t *object)
{
    return json_object_iter(mcp_vschema_iterable(object));
}

static void *next(const json_t *object, void *at)
{
    return json_object_iter_next(mcp_vschema_iterable(object), at);
}

void mcp_vschema_touch(mcp_vschema_node_t *node)
{
    node->touched |= MCP_VSCHEMA_TOUCHED | (node->run->is_choosing ? 0 : MCP_VSCHEMA_LOOSE);
}

static int is_top_choice(const mcp_vschema_node_t *node)
{
    return node->run->is_choosing && node->spot.depth == 0;
}

const char *mcp_vschema_renamed(const mcp_vschema_node_t *node, const char *name)
{
    return is_top_choice(node) && node->run->rename_to != NULL &&
                   strcmp(name, MCP_VSCHEMA_CHOICE) == 0
               ? node->run->rename_to
               : name;
}

static int malformed(mcp_vschema_node_t *node)
{
    return mcp_vschema_fail(node->run, MCP_E_FIELD, "The schema has a malformed keyword.");
}

/* --- values ----------------------------------------------------------------------- */

static void drop_frozen(mcp_vschema_node_t *node, json_t *value, mcp_vschema_spot_t spot)
{
    if (mcp_vschema_drop_frozen(node->run, value, spot)) {
        node->touched |= MCP_VSCHEMA_TOUCHED;
    }
}

/* A value of the top level under the argument's new name. */
static int rename_member(mcp_vschema_node_t *node, json_t *value)
{
    json_t *member = json_object_get(value, MCP_VSCHEMA_CHOICE);

    if (!is_top_choice(node) || node->run->rename_to == NULL || member == NULL) {
        return 0;
    }
    node->touched |= MCP_VSCHEMA_TOUCHED;
    if (mcp_vschema_set(node->run, value, node->run->rename_to, json_incref(member)) != 0) {
        return -1;
    }
    return json_object_del(value, MCP_VSCHEMA_CHOICE);
}

static int clean(mcp_vschema_node_t *node, json_t *value)
{
    drop_frozen(node, value, node->spot);
    return rename_member(node, value);
}

int mcp_vschema_take_copy(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    return mcp_vschema_set(node->run, node->out, key, mcp_vschema_copy(node->run, value));
}

static int take_default(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    json_t *copy = mcp_vschema_copy(node->run, value);

    if (copy == NULL || clean(node, copy) != 0) {
        json_decref(copy);
        return -1;
    }
    return mcp_vschema_set(node->run, node->out, key, copy);
}

static int take_examples(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    json_t *copy = mcp_vschema_copy(node->run, value);
    int status = copy != NULL ? 0 : -1;

    for (size_t i = 0; status == 0 && i < json_array_size(copy); ++i) {
        status = clean(node, json_array_get(copy, i));
    }
    if (status != 0) {
        json_decref(copy);
        return -1;
    }
    return mcp_vschema_set(node->run, node->out, key, copy);
}

/* A whole value with a frozen member in it can't be asked of a caller who lacks the member. */
static int take_const(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    if (mcp_vschema_has_frozen(node->run, value, node->spot)) {
        mcp_vschema_touch(node);
        return 0;
    }
    return take_default(node, key, value);
}

static int take_enum(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); ++i) {
        if (mcp_vschema_spend(node->run, 1) != 0) {
            return -1;
        }
        if (mcp_vschema_has_frozen(node->run, json_array_get(value, i), node->spot)) {
            mcp_vschema_touch(node);
            return 0;
        }
    }
    return take_examples(node, key, value);
}

/* Somebody's own keyword: an order of properties, a discriminator and the like. */
static int take_unknown(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    for (size_t i = 0; i < node->run->frozen_count; ++i) {
        const mcp_vschema_place_t *place = &node->run->frozen[i];

        if ((node->spot.frozen >> i & 1) != 0 &&
            mcp_vschema_mentions(node->run, value, place->tokens[place->count - 1])) {
            node->touched |= MCP_VSCHEMA_TOUCHED;
            return node->run->status == MCP_OK ? 0 : -1;
        }
    }
    return mcp_vschema_take_copy(node, key, value);
}

static int take_nothing(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    (void)node;
    (void)key;
    (void)value;
    return 0;
}

/* Belongs to the document, not to a part that is copied into another place. */
static int take_of_root(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    return node->schema == node->run->root && node->run->chain_count == 0
               ? mcp_vschema_take_copy(node, key, value)
               : 0;
}

/* --- properties --------------------------------------------------------------------- */

/* Frozen places are in it, so the merge makes it an object whatever the caller sends. */
static int narrow(mcp_vschema_node_t *node, json_t *member)
{
    const json_t *type = json_object_get(member, "type");
    int is_object = type == NULL;

    for (size_t i = 0; i < json_array_size(type) && !is_object; ++i) {
        const char *one = json_string_value(json_array_get(type, i));

        is_object = one != NULL && strcmp(one, "object") == 0;
    }
    if (!json_is_object(member) || !is_object) {
        return 0;
    }
    node->touched |= MCP_VSCHEMA_TOUCHED;
    return mcp_vschema_set(node->run, member, "type", json_string("object"));
}

json_t *mcp_vschema_strip_member(mcp_vschema_node_t *node, const json_t *schema,
                                 mcp_vschema_spot_t below)
{
    json_t *member = mcp_vschema_strip(node->run, schema, below, &node->touched);

    if (member != NULL && below.frozen != 0 && narrow(node, member) != 0) {
        json_decref(member);
        return NULL;
    }
    return member;
}

/* The default of the place itself, without what is frozen in it. */
static int show_default(mcp_vschema_node_t *node, const char *name, mcp_vschema_spot_t below,
                        json_t *member)
{
    const mcp_vschema_run_t *run = node->run;
    json_t *copy;

    for (size_t i = 0; i < run->default_count && json_is_object(member); ++i) {
        const mcp_vschema_place_t *place = &run->defaults[i];

        if ((node->spot.defaults >> i & 1) == 0 || place->count != node->spot.depth + 1 ||
            strcmp(place->tokens[node->spot.depth], name) != 0) {
            continue;
        }
        copy = mcp_vschema_copy(node->run, place->value);
        if (copy == NULL) {
            return -1;
        }
        drop_frozen(node, copy, below);
        mcp_vschema_touch(node);
        if (mcp_vschema_set(node->run, member, "default", copy) != 0) {
            return -1;
        }
    }
    return 0;
}

static int take_properties(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    json_t *properties = json_object();
    int status = mcp_vschema_set(node->run, node->out, key, properties);

    for (void *at = first(value); status == 0 && at != NULL; at = next(value, at)) {
        const char *name = json_object_iter_key(at);
        const char *renamed = mcp_vschema_renamed(node, name);
        mcp_vschema_spot_t below;
        unsigned what = mcp_vschema_member(node->run, node->spot, name, &below);
        json_t *member;

        if ((what & MCP_VSCHEMA_IS_FROZEN) != 0) {
            mcp_vschema_touch(node);
            continue;
        }
        if (renamed != name) {
            node->touched |= MCP_VSCHEMA_TOUCHED;
        }
        member = mcp_vschema_strip_member(node, json_object_iter_value(at), below);
        if (member == NULL || ((what & MCP_VSCHEMA_IS_DEFAULT) != 0 &&
                               show_default(node, name, below, member) != 0)) {
            json_decref(member);
            return -1;
        }
        status = mcp_vschema_set(node->run, properties, renamed, member);
    }
    return status;
}

/* Counts change by the members that the merge adds. */
static int shift(mcp_vschema_node_t *node, const char *key, const json_t *value, size_t less,
                 size_t more)
{
    double count = json_number_value(value);

    if (!json_is_number(value) || count < 0) {
        return malformed(node);
    }
    if ((less == 0 && more == 0) || count > 1e9) {
        return mcp_vschema_take_copy(node, key, value);
    }
    mcp_vschema_touch(node);
    count = count + (double)more - (double)less;
    if (count <= 0 && strcmp(key, "minProperties") == 0) {
        return 0;
    }
    return mcp_vschema_set(node->run, node->out, key,
                           json_integer(count <= 0 ? 0 : (json_int_t)count));
}

static int take_least(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    const char *names[MCP_VSCHEMA_HEADS];
    size_t less = mcp_vschema_heads(node->run, node->spot, ~0u, names, MCP_VSCHEMA_HEADS);

    return shift(node, key, value, less, is_top_choice(node) && node->run->is_required ? 1 : 0);
}

static int take_most(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    const char *names[MCP_VSCHEMA_HEADS];
    size_t less =
        mcp_vschema_heads(node->run, node->spot, MCP_VSCHEMA_IS_FROZEN, names, MCP_VSCHEMA_HEADS);

    return shift(node, key, value, less, is_top_choice(node) ? 1 : 0);
}

/* Names of the top level may have been given away, or have come in. */
static int take_names(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    const char *also = node->run->rename_to != NULL ? node->run->rename_to : MCP_VSCHEMA_CHOICE;

    if (!is_top_choice(node)) {
        return mcp_vschema_take_allowed(node, key, value);
    }
    node->touched |= MCP_VSCHEMA_TOUCHED;
    return mcp_vschema_set(node->run, node->out, key,
                           json_pack("{s:[{s:[s,s]},o]}", "anyOf", "enum", MCP_VSCHEMA_CHOICE, also,
                                     mcp_vschema_copy(node->run, value)));
}

/* --- schemas for the same value ----------------------------------------------------- */

static json_t *strip_list(mcp_vschema_node_t *node, const json_t *value, unsigned *touched)
{
    json_t *list = json_array();

    if (!json_is_array(value)) {
        json_decref(list);
        (void)malformed(node);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(value); ++i) {
        if (mcp_vschema_append(
                node->run, list,
                mcp_vschema_strip(node->run, json_array_get(value, i), node->spot, touched)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    node->touched |= *touched;
    return list;
}

static int take_list(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    unsigned touched = 0;

    return mcp_vschema_set(node->run, node->out, key, strip_list(node, value, &touched));
}

/* One of the list must hold, beside whatever anyOf there is. */
static int choose(mcp_vschema_node_t *node, json_t *list)
{
    json_t *other;

    if (json_object_get(node->schema, "anyOf") == NULL &&
        json_object_get(node->out, "anyOf") == NULL) {
        return mcp_vschema_set(node->run, node->out, "anyOf", list);
    }
    other = json_object();
    if (mcp_vschema_set(node->run, other, "anyOf", list) != 0) {
        json_decref(other);
        return -1;
    }
    return mcp_vschema_append(node->run, node->also, other);
}

/* Without the place, several alternatives may look alike; the original tells them apart. */
static int take_one_of(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    unsigned touched = 0;
    json_t *list = strip_list(node, value, &touched);

    return list == NULL                         ? -1
           : (touched & MCP_VSCHEMA_LOOSE) != 0 ? choose(node, list)
                                                : mcp_vschema_set(node->run, node->out, key, list);
}

/* Looser inside is stricter outside. */
static int take_not(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    unsigned touched = 0;
    json_t *schema = mcp_vschema_strip(node->run, value, node->spot, &touched);

    node->touched |= touched;
    if (schema != NULL && (touched & MCP_VSCHEMA_LOOSE) != 0) {
        json_decref(schema);
        return 0;
    }
    return mcp_vschema_set(node->run, node->out, key, schema);
}

/* A condition that lost a place may come out otherwise than it will after the merge: then either
 * branch will do. */
static int branch(mcp_vschema_node_t *node, json_t *condition)
{
    const json_t *then_schema = json_object_get(node->schema, "then");
    const json_t *else_schema = json_object_get(node->schema, "else");
    json_t *both = json_array();
    json_t *first_branch = json_object();
    json_t *list = json_array();
    int status = mcp_vschema_append(node->run, both, condition);

    if (status == 0 && then_schema != NULL) {
        status = mcp_vschema_append(
            node->run, both, mcp_vschema_strip(node->run, then_schema, node->spot, &node->touched));
    }
    if (status == 0) {
        status = mcp_vschema_set(node->run, first_branch, "allOf", json_incref(both));
    }
    if (status == 0) {
        status = mcp_vschema_append(node->run, list, json_incref(first_branch));
    }
    if (status == 0) {
        status =
            mcp_vschema_append(node->run, list,
                               else_schema != NULL ? mcp_vschema_strip(node->run, else_schema,
                                                                       node->spot, &node->touched)
                                                   : json_object());
    }
    json_decref(both);
    json_decref(first_branch);
    if (status != 0) {
        json_decref(list);
        return -1;
    }
    return choose(node, list);
}

static int take_if(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    static const char *const branches[] = {"then", "else"};
    unsigned touched = 0;
    json_t *condition = mcp_vschema_strip(node->run, value, node->spot, &touched);

    node->touched |= touched;
    if (condition == NULL) {
        return -1;
    }
    if ((touched & MCP_VSCHEMA_LOOSE) != 0) {
        return branch(node, condition);
    }
    if (mcp_vschema_set(node->run, node->out, key, condition) != 0) {
        return -1;
    }
    for (size_t i = 0; i < 2; ++i) {
        const json_t *schema = json_object_get(node->schema, branches[i]);

        if (schema != NULL && mcp_vschema_set(node->run, node->out, branches[i],
                                              mcp_vschema_strip(node->run, schema, node->spot,
                                                                &node->touched)) != 0) {
            return -1;
        }
    }
    return 0;
}

/* --- what depends on a member --------------------------------------------------------- */

/* The names without those that the merge fills in. */
static json_t *strip_names(mcp_vschema_node_t *node, const json_t *value)
{
    json_t *names = json_array();

    for (size_t i = 0; i < json_array_size(value); ++i) {
        const char *name = json_string_value(json_array_get(value, i));
        mcp_vschema_spot_t below;

        if (name == NULL) {
            json_decref(names);
            (void)malformed(node);
            return NULL;
        }
        if (mcp_vschema_member(node->run, node->spot, name, &below) != 0) {
            mcp_vschema_touch(node);
            continue;
        }
        if (mcp_vschema_renamed(node, name) != name) {
            node->touched |= MCP_VSCHEMA_TOUCHED;
        }
        if (mcp_vschema_append(node->run, names, json_string(mcp_vschema_renamed(node, name))) !=
            0) {
            json_decref(names);
            return NULL;
        }
    }
    return names;
}

static int promote(mcp_vschema_node_t *node, json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); ++i) {
        if (mcp_vschema_append(node->run, node->promoted, json_incref(json_array_get(names, i))) !=
            0) {
            json_decref(names);
            return -1;
        }
    }
    json_decref(names);
    return 0;
}

/* What one member's presence asks for. A frozen one is always present. */
static int take_dependency(mcp_vschema_node_t *node, json_t *map, const char *name,
                           const json_t *value)
{
    mcp_vschema_spot_t below;
    unsigned what = mcp_vschema_member(node->run, node->spot, name, &below);
    int is_list = json_is_array(value);
    json_t *rest = is_list ? strip_names(node, value)
                           : mcp_vschema_strip(node->run, value, node->spot, &node->touched);

    if (rest == NULL) {
        return -1;
    }
    if ((what & MCP_VSCHEMA_IS_FROZEN) != 0) {
        mcp_vschema_touch(node);
        return is_list ? promote(node, rest) : mcp_vschema_append(node->run, node->also, rest);
    }
    if (is_list && json_array_size(rest) == 0 && json_array_size(value) > 0) {
        json_decref(rest);
        return 0;
    }
    if (mcp_vschema_renamed(node, name) != name) {
        node->touched |= MCP_VSCHEMA_TOUCHED;
    }
    return mcp_vschema_set(node->run, map, mcp_vschema_renamed(node, name), rest);
}

static int take_dependencies(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    json_t *map;

    if (!json_is_object(value)) {
        return malformed(node);
    }
    map = json_object();
    for (void *at = first(value); at != NULL; at = next(value, at)) {
        if (take_dependency(node, map, json_object_iter_key(at), json_object_iter_value(at)) != 0) {
            json_decref(map);
            return -1;
        }
    }
    if (json_object_size(map) == 0 && json_object_size(value) > 0) {
        json_decref(map);
        return 0;
    }
    return mcp_vschema_set(node->run, node->out, key, map);
}

/* --- the table -------------------------------------------------------------------------- */

static const struct {
    const char *name;
    take_t *take;
} takes[] = {
    {"properties", take_properties},
    {"required", take_nothing}, /* made anew */
    {"minProperties", take_least},
    {"maxProperties", take_most},
    {"propertyNames", take_names},
    {"patternProperties", mcp_vschema_take_patterns},
    {"default", take_default},
    {"examples", take_examples},
    {"const", take_const},
    {"enum", take_enum},
    {"allOf", take_list},
    {"anyOf", take_list},
    {"oneOf", take_one_of},
    {"not", take_not},
    {"if", take_if},
    {"then", take_nothing}, /* with if, or nothing at all */
    {"else", take_nothing},
    {"dependencies", take_dependencies},
    {"dependentRequired", take_dependencies},
    {"dependentSchemas", take_dependencies},
    {"$ref", take_nothing}, /* followed last */
    {"$dynamicRef", take_nothing},
    {"$schema", take_of_root},
    {"$id", take_of_root},
    {"$vocabulary", take_of_root},
    {"$anchor", take_nothing}, /* references get definitions of their own */
    {"$dynamicAnchor", take_nothing},
    {"$defs", take_nothing},
    {"definitions", take_nothing},
};

int mcp_vschema_take(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    if (mcp_vschema_spend(node->run, 1) != 0) {
        return -1;
    }
    if (mcp_vschema_form(node->run, key) == MCP_VSCHEMA_UNKNOWN) {
        return take_unknown(node, key, value);
    }
    for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); ++i) {
        if (strcmp(takes[i].name, key) == 0) {
            return takes[i].take(node, key, value);
        }
    }
    return mcp_vschema_take_copy(node, key, value);
}
