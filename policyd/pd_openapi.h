/* The OpenAPI 3.1 description of the REST door: from the registry and the route table, without any
 * text of its own about single operations. Pure. */
#ifndef PD_OPENAPI_H
#define PD_OPENAPI_H

#include <jansson.h>

/* rows: as pd_ops_describe() gives them; routes: the table's rows in the same order. The document
 * begins with "openapi" and "servers", whose one URL is PD_OPENAPI_BASE. New reference; NULL when
 * out of memory. */
json_t *pd_openapi_make(const json_t *rows, const json_t *routes);

#define PD_OPENAPI_BASE "/api/v1"

#endif
