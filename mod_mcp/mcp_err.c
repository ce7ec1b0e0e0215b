/* The error struct of the module's rooms: filling one in. What a class of error looks like on the
 * wire is mcp_failure.c's business alone. */
#include "mcp_err.h"

#include <stdarg.h>
#include <string.h>

#include <apr_strings.h>

apr_status_t mcp_err_set(mcp_err_t *err, apr_pool_t *pool, mcp_fail_t fail, mcp_code_t code,
                         const char *hint, const char *format, ...)
{
    va_list args;

    if (err == NULL) {
        return MCP_STATUS_REFUSED;
    }
    memset(err, 0, sizeof(*err));
    err->fail = fail;
    err->code = code;
    err->status = MCP_STATUS_REFUSED;
    err->hint = hint;
    va_start(args, format);
    err->message = apr_pvsprintf(pool, format, args);
    va_end(args);
    return MCP_STATUS_REFUSED;
}
