/* Shared by the tests of the policy store: a store in a scratch directory, waiting, units. */
#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include "../../policyd/pd_store.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <apr_general.h>
#include <cmocka.h>
#include <sqlite3.h>

#define WATCHDOG_MS 60000

typedef struct fixture {
    char dir[256];
    int wake_fd;
    pd_store_t *store;
    char why[512];
} fixture_t;

static void wake(void *baton)
{
    const fixture_t *fix = baton;
    uint64_t one = 1;

    assert_int_equal(write(fix->wake_fd, &one, sizeof(one)), sizeof(one));
}

static void open_store(fixture_t *fix)
{
    pd_status_t status =
        pd_store_open(fix->dir, wake, fix, &fix->store, fix->why, sizeof(fix->why));

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
    (void)snprintf(fix->dir, sizeof(fix->dir), "%s/mcp-store-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    assert_non_null(mkdtemp(fix->dir));
    fix->wake_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(fix->wake_fd >= 0);
    open_store(fix);
    *state = fix;
    return 0;
}

static void in_dir(const fixture_t *fix, const char *file, char *path)
{
    (void)snprintf(path, 512, "%s/%s", fix->dir, file);
}

static int tear_down(void **state)
{
    static const char *const files[] = {"policy.db", "policy.db-wal", "policy.db-shm",
                                        "policyd.lock"};
    fixture_t *fix = *state;
    char path[512];
    size_t i;

    pd_store_close(&fix->store);
    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        in_dir(fix, files[i], path);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(fix->dir), 0);
    (void)close(fix->wake_fd);
    free(fix);
    return 0;
}

static void wait_for(fixture_t *fix, const int *is_done)
{
    while (!*is_done) {
        struct pollfd ready = {fix->wake_fd, POLLIN, 0};
        uint64_t count;

        assert_int_equal(poll(&ready, 1, WATCHDOG_MS), 1);
        assert_int_equal(read(fix->wake_fd, &count, sizeof(count)), sizeof(count));
        pd_store_reap(fix->store);
    }
}

typedef struct unit_result {
    pd_status_t status;
    int is_done;
} unit_result_t;

static void unit_done(pd_status_t status, int64_t revision, void *baton)
{
    unit_result_t *result = baton;

    (void)revision;
    result->status = status;
    result->is_done = 1;
}

static __attribute__((unused)) pd_status_t run_unit(fixture_t *fix, pd_lane_t lane, pd_unit_fn *unit)
{
    unit_result_t result = {PD_E_INTERNAL, 0};

    assert_int_equal(pd_store_submit(fix->store, lane, pd_boot_in(WATCHDOG_MS), unit, unit_done,
                                     &result),
                     PD_OK);
    wait_for(fix, &result.is_done);
    return result.status;
}

static __attribute__((unused)) void with_sqlite(const fixture_t *fix, const char *sql)
{
    char path[512];
    sqlite3 *db = NULL;

    in_dir(fix, "policy.db", path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* 300,000 bytes: pages of every sort. */
static __attribute__((unused)) pd_status_t insert_much(pd_tx_t *tx, void *baton)
{
    char *big = malloc(300000);
    json_t *doc;
    pd_status_t status;

    (void)baton;
    if (big == NULL) {
        return PD_E_NOMEM;
    }
    memset(big, 'x', 299999);
    big[299999] = '\0';
    doc = json_string(big);
    status = pd_tx_insert(tx, "blob", "blo_1", NULL, doc, NULL);
    json_decref(doc);
    free(big);
    return status;
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
