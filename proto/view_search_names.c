/* The applications that a query names: see view_search_private.h. */
#include <string.h>

#include "view_search_private.h"

#define NO_WORD UINT32_MAX

/* 1 if the tool has the word. */
static int has_tool(const mcp_view_postings_t *postings, uint32_t word, uint32_t tool)
{
    uint32_t low = postings->from[word], high = postings->from[word + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (postings->tools[middle] == tool) {
            return 1;
        }
        if (postings->tools[middle] < tool) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

/* What of an application is there. */
typedef struct presence {
    int is_connected, is_called;
} presence_t;

/* 1 if a tool has all these words in a field; s not NULL: marks every such tool as called so. */
static int is_any(const mcp_view_postings_t *postings, const uint32_t *words, size_t count,
                  search_t *s)
{
    int is_found = 0;

    for (size_t i = 0; i < count; i++) {
        if (words[i] == NO_WORD) {
            return 0;
        }
    }
    for (uint32_t i = postings->from[words[0]]; i < postings->from[words[0] + 1]; i++) {
        search_entry_t *entry;
        size_t has = 1;

        while (has < count && has_tool(postings, words[has], postings->tools[i])) {
            has++;
        }
        if (has < count) {
            continue;
        }
        is_found = 1;
        if (s == NULL) {
            break;
        }
        entry = mcp_search_entry(s, postings->tools[i], 1);
        if (entry != NULL) {
            entry->is_called = 1;
        }
    }
    return is_found;
}

/* Looks for all words of the phrase in the account and connector of a tool; and in names of tools,
 * unless they are all ordinary. */
static void find_phrase(search_t *s, const char *phrase, presence_t *ret)
{
    uint32_t stems[MCP_VIEW_LEXICON_PARTS], words[MCP_VIEW_LEXICON_PARTS];
    size_t count = 0;
    int is_ordinary = 1;

    while (*phrase != '\0' && count < MCP_VIEW_LEXICON_PARTS) {
        char word[MCP_VIEW_WORD_BYTES + 1], stem[MCP_VIEW_WORD_BYTES + 1];
        size_t bytes = strcspn(phrase, " ");

        if (bytes > MCP_VIEW_WORD_BYTES) {
            return;
        }
        memcpy(word, phrase, bytes);
        word[bytes] = '\0';
        memcpy(stem, word, bytes + 1);
        mcp_view_words_stem(stem, bytes);
        is_ordinary = is_ordinary && mcp_view_lexicon_is_ordinary(s->index->lexicon, word);
        stems[count] = mcp_view_table_find(&s->index->stems, stem);
        words[count++] = mcp_view_table_find(&s->index->words, word);
        phrase += bytes + (phrase[bytes] == ' ');
    }
    if (count > 0) {
        ret->is_connected |= is_any(&s->index->label, stems, count, NULL);
        ret->is_called |= !is_ordinary && is_any(&s->index->name, words, count, s);
    }
}

static void find_application(search_t *s, const mcp_view_application_t *application,
                             presence_t *ret)
{
    for (size_t i = 0; i < application->phrase_count; i++) {
        find_phrase(s, application->phrases[i], ret);
    }
}

/* Tokens from..to as a phrase. */
static void find_tokens(search_t *s, size_t from, size_t to, presence_t *ret)
{
    char phrase[MCP_VIEW_LEXICON_PARTS * (MCP_VIEW_WORD_BYTES + 1)];
    size_t bytes = 0;

    if (from == to || to - from > MCP_VIEW_LEXICON_PARTS) {
        return;
    }
    for (size_t i = from; i < to; i++) {
        if (i > from) {
            phrase[bytes++] = ' ';
        }
        memcpy(phrase + bytes, s->tokens[i].text, s->tokens[i].bytes);
        bytes += s->tokens[i].bytes;
    }
    phrase[bytes] = '\0';
    find_phrase(s, phrase, ret);
}

/* A domain is looked for under all its words, without its ending, or under what stands before that:
 * app.asana.com as "app asana com", "app asana" or "asana". */
static void find_domain(search_t *s, const search_span_t *span, size_t from, size_t to,
                        presence_t *ret)
{
    const char *text = s->query->text;
    size_t ending = to, label, mark = span->to;

    while (mark > span->from && text[mark - 1] != '.') {
        mark--;
    }
    while (ending > from && s->tokens[ending - 1].from >= mark) {
        ending--;
    }
    mark = mark > span->from ? mark - 1 : mark;
    while (mark > span->from && text[mark - 1] != '.') {
        mark--;
    }
    for (label = ending; label > from && s->tokens[label - 1].from >= mark; label--) {
    }
    find_tokens(s, from, to, ret);
    find_tokens(s, from, ending, ret);
    find_tokens(s, label, ending, ret);
}

static void add(search_t *s, const mcp_view_application_t *application, size_t from, size_t to,
                presence_t there)
{
    if (s->named_count == SEARCH_NAMED) {
        return;
    }
    s->named[s->named_count++] = (search_named_t){.application = application,
                                                  .from = s->tokens[from].from,
                                                  .to = s->tokens[to - 1].to,
                                                  .is_connected = there.is_connected,
                                                  .is_called = there.is_called};
    for (size_t i = from; i < to && !there.is_connected && !there.is_called; i++) {
        s->tokens[i].is_named = 1;
    }
}

/* Names that the lexicon has; the longest at each place. */
static void find_names(search_t *s)
{
    const char *words[MCP_VIEW_LEXICON_PARTS];

    for (size_t i = 0; i < s->token_count;) {
        const mcp_view_application_t *found;
        size_t count = 0, taken = 1;

        while (count < MCP_VIEW_LEXICON_PARTS && i + count < s->token_count &&
               s->tokens[i + count].value == MCP_VIEW_VALUE_NONE) {
            words[count] = s->tokens[i + count].text;
            count++;
        }
        found = count > 0 ? mcp_view_lexicon_application(s->index->lexicon, words, count, &taken)
                          : NULL;
        if (found != NULL) {
            presence_t there = {0};

            find_application(s, found, &there);
            add(s, found, i, i + taken, there);
        } else {
            taken = 1;
        }
        i += taken;
    }
}

/* Domains, unless the lexicon has named them. */
static void find_domains(search_t *s)
{
    size_t names = s->named_count, from = 0;

    for (size_t i = 0; i < s->span_count; i++) {
        const search_span_t *span = &s->spans[i];
        int is_told = 0;
        size_t to;

        if (span->kind != MCP_VIEW_VALUE_DOMAIN) {
            continue;
        }
        while (from < s->token_count && s->tokens[from].from < span->from) {
            from++;
        }
        for (to = from; to < s->token_count && s->tokens[to].to <= span->to; to++) {
        }
        for (size_t k = 0; k < names; k++) {
            is_told = is_told || (s->named[k].from < span->to && s->named[k].to > span->from);
        }
        if (!is_told && from < to) {
            presence_t there = {0};

            find_domain(s, span, from, to, &there);
            add(s, NULL, from, to, there);
        }
    }
}

void mcp_search_named(search_t *s)
{
    find_names(s);
    find_domains(s);
}
