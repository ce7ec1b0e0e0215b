/* A small daemon for the tests of operations: the real store in a scratch directory, the real rooms
 * above it, the policy that follows it, and a trail, an audit copy and a bus that only remember what they are told and fail
 * when asked to. */
#ifndef OPS_WORLD_H
#define OPS_WORLD_H

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
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
#include <jansson.h>

#include "../../policyd/pd_blob.h"
#include "../../policyd/pd_control.h"
#include "../../policyd/pd_keys.h"
#include "../../policyd/pd_ops.h"
#include "../../policyd/pd_policy.h"
#include "../../policyd/pd_roles.h"
#include "../../policyd/pd_snapshot.h"
#include "../../policyd/pd_view.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"
#include "../../proto/mcp_kind_text.h"

#define UNUSED __attribute__((unused))

#define WORLD_ROWS 4096
#define WORLD_SECONDS 60 /* watchdog */

typedef struct world_row {
    pd_record_kind_t kind;
    int64_t begin_seq;
    char operation[160], outcome[24], code[40], arg_names[256], detail[256], member[64], grant[64],
        actor[32], surface[16], classification[16], trace[40];
    int64_t arg_count, arg_unknown, revision;
} world_row_t;

static struct {
    apr_pool_t *pool;
    apr_pool_t *scratch; /* actors of one test */
    pd_core_t core;
    pd_config_t config;
    pd_policy_t policy; /* snapshot, views and blobs alone */
    char dir[64];
    sem_t woken;
    world_row_t rows[WORLD_ROWS];
    int64_t seq;
    int fail_begin, fail_end; /* 1: asynchronously, 2: the queue is full */
    int64_t changed;          /* last revision the policy was told of */
    char member_id[64], member_email[256];
    int members_told;
    pd_audit_query_t query; /* last one asked for; texts of the call, compare at once */
    int64_t rows_to_list;
    int is_answered; /* the last ask */
    json_t *reply;
    mcp_code_t refused;
    char refusal[512], refusal_audit[64], refused_permission[64];
    unsigned refused_scopes;
    mcp_code_t code; /* of the last invocation */
    char message[512], hint[512], audit[64];
} world;

/* --- the fakes ------------------------------------------------------------------- */

static void world_copy(char *into, size_t size, const char *text)
{
    (void)snprintf(into, size, "%s", text != NULL ? text : "");
}

pd_status_t pd_trail_append(pd_trail_t *trail, const pd_record_t *record, pd_trail_done_fn *done,
                            void *baton)
{
    int fail = record->kind == PD_RECORD_BEGIN ? world.fail_begin : world.fail_end;
    world_row_t *row;

    (void)trail;
    if (fail == 2) {
        return PD_E_FULL;
    }
    if (fail == 1) {
        done(PD_E_IO, 0, baton);
        return PD_OK;
    }
    assert_true(world.seq + 1 < WORLD_ROWS);
    row = &world.rows[++world.seq];
    memset(row, 0, sizeof(*row));
    row->kind = record->kind;
    row->begin_seq = record->begin_seq;
    world_copy(row->operation, sizeof(row->operation), record->operation);
    world_copy(row->outcome, sizeof(row->outcome), record->outcome);
    world_copy(row->code, sizeof(row->code), record->error_code);
    world_copy(row->arg_names, sizeof(row->arg_names), record->arg_names);
    world_copy(row->detail, sizeof(row->detail), record->detail);
    world_copy(row->member, sizeof(row->member), record->member_id);
    world_copy(row->grant, sizeof(row->grant), record->grant_id);
    world_copy(row->actor, sizeof(row->actor), record->actor);
    world_copy(row->surface, sizeof(row->surface), record->surface);
    world_copy(row->classification, sizeof(row->classification), record->classification);
    world_copy(row->trace, sizeof(row->trace), record->trace_id);
    row->arg_count = record->arg_count;
    row->arg_unknown = record->arg_unknown;
    row->revision = record->revision;
    done(PD_OK, world.seq, baton);
    return PD_OK;
}

void pd_trail_id(const pd_trail_t *trail, int64_t seq, char *buf)
{
    (void)trail;
    (void)snprintf(buf, 48, "1-%lld", (long long)seq);
}

void pd_audit_poke(pd_audit_t *audit)
{
    (void)audit;
}

void pd_audit_member(pd_audit_t *audit, const char *member_id, const char *email, const char *name)
{
    (void)audit;
    (void)name;
    world_copy(world.member_id, sizeof(world.member_id), member_id);
    world_copy(world.member_email, sizeof(world.member_email), email);
    world.members_told++;
}

pd_status_t pd_audit_list(pd_audit_t *audit, const pd_audit_query_t *query, pd_boot_t deadline,
                          json_t **ret)
{
    int64_t i;

    (void)audit;
    (void)deadline;
    world.query = *query;
    *ret = json_array();
    for (i = 0; i < world.rows_to_list && i < query->limit; i++) {
        char id[32];

        (void)snprintf(id, sizeof(id), "1-%lld", (long long)(100 - i));
        json_array_append_new(*ret, json_pack("{s:s}", "audit_id", id));
    }
    return PD_OK;
}

pd_status_t pd_audit_get(pd_audit_t *audit, const char *audit_id, pd_boot_t deadline, json_t **ret)
{
    (void)audit;
    (void)deadline;
    if (strcmp(audit_id, "1-1") != 0) {
        return PD_E_NOT_FOUND;
    }
    *ret = json_pack("{s:s}", "audit_id", audit_id);
    return PD_OK;
}

/* The snapshot follows the store before this returns, as in the daemon. */
static pd_status_t world_follow_unit(pd_tx_t *tx, void *baton)
{
    pd_snapshot_t **made = baton;

    return world.policy.snapshot == NULL ? pd_snapshot_load(tx, made)
                                         : pd_snapshot_follow(tx, world.policy.snapshot, made);
}

static void world_follow_done(pd_status_t status, int64_t revision, void *baton)
{
    pd_snapshot_t **made = baton;

    (void)revision;
    assert_int_equal(status, PD_OK);
    assert_non_null(*made);
    if (world.policy.views != NULL) {
        pd_views_clear(world.policy.views);
    }
    pd_snapshot_free(&world.policy.snapshot);
    world.policy.snapshot = *made;
    *made = NULL;
}

static void world_follow(void)
{
    static pd_snapshot_t *made;

    made = NULL;
    assert_int_equal(pd_store_submit(world.core.store, PD_LANE_LOOP, pd_boot_in(30000),
                                     world_follow_unit, world_follow_done, &made),
                     PD_OK);
    assert_null(made); /* the store answers reads at once */
}

void pd_policy_changed(pd_core_t *core, int64_t revision)
{
    (void)core;
    world.changed = revision;
    world_follow();
}

void pd_keys_tag(const pd_keys_t *keys, const char *text, char out[17])
{
    (void)keys;
    (void)text;
    memcpy(out, "0123456789abcdef", 17);
}

/* The asker goes with its answer, as on the bus. */
static void world_end_ask(pd_ask_t *ask)
{
    json_decref(ask->body);
    apr_pool_destroy(ask->pool);
    memset(ask, 0, sizeof(*ask));
    world.is_answered++;
}

void pd_ask_reply(pd_ask_t *ask, json_t *body)
{
    json_decref(world.reply);
    world.reply = body;
    world_end_ask(ask);
}

/* Nobody asks for a blob here. */
void pd_ask_reply_raw(pd_ask_t *ask, const void *bytes, size_t count, int more)
{
    (void)bytes;
    (void)count;
    (void)more;
    world_end_ask(ask);
}

void pd_ask_refuse(pd_ask_t *ask, mcp_code_t code, const char *message, const char *hint,
                   const char *audit)
{
    (void)hint;
    world.refused = code;
    world_copy(world.refusal, sizeof(world.refusal), message);
    world_copy(world.refusal_audit, sizeof(world.refusal_audit), audit);
    world_end_ask(ask);
}

void pd_ask_refuse_fault(pd_ask_t *ask, const pd_fault_t *fault, const char *audit)
{
    world.refused_scopes = fault->scopes;
    world_copy(world.refused_permission, sizeof(world.refused_permission), fault->permission);
    pd_ask_refuse(ask, fault->code, fault->message, fault->hint[0] != '\0' ? fault->hint : NULL,
                  audit);
}

/* --- life ------------------------------------------------------------------------ */

static void world_wake(void *baton)
{
    (void)baton;
    (void)sem_post(&world.woken);
}

/* Reaps until *flag; the test fails when that takes too long. */
static void world_wait(const int *flag)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WORLD_SECONDS;
    while (!*flag) {
        assert_int_equal(sem_timedwait(&world.woken, &until), 0);
        pd_store_reap(world.core.store);
    }
}

static UNUSED int world_setup(void **state)
{
    char why[512] = "";

    (void)state;
    memset(&world, 0, sizeof(world));
    assert_int_equal(apr_initialize(), APR_SUCCESS);
    assert_int_equal(mcp_hash_init(), MCP_OK);
    assert_int_equal(apr_pool_create(&world.pool, NULL), APR_SUCCESS);
    assert_int_equal(apr_pool_create(&world.scratch, world.pool), APR_SUCCESS);
    assert_int_equal(sem_init(&world.woken, 0, 0), 0);
    (void)snprintf(world.dir, sizeof(world.dir), "%.32s/ops.XXXXXX",
                   getenv("TMPDIR") != NULL && strlen(getenv("TMPDIR")) < 32 ? getenv("TMPDIR")
                                                                             : "/tmp");
    assert_non_null(mkdtemp(world.dir));
    world.config.control_prefix = "elaichi";
    world.config.reserved_labels = apr_array_make(world.pool, 2, sizeof(const char *));
    APR_ARRAY_PUSH(world.config.reserved_labels, const char *) = "elaichi";
    APR_ARRAY_PUSH(world.config.reserved_labels, const char *) = "corp-tools";
    world.config.actors = apr_array_make(world.pool, 2, sizeof(pd_config_actor_t));
    world.core.pool = world.pool;
    world.core.config = &world.config;
    memset(world.core.master_key, 7, sizeof(world.core.master_key));
    if (pd_store_open(world.dir, world_wake, NULL, &world.core.store, why, sizeof(why)) != PD_OK) {
        fail_msg("store: %s", why);
    }
    if (pd_ops_init(world.pool, why, sizeof(why)) != PD_OK) {
        fail_msg("registry: %s", why);
    }
    assert_int_equal(pd_control_make(world.pool), PD_OK);
    assert_int_equal(pd_views_new(&world.policy.views), PD_OK);
    assert_int_equal(pd_blobs_new(&world.policy.blobs), PD_OK);
    world.core.policy = &world.policy;
    world_follow();
    return 0;
}

static UNUSED int world_teardown(void **state)
{
    static const char *const files[] = {"policy.db", "policy.db-wal", "policy.db-shm",
                                        "policyd.lock"};
    size_t i;

    (void)state;
    pd_store_close(&world.core.store);
    pd_views_free(&world.policy.views);
    pd_blobs_free(&world.policy.blobs);
    pd_snapshot_free(&world.policy.snapshot);
    json_decref(world.reply);
    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/%s", world.dir, files[i]);
        (void)unlink(path); /* not every store makes all of them */
    }
    (void)rmdir(world.dir);
    apr_pool_destroy(world.pool);
    (void)sem_destroy(&world.woken);
    apr_terminate();
    return 0;
}

/* --- actors ---------------------------------------------------------------------- */

static UNUSED pd_actor_t *world_actor(mcp_surface_t surface)
{
    pd_actor_t *actor = apr_pcalloc(world.scratch, sizeof(*actor));

    actor->surface = surface;
    actor->roles = "";
    actor->scopes = surface == MCP_SURFACE_ADMIN ? 0xfu : 0;
    return actor;
}

/* root at the admin socket. */
static UNUSED const pd_actor_t *world_root(void)
{
    static const char *const owner[] = {"Owner", NULL};
    pd_actor_t *actor = world_actor(MCP_SURFACE_ADMIN);

    actor->label = "unix:0";
    actor->roles = "Owner";
    actor->role_names = owner;
    actor->is_owner = 1;
    return actor;
}

/* Somebody with exactly these permissions (sorted, NULL-terminated), at the admin socket, no
 * member. */
static UNUSED const pd_actor_t *world_holder(const char *const *permissions)
{
    pd_actor_t *actor = world_actor(MCP_SURFACE_ADMIN);

    actor->label = "unix:1000";
    actor->permissions = permissions;
    return actor;
}

typedef struct world_asked {
    mcp_code_t code;
    pd_actor_t *actor;
    int is_done;
} world_asked_t;

static void world_on_access(mcp_code_t code, const pd_actor_t *actor, void *baton)
{
    world_asked_t *asked = baton;

    asked->code = code;
    asked->actor = actor != NULL ? apr_pmemdup(world.scratch, actor, sizeof(*actor)) : NULL;
    asked->is_done = 1;
}

/* Who has this token, as the endpoint asks. */
static UNUSED mcp_code_t world_access(const char *token, mcp_surface_t surface,
                                      const char *resource, const pd_actor_t **ret)
{
    world_asked_t asked = {MCP_CODE_INTERNAL, NULL, 0};
    char hash[MCP_DIGEST_HEX + 1];

    mcp_token_hash(token, strlen(token), hash);
    pd_access_token(&world.core, apr_pstrdup(world.scratch, hash), surface, resource, NULL,
                    pd_boot_in(30000), world.scratch, world_on_access, &asked);
    world_wait(&asked.is_done);
    if (ret != NULL) {
        *ret = asked.actor;
    }
    return asked.code;
}

/* --- invoking -------------------------------------------------------------------- */

typedef struct world_call {
    json_t *result;
    int is_done;
    apr_pool_t *pool; /* the asker's; goes inside done, as a door's may */
    json_t *args;
} world_call_t;

static void world_on_done(const pd_op_call_t *call, const char *audit_id, void *baton)
{
    world_call_t *made = baton;

    world.code = call->fault.code;
    world_copy(world.message, sizeof(world.message), call->fault.message);
    world_copy(world.hint, sizeof(world.hint), call->fault.hint);
    world_copy(world.audit, sizeof(world.audit), audit_id);
    made->result = json_incref(call->result);
    made->is_done++;
    json_decref(made->args);
    apr_pool_destroy(made->pool);
}

/* Runs an operation; its result (the caller's reference) or NULL with world.code set. args is
 * stolen. */
static UNUSED json_t *world_invoke(const pd_actor_t *actor, const char *name, json_t *args)
{
    const pd_op_t *op = pd_ops_find(name);
    world_call_t made = {NULL, 0, NULL, args};

    assert_non_null(op);
    assert_non_null(args);
    assert_int_equal(apr_pool_create(&made.pool, world.pool), APR_SUCCESS);
    assert_int_equal(pd_invoke(&world.core, op, actor, args, "trace", pd_boot_in(30000), made.pool,
                               world_on_done, &made),
                     PD_OK);
    world_wait(&made.is_done);
    assert_int_equal(made.is_done, 1);
    assert_int_equal(made.result != NULL, world.code == MCP_CODE_NONE);
    return made.result;
}

/* The same, and it has to work. */
static UNUSED json_t *world_do(const pd_actor_t *actor, const char *name, json_t *args)
{
    json_t *result = world_invoke(actor, name, args);

    if (result == NULL) {
        fail_msg("%s: %s: %s", name, mcp_code_text(world.code), world.message);
    }
    return result;
}

/* And without its answer. */
static UNUSED void world_done(const pd_actor_t *actor, const char *name, json_t *args)
{
    json_decref(world_do(actor, name, args));
}

/* The code that a refused operation answers; it must be refused. */
static UNUSED mcp_code_t world_refused(const pd_actor_t *actor, const char *name, json_t *args)
{
    json_t *result = world_invoke(actor, name, args);

    assert_null(result);
    return world.code;
}

/* A text member of a result, copied; the result is let go. */
static UNUSED const char *world_take(json_t *result, const char *member)
{
    const char *text = apr_pstrdup(world.scratch, mcp_json_str(result, member));

    assert_non_null(text);
    json_decref(result);
    return text;
}

/* A document put straight into the store, as no operation would write it. */
typedef struct world_put {
    const char *kind, *id, *owner, *key;
    json_t *doc;
    int is_done;
} world_put_t;

static pd_status_t world_put_unit(pd_tx_t *tx, void *baton)
{
    world_put_t *put = baton;
    const char *keys[2] = {put->key, NULL};
    pd_object_t *there = NULL;
    pd_status_t status = pd_tx_get(tx, put->kind, put->id, &there);

    return status == PD_OK ? pd_tx_update(tx, put->kind, put->id, put->owner, put->doc, keys, 0, NULL)
                           : pd_tx_insert(tx, put->kind, put->id, put->owner, put->doc, keys);
}

static void world_put_done(pd_status_t status, int64_t revision, void *baton)
{
    world_put_t *put = baton;

    (void)revision;
    assert_int_equal(status, PD_OK);
    put->is_done = 1;
}

/* doc is stolen; key may be NULL. The policy follows. */
static UNUSED void world_put(const char *kind, const char *id, const char *owner, const char *key,
                             json_t *doc)
{
    world_put_t put = {kind, id, owner, key, doc, 0};

    assert_non_null(doc);
    assert_int_equal(pd_store_submit(world.core.store, PD_LANE_WRITE, pd_boot_in(30000),
                                     world_put_unit, world_put_done, &put),
                     PD_OK);
    world_wait(&put.is_done);
    world_follow();
    json_decref(doc);
}

#define WORLD_RESOURCE "https://mcp.example.com/mcp"

/* A new member with one role, and an actor who came with a grant of theirs. */
static UNUSED const pd_actor_t *world_member(const char *email, const char *role, const char *scope,
                                             mcp_surface_t surface)
{
    const pd_actor_t *actor = NULL;
    const char *token;

    world_done(world_root(), "members__create",
               json_pack("{s:s, s:[s]}", "email", email, "roles", role));
    token = world_take(
        world_do(world_root(), "grants__create",
                 json_pack("{s:s, s:s, s:s, s:[s, s]}", "member", email, "client", "test",
                           "resource", WORLD_RESOURCE, "scopes", scope, "mcp:tools")),
        "token");
    assert_int_equal(world_access(token, surface, WORLD_RESOURCE, &actor), MCP_CODE_NONE);
    return actor;
}

/* Number of the last row, and the row. */
static UNUSED const world_row_t *world_last(void)
{
    return &world.rows[world.seq];
}

#endif
