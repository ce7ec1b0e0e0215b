/* connectors list, get, create, update, delete: see op_connectors.h. A connector and its summary
 * are written together; what an update means for the connections made from it happens in the same
 * transaction. What the actor can't have is neither shown nor counted, and nobody replaces or deletes
 * what he does not see. */
#include "op_connectors.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_connections.h"
#include "op_connectors_private.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_catalog.h"
#include "pd_snapshot.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define KIND PD_OP_CONNECTOR
#define SUMMARY PD_OP_CONNECTOR_SUMMARY
#define STEP 200 /* connections read at once */

/* --- summaries --------------------------------------------------------------------- */

json_t *pd_op_connectors_classes(const json_t *doc)
{
    static const char *const names[] = {"read", "write", "destructive", "forbidden"};
    json_int_t counts[COUNT(names)] = {0};
    const json_t *op;
    size_t i;
    size_t k;

    json_array_foreach(json_object_get(doc, "operations"), i, op)
    {
        const char *klass = mcp_json_str(op, "classification");

        for (k = 0; k < COUNT(names); k++) {
            counts[k] += klass != NULL && strcmp(klass, names[k]) == 0;
        }
    }
    return json_pack("{s:I,s:I,s:I,s:I}", names[0], counts[0], names[1], counts[1], names[2],
                     counts[2], names[3], counts[3]);
}

/* pending: operations of a later import that are held back. */
static json_t *make_summary(const pd_op_call_t *call, const json_t *doc, size_t pending)
{
    json_int_t operations = (json_int_t)json_array_size(json_object_get(doc, "operations"));
    json_t *summary = json_pack(
        "{s:s,s:s,s:s*,s:s,s:s,s:I,s:o}", "slug", mcp_json_str(doc, "slug"), "label",
        mcp_json_str(doc, "label"), "description", mcp_json_str(doc, "description"), "base_url",
        mcp_json_str(doc, "base_url"), "auth", mcp_json_str(json_object_get(doc, "auth"), "type"),
        "operations", operations, "by_class", pd_op_connectors_classes(doc));

    if (summary != NULL && pending > 0) {
        (void)json_object_set_new(summary, "pending", json_integer((json_int_t)pending)); /* a hint */
    }
    return pd_op_keep(call, summary);
}

/* Answer of create and update; `needs_reauth` (stolen) may be NULL. */
static pd_status_t answer_write(pd_op_call_t *call, const char *id, int64_t revision,
                                const json_t *summary, json_t *needs_reauth)
{
    return pd_op_answer(call, json_pack("{s:s,s:I,s:s,s:O,s:O,s:o*}", "connector", id, "revision",
                                        (json_int_t)revision, "slug", mcp_json_str(summary, "slug"),
                                        "operations", json_object_get(summary, "operations"),
                                        "by_class", json_object_get(summary, "by_class"),
                                        "needs_reauth", needs_reauth));
}

/* --- list and get -------------------------------------------------------------------- */

static void look(const pd_op_call_t *call, const char *connector_id, pd_op_sight_t *ret)
{
    pd_subject_t subject = pd_op_subject(call->actor);

    pd_op_sight_begin(call, &subject, connector_id, ret);
}

/* {"operations","by_class"} as the actor may count them; new reference. */
static json_t *counts_seen(const pd_op_call_t *call, const pd_object_t *object)
{
    int by_class[MCP_CLASS_FORBIDDEN + 1];
    pd_op_sight_t sight;
    int count;

    look(call, object->id, &sight);
    count = pd_op_sight_count(&sight, by_class, NULL);
    if (count < 0) {
        return json_pack("{s:O*,s:O*}", "operations", json_object_get(object->doc, "operations"),
                         "by_class", json_object_get(object->doc, "by_class"));
    }
    return json_pack("{s:i,s:{s:i,s:i,s:i,s:i}}", "operations", count, "by_class", "read",
                     by_class[MCP_CLASS_READ], "write", by_class[MCP_CLASS_WRITE], "destructive",
                     by_class[MCP_CLASS_DESTRUCTIVE], "forbidden", by_class[MCP_CLASS_FORBIDDEN]);
}

static json_t *show_summary(const pd_op_call_t *call, const pd_object_t *object)
{
    static const char *const members[] = {"slug", "label", "description", "base_url", "auth", "pending"};
    json_t *shown = json_pack("{s:s}", "connector", object->id);
    json_t *counts = counts_seen(call, object);
    int failed = counts == NULL;
    size_t i;

    for (i = 0; i < COUNT(members); i++) {
        const json_t *value = json_object_get(object->doc, members[i]);

        if (value != NULL) {
            failed |= json_object_set_new(shown, members[i], json_deep_copy(value));
        }
    }
    failed |= json_object_update(shown, counts);
    json_decref(counts);
    if (failed != 0 || shown == NULL || pd_op_stamp(shown, object) != 0) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

/* baton: the query in lower case, or NULL. */
static int is_wanted(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    static const char *const searched[] = {"slug", "label", "description"};
    pd_subject_t subject = pd_op_subject(call->actor);
    const char *query = baton;
    int matches = query == NULL;
    size_t i;

    for (i = 0; !matches && i < COUNT(searched); i++) {
        const char *text = mcp_json_str(object->doc, searched[i]);

        matches = text != NULL && strstr(pd_op_lower(call, text), query) != NULL;
    }
    return matches && pd_op_sees(call, &subject, object->id);
}

pd_status_t pd_op_connectors_list(pd_op_call_t *call)
{
    const char *query = pd_op_text(call, "query");
    const pd_op_list_t list = {
        SUMMARY,     "con_", NULL, is_wanted, query != NULL ? pd_op_lower(call, query) : NULL,
        show_summary};
    pd_status_t status = pd_op_has_policy(call);

    return status == PD_OK ? pd_op_list_answer(call, &list) : status;
}

/* What get adds to the file, and update therefore ignores. */
static const char *const stamps[] = {"connector",  "if_revision", "revision",
                                     "created_at", "updated_at",  "by_class"};

/* What is not even named can't be withheld from anybody. */
static int is_damaged(const json_t *operation)
{
    return mcp_json_str(operation, "id") == NULL ||
           mcp_json_str(operation, "classification") == NULL ||
           mcp_json_str(operation, "path") == NULL;
}

/* The document with the operations alone that the actor sees, the others' values shared with it; kept. NULL: out
 * of memory. *ret_all: none was left out that could be read. */
static json_t *document_seen(const pd_op_call_t *call, const pd_object_t *object, int *ret_all)
{
    const json_t *operations = json_object_get(object->doc, "operations");
    json_t *doc = pd_op_keep(call, json_is_object(object->doc) ? json_copy(object->doc)
                                                               : json_object());
    json_t *seen = json_array();
    pd_op_sight_t sight;
    size_t damaged = 0;
    int failed = 0;
    size_t i;

    look(call, object->id, &sight);
    for (i = 0; i < json_array_size(operations); i++) {
        json_t *op = json_array_get(operations, i);

        if (is_damaged(op)) {
            damaged++;
        } else if (pd_op_sight_has(&sight, op)) {
            failed |= json_array_append_new(seen, json_incref(op));
        }
    }
    if (damaged > 0) {
        pd_op_log_damaged("operation of", object->id);
    }
    *ret_all = json_array_size(seen) + damaged == json_array_size(operations);
    failed |= json_object_set_new(doc, "operations", seen);
    return failed == 0 ? doc : NULL;
}

pd_status_t pd_op_connectors_get(pd_op_call_t *call)
{
    pd_object_t *object = NULL;
    json_t *file = NULL;
    json_t *doc = NULL;
    json_t *shown;
    int is_whole = 0;
    pd_status_t status = pd_op_connector_seen(call, pd_op_text(call, "connector"), &object);

    if (status == PD_OK) {
        doc = document_seen(call, object, &is_whole);
        status = doc != NULL ? pd_catalog_file(doc, &file) : PD_E_NOMEM;
    }
    if (status == PD_E_CORRUPT) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                        "connectors update with its file replaces it.",
                        "This connector is damaged.");
    }
    if (status != PD_OK) {
        return status;
    }
    shown = json_pack("{s:s}", "connector", object->id);
    if (json_object_update(shown, file) != 0 || pd_op_stamp(shown, object) != 0 ||
        json_object_set_new(shown, "by_class", pd_op_connectors_classes(doc)) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    json_decref(file);
    return pd_op_answer(call, shown);
}

/* --- create --------------------------------------------------------------------------- */

static const char *slug_key(const pd_op_call_t *call, const json_t *doc)
{
    return apr_pstrcat(call->pool, "slug:", mcp_json_str(doc, "slug"), (char *)NULL);
}

pd_status_t pd_op_connectors_insert(pd_op_call_t *call, json_t *doc, const char **ret_id)
{
    const char *id = pd_store_new_id("con", call->pool);
    const char *keys[2] = {slug_key(call, doc), NULL};
    json_t *summary = make_summary(call, doc, 0);
    pd_status_t status = summary == NULL || id == NULL
                             ? PD_E_NOMEM
                             : pd_tx_insert(call->tx, KIND, id, NULL, doc, keys);

    if (status == PD_E_CONFLICT) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "connectors update replaces it.",
                        "A connector with the slug \"%s\" exists.", mcp_json_str(doc, "slug"));
    }
    if (status == PD_OK) {
        status = pd_tx_insert(call->tx, SUMMARY, id, NULL, summary, NULL);
    }
    *ret_id = id;
    return status;
}

pd_status_t pd_op_connectors_create(pd_op_call_t *call)
{
    const char *id = NULL;
    json_t *doc = NULL;
    pd_status_t status = pd_catalog_check(call->args, &doc, &call->fault);

    if (status != PD_OK) {
        return status;
    }
    (void)pd_op_keep(call, doc); /* the pool's from here */
    status = pd_op_connectors_insert(call, doc, &id);
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "connector=%s revision=1", id);
    return answer_write(call, id, 1, make_summary(call, doc, 0), NULL);
}

/* --- connections of a connector ---------------------------------------------------------- */

/* Called for each connection of a connector; anything but PD_OK ends the walk. */
typedef pd_status_t each_fn(pd_op_call_t *call, const pd_object_t *connection, void *baton);

static pd_status_t each_connection(pd_op_call_t *call, const char *connector_id, each_fn *each,
                                   void *baton)
{
    const char *after = NULL;

    for (;;) {
        apr_array_header_t *step = NULL;
        pd_status_t status = pd_tx_list(call->tx, "connection", NULL, after, STEP, &step);
        int i;

        if (status == PD_OK && pd_boot_left_ms(call->deadline) <= 0) {
            status = PD_E_TIMEOUT;
        }
        for (i = 0; status == PD_OK && i < step->nelts; i++) {
            const pd_object_t *connection = APR_ARRAY_IDX(step, i, pd_object_t *);
            const char *connector = mcp_json_str(connection->doc, "connector");

            if (connector != NULL && strcmp(connector, connector_id) == 0) {
                status = each(call, connection, baton);
            }
            after = connection->id;
        }
        if (status != PD_OK || step->nelts < STEP) {
            return status;
        }
    }
}

/* --- update --------------------------------------------------------------------------------- */

typedef struct replacement {
    const json_t *doc; /* the new one */
    int has_other_auth;
    json_t *needs_reauth; /* labels */
} replacement_t;

int pd_op_connectors_same_auth(const json_t *a, const json_t *b)
{
    static const char *const members[] = {"type", "in", "name", "prefix"};
    size_t i;

    for (i = 0; i < COUNT(members); i++) {
        const char *x = mcp_json_str(a, members[i]);
        const char *y = mcp_json_str(b, members[i]);

        if ((x == NULL) != (y == NULL) || (x != NULL && strcmp(x, y) != 0)) {
            return 0;
        }
    }
    return 1;
}

/* The call's arguments without what is not of the file; kept. */
static json_t *file_of_arguments(const pd_op_call_t *call)
{
    json_t *file = pd_op_copy(call, call->args);
    size_t i;

    for (i = 0; file != NULL && i < COUNT(stamps); i++) {
        (void)json_object_del(file, stamps[i]); /* absent is fine */
    }
    return file;
}

/* Whether a connection's credential still is for this scheme and this origin. */
static int keeps_credential(const pd_op_call_t *call, const replacement_t *r,
                            const pd_object_t *connection, const char *base)
{
    const char *old_base = mcp_json_str(connection->doc, "base");
    const char *old_origin = old_base == NULL ? NULL : pd_catalog_origin(old_base, call->pool);
    const char *origin = pd_catalog_origin(base, call->pool);

    return !r->has_other_auth && old_origin != NULL && origin != NULL &&
           strcmp(old_origin, origin) == 0;
}

/* Drops the credential and says so in the connection's document. */
static pd_status_t drop_credential(pd_op_call_t *call, replacement_t *r,
                                   const pd_object_t *connection, json_t *doc)
{
    int needs = pd_catalog_needs_credential(r->doc);
    pd_status_t status = pd_tx_secret_delete(call->tx, "connection", connection->id);

    if (status != PD_OK && status != PD_E_NOT_FOUND) {
        return status;
    }
    if (json_object_set_new(doc, "state", json_string(needs ? "needs_reauth" : "ready")) != 0) {
        return PD_E_NOMEM;
    }
    if (needs && json_array_append_new(r->needs_reauth,
                                       json_string(mcp_json_str(connection->doc, "label"))) != 0) {
        return PD_E_NOMEM;
    }
    return PD_OK;
}

static pd_status_t follow(pd_op_call_t *call, const pd_object_t *connection, void *baton)
{
    replacement_t *r = baton;
    json_t *doc = pd_op_copy(call, connection->doc);
    const char *label = mcp_json_str(connection->doc, "label");
    const char *keys[2] = {NULL, NULL};
    const char *base = NULL;
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    pd_status_t status;

    if (label == NULL) {
        pd_op_log_damaged("connection", connection->id);
        return PD_OK; /* it serves nobody until it has one, and its credential is for its origin */
    }
    if (doc == NULL) {
        return PD_E_NOMEM;
    }
    status =
        pd_catalog_base_url(r->doc, json_object_get(doc, "variables"), call->pool, &base, &fault);
    if (status != PD_OK) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                        "Change or delete that connection first, or keep the variables.",
                        "The connection %s (%s) does not fit the new base_url: %.300s",
                        connection->id, label, fault.message);
    }
    if (!keeps_credential(call, r, connection, base)) {
        status = drop_credential(call, r, connection, doc);
    }
    if (status == PD_OK && json_object_set_new(doc, "base", json_string(base)) != 0) {
        status = PD_E_NOMEM;
    }
    if (status != PD_OK || json_equal(doc, connection->doc)) {
        return status;
    }
    keys[0] = pd_op_connections_key(connection->owner, label, call->pool);
    return pd_tx_update(call->tx, "connection", connection->id, connection->owner, doc, keys, 0,
                        NULL);
}

pd_status_t pd_op_connectors_pending(pd_op_call_t *call, const pd_object_t *object, size_t pending)
{
    json_t *summary = make_summary(call, object->doc, pending);

    return summary == NULL ? PD_E_NOMEM
                           : pd_tx_update(call->tx, SUMMARY, object->id, NULL, summary, NULL, 0, NULL);
}

pd_status_t pd_op_connectors_replace(pd_op_call_t *call, const pd_object_t *old, json_t *doc, size_t pending,
                                     int64_t expected, json_t *needs_reauth, int64_t *ret_revision)
{
    const char *keys[2] = {slug_key(call, doc), NULL};
    json_t *summary = make_summary(call, doc, pending);
    replacement_t r = {.doc = doc, .needs_reauth = needs_reauth};
    pd_status_t status = summary == NULL
                             ? PD_E_NOMEM
                             : pd_tx_update(call->tx, KIND, old->id, NULL, doc, keys, expected,
                                            ret_revision);

    r.has_other_auth = !pd_op_connectors_same_auth(json_object_get(old->doc, "auth"),
                                                   json_object_get(doc, "auth"));
    if (status == PD_OK) {
        status = pd_tx_update(call->tx, SUMMARY, old->id, NULL, summary, NULL, 0, NULL);
    }
    return status == PD_OK ? each_connection(call, old->id, follow, &r) : status;
}

/* The new document, judged and kept. */
static pd_status_t judge_update(pd_op_call_t *call, const pd_object_t *old, json_t **ret)
{
    const json_t *file = file_of_arguments(call);
    const char *slug = mcp_json_str(old->doc, "slug");
    json_t *doc = NULL;
    pd_status_t status = file == NULL ? PD_E_NOMEM : pd_catalog_check(file, &doc, &call->fault);

    if (status != PD_OK) {
        return status;
    }
    *ret = pd_op_keep(call, doc);
    if (slug == NULL || strcmp(mcp_json_str(doc, "slug"), slug) == 0) {
        return PD_OK; /* one that is damaged has no slug that it could keep */
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                    "Create another connector under the new slug.",
                    "/slug: must stay \"%s\"; names of tools and arguments depend on it", slug);
}

pd_status_t pd_op_connectors_whole(pd_op_call_t *call, const char *named, pd_object_t **ret)
{
    int is_whole = 0;
    pd_status_t status = pd_op_connector_seen(call, named, ret);

    if (status != PD_OK) {
        return status;
    }
    if (document_seen(call, *ret, &is_whole) == NULL) {
        return PD_E_NOMEM;
    }
    if (is_whole) {
        return PD_OK;
    }
    pd_op_detail(call, "partly withheld connector=%s", (*ret)->id);
    return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                    "Ask somebody who has all of it, or to have the restriction lifted.",
                    "Some operations of this connector are withheld from you: it can't be replaced "
                    "or deleted by somebody who does not see them.");
}

pd_status_t pd_op_connectors_update(pd_op_call_t *call)
{
    pd_object_t *old = NULL;
    json_t *doc = NULL;
    json_t *needs_reauth;
    int64_t revision = 0;
    pd_status_t status = pd_op_connectors_whole(call, pd_op_text(call, "connector"), &old);

    if (status == PD_OK) {
        status = judge_update(call, old, &doc);
    }
    if (status != PD_OK) {
        return status;
    }
    needs_reauth = json_array();
    status = pd_op_connectors_replace(call, old, doc, 0, pd_op_if_revision(call), needs_reauth, &revision);
    if (status == PD_OK) {
        status = pd_tx_delete(call->tx, PD_OP_CONNECTOR_PENDING, old->id, 0);
        status = status == PD_E_NOT_FOUND ? PD_OK : status; /* mostly nothing is held back */
    }
    if (status != PD_OK) {
        json_decref(needs_reauth);
        return status;
    }
    pd_op_detail(call, "connector=%s revision=%" APR_INT64_T_FMT, old->id, (apr_int64_t)revision);
    return answer_write(call, old->id, revision, make_summary(call, doc, 0), needs_reauth);
}

/* --- delete --------------------------------------------------------------------------------- */

static pd_status_t refuse_use(pd_op_call_t *call, const pd_object_t *connection, void *baton)
{
    (void)baton;
    return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                    "Delete its connections first; connections list shows them.",
                    "The connector is in use by the connection %s.", connection->id);
}

static int has_entry_on(const pd_toolbox_t *toolbox, const char *connector_id)
{
    int i;

    for (i = 0; i < toolbox->entries->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(toolbox->entries, i, pd_entry_t).connector_id, connector_id) ==
            0) {
            return 1;
        }
    }
    return 0;
}

/* Rules and entries go by the connector's id: one of the same slug that is made later would be free of
 * them. */
static pd_status_t check_not_named(pd_op_call_t *call, const char *connector_id)
{
    const apr_array_header_t *toolboxes = call->snapshot->toolboxes->sorted;
    apr_hash_index_t *at;
    int i;

    /* with a pool: the iterator inside a hash is one for all threads */
    for (at = apr_hash_first(call->pool, call->snapshot->rulebook->rules); at != NULL;
         at = apr_hash_next(at)) {
        const pd_rule_t *rule = apr_hash_this_val(at);

        if (apr_hash_get(rule->parts, connector_id, APR_HASH_KEY_STRING) != NULL) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                            "restrictions list {\"connector\":…} shows them; change or delete them "
                            "first.",
                            "Restrictions name this connector.");
        }
    }
    for (i = 0; i < toolboxes->nelts; i++) {
        if (has_entry_on(APR_ARRAY_IDX(toolboxes, i, const pd_toolbox_t *), connector_id)) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                            "toolboxes list {\"connector\":…} shows them; take the entries off them "
                            "first.",
                            "Toolboxes have entries on this connector.");
        }
    }
    return PD_OK;
}

pd_status_t pd_op_connectors_delete(pd_op_call_t *call)
{
    pd_object_t *object = NULL;
    pd_status_t status = pd_op_connectors_whole(call, pd_op_text(call, "connector"), &object);

    if (status == PD_OK) {
        status = each_connection(call, object->id, refuse_use, NULL);
    }
    if (status == PD_OK) {
        status = check_not_named(call, object->id);
    }
    if (status == PD_OK) {
        status = pd_tx_delete(call->tx, KIND, object->id, pd_op_if_revision(call));
    }
    if (status == PD_OK) {
        status = pd_tx_delete(call->tx, SUMMARY, object->id, 0);
    }
    if (status == PD_OK) {
        status = pd_tx_delete(call->tx, PD_OP_CONNECTOR_PENDING, object->id, 0);
        status = status == PD_E_NOT_FOUND ? PD_OK : status;
    }
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "connector=%s", object->id);
    return pd_op_answer(call, json_pack("{s:s,s:b}", "connector", object->id, "deleted", 1));
}
