/* Reading the trail through a read-only connection. */
#include "pd_trail_read.h"

#include <stdlib.h>
#include <string.h>

#include "pd_migrate.h"

#define READ_BUSY_MS 1000
#define CACHE_KIB    256
/* No attempt outlives an hour: its deadline is minutes, and what passed it has been ended as
 * interrupted while policyd ran.  So a begin without an end that is two hours older than the newest
 * begin has nobody left to end it, and start-up needn't walk a trail of years for it.  Measured
 * against the newest begin, not the newest record or the clock: the interrupted ends that a start
 * writes carry its own, later time, and a second start must still find what the first one did not
 * get to. */
#define OPEN_SPAN_US (2LL * 3600 * 1000000)
/* The newest records are looked at whatever their time: a clock that leapt must hide nothing. */
#define OPEN_RECORDS 65536

enum { SQL_AFTER, SQL_HEAD, SQL_LAST_BEGIN, SQL_TIME_FROM, SQL_OPEN, SQL_COUNT };

static const char *const sql[SQL_COUNT] = {
    [SQL_AFTER] = "SELECT " PD_TRAIL_COLUMNS " FROM record WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    [SQL_HEAD] = "SELECT ifnull(max(seq), 0) FROM record",
    /* Walks back from the end and stops at the first begin: a few rows, unless all is denials. */
    [SQL_LAST_BEGIN] = "SELECT time_us FROM record WHERE kind = 1 ORDER BY seq DESC LIMIT 1",
    [SQL_TIME_FROM] = "SELECT time_us FROM record WHERE seq >= ?1 ORDER BY seq LIMIT 1",
    [SQL_OPEN] = "SELECT " PD_TRAIL_COLUMNS " FROM record b WHERE b.seq >= ?1 AND b.kind = 1"
                 " AND NOT EXISTS (SELECT 1 FROM record e WHERE e.begin_seq = b.seq)"
                 " ORDER BY b.seq",
};

struct pd_trail_reader {
    pd_sqlite_t *db;
    pd_stmt_t *stmt[SQL_COUNT];
};

pd_status_t pd_trail_read_open(const char *dir, pd_trail_reader_t **ret)
{
    pd_trail_reader_t *reader = calloc(1, sizeof(*reader));
    char path[PD_SQLITE_PATH_MAX];
    pd_status_t status;

    if (reader == NULL) {
        return PD_E_NOMEM;
    }
    status = pd_sqlite_path(dir, pd_schema_trail.file, path, NULL, 0);
    if (status == PD_OK) {
        status = pd_sqlite_open(path, PD_SQLITE_READ, READ_BUSY_MS, &reader->db, NULL, 0);
    }
    if (status == PD_OK) {
        status = pd_sqlite_cache(reader->db, CACHE_KIB);
    }
    if (status == PD_OK) {
        status = pd_sqlite_prepare_all(reader->db, sql, SQL_COUNT, reader->stmt);
    }
    if (status != PD_OK) {
        pd_trail_read_close(&reader);
        return status;
    }
    *ret = reader;
    return PD_OK;
}

void pd_trail_read_close(pd_trail_reader_t **reader)
{
    if (*reader == NULL) {
        return;
    }
    pd_sqlite_close(&(*reader)->db);
    free(*reader);
    *reader = NULL;
}

static void read_record(const pd_stmt_t *stmt, pd_record_t *record)
{
    int column = 5;

    memset(record, 0, sizeof(*record));
    record->seq = pd_stmt_int(stmt, 0);
    record->kind = pd_stmt_int(stmt, 1) == PD_RECORD_BEGIN ? PD_RECORD_BEGIN : PD_RECORD_END;
    record->begin_seq = pd_stmt_int(stmt, 2); /* NULL reads as 0 */
    record->supersedes = pd_stmt_int(stmt, 3);
    record->time.us = pd_stmt_int(stmt, 4);
#define READ_TEXT(name)   record->name = pd_stmt_text(stmt, column++);
#define READ_NUMBER(name) record->name = pd_stmt_int(stmt, column++);
    PD_TRAIL_TEXTS(READ_TEXT, READ_TEXT)
    PD_TRAIL_NUMBERS(READ_NUMBER)
#undef READ_TEXT
#undef READ_NUMBER
}

static pd_status_t read_rows(pd_stmt_t *stmt, pd_trail_each_fn *each, void *baton, int *ret_count)
{
    int has_row = 0;
    pd_status_t status = pd_stmt_step(stmt, &has_row);

    *ret_count = 0;
    while (status == PD_OK && has_row) {
        pd_record_t record;

        read_record(stmt, &record);
        status = each(&record, baton);
        if (status == PD_OK) {
            ++*ret_count;
            status = pd_stmt_step(stmt, &has_row);
        }
    }
    pd_stmt_reset(stmt);
    return status;
}

pd_status_t pd_trail_read_after(pd_trail_reader_t *reader, int64_t after, int limit,
                                pd_trail_each_fn *each, void *baton, int *ret_count)
{
    pd_stmt_t *stmt = reader->stmt[SQL_AFTER];

    pd_stmt_bind_int(stmt, 1, after);
    pd_stmt_bind_int(stmt, 2, limit);
    return read_rows(stmt, each, baton, ret_count);
}

/* The lowest seq from 1 to `high` from which on every record is of `since_us` or later, or high.
 * Time never falls as seq rises, so halving finds it. */
static pd_status_t find_since(pd_trail_reader_t *reader, int64_t high, int64_t since_us,
                              int64_t *ret)
{
    pd_stmt_t *stmt = reader->stmt[SQL_TIME_FROM];
    int64_t low = 1;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int64_t time_us = 0;
        pd_status_t status;

        pd_stmt_bind_int(stmt, 1, middle);
        status = pd_stmt_number(stmt, &time_us);
        if (status != PD_OK) {
            return status;
        }
        if (time_us >= since_us) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *ret = low;
    return PD_OK;
}

static pd_status_t read_open(pd_trail_reader_t *reader, pd_trail_each_fn *each, void *baton)
{
    int64_t head = 0;
    int64_t newest_us = 0;
    int64_t from = 1;
    int count = 0;
    pd_status_t status = pd_stmt_number(reader->stmt[SQL_HEAD], &head);

    if (status == PD_OK) {
        status = pd_stmt_number(reader->stmt[SQL_LAST_BEGIN], &newest_us);
    }
    if (status == PD_E_NOT_FOUND) {
        return PD_OK; /* no begin at all */
    }
    if (status == PD_OK && head > OPEN_RECORDS) {
        status = find_since(reader, head - OPEN_RECORDS, newest_us - OPEN_SPAN_US, &from);
    }
    if (status != PD_OK) {
        return status;
    }
    pd_stmt_bind_int(reader->stmt[SQL_OPEN], 1, from);
    return read_rows(reader->stmt[SQL_OPEN], each, baton, &count);
}

pd_status_t pd_trail_read_open_begins(pd_trail_reader_t *reader, pd_trail_each_fn *each,
                                      void *baton)
{
    pd_status_t status = pd_sqlite_begin_read(reader->db);

    if (status == PD_OK) {
        status = read_open(reader, each, baton);
    }
    pd_sqlite_rollback(reader->db); /* nothing was written; ends the snapshot */
    return status;
}
