/* Finding, showing and paging for the handlers: see op_find.h. */
#include "op_find.h"

#include <stdarg.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "pd_log.h"

#define STEP       200 /* objects read at once, at most */
#define STEP_LEAST 20

static apr_status_t drop_json(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

json_t *pd_op_keep(const pd_op_call_t *call, json_t *value)
{
    if (value != NULL) {
        apr_pool_cleanup_register(call->pool, value, drop_json, apr_pool_cleanup_null);
    }
    return value;
}

json_t *pd_op_copy(const pd_op_call_t *call, const json_t *doc)
{
    return pd_op_keep(call, json_deep_copy(doc));
}

const char *pd_op_text(const pd_op_call_t *call, const char *name)
{
    return mcp_json_str(call->args, name);
}

int64_t pd_op_if_revision(const pd_op_call_t *call)
{
    return (int64_t)mcp_json_int(call->args, "if_revision", 0);
}

const char *pd_op_actor(const pd_op_call_t *call)
{
    const pd_actor_t *actor = call->actor;

    return actor->member_id != NULL ? actor->member_id : actor->label != NULL ? actor->label : "";
}

const char *pd_op_lower(const pd_op_call_t *call, const char *text)
{
    char *lower = apr_pstrdup(call->pool, text);
    char *at;

    for (at = lower; *at != '\0'; at++) {
        if (*at >= 'A' && *at <= 'Z') {
            *at = (char)(*at - 'A' + 'a');
        }
    }
    return lower;
}

void pd_op_detail(pd_op_call_t *call, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    call->detail = apr_pvsprintf(call->pool, format, list);
    va_end(list);
}

int pd_op_stamp(json_t *shown, const pd_object_t *object)
{
    char created[32];
    char updated[32];

    pd_wall_text(object->created, created);
    pd_wall_text(object->updated, updated);
    if (json_object_set_new(shown, "revision", json_integer((json_int_t)object->revision)) != 0 ||
        json_object_set_new(shown, "created_at", json_string(created)) != 0 ||
        json_object_set_new(shown, "updated_at", json_string(updated)) != 0) {
        return -1;
    }
    return 0;
}

pd_status_t pd_op_answer(pd_op_call_t *call, json_t *shown)
{
    if (shown == NULL) {
        return PD_E_NOMEM;
    }
    call->result = shown;
    return PD_OK;
}

pd_status_t pd_op_answer_again(pd_op_call_t *call, const char *kind, const char *id,
                               pd_op_show_fn *show)
{
    pd_object_t *object = NULL;
    pd_status_t status = pd_tx_get(call->tx, kind, id, &object);

    return status == PD_OK ? pd_op_answer(call, show(call, object)) : status;
}

void pd_op_log_damaged(const char *kind, const char *id)
{
    pd_log(PD_LOG_ERR, 173, "the stored %s %s is damaged and left out", kind, id);
}

/* By id where the text has the prefix of one, else by alternative key. */
static pd_status_t find_named(pd_op_call_t *call, const char *kind, const char *prefix,
                              const char *named, const char *key, pd_object_t **ret)
{
    pd_status_t status = PD_E_NOT_FOUND;

    if (strncmp(named, prefix, strlen(prefix)) == 0) {
        status = pd_tx_get(call->tx, kind, named, ret);
    }
    if (status == PD_E_NOT_FOUND) {
        status = pd_tx_find(call->tx, kind, key, ret);
    }
    return status;
}

pd_status_t pd_op_member(pd_op_call_t *call, const char *named, pd_object_t **ret)
{
    const char *key = apr_pstrcat(call->pool, "email:", pd_op_lower(call, named), (char *)NULL);
    pd_status_t status = find_named(call, "member", "mem_", named, key, ret);

    if (status == PD_E_NOT_FOUND) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "members list shows them.",
                        "There is no such member; name one by id or email.");
    }
    return status;
}

pd_status_t pd_op_role(pd_op_call_t *call, const char *named, pd_object_t **ret)
{
    const char *key = apr_pstrcat(call->pool, "name:", named, (char *)NULL);
    pd_status_t status = find_named(call, "role", "rol_", named, key, ret);

    if (status == PD_E_NOT_FOUND) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "roles list shows them.",
                        "There is no such role; name one by id or name.");
    }
    return status;
}

pd_status_t pd_op_connector(pd_op_call_t *call, const char *named, pd_object_t **ret)
{
    const char *key = apr_pstrcat(call->pool, "slug:", named, (char *)NULL);
    pd_status_t status = find_named(call, "connector", "con_", named, key, ret);

    if (status == PD_E_NOT_FOUND) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "connectors list shows them.",
                        "There is no such connector; name one by id or slug.");
    }
    return status;
}

/* Takes the objects of one step; *ret_more when one more than the limit was found. */
static pd_status_t take_step(pd_op_call_t *call, const pd_op_list_t *list,
                             const apr_array_header_t *step, size_t limit, json_t *items,
                             const char **last, int *ret_more)
{
    int i;

    for (i = 0; i < step->nelts; i++) {
        const pd_object_t *object = APR_ARRAY_IDX(step, i, pd_object_t *);
        json_t *shown;

        if (list->pick != NULL && !list->pick(call, object, list->baton)) {
            continue;
        }
        if (json_array_size(items) >= limit) {
            *ret_more = 1;
            return PD_OK;
        }
        shown = list->show(call, object);
        if (shown == NULL) {
            pd_op_log_damaged(list->kind, object->id);
            continue; /* the others are sound */
        }
        if (json_array_append_new(items, shown) != 0) {
            return PD_E_NOMEM;
        }
        *last = apr_pstrdup(call->pool, object->id);
    }
    return PD_OK;
}

/* As many as the page still takes, and one: reading is what costs. */
static int step_for(size_t limit, const json_t *items)
{
    size_t rest = limit + 1 > json_array_size(items) ? limit + 1 - json_array_size(items) : 1;

    return rest > STEP ? STEP : rest < STEP_LEAST ? STEP_LEAST : (int)rest;
}

pd_status_t pd_op_list_more(pd_op_call_t *call, const pd_op_list_t *list, const char *after,
                            size_t limit, json_t *items, const char **ret_next)
{
    const char *last = after != NULL ? after : *ret_next;
    int has_more = 0;

    for (;;) {
        apr_array_header_t *step = NULL;
        int wanted = step_for(limit, items);
        pd_status_t status;

        if (pd_boot_left_ms(call->deadline) <= 0) {
            return PD_E_TIMEOUT;
        }
        status = pd_tx_list(call->tx, list->kind, list->owner, after, wanted, &step);
        if (status == PD_OK) {
            status = take_step(call, list, step, limit, items, &last, &has_more);
        }
        if (status != PD_OK) {
            return status;
        }
        if (has_more || step->nelts < wanted) {
            break;
        }
        after = APR_ARRAY_IDX(step, step->nelts - 1, pd_object_t *)->id;
    }
    *ret_next = has_more ? last : NULL;
    return PD_OK;
}

size_t pd_op_limit(const pd_op_call_t *call)
{
    json_int_t limit = mcp_json_int(call->args, "limit", PD_OP_PAGE);

    return limit < 1 ? 1 : limit > PD_OP_PAGE_MAX ? PD_OP_PAGE_MAX : (size_t)limit;
}

pd_status_t pd_op_items(pd_op_call_t *call, json_t *items, const char *next)
{
    return pd_op_answer(call, json_pack("{s:o, s:s*}", "items", items, "next_cursor", next));
}

pd_status_t pd_op_bad_cursor(pd_op_call_t *call)
{
    return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                    "Leave `cursor` out to start from the first page.",
                    "cursor is not one that this list gave.");
}

pd_status_t pd_op_list_answer(pd_op_call_t *call, const pd_op_list_t *list)
{
    const char *cursor = pd_op_text(call, "cursor");
    const char *next = NULL;
    json_t *items;
    pd_status_t status;

    if (cursor != NULL && strncmp(cursor, list->prefix, strlen(list->prefix)) != 0) {
        return pd_op_bad_cursor(call);
    }
    items = json_array();
    if (items == NULL) {
        return PD_E_NOMEM;
    }
    status = pd_op_list_more(call, list, cursor, pd_op_limit(call), items, &next);
    if (status != PD_OK) {
        json_decref(items);
        return status;
    }
    return pd_op_items(call, items, next);
}
