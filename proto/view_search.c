/* The story of a search: see view_search.h. What is needed meanwhile is on malloc; the answer is in the caller's pool. */
#include "view_search.h"

#include <apr_strings.h>
#include <stdlib.h>
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

/* --- which tools are asked about ----------------------------------------------- */

/* 1 if name is one of the list's, which has a space between. */
static int is_of(const char *list, const char *name)
{
    size_t bytes = strlen(name);

    while (*list != '\0') {
        size_t length = strcspn(list, " ");

        if (length == bytes && memcmp(list, name, length) == 0) {
            return 1;
        }
        list += length + (list[length] == ' ');
    }
    return 0;
}

/* The words of two texts, compared: a label is meant in any spelling. */
static int is_alike(const char *a, const char *b)
{
    char left[MCP_VIEW_WHOLE_BYTES], right[MCP_VIEW_WHOLE_BYTES];
    size_t left_bytes, right_bytes;

    mcp_view_whole_hash(a, strlen(a), left, &left_bytes);
    mcp_view_whole_hash(b, strlen(b), right, &right_bytes);
    return left_bytes > 0 && left_bytes == right_bytes && memcmp(left, right, left_bytes) == 0;
}

/* Marks the groups of the query's account; 0: there is none. */
static int choose_groups(search_t *s)
{
    const char *account = s->query->account;
    int is_any = 0;

    if (account == NULL || *account == '\0') {
        return 1;
    }
    s->is_in = calloc((size_t)s->index->group_count + 1, 1);
    if (s->is_in == NULL) {
        s->is_out = 1;
        return 1;
    }
    for (uint32_t i = 0; i < s->index->group_count; i++) {
        const mcp_view_group_t *group = &s->index->groups[i];

        s->is_in[i] = is_of(group->account, account) || is_of(group->connector, account) ||
                      is_alike(group->label, account);
        is_any |= s->is_in[i];
    }
    return is_any;
}

static int is_asked(const search_t *s, const search_entry_t *entry)
{
    return s->is_in == NULL || s->is_in[s->index->group_of[entry->tool]];
}

/* --- scores --------------------------------------------------------------------- */

static size_t match(search_t *s, const search_term_t *term)
{
    return mcp_search_match(s, term->token->text, term->token->bytes, term->stem, term->token->form);
}

/* Of a pair that no tool has: 1 if a pair that shares a character with it is known. Then it only says where one
 * word ends and the next begins. */
static int is_seam(search_t *s, const search_token_t *token)
{
    const search_token_t *end = s->tokens + s->token_count;
    int is_known = 0;

    if (token->form != MCP_VIEW_FORM_PAIR) {
        return 0;
    }
    if (token > s->tokens && token[-1].run == token->run) {
        is_known = mcp_search_is_word(s, token[-1].text, token[-1].bytes);
    }
    if (!is_known && token + 1 < end && token[1].run == token->run) {
        is_known = mcp_search_is_word(s, token[1].text, token[1].bytes);
    }
    return is_known;
}

/* A word that no tool has. */
static void weigh_unknown(search_t *s, search_term_t *term)
{
    int is_ordinary = is_seam(s, term->token) || term->token->form == MCP_VIEW_FORM_NUMBER ||
                      mcp_view_lexicon_is_ordinary(s->index->lexicon, term->token->text);
    int is_counted = s->query->unknown_words == MCP_VIEW_UNKNOWN_COUNT ||
                     (s->query->unknown_words == MCP_VIEW_UNKNOWN_ORDINARY && !is_ordinary);

    term->role = is_counted ? MCP_VIEW_ROLE_UNUSUAL : MCP_VIEW_ROLE_LEFT_OUT;
    if (is_counted) {
        term->weight = mcp_search_weight(s->index->count, 0);
        s->mass += term->weight;
    }
    s->has_unusual |= !is_ordinary && s->query->unknown_words != MCP_VIEW_UNKNOWN_IGNORE;
}

static void weigh(search_t *s, search_term_t *term)
{
    term->tools = match(s, term);
    if (term->tools == 0) {
        weigh_unknown(s, term);
        return;
    }
    term->weight = mcp_search_weight(s->index->count, term->tools);
    s->mass += term->weight;
    for (size_t i = 0; i < s->touched_count; i++) {
        search_entry_t *entry = &s->entries[s->touched[i]];

        entry->score += (uint64_t)term->weight * mcp_search_points(entry->fields);
        entry->covered += term->weight;
    }
}

/* A quoted word lifts tools that other words have found. */
static void weigh_soft(search_t *s, search_term_t *term)
{
    term->tools = match(s, term);
    if (term->tools > 0) {
        term->weight = mcp_search_weight(s->index->count, term->tools);
    }
    for (size_t i = 0; i < s->touched_count; i++) {
        search_entry_t *entry = &s->entries[s->touched[i]];

        if (entry->covered > 0) {
            entry->score += (uint64_t)term->weight * mcp_search_points(entry->fields);
        }
    }
}

/* Tools whose name the query is. */
static void find_wholes(search_t *s)
{
    char asked[MCP_VIEW_WHOLE_BYTES], name[MCP_VIEW_WHOLE_BYTES];
    size_t bytes, name_bytes, low = 0, high = s->index->whole_count;
    uint64_t hash = mcp_view_whole_hash(s->query->text, s->bytes, asked, &bytes);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->index->wholes[middle].hash < hash) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    for (; bytes > 0 && low < s->index->whole_count && s->index->wholes[low].hash == hash; low++) {
        uint32_t tool = s->index->wholes[low].tool;
        const char *full = s->index->names[tool], *bare = mcp_view_bare_name(full);
        search_entry_t *entry;

        mcp_view_whole_hash(full, strlen(full), name, &name_bytes);
        if (name_bytes != bytes || memcmp(name, asked, bytes) != 0) {
            mcp_view_whole_hash(bare, strlen(bare), name, &name_bytes);
        }
        if (name_bytes != bytes || memcmp(name, asked, bytes) != 0) {
            continue;
        }
        entry = mcp_search_entry(s, tool, 1);
        if (entry == NULL) {
            return;
        }
        entry->is_whole = 1;
    }
}

static void score(search_t *s)
{
    for (size_t i = 0; i < s->term_count && !s->is_out; i++) {
        if (s->terms[i].is_used) {
            weigh(s, &s->terms[i]);
        }
    }
    for (size_t i = 0; i < s->term_count && !s->is_out; i++) {
        if (s->terms[i].is_soft) {
            weigh_soft(s, &s->terms[i]);
        }
    }
    if (!s->is_out) {
        find_wholes(s);
    }
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

/* Absent applications, then words that no tool has, but those that the applications' names are made of. */
static int list_unmatched(const search_t *s, mcp_view_found_t *found, apr_pool_t *pool)
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

/* 1 if the query names applications, and none of them is connected. Then only tools are answers whose own names say one. */
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
        }
        else {
            found->below++;
            consider(s, below, i);
        }
    }
    if (found->above > 0) {
        found->empty = MCP_VIEW_EMPTY_NOT;
    }
    else if (is_absent) {
        found->empty = MCP_VIEW_EMPTY_APPLICATION;
    }
    else {
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
        match(s, term);
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

static mcp_wire_status_t search(const mcp_view_index_t *index, const mcp_view_query_t *query, int is_retry,
                                apr_pool_t *pool, mcp_view_found_t **ret);

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
        }
        else if (bytes > 0) {
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
    status = search(s->index, &again, 1, pool, &found);
    if (status == MCP_OK && found->hit_count > 0) {
        *ret = text;
    }
    return status;
}

/* --- an explanation ----------------------------------------------------------------- */

/* Adds what a term did for these hits. */
static void explain_hits(search_t *s, mcp_view_hit_t *hits, size_t count, mcp_view_match_t *rows, size_t room,
                         const search_term_t *term, size_t number)
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
static int explain(search_t *s, mcp_view_found_t *found, mcp_view_hit_t *hits, mcp_view_hit_t *dropped,
                   apr_pool_t *pool)
{
    mcp_view_term_t *terms = apr_pcalloc(pool, (s->named_count + s->term_count + 1) * sizeof(*terms));
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
            match(s, term);
            explain_hits(s, hits, found->hit_count, rows, used, term, count);
            explain_hits(s, dropped, found->dropped_count, more, used, term, count);
        }
        count++;
    }
    found->terms = terms;
    found->term_count = count;
    return 1;
}

/* --- the story ----------------------------------------------------------------------- */

static mcp_wire_status_t answer(search_t *s, mcp_view_found_t *found, int is_retry, apr_pool_t *pool)
{
    const mcp_view_query_t *query = s->query;
    size_t limit = query->limit == 0 ? MCP_VIEW_SEARCH_LIMIT : query->limit;
    best_t above = {.limit = limit < MCP_VIEW_SEARCH_MOST ? limit : MCP_VIEW_SEARCH_MOST};
    best_t below = {.limit = above.limit > MCP_VIEW_SEARCH_CLOSEST ? above.limit : MCP_VIEW_SEARCH_CLOSEST};
    mcp_view_hit_t *hits, *rest;

    choose(s, found, &above, &below);
    hits = make_hits(s, &above, pool);
    rest = make_hits(s, &below, pool);
    if (hits == NULL || rest == NULL || !list_unmatched(s, found, pool)) {
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
        size_t closest = query->closest < MCP_VIEW_SEARCH_CLOSEST ? query->closest : MCP_VIEW_SEARCH_CLOSEST;

        found->closest = rest;
        found->closest_count = closest < below.count ? closest : below.count;
        if (!is_retry && !s->has_unusual && !has_absent(s)) {
            return suggest(s, (uint32_t)rest[0].tool, pool, &found->suggest);
        }
    }
    return s->is_out ? MCP_E_NOMEM : MCP_OK;
}

static mcp_wire_status_t run(search_t *s, mcp_view_found_t *found, int is_retry, apr_pool_t *pool)
{
    int is_account_known = choose_groups(s);

    mcp_search_read(s);
    if (!s->is_out) {
        mcp_search_terms(s);
    }
    if (!s->is_out) {
        mcp_search_named(s);
        score(s);
    }
    if (s->is_out) {
        return MCP_E_NOMEM;
    }
    found->is_cut = s->is_cut;
    found->mass = s->mass;
    if (s->token_count > 0 && is_account_known) {
        return answer(s, found, is_retry, pool);
    }
    found->empty = s->token_count == 0 ? MCP_VIEW_EMPTY_NO_WORDS : MCP_VIEW_EMPTY_ACCOUNT;
    return list_unmatched(s, found, pool) ? MCP_OK : MCP_E_NOMEM;
}

static mcp_wire_status_t search(const mcp_view_index_t *index, const mcp_view_query_t *query, int is_retry,
                                apr_pool_t *pool, mcp_view_found_t **ret)
{
    search_t s = {.index = index, .query = query};
    mcp_view_found_t *found = apr_pcalloc(pool, sizeof(*found));
    mcp_wire_status_t status = found != NULL ? run(&s, found, is_retry, pool) : MCP_E_NOMEM;

    free(s.tokens);
    free(s.spans);
    free(s.terms);
    free(s.entries);
    free(s.slots);
    free(s.touched);
    free(s.is_in);
    if (status == MCP_OK) {
        *ret = found;
    }
    return status;
}

mcp_wire_status_t mcp_view_search(const mcp_view_index_t *index, const mcp_view_query_t *query, apr_pool_t *pool,
                                  mcp_view_found_t **ret)
{
    mcp_view_query_t asked = *query;

    if (query->text == NULL && query->bytes > 0) {
        return MCP_E_FIELD;
    }
    if (query->text == NULL) {
        asked.text = "";
    }
    return search(index, &asked, 0, pool, ret);
}

/* --- names of values ------------------------------------------------------------------- */

const char *mcp_view_unknown_text(mcp_view_unknown_t value)
{
    static const char *const texts[] = {"ordinary", "count", "ignore"};

    return (size_t)value < sizeof(texts) / sizeof(texts[0]) ? texts[value] : NULL;
}

const char *mcp_view_role_text(mcp_view_role_t value)
{
    static const char *const texts[] = {"content", "function", "generic",  "number",
                                        "value",   "application", "unusual", "left_out"};

    return (size_t)value < sizeof(texts) / sizeof(texts[0]) ? texts[value] : NULL;
}

const char *mcp_view_empty_text(mcp_view_empty_t value)
{
    static const char *const texts[] = {NULL, "no_words", "account", "application", "no_match", "floor"};

    return (size_t)value < sizeof(texts) / sizeof(texts[0]) ? texts[value] : NULL;
}
