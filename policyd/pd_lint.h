/* What a model would stumble over in a connector file: descriptions that are missing, short or doubled, arguments without a type, names that look
 * alike, operations that send without saying so, schemas that cost more than the task. Warnings only: nothing is refused for them. Pure. */
#ifndef PD_LINT_H
#define PD_LINT_H

#include <apr_pools.h>
#include <jansson.h>

#define PD_LINT_SHORT 20          /* characters of a description below which it says little */
#define PD_LINT_SCHEMA (32u * 1024) /* bytes of an operation's parameters and body above which they are told */

/* Appends {"connector": slug, "operation": id, "rule": word, "message": text} for each finding, in the order of the operations, to `findings`. file: as
 * pd_catalog_check() takes it or as it makes it; parts of another form are passed over. Rules: no-description, short-description,
 * same-description, untyped-argument, look-alike, sends-untagged, large-schema. Time: in the order of n log n. */
void pd_lint(const json_t *file, apr_pool_t *pool, json_t *findings);

#endif
