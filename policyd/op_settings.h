/* Handlers of the settings resource; what settings exist is pd_settings.h. */
#ifndef PD_OP_SETTINGS_H
#define PD_OP_SETTINGS_H

#include "pd_ops.h"

pd_status_t pd_op_settings_list(pd_op_call_t *call);
pd_status_t pd_op_settings_get(pd_op_call_t *call);
pd_status_t pd_op_settings_set(pd_op_call_t *call);
pd_status_t pd_op_settings_unset(pd_op_call_t *call);

#endif
