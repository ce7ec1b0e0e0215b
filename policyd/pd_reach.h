/* What a member can have: the one resolver behind browse, connect, advertise and execute.
 *
 * It joins ownership, toolboxes, the classification `forbidden` and the restrictions, and says for a tool, an operation or a connector
 * whether the subject can have it and, for the record and for explain, why not.  Scopes are not its business: they belong to a grant, not
 * to what is visible.  Pure over a snapshot; any thread that holds the snapshot. */
#ifndef PD_REACH_H
#define PD_REACH_H

#include "pd_snapshot.h"

/* Who is asked about. */
typedef struct pd_subject {
    const char *member_id; /* NULL: an admin peer that is no member: shared connections, no toolbox, no rule */
    const char *const *role_names; /* NULL-terminated */
} pd_subject_t;

typedef enum pd_reach {
    PD_REACH_UNREADABLE = 0, /* the rules could not be read */
    PD_REACH_OK,
    PD_REACH_UNKNOWN,        /* nobody has such a tool */
    PD_REACH_OTHERS,         /* a connection of another member */
    PD_REACH_TOOLBOX_ONLY,   /* its connection serves toolboxes only */
    PD_REACH_NO_TOOLBOX,     /* a toolbox that is not the subject's */
    PD_REACH_NO_CONNECTION,  /* an entry none of whose connections the subject has */
    PD_REACH_FORBIDDEN,      /* classified so */
    PD_REACH_NOT_ALLOWED,    /* an allowlist that does not name it */
    PD_REACH_BLOCKED
} pd_reach_t;

/* The code that a refusal is recorded by; NONE for OK. UNREADABLE is policy_unavailable: nothing is decided by rules that nobody
 * could read. */
mcp_code_t pd_reach_code(pd_reach_t reach);
/* The `detail` of the record and the word of explain: "connection of another member", "blocked", …; static. */
const char *pd_reach_text(pd_reach_t reach);

/* What a name stands for; filled as far as it was found, also where the subject can't have it. */
typedef struct pd_found {
    const char *name;                    /* canonical */
    const pd_operation_t *operation;
    const pd_connector_t *connector;
    pd_tool_t *tool;                     /* a plain tool */
    const pd_toolbox_t *toolbox;         /* an entry's */
    pd_entry_t *entry;                   /* NULL: a plain tool */
    apr_array_header_t *connections;     /* of pd_connection_t *: those the subject may use for it, sorted by label; one for a plain tool */
} pd_found_t;

/* How an answer came about, for explain: what governs the subject, and what it says of the operation even where something else decided.
 * verdict and decided mean nothing where no operation was found. */
typedef struct pd_reach_trace {
    pd_rules_t rules;
    pd_verdict_t verdict;
    pd_decided_t decided;
} pd_reach_trace_t;

/* By advertised name. trace may be NULL; recording changes no answer. *ret is filled in any case; arrays in pool. */
pd_reach_t pd_reach_tool(const pd_snapshot_t *snapshot, const pd_subject_t *subject, const char *name,
                         apr_pool_t *pool, pd_found_t *ret, pd_reach_trace_t *trace);

/* Of one operation in the catalog, under no name (browse). */
pd_reach_t pd_reach_operation(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                              const pd_connector_t *connector, const pd_operation_t *operation,
                              apr_pool_t *pool, pd_reach_trace_t *trace);

/* Of a connector (browse, connect): OK when any of its operations can be had, or it has none and is not withheld itself; else why the
 * first of them that is not forbidden can't, which the trace is about too. */
pd_reach_t pd_reach_connector(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                              const pd_connector_t *connector, apr_pool_t *pool,
                              pd_reach_trace_t *trace);

/* The rules of a subject, gathered once for many questions about one connector. The bearing points at the rules beside it: not to be
 * copied. */
typedef struct pd_reach_on {
    pd_rules_t rules;
    pd_bearing_t bearing;
} pd_reach_on_t;
void pd_reach_begin(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                    const pd_connector_t *connector, apr_pool_t *pool, pd_reach_on_t *ret);
/* The same answer as pd_reach_operation(), under `name` (NULL: none). */
pd_reach_t pd_reach_ask(const pd_reach_on_t *on, const pd_operation_t *operation, const char *name,
                        pd_reach_trace_t *trace);

/* Calls `each` for every tool the subject can have (OK alone), plain tools by connection, then entries by toolbox: the walk behind
 * advertising, dry runs and counts. Stops at the first answer that is not PD_OK and returns it. */
typedef pd_status_t pd_reach_fn(const pd_found_t *found, void *baton);
pd_status_t pd_reach_each(const pd_snapshot_t *snapshot, const pd_subject_t *subject, apr_pool_t *pool,
                          pd_reach_fn *each, void *baton);

/* The connections of an entry that the subject may use, sorted by label; in pool. */
apr_array_header_t *pd_reach_connections(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                                         const pd_entry_t *entry, apr_pool_t *pool);

/* Verdict characters of PROTOCOL.md for every operation of the connection's connector, in the order of its guard, as they hold for the
 * subject with scopes of `rung` on this connection; in pool, NUL-terminated. 'a': the subject has it over this connection, by its plain name or
 * by an entry, and the rung reaches it. 'b': forbidden, or he has it by no name and a rule blocks it, by what it is or by one of those
 * names. 'd': anything else; so on a connection that serves toolboxes only, or is another member's, what no entry of the subject reaches.
 * What he has with frozen values alone is 'd' too: its URL is not to be reached by another operation, without them. */
const char *pd_reach_verdicts(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                              const pd_connection_t *connection, int rung, apr_pool_t *pool);

#endif
