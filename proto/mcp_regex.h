/* Regular expressions with limits, over PCRE2 used directly.
 * Compiled ones are immutable and thread-safe to match.
 *
 * PCRE2's own match limit counts anew at every start position and does not count
 * runs at all, so it does not bound the time of a search (a class repeated over
 * 100,000 characters took 13 s under a limit of 1000).  The pattern is therefore
 * compiled with callouts at every place where matching can turn back or run on,
 * and these spend a budget of work; one unit is about a character looked at.
 */
#ifndef MCP_REGEX_H
#define MCP_REGEX_H

#include <apr_pools.h>
#include <stdint.h>

#include "mcp_proto.h"

typedef struct mcp_regex mcp_regex_t;

#define MCP_REGEX_MAX_PATTERN 16384    /* bytes of a pattern */
#define MCP_REGEX_MAX_GROUPS  100      /* nesting of its groups */
#define MCP_REGEX_WORK        20000000 /* budget of one mcp_regex_match() */

/* ECMA-262 pattern in UTF-8 (as JSON Schema `pattern` has it: unicode mode), unanchored.
 * More lenient than ECMA-262 where nothing else can be meant: punctuation may be escaped
 * without need, lone `]`, `{` and `}` stand for themselves, `-` beside a class escape is a
 * dash, and `(?i)`, `(?s)`, `(?m)` may begin the pattern.  Not taken: what only other
 * dialects know, and a look-behind of unbounded length.  Freed with pool.
 * MCP_E_FIELD: not a pattern; MCP_E_SIZE: longer than MCP_REGEX_MAX_PATTERN; MCP_E_NOMEM. */
mcp_wire_status_t mcp_regex_compile(const char *pattern, size_t bytes, apr_pool_t *pool,
                                    mcp_regex_t **ret);

/* Memory that the compiled pattern takes.  Nested counts can make much of a short pattern (up
 * to some 100 KB), so whoever compiles many foreign ones adds up. */
size_t mcp_regex_bytes(const mcp_regex_t *regex);

/* 1 matches, 0 does not, negative: a limit was hit (work, match, depth, heap) or the text
 * is not UTF-8.  Thread-safe; allocates for the length of the call only. */
int mcp_regex_match(const mcp_regex_t *regex, const char *text, size_t bytes);

/* The same under a caller's budget: *work is lowered by what the match took, to 0 when it
 * ran out (then the answer is negative). */
int mcp_regex_match_within(const mcp_regex_t *regex, const char *text, size_t bytes,
                           uint64_t *work);

#endif
