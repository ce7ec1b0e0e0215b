/* Handlers of the connections resource. A connection is {"connector": id,
 * "connector_slug","label","shared", "toolbox_only","variables","base","state"}, owner its member
 * or none when shared; `base` is the base URL with the variables filled in, `state` is `ready` or
 * `needs_reauth`. Keys: "label:LABEL" when shared, "own:MEMBER:LABEL" else. The
 * credential stands sealed beside it, bound to the connection's id and origin. */
#ifndef PD_OP_CONNECTIONS_H
#define PD_OP_CONNECTIONS_H

#include "pd_ops.h"

pd_status_t pd_op_connections_list(pd_op_call_t *call);
pd_status_t pd_op_connections_get(pd_op_call_t *call);
pd_status_t pd_op_connections_create(pd_op_call_t *call);
pd_status_t pd_op_connections_update(pd_op_call_t *call);
pd_status_t pd_op_connections_delete(pd_op_call_t *call);

/* Alternative key of a connection with this label; owner NULL: shared. */
const char *pd_op_connections_key(const char *owner, const char *label, apr_pool_t *pool);

/* PD_OK when the name can be a toolbox's: it has the form of a label, is not reserved, and no
 * connection, shared or a member's own, has it for its label. Other toolboxes are left to their
 * unique key. Write lane. */
pd_status_t pd_op_connections_label_free(pd_op_call_t *call, const char *label);

#endif
