/* Attempts that have begun and not ended: who runs them, until when, and what their end repeats.  The table is rebuilt from the
 * trail at start; a child that misses its beats, a call that its child does not know, and a deadline that passed end as
 * `interrupted`.  Loop's thread only. */
#ifndef PD_RUNNING_H
#define PD_RUNNING_H

#include "pd_core.h"

typedef struct pd_running pd_running_t;

pd_status_t pd_running_new(pd_core_t *core, pd_running_t **ret);
void pd_running_free(pd_running_t **running);

/* A place among the running calls of a server whose calls are counted here; all zero: of none. */
typedef struct pd_running_place {
    int *counts[2]; /* the table's own */
} pd_running_place_t;

/* A begin became durable. The record's texts are copied; the place (NULL: none) goes over to the attempt and is emptied. */
pd_status_t pd_running_add(pd_running_t *running, int64_t seq, const pd_record_t *begin,
                           pd_running_place_t *place);
/* Attempts that run now in all children. */
int pd_running_count(const pd_running_t *running);
/* A hello or beat of a child: it lives. */
void pd_running_seen(pd_running_t *running, const char *child);
/* Caps that policyd keeps for a server whose children can't count together (prefork), from hello. */
typedef struct pd_running_caps {
    char server[MCP_MAX_ID + 1]; /* "" : its children count for themselves */
    int64_t server_calls;        /* running at once in all children; 0: no cap */
    int64_t connection_calls;    /* of them, on one connection; 0: no cap */
} pd_running_caps_t;

/* A child said hello. */
void pd_running_child(pd_running_t *running, const char *child, const pd_running_caps_t *caps);
/* 1 when the child has said hello and is remembered: its caps are known. */
int pd_running_knows(const pd_running_t *running, const char *child);
/* Takes a place for one more call of this child on this connection: NONE, or OVERLOADED or RATE_LIMITED
 * where there is none. The place goes over to the attempt with pd_running_add(); a
 * begin that is not recorded gives it back. */
mcp_code_t pd_running_enter(pd_running_t *running, const char *child, const char *connection_id,
                            pd_running_place_t *ret);
/* Gives a place back; an empty one is fine. */
void pd_running_leave(pd_running_place_t *place);
/* Once a second. */
void pd_running_tick(pd_core_t *core, pd_running_t *running);

#endif
