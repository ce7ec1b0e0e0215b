/* The door to SQLite for policy.db, trail.db and audit.db: connections with the house's settings,
 * statements, transactions, result codes.  Only pd_sqlite.c includes sqlite3.h.
 *
 * A connection and its statements belong to one thread at a time (opened without SQLite's own
 * mutexes); handing an unused connection to another thread is fine.  Nothing may open a database
 * file by other means while a connection to it exists in the process: closing such a descriptor
 * would drop SQLite's locks.  Not to be carried across fork().
 */
#ifndef PD_SQLITE_H
#define PD_SQLITE_H

#include <stddef.h>
#include <stdint.h>

#include "pd_err.h"
#include "pd_time.h"

typedef struct pd_sqlite pd_sqlite_t;
typedef struct pd_stmt pd_stmt_t;

#define PD_SQLITE_PATH_MAX  4096
#define PD_SQLITE_VALUE_MAX (32 * 1024 * 1024) /* bytes of one text or blob */

typedef enum pd_sqlite_mode {
    PD_SQLITE_READ,  /* read-only, cannot write by any statement */
    PD_SQLITE_WRITE, /* synchronous=FULL, no automatic checkpoints */
    PD_SQLITE_RELAXED /* as WRITE with synchronous=NORMAL: for what can be rebuilt */
} pd_sqlite_mode_t;

/* Fills `why` (may be NULL) and returns status, so that an opener can `return pd_sqlite_why(...)`.
 */
pd_status_t pd_sqlite_why(pd_status_t status, char *why, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* dir/file into path (PD_SQLITE_PATH_MAX bytes); PD_E_INVALID when too long. */
pd_status_t pd_sqlite_path(const char *dir, const char *file, char *path, char *why, size_t size);
/* Refuses what is no directory or lies on a network file system, where WAL cannot work. */
pd_status_t pd_sqlite_dir(const char *dir, char *why, size_t size);
/* Makes the file if there is none; a regular file with this mode and group (-1: any) afterwards. */
pd_status_t pd_sqlite_file(const char *path, unsigned mode, int gid, char *why, size_t size);
/* The same for the -wal and -shm beside it, where they exist. */
pd_status_t pd_sqlite_side_files(const char *path, unsigned mode, int gid, char *why, size_t size);

/* Opens an existing file. On failure `why` (may be NULL) says what to do. */
pd_status_t pd_sqlite_open(const char *path, pd_sqlite_mode_t mode, int busy_ms, pd_sqlite_t **ret,
                           char *why, size_t size);
/* Finalises the statements too. NULL is fine. */
void pd_sqlite_close(pd_sqlite_t **db);

/* Numbers in the file's header, and whether any table exists. */
typedef struct pd_sqlite_header {
    int64_t application_id;
    int64_t version;
    int64_t tables;
} pd_sqlite_header_t;
pd_status_t pd_sqlite_header(pd_sqlite_t *db, pd_sqlite_header_t *ret);
/* SQLite's own check of the whole file where it is small (64 MiB), of the schema otherwise. */
pd_status_t pd_sqlite_check(pd_sqlite_t *db, const char *path);
/* Puts the file into WAL mode. */
pd_status_t pd_sqlite_wal(pd_sqlite_t *db);
/* Memory for pages that this connection keeps; 2 MiB otherwise. Who only appends, or only reads what
 * was just appended, needs little, and would fill what it gets with pages that it never looks at
 * again. */
pd_status_t pd_sqlite_cache(pd_sqlite_t *db, int kib);
/* Leaves -wal and -shm in place at close, for readers who may not make them. */
pd_status_t pd_sqlite_keep_wal(pd_sqlite_t *db);
/* From here on the connection can select and insert, nothing else (SQLite cannot tell INSERT OR
 * REPLACE from INSERT here: that is for the guard). */
pd_status_t pd_sqlite_append_only(pd_sqlite_t *db);
/* Pages in the WAL after this connection's last commit. */
int pd_sqlite_wal_pages(const pd_sqlite_t *db);
/* Copies the WAL back; full waits for readers and the writer (within busy_ms) and restarts it. */
pd_status_t pd_sqlite_checkpoint(pd_sqlite_t *db, int is_full);
/* Statements still running then end with PD_E_TIMEOUT; us 0: no limit. */
void pd_sqlite_deadline(pd_sqlite_t *db, pd_boot_t deadline);
/* Ends a statement that runs, with PD_E_TIMEOUT. Any thread; the connection must stay open meanwhile. */
void pd_sqlite_interrupt(pd_sqlite_t *db);

/* One or more statements of a literal text. */
pd_status_t pd_sqlite_exec(pd_sqlite_t *db, const char *sql);

pd_status_t pd_sqlite_begin_read(pd_sqlite_t *db);
pd_status_t pd_sqlite_begin_write(pd_sqlite_t *db);
pd_status_t pd_sqlite_commit(pd_sqlite_t *db);
/* Never fails to leave the transaction; harmless outside of one. */
void pd_sqlite_rollback(pd_sqlite_t *db);
/* 0 also after SQLite itself gave a transaction up (disk full, I/O error). */
int pd_sqlite_in_transaction(const pd_sqlite_t *db);
/* One savepoint inside a transaction: set, keep what came since, or undo it. */
pd_status_t pd_sqlite_savepoint(pd_sqlite_t *db);
pd_status_t pd_sqlite_keep(pd_sqlite_t *db);
pd_status_t pd_sqlite_undo(pd_sqlite_t *db);

/* Rowid of the last insert; rows touched by the last statement. */
int64_t pd_sqlite_last_row(const pd_sqlite_t *db);
int64_t pd_sqlite_changes(const pd_sqlite_t *db);

/* The statement lives until pd_stmt_free() or the connection's close. */
pd_status_t pd_sqlite_prepare(pd_sqlite_t *db, const char *sql, pd_stmt_t **ret);
pd_status_t pd_sqlite_prepare_all(pd_sqlite_t *db, const char *const *sql, size_t count,
                                  pd_stmt_t **ret);
void pd_stmt_free(pd_sqlite_t *db, pd_stmt_t **stmt);

/* Parameters count from 1. Texts and blobs are not copied: they must live until the reset. A
 * failure is kept and answered by the next step. */
void pd_stmt_bind_int(pd_stmt_t *stmt, int index, int64_t value);
/* 0 becomes NULL. */
void pd_stmt_bind_id(pd_stmt_t *stmt, int index, int64_t value);
void pd_stmt_bind_text(pd_stmt_t *stmt, int index, const char *text);
void pd_stmt_bind_blob(pd_stmt_t *stmt, int index, const void *bytes, size_t count);

/* *ret_row is 1 when a row is there. At the end and on failure the statement is reset. */
pd_status_t pd_stmt_step(pd_stmt_t *stmt, int *ret_row);
/* Runs it to its end, ignoring rows. */
pd_status_t pd_stmt_run(pd_stmt_t *stmt);
/* The first column of the first row as an integer; PD_E_NOT_FOUND without a row. */
pd_status_t pd_stmt_number(pd_stmt_t *stmt, int64_t *ret);
void pd_stmt_reset(pd_stmt_t *stmt);

/* Columns count from 0; results live until the next step or reset. */
int pd_stmt_columns(const pd_stmt_t *stmt);
const char *pd_stmt_name(const pd_stmt_t *stmt, int column);
int pd_stmt_is_null(const pd_stmt_t *stmt, int column);
int pd_stmt_is_int(const pd_stmt_t *stmt, int column);
int64_t pd_stmt_int(const pd_stmt_t *stmt, int column);
const char *pd_stmt_text(const pd_stmt_t *stmt, int column);
const void *pd_stmt_blob(const pd_stmt_t *stmt, int column, size_t *ret_bytes);

#endif
