/* A database's checkpoint thread: copies its WAL back, so that no writer's commit waits for it. */
#ifndef PD_CHECKPOINT_H
#define PD_CHECKPOINT_H

#include "pd_err.h"

typedef struct pd_checkpoint pd_checkpoint_t;

/* Opens a connection of its own to the file and starts the thread. */
pd_status_t pd_checkpoint_start(const char *path, pd_checkpoint_t **ret, char *why, size_t size);
/* Tells the length of the WAL after a commit; any thread, never blocks on I/O. */
void pd_checkpoint_note(pd_checkpoint_t *checkpoint, int wal_pages);
/* NULL is fine. */
void pd_checkpoint_stop(pd_checkpoint_t **checkpoint);

#endif
