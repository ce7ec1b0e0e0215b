/* Load on the link alone: threads that ask policyd through the module's own rooms, without httpd, HTTP or an
 * upstream.  `resolve` is one round trip a turn, `call` a begin and its end, two round trips and two durable
 * records.  `views` resolves every token of a file once, each for the first time, and then all of them again and again, by one
 * thread: what a view costs to make and what it costs when it is there.  A token whose view another one had before is no first
 * time.  Where BENCH_PID is policyd's, the CPU time of its main thread stands beside the times: other programs take from the
 * one and not from the other.  One JSON object on standard output; any answer but the expected one ends it with status 1.
 *
 *   link_bench resolve|call ENDPOINT KEYFILE RESOURCE TOOL THREADS SECONDS     (token: BENCH_TOKEN)
 *   link_bench views ENDPOINT KEYFILE RESOURCE TOKENFILE 1 SECONDS */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <apr_general.h>
#include <apr_hash.h>
#include <apr_strings.h>

#include "mod_mcp/mcp_link.h"
#include "proto/mcp_body.h"
#include "proto/mcp_hash.h"

#define BUDGET_MS   10000
#define BUCKETS     200000 /* of a microsecond; slower turns count as the last */
#define THREADS_MAX 256
#define KEYS_MAX    4096

typedef struct plan {
    mcp_link_t *link;
    const char *resource;
    const char *tool;
    int is_call;
    int64_t until_us;
    char token_hash[MCP_DIGEST_HEX + 1];
    char child[33];
} plan_t;

typedef struct worker {
    pthread_t thread;
    const plan_t *plan;
    apr_pool_t *pool;
    uint64_t turns;
    const char *failed; /* NULL: all well */
    uint32_t *buckets;
} worker_t;

static atomic_int is_over;

static int64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* fails for a bad id only */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* One round trip; the reply's body, or NULL and why. The question is stolen. */
static const json_t *ask(worker_t *worker, mcp_kind_t kind, json_t *question)
{
    mcp_link_reply_t reply;
    mcp_err_t err;
    apr_status_t status;

    memset(&reply, 0, sizeof(reply));
    memset(&err, 0, sizeof(err));
    status = mcp_link_ask(worker->plan->link, kind, question, 0, -1, BUDGET_MS, worker->pool, &reply,
                          NULL, &err);
    json_decref(question);
    if (status != APR_SUCCESS) {
        worker->failed = err.log != NULL ? strdup(err.log) : "no answer";
        return NULL;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        worker->failed = strdup(mcp_json_str(reply.body, "message"));
        return NULL;
    }
    return reply.body;
}

static json_t *who(const plan_t *plan)
{
    return json_pack("{s:s,s:s,s:s}", "token_hash", plan->token_hash, "surface", "mcp", "resource",
                     plan->resource);
}

/* A call is for children alone that have introduced themselves. */
static int say_hello(const plan_t *plan, apr_pool_t *pool)
{
    worker_t worker;

    memset(&worker, 0, sizeof(worker));
    worker.plan = plan;
    worker.pool = pool;
    if (ask(&worker, MCP_KIND_HELLO,
            json_pack("{s:i,s:i,s:s,s:s,s:[s]}", "version_min", (int)MCP_VERSION_MIN, "version_max",
                      (int)MCP_VERSION, "software", "link_bench", "child", plan->child, "resources",
                      plan->resource)) == NULL) {
        (void)fprintf(stderr, "link_bench: %s\n", worker.failed);
        return 0;
    }
    return 1;
}

static int resolve_once(worker_t *worker)
{
    return ask(worker, MCP_KIND_RESOLVE, who(worker->plan)) != NULL;
}

static int call_once(worker_t *worker)
{
    const plan_t *plan = worker->plan;
    json_t *begin = who(plan);
    const json_t *begun;
    const char *audit;

    (void)json_object_set_new(begin, "child", json_string(plan->child));
    (void)json_object_set_new(begin, "tool", json_string(plan->tool));
    (void)json_object_set_new(begin, "via", json_string("direct"));
    (void)json_object_set_new(begin, "arg_names", json_pack("[s]", "path"));
    (void)json_object_set_new(begin, "arg_count", json_integer(1));
    (void)json_object_set_new(begin, "deadline_ms", json_integer(60000));
    begun = ask(worker, MCP_KIND_CALL_BEGIN, begin);
    if (begun == NULL) {
        return 0;
    }
    audit = mcp_json_str(begun, "audit");
    if (audit == NULL || json_object_get(begun, "plan") == NULL) {
        worker->failed = "the call was denied";
        return 0;
    }
    return ask(worker, MCP_KIND_CALL_END,
               json_pack("{s:s,s:s,s:s,s:i,s:i}", "audit", audit, "child", plan->child, "outcome", "ok",
                         "duration_us", 1000, "response_bytes", 6)) != NULL;
}

static void *run(void *baton)
{
    worker_t *worker = baton;
    int64_t at_us = now_us();

    while (worker->failed == NULL && at_us < worker->plan->until_us && !atomic_load(&is_over)) {
        int is_good = worker->plan->is_call ? call_once(worker) : resolve_once(worker);
        int64_t after_us = now_us();
        int64_t took_us = after_us - at_us;

        if (is_good) {
            worker->buckets[took_us < BUCKETS ? took_us : BUCKETS - 1]++;
            worker->turns++;
        } else {
            atomic_store(&is_over, 1);
        }
        at_us = after_us;
        apr_pool_clear(worker->pool);
    }
    return NULL;
}

static int64_t percentile(const uint64_t *buckets, uint64_t turns, uint64_t percent)
{
    uint64_t sought = turns * percent / 100;
    uint64_t seen = 0;
    int64_t i;

    for (i = 0; i < BUCKETS - 1; i++) {
        seen += buckets[i];
        if (seen > sought) {
            break;
        }
    }
    return i;
}

/* What a pass measures: microseconds of each turn, and of policyd's main thread meanwhile. */
typedef struct times {
    uint64_t turns;
    uint64_t all[BUCKETS];
    uint64_t cpu[BUCKETS];
} times_t;

typedef struct passing {
    worker_t *worker;
    plan_t *plan;
    FILE *tokens;
    int cpu_fd;       /* schedstat of policyd's main thread, or -1 */
    apr_hash_t *seen; /* digests of views */
} passing_t;

static void count_time(uint64_t *buckets, int64_t us)
{
    buckets[us < 0 ? 0 : us < BUCKETS ? us : BUCKETS - 1]++;
}

static int64_t cpu_us(const passing_t *passing)
{
    char text[64];
    ssize_t bytes = passing->cpu_fd >= 0 ? pread(passing->cpu_fd, text, sizeof(text) - 1, 0) : -1;

    if (bytes <= 0) {
        return 0;
    }
    text[bytes] = '\0';
    return strtoll(text, NULL, 10) / 1000;
}

/* 1 when no answer named the view before. */
static int is_new_view(const passing_t *passing, const json_t *answer)
{
    const char *view = mcp_json_str(answer, "view");
    apr_pool_t *pool = apr_hash_pool_get(passing->seen);

    if (view == NULL || apr_hash_get(passing->seen, view, APR_HASH_KEY_STRING) != NULL) {
        return 0;
    }
    view = apr_pstrdup(pool, view);
    apr_hash_set(passing->seen, view, APR_HASH_KEY_STRING, view);
    return 1;
}

/* One token after the other, as long as the file has lines. What policyd does after its answer belongs to the turn too, so its CPU
 * time is read at the beginning of turns alone. */
static int pass(passing_t *passing, times_t *fresh, times_t *known)
{
    worker_t *worker = passing->worker;
    char line[256];
    times_t *of = NULL;
    int64_t cpu = 0;

    rewind(passing->tokens);
    while (fgets(line, sizeof(line), passing->tokens) != NULL) {
        int64_t cpu_before = cpu_us(passing);
        const json_t *answer;
        int64_t from_us;
        int64_t took_us;

        if (of != NULL) {
            count_time(of->cpu, cpu_before - cpu);
        }
        mcp_token_hash(line, strcspn(line, "\n"), passing->plan->token_hash);
        from_us = now_us();
        answer = ask(worker, MCP_KIND_RESOLVE, who(passing->plan));
        took_us = now_us() - from_us;
        if (answer == NULL) {
            (void)fprintf(stderr, "link_bench: %s\n", worker->failed);
            return 0;
        }
        of = is_new_view(passing, answer) ? fresh : known;
        cpu = cpu_before;
        count_time(of->all, took_us);
        of->turns++;
        apr_pool_clear(worker->pool);
    }
    if (of != NULL) {
        count_time(of->cpu, cpu_us(passing) - cpu);
    }
    return 1;
}

static void print_times(const char *name, const times_t *times)
{
    (void)printf(",\"%s_p50_us\":%" PRId64 ",\"%s_p99_us\":%" PRId64 ",\"%s_cpu_us\":%" PRId64, name,
                 percentile(times->all, times->turns, 50), name,
                 percentile(times->all, times->turns, 99), name,
                 percentile(times->cpu, times->turns, 50));
}

static int views(plan_t *plan, const char *file, int seconds, apr_pool_t *pool)
{
    static times_t first;
    static times_t shared;
    static times_t again;
    const char *pid = getenv("BENCH_PID");
    int64_t until_us = 0;
    worker_t worker;
    passing_t passing = {&worker, plan, fopen(file, "r"), -1, apr_hash_make(pool)};
    int is_good;

    memset(&worker, 0, sizeof(worker));
    worker.plan = plan;
    if (passing.tokens == NULL || apr_pool_create(&worker.pool, pool) != APR_SUCCESS) {
        (void)fprintf(stderr, "link_bench: %s can't be read\n", file);
        return 1;
    }
    if (pid != NULL) {
        passing.cpu_fd = open(apr_pstrcat(pool, "/proc/", pid, "/schedstat", NULL), O_RDONLY | O_CLOEXEC);
    }
    is_good = pass(&passing, &first, &shared);
    until_us = now_us() + (int64_t)seconds * 1000000;
    while (is_good && now_us() < until_us) {
        is_good = pass(&passing, &again, &again);
    }
    (void)fclose(passing.tokens); /* it was only read */
    (void)printf("{\"tokens\":%" PRIu64 ",\"views\":%" PRIu64, first.turns + shared.turns, first.turns);
    print_times("first", &first);
    print_times("again", &again);
    (void)printf("}\n");
    return is_good ? 0 : 1;
}

static mcp_link_t *open_link(const char *endpoint, const char *key_file, int threads, apr_pool_t *pool)
{
    apr_array_header_t *endpoints = apr_array_make(pool, 1, sizeof(const char *));
    char text[KEYS_MAX];
    FILE *in = fopen(key_file, "rb");
    size_t bytes = in != NULL ? fread(text, 1, sizeof(text), in) : 0;
    mcp_link_keys_t keys;
    mcp_link_t *link = NULL;
    mcp_err_t err;

    if (in != NULL) {
        (void)fclose(in); /* it was only read */
    }
    memset(&err, 0, sizeof(err));
    APR_ARRAY_PUSH(endpoints, const char *) = endpoint;
    if (mcp_link_parse_keys(text, bytes, &keys, pool, &err) != APR_SUCCESS ||
        mcp_link_create(endpoints, &keys, threads, pool, &link, &err) != APR_SUCCESS) {
        (void)fprintf(stderr, "link_bench: %s\n", err.message != NULL ? err.message : "no link");
        return NULL;
    }
    return link;
}

/* Lets the workers run and adds up what they did; 0 when one of them failed. */
static int measure(const plan_t *plan, worker_t *workers, int threads, uint64_t *ret_turns,
                   uint64_t *buckets)
{
    int is_good = 1;
    int i, k;

    for (i = 0; i < threads; i++) {
        workers[i].plan = plan;
        workers[i].buckets = calloc(BUCKETS, sizeof(*workers[i].buckets));
        if (workers[i].buckets == NULL || apr_pool_create(&workers[i].pool, NULL) != APR_SUCCESS ||
            pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0) {
            (void)fprintf(stderr, "link_bench: no memory or thread\n");
            exit(1);
        }
    }
    for (i = 0; i < threads; i++) {
        (void)pthread_join(workers[i].thread, NULL); /* started above, joined once */
        if (workers[i].failed != NULL) {
            (void)fprintf(stderr, "link_bench: %s\n", workers[i].failed);
            is_good = 0;
        }
        *ret_turns += workers[i].turns;
        for (k = 0; k < BUCKETS; k++) {
            buckets[k] += workers[i].buckets[k];
        }
    }
    return is_good;
}

int main(int argc, char **argv)
{
    static worker_t workers[THREADS_MAX];
    static uint64_t buckets[BUCKETS];
    const char *token = getenv("BENCH_TOKEN");
    unsigned char id[16];
    apr_pool_t *pool = NULL;
    uint64_t turns = 0;
    plan_t plan;
    int64_t from_us;
    int threads, seconds;

    memset(&plan, 0, sizeof(plan));
    threads = argc == 8 ? (int)strtol(argv[6], NULL, 10) : 0;
    seconds = argc == 8 ? (int)strtol(argv[7], NULL, 10) : 0;
    if (threads < 1 || threads > THREADS_MAX || seconds < 1 ||
        (token == NULL && strcmp(argv[1], "views") != 0)) {
        (void)fprintf(stderr, "usage: BENCH_TOKEN=... link_bench resolve|call|views ENDPOINT KEYFILE "
                              "RESOURCE TOOL|TOKENFILE THREADS SECONDS\n");
        return 2;
    }
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS ||
        mcp_hash_init() != MCP_OK) {
        return 1;
    }
    plan.link = open_link(argv[2], argv[3], threads, pool);
    if (plan.link == NULL) {
        return 1;
    }
    plan.resource = argv[4];
    plan.tool = argv[5];
    plan.is_call = strcmp(argv[1], "call") == 0;
    if (token != NULL) {
        mcp_token_hash(token, strlen(token), plan.token_hash);
    }
    mcp_random(id, sizeof(id));
    mcp_hex(id, sizeof(id), plan.child);
    if (!say_hello(&plan, pool)) {
        return 1;
    }
    if (strcmp(argv[1], "views") == 0) {
        return views(&plan, argv[5], seconds, pool);
    }
    from_us = now_us();
    plan.until_us = from_us + (int64_t)seconds * 1000000;
    if (!measure(&plan, workers, threads, &turns, buckets)) {
        return 1;
    }
    (void)printf("{\"turns\":%" PRIu64 ",\"round_trips\":%" PRIu64 ",\"us\":%" PRId64
                 ",\"p50_us\":%" PRId64 ",\"p99_us\":%" PRId64 "}\n",
                 turns, plan.is_call ? 2 * turns : turns, now_us() - from_us,
                 percentile(buckets, turns, 50), percentile(buckets, turns, 99));
    return 0;
}
