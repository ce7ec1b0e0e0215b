/* Status of the daemon's own functions, and the fault object that a refused operation answers.
 * 0 is success, negative is failure; foreign codes (errno, SQLite, ZeroMQ) stop at their door file. */
#ifndef PD_ERR_H
#define PD_ERR_H

#include <stddef.h>

#include "../proto/mcp_proto.h"

typedef enum pd_status {
    PD_OK = 0,
    PD_E_INTERNAL = -1,
    PD_E_NOMEM = -2,
    PD_E_INVALID = -3,   /* input breaks a rule */
    PD_E_NOT_FOUND = -4,
    PD_E_CONFLICT = -5,  /* a unique key is taken */
    PD_E_REVISION = -6,  /* if_revision differs */
    PD_E_FULL = -7,      /* a bounded queue is full */
    PD_E_TIMEOUT = -8,   /* the deadline passed before it ran */
    PD_E_IO = -9,        /* disk full, read-only, I/O error */
    PD_E_CORRUPT = -10,  /* a store that fails its checks */
    PD_E_NEWER = -11,    /* a store written by a newer policyd */
    PD_E_LOCKED = -12,   /* another process holds it */
    PD_E_CRYPTO = -13,
    PD_E_CLOSED = -14,   /* shutting down */
    PD_E_SYSTEM = -15,   /* the operating system refused; errno tells at the site */
    PD_E_ROLLBACK = -16  /* a unit of work asks for its transaction to be undone (dry run, fault) */
} pd_status_t;

const char *pd_status_text(pd_status_t status);

/* Why an operation is refused, in the words its caller sees. */
typedef struct pd_fault {
    mcp_code_t code; /* MCP_CODE_NONE: no fault */
    char message[512];
    char hint[512]; /* empty: none */
    char permission[64]; /* PERMISSION_DENIED: the one that is missing; empty: not named */
    unsigned scopes;     /* INSUFFICIENT_SCOPE: all that are needed, a bit set; 0: not named */
} pd_fault_t;

/* Fills *fault (message formatted from a literal format; hint may be NULL) and returns PD_E_INVALID,
 * so that a handler can `return pd_fault(...)`. The first fault stays. */
pd_status_t pd_fault(pd_fault_t *fault, mcp_code_t code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
