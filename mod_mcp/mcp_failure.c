/* The only mapping from an error to what a client sees.  One row for each class; what a row can't
 * say (legacy statuses, `data`, withheld tools) has a function with its reason. */
#include "mcp_failure.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_kind_text.h"

typedef enum failure_form {
    FORM_RPC,   /* JSON-RPC error */
    FORM_OAUTH, /* {"error","error_description"} beside a challenge */
    FORM_TOOL   /* result with isError */
} failure_form_t;

typedef struct failure_row {
    mcp_fail_t fail;
    failure_form_t form;
    int http;
    int rpc_code;
    int retry_after_s;
    const char *message; /* where err has none */
} failure_row_t;

static const failure_row_t rows[] = {
    {MCP_FAIL_PARSE, FORM_RPC, 400, -32700, 0, "Parse error"},
    {MCP_FAIL_REQUEST, FORM_RPC, 400, -32600, 0, "Invalid request"},
    {MCP_FAIL_METHOD, FORM_RPC, 404, -32601, 0, "Method not found"},
    {MCP_FAIL_ENVELOPE, FORM_RPC, 400, -32602, 0, "Invalid params"},
    {MCP_FAIL_PARAMS, FORM_RPC, 200, -32602, 0, "Invalid params"},
    {MCP_FAIL_HEADER, FORM_RPC, 400, -32020, 0, "Header mismatch"},
    {MCP_FAIL_CAPABILITY, FORM_RPC, 400, -32021, 0, "Missing required client capability"},
    {MCP_FAIL_VERSION, FORM_RPC, 400, -32022, 0, "Unsupported protocol version"},
    {MCP_FAIL_INTERNAL, FORM_RPC, 200, -32603, 0, "Internal error"},
    {MCP_FAIL_UNAUTHORIZED, FORM_OAUTH, 401, 0, 0, "An access token is needed"},
    {MCP_FAIL_SCOPE, FORM_OAUTH, 403, 0, 0, "The token lacks a scope"},
    {MCP_FAIL_ORIGIN, FORM_RPC, 403, -32600, 0, "This origin is not allowed"},
    {MCP_FAIL_HTTP_METHOD, FORM_RPC, 405, -32600, 0, "Use POST"},
    {MCP_FAIL_ACCEPT, FORM_RPC, 406, -32600, 0,
     "Accept must allow application/json and text/event-stream"},
    {MCP_FAIL_TOO_LARGE, FORM_RPC, 413, -32600, 0, "The body is too large"},
    {MCP_FAIL_MEDIA, FORM_RPC, 415, -32600, 0, "Content-Type must be application/json"},
    {MCP_FAIL_BUSY, FORM_RPC, 429, -32603, 1, "Too many calls at once, try again later"},
    {MCP_FAIL_SESSION, FORM_RPC, 404, -32600, 0, "The session is unknown or over"},
    {MCP_FAIL_UNAVAILABLE, FORM_RPC, 503, -32603, 2, "The policy service is not available"},
    {MCP_FAIL_TOOL, FORM_TOOL, 200, -32603, 0, "The call failed"},
};

static const failure_row_t *row_of(mcp_fail_t fail)
{
    const failure_row_t *internal = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].fail == fail)
            return &rows[i];
        if (rows[i].fail == MCP_FAIL_INTERNAL)
            internal = &rows[i];
    }
    return internal;
}

/* ,"NAME":"TEXT" behind what there is, or nothing for NULL. */
static const char *with_text(const char *so_far, const char *name, const char *text,
                             apr_pool_t *pool)
{
    if (text == NULL)
        return so_far;
    return apr_pstrcat(pool, so_far, *so_far != '\0' ? "," : "", "\"", name, "\":",
                       mcp_rpc_quote(text, strlen(text), pool), NULL);
}

static const char *as_object(const char *members, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "{", members, "}", NULL);
}

static void set_body(mcp_answer_t *ret, const char *body, size_t bytes)
{
    ret->content_type = "application/json";
    ret->body = body;
    ret->body_bytes = bytes;
}

/* --- withheld tools ----------------------------------------------------------- */

static int is_unknown_tool(const mcp_err_t *err)
{
    return err->code == MCP_CODE_UNKNOWN_TOOL || err->code == MCP_CODE_RESTRICTED ||
           err->code == MCP_CODE_FORBIDDEN;
}

/* The answer for a name that nobody has. A withheld tool has to give the same bytes,
 * so nothing of err goes in but the name. */
static mcp_err_t unknown_tool(const mcp_err_t *err, apr_pool_t *pool)
{
    static const char head[] = "Unknown tool";
    mcp_err_t ret;
    memset(&ret, 0, sizeof ret);
    ret.fail = MCP_FAIL_PARAMS;
    ret.message = head;
    if (err->requested != NULL)
        ret.message = apr_pstrcat(
            pool, head, ": ",
            apr_pstrmemdup(pool, err->requested,
                           mcp_rpc_cut(err->requested, strlen(err->requested), MCP_MAX_REQUESTED)),
            NULL);
    else if (err->message != NULL && strncmp(err->message, head, sizeof head - 1) == 0)
        ret.message = err->message;
    return ret;
}

/* --- JSON-RPC errors ----------------------------------------------------------- */

/* The required capabilities are the caller's JSON text; what is not an object becomes {}. */
static const char *capability_data(const char *required, apr_pool_t *pool)
{
    json_t *object = NULL;
    if (required != NULL)
        object = json_loads(required, JSON_REJECT_DUPLICATES, NULL);
    const char *text = json_is_object(object) ? required : "{}";
    json_decref(object);
    return apr_pstrcat(pool, "{\"requiredCapabilities\":", text, "}", NULL);
}

/* A legacy date put into `_meta` must not be told that legacy dates are fine: an obedient client
 * would loop. Nor may a client of an endpoint that has legacy switched off, whatever
 * it asked for. */
static const char *version_data(const mcp_err_t *err, apr_pool_t *pool)
{
    const char *requested = err->requested;
    int modern_only = err->is_modern_only || requested == NULL ||
                      mcp_era_from_text(requested) != MCP_REV_NONE;
    const char *text = requested != NULL ? requested : "";
    return apr_pstrcat(pool, "{\"supported\":", mcp_era_supported(NULL, modern_only, pool),
                       ",\"requested\":", mcp_rpc_quote(text, strlen(text), pool), "}", NULL);
}

/* NULL: none. */
static const char *rpc_data(const mcp_err_t *err, apr_pool_t *pool)
{
    const char *members = "";
    if (err->fail == MCP_FAIL_VERSION)
        return version_data(err, pool);
    if (err->fail == MCP_FAIL_CAPABILITY)
        return capability_data(err->requested, pool);
    if (err->code != MCP_CODE_NONE)
        members = with_text(members, "code", mcp_code_text(err->code), pool);
    members = with_text(members, "hint", err->hint, pool);
    members = with_text(members, "audit", err->audit, pool);
    return *members != '\0' ? as_object(members, pool) : NULL;
}

static void answer_rpc(const mcp_err_t *err, const failure_row_t *row, const char *id,
                       const mcp_era_t *era, apr_pool_t *pool, mcp_answer_t *ret)
{
    size_t bytes = 0;
    const char *message = err->message != NULL ? err->message : row->message;
    const char *body = mcp_rpc_error(id, row->rpc_code, message, rpc_data(err, pool), pool, &bytes);
    set_body(ret, body, bytes);
    /* To a legacy client 404 means that its session is gone. */
    if (row->fail == MCP_FAIL_METHOD && era != NULL && !era->is_modern)
        ret->http = 200;
}

/* --- OAuth ---------------------------------------------------------------------- */

static void answer_oauth(const mcp_err_t *err, const failure_row_t *row, apr_pool_t *pool,
                         mcp_answer_t *ret)
{
    char scopes[64];
    const char *members = with_text(
        "", "error", row->fail == MCP_FAIL_SCOPE ? "insufficient_scope" : "invalid_token", pool);
    members = with_text(members, "error_description",
                        err->message != NULL ? err->message : row->message, pool);
    if (row->fail == MCP_FAIL_SCOPE && err->scopes != 0) {
        mcp_scope_list(err->scopes, scopes, sizeof scopes);
        members = with_text(members, "scope", scopes, pool);
    }
    members = with_text(members, "audit", err->audit, pool);
    const char *body = as_object(members, pool);
    set_body(ret, body, strlen(body));
    ret->is_challenge = 1;
}

/* --- in-band ---------------------------------------------------------------------- */

const char *mcp_failure_described_head(const char *description, apr_pool_t *pool)
{
    return apr_pstrcat(pool,
                       "\"resultType\":\"complete\",\"_meta\":{\"" MCP_META_SERVER
                       "\":{\"name\":\"" MCP_SERVER_NAME "\",\"version\":",
                       mcp_rpc_quote(MCP_SERVER_VERSION, strlen(MCP_SERVER_VERSION), pool),
                       description != NULL ? ",\"description\":\"" : "",
                       description != NULL ? description : "", description != NULL ? "\"}}" : "}}",
                       NULL);
}

const char *mcp_failure_result_head(const mcp_era_t *era, apr_pool_t *pool)
{
    return era != NULL && !era->is_modern ? "" : mcp_failure_described_head(NULL, pool);
}

static int has_structured(const mcp_era_t *era)
{
    return era == NULL || era->is_modern || era->revision >= MCP_REV_2025_06_18;
}

static void answer_tool(const mcp_err_t *err, const failure_row_t *row, const char *id,
                        const mcp_era_t *era, apr_pool_t *pool, mcp_answer_t *ret)
{
    mcp_code_t code = err->code != MCP_CODE_NONE ? err->code : MCP_CODE_INTERNAL;
    const char *message = err->message != NULL ? err->message : row->message;
    const char *head = mcp_failure_result_head(era, pool);
    const char *structured = "";
    size_t bytes = 0;

    /* The last line is for those who see the text alone: a report to IT names the audit row. */
    const char *text = apr_pstrcat(
        pool, message, err->hint != NULL ? "\n" : "", err->hint != NULL ? err->hint : "", "\n(",
        mcp_code_text(code), err->audit != NULL ? ", audit " : "",
        err->audit != NULL ? err->audit : "", ")", NULL);
    if (has_structured(era)) {
        const char *members = with_text("", "code", mcp_code_text(code), pool);
        members = with_text(members, "message", message, pool);
        members = with_text(members, "hint", err->hint, pool);
        members = with_text(members, "audit", err->audit, pool);
        members = with_text(members, "permission", err->permission, pool);
        structured = apr_pstrcat(pool, ",\"structuredContent\":{\"error\":{", members, "}}", NULL);
    }
    const char *result =
        apr_pstrcat(pool, "{", head, *head != '\0' ? "," : "",
                    "\"content\":[{\"type\":\"text\",\"text\":",
                    mcp_rpc_quote(text, strlen(text), pool), "}]", structured, ",\"isError\":true}",
                    NULL);
    const char *body = mcp_rpc_result(id, result, strlen(result), pool, &bytes);
    set_body(ret, body, bytes);
}

void mcp_failure_answer(const mcp_err_t *err, const char *id, const mcp_era_t *era,
                        apr_pool_t *pool, mcp_answer_t *ret)
{
    mcp_err_t shown;
    memset(&shown, 0, sizeof shown);
    if (err != NULL)
        shown = is_unknown_tool(err) ? unknown_tool(err, pool) : *err;
    const failure_row_t *row = row_of(shown.fail);

    memset(ret, 0, sizeof *ret);
    ret->http = row->http;
    ret->retry_after_s = row->retry_after_s;
    if (row->fail == MCP_FAIL_HTTP_METHOD)
        ret->allow = "POST, OPTIONS";
    if (row->form == FORM_OAUTH)
        answer_oauth(&shown, row, pool, ret);
    else if (row->form == FORM_TOOL && id != NULL)
        answer_tool(&shown, row, id, era, pool, ret);
    else /* also a tool's error without an id: there is no result to put it into */
        answer_rpc(&shown, row, id, era, pool, ret);
}
