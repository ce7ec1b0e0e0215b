/* Hashes, seals and encodings: known vectors, and what must not open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mcp_hash.h"

static const unsigned char key[MCP_KEY_BYTES] = {1, 2, 3};

static void sha256_has_the_known_vector(void **state)
{
    char hex[MCP_DIGEST_HEX + 1];

    (void)state;
    mcp_digest_hex("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void a_token_is_hashed_under_its_label(void **state)
{
    char token[MCP_DIGEST_HEX + 1];
    char expected[MCP_DIGEST_HEX + 1];

    (void)state;
    mcp_token_hash("secret", 6, token);
    mcp_digest_hex("mcp-token-v1\0secret", 19, expected);
    assert_string_equal(token, expected);
}

static void what_is_sealed_opens_only_with_key_purpose_and_data(void **state)
{
    unsigned char sealed[5 + MCP_SEAL_EXTRA];
    unsigned char other[MCP_KEY_BYTES] = {9};
    unsigned char opened[5];
    size_t i;

    (void)state;
    assert_int_equal(mcp_seal_bytes(key, "p", "ad", 2, "hello", 5, sealed, sizeof(sealed)), MCP_OK);
    assert_int_equal(mcp_unseal_bytes(key, "p", "ad", 2, sealed, sizeof(sealed), opened, 5), MCP_OK);
    assert_memory_equal(opened, "hello", 5);
    assert_int_equal(mcp_unseal_bytes(other, "p", "ad", 2, sealed, sizeof(sealed), opened, 5),
                     MCP_E_CRYPTO);
    assert_int_equal(mcp_unseal_bytes(key, "q", "ad", 2, sealed, sizeof(sealed), opened, 5),
                     MCP_E_CRYPTO);
    assert_int_equal(mcp_unseal_bytes(key, "p", "aX", 2, sealed, sizeof(sealed), opened, 5),
                     MCP_E_CRYPTO);
    for (i = 0; i < sizeof(sealed); i++) {
        sealed[i] ^= 1;
        assert_int_equal(mcp_unseal_bytes(key, "p", "ad", 2, sealed, sizeof(sealed), opened, 5),
                         MCP_E_CRYPTO);
        sealed[i] ^= 1;
    }
    for (i = 0; i < sizeof(sealed); i++) {
        assert_int_not_equal(mcp_unseal_bytes(key, "p", "ad", 2, sealed, i, opened, 5), MCP_OK);
    }
}

static void sealing_twice_gives_different_bytes(void **state)
{
    unsigned char one[5 + MCP_SEAL_EXTRA];
    unsigned char two[5 + MCP_SEAL_EXTRA];

    (void)state;
    assert_int_equal(mcp_seal_bytes(key, "p", NULL, 0, "hello", 5, one, sizeof(one)), MCP_OK);
    assert_int_equal(mcp_seal_bytes(key, "p", NULL, 0, "hello", 5, two, sizeof(two)), MCP_OK);
    assert_memory_not_equal(one, two, sizeof(one));
    assert_int_equal(mcp_seal_bytes(key, "p", NULL, 0, "hello", 5, one, sizeof(one) - 1), MCP_E_SPACE);
}

static void base64_takes_the_canonical_form_alone(void **state)
{
    static const struct {
        const char *text;
        mcp_wire_status_t expected;
    } rows[] = {{"SGVsbG8=", MCP_OK},      {"SGVsbG8", MCP_E_FIELD},   {"SGVsbG9=", MCP_E_FIELD},
                {"SGVs bG8=", MCP_E_FIELD}, {"SGVsbG8==", MCP_E_FIELD}, {"SGVsbG8=x", MCP_E_FIELD},
                {"", MCP_OK},              {"!!!!", MCP_E_FIELD}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned char out[16];
        size_t bytes = 0;

        assert_int_equal(mcp_unb64(rows[i].text, strlen(rows[i].text), out, sizeof(out), &bytes),
                         rows[i].expected);
    }
}

static void base64url_goes_there_and_back(void **state)
{
    unsigned char data[40];
    char text[64];
    unsigned char out[40];
    size_t size;

    (void)state;
    mcp_random(data, sizeof(data));
    for (size = 0; size <= sizeof(data); size++) {
        size_t bytes = 99;

        mcp_b64url(data, size, text);
        assert_int_equal(mcp_unb64url(text, strlen(text), out, sizeof(out), &bytes), MCP_OK);
        assert_int_equal(bytes, size);
        assert_memory_equal(out, data, size);
    }
}

static void hex_is_read_strictly(void **state)
{
    unsigned char out[2];

    (void)state;
    assert_int_equal(mcp_unhex("00ff", out, 2), MCP_OK);
    assert_int_equal(out[1], 255);
    assert_int_equal(mcp_unhex("00f", out, 2), MCP_E_FIELD);
    assert_int_equal(mcp_unhex("00fg", out, 2), MCP_E_FIELD);
    assert_int_equal(mcp_unhex("00ff0", out, 2), MCP_E_FIELD);
}

static void keyed_hashes_differ_by_purpose(void **state)
{
    unsigned char one[MCP_HASH_BYTES];
    unsigned char two[MCP_HASH_BYTES];

    (void)state;
    mcp_keyed_hash(key, "one", "x", 1, one);
    mcp_keyed_hash(key, "two", "x", 1, two);
    assert_false(mcp_equal(one, two, sizeof(one)));
    mcp_keyed_hash(key, "one", "x", 1, two);
    assert_true(mcp_equal(one, two, sizeof(one)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_has_the_known_vector),
        cmocka_unit_test(a_token_is_hashed_under_its_label),
        cmocka_unit_test(what_is_sealed_opens_only_with_key_purpose_and_data),
        cmocka_unit_test(sealing_twice_gives_different_bytes),
        cmocka_unit_test(base64_takes_the_canonical_form_alone),
        cmocka_unit_test(base64url_goes_there_and_back),
        cmocka_unit_test(hex_is_read_strictly),
        cmocka_unit_test(keyed_hashes_differ_by_purpose)};

    return mcp_hash_init() == MCP_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
