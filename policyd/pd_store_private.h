/* What the files of the SQLite store share: connections with their statements, units, lanes. */
#ifndef PD_STORE_PRIVATE_H
#define PD_STORE_PRIVATE_H

#include <apr_allocator.h>

#include "pd_checkpoint.h"
#include "pd_queue.h"
#include "pd_sqlite.h"
#include "pd_store.h"
#include "pd_writer.h"

#define PD_STORE_WRITE_MAX   4096   /* units in the write lane, finished ones included */
#define PD_STORE_JOB_MAX     256    /* units in the job lane, likewise */
#define PD_STORE_JOB_THREADS 2
#define PD_STORE_CHANGES_MAX 100000 /* rows of `change` that are kept */
#define PD_STORE_DOC_MAX     (16u * 1024 * 1024) /* bytes of one document */
#define PD_STORE_SECRET_MAX  (1024u * 1024)
#define PD_STORE_KIND_MAX    64
#define PD_STORE_ID_MAX      128
#define PD_STORE_KEY_MAX     1024
#define PD_STORE_KEYS_MAX    256 /* alternative keys of one object */
#define PD_STORE_LIST_MAX    1000000

enum {
    PD_SQL_REVISION,
    PD_SQL_GET,
    PD_SQL_FIND,
    PD_SQL_LIST,
    PD_SQL_LIST_OWNER,
    PD_SQL_GRANT,
    PD_SQL_CHANGES,
    PD_SQL_AUDIT_FIND,
    PD_SQL_SECRET_GET,
    PD_SQL_READS, /* a reader's connection has those above */
    PD_SQL_HEAD = PD_SQL_READS,
    PD_SQL_KEY_HOLDER,
    PD_SQL_INSERT,
    PD_SQL_UPDATE,
    PD_SQL_DELETE,
    PD_SQL_KEY_ADD,
    PD_SQL_KEY_DROP,
    PD_SQL_SECRET_PUT,
    PD_SQL_SECRET_DROP,
    PD_SQL_CHANGE_ADD,
    PD_SQL_CHANGE_LAST,
    PD_SQL_CHANGE_FLOOR,
    PD_SQL_CHANGE_PRUNE,
    PD_SQL_REVISION_SET,
    PD_SQL_REVISION_ADD,
    PD_SQL_REVISION_PRUNE,
    PD_SQL_COUNT
};

#define PD_STORE_DOCS    4096 /* documents of grants and members that the loop keeps parsed; a power of two */
#define PD_STORE_DOC_HOT 4096 /* bytes of the longest that is kept */

/* A document as it was read and parsed last. The statement is run each time; only the parsing of the
 * very same text is spared. */
typedef struct pd_store_doc {
    char *text; /* NULL: an empty place */
    size_t bytes;
    json_t *doc;
} pd_store_doc_t;

typedef struct pd_store_conn {
    pd_sqlite_t *db;
    pd_stmt_t *stmt[PD_SQL_COUNT];
    pd_store_doc_t *docs; /* PD_STORE_DOCS places; NULL: none are kept */
} pd_store_conn_t;

struct pd_tx {
    pd_store_conn_t *conn;
    apr_pool_t *pool;
    int can_write;
    int is_changed;
    int64_t revision;     /* of the policy before this unit; -1: not read yet */
    const char *audit_id; /* in the pool */
    pd_status_t broken;   /* a change that failed half-way: the unit must not commit */
};

typedef struct pd_store_unit {
    pd_work_t work;
    apr_pool_t *pool;
    pd_boot_t deadline;
    pd_unit_fn *unit;
    pd_done_fn *done;
    void *baton;
    int64_t revision;
} pd_store_unit_t;

typedef struct pd_store_job {
    pd_store_t *store;
    pd_store_conn_t conn;
    pthread_t thread;
    int is_running;
} pd_store_job_t;

struct pd_store {
    int lock_fd;
    pd_store_conn_t write;
    pd_store_conn_t loop;
    pd_store_job_t jobs[PD_STORE_JOB_THREADS];
    pd_queue_t *write_queue;
    pd_queue_t *job_queue;
    pd_checkpoint_t *checkpoint;
    pd_writer_t *writer;
    apr_allocator_t *loop_allocator; /* pools of inline units; the loop's thread only */
    int is_in_unit;                  /* an inline unit runs */
    int64_t revision;                /* the writer's, inside a batch */
    int64_t committed;               /* the writer's, last known durable */
};

/* Prepares the first `count` statements of the table. */
pd_status_t pd_store_prepare(pd_store_conn_t *conn, size_t count);
/* Ends a unit that returned PD_OK: numbers its revision. *revision is the new one. */
pd_status_t pd_store_finish(pd_tx_t *tx, int64_t *revision);
void pd_store_docs_free(pd_store_conn_t *conn);
/* Reads the revision through a connection that is inside a transaction. */
pd_status_t pd_store_revision(pd_store_conn_t *conn, int64_t *ret);

pd_status_t pd_store_threads_start(pd_store_t *store);
/* Ends the lanes after what is queued is done, and runs its completions. */
void pd_store_threads_stop(pd_store_t *store);

#endif
