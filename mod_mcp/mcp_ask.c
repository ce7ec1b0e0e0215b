/* Questions to policyd: see mcp_ask.h. Here: the object, hello and the ring, who a token is, blobs. */
#include "mcp_ask.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "mcp_ask_private.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define RING_MAX_MS                                                                                \
    3600000 /* policyd makes a key the current one only after all children had twice the time to hear of it */

int64_t mcp_ask_now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t mcp_ask_now_ms(void)
{
    return mcp_ask_now_us() / 1000;
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
    body = json_pack("{s:i,s:i,s:s,s:s,s:o,s:i}", "version_min", (int)MCP_VERSION_MIN,
                     "version_max", (int)MCP_VERSION, "software", "mod_mcp/" PACKAGE_VERSION,
                     "child", child, "resources", resources, "max_calls", identity->max_calls);
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
    ask->running = calloc(MCP_ASK_MAX_RUNNING, MCP_ASK_AUDIT_BYTES);
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

apr_status_t mcp_ask_not_understood(mcp_err_t *err, apr_pool_t *pool, const char *log)
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
    static const char *const names[MCP_HELLO_TEXTS] = {"routes", "openapi", "control_prefix",
                                                       "lexicon"};
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

    status = mcp_link_ask(ask->link, MCP_KIND_HELLO, ask->greeting, 0, endpoint, budget_ms, pool,
                          &reply, NULL, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return mcp_ask_not_understood(err, pool, mcp_json_str(reply.body, "message"));
    }
    version = mcp_json_int(reply.body, "version", 0);
    if (version < (json_int_t)MCP_VERSION_MIN || version > (json_int_t)MCP_VERSION) {
        return mcp_ask_not_understood(err, pool, "policyd speaks another version of the protocol");
    }
    status = mcp_seal_ring(json_object_get(reply.body, "keys"), &ring, pool, err);
    if (status != APR_SUCCESS) {
        return mcp_ask_not_understood(err, pool, "policyd's key ring can't be read");
    }
    (void)pthread_mutex_lock(&ask->mutex);
    ask->generation = reply.frame.generation;
    ask->ring = ring;
    ask->greeted_ms = mcp_ask_now_ms();
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

apr_status_t mcp_ask_question_sent(mcp_ask_t *ask, mcp_kind_t kind, const json_t *body,
                                   int endpoint, int64_t budget_ms, apr_pool_t *pool,
                                   mcp_link_reply_t *ret, int *ret_was_sent, mcp_err_t *err)
{
    int64_t until_ms = mcp_ask_now_ms() + budget_ms;
    apr_status_t status = APR_SUCCESS;
    int rounds;

    for (rounds = 0; rounds < 2; rounds++) {
        uint64_t generation = known_generation(ask);

        if (generation == 0) {
            status = hello(ask, endpoint, until_ms - mcp_ask_now_ms(), pool, &generation, &endpoint,
                           err);
        }
        if (status == APR_SUCCESS) {
            status = mcp_link_ask(ask->link, kind, body, generation, endpoint,
                                  until_ms - mcp_ask_now_ms(), pool, ret, ret_was_sent, err);
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
    return mcp_ask_not_understood(err, pool, "policyd restarts again and again");
}

apr_status_t mcp_ask_question(mcp_ask_t *ask, mcp_kind_t kind, const json_t *body, int endpoint,
                              int64_t budget_ms, apr_pool_t *pool, mcp_link_reply_t *ret,
                              mcp_err_t *err)
{
    return mcp_ask_question_sent(ask, kind, body, endpoint, budget_ms, pool, ret, NULL, err);
}

typedef enum ring_state { RING_NONE, RING_OLD, RING_FRESH } ring_state_t;

static ring_state_t ring_state(mcp_ask_t *ask)
{
    ring_state_t state = RING_FRESH;

    (void)pthread_mutex_lock(&ask->mutex);
    if (ask->generation == 0) {
        state = RING_NONE;
    } else if (mcp_ask_now_ms() - ask->greeted_ms >= RING_MAX_MS) {
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
        return mcp_ask_not_understood(
            err, pool, "this policyd has no route table: it is older than this module");
    }
    *ret = text;
    return APR_SUCCESS;
}

apr_status_t mcp_ask_refused(const mcp_link_reply_t *reply, apr_pool_t *pool, mcp_err_t *err)
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
    return mcp_ask_not_understood(err, pool, message);
}

json_t *mcp_ask_who_body(const mcp_who_t *who)
{
    json_t *body = json_pack("{s:s,s:s,s:s}", "token_hash", who->token_hash, "surface",
                             who->surface, "resource", who->resource);

    if (who->client_name != NULL && who->client_name[0] != '\0') {
        json_object_set_new(body, "client",
                            json_pack("{s:s,s:s}", "name", who->client_name, "version",
                                      who->client_version != NULL ? who->client_version : ""));
    }
    return body;
}

apr_status_t mcp_ask_resolve(mcp_ask_t *ask, const mcp_who_t *who, int64_t budget_ms,
                             apr_pool_t *pool, mcp_resolved_t *ret, mcp_err_t *err)
{
    json_t *body = mcp_ask_who_body(who);
    const json_t *search;
    mcp_link_reply_t reply;
    apr_status_t status =
        mcp_ask_question(ask, MCP_KIND_RESOLVE, body, -1, budget_ms, pool, &reply, err);

    json_decref(body);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_ERROR) != 0) {
        return mcp_ask_refused(&reply, pool, err);
    }
    ret->grant = mcp_json_str(reply.body, "grant");
    ret->member = mcp_json_str(reply.body, "member");
    ret->view = mcp_json_str(reply.body, "view");
    ret->may_execute = mcp_json_bool(reply.body, "may_execute");
    ret->scopes = (unsigned)mcp_json_int(reply.body, "scopes", 0);
    ret->collapse = mcp_collapse_rule_of(json_object_get(reply.body, "collapse"));
    search = json_object_get(reply.body, "search");
    ret->unknown_words = mcp_json_str(search, "unknown_words");
    ret->closest = (size_t)mcp_json_int(search, "closest", 0);
    return APR_SUCCESS;
}

/* The part of a blob from *count on, appended to *bytes. */
static apr_status_t blob_part(mcp_ask_t *ask, const char *digest, int64_t budget_ms,
                              apr_pool_t *pool, char **bytes, size_t *count, int *ret_more,
                              mcp_err_t *err)
{
    json_t *body = json_pack("{s:s,s:I}", "digest", digest, "offset", (json_int_t)*count);
    mcp_link_reply_t reply;
    apr_status_t status =
        mcp_ask_question(ask, MCP_KIND_BLOB_GET, body, -1, budget_ms, pool, &reply, err);
    char *grown;

    json_decref(body);
    if (status != APR_SUCCESS) {
        return status;
    }
    if ((reply.frame.flags & MCP_FLAG_RAW) == 0) {
        return mcp_ask_not_understood(err, pool, "policyd does not have a blob that it named");
    }
    if (reply.raw_bytes == 0 || reply.raw_bytes > MCP_MAX_BLOB_BYTES - *count) {
        return mcp_ask_not_understood(err, pool, "a blob is too large, or a part of it is empty");
    }
    grown = realloc(*bytes, *count + reply.raw_bytes);
    if (grown == NULL) {
        return mcp_ask_not_understood(err, pool, "out of memory");
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
    int64_t until_ms = mcp_ask_now_ms() + budget_ms;
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
                     ? blob_part(ask, digest, until_ms - mcp_ask_now_ms(), part, &bytes, &count,
                                 &more, err)
                     : mcp_ask_not_understood(err, pool, "out of memory");
    }
    if (status == APR_SUCCESS) {
        mcp_digest_hex(bytes, count, hex);
        if (strcmp(hex, digest) != 0) {
            status = mcp_ask_not_understood(err, pool, "a blob does not have its hash");
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
