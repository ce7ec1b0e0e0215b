/* What importing shares with the other handlers of connectors (op_connectors.h): how a connector is written, and who may. Inside a unit of
 * the write lane. Documents are normalised ones (pd_catalog_check), kept by the caller. */
#ifndef PD_OP_CONNECTORS_PRIVATE_H
#define PD_OP_CONNECTORS_PRIVATE_H

#include "pd_ops.h"

#define PD_OP_CONNECTOR "connector"
#define PD_OP_CONNECTOR_SUMMARY "connector_summary"
#define PD_OP_CONNECTOR_PENDING "connector_pending" /* {"file": the whole new document, "source"?}, id: the connector's */

/* {"read": n, "write": n, "destructive": n, "forbidden": n} of a document; new reference. */
json_t *pd_op_connectors_classes(const json_t *doc);

/* Whether a credential for the one scheme is sent in the same way, and fetched from the same place, by the other. */
int pd_op_connectors_same_auth(const json_t *a, const json_t *b);

/* The connector to be replaced or deleted, of which the actor must see everything; faults as connectors update has them. */
pd_status_t pd_op_connectors_whole(pd_op_call_t *call, const char *named, pd_object_t **ret);

/* Writes a new one with its summary. *ret_id in the call's pool. Fault CONFLICT where the slug is taken. */
pd_status_t pd_op_connectors_insert(pd_op_call_t *call, json_t *doc, const char **ret_id);

/* Replaces one, lets its connections follow, and adds the labels of those that lost their credential to needs_reauth (an array).
 * pending: operations held back, for its summary. expected: the revision it must have, 0 for any. */
pd_status_t pd_op_connectors_replace(pd_op_call_t *call, const pd_object_t *old, json_t *doc, size_t pending,
                                     int64_t expected, json_t *needs_reauth, int64_t *ret_revision);

/* Writes the summary anew after `pending` alone has changed. */
pd_status_t pd_op_connectors_pending(pd_op_call_t *call, const pd_object_t *object, size_t pending);

#endif
