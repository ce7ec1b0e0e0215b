/* Making of views: see pd_view.h. */
#include "pd_view.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "pd_blob.h"
#include "pd_control.h"
#include "pd_log.h"
#include "pd_policy.h"

#define MAX_KEPT    20000 /* of manifests, entries, verdicts, each; beyond, all are made anew */
#define MAX_CONTROL 256   /* control-plane tools that a selection has room for */

/* Bytes under their digest: put again whenever somebody is told of them. */
typedef struct kept {
    char digest[MCP_DIGEST_HEX + 1];
    const char *bytes;
    size_t count;
} kept_t;

typedef struct manifest {
    kept_t self;
    apr_array_header_t *chunks; /* of const kept_t *, and of the connections' own, in the snapshot in force */
    apr_array_header_t *connections; /* of pd_connection_t * */
} manifest_t;

struct pd_views {
    apr_pool_t *pool; /* cleared whole: everything is of one snapshot */
    apr_hash_t *by_class;  /* class -> manifest_t * */
    apr_hash_t *entries;   /* entry and its connections -> pd_advertised_t * */
    apr_hash_t *toolboxes; /* digest of a toolbox's chunk -> kept_t * */
    apr_hash_t *verdicts;  /* class and connection -> kept_t * */
    apr_hash_t *named;     /* id of a member whom some toolbox names; NULL: not made yet */
};

static void begin_empty(pd_views_t *views)
{
    views->by_class = apr_hash_make(views->pool);
    views->entries = apr_hash_make(views->pool);
    views->toolboxes = apr_hash_make(views->pool);
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

static int has_step_up(const pd_core_t *core)
{
    return pd_snapshot_setting_bool(core->policy->snapshot, "advertise.step_up", 0);
}

/* 1 when tools of this class are listed for the scopes. */
static int is_listed(const pd_core_t *core, unsigned scopes, mcp_class_t klass)
{
    unsigned needed = MCP_SCOPE_TOOLS | mcp_scope_of_class(klass);

    return has_step_up(core) || (mcp_scope_close(scopes) & needed) == needed;
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

/* Our own hints, from the classification. */
static json_t *annotations(const pd_operation_t *operation)
{
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT", "PUT",
                                             "DELETE"};
    int is_idempotent = 0;
    size_t i;

    for (i = 0; i < sizeof(idempotent) / sizeof(idempotent[0]); i++) {
        is_idempotent |= strcmp(operation->method, idempotent[i]) == 0;
    }
    return json_pack("{s:b,s:b,s:b,s:b}", "readOnlyHint", operation->klass == MCP_CLASS_READ,
                     "destructiveHint", operation->klass == MCP_CLASS_DESTRUCTIVE, "idempotentHint",
                     is_idempotent, "openWorldHint", 1);
}

/* The tool object exactly as `tools/list` shows it; new reference, or NULL. */
static json_t *definition(const char *name, const pd_operation_t *operation, const char *title,
                          const char *description, int is_ready, const char *schema_text,
                          size_t schema_bytes)
{
    json_t *schema = NULL;
    json_t *def;

    if (mcp_json_parse(schema_text, schema_bytes, MCP_MAX_DEPTH, &schema, NULL) != MCP_OK) {
        return NULL;
    }
    def = json_pack("{s:s}", "name", name);
    if (def == NULL) {
        json_decref(schema);
        return NULL;
    }
    if (title != NULL) {
        json_object_set_new(def, "title", json_string(title));
    }
    json_object_set_new(def, "description",
                        is_ready ? json_string(description)
                                 : json_sprintf("[needs reauthorisation] %s", description));
    json_object_set_new(def, "inputSchema", schema);
    json_object_set_new(def, "annotations", annotations(operation));
    return def;
}

static json_t *plain_definition(const pd_connection_t *connection, const pd_tool_t *tool)
{
    const pd_operation_t *operation = tool->operation;
    const char *description = operation->description != NULL && operation->description[0] != '\0'
                                  ? operation->description
                                  : operation->id;

    return definition(tool->name, operation, operation->title, description, connection->is_ready,
                      operation->schema, operation->schema_bytes);
}

/* An entry is marked only when none of its connections can be used. */
static json_t *entry_definition(const pd_found_t *found, const pd_advertised_t *advertised)
{
    const char *title = found->entry->title != NULL ? found->entry->title : found->operation->title;
    int is_ready = 0;
    int i;

    for (i = 0; i < found->connections->nelts; i++) {
        is_ready |= APR_ARRAY_IDX(found->connections, i, const pd_connection_t *)->is_ready;
    }
    return definition(found->name, found->operation, title, advertised->description, is_ready,
                      advertised->schema, advertised->schema_bytes);
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
        json_t *def = plain_definition(connection, tool);

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
    }
    return status;
}

static int is_too_large(const pd_connection_t *connection)
{
    return connection->chunk.count > MCP_MAX_BLOB_BYTES;
}

static pd_status_t put_chunk(pd_core_t *core, const pd_connection_t *connection)
{
    return pd_blobs_put(core->policy->blobs, connection->chunk.digest, connection->chunk.bytes,
                        connection->chunk.count);
}

/* --- a manifest in the making --------------------------------------------------------- */

/* One line of the manifest with what it is sorted by. */
typedef struct line {
    const char *account;
    json_t *entry;
} line_t;

typedef struct making {
    pd_core_t *core;
    const pd_actor_t *actor;
    manifest_t *manifest;
    apr_pool_t *scratch;
    apr_array_header_t *lines; /* of line_t */
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

/* Adds `select` where not all are. */
static int set_select(json_t *entry, const unsigned char *bits, int selected, int tools,
                      apr_pool_t *pool)
{
    return selected == tools
               ? 0
               : json_object_set_new(entry, "select", json_string(hex_of(bits, tools, pool)));
}

static pd_status_t add_line(making_t *making, const char *account, json_t *entry)
{
    line_t *line;

    if (entry == NULL) {
        return PD_E_NOMEM;
    }
    line = apr_array_push(making->lines);
    line->account = account;
    line->entry = entry;
    return PD_OK;
}

static pd_status_t end_connection(making_t *making)
{
    pd_connection_t *connection = making->connection;
    pd_status_t status = PD_OK;
    json_t *entry;

    making->connection = NULL;
    if (connection == NULL || making->selected == 0) {
        return PD_OK;
    }
    if (connection->chunk.digest[0] == '\0') {
        status = make_chunk(connection);
    }
    if (status != PD_OK || is_too_large(connection)) {
        return status;
    }
    entry = json_pack("{s:s,s:s,s:s,s:s,s:s,s:i}", "connection", connection->id, "account",
                      connection->label, "connector", connection->connector->slug, "label",
                      connection->connector->label, "digest", connection->chunk.digest, "tools",
                      making->selected);
    if (entry != NULL && set_select(entry, making->bits, making->selected, connection->tools->nelts,
                                    making->scratch) != 0) {
        json_decref(entry);
        return PD_E_NOMEM;
    }
    APR_ARRAY_PUSH(making->manifest->connections, pd_connection_t *) = connection;
    return add_line(making, connection->label, entry);
}

static pd_status_t end_toolbox(making_t *making)
{
    const pd_toolbox_t *toolbox = making->toolbox;
    pd_views_t *views = making->core->policy->views;
    size_t tools = json_array_size(making->rows);
    char digest[MCP_DIGEST_HEX + 1];
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
    mcp_digest_hex(bytes, count, digest);
    kept = apr_hash_get(views->toolboxes, digest, MCP_DIGEST_HEX);
    if (kept == NULL) { /* another class may have made the same */
        kept = apr_pcalloc(views->pool, sizeof(*kept));
        (void)keep(kept, apr_pstrmemdup(views->pool, bytes, count), count); /* always PD_OK */
        apr_hash_set(views->toolboxes, kept->digest, MCP_DIGEST_HEX, kept);
    }
    APR_ARRAY_PUSH(making->manifest->chunks, const kept_t *) = kept;
    return add_line(making, toolbox->name,
                    json_pack("{s:s,s:s,s:s,s:s,s:i}", "toolbox", toolbox->id, "account", toolbox->name,
                              "label",
                              toolbox->description != NULL ? toolbox->description : toolbox->name,
                              "digest", kept->digest, "tools", (int)tools));
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
    def = entry_definition(found, advertised);
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

    if (!is_listed(making->core, making->actor->scopes, found->operation->klass)) {
        return PD_OK;
    }
    return found->entry != NULL ? take_entry(making, found) : take_plain(making, found);
}

static int by_account(const void *a, const void *b)
{
    return strcmp(((const line_t *)a)->account, ((const line_t *)b)->account);
}

/* Everything that the actor has, in the order of accounts. */
static pd_status_t walk(making_t *making, json_t *chunks)
{
    pd_subject_t subject = pd_view_subject(making->actor);
    pd_status_t status = PD_OK;
    int i;

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
    qsort(making->lines->elts, (size_t)making->lines->nelts, sizeof(line_t), by_account);
    for (i = 0; i < making->lines->nelts; i++) {
        if (json_array_append_new(chunks, APR_ARRAY_IDX(making->lines, i, line_t).entry) != 0) {
            status = PD_E_NOMEM;
        }
    }
    return status;
}

static json_t *control_of(const unsigned char *bits, int selected, apr_pool_t *pool)
{
    json_t *control =
        json_pack("{s:s,s:i}", "digest", pd_control_digest(), "tools", selected);

    if (control != NULL && set_select(control, bits, selected, pd_control_count(), pool) != 0) {
        json_decref(control);
        return NULL;
    }
    return control;
}

static pd_status_t make_manifest(pd_core_t *core, const pd_actor_t *actor, const unsigned char *control,
                                 int control_count, manifest_t *manifest)
{
    pd_views_t *views = core->policy->views;
    making_t making = {.core = core, .actor = actor, .manifest = manifest};
    json_t *chunks = json_array();
    const char *bytes = NULL;
    size_t count = 0;
    pd_status_t status;

    if (apr_pool_create(&making.scratch, views->pool) != APR_SUCCESS) {
        json_decref(chunks);
        return PD_E_NOMEM;
    }
    making.lines = apr_array_make(making.scratch, 16, sizeof(line_t));
    manifest->chunks = apr_array_make(views->pool, 4, sizeof(const kept_t *));
    manifest->connections = apr_array_make(views->pool, 8, sizeof(pd_connection_t *));
    status = walk(&making, chunks);
    if (status == PD_OK) {
        status = text_of(json_pack("{s:i,s:s,s:O,s:o*}", "v", 1, "control_prefix",
                                   core->config->control_prefix, "chunks", chunks, "control",
                                   control_count > 0
                                       ? control_of(control, control_count, making.scratch)
                                       : NULL),
                         views->pool, &bytes, &count);
    }
    json_decref(chunks);
    apr_pool_destroy(making.scratch);
    return status == PD_OK ? keep(&manifest->self, bytes, count) : status;
}

/* Keeps the manifest and every chunk it names readable, and puts again those whose hold ran out: whoever reads it asks for them next. */
static pd_status_t hold(pd_core_t *core, const manifest_t *manifest)
{
    pd_status_t status = put(core, &manifest->self);
    int i;

    for (i = 0; status == PD_OK && i < manifest->connections->nelts; i++) {
        status = put_chunk(core, APR_ARRAY_IDX(manifest->connections, i, const pd_connection_t *));
    }
    for (i = 0; status == PD_OK && i < manifest->chunks->nelts; i++) {
        status = put(core, APR_ARRAY_IDX(manifest->chunks, i, const kept_t *));
    }
    if (status == PD_OK) {
        size_t count = 0;
        const char *bytes = pd_control_bytes(&count);

        status = pd_blobs_put(core->policy->blobs, pd_control_digest(), bytes, count);
    }
    return status;
}

pd_status_t pd_view_digest(pd_core_t *core, const pd_actor_t *actor, const char **ret)
{
    pd_views_t *views = core->policy->views;
    unsigned char control[MAX_CONTROL / 8] = {0};
    int control_count = pd_control_count() <= MAX_CONTROL && pd_actor_may(actor, "tool:execute")
                            ? pd_control_select(actor, control)
                            : 0;
    char class_key[CLASS_BYTES];
    manifest_t *manifest;
    pd_status_t status = PD_OK;

    class_of(core, actor, control, sizeof(control), class_key, sizeof(class_key));
    manifest = apr_hash_get(views->by_class, class_key, APR_HASH_KEY_STRING);
    if (manifest == NULL) {
        pd_views_trim(views);
        manifest = apr_pcalloc(views->pool, sizeof(*manifest));
        status = make_manifest(core, actor, control, control_count, manifest);
        if (status == PD_OK) {
            apr_hash_set(views->by_class, apr_pstrdup(views->pool, class_key), APR_HASH_KEY_STRING,
                         manifest);
        }
    }
    if (status == PD_OK) {
        status = hold(core, manifest);
    }
    if (status == PD_OK) {
        *ret = manifest->self.digest;
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

/* A tool of the control plane that the actor has, by its name without the prefix. */
static pd_status_t control_definition(const pd_actor_t *actor, const char *name, json_t **ret)
{
    unsigned char bits[MAX_CONTROL / 8] = {0};
    size_t count = 0;
    const char *bytes = pd_control_bytes(&count);
    json_t *chunk = NULL;
    const json_t *tool;
    pd_status_t status = PD_E_NOT_FOUND;
    size_t i;

    if (pd_control_count() > MAX_CONTROL || pd_control_select(actor, bits) == 0) {
        return PD_E_NOT_FOUND;
    }
    if (mcp_json_parse(bytes, count, MCP_MAX_DEPTH + 8, &chunk, NULL) != MCP_OK) {
        return PD_E_INTERNAL;
    }
    json_array_foreach(json_object_get(chunk, "tools"), i, tool)
    {
        json_t *def;

        if ((bits[i >> 3] >> (i & 7) & 1) == 0 || strcmp(mcp_json_str(tool, "name"), name) != 0) {
            continue;
        }
        def = json_pack("{s:s}", "name", name);
        if (json_object_update(def, json_object_get(tool, "def")) != 0 ||
            json_object_set_new(def, "classification",
                                json_string(mcp_json_str(tool, "class"))) != 0) {
            json_decref(def);
            def = NULL;
        }
        *ret = def;
        status = def != NULL ? PD_OK : PD_E_NOMEM;
    }
    json_decref(chunk);
    return status;
}

static pd_status_t found_definition(pd_core_t *core, const pd_found_t *found, json_t **ret)
{
    const pd_advertised_t *advertised = NULL;
    const char *account;
    json_t *def;
    pd_status_t status;

    if (found->entry != NULL) {
        status = pd_view_entry(core, found, &advertised);
        if (status != PD_OK) {
            return status == PD_E_INVALID ? PD_E_NOT_FOUND : status;
        }
        def = entry_definition(found, advertised);
        account = found->toolbox->name;
    } else {
        const pd_connection_t *connection =
            APR_ARRAY_IDX(found->connections, 0, const pd_connection_t *);

        def = plain_definition(connection, found->tool);
        account = connection->label;
    }
    if (json_object_set_new(def, "connector", json_string(found->connector->slug)) != 0 ||
        json_object_set_new(def, "account", json_string(account)) != 0 ||
        json_object_set_new(def, "classification",
                            json_string(mcp_class_text(found->operation->klass))) != 0) {
        json_decref(def);
        return PD_E_NOMEM;
    }
    *ret = def;
    return PD_OK;
}

pd_status_t pd_view_definition(pd_core_t *core, const pd_actor_t *actor, const char *name, json_t **ret)
{
    pd_subject_t subject = pd_view_subject(actor);
    pd_found_t found;
    apr_pool_t *scratch;
    pd_status_t status = PD_E_NOT_FOUND;

    if (!pd_actor_may(actor, "tool:execute")) {
        return PD_E_NOT_FOUND;
    }
    if (apr_pool_create(&scratch, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    if (pd_reach_tool(core->policy->snapshot, &subject, name, scratch, &found, NULL) == PD_REACH_OK) {
        if (is_listed(core, actor->scopes, found.operation->klass)) {
            status = found_definition(core, &found, ret);
        }
    } else {
        status = control_definition(actor, name, ret);
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
