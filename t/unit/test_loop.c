/* The loop: descriptors, timers, wake-ups of other threads, signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "../../policyd/pd_loop.h"

/* What a test counts; every test has its own loop under a watchdog. */
typedef struct world {
    pd_loop_t *loop;
    int pipe[2], other[2];
    int ticks, wakes, prepares, terms, hups, reads, others;
    int timer;
    int watchdog_fired;
} world_t;

static void watchdog(void *baton)
{
    world_t *world = baton;

    world->watchdog_fired = 1;
    pd_loop_stop(world->loop);
}

static int setup(void **state)
{
    world_t *world = calloc(1, sizeof *world);

    if (world == NULL || pd_loop_new(NULL, &world->loop) != PD_OK || pipe(world->pipe) != 0 ||
        pipe(world->other) != 0 || pd_loop_every(world->loop, 20000, watchdog, world) <= 0) {
        return -1;
    }
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_t *world = *state;
    int failed = world->watchdog_fired;

    pd_loop_free(&world->loop);
    (void)close(world->pipe[0]);
    (void)close(world->pipe[1]);
    (void)close(world->other[0]);
    (void)close(world->other[1]);
    free(world);
    return failed;
}

static void run(world_t *world)
{
    assert_int_equal(pd_loop_run(world->loop, NULL, NULL, world), PD_OK);
    assert_false(world->watchdog_fired);
}

static void say(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

static void on_read(int fd, short revents, void *baton)
{
    world_t *world = baton;
    char byte;

    assert_true((revents & POLLIN) != 0);
    assert_int_equal(read(fd, &byte, 1), 1);
    world->reads++;
    pd_loop_stop(world->loop);
}

static void a_readable_descriptor_is_told(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_loop_watch(world->loop, world->pipe[0], POLLIN, on_read, world), PD_OK);
    say(world->pipe[1]);
    run(world);
    assert_int_equal(world->reads, 1);
}

static void count_and_stop(void *baton)
{
    world_t *world = baton;

    if (++world->ticks == 3) {
        pd_loop_stop(world->loop);
    }
}

static void an_unwatched_descriptor_is_not_told(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_loop_watch(world->loop, world->pipe[0], POLLIN, on_read, world), PD_OK);
    pd_loop_unwatch(world->loop, world->pipe[0]);
    pd_loop_unwatch(world->loop, world->pipe[0]);
    say(world->pipe[1]);
    assert_true(pd_loop_every(world->loop, 1, count_and_stop, world) > 0);
    run(world);
    assert_int_equal(world->reads, 0);
}

static void watching_again_changes_the_events(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_loop_watch(world->loop, world->pipe[0], POLLIN, on_read, world), PD_OK);
    assert_int_equal(pd_loop_watch(world->loop, world->pipe[0], 0, on_read, world), PD_OK);
    say(world->pipe[1]);
    assert_true(pd_loop_every(world->loop, 1, count_and_stop, world) > 0);
    run(world);
    assert_int_equal(world->reads, 0);
}

static void must_not_run(int fd, short revents, void *baton)
{
    (void)fd;
    (void)revents;
    ((world_t *)baton)->others++;
}

/* Takes the neighbour's number while the neighbour has an event in this very round. */
static void steal_number(int fd, short revents, void *baton)
{
    world_t *world = baton;
    char byte;
    int victim = world->other[0];

    (void)revents;
    assert_int_equal(read(fd, &byte, 1), 1);
    pd_loop_unwatch(world->loop, victim);
    /* the number now means a descriptor that has nothing to read */
    assert_int_equal(dup2(world->pipe[0], victim), victim);
    assert_int_equal(pd_loop_watch(world->loop, victim, POLLIN, must_not_run, world), PD_OK);
    assert_true(pd_loop_every(world->loop, 1, count_and_stop, world) > 0);
}

static void an_event_never_reaches_the_next_owner_of_its_number(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_loop_watch(world->loop, world->pipe[0], POLLIN, steal_number, world), PD_OK);
    assert_int_equal(pd_loop_watch(world->loop, world->other[0], POLLIN, must_not_run, world), PD_OK);
    say(world->pipe[1]);
    say(world->other[1]);
    run(world);
    assert_int_equal(world->others, 0);
}

static void many_descriptors_are_served_after_holes(void **state)
{
    world_t *world = *state;
    int fds[200];
    size_t i;

    for (i = 0; i < 200; i++) {
        fds[i] = dup(world->other[0]);
        assert_true(fds[i] >= 0);
        assert_int_equal(pd_loop_watch(world->loop, fds[i], 0, must_not_run, world), PD_OK);
    }
    assert_int_equal(pd_loop_watch(world->loop, world->pipe[0], POLLIN, on_read, world), PD_OK);
    for (i = 0; i < 200; i += 2) {
        pd_loop_unwatch(world->loop, fds[i]);
    }
    say(world->pipe[1]);
    run(world);
    assert_int_equal(world->reads, 1);
    for (i = 0; i < 200; i++) {
        (void)close(fds[i]);
    }
}

static void a_negative_descriptor_is_refused(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_loop_watch(world->loop, -1, POLLIN, on_read, world), PD_E_INVALID);
}

static void a_timer_runs_again_and_again(void **state)
{
    world_t *world = *state;
    pd_boot_t start = pd_boot_now();

    assert_true(pd_loop_every(world->loop, 2, count_and_stop, world) > 0);
    run(world);
    assert_int_equal(world->ticks, 3);
    assert_true(pd_boot_now().us - start.us >= 6000);
}

static void cancel_itself(void *baton)
{
    world_t *world = baton;

    world->ticks += 10;
    pd_loop_cancel(world->loop, world->timer);
}

static void a_cancelled_timer_runs_no_more(void **state)
{
    world_t *world = *state;

    world->timer = pd_loop_every(world->loop, 1, cancel_itself, world);
    assert_true(world->timer > 0);
    world->ticks = -10;
    assert_true(pd_loop_every(world->loop, 5, count_and_stop, world) > 0);
    run(world);
    assert_int_equal(world->ticks, 3);
}

static void a_timer_without_an_interval_is_refused(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_loop_every(world->loop, 0, count_and_stop, world), PD_E_INVALID);
    assert_int_equal(pd_loop_every(world->loop, -1, count_and_stop, world), PD_E_INVALID);
}

static void timers_have_a_bound(void **state)
{
    world_t *world = *state;
    int i, last = 1;

    for (i = 0; i < 100 && last > 0; i++) {
        last = pd_loop_every(world->loop, 1000, count_and_stop, world);
    }
    assert_int_equal(last, PD_E_FULL);
}

static void on_wake(void *baton)
{
    world_t *world = baton;

    world->wakes++;
    pd_loop_stop(world->loop);
}

static void *wake_it(void *baton)
{
    pd_loop_wake(((world_t *)baton)->loop);
    return NULL;
}

static void a_thread_wakes_the_loop(void **state)
{
    world_t *world = *state;
    pthread_t thread;

    assert_int_equal(pd_loop_on_wake(world->loop, on_wake, world), PD_OK);
    assert_int_equal(pthread_create(&thread, NULL, wake_it, world), 0);
    run(world);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(world->wakes, 1);
}

static void a_wake_up_before_the_run_is_kept(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_loop_on_wake(world->loop, on_wake, world), PD_OK);
    pd_loop_wake(world->loop);
    pd_loop_wake(world->loop);
    run(world);
    assert_int_equal(world->wakes, 1);
}

static void on_prepare(void *baton)
{
    world_t *world = baton;

    if (++world->prepares == 2) {
        pd_loop_stop(world->loop);
    } else {
        pd_loop_wake(world->loop);
    }
}

static void a_prepare_hook_runs_before_each_poll(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_loop_prepare(world->loop, on_prepare, world), PD_OK);
    run(world);
    assert_int_equal(world->prepares, 2);
}

static void on_term(void *baton)
{
    world_t *world = baton;

    world->terms++;
    pd_loop_stop(world->loop);
}

static void on_hup(void *baton)
{
    world_t *world = baton;

    world->hups++;
    assert_int_equal(kill(getpid(), SIGTERM), 0);
}

static void signals_run_on_the_loop_and_wait_for_it(void **state)
{
    world_t *world = *state;

    assert_int_equal(kill(getpid(), SIGHUP), 0); /* blocked since pd_loop_new(): kept, not deadly */
    assert_int_equal(world->hups, 0);
    assert_int_equal(pd_loop_run(world->loop, on_term, on_hup, world), PD_OK);
    assert_false(world->watchdog_fired);
    assert_int_equal(world->hups, 1);
    assert_int_equal(world->terms, 1);
}

static void freeing_nothing_is_fine(void **state)
{
    pd_loop_t *none = NULL;

    (void)state;
    pd_loop_free(&none);
    pd_loop_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_readable_descriptor_is_told),
        TEST(an_unwatched_descriptor_is_not_told),
        TEST(watching_again_changes_the_events),
        TEST(an_event_never_reaches_the_next_owner_of_its_number),
        TEST(many_descriptors_are_served_after_holes),
        TEST(a_negative_descriptor_is_refused),
        TEST(a_timer_runs_again_and_again),
        TEST(a_cancelled_timer_runs_no_more),
        TEST(a_timer_without_an_interval_is_refused),
        TEST(timers_have_a_bound),
        TEST(a_thread_wakes_the_loop),
        TEST(a_wake_up_before_the_run_is_kept),
        TEST(a_prepare_hook_runs_before_each_poll),
        TEST(signals_run_on_the_loop_and_wait_for_it),
        cmocka_unit_test(freeing_nothing_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
