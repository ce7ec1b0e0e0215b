/* The era classifier: which revision a message speaks, and whether a modern one carries what it has
 * to.  The order of the checks is that of the digest (1.1, 2.2): the earliest that fails
 * answers. */
#include "mcp_era.h"

#include <string.h>

#include <apr_strings.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    mcp_revision_t revision;
    const char *text;
} revisions[] = {
    /* newest first: `supported` is written in this order */
    {MCP_REV_2026_07_28, "2026-07-28"},
    {MCP_REV_2025_11_25, "2025-11-25"},
    {MCP_REV_2025_06_18, "2025-06-18"},
    {MCP_REV_2025_03_26, "2025-03-26"},
};

const char *mcp_era_text(mcp_revision_t revision)
{
    for (size_t i = 0; i < COUNT(revisions); i++)
        if (revisions[i].revision == revision)
            return revisions[i].text;
    return "";
}

mcp_revision_t mcp_era_from_text(const char *text)
{
    for (size_t i = 0; text != NULL && i < COUNT(revisions); i++)
        if (strcmp(revisions[i].text, text) == 0)
            return revisions[i].revision;
    return MCP_REV_NONE;
}

const char *mcp_era_supported(const char *without, int modern_only, apr_pool_t *pool)
{
    const char *list = "";
    for (size_t i = 0; i < COUNT(revisions); i++) {
        if (modern_only && revisions[i].revision != MCP_REV_2026_07_28)
            continue;
        if (without != NULL && strcmp(without, revisions[i].text) == 0)
            continue;
        list = apr_pstrcat(pool, list, *list != '\0' ? "," : "", "\"", revisions[i].text, "\"",
                           NULL);
    }
    return apr_pstrcat(pool, "[", list, "]", NULL);
}

mcp_revision_t mcp_era_negotiate(const char *asked)
{
    mcp_revision_t revision = mcp_era_from_text(asked);
    if (revision == MCP_REV_NONE || revision == MCP_REV_2026_07_28)
        return MCP_REV_2025_11_25;
    return revision;
}

/* Optional white space around a field value (RFC 9110 5.5). NULL stays NULL. */
static const char *stripped(const char *value, apr_pool_t *pool)
{
    if (value == NULL)
        return NULL;
    while (*value == ' ' || *value == '\t')
        value++;
    size_t bytes = strlen(value);
    while (bytes > 0 && (value[bytes - 1] == ' ' || value[bytes - 1] == '\t'))
        bytes--;
    return apr_pstrmemdup(pool, value, bytes);
}

/* --- refusals -------------------------------------------------------------- */

static apr_status_t refuse_version(const char *requested, apr_pool_t *pool, mcp_err_t *err)
{
    (void)mcp_err_set(err, pool, MCP_FAIL_VERSION, MCP_CODE_NONE,
                      "use a version of data.supported", "Unsupported protocol version");
    if (err != NULL)
        err->requested = apr_pstrmemdup(
            pool, requested, mcp_rpc_cut(requested, strlen(requested), MCP_MAX_TEXT));
    return MCP_STATUS_REFUSED;
}

static apr_status_t refuse_meta(const char *what, apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_ENVELOPE, MCP_CODE_NONE,
                       "send " MCP_META_VERSION " and " MCP_META_CAPABILITIES
                       " in params._meta of every request",
                       "Invalid params: %s", what);
}

/* --- the modern envelope --------------------------------------------------- */

/* A string member cut to what the link carries; "" when absent. */
static const char *bounded(const json_t *object, const char *member, apr_pool_t *pool)
{
    const char *text = json_string_value(json_object_get(object, member));
    if (text == NULL)
        return "";
    return apr_pstrmemdup(pool, text, mcp_rpc_cut(text, strlen(text), MCP_MAX_TEXT));
}

static int is_log_level(const json_t *value)
{
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    const char *text = json_string_value(value);
    for (size_t i = 0; text != NULL && i < COUNT(levels); i++)
        if (strcmp(text, levels[i]) == 0)
            return 1;
    return 0;
}

static const json_t *progress_token(const json_t *meta)
{
    const json_t *token = json_object_get(meta, "progressToken");
    return json_is_string(token) || json_is_integer(token) ? token : NULL;
}

/* Gate 11: what stands in `_meta` beside the version. */
static apr_status_t read_envelope(const json_t *meta, apr_pool_t *pool, mcp_era_t *ret,
                                  mcp_err_t *err)
{
    const json_t *client = json_object_get(meta, MCP_META_CLIENT);
    const json_t *level = json_object_get(meta, MCP_META_LOG_LEVEL);
    ret->capabilities = json_object_get(meta, MCP_META_CAPABILITIES);
    if (ret->capabilities == NULL)
        return refuse_meta("_meta lacks " MCP_META_CAPABILITIES, pool, err);
    if (!json_is_object(ret->capabilities))
        return refuse_meta(MCP_META_CAPABILITIES " is not an object", pool, err);
    if (client != NULL && (!json_is_string(json_object_get(client, "name")) ||
                           !json_is_string(json_object_get(client, "version"))))
        return refuse_meta(MCP_META_CLIENT " is not an object with name and version", pool, err);
    ret->progress_token = progress_token(meta);
    if (ret->progress_token == NULL && json_object_get(meta, "progressToken") != NULL)
        return refuse_meta("progressToken is neither a string nor an integer", pool, err);
    if (level != NULL && !is_log_level(level))
        return mcp_err_set(err, pool, MCP_FAIL_PARAMS, MCP_CODE_NONE,
                           "use debug, info, notice, warning, error, critical, alert or emergency",
                           "Invalid params: " MCP_META_LOG_LEVEL " is not a log level");
    ret->client_name = bounded(client, "name", pool);
    ret->client_version = bounded(client, "version", pool);
    return APR_SUCCESS;
}

/* --- mirrored headers ------------------------------------------------------ */

static apr_status_t refuse_header(const char *header, const char *trouble, const char *member,
                                  apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_HEADER, MCP_CODE_NONE,
                       apr_psprintf(pool, "send %s once, with the value of %s", header, member),
                       "Header mismatch: %s %s", header, trouble);
}

/* The member of params that Mcp-Name mirrors for a method; NULL: none. */
static const char *named_member(const char *method)
{
    static const struct {
        const char *method, *member;
    } rows[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].method, method) == 0)
            return rows[i].member;
    return NULL;
}

static apr_status_t check_name(const char *header, const mcp_rpc_message_t *message,
                               apr_pool_t *pool, mcp_err_t *err)
{
    const char *member = named_member(message->method);
    if (member == NULL)
        return APR_SUCCESS;
    const char *shown = apr_pstrcat(pool, "params.", member, NULL);
    const char *expected = json_string_value(json_object_get(message->params, member));
    if (expected == NULL)
        return APR_SUCCESS; /* the check of params answers that */
    if (header == NULL)
        return refuse_header("Mcp-Name", "is missing", shown, pool, err);
    const char *decoded = NULL;
    if (mcp_era_decode(header, pool, &decoded, NULL) != APR_SUCCESS)
        return refuse_header("Mcp-Name", "is malformed", shown, pool, err);
    if (strcmp(decoded, expected) != 0)
        return refuse_header("Mcp-Name", "differs from the body", shown, pool, err);
    /* Two headers arrive as one value with ", " and could spell a name that has a comma. Nothing
     * that is listed here has one, so whoever means it can encode it. */
    if (strstr(decoded, ", ") != NULL && strstr(header, ", ") != NULL)
        return refuse_header("Mcp-Name", "is there twice, or has a comma that is not encoded",
                             shown, pool, err);
    return APR_SUCCESS;
}

static apr_status_t check_headers(const mcp_era_headers_t *headers,
                                  const mcp_rpc_message_t *message, apr_pool_t *pool,
                                  mcp_err_t *err)
{
    const char *method = stripped(headers->method, pool);
    if (method == NULL)
        return refuse_header("Mcp-Method", "is missing", "method", pool, err);
    if (strcmp(method, message->method) != 0)
        return refuse_header("Mcp-Method", "differs from the body", "method", pool, err);
    return check_name(headers->name, message, pool, err);
}

static int is_removed(const char *method)
{
    static const char *const removed[] = {"initialize", "ping", "logging/setLevel",
                                          "resources/subscribe", "resources/unsubscribe"};
    for (size_t i = 0; i < COUNT(removed); i++)
        if (strcmp(removed[i], method) == 0)
            return 1;
    return 0;
}

/* --- the classifier -------------------------------------------------------- */

/* What the rows look at. */
typedef struct era_claim {
    const char *header; /* H, stripped; NULL: absent */
    const char *meta;   /* C; NULL: absent */
} era_claim_t;

static apr_status_t read_claim(const mcp_era_headers_t *headers, const mcp_rpc_message_t *message,
                               apr_pool_t *pool, era_claim_t *claim, mcp_era_t *ret,
                               mcp_err_t *err)
{
    const json_t *meta = json_object_get(message->params, "_meta");
    const json_t *version = json_object_get(meta, MCP_META_VERSION);
    claim->header = stripped(headers->version, pool);
    claim->meta = json_string_value(version);
    if (meta != NULL && !json_is_object(meta))
        return refuse_meta("_meta is not an object", pool, err);
    if (version != NULL && claim->meta == NULL) /* row 1 */
        return refuse_meta(MCP_META_VERSION " is not a string", pool, err);
    ret->meta = meta;
    return APR_SUCCESS;
}

static apr_status_t classify_modern(const mcp_era_headers_t *headers,
                                    const mcp_rpc_message_t *message, apr_pool_t *pool,
                                    mcp_era_t *ret, mcp_err_t *err)
{
    ret->is_modern = 1;
    ret->revision = MCP_REV_2026_07_28;
    apr_status_t status = read_envelope(ret->meta, pool, ret, err);
    if (status == APR_SUCCESS)
        status = check_headers(headers, message, pool, err);
    if (status == APR_SUCCESS && is_removed(message->method)) /* row 5 */
        status = mcp_err_set(err, pool, MCP_FAIL_METHOD, MCP_CODE_NONE, NULL,
                             "Method not found: %s", message->method);
    return status;
}

static apr_status_t classify_request(const mcp_era_headers_t *headers, const era_claim_t *claim,
                                     const mcp_rpc_message_t *message, apr_pool_t *pool,
                                     mcp_era_t *ret, mcp_err_t *err)
{
    mcp_revision_t header = mcp_era_from_text(claim->header);
    if (claim->meta != NULL) {
        if (claim->header == NULL) /* row 2 */
            return refuse_header("MCP-Protocol-Version", "is missing",
                                 "_meta " MCP_META_VERSION, pool, err);
        if (strcmp(claim->header, claim->meta) != 0) /* row 3 */
            return refuse_header("MCP-Protocol-Version", "differs from the body",
                                 "_meta " MCP_META_VERSION, pool, err);
        if (header != MCP_REV_2026_07_28) /* row 4 */
            return refuse_version(claim->meta, pool, err);
        return classify_modern(headers, message, pool, ret, err); /* rows 5 and 6 */
    }
    if (header == MCP_REV_2026_07_28) /* row 7 */
        return refuse_meta(json_object_get(ret->meta, MCP_META_CAPABILITIES) != NULL
                               ? "_meta lacks " MCP_META_VERSION
                               : "_meta lacks " MCP_META_VERSION " and " MCP_META_CAPABILITIES,
                           pool, err);
    ret->progress_token = progress_token(ret->meta);
    if (strcmp(message->method, "initialize") == 0) { /* row 8 */
        ret->is_initialize = 1;
        ret->revision = mcp_era_negotiate(
            json_string_value(json_object_get(message->params, "protocolVersion")));
        return APR_SUCCESS;
    }
    if (claim->header != NULL && header == MCP_REV_NONE) /* row 9 */
        return refuse_version(claim->header, pool, err);
    ret->revision = header; /* rows 10 and 11 */
    return APR_SUCCESS;
}

/* Notifications and posted responses: nothing is enforced but the version. */
static apr_status_t classify_other(const era_claim_t *claim, const mcp_rpc_message_t *message,
                                   apr_pool_t *pool, mcp_era_t *ret, mcp_err_t *err)
{
    mcp_revision_t header = mcp_era_from_text(claim->header);
    mcp_revision_t meta = mcp_era_from_text(claim->meta);
    if (header == MCP_REV_2026_07_28 || meta == MCP_REV_2026_07_28) {
        if (message->type == MCP_RPC_RESPONSE)
            return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_NONE,
                               "send answers in params.inputResponses of the repeated request",
                               "Invalid request: a response can't be posted");
        ret->is_modern = 1;
        ret->revision = MCP_REV_2026_07_28;
        return APR_SUCCESS;
    }
    if (claim->meta != NULL && meta == MCP_REV_NONE)
        return refuse_version(claim->meta, pool, err);
    if (claim->header != NULL && header == MCP_REV_NONE)
        return refuse_version(claim->header, pool, err);
    ret->revision = header;
    return APR_SUCCESS;
}

apr_status_t mcp_era_classify(const mcp_era_headers_t *headers, const mcp_rpc_message_t *message,
                              apr_pool_t *pool, mcp_era_t *ret, mcp_err_t *err)
{
    era_claim_t claim;
    mcp_era_t era;
    memset(&era, 0, sizeof era);
    era.client_name = "";
    era.client_version = "";
    apr_status_t status = read_claim(headers, message, pool, &claim, &era, err);
    if (status != APR_SUCCESS)
        return status;
    if (message->type == MCP_RPC_REQUEST)
        status = classify_request(headers, &claim, message, pool, &era, err);
    else
        status = classify_other(&claim, message, pool, &era, err);
    if (status == APR_SUCCESS)
        *ret = era;
    return status;
}

/* --- batches --------------------------------------------------------------- */

static apr_status_t refuse_batch(const char *why, apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_NONE, "post each message by itself",
                       "Invalid request: %s", why);
}

apr_status_t mcp_era_check_batch(const mcp_era_headers_t *headers, const mcp_rpc_body_t *body,
                                 mcp_revision_t session, apr_pool_t *pool, mcp_err_t *err)
{
    const char *version = stripped(headers->version, pool);
    mcp_revision_t header = mcp_era_from_text(version);
    for (int i = 0; i < body->count; i++) {
        const mcp_rpc_message_t *message = &body->messages[i];
        /* from root: params stays empty in a message that was refused */
        const json_t *meta =
            json_object_get(json_object_get(message->root, "params"), "_meta");
        const char *method = json_string_value(json_object_get(message->root, "method"));
        if (json_object_get(meta, MCP_META_VERSION) != NULL)
            return refuse_batch("a message of version 2026-07-28 in a batch", pool, err);
        if (method != NULL && strcmp(method, "initialize") == 0)
            return refuse_batch("initialize in a batch", pool, err);
    }
    if (version != NULL && header == MCP_REV_NONE)
        return refuse_version(version, pool, err);
    if ((header != MCP_REV_NONE && header != MCP_REV_2025_03_26) ||
        (session != MCP_REV_NONE && session != MCP_REV_2025_03_26))
        return refuse_batch("this protocol version has no batches", pool, err);
    return APR_SUCCESS;
}
