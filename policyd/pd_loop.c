/* The one loop: see pd_loop.h.
 *
 * poll(2) over a compact array; the daemon watches tens of descriptors, not thousands (the link's many
 * peers stand behind one descriptor of ZeroMQ each).  A callback may watch and unwatch at will: a slot
 * that is let go is emptied at once, swept after the round, and never reused within it, so that an
 * event of a closed descriptor cannot reach the new owner of its number. */
#include "pd_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_FDS    1024
#define MAX_TIMERS 64
#define MAX_HOOKS  8

typedef struct hook {
    pd_loop_fn *fn;
    void *baton;
} hook_t;

typedef struct watch {
    pd_loop_fd_fn *fn;
    void *baton;
} watch_t;

typedef struct loop_timer {
    int id; /* 0: free */
    int64_t interval_us;
    pd_boot_t due;
    hook_t hook;
} loop_timer_t;

struct pd_loop {
    struct pollfd *polls; /* beside watches, index by index; fd -1: let go */
    watch_t *watches;
    size_t count, room;
    size_t holes;
    int is_dispatching;
    loop_timer_t timers[MAX_TIMERS];
    int last_timer;
    hook_t prepares[MAX_HOOKS];
    size_t prepare_count;
    hook_t wakes[MAX_HOOKS];
    size_t wake_count;
    int wake_fd;
    int signal_read, signal_write;
    int is_stopped;
    hook_t on_term, on_hup;
    sigset_t mask_before;
};

/* Write end of the running loop's signal pipe: the one thing that a handler may touch. */
static volatile sig_atomic_t signal_fd = -1;

static void on_signal(int number)
{
    unsigned char byte = (unsigned char)number;
    int saved = errno;
    ssize_t wrote = write(signal_fd, &byte, 1);

    (void)wrote; /* a full pipe means that the loop has signals to read already */
    errno = saved;
}

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

static void signal_set(sigset_t *set)
{
    size_t i;

    (void)sigemptyset(set); /* fails for no argument that is possible here, like its sisters below */
    for (i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)sigaddset(set, signals[i]);
    }
}

/* Fires a wake-up that came in; the counter is emptied before the reapers look, so none is lost. */
static void on_wake_fd(int fd, short revents, void *baton)
{
    pd_loop_t *loop = baton;
    uint64_t count = 0;
    ssize_t got = read(fd, &count, sizeof count);
    size_t i;

    (void)revents;
    (void)got; /* EAGAIN: another round has read it */
    for (i = 0; i < loop->wake_count; i++) {
        loop->wakes[i].fn(loop->wakes[i].baton);
    }
}

static void on_signal_fd(int fd, short revents, void *baton)
{
    pd_loop_t *loop = baton;
    unsigned char bytes[64];
    ssize_t got = read(fd, bytes, sizeof bytes);
    int term = 0, hup = 0;
    ssize_t i;

    (void)revents;
    for (i = 0; i < got; i++) {
        hup += bytes[i] == SIGHUP;
        term += bytes[i] == SIGTERM || bytes[i] == SIGINT;
    }
    if (hup > 0 && loop->on_hup.fn != NULL) {
        loop->on_hup.fn(loop->on_hup.baton);
    }
    for (; term > 0 && loop->on_term.fn != NULL; term--) {
        loop->on_term.fn(loop->on_term.baton);
    }
}

/* From here on the three signals wait until pd_loop_run(), and no thread made later gets them. */
static pd_status_t take_signals(pd_loop_t *loop)
{
    struct sigaction action;
    sigset_t set;
    size_t i;

    signal_set(&set);
    if (pthread_sigmask(SIG_BLOCK, &set, &loop->mask_before) != 0) {
        return PD_E_SYSTEM;
    }
    signal_fd = loop->signal_write;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    (void)sigfillset(&action.sa_mask);
    for (i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], &action, NULL) != 0) {
            return PD_E_SYSTEM;
        }
    }
    return PD_OK;
}

pd_status_t pd_loop_new(apr_pool_t *pool, pd_loop_t **ret)
{
    pd_loop_t *loop = calloc(1, sizeof *loop);
    pd_status_t status = PD_E_SYSTEM;
    int ends[2];

    (void)pool; /* the loop is malloc'd, so that a leak of it is seen */
    if (loop == NULL) {
        return PD_E_NOMEM;
    }
    loop->signal_read = loop->signal_write = -1;
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->wake_fd < 0 || pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
        goto failed;
    }
    loop->signal_read = ends[0];
    loop->signal_write = ends[1];
    status = pd_loop_watch(loop, loop->wake_fd, POLLIN, on_wake_fd, loop);
    if (status == PD_OK) {
        status = pd_loop_watch(loop, loop->signal_read, POLLIN, on_signal_fd, loop);
    }
    if (status == PD_OK) {
        status = take_signals(loop);
    }
    if (status != PD_OK) {
        goto failed;
    }
    *ret = loop;
    return PD_OK;

failed:
    pd_loop_free(&loop);
    return status;
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        (void)close(fd); /* nothing was buffered in it */
    }
}

void pd_loop_free(pd_loop_t **loop)
{
    pd_loop_t *gone = loop == NULL ? NULL : *loop;
    size_t i;

    if (gone == NULL) {
        return;
    }
    *loop = NULL;
    if (gone->signal_write >= 0 && signal_fd == gone->signal_write) {
        for (i = 0; i < sizeof signals / sizeof signals[0]; i++) {
            (void)signal(signals[i], SIG_IGN); /* a late one must not write to a closed descriptor */
        }
        signal_fd = -1;
        (void)pthread_sigmask(SIG_SETMASK, &gone->mask_before, NULL);
    }
    close_fd(gone->wake_fd);
    close_fd(gone->signal_read);
    close_fd(gone->signal_write);
    free(gone->polls);
    free(gone->watches);
    free(gone);
}

/* --- descriptors ----------------------------------------------------------- */

static pd_status_t grow(pd_loop_t *loop)
{
    size_t room = loop->room == 0 ? 16 : loop->room * 2;
    struct pollfd *polls;
    watch_t *watches;

    if (loop->count < loop->room) {
        return PD_OK;
    }
    if (loop->room >= MAX_FDS) {
        return PD_E_FULL;
    }
    polls = realloc(loop->polls, room * sizeof *polls);
    if (polls == NULL) {
        return PD_E_NOMEM;
    }
    loop->polls = polls;
    watches = realloc(loop->watches, room * sizeof *watches);
    if (watches == NULL) {
        return PD_E_NOMEM;
    }
    loop->watches = watches;
    loop->room = room;
    return PD_OK;
}

pd_status_t pd_loop_watch(pd_loop_t *loop, int fd, short events, pd_loop_fd_fn *fn, void *baton)
{
    pd_status_t status;
    size_t i;

    if (fd < 0) {
        return PD_E_INVALID;
    }
    for (i = 0; i < loop->count; i++) {
        if (loop->polls[i].fd == fd) {
            loop->polls[i].events = events;
            loop->watches[i].fn = fn;
            loop->watches[i].baton = baton;
            return PD_OK;
        }
    }
    status = grow(loop);
    if (status != PD_OK) {
        return status;
    }
    loop->polls[loop->count].fd = fd;
    loop->polls[loop->count].events = events;
    loop->polls[loop->count].revents = 0;
    loop->watches[loop->count].fn = fn;
    loop->watches[loop->count].baton = baton;
    loop->count++;
    return PD_OK;
}

static void sweep(pd_loop_t *loop)
{
    size_t from, to = 0;

    if (loop->holes == 0 || loop->is_dispatching) {
        return;
    }
    for (from = 0; from < loop->count; from++) {
        if (loop->polls[from].fd >= 0) {
            loop->polls[to] = loop->polls[from];
            loop->watches[to] = loop->watches[from];
            to++;
        }
    }
    loop->count = to;
    loop->holes = 0;
}

void pd_loop_unwatch(pd_loop_t *loop, int fd)
{
    size_t i;

    if (fd < 0) {
        return;
    }
    for (i = 0; i < loop->count; i++) {
        if (loop->polls[i].fd == fd) {
            loop->polls[i].fd = -1;
            loop->polls[i].revents = 0;
            loop->holes++;
            break;
        }
    }
    sweep(loop);
}

/* --- timers ---------------------------------------------------------------- */

int pd_loop_every(pd_loop_t *loop, int64_t interval_ms, pd_loop_fn *fn, void *baton)
{
    size_t i;

    if (interval_ms <= 0 || interval_ms > INT32_MAX) {
        return PD_E_INVALID;
    }
    for (i = 0; i < MAX_TIMERS; i++) {
        loop_timer_t *timer = &loop->timers[i];

        if (timer->id == 0) {
            loop->last_timer = loop->last_timer == INT32_MAX ? 1 : loop->last_timer + 1;
            timer->id = loop->last_timer;
            timer->interval_us = interval_ms * 1000;
            timer->due = pd_boot_in(interval_ms);
            timer->hook.fn = fn;
            timer->hook.baton = baton;
            return timer->id;
        }
    }
    return PD_E_FULL;
}

void pd_loop_cancel(pd_loop_t *loop, int timer)
{
    size_t i;

    for (i = 0; i < MAX_TIMERS && timer > 0; i++) {
        if (loop->timers[i].id == timer) {
            loop->timers[i].id = 0;
        }
    }
}

/* Milliseconds that poll(2) may wait: -1 without a timer. Rounded up, so that it never wakes early. */
static int next_wait(const pd_loop_t *loop)
{
    int64_t now = pd_boot_now().us;
    int64_t best = -1;
    size_t i;

    for (i = 0; i < MAX_TIMERS; i++) {
        if (loop->timers[i].id != 0) {
            int64_t left = loop->timers[i].due.us - now;

            left = left <= 0 ? 0 : (left + 999) / 1000;
            best = best < 0 || left < best ? left : best;
        }
    }
    return best > 60000 ? 60000 : (int)best; /* boot clock runs on in suspend, poll's does not */
}

static void run_timers(pd_loop_t *loop)
{
    int64_t now = pd_boot_now().us;
    size_t i;

    for (i = 0; i < MAX_TIMERS && !loop->is_stopped; i++) {
        loop_timer_t *timer = &loop->timers[i];

        if (timer->id != 0 && timer->due.us <= now) {
            timer->due.us += timer->interval_us;
            if (timer->due.us <= now) { /* late by more than one: no burst of catching up */
                timer->due.us = now + timer->interval_us;
            }
            timer->hook.fn(timer->hook.baton);
        }
    }
}

/* --- hooks ----------------------------------------------------------------- */

static pd_status_t add_hook(hook_t *hooks, size_t *count, pd_loop_fn *fn, void *baton)
{
    if (*count >= MAX_HOOKS) {
        return PD_E_FULL;
    }
    hooks[*count].fn = fn;
    hooks[*count].baton = baton;
    (*count)++;
    return PD_OK;
}

pd_status_t pd_loop_prepare(pd_loop_t *loop, pd_loop_fn *fn, void *baton)
{
    return add_hook(loop->prepares, &loop->prepare_count, fn, baton);
}

pd_status_t pd_loop_on_wake(pd_loop_t *loop, pd_loop_fn *fn, void *baton)
{
    return add_hook(loop->wakes, &loop->wake_count, fn, baton);
}

void pd_loop_wake(void *loop)
{
    static const uint64_t one = 1;
    int saved = errno;
    ssize_t wrote = write(((pd_loop_t *)loop)->wake_fd, &one, sizeof one);

    (void)wrote; /* EAGAIN: the counter is full of wake-ups that the loop has still to see */
    errno = saved;
}

/* --- the loop -------------------------------------------------------------- */

static void dispatch(pd_loop_t *loop)
{
    size_t count = loop->count; /* what callbacks add now has not been polled */
    size_t i;

    loop->is_dispatching = 1;
    for (i = 0; i < count && !loop->is_stopped; i++) {
        short revents = loop->polls[i].revents;

        if (loop->polls[i].fd >= 0 && revents != 0) {
            loop->polls[i].revents = 0;
            loop->watches[i].fn(loop->polls[i].fd, revents, loop->watches[i].baton);
        }
    }
    loop->is_dispatching = 0;
    sweep(loop);
}

pd_status_t pd_loop_run(pd_loop_t *loop, pd_loop_fn *on_term, pd_loop_fn *on_hup, void *baton)
{
    sigset_t set;
    size_t i;

    loop->on_term.fn = on_term;
    loop->on_term.baton = baton;
    loop->on_hup.fn = on_hup;
    loop->on_hup.baton = baton;
    signal_set(&set);
    if (pthread_sigmask(SIG_UNBLOCK, &set, NULL) != 0) {
        return PD_E_SYSTEM;
    }
    while (!loop->is_stopped) {
        int ready;

        for (i = 0; i < loop->prepare_count && !loop->is_stopped; i++) {
            loop->prepares[i].fn(loop->prepares[i].baton);
        }
        if (loop->is_stopped) {
            break;
        }
        ready = poll(loop->polls, (nfds_t)loop->count, next_wait(loop));
        if (ready < 0 && errno != EINTR && errno != EAGAIN && errno != ENOMEM) {
            return PD_E_SYSTEM;
        }
        run_timers(loop);
        if (ready > 0) {
            dispatch(loop);
        }
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* shutting down is not interrupted */
    return PD_OK;
}

void pd_loop_stop(pd_loop_t *loop)
{
    loop->is_stopped = 1;
}
