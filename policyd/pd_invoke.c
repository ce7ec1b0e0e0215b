/* The one way an operation runs, whatever the door:
 *
 *   judge: permission, secret doors, scope, size, schema     -> a refusal leaves one row
 *   write: begin durable -> unit with the audit id -> end durable -> answer
 *   read:  unit -> one row durable -> answer
 *
 * A dry run is a write whose unit measures what it did to people and undoes it.
 *
 * Nothing is answered that the trail does not hold. Everything but unit_run() is on the loop's
 * thread. */
#include <stdlib.h>
#include <string.h>

#include <apr_allocator.h>
#include <apr_strings.h>

#include "pd_ops.h"

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/mcp_names.h"
#include "pd_impact.h"
#include "pd_keys.h"
#include "pd_log.h"
#include "pd_policy.h"
#include "pd_roles.h"
#include "pd_snapshot.h"

#define DEFAULT_BYTES (1024u * 1024)
#define LINK_ROOM 4096u /* what an answer over the link holds beside the result */
#define AUDIT_ID 48

/* One invocation, from the question to done(). Its pool stands alone and has an allocator of its
 * own: a lane's thread allocates from it while the loop goes on with others, and done() may end the
 * asker's pool. */
typedef struct invocation {
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
    json_t *plain_args;     /* for the handler, where the runner keeps one of the arguments to itself */
    pd_status_t status; /* of the unit */
    int64_t begin_seq;
    char audit_id[AUDIT_ID]; /* "" until something is recorded */
} invocation_t;

/* --- start and end --------------------------------------------------------------- */

static invocation_t *invocation_new(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                                    const json_t *args, pd_boot_t deadline, pd_invoke_fn *done,
                                    void *baton)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;
    invocation_t *inv;

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

static void drop_result(invocation_t *inv)
{
    json_decref(inv->call.result);
    inv->call.result = NULL;
}

/* The one exit: tells the door and lets everything go. */
static void finish(invocation_t *inv)
{
    inv->call.tx = NULL;
    inv->done(&inv->call, inv->audit_id, inv->baton);
    drop_result(inv);
    json_decref(inv->plain_args);
    pd_snapshot_free(&inv->current);
    pd_snapshot_free(&inv->held);
    apr_pool_destroy(inv->pool);
}

/* Replaces whatever the outcome was: the caller gets this and no data. */
static void override(invocation_t *inv, mcp_code_t code, const char *message, const char *hint)
{
    drop_result(inv);
    memset(&inv->call.fault, 0, sizeof(inv->call.fault));
    (void)pd_fault(&inv->call.fault, code, hint, "%s", message); /* always answers PD_E_INVALID */
}

/* --- the record ------------------------------------------------------------------ */

static size_t json_bytes(const json_t *value)
{
    return value != NULL ? json_dumpb(value, NULL, 0, JSON_COMPACT) : 0;
}

/* Names that the schema knows, as a JSON array; the rest is counted. */
static void record_arguments(invocation_t *inv)
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

static void record_start(invocation_t *inv, const char *name, const char *trace_id)
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
static void record_outcome(invocation_t *inv)
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
static void unrecorded(invocation_t *inv)
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
    invocation_t *inv = baton;

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

/* Writes the end (or the lone end) and answers after it. */
static void end_attempt(invocation_t *inv)
{
    record_outcome(inv);
    if (pd_trail_append(inv->core->trail, &inv->record, on_ended, inv) != PD_OK) {
        unrecorded(inv);
    }
}

/* --- judging --------------------------------------------------------------------- */

static pd_status_t deny_permission(pd_op_call_t *call, const char *permission)
{
    call->detail = apr_psprintf(call->pool, "lacks=%s", permission);
    (void)apr_cpystrn(call->fault.permission, permission, sizeof(call->fault.permission));
    return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED,
                    "Ask an administrator for a role that holds it.",
                    "Your roles do not hold the permission %s.", permission);
}

static pd_status_t step_permission(pd_op_call_t *call)
{
    const char *permission = call->op != NULL ? call->op->permission : NULL;

    if (call->actor->surface == MCP_SURFACE_MCP && !pd_actor_may(call->actor, "tool:execute")) {
        return deny_permission(call, "tool:execute");
    }
    if (permission != NULL && !pd_actor_may(call->actor, permission)) {
        return deny_permission(call, permission);
    }
    return PD_OK;
}

static pd_status_t step_exists(pd_op_call_t *call)
{
    if (call->op != NULL) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_UNKNOWN_TOOL, NULL, "There is no such operation.");
}

/* Before the scope: no scope cures a door. */
static pd_status_t step_door(pd_op_call_t *call)
{
    const pd_op_t *op = call->op;
    char hint[256];

    if (call->actor->surface != MCP_SURFACE_MCP || op->secret == PD_SECRET_NO ||
        (op->secret == PD_SECRET_WITH_CREDENTIAL &&
         json_object_get(call->args, "credential") == NULL)) {
        return PD_OK;
    }
    apr_snprintf(hint, sizeof(hint), "Use policyctl %s %s, or %s %s of the REST API.", op->resource,
                 op->verb, op->rest_method, op->rest_path);
    return pd_fault(&call->fault, MCP_CODE_USE_OTHER_DOOR, hint,
                    op->secret == PD_SECRET_ALWAYS
                        ? "This operation answers a secret, which must not enter a model's context."
                        : "A credential must not pass through a model's context.");
}

static pd_status_t step_scope(pd_op_call_t *call)
{
    unsigned needed = mcp_scope_of_class(call->op->klass);
    char hint[128];

    if ((call->actor->surface != MCP_SURFACE_MCP && call->actor->surface != MCP_SURFACE_REST) ||
        (mcp_scope_close(call->actor->scopes) & needed) == needed) {
        return PD_OK;
    }
    apr_snprintf(hint, sizeof(hint), "Authorize again with the scope %s.", mcp_scope_text(needed));
    call->fault.scopes = needed;
    return pd_fault(&call->fault, MCP_CODE_INSUFFICIENT_SCOPE, hint,
                    "The grant lacks the scope %s that this operation needs.",
                    mcp_scope_text(needed));
}

static pd_status_t step_size(pd_op_call_t *call)
{
    size_t max = call->op->max_bytes != 0 ? call->op->max_bytes : DEFAULT_BYTES;

    if (json_bytes(call->args) <= max) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "Send fewer or smaller arguments.",
                    "The arguments are larger than the %lu bytes that this operation takes.",
                    (unsigned long)max);
}

static pd_status_t step_schema(pd_op_call_t *call)
{
    return pd_ops_check(call->op, call->args, &call->fault);
}

/* The written order; the first step that refuses ends it. */
static pd_status_t judge(pd_op_call_t *call)
{
    static pd_status_t (*const steps[])(pd_op_call_t *) = {
        step_permission, step_exists, step_door, step_scope, step_size, step_schema};
    size_t i;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        pd_status_t status = steps[i](call);

        if (status != PD_OK) {
            return status;
        }
    }
    return PD_OK;
}

/* --- running --------------------------------------------------------------------- */

static int has_state(const pd_object_t *object, const char *state)
{
    const char *is = mcp_json_str(object->doc, "state");

    return is != NULL && strcmp(is, state) == 0;
}

/* The grant as it is now still stands. */
static pd_status_t check_grant(pd_op_call_t *call)
{
    pd_object_t *grant = NULL;
    pd_status_t status;

    if (call->actor->grant_id == NULL) {
        return PD_OK;
    }
    status = pd_tx_get(call->tx, "grant", call->actor->grant_id, &grant);
    if (status == PD_E_NOT_FOUND || (status == PD_OK && !has_state(grant, "active"))) {
        return pd_fault(&call->fault, MCP_CODE_GRANT_REVOKED, NULL, "The grant was revoked.");
    }
    return status;
}

/* Role names of a member's document, NULL-terminated: rules are chosen by them too. */
static const char *const *names_of(const json_t *roles, apr_pool_t *pool)
{
    const char **names = apr_pcalloc(pool, sizeof(*names) * (json_array_size(roles) + 1));
    size_t count = 0;
    size_t i;

    for (i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));

        if (name != NULL) {
            names[count++] = apr_pstrdup(pool, name);
        }
    }
    return names;
}

/* Between the asking and this transaction another change may have come: the writer decides by what
 * it sees itself, so that a right just taken away changes nothing any more. */
static pd_status_t read_actor_again(pd_op_call_t *call)
{
    const pd_actor_t *asked = call->actor;
    pd_actor_t *fresh;
    pd_object_t *member = NULL;
    pd_status_t status;

    if (asked->member_id == NULL || pd_tx_revision(call->tx) == asked->revision) {
        return PD_OK;
    }
    status = check_grant(call);
    if (status == PD_OK) {
        status = pd_tx_get(call->tx, "member", asked->member_id, &member);
    }
    if (status == PD_E_NOT_FOUND || (status == PD_OK && !has_state(member, "active"))) {
        return pd_fault(&call->fault, MCP_CODE_MEMBER_SUSPENDED, NULL, "The member is not active.");
    }
    if (status != PD_OK) {
        return status;
    }
    fresh = apr_pmemdup(call->pool, asked, sizeof(*asked));
    status = pd_roles_permissions(call->tx, json_object_get(member->doc, "roles"), call->pool,
                                  &fresh->permissions, &fresh->is_owner);
    if (status != PD_OK) {
        return status;
    }
    fresh->role_names = names_of(json_object_get(member->doc, "roles"), call->pool);
    call->actor = fresh;
    return step_permission(call);
}

/* Other writes may have come before this one, in this very group of commits too: the handler
 * decides by the policy that its transaction begins from. */
static pd_status_t catch_up(invocation_t *inv, pd_tx_t *tx)
{
    pd_status_t status;

    if (inv->held == NULL || pd_tx_revision(tx) == inv->held->revision) {
        return PD_OK;
    }
    status = pd_snapshot_follow(tx, inv->held, &inv->current);
    if (status == PD_OK) {
        inv->call.snapshot = inv->current;
    }
    return status;
}

static int is_dry_run(const invocation_t *inv)
{
    return inv->call.op->is_policy && mcp_json_bool(inv->args, "dry_run");
}

/* Adds to the handler's result what it did to people. The names of members, and of tools over what
 * they own, are for those who could read them elsewhere. */
static pd_status_t add_impact(pd_op_call_t *call, pd_impact_t *impact, const pd_snapshot_t *before)
{
    const pd_impact_sight_t sight = {pd_actor_may(call->actor, "member:read"),
                                     pd_actor_may(call->actor, "connection:read_all") ||
                                         pd_actor_may(call->actor, "connection:admin")};
    pd_snapshot_t *after = NULL;
    json_t *found = NULL;
    pd_status_t status = pd_snapshot_follow(call->tx, before, &after);

    if (status == PD_OK) {
        status = pd_impact_end(impact, call->tx, after, &sight, &found);
    }
    if (status == PD_OK && (json_object_set_new(call->result, "dry_run", json_true()) != 0 ||
                            json_object_set_new(call->result, "impact", json_incref(found)) != 0)) {
        status = PD_E_NOMEM;
    }
    json_decref(found);
    pd_snapshot_free(&after);
    return status;
}

/* Lets the handler do it, measures what that does to people, and asks for the undoing. */
static pd_status_t run_dry(invocation_t *inv)
{
    pd_op_call_t *call = &inv->call;
    pd_snapshot_t *own = NULL;
    const pd_snapshot_t *before = call->snapshot;
    pd_impact_t *impact = NULL;
    int is_measuring = 1;
    pd_status_t status = PD_OK;

    if (before == NULL) { /* no policy in force: read what is stored */
        status = pd_snapshot_load(call->tx, &own);
        before = own;
    }
    if (status == PD_OK) {
        status = pd_impact_begin(call->tx, before, call->deadline, call->pool, &impact);
    }
    if (status == PD_OK) {
        is_measuring = 0;
        status = call->op->handler(call);
    }
    if (status == PD_OK) {
        is_measuring = 1;
        status = call->result != NULL ? add_impact(call, impact, before) : PD_E_INTERNAL;
    }
    pd_snapshot_free(&own);
    call->detail = apr_pstrcat(call->pool, call->detail != NULL ? call->detail : "",
                               call->detail != NULL ? " dry_run" : "dry_run", (char *)NULL);
    if (status == PD_E_TIMEOUT && is_measuring) {
        return pd_fault(&call->fault, MCP_CODE_OVERLOADED,
                        "Try again with more time, or make the change without dry_run.",
                        "The time ran out before it was known what the change does to whom; nothing "
                        "was changed.");
    }
    return status == PD_OK ? PD_E_ROLLBACK : status;
}

static pd_status_t run_write(invocation_t *inv, pd_tx_t *tx)
{
    pd_op_call_t *call = &inv->call;
    pd_status_t status = read_actor_again(call);

    pd_tx_audit(tx, inv->audit_id);
    if (status == PD_OK) {
        status = catch_up(inv, tx);
    }
    if (status != PD_OK) {
        return status;
    }
    if (inv->plain_args != NULL) {
        call->args = inv->plain_args;
    }
    status = is_dry_run(inv) ? run_dry(inv) : call->op->handler(call);
    call->args = inv->args;
    return status;
}

/* On the lane's thread. A store may run a unit anew: it begins from nothing each time. */
static pd_status_t unit_run(pd_tx_t *tx, void *baton)
{
    invocation_t *inv = baton;
    pd_op_call_t *call = &inv->call;
    const pd_op_t *op = call->op;
    pd_status_t status;

    drop_result(inv);
    memset(&call->fault, 0, sizeof(call->fault));
    call->detail = NULL;
    call->actor = inv->actor;
    pd_snapshot_free(&inv->current);
    call->snapshot = inv->held;
    call->tx = op->lane != PD_LANE_JOB || op->needs_tx ? tx : NULL;
    status = op->lane == PD_LANE_WRITE ? run_write(inv, tx) : op->handler(call);
    call->tx = NULL;
    return status;
}

/* Code and general message for a bare status. */
static void fault_of_status(invocation_t *inv, pd_status_t status)
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
static void settle(invocation_t *inv, pd_status_t status)
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
    drop_result(inv);
}

/* An answer over the link has to fit one message. Only where nothing was changed: a change stays
 * made, and its answer is small. */
static void check_result_size(invocation_t *inv)
{
    if (inv->call.result != NULL && inv->actor->surface != MCP_SURFACE_ADMIN &&
        json_bytes(inv->call.result) > MCP_MAX_BODY_BYTES - LINK_ROOM) {
        override(inv, MCP_CODE_RESULT_TOO_LARGE, "The answer is larger than this door carries.",
                 "Ask for a smaller page, or use policyctl.");
    }
}

static void on_run(pd_status_t status, int64_t revision, void *baton)
{
    invocation_t *inv = baton;
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
    end_attempt(inv);
}

static void run(invocation_t *inv)
{
    pd_status_t status = pd_store_submit(inv->core->store, inv->call.op->lane, inv->call.deadline,
                                         unit_run, on_run, inv);

    if (status != PD_OK) {
        settle(inv, status);
        end_attempt(inv);
    }
}

static void on_begun(pd_status_t status, int64_t seq, void *baton)
{
    invocation_t *inv = baton;

    if (status != PD_OK) {
        unrecorded(inv);
        return;
    }
    inv->begin_seq = seq;
    pd_trail_id(inv->core->trail, seq, inv->audit_id);
    run(inv);
}

/* A change: durable before it runs. */
static void begin_attempt(invocation_t *inv)
{
    inv->record.kind = PD_RECORD_BEGIN;
    inv->record.deadline_ms = pd_boot_left_ms(inv->call.deadline);
    if (pd_trail_append(inv->core->trail, &inv->record, on_begun, inv) != PD_OK) {
        unrecorded(inv);
    }
}

/* `dry_run` is the runner's: no handler hears of it. 0 when there is no memory. */
static int take_own_argument(invocation_t *inv)
{
    if (!inv->call.op->is_policy || json_object_get(inv->args, "dry_run") == NULL) {
        return 1;
    }
    inv->plain_args = json_copy((json_t *)(uintptr_t)inv->args);
    return inv->plain_args != NULL && json_object_del(inv->plain_args, "dry_run") == 0;
}

pd_status_t pd_invoke(pd_core_t *core, const pd_op_t *op, const pd_actor_t *actor,
                      const json_t *args, const char *trace_id, pd_boot_t deadline,
                      apr_pool_t *pool, pd_invoke_fn *done, void *baton)
{
    invocation_t *inv = invocation_new(core, op, actor, args, deadline, done, baton);
    char name[64];

    (void)pool; /* the asker's, which may end inside done() */
    if (inv == NULL) {
        return PD_E_NOMEM;
    }
    pd_ops_name(op, name);
    record_start(inv, apr_pstrdup(inv->pool, name), trace_id);
    if (judge(&inv->call) != PD_OK) {
        end_attempt(inv);
    } else if (!take_own_argument(inv)) {
        override(inv, MCP_CODE_INTERNAL, "Out of memory.", NULL);
        end_attempt(inv);
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
    invocation_t *inv = invocation_new(core, op, actor, args, deadline, done, baton);
    char name[64];

    if (inv == NULL) {
        return PD_E_NOMEM;
    }
    pd_ops_name(op, name);
    record_start(inv, apr_pstrdup(inv->pool, name), NULL);
    inv->call.fault = *fault;
    end_attempt(inv);
    return PD_OK;
}

/* --- op.invoke ------------------------------------------------------------------- */

/* A name that is no operation, as it may be recorded: itself where it has the form of a tool's
 * name, else its length and keyed hash. */
static const char *recorded_name(const pd_ask_t *ask, const char *name)
{
    const struct pd_policy *policy = ask->core->policy;
    char tag[17] = "";

    if (mcp_name_is_tool(name)) {
        return name;
    }
    if (policy != NULL && policy->keys != NULL) {
        pd_keys_tag(policy->keys, name, tag);
    }
    return apr_psprintf(ask->pool, "#%lu:%s", (unsigned long)strlen(name), tag);
}

/* "name/version" of the client as it says of itself. */
static const char *client_text(const pd_ask_t *ask)
{
    const json_t *client = json_object_get(ask->body, "client");
    const char *name = mcp_json_str(client, "name");
    const char *version = mcp_json_str(client, "version");
    char *text;
    size_t bytes;

    if (name == NULL || name[0] == '\0') {
        return NULL;
    }
    text = apr_psprintf(ask->pool, "%s%s%s", name, version != NULL && version[0] != '\0' ? "/" : "",
                        version != NULL ? version : "");
    bytes = strlen(text);
    if (bytes > 97) {
        /* not inside a character: the text becomes JSON again */
        for (bytes = 97; bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80; bytes--) {
        }
        text[bytes] = '\0';
    }
    return text;
}

static void on_invoked(const pd_op_call_t *call, const char *audit_id, void *baton)
{
    pd_ask_t *ask = baton;
    const char *audit = audit_id[0] != '\0' ? audit_id : NULL;
    json_t *body;

    if (call->fault.code != MCP_CODE_NONE) {
        pd_ask_refuse_fault(ask, &call->fault, audit);
        return;
    }
    body = json_pack("{s:s, s:O}", "audit", audit_id, "result", call->result);
    if (body == NULL) {
        pd_ask_refuse(ask, MCP_CODE_OUTCOME_UNRECORDED,
                      "The answer can't be made; do not repeat a change.", NULL, audit);
        return;
    }
    pd_ask_reply(ask, body);
}

static const char *access_message(mcp_code_t code)
{
    static const struct {
        mcp_code_t code;
        const char *message;
    } table[] = {
        {MCP_CODE_INVALID_TOKEN, "The token is not valid for this endpoint."},
        {MCP_CODE_GRANT_REVOKED, "The grant was revoked."},
        {MCP_CODE_GRANT_EXPIRED, "The grant has expired."},
        {MCP_CODE_MEMBER_SUSPENDED, "The member is not active."},
        {MCP_CODE_POLICY_UNAVAILABLE, "The policy store does not answer."},
    };
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].code == code) {
            return table[i].message;
        }
    }
    return "The token can't be checked.";
}

/* A refusal that is known before any operation runs: one row, where a grant is known. */
static void refuse_known(pd_ask_t *ask, const pd_op_t *op, const char *name,
                         const pd_actor_t *actor, mcp_code_t code)
{
    invocation_t *inv = invocation_new(ask->core, op, actor, json_object_get(ask->body, "args"),
                                       ask->deadline, on_invoked, ask);

    if (inv == NULL) {
        pd_ask_refuse(ask, MCP_CODE_POLICY_UNAVAILABLE, "Out of memory.", NULL, NULL);
        return;
    }
    record_start(inv, recorded_name(ask, name), mcp_json_str(ask->body, "trace_id"));
    if (code != MCP_CODE_NONE) {
        (void)pd_fault(&inv->call.fault, code, NULL, "%s",
                       access_message(code)); /* the fault is read below */
    } else {
        (void)judge(&inv->call); /* refuses at step_exists at the latest */
    }
    end_attempt(inv);
}

static void on_known(mcp_code_t code, const pd_actor_t *actor, void *baton)
{
    pd_ask_t *ask = baton;
    const char *name = mcp_json_str(ask->body, "op");
    const pd_op_t *op = pd_ops_find(name);

    if (code != MCP_CODE_NONE && (actor == NULL || actor->grant_id == NULL)) {
        pd_ask_refuse(ask, code, access_message(code), NULL, NULL);
        return;
    }
    if (code != MCP_CODE_NONE || op == NULL) {
        refuse_known(ask, op, name, actor, code);
        return;
    }
    if (pd_invoke(ask->core, op, actor, json_object_get(ask->body, "args"),
                  mcp_json_str(ask->body, "trace_id"), ask->deadline, ask->pool, on_invoked,
                  ask) != PD_OK) {
        pd_ask_refuse(ask, MCP_CODE_POLICY_UNAVAILABLE, "Out of memory.", NULL, NULL);
    }
}

void pd_on_op_invoke(pd_ask_t *ask)
{
    mcp_surface_t surface = mcp_surface_from_text(mcp_json_str(ask->body, "surface"));

    /* the admin door skips the scopes and has its own identity: it is never spoken for over the
     * link */
    if (surface != MCP_SURFACE_MCP && surface != MCP_SURFACE_REST) {
        pd_ask_refuse(ask, MCP_CODE_MALFORMED, "surface is not one of mcp, rest", NULL, NULL);
        return;
    }
    pd_access_token(ask->core, mcp_json_str(ask->body, "token_hash"), surface,
                    mcp_json_str(ask->body, "resource"), client_text(ask), ask->deadline, ask->pool,
                    on_known, ask);
}
