/* Fuzzes the REST door's routes: one request as lines, METHOD, path, query string, If-Match, and the body behind them. What is taken must be
 * an object, and what an answer says of it must be readable again. Also the bytes as a route table. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../mod_mcp/mcp_route.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROW(op, method, path, words, query)                                                        \
    "{\"op\":\"" op "\",\"method\":\"" method "\",\"path\":\"" path                                \
    "\",\"class\":\"write\",\"max_bytes\":1000,\"if_revision\":true,\"status\":201,\"words\":{" words   \
    "},\"query\":{" query "},\"location\":\"/items/{item}\"}"

static const char table[] =
    "{\"v\":1,\"routes\":["
    ROW("items__list", "GET", "/items", "",
        "\"a\":\"integer\",\"b\":\"boolean\",\"c\":\"strings\",\"d\":\"json\",\"e\":\"number|string\","
        "\"cursor\":\"string\"") ","
    ROW("items__create", "POST", "/items", "", "\"dry_run\":\"boolean\"") ","
    ROW("items__update", "PATCH", "/items/{item}", "\"item\":\"string\"", "") ","
    ROW("items__page", "GET", "/items/{item}/{page}", "\"item\":\"string\",\"page\":\"integer\"", "")
    "]}";

static apr_pool_t *root;
static const mcp_routes_t *routes;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&root, NULL) != APR_SUCCESS ||
        mcp_route_compile(table, sizeof(table) - 1, root, &routes, NULL) != APR_SUCCESS) {
        __builtin_trap();
    }
    return 0;
}

/* The next line, NUL-terminated; *at behind it. */
static const char *take_line(const char **at, const char *end, apr_pool_t *pool)
{
    const char *start = *at;
    const char *stop = start < end ? memchr(start, '\n', (size_t)(end - start)) : NULL;

    if (stop == NULL) {
        *at = end;
        return apr_pstrmemdup(pool, start, (size_t)(end - start));
    }
    *at = stop + 1;
    return apr_pstrmemdup(pool, start, (size_t)(stop - start));
}

static void judge(const mcp_route_match_t *match, const mcp_route_input_t *input, const json_t *args,
                  apr_pool_t *pool)
{
    mcp_route_match_t again;
    const char *self = mcp_route_self(match, pool);
    const char *next = mcp_route_next(input->query, "c 1&", pool);
    const char *location = mcp_route_location(match->route, args, pool);

    if (!json_is_object(args) || next == NULL) {
        __builtin_trap();
    }
    /* another path of the same bytes leads to the same route; %2F makes it longer, so that it may have become too long */
    if (self != NULL && strlen(self) < 4000 &&
        (mcp_route_find(routes, match->route->method, self, pool, &again, NULL) != APR_SUCCESS ||
         again.route != match->route)) {
        __builtin_trap();
    }
    if (location != NULL && strncmp(location, "/items/", 7) != 0) {
        __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data;
    const char *end = at + size;
    const mcp_routes_t *made = NULL;
    mcp_route_match_t match;
    mcp_route_input_t input;
    json_t *args = NULL;
    apr_pool_t *pool = NULL;
    const char *method;
    const char *path;
    mcp_err_t err;

    if (size > 64 * 1024) {
        return 0;
    }
    if (apr_pool_create(&pool, root) != APR_SUCCESS) {
        __builtin_trap();
    }
    memset(&err, 0, sizeof(err));
    memset(&input, 0, sizeof(input));
    method = take_line(&at, end, pool);
    path = take_line(&at, end, pool);
    input.query = take_line(&at, end, pool);
    input.if_match = take_line(&at, end, pool);
    if (input.if_match[0] == '\0') {
        input.if_match = NULL;
    }
    if (at < end) {
        input.body = at; /* exactly its bytes */
        input.body_bytes = (size_t)(end - at);
    }
    if (mcp_route_find(routes, method, path, pool, &match, &err) == APR_SUCCESS &&
        mcp_route_args(&match, &input, pool, &args, &err) == APR_SUCCESS) {
        judge(&match, &input, args, pool);
    } else if (err.fail == MCP_FAIL_NONE || err.message == NULL) {
        __builtin_trap();
    }
    (void)mcp_route_compile((const char *)data, size, pool, &made, NULL); /* refused or taken, never worse */
    apr_pool_destroy(pool);
    return 0;
}
