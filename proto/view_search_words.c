/* A query's text into the words that count: see view_search_private.h. */
#include <stdlib.h>
#include <string.h>

#include "view_search_private.h"

/* --- tokens ------------------------------------------------------------------ */

static int take_token(const mcp_view_word_t *word, void *ctx)
{
    search_t *s = ctx;
    void *rows = s->tokens;
    search_token_t *token;

    if (word->form == MCP_VIEW_FORM_JOINED || word->form == MCP_VIEW_FORM_SINGLE) {
        return 0;
    }
    if (s->token_count == SEARCH_TOKENS) {
        s->is_cut = 1;
        s->bytes = s->tokens[SEARCH_TOKENS - 1].to; /* nothing behind is looked at */
        return 1;
    }
    if (!mcp_search_room(s, &rows, s->token_count, &s->token_room, sizeof(*s->tokens))) {
        return 1;
    }
    s->tokens = rows;
    token = &s->tokens[s->token_count++];
    memset(token, 0, sizeof(*token));
    memcpy(token->text, word->text, word->bytes + 1);
    token->bytes = word->bytes;
    token->letters = word->letters;
    token->from = word->from;
    token->to = word->to;
    token->run = word->run;
    token->form = word->form;
    return 0;
}

static void read_spans(search_t *s)
{
    const char *text = s->query->text;
    size_t at = 0;

    while (!s->is_out && s->span_count < SEARCH_VALUES) {
        void *rows = s->spans;
        search_span_t span;

        span.kind = mcp_view_words_value(text, s->bytes, at, &span.from, &span.to, &at);
        if (span.kind == MCP_VIEW_VALUE_NONE) {
            return;
        }
        if (mcp_search_room(s, &rows, s->span_count, &s->span_room, sizeof(*s->spans))) {
            s->spans = rows;
            s->spans[s->span_count++] = span;
        }
    }
}

/* Tokens from..to that stand in the span; to == from: none. */
static void tokens_of(const search_t *s, const search_span_t *span, size_t *from, size_t *to)
{
    while (*from < s->token_count && s->tokens[*from].from < span->from) {
        (*from)++;
    }
    *to = *from;
    while (*to < s->token_count && s->tokens[*to].to <= span->to) {
        (*to)++;
    }
}

static int is_application(const search_t *s, size_t from, size_t to)
{
    const char *words[MCP_VIEW_LEXICON_PARTS];
    size_t count = to - from, taken = 0;

    if (count == 0 || count > MCP_VIEW_LEXICON_PARTS) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        words[i] = s->tokens[from + i].text;
    }
    return mcp_view_lexicon_application(s->index->lexicon, words, count, &taken) != NULL &&
           taken == count;
}

/* What is quoted is a value, but for the name of an application or of a label. */
static int is_name(const search_t *s, size_t from, size_t to)
{
    int is_label = from < to;

    for (size_t i = from; i < to; i++) {
        is_label = is_label && mcp_search_is_label(s, s->tokens[i].text, s->tokens[i].bytes);
    }
    return is_label || is_application(s, from, to);
}

/* Tokens from..to, of one run, as one word. 0: it is too long. */
static int join(const search_t *s, size_t from, size_t to, search_token_t *ret)
{
    *ret = s->tokens[from];
    for (size_t i = from + 1; i < to; i++) {
        const search_token_t *token = &s->tokens[i];

        if (token->run != ret->run || ret->bytes + token->bytes > MCP_VIEW_WORD_BYTES) {
            return 0;
        }
        memcpy(ret->text + ret->bytes, token->text, token->bytes + 1);
        ret->bytes += token->bytes;
        ret->letters += token->letters;
        ret->to = token->to;
    }
    ret->form = MCP_VIEW_FORM_WORD;
    return 1;
}

/* An id that tools speak of (sha256), or that an application is called (15Five), is a word. */
static int is_known_id(const search_t *s, size_t from, size_t to)
{
    search_token_t whole;
    const char *word = whole.text;
    size_t taken = 0;

    if (from == to || !join(s, from, to, &whole)) {
        return 0;
    }
    return mcp_search_is_word(s, whole.text, whole.bytes) ||
           mcp_view_lexicon_application(s->index->lexicon, &word, 1, &taken) != NULL;
}

static void mark_values(search_t *s)
{
    size_t from = 0;

    for (size_t i = 0; i < s->span_count; i++) {
        const search_span_t *span = &s->spans[i];
        size_t to;

        tokens_of(s, span, &from, &to);
        if ((span->kind == MCP_VIEW_VALUE_QUOTED && is_name(s, from, to)) ||
            (span->kind == MCP_VIEW_VALUE_ID && is_known_id(s, from, to)) ||
            span->kind == MCP_VIEW_VALUE_DOMAIN) {
            continue;
        }
        for (size_t k = from; k < to; k++) {
            s->tokens[k].value = span->kind;
        }
    }
}

/* --- what borders cut --------------------------------------------------------- */

/* 1 if these parts are one word: a label or an application is called so, or tools know the whole
 * and not all the parts. */
static int is_one_word(const search_t *s, const search_token_t *whole, size_t from, size_t to)
{
    const char *word = whole->text;
    size_t taken = 0;
    int are_parts_known = 1;

    if (mcp_search_is_label(s, whole->text, whole->bytes) ||
        mcp_view_lexicon_application(s->index->lexicon, &word, 1, &taken) != NULL) {
        return 1;
    }
    for (size_t i = from; i < to; i++) {
        are_parts_known =
            are_parts_known && mcp_search_is_word(s, s->tokens[i].text, s->tokens[i].bytes);
    }
    return !are_parts_known && mcp_search_is_word(s, whole->text, whole->bytes);
}

/* Puts parts of one run together where they are one word: the whole of up to three, else
 * neighbours. */
static void join_runs(search_t *s)
{
    size_t kept = 0;

    for (size_t from = 0, to; from < s->token_count; from = to) {
        search_token_t whole;

        to = from + 1;
        if (s->tokens[from].form == MCP_VIEW_FORM_PAIR) {
            s->tokens[kept++] = s->tokens[from];
            continue;
        }
        while (to < s->token_count && s->tokens[to].run == s->tokens[from].run) {
            to++;
        }
        if (to - from == 3 && join(s, from, to, &whole) && is_one_word(s, &whole, from, to)) {
            s->tokens[kept++] = whole;
            continue;
        }
        for (size_t i = from; i < to;) {
            size_t end =
                i + 2 <= to && join(s, i, i + 2, &whole) && is_one_word(s, &whole, i, i + 2)
                    ? i + 2
                    : i + 1;

            s->tokens[kept++] = end == i + 2 ? whole : s->tokens[i];
            i = end;
        }
    }
    s->token_count = kept;
}

void mcp_search_read(search_t *s)
{
    s->bytes = s->query->bytes;
    if (s->bytes > MCP_VIEW_SEARCH_BYTES) {
        s->bytes = MCP_VIEW_SEARCH_BYTES;
        s->is_cut = 1;
    }
    mcp_view_words(s->query->text, s->bytes, take_token, s);
    read_spans(s);
    if (!s->is_out) {
        mark_values(s);
        join_runs(s);
    }
}

/* --- terms ---------------------------------------------------------------------- */

static mcp_view_role_t role_of(const search_token_t *token)
{
    if (token->value != MCP_VIEW_VALUE_NONE) {
        return MCP_VIEW_ROLE_VALUE;
    }
    if (mcp_view_words_is_function(token->text)) {
        return MCP_VIEW_ROLE_FUNCTION;
    }
    if (token->form == MCP_VIEW_FORM_NUMBER) {
        return MCP_VIEW_ROLE_NUMBER;
    }
    return mcp_view_words_is_generic(token->text) ? MCP_VIEW_ROLE_GENERIC : MCP_VIEW_ROLE_CONTENT;
}

/* How many stages a query has to fall before the word counts: 0 content; 1 content of a quotation
 * or other value; 2 generic words and numbers; 3 function words. */
static int stage_of(const search_token_t *token)
{
    if (mcp_view_words_is_function(token->text)) {
        return 3;
    }
    if (token->form == MCP_VIEW_FORM_NUMBER || mcp_view_words_is_generic(token->text)) {
        return 2;
    }
    return token->value != MCP_VIEW_VALUE_NONE;
}

/* The term of the token's stem; NULL: none yet. */
static search_term_t *find_term(search_t *s, const char *stem, const uint32_t *slots,
                                size_t slot_count, size_t *at)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (const char *c = stem; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    }
    hash ^= hash >> 29;
    for (*at = hash & (slot_count - 1); slots[*at] != 0; *at = (*at + 1) & (slot_count - 1)) {
        search_term_t *term = &s->terms[slots[*at] - 1];

        if (strcmp(term->stem, stem) == 0) {
            return term;
        }
    }
    return NULL;
}

/* One term a stem: what counts more of two tokens is its role. */
static void make_terms(search_t *s, uint32_t *slots, size_t slot_count)
{
    for (size_t i = 0; i < s->token_count; i++) {
        const search_token_t *token = &s->tokens[i];
        char stem[MCP_VIEW_WORD_BYTES + 1];
        search_term_t *term;
        size_t at;

        memcpy(stem, token->text, token->bytes + 1);
        if (token->form != MCP_VIEW_FORM_PAIR) {
            mcp_view_words_stem(stem, token->bytes);
        }
        term = find_term(s, stem, slots, slot_count, &at);
        if (term == NULL) {
            term = &s->terms[s->term_count];
            memset(term, 0, sizeof(*term));
            memcpy(term->stem, stem, sizeof(stem));
            slots[at] = (uint32_t)++s->term_count;
        } else if (stage_of(term->token) <= stage_of(token)) {
            continue;
        }
        term->token = token;
        term->role = role_of(token);
    }
}

void mcp_search_terms(search_t *s)
{
    size_t slot_count = 64, used = 0;
    int stage = 3;
    uint32_t *slots;

    while (slot_count < 2 * s->token_count) {
        slot_count *= 2;
    }
    slots = calloc(slot_count, sizeof(*slots));
    s->terms = calloc(s->token_count + 1, sizeof(*s->terms));
    if (slots == NULL || s->terms == NULL) {
        s->is_out = 1;
        free(slots);
        return;
    }
    make_terms(s, slots, slot_count);
    free(slots);
    for (size_t i = 0; i < s->term_count; i++) {
        int own = stage_of(s->terms[i].token);

        stage = own < stage ? own : stage;
    }
    for (size_t i = 0; i < s->term_count; i++) {
        search_term_t *term = &s->terms[i];

        term->is_used = stage_of(term->token) <= stage;
        if (term->is_used && used == MCP_VIEW_SEARCH_WORDS) {
            term->is_used = 0;
            s->is_cut = 1;
        }
        used += (size_t)term->is_used;
        term->is_soft = !term->is_used && term->token->value == MCP_VIEW_VALUE_QUOTED &&
                        stage_of(term->token) == 1 && i < MCP_VIEW_SEARCH_WORDS;
        if (term->is_used) {
            term->role = MCP_VIEW_ROLE_CONTENT;
        }
    }
}
