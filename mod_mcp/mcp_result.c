/* Shaping of results: see mcp_result.h. */
#include "mcp_result.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "mcp_failure.h"
#include "mcp_rpc.h"

/* Reasons for the statuses that applications answer most; others are told by number alone. */
static const struct {
    int status;
    const char *text;
} reasons[] = {{400, "Bad Request"},          {401, "Unauthorized"},     {403, "Forbidden"},
               {404, "Not Found"},            {405, "Method Not Allowed"}, {409, "Conflict"},
               {410, "Gone"},                 {412, "Precondition Failed"}, {415, "Unsupported Media Type"},
               {422, "Unprocessable Content"}, {423, "Locked"},           {429, "Too Many Requests"},
               {500, "Internal Server Error"}, {502, "Bad Gateway"},      {503, "Service Unavailable"},
               {504, "Gateway Timeout"},      {507, "Insufficient Storage"}};

static const char *reason(int status)
{
    size_t i;

    for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return "";
}

/* The media type alone, in lower case. */
static const char *media_type(const char *content_type, apr_pool_t *pool)
{
    size_t length = strcspn(content_type, "; \t");
    char *type = apr_pstrmemdup(pool, content_type, length);
    char *c;

    for (c = type; *c != '\0'; c++) {
        *c = (char)apr_tolower(*c);
    }
    return type;
}

static int is_json_type(const char *type)
{
    size_t length = strlen(type);

    return strcmp(type, "application/json") == 0 ||
           (length > 5 && strcmp(type + length - 5, "+json") == 0);
}

/* True when the body may stand as structuredContent for this era: JSON that we can read (numbers beyond 64 bit can't), an object for
 * legacy clients, nothing at all for the oldest. */
static int is_structured(const mcp_response_t *response, const mcp_era_t *era, const char *type)
{
    json_t *value = NULL;
    int fits;

    if (!is_json_type(type) || (!era->is_modern && era->revision < MCP_REV_2025_06_18) ||
        mcp_json_values(response->body, response->body_bytes) > MCP_MAX_VALUES ||
        mcp_json_parse(response->body, response->body_bytes, 512, &value, NULL) != MCP_OK) {
        return 0;
    }
    fits = era->is_modern || json_is_object(value);
    json_decref(value);
    return fits;
}

static const char *base64(const mcp_response_t *response, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, 4 * ((response->body_bytes + 2) / 3) + 1);

    mcp_b64(response->body, response->body_bytes, text);
    return text;
}

/* The content block that holds the body. */
static const char *body_block(const mcp_response_t *response, const mcp_era_t *era, const char *type,
                              apr_pool_t *pool)
{
    const char *quoted_type;
    const char *kind;

    if (response->body_bytes == 0) {
        return apr_psprintf(pool, "{\"type\":\"text\",\"text\":\"Done (HTTP %d, no content).\"}",
                            response->status);
    }
    if (mcp_rpc_is_utf8(response->body, response->body_bytes)) {
        return apr_pstrcat(pool, "{\"type\":\"text\",\"text\":",
                           mcp_rpc_quote(response->body, response->body_bytes, pool), "}", NULL);
    }
    quoted_type = mcp_rpc_quote(type[0] != '\0' ? type : "application/octet-stream",
                                strlen(type[0] != '\0' ? type : "application/octet-stream"), pool);
    kind = strncmp(type, "image/", 6) == 0 ? "image" : strncmp(type, "audio/", 6) == 0 ? "audio" : NULL;
    if (kind != NULL) {
        return apr_pstrcat(pool, "{\"type\":\"", kind, "\",\"data\":\"", base64(response, pool),
                           "\",\"mimeType\":", quoted_type, "}", NULL);
    }
    (void)era; /* embedded resources exist in every revision */
    return apr_pstrcat(pool, "{\"type\":\"resource\",\"resource\":{\"uri\":\"body:response\",\"mimeType\":",
                       quoted_type, ",\"blob\":\"", base64(response, pool), "\"}}", NULL);
}

/* Where a redirect points, without what may hold a secret: user information, query and fragment (a credential in the query
 * comes back in many an application's redirect). User information is looked for in the whole text, since what is no sound URL
 * ("http:/user:secret@host") may hold it, too. */
static const char *shown_location(const char *location, apr_pool_t *pool)
{
    size_t length = strcspn(location, "?#");

    if (length > MCP_MAX_TEXT || strcspn(location, "@\\") < length || strncmp(location, "//", 2) == 0) {
        return "another place";
    }
    return apr_pstrmemdup(pool, location, length);
}

/* First block and error object of a 4xx, a 5xx or a redirect that was not followed. */
static const char *error_text(const mcp_response_t *response, apr_pool_t *pool)
{
    const char *why = reason(response->status);

    if (response->status >= 300 && response->status < 400) {
        return apr_psprintf(pool,
                            "The application answered HTTP %d and points to %s, which is not followed.",
                            response->status,
                            response->location != NULL ? shown_location(response->location, pool)
                                                          : "nowhere");
    }
    return apr_psprintf(pool, "The application answered HTTP %d%s%s.", response->status,
                        why[0] != '\0' ? " " : "", why);
}

static const char *error_result(const mcp_response_t *response, const mcp_era_t *era, const char *type,
                                const char *audit, apr_pool_t *pool)
{
    const char *message = error_text(response, pool);
    const char *quoted = mcp_rpc_quote(message, strlen(message), pool);
    const char *head = mcp_failure_result_head(era, pool);
    const char *structured = "";
    const char *body = "";
    /* the page of a redirect says again where it points, secrets included */
    int has_body = response->body_bytes > 0 && (response->status < 300 || response->status >= 400);
    int structured_body = has_body && is_structured(response, era, type);

    if (has_body) {
        body = apr_pstrcat(pool, ",", body_block(response, era, type, pool), NULL);
    }
    if (era->is_modern || era->revision >= MCP_REV_2025_06_18) {
        structured = apr_psprintf(
            pool,
            ",\"structuredContent\":{\"error\":{\"code\":\"upstream_status\",\"message\":%s,\"status\":%d,"
            "\"audit\":%s}%s%s}",
            quoted, response->status, mcp_rpc_quote(audit, strlen(audit), pool),
            structured_body ? ",\"body\":" : "", structured_body ? response->body : "");
    }
    return apr_pstrcat(pool, "{", head, head[0] != '\0' ? "," : "",
                       "\"content\":[{\"type\":\"text\",\"text\":", quoted, "}", body,
                       "],\"isError\":true", structured, "}", NULL);
}

apr_status_t mcp_result_shape(const mcp_response_t *response, const mcp_era_t *era, const char *audit,
                              apr_pool_t *pool, const char **ret, size_t *ret_bytes, int *ret_is_error,
                              mcp_err_t *err)
{
    const char *type = media_type(response->content_type, pool);
    const char *head = mcp_failure_result_head(era, pool);

    (void)err; /* every response has a shape */
    *ret_is_error = response->status >= 300 || response->status < 200;
    if (*ret_is_error) {
        *ret = error_result(response, era, type, audit, pool);
    } else {
        int structured = response->body_bytes > 0 && is_structured(response, era, type);

        *ret = apr_pstrcat(pool, "{", head, head[0] != '\0' ? "," : "", "\"content\":[",
                           body_block(response, era, type, pool), "]",
                           structured ? ",\"structuredContent\":" : "",
                           structured ? response->body : "", "}", NULL);
    }
    *ret_bytes = strlen(*ret);
    return APR_SUCCESS;
}
