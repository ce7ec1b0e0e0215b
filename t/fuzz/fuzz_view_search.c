/* Views and queries: the first line of the input is the query; each further one a tool, as name TAB
 * account TAB label TAB description; a line that begins with '{' is a lexicon. Whatever is asked,
 * an answer keeps the floor, stands in order and names tools of the view. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "view_search.h"

#define TOOLS 64

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : 1;
}

static void check(int is_sound)
{
    if (!is_sound) {
        __builtin_trap();
    }
}

/* The next of a line's parts; the line goes on behind it. */
static const char *part(char **line)
{
    char *own = *line;

    if (own == NULL) {
        return NULL;
    }
    *line = strchr(own, '\t');
    if (*line != NULL) {
        *(*line)++ = '\0';
    }
    return own;
}

static void check_found(const mcp_view_found_t *found, size_t count, const mcp_view_query_t *query)
{
    check(found->hit_count <= MCP_VIEW_SEARCH_MOST && found->hit_count <= found->above);
    check(found->above + found->below <= count);
    check((found->empty == MCP_VIEW_EMPTY_NOT) == (found->hit_count > 0));
    check(found->suggest == NULL || found->hit_count == 0);
    check(found->closest_count <= MCP_VIEW_SEARCH_CLOSEST);
    for (size_t i = 0; i < found->hit_count; i++) {
        const mcp_view_hit_t *hit = &found->hits[i];
        uint64_t points = 0;

        check(hit->tool < count);
        check(query->is_floor_off || hit->is_whole_name || 2 * hit->covered >= found->mass);
        check(i == 0 || found->hits[i - 1].score >= hit->score || found->hits[i - 1].is_whole_name);
        for (size_t k = 0; k < hit->match_count; k++) {
            check(hit->matches[k].term < found->term_count);
            points += hit->matches[k].points;
        }
        check(!query->is_explained || points == hit->score);
    }
}

static void ask(const mcp_view_index_t *index, const char *text, size_t bytes, size_t count,
                apr_pool_t *pool)
{
    for (unsigned mode = 0; mode < 12; mode++) {
        mcp_view_query_t query = {.text = text,
                                  .bytes = bytes,
                                  .limit = mode,
                                  .closest = mode % 4,
                                  .is_explained = mode % 2 == 0,
                                  .is_floor_off = mode == 7,
                                  .account = mode == 8 ? "a" : NULL,
                                  .unknown_words = (mcp_view_unknown_t)(mode % 3)};
        mcp_view_found_t *found = NULL, *again = NULL;

        check(mcp_view_search(index, &query, pool, &found) == MCP_OK);
        check_found(found, count, &query);
        if (found->suggest != NULL) {
            query.text = found->suggest;
            query.bytes = strlen(found->suggest);
            check(mcp_view_search(index, &query, pool, &again) == MCP_OK);
            check(again->hit_count > 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mcp_view_entry_t tools[TOOLS];
    mcp_view_lexicon_t *lexicon = NULL;
    mcp_view_index_t *index = NULL;
    apr_pool_t *pool = NULL;
    size_t count = 0;
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t query_bytes = end != NULL ? (size_t)(end - data) : size;
    char *query, *line;

    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return 0;
    }
    /* exactly as large as it is, so that a read beyond is seen */
    query = malloc(query_bytes > 0 ? query_bytes : 1);
    if (query == NULL) {
        apr_pool_destroy(pool);
        return 0;
    }
    if (query_bytes > 0) {
        memcpy(query, data, query_bytes);
    }
    line = end != NULL ? apr_pstrmemdup(pool, (const char *)end + 1, size - query_bytes - 1) : NULL;
    while (line != NULL && *line != '\0' && count < TOOLS) {
        char *next = strchr(line, '\n');

        if (next != NULL) {
            *next++ = '\0';
        }
        if (*line == '{') {
            (void)mcp_view_lexicon_parse(line, strlen(line), NULL, pool, &lexicon);
        } else {
            memset(&tools[count], 0, sizeof(tools[count]));
            tools[count].name = part(&line);
            tools[count].account = part(&line);
            tools[count].label = part(&line);
            tools[count].description = part(&line);
            count += *tools[count].name != '\0' && strlen(tools[count].name) <= MCP_VIEW_INDEX_NAME;
        }
        line = next;
    }
    check(mcp_view_index_build(tools, count, lexicon, pool, &index) == MCP_OK);
    ask(index, query, query_bytes, count, pool);
    free(query);
    apr_pool_destroy(pool);
    return 0;
}
