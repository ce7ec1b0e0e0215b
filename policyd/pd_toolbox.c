/* Compiling of toolboxes: see pd_toolbox.h. */
#include "pd_toolbox.h"

#include <stdlib.h>
#include <string.h>

#include <apr_atomic.h>
#include <apr_strings.h>

#include "../proto/mcp_names.h"

#define OWN "@own"

pd_status_t pd_toolbox_tool_name(const char *toolbox, const char *connector_slug, const char *entry_name,
                                 char *buf, size_t size)
{
    return mcp_name_tool(toolbox, connector_slug, entry_name, buf, size) == MCP_OK ? PD_OK
                                                                                   : PD_E_INVALID;
}

void pd_toolbox_retain(pd_toolbox_t *toolbox)
{
    (void)apr_atomic_inc32(&toolbox->refs); /* the count before is nobody's business */
}

void pd_toolbox_release(pd_toolbox_t **toolbox)
{
    pd_toolbox_t *gone = *toolbox;

    *toolbox = NULL;
    if (gone != NULL && apr_atomic_dec32(&gone->refs) == 0) {
        apr_pool_destroy(gone->pool);
    }
}

int pd_toolbox_is_for(const pd_toolbox_t *toolbox, const char *member_id, const char *const *role_names)
{
    size_t i;

    if (member_id == NULL) {
        return 0;
    }
    if (apr_hash_get(toolbox->members, member_id, APR_HASH_KEY_STRING) != NULL) {
        return 1;
    }
    for (i = 0; role_names != NULL && role_names[i] != NULL; i++) {
        if (apr_hash_get(toolbox->roles, role_names[i], APR_HASH_KEY_STRING) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* --- reading the document ------------------------------------------------------- */

/* A text that can be an id or a name: not empty, and what C sees of it is all of it; else NULL. */
static const char *text_in(const json_t *value)
{
    const char *text = json_string_value(value); /* NULL when it is none */

    return text != NULL && text[0] != '\0' && strlen(text) == json_string_length(value) ? text
                                                                                       : NULL;
}

static pd_status_t read_text(apr_pool_t *pool, const json_t *object, const char *name, const char **ret)
{
    const char *text = text_in(json_object_get(object, name));

    if (text == NULL) {
        return PD_E_INVALID;
    }
    *ret = apr_pstrdup(pool, text);
    return PD_OK;
}

/* One that may be missing: *ret stays NULL. */
static pd_status_t read_option(apr_pool_t *pool, const json_t *object, const char *name,
                               const char **ret)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL || json_is_null(value)) {
        return PD_OK;
    }
    if (!json_is_string(value)) {
        return PD_E_INVALID;
    }
    *ret = apr_pstrdup(pool, json_string_value(value));
    return PD_OK;
}

/* An array of texts as a set. */
static pd_status_t read_set(apr_pool_t *pool, const json_t *object, const char *name, apr_hash_t **ret)
{
    const json_t *array = json_object_get(object, name);
    const json_t *element;
    size_t i;

    if (!json_is_array(array)) {
        return PD_E_INVALID;
    }
    *ret = apr_hash_make(pool);
    json_array_foreach(array, i, element)
    {
        const char *text = text_in(element);

        if (text == NULL) {
            return PD_E_INVALID;
        }
        text = apr_pstrdup(pool, text);
        apr_hash_set(*ret, text, APR_HASH_KEY_STRING, text);
    }
    return PD_OK;
}

static apr_status_t drop_json(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

/* An object of values by key, copied: documents belong to whoever read them. */
static pd_status_t read_values(apr_pool_t *pool, const json_t *object, const char *name, json_t **ret)
{
    const json_t *values = json_object_get(object, name);
    json_t *copy;

    if (!json_is_object(values) || json_object_size(values) > PD_MAX_FROZEN) {
        return PD_E_INVALID;
    }
    copy = json_deep_copy(values);
    if (copy == NULL) {
        return PD_E_NOMEM;
    }
    apr_pool_cleanup_register(pool, copy, drop_json, apr_pool_cleanup_null);
    *ret = copy;
    return PD_OK;
}

static int is_among(const apr_array_header_t *texts, const char *text)
{
    int i;

    for (i = 0; i < texts->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(texts, i, const char *), text) == 0) {
            return 1;
        }
    }
    return 0;
}

/* ["@own"], or ids, each once. An entry may have lost its last connection: then nobody reaches it. */
static pd_status_t read_connections(apr_pool_t *pool, const json_t *doc, pd_entry_t *entry)
{
    const json_t *array = json_object_get(doc, "connections");
    const json_t *element;
    size_t i;

    if (!json_is_array(array) || json_array_size(array) > PD_MAX_CHOICES) {
        return PD_E_INVALID;
    }
    entry->connection_ids = apr_array_make(pool, (int)json_array_size(array) + 1, sizeof(const char *));
    json_array_foreach(array, i, element)
    {
        const char *id = text_in(element);

        if (id == NULL || is_among(entry->connection_ids, id)) {
            return PD_E_INVALID;
        }
        if (strcmp(id, OWN) == 0) {
            entry->is_own = 1;
            continue;
        }
        APR_ARRAY_PUSH(entry->connection_ids, const char *) = apr_pstrdup(pool, id);
    }
    return entry->is_own && json_array_size(array) != 1 ? PD_E_INVALID : PD_OK;
}

static pd_status_t name_entry(pd_toolbox_t *made, pd_entry_t *entry)
{
    char name[MCP_MAX_TOOL_NAME + 1];
    pd_status_t status = mcp_name_is_label(entry->connector_slug) ? PD_OK : PD_E_INVALID;

    if (status == PD_OK) {
        status = pd_toolbox_tool_name(made->name, entry->connector_slug, entry->name, name,
                                      sizeof(name));
    }
    if (status == PD_OK) {
        entry->tool_name = apr_pstrdup(made->pool, name);
    }
    return status;
}

static pd_status_t read_entry(pd_toolbox_t *made, const json_t *doc, pd_entry_t *entry)
{
    const json_t *is_visible = json_object_get(doc, "always_visible");
    const struct {
        const char *name;
        const char **ret;
    } texts[] = {{"entry", &entry->id},
                 {"name", &entry->name},
                 {"connector", &entry->connector_id},
                 {"connector_slug", &entry->connector_slug},
                 {"operation", &entry->operation_id}};
    pd_status_t status = json_is_object(doc) && json_is_boolean(is_visible) ? PD_OK : PD_E_INVALID;
    size_t i;

    for (i = 0; status == PD_OK && i < sizeof(texts) / sizeof(texts[0]); i++) {
        status = read_text(made->pool, doc, texts[i].name, texts[i].ret);
    }
    if (status == PD_OK) {
        status = read_option(made->pool, doc, "title", &entry->title);
    }
    if (status == PD_OK) {
        status = read_option(made->pool, doc, "description", &entry->description);
    }
    if (status == PD_OK) {
        status = read_values(made->pool, doc, "defaults", &entry->defaults);
    }
    if (status == PD_OK) {
        status = read_values(made->pool, doc, "frozen", &entry->frozen);
    }
    if (status == PD_OK) {
        status = read_connections(made->pool, doc, entry);
    }
    if (status == PD_OK) {
        status = name_entry(made, entry);
    }
    entry->is_always_visible = json_is_true(is_visible);
    entry->toolbox = made;
    entry->made = apr_hash_make(made->pool);
    return status;
}

static int by_tool_name(const void *a, const void *b)
{
    return strcmp(((const pd_entry_t *)a)->tool_name, ((const pd_entry_t *)b)->tool_name);
}

/* The table by tool name. Neither a name nor an id may be there twice. */
static pd_status_t index_entries(pd_toolbox_t *made)
{
    apr_hash_t *ids = apr_hash_make(made->pool);
    int i;

    made->by_name = apr_hash_make(made->pool);
    for (i = 0; i < made->entries->nelts; i++) {
        pd_entry_t *entry = &APR_ARRAY_IDX(made->entries, i, pd_entry_t);

        if (apr_hash_get(made->by_name, entry->tool_name, APR_HASH_KEY_STRING) != NULL ||
            apr_hash_get(ids, entry->id, APR_HASH_KEY_STRING) != NULL) {
            return PD_E_INVALID;
        }
        apr_hash_set(made->by_name, entry->tool_name, APR_HASH_KEY_STRING, entry);
        apr_hash_set(ids, entry->id, APR_HASH_KEY_STRING, entry);
    }
    return PD_OK;
}

static pd_status_t read_entries(pd_toolbox_t *made, const json_t *doc)
{
    const json_t *array = json_object_get(doc, "entries");
    const json_t *element;
    pd_status_t status = PD_OK;
    size_t i;

    if (!json_is_array(array) || json_array_size(array) > PD_MAX_ENTRIES) {
        return PD_E_INVALID;
    }
    made->entries = apr_array_make(made->pool, (int)json_array_size(array) + 1, sizeof(pd_entry_t));
    json_array_foreach(array, i, element)
    {
        pd_entry_t *entry = apr_array_push(made->entries);

        memset(entry, 0, sizeof(*entry));
        status = read_entry(made, element, entry);
        if (status != PD_OK) {
            return status;
        }
    }
    qsort(made->entries->elts, (size_t)made->entries->nelts, sizeof(pd_entry_t), by_tool_name);
    return index_entries(made);
}

static pd_status_t read_toolbox(pd_toolbox_t *made, const json_t *doc)
{
    pd_status_t status = read_text(made->pool, doc, "name", &made->name);

    if (status == PD_OK && !mcp_name_is_label(made->name)) {
        status = PD_E_INVALID;
    }
    if (status == PD_OK) {
        status = read_option(made->pool, doc, "description", &made->description);
    }
    if (status == PD_OK) {
        status = read_set(made->pool, doc, "roles", &made->roles);
    }
    if (status == PD_OK) {
        status = read_set(made->pool, doc, "members", &made->members);
    }
    if (status == PD_OK) {
        status = read_entries(made, doc);
    }
    return status;
}

pd_status_t pd_toolbox_make(const char *id, const json_t *doc, pd_toolbox_t **ret)
{
    apr_pool_t *pool;
    pd_toolbox_t *made;
    pd_status_t status;

    if (!json_is_object(doc)) {
        return PD_E_INVALID;
    }
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    made->refs = 1;
    made->id = apr_pstrdup(pool, id);
    status = read_toolbox(made, doc);
    if (status != PD_OK) {
        apr_pool_destroy(pool);
        return status;
    }
    *ret = made;
    return PD_OK;
}
