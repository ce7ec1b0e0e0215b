/* Compiling a schema: resources (`$id`), anchors, and the references to them.  All targets
 * lie in the document; what lies outside is refused, never fetched. */
#include "mcp_schema_private.h"

#include <apr_strings.h>
#include <string.h>

static const struct {
    const char *uri;
    mcp_schema_dialect_t dialect;
} dialects[] = {
    {"https://json-schema.org/draft/2020-12/schema", MCP_SCHEMA_2020},
    {"http://json-schema.org/draft/2020-12/schema", MCP_SCHEMA_2020},
    {"http://json-schema.org/draft-07/schema", MCP_SCHEMA_07},
    {"https://json-schema.org/draft-07/schema", MCP_SCHEMA_07},
};

/* --- resources ------------------------------------------------------------------------ */

static bool take_dialect(mcp_schema_compiler_t *c, const json_t *json,
                         const mcp_schema_path_t *path, mcp_schema_dialect_t *ret)
{
    const json_t *value = json_object_get(json, "$schema");
    const char *uri;
    size_t bytes;

    if (value == NULL) {
        return true; /* the surrounding one */
    }
    if (!json_is_string(value)) {
        return mcp_schema_refuse(c, path, "$schema", "must be a string", NULL);
    }
    uri = json_string_value(value);
    bytes = strlen(uri);
    if (bytes > 0 && uri[bytes - 1] == '#') {
        bytes--;
    }
    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        if (strlen(dialects[i].uri) == bytes && memcmp(dialects[i].uri, uri, bytes) == 0) {
            *ret = dialects[i].dialect;
            return true;
        }
    }
    return mcp_schema_refuse(c, path, "$schema", "unknown dialect", uri);
}

static mcp_schema_resource_t *new_resource(mcp_schema_compiler_t *c, const json_t *json,
                                           const char *uri, mcp_schema_dialect_t dialect)
{
    mcp_schema_resource_t *resource = apr_pcalloc(c->pool, sizeof(*resource));
    mcp_schema_resource_t *other = apr_hash_get(c->resources, uri, APR_HASH_KEY_STRING);

    resource->uri = apr_pstrdup(c->pool, uri);
    resource->dialect = dialect;
    resource->json = json;
    resource->anchors = apr_hash_make(c->temp);
    if (other != NULL) {
        other->is_ambiguous = true; /* wrong only if somebody refers to it */
    } else {
        apr_hash_set(c->resources, resource->uri, APR_HASH_KEY_STRING, resource);
    }
    return resource;
}

/* The identifier that makes the object a resource, or NULL.  In draft-07 one that is only a
 * fragment is an anchor, and one beside $ref is ignored; the document's own is not. */
static const char *identifier(const json_t *json, const mcp_schema_resource_t *parent)
{
    const json_t *id = json_object_get(json, "$id");

    if (!json_is_string(id) || json_string_value(id)[0] == '#') {
        return NULL;
    }
    if (parent != NULL && parent->dialect == MCP_SCHEMA_07 &&
        json_object_get(json, "$ref") != NULL) {
        return NULL;
    }
    return json_string_value(id);
}

static bool check_identifier(mcp_schema_compiler_t *c, const json_t *json,
                             mcp_schema_dialect_t dialect, const mcp_schema_path_t *path)
{
    const json_t *id = json_object_get(json, "$id");
    const char *fragment;

    if (id == NULL) {
        return true;
    }
    if (!json_is_string(id)) {
        return mcp_schema_refuse(c, path, "$id", "must be a string", NULL);
    }
    fragment = strchr(json_string_value(id), '#');
    if (dialect == MCP_SCHEMA_2020 && fragment != NULL && fragment[1] != '\0') {
        return mcp_schema_refuse(c, path, "$id", "must not have a fragment",
                                 json_string_value(id));
    }
    return true;
}

mcp_schema_resource_t *mcp_schema_enter(mcp_schema_compiler_t *c, const json_t *json,
                                        mcp_schema_resource_t *parent,
                                        const mcp_schema_path_t *path)
{
    mcp_schema_dialect_t dialect = parent == NULL ? MCP_SCHEMA_2020 : parent->dialect;
    const char *id = identifier(json, parent);
    const char *uri;

    if ((parent == NULL || id != NULL) && !take_dialect(c, json, path, &dialect)) {
        return NULL;
    }
    if (!check_identifier(c, json, dialect, path)) {
        return NULL;
    }
    if (parent != NULL && id == NULL) {
        return parent;
    }
    uri = mcp_schema_uri_resolve(c->temp, parent == NULL ? "" : parent->uri, id == NULL ? "" : id);
    if (uri == NULL) {
        (void)mcp_schema_refuse(c, path, "$id", "too long", NULL);
        return NULL;
    }
    if (parent != NULL && strcmp(uri, parent->uri) == 0) {
        return parent; /* it names what it is in anyway */
    }
    return new_resource(c, json, uri, dialect);
}

/* --- anchors --------------------------------------------------------------------------- */

static bool is_anchor(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char other[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-.:";

    return name[0] != '\0' && strchr(first, name[0]) != NULL && name[strspn(name, other)] == '\0';
}

static void add_anchor(mcp_schema_compiler_t *c, mcp_schema_node_t *node, const char *name,
                       bool is_dynamic)
{
    apr_hash_t *anchors = node->resource->anchors;
    mcp_schema_anchor_t *anchor = apr_hash_get(anchors, name, APR_HASH_KEY_STRING);
    mcp_schema_dynamic_t *dynamic;

    if (anchor == NULL) {
        anchor = apr_pcalloc(c->temp, sizeof(*anchor));
        anchor->node = node;
        apr_hash_set(anchors, name, APR_HASH_KEY_STRING, anchor);
    } else if (anchor->node != node) {
        anchor->is_ambiguous = true; /* wrong only if somebody refers to it */
    }
    if (!is_dynamic) {
        return;
    }
    anchor->is_dynamic = true;
    dynamic = apr_pcalloc(c->pool, sizeof(*dynamic));
    dynamic->name = name;
    dynamic->node = node;
    dynamic->next = node->resource->dynamics;
    node->resource->dynamics = dynamic;
}

static bool take_anchor(mcp_schema_compiler_t *c, const json_t *json, mcp_schema_node_t *node,
                        const mcp_schema_path_t *path, const char *keyword, bool is_dynamic)
{
    const json_t *value = json_object_get(json, keyword);

    if (value == NULL) {
        return true;
    }
    if (!json_is_string(value) || !is_anchor(json_string_value(value))) {
        return mcp_schema_refuse(c, path, keyword, "must be a plain name", NULL);
    }
    add_anchor(c, node, json_string_value(value), is_dynamic);
    return true;
}

bool mcp_schema_anchors(mcp_schema_compiler_t *c, const json_t *json, mcp_schema_node_t *node,
                        const mcp_schema_path_t *path)
{
    const json_t *id = json_object_get(json, "$id");

    if (node->resource->dialect == MCP_SCHEMA_2020) {
        return take_anchor(c, json, node, path, "$anchor", false) &&
               take_anchor(c, json, node, path, "$dynamicAnchor", true);
    }
    if (json_is_string(id) && json_string_value(id)[0] == '#' &&
        is_anchor(json_string_value(id) + 1) && json_object_get(json, "$ref") == NULL) {
        add_anchor(c, node, json_string_value(id) + 1, false);
    }
    return true;
}

/* --- references ------------------------------------------------------------------------- */

bool mcp_schema_wait(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                     mcp_schema_keyword_t *keyword)
{
    mcp_schema_pending_t *pending;

    if (!json_is_string(place->value)) {
        return mcp_schema_refuse(c, place->path, keyword->name, "must be a string", NULL);
    }
    pending = apr_pcalloc(c->temp, sizeof(*pending));
    pending->keyword = keyword;
    pending->node = place->node;
    pending->resource = place->resource;
    pending->uri = json_string_value(place->value);
    pending->value = place->value;
    APR_ARRAY_PUSH(c->pending, mcp_schema_pending_t *) = pending;
    return true;
}

/* Says where in the document a value is and why it is refused.  Searched for when needed: to
 * keep a path for every reference would cost much for documents made to that end.  Recurses
 * as deep as the JSON, whose depth was checked. */
static bool refuse_at(mcp_schema_compiler_t *c, const json_t *json, const mcp_schema_path_t *path,
                      const mcp_schema_pending_t *pending, const char *message)
{
    mcp_schema_path_t inner = {path, NULL, 0};

    if (json == pending->value) {
        (void)mcp_schema_refuse(c, path, pending->keyword->name, message, pending->uri);
        return true;
    }
    for (; inner.index < json_array_size(json); inner.index++) {
        if (refuse_at(c, json_array_get(json, inner.index), &inner, pending, message)) {
            return true;
        }
    }
    for (void *at = mcp_schema_first(json); at != NULL; at = mcp_schema_next(json, at)) {
        inner.key = json_object_iter_key(at);
        if (refuse_at(c, json_object_iter_value(at), &inner, pending, message)) {
            return true;
        }
    }
    return false;
}

static bool refuse(mcp_schema_compiler_t *c, const mcp_schema_pending_t *pending,
                   const char *message)
{
    (void)refuse_at(c, c->root, NULL, pending, message); /* it is in there */
    return false;
}

/* ~1 and ~0 of a pointer's token; false for another '~'. */
static bool unescape(char *token)
{
    char *to = token;

    for (const char *at = token; *at != '\0'; at++) {
        if (*at != '~') {
            *to++ = *at;
        } else if (at[1] == '0' || at[1] == '1') {
            *to++ = at[1] == '0' ? '~' : '/';
            at++;
        } else {
            return false;
        }
    }
    *to = '\0';
    return true;
}

static const json_t *step(const json_t *json, const char *token)
{
    size_t index = 0;

    if (json_is_object(json)) {
        return json_object_get(json, token);
    }
    if (!json_is_array(json) || token[0] == '\0' || strlen(token) > 9 ||
        (token[0] == '0' && token[1] != '\0')) {
        return NULL;
    }
    for (; *token != '\0'; token++) {
        if (*token < '0' || *token > '9') {
            return NULL;
        }
        index = index * 10 + (size_t)(*token - '0');
    }
    return json_array_get(json, index);
}

/* A JSON pointer within a resource.  It may lead to where no keyword has subschemas; what
 * is there becomes one then, in the resource that its surroundings belong to. */
static const mcp_schema_node_t *follow(mcp_schema_compiler_t *c,
                                       const mcp_schema_pending_t *pending,
                                       mcp_schema_resource_t *resource, const char *pointer)
{
    const mcp_schema_path_t *path = NULL;
    const json_t *json = resource->json;

    while (*pointer == '/') {
        size_t bytes = strcspn(pointer + 1, "/");
        char *token = apr_pstrmemdup(c->scratch, pointer + 1, bytes);
        mcp_schema_path_t *frame = apr_pcalloc(c->scratch, sizeof(*frame));
        const mcp_schema_node_t *known;

        json = unescape(token) ? step(json, token) : NULL;
        if (json == NULL) {
            (void)refuse(c, pending, "reference to nothing in this document");
            return NULL;
        }
        known = apr_hash_get(c->nodes, &json, sizeof(json));
        if (known != NULL) {
            resource = known->resource;
        }
        frame->parent = path;
        frame->key = token;
        path = frame;
        pointer += 1 + bytes;
    }
    return mcp_schema_node(c, json, resource, path);
}

static const mcp_schema_node_t *find_anchor(mcp_schema_compiler_t *c,
                                            const mcp_schema_pending_t *pending,
                                            const mcp_schema_resource_t *resource,
                                            const char *name)
{
    const mcp_schema_anchor_t *anchor = apr_hash_get(resource->anchors, name, APR_HASH_KEY_STRING);

    if (anchor == NULL) {
        (void)refuse(c, pending, "reference to nothing in this document");
        return NULL;
    }
    if (anchor->is_ambiguous) {
        (void)refuse(c, pending, "reference to an anchor that stands twice");
        return NULL;
    }
    if (pending->keyword->eval == mcp_schema_eval_dynamic && anchor->is_dynamic) {
        pending->keyword->dynamic = apr_pstrdup(c->pool, name);
    }
    return anchor->node;
}

static bool resolve(mcp_schema_compiler_t *c, const mcp_schema_pending_t *pending)
{
    const char *uri = mcp_schema_uri_resolve(c->scratch, pending->resource->uri, pending->uri);
    const char *fragment = mcp_schema_uri_fragment(c->scratch, pending->uri);
    mcp_schema_resource_t *resource;
    const mcp_schema_node_t *node;

    if (uri == NULL || fragment == NULL) {
        return refuse(c, pending, "malformed reference");
    }
    resource = apr_hash_get(c->resources, uri, APR_HASH_KEY_STRING);
    if (resource == NULL) {
        return refuse(c, pending, "external references are not allowed");
    }
    if (resource->is_ambiguous) {
        return refuse(c, pending, "reference to an identifier that stands twice");
    }
    if (fragment[0] == '\0' || fragment[0] == '/') {
        node = follow(c, pending, resource, fragment);
    } else {
        node = find_anchor(c, pending, resource, fragment);
    }
    pending->keyword->node = node;
    return node != NULL;
}

/* A chain of $ref that ends nowhere applies to every instance for ever.  (Loops through
 * other keywords depend on the instance; the depth limit ends them.)  Every node has at most
 * one $ref, so each chain is walked once: marks tell the walk that was there. */
static bool find_endless(mcp_schema_compiler_t *c)
{
    apr_hash_t *by_node = apr_hash_make(c->temp);

    for (int i = 0; i < c->pending->nelts; i++) {
        const mcp_schema_pending_t *pending = APR_ARRAY_IDX(c->pending, i, mcp_schema_pending_t *);

        if (pending->keyword->eval == mcp_schema_eval_ref) {
            apr_hash_set(by_node, &pending->node, sizeof(pending->node), pending);
        }
    }
    for (int i = 0; i < c->pending->nelts; i++) {
        mcp_schema_pending_t *at = APR_ARRAY_IDX(c->pending, i, mcp_schema_pending_t *);
        const size_t mark = (size_t)i + 1;

        if (at->keyword->eval != mcp_schema_eval_ref) {
            continue;
        }
        while (at != NULL && at->mark == 0) {
            at->mark = mark;
            at = apr_hash_get(by_node, &at->keyword->node, sizeof(at->keyword->node));
        }
        if (at != NULL && at->mark == mark) {
            return refuse(c, at, "reference leads back to itself");
        }
    }
    return true;
}

bool mcp_schema_resolve(mcp_schema_compiler_t *c)
{
    /* Following a reference may compile more schemas, with more references. */
    for (int i = 0; i < c->pending->nelts; i++) {
        apr_pool_clear(c->scratch);
        if (!resolve(c, APR_ARRAY_IDX(c->pending, i, mcp_schema_pending_t *))) {
            return false;
        }
    }
    return find_endless(c);
}
