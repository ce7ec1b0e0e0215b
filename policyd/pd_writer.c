/* Group commit, the same for the policy store and the trail. */
#include "pd_writer.h"

#include <stdlib.h>

struct pd_writer {
    pthread_t thread;
    pd_sqlite_t *db;
    pd_queue_t *queue;
    pd_checkpoint_t *checkpoint;
    const pd_writer_ops_t *ops;
    void *baton;
};

static pd_status_t apply_batch(pd_writer_t *self, pd_work_t *batch)
{
    pd_work_t *work;
    pd_status_t status = pd_sqlite_begin_write(self->db);

    if (status == PD_OK) {
        status = self->ops->begin(self->baton);
    }
    for (work = batch; status == PD_OK && work != NULL; work = work->next) {
        self->ops->apply(self->baton, work);
        /* Full disk, I/O error, no memory: SQLite may have given the whole transaction up. */
        if (!pd_sqlite_in_transaction(self->db)) {
            status = PD_E_IO;
        }
    }
    return status == PD_OK ? pd_sqlite_commit(self->db) : status;
}

static void *run_writer(void *baton)
{
    pd_writer_t *self = baton;
    pd_work_t *batch = pd_queue_take(self->queue, 1);

    while (batch != NULL) {
        pd_work_t *work;
        pd_status_t status = apply_batch(self, batch);

        if (status != PD_OK) {
            pd_sqlite_rollback(self->db);
            for (work = batch; work != NULL; work = work->next) {
                work->status = PD_E_IO;
            }
        }
        self->ops->settled(self->baton, batch, status);
        pd_queue_finish(self->queue, batch);
        if (status == PD_OK) {
            pd_checkpoint_note(self->checkpoint, pd_sqlite_wal_pages(self->db));
        }
        batch = pd_queue_take(self->queue, 1);
    }
    return NULL;
}

pd_status_t pd_writer_start(pd_sqlite_t *db, pd_queue_t *queue, pd_checkpoint_t *checkpoint,
                            const pd_writer_ops_t *ops, void *baton, pd_writer_t **ret)
{
    pd_writer_t *self = calloc(1, sizeof(*self));
    pd_status_t status;

    if (self == NULL) {
        return PD_E_NOMEM;
    }
    *self = (pd_writer_t){0, db, queue, checkpoint, ops, baton};
    status = pd_thread_start(&self->thread, run_writer, self);
    if (status != PD_OK) {
        free(self);
        return status;
    }
    *ret = self;
    return PD_OK;
}

void pd_writer_stop(pd_writer_t **writer)
{
    if (*writer == NULL) {
        return;
    }
    pd_queue_close((*writer)->queue);
    (void)pthread_join((*writer)->thread, NULL); /* it was started and is joined once */
    free(*writer);
    *writer = NULL;
}
