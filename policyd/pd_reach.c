/* What a member can have: see pd_reach.h. Each question goes the same way: whose it is, whether
 * it is forbidden, what the rules say; the first that withholds it is the answer. */
#include "pd_reach.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_kind_text.h"
#include "pd_reach_private.h"

/* --- words ----------------------------------------------------------------------- */

static const struct {
    mcp_code_t code;
    const char *text;
} answers[] = {
    [PD_REACH_UNREADABLE] = {MCP_CODE_POLICY_UNAVAILABLE, "rules could not be read"},
    [PD_REACH_OK] = {MCP_CODE_NONE, "ok"},
    [PD_REACH_UNKNOWN] = {MCP_CODE_UNKNOWN_TOOL, "unknown"},
    [PD_REACH_OTHERS] = {MCP_CODE_RESTRICTED, "connection of another member"},
    [PD_REACH_TOOLBOX_ONLY] = {MCP_CODE_RESTRICTED, "connection serves toolboxes only"},
    [PD_REACH_NO_TOOLBOX] = {MCP_CODE_RESTRICTED, "toolbox of others"},
    [PD_REACH_NO_CONNECTION] = {MCP_CODE_RESTRICTED, "no connection for the toolbox entry"},
    [PD_REACH_FORBIDDEN] = {MCP_CODE_FORBIDDEN, "classified forbidden"},
    [PD_REACH_NOT_ALLOWED] = {MCP_CODE_RESTRICTED, "not on the allowlist"},
    [PD_REACH_BLOCKED] = {MCP_CODE_RESTRICTED, "blocked"},
};

#define ANSWERS (sizeof(answers) / sizeof(answers[0]))

mcp_code_t pd_reach_code(pd_reach_t reach)
{
    return answers[(size_t)reach < ANSWERS ? (size_t)reach : 0].code;
}

const char *pd_reach_text(pd_reach_t reach)
{
    return answers[(size_t)reach < ANSWERS ? (size_t)reach : 0].text;
}

/* --- rules and classification ---------------------------------------------------- */

/* What has no sound classification is forbidden too. */
static int is_forbidden(const pd_operation_t *operation)
{
    return operation->klass != MCP_CLASS_READ && operation->klass != MCP_CLASS_WRITE &&
           operation->klass != MCP_CLASS_DESTRUCTIVE;
}

static pd_reach_t reach_of(pd_verdict_t verdict)
{
    switch (verdict) {
    case PD_VERDICT_ALLOWED:
        return PD_REACH_OK;
    case PD_VERDICT_NOT_ALLOWED:
        return PD_REACH_NOT_ALLOWED;
    case PD_VERDICT_BLOCKED:
        return PD_REACH_BLOCKED;
    case PD_VERDICT_UNREADABLE:
        break;
    }
    return PD_REACH_UNREADABLE;
}

void pd_reach_rules(const pd_snapshot_t *snapshot, const pd_subject_t *subject, apr_pool_t *pool,
                    pd_rules_t *ret)
{
    pd_snapshot_rules(snapshot, subject->member_id, subject->role_names, pool, ret);
}

pd_reach_t pd_reach_judge(const pd_bearing_t *bearing, const pd_operation_t *operation,
                          const char *name, pd_reach_t withheld, pd_reach_trace_t *trace)
{
    pd_verdict_t verdict = PD_VERDICT_UNREADABLE;

    if (trace != NULL) {
        verdict = pd_rules_judge(bearing, operation->id, name, &trace->decided);
        trace->rules = *bearing->rules;
        trace->verdict = verdict;
    }
    if (withheld != PD_REACH_OK) {
        return withheld;
    }
    if (is_forbidden(operation)) {
        return PD_REACH_FORBIDDEN;
    }
    return reach_of(trace != NULL ? verdict : pd_rules_judge(bearing, operation->id, name, NULL));
}

/* --- connections ------------------------------------------------------------------- */

int pd_reach_is_usable(const pd_connection_t *connection, const pd_entry_t *entry)
{
    return connection != NULL && strcmp(connection->connector->id, entry->connector_id) == 0;
}

static int by_label(const void *a, const void *b)
{
    const pd_connection_t *x = *(pd_connection_t *const *)a;
    const pd_connection_t *y = *(pd_connection_t *const *)b;
    int order = strcmp(x->label, y->label);

    return order != 0 ? order : strcmp(x->id, y->id);
}

int pd_reach_is_among(const apr_array_header_t *connections, const pd_connection_t *connection)
{
    int i;

    for (i = 0; i < connections->nelts; i++) {
        if (APR_ARRAY_IDX(connections, i, const pd_connection_t *) == connection) {
            return 1;
        }
    }
    return 0;
}

apr_array_header_t *pd_reach_connections(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                                         const pd_entry_t *entry, apr_pool_t *pool)
{
    apr_array_header_t *made = apr_array_make(pool, 2, sizeof(pd_connection_t *));
    const apr_array_header_t *own = NULL;
    int i;

    if (entry->is_own && subject->member_id != NULL) {
        own = pd_snapshot_own(snapshot, subject->member_id);
    }
    for (i = 0; own != NULL && i < own->nelts; i++) {
        pd_connection_t *connection = APR_ARRAY_IDX(own, i, pd_connection_t *);

        if (pd_reach_is_usable(connection, entry)) {
            APR_ARRAY_PUSH(made, pd_connection_t *) = connection;
        }
    }
    for (i = 0; !entry->is_own && i < entry->connection_ids->nelts; i++) {
        pd_connection_t *connection =
            pd_snapshot_connection(snapshot, APR_ARRAY_IDX(entry->connection_ids, i, const char *));

        /* a member's own connection serves nobody through its id, not even its owner */
        if (pd_reach_is_usable(connection, entry) && connection->owner == NULL &&
            !pd_reach_is_among(made, connection)) {
            APR_ARRAY_PUSH(made, pd_connection_t *) = connection;
        }
    }
    qsort(made->elts, (size_t)made->nelts, sizeof(pd_connection_t *), by_label);
    return made;
}

/* Bytes of the account label or toolbox name that a tool's name begins with, 0: there is none. */
static size_t label_bytes(const char *name)
{
    const char *mark = strstr(name, "__");

    return mark != NULL ? (size_t)(mark - name) : 0;
}

/* --- plain tools --------------------------------------------------------------------- */

pd_connection_t *pd_reach_find_plain(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                                     const char *name, pd_tool_t **ret_tool)
{
    size_t bytes = label_bytes(name);
    pd_connection_t *connection =
        bytes > 0 ? pd_snapshot_reach(snapshot, subject->member_id, name, bytes) : NULL;
    pd_tool_t *tool = connection != NULL ? pd_snapshot_tool(connection, name) : NULL;

    if (tool == NULL) {
        return NULL;
    }
    *ret_tool = tool;
    return connection;
}

/* Somebody's connection that has a tool of this name, the first by id, or NULL. */
static pd_connection_t *find_others(const pd_snapshot_t *snapshot, const char *name,
                                    pd_tool_t **ret_tool)
{
    size_t bytes = label_bytes(name);
    const apr_array_header_t *labelled =
        bytes > 0 ? apr_hash_get(snapshot->ground->any_label, name, (apr_ssize_t)bytes) : NULL;
    int i;

    for (i = 0; labelled != NULL && i < labelled->nelts; i++) {
        pd_connection_t *connection = APR_ARRAY_IDX(labelled, i, pd_connection_t *);
        pd_tool_t *tool = pd_snapshot_tool(connection, name);

        if (tool != NULL) {
            *ret_tool = tool;
            return connection;
        }
    }
    return NULL;
}

void pd_reach_fill_plain(const pd_connection_t *connection, pd_tool_t *tool, pd_found_t *ret)
{
    ret->name = tool->name;
    ret->tool = tool;
    ret->operation = tool->operation;
    ret->connector = connection->connector;
}

/* --- entries ---------------------------------------------------------------------------- */

static pd_entry_t *find_entry(const pd_snapshot_t *snapshot, const char *name)
{
    size_t bytes = label_bytes(name);
    const pd_toolbox_t *toolbox =
        bytes > 0 ? apr_hash_get(snapshot->toolboxes->by_name, name, (apr_ssize_t)bytes) : NULL;

    return toolbox != NULL ? apr_hash_get(toolbox->by_name, name, APR_HASH_KEY_STRING) : NULL;
}

pd_reach_t pd_reach_fill_entry(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                               pd_entry_t *entry, apr_pool_t *pool, pd_found_t *ret)
{
    const pd_connector_t *connector = pd_snapshot_connector(snapshot, entry->connector_id);

    ret->name = entry->tool_name;
    ret->entry = entry;
    ret->toolbox = entry->toolbox;
    ret->connector = connector;
    ret->operation =
        connector != NULL ? pd_catalog_operation(connector, entry->operation_id) : NULL;
    if (!pd_toolbox_is_for(entry->toolbox, subject->member_id, subject->role_names)) {
        return PD_REACH_NO_TOOLBOX;
    }
    if (ret->operation == NULL) {
        return PD_REACH_UNKNOWN;
    }
    ret->connections = pd_reach_connections(snapshot, subject, entry, pool);
    return ret->connections->nelts > 0 ? PD_REACH_OK : PD_REACH_NO_CONNECTION;
}

/* --- one tool -------------------------------------------------------------------------------- */

/* Finds what the name stands for, and what withholds it before classification and rules are
 * asked, else OK. */
static pd_reach_t find(const pd_snapshot_t *snapshot, const pd_subject_t *subject, const char *name,
                       apr_pool_t *pool, pd_found_t *ret)
{
    pd_tool_t *tool = NULL;
    pd_connection_t *connection = pd_reach_find_plain(snapshot, subject, name, &tool);
    pd_entry_t *entry;

    if (connection != NULL) {
        pd_reach_fill_plain(connection, tool, ret);
        APR_ARRAY_PUSH(ret->connections, pd_connection_t *) = connection;
        return connection->is_toolbox_only ? PD_REACH_TOOLBOX_ONLY : PD_REACH_OK;
    }
    entry = find_entry(snapshot, name);
    if (entry != NULL) {
        return pd_reach_fill_entry(snapshot, subject, entry, pool, ret);
    }
    connection = find_others(snapshot, name, &tool);
    if (connection != NULL) {
        pd_reach_fill_plain(connection, tool, ret);
        return PD_REACH_OTHERS;
    }
    return PD_REACH_UNKNOWN;
}

pd_reach_t pd_reach_tool(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                         const char *name, apr_pool_t *pool, pd_found_t *ret,
                         pd_reach_trace_t *trace)
{
    pd_rules_t rules;
    pd_bearing_t bearing;
    pd_reach_t reach;

    memset(ret, 0, sizeof(*ret));
    ret->connections = apr_array_make(pool, 1, sizeof(pd_connection_t *));
    reach = find(snapshot, subject, name, pool, ret);
    if (reach != PD_REACH_OK && trace == NULL) {
        return reach;
    }
    pd_reach_rules(snapshot, subject, pool, &rules);
    if (trace != NULL) {
        memset(trace, 0, sizeof(*trace));
        trace->rules = rules;
    }
    if (ret->operation == NULL) {
        return reach;
    }
    pd_rules_bear(&rules, ret->connector->id, pool, &bearing);
    return pd_reach_judge(&bearing, ret->operation, ret->name, reach, trace);
}

/* --- the catalog ------------------------------------------------------------------------------ */

void pd_reach_begin(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                    const pd_connector_t *connector, apr_pool_t *pool, pd_reach_on_t *ret)
{
    pd_reach_rules(snapshot, subject, pool, &ret->rules);
    pd_rules_bear(&ret->rules, connector->id, pool, &ret->bearing);
}

pd_reach_t pd_reach_ask(const pd_reach_on_t *on, const pd_operation_t *operation, const char *name,
                        pd_reach_trace_t *trace)
{
    return pd_reach_judge(&on->bearing, operation, name, PD_REACH_OK, trace);
}

pd_reach_t pd_reach_operation(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                              const pd_connector_t *connector, const pd_operation_t *operation,
                              apr_pool_t *pool, pd_reach_trace_t *trace)
{
    pd_reach_on_t on;

    pd_reach_begin(snapshot, subject, connector, pool, &on);
    return pd_reach_ask(&on, operation, NULL, trace);
}

/* A connector without operations: whether the rules withhold it as a whole. */
static pd_reach_t ask_empty(const pd_reach_on_t *on, pd_reach_trace_t *trace)
{
    pd_decided_t decided;
    pd_verdict_t verdict = pd_rules_judge(&on->bearing, NULL, NULL, &decided);

    if (trace != NULL) {
        *trace = (pd_reach_trace_t){.rules = on->rules, .verdict = verdict, .decided = decided};
    }
    return reach_of(verdict);
}

pd_reach_t pd_reach_connector(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                              const pd_connector_t *connector, apr_pool_t *pool,
                              pd_reach_trace_t *trace)
{
    const apr_array_header_t *operations = connector->operations;
    pd_reach_t why = PD_REACH_FORBIDDEN;
    const pd_operation_t *about = NULL;
    pd_reach_on_t on;
    int i;

    pd_reach_begin(snapshot, subject, connector, pool, &on);
    if (operations->nelts == 0) {
        return ask_empty(&on, trace);
    }
    for (i = 0; i < operations->nelts && why != PD_REACH_OK; i++) {
        const pd_operation_t *operation = &APR_ARRAY_IDX(operations, i, pd_operation_t);
        pd_reach_t reach = pd_reach_ask(&on, operation, NULL, NULL);

        if (about == NULL || reach == PD_REACH_OK ||
            (why == PD_REACH_FORBIDDEN && reach != PD_REACH_FORBIDDEN)) {
            why = reach;
            about = operation;
        }
    }
    return pd_reach_ask(&on, about, NULL, trace);
}
