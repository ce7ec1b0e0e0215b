/* What the rooms of schemas share: oas_schema.c (a whole with its definitions), oas_schema_make.c (one schema), oas_schema_merge.c (allOf). */
#ifndef OAS_SCHEMA_PRIVATE_H
#define OAS_SCHEMA_PRIVATE_H

#include <apr_hash.h>

#include "oas_private.h"

/* A definition that is referred to. */
typedef struct oas_def {
    const char *name;
    oas_at_t at; /* what is defined, resolved */
} oas_def_t;

/* One schema with its definitions on its way. */
typedef struct oas_making {
    oas_doc_t *doc;
    const oas_schema_options_t *options;
    oas_schema_counts_t *counts;
    apr_pool_t *pool;
    apr_hash_t *by_value;     /* address of a definition's value -> oas_def_t * */
    apr_hash_t *by_name;      /* name -> oas_def_t * */
    apr_array_header_t *defs; /* of oas_def_t *, in the order they were met: breadth first */
    size_t work;              /* schemas made so far: allOf of allOf can name the same ones without end */
    int max_depth;            /* levels of objects and lists below which a schema says its type alone */
} oas_making_t;

/* The schema at a place, resolved by nobody yet; depth: levels above it. New reference, NULL out of memory. */
json_t *oas_make(oas_making_t *making, oas_at_t at, int depth);
/* The same of a place whose own `$ref` is to be followed and not kept. */
json_t *oas_make_inline(oas_making_t *making, oas_at_t at, int depth);
/* {"type": T} of what is there, or {}; new reference. */
json_t *oas_make_stub(oas_making_t *making, oas_at_t at);

/* allOf of translated parts (array, borrowed) together with what stands beside it (stolen). New reference. */
json_t *oas_merge_all(const json_t *parts, json_t *beside);
/* Takes names out of `required` that `properties` does not have. */
void oas_tidy_required(json_t *schema);

#endif
