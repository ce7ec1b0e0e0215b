/* What our doors in httpd do alike: take the token, judge media types, and send. */
#ifndef MCP_DOOR_H
#define MCP_DOOR_H

#include "mcp_err.h"
#include "mcp_private.h"

/* A part of an answer's body, in the request's pool or in memory that its cleanup gives back. */
typedef struct mcp_door_piece {
    const char *text;
    size_t bytes;
} mcp_door_piece_t;

/* Sends an answer of pieces, which are handed on as they lie: a list of a thousand tools need not be copied to be sent. Nothing of it may be
 * stored. OK. */
int mcp_door_send(request_rec *r, int status, const char *type, const mcp_door_piece_t *pieces, int count);
int mcp_door_send_text(request_rec *r, int status, const char *type, const char *text, size_t bytes);
/* An answer without a body. */
int mcp_door_send_status(request_rec *r, int status);

/* The hash of the token in the Authorization header, which is the only place for one. MCP_FAIL_UNAUTHORIZED. */
apr_status_t mcp_door_token(const request_rec *r, char hash[MCP_DIGEST_HEX + 1], mcp_err_t *err);

/* MCP_FAIL_MEDIA unless the Content-Type is application/json. */
apr_status_t mcp_door_media(const request_rec *r, mcp_err_t *err);
/* MCP_FAIL_ACCEPT unless one of the ranges (NULL-terminated) stands in Accept; a missing header accepts all. said: the types, for the message. */
apr_status_t mcp_door_accept(const request_rec *r, const char *const *ranges, const char *said,
                             mcp_err_t *err);

#endif
