/* Handlers of the connectors resource; rows are in pd_ops.c.
 *
 * Objects.  Kind "connector", id "con_…", key "slug:SLUG": the normalised document of
 * pd_catalog.h. Kind "connector_summary", same id, no keys: what a list shows, so that listing
 * never reads the operations of a large catalog. A connection (kind "connection") names its
 * connector by id in "connector", and holds "variables", "base" (the base URL expanded) and
 * "state" ("ready" or "needs_reauth"); see op_connections.h.
 *
 * Lanes.  create and update judge every operation: PD_LANE_WRITE or a job with a transaction; list
 * and get PD_LANE_JOB or, for small catalogs, any. */
#ifndef PD_OP_CONNECTORS_H
#define PD_OP_CONNECTORS_H

#include "pd_ops.h"

/* Arguments: {"query"?: substring of slug, label or description, "limit"?, "cursor"?}. */
pd_status_t pd_op_connectors_list(pd_op_call_t *call);

/* {"connector": id or slug} -> the connector file with "connector", "revision", "created_at",
 * "updated_at" and "by_class"; update takes it back as it is. */
pd_status_t pd_op_connectors_get(pd_op_call_t *call);

/* A connector file (pd_catalog_file_schema) ->
 * {"connector","revision","slug","operations":N,"by_class"}. */
pd_status_t pd_op_connectors_create(pd_op_call_t *call);

/* A connector file and {"connector": id or slug, "if_revision"?: N} -> as create, and
 * "needs_reauth": labels of connections whose credential was dropped. The slug stays. */
pd_status_t pd_op_connectors_update(pd_op_call_t *call);

/* {"connector": id or slug, "if_revision"?: N} -> {"connector","deleted":true}; conflict while
 * connections use it. */
pd_status_t pd_op_connectors_delete(pd_op_call_t *call);

#endif
