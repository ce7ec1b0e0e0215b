/* What there is of a policy document, and policy export: see op_policy.h. */
#include "op_policy.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "op_policy_private.h"
#include "op_reach.h"

#define FILE_VERSION 1
#define STEP 200                       /* objects read at once */
#define MAX_EXPORT (15u * 1024 * 1024) /* a little less than what apply takes */

/* --- what is there ---------------------------------------------------------------- */

static pd_status_t corrupt(pd_paper_t *paper, const pd_section_t *section,
                           const pd_object_t *object)
{
    return pd_fault(&paper->call->fault, MCP_CODE_CONFLICT, "Delete or replace that object first.",
                    "%s: the stored object %s can't be read, so there is no faithful document.",
                    section->name, object->id);
}

static pd_status_t hold(pd_paper_t *paper, const pd_section_t *section, const pd_object_t *object,
                        apr_array_header_t *into)
{
    pd_holding_t *held;
    json_t *file = NULL;
    const json_t *named = object->doc;
    int is_taken = 1;
    pd_status_t status = section->takes != NULL ? section->takes(paper, object, &is_taken) : PD_OK;

    if (status != PD_OK || !is_taken) {
        return status;
    }
    if (!section->is_large) {
        status = section->to_file(paper, object, &file);
        if (status == PD_E_CORRUPT) {
            return corrupt(paper, section, object);
        }
        if (status != PD_OK) {
            return status;
        }
        named = pd_op_keep(paper->call, file);
    }
    held = apr_array_push(into);
    held->object = object;
    held->file = file;
    held->identity = section->identity(paper, named);
    held->name = section->title(paper, named);
    held->is_wanted = 0;
    return held->identity != NULL && held->name != NULL ? PD_OK : corrupt(paper, section, object);
}

static int by_identity(const void *a, const void *b)
{
    const pd_holding_t *x = a;
    const pd_holding_t *y = b;
    int order = strcmp(x->name, y->name);

    order = order != 0 ? order : strcmp(x->identity, y->identity);
    return order != 0 ? order : strcmp(x->object->id, y->object->id);
}

pd_status_t pd_paper_list(pd_paper_t *paper, const pd_section_t *section, apr_array_header_t **ret)
{
    pd_op_call_t *call = paper->call;
    apr_array_header_t *all = apr_array_make(call->pool, 16, sizeof(pd_holding_t));
    const char *after = NULL;

    for (;;) {
        apr_array_header_t *step = NULL;
        pd_status_t status = pd_boot_left_ms(call->deadline) > 0
                                 ? pd_tx_list(call->tx, section->kind, NULL, after, STEP, &step)
                                 : PD_E_TIMEOUT;
        int i;

        for (i = 0; status == PD_OK && i < step->nelts; i++) {
            const pd_object_t *object = APR_ARRAY_IDX(step, i, pd_object_t *);

            status = hold(paper, section, object, all);
            after = object->id;
        }
        if (status != PD_OK) {
            return status;
        }
        if (step->nelts < STEP) {
            break;
        }
    }
    qsort(all->elts, (size_t)all->nelts, sizeof(pd_holding_t), by_identity);
    *ret = all;
    return PD_OK;
}

pd_status_t pd_paper_file(pd_paper_t *paper, const pd_section_t *section, const pd_holding_t *held,
                          json_t **ret)
{
    pd_status_t status;

    if (held->file != NULL) {
        *ret = json_incref(held->file);
        return PD_OK;
    }
    status = pd_boot_left_ms(paper->call->deadline) > 0 ? section->to_file(paper, held->object, ret)
                                                        : PD_E_TIMEOUT;
    return status == PD_E_CORRUPT ? corrupt(paper, section, held->object) : status;
}

pd_status_t pd_paper_permission(pd_op_call_t *call, const char *permission, const char *section)
{
    if (permission == NULL || pd_actor_may(call->actor, permission)) {
        return PD_OK;
    }
    pd_op_detail(call, "lacks=%s", permission);
    (void)apr_cpystrn(call->fault.permission, permission, sizeof(call->fault.permission));
    return pd_fault(&call->fault, MCP_CODE_PERMISSION_DENIED,
                    "Leave the section out, or ask an administrator for a role that holds it.",
                    "%s: your roles do not hold the permission %s.", section, permission);
}

pd_status_t pd_paper_may_name(pd_op_call_t *call, const pd_section_t *section, const json_t *file)
{
    if (mcp_json_str(json_object_get(file, "target"), "member") == NULL &&
        json_array_size(json_object_get(file, "members")) == 0) {
        return PD_OK;
    }
    return pd_paper_permission(call, "member:read", section->name);
}

/* --- export ----------------------------------------------------------------------- */

static int is_asked(const json_t *names, const char *name)
{
    size_t i;

    for (i = 0; i < json_array_size(names); i++) {
        const char *one = json_string_value(json_array_get(names, i));

        if (one != NULL && strcmp(one, name) == 0) {
            return 1;
        }
    }
    return names == NULL;
}

/* A document opens no more than reading its parts does. */
static pd_status_t check_read(pd_op_call_t *call, const pd_section_t *section)
{
    if (section->read[1] != NULL && pd_actor_may(call->actor, section->read[1])) {
        return PD_OK;
    }
    return pd_paper_permission(call, section->read[0], section->name);
}

/* A connector is shown as it is or not at all: what the actor can't have of it would be lost by applying the document. */
static pd_status_t check_sight(pd_paper_t *paper, const pd_holding_t *held, const json_t *file)
{
    pd_op_call_t *call = paper->call;
    pd_subject_t subject = pd_op_subject(call->actor);
    pd_op_sight_t sight;
    const json_t *operation;
    pd_status_t status;
    size_t i;

    if (subject.member_id == NULL) {
        return PD_OK; /* no member, no rule */
    }
    status = pd_op_has_policy(call);
    if (status != PD_OK) {
        return status;
    }
    pd_op_sight_begin(call, &subject, held->object->id, &sight);
    json_array_foreach(json_object_get(file, "operations"), i, operation)
    {
        if (!pd_op_sight_has(&sight, operation)) {
            return pd_fault(&call->fault, MCP_CODE_CONFLICT,
                            "Export other `sections`, or ask somebody who has all of it.",
                            "connectors: something in the catalog is withheld from you, so that "
                            "your document would not be whole.");
        }
    }
    return PD_OK;
}

static pd_status_t export_section(pd_paper_t *paper, const pd_section_t *section, json_t *document,
                                  size_t *bytes)
{
    apr_array_header_t *all = NULL;
    json_t *list = json_array();
    pd_status_t status = pd_paper_list(paper, section, &all);
    int i;

    for (i = 0; status == PD_OK && i < all->nelts; i++) {
        const pd_holding_t *held = &APR_ARRAY_IDX(all, i, pd_holding_t);
        json_t *file = NULL;

        status = pd_paper_file(paper, section, held, &file);
        if (status == PD_OK) {
            status = pd_paper_may_name(paper->call, section, file);
        }
        if (status == PD_OK && section->is_large) {
            status = check_sight(paper, held, file);
        }
        *bytes += status == PD_OK ? json_dumpb(file, NULL, 0, JSON_COMPACT) + 1 : 0;
        if (status == PD_OK && *bytes > MAX_EXPORT) {
            status =
                pd_fault(&paper->call->fault, MCP_CODE_RESULT_TOO_LARGE,
                         "Export other `sections`; connectors get shows connectors one by one.",
                         "The document would be larger than what can be applied again.");
        }
        if (status != PD_OK) {
            json_decref(file);
        } else if (json_array_append_new(list, file) != 0) {
            status = PD_E_NOMEM;
        }
    }
    if (status != PD_OK) {
        json_decref(list);
        return status;
    }
    return json_object_set_new(document, section->name, list) == 0 ? PD_OK : PD_E_NOMEM;
}

pd_status_t pd_op_policy_export(pd_op_call_t *call)
{
    pd_paper_t paper = {.call = call};
    const json_t *asked = json_object_get(call->args, "sections");
    json_t *document = json_pack("{s:i}", "version", FILE_VERSION);
    pd_status_t status = document != NULL ? PD_OK : PD_E_NOMEM;
    const pd_section_t *section;
    size_t bytes = 0;

    for (section = pd_sections; status == PD_OK && section->name != NULL; section++) {
        if (is_asked(asked, section->name)) {
            status = check_read(call, section);
        }
    }
    for (section = pd_sections; status == PD_OK && section->name != NULL; section++) {
        if (is_asked(asked, section->name)) {
            status = export_section(&paper, section, document, &bytes);
        }
    }
    if (status != PD_OK) {
        json_decref(document);
        return status;
    }
    return pd_op_answer(call, document);
}
