/* Name rules that both programs share: account labels, slugs, advertised tool names with the
 * hashed cut, argument names.  Pure, thread-safe. */
#ifndef MCP_NAMES_H
#define MCP_NAMES_H

#include "mcp_proto.h"

/* Account label, toolbox name or connector slug: 1 to MCP_MAX_LABEL of [a-z0-9] and inner '-'. */
int mcp_name_is_label(const char *text);

/* Anything that has the form of a tool name: 1 to MCP_MAX_TOOL_NAME of [A-Za-z0-9_-]. */
int mcp_name_is_tool(const char *text);

/* The advertised name {label}__{operation} into buf (MCP_MAX_TOOL_NAME + 1 bytes).
 * Characters outside the form become '_'. A name that was changed or cut, or that ends like our
 * suffix, ends in '_' and 12 base32 digits of SHA-256(label NUL connector NUL operation):
 * it depends on nothing else, so neighbours never change it. */
mcp_wire_status_t mcp_name_tool(const char *label, const char *connector, const char *operation,
                                char *buf, size_t size);

/* An argument name in [A-Za-z0-9_.-]{1,64} for a parameter's own name; hashed like the above over
 * (connector NUL operation NUL name). */
mcp_wire_status_t mcp_name_arg(const char *connector, const char *operation, const char *name,
                               char *buf, size_t size);

/* The names that receivers of query strings and forms may take for one and the same: some read
 * brackets as the way into a list or an object, some drop blanks, some fold case, and to some '.',
 * ' ' and '_' are alike. */

/* The field that a name leads to: what stands before its first bracket (brackets at its very
 * beginning are skipped), without blanks at its ends, folded. is_whole: all of the name, where a
 * bracket is folded like a blank, as it is by those who find no other one that closes it. buf gets
 * at most strlen(name) + 1 bytes; returns the length, 0 for a name that leads nowhere. */
size_t mcp_name_field(const char *name, int is_whole, char *buf);

/* 1 if the name leads nowhere by itself, as "" and "[]" do: what stands below it may lead anywhere. */
int mcp_name_is_no_field(const char *name);

/* 1 if both lead to one field, in either way. */
int mcp_name_is_same_field(const char *one, const char *other);

#endif
