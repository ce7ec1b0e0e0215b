/* The words of the endpoint to a model: whole sentences, short whatever is connected. */
#include "../../proto/view_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MANY 500

static void instructions_stay_short_with_many_applications(void **state)
{
    static char labels[MANY][64];
    static const char *applications[MANY];
    char text[MCP_VIEW_TEXT_MAX];
    mcp_view_about_t about = {"elaichi", 1, applications, MANY};
    size_t bytes;
    int i;

    (void)state;
    for (i = 0; i < MANY; i++) {
        (void)snprintf(labels[i], sizeof(labels[i]), "Application with a long name %03d", i);
        applications[i] = labels[i];
    }
    bytes = mcp_view_text_instructions(&about, text, sizeof(text));
    assert_int_equal(bytes, strlen(text));
    assert_true(bytes <= 2000);
    assert_non_null(strstr(text, labels[0]));
    assert_null(strstr(text, labels[MANY - 1]));
    assert_non_null(strstr(text, " more. "));
    assert_non_null(strstr(text, "search_tools"));
    assert_non_null(strstr(text, "An empty result means"));
    assert_non_null(strstr(text, "elaichi__"));
    assert_string_equal(text + bytes - strlen("recorded."), "recorded.");
}

static void a_small_room_holds_whole_sentences_alone(void **state)
{
    const char *const applications[] = {"Notion"};
    mcp_view_about_t about = {"elaichi", 1, applications, 1};
    char whole[MCP_VIEW_TEXT_MAX];
    size_t most = mcp_view_text_instructions(&about, whole, sizeof(whole));
    size_t size;

    (void)state;
    for (size = 1; size <= most + 1; size++) {
        char text[MCP_VIEW_TEXT_MAX];
        size_t bytes;

        memset(text, '#', sizeof(text));
        bytes = mcp_view_text_instructions(&about, text, size);
        assert_true(bytes < size);
        assert_int_equal(bytes, strlen(text));
        assert_true(bytes == 0 || strchr(". ", text[bytes - 1]) != NULL);
        assert_int_equal(text[size], '#');
    }
    assert_int_equal(mcp_view_text_instructions(&about, whole, 0), 0);
}

static void flat_lists_are_not_sent_to_a_search(void **state)
{
    mcp_view_about_t about = {"it", 0, NULL, 0};
    char text[MCP_VIEW_TEXT_MAX];

    (void)state;
    (void)mcp_view_text_instructions(&about, text, sizeof(text));
    assert_null(strstr(text, "search_tools"));
    assert_null(strstr(text, "Applications"));
    assert_non_null(strstr(text, "it__"));
}

static void the_server_describes_itself_in_one_sentence_fit_for_json(void **state)
{
    int is_collapsed;

    (void)state;
    for (is_collapsed = 0; is_collapsed < 2; is_collapsed++) {
        const char *text = mcp_view_text_server(is_collapsed);
        const char *at;

        assert_true(strlen(text) < 300);
        assert_non_null(strstr(text, "search"));
        assert_non_null(strstr(text, "product, verb, thing"));
        assert_ptr_equal(strchr(text, '.'), text + strlen(text) - 1);
        assert_true((strstr(text, "search_tools") != NULL) == is_collapsed);
        for (at = text; *at != '\0'; at++) {
            assert_true(*at >= ' ' && *at <= '~' && *at != '"' && *at != '\\');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_stay_short_with_many_applications),
        cmocka_unit_test(a_small_room_holds_whole_sentences_alone),
        cmocka_unit_test(flat_lists_are_not_sent_to_a_search),
        cmocka_unit_test(the_server_describes_itself_in_one_sentence_fit_for_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
