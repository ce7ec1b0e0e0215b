/* Canonical forms: sorted objects, sets, and references by name. See op_policy_private.h. */
#include "op_policy_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"

#define STEP 500 /* connectors read at once */

/* --- values ---------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *sorted(const json_t *value, int depth);

static json_t *sorted_object(const json_t *object, int depth)
{
    size_t count = json_object_size(object);
    const char **names = calloc(count + 1, sizeof(*names));
    json_t *made = json_object();
    const char *name;
    json_t *member;
    int failed = names == NULL || made == NULL;
    size_t i = 0;

    json_object_foreach((json_t *)(uintptr_t)object, name, member)
    {
        if (!failed && i < count) {
            names[i++] = name;
        }
    }
    if (!failed) {
        qsort(names, count, sizeof(*names), by_text);
    }
    for (i = 0; !failed && i < count; i++) {
        failed = json_object_set_new(made, names[i],
                                     sorted(json_object_get(object, names[i]), depth - 1)) != 0;
    }
    free(names);
    if (failed) {
        json_decref(made);
        return NULL;
    }
    return made;
}

static json_t *sorted_array(const json_t *array, int depth)
{
    json_t *made = json_array();
    size_t i;

    for (i = 0; i < json_array_size(array); i++) {
        if (json_array_append_new(made, sorted(json_array_get(array, i), depth - 1)) != 0) {
            json_decref(made);
            return NULL;
        }
    }
    return made;
}

/* As deep as any JSON that is read from outside. */
static json_t *sorted(const json_t *value, int depth)
{
    if (depth <= 0) {
        return NULL;
    }
    if (json_is_object(value)) {
        return sorted_object(value, depth);
    }
    return json_is_array(value) ? sorted_array(value, depth) : json_deep_copy(value);
}

json_t *pd_paper_sorted(const json_t *value)
{
    return sorted(value, MCP_MAX_DEPTH);
}

json_t *pd_paper_set(const json_t *texts)
{
    size_t count = json_array_size(texts);
    const char **names = calloc(count + 1, sizeof(*names));
    json_t *made = json_array();
    int failed = names == NULL || made == NULL;
    size_t used = 0;
    size_t i;

    for (i = 0; !failed && i < count; i++) {
        names[used] = json_string_value(json_array_get(texts, i));
        used += names[used] != NULL;
    }
    if (!failed) {
        qsort(names, used, sizeof(*names), by_text);
    }
    for (i = 0; !failed && i < used; i++) {
        if (i == 0 || strcmp(names[i - 1], names[i]) != 0) {
            failed = json_array_append_new(made, json_string(names[i])) != 0;
        }
    }
    free(names);
    if (failed) {
        json_decref(made);
        return NULL;
    }
    return made;
}

int pd_paper_put(json_t *object, const char *name, json_t *value)
{
    return value == NULL ? 0 : json_object_set_new(object, name, value);
}

/* --- references ------------------------------------------------------------------ */

static pd_status_t read_slugs(pd_paper_t *paper)
{
    pd_op_call_t *call = paper->call;
    const char *after = NULL;

    paper->slugs = apr_hash_make(call->pool);
    for (;;) {
        apr_array_header_t *step = NULL;
        pd_status_t status = pd_tx_list(call->tx, "connector_summary", NULL, after, STEP, &step);
        int i;

        for (i = 0; status == PD_OK && i < step->nelts; i++) {
            const pd_object_t *summary = APR_ARRAY_IDX(step, i, pd_object_t *);
            const char *slug = mcp_json_str(summary->doc, "slug");

            if (slug != NULL) {
                apr_hash_set(paper->slugs, summary->id, APR_HASH_KEY_STRING, slug);
            }
            after = summary->id;
        }
        if (status != PD_OK || step->nelts < STEP) {
            return status;
        }
    }
}

pd_status_t pd_paper_slug(pd_paper_t *paper, const char *connector, const char **ret)
{
    pd_status_t status = paper->slugs == NULL ? read_slugs(paper) : PD_OK;
    const char *slug;

    if (status != PD_OK) {
        return status;
    }
    slug = apr_hash_get(paper->slugs, connector, APR_HASH_KEY_STRING);
    *ret = slug != NULL ? slug : connector;
    return PD_OK;
}

static int is_removed(const pd_object_t *member)
{
    const char *state = mcp_json_str(member->doc, "state");

    return state == NULL || strcmp(state, "removed") == 0;
}

pd_status_t pd_paper_is_alive(pd_paper_t *paper, const char *member_id, int *ret)
{
    pd_object_t *member = NULL;
    pd_status_t status = pd_tx_get(paper->call->tx, "member", member_id, &member);

    *ret = status == PD_OK && !is_removed(member);
    return status == PD_E_NOT_FOUND ? PD_OK : status;
}

/* The name of an object, remembered in `known`; `text` itself where there is no such object. */
typedef const char *name_fn(const pd_paper_t *paper, const pd_object_t *object);

static pd_status_t name_of(pd_paper_t *paper, apr_hash_t **known, const char *kind, const char *id,
                           name_fn *name, const char **ret)
{
    apr_pool_t *pool = paper->call->pool;
    pd_object_t *object = NULL;
    const char *found = NULL;
    pd_status_t status;

    if (*known == NULL) {
        *known = apr_hash_make(pool);
    }
    *ret = apr_hash_get(*known, id, APR_HASH_KEY_STRING);
    if (*ret != NULL) {
        return PD_OK;
    }
    status = pd_tx_get(paper->call->tx, kind, id, &object);
    if (status != PD_OK && status != PD_E_NOT_FOUND) {
        return status;
    }
    if (status == PD_OK) {
        found = name(paper, object);
    }
    *ret = apr_pstrdup(pool, found != NULL ? found : id);
    apr_hash_set(*known, apr_pstrdup(pool, id), APR_HASH_KEY_STRING, *ret);
    return PD_OK;
}

static const char *email_of(const pd_paper_t *paper, const pd_object_t *member)
{
    const char *email = mcp_json_str(member->doc, "email");

    return email != NULL && !is_removed(member) ? pd_op_lower(paper->call, email) : NULL;
}

static const char *label_of(const pd_paper_t *paper, const pd_object_t *connection)
{
    (void)paper;
    return connection->owner == NULL ? mcp_json_str(connection->doc, "label") : NULL;
}

pd_status_t pd_paper_member(pd_paper_t *paper, const char *member, const char **ret)
{
    if (strncmp(member, "mem_", 4) != 0) {
        *ret = pd_op_lower(paper->call, member);
        return PD_OK;
    }
    return name_of(paper, &paper->members, "member", member, email_of, ret);
}

pd_status_t pd_paper_label(pd_paper_t *paper, const char *connection, const char **ret)
{
    if (strncmp(connection, "cxn_", 4) != 0) {
        *ret = connection;
        return PD_OK;
    }
    return name_of(paper, &paper->labels, "connection", connection, label_of, ret);
}
