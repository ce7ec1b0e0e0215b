/* Why an outbound call came to nothing, in our words. Pure. */
#include "mcp_egress_cause.h"

#include <apr_strings.h>

static const struct {
    mcp_code_t code;
    const char *message;
    const char
        *unit; /* NULL: the cause has no number; else message, number and this make the sentence */
    const char *hint;
} causes[MCP_EGRESS_CAUSE_COUNT] = {
    [MCP_EGRESS_OK] = {MCP_CODE_INTERNAL, "The call failed without a cause.", NULL, NULL},
    [MCP_EGRESS_BAD_METHOD] = {MCP_CODE_INVALID_ARGUMENTS,
                               "The request's method cannot be sent, or not with a body.", NULL,
                               NULL},
    [MCP_EGRESS_BAD_HEADER] =
        {MCP_CODE_INVALID_ARGUMENTS,
         "A header of the request cannot be sent: its name is reserved or malformed, or "
         "it holds control characters.",
         NULL, NULL},
    [MCP_EGRESS_BAD_URL] = {MCP_CODE_EGRESS_DENIED,
                            "The request's URL is not a plain http or https URL.", NULL, NULL},
    [MCP_EGRESS_ADDRESS] =
        {MCP_CODE_EGRESS_DENIED,
         "The upstream's address is not public, and this server does not allow its origin.", NULL,
         NULL},
    [MCP_EGRESS_NO_NAME] = {MCP_CODE_UPSTREAM_UNREACHABLE,
                            "The name of the upstream's host could not be resolved.", NULL, NULL},
    [MCP_EGRESS_NO_CONNECTION] = {MCP_CODE_UPSTREAM_UNREACHABLE,
                                  "The upstream did not accept a connection.", NULL, NULL},
    [MCP_EGRESS_CONNECT_TIME] = {MCP_CODE_UPSTREAM_TIMEOUT,
                                 "The upstream did not accept a connection in time.", NULL, NULL},
    [MCP_EGRESS_NO_TRUST] =
        {MCP_CODE_UPSTREAM_UNREACHABLE,
         "The upstream's TLS certificate is not trusted, has expired or is for another name.", NULL,
         NULL},
    [MCP_EGRESS_CA_FILE] = {MCP_CODE_UPSTREAM_UNREACHABLE,
                            "This server's file of trusted TLS authorities cannot be used.", NULL,
                            NULL},
    [MCP_EGRESS_NO_TLS] = {MCP_CODE_UPSTREAM_UNREACHABLE,
                           "No TLS connection to the upstream could be agreed on.", NULL, NULL},
    [MCP_EGRESS_RESENT] = {MCP_CODE_UPSTREAM_UNREACHABLE, "The connection to the upstream broke.",
                           NULL, NULL},
    [MCP_EGRESS_BROKEN] = {MCP_CODE_UPSTREAM_UNREACHABLE, "The connection to the upstream broke.",
                           NULL, NULL},
    [MCP_EGRESS_NO_ANSWER] = {MCP_CODE_UPSTREAM_UNREACHABLE,
                              "The upstream closed the connection without an answer.", NULL, NULL},
    [MCP_EGRESS_TIME] = {MCP_CODE_UPSTREAM_TIMEOUT, "The upstream did not answer within ", " ms.",
                         NULL},
    [MCP_EGRESS_GONE] = {MCP_CODE_CANCELLED, "The call was cancelled.", NULL, NULL},
    [MCP_EGRESS_NOT_HTTP] = {MCP_CODE_UPSTREAM_INVALID, "The upstream's answer is not HTTP.", NULL,
                             NULL},
    [MCP_EGRESS_CUT] = {MCP_CODE_UPSTREAM_INVALID,
                        "The upstream's answer is malformed or broke off before its end.", NULL,
                        NULL},
    [MCP_EGRESS_STATUS] = {MCP_CODE_UPSTREAM_INVALID,
                           "The upstream answered with a status that ends no exchange.", NULL,
                           NULL},
    [MCP_EGRESS_CODING] = {MCP_CODE_UPSTREAM_INVALID,
                           "The upstream answered in a content coding that was not asked for.",
                           NULL, NULL},
    [MCP_EGRESS_LARGE_HEADER] = {MCP_CODE_UPSTREAM_INVALID,
                                 "The header of the upstream's answer is larger than ", " bytes.",
                                 NULL},
    [MCP_EGRESS_LARGE_BODY] = {MCP_CODE_RESULT_TOO_LARGE, "The upstream's answer is larger than ",
                               " bytes.",
                               "Ask for less, for example with a filter or a page size."},
    [MCP_EGRESS_MEMORY] = {MCP_CODE_INTERNAL, "There is no memory for this call.", NULL, NULL},
    [MCP_EGRESS_UNKNOWN] = {MCP_CODE_UPSTREAM_UNREACHABLE, "The exchange with the upstream failed.",
                            NULL, NULL},
};

apr_status_t mcp_egress_cause_fail(mcp_egress_cause_t cause, apr_int64_t number, int has_run,
                                   apr_pool_t *pool, mcp_err_t *err)
{
    const char *tail = has_run ? " The request may have been executed and was not repeated." : "";
    const char *message = causes[cause].message;
    if (causes[cause].unit != NULL)
        message =
            apr_psprintf(pool, "%s%" APR_INT64_T_FMT "%s", message, number, causes[cause].unit);
    apr_status_t status = mcp_err_set(err, pool, MCP_FAIL_TOOL, causes[cause].code, causes[cause].hint,
                                      "%s%s", message, tail);
    if (err != NULL && (cause == MCP_EGRESS_NO_NAME || cause == MCP_EGRESS_NO_CONNECTION))
        err->status = APR_ECONNREFUSED;
    return status;
}
