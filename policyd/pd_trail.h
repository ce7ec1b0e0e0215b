/* The append-only trail of attempts: trail.db, private to policyd.
 *
 * Two kinds of record, begin and end, numbered (chain, seq) by policyd's own writer.  An audit id is the
 * text "CHAIN-SEQ" of the record that opened the attempt (its begin, or its lone end).  Records are
 * durable (synchronous=FULL) before their completion is called; whatever has gathered while the last
 * commit ran is committed together.  No UPDATE and no DELETE exists in this room (guarded).
 */
#ifndef PD_TRAIL_H
#define PD_TRAIL_H

#include "pd_err.h"
#include "pd_time.h"

typedef struct pd_trail pd_trail_t;

typedef enum pd_record_kind { PD_RECORD_BEGIN = 1, PD_RECORD_END = 2 } pd_record_kind_t;

/* One record. Texts may be NULL; all are copied at submission. policyd alone stamps time. */
typedef struct pd_record {
    pd_record_kind_t kind;
    int64_t seq;       /* out */
    int64_t begin_seq; /* end: of its begin, 0 for a lone end */
    int64_t supersedes; /* end: seq of an earlier end that this one replaces (late after interrupted), or 0 */
    pd_wall_t time;    /* out */
    const char *member_id;
    const char *role; /* role names, comma-separated */
    const char *grant_id;
    const char *client; /* as it says of itself */
    const char *actor;  /* admin socket: "unix:0"; else NULL */
    const char *surface;
    const char *operation; /* control-plane: "members__create"; connected: "connector/operation" */
    const char *tool;      /* advertised name as requested (or its length and keyed hash) */
    const char *via;
    const char *connector;
    const char *connection; /* label as it was */
    const char *connection_id;
    const char *classification;
    const char *approved; /* "yes" "no" "not_needed" */
    const char *arg_names; /* JSON array text */
    int64_t arg_count;
    int64_t arg_unknown;
    const char *child;     /* httpd child; NULL for doors of policyd */
    int64_t deadline_ms;   /* begin: after which it is interrupted */
    const char *trace_id;
    const char *outcome; /* end */
    const char *error_code;
    int64_t upstream_status; /* 0: none */
    int64_t duration_us;
    int64_t request_bytes;
    int64_t response_bytes;
    int64_t redactions;
    int64_t revision; /* policy revision that decided */
    const char *detail; /* never values: the reason of a denial, ids before and after of a change */
    const char *note_id; /* call.note: recorded once per id */
} pd_record_t;

/* seq of the record, 0 on failure. On the loop's thread. */
typedef void pd_trail_done_fn(pd_status_t status, int64_t seq, void *baton);

/* Opens trail.db in directory `dir`, migrates, checks. */
pd_status_t pd_trail_open(const char *dir, void (*wake)(void *), void *wake_baton, pd_trail_t **ret,
                          char *why, size_t size);
/* Writes what is queued, ends the writer, and runs all completions; what those append is refused as
 * closed. Reading (ids, head, open attempts, the audit copy) still works. Once more, or NULL, is
 * fine. On the loop's thread. */
void pd_trail_stop(pd_trail_t *trail);
/* Stops, and closes trail.db. NULL is fine. */
void pd_trail_close(pd_trail_t **trail);

/* Queues one record; done may be NULL. PD_E_FULL when the bounded queue is full; then done is not called. */
pd_status_t pd_trail_append(pd_trail_t *trail, const pd_record_t *record, pd_trail_done_fn *done,
                            void *baton);
void pd_trail_reap(pd_trail_t *trail);

/* Chain number of this policyd. */
int64_t pd_trail_chain(const pd_trail_t *trail);
/* seq of the last durable record; any thread. */
int64_t pd_trail_head(pd_trail_t *trail);
/* Text of an audit id into buf (48 bytes); parse gives 0 for a foreign chain or bad text. */
void pd_trail_id(const pd_trail_t *trail, int64_t seq, char *buf);
int64_t pd_trail_seq(const pd_trail_t *trail, const char *audit_id);

/* Begins without an end, at start: calls each(seq, record, baton) in order. Records' texts live during the call. */
pd_status_t pd_trail_open_attempts(pd_trail_t *trail,
                                   void (*each)(int64_t seq, const pd_record_t *record, void *baton),
                                   void *baton);
/* Ends of begun attempts among the last `records` records, at start: calls each(seq of the begin, record, baton) in order. */
pd_status_t pd_trail_recent_ends(pd_trail_t *trail, int64_t records,
                                 void (*each)(int64_t begin_seq, const pd_record_t *record,
                                              void *baton),
                                 void *baton);

#endif
