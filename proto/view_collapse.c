/* The decision to collapse: see view_collapse.h. */
#include "view_collapse.h"

#include <string.h>

#include "mcp_body.h"
#include "view_footprint.h"

static const char *const modes[] = {"auto", "always", "never"};
static const char *const whys[] = {"few",       "nothing_to_hide", "mode",
                                   "threshold", "budget_tokens",   "budget_percent"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Numbers of a rule: where they stand, how they are called, and what is sound. */
static const struct {
    const char *name;
    size_t at;
    int64_t standard, min, max;
} numbers[] = {
    {"threshold", offsetof(mcp_collapse_rule_t, threshold), MCP_COLLAPSE_THRESHOLD, 0, 100000},
    {"budget_tokens", offsetof(mcp_collapse_rule_t, budget_tokens), 0, 0, 10000000},
    {"budget_percent", offsetof(mcp_collapse_rule_t, budget_percent), 0, 0, 100},
    {"context_tokens", offsetof(mcp_collapse_rule_t, context_tokens), MCP_COLLAPSE_CONTEXT, 1000,
     100000000},
};

static int64_t number_at(const mcp_collapse_rule_t *rule, size_t at)
{
    int64_t value;

    memcpy(&value, (const char *)rule + at, sizeof(value));
    return value;
}

static void set_number(mcp_collapse_rule_t *rule, size_t at, int64_t value)
{
    memcpy((char *)rule + at, &value, sizeof(value));
}

mcp_collapse_rule_t mcp_collapse_default(void)
{
    return mcp_collapse_rule_of(NULL);
}

int mcp_collapse_decide(const mcp_collapse_counts_t *counts, const mcp_collapse_rule_t *rule,
                        mcp_collapse_why_t *why)
{
    mcp_collapse_why_t ignored;
    int64_t tokens = counts->characters > 0
                         ? (int64_t)mcp_footprint_tokens((size_t)counts->characters)
                         : 0;

    why = why != NULL ? why : &ignored;
    *why = MCP_COLLAPSE_WHY_NOTHING;
    if (counts->connected - counts->pinned <= 0) {
        return 0;
    }
    *why = MCP_COLLAPSE_WHY_MODE;
    if (rule->mode != MCP_COLLAPSE_AUTO) {
        return rule->mode == MCP_COLLAPSE_ALWAYS;
    }
    *why = MCP_COLLAPSE_WHY_THRESHOLD;
    if (counts->control + counts->connected > rule->threshold) {
        return 1;
    }
    *why = MCP_COLLAPSE_WHY_TOKENS;
    if (rule->budget_tokens > 0 && tokens > rule->budget_tokens) {
        return 1;
    }
    *why = MCP_COLLAPSE_WHY_PERCENT;
    /* both factors are bounded where the rule is made: no overflow */
    if (rule->budget_percent > 0 && tokens > rule->context_tokens * rule->budget_percent / 100) {
        return 1;
    }
    *why = MCP_COLLAPSE_WHY_FEW;
    return 0;
}

const char *mcp_collapse_why_text(mcp_collapse_why_t why)
{
    return (size_t)why < COUNT(whys) ? whys[why] : whys[0];
}

mcp_collapse_mode_t mcp_collapse_mode_from_text(const char *text)
{
    size_t i;

    for (i = 0; text != NULL && i < COUNT(modes); i++) {
        if (strcmp(modes[i], text) == 0) {
            return (mcp_collapse_mode_t)i;
        }
    }
    return MCP_COLLAPSE_AUTO;
}

const char *mcp_collapse_mode_text(mcp_collapse_mode_t mode)
{
    return (size_t)mode < COUNT(modes) ? modes[mode] : modes[0];
}

mcp_collapse_rule_t mcp_collapse_rule_of(const json_t *object)
{
    mcp_collapse_rule_t rule;
    size_t i;

    memset(&rule, 0, sizeof(rule));
    rule.mode = mcp_collapse_mode_from_text(mcp_json_str(object, "mode"));
    for (i = 0; i < COUNT(numbers); i++) {
        int64_t value = mcp_json_int(object, numbers[i].name, numbers[i].standard);

        value = value < numbers[i].min ? numbers[i].min : value;
        set_number(&rule, numbers[i].at, value > numbers[i].max ? numbers[i].max : value);
    }
    return rule;
}

json_t *mcp_collapse_rule_object(const mcp_collapse_rule_t *rule)
{
    json_t *object = json_object();
    int failed = 0;
    size_t i;

    if (rule->mode != MCP_COLLAPSE_AUTO) {
        failed |= json_object_set_new(object, "mode", json_string(mcp_collapse_mode_text(rule->mode)));
    }
    for (i = 0; i < COUNT(numbers); i++) {
        int64_t value = number_at(rule, numbers[i].at);

        if (value != numbers[i].standard) {
            failed |= json_object_set_new(object, numbers[i].name, json_integer((json_int_t)value));
        }
    }
    if (failed != 0 || json_object_size(object) == 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}
