/* What the files of the runner share (pd_ops.h, pd_invoke): an invocation, its judging, its unit and its record. */
#ifndef PD_INVOKE_PRIVATE_H
#define PD_INVOKE_PRIVATE_H

#include "pd_ops.h"
#include "pd_snapshot.h"

#define PD_AUDIT_ID_BYTES 48

/* One invocation, from the question to done(). Its pool stands alone and has an allocator of its
 * own: a lane's thread allocates from it while the loop goes on with others, and done() may end the
 * asker's pool. */
typedef struct pd_invocation {
    pd_op_call_t call;
    pd_core_t *core;
    apr_pool_t *pool;
    const pd_actor_t *actor; /* as asked; call.actor may be read anew */
    const json_t *args;      /* as asked */
    pd_invoke_fn *done;
    void *baton;
    pd_boot_t start;
    pd_record_t record;
    pd_snapshot_t *held;    /* in force when this began; NULL: none was */
    pd_snapshot_t *current; /* write lane: what the unit saw, where that is newer */
    int is_dry_run;
    json_t *plain_args;     /* for the handler, where the runner keeps one of the arguments to itself */
    pd_status_t status; /* of the unit */
    int64_t begin_seq;
    char audit_id[PD_AUDIT_ID_BYTES]; /* "" until something is recorded */
} pd_invocation_t;

/* NULL when there is no memory. args and actor are borrowed until done; ends with it. Loop's thread, as all but pd_invocation_unit(). */
pd_invocation_t *pd_invocation_new(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                                   const json_t *args, pd_boot_t deadline, pd_invoke_fn *done,
                                   void *baton);
/* What the row says from the start on. name and trace_id live as long as the invocation. */
void pd_invocation_record(pd_invocation_t *inv, const char *name, const char *trace_id);
/* Writes the end (or the lone end) of what call.fault and call.result say, and answers after it. */
void pd_invocation_end(pd_invocation_t *inv);
void pd_invocation_drop_result(pd_invocation_t *inv);

/* The written order of refusals: PD_OK, or call->fault says why not. */
pd_status_t pd_invocation_judge(pd_op_call_t *call);
/* The first of them alone, for an actor read anew. */
pd_status_t pd_invocation_permission(pd_op_call_t *call);

/* The unit of an invocation (the baton), on its lane's thread. A store may run it anew: it begins from nothing each time. */
pd_status_t pd_invocation_unit(pd_tx_t *tx, void *baton);

#endif
