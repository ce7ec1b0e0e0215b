/* From the arguments that a caller sent to those that an operation gets: validation as advertised, renaming, a toolbox's defaults and frozen values,
 * validation as the operation says. Pure. */
#ifndef MCP_PREPARE_H
#define MCP_PREPARE_H

#include "mcp_view.h"

/* What a plan says of arguments. NULL and empty objects are the same. */
typedef struct mcp_prepare {
    const mcp_operation_t *operation;
    const mcp_advertised_t *advertised; /* NULL: callers see the operation's own schema */
    const json_t *defaults; /* keys of all three: names of the operation, or JSON Pointers that begin with one */
    const json_t *frozen;
    const json_t *rename;   /* caller's name to the operation's, or to null */
} mcp_prepare_t;

/* The schema that the caller sees: what it validates arguments and mirrored headers against. */
const json_t *mcp_prepare_schema(const mcp_prepare_t *prepare);

/* The arguments for the operation. In this order:
 * 1. what the caller sent at frozen places is dropped, in the caller's own names;
 * 2. the rest is validated against the advertised schema: an error names path and rule, which are the caller's own words;
 * 3. arguments get the operation's names, and the gateway's own go;
 * 4. defaults < caller < frozen are merged;
 * 5. the whole is validated against the operation's schema. What fails here lies with the toolbox, whose keys and values are not the caller's to see: the
 *    message is fixed.
 * arguments: an object or NULL, not changed. *ret is freed with pool. MCP_FAIL_TOOL with invalid_arguments, or internal where the stored values can't be
 * used. */
apr_status_t mcp_prepare_args(const mcp_prepare_t *prepare, const json_t *arguments, apr_pool_t *pool,
                              json_t **ret, mcp_err_t *err);

/* Rewrites a refusal that names an argument between quotes, as whoever builds the request words it: a frozen one is not named, a renamed
 * one gets the caller's name. */
void mcp_prepare_blame(const mcp_prepare_t *prepare, apr_pool_t *pool, mcp_err_t *err);

#endif
