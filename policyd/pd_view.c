/* Making of views: see pd_view.h. */
#include "pd_view.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/view_lexicon.h"
#include "pd_blob.h"
#include "pd_browse.h"
#include "pd_control.h"
#include "pd_log.h"
#include "pd_ops.h"
#include "pd_policy.h"
#include "pd_view_private.h"

#define MAX_KEPT    20000 /* of manifests, entries, verdicts, each; beyond, all are made anew */
#define MAX_CONTROL 256   /* control-plane tools that a selection has room for */

/* Blobs are put with a hold that is longer than who reads them may count on, so that naming a view that somebody named a moment ago
 * puts none of its hundreds of chunks again. A chunk may have been put that long before its manifest was: hence twice. */
#define FRESH_MS 30000
#define MORE_MS  (2 * FRESH_MS)

/* Bytes under their digest: put again when somebody is told of them. */
typedef struct kept {
    char digest[MCP_DIGEST_HEX + 1];
    const char *bytes;
    size_t count;
    pd_boot_t held; /* when it was last put; unused for verdicts */
} kept_t;

/* Its text is in the blob alone: that of a class nobody asks for any more is made again, which takes less than the memory is worth. */
typedef struct manifest {
    char digest[MCP_DIGEST_HEX + 1]; /* "" until made */
    pd_boot_t held;                  /* when it and its chunks were last put */
    kept_t **chunks;                 /* of toolboxes */
    int chunk_count;
    pd_connection_t **connections; /* whose own chunks it names, in the snapshot in force */
    int connection_count;
} manifest_t;

struct pd_views {
    apr_pool_t *pool; /* cleared whole: everything is of one snapshot */
    apr_hash_t *by_class;  /* class -> manifest_t * */
    apr_hash_t *entries;   /* entry and its connections -> pd_advertised_t * */
    apr_hash_t *shared;    /* digest of a toolbox's chunk, or of names of applications -> kept_t * */
    apr_hash_t *verdicts;  /* class and connection -> kept_t * */
    apr_hash_t *named;     /* id of a member whom some toolbox names; NULL: not made yet */
};

static void begin_empty(pd_views_t *views)
{
    views->by_class = apr_hash_make(views->pool);
    views->entries = apr_hash_make(views->pool);
    views->shared = apr_hash_make(views->pool);
    views->verdicts = apr_hash_make(views->pool);
    views->named = NULL;
}

pd_status_t pd_views_new(pd_views_t **ret)
{
    pd_views_t *views = calloc(1, sizeof(*views));

    if (views == NULL || apr_pool_create(&views->pool, NULL) != APR_SUCCESS) {
        free(views);
        return PD_E_NOMEM;
    }
    begin_empty(views);
    *ret = views;
    return PD_OK;
}

void pd_views_free(pd_views_t **views)
{
    if (*views != NULL) {
        apr_pool_destroy((*views)->pool);
        free(*views);
        *views = NULL;
    }
}

void pd_views_clear(pd_views_t *views)
{
    apr_pool_clear(views->pool);
    begin_empty(views);
}

void pd_views_trim(pd_views_t *views)
{
    if (apr_hash_count(views->by_class) >= MAX_KEPT || apr_hash_count(views->entries) >= MAX_KEPT ||
        apr_hash_count(views->verdicts) >= MAX_KEPT) {
        pd_views_clear(views);
    }
}

/* --- rungs and classes ------------------------------------------------------------ */

int pd_view_rung(unsigned scopes)
{
    scopes = mcp_scope_close(scopes);
    if ((scopes & MCP_SCOPE_DESTRUCTIVE) != 0) {
        return 3;
    }
    if ((scopes & MCP_SCOPE_WRITE) != 0) {
        return 2;
    }
    return (scopes & MCP_SCOPE_READ) != 0 ? 1 : 0;
}

pd_subject_t pd_view_subject(const pd_actor_t *actor)
{
    pd_subject_t subject = {actor->member_id, actor->role_names};

    return subject;
}

/* Which tools of the control plane the actor is listed; as pd_control_select(). */
static int select_control(const pd_core_t *core, const pd_actor_t *actor, unsigned char *bits)
{
    pd_actor_t stepped_up = *actor;

    if (pd_view_has_step_up(core)) {
        stepped_up.scopes = ~0u;
    }
    return pd_control_select(&stepped_up, bits);
}

/* Ids of all members whom some toolbox names himself. */
static int is_named(pd_core_t *core, const char *member_id)
{
    pd_views_t *views = core->policy->views;
    const apr_array_header_t *sorted = core->policy->snapshot->toolboxes->sorted;
    int i;

    if (views->named == NULL) {
        views->named = apr_hash_make(views->pool);
        for (i = 0; i < sorted->nelts; i++) {
            const pd_toolbox_t *toolbox = APR_ARRAY_IDX(sorted, i, pd_toolbox_t *);
            apr_hash_index_t *k;

            for (k = apr_hash_first(views->pool, toolbox->members); k != NULL; k = apr_hash_next(k)) {
                apr_hash_set(views->named, apr_hash_this_key(k), APR_HASH_KEY_STRING, toolbox);
            }
        }
    }
    return apr_hash_get(views->named, member_id, APR_HASH_KEY_STRING) != NULL;
}

/* Whether anything in the snapshot is about this member and not about his roles. */
static int is_particular(pd_core_t *core, const char *member_id)
{
    const pd_snapshot_t *snapshot = core->policy->snapshot;

    return member_id != NULL &&
           (pd_snapshot_own(snapshot, member_id) != NULL ||
            apr_hash_get(snapshot->rulebook->by_member, member_id, APR_HASH_KEY_STRING) != NULL ||
            is_named(core, member_id));
}

/* The policy class: two actors of one class have the same view. Roles stand by name, in digest, since their text has no bound that a buffer
 * would do for; control-plane permissions follow from the roles but may change without the snapshot, so their selection is part of it. */
static void class_of(pd_core_t *core, const pd_actor_t *actor, const unsigned char *control,
                     size_t control_bytes, char *buf, size_t size)
{
    char roles[MCP_DIGEST_HEX + 1];
    char hex[MAX_CONTROL / 4 + 1];
    static const char digits[] = "0123456789abcdef";
    size_t i;

    mcp_digest_hex(actor->roles != NULL ? actor->roles : "",
                   actor->roles != NULL ? strlen(actor->roles) : 0, roles);
    for (i = 0; i < control_bytes; i++) {
        hex[2 * i] = digits[control[i] >> 4];
        hex[2 * i + 1] = digits[control[i] & 15];
    }
    hex[2 * control_bytes] = '\0';
    (void)apr_snprintf(buf, size, "%d %u %s %s %s", pd_actor_may(actor, "tool:execute"),
                       mcp_scope_close(actor->scopes), roles, hex,
                       is_particular(core, actor->member_id) ? actor->member_id : "");
}

#define CLASS_BYTES (MCP_DIGEST_HEX + MAX_CONTROL / 4 + MCP_MAX_ID + 32)

/* --- texts -------------------------------------------------------------------------- */

static pd_status_t keep(kept_t *kept, const char *bytes, size_t count)
{
    kept->bytes = bytes;
    kept->count = count;
    mcp_digest_hex(bytes, count, kept->digest);
    return PD_OK;
}

static pd_status_t put(pd_core_t *core, const kept_t *kept)
{
    return pd_blobs_put(core->policy->blobs, kept->digest, kept->bytes, kept->count);
}

/* Serialises value (stolen) into pool. */
static pd_status_t text_of(json_t *value, apr_pool_t *pool, const char **ret, size_t *ret_count)
{
    size_t count = 0;
    char *text = value != NULL ? mcp_json_text(value, &count) : NULL;

    json_decref(value);
    if (text == NULL) {
        return PD_E_NOMEM;
    }
    *ret = apr_pstrmemdup(pool, text, count);
    *ret_count = count;
    free(text);
    return PD_OK;
}

/* --- chunks --------------------------------------------------------------------------- */

/* All tools of a connection, whoever asks; made at its first use and kept in the connection's pool. */
static pd_status_t make_chunk(pd_connection_t *connection)
{
    json_t *tools = json_array();
    pd_status_t status;
    int i;

    for (i = 0; i < connection->tools->nelts; i++) {
        const pd_tool_t *tool = &APR_ARRAY_IDX(connection->tools, i, pd_tool_t);
        json_t *def = pd_view_plain(connection, tool);

        if (def == NULL ||
            json_array_append_new(tools, json_pack("{s:s,s:o,s:s,s:s}", "name", tool->name, "def", def,
                                                   "class", mcp_class_text(tool->operation->klass),
                                                   "op", tool->operation->id)) != 0) {
            json_decref(tools);
            return PD_E_NOMEM;
        }
    }
    status = text_of(json_pack("{s:o}", "tools", tools), connection->pool, &connection->chunk.bytes,
                     &connection->chunk.count);
    if (status == PD_OK) {
        if (connection->chunk.count > MCP_MAX_BLOB_BYTES) {
            pd_log(PD_LOG_ERR, 145,
                   "the tools of connection %s are larger than a blob may be: left out", connection->id);
        }
        mcp_digest_hex(connection->chunk.bytes, connection->chunk.count, connection->chunk.digest);
        status = text_of(json_pack("{s:s,s:s,s:s,s:s,s:s}", "connection", connection->id, "account",
                                   connection->label, "connector", connection->connector->slug, "label",
                                   connection->connector->label, "digest", connection->chunk.digest),
                         connection->pool, &connection->chunk.line, &connection->chunk.line_count);
    }
    if (status != PD_OK) {
        connection->chunk.line = NULL; /* it is made again */
    }
    return status;
}

static int is_too_large(const pd_connection_t *connection)
{
    return connection->chunk.count > MCP_MAX_BLOB_BYTES;
}

/* 1 when what was put then is readable for as long as it has to be, whatever is named now. */
static int is_fresh(pd_boot_t held, pd_boot_t now)
{
    return held.us != 0 && now.us - held.us < (int64_t)FRESH_MS * 1000;
}

static pd_status_t hold_chunk(pd_core_t *core, pd_connection_t *connection, pd_boot_t now)
{
    pd_status_t status;

    if (is_fresh(connection->chunk.held, now)) {
        return PD_OK;
    }
    status = pd_blobs_put_for(core->policy->blobs, connection->chunk.digest, connection->chunk.bytes,
                              connection->chunk.count, MORE_MS);
    connection->chunk.held.us = status == PD_OK ? now.us : 0;
    return status;
}

static pd_status_t hold_kept(pd_core_t *core, kept_t *kept, pd_boot_t now)
{
    pd_status_t status;

    if (is_fresh(kept->held, now)) {
        return PD_OK;
    }
    status = pd_blobs_put_for(core->policy->blobs, kept->digest, kept->bytes, kept->count, MORE_MS);
    kept->held.us = status == PD_OK ? now.us : 0;
    return status;
}

/* --- a manifest in the making --------------------------------------------------------- */

/* One line of the manifest with what it is sorted by: an object's text, which the text of its last members takes the end of. */
typedef struct line {
    const char *account;
    const char *head;
    size_t head_count;
    const char *tail;
    size_t tail_count;
} line_t;

typedef struct making {
    pd_core_t *core;
    const pd_actor_t *actor;
    int is_stepped_up;
    apr_pool_t *scratch;
    apr_array_header_t *lines;       /* of line_t */
    apr_array_header_t *connections; /* of pd_connection_t * */
    apr_array_header_t *chunks;      /* of kept_t * */
    /* the connection whose tools are walked */
    pd_connection_t *connection;
    unsigned char *bits;
    int selected;
    /* the toolbox whose entries are walked */
    const pd_toolbox_t *toolbox;
    json_t *rows;
} making_t;

static const char *hex_of(const unsigned char *bits, int tools, apr_pool_t *pool)
{
    static const char digits[] = "0123456789abcdef";
    size_t bytes = ((size_t)tools + 7) / 8;
    char *hex = apr_palloc(pool, 2 * bytes + 1);
    size_t i;

    for (i = 0; i < bytes; i++) {
        hex[2 * i] = digits[bits[i] >> 4];
        hex[2 * i + 1] = digits[bits[i] & 15];
    }
    hex[2 * bytes] = '\0';
    return hex;
}

/* The last members of a line, with `select` where not all are. */
static const char *tail_of(const unsigned char *bits, int selected, int tools, apr_pool_t *pool)
{
    return selected == tools ? apr_psprintf(pool, ",\"tools\":%d}", selected)
                             : apr_psprintf(pool, ",\"tools\":%d,\"select\":\"%s\"}", selected,
                                            hex_of(bits, tools, pool));
}

static void add_line(making_t *making, const char *account, const char *head, size_t head_count,
                     const char *tail)
{
    line_t *line = apr_array_push(making->lines);

    line->account = account;
    line->head = head;
    line->head_count = head_count - 1; /* without its brace */
    line->tail = tail;
    line->tail_count = strlen(tail);
}

static pd_status_t end_connection(making_t *making)
{
    pd_connection_t *connection = making->connection;
    pd_status_t status = PD_OK;

    making->connection = NULL;
    if (connection == NULL || making->selected == 0) {
        return PD_OK;
    }
    if (connection->chunk.line == NULL) {
        status = make_chunk(connection);
    }
    if (status != PD_OK || is_too_large(connection)) {
        return status;
    }
    APR_ARRAY_PUSH(making->connections, pd_connection_t *) = connection;
    add_line(making, connection->label, connection->chunk.line, connection->chunk.line_count,
             tail_of(making->bits, making->selected, connection->tools->nelts, making->scratch));
    return PD_OK;
}

/* Bytes that another class may have made as well. */
static kept_t *keep_shared(pd_views_t *views, const char *bytes, size_t count)
{
    char digest[MCP_DIGEST_HEX + 1];
    kept_t *kept;

    mcp_digest_hex(bytes, count, digest);
    kept = apr_hash_get(views->shared, digest, MCP_DIGEST_HEX);
    if (kept == NULL) {
        kept = apr_pcalloc(views->pool, sizeof(*kept));
        (void)keep(kept, apr_pstrmemdup(views->pool, bytes, count), count); /* always PD_OK */
        apr_hash_set(views->shared, kept->digest, MCP_DIGEST_HEX, kept);
    }
    return kept;
}

static pd_status_t end_toolbox(making_t *making)
{
    const pd_toolbox_t *toolbox = making->toolbox;
    size_t tools = json_array_size(making->rows);
    const char *bytes = NULL;
    size_t count = 0;
    kept_t *kept;
    pd_status_t status;

    making->toolbox = NULL;
    if (toolbox == NULL || tools == 0) {
        json_decref(making->rows);
        making->rows = NULL;
        return PD_OK;
    }
    status = text_of(json_pack("{s:o}", "tools", making->rows), making->scratch, &bytes, &count);
    making->rows = NULL;
    if (status != PD_OK) {
        return status;
    }
    if (count > MCP_MAX_BLOB_BYTES) {
        pd_log(PD_LOG_ERR, 147, "the tools of toolbox %s are larger than a blob may be: left out",
               toolbox->id);
        return PD_OK;
    }
    kept = keep_shared(making->core->policy->views, bytes, count);
    status = text_of(json_pack("{s:s,s:s,s:s,s:s}", "toolbox", toolbox->id, "account", toolbox->name,
                               "label",
                               toolbox->description != NULL ? toolbox->description : toolbox->name,
                               "digest", kept->digest),
                     making->scratch, &bytes, &count);
    if (status == PD_OK) {
        APR_ARRAY_PUSH(making->chunks, kept_t *) = kept;
        add_line(making, toolbox->name, bytes, count,
                 tail_of(NULL, (int)tools, (int)tools, making->scratch));
    }
    return status;
}

static pd_status_t begin_connection(making_t *making, pd_connection_t *connection)
{
    pd_status_t status = end_connection(making);

    making->connection = connection;
    making->selected = 0;
    making->bits = apr_pcalloc(making->scratch, ((size_t)connection->tools->nelts + 7) / 8 + 1);
    return status;
}

static pd_status_t begin_toolbox(making_t *making, const pd_toolbox_t *toolbox)
{
    pd_status_t status = end_toolbox(making);

    making->toolbox = toolbox;
    making->rows = json_array();
    return status;
}

static pd_status_t take_plain(making_t *making, const pd_found_t *found)
{
    pd_connection_t *connection = APR_ARRAY_IDX(found->connections, 0, pd_connection_t *);
    size_t i = (size_t)(found->tool - (pd_tool_t *)(void *)connection->tools->elts);
    pd_status_t status = PD_OK;

    if (making->connection != connection) {
        status = begin_connection(making, connection);
    }
    making->bits[i >> 3] |= (unsigned char)(1u << (i & 7));
    making->selected++;
    return status;
}

static pd_status_t take_entry(making_t *making, const pd_found_t *found)
{
    const pd_advertised_t *advertised = NULL;
    json_t *row;
    json_t *def;
    pd_status_t status = PD_OK;

    if (making->toolbox != found->toolbox) {
        status = begin_toolbox(making, found->toolbox);
    }
    if (status == PD_OK) {
        status = pd_view_entry(making->core, found, &advertised);
    }
    if (status != PD_OK) {
        return status == PD_E_INVALID ? PD_OK : status; /* one that does not fit any more is not advertised */
    }
    def = pd_view_tool(found, advertised);
    row = def != NULL
              ? json_pack("{s:s,s:o,s:s,s:s,s:s}", "name", found->name, "def", def, "class",
                          mcp_class_text(found->operation->klass), "op", found->operation->id,
                          "connector", found->connector->slug)
              : NULL;
    if (row != NULL && found->entry->is_always_visible) {
        json_object_set_new(row, "pin", json_true());
    }
    return row != NULL && json_array_append_new(making->rows, row) == 0 ? PD_OK : PD_E_NOMEM;
}

static pd_status_t take(const pd_found_t *found, void *baton)
{
    making_t *making = baton;

    if (!pd_view_is_listed(making->is_stepped_up, making->actor->scopes, found->operation->klass)) {
        return PD_OK;
    }
    return found->entry != NULL ? take_entry(making, found) : take_plain(making, found);
}

static int by_account(const void *a, const void *b)
{
    return strcmp(((const line_t *)a)->account, ((const line_t *)b)->account);
}

/* Connections come in their order, so that toolboxes alone can be out of it. */
static void sort_lines(apr_array_header_t *lines)
{
    int is_sorted = 1;
    int i;

    for (i = 1; is_sorted && i < lines->nelts; i++) {
        is_sorted = by_account(&APR_ARRAY_IDX(lines, i - 1, line_t),
                               &APR_ARRAY_IDX(lines, i, line_t)) <= 0;
    }
    if (!is_sorted) {
        qsort(lines->elts, (size_t)lines->nelts, sizeof(line_t), by_account);
    }
}

/* Everything that the actor has, in the order of accounts. */
static pd_status_t walk(making_t *making)
{
    pd_subject_t subject = pd_view_subject(making->actor);
    pd_status_t status = PD_OK;

    if (pd_actor_may(making->actor, "tool:execute")) {
        status = pd_reach_each(making->core->policy->snapshot, &subject, making->scratch, take, making);
    }
    if (status == PD_OK) {
        status = end_connection(making);
    }
    if (status == PD_OK) {
        status = end_toolbox(making);
    }
    json_decref(making->rows);
    making->rows = NULL;
    sort_lines(making->lines);
    return status;
}

/* --- its text ------------------------------------------------------------------------- */

#define BEGIN ",\"chunks\":["
#define END   "]"

static size_t lines_bytes(const making_t *making)
{
    size_t bytes = 0;
    int i;

    for (i = 0; i < making->lines->nelts; i++) {
        const line_t *line = &APR_ARRAY_IDX(making->lines, i, line_t);

        bytes += line->head_count + line->tail_count + 1;
    }
    return bytes;
}

static char *append(char *at, const char *bytes, size_t count)
{
    memcpy(at, bytes, count);
    return at + count;
}

/* Written by hand, out of parts that jansson wrote: to build the tree of a few hundred lines took most of the time that a view takes
 * (measured). */
static pd_status_t write_text(const making_t *making, const char *control, const char **ret,
                              size_t *ret_count)
{
    const char *head = NULL;
    size_t head_count = 0;
    size_t control_count = strlen(control);
    char *text;
    char *at;
    int i;
    pd_status_t status = text_of(json_pack("{s:i,s:s}", "v", 1, "control_prefix",
                                           making->core->config->control_prefix),
                                 making->scratch, &head, &head_count);

    if (status != PD_OK) {
        return status;
    }
    text = apr_palloc(making->scratch, head_count + sizeof(BEGIN) + lines_bytes(making) + sizeof(END) +
                                           control_count);
    at = append(text, head, head_count - 1); /* without its brace */
    at = append(at, BEGIN, sizeof(BEGIN) - 1);
    for (i = 0; i < making->lines->nelts; i++) {
        const line_t *line = &APR_ARRAY_IDX(making->lines, i, line_t);

        if (i > 0) {
            *at++ = ',';
        }
        at = append(at, line->head, line->head_count);
        at = append(at, line->tail, line->tail_count);
    }
    at = append(at, END, sizeof(END) - 1);
    at = append(at, control, control_count);
    *ret = text;
    *ret_count = (size_t)(at - text);
    return PD_OK;
}

/* The names of what the actor might connect: a blob of its own, asked for by his first search. *ret: the member of the manifest, "" where there
 * are none. */
static pd_status_t applications_of(making_t *making, const char **ret)
{
    pd_subject_t subject = pd_view_subject(making->actor);
    json_t *names;
    const char *bytes = NULL;
    size_t count = 0;
    kept_t *kept;
    pd_status_t status;

    *ret = "";
    if (making->lines->nelts == 0) { /* nothing can be found: nothing is searched */
        return PD_OK;
    }
    names = pd_browse_applications(making->core->policy->snapshot, &subject, making->scratch);
    if (names == NULL || json_array_size(json_object_get(names, "applications")) == 0) {
        json_decref(names);
        return names != NULL ? PD_OK : PD_E_NOMEM;
    }
    status = text_of(names, making->scratch, &bytes, &count);
    if (status == PD_OK && count <= MCP_VIEW_LEXICON_BYTES) {
        kept = keep_shared(making->core->policy->views, bytes, count);
        APR_ARRAY_PUSH(making->chunks, kept_t *) = kept;
        *ret = apr_pstrcat(making->scratch, ",\"applications\":\"", kept->digest, "\"", NULL);
    }
    return status;
}

/* The end of the text: names of applications, and which tools of the control plane are the actor's, if any are. */
static const char *end_of(const char *applications, const unsigned char *bits, int selected,
                          apr_pool_t *pool)
{
    return selected == 0
               ? apr_pstrcat(pool, applications, "}", NULL)
               : apr_pstrcat(pool, applications, ",\"control\":{\"digest\":\"", pd_control_digest(), "\"",
                             tail_of(bits, selected, pd_control_count(), pool), "}", NULL);
}

static void *copy_array(apr_pool_t *pool, const apr_array_header_t *array)
{
    return apr_pmemdup(pool, array->elts, (size_t)array->nelts * (size_t)array->elt_size);
}

/* Notes what it names, which is the same whenever it is made. */
static void note_parts(const making_t *making, manifest_t *manifest)
{
    apr_pool_t *pool = making->core->policy->views->pool;

    if (manifest->digest[0] == '\0') {
        manifest->chunks = copy_array(pool, making->chunks);
        manifest->chunk_count = making->chunks->nelts;
        manifest->connections = copy_array(pool, making->connections);
        manifest->connection_count = making->connections->nelts;
    }
}

/* Makes it and puts it. */
static pd_status_t make_manifest(pd_core_t *core, const pd_actor_t *actor, const unsigned char *control,
                                 int control_count, manifest_t *manifest)
{
    pd_views_t *views = core->policy->views;
    making_t making = {.core = core, .actor = actor, .is_stepped_up = pd_view_has_step_up(core)};
    const char *applications = "";
    const char *bytes = NULL;
    size_t count = 0;
    pd_status_t status;

    if (apr_pool_create(&making.scratch, views->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    making.lines = apr_array_make(making.scratch, 16, sizeof(line_t));
    making.connections = apr_array_make(making.scratch, 16, sizeof(pd_connection_t *));
    making.chunks = apr_array_make(making.scratch, 4, sizeof(kept_t *));
    status = walk(&making);
    if (status == PD_OK) {
        status = applications_of(&making, &applications);
    }
    if (status == PD_OK) {
        status = write_text(&making, end_of(applications, control, control_count, making.scratch), &bytes,
                            &count);
    }
    if (status == PD_OK) {
        note_parts(&making, manifest);
        mcp_digest_hex(bytes, count, manifest->digest);
        status = pd_blobs_put_for(core->policy->blobs, manifest->digest, bytes, count, MORE_MS);
    }
    apr_pool_destroy(making.scratch);
    return status;
}

/* Keeps every chunk that the manifest names readable, and puts again those whose hold ran out: whoever reads it asks for them next. */
static pd_status_t hold_chunks(pd_core_t *core, const manifest_t *manifest, pd_boot_t now)
{
    size_t count = 0;
    const char *bytes = pd_control_bytes(&count);
    pd_status_t status =
        pd_blobs_put_for(core->policy->blobs, pd_control_digest(), bytes, count, MORE_MS);
    int i;

    for (i = 0; status == PD_OK && i < manifest->connection_count; i++) {
        status = hold_chunk(core, manifest->connections[i], now);
    }
    for (i = 0; status == PD_OK && i < manifest->chunk_count; i++) {
        status = hold_kept(core, manifest->chunks[i], now);
    }
    return status;
}

/* The class's manifest, with nothing in it where it is new. */
static manifest_t *manifest_of(pd_views_t *views, const char *class_key)
{
    manifest_t *manifest = apr_hash_get(views->by_class, class_key, APR_HASH_KEY_STRING);

    if (manifest == NULL) {
        pd_views_trim(views);
        manifest = apr_pcalloc(views->pool, sizeof(*manifest));
        apr_hash_set(views->by_class, apr_pstrdup(views->pool, class_key), APR_HASH_KEY_STRING,
                     manifest);
    }
    return manifest;
}

pd_status_t pd_view_digest(pd_core_t *core, const pd_actor_t *actor, const char **ret)
{
    pd_boot_t now = pd_boot_now();
    unsigned char control[MAX_CONTROL / 8] = {0};
    int control_count = pd_control_count() <= MAX_CONTROL && pd_actor_may(actor, "tool:execute")
                            ? select_control(core, actor, control)
                            : 0;
    char class_key[CLASS_BYTES];
    manifest_t *manifest;
    pd_status_t status = PD_OK;

    class_of(core, actor, control, sizeof(control), class_key, sizeof(class_key));
    manifest = manifest_of(core->policy->views, class_key);
    if (!is_fresh(manifest->held, now)) {
        if (manifest->digest[0] == '\0' ||
            !pd_blobs_touch_for(core->policy->blobs, manifest->digest, MORE_MS)) {
            status = make_manifest(core, actor, control, control_count, manifest);
        }
        if (status == PD_OK) {
            status = hold_chunks(core, manifest, now);
        }
        manifest->held.us = status == PD_OK ? now.us : 0;
    }
    if (status == PD_OK) {
        *ret = manifest->digest;
    }
    return status;
}

/* --- single tools ------------------------------------------------------------------------ */

pd_status_t pd_view_entry(pd_core_t *core, const pd_found_t *found, const pd_advertised_t **ret)
{
    pd_views_t *views = core->policy->views;
    const char *key = found->entry->id;
    const pd_advertised_t *made;
    pd_status_t status;
    apr_pool_t *scratch;
    int i;

    if (apr_pool_create(&scratch, views->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    for (i = 0; i < found->connections->nelts; i++) {
        key = apr_pstrcat(scratch, key, " ",
                          APR_ARRAY_IDX(found->connections, i, const pd_connection_t *)->id, NULL);
    }
    made = apr_hash_get(views->entries, key, APR_HASH_KEY_STRING);
    status = made != NULL ? PD_OK : pd_entry_advertise(found, views->pool, &made);
    if (status == PD_OK) {
        if (apr_hash_get(views->entries, key, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(views->entries, apr_pstrdup(views->pool, key), APR_HASH_KEY_STRING, made);
        }
        *ret = made;
    }
    apr_pool_destroy(scratch);
    return status;
}

/* --- guards and operations ------------------------------------------------------ */

pd_status_t pd_view_verdicts(pd_core_t *core, const pd_actor_t *actor, const pd_connection_t *connection,
                             const char **ret)
{
    pd_views_t *views = core->policy->views;
    pd_subject_t subject = pd_view_subject(actor);
    char key[CLASS_BYTES + MCP_MAX_ID + 2];
    char class_key[CLASS_BYTES];
    kept_t *kept;
    pd_status_t status;

    class_of(core, actor, NULL, 0, class_key, sizeof(class_key));
    (void)apr_snprintf(key, sizeof(key), "%s %s", class_key, connection->id);
    kept = apr_hash_get(views->verdicts, key, APR_HASH_KEY_STRING);
    if (kept == NULL) {
        const char *verdicts = pd_reach_verdicts(core->policy->snapshot, &subject, connection,
                                                 pd_view_rung(actor->scopes), views->pool);

        kept = apr_pcalloc(views->pool, sizeof(*kept));
        (void)keep(kept, verdicts, strlen(verdicts)); /* always PD_OK */
        apr_hash_set(views->verdicts, apr_pstrdup(views->pool, key), APR_HASH_KEY_STRING, kept);
    }
    status = put(core, kept);
    if (status == PD_OK) {
        *ret = kept->digest;
    }
    return status;
}

pd_status_t pd_view_guard(pd_core_t *core, const pd_connector_t *connector, const char **ret)
{
    pd_status_t status = pd_blobs_put(core->policy->blobs, connector->guard_digest, connector->guard,
                                      connector->guard_bytes);

    if (status == PD_OK) {
        *ret = connector->guard_digest;
    }
    return status;
}

pd_status_t pd_view_operation(pd_core_t *core, const pd_operation_t *operation)
{
    return pd_blobs_put(core->policy->blobs, operation->digest, operation->blob,
                        operation->blob_bytes);
}
