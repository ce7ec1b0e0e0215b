/* Sealed values: policyd's ring of keys, and the forms of what is sealed.
 *
 * The plain text is counted fields, not JSON: its length is known beforehand, and what a client
 * says of itself can't grow by escaping. */
#include "mcp_seal.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"

static const char purpose_session[] = "legacy-session-v1";
static const char purpose_cursor[] = "list-cursor-v1";

#define MAX_CLIENT       64
#define MAX_CAPABILITIES 512

/* --- the ring --------------------------------------------------------------- */

static int is_key_id(const char *id, size_t bytes)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return bytes > 0 && bytes < sizeof(((mcp_ring_key_t *)0)->id) && strspn(id, set) == bytes;
}

/* NULL, or why the key can't be taken. */
static const char *read_key(const json_t *from, mcp_ring_key_t *ret)
{
    const char *id = mcp_json_str(from, "id");
    const char *key = mcp_json_str(from, "key");
    size_t bytes = 0;
    if (key != NULL &&
        mcp_unb64url(key, strlen(key), ret->key, sizeof ret->key, &bytes) != MCP_OK)
        bytes = 0;
    if (id == NULL || !is_key_id(id, strlen(id)))
        return "a key's id is missing or malformed";
    if (key == NULL || bytes != sizeof ret->key)
        return "a key is not base64url of 32 bytes";
    memcpy(ret->id, id, strlen(id) + 1);
    ret->is_current = mcp_json_bool(from, "current");
    return NULL;
}

static const char *read_ring(const json_t *keys, mcp_ring_t *ret)
{
    size_t count = json_array_size(keys);
    int current = 0;
    if (count == 0 || count > MCP_MAX_RING)
        return "no key, or too many";
    for (size_t i = 0; i < count; i++) {
        mcp_ring_key_t *key = &ret->keys[i];
        const char *why = read_key(json_array_get(keys, i), key);
        if (why != NULL)
            return why;
        for (size_t k = 0; k < i; k++)
            if (strcmp(ret->keys[k].id, key->id) == 0)
                return "two keys have one id";
        current += key->is_current != 0;
    }
    ret->count = (int)count;
    return current == 1 ? NULL : "not exactly one key is current";
}

apr_status_t mcp_seal_ring(const json_t *keys, mcp_ring_t *ret, apr_pool_t *pool, mcp_err_t *err)
{
    mcp_ring_t ring;
    memset(&ring, 0, sizeof ring);
    const char *why = read_ring(keys, &ring);
    if (why == NULL)
        *ret = ring;
    mcp_wipe(&ring, sizeof ring);
    if (why == NULL)
        return APR_SUCCESS;
    (void)mcp_err_set(err, pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE,
                      "try again later", "The policy service is not available");
    if (err != NULL)
        err->log = apr_pstrcat(pool, "ring of keys in the answer to hello: ", why, NULL);
    return MCP_STATUS_REFUSED;
}

static const mcp_ring_key_t *current_key(const mcp_ring_t *ring)
{
    for (int i = 0; i < ring->count; i++)
        if (ring->keys[i].is_current)
            return &ring->keys[i];
    return NULL;
}

static const mcp_ring_key_t *key_named(const mcp_ring_t *ring, const char *id, size_t bytes)
{
    for (int i = 0; i < ring->count; i++)
        if (strlen(ring->keys[i].id) == bytes && memcmp(ring->keys[i].id, id, bytes) == 0)
            return &ring->keys[i];
    return NULL;
}

/* --- sealing ---------------------------------------------------------------- */

const char *mcp_seal_text(const mcp_ring_t *ring, const char *purpose, const void *data,
                          size_t bytes, apr_pool_t *pool)
{
    const mcp_ring_key_t *key = current_key(ring);
    if (key == NULL || bytes > MCP_SEAL_MAX_BYTES)
        return NULL;
    size_t sealed_bytes = bytes + MCP_SEAL_EXTRA;
    unsigned char *sealed = apr_palloc(pool, sealed_bytes);
    if (mcp_seal_bytes(key->key, purpose, key->id, strlen(key->id), data, bytes, sealed,
                       sealed_bytes) != MCP_OK)
        return NULL;
    char *text = apr_palloc(pool, 4 * (sealed_bytes + 2) / 3 + 1);
    mcp_b64url(sealed, sealed_bytes, text);
    return apr_pstrcat(pool, key->id, ".", text, NULL);
}

apr_status_t mcp_unseal_text(const mcp_ring_t *ring, const char *purpose, const char *text,
                             apr_pool_t *pool, const char **ret, size_t *ret_bytes)
{
    static const size_t max = sizeof(((mcp_ring_key_t *)0)->id) +
                              4 * (MCP_SEAL_MAX_BYTES + MCP_SEAL_EXTRA + 2) / 3;
    const char *dot = text != NULL ? strchr(text, '.') : NULL;
    size_t bytes = 0;
    if (dot == NULL)
        return MCP_STATUS_REFUSED;
    const mcp_ring_key_t *key = key_named(ring, text, (size_t)(dot - text));
    size_t encoded_bytes = strlen(dot + 1);
    if (key == NULL || encoded_bytes > max)
        return MCP_STATUS_REFUSED;
    size_t size = encoded_bytes / 4 * 3 + 3;
    unsigned char *sealed = apr_palloc(pool, size);
    if (mcp_unb64url(dot + 1, encoded_bytes, sealed, size, &bytes) != MCP_OK ||
        bytes < MCP_SEAL_EXTRA)
        return MCP_STATUS_REFUSED;
    size_t plain_bytes = bytes - MCP_SEAL_EXTRA;
    char *plain = apr_palloc(pool, plain_bytes + 1);
    if (mcp_unseal_bytes(key->key, purpose, key->id, strlen(key->id), sealed, bytes,
                         (unsigned char *)plain, plain_bytes) != MCP_OK)
        return MCP_STATUS_REFUSED;
    plain[plain_bytes] = '\0';
    *ret = plain;
    *ret_bytes = plain_bytes;
    return APR_SUCCESS;
}

/* --- counted fields ---------------------------------------------------------- */

/* A form: 8 bytes of a number, then each field as two bytes of length and its bytes. */
typedef struct seal_field {
    const char *text;
    size_t bytes;
} seal_field_t;

static const char *seal_form(const mcp_ring_t *ring, const char *purpose, int64_t number,
                             const seal_field_t *fields, size_t count, apr_pool_t *pool)
{
    size_t size = 8;
    for (size_t i = 0; i < count; i++) {
        if (fields[i].bytes > UINT16_MAX)
            return NULL;
        size += 2 + fields[i].bytes;
    }
    unsigned char *form = apr_palloc(pool, size);
    unsigned char *to = form;
    for (int shift = 56; shift >= 0; shift -= 8)
        *to++ = (unsigned char)((uint64_t)number >> shift);
    for (size_t i = 0; i < count; i++) {
        *to++ = (unsigned char)(fields[i].bytes >> 8);
        *to++ = (unsigned char)(fields[i].bytes & 0xff);
        memcpy(to, fields[i].text, fields[i].bytes);
        to += fields[i].bytes;
    }
    return mcp_seal_text(ring, purpose, form, size, pool);
}

/* Exactly `count` fields as texts of their own; 0 when it does not open or has another form. */
static int unseal_form(const mcp_ring_t *ring, const char *purpose, const char *text,
                       apr_pool_t *pool, int64_t *number, const char **fields, size_t count)
{
    const char *plain = NULL;
    size_t left = 0;
    if (mcp_unseal_text(ring, purpose, text, pool, &plain, &left) != APR_SUCCESS || left < 8)
        return 0;
    const unsigned char *from = (const unsigned char *)plain;
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | from[i];
    from += 8;
    left -= 8;
    for (size_t i = 0; i < count; i++) {
        if (left < 2)
            return 0;
        size_t bytes = (size_t)from[0] << 8 | from[1];
        from += 2;
        left -= 2;
        if (bytes > left)
            return 0;
        fields[i] = apr_pstrmemdup(pool, (const char *)from, bytes);
        from += bytes;
        left -= bytes;
    }
    *number = (int64_t)value;
    return left == 0;
}

static seal_field_t field_of(const char *text, size_t max)
{
    seal_field_t ret = {text != NULL ? text : "", 0};
    ret.bytes = mcp_rpc_cut(ret.text, strlen(ret.text), max);
    return ret;
}

/* --- sessions ---------------------------------------------------------------- */

enum { SESSION_REVISION, SESSION_GRANT, SESSION_NAME, SESSION_VERSION, SESSION_CAPABILITIES,
       SESSION_FIELDS };

static int is_grant(const char *grant)
{
    return grant != NULL && *grant != '\0' && strlen(grant) <= MCP_MAX_ID;
}

const char *mcp_seal_session(const mcp_ring_t *ring, const mcp_session_t *session, apr_pool_t *pool)
{
    seal_field_t fields[SESSION_FIELDS];
    const char *capabilities = session->capabilities;
    if (!is_grant(session->grant) || session->revision == MCP_REV_NONE ||
        session->revision == MCP_REV_2026_07_28)
        return NULL;
    if (capabilities == NULL || strlen(capabilities) > MAX_CAPABILITIES)
        capabilities = "{}";
    fields[SESSION_REVISION] = field_of(mcp_era_text(session->revision), 16);
    fields[SESSION_GRANT] = field_of(session->grant, MCP_MAX_ID);
    fields[SESSION_NAME] = field_of(session->client_name, MAX_CLIENT);
    fields[SESSION_VERSION] = field_of(session->client_version, MAX_CLIENT);
    fields[SESSION_CAPABILITIES] = field_of(capabilities, MAX_CAPABILITIES);
    return seal_form(ring, purpose_session, session->expires_us, fields, SESSION_FIELDS, pool);
}

apr_status_t mcp_unseal_session(const mcp_ring_t *ring, const char *text, const char *grant,
                                int64_t now_us, apr_pool_t *pool, mcp_session_t *ret,
                                mcp_err_t *err)
{
    const char *fields[SESSION_FIELDS] = {NULL};
    int64_t expires_us = 0;
    int is_good = text != NULL && strlen(text) <= MCP_SESSION_MAX_ID && is_grant(grant) &&
                  unseal_form(ring, purpose_session, text, pool, &expires_us, fields,
                              SESSION_FIELDS) &&
                  strcmp(fields[SESSION_GRANT], grant) == 0 && now_us < expires_us &&
                  mcp_era_from_text(fields[SESSION_REVISION]) != MCP_REV_NONE;
    if (!is_good)
        return mcp_err_set(err, pool, MCP_FAIL_SESSION, MCP_CODE_NONE,
                           "send initialize again, without Mcp-Session-Id",
                           "The session is unknown or over");
    ret->revision = mcp_era_from_text(fields[SESSION_REVISION]);
    ret->grant = fields[SESSION_GRANT];
    ret->client_name = fields[SESSION_NAME];
    ret->client_version = fields[SESSION_VERSION];
    ret->capabilities = fields[SESSION_CAPABILITIES];
    ret->expires_us = expires_us;
    return APR_SUCCESS;
}

/* --- cursors ------------------------------------------------------------------ */

enum { CURSOR_VIEW, CURSOR_GRANT, CURSOR_FIELDS };

const char *mcp_seal_cursor(const mcp_ring_t *ring, const char *view, const char *grant,
                            int64_t offset, apr_pool_t *pool)
{
    seal_field_t fields[CURSOR_FIELDS];
    if (offset < 0 || !is_grant(grant) || strlen(view) > MCP_DIGEST_HEX)
        return NULL;
    fields[CURSOR_VIEW] = field_of(view, MCP_DIGEST_HEX);
    fields[CURSOR_GRANT] = field_of(grant, MCP_MAX_ID);
    return seal_form(ring, purpose_cursor, offset, fields, CURSOR_FIELDS, pool);
}

apr_status_t mcp_unseal_cursor(const mcp_ring_t *ring, const char *text, const char *view,
                               const char *grant, apr_pool_t *pool, int64_t *ret_offset,
                               mcp_err_t *err)
{
    static const char hint[] = "list again without a cursor";
    const char *fields[CURSOR_FIELDS] = {NULL};
    int64_t offset = 0;
    if (!is_grant(grant) ||
        !unseal_form(ring, purpose_cursor, text, pool, &offset, fields, CURSOR_FIELDS) ||
        strcmp(fields[CURSOR_GRANT], grant) != 0 || offset < 0)
        return mcp_err_set(err, pool, MCP_FAIL_PARAMS, MCP_CODE_NONE, hint,
                           "Invalid params: the cursor is not one of this list");
    if (strcmp(fields[CURSOR_VIEW], view) != 0)
        return mcp_err_set(err, pool, MCP_FAIL_PARAMS, MCP_CODE_NONE, hint,
                           "Invalid params: the list has changed since the cursor was given");
    *ret_offset = offset;
    return APR_SUCCESS;
}
