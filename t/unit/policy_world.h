/* A daemon for the tests of what the loop decides: the real store, trail and audit copy in a scratch directory, the real rooms above
 * them, clocks that a test can set ahead, and a bus that only remembers what it is told. */
#ifndef POLICY_WORLD_H
#define POLICY_WORLD_H

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <dirent.h>
#include <jansson.h>

#include "../../policyd/pd_access.h"
#include "../../policyd/pd_log.h"
#include "../../policyd/pd_ops.h"
#include "../../policyd/pd_policy.h"
#include "../../policyd/pd_trail_read.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"
#include "../../proto/mcp_kind_text.h"

#define UNUSED         __attribute__((unused))
#define WORLD_SECONDS  60 /* watchdog of one wait */
#define WORLD_RESOURCE "https://mcp.example.com/mcp"

static struct {
    apr_pool_t *pool;
    apr_pool_t *scratch; /* of one test */
    pd_core_t core;
    pd_config_t config;
    char dir[64];
    sem_t woken;
    /* the last ask's end */
    int is_answered;
    json_t *reply; /* NULL: it was refused, or answered with bytes */
    mcp_code_t refused;
    char refusal[512], refusal_hint[512], refusal_audit[64];
    char *raw;
    size_t raw_bytes;
    int raw_more;
    int is_trail_held; /* completions of the trail wait */
    int is_elsewhere; /* writes count as another policyd's: the policy is not told */
    /* the last operation's end */
    mcp_code_t code;
    char message[512];
} world;

/* --- clocks. All of pd_time.h, so that its own file is not linked. The boot clock stands still but for what a test lets pass, so
 * that no slow machine changes what happens; the wall clock runs, from where a test puts it. --- */

static _Atomic int64_t world_boot_us, world_wall_ahead_us, world_noted_us;

static int64_t world_clock_us(clockid_t id)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(id, &now); /* fails for a bad id only */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

pd_wall_t pd_wall_now(void)
{
    return (pd_wall_t){world_clock_us(CLOCK_REALTIME) + atomic_load(&world_wall_ahead_us)};
}

void pd_wall_note(pd_wall_t recorded)
{
    int64_t before = atomic_load(&world_noted_us);

    while (before < recorded.us && !atomic_compare_exchange_weak(&world_noted_us, &before, recorded.us)) {
    }
}

pd_wall_t pd_wall_steady(void)
{
    int64_t now = pd_wall_now().us;
    int64_t noted = atomic_load(&world_noted_us);

    return (pd_wall_t){now < noted ? noted : now};
}

pd_boot_t pd_boot_now(void)
{
    return (pd_boot_t){atomic_load(&world_boot_us)};
}

pd_boot_t pd_boot_in(int64_t ms)
{
    return (pd_boot_t){pd_boot_now().us + ms * 1000}; /* tests keep within a year */
}

int64_t pd_boot_left_ms(pd_boot_t then)
{
    int64_t left = (then.us - pd_boot_now().us + 999) / 1000;

    return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : left;
}

void pd_wall_text(pd_wall_t when, char *buf)
{
    (void)snprintf(buf, 32, "us:%lld", (long long)when.us);
}

/* Time passes for both clocks. No write may be under way: its deadline would pass. */
static UNUSED void world_pass_ms(int64_t ms)
{
    atomic_fetch_add(&world_boot_us, ms * 1000);
    atomic_fetch_add(&world_wall_ahead_us, ms * 1000);
}

/* --- the bus ------------------------------------------------------------------------ */

static void world_copy(char *into, size_t size, const char *text)
{
    (void)snprintf(into, size, "%s", text != NULL ? text : "");
}

/* The asker goes with its answer, as on the bus: whoever looks at it afterwards is found out. */
static void world_end_ask(pd_ask_t *ask)
{
    json_decref(ask->body);
    apr_pool_destroy(ask->pool);
    free(ask);
    world.is_answered++;
}

static void world_forget_answer(void)
{
    json_decref(world.reply);
    free(world.raw);
    world.reply = NULL;
    world.raw = NULL;
    world.raw_bytes = 0;
    world.raw_more = 0;
    world.refused = MCP_CODE_NONE;
    world.refusal[0] = '\0';
    world.refusal_hint[0] = '\0';
    world.refusal_audit[0] = '\0';
}

void pd_ask_reply(pd_ask_t *ask, json_t *body)
{
    size_t count = 0;
    const char *field = NULL;
    const mcp_field_t *table = mcp_body_table(MCP_KIND_REPLY(ask->kind), &count);

    world_forget_answer();
    world.reply = body;
    if (mcp_body_check(body, table, count, &field) != MCP_OK) { /* the real bus would refuse it */
        world.refused = MCP_CODE_INTERNAL;
        world_copy(world.refusal, sizeof(world.refusal), field);
    }
    world_end_ask(ask);
}

void pd_ask_reply_raw(pd_ask_t *ask, const void *bytes, size_t count, int more)
{
    world_forget_answer();
    world.raw = malloc(count + 1);
    if (world.raw != NULL) {
        memcpy(world.raw, bytes, count);
        world.raw[count] = '\0';
    }
    world.raw_bytes = count;
    world.raw_more = more;
    world_end_ask(ask);
}

void pd_ask_refuse(pd_ask_t *ask, mcp_code_t code, const char *message, const char *hint,
                   const char *audit)
{
    world_forget_answer();
    world.refused = code;
    world_copy(world.refusal, sizeof(world.refusal), message);
    world_copy(world.refusal_hint, sizeof(world.refusal_hint), hint);
    world_copy(world.refusal_audit, sizeof(world.refusal_audit), audit);
    world_end_ask(ask);
}

void pd_ask_refuse_fault(pd_ask_t *ask, const pd_fault_t *fault, const char *audit)
{
    pd_ask_refuse(ask, fault->code, fault->message, fault->hint[0] != '\0' ? fault->hint : NULL,
                  audit);
}

/* --- life --------------------------------------------------------------------------- */

static void world_wake(void *baton)
{
    (void)baton;
    (void)sem_post(&world.woken);
}

static void world_reap(void)
{
    if (!world.is_trail_held) {
        pd_trail_reap(world.core.trail);
    }
    pd_store_reap(world.core.store);
}

/* Reaps until *count is not below `wanted`; the test fails when that takes too long. */
static void world_wait_for(const int *count, int wanted)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WORLD_SECONDS;
    while (*count < wanted) {
        while (sem_timedwait(&world.woken, &until) != 0) {
            assert_int_equal(errno, EINTR);
        }
        world_reap();
    }
}

static void world_wait(const int *flag)
{
    world_wait_for(flag, 1);
}

static pd_status_t world_nothing(pd_tx_t *tx, void *baton)
{
    (void)tx;
    (void)baton;
    return PD_OK;
}

static void world_on_nothing(pd_status_t status, int64_t revision, void *baton)
{
    (void)status;
    (void)revision;
    *(int *)baton = 1;
}

/* Lets the writes that were submitted so far end: the writer works in order. */
static UNUSED void world_settle(void)
{
    int is_done = 0;

    assert_int_equal(pd_store_submit(world.core.store, PD_LANE_WRITE, pd_boot_in(30000), world_nothing,
                                     world_on_nothing, &is_done),
                     PD_OK);
    world_wait(&is_done);
}

static void world_open(void)
{
    char why[512] = "";

    if (pd_store_open(world.dir, world_wake, NULL, &world.core.store, why, sizeof(why)) != PD_OK ||
        pd_trail_open(world.dir, world_wake, NULL, &world.core.trail, why, sizeof(why)) != PD_OK ||
        pd_audit_open(world.dir, -1, world.core.trail, &world.core.audit, why, sizeof(why)) !=
            PD_OK) {
        fail_msg("stores: %s", why);
    }
    do {
        mcp_random(&world.core.generation, sizeof(world.core.generation));
    } while (world.core.generation == 0);
    if (pd_policy_new(&world.core, why, sizeof(why)) != PD_OK) {
        fail_msg("policy: %s", why);
    }
    world_settle(); /* the ring's first key */
}

/* In the order of policyd's own end; what is under way ends first. */
static void world_close(void)
{
    pd_store_stop(world.core.store);
    pd_trail_stop(world.core.trail);
    pd_audit_close(&world.core.audit);
    pd_trail_close(&world.core.trail);
    pd_store_close(&world.core.store);
    pd_policy_free(&world.core);
}

static UNUSED void world_restart(void)
{
    world_close();
    world_open();
}

static UNUSED int world_setup(void **state)
{
    char why[512] = "";

    (void)state;
    memset(&world, 0, sizeof(world));
    atomic_store(&world_boot_us, world_clock_us(CLOCK_BOOTTIME));
    atomic_store(&world_wall_ahead_us, 0);
    atomic_store(&world_noted_us, 0);
    pd_log_open(0, PD_LOG_ERR);
    assert_int_equal(apr_initialize(), APR_SUCCESS);
    assert_int_equal(mcp_hash_init(), MCP_OK);
    assert_int_equal(apr_pool_create(&world.pool, NULL), APR_SUCCESS);
    assert_int_equal(apr_pool_create(&world.scratch, world.pool), APR_SUCCESS);
    assert_int_equal(sem_init(&world.woken, 0, 0), 0);
    (void)snprintf(world.dir, sizeof(world.dir), "%.32s/policy.XXXXXX",
                   getenv("TMPDIR") != NULL && strlen(getenv("TMPDIR")) < 32 ? getenv("TMPDIR")
                                                                             : "/tmp");
    assert_non_null(mkdtemp(world.dir));
    world.config.control_prefix = "elaichi";
    world.config.reserved_labels = apr_array_make(world.pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(world.config.reserved_labels, const char *) = "elaichi";
    world.config.actors = apr_array_make(world.pool, 2, sizeof(pd_config_actor_t));
    world.core.pool = world.pool;
    world.core.config = &world.config;
    memset(world.core.master_key, 7, sizeof(world.core.master_key));
    if (pd_ops_init(world.pool, why, sizeof(why)) != PD_OK) {
        fail_msg("registry: %s", why);
    }
    world_open();
    return 0;
}

static UNUSED int world_teardown(void **state)
{
    DIR *dir;
    struct dirent *entry;

    (void)state;
    world_close();
    world_forget_answer();
    dir = opendir(world.dir);
    for (entry = dir != NULL ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
        char path[512];

        (void)snprintf(path, sizeof(path), "%s/%.255s", world.dir, entry->d_name);
        (void)unlink(path); /* "." and ".." stay */
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    (void)rmdir(world.dir);
    apr_pool_destroy(world.pool);
    (void)sem_destroy(&world.woken);
    apr_terminate();
    return 0;
}

/* --- units --------------------------------------------------------------------------- */

typedef struct world_unit {
    pd_status_t (*run)(pd_tx_t *tx, void *baton);
    void *baton;
    pd_status_t status;
    int64_t revision;
    int is_done;
} world_unit_t;

static pd_status_t world_unit_run(pd_tx_t *tx, void *baton)
{
    const world_unit_t *unit = baton;

    return unit->run(tx, unit->baton);
}

static void world_unit_done(pd_status_t status, int64_t revision, void *baton)
{
    world_unit_t *unit = baton;

    unit->status = status;
    unit->revision = revision;
    unit->is_done = 1;
}

/* Runs a unit to its end; after a write the policy follows, as after an operation's, unless it is one made elsewhere. */
static UNUSED pd_status_t world_unit(pd_lane_t lane, pd_unit_fn *run, void *baton)
{
    world_unit_t unit = {run, baton, PD_E_INTERNAL, 0, 0};

    assert_int_equal(pd_store_submit(world.core.store, lane, pd_boot_in(30000), world_unit_run,
                                     world_unit_done, &unit),
                     PD_OK);
    world_wait(&unit.is_done);
    if (lane == PD_LANE_WRITE && unit.status == PD_OK && !world.is_elsewhere) {
        pd_policy_changed(&world.core, unit.revision);
    }
    return unit.status;
}

/* --- operations ------------------------------------------------------------------------ */

typedef struct world_call {
    json_t *result;
    int is_done;
} world_call_t;

static void world_on_done(const pd_op_call_t *call, const char *audit_id, void *baton)
{
    world_call_t *made = baton;

    (void)audit_id;
    world.code = call->fault.code;
    world_copy(world.message, sizeof(world.message), call->fault.message);
    made->result = json_incref(call->result);
    made->is_done = 1;
}

/* Runs an operation as root at the admin socket; its result (the caller's reference) or NULL with world.code set. args: stolen. */
static UNUSED json_t *world_try(const char *name, json_t *args)
{
    static const char *const owner[] = {"Owner", NULL};
    pd_actor_t actor = {.label = "unix:0", .roles = "Owner", .role_names = owner, .is_owner = 1,
                        .surface = MCP_SURFACE_ADMIN, .scopes = 15};
    const pd_op_t *op = pd_ops_find(name);
    world_call_t made = {NULL, 0};

    assert_non_null(op);
    assert_non_null(args);
    assert_int_equal(pd_invoke(&world.core, op, &actor, args, NULL, pd_boot_in(30000), world.scratch,
                               world_on_done, &made),
                     PD_OK);
    world_wait(&made.is_done);
    json_decref(args);
    return made.result;
}

/* The same, and it has to work. */
static UNUSED json_t *world_do(const char *name, json_t *args)
{
    json_t *result = world_try(name, args);

    if (result == NULL) {
        fail_msg("%s: %s: %s", name, mcp_code_text(world.code), world.message);
    }
    return result;
}

/* And one text member of its answer. */
static UNUSED const char *world_make(const char *name, const char *member, json_t *args)
{
    json_t *result = world_do(name, args);
    const char *text = apr_pstrdup(world.scratch, mcp_json_str(result, member));

    assert_non_null(text);
    json_decref(result);
    return text;
}

static UNUSED void world_done(const char *name, json_t *args)
{
    json_decref(world_do(name, args));
}

static UNUSED const char *world_member(const char *email, const char *role)
{
    return world_make("members__create", "member",
                      json_pack("{s:s,s:[s]}", "email", email, "roles", role));
}

/* The token hash of a new grant. scopes: array, stolen. */
static UNUSED const char *world_grant(const char *member, json_t *scopes, const char **ret_grant)
{
    json_t *result = world_do("grants__create",
                              json_pack("{s:s,s:s,s:s,s:o}", "member", member, "client", "test",
                                        "resource", WORLD_RESOURCE, "scopes", scopes));
    const char *token = mcp_json_str(result, "token");
    char hash[MCP_DIGEST_HEX + 1];

    assert_non_null(token);
    mcp_token_hash(token, strlen(token), hash);
    if (ret_grant != NULL) {
        *ret_grant = apr_pstrdup(world.scratch, mcp_json_str(result, "grant"));
    }
    json_decref(result);
    return apr_pstrdup(world.scratch, hash);
}

/* --- asking ------------------------------------------------------------------------------ */

/* A question as the bus hands it over; its answer is in `world` afterwards. body: stolen. */
static UNUSED pd_ask_t *world_ask_new(mcp_kind_t kind, json_t *body)
{
    pd_ask_t *ask = calloc(1, sizeof(*ask));
    size_t count = 0;
    const mcp_field_t *table = mcp_body_table((uint16_t)kind, &count);
    const char *field = NULL;

    assert_non_null(ask);
    assert_non_null(body);
    if (mcp_body_check(body, table, count, &field) != MCP_OK) {
        fail_msg("the test's own question breaks the protocol at %s", field != NULL ? field : "?");
    }
    assert_int_equal(apr_pool_create(&ask->pool, NULL), APR_SUCCESS);
    ask->core = &world.core;
    ask->kind = (uint16_t)kind;
    ask->body = body;
    ask->deadline = pd_boot_in(30000);
    return ask;
}

static UNUSED void world_ask(mcp_kind_t kind, void (*handler)(pd_ask_t *), json_t *body)
{
    int before = world.is_answered;

    handler(world_ask_new(kind, body));
    world_wait_for(&world.is_answered, before + 1);
    assert_int_equal(world.is_answered, before + 1);
}

/* --- the trail ------------------------------------------------------------------------------ */

/* A record as it stands, its texts in world.scratch. */
typedef struct world_rows {
    pd_record_t *rows;
    int count;
    int room;
} world_rows_t;

static pd_status_t world_take_row(const pd_record_t *record, void *baton)
{
    world_rows_t *rows = baton;
    pd_record_t *row = &rows->rows[rows->count++];

    *row = *record;
#define WORLD_DUP(name) row->name = record->name != NULL ? apr_pstrdup(world.scratch, record->name) : NULL;
    PD_TRAIL_TEXTS(WORLD_DUP, WORLD_DUP)
#undef WORLD_DUP
    return PD_OK;
}

/* Records after seq `after`. */
static UNUSED world_rows_t world_rows(int64_t after)
{
    world_rows_t rows = {NULL, 0, 2000};
    pd_trail_reader_t *reader = NULL;
    int count = 0;

    rows.rows = apr_pcalloc(world.scratch, sizeof(*rows.rows) * (size_t)rows.room);
    assert_int_equal(pd_trail_read_open(world.dir, &reader), PD_OK);
    assert_int_equal(pd_trail_read_after(reader, after, rows.room, world_take_row, &rows, &count),
                     PD_OK);
    pd_trail_read_close(&reader);
    return rows;
}

/* The last record there is. */
static UNUSED pd_record_t world_last_row(void)
{
    world_rows_t rows = world_rows(pd_trail_head(world.core.trail) - 1);

    assert_int_equal(rows.count, 1);
    return rows.rows[0];
}

static UNUSED int64_t world_head(void)
{
    return pd_trail_head(world.core.trail);
}

#endif
