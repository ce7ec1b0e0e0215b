/* The door to SQLite: every connection gets the same settings, every result code is translated
 * here, and no type of the library gets out.  One file, because sqlite3.h is to be included once.
 */
#include "pd_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <sqlite3.h>

#define CHECK_WHOLE_MAX (64LL * 1024 * 1024)
#define PROGRESS_OPS    5000 /* steps of its machine between looks at the deadline: below 1 ms */

enum {
    TX_BEGIN_READ,
    TX_BEGIN_WRITE,
    TX_COMMIT,
    TX_ROLLBACK,
    TX_SAVEPOINT,
    TX_KEEP,
    TX_UNDO,
    TX_COUNT
};

static const char *const tx_sql[TX_COUNT] = {
    [TX_BEGIN_READ] = "BEGIN",
    [TX_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [TX_COMMIT] = "COMMIT",
    [TX_ROLLBACK] = "ROLLBACK",
    [TX_SAVEPOINT] = "SAVEPOINT unit",
    [TX_KEEP] = "RELEASE unit",
    [TX_UNDO] = "ROLLBACK TO unit",
};

struct pd_stmt {
    pd_stmt_t *next;
    sqlite3_stmt *handle;
    pd_status_t bound; /* the first failed bind since the reset */
};

struct pd_sqlite {
    sqlite3 *handle;
    pd_stmt_t *statements;
    pd_stmt_t *tx[TX_COUNT];
    pd_boot_t deadline;
    int wal_pages;
};

static pd_status_t translate(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return PD_OK;
    case SQLITE_CONSTRAINT:
        return PD_E_CONFLICT;
    case SQLITE_NOMEM:
        return PD_E_NOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return PD_E_CORRUPT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return PD_E_LOCKED;
    case SQLITE_INTERRUPT:
        return PD_E_TIMEOUT;
    case SQLITE_TOOBIG:
        return PD_E_INVALID;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_NOLFS:
    case SQLITE_PROTOCOL:
        return PD_E_IO;
    default:
        return PD_E_INTERNAL;
    }
}

pd_status_t pd_sqlite_why(pd_status_t status, char *why, size_t size, const char *format, ...)
{
    va_list args;

    if (why != NULL && size > 0) {
        va_start(args, format);
        if (vsnprintf(why, size, format, args) < 0) {
            why[0] = '\0';
        }
        va_end(args);
    }
    return status;
}

/* --- files ---------------------------------------------------------------- */

pd_status_t pd_sqlite_path(const char *dir, const char *file, char *path, char *why, size_t size)
{
    int length = snprintf(path, PD_SQLITE_PATH_MAX, "%s/%s", dir, file);

    /* Room for "-wal" and "-shm". */
    if (length < 0 || length >= PD_SQLITE_PATH_MAX - 8) {
        return pd_sqlite_why(PD_E_INVALID, why, size,
                             "the path of the state directory is too long");
    }
    return PD_OK;
}

pd_status_t pd_sqlite_dir(const char *dir, char *why, size_t size)
{
    /* NFS, SMB, CIFS, SMB2, AFS, Coda, Ceph: shared memory of WAL doesn't reach over them. */
    static const unsigned long network[] = {0x6969UL,     0x517bUL,     0xff534d42UL, 0xfe534d42UL,
                                            0x5346414fUL, 0x73757245UL, 0x00c36400UL};
    struct statfs fs;
    struct stat st;
    size_t i;

    if (stat(dir, &st) != 0) {
        return pd_sqlite_why(PD_E_SYSTEM, why, size, "%s: %s; make the directory", dir,
                             strerror(errno));
    }
    if (!S_ISDIR(st.st_mode)) {
        return pd_sqlite_why(PD_E_INVALID, why, size, "%s is not a directory", dir);
    }
    if (statfs(dir, &fs) != 0) {
        return pd_sqlite_why(PD_E_SYSTEM, why, size, "%s: %s", dir, strerror(errno));
    }
    for (i = 0; i < sizeof(network) / sizeof(network[0]); i++) {
        if (((unsigned long)fs.f_type & 0xffffffffUL) == network[i]) {
            return pd_sqlite_why(PD_E_INVALID, why, size,
                                 "%s is on a network file system; move it to a local disk", dir);
        }
    }
    return PD_OK;
}

/* Mode and group of a file that exists, by path: opening it could drop SQLite's locks at close. */
static pd_status_t settle_file(const char *path, const struct stat *st, unsigned mode, int gid,
                               char *why, size_t size)
{
    if (!S_ISREG(st->st_mode)) {
        return pd_sqlite_why(PD_E_INVALID, why, size, "%s is not a regular file; remove it", path);
    }
    if (gid >= 0 && st->st_gid != (gid_t)gid && chown(path, (uid_t)-1, (gid_t)gid) != 0) {
        return pd_sqlite_why(PD_E_SYSTEM, why, size,
                             "%s: cannot give it to group %d: %s; policyd's user must own the file "
                             "and be in the group",
                             path, gid, strerror(errno));
    }
    if ((st->st_mode & 07777) != mode && chmod(path, (mode_t)mode) != 0) {
        return pd_sqlite_why(PD_E_SYSTEM, why, size,
                             "%s: cannot set its mode: %s; policyd's user must own it", path,
                             strerror(errno));
    }
    return PD_OK;
}

/* Makes the new name itself durable, without which a power cut loses the file and all in it. */
static pd_status_t sync_parent(const char *path)
{
    char dir[PD_SQLITE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    pd_status_t status = PD_OK;
    int fd;

    if (length >= sizeof(dir)) {
        return PD_E_INVALID;
    }
    memcpy(dir, path, length);
    dir[length] = '\0';
    fd = open(length == 0 ? "/" : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return PD_E_SYSTEM;
    }
    if (fsync(fd) != 0 && errno != EINVAL) {
        status = PD_E_IO;
    }
    (void)close(fd); /* nothing was written through it */
    return status;
}

pd_status_t pd_sqlite_file(const char *path, unsigned mode, int gid, char *why, size_t size)
{
    struct stat st;
    int fd;

    if (lstat(path, &st) == 0) {
        return settle_file(path, &st, mode, gid, why, size);
    }
    if (errno != ENOENT) {
        return pd_sqlite_why(PD_E_SYSTEM, why, size, "%s: %s", path, strerror(errno));
    }
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
    if (fd < 0) {
        return pd_sqlite_why(PD_E_IO, why, size,
                             "%s: cannot make it: %s; policyd's user must be able to write there",
                             path, strerror(errno));
    }
    if (fchmod(fd, (mode_t)mode) != 0 || fstat(fd, &st) != 0) {
        (void)pd_sqlite_why(PD_E_SYSTEM, why, size, "%s: %s", path, strerror(errno));
        (void)close(fd); /* the file is empty */
        return PD_E_SYSTEM;
    }
    (void)close(fd); /* the file is empty; its name is synced below */
    if (sync_parent(path) != PD_OK) {
        return pd_sqlite_why(PD_E_IO, why, size, "%s: cannot sync its directory", path);
    }
    return settle_file(path, &st, mode, gid, why, size);
}

pd_status_t pd_sqlite_side_files(const char *path, unsigned mode, int gid, char *why, size_t size)
{
    static const char *const suffixes[] = {"-wal", "-shm"};
    char side[PD_SQLITE_PATH_MAX];
    struct stat st;
    size_t i;

    for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        int length = snprintf(side, sizeof(side), "%s%s", path, suffixes[i]);
        pd_status_t status;

        if (length < 0 || (size_t)length >= sizeof(side)) {
            return pd_sqlite_why(PD_E_INVALID, why, size, "the path is too long");
        }
        if (lstat(side, &st) != 0) {
            continue;
        }
        status = settle_file(side, &st, mode, gid, why, size);
        if (status != PD_OK) {
            return status;
        }
    }
    return PD_OK;
}

/* --- connections ---------------------------------------------------------- */

typedef struct pd_limit {
    int id;
    int value;
} pd_limit_t;

static const pd_limit_t limits[] = {
    {SQLITE_LIMIT_LENGTH, PD_SQLITE_VALUE_MAX}, {SQLITE_LIMIT_SQL_LENGTH, 64 * 1024},
    {SQLITE_LIMIT_COLUMN, 100},                 {SQLITE_LIMIT_EXPR_DEPTH, 100},
    {SQLITE_LIMIT_COMPOUND_SELECT, 8},          {SQLITE_LIMIT_VDBE_OP, 25000},
    {SQLITE_LIMIT_FUNCTION_ARG, 16},            {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},   {SQLITE_LIMIT_VARIABLE_NUMBER, 100},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 4},            {SQLITE_LIMIT_WORKER_THREADS, 0},
};

/* Triggers aren't used; foreign-key actions don't count as such. */
static const pd_limit_t settings[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_ENABLE_FKEY, 1},    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
    {SQLITE_DBCONFIG_DQS_DML, 0},        {SQLITE_DBCONFIG_DQS_DDL, 0},
    {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
};

static const char *const mode_sql[] = {
    [PD_SQLITE_READ] = "PRAGMA query_only=ON",
    [PD_SQLITE_WRITE] = "PRAGMA synchronous=FULL; PRAGMA secure_delete=ON",
    [PD_SQLITE_RELAXED] = "PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON",
};

/* Counts pages instead of checkpointing: that has a thread of its own. */
static int count_wal(void *baton, sqlite3 *handle, const char *name, int pages)
{
    pd_sqlite_t *db = baton;

    (void)handle; /* the same connection */
    (void)name;   /* there is only main */
    db->wal_pages = pages;
    return SQLITE_OK;
}

static pd_status_t settle_connection(pd_sqlite_t *db, pd_sqlite_mode_t mode, int busy_ms)
{
    size_t i;
    int code;

    (void)sqlite3_extended_result_codes(db->handle, 1); /* fails for a bad handle only */
    (void)sqlite3_busy_timeout(db->handle, busy_ms);    /* likewise */
    for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        (void)sqlite3_limit(db->handle, limits[i].id, limits[i].value); /* answers the old one */
    }
    for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        int now = -1;

        code = sqlite3_db_config(db->handle, settings[i].id, settings[i].value, &now);
        if (code != SQLITE_OK || now != settings[i].value) {
            return PD_E_INTERNAL;
        }
    }
    code = sqlite3_exec(db->handle,
                        "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0",
                        NULL, NULL, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_exec(db->handle, mode_sql[mode], NULL, NULL, NULL);
    }
    (void)sqlite3_wal_hook(db->handle, count_wal, db); /* also ends autocheckpoints */
    return translate(code);
}

pd_status_t pd_sqlite_cache(pd_sqlite_t *db, int kib)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "PRAGMA cache_size=-%d", kib); /* one number always fits */
    return pd_sqlite_exec(db, text);
}

static pd_status_t open_failed(pd_status_t status, const char *path, char *why, size_t size)
{
    switch ((int)status) {
    case PD_E_CORRUPT:
        return pd_sqlite_why(status, why, size,
                             "%s is damaged or no database of policyd; restore it from a backup",
                             path);
    case PD_E_LOCKED:
        return pd_sqlite_why(status, why, size, "%s is locked by another process; end that first",
                             path);
    case PD_E_IO:
        return pd_sqlite_why(status, why, size,
                             "%s cannot be opened for this: check its owner, its mode, its "
                             "directory and free space",
                             path);
    default:
        return pd_sqlite_why(status, why, size, "%s cannot be opened: %s", path,
                             pd_status_text(status));
    }
}

pd_status_t pd_sqlite_open(const char *path, pd_sqlite_mode_t mode, int busy_ms, pd_sqlite_t **ret,
                           char *why, size_t size)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    pd_sqlite_t *db = NULL;
    pd_status_t status;

    if (sqlite3_threadsafe() == 0) {
        return pd_sqlite_why(PD_E_INTERNAL, why, size, "this SQLite was built without threads");
    }
    db = calloc(1, sizeof(*db));
    if (db == NULL) {
        return pd_sqlite_why(PD_E_NOMEM, why, size, "out of memory");
    }
    flags |= mode == PD_SQLITE_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    status = translate(sqlite3_open_v2(path, &db->handle, flags, NULL));
    if (status == PD_OK) {
        status = settle_connection(db, mode, busy_ms);
    }
    /* A file without write permission opens read-only without a word. */
    if (status == PD_OK && mode != PD_SQLITE_READ && sqlite3_db_readonly(db->handle, "main") != 0) {
        status = PD_E_IO;
    }
    if (status == PD_OK) {
        status = pd_sqlite_prepare_all(db, tx_sql, TX_COUNT, db->tx);
    }
    if (status != PD_OK) {
        (void)open_failed(status, path, why, size);
        pd_sqlite_close(&db);
        return status;
    }
    *ret = db;
    return PD_OK;
}

void pd_sqlite_close(pd_sqlite_t **db)
{
    pd_sqlite_t *gone = *db;

    if (gone == NULL) {
        return;
    }
    *db = NULL;
    while (gone->statements != NULL) {
        pd_stmt_t *stmt = gone->statements;

        gone->statements = stmt->next;
        (void)sqlite3_finalize(stmt->handle); /* repeats the last step's failure */
        free(stmt);
    }
    (void)sqlite3_close_v2(gone->handle); /* no statement is left that could hold it */
    free(gone);
}

static pd_status_t number_of(pd_sqlite_t *db, const char *sql, int64_t *ret)
{
    pd_stmt_t *stmt = NULL;
    pd_status_t status = pd_sqlite_prepare(db, sql, &stmt);

    if (status == PD_OK) {
        status = pd_stmt_number(stmt, ret);
    }
    pd_stmt_free(db, &stmt);
    return status;
}

pd_status_t pd_sqlite_header(pd_sqlite_t *db, pd_sqlite_header_t *ret)
{
    pd_sqlite_header_t header = {0, 0, 0};
    pd_status_t status = number_of(db, "PRAGMA application_id", &header.application_id);

    if (status == PD_OK) {
        status = number_of(db, "PRAGMA user_version", &header.version);
    }
    if (status == PD_OK) {
        status = number_of(db, "SELECT count(*) FROM sqlite_schema", &header.tables);
    }
    if (status == PD_OK) {
        *ret = header;
    }
    return status;
}

static int64_t bytes_of(const char *path, const char *suffix)
{
    char name[PD_SQLITE_PATH_MAX];
    struct stat st;
    int length = snprintf(name, sizeof(name), "%s%s", path, suffix);

    if (length < 0 || (size_t)length >= sizeof(name) || stat(name, &st) != 0) {
        return 0;
    }
    return (int64_t)st.st_size;
}

pd_status_t pd_sqlite_check(pd_sqlite_t *db, const char *path)
{
    pd_stmt_t *stmt = NULL;
    pd_status_t status;
    int64_t tables = 0;
    int has_row = 0;

    if (bytes_of(path, "") + bytes_of(path, "-wal") >= CHECK_WHOLE_MAX) {
        /* A full read would hold the start up for minutes: read the schema, the rest is checked
         * page by page as it is used (cell_size_check). */
        return number_of(db, "SELECT count(*) FROM sqlite_schema", &tables);
    }
    status = pd_sqlite_prepare(db, "PRAGMA quick_check(1)", &stmt);
    if (status == PD_OK) {
        status = pd_stmt_step(stmt, &has_row);
    }
    if (status == PD_OK) {
        const char *verdict = has_row ? pd_stmt_text(stmt, 0) : NULL;

        status = verdict != NULL && strcmp(verdict, "ok") == 0 ? PD_OK : PD_E_CORRUPT;
    }
    pd_stmt_free(db, &stmt);
    return status;
}

pd_status_t pd_sqlite_wal(pd_sqlite_t *db)
{
    pd_stmt_t *stmt = NULL;
    int has_row = 0;
    pd_status_t status = pd_sqlite_prepare(db, "PRAGMA journal_mode=WAL", &stmt);

    if (status == PD_OK) {
        status = pd_stmt_step(stmt, &has_row);
    }
    if (status == PD_OK) {
        const char *mode = has_row ? pd_stmt_text(stmt, 0) : NULL;

        status = mode != NULL && strcmp(mode, "wal") == 0 ? PD_OK : PD_E_IO;
    }
    pd_stmt_free(db, &stmt);
    return status;
}

pd_status_t pd_sqlite_keep_wal(pd_sqlite_t *db)
{
    int keep = 1;

    return translate(sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_PERSIST_WAL, &keep));
}

static int allow_appending(void *baton, int action, const char *a, const char *b, const char *c,
                           const char *d)
{
    (void)baton;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_INSERT:
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        return SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

pd_status_t pd_sqlite_append_only(pd_sqlite_t *db)
{
    return translate(sqlite3_set_authorizer(db->handle, allow_appending, NULL));
}

int pd_sqlite_wal_pages(const pd_sqlite_t *db)
{
    return db->wal_pages;
}

pd_status_t pd_sqlite_checkpoint(pd_sqlite_t *db, int is_full)
{
    return translate(sqlite3_wal_checkpoint_v2(
        db->handle, "main", is_full ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, NULL,
        NULL));
}

static int is_late(void *baton)
{
    const pd_sqlite_t *db = baton;

    return pd_boot_left_ms(db->deadline) == 0;
}

void pd_sqlite_deadline(pd_sqlite_t *db, pd_boot_t deadline)
{
    db->deadline = deadline;
    if (deadline.us == 0) {
        sqlite3_progress_handler(db->handle, 0, NULL, NULL);
    } else {
        sqlite3_progress_handler(db->handle, PROGRESS_OPS, is_late, db);
    }
}

void pd_sqlite_interrupt(pd_sqlite_t *db)
{
    sqlite3_interrupt(db->handle);
}

/* --- transactions --------------------------------------------------------- */

pd_status_t pd_sqlite_exec(pd_sqlite_t *db, const char *sql)
{
    return translate(sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

pd_status_t pd_sqlite_begin_read(pd_sqlite_t *db)
{
    return pd_stmt_run(db->tx[TX_BEGIN_READ]);
}

pd_status_t pd_sqlite_begin_write(pd_sqlite_t *db)
{
    return pd_stmt_run(db->tx[TX_BEGIN_WRITE]);
}

pd_status_t pd_sqlite_commit(pd_sqlite_t *db)
{
    return pd_stmt_run(db->tx[TX_COMMIT]);
}

void pd_sqlite_rollback(pd_sqlite_t *db)
{
    if (pd_sqlite_in_transaction(db)) {
        (void)pd_stmt_run(db->tx[TX_ROLLBACK]); /* a failing ROLLBACK has ended it all the same */
    }
}

int pd_sqlite_in_transaction(const pd_sqlite_t *db)
{
    return sqlite3_get_autocommit(db->handle) == 0;
}

pd_status_t pd_sqlite_savepoint(pd_sqlite_t *db)
{
    return pd_stmt_run(db->tx[TX_SAVEPOINT]);
}

pd_status_t pd_sqlite_keep(pd_sqlite_t *db)
{
    return pd_stmt_run(db->tx[TX_KEEP]);
}

pd_status_t pd_sqlite_undo(pd_sqlite_t *db)
{
    pd_status_t status = pd_stmt_run(db->tx[TX_UNDO]);

    return status == PD_OK ? pd_stmt_run(db->tx[TX_KEEP]) : status;
}

int64_t pd_sqlite_last_row(const pd_sqlite_t *db)
{
    return sqlite3_last_insert_rowid(db->handle);
}

int64_t pd_sqlite_changes(const pd_sqlite_t *db)
{
    return sqlite3_changes(db->handle);
}

/* --- statements ----------------------------------------------------------- */

pd_status_t pd_sqlite_prepare(pd_sqlite_t *db, const char *sql, pd_stmt_t **ret)
{
    pd_stmt_t *stmt = calloc(1, sizeof(*stmt));
    const char *rest = NULL;
    pd_status_t status;

    if (stmt == NULL) {
        return PD_E_NOMEM;
    }
    status = translate(
        sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt->handle, &rest));
    if (status == PD_OK && (stmt->handle == NULL || *rest != '\0')) {
        status = PD_E_INTERNAL; /* empty, or more than one statement */
    }
    if (status != PD_OK) {
        (void)sqlite3_finalize(stmt->handle); /* NULL is fine */
        free(stmt);
        return status;
    }
    stmt->next = db->statements;
    db->statements = stmt;
    *ret = stmt;
    return PD_OK;
}

pd_status_t pd_sqlite_prepare_all(pd_sqlite_t *db, const char *const *sql, size_t count,
                                  pd_stmt_t **ret)
{
    size_t i;

    for (i = 0; i < count; i++) {
        pd_status_t status = pd_sqlite_prepare(db, sql[i], &ret[i]);

        if (status != PD_OK) {
            return status;
        }
    }
    return PD_OK;
}

void pd_stmt_free(pd_sqlite_t *db, pd_stmt_t **stmt)
{
    pd_stmt_t **link = &db->statements;
    pd_stmt_t *gone = *stmt;

    if (gone == NULL) {
        return;
    }
    *stmt = NULL;
    while (*link != NULL && *link != gone) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = gone->next;
    }
    (void)sqlite3_finalize(gone->handle); /* repeats the last step's failure */
    free(gone);
}

static void note_bind(pd_stmt_t *stmt, int code)
{
    if (code != SQLITE_OK && stmt->bound == PD_OK) {
        stmt->bound = translate(code);
    }
}

void pd_stmt_bind_int(pd_stmt_t *stmt, int index, int64_t value)
{
    note_bind(stmt, sqlite3_bind_int64(stmt->handle, index, value));
}

void pd_stmt_bind_id(pd_stmt_t *stmt, int index, int64_t value)
{
    note_bind(stmt, value == 0 ? sqlite3_bind_null(stmt->handle, index)
                               : sqlite3_bind_int64(stmt->handle, index, value));
}

void pd_stmt_bind_text(pd_stmt_t *stmt, int index, const char *text)
{
    /* SQLITE_STATIC: the caller keeps it until the reset. */
    note_bind(stmt, text == NULL ? sqlite3_bind_null(stmt->handle, index)
                                 : sqlite3_bind_text64(stmt->handle, index, text, strlen(text),
                                                       SQLITE_STATIC, SQLITE_UTF8));
}

void pd_stmt_bind_blob(pd_stmt_t *stmt, int index, const void *bytes, size_t count)
{
    note_bind(stmt, count == 0 ? sqlite3_bind_zeroblob(stmt->handle, index, 0)
                               : sqlite3_bind_blob64(stmt->handle, index, bytes, count,
                                                     SQLITE_STATIC));
}

void pd_stmt_reset(pd_stmt_t *stmt)
{
    (void)sqlite3_reset(stmt->handle);          /* repeats the last step's failure */
    (void)sqlite3_clear_bindings(stmt->handle); /* cannot fail */
    stmt->bound = PD_OK;
}

pd_status_t pd_stmt_step(pd_stmt_t *stmt, int *ret_row)
{
    pd_status_t status = stmt->bound;
    int code = SQLITE_DONE;

    if (status == PD_OK) {
        code = sqlite3_step(stmt->handle);
        status = translate(code);
    }
    if (status == PD_OK) {
        *ret_row = code == SQLITE_ROW;
    }
    if (code != SQLITE_ROW) {
        pd_stmt_reset(stmt);
    }
    return status;
}

pd_status_t pd_stmt_run(pd_stmt_t *stmt)
{
    int has_row = 0;
    pd_status_t status;

    do {
        status = pd_stmt_step(stmt, &has_row);
    } while (status == PD_OK && has_row);
    return status;
}

pd_status_t pd_stmt_number(pd_stmt_t *stmt, int64_t *ret)
{
    int has_row = 0;
    pd_status_t status = pd_stmt_step(stmt, &has_row);

    if (status != PD_OK) {
        return status;
    }
    if (!has_row) {
        return PD_E_NOT_FOUND;
    }
    *ret = pd_stmt_int(stmt, 0);
    pd_stmt_reset(stmt);
    return PD_OK;
}

int pd_stmt_columns(const pd_stmt_t *stmt)
{
    return sqlite3_column_count(stmt->handle);
}

const char *pd_stmt_name(const pd_stmt_t *stmt, int column)
{
    return sqlite3_column_name(stmt->handle, column);
}

int pd_stmt_is_null(const pd_stmt_t *stmt, int column)
{
    return sqlite3_column_type(stmt->handle, column) == SQLITE_NULL;
}

int pd_stmt_is_int(const pd_stmt_t *stmt, int column)
{
    return sqlite3_column_type(stmt->handle, column) == SQLITE_INTEGER;
}

int64_t pd_stmt_int(const pd_stmt_t *stmt, int column)
{
    return sqlite3_column_int64(stmt->handle, column);
}

const char *pd_stmt_text(const pd_stmt_t *stmt, int column)
{
    return (const char *)sqlite3_column_text(stmt->handle, column);
}

const void *pd_stmt_blob(const pd_stmt_t *stmt, int column, size_t *ret_bytes)
{
    const void *bytes = sqlite3_column_blob(stmt->handle, column);

    *ret_bytes = (size_t)sqlite3_column_bytes(stmt->handle, column);
    return bytes;
}
