/* A policy out of the texts of restrictions, and questions about it, for the tests of what rules say. */
#ifndef RULES_FIXTURE_H
#define RULES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../policyd/pd_rules.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNUSED __attribute__((unused))

static apr_pool_t *pool;

UNUSED static int start(void **state)
{
    (void)state;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

UNUSED static int stop(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

/* --- a policy, and questions about it ------------------------------------------------------ */

/* JSON with ' for ", so that the cases stay legible. Texts may hold NUL here: a stored document
 * never does, and is not relied on. */
static json_t *json(const char *text)
{
    char *copy = apr_pstrdup(pool, text);
    json_t *value;
    char *at;

    for (at = copy; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    value = json_loads(copy, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    if (value == NULL) {
        fail_msg("the test's own JSON is bad: %s", copy);
    }
    return value;
}

static pd_rule_t *rule(const char *id, const char *text)
{
    json_t *doc = json(text);
    pd_rule_t *made = NULL;

    if (pd_rule_make(id, doc, &made) != PD_OK) {
        fail_msg("refused: %s", text);
    }
    json_decref(doc); /* nothing of it is needed any more */
    return made;
}

typedef struct policy {
    apr_hash_t *by_role;
    apr_hash_t *by_member;
} policy_t;

static apr_array_header_t *rules_for(apr_hash_t *targets, const char *target)
{
    apr_array_header_t *rules = apr_hash_get(targets, target, APR_HASH_KEY_STRING);

    if (rules == NULL) {
        rules = apr_array_make(pool, 4, sizeof(pd_rule_t *));
        apr_hash_set(targets, target, APR_HASH_KEY_STRING, rules);
    }
    return rules;
}

static void make_layers(apr_hash_t *targets, apr_hash_t *lost, apr_hash_t *layers)
{
    apr_hash_index_t *at;

    for (at = apr_hash_first(pool, targets); at != NULL; at = apr_hash_next(at)) {
        apr_array_header_t *rules = apr_hash_this_val(at);
        int is_readable = apr_hash_get(lost, apr_hash_this_key(at), APR_HASH_KEY_STRING) == NULL;
        pd_layer_t *layer = NULL;
        int i;

        assert_int_equal(pd_layer_make(rules, is_readable, &layer), PD_OK);
        for (i = 0; i < rules->nelts; i++) {
            pd_rule_release(&APR_ARRAY_IDX(rules, i, pd_rule_t *)); /* the layer holds it */
        }
        apr_hash_set(layers, apr_hash_this_key(at), APR_HASH_KEY_STRING, layer);
    }
}

/* docs: NULL-terminated; the ids are rul_0, rul_1, … "?role:R" and "?member:M" stand for a rule
 * of that target that can't be read. */
static policy_t policy_of(const char *const *docs)
{
    apr_hash_t *roles = apr_hash_make(pool);
    apr_hash_t *members = apr_hash_make(pool);
    apr_hash_t *lost_roles = apr_hash_make(pool);
    apr_hash_t *lost_members = apr_hash_make(pool);
    policy_t policy = {apr_hash_make(pool), apr_hash_make(pool)};
    int i;

    for (i = 0; docs[i] != NULL; i++) {
        if (strncmp(docs[i], "?role:", 6) == 0) {
            (void)rules_for(roles, docs[i] + 6);
            apr_hash_set(lost_roles, docs[i] + 6, APR_HASH_KEY_STRING, "");
        } else if (strncmp(docs[i], "?member:", 8) == 0) {
            (void)rules_for(members, docs[i] + 8);
            apr_hash_set(lost_members, docs[i] + 8, APR_HASH_KEY_STRING, "");
        } else {
            pd_rule_t *made = rule(apr_psprintf(pool, "rul_%d", i), docs[i]);

            APR_ARRAY_PUSH(made->role != NULL ? rules_for(roles, made->role)
                                              : rules_for(members, made->member),
                           pd_rule_t *) = made;
        }
    }
    make_layers(roles, lost_roles, policy.by_role);
    make_layers(members, lost_members, policy.by_member);
    return policy;
}

static void release_layers(apr_hash_t *layers)
{
    apr_hash_index_t *at;

    for (at = apr_hash_first(pool, layers); at != NULL; at = apr_hash_next(at)) {
        pd_layer_t *layer = apr_hash_this_val(at);

        pd_layer_release(&layer);
    }
}

static void policy_free(const policy_t *policy)
{
    release_layers(policy->by_role);
    release_layers(policy->by_member);
}

/* "A,B" as a NULL-terminated list. */
static const char *const *list(const char *text)
{
    apr_array_header_t *names = apr_array_make(pool, 4, sizeof(const char *));

    while (*text != '\0') {
        size_t bytes = strcspn(text, ",");

        APR_ARRAY_PUSH(names, const char *) = apr_pstrmemdup(pool, text, bytes);
        text += bytes;
        text += *text == ',';
    }
    APR_ARRAY_PUSH(names, const char *) = NULL;
    return (const char *const *)names->elts;
}

/* The last answer's rule and governing, as words. */
static char last_rule[32];
static pd_item_t last_item;
static pd_governed_t last_governed;

static pd_verdict_t ask_policy(const policy_t *policy, const char *member, const char *roles,
                               const char *connector, const char *operation, const char *name)
{
    pd_rules_t rules;
    pd_bearing_t bearing;
    pd_decided_t decided;
    pd_verdict_t verdict;

    pd_rules_choose(policy->by_role, policy->by_member, member, list(roles), pool, &rules);
    pd_rules_bear(&rules, connector, pool, &bearing);
    verdict = pd_rules_judge(&bearing, operation, name, &decided);
    assert_int_equal(pd_rules_judge(&bearing, operation, name, NULL),
                     verdict); /* recorded or not */
    if (bearing.is_uniform && verdict != PD_VERDICT_BLOCKED) {
        assert_int_equal(bearing.uniform, verdict);
    }
    (void)snprintf(last_rule, sizeof(last_rule), "%s",
                   decided.rule != NULL ? decided.rule->id : "");
    last_item = decided.item;
    last_governed = rules.governed;
    return verdict;
}

static pd_verdict_t ask(const char *const *docs, const char *member, const char *roles,
                        const char *connector, const char *operation, const char *name)
{
    policy_t policy = policy_of(docs);
    pd_verdict_t verdict = ask_policy(&policy, member, roles, connector, operation, name);

    policy_free(&policy);
    return verdict;
}

#define ASK(member, roles, connector, operation, name, ...)                                        \
    ask((const char *const[]){__VA_ARGS__, NULL}, member, roles, connector, operation, name)

#endif
