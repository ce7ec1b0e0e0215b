/* The message table: which kinds policyd serves, in which state of its life, up to which size, and by whom.  Judging is pure: bytes in, a verdict out; sockets and answers are the bus's. */
#ifndef PD_DISPATCH_H
#define PD_DISPATCH_H

#include <jansson.h>

#include "../proto/mcp_frame.h"
#include "pd_core.h"

/* States of the daemon's life in which a row may be asked. The bus is bound only when policyd is ready. */
#define PD_STATE_READY    0x1u
#define PD_STATE_DRAINING 0x2u

#define PD_MAX_BUDGET_MS 600000u /* a longer budget counts as this one */

typedef struct pd_dispatch_row {
    uint16_t kind;
    unsigned states;  /* PD_STATE_* */
    size_t max_bytes; /* of the body */
    void (*handler)(pd_ask_t *ask);
} pd_dispatch_row_t;

typedef enum pd_verdict {
    PD_VERDICT_RUN,    /* row, frame and body are set; body is a new reference */
    PD_VERDICT_REFUSE, /* frame and fault are set: answer with an error reply */
    PD_VERDICT_DROP    /* the header cannot be read: nothing to answer to */
} pd_verdict_t;

typedef struct pd_inbound {
    mcp_frame_t frame;
    const pd_dispatch_row_t *row;
    json_t *body;
    pd_fault_t fault;
} pd_inbound_t;

/* Judges one question. header and body are borrowed; generation is this policyd's. */
pd_verdict_t pd_dispatch_judge(const void *header, size_t header_bytes, const void *body,
                               size_t body_bytes, uint64_t generation, unsigned state,
                               pd_inbound_t *ret);

/* Row of a kind, or NULL. */
const pd_dispatch_row_t *pd_dispatch_row(uint16_t kind);

#endif
