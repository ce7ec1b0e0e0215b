/* tools list and get: see op_tools.h. */
#include "op_tools.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/mcp_names.h"
#include "op_find.h"
#include "op_reach.h"
#include "pd_control.h"
#include "pd_policy.h"
#include "pd_view.h"

/* --- list ------------------------------------------------------------------------ */

/* One tool of the list. Texts belong to the snapshot. */
typedef struct line {
    const char *name;
    const char *connector;
    const char *account;
    mcp_class_t klass;
} line_t;

typedef struct gathering {
    pd_op_call_t *call;
    pd_actor_t caller;  /* whose tools they are */
    int is_stepped_up;  /* tools that only lack a scope are listed */
    const char *query; /* lower case, or NULL */
    const char *account;
    const char *after; /* only names behind this one, or NULL */
    apr_array_header_t *lines;
} gathering_t;

static int is_wanted(const gathering_t *gathering, const line_t *line)
{
    const pd_op_call_t *call = gathering->call;

    if (gathering->after != NULL && strcmp(line->name, gathering->after) <= 0) {
        return 0;
    }
    if (gathering->account != NULL && strcmp(line->account, gathering->account) != 0 &&
        strcmp(line->connector, gathering->account) != 0) {
        return 0;
    }
    return gathering->query == NULL ||
           strstr(pd_op_lower(call, line->name), gathering->query) != NULL ||
           strstr(line->connector, gathering->query) != NULL;
}

static int is_callable(const gathering_t *gathering, mcp_class_t klass)
{
    unsigned needed = MCP_SCOPE_TOOLS | mcp_scope_of_class(klass);

    return gathering->is_stepped_up ||
           (mcp_scope_close(gathering->caller.scopes) & needed) == needed;
}

static pd_status_t gather(const pd_found_t *found, void *baton)
{
    gathering_t *gathering = baton;
    line_t line = {found->name, found->connector->slug,
                   found->entry != NULL
                       ? found->toolbox->name
                       : APR_ARRAY_IDX(found->connections, 0, const pd_connection_t *)->label,
                   found->operation->klass};

    if (pd_boot_left_ms(gathering->call->deadline) <= 0) {
        return PD_E_TIMEOUT;
    }
    if (is_callable(gathering, line.klass) && is_wanted(gathering, &line)) {
        APR_ARRAY_PUSH(gathering->lines, line_t) = line;
    }
    return PD_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const line_t *)a)->name, ((const line_t *)b)->name);
}

static pd_status_t answer_lines(pd_op_call_t *call, const apr_array_header_t *lines)
{
    size_t limit = pd_op_limit(call);
    int count = (size_t)lines->nelts > limit ? (int)limit : lines->nelts;
    json_t *items = json_array();
    int failed = 0;
    int i;

    for (i = 0; i < count; i++) {
        const line_t *line = &APR_ARRAY_IDX(lines, i, line_t);

        failed |= json_array_append_new(
            items, json_pack("{s:s, s:s, s:s, s:s}", "name", line->name, "connector",
                             line->connector, "account", line->account, "classification",
                             mcp_class_text(line->klass)));
    }
    if (failed != 0) {
        json_decref(items);
        return PD_E_NOMEM;
    }
    return pd_op_items(call, items,
                       count > 0 && count < lines->nelts
                           ? APR_ARRAY_IDX(lines, count - 1, line_t).name
                           : NULL);
}

pd_status_t pd_op_tools_list(pd_op_call_t *call)
{
    const char *query = pd_op_text(call, "query");
    gathering_t gathering = {.call = call,
                             .query = query != NULL ? pd_op_lower(call, query) : NULL,
                             .account = pd_op_text(call, "account"),
                             .after = pd_op_text(call, "cursor"),
                             .lines = apr_array_make(call->pool, 64, sizeof(line_t))};
    pd_subject_t subject;
    pd_status_t status = pd_op_has_policy(call);

    if (status == PD_OK && gathering.after != NULL && !mcp_name_is_tool(gathering.after)) {
        status = pd_op_bad_cursor(call);
    }
    if (status == PD_OK) {
        status = pd_op_caller_named(call, pd_op_text(call, "member"), &subject, &gathering.caller);
    }
    if (status != PD_OK) {
        return status;
    }
    gathering.is_stepped_up = pd_snapshot_setting_bool(call->snapshot, "advertise.step_up", 0);
    if (pd_actor_may(&gathering.caller, "tool:execute")) {
        status = pd_reach_each(call->snapshot, &subject, call->pool, gather, &gathering);
    }
    if (status != PD_OK) {
        return status;
    }
    qsort(gathering.lines->elts, (size_t)gathering.lines->nelts, sizeof(line_t), by_name);
    return answer_lines(call, gathering.lines);
}

/* --- get ------------------------------------------------------------------------- */

/* The operation's name in one that begins with a prefix of the control plane, ours or one that an endpoint may have; else NULL. Such
 * prefixes are nobody's label. */
static const char *after_prefix(const pd_op_call_t *call, const char *name)
{
    const pd_config_t *config = call->core->config;
    const char *mark = strstr(name, "__");
    size_t bytes = mark != NULL ? (size_t)(mark - name) : 0;
    int is_prefix = bytes > 0 && config->control_prefix != NULL &&
                    strlen(config->control_prefix) == bytes &&
                    strncmp(config->control_prefix, name, bytes) == 0;
    int i;

    for (i = 0; bytes > 0 && config->reserved_labels != NULL && i < config->reserved_labels->nelts;
         i++) {
        const char *label = APR_ARRAY_IDX(config->reserved_labels, i, const char *);

        is_prefix |= strlen(label) == bytes && strncmp(label, name, bytes) == 0;
    }
    return is_prefix ? mark + 2 : NULL;
}

/* As pd_view_definition() for an operation of the control plane, whose `name` stays as it was asked for. */
static pd_status_t control_definition(const pd_op_call_t *call, const char *name,
                                      const char *operation, json_t **ret)
{
    const pd_op_t *op = pd_ops_find(operation);
    pd_actor_t actor = *call->actor;
    json_t *rest = NULL;
    json_t *def;
    pd_status_t status;

    if (pd_snapshot_setting_bool(call->snapshot, "advertise.step_up", 0)) {
        actor.scopes = ~0u;
    }
    status = op != NULL ? pd_control_definition(&actor, operation, &rest) : PD_E_NOT_FOUND;
    if (status != PD_OK) {
        return status;
    }
    def = json_pack("{s:s}", "name", name);
    if (json_object_update(def, rest) != 0 ||
        json_object_set_new(def, "classification", json_string(mcp_class_text(op->klass))) != 0) {
        json_decref(def);
        def = NULL;
    }
    json_decref(rest);
    *ret = def;
    return def != NULL ? PD_OK : PD_E_NOMEM;
}

static pd_status_t define(const pd_op_call_t *call, const char *name, json_t **ret)
{
    const char *operation = after_prefix(call, name);
    pd_status_t status;

    if (operation != NULL) {
        return control_definition(call, name, operation, ret);
    }
    status = pd_view_definition(call->core, call->actor, name, ret);
    if (status == PD_OK && call->actor->surface == MCP_SURFACE_MCP &&
        json_object_get(*ret, "connector") == NULL) {
        json_decref(*ret); /* over MCP an operation has no name without the prefix */
        *ret = NULL;
        return PD_E_NOT_FOUND;
    }
    return status;
}

pd_status_t pd_op_tools_get(pd_op_call_t *call)
{
    const json_t *names = json_object_get(call->args, "names");
    json_t *items = pd_op_keep(call, json_array());
    json_t *unknown = pd_op_keep(call, json_array());
    pd_status_t status = pd_op_has_policy(call);
    size_t i;

    if (status == PD_OK && call->core->policy == NULL) {
        return PD_E_INTERNAL;
    }
    for (i = 0; status == PD_OK && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        json_t *def = NULL;

        if (name == NULL) {
            return PD_E_INTERNAL;
        }
        status = define(call, name, &def);
        if (status == PD_OK) {
            status = json_array_append_new(items, def) == 0 ? PD_OK : PD_E_NOMEM;
        } else if (status == PD_E_NOT_FOUND) {
            status =
                json_array_append_new(unknown, json_string(name)) == 0 ? PD_OK : PD_E_NOMEM;
        }
    }
    return status == PD_OK ? pd_op_answer(call, json_pack("{s:O, s:O}", "items", items, "unknown",
                                                          unknown))
                           : status;
}
