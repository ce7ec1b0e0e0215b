/* How the outbound room reads URLs and redirects: case tables against mcp_egress_url.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <cmocka.h>
#include <string.h>

#include "mcp_egress_url.h"

static int make_pool(void **state)
{
    apr_pool_t *pool;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS)
        return -1;
    *state = pool;
    return 0;
}

static int drop_pool(void **state)
{
    apr_pool_destroy(*state);
    apr_terminate();
    return 0;
}

static void a_url_is_read_into_origin_and_target(void **state)
{
    static const struct {
        const char *text;
        const char *origin;
        const char *target;
    } cases[] = {
        {"http://a", "http://a:80", "/"},
        {"https://a", "https://a:443", "/"},
        {"HTTPS://Api.Example.COM/v1", "https://api.example.com:443", "/v1"},
        {"http://a:8080?x=1", "http://a:8080", "/?x=1"},
        {"http://a/b/../c/%2e%2E//?", "http://a:80", "/b/../c/%2e%2E//?"},
        {"http://a/p@q:1", "http://a:80", "/p@q:1"},
        {"http://[::1]:81/x", "http://[::1]:81", "/x"},
        {"http://[0:0:0:0:0:0:0:1]/x", "http://[::1]:80", "/x"},
        {"http://[2001:DB8::A]", "http://[2001:db8::a]:80", "/"},
        {"http://2130706433/", "http://2130706433:80", "/"},
        {"http://0x7f.1/", "http://0x7f.1:80", "/"},
        {"http://a_b-c.d./", "http://a_b-c.d.:80", "/"},
        {"http://a:0080/", "http://a:80", "/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mcp_egress_url_t url;
        assert_int_equal(mcp_egress_url_parse(cases[i].text, *state, &url), APR_SUCCESS);
        assert_string_equal(url.origin, cases[i].origin);
        assert_string_equal(url.target, cases[i].target);
    }
}

static void what_parsers_disagree_about_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "a",
        "/a",
        "//a/b",
        "ftp://a/",
        "file:///etc/passwd",
        "http:/a",
        "http:a",
        "http://",
        "http:///x",
        "http://:80/",
        "http://user@a/",
        "http://user:pw@a/",
        "http://a@b@c/",
        "http://a:/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:99999999999/",
        "http://a:-1/",
        "http://a:8 0/",
        "http://a:80:81/",
        "http://a b/",
        "http://a%2eb/",
        "http://a\\b/",
        "http://a\\@b/",
        "http://.a/",
        "http://\xe3\x80\x82/", /* IDN full stop */
        "http://127.0.0\xe3\x80\x82z/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[::1]:/",
        "http://[]/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://[127.0.0.1]/",
        "http://a]/",
        "http://a/b c",
        "http://a/b\r\nX: y",
        "http://a/b\nX",
        "http://a/\x7f",
        "http://a/\t",
        "http://a/\xc3\xa9",
        "http://a/#f",
        "http://a#f",
        " http://a/",
        "http://a /",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mcp_egress_url_t url = {"untouched", "untouched"};
        if (mcp_egress_url_parse(cases[i], *state, &url) == APR_SUCCESS)
            fail_msg("read: %s", cases[i]);
        assert_string_equal(url.origin, "untouched");
    }
}

static void a_url_beyond_the_maximum_is_refused(void **state)
{
    apr_pool_t *pool = *state;
    char *text = apr_palloc(pool, MCP_EGRESS_URL_MAX + 2);
    mcp_egress_url_t url;
    memset(text, 'a', MCP_EGRESS_URL_MAX + 1);
    memcpy(text, "http://h/", 9);
    text[MCP_EGRESS_URL_MAX + 1] = '\0';
    assert_int_equal(mcp_egress_url_parse(text, pool, &url), APR_EINVAL);
    assert_int_equal(
        mcp_egress_url_resolve(&(mcp_egress_url_t){"http://h:80", "/"}, text, pool, &url),
        APR_EINVAL);
    text[MCP_EGRESS_URL_MAX] = '\0';
    assert_int_equal(mcp_egress_url_parse(text, pool, &url), APR_SUCCESS);
}

static void a_long_host_is_refused(void **state)
{
    apr_pool_t *pool = *state;
    char host[300];
    mcp_egress_url_t url;
    memset(host, 'a', sizeof host);
    host[255] = '\0';
    assert_int_equal(
        mcp_egress_url_parse(apr_pstrcat(pool, "http://", host, "/", NULL), pool, &url),
        APR_EINVAL);
    host[254] = '\0';
    assert_int_equal(
        mcp_egress_url_parse(apr_pstrcat(pool, "http://", host, "/", NULL), pool, &url),
        APR_SUCCESS);
}

static int is_allowed(apr_pool_t *pool, const char *text, const char *entry)
{
    apr_array_header_t *allow = apr_array_make(pool, 2, sizeof(const char *));
    mcp_egress_url_t url;
    APR_ARRAY_PUSH(allow, const char *) = "http://elsewhere.example";
    APR_ARRAY_PUSH(allow, const char *) = entry;
    assert_int_equal(mcp_egress_url_parse(text, pool, &url), APR_SUCCESS);
    return mcp_egress_url_is_allowed(&url, allow, pool);
}

static void an_exception_holds_for_scheme_host_and_port(void **state)
{
    static const struct {
        const char *url;
        const char *entry;
        int is_allowed;
    } cases[] = {
        {"http://127.0.0.1:8081/x", "http://127.0.0.1:8081", 1},
        {"http://127.0.0.1:8081/x", "http://127.0.0.1:8081/", 1},
        {"http://HOST/x", "http://host:80", 1},
        {"http://host:80/x", "HTTP://Host", 1},
        {"https://host:443/x", "https://host", 1},
        {"http://[::1]/", "http://[0:0::1]:80", 1},
        {"https://host:80/x", "http://host:80", 0},
        {"http://host:8080/x", "http://host", 0},
        {"http://host.evil/x", "http://host", 0},
        {"http://evilhost/x", "http://host", 0},
        {"http://2130706433:8081/x", "http://127.0.0.1:8081", 0},
        {"http://host/x", "http://host/x", 0},
        {"http://host/x", "host", 0},
        {"http://host/x", "*", 0},
        {"http://host/x", "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(is_allowed(*state, cases[i].url, cases[i].entry), cases[i].is_allowed);
}

static void no_list_allows_nothing(void **state)
{
    mcp_egress_url_t url;
    assert_int_equal(mcp_egress_url_parse("http://a/", *state, &url), APR_SUCCESS);
    assert_int_equal(mcp_egress_url_is_allowed(&url, NULL, *state), 0);
}

/* The examples of RFC 3986, 5.4, as far as they stay with http and have no fragment, and our
 * own. */
static void locations_resolve_as_the_rfc_says(void **state)
{
    static const struct {
        const char *location;
        const char *target;
    } cases[] = {
        {"g", "/b/c/g"},
        {"./g", "/b/c/g"},
        {"g/", "/b/c/g/"},
        {"/g", "/g"},
        {"?y", "/b/c/d;p?y"},
        {"g?y", "/b/c/g?y"},
        {"#s", "/b/c/d;p?q"},
        {"g#s", "/b/c/g"},
        {"g?y#s", "/b/c/g?y"},
        {";x", "/b/c/;x"},
        {"g;x=1/./y", "/b/c/g;x=1/y"},
        {"", "/b/c/d;p?q"},
        {".", "/b/c/"},
        {"./", "/b/c/"},
        {"..", "/b/"},
        {"../", "/b/"},
        {"../g", "/b/g"},
        {"../..", "/"},
        {"../../", "/"},
        {"../../g", "/g"},
        {"../../../g", "/g"},
        {"../../../../g", "/g"},
        {"/./g", "/g"},
        {"/../g", "/g"},
        {"g.", "/b/c/g."},
        {".g", "/b/c/.g"},
        {"..g", "/b/c/..g"},
        {"./../g", "/b/g"},
        {"g/./h", "/b/c/g/h"},
        {"g/../h", "/b/c/h"},
        {"g;x=1/../y", "/b/c/y"},
        {"g?y/../x", "/b/c/g?y/../x"},
        {"//A/x", "/x"},
        {"http://a:80/x", "/x"},
        {"/a//../b", "/a/b"},
        {"/%2e%2e/x", "/%2e%2e/x"},
    };
    static const mcp_egress_url_t base = {"http://a:80", "/b/c/d;p?q"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mcp_egress_url_t url;
        if (mcp_egress_url_resolve(&base, cases[i].location, *state, &url) != APR_SUCCESS)
            fail_msg("not resolved: %s", cases[i].location);
        assert_string_equal(url.origin, "http://a:80");
        assert_string_equal(url.target, cases[i].target);
    }
}

static void locations_elsewhere_show_their_origin(void **state)
{
    static const struct {
        const char *location;
        const char *origin;
    } cases[] = {
        {"https://a/", "https://a:443"},
        {"//b/x", "http://b:80"},
        {"http://a:81/", "http://a:81"},
        {"http://a.evil/", "http://a.evil:80"},
    };
    static const mcp_egress_url_t base = {"http://a:80", "/"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mcp_egress_url_t url;
        assert_int_equal(mcp_egress_url_resolve(&base, cases[i].location, *state, &url),
                         APR_SUCCESS);
        assert_string_equal(url.origin, cases[i].origin);
    }
}

static void locations_that_lead_nowhere_are_refused(void **state)
{
    static const char *const cases[] = {
        "ftp://a/", "javascript:x", "http://u@a/", "/a b", "/\x01", "/\xc3\xa9", "mailto:a@b", "//",
    };
    static const mcp_egress_url_t base = {"http://a:80", "/"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mcp_egress_url_t url;
        if (mcp_egress_url_resolve(&base, cases[i], *state, &url) == APR_SUCCESS)
            fail_msg("resolved: %s", cases[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_read_into_origin_and_target),
        cmocka_unit_test(what_parsers_disagree_about_is_refused),
        cmocka_unit_test(a_url_beyond_the_maximum_is_refused),
        cmocka_unit_test(a_long_host_is_refused),
        cmocka_unit_test(an_exception_holds_for_scheme_host_and_port),
        cmocka_unit_test(no_list_allows_nothing),
        cmocka_unit_test(locations_resolve_as_the_rfc_says),
        cmocka_unit_test(locations_elsewhere_show_their_origin),
        cmocka_unit_test(locations_that_lead_nowhere_are_refused),
    };
    return cmocka_run_group_tests(tests, make_pool, drop_pool);
}
