/* From an operation's definition (PROTOCOL.md, Operation) and merged arguments to the request that
 * is sent: path, query, header and cookie serialisation with style and explode as OpenAPI says, and
 * JSON, form, multipart and text bodies. Pure but for the random boundary of a multipart body. */
#ifndef MCP_TEMPLATE_H
#define MCP_TEMPLATE_H

#include <jansson.h>

#include "mcp_err.h"
#include "mcp_request.h"

/* How a refusal begins that tells of two names that meet, after the argument's name. */
#define MCP_TEMPLATE_CLASH "has a key that another parameter uses"

/* base: the plan's base URL. auth: the plan's `auth` object (NULL: none). Memory from pool; the
 * result may point into operation and args, which must live as long. *ret is not touched on
 * failure.
 *
 * Every value that ends in the path is percent-encoded so that it stays one segment. A whole
 * segment that is "." or "..", or a value that holds NUL, is refused as url_restricted, an empty
 * value as invalid_arguments. multi_segment (or {+name} in the path): several segments, each
 * encoded by itself; one leading slash is ignored, one trailing slash kept, dot segments and empty
 * inner ones are url_restricted. format "url": a path of that kind below the base, or an absolute
 * URL that starts with the base, byte for byte; it is sent as an absolute URL and listed in
 * extra_urls.
 *
 * null and absent are the same: left out, or invalid_arguments where required; in a flattened JSON
 * body null is sent. A header that would be empty is left out. CR, LF, NUL and other control
 * characters in header or cookie values are refused as invalid_arguments; a header that belongs to
 * the connection, the framing or the credential, and a method override that is not `fixed`, are
 * refused as internal when they would be sent. Where a parameter and the credential have one name,
 * the credential goes out. A key that a caller chose, and that a receiver could take for another
 * parameter's or field's name, is refused with MCP_TEMPLATE_CLASH.
 *
 * is_idempotent is set for methods that change nothing: GET, HEAD, OPTIONS, PROPFIND, REPORT. */
apr_status_t mcp_template_expand(const json_t *operation, const char *base, const json_t *args,
                                 const json_t *auth, apr_pool_t *pool, mcp_request_t *ret,
                                 mcp_err_t *err);

#endif
