/* SHA-256, keyed hashes, random bytes, sealing and encodings over libsodium: the one door to it
 * for [W], [V] and [C].  mcp_hash_init() once in each process before any thread; the rest is
 * thread-safe. */
#ifndef MCP_HASH_H
#define MCP_HASH_H

#include "mcp_proto.h"

#define MCP_HASH_BYTES 32
#define MCP_KEY_BYTES  32

/* 0, or MCP_E_CRYPTO when the platform has no entropy. */
mcp_wire_status_t mcp_hash_init(void);

void mcp_sha256(const void *data, size_t bytes, unsigned char out[MCP_HASH_BYTES]);
/* SHA-256(label NUL data): hashes of different purposes never meet. */
void mcp_sha256_label(const char *label, const void *data, size_t bytes,
                      unsigned char out[MCP_HASH_BYTES]);
/* Lower-case hex into out, which holds 2 * bytes + 1. */
void mcp_hex(const unsigned char *data, size_t bytes, char *out);
/* Hex digest (65 bytes with NUL) of data. */
void mcp_digest_hex(const void *data, size_t bytes, char out[MCP_DIGEST_HEX + 1]);
/* 0 and exactly out_bytes bytes, or MCP_E_FIELD. */
mcp_wire_status_t mcp_unhex(const char *hex, unsigned char *out, size_t out_bytes);

/* Keyed hash (BLAKE2b) of data under a 32-byte key; purpose separates uses of one key. */
void mcp_keyed_hash(const unsigned char key[MCP_KEY_BYTES], const char *purpose, const void *data,
                    size_t bytes, unsigned char out[MCP_HASH_BYTES]);

void mcp_random(void *out, size_t bytes);
/* Constant time. */
int mcp_equal(const void *a, const void *b, size_t bytes);
void mcp_wipe(void *secret, size_t bytes);

/* base64url without padding. out of the encoder holds 4 * (bytes + 2) / 3 + 1. */
void mcp_b64url(const void *data, size_t bytes, char *out);
/* Bytes into out (size), length into *ret_bytes; MCP_E_FIELD for anything not canonical. */
mcp_wire_status_t mcp_unb64url(const char *text, size_t text_bytes, unsigned char *out, size_t size,
                               size_t *ret_bytes);

/* Standard base64 with padding (RFC 4648 section 4); canonical form only. */
mcp_wire_status_t mcp_unb64(const char *text, size_t text_bytes, unsigned char *out, size_t size,
                            size_t *ret_bytes);
/* out holds 4 * ((bytes + 2) / 3) + 1. */
void mcp_b64(const void *data, size_t bytes, char *out);

/* Authenticated encryption (XChaCha20-Poly1305) under a key and purpose, with associated data.
 * Output is nonce || cipher: bytes + MCP_SEAL_EXTRA. */
#define MCP_SEAL_EXTRA 40
mcp_wire_status_t mcp_seal_bytes(const unsigned char key[MCP_KEY_BYTES], const char *purpose,
                                 const void *ad, size_t ad_bytes, const void *data, size_t bytes,
                                 unsigned char *out, size_t size);
/* The reverse; out holds bytes - MCP_SEAL_EXTRA. MCP_E_CRYPTO when it does not open. */
mcp_wire_status_t mcp_unseal_bytes(const unsigned char key[MCP_KEY_BYTES], const char *purpose,
                                   const void *ad, size_t ad_bytes, const void *sealed, size_t bytes,
                                   unsigned char *out, size_t size);

/* Hash of a bearer token as it travels on the link: hex. */
void mcp_token_hash(const char *token, size_t bytes, char out[MCP_DIGEST_HEX + 1]);

#endif
