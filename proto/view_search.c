/* The story of a search: see view_search.h. What is needed meanwhile is on malloc; the answer is in
 * the caller's pool. */
#include "view_search.h"

#include <stdlib.h>
#include <string.h>

#include "view_search_private.h"

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

/* --- scores --------------------------------------------------------------------- */

/* Of a pair that no tool has: 1 if a pair that shares a character with it is known. Then it only
 * says where one word ends and the next begins. */
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
    term->tools = mcp_search_term(s, term);
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
    term->tools = mcp_search_term(s, term);
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
        } else {
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

/* --- the story ----------------------------------------------------------------------- */

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
        return mcp_search_answer(s, found, is_retry, pool);
    }
    found->empty = s->token_count == 0 ? MCP_VIEW_EMPTY_NO_WORDS : MCP_VIEW_EMPTY_ACCOUNT;
    return mcp_search_unmatched(s, found, pool) ? MCP_OK : MCP_E_NOMEM;
}

mcp_wire_status_t mcp_search_run(const mcp_view_index_t *index, const mcp_view_query_t *query,
                                 int is_retry, apr_pool_t *pool, mcp_view_found_t **ret)
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

mcp_wire_status_t mcp_view_search(const mcp_view_index_t *index, const mcp_view_query_t *query,
                                  apr_pool_t *pool, mcp_view_found_t **ret)
{
    mcp_view_query_t asked = *query;

    if (query->text == NULL && query->bytes > 0) {
        return MCP_E_FIELD;
    }
    if (query->text == NULL) {
        asked.text = "";
    }
    return mcp_search_run(index, &asked, 0, pool, ret);
}

/* --- names of values ------------------------------------------------------------------- */

const char *mcp_view_unknown_text(mcp_view_unknown_t value)
{
    static const char *const texts[] = {"ordinary", "count", "ignore"};

    return (size_t)value < sizeof(texts) / sizeof(texts[0]) ? texts[value] : NULL;
}

const char *mcp_view_role_text(mcp_view_role_t value)
{
    static const char *const texts[] = {"content", "function",    "generic", "number",
                                        "value",   "application", "unusual", "left_out"};

    return (size_t)value < sizeof(texts) / sizeof(texts[0]) ? texts[value] : NULL;
}

const char *mcp_view_empty_text(mcp_view_empty_t value)
{
    static const char *const texts[] = {NULL,          "no_words", "account",
                                        "application", "no_match", "floor"};

    return (size_t)value < sizeof(texts) / sizeof(texts[0]) ? texts[value] : NULL;
}
