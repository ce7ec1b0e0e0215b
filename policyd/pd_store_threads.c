/* The three lanes of the store: inline reads on the loop's thread, the writer's group commit, and
 * long reads on job threads; and the way back to the loop. */
#include "pd_store.h"

#include <stdlib.h>

#include "pd_store_private.h"

static int is_late(pd_boot_t deadline)
{
    return deadline.us <= pd_boot_now().us;
}

static pd_store_unit_t *new_unit(pd_boot_t deadline, pd_unit_fn *unit, pd_done_fn *done,
                                 void *baton)
{
    pd_store_unit_t *work = calloc(1, sizeof(*work));

    if (work == NULL) {
        return NULL;
    }
    /* Its own allocator: the pool travels between threads, one at a time, without a lock. */
    if (apr_pool_create_unmanaged_ex(&work->pool, NULL, NULL) != APR_SUCCESS) {
        free(work);
        return NULL;
    }
    work->deadline = deadline;
    work->unit = unit;
    work->done = done;
    work->baton = baton;
    return work;
}

static void free_unit(pd_store_unit_t *work)
{
    apr_pool_destroy(work->pool);
    free(work);
}

/* --- reads ---------------------------------------------------------------- */

static pd_status_t run_read(pd_store_conn_t *conn, apr_pool_t *pool, pd_unit_fn *unit, void *baton,
                            int64_t *revision)
{
    pd_tx_t tx = {.conn = conn, .pool = pool, .revision = -1};
    pd_status_t status = pd_sqlite_begin_read(conn->db);

    if (status == PD_OK) {
        status = unit(&tx, baton);
    }
    if (status == PD_OK) {
        status = tx.broken;
    }
    /* Also after a failed or late unit: completions name the revision that refused. */
    pd_sqlite_deadline(conn->db, (pd_boot_t){0});
    *revision = pd_sqlite_in_transaction(conn->db) ? pd_tx_revision(&tx) : -1;
    pd_sqlite_rollback(conn->db); /* nothing was written; ends the snapshot */
    if (*revision < 0) {
        *revision = 0;
        return status == PD_OK ? PD_E_IO : status;
    }
    return status;
}

static pd_status_t run_inline(pd_store_t *store, pd_boot_t deadline, pd_unit_fn *unit,
                              pd_done_fn *done, void *baton)
{
    apr_pool_t *pool = NULL;
    pd_status_t status = PD_E_TIMEOUT;
    int64_t revision = 0;

    if (store->is_in_unit) {
        return PD_E_INVALID;
    }
    if (apr_pool_create_unmanaged_ex(&pool, NULL, store->loop_allocator) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    if (!is_late(deadline)) {
        store->is_in_unit = 1;
        status = run_read(&store->loop, pool, unit, baton, &revision);
        store->is_in_unit = 0;
    }
    done(status, revision, baton);
    apr_pool_destroy(pool);
    return PD_OK;
}

static void *run_jobs(void *baton)
{
    pd_store_job_t *self = baton;
    pd_queue_t *queue = self->store->job_queue;
    pd_work_t *item = pd_queue_take(queue, 0);

    while (item != NULL) {
        pd_store_unit_t *work = (pd_store_unit_t *)item;

        work->work.status = PD_E_TIMEOUT;
        if (!is_late(work->deadline)) {
            pd_sqlite_deadline(self->conn.db, work->deadline);
            work->work.status =
                run_read(&self->conn, work->pool, work->unit, work->baton, &work->revision);
        }
        pd_queue_finish(queue, item);
        item = pd_queue_take(queue, 0);
    }
    return NULL;
}

/* --- writes --------------------------------------------------------------- */

static pd_status_t begin_batch(void *baton)
{
    pd_store_t *store = baton;
    /* Read, not remembered: correct also after a batch that failed. */
    pd_status_t status = pd_store_revision(&store->write, &store->revision);

    if (status == PD_OK) {
        store->committed = store->revision;
    }
    return status;
}

static void apply_unit(void *baton, pd_work_t *item)
{
    pd_store_t *store = baton;
    pd_store_unit_t *work = (pd_store_unit_t *)item;
    pd_tx_t tx = {.conn = &store->write,
                  .pool = work->pool,
                  .can_write = 1,
                  .revision = store->revision};
    pd_status_t status;
    int64_t revision = store->revision;

    work->revision = store->revision;
    if (is_late(work->deadline)) {
        item->status = PD_E_TIMEOUT;
        return;
    }
    item->status = pd_sqlite_savepoint(store->write.db);
    if (item->status != PD_OK) {
        return;
    }
    status = work->unit(&tx, work->baton);
    if (status == PD_OK) {
        status = pd_store_finish(&tx, &revision);
    }
    item->status = status;
    if (status == PD_OK) {
        status = pd_sqlite_keep(store->write.db);
    } else {
        status = pd_sqlite_undo(store->write.db);
    }
    /* Neither kept nor undone: nothing of this batch may be committed. */
    if (status != PD_OK) {
        pd_sqlite_rollback(store->write.db);
        return;
    }
    if (item->status == PD_OK) {
        store->revision = revision;
        work->revision = revision;
    }
}

static void settle_batch(void *baton, pd_work_t *batch, pd_status_t status)
{
    pd_store_t *store = baton;
    pd_work_t *item;

    if (status == PD_OK) {
        store->committed = store->revision;
        return;
    }
    for (item = batch; item != NULL; item = item->next) {
        ((pd_store_unit_t *)item)->revision = store->committed;
    }
}

static const pd_writer_ops_t writer_ops = {begin_batch, apply_unit, settle_batch};

/* --- the loop's side ------------------------------------------------------ */

pd_status_t pd_store_submit(pd_store_t *store, pd_lane_t lane, pd_boot_t deadline, pd_unit_fn *unit,
                            pd_done_fn *done, void *baton)
{
    pd_store_unit_t *work;
    pd_status_t status;

    if (lane == PD_LANE_LOOP) {
        return run_inline(store, deadline, unit, done, baton);
    }
    if (lane != PD_LANE_WRITE && lane != PD_LANE_JOB) {
        return PD_E_INVALID;
    }
    work = new_unit(deadline, unit, done, baton);
    if (work == NULL) {
        return PD_E_NOMEM;
    }
    status = pd_queue_push(lane == PD_LANE_WRITE ? store->write_queue : store->job_queue,
                           &work->work);
    if (status != PD_OK) {
        free_unit(work);
    }
    return status;
}

static void reap_queue(pd_queue_t *queue)
{
    pd_work_t *item = pd_queue_reap(queue);

    while (item != NULL) {
        pd_store_unit_t *work = (pd_store_unit_t *)item;

        item = item->next;
        work->done(work->work.status, work->revision, work->baton);
        free_unit(work);
    }
}

void pd_store_reap(pd_store_t *store)
{
    reap_queue(store->write_queue);
    reap_queue(store->job_queue);
}

pd_status_t pd_store_threads_start(pd_store_t *store)
{
    pd_status_t status = pd_writer_start(store->write.db, store->write_queue, store->checkpoint,
                                         &writer_ops, store, &store->writer);
    size_t i;

    for (i = 0; status == PD_OK && i < PD_STORE_JOB_THREADS; i++) {
        status = pd_thread_start(&store->jobs[i].thread, run_jobs, &store->jobs[i]);
        store->jobs[i].is_running = status == PD_OK;
    }
    return status;
}

void pd_store_threads_stop(pd_store_t *store)
{
    size_t i;

    if (store->job_queue != NULL) {
        pd_queue_close(store->job_queue);
    }
    pd_writer_stop(&store->writer);
    for (i = 0; i < PD_STORE_JOB_THREADS; i++) {
        if (store->jobs[i].is_running) {
            (void)pthread_join(store->jobs[i].thread, NULL); /* started, joined once */
            store->jobs[i].is_running = 0;
        }
    }
    if (store->write_queue != NULL && store->job_queue != NULL) {
        pd_store_reap(store); /* what they submit now is refused as closed */
    }
}
