/* tools search: the search of the web tier, run here over the same tools by the same functions. See op_search.h. */
#include "op_search.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/view_search.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_browse.h"
#include "pd_entry.h"
#include "pd_lexicon.h"
#include "pd_view.h"

typedef struct searching {
    pd_op_call_t *call;
    pd_actor_t caller; /* whose tools they are */
    int is_stepped_up;
    apr_array_header_t *entries; /* of mcp_view_entry_t; texts of the snapshot and of the definitions */
    apr_array_header_t *classes; /* of mcp_class_t, as many */
} searching_t;

/* --- the tools ------------------------------------------------------------------------ */

static pd_status_t take(const pd_found_t *found, void *baton)
{
    searching_t *searching = baton;
    pd_op_call_t *call = searching->call;
    unsigned needed = MCP_SCOPE_TOOLS | mcp_scope_of_class(found->operation->klass);
    const pd_advertised_t *advertised = NULL;
    mcp_view_entry_t *entry;
    pd_status_t status = PD_OK;
    json_t *def;

    if (pd_boot_left_ms(call->deadline) <= 0) {
        return PD_E_TIMEOUT;
    }
    if (!searching->is_stepped_up && (mcp_scope_close(searching->caller.scopes) & needed) != needed) {
        return PD_OK;
    }
    if (found->entry != NULL) {
        status = pd_entry_advertise_apart(found, call->pool, &advertised);
    }
    if (status != PD_OK) {
        return status == PD_E_INVALID ? PD_OK : status; /* one that no longer fits is not listed either */
    }
    def = pd_op_keep(call, pd_view_tool(found, advertised));
    if (def == NULL) {
        return PD_E_NOMEM;
    }
    entry = apr_array_push(searching->entries);
    memset(entry, 0, sizeof(*entry));
    entry->name = mcp_json_str(def, "name");
    entry->description = mcp_json_str(def, "description");
    entry->schema = json_object_get(def, "inputSchema");
    entry->connector = found->connector->slug;
    if (found->entry != NULL) {
        entry->account = found->toolbox->name;
        entry->label = found->toolbox->description != NULL ? found->toolbox->description
                                                           : found->toolbox->name;
    } else {
        entry->account = APR_ARRAY_IDX(found->connections, 0, const pd_connection_t *)->label;
        entry->label = found->connector->label;
    }
    APR_ARRAY_PUSH(searching->classes, mcp_class_t) = found->operation->klass;
    return PD_OK;
}

/* The words for this caller: the shipped ones and the names of connectors that he may browse and has no tool of. */
static pd_status_t lexicon_of(pd_op_call_t *call, const pd_subject_t *subject,
                              const mcp_view_lexicon_t **ret)
{
    json_t *names = pd_op_keep(call, pd_browse_applications(call->snapshot, subject, call->pool));
    mcp_view_lexicon_t *made = NULL;
    size_t bytes = 0;
    char *text = names != NULL ? mcp_json_text(names, &bytes) : NULL;
    mcp_wire_status_t status =
        text != NULL ? mcp_view_lexicon_parse(text, bytes, pd_lexicon(), call->pool, &made) : MCP_E_NOMEM;

    free(text);
    *ret = made;
    return status == MCP_OK ? PD_OK : PD_E_NOMEM;
}

/* --- the answer ------------------------------------------------------------------------- */

static json_t *show_fields(unsigned fields)
{
    static const struct {
        unsigned field;
        const char *text;
    } all[] = {{MCP_VIEW_FIELD_NAME, "name"},
               {MCP_VIEW_FIELD_NAME_PART, "name_part"},
               {MCP_VIEW_FIELD_LABEL, "label"},
               {MCP_VIEW_FIELD_DESCRIPTION, "description"}};
    json_t *shown = json_array();
    size_t i;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if ((fields & all[i].field) != 0) {
            json_array_append_new(shown, json_string(all[i].text));
        }
    }
    return shown;
}

/* Fixed point as a number that people read. */
static json_t *number(uint64_t value)
{
    return json_real((double)(value / (MCP_VIEW_SEARCH_ONE / 256)) / 256.0);
}

static json_t *show_matches(const mcp_view_found_t *found, const mcp_view_hit_t *hit)
{
    json_t *shown = json_array();
    size_t i;

    for (i = 0; i < hit->match_count; i++) {
        json_array_append_new(shown, json_pack("{s:s,s:o,s:o}", "word",
                                               found->terms[hit->matches[i].term].text, "fields",
                                               show_fields(hit->matches[i].fields), "points",
                                               number(hit->matches[i].points)));
    }
    return shown;
}

static json_t *show_hit(const searching_t *searching, const mcp_view_found_t *found,
                        const mcp_view_hit_t *hit, int is_explained)
{
    const mcp_view_entry_t *entry =
        &APR_ARRAY_IDX(searching->entries, (int)hit->tool, mcp_view_entry_t);
    json_t *shown = json_pack(
        "{s:s,s:s,s:s,s:s,s:o}", "name", entry->name, "connector", entry->connector, "account",
        entry->account, "classification",
        mcp_class_text(APR_ARRAY_IDX(searching->classes, (int)hit->tool, mcp_class_t)), "score",
        number(hit->score));

    if (shown != NULL && is_explained) {
        json_object_set_new(shown, "covered", number(hit->covered));
        json_object_set_new(shown, "matches", show_matches(found, hit));
        if (hit->is_whole_name) {
            json_object_set_new(shown, "whole_name", json_true());
        }
    }
    return shown;
}

static json_t *show_hits(const searching_t *searching, const mcp_view_found_t *found,
                         const mcp_view_hit_t *hits, size_t count, int is_explained)
{
    json_t *shown = json_array();
    size_t i;

    for (i = 0; i < count; i++) {
        if (json_array_append_new(shown, show_hit(searching, found, &hits[i], is_explained)) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

static json_t *show_terms(const mcp_view_found_t *found)
{
    json_t *shown = json_array();
    size_t i;

    for (i = 0; i < found->term_count; i++) {
        const mcp_view_term_t *term = &found->terms[i];

        json_array_append_new(shown, json_pack("{s:s,s:s,s:o,s:I}", "word", term->text, "role",
                                               mcp_view_role_text(term->role), "weight",
                                               number(term->weight), "tools",
                                               (json_int_t)term->tools));
    }
    return shown;
}

static pd_status_t answer(const searching_t *searching, const mcp_view_found_t *found, int is_explained)
{
    json_t *unmatched = json_array();
    json_t *shown;
    size_t i;

    for (i = 0; i < found->unmatched_count; i++) {
        json_array_append_new(unmatched, json_string(found->unmatched[i]));
    }
    shown = json_pack("{s:o*,s:o,s:s?,s:I,s:I}", "items",
                      show_hits(searching, found, found->hits, found->hit_count, is_explained),
                      "unmatched", unmatched, "suggest", found->suggest, "above",
                      (json_int_t)found->above, "below", (json_int_t)found->below);
    if (shown != NULL && found->empty != MCP_VIEW_EMPTY_NOT) {
        json_object_set_new(shown, "reason", json_string(mcp_view_empty_text(found->empty)));
    }
    if (shown != NULL && is_explained) {
        json_object_set_new(shown, "words", show_terms(found));
        json_object_set_new(shown, "floor", number(found->mass / 2));
        json_object_set_new(shown, "dropped",
                            show_hits(searching, found, found->dropped, found->dropped_count, 1));
    }
    return pd_op_answer(searching->call, shown);
}

/* --- the operation ------------------------------------------------------------------------ */

static mcp_view_unknown_t unknown_of(const pd_op_call_t *call)
{
    const char *text = pd_snapshot_setting(call->snapshot, "search.unknown_words", "ordinary");

    return strcmp(text, "count") == 0    ? MCP_VIEW_UNKNOWN_COUNT
           : strcmp(text, "ignore") == 0 ? MCP_VIEW_UNKNOWN_IGNORE
                                         : MCP_VIEW_UNKNOWN_ORDINARY;
}

static pd_status_t search(searching_t *searching, const mcp_view_lexicon_t *lexicon)
{
    pd_op_call_t *call = searching->call;
    const char *text = pd_op_text(call, "query");
    int is_explained = mcp_json_bool(call->args, "explain");
    mcp_view_index_t *index = NULL;
    mcp_view_found_t *found = NULL;
    mcp_view_query_t query;
    mcp_wire_status_t status =
        mcp_view_index_build((const mcp_view_entry_t *)(const void *)searching->entries->elts,
                             (size_t)searching->entries->nelts, lexicon, call->pool, &index);

    if (status == MCP_E_SIZE) {
        return pd_fault(&call->fault, MCP_CODE_RESULT_TOO_LARGE, "Narrow it by a restriction.",
                        "There are more tools than a search takes.");
    }
    memset(&query, 0, sizeof(query));
    query.text = text;
    query.bytes = strlen(text);
    query.account = pd_op_text(call, "account");
    query.limit = (size_t)mcp_json_int(call->args, "limit", 0);
    query.closest = (size_t)pd_snapshot_setting_int(call->snapshot, "search.closest", 0);
    query.unknown_words = unknown_of(call);
    query.is_explained = is_explained;
    if (status == MCP_OK) {
        status = mcp_view_search(index, &query, call->pool, &found);
    }
    return status == MCP_OK ? answer(searching, found, is_explained) : PD_E_NOMEM;
}

pd_status_t pd_op_tools_search(pd_op_call_t *call)
{
    searching_t searching = {.call = call,
                             .entries = apr_array_make(call->pool, 256, sizeof(mcp_view_entry_t)),
                             .classes = apr_array_make(call->pool, 256, sizeof(mcp_class_t))};
    const mcp_view_lexicon_t *lexicon = NULL;
    pd_subject_t subject;
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = pd_op_caller_named(call, pd_op_text(call, "member"), &subject, &searching.caller);
    }
    if (status != PD_OK) {
        return status;
    }
    searching.is_stepped_up = pd_snapshot_setting_bool(call->snapshot, "advertise.step_up", 0);
    if (pd_actor_may(&searching.caller, "tool:execute")) {
        status = pd_reach_each(call->snapshot, &subject, call->pool, take, &searching);
    }
    if (status == PD_OK) {
        status = lexicon_of(call, &subject, &lexicon);
    }
    return status == PD_OK ? search(&searching, lexicon) : status;
}
