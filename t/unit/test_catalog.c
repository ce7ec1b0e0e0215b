/* Connector files: what is refused and with which words, and what a good file becomes. */
#include "catalog_fixture.h"

/* --- refusals ------------------------------------------------------------------------- */

typedef struct bad {
    const char *pointer; /* the place that is changed in `good` */
    const char *value;   /* JSON text; NULL: removed */
    const char *at;      /* the pointer that the message names */
    const char *words;   /* and words of it */
} bad_t;

static const bad_t bad_files[] = {
    /* the form */
    {"/slug", NULL, "/", "slug"},
    {"/slug", "5", "/slug", "expected string"},
    {"/label", "\"\"", "/label", "at least 1 character"},
    {"/surprise", "1", "/surprise", "known are"},
    {"/timeout_ms", "5", "/timeout_ms", "at least 100"},
    {"/operations", "{}", "/operations", "expected array"},
    {"/operations/0/verb", "\"x\"", "/operations/0/verb", "known are"},
    {"/operations/1/verb", "\"x\"", "/operations/1/verb", "known are"},
    {"/operations/1/description", NULL, "/operations/1", "description"},
    {"/operations/0/parameters/0/in", "\"body\"", "/operations/0/parameters/0/in",
     "must be one of"},
    /* names */
    {"/slug", "\"Shop\"", "/slug", "a-z, 0-9"},
    {"/slug", "\"-shop\"", "/slug", "no slug"},
    {"/operations/1/id", "\"get_item\"", "/operations/1/id", "unique"},
    {"/operations/0/id", "\"get item\"", "/operations/0/id", "without spaces"},
    /* auth */
    {"/auth", "{\"type\":\"oauth2\"}", "/auth/type", "none, api_key, basic or bearer"},
    {"/auth", "{\"type\":\"magic\"}", "/auth/type", "must be one of"},
    {"/auth", "{\"type\":\"api_key\"}", "/auth", "missing properties"},
    {"/auth", "{\"type\":\"api_key\",\"in\":\"cookie\",\"name\":\"k\"}", "/auth/in",
     "must be one of"},
    {"/auth", "{\"type\":\"api_key\",\"in\":\"header\",\"name\":\"Host\"}", "/auth/name",
     "transport"},
    {"/auth", "{\"type\":\"api_key\",\"in\":\"header\",\"name\":\"X Key\"}", "/auth/name",
     "no name of a header"},
    {"/auth", "{\"type\":\"basic\",\"name\":\"k\"}", "/auth", "belongs to type api_key"},
    {"/auth", "{\"type\":\"basic\",\"prefix\":\"Token\"}", "/auth", "belongs to type bearer"},
    /* base URL */
    {"/base_url", "\"ftp://{host}/x\"", "/base_url", "http:// or https://"},
    {"/base_url", "\"{scheme}://{host}\"", "/base_url", "no variable in it"},
    {"/base_url", "\"https://u@{host}\"", "/base_url", "user"},
    {"/base_url", "\"https://{host}/a?b=c\"", "/base_url", "no query"},
    {"/base_url", "\"https://{host}/a#b\"", "/base_url", "no fragment"},
    {"/base_url", "\"https://{host}//a\"", "/base_url", "doubled slash"},
    {"/base_url", "\"https://{host}/a/../b\"", "/base_url", "\"..\""},
    {"/base_url", "\"https://{host}/%2e%2e/b\"", "/base_url", "encoded"},
    {"/base_url", "\"https://{host}/a b\"", "/base_url", "percent-encoded"},
    {"/base_url", "\"https:///{host}\"", "/base_url", "no host"},
    {"/base_url", "\"https://{host\"", "/base_url", "{name}"},
    {"/base_url", "\"https://{}\"", "/base_url", "{name}"},
    {"/base_url", "\"https://{host}:99999\"", "/base_url", "host:port"},
    {"/base_url", "\"https://{host}{zone}\"", "/base_url", "not declared"},
    {"/base_url", "\"https://b\\u00fccher.example\"", "/base_url", "punycode"},
    {"/base_url", "\"https://fixed.example\"", "/variables/host", "does not use it"},
    {"/variables/host", "{}", "/variables/host", "needs an enum or a pattern"},
    {"/variables/host", "{\"pattern\":\"(\"}", "/variables/host", "regular expression"},
    {"/variables/host", "{\"pattern\":\"a)|(?:.*\"}", "/variables/host", "regular expression"},
    {"/variables/host", "{\"pattern\":\"[a-z.]+\",\"default\":\"HOST\"}", "/variables/host",
     "default"},
    {"/variables/host", "{\"enum\":[\"a.example\"],\"default\":\"b.example\"}", "/variables/host",
     "enum"},
    /* method and path */
    {"/operations/0/method", "\"GE T\"", "/operations/0/method", "no HTTP method"},
    {"/operations/0/method", "\"connect\"", "/operations/0/method", "not sent"},
    {"/operations/0/method", "\"Trace\"", "/operations/0/method", "not sent"},
    {"/operations/0/path", "\"items/{id}\"", "/operations/0/path", "begin with '/'"},
    {"/operations/0/path", "\"/items//{id}\"", "/operations/0/path", "empty segment"},
    {"/operations/0/path", "\"/../{id}\"", "/operations/0/path", "\"..\""},
    {"/operations/0/path", "\"/items/{id}/.\"", "/operations/0/path", "\".\""},
    {"/operations/0/path", "\"/items/%2F{id}\"", "/operations/0/path", "encoded slash"},
    {"/operations/0/path", "\"/it ems/{id}\"", "/operations/0/path", "percent-encoded"},
    {"/operations/0/path", "\"/items/{id}#x\"", "/operations/0/path", "percent-encoded"},
    {"/operations/0/path", "\"/items/{+id}\"", "/operations/0/path", "{name}"},
    {"/operations/0/path", "\"/items/{id\"", "/operations/0/path", "{name}"},
    {"/operations/0/path", "\"/items/id}\"", "/operations/0/path", "percent-encoded"},
    {"/operations/0/path", "\"/items/{id}{id2}\"", "/operations/0/path", "literal text between"},
    {"/operations/0/path", "\"/items/{id}/{id}\"", "/operations/0/path", "once only"},
    {"/operations/0/path", "\"/items/{key}\"", "/operations/0/parameters/0", "not in the path"},
    {"/operations/0/path", "\"/items/{id}/{part}\"", "/operations/0/path",
     "{part} has no parameter"},
    {"/operations/0/path", "\"/items/{id}?a={b}\"", "/operations/0/path", "name=value"},
    {"/operations/0/path", "\"/items/{id}?a=1&a=2\"", "/operations/0/path", "twice"},
    {"/operations/0/path", "\"/items/{id}?=1\"", "/operations/0/path", "name=value"},
    {"/operations/0/path", "\"/items/{id}?a=%ff\"", "/operations/0/path", "UTF-8"},
    {"/operations/0/path", "\"/items/{id}?a=%00\"", "/operations/0/path", "name=value"},
    {"/operations/0/path", "\"/items/{id}?fields=a\"", "/operations/0/parameters/1", "literal"},
    /* parameters */
    {"/operations/0/parameters/1/name", "\"id\"", NULL, NULL}, /* another place: taken */
    {"/operations/0/parameters/2", "{\"name\":\"fields\",\"in\":\"query\",\"schema\":{}}",
     "/operations/0/parameters/2", "twice"},
    {"/operations/0/parameters/0/required", "false", "/operations/0/parameters/0",
     "always required"},
    {"/operations/0/parameters/0/style", "\"form\"", "/operations/0/parameters/0", "style"},
    {"/operations/0/parameters/1/style", "\"matrix\"", "/operations/0/parameters/1", "style"},
    {"/operations/0/parameters/1/multi_segment", "true", "/operations/0/parameters/1", "only path"},
    {"/operations/0/parameters/0/format", "\"url\"", "/operations/0/parameters/0", "only headers"},
    {"/operations/0/parameters/1/schema", NULL, "/operations/0/parameters/1", "needs a schema"},
    {"/operations/0/parameters/1/schema", "{\"type\":\"strung\"}", "/operations/0", "type"},
    {"/operations/0/parameters/1/schema", "{\"pattern\":\"(\"}", "/operations/0", "pattern"},
    {"/operations/0/parameters/1/fixed", "null", "/operations/0/parameters/1", "null"},
    {"/operations/0/parameters/1/fixed", "7", "/operations/0/parameters/1", "schema refuses"},
    {"/operations/0/parameters/1/fixed", "\"a\\u0007\"", "/operations/0/parameters/1", "control"},
    /* headers that no file may set, in any case of letters */
    {"/operations/0/parameters/1", "{\"name\":\"HOST\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"content-length\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1",
     "{\"name\":\"Transfer-Encoding\",\"in\":\"header\",\"fixed\":\"chunked\"}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"Connection\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"TE\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"Trailer\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"Upgrade\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"authorization\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"Cookie\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"Proxy-Anything\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"mcp-session-id\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1",
     "{\"name\":\"X-HTTP-Method-Override\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "header of the transport"},
    {"/operations/0/parameters/1", "{\"name\":\"X Y\",\"in\":\"header\",\"schema\":{}}",
     "/operations/0/parameters/1", "no name of a header"},
    {"/operations/0/parameters/1", "{\"name\":\"a=b\",\"in\":\"cookie\",\"schema\":{}}",
     "/operations/0/parameters/1", "no name of a cookie"},
    /* body */
    {"/operations/0/body", "{\"content_type\":\"application/json\",\"schema\":{}}",
     "/operations/0/body", "GET and HEAD have no body"},
    {"/operations/1/body/content_type", "\"json\"", "/operations/1/body", "content_type"},
    {"/operations/1/body/content_type", "\"multipart/mixed\"", "/operations/1/body",
     "content_type"},
    {"/operations/1/body/content_type", "\"text/plain\"", "/operations/1/body", "type \"string\""},
    {"/operations/1/body/arg", "\"item\"", "/operations/1/body", "remove \"arg\""},
    {"/operations/0",
     "{\"id\":\"a\",\"method\":\"PUT\",\"path\":\"/"
     "{t}\",\"description\":\"d\",\"parameters\":[{\"name\":\"t\","
     "\"in\":\"path\",\"schema\":{}}],\"body\":{\"content_type\":\"text/"
     "plain\",\"arg\":\"t\",\"schema\":{"
     "\"type\":\"string\"}}}",
     "/operations/0/body/arg", "choose another"},
    {"/operations/0",
     "{\"id\":\"a\",\"method\":\"PUT\",\"path\":\"/"
     "\",\"description\":\"d\",\"body\":{\"content_type\":"
     "\"text/plain\",\"arg\":\"a b\",\"schema\":{\"type\":\"string\"}}}",
     "/operations/0/body", "A-Z, a-z"},
    {"/operations/1/parameters", "[{\"name\":\"Content-Type\",\"in\":\"header\",\"schema\":{}}]",
     "/operations/1/parameters/0", "repeats"},
    /* references */
    {"/operations/0/parameters/1/schema", "{\"$ref\":\"#/$defs/x\"}",
     "/operations/0/parameters/1/schema", "can't be taken"},
    {"/operations/0/parameters/1/schema", "{\"$ref\":\"https://other.example/s\"}",
     "/operations/0/parameters/1/schema", "can't be taken"},
    {"/operations/0/parameters/1/schema", "{\"$ref\":\"#\"}", "/operations/0/parameters/1/schema",
     "can't be taken"},
    {"/operations/0/parameters/1/schema", "{\"properties\":{\"a\":{\"$ref\":\"#/properties/b\"}}}",
     "/operations/0/parameters/1/schema", "can't be taken"},
    {"/operations/0/parameters/1/schema", "{\"$id\":\"x\"}", "/operations/0/parameters/1/schema",
     "$id"},
    {"/operations/0/parameters/1/schema", "{\"items\":{\"$anchor\":\"x\"}}",
     "/operations/0/parameters/1/schema", "$anchor"},
    {"/operations/0/parameters/1/schema", "{\"$dynamicRef\":\"#x\"}",
     "/operations/0/parameters/1/schema", "$dynamicRef"},
    {"/operations/0/parameters/1/schema",
     "{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}",
     "/operations/0/parameters/1/schema", "2020-12"},
    {"/operations/0/parameters/1/schema",
     "{\"$defs\":{\"a\":{}},\"definitions\":{\"a\":{\"type\":\"null\"}}}",
     "/operations/0/parameters/1/schema", "rename one"}};

static void a_bad_file_is_refused_with_place_and_remedy(void **state)
{
    int failed = 0;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(bad_files); i++) {
        const bad_t *row = &bad_files[i];
        json_t *file = parse(good);
        json_t *doc = NULL;
        pd_fault_t fault = {.code = MCP_CODE_NONE};
        pd_status_t status;
        char *at;

        put(file, row->pointer, row->value == NULL ? NULL : parse(row->value));
        status = pd_catalog_check(file, &doc, &fault);
        if (row->at == NULL) {
            assert_int_equal(status, PD_OK);
            json_decref(doc);
        } else {
            if (status != PD_E_INVALID || fault.code != MCP_CODE_INVALID_REQUEST || doc != NULL) {
                print_error("%s = %s was taken (%d)\n", row->pointer, row->value, status);
                failed++;
            }
            at = apr_pstrcat(pool, row->at, ": ", NULL);
            if (strncmp(fault.message, at, strlen(at)) != 0 ||
                strstr(fault.message, row->words) == NULL) {
                print_error("%s = %s: \"%s\" lacks \"%s\" or \"%s\"\n", row->pointer, row->value,
                            fault.message, at, row->words);
                failed++;
            }
        }
        json_decref(file);
    }
    assert_int_equal(failed, 0);
}

static void what_is_no_object_is_refused(void **state)
{
    static const char *const texts[] = {"[]", "null", "\"x\"", "5", "{}"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(texts); i++) {
        json_t *file = parse(texts[i]);
        json_t *doc = NULL;
        pd_fault_t fault = {.code = MCP_CODE_NONE};

        assert_int_equal(pd_catalog_check(file, &doc, &fault), PD_E_INVALID);
        assert_null(doc);
        json_decref(file);
    }
}

static void a_parameter_can_not_carry_the_credential(void **state)
{
    json_t *file = parse(good);
    json_t *doc = NULL;
    pd_fault_t fault = {.code = MCP_CODE_NONE};

    (void)state;
    put(file, "/auth", parse("{\"type\":\"api_key\",\"in\":\"query\",\"name\":\"fields\"}"));
    assert_int_equal(pd_catalog_check(file, &doc, &fault), PD_E_INVALID);
    assert_non_null(strstr(fault.message, "credential"));
    put(file, "/auth", parse("{\"type\":\"api_key\",\"in\":\"header\",\"name\":\"X-Key\"}"));
    put(file, "/operations/0/parameters/1",
        parse("{\"name\":\"x-key\",\"in\":\"header\",\"schema\":{}}"));
    fault.code = MCP_CODE_NONE;
    assert_int_equal(pd_catalog_check(file, &doc, &fault), PD_E_INVALID);
    json_decref(file);
}

/* A file of `count` small operations. */
static json_t *many_operations(size_t count)
{
    json_t *file = parse(good);
    json_t *operations = json_array();
    size_t i;

    for (i = 0; i < count; i++) {
        json_array_append_new(operations,
                              json_pack("{s:s+,s:s,s:s,s:s}", "id", "op",
                                        apr_psprintf(pool, "%lu", (unsigned long)i), "method",
                                        "GET", "path", "/x", "description", "d"));
    }
    put(file, "/operations", operations);
    return file;
}

static void operations_are_taken_up_to_the_limit(void **state)
{
    json_t *file = many_operations(PD_MAX_OPERATIONS);
    json_t *doc = check_good(file);
    pd_fault_t fault = {.code = MCP_CODE_NONE};

    (void)state;
    json_decref(doc);
    json_decref(file);
    file = many_operations(PD_MAX_OPERATIONS + 1);
    doc = NULL;
    assert_int_equal(pd_catalog_check(file, &doc, &fault), PD_E_INVALID);
    assert_non_null(strstr(fault.message, "/operations: "));
    json_decref(file);
}

static void a_schema_is_taken_up_to_its_limit_in_bytes(void **state)
{
    json_t *file = parse(good);
    json_t *doc = NULL;
    char *text = malloc(PD_MAX_SCHEMA_BYTES + 1);
    pd_fault_t fault = {.code = MCP_CODE_NONE};

    (void)state;
    memset(text, 'x', PD_MAX_SCHEMA_BYTES);
    text[PD_MAX_SCHEMA_BYTES] = '\0';
    put(file, "/operations/0/parameters/1/schema", json_pack("{s:s}", "$comment", text));
    assert_int_equal(pd_catalog_check(file, &doc, &fault), PD_E_INVALID);
    assert_non_null(strstr(fault.message, "262144"));
    text[PD_MAX_SCHEMA_BYTES - 1024] = '\0';
    put(file, "/operations/0/parameters/1/schema", json_pack("{s:s}", "$comment", text));
    json_decref(check_good(file));
    free(text);
    json_decref(file);
}

static void definitions_are_taken_up_to_their_limit(void **state)
{
    json_t *file = parse(good);
    json_t *defs = json_object();
    json_t *doc = NULL;
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    int i;

    (void)state;
    for (i = 0; i < 1000; i++) {
        json_object_set_new(defs, apr_psprintf(pool, "d%d", i), json_object());
    }
    put(file, "/operations/0/parameters/1/schema", json_pack("{s:o}", "$defs", defs));
    json_decref(check_good(file));
    json_object_set_new(defs, "d1000", json_object());
    assert_int_equal(pd_catalog_check(file, &doc, &fault), PD_E_INVALID);
    assert_non_null(strstr(fault.message, "1000 definitions"));
    json_decref(file);
}

/* --- the normalised document --------------------------------------------------------------- */

static void a_good_file_is_completed(void **state)
{
    json_t *file = parse(good);
    json_t *before = json_deep_copy(file);
    json_t *doc = check_good(file);
    const json_t *get = json_array_get(json_object_get(doc, "operations"), 0);
    const json_t *add = json_array_get(json_object_get(doc, "operations"), 1);

    (void)state;
    assert_true(json_equal(file, before)); /* the caller's file stays as it was */
    assert_string_equal(mcp_json_str(get, "method"), "GET");
    assert_string_equal(mcp_json_str(get, "classification"), "read");
    assert_string_equal(mcp_json_str(add, "classification"), "write");
    assert_string_equal(mcp_json_str(json_array_get(json_object_get(get, "parameters"), 0), "arg"),
                        "id");
    assert_true(mcp_json_bool(json_array_get(json_object_get(get, "parameters"), 0), "required"));
    assert_true(mcp_json_bool(json_object_get(add, "body"), "flatten"));
    json_decref(doc);
    json_decref(before);
    json_decref(file);
}

static void a_classification_follows_the_method_unless_it_is_said(void **state)
{
    static const struct {
        const char *method;
        const char *said; /* JSON, or NULL */
        const char *is;
    } rows[] = {{"HEAD", NULL, "read"},
                {"PROPFIND", NULL, "read"},
                {"PUT", NULL, "write"},
                {"patch", NULL, "write"},
                {"DELETE", NULL, "destructive"},
                {"MOVE", NULL, "destructive"},
                {"BREW", NULL, "destructive"},
                {"POST", "read", "read"},
                {"GET", "forbidden", "forbidden"},
                {"DELETE", "write", "write"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        json_t *file = with_operation(
            "{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/a\",\"description\":\"d\"}");
        json_t *doc;

        put(file, "/operations/0/method", json_string(rows[i].method));
        if (rows[i].said != NULL) {
            put(file, "/operations/0/classification", json_string(rows[i].said));
        }
        doc = check_good(file);
        assert_string_equal(
            mcp_json_str(json_array_get(json_object_get(doc, "operations"), 0), "classification"),
            rows[i].is);
        json_decref(doc);
        json_decref(file);
    }
}

static void a_reserved_word_is_a_good_slug(void **state)
{
    json_t *file = parse(good);

    (void)state;
    put(file, "/slug", json_string("elaichi"));
    json_decref(check_good(file));
    json_decref(file);
}

static void the_file_comes_back_and_gives_the_same_document(void **state)
{
    json_t *file = with_operation(rich);
    json_t *doc = check_good(file);
    json_t *again = NULL;
    json_t *doc_again;
    const json_t *op;

    (void)state;
    assert_int_equal(pd_catalog_file(doc, &again), PD_OK);
    op = json_array_get(json_object_get(again, "operations"), 0);
    assert_string_equal(mcp_json_str(op, "path"),
                        "/items/{id}/parts/{part}?mode=full&a%20b=1%262&flag");
    assert_null(json_object_get(op, "query"));
    doc_again = check_good(again);
    assert_true(json_equal(doc, doc_again));
    json_decref(doc_again);
    json_decref(again);
    json_decref(doc);
    json_decref(file);
}

/* --- names of arguments -------------------------------------------------------------------- */

static void a_name_that_is_taken_gets_the_prefix_of_its_place(void **state)
{
    json_t *schema = schema_of(rich);
    const json_t *properties = json_object_get(schema, "properties");
    static const char *const names[] = {"id",        "part",      "query_id",
                                        "header_id", "cookie_id", "body_id"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++) {
        assert_non_null(json_object_get(properties, names[i]));
    }
    assert_null(json_object_get(properties, "v"));     /* fixed */
    assert_int_equal(json_object_size(properties), 7); /* and the hashed name of "q y" */
    assert_string_equal(mcp_json_str(json_object_get(properties, "body_id"), "description"),
                        "New id");
    json_decref(schema);
}

static void a_prefixed_name_never_takes_a_real_one(void **state)
{
    json_t *schema =
        schema_of("{\"id\":\"a\",\"method\":\"POST\",\"path\":\"/{x}\",\"description\":\"d\","
                  "\"parameters\":[{\"name\":\"x\",\"in\":\"query\",\"schema\":{\"title\":\"Q\"}},"
                  "{\"name\":\"x\",\"in\":\"path\",\"schema\":{\"title\":\"P\"}},"
                  "{\"name\":\"query_x\",\"in\":\"header\",\"schema\":{\"title\":\"H\"}}],"
                  "\"body\":{\"content_type\":\"application/json\",\"schema\":{\"type\":\"object\","
                  "\"properties\":{\"query_x_2\":{\"title\":\"B\"}}}}}");

    (void)state;
    assert_json(
        schema,
        "{\"type\":\"object\",\"properties\":{\"query_x_3\":{\"title\":\"Q\"},\"x\":{\"title\":"
        "\"P\"},"
        "\"query_x\":{\"title\":\"H\"},\"query_x_2\":{\"title\":\"B\"}},\"required\":[\"x\"],"
        "\"additionalProperties\":false}");
}

static void a_body_that_is_not_flat_is_one_argument(void **state)
{
    static const char *const schemas[] = {
        "{\"type\":\"array\",\"items\":{}}",
        "{\"type\":\"object\"}",
        "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":{}}",
        "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":true}",
        "{\"type\":\"object\",\"properties\":{\"a\":{}},\"minProperties\":1}",
        "{\"type\":\"object\",\"properties\":{\"a\":{}},\"allOf\":[{}]}",
        "{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"b\"]}",
        "{\"type\":\"object\",\"properties\":{\"\":{}}}",
        "{\"type\":[\"object\",\"null\"],\"properties\":{\"a\":{}}}"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(schemas); i++) {
        json_t *schema = schema_of(
            apr_psprintf(pool,
                         "{\"id\":\"a\",\"method\":\"POST\",\"path\":\"/a\",\"description\":\"d\","
                         "\"body\":{\"content_type\":\"application/json\",\"required\":true,"
                         "\"description\":\"D\",\"schema\":%s}}",
                         schemas[i]));
        const json_t *body = json_object_get(json_object_get(schema, "properties"), "body");

        assert_string_equal(mcp_json_str(body, "description"), "D");
        assert_int_equal(json_object_size(json_object_get(schema, "properties")), 1);
        assert_string_equal(
            json_string_value(json_array_get(json_object_get(schema, "required"), 0)), "body");
        json_decref(schema);
    }
}

static void members_of_an_optional_body_are_required_together(void **state)
{
    json_t *schema =
        schema_of("{\"id\":\"a\",\"method\":\"POST\",\"path\":\"/a\",\"description\":\"d\","
                  "\"body\":{\"content_type\":\"application/json\",\"schema\":{\"type\":\"object\","
                  "\"properties\":{\"r1\":{},\"o\":{},\"r2\":{}},\"required\":[\"r1\",\"r2\"]}}}");

    (void)state;
    assert_true(validates(schema, "{}"));
    assert_true(validates(schema, "{\"r1\":1,\"r2\":2}"));
    assert_true(validates(schema, "{\"r1\":1,\"r2\":2,\"o\":3}"));
    assert_false(validates(schema, "{\"r1\":1}"));
    assert_false(validates(schema, "{\"r2\":1}"));
    assert_false(validates(schema, "{\"o\":1}"));
    assert_false(validates(schema, "{\"o\":1,\"r1\":1}"));
    json_decref(schema);
}

/* --- definitions ------------------------------------------------------------------------------ */

#define OPERATION_OF_TWO(a, b)                                                                     \
    "{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/a\",\"description\":\"d\",\"parameters\":["      \
    "{\"name\":\"a\",\"in\":\"query\",\"schema\":" a                                               \
    "},{\"name\":\"b\",\"in\":\"query\",\"schema\":" b "}]}"

static void definitions_move_to_the_root(void **state)
{
    json_t *schema = schema_of(OPERATION_OF_TWO(
        "{\"$ref\":\"#/definitions/t\",\"definitions\":{\"t\":{\"type\":\"string\"}}}",
        "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n~1m%25\"},"
        "\"$defs\":{\"n/m%\":{\"properties\":{\"next\":{\"$ref\":\"#/$defs/n~1m%25\"}}}}}"));

    (void)state;
    assert_true(validates(schema, "{\"a\":\"x\",\"b\":[{\"next\":{\"next\":{}}}]}"));
    assert_false(validates(schema, "{\"a\":1}"));
    assert_json(
        schema,
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
        "t\"},\"b\":{\"type\":\"array\","
        "\"items\":{\"$ref\":\"#/$defs/n~1m%25\"}}},\"required\":[],\"additionalProperties\":false,"
        "\"$defs\":{\"t\":{\"type\":\"string\"},\"n/m%\":{\"properties\":{\"next\":{\"$ref\":"
        "\"#/$defs/n~1m%25\"}}}}}");
}

static void equal_definitions_are_shared_and_others_renamed(void **state)
{
    json_t *schema = schema_of(
        OPERATION_OF_TWO("{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":\"string\"}}}",
                         "{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":\"string\"}}}"));

    (void)state;
    assert_int_equal(json_object_size(json_object_get(schema, "$defs")), 1);
    json_decref(schema);
    /* u is the same in both, but refers to a t that is not: both are renamed */
    schema = schema_of(OPERATION_OF_TWO(
        "{\"$ref\":\"#/$defs/"
        "u\",\"$defs\":{\"t\":{\"type\":\"string\"},\"u\":{\"items\":{\"$ref\":\"#/$defs/t\"}}}}",
        "{\"$ref\":\"#/$defs/"
        "u\",\"$defs\":{\"t\":{\"type\":\"integer\"},\"u\":{\"items\":{\"$ref\":\"#/$defs/"
        "t\"}}}}"));
    assert_true(validates(schema, "{\"a\":[\"x\"],\"b\":[1]}"));
    assert_false(validates(schema, "{\"a\":[1]}"));
    assert_false(validates(schema, "{\"b\":[\"x\"]}"));
    assert_json(json_incref(json_object_get(schema, "$defs")),
                "{\"t\":{\"type\":\"string\"},\"u\":{\"items\":{\"$ref\":\"#/$defs/t\"}},"
                "\"t_2\":{\"type\":\"integer\"},\"u_2\":{\"items\":{\"$ref\":\"#/$defs/t_2\"}}}");
    json_decref(schema);
    /* a definition that already has the name a renamed one would get */
    schema = schema_of(
        OPERATION_OF_TWO("{\"$ref\":\"#/$defs/"
                         "t\",\"$defs\":{\"t\":{\"type\":\"string\"},\"t_2\":{\"type\":\"null\"}}}",
                         "{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":\"integer\"}}}"));
    assert_true(validates(schema, "{\"a\":\"x\",\"b\":1}"));
    assert_false(validates(schema, "{\"b\":null}"));
    assert_non_null(json_object_get(json_object_get(schema, "$defs"), "t_3"));
    json_decref(schema);
}

static void what_only_looks_like_a_reference_stays(void **state)
{
    json_t *schema = schema_of(OPERATION_OF_TWO(
        "{\"const\":{\"$ref\":\"nowhere\",\"$id\":\"x\"},\"examples\":[{\"$ref\":\"#\"}]}",
        "{\"type\":\"object\",\"properties\":{\"$ref\":{\"type\":\"string\"},\"id\":{\"type\":"
        "\"string\"}}}"));

    (void)state;
    assert_true(
        validates(schema, "{\"a\":{\"$ref\":\"nowhere\",\"$id\":\"x\"},\"b\":{\"$ref\":\"y\"}}"));
    assert_false(validates(schema, "{\"b\":{\"$ref\":1}}"));
    json_decref(schema);
}

static void a_flat_body_brings_its_definitions(void **state)
{
    json_t *schema = schema_of(
        "{\"id\":\"a\",\"method\":\"POST\",\"path\":\"/a\",\"description\":\"d\","
        "\"body\":{\"content_type\":\"application/json\",\"required\":true,\"schema\":{"
        "\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
        "\"properties\":{\"a\":{\"$ref\":\"#/$defs/t\"},\"b\":true},\"required\":[\"a\"],"
        "\"additionalProperties\":false,\"$defs\":{\"t\":{\"type\":\"string\"}}}}}");

    (void)state;
    assert_true(validates(schema, "{\"a\":\"x\",\"b\":1}"));
    assert_false(validates(schema, "{\"a\":1}"));
    assert_false(validates(schema, "{}"));
    assert_false(validates(schema, "{\"a\":\"x\",\"c\":1}"));
    json_decref(schema);
}

/* ------------------------------------------------------------------------------- */

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_bad_file_is_refused_with_place_and_remedy),
                                       TEST(what_is_no_object_is_refused),
                                       TEST(a_parameter_can_not_carry_the_credential),
                                       TEST(operations_are_taken_up_to_the_limit),
                                       TEST(a_schema_is_taken_up_to_its_limit_in_bytes),
                                       TEST(definitions_are_taken_up_to_their_limit),
                                       TEST(a_good_file_is_completed),
                                       TEST(a_classification_follows_the_method_unless_it_is_said),
                                       TEST(a_reserved_word_is_a_good_slug),
                                       TEST(the_file_comes_back_and_gives_the_same_document),
                                       TEST(a_name_that_is_taken_gets_the_prefix_of_its_place),
                                       TEST(a_prefixed_name_never_takes_a_real_one),
                                       TEST(a_body_that_is_not_flat_is_one_argument),
                                       TEST(members_of_an_optional_body_are_required_together),
                                       TEST(definitions_move_to_the_root),
                                       TEST(equal_definitions_are_shared_and_others_renamed),
                                       TEST(what_only_looks_like_a_reference_stays),
                                       TEST(a_flat_body_brings_its_definitions)};

    return cmocka_run_group_tests(tests, begin, end);
}
