/* --init and the files of the link: made once, never overwritten, refused when they are unsound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../policyd/pd_curve.h"
#include "../../policyd/pd_init.h"
#include "../../policyd/pd_seal.h"
#include "../../proto/mcp_hash.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct world {
    apr_pool_t *pool;
    char dir[256];
    pd_config_t config;
    pd_privs_t privs;
    char why[512];
} world_t;

static int made, kept, added;

static void tell(const char *line)
{
    made += strncmp(line, "made ", 5) == 0;
    kept += strncmp(line, "kept ", 5) == 0;
    added += strncmp(line, "added ", 6) == 0;
}

static const char *path_of(const world_t *world, const char *name)
{
    return apr_pstrcat(world->pool, world->dir, "/", name, NULL);
}

static int setup(void **state)
{
    const char *base = getenv("TMPDIR");
    world_t *world = calloc(1, sizeof *world);

    if (world == NULL || apr_initialize() != APR_SUCCESS ||
        apr_pool_create(&world->pool, NULL) != APR_SUCCESS || mcp_hash_init() != MCP_OK) {
        return -1;
    }
    *state = world;
    (void)snprintf(world->dir, sizeof world->dir, "%s/initXXXXXX", base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(world->dir));
    world->config.file = "f";
    world->config.state_dir = path_of(world, "lib/state");
    world->config.key_dir = path_of(world, "keys");
    world->config.admin_socket = path_of(world, "run/admin.sock");
    world->config.pid_file = path_of(world, "run/pid");
    world->config.query_endpoints = apr_array_make(world->pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(world->config.query_endpoints, const char *) =
        apr_pstrcat(world->pool, "ipc://", path_of(world, "run/query/q"), NULL);
    assert_int_equal(pd_privs_find(&world->config, &world->privs, world->why, sizeof world->why), PD_OK);
    made = kept = added = 0;
    return 0;
}

static int teardown(void **state)
{
    static const char *const files[] = {"keys/server.key", "keys/httpd.key", "keys/clients.allow",
                                        "keys/master.key", "run/query",      "run",
                                        "keys",            "lib/state",      "lib",
                                        ""};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(files); i++) {
        (void)remove(path_of(world, files[i]));
    }
    apr_pool_destroy(world->pool);
    apr_terminate();
    free(world);
    return 0;
}

static pd_status_t init(world_t *world)
{
    world->why[0] = '\0';
    return pd_init_run(&world->config, &world->privs, world->pool, tell, world->why, sizeof world->why);
}

static void must_have_mode(const world_t *world, const char *name, mode_t mode)
{
    struct stat info;

    assert_int_equal(stat(path_of(world, name), &info), 0);
    assert_int_equal(info.st_mode & 07777, mode);
}

static void everything_missing_is_made_with_its_mode(void **state)
{
    world_t *world = *state;

    if (init(world) != PD_OK) {
        fail_msg("%s", world->why);
    }
    must_have_mode(world, "lib/state", 0700);
    must_have_mode(world, "keys", 0750);
    must_have_mode(world, "run", 0755);
    must_have_mode(world, "run/query", 0750);
    must_have_mode(world, "keys/server.key", 0600);
    must_have_mode(world, "keys/httpd.key", 0640);
    must_have_mode(world, "keys/clients.allow", 0640);
    must_have_mode(world, "keys/master.key", 0600);
    assert_int_equal(made, 8);
    assert_int_equal(kept, 1); /* run: for pid file and admin socket alike */
}

static void the_keys_fit_together(void **state)
{
    world_t *world = *state;
    pd_curve_pair_t server;
    pd_curve_httpd_t httpd;
    pd_curve_allow_t *allow = NULL;
    unsigned char key[32];

    assert_int_equal(init(world), PD_OK);
    assert_int_equal(pd_curve_load(path_of(world, "keys/server.key"), &server, world->why,
                                   sizeof world->why),
                     PD_OK);
    assert_int_equal(pd_curve_load_httpd(path_of(world, "keys/httpd.key"), &httpd, world->why,
                                         sizeof world->why),
                     PD_OK);
    assert_string_equal(httpd.server_public, server.public_key);
    assert_int_equal(pd_curve_allow_load(path_of(world, "keys/clients.allow"), &allow, world->why,
                                         sizeof world->why),
                     PD_OK);
    assert_int_equal(pd_curve_allow_count(allow), 1);
    assert_true(pd_curve_allow_has(allow, httpd.client_public));
    assert_false(pd_curve_allow_has(allow, server.public_key));
    pd_curve_allow_free(&allow);
    assert_int_equal(pd_seal_load_key(path_of(world, "keys/master.key"), key, world->why,
                                      sizeof world->why),
                     PD_OK);
}

static void a_second_init_changes_nothing(void **state)
{
    world_t *world = *state;
    pd_curve_pair_t before, after;

    assert_int_equal(init(world), PD_OK);
    assert_int_equal(pd_curve_load(path_of(world, "keys/server.key"), &before, world->why,
                                   sizeof world->why),
                     PD_OK);
    made = kept = added = 0;
    assert_int_equal(init(world), PD_OK);
    assert_int_equal(made, 0);
    assert_int_equal(added, 0);
    assert_int_equal(kept, 9);
    assert_int_equal(pd_curve_load(path_of(world, "keys/server.key"), &after, world->why,
                                   sizeof world->why),
                     PD_OK);
    assert_string_equal(before.secret_key, after.secret_key);
}

static void a_lost_httpd_key_is_made_anew_and_let_in(void **state)
{
    world_t *world = *state;
    pd_curve_allow_t *allow = NULL;

    assert_int_equal(init(world), PD_OK);
    assert_int_equal(unlink(path_of(world, "keys/httpd.key")), 0);
    assert_int_equal(init(world), PD_OK);
    assert_int_equal(added, 1);
    assert_int_equal(pd_curve_allow_load(path_of(world, "keys/clients.allow"), &allow, world->why,
                                         sizeof world->why),
                     PD_OK);
    assert_int_equal(pd_curve_allow_count(allow), 2);
    pd_curve_allow_free(&allow);
}

static void an_httpd_key_of_another_server_is_pointed_out(void **state)
{
    world_t *world = *state;

    assert_int_equal(init(world), PD_OK);
    assert_int_equal(unlink(path_of(world, "keys/server.key")), 0);
    assert_int_equal(init(world), PD_E_INVALID);
    assert_non_null(strstr(world->why, "made for another server.key"));
}

static void a_start_makes_run_directories_and_only_those(void **state)
{
    world_t *world = *state;

    assert_int_equal(pd_init_directories(&world->config, &world->privs, world->why, sizeof world->why),
                     PD_E_SYSTEM);
    assert_non_null(strstr(world->why, "policyd --init"));
    assert_int_equal(init(world), PD_OK);
    assert_int_equal(rmdir(path_of(world, "run/query")), 0);
    assert_int_equal(rmdir(path_of(world, "run")), 0);
    assert_int_equal(pd_init_directories(&world->config, &world->privs, world->why, sizeof world->why),
                     PD_OK);
    must_have_mode(world, "run/query", 0750);
}

static void a_directory_that_anybody_writes_is_refused(void **state)
{
    world_t *world = *state;

    assert_int_equal(init(world), PD_OK);
    assert_int_equal(chmod(world->config.state_dir, 0777), 0);
    assert_int_equal(pd_init_directories(&world->config, &world->privs, world->why, sizeof world->why),
                     PD_E_INVALID);
    assert_non_null(strstr(world->why, "anybody can write"));
    assert_int_equal(chmod(world->config.state_dir, 01777), 0);
    assert_int_equal(pd_init_directories(&world->config, &world->privs, world->why, sizeof world->why),
                     PD_E_INVALID);
}

static void a_list_of_keys_is_read_strictly(void **state)
{
    static const struct {
        const char *text;
        int count; /* -1: refused */
    } cases[] = {
        {"", 0},
        {"# nothing\n\n  \t\n", 0},
        {"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7\n", 1},
        {"  rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7 httpd of host a\r\n# x", 1},
        {"#q:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7 as long as a key, and a comment\n", 0},
        {"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf\n", -1},
        {"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf77\n", -1},
        {"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf\"\n", -1},
        {"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf\xff\n", -1},
        {"httpd rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7\n", -1},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        pd_curve_allow_t *allow = NULL;
        char why[256] = "";
        pd_status_t status =
            pd_curve_allow_parse("l", cases[i].text, strlen(cases[i].text), &allow, why, sizeof why);

        if (cases[i].count < 0) {
            assert_int_equal(status, PD_E_INVALID);
            assert_non_null(strstr(why, "l:1: "));
        } else {
            assert_int_equal(status, PD_OK);
            assert_int_equal(pd_curve_allow_count(allow), cases[i].count);
            pd_curve_allow_free(&allow);
        }
    }
}

static void a_mismatched_pair_is_refused(void **state)
{
    world_t *world = *state;
    const char *path;
    pd_curve_pair_t a, b;
    FILE *to;

    assert_int_equal(init(world), PD_OK);
    path = path_of(world, "keys/server.key");
    assert_int_equal(pd_curve_make(&a), PD_OK);
    assert_int_equal(pd_curve_make(&b), PD_OK);
    to = fopen(path, "w");
    assert_non_null(to);
    assert_true(fprintf(to, "public = %s\nsecret = %s\n", a.public_key, b.secret_key) > 0);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(pd_curve_load(path, &a, world->why, sizeof world->why), PD_E_INVALID);
    assert_non_null(strstr(world->why, "is not that of the secret key"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_missing_is_made_with_its_mode),
        TEST(the_keys_fit_together),
        TEST(a_second_init_changes_nothing),
        TEST(a_lost_httpd_key_is_made_anew_and_let_in),
        TEST(an_httpd_key_of_another_server_is_pointed_out),
        TEST(a_start_makes_run_directories_and_only_those),
        TEST(a_directory_that_anybody_writes_is_refused),
        TEST(a_list_of_keys_is_read_strictly),
        TEST(a_mismatched_pair_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
