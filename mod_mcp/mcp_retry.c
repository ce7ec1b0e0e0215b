/* Repetition within a deadline: see mcp_retry.h. */
#include "mcp_retry.h"

#include <string.h>

#include <apr_date.h>
#include <apr_lib.h>
#include <apr_time.h>

#include "../proto/mcp_hash.h"

#define POLL_MS 100
#define LEAST_MS 50 /* less time than that is no try */

int64_t mcp_retry_after_ms(const char *value, apr_time_t now)
{
    int64_t seconds = 0;
    apr_time_t at;
    size_t i;

    if (value == NULL || value[0] == '\0') {
        return -1;
    }
    for (i = 0; apr_isdigit(value[i]) && i < 9; i++) {
        seconds = seconds * 10 + (value[i] - '0');
    }
    if (i > 0 && value[i] == '\0') {
        return seconds * 1000;
    }
    at = apr_date_parse_http(value);
    if (at == APR_DATE_BAD) {
        return -1;
    }
    return at > now ? (int64_t)((at - now) / 1000) : 0;
}

/* The pause before the next try. */
static int64_t pause_ms(int tries)
{
    int64_t base = tries == 1 ? 200 : 800;
    unsigned char chance;

    mcp_random(&chance, 1);
    return base + base * chance / 1024;
}

/* 1 when whoever waits has gone meanwhile. */
static int wait_ms(int64_t ms, int (*is_gone)(void *), void *baton)
{
    while (ms > 0) {
        int64_t step = ms < POLL_MS ? ms : POLL_MS;

        if (is_gone != NULL && is_gone(baton) != 0) {
            return 1;
        }
        apr_sleep(apr_time_from_msec(step));
        ms -= step;
    }
    return 0;
}

/* How long to wait before it is tried again; -1: what there is is the result. */
static int64_t next_ms(apr_status_t status, const mcp_response_t *response, const mcp_err_t *err, int tries)
{
    int64_t asked;

    if (status != APR_SUCCESS) {
        return APR_STATUS_IS_ECONNREFUSED(err->status) ? pause_ms(tries) : -1;
    }
    if (response->status != 429 && response->status != 503) {
        return -1;
    }
    asked = mcp_retry_after_ms(response->retry_after, apr_time_now());
    if (asked > MCP_RETRY_WAIT_MS) {
        return -1;
    }
    return asked > pause_ms(tries) ? asked : pause_ms(tries);
}

apr_status_t mcp_retry_send(mcp_egress_t *egress, const mcp_request_t *request,
                            const mcp_egress_limits_t *limits, const apr_array_header_t *allow,
                            int (*is_gone)(void *), void *baton, apr_pool_t *pool,
                            mcp_response_t *ret, int *ret_tries, mcp_err_t *err)
{
    apr_time_t end = apr_time_now() + apr_time_from_msec(limits->timeout_ms);
    mcp_egress_limits_t rest = *limits;
    apr_status_t status;
    int tries = 0;

    for (;;) {
        mcp_err_t failed;
        int64_t pause;

        memset(&failed, 0, sizeof(failed));
        status = mcp_egress_send(egress, request, &rest, allow, is_gone, baton, pool, ret, &failed);
        tries++;
        pause = request->is_idempotent && tries < MCP_RETRY_TRIES ? next_ms(status, ret, &failed, tries) : -1;
        rest.timeout_ms = (end - apr_time_now()) / 1000 - pause;
        if (pause < 0 || rest.timeout_ms < LEAST_MS || wait_ms(pause, is_gone, baton)) {
            if (status != APR_SUCCESS && err != NULL) {
                *err = failed;
            }
            break;
        }
    }
    if (ret_tries != NULL) {
        *ret_tries = tries;
    }
    return status;
}
