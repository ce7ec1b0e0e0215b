/* Names of applications that somebody could connect and has not: what a search must recognise as absent. Any thread that holds the snapshot. */
#ifndef PD_BROWSE_H
#define PD_BROWSE_H

#include <jansson.h>

#include "pd_reach.h"

/* {"applications": [[label, slug], …]} (view_lexicon.h), sorted by slug: connectors that the subject may browse and has no connection on, own
 * or shared. One that is withheld is not among them: a search is no oracle. New reference; NULL: out of memory. */
json_t *pd_browse_applications(const pd_snapshot_t *snapshot, const pd_subject_t *subject, apr_pool_t *pool);

#endif
