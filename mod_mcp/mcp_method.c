/* The table of methods and the small ones among them: see mcp_method.h. */
#include "mcp_method.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/view_text.h"
#include "mcp_control.h"
#include "mcp_failure.h"
#include "mcp_tools.h"

#define MODERN 1
#define LEGACY 2

typedef apr_status_t method_fn(mcp_turn_t *turn, const mcp_era_t *era,
                               const mcp_rpc_message_t *message, const char **ret, size_t *ret_bytes,
                               mcp_err_t *err);

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Labels of the applications behind the view's tools, each once, sorted. */
static const char *const *applications_of(const mcp_view_t *view, apr_pool_t *pool, size_t *ret_count)
{
    const char **names = apr_palloc(pool, sizeof(*names) * (size_t)(view->count + 1));
    size_t count = 0;
    size_t kept = 0;
    size_t i;
    int k;

    for (k = 0; k < view->count; k++) {
        const char *label = view->tools[k].label;

        if (label != NULL && (count == 0 || names[count - 1] != label)) { /* neighbours share the text */
            names[count++] = label;
        }
    }
    qsort(names, count, sizeof(*names), by_text);
    for (i = 0; i < count; i++) {
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0) {
            names[kept++] = names[i];
        }
    }
    *ret_count = kept;
    return names;
}

/* The endpoint's text for this caller, as JSON, and its sentence about itself, to be quoted as it is. The turn is
 * resolved. */
static apr_status_t instructions(mcp_turn_t *turn, const char **ret, const char **ret_sentence, mcp_err_t *err)
{
    char text[MCP_VIEW_TEXT_MAX];
    const mcp_view_t *view = NULL;
    mcp_view_about_t about;
    apr_status_t status;

    memset(&about, 0, sizeof(about));
    status = mcp_control_prefix(turn, &about.prefix, err);
    if (status == APR_SUCCESS) {
        status = mcp_view_get(turn->child->views, turn->resolved.view, turn->terms->control_prefix,
                              turn->terms->policy_ms, turn->pool, &view, err);
    }
    if (status != APR_SUCCESS) {
        return status;
    }
    about.is_collapsed = mcp_collapse_decide(&view->counts, &turn->resolved.collapse, NULL);
    about.applications = applications_of(view, turn->pool, &about.application_count);
    *ret = mcp_rpc_quote(text, mcp_view_text_instructions(&about, text, sizeof(text)), turn->pool);
    *ret_sentence = mcp_view_text_server(about.is_collapsed);
    return APR_SUCCESS;
}

static apr_status_t discover(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                             const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    const char *told = NULL;
    const char *sentence = NULL;
    apr_status_t status = instructions(turn, &told, &sentence, err);

    (void)era;
    (void)message;
    if (status != APR_SUCCESS) {
        return status;
    }
    *ret = apr_psprintf(turn->pool,
                        "{%s,\"supportedVersions\":%s,\"capabilities\":{\"tools\":{}},\"instructions\":%s,"
                        "\"ttlMs\":3600000,\"cacheScope\":\"private\"}",
                        mcp_failure_described_head(sentence, turn->pool),
                        mcp_era_supported(NULL, !turn->terms->serves_legacy, turn->pool), told);
    *ret_bytes = strlen(*ret);
    return APR_SUCCESS;
}

static apr_status_t ping(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                         const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    (void)turn;
    (void)era;
    (void)message;
    (void)err;
    *ret = "{}";
    *ret_bytes = 2;
    return APR_SUCCESS;
}

/* The session that the handshake opens, sealed whole into its id: any child of any node serves it. */
static apr_status_t open_session(mcp_turn_t *turn, const mcp_era_t *era, const json_t *params,
                                 mcp_err_t *err)
{
    const json_t *client = json_object_get(params, "clientInfo");
    const json_t *capabilities = json_object_get(params, "capabilities");
    char *text = json_is_object(capabilities) ? mcp_json_text(capabilities, NULL) : NULL;
    mcp_session_t session;
    mcp_ring_t ring;
    apr_status_t status =
        mcp_ask_ring(turn->child->ask, turn->terms->policy_ms, turn->pool, &ring, err);

    memset(&session, 0, sizeof(session));
    session.revision = era->revision;
    session.grant = turn->resolved.grant;
    session.client_name = mcp_json_str(client, "name");
    session.client_version = mcp_json_str(client, "version");
    session.capabilities = text != NULL ? apr_pstrdup(turn->pool, text) : "{}";
    session.expires_us = apr_time_now() + turn->terms->session_us;
    free(text);
    if (status == APR_SUCCESS) {
        turn->session_id = mcp_seal_session(&ring, &session, turn->pool);
        mcp_wipe(&ring, sizeof(ring));
    }
    if (status == APR_SUCCESS && turn->session_id == NULL) {
        status = mcp_err_set(err, turn->pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                             "the session can't be opened");
    }
    return status;
}

static apr_status_t initialize(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                               const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    const json_t *asked = json_object_get(message->params, "protocolVersion");
    const char *told = NULL;
    const char *sentence = NULL;
    int is_described;
    apr_status_t status;

    if (!json_is_string(asked)) {
        return mcp_err_set(err, turn->pool, MCP_FAIL_PARAMS, MCP_CODE_NONE, NULL,
                           "initialize needs params.protocolVersion");
    }
    status = instructions(turn, &told, &sentence, err);
    if (status == APR_SUCCESS) {
        status = open_session(turn, era, message->params, err);
    }
    if (status != APR_SUCCESS) {
        return status;
    }
    is_described = era->revision >= MCP_REV_2025_11_25; /* older revisions know no such member */
    *ret = apr_psprintf(
        turn->pool,
        "{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"" MCP_SERVER_NAME
        "\",\"version\":\"" MCP_SERVER_VERSION "\"%s%s%s},\"instructions\":%s}",
        mcp_era_text(era->revision), is_described ? ",\"description\":\"" : "", is_described ? sentence : "",
        is_described ? "\"" : "", told);
    *ret_bytes = strlen(*ret);
    return APR_SUCCESS;
}

/* asks_later: the method's own question to policyd tells who the caller is, so that none is asked twice. */
static const struct {
    const char *name;
    int eras;
    int asks_later;
    method_fn *run;
} methods[] = {
    {"server/discover", MODERN, 0, discover},
    {"initialize", LEGACY, 0, initialize},
    {"ping", LEGACY, 0, ping},
    {"tools/list", MODERN | LEGACY, 0, mcp_tools_list},
    {"tools/call", MODERN | LEGACY, 1, mcp_tools_call},
};

apr_status_t mcp_method_run(mcp_turn_t *turn, const mcp_era_t *era, const mcp_rpc_message_t *message,
                            const char **ret, size_t *ret_bytes, mcp_err_t *err)
{
    int wanted = era->is_modern ? MODERN : LEGACY;
    apr_status_t status;
    size_t i;

    for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if ((methods[i].eras & wanted) == 0 || strcmp(methods[i].name, message->method) != 0) {
            continue;
        }
        status = methods[i].asks_later ? APR_SUCCESS : mcp_turn_resolve(turn, err);
        return status == APR_SUCCESS ? methods[i].run(turn, era, message, ret, ret_bytes, err)
                                     : status;
    }
    status = mcp_turn_resolve(turn, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    return mcp_err_set(err, turn->pool, MCP_FAIL_METHOD, MCP_CODE_NONE, NULL, "Method not found");
}
