/* Checkpoints.  A passive one blocks nobody, but under steady load never sees the end of the WAL;
 * past a second mark the thread therefore restarts the WAL, right after a passive round has left
 * little to copy while the writer waits. */
#include "pd_checkpoint.h"

#include <pthread.h>
#include <stdlib.h>

#include "pd_queue.h"
#include "pd_sqlite.h"

#define PASSIVE_PAGES 1000
#define RESTART_PAGES 16384 /* 64 MiB */
#define BUSY_MS       1000
#define PAUSE_MS      100 /* between rounds: a reader that pins the WAL must not make us spin */

struct pd_checkpoint {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    pd_sqlite_t *db;
    int pages;
    int is_stopping;
};

static void *run_checkpoints(void *baton)
{
    pd_checkpoint_t *self = baton;

    (void)pthread_mutex_lock(&self->lock);
    while (!self->is_stopping) {
        int pages = self->pages;

        if (pages < PASSIVE_PAGES) {
            (void)pthread_cond_wait(&self->changed, &self->lock);
            continue;
        }
        self->pages = 0;
        (void)pthread_mutex_unlock(&self->lock);
        /* A failed round leaves all in the WAL, and the next commit asks again. */
        (void)pd_sqlite_checkpoint(self->db, 0);
        if (pages >= RESTART_PAGES) {
            (void)pd_sqlite_checkpoint(self->db, 1);
        }
        (void)pthread_mutex_lock(&self->lock);
        if (!self->is_stopping) {
            pd_cond_wait_ms(&self->changed, &self->lock, PAUSE_MS);
        }
    }
    (void)pthread_mutex_unlock(&self->lock);
    return NULL;
}

pd_status_t pd_checkpoint_start(const char *path, pd_checkpoint_t **ret, char *why, size_t size)
{
    pd_checkpoint_t *self = calloc(1, sizeof(*self));
    pd_status_t status;

    if (self == NULL) {
        return pd_sqlite_why(PD_E_NOMEM, why, size, "out of memory");
    }
    status = pd_sqlite_open(path, PD_SQLITE_WRITE, BUSY_MS, &self->db, why, size);
    if (status != PD_OK) {
        free(self);
        return status;
    }
    (void)pthread_mutex_init(&self->lock, NULL); /* has no failure on Linux */
    status = pd_cond_init(&self->changed);
    if (status == PD_OK) {
        status = pd_thread_start(&self->thread, run_checkpoints, self);
        if (status != PD_OK) {
            (void)pthread_cond_destroy(&self->changed); /* nobody waits */
        }
    }
    if (status != PD_OK) {
        (void)pthread_mutex_destroy(&self->lock); /* nobody holds it */
        pd_sqlite_close(&self->db);
        free(self);
        return pd_sqlite_why(status, why, size, "cannot start the checkpoint thread of %s", path);
    }
    *ret = self;
    return PD_OK;
}

void pd_checkpoint_note(pd_checkpoint_t *checkpoint, int wal_pages)
{
    (void)pthread_mutex_lock(&checkpoint->lock);
    checkpoint->pages = wal_pages;
    /* During the pause too: the thread then waits once more without harm, or starts a round early.
     */
    if (wal_pages >= PASSIVE_PAGES) {
        (void)pthread_cond_signal(&checkpoint->changed);
    }
    (void)pthread_mutex_unlock(&checkpoint->lock);
}

void pd_checkpoint_stop(pd_checkpoint_t **checkpoint)
{
    pd_checkpoint_t *gone = *checkpoint;

    if (gone == NULL) {
        return;
    }
    *checkpoint = NULL;
    (void)pthread_mutex_lock(&gone->lock);
    gone->is_stopping = 1;
    (void)pthread_cond_signal(&gone->changed);
    (void)pthread_mutex_unlock(&gone->lock);
    (void)pthread_join(gone->thread, NULL); /* it was started and is joined once */
    pd_sqlite_close(&gone->db);
    (void)pthread_cond_destroy(&gone->changed); /* nobody waits */
    (void)pthread_mutex_destroy(&gone->lock);   /* nobody holds it */
    free(gone);
}
