/* Problem details: see mcp_problem.h. One row for each class; a class that is none of HTTP's takes the status of its code. */
#include "mcp_problem.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_kind_text.h"

typedef struct problem_row {
    mcp_fail_t fail;
    int http; /* 0: the code's */
    mcp_code_t code; /* where err has none */
    int retry_after_s;
    int is_challenge;
} problem_row_t;

static const problem_row_t rows[] = {
    {MCP_FAIL_PARSE, 400, MCP_CODE_INVALID_REQUEST, 0, 0},
    {MCP_FAIL_REQUEST, 400, MCP_CODE_INVALID_REQUEST, 0, 0},
    {MCP_FAIL_PARAMS, 0, MCP_CODE_INVALID_REQUEST, 0, 0},
    {MCP_FAIL_INTERNAL, 0, MCP_CODE_INTERNAL, 0, 0},
    {MCP_FAIL_UNAUTHORIZED, 401, MCP_CODE_INVALID_TOKEN, 0, 1},
    {MCP_FAIL_SCOPE, 403, MCP_CODE_INSUFFICIENT_SCOPE, 0, 1},
    {MCP_FAIL_ORIGIN, 403, MCP_CODE_INVALID_REQUEST, 0, 0},
    {MCP_FAIL_HTTP_METHOD, 405, MCP_CODE_INVALID_REQUEST, 0, 0},
    {MCP_FAIL_ACCEPT, 406, MCP_CODE_INVALID_REQUEST, 0, 0},
    {MCP_FAIL_TOO_LARGE, 413, MCP_CODE_TOO_LARGE, 0, 0},
    {MCP_FAIL_MEDIA, 415, MCP_CODE_INVALID_REQUEST, 0, 0},
    {MCP_FAIL_BUSY, 429, MCP_CODE_RATE_LIMITED, 1, 0},
    {MCP_FAIL_UNAVAILABLE, 503, MCP_CODE_POLICY_UNAVAILABLE, 2, 0},
    {MCP_FAIL_TOOL, 0, MCP_CODE_INTERNAL, 0, 0},
};

/* What is none of this door's is a fault of the server. */
static const problem_row_t otherwise = {MCP_FAIL_INTERNAL, 500, MCP_CODE_INTERNAL, 0, 0};

static const problem_row_t *row_of(mcp_fail_t fail)
{
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].fail == fail) {
            return &rows[i];
        }
    }
    return &otherwise;
}

static const char *title_of(int http)
{
    static const struct {
        int http;
        const char *title;
    } titles[] = {{400, "Bad Request"},
                  {401, "Unauthorized"},
                  {403, "Forbidden"},
                  {404, "Not Found"},
                  {405, "Method Not Allowed"},
                  {406, "Not Acceptable"},
                  {409, "Conflict"},
                  {412, "Precondition Failed"},
                  {413, "Content Too Large"},
                  {415, "Unsupported Media Type"},
                  {429, "Too Many Requests"},
                  {499, "Client Closed Request"},
                  {500, "Internal Server Error"},
                  {501, "Unsupported"},
                  {502, "Bad Gateway"},
                  {503, "Service Unavailable"},
                  {504, "Gateway Timeout"}};
    size_t i;

    for (i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        if (titles[i].http == http) {
            return titles[i].title;
        }
    }
    return "Error";
}

static int is_withheld(mcp_code_t code)
{
    return code == MCP_CODE_UNKNOWN_TOOL || code == MCP_CODE_RESTRICTED || code == MCP_CODE_FORBIDDEN;
}

static const char *with_text(const char *so_far, const char *name, const char *text, apr_pool_t *pool)
{
    return text == NULL ? so_far
                        : apr_pstrcat(pool, so_far, ",\"", name, "\":",
                                      mcp_rpc_quote(text, strlen(text), pool), NULL);
}

/* ,"scopes":["mcp:read","mcp:tools"], the ladder first; or nothing. */
static const char *with_scopes(const char *so_far, unsigned scopes, apr_pool_t *pool)
{
    const char *list = "";
    unsigned bit;

    for (bit = 1; bit != 0 && bit <= MCP_SCOPE_TOOLS; bit <<= 1) {
        if ((scopes & bit) != 0) {
            list = apr_pstrcat(pool, list, list[0] != '\0' ? ",\"" : "\"", mcp_scope_text(bit), "\"", NULL);
        }
    }
    return list[0] == '\0' ? so_far : apr_pstrcat(pool, so_far, ",\"scopes\":[", list, "]", NULL);
}

static const char *body_of(const mcp_err_t *err, mcp_code_t code, int http, apr_pool_t *pool)
{
    const char *text =
        apr_psprintf(pool, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d", title_of(http), http);

    text = with_text(text, "detail", err->message, pool);
    text = with_text(text, "code", mcp_code_text(code), pool);
    text = with_text(text, "hint", err->hint, pool);
    text = with_text(text, "audit", err->audit, pool);
    text = with_text(text, "permission", err->permission, pool);
    text = with_scopes(text, err->scopes, pool);
    return apr_pstrcat(pool, text, "}", NULL);
}

void mcp_problem_answer(const mcp_err_t *err, apr_pool_t *pool, mcp_answer_t *ret)
{
    const problem_row_t *row;
    mcp_code_t code;
    mcp_err_t shown;

    memset(&shown, 0, sizeof(shown));
    if (err != NULL) {
        shown = *err;
    }
    row = row_of(shown.fail);
    code = shown.code != MCP_CODE_NONE ? shown.code : row->code;
    if (is_withheld(code)) {
        memset(&shown, 0, sizeof(shown));
        shown.message = "There is no such tool.";
        code = MCP_CODE_UNKNOWN_TOOL;
    }
    memset(ret, 0, sizeof(*ret));
    ret->http = row->http != 0 ? row->http : mcp_code_http(code);
    ret->retry_after_s = ret->http == 503 && row->retry_after_s == 0 ? 2 : row->retry_after_s;
    ret->is_challenge = row->is_challenge;
    ret->content_type = "application/problem+json";
    ret->body = body_of(&shown, code, ret->http, pool);
    ret->body_bytes = strlen(ret->body);
}
