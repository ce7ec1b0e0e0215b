/* Numbered migrations.  A step that has been released is never edited: a change is a new step. */
#include "pd_migrate.h"

#include <inttypes.h>
#include <stdio.h>

/* Long enough for a checkpoint's restart, short enough for a caller's budget. */
#define OWNER_BUSY_MS 2000

/* policy.db.  `policy` is one row: the revision in force and the highest revision of which `change`
 * no longer holds every row. */
static const char *const policy_steps[] = {
    "CREATE TABLE policy ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " revision INTEGER NOT NULL,"
    " floor INTEGER NOT NULL);"
    "INSERT INTO policy VALUES (1, 0, 0);"
    "CREATE TABLE object ("
    " n INTEGER PRIMARY KEY,"
    " kind TEXT NOT NULL,"
    " id TEXT NOT NULL,"
    " owner TEXT,"
    " revision INTEGER NOT NULL,"
    " created_us INTEGER NOT NULL,"
    " updated_us INTEGER NOT NULL,"
    " doc TEXT NOT NULL,"
    " UNIQUE (kind, id));"
    "CREATE INDEX object_owner ON object (kind, owner, id) WHERE owner IS NOT NULL;"
    "CREATE TABLE key ("
    " kind TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " n INTEGER NOT NULL REFERENCES object (n) ON DELETE CASCADE,"
    " PRIMARY KEY (kind, key)) WITHOUT ROWID;"
    "CREATE INDEX key_object ON key (n);"
    "CREATE TABLE secret ("
    " n INTEGER PRIMARY KEY REFERENCES object (n) ON DELETE CASCADE,"
    " sealed BLOB NOT NULL);"
    "CREATE TABLE revision ("
    " revision INTEGER PRIMARY KEY,"
    " time_us INTEGER NOT NULL,"
    " audit_id TEXT);"
    "CREATE INDEX revision_audit ON revision (audit_id) WHERE audit_id IS NOT NULL;"
    "CREATE TABLE change ("
    " n INTEGER PRIMARY KEY,"
    " revision INTEGER NOT NULL,"
    " kind TEXT NOT NULL,"
    " id TEXT NOT NULL,"
    " UNIQUE (revision, kind, id));",
};

/* trail.db.  record_end makes an end unique for its begin and one it supersedes; ids of nothing are
 * NULL, so that a lone end or a record without a note takes no part in it. */
static const char *const trail_steps[] = {
    "CREATE TABLE chain ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " number INTEGER NOT NULL);"
    "CREATE TABLE record ("
    " seq INTEGER PRIMARY KEY,"
    " kind INTEGER NOT NULL,"
    " begin_seq INTEGER,"
    " supersedes INTEGER,"
    " time_us INTEGER NOT NULL,"
    " member_id TEXT, role TEXT, grant_id TEXT, client TEXT, actor TEXT, surface TEXT,"
    " operation TEXT, tool TEXT, via TEXT, connector TEXT, connection TEXT, connection_id TEXT,"
    " classification TEXT, approved TEXT, arg_names TEXT, child TEXT, trace_id TEXT,"
    " outcome TEXT, error_code TEXT, detail TEXT, note_id TEXT,"
    " arg_count INTEGER, arg_unknown INTEGER, deadline_ms INTEGER, upstream_status INTEGER,"
    " duration_us INTEGER, request_bytes INTEGER, response_bytes INTEGER, redactions INTEGER,"
    " revision INTEGER);"
    "CREATE UNIQUE INDEX record_end ON record (begin_seq, ifnull(supersedes, 0))"
    " WHERE begin_seq IS NOT NULL;"
    "CREATE UNIQUE INDEX record_note ON record (note_id) WHERE note_id IS NOT NULL;",
};

/* audit.db is a copy: a later step drops everything but `member` and makes it anew with position 0,
 * whereupon the copy thread fills it from the trail. */
static const char *const audit_steps[] = {
    "CREATE TABLE copied ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " chain INTEGER NOT NULL,"
    " position INTEGER NOT NULL);"
    "INSERT INTO copied VALUES (1, 0, 0);"
    "CREATE TABLE member ("
    " member_id TEXT PRIMARY KEY,"
    " email TEXT COLLATE NOCASE,"
    " name TEXT) WITHOUT ROWID;"
    "CREATE INDEX member_email ON member (email);"
    "CREATE TABLE attempt ("
    " seq INTEGER PRIMARY KEY,"
    " audit_id TEXT NOT NULL,"
    " time TEXT NOT NULL,"
    " time_us INTEGER NOT NULL,"
    " ended_us INTEGER,"
    " member_id TEXT, role TEXT, grant_id TEXT, client TEXT, actor TEXT, surface TEXT,"
    " operation TEXT, tool TEXT, via TEXT, connector TEXT, connection TEXT, connection_id TEXT,"
    " classification TEXT, approved TEXT, arg_names TEXT, arg_count INTEGER, arg_unknown INTEGER,"
    " outcome TEXT NOT NULL, error_code TEXT, upstream_status INTEGER, duration_us INTEGER,"
    " request_bytes INTEGER, response_bytes INTEGER, redactions INTEGER, trace_id TEXT,"
    " revision INTEGER, detail TEXT);"
    "CREATE INDEX attempt_member ON attempt (member_id);"
    "CREATE INDEX attempt_tool ON attempt (tool);"
    "CREATE INDEX attempt_connection ON attempt (connection);"
    "CREATE INDEX attempt_outcome ON attempt (outcome);"
    "CREATE INDEX attempt_time ON attempt (time);"
    "CREATE VIEW audit_trail AS SELECT"
    " a.seq, a.audit_id, a.time, a.time_us, a.ended_us,"
    " coalesce(m.email, a.member_id) AS member, a.member_id, m.name AS member_name,"
    " a.role, a.grant_id, a.client, a.actor, a.surface, a.operation, a.tool, a.via, a.connector,"
    " a.connection, a.connection_id, a.classification, a.approved, a.arg_names, a.arg_count,"
    " a.arg_unknown, a.outcome, a.error_code, a.upstream_status, a.duration_us, a.request_bytes,"
    " a.response_bytes, a.redactions, a.trace_id, a.revision, a.detail"
    " FROM attempt a LEFT JOIN member m ON m.member_id = a.member_id;",
};

#define STEPS(table) table, sizeof(table) / sizeof((table)[0])

/* Application ids: "MCPp", "MCPt", "MCPa". */
const pd_schema_t pd_schema_policy = {"policy.db", 0x4d435070U, PD_SQLITE_WRITE,
                                      STEPS(policy_steps)};
const pd_schema_t pd_schema_trail = {"trail.db", 0x4d435074U, PD_SQLITE_WRITE, STEPS(trail_steps)};
const pd_schema_t pd_schema_audit = {"audit.db", 0x4d435061U, PD_SQLITE_RELAXED,
                                     STEPS(audit_steps)};

static pd_status_t run_step(pd_sqlite_t *db, const pd_schema_t *schema, size_t step)
{
    char marks[96];
    pd_status_t status = pd_sqlite_begin_write(db);

    /* Both numbers are part of the transaction: a crash leaves the step done or not begun. */
    (void)snprintf(marks, sizeof(marks),
                   "PRAGMA application_id=%" PRIu32 ";PRAGMA user_version=%zu",
                   schema->application_id, step + 1); /* two numbers always fit */
    if (status == PD_OK) {
        status = pd_sqlite_exec(db, schema->steps[step]);
    }
    if (status == PD_OK) {
        status = pd_sqlite_exec(db, marks);
    }
    if (status == PD_OK) {
        status = pd_sqlite_commit(db);
    }
    pd_sqlite_rollback(db);
    return status;
}

static pd_status_t judge_header(const pd_schema_t *schema, const char *path,
                                const pd_sqlite_header_t *header, char *why, size_t size)
{
    int is_empty = header->application_id == 0 && header->version == 0 && header->tables == 0;

    if (!is_empty && header->application_id != (int64_t)schema->application_id) {
        return pd_sqlite_why(PD_E_CORRUPT, why, size,
                             "%s is a database of another application; move it away", path);
    }
    if (header->version > (int64_t)schema->step_count) {
        return pd_sqlite_why(PD_E_NEWER, why, size,
                             "%s has schema version %" PRId64 ", this policyd knows up to %zu: "
                             "run the newer policyd, or restore a backup of before the upgrade",
                             path, header->version, schema->step_count);
    }
    if (!is_empty && header->version < 1) {
        return pd_sqlite_why(PD_E_CORRUPT, why, size, "%s has no schema version; restore a backup",
                             path);
    }
    return PD_OK;
}

static pd_status_t bring_forward(const pd_schema_t *schema, pd_sqlite_t *db, const char *path,
                                 char *why, size_t size)
{
    pd_sqlite_header_t header;
    pd_status_t status = pd_sqlite_header(db, &header);
    size_t step;

    if (status == PD_OK) {
        status = judge_header(schema, path, &header, why, size);
        if (status != PD_OK) {
            return status;
        }
        status = pd_sqlite_check(db, path);
    }
    if (status == PD_OK) {
        status = pd_sqlite_wal(db);
    }
    if (status != PD_OK) {
        return pd_sqlite_why(status, why, size,
                             status == PD_E_CORRUPT
                                 ? "%s is damaged (%s); restore it from a backup"
                                 : "%s cannot be used: %s; check owner, mode, directory and space",
                             path, pd_status_text(status));
    }
    for (step = (size_t)header.version; step < schema->step_count; step++) {
        status = run_step(db, schema, step);
        if (status != PD_OK) {
            return pd_sqlite_why(status, why, size, "%s: migration %zu failed: %s", path, step + 1,
                                 pd_status_text(status));
        }
    }
    return PD_OK;
}

pd_status_t pd_migrate_open(const pd_schema_t *schema, const char *dir, unsigned file_mode, int gid,
                            pd_sqlite_t **ret, char *why, size_t size)
{
    char path[PD_SQLITE_PATH_MAX];
    pd_sqlite_t *db = NULL;
    pd_sqlite_header_t header;
    pd_status_t status = pd_sqlite_path(dir, schema->file, path, why, size);

    if (status == PD_OK) {
        status = pd_sqlite_file(path, file_mode, gid, why, size);
    }
    if (status == PD_OK) {
        status = pd_sqlite_open(path, schema->mode, OWNER_BUSY_MS, &db, why, size);
    }
    if (status == PD_OK) {
        status = bring_forward(schema, db, path, why, size);
    }
    /* Any read makes -wal and -shm; SQLite gives them the mode but not always the group. */
    if (status == PD_OK) {
        status = pd_sqlite_header(db, &header);
    }
    if (status == PD_OK) {
        status = pd_sqlite_side_files(path, file_mode, gid, why, size);
    }
    if (status != PD_OK) {
        pd_sqlite_close(&db);
        return status;
    }
    *ret = db;
    return PD_OK;
}
