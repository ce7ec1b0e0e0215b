/* Comparing two forms of a connector: see op_import_diff.h. */
#include "op_import_diff.h"

#include <string.h>

#include <apr_hash.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One comparing. */
typedef struct comparing {
    const pd_import_terms_t *terms;
    apr_pool_t *pool;
    apr_hash_t *accepted; /* id or word -> itself */
    pd_import_diff_t *diff;
    json_t *operations;   /* of the document to be in force */
    int failed;           /* out of memory somewhere */
} comparing_t;

static const char *id_of(const json_t *operation)
{
    const char *id = mcp_json_str(operation, "id");

    return id != NULL ? id : "";
}

/* id -> operation */
static apr_hash_t *by_id(const json_t *doc, apr_pool_t *pool)
{
    apr_hash_t *found = apr_hash_make(pool);
    json_t *operation;
    size_t i;

    json_array_foreach(json_object_get(doc, "operations"), i, operation)
    {
        apr_hash_set(found, id_of(operation), APR_HASH_KEY_STRING, operation);
    }
    return found;
}

static int is_accepted(const comparing_t *c, const char *word)
{
    return c->terms->accepts_all || apr_hash_get(c->accepted, word, APR_HASH_KEY_STRING) != NULL;
}

static void add(comparing_t *c, json_t *list, json_t *row)
{
    c->failed |= json_array_append_new(list, row);
}

static void keep(comparing_t *c, json_t *operation)
{
    c->failed |= json_array_append_new(c->operations, json_incref(operation));
}

/* 1, and a row, when a change waits. */
static int hold(comparing_t *c, const char *id, const char *why)
{
    if (why == NULL || is_accepted(c, id)) {
        return 0;
    }
    add(c, c->diff->held, json_pack("{s:s,s:s}", "operation", id, "why", why));
    return 1;
}

static mcp_class_t class_of(const json_t *operation)
{
    return mcp_class_from_text(mcp_json_str(operation, "classification"));
}

static int is_same_member(const json_t *a, const json_t *b, const char *name)
{
    const json_t *x = json_object_get(a, name);
    const json_t *y = json_object_get(b, name);

    return x == y || (x != NULL && y != NULL && json_equal(x, y));
}

/* Why a changed operation waits, or NULL. */
static const char *why_held(const json_t *old, const json_t *operation)
{
    if (!is_same_member(old, operation, "method") || !is_same_member(old, operation, "path") ||
        !is_same_member(old, operation, "query")) {
        return "another method or path under the same id";
    }
    return class_of(operation) < class_of(old) ? "a weaker classification" : NULL;
}

static void compare(comparing_t *c, json_t *old, json_t *operation)
{
    static const char *const members[] = {"method", "path",       "query", "classification", "summary",
                                          "description", "tags", "parameters", "body"};
    json_t *what = json_array();
    size_t i;

    for (i = 0; i < COUNT(members); i++) {
        if (!is_same_member(old, operation, members[i])) {
            add(c, what, json_string(members[i]));
        }
    }
    if (json_array_size(what) > 0 || !json_equal(old, operation)) {
        add(c, c->diff->changed, json_pack("{s:s,s:O}", "operation", id_of(operation), "what", what));
        c->diff->is_same = 0;
    }
    json_decref(what);
    if (class_of(old) != class_of(operation)) {
        add(c, c->diff->reclassified,
            json_pack("{s:s,s:s,s:s}", "operation", id_of(operation), "from",
                      mcp_class_text(class_of(old)), "to", mcp_class_text(class_of(operation))));
    }
    keep(c, hold(c, id_of(operation), why_held(old, operation)) ? old : operation);
}

static void compare_new(comparing_t *c, const json_t *doc, apr_hash_t *before)
{
    json_t *operation;
    size_t i;

    json_array_foreach(json_object_get(doc, "operations"), i, operation)
    {
        json_t *old = apr_hash_get(before, id_of(operation), APR_HASH_KEY_STRING);

        if (old != NULL) {
            compare(c, old, operation);
            continue;
        }
        add(c, c->diff->added, json_string(id_of(operation)));
        c->diff->is_same = 0;
        if (!hold(c, id_of(operation),
                  class_of(operation) == MCP_CLASS_DESTRUCTIVE ? "new and destructive" : NULL)) {
            keep(c, operation);
        }
    }
}

static void compare_gone(comparing_t *c, const json_t *old, apr_hash_t *after)
{
    json_t *operation;
    size_t i;

    json_array_foreach(json_object_get(old, "operations"), i, operation)
    {
        const char *id = id_of(operation);

        if (apr_hash_get(after, id, APR_HASH_KEY_STRING) != NULL) {
            continue;
        }
        add(c, c->diff->removed, json_string(id));
        c->diff->is_same = 0;
        if (hold(c, id, c->terms->is_named(c->terms->baton, id)
                            ? "a restriction or toolbox names what would be removed"
                            : NULL)) {
            keep(c, operation);
        }
    }
}

/* 1 when the connector as a whole waits: another place, or another way to sign in. */
static int holds_all(comparing_t *c, const json_t *old, const json_t *doc)
{
    int is_elsewhere = !is_same_member(old, doc, "base_url") || !is_same_member(old, doc, "variables");
    int is_other_auth =
        !c->terms->is_same_auth(json_object_get(old, "auth"), json_object_get(doc, "auth"));
    int waits = 0;

    if (is_elsewhere) {
        add(c, c->diff->changed, json_pack("{s:s,s:[s]}", "operation", PD_IMPORT_BASE_URL, "what", "base_url"));
        waits = hold(c, PD_IMPORT_BASE_URL, "another base URL or variable: nothing of the file is in force until it is accepted");
    }
    if (is_other_auth) {
        add(c, c->diff->changed, json_pack("{s:s,s:[s]}", "operation", PD_IMPORT_AUTH, "what", "auth"));
        waits |= hold(c, PD_IMPORT_AUTH, "another auth scheme: nothing of the file is in force until it is accepted");
    }
    c->diff->is_same &= !is_elsewhere && !is_other_auth;
    return waits;
}

/* The new document's own members with the operations that were kept; new reference. */
static json_t *merged(const comparing_t *c, const json_t *doc)
{
    json_t *result = json_object();
    const char *name;
    json_t *value;
    void *at;
    int failed = result == NULL;

    for (at = json_object_iter((json_t *)(uintptr_t)doc); at != NULL;
         at = json_object_iter_next((json_t *)(uintptr_t)doc, at)) {
        name = json_object_iter_key(at);
        value = json_object_iter_value(at);
        failed |= json_object_set_new(result, name,
                                      json_incref(strcmp(name, "operations") == 0 ? c->operations : value));
    }
    if (failed != 0) {
        json_decref(result);
        return NULL;
    }
    return result;
}

static void note_accepted(comparing_t *c)
{
    json_t *word;
    size_t i;

    json_array_foreach(c->terms->accepted, i, word)
    {
        const char *text = json_string_value(word);

        if (text != NULL) {
            apr_hash_set(c->accepted, text, APR_HASH_KEY_STRING, text);
        }
    }
}

/* Members beside the operations: label, description, limits. */
static int is_same_head(const json_t *old, const json_t *doc)
{
    static const char *const members[] = {"slug", "label", "description", "timeout_ms", "max_bytes", "max_calls"};
    size_t i;

    for (i = 0; i < COUNT(members); i++) {
        if (!is_same_member(old, doc, members[i])) {
            return 0;
        }
    }
    return is_same_member(old, doc, "auth");
}

pd_status_t pd_import_diff(const json_t *old, const json_t *doc, const pd_import_terms_t *terms,
                           apr_pool_t *pool, pd_import_diff_t *ret)
{
    comparing_t c = {terms, pool, apr_hash_make(pool), ret, json_array(), 0};
    int waits;

    memset(ret, 0, sizeof(*ret));
    ret->added = json_array();
    ret->removed = json_array();
    ret->changed = json_array();
    ret->reclassified = json_array();
    ret->held = json_array();
    ret->is_same = is_same_head(old, doc);
    note_accepted(&c);
    waits = holds_all(&c, old, doc);
    compare_new(&c, doc, by_id(old, pool));
    compare_gone(&c, old, by_id(doc, pool));
    ret->doc = waits ? json_incref((json_t *)(uintptr_t)old) : merged(&c, doc);
    json_decref(c.operations);
    if (c.failed != 0 || ret->doc == NULL) {
        pd_import_diff_clear(ret);
        return PD_E_NOMEM;
    }
    return PD_OK;
}

void pd_import_diff_clear(pd_import_diff_t *diff)
{
    json_decref(diff->doc);
    json_decref(diff->added);
    json_decref(diff->removed);
    json_decref(diff->changed);
    json_decref(diff->reclassified);
    json_decref(diff->held);
    memset(diff, 0, sizeof(*diff));
}
