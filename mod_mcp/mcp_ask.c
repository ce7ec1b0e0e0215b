/* Questions to policyd: see mcp_ask.h. */
#include "mcp_ask.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define MAX_RUNNING   4096
#define BEAT_BUDGET_MS 200
#define RESEND_PAUSE_US 20000
#define OFFER_MS      1000 /* how long one offer of an outcome waits: a policyd that died with it in hand does not answer */
#define RING_MAX_MS   3600000 /* policyd makes a key the current one only after all children had twice the time to hear of it */
#define AUDIT_BYTES   (MCP_MAX_ID + 1)
#define ENVELOPE_BYTES 8192 /* of op.invoke, around the arguments */

struct mcp_ask {
    mcp_link_t *link;
    char child[33];
    json_t *greeting; /* hello's body; read only */
    pthread_mutex_t mutex; /* guards the rest; never held across I/O */
    uint64_t generation;   /* 0: hello is due */
    mcp_ring_t ring;
    int64_t greeted_ms;    /* when the ring came */
    char texts[MCP_HELLO_TEXTS][MCP_DIGEST_HEX + 1]; /* of the last hello; "": not said */
    int64_t last_beat_ms;  /* 0: never */
    int is_beating;
    int running_count;
    char (*running)[AUDIT_BYTES];
};

/* The boot clock: budgets and durations must not follow a wall clock that is set. */
static int64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t now_ms(void)
{
    return now_us() / 1000;
}

static json_t *greeting(const char *child, const mcp_ask_identity_t *identity)
{
    json_t *resources = json_array();
    json_t *body;
    int i;

    for (i = 0; i < identity->resources->nelts && i < 64; i++) {
        json_array_append_new(resources,
                              json_string(APR_ARRAY_IDX(identity->resources, i, const char *)));
    }
    body = json_pack("{s:i,s:i,s:s,s:s,s:o,s:i}", "version_min", (int)MCP_VERSION_MIN, "version_max",
                     (int)MCP_VERSION, "software", "mod_mcp/" PACKAGE_VERSION, "child", child, "resources",
                     resources, "max_calls", identity->max_calls);
    if (body != NULL && identity->server != NULL) {
        json_object_set_new(body, "server", json_string(identity->server));
        json_object_set_new(body, "server_calls", json_integer(identity->server_calls));
        json_object_set_new(body, "connection_calls", json_integer(identity->connection_calls));
    }
    return body;
}

apr_status_t mcp_ask_create(mcp_link_t *link, const mcp_ask_identity_t *identity, mcp_ask_t **ret)
{
    mcp_ask_t *ask = calloc(1, sizeof(*ask));
    unsigned char id[16];

    if (ask == NULL) {
        return APR_ENOMEM;
    }
    mcp_random(id, sizeof(id));
    mcp_hex(id, sizeof(id), ask->child);
    ask->link = link;
    ask->running = calloc(MAX_RUNNING, AUDIT_BYTES);
    ask->greeting = greeting(ask->child, identity);
    if (ask->running == NULL || ask->greeting == NULL) {
        json_decref(ask->greeting);
        free(ask->running);
        free(ask);
        return APR_ENOMEM;
    }
    (void)pthread_mutex_init(&ask->mutex, NULL); /* default attributes: can't fail on Linux */
    *ret = ask;
    return APR_SUCCESS;
}

void mcp_ask_free(mcp_ask_t **ask)
{
    if (*ask == NULL) {
        return;
    }
    json_decref((*ask)->greeting);
    free((*ask)->running);
    (void)pthread_mutex_destroy(&(*ask)->mutex);
    mcp_wipe(&(*ask)->ring, sizeof((*ask)->ring));
    free(*ask);
    *ask = NULL;
}

static uint64_t known_generation(mcp_ask_t *ask)
{
    uint64_t generation;

    (void)pthread_mutex_lock(&ask->mutex);
    generation = ask->generation;
    (void)pthread_mutex_unlock(&ask->mutex);
    return generation;
}

static apr_status_t not_understood(mcp_err_t *err, apr_pool_t *pool, const char *log)
{
    (void)mcp_err_set(err, pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE,
                      "try again in a moment", "the policy service is not available");
    if (err != NULL) {
        err->log = log;
    }
    return MCP_STATUS_REFUSED;
}

/* Takes over what hello's answer says beside the ring. The mutex is held. */
static void keep_texts(mcp_ask_t *ask, const json_t *body)
{
    static const char *const names[MCP_HELLO_TEXTS] = {"routes", "openapi", "control_prefix"};
    size_t i;

    for (i = 0; i < MCP_HELLO_TEXTS; i++) {
        const char *text = mcp_json_str(body, names[i]);

        (void)apr_cpystrn(ask->texts[i], text != NULL ? text : "", sizeof(ask->texts[i]));
    }
}

/* Hello at `endpoint` (-1: any). The generation of the policyd that answered, and where. */
static apr_status_t hello(mcp_ask_t *ask, int endpoint, int64_t budget_ms, apr_pool_t *pool,
                          uint64_t *ret_generation, int *ret_endpoint, mcp_err_t *err)
{
    mcp_link_reply_t reply;
    mcp_ring_t ring;
    apr_status_t status;
    json_int_t version;

    status = mcp_link_ask(ask->link, MCP_KIND_HELLO, ask->greeting, 0, endpoint, budget_ms, pool, &reply,
                          NULL, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return not_understood(err, pool, mcp_json_str(reply.body, "message"));
    }
    version = mcp_json_int(reply.body, "version", 0);
    if (version < (json_int_t)MCP_VERSION_MIN || version > (json_int_t)MCP_VERSION) {
        return not_understood(err, pool, "policyd speaks another version of the protocol");
    }
    status = mcp_seal_ring(json_object_get(reply.body, "keys"), &ring, pool, err);
    if (status != APR_SUCCESS) {
        return not_understood(err, pool, "policyd's key ring can't be read");
    }
    (void)pthread_mutex_lock(&ask->mutex);
    ask->generation = reply.frame.generation;
    ask->ring = ring;
    ask->greeted_ms = now_ms();
    keep_texts(ask, reply.body);
    (void)pthread_mutex_unlock(&ask->mutex);
    mcp_wipe(&ring, sizeof(ring));
    *ret_generation = reply.frame.generation;
    *ret_endpoint = reply.endpoint;
    return APR_SUCCESS;
}

/* Hello is due again, unless another thread has said it meanwhile. */
static void forget_generation(mcp_ask_t *ask, uint64_t generation)
{
    (void)pthread_mutex_lock(&ask->mutex);
    if (ask->generation == generation) {
        ask->generation = 0;
    }
    (void)pthread_mutex_unlock(&ask->mutex);
}

/* One question with the generation of the day; after hello_required says hello to the policyd that asked for it and asks it once more,
 * which is safe for every kind. ret_was_sent (may be NULL): an answer may be missing to what was done. */
static apr_status_t question_sent(mcp_ask_t *ask, mcp_kind_t kind, const json_t *body, int endpoint,
                                  int64_t budget_ms, apr_pool_t *pool, mcp_link_reply_t *ret,
                                  int *ret_was_sent, mcp_err_t *err)
{
    int64_t until_ms = now_ms() + budget_ms;
    apr_status_t status = APR_SUCCESS;
    int rounds;

    for (rounds = 0; rounds < 2; rounds++) {
        uint64_t generation = known_generation(ask);

        if (generation == 0) {
            status = hello(ask, endpoint, until_ms - now_ms(), pool, &generation, &endpoint, err);
        }
        if (status == APR_SUCCESS) {
            status = mcp_link_ask(ask->link, kind, body, generation, endpoint, until_ms - now_ms(), pool,
                                  ret, ret_was_sent, err);
        }
        if (status != APR_SUCCESS || (ret->frame.flags & MCP_FLAG_ERROR) == 0 ||
            mcp_code_from_text(mcp_json_str(ret->body, "code")) != MCP_CODE_HELLO_REQUIRED) {
            return status;
        }
        forget_generation(ask, generation);
        endpoint = ret->endpoint;
        if (ret_was_sent != NULL) {
            *ret_was_sent = 0; /* nothing was recorded */
        }
    }
    return not_understood(err, pool, "policyd restarts again and again");
}

static apr_status_t question(mcp_ask_t *ask, mcp_kind_t kind, const json_t *body, int endpoint,
                             int64_t budget_ms, apr_pool_t *pool, mcp_link_reply_t *ret,
                             mcp_err_t *err)
{
    return question_sent(ask, kind, body, endpoint, budget_ms, pool, ret, NULL, err);
}

typedef enum ring_state { RING_NONE, RING_OLD, RING_FRESH } ring_state_t;

static ring_state_t ring_state(mcp_ask_t *ask)
{
    ring_state_t state = RING_FRESH;

    (void)pthread_mutex_lock(&ask->mutex);
    if (ask->generation == 0) {
        state = RING_NONE;
    } else if (now_ms() - ask->greeted_ms >= RING_MAX_MS) {
        state = RING_OLD;
    }
    (void)pthread_mutex_unlock(&ask->mutex);
    return state;
}

apr_status_t mcp_ask_ring(mcp_ask_t *ask, int64_t budget_ms, apr_pool_t *pool, mcp_ring_t *ret,
                          mcp_err_t *err)
{
    ring_state_t state = ring_state(ask);

    if (state != RING_FRESH) {
        uint64_t generation = 0;
        int endpoint = -1;
        apr_status_t status = hello(ask, endpoint, budget_ms, pool, &generation, &endpoint,
                                    state == RING_NONE ? err : NULL);

        if (status != APR_SUCCESS && state == RING_NONE) {
            return status; /* an old ring still opens and seals */
        }
    }
    (void)pthread_mutex_lock(&ask->mutex);
    *ret = ask->ring;
    (void)pthread_mutex_unlock(&ask->mutex);
    return APR_SUCCESS;
}

apr_status_t mcp_ask_hello_text(mcp_ask_t *ask, mcp_hello_text_t which, int64_t budget_ms,
                                apr_pool_t *pool, const char **ret, mcp_err_t *err)
{
    const char *text;

    if (known_generation(ask) == 0) {
        uint64_t generation = 0;
        int endpoint = -1;
        apr_status_t status = hello(ask, endpoint, budget_ms, pool, &generation, &endpoint, err);

        if (status != APR_SUCCESS) {
            return status;
        }
    }
    (void)pthread_mutex_lock(&ask->mutex);
    text = apr_pstrdup(pool, ask->texts[which]);
    (void)pthread_mutex_unlock(&ask->mutex);
    if (text[0] == '\0') {
        return not_understood(err, pool, "this policyd has no route table: it is older than this module");
    }
    *ret = text;
    return APR_SUCCESS;
}

/* An error reply as what the client is told. */
static apr_status_t refused(const mcp_link_reply_t *reply, apr_pool_t *pool, mcp_err_t *err)
{
    mcp_code_t code = mcp_code_from_text(mcp_json_str(reply->body, "code"));
    const char *message = mcp_json_str(reply->body, "message");

    if (mcp_code_http(code) == 401) {
        (void)mcp_err_set(err, pool, MCP_FAIL_UNAUTHORIZED, code, NULL, "%s", message);
        if (err != NULL) {
            err->has_credentials = 1;
            err->audit = mcp_json_str(reply->body, "audit");
        }
        return MCP_STATUS_REFUSED;
    }
    return not_understood(err, pool, message);
}

static json_t *who_body(const mcp_who_t *who)
{
    json_t *body = json_pack("{s:s,s:s,s:s}", "token_hash", who->token_hash, "surface", who->surface,
                             "resource", who->resource);

    if (who->client_name != NULL && who->client_name[0] != '\0') {
        json_object_set_new(body, "client",
                            json_pack("{s:s,s:s}", "name", who->client_name, "version",
                                      who->client_version != NULL ? who->client_version : ""));
    }
    return body;
}

apr_status_t mcp_ask_resolve(mcp_ask_t *ask, const mcp_who_t *who, int64_t budget_ms, apr_pool_t *pool,
                             mcp_resolved_t *ret, mcp_err_t *err)
{
    json_t *body = who_body(who);
    mcp_link_reply_t reply;
    apr_status_t status =
        question(ask, MCP_KIND_RESOLVE, body, -1, budget_ms, pool, &reply, err);

    json_decref(body);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return refused(&reply, pool, err);
    }
    ret->grant = mcp_json_str(reply.body, "grant");
    ret->member = mcp_json_str(reply.body, "member");
    ret->view = mcp_json_str(reply.body, "view");
    ret->may_execute = mcp_json_bool(reply.body, "may_execute");
    ret->scopes = (unsigned)mcp_json_int(reply.body, "scopes", 0);
    return APR_SUCCESS;
}

/* The part of a blob from *count on, appended to *bytes. */
static apr_status_t blob_part(mcp_ask_t *ask, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                              char **bytes, size_t *count, int *ret_more, mcp_err_t *err)
{
    json_t *body = json_pack("{s:s,s:I}", "digest", digest, "offset", (json_int_t)*count);
    mcp_link_reply_t reply;
    apr_status_t status =
        question(ask, MCP_KIND_BLOB_GET, body, -1, budget_ms, pool, &reply, err);
    char *grown;

    json_decref(body);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_RAW) == 0) {
        return not_understood(err, pool, "policyd does not have a blob that it named");
    }
    if (reply.raw_bytes == 0 || reply.raw_bytes > MCP_MAX_BLOB_BYTES - *count) {
        return not_understood(err, pool, "a blob is too large, or a part of it is empty");
    }
    grown = realloc(*bytes, *count + reply.raw_bytes);
    if (grown == NULL) {
        return not_understood(err, pool, "out of memory");
    }
    *bytes = grown;
    memcpy(grown + *count, reply.raw, reply.raw_bytes);
    *count += reply.raw_bytes;
    *ret_more = (reply.frame.flags & MCP_FLAG_MORE) != 0;
    return APR_SUCCESS;
}

apr_status_t mcp_ask_blob(mcp_ask_t *ask, const char *digest, int64_t budget_ms, apr_pool_t *pool,
                          char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    int64_t until_ms = now_ms() + budget_ms;
    char hex[MCP_DIGEST_HEX + 1];
    char *bytes = NULL;
    size_t count = 0;
    apr_pool_t *part = NULL;
    apr_status_t status = APR_SUCCESS;
    int more = 1;

    while (more && status == APR_SUCCESS) {
        if (part != NULL) {
            apr_pool_destroy(part); /* a blob has up to 64 parts of 1 MiB */
            part = NULL;
        }
        status = apr_pool_create(&part, pool) == APR_SUCCESS
                     ? blob_part(ask, digest, until_ms - now_ms(), part, &bytes, &count, &more, err)
                     : not_understood(err, pool, "out of memory");
    }
    if (status == APR_SUCCESS) {
        mcp_digest_hex(bytes, count, hex);
        if (strcmp(hex, digest) != 0) {
            status = not_understood(err, pool, "a blob does not have its hash");
        }
    }
    if (status != APR_SUCCESS) {
        free(bytes);
        return status; /* err's texts are of the last part's pool, which goes with `pool` */
    }
    apr_pool_destroy(part);
    *ret = bytes;
    *ret_bytes = count;
    return APR_SUCCESS;
}

/* --- the calls that run ------------------------------------------------------------ */

static void running_add(mcp_ask_t *ask, const char *audit)
{
    (void)pthread_mutex_lock(&ask->mutex);
    if (ask->running_count < MAX_RUNNING) {
        (void)apr_cpystrn(ask->running[ask->running_count++], audit, AUDIT_BYTES);
    }
    (void)pthread_mutex_unlock(&ask->mutex);
}

static void running_remove(mcp_ask_t *ask, const char *audit)
{
    int i;

    (void)pthread_mutex_lock(&ask->mutex);
    for (i = 0; i < ask->running_count; i++) {
        if (strcmp(ask->running[i], audit) == 0) {
            ask->running_count--;
            memcpy(ask->running[i], ask->running[ask->running_count], AUDIT_BYTES);
            break;
        }
    }
    (void)pthread_mutex_unlock(&ask->mutex);
}

static json_t *running_ids(mcp_ask_t *ask)
{
    json_t *ids = json_array();
    int i;

    (void)pthread_mutex_lock(&ask->mutex);
    for (i = 0; i < ask->running_count; i++) {
        json_array_append_new(ids, json_string(ask->running[i]));
    }
    (void)pthread_mutex_unlock(&ask->mutex);
    return ids;
}

void mcp_ask_beat(mcp_ask_t *ask)
{
    mcp_link_reply_t reply;
    apr_pool_t *pool;
    json_t *body;
    int is_due;

    (void)pthread_mutex_lock(&ask->mutex);
    is_due = !ask->is_beating &&
             (ask->last_beat_ms == 0 || now_ms() - ask->last_beat_ms >= MCP_BEAT_MS);
    if (is_due) {
        ask->is_beating = 1;
        ask->last_beat_ms = now_ms();
    }
    (void)pthread_mutex_unlock(&ask->mutex);
    if (!is_due) {
        return;
    }
    if (apr_pool_create(&pool, NULL) == APR_SUCCESS) {
        body = json_pack("{s:s,s:o}", "child", ask->child, "running", running_ids(ask));
        /* a beat that fails is a beat missed: policyd allows for three */
        (void)question(ask, MCP_KIND_CHILD_BEAT, body, -1, BEAT_BUDGET_MS, pool, &reply, NULL);
        json_decref(body);
        apr_pool_destroy(pool);
    }
    (void)pthread_mutex_lock(&ask->mutex);
    ask->is_beating = 0;
    (void)pthread_mutex_unlock(&ask->mutex);
}

/* --- begin and end ------------------------------------------------------------------- */

static unsigned scopes_of(const json_t *names)
{
    unsigned scopes = 0;
    const json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
    {
        scopes |= mcp_scope_from_text(json_string_value(name));
    }
    return scopes;
}

/* Which answer a denial code is, by the classes of mcp_err.h. */
static mcp_fail_t fail_of(mcp_code_t code)
{
    if (code == MCP_CODE_INSUFFICIENT_SCOPE) {
        return MCP_FAIL_SCOPE;
    }
    if (code == MCP_CODE_UNKNOWN_TOOL) {
        return MCP_FAIL_PARAMS;
    }
    if (code == MCP_CODE_RATE_LIMITED) {
        return MCP_FAIL_BUSY;
    }
    if (code == MCP_CODE_OVERLOADED) {
        return MCP_FAIL_UNAVAILABLE;
    }
    return MCP_FAIL_TOOL;
}

static void take_denial(const json_t *denied, const char *audit, const char *tool, apr_pool_t *pool,
                        mcp_err_t *err)
{
    mcp_code_t code = mcp_code_from_text(mcp_json_str(denied, "code"));
    const char *message = mcp_json_str(denied, "message");

    if (code == MCP_CODE_NONE || message == NULL) {
        code = MCP_CODE_INTERNAL;
        message = "the call was refused";
    }
    (void)mcp_err_set(err, pool, fail_of(code), code, mcp_json_str(denied, "hint"),
                      code == MCP_CODE_UNKNOWN_TOOL ? "Unknown tool: %s" : "%s",
                      code == MCP_CODE_UNKNOWN_TOOL ? tool : message);
    err->permission = mcp_json_str(denied, "permission");
    err->scopes = scopes_of(json_object_get(denied, "scopes"));
    err->has_credentials = 1;
    err->audit = audit;
}

/* A plan holds a credential: its strings are overwritten before jansson lets go of them. */
static apr_status_t wipe_plan(void *value)
{
    json_t *auth = json_object_get(value, "auth");
    const char *name;
    json_t *member;

    json_object_foreach(auth, name, member)
    {
        char *text = (char *)(uintptr_t)json_string_value(member);

        if (text != NULL) {
            mcp_wipe(text, json_string_length(member));
        }
    }
    return APR_SUCCESS;
}

apr_status_t mcp_ask_begin(mcp_ask_t *ask, const mcp_who_t *who, const mcp_attempt_t *attempt,
                           int64_t budget_ms, apr_pool_t *pool, mcp_begun_t *ret, mcp_err_t *err)
{
    json_t *body = who_body(who);
    mcp_link_reply_t reply;
    const json_t *denied;
    apr_status_t status;

    json_object_set_new(body, "child", json_string(ask->child));
    json_object_set_new(body, "tool", json_string(attempt->tool));
    json_object_set_new(body, "via", json_string(attempt->via));
    json_object_set_new(body, "arg_names", json_incref(attempt->arg_names));
    json_object_set_new(body, "arg_count", json_integer((json_int_t)attempt->arg_count));
    json_object_set_new(body, "request_bytes", json_integer((json_int_t)attempt->request_bytes));
    json_object_set_new(body, "deadline_ms", json_integer((json_int_t)attempt->deadline_ms));
    if (attempt->trace_id != NULL) {
        json_object_set_new(body, "trace_id", json_string(attempt->trace_id));
    }
    if (attempt->connection != NULL) {
        json_object_set_new(body, "connection", json_string(attempt->connection));
    }
    status = question(ask, MCP_KIND_CALL_BEGIN, body, -1, budget_ms, pool, &reply, err);
    json_decref(body);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return refused(&reply, pool, err);
    }
    memset(ret, 0, sizeof(*ret));
    ret->audit = mcp_json_str(reply.body, "audit");
    ret->endpoint = reply.endpoint;
    ret->began = now_us();
    denied = json_object_get(reply.body, "denied");
    ret->plan = json_object_get(reply.body, "plan");
    if (ret->plan != NULL) {
        /* registered after the body's own cleanup, so it runs before it */
        apr_pool_cleanup_register(pool, ret->plan, wipe_plan, apr_pool_cleanup_null);
    }
    ret->choose = denied == NULL && ret->plan == NULL ? mcp_json_str(reply.body, "choose") : NULL;
    if (ret->choose != NULL) {
        return attempt->connection == NULL
                   ? APR_SUCCESS
                   : not_understood(err, pool, "policyd asks for a choice that it was given");
    }
    if (ret->audit == NULL) {
        return not_understood(err, pool, "policyd decided and names no record");
    }
    if (denied != NULL) {
        take_denial(denied, ret->audit, attempt->tool, pool, &ret->denied);
        ret->plan = NULL;
        return APR_SUCCESS;
    }
    if (ret->plan == NULL) {
        return not_understood(err, pool, "policyd neither denied nor planned");
    }
    running_add(ask, ret->audit);
    return APR_SUCCESS;
}

static json_t *end_body(const mcp_ask_t *ask, const mcp_begun_t *begun, const mcp_ended_t *ended)
{
    json_t *body =
        json_pack("{s:s,s:s,s:s,s:I,s:I,s:I}", "audit", begun->audit, "child", ask->child, "outcome",
                  mcp_outcome_text(ended->outcome), "duration_us",
                  (json_int_t)(now_us() - begun->began), "request_bytes",
                  (json_int_t)ended->request_bytes, "response_bytes", (json_int_t)ended->response_bytes);

    if (ended->code != MCP_CODE_NONE) {
        json_object_set_new(body, "code", json_string(mcp_code_text(ended->code)));
    }
    if (ended->upstream_status != 0) {
        json_object_set_new(body, "upstream_status", json_integer(ended->upstream_status));
    }
    return body;
}

/* What an offered end came to. */
typedef enum offer { OFFER_RECORDED, OFFER_AGAIN, OFFER_NEVER } offer_t;

/* A policyd that is busy, restarting or away may take it later; one that does not know the attempt, or does not understand us, never will. */
static offer_t offer_end(mcp_ask_t *ask, const json_t *body, int endpoint, int64_t budget_ms,
                         apr_pool_t *pool)
{
    mcp_link_reply_t reply;
    apr_status_t status =
        question(ask, MCP_KIND_CALL_END, body, endpoint, budget_ms, pool, &reply, NULL);

    if (status != APR_SUCCESS) {
        return status == MCP_STATUS_CLOSED ? OFFER_NEVER : OFFER_AGAIN;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) == 0) {
        return OFFER_RECORDED;
    }
    switch ((int)mcp_code_from_text(mcp_json_str(reply.body, "code"))) {
    case MCP_CODE_NOT_FOUND:
    case MCP_CODE_MALFORMED:
    case MCP_CODE_TOO_LARGE:
    case MCP_CODE_UNSUPPORTED:
        return OFFER_NEVER;
    default:
        return OFFER_AGAIN;
    }
}

apr_status_t mcp_ask_end(mcp_ask_t *ask, const mcp_begun_t *begun, const mcp_ended_t *ended,
                         int64_t budget_ms, apr_pool_t *pool, mcp_err_t *err)
{
    int64_t until_ms = now_ms() + budget_ms;
    json_t *body = end_body(ask, begun, ended);
    offer_t offer = OFFER_AGAIN;
    apr_pool_t *round = NULL;
    int64_t left_ms;

    if (body == NULL || apr_pool_create(&round, pool) != APR_SUCCESS) {
        offer = OFFER_NEVER;
    }
    while (offer == OFFER_AGAIN && now_ms() < until_ms) {
        apr_pool_clear(round);
        left_ms = until_ms - now_ms();
        offer = offer_end(ask, body, begun->endpoint, left_ms < OFFER_MS ? left_ms : OFFER_MS, round);
        if (offer == OFFER_AGAIN) {
            apr_sleep(RESEND_PAUSE_US);
        }
    }
    if (round != NULL) {
        apr_pool_destroy(round);
    }
    json_decref(body);
    running_remove(ask, begun->audit);
    if (offer == OFFER_RECORDED) {
        return APR_SUCCESS;
    }
    (void)mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_OUTCOME_UNRECORDED,
                      "check the application before you try again",
                      "the call may have been executed but its outcome could not be recorded; do not "
                      "repeat it blindly");
    if (err != NULL) {
        err->audit = begun->audit;
    }
    return MCP_STATUS_REFUSED;
}

/* --- operations ------------------------------------------------------------------------ */

apr_status_t mcp_ask_knock(mcp_ask_t *ask, int64_t budget_ms, apr_pool_t *pool, mcp_err_t *err)
{
    mcp_link_reply_t reply;
    json_t *body = json_pack("{s:s,s:o}", "child", ask->child, "running", running_ids(ask));
    apr_status_t status = question(ask, MCP_KIND_CHILD_BEAT, body, -1, budget_ms, pool, &reply, err);

    json_decref(body);
    return status;
}

/* The class of an operation's refusal; what stands for policyd itself or the way to it is no answer of the operation. */
static mcp_fail_t fail_of_operation(mcp_code_t code)
{
    if (mcp_code_http(code) == 401) {
        return MCP_FAIL_UNAUTHORIZED;
    }
    return code == MCP_CODE_POLICY_UNAVAILABLE ? MCP_FAIL_UNAVAILABLE : fail_of(code);
}

static apr_status_t refused_operation(const mcp_link_reply_t *reply, apr_pool_t *pool, mcp_err_t *err)
{
    mcp_code_t code = mcp_code_from_text(mcp_json_str(reply->body, "code"));

    if (code == MCP_CODE_NONE || code == MCP_CODE_MALFORMED || code == MCP_CODE_UNSUPPORTED ||
        code == MCP_CODE_HELLO_REQUIRED) {
        return not_understood(err, pool, mcp_json_str(reply->body, "message"));
    }
    (void)mcp_err_set(err, pool, fail_of_operation(code), code, mcp_json_str(reply->body, "hint"), "%s",
                      mcp_json_str(reply->body, "message"));
    if (err != NULL) {
        err->has_credentials = 1;
        err->audit = mcp_json_str(reply->body, "audit");
        err->permission = mcp_json_str(reply->body, "permission");
        err->scopes = (unsigned)mcp_json_int(reply->body, "scopes", 0);
    }
    return MCP_STATUS_REFUSED;
}

static apr_status_t no_answer(apr_pool_t *pool, mcp_err_t *err)
{
    (void)mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_OUTCOME_UNRECORDED,
                      "look at the object before you try again",
                      "no answer came: the operation may have been executed; do not repeat it blindly");
    return MCP_STATUS_REFUSED;
}

/* Numbers may grow when they are written anew, so that it is this text that counts. */
static int fits_a_message(const json_t *args)
{
    return json_dumpb(args, NULL, 0, JSON_COMPACT | JSON_REAL_PRECISION(17)) <=
           MCP_MAX_BODY_BYTES - ENVELOPE_BYTES;
}

apr_status_t mcp_ask_invoke(mcp_ask_t *ask, const mcp_who_t *who, const char *op, const json_t *args,
                            const char *trace_id, int64_t budget_ms, apr_pool_t *pool,
                            json_t **ret_result, const char **ret_audit, mcp_err_t *err)
{
    mcp_link_reply_t reply;
    json_t *body;
    int was_sent = 0;
    apr_status_t status;

    if (!fits_a_message(args)) {
        return mcp_err_set(err, pool, MCP_FAIL_TOO_LARGE, MCP_CODE_TOO_LARGE,
                           "use policyctl on policyd's own host",
                           "the arguments are larger than the %u bytes that an operation takes here",
                           MCP_MAX_BODY_BYTES - ENVELOPE_BYTES);
    }
    body = who_body(who);
    json_object_set_new(body, "op", json_string(op));
    json_object_set_new(body, "args", json_incref((json_t *)(uintptr_t)args));
    if (trace_id != NULL) {
        json_object_set_new(body, "trace_id", json_string(trace_id));
    }
    status = question_sent(ask, MCP_KIND_OP_INVOKE, body, -1, budget_ms, pool, &reply, &was_sent, err);
    json_decref(body);
    if (status != APR_SUCCESS) {
        return was_sent ? no_answer(pool, err) : status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return refused_operation(&reply, pool, err);
    }
    *ret_result = json_object_get(reply.body, "result");
    *ret_audit = mcp_json_str(reply.body, "audit");
    return APR_SUCCESS;
}
