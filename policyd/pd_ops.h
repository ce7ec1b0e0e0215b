/* The operation registry: every control-plane operation is one row here and one handler in op_*.c,
 * and is reachable through every door from that row alone. */
#ifndef PD_OPS_H
#define PD_OPS_H

#include "pd_access.h"
#include "pd_core.h"

typedef struct pd_op pd_op_t;

struct pd_snapshot;

/* One run of an operation. Handlers run on the thread of their lane; they touch nothing of the core
 * but config, master_key, (job lane) audit and (loop lane, which runs on the loop's thread) policy. */
typedef struct pd_op_call {
    pd_core_t *core;
    const pd_op_t *op;
    const pd_actor_t *actor;
    const json_t *args; /* checked against the row's schema */
    pd_tx_t *tx;        /* loop and write lanes; job lane too when the row says needs_tx */
    const struct pd_snapshot *snapshot; /* the policy in force when the call began, held until done; read only. In the write
                         * lane: as this unit's transaction saw it before the handler */
    apr_pool_t *pool;
    pd_boot_t deadline;
    const char *first_resource; /* of the first endpoint a child named, or NULL */
    json_t *result;      /* out: object, owned by the call */
    pd_fault_t fault;    /* out: why not */
    const char *detail;  /* out, may stay NULL: for the audit row (ids, revisions; no secrets) */
} pd_op_call_t;

/* PD_OK with result set; PD_E_ROLLBACK with result set and no fault (a dry run: undone, yet
 * answered); or PD_E_* with fault set (a bare PD_E_NOT_FOUND, _CONFLICT, _REVISION is given its
 * code and a general message by the runner; others become `internal`). Anything but PD_OK undoes
 * the unit. */
typedef pd_status_t pd_op_fn(pd_op_call_t *call);
/* What has to follow a commit; on the loop's thread, with the call's result, before the door hears
 * of it. */
typedef void pd_op_after_fn(const pd_op_call_t *call);

typedef enum pd_secret { PD_SECRET_NO, PD_SECRET_ALWAYS, PD_SECRET_WITH_CREDENTIAL } pd_secret_t;

struct pd_op {
    const char *resource;    /* "members" */
    const char *verb;        /* "create" */
    const char *title;       /* one short line, for help and lists */
    const char *description; /* for models and the reference */
    const char *permission;  /* "member:write"; NULL: any active member (whoami) */
    mcp_class_t klass;       /* decides the scope rung at MCP and REST */
    pd_lane_t lane;
    int needs_tx; /* job lane: give it a store transaction */
    int is_policy; /* write lane: it can change who has which tools, so that it takes `dry_run`: the runner
                    * undoes what the handler did and answers its result with `impact` (pd_impact.h) */
    pd_secret_t secret;
    const char *rest_method; /* "POST" */
    const char *rest_path;   /* "/members/{member}" below /api/v1 */
    size_t max_bytes;        /* of its arguments; 0: 1 MiB */
    const char *schema;      /* JSON Schema text of its arguments */
    pd_op_fn *handler;
    pd_op_after_fn *after; /* write lane only; NULL: nothing */
};

/* Rows are sound when (pd_ops_init checks): read <=> not PD_LANE_WRITE; every {word} of rest_path
 * is a property of the schema; name, permission and (rest_method, rest_path) have their form and
 * are unique. */

/* The registry; NULL after the last row. */
const pd_op_t *pd_ops_row(int i);
/* By unprefixed name "members__create"; NULL if there is none. */
const pd_op_t *pd_ops_find(const char *name);
/* Name of a row into buf (64 bytes). */
void pd_ops_name(const pd_op_t *op, char *buf);
/* The whole registry as a JSON array (rows without handlers, schema as an object) for policyctl and
 * the reference; new reference. */
json_t *pd_ops_describe(void);
/* Compiles all schemas once; call before the first invocation and before threads. Fails when a row
 * is not sound. `pool` must outlive the registry's use. */
pd_status_t pd_ops_init(apr_pool_t *pool, char *why, size_t size);
/* Arguments against the row's schema: PD_OK, or PD_E_INVALID with fault INVALID_REQUEST naming
 * place and rule, never a value. Any thread after pd_ops_init. */
pd_status_t pd_ops_check(const pd_op_t *op, const json_t *args, pd_fault_t *fault);
/* 1 when `name` is a top-level property of the row's schema: such names may be recorded. */
int pd_ops_knows(const pd_op_t *op, const char *name);

/* Every op_*.c exports its handlers through its own header op_*.h; only pd_ops.c lists them. */

/* Completion of an invocation; loop's thread. audit_id is "" when nothing was recorded. */
typedef void pd_invoke_fn(const pd_op_call_t *call, const char *audit_id, void *baton);

/* Runs an operation for an actor, whatever the door: permission, scope (MCP and REST only), secret
 * doors, size, schema; for writes audit begin, commit with the audit id, audit end;
 * for reads one record after. A denial leaves one `denied` row. done is called once, with
 * call->fault.code set on refusal. args, actor and trace_id are borrowed until done is called,
 * which may let them and `pool` go. done may run before this returns. What it wants to keep of
 * call->result it takes by json_incref. PD_E_* only when nothing could be started (then done is not
 * called). */
pd_status_t pd_invoke(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                      const json_t *args, const char *trace_id, pd_boot_t deadline,
                      apr_pool_t *pool, pd_invoke_fn *done, void *baton);

/* The same, asked for as the words of `via` say ("direct", "execute_tool"; a literal). */
pd_status_t pd_invoke_via(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                          const json_t *args, const char *trace_id, const char *via, pd_boot_t deadline,
                          apr_pool_t *pool, pd_invoke_fn *done, void *baton);

/* Records an attempt that the door has refused already for who asks (no member, not active), and calls done
 * with that fault, as pd_invoke does. */
pd_status_t pd_invoke_refuse(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                             const json_t *args, const pd_fault_t *fault, pd_boot_t deadline,
                             pd_invoke_fn *done, void *baton);

#endif
