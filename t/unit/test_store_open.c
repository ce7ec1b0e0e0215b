/* Opening the policy store: what is refused, with which remedy, and who may read the files. */
#include "store_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void expect_refusal(fixture_t *fix, pd_status_t want, const char *word)
{
    pd_store_t *other = NULL;

    fix->why[0] = '\0';
    assert_int_equal(pd_store_open(fix->dir, wake, fix, &other, fix->why, sizeof(fix->why)), want);
    assert_null(other);
    if (strstr(fix->why, word) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", fix->why, word);
    }
}

static void a_second_opener_is_refused_until_the_first_has_closed(void **state)
{
    fixture_t *fix = *state;

    expect_refusal(fix, PD_E_LOCKED, "policyd.lock");
    pd_store_close(&fix->store);
    open_store(fix);
}

static void a_newer_store_is_refused(void **state)
{
    fixture_t *fix = *state;

    pd_store_close(&fix->store);
    with_sqlite(fix, "PRAGMA user_version=999");
    expect_refusal(fix, PD_E_NEWER, "newer policyd");
    with_sqlite(fix, "PRAGMA user_version=1");
    open_store(fix); /* refusing has not harmed it */
}

static void a_database_of_another_application_is_refused(void **state)
{
    fixture_t *fix = *state;

    pd_store_close(&fix->store);
    with_sqlite(fix, "PRAGMA application_id=77");
    expect_refusal(fix, PD_E_CORRUPT, "another application");
}

static size_t read_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t got;

    assert_true(fd >= 0);
    got = read(fd, buf, size);
    assert_true(got > 0 && (size_t)got < size);
    assert_int_equal(close(fd), 0);
    return (size_t)got;
}

static void write_file(const char *path, const char *bytes, size_t count)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    assert_int_equal(close(fd), 0);
}

static void a_damaged_store_is_refused(void **state)
{
    static const struct {
        size_t from;
        size_t bytes;
    } cases[] = {
        {0, 16}, {0, 4096}, {4096, 8192}, {131072, 8192}, /* last: in the middle of a document */
    };
    enum { ROOM = 4 * 1024 * 1024 };
    fixture_t *fix = *state;
    char *good = malloc(ROOM);
    char *bad = malloc(ROOM);
    char path[512];
    size_t count;
    size_t i;

    assert_non_null(good);
    assert_non_null(bad);
    assert_int_equal(run_unit(fix, PD_LANE_WRITE, insert_much), PD_OK);
    pd_store_close(&fix->store);
    in_dir(fix, "policy.db", path);
    count = read_file(path, good, ROOM);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(cases[i].from + cases[i].bytes < count);
        memcpy(bad, good, count);
        memset(bad + cases[i].from, 0xa5, cases[i].bytes);
        write_file(path, bad, count);
        expect_refusal(fix, PD_E_CORRUPT, "backup");
    }
    write_file(path, good, count);
    open_store(fix);
    free(good);
    free(bad);
}

static void a_store_cut_short_is_refused(void **state)
{
    fixture_t *fix = *state;
    char path[512];
    struct stat st;

    assert_int_equal(run_unit(fix, PD_LANE_WRITE, insert_much), PD_OK);
    pd_store_close(&fix->store);
    in_dir(fix, "policy.db", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 8192 * 4096), 0);
    expect_refusal(fix, PD_E_CORRUPT, "backup");
}

static void what_is_no_file_is_refused(void **state)
{
    fixture_t *fix = *state;
    char path[512];

    pd_store_close(&fix->store);
    in_dir(fix, "policy.db", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    expect_refusal(fix, PD_E_INVALID, "regular file");
}

static void a_store_that_cannot_be_written_is_refused(void **state)
{
    fixture_t *fix = *state;
    char path[512];
    int code = 0;
    pid_t child;

    if (geteuid() != 0) {
        skip(); /* only root can become a user who does not own the files */
    }
    pd_store_close(&fix->store);
    in_dir(fix, "policyd.lock", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chmod(fix->dir, 0777), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pd_store_t *other = NULL;
        pd_status_t status;

        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(9);
        }
        status = pd_store_open(fix->dir, NULL, NULL, &other, fix->why, sizeof(fix->why));
        _exit(status == PD_E_IO && strstr(fix->why, "policy.db") != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

static void only_policyd_may_read_the_files(void **state)
{
    static const char *const files[] = {"policy.db", "policy.db-wal", "policy.db-shm",
                                        "policyd.lock"};
    fixture_t *fix = *state;
    char path[512];
    struct stat st;
    size_t i;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        in_dir(fix, files[i], path);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    /* A mode that somebody widened is narrowed at the next start. */
    pd_store_close(&fix->store);
    in_dir(fix, "policy.db", path);
    assert_int_equal(chmod(path, 0644), 0);
    open_store(fix);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_second_opener_is_refused_until_the_first_has_closed),
        STORE_TEST(a_newer_store_is_refused),
        STORE_TEST(a_database_of_another_application_is_refused),
        STORE_TEST(a_damaged_store_is_refused),
        STORE_TEST(a_store_cut_short_is_refused),
        STORE_TEST(what_is_no_file_is_refused),
        STORE_TEST(a_store_that_cannot_be_written_is_refused),
        STORE_TEST(only_policyd_may_read_the_files),
    };

    if (apr_initialize() != APR_SUCCESS) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
