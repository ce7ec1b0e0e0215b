/* The connector files that ship: taken whole, written for models, classified with care; and where the vendor's own description is at hand,
 * every operation is one that the vendor has. */
#include "catalog_fixture.h"

#include <apr_file_info.h>
#include <apr_hash.h>
#include <apr_tables.h>

#include "../../policyd/oas.h"
#include "../../policyd/pd_lint.h"
#include "../../proto/mcp_names.h"

#define MAX_FILE       (16u * 1024 * 1024)
#define SHORTEST_TEXT  40 /* of a description, in bytes */
#define LONGEST_TEXT   300
#define LEAST_SHIPPED  20

/* --- what is let through, and why --------------------------------------------------------- */

typedef struct exception {
    const char *connector;
    const char *operation;
    const char *why;
} exception_t;

/* DELETE that destroys nothing. */
static const exception_t mild_deletes[] = {
    {"alertmanager", "expire_silence", "the silence stays in the list; alerts that it held are only heard again"},
};

/* Reads that are asked for with a method which usually writes. */
static const exception_t reading_posts[] = {
    {"google-calendar", "query_free_busy", "spans and people do not fit into a query"},
    {"grafana", "query_data", "queries of panels are objects"},
    {"hubspot", "search_records", "conditions are objects"},
    {"jira", "count_issues", "a query of any length"},
    {"jira-data-center", "search_issues", "a query of any length"},
    {"mattermost", "search_channels", "the vendor's searches are all POST"},
    {"mattermost", "search_posts", "the vendor's searches are all POST"},
    {"mattermost", "search_users", "the vendor's searches are all POST"},
    {"notion", "query_data_source", "conditions are objects"},
    {"notion", "search", "the vendor's searches are all POST"},
    {"outlook", "find_meeting_times", "people and spans are objects; nothing is booked"},
};

/* What the vendor's description leaves out or says otherwise. */
static const exception_t beyond_the_document[] = {
    {"gitea", "get_pull_request_diff", "the description has the suffix as a parameter of its own"},
    {"zoom", "delete_meeting", "occurrences of a series came after the description"},
    {"zoom", "get_meeting", "occurrences of a series came after the description"},
    {"zoom", "update_meeting", "occurrences of a series came after the description"},
};

static int is_listed(const exception_t *list, size_t count, const char *connector, const char *operation)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (strcmp(list[i].connector, connector) == 0 && strcmp(list[i].operation, operation) == 0) {
            return 1;
        }
    }
    return 0;
}

/* --- files ---------------------------------------------------------------------------------- */

static const char *read_all(const char *path, size_t *ret_bytes)
{
    FILE *in = fopen(path, "rb");
    char *text;

    if (in == NULL) {
        return NULL;
    }
    text = apr_palloc(pool, MAX_FILE + 1);
    *ret_bytes = fread(text, 1, MAX_FILE, in);
    (void)fclose(in);
    text[*ret_bytes] = '\0';
    return text;
}

static const char *source(void)
{
    const char *top = getenv("top_srcdir");

    return top != NULL ? top : ".";
}

static int by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Names of the shipped files without ".json", sorted. */
static const apr_array_header_t *shipped(void)
{
    apr_array_header_t *names = apr_array_make(pool, 64, sizeof(char *));
    apr_dir_t *folder;
    apr_finfo_t entry;

    assert_int_equal(apr_dir_open(&folder, apr_pstrcat(pool, source(), "/conf/connectors", (char *)NULL), pool), APR_SUCCESS);
    while (apr_dir_read(&entry, APR_FINFO_NAME, folder) == APR_SUCCESS) {
        size_t bytes = strlen(entry.name);

        if (bytes > 5 && strcmp(entry.name + bytes - 5, ".json") == 0) {
            APR_ARRAY_PUSH(names, char *) = apr_pstrmemdup(pool, entry.name, bytes - 5);
        }
    }
    (void)apr_dir_close(folder);
    qsort(names->elts, (size_t)names->nelts, sizeof(char *), by_text);
    assert_true(names->nelts >= LEAST_SHIPPED);
    return names;
}

static json_t *file_of(const char *name)
{
    size_t bytes = 0;
    const char *text =
        read_all(apr_pstrcat(pool, source(), "/conf/connectors/", name, ".json", (char *)NULL), &bytes);

    assert_non_null(text);
    return parse(text);
}

typedef void visit_fn(const char *name, const json_t *file);

/* For every shipped file; what a visit allocates is let go after it. */
static void for_each_file(visit_fn *visit)
{
    apr_pool_t *kept = pool;
    const apr_array_header_t *names = shipped();
    int i;

    for (i = 0; i < names->nelts; i++) {
        json_t *file;

        assert_int_equal(apr_pool_create(&pool, kept), APR_SUCCESS);
        file = file_of(APR_ARRAY_IDX(names, i, const char *));
        visit(APR_ARRAY_IDX(names, i, const char *), file);
        json_decref(file);
        apr_pool_destroy(pool);
        pool = kept;
    }
}

/* --- taken whole ------------------------------------------------------------------------------ */

static void take(const char *name, const json_t *file)
{
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    json_t *doc = NULL;
    json_t *again = NULL;
    json_t *doc_again;
    pd_connector_t *connector;

    if (pd_catalog_check(file, &doc, &fault) != PD_OK) {
        fail_msg("%s is refused: %s", name, fault.message);
    }
    connector = compile(doc);
    assert_string_equal(connector->slug, name); /* and so every slug is there once */
    assert_int_equal(pd_catalog_file(doc, &again), PD_OK);
    doc_again = check_good(again);
    if (!json_equal(doc, doc_again)) {
        fail_msg("%s does not come back as it was", name);
    }
    json_decref(doc_again);
    json_decref(again);
    pd_catalog_release(&connector);
    json_decref(doc);
}

static void every_file_is_taken_whole_and_named_by_its_slug(void **state)
{
    (void)state;
    for_each_file(take);
}

/* --- names -------------------------------------------------------------------------------------- */

static void name_tools(const char *name, const json_t *file)
{
    const json_t *operation;
    size_t i;

    json_array_foreach(json_object_get(file, "operations"), i, operation)
    {
        const char *id = mcp_json_str(operation, "id");
        char tool[MCP_MAX_TOOL_NAME + 1];

        assert_int_equal(mcp_name_tool(name, name, id, tool, sizeof(tool)), MCP_OK);
        assert_string_equal(tool, apr_pstrcat(pool, name, "__", id, (char *)NULL));
    }
}

static void no_tool_needs_a_hashed_name(void **state)
{
    (void)state;
    for_each_file(name_tools);
}

/* --- texts ---------------------------------------------------------------------------------------- */

static void judge_arguments(const char *name, const json_t *operation)
{
    const json_t *parameter;
    const json_t *body = json_object_get(operation, "body");
    const json_t *member;
    const char *key;
    size_t i;

    json_array_foreach(json_object_get(operation, "parameters"), i, parameter)
    {
        const char *text = mcp_json_str(parameter, "description");

        if (json_object_get(parameter, "fixed") == NULL && (text == NULL || text[0] == '\0')) {
            fail_msg("%s %s: %s has no description", name, mcp_json_str(operation, "id"), mcp_json_str(parameter, "name"));
        }
    }
    if (body != NULL && json_object_get(json_object_get(body, "schema"), "properties") == NULL &&
        mcp_json_str(body, "description") == NULL) {
        fail_msg("%s %s: the body has no description", name, mcp_json_str(operation, "id"));
    }
    json_object_foreach((json_t *)(uintptr_t)json_object_get(json_object_get(body, "schema"), "properties"), key, member)
    {
        if (mcp_json_str(member, "description") == NULL) {
            fail_msg("%s %s: %s has no description", name, mcp_json_str(operation, "id"), key);
        }
    }
}

static void judge_texts(const char *name, const json_t *file)
{
    apr_hash_t *seen = apr_hash_make(pool);
    const json_t *operation;
    size_t i;

    assert_non_null(mcp_json_str(file, "description"));
    assert_non_null(mcp_json_str(file, "label"));
    json_array_foreach(json_object_get(file, "operations"), i, operation)
    {
        const char *id = mcp_json_str(operation, "id");
        const char *text = mcp_json_str(operation, "description");
        size_t bytes = text == NULL ? 0 : strlen(text);

        if (mcp_json_str(operation, "summary") == NULL || mcp_json_str(operation, "classification") == NULL) {
            if (strcmp(name, "webdav") != 0) { /* shows what may be left out */
                fail_msg("%s %s: needs a summary and a classification", name, id);
            }
        }
        if ((bytes < SHORTEST_TEXT && strcmp(name, "webdav") != 0) || bytes == 0 || bytes > LONGEST_TEXT) {
            fail_msg("%s %s: its description has %lu bytes", name, id, (unsigned long)bytes);
        }
        if (apr_hash_get(seen, text, APR_HASH_KEY_STRING) != NULL) {
            fail_msg("%s %s: its description is that of %s too", name, id,
                     (const char *)apr_hash_get(seen, text, APR_HASH_KEY_STRING));
        }
        apr_hash_set(seen, text, APR_HASH_KEY_STRING, id);
        judge_arguments(name, operation);
    }
}

static void every_operation_and_argument_is_described_once_and_briefly(void **state)
{
    (void)state;
    for_each_file(judge_texts);
}

static void lint(const char *name, const json_t *file)
{
    json_t *findings = json_array();
    const json_t *first;

    pd_lint(file, pool, findings);
    first = json_array_get(findings, 0);
    if (first != NULL && strcmp(name, "webdav") != 0) {
        fail_msg("%s %s: %s: %s", name, mcp_json_str(first, "operation"), mcp_json_str(first, "rule"),
                 mcp_json_str(first, "message"));
    }
    json_decref(findings);
}

static void no_file_gets_a_warning(void **state)
{
    (void)state;
    for_each_file(lint);
}

/* --- classifications ---------------------------------------------------------------------------------- */

static apr_hash_t *used; /* of the exceptions: those that were needed */

static int needs(const exception_t *list, size_t count, const char *name, const char *id)
{
    apr_hash_set(used, apr_pstrcat(apr_hash_pool_get(used), name, " ", id, (char *)NULL), APR_HASH_KEY_STRING, "");
    return is_listed(list, count, name, id);
}

static int is_one_of(const char *text, const char *const *words)
{
    while (*words != NULL && strcmp(*words, text) != 0) {
        words++;
    }
    return *words != NULL;
}

static void judge_classes(const char *name, const json_t *file)
{
    static const char *const reading[] = {"GET", "HEAD", "PROPFIND", NULL};
    static const char *const harmless[] = {"read", NULL};
    static const char *const hard[] = {"destructive", "forbidden", NULL};
    const json_t *operation;
    size_t i;

    json_array_foreach(json_object_get(file, "operations"), i, operation)
    {
        const char *id = mcp_json_str(operation, "id");
        const char *method = mcp_json_str(operation, "method");
        const char *klass = mcp_json_str(operation, "classification");
        int is_reading = is_one_of(method, reading);

        if (klass == NULL) {
            continue; /* by its method */
        }
        if (is_reading != is_one_of(klass, harmless) &&
            (is_reading || !needs(reading_posts, COUNT(reading_posts), name, id))) {
            fail_msg("%s %s: a %s is %s", name, id, method, klass);
        }
        if (strcmp(method, "DELETE") == 0 && !is_one_of(klass, hard) &&
            !needs(mild_deletes, COUNT(mild_deletes), name, id)) {
            fail_msg("%s %s: a DELETE is %s", name, id, klass);
        }
    }
}

static void assert_all_used(const exception_t *list, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (apr_hash_get(used, apr_pstrcat(pool, list[i].connector, " ", list[i].operation, (char *)NULL),
                         APR_HASH_KEY_STRING) == NULL) {
            fail_msg("%s %s needs no exception (%s)", list[i].connector, list[i].operation, list[i].why);
        }
    }
}

static void what_reads_and_what_destroys_is_classified_so(void **state)
{
    (void)state;
    used = apr_hash_make(pool);
    for_each_file(judge_classes);
    assert_all_used(mild_deletes, COUNT(mild_deletes));
    assert_all_used(reading_posts, COUNT(reading_posts));
}

/* --- base URLs -------------------------------------------------------------------------------------------- */

/* Values for variables without a default, and the hosts that must not come of them. */
static const struct {
    const char *variable;
    const char *value;
} samples[] = {{"host", "apps.example.org:8443"}, {"site", "acme"}, {"subdomain", "acme"}, {"instance", "acme"},
               {"domain", "acme.okta.com"}};

static const char *const hostile[] = {"evil.example/", "a@evil.example", "evil.example#", "evil.example?", "a b", "",
                                      "a\\b", "..", "evil.example:1:2", "%65vil.example"};

static json_t *variables_of(const json_t *file, const char *special, const char *value)
{
    json_t *values = json_object();
    const json_t *variable;
    const char *key;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)json_object_get(file, "variables"), key, variable)
    {
        if (special != NULL && strcmp(key, special) == 0) {
            assert_int_equal(json_object_set_new(values, key, json_string(value)), 0);
            continue;
        }
        for (i = 0; i < COUNT(samples) && json_object_get(variable, "default") == NULL; i++) {
            if (strcmp(samples[i].variable, key) == 0) {
                assert_int_equal(json_object_set_new(values, key, json_string(samples[i].value)), 0);
            }
        }
    }
    return values;
}

static const char *base_url_of(const json_t *file, const char *special, const char *value)
{
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    json_t *doc = check_good(file);
    json_t *values = variables_of(file, special, value);
    const char *base = NULL;
    pd_status_t status = pd_catalog_base_url(doc, values, pool, &base, &fault);

    if (status != PD_OK && special == NULL) {
        fail_msg("%s: %s", mcp_json_str(file, "slug"), fault.message);
    }
    json_decref(values);
    json_decref(doc);
    return status == PD_OK ? base : NULL;
}

static void expand(const char *name, const json_t *file)
{
    const char *text = mcp_json_str(file, "base_url");
    size_t head = strcspn(strstr(text, "//") + 2, "/");
    const char *base = base_url_of(file, NULL, NULL);
    const json_t *variable;
    const char *key;
    size_t i;

    assert_non_null(pd_catalog_origin(base, pool));
    if (strncmp(base, "https://", 8) != 0 && strcmp(mcp_json_str(json_object_get(file, "auth"), "type"), "none") != 0) {
        fail_msg("%s sends a credential in the clear", name);
    }
    json_object_foreach((json_t *)(uintptr_t)json_object_get(file, "variables"), key, variable)
    {
        const char *place = strstr(text, apr_pstrcat(pool, "{", key, "}", (char *)NULL));

        assert_non_null(place);
        if (place >= strstr(text, "//") + 2 + head) {
            continue; /* in the path */
        }
        assert_true(json_object_get(variable, "enum") != NULL || json_object_get(variable, "pattern") != NULL);
        for (i = 0; i < COUNT(hostile); i++) {
            if (base_url_of(file, key, hostile[i]) != NULL) {
                fail_msg("%s: {%s} takes \"%s\": %s", name, key, hostile[i], base_url_of(file, key, hostile[i]));
            }
        }
    }
}

static void base_urls_expand_and_hosts_stay_hosts(void **state)
{
    (void)state;
    for_each_file(expand);
}

/* --- the vendors' own descriptions ----------------------------------------------------------------------------- */

static const struct {
    const char *connector;
    const char *document; /* below openapi-corpus */
} documents[] = {{"alertmanager", "alertmanager.yaml"}, {"gitea", "gitea.json"}, {"google-calendar", "google-calendar.json"},
                 {"notion", "notion.json"},             {"slack", "slack-web.json"}, {"zoom", "zoom-v2.json"}};

/* A path with every placeholder as {}, without a slash at its end and without what follows a '?'. */
static const char *shape(const char *path)
{
    char *text = apr_pstrdup(pool, path);
    char *to = text;

    while (*path != '\0' && *path != '?') {
        *to++ = *path;
        path += *path == '{' ? strcspn(path, "}") : 1;
    }
    while (to > text && to[-1] == '/') {
        to--;
    }
    *to = '\0';
    return text;
}

/* Path of an URL, "" for none. */
static const char *path_of(const char *url)
{
    const char *at = url == NULL ? NULL : strstr(url, "//");

    at = at == NULL ? url : strchr(at + 2, '/');
    return at == NULL || strcmp(at, "/") == 0 ? "" : at;
}

static const char *document_base(const json_t *document)
{
    const json_t *server = json_array_get(json_object_get(document, "servers"), 0);
    const char *base = path_of(server != NULL ? mcp_json_str(server, "url") : mcp_json_str(document, "basePath"));
    size_t bytes = strlen(base);

    return bytes > 0 && base[bytes - 1] == '/' ? apr_pstrmemdup(pool, base, bytes - 1) : base;
}

/* A value, its local reference followed once. */
static const json_t *local(const json_t *document, const json_t *value)
{
    const char *reference = mcp_json_str(value, "$ref");
    char *rest;
    char *part;
    char *last = NULL;

    if (reference == NULL || strncmp(reference, "#/", 2) != 0) {
        return value;
    }
    rest = apr_pstrdup(pool, reference + 2);
    value = document;
    for (part = apr_strtok(rest, "/", &last); part != NULL; part = apr_strtok(NULL, "/", &last)) {
        value = json_object_get(value, part);
    }
    return value;
}

/* The parameter of that name in the query or a form, of the operation or its path; or NULL. */
static const json_t *find_parameter(const json_t *document, const json_t *item, const json_t *operation, const char *name)
{
    const json_t *lists[] = {json_object_get(operation, "parameters"), json_object_get(item, "parameters")};
    const json_t *entry;
    size_t i;
    size_t k;

    for (k = 0; k < COUNT(lists); k++) {
        json_array_foreach(lists[k], i, entry)
        {
            const json_t *parameter = local(document, entry);
            const char *in = mcp_json_str(parameter, "in");

            if (in != NULL && (strcmp(in, "query") == 0 || strcmp(in, "formData") == 0) &&
                strcmp(mcp_json_str(parameter, "name"), name) == 0) {
                return parameter;
            }
        }
    }
    return NULL;
}

static int faults; /* all are told before the test fails */

static void compare_operation(const char *name, const json_t *document, const char *base, const json_t *ours)
{
    const char *id = mcp_json_str(ours, "id");
    const char *wanted = shape(apr_pstrcat(pool, base, mcp_json_str(ours, "path"), (char *)NULL));
    const char *method = mcp_json_str(ours, "method");
    char *lower = apr_pstrdup(pool, method);
    const json_t *theirs = NULL;
    const json_t *found = NULL;
    const json_t *item;
    const json_t *parameter;
    const char *path;
    size_t i;

    for (i = 0; lower[i] != '\0'; i++) {
        lower[i] = (char)(lower[i] | 0x20);
    }
    json_object_foreach((json_t *)(uintptr_t)json_object_get(document, "paths"), path, item)
    {
        if (strcmp(shape(apr_pstrcat(pool, document_base(document), path, (char *)NULL)), wanted) == 0 &&
            json_object_get(item, lower) != NULL) {
            theirs = json_object_get(item, lower);
            found = item;
        }
    }
    if (theirs == NULL) {
        if (!needs(beyond_the_document, COUNT(beyond_the_document), name, id)) {
            faults++;
            print_error("%s %s: the vendor has no %s %s\n", name, id, method, wanted);
        }
        return;
    }
    json_array_foreach(json_object_get(ours, "parameters"), i, parameter)
    {
        if (strcmp(mcp_json_str(parameter, "in"), "query") == 0 &&
            find_parameter(document, found, theirs, mcp_json_str(parameter, "name")) == NULL &&
            !needs(beyond_the_document, COUNT(beyond_the_document), name, id)) {
            faults++;
            print_error("%s %s: the vendor has no parameter %s\n", name, id, mcp_json_str(parameter, "name"));
        }
    }
}

static void every_operation_is_one_that_the_vendor_has(void **state)
{
    const char *data = getenv("MCP_TEST_DATA");
    size_t i;

    (void)state;
    faults = 0;
    used = apr_hash_make(pool);
    for (i = 0; i < COUNT(documents); i++) {
        size_t bytes = 0;
        const char *text = data == NULL ? NULL
                                        : read_all(apr_pstrcat(pool, data, "/openapi-corpus/", documents[i].document, (char *)NULL),
                                                   &bytes);
        json_t *file = file_of(documents[i].connector);
        const char *base = path_of(base_url_of(file, NULL, NULL));
        json_t *document = NULL;
        const json_t *operation;
        char why[256];
        size_t k;

        if (text == NULL) {
            json_decref(file);
            skip(); /* the vendors' documents lie elsewhere */
        }
        if (oas_read(text, bytes, &document, why, sizeof(why)) != OAS_OK) {
            fail_msg("%s: %s", documents[i].document, why);
        }
        json_array_foreach(json_object_get(file, "operations"), k, operation)
        {
            compare_operation(documents[i].connector, document, base, operation);
        }
        json_decref(document);
        json_decref(file);
    }
    assert_int_equal(faults, 0);
    assert_all_used(beyond_the_document, COUNT(beyond_the_document));
}

/* ------------------------------------------------------------------------------- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_file_is_taken_whole_and_named_by_its_slug),
        TEST(no_tool_needs_a_hashed_name),
        TEST(every_operation_and_argument_is_described_once_and_briefly),
        TEST(no_file_gets_a_warning),
        TEST(what_reads_and_what_destroys_is_classified_so),
        TEST(base_urls_expand_and_hosts_stay_hosts),
        TEST(every_operation_is_one_that_the_vendor_has),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
