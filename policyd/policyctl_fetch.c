/* Fetching a document: see policyctl_fetch.h. */
#include "policyctl_fetch.h"

#include <stdio.h>
#include <string.h>

#include <apr_strings.h>

#include "../mod_mcp/mcp_egress.h"
#include "../mod_mcp/mcp_egress_url.h"

#define MAX_REDIRECTS 5
#define CONNECT_MS    10000

typedef struct fetching {
    mcp_egress_t *egress;
    const apr_array_header_t *allow;
    apr_pool_t *pool;
    char *why;
    size_t size;
} fetching_t;

static int is_nobody_gone(void *baton)
{
    (void)baton;
    return 0;
}

static int fail(const fetching_t *fetch, const char *what, const char *url)
{
    (void)snprintf(fetch->why, fetch->size, "%s: %.300s", what, url);
    return -1;
}

static int open_egress(fetching_t *fetch)
{
    mcp_egress_options_t options;
    mcp_err_t err;
    apr_status_t status;

    memset(&options, 0, sizeof options);
    memset(&err, 0, sizeof err);
    options.max_calls = 1;
    options.max_per_connection = 1;
    options.connect_ms = CONNECT_MS;
    status = mcp_egress_init(&err);
    if (status == APR_SUCCESS) {
        status = mcp_egress_create(&options, fetch->pool, &fetch->egress, &err);
    }
    return status == APR_SUCCESS ? 0 : fail(fetch, "can't make requests", err.message != NULL ? err.message : "out of memory");
}

/* 1 for what may be asked at all; the addresses behind the name are judged when they are dialled. */
static int may_ask(const fetching_t *fetch, const mcp_egress_url_t *url)
{
    return strncmp(url->origin, "https://", 8) == 0 || mcp_egress_url_is_allowed(url, fetch->allow, fetch->pool);
}

static int ask(const fetching_t *fetch, const mcp_egress_url_t *url, mcp_response_t *response)
{
    const char *text = apr_pstrcat(fetch->pool, url->origin, url->target, (char *)NULL);
    mcp_egress_limits_t limits;
    mcp_request_t request;
    mcp_err_t err;

    if (!may_ask(fetch, url)) {
        return fail(fetch, "only https is fetched, and what --allow-origin names", text);
    }
    memset(&limits, 0, sizeof limits);
    memset(&request, 0, sizeof request);
    memset(&err, 0, sizeof err);
    limits.timeout_ms = CTL_FETCH_SECONDS * 1000;
    limits.max_bytes = CTL_FETCH_BYTES;
    request.method = "GET";
    request.url = text;
    request.headers = apr_array_make(fetch->pool, 1, sizeof(const char *));
    request.is_idempotent = 1;
    APR_ARRAY_PUSH(request.headers, const char *) = "Accept: application/json, application/yaml, */*;q=0.5";
    if (mcp_egress_send(fetch->egress, &request, &limits, fetch->allow, is_nobody_gone, NULL, fetch->pool, response,
                        &err) != APR_SUCCESS) {
        (void)snprintf(fetch->why, fetch->size, "%.300s: %.300s%s", text, err.message != NULL ? err.message : "failed",
                       err.code == MCP_CODE_EGRESS_DENIED ? " (--allow-origin allows a private address)" : "");
        return -1;
    }
    return 0;
}

/* Follows redirects to the document. */
static int follow(const fetching_t *fetch, mcp_egress_url_t *url, mcp_response_t *response)
{
    int hops;

    for (hops = 0; hops <= MAX_REDIRECTS; hops++) {
        mcp_egress_url_t next;

        if (ask(fetch, url, response) != 0) {
            return -1;
        }
        if (response->location == NULL) {
            return 0;
        }
        if (mcp_egress_url_resolve(url, response->location, fetch->pool, &next) != APR_SUCCESS) {
            return fail(fetch, "is redirected to what is no address", url->origin);
        }
        *url = next;
    }
    return fail(fetch, "is redirected too often", url->origin);
}

int ctl_fetch(const char *url, const apr_array_header_t *allow, apr_pool_t *pool, const char **ret, size_t *ret_bytes,
              char *why, size_t size)
{
    fetching_t fetch = {NULL, allow, pool, why, size};
    mcp_response_t response;
    mcp_egress_url_t at;
    int status;

    memset(&response, 0, sizeof response);
    if (mcp_egress_url_parse(url, pool, &at) != APR_SUCCESS) {
        return fail(&fetch, "is no http or https address", url);
    }
    if (open_egress(&fetch) != 0) {
        return -1;
    }
    status = follow(&fetch, &at, &response);
    if (status == 0 && response.status != 200) {
        (void)snprintf(why, size, "%.300s answers %d", url, response.status);
        status = -1;
    }
    mcp_egress_close(fetch.egress);
    *ret = response.body;
    *ret_bytes = response.body_bytes;
    return status;
}
