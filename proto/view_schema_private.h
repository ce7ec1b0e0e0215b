/* Private to the room that makes advertised schemas: one run over a schema, and what its files offer
 * each other.
 *
 *   view_schema.c        places, and a whole document without them
 *   view_schema_known.c  what a schema says of a place
 *   view_schema_choose.c the choice of an account, and texts
 *   view_schema_strip.c  a schema without its frozen places
 *   view_schema_keys.c   the keywords on the way to a place
 *   view_schema_names.c  keywords that speak of members' names
 *   view_schema_refs.c   references: where they lead, and keeping them alive
 */
#ifndef MCP_VIEW_SCHEMA_PRIVATE_H
#define MCP_VIEW_SCHEMA_PRIVATE_H

#include <stdint.h>

#include "view_schema.h"

#define MCP_VSCHEMA_DEPTH 256 /* schemas within schemas at work, references included */
#define MCP_VSCHEMA_CHAIN 64  /* references on the way to one place */

/* A place as the names that lead to it. */
typedef struct mcp_vschema_place {
    char text[MCP_VIEW_SCHEMA_POINTER + 1];
    const char *tokens[MCP_VIEW_SCHEMA_TOKENS]; /* into text */
    size_t count;
    const json_t *value;
} mcp_vschema_place_t;

/* Which places are at or below the instance location that a schema speaks of: bit i is place i,
 * whose first `depth` tokens led there. */
typedef struct mcp_vschema_spot {
    uint64_t frozen;
    uint64_t defaults;
    size_t depth;
} mcp_vschema_spot_t;

typedef struct mcp_vschema_link {
    const json_t *target;
    mcp_vschema_spot_t spot;
} mcp_vschema_link_t;

typedef struct mcp_vschema_run {
    const json_t *root;
    int is_old; /* draft-07 */
    mcp_vschema_place_t *frozen;
    mcp_vschema_place_t *defaults;
    size_t frozen_count;
    size_t default_count;
    /* Adding `connection` at the top level. */
    int is_choosing;
    int is_required;
    const char *rename_to; /* what an argument `connection` becomes; NULL: there is none */

    size_t work; /* values left */
    size_t depth;
    mcp_vschema_link_t chain[MCP_VSCHEMA_CHAIN];
    size_t chain_count;
    /* Settling references: definitions that the result needs. */
    json_t *definitions[2]; /* "$defs", "definitions" */
    json_t *moved;          /* address of what was moved, to the reference to it now */
    json_t *queue;          /* definitions not yet settled */
    mcp_wire_status_t status;
    const char *why;
} mcp_vschema_run_t;

#define MCP_VSCHEMA_CHOICE "connection"

/* How a keyword holds schemas. */
typedef enum mcp_vschema_form {
    MCP_VSCHEMA_UNKNOWN, /* not a keyword */
    MCP_VSCHEMA_DATA,
    MCP_VSCHEMA_ONE,
    MCP_VSCHEMA_LIST,
    MCP_VSCHEMA_ITEMS, /* one, or a list of them */
    MCP_VSCHEMA_MAP,
    MCP_VSCHEMA_DEPENDENCIES /* a map to schemas and to lists of names */
} mcp_vschema_form_t;

/* view_schema.c */

/* jansson's iterators want a mutable object though they change nothing. */
json_t *mcp_vschema_iterable(const json_t *value);
/* Notes the first failure; always -1. */
int mcp_vschema_fail(mcp_vschema_run_t *run, mcp_wire_status_t status, const char *why);
/* Takes `values` of the work that is left; 0, or -1. */
int mcp_vschema_spend(mcp_vschema_run_t *run, size_t values);
/* A deep copy, paid for; NULL: failed. */
json_t *mcp_vschema_copy(mcp_vschema_run_t *run, const json_t *value);
/* Sets or appends what may be NULL after a failure (or is short of memory then); 0, or -1. */
int mcp_vschema_set(mcp_vschema_run_t *run, json_t *object, const char *key, json_t *value);
int mcp_vschema_append(mcp_vschema_run_t *run, json_t *array, json_t *value);

/* Begins a run over a schema; 0, or -1. */
int mcp_vschema_start(mcp_vschema_run_t *run, const json_t *schema);
/* A name or pointer as a place. MCP_E_FIELD, MCP_E_SIZE. */
mcp_wire_status_t mcp_vschema_place(const char *key, mcp_vschema_place_t *ret);
/* 1 if a frozen place is in a value that stands at the spot; dropping them says if one was. */
int mcp_vschema_has_frozen(const mcp_vschema_run_t *run, const json_t *value,
                           mcp_vschema_spot_t spot);
int mcp_vschema_drop_frozen(const mcp_vschema_run_t *run, json_t *value, mcp_vschema_spot_t spot);
/* 1 if the value has the word as a member's name or a string somewhere. */
int mcp_vschema_mentions(mcp_vschema_run_t *run, const json_t *value, const char *word);
/* The run's whole document, stripped and settled; NULL: failed. */
json_t *mcp_vschema_strip_root(mcp_vschema_run_t *run);

/* view_schema_known.c */

#define MCP_VSCHEMA_CROWD 512 /* schemas that apply to one value; more are not looked at */

/* The schemas that apply to one value. */
typedef struct mcp_vschema_crowd {
    struct {
        const json_t *schema;
        int is_choice; /* one of several, or under a condition */
    } members[MCP_VSCHEMA_CROWD];
    size_t count;
    size_t choices;
    size_t fitting; /* choices that take objects */
    int is_closed;  /* what must hold takes no object */
} mcp_vschema_crowd_t;

/* Adds a schema, once; NULL is nobody. */
void mcp_vschema_join(mcp_vschema_crowd_t *crowd, const json_t *schema, int is_choice);
/* Adds those who come along with a schema. */
void mcp_vschema_follow(mcp_vschema_run_t *run, mcp_vschema_crowd_t *crowd, const json_t *schema,
                        int is_choice);
/* Completes the crowd with all who come along; those that take no object leave it. */
void mcp_vschema_gather(mcp_vschema_run_t *run, mcp_vschema_crowd_t *crowd);

/* view_schema_strip.c */

#define MCP_VSCHEMA_TOUCHED 1u /* the result says something else than the schema */
#define MCP_VSCHEMA_LOOSE 2u   /* it may take more than the schema, under a place's presence */

/* The schema, applied at spot, without the places there; *touched collects flags. A new reference,
 * or NULL after a failure. */
json_t *mcp_vschema_strip(mcp_vschema_run_t *run, const json_t *schema, mcp_vschema_spot_t spot,
                          unsigned *touched);

/* What is said of a member at a spot. */
#define MCP_VSCHEMA_IS_FROZEN 1u
#define MCP_VSCHEMA_IS_DEFAULT 2u
#define MCP_VSCHEMA_HOLDS_FROZEN 4u /* places below it */
#define MCP_VSCHEMA_HOLDS_DEFAULT 8u
unsigned mcp_vschema_member(const mcp_vschema_run_t *run, mcp_vschema_spot_t spot, const char *name,
                            mcp_vschema_spot_t *below);
/* The different names that have one of the flags at spot, at most `room`; returns how many. */
size_t mcp_vschema_heads(const mcp_vschema_run_t *run, mcp_vschema_spot_t spot, unsigned flags,
                         const char **names, size_t room);
#define MCP_VSCHEMA_HEADS (2 * (size_t)MCP_VIEW_SCHEMA_KEYS)

/* An object with none of a schema's frozen or default members would not do: it demands another. */
int mcp_vschema_demands(mcp_vschema_run_t *run, const json_t *schema);

/* view_schema_keys.c */

/* One schema object at work. */
typedef struct mcp_vschema_node {
    mcp_vschema_run_t *run;
    const json_t *schema;
    mcp_vschema_spot_t spot;
    json_t *out;
    json_t *also;     /* schemas that join allOf */
    json_t *promoted; /* names that are required now */
    unsigned touched;
} mcp_vschema_node_t;

/* Takes one keyword of node->schema over into node->out; 0, or -1. */
int mcp_vschema_take(mcp_vschema_node_t *node, const char *key, const json_t *value);
/* Notes that the result says something else; looser than the schema where places were taken out. */
void mcp_vschema_touch(mcp_vschema_node_t *node);
/* Takes a keyword over as it is; 0, or -1. */
int mcp_vschema_take_copy(mcp_vschema_node_t *node, const char *key, const json_t *value);
/* What the name is called in the result: another, where `connection` is given away. */
const char *mcp_vschema_renamed(const mcp_vschema_node_t *node, const char *name);
/* A member's schema, applied below: with narrowed type if frozen places are in it. */
json_t *mcp_vschema_strip_member(mcp_vschema_node_t *node, const json_t *schema,
                                 mcp_vschema_spot_t below);

/* view_schema_names.c */

/* The schema of names without the frozen ones, which the caller need not send: his list of names
 * gets shorter; what says it in other words goes as a whole, and the original decides. 0, or -1. */
int mcp_vschema_take_allowed(mcp_vschema_node_t *node, const char *key, const json_t *value);
/* Patterns without the frozen names that they list; 0, or -1. */
int mcp_vschema_take_patterns(mcp_vschema_node_t *node, const char *key, const json_t *value);

/* view_schema_refs.c */

mcp_vschema_form_t mcp_vschema_form(const mcp_vschema_run_t *run, const char *keyword);
/* A subschema that is a resource of its own, which references can't be moved out of or into. */
int mcp_vschema_is_resource(const mcp_vschema_run_t *run, const json_t *schema);
/* Where in the original a reference leads, or NULL. *ret_home (may be NULL): 0 or 1 if that is a
 * definition of the root under "$defs" or "definitions", whose name *ret_name gets (the caller
 * frees it); else -1. */
const json_t *mcp_vschema_resolve(mcp_vschema_run_t *run, const char *reference, int *ret_home,
                                  char **ret_name);
/* Makes each reference in out, a stripped root, lead to what it led to in the original: 0, or -1. */
int mcp_vschema_settle(mcp_vschema_run_t *run, json_t *out);

#endif
