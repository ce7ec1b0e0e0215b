/* The story of one POST: origin, method, token, media types, size, JSON, era, method; the earliest gate that fails answers, and whoever has no valid
 * token is told 401 before anything about his message. */
#include "mcp_handler.h"

#include <string.h>

#include <poll.h>

#include <apr_portable.h>
#include <apr_strings.h>
#include <http_connection.h>
#include <http_core.h>
#include <http_protocol.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "mcp_bearer.h"
#include "mcp_config.h"
#include "mcp_door.h"
#include "mcp_failure.h"
#include "mcp_input.h"
#include "mcp_lifecycle.h"
#include "mcp_method.h"
#include "mcp_origin.h"
#include "mcp_status.h"
#include "mcp_wellknown.h"

/* One request on its way. */
typedef struct post {
    request_rec *r;
    const mcp_dir_conf_t *conf;
    mcp_terms_t terms;
    mcp_turn_t turn;
    mcp_era_headers_t headers;
    int has_token;
} post_t;

/* --- answers ------------------------------------------------------------------------------ */

static int send_result(request_rec *r, const char *id, const char *result, size_t bytes)
{
    const char *head = mcp_rpc_result_head(id, r->pool);
    mcp_door_piece_t pieces[] = {{head, strlen(head)},
                                 {result, bytes},
                                 {MCP_RPC_RESULT_TAIL, sizeof(MCP_RPC_RESULT_TAIL) - 1}};

    return mcp_door_send(r, HTTP_OK, "application/json", pieces, 3);
}

/* Logs what an administrator may want to know of a refusal; one line, ids and codes only. */
static void log_refusal(const post_t *post, const mcp_err_t *err)
{
    int level = err->fail == MCP_FAIL_UNAVAILABLE || err->fail == MCP_FAIL_INTERNAL ? APLOG_ERR : APLOG_INFO;

    ap_log_rerror(APLOG_MARK, level, 0, post->r, "MCP0301: refused: %s%s%s%s%s",
                  err->code != MCP_CODE_NONE ? mcp_code_text(err->code) : "protocol error",
                  err->log != NULL ? ": " : "", err->log != NULL ? err->log : "",
                  err->audit != NULL ? ", audit " : "", err->audit != NULL ? err->audit : "");
}

static int send_refusal(post_t *post, const mcp_err_t *err, const char *id, const mcp_era_t *era)
{
    request_rec *r = post->r;
    mcp_err_t shown = *err;
    mcp_answer_t answer;

    log_refusal(post, err);
    mcp_status_refusal(err->fail);
    shown.is_modern_only = !post->terms.serves_legacy;
    memset(&answer, 0, sizeof(answer));
    mcp_failure_answer(&shown, id, era, r->pool, &answer);
    if (answer.is_challenge) {
        apr_table_setn(r->err_headers_out, "WWW-Authenticate",
                       mcp_bearer_challenge(err, mcp_wellknown_url(post->conf, r->server, r->pool),
                                            "mcp:read mcp:tools", r->pool));
    }
    if (answer.retry_after_s > 0) {
        apr_table_setn(r->err_headers_out, "Retry-After",
                       apr_itoa(r->pool, answer.retry_after_s));
    }
    if (answer.allow != NULL) {
        apr_table_setn(r->err_headers_out, "Allow", answer.allow);
    }
    return answer.content_type != NULL
               ? mcp_door_send_text(r, answer.http, answer.content_type, answer.body, answer.body_bytes)
               : mcp_door_send_status(r, answer.http);
}

/* A refusal of the message itself: its sender is authenticated first, so that a bad token is 401 whatever the message. */
static int refuse(post_t *post, const mcp_err_t *err, const char *id, const mcp_era_t *era)
{
    mcp_err_t unknown;

    memset(&unknown, 0, sizeof(unknown));
    /* what has an audit id was refused by policyd, or after it, which knew the sender: to ask again could only hide the reason */
    if (err->fail != MCP_FAIL_UNAUTHORIZED && err->fail != MCP_FAIL_ORIGIN &&
        err->fail != MCP_FAIL_UNAVAILABLE && err->audit == NULL && post->has_token &&
        mcp_turn_resolve(&post->turn, &unknown) != APR_SUCCESS) {
        return send_refusal(post, &unknown, NULL, NULL);
    }
    return send_refusal(post, err, id, era);
}

/* --- the turn --------------------------------------------------------------------------------- */

static const char *header_of(void *baton, const char *name)
{
    return apr_table_get(((const post_t *)baton)->r->headers_in, name);
}

/* The peer's end of the connection shows on the socket, also where TLS has said goodbye in a record before it; under HTTP/2 the connection is
 * aborted by mod_http2. */
static int client_is_gone(void *baton)
{
    conn_rec *connection = ((const post_t *)baton)->r->connection;
    apr_socket_t *socket;
    apr_os_sock_t fd;
    struct pollfd item;

    if (connection->aborted) {
        return 1;
    }
    if (connection->master != NULL) {
        return connection->master->aborted != 0;
    }
    socket = ap_get_conn_socket(connection);
    if (socket == NULL || apr_os_sock_get(&fd, socket) != APR_SUCCESS) {
        return 0;
    }
    item.fd = fd;
    item.events = POLLRDHUP;
    item.revents = 0;
    return poll(&item, 1, 0) > 0 && (item.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void fill_terms(post_t *post)
{
    const mcp_server_conf_t *server = mcp_config_server(post->r->server);

    post->terms.policy_ms = apr_time_as_msec(mcp_config_policy_timeout(server));
    post->terms.call_ms = apr_time_as_msec(mcp_config_call_timeout(post->conf));
    post->terms.max_result = (size_t)mcp_config_max_result(post->conf);
    post->terms.list_page = mcp_config_list_page(post->conf);
    post->terms.control_prefix = post->conf->control_prefix;
    post->terms.session_us = mcp_config_session_lifetime(post->conf);
    post->terms.serves_legacy = mcp_config_serves_legacy(post->conf);
    post->terms.egress_allow = server->egress_allow;
}

static void fill_turn(post_t *post)
{
    request_rec *r = post->r;
    mcp_turn_t *turn = &post->turn;

    fill_terms(post);
    turn->pool = r->pool;
    turn->child = mcp_lifecycle_child();
    turn->terms = &post->terms;
    turn->who.surface = "mcp";
    turn->who.resource = mcp_config_resource(post->conf, r->server, r->pool);
    turn->header = header_of;
    turn->is_gone = client_is_gone;
    turn->baton = post;
    mcp_turn_trace(turn, apr_table_get(r->headers_in, "traceparent"));
    post->headers.version = apr_table_get(r->headers_in, "MCP-Protocol-Version");
    post->headers.method = apr_table_get(r->headers_in, "Mcp-Method");
    post->headers.name = apr_table_get(r->headers_in, "Mcp-Name");
    post->headers.session = apr_table_get(r->headers_in, "Mcp-Session-Id");
}

static apr_status_t take_token(post_t *post, mcp_err_t *err)
{
    apr_status_t status = mcp_door_token(post->r, post->turn.who.token_hash, err);

    post->has_token = status == APR_SUCCESS;
    return status;
}

/* --- gates before the body ------------------------------------------------------------------------ */

/* One of the two types an answer can have must be acceptable. */
static apr_status_t check_accept(const post_t *post, mcp_err_t *err)
{
    static const char *const fine[] = {"*/*", "application/*", "application/json", "text/event-stream",
                                       "text/*", NULL};

    return mcp_door_accept(post->r, fine, "application/json or text/event-stream", err);
}

static apr_status_t check_method(const post_t *post, mcp_err_t *err)
{
    return post->r->method_number == M_POST
               ? APR_SUCCESS
               : mcp_err_set(err, post->r->pool, MCP_FAIL_HTTP_METHOD, MCP_CODE_NONE, NULL,
                             "this endpoint takes POST");
}

/* --- messages ---------------------------------------------------------------------------------------- */

/* Settles what the classifier leaves open for a legacy request: the session's revision, else the header's, else the oldest. */
static apr_status_t settle_legacy(post_t *post, mcp_era_t *era, mcp_err_t *err)
{
    apr_status_t status;

    if (era->is_modern) {
        return APR_SUCCESS;
    }
    if (!post->terms.serves_legacy) {
        (void)mcp_err_set(err, post->r->pool, MCP_FAIL_VERSION, MCP_CODE_NONE, NULL,
                          "this endpoint serves 2026-07-28 only");
        err->requested = mcp_era_text(era->revision);
        return MCP_STATUS_REFUSED;
    }
    if (era->is_initialize) {
        return APR_SUCCESS;
    }
    status = mcp_turn_session(&post->turn, post->headers.session, err);
    if (status == APR_SUCCESS && post->turn.has_session) {
        era->revision = post->turn.session.revision;
    } else if (status == APR_SUCCESS && era->revision == MCP_REV_NONE) {
        era->revision = MCP_REV_2025_03_26;
    }
    return status;
}

/* Runs one request of the body; its result's text, or err. */
static apr_status_t run_request(post_t *post, const mcp_rpc_message_t *message, mcp_era_t *era,
                                const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    apr_status_t status = settle_legacy(post, era, err);

    if (status == APR_SUCCESS && era->is_modern) {
        post->turn.who.client_name = era->client_name;
        post->turn.who.client_version = era->client_version;
        if (post->turn.trace_id == NULL) {
            mcp_turn_trace(&post->turn, mcp_json_str(era->meta, "traceparent"));
        }
    }
    return status == APR_SUCCESS ? mcp_method_run(&post->turn, era, message, ret, ret_bytes, err)
                                 : status;
}

/* A single message: its failure is the whole answer. */
static int answer_single(post_t *post, const mcp_rpc_message_t *message)
{
    request_rec *r = post->r;
    mcp_err_t err = message->err;
    const char *text = NULL;
    size_t bytes = 0;
    mcp_era_t era;
    apr_status_t status;

    memset(&era, 0, sizeof(era));
    if (err.fail != MCP_FAIL_NONE) {
        return refuse(post, &err, message->id, NULL);
    }
    if (message->type == MCP_RPC_RESPONSE) {
        /* nothing was asked of the client, in either era */
        (void)mcp_err_set(&err, r->pool, MCP_FAIL_REQUEST, MCP_CODE_NONE, NULL,
                          "no request of this server waits for a response");
        return refuse(post, &err, NULL, NULL);
    }
    status = mcp_era_classify(&post->headers, message, r->pool, &era, &err);
    if (status != APR_SUCCESS) {
        return refuse(post, &err, message->id, NULL);
    }
    if (message->type == MCP_RPC_NOTIFICATION) {
        status = settle_legacy(post, &era, &err);
        if (status == APR_SUCCESS) {
            status = mcp_turn_resolve(&post->turn, &err);
        }
        return status == APR_SUCCESS ? mcp_door_send_status(r, HTTP_ACCEPTED)
                                     : refuse(post, &err, NULL, &era);
    }
    status = run_request(post, message, &era, &text, &bytes, &err);
    if (status != APR_SUCCESS) {
        return refuse(post, &err, message->id, &era);
    }
    if (post->turn.session_id != NULL) {
        apr_table_setn(r->headers_out, "Mcp-Session-Id", post->turn.session_id);
    }
    return send_result(r, message->id, text, bytes);
}

/* A refusal of one element as its own in-band error, since the whole batch has one status. A token that was good for the elements before is told like
 * a fault of the server: 401 and 503 would invite the client to send all of it again. */
static const char *element_refusal(post_t *post, mcp_err_t *err, const char *id, const mcp_era_t *era)
{
    mcp_answer_t answer;

    if (err->fail == MCP_FAIL_SCOPE || err->fail == MCP_FAIL_BUSY) {
        err->fail = MCP_FAIL_TOOL;
    } else if (err->fail == MCP_FAIL_UNAUTHORIZED) {
        err->fail = MCP_FAIL_INTERNAL;
    }
    log_refusal(post, err);
    mcp_status_refusal(err->fail);
    memset(&answer, 0, sizeof(answer));
    mcp_failure_answer(err, id, era, post->r->pool, &answer);
    return answer.body_bytes > 0 ? answer.body : NULL;
}

/* One element of a batch. is_first: nothing was done for an element before it, so that a refusal of the caller is one of the whole. */
static apr_status_t run_element(post_t *post, const mcp_rpc_message_t *message, int is_first,
                                const char **ret, mcp_err_t *err)
{
    const char *text = NULL;
    size_t bytes = 0;
    mcp_era_t era;
    apr_status_t status = APR_SUCCESS;

    memset(&era, 0, sizeof(era));
    *err = message->err;
    if (err->fail == MCP_FAIL_NONE) {
        status = mcp_era_classify(&post->headers, message, post->r->pool, &era, err);
    } else {
        status = MCP_STATUS_REFUSED;
    }
    if (status == APR_SUCCESS && message->type == MCP_RPC_NOTIFICATION) {
        return APR_SUCCESS;
    }
    if (status == APR_SUCCESS) {
        status = run_request(post, message, &era, &text, &bytes, err);
    }
    if (status == APR_SUCCESS) {
        *ret = mcp_rpc_result(message->id, text, bytes, post->r->pool, NULL);
        return APR_SUCCESS;
    }
    if (is_first && (err->fail == MCP_FAIL_UNAUTHORIZED || err->fail == MCP_FAIL_UNAVAILABLE)) {
        return status;
    }
    *ret = element_refusal(post, err, message->id, &era);
    return APR_SUCCESS;
}

/* The answers of a batch as one array. */
static int send_batch(request_rec *r, const apr_array_header_t *answers)
{
    mcp_door_piece_t *pieces = apr_palloc(r->pool, sizeof(*pieces) * (size_t)(2 * answers->nelts + 1));
    int i;

    for (i = 0; i < answers->nelts; i++) {
        const char *text = APR_ARRAY_IDX(answers, i, const char *);

        pieces[2 * i].text = i == 0 ? "[" : ",";
        pieces[2 * i].bytes = 1;
        pieces[2 * i + 1].text = text;
        pieces[2 * i + 1].bytes = strlen(text);
    }
    pieces[2 * answers->nelts].text = "]";
    pieces[2 * answers->nelts].bytes = 1;
    return mcp_door_send(r, HTTP_OK, "application/json", pieces, 2 * answers->nelts + 1);
}

/* Runs the elements in their order. All answers together are bounded like one result: what would come after that is not begun. */
static apr_status_t run_batch(post_t *post, const mcp_rpc_body_t *body, apr_array_header_t *answers,
                              mcp_err_t *err)
{
    apr_status_t status = APR_SUCCESS;
    size_t total = 0;
    int done = 0;
    int i;

    for (i = 0; status == APR_SUCCESS && i < body->count; i++) {
        const mcp_rpc_message_t *message = &body->messages[i];
        const char *text = NULL;

        if (message->type == MCP_RPC_RESPONSE && message->err.fail == MCP_FAIL_NONE) {
            continue; /* nothing waits for it */
        }
        if (total > post->terms.max_result && message->type == MCP_RPC_REQUEST) {
            memset(err, 0, sizeof(*err));
            (void)mcp_err_set(err, post->r->pool, MCP_FAIL_INTERNAL, MCP_CODE_RESULT_TOO_LARGE,
                              "post this message by itself",
                              "the answers before this one fill the batch; it was not begun");
            text = element_refusal(post, err, message->id, NULL);
        } else {
            status = run_element(post, message, done == 0, &text, err);
        }
        done++;
        if (text != NULL) {
            APR_ARRAY_PUSH(answers, const char *) = text;
            total += strlen(text);
        }
    }
    return status;
}

static int answer_batch(post_t *post, const mcp_rpc_body_t *body)
{
    request_rec *r = post->r;
    apr_array_header_t *answers = apr_array_make(r->pool, body->count, sizeof(const char *));
    mcp_err_t err;
    apr_status_t status;

    memset(&err, 0, sizeof(err));
    if (!post->terms.serves_legacy) {
        (void)mcp_err_set(&err, r->pool, MCP_FAIL_REQUEST, MCP_CODE_NONE, "post each message by itself",
                          "Invalid request: this endpoint serves 2026-07-28 only, which has no batches");
        return refuse(post, &err, NULL, NULL);
    }
    status = mcp_turn_session(&post->turn, post->headers.session, &err);
    if (status == APR_SUCCESS) {
        status = mcp_era_check_batch(&post->headers, body,
                                     post->turn.has_session ? post->turn.session.revision
                                                            : MCP_REV_NONE,
                                     r->pool, &err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_turn_resolve(&post->turn, &err);
    }
    if (status == APR_SUCCESS) {
        status = run_batch(post, body, answers, &err);
    }
    if (status != APR_SUCCESS) {
        return refuse(post, &err, NULL, NULL);
    }
    return answers->nelts == 0 ? mcp_door_send_status(r, HTTP_ACCEPTED) : send_batch(r, answers);
}

static int answer_body(post_t *post, const char *text, size_t bytes)
{
    mcp_rpc_body_t body;
    mcp_err_t err;

    memset(&body, 0, sizeof(body));
    memset(&err, 0, sizeof(err));
    if (mcp_json_values(text, bytes) > MCP_MAX_VALUES) {
        (void)mcp_err_set(&err, post->r->pool, MCP_FAIL_TOO_LARGE, MCP_CODE_TOO_LARGE, NULL,
                          "the body holds more than %d values", MCP_MAX_VALUES);
        return refuse(post, &err, NULL, NULL);
    }
    if (mcp_rpc_parse(text, bytes, post->r->pool, &body, &err) != APR_SUCCESS) {
        return refuse(post, &err, NULL, NULL);
    }
    if (body.is_batch) {
        return answer_batch(post, &body);
    }
    return answer_single(post, &body.messages[0]);
}

int mcp_handler(request_rec *r)
{
    const mcp_dir_conf_t *conf = mcp_config_dir(r);
    const char *text = NULL;
    size_t bytes = 0;
    mcp_err_t err;
    post_t *post;
    apr_status_t status;

    if (conf == NULL || conf->is_endpoint != 1 || conf->path == NULL) {
        return DECLINED;
    }
    if (strcmp(r->uri, conf->path) != 0) {
        return HTTP_NOT_FOUND; /* below the endpoint there is nothing; variants of its path are not it */
    }
    mcp_status_request();
    post = apr_pcalloc(r->pool, sizeof(*post));
    post->r = r;
    post->conf = conf;
    memset(&err, 0, sizeof(err));
    status = mcp_origin_check(r, conf, &err);
    if (status == APR_SUCCESS && r->method_number == M_OPTIONS) {
        return mcp_origin_preflight(r);
    }
    fill_turn(post);
    if (status == APR_SUCCESS && post->turn.child == NULL) {
        status = mcp_err_set(&err, r->pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE, NULL,
                             "the policy service is not available");
        return send_refusal(post, &err, NULL, NULL);
    }
    if (status == APR_SUCCESS) {
        status = take_token(post, &err);
    }
    if (status == APR_SUCCESS) {
        status = check_method(post, &err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_door_media(r, &err);
    }
    if (status == APR_SUCCESS) {
        status = check_accept(post, &err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_input_read(r, (apr_off_t)mcp_config_max_body(conf), &text, &bytes, &err);
    }
    return status == APR_SUCCESS ? answer_body(post, text, bytes) : refuse(post, &err, NULL, NULL);
}
