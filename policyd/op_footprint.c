/* footprint get: see op_footprint.h. */
#include "op_footprint.h"

#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/view_footprint.h"
#include "../proto/view_text.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_control.h"
#include "pd_entry.h"

#define HEAVIEST 10

typedef struct per_connector {
    const char *slug;
    mcp_footprint_t sum;
} per_connector_t;

typedef struct heavy {
    const char *name;
    const char *connector; /* NULL: of the control plane */
    size_t characters;
} heavy_t;

typedef struct weighing {
    pd_op_call_t *call;
    pd_actor_t caller;  /* whose list it is */
    int is_stepped_up;  /* tools that only lack a scope are listed */
    mcp_footprint_t control;
    mcp_footprint_t connected;
    apr_hash_t *by_connector; /* slug -> per_connector_t * */
    heavy_t heaviest[HEAVIEST]; /* heaviest first */
    int heavy_count;
} weighing_t;

/* --- weighing -------------------------------------------------------------------- */

static void note_heavy(weighing_t *weighing, const char *name, const char *connector,
                       size_t characters)
{
    int at = weighing->heavy_count;

    while (at > 0 && weighing->heaviest[at - 1].characters < characters) {
        at--;
    }
    if (at >= HEAVIEST) {
        return;
    }
    if (weighing->heavy_count < HEAVIEST) {
        weighing->heavy_count++;
    }
    memmove(&weighing->heaviest[at + 1], &weighing->heaviest[at],
            sizeof(heavy_t) * (size_t)(weighing->heavy_count - at - 1));
    weighing->heaviest[at] = (heavy_t){name, connector, characters};
}

/* One definition, stolen, into two sums (the second may be NULL) and among the heaviest. */
static pd_status_t weigh(weighing_t *weighing, json_t *def, const char *connector,
                         mcp_footprint_t *sum, mcp_footprint_t *other)
{
    mcp_footprint_t one = {0, 0, 0, 0, 0};
    mcp_wire_status_t status = def != NULL ? mcp_footprint_add(def, &one) : MCP_E_NOMEM;

    if (status == MCP_OK) {
        mcp_footprint_join(&one, sum);
        if (other != NULL) {
            mcp_footprint_join(&one, other);
        }
        note_heavy(weighing, apr_pstrdup(weighing->call->pool, mcp_json_str(def, "name")),
                   connector, one.definitions);
    }
    json_decref(def);
    return status == MCP_OK ? PD_OK : PD_E_NOMEM;
}

static mcp_footprint_t *sum_of(weighing_t *weighing, const char *slug)
{
    per_connector_t *found = apr_hash_get(weighing->by_connector, slug, APR_HASH_KEY_STRING);

    if (found == NULL) {
        found = apr_pcalloc(weighing->call->pool, sizeof(*found));
        found->slug = slug;
        apr_hash_set(weighing->by_connector, slug, APR_HASH_KEY_STRING, found);
    }
    return &found->sum;
}

/* The definition as a view has it (pd_view.c), made without what the loop's thread keeps; NULL: out of memory. */
static json_t *definition(const pd_found_t *found, const pd_advertised_t *advertised)
{
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "PROPFIND",
                                             "REPORT", "PUT", "DELETE"};
    const pd_operation_t *operation = found->operation;
    const char *title = found->entry != NULL && found->entry->title != NULL ? found->entry->title
                                                                             : operation->title;
    const char *text = operation->description != NULL && operation->description[0] != '\0'
                           ? operation->description
                           : operation->id;
    const char *schema_text = advertised != NULL ? advertised->schema : operation->schema;
    size_t schema_bytes = advertised != NULL ? advertised->schema_bytes : operation->schema_bytes;
    json_t *schema = NULL;
    int is_idempotent = 0;
    int is_ready = 0;
    size_t i;
    int k;

    text = advertised != NULL ? advertised->description : text;
    for (k = 0; k < found->connections->nelts; k++) {
        is_ready |= APR_ARRAY_IDX(found->connections, k, const pd_connection_t *)->is_ready;
    }
    for (i = 0; i < sizeof(idempotent) / sizeof(idempotent[0]); i++) {
        is_idempotent |= strcmp(operation->method, idempotent[i]) == 0;
    }
    if (mcp_json_parse(schema_text, schema_bytes, MCP_MAX_DEPTH, &schema, NULL) != MCP_OK) {
        return NULL;
    }
    return json_pack("{s:s,s:s*,s:o,s:o,s:{s:b,s:b,s:b,s:b}}", "name", found->name, "title", title,
                     "description",
                     is_ready ? json_string(text) : json_sprintf("[needs reauthorisation] %s", text),
                     "inputSchema", schema, "annotations", "readOnlyHint",
                     operation->klass == MCP_CLASS_READ, "destructiveHint",
                     operation->klass == MCP_CLASS_DESTRUCTIVE, "idempotentHint", is_idempotent,
                     "openWorldHint", 1);
}

static pd_status_t weigh_found(const pd_found_t *found, void *baton)
{
    weighing_t *weighing = baton;
    unsigned needed = MCP_SCOPE_TOOLS | mcp_scope_of_class(found->operation->klass);
    const char *slug = found->connector->slug;
    const pd_advertised_t *advertised = NULL;
    apr_pool_t *scratch;
    pd_status_t status = PD_OK;

    if (pd_boot_left_ms(weighing->call->deadline) <= 0) {
        return PD_E_TIMEOUT;
    }
    if (!weighing->is_stepped_up &&
        (mcp_scope_close(weighing->caller.scopes) & needed) != needed) {
        return PD_OK;
    }
    if (apr_pool_create(&scratch, weighing->call->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    if (found->entry != NULL) {
        status = pd_entry_advertise_apart(found, scratch, &advertised);
    }
    if (status == PD_OK) {
        status = weigh(weighing, definition(found, advertised), slug, &weighing->connected,
                       sum_of(weighing, slug));
    }
    apr_pool_destroy(scratch);
    /* what no longer fits its operation is not listed */
    return status == PD_E_INVALID ? PD_OK : status;
}

static pd_status_t weigh_control(weighing_t *weighing)
{
    const char *prefix = weighing->call->core->config->control_prefix;
    pd_actor_t caller = weighing->caller;
    pd_status_t status = PD_OK;
    int i;

    if (weighing->is_stepped_up) {
        caller.scopes = ~0u;
    }
    for (i = 0; status == PD_OK && pd_ops_row(i) != NULL; i++) {
        char name[64];
        json_t *rest = NULL;
        json_t *def;

        pd_ops_name(pd_ops_row(i), name);
        status = pd_control_definition(&caller, name, &rest);
        if (status == PD_OK) {
            def = json_pack("{s:o}", "name",
                            json_sprintf("%s__%s", prefix != NULL ? prefix : "", name));
            if (json_object_update(def, rest) != 0) {
                json_decref(def);
                def = NULL;
            }
            json_decref(rest);
            status = weigh(weighing, def, NULL, &weighing->control, NULL);
        } else if (status == PD_E_NOT_FOUND) {
            status = PD_OK;
        }
    }
    return status;
}

/* --- the answer ------------------------------------------------------------------ */

static json_t *count_of(size_t characters)
{
    return json_pack("{s:I, s:I}", "characters", (json_int_t)characters, "tokens",
                     (json_int_t)mcp_footprint_tokens(characters));
}

/* Each part by itself; `of` (may be NULL) names a connector. */
static json_t *show_sum(const mcp_footprint_t *sum, const char *of)
{
    return json_pack("{s:s*, s:I, s:o, s:o, s:o, s:o}", "connector", of, "tools",
                     (json_int_t)sum->tools, "descriptions", count_of(sum->descriptions),
                     "parameters", count_of(sum->parameters), "schemas", count_of(sum->schemas),
                     "definitions", count_of(sum->definitions));
}

static int by_weight(const void *a, const void *b)
{
    const per_connector_t *x = *(const per_connector_t *const *)a;
    const per_connector_t *y = *(const per_connector_t *const *)b;

    if (x->sum.definitions != y->sum.definitions) {
        return x->sum.definitions < y->sum.definitions ? 1 : -1;
    }
    return strcmp(x->slug, y->slug);
}

/* Heaviest first; a missing item makes NULL. */
static json_t *show_connectors(const weighing_t *weighing)
{
    apr_pool_t *pool = weighing->call->pool;
    apr_array_header_t *all = apr_array_make(pool, 16, sizeof(const per_connector_t *));
    json_t *shown = json_array();
    apr_hash_index_t *at;
    int failed = 0;
    int i;

    for (at = apr_hash_first(pool, weighing->by_connector); at != NULL; at = apr_hash_next(at)) {
        APR_ARRAY_PUSH(all, const per_connector_t *) = apr_hash_this_val(at);
    }
    qsort(all->elts, (size_t)all->nelts, sizeof(const per_connector_t *), by_weight);
    for (i = 0; i < all->nelts; i++) {
        const per_connector_t *each = APR_ARRAY_IDX(all, i, const per_connector_t *);

        failed |= json_array_append_new(shown, show_sum(&each->sum, each->slug));
    }
    if (failed != 0) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

static json_t *show_heaviest(const weighing_t *weighing)
{
    json_t *shown = json_array();
    int failed = 0;
    int i;

    for (i = 0; i < weighing->heavy_count; i++) {
        const heavy_t *heavy = &weighing->heaviest[i];

        failed |= json_array_append_new(
            shown, json_pack("{s:s, s:s*, s:I, s:I}", "name", heavy->name, "connector",
                             heavy->connector, "characters", (json_int_t)heavy->characters,
                             "tokens", (json_int_t)mcp_footprint_tokens(heavy->characters)));
    }
    if (failed != 0) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

static json_t *show_scopes(unsigned scopes)
{
    static const unsigned bits[] = {MCP_SCOPE_READ, MCP_SCOPE_WRITE, MCP_SCOPE_DESTRUCTIVE,
                                    MCP_SCOPE_TOOLS};
    json_t *shown = json_array();
    int failed = 0;
    size_t i;

    for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        if ((mcp_scope_close(scopes) & bits[i]) != 0) {
            failed |= json_array_append_new(shown, json_string(mcp_scope_text(bits[i])));
        }
    }
    if (failed != 0) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

static pd_status_t answer(const weighing_t *weighing)
{
    pd_op_call_t *call = weighing->call;
    const char *prefix = call->core->config->control_prefix;
    char instructions[MCP_VIEW_TEXT_MAX];

    (void)mcp_view_text_instructions(prefix != NULL ? prefix : "", instructions,
                                     sizeof(instructions));
    return pd_op_answer(
        call,
        json_pack("{s:s*, s:s*, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:s}", "member",
                  weighing->caller.member_id, "client", pd_op_text(call, "client"), "mode", "flat",
                  "scopes", show_scopes(weighing->caller.scopes), "tools",
                  (json_int_t)(weighing->control.tools + weighing->connected.tools), "instructions",
                  count_of(mcp_footprint_characters(instructions)), "control",
                  show_sum(&weighing->control, NULL), "connected",
                  show_sum(&weighing->connected, NULL), "connectors", show_connectors(weighing),
                  "heaviest", show_heaviest(weighing), "note",
                  "definitions hold schemas, which hold parameters; tokens: " MCP_FOOTPRINT_NOTE));
}

pd_status_t pd_op_footprint_get(pd_op_call_t *call)
{
    weighing_t weighing = {.call = call, .by_connector = apr_hash_make(call->pool)};
    pd_subject_t subject;
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = pd_op_caller_named(call, pd_op_text(call, "member"), &subject, &weighing.caller);
    }
    if (status != PD_OK) {
        return status;
    }
    weighing.is_stepped_up = pd_snapshot_setting_bool(call->snapshot, "advertise.step_up", 0);
    if (pd_actor_may(&weighing.caller, "tool:execute")) {
        status = weigh_control(&weighing);
        if (status == PD_OK) {
            status = pd_reach_each(call->snapshot, &subject, call->pool, weigh_found, &weighing);
        }
    }
    return status == PD_OK ? answer(&weighing) : status;
}
