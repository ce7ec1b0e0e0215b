/* Collects an answer as it arrives: status, the few fields we use, and the body, all bounded.
 * Knows HTTP, not the library that feeds it. Private to the outbound rooms. */
#ifndef MCP_EGRESS_ANSWER_H
#define MCP_EGRESS_ANSWER_H

#include <apr_pools.h>

#include "mcp_egress_cause.h"
#include "mcp_request.h"

#define MCP_EGRESS_HEADER_MAX 65536 /* bytes of header, interim answers and trailers included */

/* Starts zeroed but for pool and max_bytes; body belongs to the owner of the struct. */
typedef struct mcp_egress_answer {
    apr_pool_t *pool; /* of the strings */
    size_t max_bytes; /* of the body */
    int status;       /* 0: none read */
    int is_header_done;
    size_t header_bytes;
    const char *content_type; /* NULL if absent, here and below */
    const char *content_coding;
    const char *retry_after;
    const char *location;
    int locations; /* how often that field was there */
    char *body;    /* malloc, NULL if empty; room for one more byte than body_bytes */
    size_t body_bytes;
    size_t body_room;
} mcp_egress_answer_t;

/* One line with its end: status line, field, or the empty one. An answer of 1xx is forgotten
 * when the next one starts; trailers are counted and ignored. */
mcp_egress_cause_t mcp_egress_answer_header(mcp_egress_answer_t *answer, const char *line,
                                            size_t bytes);
mcp_egress_cause_t mcp_egress_answer_body(mcp_egress_answer_t *answer, const char *data,
                                          size_t bytes);

/* An answer that arrived whole: has it a final status, and a body in no coding? */
mcp_egress_cause_t mcp_egress_answer_judge(const mcp_egress_answer_t *answer);

/* 1 if it sends the caller elsewhere and says where, once: several Location fields lead each
 * reader elsewhere. */
int mcp_egress_answer_is_redirect(const mcp_egress_answer_t *answer);

/* Hands the answer over. The body goes with the pool, uncopied: large results are held once. */
void mcp_egress_answer_give(mcp_egress_answer_t *answer, mcp_response_t *ret);

#endif
