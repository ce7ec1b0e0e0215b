/* Bounded queue between the loop and a store's thread, and the few lines of threading around it. */
#include "pd_queue.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

typedef struct work_list {
    pd_work_t *head;
    pd_work_t *tail;
} work_list_t;

struct pd_queue {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    work_list_t waiting;
    work_list_t finished;
    size_t count; /* waiting, running and finished */
    size_t max;
    int is_closed;
    void (*wake)(void *);
    void *wake_baton;
};

static void list_add(work_list_t *list, pd_work_t *head, pd_work_t *tail)
{
    if (list->tail == NULL) {
        list->head = head;
    } else {
        list->tail->next = head;
    }
    list->tail = tail;
}

pd_queue_t *pd_queue_new(size_t max, void (*wake)(void *), void *wake_baton)
{
    pd_queue_t *queue = calloc(1, sizeof(*queue));

    if (queue == NULL) {
        return NULL;
    }
    queue->max = max;
    queue->wake = wake;
    queue->wake_baton = wake_baton;
    if (pthread_mutex_init(&queue->lock, NULL) != 0) {
        free(queue);
        return NULL;
    }
    if (pthread_cond_init(&queue->arrived, NULL) != 0) {
        (void)pthread_mutex_destroy(&queue->lock); /* nobody holds it */
        free(queue);
        return NULL;
    }
    return queue;
}

void pd_queue_free(pd_queue_t **queue)
{
    if (*queue == NULL) {
        return;
    }
    (void)pthread_cond_destroy(&(*queue)->arrived); /* nobody waits */
    (void)pthread_mutex_destroy(&(*queue)->lock);   /* nobody holds it */
    free(*queue);
    *queue = NULL;
}

pd_status_t pd_queue_push(pd_queue_t *queue, pd_work_t *work)
{
    pd_status_t status = PD_OK;

    work->next = NULL;
    (void)pthread_mutex_lock(&queue->lock); /* fails for a bad mutex only, here and below */
    if (queue->is_closed) {
        status = PD_E_CLOSED;
    } else if (queue->count >= queue->max) {
        status = PD_E_FULL;
    } else {
        list_add(&queue->waiting, work, work);
        queue->count++;
        (void)pthread_cond_signal(&queue->arrived);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return status;
}

pd_work_t *pd_queue_take(pd_queue_t *queue, int is_all)
{
    pd_work_t *list;

    (void)pthread_mutex_lock(&queue->lock);
    while (queue->waiting.head == NULL && !queue->is_closed) {
        (void)pthread_cond_wait(&queue->arrived, &queue->lock);
    }
    list = queue->waiting.head;
    if (is_all || list == NULL || list->next == NULL) {
        queue->waiting = (work_list_t){NULL, NULL};
    } else {
        queue->waiting.head = list->next;
        list->next = NULL;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return list;
}

void pd_queue_finish(pd_queue_t *queue, pd_work_t *list)
{
    pd_work_t *tail = list;

    if (list == NULL) {
        return;
    }
    while (tail->next != NULL) {
        tail = tail->next;
    }
    (void)pthread_mutex_lock(&queue->lock);
    list_add(&queue->finished, list, tail);
    (void)pthread_mutex_unlock(&queue->lock);
    if (queue->wake != NULL) {
        queue->wake(queue->wake_baton);
    }
}

pd_work_t *pd_queue_reap(pd_queue_t *queue)
{
    pd_work_t *list;
    const pd_work_t *work;

    (void)pthread_mutex_lock(&queue->lock);
    list = queue->finished.head;
    queue->finished = (work_list_t){NULL, NULL};
    for (work = list; work != NULL; work = work->next) {
        queue->count--;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return list;
}

void pd_queue_close(pd_queue_t *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->is_closed = 1;
    (void)pthread_cond_broadcast(&queue->arrived);
    (void)pthread_mutex_unlock(&queue->lock);
}

pd_status_t pd_thread_start(pthread_t *ret, void *(*run)(void *), void *baton)
{
    sigset_t all;
    sigset_t before;
    int code;

    (void)sigfillset(&all); /* cannot fail */
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
        return PD_E_SYSTEM;
    }
    code = pthread_create(ret, NULL, run, baton);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* the mask it had a line ago */
    return code == 0 ? PD_OK : PD_E_SYSTEM;
}

pd_status_t pd_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int code;

    if (pthread_condattr_init(&attr) != 0) {
        return PD_E_SYSTEM;
    }
    code = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (code == 0) {
        code = pthread_cond_init(cond, &attr);
    }
    (void)pthread_condattr_destroy(&attr); /* has no failure on Linux */
    return code == 0 ? PD_OK : PD_E_SYSTEM;
}

void pd_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t ms)
{
    struct timespec until = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* fails for a bad id only */
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(cond, lock, &until); /* the caller looks at its own condition */
}
