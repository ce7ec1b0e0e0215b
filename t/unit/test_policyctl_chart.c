/* The bar chart: whatever labels hold, it is one well-formed document without scripts and outside references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../policyd/policyctl_chart.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int count_of(const char *text, const char *part)
{
    int count = 0;

    for (text = strstr(text, part); text != NULL; text = strstr(text + 1, part)) {
        count++;
    }
    return count;
}

/* Elements open and close in order, attributes are quoted, entities are known: what an XML reader insists on. */
static void must_be_well_formed(const char *text)
{
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    const char *open[16] = {NULL};
    int depth = 0;
    const char *at;

    for (at = text; *at != '\0'; at++) {
        if (*at == '&') {
            size_t i;

            for (i = 0; i < COUNT(entities) && strncmp(at, entities[i], strlen(entities[i])) != 0; i++) {
            }
            assert_in_range(i, 0, COUNT(entities) - 1);
        }
        if (*at == '<') {
            const char *end = strchr(at, '>');
            size_t bytes = strcspn(at + 1, " />");

            assert_non_null(end);
            assert_null(memchr(at + 1, '<', (size_t)(end - at - 1)));
            if (at[1] == '/') {
                assert_true(depth-- > 0);
                assert_memory_equal(at + 2, open[depth], (size_t)(end - at - 2));
            } else if (end[-1] != '/') {
                assert_in_range(depth, 0, (int)COUNT(open) - 1);
                open[depth++] = at + 1;
                assert_true(bytes > 0);
            }
        }
        assert_true((unsigned char)*at >= 0x20 || *at == '\n');
    }
    assert_int_equal(depth, 0);
}

static void labels_are_quoted_and_cut(void **state)
{
    char endless[4000];
    const ctl_chart_bar_t bars[] = {{"<group> & \"more\"", NULL, 0, CTL_CHART_PART},
                                    {NULL, "<script>alert('x')</script>", 10, CTL_CHART_BEFORE},
                                    {NULL, "a\"><image href=\"http://example.org/\"/>", 5, CTL_CHART_AFTER},
                                    {NULL, "]]>&amp;\x1b[31m\xe2\x80\xae\n\x01", 1, CTL_CHART_PART},
                                    {NULL, endless, 7, CTL_CHART_PART}};
    ctl_text_t chart;

    (void)state;
    memset(endless, '<', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    chart = ctl_chart("</title><script/>", endless, bars, COUNT(bars));
    assert_non_null(chart.bytes);
    must_be_well_formed(chart.bytes);
    assert_int_equal(count_of(chart.bytes, "<script"), 0);
    assert_int_equal(count_of(chart.bytes, "<image"), 0);
    assert_int_equal(count_of(chart.bytes, "<![CDATA"), 0);
    assert_int_equal(count_of(chart.bytes, "\x1b"), 0);
    assert_int_equal(count_of(chart.bytes, "\xe2\x80\xae"), 0);
    assert_non_null(strstr(chart.bytes, "&lt;group&gt; &amp; &quot;more&quot;"));
    assert_in_range(chart.count, 1, 8000);
    free(chart.bytes);
}

static void it_says_what_it_shows_to_those_who_cannot_see_it(void **state)
{
    const ctl_chart_bar_t bar = {NULL, "crm", 12345, CTL_CHART_PART};
    ctl_text_t chart = ctl_chart("Weights", "One bar.", &bar, 1);

    (void)state;
    must_be_well_formed(chart.bytes);
    assert_non_null(strstr(chart.bytes, "role=\"img\" aria-labelledby=\"title desc\""));
    assert_non_null(strstr(chart.bytes, "<title id=\"title\">Weights</title>"));
    assert_non_null(strstr(chart.bytes, "<desc id=\"desc\">One bar.</desc>"));
    assert_non_null(strstr(chart.bytes, ">12,345<"));
    assert_non_null(strstr(chart.bytes, "prefers-color-scheme:dark"));
    /* the name of the form itself is the one address */
    assert_int_equal(count_of(chart.bytes, "http"), 1);
    assert_int_equal(count_of(chart.bytes, "url("), 0);
    free(chart.bytes);
}

static void bars_are_in_proportion_within_their_group(void **state)
{
    const ctl_chart_bar_t bars[] = {{"a", NULL, 0, CTL_CHART_PART},   {NULL, "x", 1000, CTL_CHART_PART},
                                    {NULL, "y", 500, CTL_CHART_PART}, {"b", NULL, 0, CTL_CHART_PART},
                                    {NULL, "z", 3, CTL_CHART_PART},   {NULL, "0", 0, CTL_CHART_PART},
                                    {NULL, "-", -5, CTL_CHART_PART},  {NULL, "m", INT64_MAX, CTL_CHART_PART}};
    ctl_text_t chart = ctl_chart("t", "d", bars, 6);

    (void)state;
    assert_int_equal(count_of(chart.bytes, " width=\"420\" height=\"16\""), 2);
    assert_int_equal(count_of(chart.bytes, " width=\"210\" height=\"16\""), 1);
    assert_int_equal(count_of(chart.bytes, " width=\"1\" height=\"16\""), 1);
    free(chart.bytes);
    chart = ctl_chart("t", "d", bars, COUNT(bars));
    must_be_well_formed(chart.bytes);
    assert_int_equal(count_of(chart.bytes, " width=\"420\" height=\"16\""), 2);
    assert_int_equal(count_of(chart.bytes, " width=\"1\" height=\"16\""), 3);
    free(chart.bytes);
}

static void there_are_so_many_bars_and_the_rest_is_counted(void **state)
{
    static ctl_chart_bar_t bars[CTL_CHART_BARS + 9];
    ctl_text_t chart;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(bars); i++) {
        bars[i] = (ctl_chart_bar_t){NULL, "bar", 1, CTL_CHART_PART};
    }
    chart = ctl_chart("t", "d", bars, COUNT(bars));
    must_be_well_formed(chart.bytes);
    assert_int_equal(count_of(chart.bytes, "height=\"16\""), CTL_CHART_BARS);
    assert_non_null(strstr(chart.bytes, "and 9 more"));
    free(chart.bytes);
    chart = ctl_chart("t", "d", bars, 0);
    must_be_well_formed(chart.bytes);
    free(chart.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_quoted_and_cut),
        cmocka_unit_test(it_says_what_it_shows_to_those_who_cannot_see_it),
        cmocka_unit_test(bars_are_in_proportion_within_their_group),
        cmocka_unit_test(there_are_so_many_bars_and_the_rest_is_counted)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
