/* What a search knows about words beforehand: blobs, the shipped files, a caller's connectors. */
#include "view_shop.h"

static void a_lexicon_is_read_strictly(void **state)
{
    static const struct {
        const char *blob;
        mcp_wire_status_t status;
    } rows[] = {
        {"{}", MCP_OK},
        {"{\"applications\":[[\"A B\",\"ab\"]],\"words\":\"a b\",\"distinctive\":[\"x\"]}", MCP_OK},
        {"[]", MCP_E_JSON},
        {"{\"applications\":{}}", MCP_E_FIELD},
        {"{\"applications\":[\"A\"]}", MCP_E_FIELD},
        {"{\"applications\":[[]]}", MCP_E_FIELD},
        {"{\"applications\":[[1]]}", MCP_E_FIELD},
        {"{\"words\":[]}", MCP_E_FIELD},
        {"{\"distinctive\":\"x\"}", MCP_E_FIELD},
        {"{\"distinctive\":[1]}", MCP_E_FIELD},
        {"{\"more\":1}", MCP_E_FIELD},
        {"{\"words\":\"a\",\"words\":\"b\"}", MCP_E_JSON},
        {"{\"words\":\"a\"} x", MCP_E_JSON},
        {"", MCP_E_JSON}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        mcp_view_lexicon_t *made = NULL;
        mcp_wire_status_t status =
            mcp_view_lexicon_parse(rows[i].blob, strlen(rows[i].blob), NULL, shop_pool, &made);

        if (status != rows[i].status) {
            fail_msg("%s: %d", rows[i].blob, (int)status);
        }
        assert_int_equal(made != NULL, status == MCP_OK);
    }
}

static void a_callers_connectors_join_the_shipped_names(void **state)
{
    const mcp_view_lexicon_t *own = shop_parse(
        "{\"applications\":[[\"Frobnicate\"],[\"Outlook\"],[\"Weather\"]]}", shop_lexicon);
    const mcp_view_entry_t tools[] = {
        shop_tool("a__create_issue", "a", "a", NULL, NULL),
        shop_tool("b__x", "b", "microsoft-outlook-mail", "Microsoft Outlook Mail", "Sends mail")};
    mcp_view_index_t *index = NULL;

    (void)state;
    assert_int_equal(mcp_view_index_build(tools, 2, own, shop_pool, &index), MCP_OK);
    assert_int_equal(shop_ask(index, "frobnicate create issue")->empty, MCP_VIEW_EMPTY_APPLICATION);
    assert_int_equal(shop_ask(index, "weather create issue")->empty, MCP_VIEW_EMPTY_NOT);
    assert_int_equal(shop_ask(index, "salesforce create issue")->empty, MCP_VIEW_EMPTY_APPLICATION);
    assert_string_equal(shop_best(index, "send outlook mail"), "b__x");
    assert_int_equal(mcp_view_index_build(tools, 2, NULL, shop_pool, &index), MCP_OK);
    assert_string_equal(shop_best(index, "a create issue"), "a__create_issue");
    assert_int_equal(shop_ask(index, "cal.com create issue")->empty, MCP_VIEW_EMPTY_APPLICATION);
}

static void the_shipped_files_are_sound(void **state)
{
    static const char *const ordinary[] = {"weather", "create", "created", "meeting", "meetings",
                                           "paris",   "monday", "box",     "linear"};
    static const char *const unusual[] = {"salesforce", "flibberty", "nvidia", "wkhtmltopdf"};
    size_t bytes = 0, lines = 0, words_line = 0;
    char *text = shop_file("conf/applications.txt", &bytes);
    json_t *blob = NULL;

    (void)state;
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
        lines += *at != '#' && *at != '\n';
    }
    assert_true(lines >= 450);
    for (size_t i = 0; i < COUNT(ordinary); i++) {
        assert_true(mcp_view_lexicon_is_ordinary(shop_lexicon, ordinary[i]));
    }
    for (size_t i = 0; i < COUNT(unusual); i++) {
        assert_false(mcp_view_lexicon_is_ordinary(shop_lexicon, unusual[i]));
    }
    assert_int_equal(mcp_view_lexicon_pack("# c\n\nA\tb\nB\tc\td, e\tdistinctive\n", 30,
                                           "# c\nx\ny\n", 8, &blob, &words_line),
                     MCP_OK);
    text = json_dumps(blob, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"applications\":[[\"A\"],[\"B\",\"d\",\"e\"]],\"distinctive\":["
                              "\"B\",\"d\",\"e\"],\"words\":\"x y\"}");
    free(text);
    json_decref(blob);
    blob = NULL;
    assert_int_equal(mcp_view_lexicon_pack("A\tb\n\tc\n", 7, NULL, 0, &blob, &words_line),
                     MCP_E_FIELD);
    assert_int_equal(words_line, 2);
    assert_int_equal(mcp_view_lexicon_pack("A\tb\tc\tperhaps\n", 14, NULL, 0, &blob, &words_line),
                     MCP_E_FIELD);
    assert_int_equal(mcp_view_lexicon_pack(NULL, 0, "two words\n", 10, &blob, &words_line),
                     MCP_E_FIELD);
    assert_null(blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lexicon_is_read_strictly),
        cmocka_unit_test(a_callers_connectors_join_the_shipped_names),
        cmocka_unit_test(the_shipped_files_are_sound),
    };

    return cmocka_run_group_tests(tests, shop_open, shop_close);
}
