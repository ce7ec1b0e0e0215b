/* A schema with all that it refers to, within a size: see oas.h. Definitions are met breadth first, so that what does not fit any more is what lies
 * deepest. */
#include "oas_schema_private.h"

#include <string.h>

static size_t bytes_of(const json_t *value)
{
    return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* Forgets the definitions that were met after there were `count`. */
static void forget(oas_making_t *m, int count)
{
    while (m->defs->nelts > count) {
        oas_def_t *def = *(oas_def_t **)apr_array_pop(m->defs);

        apr_hash_set(m->by_value, &def->at.value, sizeof(def->at.value), NULL);
        apr_hash_set(m->by_name, def->name, APR_HASH_KEY_STRING, NULL);
    }
}

/* The definitions, as many as fit into the rest of the size; new reference. */
static json_t *make_defs(oas_making_t *m, size_t used)
{
    json_t *defs = json_object();
    int i;

    for (i = 0; i < m->defs->nelts; i++) {
        const oas_def_t *def = APR_ARRAY_IDX(m->defs, i, oas_def_t *);
        int count = m->defs->nelts;
        json_t *made = oas_make_inline(m, def->at, 1);
        size_t bytes = bytes_of(made) + strlen(def->name) + 4;

        if (used + bytes > m->options->max_bytes) {
            json_decref(made);
            forget(m, count);
            m->counts->cut_schemas++;
            made = oas_make_stub(m, def->at);
            bytes = bytes_of(made) + strlen(def->name) + 4;
        }
        used += bytes;
        (void)json_object_set_new(defs, def->name, made);
    }
    return defs;
}

json_t *oas_schema(oas_doc_t *doc, oas_at_t at, const oas_schema_options_t *options, oas_schema_counts_t *counts,
                   apr_pool_t *pool)
{
    static const int depths[] = {1000, 8, 5, 3, 2, 1};
    oas_making_t m = {doc, options, counts, pool, NULL, NULL, NULL, 0, 0};
    json_t *root = NULL;
    json_t *defs;
    size_t i;

    for (i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        json_decref(root);
        m.by_value = apr_hash_make(pool);
        m.by_name = apr_hash_make(pool);
        m.defs = apr_array_make(pool, 16, sizeof(oas_def_t *));
        m.max_depth = depths[i];
        m.work = 0;
        root = oas_make_inline(&m, at, 0);
        if (root == NULL || bytes_of(root) <= options->max_bytes) {
            break;
        }
    }
    if (root == NULL) {
        return NULL;
    }
    if (bytes_of(root) > options->max_bytes) { /* even its names alone */
        json_decref(root);
        counts->cut_schemas++;
        return oas_make_stub(&m, at);
    }
    defs = make_defs(&m, bytes_of(root) + 12);
    if (json_object_size(defs) > 0) {
        (void)json_object_set_new(root, "$defs", defs);
    } else {
        json_decref(defs);
    }
    return root;
}
