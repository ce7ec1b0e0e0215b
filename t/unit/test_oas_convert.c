/* From API descriptions to connector files, rule by rule: a document, a place in what comes of it, and what stands there. Whatever comes of a document is
 * also a file that policyd takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <cmocka.h>
#include <jansson.h>

#include "mcp_hash.h"
#include "oas.h"
#include "pd_catalog.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

static apr_status_t let_go(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

static json_t *keep(json_t *value)
{
    apr_pool_cleanup_register(pool, value, let_go, apr_pool_cleanup_null);
    return value;
}

/* {"files":[…],"report":{…}} of a document, or a text that says why not. */
static json_t *convert(const char *text, const oas_options_t *options)
{
    static const oas_options_t none;
    char why[300] = "";
    json_t *root = NULL;
    json_t *files = NULL;
    json_t *report = NULL;
    oas_doc_t *doc = NULL;

    if (oas_read(text, strlen(text), &root, why, sizeof(why)) != OAS_OK ||
        oas_doc_make(root, "", NULL, NULL, pool, &doc, why, sizeof(why)) != OAS_OK ||
        oas_convert(doc, options != NULL ? options : &none, pool, &files, &report, why, sizeof(why)) != OAS_OK) {
        return keep(json_string(why));
    }
    return keep(json_pack("{s:o,s:o}", "files", files, "report", report));
}

static void assert_taken(const char *what, const json_t *made)
{
    json_t *file;
    size_t i;

    json_array_foreach(json_object_get(made, "files"), i, file)
    {
        pd_fault_t fault;
        json_t *doc = NULL;

        memset(&fault, 0, sizeof(fault));
        if (pd_catalog_check(file, &doc, &fault) != PD_OK) {
            fail_msg("%s: is refused: %s", what, fault.message);
        }
        json_decref(doc);
    }
}

/* What stands at a JSON Pointer; NULL: nothing. A segment "id=X" is the element whose id or name is X. */
static const json_t *at(const json_t *value, const char *pointer)
{
    while (value != NULL && *pointer == '/') {
        size_t bytes = strcspn(pointer + 1, "/");
        char *segment = apr_pstrmemdup(pool, pointer + 1, bytes);
        const char *named = strncmp(segment, "id=", 3) == 0 ? segment + 3 : NULL;
        char *tilde;

        while ((tilde = strstr(segment, "~1")) != NULL) {
            *tilde = '/';
            memmove(tilde + 1, tilde + 2, strlen(tilde + 2) + 1);
        }
        if (named != NULL) {
            const json_t *found = NULL;
            json_t *row;
            size_t i;

            json_array_foreach((json_t *)(uintptr_t)value, i, row)
            {
                const char *id = json_string_value(json_object_get(row, "id"));
                const char *name = json_string_value(json_object_get(row, "name"));

                if ((id != NULL && strcmp(id, named) == 0) || (name != NULL && strcmp(name, named) == 0)) {
                    found = row;
                }
            }
            value = found;
        } else if (json_is_array(value)) {
            value = json_array_get(value, (size_t)(segment[0] - '0'));
        } else {
            value = json_object_get(value, segment);
        }
        pointer += bytes + 1;
    }
    return value;
}

typedef struct row {
    const char *what;
    const char *document;
    const char *place;    /* "/files/0/…" or "/report/…" */
    const char *expected; /* JSON; NULL: nothing stands there */
} row_t;

static void check(const row_t *rows, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        json_t *made = convert(rows[i].document, NULL);
        const json_t *found;
        json_t *expected = rows[i].expected != NULL ? keep(json_loads(rows[i].expected, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL)) : NULL;

        if (json_is_string(made)) {
            fail_msg("%s: %s", rows[i].what, json_string_value(made));
        }
        assert_taken(rows[i].what, made);
        found = at(made, rows[i].place);
        if (rows[i].expected == NULL ? found != NULL : found == NULL || !json_equal((json_t *)(uintptr_t)found, expected)) {
            fail_msg("%s: at %s stands %s", rows[i].what, rows[i].place,
                     found != NULL ? json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY) : "nothing");
        }
    }
}

#define DOC(rest) "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"T\",\"version\":\"1\"}," rest "}"
#define AT(rest) DOC("\"servers\":[{\"url\":\"https://a.example\"}]," rest)
#define GET(rest) AT("\"paths\":{\"/x/{id}\":{\"get\":{\"operationId\":\"g\"," rest "}}}")
#define POST(rest) AT("\"paths\":{\"/x\":{\"post\":{\"operationId\":\"p\"," rest "}}}")
#define BODY(schema) POST("\"requestBody\":{\"content\":{\"application/json\":{\"schema\":" schema "}}}")
#define OLD(rest) "{\"swagger\":\"2.0\",\"info\":{\"title\":\"T\",\"version\":\"1\"},\"host\":\"a.example\"," rest "}"
#define PARAM(name) "/files/0/operations/0/parameters/id=" name
#define SCHEMA "/files/0/operations/0/body/schema"

static void where_operations_are_served(void **state)
{
    static const row_t rows[] = {
        {"a server", DOC("\"servers\":[{\"url\":\"https://a.example/v1/\"}],\"paths\":{}"), "/files/0/base_url", "\"https://a.example/v1\""},
        {"none", DOC("\"paths\":{}"), "/files/0/base_url", "\"https://{host}\""},
        {"a relative one", DOC("\"servers\":[{\"url\":\"/api/v1\"}],\"paths\":{}"), "/files/0/base_url", "\"https://{host}/api/v1\""},
        {"its variable has no default", DOC("\"servers\":[{\"url\":\"/api/v1\"}],\"paths\":{}"), "/files/0/variables/host/default", NULL},
        {"without a scheme", DOC("\"servers\":[{\"url\":\"//a.example/v1\"}],\"paths\":{}"), "/files/0/base_url", "\"https://a.example/v1\""},
        {"a host alone", DOC("\"servers\":[{\"url\":\"a.example/v1\"}],\"paths\":{}"), "/files/0/base_url", "\"https://a.example/v1\""},
        {"variables", DOC("\"servers\":[{\"url\":\"https://{r}.a.example:{p}/{v}\",\"variables\":{\"r\":{\"default\":\"eu\",\"enum\":[\"eu\",\"us\"]},\"p\":{\"default\":443},\"v\":{\"default\":\"v1\"}}}],\"paths\":{}"), "/files/0/variables/r/enum", "[\"eu\",\"us\"]"},
        {"a variable of the port has a pattern", DOC("\"servers\":[{\"url\":\"https://a.example:{p}\",\"variables\":{\"p\":{\"default\":443}}}],\"paths\":{}"), "/files/0/variables/p", "{\"default\":\"443\",\"pattern\":\"[0-9]{1,5}\"}"},
        {"a variable as scheme", DOC("\"servers\":[{\"url\":\"{s}://a.example\",\"variables\":{\"s\":{\"default\":\"http\",\"enum\":[\"http\",\"https\"]}}}],\"paths\":{}"), "/files/0/base_url", "\"http://a.example\""},
        {"a variable that begins the path", DOC("\"servers\":[{\"url\":\"https://{h}{b}\",\"variables\":{\"h\":{\"default\":\"a.example\"},\"b\":{\"default\":\"/v1\"}}}],\"paths\":{}"), "/files/0/base_url", "\"https://{h}/{b}\""},
        {"2.0: schemes prefer TLS", OLD("\"schemes\":[\"http\",\"https\"],\"basePath\":\"/v2/\",\"paths\":{}"), "/files/0/base_url", "\"https://a.example/v2\""},
        {"2.0: http alone", OLD("\"schemes\":[\"http\"],\"paths\":{}"), "/files/0/base_url", "\"http://a.example\""},
        {"another origin is another connector", DOC("\"servers\":[{\"url\":\"https://a.example\"}],\"paths\":{\"/x\":{\"get\":{}},\"/y\":{\"get\":{\"servers\":[{\"url\":\"https://b.example/u\"}]}}}"), "/files/1/base_url", "\"https://b.example/u\""},
        {"with a slug of its own", DOC("\"servers\":[{\"url\":\"https://a.example\"}],\"paths\":{\"/x\":{\"get\":{}},\"/y\":{\"get\":{\"servers\":[{\"url\":\"https://b.example/u\"}]}}}"), "/files/1/slug", "\"t-2\""},
        {"prefixes of one origin become part of the path", DOC("\"servers\":[{\"url\":\"https://a.example/v1\"}],\"paths\":{\"/x\":{\"get\":{}},\"/y\":{\"get\":{\"servers\":[{\"url\":\"https://a.example/v2\"}]}}}"), "/files/0/operations/id=get_y/path", "\"/v2/y\""}};

    (void)state;
    check(rows, COUNT(rows));
}

static void what_operations_are_called(void **state)
{
    static const row_t rows[] = {
        {"their own names", AT("\"paths\":{\"/x\":{\"get\":{\"operationId\":\"listX\"}}}"), "/files/0/operations/0/id", "\"listX\""},
        {"made of method and path", AT("\"paths\":{\"/users/{user-id}/x.y\":{\"get\":{}}}"), "/files/0/operations/0/id", "\"get_users_by_user_id_x_y\""},
        {"blanks", AT("\"paths\":{\"/x\":{\"get\":{\"operationId\":\"list all x\"}}}"), "/files/0/operations/0/id", "\"list_all_x\""},
        {"doubled ones are made too", AT("\"paths\":{\"/x\":{\"get\":{\"operationId\":\"a\"}},\"/y\":{\"get\":{\"operationId\":\"a\"}}}"), "/files/0/operations/1/id", "\"get_y\""},
        {"and counted", AT("\"paths\":{\"/x\":{\"get\":{\"operationId\":\"a\"}},\"/y\":{\"get\":{\"operationId\":\"a\"}}}"), "/report/ids", "{\"missing\":0,\"duplicate\":1}"},
        {"other case is another name", AT("\"paths\":{\"/x\":{\"get\":{\"operationId\":\"a\"}},\"/y\":{\"get\":{\"operationId\":\"A\"}}}"), "/files/0/operations/1/id", "\"A\""},
        {"made ones that meet get a mark", AT("\"paths\":{\"/x-y\":{\"get\":{}},\"/x_y\":{\"get\":{}}}"), "/files/0/operations/1/id", "\"get_x_y_65e1a471\""}};
    json_t *made;

    (void)state;
    check(rows, COUNT(rows) - 1);
    made = convert(rows[COUNT(rows) - 1].document, NULL);
    assert_taken("made ones that meet", made);
    assert_int_equal(strncmp(json_string_value(at(made, "/files/0/operations/0/id")), "get_x_y_", 8), 0);
}

static void paths_are_cleaned(void **state)
{
    static const row_t rows[] = {
        {"a slash that is missing", AT("\"paths\":{\"x\":{\"get\":{}}}"), "/files/0/operations/0/path", "\"/x\""},
        {"doubled ones", AT("\"paths\":{\"//x//y\":{\"get\":{}}}"), "/files/0/operations/0/path", "\"/x/y\""},
        {"what stands behind #", AT("\"paths\":{\"/x#upload\":{\"post\":{}}}"), "/files/0/operations/0/path", "\"/x\""},
        {"literals of the query", AT("\"paths\":{\"/x?acl&v=1\":{\"get\":{}}}"), "/files/0/operations/0/path", "\"/x?acl&v=1\""},
        {"blanks", AT("\"paths\":{\"/x y\":{\"get\":{}}}"), "/files/0/operations/0/path", "\"/x%20y\""},
        {"a placeholder twice", AT("\"paths\":{\"/{a}/x/{a}\":{\"get\":{}}}"), "/files/0/operations/0/path", "\"/{a}/x/{a_2}\""},
        {"two that stand together are left out", AT("\"paths\":{\"/{a}{b}\":{\"get\":{}}}"), "/report/left_out/0/what", "\"the operation\""},
        {"a part of a segment", AT("\"paths\":{\"/{a}.json\":{\"get\":{}}}"), "/files/0/operations/0/path", "\"/{a}.json\""},
        {"TRACE is not sent", AT("\"paths\":{\"/x\":{\"trace\":{}}}"), "/report/operations", "0"},
        {"extensions are none", AT("\"paths\":{\"x-y\":{\"get\":{}}}"), "/report/operations", "0"},
        {"a path item by reference", AT("\"paths\":{\"/x\":{\"$ref\":\"#/paths/~1y\"},\"/y\":{\"get\":{\"operationId\":\"a\"}}}"), "/report/operations", "2"},
        {"one that leads nowhere", AT("\"paths\":{\"/x\":{\"$ref\":\"#/nowhere\"}}"), "/report/left_out/0/where", "\"/x\""},
        {"webhooks", DOC("\"webhooks\":{\"a\":{\"post\":{}}}"), "/report/left_out/0/where", "\"webhooks\""}};

    (void)state;
    check(rows, COUNT(rows));
}

static void parameters(void **state)
{
    static const row_t rows[] = {
        {"one that the path has and nobody describes", GET("\"summary\":\"s\""), PARAM("id"), "{\"name\":\"id\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"}}"},
        {"one that the path lacks", GET("\"parameters\":[{\"name\":\"no\",\"in\":\"path\"}]"), "/report/left_out/0/why", "\"is not in the path\""},
        {"the nearer of two", AT("\"paths\":{\"/x\":{\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"schema\":{\"type\":\"string\"}}],\"get\":{\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"schema\":{\"type\":\"integer\"}}]}}}"), PARAM("q") "/schema", "{\"type\":\"integer\"}"},
        {"by reference", "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"T\",\"version\":\"1\"},\"components\":{\"parameters\":{\"q\":{\"name\":\"q\",\"in\":\"query\",\"schema\":{\"type\":\"boolean\"}}}},\"paths\":{\"/x\":{\"get\":{\"parameters\":[{\"$ref\":\"#/components/parameters/q\"}]}}}}", PARAM("q") "/schema", "{\"type\":\"boolean\"}"},
        {"a reference to nothing", GET("\"parameters\":[{\"$ref\":\"#/no\"}]"), "/report/dangling", "1"},
        {"its form", GET("\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"style\":\"pipeDelimited\",\"explode\":false,\"schema\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}]"), PARAM("q") "/style", "\"pipeDelimited\""},
        {"a form of another place", GET("\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"style\":\"matrix\",\"schema\":{}}]"), PARAM("q") "/style", NULL},
        {"a document as parameter", GET("\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\"}}}}]"), PARAM("q"), "{\"name\":\"q\",\"in\":\"query\",\"schema\":{\"type\":\"string\"},\"description\":\"Text in application/json.\"}"},
        {"a header of the transport", GET("\"parameters\":[{\"name\":\"Host\",\"in\":\"header\",\"schema\":{}}]"), PARAM("Host"), NULL},
        {"2.0: many", OLD("\"paths\":{\"/x\":{\"get\":{\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"type\":\"array\",\"items\":{\"type\":\"string\"},\"collectionFormat\":\"multi\"}]}}}"), PARAM("q"), "{\"name\":\"q\",\"in\":\"query\",\"style\":\"form\",\"explode\":true,\"schema\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}"},
        {"2.0: with blanks", OLD("\"paths\":{\"/x\":{\"get\":{\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"type\":\"array\",\"items\":{\"type\":\"string\"},\"collectionFormat\":\"ssv\"}]}}}"), PARAM("q") "/style", "\"spaceDelimited\""},
        {"2.0: with commas unless it says otherwise", OLD("\"paths\":{\"/x\":{\"get\":{\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}}}"), PARAM("q") "/explode", "false"},
        {"one that stands in the path's query", AT("\"paths\":{\"/x?a=1\":{\"get\":{\"parameters\":[{\"name\":\"a\",\"in\":\"query\",\"schema\":{}}]}}}"), PARAM("a"), NULL},
        {"the credential", DOC("\"components\":{\"securitySchemes\":{\"k\":{\"type\":\"apiKey\",\"in\":\"query\",\"name\":\"key\"}}},\"paths\":{\"/x\":{\"get\":{\"parameters\":[{\"name\":\"key\",\"in\":\"query\",\"schema\":{}}]}}}"), PARAM("key"), NULL}};

    (void)state;
    check(rows, COUNT(rows));
}

static void bodies(void **state)
{
    static const row_t rows[] = {
        {"JSON before all", POST("\"requestBody\":{\"content\":{\"multipart/form-data\":{},\"text/plain\":{},\"application/json\":{}}}"), "/files/0/operations/0/body/content_type", "\"application/json\""},
        {"forms before text", POST("\"requestBody\":{\"content\":{\"text/plain\":{},\"application/x-www-form-urlencoded\":{\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{}}}}}}"), "/files/0/operations/0/body/content_type", "\"application/x-www-form-urlencoded\""},
        {"text is text", POST("\"requestBody\":{\"content\":{\"application/xml\":{\"schema\":{\"type\":\"object\"}}}}"), SCHEMA, "{\"type\":\"string\"}"},
        {"required", POST("\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{}}}"), "/files/0/operations/0/body/required", "true"},
        {"GET has none", GET("\"requestBody\":{\"content\":{\"application/json\":{}}}"), "/files/0/operations/0/body", NULL},
        {"a slip of the pen", POST("\"requestBody\":{\"content\":{\"applicationjson\":{}}}"), "/files/0/operations/0/body/content_type", "\"application/json\""},
        {"2.0: a body", OLD("\"paths\":{\"/x\":{\"post\":{\"parameters\":[{\"name\":\"b\",\"in\":\"body\",\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}}]}}}"), SCHEMA "/properties/a", "{\"type\":\"string\"}"},
        {"2.0: a form", OLD("\"paths\":{\"/x\":{\"post\":{\"parameters\":[{\"name\":\"a\",\"in\":\"formData\",\"type\":\"string\",\"required\":true}]}}}"), "/files/0/operations/0/body", "{\"content_type\":\"application/x-www-form-urlencoded\",\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}}"},
        {"2.0: a file", OLD("\"paths\":{\"/x\":{\"post\":{\"parameters\":[{\"name\":\"f\",\"in\":\"formData\",\"type\":\"file\"}]}}}"), "/files/0/operations/0/body/content_type", "\"multipart/form-data\""},
        {"2.0: a file's schema", OLD("\"paths\":{\"/x\":{\"post\":{\"parameters\":[{\"name\":\"f\",\"in\":\"formData\",\"type\":\"file\"}]}}}"), SCHEMA "/properties/f", "{\"type\":\"string\",\"format\":\"binary\"}"}};

    (void)state;
    check(rows, COUNT(rows));
}

static void schemas(void **state)
{
    static const row_t rows[] = {
        {"nullable", BODY("{\"type\":\"string\",\"nullable\":true}"), SCHEMA, "{\"type\":[\"string\",\"null\"]}"},
        {"nullable with values", BODY("{\"type\":\"string\",\"enum\":[\"a\"],\"nullable\":true}"), SCHEMA, "{\"type\":[\"string\",\"null\"],\"enum\":[\"a\",null]}"},
        {"bounds of old", BODY("{\"type\":\"number\",\"minimum\":0,\"exclusiveMinimum\":true,\"maximum\":9}"), SCHEMA, "{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":9}"},
        {"what is only read", BODY("{\"type\":\"object\",\"required\":[\"a\",\"b\"],\"properties\":{\"a\":{\"readOnly\":true},\"b\":{\"type\":\"string\"}}}"), SCHEMA, "{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"}},\"required\":[\"b\"]}"},
        {"parts of plain objects", BODY("{\"allOf\":[{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"type\":\"string\"}}},{\"properties\":{\"b\":{\"type\":\"integer\"}}}]}"), SCHEMA, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"integer\"}},\"required\":[\"a\"]}"},
        {"parts that contradict", BODY("{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"string\"}}},{\"properties\":{\"a\":{\"type\":\"integer\"}}}]}"), SCHEMA "/properties/a", "{\"allOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}"},
        {"choices stay", BODY("{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}"), SCHEMA, "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}"},
        {"words that are none", BODY("{\"type\":\"int\",\"xml\":{},\"example\":1,\"x-a\":1,\"required\":true,\"minLength\":\"1\"}"), SCHEMA, "{\"type\":\"integer\"}"},
        {"a pattern that is none", BODY("{\"type\":\"string\",\"pattern\":\"[\"}"), SCHEMA, "{\"type\":\"string\"}"},
        {"a circle", "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"T\",\"version\":\"1\"},\"components\":{\"schemas\":{\"N\":{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#/components/schemas/N\"}}}}},\"paths\":{\"/x\":{\"post\":{\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/N\"}}}}}}}}", SCHEMA "/$defs/N/properties/next", "{\"$ref\":\"#/$defs/N\"}"},
        {"a reference to itself", BODY("{\"$ref\":\"#/paths/~1x/post/requestBody/content/application~1json/schema\"}"), SCHEMA, "{}"},
        {"parts of themselves end", "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"T\",\"version\":\"1\"},\"components\":{\"schemas\":{\"A\":{\"allOf\":[{\"$ref\":\"#/components/schemas/A\"},{\"$ref\":\"#/components/schemas/A\"}]}}},\"paths\":{\"/x\":{\"post\":{\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/A\"}}}}}}}}", "/report/operations", "1"},
        {"another's address is not fetched", BODY("{\"$ref\":\"https://evil.example/x.json\"}"), SCHEMA, "{}"},
        {"a description within", BODY("{\"type\":\"object\",\"properties\":{\"a\":{\"description\":\"<p>The **name**</p>\"}}}"), SCHEMA "/properties/a", "{\"description\":\"The name\"}"}};

    (void)state;
    check(rows, COUNT(rows));
}

static void texts_classes_and_tags(void **state)
{
    static const row_t rows[] = {
        {"summary and description", GET("\"summary\":\"Show it\",\"description\":\"With **all** fields.\""), "/files/0/operations/0/description", "\"Show it. With all fields.\""},
        {"one that repeats", GET("\"summary\":\"Show it\",\"description\":\"Show it with all fields.\""), "/files/0/operations/0/description", "\"Show it with all fields.\""},
        {"none", GET("\"tags\":[]"), "/files/0/operations/0/description", "\"GET /x/{id}\""},
        {"an old one", GET("\"summary\":\"Show it\",\"deprecated\":true"), "/files/0/operations/0/description", "\"Deprecated. Show it\""},
        {"classes by method", AT("\"paths\":{\"/x\":{\"get\":{},\"post\":{},\"delete\":{}}}"), "/report/by_class", "{\"read\":1,\"write\":1,\"destructive\":1}"},
        {"tags", GET("\"tags\":[\"a\",\"a\",\"b\"]"), "/files/0/operations/0/tags", "[\"a\",\"b\"]"},
        {"what sends is tagged", AT("\"paths\":{\"/m\":{\"post\":{\"operationId\":\"sendMessage\"}}}"), "/files/0/operations/0/tags", "[\"sends\"]"},
        {"a sender is no sending", AT("\"paths\":{\"/m\":{\"post\":{\"operationId\":\"createSender\"}}}"), "/files/0/operations/0/tags", NULL}};

    (void)state;
    check(rows, COUNT(rows));
}

static void how_requests_are_signed_in(void **state)
{
#define SCHEMES(schemes, security) DOC("\"components\":{\"securitySchemes\":{" schemes "}},\"security\":" security ",\"paths\":{\"/x\":{\"get\":{}}}")
    static const row_t rows[] = {
        {"no scheme", AT("\"paths\":{}"), "/files/0/auth", "{\"type\":\"none\"}"},
        {"bearer", SCHEMES("\"a\":{\"type\":\"http\",\"scheme\":\"Bearer\"}", "[{\"a\":[]}]"), "/files/0/auth", "{\"type\":\"bearer\"}"},
        {"basic", SCHEMES("\"a\":{\"type\":\"http\",\"scheme\":\"basic\"}", "[{\"a\":[]}]"), "/files/0/auth", "{\"type\":\"basic\"}"},
        {"a key", SCHEMES("\"a\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-Key\"}", "[{\"a\":[]}]"), "/files/0/auth", "{\"type\":\"api_key\",\"in\":\"header\",\"name\":\"X-Key\"}"},
        {"of two the easier one", SCHEMES("\"a\":{\"type\":\"http\",\"scheme\":\"basic\"},\"b\":{\"type\":\"http\",\"scheme\":\"bearer\"}", "[{\"a\":[]},{\"b\":[]}]"), "/report/auth/chosen", "\"b\""},
        {"of two the one that serves", SCHEMES("\"a\":{\"type\":\"http\",\"scheme\":\"basic\"},\"b\":{\"type\":\"http\",\"scheme\":\"bearer\"}", "[{\"a\":[]}]"), "/report/auth/chosen", "\"a\""},
        {"one that nothing asks for, where nothing else does", SCHEMES("\"a\":{\"type\":\"http\",\"scheme\":\"basic\"}", "[]"), "/files/0/auth", "{\"type\":\"basic\"}"},
        {"one that can't be done", SCHEMES("\"a\":{\"type\":\"mutualTLS\"}", "[{\"a\":[]}]"), "/report/auth/others/0/why", "\"is a scheme that can't be done\""},
        {"2.0", OLD("\"securityDefinitions\":{\"a\":{\"type\":\"basic\"}},\"security\":[{\"a\":[]}],\"paths\":{\"/x\":{\"get\":{}}}"), "/files/0/auth", "{\"type\":\"basic\"}"}};

    (void)state;
    check(rows, COUNT(rows));
}

static void options_choose(void **state)
{
    const char *document = AT("\"paths\":{\"/a\":{\"get\":{\"operationId\":\"listA\"},\"delete\":{\"operationId\":\"dropA\"}},\"/b\":{\"get\":{\"operationId\":\"listB\",\"deprecated\":true}}}");
    oas_options_t options;
    json_t *made;

    (void)state;
    memset(&options, 0, sizeof(options));
    options.include = apr_array_make(pool, 1, sizeof(const char *));
    options.exclude = apr_array_make(pool, 1, sizeof(const char *));
    options.classify = apr_array_make(pool, 1, sizeof(oas_classify_t));
    APR_ARRAY_PUSH((apr_array_header_t *)(uintptr_t)options.include, const char *) = "GET *";
    made = convert(document, &options);
    assert_int_equal(json_integer_value(at(made, "/report/operations")), 2);
    APR_ARRAY_PUSH((apr_array_header_t *)(uintptr_t)options.exclude, const char *) = "*B";
    made = convert(document, &options);
    assert_int_equal(json_array_size(at(made, "/files/0/operations")), 1);
    options.include = NULL;
    options.exclude = NULL;
    options.no_deprecated = 1;
    APR_ARRAY_PUSH((apr_array_header_t *)(uintptr_t)options.classify, oas_classify_t) = (oas_classify_t){"*", "forbidden"};
    APR_ARRAY_PUSH((apr_array_header_t *)(uintptr_t)options.classify, oas_classify_t) = (oas_classify_t){"GET /a", "write"};
    options.slug = "own";
    options.base_url = "https://own.example/v9";
    made = convert(document, &options);
    assert_taken("options", made);
    assert_string_equal(json_string_value(at(made, "/files/0/slug")), "own");
    assert_string_equal(json_string_value(at(made, "/files/0/base_url")), "https://own.example/v9");
    assert_int_equal(json_array_size(at(made, "/files/0/operations")), 2);
    assert_string_equal(json_string_value(at(made, "/files/0/operations/id=listA/classification")), "write");
    assert_string_equal(json_string_value(at(made, "/files/0/operations/id=dropA/classification")), "forbidden");
}

static void a_schema_never_outgrows_its_size(void **state)
{
    apr_array_header_t *parts = apr_array_make(pool, 64, sizeof(const char *));
    oas_options_t options;
    json_t *made;
    int i;

    (void)state;
    memset(&options, 0, sizeof(options));
    options.max_schema = 2000;
    for (i = 0; i < 60; i++) {
        APR_ARRAY_PUSH(parts, const char *) =
            apr_psprintf(pool, "\"S%d\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/components/schemas/S%d\"},\"text\":{\"type\":\"string\",\"description\":\"what it is\"}}}", i, i + 1);
    }
    made = convert(apr_psprintf(pool, "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"T\",\"version\":\"1\"},\"components\":{\"schemas\":{%s}},\"paths\":{\"/x\":{\"post\":{\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/S0\"}}}}}}}}", apr_array_pstrcat(pool, parts, ',')), &options);
    assert_taken("a long chain", made);
    assert_true(json_dumpb(at(made, SCHEMA), NULL, 0, JSON_COMPACT) <= 2100);
    assert_true(json_integer_value(at(made, "/report/cut/schemas")) > 0);
    assert_non_null(at(made, SCHEMA "/$defs/S1"));
}

static void what_is_no_description_is_refused(void **state)
{
    static const char *const documents[] = {"{}", "[]", "{\"swagger\":\"1.2\"}", "{\"openapi\":\"4.0.0\"}", "text", "{\"openapi\":3"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(documents); i++) {
        assert_true(json_is_string(convert(documents[i], NULL)));
    }
}

/* --- reading ---------------------------------------------------------------------------------------- */

static void yaml_is_read_as_people_mean_it(void **state)
{
    static const struct {
        const char *yaml;
        const char *json;
    } rows[] = {{"a: yes\nb: no\nc: on", "{\"a\":\"yes\",\"b\":\"no\",\"c\":\"on\"}"},
                {"a: true\nb: False\nc: ~\nd: null\ne:", "{\"a\":true,\"b\":false,\"c\":null,\"d\":null,\"e\":null}"},
                {"a: 2026-01-02\nb: 12:30\nc: 1.0.0", "{\"a\":\"2026-01-02\",\"b\":\"12:30\",\"c\":\"1.0.0\"}"},
                {"a: 1\nb: -2\nc: 1.5\nd: 1e3\ne: 0x1F\nf: 0o17\ng: '1'", "{\"a\":1,\"b\":-2,\"c\":1.5,\"d\":1000.0,\"e\":31,\"f\":15,\"g\":\"1\"}"},
                {"200: ok\ntrue: x", "{\"200\":\"ok\",\"true\":\"x\"}"},
                {"a: &x {b: 1}\nc: *x", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
                {"a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3", "{\"a\":{\"b\":1,\"c\":2},\"d\":{\"c\":3,\"b\":1}}"},
                {"a: 1\na: 2", "{\"a\":2}"},
                {"---\na: 1\n---\nb: 2", "{\"a\":1}"},
                {"\xef\xbb\xbf{\"a\":1}", "{\"a\":1}"},
                {"{\"a\":1,}", "{\"a\":1}"},
                {"{\"a\":18446744073709551616}", "{\"a\":18446744073709551616.0}"},
                {"{\"a\":1,\"a\":2}", "{\"a\":2}"},
                {"{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"\\ud83d\\ude00\"}"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        json_t *expected = keep(json_loads(rows[i].json, JSON_REJECT_DUPLICATES, NULL));
        json_t *found = NULL;
        char why[200] = "";

        if (oas_read(rows[i].yaml, strlen(rows[i].yaml), &found, why, sizeof(why)) != OAS_OK) {
            fail_msg("%s: %s", rows[i].yaml, why);
        }
        if (!json_equal(keep(found), expected)) {
            fail_msg("%s: %s", rows[i].yaml, json_dumps(found, JSON_COMPACT));
        }
    }
}

static void what_can_not_be_read_says_why(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } rows[] = {{"", "empty"}, {" \n", "empty"}, {"a: [", "line"}, {"{\"a\":", "line"}, {"a: *b", "alias"}, {"? [a]\n: b", "key"}, {"a: b: c", "line"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        json_t *found = NULL;
        char why[200] = "";

        assert_int_equal(oas_read(rows[i].text, strlen(rows[i].text), &found, why, sizeof(why)), OAS_FAIL);
        if (strstr(why, rows[i].why) == NULL) {
            fail_msg("\"%s\": %s", rows[i].text, why);
        }
    }
}

static void descriptions_become_plain_text(void **state)
{
    static const struct {
        const char *from;
        size_t limit;
        const char *text;
    } rows[] = {{"Plain text.", 0, "Plain text."},
                {"  a \n\n b\t", 0, "a b"},
                {"<p>One</p><p>two &amp; <b>three</b></p>", 0, "One two & three"},
                {"See [the docs](https://x.example/y(z)) now", 0, "See the docs now"},
                {"![logo](x.png)Text", 0, "Text"},
                {"# Head\nbody", 0, "Head body"},
                {"**bold** and _soft_ `code` snake_case_name", 0, "bold and soft code snake_case_name"},
                {"```json\n{}\n```", 0, "{}"},
                {"a < b and c > d", 0, "a < b and c > d"},
                {"<https://x.example>", 0, "<https://x.example>"},
                {"zero\xe2\x80\x8bwidth \xe2\x80\xaeturned", 0, "zerowidth turned"},
                {"One. Two. Three is longer.", 12, "One. Two."},
                {"One two three four", 12, "One two\xe2\x80\xa6"},
                {"no\x01" "control", 0, "nocontrol"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        const char *text = oas_text(rows[i].from, rows[i].limit, pool, NULL);

        if (strcmp(text, rows[i].text) != 0) {
            fail_msg("\"%s\": \"%s\"", rows[i].from, text);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int set_up_group(void **state)
{
    (void)state;
    return apr_initialize() == APR_SUCCESS && mcp_hash_init() == MCP_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(where_operations_are_served),
                                       TEST(what_operations_are_called),
                                       TEST(paths_are_cleaned),
                                       TEST(parameters),
                                       TEST(bodies),
                                       TEST(schemas),
                                       TEST(texts_classes_and_tags),
                                       TEST(how_requests_are_signed_in),
                                       TEST(options_choose),
                                       TEST(a_schema_never_outgrows_its_size),
                                       TEST(what_is_no_description_is_refused),
                                       TEST(yaml_is_read_as_people_mean_it),
                                       TEST(what_can_not_be_read_says_why),
                                       TEST(descriptions_become_plain_text)};

    return cmocka_run_group_tests(tests, set_up_group, NULL);
}
