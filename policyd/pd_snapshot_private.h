/* What the files of the snapshot share: its three blocks.  Each block is counted by atomic references and immutable once
 * it has been handed out; each file knows the tables of its own block alone.
 *
 * Following is the same in all three: a block that no change touches is the old one with one reference more; else its tables
 * are copied (with their parts, by reference), and the parts that changed are made anew. */
#ifndef PD_SNAPSHOT_PRIVATE_H
#define PD_SNAPSHOT_PRIVATE_H

#include "pd_snapshot.h"

#define PD_KIND_CONNECTOR   "connector"
#define PD_KIND_CONNECTION  "connection"
#define PD_KIND_RESTRICTION "restriction"
#define PD_KIND_TOOLBOX     "toolbox"
#define PD_KIND_SETTING     "setting"

/* Takes one stored object into what is being built. PD_OK also where the object is left out. */
typedef pd_status_t pd_take_fn(void *building, const pd_object_t *object);

/* Calls take for every object of a kind, in the order of their ids. */
pd_status_t pd_snapshot_take_all(pd_tx_t *tx, const char *kind, pd_take_fn *take, void *building);
/* pd_ground_compile.c. Takes a connector that was compiled, or the status of one that could not be; it is the callee's. */
typedef pd_status_t pd_compiled_fn(void *building, const char *id, pd_status_t status,
                                   struct pd_connector *connector);
/* Compiles every connector of the store, on several threads, and calls compiled for each on the caller's, in the order of their ids. */
pd_status_t pd_ground_compile(pd_tx_t *tx, pd_compiled_fn *compiled, void *building);
/* 1 when some change is of this kind. */
int pd_snapshot_is_touched(const apr_array_header_t *changes, const char *kind);

/* load: refs is 1. follow: *ret is a reference of the caller's, maybe to `old` itself. changes: of pd_change_t. release: NULL is
 * fine. */
pd_status_t pd_ground_load(pd_tx_t *tx, pd_ground_t **ret);
pd_status_t pd_ground_follow(pd_tx_t *tx, pd_ground_t *old, const apr_array_header_t *changes,
                             pd_ground_t **ret);
void pd_ground_release(pd_ground_t **ground);

pd_status_t pd_rulebook_load(pd_tx_t *tx, pd_rulebook_t **ret);
pd_status_t pd_rulebook_follow(pd_tx_t *tx, pd_rulebook_t *old, const apr_array_header_t *changes,
                               pd_rulebook_t **ret);
void pd_rulebook_release(pd_rulebook_t **rulebook);

pd_status_t pd_toolboxes_load(pd_tx_t *tx, pd_toolboxes_t **ret);
pd_status_t pd_toolboxes_follow(pd_tx_t *tx, pd_toolboxes_t *old, const apr_array_header_t *changes,
                                pd_toolboxes_t **ret);
void pd_toolboxes_release(pd_toolboxes_t **toolboxes);

#endif
