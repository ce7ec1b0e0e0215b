/* Evaluation of the keywords that apply schemas to the members of an object and the items of
 * an array (Core 2020-12, sections 10.3 and 11). */
#include "mcp_schema_private.h"

#include <string.h>

static void track_mark(mcp_schema_track_t *track, size_t index)
{
    if (track != NULL) {
        track->marks[index] = 1;
    }
}

/* A node for a member or item of the instance. */
static mcp_schema_verdict_t eval_child(mcp_schema_run_t *run, const mcp_schema_node_t *node,
                                       const mcp_schema_spot_t *spot, const json_t *child,
                                       const char *key, size_t index, const char *via)
{
    mcp_schema_path_t path = {spot->path, key, index};
    mcp_schema_spot_t inner = {child, &path, spot->scope, NULL};

    return mcp_schema_eval(run, node, &inner, via);
}

/* --- objects ------------------------------------------------------------------------ */

/* Marks the members of the instance that `properties` names. */
static bool mark_named(mcp_schema_run_t *run, const mcp_schema_spot_t *spot, const json_t *named)
{
    size_t index = 0;

    for (void *at = mcp_schema_first(spot->instance); at != NULL;
         at = mcp_schema_next(spot->instance, at), index++) {
        if (!mcp_schema_spend(run, 1)) {
            return false;
        }
        if (json_object_get(named, json_object_iter_key(at)) != NULL) {
            track_mark(spot->track, index);
        }
    }
    return true;
}

mcp_schema_verdict_t mcp_schema_eval_properties(mcp_schema_run_t *run,
                                                const mcp_schema_spot_t *spot,
                                                const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;

    if (!json_is_object(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    for (size_t i = 0; i < keyword->n && verdict == MCP_SCHEMA_VALID; i++) {
        const mcp_schema_member_t *member = &keyword->members[i];
        const json_t *child = json_object_get(spot->instance, member->name);

        if (!mcp_schema_spend(run, 1)) {
            return MCP_SCHEMA_LIMIT;
        }
        if (child != NULL) {
            verdict = eval_child(run, member->node, spot, child, member->name, 0, keyword->name);
        }
    }
    if (verdict == MCP_SCHEMA_VALID && spot->track != NULL &&
        !mark_named(run, spot, keyword->value)) {
        return MCP_SCHEMA_LIMIT;
    }
    return verdict;
}

/* VALID: the name matches. */
static mcp_schema_verdict_t match_name(mcp_schema_run_t *run, const mcp_regex_t *regex,
                                       const char *name)
{
    int found;

    if (!mcp_schema_spend(run, 4)) {
        return MCP_SCHEMA_LIMIT;
    }
    found = mcp_regex_match_within(regex, name, strlen(name), &run->work);
    if (found < 0) {
        return MCP_SCHEMA_LIMIT;
    }
    return found > 0 ? MCP_SCHEMA_VALID : MCP_SCHEMA_INVALID;
}

static mcp_schema_verdict_t eval_pattern_member(mcp_schema_run_t *run,
                                                const mcp_schema_spot_t *spot,
                                                const mcp_schema_keyword_t *keyword,
                                                const mcp_schema_member_t *member)
{
    mcp_schema_verdict_t verdict;
    size_t index = 0;

    for (void *at = mcp_schema_first(spot->instance); at != NULL;
         at = mcp_schema_next(spot->instance, at), index++) {
        const char *key = json_object_iter_key(at);

        verdict = match_name(run, member->regex, key);
        if (verdict == MCP_SCHEMA_INVALID) {
            continue;
        }
        if (verdict == MCP_SCHEMA_VALID) {
            verdict = eval_child(run, member->node, spot, json_object_iter_value(at), key, 0,
                                 keyword->name);
        }
        if (verdict != MCP_SCHEMA_VALID) {
            return verdict;
        }
        track_mark(spot->track, index);
    }
    return MCP_SCHEMA_VALID;
}

mcp_schema_verdict_t mcp_schema_eval_patterns(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                              const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;

    if (!json_is_object(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    for (size_t i = 0; i < keyword->n && verdict == MCP_SCHEMA_VALID; i++) {
        verdict = mcp_schema_spend(run, 1)
                      ? eval_pattern_member(run, spot, keyword, &keyword->members[i])
                      : MCP_SCHEMA_LIMIT;
    }
    return verdict;
}

/* A member that nothing allows; the path has its name, the message those that exist. */
static mcp_schema_verdict_t fail_unknown(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                         const char *key, const char *rule, const json_t *known)
{
    mcp_schema_path_t path = {spot->path, key, 0};
    mcp_schema_text_t text;
    size_t n = 0;

    if (!mcp_schema_is_loud(run)) {
        return MCP_SCHEMA_INVALID;
    }
    text = mcp_schema_error_start(run->err, &path, rule);
    mcp_schema_text_add(&text, "property not allowed");
    for (void *at = known == NULL ? NULL : mcp_schema_first(known);
         at != NULL && n < MCP_SCHEMA_LISTED; at = mcp_schema_next(known, at), n++) {
        mcp_schema_text_add(&text, n == 0 ? "; known are: " : ", ");
        mcp_schema_text_quote(&text, json_object_iter_key(at));
    }
    if (n < json_object_size(known)) {
        mcp_schema_text_add(&text, " and ");
        mcp_schema_text_count(&text, json_object_size(known) - n);
        mcp_schema_text_add(&text, " more");
    }
    return MCP_SCHEMA_INVALID;
}

/* INVALID: a name that neither `properties` nor `patternProperties` covers. */
static mcp_schema_verdict_t is_covered(mcp_schema_run_t *run, const mcp_schema_keyword_t *keyword,
                                       const char *key)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_INVALID;

    if (keyword->siblings != NULL && json_object_get(keyword->siblings, key) != NULL) {
        return MCP_SCHEMA_VALID;
    }
    if (keyword->patterns == NULL) {
        return MCP_SCHEMA_INVALID;
    }
    for (size_t i = 0; i < keyword->patterns->n && verdict == MCP_SCHEMA_INVALID; i++) {
        verdict = match_name(run, keyword->patterns->members[i].regex, key);
    }
    return verdict;
}

mcp_schema_verdict_t mcp_schema_eval_additional(mcp_schema_run_t *run,
                                                const mcp_schema_spot_t *spot,
                                                const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict;
    size_t index = 0;

    if (!json_is_object(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    for (void *at = mcp_schema_first(spot->instance); at != NULL;
         at = mcp_schema_next(spot->instance, at), index++) {
        const char *key = json_object_iter_key(at);

        if (!mcp_schema_spend(run, 2)) {
            return MCP_SCHEMA_LIMIT;
        }
        verdict = is_covered(run, keyword, key);
        if (verdict == MCP_SCHEMA_VALID) {
            continue;
        }
        if (verdict == MCP_SCHEMA_INVALID) {
            verdict = keyword->node->boolean == 0
                          ? fail_unknown(run, spot, key, keyword->name, keyword->siblings)
                          : eval_child(run, keyword->node, spot, json_object_iter_value(at), key, 0,
                                       keyword->name);
        }
        if (verdict != MCP_SCHEMA_VALID) {
            return verdict;
        }
        track_mark(spot->track, index);
    }
    return MCP_SCHEMA_VALID;
}

/* The message of a name says that it is about the name. */
static void say_name(mcp_schema_run_t *run)
{
    char inner[sizeof(run->err->message)];
    mcp_schema_text_t text;

    memcpy(inner, run->err->message, sizeof(inner));
    mcp_schema_text_start(&text, run->err->message, sizeof(run->err->message));
    mcp_schema_text_add(&text, "property name: ");
    mcp_schema_text_add(&text, inner);
}

mcp_schema_verdict_t mcp_schema_eval_names(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                           const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;

    if (!json_is_object(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    for (void *at = mcp_schema_first(spot->instance); at != NULL && verdict == MCP_SCHEMA_VALID;
         at = mcp_schema_next(spot->instance, at)) {
        const char *key = json_object_iter_key(at);
        json_t *name;

        if (!mcp_schema_spend(run, 4)) {
            return MCP_SCHEMA_LIMIT;
        }
        name = json_string_nocheck(key);
        if (name == NULL) {
            return MCP_SCHEMA_NOMEM;
        }
        verdict = eval_child(run, keyword->node, spot, name, key, 0, keyword->name);
        json_decref(name);
    }
    if (verdict == MCP_SCHEMA_INVALID && mcp_schema_is_loud(run)) {
        say_name(run);
    }
    return verdict;
}

mcp_schema_verdict_t mcp_schema_eval_unevaluated_properties(mcp_schema_run_t *run,
                                                            const mcp_schema_spot_t *spot,
                                                            const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict;
    size_t index = 0;

    if (!json_is_object(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    for (void *at = mcp_schema_first(spot->instance); at != NULL;
         at = mcp_schema_next(spot->instance, at), index++) {
        const char *key = json_object_iter_key(at);

        if (!mcp_schema_spend(run, 1)) {
            return MCP_SCHEMA_LIMIT;
        }
        if (spot->track->marks[index] != 0) {
            continue;
        }
        verdict = keyword->node->boolean == 0
                      ? fail_unknown(run, spot, key, keyword->name, keyword->siblings)
                      : eval_child(run, keyword->node, spot, json_object_iter_value(at), key, 0,
                                   keyword->name);
        if (verdict != MCP_SCHEMA_VALID) {
            return verdict;
        }
        track_mark(spot->track, index);
    }
    return MCP_SCHEMA_VALID;
}

/* --- arrays -------------------------------------------------------------------------- */

/* prefixItems, and draft-07's items with an array. */
mcp_schema_verdict_t mcp_schema_eval_prefix(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                            const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;
    size_t n = json_array_size(spot->instance); /* 0 for what is none */

    for (size_t i = 0; i < keyword->n && i < n && verdict == MCP_SCHEMA_VALID; i++) {
        if (!mcp_schema_spend(run, 1)) {
            return MCP_SCHEMA_LIMIT;
        }
        verdict = eval_child(run, keyword->nodes[i], spot, json_array_get(spot->instance, i), NULL,
                             i, keyword->name);
        track_mark(spot->track, i);
    }
    return verdict;
}

/* Items behind the first n: items, and draft-07's additionalItems. */
mcp_schema_verdict_t mcp_schema_eval_rest(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                          const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;
    size_t n = json_array_size(spot->instance);

    if (keyword->node->boolean == 0 && n > keyword->n) {
        mcp_schema_path_t path = {spot->path, NULL, keyword->n};

        return mcp_schema_fail(run, &path, keyword->name, "no item is allowed here");
    }
    for (size_t i = keyword->n; i < n && verdict == MCP_SCHEMA_VALID; i++) {
        if (!mcp_schema_spend(run, 1)) {
            return MCP_SCHEMA_LIMIT;
        }
        verdict = eval_child(run, keyword->node, spot, json_array_get(spot->instance, i), NULL, i,
                             keyword->name);
        track_mark(spot->track, i);
    }
    return verdict;
}

static mcp_schema_verdict_t fail_contains(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                          const char *rule, const char *bound, size_t count)
{
    mcp_schema_text_t text;

    if (mcp_schema_is_loud(run)) {
        text = mcp_schema_error_start(run->err, spot->path, rule);
        mcp_schema_text_add(&text, "must have at ");
        mcp_schema_text_add(&text, bound);
        mcp_schema_text_add(&text, " ");
        mcp_schema_text_count(&text, count);
        mcp_schema_text_add(&text, count == 1 ? " item that matches" : " items that match");
        mcp_schema_text_add(&text, " the schema under \"contains\"");
    }
    return MCP_SCHEMA_INVALID;
}

mcp_schema_verdict_t mcp_schema_eval_contains(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                              const mcp_schema_keyword_t *keyword)
{
    size_t n = json_array_size(spot->instance);
    size_t matches = 0;

    if (!json_is_array(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    for (size_t i = 0; i < n; i++) {
        mcp_schema_verdict_t verdict = MCP_SCHEMA_LIMIT;

        if (mcp_schema_spend(run, 1)) {
            run->quiet++;
            verdict = eval_child(run, keyword->node, spot, json_array_get(spot->instance, i), NULL,
                                 i, keyword->name);
            run->quiet--;
        }
        if (verdict > MCP_SCHEMA_INVALID) {
            return verdict;
        }
        if (verdict == MCP_SCHEMA_VALID) {
            matches++;
            track_mark(spot->track, i);
            /* Without an upper bound or a tracker the rest can change nothing. */
            if (spot->track == NULL && matches >= keyword->least && keyword->most == SIZE_MAX) {
                break;
            }
        }
    }
    if (matches < keyword->least) {
        return fail_contains(run, spot, keyword->least == 1 ? keyword->name : "minContains",
                             "least", keyword->least);
    }
    return matches > keyword->most ? fail_contains(run, spot, "maxContains", "most", keyword->most)
                                   : MCP_SCHEMA_VALID;
}

mcp_schema_verdict_t mcp_schema_eval_unevaluated_items(mcp_schema_run_t *run,
                                                       const mcp_schema_spot_t *spot,
                                                       const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;
    size_t n = json_array_size(spot->instance);

    for (size_t i = 0; i < n && verdict == MCP_SCHEMA_VALID; i++) {
        if (!mcp_schema_spend(run, 1)) {
            return MCP_SCHEMA_LIMIT;
        }
        if (spot->track->marks[i] == 0) {
            verdict = eval_child(run, keyword->node, spot, json_array_get(spot->instance, i), NULL,
                                 i, keyword->name);
            track_mark(spot->track, i);
        }
    }
    return verdict;
}
