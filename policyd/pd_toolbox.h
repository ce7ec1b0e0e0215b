/* Toolboxes, compiled: named sets of entries for chosen roles and members.  An entry is an operation under a name of its own, over one
 * or more connections, with defaults and frozen parameters.  What is compiled here depends on the stored document alone; which
 * connections exist and what the operation looks like is asked of the snapshot when a tool is needed.
 * Counted by atomic references; immutable but for the texts that the loop's thread caches. */
#ifndef PD_TOOLBOX_H
#define PD_TOOLBOX_H

#include <apr_hash.h>
#include <apr_tables.h>
#include <jansson.h>

#include "pd_catalog.h"

#define PD_MAX_ENTRIES     500 /* of a toolbox */
#define PD_MAX_CHOICES     64  /* connections of an entry */
#define PD_MAX_FROZEN      64  /* keys of an entry, and as many defaults */

typedef struct pd_entry {
    const char *id;           /* stable: "ent_…" */
    const char *name;         /* the part after the two underscores, as chosen */
    const char *tool_name;    /* canonical: {toolbox}__{name} */
    const char *connector_id;
    const char *connector_slug;
    const char *operation_id;
    int is_own;               /* "@own": the caller's own connections on the connector */
    apr_array_header_t *connection_ids; /* of const char *; empty with is_own */
    const char *title;        /* NULL: the operation's */
    const char *description;  /* NULL: the operation's */
    json_t *defaults;         /* read only; never NULL */
    json_t *frozen;           /* read only; never NULL */
    int is_always_visible;
    struct pd_toolbox *toolbox;
    apr_hash_t *made;         /* loop's thread only: see pd_tool.h */
} pd_entry_t;

typedef struct pd_toolbox {
    apr_pool_t *pool;
    apr_uint32_t refs;
    const char *id;
    const char *name;        /* the {account} of its tools' names */
    const char *description; /* may be NULL */
    apr_hash_t *roles;       /* role name -> itself */
    apr_hash_t *members;     /* member id -> itself */
    apr_array_header_t *entries; /* of pd_entry_t, sorted bytewise by tool_name */
    apr_hash_t *by_name;     /* tool_name -> pd_entry_t * */
} pd_toolbox_t;

/* Compiles the stored document of a toolbox (op_toolboxes.h). PD_E_INVALID: it is not sound. refs is 1. Pure. */
pd_status_t pd_toolbox_make(const char *id, const json_t *doc, pd_toolbox_t **ret);
void pd_toolbox_retain(pd_toolbox_t *toolbox);
void pd_toolbox_release(pd_toolbox_t **toolbox);

/* 1 when the toolbox is for this member: named himself, or by one of his roles (NULL-terminated). An admin peer that is no member
 * (member_id NULL) has none. Any thread. */
int pd_toolbox_is_for(const pd_toolbox_t *toolbox, const char *member_id, const char *const *role_names);

/* Name of an entry's tool into buf (MCP_MAX_TOOL_NAME + 1 bytes): how the writer checks what pd_toolbox_make() will make. */
pd_status_t pd_toolbox_tool_name(const char *toolbox, const char *connector_slug, const char *entry_name,
                                 char *buf, size_t size);

#endif
