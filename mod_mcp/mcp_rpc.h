/* JSON-RPC 2.0: strict reading of what a client posted, and the texts of answers. Pure; memory from the pool given. */
#ifndef MCP_RPC_H
#define MCP_RPC_H

#include "mcp_err.h"

typedef enum mcp_rpc_type { MCP_RPC_REQUEST, MCP_RPC_NOTIFICATION, MCP_RPC_RESPONSE } mcp_rpc_type_t;

/* One message of a body. */
typedef struct mcp_rpc_message {
    mcp_rpc_type_t type;
    const char *id;      /* the raw JSON token of the id, byte for byte as sent ("1", "\"a\\\"b\""); NULL: none readable */
    const char *method;  /* NULL for a response */
    json_t *params;      /* borrowed from root; an object, or NULL when absent */
    json_t *root;        /* the whole message */
    mcp_err_t err;       /* err.fail != NONE: this message is refused so (batches keep their other elements) */
} mcp_rpc_message_t;

typedef struct mcp_rpc_body {
    int is_batch;
    int count;
    mcp_rpc_message_t *messages;
} mcp_rpc_body_t;

#define MCP_RPC_MAX_BATCH 32

/* Parses a body. Refused whole (err): not UTF-8 JSON, NUL, too deep, duplicate keys (MCP_FAIL_PARSE; duplicate keys MCP_FAIL_REQUEST),
 * empty batch, more than MCP_RPC_MAX_BATCH elements, root neither object nor array. Per message: jsonrpc is "2.0", method is a string,
 * params an object when present, id a string or an integer (not null, fractional, boolean), a response has result or error.
 * For a single message the refusal is in messages[0].err and the function succeeds, so that the id can be echoed. */
apr_status_t mcp_rpc_parse(const char *text, size_t bytes, apr_pool_t *pool, mcp_rpc_body_t *ret, mcp_err_t *err);

/* {"jsonrpc":"2.0","id":ID,"result":RESULT} with RESULT as given (already JSON text). */
const char *mcp_rpc_result(const char *id, const char *result, size_t result_bytes, apr_pool_t *pool, size_t *ret_bytes);
/* {"jsonrpc":"2.0","id":ID,"error":{code,message,data?}}; id NULL leaves the member out; data is JSON text or NULL. */
const char *mcp_rpc_error(const char *id, int code, const char *message, const char *data, apr_pool_t *pool, size_t *ret_bytes);

/* JSON string literal of text, quoted. Invalid UTF-8 becomes U+FFFD. */
const char *mcp_rpc_quote(const char *text, size_t bytes, apr_pool_t *pool);

#endif
