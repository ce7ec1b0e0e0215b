/* Spans and moments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../policyd/pd_span.h"

#define NOW INT64_C(1700000000000000)

static void spans_take_a_count_and_a_unit(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: refused */
    } cases[] = {{"0", 0},
                 {"90", 90},
                 {"90s", 90},
                 {"15m", 900},
                 {"12h", 43200},
                 {"90d", 7776000},
                 {"2w", 1209600},
                 {"", -1},
                 {"h", -1},
                 {"1y", -1},
                 {"1hh", -1},
                 {"-1h", -1},
                 {" 1h", -1},
                 {"1 h", -1},
                 {"1.5h", -1},
                 {"999999999999", -1},
                 {"99999999999999999999h", -1},
                 {"999999999w", -1},
                 {NULL, -1}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t seconds = -1;
        int is_span = pd_span_parse(cases[i].text, &seconds);

        if (is_span != (cases[i].seconds >= 0) || seconds != cases[i].seconds) {
            fail_msg("%s", cases[i].text != NULL ? cases[i].text : "NULL");
        }
    }
}

static void moments_are_dates_times_or_spans_before_now(void **state)
{
    static const struct {
        const char *text;
        int64_t us; /* -1: refused */
    } cases[] = {
        {"1h", NOW - INT64_C(3600000000)},
        {"1970-01-01", 0},
        {"2023-11-14T22:13:20Z", NOW},
        {"2023-11-14T22:13:20.5Z", NOW + 500000},
        {"2023-11-14T22:13:20.123456789Z", NOW + 123456},
        {"2023-11-14T23:13:20+01:00", NOW},
        {"2023-11-14T16:43:20-05:30", NOW},
        {"2023-11-14 22:13:20", NOW},
        {"2024-02-29", INT64_C(1709164800000000)},
        {"2023-02-29", -1},
        {"2023-13-01", -1},
        {"2023-00-10", -1},
        {"2023-11-31", -1},
        {"1969-12-31", -1},
        {"2023-11-14T24:00:00Z", -1},
        {"2023-11-14T22:60:00Z", -1},
        {"2023-11-14T22:13Z", -1},
        {"2023-11-14T22:13:20.Z", -1},
        {"2023-11-14T22:13:20Zx", -1},
        {"2023-11-14T22:13:20+1:00", -1},
        {"2023-11-14T22:13:20+24:00", -1},
        {"2023-11-14T", -1},
        {"20231114", NOW - INT64_C(20231114000000)},
        {"yesterday", -1},
        {"", -1},
        {NULL, -1},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t us = -1;
        int is_moment = pd_span_moment(cases[i].text, NOW, &us);

        if (is_moment != (us != -1) || us != cases[i].us) {
            fail_msg("%s: %lld", cases[i].text != NULL ? cases[i].text : "NULL", (long long)us);
        }
    }
}

static void no_prefix_of_a_moment_crashes(void **state)
{
    const char *whole = "2023-11-14T22:13:20.123456+01:00";
    char text[64];
    size_t i;

    (void)state;
    for (i = 0; i <= strlen(whole); i++) {
        int64_t us = 0;

        memcpy(text, whole, i);
        text[i] = '\0';
        (void)pd_span_moment(text, NOW, &us);
    }
    assert_int_equal(i, strlen(whole) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_take_a_count_and_a_unit),
        cmocka_unit_test(moments_are_dates_times_or_spans_before_now),
        cmocka_unit_test(no_prefix_of_a_moment_crashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
