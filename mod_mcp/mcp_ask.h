/* Typed questions to policyd over the link, and what a child knows of policyd: its generation, the key ring, which calls run. One object per
 * child, made after fork; thread-safe.  Says hello by itself when policyd is new or has restarted, and resends what may be resent
 * (PROTOCOL.md, Envelope).  Failures are MCP_FAIL_UNAVAILABLE unless said otherwise. */
#ifndef MCP_ASK_H
#define MCP_ASK_H

#include "../proto/view_collapse.h"
#include "mcp_link.h"
#include "mcp_seal.h"

typedef struct mcp_ask mcp_ask_t;

/* Who asks, as every question carries it. */
typedef struct mcp_who {
    char token_hash[MCP_DIGEST_HEX + 1];
    const char *surface;        /* "mcp" */
    const char *resource;
    const char *client_name;    /* "" or NULL: unknown */
    const char *client_version;
} mcp_who_t;

/* What hello says of this child beside its own id. */
typedef struct mcp_ask_identity {
    const apr_array_header_t *resources; /* of const char *; may be empty */
    int max_calls;          /* of this child */
    const char *server;     /* under prefork: id of the httpd that the children share, else NULL */
    int server_calls;       /* with server: running at once in all children */
    int connection_calls;   /* of them, on one connection */
} mcp_ask_identity_t;

/* identity is copied. The link outlives the object. */
apr_status_t mcp_ask_create(mcp_link_t *link, const mcp_ask_identity_t *identity, mcp_ask_t **ret);
void mcp_ask_free(mcp_ask_t **ask);

/* The ring, asked for with hello when it is not known yet or an hour old. The caller wipes it. */
apr_status_t mcp_ask_ring(mcp_ask_t *ask, int64_t budget_ms, apr_pool_t *pool, mcp_ring_t *ret,
                          mcp_err_t *err);

/* What hello says of policyd beside the ring. */
typedef enum mcp_hello_text {
    MCP_HELLO_ROUTES,  /* digest of the route table */
    MCP_HELLO_OPENAPI, /* digest of its description */
    MCP_HELLO_PREFIX,  /* control_prefix */
    MCP_HELLO_LEXICON, /* digest of the words that searches know */
    MCP_HELLO_TEXTS
} mcp_hello_text_t;

/* One text of the last hello, in pool; says hello when policyd is not known. Unavailable too where a policyd does not say it. */
apr_status_t mcp_ask_hello_text(mcp_ask_t *ask, mcp_hello_text_t which, int64_t budget_ms,
                                apr_pool_t *pool, const char **ret, mcp_err_t *err);

typedef struct mcp_resolved {
    const char *grant;
    const char *member;
    const char *view; /* digest */
    int may_execute;
    unsigned scopes;
    mcp_collapse_rule_t collapse; /* as the settings are for this grant and client */
    const char *unknown_words;    /* setting search.unknown_words; NULL: its default */
    size_t closest;               /* setting search.closest */
} mcp_resolved_t;

/* MCP_FAIL_UNAUTHORIZED when the token is not, or no longer, good. */
apr_status_t mcp_ask_resolve(mcp_ask_t *ask, const mcp_who_t *who, int64_t budget_ms, apr_pool_t *pool,
                             mcp_resolved_t *ret, mcp_err_t *err);

/* Whole blob, its hash checked, malloc'd (the caller frees it). */
apr_status_t mcp_ask_blob(mcp_ask_t *ask, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                          char **ret, size_t *ret_bytes, mcp_err_t *err);

typedef struct mcp_attempt {
    const char *tool;
    const char *via;
    json_t *arg_names; /* borrowed */
    size_t arg_count;
    size_t request_bytes;
    size_t response_bytes; /* of a note: what was answered */
    int64_t deadline_ms;
    const char *trace_id; /* NULL: none */
    const char *connection; /* the account's label that a merged tool's caller chose, "" for none; NULL: not asked for */
} mcp_attempt_t;

/* What policyd decided. denied.fail is NONE when the call may run; then plan is set. choose is set instead where nothing was decided nor recorded. */
typedef struct mcp_begun {
    const char *choose; /* the argument that holds the account's label: begin again with `connection` */
    const char *audit;
    json_t *plan;    /* freed and wiped with the pool */
    mcp_err_t denied;
    int endpoint;    /* `end` goes to where `begin` went */
    int64_t began;   /* boot clock, microseconds */
} mcp_begun_t;

/* Never resent once it may have been recorded. On success with a plan the call counts as running until mcp_ask_end(). */
apr_status_t mcp_ask_begin(mcp_ask_t *ask, const mcp_who_t *who, const mcp_attempt_t *attempt,
                           int64_t budget_ms, apr_pool_t *pool, mcp_begun_t *ret, mcp_err_t *err);

/* Records an attempt that this child decided alone, whole: a search, a refusal. Resent under the same id until it is recorded or the budget
 * is over. *ret_audit: the record's id. */
apr_status_t mcp_ask_note(mcp_ask_t *ask, const mcp_who_t *who, const mcp_attempt_t *attempt,
                          mcp_outcome_t outcome, mcp_code_t code, int64_t duration_us,
                          int64_t budget_ms, apr_pool_t *pool, const char **ret_audit, mcp_err_t *err);

typedef struct mcp_ended {
    mcp_outcome_t outcome;
    mcp_code_t code;
    int upstream_status;
    size_t request_bytes;
    size_t response_bytes;
} mcp_ended_t;

/* Resent until recorded, or budget_ms passed, or policyd says that it does not know the attempt, or the link is shut; then MCP_FAIL_TOOL with
 * outcome_unrecorded and the audit id. */
apr_status_t mcp_ask_end(mcp_ask_t *ask, const mcp_begun_t *begun, const mcp_ended_t *ended,
                         int64_t budget_ms, apr_pool_t *pool, mcp_err_t *err);

/* Whether policyd is there, by a beat. For whoever is about to ask what may take longer than a policyd that is away should be waited for. */
apr_status_t mcp_ask_knock(mcp_ask_t *ask, int64_t budget_ms, apr_pool_t *pool, mcp_err_t *err);

/* Runs an operation of the control plane, named without its prefix. via: "direct" or "execute_tool". Never resent once it may have been recorded. On success *ret_result is an
 * object freed with the pool, and *ret_audit its row. A refusal fills err with code, message, hint, audit, permission and scopes: MCP_FAIL_UNAUTHORIZED,
 * MCP_FAIL_SCOPE, MCP_FAIL_BUSY, MCP_FAIL_UNAVAILABLE, MCP_FAIL_TOO_LARGE (the arguments fill no message), MCP_FAIL_PARAMS for an unknown operation, else
 * MCP_FAIL_TOOL. Where the question was sent and no answer came it is MCP_FAIL_TOOL with outcome_unrecorded: a change may have been made; of an
 * operation that only reads the caller may say instead that policyd is not available. */
apr_status_t mcp_ask_invoke(mcp_ask_t *ask, const mcp_who_t *who, const char *op, const json_t *args,
                            const char *via, const char *trace_id, int64_t budget_ms, apr_pool_t *pool,
                            json_t **ret_result, const char **ret_audit, mcp_err_t *err);

/* Sends child.beat when MCP_BEAT_MS have passed since the last one; called from wherever a call waits. Never blocks longer than a
 * fifth of a second; one thread at a time. */
void mcp_ask_beat(mcp_ask_t *ask);

#endif
