/* Ranking of a view's tools for a query, and the floor below which nothing is an answer.
 *
 * Each of a query's content words scores 5 if it equals a word of the tool's name; else 3 if it
 * begins one (with three letters or more), one of four letters or more begins it, or both have one
 * stem; 2 for a word of account or connector and 1 for one of the description or the arguments,
 * compared as stems and by beginnings of four letters and more. The fields add up, each once. The
 * word's weight multiplies that: ln((N+1)/(df+1)) + 2, N and df over the whole view, df the tools
 * that it matches in any way.
 *
 * Content words are what is left without function words, generic words, numbers and values
 * (quotations, addresses, ids); where nothing is left, what was dropped last comes back first. Words
 * of one stem count once. A quoted word lifts tools that content words have found. A tool is an
 * answer if the words it matches carry half of the weight of all content words. A query equal to a
 * tool's name (advertised, or the part behind "__"; any separators) is answered with that tool first.
 * Equal scores stand in the order of the advertised names' bytes. Whole numbers throughout: the same
 * view and query give the same answer on any machine and in any locale.
 *
 * A query that names applications, none of which is an account or a connector, is answered only with
 * tools whose own names say one of them. Another word that no tool has carries the highest weight
 * unless it is ordinary English (mcp_view_unknown_t).
 *
 * Pure; one index may be searched by many threads, each with a pool of its own. */
#ifndef MCP_VIEW_SEARCH_H
#define MCP_VIEW_SEARCH_H

#include <stdint.h>

#include "view_index.h"

#define MCP_VIEW_SEARCH_BYTES (64u * 1024) /* of a query's text; what is behind is not read */
#define MCP_VIEW_SEARCH_WORDS 256          /* different content words; what is behind is not read */
#define MCP_VIEW_SEARCH_LIMIT 5            /* answers, if the query doesn't say */
#define MCP_VIEW_SEARCH_MOST 20            /* answers at most */
#define MCP_VIEW_SEARCH_CLOSEST 3          /* names below the floor at most */
#define MCP_VIEW_SEARCH_ONE 65536          /* fixed point: a weight or score of 1 */

/* What words do that no tool has. */
typedef enum mcp_view_unknown {
    MCP_VIEW_UNKNOWN_ORDINARY, /* ordinary ones are left out of the mass, others weigh the most */
    MCP_VIEW_UNKNOWN_COUNT,    /* all weigh the most */
    MCP_VIEW_UNKNOWN_IGNORE    /* all are left out */
} mcp_view_unknown_t;

typedef struct mcp_view_query {
    const char *text;
    size_t bytes;
    const char *account; /* label of an account, or slug or label of a connector; NULL: all */
    size_t limit;        /* 0: MCP_VIEW_SEARCH_LIMIT; more than MCP_VIEW_SEARCH_MOST is that many */
    size_t closest; /* names to tell if all are below the floor; at most MCP_VIEW_SEARCH_CLOSEST */
    mcp_view_unknown_t unknown_words;
    int is_explained; /* fill terms, matches and dropped */
    int is_floor_off; /* for measurements: no floor, no rule for absent applications */
} mcp_view_query_t;

/* How a word was read. */
typedef enum mcp_view_role {
    MCP_VIEW_ROLE_CONTENT,     /* counts: in the mass, and scores where it matches */
    MCP_VIEW_ROLE_FUNCTION,    /* dropped: a function word */
    MCP_VIEW_ROLE_GENERIC,     /* dropped: any search for a tool may carry it */
    MCP_VIEW_ROLE_NUMBER,      /* dropped: a bare number */
    MCP_VIEW_ROLE_VALUE,       /* dropped: of a quotation, an address or an id */
    MCP_VIEW_ROLE_APPLICATION, /* names an application that is not connected */
    MCP_VIEW_ROLE_UNUSUAL,     /* no tool has it: weighs the most */
    MCP_VIEW_ROLE_LEFT_OUT     /* no tool has it: left out of the mass */
} mcp_view_role_t;

typedef struct mcp_view_term {
    const char *text; /* folded; of an application: its name as the lexicon writes it */
    mcp_view_role_t role;
    uint32_t weight; /* in 1/65536; 0 if dropped or left out */
    size_t tools;    /* df */
} mcp_view_term_t;

#define MCP_VIEW_FIELD_NAME 1u        /* equal: 5 */
#define MCP_VIEW_FIELD_NAME_PART 2u   /* beginning or stem: 3 */
#define MCP_VIEW_FIELD_LABEL 4u       /* 2 */
#define MCP_VIEW_FIELD_DESCRIPTION 8u /* 1 */

typedef struct mcp_view_match {
    size_t term;     /* in found->terms */
    unsigned fields; /* MCP_VIEW_FIELD_… */
    uint64_t points; /* of the score */
} mcp_view_match_t;

typedef struct mcp_view_hit {
    size_t tool;                     /* number in the index */
    uint64_t score;                  /* in 1/65536 */
    uint64_t covered;                /* weight of the words it matches, in 1/65536 */
    int is_whole_name;               /* the query is its name */
    const mcp_view_match_t *matches; /* explained: in the order of the terms */
    size_t match_count;
} mcp_view_hit_t;

/* Why there is no answer. */
typedef enum mcp_view_empty {
    MCP_VIEW_EMPTY_NOT,         /* there is one */
    MCP_VIEW_EMPTY_NO_WORDS,    /* the query has no words */
    MCP_VIEW_EMPTY_ACCOUNT,     /* no tool of that account or connector */
    MCP_VIEW_EMPTY_APPLICATION, /* it names applications, none of them connected */
    MCP_VIEW_EMPTY_NO_MATCH,    /* no tool has any of its words */
    MCP_VIEW_EMPTY_FLOOR        /* no tool has enough of them */
} mcp_view_empty_t;

typedef struct mcp_view_found {
    const mcp_view_hit_t *hits; /* best first */
    size_t hit_count;
    size_t above; /* tools that reach the floor, shown or not */
    size_t below; /* tools that match a word and do not reach it */
    mcp_view_empty_t empty;
    const char *const *unmatched; /* absent applications, then words that no tool has, as written */
    size_t unmatched_count;
    const char *suggest; /* a query that has an answer; NULL: none. Only when empty */
    const mcp_view_hit_t *
        closest; /* best below the floor, if asked for and empty; never for an absent application */
    size_t closest_count;
    int is_cut;                   /* the query was longer than what was read */
    uint64_t mass;                /* of the content words, in 1/65536; the floor is half of it */
    const mcp_view_term_t *terms; /* explained: every different word, in the query's order */
    size_t term_count;
    const mcp_view_hit_t *dropped; /* explained: the best below the floor, as many as the limit */
    size_t dropped_count;
} mcp_view_found_t;

/* Searches. The answer is in pool. MCP_E_FIELD: no text although bytes are given; MCP_E_NOMEM.
 * Nothing found is no error. */
mcp_wire_status_t mcp_view_search(const mcp_view_index_t *index, const mcp_view_query_t *query,
                                  apr_pool_t *pool, mcp_view_found_t **ret);

/* The names of enum values, for answers: "ordinary", "content", "floor". NULL: none. */
const char *mcp_view_unknown_text(mcp_view_unknown_t value);
const char *mcp_view_role_text(mcp_view_role_t value);
const char *mcp_view_empty_text(mcp_view_empty_t value);

#endif
