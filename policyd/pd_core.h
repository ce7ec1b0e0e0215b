/* What the daemon's rooms share: one struct, filled by main.c in start-up order, used on the loop's
 * thread unless a member says otherwise. */
#ifndef PD_CORE_H
#define PD_CORE_H

#include <apr_pools.h>
#include <jansson.h>

#include "pd_audit.h"
#include "pd_config.h"
#include "pd_err.h"
#include "pd_store.h"
#include "pd_trail.h"

struct pd_loop;
struct pd_bus;
struct pd_admin;
struct pd_policy;

typedef struct pd_core {
    apr_pool_t *pool;          /* process lifetime; nothing per message */
    const pd_config_t *config; /* immutable; any thread */
    struct pd_loop *loop;
    struct pd_bus *bus;
    struct pd_admin *admin;
    pd_store_t *store;         /* submit from the loop only */
    pd_trail_t *trail;
    pd_audit_t *audit;
    struct pd_policy *policy;  /* snapshot in force, views, blobs, running calls (pd_policy.h) */
    uint64_t generation;       /* random, drawn at start; immutable */
    unsigned char master_key[32]; /* seals credentials; any thread, wiped at exit */
    int dry_runs;              /* that are being made (pd_invoke.c): one at most */
    int is_draining;           /* SIGTERM seen: answer what runs, accept nothing new */
} pd_core_t;

/* One question from httpd, from arrival to answer. Exactly one of the pd_ask_* calls ends it and
 * frees it; each may be called after the asker has gone (counted, dropped). Loop's thread only. */
typedef struct pd_ask {
    pd_core_t *core;
    apr_pool_t *pool;    /* lives until the answer */
    uint16_t kind;
    json_t *body;        /* checked against the kind's table */
    pd_boot_t deadline;  /* from the header's budget */
    void *route;         /* the bus's own */
} pd_ask_t;

/* body: stolen. */
void pd_ask_reply(pd_ask_t *ask, json_t *body);
/* Bytes of a blob, copied. */
void pd_ask_reply_raw(pd_ask_t *ask, const void *bytes, size_t count, int more);
/* Error reply. hint and audit may be NULL. */
void pd_ask_refuse(pd_ask_t *ask, mcp_code_t code, const char *message, const char *hint,
                   const char *audit);
/* The same with all that a fault says: the permission or the scopes that are missing too. */
void pd_ask_refuse_fault(pd_ask_t *ask, const pd_fault_t *fault, const char *audit);

/* Handlers of the dispatch table (pd_dispatch.c), each in the room named. */
void pd_on_hello(pd_ask_t *ask);      /* pd_hello.c */
void pd_on_child_beat(pd_ask_t *ask); /* pd_running.c */
void pd_on_blob_get(pd_ask_t *ask);   /* pd_blob.c */
void pd_on_resolve(pd_ask_t *ask);    /* pd_decide.c */
void pd_on_call_begin(pd_ask_t *ask); /* pd_decide.c */
void pd_on_call_end(pd_ask_t *ask);   /* pd_running.c */
void pd_on_call_note(pd_ask_t *ask);  /* pd_decide.c */
void pd_on_op_invoke(pd_ask_t *ask);  /* pd_invoke.c */

#endif
