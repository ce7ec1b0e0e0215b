/* The one loop: file descriptors, timers, deferred functions, signals and wake-ups from store threads.
 * Everything here but pd_loop_wake() is for the loop's own thread. */
#ifndef PD_LOOP_H
#define PD_LOOP_H

#include <apr_pools.h>

#include "pd_err.h"
#include "pd_time.h"

typedef struct pd_loop pd_loop_t;
typedef void pd_loop_fn(void *baton);
/* revents: POLLIN, POLLOUT, POLLHUP, POLLERR as of poll(2). */
typedef void pd_loop_fd_fn(int fd, short revents, void *baton);

pd_status_t pd_loop_new(apr_pool_t *pool, pd_loop_t **ret);
void pd_loop_free(pd_loop_t **loop);

/* Watches fd for events; a second call for the same fd changes events. */
pd_status_t pd_loop_watch(pd_loop_t *loop, int fd, short events, pd_loop_fd_fn *fn, void *baton);
void pd_loop_unwatch(pd_loop_t *loop, int fd);

/* Calls fn every interval_ms (first after one interval); returns a timer id > 0, or negative. */
int pd_loop_every(pd_loop_t *loop, int64_t interval_ms, pd_loop_fn *fn, void *baton);
void pd_loop_cancel(pd_loop_t *loop, int timer);

/* Calls fn before every poll: for sockets whose readiness can change without their descriptor saying so. */
pd_status_t pd_loop_prepare(pd_loop_t *loop, pd_loop_fn *fn, void *baton);

/* What runs on the loop after pd_loop_wake(): reapers of completions. */
pd_status_t pd_loop_on_wake(pd_loop_t *loop, pd_loop_fn *fn, void *baton);
/* Wakes the loop; any thread, async-signal-safe. baton is the pd_loop_t. */
void pd_loop_wake(void *loop);

/* Runs until pd_loop_stop(). on_hup and on_term run on the loop after the signals. */
pd_status_t pd_loop_run(pd_loop_t *loop, pd_loop_fn *on_term, pd_loop_fn *on_hup, void *baton);
void pd_loop_stop(pd_loop_t *loop);

#endif
