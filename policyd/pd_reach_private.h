/* What the two files of the resolver share: see pd_reach.h. */
#ifndef PD_REACH_PRIVATE_H
#define PD_REACH_PRIVATE_H

#include "pd_reach.h"

/* What governs the subject. */
void pd_reach_rules(const pd_snapshot_t *snapshot, const pd_subject_t *subject, apr_pool_t *pool,
                    pd_rules_t *ret);

/* `withheld`: what decided before, OK if nothing has. The rules are asked in any case where a
 * trace is wanted, and change nothing then. */
pd_reach_t pd_reach_judge(const pd_bearing_t *bearing, const pd_operation_t *operation,
                          const char *name, pd_reach_t withheld, pd_reach_trace_t *trace);

/* Whether an entry's operation is one of the connection's connector. connection may be NULL. */
int pd_reach_is_usable(const pd_connection_t *connection, const pd_entry_t *entry);
int pd_reach_is_among(const apr_array_header_t *connections, const pd_connection_t *connection);

/* The connection the subject reaches that has a tool of this name, whether or not he can have it. */
pd_connection_t *pd_reach_find_plain(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                                     const char *name, pd_tool_t **ret_tool);

/* All of ret but its connections. */
void pd_reach_fill_plain(const pd_connection_t *connection, pd_tool_t *tool, pd_found_t *ret);
/* What withholds an entry before classification and rules are asked, else OK. */
pd_reach_t pd_reach_fill_entry(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                               pd_entry_t *entry, apr_pool_t *pool, pd_found_t *ret);

#endif
