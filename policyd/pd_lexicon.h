/* The words that searches know: names of applications and ordinary English, from two files that ship with the product, made into one blob at
 * start (PROTOCOL.md, Lexicon).  Immutable afterwards: any thread. */
#ifndef PD_LEXICON_H
#define PD_LEXICON_H

#include <apr_pools.h>

#include "../proto/view_lexicon.h"
#include "pd_err.h"

/* Reads applications.txt and words.txt in `dir`. A file that is missing or malformed is logged and left out: searches then know less. `pool` ends
 * its life. PD_E_NOMEM alone. */
pd_status_t pd_lexicon_load(const char *dir, apr_pool_t *pool);

/* Digest of the blob; NULL before it is made. */
const char *pd_lexicon_digest(void);
/* 1 and the bytes when `digest` names it, else 0. */
int pd_lexicon_blob(const char *digest, const void **bytes, size_t *count);
/* The same, parsed, for searches of this program; NULL before it is made. */
const mcp_view_lexicon_t *pd_lexicon(void);

#endif
