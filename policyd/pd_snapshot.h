/* The snapshot: catalog, connections and settings of one revision, immutable once it is in force.  Parts are shared between
 * snapshots by reference; a change rebuilds its part and the indices.  Grants, members and tokens are not in it.
 * Loop's thread only. */
#ifndef PD_SNAPSHOT_H
#define PD_SNAPSHOT_H

#include <apr_hash.h>

#include "pd_catalog.h"
#include "pd_core.h"

/* Views differ by what the grant's rung reaches: none, read, write, destructive. */
#define PD_RUNGS 4

/* One tool of a connection: an operation under the name it is advertised by. */
typedef struct pd_tool {
    const char *name;
    const pd_operation_t *operation;
    apr_hash_t *arg_names; /* names the schema knows; filled at the first call */
} pd_tool_t;

/* A connection and everything made from it and its connector. */
typedef struct pd_connection {
    apr_pool_t *pool;
    int refs;
    const char *id;
    const char *label;  /* the {account} of tool names */
    const char *owner;  /* member id; NULL: shared */
    const char *base;   /* base URL with the variables filled in */
    int is_ready;       /* 0: needs_reauth */
    int is_toolbox_only;
    pd_connector_t *connector; /* retained */
    apr_array_header_t *tools; /* of pd_tool_t, sorted bytewise by name */
    apr_hash_t *by_name;       /* name -> pd_tool_t * */
    struct {
        char digest[MCP_DIGEST_HEX + 1]; /* "" until made */
        int tools;
        const char *bytes; /* in pool: the blob is put again when its hold ran out */
        size_t count;
    } chunk[PD_RUNGS], guard[PD_RUNGS];
} pd_connection_t;

typedef struct pd_snapshot {
    apr_pool_t *pool;
    int64_t revision;
    apr_hash_t *connectors;  /* id -> pd_connector_t * */
    apr_hash_t *connections; /* id -> pd_connection_t * */
    apr_array_header_t *shared; /* of pd_connection_t *, sorted by label */
    apr_hash_t *by_label;    /* label -> pd_connection_t *, shared ones */
    apr_hash_t *by_owner;    /* member id -> apr_array_header_t of pd_connection_t *, sorted by label */
    apr_hash_t *any_label;   /* label -> anything: somebody has a connection of this label */
    apr_hash_t *left_out;    /* connection id -> id of its connector, of those that can't be used until that changes */
    apr_hash_t *settings;    /* key as stored ("collapse.threshold", …) -> json_t * */
} pd_snapshot_t;

/* Reads everything (for the start). Runs inside a unit of the loop lane. */
pd_status_t pd_snapshot_load(pd_tx_t *tx, pd_snapshot_t **ret);
/* A new snapshot that shares all parts of `old` but those changed since. Runs inside a unit of the loop lane. */
pd_status_t pd_snapshot_follow(pd_tx_t *tx, const pd_snapshot_t *old, pd_snapshot_t **ret);
/* Lets go of the snapshot and of the parts nobody else holds. NULL is fine. */
void pd_snapshot_free(pd_snapshot_t **snapshot);

/* Lets go of one reference to a connection (taken by refs++), which frees it at the last. NULL is fine. */
void pd_snapshot_release(pd_connection_t **connection);

/* The connection that a member reaches by this label: his own, else the shared one, else NULL. */
pd_connection_t *pd_snapshot_reach(const pd_snapshot_t *snapshot, const char *member_id,
                                   const char *label, size_t label_bytes);
/* A member's own connections (may be NULL). */
const apr_array_header_t *pd_snapshot_own(const pd_snapshot_t *snapshot, const char *member_id);

/* Tool of a connection by advertised name, or NULL. */
pd_tool_t *pd_snapshot_tool(const pd_connection_t *connection, const char *name);

/* Value of an organisation-wide setting as text or integer; `otherwise` where it is not set. */
const char *pd_snapshot_setting(const pd_snapshot_t *snapshot, const char *key, const char *otherwise);
int64_t pd_snapshot_setting_int(const pd_snapshot_t *snapshot, const char *key, int64_t otherwise);

#endif
