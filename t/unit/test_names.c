/* Name rules: labels, advertised names with the hashed cut, argument names; codes, scopes and classes to text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mcp_hash.h"
#include "mcp_kind_text.h"
#include "mcp_names.h"

static void labels_are_lower_case_with_inner_hyphens(void **state)
{
    static const struct {
        const char *text;
        int is_label;
    } rows[] = {{"notion-legal", 1}, {"a", 1}, {"9", 1}, {"a--b", 1}, {"", 0}, {"-a", 0}, {"a-", 0},
                {"A", 0}, {"a_b", 0}, {"a b", 0}, {"a.b", 0}, {"\xc3\xa4", 0},
                {"abcdefghijklmnopqrstuvwxyz012345", 1}, {"abcdefghijklmnopqrstuvwxyz0123456", 0}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(mcp_name_is_label(rows[i].text), rows[i].is_label);
    }
}

static void a_plain_name_stays_as_it_is(void **state)
{
    char name[MCP_MAX_TOOL_NAME + 1];

    (void)state;
    assert_int_equal(mcp_name_tool("webdav", "webdav", "read_file", name, sizeof(name)), MCP_OK);
    assert_string_equal(name, "webdav__read_file");
    assert_true(mcp_name_is_tool(name));
}

static void changed_cut_and_suffix_like_names_end_in_twelve_digits_of_hash(void **state)
{
    static const char *const operations[] = {
        "repos/list for user", "\xe6\x97\xa5\xe6\x9c\xac", "a.b",
        "a_very_long_operation_identifier_that_does_not_fit_into_the_sixty_four_bytes_of_a_name",
        "looks_like_aaaaaaaaaaaa"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        char name[MCP_MAX_TOOL_NAME + 1];
        size_t length;

        assert_int_equal(mcp_name_tool("acme", "acme", operations[i], name, sizeof(name)), MCP_OK);
        length = strlen(name);
        assert_true(mcp_name_is_tool(name));
        assert_true(length > 13 && name[length - 13] == '_');
        assert_int_equal(strspn(name + length - 12, "abcdefghijklmnopqrstuvwxyz234567"), 12);
    }
}

static void a_name_that_fills_the_limit_exactly_is_not_cut(void **state)
{
    char operation[64];
    char name[MCP_MAX_TOOL_NAME + 1];

    (void)state;
    memset(operation, 'x', sizeof(operation));
    operation[MCP_MAX_TOOL_NAME - 6] = '\0'; /* "acme__" and 58 */
    assert_int_equal(mcp_name_tool("acme", "c", operation, name, sizeof(name)), MCP_OK);
    assert_int_equal(strlen(name), MCP_MAX_TOOL_NAME);
    assert_int_equal(name[MCP_MAX_TOOL_NAME - 1], 'x');
    operation[MCP_MAX_TOOL_NAME - 6] = 'x';
    operation[MCP_MAX_TOOL_NAME - 5] = '\0';
    assert_int_equal(mcp_name_tool("acme", "c", operation, name, sizeof(name)), MCP_OK);
    assert_int_equal(strlen(name), MCP_MAX_TOOL_NAME);
    assert_int_equal(name[MCP_MAX_TOOL_NAME - 13], '_');
}

static void different_operations_never_share_a_name(void **state)
{
    /* each pair would meet if the hash were of less than label, connector and operation, whole */
    static const char *const rows[][3] = {{"acme", "acme", "a.b"},  {"acme", "acme", "a:b"},
                                          {"acme", "acme", "a/b"},  {"acme", "other", "a.b"},
                                          {"acme", "acme", "a_b"},  {"acme", "acme", "a.b "}};
    char names[6][MCP_MAX_TOOL_NAME + 1];
    size_t i;
    size_t k;

    (void)state;
    for (i = 0; i < 6; i++) {
        assert_int_equal(mcp_name_tool(rows[i][0], rows[i][1], rows[i][2], names[i], sizeof(names[i])),
                         MCP_OK);
        for (k = 0; k < i; k++) {
            assert_string_not_equal(names[i], names[k]);
        }
    }
}

static void nobody_can_name_an_operation_like_anothers_hashed_name(void **state)
{
    char hashed[MCP_MAX_TOOL_NAME + 1];
    char forged[MCP_MAX_TOOL_NAME + 1];

    (void)state;
    assert_int_equal(mcp_name_tool("acme", "acme", "a.b", hashed, sizeof(hashed)), MCP_OK);
    assert_int_equal(mcp_name_tool("acme", "acme", hashed + strlen("acme__"), forged, sizeof(forged)),
                     MCP_OK);
    assert_string_not_equal(hashed, forged);
}

static void names_are_stable_over_releases(void **state)
{
    char name[MCP_MAX_TOOL_NAME + 1];
    unsigned char hash[MCP_HASH_BYTES];
    char hex[MCP_DIGEST_HEX + 1];

    (void)state;
    assert_int_equal(mcp_name_tool("acme", "acme", "a.b", name, sizeof(name)), MCP_OK);
    mcp_sha256("acme\0acme\0a.b", 14, hash);
    mcp_hex(hash, sizeof(hash), hex);
    /* the first five bits of the hash are the first digit: computed here by hand from the hash */
    assert_int_equal(name[strlen(name) - 12], "abcdefghijklmnopqrstuvwxyz234567"[hash[0] >> 3]);
    assert_int_equal(strncmp(name, "acme__a_b_", 10), 0);
}

static void argument_names_keep_dots_and_are_hashed_where_changed(void **state)
{
    char name[MCP_MAX_ARG_NAME + 1];

    (void)state;
    assert_int_equal(mcp_name_arg("c", "o", "user.name", name, sizeof(name)), MCP_OK);
    assert_string_equal(name, "user.name");
    assert_int_equal(mcp_name_arg("c", "o", "filter[name]", name, sizeof(name)), MCP_OK);
    assert_int_equal(strncmp(name, "filter_name__", 13), 0);
    assert_int_equal(mcp_name_arg("c", "o", "", name, sizeof(name)), MCP_E_NAME);
}

static void scopes_are_a_ladder_with_tools_beside_it(void **state)
{
    char text[64];

    (void)state;
    assert_int_equal(mcp_scope_close(MCP_SCOPE_DESTRUCTIVE),
                     MCP_SCOPE_DESTRUCTIVE | MCP_SCOPE_WRITE | MCP_SCOPE_READ);
    assert_int_equal(mcp_scope_close(MCP_SCOPE_TOOLS), MCP_SCOPE_TOOLS);
    assert_int_equal(mcp_scope_from_text("mcp:write"), MCP_SCOPE_WRITE);
    assert_int_equal(mcp_scope_from_text("mcp:everything"), 0);
    assert_int_equal(mcp_scope_from_text(NULL), 0);
    mcp_scope_list(MCP_SCOPE_TOOLS | MCP_SCOPE_DESTRUCTIVE, text, sizeof(text));
    assert_string_equal(text, "mcp:destructive mcp:tools");
    mcp_scope_list(15, text, 12);
    assert_true(strlen(text) < 12);
}

static void no_scope_reaches_what_is_forbidden(void **state)
{
    (void)state;
    assert_int_equal(mcp_scope_close(15) & mcp_scope_of_class(MCP_CLASS_FORBIDDEN), 0);
    assert_int_equal(mcp_scope_close(15) & mcp_scope_of_class(MCP_CLASS_NONE), 0);
}

static void methods_have_the_classification_of_the_decisions(void **state)
{
    static const struct {
        const char *method;
        mcp_class_t klass;
    } rows[] = {{"GET", MCP_CLASS_READ},        {"HEAD", MCP_CLASS_READ},
                {"PROPFIND", MCP_CLASS_READ},   {"REPORT", MCP_CLASS_READ},
                {"POST", MCP_CLASS_WRITE},      {"PUT", MCP_CLASS_WRITE},
                {"PATCH", MCP_CLASS_WRITE},     {"DELETE", MCP_CLASS_DESTRUCTIVE},
                {"MOVE", MCP_CLASS_DESTRUCTIVE}, {"MKCOL", MCP_CLASS_DESTRUCTIVE},
                {"get", MCP_CLASS_DESTRUCTIVE}, {"", MCP_CLASS_DESTRUCTIVE}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(mcp_class_of_method(rows[i].method), rows[i].klass);
    }
}

static void codes_go_to_text_and_back(void **state)
{
    int code;

    (void)state;
    for (code = 1; code < MCP_CODE_COUNT; code++) {
        assert_int_equal(mcp_code_from_text(mcp_code_text((mcp_code_t)code)), code);
        assert_true(mcp_code_http((mcp_code_t)code) >= 400);
        assert_int_not_equal(mcp_code_outcome((mcp_code_t)code), MCP_OUTCOME_NONE);
        assert_int_not_equal(mcp_code_outcome((mcp_code_t)code), MCP_OUTCOME_OK);
    }
    assert_int_equal(mcp_code_from_text("nothing"), MCP_CODE_NONE);
    assert_int_equal(mcp_code_from_text(NULL), MCP_CODE_NONE);
}

static void names_that_lead_to_one_field_are_the_same(void **state)
{
    static const struct {
        const char *one, *other;
        int is_same;
    } rows[] = {{"a", "a", 1},        {"a", "A", 1},         {"a", "a[]", 1},     {"a", "a[b][c]", 1},
                {"a[x]", "a[y]", 1},  {"a", " a\t", 1},      {"a", "[a]", 1},     {"a", "a]", 1},
                {"a", " [ a ]", 1},   {"a.b", "a_b", 1},     {"a b", "A_B", 1},   {"a_b", "a[b", 1},
                {"a", "b", 0},        {"a", "aa", 0},        {"a", "b[a]", 0},    {"a-b", "a_b", 0},
                {"", "", 0},          {"[]", "[]", 1},       {"", "[", 0},        {"a", "", 0},
                {"a", "[]a", 1},      {"\x7f" "a", "a", 1},  {"a[", "a", 1},      {"a.b", "a", 0}};
    char field[32];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (mcp_name_is_same_field(rows[i].one, rows[i].other) != rows[i].is_same) {
            fail_msg("%s and %s", rows[i].one, rows[i].other);
        }
        assert_int_equal(mcp_name_is_same_field(rows[i].other, rows[i].one), rows[i].is_same);
    }
    assert_int_equal(mcp_name_field(" [Ab.c d][e]", 0, field), 6);
    assert_string_equal(field, "ab_c_d");
    assert_int_equal(mcp_name_field("A[b]", 1, field), 4);
    assert_string_equal(field, "a_b_");
    assert_true(mcp_name_is_no_field("") && mcp_name_is_no_field(" [ ] "));
    assert_false(mcp_name_is_no_field("[a]") || mcp_name_is_no_field("_"));
    assert_int_equal(mcp_name_field("[]", 0, field), 0);
    assert_string_equal(field, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_lower_case_with_inner_hyphens),
        cmocka_unit_test(a_plain_name_stays_as_it_is),
        cmocka_unit_test(changed_cut_and_suffix_like_names_end_in_twelve_digits_of_hash),
        cmocka_unit_test(a_name_that_fills_the_limit_exactly_is_not_cut),
        cmocka_unit_test(different_operations_never_share_a_name),
        cmocka_unit_test(nobody_can_name_an_operation_like_anothers_hashed_name),
        cmocka_unit_test(names_are_stable_over_releases),
        cmocka_unit_test(argument_names_keep_dots_and_are_hashed_where_changed),
        cmocka_unit_test(names_that_lead_to_one_field_are_the_same),
        cmocka_unit_test(scopes_are_a_ladder_with_tools_beside_it),
        cmocka_unit_test(no_scope_reaches_what_is_forbidden),
        cmocka_unit_test(methods_have_the_classification_of_the_decisions),
        cmocka_unit_test(codes_go_to_text_and_back)};

    return mcp_hash_init() == MCP_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
