/* The query copy: what it shows, how it keeps up, who can read it, and that nobody can hold it
 * against the trail. */
#include "../../policyd/pd_audit.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_general.h>
#include <cmocka.h>
#include <sqlite3.h>

#define WATCHDOG_MS 60000
#define SOME_GID    54321

typedef struct fixture {
    char dir[256];
    int wake_fd;
    int gid;
    pd_trail_t *trail;
    pd_audit_t *audit;
    char why[512];
} fixture_t;

static void wake(void *baton)
{
    const fixture_t *fix = baton;
    uint64_t one = 1;

    assert_int_equal(write(fix->wake_fd, &one, sizeof(one)), sizeof(one));
}

static void open_both(fixture_t *fix)
{
    fix->why[0] = '\0';
    if (pd_trail_open(fix->dir, wake, fix, &fix->trail, fix->why, sizeof(fix->why)) != PD_OK
        || pd_audit_open(fix->dir, fix->gid, fix->trail, &fix->audit, fix->why, sizeof(fix->why))
               != PD_OK) {
        fail_msg("%s", fix->why);
    }
}

static void close_both(fixture_t *fix)
{
    pd_audit_close(&fix->audit);
    pd_trail_close(&fix->trail);
}

static int set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");
    fixture_t *fix = calloc(1, sizeof(*fix));

    assert_non_null(fix);
    (void)snprintf(fix->dir, sizeof(fix->dir), "%s/mcp-audit-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    assert_non_null(mkdtemp(fix->dir));
    fix->gid = geteuid() == 0 ? SOME_GID : -1; /* only root can give files to a foreign group */
    fix->wake_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(fix->wake_fd >= 0);
    open_both(fix);
    *state = fix;
    return 0;
}

static void in_dir(const fixture_t *fix, const char *file, char *path)
{
    (void)snprintf(path, 512, "%s/%s", fix->dir, file);
}

static const char *const audit_files[] = {"audit.db", "audit.db-wal", "audit.db-shm"};
static const char *const trail_files[] = {"trail.db", "trail.db-wal", "trail.db-shm"};

static void remove_files(const fixture_t *fix, const char *const *files)
{
    char path[512];
    size_t i;

    for (i = 0; i < 3; i++) {
        in_dir(fix, files[i], path);
        (void)unlink(path);
    }
}

static int tear_down(void **state)
{
    fixture_t *fix = *state;

    close_both(fix);
    remove_files(fix, audit_files);
    remove_files(fix, trail_files);
    assert_int_equal(rmdir(fix->dir), 0);
    (void)close(fix->wake_fd);
    free(fix);
    return 0;
}

typedef struct ack {
    pd_status_t status;
    int64_t seq;
    int is_done;
} ack_t;

static void note_ack(pd_status_t status, int64_t seq, void *baton)
{
    ack_t *ack = baton;

    ack->status = status;
    ack->seq = seq;
    ack->is_done = 1;
}

static int64_t append(fixture_t *fix, const pd_record_t *record)
{
    ack_t ack = {PD_E_INTERNAL, 0, 0};

    assert_int_equal(pd_trail_append(fix->trail, record, note_ack, &ack), PD_OK);
    while (!ack.is_done) {
        struct pollfd ready = {fix->wake_fd, POLLIN, 0};
        uint64_t count;

        assert_int_equal(poll(&ready, 1, WATCHDOG_MS), 1);
        assert_int_equal(read(fix->wake_fd, &count, sizeof(count)), sizeof(count));
        pd_trail_reap(fix->trail);
    }
    assert_int_equal(ack.status, PD_OK);
    return ack.seq;
}

static json_t *list(fixture_t *fix, const pd_audit_query_t *query)
{
    json_t *rows = NULL;

    assert_int_equal(pd_audit_list(fix->audit, query, pd_boot_in(WATCHDOG_MS), &rows), PD_OK);
    assert_true(json_is_array(rows));
    return rows;
}

/* The seqs that a query finds, in its order: "3 1 ". */
static void expect_seqs(fixture_t *fix, const pd_audit_query_t *query, const char *want)
{
    json_t *rows = list(fix, query);
    char seqs[256] = "";
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row) {
        size_t used = strlen(seqs);

        (void)snprintf(seqs + used, sizeof(seqs) - used, "%lld ",
                       (long long)json_integer_value(json_object_get(row, "seq")));
    }
    assert_string_equal(seqs, want);
    json_decref(rows);
}

static json_t *get(fixture_t *fix, int64_t seq)
{
    char id[48];
    json_t *row = NULL;

    pd_trail_id(fix->trail, seq, id);
    assert_int_equal(pd_audit_get(fix->audit, id, pd_boot_in(WATCHDOG_MS), &row), PD_OK);
    assert_string_equal(json_string_value(json_object_get(row, "audit_id")), id);
    return row;
}

static void expect_text(const json_t *row, const char *name, const char *want)
{
    const json_t *value = json_object_get(row, name);

    if (want == NULL) {
        assert_true(json_is_null(value));
        return;
    }
    if (!json_is_string(value) || strcmp(json_string_value(value), want) != 0) {
        fail_msg("%s is not %s", name, want);
    }
}

static void expect_number(const json_t *row, const char *name, int64_t want)
{
    const json_t *value = json_object_get(row, name);

    if (!json_is_integer(value) || json_integer_value(value) != want) {
        fail_msg("%s is not %lld", name, (long long)want);
    }
}

static const pd_record_t a_begin = {
    .kind = PD_RECORD_BEGIN,
    .member_id = "mem_1",
    .role = "Member,Writer",
    .grant_id = "gra_1",
    .client = "client/1",
    .surface = "mcp",
    .operation = "notion/search",
    .tool = "legal__search",
    .via = "direct",
    .connector = "notion",
    .connection = "legal",
    .connection_id = "con_1",
    .classification = "read",
    .approved = "not_needed",
    .arg_names = "[\"query\",\"limit\"]",
    .arg_count = 3,
    .arg_unknown = 1,
    .trace_id = "0af7651916cd43dd8448eb211c80319c",
    .request_bytes = 100,
    .revision = 7,
};

static pd_record_t end_of(int64_t begin_seq, const char *outcome)
{
    return (pd_record_t){.kind = PD_RECORD_END, .begin_seq = begin_seq, .outcome = outcome};
}

/* --- rows ----------------------------------------------------------------- */

static void an_attempt_runs_until_its_end_arrives_in_the_same_row(void **state)
{
    fixture_t *fix = *state;
    int64_t seq = append(fix, &a_begin);
    json_t *row = get(fix, seq);
    pd_record_t end = end_of(seq, "error");

    expect_text(row, "outcome", "running");
    expect_text(row, "member", "mem_1"); /* nobody has told the email */
    expect_text(row, "member_name", NULL);
    expect_text(row, "actor", NULL);
    expect_text(row, "error_code", NULL);
    assert_true(json_is_null(json_object_get(row, "ended_us")));
    assert_true(json_is_null(json_object_get(row, "upstream_status")));
    json_decref(row);

    end.error_code = "upstream_failed";
    end.upstream_status = 502;
    end.duration_us = 1234;
    end.response_bytes = 55;
    end.redactions = 2;
    end.detail = "upstream answered";
    (void)append(fix, &end);
    row = get(fix, seq);
    expect_number(row, "seq", seq);
    expect_text(row, "outcome", "error");
    expect_text(row, "error_code", "upstream_failed");
    expect_number(row, "upstream_status", 502);
    expect_number(row, "duration_us", 1234);
    expect_number(row, "request_bytes", 100);
    expect_number(row, "response_bytes", 55);
    expect_number(row, "redactions", 2);
    expect_number(row, "revision", 7);
    expect_number(row, "arg_count", 3);
    expect_number(row, "arg_unknown", 1);
    expect_text(row, "role", "Member,Writer");
    expect_text(row, "tool", "legal__search");
    expect_text(row, "connection_id", "con_1");
    expect_text(row, "trace_id", "0af7651916cd43dd8448eb211c80319c");
    expect_text(row, "detail", "upstream answered");
    assert_int_equal(json_array_size(json_object_get(row, "arg_names")), 2);
    assert_true(json_integer_value(json_object_get(row, "ended_us"))
                >= json_integer_value(json_object_get(row, "time_us")));
    json_decref(row);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10}, "1 ");
}

static void every_column_of_the_view_is_in_a_row_and_in_order(void **state)
{
    static const char *const names[] = {
        "seq", "audit_id", "time", "time_us", "ended_us", "member", "member_id", "member_name",
        "role", "grant_id", "client", "actor", "surface", "operation", "tool", "via", "connector",
        "connection", "connection_id", "classification", "approved", "arg_names", "arg_count",
        "arg_unknown", "outcome", "error_code", "upstream_status", "duration_us", "request_bytes",
        "response_bytes", "redactions", "trace_id", "revision", "detail"};
    fixture_t *fix = *state;
    json_t *row = get(fix, append(fix, &a_begin));
    const char *time = json_string_value(json_object_get(row, "time"));
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char path[512];
    char want[32];
    size_t i;

    assert_int_equal(json_object_size(row), sizeof(names) / sizeof(names[0]));
    pd_wall_text((pd_wall_t){json_integer_value(json_object_get(row, "time_us"))}, want);
    assert_string_equal(time, want);
    assert_int_equal(strlen(time), 27);
    in_dir(fix, "audit.db", path);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM audit_trail", -1, &stmt, NULL),
                     SQLITE_OK);
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_non_null(json_object_get(row, names[i]));
        assert_string_equal(sqlite3_column_name(stmt, (int)i), names[i]);
    }
    (void)sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    json_decref(row);
}

static void a_lone_end_is_an_attempt_of_its_own(void **state)
{
    fixture_t *fix = *state;
    pd_record_t denied = {.kind = PD_RECORD_END,
                          .outcome = "denied",
                          .error_code = "permission_denied",
                          .actor = "unix:0"};
    json_t *row = get(fix, append(fix, &denied));

    expect_text(row, "outcome", "denied");
    expect_text(row, "error_code", "permission_denied");
    expect_text(row, "actor", "unix:0");
    expect_text(row, "member", NULL);
    assert_int_equal(json_array_size(json_object_get(row, "arg_names")), 0);
    assert_int_equal(json_integer_value(json_object_get(row, "ended_us")),
                     json_integer_value(json_object_get(row, "time_us")));
    json_decref(row);
}

static void a_late_end_replaces_what_interrupted_said(void **state)
{
    fixture_t *fix = *state;
    int64_t seq = append(fix, &a_begin);
    pd_record_t interrupted = end_of(seq, "interrupted");
    pd_record_t late = end_of(seq, "ok");
    json_t *row;

    interrupted.error_code = "interrupted";
    interrupted.duration_us = 30000000;
    interrupted.detail = "its child missed three beats";
    late.duration_us = 5;
    late.upstream_status = 200;
    (void)append(fix, &interrupted);
    row = get(fix, seq);
    expect_text(row, "outcome", "interrupted");
    json_decref(row);
    (void)append(fix, &late);
    row = get(fix, seq);
    expect_text(row, "outcome", "ok");
    expect_text(row, "error_code", NULL);
    expect_text(row, "detail", NULL);
    expect_number(row, "duration_us", 5);
    expect_number(row, "upstream_status", 200);
    json_decref(row);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10}, "1 ");
}

/* --- queries -------------------------------------------------------------- */

static void fill(fixture_t *fix)
{
    pd_record_t record = {.kind = PD_RECORD_END, .outcome = "ok", .member_id = "mem_1",
                          .tool = "a__x", .connection = "a", .surface = "mcp", .grant_id = "gra_1"};

    assert_int_equal(append(fix, &record), 1);
    record.member_id = "mem_2";
    assert_int_equal(append(fix, &record), 2);
    record.tool = "b__x";
    record.connection = "b";
    assert_int_equal(append(fix, &record), 3);
    record.outcome = "denied";
    record.error_code = "forbidden";
    record.member_id = "mem_1";
    assert_int_equal(append(fix, &record), 4);
    record.surface = "rest";
    record.operation = "members__create";
    record.grant_id = "gra_2";
    assert_int_equal(append(fix, &record), 5);
}

static void each_filter_narrows_and_all_hold_together(void **state)
{
    static const struct {
        pd_audit_query_t query;
        const char *want;
    } cases[] = {
        {{.limit = 100}, "5 4 3 2 1 "},
        {{.limit = 2}, "5 4 "},
        {{.limit = 2, .before_seq = 4}, "3 2 "},
        {{.limit = 100, .oldest_first = 1}, "1 2 3 4 5 "},
        {{.limit = 2, .oldest_first = 1, .after_seq = 2}, "3 4 "},
        {{.limit = 100, .member = "mem_1"}, "5 4 1 "},
        {{.limit = 100, .member = "ADA@example.com"}, "5 4 1 "},
        {{.limit = 100, .member = "ada@example.com", .tool = "b__x"}, "5 4 "},
        {{.limit = 100, .member = "bob@example.com"}, ""},
        {{.limit = 100, .tool = "a__x"}, "2 1 "},
        {{.limit = 100, .connection = "b"}, "5 4 3 "},
        {{.limit = 100, .outcome = "denied"}, "5 4 "},
        {{.limit = 100, .operation = "members__create"}, "5 "},
        {{.limit = 100, .surface = "mcp"}, "4 3 2 1 "},
        {{.limit = 100, .error_code = "forbidden", .surface = "mcp"}, "4 "},
        {{.limit = 100, .grant = "gra_2"}, "5 "},
        {{.limit = 100, .tool = "' OR 1=1 --"}, ""},
        {{.limit = 100, .until_us = 1000000}, ""},
        {{.limit = 100, .since_us = 1000000, .until_us = 4102444800000000}, "5 4 3 2 1 "},
        {{.limit = 100, .since_us = 4102444800000000}, ""},
    };
    fixture_t *fix = *state;
    size_t i;

    fill(fix);
    pd_audit_member(fix->audit, "mem_1", "Ada@Example.com", "Ada");
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_seqs(fix, &cases[i].query, cases[i].want);
    }
}

static void the_bounds_of_a_time_span_are_exact(void **state)
{
    fixture_t *fix = *state;
    json_t *row;
    int64_t at_us;

    fill(fix);
    row = get(fix, 5);
    at_us = json_integer_value(json_object_get(row, "time_us"));
    json_decref(row);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1, .since_us = at_us}, "5 ");
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1, .since_us = at_us + 1}, "");
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1, .until_us = at_us + 1}, "5 ");
}

static void a_limit_off_the_range_is_refused(void **state)
{
    static const int limits[] = {0, -1, 1001};
    fixture_t *fix = *state;
    json_t *rows = NULL;
    size_t i;

    for (i = 0; i < 3; i++) {
        pd_audit_query_t query = {.limit = limits[i]};

        assert_int_equal(pd_audit_list(fix->audit, &query, pd_boot_in(WATCHDOG_MS), &rows),
                         PD_E_INVALID);
    }
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1000}, "");
}

static void only_the_id_of_an_attempt_is_found(void **state)
{
    fixture_t *fix = *state;
    pd_record_t end = end_of(append(fix, &a_begin), "ok");
    json_t *row = NULL;
    char id[48];

    pd_trail_id(fix->trail, append(fix, &end), id);
    assert_int_equal(pd_audit_get(fix->audit, id, pd_boot_in(WATCHDOG_MS), &row), PD_E_NOT_FOUND);
    assert_int_equal(pd_audit_get(fix->audit, "1-1x", pd_boot_in(WATCHDOG_MS), &row),
                     PD_E_NOT_FOUND);
    assert_int_equal(pd_audit_get(fix->audit, NULL, pd_boot_in(WATCHDOG_MS), &row), PD_E_NOT_FOUND);
}

static void a_members_name_is_shown_and_can_be_erased(void **state)
{
    fixture_t *fix = *state;
    int64_t seq = append(fix, &a_begin);
    json_t *row;
    int i;

    pd_audit_member(fix->audit, "mem_1", "ada@example.com", "Ada");
    row = get(fix, seq);
    expect_text(row, "member", "ada@example.com");
    expect_text(row, "member_name", "Ada");
    json_decref(row);
    for (i = 0; i < 100; i++) {
        pd_audit_member(fix->audit, "mem_1", i % 2 == 0 ? "old@example.com" : "new@example.com",
                        NULL);
    }
    row = get(fix, seq);
    expect_text(row, "member", "new@example.com");
    expect_text(row, "member_name", NULL);
    json_decref(row);
    pd_audit_member(fix->audit, "mem_1", NULL, NULL);
    row = get(fix, seq);
    expect_text(row, "member", "mem_1");
    json_decref(row);
}

/* --- keeping up ----------------------------------------------------------- */

static void many_records_are_copied_in_order_and_without_a_poke(void **state)
{
    fixture_t *fix = *state;
    pd_record_t record = {.kind = PD_RECORD_END, .outcome = "ok"};
    ack_t acks[2500];
    int64_t position = 0;
    pd_boot_t deadline = pd_boot_in(WATCHDOG_MS);
    size_t i;

    memset(acks, 0, sizeof(acks));
    for (i = 0; i < 2500; i++) {
        assert_int_equal(pd_trail_append(fix->trail, &record, note_ack, &acks[i]), PD_OK);
    }
    while (position < 2500 && pd_boot_left_ms(deadline) > 0) {
        struct pollfd ready = {fix->wake_fd, POLLIN, 0};

        if (poll(&ready, 1, 20) == 1) {
            uint64_t count;

            assert_int_equal(read(fix->wake_fd, &count, sizeof(count)), sizeof(count));
            pd_trail_reap(fix->trail);
        }
        assert_int_equal(pd_audit_health(fix->audit, &position), PD_OK);
    }
    assert_int_equal(position, 2500);
    pd_trail_reap(fix->trail);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 2}, "2500 2499 ");
}

static sqlite3 *open_directly(const fixture_t *fix, const char *file)
{
    char path[512];
    sqlite3 *db = NULL;

    in_dir(fix, file, path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static void run_directly(const fixture_t *fix, const char *file, const char *sql)
{
    sqlite3 *db = open_directly(fix, file);

    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_held_lock_delays_the_copy_and_never_the_trail(void **state)
{
    fixture_t *fix = *state;
    sqlite3 *holder = open_directly(fix, "audit.db");
    json_t *rows = NULL;
    int i;

    assert_int_equal(sqlite3_exec(holder, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    pd_audit_member(fix->audit, "mem_1", "ada@example.com", "Ada");
    for (i = 1; i <= 20; i++) {
        assert_int_equal(append(fix, &a_begin), i);
    }
    assert_int_equal(pd_audit_list(fix->audit, &(pd_audit_query_t){.limit = 1}, pd_boot_in(100),
                                   &rows),
                     PD_E_TIMEOUT);
    assert_int_equal(sqlite3_exec(holder, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(holder), SQLITE_OK);
    rows = list(fix, &(pd_audit_query_t){.limit = 1, .member = "ada@example.com"});
    assert_int_equal(json_array_size(rows), 1);
    expect_number(json_array_get(rows, 0), "seq", 20);
    json_decref(rows);
}

static void *list_aside(void *baton)
{
    fixture_t *fix = baton;
    json_t *rows = NULL;
    static pd_status_t status; /* outlives the thread */

    status = pd_audit_list(fix->audit, &(pd_audit_query_t){.limit = 1}, pd_boot_in(WATCHDOG_MS), &rows);
    json_decref(rows);
    return &status;
}

static void release_lets_waiting_lists_go_and_the_copy_goes_on(void **state)
{
    fixture_t *fix = *state;
    sqlite3 *holder = open_directly(fix, "audit.db");
    json_t *rows = NULL;
    void *status = NULL;
    pthread_t thread;

    assert_int_equal(sqlite3_exec(holder, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(append(fix, &a_begin), 1);
    assert_int_equal(pthread_create(&thread, NULL, list_aside, fix), 0);
    pd_audit_release(fix->audit);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal(*(pd_status_t *)status, PD_E_CLOSED);
    assert_int_equal(pd_audit_list(fix->audit, &(pd_audit_query_t){.limit = 1}, pd_boot_in(WATCHDOG_MS),
                                   &rows),
                     PD_E_CLOSED);
    assert_int_equal(sqlite3_exec(holder, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(holder), SQLITE_OK);
    pd_audit_release(NULL);
    close_both(fix);
    open_both(fix);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10}, "1 ");
}

static void a_failed_round_is_tried_again_and_health_says_so(void **state)
{
    fixture_t *fix = *state;
    sqlite3 *holder = open_directly(fix, "audit.db");
    pd_boot_t deadline = pd_boot_in(WATCHDOG_MS);
    struct pollfd nothing = {-1, 0, 0};
    int64_t position = -1;

    assert_int_equal(sqlite3_exec(holder, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    (void)append(fix, &a_begin);
    while (pd_audit_health(fix->audit, &position) == PD_OK && pd_boot_left_ms(deadline) > 0) {
        (void)poll(&nothing, 1, 20);
    }
    assert_int_equal(pd_audit_health(fix->audit, &position), PD_E_LOCKED);
    assert_int_equal(position, 0);
    assert_int_equal(sqlite3_exec(holder, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(holder), SQLITE_OK);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1}, "1 ");
    assert_int_equal(pd_audit_health(fix->audit, &position), PD_OK);
    assert_int_equal(position, 1);
}

static void a_round_that_fails_in_the_middle_loses_no_row(void **state)
{
    fixture_t *fix = *state;
    sqlite3 *holder = open_directly(fix, "audit.db");
    pd_boot_t deadline = pd_boot_in(WATCHDOG_MS);
    struct pollfd nothing = {-1, 0, 0};
    char *big = malloc(10001);
    pd_record_t record = {.kind = PD_RECORD_END, .outcome = "ok", .detail = big};
    struct rlimit limit;
    struct rlimit tight;
    int i;

    assert_non_null(big);
    memset(big, 'x', 10000);
    big[10000] = '\0';
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(sqlite3_exec(holder, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (i = 1; i <= 100; i++) {
        assert_int_equal(append(fix, &record), i);
    }
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    tight = limit;
    tight.rlim_cur = 300000; /* a million bytes wait to be copied */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    assert_int_equal(sqlite3_exec(holder, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(holder), SQLITE_OK);
    while (pd_audit_health(fix->audit, NULL) != PD_E_IO && pd_boot_left_ms(deadline) > 0) {
        (void)poll(&nothing, 1, 20);
    }
    assert_int_equal(pd_audit_health(fix->audit, NULL), PD_E_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 2, .oldest_first = 1}, "1 2 ");
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1}, "100 ");
    free(big);
}

static void a_long_read_holds_nothing_up(void **state)
{
    fixture_t *fix = *state;
    sqlite3 *reader = open_directly(fix, "audit.db");
    sqlite3_stmt *stmt = NULL;

    (void)append(fix, &a_begin);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1}, "1 ");
    assert_int_equal(sqlite3_prepare_v2(reader, "SELECT seq FROM audit_trail", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    (void)append(fix, &a_begin);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1}, "2 ");
    (void)sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
}

/* --- starting over -------------------------------------------------------- */

static void the_copy_goes_on_where_it_was(void **state)
{
    fixture_t *fix = *state;
    pd_record_t end = end_of(append(fix, &a_begin), "ok");
    json_t *row;

    pd_audit_member(fix->audit, "mem_1", "ada@example.com", NULL);
    close_both(fix);
    open_both(fix);
    (void)append(fix, &end);
    row = get(fix, 1);
    expect_text(row, "outcome", "ok");
    expect_text(row, "member", "ada@example.com");
    json_decref(row);
}

static void close_copies_what_is_there(void **state)
{
    fixture_t *fix = *state;
    sqlite3 *db;
    sqlite3_stmt *stmt = NULL;

    fill(fix);
    close_both(fix);
    db = open_directly(fix, "audit.db");
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM audit_trail", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(stmt, 0), 5);
    (void)sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_missing_copy_is_made_from_the_trail(void **state)
{
    fixture_t *fix = *state;

    fill(fix);
    close_both(fix);
    remove_files(fix, audit_files);
    open_both(fix);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10}, "5 4 3 2 1 ");
}

static void a_copy_of_another_trail_starts_over(void **state)
{
    fixture_t *fix = *state;
    pd_record_t denied = end_of(0, "denied");

    fill(fix);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10}, "5 4 3 2 1 ");
    close_both(fix);
    remove_files(fix, trail_files);
    open_both(fix);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10}, "");
    (void)append(fix, &denied);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10, .outcome = "denied"}, "1 ");
}

static void a_copy_that_is_ahead_of_its_trail_starts_over(void **state)
{
    fixture_t *fix = *state;

    fill(fix);
    close_both(fix);
    run_directly(fix, "trail.db", "DELETE FROM record WHERE seq > 3"); /* an older backup */
    open_both(fix);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10}, "3 2 1 ");
}

static void expect_refusal(fixture_t *fix, pd_status_t want)
{
    pd_audit_t *other = NULL;

    assert_int_equal(pd_audit_open(fix->dir, fix->gid, fix->trail, &other, fix->why,
                                   sizeof(fix->why)),
                     want);
    assert_null(other);
    assert_non_null(strstr(fix->why, "remove it"));
}

static void a_newer_or_damaged_copy_is_refused_with_the_remedy(void **state)
{
    fixture_t *fix = *state;
    char path[512];
    char junk[8192];
    int fd;

    fill(fix);
    pd_audit_close(&fix->audit);
    run_directly(fix, "audit.db", "PRAGMA user_version=2");
    expect_refusal(fix, PD_E_NEWER);
    run_directly(fix, "audit.db", "PRAGMA user_version=1; PRAGMA wal_checkpoint(TRUNCATE)");
    memset(junk, 0x5a, sizeof(junk));
    in_dir(fix, "audit.db", path);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, junk, sizeof(junk), 4096), sizeof(junk));
    assert_int_equal(close(fd), 0);
    expect_refusal(fix, PD_E_CORRUPT);
    remove_files(fix, audit_files); /* the remedy */
    assert_int_equal(pd_audit_open(fix->dir, fix->gid, fix->trail, &fix->audit, fix->why,
                                   sizeof(fix->why)),
                     PD_OK);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 10}, "5 4 3 2 1 ");
}

/* --- other users ---------------------------------------------------------- */

static void the_group_may_read_and_nobody_else(void **state)
{
    fixture_t *fix = *state;
    char path[512];
    struct stat st;
    size_t i;

    (void)append(fix, &a_begin);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1}, "1 ");
    for (i = 0; i < 3; i++) {
        in_dir(fix, audit_files[i], path);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
        if (fix->gid >= 0) {
            assert_int_equal(st.st_gid, fix->gid);
        }
    }
}

/* 0 when every file of a copy that this process opens has the group. */
static int side_files_lack_group(fixture_t *fix)
{
    char path[512];
    struct stat st;
    size_t i;
    int lacking = 0;

    if (pd_trail_open(fix->dir, NULL, NULL, &fix->trail, fix->why, sizeof(fix->why)) != PD_OK
        || pd_audit_open(fix->dir, SOME_GID, fix->trail, &fix->audit, fix->why, sizeof(fix->why))
               != PD_OK) {
        return 97;
    }
    for (i = 0; i < 3; i++) {
        in_dir(fix, audit_files[i], path);
        lacking += stat(path, &st) != 0 || st.st_gid != SOME_GID || (st.st_mode & 07777) != 0640;
    }
    close_both(fix);
    return lacking;
}

static void a_daemon_that_is_not_root_gives_the_group_all_files(void **state)
{
    fixture_t *fix = *state;
    int code = 0;
    pid_t child;

    if (geteuid() != 0) {
        skip(); /* only root can become a member of that group */
    }
    close_both(fix);
    remove_files(fix, audit_files);
    remove_files(fix, trail_files);
    assert_int_equal(chown(fix->dir, 65534, 65534), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const gid_t groups[] = {SOME_GID};

        if (setgroups(1, groups) != 0 || setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(99);
        }
        _exit(side_files_lack_group(fix));
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
}

/* How many rows a process of that user and group reads, or -1. */
static int rows_seen_by(const fixture_t *fix, gid_t gid, const char *file, const char *sql)
{
    int code = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        sqlite3 *db = NULL;
        sqlite3_stmt *stmt = NULL;
        char path[512];

        in_dir(fix, file, path);
        if (setgroups(0, NULL) != 0 || setgid(gid) != 0 || setuid(65534) != 0) {
            _exit(99);
        }
        if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK
            || sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK
            || sqlite3_step(stmt) != SQLITE_ROW) {
            _exit(98);
        }
        _exit(sqlite3_column_int(stmt, 0));
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_not_equal(WEXITSTATUS(code), 99);
    return WEXITSTATUS(code) == 98 ? -1 : WEXITSTATUS(code);
}

static void an_auditor_reads_while_policyd_runs_and_after(void **state)
{
    static const char sql[] = "SELECT count(*) FROM audit_trail";
    fixture_t *fix = *state;

    if (geteuid() != 0) {
        skip(); /* only root can become another user */
    }
    assert_int_equal(chmod(fix->dir, 0711), 0);
    fill(fix);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1}, "5 ");
    assert_int_equal(rows_seen_by(fix, SOME_GID, "audit.db", sql), 5);
    assert_int_equal(rows_seen_by(fix, SOME_GID + 1, "audit.db", sql), -1);
    assert_int_equal(rows_seen_by(fix, SOME_GID, "trail.db", "SELECT count(*) FROM record"), -1);
    close_both(fix);
    assert_int_equal(rows_seen_by(fix, SOME_GID, "audit.db", sql), 5);
    open_both(fix);
    (void)append(fix, &a_begin);
    expect_seqs(fix, &(pd_audit_query_t){.limit = 1}, "6 ");
    assert_int_equal(rows_seen_by(fix, SOME_GID, "audit.db", sql), 6);
}

#define AUDIT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AUDIT_TEST(an_attempt_runs_until_its_end_arrives_in_the_same_row),
        AUDIT_TEST(every_column_of_the_view_is_in_a_row_and_in_order),
        AUDIT_TEST(a_lone_end_is_an_attempt_of_its_own),
        AUDIT_TEST(a_late_end_replaces_what_interrupted_said),
        AUDIT_TEST(each_filter_narrows_and_all_hold_together),
        AUDIT_TEST(the_bounds_of_a_time_span_are_exact),
        AUDIT_TEST(a_limit_off_the_range_is_refused),
        AUDIT_TEST(only_the_id_of_an_attempt_is_found),
        AUDIT_TEST(a_members_name_is_shown_and_can_be_erased),
        AUDIT_TEST(many_records_are_copied_in_order_and_without_a_poke),
        AUDIT_TEST(a_held_lock_delays_the_copy_and_never_the_trail),
        AUDIT_TEST(release_lets_waiting_lists_go_and_the_copy_goes_on),
        AUDIT_TEST(a_failed_round_is_tried_again_and_health_says_so),
        AUDIT_TEST(a_round_that_fails_in_the_middle_loses_no_row),
        AUDIT_TEST(a_long_read_holds_nothing_up),
        AUDIT_TEST(the_copy_goes_on_where_it_was),
        AUDIT_TEST(close_copies_what_is_there),
        AUDIT_TEST(a_missing_copy_is_made_from_the_trail),
        AUDIT_TEST(a_copy_of_another_trail_starts_over),
        AUDIT_TEST(a_copy_that_is_ahead_of_its_trail_starts_over),
        AUDIT_TEST(a_newer_or_damaged_copy_is_refused_with_the_remedy),
        AUDIT_TEST(the_group_may_read_and_nobody_else),
        AUDIT_TEST(a_daemon_that_is_not_root_gives_the_group_all_files),
        AUDIT_TEST(an_auditor_reads_while_policyd_runs_and_after),
    };

    if (apr_initialize() != APR_SUCCESS) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
