/* Tests of proto/mcp_schema*.c: the public JSON Schema suite, draft-07, limits, messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <apr_general.h>
#include <jansson.h>

#include "mcp_schema.h"

static apr_pool_t *pool;

static int start(void **state)
{
    (void)state;
    return apr_initialize() == APR_SUCCESS && apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

/* Processor time, so that a busy machine fails no test. */
static double seconds(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Seconds that bounded work may take; MCP_TEST_PATIENCE multiplies them, for runs under
 * instruments that slow everything down. */
static double patience(void)
{
    const char *factor = getenv("MCP_TEST_PATIENCE");

    return factor == NULL ? 1.0 : strtod(factor, NULL);
}

static json_t *parsed(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
                              &error);

    if (json == NULL) {
        fail_msg("test data: %s: %s", error.text, text);
    }
    return json;
}

static mcp_schema_t *compiled(const char *text)
{
    mcp_schema_error_t err;
    mcp_schema_t *schema = NULL;
    json_t *json = parsed(text);
    mcp_wire_status_t status = mcp_schema_compile(json, pool, &schema, &err);

    json_decref(json); /* the schema needs it no more */
    if (status != MCP_OK) {
        fail_msg("refused (%d) at %s: %s: %s: %s", (int)status, err.path, err.rule, err.message,
                 text);
    }
    return schema;
}

static mcp_wire_status_t judge(const mcp_schema_t *schema, const char *instance,
                               mcp_schema_error_t *err)
{
    json_t *json = parsed(instance);
    mcp_wire_status_t status = mcp_schema_validate(schema, json, err);

    json_decref(json);
    return status;
}

/* --- the public suite ------------------------------------------------------------------- */

/* Groups that must be refused when compiled, each with the rule that refuses it. */
static const struct refusal {
    const char *file;
    const char *group; /* NULL: each of the file */
    const char *rule;
    const char *reason;
} refusals[] = {
    {"refRemote.json", NULL, "$ref", "needs documents from elsewhere"},
    {"vocabulary.json", NULL, "$schema", "a metaschema from elsewhere"},
    {"ref.json", "remote ref, containing refs itself", "$ref", "the metaschema"},
    {"defs.json", "validate definition against metaschema", "$ref", "the metaschema"},
    {"dynamicRef.json", "strict-tree schema, guards against misspelled properties", "$ref",
     "tree.json is elsewhere"},
    {"dynamicRef.json", "tests for implementation dynamic anchor and reference link", "$ref",
     "extendible-dynamic-ref.json is elsewhere"},
    {"dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $defs first", "$ref",
     "extendible-dynamic-ref.json is elsewhere"},
    {"dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first", "$ref",
     "extendible-dynamic-ref.json is elsewhere"},
    {"dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor", "$ref",
     "detached-dynamicref.json is elsewhere"},
    {"unevaluatedItems.json", NULL, NULL, NULL}, /* none: keeps the lookup honest */
    {"optional/cross-draft.json", NULL, "$ref", "needs documents from elsewhere"},
    {"optional/format-assertion.json", NULL, "$schema", "a metaschema from elsewhere"},
};

typedef struct tally {
    size_t cases;
    size_t refused;
    size_t failures;
    bool is_used[sizeof(refusals) / sizeof(refusals[0])];
} tally_t;

static const struct refusal *find_refusal(const char *file, const char *group, tally_t *tally)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (refusals[i].rule != NULL && strcmp(refusals[i].file, file) == 0 &&
            (refusals[i].group == NULL || strcmp(refusals[i].group, group) == 0)) {
            tally->is_used[i] = true;
            return &refusals[i];
        }
    }
    return NULL;
}

static void run_group(const char *file, json_t *group, tally_t *tally)
{
    const char *name = json_string_value(json_object_get(group, "description"));
    const struct refusal *refusal = find_refusal(file, name, tally);
    mcp_schema_t *schema = NULL;
    mcp_schema_error_t err;
    mcp_wire_status_t status;
    size_t i;
    json_t *test;

    status = mcp_schema_compile(json_object_get(group, "schema"), pool, &schema, &err);
    if (refusal != NULL) {
        tally->refused++;
        if (status != MCP_E_FIELD || strcmp(err.rule, refusal->rule) != 0) {
            tally->failures++;
            print_message("# %s: %s: not refused for %s\n", file, name, refusal->rule);
        }
        return;
    }
    if (status != MCP_OK) {
        tally->failures++;
        print_message("# %s: %s: refused at %s: %s: %s\n", file, name, err.path, err.rule,
                      err.message);
        return;
    }
    json_array_foreach(json_object_get(group, "tests"), i, test)
    {
        bool is_valid = json_is_true(json_object_get(test, "valid"));

        tally->cases++;
        status = mcp_schema_validate(schema, json_object_get(test, "data"), &err);
        if (status != (is_valid ? MCP_OK : MCP_E_FIELD)) {
            tally->failures++;
            print_message("# %s: %s: %s: %d\n", file, name,
                          json_string_value(json_object_get(test, "description")), (int)status);
        }
    }
}

static const char *suite_folder(void)
{
    static char folder[1024];
    const char *data = getenv("MCP_TEST_DATA");

    (void)snprintf(folder, sizeof(folder), "%s/suites/json-schema-draft2020-12",
                   data == NULL ? "../shared" : data);
    return folder;
}

static void run_file(const char *file, size_t flags, tally_t *tally)
{
    char path[2048];
    json_error_t error;
    json_t *groups;
    size_t i;
    json_t *group;

    (void)snprintf(path, sizeof(path), "%s/%s", suite_folder(), file);
    groups = json_load_file(path, flags | JSON_ALLOW_NUL, &error);
    if (groups == NULL) {
        fail_msg("%s: %s", path, error.text);
    }
    json_array_foreach(groups, i, group)
    {
        run_group(file, group, tally);
    }
    json_decref(groups);
}

static size_t run_folder(const char *below, tally_t *tally)
{
    char path[2048];
    DIR *folder;
    const struct dirent *entry;
    size_t files = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", suite_folder(), below);
    folder = opendir(path);
    if (folder == NULL) {
        print_message("# the JSON Schema suite is not at %s\n", path);
        skip();
    }
    for (entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const char *end = strrchr(entry->d_name, '.');
        char file[512];
        /* Integers beyond 64 bits are refused where JSON is read; here they become reals. */
        size_t flags = strcmp(entry->d_name, "bignum.json") == 0 ? JSON_DECODE_INT_AS_REAL : 0;

        if (end == NULL || strcmp(end, ".json") != 0) {
            continue;
        }
        (void)snprintf(file, sizeof(file), "%s%s", below, entry->d_name);
        run_file(file, flags, tally);
        files++;
    }
    (void)closedir(folder); /* only read */
    return files;
}

static void check_tally(const tally_t *tally, const char *name, bool is_optional)
{
    print_message("# %s: %zu cases, %zu groups refused\n", name, tally->cases, tally->refused);
    assert_int_equal(tally->failures, 0);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (refusals[i].rule != NULL &&
            (strncmp(refusals[i].file, "optional/", 9) == 0) == is_optional) {
            assert_true(tally->is_used[i]); /* no stale entry in the table */
        }
    }
}

static void the_public_suite_passes(void **state)
{
    tally_t tally;
    size_t files;

    (void)state;
    memset(&tally, 0, sizeof(tally));
    files = run_folder("", &tally);
    assert_true(files >= 46);
    assert_true(tally.cases > 1200);
    check_tally(&tally, "required", false);
}

static void the_optional_suite_passes(void **state)
{
    tally_t tally;
    size_t files;

    (void)state;
    memset(&tally, 0, sizeof(tally));
    files = run_folder("optional/", &tally);
    assert_true(files >= 13);
    check_tally(&tally, "optional", true);
}

/* `format` is an annotation: whatever the file says, all instances are valid. */
static void formats_never_fail(void **state)
{
    char path[2048];
    json_error_t error;
    json_t *groups;
    size_t i;
    json_t *group;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/optional/format/date-time.json", suite_folder());
    groups = json_load_file(path, 0, &error);
    if (groups == NULL) {
        print_message("# the JSON Schema suite is not at %s\n", path);
        skip();
    }
    json_array_foreach(groups, i, group)
    {
        mcp_schema_t *schema;
        size_t k;
        json_t *test;

        assert_int_equal(
            mcp_schema_compile(json_object_get(group, "schema"), pool, &schema, NULL), MCP_OK);
        json_array_foreach(json_object_get(group, "tests"), k, test)
        {
            assert_int_equal(mcp_schema_validate(schema, json_object_get(test, "data"), NULL),
                             MCP_OK);
        }
    }
    json_decref(groups);
}

static size_t compile_tools(const char *path)
{
    json_error_t error;
    json_t *dump = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    size_t i;
    json_t *tool;

    assert_non_null(dump);
    json_array_foreach(json_object_get(dump, "tools"), i, tool)
    {
        static const char *const members[] = {"inputSchema", "outputSchema"};

        for (size_t k = 0; k < 2; k++) {
            const json_t *json = json_object_get(tool, members[k]);
            mcp_schema_error_t err;
            mcp_schema_t *schema;

            if (json_is_object(json) && mcp_schema_compile(json, pool, &schema, &err) != MCP_OK) {
                fail_msg("%s: %s: %s at %s: %s: %s", path,
                         json_string_value(json_object_get(tool, "name")), members[k], err.path,
                         err.rule, err.message);
            }
        }
    }
    i = json_array_size(json_object_get(dump, "tools"));
    json_decref(dump);
    return i;
}

static void schemas_of_real_tools_compile(void **state)
{
    const char *data = getenv("MCP_TEST_DATA");
    char folder_name[1024];
    DIR *folder;
    const struct dirent *entry;
    size_t tools = 0;

    (void)state;
    (void)snprintf(folder_name, sizeof(folder_name), "%s/tool-dumps",
                   data == NULL ? "../shared" : data);
    folder = opendir(folder_name);
    if (folder == NULL) {
        print_message("# no tool dumps at %s\n", folder_name);
        skip();
    }
    for (entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const char *end = strrchr(entry->d_name, '.');
        char path[2048];

        if (end != NULL && strcmp(end, ".json") == 0) {
            (void)snprintf(path, sizeof(path), "%s/%s", folder_name, entry->d_name);
            tools += compile_tools(path);
        }
    }
    (void)closedir(folder); /* only read */
    assert_true(tools > 500);
}

/* --- both dialects ------------------------------------------------------------------------ */

typedef struct case_row {
    const char *schema;
    const char *valid;   /* or NULL */
    const char *invalid; /* or NULL */
} case_row_t;

static void run_rows(const case_row_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const mcp_schema_t *schema = compiled(rows[i].schema);
        mcp_schema_error_t err;

        if (rows[i].valid != NULL && judge(schema, rows[i].valid, &err) != MCP_OK) {
            fail_msg("%s refuses %s: %s: %s", rows[i].schema, rows[i].valid, err.rule,
                     err.message);
        }
        if (rows[i].invalid != NULL && judge(schema, rows[i].invalid, &err) != MCP_E_FIELD) {
            fail_msg("%s takes %s", rows[i].schema, rows[i].invalid);
        }
    }
}

#define OLD "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","

static void draft_07_is_understood(void **state)
{
    static const case_row_t rows[] = {
        {OLD "\"items\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}", "[1,\"a\",null]",
         "[1,2]"},
        {OLD "\"items\":[{\"type\":\"integer\"}],\"additionalItems\":{\"type\":\"string\"}}",
         "[1,\"a\"]", "[1,2]"},
        {OLD "\"items\":[{}],\"additionalItems\":false}", "[1]", "[1,2]"},
        {OLD "\"items\":[],\"additionalItems\":false}", "[]", "[1]"},
        {OLD "\"items\":{\"type\":\"integer\"},\"additionalItems\":false}", "[1,2]", "[\"a\"]"},
        {OLD "\"additionalItems\":false}", "[1,2]", NULL},
        {OLD "\"dependencies\":{\"a\":[\"b\"]}}", "{\"a\":1,\"b\":2}", "{\"a\":1}"},
        {OLD "\"dependencies\":{\"a\":{\"required\":[\"b\"]}}}", "{\"b\":1}", "{\"a\":1}"},
        {OLD "\"dependencies\":{\"a\":false}}", "{}", "{\"a\":1}"},
        {OLD "\"definitions\":{\"n\":{\"type\":\"integer\"}},"
             "\"properties\":{\"a\":{\"$ref\":\"#/definitions/n\",\"maximum\":1}}}",
         "{\"a\":5}", "{\"a\":\"x\"}"}, /* what is beside $ref is ignored */
        {OLD "\"$ref\":\"#/definitions/o\",\"type\":\"string\","
             "\"definitions\":{\"o\":{\"required\":[\"a\"]}}}",
         "{\"a\":1}", "{}"},
        {OLD "\"$id\":\"http://x.test/root\",\"definitions\":{\"n\":{\"$id\":\"#num\","
             "\"type\":\"integer\"}},\"items\":{\"$ref\":\"#num\"}}",
         "[1]", "[\"a\"]"},
        {OLD "\"$id\":\"http://x.test/a/root.json\",\"definitions\":{\"n\":{\"$id\":\"n.json\","
             "\"type\":\"integer\"}},\"items\":{\"$ref\":\"http://x.test/a/n.json\"}}",
         "[1]", "[\"a\"]"},
        {OLD "\"definitions\":{\"n\":{\"$ref\":\"#/definitions/m\",\"$id\":\"http://y.test/\"},"
             "\"m\":{\"type\":\"integer\"}},\"items\":{\"$ref\":\"#/definitions/n\"}}",
         "[1]", "[\"a\"]"}, /* an $id beside $ref changes no base */
        {OLD "\"contains\":{\"type\":\"integer\"},\"minContains\":0}", "[1]", "[]"},
        {OLD "\"prefixItems\":[false],\"unevaluatedProperties\":false,\"dependentRequired\":"
             "{\"a\":[\"b\"]}}",
         "{\"a\":1}", NULL}, /* words of later drafts */
        {OLD "\"if\":{\"type\":\"integer\"},\"then\":{\"minimum\":1},\"else\":{\"const\":\"a\"}}",
         "\"a\"", "0"},
        {OLD "\"type\":\"integer\"}", "1.0", "1.5"},
        {OLD "\"properties\":{\"a\":{\"$id\":\"http://x.test/new\",\"$schema\":"
             "\"https://json-schema.org/draft/2020-12/schema\",\"prefixItems\":[{\"type\":"
             "\"integer\"}]}}}",
         "{\"a\":[1]}", "{\"a\":[\"x\"]}"}, /* a resource of its own dialect */
        {"{\"$schema\":\"https://json-schema.org/draft-07/schema\",\"items\":[false]}", "[]",
         "[1]"},
    };

    (void)state;
    run_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void numbers_are_compared_as_numbers(void **state)
{
    static const case_row_t rows[] = {
        {"{\"multipleOf\":0.01}", "19.99", "19.999"},
        {"{\"multipleOf\":0.01}", "4.35", "4.351"},
        {"{\"multipleOf\":0.1}", "0.3", "0.35"},
        {"{\"multipleOf\":0.01}", "1e20", "1e-3"},
        {"{\"multipleOf\":1e-8}", "12391239123", "1e-9"},
        {"{\"multipleOf\":0.3}", "0.9", "1"},
        {"{\"multipleOf\":3}", "-9.0", "-10"},
        {"{\"multipleOf\":2}", "-9223372036854775808", "-9223372036854775807"},
        {"{\"multipleOf\":9223372036854775807}", "9223372036854775807", "9223372036854775806"},
        {"{\"multipleOf\":0.5}", "1e308", "1e-308"},
        {"{\"multipleOf\":7e300}", "14e300", "15e300"},
        {"{\"multipleOf\":0.123456789}", "0", "1e308"},
        {"{\"type\":\"integer\"}", "1e3", "1.00001"},
        {"{\"type\":\"integer\"}", "1e300", "1e-300"},
        {"{\"const\":1}", "1.0", "1.0000001"},
        {"{\"enum\":[1.0]}", "1", "true"},
        {"{\"const\":[{\"a\":1.0}]}", "[{\"a\":1}]", "[{\"a\":true}]"},
        {"{\"const\":9007199254740993}", "9007199254740993", "9007199254740992.0"},
        {"{\"maximum\":9007199254740993}", "9007199254740992.0", "9007199254740994.0"},
        {"{\"maximum\":9223372036854775807}", "9223372036854775807", "9223372036854775808.0"},
        {"{\"minimum\":-9223372036854775808}", "-9223372036854775808.0",
         "-9223372036854777856.0"},
        {"{\"exclusiveMaximum\":1.5}", "1", "1.5"},
        {"{\"exclusiveMinimum\":-1.5}", "-1", "-2"},
        {"{\"minimum\":1.5}", "2", "1"},
        {"{\"uniqueItems\":true}", "[1,1.5,\"1\",true,[1],{\"a\":1}]", "[2,1,1.0]"},
        {"{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},{\"a\":2,\"b\":1}]",
         "[{\"a\":1,\"b\":2},{\"b\":2.0,\"a\":1}]"},
        {"{\"uniqueItems\":true}", "[0,false,\"\",null,[],{}]", "[0,-0.0]"},
        {"{\"uniqueItems\":true}", "[[1,2],[2,1]]", "[[[]],[[]]]"},
        {"{\"uniqueItems\":false}", "[1,1]", NULL},
        {"{\"minLength\":2.0,\"maxLength\":1e30}", "\"ab\"", "\"a\""},
        {"{\"maxLength\":2}", "\"\\ud83d\\udc32\\u00e9\"", "\"abc\""},
    };

    (void)state;
    run_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void references_stay_in_the_document(void **state)
{
    static const case_row_t rows[] = {
        {"{\"$ref\":\"#/components/schemas/A%20b\",\"components\":{\"schemas\":{\"A b\":"
         "{\"type\":\"integer\",\"allOf\":[{\"$ref\":\"#/components/schemas/c\"}]},"
         "\"c\":{\"minimum\":3}}}}",
         "4", "2"}, /* where no keyword of ours has schemas */
        {"{\"$defs\":{\"a\":{\"$id\":\"a\",\"$defs\":{\"x\":{\"$anchor\":\"x\",\"const\":1}}}},"
         "\"$ref\":\"a#x\"}",
         "1", "2"},
        {"{\"$id\":\"http://h.test/a/b/c?q=1\",\"$ref\":\"../d/./e\",\"$defs\":{\"x\":{\"$id\":"
         "\"http://h.test/a/d/e\",\"const\":1}}}",
         "1", "2"},
        {"{\"$id\":\"http://h.test/a\",\"$ref\":\"//o.test/b\",\"$defs\":{\"x\":{\"$id\":"
         "\"http://o.test/b\",\"const\":1}}}",
         "1", "2"},
        {"{\"$id\":\"http://h.test\",\"$ref\":\"?x\",\"$defs\":{\"x\":{\"$id\":"
         "\"http://h.test?x\",\"const\":1}}}",
         "1", "2"},
        {"{\"$id\":\"http://h.test\",\"$ref\":\"b\",\"$defs\":{\"x\":{\"$id\":"
         "\"http://h.test/b\",\"const\":1}}}",
         "1", "2"},
        {"{\"$id\":\"http://h.test/../../x/..\",\"$ref\":\"http://h.test/#/$defs/x\",\"$defs\":"
         "{\"x\":{\"const\":1}}}",
         "1", "2"},
        {"{\"$defs\":{\"a\":{\"$id\":\"http://t.test/a\"},\"b\":{\"$id\":\"http://t.test/a\"}}}",
         "1", NULL}, /* twice the same, and nobody asks for it */
        {"{\"$id\":\"http://t.test/#\",\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"const\":1}}}",
         "1", "2"},
        {"true", "1", NULL},
        {"false", NULL, "1"},
        {"{}", "{}", NULL},
    };

    (void)state;
    run_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* --- refused schemas ------------------------------------------------------------------------ */

static void bad_schemas_are_refused_with_reason(void **state)
{
    static const struct {
        const char *schema;
        const char *path;
        const char *rule;
        const char *message; /* its beginning */
    } rows[] = {
        {"1", "", "schema", "must be an object or a boolean"},
        {"{\"properties\":{\"a\":1}}", "/properties/a", "schema", "must be an object"},
        {"{\"properties\":[]}", "/properties", "properties", "must be an object"},
        {"{\"allOf\":[]}", "/allOf", "allOf", "must be an array of at least one"},
        {"{\"anyOf\":{}}", "/anyOf", "anyOf", "must be an array of at least one"},
        {"{\"oneOf\":[1]}", "/oneOf/0", "schema", "must be an object"},
        {"{\"not\":[]}", "/not", "schema", "must be an object"},
        {"{\"type\":\"strng\"}", "/type", "type", "must be a type"},
        {"{\"type\":[]}", "/type", "type", "must be a type"},
        {"{\"type\":[\"string\",1]}", "/type", "type", "must be a type"},
        {"{\"required\":true}", "/required", "required", "must be an array of property names"},
        {"{\"required\":[1]}", "/required", "required", "must be an array of property names"},
        {"{\"required\":[\"a\\u0000b\"]}", "/required", "required", "must be an array"},
        {"{\"enum\":{}}", "/enum", "enum", "must be an array"},
        {"{\"minimum\":\"1\"}", "/minimum", "minimum", "must be a number"},
        {"{\"exclusiveMinimum\":true}", "/exclusiveMinimum", "exclusiveMinimum",
         "must be a number"},
        {"{\"multipleOf\":0}", "/multipleOf", "multipleOf", "must be a number above 0"},
        {"{\"multipleOf\":-1}", "/multipleOf", "multipleOf", "must be a number above 0"},
        {"{\"maxLength\":-1}", "/maxLength", "maxLength", "must be a non-negative integer"},
        {"{\"maxItems\":1.5}", "/maxItems", "maxItems", "must be a non-negative integer"},
        {"{\"contains\":{},\"minContains\":-1}", "/minContains", "minContains",
         "must be a non-negative integer"},
        {"{\"uniqueItems\":1}", "/uniqueItems", "uniqueItems", "must be true or false"},
        {"{\"pattern\":\"(\"}", "/pattern", "pattern", "not a regular expression"},
        {"{\"pattern\":1}", "/pattern", "pattern", "must be a string"},
        {"{\"patternProperties\":{\"a/[\":{}}}", "/patternProperties/a~1[", "patternProperties",
         "not a regular expression that is supported: \"a/[\""},
        {"{\"items\":[{}]}", "/items", "schema", "must be an object"},
        {"{\"dependentRequired\":{\"a\":{}}}", "/dependentRequired/a", "dependentRequired",
         "must be an array of property names"},
        {"{\"$ref\":1}", "/$ref", "$ref", "must be a string"},
        {"{\"items\":{\"$ref\":\"http://else.test/x.json\"}}", "/items/$ref", "$ref",
         "external references are not allowed: \"http://else.test/x.json\""},
        {"{\"$ref\":\"other.json#/a\"}", "/$ref", "$ref", "external references are not allowed"},
        {"{\"$ref\":\"file:///etc/passwd\"}", "/$ref", "$ref", "external references"},
        {"{\"$dynamicRef\":\"x#y\"}", "/$dynamicRef", "$dynamicRef", "external references"},
        {"{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}", "/$ref", "$ref",
         "external references"},
        {"{\"$ref\":\"#/$defs/none\"}", "/$ref", "$ref", "reference to nothing"},
        {"{\"$ref\":\"#/allOf/01\",\"allOf\":[{},{}]}", "/$ref", "$ref", "reference to nothing"},
        {"{\"$ref\":\"#/allOf/2\",\"allOf\":[{},{}]}", "/$ref", "$ref", "reference to nothing"},
        {"{\"$ref\":\"#/allOf/a\",\"allOf\":[{},{}]}", "/$ref", "$ref", "reference to nothing"},
        {"{\"$ref\":\"#/a~2\",\"a~2\":{}}", "/$ref", "$ref", "reference to nothing"},
        {"{\"$ref\":\"#none\"}", "/$ref", "$ref", "reference to nothing"},
        {"{\"$ref\":\"#/%zz\"}", "/$ref", "$ref", "malformed reference"},
        {"{\"$ref\":\"#/a%00b\"}", "/$ref", "$ref", "malformed reference"},
        {"{\"$ref\":\"#/title\",\"title\":\"x\"}", "/title", "schema", "must be an object"},
        {"{\"$ref\":\"#\"}", "/$ref", "$ref", "reference leads back to itself"},
        {"{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}}}",
         "/$defs/a/$ref", "$ref", "reference leads back to itself"},
        {"{\"$ref\":\"http://t.test/a\",\"$defs\":{\"a\":{\"$id\":\"http://t.test/a\"},"
         "\"b\":{\"$id\":\"http://t.test/a\"}}}",
         "/$ref", "$ref", "reference to an identifier that stands twice"},
        {"{\"$ref\":\"#a\",\"$defs\":{\"a\":{\"$anchor\":\"a\"},\"b\":{\"$anchor\":\"a\"}}}",
         "/$ref", "$ref", "reference to an anchor that stands twice"},
        {"{\"$id\":1}", "", "$id", "must be a string"},
        {"{\"$id\":\"http://t.test/#a\"}", "", "$id", "must not have a fragment"},
        {"{\"$anchor\":\"1a\"}", "", "$anchor", "must be a plain name"},
        {"{\"$dynamicAnchor\":1}", "", "$dynamicAnchor", "must be a plain name"},
        {"{\"$schema\":1}", "", "$schema", "must be a string"},
        {"{\"$schema\":\"http://json-schema.org/draft-04/schema#\"}", "", "$schema",
         "unknown dialect: \"http://json-schema.org/draft-04/schema#\""},
        {"{\"properties\":{\"a\":{\"$id\":\"x\",\"$schema\":\"y\"}}}", "/properties/a", "$schema",
         "unknown dialect: \"y\""},
        {OLD "\"items\":[1]}", "/items/0", "schema", "must be an object"},
        {OLD "\"dependencies\":{\"a\":1}}", "/dependencies/a", "schema", "must be an object"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *json = parsed(rows[i].schema);
        mcp_schema_t *schema = NULL;
        mcp_schema_error_t err;
        mcp_wire_status_t status = mcp_schema_compile(json, pool, &schema, &err);

        json_decref(json);
        if (status != MCP_E_FIELD || schema != NULL) {
            fail_msg("not refused: %s", rows[i].schema);
        }
        if (strcmp(err.path, rows[i].path) != 0 || strcmp(err.rule, rows[i].rule) != 0 ||
            strncmp(err.message, rows[i].message, strlen(rows[i].message)) != 0) {
            fail_msg("%s: refused at \"%s\": %s: %s", rows[i].schema, err.path, err.rule,
                     err.message);
        }
    }
}

/* --- messages --------------------------------------------------------------------------------- */

static void messages_say_where_which_and_what(void **state)
{
    static const struct {
        const char *schema;
        const char *instance;
        const char *path;
        const char *rule;
        const char *message;
    } rows[] = {
        {"{\"required\":[\"path\"]}", "{}", "", "required", "missing property \"path\""},
        {"{\"required\":[\"a\",\"b\",\"c\"]}", "{\"b\":1}", "", "required",
         "missing properties \"a\", \"c\""},
        {"{\"required\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\","
         "\"12\"]}",
         "{}", "", "required",
         "missing properties \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\", "
         "\"10\" and 2 more"},
        {"{\"required\":[\"a\\n\\\"b\\\\\"]}", "{}", "", "required",
         "missing property \"a\\u000a\\\"b\\\\\""},
        {"{\"properties\":{\"n\":{\"type\":\"integer\"}}}", "{\"n\":\"secret\"}", "/n", "type",
         "expected integer, got string"},
        {"{\"type\":[\"string\",\"null\"]}", "1", "", "type",
         "expected null or string, got integer"},
        {"{\"type\":\"integer\"}", "1.5", "", "type", "expected integer, got number"},
        {"{\"type\":\"object\"}", "true", "", "type", "expected object, got boolean"},
        {"{\"enum\":[\"a\",\"b\"]}", "\"secret\"", "", "enum", "must be one of: \"a\", \"b\""},
        {"{\"enum\":[1,2,3,4,5,6,7,8,9,10,11,0.1]}", "\"secret\"", "", "enum",
         "must be one of: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"},
        {"{\"enum\":[]}", "1", "", "enum", "no value is allowed"},
        {"{\"const\":{\"a\":[0.1,null]}}", "1", "", "const", "must be {\"a\":[0.1,null]}"},
        {"{\"minimum\":0.1}", "0", "", "minimum", "must be at least 0.1"},
        {"{\"maximum\":10}", "11", "", "maximum", "must be at most 10"},
        {"{\"exclusiveMinimum\":0}", "0", "", "exclusiveMinimum", "must be greater than 0"},
        {"{\"exclusiveMaximum\":1e3}", "1000", "", "exclusiveMaximum", "must be less than 1000"},
        {"{\"multipleOf\":0.01}", "0.001", "", "multipleOf", "must be a multiple of 0.01"},
        {"{\"minLength\":1}", "\"\"", "", "minLength", "must have at least 1 character"},
        {"{\"maxLength\":2}", "\"secret\"", "", "maxLength", "must have at most 2 characters"},
        {"{\"minItems\":1}", "[]", "", "minItems", "must have at least 1 item"},
        {"{\"maxItems\":0}", "[1]", "", "maxItems", "must have at most 0 items"},
        {"{\"minProperties\":2}", "{}", "", "minProperties", "must have at least 2 properties"},
        {"{\"maxProperties\":1}", "{\"a\":1,\"b\":1}", "", "maxProperties",
         "must have at most 1 property"},
        {"{\"pattern\":\"^[a-z]+$\"}", "\"SECRET\"", "", "pattern",
         "must match the pattern ^[a-z]+$"},
        {"{\"uniqueItems\":true}", "[1,2,3,2]", "", "uniqueItems",
         "items must differ, but those at 1 and 3 are equal"},
        {"{\"items\":{\"items\":{\"type\":\"string\"}}}", "[[],[\"a\",null]]", "/1/1", "type",
         "expected string, got null"},
        {"{\"prefixItems\":[{}],\"items\":false}", "[1,2]", "/1", "items",
         "no item is allowed here"},
        {"{\"properties\":{\"a\":true,\"b\":true},\"additionalProperties\":false}",
         "{\"a\":1,\"c\":2}", "/c", "additionalProperties",
         "property not allowed; known are: \"a\", \"b\""},
        {"{\"additionalProperties\":false}", "{\"c\":2}", "/c", "additionalProperties",
         "property not allowed"},
        {"{\"properties\":{\"a\":false}}", "{\"a\":1}", "/a", "properties", "not allowed here"},
        {"{\"allOf\":[{\"properties\":{\"a\":true}}],\"properties\":{\"b\":true},"
         "\"unevaluatedProperties\":false}",
         "{\"a\":1,\"c\":2}", "/c", "unevaluatedProperties",
         "property not allowed; known are: \"b\""},
        {"{\"prefixItems\":[true],\"unevaluatedItems\":false}", "[1,2]", "/1", "unevaluatedItems",
         "not allowed here"},
        {"{\"propertyNames\":{\"maxLength\":2}}", "{\"abc\":1}", "/abc", "maxLength",
         "property name: must have at most 2 characters"},
        {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "", "dependentRequired",
         "missing property \"b\", required beside \"a\""},
        {"{\"contains\":{\"type\":\"integer\"}}", "[\"a\"]", "", "contains",
         "must have at least 1 item that matches the schema under \"contains\""},
        {"{\"contains\":{\"type\":\"integer\"},\"minContains\":2}", "[1]", "", "minContains",
         "must have at least 2 items that match the schema under \"contains\""},
        {"{\"contains\":{\"type\":\"integer\"},\"maxContains\":1}", "[1,2]", "", "maxContains",
         "must have at most 1 item that matches the schema under \"contains\""},
        {"{\"not\":{\"type\":\"integer\"}}", "1", "", "not",
         "must not match the schema under \"not\""},
        {"{\"if\":{\"type\":\"integer\"},\"then\":{\"minimum\":5}}", "1", "", "minimum",
         "must be at least 5"},
        {"{\"if\":{\"type\":\"integer\"},\"then\":false}", "1", "", "then", "not allowed here"},
        {"{\"anyOf\":[{\"type\":\"integer\"},{\"required\":[\"a\"]},"
         "{\"properties\":{\"k\":{\"const\":\"x\"}},\"required\":[\"k\"]}]}",
         "{\"k\":\"secret\"}", "", "anyOf",
         "matches none of the 3 alternatives: (1) expected integer, got object; (2) missing "
         "property \"a\"; (3) at /k: must be \"x\""},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}", "null", "", "oneOf",
         "matches none of the 2 alternatives: (1) expected integer, got null; (2) expected "
         "string, got null"},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"},{\"minimum\":0}]}", "1", "",
         "oneOf", "must match exactly one of the 3 alternatives, but matches (1) and (3)"},
        {"{\"properties\":{\"a/b~c\":{\"type\":\"string\"}}}", "{\"a/b~c\":1}", "/a~1b~0c", "type",
         "expected string, got integer"},
        {"{\"type\":\"object\",\"required\":[\"x\"],\"minProperties\":3}", "{}", "", "required",
         "missing property \"x\""}, /* in the order of the schema */
        {"{\"minProperties\":3,\"required\":[\"x\"]}", "{}", "", "minProperties",
         "must have at least 3 properties"},
        {"{\"properties\":{\"b\":{\"type\":\"string\"},\"a\":{\"type\":\"string\"}}}",
         "{\"a\":1,\"b\":1}", "/b", "type", "expected string, got integer"},
        {"false", "1", "", "schema", "not allowed here"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mcp_schema_error_t err;
        mcp_wire_status_t status = judge(compiled(rows[i].schema), rows[i].instance, &err);

        if (status != MCP_E_FIELD || strcmp(err.path, rows[i].path) != 0 ||
            strcmp(err.rule, rows[i].rule) != 0 || strcmp(err.message, rows[i].message) != 0) {
            fail_msg("%s on %s: %d at \"%s\": %s: %s", rows[i].schema, rows[i].instance,
                     (int)status, err.path, err.rule, err.message);
        }
        assert_null(strstr(err.message, "secret"));
        assert_null(strstr(err.message, "SECRET"));
    }
}

static bool is_utf8(const char *text)
{
    json_t *json = json_string(text);
    bool ret = json != NULL;

    json_decref(json);
    return ret;
}

static void long_messages_are_cut_between_characters(void **state)
{
    (void)state;
    for (size_t pad = 0; pad < 8; pad++) {
        json_t *schema = json_object();
        json_t *inner = json_object();
        json_t *instance = json_object();
        json_t *values = json_array();
        char name[1024];
        mcp_schema_t *ready;
        mcp_schema_error_t err;

        memset(name, 'p', pad);
        for (size_t i = pad; i + 2 < sizeof(name); i += 2) {
            memcpy(name + i, "\xc3\xa9", 3);
        }
        for (size_t i = 0; i < 20; i++) {
            assert_int_equal(json_array_append_new(values, json_string(name)), 0);
        }
        assert_int_equal(json_object_set_new(inner, "enum", values), 0);
        assert_int_equal(json_object_set_new(schema, "additionalProperties", inner), 0);
        assert_int_equal(json_object_set_new(instance, name, json_null()), 0);
        assert_int_equal(mcp_schema_compile(schema, pool, &ready, NULL), MCP_OK);
        assert_int_equal(mcp_schema_validate(ready, instance, &err), MCP_E_FIELD);
        assert_true(strlen(err.path) >= sizeof(err.path) - 4);
        assert_string_equal(err.path + strlen(err.path) - 3, "...");
        assert_string_equal(err.message + strlen(err.message) - 3, "...");
        assert_true(is_utf8(err.path));
        assert_true(is_utf8(err.message));
        json_decref(schema);
        json_decref(instance);
    }
}

/* --- limits --------------------------------------------------------------------------- */

static json_t *nested(size_t depth)
{
    json_t *json = json_array();

    for (size_t i = 1; i < depth; i++) {
        json_t *outer = json_array();

        assert_int_equal(json_array_append_new(outer, json), 0);
        json = outer;
    }
    return json;
}

static void a_schema_has_a_depth(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        json_t *json = json_object();
        mcp_schema_t *schema;
        mcp_schema_error_t err;

        assert_int_equal(
            json_object_set_new(json, "const", nested(MCP_SCHEMA_MAX_DEPTH - 1 + over)), 0);
        assert_int_equal(mcp_schema_compile(json, pool, &schema, &err),
                         over == 0 ? MCP_OK : MCP_E_FIELD);
        json_decref(json);
    }
}

static void an_instance_has_a_depth(void **state)
{
    const mcp_schema_t *schema = compiled("{\"items\":{\"$ref\":\"#\"}}");

    (void)state;
    for (size_t over = 0; over < 2; over++) {
        /* The first level takes one, each other the reference and its target. */
        json_t *json = nested(MCP_SCHEMA_MAX_DEPTH / 2 + over);
        mcp_schema_error_t err;

        assert_int_equal(mcp_schema_validate(schema, json, &err), over == 0 ? MCP_OK : MCP_E_SIZE);
        if (over != 0) {
            assert_string_equal(err.rule, "limit");
        }
        json_decref(json);
    }
}

static void deep_instances_do_not_harm(void **state)
{
    static const char *const schemas[] = {
        "{\"items\":{\"$ref\":\"#\"}}", "{\"uniqueItems\":true}",
        "{\"unevaluatedItems\":{\"$ref\":\"#\"}}"};
    json_t *deep = json_array();

    (void)state;
    assert_int_equal(json_array_append_new(deep, nested(2000)), 0);
    assert_int_equal(json_array_append_new(deep, nested(2000)), 0);
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        assert_int_equal(mcp_schema_validate(compiled(schemas[i]), deep, NULL), MCP_E_SIZE);
    }
    json_decref(deep);
}

/* Every level applies the next twice. */
static char *bomb(const char *keyword, const char *leaf, size_t levels)
{
    size_t room = 200 * (levels + 2);
    char *text = malloc(room);
    size_t used;

    assert_non_null(text);
    used = (size_t)snprintf(text, room, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (size_t i = 0; i < levels; i++) {
        used += (size_t)snprintf(text + used, room - used,
                                 "\"%zu\":{\"%s\":[{\"$ref\":\"#/$defs/%zu\"},"
                                 "{\"$ref\":\"#/$defs/%zu\"}]},",
                                 i, keyword, i + 1, i + 1);
    }
    (void)snprintf(text + used, room - used, "\"%zu\":%s}}", levels, leaf);
    return text;
}

static void bombs_end_in_time(void **state)
{
    static const struct {
        const char *keyword;
        const char *leaf;
    } rows[] = {{"allOf", "true"},
                {"anyOf", "false"},
                {"oneOf", "false"},
                {"allOf", "{\"unevaluatedProperties\":true}"},
                {"anyOf", "{\"unevaluatedProperties\":false}"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text = bomb(rows[i].keyword, rows[i].leaf, 40);
        mcp_schema_error_t err;
        double before = seconds();

        assert_int_equal(judge(compiled(text), "{\"a\":1}", &err), MCP_E_SIZE);
        assert_string_equal(err.rule, "limit");
        assert_true(seconds() - before < patience());
        free(text);
    }
}

static void explaining_stays_within_the_budget(void **state)
{
    /* Just small enough to be judged; its explanation is not to take for ever. */
    char *text = bomb("anyOf", "{\"type\":\"integer\"}", 13);
    mcp_schema_error_t err;
    double before = seconds();

    (void)state;
    assert_int_equal(judge(compiled(text), "\"a\"", &err), MCP_E_FIELD);
    assert_string_equal(err.rule, "anyOf");
    assert_true(seconds() - before < patience());
    free(text);
}

static void endless_references_are_caught(void **state)
{
    static const char *const schemas[] = {
        "{\"allOf\":[{\"$ref\":\"#\"}]}",
        "{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}",
        "{\"not\":{\"$ref\":\"#\"}}",
        "{\"if\":{\"$ref\":\"#\"}}",
        "{\"dependentSchemas\":{\"a\":{\"$ref\":\"#\"}}}",
        "{\"$dynamicAnchor\":\"a\",\"allOf\":[{\"$dynamicRef\":\"#a\"}]}",
        "{\"unevaluatedProperties\":false,\"allOf\":[{\"$ref\":\"#\"}]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        double before = seconds();

        assert_int_equal(judge(compiled(schemas[i]), "{\"a\":1}", NULL), MCP_E_SIZE);
        assert_true(seconds() - before < patience());
    }
}

static void long_chains_of_references_are_walked_once(void **state)
{
    size_t n = 20000;
    json_t *defs = json_array();
    json_t *schema = json_object();
    mcp_schema_t *ready;
    char text[64];
    double before;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        json_t *one = json_object();

        (void)snprintf(text, sizeof(text), "#/allOf/%zu", i + 1);
        if (i + 1 < n) {
            assert_int_equal(json_object_set_new(one, "$ref", json_string(text)), 0);
        }
        assert_int_equal(json_array_append_new(defs, one), 0);
    }
    assert_int_equal(json_object_set_new(schema, "allOf", defs), 0);
    before = seconds();
    assert_int_equal(mcp_schema_compile(schema, pool, &ready, NULL), MCP_OK);
    assert_true(seconds() - before < 2 * patience());
    assert_int_equal(mcp_schema_validate(ready, json_null(), NULL), MCP_E_SIZE);
    json_decref(schema);
}

static void work_is_counted_where_loops_are(void **state)
{
    static const char *const schemas[] = {
        "{\"items\":{\"type\":\"integer\",\"minimum\":0}}",
        "{\"contains\":{\"type\":\"string\"}}",
        "{\"items\":{\"enum\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\"]}}",
        "{\"items\":{\"unevaluatedItems\":false}}",
    };
    json_t *array = json_array();

    (void)state;
    for (size_t i = 0; i < 300000; i++) {
        assert_int_equal(json_array_append_new(array, json_integer((json_int_t)i)), 0);
    }
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        double before = seconds();
        mcp_wire_status_t status = mcp_schema_validate(compiled(schemas[i]), array, NULL);

        /* The enum fails at the first item; all others need more steps than there are. */
        assert_int_equal(status, i == 2 ? MCP_E_FIELD : MCP_E_SIZE);
        assert_true(seconds() - before < patience());
    }
    assert_int_equal(mcp_schema_validate(compiled("{\"uniqueItems\":true}"), array, NULL),
                     MCP_OK);
    json_decref(array);
}

static void honest_sizes_fit(void **state)
{
    json_t *array = json_array();
    const mcp_schema_t *schema = compiled(
        "{\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"integer\"},\"name\":"
        "{\"type\":\"string\",\"pattern\":\"^[a-z]+$\"}},\"required\":[\"id\"],"
        "\"additionalProperties\":false},\"uniqueItems\":true}");

    (void)state;
    for (size_t i = 0; i < 10000; i++) {
        json_t *item = json_object();

        assert_int_equal(json_object_set_new(item, "id", json_integer((json_int_t)i)), 0);
        assert_int_equal(json_object_set_new(item, "name", json_string("name")), 0);
        assert_int_equal(json_array_append_new(array, item), 0);
    }
    assert_int_equal(mcp_schema_validate(schema, array, NULL), MCP_OK);
    json_decref(array);
}

static void patterns_are_bounded(void **state)
{
    static const char *const rows[][2] = {
        {"{\"pattern\":\"^(a+)+$\"}", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\""},
        {"{\"patternProperties\":{\"^(a+)+$\":true}}",
         "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\":1}"},
        {"{\"propertyNames\":{\"pattern\":\"^(a|aa)+$\"}}",
         "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\":1}"},
        {"{\"not\":{\"pattern\":\"^(a+)+$\"}}",
         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double before = seconds();

        assert_int_equal(judge(compiled(rows[i][0]), rows[i][1], NULL), MCP_E_SIZE);
        assert_true(seconds() - before < patience());
    }
}

static void a_schema_has_a_number_of_parts(void **state)
{
    json_t *nodes = json_array();
    json_t *patterns = json_array();
    json_t *schema = json_object();
    mcp_schema_t *ready = NULL;
    mcp_schema_error_t err;

    (void)state;
    for (size_t i = 0; i < MCP_SCHEMA_MAX_NODES; i++) {
        assert_int_equal(json_array_append_new(nodes, json_object()), 0);
    }
    assert_int_equal(json_object_set_new(schema, "allOf", nodes), 0);
    assert_int_equal(mcp_schema_compile(schema, pool, &ready, &err), MCP_E_SIZE);
    assert_string_equal(err.rule, "limit");
    assert_int_equal(json_array_remove(nodes, 0), 0);
    assert_int_equal(mcp_schema_compile(schema, pool, &ready, &err), MCP_OK);
    ready = NULL;
    for (size_t i = 0; i < 1000; i++) {
        json_t *one = json_object();

        assert_int_equal(json_object_set_new(one, "pattern", json_string("((x{9}y){99}){9}")),
                         0);
        assert_int_equal(json_array_append_new(patterns, one), 0);
    }
    assert_int_equal(json_object_set_new(schema, "allOf", patterns), 0);
    assert_int_equal(mcp_schema_compile(schema, pool, &ready, &err), MCP_E_SIZE);
    assert_null(ready);
    json_decref(schema);
}

static void a_schema_outlives_its_source_and_dies_with_its_pool(void **state)
{
    apr_pool_t *own;
    mcp_schema_t *schema;
    json_t *json = parsed("{\"properties\":{\"a\":{\"enum\":[\"x\",{\"y\":1}]}}}");
    mcp_schema_error_t err;

    (void)state;
    assert_int_equal(apr_pool_create(&own, pool), APR_SUCCESS);
    assert_int_equal(mcp_schema_compile(json, own, &schema, NULL), MCP_OK);
    assert_int_equal(json_object_clear(json), 0);
    json_decref(json);
    assert_int_equal(judge(schema, "{\"a\":{\"y\":1}}", &err), MCP_OK);
    assert_int_equal(judge(schema, "{\"a\":2}", &err), MCP_E_FIELD);
    assert_string_equal(err.message, "must be one of: \"x\", {\"y\":1}");
    assert_int_equal(mcp_schema_validate(schema, NULL, NULL), MCP_E_FIELD);
    apr_pool_destroy(own); /* a leak checker would see the rest */
    assert_int_equal(mcp_schema_compile(NULL, pool, &schema, NULL), MCP_E_FIELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_public_suite_passes),
        cmocka_unit_test(the_optional_suite_passes),
        cmocka_unit_test(formats_never_fail),
        cmocka_unit_test(schemas_of_real_tools_compile),
        cmocka_unit_test(draft_07_is_understood),
        cmocka_unit_test(numbers_are_compared_as_numbers),
        cmocka_unit_test(references_stay_in_the_document),
        cmocka_unit_test(bad_schemas_are_refused_with_reason),
        cmocka_unit_test(messages_say_where_which_and_what),
        cmocka_unit_test(long_messages_are_cut_between_characters),
        cmocka_unit_test(a_schema_has_a_depth),
        cmocka_unit_test(an_instance_has_a_depth),
        cmocka_unit_test(deep_instances_do_not_harm),
        cmocka_unit_test(bombs_end_in_time),
        cmocka_unit_test(explaining_stays_within_the_budget),
        cmocka_unit_test(endless_references_are_caught),
        cmocka_unit_test(long_chains_of_references_are_walked_once),
        cmocka_unit_test(work_is_counted_where_loops_are),
        cmocka_unit_test(honest_sizes_fit),
        cmocka_unit_test(patterns_are_bounded),
        cmocka_unit_test(a_schema_has_a_number_of_parts),
        cmocka_unit_test(a_schema_outlives_its_source_and_dies_with_its_pool),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
