/* Attempts that have begun and not ended: who runs them, until when, and what their end repeats.  The table is rebuilt from the
 * trail at start; a child that misses its beats, a call that its child does not know, and a deadline that passed end as
 * `interrupted` (decisions 5.1).  Loop's thread only. */
#ifndef PD_RUNNING_H
#define PD_RUNNING_H

#include "pd_core.h"

typedef struct pd_running pd_running_t;

pd_status_t pd_running_new(pd_core_t *core, pd_running_t **ret);
void pd_running_free(pd_running_t **running);

/* A begin became durable. The record's texts are copied. */
pd_status_t pd_running_add(pd_running_t *running, int64_t seq, const pd_record_t *begin);
/* Attempts that run now in all children. */
int pd_running_count(const pd_running_t *running);
/* A hello or beat of a child: it lives. */
void pd_running_seen(pd_running_t *running, const char *child);
/* How many calls a child may run at once (hello's max_calls); 0: unknown. */
void pd_running_child(pd_running_t *running, const char *child, int64_t max_calls);
/* Once a second. */
void pd_running_tick(pd_core_t *core, pd_running_t *running);

#endif
