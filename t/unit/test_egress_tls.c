/* TLS of outbound HTTP against the openssl program as a server; skipped where there is none. */
#include "egress_fixture.h"

#include <fcntl.h>

typedef struct tls_server {
    pid_t pid;
    int port;
    int output;
} tls_server_t;

static char folder[] = "/tmp/test_egress_tls.XXXXXX";
static int has_openssl;

static const char *in_folder(apr_pool_t *pool, const char *name)
{
    return apr_psprintf(pool, "%s/%s", folder, name);
}

/* Runs openssl with its output to `output`; its process id. */
static pid_t run_openssl(char *const *arguments, int output)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(null, 0);
        (void)dup2(output >= 0 ? output : null, 1);
        (void)dup2(null, 2);
        (void)execvp("openssl", arguments);
        _exit(127);
    }
    return pid;
}

static int is_done(pid_t pid)
{
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A self-signed certificate for one name, with its key in the same file. */
static int make_certificate(apr_pool_t *pool, const char *file, const char *name)
{
    char *arguments[] = {apr_pstrdup(pool, "openssl"),
                         apr_pstrdup(pool, "req"),
                         apr_pstrdup(pool, "-x509"),
                         apr_pstrdup(pool, "-newkey"),
                         apr_pstrdup(pool, "ec"),
                         apr_pstrdup(pool, "-pkeyopt"),
                         apr_pstrdup(pool, "ec_paramgen_curve:P-256"),
                         apr_pstrdup(pool, "-nodes"),
                         apr_pstrdup(pool, "-days"),
                         apr_pstrdup(pool, "2"),
                         apr_pstrdup(pool, "-subj"),
                         apr_pstrdup(pool, "/CN=test"),
                         apr_pstrdup(pool, "-addext"),
                         apr_psprintf(pool, "subjectAltName=%s", name),
                         apr_pstrdup(pool, "-keyout"),
                         apr_pstrcat(pool, in_folder(pool, file), ".key", NULL),
                         apr_pstrdup(pool, "-out"),
                         apr_pstrdup(pool, in_folder(pool, file)),
                         NULL};
    return is_done(run_openssl(arguments, -1));
}

/* Reads the server's output until it says where it listens. */
static int read_port(int output)
{
    char text[4096];
    size_t bytes = 0;
    while (bytes + 1 < sizeof text) {
        ssize_t got = read(output, text + bytes, sizeof text - 1 - bytes);
        if (got <= 0)
            return 0;
        bytes += (size_t)got;
        text[bytes] = '\0';
        const char *line = strstr(text, "ACCEPT ");
        if (line != NULL && strchr(line, '\n') != NULL) {
            const char *colon = strrchr(line, ':');
            return colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
        }
    }
    return 0;
}

static tls_server_t start_tls(apr_pool_t *pool, const char *file, const char *version)
{
    tls_server_t server = {0, 0, -1};
    int ends[2];
    char *arguments[] = {apr_pstrdup(pool, "openssl"),
                         apr_pstrdup(pool, "s_server"),
                         apr_pstrdup(pool, "-accept"),
                         apr_pstrdup(pool, "127.0.0.1:0"),
                         apr_pstrdup(pool, "-cert"),
                         apr_pstrdup(pool, in_folder(pool, file)),
                         apr_pstrdup(pool, "-key"),
                         apr_pstrcat(pool, in_folder(pool, file), ".key", NULL),
                         apr_pstrdup(pool, "-www"),
                         apr_pstrdup(pool, version),
                         NULL};
    assert_int_equal(pipe(ends), 0);
    server.pid = run_openssl(arguments, ends[1]);
    (void)close(ends[1]);
    server.output = ends[0];
    server.port = read_port(ends[0]);
    assert_int_not_equal(server.port, 0);
    return server;
}

static void stop_tls(const tls_server_t *server)
{
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
    (void)close(server->output);
}

static int make_certificates(void **state)
{
    apr_pool_t *pool;
    if (set_up_group(state) != 0 || apr_pool_create(&pool, NULL) != APR_SUCCESS)
        return -1;
    if (mkdtemp(folder) == NULL)
        return -1;
    has_openssl = make_certificate(pool, "good.pem", "IP:127.0.0.1") &&
                  make_certificate(pool, "other.pem", "DNS:other.test");
    apr_pool_destroy(pool);
    return 0;
}

static int drop_certificates(void **state)
{
    static const char *const files[] = {"good.pem", "good.pem.key", "other.pem", "other.pem.key"};
    apr_pool_t *pool;
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        (void)unlink(in_folder(pool, files[i]));
    (void)rmdir(folder);
    apr_pool_destroy(pool);
    return tear_down_group(state);
}

static apr_status_t send_trusting(fixture_t *f, const char *ca_file, int port)
{
    mcp_egress_options_t options = default_options();
    mcp_egress_t *egress = NULL;
    ask_t ask = {.scheme = "https", .max_bytes = 100000, .is_final = 1};
    options.ca_file = ca_file;
    memset(&f->answer, 0, sizeof f->answer);
    assert_int_equal(mcp_egress_create(&options, f->pool, &egress, &f->err), APR_SUCCESS);
    apr_status_t status = send_with(egress, f->pool, port, &ask, &f->answer, &f->err);
    mcp_egress_close(egress);
    return status;
}

static void skip_without_openssl(void)
{
    if (!has_openssl) {
        print_message("the openssl program cannot make certificates here\n");
        skip();
    }
}

static void a_trusted_certificate_for_the_host_is_accepted(void **state)
{
    fixture_t *f = *state;
    skip_without_openssl();
    tls_server_t server = start_tls(f->pool, "good.pem", "-tls1_3");
    assert_int_equal(send_trusting(f, in_folder(f->pool, "good.pem"), server.port), APR_SUCCESS);
    assert_int_equal(f->answer.status, 200);
    stop_tls(&server);
}

static void a_certificate_that_nobody_vouches_for_is_refused(void **state)
{
    fixture_t *f = *state;
    skip_without_openssl();
    tls_server_t server = start_tls(f->pool, "good.pem", "-tls1_3");
    assert_failed(f, send_trusting(f, NULL, server.port), MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_non_null(strstr(f->err.message, "certificate is not trusted"));
    assert_null(strstr(f->err.message, "may have been executed"));
    assert_failed(f, send_trusting(f, in_folder(f->pool, "other.pem"), server.port),
                  MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_non_null(strstr(f->err.message, "certificate is not trusted"));
    stop_tls(&server);
}

static void a_certificate_for_another_name_is_refused(void **state)
{
    fixture_t *f = *state;
    skip_without_openssl();
    tls_server_t server = start_tls(f->pool, "other.pem", "-tls1_3");
    assert_failed(f, send_trusting(f, in_folder(f->pool, "other.pem"), server.port),
                  MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_non_null(strstr(f->err.message, "for another name"));
    stop_tls(&server);
}

static void an_unreadable_file_of_authorities_trusts_nobody(void **state)
{
    fixture_t *f = *state;
    skip_without_openssl();
    tls_server_t server = start_tls(f->pool, "good.pem", "-tls1_3");
    assert_failed(f, send_trusting(f, in_folder(f->pool, "absent.pem"), server.port),
                  MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_non_null(strstr(f->err.message, "file of trusted TLS authorities"));
    stop_tls(&server);
}

static int answer_plain(int fd, int connection, int request, const char *text)
{
    (void)connection;
    (void)request;
    (void)text;
    server_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    return 1;
}

/* The reader of requests sees no line end in a handshake: the server just never answers it. */
static int answer_wrong_hello(int listener)
{
    int fd = accept(listener, NULL, NULL);
    char byte;
    (void)recv(fd, &byte, 1, 0);
    server_say(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
    (void)close(fd);
    return 0;
}

static void a_server_without_tls_is_not_spoken_to_in_clear(void **state)
{
    fixture_t *f = *state;
    int port;
    int listener = server_listen(&port);
    pid_t pid = fork();
    if (pid == 0)
        _exit(answer_wrong_hello(listener));
    assert_failed(f, send_ask(f, port, (ask_t){.scheme = "https"}), MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_non_null(strstr(f->err.message, "No TLS connection"));
    (void)waitpid(pid, NULL, 0);
    (void)close(listener);
    server_t plain = server_start(answer_plain);
    ask_t silent = {.scheme = "https", .timeout_ms = 300};
    assert_failed(f, send_ask(f, plain.port, silent), MCP_CODE_UPSTREAM_TIMEOUT);
    assert_int_equal(plain.seen->requests, 0);
    server_stop(&plain);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_trusted_certificate_for_the_host_is_accepted),
        TEST(a_certificate_that_nobody_vouches_for_is_refused),
        TEST(a_certificate_for_another_name_is_refused),
        TEST(an_unreadable_file_of_authorities_trusts_nobody),
        TEST(a_server_without_tls_is_not_spoken_to_in_clear),
    };
    return cmocka_run_group_tests(tests, make_certificates, drop_certificates);
}
