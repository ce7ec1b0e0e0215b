/* settings list, get, set, unset. */
#include "op_settings.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "pd_settings.h"

/* The stored object of exactly this layer, or NULL in *ret. */
static pd_status_t find_stored(pd_op_call_t *call, const char *key, const char *client,
                               const char *grant, pd_object_t **ret)
{
    pd_status_t status =
        pd_tx_find(call->tx, "setting", pd_settings_key(key, client, grant, call->pool), ret);

    if (status == PD_E_NOT_FOUND) {
        *ret = NULL;
        return PD_OK;
    }
    return status;
}

/* --- showing --------------------------------------------------------------------- */

/* `value` is what holds; NULL: the default. */
static json_t *show_setting(const pd_setting_t *row, const json_t *value, const char *source)
{
    json_t *holds = value != NULL ? json_deep_copy(value) : pd_settings_default(row);
    json_t *shown = json_pack("{s:s, s:o, s:s, s:o, s:s, s:s, s:b}", "key", row->key, "value",
                              holds, "source", source, "default", pd_settings_default(row), "type",
                              pd_settings_type_text(row->type), "description", row->description,
                              "may_narrow", row->may_narrow);
    size_t i;

    if (shown == NULL) {
        return NULL;
    }
    if (row->type == PD_SETTING_INT) {
        (void)json_object_set_new(shown, "min",
                                  json_integer((json_int_t)row->min)); /* a help, no more */
        (void)json_object_set_new(shown, "max", json_integer((json_int_t)row->max));
    }
    if (row->words != NULL) {
        json_t *words = json_array();

        for (i = 0; row->words[i] != NULL; i++) {
            (void)json_array_append_new(words, json_string(row->words[i])); /* a help, no more */
        }
        (void)json_object_set_new(shown, "words", words);
    }
    return shown;
}

/* A value set for a client or a grant, as an item of the list. */
static json_t *show_narrowed(const pd_op_call_t *call, const pd_object_t *object)
{
    const char *client = mcp_json_str(object->doc, "client");
    json_t *shown = json_pack(
        "{s:s*, s:O*, s:s, s:s*, s:s*}", "key", mcp_json_str(object->doc, "key"), "value",
        json_object_get(object->doc, "value"), "source", client != NULL ? "client" : "grant",
        "client", client, "grant", mcp_json_str(object->doc, "grant"));

    (void)call;
    if (shown != NULL && pd_op_stamp(shown, object) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    return shown;
}

static int is_narrowed(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    (void)call;
    (void)baton;
    return mcp_json_str(object->doc, "client") != NULL ||
           mcp_json_str(object->doc, "grant") != NULL;
}

static json_t *show_organisation(pd_op_call_t *call, const pd_setting_t *row)
{
    pd_object_t *stored = NULL;
    json_t *shown;

    if (find_stored(call, row->key, NULL, NULL, &stored) != PD_OK) {
        return NULL;
    }
    shown = show_setting(row, stored != NULL ? json_object_get(stored->doc, "value") : NULL,
                         stored != NULL ? "organisation" : "default");
    if (shown != NULL && stored != NULL && pd_op_stamp(shown, stored) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    return shown;
}

/* --- list and get ---------------------------------------------------------------- */

/* Index of the row after the one a cursor names; 0 without a cursor; -1 for an id. */
static int row_after(const char *cursor)
{
    int i;

    if (cursor == NULL) {
        return 0;
    }
    for (i = 0; pd_settings_row(i) != NULL; i++) {
        if (strcmp(pd_settings_row(i)->key, cursor) == 0) {
            return i + 1;
        }
    }
    return -1;
}

/* Every setting with the organisation's value, then the values set for clients and grants. A cursor
 * is the last key, or the id of the last narrowed value. */
pd_status_t pd_op_settings_list(pd_op_call_t *call)
{
    const pd_op_list_t narrowed = {"setting", "set_", NULL, is_narrowed, NULL, show_narrowed};
    const char *cursor = pd_op_text(call, "cursor");
    size_t limit = pd_op_limit(call);
    int i = row_after(cursor);
    const char *next = NULL;
    json_t *items;
    pd_status_t status;

    if (i < 0 && strncmp(cursor, "set_", 4) != 0) {
        return pd_op_bad_cursor(call);
    }
    items = json_array();
    if (i >= 0) {
        const char *last = cursor;

        for (; pd_settings_row(i) != NULL && json_array_size(items) < limit; i++) {
            last = pd_settings_row(i)->key;
            if (json_array_append_new(items, show_organisation(call, pd_settings_row(i))) != 0) {
                json_decref(items);
                return PD_E_INTERNAL;
            }
        }
        if (pd_settings_row(i) != NULL) {
            return pd_op_items(call, items, last);
        }
        cursor = NULL;
        next = last; /* where narrowed values go on from, should the page be full already */
    }
    status = pd_op_list_more(call, &narrowed, cursor, limit, items, &next);
    if (status != PD_OK) {
        json_decref(items);
        return status;
    }
    return pd_op_items(call, items, next);
}

static pd_status_t find_row(pd_op_call_t *call, const pd_setting_t **ret)
{
    *ret = pd_settings_find(pd_op_text(call, "key"));
    if (*ret == NULL) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "settings list shows all settings.",
                        "There is no such setting.");
    }
    return PD_OK;
}

/* The value that holds for the client or grant named, and where it is from. */
static pd_status_t answer_holding(pd_op_call_t *call, const pd_setting_t *row)
{
    const char *client = pd_op_text(call, "client");
    const char *grant = pd_op_text(call, "grant");
    const char *source = NULL;
    const json_t *value = NULL;
    pd_object_t *stored = NULL;
    json_t *shown;
    pd_status_t status = pd_settings_read(call->tx, row, client, grant, &value, &source);

    if (status == PD_OK) {
        status = find_stored(call, row->key, client, grant, &stored);
    }
    if (status != PD_OK) {
        return status;
    }
    shown = show_setting(row, value, source);
    /* the revision is that of the layer asked for, where it has one of its own: what if_revision is
     * about */
    if (shown != NULL && stored != NULL && pd_op_stamp(shown, stored) != 0) {
        json_decref(shown);
        shown = NULL;
    }
    return pd_op_answer(call, shown);
}

pd_status_t pd_op_settings_get(pd_op_call_t *call)
{
    const pd_setting_t *row = NULL;
    pd_status_t status = find_row(call, &row);

    return status == PD_OK ? answer_holding(call, row) : status;
}

/* --- set and unset --------------------------------------------------------------- */

/* Which layer an argument list speaks of, and whether it may. */
static pd_status_t check_layer(pd_op_call_t *call, const pd_setting_t *row)
{
    const char *client = pd_op_text(call, "client");
    const char *grant = pd_op_text(call, "grant");

    if (client != NULL && grant != NULL) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "Leave one of them out.",
                        "A setting is narrowed to a client or to a grant, not to both.");
    }
    if ((client != NULL || grant != NULL) && !row->may_narrow) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "Leave client and grant out.",
                        "%s holds for the whole organisation only.", row->key);
    }
    return PD_OK;
}

static pd_status_t check_grant(pd_op_call_t *call)
{
    const char *grant = pd_op_text(call, "grant");
    pd_object_t *object = NULL;
    pd_status_t status = grant != NULL ? pd_tx_get(call->tx, "grant", grant, &object) : PD_OK;

    if (status == PD_E_NOT_FOUND) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "grants list shows them.",
                        "There is no such grant; name one by id.");
    }
    return status;
}

static pd_status_t store_setting(pd_op_call_t *call, const pd_setting_t *row,
                                 const pd_object_t *stored)
{
    const char *client = pd_op_text(call, "client");
    const char *grant = pd_op_text(call, "grant");
    const char *keys[] = {pd_settings_key(row->key, client, grant, call->pool), NULL};
    int64_t expected = pd_op_if_revision(call);
    json_t *doc =
        pd_op_keep(call, json_pack("{s:s, s:O, s:s*, s:s*, s:s}", "key", row->key, "value",
                                   json_object_get(call->args, "value"), "client", client, "grant",
                                   grant, "changed_by", pd_op_actor(call)));

    if (doc == NULL) {
        return PD_E_NOMEM;
    }
    pd_op_detail(call, "key=%s%s%s", row->key,
                 grant != NULL    ? " grant="
                 : client != NULL ? " client"
                                  : "",
                 grant != NULL ? grant : "");
    if (stored != NULL) {
        return pd_tx_update(call->tx, "setting", stored->id, NULL, doc, keys, expected, NULL);
    }
    return expected != 0 ? PD_E_REVISION
                         : pd_tx_insert(call->tx, "setting", pd_store_new_id("set", call->pool),
                                        NULL, doc, keys);
}

pd_status_t pd_op_settings_set(pd_op_call_t *call)
{
    const pd_setting_t *row = NULL;
    pd_object_t *stored = NULL;
    pd_status_t status = find_row(call, &row);

    if (status == PD_OK) {
        status = check_layer(call, row);
    }
    if (status == PD_OK) {
        status = pd_settings_check(row, json_object_get(call->args, "value"), &call->fault);
    }
    if (status == PD_OK) {
        status = check_grant(call);
    }
    if (status == PD_OK) {
        status = find_stored(call, row->key, pd_op_text(call, "client"), pd_op_text(call, "grant"),
                             &stored);
    }
    if (status == PD_OK) {
        status = store_setting(call, row, stored);
    }
    return status == PD_OK ? answer_holding(call, row) : status;
}

/* What is not set stays unset without complaint. */
pd_status_t pd_op_settings_unset(pd_op_call_t *call)
{
    const pd_setting_t *row = NULL;
    pd_object_t *stored = NULL;
    int64_t expected = pd_op_if_revision(call);
    pd_status_t status = find_row(call, &row);

    if (status == PD_OK) {
        status = check_layer(call, row);
    }
    if (status == PD_OK) {
        status = find_stored(call, row->key, pd_op_text(call, "client"), pd_op_text(call, "grant"),
                             &stored);
    }
    if (status == PD_OK && stored == NULL && expected != 0) {
        status = PD_E_REVISION;
    }
    if (status == PD_OK && stored != NULL) {
        status = pd_tx_delete(call->tx, "setting", stored->id, expected);
    }
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "key=%s", row->key);
    return answer_holding(call, row);
}
