/* Entries of toolboxes as their callers see them: schema without what is frozen, the argument that chooses a connection, and the
 * description that says so.  Loop's thread only. */
#ifndef PD_ENTRY_H
#define PD_ENTRY_H

#include "pd_reach.h"

/* An entry over certain connections. Lives in the pool that it was made in. */
typedef struct pd_advertised {
    const char *schema; /* compact text */
    size_t schema_bytes;
    const char *blob; /* {"schema":…}, what the module validates the caller's arguments against */
    size_t blob_bytes;
    char digest[MCP_DIGEST_HEX + 1]; /* of blob */
    const char *description;
    const json_t *rename;  /* PROTOCOL.md, `rename` of a plan; NULL: none. Freed with the pool */
    apr_hash_t *arg_names; /* top-level names that the schema has */
} pd_advertised_t;

/* 1 when the entry has the argument that chooses a connection: it stands over several, or over however many a caller has. */
int pd_entry_is_merged(const pd_entry_t *entry);

/* Name of that argument. */
#define PD_ENTRY_CHOICE "connection"

/* What found->entry looks like over found->connections. What depends on the operation alone is kept in the entry and made once. PD_E_INVALID when
 * the entry no longer fits its operation (a frozen place that its schema can't lose): then it can't be advertised or called. */
pd_status_t pd_entry_advertise(const pd_found_t *found, apr_pool_t *pool, const pd_advertised_t **ret);

/* The same for any thread that holds the snapshot: nothing is kept in the entry, all of it is in pool. */
pd_status_t pd_entry_advertise_apart(const pd_found_t *found, apr_pool_t *pool, const pd_advertised_t **ret);

#endif
