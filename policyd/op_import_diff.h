/* What a new form of a connector changes, and what of it waits until somebody accepts it. Pure: normalised documents in, documents out.
 *
 * Held back is what widens what members can do, or takes away what a rule stands on, without a person having read it: an operation that is new and
 * destructive, a weaker classification, another method or path under a known id, the loss of an operation that a restriction or a toolbox
 * names, and another base URL, variable or auth scheme, with which the whole file waits. Everything else takes effect at once. */
#ifndef PD_OP_IMPORT_DIFF_H
#define PD_OP_IMPORT_DIFF_H

#include <apr_pools.h>
#include <jansson.h>

#include "pd_err.h"

/* Words that accept a change of the connector as a whole, beside ids of operations. No id begins with '@' by our hand; one that does is
 * accepted by the same word. */
#define PD_IMPORT_BASE_URL "@base_url"
#define PD_IMPORT_AUTH     "@auth"

typedef struct pd_import_terms {
    int accepts_all;
    const json_t *accepted; /* array of ids and words, or NULL */
    int (*is_named)(void *baton, const char *operation_id); /* by a restriction or toolbox */
    int (*is_same_auth)(const json_t *a, const json_t *b);
    void *baton;
} pd_import_terms_t;

typedef struct pd_import_diff {
    json_t *doc;      /* what may be in force now: the old document where the whole waits; new reference */
    json_t *added;    /* arrays of ids, of all changes, held or not */
    json_t *removed;
    json_t *changed;  /* of {"operation","what":[member…]} */
    json_t *reclassified; /* of {"operation","from","to"} */
    json_t *held;     /* of {"operation","why"} */
    int is_same;      /* the documents are equal */
} pd_import_diff_t;

/* Compares; time linear in the documents but for sorting. Everything in ret is a new reference, let go by pd_import_diff_clear(). pool: for the
 * time of the call and longer. */
pd_status_t pd_import_diff(const json_t *old, const json_t *doc, const pd_import_terms_t *terms,
                           apr_pool_t *pool, pd_import_diff_t *ret);
void pd_import_diff_clear(pd_import_diff_t *diff);

#endif
