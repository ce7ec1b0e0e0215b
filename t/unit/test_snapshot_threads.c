/* Snapshots beside other threads, and large ones: following runs in a unit that is undone and while others read, the last holder frees
 * on any thread, and a change costs what it touches. */
#include "snapshot_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* --- threads -------------------------------------------------------------------------------------------- */

/* A thread that reads a snapshot again and again, as a job does. */
typedef struct reader {
    pthread_t thread;
    pd_snapshot_t *snapshot; /* its own reference */
    atomic_int is_stopping;
    atomic_int rounds;
} reader_t;

static int look_around(const pd_snapshot_t *s, apr_pool_t *scratch)
{
    static const char *const roles[] = {"A", "B", NULL};
    apr_hash_index_t *i;
    pd_rules_t rules;
    int seen = 0;

    for (i = apr_hash_first(scratch, s->ground->connections); i != NULL; i = apr_hash_next(i)) {
        const pd_connection_t *connection = apr_hash_this_val(i);

        seen += connection->tools->nelts + connection->connector->operations->nelts;
    }
    for (i = apr_hash_first(scratch, s->toolboxes->by_id); i != NULL; i = apr_hash_next(i)) {
        const pd_toolbox_t *box = apr_hash_this_val(i);

        seen += pd_toolbox_is_for(box, "mem_1", roles) + box->entries->nelts;
    }
    pd_snapshot_rules(s, "mem_2", roles, scratch, &rules);
    seen += (int)rules.governed + rules.layers->nelts;
    seen += (int)pd_snapshot_setting_int(s, "a.b", 0);
    return seen;
}

static void *read_on(void *baton)
{
    reader_t *reader = baton;
    apr_pool_t *scratch = NULL;
    int first;

    if (apr_pool_create(&scratch, NULL) != APR_SUCCESS) {
        return NULL;
    }
    first = look_around(reader->snapshot, scratch);
    while (!atomic_load(&reader->is_stopping)) {
        pd_snapshot_t *mine = pd_snapshot_hold(reader->snapshot);

        apr_pool_clear(scratch);
        if (look_around(mine, scratch) != first) {
            pd_snapshot_free(&mine);
            break; /* rounds stays 0 or stops: the test waits in vain */
        }
        pd_snapshot_free(&mine);
        atomic_fetch_add(&reader->rounds, 1);
    }
    pd_snapshot_free(&reader->snapshot);
    apr_pool_destroy(scratch);
    return NULL;
}

static void follow_beside_a_reader(fixture_t *fix, random_writes_t *writes, pd_snapshot_t *old)
{
    reader_t reader = {.snapshot = pd_snapshot_hold(old)};
    trial_t trial = {writes, old, NULL, NULL, 0};
    const char *before = snapshot_text(old);
    struct timespec until;
    struct timespec now;

    assert_int_equal(pthread_create(&reader.thread, NULL, read_on, &reader), 0);
    assert_int_equal(in_unit(fix, PD_LANE_WRITE, try_unit, &trial), PD_E_ROLLBACK);
    expect_equal(trial.followed, trial.loaded, 0);
    assert_in_range(trial.revision, old->revision, old->revision + 1);
    expect_equal(snapshot_text(old), before, 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WATCHDOG_MS / 1000;
    while (atomic_load(&reader.rounds) == 0) { /* it has read at least once */
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec < until.tv_sec);
        (void)sched_yield();
    }
    atomic_store(&reader.is_stopping, 1);
    assert_int_equal(pthread_join(reader.thread, NULL), 0);
}

static void a_dry_run_leaves_the_one_in_force_as_it_was_while_others_read_it(void **state)
{
    fixture_t *fix = *state;
    random_writes_t writes;
    pd_snapshot_t *old;
    pd_snapshot_t *made;
    int round;

    pd_log_open(0, PD_LOG_ERR - 1);
    random_writes_begin(&writes, 815);
    fill(fix);
    old = load(fix);
    for (round = 0; round < 30; round++) {
        apr_pool_clear(pool);
        follow_beside_a_reader(fix, &writes, old);
    }
    /* nothing was committed */
    made = follow(fix, PD_LANE_LOOP, old);
    assert_int_equal(made->revision, old->revision);
    assert_ptr_equal(made->rulebook, old->rulebook);
    expect_as_loaded(fix, made, 0);
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
    random_writes_end(&writes);
    pd_log_open(0, PD_LOG_ERR);
}

#define THREADS 4
#define CHAIN   24

typedef struct freer {
    pthread_t thread;
    pthread_barrier_t *start;
    pd_snapshot_t *held[CHAIN];
} freer_t;

static void *free_all(void *baton)
{
    freer_t *freer = baton;
    int i;

    (void)pthread_barrier_wait(freer->start); /* one of them is told apart, which is of no interest */
    for (i = 0; i < CHAIN; i++) {
        pd_snapshot_free(&freer->held[i]);
    }
    return NULL;
}

/* Snapshots that share most of their parts, each held by all threads, and let go by all at the same time: whoever is last frees. */
static void the_last_of_all_threads_frees_what_is_left(void **state)
{
    fixture_t *fix = *state;
    freer_t freers[THREADS];
    pthread_barrier_t start;
    random_writes_t writes;
    pd_snapshot_t *current;
    int i;
    int k;

    pd_log_open(0, PD_LOG_ERR - 1);
    random_writes_begin(&writes, 99);
    fill(fix);
    current = load(fix);
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (i = 0; i < CHAIN; i++) {
        pd_snapshot_t *made;

        for (k = 0; k < THREADS; k++) {
            freers[k].held[k % 2 ? i : CHAIN - 1 - i] = pd_snapshot_hold(current);
        }
        assert_int_equal(in_unit(fix, PD_LANE_WRITE, write_unit, &writes), PD_OK);
        made = follow(fix, PD_LANE_LOOP, current);
        pd_snapshot_free(&current);
        current = made;
    }
    pd_snapshot_free(&current);
    for (k = 0; k < THREADS; k++) {
        freers[k].start = &start;
        assert_int_equal(pthread_create(&freers[k].thread, NULL, free_all, &freers[k]), 0);
    }
    for (k = 0; k < THREADS; k++) {
        assert_int_equal(pthread_join(freers[k].thread, NULL), 0);
    }
    (void)pthread_barrier_destroy(&start); /* nobody waits */
    random_writes_end(&writes);
    pd_log_open(0, PD_LOG_ERR);
}

/* --- size ---------------------------------------------------------------------------------------------------- */

#define MANY_ROLES       200
#define MANY_CONNECTORS  20
#define RULES_OF_A_ROLE  5
#define ITEMS_OF_A_RULE  100
#define MANY_CONNECTIONS 10000

static json_t *big_rule(int role, int rule)
{
    json_t *items = json_array();
    int i;

    for (i = 0; i < ITEMS_OF_A_RULE; i++) {
        json_array_append_new(items, json_pack("{s:o,s:s,s:o}", "connector",
                                               json_sprintf("con_%d", i % MANY_CONNECTORS), "slug", "shop",
                                               "operation", json_sprintf("op_%d", i + rule)));
    }
    return json_pack("{s:s,s:{s:o},s:o}", "effect", rule == 0 ? "allow" : "block", "target", "role",
                     json_sprintf("Role %d", role), "items", items);
}

static pd_status_t write_big_policy(pd_tx_t *tx, void *baton)
{
    pd_status_t status = PD_OK;
    apr_pool_t *p = pd_tx_pool(tx);
    int i;

    (void)baton;
    for (i = 0; status == PD_OK && i < MANY_CONNECTORS; i++) {
        change_t change = {"connector", apr_psprintf(p, "con_%d", i), NULL,
                           connector_doc(apr_psprintf(p, "shop-%d", i), 10)};

        status = put_object(tx, &change);
        json_decref(change.doc);
    }
    for (i = 0; status == PD_OK && i < MANY_CONNECTIONS; i++) {
        change_t change = {"connection", apr_psprintf(p, "cxn_%05d", i),
                           i % 10 ? apr_psprintf(p, "mem_%d", i % 1000) : NULL,
                           connection_doc(apr_psprintf(p, "con_%d", i % MANY_CONNECTORS),
                                          apr_psprintf(p, "label-%d", i))};

        status = put_object(tx, &change);
        json_decref(change.doc);
    }
    for (i = 0; status == PD_OK && i < MANY_ROLES * RULES_OF_A_ROLE; i++) {
        change_t change = {"restriction", apr_psprintf(p, "rst_%05d", i), NULL,
                           big_rule(i % MANY_ROLES, i / MANY_ROLES)};

        status = put_object(tx, &change);
        json_decref(change.doc);
    }
    return status;
}

static double ms_since(const struct timespec *start)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) * 1e3 + (double)(now.tv_nsec - start->tv_nsec) / 1e6;
}

/* Times are printed, not judged: a slow machine is no defect. What makes them short is judged above. */
static void one_rule_of_a_large_policy_is_followed_fast(void **state)
{
    fixture_t *fix = *state;
    struct timespec start;
    pd_snapshot_t *old;
    pd_snapshot_t *made;
    double best = 1e9;
    int i;

    assert_int_equal(in_unit(fix, PD_LANE_WRITE, write_big_policy, NULL), PD_OK);
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    old = load(fix);
    print_message("# load: %.1f ms\n", ms_since(&start));
    assert_int_equal(apr_hash_count(old->ground->connections), MANY_CONNECTIONS);
    assert_int_equal(apr_hash_count(old->rulebook->by_role), MANY_ROLES);
    for (i = 0; i < 10; i++) {
        double took;

        put(fix, "restriction", "rst_00042", NULL, big_rule(42, i));
        (void)clock_gettime(CLOCK_MONOTONIC, &start);
        made = follow(fix, PD_LANE_LOOP, old);
        took = ms_since(&start);
        best = took < best ? took : best;
        assert_ptr_equal(made->ground, old->ground);
        pd_snapshot_free(&old);
        old = made;
    }
    print_message("# follow, one rule of %d with %d items and %d connections: %.2f ms\n",
                  MANY_ROLES * RULES_OF_A_ROLE, MANY_ROLES * RULES_OF_A_ROLE * ITEMS_OF_A_RULE,
                  MANY_CONNECTIONS, best);
    put(fix, "connection", "cxn_00042", NULL, connection_doc("con_1", "other"));
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    made = follow(fix, PD_LANE_LOOP, old);
    print_message("# follow, one connection: %.2f ms\n", ms_since(&start));
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SNAPSHOT_TEST(a_dry_run_leaves_the_one_in_force_as_it_was_while_others_read_it),
        SNAPSHOT_TEST(the_last_of_all_threads_frees_what_is_left),
        SNAPSHOT_TEST(one_rule_of_a_large_policy_is_followed_fast),
    };

    json_object_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
