/* Work on its way to a store's thread and back: a bounded queue in, a list of finished work out,
 * and a call that wakes the loop.  The bound counts work from its submission until it is reaped, so
 * that a loop that falls behind meets the bound too.  Own queue instead of APR's: a writer takes
 * everything that has gathered at once. */
#ifndef PD_QUEUE_H
#define PD_QUEUE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "pd_err.h"

/* First member of whatever travels. */
typedef struct pd_work {
    struct pd_work *next;
    pd_status_t status;
} pd_work_t;

typedef struct pd_queue pd_queue_t;

/* NULL when out of memory. wake may be NULL. */
pd_queue_t *pd_queue_new(size_t max, void (*wake)(void *), void *wake_baton);
/* Queue must be empty and its threads ended. NULL is fine. */
void pd_queue_free(pd_queue_t **queue);

/* PD_E_FULL or PD_E_CLOSED: the work stays the caller's. Any thread. */
pd_status_t pd_queue_push(pd_queue_t *queue, pd_work_t *work);
/* Waits for work: everything that has gathered, oldest first, or (is_all 0) the oldest one. NULL
 * once the queue is closed and empty. */
pd_work_t *pd_queue_take(pd_queue_t *queue, int is_all);
/* Hands a list back, in order, and wakes the loop. */
void pd_queue_finish(pd_queue_t *queue, pd_work_t *list);
/* Everything finished so far, oldest first. */
pd_work_t *pd_queue_reap(pd_queue_t *queue);
/* Accepts nothing more; what is queued is still taken. */
void pd_queue_close(pd_queue_t *queue);

/* Starts a thread that receives no signals: those are the loop's. */
pd_status_t pd_thread_start(pthread_t *ret, void *(*run)(void *), void *baton);
/* A condition whose timed waits follow the monotonic clock. */
pd_status_t pd_cond_init(pthread_cond_t *cond);
/* Waits at most ms; the mutex is held. */
void pd_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t ms);

#endif
