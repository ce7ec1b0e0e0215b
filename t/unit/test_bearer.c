/* Room mcp_bearer: tokens out of headers, challenges into headers. */
#include "mcp_bearer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
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

static void a_token_is_taken_out_of_its_header(void **state)
{
    static const struct {
        const char *header, *token;
    } cases[] = {
        {"Bearer abc", "abc"},
        {"bearer abc", "abc"},
        {"BEARER    a-b._~+/c==", "a-b._~+/c=="},
        {"  Bearer abc \t", "abc"},
        {"Bearer a=", "a="},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *token = NULL;
        size_t bytes = 0;
        assert_int_equal(mcp_bearer_token(cases[i].header, pool, &token, &bytes, NULL),
                         APR_SUCCESS);
        assert_string_equal(token, cases[i].token);
        assert_int_equal(bytes, strlen(cases[i].token));
    }
}

static void everything_else_is_unauthorized(void **state)
{
    static const struct {
        const char *header;
        int has_credentials;
    } cases[] = {
        {NULL, 0},
        {"", 0},
        {" \t ", 0},
        {"Bearer", 1},
        {"Bearer ", 1},
        {"Bear", 1},
        {"Bearerabc", 1},
        {"Bearer\tabc", 1},
        {"Basic YTpi", 1},
        {"DPoP abc", 1},
        {"Bearer abc, Bearer def", 1},
        {"Bearer abc, Bearer abc", 1},
        {"Basic x, Bearer abc", 1},
        {"Bearer a b", 1},
        {"Bearer \"abc\"", 1},
        {"Bearer a=b", 1},
        {"Bearer =", 1},
        {"Bearer ab\xc3\xa9", 1},
        {"Bearer ab\x01", 1},
        {"Bearer token=abc", 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *token = "untouched";
        size_t bytes = 77;
        mcp_err_t err;
        memset(&err, 0, sizeof err);
        if (mcp_bearer_token(cases[i].header, pool, &token, &bytes, &err) != MCP_STATUS_REFUSED)
            fail_msg("accepted: %s", cases[i].header);
        assert_int_equal(err.fail, MCP_FAIL_UNAUTHORIZED);
        assert_int_equal(err.has_credentials, cases[i].has_credentials);
        assert_string_equal(token, "untouched");
        assert_int_equal(bytes, 77);
        assert_null(strstr(err.message, "abc"));
    }
}

static void a_token_is_bounded(void **state)
{
    char *header = apr_palloc(pool, MCP_BEARER_MAX_BYTES + 20);
    (void)state;
    for (size_t bytes = MCP_BEARER_MAX_BYTES; bytes <= MCP_BEARER_MAX_BYTES + 1; bytes++) {
        const char *token = NULL;
        size_t token_bytes = 0;
        memcpy(header, "Bearer ", 7);
        memset(header + 7, 'x', bytes);
        header[7 + bytes] = '\0';
        assert_int_equal(mcp_bearer_token(header, pool, &token, &token_bytes, NULL),
                         bytes <= MCP_BEARER_MAX_BYTES ? APR_SUCCESS : MCP_STATUS_REFUSED);
    }
}

static mcp_err_t error_of(mcp_fail_t fail, int has_credentials, unsigned scopes,
                          const char *message)
{
    mcp_err_t err;
    memset(&err, 0, sizeof err);
    err.fail = fail;
    err.has_credentials = has_credentials;
    err.scopes = scopes;
    err.message = message;
    return err;
}

#define URL "https://gw.example/.well-known/oauth-protected-resource/mcp"

static void challenges_say_what_is_needed(void **state)
{
    const struct {
        mcp_err_t err;
        const char *url, *scope, *expected;
    } cases[] = {
        {error_of(MCP_FAIL_UNAUTHORIZED, 0, 0, "An access token is needed"), URL, "mcp:tools",
         "Bearer resource_metadata=\"" URL "\", scope=\"mcp:tools\""},
        {error_of(MCP_FAIL_UNAUTHORIZED, 1, 0, "expired"), URL, "mcp:tools",
         "Bearer error=\"invalid_token\", error_description=\"expired\", resource_metadata=\"" URL
         "\", scope=\"mcp:tools\""},
        {error_of(MCP_FAIL_SCOPE, 1, MCP_SCOPE_DESTRUCTIVE | MCP_SCOPE_TOOLS, "more"), URL,
         "mcp:tools",
         "Bearer error=\"insufficient_scope\", error_description=\"more\", resource_metadata=\"" URL
         "\", scope=\"mcp:destructive mcp:tools\""},
        {error_of(MCP_FAIL_UNAUTHORIZED, 0, 0, NULL), NULL, NULL, "Bearer"},
        {error_of(MCP_FAIL_UNAUTHORIZED, 1, 0, NULL), "", "", "Bearer error=\"invalid_token\""},
        /* never a value that would leave its quotes */
        {error_of(MCP_FAIL_UNAUTHORIZED, 1, 0, "a \"b\" \\ \r\nX: \xc3\xa9 c"), "https://a\"b",
         "s\n",
         "Bearer error=\"invalid_token\", error_description=\"a 'b' ? ??X: ? c\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(mcp_bearer_challenge(&cases[i].err, cases[i].url, cases[i].scope, pool),
                            cases[i].expected);
}

static void a_description_is_bounded_and_quotable_whatever_is_in_it(void **state)
{
    char message[700];
    (void)state;
    for (size_t i = 0; i < sizeof message - 1; i++)
        message[i] = (char)(1 + i % 255);
    message[sizeof message - 1] = '\0';
    mcp_err_t err = error_of(MCP_FAIL_SCOPE, 1, 0, message);
    const char *text = mcp_bearer_challenge(&err, NULL, NULL, pool);
    int quotes = 0;
    assert_true(strlen(text) < 300);
    for (const char *p = text; *p != '\0'; p++) {
        assert_in_range(*p, 0x20, 0x7e);
        assert_int_not_equal(*p, '\\');
        quotes += *p == '"';
    }
    assert_int_equal(quotes, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_taken_out_of_its_header),
        cmocka_unit_test(everything_else_is_unauthorized),
        cmocka_unit_test(a_token_is_bounded),
        cmocka_unit_test(challenges_say_what_is_needed),
        cmocka_unit_test(a_description_is_bounded_and_quotable_whatever_is_in_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
