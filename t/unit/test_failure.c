/* Room mcp_failure: every class of error, as clients of each era see it. */
#include "mcp_failure.h"

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

static const mcp_era_t modern = {1, 0, MCP_REV_2026_07_28, NULL, NULL, "", "", NULL, 0};
static const mcp_era_t legacy_11 = {0, 0, MCP_REV_2025_11_25, NULL, NULL, "", "", NULL, 0};
static const mcp_era_t legacy_06 = {0, 0, MCP_REV_2025_06_18, NULL, NULL, "", "", NULL, 0};
static const mcp_era_t legacy_03 = {0, 0, MCP_REV_2025_03_26, NULL, NULL, "", "", NULL, 0};
static const mcp_era_t legacy_unknown = {0, 0, MCP_REV_NONE, NULL, NULL, "", "", NULL, 0};

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

static mcp_err_t error_of(mcp_fail_t fail, mcp_code_t code, const char *message)
{
    mcp_err_t err;
    memset(&err, 0, sizeof err);
    err.fail = fail;
    err.code = code;
    err.message = message;
    return err;
}

/* The body as JSON; freed with json_decref. */
static json_t *body_of(const mcp_err_t *err, const char *id, const mcp_era_t *era,
                       mcp_answer_t *answer)
{
    mcp_failure_answer(err, id, era, pool, answer);
    assert_string_equal(answer->content_type, "application/json");
    assert_int_equal(answer->body_bytes, strlen(answer->body));
    json_t *body = json_loads(answer->body, JSON_REJECT_DUPLICATES, NULL);
    if (body == NULL)
        fail_msg("no JSON: %s", answer->body);
    return body;
}

static void every_class_has_its_status_and_code(void **state)
{
    static const struct {
        mcp_fail_t fail;
        int http, legacy_http;
        json_int_t code; /* 0: no JSON-RPC */
        int has_retry, is_challenge;
    } rows[] = {
        {MCP_FAIL_NONE, 200, 200, -32603, 0, 0},
        {MCP_FAIL_PARSE, 400, 400, -32700, 0, 0},
        {MCP_FAIL_REQUEST, 400, 400, -32600, 0, 0},
        {MCP_FAIL_METHOD, 404, 200, -32601, 0, 0},
        {MCP_FAIL_ENVELOPE, 400, 400, -32602, 0, 0},
        {MCP_FAIL_PARAMS, 200, 200, -32602, 0, 0},
        {MCP_FAIL_HEADER, 400, 400, -32020, 0, 0},
        {MCP_FAIL_CAPABILITY, 400, 400, -32021, 0, 0},
        {MCP_FAIL_VERSION, 400, 400, -32022, 0, 0},
        {MCP_FAIL_INTERNAL, 200, 200, -32603, 0, 0},
        {MCP_FAIL_UNAUTHORIZED, 401, 401, 0, 0, 1},
        {MCP_FAIL_SCOPE, 403, 403, 0, 0, 1},
        {MCP_FAIL_ORIGIN, 403, 403, -32600, 0, 0},
        {MCP_FAIL_HTTP_METHOD, 405, 405, -32600, 0, 0},
        {MCP_FAIL_ACCEPT, 406, 406, -32600, 0, 0},
        {MCP_FAIL_TOO_LARGE, 413, 413, -32600, 0, 0},
        {MCP_FAIL_MEDIA, 415, 415, -32600, 0, 0},
        {MCP_FAIL_BUSY, 429, 429, -32603, 1, 0},
        {MCP_FAIL_SESSION, 404, 404, -32600, 0, 0},
        {MCP_FAIL_UNAVAILABLE, 503, 503, -32603, 1, 0},
    };
    const mcp_era_t *const eras[] = {&modern, NULL, &legacy_11, &legacy_03, &legacy_unknown};
    (void)state;
    assert_int_equal(COUNT(rows), MCP_FAIL_TOOL); /* a new class needs a row here */
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t k = 0; k < 2 * COUNT(eras); k++) {
            const mcp_era_t *era = eras[k / 2];
            int is_legacy = era != NULL && !era->is_modern;
            mcp_answer_t answer;
            mcp_err_t err =
                error_of(rows[i].fail, MCP_CODE_NONE, k % 2 == 0 ? "a \"message\"" : NULL);
            json_t *body = body_of(&err, "\"i\\\"d\"", era, &answer);
            json_t *error = json_object_get(body, "error");
            assert_int_equal(answer.http, is_legacy ? rows[i].legacy_http : rows[i].http);
            assert_int_equal(answer.retry_after_s > 0, rows[i].has_retry);
            assert_int_equal(answer.is_challenge, rows[i].is_challenge);
            assert_true((answer.allow != NULL) == (rows[i].http == 405));
            if (rows[i].code == 0) {
                assert_null(json_object_get(body, "jsonrpc"));
                assert_true(json_is_string(error));
                assert_true(json_is_string(json_object_get(body, "error_description")));
            } else {
                assert_string_equal(json_string_value(json_object_get(body, "jsonrpc")), "2.0");
                assert_string_equal(json_string_value(json_object_get(body, "id")), "i\"d");
                assert_null(json_object_get(body, "result"));
                assert_int_equal(json_integer_value(json_object_get(error, "code")), rows[i].code);
                const char *message = json_string_value(json_object_get(error, "message"));
                assert_true(message != NULL && *message != '\0');
                if (k % 2 == 0)
                    assert_string_equal(message, "a \"message\"");
            }
            json_decref(body);
        }
    }
}

static void an_id_that_is_not_known_is_left_out(void **state)
{
    mcp_err_t err = error_of(MCP_FAIL_PARSE, MCP_CODE_NONE, "Parse error");
    mcp_answer_t answer;
    (void)state;
    json_decref(body_of(&err, NULL, NULL, &answer));
    assert_string_equal(answer.body, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
                                     "\"message\":\"Parse error\"}}");
    json_decref(body_of(NULL, "1", &modern, &answer));
    assert_string_equal(answer.body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,"
                                     "\"message\":\"Internal error\"}}");
}

static void an_unsupported_version_names_those_that_work(void **state)
{
    static const struct {
        const char *requested, *data;
    } cases[] = {
        {"1900-01-01", "{\"supported\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\","
                       "\"2025-03-26\"],\"requested\":\"1900-01-01\"}"},
        {"2025-11-25", "{\"supported\":[\"2026-07-28\"],\"requested\":\"2025-11-25\"}"},
        {"a\"\xff", "{\"supported\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\","
                    "\"2025-03-26\"],\"requested\":\"a\\\"\xef\xbf\xbd\"}"},
        {NULL, "{\"supported\":[\"2026-07-28\"],\"requested\":\"\"}"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_err_t err = error_of(MCP_FAIL_VERSION, MCP_CODE_NONE, "Unsupported protocol version");
        mcp_answer_t answer;
        err.requested = cases[i].requested;
        err.hint = "not shown";
        json_decref(body_of(&err, "1", NULL, &answer));
        assert_string_equal(answer.body,
                            apr_pstrcat(pool,
                                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,"
                                        "\"message\":\"Unsupported protocol version\",\"data\":",
                                        cases[i].data, "}}", NULL));
    }
}

static void a_missing_capability_is_an_object(void **state)
{
    static const struct {
        const char *requested, *data;
    } cases[] = {
        {"{\"elicitation\":{\"url\":{}}}",
         "{\"requiredCapabilities\":{\"elicitation\":{\"url\":{}}}}"},
        {NULL, "{\"requiredCapabilities\":{}}"},
        {"[1]", "{\"requiredCapabilities\":{}}"},
        {"{", "{\"requiredCapabilities\":{}}"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_err_t err = error_of(MCP_FAIL_CAPABILITY, MCP_CODE_NONE, "m");
        mcp_answer_t answer;
        err.requested = cases[i].requested;
        json_decref(body_of(&err, "1", &modern, &answer));
        assert_non_null(strstr(answer.body, cases[i].data));
    }
}

static void a_hint_goes_into_data(void **state)
{
    mcp_err_t err = error_of(MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE, "m");
    mcp_answer_t answer;
    (void)state;
    err.hint = "try again later";
    err.log = "secret log text";
    json_decref(body_of(&err, "1", &modern, &answer));
    assert_string_equal(answer.body,
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,"
                        "\"message\":\"m\","
                        "\"data\":{\"code\":\"policy_unavailable\","
                        "\"hint\":\"try again later\"}}}");
}

static void a_missing_scope_is_named(void **state)
{
    mcp_err_t err = error_of(MCP_FAIL_SCOPE, MCP_CODE_INSUFFICIENT_SCOPE, "m");
    mcp_answer_t answer;
    (void)state;
    err.scopes = MCP_SCOPE_WRITE | MCP_SCOPE_TOOLS;
    err.audit = "c-7";
    json_decref(body_of(&err, "1", &modern, &answer));
    assert_string_equal(answer.body, "{\"error\":\"insufficient_scope\","
                                     "\"error_description\":\"m\","
                                     "\"scope\":\"mcp:write mcp:tools\",\"audit\":\"c-7\"}");
}

static mcp_err_t tool_error(void)
{
    mcp_err_t err = error_of(MCP_FAIL_TOOL, MCP_CODE_PERMISSION_DENIED, "You lack a permission");
    err.hint = "ask an admin";
    err.audit = "c-42";
    err.permission = "tool:execute";
    return err;
}

static void an_error_in_band_has_the_shape_of_its_era(void **state)
{
    const struct {
        const mcp_era_t *era;
        int is_modern, has_structured;
    } cases[] = {{&modern, 1, 1},    {NULL, 1, 1},        {&legacy_11, 0, 1},
                 {&legacy_06, 0, 1}, {&legacy_03, 0, 0}, {&legacy_unknown, 0, 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_err_t err = tool_error();
        mcp_answer_t answer;
        json_t *body = body_of(&err, "7", cases[i].era, &answer);
        json_t *result = json_object_get(body, "result");
        json_t *block = json_array_get(json_object_get(result, "content"), 0);
        json_t *error = json_object_get(json_object_get(result, "structuredContent"), "error");
        assert_int_equal(answer.http, 200);
        assert_int_equal(json_integer_value(json_object_get(body, "id")), 7);
        assert_true(json_is_true(json_object_get(result, "isError")));
        assert_string_equal(json_string_value(json_object_get(block, "type")), "text");
        assert_string_equal(json_string_value(json_object_get(block, "text")),
                            "You lack a permission\nask an admin\n(permission_denied, audit c-42)");
        assert_true((json_object_get(result, "resultType") != NULL) == cases[i].is_modern);
        assert_true((json_object_get(result, "_meta") != NULL) == cases[i].is_modern);
        assert_true((error != NULL) == cases[i].has_structured);
        if (error != NULL) {
            char *text = json_dumps(error, JSON_COMPACT);
            assert_string_equal(text, "{\"code\":\"permission_denied\",\"message\":"
                                      "\"You lack a permission\",\"hint\":\"ask an admin\","
                                      "\"audit\":\"c-42\",\"permission\":\"tool:execute\"}");
            free(text);
        }
        json_decref(body);
    }
}

static void what_an_error_lacks_is_left_out(void **state)
{
    mcp_err_t err = error_of(MCP_FAIL_TOOL, MCP_CODE_NONE, NULL);
    mcp_answer_t answer;
    (void)state;
    json_decref(body_of(&err, "1", &legacy_11, &answer));
    assert_string_equal(answer.body,
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\","
                        "\"text\":\"The call failed\\n(internal)\"}],"
                        "\"structuredContent\":{\"error\":"
                        "{\"code\":\"internal\",\"message\":\"The call failed\"}},"
                        "\"isError\":true}}");
    /* without an id there is no request to give a result to */
    json_t *body = body_of(&err, NULL, &modern, &answer);
    assert_null(json_object_get(body, "result"));
    assert_non_null(json_object_get(body, "error"));
    json_decref(body);
}

static void a_withheld_tool_answers_like_one_that_nobody_has(void **state)
{
    static const mcp_code_t codes[] = {MCP_CODE_UNKNOWN_TOOL, MCP_CODE_RESTRICTED,
                                       MCP_CODE_FORBIDDEN};
    static const mcp_fail_t fails[] = {MCP_FAIL_TOOL, MCP_FAIL_PARAMS, MCP_FAIL_INTERNAL};
    const mcp_era_t *const eras[] = {&modern, &legacy_11, &legacy_03, NULL};
    (void)state;
    for (size_t i = 0; i < COUNT(codes) * COUNT(fails) * COUNT(eras); i++) {
        mcp_err_t err = error_of(fails[i / COUNT(codes) % COUNT(fails)], codes[i % COUNT(codes)],
                                 "withheld by rule 7: restricted, forbidden");
        mcp_answer_t answer;
        err.requested = "notion__delete";
        err.hint = "restricted";
        err.audit = "c-1";
        err.permission = "forbidden";
        err.scopes = MCP_SCOPE_TOOLS;
        json_decref(body_of(&err, "1", eras[i / (COUNT(codes) * COUNT(fails))], &answer));
        assert_int_equal(answer.http, 200);
        assert_string_equal(answer.body,
                            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,"
                            "\"message\":\"Unknown tool: notion__delete\"}}");
    }
}

static void a_withheld_tool_without_a_name_says_nothing_either(void **state)
{
    mcp_err_t err = error_of(MCP_FAIL_TOOL, MCP_CODE_RESTRICTED, "restricted by rule 7");
    mcp_answer_t answer;
    (void)state;
    json_decref(body_of(&err, "1", &modern, &answer));
    assert_non_null(strstr(answer.body, "\"message\":\"Unknown tool\"}}"));
    err = error_of(MCP_FAIL_PARAMS, MCP_CODE_UNKNOWN_TOOL, "Unknown tool: x");
    json_decref(body_of(&err, "1", &modern, &answer));
    assert_non_null(strstr(answer.body, "\"message\":\"Unknown tool: x\"}}"));
}

static void a_long_name_is_cut_in_the_answer(void **state)
{
    char name[2000];
    mcp_err_t err = error_of(MCP_FAIL_PARAMS, MCP_CODE_UNKNOWN_TOOL, NULL);
    mcp_answer_t answer;
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    err.requested = name;
    json_decref(body_of(&err, "1", &modern, &answer));
    assert_true(answer.body_bytes < MCP_MAX_REQUESTED + 120);
}

static void no_answer_shows_the_two_hidden_codes(void **state)
{
    (void)state;
    for (int fail = MCP_FAIL_NONE; fail <= MCP_FAIL_TOOL; fail++) {
        for (int code = MCP_CODE_NONE; code < MCP_CODE_COUNT; code++) {
            mcp_err_t err = error_of((mcp_fail_t)fail, (mcp_code_t)code, NULL);
            mcp_answer_t answer;
            json_decref(body_of(&err, "1", &modern, &answer));
            /* url_restricted is another code, and is shown */
            assert_null(strstr(answer.body, "\"restricted"));
            assert_null(strstr(answer.body, "(restricted"));
            assert_null(strstr(answer.body, "forbidden"));
        }
    }
}

static void the_head_of_a_result_is_modern_only(void **state)
{
    (void)state;
    assert_string_equal(mcp_failure_result_head(&legacy_11, pool), "");
    const char *head = mcp_failure_result_head(&modern, pool);
    assert_string_equal(head, mcp_failure_result_head(NULL, pool));
    json_t *object = json_loads(apr_pstrcat(pool, "{", head, "}", NULL), 0, NULL);
    json_t *server = json_object_get(json_object_get(object, "_meta"), MCP_META_SERVER);
    assert_string_equal(json_string_value(json_object_get(object, "resultType")), "complete");
    assert_string_equal(json_string_value(json_object_get(server, "name")), MCP_SERVER_NAME);
    assert_string_equal(json_string_value(json_object_get(server, "version")), MCP_SERVER_VERSION);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_has_its_status_and_code),
        cmocka_unit_test(an_id_that_is_not_known_is_left_out),
        cmocka_unit_test(an_unsupported_version_names_those_that_work),
        cmocka_unit_test(a_missing_capability_is_an_object),
        cmocka_unit_test(a_hint_goes_into_data),
        cmocka_unit_test(a_missing_scope_is_named),
        cmocka_unit_test(an_error_in_band_has_the_shape_of_its_era),
        cmocka_unit_test(what_an_error_lacks_is_left_out),
        cmocka_unit_test(a_withheld_tool_answers_like_one_that_nobody_has),
        cmocka_unit_test(a_withheld_tool_without_a_name_says_nothing_either),
        cmocka_unit_test(a_long_name_is_cut_in_the_answer),
        cmocka_unit_test(no_answer_shows_the_two_hidden_codes),
        cmocka_unit_test(the_head_of_a_result_is_modern_only),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
