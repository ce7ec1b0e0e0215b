/* Private to the schema rooms: the compiled tree, the state of one validation, and what
 * the files of the room offer each other.
 *
 *   mcp_schema.c           the two public calls
 *   mcp_schema_compile.c   document to tree: nodes
 *   mcp_schema_keywords.c  document to tree: the table of keywords and their forms
 *   mcp_schema_refs.c      resources, anchors, references
 *   mcp_schema_uri.c       URI resolution
 *   mcp_schema_eval.c      evaluation: nodes, and applicators to the same instance
 *   mcp_schema_children.c  evaluation: applicators to members and items
 *   mcp_schema_assert.c    evaluation: assertions
 *   mcp_schema_value.c     numbers, equality, uniqueness
 *   mcp_schema_text.c      messages
 */
#ifndef MCP_SCHEMA_PRIVATE_H
#define MCP_SCHEMA_PRIVATE_H

#include <apr_hash.h>
#include <apr_pools.h>
#include <apr_tables.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "mcp_regex.h"
#include "mcp_schema.h"

/* --- the compiled tree ------------------------------------------------------ */

typedef struct mcp_schema_node mcp_schema_node_t;
typedef struct mcp_schema_keyword mcp_schema_keyword_t;
typedef struct mcp_schema_resource mcp_schema_resource_t;
typedef struct mcp_schema_run mcp_schema_run_t;
typedef struct mcp_schema_spot mcp_schema_spot_t;

typedef enum mcp_schema_verdict {
    MCP_SCHEMA_VALID,
    MCP_SCHEMA_INVALID,
    MCP_SCHEMA_LIMIT,
    MCP_SCHEMA_NOMEM
} mcp_schema_verdict_t;

typedef mcp_schema_verdict_t mcp_schema_eval_t(mcp_schema_run_t *run,
                                               const mcp_schema_spot_t *spot,
                                               const mcp_schema_keyword_t *keyword);

/* A number n = digits * 10^exponent, exactly as its shortest decimal text says. */
typedef struct mcp_schema_decimal {
    uint64_t digits;
    int exponent;
} mcp_schema_decimal_t;

/* An entry of a keyword whose value is a map. */
typedef struct mcp_schema_member {
    const char *name;
    const mcp_regex_t *regex;      /* patternProperties */
    const mcp_schema_node_t *node; /* or NULL: names are required */
    const char *const *names;
    size_t n_names;
} mcp_schema_member_t;

/* Which members are used depends on the keyword, as mcp_schema_keywords.c's parser for it
 * says.  JSON values and strings point into the schema's own copy. */
struct mcp_schema_keyword {
    const char *name;
    mcp_schema_eval_t *eval;
    const json_t *value;
    const mcp_schema_node_t *node; /* one subschema; the target of a reference */
    const mcp_schema_node_t *then_node;
    const mcp_schema_node_t *else_node;
    const mcp_schema_node_t *const *nodes; /* n subschemas */
    const mcp_schema_member_t *members;    /* n */
    const char *const *names;              /* n */
    size_t n;
    size_t least; /* counts: minItems, maxLength, minContains and the like */
    size_t most;
    unsigned types;
    const mcp_regex_t *regex;
    mcp_schema_decimal_t divisor;
    const json_t *siblings;               /* additionalProperties: `properties` beside it */
    const mcp_schema_keyword_t *patterns; /* additionalProperties: `patternProperties` */
    const char *dynamic;                  /* $dynamicRef: the anchor to look for in the scope */
};

struct mcp_schema_node {
    int boolean;                           /* 1 true, 0 false, -1 an object */
    const mcp_schema_keyword_t *keywords; /* in the order of evaluation */
    size_t n_keywords;
    mcp_schema_resource_t *resource; /* not changed any more once compiled */
    bool has_unevaluated;
};

/* A $dynamicAnchor of a resource. */
typedef struct mcp_schema_dynamic {
    const char *name;
    const mcp_schema_node_t *node;
    const struct mcp_schema_dynamic *next;
} mcp_schema_dynamic_t;

typedef enum mcp_schema_dialect {
    MCP_SCHEMA_2020 = 1,
    MCP_SCHEMA_07 = 2
} mcp_schema_dialect_t;

struct mcp_schema_resource {
    const char *uri; /* absolute where its ids are, without fragment */
    mcp_schema_dialect_t dialect;
    const mcp_schema_dynamic_t *dynamics;
    /* While compiling only: */
    const json_t *json;
    apr_hash_t *anchors; /* name to mcp_schema_anchor_t */
    bool is_ambiguous;   /* a second one has the same URI */
};

struct mcp_schema {
    json_t *json; /* own copy; names and values of the tree point into it */
    const mcp_schema_node_t *root;
};

extern const mcp_schema_node_t mcp_schema_true;
extern const mcp_schema_node_t mcp_schema_false;

/* --- one validation --------------------------------------------------------- */

/* Where in a document: a list on the stack, from the leaf up. */
typedef struct mcp_schema_path {
    const struct mcp_schema_path *parent;
    const char *key; /* or NULL: an index */
    size_t index;
} mcp_schema_path_t;

/* The dynamic scope: resources entered, from the innermost out. */
typedef struct mcp_schema_scope {
    const struct mcp_schema_scope *parent;
    const mcp_schema_resource_t *resource;
} mcp_schema_scope_t;

/* Which members or items of one instance were evaluated, in its own order. */
typedef struct mcp_schema_track {
    unsigned char *marks;
    size_t n;
} mcp_schema_track_t;

/* Budgets are spent in units; a keyword costs MCP_SCHEMA_UNITS, a turn of a cheap loop one
 * or two. */
#define MCP_SCHEMA_UNITS 16u

struct mcp_schema_run {
    uint64_t units;
    uint64_t work; /* of pattern matching */
    unsigned depth;
    unsigned quiet; /* above 0 no message is made */
    mcp_schema_error_t *err;
};

struct mcp_schema_spot {
    const json_t *instance;
    const mcp_schema_path_t *path;
    const mcp_schema_scope_t *scope;
    mcp_schema_track_t *track; /* NULL: nobody asks what was evaluated */
};

/* Takes units; false when there are not so many (then none are left). */
static inline bool mcp_schema_spend(mcp_schema_run_t *run, uint64_t units)
{
    if (run->units < units) {
        run->units = 0;
        return false;
    }
    run->units -= units;
    return true;
}

/* mcp_schema_eval.c.  via: the keyword that applies the node, named where it is `false`. */
mcp_schema_verdict_t mcp_schema_eval(mcp_schema_run_t *run, const mcp_schema_node_t *node,
                                     const mcp_schema_spot_t *spot, const char *via);
mcp_schema_eval_t mcp_schema_eval_ref, mcp_schema_eval_dynamic, mcp_schema_eval_all,
    mcp_schema_eval_any, mcp_schema_eval_one, mcp_schema_eval_not, mcp_schema_eval_if,
    mcp_schema_eval_dependent;

/* mcp_schema_children.c */
mcp_schema_eval_t mcp_schema_eval_properties, mcp_schema_eval_patterns, mcp_schema_eval_additional,
    mcp_schema_eval_names, mcp_schema_eval_prefix, mcp_schema_eval_rest,
    mcp_schema_eval_contains, mcp_schema_eval_unevaluated_properties,
    mcp_schema_eval_unevaluated_items;

/* mcp_schema_assert.c */
mcp_schema_eval_t mcp_schema_eval_type, mcp_schema_eval_const, mcp_schema_eval_enum,
    mcp_schema_eval_bound, mcp_schema_eval_multiple, mcp_schema_eval_length,
    mcp_schema_eval_pattern, mcp_schema_eval_items, mcp_schema_eval_unique,
    mcp_schema_eval_members, mcp_schema_eval_required;

/* Fails when spot lacks one of the names; beside names the property that asks for them, or
 * is NULL. */
mcp_schema_verdict_t mcp_schema_require(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                        const char *rule, const char *beside,
                                        const char *const *names, size_t n);

/* Types of `type` as bits; their names in this order. */
#define MCP_SCHEMA_TYPES 7u
extern const char *const mcp_schema_type_names[MCP_SCHEMA_TYPES];

/* mcp_schema_value.c.  Members of a constant object, in order: jansson's iterators ask for
 * a changeable one, though they change nothing. */
void *mcp_schema_first(const json_t *object);
void *mcp_schema_next(const json_t *object, void *member);

/* Below, at or above 0 as a is less than, equal to or greater than b: as numbers, whatever
 * their form. */
int mcp_schema_compare(const json_t *a, const json_t *b);
/* A number without a fraction. */
bool mcp_schema_is_integer(const json_t *json);
mcp_schema_decimal_t mcp_schema_decimal(const json_t *number);
/* a / b is an integer; b isn't 0. */
bool mcp_schema_is_multiple(mcp_schema_decimal_t a, mcp_schema_decimal_t b);
/* VALID equal, INVALID different. */
mcp_schema_verdict_t mcp_schema_equal(mcp_schema_run_t *run, const json_t *a, const json_t *b);
/* INVALID: items *first and *second are equal. */
mcp_schema_verdict_t mcp_schema_unique(mcp_schema_run_t *run, const json_t *array, size_t *first,
                                       size_t *second);

/* --- messages: mcp_schema_text.c -------------------------------------------- */

/* A text that is cut with "..." where its buffer ends. */
typedef struct mcp_schema_text {
    char *buffer;
    size_t room;
    size_t used;
    bool is_cut;
} mcp_schema_text_t;

#define MCP_SCHEMA_LISTED 10u /* names or values one message lists */

void mcp_schema_text_start(mcp_schema_text_t *text, char *buffer, size_t room);
void mcp_schema_text_add(mcp_schema_text_t *text, const char *add);
/* In quotes, control characters escaped, cut where long. */
void mcp_schema_text_quote(mcp_schema_text_t *text, const char *name);
/* A value of the schema as compact JSON, cut where long. */
void mcp_schema_text_json(mcp_schema_text_t *text, const json_t *value);
void mcp_schema_text_count(mcp_schema_text_t *text, size_t count);
void mcp_schema_text_path(mcp_schema_text_t *text, const mcp_schema_path_t *path);

/* Fills *err but for its message, which the returned text then takes. */
mcp_schema_text_t mcp_schema_error_start(mcp_schema_error_t *err, const mcp_schema_path_t *path,
                                         const char *rule);

/* A message is wanted. */
static inline bool mcp_schema_is_loud(const mcp_schema_run_t *run)
{
    return run->quiet == 0;
}

/* Writes a fixed message unless the run is quiet; always INVALID. */
mcp_schema_verdict_t mcp_schema_fail(mcp_schema_run_t *run, const mcp_schema_path_t *path,
                                     const char *rule, const char *message);

/* --- compiling -------------------------------------------------------------- */

typedef struct mcp_schema_anchor {
    const mcp_schema_node_t *node;
    bool is_dynamic;
    bool is_ambiguous;
} mcp_schema_anchor_t;

/* A reference that waits until all of the document is known. */
typedef struct mcp_schema_pending {
    mcp_schema_keyword_t *keyword;
    const mcp_schema_node_t *node; /* that has it */
    mcp_schema_resource_t *resource;
    const char *uri;
    const json_t *value;           /* the reference as it stands in the document */
    size_t mark;                   /* of the search for endless references */
} mcp_schema_pending_t;

typedef struct mcp_schema_compiler {
    apr_pool_t *pool; /* of the tree */
    apr_pool_t *temp; /* of the compilation */
    apr_pool_t *scratch; /* of one reference */
    const json_t *root;
    apr_hash_t *nodes;           /* JSON object of the copy to mcp_schema_node_t */
    apr_hash_t *resources;       /* URI to mcp_schema_resource_t */
    apr_array_header_t *pending; /* of mcp_schema_pending_t * */
    size_t n_nodes;
    size_t pattern_bytes; /* of all compiled patterns */
    mcp_wire_status_t status;
    mcp_schema_error_t *err;
} mcp_schema_compiler_t;

/* What the keywords of one schema object are parsed with. */
typedef struct mcp_schema_place {
    const json_t *schema;
    const json_t *value; /* of the keyword */
    mcp_schema_node_t *node;
    mcp_schema_resource_t *resource;
    const mcp_schema_path_t *path; /* of the keyword */
} mcp_schema_place_t;

/* mcp_schema_compile.c.  Notes why the schema is refused (name, if any, is put behind the
 * message in quotes); always false. */
bool mcp_schema_refuse(mcp_schema_compiler_t *c, const mcp_schema_path_t *path, const char *rule,
                       const char *message, const char *name);

/* The node of a JSON value that is a schema; NULL: refused.  Recurses as deep as the JSON,
 * whose depth was checked before. */
const mcp_schema_node_t *mcp_schema_node(mcp_schema_compiler_t *c, const json_t *json,
                                         mcp_schema_resource_t *resource,
                                         const mcp_schema_path_t *path);

/* mcp_schema_keywords.c: fills the keywords of a node. */
bool mcp_schema_keywords(mcp_schema_compiler_t *c, const json_t *json, mcp_schema_node_t *node,
                         const mcp_schema_path_t *path);

/* mcp_schema_refs.c.  The resource that a schema object belongs to: its own, if it has an
 * identifier.  parent NULL: the document.  NULL: refused. */
mcp_schema_resource_t *mcp_schema_enter(mcp_schema_compiler_t *c, const json_t *json,
                                        mcp_schema_resource_t *parent,
                                        const mcp_schema_path_t *path);
/* Notes the anchors of a node. */
bool mcp_schema_anchors(mcp_schema_compiler_t *c, const json_t *json, mcp_schema_node_t *node,
                        const mcp_schema_path_t *path);
/* Parses $ref and $dynamicRef. */
bool mcp_schema_wait(mcp_schema_compiler_t *c, const mcp_schema_place_t *place,
                     mcp_schema_keyword_t *keyword);
/* Finds the targets of all references, and endless ones. */
bool mcp_schema_resolve(mcp_schema_compiler_t *c);

/* mcp_schema_uri.c.  RFC 3986 5.2, without the fragment of either; NULL: too long. */
const char *mcp_schema_uri_resolve(apr_pool_t *pool, const char *base, const char *reference);
/* The fragment without its '#', percent-decoded; "" without one, NULL: malformed. */
const char *mcp_schema_uri_fragment(apr_pool_t *pool, const char *reference);

#endif
