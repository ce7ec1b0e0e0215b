/* Evaluation of a compiled schema: nodes, and the keywords that apply other nodes to the same
 * instance.
 *
 * Every function spends from the run's budgets and hands a verdict that is neither valid nor
 * invalid (a limit, no memory) straight up.  What was evaluated is noted in spot->track where
 * somebody asks; whoever may survive a failed subschema (anyOf, oneOf, if) gives it a track
 * of its own and merges it only when it succeeds.
 *
 * Recursion ends at MCP_SCHEMA_MAX_DEPTH nodes within nodes. */
#include "mcp_schema_private.h"

#include <stdlib.h>
#include <string.h>

const mcp_schema_node_t mcp_schema_true = {.boolean = 1};
const mcp_schema_node_t mcp_schema_false = {.boolean = 0};

/* --- tracks ------------------------------------------------------------------- */

static size_t size_of(const json_t *instance)
{
    return json_is_object(instance) ? json_object_size(instance) : json_array_size(instance);
}

/* A fresh track for the same instance; nothing is allocated for a scalar. */
static mcp_schema_verdict_t track_open(mcp_schema_run_t *run, const json_t *instance,
                                       mcp_schema_track_t *ret)
{
    ret->n = size_of(instance);
    ret->marks = NULL;
    if (ret->n == 0) {
        return MCP_SCHEMA_VALID;
    }
    if (!mcp_schema_spend(run, 2 + ret->n / 8)) {
        return MCP_SCHEMA_LIMIT;
    }
    ret->marks = calloc(ret->n, 1);
    return ret->marks == NULL ? MCP_SCHEMA_NOMEM : MCP_SCHEMA_VALID;
}

static void track_close(mcp_schema_track_t *track)
{
    free(track->marks);
    track->marks = NULL;
}

static void track_merge(mcp_schema_track_t *into, const mcp_schema_track_t *from)
{
    for (size_t i = 0; into != NULL && i < from->n; i++) {
        into->marks[i] |= from->marks[i];
    }
}

/* --- nodes -------------------------------------------------------------------- */

static mcp_schema_verdict_t fail_false(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                       const char *via)
{
    return mcp_schema_fail(run, spot->path, via, "not allowed here");
}

static mcp_schema_verdict_t eval_keywords(mcp_schema_run_t *run, const mcp_schema_node_t *node,
                                          const mcp_schema_spot_t *spot)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;

    for (size_t i = 0; i < node->n_keywords && verdict == MCP_SCHEMA_VALID; i++) {
        const mcp_schema_keyword_t *keyword = &node->keywords[i];

        if (!mcp_schema_spend(run, MCP_SCHEMA_UNITS)) {
            return MCP_SCHEMA_LIMIT;
        }
        verdict = keyword->eval(run, spot, keyword);
    }
    return verdict;
}

mcp_schema_verdict_t mcp_schema_eval(mcp_schema_run_t *run, const mcp_schema_node_t *node,
                                     const mcp_schema_spot_t *spot, const char *via)
{
    mcp_schema_scope_t scope = {spot->scope, node->resource};
    mcp_schema_spot_t inner = *spot;
    mcp_schema_track_t track;
    mcp_schema_verdict_t verdict;

    if (node->boolean >= 0) {
        return node->boolean != 0 ? MCP_SCHEMA_VALID : fail_false(run, spot, via);
    }
    if (run->depth >= MCP_SCHEMA_MAX_DEPTH || !mcp_schema_spend(run, 2)) {
        return MCP_SCHEMA_LIMIT;
    }
    if (spot->scope == NULL || spot->scope->resource != node->resource) {
        inner.scope = &scope;
    }
    run->depth++;
    if (!node->has_unevaluated) {
        verdict = eval_keywords(run, node, &inner);
    } else {
        /* unevaluated… of this node sees what the node itself evaluates, and no cousins. */
        verdict = track_open(run, spot->instance, &track);
        if (verdict == MCP_SCHEMA_VALID) {
            inner.track = &track;
            verdict = eval_keywords(run, node, &inner);
            if (verdict == MCP_SCHEMA_VALID) {
                track_merge(spot->track, &track);
            }
        }
        track_close(&track);
    }
    run->depth--;
    return verdict;
}

/* A node that may fail without harm: quietly, what it evaluated counts only if it holds. */
static mcp_schema_verdict_t eval_try(mcp_schema_run_t *run, const mcp_schema_node_t *node,
                                     const mcp_schema_spot_t *spot, const char *via)
{
    mcp_schema_spot_t inner = *spot;
    mcp_schema_track_t track = {NULL, 0};
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;

    if (spot->track != NULL) {
        verdict = track_open(run, spot->instance, &track);
        inner.track = &track;
    }
    if (verdict == MCP_SCHEMA_VALID) {
        run->quiet++;
        verdict = mcp_schema_eval(run, node, &inner, via);
        run->quiet--;
    }
    if (verdict == MCP_SCHEMA_VALID) {
        track_merge(spot->track, &track);
    }
    track_close(&track);
    return verdict;
}

/* --- references ------------------------------------------------------------------ */

mcp_schema_verdict_t mcp_schema_eval_ref(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                         const mcp_schema_keyword_t *keyword)
{
    return mcp_schema_eval(run, keyword->node, spot, keyword->name);
}

static const mcp_schema_node_t *find_dynamic(const mcp_schema_resource_t *resource,
                                             const char *name, uint64_t *turns)
{
    for (const mcp_schema_dynamic_t *at = resource->dynamics; at != NULL; at = at->next) {
        ++*turns;
        if (strcmp(at->name, name) == 0) {
            return at->node;
        }
    }
    return NULL;
}

/* Core 8.2.3.2: the outermost resource of the dynamic scope that has the anchor wins. */
mcp_schema_verdict_t mcp_schema_eval_dynamic(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                             const mcp_schema_keyword_t *keyword)
{
    const mcp_schema_node_t *target = keyword->node;
    uint64_t turns = 0;

    if (keyword->dynamic != NULL) {
        for (const mcp_schema_scope_t *at = spot->scope; at != NULL; at = at->parent) {
            const mcp_schema_node_t *found = find_dynamic(at->resource, keyword->dynamic, &turns);

            turns++;
            if (found != NULL) {
                target = found;
            }
        }
        if (!mcp_schema_spend(run, turns)) {
            return MCP_SCHEMA_LIMIT;
        }
    }
    return mcp_schema_eval(run, target, spot, keyword->name);
}

/* --- combinations ------------------------------------------------------------------ */

mcp_schema_verdict_t mcp_schema_eval_all(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                         const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;

    for (size_t i = 0; i < keyword->n && verdict == MCP_SCHEMA_VALID; i++) {
        verdict = mcp_schema_spend(run, 1)
                      ? mcp_schema_eval(run, keyword->nodes[i], spot, keyword->name)
                      : MCP_SCHEMA_LIMIT;
    }
    return verdict;
}

/* Says why each alternative fails.  They are evaluated once more, aloud; that the budget
 * may end meanwhile changes nothing about the verdict. */
static mcp_schema_verdict_t explain(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                    const mcp_schema_keyword_t *keyword)
{
    char message[sizeof(run->err->message)];
    mcp_schema_text_t text;
    mcp_schema_spot_t inner = *spot;

    inner.track = NULL;
    mcp_schema_text_start(&text, message, sizeof(message));
    mcp_schema_text_add(&text, "matches none of the ");
    mcp_schema_text_count(&text, keyword->n);
    mcp_schema_text_add(&text, " alternatives");
    for (size_t i = 0; i < keyword->n && !text.is_cut; i++) {
        mcp_schema_error_t own;
        mcp_schema_text_t path;

        if (mcp_schema_eval(run, keyword->nodes[i], &inner, keyword->name) != MCP_SCHEMA_INVALID) {
            break;
        }
        mcp_schema_text_add(&text, i == 0 ? ": (" : "; (");
        mcp_schema_text_count(&text, i + 1);
        mcp_schema_text_add(&text, ") ");
        mcp_schema_text_start(&path, own.path, sizeof(own.path));
        mcp_schema_text_path(&path, spot->path);
        if (strcmp(own.path, run->err->path) != 0) {
            mcp_schema_text_add(&text, "at ");
            mcp_schema_text_add(&text, run->err->path);
            mcp_schema_text_add(&text, ": ");
        }
        mcp_schema_text_add(&text, run->err->message);
    }
    return mcp_schema_fail(run, spot->path, keyword->name, message);
}

mcp_schema_verdict_t mcp_schema_eval_any(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                         const mcp_schema_keyword_t *keyword)
{
    bool has_match = false;

    for (size_t i = 0; i < keyword->n; i++) {
        mcp_schema_verdict_t verdict = eval_try(run, keyword->nodes[i], spot, keyword->name);

        if (verdict > MCP_SCHEMA_INVALID || !mcp_schema_spend(run, 1)) {
            return verdict > MCP_SCHEMA_INVALID ? verdict : MCP_SCHEMA_LIMIT;
        }
        if (verdict == MCP_SCHEMA_VALID) {
            has_match = true;
            if (spot->track == NULL) {
                break; /* else the others may evaluate more */
            }
        }
    }
    if (has_match) {
        return MCP_SCHEMA_VALID;
    }
    return mcp_schema_is_loud(run) ? explain(run, spot, keyword) : MCP_SCHEMA_INVALID;
}

mcp_schema_verdict_t mcp_schema_eval_one(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                         const mcp_schema_keyword_t *keyword)
{
    size_t matches[2] = {0, 0};
    size_t n = 0;

    for (size_t i = 0; i < keyword->n && n < 2; i++) {
        mcp_schema_verdict_t verdict = eval_try(run, keyword->nodes[i], spot, keyword->name);

        if (verdict > MCP_SCHEMA_INVALID || !mcp_schema_spend(run, 1)) {
            return verdict > MCP_SCHEMA_INVALID ? verdict : MCP_SCHEMA_LIMIT;
        }
        if (verdict == MCP_SCHEMA_VALID) {
            matches[n++] = i + 1;
        }
    }
    if (n == 1) {
        return MCP_SCHEMA_VALID;
    }
    if (!mcp_schema_is_loud(run)) {
        return MCP_SCHEMA_INVALID;
    }
    if (n == 2) {
        mcp_schema_text_t text = mcp_schema_error_start(run->err, spot->path, keyword->name);

        mcp_schema_text_add(&text, "must match exactly one of the ");
        mcp_schema_text_count(&text, keyword->n);
        mcp_schema_text_add(&text, " alternatives, but matches (");
        mcp_schema_text_count(&text, matches[0]);
        mcp_schema_text_add(&text, ") and (");
        mcp_schema_text_count(&text, matches[1]);
        mcp_schema_text_add(&text, ")");
        return MCP_SCHEMA_INVALID;
    }
    return explain(run, spot, keyword);
}

mcp_schema_verdict_t mcp_schema_eval_not(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                         const mcp_schema_keyword_t *keyword)
{
    mcp_schema_spot_t inner = *spot;
    mcp_schema_verdict_t verdict;

    inner.track = NULL;
    verdict = eval_try(run, keyword->node, &inner, keyword->name);
    if (verdict == MCP_SCHEMA_INVALID) {
        return MCP_SCHEMA_VALID;
    }
    if (verdict == MCP_SCHEMA_VALID) {
        return mcp_schema_fail(run, spot->path, keyword->name,
                               "must not match the schema under \"not\"");
    }
    return verdict;
}

mcp_schema_verdict_t mcp_schema_eval_if(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                        const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = eval_try(run, keyword->node, spot, keyword->name);

    if (verdict > MCP_SCHEMA_INVALID) {
        return verdict;
    }
    return verdict == MCP_SCHEMA_VALID ? mcp_schema_eval(run, keyword->then_node, spot, "then")
                                       : mcp_schema_eval(run, keyword->else_node, spot, "else");
}

/* dependentSchemas, dependentRequired and draft-07's dependencies. */
mcp_schema_verdict_t mcp_schema_eval_dependent(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                               const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;

    if (!json_is_object(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    for (size_t i = 0; i < keyword->n && verdict == MCP_SCHEMA_VALID; i++) {
        const mcp_schema_member_t *member = &keyword->members[i];

        if (!mcp_schema_spend(run, 2)) {
            return MCP_SCHEMA_LIMIT;
        }
        if (json_object_get(spot->instance, member->name) == NULL) {
            continue;
        }
        verdict = member->node != NULL
                      ? mcp_schema_eval(run, member->node, spot, keyword->name)
                      : mcp_schema_require(run, spot, keyword->name, member->name, member->names,
                                           member->n_names);
    }
    return verdict;
}
