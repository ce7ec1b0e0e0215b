/* The guard over substituted URLs (mcp_urlguard.c), alone and behind the template. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mcp_template.h"
#include "mcp_urlguard.h"

#define BASE "https://api.example/v1"

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

/* JSON with ' for " to keep the tables readable. */
static json_t *parse(const char *text)
{
    char *copy = apr_pstrdup(pool, text);
    json_t *value;

    for (char *at = copy; *at != '\0'; ++at) {
        *at = *at == '\'' ? '"' : *at;
    }
    value = json_loads(copy, JSON_REJECT_DUPLICATES, NULL);
    if (value == NULL) {
        print_error("bad test data: %s\n", copy);
        fail();
    }
    return value;
}

typedef struct row_case {
    char verdict;
    const char *row;
} row_case_t;

static const row_case_t connector_rows[] = {
    {'a', "{'id':'get','method':'GET','path':'/users/{id}','query':[]}"},
    {'a', "{'id':'me','method':'GET','path':'/users/me'}"},
    {'d', "{'id':'admin','method':'GET','path':'/users/admin'}"},
    {'b', "{'id':'blocked','method':'get','path':'/users/blocked'}"},
    {'d', "{'id':'posts','method':'GET','path':'/users/{id}/posts'}"},
    {'a', "{'id':'likes','method':'GET','path':'/users/{id}/likes'}"},
    {'d', "{'id':'csv','method':'GET','path':'/users/{id}.csv'}"},
    {'d', "{'id':'purge','method':'GET','path':'/users/{id}:purge'}"},
    {'d', "{'id':'tag','method':'GET','path':'/tags/{t}'}"},
    {'d', "{'id':'kept','method':'GET','path':'/tags/{t}/kept'}"},
    {'a', "{'id':'put','method':'PUT','path':'/users/{id}'}"},
    {'a', "{'id':'file','method':'GET','path':'/files/{+path}'}"},
    {'d', "{'id':'secret','method':'GET','path':'/files/secret/{name}'}"},
    {'d', "{'id':'tail','method':'GET','path':'/files/{+path}/log'}"},
    {'d', "{'id':'undo','method':'GET','path':'/files/{+path}:undo'}"},
    {'a', "{'id':'top','method':'GET','path':'/files/{one}'}"},
    {'a', "{'id':'do','method':'GET','path':'/do'}"},
    {'d', "{'id':'delete','method':'GET','path':'/do','query':[['action','delete']]}"},
    {'a', "{'id':'show','method':'GET','path':'/do','query':[['action','show']]}"},
    {'d', "{'id':'wipe','method':'GET','path':'/do?action=wipe&now#x'}"},
    {'a', "{'id':'twin1','method':'GET','path':'/twin/{a}'}"},
    {'d', "{'id':'twin2','method':'GET','path':'/twin/{b}'}"},
    {'a', "{'id':'bad1','method':'GET','path':'/bad/{a}'}"},
    {'b', "{'id':'bad2','method':'GET','path':'/bad/{b}'}"},
    {'d', "{'id':'denied','method':'GET','path':'/denied/{a}'}"},
    {'a', "{'id':'tie1','method':'GET','path':'/tie/{a}.xy'}"},
    {'d', "{'id':'tie2','method':'GET','path':'/tie/z{a}.x{b}'}"},
    {'a', "{'id':'matrix','method':'GET','path':'/m/{id}/end'}"},
    {'d', "{'id':'root','method':'GET','path':'/'}"},
    {'a', "{'id':'slash','method':'GET','path':'/slash/'}"},
    {'a', "{'id':'spaced','method':'GET','path':'/a b/%C3%A9'}"},
    {'a', "{'id':'fold','method':'GET','path':'/pages/{p}'}"},
    {'d', "{'id':'Fold','method':'GET','path':'/Pages/Index'}"},
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* A guard and the verdicts of one caller. */
typedef struct gate {
    mcp_guard_t *guard;
    char *verdicts;
} gate_t;

static mcp_guard_t *guard_of(const char *blob)
{
    json_t *value = parse(blob);
    mcp_guard_t *guard = NULL;

    assert_int_equal(mcp_urlguard_compile(value, pool, &guard, NULL), APR_SUCCESS);
    json_decref(value); /* the guard keeps nothing of it */
    return guard;
}

static gate_t gate_of(const row_case_t *rows, size_t count)
{
    char *blob = apr_pstrdup(pool, "{'connector':'c','operations':[");
    gate_t gate = {.verdicts = apr_pcalloc(pool, count + 1)};

    for (size_t i = 0; i < count; ++i) {
        blob = apr_pstrcat(pool, blob, i > 0 ? "," : "", rows[i].row, NULL);
        gate.verdicts[i] = rows[i].verdict;
    }
    gate.guard = guard_of(apr_pstrcat(pool, blob, "]}", NULL));
    assert_int_equal(mcp_urlguard_rows(gate.guard), count);
    return gate;
}

static gate_t connector(void)
{
    return gate_of(connector_rows, ROWS(connector_rows));
}

/* --- URLs as they are --------------------------------------------------------- */

typedef struct url_case {
    const char *operation;
    const char *url; /* behind the base */
    int is_fine;
} url_case_t;

static const url_case_t urls[] = {
    {"get", "/users/7", 1},
    {"get", "/users/7/", 1},
    {"get", "/users//7", 1},
    {"get", "/users/7?x=1", 1},
    {"get", "/users/7/posts", 0},
    {"get", "/users/7/likes", 1}, /* another's, but the caller has it */
    {"get", "/users/7/nothing", 0},
    {"get", "/users", 0},
    {"get", "", 0},
    {"get", "/", 0},
    {"get", "/users/", 0},
    {"get", "/users/me", 1},
    {"get", "/users/admin", 0},
    {"admin", "/users/admin", 1}, /* what policyd let through is not judged again */
    {"get", "/users/blocked", 0},
    {"blocked", "/users/blocked", 0}, /* but a block is a block */
    {"nobody", "/users/7", 0},
    /* other ways to write the withheld one */
    {"get", "/users/admin/", 0},
    {"get", "/users//admin", 0},
    {"get", "/users/%61dmin", 0},
    {"get", "/users/%2561dmin", 0},
    {"get", "/users/%252561dmin", 0},
    {"get", "/users/%25252561dmin", 0},
    {"get", "/users/%2525252561dmin", 0}, /* not stable after the rounds allowed */
    {"get", "/users/%252525252561dmin", 0},
    {"get", "/users/ADMIN", 0},
    {"get", "/users/%41dmin", 0},
    {"get", "/users/admin;x=1", 0},
    {"get", "/users/admin%3Bx%3D1", 0},
    {"get", "/users/admin%253Bx%253D1", 0},
    {"get", "/users/ADMIN%3B", 0},
    {"get", "/users/admin%3Fx", 0},
    {"get", "/users/admin%23x", 0},
    {"get", "/users/admin%00", 0},
    {"get", "/users/admin%2500.txt", 0},
    {"get", "/users/admin.", 0},
    {"get", "/users/admin%20", 0},
    {"get", "/users/%20admin", 0},
    {"get", "/users/%2Fadmin", 0},
    {"get", "/users/admin%2F", 0},
    {"get", "/users/%5Cadmin", 0},
    {"get", "/users/%255Cadmin", 0},
    {"get", "/users/%C1%A1dmin", 0}, /* overlong a */
    {"get", "/users/%25C1%25A1dmin", 0},
    {"get", "/users/%E0%81%A1dmin", 0},
    {"get", "/users/%F0%80%81%A1dmin", 0},
    {"get", "/users/%25u0061dmin", 0},
    {"get", "/users/%EF%BD%81dmin", 0},   /* full-width a */
    {"get", "/users/%EF%BC%8Fadmin", 0},  /* full-width slash */
    {"get", "/users/admin%EF%BC%9Bx", 0}, /* full-width semicolon */
    {"get", "/users/bloc%E2%84%AAed", 0}, /* Kelvin sign */
    {"get", "/users/adm%C4%B1n", 0},      /* dotless i */
    /* ids that only look odd */
    {"get", "/users/a%2Fb", 1},
    {"get", "/users/a%2Fposts", 0},
    {"get", "/users/a%252Fposts", 0},
    {"get", "/users/a%5Cposts", 0},
    {"get", "/users/a%2Flikes", 1},
    {"get", "/users/administrator", 1},
    {"get", "/users/admin%3Dx", 1},
    {"get", "/users/100%25", 1},
    {"get", "/users/50%25de", 1},
    {"get", "/users/%3Fx", 1},
    {"get", "/users/%23", 1},
    {"get", "/users/a%40evil.example", 1},
    {"get", "/users/%2Cx", 1},
    {"likes", "/users/C%23/likes", 1}, /* not cut to /users/C, which a caller may lack */
    {"kept", "/tags/C%23/kept", 1},
    {"kept", "/tags/%23c/kept", 1},
    {"kept", "/tags/C%3F/kept", 0},
    {"kept", "/tags/C%00/kept", 0},
    {"get", "/users/%C3%A9", 1},
    {"get", "/users/...", 1},
    {"get", "/users/a..b", 1},
    {"get", "/users/a%0D%0Ab", 1},
    {"get", "/users/%2500", 1},
    /* dot segments in any reading */
    {"get", "/users/..", 0},
    {"get", "/users/.", 0},
    {"get", "/users/7/../8", 0},
    {"get", "/users/./7", 0},
    {"get", "/users/%2e%2e", 0},
    {"get", "/users/.%2E", 0},
    {"get", "/users/%252e%252e", 0},
    {"get", "/users/%25252e%25252e", 0},
    {"get", "/users/..%2Fadmin", 0},
    {"get", "/users/a%2F..%2Fb", 0},
    {"get", "/users/a%5C..%5Cb", 0},
    {"get", "/users/%25c0%25ae%25c0%25ae", 0},
    {"get", "/users/..%3Bx", 0},
    {"get", "/users/..%00", 0},
    {"get", "/users/..%2500", 0},
    {"get", "/users/..%3F", 0},
    {"get", "/users/..%20", 0},
    {"get", "/users/%20..", 0},
    {"get", "/users/%25u002e%25u002e", 0},
    {"get", "/users/%EF%BC%8E%EF%BC%8E", 0},
    {"get", "/users/%E2%80%A5", 0},
    /* not URLs of ours at all */
    {"get", "/users/%zz", 0},
    {"get", "/users/%2", 0},
    {"get", "/users/7#x", 0},
    {"get", "/users/a b", 0},
    {"get", "/users/a\\b", 0},
    {"get", "/users/\xc3\xa9", 0},
    {"get", "/users/a\r\nb", 0},
    {"get", "x/users/7", 0},
    {"get", "@evil.example/users/7", 0},
    {"get", ".evil.example/users/7", 0},
    /* literals around placeholders are more specific than placeholders alone */
    {"get", "/users/7.csv", 0},
    {"get", "/users/7.CSV", 0},
    {"csv", "/users/7.csv", 1},
    {"get", "/users/.csv", 1},
    {"get", "/users/7.csvx", 1},
    {"get", "/users/7:purge", 0},
    {"get", "/users/7%3Apurge", 0},
    {"get", "/users/7%253Apurge", 0},
    /* several segments */
    {"file", "/files/a/b/c", 1},
    {"file", "/files/a", 1},
    {"file", "/files", 0},
    {"file", "/files/secret", 1},
    {"file", "/files/secret/x", 0},
    {"file", "/files/secret/x/y", 1},
    {"file", "/files/secret%2Fx", 0},
    {"file", "/files/secret%2Fx/y", 1},
    {"file", "/files/a/log", 0},
    {"file", "/files/a/b/log", 0},
    {"file", "/files/log/a", 1},
    {"file", "/files/log", 1},
    {"file", "/files/a/b:undo", 0},
    {"file", "/files/a:undo", 1}, /* /files/{one} is more specific there, and the caller has it */
    {"undo", "/files/a/b:undo", 1},
    {"tail", "/files/a/log", 1},
    {"secret", "/files/secret/log", 1}, /* literal before {+path}, left to right */
    {"file", "/files/a/../b", 0},
    /* required query literals */
    {"do", "/do", 1},
    {"do", "/do?action=delete", 0},
    {"do", "/do?x=1&action=delete", 0},
    {"do", "/do?action=show", 1},
    {"do", "/do?action=other", 1},
    {"do", "/do?%61ction=delet%65", 0},
    {"do", "/do?ACTION=Delete", 0},
    {"do", "/do?action=%2564elete", 0},
    {"do", "/do?action=delete+", 1},
    {"do", "/do?x=action%3Ddelete", 1},
    {"do", "/do%3Faction=delete", 0},
    {"do", "/do?action=wipe", 1},
    {"do", "/do?now&action=wipe", 0},
    {"delete", "/do?action=delete", 1},
    {"delete", "/do?action=delete&action=show", 1},
    {"show", "/do?action=show&action=delete", 0},
    {"show", "/do?action=show&action=wipe&now", 0},
    /* identical templates */
    {"twin1", "/twin/x", 1},
    {"twin2", "/twin/x", 1},
    {"get", "/twin/x", 1},
    {"bad1", "/bad/x", 0},
    {"get", "/bad/x", 0},
    {"denied", "/denied/x", 1},
    {"get", "/denied/x", 0},
    /* equally specific, not identical */
    {"tie1", "/tie/a.xy", 1},
    {"tie1", "/tie/za.xy", 0},
    /* matrix style, as the template writes it */
    {"matrix", "/m/;id=5/end", 1},
    {"slash", "/slash", 1},
    {"slash", "/slash/", 1},
    {"spaced", "/a%20b/%c3%a9", 1},
    {"fold", "/pages/other", 1},
    {"fold", "/pages/index", 0}, /* an upstream that ignores case would answer as Fold */
    {"Fold", "/Pages/Index", 1},
};

static void a_url_belongs_to_its_operation_in_every_reading(void **state)
{
    gate_t gate = connector();

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); ++i) {
        mcp_err_t err = {0};
        apr_status_t status =
            mcp_urlguard_check(gate.guard, gate.verdicts, BASE, "GET", urls[i].operation,
                               apr_pstrcat(pool, BASE, urls[i].url, NULL), pool, &err);

        if (status != (urls[i].is_fine ? APR_SUCCESS : MCP_STATUS_REFUSED)) {
            print_error("%s %s\n", urls[i].operation, urls[i].url);
        }
        assert_int_equal(status, urls[i].is_fine ? APR_SUCCESS : MCP_STATUS_REFUSED);
        assert_int_equal(err.code, urls[i].is_fine ? MCP_CODE_NONE : MCP_CODE_URL_RESTRICTED);
    }
}

static void methods_are_apart(void **state)
{
    gate_t gate = connector();

    (void)state;
    assert_int_equal(mcp_urlguard_check(gate.guard, gate.verdicts, BASE, "PUT", "put",
                                        BASE "/users/admin", pool, NULL),
                     APR_SUCCESS);
    assert_int_equal(mcp_urlguard_check(gate.guard, gate.verdicts, BASE, "put", "put",
                                        BASE "/users/admin", pool, NULL),
                     APR_SUCCESS);
    assert_int_equal(mcp_urlguard_check(gate.guard, gate.verdicts, BASE, "DELETE", "put",
                                        BASE "/users/7", pool, NULL),
                     MCP_STATUS_REFUSED);
}

static void origin_and_base_are_kept(void **state)
{
    static const struct {
        const char *base;
        const char *url;
        int is_fine;
    } cases[] = {
        {"https://h", "https://h/users/7", 1},
        {"https://h/", "https://h/users/7", 1},
        {"https://h", "https://H:443/users/7", 1},
        {"https://h:443", "HTTPS://h/users/7", 1},
        {"http://h", "http://h:80/users/7", 1},
        {"https://h/api/", "https://h/api/users/7", 1},
        {"https://h/a%20b", "https://h/a%20b/users/7", 1},
        {"http://[::1]:81", "http://[::1]:81/users/7", 1},
        {"http://[::1]:81", "http://[::2]:81/users/7", 0},
        {"http://[::1]:81", "http://[::1]:82/users/7", 0},
        {"http://[::1]", "http://[::1].evil/users/7", 0},
        {"https://h", "http://h/users/7", 0},
        {"https://h", "https://h:444/users/7", 0},
        {"https://h", "https://h2/users/7", 0},
        {"https://h", "https://h./users/7", 0},
        {"https://h", "https://h@evil/users/7", 0},
        {"https://h", "https://evil@h/users/7", 0},
        {"https://h", "https://h\\evil/users/7", 0},
        {"https://h", "https://h:443@evil/users/7", 0},
        {"https://h", "//h/users/7", 0},
        {"https://h", "/users/7", 0},
        {"https://h", "", 0},
        {"https://h/api", "https://h/users/7", 0},
        {"https://h/api", "https://h/apix/users/7", 0},
        {"https://h/api", "https://h/api%2Fusers/7", 0},
        {"https://h/api", "https://h/API/users/7", 0},
        {"https://h/api", "https://h/api/../users/7", 0},
        {"https://h/api/..", "https://h/api/../users/7", 0},
        {"https://h/%2e%2e", "https://h/%2e%2e/users/7", 0},
        {"https://h/..;x", "https://h/..;x/users/7", 0},
        {"https://u@h", "https://u@h/users/7", 0},
        {"https://h?q", "https://h?q/users/7", 0},
    };
    gate_t gate = connector();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        apr_status_t status = mcp_urlguard_check(gate.guard, gate.verdicts, cases[i].base, "GET",
                                                 "get", cases[i].url, pool, NULL);

        if (status != (cases[i].is_fine ? APR_SUCCESS : MCP_STATUS_REFUSED)) {
            print_error("%s under %s\n", cases[i].url, cases[i].base);
        }
        assert_int_equal(status, cases[i].is_fine ? APR_SUCCESS : MCP_STATUS_REFUSED);
    }
}

static void a_broken_blob_is_refused_whole(void **state)
{
    static const char *const blobs[] = {
        "{}",
        "[]",
        "{'operations':{}}",
        "{'operations':[5]}",
        "{'operations':[{'id':'a','method':'GET'}]}",
        "{'operations':[{'id':'a','path':'/a'}]}",
        "{'operations':[{'method':'GET','path':'/a'}]}",
        "{'operations':[{'id':'a','method':'GET','path':'/{a'}]}",
        "{'operations':[{'id':'a','method':'GET','path':'/a}'}]}",
        "{'operations':[{'id':'a','method':'GET','path':'/{{a}}'}]}",
        "{'operations':[{'id':'a','method':'GET','path':'/a','query':{}}]}",
        "{'operations':[{'id':'a','method':'GET','path':'/a','query':[['x']]}]}",
        "{'operations':[{'id':'a','method':'GET','path':'/a','query':['x']}]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(blobs) / sizeof(blobs[0]); ++i) {
        json_t *blob = parse(blobs[i]);
        mcp_guard_t *guard = NULL;
        mcp_err_t err = {0};

        assert_int_equal(mcp_urlguard_compile(blob, pool, &guard, &err), MCP_STATUS_REFUSED);
        assert_int_equal(err.code, MCP_CODE_INTERNAL);
        assert_null(guard);
        json_decref(blob);
    }
    assert_int_equal(mcp_urlguard_check(guard_of("{'operations':[]}"), "", BASE, "GET", "a",
                                        BASE "/a", pool, NULL),
                     MCP_STATUS_REFUSED);
}

/* --- verdicts -------------------------------------------------------------------- */

static void verdicts_that_do_not_fit_the_rows_refuse(void **state)
{
    static const char *const wrong[] = {NULL, "", "a", "aaa", "aaaa", "aA", "ax", "a ", "ab\n"};
    mcp_guard_t *guard = guard_of("{'operations':[{'id':'a','method':'GET','path':'/a'},"
                                  "{'id':'b','method':'GET','path':'/b'}]}");

    (void)state;
    assert_int_equal(mcp_urlguard_rows(guard), 2);
    assert_int_equal(mcp_urlguard_check(guard, "ab", BASE, "GET", "a", BASE "/a", pool, NULL),
                     APR_SUCCESS);
    for (size_t i = 0; i < ROWS(wrong); ++i) {
        mcp_err_t err = {0};

        assert_int_equal(
            mcp_urlguard_check(guard, wrong[i], BASE, "GET", "a", BASE "/a", pool, &err),
            MCP_STATUS_REFUSED);
        assert_int_equal(err.code, MCP_CODE_INTERNAL);
    }
}

static void one_guard_serves_callers_with_other_verdicts(void **state)
{
    static const struct {
        const char *verdicts; /* of /users/{id}, /users/admin, /users/{name} */
        const char *path;
        int is_fine;
    } cases[] = {
        {"aaa", "/users/admin", 1}, {"ada", "/users/admin", 0}, {"aba", "/users/admin", 0},
        {"daa", "/users/admin", 1}, {"ddd", "/users/admin", 0}, {"add", "/users/7", 1},
        {"adb", "/users/7", 0},     {"bda", "/users/7", 0},     {"dda", "/users/7", 1},
        {"bbb", "/users/7", 0},     {"dbd", "/users/7", 1},
    };
    mcp_guard_t *guard = guard_of("{'operations':[{'id':'get','method':'GET','path':'/users/{id}'},"
                                  "{'id':'admin','method':'GET','path':'/users/admin'},"
                                  "{'id':'twin','method':'GET','path':'/users/{name}'}]}");

    (void)state;
    for (size_t i = 0; i < ROWS(cases); ++i) {
        mcp_err_t err = {0};
        apr_status_t status =
            mcp_urlguard_check(guard, cases[i].verdicts, BASE, "GET", "get",
                               apr_pstrcat(pool, BASE, cases[i].path, NULL), pool, &err);

        if (status != (cases[i].is_fine ? APR_SUCCESS : MCP_STATUS_REFUSED)) {
            print_error("%s %s\n", cases[i].verdicts, cases[i].path);
        }
        assert_int_equal(status, cases[i].is_fine ? APR_SUCCESS : MCP_STATUS_REFUSED);
        assert_int_equal(err.code, cases[i].is_fine ? MCP_CODE_NONE : MCP_CODE_URL_RESTRICTED);
    }
}

static void more_segments_than_the_limit_are_refused(void **state)
{
    gate_t gate = connector();

    (void)state;
    /* "files" and 255 more are at the limit. */
    for (int more = 255; more <= 256; ++more) {
        char *url = apr_psprintf(pool, "%s/files", BASE);

        for (int i = 0; i < more; ++i) {
            url = apr_pstrcat(pool, url, "/x", NULL);
        }
        assert_int_equal(
            mcp_urlguard_check(gate.guard, gate.verdicts, BASE, "GET", "file", url, pool, NULL),
            more == 255 ? APR_SUCCESS : MCP_STATUS_REFUSED);
    }
}

/* --- template and guard together ------------------------------------------------ */

static const char get_user[] =
    "{'method':'GET','path':'/users/{id}','parameters':[{'arg':'id','name':'id','in':'path'}]}";
static const char get_file[] =
    "{'method':'GET','path':'/files/{p}','parameters':[{'arg':'p','name':'p','in':'path',"
    "'multi_segment':true}]}";

static apr_status_t send_value(gate_t gate, const char *definition, const char *arg, const char *id,
                               const char *value, const char **ret_url, mcp_err_t *err)
{
    json_t *operation = parse(definition);
    json_t *args = json_pack("{s:s}", arg, value);
    mcp_request_t request = {0};
    apr_status_t status;

    assert_non_null(args);
    status = mcp_template_expand(operation, BASE, args, NULL, pool, &request, err);
    if (status == APR_SUCCESS) {
        *ret_url = request.url;
        status = mcp_urlguard_check(gate.guard, gate.verdicts, BASE, request.method, id,
                                    request.url, pool, err);
    }
    json_decref(operation);
    json_decref(args);
    return status;
}

static void hostile_values_go_nowhere(void **state)
{
    static const struct {
        const char *value;
        int is_fine;
    } cases[] = {
        {"7", 1},
        {"a/b", 1},
        {"?x", 1},
        {"a#b", 1},
        {"x;y=1", 1},
        {"a\r\nb", 1},
        {"@evil.example", 1},
        {"//evil.example/", 1}, /* one segment of the id's own: %2F%2Fevil.example%2F */
        {"https://evil.example/", 1},
        {"\xc3\xa9\xe2\x82\xac", 1},
        {"%", 1},
        {"%00", 1},
        {"", 0},
        {".", 0},
        {"..", 0},
        {"../admin", 0},
        {"..\\admin", 0},
        {"%2e%2e%2f", 0},
        {"%252e%252e%252fadmin", 0},
        {"%c0%ae%c0%ae/admin", 0},
        {"..;/admin", 0},
        {"admin", 0},
        {"Admin", 0},
        {"admin/", 0},
        {"/admin", 0},
        {"\\admin", 0},
        {"admin;x=1", 0},
        {"admin?x=1", 0},
        {"admin#x", 0},
        {"admin%00", 0},
        {"admin%2500.png", 0},
        {"%61dmin", 0},
        {"7/posts", 0},
        {"7%2fposts", 0},
        {"7/../admin", 0},
        {"x.csv", 0},
        {"me", 1},
        {"7/likes", 1},
    };
    gate_t gate = connector();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const char *url = NULL;
        apr_status_t status = send_value(gate, get_user, "id", "get", cases[i].value, &url, NULL);

        if (status != (cases[i].is_fine ? APR_SUCCESS : MCP_STATUS_REFUSED)) {
            print_error("%s\n", cases[i].value);
        }
        assert_int_equal(status, cases[i].is_fine ? APR_SUCCESS : MCP_STATUS_REFUSED);
    }
}

/* GET /users/{id} beside a blocked GET /users/admin: whatever an upstream, or a proxy before it,
 * might read as the blocked path. */
static const char *const onto_blocked[] = {
    /* as it is, and in other cases */
    "admin",
    "Admin",
    "ADMIN",
    "aDmIn",
    "\xef\xbd\x81\xef\xbd\x84\xef\xbd\x8d\xef\xbd\x89\xef\xbd\x8e",
    "adm\xc4\xb1n",
    /* encoded once, twice, thrice, partly and wholly, in both cases of the digits */
    "%61dmin",
    "admi%6e",
    "admi%6E",
    "%61%64%6d%69%6e",
    "%41DMIN",
    "%2561dmin",
    "%2561%2564min",
    "%252561dmin",
    "%u0061dmin",
    "%25u0061dmin",
    /* slashes, before and behind */
    "/admin",
    "//admin",
    "admin/",
    "admin//",
    "/admin/",
    "%2fadmin",
    "admin%2f",
    "admin%2F",
    "admin%252f",
    "%252Fadmin",
    /* backslashes */
    "\\admin",
    "admin\\",
    "%5cadmin",
    "admin%5C",
    "admin%255c",
    /* dot segments */
    "./admin",
    "admin/.",
    "admin/..",
    "x/../admin",
    "../users/admin",
    "..\\users\\admin",
    "%2e/admin",
    "%2e%2e/users/admin",
    ".%2e/users/admin",
    "%2e%2e%2fusers%2fadmin",
    "%252e%252e%252fusers%252fadmin",
    "x%2f..%2fadmin",
    "..%5cusers%5cadmin",
    "..;/users/admin",
    /* matrix parameters */
    "admin;",
    "admin;v=1",
    "admin;a=b;c=d",
    "admin%3bv=1",
    "admin%3Bv=1",
    "admin%253Bv=1",
    "admin;/",
    "admin;v=1/",
    "ADMIN;V=1",
    /* overlong UTF-8, as bytes of an encoding and doubly so */
    "%c1%a1dmin",
    "%C1%A1dmin",
    "%e0%81%a1dmin",
    "%f0%80%81%a1dmin",
    "%25c1%25a1dmin",
    "%c0%afadmin",
    "admin%c0%af",
    "%c0%ae%c0%ae%c0%afusers%c0%afadmin",
    /* ends that some cut off */
    "admin.",
    "admin..",
    "admin ",
    " admin",
    "admin%20",
    "admin%00",
    "admin%00.json",
    "admin%2500",
    "admin?x",
    "admin%3fx",
    "admin#x",
    "admin%23x",
    "admin\t",
    "admin%0d%0a",
};

static void nothing_that_normalises_onto_a_blocked_operation_is_sent(void **state)
{
    static const row_case_t rows[] = {
        {'a', "{'id':'get','method':'GET','path':'/users/{id}'}"},
        {'b', "{'id':'admin','method':'GET','path':'/users/admin'}"},
    };
    static const char *const fine[] = {"7",
                                       "administrator",
                                       "admin2",
                                       "xadmin",
                                       "ad/min",
                                       "a.dmin",
                                       "9f1c2d3e-0000-4000-8000-000000000000"};
    gate_t gate = gate_of(rows, ROWS(rows));

    (void)state;
    for (size_t i = 0; i < ROWS(onto_blocked); ++i) {
        mcp_err_t err = {0};
        const char *raw = apr_pstrcat(pool, BASE "/users/", onto_blocked[i], NULL);
        const char *url = NULL;

        /* as the value of an argument, and as a URL that came by some other way */
        if (send_value(gate, get_user, "id", "get", onto_blocked[i], &url, &err) !=
                MCP_STATUS_REFUSED ||
            err.code != MCP_CODE_URL_RESTRICTED) {
            print_error("%s: %s\n", onto_blocked[i], url != NULL ? url : "not expanded");
            fail();
        }
        err = (mcp_err_t){0};
        if (mcp_urlguard_check(gate.guard, gate.verdicts, BASE, "GET", "get", raw, pool, &err) !=
                MCP_STATUS_REFUSED ||
            err.code != MCP_CODE_URL_RESTRICTED) {
            print_error("%s\n", raw);
            fail();
        }
    }
    for (size_t i = 0; i < ROWS(fine); ++i) {
        const char *url = NULL;

        assert_int_equal(send_value(gate, get_user, "id", "get", fine[i], &url, NULL), APR_SUCCESS);
    }
}

/* --- property -------------------------------------------------------------------- */

static uint64_t seed;

/* xorshift: the same numbers in each run. */
static unsigned next_number(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % below);
}

static const char *hostile(void)
{
    static const char *const pieces[] = {"..",
                                         ".",
                                         "/",
                                         "\\",
                                         "%",
                                         "%2e",
                                         "%2E",
                                         "%2f",
                                         "%5c",
                                         "%25",
                                         "%252e",
                                         "%252f",
                                         "%00",
                                         "%c0%ae",
                                         "%c0%af",
                                         "%u002e",
                                         ";",
                                         ";x=1",
                                         "?",
                                         "#",
                                         "@",
                                         ":",
                                         "&",
                                         "=",
                                         "+",
                                         " ",
                                         "\t",
                                         "\r\n",
                                         "a",
                                         "admin",
                                         "ADMIN",
                                         "adm",
                                         "in",
                                         "blocked",
                                         "posts",
                                         "users",
                                         "me",
                                         "secret",
                                         "files",
                                         "log",
                                         "evil.example",
                                         "http://",
                                         "\xc3\xa9",
                                         "\xef\xbc\x8e",
                                         "\xef\xbc\x8f",
                                         "\xe2\x80\xa5",
                                         "{id}",
                                         "%61",
                                         "%41",
                                         "%2561",
                                         "[::1]",
                                         "~",
                                         ",",
                                         "'",
                                         "\"",
                                         "*",
                                         "$",
                                         "!",
                                         "(",
                                         "%3b",
                                         "%3f",
                                         "%23",
                                         "%20",
                                         "dmin",
                                         "\x01",
                                         "\x7f"};
    char *text = apr_pstrdup(pool, "");
    unsigned count = 1 + next_number(5);

    while (count-- > 0) {
        text =
            apr_pstrcat(pool, text, pieces[next_number(sizeof(pieces) / sizeof(pieces[0]))], NULL);
    }
    return text;
}

/* A slow second opinion: decodes in place with its own code. */
static size_t decode(char *text, size_t bytes)
{
    size_t used = 0;

    for (size_t i = 0; i < bytes; ++i) {
        char digits[3] = {0, 0, 0};
        char *end;
        unsigned long code;

        if (text[i] == '%' && i + 2 < bytes) {
            digits[0] = text[i + 1];
            digits[1] = text[i + 2];
            code = strtoul(digits, &end, 16);
            if (end == digits + 2 && digits[0] != '+' && digits[0] != '-' && digits[0] != ' ') {
                text[used++] = (char)(unsigned char)code;
                i += 2;
                continue;
            }
        }
        text[used++] = text[i];
    }
    return used;
}

/* 1 if the decoded path, split and cut like a lenient server would, reaches something that is not
 * ours. */
static int reaches_withheld(const char *text, size_t bytes)
{
    char *copy = apr_palloc(pool, bytes + 1);
    const char *segments[64];
    size_t count = 0;
    char *last = NULL;

    for (size_t i = 0; i < bytes; ++i) {
        copy[i] = text[i] == '\\' ? '/' : text[i];
    }
    copy[bytes] = '\0'; /* an inner NUL cuts */
    copy[strcspn(copy, "?")] = '\0';
    for (char *hash = strchr(copy, '#'); hash != NULL; hash = strchr(hash + 1, '#')) {
        if (hash == copy || hash[-1] != '/') { /* one that begins a segment is a name's */
            *hash = '\0';
            break;
        }
    }
    for (char *at = apr_strtok(copy, "/", &last); at != NULL && count < 64;
         at = apr_strtok(NULL, "/", &last)) {
        at[strcspn(at, ";")] = '\0';
        if (at[0] != '\0') {
            segments[count++] = at;
        }
        if (strcmp(at, ".") == 0 || strcmp(at, "..") == 0) {
            return 1;
        }
    }
    return (count == 2 && strcasecmp(segments[0], "users") == 0 &&
            (strcasecmp(segments[1], "admin") == 0 || strcasecmp(segments[1], "blocked") == 0)) ||
           (count == 3 && strcasecmp(segments[0], "users") == 0 &&
            strcasecmp(segments[2], "posts") == 0) ||
           (count == 3 && strcasecmp(segments[0], "files") == 0 &&
            strcasecmp(segments[1], "secret") == 0);
}

static size_t slashes_in(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; ++text) {
        count += *text == '/' ? 1 : 0;
    }
    return count;
}

static void check_sent(const char *url, const char *value, size_t slashes)
{
    const char *path = url + strlen(BASE);
    size_t bytes = strlen(path);
    char *text = apr_pstrdup(pool, path);

    /* The same host and base, exactly the template's segments, no query or fragment. */
    assert_memory_equal(url, BASE "/", strlen(BASE) + 1);
    assert_int_equal(slashes_in(path), slashes);
    assert_null(strpbrk(url, "?#"));
    for (int round = 0; round < 8; ++round) {
        if (reaches_withheld(text, bytes)) {
            print_error("sent: %s for %s\n", url, value);
            fail();
        }
        bytes = decode(text, bytes);
    }
}

static void no_random_value_leaves_its_segment(void **state)
{
    gate_t gate = connector();
    apr_pool_t *outer = pool;
    unsigned sent = 0;
    unsigned refused = 0;

    (void)state;
    seed = UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 30000; ++i) {
        const char *value;
        const char *url = NULL;

        assert_int_equal(apr_pool_create(&pool, outer), APR_SUCCESS);
        value = hostile();
        if (send_value(gate, get_user, "id", "get", value, &url, NULL) == APR_SUCCESS) {
            check_sent(url, value, 2);
            ++sent;
        } else {
            ++refused;
        }
        if (send_value(gate, get_file, "p", "file", value, &url, NULL) == APR_SUCCESS) {
            check_sent(url, value, 2 + slashes_in(value + (value[0] == '/')));
        }
        apr_pool_destroy(pool);
        pool = outer;
    }
    assert_true(sent > 3000);
    assert_true(refused > 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_url_belongs_to_its_operation_in_every_reading, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(methods_are_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(origin_and_base_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_blob_is_refused_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(verdicts_that_do_not_fit_the_rows_refuse, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_guard_serves_callers_with_other_verdicts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nothing_that_normalises_onto_a_blocked_operation_is_sent,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_segments_than_the_limit_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(hostile_values_go_nowhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_random_value_leaves_its_segment, set_up, tear_down),
    };

    if (apr_initialize() != APR_SUCCESS) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
