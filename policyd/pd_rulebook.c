/* The restrictions of a snapshot, by whom they are for. See pd_snapshot.h.
 *
 * Ids and targets of a rule that can be read lie in the rule's pool, the keys of layers in the layers' pools: that makes copying
 * the tables a matter of references. Only what is known of rules that can't be read lies in the block's own. */
#include "pd_snapshot_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_atomic.h>
#include <apr_strings.h>

#include "pd_log.h"

#define OF_ROLE   "role:"
#define OF_MEMBER "member:"
#define LOST      "" /* target of a rule that nobody can say whom it is for */

/* A rulebook on its way, and the targets whose layers have to be made: target -> array of const char *, ids of its rules. */
typedef struct building {
    pd_rulebook_t *made;
    apr_pool_t *scratch; /* the unit's */
    apr_hash_t *stale;
} building_t;

static pd_status_t rulebook_new(pd_rulebook_t **ret)
{
    apr_pool_t *pool;
    pd_rulebook_t *made;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    made->refs = 1;
    made->rules = apr_hash_make(pool);
    made->targets = apr_hash_make(pool);
    made->by_role = apr_hash_make(pool);
    made->by_member = apr_hash_make(pool);
    *ret = made;
    return PD_OK;
}

static void release_layers(apr_pool_t *pool, apr_hash_t *layers)
{
    apr_hash_index_t *i;

    for (i = apr_hash_first(pool, layers); i != NULL; i = apr_hash_next(i)) {
        pd_layer_t *layer = apr_hash_this_val(i);

        pd_layer_release(&layer);
    }
}

void pd_rulebook_release(pd_rulebook_t **rulebook)
{
    pd_rulebook_t *gone = *rulebook;
    apr_hash_index_t *i;

    *rulebook = NULL;
    if (gone == NULL || apr_atomic_dec32(&gone->refs) != 0) {
        return;
    }
    release_layers(gone->pool, gone->by_role);
    release_layers(gone->pool, gone->by_member);
    for (i = apr_hash_first(gone->pool, gone->rules); i != NULL; i = apr_hash_next(i)) {
        pd_rule_t *rule = apr_hash_this_val(i);

        pd_rule_release(&rule);
    }
    apr_pool_destroy(gone->pool);
}

/* --- rules ---------------------------------------------------------------------- */

/* Whom a stored rule that can't be compiled is for; LOST when not even that can be told. */
static const char *target_of(const json_t *doc, apr_pool_t *pool)
{
    const json_t *target = json_object_get(doc, "target");
    const json_t *role = json_object_get(target, "role");
    const json_t *whose = role != NULL ? role : json_object_get(target, "member");
    const char *text = json_string_value(whose); /* NULL when it is none */

    if (json_object_size(target) != 1 || text == NULL || text[0] == '\0' ||
        strlen(text) != json_string_length(whose)) {
        return LOST;
    }
    return apr_pstrcat(pool, role != NULL ? OF_ROLE : OF_MEMBER, text, NULL);
}

/* The layer of a target has to be made anew. */
static void note_stale(building_t *building, const char *target)
{
    if (target[0] != '\0' &&
        apr_hash_get(building->stale, target, APR_HASH_KEY_STRING) == NULL) {
        apr_hash_set(building->stale, apr_pstrdup(building->scratch, target), APR_HASH_KEY_STRING,
                     apr_array_make(building->scratch, 4, sizeof(const char *)));
    }
}

static void drop_rule(building_t *building, const char *id)
{
    pd_rulebook_t *made = building->made;
    const char *target = apr_hash_get(made->targets, id, APR_HASH_KEY_STRING);
    pd_rule_t *old = apr_hash_get(made->rules, id, APR_HASH_KEY_STRING);

    if (target != NULL) {
        note_stale(building, target);
    }
    apr_hash_set(made->targets, id, APR_HASH_KEY_STRING, NULL);
    apr_hash_set(made->rules, id, APR_HASH_KEY_STRING, NULL);
    if (old != NULL) {
        pd_rule_release(&old);
    }
}

/* A rule that can't be read still governs: whom it is for is denied everything until it is mended. */
static void take_unreadable(building_t *building, const pd_object_t *object, pd_status_t why)
{
    pd_rulebook_t *made = building->made;
    const char *target = target_of(object->doc, made->pool);
    char quoted[128];

    if (target[0] == '\0') {
        pd_log(PD_LOG_ERR, 104,
               "restriction %s can't be read, nor whom it is for: every member is denied everything",
               object->id);
    } else {
        pd_log(PD_LOG_ERR, 103, "restriction %s can't be read (%s): %s is denied everything",
               object->id, pd_status_text(why), pd_log_quote(target, quoted, sizeof(quoted)));
    }
    apr_hash_set(made->targets, apr_pstrdup(made->pool, object->id), APR_HASH_KEY_STRING, target);
    note_stale(building, target);
}

static pd_status_t take_rule(void *baton, const pd_object_t *object)
{
    building_t *building = baton;
    pd_rule_t *rule = NULL;
    const char *target;
    pd_status_t status;

    drop_rule(building, object->id);
    status = pd_rule_make(object->id, object->doc, &rule);
    if (status == PD_E_NOMEM) {
        return status;
    }
    if (status != PD_OK) {
        take_unreadable(building, object, status);
        return PD_OK;
    }
    /* nobody else has seen the rule yet: its pool is still ours to allocate from */
    target = rule->role != NULL ? apr_pstrcat(rule->pool, OF_ROLE, rule->role, NULL)
                                : apr_pstrcat(rule->pool, OF_MEMBER, rule->member, NULL);
    apr_hash_set(building->made->rules, rule->id, APR_HASH_KEY_STRING, rule);
    apr_hash_set(building->made->targets, rule->id, APR_HASH_KEY_STRING, target);
    note_stale(building, target);
    return PD_OK;
}

/* --- layers ------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The layer of these rules; ids is sorted here. */
static pd_status_t layer_of(const building_t *building, apr_array_header_t *ids, pd_layer_t **ret)
{
    apr_array_header_t *rules =
        apr_array_make(building->scratch, ids->nelts, sizeof(pd_rule_t *));
    int is_readable = 1;
    pd_status_t status;
    int i;

    qsort(ids->elts, (size_t)ids->nelts, sizeof(const char *), by_text);
    for (i = 0; i < ids->nelts; i++) {
        pd_rule_t *rule = apr_hash_get(building->made->rules,
                                       APR_ARRAY_IDX(ids, i, const char *), APR_HASH_KEY_STRING);

        if (rule == NULL) {
            is_readable = 0;
        } else {
            APR_ARRAY_PUSH(rules, pd_rule_t *) = rule;
        }
    }
    status = pd_layer_make(rules, is_readable, ret);
    if (status != PD_OK && status != PD_E_NOMEM) { /* more rules than one target may have */
        rules->nelts = 0;
        status = pd_layer_make(rules, 0, ret);
    }
    return status;
}

/* Puts the layer of one target in the place of the one before. */
static pd_status_t relay(building_t *building, const char *target, apr_array_header_t *ids)
{
    int is_role = strncmp(target, OF_ROLE, sizeof(OF_ROLE) - 1) == 0;
    const char *key = target + (is_role ? sizeof(OF_ROLE) : sizeof(OF_MEMBER)) - 1;
    apr_hash_t *layers = is_role ? building->made->by_role : building->made->by_member;
    pd_layer_t *old = apr_hash_get(layers, key, APR_HASH_KEY_STRING);
    pd_layer_t *layer = NULL;

    if (ids->nelts > 0) {
        pd_status_t status = layer_of(building, ids, &layer);

        if (status != PD_OK) {
            return status;
        }
    }
    apr_hash_set(layers, key, APR_HASH_KEY_STRING, NULL);
    if (layer != NULL) {
        apr_hash_set(layers, apr_pstrdup(layer->pool, key), APR_HASH_KEY_STRING, layer);
    }
    if (old != NULL) {
        pd_layer_release(&old);
    }
    return PD_OK;
}

/* Makes the layers that are stale, and says whether a target is lost. */
static pd_status_t relay_all(building_t *building)
{
    pd_rulebook_t *made = building->made;
    pd_status_t status = PD_OK;
    apr_hash_index_t *i;

    made->has_lost_target = 0;
    for (i = apr_hash_first(building->scratch, made->targets); i != NULL; i = apr_hash_next(i)) {
        const char *target = apr_hash_this_val(i);
        apr_array_header_t *ids = apr_hash_get(building->stale, target, APR_HASH_KEY_STRING);

        made->has_lost_target |= target[0] == '\0';
        if (ids != NULL) {
            APR_ARRAY_PUSH(ids, const char *) = apr_hash_this_key(i);
        }
    }
    for (i = apr_hash_first(building->scratch, building->stale); status == PD_OK && i != NULL;
         i = apr_hash_next(i)) {
        status = relay(building, apr_hash_this_key(i), apr_hash_this_val(i));
    }
    return status;
}

/* --- load and follow ------------------------------------------------------------------ */

static pd_status_t begin(pd_tx_t *tx, building_t *building)
{
    building->made = NULL;
    building->scratch = pd_tx_pool(tx);
    building->stale = apr_hash_make(building->scratch);
    return rulebook_new(&building->made);
}

/* Hands the block out, or gives it up. */
static pd_status_t finish(pd_status_t status, building_t *building, pd_rulebook_t **ret)
{
    if (status == PD_OK) {
        status = relay_all(building);
    }
    if (status != PD_OK) {
        pd_rulebook_release(&building->made);
        return status;
    }
    *ret = building->made;
    return PD_OK;
}

pd_status_t pd_rulebook_load(pd_tx_t *tx, pd_rulebook_t **ret)
{
    building_t building;
    pd_status_t status = begin(tx, &building);

    if (status == PD_OK) {
        status = pd_snapshot_take_all(tx, PD_KIND_RESTRICTION, take_rule, &building);
    }
    return finish(status, &building, ret);
}

static void share_layers(const building_t *building, const apr_hash_t *old, apr_hash_t **ret)
{
    apr_hash_index_t *i;

    *ret = apr_hash_copy(building->made->pool, old);
    for (i = apr_hash_first(building->scratch, *ret); i != NULL; i = apr_hash_next(i)) {
        pd_layer_retain(apr_hash_this_val(i));
    }
}

static void share_parts(const building_t *building, const pd_rulebook_t *old)
{
    pd_rulebook_t *made = building->made;
    apr_hash_index_t *i;

    made->rules = apr_hash_copy(made->pool, old->rules);
    for (i = apr_hash_first(building->scratch, made->rules); i != NULL; i = apr_hash_next(i)) {
        pd_rule_retain(apr_hash_this_val(i));
    }
    share_layers(building, old->by_role, &made->by_role);
    share_layers(building, old->by_member, &made->by_member);
    made->targets = apr_hash_copy(made->pool, old->targets);
    if (apr_hash_count(old->targets) == apr_hash_count(old->rules)) {
        return; /* every rule can be read: ids and targets lie in the rules */
    }
    for (i = apr_hash_first(building->scratch, old->targets); i != NULL; i = apr_hash_next(i)) {
        const char *id = apr_hash_this_key(i);

        if (apr_hash_get(made->rules, id, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(made->targets, id, APR_HASH_KEY_STRING, NULL);
            apr_hash_set(made->targets, apr_pstrdup(made->pool, id), APR_HASH_KEY_STRING,
                         apr_pstrdup(made->pool, apr_hash_this_val(i)));
        }
    }
}

static pd_status_t follow_rule(pd_tx_t *tx, building_t *building, const char *id)
{
    pd_object_t *object = NULL;
    pd_status_t status = pd_tx_get(tx, PD_KIND_RESTRICTION, id, &object);

    if (status == PD_E_NOT_FOUND) {
        drop_rule(building, id);
        return PD_OK;
    }
    return status == PD_OK ? take_rule(building, object) : status;
}

pd_status_t pd_rulebook_follow(pd_tx_t *tx, pd_rulebook_t *old, const apr_array_header_t *changes,
                               pd_rulebook_t **ret)
{
    building_t building;
    pd_status_t status;
    int i;

    if (!pd_snapshot_is_touched(changes, PD_KIND_RESTRICTION)) {
        (void)apr_atomic_inc32(&old->refs); /* the count before is nobody's business */
        *ret = old;
        return PD_OK;
    }
    status = begin(tx, &building);
    if (status == PD_OK) {
        share_parts(&building, old);
    }
    for (i = 0; status == PD_OK && i < changes->nelts; i++) {
        const pd_change_t *change = &APR_ARRAY_IDX(changes, i, pd_change_t);

        if (strcmp(change->kind, PD_KIND_RESTRICTION) == 0) {
            status = follow_rule(tx, &building, change->id);
        }
    }
    return finish(status, &building, ret);
}
