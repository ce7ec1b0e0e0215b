/* Defaults, caller's arguments and frozen values (mcp_args.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_general.h>
#include <cmocka.h>
#include <jansson.h>
#include <string.h>

#include "mcp_args.h"

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

static json_t *parse(const char *text)
{
    json_t *value = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

    assert_true(text == NULL || value != NULL);
    return value;
}

typedef struct merge_case {
    const char *defaults, *caller, *frozen;
    const char *merged;   /* NULL: refused */
    const char *stripped; /* NULL: refused */
} merge_case_t;

static const merge_case_t merges[] = {
    {NULL, NULL, NULL, "{}", "{}"},
    {NULL, "{\"a\":1}", NULL, "{\"a\":1}", "{\"a\":1}"},
    {"{\"a\":1,\"b\":2}", "{\"a\":3}", NULL, "{\"a\":3,\"b\":2}", "{\"a\":3}"},
    /* objects merge, everything else replaces */
    {"{\"o\":{\"x\":1,\"y\":2}}", "{\"o\":{\"y\":3}}", NULL, "{\"o\":{\"x\":1,\"y\":3}}",
     "{\"o\":{\"y\":3}}"},
    {"{\"o\":[1,2]}", "{\"o\":[3]}", NULL, "{\"o\":[3]}", "{\"o\":[3]}"},
    {"{\"o\":{\"x\":1}}", "{\"o\":null}", NULL, "{\"o\":null}", "{\"o\":null}"},
    /* a frozen key can't be passed */
    {NULL, "{\"a\":1,\"b\":2}", "{\"a\":9}", "{\"a\":9,\"b\":2}", "{\"b\":2}"},
    {"{\"a\":5}", "{\"a\":1}", "{\"a\":9}", "{\"a\":9}", "{}"},
    {"{\"a\":{\"d\":1}}", "{\"a\":{\"c\":1}}", "{\"a\":{\"f\":1}}", "{\"a\":{\"d\":1,\"f\":1}}",
     "{}"},
    {NULL, "{\"a\":1}", "{\"a\":null}", "{\"a\":null}", "{}"},
    /* pointers */
    {NULL, "{\"a\":{\"b\":1,\"c\":2}}", "{\"/a/b\":9}", "{\"a\":{\"b\":9,\"c\":2}}",
     "{\"a\":{\"c\":2}}"},
    {NULL, "{}", "{\"/a/b/c\":9}", "{\"a\":{\"b\":{\"c\":9}}}", "{}"},
    {NULL, "{\"/a\":1,\"a\":2}", "{\"/a\":9}", "{\"/a\":1,\"a\":9}", "{\"/a\":1}"},
    {NULL, "{\"x/y\":1,\"x~y\":2}", "{\"/x~1y\":8,\"/x~0y\":9}", "{\"x/y\":8,\"x~y\":9}", "{}"},
    {NULL, "{\"~1\":1}", "{\"/~01\":9}", "{\"~1\":9}", "{}"},
    {NULL, "{\"\":{\"\":1}}", "{\"//\":9}", "{\"\":{\"\":9}}", "{\"\":{}}"},
    /* what stands in the way of a frozen place gives way */
    {NULL, "{\"a\":\"text\"}", "{\"/a/b\":9}", "{\"a\":{\"b\":9}}", "{\"a\":\"text\"}"},
    {NULL, "{\"a\":null}", "{\"/a/b\":9}", "{\"a\":{\"b\":9}}", "{\"a\":null}"},
    {NULL, "{\"a\":[{\"b\":1}]}", "{\"/a/b\":9}", "{\"a\":{\"b\":9}}", "{\"a\":[{\"b\":1}]}"},
    /* arrays */
    {NULL, "{\"l\":[1,2,3]}", "{\"/l/1\":9}", "{\"l\":[1,9,3]}", "{\"l\":[1,2,3]}"},
    {NULL, "{\"l\":[{\"a\":1,\"b\":2}]}", "{\"/l/0\":{\"a\":9}}", "{\"l\":[{\"a\":9}]}",
     "{\"l\":[{\"a\":1,\"b\":2}]}"},
    {NULL, "{\"l\":[{\"a\":1,\"b\":2}]}", "{\"/l/0/a\":9}", "{\"l\":[{\"a\":9,\"b\":2}]}",
     "{\"l\":[{\"b\":2}]}"},
    {NULL, "{\"l\":[1]}", "{\"/l/-\":9}", "{\"l\":[1,9]}", "{\"l\":[1]}"},
    {NULL, "{\"l\":[1]}", "{\"/l/1\":9}", "{\"l\":[1,9]}", "{\"l\":[1]}"},
    {NULL, "{\"l\":[1]}", "{\"/l/5\":9}", NULL, "{\"l\":[1]}"},
    {NULL, "{}", "{\"/l/0/a\":9}", "{\"l\":[{\"a\":9}]}", "{}"},
    {NULL, "{\"l\":{\"00\":1}}", "{\"/l/00\":9}", "{\"l\":{\"00\":9}}", "{\"l\":{}}"},
    {NULL, "{\"l\":[1]}", "{\"/l/00\":9}", "{\"l\":{\"00\":9}}", "{\"l\":[1]}"},
    /* a deeper frozen key refines a frozen object, in either order */
    {NULL, "{}", "{\"/a/b\":1,\"a\":{\"b\":2,\"c\":3}}", "{\"a\":{\"b\":1,\"c\":3}}", "{}"},
    {NULL, "{}", "{\"a\":{\"b\":2,\"c\":3},\"/a/b\":1}", "{\"a\":{\"b\":1,\"c\":3}}", "{}"},
    /* the layers at the top and two levels down */
    {"{\"a\":1}", "{}", NULL, "{\"a\":1}", "{}"},
    {"{\"a\":1}", "{\"a\":2}", "{\"a\":3}", "{\"a\":3}", "{}"},
    {"{\"/a/b\":1}", "{}", NULL, "{\"a\":{\"b\":1}}", "{}"},
    {"{\"/a/b\":1}", "{\"a\":{}}", NULL, "{\"a\":{\"b\":1}}", "{\"a\":{}}"},
    {"{\"/a/b\":1}", "{\"a\":{\"c\":2}}", NULL, "{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"c\":2}}"},
    {"{\"/a/b\":1}", "{\"a\":{\"b\":2}}", NULL, "{\"a\":{\"b\":2}}", "{\"a\":{\"b\":2}}"},
    {"{\"/a/b\":1}", "{\"a\":{\"b\":null}}", NULL, "{\"a\":{\"b\":null}}", "{\"a\":{\"b\":null}}"},
    {"{\"/a/b\":1}", "{\"a\":{\"b\":2}}", "{\"/a/b\":3}", "{\"a\":{\"b\":3}}", "{\"a\":{}}"},
    {"{\"/a/b/c\":1}", "{\"a\":{\"b\":{\"c\":2,\"d\":4}}}", "{\"/a/b/c\":3}",
     "{\"a\":{\"b\":{\"c\":3,\"d\":4}}}", "{\"a\":{\"b\":{\"d\":4}}}"},
    {"{\"/a/b/c\":1,\"/a/b/d\":5}", "{\"a\":{\"b\":{\"d\":4}}}", "{\"/a/e\":3}",
     "{\"a\":{\"b\":{\"c\":1,\"d\":4},\"e\":3}}", "{\"a\":{\"b\":{\"d\":4}}}"},
    /* a caller's word in the way of a default stands, in the way of a frozen key it falls */
    {"{\"/a/b\":1}", "{\"a\":\"text\"}", NULL, "{\"a\":\"text\"}", "{\"a\":\"text\"}"},
    {"{\"/a/b\":1}", "{\"a\":null}", NULL, "{\"a\":null}", "{\"a\":null}"},
    {"{\"/a/b\":1}", "{\"a\":[1]}", NULL, "{\"a\":[1]}", "{\"a\":[1]}"},
    {"{\"/a/b\":1}", "{\"a\":\"text\"}", "{\"/a/c\":3}", "{\"a\":{\"c\":3}}", "{\"a\":\"text\"}"},
    {NULL, "{\"a\":7}", "{\"/a/b/c\":9}", "{\"a\":{\"b\":{\"c\":9}}}", "{\"a\":7}"},
    {NULL, "{\"a\":{\"b\":7,\"d\":1}}", "{\"/a/b/c\":9}", "{\"a\":{\"b\":{\"c\":9},\"d\":1}}",
     "{\"a\":{\"b\":7,\"d\":1}}"},
    /* defaults refine each other in either order */
    {"{\"/a/b\":1,\"a\":{\"b\":2,\"c\":3}}", "{}", NULL, "{\"a\":{\"b\":1,\"c\":3}}", "{}"},
    {"{\"a\":{\"b\":2,\"c\":3},\"/a/b\":1}", "{}", NULL, "{\"a\":{\"b\":1,\"c\":3}}", "{}"},
    {"{\"/x~1y\":1,\"/x~0y\":2}", "{}", NULL, "{\"x/y\":1,\"x~y\":2}", "{}"},
    {"{\"/l/5\":1,\"l\":[]}", "{}", NULL, NULL, "{}"},
    {"{\"/a~2b\":1}", "{}", NULL, NULL, "{}"},
    /* broken definitions and arguments */
    {NULL, "{}", "{\"/a~2b\":1}", NULL, NULL},
    {NULL, "{}", "{\"/a~\":1}", NULL, NULL},
    {NULL, "[]", NULL, NULL, NULL},
    {NULL, "{}", "[]", NULL, NULL},
    {"[]", "{}", NULL, NULL, "{}"},
};

static void expect(apr_status_t status, const json_t *got, const char *want)
{
    json_t *value = parse(want);

    if (want == NULL) {
        assert_int_equal(status, MCP_STATUS_REFUSED);
        assert_null(got);
        return;
    }
    assert_int_equal(status, APR_SUCCESS);
    if (!json_equal(got, value)) {
        char *text = json_dumps(got, 0);

        print_error("got %s, want %s\n", text, want);
        free(text);
        fail();
    }
    json_decref(value);
}

static void three_layers_become_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(merges) / sizeof(merges[0]); ++i) {
        json_t *defaults = parse(merges[i].defaults);
        json_t *caller = parse(merges[i].caller);
        json_t *frozen = parse(merges[i].frozen);
        json_t *before = json_deep_copy(caller);
        json_t *got = NULL;
        mcp_err_t err = {0};

        apr_status_t status = mcp_args_merge(defaults, caller, frozen, pool, &got, &err);

        expect(status, got, merges[i].merged);
        got = NULL;
        status = mcp_args_strip(caller, frozen, pool, &got, &err);
        expect(status, got, merges[i].stripped);
        assert_true(caller == NULL || json_equal(caller, before)); /* inputs stay as they were */
        json_decref(before);
        json_decref(defaults);
        json_decref(caller);
        json_decref(frozen);
    }
}

static void a_result_outlives_its_inputs(void **state)
{
    json_t *caller = parse("{\"a\":{\"b\":[1,{\"c\":2}]}}");
    json_t *frozen = parse("{\"f\":{\"g\":3}}");
    json_t *got = NULL;

    (void)state;
    assert_int_equal(mcp_args_merge(NULL, caller, frozen, pool, &got, NULL), APR_SUCCESS);
    json_decref(caller);
    json_decref(frozen);
    expect(APR_SUCCESS, got, "{\"a\":{\"b\":[1,{\"c\":2}]},\"f\":{\"g\":3}}");
}

typedef struct rename_case {
    const char *caller, *rename;
    const char *want; /* NULL: refused with `code` */
    mcp_code_t code;
} rename_case_t;

static const rename_case_t renames[] = {
    {NULL, NULL, "{}", MCP_CODE_NONE},
    {"{\"a\":1}", NULL, "{\"a\":1}", MCP_CODE_NONE},
    {"{\"a\":1}", "{}", "{\"a\":1}", MCP_CODE_NONE},
    {"{\"connection\":\"work\",\"a\":1}", "{\"connection\":null}", "{\"a\":1}", MCP_CODE_NONE},
    {"{\"connection\":\"work\",\"arg_connection\":{\"x\":[1]},\"a\":1}",
     "{\"connection\":null,\"arg_connection\":\"connection\"}",
     "{\"connection\":{\"x\":[1]},\"a\":1}", MCP_CODE_NONE},
    {"{\"arg_connection\":5}", "{\"connection\":null,\"arg_connection\":\"connection\"}",
     "{\"connection\":5}", MCP_CODE_NONE},
    {"{\"connection\":5}", "{\"connection\":null,\"arg_connection\":\"connection\"}", "{}",
     MCP_CODE_NONE},
    /* all at once: names may change places */
    {"{\"a\":1,\"b\":2}", "{\"a\":\"b\",\"b\":\"a\"}", "{\"a\":2,\"b\":1}", MCP_CODE_NONE},
    /* only the top level */
    {"{\"o\":{\"connection\":1}}", "{\"connection\":null}", "{\"o\":{\"connection\":1}}",
     MCP_CODE_NONE},
    /* two under one name, whichever comes first */
    {"{\"a\":1,\"b\":2}", "{\"a\":\"b\"}", NULL, MCP_CODE_INVALID_ARGUMENTS},
    {"{\"b\":2,\"a\":1}", "{\"a\":\"b\"}", NULL, MCP_CODE_INVALID_ARGUMENTS},
    {"{\"a\":1,\"b\":2}", "{\"a\":\"c\",\"b\":\"c\"}", NULL, MCP_CODE_INVALID_ARGUMENTS},
    {"[]", "{}", NULL, MCP_CODE_INVALID_ARGUMENTS},
    {"{}", "[]", NULL, MCP_CODE_INTERNAL},
    {"{}", "{\"a\":1}", NULL, MCP_CODE_INTERNAL},
};

static void top_level_names_change_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(renames) / sizeof(renames[0]); ++i) {
        json_t *caller = parse(renames[i].caller);
        json_t *rename = parse(renames[i].rename);
        json_t *before = json_deep_copy(caller);
        json_t *got = NULL;
        mcp_err_t err = {0};
        apr_status_t status = mcp_args_rename(caller, rename, pool, &got, &err);

        assert_true(caller == NULL || json_equal(caller, before));
        json_decref(before);
        json_decref(caller);
        json_decref(rename);
        expect(status, got, renames[i].want);
        assert_int_equal(err.code, renames[i].code);
    }
}

static json_t *nested(int depth)
{
    json_t *value = json_integer(1);

    while (depth-- > 0) {
        json_t *outer = json_object();

        assert_int_equal(json_object_set_new(outer, "a", value), 0);
        value = outer;
    }
    return value;
}

static void nesting_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    for (int extra = 0; extra <= 1; ++extra) {
        json_t *deep = nested(MCP_MAX_DEPTH + extra);
        apr_status_t want = extra ? MCP_STATUS_REFUSED : APR_SUCCESS;
        json_t *got = NULL;
        mcp_err_t err = {0};

        assert_int_equal(mcp_args_merge(NULL, deep, NULL, pool, &got, &err), want);
        assert_int_equal(err.code, extra ? MCP_CODE_INVALID_ARGUMENTS : MCP_CODE_NONE);
        assert_int_equal(mcp_args_merge(deep, NULL, NULL, pool, &got, NULL), want);
        assert_int_equal(mcp_args_merge(NULL, NULL, deep, pool, &got, NULL), want);
        assert_int_equal(mcp_args_rename(deep, NULL, pool, &got, NULL), want);
        json_decref(deep);
    }
}

static void no_error_names_a_frozen_place(void **state)
{
    json_t *caller = parse("{\"list\":[]}");
    json_t *frozen = parse("{\"/list/7/secretname\":\"secretvalue\"}");
    json_t *got = NULL;
    mcp_err_t err = {0};

    (void)state;
    assert_int_equal(mcp_args_merge(NULL, caller, frozen, pool, &got, &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.code, MCP_CODE_INVALID_ARGUMENTS);
    assert_null(strstr(err.message, "secret"));
    assert_null(strstr(err.message, "list"));
    json_decref(caller);
    json_decref(frozen);
}

static void names_are_counted_and_bounded(void **state)
{
    json_t *caller = json_object();
    char longest[MCP_MAX_ARG_NAME + 2];
    json_t *names;
    size_t count = 0;

    (void)state;
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(json_object_set_new(caller, longest, json_null()), 0);
    longest[MCP_MAX_ARG_NAME] = '\0';
    assert_int_equal(json_object_set_new(caller, longest, json_null()), 0);
    names = mcp_args_names(caller, &count);
    assert_int_equal(count, 2);
    assert_int_equal(json_array_size(names), 1); /* the longer one is counted, not named */
    assert_string_equal(json_string_value(json_array_get(names, 0)), longest);
    json_decref(names);
    for (int i = 0; i < MCP_MAX_ARG_NAMES + 5; ++i) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%d", i);
        assert_int_equal(json_object_set_new(caller, name, json_null()), 0);
    }
    names = mcp_args_names(caller, &count);
    assert_int_equal(count, MCP_MAX_ARG_NAMES + 7);
    assert_int_equal(json_array_size(names), MCP_MAX_ARG_NAMES);
    json_decref(names);
    names = mcp_args_names(NULL, &count);
    assert_int_equal(count, 0);
    assert_int_equal(json_array_size(names), 0);
    json_decref(names);
    json_decref(caller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(three_layers_become_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(top_level_names_change_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_result_outlives_its_inputs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nesting_beyond_the_limit_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_error_names_a_frozen_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_are_counted_and_bounded, set_up, tear_down),
    };

    if (apr_initialize() != APR_SUCCESS) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
