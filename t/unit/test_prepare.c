/* From a caller's arguments to those of the operation: what is dropped, validated, renamed, merged, and what no refusal may say. */
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

#include "../../mod_mcp/mcp_prepare.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NO_FIT       "the arguments and the toolbox's fixed values do not fit together"

static apr_pool_t *pool;

static int setup(void **state)
{
    (void)state;
    return apr_initialize() == APR_SUCCESS && apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

static apr_status_t decref(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

/* text as JSON that lives as long as the pool; NULL for NULL. */
static json_t *json(const char *text)
{
    json_t *value;

    if (text == NULL) {
        return NULL;
    }
    value = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (value == NULL) {
        fail_msg("not JSON: %s", text);
    }
    apr_pool_cleanup_register(pool, value, decref, apr_pool_cleanup_null);
    return value;
}

static const mcp_schema_t *compiled(const json_t *schema)
{
    mcp_schema_t *made = NULL;

    assert_int_equal(mcp_schema_compile(schema, pool, &made, NULL), MCP_OK);
    return made;
}

/* An entry as the tests write it. */
typedef struct entry {
    const char *schema;     /* of the operation */
    const char *advertised; /* NULL: the same */
    const char *defaults, *frozen, *rename;
} entry_t;

static mcp_prepare_t *prepared(const entry_t *entry)
{
    mcp_prepare_t *prepare = apr_pcalloc(pool, sizeof(*prepare));
    mcp_operation_t *operation = apr_pcalloc(pool, sizeof(*operation));
    mcp_advertised_t *advertised = apr_pcalloc(pool, sizeof(*advertised));

    operation->schema = json(entry->schema);
    operation->compiled = compiled(operation->schema);
    prepare->operation = operation;
    if (entry->advertised != NULL) {
        advertised->schema = json(entry->advertised);
        advertised->compiled = compiled(advertised->schema);
        prepare->advertised = advertised;
    }
    prepare->defaults = json(entry->defaults);
    prepare->frozen = json(entry->frozen);
    prepare->rename = json(entry->rename);
    return prepare;
}

static void expect(const entry_t *entry, const char *arguments, const char *wanted)
{
    json_t *got = NULL;
    json_t *given = json(arguments);
    json_t *before = json(arguments);
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    if (mcp_prepare_args(prepared(entry), given, pool, &got, &err) != APR_SUCCESS) {
        fail_msg("%s: refused: %s", arguments != NULL ? arguments : "nothing", err.message);
    }
    if (!json_equal(got, json(wanted))) {
        fail_msg("%s gave %s", arguments != NULL ? arguments : "nothing", json_dumps(got, JSON_COMPACT));
    }
    assert_true(given == NULL || json_equal(given, before)); /* as the caller sent them */
}

static mcp_err_t refusal(const entry_t *entry, const char *arguments)
{
    json_t *got = NULL;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    if (mcp_prepare_args(prepared(entry), json(arguments), pool, &got, &err) == APR_SUCCESS) {
        fail_msg("%s was taken", arguments != NULL ? arguments : "nothing");
    }
    assert_null(got);
    return err;
}

/* --- what an operation gets --------------------------------------------------------------- */

#define ITEM                                                                                       \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"id\",\"tenant\"],\"properties\":{"        \
    "\"id\":{\"type\":\"string\"},\"tenant\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\",\"maximum\":9}}}"
#define ITEM_SEEN                                                                                  \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"id\"],\"properties\":{"                     \
    "\"id\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\",\"maximum\":9}}}"

static void an_operation_as_it_is_gets_what_the_caller_sent(void **state)
{
    static const entry_t plain = {ITEM, NULL, NULL, NULL, NULL};
    static const entry_t empty = {ITEM, NULL, "{}", "{}", "{}"};
    static const entry_t any = {"{}", NULL, NULL, NULL, NULL};

    (void)state;
    expect(&plain, "{\"id\":\"a\",\"tenant\":\"t\"}", "{\"id\":\"a\",\"tenant\":\"t\"}");
    expect(&empty, "{\"id\":\"a\",\"tenant\":\"t\"}", "{\"id\":\"a\",\"tenant\":\"t\"}");
    expect(&any, NULL, "{}");
}

static void a_refusal_of_the_callers_own_arguments_names_path_and_rule(void **state)
{
    static const entry_t plain = {ITEM, NULL, NULL, NULL, NULL};
    mcp_err_t err = refusal(&plain, "{\"id\":\"a\",\"tenant\":\"t\",\"limit\":10}");

    (void)state;
    assert_int_equal(err.fail, MCP_FAIL_TOOL);
    assert_int_equal(err.code, MCP_CODE_INVALID_ARGUMENTS);
    assert_non_null(strstr(err.message, "/limit"));
    assert_non_null(strstr(err.message, "(maximum)"));
    err = refusal(&plain, NULL);
    assert_non_null(strstr(err.message, "(required)"));
}

static void frozen_values_win_whatever_the_caller_sends(void **state)
{
    static const entry_t entry = {ITEM, ITEM_SEEN, NULL, "{\"tenant\":\"acme\"}", NULL};
    static const entry_t pointer = {ITEM, ITEM_SEEN, NULL, "{\"/tenant\":\"acme\"}", NULL};
    static const char *const sent[] = {"{\"id\":\"a\"}", "{\"id\":\"a\",\"tenant\":\"evil\"}",
                                       "{\"id\":\"a\",\"tenant\":null}", "{\"id\":\"a\",\"tenant\":{\"x\":[1]}}"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(sent); i++) {
        expect(&entry, sent[i], "{\"id\":\"a\",\"tenant\":\"acme\"}");
        expect(&pointer, sent[i], "{\"id\":\"a\",\"tenant\":\"acme\"}");
    }
}

static void defaults_yield_to_the_caller_and_the_caller_to_frozen_values(void **state)
{
    static const entry_t entry = {"{}", "{}", "{\"a\":1,\"b\":1,\"c\":1}", "{\"c\":3}", NULL};

    (void)state;
    expect(&entry, NULL, "{\"a\":1,\"b\":1,\"c\":3}");
    expect(&entry, "{\"b\":2,\"c\":2}", "{\"a\":1,\"b\":2,\"c\":3}");
}

static void the_same_order_holds_two_levels_down(void **state)
{
    static const entry_t entry = {"{}", "{}", "{\"f\":{\"g\":{\"a\":1,\"b\":1,\"c\":1}}}",
                                  "{\"/f/g/c\":3}", NULL};

    (void)state;
    expect(&entry, NULL, "{\"f\":{\"g\":{\"a\":1,\"b\":1,\"c\":3}}}");
    expect(&entry, "{\"f\":{\"g\":{\"b\":2,\"c\":2}}}", "{\"f\":{\"g\":{\"a\":1,\"b\":2,\"c\":3}}}");
    expect(&entry, "{\"f\":{\"h\":9}}", "{\"f\":{\"g\":{\"a\":1,\"b\":1,\"c\":3},\"h\":9}}");
    expect(&entry, "{\"f\":\"in the way\"}", "{\"f\":{\"g\":{\"c\":3}}}");
}

/* --- merged tools ------------------------------------------------------------------------------ */

#define LINK                                                                                       \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"connection\"],\"properties\":{"             \
    "\"connection\":{\"type\":\"string\",\"minLength\":2},\"x\":{\"type\":\"object\"}}}"
#define LINK_SEEN                                                                                  \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"connection\",\"arg_connection\"],"          \
    "\"properties\":{\"connection\":{\"enum\":[\"red\",\"blue\"]},\"arg_connection\":{\"type\":\"string\","              \
    "\"minLength\":2},\"x\":{\"type\":\"object\"}}}"
#define LINK_NAMES "{\"connection\":null,\"arg_connection\":\"connection\"}"

static void a_merged_tool_gets_the_operations_own_names(void **state)
{
    static const entry_t entry = {LINK, LINK_SEEN, NULL, NULL, LINK_NAMES};
    mcp_err_t err;

    (void)state;
    expect(&entry, "{\"connection\":\"red\",\"arg_connection\":\"wire\"}", "{\"connection\":\"wire\"}");
    /* as the caller sees it, not as the operation says */
    err = refusal(&entry, "{\"connection\":\"red\",\"arg_connection\":\"w\"}");
    assert_non_null(strstr(err.message, "/arg_connection"));
    err = refusal(&entry, "{\"connection\":\"green\",\"arg_connection\":\"wire\"}");
    assert_non_null(strstr(err.message, "(enum)"));
}

static void a_frozen_argument_under_another_name_is_dropped_from_the_callers(void **state)
{
    static const char seen[] =
        "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"connection\"],\"properties\":{"
        "\"connection\":{\"enum\":[\"red\"]},\"x\":{\"type\":\"object\"}}}";
    static const entry_t entry = {LINK, seen, NULL, "{\"connection\":\"fixed\"}", LINK_NAMES};
    static const entry_t pointer = {LINK, seen, NULL, "{\"/connection\":\"fixed\"}", LINK_NAMES};

    (void)state;
    expect(&entry, "{\"connection\":\"red\"}", "{\"connection\":\"fixed\"}");
    expect(&entry, "{\"connection\":\"red\",\"arg_connection\":\"mine\"}", "{\"connection\":\"fixed\"}");
    expect(&pointer, "{\"connection\":\"red\",\"arg_connection\":{\"a\":1}}", "{\"connection\":\"fixed\"}");
    /* the gateway's own argument is not the frozen one of that name */
    assert_non_null(strstr(refusal(&entry, "{\"connection\":\"blue\"}").message, "/connection"));
}

static void a_place_within_a_renamed_argument_is_found(void **state)
{
    static const entry_t entry = {"{}", "{}", NULL, "{\"/connection/to/port\":443}", LINK_NAMES};

    (void)state;
    expect(&entry, "{\"connection\":\"red\",\"arg_connection\":{\"to\":{\"port\":22,\"host\":\"h\"}}}",
           "{\"connection\":{\"to\":{\"port\":443,\"host\":\"h\"}}}");
}

static void a_name_that_the_gateway_took_reaches_no_frozen_argument(void **state)
{
    /* the operation has an argument of the name that the caller's other one was given */
    static const entry_t entry = {"{}", "{}", NULL, "{\"arg_connection\":\"fixed\"}", LINK_NAMES};

    (void)state;
    expect(&entry, "{\"connection\":\"red\",\"arg_connection\":\"mine\"}",
           "{\"connection\":\"mine\",\"arg_connection\":\"fixed\"}");
}

/* --- what no refusal says ------------------------------------------------------------------------ */

static void expect_silent(const mcp_err_t *err)
{
    assert_int_equal(err->fail, MCP_FAIL_TOOL);
    assert_int_equal(err->code, MCP_CODE_INVALID_ARGUMENTS);
    assert_string_equal(err->message, NO_FIT);
    assert_non_null(strstr(err->hint, "toolbox"));
    assert_null(err->log);
}

static void what_does_not_fit_with_fixed_values_names_none_of_them(void **state)
{
    static const entry_t entries[] = {
        {ITEM, ITEM_SEEN, NULL, "{\"tenant\":7}", NULL},           /* a frozen value of the wrong type */
        {ITEM, ITEM_SEEN, NULL, "{\"secret\":\"s3cret\",\"tenant\":\"t\"}", NULL}, /* one that there is no place for */
        {ITEM, ITEM_SEEN, "{\"limit\":99}", "{\"tenant\":\"t\"}", NULL}, /* a default out of range */
        {ITEM, ITEM_SEEN, NULL, NULL, NULL},                       /* what is not advertised is missing */
        {ITEM, NULL, NULL, "{\"tenent\":\"t\"}", NULL}};            /* nothing was advertised apart */
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(entries); i++) {
        mcp_err_t err = refusal(&entries[i], "{\"id\":\"a\"}");

        expect_silent(&err);
    }
}

static void values_that_can_not_be_laid_over_are_not_named_either(void **state)
{
    static const entry_t entry = {"{}", "{}", NULL, "{\"/list/5/key\":\"s3cret\"}", NULL};
    mcp_err_t err = refusal(&entry, "{\"list\":[1]}");

    (void)state;
    assert_int_equal(err.code, MCP_CODE_INVALID_ARGUMENTS);
    assert_null(strstr(err.message, "list"));
    assert_null(strstr(err.message, "s3cret"));
}

static void no_key_beside_a_frozen_one_can_pass_for_it(void **state)
{
    static const char open[] = "{\"properties\":{\"q\":{\"type\":\"object\",\"properties\":{\"tenant_\":{}}},\"t\":{}}}";
    static const struct {
        const char *frozen, *arguments;
        int is_fine;
    } cases[] = {{"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"other\":1}}", 1},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"tenant\":1}}", 1}, /* dropped */
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"tenant[]\":1}}", 0},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"Tenant\":1}}", 0},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"tenant \":1}}", 0},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"tenant][a\":1}}", 0},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"][tenant\":1}}", 0},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"\":{\"tenant\":1}}}", 0},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\" \":[{\"tenant\":1}]}}", 0},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"\":1}}", 1},
                 {"{\"/q/tenant\":\"s3cret\"}", "{\"q\":{\"a\":{\"tenant[]\":1}}}", 1},
                 {"{\"/q/tenant.\":\"s3cret\"}", "{\"q\":{\"tenant_\":1}}", 1}, /* declared */
                 {"{\"/q/user/id\":\"s3cret\"}", "{\"q\":{\"user\":{\"name\":1}}}", 1},
                 {"{\"/q/user/id\":\"s3cret\"}", "{\"q\":{\"user\":{\"id[x\":1}}}", 0},
                 {"{\"/q/user/id\":\"s3cret\"}", "{\"q\":{\"user[id]\":1}}", 0},
                 {"{\"/q/a~1b/c~0d\":\"s3cret\"}", "{\"q\":{\"a/b\":{\"C~D\":1}}}", 0},
                 {"{\"t\":\"s3cret\"}", "{\"T\":1}", 1}}; /* no argument of the operation: never sent */
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        entry_t entry = {open, open, NULL, cases[i].frozen, NULL};
        json_t *got = NULL;
        mcp_err_t err;
        apr_status_t status;

        memset(&err, 0, sizeof(err));
        status = mcp_prepare_args(prepared(&entry), json(cases[i].arguments), pool, &got, &err);
        if ((status == APR_SUCCESS) != cases[i].is_fine) {
            fail_msg("%s %s", cases[i].frozen, cases[i].arguments);
        }
        if (!cases[i].is_fine) {
            expect_silent(&err);
        }
    }
}

static void a_request_that_can_not_be_built_blames_in_the_callers_words(void **state)
{
    static const struct {
        const char *frozen, *rename, *message, *wanted;
    } cases[] = {
        {NULL, NULL, "The argument \"id\" is too long.", "The argument \"id\" is too long."},
        {"{\"tenant\":1}", NULL, "The argument \"id\" is too long.", "The argument \"id\" is too long."},
        {"{\"tenant\":1}", NULL, "The argument \"tenant\" is too long.", NO_FIT},
        {"{\"/tenant/id\":1}", NULL, "The argument \"tenant\" is too long.", NO_FIT},
        {"{\"ten\":1}", NULL, "The argument \"tenant\" is too long.", "The argument \"tenant\" is too long."},
        {NULL, LINK_NAMES, "The argument \"connection\" is required.",
         "The argument \"arg_connection\" is required."},
        {NULL, LINK_NAMES, "The argument \"x\" is required.", "The argument \"x\" is required."},
        {"{\"connection\":1}", LINK_NAMES, "The argument \"connection\" is required.", NO_FIT},
        {"{\"tenant\":1}", NULL, "The argument \"x\" has a key that another parameter uses.", NO_FIT},
        {NULL, NULL, "The argument \"x\" has a key that another parameter uses.",
         "The argument \"x\" has a key that another parameter uses."},
        {"{\"tenant\":1}", LINK_NAMES, "The request's URL would be too long.",
         "The request's URL would be too long."}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        entry_t entry = {"{}", NULL, NULL, cases[i].frozen, cases[i].rename};
        mcp_err_t err;

        memset(&err, 0, sizeof(err));
        (void)mcp_err_set(&err, pool, MCP_FAIL_TOOL, MCP_CODE_INVALID_ARGUMENTS, NULL, "%s",
                          cases[i].message);
        mcp_prepare_blame(prepared(&entry), pool, &err);
        assert_string_equal(err.message, cases[i].wanted);
        assert_int_equal(err.code, MCP_CODE_INVALID_ARGUMENTS);
    }
    mcp_prepare_blame(prepared(&(entry_t){"{}", NULL, NULL, "{\"a\":1}", NULL}), pool, NULL);
}

static void stored_values_that_are_not_sound_run_nothing(void **state)
{
    static const entry_t entries[] = {{"{}", NULL, "[]", NULL, NULL},
                                      {"{}", NULL, NULL, "\"a\"", NULL},
                                      {"{}", "{}", NULL, "{\"/a~2\":1}", NULL},
                                      {"{}", "{}", NULL, NULL, "{\"a\":7}"},
                                      {"{}", "{}", NULL, NULL, "[\"a\"]"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(entries); i++) {
        mcp_err_t err = refusal(&entries[i], "{\"a\":1}");

        assert_int_not_equal(err.fail, MCP_FAIL_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_as_it_is_gets_what_the_caller_sent),
        cmocka_unit_test(a_refusal_of_the_callers_own_arguments_names_path_and_rule),
        cmocka_unit_test(frozen_values_win_whatever_the_caller_sends),
        cmocka_unit_test(defaults_yield_to_the_caller_and_the_caller_to_frozen_values),
        cmocka_unit_test(the_same_order_holds_two_levels_down),
        cmocka_unit_test(a_merged_tool_gets_the_operations_own_names),
        cmocka_unit_test(a_frozen_argument_under_another_name_is_dropped_from_the_callers),
        cmocka_unit_test(a_place_within_a_renamed_argument_is_found),
        cmocka_unit_test(a_name_that_the_gateway_took_reaches_no_frozen_argument),
        cmocka_unit_test(what_does_not_fit_with_fixed_values_names_none_of_them),
        cmocka_unit_test(values_that_can_not_be_laid_over_are_not_named_either),
        cmocka_unit_test(no_key_beside_a_frozen_one_can_pass_for_it),
        cmocka_unit_test(a_request_that_can_not_be_built_blames_in_the_callers_words),
        cmocka_unit_test(stored_values_that_are_not_sound_run_nothing)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
