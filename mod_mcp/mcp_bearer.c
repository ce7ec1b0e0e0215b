/* Bearer tokens: taking one out of the Authorization header, and asking for one. */
#include "mcp_bearer.h"

#include <string.h>

#include <apr_cstr.h>
#include <apr_strings.h>

#include "../proto/mcp_kind_text.h"

#define SCOPE_TEXT_BYTES 64 /* what mcp_scope_list() asks for */
#define MAX_DESCRIPTION  200

static apr_status_t refuse(int has_credentials, const char *message, apr_pool_t *pool,
                           mcp_err_t *err)
{
    (void)mcp_err_set(err, pool, MCP_FAIL_UNAUTHORIZED, MCP_CODE_INVALID_TOKEN,
                      "send one header: Authorization: Bearer TOKEN", "%s", message);
    if (err != NULL)
        err->has_credentials = has_credentials;
    return MCP_STATUS_REFUSED;
}

/* b64token of RFC 6750 2.1; its characters leave no room for the comma of a joined header. */
static int is_b64token(const char *text, size_t bytes)
{
    static const char set[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/";
    size_t body = strspn(text, set);
    if (body == 0 || body > bytes)
        return 0;
    while (body < bytes && text[body] == '=')
        body++;
    return body == bytes;
}

apr_status_t mcp_bearer_token(const char *authorization, apr_pool_t *pool, const char **ret,
                              size_t *ret_bytes, mcp_err_t *err)
{
    static const char scheme[] = "bearer";
    const size_t scheme_bytes = sizeof scheme - 1;
    const char *p = authorization != NULL ? authorization : "";
    while (*p == ' ' || *p == '\t')
        p++;
    size_t bytes = strlen(p);
    while (bytes > 0 && (p[bytes - 1] == ' ' || p[bytes - 1] == '\t'))
        bytes--;
    if (bytes == 0)
        return refuse(0, "An access token is needed", pool, err);
    if (bytes < scheme_bytes || apr_cstr_casecmpn(p, scheme, scheme_bytes) != 0 ||
        (bytes > scheme_bytes && p[scheme_bytes] != ' '))
        return refuse(1, "The Authorization header is not of the scheme Bearer", pool, err);
    p += scheme_bytes;
    bytes -= scheme_bytes;
    while (bytes > 0 && *p == ' ') {
        p++;
        bytes--;
    }
    const char *token = apr_pstrmemdup(pool, p, bytes);
    if (bytes > MCP_BEARER_MAX_BYTES || !is_b64token(token, bytes))
        return refuse(1, "The bearer token is malformed or there is more than one", pool, err);
    *ret = token;
    *ret_bytes = bytes;
    return APR_SUCCESS;
}

/* What may stand between quotes in the header: one '?' for each character that may not, ' for a
 * quote. */
static const char *quotable(const char *text, apr_pool_t *pool)
{
    char *out = apr_palloc(pool, MAX_DESCRIPTION + 1);
    size_t to = 0;
    for (; *text != '\0' && to < MAX_DESCRIPTION; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c & 0xc0) == 0x80)
            continue; /* inside a character that has its mark already */
        if (c == '"')
            out[to++] = '\'';
        else
            out[to++] = c >= 0x20 && c <= 0x7e && c != '\\' ? (char)c : '?';
    }
    out[to] = '\0';
    return out;
}

/* 1 when text can be sent between quotes as it is: a URL or scope that would have to be changed is
 * better left out than sent wrong. */
static int is_plain(const char *text)
{
    if (text == NULL || *text == '\0')
        return 0;
    for (; *text != '\0'; text++)
        if (*text < 0x20 || *text > 0x7e || *text == '"' || *text == '\\')
            return 0;
    return 1;
}

static const char *with_attribute(const char *so_far, const char *name, const char *value,
                                  apr_pool_t *pool)
{
    if (!is_plain(value))
        return so_far;
    return apr_pstrcat(pool, so_far, *so_far != '\0' ? ", " : "", name, "=\"", value, "\"", NULL);
}

const char *mcp_bearer_challenge(const mcp_err_t *err, const char *metadata_url,
                                 const char *base_scope, apr_pool_t *pool)
{
    char scopes[SCOPE_TEXT_BYTES];
    const char *list = "";
    const char *error = NULL;
    scopes[0] = '\0';
    if (err->fail == MCP_FAIL_SCOPE)
        error = "insufficient_scope";
    else if (err->has_credentials)
        error = "invalid_token";
    if (err->scopes != 0)
        mcp_scope_list(err->scopes, scopes, sizeof scopes);
    if (error != NULL) {
        list = with_attribute(list, "error", error, pool);
        if (err->message != NULL)
            list = with_attribute(list, "error_description", quotable(err->message, pool), pool);
    }
    list = with_attribute(list, "resource_metadata", metadata_url, pool);
    list = with_attribute(list, "scope", scopes[0] != '\0' ? scopes : base_scope, pool);
    return *list != '\0' ? apr_pstrcat(pool, "Bearer ", list, NULL) : "Bearer";
}
