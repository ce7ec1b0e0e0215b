/* JSON-RPC 2.0: strict reading of a posted body, and the texts of answers.
 *
 * jansson decides what is JSON.  Beside its tree a small scanner walks the same text, because the
 * id has to go back as the bytes that came and a tree no longer has them. */
#include "mcp_rpc.h"

#include <stdint.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

/* --- UTF-8 ---------------------------------------------------------------- */

/* Results are megabytes at times and nearly all of them is plain ASCII, which these two pass eight
 * bytes at a time. A byte's top bit in the answer of `below` says that the byte may be below n; bytes
 * of 0x80 and above, and those after a hit, may be wrongly named, so a hit ends the fast way only. */
#define EACH(byte) (0x0101010101010101u * (uint64_t)(byte))

static uint64_t below(uint64_t word, unsigned n)
{
    return (word - EACH(n)) & ~word & EACH(0x80);
}

static uint64_t load(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Leading bytes that are ASCII and not NUL, or fewer. */
static size_t ascii_run(const unsigned char *p, size_t left)
{
    size_t at = 0;
    while (left - at >= 8 && ((load(p + at) & EACH(0x80)) | below(load(p + at), 1)) == 0)
        at += 8;
    return at;
}

static int is_itself(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Leading bytes that stand for themselves in a JSON string. */
static size_t plain_run(const unsigned char *p, size_t left)
{
    size_t at = 0;
    for (; left - at >= 8; at += 8) {
        uint64_t word = load(p + at);
        if (((word & EACH(0x80)) | below(word, 0x20) | below(word ^ EACH('"'), 1) |
             below(word ^ EACH('\\'), 1)) != 0)
            break;
    }
    while (at < left && is_itself(p[at]))
        at++;
    return at;
}

/* Bytes of the well-formed character at p, or 0. */
static size_t utf8_char(const unsigned char *p, size_t left)
{
    static const struct {
        unsigned char first, last, second_min, second_max, bytes;
    } rows[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = rows[i].bytes;
        if (p[0] < rows[i].first || p[0] > rows[i].last)
            continue;
        if (bytes > left)
            return 0;
        if (bytes > 1 && (p[1] < rows[i].second_min || p[1] > rows[i].second_max))
            return 0;
        for (size_t k = 2; k < bytes; k++)
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        return bytes;
    }
    return 0;
}

int mcp_rpc_is_utf8(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t at = 0;
    while (at < bytes) {
        size_t step = ascii_run(p + at, bytes - at);
        if (step == 0)
            step = utf8_char(p + at, bytes - at);
        if (step == 0)
            return 0;
        at += step;
    }
    return 1;
}

size_t mcp_rpc_cut(const char *text, size_t bytes, size_t max)
{
    if (bytes <= max)
        return bytes;
    size_t at = max;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

/* --- the scanner ---------------------------------------------------------- */

/* All of these look at text that jansson has accepted; they still never pass `end`. */

typedef struct rpc_token {
    const char *text;
    size_t bytes;
    int count; /* how often the member was there */
} rpc_token_t;

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* p at the opening quote; returns what follows the closing one. */
static const char *skip_string(const char *p, const char *end)
{
    p++;
    while (p < end && *p != '"') {
        if (*p == '\\' && p + 1 < end)
            p++;
        p++;
    }
    return p < end ? p + 1 : end;
}

static const char *skip_value(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        char c = *p;
        if (c == '"') {
            p = skip_string(p, end);
            if (depth == 0)
                return p;
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\n' ||
                           c == '\r'))
            return p;
        p++;
        if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
            if (depth == 0)
                return p;
        }
    }
    return end;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* 1 when the quoted key spells `name` (ASCII), also where letters are written as escapes:
 * jansson would read "\u0069d" as id, so the scanner has to. */
static int key_is(const char *p, const char *end, const char *name)
{
    p++;
    end--;
    for (; *name != '\0'; name++) {
        int code;
        if (p >= end)
            return 0;
        if (*p != '\\') {
            code = (unsigned char)*p;
            p++;
        } else {
            if (end - p < 6 || p[1] != 'u')
                return 0;
            code = 0;
            for (int i = 2; i < 6; i++) {
                int digit = hex_digit(p[i]);
                if (digit < 0)
                    return 0;
                code = code * 16 + digit;
            }
            p += 6;
        }
        if (code != (unsigned char)*name)
            return 0;
    }
    return p == end;
}

/* p at the opening brace of a message: its last id and how many there are. */
static rpc_token_t scan_id(const char *p, const char *end)
{
    rpc_token_t ret = {NULL, 0, 0};
    p++;
    for (;;) {
        p = skip_space(p, end);
        if (p >= end || *p != '"')
            return ret;
        const char *key = p;
        const char *key_end = skip_string(p, end);
        p = skip_space(key_end, end);
        if (p >= end || *p != ':')
            return ret;
        const char *value = skip_space(p + 1, end);
        p = skip_value(value, end);
        if (key_is(key, key_end, "id")) {
            ret.text = value;
            ret.bytes = (size_t)(p - value);
            ret.count++;
        }
        p = skip_space(p, end);
        if (p >= end || *p != ',')
            return ret;
        p++;
    }
}

/* The token as a text of its own when it is a string or an integer, else NULL. */
static const char *usable_id(const rpc_token_t *token, apr_pool_t *pool)
{
    if (token->count != 1 || token->bytes == 0 || token->bytes > MCP_RPC_MAX_ID)
        return NULL;
    if (token->text[0] != '"') {
        size_t at = token->text[0] == '-' ? 1 : 0;
        if (at == token->bytes)
            return NULL;
        for (; at < token->bytes; at++)
            if (token->text[at] < '0' || token->text[at] > '9')
                return NULL;
    }
    return apr_pstrmemdup(pool, token->text, token->bytes);
}

static int is_too_deep(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        if (*p == '{' || *p == '[') {
            depth++;
            if (depth > MCP_MAX_DEPTH)
                return 1;
        } else if ((*p == '}' || *p == ']') && depth > 0) {
            depth--;
        }
        p++;
    }
    return 0;
}

/* --- one message ---------------------------------------------------------- */

/* Equal but for letter case, the way lenient readers see it: some fold U+017F to s and U+212A to k,
 * and a reader behind us may be one of them. */
static int folds_to(const char *key, const char *known)
{
    for (; *known != '\0'; known++) {
        unsigned char c = (unsigned char)*key;
        if (c == 0xc5 && (unsigned char)key[1] == 0xbf) {
            c = 's';
            key += 2;
        } else if (c == 0xe2 && (unsigned char)key[1] == 0x84 && (unsigned char)key[2] == 0xaa) {
            c = 'k';
            key += 3;
        } else {
            key++;
        }
        unsigned char k = (unsigned char)*known;
        if (c >= 'A' && c <= 'Z')
            c = (unsigned char)(c - 'A' + 'a');
        if (k >= 'A' && k <= 'Z')
            k = (unsigned char)(k - 'A' + 'a');
        if (c != k)
            return 0;
    }
    return *key == '\0';
}

/* The known member that stands in object together with a case variant of itself, or NULL. */
static const char *doubled_by_case(json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return NULL;
    json_object_foreach(object, key, value)
    {
        for (size_t i = 0; known[i] != NULL; i++)
            if (folds_to(key, known[i]) && strcmp(key, known[i]) != 0 &&
                json_object_get(object, known[i]) != NULL)
                return known[i];
    }
    return NULL;
}

static const char *case_clash(json_t *root)
{
    static const char *const top[] = {"jsonrpc", "id", "method", "params", "result", "error", NULL};
    static const char *const params[] = {"_meta", "name",  "arguments",      "uri",
                                         "cursor", "inputResponses", "requestState", NULL};
    static const char *const meta[] = {"io.modelcontextprotocol/protocolVersion",
                                       "io.modelcontextprotocol/clientCapabilities",
                                       "io.modelcontextprotocol/clientInfo",
                                       "progressToken", NULL};
    json_t *inner = json_object_get(root, "params");
    const char *clash = doubled_by_case(root, top);
    if (clash == NULL)
        clash = doubled_by_case(inner, params);
    if (clash == NULL)
        clash = doubled_by_case(json_object_get(inner, "_meta"), meta);
    return clash;
}

static void refuse(mcp_rpc_message_t *message, apr_pool_t *pool, const char *hint, const char *text)
{
    (void)mcp_err_set(&message->err, pool, MCP_FAIL_REQUEST, MCP_CODE_NONE, hint, "%s", text);
}

/* Type, method and params of an object; refusals go into message->err. */
static void read_members(mcp_rpc_message_t *message, const rpc_token_t *id, apr_pool_t *pool)
{
    const char *version = json_string_value(json_object_get(message->root, "jsonrpc"));
    json_t *method = json_object_get(message->root, "method");
    json_t *params = json_object_get(message->root, "params");
    int has_result = json_object_get(message->root, "result") != NULL;
    int has_error = json_object_get(message->root, "error") != NULL;
    const char *clash = case_clash(message->root);

    if (method == NULL && (has_result || has_error))
        message->type = MCP_RPC_RESPONSE;
    else
        message->type = id->count > 0 ? MCP_RPC_REQUEST : MCP_RPC_NOTIFICATION;
    if (message->type == MCP_RPC_REQUEST)
        message->id = usable_id(id, pool);

    if (version == NULL || strcmp(version, "2.0") != 0)
        refuse(message, pool, "set jsonrpc to \"2.0\"", "Invalid request: jsonrpc is not \"2.0\"");
    else if (clash != NULL)
        (void)mcp_err_set(&message->err, pool, MCP_FAIL_REQUEST, MCP_CODE_NONE,
                          "send each member once, in its exact letter case",
                          "Invalid request: %s is there in two letter cases", clash);
    else if (message->type == MCP_RPC_REQUEST && message->id == NULL)
        refuse(message, pool, "use a string or an integer as id",
               "Invalid request: id is neither a string nor an integer, or too long");
    else if (method == NULL && !has_result && !has_error)
        refuse(message, pool, "name the method", "Invalid request: method is missing");
    else if (method != NULL && !json_is_string(method))
        refuse(message, pool, "name the method as a string",
               "Invalid request: method is not a string");
    else if (has_result + has_error + (method != NULL) > 1)
        refuse(message, pool, "send a request or a response",
               "Invalid request: more than one of method, result and error");
    else if (message->type == MCP_RPC_RESPONSE && id->count == 0)
        refuse(message, pool, "a response has an id", "Invalid request: a response without id");
    else if (params != NULL && !json_is_object(params))
        refuse(message, pool, "send params as an object, or leave it out",
               "Invalid request: params is not an object");
    if (message->err.fail != MCP_FAIL_NONE)
        return;
    message->method = json_string_value(method);
    message->params = params;
}

/* text: the element's own text, from its first byte. */
static void read_message(json_t *root, const char *text, const char *end, apr_pool_t *pool,
                         mcp_rpc_message_t *ret)
{
    memset(ret, 0, sizeof *ret);
    if (!json_is_object(root)) {
        refuse(ret, pool, "send JSON-RPC messages as objects",
               "Invalid request: a message is not an object");
        return;
    }
    rpc_token_t id = scan_id(text, end);
    ret->root = root;
    read_members(ret, &id, pool);
}

/* --- the body ------------------------------------------------------------- */

static apr_status_t free_json(void *data)
{
    json_decref(data);
    return APR_SUCCESS;
}

/* Why jansson did not take the text; NULL when it would take it if keys could repeat. */
static const char *parse_trouble(const char *text, size_t bytes, apr_pool_t *pool)
{
    json_error_t error;
    if (is_too_deep(text, text + bytes))
        return apr_psprintf(pool, "it nests deeper than %d levels", MCP_MAX_DEPTH);
    json_t *value = json_loadb(text, bytes, JSON_DECODE_ANY, &error);
    if (value != NULL) {
        json_decref(value);
        return NULL;
    }
    switch ((int)json_error_code(&error)) {
    case json_error_invalid_utf8:
        return "it is not UTF-8";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "it has a NUL character";
    case json_error_numeric_overflow:
        return "it has a number beyond 64 bit";
    case json_error_premature_end_of_input:
        return "it ends too early";
    default:
        return apr_psprintf(pool, "syntax error near byte %d", error.position);
    }
}

/* A body that strict parsing refused: either no JSON, or one with duplicate keys. */
static apr_status_t refuse_body(const char *text, size_t bytes, apr_pool_t *pool,
                                mcp_rpc_body_t *ret, mcp_err_t *err)
{
    static const char hint[] = "send each member once";
    static const char message[] = "Invalid request: a member is there twice";
    const char *end = text + bytes;
    const char *trouble = parse_trouble(text, bytes, pool);
    if (trouble != NULL)
        return mcp_err_set(err, pool, MCP_FAIL_PARSE, MCP_CODE_NONE,
                           "send one JSON-RPC message as JSON in UTF-8",
                           "Parse error: the body is not acceptable JSON: %s", trouble);
    const char *start = skip_space(text, end);
    if (start >= end || *start != '{')
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_NONE, hint, "%s", message);

    rpc_token_t id = scan_id(start, end);
    mcp_rpc_message_t *only = apr_pcalloc(pool, sizeof *only);
    only->type = MCP_RPC_REQUEST;
    only->id = usable_id(&id, pool);
    refuse(only, pool, hint, message);
    ret->is_batch = 0;
    ret->count = 1;
    ret->messages = only;
    return APR_SUCCESS;
}

static apr_status_t read_batch(json_t *root, const char *text, const char *end, apr_pool_t *pool,
                               mcp_rpc_body_t *ret, mcp_err_t *err)
{
    size_t count = json_array_size(root);
    if (count == 0)
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_NONE, "send at least one message",
                           "Invalid request: the batch is empty");
    if (count > MCP_RPC_MAX_BATCH)
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_NONE, "send smaller batches",
                           "Invalid request: more than %d messages in a batch", MCP_RPC_MAX_BATCH);
    mcp_rpc_message_t *messages = apr_pcalloc(pool, count * sizeof *messages);
    const char *p = text + 1;
    for (size_t i = 0; i < count; i++) {
        const char *start = skip_space(p, end);
        const char *stop = skip_value(start, end);
        read_message(json_array_get(root, i), start, stop, pool, &messages[i]);
        p = skip_space(stop, end);
        if (p < end)
            p++; /* the comma */
    }
    ret->is_batch = 1;
    ret->count = (int)count;
    ret->messages = messages;
    return APR_SUCCESS;
}

apr_status_t mcp_rpc_parse(const char *text, size_t bytes, apr_pool_t *pool, mcp_rpc_body_t *ret,
                           mcp_err_t *err)
{
    json_t *root = NULL;
    mcp_wire_status_t status = mcp_json_parse(text, bytes, MCP_MAX_DEPTH, &root, NULL);
    if (status == MCP_E_NOMEM)
        return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "Internal error: no memory for the body");
    if (status != MCP_OK)
        return refuse_body(text, bytes, pool, ret, err);
    apr_pool_cleanup_register(pool, root, free_json, apr_pool_cleanup_null);

    const char *end = text + bytes;
    const char *start = skip_space(text, end);
    if (json_is_array(root))
        return read_batch(root, start, end, pool, ret, err);
    if (!json_is_object(root))
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_NONE,
                           "send one JSON-RPC message as an object",
                           "Invalid request: the body is not an object");
    mcp_rpc_message_t *only = apr_palloc(pool, sizeof *only);
    read_message(root, start, end, pool, only);
    ret->is_batch = 0;
    ret->count = 1;
    ret->messages = only;
    return APR_SUCCESS;
}

/* --- answers -------------------------------------------------------------- */

const char *mcp_rpc_result_head(const char *id, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "{\"jsonrpc\":\"2.0\",\"id\":", id != NULL ? id : "null",
                       ",\"result\":", NULL);
}

const char *mcp_rpc_result(const char *id, const char *result, size_t result_bytes,
                           apr_pool_t *pool, size_t *ret_bytes)
{
    static const char tail[] = MCP_RPC_RESULT_TAIL;
    const char *head = mcp_rpc_result_head(id, pool);
    size_t head_bytes = strlen(head);
    char *text = apr_palloc(pool, head_bytes + result_bytes + sizeof tail);
    memcpy(text, head, head_bytes);
    memcpy(text + head_bytes, result, result_bytes);
    memcpy(text + head_bytes + result_bytes, tail, sizeof tail);
    if (ret_bytes != NULL)
        *ret_bytes = head_bytes + result_bytes + sizeof tail - 1;
    return text;
}

const char *mcp_rpc_error(const char *id, int code, const char *message, const char *data,
                          apr_pool_t *pool, size_t *ret_bytes)
{
    const char *text = apr_pstrcat(
        pool, "{\"jsonrpc\":\"2.0\",", id != NULL ? "\"id\":" : "", id != NULL ? id : "",
        id != NULL ? "," : "", "\"error\":{\"code\":", apr_itoa(pool, code), ",\"message\":",
        mcp_rpc_quote(message, strlen(message), pool), data != NULL ? ",\"data\":" : "",
        data != NULL ? data : "", "}}", NULL);
    if (ret_bytes != NULL)
        *ret_bytes = strlen(text);
    return text;
}

/* Writes the escape of an ASCII character to out (6 bytes suffice) and returns its length. */
static size_t quote_ascii(unsigned char c, char *out)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letter[] = "\"\\bfnrt";
    static const char digits[] = "0123456789abcdef";
    const char *found = c != 0 ? strchr(plain, c) : NULL;
    if (found != NULL) {
        out[0] = '\\';
        out[1] = letter[found - plain];
        return 2;
    }
    if (c >= 0x20) {
        out[0] = (char)c;
        return 1;
    }
    memcpy(out, "\\u00", 4);
    out[4] = digits[c >> 4];
    out[5] = digits[c & 0xf];
    return 6;
}

const char *mcp_rpc_quote(const char *text, size_t bytes, apr_pool_t *pool)
{
    const unsigned char *p = (const unsigned char *)text;
    char scratch[6];
    size_t size = 3; /* quotes and NUL */
    char *out = NULL;
    /* Two rounds of one loop: the first counts, the second writes. */
    for (int round = 0; round < 2; round++) {
        size_t to = 1;
        for (size_t at = 0; at < bytes;) {
            size_t step = plain_run(p + at, bytes - at);
            const char *from = scratch;
            size_t length;
            if (step > 0) {
                from = text + at;
                length = step;
            } else if (p[at] < 0x80) {
                length = quote_ascii(p[at], scratch);
                step = 1;
            } else {
                step = utf8_char(p + at, bytes - at);
                from = step > 0 ? text + at : "\xef\xbf\xbd";
                length = step > 0 ? step : 3;
                step = step > 0 ? step : 1;
            }
            if (out != NULL)
                memcpy(out + to, from, length);
            to += length;
            at += step;
        }
        if (out == NULL) {
            size += to - 1;
            out = apr_palloc(pool, size);
            out[0] = '"';
        } else {
            out[to] = '"';
            out[to + 1] = '\0';
        }
    }
    return out;
}
