/* The index's inside, for the rooms that build it and that search it. */
#ifndef MCP_VIEW_INDEX_PRIVATE_H
#define MCP_VIEW_INDEX_PRIVATE_H

#include <stdint.h>

#include "view_index.h"
#include "view_words.h"

/* Words in the order of their bytes, without two equal ones. */
typedef struct mcp_view_table {
    const char *text;   /* one behind the other, each with its NUL */
    const uint32_t *at; /* where each begins; one more entry than words */
    uint32_t count;
} mcp_view_table_t;

/* The tools of each word of a table, in ascending order. */
typedef struct mcp_view_postings {
    const uint32_t *from; /* where a word's begin in tools; one more entry than words */
    const uint32_t *tools;
} mcp_view_postings_t;

/* A tool under its whole name, without separators. */
typedef struct mcp_view_whole {
    uint64_t hash;
    uint32_t tool;
} mcp_view_whole_t;

/* What tools of one account have in common. */
typedef struct mcp_view_group {
    const char *account, *connector, *label; /* never NULL */
} mcp_view_group_t;

struct mcp_view_index {
    apr_pool_t *pool;
    const mcp_view_lexicon_t *lexicon;
    uint32_t count;
    const char *const *names; /* as advertised */
    const uint32_t *rank;     /* of a tool by the bytes of its name */
    const uint32_t *group_of; /* a tool's group */
    const mcp_view_group_t *groups;
    uint32_t group_count;
    mcp_view_table_t words;         /* of names, as they stand */
    mcp_view_postings_t name;       /* by word */
    mcp_view_table_t stems;         /* of all fields */
    mcp_view_postings_t part;       /* by stem: of a word of the name */
    mcp_view_postings_t label;      /* by stem */
    mcp_view_postings_t text;       /* by stem: description and arguments */
    const mcp_view_whole_t *wholes; /* by hash, then tool */
    size_t whole_count;
    mcp_view_index_size_t size;
};

/* Number of the word in the table, or UINT32_MAX. */
uint32_t mcp_view_table_find(const mcp_view_table_t *table, const char *word);
/* The words from *first up to *last begin with these bytes. */
void mcp_view_table_range(const mcp_view_table_t *table, const char *prefix, size_t bytes,
                          uint32_t *first, uint32_t *last);
static inline const char *mcp_view_table_word(const mcp_view_table_t *table, uint32_t number)
{
    return table->text + table->at[number];
}

/* A name or a query without what separates words, folded. *ret_bytes 0: there is no word, or it is
 * longer than a name may be. */
#define MCP_VIEW_WHOLE_BYTES 1024
uint64_t mcp_view_whole_hash(const char *text, size_t bytes, char buf[MCP_VIEW_WHOLE_BYTES],
                             size_t *ret_bytes);
/* The part of an advertised name behind the account. */
const char *mcp_view_bare_name(const char *name);

#endif
