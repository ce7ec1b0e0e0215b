/* Routes of the REST door: see mcp_route.h. What a request's parts become is in mcp_route_args.c. */
#include "mcp_route.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "mcp_encode.h"
#include "mcp_rpc.h"

#define MAX_ROUTES 1024
#define MAX_PATH   4096 /* bytes of a request's */

struct mcp_routes {
    int count;
    mcp_route_t *routes;
};

/* --- the table ----------------------------------------------------------------------- */

static unsigned bit_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } types[] = {{"integer", MCP_ROUTE_INTEGER}, {"number", MCP_ROUTE_NUMBER},
                 {"boolean", MCP_ROUTE_BOOLEAN}, {"string", MCP_ROUTE_STRING},
                 {"strings", MCP_ROUTE_STRINGS}, {"json", MCP_ROUTE_JSON}};
    size_t i;

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, name) == 0) {
            return types[i].bit;
        }
    }
    return 0;
}

/* "integer|string" as bits; 0 for a type that is not known. */
static unsigned types_of(const char *text, apr_pool_t *pool)
{
    unsigned types = 0;
    char *state = NULL;
    char *name;

    if (text == NULL) {
        return 0;
    }
    for (name = apr_strtok(apr_pstrdup(pool, text), "|", &state); name != NULL;
         name = apr_strtok(NULL, "|", &state)) {
        unsigned bit = bit_of(name);

        if (bit == 0) {
            return 0;
        }
        types |= bit;
    }
    return types;
}

static int take_query(const json_t *query, apr_pool_t *pool, mcp_route_t *route)
{
    mcp_route_param_t *params = apr_pcalloc(pool, sizeof(*params) * (json_object_size(query) + 1));
    const char *name;
    const json_t *type;

    json_object_foreach((json_t *)(uintptr_t)query, name, type)
    {
        mcp_route_param_t *param = &params[route->query_count++];

        param->name = apr_pstrdup(pool, name);
        param->types = types_of(json_string_value(type), pool);
        if (param->types == 0) {
            return 0;
        }
    }
    route->query = params;
    return json_is_object(query);
}

/* Segments and words of a template. */
static int take_path(const char *path, const json_t *words, apr_pool_t *pool, mcp_route_t *route)
{
    const char *at = path;

    while (*at == '/' && route->segment_count < MCP_ROUTE_MAX_SEGMENTS) {
        size_t bytes = strcspn(at + 1, "/");
        const char *segment = apr_pstrmemdup(pool, at + 1, bytes);
        int i = route->segment_count++;

        if (segment[0] == '{' && bytes > 2 && segment[bytes - 1] == '}') {
            route->words[i].name = apr_pstrmemdup(pool, segment + 1, bytes - 2);
            route->words[i].types = types_of(mcp_json_str(words, route->words[i].name), pool);
            if (route->words[i].types == 0) {
                return 0;
            }
        } else {
            route->segments[i] = segment;
        }
        at += bytes + 1;
    }
    return *at == '\0' && route->segment_count > 0;
}

static const char *text_of(const json_t *row, const char *name, apr_pool_t *pool)
{
    const char *text = mcp_json_str(row, name);

    return text != NULL ? apr_pstrdup(pool, text) : NULL;
}

static int take_row(const json_t *row, apr_pool_t *pool, mcp_route_t *route)
{
    json_int_t max = mcp_json_int(row, "max_bytes", 0);

    route->op = text_of(row, "op", pool);
    route->method = text_of(row, "method", pool);
    route->path = text_of(row, "path", pool);
    route->permission = text_of(row, "permission", pool);
    route->location = text_of(row, "location", pool);
    route->klass = mcp_class_from_text(mcp_json_str(row, "class"));
    route->status = (int)mcp_json_int(row, "status", 0);
    route->takes_if_revision = mcp_json_bool(row, "if_revision");
    route->max_bytes = max > 0 ? (size_t)max : 0;
    return route->op != NULL && route->method != NULL && route->path != NULL && max > 0 &&
           route->klass != MCP_CLASS_NONE && route->status >= 200 && route->status < 300 &&
           take_path(route->path, json_object_get(row, "words"), pool, route) &&
           take_query(json_object_get(row, "query"), pool, route);
}

static mcp_routes_t *take_table(const json_t *table, apr_pool_t *pool)
{
    const json_t *rows = json_object_get(table, "routes");
    mcp_routes_t *routes = apr_pcalloc(pool, sizeof(*routes));
    size_t count = json_array_size(rows);
    size_t i;

    if (mcp_json_int(table, "v", 0) != 1 || !json_is_array(rows) || count > MAX_ROUTES) {
        return NULL;
    }
    routes->routes = apr_pcalloc(pool, sizeof(*routes->routes) * (count + 1));
    routes->count = (int)count;
    for (i = 0; i < count; i++) {
        if (!take_row(json_array_get(rows, i), pool, &routes->routes[i])) {
            return NULL;
        }
    }
    return routes;
}

apr_status_t mcp_route_compile(const char *text, size_t bytes, apr_pool_t *pool,
                               const mcp_routes_t **ret, mcp_err_t *err)
{
    json_t *table = NULL;
    mcp_routes_t *routes = NULL;

    if (mcp_body_parse(text, bytes, &table) == MCP_OK) {
        routes = take_table(table, pool);
        json_decref(table);
    }
    if (routes == NULL) {
        (void)mcp_err_set(err, pool, MCP_FAIL_UNAVAILABLE, MCP_CODE_POLICY_UNAVAILABLE,
                          "try again in a moment", "the policy service is not available");
        if (err != NULL) {
            err->log = "the route table is not what this module reads";
        }
        return MCP_STATUS_REFUSED;
    }
    *ret = routes;
    return APR_SUCCESS;
}

/* --- finding --------------------------------------------------------------------------- */

static apr_status_t not_found(apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_TOOL, MCP_CODE_NOT_FOUND,
                       "openapi.json of this API lists all paths", "there is no such path");
}

/* One segment as it was sent into *ret, decoded. */
static apr_status_t take_segment(const char *text, size_t bytes, apr_pool_t *pool, const char **ret,
                                 mcp_err_t *err)
{
    char *out = apr_palloc(pool, bytes + 1);
    size_t length = 0;
    size_t i;

    for (i = 0; i < bytes; i++) {
        int high;
        int low;

        if (text[i] != '%') {
            out[length++] = text[i];
            continue;
        }
        high = bytes - i > 2 ? mcp_encode_hex(text[i + 1]) : -1;
        low = bytes - i > 2 ? mcp_encode_hex(text[i + 2]) : -1;
        if (high < 0 || low < 0) {
            return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST, NULL,
                               "the path has a '%%' without two hex digits");
        }
        out[length++] = (char)(high * 16 + low);
        i += 2;
    }
    out[length] = '\0';
    if (mcp_encode_has_control(out, length) || !mcp_rpc_is_utf8(out, length)) {
        return mcp_err_set(err, pool, MCP_FAIL_REQUEST, MCP_CODE_INVALID_REQUEST, NULL,
                           "the path is not UTF-8, or has a control character");
    }
    if (length == 0 || mcp_encode_is_dots(out, length)) {
        return not_found(pool, err);
    }
    *ret = out;
    return APR_SUCCESS;
}

static apr_status_t split(const char *path, apr_pool_t *pool,
                          const char *segments[MCP_ROUTE_MAX_SEGMENTS], int *ret_count, mcp_err_t *err)
{
    const char *at = path;
    apr_status_t status = APR_SUCCESS;
    int count = 0;

    while (status == APR_SUCCESS && *at == '/') {
        size_t bytes = strcspn(at + 1, "/");

        if (count == MCP_ROUTE_MAX_SEGMENTS) {
            return not_found(pool, err);
        }
        status = take_segment(at + 1, bytes, pool, &segments[count++], err);
        at += bytes + 1;
    }
    if (status == APR_SUCCESS && (*at != '\0' || count == 0)) {
        return not_found(pool, err);
    }
    *ret_count = count;
    return status;
}

static int fits(const mcp_route_t *route, const char *const *segments, int count)
{
    int i;

    if (route->segment_count != count) {
        return 0;
    }
    for (i = 0; i < count; i++) {
        if (route->segments[i] != NULL && strcmp(route->segments[i], segments[i]) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Both fit the same path. */
static int is_more_specific(const mcp_route_t *a, const mcp_route_t *b)
{
    int i;

    for (i = 0; i < a->segment_count; i++) {
        if ((a->segments[i] != NULL) != (b->segments[i] != NULL)) {
            return a->segments[i] != NULL;
        }
    }
    return 0;
}

/* "GET, HEAD, PUT", each once. */
static const char *with_method(const char *allow, const char *method, apr_pool_t *pool)
{
    const char *at = allow != NULL ? strstr(allow, method) : NULL;

    if (at != NULL) {
        return allow; /* no method's name is part of another's */
    }
    return apr_pstrcat(pool, allow != NULL ? allow : "", allow != NULL ? ", " : "", method,
                       strcmp(method, "GET") == 0 ? ", HEAD" : "", NULL);
}

apr_status_t mcp_route_find(const mcp_routes_t *routes, const char *method, const char *path,
                            apr_pool_t *pool, mcp_route_match_t *ret, mcp_err_t *err)
{
    const char *segments[MCP_ROUTE_MAX_SEGMENTS];
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    const mcp_route_t *best = NULL;
    const char *allow = NULL;
    apr_status_t status;
    int count = 0;
    int i;

    memset(ret, 0, sizeof(*ret));
    if (strlen(path) > MAX_PATH) {
        return not_found(pool, err);
    }
    status = split(path, pool, segments, &count, err);
    if (status != APR_SUCCESS) {
        return status;
    }
    for (i = 0; i < routes->count; i++) {
        const mcp_route_t *route = &routes->routes[i];

        if (!fits(route, segments, count)) {
            continue;
        }
        allow = with_method(allow, route->method, pool);
        if (strcmp(route->method, wanted) == 0 && (best == NULL || is_more_specific(route, best))) {
            best = route;
        }
    }
    if (best == NULL && allow != NULL) {
        ret->allow = apr_pstrcat(pool, allow, ", OPTIONS", NULL);
        return mcp_err_set(err, pool, MCP_FAIL_HTTP_METHOD, MCP_CODE_INVALID_REQUEST, NULL,
                           "this path takes %s", ret->allow);
    }
    if (best == NULL) {
        return not_found(pool, err);
    }
    ret->route = best;
    for (i = 0; i < count; i++) {
        ret->words[i] = best->words[i].name != NULL ? segments[i] : NULL;
    }
    return APR_SUCCESS;
}

/* --- answers ----------------------------------------------------------------------------- */

const char *mcp_route_self(const mcp_route_match_t *match, apr_pool_t *pool)
{
    const mcp_route_t *route = match->route;
    mcp_encode_buf_t buf;
    int i;

    mcp_encode_start(&buf, pool, 4 * MAX_PATH);
    for (i = 0; i < route->segment_count; i++) {
        const char *segment = match->words[i] != NULL ? match->words[i] : route->segments[i];

        mcp_encode_text(&buf, "/");
        mcp_encode_part(&buf, segment, strlen(segment), "");
    }
    return mcp_encode_finish(&buf);
}

const char *mcp_route_location(const mcp_route_t *route, const json_t *result, apr_pool_t *pool)
{
    const char *at = route->location;
    mcp_encode_buf_t buf;

    if (at == NULL) {
        return NULL;
    }
    mcp_encode_start(&buf, pool, MAX_PATH);
    while (*at != '\0') {
        size_t bytes = strcspn(at, "{");
        const char *end;
        const char *value;

        mcp_encode_raw(&buf, at, bytes);
        at += bytes;
        if (*at == '\0') {
            break;
        }
        end = strchr(at, '}');
        if (end == NULL) {
            return NULL;
        }
        value = mcp_json_str(result, apr_pstrmemdup(pool, at + 1, (size_t)(end - at) - 1));
        if (value == NULL || value[0] == '\0' || mcp_encode_is_dots(value, strlen(value))) {
            return NULL;
        }
        mcp_encode_part(&buf, value, strlen(value), "");
        at = end + 1;
    }
    return mcp_encode_finish(&buf);
}

const char *mcp_route_etag(const json_t *result, apr_pool_t *pool)
{
    json_int_t revision = mcp_json_int(result, "revision", 0);

    return revision > 0 ? apr_psprintf(pool, "\"%" APR_INT64_T_FMT "\"", (apr_int64_t)revision) : NULL;
}
