/* Restrictions in a policy document: {"effect","target":{"role"}|{"member": email},"items":[{"connector": slug},
 * {"connector","operation"},{"tool","pins":[{"connector","operation"}]}],"name"?,"note"?}, items sorted.
 *
 * A rule with a name is that one; a rule without is its content.  What an item names that the catalog lacks by now stands by id, so
 * that it is never taken for something else of the same slug.  An allow is written by operations alone: a tool's name is a label that
 * those who are governed can change, and a document is applied many times. */
#include "op_policy_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "op_find.h"
#include "pd_roles.h"

#define LOOK_EVERY 256 /* items between looks at the clock */

/* One item or pin. */
typedef struct item {
    const char *connector; /* NULL: a tool's name */
    const char *operation; /* NULL: the whole connector */
    const char *tool;
    apr_array_header_t *pins; /* of item_t, of a tool's name */
} item_t;

static int compare(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "");
}

static int by_place(const void *a, const void *b)
{
    const item_t *x = a;
    const item_t *y = b;
    int order = compare(x->tool, y->tool);

    order = order != 0 ? order : compare(x->connector, y->connector);
    return order != 0 ? order : compare(x->operation, y->operation);
}

static void sort_items(apr_array_header_t *items)
{
    qsort(items->elts, (size_t)items->nelts, sizeof(item_t), by_place);
}

/* --- reading --------------------------------------------------------------------- */

static pd_status_t read_pin(pd_paper_t *paper, const json_t *from, item_t *ret)
{
    const char *connector = mcp_json_str(from, "connector");

    memset(ret, 0, sizeof(*ret));
    if (connector == NULL) {
        return PD_E_CORRUPT;
    }
    ret->operation = mcp_json_str(from, "operation");
    return pd_paper_slug(paper, connector, &ret->connector);
}

static pd_status_t read_pins(pd_paper_t *paper, const json_t *from, apr_array_header_t *into)
{
    const json_t *pin;
    size_t i;

    json_array_foreach(from, i, pin)
    {
        item_t one;
        pd_status_t status = read_pin(paper, pin, &one);

        if (status != PD_OK) {
            return status;
        }
        APR_ARRAY_PUSH(into, item_t) = one;
    }
    return PD_OK;
}

/* One item, added; a name in an allow as the operations that it stands for. */
static pd_status_t read_item(pd_paper_t *paper, const json_t *from, int is_allow,
                             apr_array_header_t *into)
{
    const json_t *pins = json_object_get(from, "pins");
    const char *tool = mcp_json_str(from, "tool");
    item_t one;
    pd_status_t status;

    if (tool != NULL && is_allow) {
        return read_pins(paper, pins, into);
    }
    if (tool == NULL) {
        status = read_pin(paper, from, &one);
    } else {
        one = (item_t){NULL, NULL, tool, apr_array_make(paper->call->pool, 2, sizeof(item_t))};
        status = read_pins(paper, pins, one.pins);
    }
    if (status == PD_OK) {
        APR_ARRAY_PUSH(into, item_t) = one;
    }
    return status;
}

static pd_status_t read_items(pd_paper_t *paper, const json_t *from, int is_allow,
                              apr_array_header_t **ret)
{
    const json_t *item;
    size_t i;

    *ret = apr_array_make(paper->call->pool, 16, sizeof(item_t));
    json_array_foreach(from, i, item)
    {
        pd_status_t status = i % LOOK_EVERY == 0 && pd_boot_left_ms(paper->call->deadline) <= 0
                                 ? PD_E_TIMEOUT
                                 : read_item(paper, item, is_allow, *ret);

        if (status != PD_OK) {
            return status;
        }
    }
    sort_items(*ret);
    return PD_OK;
}

/* --- canonical form -------------------------------------------------------------- */

static json_t *pins_json(apr_array_header_t *pins)
{
    json_t *made = json_array();
    int failed = made == NULL;
    int i;

    sort_items(pins);
    for (i = 0; !failed && i < pins->nelts; i++) {
        const item_t *pin = &APR_ARRAY_IDX(pins, i, item_t);

        if (i == 0 || by_place(pin, &APR_ARRAY_IDX(pins, i - 1, item_t)) != 0) {
            failed =
                json_array_append_new(made, json_pack("{s:s, s:s*}", "connector", pin->connector,
                                                      "operation", pin->operation)) != 0;
        }
    }
    if (failed) {
        json_decref(made);
        return NULL;
    }
    return made;
}

static json_t *item_json(const item_t *item)
{
    return item->tool == NULL
               ? json_pack("{s:s, s:s*}", "connector", item->connector, "operation",
                           item->operation)
               : json_pack("{s:o, s:s}", "pins", pins_json(item->pins), "tool", item->tool);
}

/* Each item once; the pins of a name that stands twice are one. */
static json_t *items_json(apr_array_header_t *items)
{
    json_t *made = json_array();
    int failed = made == NULL;
    int i;

    for (i = 0; !failed && i < items->nelts; i++) {
        item_t *item = &APR_ARRAY_IDX(items, i, item_t);
        item_t *next = i + 1 < items->nelts ? &APR_ARRAY_IDX(items, i + 1, item_t) : NULL;

        if (next != NULL && by_place(item, next) == 0) {
            if (item->tool != NULL) {
                apr_array_cat(next->pins, item->pins);
            }
            continue;
        }
        failed = json_array_append_new(made, item_json(item)) != 0;
    }
    if (failed) {
        json_decref(made);
        return NULL;
    }
    return made;
}

static json_t *rule_json(const json_t *from, apr_array_header_t *items, const char *role,
                         const char *member)
{
    const char *name = mcp_json_str(from, "name");
    const char *note = mcp_json_str(from, "note");
    json_t *made = json_pack("{s:s, s:o, s:s*}", "effect", mcp_json_str(from, "effect"), "items",
                             items_json(items), "name", name);

    if (made == NULL ||
        pd_paper_put(made, "note", note != NULL && note[0] != '\0' ? json_string(note) : NULL) !=
            0 ||
        json_object_set_new(made, "target",
                            role != NULL ? json_pack("{s:s}", "role", role)
                                         : json_pack("{s:s}", "member", member)) != 0) {
        json_decref(made);
        return NULL;
    }
    return made;
}

static int is_allow(const json_t *rule)
{
    const char *effect = mcp_json_str(rule, "effect");

    return effect != NULL && strcmp(effect, "allow") == 0;
}

/* A role by name, as it is stored; one that is named by id is looked up. */
static pd_status_t role_name(pd_paper_t *paper, const char *named, const char **ret)
{
    pd_object_t *role = NULL;
    const char *name;
    pd_status_t status;

    *ret = named;
    if (strncmp(named, "rol_", 4) != 0) {
        return PD_OK;
    }
    status = pd_tx_get(paper->call->tx, "role", named, &role);
    name = status == PD_OK ? mcp_json_str(role->doc, "name") : NULL;
    if (name != NULL) {
        *ret = name;
    }
    return status == PD_E_NOT_FOUND ? PD_OK : status;
}

/* The same for what is stored and for what is given: both are made of the same members. */
static pd_status_t to_form(pd_paper_t *paper, const json_t *from, json_t **ret)
{
    const json_t *target = json_object_get(from, "target");
    const char *role = mcp_json_str(target, "role");
    const char *member = mcp_json_str(target, "member");
    apr_array_header_t *items = NULL;
    pd_status_t status;

    if (mcp_json_str(from, "effect") == NULL || (role == NULL) == (member == NULL)) {
        return PD_E_CORRUPT;
    }
    status = role != NULL ? role_name(paper, role, &role) : pd_paper_member(paper, member, &member);
    if (status == PD_OK) {
        status = read_items(paper, json_object_get(from, "items"), is_allow(from), &items);
    }
    if (status != PD_OK) {
        return status;
    }
    *ret = rule_json(from, items, role, member);
    return *ret != NULL ? PD_OK : PD_E_NOMEM;
}

/* A rule for a member who was removed governs nobody. It stays where it is and is in no document: under the email it would come to
 * govern whoever has that next. */
pd_status_t pd_paper_rule_takes(pd_paper_t *paper, const pd_object_t *object, int *ret)
{
    const char *member = mcp_json_str(json_object_get(object->doc, "target"), "member");

    *ret = 1;
    return member != NULL ? pd_paper_is_alive(paper, member, ret) : PD_OK;
}

pd_status_t pd_paper_rule_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret)
{
    return to_form(paper, object->doc, ret);
}

pd_status_t pd_paper_rule_canonical(pd_paper_t *paper, const json_t *given, json_t **ret)
{
    pd_fault_t *fault = &paper->call->fault;
    const json_t *item;
    size_t i;
    pd_status_t status;

    json_array_foreach(json_object_get(given, "items"), i, item)
    {
        int is_tool = json_object_get(item, "tool") != NULL;

        if (is_tool == (json_object_get(item, "connector") != NULL) ||
            (is_tool && json_object_get(item, "operation") != NULL) ||
            (!is_tool && json_object_get(item, "pins") != NULL)) {
            return pd_fault(fault, MCP_CODE_INVALID_REQUEST,
                            "Write {\"connector\"}, {\"connector\",\"operation\"} or {\"tool\"}.",
                            "item number %lu names neither one connector, nor one operation of it, "
                            "nor one tool",
                            (unsigned long)i + 1);
        }
        if (is_tool && is_allow(given)) {
            return pd_fault(fault, MCP_CODE_INVALID_REQUEST,
                            "Name the connector and the operation: export shows them.",
                            "item number %lu allows by the name of a tool, which others can change "
                            "before the document is applied again",
                            (unsigned long)i + 1);
        }
    }
    status = to_form(paper, given, ret);
    return status != PD_E_CORRUPT ? status
                                  : pd_fault(fault, MCP_CODE_INVALID_REQUEST, NULL,
                                             "target names neither one role nor one member");
}

/* --- identity and comparison ----------------------------------------------------- */

/* Effect, target and items without pins, as text; for free(). */
static char *content(const json_t *file)
{
    json_t *bare =
        json_pack("[O, O, []]", json_object_get(file, "effect"), json_object_get(file, "target"));
    json_t *items = json_array_get(bare, 2);
    const json_t *item;
    char *text = NULL;
    size_t i;
    int failed = bare == NULL;

    json_array_foreach(json_object_get(file, "items"), i, item)
    {
        json_t *tool = json_object_get(item, "tool");

        failed |= json_array_append_new(items, tool != NULL ? json_incref(tool)
                                                            : json_deep_copy(item)) != 0;
    }
    if (!failed) {
        text = mcp_json_text(bare, NULL);
    }
    json_decref(bare);
    return text;
}

const char *pd_paper_rule_identity(pd_paper_t *paper, const json_t *file)
{
    const char *name = mcp_json_str(file, "name");
    char digest[MCP_DIGEST_HEX + 1];
    char *text;

    if (name != NULL) {
        return apr_pstrdup(paper->call->pool, name);
    }
    text = content(file);
    if (text == NULL) {
        return NULL;
    }
    mcp_digest_hex(text, strlen(text), digest);
    free(text);
    return apr_pstrcat(paper->call->pool, PD_PAPER_NAMELESS, digest, (char *)NULL);
}

const char *pd_paper_rule_title(pd_paper_t *paper, const json_t *file)
{
    const json_t *target = json_object_get(file, "target");
    const char *name = mcp_json_str(file, "name");
    const char *role = mcp_json_str(target, "role");
    const char *member = mcp_json_str(target, "member");
    unsigned long count = (unsigned long)json_array_size(json_object_get(file, "items"));

    if (name != NULL) {
        return apr_pstrdup(paper->call->pool, name);
    }
    return apr_psprintf(paper->call->pool, "%s for %s %s, %lu item%s", mcp_json_str(file, "effect"),
                        role != NULL ? "role" : "member", role != NULL ? role : member, count,
                        count == 1 ? "" : "s");
}

/* Whether `held` has every pin of `wanted`, both sorted. A block never forgets what it was pinned to, and a document that was written
 * before pins were added must not have them written again and again. */
static int has_pins(const json_t *wanted, const json_t *held)
{
    size_t k = 0;
    size_t i;

    for (i = 0; i < json_array_size(wanted); i++) {
        while (k < json_array_size(held) &&
               !json_equal(json_array_get(wanted, i), json_array_get(held, k))) {
            k++;
        }
        if (k == json_array_size(held)) {
            return 0;
        }
    }
    return 1;
}

static int same_items(const json_t *wanted, const json_t *held)
{
    size_t i;

    if (json_array_size(wanted) != json_array_size(held)) {
        return 0;
    }
    for (i = 0; i < json_array_size(wanted); i++) {
        const json_t *a = json_array_get(wanted, i);
        const json_t *b = json_array_get(held, i);
        const json_t *tool = json_object_get(a, "tool");

        if (tool == NULL ? !json_equal(a, b)
                         : !json_equal(tool, json_object_get(b, "tool")) ||
                               !has_pins(json_object_get(a, "pins"), json_object_get(b, "pins"))) {
            return 0;
        }
    }
    return 1;
}

static int same_member(const json_t *wanted, const json_t *held, const char *name)
{
    const json_t *a = json_object_get(wanted, name);
    const json_t *b = json_object_get(held, name);

    return (a == NULL && b == NULL) || json_equal(a, b);
}

int pd_paper_rule_is_same(const json_t *wanted, const json_t *held)
{
    return same_member(wanted, held, "effect") && same_member(wanted, held, "target") &&
           same_member(wanted, held, "name") && same_member(wanted, held, "note") &&
           same_items(json_object_get(wanted, "items"), json_object_get(held, "items"));
}

/* Items that are the same are not sent: writing them would pin names anew. */
json_t *pd_paper_rule_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted)
{
    json_t *args = json_pack("{s:s}", "restriction", held->object->id);
    const json_t *note = json_object_get(wanted, "note");
    int failed = args == NULL;

    (void)paper;
    if (!same_member(wanted, held->file, "effect")) {
        failed |= json_object_set_new(args, "effect",
                                      json_deep_copy(json_object_get(wanted, "effect"))) != 0;
    }
    if (!same_member(wanted, held->file, "note")) {
        failed |= json_object_set_new(args, "note",
                                      note != NULL ? json_deep_copy(note) : json_null()) != 0;
    }
    if (!same_member(wanted, held->file, "effect") ||
        !same_items(json_object_get(wanted, "items"), json_object_get(held->file, "items"))) {
        failed |= json_object_set_new(args, "items",
                                      json_deep_copy(json_object_get(wanted, "items"))) != 0;
    }
    if (failed) {
        json_decref(args);
        return NULL;
    }
    return args;
}
