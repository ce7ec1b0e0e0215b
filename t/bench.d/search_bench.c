/* Asks the product's own search the queries of the tool-search benchmark, for its scorer, and
 * measures it.
 *
 * usage: search_bench [--floor-off] [--retry-suggest] [--limit N] [--time] LEXICON-DIR
 * CATALOG[,CATALOG…] QUERIES
 *
 * Prints a line a query: qid TAB tool-id TAB tool-id … With --retry-suggest an empty answer's
 * suggestion is asked then. With --time it prints, instead, how long the index took to build and
 * the searches took. LEXICON-DIR holds applications.txt and words.txt; "-": none. */
#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <apr_tables.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/view_search.h"

typedef struct options {
    int is_floor_off, is_retried, is_timed;
    size_t limit;
} options_t;

typedef struct catalog {
    apr_array_header_t *entries; /* of mcp_view_entry_t */
    apr_array_header_t *ids;     /* of const char * */
} catalog_t;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "search_bench: %s: %s\n", what, why);
    exit(2);
}

static char *read_file(const char *path, size_t *bytes, apr_pool_t *pool)
{
    FILE *file = fopen(path, "rb");
    char *text;
    long end;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0) {
        die(path, "cannot be read");
        return NULL;
    }
    rewind(file);
    text = apr_palloc(pool, (size_t)end + 1);
    *bytes = fread(text, 1, (size_t)end, file);
    text[*bytes] = '\0';
    fclose(file);
    return text;
}

static const mcp_view_lexicon_t *read_lexicon(const char *dir, apr_pool_t *pool)
{
    size_t names_bytes, words_bytes, line;
    mcp_view_lexicon_t *lexicon = NULL;
    json_t *blob = NULL;
    char *names, *words, *text;

    if (strcmp(dir, "-") == 0) {
        return NULL;
    }
    names = read_file(apr_pstrcat(pool, dir, "/applications.txt", NULL), &names_bytes, pool);
    words = read_file(apr_pstrcat(pool, dir, "/words.txt", NULL), &words_bytes, pool);
    if (mcp_view_lexicon_pack(names, names_bytes, words, words_bytes, &blob, &line) != MCP_OK) {
        die(dir, apr_psprintf(pool, "line %lu is malformed", (unsigned long)line));
    }
    text = json_dumps(blob, JSON_COMPACT);
    json_decref(blob);
    if (text == NULL ||
        mcp_view_lexicon_parse(text, strlen(text), NULL, pool, &lexicon) != MCP_OK) {
        die(dir, "no lexicon");
    }
    free(text);
    return lexicon;
}

/* Calls with each object of a file of one a line. */
static void each_line(const char *path, void (*take)(json_t *row, void *ctx), void *ctx,
                      apr_pool_t *pool)
{
    size_t bytes;
    char *text = read_file(path, &bytes, pool), *at = text;

    while (*at != '\0') {
        size_t length = strcspn(at, "\n");

        if (length > 0) {
            json_t *row = json_loadb(at, length, 0, NULL);

            if (row == NULL) {
                die(path, "a line is no JSON");
            }
            take(row, ctx);
        }
        at += length + (at[length] == '\n');
    }
}

/* The id in front keeps names apart and orders ties as the reference rankers do. The tree lives as
 * long as the program. */
static void take_tool(json_t *row, void *ctx)
{
    catalog_t *catalog = ctx;
    mcp_view_entry_t *entry = apr_array_push(catalog->entries);
    const char *id = json_string_value(json_object_get(row, "id"));

    memset(entry, 0, sizeof(*entry));
    entry->name = apr_pstrcat(catalog->entries->pool, id, "__",
                              json_string_value(json_object_get(row, "name")), NULL);
    entry->label = json_string_value(json_object_get(row, "connector"));
    entry->description = json_string_value(json_object_get(row, "description"));
    entry->schema = json_object_get(row, "inputSchema");
    APR_ARRAY_PUSH(catalog->ids, const char *) = id;
}

static void take_query(json_t *row, void *ctx)
{
    APR_ARRAY_PUSH((apr_array_header_t *)ctx, json_t *) = row;
}

/* The processor's time of this thread: what others run on the machine is not measured. */
static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static mcp_view_found_t *ask(const mcp_view_index_t *index, const options_t *options,
                             const char *text, apr_pool_t *pool)
{
    mcp_view_query_t query = {.text = text,
                              .bytes = strlen(text),
                              .limit = options->limit,
                              .is_floor_off = options->is_floor_off};
    mcp_view_found_t *found = NULL;

    if (mcp_view_search(index, &query, pool, &found) != MCP_OK) {
        die(text, "the search failed");
    }
    if (options->is_retried && found->hit_count == 0 && found->suggest != NULL) {
        return ask(index, &(options_t){.limit = options->limit}, found->suggest, pool);
    }
    return found;
}

static void print_runs(const mcp_view_index_t *index, const catalog_t *catalog,
                       const options_t *options, const apr_array_header_t *queries,
                       apr_pool_t *pool)
{
    for (int i = 0; i < queries->nelts; i++) {
        const json_t *row = APR_ARRAY_IDX(queries, i, json_t *);
        const mcp_view_found_t *found =
            ask(index, options, json_string_value(json_object_get(row, "query")), pool);

        fputs(json_string_value(json_object_get(row, "qid")), stdout);
        for (size_t k = 0; k < found->hit_count; k++) {
            printf("\t%s", APR_ARRAY_IDX(catalog->ids, (int)found->hits[k].tool, const char *));
        }
        putchar('\n');
        apr_pool_clear(pool);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static void print_times(const mcp_view_index_t *index, double build_ms, const options_t *options,
                        const apr_array_header_t *queries, apr_pool_t *pool)
{
    double *times = calloc((size_t)queries->nelts * 5 + 1, sizeof(*times));
    size_t count = 0;
    mcp_view_index_size_t size;

    for (int round = 0; round < 5 && times != NULL; round++) {
        for (int i = 0; i < queries->nelts; i++) {
            const json_t *row = APR_ARRAY_IDX(queries, i, json_t *);
            double start = now_ms();

            ask(index, options, json_string_value(json_object_get(row, "query")), pool);
            times[count++] = now_ms() - start;
            apr_pool_clear(pool);
        }
    }
    mcp_view_index_size(index, &size);
    printf("tools\t%zu\nbuild_ms\t%.1f\nindex_bytes\t%zu\nwords\t%zu\npostings\t%zu\n", size.tools,
           build_ms, size.bytes, size.words, size.postings);
    if (count > 0) {
        qsort(times, count, sizeof(*times), compare_doubles);
        printf("searches\t%zu\np50_ms\t%.4f\np99_ms\t%.4f\nmax_ms\t%.4f\n", count, times[count / 2],
               times[count - 1 - count / 100], times[count - 1]);
    }
    free(times);
}

static int read_options(int argc, char **argv, options_t *options)
{
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--floor-off") == 0) {
            options->is_floor_off = 1;
        } else if (strcmp(argv[at], "--retry-suggest") == 0) {
            options->is_retried = 1;
        } else if (strcmp(argv[at], "--time") == 0) {
            options->is_timed = 1;
        } else if (strcmp(argv[at], "--limit") == 0 && at + 1 < argc) {
            options->limit = (size_t)strtoul(argv[++at], NULL, 10);
        } else {
            die(argv[at], "unknown option");
        }
    }
    return at;
}

int main(int argc, char **argv)
{
    options_t options = {.limit = 10};
    int at = read_options(argc, argv, &options);
    const mcp_view_lexicon_t *lexicon;
    mcp_view_index_t *index = NULL;
    apr_array_header_t *queries;
    apr_pool_t *pool, *each;
    catalog_t catalog;
    double start, build_ms;
    char *paths, *last = NULL;

    if (argc - at != 3) {
        die("usage", "search_bench [--floor-off] [--retry-suggest] [--limit N] [--time] "
                     "LEXICON-DIR CATALOG[,CATALOG] QUERIES");
    }
    apr_initialize();
    apr_pool_create(&pool, NULL);
    apr_pool_create(&each, pool);
    lexicon = read_lexicon(argv[at], pool);
    catalog.entries = apr_array_make(pool, 1024, sizeof(mcp_view_entry_t));
    catalog.ids = apr_array_make(pool, 1024, sizeof(const char *));
    paths = apr_pstrdup(pool, argv[at + 1]);
    for (char *path = apr_strtok(paths, ",", &last); path != NULL;
         path = apr_strtok(NULL, ",", &last)) {
        each_line(path, take_tool, &catalog, pool);
    }
    queries = apr_array_make(pool, 256, sizeof(json_t *));
    each_line(argv[at + 2], take_query, queries, pool);
    start = now_ms();
    if (mcp_view_index_build((const mcp_view_entry_t *)catalog.entries->elts,
                             (size_t)catalog.entries->nelts, lexicon, pool, &index) != MCP_OK) {
        die(argv[at + 1], "no index");
    }
    build_ms = now_ms() - start;
    if (options.is_timed) {
        print_times(index, build_ms, &options, queries, each);
    } else {
        print_runs(index, &catalog, &options, queries, each);
    }
    return 0;
}
