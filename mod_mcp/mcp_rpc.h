/* JSON-RPC 2.0: strict reading of what a client posted, and the texts of answers.
 * Pure; memory from the pool given; thread-safe, but what
 * hangs on one pool stays with the thread of that pool. */
#ifndef MCP_RPC_H
#define MCP_RPC_H

#include "mcp_err.h"

typedef enum mcp_rpc_type {
    MCP_RPC_REQUEST,
    MCP_RPC_NOTIFICATION,
    MCP_RPC_RESPONSE
} mcp_rpc_type_t;

/* One message of a body. */
typedef struct mcp_rpc_message {
    mcp_rpc_type_t type;
    /* The raw JSON token of the id, byte for byte as sent ("1", "\"a\\\"b\""); NULL: none readable.
     * Always NULL for a response: an answer to it must not look like an answer to a request of
     * that id (the id itself is in root). */
    const char *id;
    const char *method; /* NULL for a response */
    json_t *params;     /* borrowed from root; an object, or NULL when absent */
    json_t *root;       /* the whole message, freed with the pool; NULL when err says so much
                           that nothing of it may be used (duplicate keys, not an object) */
    mcp_err_t err;      /* err.fail != NONE: this message is refused so (batches keep their other
                           elements); then only type, id and err may be looked at */
} mcp_rpc_message_t;

typedef struct mcp_rpc_body {
    int is_batch;
    int count;
    mcp_rpc_message_t *messages;
} mcp_rpc_body_t;

#define MCP_RPC_MAX_BATCH 32
#define MCP_RPC_MAX_ID    1024 /* bytes of a raw id token */

/* Parses a body.
 * Refused whole: what is not JSON in UTF-8, has a NUL (raw or escaped), a number beyond 64 bit or
 * more than MCP_MAX_DEPTH levels (MCP_FAIL_PARSE); a root that is neither object nor array, an
 * empty batch, more than MCP_RPC_MAX_BATCH elements, a batch with duplicate keys
 * (MCP_FAIL_REQUEST).
 * Refused per message, with MCP_FAIL_REQUEST: jsonrpc other than "2.0", method not a string, params
 * present and not an object, id neither string nor integer, result together with error or method,
 * neither method nor result nor error; a member of the message, of params or of `_meta` beside one
 * that differs from it in letter case only; and, in a body that is no batch, duplicate keys
 * anywhere.  Such a body succeeds with messages[0].err, so that the id can be echoed.
 * text need not end in NUL; it is copied where needed. */
apr_status_t mcp_rpc_parse(const char *text, size_t bytes, apr_pool_t *pool, mcp_rpc_body_t *ret,
                           mcp_err_t *err);

/* {"jsonrpc":"2.0","id":ID,"result":RESULT} with RESULT as given (already JSON text).
 * ret_bytes may be NULL here and below. */
const char *mcp_rpc_result(const char *id, const char *result, size_t result_bytes,
                           apr_pool_t *pool, size_t *ret_bytes);
/* What stands before and behind RESULT in it, for who sends a large one without another copy. */
const char *mcp_rpc_result_head(const char *id, apr_pool_t *pool);
#define MCP_RPC_RESULT_TAIL "}"
/* {"jsonrpc":"2.0","id":ID,"error":{code,message,data?}}; id NULL leaves the member out; data is
 * JSON text or NULL. */
const char *mcp_rpc_error(const char *id, int code, const char *message, const char *data,
                          apr_pool_t *pool, size_t *ret_bytes);

/* JSON string literal of text, quoted. Invalid UTF-8 becomes U+FFFD. text may be NULL with 0. */
const char *mcp_rpc_quote(const char *text, size_t bytes, apr_pool_t *pool);

/* 1 when text is well-formed UTF-8 (no surrogates, no overlong forms) without NUL. */
int mcp_rpc_is_utf8(const char *text, size_t bytes);

/* Length of the longest prefix of at most max bytes that cuts no character in two. */
size_t mcp_rpc_cut(const char *text, size_t bytes, size_t max);

#endif
