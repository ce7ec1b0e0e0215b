/* audit.db: the query copy of the trail, fed within a second by a thread of its own, readable by
 * the auditors' group.  One row an attempt; the documented view is `audit_trail` (doc/auditors.md).
 * A reader that holds a lock delays the copy, never a call. */
#ifndef PD_AUDIT_H
#define PD_AUDIT_H

#include <apr_pools.h>
#include <jansson.h>

#include "pd_err.h"
#include "pd_trail.h"

typedef struct pd_audit pd_audit_t;

/* Opens or makes audit.db in dir (mode 0640, group gid unless -1), starts the copy thread. An
 * audit.db of another trail or an older version is filled anew from this one; who the members are
 * must then be told again, so tell pd_audit_member() all of them at start. A damaged or newer one
 * is refused: the remedy in `why` is to remove it. The trail must outlive the copy. */
pd_status_t pd_audit_open(const char *dir, int gid, pd_trail_t *trail, pd_audit_t **ret, char *why,
                          size_t size);
/* Ends lists and gets that run or wait, and all later ones, with PD_E_CLOSED or PD_E_TIMEOUT; the
 * copy goes on. Before the threads that call them are joined. NULL is fine. */
void pd_audit_release(pd_audit_t *audit);
/* Copies what is there, if nothing holds it up, and ends the thread. No list or get may still run
 * (stop the store, whose job threads call them, before). NULL is fine. */
void pd_audit_close(pd_audit_t **audit);

/* Tells the copy thread that records wait; any thread, never blocks. They are copied together with what else comes
 * within a quarter of a second, or at once when a list or get asks for them. */
void pd_audit_poke(pd_audit_t *audit);

/* How the copy fares, for log and status: PD_OK, or why the last round failed; *ret_position (may
 * be NULL): seq up to which it reaches. Any thread. */
pd_status_t pd_audit_health(pd_audit_t *audit, int64_t *ret_position);

/* Who a member is, for the erasable side table; email NULL erases. Queued, any
 * thread. */
void pd_audit_member(pd_audit_t *audit, const char *member_id, const char *email, const char *name);

/* Filters of `audit list`; NULL or 0 means any. member matches id or email. */
typedef struct pd_audit_query {
    const char *member, *tool, *connection, *outcome, *operation, *surface, *error_code, *grant;
    int64_t since_us, until_us; /* 0: open */
    int64_t before_seq;         /* cursor: only older than this, 0 from the newest */
    int limit;                  /* 1..1000 */
    int oldest_first;
    int64_t after_seq; /* with oldest_first: only newer than this */
} pd_audit_query_t;

/* Rows as a JSON array, newest first: objects with the columns of `audit_trail`, absent ones null,
 * arg_names an array. Waits until the copy has reached the trail's head as of this call or
 * the deadline passes (PD_E_TIMEOUT). Only on a job thread. */
pd_status_t pd_audit_list(pd_audit_t *audit, const pd_audit_query_t *query, pd_boot_t deadline,
                          json_t **ret_rows);
/* One row by audit id, or PD_E_NOT_FOUND. Waits likewise. */
pd_status_t pd_audit_get(pd_audit_t *audit, const char *audit_id, pd_boot_t deadline,
                         json_t **ret_row);

#endif
