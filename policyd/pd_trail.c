/* The append-only trail.  The writer's connection is barred from everything but selecting and
 * inserting (pd_sqlite_append_only), so that what is recorded stays even where this code is wrong.
 *
 * Repeats are no errors here: a note's id is recorded once, an attempt has one final end, and a
 * repeated record completes with the number of the first.  An interrupted end is provisional: the
 * one real end that may come late names it in `supersedes`. */
#include "pd_trail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "pd_migrate.h"
#include "pd_trail_read.h"
#include "pd_writer.h"

#define QUEUE_MAX  65536 /* records until their completion has run */
#define TEXT_MAX   16384 /* bytes of one text: 64 argument names of 64 bytes, escaped, fit */
#define CHAIN_MAX  0x80000000LL
#define ID_BYTES   48
#define CACHE_KIB  1024

enum { SQL_LAST, SQL_NOTE, SQL_KIND, SQL_END, SQL_INSERT, SQL_COUNT };

#define PLACE(name) ", ?"

static const char *const sql[SQL_COUNT] = {
    [SQL_LAST] = "SELECT seq, time_us FROM record ORDER BY seq DESC LIMIT 1",
    [SQL_NOTE] = "SELECT seq FROM record WHERE note_id = ?1",
    [SQL_KIND] = "SELECT kind FROM record WHERE seq = ?1",
    [SQL_END] = "SELECT seq, outcome, supersedes FROM record WHERE begin_seq = ?1"
                " ORDER BY seq DESC LIMIT 1",
    [SQL_INSERT] = "INSERT INTO record (" PD_TRAIL_COLUMNS ") VALUES (?, ?, ?, ?, ?"
                   PD_TRAIL_TEXTS(PLACE, PLACE) PD_TRAIL_NUMBERS(PLACE) ")",
};

#define OFFSET(name) offsetof(pd_record_t, name),
static const size_t text_offsets[] = {PD_TRAIL_TEXTS(OFFSET, OFFSET)};
#define TEXT_COUNT (sizeof(text_offsets) / sizeof(text_offsets[0]))

struct pd_trail {
    char *dir;
    pd_sqlite_t *db;
    pd_stmt_t *stmt[SQL_COUNT];
    pd_queue_t *queue;
    pd_checkpoint_t *checkpoint;
    pd_writer_t *writer;
    int64_t chain;
    _Atomic int64_t head; /* last durable seq */
    /* The writer's, inside a batch. */
    int64_t last_seq;
    int64_t last_us;
};

typedef struct append {
    pd_work_t work;
    pd_trail_done_fn *done;
    void *baton;
    int64_t seq;
    pd_record_t record; /* its texts follow the struct */
} append_t;

/* --- the writer's side ---------------------------------------------------- */

/* Read anew for each batch, so that a batch that failed leaves no number behind. */
static pd_status_t read_last(pd_trail_t *trail)
{
    int has_row = 0;
    pd_status_t status = pd_stmt_step(trail->stmt[SQL_LAST], &has_row);

    if (status != PD_OK) {
        return status;
    }
    trail->last_seq = has_row ? pd_stmt_int(trail->stmt[SQL_LAST], 0) : 0;
    trail->last_us = has_row ? pd_stmt_int(trail->stmt[SQL_LAST], 1) : 0;
    pd_stmt_reset(trail->stmt[SQL_LAST]);
    return PD_OK;
}

static pd_status_t begin_batch(void *baton)
{
    return read_last(baton);
}

static pd_status_t find_note(pd_trail_t *trail, const char *note_id, int64_t *ret)
{
    pd_stmt_bind_text(trail->stmt[SQL_NOTE], 1, note_id);
    return pd_stmt_number(trail->stmt[SQL_NOTE], ret);
}

static int is_interrupted(const char *outcome)
{
    return outcome != NULL && strcmp(outcome, "interrupted") == 0;
}

/* What the attempt's ends so far mean for one more: *known is set to the seq of the end that makes
 * it a repeat, or *supersedes to the provisional one that it replaces, or neither. */
static pd_status_t judge_end(pd_trail_t *trail, const pd_record_t *record, int64_t *known,
                             int64_t *supersedes)
{
    pd_stmt_t *stmt = trail->stmt[SQL_END];
    int64_t kind = 0;
    int has_row = 0;
    pd_status_t status;

    pd_stmt_bind_int(trail->stmt[SQL_KIND], 1, record->begin_seq);
    status = pd_stmt_number(trail->stmt[SQL_KIND], &kind);
    if (status == PD_OK && kind != PD_RECORD_BEGIN) {
        return PD_E_NOT_FOUND;
    }
    if (status != PD_OK) {
        return status;
    }
    pd_stmt_bind_int(stmt, 1, record->begin_seq);
    status = pd_stmt_step(stmt, &has_row);
    if (status != PD_OK || !has_row) {
        return status;
    }
    if (is_interrupted(pd_stmt_text(stmt, 1)) && pd_stmt_is_null(stmt, 2)
        && !is_interrupted(record->outcome)) {
        *supersedes = pd_stmt_int(stmt, 0);
    } else {
        *known = pd_stmt_int(stmt, 0);
    }
    pd_stmt_reset(stmt);
    return PD_OK;
}

static pd_status_t insert_record(pd_trail_t *trail, pd_record_t *record)
{
    pd_stmt_t *stmt = trail->stmt[SQL_INSERT];
    int64_t wall_us = pd_wall_now().us;
    int index = 6;
    pd_status_t status;

    record->seq = trail->last_seq + 1;
    record->time.us = wall_us > trail->last_us ? wall_us : trail->last_us;
    pd_stmt_bind_int(stmt, 1, record->seq);
    pd_stmt_bind_int(stmt, 2, record->kind);
    pd_stmt_bind_id(stmt, 3, record->begin_seq);
    pd_stmt_bind_id(stmt, 4, record->supersedes);
    pd_stmt_bind_int(stmt, 5, record->time.us);
#define BIND_TEXT(name)   pd_stmt_bind_text(stmt, index++, record->name);
#define BIND_NUMBER(name) pd_stmt_bind_int(stmt, index++, record->name);
    PD_TRAIL_TEXTS(BIND_TEXT, BIND_TEXT)
    PD_TRAIL_NUMBERS(BIND_NUMBER)
#undef BIND_TEXT
#undef BIND_NUMBER
    status = pd_stmt_run(stmt);
    if (status == PD_OK) {
        trail->last_seq = record->seq;
        trail->last_us = record->time.us;
    }
    return status;
}

/* One INSERT at most, which SQLite itself undoes when it fails: no savepoint is needed. */
static void apply_record(void *baton, pd_work_t *work)
{
    pd_trail_t *trail = baton;
    append_t *append = (append_t *)work;
    pd_record_t *record = &append->record;
    int64_t known = 0;
    pd_status_t status = PD_E_NOT_FOUND;

    record->supersedes = 0; /* decided here alone */
    if (record->note_id != NULL) {
        status = find_note(trail, record->note_id, &known);
    }
    if (status == PD_E_NOT_FOUND) {
        status = record->kind == PD_RECORD_END && record->begin_seq != 0
                     ? judge_end(trail, record, &known, &record->supersedes)
                     : PD_OK;
    }
    if (status == PD_OK && known == 0) {
        status = insert_record(trail, record);
        known = record->seq;
    }
    work->status = status;
    append->seq = status == PD_OK ? known : 0;
}

static void settle_batch(void *baton, pd_work_t *batch, pd_status_t status)
{
    pd_trail_t *trail = baton;

    if (status == PD_OK) {
        pd_wall_note((pd_wall_t){trail->last_us});
        atomic_store(&trail->head, trail->last_seq);
        return;
    }
    for (; batch != NULL; batch = batch->next) {
        ((append_t *)batch)->seq = 0;
    }
}

static const pd_writer_ops_t writer_ops = {begin_batch, apply_record, settle_batch};

/* --- open and close ------------------------------------------------------- */

/* The chain's number is drawn once, when the trail is made. */
static pd_status_t settle_chain(pd_trail_t *trail)
{
    pd_stmt_t *stmt = NULL;
    uint32_t drawn = 0;
    int64_t number = 0;
    pd_status_t status = pd_sqlite_prepare(trail->db, "SELECT number FROM chain", &stmt);

    if (status == PD_OK) {
        status = pd_stmt_number(stmt, &number);
    }
    pd_stmt_free(trail->db, &stmt);
    if (status == PD_E_NOT_FOUND) {
        if (getrandom(&drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn)) {
            return PD_E_SYSTEM; /* four bytes are never cut short */
        }
        number = 1 + (int64_t)(drawn & 0x7fffffffU);
        status = pd_sqlite_prepare(trail->db, "INSERT INTO chain (one, number) VALUES (1, ?1)",
                                   &stmt);
        if (status == PD_OK) {
            pd_stmt_bind_int(stmt, 1, number);
            status = pd_stmt_run(stmt);
        }
        pd_stmt_free(trail->db, &stmt);
    }
    if (status == PD_OK && (number < 1 || number > CHAIN_MAX)) {
        status = PD_E_CORRUPT;
    }
    trail->chain = number;
    return status;
}

static pd_status_t open_database(pd_trail_t *trail, char *why, size_t size)
{
    char path[PD_SQLITE_PATH_MAX];
    pd_status_t status = pd_sqlite_dir(trail->dir, why, size);

    if (status == PD_OK) {
        status = pd_sqlite_path(trail->dir, pd_schema_trail.file, path, why, size);
    }
    if (status == PD_OK) {
        status = pd_migrate_open(&pd_schema_trail, trail->dir, 0600, -1, &trail->db, why, size);
    }
    if (status != PD_OK) {
        return status;
    }
    status = pd_sqlite_cache(trail->db, CACHE_KIB);
    if (status == PD_OK) {
        status = pd_sqlite_append_only(trail->db);
    }
    if (status == PD_OK) {
        status = settle_chain(trail);
    }
    if (status == PD_OK) {
        status = pd_sqlite_prepare_all(trail->db, sql, SQL_COUNT, trail->stmt);
    }
    if (status == PD_OK) {
        status = read_last(trail);
    }
    if (status != PD_OK) {
        return pd_sqlite_why(status, why, size, "%s cannot be used: %s; restore it from a backup "
                             "or check its disk", path, pd_status_text(status));
    }
    pd_wall_note((pd_wall_t){trail->last_us});
    atomic_store(&trail->head, trail->last_seq);
    return pd_checkpoint_start(path, &trail->checkpoint, why, size);
}

pd_status_t pd_trail_open(const char *dir, void (*wake)(void *), void *wake_baton, pd_trail_t **ret,
                          char *why, size_t size)
{
    pd_trail_t *trail = calloc(1, sizeof(*trail));
    pd_status_t status;

    if (trail == NULL) {
        return pd_sqlite_why(PD_E_NOMEM, why, size, "out of memory");
    }
    trail->dir = strdup(dir);
    trail->queue = pd_queue_new(QUEUE_MAX, wake, wake_baton);
    if (trail->dir == NULL || trail->queue == NULL) {
        pd_trail_close(&trail);
        return pd_sqlite_why(PD_E_NOMEM, why, size, "out of memory");
    }
    status = open_database(trail, why, size);
    if (status == PD_OK) {
        status = pd_writer_start(trail->db, trail->queue, trail->checkpoint, &writer_ops, trail,
                                 &trail->writer);
        if (status != PD_OK) {
            (void)pd_sqlite_why(status, why, size, "cannot start the trail's writer");
        }
    }
    if (status != PD_OK) {
        pd_trail_close(&trail);
        return status;
    }
    *ret = trail;
    return PD_OK;
}

void pd_trail_stop(pd_trail_t *trail)
{
    if (trail == NULL) {
        return;
    }
    pd_writer_stop(&trail->writer);
    if (trail->queue != NULL) {
        pd_queue_close(trail->queue);
        pd_trail_reap(trail); /* what they append now is refused as closed */
    }
}

void pd_trail_close(pd_trail_t **trail)
{
    pd_trail_t *gone = *trail;

    if (gone == NULL) {
        return;
    }
    pd_trail_stop(gone);
    *trail = NULL; /* only now: those completions may have appended through it */
    pd_checkpoint_stop(&gone->checkpoint);
    pd_sqlite_close(&gone->db);
    pd_queue_free(&gone->queue);
    free(gone->dir);
    free(gone);
}

/* --- the loop's side ------------------------------------------------------ */

static const char *get_text(const pd_record_t *record, size_t offset)
{
    const char *text;

    memcpy(&text, (const char *)record + offset, sizeof(text));
    return text;
}

static void set_text(pd_record_t *record, size_t offset, const char *text)
{
    memcpy((char *)record + offset, &text, sizeof(text));
}

static int is_valid(const pd_record_t *record)
{
    size_t i;

    if (record->kind == PD_RECORD_BEGIN) {
        if (record->begin_seq != 0 || record->outcome != NULL) {
            return 0;
        }
    } else if (record->kind != PD_RECORD_END || record->begin_seq < 0 || record->outcome == NULL) {
        return 0;
    }
    for (i = 0; i < TEXT_COUNT; i++) {
        const char *text = get_text(record, text_offsets[i]);

        if (text != NULL && strnlen(text, TEXT_MAX + 1) > TEXT_MAX) {
            return 0;
        }
    }
    return 1;
}

/* The record and its texts in one block. Their lengths are bounded, so the sum cannot overflow. */
static append_t *copy_record(const pd_record_t *record)
{
    size_t total = sizeof(append_t);
    append_t *append;
    char *next;
    size_t i;

    for (i = 0; i < TEXT_COUNT; i++) {
        const char *text = get_text(record, text_offsets[i]);

        total += text == NULL ? 0 : strlen(text) + 1;
    }
    append = malloc(total);
    if (append == NULL) {
        return NULL;
    }
    memset(append, 0, sizeof(*append));
    append->record = *record;
    next = (char *)(append + 1);
    for (i = 0; i < TEXT_COUNT; i++) {
        const char *text = get_text(record, text_offsets[i]);

        if (text != NULL) {
            size_t bytes = strlen(text) + 1;

            memcpy(next, text, bytes);
            set_text(&append->record, text_offsets[i], next);
            next += bytes;
        }
    }
    return append;
}

pd_status_t pd_trail_append(pd_trail_t *trail, const pd_record_t *record, pd_trail_done_fn *done,
                            void *baton)
{
    append_t *append;
    pd_status_t status;

    if (!is_valid(record)) {
        return PD_E_INVALID;
    }
    append = copy_record(record);
    if (append == NULL) {
        return PD_E_NOMEM;
    }
    append->done = done;
    append->baton = baton;
    status = pd_queue_push(trail->queue, &append->work);
    if (status != PD_OK) {
        free(append);
    }
    return status;
}

void pd_trail_reap(pd_trail_t *trail)
{
    pd_work_t *item = pd_queue_reap(trail->queue);

    while (item != NULL) {
        append_t *append = (append_t *)item;

        item = item->next;
        if (append->done != NULL) {
            append->done(append->work.status, append->seq, append->baton);
        }
        free(append);
    }
}

int64_t pd_trail_chain(const pd_trail_t *trail)
{
    return trail->chain;
}

int64_t pd_trail_head(pd_trail_t *trail)
{
    return atomic_load(&trail->head);
}

void pd_trail_id(const pd_trail_t *trail, int64_t seq, char *buf)
{
    (void)snprintf(buf, ID_BYTES, "%" PRId64 "-%" PRId64, trail->chain, seq); /* 41 at most */
}

int64_t pd_trail_seq(const pd_trail_t *trail, const char *audit_id)
{
    char again[ID_BYTES];
    const char *dash = audit_id == NULL ? NULL : strchr(audit_id, '-');
    char *end = NULL;
    long long seq;

    if (dash == NULL || dash[1] < '1' || dash[1] > '9') {
        return 0;
    }
    errno = 0;
    seq = strtoll(dash + 1, &end, 10);
    if (errno != 0 || *end != '\0') {
        return 0;
    }
    /* Only the text that we would write for it: no other chain, sign, zero or blank. */
    pd_trail_id(trail, (int64_t)seq, again);
    return strcmp(again, audit_id) == 0 ? (int64_t)seq : 0;
}

typedef struct open_attempts {
    void (*each)(int64_t seq, const pd_record_t *record, void *baton);
    void *baton;
} open_attempts_t;

static pd_status_t hand_out(const pd_record_t *record, void *baton)
{
    const open_attempts_t *open = baton;

    open->each(record->seq, record, open->baton);
    return PD_OK;
}

pd_status_t pd_trail_open_attempts(pd_trail_t *trail,
                                   void (*each)(int64_t seq, const pd_record_t *record,
                                                void *baton),
                                   void *baton)
{
    open_attempts_t open = {each, baton};
    pd_trail_reader_t *reader = NULL;
    pd_status_t status = pd_trail_read_open(trail->dir, &reader);

    if (status == PD_OK) {
        status = pd_trail_read_open_begins(reader, hand_out, &open);
    }
    pd_trail_read_close(&reader);
    return status;
}

static pd_status_t hand_out_end(const pd_record_t *record, void *baton)
{
    const open_attempts_t *recent = baton;

    if (record->kind == PD_RECORD_END && record->begin_seq != 0) {
        recent->each(record->begin_seq, record, recent->baton);
    }
    return PD_OK;
}

pd_status_t pd_trail_recent_ends(pd_trail_t *trail, int64_t records,
                                 void (*each)(int64_t begin_seq, const pd_record_t *record,
                                              void *baton),
                                 void *baton)
{
    open_attempts_t recent = {each, baton};
    pd_trail_reader_t *reader = NULL;
    int64_t head = pd_trail_head(trail);
    int count = 0;
    pd_status_t status = pd_trail_read_open(trail->dir, &reader);

    if (status == PD_OK) {
        status = pd_trail_read_after(reader, head > records ? head - records : 0, (int)records,
                                     hand_out_end, &recent, &count);
    }
    pd_trail_read_close(&reader);
    return status;
}
