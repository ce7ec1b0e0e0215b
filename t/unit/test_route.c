/* Room mcp_route: from the parts of a REST request to an operation and its arguments. */
#include "mcp_route.h"

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

#include "../../proto/mcp_body.h"
#include "../../proto/mcp_kind_text.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

#define ROW(op, method, path, more)                                                                \
    "{\"op\":\"" op "\",\"method\":\"" method "\",\"path\":\"" path "\",\"class\":\"write\","         \
    "\"max_bytes\":1000," more "}"

static const char table[] =
    "{\"v\":1,\"routes\":["
    ROW("members__list", "GET", "/members",
        "\"if_revision\":false,\"status\":200,\"words\":{},\"query\":{\"limit\":\"integer\","
        "\"state\":\"string\",\"cursor\":\"string\",\"names\":\"strings\",\"erase\":\"boolean\","
        "\"ratio\":\"number\",\"any\":\"integer|boolean|string\",\"filter\":\"json\"}") ","
    ROW("members__create", "POST", "/members",
        "\"if_revision\":false,\"status\":201,\"words\":{},\"query\":{\"dry_run\":\"boolean\"},"
        "\"location\":\"/members/{member}\"") ","
    ROW("members__get", "GET", "/members/{member}",
        "\"if_revision\":false,\"status\":200,\"words\":{\"member\":\"string\"},\"query\":{}") ","
    ROW("members__update", "PATCH", "/members/{member}",
        "\"if_revision\":true,\"status\":200,\"words\":{\"member\":\"string\"},\"query\":{}") ","
    ROW("members__me", "GET", "/members/me",
        "\"if_revision\":false,\"status\":200,\"words\":{},\"query\":{}") ","
    ROW("pages__get", "GET", "/pages/{page}/{part}",
        "\"if_revision\":false,\"status\":200,\"words\":{\"page\":\"integer\",\"part\":\"string\"},"
        "\"query\":{}") ","
    ROW("pages__last", "GET", "/pages/{page}/last",
        "\"if_revision\":false,\"status\":200,\"words\":{\"page\":\"integer\"},\"query\":{}")
    "]}";

static apr_pool_t *pool;
static const mcp_routes_t *routes;

static int set_up(void **state)
{
    (void)state;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return -1;
    }
    return mcp_route_compile(table, sizeof(table) - 1, pool, &routes, NULL) == APR_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

static mcp_route_match_t found(const char *method, const char *path)
{
    mcp_route_match_t match;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    if (mcp_route_find(routes, method, path, pool, &match, &err) != APR_SUCCESS) {
        fail_msg("%s %s: %s", method, path, err.message);
    }
    return match;
}

/* --- finding ---------------------------------------------------------------------------- */

static void paths_lead_to_their_operations(void **state)
{
    static const struct {
        const char *method, *path, *op, *word;
    } cases[] = {
        {"GET", "/members", "members__list", NULL},
        {"HEAD", "/members", "members__list", NULL},
        {"POST", "/members", "members__create", NULL},
        {"GET", "/members/mem_1", "members__get", "mem_1"},
        {"PATCH", "/members/mem_1", "members__update", "mem_1"},
        {"GET", "/members/ada%40example.org", "members__get", "ada@example.org"},
        {"GET", "/members/a%2Fb", "members__get", "a/b"},
        {"GET", "/members/a%252Fb", "members__get", "a%2Fb"},
        {"GET", "/members/a+b", "members__get", "a+b"},
        {"GET", "/members/%c3%bc", "members__get", "\xc3\xbc"},
        {"GET", "/%6dembers", "members__list", NULL},
        {"GET", "/members/me", "members__me", NULL},      /* a literal before a word */
        {"PATCH", "/members/me", "members__update", "me"}, /* which this method does not have */
        {"GET", "/members/{member}", "members__get", "{member}"},
        {"GET", "/members/...", "members__get", "..."},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        mcp_route_match_t match = found(cases[i].method, cases[i].path);

        assert_string_equal(match.route->op, cases[i].op);
        if (cases[i].word != NULL) {
            assert_string_equal(match.words[1], cases[i].word);
        } else {
            assert_null(match.words[0]);
        }
    }
    assert_string_equal(found("GET", "/pages/1/last").route->op, "pages__last");
    assert_string_equal(found("GET", "/pages/1/x").route->op, "pages__get");
}

static void other_paths_are_not_found_or_refused(void **state)
{
    static const struct {
        const char *path;
        mcp_fail_t fail;
    } cases[] = {
        {"", MCP_FAIL_TOOL},
        {"/", MCP_FAIL_TOOL},
        {"members", MCP_FAIL_TOOL},
        {"/Members", MCP_FAIL_TOOL},
        {"/members/", MCP_FAIL_TOOL},
        {"//members", MCP_FAIL_TOOL},
        {"/members//x", MCP_FAIL_TOOL},
        {"/members/x/y", MCP_FAIL_TOOL},
        {"/members/.", MCP_FAIL_TOOL},
        {"/members/..", MCP_FAIL_TOOL},
        {"/members/%2e%2e", MCP_FAIL_TOOL},
        {"/members/%2E", MCP_FAIL_TOOL},
        {"/x/../members", MCP_FAIL_TOOL},
        {"/members;x=1", MCP_FAIL_TOOL},
        {"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", MCP_FAIL_TOOL},
        {"/members/%", MCP_FAIL_REQUEST},
        {"/members/%4", MCP_FAIL_REQUEST},
        {"/members/%zz", MCP_FAIL_REQUEST},
        {"/members/a%00b", MCP_FAIL_REQUEST},
        {"/members/a%0ab", MCP_FAIL_REQUEST},
        {"/members/%7f", MCP_FAIL_REQUEST},
        {"/members/%ff", MCP_FAIL_REQUEST},
        {"/members/%c0%af", MCP_FAIL_REQUEST},
        {"/members/%ed%a0%80", MCP_FAIL_REQUEST},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        mcp_route_match_t match;
        mcp_err_t err;

        memset(&err, 0, sizeof(err));
        if (mcp_route_find(routes, "GET", cases[i].path, pool, &match, &err) == APR_SUCCESS ||
            err.fail != cases[i].fail) {
            fail_msg("%s", cases[i].path);
        }
        assert_int_equal(err.code,
                         err.fail == MCP_FAIL_TOOL ? MCP_CODE_NOT_FOUND : MCP_CODE_INVALID_REQUEST);
        assert_null(match.route);
    }
}

static void another_method_is_told_which_there_are(void **state)
{
    static const struct {
        const char *method, *path, *allow;
    } cases[] = {
        {"DELETE", "/members", "GET, HEAD, POST, OPTIONS"},
        {"PUT", "/members/x", "GET, HEAD, PATCH, OPTIONS"},
        {"DELETE", "/members/me", "GET, HEAD, PATCH, OPTIONS"},
        {"get", "/members", "GET, HEAD, POST, OPTIONS"},
        {"TRACE", "/members/x", "GET, HEAD, PATCH, OPTIONS"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        mcp_route_match_t match;
        mcp_err_t err;

        memset(&err, 0, sizeof(err));
        assert_int_not_equal(
            mcp_route_find(routes, cases[i].method, cases[i].path, pool, &match, &err), APR_SUCCESS);
        assert_int_equal(err.fail, MCP_FAIL_HTTP_METHOD);
        assert_string_equal(match.allow, cases[i].allow);
    }
}

/* --- arguments ---------------------------------------------------------------------------- */

/* The arguments as sorted JSON text, or "!" and the code and message. */
static const char *args_of(const char *method, const char *path, const char *query, const char *body,
                           const char *if_match)
{
    mcp_route_match_t match = found(method, path);
    mcp_route_input_t input;
    json_t *args = NULL;
    mcp_err_t err;
    char *text;
    const char *kept;

    memset(&err, 0, sizeof(err));
    memset(&input, 0, sizeof(input));
    input.query = query;
    input.body = body;
    input.body_bytes = body != NULL ? strlen(body) : 0;
    input.if_match = if_match;
    if (mcp_route_args(&match, &input, pool, &args, &err) != APR_SUCCESS) {
        return apr_psprintf(pool, "!%s %s", mcp_code_text(err.code), err.message);
    }
    text = json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS);
    kept = apr_pstrdup(pool, text);
    free(text);
    return kept;
}

static void query_strings_become_values(void **state)
{
    static const char *const cases[][2] = {
        {NULL, "{}"},
        {"", "{}"},
        {"&&", "{}"},
        {"limit=5", "{\"limit\":5}"},
        {"limit=-5", "{\"limit\":-5}"},
        {"limit=0", "{\"limit\":0}"},
        {"state=active&limit=5", "{\"limit\":5,\"state\":\"active\"}"},
        {"state=", "{\"state\":\"\"}"},
        {"state", "{\"state\":\"\"}"},
        {"state=a+b%2Bc%26%3d", "{\"state\":\"a b+c&=\"}"},
        {"state=a=b", "{\"state\":\"a=b\"}"},
        {"%73tate=x", "{\"state\":\"x\"}"},
        {"state=5", "{\"state\":\"5\"}"},
        {"names=a", "{\"names\":[\"a\"]}"},
        {"names=a&names=b,c", "{\"names\":[\"a\",\"b,c\"]}"},
        {"erase=true", "{\"erase\":true}"},
        {"erase=false", "{\"erase\":false}"},
        {"ratio=1.5", "{\"ratio\":1.5}"},
        {"ratio=2", "{\"ratio\":2}"},
        {"any=7", "{\"any\":7}"},
        {"any=true", "{\"any\":true}"},
        {"any=07", "{\"any\":\"07\"}"},
        {"any=seven", "{\"any\":\"seven\"}"},
        {"filter=%7B%22a%22%3A%5B1%5D%7D", "{\"filter\":{\"a\":[1]}}"},
        {"filter=7", "{\"filter\":7}"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        const char *got = args_of("GET", "/members", cases[i][0], NULL, NULL);

        if (strcmp(got, cases[i][1]) != 0) {
            fail_msg("%s: %s", cases[i][0], got);
        }
    }
}

static void bad_query_strings_are_refused_by_name(void **state)
{
    static const char *const cases[][2] = {
        {"limt=5", "'limt' is unknown"},
        {"Limit=5", "'Limit' is unknown"},
        {"=5", "'' is unknown"},
        {"limit=5&limit=6", "'limit' stands twice"},
        {"limit=5&limit=5", "'limit' stands twice"},
        {"limit=five", "limit must be an integer"},
        {"limit=5.0", "limit must be an integer"},
        {"limit=05", "limit must be an integer"},
        {"limit=+5", "limit must be an integer"},
        {"limit=", "limit must be an integer"},
        {"limit=1e3", "limit must be an integer"},
        {"limit=99999999999999999999", "limit must be an integer"},
        {"erase=1", "erase must be true or false"},
        {"erase=TRUE", "erase must be true or false"},
        {"ratio=x", "ratio must be a number"},
        {"ratio=true", "ratio must be a number"},
        {"ratio=1e999", "ratio must be a number"},
        {"filter={", "filter must be JSON text"},
        {"filter={\"a\":1,\"a\":2}", "filter must be JSON text"},
        {"state=%", "not percent-encoded UTF-8"},
        {"state=%f", "not percent-encoded UTF-8"},
        {"state=%ff", "not percent-encoded UTF-8"},
        {"state=%00", "not percent-encoded UTF-8"},
        {"%zz=1", "not percent-encoded UTF-8"},
        {"member=x", "'member' is unknown"},
        {"if_revision=3", "'if_revision' is unknown"},
    };
    char many[1024] = "";
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        const char *got = args_of("GET", "/members", cases[i][0], NULL, NULL);

        if (strncmp(got, "!invalid_request ", 17) != 0 || strstr(got, cases[i][1]) == NULL) {
            fail_msg("%s: %s", cases[i][0], got);
        }
    }
    for (i = 0; i < MCP_ROUTE_MAX_PAIRS; i++) {
        memcpy(many + strlen(many), "names=x&", 9);
    }
    assert_int_equal(args_of("GET", "/members", many, NULL, NULL)[0], '{');
    memcpy(many + strlen(many), "names=x&", 9);
    assert_non_null(strstr(args_of("GET", "/members", many, NULL, NULL), "more than 64 parameters"));
}

static void no_message_shows_a_value(void **state)
{
    static const char *const queries[] = {"limit=s3cret", "erase=s3cret", "filter=s3cret{", "state=s3cret%",
                                          "state=s3cret&state=s3cret"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(queries); i++) {
        const char *got = args_of("GET", "/members", queries[i], NULL, NULL);

        assert_int_equal(got[0], '!');
        assert_null(strstr(got, "s3cret"));
    }
}

static void bodies_are_objects(void **state)
{
    static const char *const good[][2] = {
        {"{}", "{}"},
        {" {\"email\":\"a@b\"} ", "{\"email\":\"a@b\"}"},
        {NULL, "{}"},
    };
    static const char *const bad[] = {"", "[]", "7", "null", "\"x\"", "{", "{\"a\":1,\"a\":2}", "{}{}", "{\"a\":\"\\u0000\"}",
                                      "{\"a\":1e999}", "{'a':1}", "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}"};
    char deep[256];
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(good); i++) {
        assert_string_equal(args_of("POST", "/members", NULL, good[i][0], NULL), good[i][1]);
    }
    for (i = 0; i < COUNT(bad); i++) {
        const char *got = args_of("POST", "/members", NULL, bad[i], NULL);

        if (strncmp(got, "!invalid_request ", 17) != 0) {
            fail_msg("%s: %s", bad[i], got);
        }
    }
    /* at the limit and above: what policyd reads wraps it twice */
    for (i = 0; i < 2; i++) {
        size_t levels = MCP_MAX_DEPTH - 3 + i;

        memcpy(deep, "{\"a\":", 5);
        memset(deep + 5, '[', levels);
        memset(deep + 5 + levels, ']', levels);
        memcpy(deep + 5 + 2 * levels, "}", 2);
        assert_int_equal(args_of("POST", "/members", NULL, deep, NULL)[0], i == 0 ? '{' : '!');
    }
}

static void a_body_of_too_many_values_is_too_large(void **state)
{
    size_t bytes = 2 * (size_t)MCP_MAX_VALUES + 16;
    char *body = malloc(bytes);
    size_t used = 6;
    size_t i;

    (void)state;
    memcpy(body, "{\"a\":[", 6);
    for (i = 0; i < MCP_MAX_VALUES; i++) {
        body[used++] = '1';
        body[used++] = ',';
    }
    memcpy(body + used - 1, "]}", 3);
    assert_memory_equal(args_of("POST", "/members", NULL, body, NULL), "!too_large", 10);
    free(body);
}

static void path_query_and_body_are_one(void **state)
{
    (void)state;
    assert_string_equal(args_of("PATCH", "/members/m1", NULL, "{\"name\":\"x\"}", NULL),
                        "{\"member\":\"m1\",\"name\":\"x\"}");
    assert_string_equal(args_of("PATCH", "/members/m1", NULL, "{\"member\":\"m1\"}", NULL),
                        "{\"member\":\"m1\"}");
    assert_non_null(strstr(args_of("PATCH", "/members/m1", NULL, "{\"member\":\"m2\"}", NULL),
                           "member is said twice"));
    assert_non_null(
        strstr(args_of("PATCH", "/members/m1", NULL, "{\"member\":1}", NULL), "member is said twice"));
    assert_string_equal(args_of("POST", "/members", "dry_run=true", "{\"email\":\"a\"}", NULL),
                        "{\"dry_run\":true,\"email\":\"a\"}");
    assert_string_equal(args_of("POST", "/members", "dry_run=true", NULL, NULL), "{\"dry_run\":true}");
    assert_non_null(strstr(args_of("POST", "/members", "dry_run=true", "{\"dry_run\":false}", NULL),
                           "dry_run is said twice"));
    assert_non_null(strstr(args_of("POST", "/members", "email=a", "{}", NULL), "'email' is unknown"));
    assert_string_equal(args_of("GET", "/pages/7/x", NULL, NULL, NULL), "{\"page\":7,\"part\":\"x\"}");
    assert_non_null(strstr(args_of("GET", "/pages/seven/x", NULL, NULL, NULL), "page must be an integer"));
}

/* --- preconditions -------------------------------------------------------------------------- */

static void if_match_becomes_a_revision(void **state)
{
    static const char *const cases[][2] = {
        {"\"7\"", "{\"if_revision\":7,\"member\":\"m\"}"},
        {"  \"7\" ", "{\"if_revision\":7,\"member\":\"m\"}"},
        {"\"7-gzip\"", "{\"if_revision\":7,\"member\":\"m\"}"},
        {"\"7-br\"", "{\"if_revision\":7,\"member\":\"m\"}"},
        {"\"x\", \"7\"", "{\"if_revision\":7,\"member\":\"m\"}"},
        {"W/\"6\", \"7\"", "{\"if_revision\":7,\"member\":\"m\"}"},
        {"\"7\",\"7\"", "{\"if_revision\":7,\"member\":\"m\"}"},
        {"*", "{\"member\":\"m\"}"},
        {" * ", "{\"member\":\"m\"}"},
        {"W/\"7\"", "!revision_mismatch"},
        {"\"x\"", "!revision_mismatch"},
        {"\"\"", "!revision_mismatch"},
        {"\"0\"", "!revision_mismatch"},
        {"\"-7\"", "!revision_mismatch"},
        {"\"07\"", "!revision_mismatch"},
        {"\"7 \"", "!revision_mismatch"},
        {"\"99999999999999999999\"", "!revision_mismatch"},
        {"", "!invalid_request"},
        {"7", "!invalid_request"},
        {"\"7", "!invalid_request"},
        {"7\"", "!invalid_request"},
        {"W/", "!invalid_request"},
        {"w/\"7\"", "!invalid_request"},
        {"*, \"7\"", "!invalid_request"},
        {"\"7\", x", "!invalid_request"},
        {"\"6\", \"7\"", "!invalid_request"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        const char *got = args_of("PATCH", "/members/m", NULL, "{}", cases[i][0]);

        if (strncmp(got, cases[i][1], strlen(cases[i][1])) != 0) {
            fail_msg("%s: %s", cases[i][0], got);
        }
    }
    assert_string_equal(args_of("PATCH", "/members/m", NULL, "{\"if_revision\":7}", "\"7\""),
                        "{\"if_revision\":7,\"member\":\"m\"}");
    assert_non_null(strstr(args_of("PATCH", "/members/m", NULL, "{\"if_revision\":6}", "\"7\""),
                           "if_revision is said twice"));
    /* a condition that can't be kept is not ignored */
    assert_non_null(strstr(args_of("POST", "/members", NULL, "{}", "\"7\""), "takes no If-Match"));
    assert_string_equal(args_of("POST", "/members", NULL, "{}", "*"), "{}");
}

static void if_none_match_compares_weakly(void **state)
{
    static const struct {
        const char *header;
        int matches;
    } cases[] = {
        {NULL, 0},          {"", 0},           {"\"7\"", 1},    {"W/\"7\"", 1}, {"\"6\"", 0},   {"\"77\"", 0},
        {"\"6\", \"7\"", 1}, {"\"7-gzip\"", 1}, {"*", 1},        {"7", 0},       {"\"7", 0},     {"\"\"", 0},
        {"x, \"7\"", 0},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        if (mcp_route_is_none_match(cases[i].header, "\"7\"") != cases[i].matches) {
            fail_msg("%s", cases[i].header != NULL ? cases[i].header : "(none)");
        }
    }
    assert_int_equal(mcp_route_is_none_match("*", NULL), 0);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void answers_lead_on(void **state)
{
    mcp_route_match_t create = found("POST", "/members");
    json_t *result = json_pack("{s:s, s:i}", "member", "a/b ü", "revision", 12);

    (void)state;
    assert_string_equal(mcp_route_location(create.route, result, pool), "/members/a%2Fb%20%C3%BC");
    assert_string_equal(mcp_route_etag(result, pool), "\"12\"");
    json_object_set_new(result, "member", json_string(".."));
    assert_null(mcp_route_location(create.route, result, pool));
    json_object_set_new(result, "member", json_integer(7));
    assert_null(mcp_route_location(create.route, result, pool));
    json_object_set_new(result, "revision", json_string("12"));
    assert_null(mcp_route_etag(result, pool));
    json_decref(result);
    assert_null(mcp_route_location(found("GET", "/members").route, NULL, pool));
    {
        mcp_route_match_t member = found("GET", "/members/%3Ca%2Fb%3E");

        assert_string_equal(mcp_route_self(&member, pool), "/members/%3Ca%2Fb%3E");
    }
    assert_string_equal(mcp_route_next("limit=2&cursor=old&names=a+b&names=%3E", "c/1", pool),
                        "limit=2&names=a%20b&names=%3E&cursor=c%2F1");
    assert_string_equal(mcp_route_next(NULL, "c", pool), "cursor=c");
}

/* --- the table --------------------------------------------------------------------------------- */

static void another_table_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{}",
        "{\"v\":2,\"routes\":[]}",
        "{\"v\":1}",
        "{\"v\":1,\"routes\":{}}",
        "{\"v\":1,\"routes\":[7]}",
        "{\"v\":1,\"routes\":[{}]}",
        "{\"v\":1,\"routes\":[" ROW("a__b", "GET", "/a/{b}",
                                    "\"status\":200,\"words\":{},\"query\":{}") "]}",
        "{\"v\":1,\"routes\":[" ROW("a__b", "GET", "/a/{b}",
                                    "\"status\":200,\"words\":{\"b\":\"tree\"},\"query\":{}") "]}",
        "{\"v\":1,\"routes\":[" ROW("a__b", "GET", "/a", "\"status\":200,\"words\":{}") "]}",
        "{\"v\":1,\"routes\":[" ROW("a__b", "GET", "/a",
                                    "\"status\":200,\"words\":{},\"query\":{\"x\":7}") "]}",
        "{\"v\":1,\"routes\":[" ROW("a__b", "GET", "a", "\"status\":200,\"words\":{},\"query\":{}") "]}",
        "{\"v\":1,\"routes\":[" ROW("a__b", "GET", "", "\"status\":200,\"words\":{},\"query\":{}") "]}",
        "{\"v\":1,\"routes\":[" ROW("a__b", "GET", "/a", "\"status\":404,\"words\":{},\"query\":{}") "]}",
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        const mcp_routes_t *made = NULL;
        mcp_err_t err;

        memset(&err, 0, sizeof(err));
        if (mcp_route_compile(cases[i], strlen(cases[i]), pool, &made, &err) == APR_SUCCESS) {
            fail_msg("%s", cases[i]);
        }
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
        assert_null(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_their_operations),
        cmocka_unit_test(other_paths_are_not_found_or_refused),
        cmocka_unit_test(another_method_is_told_which_there_are),
        cmocka_unit_test(query_strings_become_values),
        cmocka_unit_test(bad_query_strings_are_refused_by_name),
        cmocka_unit_test(no_message_shows_a_value),
        cmocka_unit_test(bodies_are_objects),
        cmocka_unit_test(a_body_of_too_many_values_is_too_large),
        cmocka_unit_test(path_query_and_body_are_one),
        cmocka_unit_test(if_match_becomes_a_revision),
        cmocka_unit_test(if_none_match_compares_weakly),
        cmocka_unit_test(answers_lead_on),
        cmocka_unit_test(another_table_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
