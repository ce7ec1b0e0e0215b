/* A schema without the places that are frozen or have defaults. A schema is stripped together with
 * the spot it applies at: which places are there or below. Keywords that apply to the same value
 * keep the spot, members lead to the next one, and a reference is followed with the spot it stands
 * at: what it leads to replaces it if it says something of a place, and only then. */
#include "view_schema_private.h"

#include <string.h>

/* --- spots -------------------------------------------------------------------------- */

static int is_idle(const mcp_vschema_run_t *run, mcp_vschema_spot_t spot)
{
    return spot.frozen == 0 && spot.defaults == 0 && !(run->is_choosing && spot.depth == 0);
}

/* Places of one kind: bits at the member itself into *here, those below it into the result. */
static uint64_t split_places(const mcp_vschema_place_t *places, uint64_t bits, size_t depth,
                             const char *name, uint64_t *here)
{
    uint64_t below = 0;

    *here = 0;
    for (size_t i = 0; bits >> i != 0; ++i) {
        const mcp_vschema_place_t *place = &places[i];

        if ((bits >> i & 1) != 0 && strcmp(place->tokens[depth], name) == 0) {
            if (place->count == depth + 1) {
                *here |= UINT64_C(1) << i;
            } else {
                below |= UINT64_C(1) << i;
            }
        }
        if (i == 63) {
            break;
        }
    }
    return below;
}

unsigned mcp_vschema_member(const mcp_vschema_run_t *run, mcp_vschema_spot_t spot, const char *name,
                            mcp_vschema_spot_t *below)
{
    uint64_t frozen;
    uint64_t defaults;

    below->frozen = split_places(run->frozen, spot.frozen, spot.depth, name, &frozen);
    below->defaults = split_places(run->defaults, spot.defaults, spot.depth, name, &defaults);
    below->depth = spot.depth + 1;
    return (frozen != 0 ? MCP_VSCHEMA_IS_FROZEN : 0) |
           (defaults != 0 ? MCP_VSCHEMA_IS_DEFAULT : 0) |
           (below->frozen != 0 ? MCP_VSCHEMA_HOLDS_FROZEN : 0) |
           (below->defaults != 0 ? MCP_VSCHEMA_HOLDS_DEFAULT : 0);
}

static size_t add_heads(const mcp_vschema_place_t *places, uint64_t bits,
                        const mcp_vschema_run_t *run, mcp_vschema_spot_t spot, unsigned flags,
                        const char **names, size_t count, size_t room)
{
    for (size_t i = 0; i < MCP_VIEW_SCHEMA_KEYS && bits >> i != 0; ++i) {
        mcp_vschema_spot_t below;
        int is_known = (bits >> i & 1) == 0;

        for (size_t k = 0; k < count && !is_known; ++k) {
            is_known = strcmp(names[k], places[i].tokens[spot.depth]) == 0;
        }
        if (!is_known && count < room &&
            (mcp_vschema_member(run, spot, places[i].tokens[spot.depth], &below) & flags) != 0) {
            names[count++] = places[i].tokens[spot.depth];
        }
    }
    return count;
}

size_t mcp_vschema_heads(const mcp_vschema_run_t *run, mcp_vschema_spot_t spot, unsigned flags,
                         const char **names, size_t room)
{
    size_t count = add_heads(run->frozen, spot.frozen, run, spot, flags, names, 0, room);

    return add_heads(run->defaults, spot.defaults, run, spot, flags, names, count, room);
}

/* --- demands ------------------------------------------------------------------------- */

static int all_demand(mcp_vschema_run_t *run, const json_t *list)
{
    size_t count = json_array_size(list);

    for (size_t i = 0; i < count; ++i) {
        if (!mcp_vschema_demands(run, json_array_get(list, i))) {
            return 0;
        }
    }
    return count > 0;
}

/* Whether keywords other than references turn an empty object away. */
static int demands_itself(mcp_vschema_run_t *run, const json_t *schema)
{
    const json_t *all = json_object_get(schema, "allOf");
    int is_demanding = json_array_size(json_object_get(schema, "required")) > 0 ||
                       json_number_value(json_object_get(schema, "minProperties")) > 0 ||
                       all_demand(run, json_object_get(schema, "anyOf")) ||
                       all_demand(run, json_object_get(schema, "oneOf"));

    for (size_t i = 0; i < json_array_size(all) && !is_demanding; ++i) {
        is_demanding = mcp_vschema_demands(run, json_array_get(all, i));
    }
    return is_demanding;
}

/* The recursion ends with the run's depth or work, which fails the run. */
int mcp_vschema_demands(mcp_vschema_run_t *run, const json_t *schema)
{
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    int is_demanding;

    if (!json_is_object(schema) || mcp_vschema_spend(run, 1) != 0) {
        return 0;
    }
    if (run->depth == MCP_VSCHEMA_DEPTH) {
        (void)mcp_vschema_fail(run, MCP_E_SIZE, "The schema's references lead too deep.");
        return 0;
    }
    ++run->depth;
    is_demanding = !(run->is_old && reference != NULL) && demands_itself(run, schema);
    if (!is_demanding && reference != NULL) {
        is_demanding = mcp_vschema_demands(run, mcp_vschema_resolve(run, reference, NULL, NULL));
    }
    --run->depth;
    return is_demanding;
}

/* --- what is known of a whole node --------------------------------------------------- */

/* 1 if the list of names has the name. */
static int has_name(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); ++i) {
        const char *one = json_string_value(json_array_get(list, i));

        if (one != NULL && strcmp(one, name) == 0) {
            return 1;
        }
    }
    return 0;
}

static int require(mcp_vschema_node_t *node, json_t *required, const char *name)
{
    return has_name(required, name) ? 0
                                    : mcp_vschema_append(node->run, required, json_string(name));
}

/* Members that hold places are there after the merge, whatever the caller sends. He need send them
 * only if they demand something that the merge doesn't fill in. */
static int require_holders(mcp_vschema_node_t *node, json_t *required)
{
    const char *names[MCP_VSCHEMA_HEADS];
    const json_t *properties = json_object_get(node->out, "properties");
    size_t count = mcp_vschema_heads(node->run, node->spot,
                                     MCP_VSCHEMA_HOLDS_FROZEN | MCP_VSCHEMA_HOLDS_DEFAULT, names,
                                     MCP_VSCHEMA_HEADS);

    for (size_t i = 0; i < count; ++i) {
        mcp_vschema_spot_t below;
        unsigned what = mcp_vschema_member(node->run, node->spot, names[i], &below);

        if ((what & (MCP_VSCHEMA_IS_FROZEN | MCP_VSCHEMA_IS_DEFAULT)) == 0 &&
            mcp_vschema_demands(node->run, json_object_get(properties, names[i])) &&
            require(node, required, names[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static int finish_required(mcp_vschema_node_t *node)
{
    const json_t *old = json_object_get(node->schema, "required");
    json_t *required = json_array();
    int status = required != NULL ? 0 : mcp_vschema_fail(node->run, MCP_E_NOMEM, "Out of memory.");

    for (size_t i = 0; status == 0 && i < json_array_size(old); ++i) {
        const char *name = json_string_value(json_array_get(old, i));
        mcp_vschema_spot_t below;

        if (name == NULL) {
            status = mcp_vschema_fail(node->run, MCP_E_FIELD, "The schema has a malformed list.");
        } else if (mcp_vschema_member(node->run, node->spot, name, &below) == 0) {
            status = mcp_vschema_append(node->run, required,
                                        json_string(mcp_vschema_renamed(node, name)));
        }
    }
    if (status == 0) {
        status = require_holders(node, required);
    }
    for (size_t i = 0; status == 0 && i < json_array_size(node->promoted); ++i) {
        status = require(node, required, json_string_value(json_array_get(node->promoted, i)));
    }
    if (status == 0 && !json_equal(required, old) &&
        (old != NULL || json_array_size(required) > 0)) {
        node->touched |= MCP_VSCHEMA_TOUCHED | (node->run->is_choosing ? 0 : MCP_VSCHEMA_LOOSE);
    }
    if (status == 0 &&
        (json_array_size(required) > 0 || (old != NULL && json_array_size(old) == 0))) {
        return mcp_vschema_set(node->run, node->out, "required", required);
    }
    json_decref(required);
    return status;
}

static json_t *properties_of(mcp_vschema_node_t *node)
{
    json_t *properties = json_object_get(node->out, "properties");

    if (properties == NULL) {
        properties = json_object();
        if (mcp_vschema_set(node->run, node->out, "properties", properties) != 0) {
            return NULL;
        }
    }
    return properties;
}

/* Members that no `properties` names are what additionalProperties says: one that holds places gets
 * a property of its own, for the others keep theirs. Where patterns may speak of it, nothing is
 * said. */
static int finish_map(mcp_vschema_node_t *node)
{
    const json_t *others = json_object_get(node->schema, "additionalProperties");
    const json_t *named = json_object_get(node->schema, "properties");
    const char *names[MCP_VSCHEMA_HEADS];
    size_t count = 0;

    if (json_is_object(others) && json_object_get(node->schema, "patternProperties") == NULL) {
        count = mcp_vschema_heads(node->run, node->spot,
                                  MCP_VSCHEMA_HOLDS_FROZEN | MCP_VSCHEMA_HOLDS_DEFAULT, names,
                                  MCP_VSCHEMA_HEADS);
    }
    for (size_t i = 0; i < count; ++i) {
        unsigned before = node->touched;
        mcp_vschema_spot_t below;
        json_t *member;
        json_t *properties;

        if (json_object_get(named, names[i]) != NULL ||
            (mcp_vschema_member(node->run, node->spot, names[i], &below) & MCP_VSCHEMA_IS_FROZEN)) {
            continue;
        }
        node->touched = 0;
        member = mcp_vschema_strip_member(node, others, below);
        if (member == NULL || node->touched == 0) {
            node->touched = before;
            json_decref(member);
            if (member == NULL) {
                return -1;
            }
            continue;
        }
        node->touched |= before;
        properties = properties_of(node);
        if (properties == NULL) {
            json_decref(member);
            return -1;
        }
        if (mcp_vschema_set(node->run, properties, names[i], member) != 0) {
            return -1;
        }
    }
    return 0;
}

/* A part of the top level that forbids unknown arguments learns of the new one. */
static int finish_choice(mcp_vschema_node_t *node)
{
    static const char *const closing[] = {"additionalProperties", "unevaluatedProperties"};
    json_t *properties;

    if (!node->run->is_choosing || node->spot.depth > 0) {
        return 0;
    }
    for (size_t i = 0; i < (node->run->is_old ? 1u : 2u); ++i) {
        const json_t *others = json_object_get(node->schema, closing[i]);

        if (others != NULL && !json_is_true(others)) {
            properties = properties_of(node);
            if (properties == NULL) {
                return -1;
            }
            node->touched |= MCP_VSCHEMA_TOUCHED;
            return mcp_vschema_set(node->run, properties, MCP_VSCHEMA_CHOICE, json_object());
        }
    }
    return 0;
}

static int finish_also(mcp_vschema_node_t *node)
{
    json_t *all = json_object_get(node->out, "allOf");

    if (json_array_size(node->also) == 0) {
        return 0;
    }
    if (all == NULL) {
        return mcp_vschema_set(node->run, node->out, "allOf", json_incref(node->also));
    }
    for (size_t i = 0; i < json_array_size(node->also); ++i) {
        if (mcp_vschema_append(node->run, all, json_incref(json_array_get(node->also, i))) != 0) {
            return -1;
        }
    }
    return 0;
}

/* --- references ----------------------------------------------------------------------- */

/* What a reference leads to, stripped. */
static json_t *strip_target(mcp_vschema_node_t *node, const char *reference, unsigned *touched)
{
    mcp_vschema_run_t *run = node->run;
    mcp_vschema_link_t link = {mcp_vschema_resolve(run, reference, NULL, NULL), node->spot};
    json_t *ret;

    if (link.target == NULL) {
        (void)mcp_vschema_fail(run, MCP_E_FIELD, "The schema has a reference that leads nowhere.");
        return NULL;
    }
    for (size_t i = 0; i < run->chain_count; ++i) {
        const mcp_vschema_link_t *seen = &run->chain[i];

        if (seen->target == link.target && seen->spot.depth == link.spot.depth &&
            seen->spot.frozen == link.spot.frozen && seen->spot.defaults == link.spot.defaults) {
            (void)mcp_vschema_fail(run, MCP_E_FIELD,
                                   "The schema has a reference that leads back to itself.");
            return NULL;
        }
    }
    if (run->chain_count == MCP_VSCHEMA_CHAIN) {
        (void)mcp_vschema_fail(run, MCP_E_SIZE, "The schema's references lead too deep.");
        return NULL;
    }
    run->chain[run->chain_count++] = link;
    ret = mcp_vschema_strip(run, link.target, link.spot, touched);
    --run->chain_count;
    return ret;
}

/* 1 if what a reference leads to may stand beside what is in out already: nothing there looks at
 * neighbours or says the same thing twice. */
static int may_join(const mcp_vschema_node_t *node)
{
    static const char *const texts[] = {"title",    "description", "default",  "$comment",
                                        "examples", "deprecated",  "readOnly", "writeOnly",
                                        "$schema",  "$id"};

    for (void *at = json_object_iter(node->out); at != NULL;
         at = json_object_iter_next(node->out, at)) {
        int is_text = 0;

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !is_text; ++i) {
            is_text = strcmp(json_object_iter_key(at), texts[i]) == 0;
        }
        if (!is_text) {
            return 0;
        }
    }
    return json_array_size(node->also) == 0;
}

static int join(mcp_vschema_node_t *node, json_t *target)
{
    int status = 0;

    if (!json_is_object(target) || !may_join(node)) {
        return mcp_vschema_append(node->run, node->also, target);
    }
    for (void *at = json_object_iter(target); status == 0 && at != NULL;
         at = json_object_iter_next(target, at)) {
        const char *key = json_object_iter_key(at);

        if (json_object_get(node->out, key) == NULL) {
            status =
                mcp_vschema_set(node->run, node->out, key, json_incref(json_object_iter_value(at)));
        }
    }
    json_decref(target);
    return status;
}

static int finish_references(mcp_vschema_node_t *node)
{
    static const char *const keys[] = {"$ref", "$dynamicRef"};

    for (size_t i = 0; i < (node->run->is_old ? 1u : 2u); ++i) {
        const json_t *value = json_object_get(node->schema, keys[i]);
        unsigned touched = 0;
        json_t *target;

        if (value == NULL) {
            continue;
        }
        if (!json_is_string(value)) {
            return mcp_vschema_fail(node->run, MCP_E_FIELD,
                                    "The schema has a malformed reference.");
        }
        target = strip_target(node, json_string_value(value), &touched);
        if (target == NULL) {
            return -1;
        }
        if (touched == 0) {
            json_decref(target);
            if (mcp_vschema_set(node->run, node->out, keys[i],
                                mcp_vschema_copy(node->run, value)) != 0) {
                return -1;
            }
        } else if (join(node, target) != 0) {
            return -1;
        }
        node->touched |= touched;
    }
    return 0;
}

/* --- a schema --------------------------------------------------------------------------- */

static int stands_beside_reference(const char *key)
{
    static const char *const keys[] = {"title", "description", "default", "examples"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        if (strcmp(key, keys[i]) == 0) {
            return 1;
        }
    }
    return key[0] == '$';
}

static int strip_node(mcp_vschema_node_t *node)
{
    int is_reference_alone = node->run->is_old && json_object_get(node->schema, "$ref") != NULL;

    for (void *at = json_object_iter(mcp_vschema_iterable(node->schema)); at != NULL;
         at = json_object_iter_next(mcp_vschema_iterable(node->schema), at)) {
        const char *key = json_object_iter_key(at);

        /* What draft-07 ignores beside a reference must not come to life without it. */
        if (is_reference_alone && !stands_beside_reference(key)) {
            continue;
        }
        if (mcp_vschema_take(node, key, json_object_iter_value(at)) != 0) {
            return -1;
        }
    }
    if (!is_reference_alone &&
        (finish_map(node) != 0 || finish_choice(node) != 0 || finish_required(node) != 0)) {
        return -1;
    }
    return finish_references(node) != 0 ? -1 : finish_also(node);
}

json_t *mcp_vschema_strip(mcp_vschema_run_t *run, const json_t *schema, mcp_vschema_spot_t spot,
                          unsigned *touched)
{
    mcp_vschema_node_t node = {.run = run, .schema = schema, .spot = spot};
    int status = -1;

    if (!json_is_object(schema) || is_idle(run, spot)) {
        return mcp_vschema_copy(run, schema);
    }
    if (mcp_vschema_is_resource(run, schema)) {
        (void)mcp_vschema_fail(run, MCP_E_FIELD,
                               "The schema has a part with an identifier of its own.");
        return NULL;
    }
    if (run->depth == MCP_VSCHEMA_DEPTH) {
        (void)mcp_vschema_fail(run, MCP_E_SIZE, "The schema is nested too deeply.");
        return NULL;
    }
    node.out = json_object();
    node.also = json_array();
    node.promoted = json_array();
    ++run->depth;
    if (node.out == NULL || node.also == NULL || node.promoted == NULL) {
        (void)mcp_vschema_fail(run, MCP_E_NOMEM, "Out of memory.");
    } else {
        status = strip_node(&node);
    }
    --run->depth;
    json_decref(node.also);
    json_decref(node.promoted);
    if (status != 0 || run->status != MCP_OK) {
        json_decref(node.out);
        return NULL;
    }
    *touched |= node.touched;
    return node.out;
}
