/* From named entries to stored ones: see op_toolbox_entries.h. */
#include "op_toolbox_entries.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "op_find.h"
#include "op_reach.h"
#include "op_toolbox_values.h"
#include "pd_snapshot.h"

/* The judgement of all entries of a toolbox. */
typedef struct judging {
    pd_op_call_t *call;
    const char *toolbox;
    const json_t *old;
    apr_hash_t *claimed; /* ids of old entries that new ones go on with */
    apr_hash_t *sights;  /* what the actor sees of connectors (op_reach.h) */
    json_t *entries;
    json_t *warnings;
    unsigned long number; /* of the entry at work, from 1 */
} judging_t;

/* The entry at work. */
typedef struct entry {
    const json_t *given;
    const json_t *old; /* the one it goes on with, or NULL */
    const char *id;
    const char *name;
    const char *connector_id;
    const char *slug;
    const char *operation_id;
    const pd_connector_t *connector; /* NULL: gone, and kept from the old one */
    const pd_operation_t *operation; /* likewise */
    int is_withheld; /* from the actor, who therefore leaves the entry as it is */
    json_t *connections;
    const json_t *defaults;
    const json_t *frozen;
} entry_t;

static int is_text(const json_t *object, const char *name, const char *text)
{
    const char *is = mcp_json_str(object, name);

    return is != NULL && text != NULL && strcmp(is, text) == 0;
}

static const json_t *find_by(const json_t *entries, const char *member, const char *text)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(entries, i, entry)
    {
        if (is_text(entry, member, text)) {
            return entry;
        }
    }
    return NULL;
}

/* --- operation ------------------------------------------------------------------- */

/* The old entry's connector where it is named, and whole. */
static int goes_on_with(entry_t *e, const char *named)
{
    const char *id = mcp_json_str(e->old, "connector");
    const char *slug = mcp_json_str(e->old, "connector_slug");

    if (id == NULL || slug == NULL || (strcmp(id, named) != 0 && strcmp(slug, named) != 0)) {
        return 0;
    }
    e->connector_id = id;
    e->slug = slug;
    return 1;
}

/* What is withheld from the actor is as what there is not, but for an entry that goes on by its id. */
static pd_status_t find_connector(judging_t *j, entry_t *e)
{
    pd_op_call_t *call = j->call;
    const pd_snapshot_t *snapshot = call->snapshot;
    const char *named = mcp_json_str(e->given, "connector");
    const pd_connector_t *found = pd_snapshot_connector(snapshot, named);

    if (found == NULL) {
        found = apr_hash_get(snapshot->ground->by_slug, named, APR_HASH_KEY_STRING);
    }
    if (found != NULL && pd_op_sees_connector(call, j->sights, found->id)) {
        e->connector = found;
        e->connector_id = found->id;
        e->slug = found->slug;
        return PD_OK;
    }
    if ((found == NULL || mcp_json_str(e->given, "entry") != NULL) && goes_on_with(e, named)) {
        e->is_withheld = found != NULL;
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connectors list shows them.",
                    "Entry number %lu: there is no connector \"%s\".", j->number, named);
}

static pd_status_t find_operation(judging_t *j, entry_t *e)
{
    pd_op_call_t *call = j->call;
    const char *named = mcp_json_str(e->given, "operation");
    int was_there =
        is_text(e->old, "operation", named) && is_text(e->old, "connector", e->connector_id);

    e->operation_id = named;
    e->operation = e->connector != NULL ? pd_catalog_operation(e->connector, named) : NULL;
    if (!pd_op_sees_operation(call, j->sights, e->connector_id, named)) {
        e->operation = NULL;
        e->is_withheld = 1;
        was_there = was_there && mcp_json_str(e->given, "entry") != NULL;
    }
    if (e->operation == NULL && !was_there) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connectors get shows its operations.",
                        "Entry number %lu: the connector %s has no operation \"%s\".", j->number,
                        e->slug, named);
    }
    if (e->operation != NULL && e->operation->klass == MCP_CLASS_FORBIDDEN && !was_there) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                        "Nobody can have it, through a toolbox neither.",
                        "Entry number %lu: the operation %s is classified forbidden.", j->number,
                        named);
    }
    return PD_OK;
}

/* --- name ------------------------------------------------------------------------ */

/* An operation's id in the characters of a tool's name, cut to what the toolbox's leaves. */
static const char *default_name(const judging_t *j, const char *operation_id)
{
    char *name = apr_pstrdup(j->call->pool, operation_id);
    size_t room = MCP_MAX_TOOL_NAME - strlen(j->toolbox) - 2; /* a label leaves 30 bytes at least */
    char *at;

    if (strlen(name) > room) {
        name[room] = '\0';
    }
    for (at = name; *at != '\0'; at++) {
        const char one[2] = {*at, '\0'};

        if (!mcp_name_is_tool(one)) {
            *at = '_';
        }
    }
    return name;
}

/* The entry's tool bears the very name that was chosen: nothing cut, nothing hashed. */
static pd_status_t check_name(pd_op_call_t *call, const char *toolbox, const char *slug,
                              const char *name, unsigned long number)
{
    char made[MCP_MAX_TOOL_NAME + 1];

    if (mcp_name_is_tool(name) && strlen(toolbox) + 2 + strlen(name) <= MCP_MAX_TOOL_NAME &&
        pd_toolbox_tool_name(toolbox, slug, name, made, sizeof(made)) == PD_OK &&
        strcmp(made + strlen(toolbox) + 2, name) == 0) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                    "Give a shorter `name`, for example list_items.",
                    "Entry number %lu: a name has letters, digits, dashes and underscores, %lu at "
                    "most beside the toolbox's own, and does not end like a hashed one.",
                    number, (unsigned long)(MCP_MAX_TOOL_NAME - strlen(toolbox) - 2));
}

static pd_status_t name_taken(pd_op_call_t *call, const char *name, unsigned long number)
{
    return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Give one of them another `name`.",
                    "Entry number %lu: another entry has the name %s.", number, name);
}

static pd_status_t choose_name(judging_t *j, entry_t *e)
{
    const char *named = mcp_json_str(e->given, "name");
    pd_status_t status;

    e->name = named != NULL ? named : default_name(j, e->operation_id);
    status = check_name(j->call, j->toolbox, e->slug, e->name, j->number);
    if (status == PD_OK && find_by(j->entries, "name", e->name) != NULL) {
        return name_taken(j->call, e->name, j->number);
    }
    return status;
}

pd_status_t pd_op_toolbox_names(pd_op_call_t *call, const char *toolbox, const json_t *entries)
{
    apr_hash_t *names = apr_hash_make(call->pool);
    const json_t *entry;
    size_t i;

    json_array_foreach(entries, i, entry)
    {
        const char *name = mcp_json_str(entry, "name");
        const char *slug = mcp_json_str(entry, "connector_slug");
        pd_status_t status = name != NULL && slug != NULL
                                 ? PD_OK
                                 : pd_fault(&call->fault, MCP_CODE_CONFLICT, "Give `entries` too.",
                                            "Entry number %lu of the toolbox is damaged.",
                                            (unsigned long)i + 1);

        if (status == PD_OK) {
            status = check_name(call, toolbox, slug, name, (unsigned long)i + 1);
        }
        if (status != PD_OK) {
            return status;
        }
        if (apr_hash_get(names, name, APR_HASH_KEY_STRING) != NULL) {
            return name_taken(call, name, (unsigned long)i + 1);
        }
        apr_hash_set(names, name, APR_HASH_KEY_STRING, name);
    }
    return PD_OK;
}

/* --- id -------------------------------------------------------------------------- */

/* The old entry that this one goes on with: by id, else by name. */
static pd_status_t find_old(judging_t *j, entry_t *e)
{
    pd_op_call_t *call = j->call;
    const char *id = mcp_json_str(e->given, "entry");
    const char *operation = mcp_json_str(e->given, "operation");
    const char *name = mcp_json_str(e->given, "name");

    if (id != NULL) {
        e->old = find_by(j->old, "entry", id);
        if (e->old == NULL) {
            return pd_fault(&call->fault, MCP_CODE_NOT_FOUND,
                            "Leave `entry` out to add one; toolboxes get shows their ids.",
                            "Entry number %lu: the toolbox has no such entry.", j->number);
        }
    } else {
        e->old = find_by(j->old, "name", name != NULL ? name : default_name(j, operation));
    }
    return PD_OK;
}

static pd_status_t choose_id(judging_t *j, entry_t *e)
{
    pd_op_call_t *call = j->call;
    const char *named = mcp_json_str(e->given, "entry");
    const char *id = mcp_json_str(e->old, "entry");

    if (id != NULL && apr_hash_get(j->claimed, id, APR_HASH_KEY_STRING) != NULL && named == NULL) {
        id = NULL; /* another one goes on with it, under another name */
    }
    e->id = id != NULL ? id : pd_store_new_id("ent", call->pool);
    return e->id != NULL ? PD_OK : PD_E_INTERNAL;
}

/* Ids that are named win over names, wherever they stand in the list. */
static pd_status_t claim_ids(judging_t *j, const json_t *given)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(given, i, entry)
    {
        const char *id = mcp_json_str(entry, "entry");

        if (id == NULL) {
            continue;
        }
        if (apr_hash_get(j->claimed, id, APR_HASH_KEY_STRING) != NULL) {
            return pd_fault(&j->call->fault, MCP_CODE_INVALID_REQUEST, "Leave one of them out.",
                            "Entry number %lu: the same id stands twice.", (unsigned long)i + 1);
        }
        apr_hash_set(j->claimed, id, APR_HASH_KEY_STRING, entry);
    }
    return PD_OK;
}

/* --- connections ------------------------------------------------------------------ */

static int has_text(const json_t *array, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(array, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), text) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A shared connection on the entry's connector, by label or id, to its id. */
static pd_status_t pin_connection(judging_t *j, const entry_t *e, const char *named,
                                  const char **ret_id)
{
    pd_op_call_t *call = j->call;
    const pd_connection_t *found =
        strncmp(named, "cxn_", 4) == 0
            ? pd_snapshot_connection(call->snapshot, named)
            : apr_hash_get(call->snapshot->ground->by_label, named, APR_HASH_KEY_STRING);

    if (found != NULL && !has_text(json_object_get(e->old, "connections"), found->id) &&
        !pd_op_sees_connector(call, j->sights, found->connector->id)) {
        found = NULL;
    }
    if (found == NULL && has_text(json_object_get(e->old, "connections"), named)) {
        *ret_id = named;
        return PD_OK;
    }
    if (found == NULL || found->owner != NULL) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND,
                        "Name shared connections by label, or write [\"" PD_OP_TOOLBOX_OWN
                        "\"] for the caller's own.",
                        "Entry number %lu: there is no shared connection \"%s\".", j->number,
                        named);
    }
    if (strcmp(found->connector->id, e->connector_id) != 0) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                        "All connections of an entry are on its connector.",
                        "Entry number %lu: the connection %s is on the connector %s.", j->number,
                        found->label, found->connector->slug);
    }
    *ret_id = found->id;
    return PD_OK;
}

static pd_status_t choose_connections(judging_t *j, entry_t *e)
{
    pd_op_call_t *call = j->call;
    const json_t *given = json_object_get(e->given, "connections");
    int is_own = 0;
    size_t i;

    e->connections = pd_op_keep(call, json_array());
    for (i = 0; i < json_array_size(given); i++) {
        const char *named = json_string_value(json_array_get(given, i));
        const char *id = PD_OP_TOOLBOX_OWN;
        pd_status_t status = PD_OK;

        if (named == NULL) {
            return PD_E_INTERNAL; /* the schema has seen them */
        }
        if (strcmp(named, PD_OP_TOOLBOX_OWN) == 0) {
            is_own = 1;
        } else {
            status = pin_connection(j, e, named, &id);
        }
        if (status != PD_OK) {
            return status;
        }
        if (!has_text(e->connections, id) &&
            json_array_append_new(e->connections, json_string(id)) != 0) {
            return PD_E_NOMEM;
        }
    }
    if (is_own && json_array_size(e->connections) > 1) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "Make two entries of it.",
                        "Entry number %lu: " PD_OP_TOOLBOX_OWN
                        " stands for the caller's own connections and beside no other.",
                        j->number);
    }
    return PD_OK;
}

/* --- values ---------------------------------------------------------------------- */

static pd_status_t refuse_change(judging_t *j)
{
    return pd_fault(&j->call->fault, MCP_CODE_CONFLICT,
                    "Leave it as toolboxes get shows it, with its `entry` id, or drop it.",
                    "Entry number %lu: its operation is withheld from you, so that you can't change "
                    "the entry.",
                    j->number);
}

static pd_status_t keep_values(entry_t *e, const json_t *none)
{
    e->defaults = json_object_get(e->old, "defaults");
    e->frozen = json_object_get(e->old, "frozen");
    e->defaults = e->defaults != NULL ? e->defaults : none;
    e->frozen = e->frozen != NULL ? e->frozen : none;
    return PD_OK;
}

static pd_status_t choose_values(judging_t *j, entry_t *e)
{
    json_t *none = pd_op_keep(j->call, json_object());
    const json_t *frozen = json_object_get(e->given, "frozen");
    const json_t *defaults = json_object_get(e->given, "defaults");
    pd_op_toolbox_values_t values = {.number = j->number, .operation = e->operation, .old = e->old};

    if (e->is_withheld) {
        /* whether they would be the same ones is not told either */
        return frozen != NULL || defaults != NULL ? refuse_change(j) : keep_values(e, none);
    }
    e->defaults = defaults != NULL ? defaults : none;
    e->frozen = frozen != NULL ? frozen : none;
    values.defaults = e->defaults;
    values.frozen = e->frozen;
    return pd_op_toolbox_values(j->call, &values);
}

/* --- warnings -------------------------------------------------------------------- */

static pd_status_t warn(judging_t *j, const char *text)
{
    return json_array_append_new(j->warnings, json_string(text)) == 0 ? PD_OK : PD_E_NOMEM;
}

/* Shared connections serve everybody plainly unless they are for toolboxes alone, and so do the
 * caller's own. */
static pd_status_t warn_of_plain_paths(judging_t *j, const entry_t *e)
{
    const char *labels = "";
    size_t i;

    if (json_object_size(e->frozen) == 0) {
        return PD_OK;
    }
    for (i = 0; i < json_array_size(e->connections); i++) {
        const char *id = json_string_value(json_array_get(e->connections, i));
        const pd_connection_t *connection = pd_snapshot_connection(j->call->snapshot, id);

        if (strcmp(id, PD_OP_TOOLBOX_OWN) == 0) {
            return warn(j, apr_psprintf(j->call->pool,
                                        "%s freezes values, but people also reach their own "
                                        "connections plainly, unless these are toolbox_only.",
                                        e->name));
        }
        if (connection != NULL && !connection->is_toolbox_only) {
            labels = apr_pstrcat(j->call->pool, labels, labels[0] != '\0' ? ", " : "",
                                 connection->label, (char *)NULL);
        }
    }
    if (labels[0] == '\0') {
        return PD_OK;
    }
    return warn(j, apr_psprintf(j->call->pool,
                                "%s freezes values, but the same people also reach %s plainly; "
                                "connections update {\"toolbox_only\": true} ends that.",
                                e->name, labels));
}

/* --- one and all ----------------------------------------------------------------- */

static json_t *entry_json(const entry_t *e)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:O, s:s, s:s*, s:s*, s:O, s:O, s:b}", "entry", e->id,
                     "connector", e->connector_id, "connector_slug", e->slug, "operation",
                     e->operation_id, "connections", e->connections, "name", e->name, "title",
                     mcp_json_str(e->given, "title"), "description",
                     mcp_json_str(e->given, "description"), "defaults", e->defaults, "frozen",
                     e->frozen, "always_visible", mcp_json_bool(e->given, "always_visible"));
}

static pd_status_t judge_entry(judging_t *j, const json_t *given)
{
    typedef pd_status_t step_fn(judging_t *, entry_t *);
    static step_fn *const steps[] = {find_old,    find_connector,     find_operation,
                                     choose_name, choose_connections, choose_values,
                                     choose_id};
    entry_t e = {.given = given};
    pd_status_t status = PD_OK;
    json_t *made;
    size_t i;

    for (i = 0; status == PD_OK && i < sizeof(steps) / sizeof(steps[0]); i++) {
        status = steps[i](j, &e);
    }
    if (status == PD_OK && !e.is_withheld) {
        status = warn_of_plain_paths(j, &e);
    }
    if (status != PD_OK) {
        return status;
    }
    made = entry_json(&e);
    if (made != NULL && e.is_withheld && !json_equal(made, (json_t *)(uintptr_t)e.old)) {
        json_decref(made);
        return refuse_change(j);
    }
    return json_array_append_new(j->entries, made) == 0 ? PD_OK : PD_E_NOMEM;
}

pd_status_t pd_op_toolbox_entries(pd_op_call_t *call, const char *toolbox, const json_t *given,
                                  const json_t *old, json_t *warnings, json_t **ret)
{
    judging_t j = {.call = call,
                   .toolbox = toolbox,
                   .old = old,
                   .claimed = apr_hash_make(call->pool),
                   .sights = apr_hash_make(call->pool),
                   .entries = pd_op_keep(call, json_array()),
                   .warnings = warnings};
    pd_status_t status = claim_ids(&j, given);
    const json_t *entry;
    size_t i;

    json_array_foreach(given, i, entry)
    {
        if (status == PD_OK && pd_boot_left_ms(call->deadline) <= 0) {
            status = PD_E_TIMEOUT;
        }
        if (status != PD_OK) {
            return status;
        }
        j.number = (unsigned long)i + 1;
        status = judge_entry(&j, entry);
    }
    *ret = j.entries;
    return status;
}
