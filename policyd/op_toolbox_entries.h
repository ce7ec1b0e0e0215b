/* Entries of a toolbox, from what a writer names to what is stored: operations and shared
 * connections pinned by their stable ids, values checked against the operation's schema.  Runs
 * inside a unit of the write lane. */
#ifndef PD_OP_TOOLBOX_ENTRIES_H
#define PD_OP_TOOLBOX_ENTRIES_H

#include "pd_ops.h"

#define PD_OP_TOOLBOX_OWN "@own" /* in `connections`: the caller's own ones on the connector */

/* Judges `given` for the toolbox of this name. `old` (NULL: none) are the entries that it replaces:
 * one that is named by its id, else by its name, keeps the id, and what it holds already may stay
 * though it is gone by now. What is withheld from the actor is as what there is not, but that an old
 * entry on it, named by its id, may stay as it is. *ret: the entries to store, kept by the call's pool. Sentences are
 * added to the array `warnings`. PD_E_INVALID with the call's fault, which names the entry's number and
 * never a key or a value of `frozen` or `defaults`. call->snapshot must be there. */
pd_status_t pd_op_toolbox_entries(pd_op_call_t *call, const char *toolbox, const json_t *given,
                                  const json_t *old, json_t *warnings, json_t **ret);

/* PD_OK when stored entries have names of tools, each its own, under this toolbox's name; else
 * fault. */
pd_status_t pd_op_toolbox_names(pd_op_call_t *call, const char *toolbox, const json_t *entries);

#endif
