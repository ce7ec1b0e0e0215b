/* From an upstream's response to the result of a tool call: every shape in every era. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <jansson.h>

#include "../../mod_mcp/mcp_result.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static apr_pool_t *pool;

typedef enum era_name { OLDEST, MIDDLE, LATEST_LEGACY, MODERN, ERAS } era_name_t;

static mcp_era_t era_of(era_name_t name)
{
    static const mcp_revision_t revisions[ERAS] = {MCP_REV_2025_03_26, MCP_REV_2025_06_18,
                                                   MCP_REV_2025_11_25, MCP_REV_2026_07_28};
    mcp_era_t era;

    memset(&era, 0, sizeof(era));
    era.is_modern = name == MODERN;
    era.revision = revisions[name];
    return era;
}

static mcp_response_t response_of(int status, const char *type, const char *body, size_t bytes)
{
    mcp_response_t response;

    memset(&response, 0, sizeof(response));
    response.status = status;
    response.content_type = type;
    response.body = body;
    response.body_bytes = bytes;
    return response;
}

/* The result as JSON; it must be one, and of the length told. */
static json_t *shape(const mcp_response_t *response, era_name_t name, int *ret_is_error)
{
    mcp_era_t era = era_of(name);
    const char *text = NULL;
    size_t bytes = 0;
    json_t *value = NULL;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    *ret_is_error = -1;
    assert_int_equal(
        mcp_result_shape(response, &era, "17-4", pool, &text, &bytes, ret_is_error, &err),
        APR_SUCCESS);
    assert_int_equal(bytes, strlen(text));
    if (mcp_json_parse(text, bytes, 600, &value, NULL) != MCP_OK || !json_is_object(value)) {
        fail_msg("not a JSON object: %.500s", text);
    }
    return value;
}

/* Takes the members that only modern results have off, after a look at them. */
static void check_head(json_t *result, era_name_t name)
{
    if (name != MODERN) {
        assert_null(json_object_get(result, "resultType"));
        assert_null(json_object_get(result, "_meta"));
        return;
    }
    assert_string_equal(mcp_json_str(result, "resultType"), "complete");
    assert_true(json_is_object(json_object_get(result, "_meta")));
    assert_int_equal(json_object_del(result, "resultType"), 0);
    assert_int_equal(json_object_del(result, "_meta"), 0);
}

static void expect(const mcp_response_t *response, era_name_t name, int is_error, const char *wanted)
{
    int told = -1;
    json_t *result = shape(response, name, &told);
    json_t *expected = json_loads(wanted, JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(expected);
    check_head(result, name);
    if (!json_equal(result, expected)) {
        fail_msg("era %d, status %d: %s instead of %s", (int)name, response->status,
                 json_dumps(result, 0), wanted);
    }
    assert_int_equal(told, is_error);
    json_decref(result);
    json_decref(expected);
}

static int setup(void **state)
{
    (void)state;
    return apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK ||
           apr_pool_create(&pool, NULL) != APR_SUCCESS;
}

static int teardown(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

/* --- successes ---------------------------------------------------------------------- */

typedef struct success_case {
    const char *type;
    const char *body;
    const char *structured[ERAS]; /* NULL: none */
} success_case_t;

static void json_is_text_and_structured_where_the_revision_knows_it(void **state)
{
    static const success_case_t cases[] = {
        {"application/json", "{\"a\":1}", {NULL, "{\"a\":1}", "{\"a\":1}", "{\"a\":1}"}},
        {"Application/JSON; charset=utf-8", "{\"a\":\"\xc3\xa9\"}",
         {NULL, "{\"a\":\"\xc3\xa9\"}", "{\"a\":\"\xc3\xa9\"}", "{\"a\":\"\xc3\xa9\"}"}},
        {"application/vnd.api+json", "{\"d\":[]}", {NULL, "{\"d\":[]}", "{\"d\":[]}", "{\"d\":[]}"}},
        {"application/json", " {\"a\":\r\n1}\n", {NULL, "{\"a\":1}", "{\"a\":1}", "{\"a\":1}"}},
        /* legacy clients take objects alone */
        {"application/json", "[1,2]", {NULL, NULL, NULL, "[1,2]"}},
        {"application/json", "\"x\"", {NULL, NULL, NULL, "\"x\""}},
        {"application/json", "null", {NULL, NULL, NULL, "null"}},
        {"application/json", "17", {NULL, NULL, NULL, "17"}},
        /* not JSON, or not to be trusted as such: text alone */
        {"application/json", "{\"a\":1,\"a\":2}", {NULL, NULL, NULL, NULL}},
        {"application/json", "{\"a\":1", {NULL, NULL, NULL, NULL}},
        {"application/json", "{\"a\":1} x", {NULL, NULL, NULL, NULL}},
        {"application/json", "{\"a\":123456789012345678901234567890}", {NULL, NULL, NULL, NULL}},
        {"application/json", "{\"a\":1e400}", {NULL, NULL, NULL, NULL}},
        {"application/json", "{\"a\":\"\\ud800\"}", {NULL, NULL, NULL, NULL}},
        {"application/json", "\xef\xbb\xbf{\"a\":1}", {NULL, NULL, NULL, NULL}},
        {"text/plain", "{\"a\":1}", {NULL, NULL, NULL, NULL}},
        {"application/jsonp", "{\"a\":1}", {NULL, NULL, NULL, NULL}},
        {"+json", "{\"a\":1}", {NULL, NULL, NULL, NULL}},
        {"", "{\"a\":1}", {NULL, NULL, NULL, NULL}}};
    size_t i;
    int era;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        for (era = OLDEST; era < ERAS; era++) {
            mcp_response_t response =
                response_of(200, cases[i].type, cases[i].body, strlen(cases[i].body));
            const char *structured = cases[i].structured[era];
            json_t *text = json_string(cases[i].body);
            char *quoted = json_dumps(text, JSON_ENCODE_ANY);
            const char *wanted = apr_pstrcat(
                pool, "{\"content\":[{\"type\":\"text\",\"text\":", quoted, "}]",
                structured != NULL ? ",\"structuredContent\":" : "",
                structured != NULL ? structured : "", "}", NULL);

            expect(&response, (era_name_t)era, 0, wanted);
            free(quoted);
            json_decref(text);
        }
    }
}

static void an_empty_body_says_so(void **state)
{
    static const int statuses[] = {200, 201, 204, 299};
    size_t i;
    int era;

    (void)state;
    for (i = 0; i < COUNT(statuses); i++) {
        for (era = OLDEST; era < ERAS; era++) {
            mcp_response_t response = response_of(statuses[i], "application/json", "", 0);

            expect(&response, (era_name_t)era, 0,
                   apr_psprintf(pool,
                                "{\"content\":[{\"type\":\"text\",\"text\":\"Done (HTTP %d, no "
                                "content).\"}]}",
                                statuses[i]));
        }
    }
}

static void bytes_become_the_block_of_their_type(void **state)
{
    static const struct {
        const char *type;
        const char *wanted;
    } cases[] = {
        {"image/png", "{\"type\":\"image\",\"data\":\"/wD+\",\"mimeType\":\"image/png\"}"},
        {"Audio/WAV;x=1", "{\"type\":\"audio\",\"data\":\"/wD+\",\"mimeType\":\"audio/wav\"}"},
        {"application/zip", "{\"type\":\"resource\",\"resource\":{\"uri\":\"body:response\","
                            "\"mimeType\":\"application/zip\",\"blob\":\"/wD+\"}}"},
        /* claims JSON and is none */
        {"application/json", "{\"type\":\"resource\",\"resource\":{\"uri\":\"body:response\","
                             "\"mimeType\":\"application/json\",\"blob\":\"/wD+\"}}"},
        {"", "{\"type\":\"resource\",\"resource\":{\"uri\":\"body:response\","
             "\"mimeType\":\"application/octet-stream\",\"blob\":\"/wD+\"}}"},
        /* an upstream's own words never end our JSON */
        {"image/\"},{\"x\":\"",
         "{\"type\":\"image\",\"data\":\"/wD+\",\"mimeType\":\"image/\\\"},{\\\"x\\\":\\\"\"}"}};
    size_t i;
    int era;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        for (era = OLDEST; era < ERAS; era++) {
            mcp_response_t response = response_of(200, cases[i].type, "\xff\0\xfe", 3);

            expect(&response, (era_name_t)era, 0,
                   apr_pstrcat(pool, "{\"content\":[", cases[i].wanted, "]}", NULL));
        }
    }
}

static void text_with_a_nul_is_bytes(void **state)
{
    mcp_response_t response = response_of(200, "text/plain", "a\0b", 3);

    (void)state;
    expect(&response, MODERN, 0,
           "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"body:response\","
           "\"mimeType\":\"text/plain\",\"blob\":\"YQBi\"}}]}");
}

static void text_is_quoted_whatever_it_says(void **state)
{
    const char body[] = "\"}],\"isError\":true,\"x\":\"\\\n\x01\xe2\x80\xa8</script>";
    mcp_response_t response = response_of(200, "text/html", body, sizeof(body) - 1);
    int is_error = -1;
    json_t *result = shape(&response, LATEST_LEGACY, &is_error);
    const json_t *block = json_array_get(json_object_get(result, "content"), 0);

    (void)state;
    assert_int_equal(is_error, 0);
    assert_int_equal(json_object_size(result), 1);
    assert_string_equal(mcp_json_str(block, "text"), body);
    json_decref(result);
}

/* --- failures ------------------------------------------------------------------------- */

static void a_failed_status_is_an_error_with_status_and_body(void **state)
{
    static const struct {
        int status;
        const char *message;
    } cases[] = {{400, "The application answered HTTP 400 Bad Request."},
                 {404, "The application answered HTTP 404 Not Found."},
                 {418, "The application answered HTTP 418."},
                 {429, "The application answered HTTP 429 Too Many Requests."},
                 {500, "The application answered HTTP 500 Internal Server Error."},
                 {599, "The application answered HTTP 599."},
                 {199, "The application answered HTTP 199."}};
    size_t i;
    int era;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        for (era = OLDEST; era < ERAS; era++) {
            mcp_response_t response =
                response_of(cases[i].status, "application/problem+json", "{\"d\":1}", 7);
            const char *structured =
                era == OLDEST ? ""
                              : apr_psprintf(pool,
                                             ",\"structuredContent\":{\"error\":{\"code\":\"upstream_"
                                             "status\",\"message\":\"%s\",\"status\":%d,\"audit\":\"17-"
                                             "4\"},\"body\":{\"d\":1}}",
                                             cases[i].message, cases[i].status);

            expect(&response, (era_name_t)era, 1,
                   apr_psprintf(pool,
                                "{\"content\":[{\"type\":\"text\",\"text\":\"%s\"},{\"type\":\"text\","
                                "\"text\":\"{\\\"d\\\":1}\"}],\"isError\":true%s}",
                                cases[i].message, structured));
        }
    }
}

static void a_failed_status_without_a_body_has_the_message_alone(void **state)
{
    mcp_response_t response = response_of(503, "", "", 0);

    (void)state;
    expect(&response, MIDDLE, 1,
           "{\"content\":[{\"type\":\"text\",\"text\":\"The application answered HTTP 503 Service "
           "Unavailable.\"}],\"isError\":true,\"structuredContent\":{\"error\":{\"code\":\"upstream_"
           "status\",\"message\":\"The application answered HTTP 503 Service Unavailable.\","
           "\"status\":503,\"audit\":\"17-4\"}}}");
}

static void a_body_that_is_no_json_stays_out_of_the_structured_error(void **state)
{
    mcp_response_t response = response_of(502, "text/html", "<h1>no</h1>", 11);
    int is_error = -1;
    json_t *result = shape(&response, MODERN, &is_error);
    const json_t *structured = json_object_get(result, "structuredContent");

    (void)state;
    assert_int_equal(is_error, 1);
    assert_null(json_object_get(structured, "body"));
    assert_int_equal(json_array_size(json_object_get(result, "content")), 2);
    json_decref(result);
}

static void a_redirect_that_was_not_followed_says_where_it_points(void **state)
{
    mcp_response_t response = response_of(302, "text/html", "", 0);
    int is_error = -1;
    json_t *result;
    const json_t *structured;

    (void)state;
    response.location = "https://other.example/\"x\"";
    result = shape(&response, MODERN, &is_error);
    structured = json_object_get(json_object_get(result, "structuredContent"), "error");
    assert_int_equal(is_error, 1);
    assert_int_equal(mcp_json_int(structured, "status", 0), 302);
    assert_non_null(strstr(mcp_json_str(structured, "message"), "https://other.example/\"x\""));
    json_decref(result);
    response.location = NULL;
    json_decref(shape(&response, OLDEST, &is_error));
    assert_int_equal(is_error, 1);
}

static void a_redirect_is_told_without_what_may_be_a_secret(void **state)
{
    static const struct {
        const char *location;
        const char *shown; /* NULL: the place is not named */
    } rows[] = {{"https://a.example/x?key=PLANTED", "https://a.example/x,"},
                {"https://a.example/x#PLANTED", "https://a.example/x,"},
                {"/x?PLANTED", " /x,"},
                {"/x?a=PLANTED@b", " /x,"},
                {"https://user:PLANTED@a.example/", NULL},
                {"https://PLANTED@a.example", NULL},
                {"https://u:a/PLANTED@a.example", NULL},
                {"//user:PLANTED@a.example/", NULL},
                {"http:/user:PLANTED@a.example/", NULL},
                {"http:user:PLANTED@a.example/", NULL},
                {"http:\\\\user:PLANTED\\a.example/", NULL},
                {"\\\\PLANTED", NULL},
                {"?PLANTED", " points to ,"},
                {"", " points to ,"}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static const char page[] = "<a href=\"?key=PLANTED\">here</a>";
        mcp_response_t response = response_of(302, "text/html", page, sizeof(page) - 1);
        int is_error = -1;
        json_t *result;
        char *text;

        response.location = rows[i].location;
        result = shape(&response, MODERN, &is_error);
        text = json_dumps(result, JSON_COMPACT);
        assert_non_null(text);
        assert_null(strstr(text, "PLANTED"));
        assert_non_null(strstr(text, rows[i].shown != NULL ? rows[i].shown : "another place"));
        free(text);
        json_decref(result);
    }
}

static void a_body_of_too_many_values_is_text(void **state)
{
    static char many[2 * MCP_MAX_VALUES + 4];
    size_t extra;

    (void)state;
    for (extra = 0; extra < 2; extra++) {
        size_t numbers = MCP_MAX_VALUES - 1 + extra; /* and their list */
        size_t used = 0;
        size_t i;
        mcp_response_t response;
        int is_error = -1;
        json_t *result;

        for (i = 0; i < numbers; i++) {
            many[used++] = i == 0 ? '[' : ',';
            many[used++] = '1';
        }
        many[used++] = ']';
        response = response_of(200, "application/json", many, used);
        result = shape(&response, MODERN, &is_error);
        assert_int_equal(is_error, 0);
        assert_int_equal(json_object_get(result, "structuredContent") != NULL, extra == 0);
        json_decref(result);
    }
}

static void a_body_deeper_than_we_read_is_text(void **state)
{
    static char deep[1200];
    mcp_response_t response;
    int is_error = -1;
    json_t *result;
    int depth;

    (void)state;
    for (depth = 512; depth <= 513; depth++) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        deep[2 * depth] = '\0';
        response = response_of(200, "application/json", deep, strlen(deep));
        result = shape(&response, MODERN, &is_error);
        assert_int_equal(json_object_get(result, "structuredContent") != NULL, depth == 512);
        json_decref(result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_text_and_structured_where_the_revision_knows_it),
        cmocka_unit_test(an_empty_body_says_so),
        cmocka_unit_test(bytes_become_the_block_of_their_type),
        cmocka_unit_test(text_with_a_nul_is_bytes),
        cmocka_unit_test(text_is_quoted_whatever_it_says),
        cmocka_unit_test(a_failed_status_is_an_error_with_status_and_body),
        cmocka_unit_test(a_failed_status_without_a_body_has_the_message_alone),
        cmocka_unit_test(a_body_that_is_no_json_stays_out_of_the_structured_error),
        cmocka_unit_test(a_redirect_that_was_not_followed_says_where_it_points),
        cmocka_unit_test(a_redirect_is_told_without_what_may_be_a_secret),
        cmocka_unit_test(a_body_of_too_many_values_is_text),
        cmocka_unit_test(a_body_deeper_than_we_read_is_text)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
