/* Queries on audit.db through a reader's connection: filters to SQL, rows to JSON. */
#ifndef PD_AUDIT_QUERY_H
#define PD_AUDIT_QUERY_H

#include "pd_audit.h"
#include "pd_sqlite.h"

/* Rows as of pd_audit_list(), for json_decref(); PD_E_INVALID for a limit off the range. */
pd_status_t pd_audit_query_list(pd_sqlite_t *db, const pd_audit_query_t *query, json_t **ret_rows);
/* The attempt's row, or PD_E_NOT_FOUND. */
pd_status_t pd_audit_query_one(pd_sqlite_t *db, int64_t seq, json_t **ret_row);

#endif
