/* The decisions for httpd's questions: resolve, call.begin, call.note.  A call is decided in the written
 * order (grant, permission, visibility, scope), recorded, and only then answered; the first failing step denies.
 * "Allowed" is assigned in one place, decide(). */
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/mcp_names.h"
#include "../proto/view_meta.h"
#include "pd_access.h"
#include "pd_keys.h"
#include "pd_log.h"
#include "pd_plan.h"
#include "pd_policy.h"
#include "pd_running.h"
#include "pd_seal.h"
#include "pd_snapshot.h"
#include "pd_view.h"

#define MAX_CHOICES_TOLD 20 /* labels in the refusal of a merged tool */

/* One question on its way through the steps. Lives in the ask's pool. */
typedef struct attempt {
    pd_ask_t *ask;
    const pd_actor_t *actor;
    pd_found_t found;            /* whether or not it may be had */
    pd_connection_t *connection; /* the one that is or would be called; NULL: not chosen */
    pd_record_t record;
    /* denial */
    mcp_code_t code;       /* NONE: allowed */
    const char *message;
    const char *hint;
    const char *permission;
    unsigned scopes;       /* all that are needed */
    int must_choose;       /* a merged tool, and no account was named: nothing is decided yet */
    pd_running_place_t place; /* among the running calls, until it is handed over to the attempt */
    /* plan */
    pd_snapshot_t *held; /* while the credential is read */
    json_t *credential;
    json_t *plan;
    pd_status_t credential_status;
    int64_t seq;
} attempt_t;

/* Refusals of the first step, in the words the challenge carries; anything else that went wrong is internal. */
static mcp_code_t unauthorized_text(mcp_code_t code, const char **ret_message)
{
    static const struct {
        mcp_code_t code;
        const char *message;
    } rows[] = {{MCP_CODE_GRANT_REVOKED, "the grant was revoked"},
                {MCP_CODE_GRANT_EXPIRED, "the grant has expired"},
                {MCP_CODE_MEMBER_SUSPENDED, "the member is not active"},
                {MCP_CODE_INVALID_TOKEN, "the token is not valid for this endpoint"},
                {MCP_CODE_POLICY_UNAVAILABLE, "the policy store does not answer"}};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].code == code) {
            *ret_message = rows[i].message;
            return code;
        }
    }
    *ret_message = "the token can't be checked";
    return MCP_CODE_INTERNAL;
}

/* At most `max` bytes of a text, cut between characters: it becomes JSON again. */
static const char *cut_text(const char *text, size_t max, apr_pool_t *pool)
{
    size_t bytes = strlen(text);

    if (bytes > max) {
        for (bytes = max; bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80; bytes--) {
        }
    }
    return apr_pstrmemdup(pool, text, bytes);
}

/* "name/version" of the client as it says of itself. */
static const char *client_text(const pd_ask_t *ask)
{
    const json_t *client = json_object_get(ask->body, "client");
    const char *name = mcp_json_str(client, "name");
    const char *version = mcp_json_str(client, "version");

    if (name == NULL || name[0] == '\0') {
        return NULL;
    }
    name = cut_text(name, 64, ask->pool);
    return version != NULL && version[0] != '\0'
               ? apr_pstrcat(ask->pool, name, "/", cut_text(version, 32, ask->pool), NULL)
               : name;
}

static void ask_access(pd_ask_t *ask, pd_access_fn *done, void *baton)
{
    mcp_surface_t surface = mcp_surface_from_text(mcp_json_str(ask->body, "surface"));

    if (pd_policy_is_stale(ask->core->policy)) {
        pd_ask_refuse(ask, MCP_CODE_POLICY_UNAVAILABLE, "the policy in force is too old", NULL, NULL);
        return;
    }
    if (surface != MCP_SURFACE_MCP && surface != MCP_SURFACE_REST && surface != MCP_SURFACE_OAUTH) {
        pd_ask_refuse(ask, MCP_CODE_MALFORMED, "surface is not one of mcp, rest, oauth", NULL, NULL);
        return;
    }
    pd_access_token(ask->core, mcp_json_str(ask->body, "token_hash"), surface,
                    mcp_json_str(ask->body, "resource"), client_text(ask), ask->deadline, ask->pool, done,
                    baton);
}

/* The settings of a group that hold for who asks, by their last word; new reference, NULL where none is set. */
static json_t *settings_for(const pd_ask_t *ask, const pd_actor_t *actor, const char *group,
                            const char *const *words)
{
    const char *client = mcp_json_str(json_object_get(ask->body, "client"), "name");
    json_t *object = NULL;

    for (; *words != NULL; words++) {
        const char *key = apr_pstrcat(ask->pool, group, ".", *words, NULL);
        const json_t *value = pd_snapshot_setting_for(ask->core->policy->snapshot, key, client,
                                                      actor->grant_id, ask->pool);

        if (value != NULL && object == NULL) {
            object = json_object();
        }
        if (value != NULL) {
            json_object_set_new(object, *words, json_deep_copy(value));
        }
    }
    return object;
}

static void add_settings(const pd_ask_t *ask, const pd_actor_t *actor, json_t *answer)
{
    static const char *const collapse[] = {"mode", "threshold", "budget_tokens", "budget_percent",
                                           "context_tokens", NULL};
    static const char *const search[] = {"unknown_words", "closest", NULL};
    json_t *object;

    if (apr_hash_count(ask->core->policy->snapshot->settings) == 0) {
        return;
    }
    object = settings_for(ask, actor, "collapse", collapse);
    if (object != NULL) {
        json_object_set_new(answer, "collapse", object);
    }
    object = settings_for(ask, actor, "search", search);
    if (object != NULL) {
        json_object_set_new(answer, "search", object);
    }
}

/* --- resolve ------------------------------------------------------------------- */

static void resolve_known(mcp_code_t code, const pd_actor_t *actor, void *baton)
{
    pd_ask_t *ask = baton;
    const char *view = NULL;
    const char *message;
    pd_rules_t rules;
    json_t *answer;

    if (code != MCP_CODE_NONE) {
        code = unauthorized_text(code, &message);
        pd_ask_refuse(ask, code, message, NULL, NULL);
        return;
    }
    pd_snapshot_rules(ask->core->policy->snapshot, actor->member_id, actor->role_names, ask->pool, &rules);
    if (rules.governed == PD_GOVERNED_UNREADABLE) { /* an empty list would look like one that was decided */
        pd_ask_refuse(ask, MCP_CODE_POLICY_UNAVAILABLE, "the restrictions can't be read", NULL, NULL);
        return;
    }
    if (pd_view_digest(ask->core, actor, &view) != PD_OK) {
        pd_ask_refuse(ask, MCP_CODE_INTERNAL, "the tool view can't be made", NULL, NULL);
        return;
    }
    answer = json_pack("{s:I,s:s,s:s,s:b,s:i,s:s}", "revision",
                       (json_int_t)ask->core->policy->snapshot->revision, "grant", actor->grant_id,
                       "member", actor->member_id, "may_execute", pd_actor_may(actor, "tool:execute"),
                       "scopes", (int)actor->scopes, "view", view);
    if (answer != NULL && actor->expires_us != 0) {
        json_object_set_new(answer, "expires_at", json_integer(actor->expires_us));
    }
    if (answer != NULL) {
        add_settings(ask, actor, answer);
    }
    pd_ask_reply(ask, answer);
}

void pd_on_resolve(pd_ask_t *ask)
{
    ask_access(ask, resolve_known, ask);
}

/* --- the record ---------------------------------------------------------------- */

/* A name as it may be recorded: itself where it has the form of one, else its length and keyed hash. */
static const char *recorded_name(const pd_ask_t *ask, const char *name)
{
    char tag[17];

    if (mcp_name_is_tool(name)) {
        return name;
    }
    pd_keys_tag(ask->core->policy->keys, name, tag);
    return apr_psprintf(ask->pool, "#%u:%s", (unsigned)strlen(name), tag);
}

/* The names that a plain tool's schema knows, made at its first call. */
static apr_hash_t *plain_names(pd_tool_t *tool, pd_connection_t *connection)
{
    json_t *schema = NULL;
    const json_t *properties;
    const char *name;
    const json_t *value;

    if (tool->arg_names != NULL) {
        return tool->arg_names;
    }
    if (mcp_json_parse(tool->operation->schema, tool->operation->schema_bytes, MCP_MAX_DEPTH, &schema,
                       NULL) != MCP_OK) {
        return NULL;
    }
    tool->arg_names = apr_hash_make(connection->pool);
    properties = json_object_get(schema, "properties");
    json_object_foreach((json_t *)(uintptr_t)properties, name, value)
    {
        apr_hash_set(tool->arg_names, apr_pstrdup(connection->pool, name), APR_HASH_KEY_STRING, tool);
    }
    json_decref(schema);
    return tool->arg_names;
}

/* 1 when the name may be recorded: the tool's schema, or the meta-tool, has such an argument. */
static int is_known(const attempt_t *attempt, apr_hash_t *known, const char *name)
{
    return known != NULL
               ? apr_hash_get(known, name, APR_HASH_KEY_STRING) != NULL
               : mcp_view_meta_knows(mcp_view_meta(mcp_json_str(attempt->ask->body, "tool")), name);
}

/* Names that the tool's advertised schema knows, so that what is frozen is not among them. NULL: none. */
static apr_hash_t *known_names(const attempt_t *attempt)
{
    const pd_found_t *found = &attempt->found;
    const pd_advertised_t *advertised = NULL;

    if (found->connections == NULL || found->connections->nelts == 0 || found->operation == NULL) {
        return NULL;
    }
    if (found->entry != NULL) {
        return pd_view_entry(attempt->ask->core, found, &advertised) == PD_OK ? advertised->arg_names
                                                                             : NULL;
    }
    return found->tool != NULL
               ? plain_names(found->tool, APR_ARRAY_IDX(found->connections, 0, pd_connection_t *))
               : NULL;
}

/* Argument names of the record: those the schema knows; the rest is counted. */
static void record_names(attempt_t *attempt)
{
    const json_t *sent = json_object_get(attempt->ask->body, "arg_names");
    apr_hash_t *known = known_names(attempt);
    json_t *kept = json_array();
    const json_t *name;
    char *text;
    size_t i;

    json_array_foreach(sent, i, name)
    {
        if (is_known(attempt, known, json_string_value(name))) {
            json_array_append_new(kept, json_incref((json_t *)(uintptr_t)name));
        }
    }
    attempt->record.arg_count = mcp_json_int(attempt->ask->body, "arg_count", 0);
    attempt->record.arg_unknown = attempt->record.arg_count - (int64_t)json_array_size(kept);
    if (attempt->record.arg_unknown < 0) {
        attempt->record.arg_unknown = 0;
    }
    text = mcp_json_text(kept, NULL);
    attempt->record.arg_names = text != NULL ? apr_pstrdup(attempt->ask->pool, text) : "[]";
    free(text);
    json_decref(kept);
}

static void record_start(attempt_t *attempt)
{
    const json_t *body = attempt->ask->body;
    const pd_actor_t *actor = attempt->actor;
    pd_record_t *record = &attempt->record;

    record->member_id = actor->member_id;
    record->role = actor->roles;
    record->grant_id = actor->grant_id;
    record->client = actor->client;
    record->surface = mcp_surface_text(actor->surface);
    record->tool = recorded_name(attempt->ask, mcp_json_str(body, "tool"));
    record->via = mcp_json_str(body, "via");
    record->child = mcp_json_str(body, "child");
    record->trace_id = mcp_json_str(body, "trace_id");
    record->request_bytes = mcp_json_int(body, "request_bytes", 0);
    record->response_bytes = mcp_json_int(body, "response_bytes", 0); /* a note alone has it */
    record->revision = actor->revision;
    record->approved = "not_needed";
}

/* Copied: the snapshot may be swapped before the record is durable. */
static void record_tool(attempt_t *attempt)
{
    const pd_found_t *found = &attempt->found;
    pd_record_t *record = &attempt->record;
    apr_pool_t *pool = attempt->ask->pool;

    if (found->connector != NULL) {
        record->connector = apr_pstrdup(pool, found->connector->slug);
    }
    if (attempt->connection != NULL) {
        record->connection = apr_pstrdup(pool, attempt->connection->label);
        record->connection_id = apr_pstrdup(pool, attempt->connection->id);
    }
    if (found->operation != NULL && found->connector != NULL) {
        record->operation =
            apr_pstrcat(pool, found->connector->slug, "/", found->operation->id, NULL);
        record->classification = mcp_class_text(found->operation->klass);
    }
    record_names(attempt);
}

/* --- the steps, in their order ----------------------------------------------------- */

static mcp_code_t step_permission(attempt_t *attempt)
{
    if (pd_actor_may(attempt->actor, "tool:execute")) {
        return MCP_CODE_NONE;
    }
    attempt->permission = "tool:execute";
    attempt->message = "your roles do not hold the permission tool:execute";
    attempt->hint = "ask an administrator for a role that holds tool:execute, such as Member";
    return MCP_CODE_PERMISSION_DENIED;
}

/* Whose it is, which toolbox, what is forbidden, what is restricted: the one resolver. */
static mcp_code_t step_visibility(attempt_t *attempt)
{
    pd_subject_t subject = pd_view_subject(attempt->actor);
    pd_reach_t reach =
        pd_reach_tool(attempt->ask->core->policy->snapshot, &subject,
                      mcp_json_str(attempt->ask->body, "tool"), attempt->ask->pool, &attempt->found, NULL);
    mcp_code_t code = pd_reach_code(reach);

    if (attempt->found.connections != NULL && attempt->found.connections->nelts == 1) {
        attempt->connection = APR_ARRAY_IDX(attempt->found.connections, 0, pd_connection_t *);
    }
    attempt->message = "there is no such tool";
    if (code == MCP_CODE_POLICY_UNAVAILABLE) {
        attempt->message = "the restrictions that hold for you can't be read";
        attempt->hint = "ask an administrator to look at the log of policyd";
    }
    if (code != MCP_CODE_NONE && reach != PD_REACH_UNKNOWN) {
        attempt->record.detail = pd_reach_text(reach);
    }
    return code;
}

static mcp_code_t step_scope(attempt_t *attempt)
{
    unsigned needed =
        MCP_SCOPE_TOOLS | mcp_scope_of_class(attempt->found.operation->klass);

    if ((attempt->actor->scopes & needed) == needed) {
        return MCP_CODE_NONE;
    }
    attempt->scopes = needed;
    attempt->message = "the grant lacks a scope that this tool needs";
    return MCP_CODE_INSUFFICIENT_SCOPE;
}

/* "a, b, c and 4 more" of the labels that a merged tool can be called for. */
static const char *choices_text(const attempt_t *attempt)
{
    const apr_array_header_t *connections = attempt->found.connections;
    const char *text = "";
    int i;

    for (i = 0; i < connections->nelts && i < MAX_CHOICES_TOLD; i++) {
        text = apr_pstrcat(attempt->ask->pool, text, i > 0 ? ", " : "",
                           APR_ARRAY_IDX(connections, i, const pd_connection_t *)->label, NULL);
    }
    return i < connections->nelts
               ? apr_psprintf(attempt->ask->pool, "%s and %d more", text, connections->nelts - i)
               : text;
}

/* The account that a merged tool is called for. Without the module's word for it nothing is decided, and nothing is recorded: it asks
 * again. The arguments themselves stay where they are. */
static mcp_code_t step_choice(attempt_t *attempt)
{
    const apr_array_header_t *connections = attempt->found.connections;
    const char *chosen = mcp_json_str(attempt->ask->body, "connection");
    int i;

    if (attempt->connection != NULL) {
        return MCP_CODE_NONE;
    }
    if (chosen == NULL) {
        attempt->must_choose = 1;
        return MCP_CODE_INVALID_ARGUMENTS;
    }
    for (i = 0; i < connections->nelts; i++) {
        pd_connection_t *connection = APR_ARRAY_IDX(connections, i, pd_connection_t *);

        if (strcmp(connection->label, chosen) == 0) {
            attempt->connection = connection;
            return MCP_CODE_NONE;
        }
    }
    attempt->message = "the argument " PD_ENTRY_CHOICE " names no account that this tool has";
    attempt->hint = apr_psprintf(attempt->ask->pool, "set `" PD_ENTRY_CHOICE "` to one of: %s",
                                 choices_text(attempt));
    return MCP_CODE_INVALID_ARGUMENTS;
}

static mcp_code_t needs_reauth(attempt_t *attempt)
{
    attempt->message = "the connection has no usable credential";
    attempt->hint = "give the connection its credential again (policyctl connections update)";
    return MCP_CODE_NEEDS_REAUTH;
}

static mcp_code_t step_connection(attempt_t *attempt)
{
    return attempt->connection->is_ready ? MCP_CODE_NONE : needs_reauth(attempt);
}

/* The last step, since it takes a place that only a begun attempt gives back. */
static mcp_code_t step_room(attempt_t *attempt)
{
    mcp_code_t code = pd_running_enter(attempt->ask->core->policy->running,
                                       mcp_json_str(attempt->ask->body, "child"),
                                       attempt->connection->id, &attempt->place);

    if (code != MCP_CODE_NONE) {
        attempt->message = "too many calls are running";
        attempt->hint = "try again in a moment";
    }
    return code;
}

typedef mcp_code_t step_fn(attempt_t *attempt);

static void decide(attempt_t *attempt)
{
    static step_fn *const steps[] = {step_permission, step_visibility, step_scope, step_choice,
                                     step_connection, step_room};
    size_t i;

    attempt->code = MCP_CODE_INTERNAL; /* denied until every step agreed */
    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        mcp_code_t code = steps[i](attempt);

        if (code != MCP_CODE_NONE) {
            attempt->code = code;
            return;
        }
    }
    attempt->code = MCP_CODE_NONE;
}

/* --- call.begin -------------------------------------------------------------------- */

static const char *audit_id(const attempt_t *attempt, int64_t seq)
{
    char *id = apr_palloc(attempt->ask->pool, MCP_MAX_ID);

    pd_trail_id(attempt->ask->core->trail, seq, id);
    return id;
}

static json_t *scope_names(unsigned scopes)
{
    json_t *names = json_array();
    unsigned bit;

    for (bit = 1; bit <= MCP_SCOPE_TOOLS; bit <<= 1) {
        if ((scopes & bit) != 0) {
            json_array_append_new(names, json_string(mcp_scope_text(bit)));
        }
    }
    return names;
}

/* The denial as the module may show it: what is withheld looks like what never existed. */
static json_t *denial(const attempt_t *attempt)
{
    mcp_code_t shown = attempt->code;
    json_t *denied;

    if (shown == MCP_CODE_RESTRICTED || shown == MCP_CODE_FORBIDDEN) {
        shown = MCP_CODE_UNKNOWN_TOOL;
    }
    denied = json_pack("{s:s,s:s}", "code", mcp_code_text(shown), "message", attempt->message);
    if (attempt->hint != NULL) {
        json_object_set_new(denied, "hint", json_string(attempt->hint));
    }
    if (attempt->permission != NULL) {
        json_object_set_new(denied, "permission", json_string(attempt->permission));
    }
    if (attempt->scopes != 0) {
        json_object_set_new(denied, "scopes", scope_names(attempt->scopes));
    }
    return denied;
}

static void unrecorded(attempt_t *attempt)
{
    pd_running_leave(&attempt->place);
    if (attempt->plan != NULL) {
        pd_seal_wipe(attempt->plan);
        json_decref(attempt->plan);
    }
    pd_ask_refuse(attempt->ask, MCP_CODE_POLICY_UNAVAILABLE, "the attempt can't be recorded", NULL,
                  NULL);
}

static void denial_recorded(pd_status_t status, int64_t seq, void *baton)
{
    attempt_t *attempt = baton;
    pd_ask_t *ask = attempt->ask;

    if (status != PD_OK) {
        unrecorded(attempt);
        return;
    }
    pd_audit_poke(ask->core->audit);
    pd_log(PD_LOG_INFO, 150, "denied %s to member %s: %s (%s)", attempt->record.tool,
           attempt->record.member_id != NULL ? attempt->record.member_id : "unknown",
           mcp_code_text(attempt->code), audit_id(attempt, seq));
    if (mcp_code_http(attempt->code) == 401 || attempt->code == MCP_CODE_POLICY_UNAVAILABLE) {
        pd_ask_refuse(ask, attempt->code, attempt->message, NULL, audit_id(attempt, seq));
        return;
    }
    pd_ask_reply(ask, json_pack("{s:s,s:I,s:o}", "audit", audit_id(attempt, seq), "revision",
                                (json_int_t)attempt->actor->revision, "denied", denial(attempt)));
}

static void record_denial(attempt_t *attempt)
{
    pd_record_t *record = &attempt->record;

    pd_running_leave(&attempt->place);
    record->kind = PD_RECORD_END;
    record->outcome = mcp_outcome_text(mcp_code_outcome(attempt->code));
    record->error_code = mcp_code_text(attempt->code);
    if (pd_trail_append(attempt->ask->core->trail, record, denial_recorded, attempt) != PD_OK) {
        unrecorded(attempt);
    }
}

/* The attempt is durable: now it may run. */
static void begin_recorded(pd_status_t status, int64_t seq, void *baton)
{
    attempt_t *attempt = baton;
    pd_ask_t *ask = attempt->ask;

    if (status == PD_OK && pd_running_add(ask->core->policy->running, seq, &attempt->record,
                                          &attempt->place) != PD_OK) {
        pd_record_t end = attempt->record;

        /* nobody would end it: it has not run, and never will */
        end.kind = PD_RECORD_END;
        end.begin_seq = seq;
        end.outcome = mcp_outcome_text(MCP_OUTCOME_INTERRUPTED);
        (void)pd_trail_append(ask->core->trail, &end, NULL, NULL); /* else it is ended after a restart */
        status = PD_E_NOMEM;
    }
    if (status != PD_OK) {
        unrecorded(attempt);
        return;
    }
    pd_audit_poke(ask->core->audit);
    pd_ask_reply(ask, json_pack("{s:s,s:I,s:o}", "audit", audit_id(attempt, seq), "revision",
                                (json_int_t)attempt->actor->revision, "plan", attempt->plan));
}

static void record_begin(attempt_t *attempt)
{
    attempt->record.kind = PD_RECORD_BEGIN;
    attempt->record.deadline_ms = mcp_json_int(attempt->ask->body, "deadline_ms", 0);
    if (pd_trail_append(attempt->ask->core->trail, &attempt->record, begin_recorded, attempt) !=
        PD_OK) {
        unrecorded(attempt);
    }
}

static pd_status_t credential_unit(pd_tx_t *tx, void *baton)
{
    attempt_t *attempt = baton;

    attempt->credential_status = pd_plan_credential(attempt->ask->core, tx, attempt->connection,
                                                    &attempt->credential);
    return PD_OK;
}

/* The plan is made before the attempt is recorded, so that a begin is written only for what can run. */
static void plan_call(pd_status_t status, attempt_t *attempt)
{
    int needs = pd_catalog_needs_credential(attempt->connection->connector->doc);

    if (status == PD_OK && needs &&
        (attempt->credential_status == PD_E_NOT_FOUND ||
         attempt->credential_status == PD_E_CRYPTO)) {
        attempt->code = needs_reauth(attempt); /* asked anew each time, until somebody gives it again */
        record_denial(attempt);
        return;
    }
    if (status == PD_OK && needs) {
        status = attempt->credential_status; /* a store that can't be read says nothing of the credential */
    }
    if (status == PD_OK) {
        status = pd_plan_make(attempt->ask->core, attempt->actor, &attempt->found, attempt->connection,
                              attempt->credential, &attempt->plan);
    }
    if (attempt->credential != NULL) {
        pd_seal_wipe(attempt->credential);
        json_decref(attempt->credential);
    }
    if (status != PD_OK) {
        attempt->code = MCP_CODE_INTERNAL;
        attempt->message = status == PD_E_INVALID
                               ? "the toolbox's entry does not fit the operation any more"
                               : "the call can't be planned";
        record_denial(attempt);
        return;
    }
    record_begin(attempt);
}

static void credential_read(pd_status_t status, int64_t revision, void *baton)
{
    attempt_t *attempt = baton;
    pd_snapshot_t *held = attempt->held;

    (void)revision;
    plan_call(status, attempt); /* ends the ask, perhaps: nothing of it is used afterwards */
    pd_snapshot_free(&held);
}

static void run_call(attempt_t *attempt)
{
    pd_core_t *core = attempt->ask->core;
    pd_snapshot_t *held;

    if (!pd_catalog_needs_credential(attempt->connection->connector->doc)) {
        plan_call(PD_OK, attempt);
        return;
    }
    /* a backend that answers later must find everything still there */
    held = pd_snapshot_hold(core->policy->snapshot);
    attempt->held = held;
    if (pd_store_submit(core->store, PD_LANE_LOOP, attempt->ask->deadline, credential_unit,
                               credential_read, attempt) != PD_OK) {
        attempt->code = MCP_CODE_INTERNAL;
        attempt->message = "the call can't be planned";
        record_denial(attempt);
        pd_snapshot_free(&held);
    }
}

static void begin_known(mcp_code_t code, const pd_actor_t *actor, void *baton)
{
    attempt_t *attempt = baton;

    attempt->actor = actor;
    if (code != MCP_CODE_NONE) {
        const char *message;

        code = unauthorized_text(code, &message);
        if (actor == NULL || actor->grant_id == NULL) { /* nobody known: no record, a counter at most */
            pd_ask_refuse(attempt->ask, code, message, NULL, NULL);
            return;
        }
        attempt->code = code;
        attempt->message = message;
        record_start(attempt);
        record_tool(attempt);
        record_denial(attempt);
        return;
    }
    record_start(attempt);
    decide(attempt);
    record_tool(attempt);
    if (attempt->must_choose) {
        pd_ask_reply(attempt->ask, json_pack("{s:I,s:s}", "revision", (json_int_t)actor->revision,
                                             "choose", PD_ENTRY_CHOICE));
    } else if (attempt->code == MCP_CODE_NONE) {
        run_call(attempt);
    } else {
        record_denial(attempt);
    }
}

static int via_is_sound(const pd_ask_t *ask)
{
    return mcp_via_from_text(mcp_json_str(ask->body, "via")) != MCP_VIA_NONE;
}

static attempt_t *attempt_new(pd_ask_t *ask)
{
    attempt_t *attempt = apr_pcalloc(ask->pool, sizeof(*attempt));

    attempt->ask = ask;
    attempt->code = MCP_CODE_INTERNAL;
    return attempt;
}

void pd_on_call_begin(pd_ask_t *ask)
{
    if (!via_is_sound(ask)) {
        pd_ask_refuse(ask, MCP_CODE_MALFORMED, "via is not one of direct, execute_tool", NULL, NULL);
        return;
    }
    /* one that never said hello, or is forgotten: its calls could not be counted */
    if (!pd_running_knows(ask->core->policy->running, mcp_json_str(ask->body, "child"))) {
        pd_ask_refuse(ask, MCP_CODE_HELLO_REQUIRED, "the child has to say hello first", NULL, NULL);
        return;
    }
    pd_running_seen(ask->core->policy->running, mcp_json_str(ask->body, "child"));
    ask_access(ask, begin_known, attempt_new(ask));
}

/* --- call.note ---------------------------------------------------------------------- */

static void note_recorded(pd_status_t status, int64_t seq, void *baton)
{
    attempt_t *attempt = baton;

    if (status != PD_OK) {
        unrecorded(attempt);
        return;
    }
    pd_audit_poke(attempt->ask->core->audit);
    pd_ask_reply(attempt->ask, json_pack("{s:s}", "audit", audit_id(attempt, seq)));
}

static void note_known(mcp_code_t code, const pd_actor_t *actor, void *baton)
{
    attempt_t *attempt = baton;
    pd_ask_t *ask = attempt->ask;
    mcp_code_t noted = mcp_code_from_text(mcp_json_str(ask->body, "code"));
    const char *message;

    if (code != MCP_CODE_NONE) {
        code = unauthorized_text(code, &message);
        pd_ask_refuse(ask, code, message, NULL, NULL);
        return;
    }
    attempt->actor = actor;
    record_start(attempt);
    attempt->record.detail = NULL;
    (void)step_visibility(attempt); /* for the names of the record only: the worker has decided */
    attempt->record.detail = NULL;
    record_tool(attempt);
    attempt->record.kind = PD_RECORD_END;
    attempt->record.outcome = mcp_json_str(ask->body, "outcome");
    attempt->record.error_code = noted != MCP_CODE_NONE ? mcp_code_text(noted) : NULL;
    attempt->record.duration_us = mcp_json_int(ask->body, "duration_us", 0);
    attempt->record.note_id = mcp_json_str(ask->body, "id");
    if (pd_trail_append(ask->core->trail, &attempt->record, note_recorded, attempt) != PD_OK) {
        unrecorded(attempt);
    }
}

void pd_on_call_note(pd_ask_t *ask)
{
    mcp_outcome_t outcome = mcp_outcome_from_text(mcp_json_str(ask->body, "outcome"));
    const char *code = mcp_json_str(ask->body, "code");

    if (!via_is_sound(ask) || outcome == MCP_OUTCOME_NONE || outcome == MCP_OUTCOME_RUNNING ||
        outcome == MCP_OUTCOME_INTERRUPTED ||
        (code != NULL && mcp_code_from_text(code) == MCP_CODE_NONE)) {
        pd_ask_refuse(ask, MCP_CODE_MALFORMED, "via, outcome or code off its list", NULL, NULL);
        return;
    }
    ask_access(ask, note_known, attempt_new(ask));
}
