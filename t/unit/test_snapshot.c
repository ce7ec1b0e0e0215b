/* Snapshots over the real store: what following shares, that it equals loading anew whatever changes, and what holds where something
 * can't be read. */
#include "snapshot_fixture.h"

#include <fcntl.h>

/* --- what is shared ------------------------------------------------------------------------------ */

typedef struct shared {
    int ground, rulebook, toolboxes;
} shared_t;

/* One change, and the blocks that stay the same. *old is let go; the new one is handed back. */
static pd_snapshot_t *after(fixture_t *fix, pd_snapshot_t *old, shared_t wanted, const char *kind,
                            const char *id, const char *owner, json_t *doc)
{
    pd_snapshot_t *made;

    put(fix, kind, id, owner, doc);
    made = follow(fix, PD_LANE_LOOP, old);
    assert_ptr_not_equal(made, old);
    assert_true(made->revision > old->revision);
    assert_int_equal(made->ground == old->ground, wanted.ground);
    assert_int_equal(made->rulebook == old->rulebook, wanted.rulebook);
    assert_int_equal(made->toolboxes == old->toolboxes, wanted.toolboxes);
    expect_as_loaded(fix, made, 0);
    return made;
}

static const shared_t all_shared = {1, 1, 1}, but_ground = {0, 1, 1}, but_rules = {1, 0, 1},
                      but_boxes = {1, 1, 0};

static void what_nothing_is_made_of_changes_no_block(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    fill(fix);
    old = load(fix);
    made = follow(fix, PD_LANE_LOOP, old); /* nothing has changed at all */
    assert_int_equal(made->revision, old->revision);
    assert_ptr_equal(made->ground, old->ground);
    assert_ptr_equal(made->rulebook, old->rulebook);
    assert_ptr_equal(made->toolboxes, old->toolboxes);
    pd_snapshot_free(&made);
    made = after(fix, old, all_shared, "role", "rol_1", NULL, json_pack("{s:s}", "name", "A"));
    pd_snapshot_free(&made);
    pd_snapshot_free(&old);
}

static void a_setting_changes_no_block(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    fill(fix);
    put(fix, "setting", "set_2", NULL, json_pack("{s:s,s:b}", "key", "c.d", "value", 1));
    put(fix, "setting", "set_3", NULL, json_pack("{s:s,s:s}", "key", "e.f", "value", "text"));
    put(fix, "setting", "set_4", NULL,
        json_pack("{s:s,s:i,s:s}", "key", "a.b", "value", 7, "client", "claude"));
    old = load(fix);
    made = after(fix, old, all_shared, "setting", "set_1", NULL, setting_doc("a.b", 2));
    assert_int_equal(pd_snapshot_setting_int(old, "a.b", 0), 1);
    assert_int_equal(pd_snapshot_setting_int(made, "a.b", 0), 2);
    assert_int_equal(pd_snapshot_setting_int(made, "a.b:client:claude", 0), 7);
    assert_int_equal(pd_snapshot_setting_int(made, "c.d", 9), 9); /* of another type */
    assert_int_equal(pd_snapshot_setting_bool(made, "c.d", 0), 1);
    assert_int_equal(pd_snapshot_setting_bool(made, "a.b", 0), 0);
    assert_int_equal(pd_snapshot_setting_bool(made, "a.b", 1), 1);
    assert_string_equal(pd_snapshot_setting(made, "e.f", ""), "text");
    assert_string_equal(pd_snapshot_setting(made, "x.y", "otherwise"), "otherwise");
    pd_snapshot_free(&old);
    assert_string_equal(pd_snapshot_setting(made, "e.f", ""), "text"); /* its own copy */
    pd_snapshot_free(&made);
}

static void a_rule_rebuilds_its_targets_layer_alone(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    fill(fix);
    old = load(fix);
    made = after(fix, old, but_rules, "restriction", "rst_1", NULL, rule_doc("allow", "role", "A"));
    assert_ptr_not_equal(in(made->rulebook->rules, "rst_1"), in(old->rulebook->rules, "rst_1"));
    assert_ptr_equal(in(made->rulebook->rules, "rst_2"), in(old->rulebook->rules, "rst_2"));
    assert_ptr_equal(in(made->rulebook->rules, "rst_4"), in(old->rulebook->rules, "rst_4"));
    assert_ptr_not_equal(in(made->rulebook->by_role, "A"), in(old->rulebook->by_role, "A"));
    assert_ptr_equal(in(made->rulebook->by_role, "B"), in(old->rulebook->by_role, "B"));
    assert_ptr_equal(in(made->rulebook->by_member, "mem_1"), in(old->rulebook->by_member, "mem_1"));
    pd_snapshot_free(&old);
    old = made;
    /* a new one for somebody who had none */
    made = after(fix, old, but_rules, "restriction", "rst_5", "mem_2", rule_doc("block", "member", "mem_2"));
    assert_null(in(old->rulebook->by_member, "mem_2"));
    assert_non_null(in(made->rulebook->by_member, "mem_2"));
    assert_ptr_equal(in(made->rulebook->by_role, "A"), in(old->rulebook->by_role, "A"));
    pd_snapshot_free(&old);
    old = made;
    /* and its end */
    made = after(fix, old, but_rules, "restriction", "rst_5", NULL, NULL);
    assert_null(in(made->rulebook->by_member, "mem_2"));
    assert_null(in(made->rulebook->targets, "rst_5"));
    assert_ptr_equal(in(made->rulebook->by_role, "A"), in(old->rulebook->by_role, "A"));
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

static void a_rule_that_moves_rebuilds_both_layers(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    fill(fix);
    put(fix, "restriction", "rst_6", NULL, rule_doc("block", "role", "C"));
    old = load(fix);
    made = after(fix, old, but_rules, "restriction", "rst_1", NULL, rule_doc("block", "role", "B"));
    assert_ptr_not_equal(in(made->rulebook->by_role, "A"), in(old->rulebook->by_role, "A"));
    assert_ptr_not_equal(in(made->rulebook->by_role, "B"), in(old->rulebook->by_role, "B"));
    assert_ptr_equal(in(made->rulebook->by_role, "C"), in(old->rulebook->by_role, "C"));
    assert_ptr_equal(in(made->rulebook->by_member, "mem_1"), in(old->rulebook->by_member, "mem_1"));
    assert_string_equal(in(made->rulebook->targets, "rst_1"), "role:B");
    pd_snapshot_free(&old);
    old = made;
    /* the only one of its target leaves nothing behind; a member's id is no role's name */
    made = after(fix, old, but_rules, "restriction", "rst_6", "A", rule_doc("block", "member", "A"));
    assert_null(in(made->rulebook->by_role, "C"));
    assert_non_null(in(made->rulebook->by_member, "A"));
    assert_ptr_equal(in(made->rulebook->by_role, "A"), in(old->rulebook->by_role, "A"));
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

static void a_toolbox_changes_itself_alone(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    fill(fix);
    old = load(fix);
    made = after(fix, old, but_boxes, "toolbox", "tbx_1", NULL, toolbox_doc("sold", "A"));
    assert_ptr_not_equal(in(made->toolboxes->by_id, "tbx_1"), in(old->toolboxes->by_id, "tbx_1"));
    assert_ptr_equal(in(made->toolboxes->by_id, "tbx_2"), in(old->toolboxes->by_id, "tbx_2"));
    assert_null(in(made->toolboxes->by_name, "sales"));
    assert_ptr_equal(in(made->toolboxes->by_name, "sold"), in(made->toolboxes->by_id, "tbx_1"));
    pd_snapshot_free(&old);
    old = made;
    made = after(fix, old, but_boxes, "toolbox", "tbx_1", NULL, NULL);
    assert_int_equal(made->toolboxes->sorted->nelts, 1);
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

static void a_connection_changes_itself_alone(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    fill(fix);
    old = load(fix);
    made = after(fix, old, but_ground, "connection", "cxn_1", NULL, connection_doc("con_1", "store"));
    assert_ptr_not_equal(in(made->ground->connections, "cxn_1"), in(old->ground->connections, "cxn_1"));
    assert_ptr_equal(in(made->ground->connections, "cxn_2"), in(old->ground->connections, "cxn_2"));
    assert_ptr_equal(in(made->ground->connections, "cxn_3"), in(old->ground->connections, "cxn_3"));
    assert_ptr_equal(in(made->ground->connectors, "con_1"), in(old->ground->connectors, "con_1"));
    assert_ptr_equal(pd_snapshot_connection(made, "cxn_1"),
                     pd_snapshot_reach(made, "mem_1", "store", 5));
    assert_ptr_equal(pd_snapshot_connection(made, "cxn_2"), pd_snapshot_reach(made, "mem_1", "mine", 4));
    assert_null(pd_snapshot_reach(made, "mem_2", "mine", 4));
    assert_null(pd_snapshot_reach(made, "mem_1", "shop", 4));
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

static void a_connector_takes_its_connections_along(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    fill(fix);
    old = load(fix);
    made = after(fix, old, but_ground, "connector", "con_1", NULL, connector_doc("store", 1));
    assert_ptr_not_equal(in(made->ground->connectors, "con_1"), in(old->ground->connectors, "con_1"));
    assert_ptr_equal(in(made->ground->connectors, "con_2"), in(old->ground->connectors, "con_2"));
    assert_ptr_not_equal(in(made->ground->connections, "cxn_1"), in(old->ground->connections, "cxn_1"));
    assert_ptr_not_equal(in(made->ground->connections, "cxn_2"), in(old->ground->connections, "cxn_2"));
    assert_ptr_equal(in(made->ground->connections, "cxn_3"), in(old->ground->connections, "cxn_3"));
    assert_null(in(made->ground->by_slug, "shop"));
    assert_ptr_equal(in(made->ground->by_slug, "store"), pd_snapshot_connector(made, "con_1"));
    assert_int_equal(pd_snapshot_connection(made, "cxn_1")->tools->nelts, 1);
    pd_snapshot_free(&old);
    old = made;
    made = after(fix, old, but_ground, "connector", "con_1", NULL, NULL);
    assert_null(pd_snapshot_connector(made, "con_1"));
    assert_null(pd_snapshot_connection(made, "cxn_1"));
    assert_string_equal(in(made->ground->left_out, "cxn_1"), "con_1");
    pd_snapshot_free(&old);
    old = made;
    made = after(fix, old, but_ground, "connector", "con_1", NULL, connector_doc("shop", 2));
    assert_non_null(pd_snapshot_connection(made, "cxn_1"));
    assert_int_equal(apr_hash_count(made->ground->left_out), 0);
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

/* A connection in use outlives every snapshot that has it. */
static void a_part_in_use_outlives_its_snapshot(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *snapshot;
    pd_connection_t *held;
    pd_connection_t *none = NULL;

    fill(fix);
    snapshot = load(fix);
    held = pd_snapshot_connection(snapshot, "cxn_1");
    pd_snapshot_retain(held);
    pd_snapshot_free(&snapshot);
    assert_null(snapshot);
    assert_string_equal(held->label, "shop");
    assert_string_equal(held->connector->slug, "shop");
    assert_string_equal(pd_snapshot_tool(held, "shop__op_1")->operation->method, "GET");
    pd_snapshot_release(&held);
    assert_null(held);
    pd_snapshot_retain(none);
    pd_snapshot_release(&none);
    pd_snapshot_free(&snapshot);
}

/* --- what can't be read ---------------------------------------------------------------------------- */

/* Sends what is written to stderr to a file, until heard(). */
static int listen_in(const fixture_t *fix)
{
    char path[512];
    int saved = dup(STDERR_FILENO);
    int fd;

    in_dir(fix, "log", path);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(saved >= 0 && fd >= 0);
    (void)fflush(stderr);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    (void)close(fd);
    return saved;
}

/* How often `word` was written since. */
static int heard(const fixture_t *fix, int saved, const char *word)
{
    char path[512];
    char text[16384] = "";
    const char *at = text;
    int count = 0;
    FILE *file;

    (void)fflush(stderr);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    in_dir(fix, "log", path);
    file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    (void)fclose(file);
    (void)unlink(path);
    while ((at = strstr(at, word)) != NULL) {
        count++;
        at++;
    }
    return count;
}

static void a_rule_that_cannot_be_read_denies_its_target_everything(void **state)
{
    static const char *const broken[] = {
        "{\"effect\":\"allow\",\"target\":{\"role\":\"A\"}}",
        "{\"effect\":\"permit\",\"target\":{\"role\":\"A\"},\"items\":[]}",
        "{\"effect\":\"allow\",\"target\":{\"role\":\"A\"},\"items\":[{\"service\":\"con_1\"}]}",
        "{\"effect\":\"block\",\"target\":{\"role\":\"A\"},\"items\":[{\"connector\":7}]}"};
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;
    size_t i;

    fill(fix);
    old = load(fix);
    assert_int_equal(governed(old, "mem_9", "A"), PD_GOVERNED_BY_ROLES);
    for (i = 0; i < COUNT(broken); i++) {
        int saved = listen_in(fix);

        put(fix, "restriction", "rst_1", NULL, json_loads(broken[i], 0, NULL));
        made = follow(fix, PD_LANE_LOOP, old);
        assert_int_equal(heard(fix, saved, "PD0103"), 1);
        expect_as_loaded(fix, made, (int)i);
        assert_int_equal(governed(made, "mem_9", "A"), PD_GOVERNED_UNREADABLE);
        assert_int_equal(governed(made, "mem_9", "B"), PD_GOVERNED_BY_ROLES);
        assert_int_equal(governed(made, "mem_9", "C"), PD_GOVERNED_FREE);
        assert_int_equal(governed(made, "mem_1", "A"), PD_GOVERNED_BY_USER); /* his own replaces the roles' */
        assert_int_equal(governed(made, NULL, "A"), PD_GOVERNED_FREE);
        assert_string_equal(in(made->rulebook->targets, "rst_1"), "role:A");
        assert_null(in(made->rulebook->rules, "rst_1"));
        assert_ptr_equal(in(made->rulebook->by_role, "B"), in(old->rulebook->by_role, "B"));
        pd_snapshot_free(&old);
        old = made;
    }
    /* it stays so when another rule of the target changes, which is not told again */
    {
        int saved = listen_in(fix);

        put(fix, "restriction", "rst_2", NULL, rule_doc("block", "role", "A"));
        made = follow(fix, PD_LANE_LOOP, old);
        assert_int_equal(heard(fix, saved, "PD0103"), 0);
        assert_int_equal(governed(made, "mem_9", "A"), PD_GOVERNED_UNREADABLE);
        pd_snapshot_free(&old);
        old = made;
    }
    put(fix, "restriction", "rst_2", NULL, NULL); /* also when it is the only one */
    made = follow(fix, PD_LANE_LOOP, old);
    assert_int_equal(governed(made, "mem_9", "A"), PD_GOVERNED_UNREADABLE);
    pd_snapshot_free(&old);
    old = made;
    put(fix, "restriction", "rst_1", NULL, rule_doc("block", "role", "A"));
    made = follow(fix, PD_LANE_LOOP, old);
    assert_int_equal(governed(made, "mem_9", "A"), PD_GOVERNED_BY_ROLES);
    expect_as_loaded(fix, made, 0);
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

static void a_rule_for_nobody_knows_whom_denies_everybody_everything(void **state)
{
    static const char *const broken[] = {
        "{\"effect\":\"allow\",\"items\":[]}",
        "{\"effect\":\"allow\",\"target\":\"A\",\"items\":[]}",
        "{\"effect\":\"allow\",\"target\":{},\"items\":[]}",
        "{\"effect\":\"allow\",\"target\":{\"role\":\"\"},\"items\":[]}",
        "{\"effect\":\"allow\",\"target\":{\"role\":7},\"items\":[]}",
        "{\"effect\":\"allow\",\"target\":{\"group\":\"A\"},\"items\":[]}",
        "{\"effect\":\"allow\",\"target\":{\"role\":\"A\",\"member\":\"mem_1\"},\"items\":[]}",
        "[]", "{}"};
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;
    pd_rules_t rules;
    size_t i;

    fill(fix);
    old = load(fix);
    for (i = 0; i < COUNT(broken); i++) {
        int saved = listen_in(fix);

        put(fix, "restriction", "rst_7", NULL, json_loads(broken[i], 0, NULL));
        made = follow(fix, PD_LANE_LOOP, old);
        assert_int_equal(heard(fix, saved, "PD0104"), 1);
        expect_as_loaded(fix, made, (int)i);
        assert_true(made->rulebook->has_lost_target);
        assert_int_equal(governed(made, "mem_1", "A"), PD_GOVERNED_UNREADABLE);
        assert_int_equal(governed(made, "mem_9", "A"), PD_GOVERNED_UNREADABLE);
        assert_int_equal(governed(made, "mem_9", "C"), PD_GOVERNED_UNREADABLE);
        assert_int_equal(governed(made, NULL, "A"), PD_GOVERNED_FREE);
        rules_for(made, "mem_9", "A", &rules);
        assert_int_equal(rules.layers->nelts, 0);
        /* nothing else is touched by it */
        assert_ptr_equal(in(made->rulebook->by_role, "A"), in(old->rulebook->by_role, "A"));
        pd_snapshot_free(&old);
        old = made;
    }
    put(fix, "restriction", "rst_3", NULL, rule_doc("allow", "role", "B")); /* another change changes nothing in that */
    made = follow(fix, PD_LANE_LOOP, old);
    assert_true(made->rulebook->has_lost_target);
    pd_snapshot_free(&old);
    old = made;
    put(fix, "restriction", "rst_7", NULL, NULL);
    made = follow(fix, PD_LANE_LOOP, old);
    assert_false(made->rulebook->has_lost_target);
    assert_int_equal(governed(made, "mem_9", "C"), PD_GOVERNED_FREE);
    expect_as_loaded(fix, made, 0);
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

static pd_status_t write_many_rules(pd_tx_t *tx, void *baton)
{
    const int *count = baton;
    pd_status_t status = PD_OK;
    int i;

    for (i = 0; status == PD_OK && i < *count; i++) {
        change_t change = {"restriction", apr_psprintf(pd_tx_pool(tx), "rst_%06d", i), NULL,
                           rule_doc("block", "role", "A")};

        status = put_object(tx, &change);
        json_decref(change.doc);
    }
    return status;
}

static void more_rules_than_a_target_may_have_are_as_if_unreadable(void **state)
{
    fixture_t *fix = *state;
    int count = PD_MAX_RULES;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    assert_int_equal(in_unit(fix, PD_LANE_WRITE, write_many_rules, &count), PD_OK);
    old = load(fix);
    assert_int_equal(governed(old, "mem_9", "A"), PD_GOVERNED_BY_ROLES);
    put(fix, "restriction", "rst_more", NULL, rule_doc("block", "role", "A"));
    made = follow(fix, PD_LANE_LOOP, old);
    assert_int_equal(governed(made, "mem_9", "A"), PD_GOVERNED_UNREADABLE);
    expect_as_loaded(fix, made, 0);
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

static void a_toolbox_that_cannot_be_read_is_left_out(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;
    int saved;

    fill(fix);
    old = load(fix);
    saved = listen_in(fix);
    put(fix, "toolbox", "tbx_1", NULL, json_pack("{s:s}", "name", "sales"));
    made = follow(fix, PD_LANE_LOOP, old);
    assert_int_equal(heard(fix, saved, "PD0105"), 1);
    assert_null(in(made->toolboxes->by_id, "tbx_1"));
    assert_null(in(made->toolboxes->by_name, "sales"));
    assert_int_equal(made->toolboxes->sorted->nelts, 1);
    expect_as_loaded(fix, made, 0);
    pd_snapshot_free(&old);
    old = made;
    /* of two that share a name, which only a store written by others has, the older is the one */
    put(fix, "toolbox", "tbx_1", NULL, toolbox_doc("support", "A"));
    made = follow(fix, PD_LANE_LOOP, old);
    assert_int_equal(made->toolboxes->sorted->nelts, 1);
    assert_ptr_equal(in(made->toolboxes->by_name, "support"), in(made->toolboxes->by_id, "tbx_1"));
    assert_non_null(in(made->toolboxes->by_id, "tbx_2"));
    expect_as_loaded(fix, made, 0);
    pd_snapshot_free(&old);
    old = made;
    put(fix, "toolbox", "tbx_1", NULL, NULL);
    made = follow(fix, PD_LANE_LOOP, old);
    assert_ptr_equal(in(made->toolboxes->by_name, "support"), in(made->toolboxes->by_id, "tbx_2"));
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

/* --- following equals loading ------------------------------------------------------------------------ */

/* One round: some units of random writes, maybe a dry run, then a following, which must equal a loading. */
static pd_snapshot_t *random_round(fixture_t *fix, random_writes_t *writes, pd_snapshot_t *old, int round)
{
    int units = 1 + pick(writes, 3);
    pd_snapshot_t *made;

    for (; units > 0; units--) {
        assert_int_equal(in_unit(fix, PD_LANE_WRITE, write_unit, writes), PD_OK);
    }
    if (pick(writes, 3) == 0) {
        trial_t trial = {writes, old, NULL, NULL, 0};
        const char *before = snapshot_text(old);

        assert_int_equal(in_unit(fix, PD_LANE_WRITE, try_unit, &trial), PD_E_ROLLBACK);
        expect_equal(trial.followed, trial.loaded, round);
        expect_equal(snapshot_text(old), before, round);
        assert_true(trial.revision >= old->revision); /* the same where nothing was there to delete */
    }
    made = follow(fix, pick(writes, 4) ? PD_LANE_LOOP : PD_LANE_JOB, old);
    expect_as_loaded(fix, made, round);
    return made;
}

static void following_any_changes_equals_loading_anew(void **state)
{
    fixture_t *fix = *state;
    random_writes_t writes;
    pd_snapshot_t *current;
    pd_snapshot_t *kept = NULL; /* an old one that somebody still reads */
    apr_pool_t *kept_pool = NULL;
    const char *kept_text = NULL;
    int round;

    pd_log_open(0, PD_LOG_ERR - 1); /* what is left out is told each time */
    random_writes_begin(&writes, 4711);
    current = load(fix);
    assert_int_equal(apr_pool_create(&kept_pool, NULL), APR_SUCCESS);
    for (round = 0; round < 300; round++) {
        pd_snapshot_t *made;

        apr_pool_clear(pool);
        made = random_round(fix, &writes, current, round);
        if (round % 10 == 0) {
            if (kept != NULL) {
                expect_equal(snapshot_text(kept), kept_text, round); /* immutable */
                pd_snapshot_free(&kept);
            }
            apr_pool_clear(kept_pool);
            kept = pd_snapshot_hold(current);
            kept_text = apr_pstrdup(kept_pool, snapshot_text(kept));
        }
        pd_snapshot_free(&current);
        current = made;
    }
    expect_equal(snapshot_text(kept), kept_text, round);
    pd_snapshot_free(&current);
    pd_snapshot_free(&kept);
    apr_pool_destroy(kept_pool);
    random_writes_end(&writes);
    pd_log_open(0, PD_LOG_ERR);
}

static void changes_beyond_what_is_kept_are_read_anew(void **state)
{
    fixture_t *fix = *state;
    pd_snapshot_t *old;
    pd_snapshot_t *made;

    fill(fix);
    old = load(fix);
    put(fix, "restriction", "rst_1", NULL, NULL);
    with_sqlite(fix, "UPDATE policy SET floor = revision; DELETE FROM change");
    put(fix, "toolbox", "tbx_1", NULL, NULL);
    made = follow(fix, PD_LANE_LOOP, old);
    expect_as_loaded(fix, made, 0);
    assert_null(in(made->rulebook->rules, "rst_1"));
    pd_snapshot_free(&old);
    old = made;
    /* a store that was put back to an earlier state */
    old->revision += 100;
    made = follow(fix, PD_LANE_LOOP, old);
    expect_as_loaded(fix, made, 0);
    pd_snapshot_free(&old);
    pd_snapshot_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SNAPSHOT_TEST(what_nothing_is_made_of_changes_no_block),
        SNAPSHOT_TEST(a_setting_changes_no_block),
        SNAPSHOT_TEST(a_rule_rebuilds_its_targets_layer_alone),
        SNAPSHOT_TEST(a_rule_that_moves_rebuilds_both_layers),
        SNAPSHOT_TEST(a_toolbox_changes_itself_alone),
        SNAPSHOT_TEST(a_connection_changes_itself_alone),
        SNAPSHOT_TEST(a_connector_takes_its_connections_along),
        SNAPSHOT_TEST(a_part_in_use_outlives_its_snapshot),
        SNAPSHOT_TEST(a_rule_that_cannot_be_read_denies_its_target_everything),
        SNAPSHOT_TEST(a_rule_for_nobody_knows_whom_denies_everybody_everything),
        SNAPSHOT_TEST(more_rules_than_a_target_may_have_are_as_if_unreadable),
        SNAPSHOT_TEST(a_toolbox_that_cannot_be_read_is_left_out),
        SNAPSHOT_TEST(following_any_changes_equals_loading_anew),
        SNAPSHOT_TEST(changes_beyond_what_is_kept_are_read_anew),
    };

    json_object_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
