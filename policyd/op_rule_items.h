/* Items of a restriction, from what a writer names to what is stored: connectors and operations
 * pinned by their stable ids, advertised names resolved to the operations that bear them now.  And
 * what a rule says that its writer may not expect.  Runs inside a unit of the write lane. */
#ifndef PD_OP_RULE_ITEMS_H
#define PD_OP_RULE_ITEMS_H

#include "pd_ops.h"
#include "pd_rules.h"

/* Judges `items` for a rule of this effect. `old` (may be NULL) are the stored items of the rule
 * that is being changed: what it holds already may stay though the catalog lacks it by now.
 * *ret: the items to store, kept by the call's pool. Sentences are added to the array `warnings`.
 * PD_E_INVALID with the call's fault, which names the item's number. call->snapshot must be
 * there. */
pd_status_t pd_op_rule_items(pd_op_call_t *call, pd_effect_t effect, const json_t *items,
                             const json_t *old, json_t *warnings, json_t **ret);

/* 1 when some connection's or toolbox entry's tool bears this name now. */
int pd_op_rule_name_matches(const pd_op_call_t *call, const char *name);

/* Adds a warning for every pair of operations with identical templates of which the rules of this
 * rule's target, this one included, leave one and withhold the other. doc: the document to
 * store. */
pd_status_t pd_op_rule_twins(pd_op_call_t *call, const char *id, const json_t *doc,
                             json_t *warnings);

#endif
