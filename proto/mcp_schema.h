/* JSON Schema 2020-12 validation (and draft-07 where `$schema` says so), in-document
 * references only: `$ref`, `$dynamicRef`, `$anchor`, `$id` within the document; an external
 * reference is an error, never permissive and never fetched.  `format` and the content
 * keywords are annotations.  A compiled schema is immutable and thread-safe.  Work, depth
 * and pattern matching are bounded; a limit that is hit is an error, not a pass.  Pure.
 *
 * Specification: JSON Schema Core and Validation 2020-12; draft-07 for that dialect.
 * A schema without `$schema` is 2020-12.  A subschema with an `$id` may name its own one. */
#ifndef MCP_SCHEMA_H
#define MCP_SCHEMA_H

#include <apr_pools.h>
#include <jansson.h>

#include "mcp_proto.h"

typedef struct mcp_schema mcp_schema_t;

#define MCP_SCHEMA_MAX_STEPS 200000 /* keyword evaluations of one validation */
#define MCP_SCHEMA_MAX_DEPTH 128    /* subschemas within subschemas at work; JSON nesting */
#define MCP_SCHEMA_MAX_NODES 100000 /* subschemas of one document */
#define MCP_SCHEMA_MAX_URI   2048   /* bytes of an `$id` or a reference */
#define MCP_SCHEMA_MAX_PATTERNS (8u * 1024 * 1024) /* bytes of all its patterns, compiled */
#define MCP_SCHEMA_WORK      100000000 /* pattern matching of one validation (mcp_regex.h) */

/* Why an instance or a schema is refused. */
typedef struct mcp_schema_error {
    char path[256];    /* JSON Pointer into the instance (mcp_schema_compile: into the schema;
                        * "" is the root), cut with "..." */
    char rule[64];     /* keyword: "required", "type", … */
    char message[512]; /* "missing property \"path\"": names rules and property names of the
                        * schema, never an instance's value */
} mcp_schema_error_t;

/* Compiles.  schema is copied as needed; freed with pool (nothing stays in it on failure),
 * which no other thread may use meanwhile.
 * MCP_E_FIELD with *err when it can't be taken (unknown dialect, malformed keyword,
 * unresolved or external reference, bad pattern, too deep); MCP_E_SIZE too many subschemas or too
 * large patterns; MCP_E_NOMEM.  err may be NULL; it is written on failure alone. */
mcp_wire_status_t mcp_schema_compile(const json_t *schema, apr_pool_t *pool, mcp_schema_t **ret,
                                     mcp_schema_error_t *err);

/* 0 valid; MCP_E_FIELD invalid (*err names the first failure, in document order of the
 * schema); MCP_E_SIZE a limit was hit (rule "limit"); MCP_E_NOMEM.  err may be NULL; it is
 * written on failure alone.  Any number of threads may use one schema, each with an instance
 * of its own. */
mcp_wire_status_t mcp_schema_validate(const mcp_schema_t *schema, const json_t *instance,
                                      mcp_schema_error_t *err);

#endif
