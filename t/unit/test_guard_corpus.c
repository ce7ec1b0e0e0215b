/* The URL guard over the operations of public API descriptions: whoever may call every second
 * operation can really call each of them, for no withheld neighbour's template is in the way of
 * ordinary values. The documents and what they should hold come from MCP_TEST_DATA. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <apr_tables.h>
#include <cmocka.h>
#include <jansson.h>

#include "mcp_template.h"
#include "mcp_urlguard.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define BASE "https://api.example/v1"

static apr_pool_t *pool;
static const char *folder; /* NULL: there is no corpus */
static char *expectations;

typedef struct operation {
    const char *method;
    const char *path;
} operation_t;

static const char *const methods[] = {"get",     "put",  "post",  "delete",
                                      "options", "head", "patch", "trace"};

static void add_operation(apr_array_header_t *operations, const char *method, const char *path)
{
    for (size_t i = 0; i < ROWS(methods); ++i) {
        if (strcmp(methods[i], method) == 0) {
            operation_t *operation = apr_array_push(operations);

            operation->method = method;
            operation->path = path;
        }
    }
}

/* --- reading -------------------------------------------------------------------------- */

static char *read_file(const char *name)
{
    FILE *file = fopen(apr_pstrcat(pool, folder, "/", name, NULL), "rb");
    long bytes;
    char *text;

    if (file == NULL) {
        return NULL;
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    bytes = ftell(file);
    assert_true(bytes >= 0);
    rewind(file);
    text = apr_pcalloc(pool, (size_t)bytes + 1);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    (void)fclose(file);
    return text;
}

static void read_json(char *text, apr_array_header_t *operations)
{
    json_t *document = json_loads(text, 0, NULL);
    const char *path;
    json_t *item;

    assert_non_null(document);
    json_object_foreach(json_object_get(document, "paths"), path, item)
    {
        const char *method;
        json_t *ignored;

        json_object_foreach(item, method, ignored)
        {
            add_operation(operations, apr_pstrdup(pool, method), apr_pstrdup(pool, path));
        }
    }
    json_decref(document);
}

/* The key of a YAML line of a block mapping, unquoted; NULL for another line. */
static char *key_of(char *line)
{
    char *end;

    if (line[0] == '"' || line[0] == '\'') {
        end = strchr(line + 1, line[0]);
        if (end == NULL || end[1] != ':') {
            return NULL;
        }
        *end = '\0';
        return line + 1;
    }
    for (end = strchr(line, ':'); end != NULL; end = strchr(end + 1, ':')) {
        if (end[1] == '\0' || end[1] == ' ' || end[1] == '\r') {
            *end = '\0';
            return line;
        }
    }
    return NULL;
}

/* The operations of a YAML document in block style: the keys two levels below `paths`, told by their
 * indentation. No more of YAML is needed; that nothing was missed, the expectations tell. */
static void read_yaml(char *text, apr_array_header_t *operations)
{
    size_t path_indent = 0;
    size_t method_indent = 0;
    const char *path = NULL;
    int is_in_paths = 0;
    char *last = NULL;

    for (char *line = apr_strtok(text, "\n", &last); line != NULL;
         line = apr_strtok(NULL, "\n", &last)) {
        size_t indent = strspn(line, " ");
        char *key;

        if (line[indent] == '\0' || line[indent] == '#' || line[indent] == '\r') {
            continue;
        }
        if (indent == 0) {
            is_in_paths = strncmp(line, "paths:", 6) == 0;
            path_indent = 0;
            continue;
        }
        if (!is_in_paths) {
            continue;
        }
        if (path_indent == 0) {
            path_indent = indent;
        }
        if (indent == path_indent) {
            key = key_of(line + indent);
            path = key != NULL && key[0] == '/' ? key : NULL;
            method_indent = 0;
            continue;
        }
        method_indent = method_indent == 0 ? indent : method_indent;
        key = indent == method_indent && path != NULL ? key_of(line + indent) : NULL;
        if (key != NULL) {
            add_operation(operations, key, path);
        }
    }
}

/* --- one document --------------------------------------------------------------------------- */

static const char *upper(const char *text)
{
    char *copy = apr_pstrdup(pool, text);

    for (char *at = copy; *at != '\0'; ++at) {
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    }
    return copy;
}

static mcp_guard_t *guard_of(const apr_array_header_t *operations)
{
    json_t *rows = json_array();
    json_t *blob;
    mcp_guard_t *guard = NULL;

    for (int i = 0; i < operations->nelts; ++i) {
        const operation_t *operation = &APR_ARRAY_IDX(operations, i, operation_t);

        assert_int_equal(json_array_append_new(rows, json_pack("{s:o,s:s,s:s,s:[]}", "id",
                                                               json_sprintf("op%d", i), "method",
                                                               upper(operation->method), "path",
                                                               operation->path, "query")),
                         0);
    }
    blob = json_pack("{s:s,s:o}", "connector", "c", "operations", rows);
    assert_int_equal(mcp_urlguard_compile(blob, pool, &guard, NULL), APR_SUCCESS);
    json_decref(blob);
    return guard;
}

/* Values that callers send every day. */
static const char *const values[] = {
    "42", "9f1c2d3e-5a6b-4c7d-8e9f-0a1b2c3d4e5f", "alice", "2024-05-17", "order-1234", "Q3 report"};

/* The operation's definition with a parameter for each placeholder, and arguments for them. */
static json_t *define(const operation_t *operation, const char *value, json_t *args)
{
    json_t *parameters = json_array();

    for (const char *at = strchr(operation->path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        size_t bytes = strcspn(at + 1, "}");
        const char *name = apr_pstrmemdup(pool, at + 1, bytes);

        if (json_object_get(args, name) == NULL) {
            assert_int_equal(json_array_append_new(parameters, json_pack("{s:s,s:s,s:s,s:b}", "arg",
                                                                         name, "name", name, "in",
                                                                         "path", "required", 1)),
                             0);
            assert_int_equal(json_object_set_new(args, name, json_string(value)), 0);
        }
    }
    return json_pack("{s:s,s:s,s:o}", "method", upper(operation->method), "path", operation->path,
                     "parameters", parameters);
}

static apr_status_t call(const mcp_guard_t *guard, const char *verdicts,
                         const operation_t *operation, int index, const char *value,
                         const char **ret_url)
{
    json_t *args = json_object();
    json_t *definition = define(operation, value, args);
    mcp_request_t request = {0};
    apr_status_t status;

    status = mcp_template_expand(definition, BASE, args, NULL, pool, &request, NULL);
    *ret_url = "(not expanded)";
    if (status == APR_SUCCESS) {
        *ret_url = request.url;
        status = mcp_urlguard_check(guard, verdicts, BASE, request.method,
                                    apr_psprintf(pool, "op%d", index), request.url, pool, NULL);
    }
    json_decref(definition);
    json_decref(args);
    return status;
}

/* The template without the names of its placeholders and without a fragment: a plain second opinion
 * on which templates are identical. */
static const char *shape_of(const operation_t *operation)
{
    char *shape = apr_pstrcat(pool, operation->method, " ", operation->path, NULL);
    char *to = shape;
    int is_inside = 0;

    for (const char *at = shape; *at != '\0' && *at != '#'; ++at) {
        is_inside = is_inside && *at != '}';
        if (!is_inside) {
            *to++ = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        }
        is_inside = is_inside || *at == '{';
    }
    *to = '\0';
    return shape;
}

static int has_blocked_twin(const apr_array_header_t *operations, const char *verdicts, int index)
{
    const char *shape = shape_of(&APR_ARRAY_IDX(operations, index, operation_t));

    for (int i = 0; i < operations->nelts; ++i) {
        if (verdicts[i] == MCP_GUARD_BLOCK &&
            strcmp(shape_of(&APR_ARRAY_IDX(operations, i, operation_t)), shape) == 0) {
            return 1;
        }
    }
    return 0;
}

typedef struct tally {
    unsigned documents, operations, called, calls, twins;
} tally_t;

/* Every second operation is the caller's, the others are withheld so. */
static void check_document(const char *name, const apr_array_header_t *operations, int parity,
                           char withheld, tally_t *tally)
{
    mcp_guard_t *guard = guard_of(operations);
    char *verdicts = apr_pcalloc(pool, (size_t)operations->nelts + 1);

    for (int i = 0; i < operations->nelts; ++i) {
        verdicts[i] = i % 2 == parity ? MCP_GUARD_ALLOW : withheld;
    }
    for (int i = parity; i < operations->nelts; i += 2) {
        const operation_t *operation = &APR_ARRAY_IDX(operations, i, operation_t);
        int is_twin = has_blocked_twin(operations, verdicts, i);

        ++tally->called;
        tally->twins += is_twin ? 1 : 0;
        for (size_t k = 0; k < ROWS(values); ++k) {
            const char *url;
            apr_status_t status = call(guard, verdicts, operation, i, values[k], &url);

            ++tally->calls;
            if (status != (is_twin ? MCP_STATUS_REFUSED : APR_SUCCESS)) {
                print_error("%s: %s %s as %s\n", name, operation->method, operation->path, url);
            }
            assert_int_equal(status, is_twin ? MCP_STATUS_REFUSED : APR_SUCCESS);
        }
    }
}

/* --- all documents ------------------------------------------------------------------------------ */

/* One line of the expectations: file, format, version, title, number of operations, … */
static void run_line(char *line, int parity, char withheld, tally_t *tally)
{
    apr_pool_t *outer = pool;
    const char *fields[5];
    char *last = NULL;
    apr_array_header_t *operations;
    char *text;

    assert_int_equal(apr_pool_create(&pool, outer), APR_SUCCESS);
    line = apr_pstrdup(pool, line);
    for (size_t i = 0; i < ROWS(fields); ++i) {
        fields[i] = apr_strtok(i == 0 ? line : NULL, "\t", &last);
        assert_non_null(fields[i]);
    }
    operations = apr_array_make(pool, 64, sizeof(operation_t));
    text = read_file(fields[0]);
    assert_non_null(text);
    if (strcmp(fields[1], "json") == 0) {
        read_json(text, operations);
    } else {
        read_yaml(text, operations);
    }
    if (operations->nelts != (int)strtol(fields[4], NULL, 10)) {
        print_error("%s: %d operations, not %s\n", fields[0], operations->nelts, fields[4]);
    }
    assert_int_equal(operations->nelts, strtol(fields[4], NULL, 10));
    ++tally->documents;
    tally->operations += (unsigned)operations->nelts;
    check_document(fields[0], operations, parity, withheld, tally);
    apr_pool_destroy(pool);
    pool = outer;
}

static tally_t run_corpus(int parity, char withheld)
{
    tally_t tally = {0, 0, 0, 0, 0};
    char *last = NULL;
    char *lines;

    if (expectations == NULL) {
        print_message("no openapi-corpus under MCP_TEST_DATA\n");
        skip();
    }
    lines = apr_pstrdup(pool, expectations);
    assert_non_null(apr_strtok(lines, "\n", &last)); /* the names of the columns */
    for (char *line = apr_strtok(NULL, "\n", &last); line != NULL;
         line = apr_strtok(NULL, "\n", &last)) {
        run_line(line, parity, withheld, &tally);
    }
    print_message("%u documents, %u operations; of %u called, %u have a blocked twin (%u calls)\n",
                  tally.documents, tally.operations, tally.called, tally.twins, tally.calls);
    assert_true(tally.documents > 0);
    assert_true(tally.operations > 0);
    return tally;
}

static void no_denied_neighbour_shadows_an_allowed_operation(void **state)
{
    tally_t tally = run_corpus(0, MCP_GUARD_DENY);

    (void)state;
    assert_int_equal(tally.twins, 0);
}

static void nor_do_the_others_when_they_change_places(void **state)
{
    tally_t tally = run_corpus(1, MCP_GUARD_DENY);

    (void)state;
    assert_int_equal(tally.twins, 0);
}

/* Counted, so that a reader sees how rare they are. */
static void only_identical_templates_refuse_under_a_block(void **state)
{
    (void)state;
    (void)run_corpus(0, MCP_GUARD_BLOCK);
}

static void nor_anything_else_when_they_change_places(void **state)
{
    (void)state;
    (void)run_corpus(1, MCP_GUARD_BLOCK);
}

static int start(void **state)
{
    const char *data = getenv("MCP_TEST_DATA");

    (void)state;
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return -1;
    }
    folder = data != NULL ? apr_pstrcat(pool, data, "/openapi-corpus", NULL) : NULL;
    expectations = folder != NULL ? read_file("expectations.tsv") : NULL;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_denied_neighbour_shadows_an_allowed_operation),
        cmocka_unit_test(nor_do_the_others_when_they_change_places),
        cmocka_unit_test(only_identical_templates_refuse_under_a_block),
        cmocka_unit_test(nor_anything_else_when_they_change_places),
    };

    if (apr_initialize() != APR_SUCCESS) {
        return 1;
    }
    return cmocka_run_group_tests(tests, start, stop);
}
