/* footprint get: see op_footprint.h. */
#include "op_footprint.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/view_collapse.h"
#include "../proto/view_footprint.h"
#include "../proto/view_meta.h"
#include "../proto/view_text.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_audit.h"
#include "pd_control.h"
#include "pd_entry.h"
#include "pd_view.h"

#define HEAVIEST 10
#define RECENT   500  /* calls of the audit trail whose answers are weighed */
#define AUDIT_MS 2000 /* that its copy may take: without it the rest is answered all the same */

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
    mcp_footprint_t control_brief; /* as they stand in a collapsed list */
    mcp_footprint_t connected;
    mcp_footprint_t pinned;   /* of connected: always visible */
    size_t callable;          /* with the scopes that the caller has */
    apr_array_header_t *digests; /* of each definition, in hex (const char *) */
    apr_hash_t *labels;       /* what a person calls the applications: the instructions name them */
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

/* Remembers what the definition is, whatever the order in which they come. */
static pd_status_t note_digest(weighing_t *weighing, const json_t *def)
{
    size_t bytes = 0;
    char *text = mcp_json_text(def, &bytes);

    if (text == NULL) {
        return PD_E_NOMEM;
    }
    APR_ARRAY_PUSH(weighing->digests, const char *) = apr_palloc(weighing->call->pool, MCP_DIGEST_HEX + 1);
    mcp_digest_hex(text, bytes, APR_ARRAY_IDX(weighing->digests, weighing->digests->nelts - 1, char *));
    free(text);
    return PD_OK;
}

/* One definition, stolen, into two sums (the second may be NULL) and among the heaviest. */
static pd_status_t weigh(weighing_t *weighing, json_t *def, const char *connector,
                         mcp_footprint_t *sum, mcp_footprint_t *other)
{
    mcp_footprint_t one = {.tools = 0};
    mcp_wire_status_t status = def != NULL ? mcp_footprint_add(def, &one) : MCP_E_NOMEM;

    if (status == MCP_OK && note_digest(weighing, def) != PD_OK) {
        status = MCP_E_NOMEM;
    }
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

/* A definition, stolen, into a further sum. */
static pd_status_t weigh_again(json_t *def, mcp_footprint_t *sum)
{
    mcp_wire_status_t status = def != NULL ? mcp_footprint_add(def, sum) : MCP_E_NOMEM;

    json_decref(def);
    return status == MCP_OK ? PD_OK : PD_E_NOMEM;
}

static void note_label(weighing_t *weighing, const pd_found_t *found)
{
    const char *label = found->connector->label;

    if (found->entry != NULL) {
        label = found->toolbox->description != NULL ? found->toolbox->description : found->toolbox->name;
    }
    apr_hash_set(weighing->labels, label, APR_HASH_KEY_STRING, label);
}

static pd_status_t weigh_found(const pd_found_t *found, void *baton)
{
    weighing_t *weighing = baton;
    unsigned needed = MCP_SCOPE_TOOLS | mcp_scope_of_class(found->operation->klass);
    const char *slug = found->connector->slug;
    const pd_advertised_t *advertised = NULL;
    apr_pool_t *scratch;
    pd_status_t status = PD_OK;
    int is_callable;

    if (pd_boot_left_ms(weighing->call->deadline) <= 0) {
        return PD_E_TIMEOUT;
    }
    is_callable = (mcp_scope_close(weighing->caller.scopes) & needed) == needed;
    if (!weighing->is_stepped_up && !is_callable) {
        return PD_OK;
    }
    if (apr_pool_create(&scratch, weighing->call->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    if (found->entry != NULL) {
        status = pd_entry_advertise_apart(found, scratch, &advertised);
    }
    if (status == PD_OK) {
        status = weigh(weighing, pd_view_tool(found, advertised), slug, &weighing->connected,
                       sum_of(weighing, slug));
    }
    if (status == PD_OK && found->entry != NULL && found->entry->is_always_visible) {
        status = weigh_again(pd_view_tool(found, advertised), &weighing->pinned);
    }
    weighing->callable += status == PD_OK && is_callable;
    note_label(weighing, found);
    apr_pool_destroy(scratch);
    /* what no longer fits its operation is not listed */
    return status == PD_E_INVALID ? PD_OK : status;
}

/* An operation's definition with its name before it; `rest` is stolen. NULL: out of memory. */
static json_t *named(const weighing_t *weighing, const char *name, json_t *rest)
{
    const char *prefix = weighing->call->core->config->control_prefix;
    json_t *def = json_pack("{s:o}", "name",
                            json_sprintf("%s__%s", prefix != NULL ? prefix : "", name));

    if (json_object_update(def, rest) != 0) {
        json_decref(def);
        def = NULL;
    }
    json_decref(rest);
    return def;
}

static pd_status_t weigh_operation(weighing_t *weighing, const pd_actor_t *caller, const pd_op_t *op)
{
    char name[64];
    json_t *rest = NULL;
    pd_status_t status;

    pd_ops_name(op, name);
    status = pd_control_definition(caller, name, &rest);
    if (status != PD_OK) {
        return status == PD_E_NOT_FOUND ? PD_OK : status;
    }
    status = weigh(weighing, named(weighing, name, rest), NULL, &weighing->control, NULL);
    rest = NULL;
    if (status == PD_OK) {
        status = pd_control_brief(caller, name, &rest);
    }
    if (status == PD_OK) {
        status = weigh_again(named(weighing, name, rest), &weighing->control_brief);
    }
    return status;
}

static pd_status_t weigh_control(weighing_t *weighing)
{
    pd_actor_t caller = weighing->caller;
    unsigned char bits[PD_CONTROL_BITS];
    pd_status_t status = PD_OK;
    int i;

    weighing->callable += (size_t)pd_control_select(&caller, bits);
    if (weighing->is_stepped_up) {
        caller.scopes = ~0u;
    }
    for (i = 0; status == PD_OK && pd_ops_row(i) != NULL; i++) {
        status = weigh_operation(weighing, &caller, pd_ops_row(i));
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
    return json_pack("{s:s*, s:I, s:o, s:o, s:o, s:o, s:o}", "connector", of, "tools",
                     (json_int_t)sum->tools, "descriptions", count_of(sum->descriptions),
                     "parameters", count_of(sum->parameters), "names", count_of(sum->names),
                     "schemas", count_of(sum->schemas), "definitions", count_of(sum->definitions));
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

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The settings of collapse as they hold for the caller and the client that is asked about. */
static mcp_collapse_rule_t rule_of(const weighing_t *weighing)
{
    static const char *const words[] = {"mode", "threshold", "budget_tokens", "budget_percent",
                                        "context_tokens"};
    const pd_op_call_t *call = weighing->call;
    json_t *object = json_object();
    mcp_collapse_rule_t rule;
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const json_t *value = pd_snapshot_setting_for(
            call->snapshot, apr_pstrcat(call->pool, "collapse.", words[i], NULL),
            pd_op_text(call, "client"), weighing->caller.grant_id, call->pool);

        if (value != NULL) {
            json_object_set_new(object, words[i], json_deep_copy(value));
        }
    }
    rule = mcp_collapse_rule_of(object);
    json_decref(object);
    return rule;
}

/* Characters of the instructions as this caller is told them. */
static size_t instructions_of(const weighing_t *weighing, int is_collapsed)
{
    const pd_op_call_t *call = weighing->call;
    const char **names =
        apr_palloc(call->pool, sizeof(*names) * (apr_hash_count(weighing->labels) + 1));
    char text[MCP_VIEW_TEXT_MAX];
    mcp_view_about_t about;
    apr_hash_index_t *at;
    size_t count = 0;

    for (at = apr_hash_first(call->pool, weighing->labels); at != NULL; at = apr_hash_next(at)) {
        names[count++] = apr_hash_this_val(at);
    }
    qsort(names, count, sizeof(*names), by_text);
    about.prefix = call->core->config->control_prefix != NULL ? call->core->config->control_prefix : "";
    about.is_collapsed = is_collapsed;
    about.applications = names;
    about.application_count = count;
    (void)mcp_view_text_instructions(&about, text, sizeof(text));
    return mcp_footprint_characters(text);
}

/* --- counts ---------------------------------------------------------------------- */

/* Tools of all connections and toolboxes and all operations, whoever has them. */
static json_int_t registered(const pd_snapshot_t *snapshot, apr_pool_t *pool)
{
    json_int_t count = pd_control_count();
    apr_hash_index_t *at;
    int i;

    for (at = apr_hash_first(pool, snapshot->ground->connections); at != NULL; at = apr_hash_next(at)) {
        const pd_connection_t *connection = apr_hash_this_val(at);

        count += connection->is_toolbox_only ? 0 : connection->tools->nelts;
    }
    for (i = 0; i < snapshot->toolboxes->sorted->nelts; i++) {
        count += APR_ARRAY_IDX(snapshot->toolboxes->sorted, i, const pd_toolbox_t *)->entries->nelts;
    }
    return count;
}

/* One digest for all definitions of the flat list, in hex; in the call's pool. */
static const char *digest_of(const weighing_t *weighing)
{
    apr_pool_t *pool = weighing->call->pool;
    const char *all;
    char *digest = apr_palloc(pool, MCP_DIGEST_HEX + 1);

    if (weighing->digests->nelts > 0) {
        qsort(weighing->digests->elts, (size_t)weighing->digests->nelts, sizeof(const char *), by_text);
    }
    all = apr_array_pstrcat(pool, weighing->digests, '\n');
    mcp_digest_hex(all, strlen(all), digest);
    return digest;
}

/* Mean size of what calls of these rows answered, without those of `but` (may be NULL); NULL: there was none. */
static json_t *mean_of(const json_t *rows, const char *but)
{
    json_int_t calls = 0;
    json_int_t bytes = 0;
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const char *tool = mcp_json_str(row, "tool");
        json_int_t own = mcp_json_int(row, "response_bytes", -1);

        if (own > 0 && own <= INT32_MAX && (but == NULL || tool == NULL || strcmp(tool, but) != 0)) {
            calls++;
            bytes += own; /* a few hundred of 31 bits each */
        }
    }
    return calls == 0 ? NULL
                      : json_pack("{s:I, s:I}", "calls", calls, "mean_bytes", bytes / calls);
}

/* What the last calls of the member answered, as the audit trail has it; `tool` (may be NULL) alone, or without `but`. NULL where nothing is
 * known. */
static json_t *results_of(const weighing_t *weighing, const char *tool, const char *but)
{
    const pd_op_call_t *call = weighing->call;
    pd_audit_query_t query = {.member = weighing->caller.member_id,
                              .tool = tool,
                              .surface = "mcp",
                              .outcome = "ok",
                              .limit = RECENT};
    pd_boot_t soon = pd_boot_in(AUDIT_MS);
    json_t *rows = NULL;
    json_t *mean;

    if (query.member == NULL ||
        pd_audit_list(call->core->audit, &query, soon.us < call->deadline.us ? soon : call->deadline,
                      &rows) != PD_OK) {
        return NULL;
    }
    mean = mean_of(rows, but);
    json_decref(rows);
    return mean;
}

/* What calls brought: the member's own to see, and those who may read the trail. */
static json_t *show_results(const weighing_t *weighing)
{
    if (pd_op_text(weighing->call, "member") != NULL &&
        !pd_op_is_actor(weighing->call, pd_op_text(weighing->call, "member")) &&
        !pd_actor_may(weighing->call->actor, "audit:read")) {
        return json_object();
    }
    return json_pack("{s:o*, s:o*}", "search", results_of(weighing, MCP_META_SEARCH, NULL), "tools",
                     results_of(weighing, NULL, MCP_META_SEARCH));
}

/* What is listed where the tools collapse: operations in short, pinned tools, and the two meta-tools. */
static pd_status_t sum_collapsed(const weighing_t *weighing, mcp_footprint_t *ret)
{
    pd_status_t status = PD_OK;
    int i;

    *ret = weighing->control_brief;
    mcp_footprint_join(&weighing->pinned, ret);
    for (i = 0; status == PD_OK && i < MCP_METAS; i++) {
        const char *text = mcp_view_meta_definition((mcp_meta_t)i);
        json_t *def = NULL;

        (void)mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, &def, NULL); /* NULL without memory */
        status = weigh_again(def, ret);
    }
    return status;
}

/* A whole list: what its definitions are made of, and the instructions that go with it. */
static json_t *show_list(const weighing_t *weighing, const mcp_footprint_t *sum, int is_collapsed)
{
    json_t *shown = show_sum(sum, NULL);

    if (json_object_set_new(shown, "instructions", count_of(instructions_of(weighing, is_collapsed))) != 0) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

/* Definition characters that collapsing saves, in thousandths; negative where it costs more. */
static json_int_t saved(const mcp_footprint_t *flat, const mcp_footprint_t *collapsed)
{
    json_int_t whole = (json_int_t)flat->definitions; /* of definitions that lie in memory: far from overflow */

    return whole == 0 ? 0 : (whole - (json_int_t)collapsed->definitions) * 1000 / whole;
}

static pd_status_t answer(const weighing_t *weighing)
{
    pd_op_call_t *call = weighing->call;
    mcp_collapse_rule_t rule = rule_of(weighing);
    mcp_footprint_t flat = weighing->control;
    mcp_footprint_t collapsed;
    mcp_collapse_counts_t counts;
    mcp_collapse_why_t why;
    json_t *shown;
    int is_collapsed;
    int failed = 0;

    if (sum_collapsed(weighing, &collapsed) != PD_OK) {
        return PD_E_NOMEM;
    }
    mcp_footprint_join(&weighing->connected, &flat);
    counts.control = (int64_t)weighing->control.tools;
    counts.connected = (int64_t)weighing->connected.tools;
    counts.pinned = (int64_t)weighing->pinned.tools;
    counts.characters = (int64_t)flat.definitions;
    is_collapsed = mcp_collapse_decide(&counts, &rule, &why);
    shown = json_pack("{s:s*, s:s*, s:s, s:s, s:o, s:I, s:I, s:I, s:s, s:o}", "member",
                      weighing->caller.member_id, "client", pd_op_text(call, "client"), "mode",
                      is_collapsed ? "collapsed" : "flat", "why", mcp_collapse_why_text(why), "scopes",
                      show_scopes(weighing->caller.scopes), "tools", (json_int_t)flat.tools, "callable",
                      (json_int_t)weighing->callable, "listed",
                      (json_int_t)(is_collapsed ? collapsed.tools : flat.tools), "digest",
                      digest_of(weighing), "flat", show_list(weighing, &flat, 0));
    if (pd_actor_may(call->actor, "connection:read_all") && pd_actor_may(call->actor, "toolbox:read_all")) {
        failed |= json_object_set_new(shown, "registered",
                                      json_integer(registered(call->snapshot, call->pool)));
    }
    if (weighing->connected.tools > weighing->pinned.tools) {
        failed |= json_object_set_new(shown, "collapsed", show_list(weighing, &collapsed, 1));
        failed |= json_object_set_new(shown, "saved_per_mille", json_integer(saved(&flat, &collapsed)));
    }
    failed |= json_object_set_new(shown, "definitions",
                                  json_pack("{s:o, s:o}", "flat", count_of(flat.definitions), "collapsed",
                                            count_of(collapsed.definitions)));
    failed |= json_object_set_new(shown, "control", show_sum(&weighing->control, NULL));
    failed |= json_object_set_new(shown, "connected", show_sum(&weighing->connected, NULL));
    failed |= json_object_set_new(shown, "connectors", show_connectors(weighing));
    failed |= json_object_set_new(shown, "heaviest", show_heaviest(weighing));
    failed |= json_object_set_new(shown, "results", show_results(weighing));
    failed |= json_object_set_new(shown, "note",
                                  json_string("definitions hold schemas, which hold parameters and names; tokens: "
                                              "characters/4, " MCP_FOOTPRINT_NOTE));
    if (failed != 0) {
        json_decref(shown);
        return PD_E_NOMEM;
    }
    return pd_op_answer(call, shown);
}

pd_status_t pd_op_footprint_get(pd_op_call_t *call)
{
    weighing_t weighing = {.call = call,
                           .by_connector = apr_hash_make(call->pool),
                           .digests = apr_array_make(call->pool, 64, sizeof(const char *)),
                           .labels = apr_hash_make(call->pool)};
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
