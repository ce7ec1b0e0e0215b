/* What the outbound tests share: an egress object, and one request said in few words. */
#ifndef EGRESS_FIXTURE_H
#define EGRESS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <cmocka.h>

#include "egress_server.h"
#include "mcp_egress.h"

#define BODY_MAX 1000

typedef struct fixture {
    apr_pool_t *pool;
    mcp_egress_t *egress;
    mcp_response_t answer;
    mcp_err_t err;
} fixture_t;

/* One request; what is left out is: GET /, no header, no body, connection "c", the server's origin
 * allowed, 20 s, BODY_MAX bytes. */
typedef struct ask {
    const char *method;
    const char *target;
    const char *host; /* instead of 127.0.0.1 */
    const char *scheme;
    const char *headers[6];
    const char *body;
    const char *connection;
    int is_unconnected; /* connection NULL */
    int is_private;     /* no exception */
    int is_final;       /* not idempotent */
    int64_t timeout_ms;
    size_t max_bytes;
    int (*is_gone)(void *);
    void *baton;
    int (*may_follow)(void *, const char *); /* NULL: every redirect within the origin */
} ask_t;

static inline int follow_all(void *baton, const char *url)
{
    (void)baton;
    return url != NULL;
}

static inline apr_status_t send_with(mcp_egress_t *egress, apr_pool_t *pool, int port,
                                     const ask_t *ask, mcp_response_t *ret, mcp_err_t *err)
{
    apr_array_header_t *headers = apr_array_make(pool, 6, sizeof(const char *));
    apr_array_header_t *allow = apr_array_make(pool, 1, sizeof(const char *));
    const char *origin =
        apr_psprintf(pool, "%s://%s:%d", ask->scheme != NULL ? ask->scheme : "http",
                     ask->host != NULL ? ask->host : "127.0.0.1", port);
    mcp_request_t request = {.method = ask->method != NULL ? ask->method : "GET",
                             .body = ask->body,
                             .body_bytes = ask->body != NULL ? strlen(ask->body) : 0,
                             .headers = headers,
                             .is_idempotent = !ask->is_final};
    mcp_egress_limits_t limits = {.timeout_ms = ask->timeout_ms != 0 ? ask->timeout_ms : 20000,
                                  .max_bytes = ask->max_bytes != 0 ? ask->max_bytes : BODY_MAX,
                                  .connection = ask->connection != NULL ? ask->connection : "c",
                                  .may_follow =
                                      ask->may_follow != NULL ? ask->may_follow : follow_all};
    if (ask->is_unconnected)
        limits.connection = NULL;
    request.url = apr_pstrcat(pool, origin, ask->target != NULL ? ask->target : "/", NULL);
    for (size_t i = 0; i < 6 && ask->headers[i] != NULL; i++)
        APR_ARRAY_PUSH(headers, const char *) = ask->headers[i];
    APR_ARRAY_PUSH(allow, const char *) = origin;
    return mcp_egress_send(egress, &request, &limits, ask->is_private ? NULL : allow, ask->is_gone,
                           ask->baton, pool, ret, err);
}

static inline apr_status_t send_ask(fixture_t *f, int port, ask_t ask)
{
    memset(&f->answer, 0, sizeof f->answer);
    memset(&f->err, 0, sizeof f->err);
    return send_with(f->egress, f->pool, port, &ask, &f->answer, &f->err);
}

static inline void assert_answer(fixture_t *f, apr_status_t status, int code, const char *body)
{
    if (status != APR_SUCCESS)
        fail_msg("failed: %s (%s)", f->err.message, f->err.log != NULL ? f->err.log : "-");
    assert_int_equal(f->answer.status, code);
    assert_string_equal(f->answer.body, body);
    assert_int_equal(f->answer.body_bytes, strlen(body));
}

static inline void assert_failed(const fixture_t *f, apr_status_t status, mcp_code_t code)
{
    assert_int_equal(status, MCP_STATUS_REFUSED);
    assert_int_equal(f->err.fail, MCP_FAIL_TOOL);
    if (f->err.code != code)
        fail_msg("code %d instead of %d: %s (%s)", (int)f->err.code, (int)code, f->err.message,
                 f->err.log != NULL ? f->err.log : "-");
    assert_null(strstr(f->err.message, "curl"));
    assert_null(f->answer.body);
}

static inline mcp_egress_options_t default_options(void)
{
    mcp_egress_options_t options = {.max_calls = 32,
                                    .max_per_connection = 16,
                                    .idle_per_origin = 16,
                                    .idle_total = 32,
                                    .idle_ms = 60000,
                                    .connect_ms = 5000};
    return options;
}

static inline int set_up_group(void **state)
{
    mcp_err_t err;
    (void)state;
    if (apr_initialize() != APR_SUCCESS)
        return -1;
    return mcp_egress_init(&err) == APR_SUCCESS ? 0 : -1;
}

static inline int tear_down_group(void **state)
{
    (void)state;
    apr_terminate();
    return 0;
}

static inline int set_up(void **state)
{
    mcp_egress_options_t options = default_options();
    fixture_t *f = calloc(1, sizeof *f);
    if (f == NULL || apr_pool_create(&f->pool, NULL) != APR_SUCCESS)
        return -1;
    *state = f;
    return mcp_egress_create(&options, f->pool, &f->egress, &f->err) == APR_SUCCESS ? 0 : -1;
}

static inline int tear_down(void **state)
{
    fixture_t *f = *state;
    mcp_egress_close(f->egress);
    apr_pool_destroy(f->pool);
    free(f);
    return 0;
}

#endif
