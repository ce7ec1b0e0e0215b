/* policyctl: words to arguments by schema, and results to tables and CSV. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "../../policyd/policyctl.h"
#include "../../proto/mcp_body.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_WORDS    8

static json_t *parse(const char *text)
{
    json_t *value = NULL;

    if (mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, &value, NULL) != MCP_OK) {
        fail_msg("the test's own JSON is bad: %s", text);
    }
    return value;
}

static const char schema_text[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"name\"],\"properties\":{"
    "\"name\":{\"type\":\"string\"},"
    "\"page_size\":{\"type\":\"integer\"},"
    "\"ratio\":{\"type\":\"number\"},"
    "\"dry_run\":{\"type\":\"boolean\"},"
    "\"roles\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"numbers\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"
    "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
    "\"target\":{\"$ref\":\"#/$defs/target\"},"
    "\"variables\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
    "\"value\":{\"type\":[\"integer\",\"boolean\",\"string\"]},"
    "\"any\":{}},"
    "\"$defs\":{\"target\":{\"type\":\"object\",\"additionalProperties\":false,"
    "\"properties\":{\"role\":{\"type\":\"string\"},\"max\":{\"type\":\"integer\"}}}}}";

typedef struct args_case {
    const char *words[MAX_WORDS];
    const char *base;  /* of --json */
    const char *wants; /* arguments; NULL: refused */
    const char *why;
} args_case_t;

static void check(const json_t *schema, const args_case_t *at)
{
    char *words[MAX_WORDS];
    char why[CTL_WHY] = "";
    json_t *base = at->base == NULL ? NULL : parse(at->base);
    json_t *args;
    int i, count = 0;

    while (count < MAX_WORDS && at->words[count] != NULL) {
        words[count] = strdup(at->words[count]);
        assert_non_null(words[count]);
        count++;
    }
    args = ctl_args_read(schema, base, count, words, why, sizeof why);
    if (at->wants == NULL) {
        if (args != NULL || strstr(why, at->why) == NULL) {
            fail_msg("%s: \"%s\" instead of \"%s\"", at->words[0], why, at->why);
        }
    } else {
        json_t *wanted = parse(at->wants);

        if (args == NULL || !json_equal(args, wanted)) {
            char *got = args == NULL ? NULL : mcp_json_text(args, NULL);

            fail_msg("%s: %s (%s) instead of %s", at->words[0], got == NULL ? "nothing" : got, why,
                     at->wants);
        }
        json_decref(wanted);
    }
    json_decref(args);
    json_decref(base);
    for (i = 0; i < count; i++) {
        free(words[i]);
    }
}

static void words_become_arguments_by_the_schema(void **state)
{
    static const args_case_t cases[] = {
        {{"--name", "x"}, NULL, "{\"name\":\"x\"}", NULL},
        {{"--name=x=y"}, NULL, "{\"name\":\"x=y\"}", NULL},
        {{"--name", "12"}, NULL, "{\"name\":\"12\"}", NULL},
        {{"--name", "-"}, NULL, "{\"name\":\"-\"}", NULL},
        {{"--name="}, NULL, "{\"name\":\"\"}", NULL},
        {{"--name=--x"}, NULL, "{\"name\":\"--x\"}", NULL},
        {{"x"}, NULL, "{\"name\":\"x\"}", NULL},
        {{"--page-size", "5"}, NULL, "{\"page_size\":5}", NULL},
        {{"--page_size", "-5"}, NULL, "{\"page_size\":-5}", NULL},
        {{"--ratio", "5"}, NULL, "{\"ratio\":5}", NULL},
        {{"--ratio", "0.5"}, NULL, "{\"ratio\":0.5}", NULL},
        {{"--dry-run"}, NULL, "{\"dry_run\":true}", NULL},
        {{"--dry-run", "--name", "x"}, NULL, "{\"dry_run\":true,\"name\":\"x\"}", NULL},
        {{"--dry-run", "x"}, NULL, "{\"dry_run\":true,\"name\":\"x\"}", NULL},
        {{"--dry-run", "false"}, NULL, "{\"dry_run\":false}", NULL},
        {{"--dry-run=true"}, NULL, "{\"dry_run\":true}", NULL},
        {{"--roles", "A,B"}, NULL, "{\"roles\":[\"A\",\"B\"]}", NULL},
        {{"--roles", "A", "--roles", "B,C"}, NULL, "{\"roles\":[\"A\",\"B\",\"C\"]}", NULL},
        {{"--roles", "[\"A,B\"]"}, NULL, "{\"roles\":[\"A,B\"]}", NULL},
        {{"--roles="}, NULL, "{\"roles\":[]}", NULL},
        {{"--roles", "1,2"}, NULL, "{\"roles\":[\"1\",\"2\"]}", NULL},
        {{"--numbers", "1,2"}, NULL, "{\"numbers\":[1,2]}", NULL},
        {{"--items", "{\"a\":1,\"b\":2}", "--items", "{\"c\":3}"},
         NULL,
         "{\"items\":[{\"a\":1,\"b\":2},{\"c\":3}]}",
         NULL},
        {{"--target.role", "R", "--target.max", "3"}, NULL, "{\"target\":{\"role\":\"R\",\"max\":3}}", NULL},
        {{"--target", "{\"role\":\"R\"}"}, NULL, "{\"target\":{\"role\":\"R\"}}", NULL},
        {{"--variables.some-host", "h", "--variables.n", "1"},
         NULL,
         "{\"variables\":{\"some-host\":\"h\",\"n\":\"1\"}}",
         NULL},
        {{"--value", "30"}, NULL, "{\"value\":30}", NULL},
        {{"--value", "true"}, NULL, "{\"value\":true}", NULL},
        {{"--value", "auto"}, NULL, "{\"value\":\"auto\"}", NULL},
        {{"--value", "1.5"}, NULL, "{\"value\":\"1.5\"}", NULL},
        {{"--any", "[1]"}, NULL, "{\"any\":[1]}", NULL},
        {{"--any", "a,b"}, NULL, "{\"any\":\"a,b\"}", NULL},
        /* over --json */
        {{NULL}, "{\"name\":\"x\",\"more\":1}", "{\"name\":\"x\",\"more\":1}", NULL},
        {{"--name", "y"}, "{\"name\":\"x\",\"page_size\":1}", "{\"name\":\"y\",\"page_size\":1}", NULL},
        {{"--roles", "B"}, "{\"roles\":[\"A\"]}", "{\"roles\":[\"B\"]}", NULL},
        {{"--target.max", "2"}, "{\"target\":{\"role\":\"R\",\"max\":1}}",
         "{\"target\":{\"role\":\"R\",\"max\":2}}", NULL},
        {{"--target", "{\"max\":2}"}, "{\"target\":{\"role\":\"R\"}}", "{\"target\":{\"max\":2}}", NULL},
        /* refused */
        {{"--nmae", "x"}, NULL, NULL, "there is no flag --nmae"},
        {{"--name"}, NULL, NULL, "--name needs a value"},
        {{"--name", "--roles"}, NULL, NULL, "--name needs a value"},
        {{"--name", "x", "--name", "y"}, NULL, NULL, "--name is given twice"},
        {{"--name", "\xff"}, NULL, NULL, "not UTF-8"},
        {{"x", "y"}, NULL, NULL, "one word too many"},
        {{"--page-size", "five"}, NULL, NULL, "--page-size takes INTEGER"},
        {{"--page-size", "5.5"}, NULL, NULL, "--page-size takes INTEGER"},
        {{"--page-size", "99999999999999999999"}, NULL, NULL, "--page-size takes INTEGER"},
        {{"--dry-run=maybe"}, NULL, NULL, "--dry-run takes true|false"},
        {{"--numbers", "1,x"}, NULL, NULL, "--numbers takes a list"},
        {{"--roles", "[1"}, NULL, NULL, "--roles takes a list"},
        {{"--items", "x"}, NULL, NULL, "--items takes a list"},
        {{"--target", "R"}, NULL, NULL, "--target takes JSON"},
        {{"--target.nobody", "R"}, NULL, NULL, "there is no flag --target.nobody"},
        {{"--name.x", "R"}, NULL, NULL, "there is no flag --name.x"},
        {{"--name", "x", "--name.x", "y"}, NULL, NULL, "--name.x"},
        {{"--any.a.b.c.d.e.f.g.h", "x"}, NULL, NULL, "nested too deeply"},
        {{"--.x", "y"}, NULL, NULL, "is no flag"},
    };
    json_t *schema = parse(schema_text);
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        check(schema, &cases[i]);
    }
    json_decref(schema);
}

static void a_document_is_read_from_the_file_that_is_named(void **state)
{
    char file[] = "/tmp/policyctlXXXXXX";
    char *words[1] = {file};
    char *flags[2] = {NULL, file};
    char why[CTL_WHY] = "";
    json_t *schema = parse("{\"type\":\"object\",\"required\":[\"slug\",\"document\"],\"properties\":{"
                           "\"slug\":{\"type\":\"string\"},\"document\":{\"type\":\"string\","
                           "\"contentMediaType\":\"application/json\"}}}");
    json_t *args;
    int fd = mkstemp(file);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a,b\n", 4), 4);
    assert_int_equal(close(fd), 0);
    args = ctl_args_read(schema, NULL, 1, words, why, sizeof why);
    assert_string_equal(mcp_json_str(args, "document"), "a,b\n");
    json_decref(args);
    flags[0] = strdup("--document");
    args = ctl_args_read(schema, NULL, 2, flags, why, sizeof why);
    assert_string_equal(mcp_json_str(args, "document"), "a,b\n");
    json_decref(args);
    free(flags[0]);
    assert_null(ctl_args_file(file, why, sizeof why));
    assert_non_null(strstr(why, "is not JSON"));
    assert_int_equal(unlink(file), 0);
    assert_null(ctl_args_read(schema, NULL, 1, words, why, sizeof why));
    assert_non_null(strstr(why, "can't be read"));
    json_decref(schema);
}

/* --- output ---------------------------------------------------------------- */

static void must_print(const char *result, ctl_format_t format, const char *wants)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    json_t *value = parse(result);

    assert_non_null(to);
    ctl_print(to, value, format);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wants);
    json_decref(value);
    free(text);
}

static void a_list_is_a_table(void **state)
{
    (void)state;
    must_print("{\"items\":[{\"id\":\"a\",\"n\":1,\"deep\":{\"x\":1},\"none\":null},"
               "{\"id\":\"longer\",\"roles\":[\"A\",\"B\"],\"ok\":true}]}",
               CTL_TABLE,
               "ID      N  ROLES  OK\n"
               "a       1  -      -\n"
               "longer  -  A,B    true\n");
    must_print("{\"items\":[]}", CTL_TABLE, "(none)\n");
    must_print("{\"items\":[],\"unmatched\":[\"x\"],\"next_cursor\":\"c\"}", CTL_TABLE,
               "(none)\nunmatched: x\n");
}

static void an_object_is_keys_and_values(void **state)
{
    (void)state;
    must_print("{\"id\":\"a\",\"deep\":{\"x\":1},\"none\":null,\"skipped\":[{\"operation\":\"o\"}]}", CTL_TABLE,
               "id                      a\n"
               "deep.x                  1\n"
               "none                    -\n"
               "skipped:\n"
               "  OPERATION\n"
               "  o\n");
}

static void a_terminal_is_never_commanded(void **state)
{
    (void)state;
    must_print("{\"a\":\"x\\u001b[2J\\ny\\u202ez\\u00e9\\u200b\\udb40\\udc41\"}", CTL_TABLE,
               "a                       x\\u001b[2J\\u000ay\\u202ez\xc3\xa9\\u200b\\u{e0041}\n");
}

static void columns_are_aligned_by_characters(void **state)
{
    (void)state;
    must_print("[{\"a\":\"\\u00e9\\u00e9\",\"b\":1},{\"a\":\"xyz\",\"b\":2}]", CTL_TABLE,
               "A    B\n"
               "\xc3\xa9\xc3\xa9   1\n"
               "xyz  2\n");
}

static void csv_is_quoted_as_rfc_4180_says(void **state)
{
    (void)state;
    must_print("{\"items\":[{\"a\":\"x,y\",\"b\":\"say \\\"hi\\\"\\n\"},{\"c\":[1,2],\"a\":null}]}", CTL_CSV,
               "a,b,c\r\n"
               "\"x,y\",\"say \"\"hi\"\"\n\",\r\n"
               ",,\"[1,2]\"\r\n");
    must_print("{\"a\":1}", CTL_CSV, "a\r\n1\r\n");
}

static void json_is_whole(void **state)
{
    (void)state;
    must_print("{\"items\":[{\"a\":1}],\"next_cursor\":\"c\"}", CTL_JSONL, "{\"a\":1}\n");
    must_print("{\"a\":0.1}", CTL_JSON, "{\n  \"a\": 0.10000000000000001\n}\n");
}

static void a_format_has_a_name(void **state)
{
    ctl_format_t format = CTL_TABLE;

    (void)state;
    assert_int_equal(ctl_print_format("csv", &format), 0);
    assert_int_equal(format, CTL_CSV);
    assert_int_equal(ctl_print_format("yaml", &format), -1);
    assert_int_equal(format, CTL_CSV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_become_arguments_by_the_schema),
        cmocka_unit_test(a_document_is_read_from_the_file_that_is_named),
        cmocka_unit_test(a_list_is_a_table),
        cmocka_unit_test(an_object_is_keys_and_values),
        cmocka_unit_test(a_terminal_is_never_commanded),
        cmocka_unit_test(columns_are_aligned_by_characters),
        cmocka_unit_test(csv_is_quoted_as_rfc_4180_says),
        cmocka_unit_test(json_is_whole),
        cmocka_unit_test(a_format_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
