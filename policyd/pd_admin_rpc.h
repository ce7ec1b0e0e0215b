/* Lines of the admin socket as values: a request read and judged, answers built (JSON-RPC 2.0; an error's
 * `data` is {"code","message","hint"?,"audit"?}).  Pure. */
#ifndef PD_ADMIN_RPC_H
#define PD_ADMIN_RPC_H

#include <jansson.h>

#include "pd_err.h"

/* Codes of JSON-RPC 2.0; an operation's refusal has PD_RPC_REFUSED, its closed code stands in `data`. */
#define PD_RPC_REFUSED         1
#define PD_RPC_PARSE           (-32700)
#define PD_RPC_INVALID_REQUEST (-32600)
#define PD_RPC_UNKNOWN_METHOD  (-32601)
#define PD_RPC_INVALID_PARAMS  (-32602)

/* One request line, read. On failure `id` may be set nevertheless, so that the error names it. */
typedef struct pd_admin_request {
    json_t *message;    /* owns the others; NULL when it could not be parsed */
    const json_t *id;   /* NULL: a notification, or an id that is none */
    const char *method;
    const json_t *params; /* object; NULL: none given */
    int is_notification;
} pd_admin_request_t;

/* Reads a line. 0, or the JSON-RPC code of what is wrong with `fault` set. Pure; the caller decrefs
 * ret->message either way. */
int pd_admin_parse(const char *line, size_t bytes, pd_admin_request_t *ret, pd_fault_t *fault);

/* {"jsonrpc","id"}, to be completed; id NULL: null. New reference. */
json_t *pd_admin_envelope(const json_t *id);
/* A whole error message; audit may be NULL. New reference. */
json_t *pd_admin_error(const json_t *id, int rpc, const pd_fault_t *fault, const char *audit);

#endif
