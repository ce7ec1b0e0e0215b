/* Files that an API description refers to: only within a folder, only what looks like a description. */
#ifndef OAS_FILES_H
#define OAS_FILES_H

#include "oas.h"

typedef struct oas_files oas_files_t;

/* document: path of the first file. root: folder that references may lead into; NULL: the folder above the document's. */
int oas_files_make(const char *document, const char *root, apr_pool_t *pool, oas_files_t **ret, char *why, size_t size);

/* 1 for a file name that ends like a description's: .json, .yaml or .yml. */
int oas_files_is_description(const char *name);

/* An oas_load_fn; baton: oas_files_t *. Reads regular files whose names end in .json, .yaml or .yml, without a part that begins with a dot, below
 * the root after links are followed, at most OAS_MAX_BYTES each. */
int oas_files_load(void *baton, const char *from, const char *target, apr_pool_t *pool, const char **ret_name,
                   const char **ret, size_t *ret_bytes, char *why, size_t size);

#endif
