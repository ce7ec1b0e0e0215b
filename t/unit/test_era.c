/* Room mcp_era: the classifier row by row, the modern envelope, mirrored headers, annotations. */
#include "mcp_era.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../proto/mcp_hash.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    if (apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK)
        return -1;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

#define V    "\"io.modelcontextprotocol/protocolVersion\":"
#define C    "\"io.modelcontextprotocol/clientCapabilities\":"
#define INFO "\"io.modelcontextprotocol/clientInfo\":"
#define LOG  "\"io.modelcontextprotocol/logLevel\":"
#define MODERN V "\"2026-07-28\"," C "{}"

/* Classifies a message given without its jsonrpc member. */
static mcp_fail_t classify(const mcp_era_headers_t *headers, const char *members, mcp_era_t *era,
                           mcp_err_t *err)
{
    mcp_rpc_body_t body;
    const char *text = apr_pstrcat(pool, "{\"jsonrpc\":\"2.0\",", members, "}", NULL);
    memset(err, 0, sizeof *err);
    memset(era, 0x5a, sizeof *era);
    assert_int_equal(mcp_rpc_parse(text, strlen(text), pool, &body, err), APR_SUCCESS);
    if (body.messages[0].err.fail != MCP_FAIL_NONE)
        fail_msg("no sound message: %s", members);
    apr_status_t status = mcp_era_classify(headers, &body.messages[0], pool, era, err);
    if (status != APR_SUCCESS) {
        assert_int_equal(status, MCP_STATUS_REFUSED);
        assert_non_null(err->message);
        return err->fail;
    }
    assert_int_equal(err->fail, MCP_FAIL_NONE);
    return MCP_FAIL_NONE;
}

static const char *request(const char *method, const char *params)
{
    return apr_psprintf(pool, "\"id\":1,\"method\":\"%s\",\"params\":{%s}", method, params);
}

static const char *with_meta(const char *meta)
{
    return apr_psprintf(pool, "\"_meta\":{%s}", meta);
}

static void requests_follow_the_rows_of_the_classifier(void **state)
{
    static const struct {
        const char *header, *meta, *method;
        mcp_fail_t fail;
        int is_modern, is_initialize;
        mcp_revision_t revision;
    } rows[] = {
        /* 1: a claim that is no string */
        {NULL, V "5", "tools/list", MCP_FAIL_ENVELOPE, 0, 0, 0},
        {"2026-07-28", V "null", "tools/list", MCP_FAIL_ENVELOPE, 0, 0, 0},
        {"2025-11-25", V "{}", "initialize", MCP_FAIL_ENVELOPE, 0, 0, 0},
        /* 2: a claim without header */
        {NULL, MODERN, "tools/list", MCP_FAIL_HEADER, 0, 0, 0},
        {NULL, MODERN, "initialize", MCP_FAIL_HEADER, 0, 0, 0},
        {NULL, V "\"2025-11-25\"", "tools/list", MCP_FAIL_HEADER, 0, 0, 0},
        /* 3: they differ */
        {"2025-11-25", MODERN, "tools/list", MCP_FAIL_HEADER, 0, 0, 0},
        {"2026-07-28", V "\"v999\"," C "{}", "tools/list", MCP_FAIL_HEADER, 0, 0, 0},
        {"", MODERN, "tools/list", MCP_FAIL_HEADER, 0, 0, 0},
        {"2026-07-28, 2026-07-28", MODERN, "tools/list", MCP_FAIL_HEADER, 0, 0, 0},
        /* 4: not a modern version that is served */
        {"v999", V "\"v999\"," C "{}", "server/discover", MCP_FAIL_VERSION, 0, 0, 0},
        {"2025-11-25", V "\"2025-11-25\"," C "{}", "tools/list", MCP_FAIL_VERSION, 0, 0, 0},
        {"2025-11-25", V "\"2025-11-25\"", "initialize", MCP_FAIL_VERSION, 0, 0, 0},
        /* 5: removed methods */
        {"2026-07-28", MODERN, "initialize", MCP_FAIL_METHOD, 0, 0, 0},
        {"2026-07-28", MODERN, "ping", MCP_FAIL_METHOD, 0, 0, 0},
        {"2026-07-28", MODERN, "logging/setLevel", MCP_FAIL_METHOD, 0, 0, 0},
        {"2026-07-28", MODERN, "resources/subscribe", MCP_FAIL_METHOD, 0, 0, 0},
        {"2026-07-28", MODERN, "resources/unsubscribe", MCP_FAIL_METHOD, 0, 0, 0},
        /* 6: modern */
        {"2026-07-28", MODERN, "tools/list", MCP_FAIL_NONE, 1, 0, MCP_REV_2026_07_28},
        {"  2026-07-28\t", MODERN, "no/such", MCP_FAIL_NONE, 1, 0, MCP_REV_2026_07_28},
        /* 7: modern header, no claim */
        {"2026-07-28", "", "tools/list", MCP_FAIL_ENVELOPE, 0, 0, 0},
        {"2026-07-28", C "{}", "tools/list", MCP_FAIL_ENVELOPE, 0, 0, 0},
        {"2026-07-28", "", "initialize", MCP_FAIL_ENVELOPE, 0, 0, 0},
        /* 8: the handshake */
        {NULL, "", "initialize", MCP_FAIL_NONE, 0, 1, MCP_REV_2025_11_25},
        {"2025-06-18", "", "initialize", MCP_FAIL_NONE, 0, 1, MCP_REV_2025_11_25},
        {"1.0", "", "initialize", MCP_FAIL_NONE, 0, 1, MCP_REV_2025_11_25},
        /* 9: a header that is not served */
        {"1.0", "", "tools/list", MCP_FAIL_VERSION, 0, 0, 0},
        {"", "", "tools/list", MCP_FAIL_VERSION, 0, 0, 0},
        {"2024-11-05", "", "ping", MCP_FAIL_VERSION, 0, 0, 0},
        /* 10 and 11: legacy */
        {"2025-11-25", "", "tools/list", MCP_FAIL_NONE, 0, 0, MCP_REV_2025_11_25},
        {"2025-06-18 ", "", "ping", MCP_FAIL_NONE, 0, 0, MCP_REV_2025_06_18},
        {"2025-03-26", "\"progressToken\":1", "tools/call", MCP_FAIL_NONE, 0, 0,
         MCP_REV_2025_03_26},
        {NULL, "", "tools/list", MCP_FAIL_NONE, 0, 0, MCP_REV_NONE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        mcp_era_headers_t headers = {rows[i].header, rows[i].method, NULL, NULL};
        mcp_era_t era;
        mcp_err_t err;
        mcp_fail_t fail =
            classify(&headers, request(rows[i].method, with_meta(rows[i].meta)), &era, &err);
        if (fail != rows[i].fail)
            fail_msg("row %zu: class %d instead of %d", i, (int)fail, (int)rows[i].fail);
        if (fail == MCP_FAIL_VERSION)
            assert_string_equal(err.requested, rows[i].header);
        if (fail != MCP_FAIL_NONE)
            continue;
        assert_int_equal(era.is_modern, rows[i].is_modern);
        assert_int_equal(era.is_initialize, rows[i].is_initialize);
        assert_int_equal(era.revision, rows[i].revision);
        assert_non_null(era.client_name);
    }
}

static void a_request_without_params_is_classified_too(void **state)
{
    mcp_era_headers_t headers = {NULL, NULL, NULL, NULL};
    mcp_era_t era;
    mcp_err_t err;
    (void)state;
    assert_int_equal(classify(&headers, "\"id\":1,\"method\":\"ping\"", &era, &err), MCP_FAIL_NONE);
    assert_null(era.meta);
    headers.version = "2026-07-28";
    assert_int_equal(classify(&headers, "\"id\":1,\"method\":\"ping\"", &era, &err),
                     MCP_FAIL_ENVELOPE);
    assert_non_null(strstr(err.message, MCP_META_VERSION));
    assert_non_null(strstr(err.message, MCP_META_CAPABILITIES));
}

static void the_rest_of_the_envelope_is_checked(void **state)
{
    static const struct {
        const char *meta;
        mcp_fail_t fail;
    } cases[] = {
        {V "\"2026-07-28\"", MCP_FAIL_ENVELOPE},
        {V "\"2026-07-28\"," C "[]", MCP_FAIL_ENVELOPE},
        {V "\"2026-07-28\"," C "null", MCP_FAIL_ENVELOPE},
        {V "\"2026-07-28\"," C "true", MCP_FAIL_ENVELOPE},
        {MODERN "," INFO "null", MCP_FAIL_ENVELOPE},
        {MODERN "," INFO "\"x\"", MCP_FAIL_ENVELOPE},
        {MODERN "," INFO "{\"name\":\"x\"}", MCP_FAIL_ENVELOPE},
        {MODERN "," INFO "{\"name\":1,\"version\":\"1\"}", MCP_FAIL_ENVELOPE},
        {MODERN ",\"progressToken\":1.5", MCP_FAIL_ENVELOPE},
        {MODERN ",\"progressToken\":null", MCP_FAIL_ENVELOPE},
        {MODERN "," LOG "\"loud\"", MCP_FAIL_PARAMS},
        {MODERN "," LOG "3", MCP_FAIL_PARAMS},
        {MODERN "," LOG "\"debug\"", MCP_FAIL_NONE},
        {MODERN ",\"progressToken\":\"t\"", MCP_FAIL_NONE},
        {MODERN ",\"progressToken\":7", MCP_FAIL_NONE},
        {MODERN ",\"vendor.example/x\":[1]", MCP_FAIL_NONE},
    };
    mcp_era_headers_t headers = {"2026-07-28", "tools/list", NULL, NULL};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_era_t era;
        mcp_err_t err;
        mcp_fail_t fail =
            classify(&headers, request("tools/list", with_meta(cases[i].meta)), &era, &err);
        if (fail != cases[i].fail)
            fail_msg("%s: class %d", cases[i].meta, (int)fail);
    }
}

static void a_meta_that_is_no_object_is_refused(void **state)
{
    static const char *const versions[] = {NULL, "2025-11-25", "2026-07-28"};
    (void)state;
    for (size_t i = 0; i < COUNT(versions); i++) {
        mcp_era_headers_t headers = {versions[i], "tools/list", NULL, NULL};
        mcp_era_t era;
        mcp_err_t err;
        assert_int_equal(classify(&headers, request("tools/list", "\"_meta\":[]"), &era, &err),
                         MCP_FAIL_ENVELOPE);
    }
}

static void what_a_client_says_of_itself_is_kept_and_cut(void **state)
{
    mcp_era_headers_t headers = {"2026-07-28", "tools/list", NULL, NULL};
    mcp_era_t era;
    mcp_err_t err;
    char name[MCP_MAX_TEXT + 10];
    (void)state;
    assert_int_equal(
        classify(&headers,
                 request("tools/list", with_meta(MODERN ",\"progressToken\":7," INFO
                                                        "{\"name\":\"X\",\"version\":\"1.2\"}")),
                 &era, &err),
        MCP_FAIL_NONE);
    assert_string_equal(era.client_name, "X");
    assert_string_equal(era.client_version, "1.2");
    assert_int_equal(json_integer_value(era.progress_token), 7);
    assert_true(json_is_object(era.capabilities));
    assert_true(json_is_object(era.meta));

    memset(name, 'n', sizeof name);
    memcpy(name + MCP_MAX_TEXT - 1, "\xc3\xa9", 3);
    assert_int_equal(
        classify(&headers,
                 request("tools/list",
                         with_meta(apr_psprintf(pool, MODERN "," INFO
                                                "{\"name\":\"%s\",\"version\":\"\"}", name))),
                 &era, &err),
        MCP_FAIL_NONE);
    assert_int_equal(strlen(era.client_name), MCP_MAX_TEXT - 1);
}

static void mirrored_headers_have_to_agree(void **state)
{
    static const struct {
        const char *method, *params, *method_header, *name_header;
        mcp_fail_t fail;
    } cases[] = {
        {"tools/list", "", NULL, NULL, MCP_FAIL_HEADER},
        {"tools/list", "", "prompts/list", NULL, MCP_FAIL_HEADER},
        {"tools/list", "", "TOOLS/LIST", NULL, MCP_FAIL_HEADER},
        {"tools/list", "", "tools/list, tools/call", NULL, MCP_FAIL_HEADER},
        {"tools/list", "", "", NULL, MCP_FAIL_HEADER},
        {"tools/list", "", " tools/list\t ", "whatever", MCP_FAIL_NONE},
        {"tools/call", "\"name\":\"t\",", "tools/call", NULL, MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"t\",", "tools/call", "other", MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"t\",", "tools/call", "T", MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"t\",", "tools/call", "t, t", MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"t\",", "tools/call", "", MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"t\",", "tools/call", "  t  ", MCP_FAIL_NONE},
        {"tools/call", "\"name\":\"search_tools\",", "tools/call", "=?base64?c2VhcmNoX3Rvb2xz?=",
         MCP_FAIL_NONE},
        {"tools/call", "\"name\":\"search_tools\",", "tools/call", "=?base64?c2VhcmNo!!?=",
         MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"Hello\",", "tools/call", "=?base64?SGVsbG8?=", MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"\xc3\xa9\",", "tools/call", "\xc3\xa9", MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"\xc3\xa9\",", "tools/call", "=?base64?w6k=?=", MCP_FAIL_NONE},
        {"tools/call", "\"name\":\"\",", "tools/call", "", MCP_FAIL_NONE},
        {"tools/call", "\"name\":\"\",", "tools/call", "=?base64?" "?=", MCP_FAIL_NONE},
        {"tools/call", "\"name\":\"\",", "tools/call", NULL, MCP_FAIL_HEADER},
        /* two headers that together spell a name with a comma */
        {"tools/call", "\"name\":\"a, b\",", "tools/call", "a, b", MCP_FAIL_HEADER},
        {"tools/call", "\"name\":\"a, b\",", "tools/call", "=?base64?YSwgYg==?=", MCP_FAIL_NONE},
        /* a body without the member is for the check of params */
        {"tools/call", "", "tools/call", NULL, MCP_FAIL_NONE},
        {"tools/call", "", "tools/call", "t", MCP_FAIL_NONE},
        {"tools/call", "\"name\":5,", "tools/call", NULL, MCP_FAIL_NONE},
        {"tools/call", "\"uri\":\"u\",", "tools/call", NULL, MCP_FAIL_NONE},
        {"prompts/get", "\"name\":\"p\",", "prompts/get", NULL, MCP_FAIL_HEADER},
        {"prompts/get", "\"name\":\"p\",", "prompts/get", "p", MCP_FAIL_NONE},
        {"resources/read", "\"uri\":\"file:///a\",", "resources/read", "file:///b",
         MCP_FAIL_HEADER},
        {"resources/read", "\"uri\":\"file:///a\",", "resources/read", "file:///a", MCP_FAIL_NONE},
        {"resources/read", "\"name\":\"n\",", "resources/read", NULL, MCP_FAIL_NONE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_era_headers_t headers = {"2026-07-28", cases[i].method_header, cases[i].name_header,
                                     "zzz"};
        mcp_era_t era;
        mcp_err_t err;
        mcp_fail_t fail = classify(
            &headers,
            request(cases[i].method, apr_pstrcat(pool, cases[i].params, with_meta(MODERN), NULL)),
            &era, &err);
        if (fail != cases[i].fail)
            fail_msg("case %zu: class %d", i, (int)fail);
        if (fail == MCP_FAIL_HEADER)
            assert_memory_equal(err.message, "Header mismatch: Mcp-", 21);
    }
}

static void legacy_requests_need_no_mirrored_headers(void **state)
{
    mcp_era_headers_t headers = {"2025-11-25", "x", "y", NULL};
    mcp_era_t era;
    mcp_err_t err;
    (void)state;
    assert_int_equal(classify(&headers, request("tools/call", "\"name\":\"t\""), &era, &err),
                     MCP_FAIL_NONE);
    assert_false(era.is_modern);
}

static void notifications_are_sorted_by_whatever_names_a_version(void **state)
{
    static const struct {
        const char *header, *meta;
        mcp_fail_t fail;
        int is_modern;
        mcp_revision_t revision;
    } cases[] = {
        {"2026-07-28", "", MCP_FAIL_NONE, 1, MCP_REV_2026_07_28},
        {NULL, MODERN, MCP_FAIL_NONE, 1, MCP_REV_2026_07_28},
        {"2026-07-28", V "\"2025-11-25\"", MCP_FAIL_NONE, 1, MCP_REV_2026_07_28},
        {NULL, "", MCP_FAIL_NONE, 0, MCP_REV_NONE},
        {"2025-06-18", "", MCP_FAIL_NONE, 0, MCP_REV_2025_06_18},
        {"v999", "", MCP_FAIL_VERSION, 0, 0},
        {"2025-06-18", V "\"v999\"", MCP_FAIL_VERSION, 0, 0},
        {"2026-07-28", V "1", MCP_FAIL_ENVELOPE, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_era_headers_t headers = {cases[i].header, NULL, NULL, NULL};
        mcp_era_t era;
        mcp_err_t err;
        mcp_fail_t fail = classify(
            &headers,
            apr_psprintf(pool, "\"method\":\"notifications/cancelled\",\"params\":{\"_meta\":{%s}}",
                         cases[i].meta),
            &era, &err);
        assert_int_equal(fail, cases[i].fail);
        if (fail != MCP_FAIL_NONE)
            continue;
        assert_int_equal(era.is_modern, cases[i].is_modern);
        assert_int_equal(era.revision, cases[i].revision);
    }
}

static void a_posted_response_is_refused_on_modern(void **state)
{
    static const char response[] = "\"id\":1,\"result\":{}";
    mcp_era_headers_t headers = {"2026-07-28", NULL, NULL, NULL};
    mcp_era_t era;
    mcp_err_t err;
    (void)state;
    assert_int_equal(classify(&headers, response, &era, &err), MCP_FAIL_REQUEST);
    headers.version = "1.0";
    assert_int_equal(classify(&headers, response, &era, &err), MCP_FAIL_VERSION);
    headers.version = NULL;
    assert_int_equal(classify(&headers, response, &era, &err), MCP_FAIL_NONE);
    assert_false(era.is_modern);
}

static void batches_belong_to_one_old_revision(void **state)
{
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"
    static const struct {
        const char *header, *text;
        mcp_revision_t session;
        mcp_fail_t fail;
    } cases[] = {
        {NULL, "[" LIST "]", MCP_REV_NONE, MCP_FAIL_NONE},
        {NULL, "[" LIST ",5]", MCP_REV_2025_03_26, MCP_FAIL_NONE},
        {"2025-03-26", "[" LIST "]", MCP_REV_NONE, MCP_FAIL_NONE},
        {"2025-06-18", "[" LIST "]", MCP_REV_NONE, MCP_FAIL_REQUEST},
        {"2025-06-18", "[" LIST "]", MCP_REV_2025_03_26, MCP_FAIL_REQUEST},
        {NULL, "[" LIST "]", MCP_REV_2025_06_18, MCP_FAIL_REQUEST},
        {"2025-03-26", "[" LIST "]", MCP_REV_2025_11_25, MCP_FAIL_REQUEST},
        {"2026-07-28", "[" LIST "]", MCP_REV_NONE, MCP_FAIL_REQUEST},
        {"1.0", "[" LIST "]", MCP_REV_NONE, MCP_FAIL_VERSION},
        {NULL, "[" LIST ",{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\"}]", MCP_REV_NONE,
         MCP_FAIL_REQUEST},
        {NULL,
         "[" LIST ",{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"x\",\"params\":{\"_meta\":{" V
         "\"2026-07-28\"}}}]",
         MCP_REV_NONE, MCP_FAIL_REQUEST},
        /* also where that element is refused for another reason */
        {NULL, "[" LIST ",{\"id\":2,\"method\":\"x\",\"params\":{\"_meta\":{" V "5}}}]",
         MCP_REV_NONE, MCP_FAIL_REQUEST},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mcp_era_headers_t headers = {cases[i].header, NULL, NULL, NULL};
        mcp_rpc_body_t body;
        mcp_err_t err;
        memset(&err, 0, sizeof err);
        assert_int_equal(mcp_rpc_parse(cases[i].text, strlen(cases[i].text), pool, &body, &err),
                         APR_SUCCESS);
        apr_status_t status = mcp_era_check_batch(&headers, &body, cases[i].session, pool, &err);
        if (err.fail != cases[i].fail)
            fail_msg("case %zu: class %d", i, (int)err.fail);
        assert_true((status == APR_SUCCESS) == (cases[i].fail == MCP_FAIL_NONE));
    }
}

static void revisions_are_negotiated_down_never_up(void **state)
{
    (void)state;
    assert_int_equal(mcp_era_negotiate("2025-11-25"), MCP_REV_2025_11_25);
    assert_int_equal(mcp_era_negotiate("2025-06-18"), MCP_REV_2025_06_18);
    assert_int_equal(mcp_era_negotiate("2025-03-26"), MCP_REV_2025_03_26);
    assert_int_equal(mcp_era_negotiate("2026-07-28"), MCP_REV_2025_11_25);
    assert_int_equal(mcp_era_negotiate("1999"), MCP_REV_2025_11_25);
    assert_int_equal(mcp_era_negotiate(NULL), MCP_REV_2025_11_25);
    mcp_era_headers_t headers = {NULL, NULL, NULL, NULL};
    mcp_era_t era;
    mcp_err_t err;
    assert_int_equal(classify(&headers,
                              request("initialize", "\"protocolVersion\":\"2025-03-26\""), &era,
                              &err),
                     MCP_FAIL_NONE);
    assert_int_equal(era.revision, MCP_REV_2025_03_26);
}

static void what_is_supported_is_listed_newest_first(void **state)
{
    (void)state;
    assert_string_equal(mcp_era_supported(NULL, 0, pool),
                        "[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\"]");
    assert_string_equal(mcp_era_supported("2025-11-25", 0, pool),
                        "[\"2026-07-28\",\"2025-06-18\",\"2025-03-26\"]");
    assert_string_equal(mcp_era_supported("v999", 1, pool), "[\"2026-07-28\"]");
    for (int i = MCP_REV_2025_03_26; i <= MCP_REV_2026_07_28; i++)
        assert_int_equal(mcp_era_from_text(mcp_era_text((mcp_revision_t)i)), i);
    assert_int_equal(mcp_era_from_text("2025-03-26 "), MCP_REV_NONE);
    assert_int_equal(mcp_era_from_text(NULL), MCP_REV_NONE);
    assert_string_equal(mcp_era_text(MCP_REV_NONE), "");
}

static void values_decode_as_the_vectors_say(void **state)
{
    static const struct {
        const char *value, *decoded; /* NULL: refused */
    } cases[] = {
        {"=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, \xe4\xb8\x96\xe7\x95\x8c"},
        {"=?base64?IHBhZGRlZCA=?=", " padded "},
        {"=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"},
        {"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="},
        {"=?base64?5pel5pys6Kqe?=", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"},
        {"us west 1", "us west 1"},
        {"=?base64?" "?=", ""},
        {"", ""},
        {"   ", ""},
        {" \t a\tb \t", "a\tb"},
        {"  =?base64?SGVsbG8=?= ", "Hello"},
        /* not both markers: as it stands */
        {"=?base64?SGVsbG8=", "=?base64?SGVsbG8="},
        {"SGVsbG8=", "SGVsbG8="},
        {"=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="},
        {"=?base64?=", "=?base64?="},
        {"SGVsbG8=?=", "SGVsbG8=?="},
        /* both, and not canonical */
        {"=?base64?SGVsbG8?=", NULL},
        {"=?base64?c2VhcmNo!!?=", NULL},
        {"=?base64?SGVsbG9=?=", NULL}, /* trailing bits */
        {"=?base64?SGVs bG8=?=", NULL},
        {"=?base64?SGVsbG8==?=", NULL},
        {"=?base64?_-8=?=", NULL},
        {"=?base64?/w==?=", NULL}, /* not UTF-8 */
        {"=?base64?YQBi?=", NULL}, /* NUL */
        {"=?base64?literal?=", NULL},
        /* bytes that may not stand in a header of ours */
        {"\xc3\xa9", NULL},
        {"a\x7f", NULL},
        {"a\x01", NULL},
        {"a\nb", NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *decoded = "untouched";
        mcp_err_t err;
        memset(&err, 0, sizeof err);
        apr_status_t status = mcp_era_decode(cases[i].value, pool, &decoded, &err);
        if (cases[i].decoded == NULL) {
            if (status != MCP_STATUS_REFUSED)
                fail_msg("accepted: %s", cases[i].value);
            assert_int_equal(err.fail, MCP_FAIL_HEADER);
            assert_string_equal(decoded, "untouched");
        } else {
            assert_int_equal(status, APR_SUCCESS);
            assert_string_equal(decoded, cases[i].decoded);
        }
    }
}

static json_t *json_of(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    if (value == NULL)
        fail_msg("no JSON: %s", text);
    return value;
}

#define S(name) "{\"type\":\"string\",\"x-mcp-header\":\"" name "\"}"

static void annotations_are_judged_by_place_and_form(void **state)
{
    static const struct {
        const char *schema;
        int is_valid;
    } cases[] = {
        {"{}", 1},
        {"true", 1},
        {"{\"type\":\"object\",\"properties\":{\"a\":" S("Region") "}}", 1},
        {"{\"properties\":{\"a\":" S("Method") ","
         "\"b\":{\"type\":\"integer\",\"x-mcp-header\":\"B\"},"
         "\"c\":{\"type\":\"boolean\",\"x-mcp-header\":\"C\"}}}", 1},
        {"{\"properties\":{\"o\":{\"type\":\"object\",\"properties\":{\"a\":" S("A") "}}}}", 1},
        /* data and names are no schemas */
        {"{\"default\":{\"x-mcp-header\":1},\"const\":{\"x-mcp-header\":1},"
         "\"enum\":[{\"x-mcp-header\":1}],\"examples\":[{\"x-mcp-header\":1}]}", 1},
        {"{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}", 1},
        {"{\"properties\":{\"default\":" S("A") "}}", 1},
        /* form */
        {"{\"properties\":{\"a\":" S("") "}}", 0},
        {"{\"properties\":{\"a\":" S("a b") "}}", 0},
        {"{\"properties\":{\"a\":" S("a:") "}}", 0},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":5}}}", 0},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":null}}}", 0},
        {"{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"}}}", 0},
        {"{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}}", 0},
        {"{\"properties\":{\"a\":{\"type\":\"object\",\"x-mcp-header\":\"A\"}}}", 0},
        {"{\"properties\":{\"a\":{\"type\":[\"string\"],\"x-mcp-header\":\"A\"}}}", 0},
        {"{\"properties\":{\"a\":" S("Region") ",\"b\":" S("rEGION") "}}", 0},
        {"{\"properties\":{\"a\":" S("A") ",\"o\":{\"properties\":{\"b\":" S("a") "}}}}", 0},
        /* place */
        {S("A"), 0},
        {"{\"items\":" S("A") "}", 0},
        {"{\"items\":[" S("A") "]}", 0},
        {"{\"prefixItems\":[" S("A") "]}", 0},
        {"{\"additionalProperties\":" S("A") "}", 0},
        {"{\"patternProperties\":{\"x\":" S("A") "}}", 0},
        {"{\"$defs\":{\"x\":" S("A") "}}", 0},
        {"{\"definitions\":{\"x\":" S("A") "}}", 0},
        {"{\"dependentSchemas\":{\"x\":" S("A") "}}", 0},
        {"{\"oneOf\":[" S("A") "]}", 0},
        {"{\"anyOf\":[{}," S("A") "]}", 0},
        {"{\"allOf\":[{\"properties\":{\"a\":" S("A") "}}]}", 0},
        {"{\"not\":" S("A") "}", 0},
        {"{\"if\":" S("A") "}", 0},
        {"{\"then\":" S("A") "}", 0},
        {"{\"else\":" S("A") "}", 0},
        {"{\"contains\":" S("A") "}", 0},
        {"{\"propertyNames\":" S("A") "}", 0},
        {"{\"unevaluatedProperties\":" S("A") "}", 0},
        {"{\"properties\":{\"a\":{\"items\":{\"properties\":{\"b\":" S("A") "}}}}}", 0},
        {"{\"properties\":{\"a\":{\"oneOf\":[" S("A") "]}}}", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *schema = json_of(cases[i].schema);
        int is_valid = mcp_era_annotations_valid(schema);
        json_decref(schema);
        if (is_valid != cases[i].is_valid)
            fail_msg("%s", cases[i].schema);
    }
}

static void annotations_are_bounded(void **state)
{
    (void)state;
    for (int count = MCP_ERA_MAX_ANNOTATIONS; count <= MCP_ERA_MAX_ANNOTATIONS + 1; count++) {
        json_t *properties = json_object();
        json_t *schema = json_object();
        for (int i = 0; i < count; i++) {
            json_t *property = json_object();
            const char *name = apr_psprintf(pool, "P%d", i);
            json_object_set_new(property, "type", json_string("string"));
            json_object_set_new(property, "x-mcp-header", json_string(name));
            json_object_set_new(properties, name, property);
        }
        json_object_set_new(schema, "properties", properties);
        assert_int_equal(mcp_era_annotations_valid(schema), count <= MCP_ERA_MAX_ANNOTATIONS);
        json_decref(schema);
    }
    json_t *deep = json_object();
    for (int i = 0; i < 2 * MCP_MAX_DEPTH; i++) {
        json_t *outer = json_object();
        json_object_set_new(outer, "not", deep);
        deep = outer;
    }
    assert_false(mcp_era_annotations_valid(deep));
    json_decref(deep);
}

static const char *header_of(void *baton, const char *name)
{
    const char *const *pairs = baton;
    for (; pairs[0] != NULL; pairs += 2)
        if (strcmp(pairs[0], name) == 0)
            return pairs[1];
    return NULL;
}

static void params_are_compared_with_their_headers(void **state)
{
    static const char schema_text[] =
        "{\"type\":\"object\",\"properties\":{\"region\":" S("Region") ","
        "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},"
        "\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"},"
        "\"o\":{\"type\":\"object\",\"properties\":{\"deep\":" S("Deep") "}},"
        "\"plain\":{\"type\":\"string\"}}}";
    static const struct {
        const char *arguments, *name, *value;
        int is_fine;
    } cases[] = {
        {"{}", "Mcp-Param-Region", NULL, 1},
        {"{}", "Mcp-Param-Region", "stray", 1},
        {"{\"region\":null}", "Mcp-Param-Region", NULL, 1},
        {"{\"region\":\"us west 1\"}", "Mcp-Param-Region", "us west 1", 1},
        {"{\"region\":\"us\"}", "Mcp-Param-Region", " us ", 1},
        {"{\"region\":\"us\"}", "Mcp-Param-Region", NULL, 0},
        {"{\"region\":\"us\"}", "Mcp-Param-Region", "eu", 0},
        {"{\"region\":\"us\"}", "Mcp-Param-Region", "US", 0},
        {"{\"region\":\"us, west\"}", "Mcp-Param-Region", "us, west", 1},
        {"{\"region\":\"\"}", "Mcp-Param-Region", "", 1},
        {"{\"region\":\"\"}", "Mcp-Param-Region", NULL, 0},
        {"{\"region\":\" padded \"}", "Mcp-Param-Region", "=?base64?IHBhZGRlZCA=?=", 1},
        {"{\"region\":\" padded \"}", "Mcp-Param-Region", " padded ", 0},
        {"{\"region\":\"us\"}", "Mcp-Param-Region", "=?base64?!?=", 0},
        {"{\"region\":\"\xc3\xa9\"}", "Mcp-Param-Region", "\xc3\xa9", 0},
        {"{\"n\":42}", "Mcp-Param-N", "42", 1},
        {"{\"n\":42}", "Mcp-Param-N", "42.0", 1},
        {"{\"n\":42}", "Mcp-Param-N", "042", 1},
        {"{\"n\":42.0}", "Mcp-Param-N", "42", 1},
        {"{\"n\":-7}", "Mcp-Param-N", "-7", 1},
        {"{\"n\":0}", "Mcp-Param-N", "-0", 1},
        {"{\"n\":0}", "Mcp-Param-N", "000", 1},
        {"{\"n\":9007199254740991}", "Mcp-Param-N", "9007199254740991", 1},
        {"{\"n\":9007199254740992}", "Mcp-Param-N", "9007199254740992", 0},
        {"{\"n\":42}", "Mcp-Param-N", "43", 0},
        {"{\"n\":42}", "Mcp-Param-N", "42.5", 0},
        {"{\"n\":42}", "Mcp-Param-N", "42.", 0},
        {"{\"n\":42}", "Mcp-Param-N", "+42", 0},
        {"{\"n\":42}", "Mcp-Param-N", "0x2a", 0},
        {"{\"n\":1000}", "Mcp-Param-N", "1e3", 0},
        {"{\"n\":0}", "Mcp-Param-N", "", 0},
        {"{\"n\":0}", "Mcp-Param-N", "-", 0},
        {"{\"n\":1}", "Mcp-Param-N", "1, 1", 0},
        {"{\"b\":true}", "Mcp-Param-B", "true", 1},
        {"{\"b\":true}", "Mcp-Param-B", "True", 0},
        {"{\"b\":false}", "Mcp-Param-B", "true", 0},
        {"{\"b\":false}", "Mcp-Param-B", NULL, 0},
        {"{\"o\":{\"deep\":\"x\"}}", "Mcp-Param-Deep", "x", 1},
        {"{\"o\":{\"deep\":\"x\"}}", "Mcp-Param-Deep", "y", 0},
        {"{\"o\":{\"deep\":\"x\"}}", "Mcp-Param-Deep", NULL, 0},
        {"{\"o\":\"x\"}", "Mcp-Param-Deep", NULL, 1},
        {"{\"plain\":\"x\"}", "Mcp-Param-plain", "y", 1},
        /* no header form: argument validation refuses these */
        {"{\"region\":[\"us\"]}", "Mcp-Param-Region", NULL, 1},
        {"{\"n\":1.5}", "Mcp-Param-N", NULL, 1},
    };
    json_t *schema = json_of(schema_text);
    (void)state;
    assert_true(mcp_era_annotations_valid(schema));
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *pairs[3] = {cases[i].value != NULL ? cases[i].name : NULL, cases[i].value,
                                NULL};
        json_t *arguments = json_of(cases[i].arguments);
        mcp_err_t err;
        memset(&err, 0, sizeof err);
        apr_status_t status =
            mcp_era_check_params(schema, arguments, header_of, pairs, pool, &err);
        json_decref(arguments);
        if ((status == APR_SUCCESS) != cases[i].is_fine)
            fail_msg("%s with %s", cases[i].arguments,
                     cases[i].value != NULL ? cases[i].value : "no header");
        assert_int_equal(err.fail, cases[i].is_fine ? MCP_FAIL_NONE : MCP_FAIL_HEADER);
    }
    assert_int_equal(mcp_era_check_params(schema, NULL, header_of, NULL, pool, NULL), APR_SUCCESS);
    json_decref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_follow_the_rows_of_the_classifier),
        cmocka_unit_test(a_request_without_params_is_classified_too),
        cmocka_unit_test(the_rest_of_the_envelope_is_checked),
        cmocka_unit_test(a_meta_that_is_no_object_is_refused),
        cmocka_unit_test(what_a_client_says_of_itself_is_kept_and_cut),
        cmocka_unit_test(mirrored_headers_have_to_agree),
        cmocka_unit_test(legacy_requests_need_no_mirrored_headers),
        cmocka_unit_test(notifications_are_sorted_by_whatever_names_a_version),
        cmocka_unit_test(a_posted_response_is_refused_on_modern),
        cmocka_unit_test(batches_belong_to_one_old_revision),
        cmocka_unit_test(revisions_are_negotiated_down_never_up),
        cmocka_unit_test(what_is_supported_is_listed_newest_first),
        cmocka_unit_test(values_decode_as_the_vectors_say),
        cmocka_unit_test(annotations_are_judged_by_place_and_form),
        cmocka_unit_test(annotations_are_bounded),
        cmocka_unit_test(params_are_compared_with_their_headers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
