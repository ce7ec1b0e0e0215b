/* Blobs by digest, and the handler of blob.get: see pd_blob.h. */
#include "pd_blob.h"

#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>

#include "../proto/mcp_body.h"
#include "pd_policy.h"
#include "pd_lexicon.h"
#include "pd_routes.h"

typedef struct blob {
    char digest[MCP_DIGEST_HEX + 1];
    pd_boot_t hold; /* kept at least until then */
    size_t count;
    unsigned char bytes[];
} blob_t;

struct pd_blobs {
    apr_pool_t *pool;
    apr_hash_t *table; /* digest -> blob_t, each malloc'd */
};

pd_status_t pd_blobs_new(pd_blobs_t **ret)
{
    pd_blobs_t *blobs = calloc(1, sizeof(*blobs));

    if (blobs == NULL || apr_pool_create(&blobs->pool, NULL) != APR_SUCCESS) {
        free(blobs);
        return PD_E_NOMEM;
    }
    blobs->table = apr_hash_make(blobs->pool);
    *ret = blobs;
    return PD_OK;
}

void pd_blobs_free(pd_blobs_t **blobs)
{
    apr_hash_index_t *i;

    if (*blobs == NULL) {
        return;
    }
    for (i = apr_hash_first((*blobs)->pool, (*blobs)->table); i != NULL; i = apr_hash_next(i)) {
        free(apr_hash_this_val(i));
    }
    apr_pool_destroy((*blobs)->pool);
    free(*blobs);
    *blobs = NULL;
}

int pd_blobs_touch_for(pd_blobs_t *blobs, const char *digest, int64_t more_ms)
{
    blob_t *blob = apr_hash_get(blobs->table, digest, MCP_DIGEST_HEX);
    pd_boot_t hold;

    if (blob == NULL) {
        return 0;
    }
    hold = pd_boot_in(MCP_BLOB_HOLD_S * 1000 + more_ms);
    if (blob->hold.us < hold.us) { /* somebody may count on a longer one */
        blob->hold = hold;
    }
    return 1;
}

int pd_blobs_touch(pd_blobs_t *blobs, const char *digest)
{
    return pd_blobs_touch_for(blobs, digest, 0);
}

pd_status_t pd_blobs_put(pd_blobs_t *blobs, const char *digest, const void *bytes, size_t count)
{
    return pd_blobs_put_for(blobs, digest, bytes, count, 0);
}

pd_status_t pd_blobs_put_for(pd_blobs_t *blobs, const char *digest, const void *bytes, size_t count,
                             int64_t more_ms)
{
    blob_t *blob;

    if (pd_blobs_touch_for(blobs, digest, more_ms)) {
        return PD_OK;
    }
    if (count > MCP_MAX_BLOB_BYTES) {
        return PD_E_FULL;
    }
    blob = malloc(sizeof(*blob) + count);
    if (blob == NULL) {
        return PD_E_NOMEM;
    }
    memcpy(blob->digest, digest, sizeof(blob->digest));
    blob->hold = pd_boot_in(MCP_BLOB_HOLD_S * 1000 + more_ms);
    blob->count = count;
    if (count > 0) { /* empty bytes may have no address */
        memcpy(blob->bytes, bytes, count);
    }
    apr_hash_set(blobs->table, blob->digest, MCP_DIGEST_HEX, blob);
    return PD_OK;
}

void pd_blobs_tick(pd_blobs_t *blobs)
{
    int64_t now = pd_boot_now().us;
    apr_hash_index_t *i;

    /* deleting the current entry while iterating is allowed by apr_hash */
    for (i = apr_hash_first(NULL, blobs->table); i != NULL; i = apr_hash_next(i)) {
        blob_t *blob = apr_hash_this_val(i);

        if (blob->hold.us < now) {
            apr_hash_set(blobs->table, blob->digest, MCP_DIGEST_HEX, NULL);
            free(blob);
        }
    }
}

void pd_on_blob_get(pd_ask_t *ask)
{
    const char *digest = mcp_json_str(ask->body, "digest");
    size_t offset = (size_t)mcp_json_int(ask->body, "offset", 0);
    const blob_t *blob =
        apr_hash_get(ask->core->policy->blobs->table, digest, MCP_DIGEST_HEX);
    const void *bytes = blob != NULL ? blob->bytes : NULL;
    size_t count = blob != NULL ? blob->count : 0;
    size_t left;

    if ((blob == NULL && !pd_routes_blob(digest, &bytes, &count) &&
         !pd_lexicon_blob(digest, &bytes, &count)) || offset > count) {
        pd_ask_refuse(ask, MCP_CODE_NOT_FOUND, "no such blob", NULL, NULL);
        return;
    }
    if (blob != NULL) {
        (void)pd_blobs_touch(ask->core->policy->blobs, digest); /* it is there */
    }
    left = count - offset;
    pd_ask_reply_raw(ask, (const char *)bytes + offset, left > MCP_MAX_BLOB_PART ? MCP_MAX_BLOB_PART : left,
                     left > MCP_MAX_BLOB_PART);
}
