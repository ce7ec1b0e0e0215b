/* Clocks: one that is set back takes nothing back, deadlines, and moments as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pd_time.h"

#define S_US    INT64_C(1000000)
#define HOUR_US (3600 * S_US)

/* First: nothing is noted yet. */
static void a_time_that_has_passed_holds_nothing_up(void **state)
{
    pd_wall_t before = pd_wall_now();
    pd_wall_t steady;

    (void)state;
    pd_wall_note((pd_wall_t){0});
    pd_wall_note((pd_wall_t){-HOUR_US});
    pd_wall_note((pd_wall_t){before.us - HOUR_US});
    steady = pd_wall_steady();
    assert_true(steady.us >= before.us);
    assert_true(steady.us <= pd_wall_now().us);
}

/* What stands in the trail lies an hour ahead of the clock: the clock was set back by that since. */
static void a_clock_that_is_set_back_revives_no_grant(void **state)
{
    pd_wall_t recorded = {pd_wall_now().us + HOUR_US};
    pd_wall_t expired = {recorded.us - HOUR_US / 2}; /* the end of a grant that has passed once */

    (void)state;
    pd_wall_note(recorded);
    assert_true(pd_wall_now().us < expired.us);
    assert_true(pd_wall_steady().us >= expired.us);
    assert_int_equal(pd_wall_steady().us, recorded.us);
    pd_wall_note((pd_wall_t){recorded.us - 1}); /* an earlier one takes nothing back */
    assert_int_equal(pd_wall_steady().us, recorded.us);
    pd_wall_note((pd_wall_t){recorded.us + S_US});
    assert_int_equal(pd_wall_steady().us, recorded.us + S_US);
}

static void a_deadline_is_left_until_it_has_passed(void **state)
{
    pd_boot_t start = pd_boot_now();
    pd_boot_t then = pd_boot_in(60000);
    int64_t left = pd_boot_left_ms(then);

    (void)state;
    assert_true(then.us >= start.us + 60 * S_US);
    assert_true(then.us <= pd_boot_now().us + 60 * S_US);
    assert_true(left > 0 && left <= 60000);
    assert_int_equal(pd_boot_left_ms(start), 0);
    assert_int_equal(pd_boot_left_ms((pd_boot_t){0}), 0);
    assert_int_equal(pd_boot_left_ms((pd_boot_t){INT64_MIN}), 0);
    assert_int_equal(pd_boot_left_ms(pd_boot_in(0)), 0);
    assert_int_equal(pd_boot_left_ms(pd_boot_in(-1000)), 0);
}

static void deadlines_beyond_the_clock_are_its_ends(void **state)
{
    (void)state;
    assert_int_equal(pd_boot_in(INT64_MAX).us, INT64_MAX);
    assert_int_equal(pd_boot_in(INT64_MIN).us, 0);
    assert_int_equal(pd_boot_left_ms((pd_boot_t){INT64_MAX}), INT32_MAX);
    assert_int_equal(pd_boot_left_ms(pd_boot_in((int64_t)INT32_MAX + 60000)), INT32_MAX);
}

static void a_moment_is_written_in_utc_with_microseconds(void **state)
{
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {{0, "1970-01-01T00:00:00.000000Z"},
                {1, "1970-01-01T00:00:00.000001Z"},
                {-1, "1969-12-31T23:59:59.999999Z"},
                {-S_US, "1969-12-31T23:59:59.000000Z"},
                {951782400 * S_US, "2000-02-29T00:00:00.000000Z"},
                {INT64_C(1785196800123456), "2026-07-28T00:00:00.123456Z"},
                {253402300799 * S_US + 999999, "9999-12-31T23:59:59.999999Z"},
                {253402300800 * S_US, "9999-12-31T23:59:59.000000Z"},
                {-62167219200 * S_US, "0000-01-01T00:00:00.000000Z"},
                {-62167219200 * S_US - 1, "0000-01-01T00:00:00.000000Z"},
                {INT64_MAX, "9999-12-31T23:59:59.000000Z"},
                {INT64_MIN, "0000-01-01T00:00:00.000000Z"}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[32];

        memset(text, 'x', sizeof(text));
        pd_wall_text((pd_wall_t){rows[i].us}, text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_that_has_passed_holds_nothing_up),
        cmocka_unit_test(a_clock_that_is_set_back_revives_no_grant),
        cmocka_unit_test(a_deadline_is_left_until_it_has_passed),
        cmocka_unit_test(deadlines_beyond_the_clock_are_its_ends),
        cmocka_unit_test(a_moment_is_written_in_utc_with_microseconds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
