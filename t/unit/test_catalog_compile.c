/* What becomes of a connector: compiled operations, base URLs, credentials; and the connectors
 * that ship. */
#include "catalog_fixture.h"

/* --- the compiled form --------------------------------------------------------------- */

static void an_operation_is_compiled_to_its_blob(void **state)
{
    json_t *file = with_operation(rich);
    json_t *doc = check_good(file);
    pd_connector_t *connector = compile(doc);
    const pd_operation_t *o = pd_catalog_operation(connector, "edit/item");
    char digest[MCP_DIGEST_HEX + 1];
    json_t *blob;

    (void)state;
    json_decref(doc); /* not needed any longer */
    json_decref(file);
    assert_non_null(o);
    assert_string_equal(o->method, "PATCH");
    assert_string_equal(o->path, "/items/{id}/parts/{+part}?mode=full&a%20b=1%262&flag");
    assert_string_equal(o->title, "Edit");
    assert_int_equal(o->klass, MCP_CLASS_WRITE);
    assert_int_equal(o->schema_bytes, strlen(o->schema));
    assert_int_equal(o->blob_bytes, strlen(o->blob));
    mcp_digest_hex(o->blob, o->blob_bytes, digest);
    assert_string_equal(o->digest, digest);
    assert_json(json_deep_copy(o->query),
                "[[\"mode\",\"full\"],[\"a b\",\"1&2\"],[\"flag\",\"\"]]");
    blob = parse(o->blob);
    assert_string_equal(mcp_json_str(blob, "path"), "/items/{id}/parts/{part}");
    assert_json(json_incref(json_array_get(json_object_get(blob, "parameters"), 1)),
                "{\"arg\":\"part\",\"name\":\"part\",\"in\":\"path\",\"required\":true,\"multi_"
                "segment\":true}");
    assert_json(json_incref(json_array_get(json_object_get(blob, "parameters"), 2)),
                "{\"arg\":\"query_id\",\"name\":\"id\",\"in\":\"query\"}");
    assert_json(json_incref(json_array_get(json_object_get(blob, "parameters"), 5)),
                "{\"arg\":\"v\",\"name\":\"v\",\"in\":\"query\",\"style\":\"pipeDelimited\","
                "\"fixed\":[1,2]}");
    assert_json(
        json_incref(json_array_get(json_object_get(blob, "parameters"), 7)),
        "{\"arg\":\"a b\",\"name\":\"a b\",\"in\":\"query\",\"required\":true,\"fixed\":\"1&2\"}");
    assert_true(mcp_json_bool(json_object_get(blob, "body"), "flatten"));
    assert_json(
        json_incref(json_array_get(json_object_get(json_object_get(blob, "body"), "fields"), 0)),
        "{\"name\":\"id\",\"arg\":\"body_id\"}");
    assert_null(json_object_get(json_object_get(blob, "body"), "schema"));
    assert_json(json_incref(json_object_get(blob, "schema")), o->schema);
    json_decref(blob);
    pd_catalog_release(&connector);
    assert_null(connector);
}

static void operations_are_sorted_and_found_by_id(void **state)
{
    json_t *doc = check_text(good);
    pd_connector_t *connector = compile(doc);
    pd_connector_t *second = connector;

    (void)state;
    assert_int_equal(connector->operations->nelts, 2);
    assert_string_equal(APR_ARRAY_IDX(connector->operations, 0, pd_operation_t).id, "add_item");
    assert_ptr_equal(pd_catalog_operation(connector, "get_item"),
                     &APR_ARRAY_IDX(connector->operations, 1, pd_operation_t));
    assert_null(pd_catalog_operation(connector, "get_items"));
    assert_string_equal(connector->slug, "shop");
    assert_string_equal(connector->description, "");
    assert_int_equal(connector->timeout_ms, 30000);
    assert_null(json_object_get(connector->doc, "operations"));
    pd_catalog_retain(connector);
    pd_catalog_release(&connector);
    assert_string_equal(second->label, "Shop"); /* the second reference holds it */
    pd_catalog_release(&second);
    json_decref(doc);
}

static void a_guard_has_a_row_for_each_operation_in_their_order(void **state)
{
    json_t *file = parse(good);
    json_t *doc;
    pd_connector_t *connector;
    char digest[MCP_DIGEST_HEX + 1];

    (void)state;
    put(file, "/operations/2", parse(rich));
    doc = check_good(file);
    connector = compile(doc);
    assert_int_equal(connector->guard_bytes, strlen(connector->guard));
    mcp_digest_hex(connector->guard, connector->guard_bytes, digest);
    assert_string_equal(connector->guard_digest, digest);
    /* literals of the query as they stand in the template, percent-encoded; nothing of any caller */
    assert_string_equal(
        connector->guard,
        "{\"connector\":\"shop\",\"operations\":["
        "{\"id\":\"add_item\",\"method\":\"POST\",\"path\":\"/items\",\"query\":[]},"
        "{\"id\":\"edit/item\",\"method\":\"PATCH\",\"path\":\"/items/{id}/parts/{+part}\","
        "\"query\":[[\"mode\",\"full\"],[\"a%20b\",\"1%262\"],[\"flag\",\"\"]]},"
        "{\"id\":\"get_item\",\"method\":\"GET\",\"path\":\"/items/{id}\",\"query\":[]}]}");
    pd_catalog_release(&connector);
    json_decref(doc);
    json_decref(file);
}

static void what_was_never_checked_is_not_compiled(void **state)
{
    static const char *const texts[] = {"{}",
                                        "{\"slug\":\"a\",\"label\":\"b\",\"base_url\":\"c\"}"};
    pd_connector_t *connector = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(texts); i++) {
        json_t *doc = parse(texts[i]);

        assert_int_equal(pd_catalog_compile("con_1", doc, &connector), PD_E_INVALID);
        json_decref(doc);
    }
    assert_null(connector);
}

/* --- base URLs ----------------------------------------------------------------------- */

static void variables_make_the_base_url(void **state)
{
    static const struct {
        const char *base_url;
        const char *declared;
        const char *given; /* NULL: none */
        const char *is;    /* NULL: refused */
    } rows[] = {
        {"https://{h}/api/", "{\"h\":{\"pattern\":\"[a-z.:0-9]+\",\"default\":\"a.b\"}}", NULL,
         "https://a.b/api"},
        {"https://{h}/api/", "{\"h\":{\"pattern\":\"[a-z.:0-9]+\",\"default\":\"a.b\"}}",
         "{\"h\":\"c.d:8443\"}", "https://c.d:8443/api"},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"EXAMPLE.com:443\"}",
         "https://example.com"},
        {"http://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"example.com:443\"}",
         "http://example.com:443"},
        {"http://{h}:{p}", "{\"h\":{\"pattern\":\".*\"},\"p\":{\"enum\":[\"80\",\"81\"]}}",
         "{\"h\":\"[fe80::1]\",\"p\":\"80\"}", "http://[fe80::1]"},
        {"http://{h}:{p}", "{\"h\":{\"pattern\":\".*\"},\"p\":{\"enum\":[\"80\",\"81\"]}}",
         "{\"h\":\"[fe80::1]\",\"p\":\"82\"}", NULL},
        /* nothing that a host can't hold gets through, whatever the pattern says */
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a.b/c\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"u@a.b\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a.b?\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a.b#\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a%2eb\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a..b\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a.b:0\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a.b:65536\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a.b:65535\"}",
         "https://a.b:65535"},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a.b:1:2\"}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":7}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{}", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "[]", NULL},
        {"https://{h}", "{\"h\":{\"pattern\":\".*\"}}", "{\"h\":\"a.b\",\"x\":\"y\"}", NULL},
        /* a pattern must match as a whole, also in its last alternative */
        {"https://{s}.b.c", "{\"s\":{\"pattern\":\"x|y\"}}", "{\"s\":\"y\"}", "https://y.b.c"},
        {"https://{s}.b.c", "{\"s\":{\"pattern\":\"x|y\"}}", "{\"s\":\"xz\"}", NULL},
        {"https://{s}.b.c", "{\"s\":{\"pattern\":\"x|y\"}}", "{\"s\":\"zy\"}", NULL},
        /* paths */
        {"http://a/{r}", "{\"r\":{}}", "{\"r\":\"\"}", "http://a"},
        {"http://a/{r}/x", "{\"r\":{}}", "{\"r\":\"\"}", "http://a/x"},
        {"http://a/{r}", "{\"r\":{}}", "{\"r\":\"d/e f/\"}", "http://a/d/e%20f"},
        {"http://a/{r}", "{\"r\":{}}", "{\"r\":\"d/../e\"}", NULL},
        {"http://a/{r}.", "{\"r\":{}}", "{\"r\":\".\"}", NULL},
        {"http://a/{r}", "{\"r\":{}}", "{\"r\":\"%2e%2e\"}", NULL},
        {"http://a/{r}", "{\"r\":{}}", "{\"r\":\"a?b#c\"}", "http://a/a%3Fb%23c"},
        {"http://a/{r}", "{\"r\":{}}", "{\"r\":\"a\\\\b\"}", NULL},
        {"http://a/{r}", "{\"r\":{\"enum\":[\"v1\",\"v2\"]}}", "{\"r\":\"v3\"}", NULL},
        {"http://a/x%20y", "{}", NULL, "http://a/x%20y"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        json_t *file = parse(good);
        json_t *given = rows[i].given == NULL ? NULL : parse(rows[i].given);
        const char *base = NULL;
        pd_fault_t fault = {.code = MCP_CODE_NONE};
        json_t *doc;
        pd_status_t status;

        put(file, "/base_url", json_string(rows[i].base_url));
        put(file, "/variables", parse(rows[i].declared));
        doc = check_good(file);
        status = pd_catalog_base_url(doc, given, pool, &base, &fault);
        if (rows[i].is == NULL) {
            if (status != PD_E_INVALID || base != NULL || fault.code != MCP_CODE_INVALID_REQUEST) {
                fail_msg("%s with %s became %s", rows[i].base_url, rows[i].given, base);
            }
        } else {
            if (status != PD_OK) {
                fail_msg("%s with %s: %s", rows[i].base_url, rows[i].given, fault.message);
            }
            assert_string_equal(base, rows[i].is);
        }
        json_decref(given);
        json_decref(doc);
        json_decref(file);
    }
}

static void an_origin_is_scheme_host_and_port(void **state)
{
    (void)state;
    assert_string_equal(pd_catalog_origin("https://a.b:8443/c/d", pool), "https://a.b:8443");
    assert_string_equal(pd_catalog_origin("http://a", pool), "http://a");
    assert_null(pd_catalog_origin("http://", pool));
    assert_null(pd_catalog_origin("http:///x", pool));
    assert_null(pd_catalog_origin("ftp://a", pool));
    assert_null(pd_catalog_origin("", pool));
}

/* --- credentials --------------------------------------------------------------------- */

static void a_credential_has_the_form_of_its_scheme(void **state)
{
    static const struct {
        const char *auth;
        const char *credential;
        const char *plan; /* NULL: refused */
    } rows[] = {
        {"{\"type\":\"none\"}", "{}", "{\"type\":\"none\"}"},
        {"{\"type\":\"none\"}", "{\"value\":\"s3cret\"}", NULL},
        {"{\"type\":\"api_key\",\"in\":\"header\",\"name\":\"X-Key\"}", "{\"value\":\"s3cret\"}",
         "{\"type\":\"header\",\"name\":\"X-Key\",\"value\":\"s3cret\"}"},
        {"{\"type\":\"api_key\",\"in\":\"query\",\"name\":\"key\"}", "{\"value\":\"s3cret &\"}",
         "{\"type\":\"query\",\"name\":\"key\",\"value\":\"s3cret &\"}"},
        {"{\"type\":\"api_key\",\"in\":\"header\",\"name\":\"X-Key\"}",
         "{\"value\":\"s3cret\\r\\nX: y\"}", NULL},
        {"{\"type\":\"api_key\",\"in\":\"header\",\"name\":\"X-Key\"}", "{\"value\":\" s3cret\"}",
         NULL},
        {"{\"type\":\"api_key\",\"in\":\"query\",\"name\":\"key\"}",
         "{\"value\":\"s3cret\\u0001\"}", NULL},
        {"{\"type\":\"api_key\",\"in\":\"query\",\"name\":\"key\"}", "{\"value\":\"\"}", NULL},
        {"{\"type\":\"api_key\",\"in\":\"query\",\"name\":\"key\"}", "{}", NULL},
        {"{\"type\":\"api_key\",\"in\":\"query\",\"name\":\"key\"}",
         "{\"value\":\"s3cret\",\"token\":\"s3cret\"}", NULL},
        {"{\"type\":\"api_key\",\"in\":\"query\",\"name\":\"key\"}", "{\"value\":[\"s3cret\"]}",
         NULL},
        {"{\"type\":\"basic\"}", "{\"username\":\"Aladdin\",\"password\":\"open sesame\"}",
         "{\"type\":\"header\",\"name\":\"Authorization\",\"value\":\"Basic "
         "QWxhZGRpbjpvcGVuIHNlc2FtZQ==\"}"},
        {"{\"type\":\"basic\"}", "{\"username\":\"u\",\"password\":\"\"}",
         "{\"type\":\"header\",\"name\":\"Authorization\",\"value\":\"Basic dTo=\"}"},
        {"{\"type\":\"basic\"}", "{\"username\":\"a:s3cret\",\"password\":\"p\"}", NULL},
        {"{\"type\":\"basic\"}", "{\"username\":\"s3cret\"}", NULL},
        {"{\"type\":\"bearer\"}", "{\"token\":\"s3cret\"}",
         "{\"type\":\"header\",\"name\":\"Authorization\",\"value\":\"Bearer s3cret\"}"},
        {"{\"type\":\"bearer\",\"prefix\":\"Token\"}", "{\"token\":\"s3cret\"}",
         "{\"type\":\"header\",\"name\":\"Authorization\",\"value\":\"Token s3cret\"}"},
        {"{\"type\":\"bearer\"}", "{\"token\":\"s3cret x\"}", NULL},
        {"{\"type\":\"bearer\"}", "{\"token\":\"s3cr\\u00e9t\"}", NULL},
        {"{\"type\":\"bearer\"}", "[]", NULL}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        json_t *file = parse(good);
        json_t *credential = parse(rows[i].credential);
        json_t *plan = NULL;
        json_t *doc;
        pd_fault_t fault = {.code = MCP_CODE_NONE};
        pd_status_t status;

        put(file, "/auth", parse(rows[i].auth));
        doc = check_good(file);
        assert_int_equal(pd_catalog_needs_credential(doc), strstr(rows[i].auth, "none") == NULL);
        status = pd_catalog_credential_check(doc, credential, &fault);
        if (rows[i].plan == NULL) {
            if (status != PD_E_INVALID) {
                fail_msg("%s took %s", rows[i].auth, rows[i].credential);
            }
            assert_non_null(strstr(fault.message, "/credential"));
            assert_null(strstr(fault.message, "s3cr"));
            if (pd_catalog_needs_credential(doc)) {
                assert_int_equal(pd_catalog_auth(doc, credential, &plan), PD_E_INVALID);
            }
            assert_null(plan);
        } else {
            assert_int_equal(status, PD_OK);
            assert_int_equal(pd_catalog_auth(doc, credential, &plan), PD_OK);
            assert_json(plan, rows[i].plan);
        }
        plan = NULL;
        if (pd_catalog_needs_credential(doc)) {
            assert_int_equal(pd_catalog_auth(doc, NULL, &plan), PD_E_INVALID);
        }
        json_decref(credential);
        json_decref(doc);
        json_decref(file);
    }
}

/* --- what ships ---------------------------------------------------------------------- */

/* Text of a file of the source tree. */
static char *read_source(const char *name)
{
    const char *roots[] = {getenv("srcdir"), ".", "..", "../.."};
    size_t i;

    for (i = 0; i < COUNT(roots); i++) {
        FILE *file =
            roots[i] == NULL ? NULL : fopen(apr_pstrcat(pool, roots[i], "/", name, NULL), "rb");

        if (file != NULL) {
            char *text = apr_pcalloc(pool, 128 * 1024);
            size_t bytes = fread(text, 1, 128 * 1024 - 1, file);

            assert_true(bytes > 0);
            assert_int_equal(fclose(file), 0);
            return text;
        }
    }
    fail_msg("%s is not found from here; set srcdir", name);
    return NULL;
}

static void the_schema_in_the_program_is_the_one_that_ships(void **state)
{
    (void)state;
    assert_string_equal(read_source("conf/connector.schema.json"), pd_catalog_file_schema);
}

static void the_webdav_connector_has_every_classification(void **state)
{
    json_t *file = parse(read_source("conf/connectors/webdav.json"));
    json_t *doc = check_good(file);
    pd_connector_t *connector = compile(doc);
    const char *base = NULL;
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    int seen[MCP_CLASS_FORBIDDEN + 1] = {0};
    int i;

    (void)state;
    for (i = 0; i < connector->operations->nelts; i++) {
        seen[APR_ARRAY_IDX(connector->operations, i, pd_operation_t).klass]++;
    }
    assert_int_equal(seen[MCP_CLASS_READ], 4);
    assert_int_equal(seen[MCP_CLASS_WRITE], 3);
    assert_int_equal(seen[MCP_CLASS_DESTRUCTIVE], 2);
    assert_int_equal(seen[MCP_CLASS_FORBIDDEN], 1);
    assert_int_equal(pd_catalog_operation(connector, "move_file")->klass, MCP_CLASS_DESTRUCTIVE);
    assert_string_equal(pd_catalog_operation(connector, "read_file")->path, "/{+path}");
    assert_int_equal(pd_catalog_base_url(doc, NULL, pool, &base, &fault), PD_OK);
    assert_string_equal(base, "http://127.0.0.1:8081");
    pd_catalog_release(&connector);
    json_decref(doc);
    json_decref(file);
}

static void webdav_arguments_are_validated(void **state)
{
    static const struct {
        const char *operation;
        const char *good;
        const char *bad[5];
    } rows[] = {
        {"list_root", "{}", {"{\"path\":\"a\"}", "{\"Depth\":\"infinity\"}", "[]"}},
        {"list_files",
         "{\"path\":\"a/b/\"}",
         {"{}", "{\"path\":1}", "{\"path\":\"\"}", "{\"path\":\"a\",\"Depth\":\"1\"}"}},
        {"read_file",
         "{\"path\":\"a.txt\",\"Range\":\"bytes=0-9\"}",
         {"{}", "{\"path\":null}", "{\"path\":\"a\",\"Range\":\"lines=1\"}",
          "{\"path\":\"a\",\"x\":1}"}},
        {"file_info", "{\"path\":\"a.txt\"}", {"{}", "{\"path\":[]}"}},
        {"write_file",
         "{\"path\":\"a.txt\",\"content\":\"\"}",
         {"{\"path\":\"a.txt\"}", "{\"content\":\"x\"}", "{\"path\":\"a\",\"content\":{}}",
          "{\"path\":\"a\",\"body\":\"x\"}"}},
        {"make_folder", "{\"path\":\"a/\"}", {"{}", "{\"path\":false}"}},
        {"copy_file",
         "{\"path\":\"a\",\"Destination\":\"b\"}",
         {"{\"path\":\"a\"}", "{\"Destination\":\"b\"}",
          "{\"path\":\"a\",\"Destination\":\"b\",\"Overwrite\":\"T\"}"}},
        {"move_file",
         "{\"path\":\"a\",\"Destination\":\"b\",\"Overwrite\":\"F\"}",
         {"{\"path\":\"a\",\"Destination\":\"b\"}",
          "{\"path\":\"a\",\"Destination\":\"b\",\"Overwrite\":\"f\"}",
          "{\"path\":\"a\",\"Destination\":\"\",\"Overwrite\":\"F\"}"}},
        {"delete_file", "{\"path\":\"a\"}", {"{}", "{\"path\":{}}"}},
        {"lock_file", "{\"path\":\"a\",\"lockinfo\":\"<x/>\"}", {"{\"path\":\"a\"}", "{}"}}};
    json_t *file = parse(read_source("conf/connectors/webdav.json"));
    json_t *doc = check_good(file);
    pd_connector_t *connector = compile(doc);
    size_t i;
    size_t k;

    (void)state;
    assert_int_equal(connector->operations->nelts, COUNT(rows));
    for (i = 0; i < COUNT(rows); i++) {
        const pd_operation_t *o = pd_catalog_operation(connector, rows[i].operation);
        json_t *schema;

        assert_non_null(o);
        schema = parse(o->schema);
        if (!validates(schema, rows[i].good)) {
            fail_msg("%s refuses %s", rows[i].operation, rows[i].good);
        }
        for (k = 0; k < COUNT(rows[i].bad) && rows[i].bad[k] != NULL; k++) {
            if (validates(schema, rows[i].bad[k])) {
                fail_msg("%s takes %s", rows[i].operation, rows[i].bad[k]);
            }
        }
        json_decref(schema);
    }
    pd_catalog_release(&connector);
    json_decref(doc);
    json_decref(file);
}

static void the_webdav_file_comes_back_as_it_was(void **state)
{
    json_t *file = parse(read_source("conf/connectors/webdav.json"));
    json_t *doc = check_good(file);
    json_t *again = NULL;
    json_t *doc_again;

    (void)state;
    assert_int_equal(pd_catalog_file(doc, &again), PD_OK);
    doc_again = check_good(again);
    assert_true(json_equal(doc, doc_again));
    json_decref(doc_again);
    json_decref(again);
    json_decref(doc);
    json_decref(file);
}

/* ------------------------------------------------------------------------------- */

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(an_operation_is_compiled_to_its_blob),
                                       TEST(operations_are_sorted_and_found_by_id),
                                       TEST(a_guard_has_a_row_for_each_operation_in_their_order),
                                       TEST(what_was_never_checked_is_not_compiled),
                                       TEST(variables_make_the_base_url),
                                       TEST(an_origin_is_scheme_host_and_port),
                                       TEST(a_credential_has_the_form_of_its_scheme),
                                       TEST(the_schema_in_the_program_is_the_one_that_ships),
                                       TEST(the_webdav_connector_has_every_classification),
                                       TEST(webdav_arguments_are_validated),
                                       TEST(the_webdav_file_comes_back_as_it_was)};

    return cmocka_run_group_tests(tests, begin, end);
}
