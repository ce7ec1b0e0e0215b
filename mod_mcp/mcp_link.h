/* Sockets to policyd: checkout, deadline, failover, ids. One object per child, made after fork; thread-safe. Only this room knows ZeroMQ in
 * the module. */
#ifndef MCP_LINK_H
#define MCP_LINK_H

#include <apr_tables.h>
#include <jansson.h>

#include "../proto/mcp_frame.h"
#include "mcp_err.h"

typedef struct mcp_link mcp_link_t;

/* Keys as read by root in the parent (MCPPolicyKey): Z85 text, 40 characters each. */
typedef struct mcp_link_keys {
    char server_public[41];
    char client_public[41];
    char client_secret[41];
} mcp_link_keys_t;

/* Parses the key file's text: lines `server_public = Z85`, `client_public = Z85`, `client_secret = Z85`, # comments. Each exactly once. Pure. */
apr_status_t mcp_link_parse_keys(const char *text, size_t bytes, mcp_link_keys_t *ret, apr_pool_t *pool,
                                 mcp_err_t *err);

/* endpoints: array of const char *; max_sockets: bound of the idle list. Records getpid(). */
apr_status_t mcp_link_create(const apr_array_header_t *endpoints, const mcp_link_keys_t *keys, int max_sockets,
                             apr_pool_t *pool, mcp_link_t **ret, mcp_err_t *err);
/* Wakes everything that waits (zmq_ctx_shutdown) and refuses new questions. */
void mcp_link_shut(mcp_link_t *link);
/* 1 once it is shut: the child stops, and nothing that waits should go on waiting. */
int mcp_link_is_shut(mcp_link_t *link);
/* Shuts it, closes idle sockets, and ends the context and frees everything if every socket is back and nobody asks: else what is still in use
 * stays, since the process ends anyway. */
/* Returns 1, or 0 while a question is still out: then nothing of the link may be freed. */
int mcp_link_close(mcp_link_t *link);

typedef struct mcp_link_reply {
    mcp_frame_t frame;
    json_t *body;       /* parsed and checked against the kind's table; decref'd by pool's cleanup; NULL for RAW */
    const char *raw;    /* RAW: bytes in pool */
    size_t raw_bytes;
    int endpoint;       /* index that answered: `end` goes to where `begin` went */
} mcp_link_reply_t;

/* One round trip. kind: request kind; body: borrowed; generation: 0 for any; endpoint: index to use, or -1 for any that lives: where one is not
 * there, the next is tried with the time left. An ERROR reply is a success of the link: the flag is in ret->frame.flags and body is the error object.
 * Failures: MCP_FAIL_UNAVAILABLE with policy_unavailable (no policyd, time out, an answer that is not sound), after at most budget_ms; the status is
 * MCP_STATUS_CLOSED when the link is shut or not this process's. *ret_was_sent (may be NULL) tells whether the question may have reached policyd;
 * then it was sent once. */
apr_status_t mcp_link_ask(mcp_link_t *link, mcp_kind_t kind, const json_t *body, uint64_t generation, int endpoint,
                          int64_t budget_ms, apr_pool_t *pool, mcp_link_reply_t *ret, int *ret_was_sent,
                          mcp_err_t *err);

#endif
