/* The policy store on SQLite: opening, refusing and closing policy.db, and the statements. */
#include "pd_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <apr_strings.h>

#include "pd_migrate.h"
#include "pd_store_private.h"

#define LOCK_FILE      "policyd.lock"
#define READ_BUSY_MS   1000
#define LOOP_POOL_KEEP (1024 * 1024) /* bytes that the allocator of inline units keeps */

#define OBJECT(t)                                                                                  \
    t ".kind," t ".id," t ".owner," t ".revision," t ".created_us," t ".updated_us," t ".doc"

static const char *const sql[PD_SQL_COUNT] = {
    [PD_SQL_REVISION] = "SELECT revision, floor FROM policy WHERE one = 1",
    [PD_SQL_GET] = "SELECT " OBJECT("o") " FROM object o WHERE o.kind = ?1 AND o.id = ?2",
    [PD_SQL_FIND] = "SELECT " OBJECT("o") " FROM key k JOIN object o ON o.n = k.n"
                                          " WHERE k.kind = ?1 AND k.key = ?2",
    [PD_SQL_LIST] = "SELECT " OBJECT("o") " FROM object o WHERE o.kind = ?1 AND o.id > ?2"
                                          " ORDER BY o.id LIMIT ?3",
    [PD_SQL_LIST_OWNER] = "SELECT " OBJECT("o") " FROM object o WHERE o.kind = ?1 AND o.id > ?2"
                                                " AND o.owner = ?4 ORDER BY o.id LIMIT ?3",
    /* One statement, one snapshot: no revoke can slip between the three. */
    [PD_SQL_GRANT] = "SELECT " OBJECT("g") "," OBJECT(
        "m") ", p.revision FROM policy p"
             " JOIN key k ON k.kind = 'grant' AND k.key = ?1 JOIN object g ON g.n = k.n"
             " LEFT JOIN object m ON m.kind = 'member' AND m.id = g.owner WHERE p.one = 1",
    [PD_SQL_CHANGES] = "SELECT kind, id FROM change WHERE revision > ?1"
                       " GROUP BY kind, id ORDER BY max(n)",
    [PD_SQL_AUDIT_FIND] = "SELECT revision FROM revision WHERE audit_id = ?1"
                          " ORDER BY revision DESC LIMIT 1",
    [PD_SQL_SECRET_GET] = "SELECT s.sealed FROM object o JOIN secret s ON s.n = o.n"
                          " WHERE o.kind = ?1 AND o.id = ?2",
    [PD_SQL_HEAD] = "SELECT n, revision FROM object WHERE kind = ?1 AND id = ?2",
    [PD_SQL_KEY_HOLDER] = "SELECT n FROM key WHERE kind = ?1 AND key = ?2",
    [PD_SQL_INSERT] = "INSERT INTO object (kind, id, owner, revision, created_us, updated_us, doc)"
                      " VALUES (?1, ?2, ?3, 1, ?4, ?4, ?5)",
    [PD_SQL_UPDATE] = "UPDATE object SET owner = ?2, revision = ?3, updated_us = ?4, doc = ?5"
                      " WHERE n = ?1",
    [PD_SQL_DELETE] = "DELETE FROM object WHERE n = ?1",
    [PD_SQL_KEY_ADD] = "INSERT INTO key (kind, key, n) VALUES (?1, ?2, ?3)",
    [PD_SQL_KEY_DROP] = "DELETE FROM key WHERE n = ?1",
    [PD_SQL_SECRET_PUT] = "INSERT INTO secret (n, sealed) VALUES (?1, ?2)"
                          " ON CONFLICT (n) DO UPDATE SET sealed = excluded.sealed",
    [PD_SQL_SECRET_DROP] = "DELETE FROM secret WHERE n = ?1",
    [PD_SQL_CHANGE_ADD] = "INSERT OR IGNORE INTO change (revision, kind, id) VALUES (?1, ?2, ?3)",
    [PD_SQL_CHANGE_LAST] = "SELECT ifnull(max(n), 0) FROM change",
    [PD_SQL_CHANGE_FLOOR] = "UPDATE policy SET floor = ifnull((SELECT revision FROM change"
                            " WHERE n <= ?1 ORDER BY n DESC LIMIT 1), floor) WHERE one = 1",
    [PD_SQL_CHANGE_PRUNE] = "DELETE FROM change WHERE n <= ?1",
    [PD_SQL_REVISION_SET] = "UPDATE policy SET revision = ?1 WHERE one = 1",
    [PD_SQL_REVISION_ADD] =
        "INSERT INTO revision (revision, time_us, audit_id) VALUES (?1, ?2, ?3)",
    [PD_SQL_REVISION_PRUNE] = "DELETE FROM revision WHERE revision <= ?1",
};

pd_status_t pd_store_prepare(pd_store_conn_t *conn, size_t count)
{
    return pd_sqlite_prepare_all(conn->db, sql, count, conn->stmt);
}

/* --- open and close ------------------------------------------------------- */

/* A second policyd on the same directory would number records and revisions of its own. The lock is
 * on a file beside the databases, because a lock on those is SQLite's. */
static pd_status_t take_lock(const char *dir, int *ret_fd, char *why, size_t size)
{
    char path[PD_SQLITE_PATH_MAX];
    char text[32];
    int length;
    int fd;
    pd_status_t status = pd_sqlite_path(dir, LOCK_FILE, path, why, size);

    if (status != PD_OK) {
        return status;
    }
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return pd_sqlite_why(PD_E_IO, why, size,
                             "%s: %s; policyd's user must be able to write there", path,
                             strerror(errno));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int code = errno;

        (void)close(fd); /* not ours */
        if (code == EWOULDBLOCK) {
            return pd_sqlite_why(PD_E_LOCKED, why, size,
                                 "another policyd holds %s; stop it, or give this one its own "
                                 "state directory",
                                 path);
        }
        return pd_sqlite_why(PD_E_SYSTEM, why, size, "%s: cannot lock: %s", path, strerror(code));
    }
    /* The pid is for people who look; the lock is what counts, so that a failure here does not. */
    length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (length > 0 && ftruncate(fd, 0) == 0) {
        (void)!pwrite(fd, text, (size_t)length, 0);
    }
    *ret_fd = fd;
    return PD_OK;
}

static pd_status_t open_reader(const char *path, pd_store_conn_t *conn, char *why, size_t size)
{
    pd_status_t status =
        pd_sqlite_open(path, PD_SQLITE_READ, READ_BUSY_MS, &conn->db, why, size);

    if (status != PD_OK) {
        return status;
    }
    status = pd_store_prepare(conn, PD_SQL_READS);
    if (status != PD_OK) {
        return pd_sqlite_why(status, why, size, "%s: cannot prepare its statements: %s", path,
                             pd_status_text(status));
    }
    return PD_OK;
}

static pd_status_t open_connections(pd_store_t *store, const char *dir, char *why, size_t size)
{
    char path[PD_SQLITE_PATH_MAX];
    pd_status_t status = pd_sqlite_path(dir, pd_schema_policy.file, path, why, size);
    size_t i;

    if (status == PD_OK) {
        status = pd_migrate_open(&pd_schema_policy, dir, 0600, -1, &store->write.db, why, size);
    }
    if (status != PD_OK) {
        return status;
    }
    status = pd_store_prepare(&store->write, PD_SQL_COUNT);
    if (status == PD_OK) {
        status = pd_store_revision(&store->write, &store->committed);
    }
    if (status != PD_OK) {
        return pd_sqlite_why(status, why, size, "%s has not the tables it should have; restore it "
                             "from a backup", path);
    }
    status = open_reader(path, &store->loop, why, size);
    store->loop.docs = calloc(PD_STORE_DOCS, sizeof(*store->loop.docs)); /* NULL: none are kept */
    for (i = 0; status == PD_OK && i < PD_STORE_JOB_THREADS; i++) {
        store->jobs[i].store = store;
        status = open_reader(path, &store->jobs[i].conn, why, size);
    }
    if (status == PD_OK) {
        status = pd_checkpoint_start(path, &store->checkpoint, why, size);
    }
    return status;
}

static pd_status_t make_lanes(pd_store_t *store, void (*wake)(void *), void *wake_baton)
{
    store->write_queue = pd_queue_new(PD_STORE_WRITE_MAX, wake, wake_baton);
    store->job_queue = pd_queue_new(PD_STORE_JOB_MAX, wake, wake_baton);
    if (store->write_queue == NULL || store->job_queue == NULL
        || apr_allocator_create(&store->loop_allocator) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    apr_allocator_max_free_set(store->loop_allocator, LOOP_POOL_KEEP);
    return pd_store_threads_start(store);
}

pd_status_t pd_store_open(const char *path, void (*wake)(void *), void *wake_baton,
                          pd_store_t **ret, char *why, size_t size)
{
    pd_store_t *store = calloc(1, sizeof(*store));
    pd_status_t status;

    if (store == NULL) {
        return pd_sqlite_why(PD_E_NOMEM, why, size, "out of memory");
    }
    store->lock_fd = -1;
    status = pd_sqlite_dir(path, why, size);
    if (status == PD_OK) {
        status = take_lock(path, &store->lock_fd, why, size);
    }
    if (status == PD_OK) {
        status = open_connections(store, path, why, size);
    }
    if (status == PD_OK) {
        status = make_lanes(store, wake, wake_baton);
        if (status != PD_OK) {
            (void)pd_sqlite_why(status, why, size, "cannot start the store's threads: %s",
                                pd_status_text(status));
        }
    }
    if (status != PD_OK) {
        pd_store_close(&store);
        return status;
    }
    *ret = store;
    return PD_OK;
}

void pd_store_stop(pd_store_t *store)
{
    if (store != NULL) {
        pd_store_threads_stop(store);
    }
}

void pd_store_close(pd_store_t **store)
{
    pd_store_t *gone = *store;
    size_t i;

    if (gone == NULL) {
        return;
    }
    pd_store_threads_stop(gone);
    *store = NULL; /* only now: completions that have just run may have submitted through it */
    pd_checkpoint_stop(&gone->checkpoint);
    for (i = 0; i < PD_STORE_JOB_THREADS; i++) {
        pd_sqlite_close(&gone->jobs[i].conn.db);
    }
    pd_store_docs_free(&gone->loop);
    pd_sqlite_close(&gone->loop.db);
    /* Last: it may write, so its close checkpoints and takes -wal and -shm away. */
    pd_sqlite_close(&gone->write.db);
    if (gone->loop_allocator != NULL) {
        apr_allocator_destroy(gone->loop_allocator);
    }
    pd_queue_free(&gone->write_queue);
    pd_queue_free(&gone->job_queue);
    if (gone->lock_fd >= 0) {
        (void)close(
            gone->lock_fd); /* lets the lock go; the file stays, or two could lock two files */
    }
    free(gone);
}

/* --- ids ------------------------------------------------------------------ */

#define ID_TIME_CHARS   10
#define ID_RANDOM_CHARS 16
#define ID_RANDOM_BYTES 10

/* Last id of this process: the next one is above it even within a millisecond or after the wall
 * clock stepped back. */
static struct {
    pthread_mutex_t lock;
    uint64_t ms;
    unsigned char random[ID_RANDOM_BYTES];
} last_id = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int fill_random(unsigned char *out, size_t bytes)
{
    size_t have = 0;

    while (have < bytes) {
        ssize_t got = getrandom(out + have, bytes - have, 0);

        if (got < 0 && errno != EINTR) {
            return -1;
        }
        have += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* 1 when all bytes were 0xff. */
static int increment(unsigned char *number, size_t bytes)
{
    size_t i;

    for (i = bytes; i > 0; i--) {
        number[i - 1]++;
        if (number[i - 1] != 0) {
            return 0;
        }
    }
    return 1;
}

static int next_id(uint64_t *ms, unsigned char *random)
{
    int64_t now_us = pd_wall_now().us;
    uint64_t now = now_us > 0 ? (uint64_t)now_us / 1000 : 0;
    int code = 0;

    (void)pthread_mutex_lock(&last_id.lock); /* fails for a bad mutex only */
    if (now > last_id.ms) {
        code = fill_random(last_id.random, ID_RANDOM_BYTES);
        if (code == 0) {
            last_id.ms = now;
        }
    } else if (increment(last_id.random, ID_RANDOM_BYTES)) {
        last_id.ms++;
    }
    *ms = last_id.ms;
    memcpy(random, last_id.random, ID_RANDOM_BYTES);
    (void)pthread_mutex_unlock(&last_id.lock);
    return code;
}

const char *pd_store_new_id(const char *prefix, apr_pool_t *pool)
{
    /* Crockford's alphabet in lower case: in ASCII order, no letters that look alike. */
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    char text[ID_TIME_CHARS + ID_RANDOM_CHARS + 1];
    unsigned char random[ID_RANDOM_BYTES];
    uint64_t ms = 0;
    unsigned bits = 0;
    uint32_t window = 0;
    size_t i;
    size_t used = ID_TIME_CHARS;

    if (next_id(&ms, random) != 0) {
        return NULL;
    }
    for (i = ID_TIME_CHARS; i > 0; i--) {
        text[i - 1] = digits[ms & 31];
        ms >>= 5;
    }
    for (i = 0; i < ID_RANDOM_BYTES; i++) {
        window = (window << 8 | random[i]) & 0xffffU;
        bits += 8;
        while (bits >= 5) {
            bits -= 5;
            text[used++] = digits[window >> bits & 31];
        }
    }
    text[used] = '\0';
    return apr_pstrcat(pool, prefix, "_", text, (char *)NULL);
}
