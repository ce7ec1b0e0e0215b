/* URL templates of operations, compared with each other: which of two is the more specific one, and
 * whether some URL belongs to both.  The worker judges a real URL against all templates of a
 * connector; here, where there is no URL yet, the same order tells a writer of rules what will be
 * refused there.  Case of literals is ignored, as lenient upstreams do.  Pure. */
#ifndef PD_TEMPLATE_H
#define PD_TEMPLATE_H

#include <apr_pools.h>

#include "pd_catalog.h"

typedef struct pd_template pd_template_t;

/* Reads an operation's template into pool; never fails: what has no form matches nothing. */
const pd_template_t *pd_template_read(const pd_operation_t *operation, apr_pool_t *pool);

/* Method and path with the names of placeholders left out and the required query literals in order:
 * equal texts are identical templates. Of the template's pool. */
const char *pd_template_shape(const pd_template_t *a);

/* 1 when a URL can match both (methods are not compared). Literals in the middle of a segment are
 * not looked at, so that a rare 1 is said where there is none. */
int pd_template_overlaps(const pd_template_t *a, const pd_template_t *b);

/* Below, equal to or above 0 as a is less, equally or more specific than b: literals before
 * placeholders, from left to right, a placeholder over several segments last, then the number of
 * required query literals. */
int pd_template_order(const pd_template_t *a, const pd_template_t *b);

#endif
