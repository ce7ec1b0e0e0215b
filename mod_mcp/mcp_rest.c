/* The story of one REST request: origin, token, route, media types, body, arguments, policyd, answer; the earliest gate that fails answers, and
 * whoever has no valid token is told 401 before anything about his request. */
#include "mcp_rest.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "mcp_api.h"
#include "mcp_bearer.h"
#include "mcp_config.h"
#include "mcp_door.h"
#include "mcp_input.h"
#include "mcp_lifecycle.h"
#include "mcp_origin.h"
#include "mcp_problem.h"
#include "mcp_route.h"
#include "mcp_status.h"
#include "mcp_wellknown.h"

#define DOCUMENT     "/openapi.json"
#define SERVERS_HEAD "{\"openapi\":\"3.1.0\",\"servers\":[{\"url\":\"" /* as PROTOCOL.md says that it begins */
#define AUDIT_HEADER "MCP-Audit"
#define INVOKE_MS    10000 /* an operation may wait for others, and look through a long trail */
#define LINK_BYTES   (MCP_MAX_BODY_BYTES - 16384) /* of a body: larger arguments fill no message to policyd */

/* One request on its way. */
typedef struct rest {
    request_rec *r;
    mcp_dir_conf_t conf; /* the location's, with the resource that holds here */
    mcp_terms_t terms;
    mcp_turn_t turn;
    int has_token;
    int is_asked;        /* policyd was asked to run it, and so to judge its sender */
    mcp_route_match_t match;
} rest_t;

/* --- refusals ------------------------------------------------------------------------------ */

/* Metadata of the endpoint that tokens are for; NULL: this server has none of that resource. */
static const char *metadata_url(const rest_t *rest)
{
    const request_rec *r = rest->r;
    const apr_array_header_t *endpoints = mcp_config_server(r->server)->endpoints;
    int i;

    for (i = 0; i < endpoints->nelts; i++) {
        const mcp_dir_conf_t *conf = APR_ARRAY_IDX(endpoints, i, const mcp_dir_conf_t *);

        if (strcmp(mcp_config_resource(conf, r->server, r->pool), rest->conf.resource) == 0) {
            return mcp_wellknown_url(conf, r->server, r->pool);
        }
    }
    return NULL;
}

static void log_refusal(const rest_t *rest, const mcp_err_t *err, int http)
{
    int level = http >= 500 ? APLOG_ERR : APLOG_INFO;

    ap_log_rerror(APLOG_MARK, level, 0, rest->r, "MCP0302: refused (%d): %s%s%s%s%s", http,
                  err->code != MCP_CODE_NONE ? mcp_code_text(err->code) : "broken request",
                  err->log != NULL ? ": " : "", err->log != NULL ? err->log : "",
                  err->audit != NULL ? ", audit " : "", err->audit != NULL ? err->audit : "");
}

static int send_problem(rest_t *rest, const mcp_err_t *err)
{
    request_rec *r = rest->r;
    mcp_answer_t answer;

    mcp_problem_answer(err, r->pool, &answer);
    log_refusal(rest, err, answer.http);
    mcp_status_refusal(err->fail);
    if (answer.is_challenge) {
        apr_table_setn(r->err_headers_out, "WWW-Authenticate",
                       mcp_bearer_challenge(err, metadata_url(rest), "mcp:read", r->pool));
    }
    if (answer.retry_after_s > 0) {
        apr_table_setn(r->err_headers_out, "Retry-After", apr_itoa(r->pool, answer.retry_after_s));
    }
    if (answer.http == HTTP_METHOD_NOT_ALLOWED && rest->match.allow != NULL) {
        apr_table_setn(r->err_headers_out, "Allow", rest->match.allow);
    }
    if (err->audit != NULL) {
        apr_table_setn(r->err_headers_out, AUDIT_HEADER, err->audit);
    }
    return mcp_door_send_text(r, answer.http, answer.content_type, answer.body, answer.body_bytes);
}

/* Who sends it is known to be somebody, or that he is not is said in place of err. */
static int refuse(rest_t *rest, const mcp_err_t *err)
{
    int is_judged = rest->is_asked && err->fail != MCP_FAIL_TOO_LARGE; /* that one was never sent */
    mcp_err_t unknown;

    memset(&unknown, 0, sizeof(unknown));
    if (err->fail != MCP_FAIL_UNAUTHORIZED && err->fail != MCP_FAIL_ORIGIN &&
        err->fail != MCP_FAIL_UNAVAILABLE && !is_judged && rest->has_token &&
        mcp_turn_resolve(&rest->turn, &unknown) != APR_SUCCESS) {
        return send_problem(rest, &unknown);
    }
    return send_problem(rest, err);
}

/* --- the request --------------------------------------------------------------------------------- */

static void fill(rest_t *rest, request_rec *r, const mcp_dir_conf_t *conf)
{
    rest->r = r;
    rest->conf = *conf;
    rest->conf.resource = mcp_config_api_resource(conf, r->server, r->pool);
    rest->terms.policy_ms = apr_time_as_msec(mcp_config_policy_timeout(mcp_config_server(r->server)));
    rest->terms.call_ms = apr_time_as_msec(mcp_config_call_timeout(conf));
    rest->turn.pool = r->pool;
    rest->turn.child = mcp_lifecycle_child();
    rest->turn.terms = &rest->terms;
    rest->turn.who.surface = "rest";
    rest->turn.who.resource = rest->conf.resource;
    mcp_turn_trace(&rest->turn, apr_table_get(r->headers_in, "traceparent"));
}

/* The path below the API's own, as it was sent: httpd's reading of it has lost which slashes stood encoded. NULL when it was sent in another
 * spelling than the location's. */
static const char *below(const rest_t *rest)
{
    const char *path = rest->r->unparsed_uri;
    size_t base = strlen(rest->conf.api_path);
    const char *authority = path[0] != '/' ? strstr(path, "://") : NULL;

    if (authority != NULL) {
        path = authority + 3 + strcspn(authority + 3, "/?#");
    }
    path = apr_pstrmemdup(rest->r->pool, path, strcspn(path, "?#"));
    return strncmp(path, rest->conf.api_path, base) == 0 && (path[base] == '/' || path[base] == '\0')
               ? path + base
               : NULL;
}

static apr_status_t check_accept(const rest_t *rest, mcp_err_t *err)
{
    static const char *const fine[] = {"*/*", "application/*", "application/json", NULL};

    return mcp_door_accept(rest->r, fine, "application/json", err);
}

static apr_status_t find(rest_t *rest, const char *path, mcp_err_t *err)
{
    const mcp_routes_t *routes = NULL;
    apr_status_t status = mcp_api_routes(rest->turn.child->api, rest->terms.policy_ms, rest->r->pool,
                                         &routes, err);

    if (status == APR_SUCCESS && path == NULL) {
        status = mcp_err_set(err, rest->r->pool, MCP_FAIL_TOOL, MCP_CODE_NOT_FOUND,
                             apr_pstrcat(rest->r->pool, "paths of this API begin with ",
                                         rest->conf.api_path, "/, in this spelling", NULL),
                             "there is no such path");
    } else if (status == APR_SUCCESS) {
        status = mcp_route_find(routes, rest->r->method, path, rest->r->pool, &rest->match, err);
    }
    return status;
}

/* What is not found may be new: asking who sends it brings the news of a policyd that was upgraded meanwhile. */
static apr_status_t find_fresh(rest_t *rest, const char *path, mcp_err_t *err)
{
    apr_status_t status = find(rest, path, err);

    if (status == APR_SUCCESS || err->fail == MCP_FAIL_UNAVAILABLE) {
        return status;
    }
    status = mcp_turn_resolve(&rest->turn, err);
    return status == APR_SUCCESS ? find(rest, path, err) : status;
}

/* The body's text, NULL where there is none; bounded by the location, the operation and the link. */
static apr_status_t read_body(rest_t *rest, mcp_route_input_t *input, mcp_err_t *err)
{
    request_rec *r = rest->r;
    const mcp_route_t *route = rest->match.route;
    apr_off_t of_location = (apr_off_t)mcp_config_max_body(&rest->conf);
    apr_off_t of_route = (apr_off_t)(route->max_bytes < LINK_BYTES ? route->max_bytes : LINK_BYTES);
    const char *text = NULL;
    size_t bytes = 0;
    apr_status_t status;

    if (!ap_request_has_body(r)) {
        return APR_SUCCESS;
    }
    if (strcmp(route->method, "GET") == 0 || strcmp(route->method, "DELETE") == 0) {
        return mcp_err_set(err, r->pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST,
                           "send the arguments in the query string", "this operation takes no body");
    }
    status = mcp_door_media(r, err);
    if (status == APR_SUCCESS) {
        status = mcp_input_read(r, of_location < of_route ? of_location : of_route, &text, &bytes, err);
        if (status != APR_SUCCESS && err->fail == MCP_FAIL_TOO_LARGE && of_route <= of_location) {
            (void)mcp_err_set(err, r->pool, MCP_FAIL_TOO_LARGE, MCP_CODE_TOO_LARGE, NULL,
                              "the body is larger than the %" APR_OFF_T_FMT
                              " bytes that this operation takes",
                              of_route);
        }
    }
    if (status == APR_SUCCESS && bytes > 0) {
        input->body = text;
        input->body_bytes = bytes;
    }
    return status;
}

/* Everything that the request says, as arguments. */
static apr_status_t take_arguments(rest_t *rest, json_t **ret, mcp_err_t *err)
{
    request_rec *r = rest->r;
    mcp_route_input_t input;
    apr_status_t status = check_accept(rest, err);

    memset(&input, 0, sizeof(input));
    input.query = r->args;
    input.if_match = apr_table_get(r->headers_in, "If-Match");
    if (status == APR_SUCCESS && r->method_number != M_GET &&
        apr_table_get(r->headers_in, "If-None-Match") != NULL) {
        return mcp_err_set(err, r->pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST,
                           "leave the header out", "If-None-Match works with GET alone");
    }
    if (status == APR_SUCCESS) {
        status = read_body(rest, &input, err);
    }
    return status == APR_SUCCESS ? mcp_route_args(&rest->match, &input, r->pool, ret, err) : status;
}

/* --- the answer -------------------------------------------------------------------------------------- */

typedef struct text {
    char *bytes;
    size_t count;
} text_t;

/* A result may hold a token: what it was written into is not left behind. */
static apr_status_t wipe_text(void *value)
{
    text_t *text = value;

    mcp_wipe(text->bytes, text->count);
    free(text->bytes);
    return APR_SUCCESS;
}

static void set_location(const rest_t *rest, const json_t *result)
{
    const char *path = mcp_route_location(rest->match.route, result, rest->r->pool);

    if (path != NULL) {
        apr_table_setn(rest->r->headers_out, "Location",
                       apr_pstrcat(rest->r->pool, rest->conf.api_path, path, NULL));
    }
}

static void set_next(const rest_t *rest, const json_t *result)
{
    request_rec *r = rest->r;
    const char *cursor = mcp_json_str(result, "next_cursor");
    const char *path = cursor != NULL ? mcp_route_self(&rest->match, r->pool) : NULL;
    const char *query = path != NULL ? mcp_route_next(r->args, cursor, r->pool) : NULL;

    if (query != NULL) {
        apr_table_setn(r->headers_out, "Link",
                       apr_pstrcat(r->pool, "<", rest->conf.api_path, path, "?", query, ">; rel=\"next\"", NULL));
    }
}

static int send_result(rest_t *rest, const json_t *args, const json_t *result, const char *audit)
{
    request_rec *r = rest->r;
    const char *etag = mcp_route_etag(result, r->pool);
    text_t *text = apr_palloc(r->pool, sizeof(*text));
    int status = rest->match.route->status;

    apr_table_setn(r->err_headers_out, AUDIT_HEADER, audit);
    if (etag != NULL) {
        apr_table_setn(r->err_headers_out, "ETag", etag);
    }
    if (r->method_number == M_GET &&
        mcp_route_is_none_match(apr_table_get(r->headers_in, "If-None-Match"), etag)) {
        return HTTP_NOT_MODIFIED;
    }
    text->bytes = mcp_json_text(result, &text->count);
    if (text->bytes == NULL) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    apr_pool_cleanup_register(r->pool, text, wipe_text, apr_pool_cleanup_null);
    if (mcp_json_bool(args, "dry_run")) {
        status = HTTP_OK; /* nothing was made */
    } else if (status == HTTP_CREATED) {
        set_location(rest, result);
    }
    set_next(rest, result);
    return mcp_door_send_text(r, status, "application/json", text->bytes, text->count);
}

/* An operation that only reads has done nothing, whether or not its answer came. */
static void soften(const rest_t *rest, mcp_err_t *err)
{
    if (err->code == MCP_CODE_OUTCOME_UNRECORDED && err->audit == NULL &&
        rest->match.route->klass == MCP_CLASS_READ) {
        (void)mcp_err_set(err, rest->r->pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE,
                          "try again in a moment", "the policy service did not answer in time");
    }
}

static int run(rest_t *rest, const json_t *args)
{
    int64_t longest = rest->terms.call_ms < INVOKE_MS ? rest->terms.call_ms : INVOKE_MS;
    int64_t budget_ms = rest->terms.policy_ms > longest ? rest->terms.policy_ms : longest;
    mcp_ask_t *ask = rest->turn.child->ask;
    json_t *result = NULL;
    const char *audit = NULL;
    mcp_err_t err;
    apr_status_t status;

    memset(&err, 0, sizeof(err));
    status = mcp_ask_knock(ask, rest->terms.policy_ms, rest->r->pool, &err);
    if (status == APR_SUCCESS) {
        rest->is_asked = 1;
        status = mcp_ask_invoke(ask, &rest->turn.who, rest->match.route->op, args, "direct", rest->turn.trace_id,
                                budget_ms, rest->r->pool, &result, &audit, &err);
    }
    if (status != APR_SUCCESS) {
        soften(rest, &err);
        return refuse(rest, &err);
    }
    return send_result(rest, args, result, audit);
}

/* --- openapi.json ------------------------------------------------------------------------------------- */

/* The document with this location's own path in the place of the usual one. */
static int send_document(rest_t *rest, const char *text, size_t bytes)
{
    const size_t head = sizeof(SERVERS_HEAD) - 1;
    const char *end = bytes > head && memcmp(text, SERVERS_HEAD, head) == 0 ? strchr(text + head, '"') : NULL;
    const char *own = mcp_rpc_quote(rest->conf.api_path, strlen(rest->conf.api_path), rest->r->pool);
    mcp_door_piece_t pieces[3];

    if (end == NULL) {
        return mcp_door_send_text(rest->r, HTTP_OK, "application/json", text, bytes);
    }
    pieces[0].text = text;
    pieces[0].bytes = head - 1; /* without the opening quote, which `own` has */
    pieces[1].text = own;
    pieces[1].bytes = strlen(own);
    pieces[2].text = end + 1;
    pieces[2].bytes = bytes - (size_t)(end + 1 - text);
    return mcp_door_send(rest->r, HTTP_OK, "application/json", pieces, 3);
}

static int answer_document(rest_t *rest)
{
    request_rec *r = rest->r;
    const char *text = NULL;
    const char *digest = NULL;
    const char *etag;
    size_t bytes = 0;
    mcp_err_t err;
    apr_status_t status = APR_SUCCESS;

    memset(&err, 0, sizeof(err));
    if (r->method_number != M_GET) {
        rest->match.allow = "GET, HEAD, OPTIONS";
        status = mcp_err_set(&err, r->pool, MCP_FAIL_HTTP_METHOD, MCP_CODE_INVALID_REQUEST, NULL,
                             "this path takes GET, HEAD, OPTIONS");
    }
    if (status == APR_SUCCESS) {
        status = mcp_turn_resolve(&rest->turn, &err);
    }
    if (status == APR_SUCCESS) {
        status = check_accept(rest, &err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_api_document(rest->turn.child->api, rest->terms.policy_ms, r->pool, &text, &bytes,
                                  &digest, &err);
    }
    if (status != APR_SUCCESS) {
        return refuse(rest, &err);
    }
    etag = apr_pstrcat(r->pool, "\"", digest, "\"", NULL);
    apr_table_setn(r->err_headers_out, "ETag", etag);
    return mcp_route_is_none_match(apr_table_get(r->headers_in, "If-None-Match"), etag)
               ? HTTP_NOT_MODIFIED
               : send_document(rest, text, bytes);
}

/* --- the story ------------------------------------------------------------------------------------------ */

static int answer(rest_t *rest)
{
    const char *path = below(rest);
    json_t *args = NULL;
    mcp_err_t err;
    apr_status_t status;

    memset(&err, 0, sizeof(err));
    if (path != NULL && strcmp(path, DOCUMENT) == 0) {
        return answer_document(rest);
    }
    status = find_fresh(rest, path, &err);
    if (status == APR_SUCCESS) {
        status = take_arguments(rest, &args, &err);
    }
    return status == APR_SUCCESS ? run(rest, args) : refuse(rest, &err);
}

/* The CORS headers of this door where they are others than an endpoint's. */
static void set_cors(request_rec *r, int is_preflight)
{
    if (apr_table_get(r->headers_in, "Origin") != NULL) {
        apr_table_setn(r->err_headers_out, "Access-Control-Expose-Headers",
                       "WWW-Authenticate, ETag, Link, Location, Retry-After, " AUDIT_HEADER);
    }
    if (is_preflight) {
        apr_table_setn(r->headers_out, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
        apr_table_setn(r->headers_out, "Access-Control-Allow-Headers",
                       "authorization, content-type, accept, if-match, if-none-match, traceparent");
        apr_table_setn(r->headers_out, "Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
}

/* Both may be switched on for a path, by an outer location and an inner one: the inner one's answers. */
static int is_an_endpoints(const mcp_dir_conf_t *conf)
{
    return conf->is_endpoint == 1 && conf->path != NULL && strlen(conf->path) > strlen(conf->api_path);
}

int mcp_rest_handler(request_rec *r)
{
    const mcp_dir_conf_t *conf = mcp_config_dir(r);
    mcp_err_t err;
    rest_t *rest;
    apr_status_t status;

    if (conf == NULL || conf->is_api != 1 || conf->api_path == NULL || is_an_endpoints(conf)) {
        return DECLINED;
    }
    mcp_status_request();
    rest = apr_pcalloc(r->pool, sizeof(*rest));
    fill(rest, r, conf);
    memset(&err, 0, sizeof(err));
    status = mcp_origin_check(r, &rest->conf, &err);
    if (status == APR_SUCCESS && r->method_number == M_OPTIONS) {
        (void)mcp_origin_preflight(r); /* OK, always */
        set_cors(r, 1);
        return OK;
    }
    if (status == APR_SUCCESS) {
        set_cors(r, 0);
    }
    if (status == APR_SUCCESS && rest->turn.child == NULL) {
        status = mcp_err_set(&err, r->pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE, NULL,
                             "the policy service is not available");
    }
    if (status == APR_SUCCESS) {
        status = mcp_door_token(r, rest->turn.who.token_hash, &err);
        rest->has_token = status == APR_SUCCESS;
    }
    return status == APR_SUCCESS ? answer(rest) : send_problem(rest, &err);
}
