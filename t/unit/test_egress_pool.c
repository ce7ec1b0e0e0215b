/* Idle lines and caps of mcp_egress_pool.c, with small integers for lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mcp_egress_pool.h"

static int lines[64];
static int closed[64];

static void close_line(void *line)
{
    ptrdiff_t at = (int *)line - lines;
    closed[at]++;
}

static int count_closed(void)
{
    int count = 0;
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++)
        count += closed[i];
    return count;
}

static int start_apr(void **state)
{
    apr_pool_t *pool;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS)
        return -1;
    *state = pool;
    return 0;
}

static int stop_apr(void **state)
{
    apr_pool_destroy(*state);
    apr_terminate();
    return 0;
}

static mcp_egress_pool_t *make(void **state, int per_origin, int total, int64_t idle_ms)
{
    mcp_egress_pool_limits_t limits = {.max_calls = 3,
                                       .max_per_connection = 2,
                                       .idle_per_origin = per_origin,
                                       .idle_total = total,
                                       .idle_ms = idle_ms};
    mcp_egress_pool_t *pool = NULL;
    memset(closed, 0, sizeof closed);
    assert_int_equal(mcp_egress_pool_create(&limits, close_line, *state, &pool), APR_SUCCESS);
    return pool;
}

static void a_line_is_lent_to_its_origin_and_connection_only(void **state)
{
    mcp_egress_pool_t *pool = make(state, 4, 8, 60000);
    mcp_egress_pool_keep(pool, "http://a:80", "x", &lines[0]);
    assert_null(mcp_egress_pool_take(pool, "http://a:80", "y"));
    assert_null(mcp_egress_pool_take(pool, "http://a:81", "x"));
    assert_null(mcp_egress_pool_take(pool, "http://a:80", ""));
    assert_null(mcp_egress_pool_take(pool, "http://a:8", "0x"));
    assert_ptr_equal(mcp_egress_pool_take(pool, "http://a:80", "x"), &lines[0]);
    assert_null(mcp_egress_pool_take(pool, "http://a:80", "x"));
    assert_int_equal(count_closed(), 0);
    mcp_egress_pool_close(pool);
}

static void the_youngest_is_lent_first(void **state)
{
    mcp_egress_pool_t *pool = make(state, 4, 8, 60000);
    mcp_egress_pool_keep(pool, "o", "x", &lines[0]);
    mcp_egress_pool_keep(pool, "o", "x", &lines[1]);
    assert_ptr_equal(mcp_egress_pool_take(pool, "o", "x"), &lines[1]);
    assert_ptr_equal(mcp_egress_pool_take(pool, "o", "x"), &lines[0]);
    mcp_egress_pool_close(pool);
}

static void the_oldest_of_an_origin_goes_first(void **state)
{
    mcp_egress_pool_t *pool = make(state, 2, 8, 60000);
    mcp_egress_pool_keep(pool, "other", "x", &lines[9]);
    for (size_t i = 0; i < 3; i++)
        mcp_egress_pool_keep(pool, "o", i == 0 ? "x" : "y", &lines[i]);
    assert_int_equal(closed[0], 1);
    assert_int_equal(count_closed(), 1);
    mcp_egress_pool_close(pool);
    assert_int_equal(count_closed(), 4);
}

static void the_oldest_of_all_goes_at_the_total(void **state)
{
    static const char *const origins[] = {"a", "b", "c", "d"};
    mcp_egress_pool_t *pool = make(state, 2, 3, 60000);
    for (size_t i = 0; i < 4; i++)
        mcp_egress_pool_keep(pool, origins[i], "x", &lines[i]);
    assert_int_equal(closed[0], 1);
    assert_int_equal(count_closed(), 1);
    mcp_egress_pool_close(pool);
}

static void nothing_is_kept_where_nothing_may_be(void **state)
{
    mcp_egress_pool_t *none = make(state, 0, 8, 60000);
    mcp_egress_pool_keep(none, "o", "x", &lines[0]);
    assert_int_equal(closed[0], 1);
    mcp_egress_pool_close(none);
    mcp_egress_pool_t *aged = make(state, 2, 8, 0);
    mcp_egress_pool_keep(aged, "o", "x", &lines[0]);
    assert_int_equal(closed[0], 1);
    mcp_egress_pool_close(aged);
}

static void an_old_line_is_closed_and_not_lent(void **state)
{
    mcp_egress_pool_t *pool = make(state, 4, 8, 2);
    mcp_egress_pool_keep(pool, "o", "x", &lines[0]);
    int64_t end_ms = mcp_egress_now_ms() + 3;
    while (mcp_egress_now_ms() < end_ms)
        (void)sched_yield(); /* the clock is the event */
    mcp_egress_pool_tidy(pool);
    assert_int_equal(closed[0], 1);
    assert_null(mcp_egress_pool_take(pool, "o", "x"));
    mcp_egress_pool_close(pool);
    assert_int_equal(count_closed(), 1);
}

static void lines_of_a_parent_are_forgotten_not_closed(void **state)
{
    mcp_egress_pool_t *pool = make(state, 4, 8, 60000);
    mcp_egress_pool_keep(pool, "o", "x", &lines[0]);
    assert_int_equal(mcp_egress_pool_enter(pool, "x"), MCP_EGRESS_PLACE_TAKEN);
    assert_int_equal(mcp_egress_pool_enter(pool, "x"), MCP_EGRESS_PLACE_TAKEN);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int bad = mcp_egress_pool_take(pool, "o", "x") != NULL;
        bad |= mcp_egress_pool_enter(pool, "x") != MCP_EGRESS_PLACE_TAKEN;
        mcp_egress_pool_keep(pool, "o", "x", &lines[1]);
        bad |= mcp_egress_pool_take(pool, "o", "x") != &lines[1];
        bad |= count_closed() != 0;
        _exit(bad);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        mcp_egress_pool_close(pool);
        _exit(count_closed() != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ptr_equal(mcp_egress_pool_take(pool, "o", "x"), &lines[0]);
    mcp_egress_pool_close(pool);
}

static void places_are_counted_by_connection_and_by_child(void **state)
{
    mcp_egress_pool_t *pool = make(state, 4, 8, 60000);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(mcp_egress_pool_enter(pool, "x"), MCP_EGRESS_PLACE_TAKEN);
        assert_int_equal(mcp_egress_pool_enter(pool, "x"), MCP_EGRESS_PLACE_TAKEN);
        assert_int_equal(mcp_egress_pool_enter(pool, "x"), MCP_EGRESS_PLACE_CONNECTION_FULL);
        assert_int_equal(mcp_egress_pool_enter(pool, "y"), MCP_EGRESS_PLACE_TAKEN);
        assert_int_equal(mcp_egress_pool_enter(pool, "y"), MCP_EGRESS_PLACE_CHILD_FULL);
        assert_int_equal(mcp_egress_pool_enter(pool, "z"), MCP_EGRESS_PLACE_CHILD_FULL);
        mcp_egress_pool_leave(pool, "unknown");
        assert_int_equal(mcp_egress_pool_enter(pool, "z"), MCP_EGRESS_PLACE_CHILD_FULL);
        mcp_egress_pool_leave(pool, "x");
        assert_int_equal(mcp_egress_pool_enter(pool, "z"), MCP_EGRESS_PLACE_TAKEN);
        mcp_egress_pool_leave(pool, "x");
        mcp_egress_pool_leave(pool, "y");
        mcp_egress_pool_leave(pool, "z");
        mcp_egress_pool_leave(pool, "z"); /* gone already: changes nothing */
    }
    mcp_egress_pool_close(pool);
    mcp_egress_pool_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_lent_to_its_origin_and_connection_only),
        cmocka_unit_test(the_youngest_is_lent_first),
        cmocka_unit_test(the_oldest_of_an_origin_goes_first),
        cmocka_unit_test(the_oldest_of_all_goes_at_the_total),
        cmocka_unit_test(nothing_is_kept_where_nothing_may_be),
        cmocka_unit_test(an_old_line_is_closed_and_not_lent),
        cmocka_unit_test(lines_of_a_parent_are_forgotten_not_closed),
        cmocka_unit_test(places_are_counted_by_connection_and_by_child),
    };
    return cmocka_run_group_tests(tests, start_apr, stop_apr);
}
