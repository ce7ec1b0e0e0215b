/* What the tests of the catalog share: files to change, short ways to judge and compile them. */
#ifndef CATALOG_FIXTURE_H
#define CATALOG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../policyd/pd_catalog.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"
#include "../../proto/mcp_schema.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define UNUSED __attribute__((unused))

static apr_pool_t *pool;

UNUSED static json_t *parse(const char *text)
{
    json_t *value = NULL;
    size_t at = 0;

    if (mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, &value, &at) != MCP_OK) {
        fail_msg("the test's own JSON is bad at byte %lu: %s", (unsigned long)at, text);
    }
    return value;
}

/* A file that is taken; cases change it in one place. */
static const char good[] =
    "{\"slug\":\"shop\",\"label\":\"Shop\",\"base_url\":\"https://{host}/api\","
    "\"variables\":{\"host\":{\"default\":\"shop.example\",\"enum\":[\"shop.example\",\"test.shop."
    "example:8443\"]}},"
    "\"auth\":{\"type\":\"bearer\"},"
    "\"operations\":[{\"id\":\"get_item\",\"method\":\"get\",\"path\":\"/items/{id}\","
    "\"description\":\"Reads an item.\",\"parameters\":[{\"name\":\"id\",\"in\":\"path\","
    "\"schema\":{\"type\":\"string\"}},{\"name\":\"fields\",\"in\":\"query\",\"schema\":{\"type\":"
    "\"string\"}}]},"
    "{\"id\":\"add_item\",\"method\":\"POST\",\"path\":\"/items\",\"description\":\"Adds an "
    "item.\","
    "\"body\":{\"content_type\":\"application/"
    "json\",\"required\":true,\"schema\":{\"type\":\"object\","
    "\"properties\":{\"name\":{\"type\":\"string\"},\"price\":{\"type\":\"number\"}},\"required\":["
    "\"name\"]}}}]}";

/* Puts value (stolen; NULL removes) at the pointer. */
UNUSED static void put(json_t *root, const char *pointer, json_t *value)
{
    char part[64];
    json_t *at = root;
    const char *next;

    for (;;) {
        size_t bytes = strcspn(pointer + 1, "/");

        assert_true(bytes < sizeof(part));
        memcpy(part, pointer + 1, bytes);
        part[bytes] = '\0';
        next = pointer + 1 + bytes;
        if (*next == '\0') {
            break;
        }
        at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10))
                               : json_object_get(at, part);
        assert_non_null(at);
        pointer = next;
    }
    if (value == NULL) {
        assert_int_equal(json_object_del(at, part), 0);
    } else if (json_is_array(at)) {
        size_t index = strtoul(part, NULL, 10);

        assert_int_equal(index < json_array_size(at) ? json_array_set_new(at, index, value)
                                                     : json_array_append_new(at, value),
                         0);
    } else {
        assert_int_equal(json_object_set_new(at, part, value), 0);
    }
}

UNUSED static json_t *check_good(const json_t *file)
{
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    json_t *doc = NULL;

    if (pd_catalog_check(file, &doc, &fault) != PD_OK) {
        fail_msg("refused: %s", fault.message);
    }
    assert_int_equal(fault.code, MCP_CODE_NONE);
    return doc;
}

UNUSED static json_t *check_text(const char *text)
{
    json_t *file = parse(text);
    json_t *doc = check_good(file);

    json_decref(file);
    return doc;
}

UNUSED static pd_connector_t *compile(const json_t *doc)
{
    pd_connector_t *connector = NULL;

    assert_int_equal(pd_catalog_compile("con_1", doc, &connector), PD_OK);
    return connector;
}

/* A file with one operation, whose members are given as JSON text. */
UNUSED static json_t *with_operation(const char *operation)
{
    json_t *file = parse(good);

    put(file, "/operations", json_pack("[o]", parse(operation)));
    return file;
}

/* inputSchema of the only operation of such a file. */
UNUSED static json_t *schema_of(const char *operation)
{
    json_t *file = with_operation(operation);
    json_t *doc = check_good(file);
    pd_connector_t *connector = compile(doc);
    json_t *schema = parse(APR_ARRAY_IDX(connector->operations, 0, pd_operation_t).schema);

    pd_catalog_release(&connector);
    json_decref(doc);
    json_decref(file);
    return schema;
}

UNUSED static void assert_json(json_t *is, const char *expected)
{
    json_t *wanted = parse(expected);
    char *text = mcp_json_text(is, NULL);
    char *wanted_text = mcp_json_text(wanted, NULL);

    assert_string_equal(text, wanted_text); /* order of keys included */
    free(text);
    free(wanted_text);
    json_decref(wanted);
    json_decref(is);
}

UNUSED static int validates(const json_t *schema, const char *instance)
{
    mcp_schema_error_t error;
    mcp_schema_t *compiled = NULL;
    json_t *value = parse(instance);
    int is_valid;

    assert_int_equal(mcp_schema_compile(schema, pool, &compiled, &error), MCP_OK);
    is_valid = mcp_schema_validate(compiled, value, &error) == MCP_OK;
    json_decref(value);
    return is_valid;
}

/* Every kind of thing at once, for the way to the document and back. */
UNUSED static const char rich[] =
    "{\"id\":\"edit/item\",\"method\":\"patch\",\"path\":\"/items/{id}/parts/"
    "{part}?mode=full&a%20b=1%262&flag\","
    "\"summary\":\"Edit\",\"description\":\"Edits.\",\"x-note\":{\"a\":1.5},\"tags\":[\"t\"],"
    "\"parameters\":[{\"name\":\"id\",\"in\":\"path\",\"schema\":{\"type\":\"string\"}},"
    "{\"name\":\"part\",\"in\":\"path\",\"multi_segment\":true,\"schema\":{\"type\":\"string\"}},"
    "{\"name\":\"id\",\"in\":\"query\",\"schema\":{\"type\":\"integer\"}},"
    "{\"name\":\"id\",\"in\":\"header\",\"schema\":{\"type\":\"integer\"}},"
    "{\"name\":\"id\",\"in\":\"cookie\",\"required\":true,\"schema\":{\"type\":\"integer\"}},"
    "{\"name\":\"v\",\"in\":\"query\",\"fixed\":[1,2],\"style\":\"pipeDelimited\"}],"
    "\"body\":{\"content_type\":\"application/"
    "json\",\"required\":true,\"schema\":{\"type\":\"object\","
    "\"properties\":{\"id\":{\"type\":\"string\",\"description\":\"New id\"},\"q "
    "y\":{\"type\":\"number\"}},"
    "\"required\":[\"id\"]}}}";

UNUSED static int start(void **state)
{
    (void)state;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

UNUSED static int stop(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

UNUSED static int begin(void **state)
{
    (void)state;
    json_object_seed(1);
    return apr_initialize() == APR_SUCCESS && mcp_hash_init() == MCP_OK ? 0 : -1;
}

UNUSED static int end(void **state)
{
    (void)state;
    apr_terminate();
    return 0;
}

#endif
