/* The rules of one target, laid out for those who ask about many connectors: see pd_rules.h.
 *
 * A large policy names most connectors in most layers, and whoever makes a view asks about all of
 * them. So a layer's rows, the rules' words on them and the hashes of operations stand each in one
 * piece of memory, and a row is found through a table of numbers: what the rules themselves hold lies
 * as it was read, an allocation here and there. */
#include "pd_rules.h"

#include <stdlib.h>
#include <string.h>

#include <apr_atomic.h>
#include <apr_strings.h>

typedef struct pd_layer_on {
    const char *connector_id;
    apr_array_header_t parts; /* of pd_bearing_part_t, in the order of the rules' ids */
} pd_layer_on_t;

/* Open addressing: the first free place ends a search. */
typedef struct pd_layer_place {
    apr_uint32_t hash;
    apr_uint32_t row; /* its number and one; 0: free */
} pd_layer_place_t;

/* What the rows of a layer will need. */
typedef struct sizes {
    int rows;
    size_t parts;
    size_t operations;
} sizes_t;

/* Where the next operations' ids and hashes go. */
typedef struct room {
    const char **ids;
    apr_uint32_t *hashes;
} room_t;

static int by_rule_id(const void *a, const void *b)
{
    return strcmp((*(pd_rule_t *const *)a)->id, (*(pd_rule_t *const *)b)->id);
}

/* --- names ------------------------------------------------------------------------ */

/* Where a name's bit stands. The ends of names differ most. */
static unsigned mark_of(const char *name)
{
    size_t bytes = strlen(name);
    size_t i = bytes > 6 ? bytes - 6 : 0;
    unsigned mark = (unsigned)bytes;

    for (; i < bytes; i++) {
        mark = mark * 33 + (unsigned char)name[i];
    }
    return mark % PD_NAME_MARKS;
}

static void index_names(pd_layer_t *layer, const pd_rule_t *rule, apr_pool_t *scratch)
{
    apr_hash_index_t *at;

    for (at = apr_hash_first(scratch, rule->names); at != NULL; at = apr_hash_next(at)) {
        const char *name = apr_hash_this_key(at);

        if (apr_hash_get(layer->by_name, name, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(layer->by_name, name, APR_HASH_KEY_STRING, rule);
            layer->name_marks[mark_of(name) / 8] |= (unsigned char)(1u << mark_of(name) % 8);
        }
    }
}

const pd_rule_t *pd_layer_name(const pd_layer_t *layer, const char *name)
{
    unsigned mark = mark_of(name);

    return (layer->name_marks[mark / 8] >> mark % 8 & 1) != 0
               ? apr_hash_get(layer->by_name, name, APR_HASH_KEY_STRING)
               : NULL;
}

/* --- connectors ------------------------------------------------------------------- */

static pd_layer_on_t *find_row(const pd_layer_t *layer, const char *connector_id, apr_uint32_t hash)
{
    apr_uint32_t i = hash & layer->place_mask;

    for (; layer->places[i].row != 0; i = (i + 1) & layer->place_mask) {
        pd_layer_on_t *on = &layer->on[layer->places[i].row - 1];

        if (layer->places[i].hash == hash && strcmp(on->connector_id, connector_id) == 0) {
            return on;
        }
    }
    return NULL;
}

const apr_array_header_t *pd_layer_parts(const pd_layer_t *layer, const char *connector_id,
                                         apr_uint32_t hash)
{
    const pd_layer_on_t *on = find_row(layer, connector_id, hash);

    return on != NULL ? &on->parts : NULL;
}

/* Numbers the connectors that the rules name: id -> the count of the rules that do. */
static sizes_t measure(const pd_layer_t *layer, apr_hash_t *counts, apr_pool_t *scratch)
{
    sizes_t sizes = {0, 0, 0};
    apr_hash_index_t *at;
    int i;

    for (i = 0; i < layer->rules->nelts; i++) {
        const pd_rule_t *rule = APR_ARRAY_IDX(layer->rules, i, const pd_rule_t *);

        for (at = apr_hash_first(scratch, rule->parts); at != NULL; at = apr_hash_next(at)) {
            const pd_rule_part_t *part = apr_hash_this_val(at);
            int *count = apr_hash_get(counts, apr_hash_this_key(at), APR_HASH_KEY_STRING);

            if (count == NULL) {
                count = apr_pcalloc(scratch, sizeof(*count));
                apr_hash_set(counts, apr_hash_this_key(at), APR_HASH_KEY_STRING, count);
                sizes.rows++;
            }
            (*count)++;
            sizes.parts++;
            sizes.operations += (size_t)part->operations->nelts;
        }
    }
    return sizes;
}

static void take_place(pd_layer_t *layer, const char *connector_id, apr_uint32_t row)
{
    apr_uint32_t hash = pd_rule_hash(connector_id);
    apr_uint32_t i = hash & layer->place_mask;

    while (layer->places[i].row != 0) {
        i = (i + 1) & layer->place_mask;
    }
    layer->places[i] = (pd_layer_place_t){hash, row + 1};
}

/* Rows with room for their parts, none of which is there yet. */
static void make_rows(pd_layer_t *layer, const sizes_t *sizes, apr_hash_t *counts,
                      apr_pool_t *scratch)
{
    pd_bearing_part_t *parts =
        apr_pcalloc(layer->pool, (sizes->parts + 1) * sizeof(pd_bearing_part_t));
    apr_uint32_t places = 4;
    apr_uint32_t row = 0;
    apr_hash_index_t *at;

    while (places < 2 * (apr_uint32_t)sizes->rows) {
        places *= 2;
    }
    layer->place_mask = places - 1;
    layer->places = apr_pcalloc(layer->pool, places * sizeof(pd_layer_place_t));
    layer->on = apr_pcalloc(layer->pool, ((size_t)sizes->rows + 1) * sizeof(pd_layer_on_t));
    for (at = apr_hash_first(scratch, counts); at != NULL; at = apr_hash_next(at)) {
        const int *count = apr_hash_this_val(at);
        pd_layer_on_t *on = &layer->on[row];

        on->connector_id = apr_pstrdup(layer->pool, apr_hash_this_key(at));
        on->parts = (apr_array_header_t){.pool = layer->pool,
                                         .elt_size = (int)sizeof(pd_bearing_part_t),
                                         .nalloc = *count,
                                         .elts = (char *)parts};
        parts += *count;
        take_place(layer, on->connector_id, row);
        row++;
    }
}

/* The words of one rule. */
static void add_rule(pd_layer_t *layer, const pd_rule_t *rule, room_t *room, apr_pool_t *scratch)
{
    apr_hash_index_t *at;
    int i;

    for (at = apr_hash_first(scratch, rule->parts); at != NULL; at = apr_hash_next(at)) {
        const char *connector_id = apr_hash_this_key(at);
        const pd_rule_part_t *part = apr_hash_this_val(at);
        pd_layer_on_t *on = find_row(layer, connector_id, pd_rule_hash(connector_id));

        if (on == NULL) {
            continue; /* does not happen: each has its row */
        }
        APR_ARRAY_IDX(&on->parts, on->parts.nelts++, pd_bearing_part_t) = (pd_bearing_part_t){
            rule, rule->effect, part->is_whole, part->operations->nelts, room->ids, room->hashes};
        for (i = 0; i < part->operations->nelts; i++) {
            const char *id = APR_ARRAY_IDX(part->operations, i, const char *);

            *room->hashes++ = pd_rule_hash(id);
            *room->ids++ = apr_pstrdup(layer->pool, id);
        }
    }
}

static pd_status_t index_rules(pd_layer_t *layer)
{
    apr_hash_t *counts;
    apr_pool_t *scratch;
    sizes_t sizes;
    room_t room;
    int i;

    if (apr_pool_create(&scratch, layer->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    counts = apr_hash_make(scratch);
    sizes = measure(layer, counts, scratch);
    make_rows(layer, &sizes, counts, scratch);
    room.hashes = apr_pcalloc(layer->pool, (sizes.operations + 1) * sizeof(*room.hashes));
    room.ids = apr_pcalloc(layer->pool, (sizes.operations + 1) * sizeof(*room.ids));
    for (i = 0; i < layer->rules->nelts; i++) {
        const pd_rule_t *rule = APR_ARRAY_IDX(layer->rules, i, const pd_rule_t *);

        add_rule(layer, rule, &room, scratch);
        index_names(layer, rule, scratch);
    }
    apr_pool_destroy(scratch);
    return PD_OK;
}

/* --- layers ------------------------------------------------------------------------ */

pd_status_t pd_layer_make(const apr_array_header_t *rules, int is_readable, pd_layer_t **ret)
{
    apr_pool_t *pool;
    pd_layer_t *layer;
    pd_status_t status;
    int i;

    if ((rules->nelts == 0 && is_readable) || rules->nelts > PD_MAX_RULES) {
        return PD_E_INVALID;
    }
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    layer = apr_pcalloc(pool, sizeof(*layer));
    layer->pool = pool;
    layer->refs = 1;
    layer->is_readable = is_readable != 0;
    layer->rules = apr_array_copy(pool, rules);
    layer->by_name = apr_hash_make(pool);
    qsort(layer->rules->elts, (size_t)layer->rules->nelts, sizeof(pd_rule_t *), by_rule_id);
    status = index_rules(layer);
    if (status != PD_OK) {
        apr_pool_destroy(pool);
        return status;
    }
    for (i = 0; i < layer->rules->nelts; i++) {
        pd_rule_t *rule = APR_ARRAY_IDX(layer->rules, i, pd_rule_t *);

        pd_rule_retain(rule);
        layer->has_allow |= rule->effect == PD_EFFECT_ALLOW;
    }
    *ret = layer;
    return PD_OK;
}

void pd_layer_retain(pd_layer_t *layer)
{
    (void)apr_atomic_inc32(&layer->refs); /* the count before is nobody's business */
}

void pd_layer_release(pd_layer_t **layer)
{
    pd_layer_t *gone = *layer;
    int i;

    *layer = NULL;
    if (gone == NULL || apr_atomic_dec32(&gone->refs) != 0) {
        return;
    }
    for (i = 0; i < gone->rules->nelts; i++) {
        pd_rule_release(&APR_ARRAY_IDX(gone->rules, i, pd_rule_t *));
    }
    apr_pool_destroy(gone->pool);
}
