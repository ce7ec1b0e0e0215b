/* What the calls of one child share: idle lines (kept-alive handles, opaque here) and the counts
 * behind the caps. Everything is on malloc under one mutex that is never held while a line is
 * used or closed. Private to the outbound rooms. */
#ifndef MCP_EGRESS_POOL_H
#define MCP_EGRESS_POOL_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mcp_egress_pool mcp_egress_pool_t;

typedef struct mcp_egress_pool_limits {
    int max_calls;
    int max_per_connection;
    int idle_per_origin;
    int idle_total;
    int64_t idle_ms;
} mcp_egress_pool_limits_t;

typedef enum mcp_egress_place {
    MCP_EGRESS_PLACE_TAKEN,
    MCP_EGRESS_PLACE_CONNECTION_FULL,
    MCP_EGRESS_PLACE_CHILD_FULL,
    MCP_EGRESS_PLACE_NO_MEMORY
} mcp_egress_place_t;

/* close_line ends a line for good; it is called without the mutex, from any thread. pool carries
 * the mutex only and must outlive the last call but mcp_egress_pool_close. */
apr_status_t mcp_egress_pool_create(const mcp_egress_pool_limits_t *limits,
                                    void (*close_line)(void *line), apr_pool_t *pool,
                                    mcp_egress_pool_t **ret);
/* Closes what is idle and frees the pool. Only when nobody uses it any more. NULL is fine. */
void mcp_egress_pool_close(mcp_egress_pool_t *lines);

/* The youngest idle line of exactly this origin and connection, now the caller's alone; NULL if
 * there is none. Lines past their age are closed on the way. Any thread. In a process other than
 * the one that filled the pool all lines are forgotten, not closed: their sockets and TLS states
 * are still the parent's. */
void *mcp_egress_pool_take(mcp_egress_pool_t *lines, const char *origin, const char *connection);
/* Hands a line over; the oldest ones beyond the limits are closed. Any thread. */
void mcp_egress_pool_keep(mcp_egress_pool_t *lines, const char *origin, const char *connection,
                          void *line);
/* Closes lines past their age. Any thread. */
void mcp_egress_pool_tidy(mcp_egress_pool_t *lines);

/* A place for one more call of `connection`; each MCP_EGRESS_PLACE_TAKEN is given back by leave.
 * Any thread. */
mcp_egress_place_t mcp_egress_pool_enter(mcp_egress_pool_t *lines, const char *connection);
void mcp_egress_pool_leave(mcp_egress_pool_t *lines, const char *connection);

/* Milliseconds of the monotonic clock. */
int64_t mcp_egress_now_ms(void);

#endif
