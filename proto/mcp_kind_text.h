/* Ids and codes to text and back, for the wire, logs and tests.  Pure, thread-safe. */
#ifndef MCP_KIND_TEXT_H
#define MCP_KIND_TEXT_H

#include "mcp_proto.h"

/* Text of a kind (request or reply: a reply's is that of its request), or "unknown". */
const char *mcp_kind_text(uint16_t kind);

/* 1 if `kind` is a request kind on the list and built, 0 if reserved, -1 if unknown. */
int mcp_kind_is_built(uint16_t kind);

/* Text of a code, or "internal" for a value off the list. */
const char *mcp_code_text(mcp_code_t code);

/* HTTP status of a code at the REST door. */
int mcp_code_http(mcp_code_t code);

/* Outcome that an attempt ending with this code has in the trail. */
mcp_outcome_t mcp_code_outcome(mcp_code_t code);

/* The value of a text, or the list's NONE when it is not on the list. NULL gives NONE. */
mcp_code_t mcp_code_from_text(const char *text);
mcp_outcome_t mcp_outcome_from_text(const char *text);
mcp_surface_t mcp_surface_from_text(const char *text);
mcp_via_t mcp_via_from_text(const char *text);
mcp_class_t mcp_class_from_text(const char *text);

const char *mcp_outcome_text(mcp_outcome_t outcome);
const char *mcp_surface_text(mcp_surface_t surface);
const char *mcp_via_text(mcp_via_t via);
const char *mcp_class_text(mcp_class_t klass);

/* One scope's bit ("mcp:read" ... "mcp:tools"), or 0. */
unsigned mcp_scope_from_text(const char *text);
/* Text of exactly one bit, or NULL. */
const char *mcp_scope_text(unsigned bit);
/* Adds the rungs below each rung held. */
unsigned mcp_scope_close(unsigned scopes);
/* The rung that a classification needs; FORBIDDEN and NONE need one that nobody has (0x80000000). */
unsigned mcp_scope_of_class(mcp_class_t klass);
/* Writes the space-separated scopes of the set, ladder first, into buf (64 bytes suffice). */
void mcp_scope_list(unsigned scopes, char *buf, size_t size);

/* Classification of an HTTP method where the catalog says nothing. */
mcp_class_t mcp_class_of_method(const char *method);

const char *mcp_status_text(mcp_wire_status_t status);

#endif
