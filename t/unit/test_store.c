/* The policy store: units, lanes and revisions. */
#include "store_fixture.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>

/* --- units as tables of steps --------------------------------------------- */

typedef enum verb { END, INSERT, UPDATE, DELETE, SECRET, FAIL, AUDIT } verb_t;

typedef struct step {
    verb_t verb;
    const char *id;
    const char *key; /* one alternative key, or NULL; SECRET: its bytes; AUDIT: the id */
    int64_t expected;
    pd_status_t want;
} step_t;

typedef struct run {
    const step_t *steps;
    pd_status_t status;
    int64_t revision;
    int is_done;
    sem_t *started; /* posted by the unit, which then waits for release */
    sem_t *release;
    int order;
} run_t;

static int order_of_completion;

static pd_status_t take_step(pd_tx_t *tx, const step_t *step)
{
    const char *keys[2] = {step->key, NULL};
    json_t *doc;
    pd_status_t status;
    int64_t revision = 0;

    switch (step->verb) {
    case INSERT:
    case UPDATE:
        doc = json_pack("{s:s}", "name", step->id);
        status = step->verb == INSERT
                     ? pd_tx_insert(tx, "member", step->id, "own_1", doc, keys)
                     : pd_tx_update(tx, "member", step->id, NULL, doc, keys, step->expected,
                                    &revision);
        json_decref(doc);
        return status;
    case DELETE:
        return pd_tx_delete(tx, "member", step->id, step->expected);
    case SECRET:
        return step->key == NULL
                   ? pd_tx_secret_delete(tx, "member", step->id)
                   : pd_tx_secret_put(tx, "member", step->id, step->key, strlen(step->key));
    case AUDIT:
        pd_tx_audit(tx, step->key);
        return PD_OK;
    case FAIL:
        return step->want;
    case END:
    default:
        return PD_E_INTERNAL;
    }
}

static pd_status_t unit_of_steps(pd_tx_t *tx, void *baton)
{
    const run_t *run = baton;
    size_t i;

    if (run->started != NULL) {
        (void)sem_post(run->started);
        (void)sem_wait(run->release);
    }
    for (i = 0; run->steps != NULL && run->steps[i].verb != END; i++) {
        pd_status_t status = take_step(tx, &run->steps[i]);

        if (run->steps[i].verb == FAIL) {
            return run->steps[i].want;
        }
        if (status != run->steps[i].want) {
            return PD_E_INTERNAL; /* the test sees it in the completion */
        }
    }
    return PD_OK;
}

static void note_done(pd_status_t status, int64_t revision, void *baton)
{
    run_t *run = baton;

    assert_false(run->is_done);
    run->status = status;
    run->revision = revision;
    run->is_done = 1;
    run->order = ++order_of_completion;
}

static void submit(fixture_t *fix, run_t *run)
{
    assert_int_equal(pd_store_submit(fix->store, PD_LANE_WRITE, pd_boot_in(WATCHDOG_MS),
                                     unit_of_steps, note_done, run),
                     PD_OK);
}

/* Runs one unit; its status, and the revision by pointer where wanted. */
static pd_status_t write_unit(fixture_t *fix, const step_t *steps, int64_t *revision)
{
    run_t run = {.steps = steps};

    submit(fix, &run);
    wait_for(fix, &run.is_done);
    if (revision != NULL) {
        *revision = run.revision;
    }
    return run.status;
}

/* Reads on the loop lane: a function of a unit and its baton. */
typedef struct read {
    pd_status_t (*look)(pd_tx_t *tx, void *baton);
    void *baton;
    pd_status_t status;
    int64_t revision;
    int is_done;
} read_t;

static pd_status_t unit_of_read(pd_tx_t *tx, void *baton)
{
    const read_t *look = baton;

    return look->look(tx, look->baton);
}

static void read_done(pd_status_t status, int64_t revision, void *baton)
{
    read_t *look = baton;

    look->status = status;
    look->revision = revision;
    look->is_done = 1;
}

static pd_status_t read_unit(fixture_t *fix, pd_unit_fn *fn, void *baton, int64_t *revision)
{
    read_t look = {fn, baton, PD_E_INTERNAL, 0, 0};

    assert_int_equal(pd_store_submit(fix->store, PD_LANE_LOOP, pd_boot_in(WATCHDOG_MS),
                                     unit_of_read, read_done, &look),
                     PD_OK);
    assert_true(look.is_done); /* inline */
    if (revision != NULL) {
        *revision = look.revision;
    }
    return look.status;
}

static pd_status_t look_for_member(pd_tx_t *tx, void *baton)
{
    pd_object_t *object = NULL;

    return pd_tx_get(tx, "member", baton, &object);
}

static int has_member(fixture_t *fix, const char *id)
{
    char name[64];
    pd_status_t status;

    (void)snprintf(name, sizeof(name), "%s", id);
    status = read_unit(fix, look_for_member, name, NULL);
    assert_true(status == PD_OK || status == PD_E_NOT_FOUND);
    return status == PD_OK;
}

/* --- objects -------------------------------------------------------------- */

static pd_status_t look_at_ada(pd_tx_t *tx, void *baton)
{
    pd_object_t *by_id = NULL;
    pd_object_t *by_key = NULL;

    (void)baton;
    assert_int_equal(pd_tx_get(tx, "member", "mem_ada", &by_id), PD_OK);
    assert_int_equal(pd_tx_find(tx, "member", "email:ada", &by_key), PD_OK);
    assert_string_equal(by_id->id, by_key->id);
    assert_string_equal(by_id->kind, "member");
    assert_string_equal(by_id->owner, "own_1");
    assert_string_equal(json_string_value(json_object_get(by_id->doc, "name")), "mem_ada");
    assert_int_equal(by_id->revision, 1);
    assert_true(by_id->created.us > 1500000000000000);
    assert_int_equal(by_id->created.us, by_id->updated.us);
    assert_int_equal(pd_tx_get(tx, "role", "mem_ada", &by_id), PD_E_NOT_FOUND);
    assert_int_equal(pd_tx_find(tx, "role", "email:ada", &by_id), PD_E_NOT_FOUND);
    return PD_OK;
}

static void an_object_is_found_by_id_and_by_key_of_its_kind(void **state)
{
    static const step_t steps[] = {{INSERT, "mem_ada", "email:ada", 0, PD_OK}, {0}};
    int64_t revision = 0;

    assert_int_equal(write_unit(*state, steps, &revision), PD_OK);
    assert_int_equal(revision, 1);
    assert_int_equal(read_unit(*state, look_at_ada, NULL, &revision), PD_OK);
    assert_int_equal(revision, 1);
}

static void a_taken_key_or_id_is_a_conflict_that_changes_nothing(void **state)
{
    static const step_t steps[] = {
        {INSERT, "mem_a", "email:a", 0, PD_OK},
        {INSERT, "mem_b", "email:a", 0, PD_E_CONFLICT},
        {INSERT, "mem_a", "email:x", 0, PD_E_CONFLICT},
        {INSERT, "mem_b", "email:b", 0, PD_OK},
        {UPDATE, "mem_b", "email:a", 0, PD_E_CONFLICT},
        {UPDATE, "mem_b", "email:b", 1, PD_OK}, /* its own key, still at its first revision */
        {DELETE, "mem_a", NULL, 0, PD_OK},
        {UPDATE, "mem_b", "email:a", 2, PD_OK}, /* free again */
        {0},
    };

    assert_int_equal(write_unit(*state, steps, NULL), PD_OK);
}

static void another_revision_than_expected_is_refused(void **state)
{
    static const step_t steps[] = {
        {INSERT, "mem_a", NULL, 0, PD_OK},
        {UPDATE, "mem_a", NULL, 2, PD_E_REVISION},
        {UPDATE, "mem_a", NULL, 1, PD_OK},
        {DELETE, "mem_a", NULL, 1, PD_E_REVISION},
        {UPDATE, "mem_none", NULL, 1, PD_E_NOT_FOUND},
        {DELETE, "mem_a", NULL, 2, PD_OK},
        {DELETE, "mem_a", NULL, 0, PD_E_NOT_FOUND},
        {0},
    };

    assert_int_equal(write_unit(*state, steps, NULL), PD_OK);
}

static pd_status_t try_hostile_input(pd_tx_t *tx, void *baton)
{
    static const char *const twice[] = {"k", "k", NULL};
    static const char *const empty[] = {"", NULL};
    char *big = malloc(2000);
    json_t *doc = json_object();
    int64_t revision = 0;

    (void)baton;
    if (big == NULL || doc == NULL) {
        return PD_E_NOMEM;
    }
    memset(big, 'x', 1999);
    big[1999] = '\0';
    assert_int_equal(pd_tx_insert(tx, "member", "", NULL, doc, NULL), PD_E_INVALID);
    assert_int_equal(pd_tx_insert(tx, "member", big, NULL, doc, NULL), PD_E_INVALID);
    assert_int_equal(pd_tx_insert(tx, big, "i", NULL, doc, NULL), PD_E_INVALID);
    assert_int_equal(pd_tx_insert(tx, "member", "i", big, doc, NULL), PD_E_INVALID);
    assert_int_equal(pd_tx_insert(tx, "member", "i", NULL, NULL, NULL), PD_E_INVALID);
    assert_int_equal(pd_tx_insert(tx, "member", "i", NULL, doc, twice), PD_E_INVALID);
    assert_int_equal(pd_tx_insert(tx, "member", "i", NULL, doc, empty), PD_E_INVALID);
    assert_int_equal(pd_tx_update(tx, "member", NULL, NULL, doc, NULL, 0, &revision), PD_E_INVALID);
    assert_int_equal(pd_tx_insert(tx, "member", "i'; DROP TABLE object; --", NULL, doc, NULL),
                     PD_OK);
    json_decref(doc);
    free(big);
    return PD_OK;
}

static void names_off_their_bounds_are_refused(void **state)
{
    assert_int_equal(run_unit(*state, PD_LANE_WRITE, try_hostile_input), PD_OK);
}

static pd_status_t store_odd_documents(pd_tx_t *tx, void *baton)
{
    static const char *const texts[] = {"9223372036854775807", "[0.1,1e300,null,true]",
                                        "\"a\\u0000b\"", "{\"z\":1,\"a\":{\"\":[]}}"};
    size_t i;

    (void)baton;
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *doc = json_loads(texts[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        pd_object_t *object = NULL;
        char id[32];

        (void)snprintf(id, sizeof(id), "odd_%zu", i);
        assert_non_null(doc);
        assert_int_equal(pd_tx_insert(tx, "setting", id, NULL, doc, NULL), PD_OK);
        assert_int_equal(pd_tx_get(tx, "setting", id, &object), PD_OK);
        assert_true(json_equal(object->doc, doc));
        assert_null(object->owner);
        json_decref(doc);
    }
    return PD_OK;
}

static void a_document_comes_back_as_it_went_in(void **state)
{
    assert_int_equal(run_unit(*state, PD_LANE_WRITE, store_odd_documents), PD_OK);
}

static pd_status_t list_pages(pd_tx_t *tx, void *baton)
{
    apr_array_header_t *list = NULL;

    (void)baton;
    assert_int_equal(pd_tx_list(tx, "member", NULL, NULL, 2, &list), PD_OK);
    assert_int_equal(list->nelts, 2);
    assert_string_equal(APR_ARRAY_IDX(list, 0, pd_object_t *)->id, "mem_a");
    assert_string_equal(APR_ARRAY_IDX(list, 1, pd_object_t *)->id, "mem_b");
    assert_int_equal(pd_tx_list(tx, "member", NULL, "mem_b", 2, &list), PD_OK);
    assert_int_equal(list->nelts, 1);
    assert_int_equal(pd_tx_list(tx, "member", "own_1", NULL, 10, &list), PD_OK);
    assert_int_equal(list->nelts, 2); /* mem_c was updated to have no owner */
    assert_int_equal(pd_tx_list(tx, "member", "own_2", NULL, 10, &list), PD_OK);
    assert_int_equal(list->nelts, 0);
    assert_int_equal(pd_tx_list(tx, "member", NULL, NULL, 0, &list), PD_E_INVALID);
    return PD_OK;
}

static void a_list_is_in_id_order_and_goes_on_after_an_id(void **state)
{
    static const step_t steps[] = {{INSERT, "mem_c", NULL, 0, PD_OK},
                                   {INSERT, "mem_a", NULL, 0, PD_OK},
                                   {INSERT, "mem_b", NULL, 0, PD_OK},
                                   {UPDATE, "mem_c", NULL, 0, PD_OK},
                                   {0}};

    assert_int_equal(write_unit(*state, steps, NULL), PD_OK);
    assert_int_equal(read_unit(*state, list_pages, NULL, NULL), PD_OK);
}

static pd_status_t expect_secret(pd_tx_t *tx, void *baton)
{
    const char *want = baton;
    const void *bytes = NULL;
    size_t count = 0;
    pd_status_t status = pd_tx_secret_get(tx, "member", "mem_a", &bytes, &count);

    if (want == NULL) {
        assert_int_equal(status, PD_E_NOT_FOUND);
        return PD_OK;
    }
    assert_int_equal(status, PD_OK);
    assert_int_equal(count, strlen(want));
    assert_memory_equal(bytes, want, count);
    return PD_OK;
}

static void a_secret_stands_apart_and_goes_with_its_object(void **state)
{
    static const step_t first[] = {{SECRET, "mem_a", "x", 0, PD_E_NOT_FOUND},
                                   {INSERT, "mem_a", NULL, 0, PD_OK},
                                   {SECRET, "mem_a", "old", 0, PD_OK},
                                   {SECRET, "mem_a", "sealed", 0, PD_OK},
                                   {0}};
    static const step_t drop[] = {{SECRET, "mem_a", NULL, 0, PD_OK},
                                  {SECRET, "mem_a", NULL, 0, PD_E_NOT_FOUND},
                                  {SECRET, "mem_a", "again", 0, PD_OK},
                                  {0}};
    static const step_t gone[] = {
        {DELETE, "mem_a", NULL, 0, PD_OK}, {INSERT, "mem_a", NULL, 0, PD_OK}, {0}};
    char sealed[] = "sealed";
    char again[] = "again";

    assert_int_equal(write_unit(*state, first, NULL), PD_OK);
    assert_int_equal(read_unit(*state, expect_secret, sealed, NULL), PD_OK);
    assert_int_equal(write_unit(*state, drop, NULL), PD_OK);
    assert_int_equal(read_unit(*state, expect_secret, again, NULL), PD_OK);
    assert_int_equal(write_unit(*state, gone, NULL), PD_OK);
    assert_int_equal(read_unit(*state, expect_secret, NULL, NULL), PD_OK);
}

/* --- revisions ------------------------------------------------------------ */

static void only_a_unit_that_changes_something_makes_a_revision(void **state)
{
    static const step_t insert[] = {{INSERT, "mem_a", NULL, 0, PD_OK}, {0}};
    static const step_t nothing[] = {{AUDIT, NULL, "7-9", 0, PD_OK}, {0}};
    static const step_t both[] = {
        {INSERT, "mem_b", NULL, 0, PD_OK}, {UPDATE, "mem_a", NULL, 0, PD_OK}, {0}};
    static const step_t fails[] = {
        {INSERT, "mem_c", NULL, 0, PD_OK}, {FAIL, NULL, NULL, 0, PD_E_ROLLBACK}, {0}};
    int64_t revision = 0;

    assert_int_equal(write_unit(*state, insert, &revision), PD_OK);
    assert_int_equal(revision, 1);
    assert_int_equal(write_unit(*state, nothing, &revision), PD_OK);
    assert_int_equal(revision, 1);
    assert_int_equal(write_unit(*state, both, &revision), PD_OK);
    assert_int_equal(revision, 2);
    assert_int_equal(write_unit(*state, fails, &revision), PD_E_ROLLBACK);
    assert_int_equal(revision, 2);
    assert_false(has_member(*state, "mem_c"));
}

static pd_status_t see_revision_move(pd_tx_t *tx, void *baton)
{
    json_t *doc = json_object();

    (void)baton;
    assert_int_equal(pd_tx_revision(tx), 0);
    assert_int_equal(pd_tx_insert(tx, "role", "r", NULL, doc, NULL), PD_OK);
    assert_int_equal(pd_tx_revision(tx), 1);
    json_decref(doc);
    return PD_OK;
}

static void a_unit_sees_the_revision_that_it_makes(void **state)
{
    assert_int_equal(run_unit(*state, PD_LANE_WRITE, see_revision_move), PD_OK);
}

static pd_status_t look_at_audit(pd_tx_t *tx, void *baton)
{
    int64_t revision = 0;

    (void)baton;
    assert_int_equal(pd_tx_audit_find(tx, "17-42", &revision), PD_OK);
    assert_int_equal(revision, 1);
    assert_int_equal(pd_tx_audit_find(tx, "17-43", &revision), PD_E_NOT_FOUND);
    return PD_OK;
}

static void the_audit_id_of_a_change_is_kept_beside_its_revision(void **state)
{
    static const step_t good[] = {
        {AUDIT, NULL, "17-42", 0, PD_OK}, {INSERT, "mem_a", NULL, 0, PD_OK}, {0}};
    static const step_t undone[] = {{AUDIT, NULL, "17-43", 0, PD_OK},
                                    {INSERT, "mem_b", NULL, 0, PD_OK},
                                    {FAIL, NULL, NULL, 0, PD_E_ROLLBACK},
                                    {0}};

    assert_int_equal(write_unit(*state, good, NULL), PD_OK);
    assert_int_equal(write_unit(*state, undone, NULL), PD_E_ROLLBACK);
    assert_int_equal(read_unit(*state, look_at_audit, NULL, NULL), PD_OK);
}

typedef struct changes {
    int64_t after;
    pd_status_t want;
    const char *ids; /* joined by commas */
} changes_t;

static pd_status_t look_at_changes(pd_tx_t *tx, void *baton)
{
    const changes_t *want = baton;
    apr_array_header_t *list = NULL;
    char ids[256] = "";
    int i;

    assert_int_equal(pd_tx_changes(tx, want->after, &list), want->want);
    if (want->want != PD_OK) {
        return PD_OK;
    }
    for (i = 0; i < list->nelts; i++) {
        const pd_change_t *change = &APR_ARRAY_IDX(list, i, pd_change_t);
        size_t used = strlen(ids);

        assert_string_equal(change->kind, "member");
        (void)snprintf(ids + used, sizeof(ids) - used, "%s%s", i == 0 ? "" : ",", change->id);
    }
    assert_string_equal(ids, want->ids);
    return PD_OK;
}

static void changes_name_each_object_once_oldest_first(void **state)
{
    static const step_t one[] = {
        {INSERT, "mem_b", NULL, 0, PD_OK}, {UPDATE, "mem_b", NULL, 0, PD_OK}, {0}};
    static const step_t two[] = {{INSERT, "mem_a", NULL, 0, PD_OK}, {0}};
    static const step_t three[] = {{DELETE, "mem_b", NULL, 0, PD_OK}, {0}};
    changes_t all = {0, PD_OK, "mem_a,mem_b"};
    changes_t last = {2, PD_OK, "mem_b"};
    changes_t none = {3, PD_OK, ""};

    assert_int_equal(write_unit(*state, one, NULL), PD_OK);
    assert_int_equal(write_unit(*state, two, NULL), PD_OK);
    assert_int_equal(write_unit(*state, three, NULL), PD_OK);
    assert_int_equal(read_unit(*state, look_at_changes, &all, NULL), PD_OK);
    assert_int_equal(read_unit(*state, look_at_changes, &last, NULL), PD_OK);
    assert_int_equal(read_unit(*state, look_at_changes, &none, NULL), PD_OK);
}

static void changes_that_are_no_longer_kept_are_not_passed_off_as_whole(void **state)
{
    static const step_t insert[] = {{INSERT, "mem_a", NULL, 0, PD_OK}, {0}};
    static const step_t update[] = {{UPDATE, "mem_a", NULL, 0, PD_OK}, {0}};
    fixture_t *fix = *state;
    changes_t lost = {4, PD_E_REVISION, NULL};
    changes_t whole = {5, PD_OK, "mem_x,mem_a"};
    int64_t revision = 0;

    assert_int_equal(write_unit(fix, insert, NULL), PD_OK);
    pd_store_close(&fix->store);
    /* Revisions 2 to 5 with 25,000 rows each: one row more is one too many. */
    with_sqlite(fix, "DELETE FROM change;"
                     "WITH RECURSIVE c(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM c WHERE i<99998)"
                     " INSERT INTO change (n, revision, kind, id)"
                     " SELECT i + 3, 2 + i / 25000, 'member', 'mem_' || i FROM c;"
                     "INSERT INTO change VALUES (1, 1, 'member', 'mem_0');"
                     "UPDATE change SET n = n + 1, revision = 6, id = 'mem_x' WHERE n = 100001;"
                     "UPDATE policy SET revision = 6");
    open_store(fix);
    assert_int_equal(write_unit(fix, update, &revision), PD_OK);
    assert_int_equal(revision, 7);
    /* The newest row is 100003: rows up to 3, of revisions 1 and 2, are gone. */
    assert_int_equal(read_unit(fix, look_at_changes, &whole, NULL), PD_OK);
    lost.after = 1;
    assert_int_equal(read_unit(fix, look_at_changes, &lost, NULL), PD_OK);
}

/* --- grants --------------------------------------------------------------- */

static pd_status_t insert_grants(pd_tx_t *tx, void *baton)
{
    static const char *const one[] = {"token:1", NULL};
    static const char *const two[] = {"token:2", NULL};
    json_t *doc = json_object();
    pd_status_t status;

    (void)baton;
    status = pd_tx_insert(tx, "member", "mem_a", NULL, doc, NULL);
    if (status == PD_OK) {
        status = pd_tx_insert(tx, "grant", "gra_1", "mem_a", doc, one);
    }
    if (status == PD_OK) {
        status = pd_tx_insert(tx, "grant", "gra_2", "mem_gone", doc, two);
    }
    json_decref(doc);
    return status;
}

static pd_status_t look_at_grants(pd_tx_t *tx, void *baton)
{
    pd_object_t *grant = NULL;
    pd_object_t *member = NULL;
    int64_t revision = 0;

    (void)baton;
    assert_int_equal(pd_tx_grant(tx, "token:1", &grant, &member, &revision), PD_OK);
    assert_string_equal(grant->id, "gra_1");
    assert_string_equal(member->id, "mem_a");
    assert_int_equal(revision, 1);
    assert_int_equal(pd_tx_grant(tx, "token:2", &grant, &member, &revision), PD_OK);
    assert_string_equal(grant->id, "gra_2");
    assert_null(member);
    assert_int_equal(pd_tx_grant(tx, "token:3", &grant, &member, &revision), PD_E_NOT_FOUND);
    return PD_OK;
}

static void a_grant_comes_with_its_member_and_the_revision(void **state)
{
    int64_t revision = 0;

    assert_int_equal(run_unit(*state, PD_LANE_WRITE, insert_grants), PD_OK);
    assert_int_equal(read_unit(*state, look_at_grants, NULL, &revision), PD_OK);
    assert_int_equal(revision, 1);
    assert_int_equal(run_unit(*state, PD_LANE_JOB, look_at_grants), PD_OK);
}

/* --- lanes ---------------------------------------------------------------- */

/* Holds the writer inside a unit until released, so that what follows gathers into one group. */
typedef struct gate {
    sem_t started;
    sem_t release;
    run_t run;
} gate_t;

static void close_gate(fixture_t *fix, gate_t *gate)
{
    memset(gate, 0, sizeof(*gate));
    assert_int_equal(sem_init(&gate->started, 0, 0), 0);
    assert_int_equal(sem_init(&gate->release, 0, 0), 0);
    gate->run.started = &gate->started;
    gate->run.release = &gate->release;
    submit(fix, &gate->run);
    assert_int_equal(sem_wait(&gate->started), 0);
}

static void open_gate(fixture_t *fix, gate_t *gate)
{
    assert_int_equal(sem_post(&gate->release), 0);
    wait_for(fix, &gate->run.is_done);
    (void)sem_destroy(&gate->started);
    (void)sem_destroy(&gate->release);
}

static void one_unit_is_undone_while_its_neighbours_commit(void **state)
{
    static const step_t first[] = {{INSERT, "mem_1", "k:1", 0, PD_OK}, {0}};
    static const step_t undone[] = {{INSERT, "mem_2", "k:2", 0, PD_OK},
                                    {UPDATE, "mem_1", "k:9", 0, PD_OK},
                                    {FAIL, NULL, NULL, 0, PD_E_INVALID},
                                    {0}};
    static const step_t last[] = {
        {INSERT, "mem_3", "k:2", 0, PD_OK}, {UPDATE, "mem_1", "k:1", 1, PD_OK}, {0}};
    run_t runs[3] = {{.steps = first}, {.steps = undone}, {.steps = last}};
    gate_t gate;
    size_t i;

    close_gate(*state, &gate);
    for (i = 0; i < 3; i++) {
        submit(*state, &runs[i]);
    }
    open_gate(*state, &gate);
    wait_for(*state, &runs[2].is_done);
    assert_int_equal(runs[0].status, PD_OK);
    assert_int_equal(runs[0].revision, 1);
    assert_int_equal(runs[1].status, PD_E_INVALID);
    assert_int_equal(runs[2].status, PD_OK);
    assert_int_equal(runs[2].revision, 2);
    assert_true(runs[0].order < runs[1].order && runs[1].order < runs[2].order);
    assert_true(has_member(*state, "mem_1"));
    assert_false(has_member(*state, "mem_2"));
    assert_true(has_member(*state, "mem_3"));
}

static void a_full_write_queue_refuses_and_takes_again_when_reaped(void **state)
{
    static const step_t insert[] = {{INSERT, "mem_last", NULL, 0, PD_OK}, {0}};
    fixture_t *fix = *state;
    run_t *runs = calloc(4096, sizeof(*runs));
    run_t refused = {.steps = insert};
    gate_t gate;
    size_t i;

    assert_non_null(runs);
    close_gate(fix, &gate);
    for (i = 0; i < 4095; i++) { /* and the one that runs */
        submit(fix, &runs[i]);
    }
    assert_int_equal(pd_store_submit(fix->store, PD_LANE_WRITE, pd_boot_in(WATCHDOG_MS),
                                     unit_of_steps, note_done, &refused),
                     PD_E_FULL);
    open_gate(fix, &gate);
    wait_for(fix, &runs[4094].is_done);
    assert_false(refused.is_done);
    assert_int_equal(write_unit(fix, insert, NULL), PD_OK);
    free(runs);
}

static void a_full_job_queue_refuses(void **state)
{
    fixture_t *fix = *state;
    run_t runs[257];
    sem_t started;
    sem_t release;
    size_t i;

    memset(runs, 0, sizeof(runs));
    assert_int_equal(sem_init(&started, 0, 0), 0);
    assert_int_equal(sem_init(&release, 0, 0), 0);
    for (i = 0; i < 257; i++) {
        runs[i].started = &started;
        runs[i].release = &release;
        assert_int_equal(pd_store_submit(fix->store, PD_LANE_JOB, pd_boot_in(WATCHDOG_MS),
                                         unit_of_steps, note_done, &runs[i]),
                         i < 256 ? PD_OK : PD_E_FULL);
    }
    /* Two threads: two jobs run at once. */
    assert_int_equal(sem_wait(&started), 0);
    assert_int_equal(sem_wait(&started), 0);
    for (i = 0; i < 256; i++) {
        assert_int_equal(sem_post(&release), 0);
    }
    for (i = 0; i < 256; i++) {
        wait_for(fix, &runs[i].is_done);
        assert_int_equal(runs[i].status, PD_OK);
    }
    (void)sem_destroy(&started);
    (void)sem_destroy(&release);
}

static void a_unit_whose_deadline_has_passed_does_not_run(void **state)
{
    static const step_t insert[] = {{INSERT, "mem_late", NULL, 0, PD_OK}, {0}};
    static const pd_lane_t lanes[] = {PD_LANE_LOOP, PD_LANE_WRITE, PD_LANE_JOB};
    fixture_t *fix = *state;
    size_t i;

    for (i = 0; i < 3; i++) {
        run_t run = {.steps = insert};

        assert_int_equal(pd_store_submit(fix->store, lanes[i], pd_boot_in(-1), unit_of_steps,
                                         note_done, &run),
                         PD_OK);
        wait_for(fix, &run.is_done);
        assert_int_equal(run.status, PD_E_TIMEOUT);
    }
    assert_false(has_member(fix, "mem_late"));
}

static pd_status_t read_for_ever(pd_tx_t *tx, void *baton)
{
    pd_status_t status = PD_OK;

    (void)baton;
    while (status == PD_OK) {
        apr_array_header_t *list = NULL;

        status = pd_tx_changes(tx, 0, &list);
    }
    return status;
}

static void a_job_that_reads_past_its_deadline_is_stopped(void **state)
{
    fixture_t *fix = *state;
    unit_result_t result = {PD_E_INTERNAL, 0};

    pd_store_close(&fix->store);
    with_sqlite(fix, "WITH RECURSIVE c(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM c WHERE i<5000)"
                     " INSERT INTO change (revision, kind, id) SELECT 1, 'member', i FROM c;"
                     "UPDATE policy SET revision = 1");
    open_store(fix);
    assert_int_equal(pd_store_submit(fix->store, PD_LANE_JOB, pd_boot_in(50), read_for_ever,
                                     unit_done, &result),
                     PD_OK);
    wait_for(fix, &result.is_done);
    assert_int_equal(result.status, PD_E_TIMEOUT);
}

static pd_status_t try_to_write(pd_tx_t *tx, void *baton)
{
    json_t *doc = json_object();
    pd_status_t status = pd_tx_insert(tx, "member", "mem_x", NULL, doc, NULL);

    (void)baton;
    json_decref(doc);
    return status;
}

static void the_reading_lanes_cannot_write(void **state)
{
    assert_int_equal(run_unit(*state, PD_LANE_LOOP, try_to_write), PD_E_INVALID);
    assert_int_equal(run_unit(*state, PD_LANE_JOB, try_to_write), PD_E_INVALID);
    assert_false(has_member(*state, "mem_x"));
}

typedef struct chain {
    fixture_t *fix;
    int is_done;
} chain_t;

static pd_status_t do_nothing(pd_tx_t *tx, void *baton)
{
    (void)tx;
    (void)baton;
    return PD_OK;
}

static void second_done(pd_status_t status, int64_t revision, void *baton)
{
    chain_t *chain = baton;

    (void)revision;
    assert_int_equal(status, PD_OK);
    chain->is_done = 1;
}

static void first_done(pd_status_t status, int64_t revision, void *baton)
{
    chain_t *chain = baton;

    (void)revision;
    assert_int_equal(status, PD_OK);
    assert_int_equal(pd_store_submit(chain->fix->store, PD_LANE_LOOP, pd_boot_in(WATCHDOG_MS),
                                     do_nothing, second_done, chain),
                     PD_OK);
}

static pd_status_t nest(pd_tx_t *tx, void *baton)
{
    chain_t *chain = baton;

    (void)tx;
    return pd_store_submit(chain->fix->store, PD_LANE_LOOP, pd_boot_in(WATCHDOG_MS), do_nothing,
                           second_done, chain);
}

static void a_completion_may_submit_to_the_loop_lane_and_a_unit_may_not(void **state)
{
    chain_t chain = {*state, 0};

    assert_int_equal(pd_store_submit(chain.fix->store, PD_LANE_LOOP, pd_boot_in(WATCHDOG_MS),
                                     do_nothing, first_done, &chain),
                     PD_OK);
    assert_true(chain.is_done);
    assert_int_equal(read_unit(chain.fix, nest, &chain, NULL), PD_E_INVALID);
}

static void close_commits_what_is_queued_and_runs_its_completions(void **state)
{
    static const step_t one[] = {{INSERT, "mem_1", NULL, 0, PD_OK}, {0}};
    static const step_t two[] = {{INSERT, "mem_2", NULL, 0, PD_OK}, {0}};
    fixture_t *fix = *state;
    run_t runs[2] = {{.steps = one}, {.steps = two}};

    submit(fix, &runs[0]);
    submit(fix, &runs[1]);
    pd_store_close(&fix->store);
    assert_int_equal(runs[0].status, PD_OK);
    assert_true(runs[1].is_done);
    assert_int_equal(runs[1].revision, 2);
    open_store(fix);
    assert_true(has_member(fix, "mem_1"));
    assert_true(has_member(fix, "mem_2"));
}

static void resubmit(pd_status_t status, int64_t revision, void *baton)
{
    chain_t *chain = baton;

    (void)revision;
    assert_int_equal(status, PD_OK);
    assert_int_equal(pd_store_submit(chain->fix->store, PD_LANE_WRITE, pd_boot_in(WATCHDOG_MS),
                                     do_nothing, second_done, chain),
                     PD_E_CLOSED);
    chain->is_done = 1;
}

static void a_completion_that_submits_during_close_is_refused(void **state)
{
    chain_t chain = {*state, 0};

    assert_int_equal(pd_store_submit(chain.fix->store, PD_LANE_WRITE, pd_boot_in(WATCHDOG_MS),
                                     do_nothing, resubmit, &chain),
                     PD_OK);
    pd_store_close(&chain.fix->store);
    assert_true(chain.is_done);
    assert_null(chain.fix->store);
}

static void a_stopped_store_refuses_changes_and_still_reads(void **state)
{
    static const step_t one[] = {{INSERT, "mem_1", NULL, 0, PD_OK}, {0}};
    static const pd_lane_t lanes[] = {PD_LANE_WRITE, PD_LANE_JOB};
    fixture_t *fix = *state;
    run_t run = {.steps = one};
    unit_result_t result = {PD_E_INTERNAL, 0};
    size_t i;

    submit(fix, &run);
    pd_store_stop(fix->store);
    assert_true(run.is_done);
    assert_int_equal(run.status, PD_OK);
    for (i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
        assert_int_equal(pd_store_submit(fix->store, lanes[i], pd_boot_in(WATCHDOG_MS), do_nothing,
                                         unit_done, &result),
                         PD_E_CLOSED);
    }
    assert_int_equal(pd_store_submit(fix->store, PD_LANE_LOOP, pd_boot_in(WATCHDOG_MS), do_nothing,
                                     unit_done, &result),
                     PD_OK);
    assert_int_equal(result.status, PD_OK);
    pd_store_stop(fix->store); /* once more, and NULL, is fine */
    pd_store_stop(NULL);
    pd_store_close(&fix->store);
    open_store(fix);
    assert_true(has_member(fix, "mem_1"));
}

/* --- failing disks -------------------------------------------------------- */

static void a_full_disk_acknowledges_nothing_of_the_group_and_heals(void **state)
{
    static const step_t before[] = {{INSERT, "mem_0", NULL, 0, PD_OK}, {0}};
    static const step_t small[] = {{INSERT, "mem_1", NULL, 0, PD_OK}, {0}};
    fixture_t *fix = *state;
    run_t run = {.steps = small};
    unit_result_t big = {PD_OK, 0};
    struct rlimit limit;
    struct rlimit tight;
    gate_t gate;

    assert_int_equal(write_unit(fix, before, NULL), PD_OK);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    close_gate(fix, &gate);
    submit(fix, &run);
    assert_int_equal(pd_store_submit(fix->store, PD_LANE_WRITE, pd_boot_in(WATCHDOG_MS),
                                     insert_much, unit_done, &big),
                     PD_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    tight = limit;
    tight.rlim_cur = 200000; /* the WAL so far fits, 300,000 bytes more don't */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    open_gate(fix, &gate);
    wait_for(fix, &big.is_done);
    wait_for(fix, &run.is_done);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(big.status, PD_E_IO);
    assert_int_equal(run.status, PD_E_IO);
    assert_int_equal(run.revision, 1);
    assert_false(has_member(fix, "mem_1"));
    /* Nothing sticks: the next group goes through. */
    assert_int_equal(write_unit(fix, small, NULL), PD_OK);
    assert_int_equal(run_unit(fix, PD_LANE_WRITE, insert_much), PD_OK);
    assert_true(has_member(fix, "mem_1"));
}

static void ids_sort_by_time_of_creation(void **state)
{
    apr_pool_t *pool = NULL;
    const char *before = "";
    int i;

    (void)state;
    assert_int_equal(apr_pool_create_unmanaged_ex(&pool, NULL, NULL), APR_SUCCESS);
    for (i = 0; i < 5000; i++) {
        const char *id = pd_store_new_id("mem", pool);

        assert_non_null(id);
        assert_int_equal(strlen(id), 4 + 26);
        assert_true(strncmp(id, "mem_", 4) == 0);
        assert_true(strcmp(before, id) < 0);
        before = id;
    }
    apr_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(an_object_is_found_by_id_and_by_key_of_its_kind),
        STORE_TEST(a_taken_key_or_id_is_a_conflict_that_changes_nothing),
        STORE_TEST(another_revision_than_expected_is_refused),
        STORE_TEST(names_off_their_bounds_are_refused),
        STORE_TEST(a_document_comes_back_as_it_went_in),
        STORE_TEST(a_list_is_in_id_order_and_goes_on_after_an_id),
        STORE_TEST(a_secret_stands_apart_and_goes_with_its_object),
        STORE_TEST(only_a_unit_that_changes_something_makes_a_revision),
        STORE_TEST(a_unit_sees_the_revision_that_it_makes),
        STORE_TEST(the_audit_id_of_a_change_is_kept_beside_its_revision),
        STORE_TEST(changes_name_each_object_once_oldest_first),
        STORE_TEST(changes_that_are_no_longer_kept_are_not_passed_off_as_whole),
        STORE_TEST(a_grant_comes_with_its_member_and_the_revision),
        STORE_TEST(one_unit_is_undone_while_its_neighbours_commit),
        STORE_TEST(a_full_write_queue_refuses_and_takes_again_when_reaped),
        STORE_TEST(a_full_job_queue_refuses),
        STORE_TEST(a_unit_whose_deadline_has_passed_does_not_run),
        STORE_TEST(a_job_that_reads_past_its_deadline_is_stopped),
        STORE_TEST(the_reading_lanes_cannot_write),
        STORE_TEST(a_completion_may_submit_to_the_loop_lane_and_a_unit_may_not),
        STORE_TEST(close_commits_what_is_queued_and_runs_its_completions),
        STORE_TEST(a_completion_that_submits_during_close_is_refused),
        STORE_TEST(a_stopped_store_refuses_changes_and_still_reads),
        STORE_TEST(a_full_disk_acknowledges_nothing_of_the_group_and_heals),
        cmocka_unit_test(ids_sort_by_time_of_creation),
    };

    if (apr_initialize() != APR_SUCCESS) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
