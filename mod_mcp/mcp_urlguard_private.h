/* Matching of one reading of a URL against the templates of a connector: which is the most specific
 * one. Private to the guard room. */
#ifndef MCP_URLGUARD_PRIVATE_H
#define MCP_URLGUARD_PRIVATE_H

#include <stdint.h>

#include <apr_pools.h>
#include <jansson.h>

#define MCP_GUARD_PARTS 64     /* segments of a template */
#define MCP_GUARD_SEGMENTS 256 /* segments of a URL's path below the base */
#define MCP_GUARD_LITERALS 32  /* required query literals of a template */
#define MCP_GUARD_PATH 2048    /* bytes of a template */

/* Bytes that may hold NUL: text that was percent-decoded. */
typedef struct mcp_guard_text {
    const char *data;
    size_t bytes;
} mcp_guard_text_t;

typedef struct mcp_guard_pair {
    mcp_guard_text_t name;
    mcp_guard_text_t value;
} mcp_guard_pair_t;

typedef struct mcp_guard_part mcp_guard_part_t;

/* One operation, compiled. */
typedef struct mcp_guard_op {
    const char *id;
    const char *method; /* upper case */
    const char
        *shape; /* equal for templates that are the same but for placeholder names and case */
    const mcp_guard_part_t *parts;
    size_t count;
    const mcp_guard_pair_t *literals[2]; /* as written, and folded for a loose reading */
    size_t literal_count;
} mcp_guard_op_t;

/* One reading of a URL: what an upstream may take it for. */
typedef struct mcp_guard_reading {
    int is_loose; /* segments and pairs are folded (case and the like) */
    const mcp_guard_text_t *segments;
    size_t count;
    const mcp_guard_pair_t *pairs;
    size_t pair_count;
} mcp_guard_reading_t;

/* How specific a match is: segments from left to right, then the number of query literals. */
typedef struct mcp_guard_score {
    uint32_t segments[MCP_GUARD_SEGMENTS];
    size_t count;
    size_t literals;
} mcp_guard_score_t;

/* Compiles a row of the blob. 0, or -1 for one that breaks the form. */
int mcp_guard_match_compile(const json_t *row, apr_pool_t *pool, mcp_guard_op_t *ret);

/* 1 and *ret if the operation's template claims the reading. */
int mcp_guard_match(const mcp_guard_op_t *op, const mcp_guard_reading_t *reading,
                    mcp_guard_score_t *ret);

/* Below, equal to or above 0 as a is less, equally or more specific than b. */
int mcp_guard_match_order(const mcp_guard_score_t *a, const mcp_guard_score_t *b);

/* One more round of decoding, as lenient as anything in front of an application may be: %XX, %uXXXX
 * and overlong UTF-8. Memory from pool. */
mcp_guard_text_t mcp_guard_lenient_decode(const mcp_guard_text_t *text, apr_pool_t *pool);

/* Folds UTF-8 text as lenient upstreams do: ASCII case, letters whose case mapping is ASCII,
 * full-width forms and look-alikes of '.' and '/'. Works in place on `bytes` bytes, returns the new
 * length, never longer. */
size_t mcp_guard_lenient_fold(char *text, size_t bytes);

/* Cuts blanks and control characters at both ends, and trailing dots, off a folded segment unless
 * nothing would stay. */
void mcp_guard_lenient_trim(mcp_guard_text_t *segment);

#endif
