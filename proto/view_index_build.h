/* An index while it is built: view_index.c reads the tools, view_index_tables.c makes the tables.
 * */
#ifndef MCP_VIEW_INDEX_BUILD_H
#define MCP_VIEW_INDEX_BUILD_H

#include "view_index_private.h"

typedef enum index_field { FIELD_NAME, FIELD_LABEL, FIELD_TEXT, FIELD_COUNT } index_field_t;

/* A word of a field of a tool. */
typedef struct index_pair {
    uint32_t word;
    uint32_t tool;
} index_pair_t;

typedef struct index_pairs {
    index_pair_t *rows;
    size_t count, room;
} index_pairs_t;

/* A different word, in the order of its first appearance. */
typedef struct index_seen {
    uint64_t hash;
    uint32_t text; /* where it begins in the texts */
    uint32_t bytes;
    uint32_t last
        [FIELD_COUNT]; /* the tool that has it last, plus 1: a tool has a word of a field once */
    uint32_t word;     /* its number in the table of words, or UINT32_MAX: of no name */
    uint32_t stem;     /* its number in the table of stems */
    uint8_t form;
} index_seen_t;

typedef struct index_build {
    index_seen_t *seen;
    uint32_t seen_count, seen_room;
    uint32_t *slots; /* open addressing: number in seen plus 1 */
    size_t slot_count;
    char *texts;
    size_t text_bytes, text_room;
    index_pairs_t pairs[FIELD_COUNT];
    mcp_view_whole_t *wholes;
    mcp_view_group_t *groups;
    uint32_t *group_slots;
    size_t group_slot_count;
    uint32_t *order;
    /* of the walk */
    uint32_t tool;
    index_field_t field;
    size_t text_left;
    int is_out; /* of memory */
} index_build_t;

/* Memory of the index; is_out: there is none. */
void *mcp_index_take(index_build_t *b, mcp_view_index_t *index, size_t count, size_t size);
/* The table of the names' words, then that of all stems; each seen word gets its numbers. */
void mcp_index_tables(index_build_t *b, mcp_view_index_t *index);
/* Pairs, which are in the order of their tools, into the postings of a table's words. */
void mcp_index_postings(index_build_t *b, mcp_view_index_t *index, const index_pairs_t *pairs,
                        int is_stem, uint32_t words, mcp_view_postings_t *postings);
/* The order of the names, the table of whole names, and the groups. */
void mcp_index_orders(index_build_t *b, mcp_view_index_t *index);

#endif
