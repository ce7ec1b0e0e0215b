/* The labels of connections: unique among shared ones, among a member's own, between these two, and beside the names of toolboxes. */
#include <string.h>

#include <apr_strings.h>

#include "op_connections_private.h"

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_snapshot.h"

static int is_reserved(const pd_op_call_t *call, const char *label)
{
    const pd_config_t *config = call->core->config;
    int i;

    if (config->control_prefix != NULL && strcmp(config->control_prefix, label) == 0) {
        return 1;
    }
    for (i = 0; config->reserved_labels != NULL && i < config->reserved_labels->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(config->reserved_labels, i, const char *), label) == 0) {
            return 1;
        }
    }
    return 0;
}

/* One text for all: who has it is nobody's business. */
pd_status_t pd_op_connections_label_taken(pd_op_call_t *call)
{
    return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Choose another label.",
                    "This label is taken: connections, toolboxes and reserved labels share one "
                    "name space.");
}

/* What begins the names of a toolbox's tools can't begin those of a connection's. */
static pd_status_t check_no_toolbox(pd_op_call_t *call, const char *label)
{
    pd_object_t *toolbox = NULL;
    pd_status_t status = pd_tx_find(
        call->tx, "toolbox", apr_pstrcat(call->pool, "name:", label, (char *)NULL), &toolbox);

    return status == PD_E_NOT_FOUND ? PD_OK
           : status == PD_OK        ? pd_op_connections_label_taken(call)
                                    : status;
}

/* No member's own connection has the label, which no single key tells. Those in use stand in the
 * policy by label; the few that can't be used have theirs nonetheless. */
static pd_status_t check_no_own_label(pd_op_call_t *call, const char *label)
{
    const pd_ground_t *ground = call->snapshot->ground;
    apr_hash_index_t *i;

    if (apr_hash_get(ground->any_label, label, APR_HASH_KEY_STRING) != NULL) {
        return pd_op_connections_label_taken(call);
    }
    for (i = apr_hash_first(call->pool, ground->left_out); i != NULL; i = apr_hash_next(i)) {
        pd_object_t *other = NULL;
        pd_status_t status = pd_tx_get(call->tx, "connection", apr_hash_this_key(i), &other);
        const char *taken = status == PD_OK ? mcp_json_str(other->doc, "label") : NULL;

        if (status != PD_OK && status != PD_E_NOT_FOUND) {
            return status;
        }
        if (taken != NULL && strcmp(taken, label) == 0) {
            return pd_op_connections_label_taken(call);
        }
    }
    return PD_OK;
}

static pd_status_t check_no_shared_label(pd_op_call_t *call, const char *label)
{
    pd_object_t *other = NULL;
    pd_status_t status =
        pd_tx_find(call->tx, "connection", pd_op_connections_key(NULL, label, call->pool), &other);

    return status == PD_E_NOT_FOUND ? PD_OK
           : status == PD_OK        ? pd_op_connections_label_taken(call)
                                    : status;
}

static pd_status_t check_form(pd_op_call_t *call, const char *label)
{
    if (!mcp_name_is_label(label)) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "For example notion-legal",
                        "A label or a toolbox's name has 1 to 32 characters a-z, 0-9 and inner "
                        "dashes.");
    }
    if (is_reserved(call, label)) {
        return pd_op_connections_label_taken(call);
    }
    return PD_OK;
}

pd_status_t pd_op_connections_label_free(pd_op_call_t *call, const char *label)
{
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = check_form(call, label);
    }
    if (status == PD_OK) {
        status = check_no_shared_label(call, label);
    }
    return status == PD_OK ? check_no_own_label(call, label) : status;
}

pd_status_t pd_op_connections_check_label(pd_op_call_t *call, const char *label, const char *owner)
{
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = check_form(call, label);
    }
    if (status == PD_OK) {
        status = check_no_toolbox(call, label);
    }
    if (status != PD_OK) {
        return status;
    }
    return owner != NULL ? check_no_shared_label(call, label) : check_no_own_label(call, label);
}
