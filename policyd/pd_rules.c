/* Compiling and applying of restrictions: see pd_rules.h. Blocks are consulted last and can only
 * take away, so that no order of rules, layers or items lets an allow win over them. */
#include "pd_rules.h"

#include <stdlib.h>
#include <string.h>

#include <apr_atomic.h>
#include <apr_strings.h>

/* --- one rule ---------------------------------------------------------------- */

/* A text that can be an id or a name: not empty, and what C sees of it is all of it. */
static const char *text_in(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);

    return text != NULL && text[0] != '\0' && strlen(text) == json_string_length(value) ? text
                                                                                        : NULL;
}

/* 1 if the object's members are `first` and `second` (NULL: there is none), and no other but
 * `slug`, which is a label for readers. What is not known might narrow the item, so it is no
 * item. */
static int has_members(const json_t *object, const char *first, const char *second)
{
    size_t count = 1 + (size_t)(second != NULL);

    if (!json_is_object(object) || json_object_get(object, first) == NULL ||
        (second != NULL && json_object_get(object, second) == NULL)) {
        return 0;
    }
    if (json_object_get(object, "slug") != NULL) {
        count++;
        if (text_in(object, "slug") == NULL) {
            return 0;
        }
    }
    return json_object_size(object) == count;
}

static pd_rule_part_t *part_of(pd_rule_t *rule, const char *connector_id)
{
    pd_rule_part_t *part = apr_hash_get(rule->parts, connector_id, APR_HASH_KEY_STRING);

    if (part == NULL) {
        part = apr_pcalloc(rule->pool, sizeof(*part));
        part->operations = apr_array_make(rule->pool, 4, sizeof(const char *));
        apr_hash_set(rule->parts, apr_pstrdup(rule->pool, connector_id), APR_HASH_KEY_STRING, part);
    }
    return part;
}

static pd_status_t add_operation(pd_rule_t *rule, const json_t *item)
{
    const char *connector_id = text_in(item, "connector");
    const char *operation_id = text_in(item, "operation");

    if (!has_members(item, "connector", "operation") || connector_id == NULL ||
        operation_id == NULL) {
        return PD_E_INVALID;
    }
    APR_ARRAY_PUSH(part_of(rule, connector_id)->operations, const char *) =
        apr_pstrdup(rule->pool, operation_id);
    return PD_OK;
}

static pd_status_t add_connector(pd_rule_t *rule, const json_t *item)
{
    const char *connector_id = text_in(item, "connector");

    if (!has_members(item, "connector", NULL) || connector_id == NULL) {
        return PD_E_INVALID;
    }
    part_of(rule, connector_id)->is_whole = 1;
    return PD_OK;
}

/* A name stands for what it was pinned to, and in a block for itself too. In an allow it is only
 * a label. */
static pd_status_t add_tool(pd_rule_t *rule, const json_t *item)
{
    const char *name = text_in(item, "tool");
    const json_t *pins = json_object_get(item, "pins");
    const json_t *pin;
    pd_status_t status = PD_OK;
    size_t i;

    if (!has_members(item, "tool", "pins") || name == NULL || !json_is_array(pins) ||
        json_array_size(pins) > PD_MAX_ITEMS) {
        return PD_E_INVALID;
    }
    json_array_foreach(pins, i, pin)
    {
        status = add_operation(rule, pin);
        if (status != PD_OK) {
            return status;
        }
    }
    if (rule->effect == PD_EFFECT_BLOCK) {
        name = apr_pstrdup(rule->pool, name);
        apr_hash_set(rule->names, name, APR_HASH_KEY_STRING, name);
    }
    return PD_OK;
}

static pd_status_t add_item(pd_rule_t *rule, const json_t *item)
{
    if (json_object_get(item, "tool") != NULL) {
        return add_tool(rule, item);
    }
    return json_object_get(item, "operation") != NULL ? add_operation(rule, item)
                                                      : add_connector(rule, item);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

apr_uint32_t pd_rule_hash(const char *id)
{
    apr_uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *id != '\0'; id++) {
        hash = (hash ^ (unsigned char)*id) * 16777619u;
    }
    return hash;
}

/* Sorts and drops repetitions. */
static void settle(apr_array_header_t *texts)
{
    int kept = 0;
    int i;

    qsort(texts->elts, (size_t)texts->nelts, sizeof(const char *), by_text);
    for (i = 0; i < texts->nelts; i++) {
        const char *text = APR_ARRAY_IDX(texts, i, const char *);

        if (kept == 0 || strcmp(APR_ARRAY_IDX(texts, kept - 1, const char *), text) != 0) {
            APR_ARRAY_IDX(texts, kept++, const char *) = text;
        }
    }
    texts->nelts = kept;
}

static pd_status_t read_head(pd_rule_t *rule, const json_t *doc)
{
    static const struct {
        const char *text;
        pd_effect_t effect;
    } effects[] = {{"allow", PD_EFFECT_ALLOW}, {"block", PD_EFFECT_BLOCK}};
    const char *effect = text_in(doc, "effect");
    const json_t *target = json_object_get(doc, "target");
    const char *role = text_in(target, "role");
    const char *member = text_in(target, "member");
    size_t i;

    for (i = 0; effect != NULL && i < sizeof(effects) / sizeof(effects[0]); i++) {
        if (strcmp(effects[i].text, effect) == 0) {
            rule->effect = effects[i].effect;
        }
    }
    if (rule->effect == 0 || json_object_size(target) != 1 || (role == NULL) == (member == NULL)) {
        return PD_E_INVALID;
    }
    rule->role = role != NULL ? apr_pstrdup(rule->pool, role) : NULL;
    rule->member = member != NULL ? apr_pstrdup(rule->pool, member) : NULL;
    return PD_OK;
}

static pd_status_t read_items(pd_rule_t *rule, const json_t *items)
{
    apr_hash_index_t *at;
    const json_t *item;
    size_t i;

    if (!json_is_array(items) || json_array_size(items) > PD_MAX_ITEMS) {
        return PD_E_INVALID;
    }
    json_array_foreach(items, i, item)
    {
        pd_status_t status = add_item(rule, item);

        if (status != PD_OK) {
            return status;
        }
    }
    for (at = apr_hash_first(rule->pool, rule->parts); at != NULL; at = apr_hash_next(at)) {
        const pd_rule_part_t *part = apr_hash_this_val(at);

        settle(part->operations);
    }
    return PD_OK;
}

pd_status_t pd_rule_make(const char *id, const json_t *doc, pd_rule_t **ret)
{
    apr_pool_t *pool;
    pd_rule_t *rule;
    pd_status_t status;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    rule = apr_pcalloc(pool, sizeof(*rule));
    rule->pool = pool;
    rule->refs = 1;
    rule->id = apr_pstrdup(pool, id);
    rule->name = apr_pstrdup(pool, text_in(doc, "name")); /* NULL stays NULL */
    rule->parts = apr_hash_make(pool);
    rule->names = apr_hash_make(pool);
    status = read_head(rule, doc);
    if (status == PD_OK) {
        status = read_items(rule, json_object_get(doc, "items"));
    }
    if (status != PD_OK) {
        apr_pool_destroy(pool);
        return status;
    }
    *ret = rule;
    return PD_OK;
}

void pd_rule_retain(pd_rule_t *rule)
{
    (void)apr_atomic_inc32(&rule->refs); /* the count before is nobody's business */
}

void pd_rule_release(pd_rule_t **rule)
{
    pd_rule_t *gone = *rule;

    *rule = NULL;
    if (gone != NULL && apr_atomic_dec32(&gone->refs) == 0) {
        apr_pool_destroy(gone->pool);
    }
}

/* --- what governs ---------------------------------------------------------------- */

static void add_layer(pd_rules_t *rules, const pd_layer_t *layer)
{
    int i;

    for (i = 0; i < rules->layers->nelts; i++) {
        if (APR_ARRAY_IDX(rules->layers, i, const pd_layer_t *) == layer) {
            return;
        }
    }
    APR_ARRAY_PUSH(rules->layers, const pd_layer_t *) = layer;
    rules->has_allow |= layer->has_allow;
    rules->has_names |= apr_hash_count(layer->by_name) > 0;
}

/* One unreadable layer makes all of it unreadable: what it would have blocked is not known. */
static pd_governed_t governed_by(const pd_rules_t *rules, pd_governed_t by)
{
    int i;

    for (i = 0; i < rules->layers->nelts; i++) {
        if (!APR_ARRAY_IDX(rules->layers, i, const pd_layer_t *)->is_readable) {
            return PD_GOVERNED_UNREADABLE;
        }
    }
    return rules->layers->nelts > 0 ? by : PD_GOVERNED_FREE;
}

void pd_rules_choose(apr_hash_t *by_role, apr_hash_t *by_member, const char *member_id,
                     const char *const *role_names, apr_pool_t *pool, pd_rules_t *ret)
{
    const pd_layer_t *own = NULL;

    memset(ret, 0, sizeof(*ret));
    ret->layers = apr_array_make(pool, 4, sizeof(const pd_layer_t *));
    if (member_id == NULL) {
        ret->governed = governed_by(ret, PD_GOVERNED_FREE);
        return;
    }
    own = apr_hash_get(by_member, member_id, APR_HASH_KEY_STRING);
    if (own != NULL) {
        add_layer(ret, own);
        ret->governed = governed_by(ret, PD_GOVERNED_BY_USER);
        return;
    }
    for (; role_names != NULL && *role_names != NULL; role_names++) {
        const pd_layer_t *layer = apr_hash_get(by_role, *role_names, APR_HASH_KEY_STRING);

        if (layer != NULL) {
            add_layer(ret, layer);
        }
    }
    ret->governed = governed_by(ret, PD_GOVERNED_BY_ROLES);
}

/* --- what they say of one connector ----------------------------------------------- */

const char *pd_verdict_text(pd_verdict_t verdict)
{
    static const char *const texts[] = {"unreadable", "allowed", "not_allowed", "blocked"};

    return texts[(size_t)verdict < sizeof(texts) / sizeof(texts[0]) ? (size_t)verdict : 0];
}

const char *pd_governed_text(pd_governed_t governed)
{
    static const char *const texts[] = {"unreadable", "none", "roles", "user"};

    return texts[(size_t)governed < sizeof(texts) / sizeof(texts[0]) ? (size_t)governed : 0];
}

/* The one place that allows. */
static pd_verdict_t by_allowlist(int is_engaged, int is_named)
{
    return !is_engaged || is_named ? PD_VERDICT_ALLOWED : PD_VERDICT_NOT_ALLOWED;
}

static int by_part(const void *a, const void *b)
{
    return strcmp(((const pd_bearing_part_t *)a)->rule->id,
                  ((const pd_bearing_part_t *)b)->rule->id);
}

/* All parts that name the connector. A member has a layer or a few, so mostly one of them does
 * and lends its own. */
static const apr_array_header_t *gather(const pd_rules_t *rules, const char *connector_id,
                                        apr_pool_t *pool)
{
    static const apr_array_header_t nothing = {.elt_size = (int)sizeof(pd_bearing_part_t)};
    const apr_array_header_t *first = NULL;
    apr_array_header_t *all = NULL;
    apr_uint32_t hash = rules->layers->nelts > 0 ? pd_rule_hash(connector_id) : 0;
    int i;

    for (i = 0; i < rules->layers->nelts; i++) {
        const apr_array_header_t *parts =
            pd_layer_parts(APR_ARRAY_IDX(rules->layers, i, const pd_layer_t *), connector_id, hash);

        if (parts != NULL && first == NULL) {
            first = parts;
        } else if (parts != NULL) {
            if (all == NULL) {
                all = apr_array_copy(pool, first);
            }
            apr_array_cat(all, parts);
        }
    }
    if (all != NULL) {
        qsort(all->elts, (size_t)all->nelts, sizeof(pd_bearing_part_t), by_part);
        return all;
    }
    return first != NULL ? first : &nothing;
}

/* A block only takes away, so what an engaged allowlist does not name stays out whatever else the
 * rules say. */
static pd_bears_t bears(const pd_bearing_t *bearing, int is_whole)
{
    if (bearing->is_uniform && bearing->uniform != PD_VERDICT_ALLOWED) {
        return PD_BEARS_NONE;
    }
    return bearing->rules->has_allow && !is_whole ? PD_BEARS_LISTED : PD_BEARS_ANY;
}

void pd_rules_bear(const pd_rules_t *rules, const char *connector_id, apr_pool_t *pool,
                   pd_bearing_t *ret)
{
    int whole[PD_EFFECT_BLOCK + 1] = {0, 0, 0};
    int single[PD_EFFECT_BLOCK + 1] = {0, 0, 0};
    int i;

    memset(ret, 0, sizeof(*ret));
    ret->rules = rules;
    ret->connector_id = connector_id;
    ret->parts = gather(rules, connector_id, pool);
    for (i = 0; i < ret->parts->nelts; i++) {
        const pd_bearing_part_t *at = &APR_ARRAY_IDX(ret->parts, i, pd_bearing_part_t);

        whole[at->effect] |= at->is_whole;
        single[at->effect] |= at->count > 0;
    }
    if (rules->governed == PD_GOVERNED_UNREADABLE) {
        ret->is_uniform = 1; /* and the verdict stays what zero is */
    } else if (whole[PD_EFFECT_BLOCK]) {
        ret->is_uniform = 1;
        ret->uniform = PD_VERDICT_BLOCKED;
    } else if (!single[PD_EFFECT_BLOCK] &&
               (!rules->has_allow || whole[PD_EFFECT_ALLOW] || !single[PD_EFFECT_ALLOW])) {
        ret->is_uniform = 1;
        ret->uniform = by_allowlist(rules->has_allow, whole[PD_EFFECT_ALLOW]);
    }
    ret->bears = bears(ret, whole[PD_EFFECT_ALLOW]);
}

/* --- the verdict -------------------------------------------------------------------- */

#define FEW 16 /* items that are looked through one by one */

/* What is asked about, under which name it does not matter here. */
typedef struct asked {
    const char *operation_id; /* NULL: the connector by itself */
    apr_uint32_t hash;
} asked_t;

/* Of a few items the hashes are compared: they stand together, the texts apart. */
static int names_operation(const pd_bearing_part_t *at, const asked_t *asked)
{
    int i;

    if (asked->operation_id == NULL || at->count == 0) {
        return 0;
    }
    if (at->count > FEW) {
        return bsearch(&asked->operation_id, at->operations, (size_t)at->count,
                       sizeof(const char *), by_text) != NULL;
    }
    for (i = 0; i < at->count; i++) {
        if (at->hashes[i] == asked->hash && strcmp(at->operations[i], asked->operation_id) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The first rule of this effect whose part names the connector (item CONNECTOR) or the operation
 * (OPERATION), or NULL. */
static const pd_rule_t *find_part(const pd_bearing_t *bearing, pd_effect_t effect, pd_item_t item,
                                  const asked_t *asked)
{
    int i;

    for (i = 0; i < bearing->parts->nelts; i++) {
        const pd_bearing_part_t *at = &APR_ARRAY_IDX(bearing->parts, i, pd_bearing_part_t);

        if (at->effect == effect &&
            (item == PD_ITEM_CONNECTOR ? at->is_whole : names_operation(at, asked))) {
            return at->rule;
        }
    }
    return NULL;
}

/* The first rule that blocks the name, or NULL. */
static const pd_rule_t *find_name(const pd_rules_t *rules, const char *name)
{
    const pd_rule_t *first = NULL;
    int i;

    if (name == NULL || !rules->has_names) {
        return NULL;
    }
    for (i = 0; i < rules->layers->nelts; i++) {
        const pd_rule_t *rule =
            pd_layer_name(APR_ARRAY_IDX(rules->layers, i, const pd_layer_t *), name);

        if (rule != NULL && (first == NULL || strcmp(rule->id, first->id) < 0)) {
            first = rule;
        }
    }
    return first;
}

/* The allow that names it: the first by id, whichever way it does. */
static pd_decided_t find_allow(const pd_bearing_t *bearing, const asked_t *asked)
{
    const pd_rule_t *whole = find_part(bearing, PD_EFFECT_ALLOW, PD_ITEM_CONNECTOR, NULL);
    const pd_rule_t *single = find_part(bearing, PD_EFFECT_ALLOW, PD_ITEM_OPERATION, asked);

    if (whole != NULL && (single == NULL || strcmp(whole->id, single->id) <= 0)) {
        return (pd_decided_t){whole, PD_ITEM_CONNECTOR};
    }
    return (pd_decided_t){single, single != NULL ? PD_ITEM_OPERATION : PD_ITEM_NONE};
}

static pd_decided_t find_block(const pd_bearing_t *bearing, const asked_t *asked, const char *name)
{
    pd_decided_t found = {find_part(bearing, PD_EFFECT_BLOCK, PD_ITEM_CONNECTOR, NULL),
                          PD_ITEM_CONNECTOR};

    if (found.rule == NULL) {
        found = (pd_decided_t){find_part(bearing, PD_EFFECT_BLOCK, PD_ITEM_OPERATION, asked),
                               PD_ITEM_OPERATION};
    }
    if (found.rule == NULL) {
        found = (pd_decided_t){find_name(bearing->rules, name), PD_ITEM_NAME};
    }
    return found;
}

pd_verdict_t pd_rules_judge(const pd_bearing_t *bearing, const char *operation_id, const char *name,
                            pd_decided_t *decided)
{
    pd_verdict_t verdict = PD_VERDICT_UNREADABLE;
    pd_decided_t allow = {NULL, PD_ITEM_NONE};
    asked_t asked = {operation_id, 0};
    pd_decided_t block;

    if (decided != NULL) {
        *decided = allow;
    }
    if (bearing->rules->governed == PD_GOVERNED_UNREADABLE) {
        return verdict;
    }
    if (bearing->is_uniform && decided == NULL) {
        verdict = bearing->uniform;
        return find_name(bearing->rules, name) != NULL ? PD_VERDICT_BLOCKED : verdict;
    }
    asked.hash = operation_id != NULL ? pd_rule_hash(operation_id) : 0;
    if (bearing->rules->has_allow) {
        allow = find_allow(bearing, &asked);
    }
    verdict = by_allowlist(bearing->rules->has_allow, allow.rule != NULL);
    block = find_block(bearing, &asked, name);
    if (block.rule != NULL) {
        verdict = PD_VERDICT_BLOCKED;
        allow = block;
    }
    if (decided != NULL) {
        *decided = allow;
    }
    return verdict;
}
