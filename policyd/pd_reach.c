/* What a member can have: see pd_reach.h. Each question goes the same way: whose it is, whether
 * it is forbidden, what the rules say; the first that withholds it is the answer. */
#include "pd_reach.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_kind_text.h"

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

static void rules_of(const pd_snapshot_t *snapshot, const pd_subject_t *subject, apr_pool_t *pool,
                     pd_rules_t *ret)
{
    pd_snapshot_rules(snapshot, subject->member_id, subject->role_names, pool, ret);
}

/* `withheld`: what decided before, OK if nothing has. The rules are asked in any case where a
 * trace is wanted, and change nothing then. */
static pd_reach_t judge(const pd_bearing_t *bearing, const pd_operation_t *operation,
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

static int is_usable(const pd_connection_t *connection, const pd_entry_t *entry)
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

static int is_among(const apr_array_header_t *connections, const pd_connection_t *connection)
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

        if (is_usable(connection, entry)) {
            APR_ARRAY_PUSH(made, pd_connection_t *) = connection;
        }
    }
    for (i = 0; !entry->is_own && i < entry->connection_ids->nelts; i++) {
        pd_connection_t *connection =
            pd_snapshot_connection(snapshot, APR_ARRAY_IDX(entry->connection_ids, i, const char *));

        /* a member's own connection serves nobody through its id, not even its owner */
        if (is_usable(connection, entry) && connection->owner == NULL &&
            !is_among(made, connection)) {
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

/* The connection the subject reaches that has a tool of this name, whether or not he can have
 * it. */
static pd_connection_t *find_plain(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
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

static void fill_plain(const pd_connection_t *connection, pd_tool_t *tool, pd_found_t *ret)
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

/* What withholds an entry before classification and rules are asked, else OK. */
static pd_reach_t fill_entry(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
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
    pd_connection_t *connection = find_plain(snapshot, subject, name, &tool);
    pd_entry_t *entry;

    if (connection != NULL) {
        fill_plain(connection, tool, ret);
        APR_ARRAY_PUSH(ret->connections, pd_connection_t *) = connection;
        return connection->is_toolbox_only ? PD_REACH_TOOLBOX_ONLY : PD_REACH_OK;
    }
    entry = find_entry(snapshot, name);
    if (entry != NULL) {
        return fill_entry(snapshot, subject, entry, pool, ret);
    }
    connection = find_others(snapshot, name, &tool);
    if (connection != NULL) {
        fill_plain(connection, tool, ret);
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
    rules_of(snapshot, subject, pool, &rules);
    if (trace != NULL) {
        memset(trace, 0, sizeof(*trace));
        trace->rules = rules;
    }
    if (ret->operation == NULL) {
        return reach;
    }
    pd_rules_bear(&rules, ret->connector->id, pool, &bearing);
    return judge(&bearing, ret->operation, ret->name, reach, trace);
}

/* --- the catalog ------------------------------------------------------------------------------ */

void pd_reach_begin(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                    const pd_connector_t *connector, apr_pool_t *pool, pd_reach_on_t *ret)
{
    rules_of(snapshot, subject, pool, &ret->rules);
    pd_rules_bear(&ret->rules, connector->id, pool, &ret->bearing);
}

pd_reach_t pd_reach_ask(const pd_reach_on_t *on, const pd_operation_t *operation, const char *name,
                        pd_reach_trace_t *trace)
{
    return judge(&on->bearing, operation, name, PD_REACH_OK, trace);
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

/* --- all tools -------------------------------------------------------------------------------- */

typedef struct walk {
    const pd_snapshot_t *snapshot;
    const pd_subject_t *subject;
    apr_pool_t *pool;
    pd_rules_t rules;
    apr_hash_t *bearings; /* connector id -> pd_bearing_t *: several entries share one */
    pd_reach_fn *each;
    void *baton;
} walk_t;

static const pd_bearing_t *bearing_on(walk_t *walk, const char *connector_id)
{
    pd_bearing_t *bearing = apr_hash_get(walk->bearings, connector_id, APR_HASH_KEY_STRING);

    if (bearing == NULL) {
        bearing = apr_palloc(walk->pool, sizeof(*bearing));
        pd_rules_bear(&walk->rules, connector_id, walk->pool, bearing);
        apr_hash_set(walk->bearings, connector_id, APR_HASH_KEY_STRING, bearing);
    }
    return bearing;
}

/* Marks the tools whose operation's id has this hash: one, or rarely more. */
static void mark(const pd_connection_t *connection, apr_uint32_t hash, char *marks)
{
    int low = 0;
    int high = connection->tools->nelts;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (connection->places[middle].hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < connection->tools->nelts && connection->places[low].hash == hash; low++) {
        marks[connection->places[low].tool] = 1;
    }
}

/* Which tools of a connection are worth asking about, a byte each; NULL: all. Most members have a few
 * operations of each connector: an allowlist is walked by what it names and not by all that there
 * is. Whether they can be had is still for judge() to say. */
static const char *marks_of(const walk_t *walk, const pd_bearing_t *bearing,
                            const pd_connection_t *connection)
{
    char *marks;
    int i;
    int k;

    if (bearing->bears != PD_BEARS_LISTED) {
        return NULL;
    }
    marks = apr_pcalloc(walk->pool, (size_t)connection->tools->nelts + 1);
    for (i = 0; i < bearing->parts->nelts; i++) {
        const pd_bearing_part_t *at = &APR_ARRAY_IDX(bearing->parts, i, pd_bearing_part_t);

        for (k = 0; at->rule->effect == PD_EFFECT_ALLOW && k < at->part->operations->nelts; k++) {
            mark(connection, at->part->hashes[k], marks);
        }
    }
    return marks;
}

static int next_marked(const char *marks, int i, int count)
{
    const char *mark;

    if (marks == NULL || i >= count) {
        return i;
    }
    mark = memchr(marks + i, 1, (size_t)(count - i));
    return mark != NULL ? (int)(mark - marks) : count;
}

/* What is asked about lies all over the memory of a large catalog, and to wait for one line after the other took most of a walk
 * (measured). Hints alone: nothing depends on them. */
static void fetch_marked(const pd_connection_t *connection, const char *marks)
{
    const pd_tool_t *tools = (const pd_tool_t *)(const void *)connection->tools->elts;
    int count = connection->tools->nelts;
    int i;

    for (i = next_marked(marks, 0, count); i < count; i = next_marked(marks, i + 1, count)) {
        __builtin_prefetch(&tools[i]);
    }
    for (i = next_marked(marks, 0, count); i < count; i = next_marked(marks, i + 1, count)) {
        __builtin_prefetch(&tools[i].operation->id);
        __builtin_prefetch(&tools[i].operation->klass);
    }
    for (i = next_marked(marks, 0, count); i < count; i = next_marked(marks, i + 1, count)) {
        __builtin_prefetch(tools[i].operation->id);
    }
}

/* In steps, since each needs what the one before fetches. */
static void fetch_connections(const apr_array_header_t *list, int i)
{
    if (i + 3 < list->nelts) {
        const pd_connection_t *third = APR_ARRAY_IDX(list, i + 3, const pd_connection_t *);

        __builtin_prefetch(&third->label);
        __builtin_prefetch(&third->places);
    }
    if (i + 2 < list->nelts) {
        const pd_connection_t *second = APR_ARRAY_IDX(list, i + 2, const pd_connection_t *);

        __builtin_prefetch(second->label);
        __builtin_prefetch(second->connector);
        __builtin_prefetch(second->tools);
    }
    if (i + 1 < list->nelts) {
        const pd_connection_t *next = APR_ARRAY_IDX(list, i + 1, const pd_connection_t *);
        int quarter = next->tools->nelts / 4;

        __builtin_prefetch(next->connector->id);
        __builtin_prefetch(next->places + quarter);
        __builtin_prefetch(next->places + 2 * quarter);
        __builtin_prefetch(next->places + 3 * quarter);
    }
}

static pd_status_t walk_connection(walk_t *walk, pd_connection_t *connection)
{
    pd_found_t found = {.connector = connection->connector};
    pd_status_t status = PD_OK;
    pd_bearing_t bearing;
    const char *marks;
    int count = connection->tools->nelts;
    int i;

    pd_rules_bear(&walk->rules, connection->connector->id, walk->pool, &bearing);
    if (bearing.bears == PD_BEARS_NONE) {
        return PD_OK;
    }
    marks = marks_of(walk, &bearing, connection);
    if (marks != NULL) {
        fetch_marked(connection, marks);
    }
    for (i = next_marked(marks, 0, count); i < count && status == PD_OK;
         i = next_marked(marks, i + 1, count)) {
        pd_tool_t *tool = &APR_ARRAY_IDX(connection->tools, i, pd_tool_t);

        if (judge(&bearing, tool->operation, tool->name, PD_REACH_OK, NULL) == PD_REACH_OK) {
            if (found.connections == NULL) {
                found.connections = apr_array_make(walk->pool, 1, sizeof(pd_connection_t *));
                APR_ARRAY_PUSH(found.connections, pd_connection_t *) = connection;
            }
            fill_plain(connection, tool, &found);
            status = walk->each(&found, walk->baton);
        }
    }
    return status;
}

/* The same answer as looking the label up: of two with one label only the one that a name leads to is
 * there. Lists are sorted by label, so most are seen at once to share theirs with nobody. */
static int is_reached(const walk_t *walk, const apr_array_header_t *list, int i, int has_own)
{
    const pd_connection_t *connection = APR_ARRAY_IDX(list, i, const pd_connection_t *);

    if (connection->is_toolbox_only) {
        return 0;
    }
    if (!has_own &&
        (i == 0 || strcmp(APR_ARRAY_IDX(list, i - 1, const pd_connection_t *)->label,
                          connection->label) != 0)) {
        return 1;
    }
    return pd_snapshot_reach(walk->snapshot, walk->subject->member_id, connection->label,
                             strlen(connection->label)) == connection;
}

/* Shared and own connections in the order of their labels; both lists are sorted. */
static pd_status_t walk_connections(walk_t *walk)
{
    const apr_array_header_t *shared = walk->snapshot->ground->shared;
    const apr_array_header_t *own = walk->subject->member_id != NULL
                                        ? pd_snapshot_own(walk->snapshot, walk->subject->member_id)
                                        : NULL;
    int own_count = own != NULL ? own->nelts : 0;
    pd_status_t status = PD_OK;
    int i = 0;
    int k = 0;

    while (status == PD_OK && (i < shared->nelts || k < own_count)) {
        pd_connection_t *a = i < shared->nelts ? APR_ARRAY_IDX(shared, i, pd_connection_t *) : NULL;
        pd_connection_t *b = k < own_count ? APR_ARRAY_IDX(own, k, pd_connection_t *) : NULL;

        if (b == NULL || (a != NULL && strcmp(a->label, b->label) < 0)) {
            fetch_connections(shared, i);
            status = is_reached(walk, shared, i, own_count > 0) ? walk_connection(walk, a) : PD_OK;
            i++;
        } else {
            status = is_reached(walk, own, k, 1) ? walk_connection(walk, b) : PD_OK;
            k++;
        }
    }
    return status;
}

static pd_status_t walk_toolbox(walk_t *walk, const pd_toolbox_t *toolbox)
{
    pd_status_t status = PD_OK;
    int i;

    if (!pd_toolbox_is_for(toolbox, walk->subject->member_id, walk->subject->role_names)) {
        return PD_OK;
    }
    for (i = 0; i < toolbox->entries->nelts && status == PD_OK; i++) {
        pd_entry_t *entry = &APR_ARRAY_IDX(toolbox->entries, i, pd_entry_t);
        pd_found_t found = {.name = NULL};
        pd_tool_t *plain;

        if (fill_entry(walk->snapshot, walk->subject, entry, walk->pool, &found) == PD_REACH_OK &&
            judge(bearing_on(walk, found.connector->id), found.operation, found.name, PD_REACH_OK,
                  NULL) == PD_REACH_OK &&
            find_plain(walk->snapshot, walk->subject, found.name, &plain) == NULL) {
            status = walk->each(&found, walk->baton);
        }
    }
    return status;
}

pd_status_t pd_reach_each(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                          apr_pool_t *pool, pd_reach_fn *each, void *baton)
{
    const apr_array_header_t *toolboxes = snapshot->toolboxes->sorted;
    walk_t walk = {.snapshot = snapshot,
                   .subject = subject,
                   .pool = pool,
                   .bearings = apr_hash_make(pool),
                   .each = each,
                   .baton = baton};
    pd_status_t status;
    int i;

    rules_of(snapshot, subject, pool, &walk.rules);
    status = walk_connections(&walk);
    for (i = 0; i < toolboxes->nelts && status == PD_OK; i++) {
        status = walk_toolbox(&walk, APR_ARRAY_IDX(toolboxes, i, const pd_toolbox_t *));
    }
    return status;
}

/* --- verdicts for URLs ------------------------------------------------------------------------ */

/* What is known of an operation on the way to its verdict, over all names that the subject has
 * it by. */
typedef struct standing {
    unsigned char is_had;
    unsigned char is_blocked;
    unsigned char is_narrowed; /* had with frozen values alone */
} standing_t;

static void note(standing_t *standing, pd_reach_t reach)
{
    standing->is_had |= reach == PD_REACH_OK;
    standing->is_blocked |= reach == PD_REACH_BLOCKED || reach == PD_REACH_FORBIDDEN;
}

static standing_t *standing_of(standing_t *all, const pd_connector_t *connector,
                               const pd_operation_t *operation)
{
    return all + (operation - (const pd_operation_t *)connector->operations->elts);
}

/* By plain names. On a connection that has none for the subject they still show which blocks
 * there are. */
static void note_plain(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                       const pd_connection_t *connection, const pd_bearing_t *bearing,
                       standing_t *all)
{
    int is_plain = !connection->is_toolbox_only &&
                   pd_snapshot_reach(snapshot, subject->member_id, connection->label,
                                     strlen(connection->label)) == connection;
    int i;

    for (i = 0; i < connection->tools->nelts; i++) {
        const pd_tool_t *tool = &APR_ARRAY_IDX(connection->tools, i, pd_tool_t);
        pd_reach_t reach = judge(bearing, tool->operation, tool->name, PD_REACH_OK, NULL);

        if (is_plain || reach != PD_REACH_OK) {
            note(standing_of(all, connection->connector, tool->operation), reach);
        }
    }
}

/* By the entries of the subject that use this connection. */
static void note_entries(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                         const pd_connection_t *connection, const pd_bearing_t *bearing,
                         apr_pool_t *pool, standing_t *all)
{
    int i;
    int k;

    for (i = 0; i < snapshot->toolboxes->sorted->nelts; i++) {
        const pd_toolbox_t *toolbox =
            APR_ARRAY_IDX(snapshot->toolboxes->sorted, i, const pd_toolbox_t *);

        if (!pd_toolbox_is_for(toolbox, subject->member_id, subject->role_names)) {
            continue;
        }
        for (k = 0; k < toolbox->entries->nelts; k++) {
            const pd_entry_t *entry = &APR_ARRAY_IDX(toolbox->entries, k, pd_entry_t);
            const pd_operation_t *operation =
                is_usable(connection, entry)
                    ? pd_catalog_operation(connection->connector, entry->operation_id)
                    : NULL;

            if (operation != NULL &&
                is_among(pd_reach_connections(snapshot, subject, entry, pool), connection)) {
                pd_reach_t reach = judge(bearing, operation, entry->tool_name, PD_REACH_OK, NULL);

                if (reach == PD_REACH_OK && json_object_size(entry->frozen) > 0) {
                    standing_of(all, connection->connector, operation)->is_narrowed = 1;
                } else {
                    note(standing_of(all, connection->connector, operation), reach);
                }
            }
        }
    }
}

static int rung_reaches(int rung, mcp_class_t klass)
{
    static const unsigned scopes[] = {0, MCP_SCOPE_READ, MCP_SCOPE_WRITE, MCP_SCOPE_DESTRUCTIVE};
    size_t at = rung > 0 ? (size_t)rung : 0;
    unsigned needed = mcp_scope_of_class(klass);

    return at < sizeof(scopes) / sizeof(scopes[0]) &&
           (mcp_scope_close(scopes[at]) & needed) == needed;
}

const char *pd_reach_verdicts(const pd_snapshot_t *snapshot, const pd_subject_t *subject,
                              const pd_connection_t *connection, int rung, apr_pool_t *pool)
{
    const apr_array_header_t *operations = connection->connector->operations;
    standing_t *all = apr_pcalloc(pool, ((size_t)operations->nelts + 1) * sizeof(*all));
    char *verdicts = apr_palloc(pool, (size_t)operations->nelts + 1);
    pd_reach_on_t on;
    int i;

    pd_reach_begin(snapshot, subject, connection->connector, pool, &on);
    note_plain(snapshot, subject, connection, &on.bearing, all);
    note_entries(snapshot, subject, connection, &on.bearing, pool, all);
    for (i = 0; i < operations->nelts; i++) {
        verdicts[i] = 'd';
        if (!all[i].is_had && !all[i].is_narrowed && all[i].is_blocked) {
            verdicts[i] = 'b';
        } else if (all[i].is_had &&
                   rung_reaches(rung, APR_ARRAY_IDX(operations, i, pd_operation_t).klass)) {
            verdicts[i] = 'a';
        }
    }
    verdicts[operations->nelts] = '\0';
    return verdicts;
}
