/* Applications that could be connected: see pd_browse.h. */
#include "pd_browse.h"

#include <string.h>

static int is_connected(const apr_array_header_t *own, const pd_connector_t *connector)
{
    int i;

    for (i = 0; own != NULL && i < own->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(own, i, const pd_connection_t *)->connector->id, connector->id) == 0) {
            return 1;
        }
    }
    return 0;
}

json_t *pd_browse_applications(const pd_snapshot_t *snapshot, const pd_subject_t *subject, apr_pool_t *pool)
{
    const apr_array_header_t *unshared = snapshot->ground->unshared;
    const apr_array_header_t *own = pd_snapshot_own(snapshot, subject->member_id);
    json_t *names = json_array();
    int i;

    for (i = 0; i < unshared->nelts; i++) {
        const pd_connector_t *connector = APR_ARRAY_IDX(unshared, i, const pd_connector_t *);

        if (!is_connected(own, connector) &&
            pd_reach_connector(snapshot, subject, connector, pool, NULL) == PD_REACH_OK &&
            json_array_append_new(names, json_pack("[s,s]", connector->label, connector->slug)) != 0) {
            json_decref(names);
            return NULL;
        }
    }
    return json_pack("{s:o}", "applications", names);
}
