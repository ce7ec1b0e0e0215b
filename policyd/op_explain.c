/* restrictions explain: what a member's rules say of one tool, and why.  The answers come from the
 * resolver that decides calls, asked here with recording on; nothing is decided a second time. */
#include "op_restrictions.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_snapshot.h"
#include "pd_template.h"

#define TOP_RUNG 3    /* scopes belong to a grant: the URL is judged as with all of them */
#define MAX_PATHS 200 /* names of one operation that are shown */
#define MAX_CLAIMS 50
#define MAX_RULES_SHOWN 50 /* of those that govern */
#define PRIVATE "(private)" /* stands for the label of a connection that is not the asker's to know */

/* One question. */
typedef struct question {
    pd_op_call_t *call;
    const pd_snapshot_t *snapshot;
    pd_subject_t subject;
    pd_object_t *member;
    const pd_connector_t *connector; /* NULL: nothing of that name */
    const pd_operation_t *operation;
    const char *name; /* the tool asked for, or the first path that leads there; or NULL */
    pd_reach_t reach; /* of that name */
    pd_reach_trace_t trace;
    pd_found_t found;
    json_t *paths;
    size_t path_count;
    int hides_own; /* labels of what the member owns are not for the asker */
} question_t;

/* --- who and what ---------------------------------------------------------------- */

static pd_status_t find_operation(question_t *q, const char *connector, const char *operation)
{
    pd_op_call_t *call = q->call;

    q->connector = pd_snapshot_connector(q->snapshot, connector);
    if (q->connector == NULL) {
        q->connector = apr_hash_get(q->snapshot->ground->by_slug, connector, APR_HASH_KEY_STRING);
    }
    if (q->connector == NULL) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connectors list shows them.",
                        "There is no such connector; name one by id or slug.");
    }
    q->operation = pd_catalog_operation(q->connector, operation);
    if (q->operation == NULL) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connectors get shows its operations.",
                        "The connector %s has no such operation.", q->connector->slug);
    }
    return PD_OK;
}

static int sees_all_connections(const pd_op_call_t *call)
{
    return pd_actor_may(call->actor, "connection:read_all") ||
           pd_actor_may(call->actor, "connection:admin");
}

static pd_status_t ask(question_t *q)
{
    pd_op_call_t *call = q->call;
    const char *tool = pd_op_text(call, "tool");
    const char *connector = pd_op_text(call, "connector");
    const char *operation = pd_op_text(call, "operation");

    if ((tool != NULL) == (connector != NULL) || (operation != NULL) != (connector != NULL)) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                        "Give `tool`, or `connector` and `operation`.",
                        "Explain answers about one tool by its name, or one operation of a "
                        "connector.");
    }
    if (tool == NULL) {
        return find_operation(q, connector, operation);
    }
    q->name = tool;
    q->reach = pd_reach_tool(q->snapshot, &q->subject, tool, call->pool, &q->found, &q->trace);
    if (q->reach == PD_REACH_OTHERS && !sees_all_connections(call)) {
        q->reach = PD_REACH_UNKNOWN; /* whether others have such a label is not told */
        memset(&q->found, 0, sizeof(q->found));
    }
    q->connector = q->found.connector;
    q->operation = q->found.operation;
    return PD_OK;
}

/* --- words ----------------------------------------------------------------------- */

static const char *item_text(pd_item_t item)
{
    switch (item) {
    case PD_ITEM_CONNECTOR:
        return "connector";
    case PD_ITEM_OPERATION:
        return "operation";
    case PD_ITEM_NAME:
        return "name";
    case PD_ITEM_NONE:
        break;
    }
    return NULL;
}

/* A rule, and the kind of item by which it decided where it did; new reference. */
static json_t *show_rule(const pd_rule_t *rule, pd_item_t item)
{
    return json_pack("{s:s, s:s*, s:s, s:s*, s:s*, s:s*}", "restriction", rule->id, "name",
                     rule->name, "effect", rule->effect == PD_EFFECT_ALLOW ? "allow" : "block",
                     "item", item_text(item), "role", rule->role, "member", rule->member);
}

/* The rule that decided, or null where none did; new reference. */
static json_t *show_decided(pd_reach_t reach, const pd_reach_trace_t *trace)
{
    const pd_rule_t *rule = trace->decided.rule;

    if (rule == NULL || (reach != PD_REACH_OK && reach != PD_REACH_BLOCKED)) {
        return json_null();
    }
    return show_rule(rule, trace->decided.item);
}

/* The rules that govern, also those that say nothing of what is asked: which allow rule engages the allowlist, and that a
 * member's own replace those of the roles, is seen in no other place. */
static json_t *show_rules(const pd_rules_t *rules)
{
    json_t *shown = json_array();
    int i;
    int k;

    for (i = 0; rules->layers != NULL && i < rules->layers->nelts; i++) {
        const pd_layer_t *layer = APR_ARRAY_IDX(rules->layers, i, const pd_layer_t *);

        for (k = 0; k < layer->rules->nelts && json_array_size(shown) < MAX_RULES_SHOWN; k++) {
            if (json_array_append_new(shown, show_rule(APR_ARRAY_IDX(layer->rules, k,
                                                                     const pd_rule_t *),
                                                       PD_ITEM_NONE)) != 0) {
                json_decref(shown);
                return NULL;
            }
        }
    }
    return shown;
}

static json_t *show_point(pd_reach_t reach, const pd_reach_trace_t *trace)
{
    json_t *decided = show_decided(reach, trace);

    if (json_is_null(decided)) {
        return json_pack("{s:s}", "answer", pd_reach_text(reach));
    }
    return json_pack("{s:s, s:o}", "answer", pd_reach_text(reach), "decided_by", decided);
}

/* --- paths ----------------------------------------------------------------------- */

/* Asks about one name of the operation and notes the answer. Without a tool in the question, the
 * first name that the member has stands for it, else the first of all. account NULL: neither it nor the
 * name is for the asker. */
static pd_status_t add_path(question_t *q, const char *name, const char *via, const char *account,
                            int is_frozen)
{
    int is_hidden = account == NULL;
    pd_reach_trace_t trace;
    pd_found_t found;
    pd_reach_t reach;

    if (++q->path_count > MAX_PATHS) {
        return PD_OK;
    }
    if (pd_boot_left_ms(q->call->deadline) <= 0) {
        return PD_E_TIMEOUT;
    }
    reach = pd_reach_tool(q->snapshot, &q->subject, name, q->call->pool, &found, &trace);
    if (q->name == NULL ||
        (pd_op_text(q->call, "tool") == NULL && reach == PD_REACH_OK && q->reach != PD_REACH_OK)) {
        q->name = is_hidden ? PRIVATE : name;
        q->reach = reach;
        q->trace = trace;
        q->found = found;
    }
    return json_array_append_new(q->paths, json_pack("{s:s, s:s, s:s, s:s, s:b}", "tool",
                                                     is_hidden ? PRIVATE : name, "via", via,
                                                     "account", is_hidden ? PRIVATE : account,
                                                     "answer", pd_reach_text(reach), "frozen",
                                                     is_frozen)) == 0
               ? PD_OK
               : PD_E_NOMEM;
}

static pd_status_t add_connections(question_t *q, const apr_array_header_t *connections)
{
    char name[MCP_MAX_TOOL_NAME + 1];
    pd_status_t status = PD_OK;
    int i;

    for (i = 0; status == PD_OK && connections != NULL && i < connections->nelts; i++) {
        const pd_connection_t *connection = APR_ARRAY_IDX(connections, i, const pd_connection_t *);

        if (connection->connector != q->connector ||
            mcp_name_tool(connection->label, q->connector->slug, q->operation->id, name,
                          sizeof(name)) != MCP_OK) {
            continue;
        }
        status = add_path(q, apr_pstrdup(q->call->pool, name), "connection",
                          connection->owner != NULL && q->hides_own ? NULL : connection->label, 0);
    }
    return status;
}

/* Entries of all toolboxes, also of those that the member does not have: why not is the answer. */
static pd_status_t add_entries(question_t *q)
{
    const apr_array_header_t *toolboxes = q->snapshot->toolboxes->sorted;
    pd_status_t status = PD_OK;
    int i;
    int k;

    for (i = 0; i < toolboxes->nelts; i++) {
        const pd_toolbox_t *toolbox = APR_ARRAY_IDX(toolboxes, i, const pd_toolbox_t *);

        for (k = 0; status == PD_OK && k < toolbox->entries->nelts; k++) {
            const pd_entry_t *entry = &APR_ARRAY_IDX(toolbox->entries, k, pd_entry_t);

            if (strcmp(entry->connector_id, q->connector->id) == 0 &&
                strcmp(entry->operation_id, q->operation->id) == 0) {
                status = add_path(q, entry->tool_name, "toolbox", toolbox->name,
                                  json_object_size(entry->frozen) > 0);
            }
        }
    }
    return status;
}

/* Every name that leads to the same operation, so that a value frozen on one path is not believed
 * to be frozen on all. */
static pd_status_t add_paths(question_t *q)
{
    const char *member_id = q->subject.member_id;
    pd_status_t status = PD_OK;

    if (q->operation != NULL) {
        status = add_connections(q, pd_snapshot_own(q->snapshot, member_id));
    }
    if (q->operation != NULL && status == PD_OK) {
        status = add_connections(q, q->snapshot->ground->shared);
    }
    if (q->operation != NULL && status == PD_OK) {
        status = add_entries(q);
    }
    return status;
}

/* --- points ---------------------------------------------------------------------- */

/* Browse and connect speak of the operation under no name: they are asked before there is one. */
static json_t *show_points(question_t *q)
{
    apr_pool_t *pool = q->call->pool;
    pd_reach_trace_t browse;
    pd_reach_trace_t connect;
    pd_reach_t may_browse;
    pd_reach_t may_connect;

    if (q->operation == NULL) {
        return json_pack("{s:o, s:o}", "advertise", show_point(q->reach, &q->trace), "execute",
                         show_point(q->reach, &q->trace));
    }
    may_browse =
        pd_reach_operation(q->snapshot, &q->subject, q->connector, q->operation, pool, &browse);
    may_connect = pd_reach_connector(q->snapshot, &q->subject, q->connector, pool, &connect);
    return json_pack("{s:o, s:o, s:o, s:o}", "browse", show_point(may_browse, &browse), "connect",
                     show_point(may_connect, &connect), "advertise",
                     show_point(q->reach, &q->trace), "execute", show_point(q->reach, &q->trace));
}

/* --- the URL --------------------------------------------------------------------- */

static const char *verdict_text(char verdict)
{
    return verdict == 'a' ? "allow" : verdict == 'b' ? "block" : "deny";
}

/* Withheld operations that claim some URLs of this one: values that lead there are refused. */
static json_t *show_claims(const question_t *q, const char *verdicts)
{
    const apr_array_header_t *operations = q->connector->operations;
    const pd_template_t *own = pd_template_read(q->operation, q->call->pool);
    json_t *claims = json_array();
    int i;

    for (i = 0; i < operations->nelts && json_array_size(claims) < MAX_CLAIMS; i++) {
        const pd_operation_t *other = &APR_ARRAY_IDX(operations, i, pd_operation_t);
        const pd_template_t *theirs;
        int is_twin;

        if (other == q->operation || verdicts[i] == 'a' ||
            strcmp(other->method, q->operation->method) != 0) {
            continue;
        }
        theirs = pd_template_read(other, q->call->pool);
        is_twin = strcmp(pd_template_shape(own), pd_template_shape(theirs)) == 0;
        if (is_twin ? verdicts[i] != 'b'
                    : !pd_template_overlaps(own, theirs) || pd_template_order(theirs, own) <= 0) {
            continue;
        }
        if (json_array_append_new(claims, json_pack("{s:s, s:s, s:s}", "operation", other->id,
                                                    "path", other->path, "verdict",
                                                    verdict_text(verdicts[i]))) != 0) {
            json_decref(claims);
            return NULL;
        }
    }
    return claims;
}

/* As the worker judges the URL of a call by this name; null where there is nothing to call. */
static json_t *show_url(const question_t *q)
{
    const pd_connection_t *connection;
    const char *verdicts;
    ptrdiff_t at;

    if (q->operation == NULL || q->found.connections == NULL || q->found.connections->nelts == 0) {
        return json_null();
    }
    connection = APR_ARRAY_IDX(q->found.connections, 0, const pd_connection_t *);
    verdicts = pd_reach_verdicts(q->snapshot, &q->subject, connection, TOP_RUNG, q->call->pool);
    at = q->operation - (const pd_operation_t *)q->connector->operations->elts;
    return json_pack("{s:s, s:s, s:s, s:o}", "connection",
                     connection->owner != NULL && q->hides_own ? PRIVATE : connection->label,
                     "template",
                     q->operation->path, "verdict", verdict_text(verdicts[at]), "claimed_by",
                     show_claims(q, verdicts));
}

/* --- the answer ------------------------------------------------------------------ */

static json_t *show_answer(question_t *q)
{
    const pd_object_t *member = q->member;
    json_t *shown = json_pack(
        "{s:s, s:s*, s:s*, s:O*, s:s, s:o, s:s, s:o, s:o, s:o, s:O}", "member", member->id, "email",
        mcp_json_str(member->doc, "email"), "state", mcp_json_str(member->doc, "state"), "roles",
        json_object_get(member->doc, "roles"), "governed",
        pd_governed_text(q->trace.rules.governed), "rules", show_rules(&q->trace.rules), "answer",
        pd_reach_text(q->reach), "decided_by", show_decided(q->reach, &q->trace), "points",
        show_points(q), "url", show_url(q), "paths", q->paths);
    json_t *what = json_pack("{s:s*, s:s*, s:s*, s:s*}", "tool", q->name, "connector",
                             q->connector != NULL ? q->connector->id : NULL, "connector_slug",
                             q->connector != NULL ? q->connector->slug : NULL, "operation",
                             q->operation != NULL ? q->operation->id : NULL);
    int failed = shown == NULL || what == NULL || json_object_update(shown, what) != 0;

    if (!failed && q->path_count > MAX_PATHS) {
        failed = json_object_set_new(shown, "more_paths",
                                     json_integer((json_int_t)(q->path_count - MAX_PATHS))) != 0;
    }
    json_decref(what);
    if (failed) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

pd_status_t pd_op_restrictions_explain(pd_op_call_t *call)
{
    question_t q = {.call = call, .snapshot = call->snapshot};
    const char *named = pd_op_text(call, "member");
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = pd_op_subject_named(call, named, &q.subject);
    }
    if (status == PD_OK) {
        status = pd_op_member(call, q.subject.member_id != NULL ? q.subject.member_id : named,
                              &q.member);
    }
    if (status != PD_OK) {
        return status;
    }
    q.paths = pd_op_keep(call, json_array());
    q.subject.member_id = q.member->id;
    q.subject.role_names = pd_op_role_names(call, json_object_get(q.member->doc, "roles"));
    q.hides_own = !pd_op_is_actor(call, q.member->id) && !sees_all_connections(call);
    status = ask(&q);
    if (status == PD_OK) {
        status = add_paths(&q);
    }
    if (status != PD_OK) {
        return status;
    }
    if (q.name == NULL) {
        /* no account, no entry: what is left to say is what the catalog shows */
        q.reach = pd_reach_operation(q.snapshot, &q.subject, q.connector, q.operation, call->pool,
                                     &q.trace);
        q.reach = q.reach == PD_REACH_OK ? PD_REACH_UNKNOWN : q.reach;
    }
    return pd_op_answer(call, show_answer(&q));
}
