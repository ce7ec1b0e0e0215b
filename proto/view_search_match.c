/* The tools of a word: see view_search_private.h. Touches the postings of words that match, found
 * through the ordered tables. */
#include <stdlib.h>
#include <string.h>

#include "view_search_private.h"

#define NAME_LETTERS 3 /* of a query's word that begins a name's */
#define MORE_LETTERS 4 /* of a shorter word otherwise */

int mcp_search_room(search_t *s, void **rows, size_t count, size_t *room, size_t size)
{
    size_t more = *room == 0 ? 64 : *room * 2;
    void *moved;

    if (count < *room) {
        return 1;
    }
    moved = more <= SIZE_MAX / size ? realloc(*rows, more * size) : NULL;
    if (moved == NULL) {
        s->is_out = 1;
        return 0;
    }
    *rows = moved;
    *room = more;
    return 1;
}

static size_t slot_of(const search_t *s, uint32_t tool)
{
    size_t at = (tool * 2654435761u) & (s->slot_count - 1);

    while (s->slots[at] != 0 && s->entries[s->slots[at] - 1].tool != tool) {
        at = (at + 1) & (s->slot_count - 1);
    }
    return at;
}

static int grow_slots(search_t *s)
{
    size_t count = s->slot_count == 0 ? 256 : s->slot_count * 2;
    uint32_t *slots = calloc(count, sizeof(*slots));

    if (slots == NULL) {
        s->is_out = 1;
        return 0;
    }
    free(s->slots);
    s->slots = slots;
    s->slot_count = count;
    for (uint32_t i = 0; i < s->entry_count; i++) {
        s->slots[slot_of(s, s->entries[i].tool)] = i + 1;
    }
    return 1;
}

search_entry_t *mcp_search_entry(search_t *s, uint32_t tool, int is_made)
{
    void *rows = s->entries;
    size_t at, room = s->entry_room;

    if (s->slot_count == 0 && (!is_made || !grow_slots(s))) {
        return NULL;
    }
    at = slot_of(s, tool);
    if (s->slots[at] != 0) {
        return &s->entries[s->slots[at] - 1];
    }
    if (!is_made || !mcp_search_room(s, &rows, s->entry_count, &room, sizeof(*s->entries))) {
        return NULL;
    }
    s->entries = rows;
    s->entry_room = (uint32_t)room;
    s->entries[s->entry_count] = (search_entry_t){.tool = tool};
    s->slots[at] = ++s->entry_count;
    if ((size_t)s->entry_count * 2 > s->slot_count && !grow_slots(s)) {
        return NULL;
    }
    return &s->entries[s->entry_count - 1];
}

/* The tools of a word of a table match in this field. */
static void mark(search_t *s, const mcp_view_postings_t *postings, uint32_t word, uint32_t field)
{
    for (uint32_t i = postings->from[word]; i < postings->from[word + 1] && !s->is_out; i++) {
        search_entry_t *entry = mcp_search_entry(s, postings->tools[i], 1);
        void *rows = s->touched;

        if (entry == NULL) {
            return;
        }
        if (entry->stamp != s->stamp) {
            if (!mcp_search_room(s, &rows, s->touched_count, &s->touched_room,
                                 sizeof(*s->touched))) {
                return;
            }
            s->touched = rows;
            s->touched[s->touched_count++] = (uint32_t)(entry - s->entries);
            entry->stamp = s->stamp;
            entry->fields = 0;
        }
        entry->fields |= field;
    }
}

static int is_letter_start(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Calls for each number of bytes, below all, that holds `letters` letters and more. */
static size_t next_beginning(const char *word, size_t bytes, size_t at, size_t letters)
{
    size_t count = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (is_letter_start(word[i])) {
            if (count >= letters && i > at) {
                return i;
            }
            count++;
        }
    }
    return bytes;
}

static size_t letters_of(const char *word)
{
    size_t count = 0;

    for (; *word != '\0'; word++) {
        count += (size_t)is_letter_start(*word);
    }
    return count;
}

/* A name's words that the word begins, and those that begin it. */
static void match_name_parts(search_t *s, const char *word, size_t bytes)
{
    const mcp_view_table_t *table = &s->index->words;
    char begin[MCP_VIEW_WORD_BYTES + 1];
    uint32_t first, last;

    if (letters_of(word) >= NAME_LETTERS) {
        mcp_view_table_range(table, word, bytes, &first, &last);
        for (; first < last; first++) {
            if (strcmp(mcp_view_table_word(table, first), word) != 0) {
                mark(s, &s->index->name, first, MCP_VIEW_FIELD_NAME_PART);
            }
        }
    }
    for (size_t at = next_beginning(word, bytes, 0, MORE_LETTERS); at < bytes;
         at = next_beginning(word, bytes, at, MORE_LETTERS)) {
        uint32_t found;

        memcpy(begin, word, at);
        begin[at] = '\0';
        found = mcp_view_table_find(table, begin);
        if (found != UINT32_MAX) {
            mark(s, &s->index->name, found, MCP_VIEW_FIELD_NAME_PART);
        }
    }
}

/* A stem's tools: label and text. */
static void mark_stem(search_t *s, uint32_t stem, int is_silent)
{
    mark(s, &s->index->label, stem, MCP_VIEW_FIELD_LABEL);
    if (!is_silent) {
        mark(s, &s->index->text, stem, MCP_VIEW_FIELD_DESCRIPTION);
    }
}

/* The same for stems of labels and texts. */
static void match_stems(search_t *s, const char *stem, int is_silent)
{
    const mcp_view_table_t *table = &s->index->stems;
    char begin[MCP_VIEW_WORD_BYTES + 1];
    size_t bytes = strlen(stem);
    uint32_t first, last;

    if (letters_of(stem) < MORE_LETTERS) {
        return;
    }
    mcp_view_table_range(table, stem, bytes, &first, &last);
    for (; first < last; first++) {
        mark_stem(s, first, is_silent);
    }
    for (size_t at = next_beginning(stem, bytes, 0, MORE_LETTERS); at < bytes;
         at = next_beginning(stem, bytes, at, MORE_LETTERS)) {
        uint32_t found;

        memcpy(begin, stem, at);
        begin[at] = '\0';
        found = mcp_view_table_find(table, begin);
        if (found != UINT32_MAX) {
            mark_stem(s, found, is_silent);
        }
    }
}

size_t mcp_search_match(search_t *s, const char *word, size_t bytes, const char *stem,
                        mcp_view_form_t form)
{
    uint32_t found = mcp_view_table_find(&s->index->words, word);
    int is_silent = mcp_view_words_is_silent(word);

    s->stamp++;
    s->touched_count = 0;
    if (found != UINT32_MAX) {
        mark(s, &s->index->name, found, MCP_VIEW_FIELD_NAME);
    }
    found = mcp_view_table_find(&s->index->stems, stem);
    if (found != UINT32_MAX) {
        mark(s, &s->index->part, found, MCP_VIEW_FIELD_NAME_PART);
        mark_stem(s, found, is_silent);
    }
    if (form != MCP_VIEW_FORM_PAIR) {
        match_name_parts(s, word, bytes);
        match_stems(s, stem, is_silent);
    }
    return s->touched_count;
}

size_t mcp_search_term(search_t *s, const search_term_t *term)
{
    return mcp_search_match(s, term->token->text, term->token->bytes, term->stem,
                            term->token->form);
}

static uint32_t stem_number(const search_t *s, const char *word, size_t bytes)
{
    char stem[MCP_VIEW_WORD_BYTES + 1];

    if (bytes > MCP_VIEW_WORD_BYTES) {
        return UINT32_MAX;
    }
    memcpy(stem, word, bytes);
    stem[bytes] = '\0';
    mcp_view_words_stem(stem, bytes);
    return mcp_view_table_find(&s->index->stems, stem);
}

int mcp_search_is_word(const search_t *s, const char *word, size_t bytes)
{
    return stem_number(s, word, bytes) != UINT32_MAX;
}

int mcp_search_is_label(const search_t *s, const char *word, size_t bytes)
{
    uint32_t stem = stem_number(s, word, bytes);

    return stem != UINT32_MAX && s->index->label.from[stem] < s->index->label.from[stem + 1];
}

/* log2 of x / 2^32, x >= 2^32, in 1/2^24: the whole part, then a bit for each squaring of the rest.
 * */
static uint64_t log2_of(uint64_t x)
{
    unsigned whole = 0;
    uint64_t result;

    while (x >> 33 != 0) {
        x = x >> 1;
        whole++;
    }
    result = whole;
    for (int i = 0; i < 24; i++) {
        uint64_t half = x >> 1; /* below 2^32: its square fits */

        x = half * half >> 30;
        result <<= 1;
        if (x >> 33 != 0) {
            result |= 1;
            x >>= 1;
        }
    }
    return result;
}

uint32_t mcp_search_weight(size_t count, size_t tools)
{
    uint64_t ratio = ((uint64_t)(count + 1) << 32) / (tools + 1);
    uint64_t natural;

    /* ln 2 in 1/2^32 */
    natural = log2_of(ratio < (1ull << 32) ? 1ull << 32 : ratio) * 2977044472u >> 32;
    return (uint32_t)((natural + 128) >> 8) + 2u * MCP_VIEW_SEARCH_ONE;
}

uint32_t mcp_search_points(uint32_t fields)
{
    uint32_t points = 0;

    if (fields & MCP_VIEW_FIELD_NAME) {
        points = 5;
    } else if (fields & MCP_VIEW_FIELD_NAME_PART) {
        points = 3;
    }
    return points + (fields & MCP_VIEW_FIELD_LABEL ? 2 : 0) +
           (fields & MCP_VIEW_FIELD_DESCRIPTION ? 1 : 0);
}
