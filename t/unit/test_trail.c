/* The trail: order, durability, repeats, and what a kill leaves behind. */
#include "../../policyd/pd_trail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

#include <cmocka.h>
#include <sqlite3.h>

#include "../../policyd/pd_trail_read.h"

#define WATCHDOG_MS 60000

typedef struct fixture {
    char dir[256];
    int wake_fd;
    pd_trail_t *trail;
    char why[512];
} fixture_t;

static void wake(void *baton)
{
    const fixture_t *fix = baton;
    uint64_t one = 1;

    assert_int_equal(write(fix->wake_fd, &one, sizeof(one)), sizeof(one));
}

static void open_trail(fixture_t *fix)
{
    pd_status_t status =
        pd_trail_open(fix->dir, wake, fix, &fix->trail, fix->why, sizeof(fix->why));

    if (status != PD_OK) {
        print_message("%s\n", fix->why);
    }
    assert_int_equal(status, PD_OK);
}

static int set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");
    fixture_t *fix = calloc(1, sizeof(*fix));

    assert_non_null(fix);
    (void)snprintf(fix->dir, sizeof(fix->dir), "%s/mcp-trail-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    assert_non_null(mkdtemp(fix->dir));
    fix->wake_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(fix->wake_fd >= 0);
    open_trail(fix);
    *state = fix;
    return 0;
}

static void in_dir(const fixture_t *fix, const char *file, char *path)
{
    (void)snprintf(path, 512, "%s/%s", fix->dir, file);
}

static int tear_down(void **state)
{
    static const char *const files[] = {"trail.db", "trail.db-wal", "trail.db-shm"};
    fixture_t *fix = *state;
    char path[512];
    size_t i;

    pd_trail_close(&fix->trail);
    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        in_dir(fix, files[i], path);
        (void)unlink(path);
    }
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

    assert_false(ack->is_done);
    ack->status = status;
    ack->seq = seq;
    ack->is_done = 1;
}

static void wait_for(fixture_t *fix, const int *is_done)
{
    while (!*is_done) {
        struct pollfd ready = {fix->wake_fd, POLLIN, 0};
        uint64_t count;

        assert_int_equal(poll(&ready, 1, WATCHDOG_MS), 1);
        assert_int_equal(read(fix->wake_fd, &count, sizeof(count)), sizeof(count));
        pd_trail_reap(fix->trail);
    }
}

static ack_t append(fixture_t *fix, const pd_record_t *record)
{
    ack_t ack = {PD_E_INTERNAL, -1, 0};

    assert_int_equal(pd_trail_append(fix->trail, record, note_ack, &ack), PD_OK);
    wait_for(fix, &ack.is_done);
    return ack;
}

static int64_t append_ok(fixture_t *fix, const pd_record_t *record)
{
    ack_t ack = append(fix, record);

    assert_int_equal(ack.status, PD_OK);
    assert_true(ack.seq > 0);
    assert_int_equal(pd_trail_head(fix->trail) >= ack.seq, 1); /* durable when acknowledged */
    return ack.seq;
}

static const pd_record_t a_begin = {.kind = PD_RECORD_BEGIN,
                                    .member_id = "mem_1",
                                    .tool = "notion__search",
                                    .arg_names = "[\"query\"]",
                                    .arg_count = 1,
                                    .deadline_ms = 30000};

static pd_record_t end_of(int64_t begin_seq, const char *outcome)
{
    return (pd_record_t){.kind = PD_RECORD_END, .begin_seq = begin_seq, .outcome = outcome};
}

/* --- reading back --------------------------------------------------------- */

typedef struct rows {
    int64_t last;
    int64_t last_us;
    int count;
    pd_record_t want; /* its seq: the record to compare */
    int is_seen;
} rows_t;

static void expect_text(const char *got, const char *want)
{
    if (want == NULL) {
        assert_null(got);
    } else {
        assert_non_null(got);
        assert_string_equal(got, want);
    }
}

static pd_status_t look_at(const pd_record_t *record, void *baton)
{
    rows_t *rows = baton;

    assert_true(record->seq == rows->last + 1);
    assert_true(record->time.us >= rows->last_us);
    rows->last = record->seq;
    rows->last_us = record->time.us;
    rows->count++;
    if (record->seq == rows->want.seq) {
        const pd_record_t *want = &rows->want;

        rows->is_seen = 1;
        assert_int_equal(record->kind, want->kind);
        assert_int_equal(record->begin_seq, want->begin_seq);
        assert_int_equal(record->supersedes, want->supersedes);
#define SAME_TEXT(name)   expect_text(record->name, want->name);
#define SAME_NUMBER(name) assert_int_equal(record->name, want->name);
        PD_TRAIL_TEXTS(SAME_TEXT, SAME_TEXT)
        PD_TRAIL_NUMBERS(SAME_NUMBER)
    }
    return PD_OK;
}

/* Walks the trail in pages, checks its order, compares the record of want.seq; how many there are.
 */
static int walk(fixture_t *fix, const pd_record_t *want)
{
    pd_trail_reader_t *reader = NULL;
    rows_t rows = {0};
    int count = 0;

    if (want != NULL) {
        rows.want = *want;
    }
    assert_int_equal(pd_trail_read_open(fix->dir, &reader), PD_OK);
    do {
        assert_int_equal(pd_trail_read_after(reader, rows.last, 7, look_at, &rows, &count), PD_OK);
    } while (count == 7);
    pd_trail_read_close(&reader);
    assert_true(want == NULL || rows.is_seen);
    return rows.count;
}

static void seq_starts_at_one_and_rises_by_one_over_restarts(void **state)
{
    fixture_t *fix = *state;
    int64_t chain = pd_trail_chain(fix->trail);

    assert_int_equal(pd_trail_head(fix->trail), 0);
    assert_int_equal(append_ok(fix, &a_begin), 1);
    assert_int_equal(append_ok(fix, &a_begin), 2);
    pd_trail_close(&fix->trail);
    open_trail(fix);
    assert_int_equal(pd_trail_head(fix->trail), 2);
    assert_int_equal(pd_trail_chain(fix->trail), chain);
    assert_true(chain >= 1 && chain <= 0x80000000LL);
    assert_int_equal(append_ok(fix, &a_begin), 3);
    assert_int_equal(walk(fix, NULL), 3);
}

static void every_member_of_a_record_comes_back(void **state)
{
    fixture_t *fix = *state;
    pd_record_t record = {.kind = PD_RECORD_END};
    int64_t number = 1000;

#define FILL_TEXT(name)   record.name = "text of " #name;
#define FILL_NUMBER(name) record.name = number++;
    PD_TRAIL_TEXTS(FILL_TEXT, FILL_TEXT)
    PD_TRAIL_NUMBERS(FILL_NUMBER)
    record.seq = 999;        /* out: not the caller's to choose */
    record.time.us = 12345;
    record.supersedes = 777;
    record.seq = append_ok(fix, &record);
    assert_int_equal(record.seq, 1);
    record.supersedes = 0;
    assert_int_equal(walk(fix, &record), 1);
}

static void texts_are_copied_at_submission(void **state)
{
    fixture_t *fix = *state;
    char tool[] = "before";
    pd_record_t record = {.kind = PD_RECORD_BEGIN, .tool = tool};
    ack_t ack = {PD_E_INTERNAL, 0, 0};

    assert_int_equal(pd_trail_append(fix->trail, &record, note_ack, &ack), PD_OK);
    memcpy(tool, "after!", sizeof(tool));
    wait_for(fix, &ack.is_done);
    record.tool = "before";
    record.seq = ack.seq;
    assert_int_equal(walk(fix, &record), 1);
}

static void what_no_record_can_be_is_refused(void **state)
{
    fixture_t *fix = *state;
    char *big = malloc(16386);
    ack_t ack = {PD_OK, 0, 0};
    pd_record_t cases[] = {
        {.kind = (pd_record_kind_t)0},
        {.kind = (pd_record_kind_t)3, .outcome = "ok"},
        {.kind = PD_RECORD_BEGIN, .begin_seq = 1},
        {.kind = PD_RECORD_BEGIN, .outcome = "ok"},
        {.kind = PD_RECORD_END},
        {.kind = PD_RECORD_END, .outcome = "ok", .begin_seq = -1},
        {.kind = PD_RECORD_BEGIN, .tool = big},
    };
    size_t i;

    assert_non_null(big);
    memset(big, 'x', 16385);
    big[16385] = '\0';
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(pd_trail_append(fix->trail, &cases[i], note_ack, &ack), PD_E_INVALID);
    }
    big[16384] = '\0';
    assert_int_equal(append_ok(fix, &cases[6]), 1);
    assert_false(ack.is_done);
    free(big);
}

/* --- repeats -------------------------------------------------------------- */

static void a_repeated_end_completes_with_the_first(void **state)
{
    fixture_t *fix = *state;
    int64_t begin = append_ok(fix, &a_begin);
    pd_record_t ok = end_of(begin, "ok");
    pd_record_t error = end_of(begin, "error");
    int64_t first = append_ok(fix, &ok);

    assert_int_equal(append_ok(fix, &ok), first);
    assert_int_equal(append_ok(fix, &error), first); /* a final end stays */
    pd_trail_close(&fix->trail);
    open_trail(fix);
    assert_int_equal(append_ok(fix, &ok), first);
    assert_int_equal(walk(fix, NULL), 2);
}

static void repeats_in_one_commit_are_found_too(void **state)
{
    fixture_t *fix = *state;
    int64_t begin = append_ok(fix, &a_begin);
    pd_record_t ok = end_of(begin, "ok");
    ack_t acks[50];
    size_t i;

    memset(acks, 0, sizeof(acks));
    for (i = 0; i < 50; i++) {
        assert_int_equal(pd_trail_append(fix->trail, &ok, note_ack, &acks[i]), PD_OK);
    }
    wait_for(fix, &acks[49].is_done);
    for (i = 0; i < 50; i++) {
        assert_int_equal(acks[i].status, PD_OK);
        assert_int_equal(acks[i].seq, begin + 1);
    }
    assert_int_equal(walk(fix, NULL), 2);
}

static void an_interrupted_end_is_superseded_once(void **state)
{
    fixture_t *fix = *state;
    int64_t begin = append_ok(fix, &a_begin);
    pd_record_t interrupted = end_of(begin, "interrupted");
    pd_record_t ok = end_of(begin, "ok");
    pd_record_t error = end_of(begin, "error");
    int64_t first = append_ok(fix, &interrupted);
    int64_t second;

    assert_int_equal(append_ok(fix, &interrupted), first);
    second = append_ok(fix, &ok);
    assert_int_equal(second, first + 1);
    assert_int_equal(append_ok(fix, &error), second);
    assert_int_equal(append_ok(fix, &interrupted), second);
    ok.seq = second;
    ok.supersedes = first;
    assert_int_equal(walk(fix, &ok), 3);
}

static void an_interrupted_end_after_a_real_one_changes_nothing(void **state)
{
    fixture_t *fix = *state;
    int64_t begin = append_ok(fix, &a_begin);
    pd_record_t ok = end_of(begin, "ok");
    pd_record_t interrupted = end_of(begin, "interrupted");
    int64_t first = append_ok(fix, &ok);

    assert_int_equal(append_ok(fix, &interrupted), first);
    assert_int_equal(walk(fix, NULL), 2);
}

static void an_end_needs_a_begin_or_none(void **state)
{
    fixture_t *fix = *state;
    pd_record_t lone = end_of(0, "denied");
    pd_record_t of_nothing = end_of(99, "ok");
    pd_record_t of_an_end = end_of(1, "ok");

    assert_int_equal(append_ok(fix, &lone), 1);
    assert_int_equal(append_ok(fix, &lone), 2); /* two denials are two attempts */
    assert_int_equal(append(fix, &of_nothing).status, PD_E_NOT_FOUND);
    assert_int_equal(append(fix, &of_an_end).status, PD_E_NOT_FOUND);
    assert_int_equal(append(fix, &of_an_end).seq, 0);
    assert_int_equal(walk(fix, NULL), 2);
}

static void a_note_is_recorded_once(void **state)
{
    fixture_t *fix = *state;
    pd_record_t note = {.kind = PD_RECORD_END, .outcome = "ok", .note_id = "note-1"};
    pd_record_t other = note;
    int64_t first = append_ok(fix, &note);

    other.note_id = "note-2";
    assert_int_equal(append_ok(fix, &other), first + 1);
    note.tool = "another text, the same id";
    assert_int_equal(append_ok(fix, &note), first);
    pd_trail_close(&fix->trail);
    open_trail(fix);
    assert_int_equal(append_ok(fix, &note), first);
    assert_int_equal(walk(fix, NULL), 2);
}

/* --- time ----------------------------------------------------------------- */

static void with_sqlite(const fixture_t *fix, const char *sql)
{
    char path[512];
    sqlite3 *db = NULL;

    in_dir(fix, "trail.db", path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void time_does_not_fall_when_the_clock_does(void **state)
{
    fixture_t *fix = *state;

    (void)append_ok(fix, &a_begin);
    pd_trail_close(&fix->trail);
    with_sqlite(fix, "UPDATE record SET time_us = 4102444800000000"); /* written in 2100 */
    open_trail(fix);
    (void)append_ok(fix, &a_begin);
    (void)append_ok(fix, &a_begin);
    assert_int_equal(walk(fix, NULL), 3); /* looks at the order of times */
}

/* --- attempts left open --------------------------------------------------- */

typedef struct open_list {
    char seqs[128];
} open_list_t;

static void note_open(int64_t seq, const pd_record_t *record, void *baton)
{
    open_list_t *list = baton;
    size_t used = strlen(list->seqs);

    assert_int_equal(record->kind, PD_RECORD_BEGIN);
    assert_int_equal(record->seq, seq);
    assert_string_equal(record->tool, "notion__search");
    assert_int_equal(record->deadline_ms, 30000);
    (void)snprintf(list->seqs + used, sizeof(list->seqs) - used, "%lld ", (long long)seq);
}

static void expect_open(fixture_t *fix, const char *seqs)
{
    open_list_t list = {""};

    assert_int_equal(pd_trail_open_attempts(fix->trail, note_open, &list), PD_OK);
    assert_string_equal(list.seqs, seqs);
}

static void begins_without_an_end_are_found_in_order(void **state)
{
    fixture_t *fix = *state;
    pd_record_t lone = end_of(0, "denied");
    pd_record_t end = end_of(2, "ok");
    pd_record_t interrupted = end_of(4, "interrupted");

    expect_open(fix, "");
    (void)append_ok(fix, &lone);
    expect_open(fix, "");
    (void)append_ok(fix, &a_begin);
    (void)append_ok(fix, &a_begin);
    (void)append_ok(fix, &a_begin);
    (void)append_ok(fix, &a_begin);
    (void)append_ok(fix, &end);
    (void)append_ok(fix, &interrupted);
    expect_open(fix, "3 5 ");
}

static void open_begins_of_long_ago_are_not_looked_for(void **state)
{
    fixture_t *fix = *state;

    (void)append_ok(fix, &a_begin);
    pd_trail_close(&fix->trail);
    /* 70,000 denials an hour apart in all, then a begin each of 3 h, 1 h and 0 h before the newest,
     * and an end that the last start wrote a day later. */
    with_sqlite(fix,
                "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c WHERE i<70000)"
                " INSERT INTO record (seq, kind, time_us, outcome)"
                " SELECT 1 + i, 2, 1000000000, 'denied' FROM c;"
                "UPDATE record SET time_us = 1000000000;"
                "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c WHERE i<70000)"
                " INSERT INTO record (seq, kind, time_us, outcome)"
                " SELECT 80000 + i, 2, 20000000000 + i, 'denied' FROM c;"
                "INSERT INTO record (seq, kind, time_us, tool, deadline_ms) VALUES"
                " (80000, 1, 20000000000, 'notion__search', 30000),"
                " (160000, 1, 24000000000, 'notion__search', 30000);"
                "INSERT INTO record (seq, kind, time_us, outcome) VALUES (160001, 2, 99000000000,"
                " 'denied')");
    open_trail(fix);
    expect_open(fix, "80000 160000 ");
}

/* --- ids ------------------------------------------------------------------ */

static void an_audit_id_is_read_back_and_nothing_else_is(void **state)
{
    static const char *const bad[] = {
        "",         "-",       "1",       "1-",      "-1",
        "x-1",      "%lld-0",  "%lld-01", "%lld-+1", "%lld- 1",
        "%lld-1x",  "%lld--1", "0%lld-1", "+%lld-1", "%lld-9223372036854775808",
        "%lld-1-1", " %lld-1"};
    fixture_t *fix = *state;
    char id[48];
    char text[96];
    size_t i;

    pd_trail_id(fix->trail, 42, id);
    assert_int_equal(pd_trail_seq(fix->trail, id), 42);
    pd_trail_id(fix->trail, INT64_MAX, id);
    assert_true(pd_trail_seq(fix->trail, id) == INT64_MAX);
    assert_int_equal(pd_trail_seq(fix->trail, NULL), 0);
    (void)snprintf(text, sizeof(text), "%lld-1", (long long)pd_trail_chain(fix->trail) + 1);
    assert_int_equal(pd_trail_seq(fix->trail, text), 0);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *hole = strstr(bad[i], "%lld");

        if (hole == NULL) {
            (void)snprintf(text, sizeof(text), "%s", bad[i]);
        } else {
            (void)snprintf(text, sizeof(text), "%.*s%lld%s", (int)(hole - bad[i]), bad[i],
                           (long long)pd_trail_chain(fix->trail), hole + 4);
        }
        assert_int_equal(pd_trail_seq(fix->trail, text), 0);
    }
}

/* --- weather -------------------------------------------------------------- */

static void a_full_queue_refuses(void **state)
{
    fixture_t *fix = *state;
    ack_t *acks = calloc(65537, sizeof(*acks));
    pd_record_t note = {.kind = PD_RECORD_END, .outcome = "ok", .note_id = "n"};
    pd_status_t status = PD_OK;
    int i;

    assert_non_null(acks);
    /* Nobody reaps, so what is recorded still counts. Repeats of a note make it quick. */
    for (i = 0; i < 65537 && status == PD_OK; i++) {
        status = pd_trail_append(fix->trail, &note, note_ack, &acks[i]);
    }
    assert_int_equal(status, PD_E_FULL);
    assert_int_equal(i, 65537);
    wait_for(fix, &acks[65535].is_done);
    assert_false(acks[65536].is_done);
    assert_int_equal(append_ok(fix, &note), 1);
    free(acks);
}

static void a_full_disk_acknowledges_nothing_and_heals(void **state)
{
    fixture_t *fix = *state;
    char *big = malloc(16001);
    pd_record_t record = {.kind = PD_RECORD_BEGIN, .detail = big};
    ack_t acks[40];
    struct rlimit limit;
    struct rlimit tight;
    int64_t head;
    size_t i;

    assert_non_null(big);
    memset(big, 'x', 16000);
    big[16000] = '\0';
    memset(acks, 0, sizeof(acks));
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    (void)append_ok(fix, &a_begin);
    head = pd_trail_head(fix->trail);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    tight = limit;
    tight.rlim_cur = 65536;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (i = 0; i < 40; i++) {
        assert_int_equal(pd_trail_append(fix->trail, &record, note_ack, &acks[i]), PD_OK);
    }
    wait_for(fix, &acks[39].is_done);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(acks[39].status,
                     PD_E_IO); /* 640,000 bytes don't fit, in however many commits */
    for (i = 0; i < 40; i++) {
        assert_true(acks[i].status == PD_OK || acks[i].status == PD_E_IO);
        if (acks[i].status == PD_OK) {
            head++;
        }
        assert_int_equal(acks[i].seq, acks[i].status == PD_OK ? head : 0);
    }
    assert_int_equal(pd_trail_head(fix->trail), head);
    assert_int_equal(walk(fix, NULL), head);
    assert_int_equal(append_ok(fix, &record), head + 1);
    pd_trail_close(&fix->trail);
    open_trail(fix);
    assert_int_equal(walk(fix, NULL), head + 1);
    free(big);
}

static void close_records_what_is_queued(void **state)
{
    fixture_t *fix = *state;
    ack_t acks[20];
    size_t i;

    memset(acks, 0, sizeof(acks));
    for (i = 0; i < 20; i++) {
        assert_int_equal(pd_trail_append(fix->trail, &a_begin, note_ack, &acks[i]), PD_OK);
    }
    pd_trail_close(&fix->trail);
    for (i = 0; i < 20; i++) {
        assert_true(acks[i].is_done);
        assert_int_equal(acks[i].seq, i + 1);
    }
    open_trail(fix);
    assert_int_equal(walk(fix, NULL), 20);
}

/* --- kill -9 -------------------------------------------------------------- */

typedef struct burst {
    int pipe_fd;
    int left;
} burst_t;

static void tell_seq(pd_status_t status, int64_t seq, void *baton)
{
    burst_t *burst = baton;

    if (status != PD_OK || write(burst->pipe_fd, &seq, sizeof(seq)) != sizeof(seq)) {
        _exit(3);
    }
    burst->left--;
}

/* Appends for ever and tells each acknowledged seq; ends by the parent's kill. */
static void append_until_killed(fixture_t *fix, int pipe_fd)
{
    burst_t burst = {pipe_fd, 0};

    if (pd_trail_open(fix->dir, wake, fix, &fix->trail, fix->why, sizeof(fix->why)) != PD_OK) {
        _exit(4);
    }
    for (;;) {
        uint64_t count;

        while (burst.left < 64) {
            if (pd_trail_append(fix->trail, &a_begin, tell_seq, &burst) != PD_OK) {
                _exit(5);
            }
            burst.left++;
        }
        if (read(fix->wake_fd, &count, sizeof(count)) != sizeof(count)) {
            _exit(6);
        }
        pd_trail_reap(fix->trail);
    }
}

/* Reads seqs until there were enough, kills the child, reads the rest; the last acknowledged. */
static int64_t kill_after(pid_t child, int pipe_fd, int64_t last, int enough)
{
    int code = 0;
    int64_t seq;

    while (enough > 0) {
        assert_int_equal(read(pipe_fd, &seq, sizeof(seq)), sizeof(seq));
        assert_true(seq == last + 1);
        last = seq;
        enough--;
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code));
    while (read(pipe_fd, &seq, sizeof(seq)) == sizeof(seq)) {
        assert_true(seq == last + 1);
        last = seq;
    }
    return last;
}

static void a_stopped_trail_refuses_records_and_is_still_read(void **state)
{
    fixture_t *fix = *state;
    ack_t ack = {PD_E_INTERNAL, -1, 0};
    char id[48];

    assert_int_equal(pd_trail_append(fix->trail, &a_begin, note_ack, &ack), PD_OK);
    pd_trail_stop(fix->trail);
    assert_true(ack.is_done);
    assert_int_equal(ack.status, PD_OK);
    assert_int_equal(pd_trail_append(fix->trail, &a_begin, note_ack, &ack), PD_E_CLOSED);
    assert_int_equal(pd_trail_head(fix->trail), ack.seq);
    pd_trail_id(fix->trail, ack.seq, id);
    assert_int_equal(pd_trail_seq(fix->trail, id), ack.seq);
    pd_trail_stop(fix->trail); /* once more, and NULL, is fine */
    pd_trail_stop(NULL);
}

static void every_acknowledged_record_survives_a_kill(void **state)
{
    fixture_t *fix = *state;
    int64_t last = 0;
    int round;

    for (round = 0; round < 5; round++) {
        int ends[2];
        pid_t child;

        pd_trail_close(&fix->trail);
        assert_int_equal(pipe(ends), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)close(ends[0]);
            append_until_killed(fix, ends[1]);
        }
        (void)close(ends[1]);
        last = kill_after(child, ends[0], last, 200 + 77 * round);
        (void)close(ends[0]);
        open_trail(fix);
        /* More may be there than was acknowledged, never less; and in strict order. */
        assert_true(pd_trail_head(fix->trail) >= last);
        assert_int_equal(walk(fix, NULL), pd_trail_head(fix->trail));
        last = pd_trail_head(fix->trail);
    }
}

/* --- refusals ------------------------------------------------------------- */

static void expect_refusal(fixture_t *fix, pd_status_t want, const char *word)
{
    pd_trail_t *other = NULL;

    assert_int_equal(pd_trail_open(fix->dir, wake, fix, &other, fix->why, sizeof(fix->why)), want);
    assert_null(other);
    if (strstr(fix->why, word) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", fix->why, word);
    }
}

static void a_newer_trail_is_refused(void **state)
{
    fixture_t *fix = *state;

    pd_trail_close(&fix->trail);
    with_sqlite(fix, "PRAGMA user_version=2");
    expect_refusal(fix, PD_E_NEWER, "newer policyd");
}

static void a_damaged_trail_is_refused(void **state)
{
    fixture_t *fix = *state;
    char path[512];
    char junk[8192];
    int fd;
    int i;

    for (i = 0; i < 50; i++) {
        (void)append_ok(fix, &a_begin);
    }
    pd_trail_close(&fix->trail);
    memset(junk, 0x5a, sizeof(junk));
    in_dir(fix, "trail.db", path);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, junk, sizeof(junk), 4096), sizeof(junk));
    assert_int_equal(close(fd), 0);
    expect_refusal(fix, PD_E_CORRUPT, "backup");
}

static void only_policyd_may_read_the_trail(void **state)
{
    static const char *const files[] = {"trail.db", "trail.db-wal", "trail.db-shm"};
    fixture_t *fix = *state;
    char path[512];
    struct stat st;
    size_t i;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        in_dir(fix, files[i], path);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
}

static void the_writers_connection_can_only_append(void **state)
{
    fixture_t *fix = *state;
    char path[512];
    pd_sqlite_t *db = NULL;
    pd_stmt_t *stmt = NULL;

    (void)append_ok(fix, &a_begin);
    in_dir(fix, "trail.db", path);
    assert_int_equal(pd_sqlite_open(path, PD_SQLITE_WRITE, 1000, &db, NULL, 0), PD_OK);
    assert_int_equal(pd_sqlite_append_only(db), PD_OK);
    assert_int_not_equal(pd_sqlite_prepare(db, "UPDATE record SET tool = NULL", &stmt), PD_OK);
    assert_int_not_equal(pd_sqlite_prepare(db, "DELETE FROM record", &stmt), PD_OK);
    assert_int_not_equal(pd_sqlite_exec(db, "DROP TABLE record"), PD_OK);
    pd_sqlite_close(&db);
}

#define TRAIL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRAIL_TEST(seq_starts_at_one_and_rises_by_one_over_restarts),
        TRAIL_TEST(every_member_of_a_record_comes_back),
        TRAIL_TEST(texts_are_copied_at_submission),
        TRAIL_TEST(what_no_record_can_be_is_refused),
        TRAIL_TEST(a_repeated_end_completes_with_the_first),
        TRAIL_TEST(repeats_in_one_commit_are_found_too),
        TRAIL_TEST(an_interrupted_end_is_superseded_once),
        TRAIL_TEST(an_interrupted_end_after_a_real_one_changes_nothing),
        TRAIL_TEST(an_end_needs_a_begin_or_none),
        TRAIL_TEST(a_note_is_recorded_once),
        TRAIL_TEST(time_does_not_fall_when_the_clock_does),
        TRAIL_TEST(begins_without_an_end_are_found_in_order),
        TRAIL_TEST(open_begins_of_long_ago_are_not_looked_for),
        TRAIL_TEST(an_audit_id_is_read_back_and_nothing_else_is),
        TRAIL_TEST(a_full_queue_refuses),
        TRAIL_TEST(a_full_disk_acknowledges_nothing_and_heals),
        TRAIL_TEST(close_records_what_is_queued),
        TRAIL_TEST(a_stopped_trail_refuses_records_and_is_still_read),
        TRAIL_TEST(every_acknowledged_record_survives_a_kill),
        TRAIL_TEST(a_newer_trail_is_refused),
        TRAIL_TEST(a_damaged_trail_is_refused),
        TRAIL_TEST(only_policyd_may_read_the_trail),
        TRAIL_TEST(the_writers_connection_can_only_append),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
