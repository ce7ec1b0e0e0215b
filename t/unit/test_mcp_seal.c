/* Room mcp_seal of the module: the ring, sealed texts, sessions and cursors. */
#include "mcp_seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../proto/mcp_hash.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static apr_pool_t *pool;
static mcp_ring_t ring;      /* k2 current, k1 previous */
static mcp_ring_t next_ring; /* k3 current, k2 previous */
static mcp_ring_t alien;     /* other keys by the same names */

static const char *key_text(unsigned char fill)
{
    unsigned char key[MCP_KEY_BYTES];
    char *text = apr_palloc(pool, 64);
    memset(key, fill, sizeof key);
    mcp_b64url(key, sizeof key, text);
    return text;
}

static int ring_of(const char *text, mcp_ring_t *ret, mcp_err_t *err)
{
    json_t *keys = json_loads(text, JSON_DECODE_ANY, NULL);
    memset(err, 0, sizeof *err);
    apr_status_t status = mcp_seal_ring(keys, ret, pool, err);
    json_decref(keys);
    return status == APR_SUCCESS;
}

static const char *two_keys(const char *previous, unsigned char fill, const char *current,
                            unsigned char current_fill)
{
    return apr_psprintf(pool,
                        "[{\"id\":\"%s\",\"key\":\"%s\",\"current\":false},"
                        "{\"id\":\"%s\",\"key\":\"%s\",\"current\":true}]",
                        previous, key_text(fill), current, key_text(current_fill));
}

static int set_up(void **state)
{
    mcp_err_t err;
    (void)state;
    if (apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK ||
        apr_pool_create(&pool, NULL) != APR_SUCCESS)
        return -1;
    return ring_of(two_keys("k1", 1, "k2", 2), &ring, &err) &&
                   ring_of(two_keys("k2", 2, "k3", 3), &next_ring, &err) &&
                   ring_of(two_keys("k1", 8, "k2", 9), &alien, &err)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

static void a_ring_is_read_from_hello(void **state)
{
    (void)state;
    assert_int_equal(ring.count, 2);
    assert_string_equal(ring.keys[1].id, "k2");
    assert_true(ring.keys[1].is_current);
    assert_false(ring.keys[0].is_current);
    assert_int_equal(ring.keys[1].key[31], 2);
}

static void a_ring_of_another_form_is_refused(void **state)
{
    const char *k = key_text(1);
    const char *const cases[] = {
        "{}",
        "[]",
        "null",
        "[5]",
        /* none current, or two */
        apr_psprintf(pool, "[{\"id\":\"a\",\"key\":\"%s\"}]", k),
        apr_psprintf(pool, "[{\"id\":\"a\",\"key\":\"%s\",\"current\":1}]", k),
        two_keys("a", 1, "a", 2),
        apr_psprintf(pool,
                     "[{\"id\":\"a\",\"key\":\"%s\",\"current\":true},"
                     "{\"id\":\"b\",\"key\":\"%s\",\"current\":true}]",
                     k, k),
        /* ids */
        apr_psprintf(pool, "[{\"id\":\"\",\"key\":\"%s\",\"current\":true}]", k),
        apr_psprintf(pool, "[{\"id\":\"a.b\",\"key\":\"%s\",\"current\":true}]", k),
        apr_psprintf(pool, "[{\"id\":\"0123456789abcdef\",\"key\":\"%s\",\"current\":true}]", k),
        apr_psprintf(pool, "[{\"key\":\"%s\",\"current\":true}]", k),
        /* keys */
        apr_psprintf(pool, "[{\"id\":\"a\",\"key\":\"%sA\",\"current\":true}]", k),
        apr_psprintf(pool, "[{\"id\":\"a\",\"key\":\"%.20s\",\"current\":true}]", k),
        "[{\"id\":\"a\",\"key\":\"!\",\"current\":true}]",
        "[{\"id\":\"a\",\"key\":\"\",\"current\":true}]",
        "[{\"id\":\"a\",\"current\":true}]",
        /* one too many */
        apr_psprintf(pool,
                     "[{\"id\":\"a\",\"key\":\"%s\",\"current\":true},"
                     "{\"id\":\"b\",\"key\":\"%s\"},{\"id\":\"c\",\"key\":\"%s\"},"
                     "{\"id\":\"d\",\"key\":\"%s\"},{\"id\":\"e\",\"key\":\"%s\"}]",
                     k, k, k, k, k),
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_ring_t untouched;
        mcp_err_t err;
        memset(&untouched, 0x5a, sizeof untouched);
        if (ring_of(cases[i], &untouched, &err))
            fail_msg("accepted: %s", cases[i]);
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
        assert_non_null(err.log);
        assert_null(strstr(err.log, k));
        assert_int_equal(untouched.keys[0].key[0], 0x5a);
    }
}

static void a_sealed_text_opens_with_its_key_and_purpose_alone(void **state)
{
    const char *text = mcp_seal_text(&ring, "p1", "da\0ta", 5, pool);
    const char *plain = NULL;
    size_t bytes = 0;
    (void)state;
    assert_memory_equal(text, "k2.", 3);
    assert_int_equal(mcp_unseal_text(&ring, "p1", text, pool, &plain, &bytes), APR_SUCCESS);
    assert_int_equal(bytes, 5);
    assert_memory_equal(plain, "da\0ta", 6);
    /* the current key of yesterday is the previous one of today */
    assert_int_equal(mcp_unseal_text(&next_ring, "p1", text, pool, &plain, &bytes), APR_SUCCESS);

    plain = "untouched";
    assert_int_not_equal(mcp_unseal_text(&ring, "p2", text, pool, &plain, &bytes), APR_SUCCESS);
    assert_int_not_equal(mcp_unseal_text(&alien, "p1", text, pool, &plain, &bytes), APR_SUCCESS);
    const char *renamed = apr_pstrcat(pool, "k1", text + 2, NULL);
    assert_int_not_equal(mcp_unseal_text(&ring, "p1", renamed, pool, &plain, &bytes), APR_SUCCESS);
    const char *unknown = mcp_seal_text(&next_ring, "p1", "x", 1, pool);
    assert_int_not_equal(mcp_unseal_text(&ring, "p1", unknown, pool, &plain, &bytes), APR_SUCCESS);
    assert_string_equal(plain, "untouched");
}

static void two_seals_of_one_text_differ(void **state)
{
    (void)state;
    assert_string_not_equal(mcp_seal_text(&ring, "p", "x", 1, pool),
                            mcp_seal_text(&ring, "p", "x", 1, pool));
}

static void no_changed_byte_and_no_part_opens(void **state)
{
    const char *text = mcp_seal_text(&ring, "p", "some data", 9, pool);
    const char *plain = NULL;
    size_t bytes = 0;
    size_t length = strlen(text);
    (void)state;
    for (size_t i = 0; i < length; i++) {
        char *changed = apr_pstrdup(pool, text);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        assert_int_not_equal(mcp_unseal_text(&ring, "p", changed, pool, &plain, &bytes),
                             APR_SUCCESS);
        changed[i] = '\0';
        assert_int_not_equal(mcp_unseal_text(&ring, "p", changed, pool, &plain, &bytes),
                             APR_SUCCESS);
    }
    const char *longer = apr_pstrcat(pool, text, "A", NULL);
    assert_int_not_equal(mcp_unseal_text(&ring, "p", longer, pool, &plain, &bytes), APR_SUCCESS);
    assert_int_not_equal(mcp_unseal_text(&ring, "p", NULL, pool, &plain, &bytes), APR_SUCCESS);
}

static void sealing_is_bounded_and_needs_a_current_key(void **state)
{
    char *data = malloc(MCP_SEAL_MAX_BYTES + 1);
    mcp_ring_t empty;
    const char *plain = NULL;
    size_t bytes = 0;
    (void)state;
    assert_non_null(data);
    memset(data, 'x', MCP_SEAL_MAX_BYTES + 1);
    memset(&empty, 0, sizeof empty);
    assert_null(mcp_seal_text(&ring, "p", data, MCP_SEAL_MAX_BYTES + 1, pool));
    assert_null(mcp_seal_text(&empty, "p", data, 1, pool));
    const char *text = mcp_seal_text(&ring, "p", data, MCP_SEAL_MAX_BYTES, pool);
    assert_int_equal(mcp_unseal_text(&ring, "p", text, pool, &plain, &bytes), APR_SUCCESS);
    assert_int_equal(bytes, MCP_SEAL_MAX_BYTES);
    assert_int_not_equal(mcp_unseal_text(&empty, "p", text, pool, &plain, &bytes), APR_SUCCESS);
    free(data);
}

static mcp_session_t a_session(void)
{
    mcp_session_t session = {MCP_REV_2025_06_18, "g1", "client", "1.0", "{\"roots\":{}}", 5000000};
    return session;
}

static void a_session_comes_back_whole(void **state)
{
    mcp_session_t session = a_session();
    mcp_session_t back;
    mcp_err_t err;
    (void)state;
    const char *text = mcp_seal_session(&ring, &session, pool);
    assert_int_equal(mcp_unseal_session(&next_ring, text, "g1", 4999999, pool, &back, &err),
                     APR_SUCCESS);
    assert_int_equal(back.revision, MCP_REV_2025_06_18);
    assert_string_equal(back.grant, "g1");
    assert_string_equal(back.client_name, "client");
    assert_string_equal(back.client_version, "1.0");
    assert_string_equal(back.capabilities, "{\"roots\":{}}");
    assert_int_equal(back.expires_us, 5000000);
}

static void a_session_is_bound_to_grant_and_time(void **state)
{
    mcp_session_t session = a_session();
    const char *text = mcp_seal_session(&ring, &session, pool);
    const char *cursor = mcp_seal_cursor(&ring, "v", "g1", 1, pool);
    const struct {
        const char *text, *grant;
        int64_t now_us;
    } cases[] = {{text, "g2", 0},
                 {text, "g", 0},
                 {text, "", 0},
                 {text, NULL, 0},
                 {text, "g1", 5000000},
                 {text, "g1", INT64_MAX},
                 {NULL, "g1", 0},
                 {"", "g1", 0},
                 {"zzz", "g1", 0},
                 {"k2.", "g1", 0},
                 {cursor, "g1", 0},
                 {apr_pstrcat(pool, text, ", ", text, NULL), "g1", 0}};
    const char *message = NULL;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_session_t back;
        mcp_err_t err;
        memset(&err, 0, sizeof err);
        memset(&back, 0x5a, sizeof back);
        assert_int_equal(mcp_unseal_session(&ring, cases[i].text, cases[i].grant, cases[i].now_us,
                                            pool, &back, &err),
                         MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, MCP_FAIL_SESSION);
        if (message != NULL)
            assert_string_equal(err.message, message); /* one answer for all */
        message = err.message;
        assert_true(back.expires_us == 0x5a5a5a5a5a5a5a5a);
    }
}

static void a_session_id_is_visible_ascii_and_bounded(void **state)
{
    char wide[4001];
    mcp_session_t session = a_session();
    mcp_session_t back;
    mcp_err_t err;
    (void)state;
    for (size_t i = 0; i < sizeof wide - 1; i++)
        wide[i] = i % 2 == 0 ? '\xc3' : '\xa9';
    wide[sizeof wide - 1] = '\0';
    session.client_name = wide;
    session.client_version = wide;
    session.capabilities = wide;
    session.grant = "012345678901234567890123456789012345678901234567";
    const char *text = mcp_seal_session(&ring, &session, pool);
    assert_non_null(text);
    assert_true(strlen(text) <= MCP_SESSION_MAX_ID);
    for (const char *p = text; *p != '\0'; p++)
        assert_in_range(*p, 0x21, 0x7e);
    assert_int_equal(mcp_unseal_session(&ring, text, session.grant, 0, pool, &back, &err),
                     APR_SUCCESS);
    assert_int_equal(strlen(back.client_name), 64);
    assert_true(mcp_rpc_is_utf8(back.client_name, 64));
    assert_string_equal(back.capabilities, "{}");
}

static void what_a_session_lacks_is_empty(void **state)
{
    mcp_session_t session = a_session();
    mcp_session_t back;
    mcp_err_t err;
    (void)state;
    session.client_name = NULL;
    session.client_version = NULL;
    session.capabilities = NULL;
    const char *text = mcp_seal_session(&ring, &session, pool);
    assert_int_equal(mcp_unseal_session(&ring, text, "g1", 0, pool, &back, &err), APR_SUCCESS);
    assert_string_equal(back.client_name, "");
    assert_string_equal(back.client_version, "");
    assert_string_equal(back.capabilities, "{}");
}

static void capabilities_are_kept_up_to_their_limit(void **state)
{
    char text[514];
    (void)state;
    for (size_t bytes = 512; bytes <= 513; bytes++) {
        mcp_session_t session = a_session();
        mcp_session_t back;
        mcp_err_t err;
        memset(text, ' ', sizeof text);
        text[0] = '{';
        text[bytes - 1] = '}';
        text[bytes] = '\0';
        session.capabilities = text;
        const char *id = mcp_seal_session(&ring, &session, pool);
        assert_int_equal(mcp_unseal_session(&ring, id, "g1", 0, pool, &back, &err), APR_SUCCESS);
        assert_string_equal(back.capabilities, bytes == 512 ? text : "{}");
    }
}

static void a_session_that_makes_no_sense_is_not_sealed(void **state)
{
    mcp_session_t session = a_session();
    (void)state;
    session.revision = MCP_REV_2026_07_28;
    assert_null(mcp_seal_session(&ring, &session, pool));
    session.revision = MCP_REV_NONE;
    assert_null(mcp_seal_session(&ring, &session, pool));
    session = a_session();
    session.grant = "";
    assert_null(mcp_seal_session(&ring, &session, pool));
    session.grant = "0123456789012345678901234567890123456789012345678"; /* 49 bytes */
    assert_null(mcp_seal_session(&ring, &session, pool));
}

static void a_cursor_is_bound_to_view_and_grant(void **state)
{
    mcp_session_t session = a_session();
    const char *cursor = mcp_seal_cursor(&ring, "view", "g1", 40, pool);
    const char *id = mcp_seal_session(&ring, &session, pool);
    const struct {
        const char *text, *view, *grant;
    } cases[] = {{cursor, "other", "g1"}, {cursor, "view", "g2"}, {cursor, "view", ""},
                 {"", "view", "g1"},      {"zz", "view", "g1"},   {id, "view", "g1"},
                 {NULL, "view", "g1"}};
    int64_t offset = -1;
    mcp_err_t err;
    (void)state;
    assert_int_equal(mcp_unseal_cursor(&next_ring, cursor, "view", "g1", pool, &offset, &err),
                     APR_SUCCESS);
    assert_int_equal(offset, 40);
    for (size_t i = 0; i < COUNT(cases); i++) {
        memset(&err, 0, sizeof err);
        assert_int_equal(mcp_unseal_cursor(&ring, cases[i].text, cases[i].view, cases[i].grant,
                                           pool, &offset, &err),
                         MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, MCP_FAIL_PARAMS);
        assert_int_equal(offset, 40);
    }
    assert_null(mcp_seal_cursor(&ring, "view", "g1", -1, pool));
    assert_null(mcp_seal_cursor(&ring, "view", "", 1, pool));
    const char *far = mcp_seal_cursor(&ring, "view", "g1", INT64_MAX, pool);
    assert_int_equal(mcp_unseal_cursor(&ring, far, "view", "g1", pool, &offset, &err),
                     APR_SUCCESS);
    assert_true(offset == INT64_MAX);
}

static void a_form_that_we_do_not_write_is_refused(void **state)
{
    /* sealed by our key and for the purpose, but cut, too long, or with a negative offset */
    static const struct {
        const char *data;
        size_t bytes;
        int is_good;
    } cases[] = {{"", 0, 0},
                 {"1234567", 7, 0},
                 {"\0\0\0\0\0\0\0\1\0", 9, 0},
                 {"\0\0\0\0\0\0\0\1\0\1v", 11, 0},
                 {"\0\0\0\0\0\0\0\1\0\4view\0\3g1", 18, 0},
                 {"\0\0\0\0\0\0\0\1\0\4view\0\2g1x", 19, 0},
                 {"\xff\0\0\0\0\0\0\1\0\4view\0\2g1", 18, 0},
                 {"\0\0\0\0\0\0\0\1\0\4view\0\2g1", 18, 1}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t offset = -1;
        const char *text =
            mcp_seal_text(&ring, "list-cursor-v1", cases[i].data, cases[i].bytes, pool);
        assert_int_equal(mcp_unseal_cursor(&ring, text, "view", "g1", pool, &offset, NULL),
                         cases[i].is_good ? APR_SUCCESS : MCP_STATUS_REFUSED);
        assert_int_equal(offset, cases[i].is_good ? 1 : -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_is_read_from_hello),
        cmocka_unit_test(a_ring_of_another_form_is_refused),
        cmocka_unit_test(a_sealed_text_opens_with_its_key_and_purpose_alone),
        cmocka_unit_test(two_seals_of_one_text_differ),
        cmocka_unit_test(no_changed_byte_and_no_part_opens),
        cmocka_unit_test(sealing_is_bounded_and_needs_a_current_key),
        cmocka_unit_test(a_session_comes_back_whole),
        cmocka_unit_test(a_session_is_bound_to_grant_and_time),
        cmocka_unit_test(a_session_id_is_visible_ascii_and_bounded),
        cmocka_unit_test(what_a_session_lacks_is_empty),
        cmocka_unit_test(capabilities_are_kept_up_to_their_limit),
        cmocka_unit_test(a_session_that_makes_no_sense_is_not_sealed),
        cmocka_unit_test(a_cursor_is_bound_to_view_and_grant),
        cmocka_unit_test(a_form_that_we_do_not_write_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
