/* Outbound HTTP over libcurl: one exchange at a time on a handle of its own, checked
 * out of the pool by origin and connection.
 *
 * A line is a multi handle with one easy handle in it. The multi handle holds the connection
 * cache, so a kept line keeps its socket, and waiting in our own loop lets a call be cancelled
 * at once, which the progress callback of a blocking transfer, called once a second when nothing
 * moves, would not. HTTP/1.1 only: with one exchange at a time there is nothing to multiplex,
 * and the refused streams of HTTP/2 would be one more way to be sent twice. */
#include "mcp_egress.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <apr_strings.h>
#include <curl/curl.h>

#include "mcp_egress_answer.h"
#include "mcp_egress_cause.h"
#include "mcp_egress_pool.h"
#include "mcp_egress_request.h"
#include "mcp_egress_url.h"

#if LIBCURL_VERSION_NUM < 0x075700
#error "libcurl 7.87 or newer is needed (CURLOPT_QUICK_EXIT)"
#endif

#define REDIRECTS_MAX 5
#define BODY_BYTES_MAX (1024UL * 1024 * 1024) /* above any limit of a call */
#define GONE_POLL_MS 200
#define IDLE_MS_MAX (24L * 3600 * 1000)
#define IDLE_POLL_MS 1000
#define LIFETIME_S 300 /* of a TCP connection: DNS changes arrive, balancers may drain */

struct mcp_egress {
    mcp_egress_pool_t *lines;
    int64_t idle_ms;
    int64_t connect_ms;
    char *ca_file;
};

typedef struct line {
    CURLM *multi;
    CURL *easy;
    curl_socket_t socket; /* of the kept connection, owned by the library; for looking only */
} line_t;

/* One call of mcp_egress_send: what holds over redirects and the repetition. */
typedef struct call {
    mcp_egress_t *egress;
    const mcp_request_t *request;
    const mcp_egress_limits_t *limits;
    const apr_array_header_t *allow;
    int (*is_gone)(void *);
    void *baton;
    apr_pool_t *pool;
    mcp_err_t *err;
    size_t max_bytes;
    int64_t deadline_ms;
    int64_t next_gone_ms;
} call_t;

/* One request and its answer. */
typedef struct hop {
    const call_t *call;
    mcp_egress_url_t url;
    int is_allowed; /* the origin may have any address */
    mcp_egress_cause_t
        stop;      /* why a callback or the loop ended it; the library's result says little then */
    int starts;    /* times the request went out, the library's own repetitions included */
    int sockets;   /* connections that were begun */
    int refusals;  /* addresses that were not dialled */
    int is_reused; /* the first start was on a kept connection */
    mcp_egress_answer_t answer;
} hop_t;

/* --- start and end --------------------------------------------------------- */

static apr_status_t fail_init(mcp_err_t *err, const char *message)
{
    if (err != NULL) {
        memset(err, 0, sizeof *err);
        err->fail = MCP_FAIL_INTERNAL;
        err->code = MCP_CODE_INTERNAL;
        err->status = APR_EGENERAL;
        err->message = "Outbound HTTP is not available.";
        err->log = message;
    }
    return MCP_STATUS_REFUSED;
}

apr_status_t mcp_egress_init(mcp_err_t *err)
{
    static const struct {
        int bit;
        const char *message;
    } needs[] = {
        {CURL_VERSION_ASYNCHDNS,
         "libcurl resolves names synchronously, a slow name server would stall threads"},
        {CURL_VERSION_THREADSAFE, "libcurl's initialisation is not thread-safe"},
        {CURL_VERSION_SSL, "libcurl was built without TLS"},
    };
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return fail_init(err, "libcurl could not be initialised");
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    if (info->version_num < 0x075700)
        return fail_init(err, "libcurl is older than 7.87");
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if ((info->features & needs[i].bit) == 0)
            return fail_init(err, needs[i].message);
    }
    return APR_SUCCESS;
}

static void line_close(void *data)
{
    line_t *line = data;
    if (line->easy != NULL)
        curl_easy_cleanup(line->easy);
    if (line->multi != NULL)
        (void)curl_multi_cleanup(line->multi); /* nothing could be done about a failure */
    free(line);
}

static line_t *line_new(void)
{
    line_t *line = calloc(1, sizeof *line);
    if (line == NULL)
        return NULL;
    line->socket = CURL_SOCKET_BAD;
    line->multi = curl_multi_init();
    line->easy = curl_easy_init();
    if (line->multi == NULL || line->easy == NULL ||
        curl_multi_setopt(line->multi, CURLMOPT_MAXCONNECTS, 1L) != CURLM_OK) {
        line_close(line);
        return NULL;
    }
    return line;
}

apr_status_t mcp_egress_create(const mcp_egress_options_t *options, apr_pool_t *pool,
                               mcp_egress_t **ret, mcp_err_t *err)
{
    if (options->max_calls < 1 || options->max_per_connection < 1 || options->idle_per_origin < 0 ||
        options->idle_total < 0 || options->idle_ms < 0 || options->idle_ms > IDLE_MS_MAX ||
        options->connect_ms < 1) {
        return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "The limits of outbound calls are out of range.");
    }
    mcp_egress_pool_limits_t limits = {.max_calls = options->max_calls,
                                       .max_per_connection = options->max_per_connection,
                                       .idle_per_origin = options->idle_per_origin,
                                       .idle_total = options->idle_total,
                                       .idle_ms = options->idle_ms};
    mcp_egress_t *egress = calloc(1, sizeof *egress);
    apr_status_t status = egress != NULL ? APR_SUCCESS : APR_ENOMEM;
    if (status == APR_SUCCESS && options->ca_file != NULL) {
        egress->ca_file = strdup(options->ca_file);
        status = egress->ca_file != NULL ? APR_SUCCESS : APR_ENOMEM;
    }
    if (status == APR_SUCCESS)
        status = mcp_egress_pool_create(&limits, line_close, pool, &egress->lines);
    if (status != APR_SUCCESS) {
        mcp_egress_close(egress);
        return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "There is no memory for outbound calls.");
    }
    egress->idle_ms = options->idle_ms;
    egress->connect_ms = options->connect_ms;
    *ret = egress;
    return APR_SUCCESS;
}

void mcp_egress_close(mcp_egress_t *egress)
{
    if (egress == NULL)
        return;
    mcp_egress_pool_close(egress->lines);
    free(egress->ca_file);
    free(egress);
}

void mcp_egress_tidy(mcp_egress_t *egress)
{
    mcp_egress_pool_tidy(egress->lines);
}

apr_status_t mcp_egress_enter(mcp_egress_t *egress, const char *connection, apr_pool_t *pool,
                              mcp_err_t *err)
{
    switch (mcp_egress_pool_enter(egress->lines, connection)) {
    case MCP_EGRESS_PLACE_TAKEN:
        return APR_SUCCESS;
    case MCP_EGRESS_PLACE_CONNECTION_FULL:
        return mcp_err_set(err, pool, MCP_FAIL_BUSY, MCP_CODE_RATE_LIMITED,
                           "Wait for running calls to end.",
                           "Too many calls are running on this connection.");
    case MCP_EGRESS_PLACE_CHILD_FULL:
        return mcp_err_set(err, pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_OVERLOADED,
                           "Try again in a moment.", "Too many calls are running on this server.");
    case MCP_EGRESS_PLACE_NO_MEMORY:
        break;
    }
    return mcp_err_set(err, pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_OVERLOADED,
                       "Try again in a moment.", "There is no memory for another call.");
}

void mcp_egress_leave(mcp_egress_t *egress, const char *connection)
{
    mcp_egress_pool_leave(egress->lines, connection);
}

/* --- callbacks -------------------------------------------------------------- */

static int is_dialable(const hop_t *hop, int family, const unsigned char *address)
{
    return hop->is_allowed || mcp_egress_is_public(family, address);
}

/* The address is judged where the socket is made, so what is checked is what is dialled,
 * whatever the name resolved to a moment ago. A refused address fails like one that does not
 * answer and the next one is tried. */
static curl_socket_t on_open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    hop_t *hop = data;
    union {
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } copy;
    const unsigned char *bytes = NULL;
    memset(&copy, 0, sizeof copy);
    if (purpose == CURLSOCKTYPE_IPCXN && address->addrlen <= sizeof copy) {
        memcpy(&copy, &address->addr, address->addrlen);
        if (address->family == AF_INET && address->addrlen >= sizeof copy.v4)
            bytes = (const unsigned char *)&copy.v4.sin_addr;
        else if (address->family == AF_INET6 && address->addrlen >= sizeof copy.v6)
            bytes = copy.v6.sin6_addr.s6_addr;
    }
    if (bytes == NULL || !is_dialable(hop, address->family, bytes)) {
        hop->refusals++;
        return CURL_SOCKET_BAD;
    }
    hop->sockets++;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Runs before each start of the transfer, on reused connections too: the origin may have lost
 * its exception or the caller another list. It also counts: the library repeats a request by
 * itself when a reused connection dies without an answer, whatever the method is (measured with
 * 7.88: POST and DELETE were executed twice). */
static int on_start(void *data, char *peer, char *local, int peer_port, int local_port)
{
    hop_t *hop = data;
    unsigned char address[sizeof(struct in6_addr)];
    int family = strchr(peer, ':') != NULL ? AF_INET6 : AF_INET;
    (void)local; /* only the far end matters */
    (void)peer_port;
    (void)local_port;
    if (inet_pton(family, peer, address) != 1 || !is_dialable(hop, family, address)) {
        hop->stop = MCP_EGRESS_ADDRESS;
        return CURL_PREREQFUNC_ABORT;
    }
    if (hop->starts >= (hop->call->request->is_idempotent ? 2 : 1)) {
        hop->stop = MCP_EGRESS_RESENT;
        return CURL_PREREQFUNC_ABORT;
    }
    if (hop->starts == 0)
        hop->is_reused = hop->sockets == 0;
    hop->starts++;
    return CURL_PREREQFUNC_OK;
}

/* size is 1 in both, by the library's contract; taking less than all ends the transfer. */
static size_t on_header(char *data, size_t size, size_t count, void *baton)
{
    hop_t *hop = baton;
    hop->stop = mcp_egress_answer_header(&hop->answer, data, size * count);
    return hop->stop == MCP_EGRESS_OK ? size * count : 0;
}

static size_t on_body(char *data, size_t size, size_t count, void *baton)
{
    hop_t *hop = baton;
    hop->stop = mcp_egress_answer_body(&hop->answer, data, size * count);
    return hop->stop == MCP_EGRESS_OK ? size * count : 0;
}

/* --- what a transfer is told ------------------------------------------------ */

/* Options that are the same for each request. The handle was reset before. Alt-Svc and cookies
 * are off unless switched on, and "off" is no value their options take. */
static const struct {
    CURLoption option;
    long value;
} fixed_options[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_NOPROGRESS, 1},
    {CURLOPT_PATH_AS_IS, 1},
    {CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_NETRC, CURL_NETRC_IGNORED},
    {CURLOPT_HSTS_CTRL, 0},
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_HTTP09_ALLOWED, 0},
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_TCP_KEEPALIVE, 1},
    {CURLOPT_TCP_NODELAY, 1},
    {CURLOPT_MAXLIFETIME_CONN, LIFETIME_S},
    /* The resolver's thread is left to end by itself when a call is over before the name server
     * answers; the library would wait for it, beyond every deadline. It owns its memory and
     * touches none of ours. */
    {CURLOPT_QUICK_EXIT, 1},
};

static const struct {
    CURLoption option;
    const char *value;
} fixed_texts[] = {
    {CURLOPT_PROTOCOLS_STR, "http,https"},
    {CURLOPT_PROXY, ""}, /* not even the environment's */
    {CURLOPT_USERAGENT, "mod_mcp"},
};

static CURLcode set_fixed(const mcp_egress_t *egress, CURL *easy)
{
    CURLcode code = CURLE_OK;
    long age_s = (long)((egress->idle_ms + 999) / 1000);
    for (size_t i = 0; code == CURLE_OK && i < sizeof fixed_options / sizeof fixed_options[0]; i++)
        code = curl_easy_setopt(easy, fixed_options[i].option, fixed_options[i].value);
    for (size_t i = 0; code == CURLE_OK && i < sizeof fixed_texts / sizeof fixed_texts[0]; i++)
        code = curl_easy_setopt(easy, fixed_texts[i].option, fixed_texts[i].value);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, age_s > 0 ? age_s : 1L);
    if (code == CURLE_OK && egress->ca_file != NULL) {
        code = curl_easy_setopt(easy, CURLOPT_CAINFO, egress->ca_file);
        if (code == CURLE_OK)
            code = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* that file alone */
    }
    return code;
}

static CURLcode set_callbacks(hop_t *hop, CURL *easy)
{
    CURLcode codes[] = {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket),
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, hop),
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_start),
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, hop),
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header),
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, hop),
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body),
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, hop),
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i] != CURLE_OK)
            return codes[i];
    }
    return CURLE_OK;
}

static int is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, list[i]) == 0)
            return 1;
    }
    return 0;
}

/* Method and body. A body goes with its length, never chunked; methods that are expected to have
 * one say so with a length of 0. */
static CURLcode set_method(const mcp_request_t *request, CURL *easy)
{
    static const char *const with_body[] = {"POST", "PUT", "PATCH"};
    int has_body = request->body != NULL && request->body_bytes > 0;
    const char *custom = NULL;
    CURLcode code;
    if (strcmp(request->method, "HEAD") == 0)
        return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (has_body || is_one_of(request->method, with_body, sizeof with_body / sizeof with_body[0])) {
        code = curl_easy_setopt(easy, CURLOPT_POST, 1L);
        if (code == CURLE_OK) {
            code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                    (curl_off_t)(has_body ? request->body_bytes : 0));
        }
        if (code == CURLE_OK) /* not copied; the handle is reset before the body goes away */
            code = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, has_body ? request->body : "");
        custom = strcmp(request->method, "POST") == 0 ? NULL : request->method;
    } else {
        code = curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        custom = strcmp(request->method, "GET") == 0 ? NULL : request->method;
    }
    if (code == CURLE_OK && custom != NULL)
        code = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, custom);
    return code;
}

/* The library dials an origin that we wrote from our own reading of the URL, and gets the
 * request target as a string of its own, which it sends untouched. */
static CURLcode set_url(const hop_t *hop, CURL *easy)
{
    const char *url = apr_pstrcat(hop->call->pool, hop->url.origin, "/", NULL);
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, url);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, hop->url.target);
    return code;
}

static long clamp_ms(int64_t ms)
{
    if (ms < 1)
        return 1; /* 0 would mean the library's default */
    return ms > INT32_MAX ? INT32_MAX : (long)ms;
}

static CURLcode set_times(const call_t *call, CURL *easy)
{
    int64_t left_ms = call->deadline_ms - mcp_egress_now_ms();
    int64_t connect_ms = call->egress->connect_ms;
    return curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                            clamp_ms(connect_ms < left_ms ? connect_ms : left_ms));
}

static int append(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);
    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

/* A field with an empty value is written "Name;" for the library; "Name:" takes one of its own
 * away. NULL when memory ran out. */
static struct curl_slist *make_headers(const mcp_request_t *request, apr_pool_t *pool)
{
    struct curl_slist *list = NULL;
    int has_type = 0;
    int is_good = append(&list, "Expect:");
    for (int i = 0; is_good && request->headers != NULL && i < request->headers->nelts; i++) {
        const char *text = APR_ARRAY_IDX(request->headers, i, const char *);
        size_t name_bytes = strcspn(text, ":"); /* the colon is there, judged before */
        const char *value = text + name_bytes + 1;
        if (value[strspn(value, " \t")] == '\0')
            text = apr_pstrcat(pool, apr_pstrmemdup(pool, text, name_bytes), ";", NULL);
        has_type |= name_bytes == 12 && strncasecmp(text, "content-type", 12) == 0;
        is_good = append(&list, text);
    }
    if (is_good && !has_type)
        is_good = append(&list, "Content-Type:");
    if (!is_good) {
        curl_slist_free_all(list);
        return NULL;
    }
    return list;
}

/* --- the transfer ------------------------------------------------------------ */

/* Whether the loop must end, asking the caller at most each GONE_POLL_MS. */
static mcp_egress_cause_t look_around(call_t *call)
{
    int64_t now_ms = mcp_egress_now_ms();
    if (now_ms >= call->deadline_ms)
        return MCP_EGRESS_TIME;
    if (call->is_gone != NULL && now_ms >= call->next_gone_ms) {
        call->next_gone_ms = now_ms + GONE_POLL_MS;
        if (call->is_gone(call->baton))
            return MCP_EGRESS_GONE;
    }
    return MCP_EGRESS_OK;
}

static int poll_ms(const call_t *call)
{
    int64_t now_ms = mcp_egress_now_ms();
    int64_t wait_ms = call->deadline_ms - now_ms;
    if (call->is_gone != NULL && call->next_gone_ms - now_ms < wait_ms)
        wait_ms = call->next_gone_ms - now_ms;
    if (wait_ms > IDLE_POLL_MS)
        wait_ms = IDLE_POLL_MS;
    return wait_ms > 0 ? (int)wait_ms : 0;
}

static CURLcode drive(call_t *call, hop_t *hop, line_t *line)
{
    int running = 1;
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    while (running > 0 && hop->stop == MCP_EGRESS_OK) {
        if (curl_multi_perform(line->multi, &running) != CURLM_OK)
            return CURLE_FAILED_INIT;
        if (running == 0)
            break;
        mcp_egress_cause_t stop = look_around(call);
        if (hop->stop == MCP_EGRESS_OK)
            hop->stop = stop;
        if (hop->stop == MCP_EGRESS_OK &&
            curl_multi_poll(line->multi, NULL, 0, poll_ms(call), NULL) != CURLM_OK)
            return CURLE_FAILED_INIT;
    }
    int left = 0;
    for (;;) {
        const CURLMsg *message = curl_multi_info_read(line->multi, &left);
        if (message == NULL)
            return code;
        if (message->msg == CURLMSG_DONE)
            code = message->data.result;
    }
}

/* The socket of the connection that may serve another request, if there is one. */
static curl_socket_t find_socket(CURL *easy)
{
    curl_socket_t found = CURL_SOCKET_BAD;
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &found) == CURLE_OK ? found
                                                                              : CURL_SOCKET_BAD;
}

/* One start of the request on `line`. */
static CURLcode transfer(call_t *call, hop_t *hop, line_t *line, int is_fresh)
{
    line->socket = CURL_SOCKET_BAD;
    curl_easy_reset(line->easy); /* keeps the connection, forgets every option */
    struct curl_slist *headers = make_headers(call->request, call->pool);
    CURLcode code = headers != NULL ? set_fixed(call->egress, line->easy) : CURLE_OUT_OF_MEMORY;
    if (code == CURLE_OK)
        code = set_callbacks(hop, line->easy);
    if (code == CURLE_OK)
        code = set_url(hop, line->easy);
    if (code == CURLE_OK)
        code = set_method(call->request, line->easy);
    if (code == CURLE_OK)
        code = set_times(call, line->easy);
    if (code == CURLE_OK)
        code = curl_easy_setopt(line->easy, CURLOPT_HTTPHEADER, headers);
    if (code == CURLE_OK)
        code = curl_easy_setopt(line->easy, CURLOPT_FRESH_CONNECT, (long)is_fresh);
    if (code == CURLE_OK && curl_multi_add_handle(line->multi, line->easy) != CURLM_OK)
        code = CURLE_FAILED_INIT;
    else if (code == CURLE_OK) {
        code = drive(call, hop, line);
        if (code == CURLE_OK && hop->stop == MCP_EGRESS_OK)
            line->socket = find_socket(line->easy);
        /* fails only for handles that aren't in */
        (void)curl_multi_remove_handle(line->multi, line->easy);
    }
    curl_easy_reset(line->easy); /* nothing in it points at this call any more */
    curl_slist_free_all(headers);
    return code;
}

static int is_break(CURLcode result)
{
    return result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR || result == CURLE_GOT_NOTHING;
}

/* Whether an idempotent request goes out once more: it died with a kept connection before any
 * answer, and the library has not repeated it yet. */
static int may_repeat(const hop_t *hop, CURLcode result)
{
    return hop->call->request->is_idempotent && hop->is_reused && hop->starts == 1 &&
           hop->stop == MCP_EGRESS_OK && hop->answer.header_bytes == 0 && is_break(result);
}

/* --- outcomes ------------------------------------------------------------------ */

static const struct {
    CURLcode result;
    mcp_egress_cause_t cause;
} results[] = {
    {CURLE_COULDNT_RESOLVE_HOST, MCP_EGRESS_NO_NAME},
    {CURLE_COULDNT_CONNECT, MCP_EGRESS_NO_CONNECTION},
    {CURLE_OPERATION_TIMEDOUT, MCP_EGRESS_CONNECT_TIME}, /* no other time limit is the library's */
    {CURLE_PEER_FAILED_VERIFICATION, MCP_EGRESS_NO_TRUST},
    {CURLE_SSL_CACERT_BADFILE, MCP_EGRESS_CA_FILE},
    {CURLE_SSL_CONNECT_ERROR, MCP_EGRESS_NO_TLS},
    {CURLE_SSL_CIPHER, MCP_EGRESS_NO_TLS},
    {CURLE_SSL_CERTPROBLEM, MCP_EGRESS_NO_TLS},
    {CURLE_SEND_ERROR, MCP_EGRESS_BROKEN},
    {CURLE_RECV_ERROR, MCP_EGRESS_BROKEN},
    {CURLE_GOT_NOTHING, MCP_EGRESS_NO_ANSWER},
    {CURLE_WEIRD_SERVER_REPLY, MCP_EGRESS_NOT_HTTP},
    {CURLE_UNSUPPORTED_PROTOCOL, MCP_EGRESS_NOT_HTTP}, /* HTTP/0.9 */
    {CURLE_PARTIAL_FILE, MCP_EGRESS_CUT},
    {CURLE_BAD_CONTENT_ENCODING, MCP_EGRESS_CUT}, /* of a transfer coding */
    {CURLE_OUT_OF_MEMORY, MCP_EGRESS_MEMORY},
    {CURLE_FAILED_INIT, MCP_EGRESS_MEMORY},
};

static mcp_egress_cause_t find_cause(const hop_t *hop, CURLcode result)
{
    if (hop->stop != MCP_EGRESS_OK)
        return hop->stop;
    if (result == CURLE_OK)
        return mcp_egress_answer_judge(&hop->answer);
    /* the library has one code for a broken connection and for a bad chunk */
    if (hop->answer.header_bytes > 0 && is_break(result))
        return MCP_EGRESS_CUT;
    /* a header line longer than the library's own buffer (100 kB in 7.88) is told as lack of memory */
    if (result == CURLE_OUT_OF_MEMORY && hop->starts > 0 && !hop->answer.is_header_done)
        return MCP_EGRESS_LARGE_HEADER;
    if (result == CURLE_COULDNT_CONNECT && hop->sockets == 0 && hop->refusals > 0)
        return MCP_EGRESS_ADDRESS;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i].result == result)
            return results[i].cause;
    }
    return MCP_EGRESS_UNKNOWN;
}

static apr_status_t judge(const call_t *call, const hop_t *hop, CURLcode result)
{
    mcp_egress_cause_t cause = find_cause(hop, result);
    int has_run = hop->starts > 0 && !call->request->is_idempotent;
    apr_int64_t number = 0;
    if (cause == MCP_EGRESS_OK)
        return APR_SUCCESS;
    if (cause == MCP_EGRESS_TIME)
        number = call->limits->timeout_ms;
    else if (cause == MCP_EGRESS_LARGE_BODY)
        number = (apr_int64_t)call->max_bytes;
    else if (cause == MCP_EGRESS_LARGE_HEADER)
        number = MCP_EGRESS_HEADER_MAX;
    apr_status_t status = mcp_egress_cause_fail(cause, number, has_run, call->pool, call->err);
    if (call->err != NULL) {
        call->err->log =
            apr_psprintf(call->pool, "libcurl: %s (%d)", curl_easy_strerror(result), (int)result);
    }
    return status;
}

/* A kept connection must be silent: what comes unasked is its end or an answer to nothing, and the
 * library (7.88) takes a socket with something to read for a live one. What a request on a closing
 * connection has done is unknown, so finding out before is worth a system call. */
static int is_silent(const line_t *line)
{
    struct pollfd entry = {.fd = line->socket, .events = POLLIN};
    return poll(&entry, 1, 0) == 0;
}

static line_t *take_line(mcp_egress_pool_t *lines, const char *origin, const char *connection)
{
    for (;;) {
        line_t *line = connection != NULL ? mcp_egress_pool_take(lines, origin, connection) : NULL;
        if (line == NULL)
            return line_new();
        if (is_silent(line))
            return line;
        line_close(line);
    }
}

/* Sends one request, at most twice, and gives the line back or ends it. */
static apr_status_t exchange(call_t *call, hop_t *hop)
{
    mcp_egress_pool_t *lines = call->egress->lines;
    const char *connection = call->limits->connection;
    line_t *line = take_line(lines, hop->url.origin, connection);
    if (line == NULL)
        return judge(call, hop, CURLE_OUT_OF_MEMORY);
    CURLcode code = transfer(call, hop, line, 0);
    if (may_repeat(hop, code))
        code = transfer(call, hop, line, 1);
    if (line->socket != CURL_SOCKET_BAD && connection != NULL)
        mcp_egress_pool_keep(lines, hop->url.origin, connection, line);
    else
        line_close(line);
    return judge(call, hop, code);
}

/* --- the door -------------------------------------------------------------------- */

static mcp_egress_cause_t judge_request(const mcp_request_t *request, apr_pool_t *pool,
                                        mcp_egress_url_t *ret)
{
    if (!mcp_egress_request_has_sendable_method(request))
        return MCP_EGRESS_BAD_METHOD;
    for (int i = 0; request->headers != NULL && i < request->headers->nelts; i++) {
        const char *header = APR_ARRAY_IDX(request->headers, i, const char *);
        if (!mcp_egress_request_has_sendable_header(header))
            return MCP_EGRESS_BAD_HEADER;
    }
    return mcp_egress_url_parse(request->url, pool, ret) == APR_SUCCESS ? MCP_EGRESS_OK
                                                                        : MCP_EGRESS_BAD_URL;
}

/* 1 and the next URL if this answer is a redirect that we follow. */
static int may_follow(const call_t *call, const hop_t *hop, int followed, mcp_egress_url_t *ret)
{
    const char *method = call->request->method;
    mcp_egress_url_t url;
    if (!mcp_egress_answer_is_redirect(&hop->answer) || followed >= REDIRECTS_MAX ||
        (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0))
        return 0;
    if (mcp_egress_url_resolve(&hop->url, hop->answer.location, call->pool, &url) != APR_SUCCESS ||
        strcmp(url.origin, hop->url.origin) != 0 || call->limits->may_follow == NULL ||
        !call->limits->may_follow(call->baton,
                                  apr_pstrcat(call->pool, url.origin, url.target, NULL)))
        return 0;
    *ret = url;
    return 1;
}

apr_status_t mcp_egress_send(mcp_egress_t *egress, const mcp_request_t *request,
                             const mcp_egress_limits_t *limits, const apr_array_header_t *allow,
                             int (*is_gone)(void *), void *baton, apr_pool_t *pool,
                             mcp_response_t *ret, mcp_err_t *err)
{
    int64_t now_ms = mcp_egress_now_ms();
    call_t call = {.egress = egress,
                   .request = request,
                   .limits = limits,
                   .allow = allow,
                   .is_gone = is_gone,
                   .baton = baton,
                   .pool = pool,
                   .err = err};
    mcp_egress_url_t url;
    call.max_bytes = limits->max_bytes < BODY_BYTES_MAX ? limits->max_bytes : BODY_BYTES_MAX;
    call.deadline_ms = now_ms + clamp_ms(limits->timeout_ms);
    call.next_gone_ms = now_ms + GONE_POLL_MS;
    mcp_egress_cause_t cause = judge_request(request, pool, &url);
    if (cause != MCP_EGRESS_OK)
        return mcp_egress_cause_fail(cause, 0, 0, pool, err);
    apr_status_t status;
    for (int followed = 0;; followed++) {
        hop_t hop = {.call = &call, .url = url};
        hop.answer.pool = pool;
        hop.answer.max_bytes = call.max_bytes;
        hop.is_allowed = mcp_egress_url_is_allowed(&url, allow, pool);
        status = exchange(&call, &hop);
        int is_over = status != APR_SUCCESS || !may_follow(&call, &hop, followed, &url);
        if (is_over && status == APR_SUCCESS)
            mcp_egress_answer_give(&hop.answer, ret);
        free(hop.answer.body);
        if (is_over)
            break;
    }
    return status;
}
