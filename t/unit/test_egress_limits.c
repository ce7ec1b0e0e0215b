/* Limits of outbound HTTP: sizes, times, places, many calls and many threads. */
#include "egress_fixture.h"

#include <dlfcn.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>

static sem_t slow_name;          /* posted: the slow name server answers */
static atomic_int names_waiting; /* look-ups that wait for it */

typedef int (*getaddrinfo_t)(const char *, const char *, const struct addrinfo *,
                             struct addrinfo **);

/* Stands before the C library's, for a name server that is silent until told. */
int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    union {
        void *object;
        getaddrinfo_t function;
    } real;
    if (strcmp(name, "slow.test") == 0) {
        atomic_fetch_add(&names_waiting, 1);
        struct timespec end;
        (void)clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 5; /* a watchdog: whoever waits for us has failed by then */
        (void)sem_timedwait(&slow_name, &end);
        atomic_fetch_sub(&names_waiting, 1);
        return EAI_NONAME;
    }
    real.object = dlsym(RTLD_NEXT, "getaddrinfo");
    return real.function(name, service, hints, ret);
}

static void say_large(int fd, const char *head, const char *frame, size_t count)
{
    server_say(fd, head);
    for (size_t i = 0; i < count; i++)
        server_say(fd, frame);
}

/* By the request's path. */
static int answer_odd(int fd, int connection, int request, const char *text)
{
    static const char chunk[] = "8\r\n12345678\r\n";
    static const struct {
        const char *path;
        const char *bytes;
        const char *frame;
        size_t count;
    } rows[] = {
        {"/exact", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "0123456789", 100},
        {"/large", "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "0123456789", 101},
        {"/chunked-large", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk, 10000},
        {"/endless", "HTTP/1.1 200 OK\r\n\r\n", "0123456789", 10000},
        {"/headers", "HTTP/1.1 200 OK\r\n", "X-A: 0123456789012345678901234567890123456789\r\n",
         3000},
        {"/interim", "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 3000},
        {"/garbage", "this is not HTTP\r\n\r\n", "", 0},
        {"/binary", "\x16\x03\x01\x02\r\n\r\n", "", 0},
        {"/status", "HTTP/1.1 OK\r\n\r\n", "", 0},
        {"/chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", "", 0},
        {"/cut-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nabc", "", 0},
        {"/cut", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "", 0},
        {"/gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab", "",
         0},
        {"/switch", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "", 0},
        {"/600", "HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n", "", 0},
        {"/nothing", "", "", 0},
        {"/to-end", "HTTP/1.0 200 OK\r\nContent-Type: a/b; c=d\r\n\r\nuntil the end", "", 0},
        {"/hint",
         "HTTP/1.1 103 Early\r\nContent-Type: no/no\r\nLocation: /no\r\n\r\n"
         "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno",
         "", 0},
        {"/trailer",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
         "Content-Type: no/no\r\nLocation: /no\r\n\r\n",
         "", 0},
        {"/empty", "HTTP/1.1 204 No Content\r\n\r\n", "", 0},
    };
    const char *path = text + 4;
    (void)connection;
    (void)request;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = strlen(rows[i].path);
        if (strncmp(path, rows[i].path, bytes) == 0 && path[bytes] == ' ')
            say_large(fd, rows[i].bytes, rows[i].frame, rows[i].count);
    }
    return 0;
}

/* Takes the request and is silent; "/drip" says a little first. */
static int answer_never(int fd, int connection, int request, const char *text)
{
    char byte;
    (void)connection;
    (void)request;
    if (strncmp(text, "GET /drip ", 10) == 0)
        server_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    (void)recv(fd, &byte, 1, 0); /* until the client goes */
    return 0;
}

/* Sends path and body back. */
static int answer_echo(int fd, int connection, int request, const char *text)
{
    char answer[1024];
    const char *body = strstr(text, "\r\n\r\n") + 4;
    const char *path = strchr(text, ' ') + 1;
    int path_bytes = (int)strcspn(path, " ");
    (void)connection;
    (void)request;
    (void)snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%.*s %s",
                   path_bytes + 1 + (int)strlen(body), path_bytes, path, body);
    server_say(fd, answer);
    return 1;
}

static void answers_are_judged(void **state)
{
    static const struct {
        const char *target;
        mcp_code_t code;
    } cases[] = {
        {"/large", MCP_CODE_RESULT_TOO_LARGE},       {"/chunked-large", MCP_CODE_RESULT_TOO_LARGE},
        {"/endless", MCP_CODE_RESULT_TOO_LARGE},     {"/headers", MCP_CODE_UPSTREAM_INVALID},
        {"/interim", MCP_CODE_UPSTREAM_INVALID},     {"/garbage", MCP_CODE_UPSTREAM_INVALID},
        {"/binary", MCP_CODE_UPSTREAM_INVALID},      {"/status", MCP_CODE_UPSTREAM_INVALID},
        {"/chunk", MCP_CODE_UPSTREAM_INVALID},       {"/cut-chunk", MCP_CODE_UPSTREAM_INVALID},
        {"/cut", MCP_CODE_UPSTREAM_INVALID},         {"/gzip", MCP_CODE_UPSTREAM_INVALID},
        {"/switch", MCP_CODE_UPSTREAM_INVALID},      {"/600", MCP_CODE_UPSTREAM_INVALID},
        {"/nothing", MCP_CODE_UPSTREAM_UNREACHABLE},
    };
    fixture_t *f = *state;
    server_t server = server_start(answer_odd);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        apr_status_t status = send_ask(f, server.port, (ask_t){.target = cases[i].target});
        if (status == APR_SUCCESS || f->err.code != cases[i].code)
            fail_msg("%s: %s", cases[i].target, status == APR_SUCCESS ? "taken" : f->err.message);
        assert_failed(f, status, cases[i].code);
        assert_int_equal(server.seen->connections, i + 1);
    }
    server_stop(&server);
}

static void a_limit_is_named_and_reached_exactly(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_odd);
    assert_int_equal(send_ask(f, server.port, (ask_t){.target = "/exact"}), APR_SUCCESS);
    assert_int_equal(f->answer.body_bytes, BODY_MAX);
    assert_int_equal(f->answer.body[BODY_MAX], '\0');
    assert_true(server_wait(&server.seen->ended, 1));
    assert_failed(f, send_ask(f, server.port, (ask_t){.target = "/large", .is_final = 1}),
                  MCP_CODE_RESULT_TOO_LARGE);
    assert_non_null(strstr(f->err.message, "larger than 1000 bytes."));
    assert_non_null(strstr(f->err.message, "may have been executed"));
    assert_non_null(f->err.hint);
    server_stop(&server);
}

static void whole_answers_of_odd_forms_are_taken(void **state)
{
    static const struct {
        const char *target;
        int status;
        const char *type;
        const char *body;
    } cases[] = {
        {"/to-end", 200, "a/b; c=d", "until the end"},
        {"/hint", 404, "", "no"},
        {"/trailer", 200, "", "ok"},
        {"/empty", 204, "", ""},
    };
    fixture_t *f = *state;
    server_t server = server_start(answer_odd);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_answer(f, send_ask(f, server.port, (ask_t){.target = cases[i].target}),
                      cases[i].status, cases[i].body);
        assert_true(server_wait(&server.seen->ended, (int)i + 1));
        assert_string_equal(f->answer.content_type, cases[i].type);
        assert_null(f->answer.location);
    }
    server_stop(&server);
}

static void a_silent_upstream_is_left_at_the_deadline(void **state)
{
    static const char *const targets[] = {"/silent", "/drip"};
    fixture_t *f = *state;
    server_t server = server_start(answer_never);
    for (size_t i = 0; i < 2; i++) {
        int64_t start_ms = test_now_ms();
        ask_t ask = {.target = targets[i], .timeout_ms = 300, .is_final = 1};
        assert_failed(f, send_ask(f, server.port, ask), MCP_CODE_UPSTREAM_TIMEOUT);
        int64_t took_ms = test_now_ms() - start_ms;
        assert_in_range(took_ms, 290, 5000);
        assert_non_null(
            strstr(f->err.message, "within 300 ms. The request may have been executed"));
        assert_true(server_wait(&server.seen->ended, (int)i + 1));
    }
    server_stop(&server);
}

static void a_name_server_that_is_silent_holds_nobody(void **state)
{
    fixture_t *f = *state;
    int64_t start_ms = test_now_ms();
    assert_int_equal(sem_init(&slow_name, 0, 0), 0);
    ask_t ask = {.host = "slow.test", .timeout_ms = 200, .is_final = 1};
    assert_failed(f, send_ask(f, 80, ask), MCP_CODE_UPSTREAM_TIMEOUT);
    assert_in_range(test_now_ms() - start_ms, 190, 4000);
    assert_null(strstr(f->err.message, "may have been executed"));
    assert_true(server_wait(&names_waiting, 1));
    (void)sem_post(&slow_name);
    int64_t end_ms = test_now_ms() + 20000;
    while (atomic_load(&names_waiting) > 0 && test_now_ms() < end_ms)
        (void)sched_yield();
    assert_int_equal(names_waiting, 0);
}

typedef struct leaver {
    int64_t from_ms;
    int calls;
    int64_t last_ms;
    int64_t smallest_ms; /* between two calls */
} leaver_t;

static int is_gone_soon(void *baton)
{
    leaver_t *leaver = baton;
    int64_t now_ms = test_now_ms();
    if (leaver->calls > 0 && now_ms - leaver->last_ms < leaver->smallest_ms)
        leaver->smallest_ms = now_ms - leaver->last_ms;
    leaver->last_ms = now_ms;
    leaver->calls++;
    return now_ms >= leaver->from_ms;
}

static void a_caller_who_leaves_ends_the_call_within_a_second(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_never);
    leaver_t leaver = {.from_ms = test_now_ms() + 500, .smallest_ms = 1000};
    ask_t ask = {.is_gone = is_gone_soon, .baton = &leaver};
    assert_failed(f, send_ask(f, server.port, ask), MCP_CODE_CANCELLED);
    assert_in_range(test_now_ms() - leaver.from_ms, 0, 999);
    assert_in_range(leaver.calls, 2, 10);
    assert_in_range(leaver.smallest_ms, 190, 1000);
    assert_true(server_wait(&server.seen->ended, 1)); /* the upstream learns it too */
    server_stop(&server);
}

static void places_are_refused_with_their_own_classes(void **state)
{
    fixture_t *f = *state;
    mcp_egress_options_t options = default_options();
    mcp_egress_t *egress = NULL;
    options.max_calls = 2;
    options.max_per_connection = 1;
    assert_int_equal(mcp_egress_create(&options, f->pool, &egress, &f->err), APR_SUCCESS);
    assert_int_equal(mcp_egress_enter(egress, "a", f->pool, &f->err), APR_SUCCESS);
    assert_int_equal(mcp_egress_enter(egress, "a", f->pool, &f->err), MCP_STATUS_REFUSED);
    assert_int_equal(f->err.fail, MCP_FAIL_BUSY);
    assert_int_equal(f->err.code, MCP_CODE_RATE_LIMITED);
    assert_int_equal(mcp_egress_enter(egress, "b", f->pool, &f->err), APR_SUCCESS);
    assert_int_equal(mcp_egress_enter(egress, "c", f->pool, &f->err), MCP_STATUS_REFUSED);
    assert_int_equal(f->err.fail, MCP_FAIL_UNAVAILABLE);
    assert_int_equal(f->err.code, MCP_CODE_OVERLOADED);
    mcp_egress_leave(egress, "a");
    assert_int_equal(mcp_egress_enter(egress, "c", f->pool, NULL), APR_SUCCESS);
    mcp_egress_leave(egress, "b");
    mcp_egress_leave(egress, "c");
    mcp_egress_close(egress);
}

static void options_out_of_range_are_refused(void **state)
{
    fixture_t *f = *state;
    for (int i = 0; i < 6; i++) {
        mcp_egress_options_t options = default_options();
        mcp_egress_t *egress = NULL;
        options.max_calls = i == 0 ? 0 : options.max_calls;
        options.max_per_connection = i == 1 ? 0 : options.max_per_connection;
        options.idle_per_origin = i == 2 ? -1 : options.idle_per_origin;
        options.idle_total = i == 3 ? -1 : options.idle_total;
        options.idle_ms = i == 4 ? INT64_MAX : options.idle_ms;
        options.connect_ms = i == 5 ? 0 : options.connect_ms;
        assert_int_equal(mcp_egress_create(&options, f->pool, &egress, &f->err),
                         MCP_STATUS_REFUSED);
        assert_null(egress);
        assert_int_equal(f->err.fail, MCP_FAIL_INTERNAL);
    }
}

#if defined(__SANITIZE_ADDRESS__)
/* Of the checker's runtime; gcc ships no header for it. */
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

static size_t used_bytes(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return __sanitizer_get_current_allocated_bytes();
#else
    return mallinfo2().uordblks;
#endif
}

static void ten_thousand_requests_leave_no_memory_behind(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(answer_echo);
    apr_pool_t *round;
    assert_int_equal(apr_pool_create(&round, f->pool), APR_SUCCESS);
    size_t before = 0;
    for (int i = 0; i < 10000; i++) {
        ask_t ask = {.method = i % 2 ? "POST" : "GET", .body = "body", .target = "/path"};
        ask.connection = i % 3 ? "a" : "b";
        if (i == 500)
            before = used_bytes();
        assert_int_equal(send_with(f->egress, round, server.port, &ask, &f->answer, &f->err),
                         APR_SUCCESS);
        apr_pool_clear(round);
    }
    size_t after = used_bytes();
    if (after > before + 16384)
        fail_msg("%zu bytes more", after - before);
    assert_int_equal(server.seen->connections, 2);
    server_stop(&server);
}

#define THREADS 16
#define ROUNDS 200

typedef struct worker {
    pthread_t thread;
    mcp_egress_t *egress;
    int port;
    int number;
    int good;
} worker_t;

static void *work(void *data)
{
    worker_t *worker = data;
    apr_pool_t *pool;
    apr_allocator_t *allocator;
    if (apr_allocator_create(&allocator) != APR_SUCCESS ||
        apr_pool_create_ex(&pool, NULL, NULL, allocator) != APR_SUCCESS)
        return NULL;
    apr_allocator_owner_set(allocator, pool);
    for (int i = 0; i < ROUNDS; i++) {
        mcp_response_t answer;
        mcp_err_t err;
        const char *marker = apr_psprintf(pool, "m-%d-%d", worker->number, i);
        ask_t ask = {.method = "POST",
                     .target = apr_pstrcat(pool, "/", marker, NULL),
                     .body = marker,
                     .is_final = 1,
                     .connection = "shared"};
        apr_status_t status = mcp_egress_enter(worker->egress, "shared", pool, &err);
        if (status == APR_SUCCESS) {
            status = send_with(worker->egress, pool, worker->port, &ask, &answer, &err);
            mcp_egress_leave(worker->egress, "shared");
        }
        if (status == APR_SUCCESS &&
            strcmp(answer.body, apr_pstrcat(pool, "/", marker, " ", marker, NULL)) == 0)
            worker->good++;
        apr_pool_clear(pool);
    }
    apr_pool_destroy(pool);
    return NULL;
}

static void answers_of_many_threads_never_cross(void **state)
{
    static worker_t workers[THREADS];
    fixture_t *f = *state;
    server_t server = server_start(answer_echo);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.egress = f->egress, .port = server.port, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    int good = 0;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        good += workers[i].good;
    }
    assert_int_equal(good, THREADS * ROUNDS);
    assert_int_equal(server.seen->requests, THREADS * ROUNDS);
    assert_in_range(server.seen->connections, 1, THREADS);
    server_stop(&server);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(answers_are_judged),
        TEST(a_limit_is_named_and_reached_exactly),
        TEST(whole_answers_of_odd_forms_are_taken),
        TEST(a_silent_upstream_is_left_at_the_deadline),
        TEST(a_name_server_that_is_silent_holds_nobody),
        TEST(a_caller_who_leaves_ends_the_call_within_a_second),
        TEST(places_are_refused_with_their_own_classes),
        TEST(options_out_of_range_are_refused),
        TEST(ten_thousand_requests_leave_no_memory_behind),
        TEST(answers_of_many_threads_never_cross),
    };
    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
