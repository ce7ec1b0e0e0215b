/* A writer: the one thread that changes a database.  It takes everything that has gathered while
 * its last commit ran, applies it inside one transaction, commits once (group commit, no timer) and
 * hands it back.  After a failed commit the whole batch ends with PD_E_IO and nothing of it is in
 * the database; the next batch starts afresh. */
#ifndef PD_WRITER_H
#define PD_WRITER_H

#include "pd_checkpoint.h"
#include "pd_queue.h"
#include "pd_sqlite.h"

typedef struct pd_writer pd_writer_t;

/* All on the writer's thread. */
typedef struct pd_writer_ops {
    /* The transaction has begun: reads what the batch starts from. */
    pd_status_t (*begin)(void *baton);
    /* Does one piece of work and sets its status; what it changed when it failed it undoes itself.
     */
    void (*apply)(void *baton, pd_work_t *work);
    /* The batch is durable (PD_OK) or gone. Before its completions are handed over. */
    void (*settled)(void *baton, pd_work_t *batch, pd_status_t status);
} pd_writer_ops_t;

/* Borrows all four until the stop. */
pd_status_t pd_writer_start(pd_sqlite_t *db, pd_queue_t *queue, pd_checkpoint_t *checkpoint,
                            const pd_writer_ops_t *ops, void *baton, pd_writer_t **ret);
/* Closes the queue and returns when everything in it is settled. NULL is fine. */
void pd_writer_stop(pd_writer_t **writer);

#endif
