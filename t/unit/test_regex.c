/* Tests of proto/mcp_regex.c and its translation of ECMA-262 patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <apr_general.h>

#include "mcp_regex.h"

static apr_pool_t *pool;

static int start(void **state)
{
    (void)state;
    return apr_initialize() == APR_SUCCESS && apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

static mcp_regex_t *compiled(const char *pattern)
{
    mcp_regex_t *regex = NULL;
    mcp_wire_status_t status = mcp_regex_compile(pattern, strlen(pattern), pool, &regex);

    if (status != MCP_OK) {
        fail_msg("refused (%d): %s", (int)status, pattern);
    }
    return regex;
}

/* Processor time, so that a busy machine fails no test. */
static double seconds(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Seconds that bounded work may take; MCP_TEST_PATIENCE multiplies them, for runs under
 * instruments that slow everything down. */
static double patience(void)
{
    const char *factor = getenv("MCP_TEST_PATIENCE");

    return factor == NULL ? 1.0 : strtod(factor, NULL);
}

/* Patterns mean what ECMA-262 says, also where PCRE2 on its own would differ. */
static void a_pattern_means_what_ecma_says(void **state)
{
    static const struct {
        const char *pattern;
        const char *text;
        int matches;
    } cases[] = {
        {"", "", 1},
        {"", "x", 1},
        {"abc", "xabcx", 1},
        {"^abc$", "abc", 1},
        {"^abc$", "abc\n", 0},
        {"^abc$", "xabc", 0},
        {"^a.c$", "a\nc", 0},
        {"^a.c$", "a\rc", 0},
        {"^a.c$", "a\xe2\x80\xa8" "c", 0}, /* U+2028 */
        {"^a.c$", "a\xc3\xa9" "c", 1},
        {"^a.c$", "a\xf0\x9f\x90\xb2" "c", 1},
        {"^\\d+$", "0123456789", 1},
        {"^\\d$", "\xdf\x80", 0}, /* NKO digit zero */
        {"^\\D$", "\xdf\x80", 1},
        {"^[\\D]$", "\xdf\x80", 1},
        {"^[^\\D]$", "5", 1},
        {"^\\w+$", "aZ_9", 1},
        {"^\\w$", "\xc3\xa9", 0},
        {"^\\W$", "\xc3\xa9", 1},
        {"^[\\W]$", "\xc3\xa9", 1},
        {"^\\s$", "\xc2\xa0", 1},
        {"^\\s$", "\xef\xbb\xbf", 1},
        {"^\\s$", "\xe2\x80\x83", 1},
        {"^\\s$", "\v", 1},
        {"^\\s$", "\xc2\x85", 0}, /* NEL is no ECMA white space */
        {"^\\S$", "\xc2\x85", 1},
        {"^\\S$", "\xe3\x80\x80", 0},
        {"^[\\S]$", "\xf0\x9f\x90\xb2", 1},
        {"^[^\\s]$", "\xc2\xa0", 0},
        {"^[^\\S]$", "\xc2\xa0", 1},
        {"^\\cC$", "\x03", 1},
        {"^\\cc$", "\x03", 1},
        {"^\\t\\n\\v\\f\\r$", "\t\n\v\f\r", 1},
        {"^\\x41\\u0042\\u{43}$", "ABC", 1},
        {"^\\u{1f432}$", "\xf0\x9f\x90\xb2", 1},
        {"^\\ud83d\\udc32$", "\xf0\x9f\x90\xb2", 1},
        {"^[\\ud83d\\udc32-\\u{1f433}]$", "\xf0\x9f\x90\xb3", 1},
        {"^\xf0\x9f\x90\xb2*$", "\xf0\x9f\x90\xb2\xf0\x9f\x90\xb2", 1},
        {"^\xf0\x9f\x90\xb2*$", "\xf0\x9f\x90\x89", 0},
        {"^[]$", "", 0},
        {"[]", "a", 0},
        {"^[^]$", "\n", 1},
        {"^[a-]$", "-", 1},
        {"^[-a]$", "-", 1},
        {"^[\\w-.]+$", "a-.", 1},
        {"^[a-\\d]+$", "a-5", 1},
        {"^[.$*]+$", ".$*", 1},
        {"^[[]$", "[", 1},
        {"^[[:alpha:]]$", "h]", 1}, /* a class of [ : a l p h, then ] */
        {"^[[:alpha:]]$", "b", 0},
        {"^[\\]]$", "]", 1},
        {"^[\\b]$", "\b", 1},
        {"^[^a-c]$", "d", 1},
        {"^[^a-c]$", "b", 0},
        {"\\bfoo\\b", "a foo b", 1},
        {"\\bfoo\\b", "afoo", 0},
        {"\\Boo", "foo", 1},
        {"^(?:a|b)+$", "abba", 1},
        {"^(a)(?<x>b)\\1\\k<x>$", "abab", 1},
        {"^(?:(a)|b)\\1$", "b", 1}, /* a group without a match is the empty text */
        {"^\\1(a)$", "a", 1},
        {"^(?=a)a$", "a", 1},
        {"^(?!b)a$", "a", 1},
        {"(?<=a)b", "ab", 1},
        {"(?<!a)b", "ab", 0},
        {"^a{2}$", "aa", 1},
        {"^a{2,}$", "aaaa", 1},
        {"^a{2,3}$", "aaaa", 0},
        {"^a{1,3}?$", "aaa", 1},
        {"^a{,3}$", "a{,3}", 1}, /* no quantifier in ECMA-262 */
        {"^{a}$", "{a}", 1},
        {"^a{x}$", "a{x}", 1},
        {"^]$", "]", 1},
        {"^a+?b$", "aab", 1},
        {"^\\p{Letter}+$", "a\xc3\xa9", 1},
        {"^\\p{L}$", "1", 0},
        {"^\\P{L}$", "1", 1},
        {"^\\p{Lu}$", "A", 1},
        {"^\\p{Lu}$", "a", 0},
        {"^\\p{digit}$", "\xe0\xa7\xaa", 1},
        {"^[\\p{Nd}x]+$", "\xe0\xa7\xaax", 1},
        {"^\\p{General_Category=Decimal_Number}$", "5", 1},
        {"^\\p{gc=Uppercase_Letter}$", "A", 1},
        {"^\\p{Script=Greek}$", "\xce\xb1", 1},
        {"^\\p{Script=Greek}$", "a", 0},
        {"^\\p{ASCII}+$", "az", 1},
        {"^\\P{ASCII}$", "\xc3\xa9", 1},
        {"^\\p{Any}$", "x", 1},
        {"^\\p{Assigned}$", "x", 1},
        {"^\\/\\-\\@\\_\\ \\'\\\"\\#$", "/-@_ '\"#", 1},
        {"^\\0$", "x", 0},
        {"(?i)^abc$", "ABC", 1},
        {"^(?i:a)b$", "Ab", 1},
        {"^(?i:a)b$", "AB", 0},
        {"(?s)^a.b$", "a\nb", 1},
        {"(?mi)^B$", "a\nb", 1},
        {"(?m)^b$", "a\nb\nc", 1},
        {"(?m)^b$", "a\xe2\x80\xa9" "b", 1},
        {"^(?s:.)$", "\n", 1},
        {"a||b", "", 1},
        {"(?:)", "", 1},
        {"()", "", 1},
        {"^(?:\\d{1,3}\\.){3}\\d{1,3}$", "10.0.0.1", 1},
        {"#", "#", 1},
        {"a b", "a b", 1},
        {"\\.\\*\\+", ".*+", 1},
        {"^(?:[^\\n]*\\n)*$", "a\nb\n", 1},
        {"\\Qa", "", -2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mcp_regex_t *regex = NULL;
        size_t bytes = strlen(cases[i].pattern);
        int got = -2;

        if (mcp_regex_compile(cases[i].pattern, bytes, pool, &regex) == MCP_OK) {
            got = mcp_regex_match(regex, cases[i].text, strlen(cases[i].text));
        }
        if (got != cases[i].matches) {
            fail_msg("%s on \"%s\": %d", cases[i].pattern, cases[i].text, got);
        }
    }
}

static void what_is_no_ecma_pattern_is_refused(void **state)
{
    static const char *const patterns[] = {
        "(", ")", "(a", "a)", "[", "[a", "[b-a]", "*", "+a", "?", "a**", "a++", "a*+", "a???",
        "{1}", "^*", "a{2,1}", "a{70000}", "a{1,70000}", "a{99999999999999999999}", "\\", "\\a",
        "\\A", "\\Z", "\\z", "\\Q", "\\E", "\\C", "\\R", "\\K", "\\G", "\\X", "\\h", "\\e", "\\N",
        "\\1", "(a)\\2", "\\8", "\\00", "\\01", "\\x", "\\x4", "\\xg1", "\\u", "\\u12", "\\u{}",
        "\\u{110000}", "\\u{41", "\\ud800", "\\udc00", "\\ud800\\u0041", "[\\ud800-\\udbff]",
        "\\c", "\\c1", "\\p", "\\pL", "\\p{}", "\\p{L", "\\p{Nothing}", "\\p{L&}", "\\p{^L}", "\\k",
        "\\k<", "\\k<a>", "(?<a>x)\\k<b>", "\\k{a}", "\\g{1}", "(?<1a>x)", "(?<>x)", "(?<a)",
        "(?'a'x)", "(?P<a>x)", "(?P=a)", "(?>a)", "(?|a)", "(?R)", "(?1)", "(?&a)", "(?#c)",
        "(?C1)", "(?(1)a)", "(?", "(?:", "(?x)a", "a(?i)b", "(?z:a)", "(?i-i-i:a)", "(*UTF)a",
        "(*LIMIT_MATCH=1)a", "(*ACCEPT)", "(?=a)*", "(?<=a)+", "(?<=a*)b", "\xff", "\xc3",
        "\xed\xa0\x80", "\xc0\x80", "[\xe2\x80]", "(?<a>x)(?<a>y)",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        mcp_regex_t *regex = NULL;
        mcp_wire_status_t status =
            mcp_regex_compile(patterns[i], strlen(patterns[i]), pool, &regex);

        if (status != MCP_E_FIELD || regex != NULL) {
            fail_msg("not refused: %s", patterns[i]);
        }
    }
}

static void a_nul_is_a_character_like_others(void **state)
{
    mcp_regex_t *regex = NULL;

    (void)state;
    assert_int_equal(mcp_regex_compile("^a\0b$", 5, pool, &regex), MCP_OK);
    assert_int_equal(mcp_regex_match(regex, "a\0b", 3), 1);
    assert_int_equal(mcp_regex_match(regex, "a", 1), 0);
    assert_int_equal(mcp_regex_match(compiled("^\\0$"), "\0", 1), 1);
    assert_int_equal(mcp_regex_match(compiled("^$"), NULL, 0), 1);
}

static void a_pattern_has_a_size(void **state)
{
    char *pattern = malloc(MCP_REGEX_MAX_PATTERN + 1);
    mcp_regex_t *regex = NULL;

    (void)state;
    assert_non_null(pattern);
    memset(pattern, 'a', MCP_REGEX_MAX_PATTERN + 1);
    assert_int_equal(mcp_regex_compile(pattern, MCP_REGEX_MAX_PATTERN, pool, &regex), MCP_OK);
    assert_true(mcp_regex_bytes(regex) > MCP_REGEX_MAX_PATTERN);
    assert_int_equal(mcp_regex_compile(pattern, MCP_REGEX_MAX_PATTERN + 1, pool, &regex),
                     MCP_E_SIZE);
    memset(pattern, '(', MCP_REGEX_MAX_GROUPS + 1);
    memset(pattern + MCP_REGEX_MAX_GROUPS + 1, ')', MCP_REGEX_MAX_GROUPS + 1);
    assert_int_equal(mcp_regex_compile(pattern + 1, 2 * MCP_REGEX_MAX_GROUPS, pool, &regex),
                     MCP_OK);
    assert_int_equal(mcp_regex_compile(pattern, 2 * MCP_REGEX_MAX_GROUPS + 2, pool, &regex),
                     MCP_E_FIELD);
    free(pattern);
}

static void text_that_is_not_utf8_is_an_error(void **state)
{
    (void)state;
    assert_true(mcp_regex_match(compiled("a"), "a\xff", 2) < 0);
    assert_true(mcp_regex_match(compiled("."), "\xed\xa0\x80", 3) < 0);
}

/* Each of these took from seconds to years without the budget. */
static void hostile_patterns_hit_the_limit_soon(void **state)
{
    static const struct {
        const char *pattern;
        char fill;
        size_t bytes;
        char last;
    } cases[] = {
        {"^(a+)+$", 'a', 60, '!'},
        {"^(a|a)*$", 'a', 60, '!'},
        {"^(a|aa)+$", 'a', 100, '!'},
        {"^(?:a?){60}a{60}$", 'a', 59, 'a'},
        {"(.*)*x(.*)*y", 'a', 3000, 'x'},
        {"^(([a-z])+.)+[A-Z]([a-z])+$", 'a', 200, 'a'},
        {"x[\\u0100-\\u0200a-x]*[0-9]", 'x', 200000, 'x'},
        {"x.*y", 'x', 300000, '\n'},
        {"x{9999}y", 'x', 300000, 'y'},
        {"x{50000}[^x]{3}", 'x', 900000, 'x'},
        {"(x+)\\1y", 'x', 20000, 'y'},
        {"(x+)(?:\\1)*[^x]y", 'x', 20000, 'y'},
        {"(x+)\\1{2000}y", 'x', 20000, 'y'},
        {"(?:(?=.*y).)*z", 'x', 200000, 'y'},
        {"(?:(?!.*y)x)*z", 'x', 200000, 'x'},
        {"(?:x(?<=x{2000}y))*z", 'x', 200000, 'x'},
        {"(?:.*?.*?.*?)z", 'x', 20000, 'x'},
        {"\\p{L}*\\d", 'x', 300000, 'x'},
        {"\\s+$", ' ', 300000, 'x'},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = malloc(cases[i].bytes);
        double before;
        double took;
        int got;

        assert_non_null(text);
        memset(text, cases[i].fill, cases[i].bytes);
        text[cases[i].bytes - 1] = cases[i].last;
        before = seconds();
        got = mcp_regex_match(compiled(cases[i].pattern), text, cases[i].bytes);
        took = seconds() - before;
        free(text);
        /* Optimisations of PCRE2 may find some of them hopeless at once. */
        if (got > 0 || took > patience()) {
            fail_msg("%s: %d after %.2f s", cases[i].pattern, got, took);
        }
    }
    assert_true(mcp_regex_match(compiled("^(a+)+$"),
                                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", 50) < 0);
}

static void honest_patterns_do_not(void **state)
{
    size_t bytes = 200000;
    char *text = malloc(bytes);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < bytes; i++) {
        text[i] = i % 64 == 63 ? '\n' : "abcdefgh "[i % 9];
    }
    assert_int_equal(mcp_regex_match(compiled("^[\\s\\S]*$"), text, bytes), 1);
    assert_int_equal(mcp_regex_match(compiled("^(?:[^\\n]*\\n)*[^\\n]*$"), text, bytes), 1);
    assert_int_equal(mcp_regex_match(compiled("[0-9]{3}-[0-9]{4}"), text, bytes), 0);
    assert_int_equal(mcp_regex_match(compiled("\\bxyz\\b"), text, bytes), 0);
    assert_int_equal(mcp_regex_match(compiled("(?i)password|secret"), text, bytes), 0);
    free(text);
}

static void a_budget_is_spent_and_ends(void **state)
{
    mcp_regex_t *regex = compiled("^[a-z]+$");
    uint64_t work = 1000;
    uint64_t last;
    unsigned matches = 0;

    (void)state;
    for (;;) {
        int got;

        last = work;
        got = mcp_regex_match_within(regex, "abcdef", 6, &work);
        if (got < 0) {
            break;
        }
        assert_int_equal(got, 1);
        assert_true(work < last);
        matches++;
    }
    assert_true(matches > 5);
    assert_true(matches < 100);
    assert_int_equal(work, 0);
}

static void a_pattern_ends_with_its_pool(void **state)
{
    apr_pool_t *own;
    mcp_regex_t *regex;

    (void)state;
    assert_int_equal(apr_pool_create(&own, pool), APR_SUCCESS);
    assert_int_equal(mcp_regex_compile("a", 1, own, &regex), MCP_OK);
    apr_pool_destroy(own); /* a leak checker would see the rest */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_means_what_ecma_says),
        cmocka_unit_test(what_is_no_ecma_pattern_is_refused),
        cmocka_unit_test(a_nul_is_a_character_like_others),
        cmocka_unit_test(a_pattern_has_a_size),
        cmocka_unit_test(text_that_is_not_utf8_is_an_error),
        cmocka_unit_test(hostile_patterns_hit_the_limit_soon),
        cmocka_unit_test(honest_patterns_do_not),
        cmocka_unit_test(a_budget_is_spent_and_ends),
        cmocka_unit_test(a_pattern_ends_with_its_pool),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
