/* The one way an operation runs, whatever the door:
 *
 *   judge: permission, secret doors, scope, size, schema     -> a refusal leaves one row
 *   write: begin durable -> unit with the audit id -> end durable -> answer
 *   read:  unit -> one row durable -> answer
 *
 * Nothing is answered that the trail does not hold. Everything but the unit (pd_invoke_unit.c) is on
 * the loop's thread. */
#include <stdlib.h>
#include <string.h>

#include <apr_allocator.h>
#include <apr_strings.h>

#include "pd_invoke_private.h"

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "pd_log.h"
#include "pd_policy.h"

#define LINK_ROOM 4096u /* what an answer over the link holds beside the result */

/* --- start and end --------------------------------------------------------------- */

pd_invocation_t *pd_invocation_new(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                                   const json_t *args, pd_boot_t deadline, pd_invoke_fn *done,
                                   void *baton)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;
    pd_invocation_t *inv;

    if (apr_allocator_create(&allocator) != APR_SUCCESS) {
        return NULL;
    }
    if (apr_pool_create_unmanaged_ex(&pool, NULL, allocator) != APR_SUCCESS) {
        apr_allocator_destroy(allocator);
        return NULL;
    }
    apr_allocator_owner_set(allocator, pool);
    inv = apr_pcalloc(pool, sizeof(*inv));
    inv->pool = pool;
    inv->core = core;
    inv->actor = actor;
    inv->args = args;
    inv->done = done;
    inv->baton = baton;
    inv->start = pd_boot_now();
    inv->status = PD_E_INTERNAL;
    inv->call.core = core;
    inv->call.op = op;
    inv->call.actor = actor;
    inv->call.args = args;
    inv->call.pool = pool;
    inv->call.deadline = deadline;
    if (core->policy != NULL && core->policy->first_resource != NULL) {
        inv->call.first_resource = apr_pstrdup(pool, core->policy->first_resource);
    }
    if (core->policy != NULL && core->policy->snapshot != NULL) {
        inv->held = pd_snapshot_hold(core->policy->snapshot);
    }
    inv->call.snapshot = inv->held;
    return inv;
}

void pd_invocation_drop_result(pd_invocation_t *inv)
{
    json_decref(inv->call.result);
    inv->call.result = NULL;
}

/* The one exit: tells the door and lets everything go. */
static void finish(pd_invocation_t *inv)
{
    inv->call.tx = NULL;
    if (inv->is_dry_run) {
        inv->core->dry_runs--;
    }
    inv->done(&inv->call, inv->audit_id, inv->baton);
    pd_invocation_drop_result(inv);
    json_decref(inv->plain_args);
    pd_snapshot_free(&inv->current);
    pd_snapshot_free(&inv->held);
    apr_pool_destroy(inv->pool);
}

/* Replaces whatever the outcome was: the caller gets this and no data. */
static void override(pd_invocation_t *inv, mcp_code_t code, const char *message, const char *hint)
{
    pd_invocation_drop_result(inv);
    memset(&inv->call.fault, 0, sizeof(inv->call.fault));
    (void)pd_fault(&inv->call.fault, code, hint, "%s", message); /* always answers PD_E_INVALID */
}

/* --- the record ------------------------------------------------------------------ */

static size_t json_bytes(const json_t *value)
{
    return value != NULL ? json_dumpb(value, NULL, 0, JSON_COMPACT) : 0;
}

/* Names that the schema knows, as a JSON array; the rest is counted. */
static void record_arguments(pd_invocation_t *inv)
{
    json_t *names = json_array();
    const char *name;
    const json_t *value;
    int64_t known = 0;
    char *text;

    inv->record.arg_count = (int64_t)json_object_size(inv->call.args);
    json_object_foreach((json_t *)(uintptr_t)inv->call.args, name, value)
    {
        if (inv->call.op == NULL || !pd_ops_knows(inv->call.op, name) ||
            known >= MCP_MAX_ARG_NAMES) {
            continue;
        }
        known++;
        (void)json_array_append_new(
            names, json_string(name)); /* short of memory the text below fails too */
    }
    inv->record.arg_unknown = inv->record.arg_count - known;
    text = mcp_json_text(names, NULL);
    inv->record.arg_names = text != NULL ? apr_pstrdup(inv->pool, text) : "[]";
    free(text);
    json_decref(names);
}

void pd_invocation_record(pd_invocation_t *inv, const char *name, const char *trace_id)
{
    const pd_actor_t *actor = inv->actor;
    pd_record_t *record = &inv->record;

    record->kind = PD_RECORD_END;
    record->member_id = actor->member_id;
    record->role = actor->roles;
    record->grant_id = actor->grant_id;
    record->client = actor->client;
    record->actor = actor->label;
    record->surface = mcp_surface_text(actor->surface);
    record->operation = name;
    record->tool = name;
    record->via = mcp_via_text(MCP_VIA_DIRECT);
    record->classification = inv->call.op != NULL ? mcp_class_text(inv->call.op->klass) : NULL;
    record->approved = "not_needed";
    record->trace_id = trace_id;
    record->request_bytes = (int64_t)json_bytes(inv->call.args);
    record->revision = actor->revision;
    record_arguments(inv);
}

/* What the end says beside what was known at the start. */
static void record_outcome(pd_invocation_t *inv)
{
    pd_record_t *record = &inv->record;
    mcp_code_t code = inv->call.fault.code;

    record->kind = PD_RECORD_END;
    record->begin_seq = inv->begin_seq;
    record->deadline_ms = 0;
    record->outcome =
        mcp_outcome_text(code == MCP_CODE_NONE ? MCP_OUTCOME_OK : mcp_code_outcome(code));
    record->error_code = code == MCP_CODE_NONE ? NULL : mcp_code_text(code);
    record->duration_us = pd_boot_now().us - inv->start.us;
    record->response_bytes = (int64_t)json_bytes(inv->call.result);
    record->detail = inv->call.detail;
}

/* The row could not be written. What was only read is withheld, what was refused changed nothing; a
 * committed change must not be repeated blindly. */
static void unrecorded(pd_invocation_t *inv)
{
    int is_committed = inv->begin_seq != 0 && inv->status == PD_OK;

    pd_log(PD_LOG_ERR, 170, "an attempt at %s could not be recorded%s%s", inv->record.operation,
           inv->audit_id[0] != '\0' ? ", begun as " : "", inv->audit_id);
    if (is_committed) {
        override(inv, MCP_CODE_OUTCOME_UNRECORDED,
                 "The change was made, but its outcome could not be recorded. Do not repeat it.",
                 "Look at the object before you go on.");
    } else {
        override(inv, MCP_CODE_POLICY_UNAVAILABLE,
                 "The attempt could not be recorded, so nothing was done.", "Try again later.");
    }
    finish(inv);
}

static void on_ended(pd_status_t status, int64_t seq, void *baton)
{
    pd_invocation_t *inv = baton;

    if (status != PD_OK) {
        unrecorded(inv);
        return;
    }
    if (inv->begin_seq == 0) {
        pd_trail_id(inv->core->trail, seq, inv->audit_id);
    }
    if (inv->core->audit != NULL) {
        pd_audit_poke(inv->core->audit);
    }
    if (inv->call.fault.code != MCP_CODE_NONE &&
        mcp_code_outcome(inv->call.fault.code) == MCP_OUTCOME_DENIED) {
        pd_log(PD_LOG_INFO, 171, "denied %s to %s: %s (%s)", inv->record.operation,
               inv->actor->member_id != NULL ? inv->actor->member_id
               : inv->actor->label != NULL   ? inv->actor->label
                                             : "nobody",
               mcp_code_text(inv->call.fault.code), inv->audit_id);
    }
    finish(inv);
}

void pd_invocation_end(pd_invocation_t *inv)
{
    record_outcome(inv);
    if (pd_trail_append(inv->core->trail, &inv->record, on_ended, inv) != PD_OK) {
        unrecorded(inv);
    }
}

/* --- running --------------------------------------------------------------------- */

/* Code and general message for a bare status. */
static void fault_of_status(pd_invocation_t *inv, pd_status_t status)
{
    static const struct {
        pd_status_t status;
        mcp_code_t code;
        const char *message;
    } table[] = {
        {PD_E_NOT_FOUND, MCP_CODE_NOT_FOUND, "There is no such object."},
        {PD_E_CONFLICT, MCP_CODE_CONFLICT, "A name is taken, or the object is in use."},
        {PD_E_REVISION, MCP_CODE_REVISION_MISMATCH,
         "The object has another revision: read it again."},
        {PD_E_FULL, MCP_CODE_OVERLOADED, "Too much is waiting; try again later."},
        {PD_E_TIMEOUT, MCP_CODE_OVERLOADED, "The time ran out; nothing was changed."},
        {PD_E_IO, MCP_CODE_POLICY_UNAVAILABLE, "The store can't be read or written."},
        {PD_E_CLOSED, MCP_CODE_POLICY_UNAVAILABLE, "policyd is shutting down."},
    };
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].status == status) {
            override(inv, table[i].code, table[i].message, NULL);
            return;
        }
    }
    pd_log(PD_LOG_ERR, 172, "%s failed: %s", inv->record.operation, pd_status_text(status));
    override(inv, MCP_CODE_INTERNAL, "The operation failed inside policyd; its log says more.",
             NULL);
}

/* Turns what the unit left into a result or a fault, never both. */
static void settle(pd_invocation_t *inv, pd_status_t status)
{
    pd_op_call_t *call = &inv->call;
    int is_dry_run =
        status == PD_E_ROLLBACK && call->result != NULL && call->fault.code == MCP_CODE_NONE;

    inv->status = status;
    if ((status == PD_OK || is_dry_run) && call->result != NULL) {
        memset(&call->fault, 0, sizeof(call->fault));
        return;
    }
    if (status == PD_OK || call->fault.code == MCP_CODE_NONE ||
        (status != PD_E_INVALID && status != PD_E_ROLLBACK)) {
        fault_of_status(inv, status == PD_OK ? PD_E_INTERNAL : status);
        return;
    }
    pd_invocation_drop_result(inv);
}

/* An answer over the link has to fit one message. Only where nothing was changed: a change stays
 * made, and its answer is small. */
static void check_result_size(pd_invocation_t *inv)
{
    if (inv->call.result != NULL && inv->actor->surface != MCP_SURFACE_ADMIN &&
        json_bytes(inv->call.result) > MCP_MAX_BODY_BYTES - LINK_ROOM) {
        override(inv, MCP_CODE_RESULT_TOO_LARGE, "The answer is larger than this door carries.",
                 "Ask for a smaller page, or use policyctl.");
    }
}

static void on_run(pd_status_t status, int64_t revision, void *baton)
{
    pd_invocation_t *inv = baton;
    int is_write = inv->call.op->lane == PD_LANE_WRITE;

    settle(inv, status);
    if (revision > 0) {
        inv->record.revision = revision;
    }
    if (!is_write || status == PD_E_ROLLBACK) {
        check_result_size(inv);
    } else if (status == PD_OK) {
        pd_policy_changed(inv->core, revision);
        if (inv->call.op->after != NULL && inv->call.result != NULL) {
            inv->call.op->after(&inv->call);
        }
    }
    pd_invocation_end(inv);
}

static void run(pd_invocation_t *inv)
{
    pd_status_t status = pd_store_submit(inv->core->store, inv->call.op->lane, inv->call.deadline,
                                         pd_invocation_unit, on_run, inv);

    if (status != PD_OK) {
        settle(inv, status);
        pd_invocation_end(inv);
    }
}

static void on_begun(pd_status_t status, int64_t seq, void *baton)
{
    pd_invocation_t *inv = baton;

    if (status != PD_OK) {
        unrecorded(inv);
        return;
    }
    inv->begin_seq = seq;
    pd_trail_id(inv->core->trail, seq, inv->audit_id);
    run(inv);
}

/* A change: durable before it runs. */
static void begin_attempt(pd_invocation_t *inv)
{
    inv->record.kind = PD_RECORD_BEGIN;
    inv->record.deadline_ms = pd_boot_left_ms(inv->call.deadline);
    if (pd_trail_append(inv->core->trail, &inv->record, on_begun, inv) != PD_OK) {
        unrecorded(inv);
    }
}

/* `dry_run` is the runner's: no handler hears of it. 0 when there is no memory. */
static int take_own_argument(pd_invocation_t *inv)
{
    if (!inv->call.op->is_policy || json_object_get(inv->args, "dry_run") == NULL) {
        return 1;
    }
    inv->plain_args = json_copy((json_t *)(uintptr_t)inv->args);
    return inv->plain_args != NULL && json_object_del(inv->plain_args, "dry_run") == 0;
}

/* A dry run holds the one writer for as long as it measures: there is one at a time, and nobody waits for it in line. 0 when another one
 * runs. */
static int take_turn(pd_invocation_t *inv)
{
    if (inv->call.op->lane != PD_LANE_WRITE || !inv->call.op->is_policy ||
        !mcp_json_bool(inv->args, "dry_run")) {
        return 1;
    }
    if (inv->core->dry_runs > 0) {
        return 0;
    }
    inv->core->dry_runs++;
    inv->is_dry_run = 1;
    return 1;
}

pd_status_t pd_invoke(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                      const json_t *args, const char *trace_id, pd_boot_t deadline,
                      apr_pool_t *pool, pd_invoke_fn *done, void *baton)
{
    return pd_invoke_via(core, op, actor, args, trace_id, mcp_via_text(MCP_VIA_DIRECT), deadline, pool,
                         done, baton);
}

pd_status_t pd_invoke_via(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                          const json_t *args, const char *trace_id, const char *via, pd_boot_t deadline,
                          apr_pool_t *pool, pd_invoke_fn *done, void *baton)
{
    pd_invocation_t *inv = pd_invocation_new(core, op, actor, args, deadline, done, baton);
    char name[64];

    (void)pool; /* the asker's, which may end inside done() */
    if (inv == NULL) {
        return PD_E_NOMEM;
    }
    pd_ops_name(op, name);
    pd_invocation_record(inv, apr_pstrdup(inv->pool, name), trace_id);
    inv->record.via = via;
    if (pd_invocation_judge(&inv->call) != PD_OK) {
        pd_invocation_end(inv);
    } else if (!take_turn(inv)) {
        override(inv, MCP_CODE_OVERLOADED, "Another dry run is being made; nothing was done.",
                 "Try again in some seconds.");
        pd_invocation_end(inv);
    } else if (!take_own_argument(inv)) {
        override(inv, MCP_CODE_INTERNAL, "Out of memory.", NULL);
        pd_invocation_end(inv);
    } else if (op->lane == PD_LANE_WRITE) {
        begin_attempt(inv);
    } else {
        run(inv);
    }
    return PD_OK;
}

pd_status_t pd_invoke_refuse(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                             const json_t *args, const pd_fault_t *fault, pd_boot_t deadline,
                             pd_invoke_fn *done, void *baton)
{
    pd_invocation_t *inv = pd_invocation_new(core, op, actor, args, deadline, done, baton);
    char name[64];

    if (inv == NULL) {
        return PD_E_NOMEM;
    }
    pd_ops_name(op, name);
    pd_invocation_record(inv, apr_pstrdup(inv->pool, name), NULL);
    inv->call.fault = *fault;
    pd_invocation_end(inv);
    return PD_OK;
}
