/* Sealed credentials and the master key's file. */
#include <fcntl.h>
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
#include <apr_strings.h>

#include "../../policyd/pd_seal.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static apr_pool_t *pool;
static char dir[256];

static const unsigned char key[32] = {1, 2, 3};
static const unsigned char other_key[32] = {1, 2, 4};

static const void *seal(size_t *ret_bytes)
{
    json_t *credential = json_pack("{s:s,s:s}", "username", "ada", "password", "s3cret");
    const void *sealed = NULL;

    assert_int_equal(
        pd_seal_credential(key, "cxn_1", "https://a.example", credential, pool, &sealed, ret_bytes),
        PD_OK);
    json_decref(credential);
    return sealed;
}

/* --- credentials ------------------------------------------------------------------ */

static void what_was_sealed_opens_again(void **state)
{
    size_t bytes = 0;
    const void *sealed = seal(&bytes);
    json_t *opened = NULL;

    (void)state;
    assert_null(memmem(sealed, bytes, "s3cret", 6));
    assert_int_equal(
        pd_unseal_credential(key, "cxn_1", "https://a.example", sealed, bytes, &opened), PD_OK);
    assert_int_equal(json_object_size(opened), 2);
    assert_string_equal(mcp_json_str(opened, "username"), "ada");
    assert_string_equal(mcp_json_str(opened, "password"), "s3cret");
    json_decref(opened);
}

static void it_opens_for_its_connection_origin_and_key_alone(void **state)
{
    static const struct {
        const unsigned char *key;
        const char *id;
        const char *origin;
    } rows[] = {{other_key, "cxn_1", "https://a.example"},
                {key, "cxn_2", "https://a.example"},
                {key, "cxn_1", "https://b.example"},
                {key, "cxn_1", "http://a.example"},
                {key, "cxn_1", "https://a.example:8443"},
                {key, "cxn_1h", "ttps://a.example"}}; /* the border between the two counts */
    size_t bytes = 0;
    const void *sealed = seal(&bytes);
    json_t *opened = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        assert_int_equal(
            pd_unseal_credential(rows[i].key, rows[i].id, rows[i].origin, sealed, bytes, &opened),
            PD_E_CRYPTO);
        assert_null(opened);
    }
}

static void no_bit_of_it_can_be_turned(void **state)
{
    size_t bytes = 0;
    const void *sealed = seal(&bytes);
    unsigned char *copy = apr_pmemdup(pool, sealed, bytes);
    json_t *opened = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < bytes; i++) {
        copy[i] = (unsigned char)(copy[i] ^ 0x10);
        assert_int_equal(
            pd_unseal_credential(key, "cxn_1", "https://a.example", copy, bytes, &opened),
            PD_E_CRYPTO);
        copy[i] = (unsigned char)(copy[i] ^ 0x10);
        assert_int_equal(pd_unseal_credential(key, "cxn_1", "https://a.example", copy, i, &opened),
                         PD_E_CRYPTO);
    }
    assert_null(opened);
}

static void two_seals_of_one_credential_differ(void **state)
{
    size_t bytes = 0;
    size_t again_bytes = 0;
    const void *sealed = seal(&bytes);
    const void *again = seal(&again_bytes);

    (void)state;
    assert_int_equal(bytes, again_bytes);
    assert_memory_not_equal(sealed, again, bytes);
}

static void nothing_is_sealed_without_binding_or_form(void **state)
{
    json_t *credential = json_pack("{s:s}", "token", "t");
    json_t *list = json_array();
    const void *sealed = NULL;
    size_t bytes = 0;

    (void)state;
    assert_int_equal(pd_seal_credential(key, "", "https://a", credential, pool, &sealed, &bytes),
                     PD_E_INVALID);
    assert_int_equal(pd_seal_credential(key, "cxn_1", "", credential, pool, &sealed, &bytes),
                     PD_E_INVALID);
    assert_int_equal(pd_seal_credential(key, "cxn_1", "https://a", list, pool, &sealed, &bytes),
                     PD_E_INVALID);
    assert_null(sealed);
    json_decref(list);
    json_decref(credential);
}

static void every_string_is_overwritten(void **state)
{
    json_t *secret = json_pack("{s:s,s:[s,{s:s}],s:i,s:s}", "a", "first", "b", "second", "c",
                               "third", "d", 7, "e", "");
    const char *strings[] = {mcp_json_str(secret, "a"),
                             json_string_value(json_array_get(json_object_get(secret, "b"), 0)),
                             mcp_json_str(json_array_get(json_object_get(secret, "b"), 1), "c")};
    size_t lengths[] = {5, 6, 5};
    size_t i;
    size_t k;

    (void)state;
    pd_seal_wipe(secret);
    for (i = 0; i < COUNT(strings); i++) {
        for (k = 0; k < lengths[i]; k++) {
            assert_int_equal(strings[i][k], 0);
        }
    }
    json_decref(secret);
    pd_seal_wipe(NULL);
}

/* --- the key's file ------------------------------------------------------------------ */

static const char *path(const char *name)
{
    return apr_pstrcat(pool, dir, "/", name, NULL);
}

static void write_file(const char *name, const char *text, size_t bytes, mode_t mode)
{
    int fd = open(path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, bytes), bytes);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static void a_new_key_is_made_once_and_read_again(void **state)
{
    unsigned char first[32] = {0};
    unsigned char second[32] = {0};
    unsigned char zero[32] = {0};
    struct stat st;
    char why[256] = "";
    mode_t mask = umask(0);

    (void)state;
    assert_int_equal(pd_seal_make_key(path("master.key"), why, sizeof(why)), PD_OK);
    (void)umask(mask);
    assert_int_equal(stat(path("master.key"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 65);
    assert_int_equal(pd_seal_load_key(path("master.key"), first, why, sizeof(why)), PD_OK);
    assert_memory_not_equal(first, zero, sizeof(first));
    assert_int_equal(pd_seal_make_key(path("master.key"), why, sizeof(why)), PD_E_CONFLICT);
    assert_non_null(strstr(why, "not overwritten"));
    assert_int_equal(pd_seal_load_key(path("master.key"), second, why, sizeof(why)), PD_OK);
    assert_memory_equal(first, second, sizeof(first));
    assert_int_equal(unlink(path("master.key")), 0);
}

static const char digits[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

static void a_key_file_has_exactly_its_form(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {{"", 0},
                {"00\n", 3},
                {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 64},
                {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\n", 66},
                {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fx", 65},
                {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g\n", 65},
                {"00010203040506070809\0a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n", 65}};
    unsigned char loaded[32] = {9};
    const unsigned char untouched[32] = {9};
    char why[256];
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        write_file("form.key", rows[i].text, rows[i].bytes, 0600);
        assert_int_equal(pd_seal_load_key(path("form.key"), loaded, why, sizeof(why)),
                         PD_E_INVALID);
        assert_non_null(strstr(why, "64 lower-case hexadecimal digits"));
        assert_memory_equal(loaded, untouched, sizeof(loaded));
    }
    write_file("form.key", apr_pstrcat(pool, digits, "\n", NULL), 65, 0600);
    assert_int_equal(pd_seal_load_key(path("form.key"), loaded, why, sizeof(why)), PD_OK);
    assert_int_equal(loaded[31], 0x1f);
    assert_int_equal(unlink(path("form.key")), 0);
}

static void a_key_that_others_can_use_is_refused(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0601};
    unsigned char loaded[32];
    char why[256];
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(modes); i++) {
        write_file("open.key", apr_pstrcat(pool, digits, "\n", NULL), 65, modes[i]);
        assert_int_equal(pd_seal_load_key(path("open.key"), loaded, why, sizeof(why)),
                         PD_E_INVALID);
        assert_non_null(strstr(why, "chmod 600"));
    }
    assert_int_equal(unlink(path("open.key")), 0);
}

static void what_is_no_file_of_its_own_is_refused(void **state)
{
    unsigned char loaded[32];
    char why[256];

    (void)state;
    assert_int_equal(pd_seal_load_key(path("absent.key"), loaded, why, sizeof(why)),
                     PD_E_NOT_FOUND);
    assert_non_null(strstr(why, "missing"));
    assert_int_equal(pd_seal_load_key(dir, loaded, why, sizeof(why)), PD_E_INVALID);
    write_file("real.key", apr_pstrcat(pool, digits, "\n", NULL), 65, 0600);
    assert_int_equal(symlink(path("real.key"), path("link.key")), 0);
    assert_int_equal(pd_seal_load_key(path("link.key"), loaded, why, sizeof(why)), PD_E_SYSTEM);
    assert_non_null(strstr(why, "symbolic link"));
    assert_int_equal(pd_seal_make_key(path("link.key"), why, sizeof(why)), PD_E_CONFLICT);
    assert_int_equal(mkfifo(path("fifo.key"), 0600), 0);
    assert_int_equal(pd_seal_load_key(path("fifo.key"), loaded, why, sizeof(why)),
                     PD_E_INVALID); /* and no waiting */
    assert_int_equal(pd_seal_make_key(path("absent/x.key"), why, sizeof(why)), PD_E_SYSTEM);
    assert_int_equal(unlink(path("fifo.key")), 0);
    assert_int_equal(unlink(path("link.key")), 0);
    assert_int_equal(unlink(path("real.key")), 0);
}

/* ---------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    (void)snprintf(dir, sizeof(dir), "%s/test_seal.XXXXXX", tmp == NULL ? "/tmp" : tmp);
    return mkdtemp(dir) != NULL && apr_initialize() == APR_SUCCESS && mcp_hash_init() == MCP_OK &&
                   apr_pool_create(&pool, NULL) == APR_SUCCESS
               ? 0
               : -1;
}

static int end(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sealed_opens_again),
        cmocka_unit_test(it_opens_for_its_connection_origin_and_key_alone),
        cmocka_unit_test(no_bit_of_it_can_be_turned),
        cmocka_unit_test(two_seals_of_one_credential_differ),
        cmocka_unit_test(nothing_is_sealed_without_binding_or_form),
        cmocka_unit_test(every_string_is_overwritten),
        cmocka_unit_test(a_new_key_is_made_once_and_read_again),
        cmocka_unit_test(a_key_file_has_exactly_its_form),
        cmocka_unit_test(a_key_that_others_can_use_is_refused),
        cmocka_unit_test(what_is_no_file_of_its_own_is_refused)};

    return cmocka_run_group_tests(tests, begin, end);
}
