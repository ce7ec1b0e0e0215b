/* Immutable bytes by digest (PROTOCOL.md, blob.get). A blob stays for MCP_BLOB_HOLD_S after it was last named in an
 * answer, and as long as a part of the policy in force keeps it. Loop's thread only. */
#ifndef PD_BLOB_H
#define PD_BLOB_H

#include "pd_core.h"

typedef struct pd_blobs pd_blobs_t;

pd_status_t pd_blobs_new(pd_blobs_t **ret);
void pd_blobs_free(pd_blobs_t **blobs);

/* Keeps a copy of the bytes under their digest and names it now; the same bytes again only refresh the hold. */
pd_status_t pd_blobs_put(pd_blobs_t *blobs, const char *digest, const void *bytes, size_t count);
/* The same with a hold that is longer by `more_ms`: until then the caller may name the blob as often as he likes without putting it
 * again. */
pd_status_t pd_blobs_put_for(pd_blobs_t *blobs, const char *digest, const void *bytes, size_t count,
                             int64_t more_ms);
/* Refreshes the hold; 0 when the blob is not there any more (the caller puts it again). */
int pd_blobs_touch(pd_blobs_t *blobs, const char *digest);
int pd_blobs_touch_for(pd_blobs_t *blobs, const char *digest, int64_t more_ms);
/* Drops what is past its hold. */
void pd_blobs_tick(pd_blobs_t *blobs);

#endif
