/* The decision to collapse, by table. */
#include "../../proto/view_collapse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct row {
    const char *what;
    mcp_collapse_counts_t counts;
    mcp_collapse_rule_t rule;
    int is_collapsed;
    const char *why;
} row_t;

#define AUTO(threshold, tokens, percent, context) {MCP_COLLAPSE_AUTO, threshold, tokens, percent, context}
#define STANDARD AUTO(30, 0, 0, 200000)

static void judge(const row_t *rows, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        mcp_collapse_why_t why = MCP_COLLAPSE_WHY_FEW;
        int is = mcp_collapse_decide(&rows[i].counts, &rows[i].rule, &why);

        if (is != rows[i].is_collapsed || strcmp(mcp_collapse_why_text(why), rows[i].why) != 0) {
            fail_msg("%s: %d because of %s", rows[i].what, is, mcp_collapse_why_text(why));
        }
        assert_int_equal(mcp_collapse_decide(&rows[i].counts, &rows[i].rule, NULL), is);
    }
}

static void thirty_are_listed_and_thirty_one_collapse(void **state)
{
    static const row_t rows[] = {
        {"one", {0, 1, 0, 400}, STANDARD, 0, "few"},
        {"thirty connected", {0, 30, 0, 9000}, STANDARD, 0, "few"},
        {"thirty-one connected", {0, 31, 0, 9000}, STANDARD, 1, "threshold"},
        {"operations count", {12, 18, 0, 9000}, STANDARD, 0, "few"},
        {"operations count, one more", {12, 19, 0, 9000}, STANDARD, 1, "threshold"},
        {"pins count", {0, 31, 30, 9000}, STANDARD, 1, "threshold"},
        {"no threshold at all", {1, 1, 0, 10}, AUTO(0, 0, 0, 200000), 1, "threshold"},
        {"a high one", {50, 900, 0, 900000}, AUTO(1000, 0, 0, 200000), 0, "few"},
    };

    (void)state;
    judge(rows, COUNT(rows));
}

static void without_a_connected_tool_to_hide_nothing_collapses(void **state)
{
    static const row_t rows[] = {
        {"only operations", {100, 0, 0, 90000}, STANDARD, 0, "nothing_to_hide"},
        {"nothing", {0, 0, 0, 0}, STANDARD, 0, "nothing_to_hide"},
        {"always, and nothing connected", {5, 0, 0, 90}, {MCP_COLLAPSE_ALWAYS, 30, 0, 0, 200000}, 0, "nothing_to_hide"},
        {"all pinned", {10, 40, 40, 90000}, STANDARD, 0, "nothing_to_hide"},
    };

    (void)state;
    judge(rows, COUNT(rows));
}

static void a_mode_beats_threshold_and_budgets(void **state)
{
    static const row_t rows[] = {
        {"always, all but one pinned", {0, 40, 39, 90000}, {MCP_COLLAPSE_ALWAYS, 30, 0, 0, 200000}, 1, "mode"},
        {"never, above a threshold of none", {1, 1, 0, 10}, {MCP_COLLAPSE_NEVER, 0, 0, 0, 200000}, 0, "mode"},
        {"always, one", {0, 1, 0, 10}, {MCP_COLLAPSE_ALWAYS, 30, 0, 0, 200000}, 1, "mode"},
        {"never, many", {50, 5000, 0, 5000000}, {MCP_COLLAPSE_NEVER, 30, 100, 1, 1000}, 0, "mode"},
    };

    (void)state;
    judge(rows, COUNT(rows));
}

static void a_budget_collapses_below_the_threshold(void **state)
{
    static const row_t rows[] = {
        {"tokens, just within", {0, 10, 0, 4000}, AUTO(30, 1000, 0, 200000), 0, "few"},
        {"tokens, above", {0, 10, 0, 4004}, AUTO(30, 1000, 0, 200000), 1, "budget_tokens"},
        {"percent, just within", {0, 10, 0, 8000}, AUTO(30, 0, 1, 200000), 0, "few"},
        {"percent, above", {0, 10, 0, 8004}, AUTO(30, 0, 1, 200000), 1, "budget_percent"},
        {"percent of a small context", {0, 10, 0, 804}, AUTO(30, 0, 10, 2000), 1, "budget_percent"},
        {"a pin is weighed too", {0, 10, 9, 4004}, AUTO(30, 1000, 0, 200000), 1, "budget_tokens"},
        {"all pinned weigh nothing that could be hidden", {0, 10, 10, 4004}, AUTO(30, 1000, 0, 200000), 0, "nothing_to_hide"},
        {"operations are weighed too", {20, 1, 0, 4004}, AUTO(30, 1000, 0, 200000), 1, "budget_tokens"},
        {"a budget of one token", {0, 1, 0, 5}, AUTO(30, 1, 0, 200000), 1, "budget_tokens"},
        {"one character more is one token more", {0, 10, 0, 4001}, AUTO(30, 1000, 0, 200000), 1, "budget_tokens"},
        {"no characters", {0, 1, 0, 0}, AUTO(30, 1, 1, 1000), 0, "few"},
        {"tokens are told before percent", {0, 10, 0, 8004}, AUTO(30, 100, 1, 200000), 1, "budget_tokens"},
        {"tokens within, percent above", {0, 10, 0, 8004}, AUTO(30, 5000, 1, 200000), 1, "budget_percent"},
        {"the whole context", {0, 10, 0, 4000}, AUTO(30, 0, 100, 1000), 0, "few"},
        {"more than the whole context", {0, 10, 0, 4004}, AUTO(30, 0, 100, 1000), 1, "budget_percent"},
        {"a percent of a context is cut", {0, 10, 0, 80}, AUTO(30, 0, 1, 1999), 1, "budget_percent"},
        {"the largest numbers", {1, 1, 0, INT64_C(4000000000)}, AUTO(100000, 10000000, 100, 100000000), 1, "budget_tokens"},
        {"the threshold is told first", {0, 31, 0, 999999}, AUTO(30, 1, 1, 1000), 1, "threshold"},
    };

    (void)state;
    judge(rows, COUNT(rows));
}

static void a_rule_comes_back_from_its_object(void **state)
{
    static const mcp_collapse_rule_t rules[] = {
        STANDARD,
        {MCP_COLLAPSE_NEVER, 30, 0, 0, 200000},
        {MCP_COLLAPSE_ALWAYS, 1, 2, 3, 4000},
        AUTO(0, 10000000, 100, 100000000),
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rules); i++) {
        json_t *object = mcp_collapse_rule_object(&rules[i]);
        mcp_collapse_rule_t again = mcp_collapse_rule_of(object);

        assert_true((object == NULL) == (i == 0));
        assert_int_equal(again.mode, rules[i].mode);
        assert_int_equal(again.threshold, rules[i].threshold);
        assert_int_equal(again.budget_tokens, rules[i].budget_tokens);
        assert_int_equal(again.budget_percent, rules[i].budget_percent);
        assert_int_equal(again.context_tokens, rules[i].context_tokens);
        json_decref(object);
    }
}

static void what_is_out_of_range_is_taken_as_its_bound(void **state)
{
    json_t *object = json_pack("{s:s,s:i,s:i,s:i,s:i}", "mode", "sometimes", "threshold", -5, "budget_tokens",
                               2000000000, "budget_percent", 500, "context_tokens", 1);
    mcp_collapse_rule_t rule = mcp_collapse_rule_of(object);

    (void)state;
    json_decref(object);
    assert_int_equal(rule.mode, MCP_COLLAPSE_AUTO);
    assert_int_equal(rule.threshold, 0);
    assert_int_equal(rule.budget_tokens, 10000000);
    assert_int_equal(rule.budget_percent, 100);
    assert_int_equal(rule.context_tokens, 1000);
    assert_string_equal(mcp_collapse_mode_text(MCP_COLLAPSE_NEVER), "never");
    assert_string_equal(mcp_collapse_why_text((mcp_collapse_why_t)99), "few");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thirty_are_listed_and_thirty_one_collapse),
        cmocka_unit_test(without_a_connected_tool_to_hide_nothing_collapses),
        cmocka_unit_test(a_mode_beats_threshold_and_budgets),
        cmocka_unit_test(a_budget_collapses_below_the_threshold),
        cmocka_unit_test(a_rule_comes_back_from_its_object),
        cmocka_unit_test(what_is_out_of_range_is_taken_as_its_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
