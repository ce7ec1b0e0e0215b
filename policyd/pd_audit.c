/* The query copy.  One thread reads the trail and writes audit.db; position and rows are committed
 * together, so the copy can be late but never wrong.  Where a reader holds a lock the round fails,
 * is rolled back and tried again: the trail and its callers know nothing of it. */
#include "pd_audit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>

#include "pd_audit_query.h"
#include "pd_checkpoint.h"
#include "pd_migrate.h"
#include "pd_queue.h"
#include "pd_trail_read.h"

#define AUDIT_MODE  0640
#define CACHE_KIB   1024
#define BATCH_MAX   1000 /* records a transaction */
#define IDLE_MS     500  /* looks at the trail so often even unasked */
#define GATHER_MS   250  /* from the first news to the round that copies them */
#define RETRY_MS    100  /* after a failed round */
#define READERS     2    /* as many as job threads */
#define ID_BYTES    48
#define TIME_BYTES  32

enum { SQL_STATE, SQL_MOVE, SQL_BEGIN, SQL_END, SQL_MEMBER_PUT, SQL_MEMBER_DROP, SQL_COUNT };

/* Members of pd_record_t that are columns of `attempt` under their own name. */
#define TEXTS(X)                                                                                   \
    X(member_id) X(role) X(grant_id) X(client) X(actor) X(surface) X(operation) X(tool) X(via)     \
    X(connector) X(connection) X(connection_id) X(classification) X(approved) X(arg_names)         \
    X(trace_id)
#define NUMBERS(X)                                                                                 \
    X(arg_count) X(arg_unknown) X(duration_us) X(request_bytes) X(response_bytes) X(redactions)

#define COLUMN(name)   ", " #name
#define PLACE(name)    ", ?"
#define KEEP_OLD(name) ", " #name " = coalesce(excluded." #name ", " #name ")"
/* A number that the end doesn't repeat is 0 there. */
#define KEEP_SET(name) ", " #name " = coalesce(nullif(excluded." #name ", 0), " #name ")"
#define ATTEMPT                                                                                    \
    "INSERT INTO attempt (seq, audit_id, time, time_us, ended_us, outcome, error_code, detail,"    \
    " upstream_status, revision" TEXTS(COLUMN) NUMBERS(COLUMN)                                     \
    ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?" TEXTS(PLACE) NUMBERS(PLACE) ")"

static const char *const sql[SQL_COUNT] = {
    [SQL_STATE] = "SELECT chain, position FROM copied WHERE one = 1",
    [SQL_MOVE] = "UPDATE copied SET chain = ?1, position = ?2 WHERE one = 1",
    [SQL_BEGIN] = ATTEMPT,
    /* An end of a begin finds its row; a lone end makes one. The last end is the one that counts:
     * the trail has only a real one follow an interrupted one. */
    [SQL_END] = ATTEMPT " ON CONFLICT (seq) DO UPDATE SET ended_us = excluded.ended_us,"
                        " outcome = excluded.outcome, error_code = excluded.error_code,"
                        " detail = CASE outcome WHEN 'interrupted' THEN excluded.detail"
                        " ELSE coalesce(excluded.detail, detail) END,"
                        " upstream_status = excluded.upstream_status,"
                        " revision = coalesce(excluded.revision, revision)" TEXTS(KEEP_OLD)
                            NUMBERS(KEEP_SET),
    [SQL_MEMBER_PUT] = "INSERT INTO member (member_id, email, name) VALUES (?1, ?2, ?3)"
                       " ON CONFLICT (member_id) DO UPDATE SET email = excluded.email,"
                       " name = excluded.name",
    [SQL_MEMBER_DROP] = "DELETE FROM member WHERE member_id = ?1",
};

typedef struct member {
    char *email; /* NULL: erase */
    char *name;
    char id[]; /* the key in the table */
} member_t;

/* The latest word on each member that is not yet in the database: at most one entry a member. */
typedef struct members {
    apr_pool_t *pool; /* of the table alone; NULL: none */
    apr_hash_t *by_id;
    uint64_t serial; /* of the last word in it */
} members_t;

struct pd_audit {
    pd_trail_t *trail;
    int64_t chain;
    /* The copy thread's own. */
    pd_sqlite_t *db;
    pd_stmt_t *stmt[SQL_COUNT];
    pd_trail_reader_t *source;
    pd_checkpoint_t *checkpoint;
    members_t taken;
    int64_t copied; /* position inside the round */
    pthread_t thread;
    int has_thread;

    pthread_mutex_t lock; /* guards all below; never held across I/O */
    pthread_cond_t poked; /* the copy thread waits */
    pthread_cond_t moved; /* lists wait: position, a free reader */
    int is_poked;  /* there is news */
    int is_urgent; /* and somebody waits for it */
    int is_stopping;
    int64_t position;
    pd_status_t health;
    members_t told;
    uint64_t told_serial;    /* words told so far, and those of them that are in the database */
    uint64_t written_serial;
    int is_released;         /* no more lists */
    pd_sqlite_t *readers[READERS]; /* idle ones; NULL: in use */
    pd_sqlite_t *busy[READERS];    /* those in use */
};

/* --- the copy ------------------------------------------------------------- */

static pd_status_t write_attempt(pd_audit_t *audit, pd_stmt_t *stmt, int64_t seq,
                                 const pd_record_t *record)
{
    int is_end = record->kind == PD_RECORD_END;
    char id[ID_BYTES];
    char time[TIME_BYTES];
    int index = 11;

    pd_trail_id(audit->trail, seq, id);
    pd_wall_text(record->time, time);
    pd_stmt_bind_int(stmt, 1, seq);
    pd_stmt_bind_text(stmt, 2, id);
    pd_stmt_bind_text(stmt, 3, time);
    pd_stmt_bind_int(stmt, 4, record->time.us);
    pd_stmt_bind_id(stmt, 5, is_end ? record->time.us : 0);
    pd_stmt_bind_text(stmt, 6, is_end && record->outcome != NULL ? record->outcome : "running");
    pd_stmt_bind_text(stmt, 7, record->error_code);
    pd_stmt_bind_text(stmt, 8, record->detail);
    pd_stmt_bind_id(stmt, 9, record->upstream_status);
    pd_stmt_bind_id(stmt, 10, record->revision);
#define BIND_TEXT(name)   pd_stmt_bind_text(stmt, index++, record->name);
#define BIND_NUMBER(name) pd_stmt_bind_int(stmt, index++, record->name);
    TEXTS(BIND_TEXT)
    NUMBERS(BIND_NUMBER)
#undef BIND_TEXT
#undef BIND_NUMBER
    return pd_stmt_run(stmt);
}

static pd_status_t copy_record(const pd_record_t *record, void *baton)
{
    pd_audit_t *audit = baton;
    int64_t seq = record->begin_seq != 0 ? record->begin_seq : record->seq;
    pd_stmt_t *stmt = audit->stmt[record->kind == PD_RECORD_BEGIN ? SQL_BEGIN : SQL_END];
    pd_status_t status = write_attempt(audit, stmt, seq, record);

    if (status == PD_OK) {
        audit->copied = record->seq;
    }
    return status;
}

static pd_status_t write_members(pd_audit_t *audit)
{
    pd_status_t status = PD_OK;
    apr_hash_index_t *at;

    if (audit->taken.pool == NULL) {
        return PD_OK;
    }
    for (at = apr_hash_first(NULL, audit->taken.by_id); status == PD_OK && at != NULL;
         at = apr_hash_next(at)) {
        const member_t *member = apr_hash_this_val(at);
        pd_stmt_t *stmt = audit->stmt[member->email == NULL ? SQL_MEMBER_DROP : SQL_MEMBER_PUT];

        pd_stmt_bind_text(stmt, 1, member->id);
        if (member->email != NULL) {
            pd_stmt_bind_text(stmt, 2, member->email);
            pd_stmt_bind_text(stmt, 3, member->name);
        }
        status = pd_stmt_run(stmt);
    }
    return status;
}

static pd_status_t read_state(pd_audit_t *audit, int64_t *chain, int64_t *position)
{
    pd_stmt_t *stmt = audit->stmt[SQL_STATE];
    int has_row = 0;
    pd_status_t status = pd_stmt_step(stmt, &has_row);

    if (status == PD_OK && !has_row) {
        status = PD_E_CORRUPT;
    }
    if (status == PD_OK) {
        *chain = pd_stmt_int(stmt, 0);
        *position = pd_stmt_int(stmt, 1);
        pd_stmt_reset(stmt);
    }
    return status;
}

static pd_status_t write_state(pd_audit_t *audit, int64_t position)
{
    pd_stmt_bind_int(audit->stmt[SQL_MOVE], 1, audit->chain);
    pd_stmt_bind_int(audit->stmt[SQL_MOVE], 2, position);
    return pd_stmt_run(audit->stmt[SQL_MOVE]);
}

/* One transaction: at most BATCH_MAX records and all members told. */
static pd_status_t copy_batch(pd_audit_t *audit, int *ret_count)
{
    int64_t chain = 0;
    int64_t before = audit->copied;
    pd_status_t status = pd_sqlite_begin_write(audit->db);

    if (status == PD_OK) {
        status = read_state(audit, &chain, &before);
    }
    if (status == PD_OK) {
        audit->copied = before;
        status = write_members(audit);
    }
    if (status == PD_OK) {
        status = pd_trail_read_after(audit->source, before, BATCH_MAX, copy_record, audit,
                                     ret_count);
    }
    if (status == PD_OK && audit->copied != before) {
        status = write_state(audit, audit->copied);
    }
    if (status == PD_OK) {
        status = pd_sqlite_commit(audit->db);
    }
    if (status != PD_OK) {
        audit->copied = before;
    }
    pd_sqlite_rollback(audit->db);
    return status;
}

static void publish(pd_audit_t *audit, pd_status_t status)
{
    (void)pthread_mutex_lock(&audit->lock); /* fails for a bad mutex only, here and below */
    audit->health = status;
    if (status == PD_OK) {
        audit->position = audit->copied;
        if (audit->taken.pool != NULL) {
            audit->written_serial = audit->taken.serial;
        }
    }
    (void)pthread_cond_broadcast(&audit->moved);
    (void)pthread_mutex_unlock(&audit->lock);
}

/* What was told since the last time. What a failed round still holds goes first, by waiting. */
static void take_members(pd_audit_t *audit)
{
    if (audit->taken.pool != NULL) {
        return;
    }
    (void)pthread_mutex_lock(&audit->lock);
    audit->taken = audit->told;
    audit->told = (members_t){NULL, NULL, 0};
    (void)pthread_mutex_unlock(&audit->lock);
}

static void free_member(member_t *member)
{
    if (member != NULL) {
        free(member->email);
        free(member->name);
        free(member);
    }
}

static void drop_members(members_t *members)
{
    apr_hash_index_t *at;

    if (members->pool == NULL) {
        return;
    }
    for (at = apr_hash_first(NULL, members->by_id); at != NULL; at = apr_hash_next(at)) {
        free_member(apr_hash_this_val(at));
    }
    apr_pool_destroy(members->pool);
    *members = (members_t){NULL, NULL, 0};
}

/* Copies until there is nothing more. */
static pd_status_t copy_all(pd_audit_t *audit)
{
    pd_status_t status;
    int count;

    do {
        count = 0;
        take_members(audit);
        status = copy_batch(audit, &count);
        publish(audit, status);
        if (status == PD_OK) {
            drop_members(&audit->taken);
            pd_checkpoint_note(audit->checkpoint, pd_sqlite_wal_pages(audit->db));
        }
    } while (status == PD_OK && count == BATCH_MAX);
    return status;
}

/* Is there anything that a round would do? Spares an idle policyd two commits a second. */
static int has_work(pd_audit_t *audit)
{
    int has_members;

    (void)pthread_mutex_lock(&audit->lock);
    has_members = audit->told.pool != NULL || audit->taken.pool != NULL;
    (void)pthread_mutex_unlock(&audit->lock);
    return has_members || pd_trail_head(audit->trail) > audit->copied;
}

/* The whole pause, however often it is poked meanwhile. The lock is held. */
static void pause_after_failure(pd_audit_t *audit)
{
    pd_boot_t until = pd_boot_in(RETRY_MS);
    int64_t left_ms = RETRY_MS;

    while (left_ms > 0 && !audit->is_stopping) {
        pd_cond_wait_ms(&audit->poked, &audit->lock, left_ms);
        left_ms = pd_boot_left_ms(until);
    }
}

/* News is left to gather for a while: under load one round then copies hundreds of records with a
 * commit, where a round for each would write the same pages again and again and take disk and CPU
 * from the trail. Who waits for a list makes it urgent. The lock is held. */
static void wait_for_news(pd_audit_t *audit)
{
    pd_boot_t until;
    int64_t left_ms = GATHER_MS;

    if (!audit->is_poked && !audit->is_urgent && !audit->is_stopping) {
        pd_cond_wait_ms(&audit->poked, &audit->lock, IDLE_MS);
    }
    until = pd_boot_in(GATHER_MS);
    while (audit->is_poked && !audit->is_urgent && !audit->is_stopping && left_ms > 0) {
        pd_cond_wait_ms(&audit->poked, &audit->lock, left_ms);
        left_ms = pd_boot_left_ms(until);
    }
}

static void *run_copy(void *baton)
{
    pd_audit_t *audit = baton;
    int is_stopping = 0;

    while (!is_stopping) {
        pd_status_t status = has_work(audit) ? copy_all(audit) : PD_OK;

        (void)pthread_mutex_lock(&audit->lock);
        if (status != PD_OK) {
            pause_after_failure(audit);
        } else {
            wait_for_news(audit);
        }
        audit->is_poked = 0;
        audit->is_urgent = 0;
        is_stopping = audit->is_stopping;
        (void)pthread_mutex_unlock(&audit->lock);
    }
    /* What came between the last look and the stop; a copy that is held up catches up next time. */
    if (has_work(audit)) {
        (void)copy_all(audit);
    }
    return NULL;
}

/* --- open and close ------------------------------------------------------- */

/* A copy of another trail, or of one that was since restored to an earlier state, starts over. */
static pd_status_t settle_position(pd_audit_t *audit)
{
    int64_t chain = 0;
    pd_status_t status = pd_sqlite_begin_write(audit->db);

    if (status == PD_OK) {
        status = read_state(audit, &chain, &audit->copied);
    }
    if (status == PD_OK && (chain != audit->chain || audit->copied > pd_trail_head(audit->trail))) {
        audit->copied = 0;
        status = pd_sqlite_exec(audit->db, "DELETE FROM attempt");
        if (status == PD_OK) {
            status = write_state(audit, 0);
        }
    }
    if (status == PD_OK) {
        status = pd_sqlite_commit(audit->db);
    }
    pd_sqlite_rollback(audit->db);
    audit->position = audit->copied;
    return status;
}

static pd_status_t open_database(pd_audit_t *audit, const char *dir, int gid, char *why,
                                 size_t size)
{
    char path[PD_SQLITE_PATH_MAX];
    pd_status_t status = pd_sqlite_path(dir, pd_schema_audit.file, path, why, size);
    size_t i;

    if (status == PD_OK) {
        status = pd_migrate_open(&pd_schema_audit, dir, AUDIT_MODE, gid, &audit->db, why, size);
        if (status == PD_E_CORRUPT || status == PD_E_NEWER) {
            return pd_sqlite_why(status, why, size,
                                 "%s is damaged, newer or not policyd's: remove it (with its -wal "
                                 "and -shm), it is then made anew from the trail",
                                 path);
        }
    }
    if (status != PD_OK) {
        return status;
    }
    status = pd_sqlite_cache(audit->db, CACHE_KIB);
    if (status == PD_OK) {
        status = pd_sqlite_keep_wal(audit->db);
    }
    if (status == PD_OK) {
        status = pd_sqlite_prepare_all(audit->db, sql, SQL_COUNT, audit->stmt);
    }
    if (status == PD_OK) {
        status = settle_position(audit);
    }
    if (status == PD_OK) {
        status = pd_trail_read_open(dir, &audit->source);
    }
    if (status != PD_OK) {
        return pd_sqlite_why(status, why, size, "%s cannot be used: %s; remove it, it is then made "
                             "anew from the trail", path, pd_status_text(status));
    }
    for (i = 0; status == PD_OK && i < READERS; i++) {
        status = pd_sqlite_open(path, PD_SQLITE_READ, 1000, &audit->readers[i], why, size);
    }
    if (status == PD_OK) {
        status = pd_checkpoint_start(path, &audit->checkpoint, why, size);
    }
    return status;
}

pd_status_t pd_audit_open(const char *dir, int gid, pd_trail_t *trail, pd_audit_t **ret, char *why,
                          size_t size)
{
    pd_audit_t *audit = calloc(1, sizeof(*audit));
    pd_status_t status;

    if (audit == NULL) {
        return pd_sqlite_why(PD_E_NOMEM, why, size, "out of memory");
    }
    audit->trail = trail;
    audit->chain = pd_trail_chain(trail);
    if (pthread_mutex_init(&audit->lock, NULL) != 0 || pd_cond_init(&audit->poked) != PD_OK
        || pd_cond_init(&audit->moved) != PD_OK) {
        free(audit); /* on Linux none of them holds anything */
        return pd_sqlite_why(PD_E_SYSTEM, why, size, "cannot make a lock");
    }
    status = open_database(audit, dir, gid, why, size);
    if (status == PD_OK) {
        status = pd_thread_start(&audit->thread, run_copy, audit);
        audit->has_thread = status == PD_OK;
        if (status != PD_OK) {
            (void)pd_sqlite_why(status, why, size, "cannot start the thread of audit.db");
        }
    }
    if (status != PD_OK) {
        pd_audit_close(&audit);
        return status;
    }
    *ret = audit;
    return PD_OK;
}

void pd_audit_release(pd_audit_t *audit)
{
    size_t i;

    if (audit == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&audit->lock);
    audit->is_released = 1;
    for (i = 0; i < READERS; i++) {
        if (audit->busy[i] != NULL) {
            pd_sqlite_interrupt(audit->busy[i]);
        }
    }
    (void)pthread_cond_broadcast(&audit->moved);
    (void)pthread_mutex_unlock(&audit->lock);
}

void pd_audit_close(pd_audit_t **audit)
{
    pd_audit_t *gone = *audit;
    size_t i;

    if (gone == NULL) {
        return;
    }
    *audit = NULL;
    if (gone->has_thread) {
        (void)pthread_mutex_lock(&gone->lock);
        gone->is_stopping = 1;
        (void)pthread_cond_broadcast(&gone->poked);
        (void)pthread_cond_broadcast(&gone->moved);
        (void)pthread_mutex_unlock(&gone->lock);
        (void)pthread_join(gone->thread, NULL); /* it was started and is joined once */
    }
    pd_checkpoint_stop(&gone->checkpoint);
    for (i = 0; i < READERS; i++) {
        pd_sqlite_close(&gone->readers[i]);
    }
    pd_trail_read_close(&gone->source);
    pd_sqlite_close(&gone->db);
    drop_members(&gone->taken);
    drop_members(&gone->told);
    (void)pthread_cond_destroy(&gone->moved); /* nobody waits */
    (void)pthread_cond_destroy(&gone->poked);
    (void)pthread_mutex_destroy(&gone->lock); /* nobody holds it */
    free(gone);
}

/* --- any thread ----------------------------------------------------------- */

/* The lock is held. Only the first news since the last round costs a wake-up. */
static void tell_news(pd_audit_t *audit)
{
    if (!audit->is_poked) {
        audit->is_poked = 1;
        (void)pthread_cond_signal(&audit->poked);
    }
}

void pd_audit_poke(pd_audit_t *audit)
{
    (void)pthread_mutex_lock(&audit->lock);
    tell_news(audit);
    (void)pthread_mutex_unlock(&audit->lock);
}

pd_status_t pd_audit_health(pd_audit_t *audit, int64_t *ret_position)
{
    pd_status_t health;

    (void)pthread_mutex_lock(&audit->lock);
    health = audit->health;
    if (ret_position != NULL) {
        *ret_position = audit->position;
    }
    (void)pthread_mutex_unlock(&audit->lock);
    return health;
}

static member_t *new_member(const char *member_id, const char *email, const char *name)
{
    size_t bytes = strlen(member_id) + 1;
    member_t *member = malloc(sizeof(*member) + bytes);

    if (member == NULL) {
        return NULL;
    }
    memcpy(member->id, member_id, bytes);
    member->email = email == NULL ? NULL : strdup(email);
    member->name = email == NULL || name == NULL ? NULL : strdup(name);
    /* Without memory for the texts it erases: the id stands in, which is what is known for sure. */
    return member;
}

static void remember_member(members_t *told, member_t *member)
{
    member_t *before;

    if (told->pool == NULL) {
        if (apr_pool_create_unmanaged_ex(&told->pool, NULL, NULL) != APR_SUCCESS) {
            told->pool = NULL;
            free_member(member);
            return;
        }
        told->by_id = apr_hash_make(told->pool);
    }
    before = apr_hash_get(told->by_id, member->id, APR_HASH_KEY_STRING);

    /* Taken out first: replacing a value would keep the old entry's key, which is freed here. */
    apr_hash_set(told->by_id, member->id, APR_HASH_KEY_STRING, NULL);
    apr_hash_set(told->by_id, member->id, APR_HASH_KEY_STRING, member);
    free_member(before);
}

void pd_audit_member(pd_audit_t *audit, const char *member_id, const char *email, const char *name)
{
    member_t *member = member_id == NULL ? NULL : new_member(member_id, email, name);

    if (member == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&audit->lock);
    remember_member(&audit->told, member);
    audit->told_serial++;
    audit->told.serial = audit->told_serial;
    tell_news(audit);
    (void)pthread_mutex_unlock(&audit->lock);
}

/* --- queries, on job threads ---------------------------------------------- */

/* Until the copy has what was durable when it was asked, and a reader is idle. */
static pd_status_t take_reader(pd_audit_t *audit, pd_boot_t deadline, pd_sqlite_t **ret,
                               size_t *ret_slot)
{
    int64_t target = pd_trail_head(audit->trail);
    pd_status_t status = PD_E_TIMEOUT;
    size_t slot = 0;
    int64_t left_ms;
    uint64_t serial;

    (void)pthread_mutex_lock(&audit->lock);
    audit->is_urgent = 1;
    (void)pthread_cond_signal(&audit->poked);
    serial = audit->told_serial;
    for (;;) {
        slot = 0;
        while (slot < READERS && audit->readers[slot] == NULL) {
            slot++;
        }
        if (audit->is_stopping || audit->is_released) {
            status = PD_E_CLOSED;
            break;
        }
        if (audit->position >= target && audit->written_serial >= serial && slot < READERS) {
            status = PD_OK;
            break;
        }
        left_ms = pd_boot_left_ms(deadline);
        if (left_ms == 0) {
            break;
        }
        pd_cond_wait_ms(&audit->moved, &audit->lock, left_ms);
    }
    if (status == PD_OK) {
        *ret = audit->readers[slot];
        *ret_slot = slot;
        audit->busy[slot] = audit->readers[slot];
        audit->readers[slot] = NULL;
    }
    (void)pthread_mutex_unlock(&audit->lock);
    return status;
}

static void give_reader(pd_audit_t *audit, pd_sqlite_t *reader, size_t slot)
{
    (void)pthread_mutex_lock(&audit->lock);
    audit->readers[slot] = reader;
    audit->busy[slot] = NULL;
    (void)pthread_cond_broadcast(&audit->moved);
    (void)pthread_mutex_unlock(&audit->lock);
}

static pd_status_t run_query(pd_audit_t *audit, const pd_audit_query_t *query, int64_t seq,
                             pd_boot_t deadline, json_t **ret_rows)
{
    pd_sqlite_t *reader = NULL;
    size_t slot = 0;
    pd_status_t status = take_reader(audit, deadline, &reader, &slot);

    if (status != PD_OK) {
        return status;
    }
    pd_sqlite_deadline(reader, deadline);
    status = seq != 0 ? pd_audit_query_one(reader, seq, ret_rows)
                      : pd_audit_query_list(reader, query, ret_rows);
    pd_sqlite_deadline(reader, (pd_boot_t){0});
    give_reader(audit, reader, slot);
    return status;
}

pd_status_t pd_audit_list(pd_audit_t *audit, const pd_audit_query_t *query, pd_boot_t deadline,
                          json_t **ret_rows)
{
    return run_query(audit, query, 0, deadline, ret_rows);
}

pd_status_t pd_audit_get(pd_audit_t *audit, const char *audit_id, pd_boot_t deadline,
                         json_t **ret_row)
{
    int64_t seq = pd_trail_seq(audit->trail, audit_id);

    return seq == 0 ? PD_E_NOT_FOUND : run_query(audit, NULL, seq, deadline, ret_row);
}
