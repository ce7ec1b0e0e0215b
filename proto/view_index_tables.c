/* The tables of an index: see view_index_build.h. */
#include "view_index_build.h"

#include <stdlib.h>
#include <string.h>

typedef struct sorted {
    const char *text;
    uint32_t bytes;
    uint32_t seen;
} sorted_t;

static int compare_sorted(const void *a, const void *b)
{
    const sorted_t *left = a, *right = b;
    int order = strcmp(left->text, right->text);

    return order != 0 ? order : left->seen < right->seen ? -1 : left->seen > right->seen;
}

void *mcp_index_take(index_build_t *b, mcp_view_index_t *index, size_t count, size_t size)
{
    void *made = apr_palloc(index->pool, (count == 0 ? 1 : count) * size);

    b->is_out |= made == NULL;
    index->size.bytes += count * size;
    return made;
}

/* Rows, ordered, into a table; tells each row's word its number in it: is_stem 1, as its stem. */
static void make_table(index_build_t *b, mcp_view_index_t *index, sorted_t *rows, size_t count,
                       int is_stem, mcp_view_table_t *table)
{
    size_t bytes = 0, different = 0, used = 0;
    uint32_t *at;
    char *text;

    qsort(rows, count, sizeof(*rows), compare_sorted);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(rows[i].text, rows[i - 1].text) != 0) {
            different++;
            bytes += rows[i].bytes + 1;
        }
    }
    at = mcp_index_take(b, index, different + 1, sizeof(*at));
    text = mcp_index_take(b, index, bytes, 1);
    if (b->is_out) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(rows[i].text, rows[i - 1].text) != 0) {
            at[table->count++] = (uint32_t)used;
            memcpy(text + used, rows[i].text, rows[i].bytes + 1);
            used += rows[i].bytes + 1;
        }
        if (is_stem) {
            b->seen[rows[i].seen].stem = table->count - 1;
        } else {
            b->seen[rows[i].seen].word = table->count - 1;
        }
    }
    at[table->count] = (uint32_t)used;
    table->at = at;
    table->text = text;
}

/* The table of the names' words, then that of all stems. */
void mcp_index_tables(index_build_t *b, mcp_view_index_t *index)
{
    sorted_t *rows = malloc((b->seen_count + 1) * sizeof(*rows));
    char *stems = malloc((size_t)b->seen_count * (MCP_VIEW_WORD_BYTES + 1) + 1);
    size_t count = 0, used = 0;

    b->is_out |= rows == NULL || stems == NULL;
    for (uint32_t i = 0; !b->is_out && i < b->seen_count; i++) {
        const index_seen_t *seen = &b->seen[i];

        if (seen->last[FIELD_NAME] != 0) {
            rows[count++] =
                (sorted_t){.text = b->texts + seen->text, .bytes = seen->bytes, .seen = i};
        }
    }
    if (!b->is_out) {
        make_table(b, index, rows, count, 0, &index->words);
    }
    for (uint32_t i = 0; !b->is_out && i < b->seen_count; i++) {
        const index_seen_t *seen = &b->seen[i];
        size_t bytes = seen->bytes;

        memcpy(stems + used, b->texts + seen->text, bytes + 1);
        bytes = mcp_view_words_stem(stems + used, bytes);
        rows[i] = (sorted_t){.text = stems + used, .bytes = (uint32_t)bytes, .seen = i};
        used += bytes + 1;
    }
    if (!b->is_out) {
        make_table(b, index, rows, b->seen_count, 1, &index->stems);
    }
    free(rows);
    free(stems);
}

/* Pairs, which are in the order of their tools, into the postings of the table's words. */
void mcp_index_postings(index_build_t *b, mcp_view_index_t *index, const index_pairs_t *pairs,
                        int is_stem, uint32_t words, mcp_view_postings_t *postings)
{
    uint32_t *from = mcp_index_take(b, index, (size_t)words + 1, sizeof(*from));
    uint32_t *last =
        calloc((size_t)words + 1, sizeof(*last)); /* tool of a word seen last, plus 1 */
    uint32_t *tools, total = 0;

    b->is_out |= last == NULL;
    if (b->is_out) {
        free(last);
        return;
    }
    memset(from, 0, ((size_t)words + 1) * sizeof(*from));
    for (size_t i = 0; i < pairs->count; i++) {
        const index_seen_t *seen = &b->seen[pairs->rows[i].word];
        uint32_t word = is_stem ? seen->stem : seen->word;

        if (last[word] != pairs->rows[i].tool + 1) {
            last[word] = pairs->rows[i].tool + 1;
            from[word]++;
        }
    }
    for (uint32_t i = 0; i <= words; i++) {
        uint32_t count = from[i];

        from[i] = total;
        total += i < words ? count : 0;
    }
    tools = mcp_index_take(b, index, total, sizeof(*tools));
    memset(last, 0, ((size_t)words + 1) * sizeof(*last));
    for (size_t i = 0; !b->is_out && i < pairs->count; i++) {
        const index_seen_t *seen = &b->seen[pairs->rows[i].word];
        uint32_t word = is_stem ? seen->stem : seen->word;

        if (last[word] != pairs->rows[i].tool + 1) {
            last[word] = pairs->rows[i].tool + 1;
            tools[from[word]++] = pairs->rows[i].tool;
        }
    }
    for (uint32_t i = words; i > 0; i--) { /* filling moved each beginning to its end */
        from[i] = from[i - 1];
    }
    from[0] = 0;
    free(last);
    postings->from = from;
    postings->tools = tools;
    index->size.postings += total;
}

static int compare_names(const void *a, const void *b, void *ctx)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const mcp_view_index_t *index = ctx;
    int order = strcmp(index->names[left], index->names[right]);

    return order != 0 ? order : left < right ? -1 : left > right;
}

static int compare_wholes(const void *a, const void *b)
{
    const mcp_view_whole_t *left = a, *right = b;

    if (left->hash != right->hash) {
        return left->hash < right->hash ? -1 : 1;
    }
    return left->tool < right->tool ? -1 : left->tool > right->tool;
}

void mcp_index_orders(index_build_t *b, mcp_view_index_t *index)
{
    uint32_t *rank = mcp_index_take(b, index, index->count, sizeof(*rank));
    mcp_view_whole_t *wholes = mcp_index_take(b, index, index->whole_count, sizeof(*wholes));
    mcp_view_group_t *groups = mcp_index_take(b, index, index->group_count, sizeof(*groups));

    if (b->is_out) {
        return;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        b->order[i] = i;
    }
    qsort_r(b->order, index->count, sizeof(*b->order), compare_names, index);
    for (uint32_t i = 0; i < index->count; i++) {
        rank[b->order[i]] = i;
    }
    qsort(b->wholes, index->whole_count, sizeof(*b->wholes), compare_wholes);
    memcpy(wholes, b->wholes, index->whole_count * sizeof(*wholes));
    memcpy(groups, b->groups, index->group_count * sizeof(*groups));
    index->rank = rank;
    index->wholes = wholes;
    index->groups = groups;
}
