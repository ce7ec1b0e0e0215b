/* Applications that could be connected: see pd_browse.h. */
#include "pd_browse.h"

#include <stdlib.h>
#include <string.h>

static void note_connected(const apr_array_header_t *connections, apr_hash_t *seen)
{
    int i;

    for (i = 0; connections != NULL && i < connections->nelts; i++) {
        const pd_connection_t *connection = APR_ARRAY_IDX(connections, i, const pd_connection_t *);

        apr_hash_set(seen, connection->connector->id, APR_HASH_KEY_STRING, connection);
    }
}

static int by_slug(const void *a, const void *b)
{
    return strcmp((*(const pd_connector_t *const *)a)->slug, (*(const pd_connector_t *const *)b)->slug);
}

json_t *pd_browse_applications(const pd_snapshot_t *snapshot, const pd_subject_t *subject, apr_pool_t *pool)
{
    apr_array_header_t *absent = apr_array_make(pool, 16, sizeof(const pd_connector_t *));
    apr_hash_t *connected = apr_hash_make(pool);
    json_t *names = json_array();
    apr_hash_index_t *at;
    int i;

    note_connected(snapshot->ground->shared, connected);
    note_connected(pd_snapshot_own(snapshot, subject->member_id), connected);
    for (at = apr_hash_first(pool, snapshot->ground->connectors); at != NULL; at = apr_hash_next(at)) {
        const pd_connector_t *connector = apr_hash_this_val(at);

        if (apr_hash_get(connected, connector->id, APR_HASH_KEY_STRING) == NULL &&
            pd_reach_connector(snapshot, subject, connector, pool, NULL) == PD_REACH_OK) {
            APR_ARRAY_PUSH(absent, const pd_connector_t *) = connector;
        }
    }
    qsort(absent->elts, (size_t)absent->nelts, sizeof(const pd_connector_t *), by_slug);
    for (i = 0; i < absent->nelts; i++) {
        const pd_connector_t *connector = APR_ARRAY_IDX(absent, i, const pd_connector_t *);

        if (json_array_append_new(names, json_pack("[s,s]", connector->label, connector->slug)) != 0) {
            json_decref(names);
            return NULL;
        }
    }
    return json_pack("{s:o}", "applications", names);
}
