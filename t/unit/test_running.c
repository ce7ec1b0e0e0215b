/* Attempts that run, over the real trail: how they end, who may end them, when they count as interrupted, and what a restart finds. */
#include "policy_world.h"

#include "../../policyd/pd_running.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND       1000
#define DEADLINE_MS  60000

static pd_running_t *table(void)
{
    return world.core.policy->running;
}

/* --- beginning ------------------------------------------------------------------------ */

typedef struct appended {
    pd_status_t status;
    int64_t seq;
    int is_done;
} appended_t;

static void on_appended(pd_status_t status, int64_t seq, void *baton)
{
    appended_t *appended = baton;

    appended->status = status;
    appended->seq = seq;
    appended->is_done = 1;
}

static int64_t append(const pd_record_t *record)
{
    appended_t appended = {PD_E_INTERNAL, 0, 0};

    assert_int_equal(pd_trail_append(world.core.trail, record, on_appended, &appended), PD_OK);
    world_wait(&appended.is_done);
    assert_int_equal(appended.status, PD_OK);
    return appended.seq;
}

static pd_record_t begin_of(const char *child, int64_t deadline_ms)
{
    pd_record_t record;

    memset(&record, 0, sizeof(record));
    record.kind = PD_RECORD_BEGIN;
    record.member_id = "mem_1";
    record.role = "Member";
    record.grant_id = "grt_1";
    record.client = "claude/1";
    record.surface = "mcp";
    record.operation = "shop/get";
    record.tool = "shop__get";
    record.via = "direct";
    record.connector = "shop";
    record.connection = "shop";
    record.connection_id = "cxn_1";
    record.classification = "read";
    record.approved = "not_needed";
    record.arg_names = "[\"id\"]";
    record.arg_count = 2;
    record.arg_unknown = 1;
    record.child = child;
    record.deadline_ms = deadline_ms;
    record.trace_id = "0123456789abcdef0123456789abcdef";
    record.request_bytes = 9;
    record.revision = 5;
    return record;
}

/* An attempt of a child that lives. */
static int64_t begin(const char *child, int64_t deadline_ms)
{
    pd_record_t record = begin_of(child, deadline_ms);
    int64_t seq = append(&record);

    pd_running_seen(table(), child);
    assert_int_equal(pd_running_add(table(), seq, &record, NULL), PD_OK);
    return seq;
}

static const char *audit_of(int64_t seq)
{
    char *id = apr_palloc(world.scratch, MCP_MAX_ID + 1);

    pd_trail_id(world.core.trail, seq, id);
    return id;
}

/* --- ending ---------------------------------------------------------------------------- */

static json_t *end_body(const char *audit, const char *child, const char *outcome, const char *code)
{
    json_t *body = json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:i}", "audit", audit, "child", child, "outcome",
                             outcome, "duration_us", 1234, "upstream_status", 200, "response_bytes", 77,
                             "redactions", 3);

    if (code != NULL) {
        json_object_set_new(body, "code", json_string(code));
    }
    return body;
}

static mcp_code_t end(const char *audit, const char *child, const char *outcome, const char *code)
{
    world_ask(MCP_KIND_CALL_END, pd_on_call_end, end_body(audit, child, outcome, code));
    if (world.refused == MCP_CODE_NONE) {
        assert_true(mcp_json_bool(world.reply, "recorded"));
    }
    return world.refused;
}

static mcp_code_t end_well(int64_t seq, const char *child)
{
    return end(audit_of(seq), child, "ok", NULL);
}

/* One second's upkeep, with what it started. */
static void tick(void)
{
    pd_record_t note;

    pd_running_tick(&world.core, table());
    memset(&note, 0, sizeof(note));
    note.kind = PD_RECORD_END;
    note.outcome = "ok";
    note.operation = "barrier";
    (void)append(&note); /* the trail works in order: what was appended before is done */
}

static void beat(const char *child, json_t *running)
{
    world_ask(MCP_KIND_CHILD_BEAT, pd_on_child_beat, json_pack("{s:s,s:o}", "child", child, "running", running));
    assert_int_equal(world.refused, MCP_CODE_NONE);
}

/* Rows of an attempt after its begin. */
static world_rows_t ends_of(int64_t seq)
{
    world_rows_t rows = world_rows(seq);
    int i;
    int kept = 0;

    for (i = 0; i < rows.count; i++) {
        if (rows.rows[i].begin_seq == seq) {
            rows.rows[kept++] = rows.rows[i];
        }
    }
    rows.count = kept;
    return rows;
}

static void an_end_repeats_its_begin_and_adds_its_outcome(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);
    pd_record_t row;

    (void)state;
    assert_int_equal(pd_running_count(table()), 1);
    assert_int_equal(end(audit_of(seq), "c1", "error", "upstream_status"), MCP_CODE_NONE);
    assert_int_equal(pd_running_count(table()), 0);
    row = world_last_row();
    assert_int_equal(row.kind, PD_RECORD_END);
    assert_int_equal(row.begin_seq, seq);
    assert_int_equal(row.supersedes, 0);
    assert_string_equal(row.member_id, "mem_1");
    assert_string_equal(row.role, "Member");
    assert_string_equal(row.grant_id, "grt_1");
    assert_string_equal(row.client, "claude/1");
    assert_string_equal(row.surface, "mcp");
    assert_string_equal(row.operation, "shop/get");
    assert_string_equal(row.tool, "shop__get");
    assert_string_equal(row.via, "direct");
    assert_string_equal(row.connector, "shop");
    assert_string_equal(row.connection, "shop");
    assert_string_equal(row.connection_id, "cxn_1");
    assert_string_equal(row.classification, "read");
    assert_string_equal(row.arg_names, "[\"id\"]");
    assert_int_equal(row.arg_count, 2);
    assert_int_equal(row.arg_unknown, 1);
    assert_string_equal(row.child, "c1");
    assert_string_equal(row.trace_id, "0123456789abcdef0123456789abcdef");
    assert_string_equal(row.outcome, "error");
    assert_string_equal(row.error_code, "upstream_status");
    assert_int_equal(row.upstream_status, 200);
    assert_int_equal(row.duration_us, 1234);
    assert_int_equal(row.request_bytes, 9); /* the end says none: the begin's */
    assert_int_equal(row.response_bytes, 77);
    assert_int_equal(row.redactions, 3);
    assert_int_equal(row.revision, 5);
}

static void a_resent_end_is_recorded_once(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);
    int i;

    (void)state;
    for (i = 0; i < 3; i++) {
        assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE);
    }
    assert_int_equal(end(audit_of(seq), "c1", "error", "internal"), MCP_CODE_NONE); /* the first stands */
    assert_int_equal(ends_of(seq).count, 1);
    assert_string_equal(ends_of(seq).rows[0].outcome, "ok");
    assert_int_equal(pd_running_count(table()), 0);
    world_restart(); /* whose answer was lost with the last policyd asks the next one */
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE);
    assert_int_equal(ends_of(seq).count, 1);
}

static void nobody_ends_the_attempt_of_another_child(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);
    int64_t head = world_head();
    const char *const audits[] = {
        audit_of(seq), audit_of(seq + 1), audit_of(0), "", "1", "-", "1-1",
        apr_pstrcat(world.scratch, audit_of(seq), " ", NULL), apr_pstrcat(world.scratch, "0", audit_of(seq), NULL),
        "9223372036854775808-1", "x-y"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(audits); i++) {
        assert_int_equal(end(audits[i], i == 0 ? "c2" : "c1", "ok", NULL), MCP_CODE_NOT_FOUND);
    }
    assert_int_equal(end(audit_of(seq), "", "ok", NULL), MCP_CODE_NOT_FOUND);
    assert_int_equal(end(audit_of(seq), "C1", "ok", NULL), MCP_CODE_NOT_FOUND);
    assert_int_equal(world_head(), head);
    assert_int_equal(pd_running_count(table()), 1);
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE);
    assert_int_equal(end_well(seq, "c2"), MCP_CODE_NOT_FOUND); /* nor is told that it has ended */
}

static void outcomes_and_codes_are_those_of_the_list(void **state)
{
    static const struct {
        const char *outcome, *code;
        int is_good;
    } cases[] = {{"ok", NULL, 1},
                 {"error", "upstream_timeout", 1},
                 {"denied", "url_restricted", 1},
                 {"input_required", NULL, 1},
                 {"running", NULL, 0},
                 {"interrupted", NULL, 0},
                 {"", NULL, 0},
                 {"OK", NULL, 0},
                 {"error", "no_such_code", 0},
                 {"error", "", 0}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        int64_t seq = begin("c1", DEADLINE_MS);

        assert_int_equal(end(audit_of(seq), "c1", cases[i].outcome, cases[i].code),
                         cases[i].is_good ? MCP_CODE_NONE : MCP_CODE_MALFORMED);
        assert_int_equal(ends_of(seq).count, cases[i].is_good);
    }
}

/* Both come before the disk has the first. */
static void while_an_end_is_on_its_way_another_is_told_to_ask_again(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);
    int before = world.is_answered;

    (void)state;
    pd_on_call_end(world_ask_new(MCP_KIND_CALL_END, end_body(audit_of(seq), "c1", "ok", NULL)));
    assert_int_equal(world.is_answered, before);
    pd_on_call_end(world_ask_new(MCP_KIND_CALL_END, end_body(audit_of(seq), "c1", "ok", NULL)));
    assert_int_equal(world.is_answered, before + 1);
    assert_int_equal(world.refused, MCP_CODE_OVERLOADED);
    world_wait_for(&world.is_answered, before + 2);
    assert_int_equal(world.refused, MCP_CODE_NONE);
    assert_int_equal(ends_of(seq).count, 1);
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE);
}

static void an_end_that_the_trail_does_not_take_leaves_the_attempt_open(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);

    (void)state;
    pd_trail_stop(world.core.trail);
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_POLICY_UNAVAILABLE);
    assert_int_equal(pd_running_count(table()), 1);
    pd_running_tick(&world.core, table());
    world_restart();
    assert_int_equal(pd_running_count(table()), 1);
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE); /* offered again after a restart */
}

/* --- interruption -------------------------------------------------------------------------- */

static void three_missed_beats_interrupt(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);
    pd_record_t row;

    (void)state;
    world_pass_ms(5900);
    tick();
    assert_int_equal(ends_of(seq).count, 0);
    world_pass_ms(200);
    tick();
    assert_int_equal(ends_of(seq).count, 1);
    row = ends_of(seq).rows[0];
    assert_string_equal(row.outcome, "interrupted");
    assert_null(row.error_code);
    assert_string_equal(row.tool, "shop__get");
    assert_in_range(row.duration_us, 6000000, 30000000);
    assert_int_equal(pd_running_count(table()), 0);
    tick();
    assert_int_equal(ends_of(seq).count, 1); /* once */
}

static void a_child_that_beats_is_left_alone_until_the_deadline(void **state)
{
    int64_t seq = begin("c1", 20 * SECOND);
    int i;

    (void)state;
    for (i = 0; i < 10; i++) {
        world_pass_ms(2 * SECOND);
        beat("c1", json_pack("[s]", audit_of(seq)));
        tick();
        assert_int_equal(ends_of(seq).count, 0);
    }
    world_pass_ms(1900); /* an end on its way still has a moment */
    beat("c1", json_pack("[s]", audit_of(seq)));
    tick();
    assert_int_equal(ends_of(seq).count, 0);
    world_pass_ms(200);
    tick();
    assert_int_equal(ends_of(seq).count, 1);
    assert_string_equal(ends_of(seq).rows[0].outcome, "interrupted");
}

static void one_dead_child_takes_nobody_along(void **state)
{
    int64_t dead = begin("dead", DEADLINE_MS);
    int64_t alive = begin("alive", DEADLINE_MS);

    (void)state;
    world_pass_ms(5 * SECOND);
    beat("alive", json_pack("[s]", audit_of(alive)));
    world_pass_ms(2 * SECOND);
    tick();
    assert_int_equal(ends_of(dead).count, 1);
    assert_int_equal(ends_of(alive).count, 0);
    assert_int_equal(pd_running_count(table()), 1);
}

/* The plan never arrived: the child does not know the call and will not end it. */
static void a_call_that_its_child_does_not_know_is_interrupted(void **state)
{
    int64_t lost = begin("c1", DEADLINE_MS);
    int64_t other = begin("c2", DEADLINE_MS);
    int64_t known = begin("c1", DEADLINE_MS);

    (void)state;
    world_pass_ms(5 * SECOND);
    beat("c1", json_pack("[s]", audit_of(known))); /* its plan may still be on its way */
    beat("c2", json_array());
    tick();
    assert_int_equal(ends_of(lost).count, 0);
    world_pass_ms(1100);
    beat("c1", json_pack("[s,s,s]", audit_of(known), "garbage", audit_of(99999)));
    tick();
    assert_int_equal(ends_of(lost).count, 1);
    assert_string_equal(ends_of(lost).rows[0].outcome, "interrupted");
    assert_int_equal(ends_of(known).count, 0);
    assert_int_equal(ends_of(other).count, 0); /* another child's beat says nothing of it */
    beat("c2", json_array());
    tick();
    assert_int_equal(ends_of(other).count, 1);
}

static void a_late_end_supersedes_the_interruption(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);
    int64_t interrupted;
    world_rows_t rows;

    (void)state;
    world_pass_ms(7 * SECOND);
    tick();
    interrupted = ends_of(seq).rows[0].seq;
    assert_int_equal(end_well(seq, "c2"), MCP_CODE_NOT_FOUND);
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE);
    rows = ends_of(seq);
    assert_int_equal(rows.count, 2);
    assert_string_equal(rows.rows[1].outcome, "ok");
    assert_int_equal(rows.rows[1].supersedes, interrupted);
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE); /* resent */
    assert_int_equal(ends_of(seq).count, 2);
    assert_int_equal(pd_running_count(table()), 0);
    world_pass_ms(120 * SECOND);
    tick();
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE); /* and much later */
    assert_int_equal(ends_of(seq).count, 2);
}

static void an_end_that_comes_too_late_finds_nothing(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);

    (void)state;
    world_pass_ms(7 * SECOND);
    tick();
    world_pass_ms(61 * SECOND);
    tick();
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NOT_FOUND);
    assert_string_equal(ends_of(seq).rows[0].outcome, "interrupted");
    assert_int_equal(ends_of(seq).count, 1);
}

static void an_end_that_meets_the_interruption_on_its_way_supersedes_it(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);
    int before = world.is_answered;

    (void)state;
    world_pass_ms(7 * SECOND);
    pd_running_tick(&world.core, table()); /* not on the disk yet */
    pd_on_call_end(world_ask_new(MCP_KIND_CALL_END, end_body(audit_of(seq), "c1", "ok", NULL)));
    assert_int_equal(world.is_answered, before + 1);
    assert_int_equal(world.refused, MCP_CODE_OVERLOADED);
    tick();
    assert_int_equal(end_well(seq, "c1"), MCP_CODE_NONE); /* asked again */
    assert_int_equal(ends_of(seq).count, 2);
}

/* --- restarts -------------------------------------------------------------------------------- */

static void a_restart_finds_what_was_open(void **state)
{
    int64_t kept = begin("c1", DEADLINE_MS);
    int64_t lost = begin("c2", DEADLINE_MS);
    int64_t done = begin("c1", DEADLINE_MS);

    (void)state;
    assert_int_equal(end_well(done, "c1"), MCP_CODE_NONE);
    world_restart();
    assert_int_equal(pd_running_count(table()), 2);
    world_pass_ms(5 * SECOND);
    tick();
    assert_int_equal(pd_running_count(table()), 2); /* three beats from the restart on */
    beat("c1", json_pack("[s]", audit_of(kept)));
    world_pass_ms(2 * SECOND);
    tick();
    assert_int_equal(ends_of(lost).count, 1);
    assert_int_equal(ends_of(kept).count, 0);
    assert_int_equal(end_well(kept, "c1"), MCP_CODE_NONE); /* a child that outlived the restart */
    assert_string_equal(ends_of(kept).rows[0].member_id, "mem_1");
    assert_int_equal(end_well(lost, "c2"), MCP_CODE_NONE);
    assert_int_equal(ends_of(lost).count, 2);
    world_restart();
    assert_int_equal(pd_running_count(table()), 0);
}

static void an_interruption_before_the_restart_is_final_to_nobody(void **state)
{
    int64_t seq = begin("c1", DEADLINE_MS);

    (void)state;
    world_pass_ms(7 * SECOND);
    tick();
    assert_int_equal(ends_of(seq).count, 1);
    world_restart();
    /* its row can't be superseded any more, but it is not told as recorded either */
    assert_int_not_equal(end_well(seq, "c1"), MCP_CODE_NONE);
    assert_int_equal(ends_of(seq).count, 1);
}

static pd_status_t commit_with_audit(pd_tx_t *tx, void *baton)
{
    json_t *doc = json_object();
    pd_status_t status;

    pd_tx_audit(tx, baton);
    status = pd_tx_insert(tx, "role", pd_store_new_id("rol", pd_tx_pool(tx)), NULL, doc, NULL);
    json_decref(doc);
    return status;
}

static int64_t begin_change(const char *operation)
{
    pd_record_t record;

    memset(&record, 0, sizeof(record));
    record.kind = PD_RECORD_BEGIN;
    record.operation = operation;
    record.actor = "unix:0";
    record.surface = "admin";
    record.role = "Owner";
    record.deadline_ms = 30000;
    return append(&record);
}

/* policyd was killed between the begin of a control-plane change and its end. */
static void a_change_cut_off_by_a_crash_ends_as_the_store_says(void **state)
{
    int64_t made = begin_change("roles__create");
    int64_t not_made = begin_change("roles__update");
    char *audit = apr_pstrdup(world.scratch, audit_of(made));

    (void)state;
    assert_int_equal(world_unit(PD_LANE_WRITE, commit_with_audit, audit), PD_OK);
    world_restart();
    assert_int_equal(pd_running_count(table()), 2);
    tick();
    assert_int_equal(ends_of(made).count, 1);
    assert_string_equal(ends_of(made).rows[0].outcome, "ok");
    assert_string_equal(ends_of(made).rows[0].operation, "roles__create");
    assert_string_equal(ends_of(made).rows[0].actor, "unix:0");
    assert_int_equal(ends_of(not_made).count, 1);
    assert_string_equal(ends_of(not_made).rows[0].outcome, "interrupted");
    assert_int_equal(pd_running_count(table()), 0);
    tick();
    assert_int_equal(ends_of(made).count, 1);
    assert_int_equal(end(audit_of(made), "", "ok", NULL), MCP_CODE_NOT_FOUND); /* no child may end it */
}

/* --- places and children ------------------------------------------------------------------------ */

static void greet(const char *child, const char *server, int64_t server_calls, int64_t connection_calls)
{
    json_t *body = json_pack("{s:i,s:i,s:s,s:s}", "version_min", 1, "version_max", 1, "software", "t", "child",
                             child);

    if (server != NULL) {
        json_object_set_new(body, "server", json_string(server));
        json_object_set_new(body, "server_calls", json_integer(server_calls));
        json_object_set_new(body, "connection_calls", json_integer(connection_calls));
    }
    world_ask(MCP_KIND_HELLO, pd_on_hello, body);
    assert_int_equal(world.refused, MCP_CODE_NONE);
}

static mcp_code_t enter(const char *child, const char *connection, pd_running_place_t *place)
{
    return pd_running_enter(table(), child, connection, place);
}

static void children_of_one_server_share_its_caps(void **state)
{
    pd_running_place_t places[4];

    (void)state;
    greet("a1", "server-a", 3, 2);
    greet("a2", "server-a", 3, 2);
    greet("b1", "server-b", 3, 2);
    assert_int_equal(enter("a1", "cxn_1", &places[0]), MCP_CODE_NONE);
    assert_int_equal(enter("a2", "cxn_1", &places[1]), MCP_CODE_NONE);
    assert_int_equal(enter("a1", "cxn_1", &places[2]), MCP_CODE_RATE_LIMITED);
    assert_null(places[2].counts[0]);
    assert_int_equal(enter("a1", "cxn_2", &places[2]), MCP_CODE_NONE);
    assert_int_equal(enter("a2", "cxn_3", &places[3]), MCP_CODE_OVERLOADED);
    assert_int_equal(enter("b1", "cxn_1", &places[3]), MCP_CODE_NONE); /* another server has its own */
    pd_running_leave(&places[0]);
    pd_running_leave(&places[0]); /* an empty one */
    assert_int_equal(enter("a2", "cxn_3", &places[0]), MCP_CODE_NONE);
    assert_int_equal(enter("a2", "cxn_3", &places[0]), MCP_CODE_OVERLOADED);
    pd_running_leave(&places[0]); /* refused: nothing was taken */
    assert_int_equal(enter("a2", "cxn_3", &places[0]), MCP_CODE_OVERLOADED);
}

static void an_attempt_gives_its_place_back_however_it_ends(void **state)
{
    int round;

    (void)state;
    greet("a1", "server-a", 1, 1);
    for (round = 0; round < 3; round++) {
        pd_record_t record = begin_of("a1", DEADLINE_MS);
        pd_running_place_t place;
        pd_running_place_t second;
        int64_t seq;

        assert_int_equal(enter("a1", "cxn_1", &place), MCP_CODE_NONE);
        seq = append(&record);
        assert_int_equal(pd_running_add(table(), seq, &record, &place), PD_OK);
        assert_null(place.counts[0]);
        pd_running_leave(&place); /* it is the attempt's now */
        assert_int_equal(enter("a1", "cxn_1", &second), MCP_CODE_OVERLOADED);
        tick();
        if (round == 0) {
            assert_int_equal(end_well(seq, "a1"), MCP_CODE_NONE);
            assert_int_equal(end_well(seq, "a1"), MCP_CODE_NONE);
        } else {
            world_pass_ms(7 * SECOND);
            tick(); /* interrupted */
            assert_int_equal(end_well(seq, "a1"), MCP_CODE_NONE);
        }
        tick();
    }
    assert_int_equal(pd_running_count(table()), 0);
}

/* What a child says of its server may change while its calls run: no count is mistaken for another, or for one that is gone. */
static void another_hello_under_way_does_not_move_places(void **state)
{
    pd_record_t record = begin_of("a1", DEADLINE_MS);
    pd_running_place_t first;
    pd_running_place_t place;
    int64_t seqs[2];
    int i;

    (void)state;
    greet("a1", NULL, 0, 0);
    assert_int_equal(enter("a1", "cxn_1", &first), MCP_CODE_NONE); /* not counted */
    greet("a1", "server-a", 2, 2);
    seqs[0] = append(&record);
    assert_int_equal(pd_running_add(table(), seqs[0], &record, &first), PD_OK);
    assert_int_equal(enter("a1", "cxn_1", &place), MCP_CODE_NONE);
    seqs[1] = append(&record);
    assert_int_equal(pd_running_add(table(), seqs[1], &record, &place), PD_OK);
    greet("a1", "server-b", 2, 2);
    assert_int_equal(end_well(seqs[1], "a1"), MCP_CODE_NONE);
    tick(); /* counts that nobody holds go */
    assert_int_equal(end_well(seqs[0], "a1"), MCP_CODE_NONE);
    greet("a1", "server-a", 2, 2);
    for (i = 0; i < 2; i++) {
        assert_int_equal(enter("a1", "cxn_1", &place), MCP_CODE_NONE);
    }
    assert_int_equal(enter("a1", "cxn_1", &place), MCP_CODE_OVERLOADED); /* two, not three */
}

static void a_child_is_known_from_hello_on_and_for_an_hour_of_silence(void **state)
{
    (void)state;
    assert_false(pd_running_knows(table(), "a1"));
    pd_running_seen(table(), "a1"); /* a beat is no hello */
    assert_false(pd_running_knows(table(), "a1"));
    greet("a1", "server-a", 1, 1);
    assert_true(pd_running_knows(table(), "a1"));
    world_pass_ms(3599 * SECOND);
    tick();
    assert_true(pd_running_knows(table(), "a1")); /* and its caps with it */
    world_pass_ms(2 * SECOND);
    tick();
    assert_false(pd_running_knows(table(), "a1"));
}

static void many_attempts_come_and_go(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 500; i++) {
        int64_t seq = begin(i % 2 == 0 ? "c1" : "c2", DEADLINE_MS);

        assert_int_equal(end_well(seq, i % 2 == 0 ? "c1" : "c2"), MCP_CODE_NONE);
    }
    assert_int_equal(pd_running_count(table()), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_repeats_its_begin_and_adds_its_outcome, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_resent_end_is_recorded_once, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(nobody_ends_the_attempt_of_another_child, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(outcomes_and_codes_are_those_of_the_list, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(while_an_end_is_on_its_way_another_is_told_to_ask_again,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(an_end_that_the_trail_does_not_take_leaves_the_attempt_open,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(three_missed_beats_interrupt, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_child_that_beats_is_left_alone_until_the_deadline, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(one_dead_child_takes_nobody_along, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_call_that_its_child_does_not_know_is_interrupted, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_late_end_supersedes_the_interruption, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(an_end_that_comes_too_late_finds_nothing, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(an_end_that_meets_the_interruption_on_its_way_supersedes_it,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_restart_finds_what_was_open, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(an_interruption_before_the_restart_is_final_to_nobody,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_change_cut_off_by_a_crash_ends_as_the_store_says, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(children_of_one_server_share_its_caps, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(an_attempt_gives_its_place_back_however_it_ends, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(another_hello_under_way_does_not_move_places, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_child_is_known_from_hello_on_and_for_an_hour_of_silence,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(many_attempts_come_and_go, world_setup, world_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
