/* The toolboxes of a snapshot. See pd_snapshot.h. */
#include "pd_snapshot_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_atomic.h>

#include "pd_log.h"

static pd_status_t toolboxes_new(pd_toolboxes_t **ret)
{
    apr_pool_t *pool;
    pd_toolboxes_t *made;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    made->refs = 1;
    made->by_id = apr_hash_make(pool);
    *ret = made;
    return PD_OK;
}

void pd_toolboxes_release(pd_toolboxes_t **toolboxes)
{
    pd_toolboxes_t *gone = *toolboxes;
    apr_hash_index_t *i;

    *toolboxes = NULL;
    if (gone == NULL || apr_atomic_dec32(&gone->refs) != 0) {
        return;
    }
    for (i = apr_hash_first(gone->pool, gone->by_id); i != NULL; i = apr_hash_next(i)) {
        pd_toolbox_t *toolbox = apr_hash_this_val(i);

        pd_toolbox_release(&toolbox);
    }
    apr_pool_destroy(gone->pool);
}

static void drop_toolbox(pd_toolboxes_t *made, const char *id)
{
    pd_toolbox_t *old = apr_hash_get(made->by_id, id, APR_HASH_KEY_STRING);

    apr_hash_set(made->by_id, id, APR_HASH_KEY_STRING, NULL);
    if (old != NULL) {
        pd_toolbox_release(&old);
    }
}

static pd_status_t take_toolbox(void *building, const pd_object_t *object)
{
    pd_toolboxes_t *made = building;
    pd_toolbox_t *toolbox = NULL;
    pd_status_t status = pd_toolbox_make(object->id, object->doc, &toolbox);

    drop_toolbox(made, object->id); /* what it was before is not in force any more */
    if (status != PD_OK) {
        pd_log(PD_LOG_ERR, 105, "toolbox %s can't be compiled (%s): it is left out", object->id,
               pd_status_text(status));
        return status == PD_E_NOMEM ? status : PD_OK;
    }
    apr_hash_set(made->by_id, toolbox->id, APR_HASH_KEY_STRING, toolbox);
    return PD_OK;
}

static int by_name_and_id(const void *a, const void *b)
{
    const pd_toolbox_t *x = *(pd_toolbox_t *const *)a;
    const pd_toolbox_t *y = *(pd_toolbox_t *const *)b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : strcmp(x->id, y->id);
}

/* Only the older of two that share a name is found and listed, so that a tool's name means one thing; the store lets none share
 * one. */
static void make_indices(pd_toolboxes_t *made, apr_pool_t *scratch)
{
    int count = (int)apr_hash_count(made->by_id);
    apr_array_header_t *all = apr_array_make(scratch, count + 1, sizeof(pd_toolbox_t *));
    apr_hash_index_t *i;
    int k;

    made->by_name = apr_hash_make(made->pool);
    made->sorted = apr_array_make(made->pool, count + 1, sizeof(pd_toolbox_t *));
    for (i = apr_hash_first(scratch, made->by_id); i != NULL; i = apr_hash_next(i)) {
        APR_ARRAY_PUSH(all, pd_toolbox_t *) = apr_hash_this_val(i);
    }
    qsort(all->elts, (size_t)all->nelts, sizeof(pd_toolbox_t *), by_name_and_id);
    for (k = 0; k < all->nelts; k++) {
        pd_toolbox_t *toolbox = APR_ARRAY_IDX(all, k, pd_toolbox_t *);

        if (apr_hash_get(made->by_name, toolbox->name, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(made->by_name, toolbox->name, APR_HASH_KEY_STRING, toolbox);
            APR_ARRAY_PUSH(made->sorted, pd_toolbox_t *) = toolbox;
        }
    }
}

/* Hands the block out, or gives it up. */
static pd_status_t toolboxes_done(pd_tx_t *tx, pd_status_t status, pd_toolboxes_t *made,
                                  pd_toolboxes_t **ret)
{
    if (status != PD_OK) {
        pd_toolboxes_release(&made);
        return status;
    }
    make_indices(made, pd_tx_pool(tx));
    *ret = made;
    return PD_OK;
}

pd_status_t pd_toolboxes_load(pd_tx_t *tx, pd_toolboxes_t **ret)
{
    pd_toolboxes_t *made = NULL;
    pd_status_t status = toolboxes_new(&made);

    if (status == PD_OK) {
        status = pd_snapshot_take_all(tx, PD_KIND_TOOLBOX, take_toolbox, made);
    }
    return toolboxes_done(tx, status, made, ret);
}

static pd_status_t follow_toolbox(pd_tx_t *tx, pd_toolboxes_t *made, const char *id)
{
    pd_object_t *object = NULL;
    pd_status_t status = pd_tx_get(tx, PD_KIND_TOOLBOX, id, &object);

    if (status == PD_E_NOT_FOUND) {
        drop_toolbox(made, id);
        return PD_OK;
    }
    return status == PD_OK ? take_toolbox(made, object) : status;
}

pd_status_t pd_toolboxes_follow(pd_tx_t *tx, pd_toolboxes_t *old, const apr_array_header_t *changes,
                                pd_toolboxes_t **ret)
{
    pd_toolboxes_t *made = NULL;
    apr_hash_index_t *k;
    pd_status_t status;
    int i;

    if (!pd_snapshot_is_touched(changes, PD_KIND_TOOLBOX)) {
        (void)apr_atomic_inc32(&old->refs); /* the count before is nobody's business */
        *ret = old;
        return PD_OK;
    }
    status = toolboxes_new(&made);
    if (status != PD_OK) {
        return status;
    }
    made->by_id = apr_hash_copy(made->pool, old->by_id); /* keys lie in the toolboxes */
    for (k = apr_hash_first(pd_tx_pool(tx), made->by_id); k != NULL; k = apr_hash_next(k)) {
        pd_toolbox_retain(apr_hash_this_val(k));
    }
    for (i = 0; status == PD_OK && i < changes->nelts; i++) {
        const pd_change_t *change = &APR_ARRAY_IDX(changes, i, pd_change_t);

        if (strcmp(change->kind, PD_KIND_TOOLBOX) == 0) {
            status = follow_toolbox(tx, made, change->id);
        }
    }
    return toolboxes_done(tx, status, made, ret);
}
