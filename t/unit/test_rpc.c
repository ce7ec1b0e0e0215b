/* Room mcp_rpc: strict reading of JSON-RPC, and the texts of answers. */
#include "mcp_rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    if (apr_initialize() != APR_SUCCESS)
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

/* Parses from a block of exactly the text's size, so that a byte read too far is seen. */
static apr_status_t parse(const char *text, size_t bytes, mcp_rpc_body_t *body, mcp_err_t *err)
{
    char *exact = malloc(bytes != 0 ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    memset(err, 0, sizeof *err);
    memset(body, 0, sizeof *body);
    apr_status_t status = mcp_rpc_parse(exact, bytes, pool, body, err);
    free(exact);
    return status;
}

static const mcp_rpc_message_t *single(const char *text)
{
    static mcp_rpc_body_t body;
    mcp_err_t err;
    if (parse(text, strlen(text), &body, &err) != APR_SUCCESS)
        fail_msg("refused whole: %s", text);
    assert_int_equal(body.is_batch, 0);
    assert_int_equal(body.count, 1);
    return &body.messages[0];
}

static mcp_fail_t refused_whole(const char *text, size_t bytes)
{
    mcp_rpc_body_t body;
    mcp_err_t err;
    if (parse(text, bytes, &body, &err) != MCP_STATUS_REFUSED)
        fail_msg("not refused whole: %.*s", (int)bytes, text);
    assert_non_null(err.message);
    assert_null(body.messages);
    return err.fail;
}

static void the_raw_token_of_an_id_is_kept(void **state)
{
    static const struct {
        const char *text, *id;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"method\":\"m\"}", "\"a\\\"b\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"m\"}", "9007199254740993"},
        {"{\"jsonrpc\":\"2.0\",\"id\":-0,\"method\":\"m\"}", "-0"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"m\"}", "\"\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"method\":\"m\"}", "\"\\u0041\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa9\\\\\",\"method\":\"m\"}", "\"\xc3\xa9\\\\\""},
        {" \r\n{ \"method\" : \"m\" , \"jsonrpc\":\"2.0\" ,\t\"id\" : 7\n}\n", "7"},
        /* ids elsewhere are not the message's */
        {"{\"jsonrpc\":\"2.0\",\"params\":{\"id\":5,\"x\":[{\"id\":6}]},\"id\":2,\"method\":\"m\"}",
         "2"},
        {"{\"jsonrpc\":\"2.0\",\"params\":{\"s\":\"\\\"id\\\":9,}{\"},\"id\":3,\"method\":\"id\"}",
         "3"},
        /* an escaped key is the same key */
        {"{\"jsonrpc\":\"2.0\",\"\\u0069d\":4,\"method\":\"m\"}", "4"},
        {"{\"jsonrpc\":\"2.0\",\"i\\u0064\":4,\"method\":\"m\"}", "4"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const mcp_rpc_message_t *message = single(cases[i].text);
        assert_int_equal(message->err.fail, MCP_FAIL_NONE);
        assert_int_equal(message->type, MCP_RPC_REQUEST);
        assert_string_equal(message->id, cases[i].id);
    }
}

static void an_id_that_is_no_string_or_integer_is_refused(void **state)
{
    static const char *const ids[] = {"null", "1.5", "1.0", "1e2", "true", "false", "[1]", "{}"};
    (void)state;
    for (size_t i = 0; i < COUNT(ids); i++) {
        const mcp_rpc_message_t *message = single(apr_pstrcat(
            pool, "{\"jsonrpc\":\"2.0\",\"id\":", ids[i], ",\"method\":\"m\"}", NULL));
        assert_int_equal(message->err.fail, MCP_FAIL_REQUEST);
        assert_int_equal(message->type, MCP_RPC_REQUEST);
        assert_null(message->id);
    }
}

static void an_id_is_bounded(void **state)
{
    char id[MCP_RPC_MAX_ID + 2];
    (void)state;
    memset(id, 'x', sizeof id);
    id[0] = '"';
    for (size_t bytes = MCP_RPC_MAX_ID; bytes <= MCP_RPC_MAX_ID + 1; bytes++) {
        id[bytes - 1] = '"';
        const mcp_rpc_message_t *message =
            single(apr_psprintf(pool, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":%.*s}",
                                (int)bytes, id));
        assert_int_equal(message->err.fail,
                         bytes <= MCP_RPC_MAX_ID ? MCP_FAIL_NONE : MCP_FAIL_REQUEST);
        assert_true((message->id != NULL) == (bytes <= MCP_RPC_MAX_ID));
        id[bytes - 1] = 'x';
    }
}

static void the_type_of_a_message_follows_its_members(void **state)
{
    static const struct {
        const char *text;
        mcp_rpc_type_t type;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{}}", MCP_RPC_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", MCP_RPC_NOTIFICATION},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", MCP_RPC_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"x\"}}",
         MCP_RPC_RESPONSE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const mcp_rpc_message_t *message = single(cases[i].text);
        assert_int_equal(message->err.fail, MCP_FAIL_NONE);
        assert_int_equal(message->type, cases[i].type);
        if (message->type == MCP_RPC_RESPONSE) {
            assert_null(message->id);
            assert_null(message->method);
        } else {
            assert_string_equal(message->method, "m");
        }
    }
}

static void a_message_of_another_shape_is_refused_with_its_id(void **state)
{
    static const char *const cases[] = {
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}",
        "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}",
        "{\"id\":1,\"method\":\"m\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[]}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":null}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":\"x\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"error\":{}}",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const mcp_rpc_message_t *message = single(cases[i]);
        assert_int_equal(message->err.fail, MCP_FAIL_REQUEST);
        assert_non_null(message->err.hint);
        assert_string_equal(message->id, "1");
    }
}

static void a_response_of_another_shape_is_refused(void **state)
{
    static const char *const cases[] = {
        "{\"jsonrpc\":\"2.0\",\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
        "{\"id\":1,\"result\":{}}",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const mcp_rpc_message_t *message = single(cases[i]);
        assert_int_equal(message->type, MCP_RPC_RESPONSE);
        assert_int_equal(message->err.fail, MCP_FAIL_REQUEST);
    }
}

static void duplicate_keys_are_refused_at_every_level(void **state)
{
    static const struct {
        const char *text, *id;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"method\":\"b\"}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"m\\u0065thod\":\"b\"}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"name\":1,\"name\":2}}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"_meta\":{\"x\":1,\"x\":1}}}",
         "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\","
         "\"params\":{\"arguments\":{\"x\":{\"y\":1,\"y\":1}}}}",
         "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"a\"}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"\\u0069\\u0064\":2,\"method\":\"a\"}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\",\"method\":\"a\"}", NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const mcp_rpc_message_t *message = single(cases[i].text);
        assert_int_equal(message->err.fail, MCP_FAIL_REQUEST);
        assert_null(message->root);
        assert_null(message->method);
        if (cases[i].id == NULL)
            assert_null(message->id);
        else
            assert_string_equal(message->id, cases[i].id);
    }
}

static void members_that_differ_in_letter_case_are_refused(void **state)
{
    static const struct {
        const char *members;
        mcp_fail_t fail;
    } cases[] = {
        {"\"method\":\"a\",\"Method\":\"b\"", MCP_FAIL_REQUEST},
        {"\"METHOD\":\"b\",\"method\":\"a\"", MCP_FAIL_REQUEST},
        {"\"method\":\"a\",\"Id\":2", MCP_FAIL_REQUEST},
        {"\"method\":\"a\",\"params\":{},\"PARAMS\":{}", MCP_FAIL_REQUEST},
        {"\"method\":\"a\",\"params\":{},\"param\xc5\xbf\":{}", MCP_FAIL_REQUEST},
        {"\"method\":\"a\",\"params\":{\"name\":\"x\",\"Name\":\"y\"}", MCP_FAIL_REQUEST},
        {"\"method\":\"a\",\"params\":{\"arguments\":{},\"Arguments\":{}}", MCP_FAIL_REQUEST},
        {"\"method\":\"a\",\"params\":{\"_meta\":{},\"_META\":{}}", MCP_FAIL_REQUEST},
        {"\"method\":\"a\",\"params\":{\"_meta\":{\"progressToken\":1,\"progressTo\xe2\x84\xaa"
         "en\":1}}",
         MCP_FAIL_REQUEST},
        /* alone, or unknown, they are members that nobody reads */
        {"\"method\":\"a\",\"PARAMS\":{}", MCP_FAIL_NONE},
        {"\"method\":\"a\",\"Result\":{}", MCP_FAIL_NONE},
        {"\"method\":\"a\",\"foo\":1,\"Foo\":2", MCP_FAIL_NONE},
        {"\"method\":\"a\",\"methods\":1,\"Metho\":2,\"\":3", MCP_FAIL_NONE},
        {"\"method\":\"a\",\"params\":{\"arguments\":{\"a\":1,\"A\":2}}", MCP_FAIL_NONE},
        {"\"Method\":\"a\"", MCP_FAIL_REQUEST},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const mcp_rpc_message_t *message = single(apr_pstrcat(
            pool, "{\"jsonrpc\":\"2.0\",\"id\":1,", cases[i].members, "}", NULL));
        if (message->err.fail != cases[i].fail)
            fail_msg("%s", cases[i].members);
        assert_string_equal(message->id, "1");
    }
}

static void what_is_not_json_is_a_parse_error(void **state)
{
    static const char *const cases[] = {
        "", " ", "{", "{]", "nul", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"} x",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}{}", "{'a':1}", "{\"a\":1,}", "[1,]",
        "{\"a\":\"\x01\"}", "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}", "{\"a\":\"\xc0\xaf\"}",
        "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\u0000\"}",
        "{\"a\\u0000b\":1}", "{\"a\":1e400}", "{\"a\":99999999999999999999}", "{\"a\":NaN}",
        "{\"a\":01}", "\"\\",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(refused_whole(cases[i], strlen(cases[i])), MCP_FAIL_PARSE);
}

static void a_raw_nul_is_a_parse_error(void **state)
{
    static const char inside[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\0n\"}";
    static const char behind[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\0";
    (void)state;
    assert_int_equal(refused_whole(inside, sizeof inside - 1), MCP_FAIL_PARSE);
    assert_int_equal(refused_whole(behind, sizeof behind - 1), MCP_FAIL_PARSE);
}

static void depth_is_limited(void **state)
{
    (void)state;
    for (int levels = MCP_MAX_DEPTH; levels <= MCP_MAX_DEPTH + 1; levels++) {
        char *text = apr_pcalloc(pool, 4096);
        mcp_rpc_body_t body;
        mcp_err_t err;
        strncpy(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"[[[[\",\"params\":{\"a\":", 4095);
        size_t bytes = strlen(text);
        memset(text + bytes, '[', (size_t)levels - 2);
        memset(text + bytes + levels - 2, ']', (size_t)levels - 2);
        memcpy(text + bytes + 2 * (levels - 2), "}}", 3);
        apr_status_t status = parse(text, strlen(text), &body, &err);
        if (levels <= MCP_MAX_DEPTH) {
            assert_int_equal(status, APR_SUCCESS);
            assert_int_equal(body.messages[0].err.fail, MCP_FAIL_NONE);
        } else {
            assert_int_equal(status, MCP_STATUS_REFUSED);
            assert_int_equal(err.fail, MCP_FAIL_PARSE);
        }
    }
}

static void a_million_open_brackets_cost_nothing(void **state)
{
    size_t bytes = 1000000;
    char *text = malloc(bytes);
    (void)state;
    assert_non_null(text);
    memset(text, '[', bytes);
    assert_int_equal(refused_whole(text, bytes), MCP_FAIL_PARSE);
    free(text);
}

static void a_root_that_is_no_message_is_an_invalid_request(void **state)
{
    static const char *const cases[] = {"1", "\"x\"", "null", "true", "[]", " [ ] ",
                                        "[{\"a\":1,\"a\":2}]"};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(refused_whole(cases[i], strlen(cases[i])), MCP_FAIL_REQUEST);
}

static void a_batch_keeps_its_good_elements_and_their_ids(void **state)
{
    static const char text[] =
        " [ {\"jsonrpc\":\"2.0\",\"id\":\"a,]\",\"method\":\"m\"} , 5,\n"
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"},[[{\"id\":7}]],"
        "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"id\":3}},\"s\","
        "{\"params\":{\"x\":[1,{\"id\":0}]},\"method\":\"o\",\"jsonrpc\":\"2.0\",\"id\":22}]";
    static const struct {
        const char *id, *method;
        mcp_fail_t fail;
    } expected[] = {{"\"a,]\"", "m", MCP_FAIL_NONE}, {NULL, NULL, MCP_FAIL_REQUEST},
                    {NULL, NULL, MCP_FAIL_REQUEST},  {NULL, NULL, MCP_FAIL_REQUEST},
                    {NULL, "n", MCP_FAIL_NONE},      {NULL, NULL, MCP_FAIL_REQUEST},
                    {"22", "o", MCP_FAIL_NONE}};
    mcp_rpc_body_t body;
    mcp_err_t err;
    (void)state;
    assert_int_equal(parse(text, sizeof text - 1, &body, &err), APR_SUCCESS);
    assert_int_equal(body.is_batch, 1);
    assert_int_equal(body.count, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_int_equal(body.messages[i].err.fail, expected[i].fail);
        if (expected[i].id == NULL)
            assert_null(body.messages[i].id);
        else
            assert_string_equal(body.messages[i].id, expected[i].id);
        if (expected[i].method != NULL)
            assert_string_equal(body.messages[i].method, expected[i].method);
    }
}

static void a_batch_is_bounded(void **state)
{
    (void)state;
    for (int count = MCP_RPC_MAX_BATCH; count <= MCP_RPC_MAX_BATCH + 1; count++) {
        const char *text = "[";
        mcp_rpc_body_t body;
        mcp_err_t err;
        for (int i = 0; i < count; i++)
            text = apr_pstrcat(pool, text, i > 0 ? "," : "",
                               apr_psprintf(pool,
                                            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"m\"}",
                                            i),
                               NULL);
        text = apr_pstrcat(pool, text, "]", NULL);
        apr_status_t status = parse(text, strlen(text), &body, &err);
        if (count > MCP_RPC_MAX_BATCH) {
            assert_int_equal(err.fail, MCP_FAIL_REQUEST);
            continue;
        }
        assert_int_equal(status, APR_SUCCESS);
        assert_int_equal(body.count, count);
        assert_string_equal(body.messages[count - 1].id, apr_itoa(pool, count - 1));
    }
}

static void every_prefix_of_a_body_is_refused(void **state)
{
    static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":\"\\u00e9\",\"method\":\"tools/call\","
                               "\"params\":{\"a\":[1,-2.5e1,{\"b\":null}]}}";
    (void)state;
    for (size_t bytes = 0; bytes < sizeof text - 1; bytes++)
        assert_int_equal(refused_whole(text, bytes), MCP_FAIL_PARSE);
    assert_int_equal(single(text)->err.fail, MCP_FAIL_NONE);
}

static void answers_are_written_byte_for_byte(void **state)
{
    size_t bytes = 0;
    const char *text = mcp_rpc_result("\"a\\\"b\"", "{\"x\":1}junk", 7, pool, &bytes);
    (void)state;
    assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"result\":{\"x\":1}}");
    assert_int_equal(bytes, strlen(text));
    text = mcp_rpc_error("1", -32020, "Header mismatch: Mcp-Name", NULL, pool, &bytes);
    assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32020,"
                              "\"message\":\"Header mismatch: Mcp-Name\"}}");
    assert_int_equal(bytes, strlen(text));
    text = mcp_rpc_error(NULL, -32700, "a\"b", "{\"k\":[]}", pool, NULL);
    assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
                              "\"message\":\"a\\\"b\",\"data\":{\"k\":[]}}}");
}

static void quoting_escapes_and_repairs(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
        const char *quoted;
    } cases[] = {
        {"", 0, "\"\""},
        {NULL, 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
        {"\b\f\n\r\t\x01\x1f\x7f", 8, "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\""},
        {"a\0b", 3, "\"a\\u0000b\""},
        {"\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80\""},
        {"x\xff", 2, "\"x\xef\xbf\xbd\""},
        {"\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe4\xb8", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf4\x90\x80\x80", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(mcp_rpc_quote(cases[i].text, cases[i].bytes, pool), cases[i].quoted);
}

static void whatever_is_quoted_is_json(void **state)
{
    unsigned char bytes[3];
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        apr_pool_t *scratch = NULL;
        apr_pool_create(&scratch, pool);
        for (unsigned b = 0; b < 256; b += 3) {
            bytes[0] = (unsigned char)a;
            bytes[1] = (unsigned char)b;
            bytes[2] = 0x80;
            const char *text = mcp_rpc_quote((const char *)bytes, 3, scratch);
            json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
            assert_true(json_is_string(value));
            json_decref(value);
        }
        apr_pool_destroy(scratch);
    }
}

static void utf8_is_cut_between_characters(void **state)
{
    static const char text[] = "a\xc3\xa9\xe4\xb8\x96z";
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 7, 7};
    (void)state;
    for (size_t max = 0; max < COUNT(expected); max++)
        assert_int_equal(mcp_rpc_cut(text, sizeof text - 1, max), expected[max]);
}

static void utf8_is_told_from_other_bytes(void **state)
{
    (void)state;
    assert_true(mcp_rpc_is_utf8("", 0));
    assert_true(mcp_rpc_is_utf8("a\xc3\xa9\xf4\x8f\xbf\xbf", 7));
    assert_false(mcp_rpc_is_utf8("a\0b", 3));
    assert_false(mcp_rpc_is_utf8("\xc3", 1));
    assert_false(mcp_rpc_is_utf8("\xe0\x80\x80", 3));
    assert_false(mcp_rpc_is_utf8("\xf5\x80\x80\x80", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_raw_token_of_an_id_is_kept),
        cmocka_unit_test(an_id_that_is_no_string_or_integer_is_refused),
        cmocka_unit_test(an_id_is_bounded),
        cmocka_unit_test(the_type_of_a_message_follows_its_members),
        cmocka_unit_test(a_message_of_another_shape_is_refused_with_its_id),
        cmocka_unit_test(a_response_of_another_shape_is_refused),
        cmocka_unit_test(duplicate_keys_are_refused_at_every_level),
        cmocka_unit_test(members_that_differ_in_letter_case_are_refused),
        cmocka_unit_test(what_is_not_json_is_a_parse_error),
        cmocka_unit_test(a_raw_nul_is_a_parse_error),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(a_million_open_brackets_cost_nothing),
        cmocka_unit_test(a_root_that_is_no_message_is_an_invalid_request),
        cmocka_unit_test(a_batch_keeps_its_good_elements_and_their_ids),
        cmocka_unit_test(a_batch_is_bounded),
        cmocka_unit_test(every_prefix_of_a_body_is_refused),
        cmocka_unit_test(answers_are_written_byte_for_byte),
        cmocka_unit_test(quoting_escapes_and_repairs),
        cmocka_unit_test(whatever_is_quoted_is_json),
        cmocka_unit_test(utf8_is_cut_between_characters),
        cmocka_unit_test(utf8_is_told_from_other_bytes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
