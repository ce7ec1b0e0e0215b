/* A search at work: what its rooms share. view_search_words.c reads the query, view_search_names.c
 * finds the applications it names, view_search_match.c finds a word's tools, view_search_answer.c
 * tells what is found, view_search.c is the story. */
#ifndef MCP_VIEW_SEARCH_PRIVATE_H
#define MCP_VIEW_SEARCH_PRIVATE_H

#include "view_index_private.h"
#include "view_search.h"

#define SEARCH_TOKENS 2048 /* words of a query, repetitions and dropped ones included */
#define SEARCH_VALUES 512  /* values and domains of a query */
#define SEARCH_NAMED 32    /* applications of a query */

/* A word of the query at its place. */
typedef struct search_token {
    char text[MCP_VIEW_WORD_BYTES + 1]; /* folded */
    size_t bytes, letters;
    size_t from, to; /* in the query's text */
    size_t run;
    mcp_view_form_t form;
    mcp_view_value_t value; /* of the stretch it stands in */
    int is_named;           /* part of an application's name that is not connected */
} search_token_t;

typedef struct search_span {
    mcp_view_value_t kind;
    size_t from, to;
} search_span_t;

/* A different word of the query. */
typedef struct search_term {
    const search_token_t *token; /* where it stands first */
    char stem[MCP_VIEW_WORD_BYTES + 1];
    mcp_view_role_t role;
    int is_used; /* a content word */
    int is_soft; /* of a quotation: scores where another word matches, has no part in the mass */
    uint32_t weight;
    size_t tools;
} search_term_t;

typedef struct search_named {
    const mcp_view_application_t *application; /* NULL: a domain that no application is known by */
    size_t from, to;                           /* in the query's text */
    int is_connected;                          /* an account or a connector is called so */
    int is_called;                             /* the name of some tool says it */
} search_named_t;

/* A tool that a word matched. */
typedef struct search_entry {
    uint32_t tool;
    uint32_t stamp;  /* the matching that set fields */
    uint32_t fields; /* MCP_VIEW_FIELD_… */
    int is_whole;    /* the query is its name */
    int is_called;   /* its name says an application that the query names */
    uint64_t score, covered;
} search_entry_t;

typedef struct search {
    const mcp_view_index_t *index;
    const mcp_view_query_t *query;
    size_t bytes; /* of the text that is read */
    int is_cut;
    search_token_t *tokens;
    size_t token_count, token_room;
    search_span_t *spans;
    size_t span_count, span_room;
    search_term_t *terms;
    size_t term_count;
    search_named_t named[SEARCH_NAMED];
    size_t named_count;
    search_entry_t *entries;
    uint32_t entry_count, entry_room;
    uint32_t *slots; /* open addressing by tool: number of its entry plus 1 */
    size_t slot_count;
    uint32_t *touched; /* entries of the last matching */
    size_t touched_count, touched_room;
    uint32_t stamp;
    unsigned char *is_in; /* by group, if the query names an account */
    uint64_t mass;
    int has_unusual; /* a word that forbids a suggestion */
    int is_out;      /* of memory */
} search_t;

/* Makes room for one more row of an array on malloc; 0 and is_out: no memory. */
int mcp_search_room(search_t *s, void **rows, size_t count, size_t *room, size_t size);

/* Reads the query's text into tokens and spans. */
void mcp_search_read(search_t *s);
/* Makes terms of the tokens. */
void mcp_search_terms(search_t *s);

/* Finds the applications that the query names, and which are connected; marks the entries of tools
 * whose names say one. */
void mcp_search_named(search_t *s);

/* The tools of a word, by all rules: entries with this stamp, listed in touched. Answers how many.
 * */
size_t mcp_search_match(search_t *s, const char *word, size_t bytes, const char *stem,
                        mcp_view_form_t form);
/* The same for a term. */
size_t mcp_search_term(search_t *s, const search_term_t *term);
/* The entry of a tool; is_made 1: made if need be. NULL: none, or no memory. */
search_entry_t *mcp_search_entry(search_t *s, uint32_t tool, int is_made);
/* 1 if any tool has the word as it stands in a name, or its stem in another field. */
int mcp_search_is_word(const search_t *s, const char *word, size_t bytes);
/* 1 if a label has the word's stem. */
int mcp_search_is_label(const search_t *s, const char *word, size_t bytes);
/* ln((count + 1) / (tools + 1)) + 2 in 1/65536. */
uint32_t mcp_search_weight(size_t count, size_t tools);
/* What these fields score. */
uint32_t mcp_search_points(uint32_t fields);

/* Chooses the answers among the entries and fills found with all there is to tell. */
mcp_wire_status_t mcp_search_answer(search_t *s, mcp_view_found_t *found, int is_retry,
                                    apr_pool_t *pool);
/* Fills found's list of words that no tool has; 0: no memory. */
int mcp_search_unmatched(const search_t *s, mcp_view_found_t *found, apr_pool_t *pool);
/* A search; is_retry 1: of a suggestion, which has none of its own. */
mcp_wire_status_t mcp_search_run(const mcp_view_index_t *index, const mcp_view_query_t *query,
                                 int is_retry, apr_pool_t *pool, mcp_view_found_t **ret);

#endif
