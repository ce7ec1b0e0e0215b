/* tools lint: see op_lint.h. A page holds whole connectors: the findings of one are not parted. */
#include "op_lint.h"

#include <string.h>

#include "../proto/mcp_body.h"
#include "op_connectors_private.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_lint.h"

#define STEP 10 /* connectors read at once: they are large */

/* Findings on what the actor sees of a connector. */
static pd_status_t lint_one(pd_op_call_t *call, const pd_object_t *object, json_t *findings)
{
    pd_subject_t subject = pd_op_subject(call->actor);
    json_t *seen = json_array();
    json_t *operation;
    json_t *file;
    pd_op_sight_t sight;
    size_t i;

    pd_op_sight_begin(call, &subject, object->id, &sight);
    json_array_foreach(json_object_get(object->doc, "operations"), i, operation)
    {
        if (mcp_json_str(operation, "id") != NULL && mcp_json_str(operation, "classification") != NULL &&
            mcp_json_str(operation, "path") != NULL && pd_op_sight_has(&sight, operation)) {
            (void)json_array_append_new(seen, json_incref(operation)); /* advice: may be lost */
        }
    }
    file = json_pack("{s:s*,s:o}", "slug", mcp_json_str(object->doc, "slug"), "operations", seen);
    if (file == NULL) {
        return PD_E_NOMEM;
    }
    pd_lint(file, call->pool, findings);
    json_decref(file);
    return pd_boot_left_ms(call->deadline) > 0 ? PD_OK : PD_E_TIMEOUT;
}

static int is_cursor(const char *cursor)
{
    return strncmp(cursor, "con_", 4) == 0 && strlen(cursor) < 48;
}

pd_status_t pd_op_tools_lint(pd_op_call_t *call)
{
    const char *named = pd_op_text(call, "connector");
    const char *after = pd_op_text(call, "cursor");
    size_t limit = pd_op_limit(call);
    json_t *findings = pd_op_keep(call, json_array());
    pd_object_t *one = NULL;
    int is_last = 0;
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK && named != NULL) {
        status = pd_op_connector_seen(call, named, &one);
        if (status == PD_OK) {
            status = lint_one(call, one, findings);
        }
        return status == PD_OK ? pd_op_items(call, json_incref(findings), NULL) : status;
    }
    if (status == PD_OK && after != NULL && !is_cursor(after)) {
        return pd_op_bad_cursor(call);
    }
    while (status == PD_OK && !is_last && json_array_size(findings) < limit) {
        apr_array_header_t *step = NULL;
        int i;

        status = pd_tx_list(call->tx, PD_OP_CONNECTOR, NULL, after, STEP, &step);
        is_last = status != PD_OK || step->nelts < STEP;
        for (i = 0; status == PD_OK && i < step->nelts && json_array_size(findings) < limit; i++) {
            const pd_object_t *object = APR_ARRAY_IDX(step, i, pd_object_t *);

            status = lint_one(call, object, findings);
            after = object->id;
            is_last = is_last && i == step->nelts - 1;
        }
    }
    if (status != PD_OK) {
        return status;
    }
    return pd_op_items(call, json_incref(findings), is_last ? NULL : after);
}
