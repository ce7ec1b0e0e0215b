/* Hashes, seals and encodings over libsodium: see mcp_hash.h. */
#include "mcp_hash.h"

#include <string.h>

#include <sodium.h>

mcp_wire_status_t mcp_hash_init(void)
{
    return sodium_init() < 0 ? MCP_E_CRYPTO : MCP_OK;
}

void mcp_sha256(const void *data, size_t bytes, unsigned char out[MCP_HASH_BYTES])
{
    (void)crypto_hash_sha256(out, data, bytes); /* can't fail */
}

void mcp_sha256_label(const char *label, const void *data, size_t bytes,
                      unsigned char out[MCP_HASH_BYTES])
{
    crypto_hash_sha256_state state;

    (void)crypto_hash_sha256_init(&state);
    (void)crypto_hash_sha256_update(&state, (const unsigned char *)label, strlen(label) + 1);
    (void)crypto_hash_sha256_update(&state, data, bytes);
    (void)crypto_hash_sha256_final(&state, out);
    sodium_memzero(&state, sizeof(state));
}

void mcp_hex(const unsigned char *data, size_t bytes, char *out)
{
    (void)sodium_bin2hex(out, bytes * 2 + 1, data, bytes);
}

void mcp_digest_hex(const void *data, size_t bytes, char out[MCP_DIGEST_HEX + 1])
{
    unsigned char hash[MCP_HASH_BYTES];

    mcp_sha256(data, bytes, hash);
    mcp_hex(hash, sizeof(hash), out);
}

mcp_wire_status_t mcp_unhex(const char *hex, unsigned char *out, size_t out_bytes)
{
    size_t got = 0;
    const char *end = NULL;

    if (strlen(hex) != out_bytes * 2 ||
        sodium_hex2bin(out, out_bytes, hex, out_bytes * 2, NULL, &got, &end) != 0 ||
        got != out_bytes) {
        return MCP_E_FIELD;
    }
    return MCP_OK;
}

/* A key of its own for each purpose, so that no two uses of one key ever share a message space. */
static void derive(const unsigned char key[MCP_KEY_BYTES], const char *purpose,
                   unsigned char out[MCP_KEY_BYTES])
{
    (void)crypto_generichash(out, MCP_KEY_BYTES, (const unsigned char *)purpose, strlen(purpose),
                             key, MCP_KEY_BYTES);
}

void mcp_keyed_hash(const unsigned char key[MCP_KEY_BYTES], const char *purpose, const void *data,
                    size_t bytes, unsigned char out[MCP_HASH_BYTES])
{
    unsigned char own[MCP_KEY_BYTES];

    derive(key, purpose, own);
    (void)crypto_generichash(out, MCP_HASH_BYTES, data, bytes, own, sizeof(own));
    sodium_memzero(own, sizeof(own));
}

void mcp_random(void *out, size_t bytes)
{
    randombytes_buf(out, bytes);
}

int mcp_equal(const void *a, const void *b, size_t bytes)
{
    return sodium_memcmp(a, b, bytes) == 0;
}

void mcp_wipe(void *secret, size_t bytes)
{
    sodium_memzero(secret, bytes);
}

void mcp_b64url(const void *data, size_t bytes, char *out)
{
    (void)sodium_bin2base64(out,
                            sodium_base64_encoded_len(bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING),
                            data, bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

void mcp_b64(const void *data, size_t bytes, char *out)
{
    (void)sodium_bin2base64(out, sodium_base64_encoded_len(bytes, sodium_base64_VARIANT_ORIGINAL),
                            data, bytes, sodium_base64_VARIANT_ORIGINAL);
}

/* libsodium refuses non-canonical trailing bits and foreign characters; `end` must be the text's end. */
static mcp_wire_status_t decode(const char *text, size_t text_bytes, unsigned char *out, size_t size,
                                size_t *ret_bytes, int variant)
{
    const char *end = NULL;
    size_t got = 0;

    if (sodium_base642bin(out, size, text, text_bytes, NULL, &got, &end, variant) != 0 ||
        end != text + text_bytes) {
        return MCP_E_FIELD;
    }
    *ret_bytes = got;
    return MCP_OK;
}

mcp_wire_status_t mcp_unb64url(const char *text, size_t text_bytes, unsigned char *out, size_t size,
                               size_t *ret_bytes)
{
    return decode(text, text_bytes, out, size, ret_bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

mcp_wire_status_t mcp_unb64(const char *text, size_t text_bytes, unsigned char *out, size_t size,
                            size_t *ret_bytes)
{
    return decode(text, text_bytes, out, size, ret_bytes, sodium_base64_VARIANT_ORIGINAL);
}

mcp_wire_status_t mcp_seal_bytes(const unsigned char key[MCP_KEY_BYTES], const char *purpose,
                                 const void *ad, size_t ad_bytes, const void *data, size_t bytes,
                                 unsigned char *out, size_t size)
{
    unsigned char own[MCP_KEY_BYTES];
    unsigned long long written = 0;
    unsigned char *nonce = out;

    if (size < MCP_SEAL_EXTRA || size - MCP_SEAL_EXTRA < bytes) {
        return MCP_E_SPACE;
    }
    derive(key, purpose, own);
    randombytes_buf(nonce, crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
        out + crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, &written, data, bytes, ad, ad_bytes, NULL,
        nonce, own);
    sodium_memzero(own, sizeof(own));
    return MCP_OK;
}

mcp_wire_status_t mcp_unseal_bytes(const unsigned char key[MCP_KEY_BYTES], const char *purpose,
                                   const void *ad, size_t ad_bytes, const void *sealed, size_t bytes,
                                   unsigned char *out, size_t size)
{
    const unsigned char *nonce = sealed;
    unsigned char own[MCP_KEY_BYTES];
    unsigned long long written = 0;
    int opened;

    if (bytes < MCP_SEAL_EXTRA) {
        return MCP_E_CRYPTO;
    }
    if (size < bytes - MCP_SEAL_EXTRA) {
        return MCP_E_SPACE;
    }
    derive(key, purpose, own);
    opened = crypto_aead_xchacha20poly1305_ietf_decrypt(
        out, &written, NULL, nonce + crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
        bytes - crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, ad, ad_bytes, nonce, own);
    sodium_memzero(own, sizeof(own));
    return opened == 0 ? MCP_OK : MCP_E_CRYPTO;
}

void mcp_token_hash(const char *token, size_t bytes, char out[MCP_DIGEST_HEX + 1])
{
    unsigned char hash[MCP_HASH_BYTES];

    mcp_sha256_label("mcp-token-v1", token, bytes, hash);
    mcp_hex(hash, sizeof(hash), out);
    sodium_memzero(hash, sizeof(hash));
}
