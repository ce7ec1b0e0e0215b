/* Room mcp_problem: every class of error and every code, as clients of the REST door see it. */
#include "mcp_problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>

#include "../../proto/mcp_body.h"
#include "../../proto/mcp_kind_text.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    return apr_initialize() == APR_SUCCESS && apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

/* The body as JSON; freed with json_decref. */
static json_t *problem(const mcp_err_t *err, mcp_answer_t *answer)
{
    json_t *body = NULL;

    mcp_problem_answer(err, pool, answer);
    assert_string_equal(answer->content_type, "application/problem+json");
    assert_int_equal(mcp_json_parse(answer->body, answer->body_bytes, 8, &body, NULL), MCP_OK);
    assert_string_equal(mcp_json_str(body, "type"), "about:blank");
    assert_int_equal(mcp_json_int(body, "status", 0), answer->http);
    assert_non_null(mcp_json_str(body, "title"));
    assert_non_null(mcp_json_str(body, "code"));
    return body;
}

static mcp_err_t error_of(mcp_fail_t fail, mcp_code_t code)
{
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    err.fail = fail;
    err.code = code;
    err.message = "it went wrong";
    return err;
}

static void an_operations_code_gives_its_status(void **state)
{
    int code;

    (void)state;
    for (code = MCP_CODE_NONE + 1; code < MCP_CODE_COUNT; code++) {
        mcp_err_t err = error_of(MCP_FAIL_TOOL, (mcp_code_t)code);
        mcp_answer_t answer;
        json_t *body = problem(&err, &answer);

        assert_int_equal(answer.http, mcp_code_http((mcp_code_t)code));
        assert_string_not_equal(mcp_json_str(body, "title"), "Error");
        if (code != MCP_CODE_RESTRICTED && code != MCP_CODE_FORBIDDEN && code != MCP_CODE_UNKNOWN_TOOL) {
            assert_string_equal(mcp_json_str(body, "code"), mcp_code_text((mcp_code_t)code));
            assert_string_equal(mcp_json_str(body, "detail"), "it went wrong");
        }
        assert_int_equal(answer.retry_after_s > 0, answer.http == 503);
        json_decref(body);
    }
}

static void classes_of_http_give_theirs(void **state)
{
    static const struct {
        mcp_fail_t fail;
        int http;
        const char *code;
        int retry;
        int challenge;
    } cases[] = {
        {MCP_FAIL_PARSE, 400, "invalid_request", 0, 0},
        {MCP_FAIL_REQUEST, 400, "invalid_request", 0, 0},
        {MCP_FAIL_UNAUTHORIZED, 401, "invalid_token", 0, 1},
        {MCP_FAIL_SCOPE, 403, "insufficient_scope", 0, 1},
        {MCP_FAIL_ORIGIN, 403, "invalid_request", 0, 0},
        {MCP_FAIL_HTTP_METHOD, 405, "invalid_request", 0, 0},
        {MCP_FAIL_ACCEPT, 406, "invalid_request", 0, 0},
        {MCP_FAIL_TOO_LARGE, 413, "too_large", 0, 0},
        {MCP_FAIL_MEDIA, 415, "invalid_request", 0, 0},
        {MCP_FAIL_BUSY, 429, "rate_limited", 1, 0},
        {MCP_FAIL_UNAVAILABLE, 503, "policy_unavailable", 1, 0},
        {MCP_FAIL_INTERNAL, 500, "internal", 0, 0},
        {MCP_FAIL_SESSION, 500, "internal", 0, 0},
        {MCP_FAIL_NONE, 500, "internal", 0, 0},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        mcp_err_t err = error_of(cases[i].fail, MCP_CODE_NONE);
        mcp_answer_t answer;
        json_t *body = problem(&err, &answer);

        assert_int_equal(answer.http, cases[i].http);
        assert_string_equal(mcp_json_str(body, "code"), cases[i].code);
        assert_int_equal(answer.retry_after_s > 0, cases[i].retry);
        assert_int_equal(answer.is_challenge, cases[i].challenge);
        json_decref(body);
    }
}

static void what_is_missing_is_named(void **state)
{
    mcp_err_t err = error_of(MCP_FAIL_TOOL, MCP_CODE_PERMISSION_DENIED);
    mcp_answer_t answer;
    json_t *body;

    (void)state;
    err.permission = "member:write";
    err.hint = "ask \"IT\"";
    err.audit = "1-7";
    body = problem(&err, &answer);
    assert_string_equal(mcp_json_str(body, "permission"), "member:write");
    assert_string_equal(mcp_json_str(body, "hint"), "ask \"IT\"");
    assert_string_equal(mcp_json_str(body, "audit"), "1-7");
    assert_null(json_object_get(body, "scopes"));
    json_decref(body);
    err = error_of(MCP_FAIL_SCOPE, MCP_CODE_INSUFFICIENT_SCOPE);
    err.scopes = MCP_SCOPE_WRITE | MCP_SCOPE_TOOLS;
    body = problem(&err, &answer);
    assert_int_equal(json_array_size(json_object_get(body, "scopes")), 2);
    assert_string_equal(json_string_value(json_array_get(json_object_get(body, "scopes"), 0)), "mcp:write");
    assert_string_equal(json_string_value(json_array_get(json_object_get(body, "scopes"), 1)), "mcp:tools");
    assert_null(json_object_get(body, "permission"));
    json_decref(body);
}

static void a_withheld_tool_is_one_that_never_was(void **state)
{
    static const mcp_code_t codes[] = {MCP_CODE_UNKNOWN_TOOL, MCP_CODE_RESTRICTED, MCP_CODE_FORBIDDEN};
    mcp_answer_t first;
    size_t i;

    (void)state;
    memset(&first, 0, sizeof(first));
    for (i = 0; i < COUNT(codes); i++) {
        mcp_err_t err = error_of(MCP_FAIL_TOOL, codes[i]);
        mcp_answer_t answer;

        err.hint = mcp_code_text(codes[i]);
        err.audit = mcp_code_text(codes[i]);
        mcp_problem_answer(&err, pool, &answer);
        assert_int_equal(answer.http, 404);
        if (i == 0) {
            first = answer;
        }
        assert_string_equal(answer.body, first.body);
    }
}

static void no_error_is_an_internal_one(void **state)
{
    mcp_answer_t answer;
    json_t *body = problem(NULL, &answer);

    (void)state;
    assert_int_equal(answer.http, 500);
    assert_string_equal(mcp_json_str(body, "code"), "internal");
    assert_null(json_object_get(body, "detail"));
    json_decref(body);
}

static void text_from_outside_stays_text(void **state)
{
    mcp_err_t err = error_of(MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST);
    mcp_answer_t answer;
    json_t *body;

    (void)state;
    err.message = "\"},\"code\":\"ok\"\n\x01\xff";
    body = problem(&err, &answer);
    assert_string_equal(mcp_json_str(body, "code"), "invalid_request");
    assert_non_null(strstr(mcp_json_str(body, "detail"), "\"},"));
    json_decref(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operations_code_gives_its_status),
        cmocka_unit_test(classes_of_http_give_theirs),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_withheld_tool_is_one_that_never_was),
        cmocka_unit_test(no_error_is_an_internal_one),
        cmocka_unit_test(text_from_outside_stays_text),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
