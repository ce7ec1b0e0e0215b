/* Properties of the search over random views and queries, and a slow second implementation of its
 * matching. */
#include "view_shop.h"

#include "../../proto/view_words.h"

static uint32_t seed;

static uint32_t next(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static const char *const vocabulary[] = {
    "create", "list",    "get",    "issue",  "page",       "file",
    "files",  "listing", "event",  "search", "message",    "messages",
    "github", "notion",  "sprint", "legal",  "salesforce", "weather",
    "zzyzx",  "the",     "tool",   "doc",    "document",   "\xe5\x9b\xbe\xe7\x89\x87",
    "GitHub", "42"};

static const char *sentence(size_t most, const char *between)
{
    char *text = apr_pstrdup(shop_pool, "");
    size_t count = 1 + next((uint32_t)most);

    for (size_t i = 0; i < count; i++) {
        text = apr_pstrcat(shop_pool, text, i > 0 ? between : "",
                           vocabulary[next(COUNT(vocabulary))], NULL);
    }
    return text;
}

/* The words of a text as a search of ours compares them, written anew and slowly: no tables, no
 * postings. */
typedef struct bag {
    char words[256][MCP_VIEW_WORD_BYTES + 1];
    char stems[256][MCP_VIEW_WORD_BYTES + 1];
    int is_pair[256];
    size_t count;
} bag_t;

static int fill(const mcp_view_word_t *word, void *ctx)
{
    bag_t *bag = ctx;

    if (bag->count < 256) {
        memcpy(bag->words[bag->count], word->text, word->bytes + 1);
        memcpy(bag->stems[bag->count], word->text, word->bytes + 1);
        mcp_view_words_stem(bag->stems[bag->count], word->bytes);
        bag->is_pair[bag->count++] =
            word->form == MCP_VIEW_FORM_PAIR || word->form == MCP_VIEW_FORM_SINGLE;
    }
    return 0;
}

static const bag_t *bag_of(const char *text)
{
    bag_t *bag = apr_pcalloc(shop_pool, sizeof(*bag));

    mcp_view_words(text, strlen(text), fill, bag);
    return bag;
}

static int starts(const char *longer, const char *shorter, size_t least)
{
    return strlen(shorter) >= least && strlen(longer) > strlen(shorter) &&
           strncmp(longer, shorter, strlen(shorter)) == 0;
}

static unsigned slow_fields(const char *word, const mcp_view_entry_t *entry)
{
    const bag_t *name = bag_of(strstr(entry->name, "__") + 2), *label = bag_of(entry->account),
                *text = bag_of(entry->description);
    char stem[MCP_VIEW_WORD_BYTES + 1];
    unsigned fields = 0;

    memcpy(stem, word, strlen(word) + 1);
    mcp_view_words_stem(stem, strlen(stem));
    for (size_t i = 0; i < name->count; i++) {
        if (strcmp(name->words[i], word) == 0) {
            fields |= MCP_VIEW_FIELD_NAME;
        }
        if (strcmp(name->stems[i], stem) == 0 || starts(name->words[i], word, 3) ||
            starts(word, name->words[i], 4)) {
            fields |= MCP_VIEW_FIELD_NAME_PART;
        }
    }
    for (size_t i = 0; i < label->count; i++) {
        if (strcmp(label->stems[i], stem) == 0 || starts(label->stems[i], stem, 4) ||
            starts(stem, label->stems[i], 4)) {
            fields |= MCP_VIEW_FIELD_LABEL;
        }
    }
    for (size_t i = 0; i < text->count; i++) {
        if (strcmp(text->stems[i], stem) == 0 || starts(text->stems[i], stem, 4) ||
            starts(stem, text->stems[i], 4)) {
            fields |= MCP_VIEW_FIELD_DESCRIPTION;
        }
    }
    return fields;
}

static void random_views_are_searched_as_a_slow_search_would(void **state)
{
    (void)state;
    seed = 11;
    for (int round = 0; round < 60; round++) {
        apr_pool_t *kept = shop_pool;
        mcp_view_entry_t tools[40];
        size_t count = 1 + next(COUNT(tools));
        mcp_view_query_t query = {
            .is_explained = 1, .limit = 20, .unknown_words = (mcp_view_unknown_t)next(3)};

        apr_pool_create(&shop_pool, kept);
        for (size_t i = 0; i < count; i++) {
            tools[i] = shop_tool(apr_psprintf(shop_pool, "%s-%lu__%s", vocabulary[next(14)],
                                              (unsigned long)i, sentence(3, "_")),
                                 NULL, NULL, NULL, sentence(6, " "));
            tools[i].account = apr_pstrndup(shop_pool, tools[i].name, strcspn(tools[i].name, "_"));
        }
        mcp_view_index_t *index = shop_index(tools, count);
        for (int asked = 0; asked < 10; asked++) {
            query.text = sentence(5, " ");
            query.bytes = strlen(query.text);
            const mcp_view_found_t *found = shop_query(index, &query),
                                   *again = shop_query(index, &query);

            assert_string_equal(shop_names(index, found), shop_names(index, again));
            assert_true(found->hit_count <= found->above && found->above + found->below <= count);
            assert_int_equal(found->empty == MCP_VIEW_EMPTY_NOT, found->hit_count > 0);
            for (size_t i = 0; i < found->hit_count + found->dropped_count; i++) {
                const mcp_view_hit_t *hit =
                    i < found->hit_count ? &found->hits[i] : &found->dropped[i - found->hit_count];
                size_t matches = 0;

                assert_true(hit->tool < count);
                if (i < found->hit_count) {
                    assert_true(2 * hit->covered >= found->mass || hit->is_whole_name);
                }
                for (size_t t = 0; t < found->term_count; t++) {
                    const mcp_view_term_t *term = &found->terms[t];
                    unsigned fields = term->role == MCP_VIEW_ROLE_CONTENT
                                          ? slow_fields(term->text, &tools[hit->tool])
                                          : 0;

                    if (fields != 0) {
                        assert_true(matches < hit->match_count);
                        assert_int_equal(hit->matches[matches].term, t);
                        /* an equal word is an equal stem too */
                        assert_int_equal(hit->matches[matches].fields & ~MCP_VIEW_FIELD_NAME_PART,
                                         fields & ~MCP_VIEW_FIELD_NAME_PART);
                        assert_int_equal(hit->matches[matches].fields != 0, 1);
                        matches++;
                    }
                }
                assert_int_equal(matches, hit->match_count);
            }
        }
        apr_pool_destroy(shop_pool);
        shop_pool = kept;
    }
}

static void the_order_of_the_tools_does_not_matter(void **state)
{
    (void)state;
    seed = 5;
    for (int round = 0; round < 40; round++) {
        mcp_view_entry_t tools[30], mixed[30];
        mcp_view_index_t *first, *second;

        for (size_t i = 0; i < 30; i++) {
            tools[i] = shop_tool(apr_psprintf(shop_pool, "%s-%lu__%s", vocabulary[next(14)],
                                              (unsigned long)i, sentence(3, "_")),
                                 "x", NULL, NULL, sentence(6, " "));
            mixed[i] = tools[i];
        }
        for (size_t i = 29; i > 0; i--) {
            size_t k = next((uint32_t)i + 1);
            mcp_view_entry_t moved = mixed[i];

            mixed[i] = mixed[k];
            mixed[k] = moved;
        }
        first = shop_index(tools, 30);
        second = shop_index(mixed, 30);
        for (int asked = 0; asked < 10; asked++) {
            const char *text = sentence(5, " ");
            const mcp_view_found_t *a = shop_ask(first, text), *b = shop_ask(second, text);

            assert_string_equal(shop_names(first, a), shop_names(second, b));
            assert_string_equal(shop_words(a->unmatched, a->unmatched_count),
                                shop_words(b->unmatched, b->unmatched_count));
            assert_string_equal(a->suggest != NULL ? a->suggest : "",
                                b->suggest != NULL ? b->suggest : "");
        }
    }
}

static void every_suggestion_has_an_answer(void **state)
{
    size_t told = 0;

    (void)state;
    seed = 23;
    for (int round = 0; round < 60; round++) {
        mcp_view_entry_t tools[30];
        mcp_view_index_t *index;

        for (size_t i = 0; i < 30; i++) {
            tools[i] =
                shop_tool(apr_psprintf(shop_pool, "x%lu__%s", (unsigned long)i, sentence(2, "_")),
                          "x", NULL, NULL, sentence(3, " "));
        }
        index = shop_index(tools, 30);
        for (int asked = 0; asked < 20; asked++) {
            const mcp_view_found_t *found = shop_ask(index, sentence(12, " "));

            if (found->suggest != NULL) {
                told++;
                assert_int_equal(found->hit_count, 0);
                assert_true(shop_ask(index, found->suggest)->hit_count > 0);
            }
        }
    }
    assert_true(told > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_views_are_searched_as_a_slow_search_would),
        cmocka_unit_test(the_order_of_the_tools_does_not_matter),
        cmocka_unit_test(every_suggestion_has_an_answer),
    };

    return cmocka_run_group_tests(tests, shop_open, shop_close);
}
