/* What a unit of work may read of the policy store, in every lane.  What is handed out is copied
 * into the unit's pool, and each statement is reset before its function returns. */
#include "pd_store.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "pd_store_private.h"

#define OBJECT_COLUMNS 7
#define LOAD_FLAGS     (JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL)

apr_pool_t *pd_tx_pool(pd_tx_t *tx)
{
    return tx->pool;
}

pd_status_t pd_store_revision(pd_store_conn_t *conn, int64_t *ret)
{
    return pd_stmt_number(conn->stmt[PD_SQL_REVISION], ret);
}

int64_t pd_tx_revision(pd_tx_t *tx)
{
    if (tx->revision < 0) {
        pd_status_t status = pd_store_revision(tx->conn, &tx->revision);

        if (status != PD_OK) {
            tx->revision = -1;
            tx->broken = status;
            return -1;
        }
    }
    return tx->revision + (tx->is_changed ? 1 : 0);
}

static apr_status_t drop_doc(void *doc)
{
    json_decref(doc);
    return APR_SUCCESS;
}

static const char *copy_text(apr_pool_t *pool, const pd_stmt_t *stmt, int column)
{
    const char *text = pd_stmt_text(stmt, column);

    return text == NULL ? NULL : apr_pstrdup(pool, text);
}

static json_t *parse_doc(const char *text, size_t bytes)
{
    return text == NULL ? NULL : json_loadb(text, bytes, LOAD_FLAGS, NULL);
}

static void drop_kept(pd_store_doc_t *kept)
{
    json_decref(kept->doc); /* NULL is fine */
    free(kept->text);
    *kept = (pd_store_doc_t){NULL, 0, NULL};
}

void pd_store_docs_free(pd_store_conn_t *conn)
{
    size_t i;

    for (i = 0; conn->docs != NULL && i < PD_STORE_DOCS; i++) {
        drop_kept(&conn->docs[i]);
    }
    free(conn->docs);
    conn->docs = NULL;
}

/* FNV-1a; ids end in random characters. */
static size_t doc_place(const char *id)
{
    uint32_t hash = 2166136261U;

    for (; *id != '\0'; id++) {
        hash = (hash ^ (unsigned char)*id) * 16777619U;
    }
    return hash & (PD_STORE_DOCS - 1);
}

/* parse_doc() with a memory: every call of every tool reads a grant and a member, mostly those it read
 * a moment ago, and parsing them was a quarter of what such a question cost (measured). */
static json_t *parse_hot(pd_store_conn_t *conn, const char *id, const char *text, size_t bytes)
{
    pd_store_doc_t *kept;
    json_t *doc;

    if (conn->docs == NULL || id == NULL || text == NULL || bytes > PD_STORE_DOC_HOT) {
        return parse_doc(text, bytes);
    }
    kept = &conn->docs[doc_place(id)];
    if (kept->text != NULL && kept->bytes == bytes && memcmp(kept->text, text, bytes) == 0) {
        return json_incref(kept->doc);
    }
    doc = parse_doc(text, bytes);
    if (doc == NULL) {
        return NULL;
    }
    drop_kept(kept);
    kept->text = malloc(bytes + 1); /* none is NULL even where bytes is 0 */
    if (kept->text != NULL) {
        memcpy(kept->text, text, bytes);
        kept->bytes = bytes;
        kept->doc = json_incref(doc);
    }
    return doc;
}

/* The object whose columns start at `first` of the current row; is_hot: its document may be shared
 * with other units of this connection. */
static pd_status_t read_object(pd_tx_t *tx, const pd_stmt_t *stmt, int first, int is_hot,
                               pd_object_t **ret)
{
    pd_object_t *object = apr_pcalloc(tx->pool, sizeof(*object));
    size_t bytes = 0;
    const char *text = pd_stmt_blob(stmt, first + 6, &bytes);

    object->kind = copy_text(tx->pool, stmt, first);
    object->id = copy_text(tx->pool, stmt, first + 1);
    object->owner = copy_text(tx->pool, stmt, first + 2);
    object->revision = pd_stmt_int(stmt, first + 3);
    object->created.us = pd_stmt_int(stmt, first + 4);
    object->updated.us = pd_stmt_int(stmt, first + 5);
    object->doc = is_hot ? parse_hot(tx->conn, object->id, text, bytes) : parse_doc(text, bytes);
    if (object->kind == NULL || object->id == NULL || object->doc == NULL) {
        json_decref(object->doc); /* NULL is fine */
        return PD_E_CORRUPT;      /* only we write here, and we write what we can read */
    }
    apr_pool_cleanup_register(tx->pool, object->doc, drop_doc, apr_pool_cleanup_null);
    *ret = object;
    return PD_OK;
}

static pd_status_t read_one(pd_tx_t *tx, pd_stmt_t *stmt, pd_object_t **ret)
{
    int has_row = 0;
    pd_status_t status = pd_stmt_step(stmt, &has_row);

    if (status != PD_OK) {
        return status;
    }
    if (!has_row) {
        return PD_E_NOT_FOUND;
    }
    status = read_object(tx, stmt, 0, 0, ret);
    pd_stmt_reset(stmt);
    return status;
}

pd_status_t pd_tx_get(pd_tx_t *tx, const char *kind, const char *id, pd_object_t **ret)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_GET];

    if (kind == NULL || id == NULL) {
        return PD_E_INVALID;
    }
    pd_stmt_bind_text(stmt, 1, kind);
    pd_stmt_bind_text(stmt, 2, id);
    return read_one(tx, stmt, ret);
}

pd_status_t pd_tx_find(pd_tx_t *tx, const char *kind, const char *key, pd_object_t **ret)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_FIND];

    if (kind == NULL || key == NULL) {
        return PD_E_INVALID;
    }
    pd_stmt_bind_text(stmt, 1, kind);
    pd_stmt_bind_text(stmt, 2, key);
    return read_one(tx, stmt, ret);
}

pd_status_t pd_tx_list(pd_tx_t *tx, const char *kind, const char *owner, const char *after,
                       int limit, apr_array_header_t **ret)
{
    pd_stmt_t *stmt = tx->conn->stmt[owner == NULL ? PD_SQL_LIST : PD_SQL_LIST_OWNER];
    apr_array_header_t *list;
    int has_row = 0;
    pd_status_t status;

    if (kind == NULL || limit < 1 || limit > PD_STORE_LIST_MAX) {
        return PD_E_INVALID;
    }
    list = apr_array_make(tx->pool, limit < 16 ? limit : 16, sizeof(pd_object_t *));
    pd_stmt_bind_text(stmt, 1, kind);
    pd_stmt_bind_text(stmt, 2, after == NULL ? "" : after);
    pd_stmt_bind_int(stmt, 3, limit);
    if (owner != NULL) {
        pd_stmt_bind_text(stmt, 4, owner);
    }
    status = pd_stmt_step(stmt, &has_row);
    while (status == PD_OK && has_row) {
        pd_object_t *object = NULL;

        status = read_object(tx, stmt, 0, 0, &object);
        if (status == PD_OK) {
            APR_ARRAY_PUSH(list, pd_object_t *) = object;
            status = pd_stmt_step(stmt, &has_row);
        }
    }
    pd_stmt_reset(stmt);
    if (status == PD_OK) {
        *ret = list;
    }
    return status;
}

pd_status_t pd_tx_grant(pd_tx_t *tx, const char *token_key, pd_object_t **ret_grant,
                        pd_object_t **ret_member, int64_t *ret_revision)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_GRANT];
    pd_object_t *grant = NULL;
    pd_object_t *member = NULL;
    int64_t revision = 0;
    int has_row = 0;
    pd_status_t status;

    if (token_key == NULL) {
        return PD_E_INVALID;
    }
    pd_stmt_bind_text(stmt, 1, token_key);
    status = pd_stmt_step(stmt, &has_row);
    if (status != PD_OK) {
        return status;
    }
    if (!has_row) {
        return PD_E_NOT_FOUND;
    }
    status = read_object(tx, stmt, 0, 1, &grant);
    if (status == PD_OK && !pd_stmt_is_null(stmt, OBJECT_COLUMNS)) {
        status = read_object(tx, stmt, OBJECT_COLUMNS, 1, &member);
    }
    revision = pd_stmt_int(stmt, 2 * OBJECT_COLUMNS);
    pd_stmt_reset(stmt);
    if (status != PD_OK) {
        return status;
    }
    if (!tx->can_write) {
        tx->revision = revision; /* the same snapshot: spares the completion a statement */
    }
    *ret_grant = grant;
    *ret_member = member;
    *ret_revision = tx->can_write ? pd_tx_revision(tx) : revision;
    return PD_OK;
}

pd_status_t pd_tx_secret_get(pd_tx_t *tx, const char *kind, const char *id, const void **ret,
                             size_t *ret_bytes)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_SECRET_GET];
    const void *sealed;
    size_t bytes = 0;
    int has_row = 0;
    pd_status_t status;

    if (kind == NULL || id == NULL) {
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
    sealed = pd_stmt_blob(stmt, 0, &bytes);
    if (sealed == NULL) {
        pd_stmt_reset(stmt);
        return PD_E_CORRUPT; /* an empty one is never stored */
    }
    *ret = apr_pmemdup(tx->pool, sealed, bytes);
    *ret_bytes = bytes;
    pd_stmt_reset(stmt);
    return PD_OK;
}

static pd_status_t read_floor(pd_tx_t *tx, int64_t *ret)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_REVISION];
    int has_row = 0;
    pd_status_t status = pd_stmt_step(stmt, &has_row);

    if (status == PD_OK && !has_row) {
        status = PD_E_CORRUPT;
    }
    if (status == PD_OK) {
        *ret = pd_stmt_int(stmt, 1);
        pd_stmt_reset(stmt);
    }
    return status;
}

pd_status_t pd_tx_changes(pd_tx_t *tx, int64_t revision, apr_array_header_t **ret)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_CHANGES];
    apr_array_header_t *list = apr_array_make(tx->pool, 16, sizeof(pd_change_t));
    int64_t floor = 0;
    int has_row = 0;
    pd_status_t status = read_floor(tx, &floor);

    if (status == PD_OK && revision < floor) {
        status = PD_E_REVISION;
    }
    if (status != PD_OK) {
        return status;
    }
    pd_stmt_bind_int(stmt, 1, revision);
    status = pd_stmt_step(stmt, &has_row);
    while (status == PD_OK && has_row) {
        pd_change_t *change = apr_array_push(list);

        change->kind = copy_text(tx->pool, stmt, 0);
        change->id = copy_text(tx->pool, stmt, 1);
        status = pd_stmt_step(stmt, &has_row);
    }
    pd_stmt_reset(stmt);
    if (status == PD_OK) {
        *ret = list;
    }
    return status;
}

pd_status_t pd_tx_audit_find(pd_tx_t *tx, const char *audit_id, int64_t *ret_revision)
{
    pd_stmt_t *stmt = tx->conn->stmt[PD_SQL_AUDIT_FIND];

    if (audit_id == NULL) {
        return PD_E_INVALID;
    }
    pd_stmt_bind_text(stmt, 1, audit_id);
    return pd_stmt_number(stmt, ret_revision);
}
