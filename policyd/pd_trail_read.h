/* Reading the trail: the columns of a record, and a reader with a connection of its own, for the
 * copy thread of pd_audit.c and for start-up.  A reader belongs to one thread and never delays an
 * append. */
#ifndef PD_TRAIL_READ_H
#define PD_TRAIL_READ_H

#include "pd_sqlite.h"
#include "pd_trail.h"

/* Members of pd_record_t that are texts, and those that are numbers, each a column of its name.
 * X(first member) and Y(each following one): the lists make SQL text and tables. */
#define PD_TRAIL_TEXTS(X, Y)                                                                       \
    X(member_id) Y(role) Y(grant_id) Y(client) Y(actor) Y(surface) Y(operation) Y(tool) Y(via)     \
    Y(connector) Y(connection) Y(connection_id) Y(classification) Y(approved) Y(arg_names)         \
    Y(child) Y(trace_id) Y(outcome) Y(error_code) Y(detail) Y(note_id)
#define PD_TRAIL_NUMBERS(X)                                                                        \
    X(arg_count) X(arg_unknown) X(deadline_ms) X(upstream_status) X(duration_us) X(request_bytes)  \
    X(response_bytes) X(redactions) X(revision)

#define PD_TRAIL_COLUMN(name)      #name
#define PD_TRAIL_NEXT_COLUMN(name) ", " #name
/* "seq, kind, begin_seq, supersedes, time_us, <texts>, <numbers>" */
#define PD_TRAIL_COLUMNS                                                                           \
    "seq, kind, begin_seq, supersedes, time_us, " PD_TRAIL_TEXTS(PD_TRAIL_COLUMN,                  \
                                                                 PD_TRAIL_NEXT_COLUMN)             \
        PD_TRAIL_NUMBERS(PD_TRAIL_NEXT_COLUMN)

typedef struct pd_trail_reader pd_trail_reader_t;

/* trail.db in dir must have been opened by pd_trail_open() before. */
pd_status_t pd_trail_read_open(const char *dir, pd_trail_reader_t **ret);
void pd_trail_read_close(pd_trail_reader_t **reader);

/* The record's texts live during the call. Anything but PD_OK ends the reading with it. */
typedef pd_status_t pd_trail_each_fn(const pd_record_t *record, void *baton);

/* Records after seq `after` in order, at most limit; *ret_count how many. */
pd_status_t pd_trail_read_after(pd_trail_reader_t *reader, int64_t after, int limit,
                                pd_trail_each_fn *each, void *baton, int *ret_count);
/* Begins without an end among those that can still be open, in order. */
pd_status_t pd_trail_read_open_begins(pd_trail_reader_t *reader, pd_trail_each_fn *each,
                                      void *baton);

#endif
