/* Searching and unwrapping: see mcp_meta.h. */
#include "mcp_meta.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/view_meta.h"
#include "../proto/view_search.h"
#include "mcp_args.h"
#include "mcp_control.h"
#include "mcp_tools.h"

/* --- the record --------------------------------------------------------------------------- */

/* Puts the attempt on record, whole; on failure nothing was done and the caller is told so. *ret_audit: the record's id. */
static apr_status_t note(mcp_turn_t *turn, const char *tool, const char *via, const json_t *arguments,
                         mcp_code_t code, size_t answered, apr_time_t began, const char **ret_audit,
                         mcp_err_t *err)
{
    mcp_attempt_t attempt;
    apr_status_t status;

    memset(&attempt, 0, sizeof(attempt));
    attempt.tool = tool;
    attempt.via = via;
    attempt.arg_names = mcp_args_names(arguments, &attempt.arg_count);
    attempt.request_bytes = arguments != NULL ? json_dumpb(arguments, NULL, 0, JSON_COMPACT) : 0;
    attempt.response_bytes = answered;
    attempt.trace_id = turn->trace_id;
    status = mcp_ask_note(turn->child->ask, &turn->who, &attempt,
                          code == MCP_CODE_NONE ? MCP_OUTCOME_OK : mcp_code_outcome(code), code,
                          apr_time_now() - began, turn->terms->policy_ms, turn->pool, ret_audit, err);
    json_decref(attempt.arg_names);
    return status;
}

/* Refuses with a code, on record. */
static apr_status_t refuse(mcp_turn_t *turn, const char *tool, const char *via, const json_t *arguments,
                           mcp_code_t code, const char *hint, const char *message, mcp_err_t *err)
{
    const char *audit = NULL;
    apr_status_t status =
        note(turn, tool, via, arguments, code, 0, apr_time_now(), &audit, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    (void)mcp_err_set(err, turn->pool, MCP_FAIL_TOOL, code, hint, "%s", message);
    err->audit = audit;
    return MCP_STATUS_REFUSED;
}

/* Who lacks tool:execute is told so before anything about his arguments. */
static apr_status_t gate(mcp_turn_t *turn, const char *tool, const char *via, const json_t *arguments,
                         mcp_err_t *err)
{
    apr_status_t status = mcp_turn_resolve(turn, err);

    if (status != APR_SUCCESS || turn->resolved.may_execute) {
        return status;
    }
    status = refuse(turn, tool, via, arguments, MCP_CODE_PERMISSION_DENIED,
                    "ask an administrator for a role that holds tool:execute, such as Member",
                    "your roles do not hold the permission tool:execute", err);
    err->permission = "tool:execute";
    return status;
}

/* --- search_tools ---------------------------------------------------------------------------- */

typedef struct asked {
    mcp_view_query_t query;
    int is_summary;
} asked_t;

/* The arguments, or what is wrong with them. */
static const char *read_arguments(const json_t *arguments, asked_t *ret)
{
    const json_t *query = json_object_get(arguments, "query");
    const json_t *account = json_object_get(arguments, "account");
    const json_t *limit = json_object_get(arguments, "limit");
    const json_t *detail = json_object_get(arguments, "detail");
    const char *name;
    const json_t *value;

    memset(ret, 0, sizeof(*ret));
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
    {
        if (!mcp_view_meta_knows(MCP_META_IS_SEARCH, name)) {
            return "invalid arguments: search_tools takes query, account, limit and detail";
        }
    }
    if (!json_is_string(query)) {
        return "invalid arguments: /query: a string is required";
    }
    if (account != NULL && !json_is_string(account)) {
        return "invalid arguments: /account: must be a string";
    }
    if (limit != NULL &&
        (!json_is_integer(limit) || json_integer_value(limit) < 1 || json_integer_value(limit) > MCP_VIEW_SEARCH_MOST)) {
        return "invalid arguments: /limit: must be an integer from 1 to 20";
    }
    if (detail != NULL && (!json_is_string(detail) || (strcmp(json_string_value(detail), "full") != 0 &&
                                                      strcmp(json_string_value(detail), "summary") != 0))) {
        return "invalid arguments: /detail: must be \"full\" or \"summary\"";
    }
    ret->query.text = json_string_value(query);
    ret->query.bytes = json_string_length(query);
    ret->query.account = json_string_value(account);
    ret->query.limit = limit != NULL ? (size_t)json_integer_value(limit) : 0;
    ret->is_summary = detail != NULL && strcmp(json_string_value(detail), "summary") == 0;
    return NULL;
}

/* One found tool: everything that it takes to call it; in summary its name and what it is. New reference, or NULL. */
static json_t *show_hit(const mcp_view_t *view, int i, int is_summary)
{
    const mcp_view_tool_t *tool = &view->tools[i];
    const char *text = view->flat.joined + view->flat.offsets[i];
    size_t bytes = view->flat.offsets[i + 1] - view->flat.offsets[i] - 1;
    json_t *shown = NULL;

    if (mcp_json_parse(text, bytes, MCP_MAX_DEPTH + 8, &shown, NULL) != MCP_OK) {
        return NULL;
    }
    if (is_summary) {
        (void)json_object_del(shown, "inputSchema");
        (void)json_object_del(shown, "annotations");
    }
    if (json_object_set_new(shown, "account", json_string(tool->account)) != 0 ||
        (tool->connector != NULL &&
         json_object_set_new(shown, "connector", json_string(tool->connector)) != 0) ||
        json_object_set_new(shown, "classification", json_string(mcp_class_text(tool->klass))) != 0) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

/* What an empty answer says beside nothing. */
static void explain_nothing(const mcp_view_t *view, const int *numbers, const mcp_view_found_t *found,
                            json_t *answer)
{
    json_t *unmatched = json_array();
    size_t i;

    for (i = 0; i < found->unmatched_count; i++) {
        json_array_append_new(unmatched, json_string(found->unmatched[i]));
    }
    json_object_set_new(answer, "unmatched", unmatched);
    if (found->suggest != NULL) {
        json_object_set_new(answer, "suggest", json_string(found->suggest));
    }
    if (found->closest_count > 0) {
        json_t *closest = json_array();

        for (i = 0; i < found->closest_count; i++) {
            json_array_append_new(closest, json_string(view->tools[numbers[found->closest[i].tool]].name));
        }
        json_object_set_new(answer, "closest_below_the_floor", closest);
    }
    json_object_set_new(answer, "reason", json_string(mcp_view_empty_text(found->empty)));
    json_object_set_new(answer, "note",
                        json_string("No tool that you may use fits. Search again with other words (product, "
                                    "verb, thing) only if you have better ones."));
}

static json_t *make_answer(const mcp_view_t *view, const int *numbers, const mcp_view_found_t *found,
                           int is_summary)
{
    json_t *answer = json_object();
    json_t *items = json_array();
    size_t i;

    json_object_set_new(answer, "items", items); /* owned by answer from here */
    for (i = 0; i < found->hit_count; i++) {
        if (json_array_append_new(items, show_hit(view, numbers[found->hits[i].tool], is_summary)) != 0) {
            json_decref(answer);
            return NULL;
        }
    }
    if (found->hit_count == 0) {
        explain_nothing(view, numbers, found, answer);
    }
    return answer;
}

static mcp_view_unknown_t unknown_of(const char *text)
{
    static const mcp_view_unknown_t all[] = {MCP_VIEW_UNKNOWN_COUNT, MCP_VIEW_UNKNOWN_IGNORE};
    size_t i;

    for (i = 0; text != NULL && i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(mcp_view_unknown_text(all[i]), text) == 0) {
            return all[i];
        }
    }
    return MCP_VIEW_UNKNOWN_ORDINARY;
}

/* The search itself; *ret a new reference. */
static apr_status_t search(mcp_turn_t *turn, asked_t *asked, json_t **ret, mcp_err_t *err)
{
    const mcp_view_index_t *index = NULL;
    const mcp_view_t *view = NULL;
    const int *numbers = NULL;
    const char *lexicon = NULL;
    mcp_view_found_t *found = NULL;
    apr_status_t status =
        mcp_view_get(turn->child->views, turn->resolved.view, turn->terms->control_prefix,
                     turn->terms->policy_ms, turn->pool, &view, err);

    if (status == APR_SUCCESS) {
        status = mcp_ask_hello_text(turn->child->ask, MCP_HELLO_LEXICON, turn->terms->policy_ms,
                                    turn->pool, &lexicon, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_view_search_index(turn->child->views, view, lexicon, turn->terms->policy_ms,
                                       turn->pool, &index, &numbers, err);
    }
    if (status != APR_SUCCESS) {
        return status;
    }
    asked->query.unknown_words = unknown_of(turn->resolved.unknown_words);
    asked->query.closest = turn->resolved.closest;
    if (mcp_view_search(index, &asked->query, turn->pool, &found) == MCP_OK) {
        *ret = make_answer(view, numbers, found, asked->is_summary);
    }
    return *ret != NULL ? APR_SUCCESS
                        : mcp_err_set(err, turn->pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                                      "the search failed");
}

apr_status_t mcp_meta_search(mcp_turn_t *turn, const mcp_era_t *era, const json_t *arguments,
                             const char *via, const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    apr_time_t began = apr_time_now();
    const char *audit = NULL;
    const char *wrong;
    json_t *answer = NULL;
    asked_t asked;
    apr_status_t status = gate(turn, MCP_META_SEARCH, via, arguments, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    wrong = read_arguments(arguments, &asked);
    if (wrong != NULL) {
        return refuse(turn, MCP_META_SEARCH, via, arguments, MCP_CODE_INVALID_ARGUMENTS,
                      "correct the arguments to match the tool's inputSchema and call again", wrong, err);
    }
    status = search(turn, &asked, &answer, err);
    if (status == APR_SUCCESS) {
        *ret = mcp_control_shape(answer, era, turn->pool);
        *ret_bytes = *ret != NULL ? strlen(*ret) : 0;
        status = *ret != NULL ? APR_SUCCESS
                              : mcp_err_set(err, turn->pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                                            "the answer can't be written");
    }
    if (status == APR_SUCCESS) {
        status = note(turn, MCP_META_SEARCH, via, arguments, MCP_CODE_NONE, *ret_bytes, began, &audit, err);
    }
    json_decref(answer);
    return status;
}

/* --- execute_tool ----------------------------------------------------------------------------- */

/* What is wrong with the arguments, or NULL. */
static const char *read_call(const json_t *arguments, const char **ret_name, const json_t **ret_inner)
{
    const json_t *name = json_object_get(arguments, "name");
    const json_t *inner = json_object_get(arguments, "arguments");
    const char *key;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        if (!mcp_view_meta_knows(MCP_META_IS_EXECUTE, key)) {
            return "invalid arguments: execute_tool takes name and arguments; the tool's own arguments belong "
                   "into `arguments`";
        }
    }
    if (!json_is_string(name) || json_string_length(name) == 0 ||
        json_string_length(name) > MCP_MAX_REQUESTED) {
        return "invalid arguments: /name: the name of a tool is required";
    }
    if (inner != NULL && !json_is_object(inner)) {
        return "invalid arguments: /arguments: must be an object";
    }
    if (mcp_view_meta(json_string_value(name)) == MCP_META_IS_EXECUTE) {
        return "invalid arguments: /name: execute_tool does not run itself";
    }
    *ret_name = json_string_value(name);
    *ret_inner = inner;
    return NULL;
}

apr_status_t mcp_meta_execute(mcp_turn_t *turn, const mcp_era_t *era, const json_t *arguments,
                              const char *via, const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    const char *name = NULL;
    const json_t *inner = NULL;
    const char *wrong = read_call(arguments, &name, &inner);
    mcp_era_t unmirrored = *era;
    apr_status_t status;

    if (wrong == NULL) {
        /* headers mirror the arguments of execute_tool, which mirrors none; the tool's own were not in the list that the client has */
        unmirrored.is_indirect = 1;
        return mcp_tools_run(turn, &unmirrored, name, inner, mcp_via_text(MCP_VIA_EXECUTE_TOOL), ret,
                             ret_bytes, err);
    }
    status = gate(turn, MCP_META_EXECUTE, via, arguments, err);
    return status != APR_SUCCESS
               ? status
               : refuse(turn, MCP_META_EXECUTE, via, arguments, MCP_CODE_INVALID_ARGUMENTS,
                        "give `name` as search_tools answered it, and `arguments` as its inputSchema says",
                        wrong, err);
}
