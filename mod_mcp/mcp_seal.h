/* Values that leave for a client and come back: cursors, legacy session ids.  Sealed with a key of
 * policyd's ring; each names its key and its purpose, and is opened by any child of
 * any node.  mcp_hash_init() first; then thread-safe as long as nobody writes the ring. */
#ifndef MCP_SEAL_H
#define MCP_SEAL_H

#include "mcp_err.h"
#include "mcp_era.h"

#define MCP_MAX_RING 4

typedef struct mcp_ring_key {
    char id[16]; /* 1 to 15 of [A-Za-z0-9_-] */
    unsigned char key[32];
    int is_current;
} mcp_ring_key_t;

typedef struct mcp_ring {
    int count;
    mcp_ring_key_t keys[MCP_MAX_RING];
} mcp_ring_t;

/* Ring from hello's `keys`: 1 to MCP_MAX_RING objects {"id","key","current"} with ids all different
 * and exactly one current. MCP_FAIL_UNAVAILABLE otherwise, with the reason in err->log. The caller
 * wipes a ring that it is done with (mcp_wipe). */
apr_status_t mcp_seal_ring(const json_t *keys, mcp_ring_t *ret, apr_pool_t *pool, mcp_err_t *err);

#define MCP_SEAL_MAX_BYTES (64u * 1024) /* of data to seal */

/* KEYID.base64url text of data sealed for purpose; NULL for a ring without a current key and for
 * more than MCP_SEAL_MAX_BYTES. */
const char *mcp_seal_text(const mcp_ring_t *ring, const char *purpose, const void *data,
                          size_t bytes, apr_pool_t *pool);
/* The reverse; MCP_STATUS_REFUSED without err text when it does not open (the caller knows what to
 * say). *ret ends in a NUL beyond *ret_bytes. */
apr_status_t mcp_unseal_text(const mcp_ring_t *ring, const char *purpose, const char *text,
                             apr_pool_t *pool, const char **ret, size_t *ret_bytes);

/* A legacy session, whole in its id. */
typedef struct mcp_session {
    mcp_revision_t revision;
    const char *grant;       /* id: the session is bound to it; at most MCP_MAX_ID bytes */
    const char *client_name; /* cut to 64 bytes */
    const char *client_version; /* the same */
    const char *capabilities; /* JSON text, cut to {} above 512 bytes */
    int64_t expires_us;      /* UTC */
} mcp_session_t;

#define MCP_SESSION_MAX_ID 2048 /* bytes */

/* Visible ASCII, at most MCP_SESSION_MAX_ID bytes. NULL texts count as empty; NULL is returned for
 * a ring without a current key, a grant that is too long or empty, or a revision that is no legacy
 * one. */
const char *mcp_seal_session(const mcp_ring_t *ring, const mcp_session_t *session,
                             apr_pool_t *pool);
/* MCP_FAIL_SESSION when it does not open, is for another grant, or expired at now_us: one answer
 * for all three. */
apr_status_t mcp_unseal_session(const mcp_ring_t *ring, const char *text, const char *grant,
                                int64_t now_us, apr_pool_t *pool, mcp_session_t *ret,
                                mcp_err_t *err);

/* A list cursor: position in the list of one view digest. NULL as above, or for a negative
 * offset. */
const char *mcp_seal_cursor(const mcp_ring_t *ring, const char *view, const char *grant,
                            int64_t offset, apr_pool_t *pool);
/* MCP_FAIL_PARAMS when it is not ours, for another grant or another view (a list that changed:
 * start again). The text may be anything a client sent, also empty. */
apr_status_t mcp_unseal_cursor(const mcp_ring_t *ring, const char *text, const char *view,
                               const char *grant, apr_pool_t *pool, int64_t *ret_offset,
                               mcp_err_t *err);

#endif
