/* Toolboxes as different people see them: see op_toolbox_show.h. */
#include "op_toolbox_show.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_reach.h"
#include "op_toolbox_entries.h"

#define KIND "toolbox"

/* --- who sees what --------------------------------------------------------------- */

static int may_write(const pd_op_call_t *call)
{
    return pd_actor_may(call->actor, "toolbox:write");
}

int pd_op_toolbox_sees_all(const pd_op_call_t *call)
{
    return may_write(call) || pd_actor_may(call->actor, "toolbox:read_all");
}

const pd_toolbox_t *pd_op_toolbox_own(const pd_op_call_t *call, const char *id)
{
    pd_subject_t subject = pd_op_subject(call->actor);
    const pd_toolbox_t *toolbox =
        apr_hash_get(call->snapshot->toolboxes->by_id, id, APR_HASH_KEY_STRING);

    return toolbox != NULL && pd_toolbox_is_for(toolbox, subject.member_id, subject.role_names)
               ? toolbox
               : NULL;
}

/* 1 when the actor can have the entry's tool; *ret says over which connections. */
static int has_entry(const pd_op_call_t *call, const pd_entry_t *entry, pd_found_t *ret)
{
    pd_subject_t subject = pd_op_subject(call->actor);

    return pd_reach_tool(call->snapshot, &subject, entry->tool_name, call->pool, ret, NULL) ==
               PD_REACH_OK &&
           ret->entry == entry;
}

/* --- showing to those who see all ------------------------------------------------ */

/* Labels of the connections that exist, ids of those that don't, which are added to `missing`. */
static json_t *show_connections(const pd_op_call_t *call, const json_t *entry, json_t *missing)
{
    json_t *shown = json_array();
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(entry, "connections"), i, one)
    {
        const char *id = json_string_value(one);
        const pd_connection_t *connection =
            id != NULL ? pd_snapshot_connection(call->snapshot, id) : NULL;
        const char *text = connection != NULL ? connection->label : id;
        int is_missing = connection == NULL && id != NULL && strcmp(id, PD_OP_TOOLBOX_OWN) != 0;

        if (id == NULL) {
            continue; /* damaged */
        }
        if (json_array_append_new(shown, json_string(text)) != 0 ||
            (is_missing && json_array_append_new(missing, json_string(id)) != 0)) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

/* Whether there is anything, and no more, for all but writers. New reference; NULL: nothing to show. */
static json_t *show_frozen(const pd_op_call_t *call, const json_t *frozen)
{
    return may_write(call) ? json_deep_copy(frozen) : json_boolean(json_object_size(frozen) > 0);
}

/* Whether the actor's own rules withhold what the entry is about. */
static int is_withheld(const pd_op_call_t *call, const json_t *entry, apr_hash_t *sights)
{
    const char *connector = mcp_json_str(entry, "connector");
    const char *operation = mcp_json_str(entry, "operation");

    return connector != NULL && operation != NULL &&
           (!pd_op_sees_connector(call, sights, connector) ||
            !pd_op_sees_operation(call, sights, connector, operation));
}

static int operation_exists(const pd_op_call_t *call, const json_t *entry)
{
    const char *id = mcp_json_str(entry, "connector");
    const char *operation = mcp_json_str(entry, "operation");
    const pd_connector_t *connector = id != NULL ? pd_snapshot_connector(call->snapshot, id) : NULL;

    return connector != NULL && operation != NULL &&
           pd_catalog_operation(connector, operation) != NULL;
}

/* An entry that is withheld shows no values, and can be written again as it is shown. */
static json_t *show_entry(const pd_op_call_t *call, const char *toolbox, const json_t *entry,
                          apr_hash_t *sights)
{
    int tells = !is_withheld(call, entry, sights);
    json_t *missing = json_array();
    json_t *shown = json_pack(
        "{s:s*, s:s*, s:s*, s:s*, s:s*, s:s*, s:o, s:s*, s:s*, s:O*, s:o*, s:b}", "entry",
        mcp_json_str(entry, "entry"), "name", mcp_json_str(entry, "name"), "tool",
        apr_pstrcat(call->pool, toolbox, "__", mcp_json_str(entry, "name"), (char *)NULL),
        "connector", mcp_json_str(entry, "connector"), "connector_slug",
        mcp_json_str(entry, "connector_slug"), "operation", mcp_json_str(entry, "operation"),
        "connections", show_connections(call, entry, missing), "title",
        mcp_json_str(entry, "title"), "description", mcp_json_str(entry, "description"), "defaults",
        tells ? json_object_get(entry, "defaults") : NULL, "frozen",
        tells ? show_frozen(call, json_object_get(entry, "frozen")) : NULL, "always_visible",
        mcp_json_bool(entry, "always_visible"));
    int failed = shown == NULL;

    if (!failed && !tells) {
        failed = json_object_set_new(shown, "withheld", json_true()) != 0;
    }
    if (!failed && json_array_size(missing) > 0) {
        failed = json_object_set_new(shown, "missing", json_incref(missing)) != 0;
    }
    if (!failed && tells && !operation_exists(call, entry)) {
        failed = json_object_set_new(shown, "operation_missing", json_true()) != 0;
    }
    json_decref(missing);
    if (failed) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

static json_t *show_entries(const pd_op_call_t *call, const json_t *doc)
{
    const char *name = mcp_json_str(doc, "name");
    apr_hash_t *sights = apr_hash_make(call->pool);
    json_t *shown = json_array();
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(doc, "entries"), i, entry)
    {
        if (json_array_append_new(shown, show_entry(call, name != NULL ? name : "", entry,
                                                    sights)) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

/* Emails of the members, in their order; "" for one who has none any more. NULL for those who can't read
 * members. */
static json_t *show_emails(const pd_op_call_t *call, const json_t *members)
{
    json_t *shown;
    const json_t *one;
    size_t i;

    if (!pd_actor_may(call->actor, "member:read")) {
        return NULL;
    }
    shown = json_array();
    json_array_foreach(members, i, one)
    {
        const char *id = json_string_value(one);
        pd_object_t *member = NULL;
        const char *email = NULL;

        if (id != NULL && pd_tx_get(call->tx, "member", id, &member) == PD_OK) {
            email = mcp_json_str(member->doc, "email");
        }
        if (json_array_append_new(shown, json_string(email != NULL ? email : "")) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

/* `tools` counts the entries; a list has no more of them. */
static json_t *show_all(const pd_op_call_t *call, const pd_object_t *object, int is_list)
{
    const json_t *doc = object->doc;
    const json_t *members = json_object_get(doc, "members");
    json_t *shown = json_pack(
        "{s:s, s:s*, s:s*, s:O*, s:O*, s:o*, s:I}", KIND, object->id, "name",
        mcp_json_str(doc, "name"), "description", mcp_json_str(doc, "description"), "roles",
        json_object_get(doc, "roles"), "members", members, "emails", show_emails(call, members),
        "tools", (json_int_t)json_array_size(json_object_get(doc, "entries")));

    if (shown == NULL || pd_op_stamp(shown, object) != 0 ||
        (!is_list && json_object_set_new(shown, "entries", show_entries(call, doc)) != 0)) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

/* --- showing to those it is for -------------------------------------------------- */

static json_t *show_own_entry(const pd_entry_t *entry, const pd_found_t *found)
{
    json_t *labels = json_array();
    int i;

    for (i = 0; i < found->connections->nelts; i++) {
        const pd_connection_t *connection =
            APR_ARRAY_IDX(found->connections, i, const pd_connection_t *);

        if (json_array_append_new(labels, json_string(connection->label)) != 0) {
            json_decref(labels);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:s*, s:s*, s:O, s:b, s:b}", "entry",
                     entry->id, "name", entry->name, "tool", entry->tool_name, "connector_slug",
                     entry->connector_slug, "operation", entry->operation_id, "connections", labels,
                     "title", entry->title, "description", entry->description, "defaults",
                     entry->defaults, "frozen", json_object_size(entry->frozen) > 0,
                     "always_visible", entry->is_always_visible);
}

static json_t *show_own(const pd_op_call_t *call, const pd_object_t *object, int is_list)
{
    const pd_toolbox_t *toolbox = pd_op_toolbox_own(call, object->id);
    json_t *entries = json_array();
    json_t *shown;
    int i;

    for (i = 0; toolbox != NULL && i < toolbox->entries->nelts; i++) {
        const pd_entry_t *entry = &APR_ARRAY_IDX(toolbox->entries, i, pd_entry_t);
        pd_found_t found;

        if (has_entry(call, entry, &found) &&
            json_array_append_new(entries, show_own_entry(entry, &found)) != 0) {
            json_decref(entries);
            return NULL;
        }
    }
    shown = json_pack("{s:s, s:s*, s:s*, s:I}", KIND, object->id, "name",
                      mcp_json_str(object->doc, "name"), "description",
                      mcp_json_str(object->doc, "description"), "tools",
                      (json_int_t)json_array_size(entries));
    if (shown == NULL || pd_op_stamp(shown, object) != 0 ||
        (!is_list && json_object_set_new(shown, "entries", json_incref(entries)) != 0)) {
        json_decref(shown);
        shown = NULL;
    }
    json_decref(entries);
    return shown;
}

json_t *pd_op_toolbox_show_listed(const pd_op_call_t *call, const pd_object_t *object)
{
    return pd_op_toolbox_sees_all(call) ? show_all(call, object, 1) : show_own(call, object, 1);
}

json_t *pd_op_toolbox_show_whole(const pd_op_call_t *call, const pd_object_t *object)
{
    return pd_op_toolbox_sees_all(call) ? show_all(call, object, 0) : show_own(call, object, 0);
}
