/* restrictions list, get, create, update, delete: see op_restrictions.h. */
#include "op_restrictions.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "op_reach.h"
#include "op_rule_items.h"
#include "pd_roles.h"
#include "pd_snapshot.h"

#define KIND "restriction"
#define MAX_NAME 64
#define LISTED_ITEMS 50 /* items of a rule that a list shows; get shows all */

/* --- showing --------------------------------------------------------------------- */

static const pd_operation_t *operation_of(const pd_op_call_t *call, const json_t *pin)
{
    const char *id = mcp_json_str(pin, "connector");
    const char *operation = mcp_json_str(pin, "operation");
    const pd_connector_t *connector = id != NULL ? pd_snapshot_connector(call->snapshot, id) : NULL;

    return connector != NULL && operation != NULL ? pd_catalog_operation(connector, operation)
                                                  : NULL;
}

/* 1 when the catalog has the connector, or the operation, of an item or pin. */
static int pin_exists(const pd_op_call_t *call, const json_t *pin)
{
    const char *id = mcp_json_str(pin, "connector");

    if (mcp_json_str(pin, "operation") != NULL) {
        return operation_of(call, pin) != NULL;
    }
    return id != NULL && pd_snapshot_connector(call->snapshot, id) != NULL;
}

static int item_exists(const pd_op_call_t *call, const json_t *item, int is_block)
{
    const char *tool = mcp_json_str(item, "tool");
    const json_t *pin;
    size_t i;

    if (tool == NULL) {
        return pin_exists(call, item);
    }
    json_array_foreach(json_object_get(item, "pins"), i, pin)
    {
        if (pin_exists(call, pin)) {
            return 1;
        }
    }
    return is_block && pd_op_rule_name_matches(call, tool);
}

static int is_block(const json_t *doc)
{
    const char *effect = mcp_json_str(doc, "effect");

    return effect != NULL && strcmp(effect, "block") == 0;
}

/* 1 when nothing that the rule names exists any more. It goes on denying. */
static int is_empty(const pd_op_call_t *call, const json_t *doc)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(doc, "items"), i, item)
    {
        if (item_exists(call, item, is_block(doc))) {
            return 0;
        }
    }
    return 1;
}

static int mark(json_t *shown, const char *name)
{
    return json_object_set_new(shown, name, json_true());
}

/* An item as stored, with the label of its connector; `missing` when the catalog lacks it. */
static json_t *show_item(const pd_op_call_t *call, const json_t *item, int of_block)
{
    const char *id = mcp_json_str(item, "connector");
    const pd_connector_t *connector = id != NULL ? pd_snapshot_connector(call->snapshot, id) : NULL;
    json_t *shown = json_deep_copy(item);

    if (shown == NULL ||
        (connector != NULL && connector->label != NULL &&
         json_object_set_new(shown, "label", json_string(connector->label)) != 0) ||
        (!item_exists(call, item, of_block) && mark(shown, "missing") != 0)) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

static json_t *show_items(const pd_op_call_t *call, const json_t *doc, size_t limit)
{
    json_t *shown = json_array();
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(doc, "items"), i, item)
    {
        if (i >= limit) {
            break;
        }
        if (!json_is_object(item)) {
            continue; /* damaged: names nothing, and denies everything */
        }
        if (json_array_append_new(shown, show_item(call, item, is_block(doc))) != 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

/* The email is for those who can read members. */
static json_t *show_target(const pd_op_call_t *call, const json_t *doc)
{
    const json_t *target = json_object_get(doc, "target");
    const char *member_id = mcp_json_str(target, "member");
    pd_object_t *member = NULL;

    if (member_id == NULL) {
        return json_pack("{s:s*}", "role", mcp_json_str(target, "role"));
    }
    if (!pd_actor_may(call->actor, "member:read") ||
        pd_tx_get(call->tx, "member", member_id, &member) != PD_OK) {
        return json_pack("{s:s}", "member", member_id);
    }
    return json_pack("{s:s, s:s*}", "member", member_id, "email",
                     mcp_json_str(member->doc, "email"));
}

static json_t *show_rule(const pd_op_call_t *call, const pd_object_t *object, size_t limit)
{
    const json_t *doc = object->doc;
    size_t count = json_array_size(json_object_get(doc, "items"));
    json_t *shown =
        json_pack("{s:s, s:s*, s:s*, s:o, s:o, s:I, s:s*, s:s*}", KIND, object->id, "name",
                  mcp_json_str(doc, "name"), "effect", mcp_json_str(doc, "effect"), "target",
                  show_target(call, doc), "items", show_items(call, doc, limit), "items_count",
                  (json_int_t)count, "note", mcp_json_str(doc, "note"), "created_by",
                  mcp_json_str(doc, "created_by"));

    if (shown == NULL || pd_op_stamp(shown, object) != 0 ||
        (is_empty(call, doc) && mark(shown, "empty") != 0) ||
        (count > limit && mark(shown, "more_items") != 0)) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

static json_t *show_listed(const pd_op_call_t *call, const pd_object_t *object)
{
    return show_rule(call, object, LISTED_ITEMS);
}

static json_t *show_whole(const pd_op_call_t *call, const pd_object_t *object)
{
    return show_rule(call, object, SIZE_MAX);
}

/* --- whom it is for -------------------------------------------------------------- */

typedef struct target {
    const char *role;
    const char *member_id;
    const char *member_state;
} target_t;

/* A role by name or id, a member by id or email. */
static pd_status_t find_target(pd_op_call_t *call, const char *role, const char *member,
                               target_t *ret)
{
    pd_object_t *found = NULL;
    pd_status_t status;

    if (role != NULL && pd_roles_builtin(role) != NULL) {
        ret->role = role;
        return PD_OK;
    }
    status = role != NULL ? pd_op_role(call, role, &found) : pd_op_member(call, member, &found);
    if (status != PD_OK) {
        return status;
    }
    if (role != NULL) {
        ret->role = mcp_json_str(found->doc, "name");
        return ret->role != NULL ? PD_OK : PD_E_INTERNAL;
    }
    ret->member_id = found->id;
    ret->member_state = mcp_json_str(found->doc, "state");
    return PD_OK;
}

static pd_status_t check_room(pd_op_call_t *call, const target_t *target)
{
    const pd_rulebook_t *book = call->snapshot->rulebook;
    const pd_layer_t *layer =
        target->role != NULL
            ? apr_hash_get(book->by_role, target->role, APR_HASH_KEY_STRING)
            : apr_hash_get(book->by_member, target->member_id, APR_HASH_KEY_STRING);

    if (layer == NULL || layer->rules->nelts < PD_MAX_RULES) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Put the items into one of them.",
                    "There are %d restrictions for it already, which is the most.", PD_MAX_RULES);
}

static pd_status_t choose_target(pd_op_call_t *call, target_t *ret)
{
    const json_t *target = json_object_get(call->args, "target");
    pd_status_t status =
        find_target(call, mcp_json_str(target, "role"), mcp_json_str(target, "member"), ret);

    if (status == PD_OK && ret->member_state != NULL && strcmp(ret->member_state, "removed") == 0) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, NULL, "This member was removed.");
    }
    return status == PD_OK ? check_room(call, ret) : status;
}

/* --- list and get ---------------------------------------------------------------- */

typedef struct wanted {
    const char *role;
    const char *connector; /* id or slug, as named */
    const char *effect;
} wanted_t;

static int is_text(const json_t *object, const char *name, const char *text)
{
    const char *is = mcp_json_str(object, name);

    return is != NULL && strcmp(is, text) == 0;
}

static int names_connector(const json_t *doc, const char *named)
{
    const json_t *item;
    const json_t *pin;
    size_t i;
    size_t k;

    json_array_foreach(json_object_get(doc, "items"), i, item)
    {
        if (is_text(item, "connector", named) || is_text(item, "slug", named)) {
            return 1;
        }
        json_array_foreach(json_object_get(item, "pins"), k, pin)
        {
            if (is_text(pin, "connector", named) || is_text(pin, "slug", named)) {
                return 1;
            }
        }
    }
    return 0;
}

static int is_wanted(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    const wanted_t *wanted = baton;
    const json_t *target = json_object_get(object->doc, "target");

    (void)call;
    return (wanted->effect == NULL || is_text(object->doc, "effect", wanted->effect)) &&
           (wanted->role == NULL || is_text(target, "role", wanted->role)) &&
           (wanted->connector == NULL || names_connector(object->doc, wanted->connector));
}

/* Whose an email is, and whether there is such a member, is told by member:read alone. */
static pd_status_t check_asks(pd_op_call_t *call, const char *member)
{
    static const char permission[] = "member:read";

    if (strncmp(member, "mem_", 4) == 0 || pd_op_is_actor(call, member) ||
        pd_actor_may(call->actor, permission)) {
        return PD_OK;
    }
    pd_op_detail(call, "lacks=%s", permission);
    (void)apr_cpystrn(call->fault.permission, permission, sizeof(call->fault.permission));
    return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED, "Name the member by id.",
                    "Asking by an email needs the permission %s.", permission);
}

pd_status_t pd_op_restrictions_list(pd_op_call_t *call)
{
    const char *role = pd_op_text(call, "role");
    const char *member = pd_op_text(call, "member");
    wanted_t wanted = {NULL, pd_op_text(call, "connector"), pd_op_text(call, "effect")};
    pd_op_list_t list = {KIND, "rst_", NULL, is_wanted, &wanted, show_listed};
    target_t of_role = {NULL, NULL, NULL};
    target_t of_member = {NULL, NULL, NULL};
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK && role != NULL) {
        status = find_target(call, role, NULL, &of_role);
    }
    if (status == PD_OK && member != NULL) {
        status = check_asks(call, member);
    }
    if (status == PD_OK && member != NULL) {
        status = find_target(call, NULL, member, &of_member);
    }
    if (status != PD_OK) {
        return status;
    }
    wanted.role = of_role.role;
    list.owner = of_member.member_id;
    return pd_op_list_answer(call, &list);
}

static const char *name_key(const pd_op_call_t *call, const char *name)
{
    return apr_pstrcat(call->pool, "name:", name, (char *)NULL);
}

static pd_status_t find_restriction(pd_op_call_t *call, pd_object_t **ret)
{
    const char *named = pd_op_text(call, KIND);
    pd_status_t status = pd_op_has_policy(call);

    if (status != PD_OK) {
        return status;
    }
    status = strncmp(named, "rst_", 4) == 0
                 ? pd_tx_get(call->tx, KIND, named, ret)
                 : pd_tx_find(call->tx, KIND, name_key(call, named), ret);
    if (status == PD_E_NOT_FOUND) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "restrictions list shows them.",
                        "There is no such restriction; name one by id or name.");
    }
    return status;
}

pd_status_t pd_op_restrictions_get(pd_op_call_t *call)
{
    pd_object_t *rule = NULL;
    pd_status_t status = find_restriction(call, &rule);

    return status == PD_OK ? pd_op_answer(call, show_whole(call, rule)) : status;
}

/* --- writing --------------------------------------------------------------------- */

/* `explain` is a path of its own beside the names of restrictions. */
static pd_status_t check_name(pd_op_call_t *call, const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  " ._-";
    size_t bytes = name != NULL ? strlen(name) : 0;

    if (name == NULL ||
        (bytes > 0 && bytes <= MAX_NAME && strspn(name, allowed) == bytes && name[0] != ' ' &&
         name[bytes - 1] != ' ' && strncmp(name, "rst_", 4) != 0 && strcmp(name, "explain") != 0 &&
         strcmp(name, ".") != 0 && strcmp(name, "..") != 0)) {
        return PD_OK;
    }
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "For example no-deletes",
                    "A restriction's name has 1 to 64 letters, digits, blanks, dots, dashes or "
                    "underscores, no blank at an end, does not begin like an id and is not "
                    "explain.");
}

static pd_effect_t effect_of(const char *text)
{
    return text != NULL && strcmp(text, "allow") == 0 ? PD_EFFECT_ALLOW : PD_EFFECT_BLOCK;
}

/* The rule as get shows it, with what its writer should know. */
static pd_status_t answer_write(pd_op_call_t *call, const char *id, json_t *warnings)
{
    pd_status_t status = pd_op_answer_again(call, KIND, id, show_whole);

    if (status == PD_OK &&
        json_object_set_new(call->result, "warnings", json_incref(warnings)) != 0) {
        return PD_E_NOMEM;
    }
    return status;
}

static pd_status_t name_taken(pd_op_call_t *call)
{
    return pd_fault(&call->fault, MCP_CODE_CONFLICT, "restrictions update changes it.",
                    "A restriction of this name exists.");
}

static json_t *new_document(pd_op_call_t *call, const target_t *target, json_t *items)
{
    return pd_op_keep(call, json_pack("{s:s, s:{s:s}, s:O, s:s*, s:s*, s:s}", "effect",
                                      pd_op_text(call, "effect"), "target",
                                      target->role != NULL ? "role" : "member",
                                      target->role != NULL ? target->role : target->member_id,
                                      "items", items, "name", pd_op_text(call, "name"), "note",
                                      pd_op_text(call, "note"), "created_by", pd_op_actor(call)));
}

pd_status_t pd_op_restrictions_create(pd_op_call_t *call)
{
    const char *name = pd_op_text(call, "name");
    const char *id = pd_store_new_id("rst", call->pool);
    const char *keys[2] = {name != NULL ? name_key(call, name) : NULL, NULL};
    json_t *warnings = pd_op_keep(call, json_array());
    target_t target = {NULL, NULL, NULL};
    json_t *items = NULL;
    json_t *doc = NULL;
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK) {
        status = check_name(call, name);
    }
    if (status == PD_OK) {
        status = choose_target(call, &target);
    }
    if (status == PD_OK) {
        status = pd_op_rule_items(call, effect_of(pd_op_text(call, "effect")),
                                  json_object_get(call->args, "items"), NULL, warnings, &items);
    }
    if (status == PD_OK) {
        doc = new_document(call, &target, items);
        status = doc != NULL ? pd_op_rule_twins(call, id, doc, warnings) : PD_E_NOMEM;
    }
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "restriction=%s", id);
    status = pd_tx_insert(call->tx, KIND, id, target.member_id, doc, keys);
    if (status == PD_E_CONFLICT) {
        return name_taken(call);
    }
    return status == PD_OK ? answer_write(call, id, warnings) : status;
}

/* A copy of a stored rule without what is no text where there should be one: an update replaces the rest of what is damaged. The
 * target can't be given, so that only a member's can be found again, by the owner. NULL: out of memory. */
static json_t *mended(const pd_op_call_t *call, const pd_object_t *old)
{
    static const char *const texts[] = {"effect", "name", "note", "created_by"};
    json_t *doc = json_is_object(old->doc) ? pd_op_copy(call, old->doc)
                                           : pd_op_keep(call, json_object());
    const json_t *target = json_object_get(doc, "target");
    size_t i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const json_t *value = json_object_get(doc, texts[i]);

        if (value != NULL && !json_is_string(value)) {
            (void)json_object_del(doc, texts[i]); /* it is there */
        }
    }
    if (doc != NULL && old->owner != NULL && mcp_json_str(target, "role") == NULL &&
        mcp_json_str(target, "member") == NULL &&
        json_object_set_new(doc, "target", json_pack("{s:s}", "member", old->owner)) != 0) {
        return NULL;
    }
    return doc;
}

/* What is stored is sound, unless a rule that was damaged still is. */
static pd_status_t check_sound(pd_op_call_t *call, const char *id, const json_t *doc)
{
    pd_rule_t *rule = NULL;
    pd_status_t status = pd_rule_make(id, doc, &rule);

    pd_rule_release(&rule);
    return status != PD_E_INVALID
               ? status
               : pd_fault(&call->fault, MCP_CODE_CONFLICT,
                          "Give `effect` and `items`; if that is not enough, delete it.",
                          "This restriction is damaged, and would still be.");
}

/* An argument over a member of the document; null takes it away. */
static pd_status_t merge_text(const pd_op_call_t *call, json_t *doc, const char *name)
{
    json_t *value = json_object_get(call->args, name);

    if (value == NULL) {
        return PD_OK;
    }
    if (json_is_null(value)) {
        (void)json_object_del(doc, name); /* not there: nothing to take away */
        return PD_OK;
    }
    return json_object_set_new(doc, name, json_incref(value)) == 0 ? PD_OK : PD_E_NOMEM;
}

/* Another effect reads the items in another way, so they are judged again then too. */
static pd_status_t merge_items(pd_op_call_t *call, const pd_object_t *old, json_t *doc,
                               json_t *warnings)
{
    const json_t *old_items = json_object_get(old->doc, "items");
    const json_t *given = json_object_get(call->args, "items");
    const char *effect = pd_op_text(call, "effect");
    pd_effect_t was = effect_of(mcp_json_str(old->doc, "effect"));
    pd_effect_t becomes = effect != NULL ? effect_of(effect) : was;
    json_t *items = NULL;
    pd_status_t status;

    if (given == NULL && (becomes == was || !json_is_array(old_items))) {
        return PD_OK; /* what is no list stays damaged, and is told of */
    }
    status = pd_op_rule_items(call, becomes, given != NULL ? given : old_items, old_items, warnings,
                              &items);
    if (status != PD_OK) {
        return status;
    }
    return json_object_set_new(doc, "items", json_incref(items)) == 0 ? PD_OK : PD_E_NOMEM;
}

static pd_status_t merge(pd_op_call_t *call, const pd_object_t *old, json_t *doc, json_t *warnings)
{
    static const char *const texts[] = {"effect", "name", "note"};
    pd_status_t status = check_name(call, pd_op_text(call, "name"));
    size_t i;

    for (i = 0; status == PD_OK && i < sizeof(texts) / sizeof(texts[0]); i++) {
        status = merge_text(call, doc, texts[i]);
    }
    return status == PD_OK ? merge_items(call, old, doc, warnings) : status;
}

pd_status_t pd_op_restrictions_update(pd_op_call_t *call)
{
    json_t *warnings = pd_op_keep(call, json_array());
    const char *keys[2] = {NULL, NULL};
    pd_object_t *old = NULL;
    json_t *doc = NULL;
    pd_status_t status = find_restriction(call, &old);

    if (status == PD_OK) {
        doc = mended(call, old);
        status = doc != NULL ? merge(call, old, doc, warnings) : PD_E_NOMEM;
    }
    if (status == PD_OK) {
        status = check_sound(call, old->id, doc);
    }
    if (status == PD_OK) {
        status = pd_op_rule_twins(call, old->id, doc, warnings);
    }
    if (status != PD_OK) {
        return status;
    }
    if (mcp_json_str(doc, "name") != NULL) {
        keys[0] = name_key(call, mcp_json_str(doc, "name"));
    }
    pd_op_detail(call, "restriction=%s", old->id);
    status =
        pd_tx_update(call->tx, KIND, old->id, old->owner, doc, keys, pd_op_if_revision(call), NULL);
    if (status == PD_E_CONFLICT) {
        return name_taken(call);
    }
    return status == PD_OK ? answer_write(call, old->id, warnings) : status;
}

pd_status_t pd_op_restrictions_delete(pd_op_call_t *call)
{
    pd_object_t *rule = NULL;
    pd_status_t status = find_restriction(call, &rule);

    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "restriction=%s", rule->id);
    status = pd_tx_delete(call->tx, KIND, rule->id, pd_op_if_revision(call));
    return status == PD_OK
               ? pd_op_answer(call, json_pack("{s:s, s:b}", KIND, rule->id, "deleted", 1))
               : status;
}
