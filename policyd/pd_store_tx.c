/* How a unit of work changes the policy store: objects, keys, secrets, revisions.  Each change
 * looks first and writes then, so that one that is refused has changed nothing; one that fails in
 * between marks the unit, which then cannot commit. */
#include "pd_store.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "pd_store_private.h"

#define DUMP_FLAGS (JSON_COMPACT | JSON_ENCODE_ANY)

static int is_text(const char *text, size_t max)
{
    size_t length;

    if (text == NULL) {
        return 0;
    }
    length = strnlen(text, max + 1);
    return length > 0 && length <= max;
}

static int is_name(const char *kind, const char *id)
{
    return is_text(kind, PD_STORE_KIND_MAX) && is_text(id, PD_STORE_ID_MAX);
}

/* A write that should have worked: whatever it was, the unit is half done. CONFLICT cannot be the
 * caller's here, since the keys were looked at before. */
static pd_status_t half_done(pd_tx_t *tx, pd_status_t status)
{
    if (status != PD_OK) {
        status = status == PD_E_CONFLICT ? PD_E_INTERNAL : status;
        tx->broken = status;
    }
    return status;
}

static pd_status_t note_change(pd_tx_t *tx, const char *kind, const char *id)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_CHANGE_ADD];

    tx->is_changed = 1;
    pd_stmt_bind_int(stmt, 1, tx->revision + 1);
    pd_stmt_bind_text(stmt, 2, kind);
    pd_stmt_bind_text(stmt, 3, id);
    return pd_stmt_run(stmt);
}

/* Row number and revision of an object. */
static pd_status_t find_head(pd_tx_t *tx, const char *kind, const char *id, int64_t *ret_n,
                             int64_t *ret_revision)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_HEAD];
    int has_row = 0;
    pd_status_t status;

    if (!tx->can_write || !is_name(kind, id)) {
        return PD_E_INVALID;
    }
    pd_stmt_bind_text(stmt, 1, kind);
    pd_stmt_bind_text(stmt, 2, id);
    status = pd_stmt_step(stmt, &has_row);
    if (status != PD_OK) {
        return status;
    }
    if (!has_row) {
        return PD_E_NOT_FOUND;
    }
    *ret_n = pd_stmt_int(stmt, 0);
    *ret_revision = pd_stmt_int(stmt, 1);
    pd_stmt_reset(stmt);
    return PD_OK;
}

/* Every key is free, or is n's own (0: a new object); none is there twice. */
static pd_status_t check_keys(pd_tx_t *tx, const char *kind, const char *const *keys, int64_t n)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_KEY_HOLDER];
    size_t i;
    size_t j;

    for (i = 0; keys != NULL && keys[i] != NULL; i++) {
        int64_t holder = 0;
        pd_status_t status;

        if (i >= PD_STORE_KEYS_MAX || !is_text(keys[i], PD_STORE_KEY_MAX)) {
            return PD_E_INVALID;
        }
        for (j = 0; j < i; j++) {
            if (strcmp(keys[i], keys[j]) == 0) {
                return PD_E_INVALID;
            }
        }
        pd_stmt_bind_text(stmt, 1, kind);
        pd_stmt_bind_text(stmt, 2, keys[i]);
        status = pd_stmt_number(stmt, &holder);
        if (status == PD_OK && holder != n) {
            return PD_E_CONFLICT;
        }
        if (status != PD_OK && status != PD_E_NOT_FOUND) {
            return status;
        }
    }
    return PD_OK;
}

static pd_status_t add_keys(pd_tx_t *tx, const char *kind, const char *const *keys, int64_t n)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_KEY_ADD];
    pd_status_t status = PD_OK;
    size_t i;

    for (i = 0; status == PD_OK && keys != NULL && keys[i] != NULL; i++) {
        pd_stmt_bind_text(stmt, 1, kind);
        pd_stmt_bind_text(stmt, 2, keys[i]);
        pd_stmt_bind_int(stmt, 3, n);
        status = pd_stmt_run(stmt);
    }
    return status;
}

/* Text of a document, for free(). */
static pd_status_t dump_doc(const json_t *doc, char **ret)
{
    char *text = doc == NULL ? NULL : json_dumps(doc, DUMP_FLAGS);

    if (doc == NULL) {
        return PD_E_INVALID;
    }
    if (text == NULL) {
        return PD_E_NOMEM;
    }
    if (strlen(text) > PD_STORE_DOC_MAX) {
        free(text);
        return PD_E_INVALID;
    }
    *ret = text;
    return PD_OK;
}

pd_status_t pd_tx_insert(pd_tx_t *tx, const char *kind, const char *id, const char *owner,
                         json_t *doc, const char *const *keys)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_INSERT];
    char *text = NULL;
    int64_t n = 0;
    int64_t revision = 0;
    pd_status_t status = find_head(tx, kind, id, &n, &revision);

    if (status != PD_E_NOT_FOUND) {
        return status == PD_OK ? PD_E_CONFLICT : status;
    }
    if (owner != NULL && !is_text(owner, PD_STORE_ID_MAX)) {
        return PD_E_INVALID;
    }
    status = check_keys(tx, kind, keys, 0);
    if (status == PD_OK) {
        status = dump_doc(doc, &text);
    }
    if (status != PD_OK) {
        return status;
    }
    pd_stmt_bind_text(stmt, 1, kind);
    pd_stmt_bind_text(stmt, 2, id);
    pd_stmt_bind_text(stmt, 3, owner);
    pd_stmt_bind_int(stmt, 4, pd_wall_now().us);
    pd_stmt_bind_text(stmt, 5, text);
    status = pd_stmt_run(stmt);
    free(text);
    if (status == PD_OK) {
        status = add_keys(tx, kind, keys, pd_sqlite_last_row(tx->conn->db));
    }
    if (status == PD_OK) {
        status = note_change(tx, kind, id);
    }
    return half_done(tx, status);
}

static pd_status_t run_on_row(pd_stmt_t *stmt, int64_t n)
{
    pd_stmt_bind_int(stmt, 1, n);
    return pd_stmt_run(stmt);
}

pd_status_t pd_tx_update(pd_tx_t *tx, const char *kind, const char *id, const char *owner,
                         json_t *doc, const char *const *keys, int64_t expected,
                         int64_t *ret_revision)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_UPDATE];
    char *text = NULL;
    int64_t n = 0;
    int64_t revision = 0;
    pd_status_t status = find_head(tx, kind, id, &n, &revision);

    if (status != PD_OK) {
        return status;
    }
    if (expected != 0 && expected != revision) {
        return PD_E_REVISION;
    }
    if (owner != NULL && !is_text(owner, PD_STORE_ID_MAX)) {
        return PD_E_INVALID;
    }
    status = check_keys(tx, kind, keys, n);
    if (status == PD_OK) {
        status = dump_doc(doc, &text);
    }
    if (status != PD_OK) {
        return status;
    }
    pd_stmt_bind_int(stmt, 1, n);
    pd_stmt_bind_text(stmt, 2, owner);
    pd_stmt_bind_int(stmt, 3, revision + 1);
    pd_stmt_bind_int(stmt, 4, pd_wall_now().us);
    pd_stmt_bind_text(stmt, 5, text);
    status = pd_stmt_run(stmt);
    free(text);
    if (status == PD_OK) {
        status = run_on_row(tx->conn->stmt[PD_SQL_KEY_DROP], n);
    }
    if (status == PD_OK) {
        status = add_keys(tx, kind, keys, n);
    }
    if (status == PD_OK) {
        status = note_change(tx, kind, id);
    }
    if (status == PD_OK && ret_revision != NULL) {
        *ret_revision = revision + 1;
    }
    return half_done(tx, status);
}

pd_status_t pd_tx_delete(pd_tx_t *tx, const char *kind, const char *id, int64_t expected)
{
    int64_t n = 0;
    int64_t revision = 0;
    pd_status_t status = find_head(tx, kind, id, &n, &revision);

    if (status != PD_OK) {
        return status;
    }
    if (expected != 0 && expected != revision) {
        return PD_E_REVISION;
    }
    status = run_on_row(tx->conn->stmt[PD_SQL_DELETE], n);
    if (status == PD_OK) {
        status = note_change(tx, kind, id);
    }
    return half_done(tx, status);
}

pd_status_t pd_tx_secret_put(pd_tx_t *tx, const char *kind, const char *id, const void *sealed,
                             size_t bytes)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_SECRET_PUT];
    int64_t n = 0;
    int64_t revision = 0;
    pd_status_t status = find_head(tx, kind, id, &n, &revision);

    if (status != PD_OK) {
        return status;
    }
    if (sealed == NULL || bytes == 0 || bytes > PD_STORE_SECRET_MAX) {
        return PD_E_INVALID;
    }
    pd_stmt_bind_int(stmt, 1, n);
    pd_stmt_bind_blob(stmt, 2, sealed, bytes);
    status = pd_stmt_run(stmt);
    if (status == PD_OK) {
        status = note_change(tx, kind, id);
    }
    return half_done(tx, status);
}

pd_status_t pd_tx_secret_delete(pd_tx_t *tx, const char *kind, const char *id)
{
    int64_t n = 0;
    int64_t revision = 0;
    pd_status_t status = find_head(tx, kind, id, &n, &revision);

    if (status != PD_OK) {
        return status;
    }
    status = run_on_row(tx->conn->stmt[PD_SQL_SECRET_DROP], n);
    if (status == PD_OK && pd_sqlite_changes(tx->conn->db) == 0) {
        return PD_E_NOT_FOUND;
    }
    if (status == PD_OK) {
        status = note_change(tx, kind, id);
    }
    return half_done(tx, status);
}

void pd_tx_audit(pd_tx_t *tx, const char *audit_id)
{
    tx->audit_id = audit_id == NULL ? NULL : apr_pstrdup(tx->pool, audit_id);
}

/* --- the end of a unit ---------------------------------------------------- */

/* Keeps the newest rows of `change`. The floor moves up with what goes, so that nobody takes a list
 * with holes for the whole of it. */
static pd_status_t prune_changes(pd_tx_t *tx)
{
    int64_t last = 0;
    pd_status_t status = pd_stmt_number(tx->conn->stmt[PD_SQL_CHANGE_LAST], &last);

    if (status != PD_OK || last <= PD_STORE_CHANGES_MAX) {
        return status;
    }
    status = run_on_row(tx->conn->stmt[PD_SQL_CHANGE_FLOOR], last - PD_STORE_CHANGES_MAX);
    if (status == PD_OK) {
        status = run_on_row(tx->conn->stmt[PD_SQL_CHANGE_PRUNE], last - PD_STORE_CHANGES_MAX);
    }
    return status;
}

pd_status_t pd_store_finish(pd_tx_t *tx, int64_t *revision)
{
    pd_stmt_t *add = tx->conn->stmt[PD_SQL_REVISION_ADD];
    int64_t next = tx->revision + 1;
    pd_status_t status;

    if (tx->broken != PD_OK || !tx->is_changed) {
        return tx->broken;
    }
    status = run_on_row(tx->conn->stmt[PD_SQL_REVISION_SET], next);
    if (status == PD_OK) {
        pd_stmt_bind_int(add, 1, next);
        pd_stmt_bind_int(add, 2, pd_wall_now().us);
        pd_stmt_bind_text(add, 3, tx->audit_id);
        status = pd_stmt_run(add);
    }
    if (status == PD_OK) {
        status = prune_changes(tx);
    }
    if (status == PD_OK && next > PD_STORE_CHANGES_MAX) {
        status = run_on_row(tx->conn->stmt[PD_SQL_REVISION_PRUNE], next - PD_STORE_CHANGES_MAX);
    }
    if (status == PD_OK) {
        *revision = next;
    }
    return status;
}
