/* What a search answers once tools have their scores: see view_search_private.h. */
#include <apr_strings.h>
#include <string.h>

#include "view_search_private.h"

#define SUGGEST_WORDS 3

/* The best entries so far, best first. */
typedef struct best {
    uint32_t rows[MCP_VIEW_SEARCH_MOST]; /* numbers of entries */
    size_t count, limit;
} best_t;

/* 1 if a stands before b: the whole name, then the score, then the bytes of the name. */
static int is_before(const search_t *s, const search_entry_t *a, const search_entry_t *b)
{
    if (a->is_whole != b->is_whole) {
        return a->is_whole;
    }
    if (a->score != b->score) {
        return a->score > b->score;
    }
    return s->index->rank[a->tool] < s->index->rank[b->tool];
}

static void consider(const search_t *s, best_t *best, uint32_t row)
{
    size_t at = best->count;

    while (at > 0 && is_before(s, &s->entries[row], &s->entries[best->rows[at - 1]])) {
        at--;
    }
    if (at >= best->limit) {
        return;
    }
    if (best->count < best->limit) {
        best->count++;
    }
    memmove(&best->rows[at + 1], &best->rows[at], (best->count - at - 1) * sizeof(best->rows[0]));
    best->rows[at] = row;
}

static int is_asked(const search_t *s, const search_entry_t *entry)
{
    return s->is_in == NULL || s->is_in[s->index->group_of[entry->tool]];
}

/* --- the answer ------------------------------------------------------------------- */

/* What stands at a place of the query, as it was written. */
static const char *written(const search_t *s, size_t from, size_t to, apr_pool_t *pool)
{
    return apr_pstrmemdup(pool, s->query->text + from, to - from);
}

static const char *named_text(const search_t *s, const search_named_t *named, apr_pool_t *pool)
{
    return named->application != NULL ? apr_pstrdup(pool, named->application->name)
                                      : written(s, named->from, named->to, pool);
}

/* Absent applications, then words that no tool has, but those that the applications' names are made
 * of. */
int mcp_search_unmatched(const search_t *s, mcp_view_found_t *found, apr_pool_t *pool)
{
    const char **list = apr_palloc(pool, (s->named_count + s->term_count + 1) * sizeof(*list));
    size_t count = 0, names;

    if (list == NULL) {
        return 0;
    }
    for (size_t i = 0; i < s->named_count; i++) {
        int is_there = s->named[i].is_connected || (s->named[i].is_called && found->above > 0);
        const char *text = is_there ? NULL : named_text(s, &s->named[i], pool);
        int is_new = text != NULL;

        for (size_t k = 0; k < count && is_new; k++) {
            is_new = strcmp(list[k], text) != 0;
        }
        if (is_new) {
            list[count++] = text;
        }
    }
    names = count;
    for (size_t i = 0; i < s->term_count; i++) {
        const search_term_t *term = &s->terms[i];

        if (term->is_used && term->tools == 0 && !term->token->is_named) {
            list[count++] = written(s, term->token->from, term->token->to, pool);
        }
    }
    for (size_t i = names; i < count; i++) {
        if (list[i] == NULL) {
            return 0;
        }
    }
    found->unmatched = list;
    found->unmatched_count = count;
    return 1;
}

/* Entries as hits, without matches. */
static mcp_view_hit_t *make_hits(const search_t *s, const best_t *best, apr_pool_t *pool)
{
    mcp_view_hit_t *hits = apr_pcalloc(pool, (best->count + 1) * sizeof(*hits));

    for (size_t i = 0; hits != NULL && i < best->count; i++) {
        const search_entry_t *entry = &s->entries[best->rows[i]];

        hits[i].tool = entry->tool;
        hits[i].score = entry->score;
        hits[i].covered = entry->covered;
        hits[i].is_whole_name = entry->is_whole;
    }
    return hits;
}

/* 1 if the tool is an answer. */
static int is_above(const search_t *s, const search_entry_t *entry)
{
    return entry->is_whole || s->query->is_floor_off || 2 * entry->covered >= s->mass;
}

/* 1 if the query names applications, and none of them is connected. Then only tools are answers
 * whose own names say one. */
static int is_about_absent(const search_t *s)
{
    int is_any = 0;

    for (size_t i = 0; i < s->named_count; i++) {
        is_any |= s->named[i].is_connected;
    }
    return s->named_count > 0 && !is_any && !s->query->is_floor_off;
}

static int has_absent(const search_t *s)
{
    int is_any = 0;

    for (size_t i = 0; i < s->named_count; i++) {
        is_any |= !s->named[i].is_connected;
    }
    return is_any;
}

/* Sorts the entries into answers and those below the floor. */
static void choose(const search_t *s, mcp_view_found_t *found, best_t *above, best_t *below)
{
    int is_absent = is_about_absent(s);

    for (uint32_t i = 0; i < s->entry_count; i++) {
        const search_entry_t *entry = &s->entries[i];

        if ((entry->covered == 0 && !entry->is_whole) || !is_asked(s, entry)) {
            continue;
        }
        if (is_above(s, entry) && (!is_absent || entry->is_whole || entry->is_called)) {
            found->above++;
            consider(s, above, i);
        } else {
            found->below++;
            consider(s, below, i);
        }
    }
    if (found->above > 0) {
        found->empty = MCP_VIEW_EMPTY_NOT;
    } else if (is_absent) {
        found->empty = MCP_VIEW_EMPTY_APPLICATION;
    } else {
        found->empty = found->below > 0 ? MCP_VIEW_EMPTY_FLOOR : MCP_VIEW_EMPTY_NO_MATCH;
    }
}

/* --- a suggestion ------------------------------------------------------------------ */

/* The words that score most of the tool, in the query's order. */
static size_t strongest(search_t *s, uint32_t tool, const search_term_t *ret[SUGGEST_WORDS])
{
    uint64_t points[SUGGEST_WORDS] = {0};
    size_t count = 0;

    for (size_t i = 0; i < s->term_count && !s->is_out; i++) {
        const search_term_t *term = &s->terms[i];
        const search_entry_t *entry;
        uint64_t own;
        size_t at;

        if (!term->is_used || term->tools == 0) {
            continue;
        }
        mcp_search_term(s, term);
        entry = mcp_search_entry(s, tool, 0);
        if (entry == NULL || entry->stamp != s->stamp) {
            continue;
        }
        own = (uint64_t)term->weight * mcp_search_points(entry->fields);
        for (at = count; at > 0 && points[at - 1] < own; at--) {
        }
        if (at >= SUGGEST_WORDS) {
            continue;
        }
        count += count < SUGGEST_WORDS;
        memmove(&points[at + 1], &points[at], (count - at - 1) * sizeof(points[0]));
        memmove(&ret[at + 1], &ret[at], (count - at - 1) * sizeof(ret[0]));
        points[at] = own;
        ret[at] = term;
    }
    for (size_t i = 1; i < count; i++) { /* into the query's order */
        for (size_t k = i; k > 0 && ret[k]->token < ret[k - 1]->token; k--) {
            const search_term_t *moved = ret[k];

            ret[k] = ret[k - 1];
            ret[k - 1] = moved;
        }
    }
    return count;
}

/* Words of a best tool below the floor, if they make a query that has an answer. */
static mcp_wire_status_t suggest(search_t *s, uint32_t tool, apr_pool_t *pool, const char **ret)
{
    const search_term_t *words[SUGGEST_WORDS];
    size_t count = strongest(s, tool, words), bytes = 0, end = 0;
    mcp_view_query_t again = *s->query;
    mcp_view_found_t *found = NULL;
    mcp_wire_status_t status;
    char *text;

    if (s->is_out) {
        return MCP_E_NOMEM;
    }
    if (count < 2) {
        return MCP_OK;
    }
    for (size_t i = 0; i < count; i++) {
        bytes += words[i]->token->to - words[i]->token->from + 1;
    }
    text = apr_pcalloc(pool, bytes + 1);
    if (text == NULL) {
        return MCP_E_NOMEM;
    }
    bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t from = words[i]->token->from, to = words[i]->token->to;

        if (from < end) { /* pairs that share a character */
            from = end;
        } else if (bytes > 0) {
            text[bytes++] = ' ';
        }
        memcpy(text + bytes, s->query->text + from, to - from);
        bytes += to - from;
        end = to;
    }
    again.text = text;
    again.bytes = bytes;
    again.limit = 1;
    again.is_explained = 0;
    again.closest = 0;
    status = mcp_search_run(s->index, &again, 1, pool, &found);
    if (status == MCP_OK && found->hit_count > 0) {
        *ret = text;
    }
    return status;
}

/* --- an explanation ----------------------------------------------------------------- */

/* Adds what a term did for these hits. */
static void explain_hits(search_t *s, mcp_view_hit_t *hits, size_t count, mcp_view_match_t *rows,
                         size_t room, const search_term_t *term, size_t number)
{
    for (size_t i = 0; i < count; i++) {
        const search_entry_t *entry = mcp_search_entry(s, (uint32_t)hits[i].tool, 0);
        mcp_view_match_t *own = rows + i * room;

        if (entry == NULL || entry->stamp != s->stamp) {
            continue;
        }
        own[hits[i].match_count++] =
            (mcp_view_match_t){.term = number,
                               .fields = entry->fields,
                               .points = (uint64_t)term->weight * mcp_search_points(entry->fields)};
        hits[i].matches = own;
    }
}

/* Terms: absent applications, then the words. The hits' lists are ours, made by make_hits(). */
static int explain(search_t *s, mcp_view_found_t *found, mcp_view_hit_t *hits,
                   mcp_view_hit_t *dropped, apr_pool_t *pool)
{
    mcp_view_term_t *terms =
        apr_pcalloc(pool, (s->named_count + s->term_count + 1) * sizeof(*terms));
    size_t used = 0, count = 0;
    mcp_view_match_t *rows, *more;

    for (size_t i = 0; i < s->term_count; i++) {
        used += (size_t)(s->terms[i].is_used || s->terms[i].is_soft);
    }
    rows = apr_palloc(pool, (found->hit_count * used + 1) * sizeof(*rows));
    more = apr_palloc(pool, (found->dropped_count * used + 1) * sizeof(*more));
    if (terms == NULL || rows == NULL || more == NULL) {
        return 0;
    }
    for (size_t i = 0; i < s->named_count; i++) {
        if (!s->named[i].is_connected) {
            terms[count].role = MCP_VIEW_ROLE_APPLICATION;
            terms[count++].text = named_text(s, &s->named[i], pool);
        }
    }
    for (size_t i = 0; i < s->term_count && !s->is_out; i++) {
        const search_term_t *term = &s->terms[i];

        terms[count].text = apr_pstrdup(pool, term->token->text);
        terms[count].role = term->role;
        terms[count].weight = term->weight;
        terms[count].tools = term->tools;
        if (term->tools > 0) {
            mcp_search_term(s, term);
            explain_hits(s, hits, found->hit_count, rows, used, term, count);
            explain_hits(s, dropped, found->dropped_count, more, used, term, count);
        }
        count++;
    }
    found->terms = terms;
    found->term_count = count;
    return 1;
}

mcp_wire_status_t mcp_search_answer(search_t *s, mcp_view_found_t *found, int is_retry,
                                    apr_pool_t *pool)
{
    const mcp_view_query_t *query = s->query;
    size_t limit = query->limit == 0 ? MCP_VIEW_SEARCH_LIMIT : query->limit;
    best_t above = {.limit = limit < MCP_VIEW_SEARCH_MOST ? limit : MCP_VIEW_SEARCH_MOST};
    best_t below = {.limit = above.limit > MCP_VIEW_SEARCH_CLOSEST ? above.limit
                                                                   : MCP_VIEW_SEARCH_CLOSEST};
    mcp_view_hit_t *hits, *rest;

    choose(s, found, &above, &below);
    hits = make_hits(s, &above, pool);
    rest = make_hits(s, &below, pool);
    if (hits == NULL || rest == NULL || !mcp_search_unmatched(s, found, pool)) {
        return MCP_E_NOMEM;
    }
    found->hits = hits;
    found->hit_count = above.count;
    if (query->is_explained) {
        found->dropped = rest;
        found->dropped_count = below.count < above.limit ? below.count : above.limit;
        if (!explain(s, found, hits, rest, pool)) {
            return MCP_E_NOMEM;
        }
    }
    if (found->empty == MCP_VIEW_EMPTY_FLOOR) {
        size_t closest =
            query->closest < MCP_VIEW_SEARCH_CLOSEST ? query->closest : MCP_VIEW_SEARCH_CLOSEST;

        found->closest = rest;
        found->closest_count = closest < below.count ? closest : below.count;
        if (!is_retry && !s->has_unusual && !has_absent(s)) {
            return suggest(s, (uint32_t)rest[0].tool, pool, &found->suggest);
        }
    }
    return s->is_out ? MCP_E_NOMEM : MCP_OK;
}
