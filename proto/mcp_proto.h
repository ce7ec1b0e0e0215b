/* The header both programs start from: envelope, message kinds, flags, limits
 * and the closed list of error codes of the link between mod_mcp and policyd.
 *
 * proto/PROTOCOL.md is the reference of everything here; t/guards/protocol.sh
 * compares the two.  Kinds, codes and field names are never renumbered and
 * never reused.  Requests are even, replies odd.
 */
#ifndef MCP_PROTO_H
#define MCP_PROTO_H

#include <stddef.h>
#include <stdint.h>

/* --- envelope ----------------------------------------------------------- */

#define MCP_MAGIC        0x4d435044u /* "MCPD" */
#define MCP_VERSION      1u          /* the version this tree speaks */
#define MCP_VERSION_MIN  1u          /* the oldest one it still speaks (N-1) */
#define MCP_HEADER_BYTES 36u
#define MCP_FRAMES       2 /* exactly: header, body */

/* Flags of the header. */
#define MCP_FLAG_ERROR 0x1u /* the body is an error object (PROTOCOL.md, Errors) */
#define MCP_FLAG_RAW   0x2u /* the body is bytes of a blob, not JSON */
#define MCP_FLAG_MORE  0x4u /* bytes of the blob follow this part */
#define MCP_FLAG_KNOWN (MCP_FLAG_ERROR | MCP_FLAG_RAW | MCP_FLAG_MORE)

/* Kinds: X(NAME, number, text, is_built).  A kind that is not built is reserved:
 * its number and name stand, policyd answers it with `unsupported`. */
#define MCP_KIND_LIST(X)                          \
    X(HELLO, 2, "hello", 1)                       \
    X(RESOLVE, 4, "resolve", 1)                   \
    X(RESOLVE_BATCH, 6, "resolve.batch", 0)       \
    X(BLOB_GET, 8, "blob.get", 1)                 \
    X(CALL_BEGIN, 10, "call.begin", 1)            \
    X(CALL_END, 12, "call.end", 1)                \
    X(CALL_NOTE, 14, "call.note", 1)              \
    X(OP_INVOKE, 16, "op.invoke", 1)              \
    X(CHILD_BEAT, 18, "child.beat", 1)            \
    X(CRED_LEASE, 20, "cred.lease", 0)            \
    X(CRED_STORE, 22, "cred.store", 0)            \
    X(USESSION_GET, 24, "usession.get", 0)        \
    X(USESSION_PUT, 26, "usession.put", 0)        \
    X(UPSTREAM_REPORT, 28, "upstream.report", 0)  \
    X(RELAY_SEND, 30, "relay.send", 0)            \
    X(OAUTH_CLIENT_GET, 32, "oauth.client.get", 0) \
    X(OAUTH_CLIENT_PUT, 34, "oauth.client.put", 0) \
    X(OAUTH_CODE_PUT, 36, "oauth.code.put", 0)    \
    X(OAUTH_CODE_TAKE, 38, "oauth.code.take", 0)  \
    X(OAUTH_REFRESH, 40, "oauth.refresh", 0)      \
    X(OAUTH_REVOKE, 42, "oauth.revoke", 0)        \
    X(OAUTH_INTROSPECT, 44, "oauth.introspect", 0) \
    X(OAUTH_CONSENT, 46, "oauth.consent", 0)      \
    X(NOTICE_CHANGE, 64, "notice.change", 0)      \
    X(NOTICE_BEAT, 66, "notice.beat", 0)          \
    X(NOTICE_RELAY, 68, "notice.relay", 0)

typedef enum mcp_kind {
#define MCP_KIND_ENUM(name, number, text, is_built) MCP_KIND_##name = number,
    MCP_KIND_LIST(MCP_KIND_ENUM)
#undef MCP_KIND_ENUM
    MCP_KIND_NONE = 0
} mcp_kind_t;

/* The reply kind of a request kind. */
#define MCP_KIND_REPLY(kind) ((uint16_t)((kind) + 1))

/* --- limits (each tested at the limit and one above) --------------------- */

#define MCP_MAX_BODY_BYTES   (4u * 1024 * 1024) /* a JSON body, either way */
#define MCP_MAX_BLOB_PART    (1024u * 1024)     /* bytes of one blob.get answer */
#define MCP_MAX_BLOB_BYTES   (64u * 1024 * 1024)
#define MCP_MAX_DEPTH        64  /* nesting of any JSON that either side reads */
#define MCP_MAX_VALUES       100000 /* values of a JSON text from a client or an upstream that is made a tree */
#define MCP_MAX_ARG_NAMES    64  /* names a call.begin may carry */
#define MCP_MAX_ARG_NAME     64  /* bytes of one of them */
#define MCP_MAX_TOOL_NAME    64  /* bytes of an advertised name */
#define MCP_MAX_REQUESTED    256 /* bytes of a name as a caller sent it */
#define MCP_MAX_LABEL        32  /* bytes of an account label or toolbox name */
#define MCP_MAX_ID           48  /* bytes of a stable id */
#define MCP_MAX_TEXT         512 /* bytes of client names, messages and the like */
#define MCP_DIGEST_HEX       64  /* a SHA-256 in lower-case hex */
#define MCP_MAX_HAVE         64  /* digests a resolve may say it holds */
#define MCP_BEAT_MS          2000 /* child.beat and notice.beat interval */
#define MCP_BEATS_MISSED     3    /* after so many a child's calls are interrupted */
#define MCP_BLOB_HOLD_S      120  /* a blob stays readable so long after it was named */

/* --- error codes --------------------------------------------------------- */

/* One closed list for both sides, every door and the audit trail:
 * X(NAME, text, HTTP status at the REST door, audit outcome when an attempt ends so).
 * Those from PROTOCOL on speak of the link itself and reach no client. */
#define MCP_CODE_LIST(X)                                            \
    X(PERMISSION_DENIED, "permission_denied", 403, DENIED)          \
    X(UNKNOWN_TOOL, "unknown_tool", 404, DENIED)                    \
    X(RESTRICTED, "restricted", 404, DENIED)                        \
    X(FORBIDDEN, "forbidden", 404, DENIED)                          \
    X(INSUFFICIENT_SCOPE, "insufficient_scope", 403, DENIED)        \
    X(INVALID_TOKEN, "invalid_token", 401, DENIED)                  \
    X(GRANT_REVOKED, "grant_revoked", 401, DENIED)                  \
    X(GRANT_EXPIRED, "grant_expired", 401, DENIED)                  \
    X(MEMBER_SUSPENDED, "member_suspended", 401, DENIED)            \
    X(APPROVAL_REQUIRED, "approval_required", 403, DENIED)          \
    X(APPROVAL_DENIED, "approval_denied", 403, DENIED)              \
    X(INVALID_ARGUMENTS, "invalid_arguments", 400, ERROR)           \
    X(URL_RESTRICTED, "url_restricted", 403, DENIED)                \
    X(EGRESS_DENIED, "egress_denied", 403, DENIED)                  \
    X(NEEDS_REAUTH, "needs_reauth", 403, ERROR)                     \
    X(RATE_LIMITED, "rate_limited", 429, DENIED)                    \
    X(OVERLOADED, "overloaded", 503, DENIED)                        \
    X(UPSTREAM_STATUS, "upstream_status", 502, ERROR)               \
    X(UPSTREAM_TIMEOUT, "upstream_timeout", 504, ERROR)             \
    X(UPSTREAM_UNREACHABLE, "upstream_unreachable", 502, ERROR)     \
    X(UPSTREAM_INVALID, "upstream_invalid", 502, ERROR)             \
    X(RESULT_TOO_LARGE, "result_too_large", 502, ERROR)             \
    X(CANCELLED, "cancelled", 499, ERROR)                           \
    X(OUTCOME_UNRECORDED, "outcome_unrecorded", 500, ERROR)         \
    X(POLICY_UNAVAILABLE, "policy_unavailable", 503, DENIED)        \
    X(NOT_FOUND, "not_found", 404, ERROR)                           \
    X(CONFLICT, "conflict", 409, ERROR)                             \
    X(REVISION_MISMATCH, "revision_mismatch", 412, ERROR)           \
    X(INVALID_REQUEST, "invalid_request", 400, ERROR)               \
    X(USE_OTHER_DOOR, "use_other_door", 400, DENIED)                \
    X(INTERNAL, "internal", 500, ERROR)                             \
    X(UNSUPPORTED, "unsupported", 501, ERROR)                       \
    X(HELLO_REQUIRED, "hello_required", 503, ERROR)                 \
    X(MALFORMED, "malformed", 400, ERROR)                           \
    X(TOO_LARGE, "too_large", 413, ERROR)

typedef enum mcp_code {
    MCP_CODE_NONE = 0,
#define MCP_CODE_ENUM(name, text, http, outcome) MCP_CODE_##name,
    MCP_CODE_LIST(MCP_CODE_ENUM)
#undef MCP_CODE_ENUM
    MCP_CODE_COUNT
} mcp_code_t;

/* --- other closed lists --------------------------------------------------- */

#define MCP_OUTCOME_LIST(X)                \
    X(OK, "ok")                            \
    X(ERROR, "error")                      \
    X(DENIED, "denied")                    \
    X(INPUT_REQUIRED, "input_required")    \
    X(RUNNING, "running")                  \
    X(INTERRUPTED, "interrupted")

typedef enum mcp_outcome {
    MCP_OUTCOME_NONE = 0,
#define MCP_OUTCOME_ENUM(name, text) MCP_OUTCOME_##name,
    MCP_OUTCOME_LIST(MCP_OUTCOME_ENUM)
#undef MCP_OUTCOME_ENUM
} mcp_outcome_t;

#define MCP_SURFACE_LIST(X) X(MCP, "mcp") X(REST, "rest") X(ADMIN, "admin") X(OAUTH, "oauth")

typedef enum mcp_surface {
    MCP_SURFACE_NONE = 0,
#define MCP_SURFACE_ENUM(name, text) MCP_SURFACE_##name,
    MCP_SURFACE_LIST(MCP_SURFACE_ENUM)
#undef MCP_SURFACE_ENUM
} mcp_surface_t;

#define MCP_VIA_LIST(X) X(DIRECT, "direct") X(EXECUTE_TOOL, "execute_tool")

typedef enum mcp_via {
    MCP_VIA_NONE = 0,
#define MCP_VIA_ENUM(name, text) MCP_VIA_##name,
    MCP_VIA_LIST(MCP_VIA_ENUM)
#undef MCP_VIA_ENUM
} mcp_via_t;

#define MCP_CLASS_LIST(X)               \
    X(READ, "read")                     \
    X(WRITE, "write")                   \
    X(DESTRUCTIVE, "destructive")       \
    X(FORBIDDEN, "forbidden")

typedef enum mcp_class {
    MCP_CLASS_NONE = 0,
#define MCP_CLASS_ENUM(name, text) MCP_CLASS_##name,
    MCP_CLASS_LIST(MCP_CLASS_ENUM)
#undef MCP_CLASS_ENUM
} mcp_class_t;

/* Scopes as a bit set.  The ladder read < write < destructive is closed
 * downwards by mcp_scope_close(); `tools` stands beside it. */
#define MCP_SCOPE_READ        0x1u
#define MCP_SCOPE_WRITE       0x2u
#define MCP_SCOPE_DESTRUCTIVE 0x4u
#define MCP_SCOPE_TOOLS       0x8u

/* Status of every [W] function: 0 or one of these.  Text: mcp_status_text(). */
typedef enum mcp_wire_status {
    MCP_OK = 0,
    MCP_E_INCOMPLETE = -1, /* fewer bytes than the form needs */
    MCP_E_TRAILING = -2,   /* more bytes than the form has */
    MCP_E_MAGIC = -3,
    MCP_E_VERSION = -4,
    MCP_E_KIND = -5,
    MCP_E_FLAGS = -6,
    MCP_E_SIZE = -7,    /* above a limit */
    MCP_E_JSON = -8,    /* not JSON, duplicate keys, NUL, too deep */
    MCP_E_FIELD = -9,   /* missing, unknown, wrong type or out of range */
    MCP_E_NAME = -10,   /* breaks a name rule */
    MCP_E_SPACE = -11,  /* the caller's buffer is too small */
    MCP_E_NOMEM = -12,
    MCP_E_CRYPTO = -13  /* a seal that does not open */
} mcp_wire_status_t;

#endif
