/* What a toolbox entry advertises: an operation's input schema without its frozen parameters, with
 * its defaults, and with the argument that chooses an account of a merged tool. Compiled by both
 * programs. Pure; each call may run in any thread. Inputs are JSON Schema 2020-12 (or draft-07
 * where `$schema` says so) of type object, which mcp_schema_compile() takes; what comes out, it
 * takes too.
 *
 * A place is a top-level argument's name, or a JSON Pointer (RFC 6901) into the arguments, which
 * starts with '/'. It is looked for wherever the schema speaks of the object that holds it: in
 * properties, allOf, anyOf, oneOf, if, then, else, not, dependentSchemas, dependencies, behind
 * references within the document, and in the additionalProperties of a map. */
#ifndef MCP_VIEW_SCHEMA_H
#define MCP_VIEW_SCHEMA_H

#include <jansson.h>
#include <stddef.h>

#include "mcp_proto.h"

#define MCP_VIEW_SCHEMA_KEYS 64     /* frozen keys of one schema, and as many defaults */
#define MCP_VIEW_SCHEMA_POINTER 512 /* bytes of a pointer or name */
#define MCP_VIEW_SCHEMA_TOKENS 16   /* tokens of a pointer */
#define MCP_VIEW_SCHEMA_WORK 100000 /* values looked at or made for one answer */
#define MCP_VIEW_SCHEMA_LABELS 256  /* accounts to choose from */

/* The schema as a caller sees it whose arguments are merged with mcp_args_merge(): defaults, then
 * his own, then frozen. An instance that it takes becomes, merged, one that the original takes as
 * far as presence, types and nesting go; where the original uses alternatives or negations that
 * speak of a place, the result is looser, and the original decides after the merge:
 *   oneOf becomes anyOf; if, then, else become anyOf of (if and then) and else; not is dropped.
 *
 * A frozen place is gone from properties and required, and from what else names it: default and
 * examples lose the member; an enum or const that holds it is dropped, and so is an unknown keyword
 * that mentions it. What depends on its presence (dependentRequired and the like) holds without
 * condition. minProperties and maxProperties are lowered. propertyNames loses the name from its
 * enum or const, and goes as a whole if it still has it elsewhere; of patternProperties, patterns
 * that do nothing but list names ("^name$", "^(one|two)$") lose it. Other patterns and texts stay as
 * they are, and so does additionalProperties: false (callers' values at frozen places are dropped
 * before validation). An object around a frozen place is an object (the merge makes it
 * one), and is required exactly if it still demands a member.
 *
 * A place with a default isn't required, and its property shows the default.
 *
 * References on the way to a place are replaced by what they lead to; others keep what they had.
 * Definitions that nobody uses any more are left out. Without a place that the schema speaks of,
 * the result equals the schema.
 *
 * frozen, defaults: objects from place to value; NULL: none. *ret: a new reference. MCP_E_FIELD: a
 * malformed key, or a schema that can't be followed (endless references on the way to a place, a
 * subschema with an $id of its own); MCP_E_SIZE: beyond a bound; MCP_E_NOMEM. On failure why (of
 * why_size bytes; may be NULL) says so in a sentence that names no key and no value. */
mcp_wire_status_t mcp_view_schema_strip(const json_t *schema, const json_t *frozen,
                                        const json_t *defaults, json_t **ret, char *why,
                                        size_t why_size);

/* 1 if the schema declares the place, or leaves it open (an object on the way that has no
 * properties and forbids none); 0 if not, or if the key is malformed or beyond a bound. An element
 * of an array is no place: a number or "-" behind the first token is never known. */
int mcp_view_schema_knows(const json_t *schema, const char *key);

/* The names that the schema declares for members of one object, as keys of a new object: path (of
 * count tokens, at most MCP_VIEW_SCHEMA_TOKENS) leads to it, and empty means the arguments
 * themselves. Names that only a pattern or a map lets in aren't declared. NULL: no memory, or
 * beyond a bound. */
json_t *mcp_view_schema_names(const json_t *schema, const char *const *path, size_t count);

/* Bytes of a name that mcp_view_schema_choose() returns, NUL included. */
#define MCP_VIEW_SCHEMA_NAME (MCP_VIEW_SCHEMA_POINTER + 1)

/* Adds the argument `connection`, one of the labels (an array of different strings, at most
 * MCP_VIEW_SCHEMA_LABELS), in place. A schema that speaks of an argument `connection` already has
 * it renamed to the first of arg_connection, arg_arg_connection, … that it does not speak of, all
 * over its top level; ret_name gets that name, else "". Nobody else may hold the schema's members
 * meanwhile. MCP_E_FIELD, MCP_E_SIZE, MCP_E_NOMEM as above; the schema is unchanged then. */
mcp_wire_status_t mcp_view_schema_choose(json_t *schema, const json_t *labels, int is_required,
                                         char ret_name[MCP_VIEW_SCHEMA_NAME]);

/* The sentences that an entry's description ends with. */

/* "Set `connection`: a, b, c and 4 more." into buf, cut never: MCP_E_SPACE if it is too small
 * (three labels and 64 bytes are enough), MCP_E_FIELD for labels that are not strings or none. */
mcp_wire_status_t mcp_view_schema_text_choose(const json_t *labels, char *buf, size_t size);

/* "Some values are frozen." Never which. */
const char *mcp_view_schema_text_frozen(void);

#endif
