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
    "\"rules\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
    "\"properties\":{\"tool\":{\"type\":\"string\"},\"on\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"deep\":{\"type\":\"object\"},\"count\":{\"type\":\"integer\"},"
    "\"label\":{\"type\":\"string\",\"readOnly\":true}}}},"
    "\"effect\":{\"enum\":[\"allow\",\"block\"]},"
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
        {{"--target", "role=R,max=3"}, NULL, "{\"target\":{\"role\":\"R\",\"max\":3}}", NULL},
        {{"--rules", "tool=a,on=x,y,deep.k=1,deep./a/b=t=u", "--rules", "tool=b,count=2,on=z"},
         NULL,
         "{\"rules\":[{\"tool\":\"a\",\"on\":[\"x\",\"y\"],\"deep\":{\"k\":1,\"/a/b\":\"t=u\"}},"
         "{\"tool\":\"b\",\"count\":2,\"on\":[\"z\"]}]}",
         NULL},
        {{"--rules", "[{\"tool\":\"a=b\"}]"}, NULL, "{\"rules\":[{\"tool\":\"a=b\"}]}", NULL},
        {{"--rules", "{\"tool\":\"a=b,c\"}"}, NULL, "{\"rules\":[{\"tool\":\"a=b,c\"}]}", NULL},
        {{"--rules", "tool=a"}, "{\"rules\":[{\"tool\":\"b\"}]}", "{\"rules\":[{\"tool\":\"a\"}]}", NULL},
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
        {{"--roles", "[1"}, NULL, NULL, "--roles is not JSON"},
        {{"--items", "x"}, NULL, NULL, "--items takes a list"},
        {{"--rules", "x"}, NULL, NULL, "--rules takes KEY=VALUE,... or JSON, once for each element; its keys: tool, on, deep, count"},
        {{"--rules", "[{\"tool\":\"x\"}"}, NULL, NULL, "--rules is not JSON without duplicate keys (near byte"},
        {{"--rules", "{\"tool\":\"x\",\"tool\":\"y\"}"}, NULL, NULL, "--rules is not JSON without duplicate keys"},
        {{"--rules", "toool=x"}, NULL, NULL, "--rules has no key \"toool\"; its keys: tool, on, deep, count"},
        {{"--rules", "tool=x,y"}, NULL, NULL, "--rules: a part behind tool is no KEY=VALUE"},
        {{"--rules", "x,tool=y"}, NULL, NULL, "--rules: a part is no KEY=VALUE"},
        {{"--rules", "tool=x,tool=y"}, NULL, NULL, "is given twice"},
        {{"--rules", "count=many"}, NULL, NULL, "--count takes INTEGER"},
        {{"--rules.tool", "x"}, NULL, NULL, "--rules is a list: write --rules KEY=VALUE,... once for each"},
        {{"--effect", "[1]"}, NULL, "{\"effect\":\"[1]\"}", NULL},
        {{"--target", "R"}, NULL, NULL, "--target takes KEY=VALUE,... or JSON; its keys: role, max"},
        {{"--variables", "host=h"}, NULL, NULL, "--variables takes JSON, or --variables.KEY VALUE"},
        {{"--target", "nobody=R"}, NULL, NULL, "--target has no key \"nobody\"; its keys: role, max"},
        {{"--target.nobody", "R"}, NULL, NULL, "--target has no key \"nobody\"; its keys: role, max"},
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
               "ID      N  DEEP  ROLES  OK\n"
               "a       1  x=1   -      -\n"
               "longer  -  -     A,B    true\n");
    must_print("[{\"c\":\"con_1\",\"c_slug\":\"crm\",\"made_at\":\"2026-12-01T00:07:18.221Z\",\"deep\":{\"x\":{}}}]",
               CTL_TABLE,
               "C_SLUG  MADE_AT\n"
               "crm     2026-12-01T00:07:18Z\n");
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

static void keys_never_touch_their_values(void **state)
{
    (void)state;
    must_print("{\"a\":1,\"a_key_that_is_longer_than_the_rest\":{\"x\":2}}", CTL_TABLE,
               "a                                     1\n"
               "a_key_that_is_longer_than_the_rest.x  2\n");
}

static void an_object_that_has_items_is_no_page(void **state)
{
    static const char object[] = "{\"name\":\"n\",\"items\":[{\"a\":1},{\"a\":2}],\"revision\":3}";

    (void)state;
    must_print(object, CTL_TABLE,
               "name                    n\n"
               "items:\n"
               "  A\n"
               "  1\n"
               "  2\n"
               "revision                3\n");
    must_print(object, CTL_JSONL, "{\"name\":\"n\",\"items\":[{\"a\":1},{\"a\":2}],\"revision\":3}\n");
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
    /* two columns each, and an accent that takes none */
    must_print("[{\"a\":\"\\u6771\\u4eac\",\"b\":1},{\"a\":\"e\\u0301x\",\"b\":2}]", CTL_TABLE,
               "A     B\n"
               "\xe6\x9d\xb1\xe4\xba\xac  1\n"
               "e\xcc\x81x    2\n");
}

/* --- views ----------------------------------------------------------------- */

static void must_view(const char *operation, const char *result, const char *wants)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    json_t *value = parse(result);

    assert_non_null(to);
    ctl_view(to, operation, value);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wants);
    json_decref(value);
    free(text);
}

static void rules_say_whom_and_what_they_are_for(void **state)
{
    (void)state;
    must_view("restrictions__list",
              "{\"items\":[{\"restriction\":\"rst_1\",\"name\":\"n\",\"effect\":\"allow\",\"target\":{\"role\":\"Sales\"},"
              "\"items\":[{\"connector\":\"con_1\",\"slug\":\"crm\"},{\"connector\":\"con_1\",\"slug\":\"crm\",\"operation\":"
              "\"get\"}],\"items_count\":9},{\"restriction\":\"rst_2\",\"effect\":\"block\",\"target\":{\"member\":"
              "\"mem_1\",\"email\":\"a@b.org\"},\"items\":[],\"items_count\":0},{\"restriction\":\"rst_3\",\"effect\":"
              "\"block\",\"target\":{\"member\":\"mem_2\"},\"items\":[{\"tool\":\"t\\u001b__x\"}],\"items_count\":1}]}",
              "NAME  EFFECT  FOR         ITEMS                    RESTRICTION\n"
              "n     allow   role Sales  crm, crm/get and 7 more  rst_1\n"
              "-     block   a@b.org     (nothing)                rst_2\n"
              "-     block   mem_2       t\\u001b__x               rst_3\n");
}

static void entries_say_what_they_freeze(void **state)
{
    (void)state;
    must_view("toolboxes__get",
              "{\"name\":\"b\",\"revision\":1,\"entries\":[{\"entry\":\"ent_1\",\"name\":\"f\",\"tool\":\"b__f\",\"connector\":\"con_1\","
              "\"connector_slug\":\"desk\",\"operation\":\"o\",\"connections\":[\"x\",\"y\"],\"frozen\":{\"q\":\"v\",\"/m/t\":1},"
              "\"always_visible\":false}]}",
              "name                    b\n"
              "revision                1\n"
              "entries:\n"
              "  TOOL  CONNECTOR  OPERATION  CONNECTIONS  FROZEN      ENTRY\n"
              "  b__f  desk       o          x,y          q=v,/m/t=1  ent_1\n");
}

static void a_dry_run_says_who_gains_and_loses(void **state)
{
    (void)state;
    must_view("members__remove",
              "{\"member\":\"m\",\"dry_run\":true,\"warnings\":[\"w1\",\"w2\"],\"impact\":{\"members\":3,\"gains\":1,\"loses\":3,\"groups\":["
              "{\"member_count\":3,\"members\":[\"a@b\"],\"roles\":[\"R\",\"S\"],\"gain_count\":1,\"gains\":[\"x__g\"],"
              "\"lose_count\":4,\"loses\":[\"x__l\"]},{\"member_count\":1,\"roles\":[],\"gain_count\":0,\"gains\":[],"
              "\"lose_count\":2,\"loses\":[]}]}}",
              "Dry run, nothing is changed. It would be:\n"
              "member                  m\n"
              "\nwarning: w1\nwarning: w2\n"
              "\nMembers touched: 3; 1 gain tools, 3 lose tools\n"
              "\n3 members of R, S: a@b and 2 more\n"
              "  + x__g\n"
              "  - x__l\n"
              "  - and 3 more\n"
              "\n1 member\n"
              "  - 2 more\n");
    must_view("members__update", "{\"member\":\"m\",\"dry_run\":true,\"impact\":{\"members\":0,\"groups\":[]}}",
              "Dry run, nothing is changed. It would be:\n"
              "member                  m\n"
              "\nNobody gains or loses a tool.\n");
    must_view("connections__create", "{\"connection\":\"c\",\"dry_run\":true,\"impact\":{\"members\":0,\"groups\":[],\"only_you\":true}}",
              "Dry run, nothing is changed. It would be:\n"
              "connection              c\n"
              "\nThis is about you alone: what others gain or lose is told with member:read.\n"
              "You gain and lose no tool.\n");
}

static void explain_is_told_in_sentences(void **state)
{
    (void)state;
    must_view("restrictions__explain",
              "{\"member\":\"mem_1\",\"email\":\"a@b.org\",\"state\":\"suspended\",\"roles\":[\"R\"],\"governed\":\"roles\",\"rules\":["
              "{\"restriction\":\"rst_1\",\"name\":\"n\",\"effect\":\"allow\",\"role\":\"R\"}],\"answer\":\"not on the allowlist\","
              "\"decided_by\":null,\"points\":{\"browse\":{\"answer\":\"not on the allowlist\"},\"connect\":{\"answer\":\"ok\","
              "\"decided_by\":{\"restriction\":\"rst_1\",\"effect\":\"allow\",\"item\":\"operation\",\"role\":\"R\"}}},"
              "\"url\":{\"connection\":\"crm\",\"template\":\"/u/{id}\",\"verdict\":\"deny\",\"claimed_by\":[{\"operation\":\"o\","
              "\"path\":\"/u/a\",\"verdict\":\"block\"}]},\"paths\":[{\"tool\":\"crm__d\",\"answer\":\"x\"}],\"tool\":\"crm__d\","
              "\"connector_slug\":\"crm\",\"operation\":\"d\",\"more_paths\":5}",
              "a@b.org can't have crm__d (crm/d): not on the allowlist\n"
              "The member is suspended: every call is refused before this.\n"
              "Roles: R\n"
              "Rules: those of the member's roles govern:\n"
              "  allow rule n for role R\n"
              "Answers:\n"
              "  browse     not on the allowlist\n"
              "  connect    ok: allow rule rst_1 for role R, by its operation\n"
              "  URL check  deny: /u/{id} over crm\n"
              "Values that make the URL one of these are refused all the same:\n"
              "  OPERATION  PATH  VERDICT\n"
              "  o          /u/a  block\n"
              "All names of the operation:\n"
              "  TOOL    ANSWER\n"
              "  crm__d  x\n"
              "  and 5 more\n");
    must_view("restrictions__explain",
              "{\"member\":\"mem_1\",\"state\":\"active\",\"governed\":\"user\",\"rules\":[{\"restriction\":\"rst_1\",\"effect\":\"block\","
              "\"member\":\"mem_1\"}],\"answer\":\"unknown\",\"points\":{},\"url\":null,\"paths\":[],\"tool\":\"x__y\"}",
              "mem_1 can't have x__y: unknown; there is no tool of this name\n"
              "Rules: the member's own govern; those of roles don't count:\n"
              "  block rule rst_1 for the member\n"
              "Answers:\n");
    must_view("restrictions__explain",
              "{\"member\":\"mem_1\",\"state\":\"active\",\"governed\":\"none\",\"rules\":[],\"answer\":\"ok\",\"points\":{},"
              "\"connector_slug\":\"crm\",\"operation\":\"d\"}",
              "mem_1 can have crm/d\n"
              "Rules: none for the member or their roles: everything is allowed\n"
              "Answers:\n");
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
        cmocka_unit_test(keys_never_touch_their_values),
        cmocka_unit_test(an_object_that_has_items_is_no_page),
        cmocka_unit_test(a_terminal_is_never_commanded),
        cmocka_unit_test(columns_are_aligned_by_characters),
        cmocka_unit_test(rules_say_whom_and_what_they_are_for),
        cmocka_unit_test(entries_say_what_they_freeze),
        cmocka_unit_test(a_dry_run_says_who_gains_and_loses),
        cmocka_unit_test(explain_is_told_in_sentences),
        cmocka_unit_test(csv_is_quoted_as_rfc_4180_says),
        cmocka_unit_test(json_is_whole),
        cmocka_unit_test(a_format_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
