/* connectors import, review, accept, dismiss: see op_import.h. One transaction whatever the number of files. */
#include "op_import.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_connectors_private.h"
#include "op_find.h"
#include "op_import_diff.h"
#include "op_reach.h"
#include "pd_catalog.h"
#include "pd_lint.h"
#include "pd_snapshot.h"

#define MAX_TOLD     200 /* of each list of an answer; a number tells how many more there are */
#define MAX_WARNINGS 50
#define CALL_OPERATIONS 5000 /* of all files of a call together */

/* --- what rules and toolboxes name ---------------------------------------------------- */

/* Operations of one connector that a restriction or an entry names. */
static apr_hash_t *named_operations(const pd_op_call_t *call, const char *connector_id)
{
    const apr_array_header_t *toolboxes = call->snapshot->toolboxes->sorted;
    apr_hash_t *named = apr_hash_make(call->pool);
    apr_hash_index_t *at;
    int i;
    int k;

    for (at = apr_hash_first(call->pool, call->snapshot->rulebook->rules); at != NULL;
         at = apr_hash_next(at)) {
        const pd_rule_t *rule = apr_hash_this_val(at);
        const pd_rule_part_t *part = apr_hash_get(rule->parts, connector_id, APR_HASH_KEY_STRING);

        for (i = 0; part != NULL && i < part->operations->nelts; i++) {
            const char *id = APR_ARRAY_IDX(part->operations, i, const char *);

            apr_hash_set(named, id, APR_HASH_KEY_STRING, id);
        }
    }
    for (i = 0; i < toolboxes->nelts; i++) {
        const pd_toolbox_t *toolbox = APR_ARRAY_IDX(toolboxes, i, const pd_toolbox_t *);

        for (k = 0; k < toolbox->entries->nelts; k++) {
            const pd_entry_t *entry = &APR_ARRAY_IDX(toolbox->entries, k, pd_entry_t);

            if (strcmp(entry->connector_id, connector_id) == 0) {
                apr_hash_set(named, entry->operation_id, APR_HASH_KEY_STRING, entry->operation_id);
            }
        }
    }
    return named;
}

static int is_named(void *baton, const char *operation_id)
{
    return apr_hash_get(baton, operation_id, APR_HASH_KEY_STRING) != NULL;
}

/* --- answers ---------------------------------------------------------------------------- */

/* Sets a list, cut, and how many rows more there are. */
static int put_list(json_t *shown, const char *name, const json_t *list, const char *more, size_t max)
{
    json_t *cut = json_array();
    size_t count = json_array_size(list);
    int failed = 0;
    size_t i;

    for (i = 0; i < count && i < max; i++) {
        failed |= json_array_append_new(cut, json_incref(json_array_get(list, i)));
    }
    failed |= json_object_set_new(shown, name, cut);
    if (count > max) {
        failed |= json_object_set_new(shown, more, json_integer((json_int_t)(count - max)));
    }
    return failed;
}

static int put_diff(json_t *shown, const pd_import_diff_t *diff)
{
    return put_list(shown, "added", diff->added, "more_added", MAX_TOLD) |
           put_list(shown, "removed", diff->removed, "more_removed", MAX_TOLD) |
           put_list(shown, "changed", diff->changed, "more_changed", MAX_TOLD) |
           put_list(shown, "reclassified", diff->reclassified, "more_reclassified", MAX_TOLD) |
           put_list(shown, "held", diff->held, "more_held", MAX_TOLD);
}

/* {"connector","slug","action","operations","by_class"}; new reference. doc: what is in force. */
static json_t *show(const char *id, const char *action, const json_t *doc)
{
    return json_pack("{s:s,s:s,s:s,s:I,s:o}", "connector", id, "slug", mcp_json_str(doc, "slug"),
                     "action", action, "operations",
                     (json_int_t)json_array_size(json_object_get(doc, "operations")), "by_class",
                     pd_op_connectors_classes(doc));
}

/* --- putting into force ------------------------------------------------------------------ */

/* Keeps what waits, or forgets what no longer does. */
static pd_status_t keep_pending(pd_op_call_t *call, const char *id, json_t *doc, const json_t *source,
                                int waits)
{
    pd_object_t *before = NULL;
    pd_status_t status = pd_tx_get(call->tx, PD_OP_CONNECTOR_PENDING, id, &before);
    json_t *kept;

    if (status != PD_OK && status != PD_E_NOT_FOUND) {
        return status;
    }
    if (!waits) {
        return status == PD_OK ? pd_tx_delete(call->tx, PD_OP_CONNECTOR_PENDING, id, 0) : PD_OK;
    }
    kept = pd_op_keep(call, json_pack("{s:O,s:s*,s:O*}", "file", doc, "by", pd_op_actor(call), "source",
                                      (json_t *)(uintptr_t)source));
    if (kept == NULL) {
        return PD_E_NOMEM;
    }
    return status == PD_OK
               ? pd_tx_update(call->tx, PD_OP_CONNECTOR_PENDING, id, NULL, kept, NULL, 0, NULL)
               : pd_tx_insert(call->tx, PD_OP_CONNECTOR_PENDING, id, NULL, kept, NULL);
}

/* A document put together of two was judged by nobody yet. */
static pd_status_t check_merged(pd_op_call_t *call, const json_t *doc)
{
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    json_t *file = NULL;
    json_t *again = NULL;
    pd_status_t status = pd_catalog_file(doc, &file);

    if (status == PD_OK) {
        status = pd_catalog_check(file, &again, &fault);
    }
    json_decref(file);
    json_decref(again);
    return status != PD_E_INVALID
               ? status
               : pd_fault(&call->fault, MCP_CODE_CONFLICT,
                          "Accept the operations that are held back too, or dismiss the file.",
                          "What is held back does not fit what is new: %.300s", fault.message);
}

/* Applies a compared file to a connector that exists; *ret: how it is shown, new reference. expected: its revision, or 0. */
static pd_status_t apply(pd_op_call_t *call, const pd_object_t *old, json_t *doc, const json_t *source,
                         const pd_import_diff_t *diff, int64_t expected, json_t **ret)
{
    size_t held = json_array_size(diff->held);
    int is_still = json_equal(diff->doc, old->doc);
    json_t *needs_reauth = json_array();
    int64_t revision = old->revision;
    pd_status_t status = PD_OK;
    json_t *shown;

    if (expected != 0 && expected != old->revision) {
        status = PD_E_REVISION;
    }
    if (status == PD_OK && !is_still && held > 0) {
        status = check_merged(call, diff->doc);
    }
    if (status == PD_OK && !is_still) {
        status = pd_op_connectors_replace(call, old, pd_op_keep(call, json_incref(diff->doc)), held,
                                          expected, needs_reauth, &revision);
    } else if (status == PD_OK) {
        status = pd_op_connectors_pending(call, old, held);
    }
    if (status == PD_OK) {
        status = keep_pending(call, old->id, doc, source, held > 0);
    }
    if (status != PD_OK) {
        json_decref(needs_reauth);
        return status;
    }
    shown = show(old->id, is_still ? (held > 0 ? "held" : "unchanged") : "updated", diff->doc);
    if (json_object_set_new(shown, "revision", json_integer((json_int_t)revision)) != 0 ||
        put_diff(shown, diff) != 0 ||
        put_list(shown, "needs_reauth", needs_reauth, "more_needs_reauth", MAX_TOLD) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    json_decref(needs_reauth);
    *ret = shown;
    return shown != NULL ? PD_OK : PD_E_NOMEM;
}

/* Compares with what is there; accepted: array, or NULL with accepts_all as it is. */
static pd_status_t compare(pd_op_call_t *call, const pd_object_t *old, const json_t *doc,
                           const json_t *accepted, int accepts_all, pd_import_diff_t *ret)
{
    pd_import_terms_t terms = {accepts_all, accepted, is_named, pd_op_connectors_same_auth,
                               named_operations(call, old->id)};

    return pd_import_diff(old->doc, doc, &terms, call->pool, ret);
}

/* --- import ------------------------------------------------------------------------------- */

/* A slug that is taken by what the actor does not wholly see stays what it is. */
static pd_status_t update_one(pd_op_call_t *call, const pd_object_t *found, json_t *doc, json_t **ret)
{
    const json_t *accept = json_object_get(call->args, "accept");
    pd_object_t *old = NULL;
    pd_import_diff_t diff;
    pd_status_t status = pd_op_connectors_whole(call, found->id, &old);

    if (status != PD_OK && call->fault.code == MCP_CODE_NOT_FOUND) {
        call->fault.code = MCP_CODE_NONE;
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Choose another slug.",
                        "A connector with the slug \"%s\" exists.", mcp_json_str(doc, "slug"));
    }
    if (status == PD_OK) {
        status = compare(call, old, doc, json_is_array(accept) ? accept : NULL, json_is_string(accept), &diff);
    }
    if (status != PD_OK) {
        return status;
    }
    status = apply(call, old, doc, json_object_get(call->args, "source"), &diff, 0, ret);
    pd_import_diff_clear(&diff);
    return status;
}

static pd_status_t import_one(pd_op_call_t *call, const json_t *file, json_t **ret)
{
    pd_object_t *found = NULL;
    const char *id = NULL;
    json_t *doc = NULL;
    pd_status_t status = pd_catalog_check(file, &doc, &call->fault);

    if (status != PD_OK) {
        return status;
    }
    (void)pd_op_keep(call, doc);
    status = pd_tx_find(call->tx, PD_OP_CONNECTOR,
                        apr_pstrcat(call->pool, "slug:", mcp_json_str(doc, "slug"), (char *)NULL), &found);
    if (status == PD_OK) {
        return update_one(call, found, doc, ret);
    }
    if (status != PD_E_NOT_FOUND) {
        return status;
    }
    status = pd_op_connectors_insert(call, doc, &id);
    if (status == PD_OK) {
        *ret = show(id, "created", doc);
        status = *ret != NULL ? PD_OK : PD_E_NOMEM;
    }
    return status;
}

/* Warnings of all files, cut; new reference. */
static json_t *warnings_of(const pd_op_call_t *call, const json_t *files)
{
    json_t *warnings = json_array();
    json_t *file;
    size_t i;

    json_array_foreach(files, i, file)
    {
        pd_lint(file, call->pool, warnings);
    }
    return warnings;
}

static pd_status_t count_operations(pd_op_call_t *call, const json_t *files)
{
    size_t count = 0;
    json_t *file;
    size_t i;

    json_array_foreach(files, i, file)
    {
        count += json_array_size(json_object_get(file, "operations"));
    }
    return count <= CALL_OPERATIONS
               ? PD_OK
               : pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                          "Import the parts of the application that people need (--include), or one connector a call.",
                          "/connectors: %lu operations; at most %d are taken at once", (unsigned long)count,
                          CALL_OPERATIONS);
}

pd_status_t pd_op_connectors_import(pd_op_call_t *call)
{
    const json_t *files = json_object_get(call->args, "connectors");
    json_t *shown = json_array();
    json_t *warnings;
    json_t *answer;
    json_int_t operations = 0;
    const char *ids = "";
    pd_status_t status = count_operations(call, files);
    size_t i;

    for (i = 0; status == PD_OK && i < json_array_size(files); i++) {
        json_t *one = NULL;

        status = import_one(call, json_array_get(files, i), &one);
        if (status == PD_OK) {
            operations += mcp_json_int(one, "operations", 0);
            ids = apr_pstrcat(call->pool, ids, " connector=", mcp_json_str(one, "connector"), (char *)NULL);
            status = json_array_append_new(shown, one) == 0 ? PD_OK : PD_E_NOMEM;
        }
    }
    if (status != PD_OK) {
        json_decref(shown);
        return status;
    }
    pd_op_detail(call, "%s", ids + 1);
    warnings = warnings_of(call, files);
    answer = json_pack("{s:o,s:I}", "connectors", shown, "operations", operations);
    if (answer != NULL && put_list(answer, "warnings", warnings, "more_warnings", MAX_WARNINGS) != 0) {
        json_decref(answer);
        answer = NULL;
    }
    json_decref(warnings);
    return pd_op_answer(call, answer);
}

/* --- what waits ----------------------------------------------------------------------------- */

/* The connector that `connector` names, all of it seen, and what waits for it. */
static pd_status_t find_pending(pd_op_call_t *call, pd_object_t **ret_connector, pd_object_t **ret)
{
    pd_status_t status = pd_op_connectors_whole(call, pd_op_text(call, "connector"), ret_connector);

    if (status != PD_OK) {
        return status;
    }
    status = pd_tx_get(call->tx, PD_OP_CONNECTOR_PENDING, (*ret_connector)->id, ret);
    return status != PD_E_NOT_FOUND
               ? status
               : pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connectors list shows `pending` where something does.",
                          "Nothing of this connector waits to be accepted.");
}

pd_status_t pd_op_connectors_review(pd_op_call_t *call)
{
    pd_object_t *connector = NULL;
    pd_object_t *pending = NULL;
    pd_import_diff_t diff;
    json_t *shown;
    pd_status_t status = find_pending(call, &connector, &pending);

    if (status == PD_OK) {
        status = compare(call, connector, json_object_get(pending->doc, "file"), NULL, 0, &diff);
    }
    if (status != PD_OK) {
        return status;
    }
    shown = json_pack("{s:s,s:s,s:s*,s:O*}", "connector", connector->id, "slug",
                      mcp_json_str(connector->doc, "slug"), "by", mcp_json_str(pending->doc, "by"),
                      "source", json_object_get(pending->doc, "source"));
    if (put_diff(shown, &diff) != 0 || pd_op_stamp(shown, pending) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    pd_import_diff_clear(&diff);
    return pd_op_answer(call, shown);
}

/* Everything that is accepted must be held back: a typing error accepts nothing. */
static pd_status_t check_accepted(pd_op_call_t *call, const json_t *accepted, const json_t *held)
{
    json_t *word;
    size_t i;

    json_array_foreach(accepted, i, word)
    {
        int is_held = 0;
        json_t *row;
        size_t k;

        json_array_foreach(held, k, row)
        {
            is_held |= json_equal(word, json_object_get(row, "operation"));
        }
        if (!is_held) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "connectors review lists what is.",
                            "/operations/%lu: \"%.100s\" is not held back", (unsigned long)i,
                            json_string_value(word));
        }
    }
    return PD_OK;
}

pd_status_t pd_op_connectors_accept(pd_op_call_t *call)
{
    const json_t *accepted = json_object_get(call->args, "operations");
    pd_object_t *connector = NULL;
    pd_object_t *pending = NULL;
    pd_import_diff_t diff;
    json_t *file;
    json_t *shown = NULL;
    pd_status_t status = find_pending(call, &connector, &pending);

    if (status != PD_OK) {
        return status;
    }
    file = json_object_get(pending->doc, "file");
    status = compare(call, connector, file, NULL, 0, &diff);
    if (status == PD_OK) {
        status = check_accepted(call, accepted, diff.held);
        pd_import_diff_clear(&diff);
    }
    if (status == PD_OK) {
        status = compare(call, connector, file, accepted, accepted == NULL, &diff);
    }
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "connector=%s", connector->id);
    status = apply(call, connector, file, json_object_get(pending->doc, "source"), &diff,
                   pd_op_if_revision(call), &shown);
    pd_import_diff_clear(&diff);
    return status == PD_OK ? pd_op_answer(call, shown) : status;
}

pd_status_t pd_op_connectors_dismiss(pd_op_call_t *call)
{
    pd_object_t *connector = NULL;
    pd_object_t *pending = NULL;
    pd_status_t status = find_pending(call, &connector, &pending);

    if (status == PD_OK) {
        status = pd_tx_delete(call->tx, PD_OP_CONNECTOR_PENDING, connector->id, 0);
    }
    if (status == PD_OK) {
        status = pd_op_connectors_pending(call, connector, 0);
    }
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "connector=%s", connector->id);
    return pd_op_answer(call, json_pack("{s:s,s:b}", "connector", connector->id, "dismissed", 1));
}
