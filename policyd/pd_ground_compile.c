/* Compiling a whole catalog: one thread reads and parses, as a transaction wants it, the others compile what it has read. A catalog of
 * 20,000 operations is there in half the time on two processors, and that is how long a policyd takes to start. See
 * pd_snapshot_private.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_thread_cond.h>
#include <apr_thread_mutex.h>
#include <apr_thread_proc.h>

#include "pd_catalog.h"
#include "pd_snapshot_private.h"

#define PAGE      20 /* connectors read at once: they are large */
#define MAX_AHEAD 32 /* read and not compiled yet: their trees take memory */
#define MAX_HANDS 4  /* threads beside the one that reads */

typedef struct job {
    const char *id;
    json_t *doc; /* own reference; NULL once compiled */
    pd_connector_t *connector;
    pd_status_t status;
    struct job *next; /* in the order of the ids */
} job_t;

typedef struct line {
    apr_pool_t *pool;
    apr_thread_mutex_t *mutex;
    apr_thread_cond_t *more; /* a job, or the end */
    job_t *first, *last;
    job_t *waiting; /* the first that nobody has taken */
    int ahead;
    int is_over;
} line_t;

static void compile(job_t *job)
{
    job->status = pd_catalog_compile(job->id, job->doc, &job->connector);
    json_decref(job->doc);
    job->doc = NULL;
}

/* The next job, or NULL: none waits. The mutex is held. */
static job_t *take(line_t *line)
{
    job_t *job = line->waiting;

    if (job != NULL) {
        line->waiting = job->next;
        line->ahead--;
    }
    return job;
}

static void *APR_THREAD_FUNC hand(apr_thread_t *thread, void *baton)
{
    line_t *line = baton;

    (void)apr_thread_mutex_lock(line->mutex);
    for (;;) {
        job_t *job = take(line);

        if (job == NULL && line->is_over) {
            break;
        }
        if (job == NULL) {
            (void)apr_thread_cond_wait(line->more, line->mutex);
            continue;
        }
        (void)apr_thread_mutex_unlock(line->mutex);
        compile(job);
        (void)apr_thread_mutex_lock(line->mutex);
    }
    (void)apr_thread_mutex_unlock(line->mutex);
    apr_thread_exit(thread, APR_SUCCESS);
    return NULL;
}

static void put(line_t *line, const pd_object_t *object)
{
    job_t *job = apr_pcalloc(line->pool, sizeof(*job));
    job_t *mine = NULL;

    job->id = apr_pstrdup(line->pool, object->id);
    job->doc = json_incref(object->doc);
    (void)apr_thread_mutex_lock(line->mutex);
    if (line->last != NULL) {
        line->last->next = job;
    } else {
        line->first = job;
    }
    line->last = job;
    line->waiting = line->waiting == NULL ? job : line->waiting;
    line->ahead++;
    if (line->ahead > MAX_AHEAD) { /* the hands are slower than the eye: lend one */
        mine = take(line);
    }
    (void)apr_thread_cond_signal(line->more);
    (void)apr_thread_mutex_unlock(line->mutex);
    if (mine != NULL) {
        compile(mine);
    }
}

static pd_status_t read_all(pd_tx_t *tx, line_t *line)
{
    const char *after = NULL;

    for (;;) {
        apr_array_header_t *page = NULL;
        pd_status_t status = pd_tx_list(tx, PD_KIND_CONNECTOR, NULL, after, PAGE, &page);
        int i;

        for (i = 0; status == PD_OK && i < page->nelts; i++) {
            const pd_object_t *object = APR_ARRAY_IDX(page, i, pd_object_t *);

            put(line, object);
            after = object->id;
        }
        if (status != PD_OK || page->nelts < PAGE) {
            return status;
        }
    }
}

static int start_hands(line_t *line, apr_thread_t *hands[MAX_HANDS])
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int count = 0;

    while (count < MAX_HANDS && (count < processors || count == 0) &&
           apr_thread_create(&hands[count], NULL, hand, line, line->pool) == APR_SUCCESS) {
        count++;
    }
    return count;
}

pd_status_t pd_ground_compile(pd_tx_t *tx, pd_compiled_fn *compiled, void *building)
{
    apr_thread_t *hands[MAX_HANDS];
    apr_status_t ended;
    line_t line;
    job_t *job;
    pd_status_t status;
    int count;
    int i;

    memset(&line, 0, sizeof(line));
    if (apr_pool_create(&line.pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    if (apr_thread_mutex_create(&line.mutex, APR_THREAD_MUTEX_DEFAULT, line.pool) != APR_SUCCESS ||
        apr_thread_cond_create(&line.more, line.pool) != APR_SUCCESS) {
        apr_pool_destroy(line.pool);
        return PD_E_SYSTEM;
    }
    count = start_hands(&line, hands);
    status = read_all(tx, &line);
    (void)apr_thread_mutex_lock(line.mutex);
    line.is_over = 1;
    (void)apr_thread_cond_broadcast(line.more);
    for (job = take(&line); job != NULL; job = take(&line)) {
        (void)apr_thread_mutex_unlock(line.mutex);
        compile(job);
        (void)apr_thread_mutex_lock(line.mutex);
    }
    (void)apr_thread_mutex_unlock(line.mutex);
    for (i = 0; i < count; i++) {
        (void)apr_thread_join(&ended, hands[i]);
    }
    for (job = line.first; job != NULL; job = job->next) {
        if (status == PD_OK) {
            status = compiled(building, job->id, job->status, job->connector);
        } else {
            pd_catalog_release(&job->connector);
        }
    }
    apr_pool_destroy(line.pool);
    return status;
}
