/* Toolboxes in a policy document: {"name","description"?,"roles"?,"members"?: emails,"entries":[{"connector": slug,"operation",
 * "connections": labels or ["@own"],"name","title"?,"description"?,"defaults"?,"frozen"?,"always_visible"?}]}, entries by name.  Values
 * stand in clear, the frozen ones too: whoever exports toolboxes holds toolbox:write.  What is gone stands by id. */
#include "op_policy_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "op_reach.h"

/* An entry, to be sorted. */
typedef struct named {
    const char *name;
    json_t *file;
} named_t;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named_t *)a)->name, ((const named_t *)b)->name);
}

/* --- parts ----------------------------------------------------------------------- */

/* A set of references of one sort; new reference in *ret. */
static pd_status_t reference_set(pd_paper_t *paper, const json_t *given,
                                 pd_status_t (*name)(pd_paper_t *, const char *, const char **),
                                 json_t **ret)
{
    json_t *names = json_array();
    pd_status_t status = PD_OK;
    size_t i;

    for (i = 0; status == PD_OK && i < json_array_size(given); i++) {
        const char *text = json_string_value(json_array_get(given, i));

        status = text == NULL ? PD_E_CORRUPT : name(paper, text, &text);
        if (status == PD_OK && json_array_append_new(names, json_string(text)) != 0) {
            status = PD_E_NOMEM;
        }
    }
    if (status == PD_OK) {
        *ret = pd_paper_set(names);
        status = *ret != NULL ? PD_OK : PD_E_NOMEM;
    }
    json_decref(names);
    return status;
}

/* Members as a set of emails, without those who were removed: they have no toolbox any more. */
static pd_status_t member_set(pd_paper_t *paper, const json_t *given, json_t **ret)
{
    json_t *alive = json_array();
    pd_status_t status = PD_OK;
    size_t i;

    for (i = 0; status == PD_OK && i < json_array_size(given); i++) {
        json_t *one = json_array_get(given, i);
        const char *text = json_string_value(one);
        int is_alive = 1;

        if (text != NULL && strncmp(text, "mem_", 4) == 0) {
            status = pd_paper_is_alive(paper, text, &is_alive);
        }
        if (status == PD_OK && is_alive && json_array_append_new(alive, json_incref(one)) != 0) {
            status = PD_E_NOMEM;
        }
    }
    if (status == PD_OK) {
        status = reference_set(paper, alive, pd_paper_member, ret);
    }
    json_decref(alive);
    return status;
}

/* The name that an entry gets where none is given: its operation's id in the characters of a tool's name. */
static const char *default_name(const pd_paper_t *paper, const char *toolbox, const char *operation)
{
    char *name = apr_pstrdup(paper->call->pool, operation);
    size_t used = strlen(toolbox) + 2;
    size_t room = used < MCP_MAX_TOOL_NAME ? MCP_MAX_TOOL_NAME - used : 0;
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

/* A copy of a member where it says something: a text or an object that is not empty, a truth that is true. */
static json_t *said(const json_t *from, const char *name)
{
    const json_t *value = json_object_get(from, name);
    int is_said = (json_is_string(value) && json_string_length(value) > 0) ||
                  (json_is_object(value) && json_object_size(value) > 0) || json_is_true(value);

    return is_said ? pd_paper_sorted(value) : NULL;
}

/* --- entries --------------------------------------------------------------------- */

static pd_status_t entry_form(pd_paper_t *paper, const char *toolbox, const json_t *from,
                              named_t *ret)
{
    const char *connector = mcp_json_str(from, "connector");
    const char *operation = mcp_json_str(from, "operation");
    const char *name = mcp_json_str(from, "name");
    json_t *connections = NULL;
    pd_status_t status = connector != NULL && operation != NULL ? PD_OK : PD_E_CORRUPT;

    if (status == PD_OK) {
        status = pd_paper_slug(paper, connector, &connector);
    }
    if (status == PD_OK) {
        status = reference_set(paper, json_object_get(from, "connections"), pd_paper_label,
                               &connections);
    }
    if (status != PD_OK) {
        return status;
    }
    ret->name = name != NULL ? name : default_name(paper, toolbox, operation);
    ret->file = json_pack("{s:o*, s:o, s:s, s:o*, s:o*, s:o*, s:s, s:s, s:o*}", "always_visible",
                          said(from, "always_visible"), "connections", connections, "connector",
                          connector, "defaults", said(from, "defaults"), "description",
                          said(from, "description"), "frozen", said(from, "frozen"), "name",
                          ret->name, "operation", operation, "title", said(from, "title"));
    return ret->file != NULL ? PD_OK : PD_E_NOMEM;
}

static pd_status_t entries_form(pd_paper_t *paper, const char *toolbox, const json_t *from,
                                json_t **ret)
{
    apr_array_header_t *sorted = apr_array_make(paper->call->pool, 16, sizeof(named_t));
    json_t *made = json_array();
    pd_status_t status = made != NULL ? PD_OK : PD_E_NOMEM;
    const json_t *entry;
    size_t i;
    int k;

    json_array_foreach(from, i, entry)
    {
        named_t one = {NULL, NULL};

        if (status == PD_OK) {
            status = entry_form(paper, toolbox, entry, &one);
        }
        if (status == PD_OK) {
            APR_ARRAY_PUSH(sorted, named_t) = one;
        }
    }
    qsort(sorted->elts, (size_t)sorted->nelts, sizeof(named_t), by_name);
    for (k = 0; k < sorted->nelts; k++) {
        /* all of them, also after a failure: the array owns them */
        if (json_array_append_new(made, APR_ARRAY_IDX(sorted, k, named_t).file) != 0) {
            status = PD_E_NOMEM;
        }
    }
    if (status != PD_OK) {
        json_decref(made);
        return status;
    }
    *ret = made;
    return PD_OK;
}

/* --- the whole ------------------------------------------------------------------- */

/* Steals entries and members. */
static json_t *toolbox_json(const json_t *from, json_t *entries, json_t *members)
{
    json_t *roles = pd_paper_set(json_object_get(from, "roles"));
    json_t *made =
        json_pack("{s:o*, s:o}", "description", said(from, "description"), "entries", entries);
    int failed = made == NULL || roles == NULL;

    if (json_array_size(members) > 0) {
        failed |= json_object_set_new(made, "members", json_incref(members)) != 0;
    }
    failed |= json_object_set_new(made, "name", json_string(mcp_json_str(from, "name"))) != 0;
    if (json_array_size(roles) > 0) {
        failed |= json_object_set_new(made, "roles", json_incref(roles)) != 0;
    }
    json_decref(members);
    json_decref(roles);
    if (failed) {
        json_decref(made);
        return NULL;
    }
    return made;
}

/* The same for what is stored and for what is given: both are made of the same members. */
static pd_status_t to_form(pd_paper_t *paper, const json_t *from, json_t **ret)
{
    const char *name = mcp_json_str(from, "name");
    json_t *entries = NULL;
    json_t *members = NULL;
    pd_status_t status = name != NULL
                             ? entries_form(paper, name, json_object_get(from, "entries"), &entries)
                             : PD_E_CORRUPT;

    if (status == PD_OK) {
        status = member_set(paper, json_object_get(from, "members"), &members);
    }
    if (status != PD_OK) {
        json_decref(entries);
        return status;
    }
    *ret = toolbox_json(from, entries, members);
    return *ret != NULL ? PD_OK : PD_E_NOMEM;
}

/* Its values belong to its operations: a document shows and compares them, so it takes somebody who sees
 * these. */
static pd_status_t check_sight(pd_paper_t *paper, const json_t *doc)
{
    pd_op_call_t *call = paper->call;
    const json_t *entry;
    pd_status_t status;
    size_t i;

    if (call->actor->member_id == NULL) {
        return PD_OK; /* no member, no rule */
    }
    status = pd_op_has_policy(call);
    if (paper->sights == NULL) {
        paper->sights = apr_hash_make(call->pool);
    }
    json_array_foreach(json_object_get(doc, "entries"), i, entry)
    {
        const char *connector = mcp_json_str(entry, "connector");
        const char *operation = mcp_json_str(entry, "operation");

        if (status != PD_OK || connector == NULL || operation == NULL) {
            break; /* to_form() says what is wrong */
        }
        if (!pd_op_sees_connector(call, paper->sights, connector) ||
            !pd_op_sees_operation(call, paper->sights, connector, operation)) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                            "Use other sections, or ask somebody who has all of it.",
                            "toolboxes: the operation of an entry is withheld from you, so that "
                            "your document would not be whole.");
        }
    }
    return status;
}

pd_status_t pd_paper_toolbox_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret)
{
    pd_status_t status = check_sight(paper, object->doc);

    return status == PD_OK ? to_form(paper, object->doc, ret) : status;
}

pd_status_t pd_paper_toolbox_canonical(pd_paper_t *paper, const json_t *given, json_t **ret)
{
    pd_fault_t *fault = &paper->call->fault;
    const json_t *entry;
    pd_status_t status;
    size_t i;

    json_array_foreach(json_object_get(given, "entries"), i, entry)
    {
        if (json_object_get(entry, "entry") != NULL) {
            return pd_fault(fault, MCP_CODE_INVALID_REQUEST, "Entries go by their names.",
                            "entry number %lu has an id, which a document has no place for",
                            (unsigned long)i + 1);
        }
    }
    status = to_form(paper, given, ret);
    return status != PD_E_CORRUPT ? status
                                  : pd_fault(fault, MCP_CODE_INVALID_REQUEST, NULL,
                                             "an entry names no connector or no operation");
}

/* What differs, and what is to go as its empty value. */
json_t *pd_paper_toolbox_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted)
{
    static const struct {
        const char *name;
        int is_text;
    } members[] = {{"description", 1}, {"entries", 0}, {"members", 0}, {"roles", 0}};
    json_t *args = json_pack("{s:s}", "toolbox", held->object->id);
    int failed = args == NULL;
    size_t i;

    (void)paper;
    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const json_t *is = json_object_get(held->file, members[i].name);
        const json_t *becomes = json_object_get(wanted, members[i].name);

        if ((is == NULL && becomes == NULL) || json_equal(is, becomes)) {
            continue;
        }
        failed |= json_object_set_new(args, members[i].name,
                                      becomes != NULL      ? json_deep_copy(becomes)
                                      : members[i].is_text ? json_null()
                                                           : json_array()) != 0;
    }
    if (failed) {
        json_decref(args);
        return NULL;
    }
    return args;
}
