/* A change made elsewhere: commits one change to a policy store while its policyd runs, or shows an object.  It is linked with the
 * store's own objects, and differs from a policyd in one thing alone: its flock() says yes to everybody.  For the end-to-end tests.
 *
 *   store_elsewhere DIR get    KIND ID                       its document, as a line of JSON
 *   store_elsewhere DIR insert KIND ID OWNER JSON [KEY...]   OWNER: a member's id, or - for none
 *   store_elsewhere DIR update KIND ID OWNER JSON [KEY...]   replaces owner, document and keys
 *   store_elsewhere DIR delete KIND ID
 *
 * After a change the new revision is printed. Exit 0: done; 1: refused, with the reason on stderr; 2: usage. */
#include "../../policyd/pd_store.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <apr_general.h>

#define PATIENCE_S 20

/* Comes before the C library's. The store locks policyd.lock and nothing else by it; SQLite's locks are of another sort. */
int flock(int fd, int operation)
{
    (void)fd;
    (void)operation;
    return 0;
}

typedef struct change {
    const char *verb;
    const char *kind;
    const char *id;
    const char *owner;
    json_t *doc;
    const char *const *keys; /* NULL-terminated */
    char *shown;
    pd_status_t status;
    int64_t revision;
    int is_done;
} change_t;

static sem_t woken;

static void wake(void *baton)
{
    (void)baton;
    (void)sem_post(&woken); /* fails beyond two thousand million */
}

/* --- policyd's pid ------------------------------------------------------------------ */

/* The store writes its pid into the lock's file. That of the policyd which runs belongs there. */
typedef struct pid_file {
    char path[4096];
    char text[64];
    ssize_t bytes; /* -1: there is none */
} pid_file_t;

static void remember_pid(pid_file_t *file, const char *dir)
{
    int fd;

    (void)snprintf(file->path, sizeof(file->path), "%s/policyd.lock", dir); /* cut: is not found below */
    file->bytes = -1;
    fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        file->bytes = read(fd, file->text, sizeof(file->text));
        (void)close(fd); /* nothing was written */
    }
}

static void restore_pid(const pid_file_t *file)
{
    int fd = file->bytes >= 0 ? open(file->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

    if (fd < 0) {
        return;
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, file->text, (size_t)file->bytes, 0) != file->bytes) {
        (void)fprintf(stderr, "%s: %s\n", file->path, strerror(errno));
    }
    (void)close(fd); /* its loss is told above, or is of no interest */
}

/* --- the change ------------------------------------------------------------------------ */

static pd_status_t show(pd_tx_t *tx, change_t *change)
{
    pd_object_t *object = NULL;
    pd_status_t status = pd_tx_get(tx, change->kind, change->id, &object);

    if (status == PD_OK) {
        change->shown = json_dumps(object->doc, JSON_COMPACT);
    }
    return status;
}

static pd_status_t insert(pd_tx_t *tx, change_t *change)
{
    return pd_tx_insert(tx, change->kind, change->id, change->owner, change->doc, change->keys);
}

static pd_status_t update(pd_tx_t *tx, change_t *change)
{
    return pd_tx_update(tx, change->kind, change->id, change->owner, change->doc, change->keys, 0, NULL);
}

static pd_status_t drop(pd_tx_t *tx, change_t *change)
{
    return pd_tx_delete(tx, change->kind, change->id, 0);
}

static const struct {
    const char *name;
    pd_status_t (*run)(pd_tx_t *, change_t *);
    pd_lane_t lane;
    int has_document;
} verbs[] = {{"get", show, PD_LANE_LOOP, 0},
             {"insert", insert, PD_LANE_WRITE, 1},
             {"update", update, PD_LANE_WRITE, 1},
             {"delete", drop, PD_LANE_WRITE, 0}};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static size_t find_verb(const char *name)
{
    size_t i = 0;

    while (i < VERBS && strcmp(verbs[i].name, name) != 0) {
        i++;
    }
    return i;
}

static pd_status_t run_unit(pd_tx_t *tx, void *baton)
{
    change_t *change = baton;

    return verbs[find_verb(change->verb)].run(tx, change);
}

static void unit_done(pd_status_t status, int64_t revision, void *baton)
{
    change_t *change = baton;

    change->status = status;
    change->revision = revision;
    change->is_done = 1;
}

/* Waits for the completion; 0 when it does not come. */
static int wait_for(pd_store_t *store, const change_t *change)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (!change->is_done) {
        if (sem_timedwait(&woken, &until) != 0 && errno != EINTR) {
            return 0;
        }
        pd_store_reap(store);
    }
    return 1;
}

static int commit(const char *dir, change_t *change)
{
    pd_store_t *store = NULL;
    pid_file_t pid;
    char why[512] = "";
    pd_status_t status;

    remember_pid(&pid, dir);
    status = pd_store_open(dir, wake, NULL, &store, why, sizeof(why));
    restore_pid(&pid);
    if (status != PD_OK) {
        (void)fprintf(stderr, "%s\n", why);
        return 1;
    }
    status = pd_store_submit(store, verbs[find_verb(change->verb)].lane, pd_boot_in(PATIENCE_S * 1000),
                             run_unit, unit_done, change);
    if (status == PD_OK && !wait_for(store, change)) {
        status = PD_E_TIMEOUT;
    }
    pd_store_close(&store);
    if (status == PD_OK) {
        status = change->status;
    }
    if (status != PD_OK) {
        (void)fprintf(stderr, "%s %s %s: %s\n", change->verb, change->kind, change->id,
                      pd_status_text(status));
        return 1;
    }
    if (change->shown != NULL) {
        (void)printf("%s\n", change->shown);
    } else {
        (void)printf("%lld\n", (long long)change->revision);
    }
    return 0;
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: store_elsewhere DIR get|delete KIND ID\n"
                          "       store_elsewhere DIR insert|update KIND ID OWNER|- JSON [KEY...]\n");
    return 2;
}

int main(int argc, char **argv)
{
    size_t verb = argc >= 5 ? find_verb(argv[2]) : VERBS;
    change_t change = {.status = PD_E_INTERNAL};
    json_error_t error;
    int code;

    if (verb == VERBS || (verbs[verb].has_document ? argc < 7 : argc != 5)) {
        return usage();
    }
    change.verb = argv[2];
    change.kind = argv[3];
    change.id = argv[4];
    if (verbs[verb].has_document) {
        change.owner = strcmp(argv[5], "-") != 0 ? argv[5] : NULL;
        change.keys = (const char *const *)argv + 7;
        change.doc = json_loads(argv[6], JSON_REJECT_DUPLICATES, &error);
        if (change.doc == NULL) {
            (void)fprintf(stderr, "the document: %s\n", error.text);
            return 2;
        }
    }
    if (apr_initialize() != APR_SUCCESS || sem_init(&woken, 0, 0) != 0) {
        return 1;
    }
    code = commit(argv[1], &change);
    json_decref(change.doc);
    free(change.shown);
    (void)sem_destroy(&woken); /* nobody waits */
    apr_terminate();
    return code;
}
