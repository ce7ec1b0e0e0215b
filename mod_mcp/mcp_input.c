/* Bounded body read: see mcp_input.h. */
#include "mcp_input.h"

#include <errno.h>
#include <string.h>

#include <poll.h>

#include <apr_portable.h>
#include <apr_strings.h>
#include <http_connection.h>
#include <http_core.h>
#include <http_protocol.h>
#include <util_filter.h>

#define PIECE    (64 * 1024)
#define FIRST_S  20          /* a body has this long, */
#define RATE     (10 * 1024) /* and a second more for each so many bytes of it */
#define FILTER   "MCP_PACE"

/* What a connection's filter knows of the body that is being read; one for each connection. */
typedef struct pace {
    apr_time_t began; /* 0: no body is being read, and the filter lets all through */
    size_t bytes;     /* of it so far, as the application takes them */
    apr_bucket_brigade *line; /* of a line that is not whole yet; empty between calls */
} pace_t;

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
static apr_interval_time_t time_left(apr_time_t began, size_t bytes)
{
    return began + apr_time_from_sec(FIRST_S + (apr_int64_t)(bytes / RATE)) - apr_time_now();
}

static int is_too_slow(apr_time_t began, size_t bytes)
{
    return time_left(began, bytes) < 0;
}

static apr_status_t too_slow(request_rec *r, mcp_err_t *err)
{
    r->connection->keepalive = AP_CONN_CLOSE;
    return mcp_err_set(err, r->pool, MCP_FAIL_PARSE, MCP_CODE_NONE, NULL, "the body came too slowly");
}

/* --- the filter --------------------------------------------------------------------------- */

/* Until there is more to read. */
static apr_status_t wait_for_more(conn_rec *connection, apr_interval_time_t left)
{
    apr_socket_t *socket = ap_get_conn_socket(connection);
    apr_os_sock_t fd;
    struct pollfd item;
    int ready;

    if (left <= 0) {
        return APR_TIMEUP;
    }
    if (socket == NULL || apr_os_sock_get(&fd, socket) != APR_SUCCESS) {
        return APR_ENOSOCKET;
    }
    item.fd = fd;
    item.events = POLLIN;
    item.revents = 0;
    ready = poll(&item, 1, (int)(left / 1000) + 1);
    if (ready < 0) {
        return errno == EINTR ? APR_SUCCESS : errno;
    }
    return ready == 0 ? APR_TIMEUP : APR_SUCCESS;
}

static int ends_a_line(apr_bucket_brigade *brigade)
{
    apr_bucket *last = APR_BRIGADE_LAST(brigade);
    const char *data = NULL;
    apr_size_t length = 0;

    if (last == APR_BRIGADE_SENTINEL(brigade)) {
        return 0;
    }
    return APR_BUCKET_IS_EOS(last) ||
           (apr_bucket_read(last, &data, &length, APR_NONBLOCK_READ) == APR_SUCCESS && length > 0 &&
            data[length - 1] == '\n');
}

/* A line in as many reads as it takes. httpd's own reading of one has no end while a byte comes now and then. */
static apr_status_t read_line(ap_filter_t *filter, pace_t *pace, apr_bucket_brigade *brigade,
                              apr_off_t bytes)
{
    apr_off_t total = 0;
    apr_status_t status = APR_SUCCESS;

    while (status == APR_SUCCESS && total < HUGE_STRING_LEN) {
        status = ap_get_brigade(filter->next, brigade, AP_MODE_GETLINE, APR_NONBLOCK_READ, bytes);
        if (APR_STATUS_IS_EAGAIN(status)) {
            status = APR_SUCCESS;
        } else if (status == APR_SUCCESS && ends_a_line(brigade)) {
            break;
        }
        if (status == APR_SUCCESS) {
            apr_off_t length = 0;

            (void)apr_brigade_length(brigade, 0, &length); /* of data in memory: can't fail */
            total += length;
            APR_BRIGADE_CONCAT(pace->line, brigade);
            status = wait_for_more(filter->c, time_left(pace->began, pace->bytes));
        }
    }
    APR_BRIGADE_PREPEND(brigade, pace->line);
    if (status != APR_SUCCESS) {
        (void)apr_brigade_cleanup(brigade); /* can't fail */
    }
    return status;
}

/* Below TLS and the parsing of chunks: whatever they wait for, a record, the length of a chunk or a trailer, they wait for here. */
static apr_status_t pace_filter(ap_filter_t *filter, apr_bucket_brigade *brigade, ap_input_mode_t mode,
                                apr_read_type_e block, apr_off_t bytes)
{
    pace_t *pace = filter->ctx;
    apr_socket_t *socket;
    apr_interval_time_t left;

    if (pace->began == 0 || block != APR_BLOCK_READ || mode == AP_MODE_INIT) {
        return ap_get_brigade(filter->next, brigade, mode, block, bytes);
    }
    left = time_left(pace->began, pace->bytes);
    if (left <= 0) {
        return APR_TIMEUP;
    }
    if (mode == AP_MODE_GETLINE) {
        return read_line(filter, pace, brigade, bytes);
    }
    socket = ap_get_conn_socket(filter->c);
    if (socket != NULL) {
        (void)apr_socket_timeout_set(socket, left); /* where it fails the old one holds */
    }
    return ap_get_brigade(filter->next, brigade, mode, block, bytes);
}

int mcp_input_pre_connection(conn_rec *connection, void *socket)
{
    pace_t *pace;

    (void)socket;
    if (connection->master != NULL) {
        return DECLINED; /* a stream of HTTP/2, whose frames come one by one */
    }
    pace = apr_pcalloc(connection->pool, sizeof(*pace));
    pace->line = apr_brigade_create(connection->pool, connection->bucket_alloc);
    ap_set_module_config(connection->conn_config, &mcp_module, pace);
    (void)ap_add_input_filter(FILTER, pace, NULL, connection); /* NULL only when its name is unknown */
    return DECLINED;
}

void mcp_input_register(void)
{
    (void)ap_register_input_filter(FILTER, pace_filter, NULL, AP_FTYPE_CONNECTION + 8);
}

/* --- the body ----------------------------------------------------------------------------- */

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

static apr_status_t read_all(request_rec *r, pace_t *pace, apr_off_t max, const char **ret, size_t *ret_bytes,
                             mcp_err_t *err)
{
    apr_time_t began = pace->began;
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
            pace->bytes = bytes;
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
    conn_rec *connection = r->connection;
    apr_socket_t *socket = connection->master == NULL ? ap_get_conn_socket(connection) : NULL;
    pace_t *pace = ap_get_module_config(connection->conn_config, &mcp_module);
    pace_t none = {0, 0, NULL};
    apr_interval_time_t old = 0;
    apr_status_t status;

    if (pace == NULL) {
        pace = &none;
    }
    if (socket != NULL && apr_socket_timeout_get(socket, &old) != APR_SUCCESS) {
        socket = NULL;
    }
    pace->bytes = 0;
    pace->began = apr_time_now();
    status = read_all(r, pace, max, ret, ret_bytes, err);
    pace->began = 0;
    if (socket != NULL) {
        (void)apr_socket_timeout_set(socket, old); /* the connection's own limit again */
    }
    return status;
}
