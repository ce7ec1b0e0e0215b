/* Outbound HTTP against real sockets (mcp_egress.c with its pool, answer, request and cause
 * rooms). */
#include "egress_fixture.h"

#include <dlfcn.h>
#include <netdb.h>

/* --- names: the resolver of this program ---------------------------------------- */

static const struct {
    const char *name;
    const char *address;
} names[] = {
    {"upstream.test", "127.0.0.1"},
    {"loop.test", "127.0.0.1"},
    {"lan.test", "10.1.2.3"},
    {"meta.test", "169.254.169.254"},
    {"mapped.test", "::ffff:127.0.0.1"},
    {"nat64.test", "64:ff9b::7f00:1"},
    {"sixtofour.test", "2002:7f00:1::1"},
    {"local6.test", "fd00::1"},
};

typedef int (*getaddrinfo_t)(const char *, const char *, const struct addrinfo *,
                             struct addrinfo **);

/* Stands before the C library's: the library under test resolves through here, so names answer as a
 * test wants and nothing leaves the machine. */
int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    union {
        void *object;
        getaddrinfo_t function;
    } real;
    real.object = dlsym(RTLD_NEXT, "getaddrinfo");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct addrinfo any = {.ai_socktype = SOCK_STREAM};
        if (strcmp(name, names[i].name) == 0)
            return real.function(names[i].address, service, &any, ret);
    }
    if (strstr(name, ".test") != NULL)
        return EAI_NONAME;
    return real.function(name, service, hints, ret);
}

/* --- answers ------------------------------------------------------------------------ */

static const char fine[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";

static int answer_fine(int fd, int connection, int request, const char *text)
{
    (void)connection;
    (void)request;
    (void)text;
    server_say(fd, fine);
    return 1;
}

/* The first request is answered; the second one is executed and the connection dropped. */
static int answer_once(int fd, int connection, int request, const char *text)
{
    if (connection == 1 && request == 2)
        return 0;
    return answer_fine(fd, connection, request, text);
}

/* Only the first request of the first connection is answered. */
static int answer_first(int fd, int connection, int request, const char *text)
{
    return connection == 1 && request == 1 ? answer_fine(fd, connection, request, text) : 0;
}

static int answer_nothing(int fd, int connection, int request, const char *text)
{
    (void)fd;
    (void)connection;
    (void)request;
    (void)text;
    return 0;
}

static int answer_and_close(int fd, int connection, int request, const char *text)
{
    (void)answer_fine(fd, connection, request, text);
    return 0;
}

static int answer_head(int fd, int connection, int request, const char *text)
{
    if (strncmp(text, "HEAD ", 5) != 0)
        return answer_fine(fd, connection, request, text);
    server_say(fd, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 99999999\r\n\r\n");
    return 1;
}

/* "/hop/N" leads to "/hop/N-1" in five forms; "/to?LOCATION" leads there. */
static int answer_redirect(int fd, int connection, int request, const char *text)
{
    static const int statuses[] = {301, 302, 303, 307, 308};
    const char *path = strchr(text, '/');
    char answer[1024];
    int hops = 0;
    (void)connection;
    (void)request;
    if (sscanf(path, "/hop/%d", &hops) == 1 && hops > 0) {
        (void)snprintf(answer, sizeof answer,
                       "HTTP/1.1 %d Go\r\nLocation: %s%d#part\r\nContent-Length: 4\r\n\r\ngone",
                       statuses[hops % 5], hops % 2 ? "/x/../hop/" : "", hops - 1);
    } else if (strncmp(path, "/to?", 4) == 0) {
        (void)snprintf(answer, sizeof answer,
                       "HTTP/1.1 302 Go\r\nLocation: %.*s\r\nContent-Length: 4\r\n\r\ngone",
                       (int)strcspn(path + 4, " "), path + 4);
    } else if (strncmp(path, "/both", 5) == 0) {
        (void)snprintf(
            answer, sizeof answer,
            "HTTP/1.1 302 Go\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
    } else {
        return answer_fine(fd, connection, request, text);
    }
    server_say(fd, answer);
    return 1;
}

/* An answer more than was asked for, which must not be taken for the next one: with the first
 * one on connection 1, a little later on connection 2. */
static int answer_twice(int fd, int connection, int request, const char *text)
{
    static const char more[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    char both[sizeof fine + sizeof more];
    if (connection > 2)
        return answer_fine(fd, connection, request, text);
    if (connection == 1) {
        (void)snprintf(both, sizeof both, "%s%s", fine, more);
        server_say(fd, both);
    } else {
        server_say(fd, fine);
        server_say(fd, more);
    }
    server_mark();
    return 1;
}

/* --- bytes on the wire ---------------------------------------------------------------- */

static void a_request_is_sent_byte_for_byte(void **state)
{
    static const char *const targets[] = {
        "/a/../b/%2e%2e/%2E/./c//d;m=1?q=%c3%A9&x=/../y?&&",
        "/?",
        "/..",
        "//x/y",
        "/%",
        "/a\\b",
        "/{x}|^`\"<>'",
        "/a@b:c",
    };
    fixture_t *f = *state;
    server_t server = server_start(answer_fine);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        ask_t ask = {.target = targets[i], .headers = {"X-One: 1", "X-Empty:", "x-two:  a\tb "}};
        assert_answer(f, send_ask(f, server.port, ask), 200, "ok");
        assert_string_equal(f->answer.content_type, "text/plain");
        assert_null(f->answer.location);
        assert_string_equal(
            server.seen->last,
            apr_psprintf(f->pool,
                         "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: mod_mcp\r\n"
                         "Accept: */*\r\nX-One: 1\r\nX-Empty:\r\nx-two:  a\tb \r\n\r\n",
                         targets[i], server.port));
    }
    server_stop(&server);
}

static void methods_and_bodies_are_framed_by_length(void **state)
{
    static const struct {
        const char *method;
        const char *body;
        const char *length; /* NULL: none */
    } cases[] = {
        {"GET", NULL, NULL},       {"GET", "{\"q\":1}", "7"}, {"POST", NULL, "0"},
        {"POST", "", "0"},         {"POST", "a=b", "3"},      {"PUT", NULL, "0"},
        {"PUT", "x", "1"},         {"PATCH", NULL, "0"},      {"PATCH", "xy", "2"},
        {"DELETE", NULL, NULL},    {"DELETE", "xyz", "3"},    {"PROPFIND", NULL, NULL},
        {"PROPFIND", "<a/>", "4"}, {"MOVE", NULL, NULL},      {"MKCOL", NULL, NULL},
        {"REPORT", "<b/>", "4"},   {"OPTIONS", NULL, NULL},   {"M-SEARCH", NULL, NULL},
    };
    fixture_t *f = *state;
    server_t server = server_start(answer_fine);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask_t ask = {.method = cases[i].method, .body = cases[i].body, .target = "/m"};
        assert_answer(f, send_ask(f, server.port, ask), 200, "ok");
        const char *line = cases[i].length == NULL
                               ? ""
                               : apr_psprintf(f->pool, "Content-Length: %s\r\n", cases[i].length);
        assert_string_equal(
            server.seen->last,
            apr_psprintf(f->pool,
                         "%s /m HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: mod_mcp\r\n"
                         "Accept: */*\r\n%s\r\n%s",
                         cases[i].method, server.port, line,
                         cases[i].body != NULL ? cases[i].body : ""));
    }
    assert_int_equal(server.seen->connections, 1);
    server_stop(&server);
}

static void given_fields_replace_the_library_s_own(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_fine);
    ask_t ask = {.method = "POST",
                 .body = "{}",
                 .headers = {"user-agent: other", "ACCEPT: a/b", "Content-Type: application/json",
                             "Authorization: Bearer t", "Cookie: a=b"}};
    assert_answer(f, send_ask(f, server.port, ask), 200, "ok");
    assert_string_equal(server.seen->last,
                        apr_psprintf(f->pool,
                                     "POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                                     "user-agent: other\r\nACCEPT: a/b\r\n"
                                     "Content-Type: application/json\r\nAuthorization: Bearer t\r\n"
                                     "Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}",
                                     server.port));
    server_stop(&server);
}

static void a_large_body_is_sent_whole_and_without_expect(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_fine);
    char *body = apr_palloc(f->pool, 50001);
    memset(body, 'b', 50000);
    body[50000] = '\0';
    assert_answer(f, send_ask(f, server.port, (ask_t){.method = "PUT", .body = body}), 200, "ok");
    assert_null(strstr(server.seen->last, "Expect"));
    assert_null(strstr(server.seen->last, "chunked"));
    assert_string_equal(strstr(server.seen->last, "\r\n\r\n") + 4, body);
    server_stop(&server);
}

static void head_has_no_body_and_keeps_the_connection(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_head);
    assert_answer(f, send_ask(f, server.port, (ask_t){.method = "HEAD"}), 200, "");
    assert_string_equal(f->answer.content_type, "a/b");
    assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/"}), 200, "ok");
    assert_int_equal(server.seen->connections, 1);
    server_stop(&server);
}

static void what_could_split_or_smuggle_is_refused(void **state)
{
    static const struct {
        const char *method;
        const char *header;
        const char *body;
    } cases[] = {
        {"GET", "X: a\r\nY: b", NULL},
        {"GET", "X: a\nY: b", NULL},
        {"GET", "X: a\rb", NULL},
        {"GET", "X\r\n: a", NULL},
        {"GET", "X : a", NULL},
        {"GET", ": a", NULL},
        {"GET", "no colon", NULL},
        {"GET", "", NULL},
        {"GET", " X: a", NULL},
        {"GET", "X: a\x01", NULL},
        {"GET", "X: a\x7f", NULL},
        {"GET", "X;", NULL},
        {"GET", "@file", NULL},
        {"GET", "Host: evil", NULL},
        {"POST", "content-length: 1", "ab"},
        {"POST", "Transfer-Encoding: chunked", "ab"},
        {"GET", "Connection: x", NULL},
        {"GET", "Expect: 100-continue", NULL},
        {"GET", "TE: trailers", NULL},
        {"GET", "Upgrade: h2c", NULL},
        {"GET /x HTTP/1.1\r\nX:", NULL, NULL},
        {"", NULL, NULL},
        {"get", NULL, NULL},
        {"CONNECT", NULL, NULL},
        {"HEAD", NULL, "body"},
        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", NULL, NULL},
    };
    fixture_t *f = *state;
    int port;
    int listener = server_listen(&port);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask_t ask = {
            .method = cases[i].method, .body = cases[i].body, .headers = {cases[i].header}};
        assert_failed(f, send_ask(f, port, ask), MCP_CODE_INVALID_ARGUMENTS);
    }
    assert_failed(f, send_ask(f, port, (ask_t){.target = "/a\r\nX: b"}), MCP_CODE_EGRESS_DENIED);
    assert_failed(f, send_ask(f, port, (ask_t){.scheme = "ftp"}), MCP_CODE_EGRESS_DENIED);
    assert_failed(f, send_ask(f, port, (ask_t){.host = "u:p@127.0.0.1"}), MCP_CODE_EGRESS_DENIED);
    assert_false(server_was_dialled(listener));
    (void)close(listener);
}

static void nothing_of_the_environment_is_used(void **state)
{
    fixture_t *f = *state;
    char home[] = "/tmp/test_egress.XXXXXX";
    int port;
    int listener = server_listen(&port);
    server_t server = server_start(answer_fine);
    const char *proxy = apr_psprintf(f->pool, "http://127.0.0.1:%d", port);
    assert_non_null(mkdtemp(home));
    const char *netrc = apr_pstrcat(f->pool, home, "/.netrc", NULL);
    FILE *file = fopen(netrc, "w");
    assert_non_null(file);
    (void)fputs("default login mallory password secret\n", file);
    (void)fclose(file);
    static const char *const variables[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        (void)setenv(variables[i], proxy, 1);
    const char *old_home = getenv("HOME");
    (void)setenv("HOME", home, 1);
    apr_status_t status = send_ask(f, server.port, (ask_t){.target = "/"});
    (void)setenv("HOME", old_home != NULL ? old_home : "/", 1);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        (void)unsetenv(variables[i]);
    (void)unlink(netrc);
    (void)rmdir(home);
    assert_answer(f, status, 200, "ok");
    assert_false(server_was_dialled(listener));
    assert_null(strstr(server.seen->last, "Authorization"));
    (void)close(listener);
    server_stop(&server);
}

/* --- connections ------------------------------------------------------------------------ */

static void a_connection_is_kept_for_its_own_calls(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_fine);
    for (int i = 0; i < 5; i++)
        assert_answer(f, send_ask(f, server.port, (ask_t){.connection = "one"}), 200, "ok");
    assert_int_equal(server.seen->connections, 1);
    assert_answer(f, send_ask(f, server.port, (ask_t){.connection = "two"}), 200, "ok");
    assert_int_equal(server.seen->connections, 2);
    assert_answer(f, send_ask(f, server.port, (ask_t){.connection = "one"}), 200, "ok");
    assert_int_equal(server.seen->connections, 2);
    assert_answer(f, send_ask(f, server.port, (ask_t){.is_unconnected = 1}), 200, "ok");
    assert_answer(f, send_ask(f, server.port, (ask_t){.is_unconnected = 1}), 200, "ok");
    assert_int_equal(server.seen->connections, 4);
    assert_true(server_wait(&server.seen->ended, 2));
    server_stop(&server);
}

static void a_connection_that_the_upstream_closed_is_not_used(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_and_close);
    for (int i = 1; i <= 3; i++) {
        ask_t ask = {.method = "POST", .is_final = 1};
        assert_answer(f, send_ask(f, server.port, ask), 200, "ok");
        assert_true(server_wait(&server.seen->ended, i));
        assert_int_equal(server.seen->requests, i);
    }
    server_stop(&server);
}

static void a_post_that_died_on_a_kept_connection_is_executed_once(void **state)
{
    static const char *const methods[] = {"POST", "DELETE", "PATCH", "MOVE"};
    fixture_t *f = *state;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        server_t server = server_start(answer_once);
        assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/"}), 200, "ok");
        ask_t ask = {.method = methods[i], .is_final = 1};
        assert_failed(f, send_ask(f, server.port, ask), MCP_CODE_UPSTREAM_UNREACHABLE);
        assert_non_null(strstr(f->err.message, "may have been executed"));
        assert_int_equal(server.seen->requests, 2);
        /* the next call is not harmed, and is the third request ever */
        assert_answer(f, send_ask(f, server.port, ask), 200, "ok");
        assert_int_equal(server.seen->requests, 3);
        server_stop(&server);
    }
}

static void a_get_that_died_on_a_kept_connection_is_sent_once_more(void **state)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT"};
    fixture_t *f = *state;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        server_t server = server_start(answer_once);
        assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/"}), 200, "ok");
        assert_answer(f, send_ask(f, server.port, (ask_t){.method = methods[i]}), 200,
                      strcmp(methods[i], "HEAD") == 0 ? "" : "ok");
        assert_int_equal(server.seen->requests, 3);
        assert_int_equal(server.seen->connections, 2);
        server_stop(&server);
    }
}

static void a_get_is_not_sent_a_third_time(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_first);
    assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/"}), 200, "ok");
    assert_failed(f, send_ask(f, server.port, (ask_t){.target = "/"}),
                  MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_null(strstr(f->err.message, "may have been executed"));
    assert_int_equal(server.seen->requests, 3);
    server_stop(&server);
}

static void a_get_that_died_on_a_new_connection_is_not_repeated(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_nothing);
    assert_failed(f, send_ask(f, server.port, (ask_t){.target = "/"}),
                  MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_int_equal(server.seen->requests, 1);
    server_stop(&server);
}

static void an_answer_too_many_is_not_taken_for_the_next(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_twice);
    for (int i = 1; i <= 4; i++) {
        assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/"}), 200, "ok");
        assert_true(server_wait(&server.seen->marks, i < 2 ? i : 2)); /* it has arrived by now */
    }
    assert_int_equal(server.seen->connections, 3);
    server_stop(&server);
}

static void a_child_process_leaves_the_parent_s_connection_alone(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_fine);
    assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/"}), 200, "ok");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        apr_status_t status = send_ask(f, server.port, (ask_t){.target = "/"});
        _exit(status != APR_SUCCESS || server.seen->connections != 2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/"}), 200, "ok");
    assert_int_equal(server.seen->connections, 2);
    assert_int_equal(server.seen->requests, 3);
    server_stop(&server);
}

static void quiet_connections_are_closed_by_tidy(void **state)
{
    fixture_t *f = *state;
    mcp_egress_options_t options = default_options();
    mcp_egress_t *egress = NULL;
    options.idle_ms = 20;
    assert_int_equal(mcp_egress_create(&options, f->pool, &egress, &f->err), APR_SUCCESS);
    server_t server = server_start(answer_fine);
    ask_t ask = {.target = "/"};
    assert_int_equal(send_with(egress, f->pool, server.port, &ask, &f->answer, &f->err),
                     APR_SUCCESS);
    int64_t end_ms = test_now_ms() + 21;
    while (test_now_ms() < end_ms)
        (void)sched_yield(); /* the clock is the event */
    mcp_egress_tidy(egress);
    assert_true(server_wait(&server.seen->ended, 1));
    mcp_egress_close(egress);
    server_stop(&server);
}

/* --- addresses ------------------------------------------------------------------------------ */

static void a_private_address_is_not_dialled_without_an_exception(void **state)
{
    static const char *const hosts[] = {
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::127.0.0.1]",
        "[2002:7f00:1::1]",
        "[2001:0:7f00:1::f7f7:f7f7]",
        "[2001:0:808:808::80ff:fffe]",
        "loop.test",
        "lan.test",
        "meta.test",
        "mapped.test",
        "nat64.test",
        "sixtofour.test",
        "local6.test",
    };
    fixture_t *f = *state;
    int port;
    int listener = server_listen(&port);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        ask_t ask = {.host = hosts[i], .is_private = 1};
        apr_status_t status = send_ask(f, port, ask);
        if (f->err.code != MCP_CODE_EGRESS_DENIED)
            fail_msg("%s: %s", hosts[i], f->err.message != NULL ? f->err.message : "answered");
        assert_failed(f, status, MCP_CODE_EGRESS_DENIED);
        assert_false(server_was_dialled(listener));
    }
    (void)close(listener);
}

static void an_exception_is_for_the_origin_as_written(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_fine);
    assert_answer(f, send_ask(f, server.port, (ask_t){.host = "upstream.test"}), 200, "ok");
    assert_non_null(strstr(server.seen->last, "\r\nHost: upstream.test:"));
    const char *url = apr_psprintf(f->pool, "http://loop.test:%d/", server.port);
    apr_array_header_t *allow = apr_array_make(f->pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(allow, const char *) =
        apr_psprintf(f->pool, "http://upstream.test:%d", server.port);
    mcp_request_t request = {.method = "GET", .url = url, .is_idempotent = 1};
    mcp_egress_limits_t limits = {.timeout_ms = 9000, .max_bytes = BODY_MAX, .connection = "c"};
    memset(&f->answer, 0, sizeof f->answer);
    apr_status_t status = mcp_egress_send(f->egress, &request, &limits, allow, NULL, NULL, f->pool,
                                          &f->answer, &f->err);
    assert_failed(f, status, MCP_CODE_EGRESS_DENIED);
    assert_int_equal(server.seen->connections, 1);
    server_stop(&server);
}

static void the_address_is_judged_on_kept_connections_too(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_fine);
    assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/"}), 200, "ok");
    assert_failed(f, send_ask(f, server.port, (ask_t){.is_private = 1}), MCP_CODE_EGRESS_DENIED);
    assert_true(server_wait(&server.seen->ended, 1));
    assert_int_equal(server.seen->requests, 1);
    assert_int_equal(server.seen->connections, 1);
    server_stop(&server);
}

static void failures_to_reach_say_why(void **state)
{
    fixture_t *f = *state;
    int port;
    int listener = server_listen(&port);
    (void)close(listener); /* nobody listens there now */
    assert_failed(f, send_ask(f, port, (ask_t){.is_final = 1}), MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_string_equal(f->err.message, "The upstream did not accept a connection.");
    assert_failed(f, send_ask(f, port, (ask_t){.host = "nowhere.test", .is_final = 1}),
                  MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_string_equal(f->err.message, "The name of the upstream's host could not be resolved.");
}

/* --- redirects
 * -------------------------------------------------------------------------------------- */

static void redirects_within_the_origin_are_followed_five_times(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_redirect);
    ask_t ask = {.target = "/hop/5", .headers = {"Authorization: Bearer t"}};
    assert_answer(f, send_ask(f, server.port, ask), 200, "ok");
    assert_null(f->answer.location);
    assert_int_equal(server.seen->requests, 6);
    assert_int_equal(server.seen->connections, 1);
    assert_int_equal(strncmp(server.seen->last, "GET /hop/0 HTTP/1.1\r\n", 21), 0);
    assert_non_null(strstr(server.seen->last, "Authorization: Bearer t"));
    ask.target = "/hop/6";
    assert_answer(f, send_ask(f, server.port, ask), 302, "gone");
    assert_string_equal(f->answer.location, "/x/../hop/0#part");
    assert_int_equal(server.seen->requests, 12);
    ask_t head = {.method = "HEAD", .target = "/to?/x"};
    assert_int_equal(send_ask(f, server.port, head), APR_SUCCESS);
    assert_int_equal(strncmp(server.seen->last, "HEAD /x HTTP/1.1\r\n", 18), 0);
    server_stop(&server);
}

static void redirects_elsewhere_are_the_result_and_carry_no_credential(void **state)
{
    static const struct {
        const char *before;
        const char *after;
    } forms[] = {
        {"http://127.0.0.1:", "/x"},  {"//127.0.0.1:", "/x"},          {"http://localhost:", "/x"},
        {"https://127.0.0.1:", "/x"}, {"http://u:p@127.0.0.1:", "/x"}, {"ftp://127.0.0.1:", "/x"},
    };
    fixture_t *f = *state;
    int port;
    int listener = server_listen(&port);
    server_t server = server_start(answer_redirect);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const char *location =
            apr_psprintf(f->pool, "%s%d%s", forms[i].before, port, forms[i].after);
        ask_t ask = {.target = apr_pstrcat(f->pool, "/to?", location, NULL),
                     .headers = {"Authorization: Bearer t"}};
        assert_answer(f, send_ask(f, server.port, ask), 302, "gone");
        assert_string_equal(f->answer.location, location);
        assert_false(server_was_dialled(listener));
    }
    assert_int_equal(server.seen->requests, sizeof forms / sizeof forms[0]);
    (void)close(listener);
    server_stop(&server);
}

static void redirects_of_other_methods_or_to_two_places_are_not_followed(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_redirect);
    ask_t post = {.method = "POST", .body = "x", .target = "/to?/x"};
    assert_answer(f, send_ask(f, server.port, post), 302, "gone");
    assert_string_equal(f->answer.location, "/x");
    assert_answer(f, send_ask(f, server.port, (ask_t){.target = "/both"}), 302, "");
    assert_int_equal(server.seen->requests, 2);
    server_stop(&server);
}

/* Agrees to everything but the path that the test withholds, and notes what it was asked. */
static int judge_redirect(void *baton, const char *url)
{
    *(const char **)baton = url;
    return strstr(url, "/withheld") == NULL;
}

static void a_redirect_that_is_judged_withheld_is_the_result(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_redirect);
    const char *judged = NULL;
    ask_t ask = {.target = "/to?/withheld", .may_follow = judge_redirect, .baton = &judged};
    assert_answer(f, send_ask(f, server.port, ask), 302, "gone");
    assert_string_equal(f->answer.location, "/withheld");
    assert_int_equal(server.seen->requests, 1);
    assert_string_equal(judged, apr_psprintf(f->pool, "http://127.0.0.1:%d/withheld", server.port));
    ask.target = "/to?/open";
    assert_answer(f, send_ask(f, server.port, ask), 200, "ok");
    assert_int_equal(server.seen->requests, 3);
    server_stop(&server);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_sent_byte_for_byte),
        TEST(methods_and_bodies_are_framed_by_length),
        TEST(given_fields_replace_the_library_s_own),
        TEST(a_large_body_is_sent_whole_and_without_expect),
        TEST(head_has_no_body_and_keeps_the_connection),
        TEST(what_could_split_or_smuggle_is_refused),
        TEST(nothing_of_the_environment_is_used),
        TEST(a_connection_is_kept_for_its_own_calls),
        TEST(a_connection_that_the_upstream_closed_is_not_used),
        TEST(a_post_that_died_on_a_kept_connection_is_executed_once),
        TEST(a_get_that_died_on_a_kept_connection_is_sent_once_more),
        TEST(a_get_is_not_sent_a_third_time),
        TEST(a_get_that_died_on_a_new_connection_is_not_repeated),
        TEST(an_answer_too_many_is_not_taken_for_the_next),
        TEST(a_child_process_leaves_the_parent_s_connection_alone),
        TEST(quiet_connections_are_closed_by_tidy),
        TEST(a_private_address_is_not_dialled_without_an_exception),
        TEST(an_exception_is_for_the_origin_as_written),
        TEST(the_address_is_judged_on_kept_connections_too),
        TEST(failures_to_reach_say_why),
        TEST(redirects_within_the_origin_are_followed_five_times),
        TEST(a_redirect_that_is_judged_withheld_is_the_result),
        TEST(redirects_elsewhere_are_the_result_and_carry_no_credential),
        TEST(redirects_of_other_methods_or_to_two_places_are_not_followed),
    };
    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
