/* Documents from the web, for `policyctl … --fetch`: through the module's outbound room, so under its rules. policyd itself fetches nothing. */
#ifndef POLICYCTL_FETCH_H
#define POLICYCTL_FETCH_H

#include <stddef.h>

#include <apr_pools.h>
#include <apr_tables.h>

#define CTL_FETCH_BYTES   (64u * 1024 * 1024)
#define CTL_FETCH_SECONDS 60

/* Gets a document: https only, or what `allow` (of const char * origins; NULL: none) names, which may be private too; addresses are judged as
 * they are dialled; at most 5 redirects, each to a place of the same kind; no credentials, no cookies, no proxy of the environment.
 * *ret in pool, NUL-terminated. 0, or -1 with why (of `size` bytes), which says what to change. One thread. */
int ctl_fetch(const char *url, const apr_array_header_t *allow, apr_pool_t *pool, const char **ret, size_t *ret_bytes,
              char *why, size_t size);

#endif
