/* Text into words, stems and values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proto/view_words.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct list {
    char text[4096];
    size_t bytes;
    int has_all; /* JOINED and SINGLE too, in brackets */
    size_t left; /* words until the walk is ended */
} list_t;

static int take(const mcp_view_word_t *word, void *ctx)
{
    list_t *list = ctx;
    int is_extra = word->form == MCP_VIEW_FORM_JOINED || word->form == MCP_VIEW_FORM_SINGLE;

    assert_int_equal(strlen(word->text), word->bytes);
    assert_true(word->bytes <= MCP_VIEW_WORD_BYTES && word->bytes > 0);
    assert_true(word->from < word->to);
    if (is_extra && !list->has_all) {
        return 0;
    }
    if (list->bytes + word->bytes + 4 < sizeof(list->text)) {
        list->bytes +=
            (size_t)snprintf(list->text + list->bytes, sizeof(list->text) - list->bytes,
                             is_extra ? "%s(%s)" : "%s%s", list->bytes > 0 ? "|" : "", word->text);
    }
    return list->left > 0 && --list->left == 0 ? 7 : 0;
}

static const char *words(const char *text, size_t bytes, int has_all)
{
    static list_t list;

    memset(&list, 0, sizeof(list));
    list.has_all = has_all;
    assert_int_equal(mcp_view_words(text, bytes, take, &list), 0);
    return list.text;
}

typedef struct row {
    const char *text, *expected;
} row_t;

static void each(const row_t *rows, size_t count, int has_all)
{
    for (size_t i = 0; i < count; i++) {
        const char *got = words(rows[i].text, strlen(rows[i].text), has_all);

        if (strcmp(got, rows[i].expected) != 0) {
            fail_msg("%s: %s, not %s", rows[i].text, got, rows[i].expected);
        }
    }
}

static void words_end_at_case_and_digit_borders_and_at_all_that_is_neither(void **state)
{
    static const row_t rows[] = {{"listOpenIssues", "list|open|issues"},
                                 {"ListOpenIssues", "list|open|issues"},
                                 {"HTMLPage", "html|page"},
                                 {"parseHTML", "parse|html"},
                                 {"URLs and APIs", "urls|and|apis"},
                                 {"APIServer", "api|server"},
                                 {"get_user-id.v2", "get|user|id|v|2"},
                                 {"iPhone", "i|phone"},
                                 {"S3Bucket", "s|3|bucket"},
                                 {"utf8", "utf|8"},
                                 {"a+b, c/d;e", "a|b|c|d|e"},
                                 {"", ""},
                                 {" \t\r\n-_.!", ""},
                                 {"don't", "don|t"}};

    (void)state;
    each(rows, COUNT(rows), 0);
}

static void what_a_border_cuts_is_told_whole_too(void **state)
{
    static const row_t rows[] = {
        {"GitHub", "git|hub|(github)"},
        {"OAuth2", "o|auth|2|(oauth)|(auth2)|(oauth2)"},
        {"getOpenIssuesNow", "get|open|issues|now|(getopen)|(openissues)|(issuesnow)"},
        {"git hub", "git|hub"}};

    (void)state;
    each(rows, COUNT(rows), 1);
}

static void case_accents_and_width_do_not_tell_words_apart(void **state)
{
    static const row_t rows[] = {
        {"\xc3\x89"
         "cole",
         "ecole"}, /* composed É */
        {"E\xcc\x81"
         "cole",
         "ecole"}, /* decomposed */
        {"e\xcc\x81"
         "cole",
         "ecole"},
        {"STRASSE Stra\xc3\x9f"
         "e",
         "strasse|strasse"},
        {"\xc3\x86ther \xc5\x92uvre", "aether|oeuvre"},
        {"\xc3\x85ngstr\xc3\xb6m \xc3\x98re", "angstrom|ore"},
        {"\xce\xa3\xce\x9f\xce\xa6\xce\x8c\xce\xa3", "\xcf\x83\xce\xbf\xcf\x86\xce\xbf\xcf\x83"},
        {"\xcf\x83\xce\xbf\xcf\x86\xcf\x8c\xcf\x82", "\xcf\x83\xce\xbf\xcf\x86\xce\xbf\xcf\x83"},
        {"\xd0\x81\xd0\x9b\xd0\x9a\xd0\x90", "\xd0\xb5\xd0\xbb\xd0\xba\xd0\xb0"}, /* ЁЛКА */
        {"\xd0\xb5\xcc\x88\xd0\xbb\xd0\xba\xd0\xb0", "\xd0\xb5\xd0\xbb\xd0\xba\xd0\xb0"},
        {"\xef\xbc\xa1\xef\xbd\x82\xef\xbc\x91", "ab|1"}, /* full width */
        {"\xd9\xa1\xd9\xa2", "12"},                       /* Arabic digits */
        {"caf\xc3\xa9s", "cafes"}};

    (void)state;
    each(rows, COUNT(rows), 0);
}

static void scripts_without_spaces_are_told_in_pairs(void **state)
{
    static const row_t rows[] = {
        {"\xe5\x9b\xbe\xe7\x89\x87\xe7\x94\x9f\xe6\x88\x90", /* 图片生成 */
         "\xe5\x9b\xbe\xe7\x89\x87|\xe7\x89\x87\xe7\x94\x9f|\xe7\x94\x9f\xe6\x88\x90"},
        {"\xe5\x9b\xbe", "\xe5\x9b\xbe"},
        {"PDF\xe5\xa0\xb1\xe5\x91\x8a"
         "2",
         "pdf|\xe5\xa0\xb1\xe5\x91\x8a|2"},
        {"\xe6\x9d\xb1\xe3\x81\xae", "\xe6\x9d\xb1\xe3\x81\xae"}, /* Han and kana */
        {"\xe0\xb8\x81\xe0\xb8\x82\xe0\xb8\x84",
         "\xe0\xb8\x81\xe0\xb8\x82|\xe0\xb8\x82\xe0\xb8\x84"},                  /* Thai */
        {"\xe0\xba\x81\xe0\xba\x82", "\xe0\xba\x81\xe0\xba\x82"},               /* Lao */
        {"\xe1\x9e\x80\xe1\x9e\x81", "\xe1\x9e\x80\xe1\x9e\x81"},               /* Khmer */
        {"\xe1\x80\x80\xe1\x80\x81", "\xe1\x80\x80\xe1\x80\x81"},               /* Myanmar */
        {"\xe5\x9b\xbe\xe3\x80\x81\xe7\x89\x87", "\xe5\x9b\xbe|\xe7\x89\x87"}}; /* 图、片 */

    (void)state;
    each(rows, COUNT(rows), 0);
}

static void no_bytes_are_refused(void **state)
{
    static const row_t rows[] = {
        {"a\xf0\x9f\x98\x80"
         "b",
         "a|b"}, /* emoji */
        {"a\xe2\x80\x8d"
         "b",
         "ab"},                                               /* joiner */
        {"\xe2\x80\x8f\xd7\x90\xd7\x91", "\xd7\x90\xd7\x91"}, /* right to left */
        {"a\xff"
         "b\xc3",
         "a|b"},
        {"a\xc0\x80"
         "b",
         "a|b"},
        {"a\xed\xa0\x80"
         "b",
         "a|b"},
        {"a\xf4\x90\x80\x80"
         "b",
         "a|b"},
        {"a\xe2\x80", "a"}};
    char *longest = malloc(100000);

    (void)state;
    each(rows, COUNT(rows), 0);
    assert_string_equal(words("a\0b", 3, 0), "a|b");
    assert_non_null(longest);
    memset(longest, 'x', 100000);
    assert_int_equal(strncmp(words(longest, 100000, 0), "xxxxx", 5), 0);
    free(longest);
}

static void a_walk_ends_when_its_taker_says_so(void **state)
{
    list_t list = {.left = 2};

    (void)state;
    assert_int_equal(mcp_view_words("a b c", 5, take, &list), 7);
    assert_string_equal(list.text, "a|b");
}

static void stems_are_without_plural_ing_and_ed(void **state)
{
    static const row_t rows[] = {{"issues", "issu"},
                                 {"issue", "issu"},
                                 {"files", "file"},
                                 {"file", "file"},
                                 {"queries", "query"},
                                 {"boxes", "box"},
                                 {"classes", "class"},
                                 {"status", "status"},
                                 {"analysis", "analysis"},
                                 {"access", "access"},
                                 {"listing", "list"},
                                 {"listed", "list"},
                                 {"planning", "plan"},
                                 {"calling", "call"},
                                 {"created", "creat"},
                                 {"create", "creat"},
                                 {"creating", "creat"},
                                 {"string", "string"},
                                 {"bring", "bring"},
                                 {"red", "red"},
                                 {"bus", "bus"},
                                 {"as", "as"},
                                 {"searches", "search"},
                                 {"\xc3\xa9t\xc3\xa9s", "\xc3\xa9t\xc3\xa9s"},
                                 {"connections", "connection"}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char word[MCP_VIEW_WORD_BYTES + 1];
        size_t bytes = strlen(rows[i].text);

        memcpy(word, rows[i].text, bytes + 1);
        bytes = mcp_view_words_stem(word, bytes);
        assert_string_equal(word, rows[i].expected);
        assert_int_equal(bytes, strlen(word));
    }
}

static void lists_hold_what_they_are_for(void **state)
{
    (void)state;
    assert_true(mcp_view_words_is_function("the") && mcp_view_words_is_function("a") &&
                mcp_view_words_is_function("yourself"));
    assert_false(mcp_view_words_is_function("list"));
    assert_true(mcp_view_words_is_generic("tool") && mcp_view_words_is_generic("via") &&
                mcp_view_words_is_generic("action"));
    assert_false(mcp_view_words_is_generic("search"));
    assert_true(mcp_view_words_is_silent("set") && mcp_view_words_is_silent("connections") &&
                mcp_view_words_is_silent("frozen"));
    assert_false(mcp_view_words_is_silent("settings"));
}

/* Kind and text of each stretch. */
static const char *values(const char *text)
{
    static char all[2048];
    static const char *const kinds[] = {"none", "quoted", "address", "id", "domain"};
    size_t at = 0, from, to, used = 0, bytes = strlen(text);

    all[0] = '\0';
    while (used < sizeof(all)) {
        size_t before = at;
        mcp_view_value_t kind = mcp_view_words_value(text, bytes, at, &from, &to, &at);

        if (kind == MCP_VIEW_VALUE_NONE) {
            return all;
        }
        assert_true(at > before && to >= from && at >= to && at <= bytes);
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s:%.*s", used > 0 ? " " : "",
                                 kinds[kind], (int)(to - from), text + from);
    }
    return all;
}

static void values_are_quotations_addresses_ids_and_domains(void **state)
{
    static const row_t rows[] = {
        {"list open issues", ""},
        {"page 'Daily Standup' now", "quoted:Daily Standup"},
        {"say 'I've seen it.' twice", "quoted:I've seen it."},
        {"users' files and don't", ""},
        {"named \"My Project\"", "quoted:My Project"},
        {"\xe2\x80\x9cMy Project\xe2\x80\x9d", "quoted:My Project"},
        {"open 'never closed", ""},
        {"see https://example.com/a?b=c now", "address:https://example.com/a?b=c"},
        {"mail john.doe@acme.com", "address:john.doe@acme.com"},
        {"www.example.org/x", "address:www.example.org/x"},
        {"issue ENG-123 on 2025-01-31", "id:ENG-123 id:2025-01-31"},
        {"the 3rd at 9am, 12345", "id:3rd id:9am"},
        {"pi_789XYZ and t3_1abcdef, id 'cus_456def'",
         "id:pi_789XYZ id:t3_1abcdef quoted:cus_456def"},
        {"s3 oauth2", ""},
        {"cal.com create booking", "domain:cal.com"},
        {"Cal.com, monday.com: app.asana.com.",
         "domain:Cal.com domain:monday.com domain:app.asana.com"},
        {"readme.md main.py a.b report.pdf e.g. done.in", ""},
        {"cal.com/booking", ""},
        {"@cal.com", "domain:cal.com"},
        {".com a..com -x.com", "domain:x.com"}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *got = values(rows[i].text);

        if (strcmp(got, rows[i].expected) != 0) {
            fail_msg("%s: [%s], not [%s]", rows[i].text, got, rows[i].expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_end_at_case_and_digit_borders_and_at_all_that_is_neither),
        cmocka_unit_test(what_a_border_cuts_is_told_whole_too),
        cmocka_unit_test(case_accents_and_width_do_not_tell_words_apart),
        cmocka_unit_test(scripts_without_spaces_are_told_in_pairs),
        cmocka_unit_test(no_bytes_are_refused),
        cmocka_unit_test(a_walk_ends_when_its_taker_says_so),
        cmocka_unit_test(stems_are_without_plural_ing_and_ed),
        cmocka_unit_test(lists_hold_what_they_are_for),
        cmocka_unit_test(values_are_quotations_addresses_ids_and_domains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
