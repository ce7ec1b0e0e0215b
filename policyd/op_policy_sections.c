/* The sections of a policy document, one row each: how their objects look in it, what identifies them, and which operations write
 * them.  See op_policy_private.h. */
#include "op_policy_private.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "pd_catalog.h"

static const char *copy_of(const pd_paper_t *paper, const char *text)
{
    return text != NULL ? apr_pstrdup(paper->call->pool, text) : NULL;
}

static const char *name_of(pd_paper_t *paper, const json_t *file)
{
    return copy_of(paper, mcp_json_str(file, "name"));
}

static json_t *text_said(const json_t *from, const char *name)
{
    const char *text = mcp_json_str(from, name);

    return text != NULL && text[0] != '\0' ? json_string(text) : NULL;
}

static pd_status_t made(json_t *form, json_t **ret)
{
    *ret = form;
    return form != NULL ? PD_OK : PD_E_NOMEM;
}

/* {`member`: id}: what most of them are deleted by. */
static json_t *by_id(const char *member, const pd_holding_t *held)
{
    return json_pack("{s:s}", member, held->object->id);
}

/* --- roles ----------------------------------------------------------------------- */

static pd_status_t role_form(const json_t *from, json_t **ret)
{
    return made(json_pack("{s:o*, s:s, s:o}", "description", text_said(from, "description"), "name",
                          mcp_json_str(from, "name"), "permissions",
                          pd_paper_set(json_object_get(from, "permissions"))),
                ret);
}

static pd_status_t role_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret)
{
    (void)paper;
    return role_form(object->doc, ret);
}

static pd_status_t role_canonical(pd_paper_t *paper, const json_t *given, json_t **ret)
{
    (void)paper;
    return role_form(given, ret);
}

static json_t *role_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted)
{
    const char *description = mcp_json_str(wanted, "description");

    (void)paper;
    return json_pack("{s:s, s:s, s:O}", "role", held->object->id, "description",
                     description != NULL ? description : "", "permissions",
                     json_object_get(wanted, "permissions"));
}

static json_t *role_remove(const pd_holding_t *held)
{
    return by_id("role", held);
}

/* --- connectors: what is listed are their summaries ------------------------------- */

static pd_status_t connector_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret)
{
    pd_object_t *connector = NULL;
    pd_status_t status = pd_tx_get(paper->call->tx, "connector", object->id, &connector);

    return status == PD_OK ? pd_catalog_file(connector->doc, ret) : status;
}

static pd_status_t connector_canonical(pd_paper_t *paper, const json_t *given, json_t **ret)
{
    json_t *doc = NULL;
    pd_status_t status = pd_catalog_check(given, &doc, &paper->call->fault);

    if (status == PD_OK) {
        status = pd_catalog_file(doc, ret);
        json_decref(doc);
    }
    return status;
}

static const char *slug_of(pd_paper_t *paper, const json_t *file)
{
    return copy_of(paper, mcp_json_str(file, "slug"));
}

static json_t *connector_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted)
{
    json_t *args = json_copy((json_t *)(uintptr_t)wanted);

    (void)paper;
    if (json_object_set_new(args, "connector", json_string(held->object->id)) != 0) {
        json_decref(args);
        return NULL;
    }
    return args;
}

static json_t *connector_remove(const pd_holding_t *held)
{
    return by_id("connector", held);
}

/* --- connections: the shared ones -------------------------------------------------- */

static pd_status_t connection_takes(pd_paper_t *paper, const pd_object_t *object, int *ret)
{
    (void)paper;
    *ret = object->owner == NULL;
    return PD_OK;
}

static pd_status_t connection_form(pd_paper_t *paper, const json_t *from, json_t **ret)
{
    const json_t *variables = json_object_get(from, "variables");
    const char *connector = mcp_json_str(from, "connector");
    pd_status_t status =
        connector != NULL ? pd_paper_slug(paper, connector, &connector) : PD_E_CORRUPT;

    if (status != PD_OK) {
        return status;
    }
    return made(json_pack("{s:s, s:s, s:b, s:o*, s:o*}", "connector", connector, "label",
                          mcp_json_str(from, "label"), "shared", 1, "toolbox_only",
                          mcp_json_bool(from, "toolbox_only") ? json_true() : NULL, "variables",
                          json_object_size(variables) > 0 ? pd_paper_sorted(variables) : NULL),
                ret);
}

static pd_status_t connection_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret)
{
    return connection_form(paper, object->doc, ret);
}

static pd_status_t connection_canonical(pd_paper_t *paper, const json_t *given, json_t **ret)
{
    const json_t *shared = json_object_get(given, "shared");

    if (json_object_get(given, "owner") != NULL || json_is_false(shared)) {
        return pd_fault(&paper->call->fault, MCP_CODE_INVALID_REQUEST,
                        "Leave `owner` out, and `shared` too or true.",
                        "a document holds shared connections only");
    }
    return connection_form(paper, given, ret);
}

static const char *label_of(pd_paper_t *paper, const json_t *file)
{
    return copy_of(paper, mcp_json_str(file, "label"));
}

static json_t *connection_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted)
{
    json_t *variables = json_object_get(wanted, "variables");

    (void)paper;
    return json_pack("{s:s, s:b, s:o}", "connection", held->object->id, "toolbox_only",
                     mcp_json_bool(wanted, "toolbox_only"), "variables",
                     variables != NULL ? json_incref(variables) : json_object());
}

static json_t *connection_remove(const pd_holding_t *held)
{
    return by_id("connection", held);
}

/* --- settings: those of the organisation and of clients ----------------------------- */

static pd_status_t setting_takes(pd_paper_t *paper, const pd_object_t *object, int *ret)
{
    (void)paper;
    *ret = json_object_get(object->doc, "grant") == NULL;
    return PD_OK;
}

static pd_status_t setting_form(const json_t *from, json_t **ret)
{
    return made(json_pack("{s:s*, s:s, s:O}", "client", mcp_json_str(from, "client"), "key",
                          mcp_json_str(from, "key"), "value", json_object_get(from, "value")),
                ret);
}

static pd_status_t setting_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret)
{
    (void)paper;
    return setting_form(object->doc, ret);
}

static pd_status_t setting_canonical(pd_paper_t *paper, const json_t *given, json_t **ret)
{
    if (json_object_get(given, "grant") != NULL) {
        return pd_fault(&paper->call->fault, MCP_CODE_INVALID_REQUEST, "settings set does it.",
                        "a document holds no setting of a single grant");
    }
    return setting_form(given, ret);
}

/* Keys hold no blank. */
static const char *setting_identity(pd_paper_t *paper, const json_t *file)
{
    const char *client = mcp_json_str(file, "client");
    const char *key = mcp_json_str(file, "key");

    return key == NULL ? NULL
                       : apr_pstrcat(paper->call->pool, key, client != NULL ? " " : "",
                                     client != NULL ? client : "", (char *)NULL);
}

static const char *setting_title(pd_paper_t *paper, const json_t *file)
{
    const char *client = mcp_json_str(file, "client");

    return client == NULL ? copy_of(paper, mcp_json_str(file, "key"))
                          : apr_psprintf(paper->call->pool, "%s of client %s",
                                         mcp_json_str(file, "key"), client);
}

static json_t *setting_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted)
{
    (void)paper;
    (void)held;
    return json_deep_copy(wanted);
}

static json_t *setting_remove(const pd_holding_t *held)
{
    return json_pack("{s:s, s:s*}", "key", mcp_json_str(held->object->doc, "key"), "client",
                     mcp_json_str(held->object->doc, "client"));
}

/* --- recipes --------------------------------------------------------------------- */

/* {"name","description"?,"required"?}, in their order. */
static json_t *recipe_arguments(const json_t *from)
{
    json_t *form = json_array();
    const json_t *one;
    size_t i;

    json_array_foreach(from, i, one)
    {
        json_t *argument =
            json_pack("{s:o*, s:s, s:o*}", "description", text_said(one, "description"), "name",
                      mcp_json_str(one, "name"), "required",
                      mcp_json_bool(one, "required") ? json_true() : NULL);

        if (json_array_append_new(form, argument) != 0) {
            json_decref(form);
            return NULL;
        }
    }
    return form;
}

static pd_status_t recipe_form(const json_t *from, json_t **ret)
{
    const json_t *arguments = json_object_get(from, "arguments");
    const json_t *roles = json_object_get(from, "roles");

    return made(json_pack("{s:o*, s:o*, s:s, s:o*, s:s, s:o*}", "arguments",
                          json_array_size(arguments) > 0 ? recipe_arguments(arguments) : NULL,
                          "description", text_said(from, "description"), "name",
                          mcp_json_str(from, "name"), "roles",
                          json_array_size(roles) > 0 ? pd_paper_set(roles) : NULL, "text",
                          mcp_json_str(from, "text"), "title", text_said(from, "title")),
                ret);
}

static pd_status_t recipe_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret)
{
    (void)paper;
    return recipe_form(object->doc, ret);
}

static pd_status_t recipe_canonical(pd_paper_t *paper, const json_t *given, json_t **ret)
{
    (void)paper;
    return recipe_form(given, ret);
}

static json_t *recipe_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted)
{
    static const char *const lists[] = {"arguments", "roles"};
    json_t *args = json_deep_copy(wanted);
    int failed = args == NULL;
    size_t i;

    (void)paper;
    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (json_object_get(args, lists[i]) == NULL) {
            failed |= json_object_set_new(args, lists[i], json_array()) != 0;
        }
    }
    failed |= json_object_set_new(args, "recipe", json_string(held->object->id)) != 0;
    if (failed) {
        json_decref(args);
        return NULL;
    }
    return args;
}

static json_t *recipe_remove(const pd_holding_t *held)
{
    return by_id("recipe", held);
}

/* --- toolboxes and restrictions: rooms of their own ---------------------------------- */

static json_t *toolbox_remove(const pd_holding_t *held)
{
    return by_id("toolbox", held);
}

static json_t *restriction_remove(const pd_holding_t *held)
{
    return by_id("restriction", held);
}

/* --- the table ------------------------------------------------------------------- */

static const char *const recipe_lasting[] = {"title", "description", NULL};

const pd_section_t pd_sections[] = {
    {.name = "roles",
     .kind = "role",
     .create = "roles__create",
     .update = "roles__update",
     .remove = "roles__delete",
     .read = {"role:read"},
     .to_file = role_to_file,
     .canonical = role_canonical,
     .identity = name_of,
     .title = name_of,
     .update_args = role_update,
     .remove_args = role_remove},
    {.name = "connectors",
     .kind = "connector_summary",
     .create = "connectors__create",
     .update = "connectors__update",
     .remove = "connectors__delete",
     .read = {"connector:read"},
     .is_large = 1,
     .to_file = connector_to_file,
     .canonical = connector_canonical,
     .identity = slug_of,
     .title = slug_of,
     .update_args = connector_update,
     .remove_args = connector_remove},
    {.name = "connections",
     .kind = "connection",
     .create = "connections__create",
     .update = "connections__update",
     .remove = "connections__delete",
     .read = {"connection:read_all", "connection:admin"},
     .fixed = "connector",
     .is_fixed_refused = 1,
     .takes = connection_takes,
     .to_file = connection_to_file,
     .canonical = connection_canonical,
     .identity = label_of,
     .title = label_of,
     .update_args = connection_update,
     .remove_args = connection_remove},
    {.name = "settings",
     .kind = "setting",
     .create = "settings__set",
     .update = "settings__set",
     .remove = "settings__unset",
     .read = {"setting:read"},
     .takes = setting_takes,
     .to_file = setting_to_file,
     .canonical = setting_canonical,
     .identity = setting_identity,
     .title = setting_title,
     .update_args = setting_update,
     .remove_args = setting_remove},
    {.name = "recipes",
     .kind = "recipe",
     .create = "recipes__create",
     .update = "recipes__update",
     .remove = "recipes__delete",
     .read = {"recipe:write"}, /* all of them, and not for whom they are */
     .lasting = recipe_lasting,
     .to_file = recipe_to_file,
     .canonical = recipe_canonical,
     .identity = name_of,
     .title = name_of,
     .update_args = recipe_update,
     .remove_args = recipe_remove},
    {.name = "toolboxes",
     .kind = "toolbox",
     .create = "toolboxes__create",
     .update = "toolboxes__update",
     .remove = "toolboxes__delete",
     .read = {"toolbox:write"}, /* frozen values stand in clear */
     .to_file = pd_paper_toolbox_to_file,
     .canonical = pd_paper_toolbox_canonical,
     .identity = name_of,
     .title = name_of,
     .update_args = pd_paper_toolbox_update,
     .remove_args = toolbox_remove},
    {.name = "restrictions",
     .kind = "restriction",
     .create = "restrictions__create",
     .update = "restrictions__update",
     .remove = "restrictions__delete",
     .read = {"restriction:read"},
     .fixed = "target",
     .takes = pd_paper_rule_takes,
     .to_file = pd_paper_rule_to_file,
     .canonical = pd_paper_rule_canonical,
     .identity = pd_paper_rule_identity,
     .title = pd_paper_rule_title,
     .is_same = pd_paper_rule_is_same,
     .update_args = pd_paper_rule_update,
     .remove_args = restriction_remove},
    {.name = NULL},
};
