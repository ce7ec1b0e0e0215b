/* Counting of tool definitions: what is counted as what, and that nothing is counted twice within one part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../proto/mcp_body.h"
#include "../../proto/view_footprint.h"
#include "../../proto/view_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static mcp_footprint_t weigh(const char *text)
{
    mcp_footprint_t sum = {0};
    json_t *def = NULL;

    assert_int_equal(mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, &def, NULL), MCP_OK);
    assert_int_equal(mcp_footprint_add(def, &sum), MCP_OK);
    json_decref(def);
    return sum;
}

static void a_character_is_a_code_point(void **state)
{
    (void)state;
    assert_int_equal(mcp_footprint_characters(NULL), 0);
    assert_int_equal(mcp_footprint_characters(""), 0);
    assert_int_equal(mcp_footprint_characters("abc"), 3);
    assert_int_equal(mcp_footprint_characters("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), 3);
}

static void four_characters_are_a_token_and_a_rest_is_one_too(void **state)
{
    (void)state;
    assert_int_equal(mcp_footprint_tokens(0), 0);
    assert_int_equal(mcp_footprint_tokens(1), 1);
    assert_int_equal(mcp_footprint_tokens(4), 1);
    assert_int_equal(mcp_footprint_tokens(5), 2);
}

static void each_part_is_counted_by_itself(void **state)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"abc\":{\"type\":\"string\",\"description\":\"five!\"}}}";
    static const char text[] =
        "{\"name\":\"a__b\",\"title\":\"T\xc3\xa4\",\"description\":\"four\",\"inputSchema\":"
        "{\"type\":\"object\",\"properties\":{\"abc\":{\"type\":\"string\",\"description\":\"five!\"}}}}";
    mcp_footprint_t sum = weigh(text);

    (void)state;
    assert_int_equal(sum.tools, 1);
    assert_int_equal(sum.descriptions, 2 + 4);
    assert_int_equal(sum.parameters, 5);
    assert_int_equal(sum.names, 6 + 3 + 6);
    assert_int_equal(sum.schemas, strlen(schema));
    assert_int_equal(sum.definitions, mcp_footprint_characters(text));
}

static void parameters_are_found_at_every_depth_and_data_is_none(void **state)
{
    static const struct {
        const char *schema;
        size_t parameters, names;
    } cases[] = {
        {"{}", 0, 0},
        {"true", 0, 0},
        {"{\"properties\":{\"a\":{\"properties\":{\"bc\":{}}}}}", 0, 3},
        {"{\"properties\":{\"a\":{\"items\":{\"properties\":{\"bc\":{\"description\":\"x\"}}}}}}", 1, 3},
        {"{\"properties\":{\"a\":{\"title\":\"tt\",\"type\":[\"string\",\"null\"]}}}", 2, 1 + 6 + 4},
        {"{\"allOf\":[{\"properties\":{\"a\":true}},{\"properties\":{\"b\":true}}]}", 0, 2},
        {"{\"$defs\":{\"long-name\":{\"properties\":{\"a\":{}}}}}", 0, 1},
        {"{\"patternProperties\":{\"^x\":{\"description\":\"yz\"}}}", 2, 0},
        /* a property that is called as a keyword */
        {"{\"properties\":{\"description\":{\"description\":\"d\"}}}", 1, 11},
        {"{\"properties\":{\"properties\":{\"type\":\"null\"}}}", 0, 10 + 4},
        {"{\"properties\":{\"type\":{\"description\":\"dd\"}}}", 2, 4},
        {"{\"properties\":{\"enum\":{\"description\":\"dd\"}}}", 2, 4},
        /* data, that only looks like a schema */
        {"{\"default\":{\"properties\":{\"a\":{}},\"description\":\"no\"}}", 0, 0},
        {"{\"enum\":[{\"properties\":{\"a\":{}}}],\"const\":{\"description\":\"no\"}}", 0, 0},
        {"{\"required\":[\"a\"],\"examples\":[{\"description\":\"no\"}]}", 0, 0},
        {"{\"description\":7,\"type\":7}", 0, 0}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        char text[512];
        int bytes = snprintf(text, sizeof(text), "{\"inputSchema\":%s}", cases[i].schema);

        assert_in_range(bytes, 1, sizeof(text) - 1);
        assert_int_equal(weigh(text).parameters, cases[i].parameters);
        assert_int_equal(weigh(text).names, cases[i].names);
    }
}

static void a_definition_without_anything_still_is_a_tool(void **state)
{
    mcp_footprint_t sum = weigh("{}");

    (void)state;
    assert_int_equal(sum.tools, 1);
    assert_int_equal(sum.descriptions + sum.parameters + sum.schemas, 0);
    assert_int_equal(sum.definitions, 2);
}

static void what_is_no_object_changes_nothing(void **state)
{
    mcp_footprint_t sum = {7, 7, 7, 7, 7, 7};
    json_t *array = json_array();

    (void)state;
    assert_int_equal(mcp_footprint_add(array, &sum), MCP_E_FIELD);
    assert_int_equal(mcp_footprint_add(NULL, &sum), MCP_E_FIELD);
    assert_int_equal(sum.tools + sum.descriptions + sum.parameters + sum.names + sum.schemas + sum.definitions, 42);
    json_decref(array);
}

static void sums_join(void **state)
{
    mcp_footprint_t sum = {1, 2, 3, 4, 5, 6};
    const mcp_footprint_t part = {10, 20, 30, 40, 50, 60};

    (void)state;
    mcp_footprint_join(&part, &sum);
    assert_int_equal(sum.tools, 11);
    assert_int_equal(sum.descriptions, 22);
    assert_int_equal(sum.parameters, 33);
    assert_int_equal(sum.names, 44);
    assert_int_equal(sum.schemas, 55);
    assert_int_equal(sum.definitions, 66);
}

static void the_instructions_name_the_prefix_and_stay_short(void **state)
{
    char text[MCP_VIEW_TEXT_MAX];
    const char *names[400];
    char tiny[8];
    mcp_view_about_t about = {"corp", 0, names, 2};
    size_t bytes;
    size_t i;

    (void)state;
    names[0] = "Git";
    names[1] = "Wiki";
    bytes = mcp_view_text_instructions(&about, text, sizeof(text));
    assert_int_equal(bytes, strlen(text));
    assert_non_null(strstr(text, "begin with corp__ "));
    assert_non_null(strstr(text, "Applications: Git, Wiki. "));
    assert_null(strstr(text, "search_tools"));
    about.is_collapsed = 1;
    for (i = 0; i < COUNT(names); i++) {
        names[i] = "An application with a long name";
    }
    about.application_count = COUNT(names);
    bytes = mcp_view_text_instructions(&about, text, sizeof(text));
    assert_in_range(bytes, 1000, 2000);
    assert_non_null(strstr(text, "more. "));
    assert_non_null(strstr(text, "search_tools"));
    assert_non_null(strstr(text, "Every call is recorded."));
    assert_int_equal(mcp_view_text_instructions(&about, tiny, sizeof(tiny)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_character_is_a_code_point),
        cmocka_unit_test(four_characters_are_a_token_and_a_rest_is_one_too),
        cmocka_unit_test(each_part_is_counted_by_itself),
        cmocka_unit_test(parameters_are_found_at_every_depth_and_data_is_none),
        cmocka_unit_test(a_definition_without_anything_still_is_a_tool),
        cmocka_unit_test(what_is_no_object_changes_nothing),
        cmocka_unit_test(sums_join),
        cmocka_unit_test(the_instructions_name_the_prefix_and_stay_short)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
