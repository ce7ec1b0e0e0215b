/* Bounded body read: see mcp_input.h. */
#include "mcp_input.h"

#include <string.h>

#include <apr_strings.h>
#include <http_connection.h>
#include <http_core.h>
#include <http_protocol.h>
#include <util_filter.h>

#define PIECE    (64 * 1024)
#define FIRST_S  20          /* a body has this long, */
#define RATE     (10 * 1024) /* and a second more for each so many bytes of it */

static apr_status_t too_large(request_rec *r, apr_off_t max, mcp_err_t *err)
{
    r->connection->keepalive = AP_CONN_CLOSE; /* what is left of the body is not read */
    return mcp_err_set(err, r->pool, MCP_FAIL_TOO_LARGE, MCP_CODE_TOO_LARGE, NULL,
                       "the body is larger than %" APR_OFF_T_FMT " bytes (MCPMaxBody)", max);
}

static apr_status_t broken(request_rec *r, mcp_err_t *err)
{
    r->connection->keepalive = AP_CONN_CLOSE;
    return mcp_err_set(err, r->pool, MCP_FAIL_PARSE, MCP_CODE_NONE, NULL, "the body ended early");
}

/* Adds `length` bytes to the buffer, which doubles; what it outgrew stays in the request's pool, at most as much again. */
static void add(request_rec *r, char **text, size_t *bytes, size_t *room, const char *data, size_t length)
{
    if (*bytes + length + 1 > *room) {
        size_t wanted = *room * 2 > *bytes + length + 1 ? *room * 2 : *bytes + length + 1;
        char *grown = apr_palloc(r->pool, wanted);

        if (*bytes > 0) {
            memcpy(grown, *text, *bytes);
        }
        *text = grown;
        *room = wanted;
    }
    memcpy(*text + *bytes, data, length);
    *bytes += length;
}

/* A client that sends slowly must not hold a worker: mod_reqtimeout does the same, but need not be loaded. */
static int is_too_slow(apr_time_t began, size_t bytes)
{
    return apr_time_now() - began > apr_time_from_sec(FIRST_S + (apr_int64_t)(bytes / RATE));
}

static apr_status_t too_slow(request_rec *r, mcp_err_t *err)
{
    r->connection->keepalive = AP_CONN_CLOSE;
    return mcp_err_set(err, r->pool, MCP_FAIL_PARSE, MCP_CODE_NONE, NULL, "the body came too slowly");
}

/* One wait for more of the body lasts no longer than the whole may; the old limit is put back by the caller. */
static apr_socket_t *shorten_waits(request_rec *r, apr_interval_time_t *ret_old)
{
    apr_socket_t *socket =
        r->connection->master == NULL ? ap_get_conn_socket(r->connection) : NULL;

    if (socket == NULL || apr_socket_timeout_get(socket, ret_old) != APR_SUCCESS ||
        (*ret_old >= 0 && *ret_old <= apr_time_from_sec(FIRST_S))) {
        return NULL;
    }
    (void)apr_socket_timeout_set(socket, apr_time_from_sec(FIRST_S)); /* where it fails the old one holds */
    return socket;
}

static apr_off_t declared_length(const request_rec *r)
{
    const char *header = apr_table_get(r->headers_in, "Content-Length");
    apr_off_t length = 0;
    char *end = NULL;

    if (header == NULL || apr_strtoff(&length, header, &end, 10) != APR_SUCCESS || *end != '\0') {
        return 0;
    }
    return length;
}

static apr_status_t read_all(request_rec *r, apr_off_t max, const char **ret, size_t *ret_bytes,
                             mcp_err_t *err)
{
    apr_time_t began = apr_time_now();
    apr_off_t declared = declared_length(r);
    apr_bucket_brigade *brigade;
    size_t room = declared > 0 && declared <= max ? (size_t)declared + 1 : PIECE;
    size_t bytes = 0;
    char *text;
    int is_end = 0;

    if (declared > max) {
        return too_large(r, max, err);
    }
    text = apr_palloc(r->pool, room);
    brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    while (!is_end) {
        apr_bucket *bucket;

        if (ap_get_brigade(r->input_filters, brigade, AP_MODE_READBYTES, APR_BLOCK_READ, PIECE) !=
            APR_SUCCESS) {
            return is_too_slow(began, bytes) ? too_slow(r, err) : broken(r, err);
        }
        if (is_too_slow(began, bytes)) {
            return too_slow(r, err);
        }
        for (bucket = APR_BRIGADE_FIRST(brigade); bucket != APR_BRIGADE_SENTINEL(brigade);
             bucket = APR_BUCKET_NEXT(bucket)) {
            const char *data;
            apr_size_t length;

            if (APR_BUCKET_IS_EOS(bucket)) {
                is_end = 1;
                break;
            }
            if (APR_BUCKET_IS_METADATA(bucket)) {
                continue;
            }
            if (apr_bucket_read(bucket, &data, &length, APR_BLOCK_READ) != APR_SUCCESS) {
                return broken(r, err);
            }
            if ((apr_off_t)(bytes + length) > max) {
                return too_large(r, max, err);
            }
            add(r, &text, &bytes, &room, data, length);
        }
        (void)apr_brigade_cleanup(brigade); /* can't fail */
    }
    text[bytes] = '\0';
    *ret = text;
    *ret_bytes = bytes;
    return APR_SUCCESS;
}

apr_status_t mcp_input_read(request_rec *r, apr_off_t max, const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    apr_interval_time_t old = 0;
    apr_socket_t *socket = shorten_waits(r, &old);
    apr_status_t status = read_all(r, max, ret, ret_bytes, err);

    if (socket != NULL) {
        (void)apr_socket_timeout_set(socket, old); /* the connection's own limit again */
    }
    return status;
}
