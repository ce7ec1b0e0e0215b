/* Defaults, caller's arguments, frozen values: one function merges them. Pure. */
#ifndef MCP_ARGS_H
#define MCP_ARGS_H

#include <jansson.h>

#include "mcp_err.h"

/* A JSON object: deep merge in the order defaults < caller < frozen. Frozen keys starting with '/'
 * are JSON Pointers (RFC 6901) into the arguments; others are top-level names. Callers' values at
 * frozen places are dropped first, so a frozen key can't be unfrozen by passing it. Inputs are not
 * changed. *ret: new reference, freed with pool's cleanup by the callee (do not decref). defaults,
 * caller and frozen may be NULL. */
apr_status_t mcp_args_merge(const json_t *defaults, const json_t *caller, const json_t *frozen,
                            apr_pool_t *pool, json_t **ret, mcp_err_t *err);

/* The caller's arguments without the places that are frozen (for validation against the advertised
 * schema). */
apr_status_t mcp_args_strip(const json_t *caller, const json_t *frozen, apr_pool_t *pool,
                            json_t **ret, mcp_err_t *err);

/* The top-level names of the caller's arguments for the record: at most MCP_MAX_ARG_NAMES of at
 * most MCP_MAX_ARG_NAME bytes, as a new JSON array (caller decrefs); *ret_count: how many there
 * were. */
json_t *mcp_args_names(const json_t *caller, size_t *ret_count);

#endif
