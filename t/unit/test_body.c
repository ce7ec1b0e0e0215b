/* Strict bodies: tables of every kind, hostile JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mcp_body.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A sound call.begin. */
static json_t *sample(void)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:[s],s:i,s:i}", "token_hash", HEX, "surface", "mcp",
                     "resource", "http://127.0.0.1/mcp", "child", "c1", "tool", "webdav__read_file", "via",
                     "direct", "arg_names", "path", "arg_count", 1, "deadline_ms", 60000);
}

static mcp_wire_status_t check(const json_t *body, const char **field)
{
    size_t count = 0;
    const mcp_field_t *table = mcp_body_table(MCP_KIND_CALL_BEGIN, &count);

    assert_non_null(table);
    return mcp_body_check(body, table, count, field);
}

static void a_sound_body_is_taken(void **state)
{
    json_t *body = sample();

    (void)state;
    assert_int_equal(check(body, NULL), MCP_OK);
    json_decref(body);
}

static void a_field_that_names_an_actor_is_refused(void **state)
{
    static const char *const names[] = {"member", "actor", "user", "grant", "roles", "uid"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_t *body = sample();

        json_object_set_new(body, names[i], json_string("x"));
        assert_int_equal(check(body, NULL), MCP_E_FIELD);
        json_decref(body);
    }
}

static void an_argument_value_has_no_field_to_travel_in(void **state)
{
    static const char *const names[] = {"arguments", "args", "values", "argument_values"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_t *body = sample();

        json_object_set_new(body, names[i], json_pack("{s:s}", "path", "secret"));
        assert_int_equal(check(body, NULL), MCP_E_FIELD);
        json_decref(body);
    }
}

static void each_required_field_is_missed_by_name(void **state)
{
    static const char *const names[] = {"token_hash", "surface", "resource", "child", "tool",
                                        "via", "arg_names", "arg_count", "deadline_ms"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_t *body = sample();
        const char *field = NULL;

        json_object_del(body, names[i]);
        assert_int_equal(check(body, &field), MCP_E_FIELD);
        assert_string_equal(field, names[i]);
        json_decref(body);
    }
}

static void wrong_types_and_ranges_are_refused(void **state)
{
    static const struct {
        const char *name;
        const char *value;
        mcp_wire_status_t expected;
    } rows[] = {{"arg_count", "-1", MCP_E_FIELD},      {"arg_count", "1.0", MCP_E_FIELD},
                {"arg_count", "\"1\"", MCP_E_FIELD},   {"deadline_ms", "3600000", MCP_OK},
                {"deadline_ms", "3600001", MCP_E_FIELD}, {"arg_names", "[1]", MCP_E_FIELD},
                {"arg_names", "{}", MCP_E_FIELD},      {"token_hash", "\"abc\"", MCP_E_FIELD},
                {"token_hash", "\"" HEX "0\"", MCP_E_FIELD}, {"tool", "null", MCP_E_FIELD},
                {"client", "[]", MCP_E_FIELD},         {"client", "{\"name\":\"x\"}", MCP_OK}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *body = sample();

        json_object_set_new(body, rows[i].name, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(check(body, NULL), rows[i].expected);
        json_decref(body);
    }
}

static void strings_and_lists_are_taken_up_to_their_limit(void **state)
{
    char name[MCP_MAX_REQUESTED + 2];
    json_t *body = sample();
    json_t *names = json_array();
    int i;

    (void)state;
    memset(name, 'a', sizeof(name));
    name[MCP_MAX_REQUESTED] = '\0';
    json_object_set_new(body, "tool", json_string(name));
    assert_int_equal(check(body, NULL), MCP_OK);
    name[MCP_MAX_REQUESTED] = 'a';
    name[MCP_MAX_REQUESTED + 1] = '\0';
    json_object_set_new(body, "tool", json_string(name));
    assert_int_equal(check(body, NULL), MCP_E_FIELD);
    json_object_set_new(body, "tool", json_string("t"));
    for (i = 0; i < MCP_MAX_ARG_NAMES; i++) {
        json_array_append_new(names, json_string("n"));
    }
    json_object_set_new(body, "arg_names", names);
    assert_int_equal(check(body, NULL), MCP_OK);
    json_array_append_new(names, json_string("n"));
    assert_int_equal(check(body, NULL), MCP_E_FIELD);
    json_decref(body);
}

static void hostile_json_is_refused(void **state)
{
    static const struct {
        const char *text;
        mcp_wire_status_t expected;
    } rows[] = {{"", MCP_E_JSON},           {"{", MCP_E_JSON},
                {"[]", MCP_E_JSON},         {"\"x\"", MCP_E_JSON},
                {"{\"a\":1,\"a\":2}", MCP_E_JSON}, {"{\"a\":1} x", MCP_E_JSON},
                {"{\"a\":\"\\u0000\"}", MCP_E_JSON}, {"{\"a\":\"\xff\"}", MCP_E_JSON},
                {"{\"a\":1e999}", MCP_E_JSON}, {"{\"a\":99999999999999999999}", MCP_E_JSON},
                {"{\"a\":\"[[[[\"}", MCP_OK}, {"{}", MCP_OK}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *body = NULL;

        assert_int_equal(mcp_body_parse(rows[i].text, strlen(rows[i].text), &body), rows[i].expected);
        json_decref(body);
    }
}

static void nesting_is_taken_up_to_the_limit(void **state)
{
    char text[2 * (MCP_MAX_DEPTH + 4) + 16];
    int extra;

    (void)state;
    for (extra = 0; extra < 2; extra++) {
        json_t *body = NULL;
        size_t used = 0;
        int i;

        used += (size_t)snprintf(text, sizeof(text), "{\"a\":");
        for (i = 0; i < MCP_MAX_DEPTH - 1 + extra; i++) {
            text[used++] = '[';
        }
        for (i = 0; i < MCP_MAX_DEPTH - 1 + extra; i++) {
            text[used++] = ']';
        }
        text[used++] = '}';
        assert_int_equal(mcp_body_parse(text, used, &body), extra == 0 ? MCP_OK : MCP_E_SIZE);
        json_decref(body);
    }
}

static void every_prefix_of_a_body_is_refused(void **state)
{
    json_t *body = sample();
    size_t bytes = 0;
    char *text = mcp_json_text(body, &bytes);
    size_t size;

    (void)state;
    assert_non_null(text);
    for (size = 0; size < bytes; size++) {
        json_t *part = NULL;
        char *own = malloc(size > 0 ? size : 1);

        assert_non_null(own);
        memcpy(own, text, size);
        assert_int_not_equal(mcp_body_parse(own, size, &part), MCP_OK);
        free(own);
    }
    free(text);
    json_decref(body);
}

static void every_built_kind_has_both_tables_and_reserved_ones_have_none(void **state)
{
    static const struct {
        uint16_t kind;
        int is_built;
    } rows[] = {
#define KIND(name, number, text, is_built) {number, is_built},
        MCP_KIND_LIST(KIND)
#undef KIND
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t count = 0;
        int has_question = mcp_body_table(rows[i].kind, &count) != NULL;
        int has_answer = mcp_body_table(MCP_KIND_REPLY(rows[i].kind), &count) != NULL;

        assert_int_equal(has_question, rows[i].is_built);
        /* a blob is answered with bytes */
        assert_int_equal(has_answer, rows[i].is_built && rows[i].kind != MCP_KIND_BLOB_GET);
    }
}

static void values_are_counted_outside_of_strings(void **state)
{
    static const struct {
        const char *text;
        size_t least; /* values that it holds */
        size_t count;
    } rows[] = {{"", 0, 1},
                {"1", 1, 1},
                {"\"a\"", 1, 1},
                {"{}", 1, 2},
                {"[]", 1, 2},
                {"[1]", 2, 2},
                {"[1,2,3]", 4, 4},
                {"{\"a\":1,\"b\":[2,3]}", 5, 5},
                {"[{},{}]", 3, 5},
                {"[[],[]]", 3, 5},
                {"\"[{,,,\"", 1, 1},
                {"[\"[{,\",1]", 3, 3},
                {"[\"\\\"[,\",1]", 3, 3},
                {"[\"\\\\\",1]", 3, 3},
                {"[\"\\\\\\\",[,\",1]", 3, 3},
                {"[\"\\u005b,\",1]", 3, 3},
                {"{\"[,{\":1}", 2, 2},
                {"[1,2", 0, 3},
                {"[\",,,,", 0, 2},
                {"[\"\\", 0, 2}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t bytes = strlen(rows[i].text);
        char *own = malloc(bytes > 0 ? bytes : 1); /* without its end: nothing is read behind it */

        assert_non_null(own);
        memcpy(own, rows[i].text, bytes);
        assert_int_equal(mcp_json_values(own, bytes), rows[i].count);
        assert_true(rows[i].count >= rows[i].least);
        free(own);
    }
    assert_int_equal(mcp_json_values("[\0,\0,]", 6), 4); /* a NUL ends nothing */
}

static void numbers_keep_their_value_through_text(void **state)
{
    json_t *value = json_pack("{s:f,s:I,s:f}", "a", 0.1, "b", (json_int_t)9007199254740993, "c", 1e300);
    char *text = mcp_json_text(value, NULL);
    json_t *again = NULL;

    (void)state;
    assert_non_null(text);
    assert_int_equal(mcp_body_parse(text, strlen(text), &again), MCP_OK);
    assert_true(json_equal(value, again));
    free(text);
    json_decref(value);
    json_decref(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_body_is_taken),
        cmocka_unit_test(a_field_that_names_an_actor_is_refused),
        cmocka_unit_test(an_argument_value_has_no_field_to_travel_in),
        cmocka_unit_test(each_required_field_is_missed_by_name),
        cmocka_unit_test(wrong_types_and_ranges_are_refused),
        cmocka_unit_test(strings_and_lists_are_taken_up_to_their_limit),
        cmocka_unit_test(hostile_json_is_refused),
        cmocka_unit_test(nesting_is_taken_up_to_the_limit),
        cmocka_unit_test(every_prefix_of_a_body_is_refused),
        cmocka_unit_test(every_built_kind_has_both_tables_and_reserved_ones_have_none),
        cmocka_unit_test(values_are_counted_outside_of_strings),
        cmocka_unit_test(numbers_keep_their_value_through_text)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
