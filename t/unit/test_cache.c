/* The caches of a child: what goes first, what lives on while it is used, and threads that want the same at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../../mod_mcp/mcp_cache.h"

#define WATCHDOG_S 120
#define THREADS    8
#define ROUNDS     4000
#define KEYS       24

static apr_pool_t *scratch;
static _Atomic int made, gone;

/* A value knows its own number, so that one which was destroyed or mixed up shows. */
typedef struct value {
    int number;
    int is_alive;
} value_t;

static apr_status_t count_gone(void *baton)
{
    value_t *value = baton;

    value->is_alive = 0;
    atomic_fetch_add(&gone, 1);
    return APR_SUCCESS;
}

static void digest_of(int number, char digest[MCP_DIGEST_HEX + 1])
{
    int i;

    /* the number is spread over all digits, as in a hash */
    for (i = 0; i < MCP_DIGEST_HEX; i++) {
        digest[i] = "0123456789abcdef"[((unsigned)number * 2654435761u >> (i % 7 * 4)) & 15u];
    }
    digest[MCP_DIGEST_HEX] = '\0';
    (void)snprintf(digest + MCP_DIGEST_HEX - 8, 9, "%08x", (unsigned)number);
}

static value_t *make(int number, apr_pool_t **ret)
{
    value_t *value;

    if (mcp_cache_pool(ret) != APR_SUCCESS) {
        return NULL;
    }
    value = apr_pcalloc(*ret, sizeof(*value));
    value->number = number;
    value->is_alive = 1;
    apr_pool_cleanup_register(*ret, value, count_gone, apr_pool_cleanup_null);
    atomic_fetch_add(&made, 1);
    return value;
}

static mcp_cached_t *put(mcp_cache_t *cache, int number, size_t bytes)
{
    char digest[MCP_DIGEST_HEX + 1];
    apr_pool_t *pool = NULL;
    value_t *value = make(number, &pool);

    digest_of(number, digest);
    return value != NULL ? mcp_cache_put(cache, digest, pool, value, bytes) : NULL;
}

static mcp_cached_t *get(mcp_cache_t *cache, int number)
{
    char digest[MCP_DIGEST_HEX + 1];

    digest_of(number, digest);
    return mcp_cache_get(cache, digest);
}

static int holds(mcp_cache_t *cache, int number)
{
    mcp_cached_t *cached = get(cache, number);

    if (cached != NULL) {
        assert_int_equal(((value_t *)cached->value)->number, number);
        assert_true(((value_t *)cached->value)->is_alive);
        mcp_cache_release(cache, cached);
    }
    return cached != NULL;
}

static void fill(mcp_cache_t *cache, int from, int to, size_t bytes)
{
    for (; from <= to; from++) {
        mcp_cached_t *cached = put(cache, from, bytes);

        assert_non_null(cached);
        mcp_cache_release(cache, cached);
    }
}

static int setup(void **state)
{
    mcp_cache_t *cache = NULL;

    (void)alarm(WATCHDOG_S);
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&scratch, NULL) != APR_SUCCESS ||
        mcp_cache_create(100, &cache) != APR_SUCCESS) {
        return -1;
    }
    atomic_store(&made, 0);
    atomic_store(&gone, 0);
    *state = cache;
    return 0;
}

static int teardown(void **state)
{
    mcp_cache_t *cache = *state;

    apr_pool_destroy(scratch); /* what is released with it is, before the cache goes */
    mcp_cache_free(&cache);
    if (cache != NULL || atomic_load(&made) != atomic_load(&gone)) {
        return -1; /* a pool was left behind */
    }
    apr_terminate();
    (void)alarm(0);
    return 0;
}

static void what_was_put_is_found_and_nothing_else(void **state)
{
    mcp_cached_t *cached = put(*state, 1, 10);
    mcp_cached_t *again = get(*state, 1);

    assert_non_null(cached);
    assert_ptr_equal(again, cached);
    assert_ptr_equal(again->value, cached->value);
    assert_null(get(*state, 2));
    assert_null(mcp_cache_get(*state, ""));
    mcp_cache_release(*state, cached);
    mcp_cache_release(*state, again);
    assert_true(holds(*state, 1));
    assert_int_equal(atomic_load(&gone), 0);
}

static void the_least_recently_used_goes_first(void **state)
{
    fill(*state, 1, 10, 10); /* exactly full */
    assert_int_equal(atomic_load(&gone), 0);
    assert_true(holds(*state, 1)); /* now 2 is the oldest */
    fill(*state, 11, 11, 10);
    assert_int_equal(atomic_load(&gone), 1);
    assert_false(holds(*state, 2));
    assert_true(holds(*state, 1));
    fill(*state, 12, 12, 25); /* three make room: 3, 4, 5 */
    assert_int_equal(atomic_load(&gone), 4);
    assert_false(holds(*state, 5));
    assert_true(holds(*state, 6));
    assert_true(holds(*state, 12));
}

static void what_is_in_use_lives_on_after_it_was_dropped(void **state)
{
    mcp_cached_t *held = put(*state, 1, 60);
    const value_t *value = held->value;

    fill(*state, 2, 2, 60); /* drops 1 from the tables */
    assert_null(get(*state, 1));
    assert_int_equal(atomic_load(&gone), 0);
    assert_true(value->is_alive);
    assert_int_equal(value->number, 1);
    fill(*state, 1, 1, 30); /* the same digest again is another entry meanwhile */
    assert_true(holds(*state, 1));
    mcp_cache_release(*state, held);
    assert_int_equal(atomic_load(&gone), 1);
    assert_true(holds(*state, 1));
}

static void every_user_of_a_dropped_entry_has_to_let_go(void **state)
{
    mcp_cached_t *first = put(*state, 1, 60);
    mcp_cached_t *second = get(*state, 1);

    fill(*state, 2, 2, 60);
    mcp_cache_release(*state, first);
    assert_int_equal(atomic_load(&gone), 0);
    assert_true(((const value_t *)second->value)->is_alive);
    mcp_cache_release(*state, second);
    assert_int_equal(atomic_load(&gone), 1);
}

static void of_two_that_were_made_the_first_stays(void **state)
{
    mcp_cached_t *first = put(*state, 1, 10);
    mcp_cached_t *second = put(*state, 1, 10);

    assert_ptr_equal(second, first);
    assert_int_equal(atomic_load(&made), 2);
    assert_int_equal(atomic_load(&gone), 1); /* the pool of the second */
    mcp_cache_release(*state, first);
    mcp_cache_release(*state, second);
    fill(*state, 2, 10, 10); /* 1 was counted once: all ten fit */
    assert_int_equal(atomic_load(&gone), 1);
    assert_true(holds(*state, 1));
}

static void a_value_larger_than_the_cache_stays_until_the_next_comes(void **state)
{
    fill(*state, 1, 3, 10);
    fill(*state, 4, 4, 5000);
    assert_int_equal(atomic_load(&gone), 3);
    assert_true(holds(*state, 4));
    assert_true(holds(*state, 4));
    fill(*state, 5, 5, 10);
    assert_false(holds(*state, 4));
    assert_true(holds(*state, 5));
    fill(*state, 6, 14, 10); /* its bytes were given back */
    assert_true(holds(*state, 5));
}

static void a_pool_that_is_cleared_lets_go(void **state)
{
    apr_pool_t *request;
    mcp_cached_t *held;

    assert_int_equal(apr_pool_create(&request, scratch), APR_SUCCESS);
    held = put(*state, 1, 60);
    mcp_cache_release_with(*state, held, request);
    fill(*state, 2, 2, 60);
    assert_int_equal(atomic_load(&gone), 0);
    apr_pool_clear(request);
    assert_int_equal(atomic_load(&gone), 1);
    apr_pool_destroy(request);
    assert_int_equal(atomic_load(&gone), 1);
}

static void freeing_nothing_is_fine(void **state)
{
    mcp_cache_t *none = NULL;

    (void)state;
    mcp_cache_free(&none);
    assert_null(none);
}

/* --- threads --------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    mcp_cache_t *cache;
    pthread_barrier_t *start;
    unsigned seed;
    int wrong;
    mcp_cached_t *cached;
} worker_t;

static int next_number(worker_t *worker, int below)
{
    worker->seed = worker->seed * 1103515245u + 12345u;
    return (int)(worker->seed >> 16) % below;
}

static void *use_many(void *baton)
{
    worker_t *worker = baton;
    int i;

    (void)pthread_barrier_wait(worker->start);
    for (i = 0; i < ROUNDS; i++) {
        int number = next_number(worker, KEYS);
        mcp_cached_t *cached = get(worker->cache, number);
        const value_t *value;

        if (cached == NULL) {
            cached = put(worker->cache, number, 10);
        }
        if (cached == NULL) {
            worker->wrong++;
            continue;
        }
        value = cached->value;
        worker->wrong += value->number != number || !value->is_alive;
        mcp_cache_release(worker->cache, cached);
    }
    return NULL;
}

static void *put_one(void *baton)
{
    worker_t *worker = baton;

    (void)pthread_barrier_wait(worker->start);
    worker->cached = put(worker->cache, 7, 10);
    return NULL;
}

static void run(worker_t *workers, int count, mcp_cache_t *cache, void *(*body)(void *))
{
    pthread_barrier_t start;
    int i;

    assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)count), 0);
    memset(workers, 0, sizeof(*workers) * (size_t)count);
    for (i = 0; i < count; i++) {
        workers[i].cache = cache;
        workers[i].start = &start;
        workers[i].seed = (unsigned)i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
    for (i = 0; i < count; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    }
    assert_int_equal(pthread_barrier_destroy(&start), 0);
}

static void threads_never_see_a_value_that_is_gone_or_another_one(void **state)
{
    worker_t workers[THREADS];
    int i;

    run(workers, THREADS, *state, use_many);
    for (i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].wrong, 0);
    }
    /* at most ten of 24 fit, so that most rounds drop something */
    assert_true(atomic_load(&gone) > ROUNDS / 10);
}

static void two_threads_that_race_get_one_entry(void **state)
{
    worker_t workers[2];
    int round;

    for (round = 0; round < 200; round++) {
        int before = atomic_load(&gone);

        run(workers, 2, *state, put_one);
        assert_non_null(workers[0].cached);
        assert_ptr_equal(workers[0].cached, workers[1].cached);
        assert_int_equal(atomic_load(&gone), before + (round == 0 ? 1 : 2));
        mcp_cache_release(*state, workers[0].cached);
        mcp_cache_release(*state, workers[1].cached);
        assert_true(holds(*state, 7));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_put_is_found_and_nothing_else, setup, teardown),
        cmocka_unit_test_setup_teardown(the_least_recently_used_goes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_in_use_lives_on_after_it_was_dropped, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(every_user_of_a_dropped_entry_has_to_let_go, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(of_two_that_were_made_the_first_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_larger_than_the_cache_stays_until_the_next_comes,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_pool_that_is_cleared_lets_go, setup, teardown),
        cmocka_unit_test_setup_teardown(freeing_nothing_is_fine, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_never_see_a_value_that_is_gone_or_another_one,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(two_threads_that_race_get_one_entry, setup, teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
