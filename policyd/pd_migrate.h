/* The schemas of policyd's databases as numbered migrations, and the one way a database is opened
 * by its owner: file, mode, version, integrity, migrations.  At start-up, before threads. */
#ifndef PD_MIGRATE_H
#define PD_MIGRATE_H

#include "pd_sqlite.h"

typedef struct pd_schema {
    const char *file;            /* name inside the state directory */
    uint32_t application_id;     /* in the file's header: a foreign database is never touched */
    pd_sqlite_mode_t mode;       /* of the owner's connection */
    const char *const *steps;    /* step i brings version i to i + 1 */
    size_t step_count;
} pd_schema_t;

extern const pd_schema_t pd_schema_policy;
extern const pd_schema_t pd_schema_trail;
extern const pd_schema_t pd_schema_audit;

/* Opens (or makes) the schema's file in dir with file mode and group (-1: any) and migrates it
 * forward, each step in a transaction of its own. Refused, with the remedy in `why`: a newer
 * version (PD_E_NEWER), a damaged file or one of another application (PD_E_CORRUPT), one that
 * cannot be written (PD_E_IO) or is locked (PD_E_LOCKED). */
pd_status_t pd_migrate_open(const pd_schema_t *schema, const char *dir, unsigned file_mode, int gid,
                            pd_sqlite_t **ret, char *why, size_t size);

#endif
