/* The resolver against a second one that is slow and obvious: it reads the documents of a policy with
 * loops and strcmp, knows nothing of rules that were compiled or of snapshots, and has to give the
 * same answer to every question about very many policies.
 *
 *   MCP_RESOLVER_COUNT  policies (default 100,000; 5,000 under a sanitizer)
 *   MCP_RESOLVER_SEED   of the first of them; the n-th has the seed + n, so that a policy can be
 *                       made again alone */
#include "policy_maker.h"

#include <inttypes.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEFAULT_COUNT 5000
#else
#define DEFAULT_COUNT 100000
#endif
#define DEFAULT_SEED 20260301

/* --- one round ------------------------------------------------------------------------------- */

typedef struct round {
    uint64_t seed;
    json_t *policy;
    slow_t slow;
    const char *roles[4];
    pd_subject_t subject;
    reach_world_t *world;
} round_t;

static void make_subject(round_t *round)
{
    size_t count = below(4);
    size_t i;

    for (i = 0; i < count; i++) {
        round->roles[i] = ONE_OF(all_roles);
    }
    round->roles[count] = NULL;
    round->subject.member_id = chance(95) ? all_members[below(2)] : NULL;
    round->subject.role_names = round->roles;
}

static void ask_slowly(round_t *round)
{
    round->slow.policy = round->policy;
    round->slow.member = round->subject.member_id;
    round->slow.roles = round->subject.role_names;
    slow_govern(&round->slow);
}

static void round_begin(round_t *round, uint64_t seed)
{
    random_state = seed * 0x2545f4914f6cdd1du;
    round->seed = seed;
    round->policy = make_policy(&round->slow);
    make_subject(round);
    ask_slowly(round);
    round->world = reach_world_make(round->policy);
}

static void round_end(round_t *round)
{
    reach_world_free(round->world);
    json_decref(round->policy);
}

/* The policy changed: everything made of it is made again. */
static void round_again(round_t *round)
{
    reach_world_free(round->world);
    slow_names(&round->slow, round->policy);
    ask_slowly(round);
    round->world = reach_world_make(round->policy);
}

/* What was asked stands behind; the policy, so that the case can be made a test of its own. */
static void disagree(const round_t *round, const char *question, const char *is,
                     const char *expected)
{
    char *text = json_dumps(round->policy, JSON_COMPACT);
    size_t i;

    print_message("policy (seed %" PRIu64 "): %s\n", round->seed, text);
    print_message("subject: %s",
                  round->subject.member_id != NULL ? round->subject.member_id : "(none)");
    for (i = 0; round->roles[i] != NULL; i++) {
        print_message(" %s", round->roles[i]);
    }
    free(text);
    fail_msg("\n%s: %s, but the slow one says %s (MCP_RESOLVER_SEED=%" PRIu64
             " MCP_RESOLVER_COUNT=1)",
             question, is, expected, round->seed);
}

static void same_reach(const round_t *round, const char *point, const char *what, pd_reach_t is,
                       pd_reach_t expected)
{
    if (is != expected) {
        disagree(round, apr_psprintf(round->world->pool, "%s %s", point, what), pd_reach_text(is),
                 pd_reach_text(expected));
    }
}

/* --- the questions ---------------------------------------------------------------------------- */

static void same_connections(const round_t *round, const char *name, const pd_found_t *found,
                             const slow_answer_t *slow)
{
    size_t i;
    int k;
    int seen = 0;

    for (k = 0; k < found->connections->nelts; k++) {
        const pd_connection_t *connection =
            APR_ARRAY_IDX(found->connections, k, const pd_connection_t *);

        for (i = 0; i < slow->connection_count; i++) {
            seen += is_text(slow->connections[i], "id", connection->id);
        }
        if (k > 0 &&
            strcmp(APR_ARRAY_IDX(found->connections, k - 1, const pd_connection_t *)->label,
                   connection->label) >= 0) {
            disagree(round, name, "connections out of order", "sorted ones");
        }
    }
    if ((size_t)seen != slow->connection_count || seen != found->connections->nelts) {
        disagree(round, name, "other connections", "these are usable");
    }
}

/* The record of how an answer came about says what the slow one says. */
static void same_trace(const round_t *round, const char *what, const pd_reach_trace_t *trace,
                       const char *connector, const char *operation, const char *name)
{
    const char *rule;
    pd_item_t item;
    pd_verdict_t verdict = slow_verdict(&round->slow, connector, operation, name, &rule, &item);

    if (trace->verdict != verdict) {
        disagree(round, what, pd_verdict_text(trace->verdict), pd_verdict_text(verdict));
    }
    if ((rule == NULL) != (trace->decided.rule == NULL) || item != trace->decided.item ||
        (rule != NULL && strcmp(rule, trace->decided.rule->id) != 0)) {
        disagree(round, what, trace->decided.rule != NULL ? trace->decided.rule->id : "no rule",
                 rule != NULL ? rule : "no rule");
    }
}

static pd_reach_t ask_name(const round_t *round, const char *name)
{
    slow_answer_t slow;
    pd_found_t found;
    pd_found_t again;
    pd_reach_trace_t trace;
    pd_reach_t reach = pd_reach_tool(&round->world->snapshot, &round->subject, name,
                                     round->world->pool, &found, NULL);

    slow_tool(&round->slow, name, &slow);
    same_reach(round, "execute", name, reach, slow.reach);
    same_connections(round, name, &found, &slow);
    same_reach(round, "explain", name,
               pd_reach_tool(&round->world->snapshot, &round->subject, name, round->world->pool,
                             &again, &trace),
               slow.reach);
    if ((slow.of == NULL) != (found.name == NULL) ||
        (found.name != NULL && strcmp(found.name, name) != 0)) {
        disagree(round, name, "other name", "its own");
    }
    if (slow.of != NULL && slow.of->operation != NULL) {
        const char *connector = text_of(slow.of->connector, "id");
        const char *operation = text_of(slow.of->operation, "id");

        if (found.operation == NULL || strcmp(found.operation->id, operation) != 0 ||
            strcmp(found.connector->id, connector) != 0) {
            disagree(round, name, "another operation", operation);
        }
        same_trace(round, name, &trace, connector, operation, name);
    }
    return reach;
}

typedef struct advertised {
    const round_t *round;
    const char *names[MAX_NAMES];
    size_t count;
    const char *before; /* label or toolbox of the tool before */
    int is_in_entries;
} advertised_t;

static pd_status_t take(const pd_found_t *found, void *baton)
{
    advertised_t *list = baton;
    const char *group = found->entry != NULL
                            ? found->toolbox->name
                            : APR_ARRAY_IDX(found->connections, 0, const pd_connection_t *)->label;
    int is_new_kind = (found->entry != NULL) != list->is_in_entries;
    size_t i;

    for (i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], found->name) == 0) {
            disagree(list->round, found->name, "advertised twice", "once");
        }
    }
    if ((is_new_kind && found->entry == NULL) ||
        (!is_new_kind && list->before != NULL &&
         (strcmp(list->before, group) > 0 ||
          (strcmp(list->before, group) == 0 && list->count > 0 &&
           strcmp(list->names[list->count - 1], found->name) > 0)))) {
        disagree(list->round, found->name, "out of order",
                 "plain by connection, then entries by toolbox");
    }
    list->is_in_entries = found->entry != NULL;
    list->before = group;
    list->names[list->count++] = found->name;
    return PD_OK;
}

static void advertise(const round_t *round, advertised_t *list)
{
    memset(list, 0, sizeof(*list));
    list->round = round;
    assert_int_equal(
        pd_reach_each(&round->world->snapshot, &round->subject, round->world->pool, take, list),
        PD_OK);
}

static int has_name(const advertised_t *list, const char *name)
{
    size_t i;

    for (i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Every name of everybody, and some of nobody; and what is advertised is what can be executed,
 * no more and no less. */
static void ask_names(const round_t *round)
{
    static const char *const strangers[] = {
        "acc__nothing", "nowhere__get", "old-acc__get", "box__gone", "box__", "__get", "acc", "",
        "acc_get",      "acc__get__get"};
    advertised_t list;
    size_t i;

    advertise(round, &list);
    for (i = 0; i < round->slow.name_count; i++) {
        const char *name = round->slow.names[i].name;
        int is_had = ask_name(round, name) == PD_REACH_OK;

        if (is_had != has_name(&list, name)) {
            disagree(round, name, is_had ? "not advertised" : "advertised",
                     "what can be executed is");
        }
    }
    for (i = 0; i < list.count; i++) {
        slow_answer_t slow;

        slow_tool(&round->slow, list.names[i], &slow);
        same_reach(round, "advertise", list.names[i], PD_REACH_OK, slow.reach);
    }
    for (i = 0; i < 3; i++) {
        ask_name(round, strangers[(round->seed + i) % COUNT(strangers)]);
    }
}

static void ask_catalog(const round_t *round)
{
    const pd_snapshot_t *snapshot = &round->world->snapshot;
    const json_t *doc;
    const json_t *operation;
    size_t i;
    size_t k;

    json_array_foreach(json_object_get(round->policy, "connectors"), i, doc)
    {
        const char *id = text_of(doc, "id");
        const pd_connector_t *connector = pd_snapshot_connector(snapshot, id);
        pd_reach_trace_t trace;

        same_reach(round, "connect", id,
                   pd_reach_connector(snapshot, &round->subject, connector, round->world->pool,
                                      (round->seed & 1) != 0 ? &trace : NULL),
                   slow_connector(&round->slow, doc));
        json_array_foreach(json_object_get(doc, "operations"), k, operation)
        {
            const char *operation_id = text_of(operation, "id");

            same_reach(round, "browse", operation_id,
                       pd_reach_operation(snapshot, &round->subject, connector,
                                          pd_catalog_operation(connector, operation_id),
                                          round->world->pool, &trace),
                       slow_judge(&round->slow, doc, operation, NULL));
            same_trace(round, operation_id, &trace, id, operation_id, NULL);
        }
    }
}

static void ask_verdicts(const round_t *round)
{
    const pd_snapshot_t *snapshot = &round->world->snapshot;
    int rung = (int)(round->seed % 4);
    const json_t *doc;
    size_t i;
    int k;

    json_array_foreach(json_object_get(round->policy, "connections"), i, doc)
    {
        const json_t *connector =
            with_id(json_object_get(round->policy, "connectors"), text_of(doc, "connector"));
        const pd_connection_t *connection = pd_snapshot_connection(snapshot, text_of(doc, "id"));
        const char *verdicts;

        if (connector == NULL) {
            assert_null(connection);
            continue;
        }
        verdicts =
            pd_reach_verdicts(snapshot, &round->subject, connection, rung, round->world->pool);
        assert_int_equal(strlen(verdicts), connection->connector->operations->nelts);
        for (k = 0; verdicts[k] != '\0'; k++) {
            const char *id = APR_ARRAY_IDX(connection->connector->operations, k, pd_operation_t).id;
            const json_t *operation = with_id(json_object_get(connector, "operations"), id);
            char expected = slow_verdict_char(&round->slow, doc, connector, operation, rung);

            if (verdicts[k] != expected) {
                disagree(round,
                         apr_psprintf(round->world->pool, "URL check of %s over %s on rung %d", id,
                                      connection->id, rung),
                         apr_pstrmemdup(round->world->pool, verdicts + k, 1),
                         apr_pstrmemdup(round->world->pool, &expected, 1));
            }
        }
    }
}

/* --- the tests -------------------------------------------------------------------------------- */

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end = NULL;
    uint64_t value = text != NULL ? strtoull(text, &end, 10) : otherwise;

    return text == NULL || (end != text && *end == '\0') ? value : otherwise;
}

static void the_resolver_agrees_with_a_slow_and_obvious_one(void **state)
{
    uint64_t count = number_of("MCP_RESOLVER_COUNT", DEFAULT_COUNT);
    uint64_t seed = number_of("MCP_RESOLVER_SEED", DEFAULT_SEED);
    static round_t round;
    uint64_t i;

    (void)state;
    print_message("# %" PRIu64 " policies from seed %" PRIu64 "\n", count, seed);
    for (i = 0; i < count; i++) {
        round_begin(&round, seed + i);
        ask_names(&round);
        ask_catalog(&round);
        ask_verdicts(&round);
        round_end(&round);
    }
}

/* The properties below take a tenth of the policies. */
static void for_policies(void (*check)(round_t *round))
{
    uint64_t count = (number_of("MCP_RESOLVER_COUNT", DEFAULT_COUNT) + 9) / 10;
    uint64_t seed = number_of("MCP_RESOLVER_SEED", DEFAULT_SEED);
    static round_t round;
    uint64_t i;

    for (i = 0; i < count; i++) {
        round_begin(&round, seed + i);
        check(&round);
        round_end(&round);
    }
}

/* Names outlive the worlds they came from. */
static void keep(advertised_t *list, apr_pool_t *pool)
{
    size_t i;

    for (i = 0; i < list->count; i++) {
        list->names[i] = apr_pstrdup(pool, list->names[i]);
    }
}

static void is_within(const round_t *round, const advertised_t *few, const advertised_t *many,
                      const char *what)
{
    size_t i;

    for (i = 0; i < few->count; i++) {
        if (!has_name(many, few->names[i])) {
            disagree(round, few->names[i], what, "it is there");
        }
    }
}

static pd_status_t check_browsed(const pd_found_t *found, void *baton)
{
    const round_t *round = baton;
    const pd_snapshot_t *snapshot = &round->world->snapshot;
    int i;

    same_reach(round, "browse of what is advertised", found->name,
               pd_reach_operation(snapshot, &round->subject, found->connector, found->operation,
                                  round->world->pool, NULL),
               PD_REACH_OK);
    same_reach(
        round, "connect to what is advertised", found->name,
        pd_reach_connector(snapshot, &round->subject, found->connector, round->world->pool, NULL),
        PD_REACH_OK);
    for (i = 0; i < found->connections->nelts; i++) {
        const char *verdicts = pd_reach_verdicts(
            snapshot, &round->subject,
            APR_ARRAY_IDX(found->connections, i, const pd_connection_t *), 3, round->world->pool);
        const pd_operation_t *first = (const pd_operation_t *)found->connector->operations->elts;

        int is_narrowed = found->entry != NULL && json_object_size(found->entry->frozen) > 0;

        /* had with frozen values alone it is nobody else's URL, and its own is not judged by a mere 'd' */
        if (verdicts[found->operation - first] != 'a' &&
            !(is_narrowed && verdicts[found->operation - first] == 'd')) {
            disagree(round, found->name, "its own URL is refused", "it can be had");
        }
    }
    return PD_OK;
}

static void browsed(round_t *round)
{
    assert_int_equal(pd_reach_each(&round->world->snapshot, &round->subject, round->world->pool,
                                   check_browsed, round),
                     PD_OK);
}

static void what_is_advertised_can_be_browsed_connected_and_sent(void **state)
{
    (void)state;
    for_policies(browsed);
}

/* Target of a new rule that joins what governs the subject already, new reference: himself if he
 * has rules, else one of his roles. NULL: he has none. */
static json_t *joining_target(const round_t *round)
{
    const json_t *rule;
    size_t i;

    if (round->subject.member_id == NULL) {
        return NULL;
    }
    json_array_foreach(json_object_get(round->policy, "restrictions"), i, rule)
    {
        if (is_text(json_object_get(rule, "target"), "member", round->subject.member_id)) {
            return json_pack("{s:s}", "member", round->subject.member_id);
        }
    }
    return round->roles[0] != NULL ? json_pack("{s:s}", "role", round->roles[0]) : NULL;
}

/* Adds a rule with this item (stolen; NULL: none); 0 when there is nothing to join. */
static int join(round_t *round, const char *effect, json_t *item)
{
    json_t *target = joining_target(round);
    json_t *items = json_array();

    if (item != NULL) {
        json_array_append_new(items, item);
    }
    if (target == NULL) {
        json_decref(items);
        return 0;
    }
    json_array_append_new(json_object_get(round->policy, "restrictions"),
                          json_pack("{s:s,s:s,s:o,s:o}", "id", "rul_new", "effect", effect,
                                    "target", target, "items", items));
    round_again(round);
    return 1;
}

static void empty_allow(round_t *round)
{
    json_t *restrictions = json_object_get(round->policy, "restrictions");
    apr_pool_t *pool = NULL;
    advertised_t before;
    advertised_t during;
    advertised_t after;
    int was_engaged = 0;
    size_t i;

    assert_int_equal(apr_pool_create(&pool, NULL), APR_SUCCESS);
    advertise(round, &before);
    keep(&before, pool);
    for (i = 0; i < round->slow.rule_count; i++) {
        was_engaged |= is_text(round->slow.rules[i], "effect", "allow");
    }
    if (join(round, "allow", NULL)) {
        advertise(round, &during);
        if (during.count != (was_engaged ? before.count : 0)) {
            disagree(round, "an allow rule with no items",
                     was_engaged ? "changes what was engaged" : "leaves something",
                     "it denies everything");
        }
        json_array_remove(restrictions, json_array_size(restrictions) - 1);
        round_again(round);
        advertise(round, &after);
        is_within(round, &before, &after, "lost when the empty allow rule went");
        is_within(round, &after, &before, "gained when the empty allow rule went");
    }
    apr_pool_destroy(pool);
}

static void an_empty_allow_rule_denies_everything_and_its_removal_restores_all(void **state)
{
    (void)state;
    for_policies(empty_allow);
}

static void one_more_block(round_t *round)
{
    apr_pool_t *pool = NULL;
    advertised_t before;
    advertised_t after;

    assert_int_equal(apr_pool_create(&pool, NULL), APR_SUCCESS);
    advertise(round, &before);
    keep(&before, pool);
    if (join(round, "block", make_item(&round->slow, 1))) {
        advertise(round, &after);
        is_within(round, &after, &before, "gained by one more block");
    }
    apr_pool_destroy(pool);
}

static void one_more_block_never_adds_a_tool(void **state)
{
    (void)state;
    for_policies(one_more_block);
}

/* One more item in an allow rule that governs: the allowlist was engaged before. */
static void one_more_allow(round_t *round)
{
    apr_pool_t *pool = NULL;
    advertised_t before;
    advertised_t after;
    size_t i;

    for (i = 0; i < round->slow.rule_count; i++) {
        const json_t *rule = round->slow.rules[i];

        if (is_text(rule, "effect", "allow") && json_is_array(json_object_get(rule, "items"))) {
            assert_int_equal(apr_pool_create(&pool, NULL), APR_SUCCESS);
            advertise(round, &before);
            keep(&before, pool);
            json_array_append_new(json_object_get(rule, "items"), make_item(&round->slow, 0));
            round_again(round);
            advertise(round, &after);
            is_within(round, &before, &after, "lost by one more allowed item");
            apr_pool_destroy(pool);
            return;
        }
    }
}

static void one_more_allowed_item_never_removes_a_tool(void **state)
{
    (void)state;
    for_policies(one_more_allow);
}

/* The test is worth nothing if its policies are all alike. */
static void the_policies_hold_every_kind_of_answer(void **state)
{
    uint64_t seed = DEFAULT_SEED;
    size_t seen[PD_REACH_BLOCKED + 1] = {0};
    static round_t round;
    int merged = 0;
    uint64_t i;
    size_t k;

    (void)state;
    for (i = 0; i < 2000; i++) {
        round_begin(&round, seed + i);
        for (k = 0; k < round.slow.name_count; k++) {
            slow_answer_t slow;

            slow_tool(&round.slow, round.slow.names[k].name, &slow);
            seen[slow.reach]++;
            merged += slow.reach == PD_REACH_OK && slow.connection_count > 1;
        }
        round_end(&round);
    }
    for (k = 0; k < COUNT(seen); k++) {
        print_message("# %5d %s\n", (int)seen[k], pd_reach_text((pd_reach_t)k));
        assert_true(seen[k] >= 20);
    }
    print_message("# %5d merged\n", merged);
    assert_true(merged >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policies_hold_every_kind_of_answer),
        cmocka_unit_test(the_resolver_agrees_with_a_slow_and_obvious_one),
        cmocka_unit_test(what_is_advertised_can_be_browsed_connected_and_sent),
        cmocka_unit_test(an_empty_allow_rule_denies_everything_and_its_removal_restores_all),
        cmocka_unit_test(one_more_block_never_adds_a_tool),
        cmocka_unit_test(one_more_allowed_item_never_removes_a_tool),
    };

    return cmocka_run_group_tests(tests, reach_begin, reach_end);
}
