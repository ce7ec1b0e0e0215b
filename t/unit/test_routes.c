/* Rooms pd_routes and pd_openapi: what the registry becomes for the REST door. */
#include "pd_routes.h"

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
#include <jansson.h>

#include "../../mod_mcp/mcp_route.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"
#include "pd_openapi.h"
#include "pd_ops.h"

static apr_pool_t *pool;
static json_t *rows;
static json_t *table;
static json_t *openapi;

static json_t *blob(const char *digest)
{
    const void *bytes = NULL;
    size_t count = 0;
    char hex[MCP_DIGEST_HEX + 1];
    json_t *value = NULL;

    assert_non_null(digest);
    assert_int_equal(pd_routes_blob(digest, &bytes, &count), 1);
    mcp_digest_hex(bytes, count, hex);
    assert_string_equal(hex, digest);
    assert_int_equal(mcp_json_parse(bytes, count, MCP_MAX_DEPTH + 8, &value, NULL), MCP_OK);
    return value;
}

static int set_up(void **state)
{
    char why[256] = "";

    (void)state;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS ||
        mcp_hash_init() != MCP_OK) {
        return -1;
    }
    if (pd_ops_init(pool, why, sizeof(why)) != PD_OK || pd_routes_make(pool) != PD_OK) {
        (void)fprintf(stderr, "%s\n", why);
        return -1;
    }
    rows = pd_ops_describe();
    table = blob(pd_routes_table_digest());
    openapi = blob(pd_routes_openapi_digest());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(rows);
    json_decref(table);
    json_decref(openapi);
    apr_pool_destroy(pool);
    assert_null(pd_routes_table_digest()); /* they end with the pool */
    apr_terminate();
    return 0;
}

static const json_t *route(size_t i)
{
    return json_array_get(json_object_get(table, "routes"), i);
}

static const char *rest(size_t i, const char *what)
{
    return mcp_json_str(json_object_get(json_array_get(rows, i), "rest"), what);
}

static void every_operation_has_its_route(void **state)
{
    size_t i;

    (void)state;
    assert_true(json_array_size(rows) > 20);
    assert_int_equal(json_array_size(json_object_get(table, "routes")), json_array_size(rows));
    for (i = 0; i < json_array_size(rows); i++) {
        assert_string_equal(mcp_json_str(route(i), "op"), mcp_json_str(json_array_get(rows, i), "name"));
        assert_string_equal(mcp_json_str(route(i), "method"), rest(i, "method"));
        assert_string_equal(mcp_json_str(route(i), "path"), rest(i, "path"));
    }
}

/* The module that will read it. */
static void the_table_compiles_and_leads_to_every_operation(void **state)
{
    const void *bytes = NULL;
    const mcp_routes_t *routes = NULL;
    size_t count = 0;
    size_t i;

    (void)state;
    assert_int_equal(pd_routes_blob(pd_routes_table_digest(), &bytes, &count), 1);
    assert_int_equal(mcp_route_compile(bytes, count, pool, &routes, NULL), APR_SUCCESS);
    for (i = 0; i < json_array_size(rows); i++) {
        const char *path = rest(i, "path");
        char filled[512];
        size_t used = 0;
        mcp_route_match_t match;

        for (; *path != '\0'; path++) { /* any word: {member} becomes "x1" */
            if (*path == '{') {
                path = strchr(path, '}');
                memcpy(filled + used, "x1", 2);
                used += 2;
            } else {
                filled[used++] = *path;
            }
        }
        filled[used] = '\0';
        assert_int_equal(mcp_route_find(routes, rest(i, "method"), filled, pool, &match, NULL),
                         APR_SUCCESS);
        assert_string_equal(match.route->op, mcp_json_str(json_array_get(rows, i), "name"));
    }
}

/* Each argument has one place: path, query, header or body. */
static void every_argument_can_be_said(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < json_array_size(rows); i++) {
        const char *method = rest(i, "method");
        int has_body = strcmp(method, "GET") != 0 && strcmp(method, "DELETE") != 0;
        const char *name;
        json_t *schema;

        json_object_foreach(json_object_get(json_object_get(json_array_get(rows, i), "schema"),
                                            "properties"),
                            name, schema)
        {
            int in_path = json_object_get(json_object_get(route(i), "words"), name) != NULL;
            int in_query = json_object_get(json_object_get(route(i), "query"), name) != NULL;
            int in_header = strcmp(name, "if_revision") == 0;

            if (in_path + in_query + in_header + has_body < 1 || (in_path && in_query) ||
                (in_query && in_header)) {
                fail_msg("%s: %s", mcp_json_str(route(i), "op"), name);
            }
            if (in_header) {
                assert_true(json_is_true(json_object_get(route(i), "if_revision")));
            }
        }
    }
}

static const json_t *route_of(const char *op)
{
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        if (strcmp(mcp_json_str(route(i), "op"), op) == 0) {
            return route(i);
        }
    }
    fail_msg("no route of %s", op);
    return NULL;
}

static void what_is_made_is_201_and_has_its_place(void **state)
{
    const json_t *create = route_of("members__create");

    (void)state;
    assert_int_equal(mcp_json_int(create, "status", 0), 201);
    assert_string_equal(mcp_json_str(create, "location"), "/members/{member}");
    assert_int_equal(mcp_json_int(route_of("members__suspend"), "status", 0), 200);
    assert_null(mcp_json_str(route_of("members__suspend"), "location"));
    assert_string_equal(mcp_json_str(route_of("grants__create"), "secret"), "always");
    assert_null(mcp_json_str(route_of("grants__get"), "secret"));
}

static void types_say_how_texts_become_values(void **state)
{
    const json_t *list = json_object_get(route_of("members__list"), "query");
    const json_t *remove = route_of("members__remove");

    (void)state;
    assert_string_equal(mcp_json_str(list, "limit"), "integer");
    assert_string_equal(mcp_json_str(list, "query"), "string");
    assert_string_equal(mcp_json_str(list, "state"), "string"); /* an enum of strings */
    assert_string_equal(mcp_json_str(json_object_get(remove, "query"), "erase"), "boolean");
    assert_string_equal(mcp_json_str(json_object_get(remove, "words"), "member"), "string");
    assert_null(json_object_get(json_object_get(remove, "query"), "if_revision"));
    assert_null(json_object_get(json_object_get(route_of("members__create"), "query"), "email"));
}

/* --- the document --------------------------------------------------------------------- */

/* The operation object of a row. */
static json_t *operation_of(size_t i)
{
    char method[16];
    size_t at;
    json_t *item = json_object_get(json_object_get(openapi, "paths"), rest(i, "path"));

    for (at = 0; rest(i, "method")[at] != '\0'; at++) {
        method[at] = (char)(rest(i, "method")[at] | 0x20);
    }
    method[at] = '\0';
    return json_object_get(item, method);
}

static void the_document_lists_every_operation(void **state)
{
    size_t i;

    (void)state;
    assert_string_equal(mcp_json_str(openapi, "openapi"), "3.1.0");
    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *operation = operation_of(i);

        assert_non_null(operation);
        assert_string_equal(mcp_json_str(operation, "operationId"), mcp_json_str(row, "name"));
        assert_string_equal(mcp_json_str(operation, "summary"), mcp_json_str(row, "title"));
        assert_string_equal(mcp_json_str(operation, "description"), mcp_json_str(row, "description"));
        assert_string_equal(json_string_value(json_array_get(json_object_get(operation, "tags"), 0)),
                            mcp_json_str(row, "resource"));
        assert_non_null(json_object_get(operation, "responses"));
        assert_int_equal(json_array_size(json_object_get(operation, "security")), 1);
    }
}

static void it_begins_with_the_servers(void **state)
{
    static const char head[] = "{\"openapi\":\"3.1.0\",\"servers\":[{\"url\":\"" PD_OPENAPI_BASE "\"}]";
    const void *bytes = NULL;
    size_t count = 0;

    (void)state;
    assert_int_equal(pd_routes_blob(pd_routes_openapi_digest(), &bytes, &count), 1);
    assert_true(count > sizeof(head));
    assert_memory_equal(bytes, head, sizeof(head) - 1);
}

/* What a JSON Pointer within the document leads to, or NULL. */
static const json_t *at_pointer(const char *pointer)
{
    const json_t *at = openapi;
    char *state = NULL;
    char *token;

    for (token = apr_strtok(apr_pstrdup(pool, pointer + 1), "/", &state); token != NULL && at != NULL;
         token = apr_strtok(NULL, "/", &state)) {
        at = json_is_array(at) ? json_array_get(at, (size_t)apr_atoi64(token))
                               : json_object_get(at, token);
    }
    return at;
}

/* Counts references below a value; fails at one that leads nowhere. */
static int follow(const json_t *value)
{
    const char *key;
    json_t *member;
    int count = 0;
    size_t i;

    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            if (strcmp(key, "$ref") == 0 && json_is_string(member)) {
                count++;
                if (strncmp(json_string_value(member), "#/", 2) != 0 ||
                    at_pointer(json_string_value(member)) == NULL) {
                    fail_msg("%s leads nowhere", json_string_value(member));
                }
            }
            count += follow(member);
        }
    }
    for (i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        count += follow(json_array_get(value, i));
    }
    return count;
}

static void every_reference_leads_somewhere(void **state)
{
    (void)state;
    assert_true(follow(openapi) > 50);
    assert_null(at_pointer("#/components/schemas/Nobody")); /* the test can fail */
}

/* Path words and If-Match have their own place, so the body does not have them too. */
static void bodies_hold_what_has_no_other_place(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < json_array_size(rows); i++) {
        const char *name = mcp_json_str(json_array_get(rows, i), "name");
        const json_t *schema = json_object_get(
            json_object_get(json_object_get(openapi, "components"), "schemas"), name);
        const json_t *properties = json_object_get(schema, "properties");
        const json_t *body = json_object_get(operation_of(i), "requestBody");
        const char *word;
        json_t *type;
        size_t at;

        if (body == NULL) {
            continue;
        }
        assert_non_null(properties);
        assert_null(json_object_get(properties, "if_revision"));
        json_object_foreach(json_object_get(route(i), "words"), word, type)
        {
            assert_null(json_object_get(properties, word));
        }
        for (at = 0; at < json_array_size(json_object_get(schema, "required")); at++) {
            assert_non_null(json_object_get(
                properties, json_string_value(json_array_get(json_object_get(schema, "required"), at))));
        }
    }
}

/* Every {word} of a path is a required parameter of each of its operations, and nothing else is in the path. */
static void path_parameters_are_declared(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *parameters = json_object_get(operation_of(i), "parameters");
        size_t in_path = 0;
        size_t at;

        for (at = 0; at < json_array_size(parameters); at++) {
            const json_t *parameter = json_array_get(parameters, at);
            const char *in = mcp_json_str(parameter, "in");

            if (in != NULL && strcmp(in, "path") == 0) {
                in_path++;
                assert_true(json_is_true(json_object_get(parameter, "required")));
                assert_non_null(strstr(rest(i, "path"),
                                       apr_psprintf(pool, "{%s}", mcp_json_str(parameter, "name"))));
            }
        }
        assert_int_equal(in_path, json_object_size(json_object_get(route(i), "words")));
    }
}

static void other_digests_are_not_ours(void **state)
{
    static const char other[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const void *bytes = NULL;
    size_t count = 0;

    (void)state;
    assert_int_equal(pd_routes_blob(other, &bytes, &count), 0);
    assert_string_not_equal(pd_routes_table_digest(), pd_routes_openapi_digest());
}

static void made_again_they_are_the_same_bytes(void **state)
{
    char digest[MCP_DIGEST_HEX + 1];
    apr_pool_t *second;

    (void)state;
    (void)apr_cpystrn(digest, pd_routes_openapi_digest(), sizeof(digest));
    assert_int_equal(apr_pool_create(&second, pool), APR_SUCCESS);
    assert_int_equal(pd_routes_make(pool), PD_OK);
    assert_string_equal(pd_routes_openapi_digest(), digest);
    apr_pool_destroy(second);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_its_route),
        cmocka_unit_test(the_table_compiles_and_leads_to_every_operation),
        cmocka_unit_test(every_argument_can_be_said),
        cmocka_unit_test(what_is_made_is_201_and_has_its_place),
        cmocka_unit_test(types_say_how_texts_become_values),
        cmocka_unit_test(the_document_lists_every_operation),
        cmocka_unit_test(it_begins_with_the_servers),
        cmocka_unit_test(every_reference_leads_somewhere),
        cmocka_unit_test(bodies_hold_what_has_no_other_place),
        cmocka_unit_test(path_parameters_are_declared),
        cmocka_unit_test(other_digests_are_not_ours),
        cmocka_unit_test(made_again_they_are_the_same_bytes),
    };

    if (argc == 2 && strcmp(argv[1], "--print") == 0) { /* for validators */
        (void)set_up(NULL);
        (void)json_dumpf(openapi, stdout, JSON_INDENT(1));
        return tear_down(NULL);
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
