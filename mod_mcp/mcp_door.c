/* What our doors in httpd do alike: see mcp_door.h. */
#include "mcp_door.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "../proto/mcp_hash.h"
#include "mcp_bearer.h"

/* --- sending ------------------------------------------------------------------------------- */

int mcp_door_send(request_rec *r, int status, const char *type, const mcp_door_piece_t *pieces, int count)
{
    apr_bucket_alloc_t *allocator = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, allocator);
    size_t total = 0;
    int i;

    r->status = status;
    apr_table_setn(r->err_headers_out, "Cache-Control", "no-store");
    ap_set_content_type(r, type);
    for (i = 0; i < count; i++) {
        total += pieces[i].bytes;
        APR_BRIGADE_INSERT_TAIL(
            brigade, apr_bucket_pool_create(pieces[i].text, pieces[i].bytes, r->pool, allocator));
    }
    ap_set_content_length(r, (apr_off_t)total);
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(allocator));
    (void)ap_pass_brigade(r->output_filters, brigade); /* a client that left is not our concern here */
    return OK;
}

int mcp_door_send_text(request_rec *r, int status, const char *type, const char *text, size_t bytes)
{
    mcp_door_piece_t whole = {text, bytes};

    return mcp_door_send(r, status, type, &whole, 1);
}

int mcp_door_send_status(request_rec *r, int status)
{
    r->status = status;
    apr_table_setn(r->err_headers_out, "Cache-Control", "no-store");
    ap_set_content_length(r, 0);
    return OK;
}

/* --- gates ------------------------------------------------------------------------------------ */

apr_status_t mcp_door_token(const request_rec *r, char hash[MCP_DIGEST_HEX + 1], mcp_err_t *err)
{
    const char *token = NULL;
    size_t bytes = 0;
    apr_status_t status = mcp_bearer_token(apr_table_get(r->headers_in, "Authorization"), r->pool, &token,
                                           &bytes, err);

    if (status == APR_SUCCESS) {
        mcp_token_hash(token, bytes, hash);
    }
    return status;
}

apr_status_t mcp_door_media(const request_rec *r, mcp_err_t *err)
{
    const char *type = apr_table_get(r->headers_in, "Content-Type");
    size_t length = type != NULL ? strcspn(type, "; \t") : 0;

    if (length == 16 && strncasecmp(type, "application/json", 16) == 0) {
        return APR_SUCCESS;
    }
    return mcp_err_set(err, r->pool, MCP_FAIL_MEDIA, MCP_CODE_NONE, NULL,
                       "Content-Type must be application/json");
}

apr_status_t mcp_door_accept(const request_rec *r, const char *const *ranges, const char *said,
                             mcp_err_t *err)
{
    const char *accept = apr_table_get(r->headers_in, "Accept");
    char *state = NULL;
    char *item;
    size_t i;

    if (accept == NULL || accept[0] == '\0') {
        return APR_SUCCESS;
    }
    for (item = apr_strtok(apr_pstrdup(r->pool, accept), ",", &state); item != NULL;
         item = apr_strtok(NULL, ",", &state)) {
        size_t length;

        item += strspn(item, " \t");
        length = strcspn(item, "; \t");
        for (i = 0; ranges[i] != NULL; i++) {
            if (strlen(ranges[i]) == length && strncasecmp(ranges[i], item, length) == 0) {
                return APR_SUCCESS;
            }
        }
    }
    return mcp_err_set(err, r->pool, MCP_FAIL_ACCEPT, MCP_CODE_NONE, NULL, "Accept must allow %s", said);
}
