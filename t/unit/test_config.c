/* policyd.conf: what is taken, what is refused, and where the refusal points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <apr_general.h>

#include "../../policyd/pd_config.h"
#include "../../policyd/pd_log.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static apr_pool_t *pool;

static int setup(void **state)
{
    (void)state;
    return apr_initialize() == APR_SUCCESS && apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

static pd_status_t parse(const char *text, pd_config_t **ret, char *why, size_t size)
{
    return pd_config_parse("f", text, strlen(text), pool, ret, why, size);
}

static const pd_config_t *taken(const char *text)
{
    pd_config_t *config = NULL;
    char why[512] = "";

    if (parse(text, &config, why, sizeof why) != PD_OK) {
        fail_msg("refused: %s", why);
    }
    return config;
}

static void an_empty_file_means_the_defaults(void **state)
{
    const pd_config_t *config = taken("");

    (void)state;
    assert_string_equal(config->organisation, "My organisation");
    assert_string_equal(config->state_dir, "/var/lib/policyd");
    assert_string_equal(config->key_dir, "/etc/policyd/keys");
    assert_string_equal(config->admin_socket, "/run/policyd/admin.sock");
    assert_string_equal(config->pid_file, "/run/policyd/policyd.pid");
    assert_string_equal(config->control_prefix, "elaichi");
    assert_null(config->user);
    assert_null(config->httpd_group);
    assert_int_equal(config->log_level, PD_LOG_NOTICE);
    assert_int_equal(config->log_to_syslog, 0);
    assert_int_equal(config->actors->nelts, 0);
    assert_int_equal(config->query_endpoints->nelts, 1);
    assert_int_equal(config->reserved_labels->nelts, 1);
    assert_string_equal(APR_ARRAY_IDX(config->reserved_labels, 0, const char *), "elaichi");
}

static void every_key_reaches_its_member(void **state)
{
    const pd_config_t *config = taken("# a comment\n"
                                      "\n"
                                      "  organisation =  Acme = Sons # no comment here \r\n"
                                      "state_dir=/s\n"
                                      "query_endpoint = ipc:///r/q/a.sock\n"
                                      "query_endpoint = tcp://10.0.0.1:7000\n"
                                      "query_endpoint = tcp://[::1]:7000\n"
                                      "admin_socket = /r/admin\n"
                                      "key_dir = /k\n"
                                      "user = policyd\n"
                                      "group = policyd\n"
                                      "httpd_group = www-data\n"
                                      "audit_group = audit\n"
                                      "admin_group = adm\n"
                                      "pid_file = /r/pid\n"
                                      "log = syslog\n"
                                      "log_level = debug\n"
                                      "actor = unix:1000 ada@example.com\n"
                                      "actor = unix:1001 bob@example.com\n"
                                      "reserved_labels = old-prefix other\n"
                                      "control_prefix = gate");

    (void)state;
    assert_string_equal(config->organisation, "Acme = Sons # no comment here");
    assert_string_equal(config->state_dir, "/s");
    assert_int_equal(config->query_endpoints->nelts, 3);
    assert_string_equal(APR_ARRAY_IDX(config->query_endpoints, 1, const char *), "tcp://10.0.0.1:7000");
    assert_string_equal(config->admin_socket, "/r/admin");
    assert_string_equal(config->key_dir, "/k");
    assert_string_equal(config->user, "policyd");
    assert_string_equal(config->group, "policyd");
    assert_string_equal(config->httpd_group, "www-data");
    assert_string_equal(config->audit_group, "audit");
    assert_string_equal(config->admin_group, "adm");
    assert_string_equal(config->pid_file, "/r/pid");
    assert_int_equal(config->log_to_syslog, 1);
    assert_int_equal(config->log_level, PD_LOG_DEBUG);
    assert_int_equal(config->actors->nelts, 2);
    assert_int_equal(APR_ARRAY_IDX(config->actors, 1, pd_config_actor_t).uid, 1001);
    assert_string_equal(APR_ARRAY_IDX(config->actors, 0, pd_config_actor_t).email, "ada@example.com");
    assert_int_equal(config->reserved_labels->nelts, 4);
    assert_string_equal(config->control_prefix, "gate");
}

static void a_bad_line_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *why; /* what the message begins with and has in it */
    } cases[] = {
        {"\n\nbogus = 1\n", "f:3: unknown key \"bogus\""},
        {"organisation\n", "f:1: not `key = value`"},
        {"= x\n", "f:1: not `key = value`"},
        {"organisation =\n", "f:1: organisation has no value"},
        {"organisation = a\norganisation = b\n", "f:2: organisation stands in line 1 already"},
        {"state_dir = here\n", "f:1: state_dir = here: write an absolute path"},
        {"state_dir = /a/../b\n", "f:1: state_dir = /a/../b: write an absolute path"},
        {"state_dir = /\n", "write an absolute path"},
        {"query_endpoint = inproc://x\n", "write ipc:///PATH or tcp://ADDRESS:PORT"},
        {"query_endpoint = ipc://x\n", "write ipc:// and an absolute path"},
        {"query_endpoint = tcp://h\n", "write ipc:///PATH or tcp://ADDRESS:PORT"},
        {"query_endpoint = tcp://h:0\n", "write ipc:///PATH or tcp://ADDRESS:PORT"},
        {"query_endpoint = tcp://h:65536\n", "write ipc:///PATH or tcp://ADDRESS:PORT"},
        {"query_endpoint = tcp://h:1;2\n", "write ipc:///PATH or tcp://ADDRESS:PORT"},
        {"query_endpoint = ipc:///a/b\nquery_endpoint = ipc:///a/b\n", "f:2: "},
        {"actor = 1000 a@b\n", "write unix:UID EMAIL"},
        {"actor = unix:-1 a@b\n", "write unix:UID EMAIL"},
        {"actor = unix:01 a@b\n", "write unix:UID EMAIL"},
        {"actor = unix:1000a@b\n", "write unix:UID EMAIL"},
        {"actor = unix:1000 ada\n", "write unix:UID EMAIL"},
        {"actor = unix:1000 a@b c\n", "write unix:UID EMAIL"},
        {"actor = unix:0 a@b\n", "uid 0 is always the Owner"},
        {"actor = unix:4294967295 a@b\n", "no user can have this uid"},
        {"actor = unix:1 a@b\nactor = unix:1 c@d\n", "f:2: "},
        {"log = file\n", "write stderr or syslog"},
        {"log_level = trace\n", "write error, warning, notice, info or debug"},
        {"control_prefix = A_B\n", "write one label"},
        {"reserved_labels = ok No\n", "write labels of a-z"},
        {"group = g\n", "f: group is set but user is not"},
        {"user = a b\n", "write one name of a user or group"},
        {"user = -x\n", "write one name of a user or group"},
        {"admin_socket = /r/a\nquery_endpoint = ipc:///r/a\n", "the same path"},
        {"admin_socket = /r/a\npid_file = /r/a\n", "the same path"},
        {"organisation = a\x01\n", "f:1: a control character"},
        {"bog\xff\"us = 1\n", "unknown key \"bog\\xff\"us\""},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        pd_config_t *config = NULL;
        char why[512] = "";

        if (parse(cases[i].text, &config, why, sizeof why) == PD_OK ||
            strstr(why, cases[i].why) == NULL || config != NULL) {
            fail_msg("%s: \"%s\" instead of \"%s\"", cases[i].text, why, cases[i].why);
        }
    }
}

static void a_line_is_taken_at_its_limit_and_refused_above(void **state)
{
    char text[PD_CONFIG_MAX_LINE + 8];
    pd_config_t *config = NULL;
    char why[512] = "";

    (void)state;
    memset(text, '#', sizeof text);
    assert_int_equal(pd_config_parse("f", text, PD_CONFIG_MAX_LINE, pool, &config, why, sizeof why),
                     PD_OK);
    assert_int_equal(pd_config_parse("f", text, PD_CONFIG_MAX_LINE + 1, pool, &config, why, sizeof why),
                     PD_E_INVALID);
}

static void a_nul_byte_is_refused(void **state)
{
    static const char text[] = "organisation = a\0b\n";
    pd_config_t *config = NULL;
    char why[512] = "";

    (void)state;
    assert_int_equal(pd_config_parse("f", text, sizeof text - 1, pool, &config, why, sizeof why),
                     PD_E_INVALID);
}

static void a_message_never_leaves_its_buffer(void **state)
{
    pd_config_t *config = NULL;
    char why[24];
    size_t size;

    (void)state;
    for (size = 1; size <= sizeof why; size++) {
        memset(why, 'x', sizeof why);
        assert_int_equal(parse("bogus = 1", &config, why, size), PD_E_INVALID);
        assert_true(memchr(why, '\0', size) != NULL);
        assert_true(size == sizeof why || why[size] == 'x');
    }
}

static void a_reload_takes_actors_and_level_and_names_what_needs_a_restart(void **state)
{
    pd_config_t *live = NULL, *fresh = NULL;
    char why[512] = "";
    apr_pool_t *scratch = NULL;

    (void)state;
    assert_int_equal(apr_pool_create(&scratch, pool), APR_SUCCESS);
    assert_int_equal(parse("actor = unix:1 a@b\n", &live, why, sizeof why), PD_OK);
    assert_int_equal(pd_config_parse("f", "actor = unix:2 c@d\nlog_level = info\n", 36, scratch, &fresh,
                                     why, sizeof why),
                     PD_OK);
    assert_null(pd_config_adopt(live, fresh, pool));
    assert_int_equal(parse("admin_socket = /x/y\n", &fresh, why, sizeof why), PD_OK);
    apr_pool_destroy(scratch);
    assert_int_equal(live->actors->nelts, 1);
    assert_int_equal(APR_ARRAY_IDX(live->actors, 0, pd_config_actor_t).uid, 2);
    assert_string_equal(APR_ARRAY_IDX(live->actors, 0, pd_config_actor_t).email, "c@d");
    assert_int_equal(live->log_level, PD_LOG_INFO);
    assert_string_equal(pd_config_adopt(live, fresh, pool), "admin_socket");
    assert_string_equal(live->admin_socket, "/run/policyd/admin.sock");
    assert_int_equal(parse("log = syslog\n", &fresh, why, sizeof why), PD_OK);
    assert_string_equal(pd_config_adopt(live, fresh, pool), "log");
    assert_int_equal(parse("query_endpoint = ipc:///z/z\n", &fresh, why, sizeof why), PD_OK);
    assert_string_equal(pd_config_adopt(live, fresh, pool), "query_endpoint");
}

static void a_file_is_read_and_its_accounts_must_exist(void **state)
{
    const char *base = getenv("TMPDIR");
    char dir[512], file[600], why[512] = "";
    pd_config_t *config = NULL;
    FILE *to;

    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/configXXXXXX", base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof file, "%s/policyd.conf", dir);
    assert_int_equal(pd_config_load(file, pool, &config, why, sizeof why), PD_E_INVALID);
    assert_non_null(strstr(why, "name another file with -c"));
    assert_int_equal(pd_config_load(dir, pool, &config, why, sizeof why), PD_E_INVALID);
    to = fopen(file, "w");
    assert_non_null(to);
    assert_true(fputs("organisation = Acme\n", to) >= 0);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(pd_config_load(file, pool, &config, why, sizeof why), PD_OK);
    assert_string_equal(config->organisation, "Acme");
    assert_string_equal(config->file, file);
    to = fopen(file, "a");
    assert_non_null(to);
    assert_true(fputs("audit_group = no-such-group-here\n", to) >= 0);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(pd_config_load(file, pool, &config, why, sizeof why), PD_E_INVALID);
    assert_non_null(strstr(why, "there is no such group"));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_means_the_defaults),
        cmocka_unit_test(every_key_reaches_its_member),
        cmocka_unit_test(a_bad_line_is_refused_with_its_place),
        cmocka_unit_test(a_line_is_taken_at_its_limit_and_refused_above),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(a_message_never_leaves_its_buffer),
        cmocka_unit_test(a_reload_takes_actors_and_level_and_names_what_needs_a_restart),
        cmocka_unit_test(a_file_is_read_and_its_accounts_must_exist),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
