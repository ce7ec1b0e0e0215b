/* Views for the tests of the search: tools by a table, the shipped lexicon, and a query in a line.
 * */
#ifndef VIEW_SHOP_H
#define VIEW_SHOP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <cmocka.h>

#include "../../proto/mcp_body.h"
#include "../../proto/view_search.h"

#define UNUSED __attribute__((unused))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static apr_pool_t *shop_pool;
static const mcp_view_lexicon_t *shop_lexicon;

UNUSED static char *shop_file(const char *name, size_t *bytes)
{
    const char *top = getenv("top_srcdir");
    char *path = apr_pstrcat(shop_pool, top != NULL ? top : ".", "/", name, NULL), *text;
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        fail_msg("%s cannot be read", path);
        return NULL;
    }
    text = apr_palloc(shop_pool, MCP_VIEW_LEXICON_BYTES + 1);
    *bytes = fread(text, 1, MCP_VIEW_LEXICON_BYTES, file);
    text[*bytes] = '\0';
    fclose(file);
    return text;
}

/* The shipped lexicon, or one of the blob's text. */
UNUSED static const mcp_view_lexicon_t *shop_parse(const char *blob, const mcp_view_lexicon_t *base)
{
    mcp_view_lexicon_t *made = NULL;

    assert_int_equal(mcp_view_lexicon_parse(blob, strlen(blob), base, shop_pool, &made), MCP_OK);
    return made;
}

UNUSED static int shop_open(void **state)
{
    size_t names_bytes = 0, words_bytes = 0, line = 0;
    char *names, *words, *text;
    json_t *blob = NULL;

    (void)state;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&shop_pool, NULL) != APR_SUCCESS) {
        return -1;
    }
    names = shop_file("conf/applications.txt", &names_bytes);
    words = shop_file("conf/words.txt", &words_bytes);
    assert_int_equal(mcp_view_lexicon_pack(names, names_bytes, words, words_bytes, &blob, &line),
                     MCP_OK);
    text = json_dumps(blob, JSON_COMPACT);
    shop_lexicon = shop_parse(text, NULL);
    free(text);
    json_decref(blob);
    return 0;
}

UNUSED static int shop_close(void **state)
{
    (void)state;
    apr_pool_destroy(shop_pool);
    apr_terminate();
    return 0;
}

UNUSED static mcp_view_index_t *shop_index(const mcp_view_entry_t *tools, size_t count)
{
    mcp_view_index_t *index = NULL;

    assert_int_equal(mcp_view_index_build(tools, count, shop_lexicon, shop_pool, &index), MCP_OK);
    return index;
}

UNUSED static mcp_view_found_t *shop_query(const mcp_view_index_t *index,
                                           const mcp_view_query_t *query)
{
    mcp_view_found_t *found = NULL;

    assert_int_equal(mcp_view_search(index, query, shop_pool, &found), MCP_OK);
    assert_non_null(found);
    return found;
}

UNUSED static mcp_view_found_t *shop_ask(const mcp_view_index_t *index, const char *text)
{
    mcp_view_query_t query = {.text = text, .bytes = strlen(text)};

    return shop_query(index, &query);
}

/* The names of the hits with a space between. */
UNUSED static const char *shop_names(const mcp_view_index_t *index, const mcp_view_found_t *found)
{
    char *names = apr_pstrdup(shop_pool, "");

    for (size_t i = 0; i < found->hit_count; i++) {
        names = apr_pstrcat(shop_pool, names, i > 0 ? " " : "",
                            mcp_view_index_name(index, found->hits[i].tool), NULL);
    }
    return names;
}

UNUSED static const char *shop_words(const char *const *words, size_t count)
{
    char *all = apr_pstrdup(shop_pool, "");

    for (size_t i = 0; i < count; i++) {
        all = apr_pstrcat(shop_pool, all, i > 0 ? "|" : "", words[i], NULL);
    }
    return all;
}

UNUSED static mcp_view_entry_t shop_tool(const char *name, const char *account,
                                         const char *connector, const char *label,
                                         const char *description)
{
    return (mcp_view_entry_t){.name = name,
                              .account = account,
                              .connector = connector,
                              .label = label,
                              .description = description};
}

/* The name of the first answer, or "". */
UNUSED static const char *shop_best(const mcp_view_index_t *index, const char *query)
{
    const mcp_view_found_t *found = shop_ask(index, query);

    return found->hit_count > 0 ? mcp_view_index_name(index, found->hits[0].tool) : "";
}

#endif
