/* Repetition: what is sent again, how long is waited, and that the time of a call holds for all tries. The servers are real ones on the loopback. */
#include "egress_fixture.h"

#include <apr_date.h>

#include "mcp_retry.h"

static void say(int fd, const char *text)
{
    server_write(fd, text, strlen(text));
}

#define BUSY(status, fields) "HTTP/1.1 " status "\r\n" fields "Content-Length: 4\r\n\r\nbusy"
#define FINE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* The nth request of all connections is answered by the marks so far. */
static int nth(void)
{
    return atomic_fetch_add(&server_own_seen->marks, 1) + 1;
}

static int busy_once(int fd, int connection, int request, const char *text)
{
    (void)connection, (void)request, (void)text;
    say(fd, nth() == 1 ? BUSY("503 Service Unavailable", "Retry-After: 1\r\n") : FINE);
    return 1;
}

static int limited_once(int fd, int connection, int request, const char *text)
{
    (void)connection, (void)request, (void)text;
    say(fd, nth() == 1 ? BUSY("429 Too Many Requests", "") : FINE);
    return 1;
}

static int always_busy(int fd, int connection, int request, const char *text)
{
    (void)connection, (void)request, (void)text;
    (void)nth();
    say(fd, BUSY("503 Service Unavailable", ""));
    return 1;
}

static int busy_for_long(int fd, int connection, int request, const char *text)
{
    (void)connection, (void)request, (void)text;
    (void)nth();
    say(fd, BUSY("503 Service Unavailable", "Retry-After: 3600\r\n"));
    return 1;
}

static int broken(int fd, int connection, int request, const char *text)
{
    (void)connection, (void)request, (void)text;
    (void)nth();
    say(fd, BUSY("500 Internal Server Error", "Retry-After: 0\r\n"));
    return 1;
}

typedef struct sent {
    apr_status_t status;
    int tries;
    int64_t ms;
} sent_t;

static sent_t sent(fixture_t *f, int port, const char *method, int64_t timeout_ms, int (*is_gone)(void *))
{
    apr_array_header_t *allow = apr_array_make(f->pool, 1, sizeof(const char *));
    const char *origin = apr_psprintf(f->pool, "http://127.0.0.1:%d", port);
    mcp_request_t request = {.method = method,
                             .url = apr_pstrcat(f->pool, origin, "/", NULL),
                             .headers = apr_array_make(f->pool, 1, sizeof(const char *)),
                             .is_idempotent = strcmp(method, "GET") == 0};
    mcp_egress_limits_t limits = {.timeout_ms = timeout_ms, .max_bytes = BODY_MAX, .connection = "c"};
    int64_t began = test_now_ms();
    sent_t result;

    memset(&f->answer, 0, sizeof f->answer);
    memset(&f->err, 0, sizeof f->err);
    APR_ARRAY_PUSH(allow, const char *) = origin;
    result.status = mcp_retry_send(f->egress, &request, &limits, allow, is_gone, NULL, f->pool, &f->answer,
                                   &result.tries, &f->err);
    result.ms = test_now_ms() - began;
    return result;
}

static void what_changes_nothing_is_sent_again_when_it_is_asked_to_wait(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(busy_once);
    sent_t result = sent(f, server.port, "GET", 20000, NULL);

    assert_answer(f, result.status, 200, "ok");
    assert_int_equal(result.tries, 2);
    assert_int_equal(server.seen->requests, 2);
    assert_true(result.ms >= 1000);
    server_stop(&server);
}

static void without_a_time_it_backs_off(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(limited_once);
    sent_t result = sent(f, server.port, "GET", 20000, NULL);

    assert_answer(f, result.status, 200, "ok");
    assert_int_equal(server.seen->requests, 2);
    assert_true(result.ms >= 200 && result.ms < 5000);
    server_stop(&server);
}

static void what_changes_something_is_sent_once(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(busy_once);
    sent_t result = sent(f, server.port, "POST", 20000, NULL);

    assert_answer(f, result.status, 503, "busy");
    assert_int_equal(server.seen->requests, 1);
    assert_true(result.ms < 1000);
    server_stop(&server);
}

static void tries_end_and_the_last_answer_is_the_result(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(always_busy);
    sent_t result = sent(f, server.port, "GET", 20000, NULL);

    assert_answer(f, result.status, 503, "busy");
    assert_int_equal(result.tries, MCP_RETRY_TRIES);
    assert_int_equal(server.seen->requests, MCP_RETRY_TRIES);
    server_stop(&server);
}

static void a_wait_that_is_too_long_is_left_to_the_caller(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(busy_for_long);
    sent_t result = sent(f, server.port, "GET", 20000, NULL);

    assert_answer(f, result.status, 503, "busy");
    assert_string_equal(f->answer.retry_after, "3600");
    assert_int_equal(server.seen->requests, 1);
    server_stop(&server);
}

static void no_wait_goes_beyond_the_time_of_the_call(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(busy_once);
    sent_t result = sent(f, server.port, "GET", 800, NULL);

    assert_answer(f, result.status, 503, "busy");
    assert_int_equal(server.seen->requests, 1);
    assert_true(result.ms < 1500);
    server_stop(&server);
}

static void other_errors_are_answers(void **state)
{
    fixture_t *f = *state;
    server_t server = server_start(broken);
    sent_t result = sent(f, server.port, "GET", 20000, NULL);

    assert_answer(f, result.status, 500, "busy");
    assert_int_equal(server.seen->requests, 1);
    server_stop(&server);
}

static void who_cannot_be_reached_is_tried_again(void **state)
{
    fixture_t *f = *state;
    sent_t result;
    int port;
    int listener = server_listen(&port);

    (void)close(listener); /* nobody listens there now */
    result = sent(f, port, "GET", 20000, NULL);
    assert_failed(f, result.status, MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_int_equal(result.tries, MCP_RETRY_TRIES);
    result = sent(f, port, "POST", 20000, NULL);
    assert_failed(f, result.status, MCP_CODE_UPSTREAM_UNREACHABLE);
    assert_int_equal(result.tries, 1);
}

static int gone(void *baton)
{
    (void)baton;
    return 1;
}

static void nobody_waits_for_who_has_gone(void **state)
{
    fixture_t *f = *state;
    int port;
    int listener = server_listen(&port);
    sent_t result;

    (void)close(listener);
    result = sent(f, port, "GET", 20000, gone);
    assert_int_equal(result.status, MCP_STATUS_REFUSED);
    assert_int_equal(result.tries, 1);
    assert_true(result.ms < 1000);
}

static void a_time_to_wait_is_seconds_or_a_date(void **state)
{
    apr_time_t now = apr_date_parse_http("Tue, 01 Dec 2026 04:00:00 GMT");
    static const struct {
        const char *value;
        int64_t ms;
    } rows[] = {{"0", 0},
                {"120", 120000},
                {"Tue, 01 Dec 2026 04:00:07 GMT", 7000},
                {"Tue, 01 Dec 2026 03:00:00 GMT", 0},
                {"", -1},
                {"-1", -1},
                {"1.5", -1},
                {"12345678901234567890", -1},
                {"soon", -1}};
    size_t i;

    (void)state;
    assert_int_equal(mcp_retry_after_ms(NULL, now), -1);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (mcp_retry_after_ms(rows[i].value, now) != rows[i].ms)
            fail_msg("\"%s\": %lld", rows[i].value, (long long)mcp_retry_after_ms(rows[i].value, now));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_changes_nothing_is_sent_again_when_it_is_asked_to_wait),
        TEST(without_a_time_it_backs_off),
        TEST(what_changes_something_is_sent_once),
        TEST(tries_end_and_the_last_answer_is_the_result),
        TEST(a_wait_that_is_too_long_is_left_to_the_caller),
        TEST(no_wait_goes_beyond_the_time_of_the_call),
        TEST(other_errors_are_answers),
        TEST(who_cannot_be_reached_is_tried_again),
        TEST(nobody_waits_for_who_has_gone),
        cmocka_unit_test(a_time_to_wait_is_seconds_or_a_date)};

    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
