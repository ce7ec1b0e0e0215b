/* Room mcp_parse: values of directives. */
#include "mcp_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    if (apr_initialize() != APR_SUCCESS)
        return -1;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

static void durations_have_a_unit(void **state)
{
    static const struct {
        const char *text;
        apr_interval_time_t us;
    } cases[] = {{"1ms", 1000},
                 {"1500ms", 1500000},
                 {"30s", 30000000},
                 {"0s", 0},
                 {"2m", 120000000},
                 {"24h", 86400000000LL},
                 {"2562047788h", 9223372036800000000LL}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        apr_interval_time_t us = -1;
        const char *error = mcp_parse_duration(pool, cases[i].text, 0, INT64_MAX, &us);
        if (error != NULL)
            fail_msg("%s: %s", cases[i].text, error);
        assert_true(us == cases[i].us);
    }
}

static void other_durations_are_refused_with_a_remedy(void **state)
{
    static const char *const cases[] = {"",     " ",     "30",    "s",     "-1s",    "+1s",
                                        "1 s",  " 1s",   "1s ",   "1sec",  "1S",     "1d",
                                        "1.5s", "1e3s",  "0x1s",  "01s",   "1m30s",  "2562047789h",
                                        "99999999999999999999ms", "9223372036854775807ms",
                                        "infinite"};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        apr_interval_time_t us = 77;
        const char *error = mcp_parse_duration(pool, cases[i], 0, INT64_MAX, &us);
        if (error == NULL)
            fail_msg("accepted: %s", cases[i]);
        assert_true(strstr(error, "write") != NULL || strstr(error, "ms, s, m or h") != NULL);
        assert_int_equal(us, 77);
    }
}

static void a_duration_keeps_its_limits(void **state)
{
    apr_interval_time_t us = 77;
    (void)state;
    assert_null(mcp_parse_duration(pool, "100ms", 100000, 5000000, &us));
    assert_null(mcp_parse_duration(pool, "5s", 100000, 5000000, &us));
    assert_int_equal(us, 5000000);
    assert_string_equal(mcp_parse_duration(pool, "99ms", 100000, 5000000, &us),
                        "a duration out of range; write one from 100ms to 5s");
    assert_non_null(mcp_parse_duration(pool, "5001ms", 100000, 5000000, &us));
    assert_string_equal(mcp_parse_duration(pool, "0s", 1000, 3600000000LL, &us),
                        "a duration out of range; write one from 1ms to 1h");
    assert_string_equal(mcp_parse_duration(pool, "1h", 0, 60000000, &us),
                        "a duration out of range; write one from 0ms to 1m");
    assert_int_equal(us, 5000000);
}

static void sizes_have_a_unit(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {{"0B", 0}, {"512B", 512}, {"64K", 65536}, {"10M", 10485760}, {"2G", 2147483648u}};
    static const char *const refused[] = {"",    "64",  "K",    "-1K", "+1K",  "64k",  "64KB",
                                          "1 K", "1.5M", "64K ", "1T",  "017K", "8589934592G",
                                          "9999999999999999999999B"};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t bytes = 77;
        assert_null(mcp_parse_size(pool, cases[i].text, 0, SIZE_MAX, &bytes));
        assert_true(bytes == cases[i].bytes);
    }
    for (size_t i = 0; i < COUNT(refused); i++) {
        size_t bytes = 77;
        if (mcp_parse_size(pool, refused[i], 0, SIZE_MAX, &bytes) == NULL)
            fail_msg("accepted: %s", refused[i]);
        assert_int_equal(bytes, 77);
    }
    size_t bytes = 77;
    assert_null(mcp_parse_size(pool, "1K", 1024, 2048, &bytes));
    assert_null(mcp_parse_size(pool, "2048B", 1024, 2048, &bytes));
    assert_string_equal(mcp_parse_size(pool, "2049B", 1024, 2048, &bytes),
                        "a size out of range; write one from 1K to 2K");
    assert_non_null(mcp_parse_size(pool, "1023B", 1024, 2048, &bytes));
    assert_int_equal(bytes, 2048);
}

static void integers_are_digits_within_their_limits(void **state)
{
    static const char *const refused[] = {"",   " 5", "5 ", "-5", "+5", "5.0", "0x5", "05", "5K",
                                          "four", "1e1", "9223372036854775808",
                                          "99999999999999999999"};
    int64_t value = 77;
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        if (mcp_parse_int(pool, refused[i], 0, INT64_MAX, &value) == NULL)
            fail_msg("accepted: %s", refused[i]);
        assert_int_equal(value, 77);
    }
    assert_null(mcp_parse_int(pool, "0", 0, 5, &value));
    assert_int_equal(value, 0);
    assert_null(mcp_parse_int(pool, "9223372036854775807", 0, INT64_MAX, &value));
    assert_true(value == INT64_MAX);
    assert_null(mcp_parse_int(pool, "1", 1, 5, &value));
    assert_null(mcp_parse_int(pool, "5", 1, 5, &value));
    assert_string_equal(mcp_parse_int(pool, "0", 1, 5, &value),
                        "number out of range; write one from 1 to 5");
    assert_non_null(mcp_parse_int(pool, "6", 1, 5, &value));
    assert_int_equal(value, 5);
}

static void flags_and_words_come_from_a_table(void **state)
{
    static const mcp_parse_word_t words[] = {{"local", 3}, {"oidc", 4}, {"none", 5}};
    static const char *const refused[] = {"", "loca", "locall", "local ", "on"};
    int value = 77;
    (void)state;
    assert_null(mcp_parse_flag(pool, "On", &value));
    assert_int_equal(value, 1);
    assert_null(mcp_parse_flag(pool, "off", &value));
    assert_int_equal(value, 0);
    assert_string_equal(mcp_parse_flag(pool, "yes", &value), "unknown word; write on or off");
    assert_non_null(mcp_parse_flag(pool, "1", &value));
    assert_non_null(mcp_parse_flag(pool, "", &value));
    assert_int_equal(value, 0);

    assert_null(mcp_parse_enum(pool, "OIDC", words, COUNT(words), &value));
    assert_int_equal(value, 4);
    for (size_t i = 0; i < COUNT(refused); i++) {
        assert_string_equal(mcp_parse_enum(pool, refused[i], words, COUNT(words), &value),
                            "unknown word; write local, oidc or none");
        assert_int_equal(value, 4);
    }
}

static void origins_are_normalised(void **state)
{
    static const struct {
        const char *text, *origin;
    } cases[] = {
        {"https://a.example", "https://a.example"},
        {"HTTPS://A.Example", "https://a.example"},
        {"https://a.example:443", "https://a.example"},
        {"http://a.example:80", "http://a.example"},
        {"http://a.example:443", "http://a.example:443"},
        {"https://a.example:8443", "https://a.example:8443"},
        {"http://localhost:65535", "http://localhost:65535"},
        {"http://127.0.0.1:1", "http://127.0.0.1:1"},
        {"http://[::1]", "http://[::1]"},
        {"http://[0:0:0:0:0:0:0:1]:8080", "http://[::1]:8080"},
        {"https://[2001:DB8::A]:443", "https://[2001:db8::a]"},
        {"http://[::ffff:10.0.0.1]", "http://[::ffff:10.0.0.1]"},
        {"https://xn--bcher-kva.example", "https://xn--bcher-kva.example"},
        {"https://1a.example2", "https://1a.example2"},
        {"http://under_score", "http://under_score"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *origin = NULL;
        const char *error = mcp_parse_origin(pool, cases[i].text, &origin);
        if (error != NULL)
            fail_msg("%s: %s", cases[i].text, error);
        assert_string_equal(origin, cases[i].origin);
        assert_null(mcp_parse_origin(pool, origin, &origin)); /* stable */
        assert_string_equal(origin, cases[i].origin);
    }
}

static void other_origins_are_refused_with_a_remedy(void **state)
{
    static const char *const cases[] = {
        "", "a.example", "null", "*", "https://*", "https://*.example", "ftp://a.example",
        "https:/a", "https:a", "//a.example", "https://", "https:///", "https://:443",
        "https://a.example/", "https://a.example/x", "https://a.example?x", "https://a.example#x",
        "https://u@a.example", "https://u:p@a.example", "https://@a.example",
        "https://a.example:", "https://a.example:0", "https://a.example:65536",
        "https://a.example:+1", "https://a.example:080", "https://a.example:8o",
        "https://a.example:1:2", "https://a..example", "https://.example", "https://a.example.",
        "https://a example", " https://a.example", "https://a.example ", "https://a\texample",
        "https://a.example\\x", "https://a%2eexample", "https://b\xc3\xbc" "cher.example",
        "https://a\xe3\x80\x82" "example", "http://2130706433", "http://0x7f000001",
        "http://0177.0.0.1", "http://127.1", "http://1.2.3.4.5", "http://256.1.1.1",
        "http://a.0x1", "http://[::1", "http://::1", "http://[::1]x", "http://[::1]:", "http://[]",
        "http://[1.2.3.4]", "http://[fe80::1%25eth0]", "http://[::g]", "http://[[::1]]",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *origin = "untouched";
        const char *error = mcp_parse_origin(pool, cases[i], &origin);
        if (error == NULL)
            fail_msg("accepted: %s as %s", cases[i], origin);
        if (strstr(error, "write") == NULL && strstr(error, "leave") == NULL &&
            strstr(error, "correct") == NULL)
            fail_msg("no remedy: %s", error);
        assert_string_equal(origin, "untouched");
    }
}

static void a_host_and_its_labels_are_bounded(void **state)
{
    char label[65];
    const char *value = NULL;
    (void)state;
    memset(label, 'a', 63);
    label[63] = '\0';
    const char *host = apr_pstrcat(pool, label, ".", label, ".", label, ".", label, NULL);
    assert_null(mcp_parse_origin(pool, apr_pstrcat(pool, "http://", label, NULL), &value));
    assert_non_null(mcp_parse_origin(pool, apr_pstrcat(pool, "http://a", label, NULL), &value));
    assert_null(mcp_parse_origin(pool, apr_pstrcat(pool, "http://", host + 2, NULL), &value));
    assert_non_null(mcp_parse_origin(pool, apr_pstrcat(pool, "http://", host, NULL), &value));

    char *url = apr_palloc(pool, MCP_PARSE_MAX_URL + 2);
    memset(url, 'x', MCP_PARSE_MAX_URL + 1);
    memcpy(url, "http://a/", 9);
    url[MCP_PARSE_MAX_URL + 1] = '\0';
    assert_non_null(mcp_parse_url(pool, url, &value));
    url[MCP_PARSE_MAX_URL] = '\0';
    assert_null(mcp_parse_url(pool, url, &value));
}

static void urls_keep_what_follows_their_origin(void **state)
{
    static const struct {
        const char *text, *url;
    } cases[] = {
        {"https://GW.example/mcp", "https://gw.example/mcp"},
        {"https://gw.example:443/MCP/?Q=%2F", "https://gw.example/MCP/?Q=%2F"},
        {"https://gw.example", "https://gw.example"},
        {"https://gw.example/", "https://gw.example/"},
        {"https://gw.example?x=1", "https://gw.example?x=1"},
        {"http://[::1]:80/a@b:c", "http://[::1]/a@b:c"},
    };
    static const char *const refused[] = {
        "", "/mcp", "gw.example/mcp", "https://gw.example/mcp#", "https://gw.example/#x",
        "https://gw.example#x", "https://u@gw.example/", "https://gw.example/a b",
        "https://gw.example/%", "https://gw.example/%2", "https://gw.example/%2g",
        "https://gw.example/\"", "https://gw.example/<", "https://gw.example/{x}",
        "https://gw.example/\xc3\xa9", "https://gw.example/\n", "urn:x", "javascript://a/x",
        "https:///mcp",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *url = NULL;
        const char *error = mcp_parse_url(pool, cases[i].text, &url);
        if (error != NULL)
            fail_msg("%s: %s", cases[i].text, error);
        assert_string_equal(url, cases[i].url);
    }
    for (size_t i = 0; i < COUNT(refused); i++) {
        const char *url = "untouched";
        if (mcp_parse_url(pool, refused[i], &url) == NULL)
            fail_msg("accepted: %s", refused[i]);
        assert_string_equal(url, "untouched");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_have_a_unit),
        cmocka_unit_test(other_durations_are_refused_with_a_remedy),
        cmocka_unit_test(a_duration_keeps_its_limits),
        cmocka_unit_test(sizes_have_a_unit),
        cmocka_unit_test(integers_are_digits_within_their_limits),
        cmocka_unit_test(flags_and_words_come_from_a_table),
        cmocka_unit_test(origins_are_normalised),
        cmocka_unit_test(other_origins_are_refused_with_a_remedy),
        cmocka_unit_test(a_host_and_its_labels_are_bounded),
        cmocka_unit_test(urls_keep_what_follows_their_origin),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
