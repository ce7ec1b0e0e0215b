/* Reads an index: see view_index_private.h. */
#include <string.h>

#include "view_index_private.h"

size_t mcp_view_index_count(const mcp_view_index_t *index)
{
    return index->count;
}

const char *mcp_view_index_name(const mcp_view_index_t *index, size_t tool)
{
    return tool < index->count ? index->names[tool] : NULL;
}

void mcp_view_index_size(const mcp_view_index_t *index, mcp_view_index_size_t *ret)
{
    *ret = index->size;
}

/* The first word from `low` that isn't before the bytes; is_behind 1: nor begins with them. */
static uint32_t bound(const mcp_view_table_t *table, const char *prefix, size_t bytes, uint32_t low,
                      int is_behind)
{
    uint32_t high = table->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strncmp(mcp_view_table_word(table, middle), prefix, bytes);

        if (order < 0 || (is_behind && order == 0)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t mcp_view_table_find(const mcp_view_table_t *table, const char *word)
{
    uint32_t at = bound(table, word, strlen(word) + 1, 0, 0);

    return at < table->count && strcmp(mcp_view_table_word(table, at), word) == 0 ? at : UINT32_MAX;
}

void mcp_view_table_range(const mcp_view_table_t *table, const char *prefix, size_t bytes,
                          uint32_t *first, uint32_t *last)
{
    *first = bound(table, prefix, bytes, 0, 0);
    *last = bound(table, prefix, bytes, *first, 1);
}
