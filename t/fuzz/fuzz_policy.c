/* Stored documents of the policy: input is {"rules":[…],"toolboxes":[…],"connector","operation","name"}. What compiles must keep its
 * promises: order, references, bounds, and that no tool outside an engaged allowlist is allowed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <jansson.h>

#include "mcp_names.h"
#include "pd_rules.h"
#include "pd_toolbox.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : 1;
}

static void require(int holds)
{
    if (!holds) {
        abort();
    }
}

/* --- rules ---------------------------------------------------------------------- */

static void check_rule(const pd_rule_t *rule, apr_pool_t *pool)
{
    apr_hash_index_t *i;

    require(rule->effect == PD_EFFECT_ALLOW || rule->effect == PD_EFFECT_BLOCK);
    require((rule->role == NULL) != (rule->member == NULL));
    require(rule->effect == PD_EFFECT_BLOCK || apr_hash_count(rule->names) == 0);
    for (i = apr_hash_first(pool, rule->parts); i != NULL; i = apr_hash_next(i)) {
        const pd_rule_part_t *part = apr_hash_this_val(i);
        int at;

        for (at = 1; at < part->operations->nelts; at++) {
            require(strcmp(APR_ARRAY_IDX(part->operations, at - 1, const char *),
                           APR_ARRAY_IDX(part->operations, at, const char *)) < 0);
        }
    }
}

/* The verdict by the rules' own words, read slowly. */
static pd_verdict_t expected(const apr_array_header_t *rules, const char *connector,
                             const char *operation, const char *name)
{
    pd_verdict_t verdict = PD_VERDICT_ALLOWED;
    int has_allow = 0;
    int is_allowed = 0;
    int i;

    for (i = 0; i < rules->nelts; i++) {
        const pd_rule_t *rule = APR_ARRAY_IDX(rules, i, const pd_rule_t *);
        const pd_rule_part_t *part = apr_hash_get(rule->parts, connector, APR_HASH_KEY_STRING);
        int is_named = part != NULL && part->is_whole;
        int at;

        for (at = 0; part != NULL && at < part->operations->nelts; at++) {
            is_named = is_named ||
                       strcmp(APR_ARRAY_IDX(part->operations, at, const char *), operation) == 0;
        }
        is_named = is_named || apr_hash_get(rule->names, name, APR_HASH_KEY_STRING) != NULL;
        if (rule->effect == PD_EFFECT_BLOCK && is_named) {
            return PD_VERDICT_BLOCKED;
        }
        has_allow = has_allow || rule->effect == PD_EFFECT_ALLOW;
        is_allowed = is_allowed || (rule->effect == PD_EFFECT_ALLOW && is_named);
    }
    if (has_allow && !is_allowed) {
        verdict = PD_VERDICT_NOT_ALLOWED;
    }
    return verdict;
}

/* All rules as those of one role, asked about the tool that the input names. */
static void judge(const apr_array_header_t *rules, const json_t *input, apr_pool_t *pool)
{
    static const char *const roles[] = {"Role", NULL};
    const char *connector = json_string_value(json_object_get(input, "connector"));
    const char *operation = json_string_value(json_object_get(input, "operation"));
    const char *name = json_string_value(json_object_get(input, "name"));
    apr_hash_t *by_role = apr_hash_make(pool);
    pd_layer_t *layer = NULL;
    pd_rules_t governs;
    pd_bearing_t bearing;
    pd_decided_t decided;

    if (rules->nelts == 0 || connector == NULL || operation == NULL || name == NULL ||
        pd_layer_make(rules, 1, &layer) != PD_OK) {
        return;
    }
    apr_hash_set(by_role, "Role", APR_HASH_KEY_STRING, layer);
    pd_rules_choose(by_role, apr_hash_make(pool), "mem_1", roles, pool, &governs);
    require(governs.governed == PD_GOVERNED_BY_ROLES);
    pd_rules_bear(&governs, connector, pool, &bearing);
    require(pd_rules_judge(&bearing, operation, name, &decided) ==
            expected(rules, connector, operation, name));
    pd_layer_release(&layer);
}

static void run_rules(const json_t *input, apr_pool_t *pool)
{
    apr_array_header_t *rules = apr_array_make(pool, 8, sizeof(pd_rule_t *));
    const json_t *doc;
    size_t at;
    int i;

    json_array_foreach(json_object_get(input, "rules"), at, doc)
    {
        pd_rule_t *rule = NULL;

        if (pd_rule_make(apr_psprintf(pool, "rul_%lu", (unsigned long)at), doc, &rule) == PD_OK) {
            check_rule(rule, pool);
            APR_ARRAY_PUSH(rules, pd_rule_t *) = rule;
        } else {
            require(rule == NULL);
        }
    }
    judge(rules, input, pool);
    for (i = 0; i < rules->nelts; i++) {
        pd_rule_t *rule = APR_ARRAY_IDX(rules, i, pd_rule_t *);

        require(rule->refs == 1); /* the layer let go of it */
        pd_rule_release(&rule);
    }
}

/* --- toolboxes -------------------------------------------------------------------- */

static void check_toolbox(const pd_toolbox_t *toolbox)
{
    int i;

    require(mcp_name_is_label(toolbox->name));
    require(toolbox->entries->nelts <= PD_MAX_ENTRIES);
    for (i = 0; i < toolbox->entries->nelts; i++) {
        const pd_entry_t *entry = &APR_ARRAY_IDX(toolbox->entries, i, pd_entry_t);

        require(mcp_name_is_tool(entry->tool_name));
        require(i == 0 || strcmp(entry[-1].tool_name, entry->tool_name) < 0);
        require(entry->toolbox == toolbox);
        require(apr_hash_get(toolbox->by_name, entry->tool_name, APR_HASH_KEY_STRING) == entry);
        require(json_is_object(entry->defaults) && json_is_object(entry->frozen));
        require(json_object_size(entry->defaults) <= PD_MAX_FROZEN &&
                json_object_size(entry->frozen) <= PD_MAX_FROZEN);
        require(entry->connection_ids->nelts <= PD_MAX_CHOICES);
        require(!entry->is_own || entry->connection_ids->nelts == 0);
    }
}

static void run_toolboxes(const json_t *input)
{
    const json_t *doc;
    size_t at;

    json_array_foreach(json_object_get(input, "toolboxes"), at, doc)
    {
        pd_toolbox_t *toolbox = NULL;

        if (pd_toolbox_make("tbx_1", doc, &toolbox) == PD_OK) {
            check_toolbox(toolbox);
            pd_toolbox_release(&toolbox);
        } else {
            require(toolbox == NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *input = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    apr_pool_t *pool = NULL;

    if (input == NULL || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        json_decref(input);
        return 0;
    }
    run_rules(input, pool);
    run_toolboxes(input);
    apr_pool_destroy(pool);
    json_decref(input);
    return 0;
}
