/* The snapshot: catalog, connections, toolboxes, restrictions and settings of one revision, immutable once it is in force.  Its blocks, and
 * the parts in them, are shared between snapshots by reference; a change rebuilds its part and the block that holds it.  Grants, members
 * and tokens are not in it.  References are atomic: any thread may hold a snapshot (pd_snapshot_hold) and read it; what is marked
 * "loop's thread" below is cached there lazily and is nobody else's to touch. */
#ifndef PD_SNAPSHOT_H
#define PD_SNAPSHOT_H

#include <apr_hash.h>

#include "pd_catalog.h"
#include "pd_core.h"
#include "pd_rules.h"
#include "pd_toolbox.h"

/* One tool of a connection: an operation under the name it is advertised by. */
typedef struct pd_tool {
    const char *name;
    const pd_operation_t *operation;
    apr_hash_t *arg_names; /* loop's thread: names the schema knows; filled at the first call */
} pd_tool_t;

/* Where the tool of an operation stands among its connection's, with what is asked of both next: they lie far apart. */
typedef struct pd_place {
    int tool;
    const pd_operation_t *operation;
    const char *id; /* of the operation */
} pd_place_t;

/* A connection and everything made from it and its connector. */
typedef struct pd_connection {
    apr_pool_t *pool;
    apr_uint32_t refs;
    const char *id;
    const char *label;  /* the {account} of tool names */
    const char *owner;  /* member id; NULL: shared */
    const char *base;   /* base URL with the variables filled in */
    int is_ready;       /* 0: needs_reauth */
    int is_toolbox_only;
    pd_connector_t *connector; /* retained */
    apr_array_header_t *tools; /* of pd_tool_t, sorted bytewise by name */
    const apr_uint32_t *hashes; /* pd_rule_hash() of all operations' ids, ascending */
    const pd_place_t *places;   /* in the same order */
    apr_hash_t *by_name;       /* name -> pd_tool_t * */
    struct {                   /* loop's thread */
        const char *line;  /* what is the same in every manifest's line about it, in pool; NULL until made */
        size_t line_count;
        pd_boot_t held;    /* when it was last put */
        const char *bytes; /* in pool: the blob is put again when its hold ran out */
        size_t count;
        char digest[MCP_DIGEST_HEX + 1];
    } chunk;
} pd_connection_t;

/* Connectors and connections. */
typedef struct pd_ground {
    apr_pool_t *pool;
    apr_uint32_t refs;
    apr_hash_t *connectors;  /* id -> pd_connector_t * */
    apr_hash_t *by_slug;     /* slug -> pd_connector_t * */
    apr_array_header_t *unshared; /* of pd_connector_t *, those without a shared connection, sorted by slug */
    apr_hash_t *connections; /* id -> pd_connection_t * */
    apr_array_header_t *shared; /* of pd_connection_t *, sorted by label */
    apr_hash_t *by_label;    /* label -> pd_connection_t *, shared ones */
    apr_hash_t *by_owner;    /* member id -> apr_array_header_t of pd_connection_t *, sorted by label */
    /* label -> apr_array_header_t of pd_connection_t *, whosever they are: of each connector the first by id, which has the tools that
     * all of that label and connector have; in the order of ids */
    apr_hash_t *any_label;
    apr_hash_t *left_out;    /* connection id -> id of its connector, of those that can't be used until that changes */
} pd_ground_t;

/* Restrictions. */
typedef struct pd_rulebook {
    apr_pool_t *pool;
    apr_uint32_t refs;
    apr_hash_t *rules;     /* id -> pd_rule_t * */
    apr_hash_t *targets;   /* id -> "role:NAME" or "member:ID", of every rule, readable or not; "": its target is lost */
    apr_hash_t *by_role;   /* role name -> pd_layer_t * */
    apr_hash_t *by_member; /* member id -> pd_layer_t * */
    /* A rule whose very target can't be read: nobody knows whom it governs, so it governs everybody as unreadable. */
    int has_lost_target;
} pd_rulebook_t;

/* Toolboxes. */
typedef struct pd_toolboxes {
    apr_pool_t *pool;
    apr_uint32_t refs;
    apr_hash_t *by_id;   /* id -> pd_toolbox_t * */
    apr_hash_t *by_name; /* name -> pd_toolbox_t * */
    apr_array_header_t *sorted; /* of pd_toolbox_t *, by name */
} pd_toolboxes_t;

typedef struct pd_snapshot {
    apr_pool_t *pool;
    apr_uint32_t refs;
    int64_t revision;
    pd_ground_t *ground;       /* all four retained */
    pd_rulebook_t *rulebook;
    pd_toolboxes_t *toolboxes;
    apr_hash_t *roles;         /* loop's thread: custom roles' permissions at this very revision, as they were asked for (pd_roles.h) */
    apr_hash_t *settings;      /* key as stored ("collapse.threshold", …) -> json_t *: copied into each snapshot */
} pd_snapshot_t;

/* Reads everything (for the start). Inside a unit, on any thread. refs is 1. */
pd_status_t pd_snapshot_load(pd_tx_t *tx, pd_snapshot_t **ret);
/* A new snapshot that shares all blocks and parts of `old` but those changed since, what this unit itself has changed included. Inside a
 * unit, on any thread whose caller holds `old`. refs is 1. */
pd_status_t pd_snapshot_follow(pd_tx_t *tx, const pd_snapshot_t *old, pd_snapshot_t **ret);
/* One more holder; any thread that has one already. */
pd_snapshot_t *pd_snapshot_hold(pd_snapshot_t *snapshot);
/* Lets go; the last holder frees it and the parts nobody else holds. NULL is fine. Any thread. */
void pd_snapshot_free(pd_snapshot_t **snapshot);

/* One more reference to a connection, and one less. NULL is fine. */
void pd_snapshot_retain(pd_connection_t *connection);
void pd_snapshot_release(pd_connection_t **connection);

/* The connection that a member reaches by this label: his own, else the shared one, else NULL. */
pd_connection_t *pd_snapshot_reach(const pd_snapshot_t *snapshot, const char *member_id,
                                   const char *label, size_t label_bytes);
/* A member's own connections (may be NULL). */
const apr_array_header_t *pd_snapshot_own(const pd_snapshot_t *snapshot, const char *member_id);
/* By stable id, or NULL. */
pd_connector_t *pd_snapshot_connector(const pd_snapshot_t *snapshot, const char *id);
pd_connection_t *pd_snapshot_connection(const pd_snapshot_t *snapshot, const char *id);

/* Fills by_name, hashes and places of a connection whose tools are there. */
void pd_snapshot_index(pd_connection_t *made);
/* Tool of a connection by advertised name, or NULL. */
pd_tool_t *pd_snapshot_tool(const pd_connection_t *connection, const char *name);

/* What governs a member (pd_rules.h); *ret is filled in any case. */
void pd_snapshot_rules(const pd_snapshot_t *snapshot, const char *member_id,
                       const char *const *role_names, apr_pool_t *pool, pd_rules_t *ret);

/* Value of an organisation-wide setting as text, integer or truth; `otherwise` where it is not set. */
const char *pd_snapshot_setting(const pd_snapshot_t *snapshot, const char *key, const char *otherwise);
int64_t pd_snapshot_setting_int(const pd_snapshot_t *snapshot, const char *key, int64_t otherwise);
int pd_snapshot_setting_bool(const pd_snapshot_t *snapshot, const char *key, int otherwise);
/* The value that holds for a grant and a client, either of which may be NULL: the grant's, else the client's, else the organisation's, else
 * NULL. Borrowed. pool is scratch. */
const json_t *pd_snapshot_setting_for(const pd_snapshot_t *snapshot, const char *key, const char *client,
                                      const char *grant, apr_pool_t *pool);

#endif
