/* The walks of the resolver, over everything that a member can have: see pd_reach.h. They ask the same
 * question as for a single tool, and differ in what they find out before only to be spared the
 * asking. */
#include "pd_reach_private.h"

#include <string.h>

#include "../proto/mcp_kind_text.h"

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

/* Marks the tools whose operation's id has this hash: one, or rarely more. What will be asked of them lies
 * all over the memory of a large catalog, and to wait for one line of it after the other took most of
 * a walk (measured): it is fetched meanwhile. */
static void mark(const pd_connection_t *connection, apr_uint32_t hash, char *marks)
{
    const pd_tool_t *tools = (const pd_tool_t *)(const void *)connection->tools->elts;
    int low = 0;
    int high = connection->tools->nelts;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (connection->hashes[middle] < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < connection->tools->nelts && connection->hashes[low] == hash; low++) {
        const pd_place_t *place = &connection->places[low];

        marks[place->tool] = 1;
        __builtin_prefetch(&tools[place->tool]);
        __builtin_prefetch(&place->operation->id);
        __builtin_prefetch(&place->operation->klass);
        __builtin_prefetch(place->id);
    }
}

/* Which tools of a connection are worth asking about, a byte each; NULL: all. Most members have a few
 * operations of each connector: an allowlist is walked by what it names and not by all that there
 * is. Whether they can be had is still for pd_reach_judge() to say. */
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

        for (k = 0; at->effect == PD_EFFECT_ALLOW && k < at->count; k++) {
            __builtin_prefetch(at->operations[k]);
            mark(connection, at->hashes[k], marks);
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

/* A connection on its way: what is worth asking about is known, and what that takes is being
 * fetched. */
typedef struct coming {
    pd_connection_t *connection; /* NULL: none */
    pd_bearing_t bearing;
    const char *marks;
} coming_t;

static void prepare(walk_t *walk, pd_connection_t *connection, coming_t *coming)
{
    coming->connection = NULL;
    pd_rules_bear(&walk->rules, connection->connector->id, walk->pool, &coming->bearing);
    if (coming->bearing.bears != PD_BEARS_NONE) {
        coming->connection = connection;
        coming->marks = marks_of(walk, &coming->bearing, connection);
    }
}

static pd_status_t walk_connection(walk_t *walk, const coming_t *coming)
{
    pd_connection_t *connection = coming->connection;
    int count = connection != NULL ? connection->tools->nelts : 0;
    pd_found_t found = {.name = NULL};
    pd_status_t status = PD_OK;
    int i;

    for (i = next_marked(coming->marks, 0, count); i < count && status == PD_OK;
         i = next_marked(coming->marks, i + 1, count)) {
        pd_tool_t *tool = &APR_ARRAY_IDX(connection->tools, i, pd_tool_t);

        if (pd_reach_judge(&coming->bearing, tool->operation, tool->name, PD_REACH_OK, NULL) ==
            PD_REACH_OK) {
            if (found.connections == NULL) {
                found.connections = apr_array_make(walk->pool, 1, sizeof(pd_connection_t *));
                APR_ARRAY_PUSH(found.connections, pd_connection_t *) = connection;
            }
            pd_reach_fill_plain(connection, tool, &found);
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
    if (!has_own && (i == 0 || strcmp(APR_ARRAY_IDX(list, i - 1, const pd_connection_t *)->label,
                                      connection->label) != 0)) {
        return 1;
    }
    return pd_snapshot_reach(walk->snapshot, walk->subject->member_id, connection->label,
                             strlen(connection->label)) == connection;
}

/* Fetches what the next ones of the list will be asked for, in steps, since each needs what the one
 * before fetched. */
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
        int third = next->tools->nelts / 3;

        __builtin_prefetch(next->connector->id);
        __builtin_prefetch(next->hashes);
        __builtin_prefetch(next->hashes + third);
        __builtin_prefetch(next->hashes + 2 * third);
    }
}

/* Shared and own connections in the order of their labels, as both lists are sorted. Each is asked about
 * when the next one is under way. */
static pd_status_t walk_connections(walk_t *walk)
{
    const apr_array_header_t *shared = walk->snapshot->ground->shared;
    const apr_array_header_t *own = walk->subject->member_id != NULL
                                        ? pd_snapshot_own(walk->snapshot, walk->subject->member_id)
                                        : NULL;
    int own_count = own != NULL ? own->nelts : 0;
    coming_t two[2] = {{.connection = NULL}, {.connection = NULL}};
    pd_status_t status = PD_OK;
    int turn = 0;
    int i = 0;
    int k = 0;

    while (status == PD_OK && (i < shared->nelts || k < own_count)) {
        pd_connection_t *a = i < shared->nelts ? APR_ARRAY_IDX(shared, i, pd_connection_t *) : NULL;
        pd_connection_t *b = k < own_count ? APR_ARRAY_IDX(own, k, pd_connection_t *) : NULL;
        int is_own = a == NULL || (b != NULL && strcmp(a->label, b->label) >= 0);

        two[turn].connection = NULL;
        if (!is_own) {
            fetch_connections(shared, i);
        }
        if (is_own ? is_reached(walk, own, k, 1) : is_reached(walk, shared, i, own_count > 0)) {
            prepare(walk, is_own ? b : a, &two[turn]);
        }
        i += !is_own;
        k += is_own;
        turn = 1 - turn;
        status = walk_connection(walk, &two[turn]);
    }
    return status == PD_OK ? walk_connection(walk, &two[1 - turn]) : status;
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

        if (pd_reach_fill_entry(walk->snapshot, walk->subject, entry, walk->pool, &found) ==
                PD_REACH_OK &&
            pd_reach_judge(bearing_on(walk, found.connector->id), found.operation, found.name,
                           PD_REACH_OK, NULL) == PD_REACH_OK &&
            pd_reach_find_plain(walk->snapshot, walk->subject, found.name, &plain) == NULL) {
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

    pd_reach_rules(snapshot, subject, pool, &walk.rules);
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
        pd_reach_t reach = pd_reach_judge(bearing, tool->operation, tool->name, PD_REACH_OK, NULL);

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
                pd_reach_is_usable(connection, entry)
                    ? pd_catalog_operation(connection->connector, entry->operation_id)
                    : NULL;

            if (operation != NULL &&
                pd_reach_is_among(pd_reach_connections(snapshot, subject, entry, pool),
                                  connection)) {
                pd_reach_t reach =
                    pd_reach_judge(bearing, operation, entry->tool_name, PD_REACH_OK, NULL);

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
