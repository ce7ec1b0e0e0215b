/* What the files of the connections resource share: showing, finding and who may change what; labels. Handlers' rules: pd_ops.h. */
#ifndef PD_OP_CONNECTIONS_PRIVATE_H
#define PD_OP_CONNECTIONS_PRIVATE_H

#include "op_connections.h"

/* A connection as it is answered; new reference, NULL when there is no memory. */
json_t *pd_op_connections_show(const pd_op_call_t *call, const pd_object_t *object);
/* The one that the argument `connection` names: by id, else by label, the actor's own before a shared one; the fault of one that the
 * actor may not see is that of one that does not exist. */
pd_status_t pd_op_connections_find(pd_op_call_t *call, pd_object_t **ret);
int pd_op_connections_is_own(const pd_op_call_t *call, const pd_object_t *object);
/* Refuses an actor without connection:admin where it is needed. */
pd_status_t pd_op_connections_check_admin(pd_op_call_t *call, int is_needed);

/* PD_OK when the owner's (NULL: a shared) connection may have the label. In the write transaction, so that two creations can't both
 * find it free; the connection's own layer is left to its unique key. */
pd_status_t pd_op_connections_check_label(pd_op_call_t *call, const char *label, const char *owner);
/* The fault of a label that something has, or that is reserved: it does not tell which. */
pd_status_t pd_op_connections_label_taken(pd_op_call_t *call);

#endif
