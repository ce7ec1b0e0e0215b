/* Route table and description from the registry: see pd_routes.h. */
#include "pd_routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "pd_log.h"
#include "pd_openapi.h"
#include "pd_ops.h"

#define MAX_SEGMENTS 16
#define MAX_WORD     64
#define MAX_PATH     256
#define MAX_TYPE     40

typedef struct document {
    char digest[MCP_DIGEST_HEX + 1];
    char *bytes; /* NULL: not made */
    size_t count;
} document_t;

/* Made before threads, read only afterwards. */
static document_t table_document;
static document_t openapi_document;

/* --- types ----------------------------------------------------------------------- */

/* In this order a text is tried: what is an integer is not taken for a string. */
static const char *const scalars[] = {"integer", "number", "boolean", "string"};

#define SCALARS       (sizeof(scalars) / sizeof(scalars[0]))
#define STRING_SCALAR 8u /* bit of "string" */

/* Bit of a type's name; 0 for what is no scalar. */
static unsigned scalar_bit(const char *name)
{
    size_t i;

    for (i = 0; name != NULL && i < SCALARS; i++) {
        if (strcmp(scalars[i], name) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

static int are_strings(const json_t *values)
{
    size_t i;

    for (i = 0; i < json_array_size(values); i++) {
        if (!json_is_string(json_array_get(values, i))) {
            return 0;
        }
    }
    return json_array_size(values) > 0;
}

/* Scalar types that a property may have; 0 when it may be something else. */
static unsigned scalars_of(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    unsigned bits = 0;
    size_t i;

    if (json_is_string(type)) {
        return scalar_bit(json_string_value(type));
    }
    if (type == NULL) {
        return are_strings(json_object_get(schema, "enum")) ||
                       json_is_string(json_object_get(schema, "const"))
                   ? STRING_SCALAR
                   : 0;
    }
    for (i = 0; i < json_array_size(type); i++) {
        unsigned bit = scalar_bit(json_string_value(json_array_get(type, i)));

        if (bit == 0) {
            return 0;
        }
        bits |= bit;
    }
    return bits;
}

/* The word of the route table for a property: how its text becomes a value. */
static const char *type_of(const json_t *schema, char buf[MAX_TYPE])
{
    const char *type = mcp_json_str(schema, "type");
    unsigned bits = scalars_of(schema);
    size_t used = 0;
    size_t i;

    if (type != NULL && strcmp(type, "array") == 0 &&
        scalars_of(json_object_get(schema, "items")) == STRING_SCALAR) {
        return "strings";
    }
    if (bits == 0) {
        return "json";
    }
    for (i = 0; i < SCALARS; i++) {
        if ((bits & 1u << i) != 0) {
            used += (size_t)snprintf(buf + used, MAX_TYPE - used, "%s%s", used > 0 ? "|" : "",
                                     scalars[i]); /* all four have 29 bytes */
        }
    }
    return buf;
}

/* --- paths ----------------------------------------------------------------------- */

/* The segment after *at ('/' first), and *at behind it; 0 at the end. */
static size_t next_segment(const char **at, const char **segment)
{
    size_t bytes;

    if (**at != '/') {
        return 0;
    }
    *segment = *at + 1;
    bytes = strcspn(*segment, "/");
    *at = *segment + bytes;
    return bytes;
}

/* The name in a segment {name} into buf; 0 for a literal one. */
static int word_of(const char *segment, size_t bytes, char buf[MAX_WORD])
{
    if (bytes < 3 || bytes - 2 >= MAX_WORD || segment[0] != '{' || segment[bytes - 1] != '}') {
        return 0;
    }
    memcpy(buf, segment + 1, bytes - 2);
    buf[bytes - 2] = '\0';
    return 1;
}

static int is_literal(const char *segment, size_t bytes)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789_-", segment[i]) == NULL) {
            return 0;
        }
    }
    return 1;
}

/* Method and path with each word written alike: two routes of one shape could not be told apart. */
static void shape_of(const char *method, const char *path, char buf[MAX_PATH])
{
    size_t used = (size_t)snprintf(buf, MAX_PATH, "%s ", method); /* methods are checked before */
    int is_word = 0;

    for (; *path != '\0' && used + 1 < MAX_PATH; path++) {
        is_word = *path == '{' || (is_word && *path != '}');
        if (!is_word) {
            buf[used++] = *path;
        }
    }
    buf[used] = '\0';
}

/* --- rows ------------------------------------------------------------------------ */

static int has_own_query(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0;
}

static const char *judge_method(const char *method, const char *klass)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    size_t i;

    for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(methods[i], method) == 0) {
            return i == 0 && strcmp(klass, "read") != 0 ? "a GET changes something" : NULL;
        }
    }
    return "its method is none of GET, POST, PUT, PATCH, DELETE";
}

/* The words of a path with their types; what is wrong with it, or NULL. */
static const char *take_words(const char *path, const json_t *properties, json_t *words)
{
    const char *at = path;
    const char *segment = NULL;
    char word[MAX_WORD];
    char type[MAX_TYPE];
    size_t bytes;
    int count = 0;

    for (bytes = next_segment(&at, &segment); bytes > 0; bytes = next_segment(&at, &segment)) {
        const char *kind;

        if (++count > MAX_SEGMENTS) {
            return "its path is too long";
        }
        if (!word_of(segment, bytes, word)) {
            if (!is_literal(segment, bytes)) {
                return "its path has a segment that is neither a word nor a literal";
            }
            continue;
        }
        kind = type_of(json_object_get(properties, word), type);
        if (strcmp(kind, "json") == 0 || strcmp(kind, "strings") == 0) {
            return "a word of its path is no scalar";
        }
        if (json_object_get(words, word) != NULL ||
            json_object_set_new(words, word, json_string(kind)) != 0) {
            return "a word stands twice in its path";
        }
    }
    return *at == '\0' && strlen(path) < MAX_PATH - 8 && count > 0 ? NULL : "its path has no form";
}

/* The arguments that the query string may hold. Where there is a body they belong into it, but for
 * the switch that leaves everything as it is. */
static json_t *take_query(const char *method, const json_t *properties, const json_t *words)
{
    json_t *query = json_object();
    char type[MAX_TYPE];
    const char *name;
    const json_t *schema;
    int is_own = has_own_query(method);

    json_object_foreach((json_t *)(uintptr_t)properties, name, schema)
    {
        if (json_object_get(words, name) == NULL && strcmp(name, "if_revision") != 0 &&
            (is_own || strcmp(name, "dry_run") == 0)) {
            (void)json_object_set_new(query, name, json_string(type_of(schema, type))); /* NULL: below */
        }
    }
    return query;
}

static int creates(const json_t *row)
{
    const json_t *rest = json_object_get(row, "rest");

    return strcmp(mcp_json_str(rest, "method"), "POST") == 0 &&
           strncmp(mcp_json_str(row, "verb"), "create", 6) == 0;
}

/* Path of the GET that shows what a POST to `path` made: the same and one word more; or NULL. */
static const char *location_of(const json_t *rows, const char *path)
{
    size_t length = strlen(path);
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *rest = json_object_get(json_array_get(rows, i), "rest");
        const char *other = mcp_json_str(rest, "path");

        if (strcmp(mcp_json_str(rest, "method"), "GET") == 0 && strncmp(other, path, length) == 0 &&
            other[length] == '/' && other[length + 1] == '{' &&
            strchr(other + length + 1, '/') == NULL) {
            return other;
        }
    }
    return NULL;
}

/* One row of the table into *ret; what is wrong, or NULL. */
static const char *make_route(const json_t *rows, const json_t *row, json_t **ret)
{
    const json_t *rest = json_object_get(row, "rest");
    const json_t *properties = json_object_get(json_object_get(row, "schema"), "properties");
    const char *method = mcp_json_str(rest, "method");
    const char *path = mcp_json_str(rest, "path");
    const char *secret = mcp_json_str(row, "secret");
    const char *wrong = judge_method(method, mcp_json_str(row, "classification"));
    json_t *words = json_object();

    if (wrong == NULL) {
        wrong = take_words(path, properties, words);
    }
    if (wrong != NULL) {
        json_decref(words);
        return wrong;
    }
    *ret = json_pack(
        "{s:s, s:s, s:s, s:s, s:s*, s:s*, s:O, s:b, s:i, s:o, s:o, s:s*}", "op",
        mcp_json_str(row, "name"), "method", method, "path", path, "class",
        mcp_json_str(row, "classification"), "permission", mcp_json_str(row, "permission"), "secret",
        secret != NULL && strcmp(secret, "no") != 0 ? secret : NULL, "max_bytes",
        json_object_get(row, "max_bytes"), "if_revision",
        json_object_get(properties, "if_revision") != NULL, "status", creates(row) ? 201 : 200,
        "query", take_query(method, properties, words), "words", words, "location",
        creates(row) ? location_of(rows, path) : NULL);
    return *ret != NULL ? NULL : "out of memory";
}

/* All routes into `routes`; what is wrong with *ret_row, or NULL. */
static const char *make_routes(const json_t *rows, json_t *routes, const json_t **ret_row)
{
    json_t *shapes = json_object();
    const char *wrong = NULL;
    char shape[MAX_PATH];
    size_t i;

    for (i = 0; wrong == NULL && i < json_array_size(rows); i++) {
        json_t *route = NULL;

        *ret_row = json_array_get(rows, i);
        wrong = make_route(rows, *ret_row, &route);
        if (wrong == NULL) {
            shape_of(mcp_json_str(route, "method"), mcp_json_str(route, "path"), shape);
            if (json_object_get(shapes, shape) != NULL) {
                wrong = "its path can't be told from another one";
            } else if (json_object_set_new(shapes, shape, json_true()) != 0) {
                wrong = "out of memory";
            }
        }
        if (json_array_append_new(routes, route) != 0 && wrong == NULL) {
            wrong = "out of memory";
        }
    }
    json_decref(shapes);
    return wrong;
}

/* --- the two documents ------------------------------------------------------------ */

static void forget_document(document_t *document)
{
    free(document->bytes);
    memset(document, 0, sizeof(*document));
}

static apr_status_t forget(void *unused)
{
    (void)unused;
    forget_document(&table_document);
    forget_document(&openapi_document);
    return APR_SUCCESS;
}

/* value: stolen. */
static pd_status_t keep(document_t *document, json_t *value)
{
    document->bytes = value != NULL ? mcp_json_text(value, &document->count) : NULL;
    json_decref(value);
    if (document->bytes == NULL) {
        return PD_E_NOMEM;
    }
    mcp_digest_hex(document->bytes, document->count, document->digest);
    return PD_OK;
}

pd_status_t pd_routes_make(apr_pool_t *pool)
{
    json_t *rows = pd_ops_describe();
    json_t *routes = json_array();
    const json_t *row = NULL;
    const char *wrong = rows != NULL ? make_routes(rows, routes, &row) : "out of memory";
    pd_status_t status = PD_E_INVALID;

    (void)forget(NULL);
    if (wrong == NULL) {
        apr_pool_cleanup_register(pool, NULL, forget, apr_pool_cleanup_null);
        status = keep(&openapi_document, pd_openapi_make(rows, routes));
        if (status == PD_OK) {
            status = keep(&table_document, json_pack("{s:i, s:O}", "v", 1, "routes", routes));
        }
    } else {
        pd_log(PD_LOG_ERR, 200, "the operation %s has no sound REST route: %s",
               row != NULL ? mcp_json_str(row, "name") : "?", wrong);
    }
    json_decref(routes);
    json_decref(rows);
    return status;
}

const char *pd_routes_table_digest(void)
{
    return table_document.bytes != NULL ? table_document.digest : NULL;
}

const char *pd_routes_openapi_digest(void)
{
    return openapi_document.bytes != NULL ? openapi_document.digest : NULL;
}

int pd_routes_blob(const char *digest, const void **bytes, size_t *count)
{
    static const document_t *const documents[] = {&table_document, &openapi_document};
    size_t i;

    for (i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        if (documents[i]->bytes != NULL && strcmp(documents[i]->digest, digest) == 0) {
            *bytes = documents[i]->bytes;
            *count = documents[i]->count;
            return 1;
        }
    }
    return 0;
}
