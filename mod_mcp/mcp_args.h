/* Defaults, caller's arguments, frozen values: one function merges them. Pure. */
#ifndef MCP_ARGS_H
#define MCP_ARGS_H

#include <jansson.h>

#include "mcp_err.h"

/* A JSON object: deep merge in the order defaults < caller < frozen. Keys of defaults and frozen
 * that start with '/' are JSON Pointers (RFC 6901) into the arguments; others are top-level names.
 * Callers' values at frozen places are dropped first, so a frozen key can't be unfrozen by passing
 * it; what else a caller put in the way of a frozen place gives way to the objects that lead there.
 * A default fills only what the caller left out: where he put something that is no object in the
 * way of a default's place, his word stands. Inputs are not changed. *ret: new reference, freed with pool's cleanup by the callee (do not decref). defaults,
 * caller and frozen may be NULL. */
apr_status_t mcp_args_merge(const json_t *defaults, const json_t *caller, const json_t *frozen,
                            apr_pool_t *pool, json_t **ret, mcp_err_t *err);

/* The caller's arguments without the places that are frozen (for validation against the advertised
 * schema). */
apr_status_t mcp_args_strip(const json_t *caller, const json_t *frozen, apr_pool_t *pool,
                            json_t **ret, mcp_err_t *err);

/* The caller's arguments under other top-level names: those that an advertised schema had to give
 * away for the gateway's own. rename: name as the caller wrote it to its new name, or to null for
 * an argument that the gateway consumes, which is dropped; other names stay. All at once, so names
 * may change places. Two arguments that would end under one name are refused. *ret as above; caller
 * and rename may be NULL. */
apr_status_t mcp_args_rename(const json_t *caller, const json_t *rename, apr_pool_t *pool,
                             json_t **ret, mcp_err_t *err);

/* The top-level names of the caller's arguments for the record: at most MCP_MAX_ARG_NAMES of at
 * most MCP_MAX_ARG_NAME bytes, as a new JSON array (caller decrefs); *ret_count: how many there
 * were. */
json_t *mcp_args_names(const json_t *caller, size_t *ret_count);

#endif
