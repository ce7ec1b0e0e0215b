/* The REST door's route table and its OpenAPI description, both made from the registry once, at
 * start: immutable bytes named by their digest, which hello tells and blob.get answers for as long
 * as this policyd runs (PROTOCOL.md, Blobs). */
#ifndef PD_ROUTES_H
#define PD_ROUTES_H

#include <apr_pools.h>

#include "pd_err.h"

/* Makes both; after pd_ops_init and before threads. PD_E_INVALID when a row has no sound route: it
 * is logged. `pool` ends their life. A second call replaces the first. */
pd_status_t pd_routes_make(apr_pool_t *pool);

/* Digest of the table and of openapi.json; NULL before they are made. */
const char *pd_routes_table_digest(void);
const char *pd_routes_openapi_digest(void);

/* 1 and the bytes when `digest` names one of the two, else 0. Any thread. */
int pd_routes_blob(const char *digest, const void **bytes, size_t *count);

#endif
