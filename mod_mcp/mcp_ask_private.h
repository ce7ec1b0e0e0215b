/* What the files of mcp_ask share: the object of the child, and one question with hello where it is due. */
#ifndef MCP_ASK_PRIVATE_H
#define MCP_ASK_PRIVATE_H

#include "mcp_ask.h"

#include <pthread.h>

#define MCP_ASK_MAX_RUNNING 4096
#define MCP_ASK_AUDIT_BYTES (MCP_MAX_ID + 1)

struct mcp_ask {
    mcp_link_t *link;
    char child[33];
    json_t *greeting; /* hello's body; read only */
    pthread_mutex_t mutex; /* guards the rest; never held across I/O */
    uint64_t generation;   /* 0: hello is due */
    mcp_ring_t ring;
    int64_t greeted_ms;    /* when the ring came */
    char texts[MCP_HELLO_TEXTS][MCP_DIGEST_HEX + 1]; /* of the last hello; "": not said */
    int64_t last_beat_ms;  /* 0: never */
    int is_beating;
    int running_count;
    char (*running)[MCP_ASK_AUDIT_BYTES];
};

/* The boot clock: budgets and durations must not follow a wall clock that is set. */
int64_t mcp_ask_now_us(void);
int64_t mcp_ask_now_ms(void);

/* Fills err (may be NULL) with MCP_FAIL_UNAVAILABLE, and with what only the log says: a literal, or text that lives as long as err. Always
 * MCP_STATUS_REFUSED. */
apr_status_t mcp_ask_not_understood(mcp_err_t *err, apr_pool_t *pool, const char *log);
/* An error reply as what the client is told; always MCP_STATUS_REFUSED. Its texts are the reply's. */
apr_status_t mcp_ask_refused(const mcp_link_reply_t *reply, apr_pool_t *pool, mcp_err_t *err);
/* Which answer the code of a denial is, by the classes of mcp_err.h. */
mcp_fail_t mcp_ask_fail_of(mcp_code_t code);
/* Who asks, as a new body. */
json_t *mcp_ask_who_body(const mcp_who_t *who);

/* One question with the generation of the day; after hello_required says hello to the policyd that asked for it and asks it once more,
 * which is safe for every kind. endpoint -1: any. ret_was_sent (may be NULL): an answer may be missing to what was done. */
apr_status_t mcp_ask_question_sent(mcp_ask_t *ask, mcp_kind_t kind, const json_t *body, int endpoint,
                                   int64_t budget_ms, apr_pool_t *pool, mcp_link_reply_t *ret,
                                   int *ret_was_sent, mcp_err_t *err);
apr_status_t mcp_ask_question(mcp_ask_t *ask, mcp_kind_t kind, const json_t *body, int endpoint,
                              int64_t budget_ms, apr_pool_t *pool, mcp_link_reply_t *ret,
                              mcp_err_t *err);

#endif
