/* From the parts of a REST request to the arguments of its operation: see mcp_route.h. */
#include "mcp_route.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "mcp_encode.h"
#include "mcp_rpc.h"

#define BODY_DEPTH (MCP_MAX_DEPTH - 2) /* the question to policyd wraps the arguments once more */
#define SHOWN_NAME 64
#define MAX_DIGITS 18 /* of an integer that surely fits */

typedef struct pair {
    const char *name;
    const char *value;
    size_t value_bytes;
} pair_t;

static apr_status_t decref(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

/* A caller's own name as a message may show it. */
static const char *shown(const char *name, apr_pool_t *pool)
{
    return apr_pstrmemdup(pool, name, mcp_rpc_cut(name, strlen(name), SHOWN_NAME));
}

static apr_status_t out_of_memory(apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL, "out of memory");
}

/* --- the query string ------------------------------------------------------------------ */

/* Form decoding; NULL for a '%' without its digits. */
static const char *decoded(const char *text, size_t bytes, apr_pool_t *pool, size_t *ret_bytes)
{
    char *out = apr_palloc(pool, bytes + 1);
    size_t length = 0;
    size_t i;

    for (i = 0; i < bytes; i++) {
        int high = bytes - i > 2 ? mcp_encode_hex(text[i + 1]) : -1;
        int low = bytes - i > 2 ? mcp_encode_hex(text[i + 2]) : -1;

        if (text[i] != '%') {
            out[length++] = (char)(text[i] == '+' ? ' ' : text[i]);
        } else if (high < 0 || low < 0) {
            return NULL;
        } else {
            out[length++] = (char)(high * 16 + low);
            i += 2;
        }
    }
    out[length] = '\0';
    *ret_bytes = length;
    return mcp_rpc_is_utf8(out, length) ? out : NULL;
}

/* The pairs in their order; MCP_FAIL_REQUEST when they can't be read. */
static apr_status_t take_pairs(const char *query, apr_pool_t *pool, pair_t *pairs, int *ret_count,
                               mcp_err_t *err)
{
    const char *at = query != NULL ? query : "";
    int count = 0;

    while (*at != '\0') {
        size_t bytes = strcspn(at, "&");
        size_t name_bytes = strcspn(at, "=&");
        size_t decoded_bytes = 0;

        if (bytes > 0) {
            pair_t *pair = &pairs[count];
            int has_value = name_bytes < bytes;

            if (count++ == MCP_ROUTE_MAX_PAIRS) {
                return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST, NULL,
                                   "the query string has more than %d parameters",
                                   MCP_ROUTE_MAX_PAIRS);
            }
            pair->name = decoded(at, name_bytes, pool, &decoded_bytes);
            pair->value = decoded(has_value ? at + name_bytes + 1 : "",
                                  has_value ? bytes - name_bytes - 1 : 0, pool, &pair->value_bytes);
            if (pair->name == NULL || pair->value == NULL) {
                return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST, NULL,
                                   "the query string is not percent-encoded UTF-8");
            }
        }
        at += bytes;
        at += *at == '&';
    }
    *ret_count = count;
    return APR_SUCCESS;
}

const char *mcp_route_next(const char *query, const char *cursor, apr_pool_t *pool)
{
    pair_t pairs[MCP_ROUTE_MAX_PAIRS + 1];
    mcp_encode_buf_t buf;
    int count = 0;
    int i;

    if (take_pairs(query, pool, pairs, &count, NULL) != APR_SUCCESS) {
        return NULL;
    }
    mcp_encode_start(&buf, pool, MCP_URL_BYTES);
    for (i = 0; i < count; i++) {
        if (strcmp(pairs[i].name, "cursor") != 0) {
            mcp_encode_part(&buf, pairs[i].name, strlen(pairs[i].name), "");
            mcp_encode_text(&buf, "=");
            mcp_encode_part(&buf, pairs[i].value, pairs[i].value_bytes, "");
            mcp_encode_text(&buf, "&");
        }
    }
    mcp_encode_text(&buf, "cursor=");
    mcp_encode_part(&buf, cursor, strlen(cursor), "");
    return mcp_encode_finish(&buf);
}

/* --- values ------------------------------------------------------------------------------ */

/* -?(0|[1-9][0-9]*), as JSON writes integers. */
static int is_integer(const char *text)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    size_t length = strspn(digits, "0123456789");

    return length > 0 && length <= MAX_DIGITS && digits[length] == '\0' &&
           (digits[0] != '0' || length == 1);
}

static json_t *any_json(const char *text, size_t bytes)
{
    json_t *value = NULL;

    if (mcp_json_values(text, bytes) > MCP_MAX_VALUES ||
        mcp_json_parse(text, bytes, BODY_DEPTH, &value, NULL) != MCP_OK) {
        return NULL;
    }
    return value;
}

static json_t *number(const char *text, size_t bytes)
{
    json_t *value = text[0] == '-' || (text[0] >= '0' && text[0] <= '9') ? any_json(text, bytes) : NULL;

    if (value != NULL && !json_is_number(value)) {
        json_decref(value);
        return NULL;
    }
    return value;
}

/* The value of a text, or NULL when it has the form of none of the types. New reference. */
static json_t *coerced(unsigned types, const char *text, size_t bytes)
{
    json_t *value = NULL;

    if ((types & MCP_ROUTE_JSON) != 0) {
        return any_json(text, bytes);
    }
    if ((types & MCP_ROUTE_INTEGER) != 0 && is_integer(text)) {
        return json_integer((json_int_t)strtoll(text, NULL, 10));
    }
    if ((types & MCP_ROUTE_NUMBER) != 0) {
        value = number(text, bytes);
    }
    if (value == NULL && (types & MCP_ROUTE_BOOLEAN) != 0 &&
        (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        return json_boolean(text[0] == 't');
    }
    if (value == NULL && (types & (MCP_ROUTE_STRING | MCP_ROUTE_STRINGS)) != 0) {
        return json_stringn(text, bytes);
    }
    return value;
}

static const char *types_text(unsigned types)
{
    if ((types & MCP_ROUTE_JSON) != 0) {
        return "JSON text";
    }
    if ((types & MCP_ROUTE_INTEGER) != 0) {
        return "an integer";
    }
    return (types & MCP_ROUTE_NUMBER) != 0 ? "a number" : "true or false";
}

static apr_status_t bad_value(const mcp_route_param_t *param, apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST, NULL, "%s must be %s",
                       param->name, types_text(param->types));
}

static const mcp_route_param_t *find_param(const mcp_route_t *route, const char *name)
{
    int i;

    for (i = 0; i < route->query_count; i++) {
        if (strcmp(route->query[i].name, name) == 0) {
            return &route->query[i];
        }
    }
    return NULL;
}

static apr_status_t add_pair(const mcp_route_t *route, const pair_t *pair, json_t *args,
                             apr_pool_t *pool, mcp_err_t *err)
{
    const mcp_route_param_t *param = find_param(route, pair->name);
    json_t *there = json_object_get(args, pair->name);
    json_t *value;

    if (param == NULL) {
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST,
                           "openapi.json of this API lists the parameters",
                           "the query parameter '%s' is unknown", shown(pair->name, pool));
    }
    if (there != NULL && (param->types & MCP_ROUTE_STRINGS) == 0) {
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST, NULL,
                           "the query parameter '%s' stands twice", param->name);
    }
    value = coerced(param->types, pair->value, pair->value_bytes);
    if (value == NULL) {
        return bad_value(param, pool, err);
    }
    if ((param->types & MCP_ROUTE_STRINGS) == 0) {
        return json_object_set_new(args, param->name, value) == 0 ? APR_SUCCESS
                                                                  : out_of_memory(pool, err);
    }
    if (there == NULL) {
        there = json_array();
        if (json_object_set_new(args, param->name, there) != 0) {
            json_decref(value);
            return out_of_memory(pool, err);
        }
    }
    return json_array_append_new(there, value) == 0 ? APR_SUCCESS : out_of_memory(pool, err);
}

static apr_status_t add_query(const mcp_route_t *route, const char *query, json_t *args,
                              apr_pool_t *pool, mcp_err_t *err)
{
    pair_t pairs[MCP_ROUTE_MAX_PAIRS + 1];
    apr_status_t status;
    int count = 0;
    int i;

    status = take_pairs(query, pool, pairs, &count, err);
    for (i = 0; status == APR_SUCCESS && i < count; i++) {
        status = add_pair(route, &pairs[i], args, pool, err);
    }
    return status;
}

/* --- body and path ------------------------------------------------------------------------- */

static apr_status_t said_twice(const char *name, apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST,
                       "say it in one place", "%s is said twice, and differently",
                       shown(name, pool));
}

/* One more argument from elsewhere; the same value again is fine. value: stolen. */
static apr_status_t add_value(json_t *args, const char *name, json_t *value, apr_pool_t *pool,
                              mcp_err_t *err)
{
    const json_t *there = json_object_get(args, name);

    if (there != NULL && !json_equal(there, value)) {
        json_decref(value);
        return said_twice(name, pool, err);
    }
    return json_object_set_new(args, name, value) == 0 ? APR_SUCCESS : out_of_memory(pool, err);
}

static apr_status_t take_body(const mcp_route_input_t *input, apr_pool_t *pool, json_t **ret,
                              mcp_err_t *err)
{
    json_t *body = NULL;
    size_t at = 0;

    if (mcp_json_values(input->body, input->body_bytes) > MCP_MAX_VALUES) {
        return mcp_err_set(err, pool, MCP_FAIL_TOO_LARGE, MCP_CODE_TOO_LARGE, NULL,
                           "the body holds more than %d values", MCP_MAX_VALUES);
    }
    if (mcp_json_parse(input->body, input->body_bytes, BODY_DEPTH, &body, &at) != MCP_OK) {
        return mcp_err_set(err, pool, MCP_FAIL_PARSE, MCP_CODE_INVALID_REQUEST, NULL,
                           "the body is not JSON in UTF-8 without doubled keys, at most %d levels deep "
                           "(byte %" APR_SIZE_T_FMT ")",
                           BODY_DEPTH, at);
    }
    if (!json_is_object(body)) {
        json_decref(body);
        return mcp_err_set(err, pool, MCP_FAIL_PARSE, MCP_CODE_INVALID_REQUEST, NULL,
                           "the body must be a JSON object");
    }
    *ret = body;
    return APR_SUCCESS;
}

static apr_status_t add_words(const mcp_route_match_t *match, json_t *args, apr_pool_t *pool,
                              mcp_err_t *err)
{
    const mcp_route_t *route = match->route;
    apr_status_t status = APR_SUCCESS;
    int i;

    for (i = 0; status == APR_SUCCESS && i < route->segment_count; i++) {
        json_t *value;

        if (match->words[i] == NULL) {
            continue;
        }
        value = coerced(route->words[i].types, match->words[i], strlen(match->words[i]));
        status = value != NULL ? add_value(args, route->words[i].name, value, pool, err)
                               : bad_value(&route->words[i], pool, err);
    }
    return status;
}

/* --- preconditions --------------------------------------------------------------------------- */

/* The next entity tag of a list: 1 and its text without quotes, 0 at the end, -1 for what is none. */
static int next_tag(const char **at, const char **tag, size_t *bytes, int *is_weak)
{
    *at += strspn(*at, " \t,");
    if (**at == '\0') {
        return 0;
    }
    *is_weak = strncmp(*at, "W/", 2) == 0;
    *at += *is_weak ? 2 : 0;
    if (**at != '"') {
        return -1;
    }
    *tag = *at + 1;
    *bytes = strcspn(*tag, "\"");
    *at = *tag + *bytes;
    if (**at != '"') {
        return -1;
    }
    *at += 1;
    return 1;
}

/* httpd's own filters mark the tag of what they compressed: it stays the tag of the same revision. */
static size_t without_coding(const char *tag, size_t bytes)
{
    static const char *const marks[] = {"-gzip", "-br", ";gzip", ";br"};
    size_t i;

    for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        size_t length = strlen(marks[i]);

        if (bytes > length && memcmp(tag + bytes - length, marks[i], length) == 0) {
            return bytes - length;
        }
    }
    return bytes;
}

/* The revision that a strong tag names; 0 for a tag that no object has. */
static json_int_t revision_of(const char *tag, size_t bytes, apr_pool_t *pool)
{
    const char *text = apr_pstrmemdup(pool, tag, without_coding(tag, bytes));
    json_int_t revision = is_integer(text) ? (json_int_t)strtoll(text, NULL, 10) : 0;

    return revision > 0 ? revision : 0;
}

/* *ret: the one revision asked for, 0 for none. */
static apr_status_t take_if_match(const char *header, json_int_t *ret, apr_pool_t *pool,
                                  mcp_err_t *err)
{
    const char *at = header;
    const char *tag = NULL;
    size_t bytes = 0;
    int is_weak = 0;
    int more;

    for (more = next_tag(&at, &tag, &bytes, &is_weak); more > 0;
         more = next_tag(&at, &tag, &bytes, &is_weak)) {
        json_int_t revision = is_weak ? 0 : revision_of(tag, bytes, pool);

        if (revision != 0 && *ret != 0 && *ret != revision) {
            return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST, NULL,
                               "If-Match may name one ETag of this API");
        }
        *ret = revision != 0 ? revision : *ret;
    }
    if (more < 0 || tag == NULL) {
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST,
                           "for example If-Match: \"7\"", "If-Match has no ETag in quotes");
    }
    if (*ret == 0) {
        return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_REVISION_MISMATCH,
                           "send the ETag that the object was read with",
                           "no revision of the object has the ETag that If-Match names");
    }
    return APR_SUCCESS;
}

static int is_any(const char *header)
{
    size_t start = strspn(header, " \t");

    return header[start] == '*' && header[start + 1 + strspn(header + start + 1, " \t")] == '\0';
}

static apr_status_t add_condition(const mcp_route_t *route, const char *if_match, json_t *args,
                                  apr_pool_t *pool, mcp_err_t *err)
{
    json_int_t revision = 0;
    apr_status_t status;

    if (if_match == NULL || is_any(if_match)) {
        return APR_SUCCESS;
    }
    if (!route->takes_if_revision) {
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST,
                           "leave the header out", "this operation takes no If-Match");
    }
    status = take_if_match(if_match, &revision, pool, err);
    return status == APR_SUCCESS
               ? add_value(args, "if_revision", json_integer(revision), pool, err)
               : status;
}

int mcp_route_is_none_match(const char *header, const char *etag)
{
    const char *at = header;
    const char *tag = NULL;
    size_t bytes = 0;
    int is_weak = 0;

    if (header == NULL || etag == NULL) {
        return 0;
    }
    if (is_any(header)) {
        return 1;
    }
    while (next_tag(&at, &tag, &bytes, &is_weak) > 0) {
        size_t own = without_coding(tag, bytes);

        if (own + 2 == strlen(etag) && memcmp(tag, etag + 1, own) == 0) {
            return 1;
        }
    }
    return 0;
}

/* --- all together ------------------------------------------------------------------------------ */

apr_status_t mcp_route_args(const mcp_route_match_t *match, const mcp_route_input_t *input,
                            apr_pool_t *pool, json_t **ret, mcp_err_t *err)
{
    json_t *query = json_object();
    json_t *args = NULL;
    const char *name;
    json_t *value;
    apr_status_t status;

    if (query == NULL) {
        return out_of_memory(pool, err);
    }
    apr_pool_cleanup_register(pool, query, decref, apr_pool_cleanup_null);
    status = add_query(match->route, input->query, query, pool, err);
    if (status == APR_SUCCESS && input->body != NULL) {
        status = take_body(input, pool, &args, err);
        if (status == APR_SUCCESS) {
            apr_pool_cleanup_register(pool, args, decref, apr_pool_cleanup_null);
        }
    } else {
        args = query;
    }
    if (status == APR_SUCCESS && args != query) {
        json_object_foreach(query, name, value)
        {
            if (status == APR_SUCCESS) {
                status = add_value(args, name, json_incref(value), pool, err);
            }
        }
    }
    if (status == APR_SUCCESS) {
        status = add_words(match, args, pool, err);
    }
    if (status == APR_SUCCESS) {
        status = add_condition(match->route, input->if_match, args, pool, err);
    }
    if (status == APR_SUCCESS) {
        *ret = args;
    }
    return status;
}
