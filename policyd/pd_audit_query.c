/* Audit queries.  SQL is put together from the literal clauses of a table, one for each filter that
 * is set; values are bound, never written into it.  Prepared for each query, because the filters
 * that are there decide which index serves. */
#include "pd_audit_query.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SQL_BYTES    2048
#define LIMIT_MAX    1000
#define TIME_BYTES   32

/* What a reader looks for first stands first: tables show columns from the left until the line is full. */
#define COLUMNS                                                                                    \
    "time, member, tool, connection, outcome, error_code, upstream_status, duration_us,"           \
    " arg_names, arg_count, surface, audit_id, operation, classification, approved, via,"          \
    " connector, client, actor, role, member_id, member_name, grant_id, connection_id,"            \
    " arg_unknown, request_bytes, response_bytes, redactions, trace_id, revision, detail, seq,"    \
    " time_us, ended_us"

/* A filter's parameter has a number of its own, so that clauses can be left out freely. */
typedef struct clause {
    int parameter;
    const char *sql;
    size_t offset;
} clause_t;

static const clause_t text_clauses[] = {
    {1,
     " AND member_id IN (SELECT ?1 UNION ALL SELECT member_id FROM member WHERE email = ?1)",
     offsetof(pd_audit_query_t, member)},
    {2, " AND tool = ?2", offsetof(pd_audit_query_t, tool)},
    {3, " AND connection = ?3", offsetof(pd_audit_query_t, connection)},
    {4, " AND outcome = ?4", offsetof(pd_audit_query_t, outcome)},
    {5, " AND operation = ?5", offsetof(pd_audit_query_t, operation)},
    {6, " AND surface = ?6", offsetof(pd_audit_query_t, surface)},
    {7, " AND error_code = ?7", offsetof(pd_audit_query_t, error_code)},
    {8, " AND grant_id = ?8", offsetof(pd_audit_query_t, grant)},
};

#define SINCE_SQL  " AND time >= ?9"
#define UNTIL_SQL  " AND time < ?10"
#define BEFORE_SQL " AND seq < ?11"
#define AFTER_SQL  " AND seq > ?12"

static const char *filter_text(const pd_audit_query_t *query, size_t offset)
{
    const char *text;

    memcpy(&text, (const char *)query + offset, sizeof(text));
    return text;
}

/* The table's clauses together are far below SQL_BYTES. */
static void add(char *sql, const char *clause)
{
    size_t used = strlen(sql);

    (void)snprintf(sql + used, SQL_BYTES - used, "%s", clause);
}

static void build(const pd_audit_query_t *query, char *sql)
{
    size_t i;

    sql[0] = '\0';
    add(sql, "SELECT " COLUMNS " FROM audit_trail WHERE 1");
    for (i = 0; i < sizeof(text_clauses) / sizeof(text_clauses[0]); i++) {
        if (filter_text(query, text_clauses[i].offset) != NULL) {
            add(sql, text_clauses[i].sql);
        }
    }
    add(sql, query->since_us != 0 ? SINCE_SQL : "");
    add(sql, query->until_us != 0 ? UNTIL_SQL : "");
    add(sql, query->before_seq != 0 ? BEFORE_SQL : "");
    add(sql, query->after_seq != 0 ? AFTER_SQL : "");
    add(sql, query->oldest_first ? " ORDER BY seq LIMIT ?13" : " ORDER BY seq DESC LIMIT ?13");
}

static void bind_values(pd_stmt_t *stmt, const pd_audit_query_t *query, char *since, char *until)
{
    size_t i;

    for (i = 0; i < sizeof(text_clauses) / sizeof(text_clauses[0]); i++) {
        const char *text = filter_text(query, text_clauses[i].offset);

        if (text != NULL) {
            pd_stmt_bind_text(stmt, text_clauses[i].parameter, text);
        }
    }
    /* Times of one length and zone sort as text, and the index is on the text. */
    if (query->since_us != 0) {
        pd_wall_text((pd_wall_t){query->since_us}, since);
        pd_stmt_bind_text(stmt, 9, since);
    }
    if (query->until_us != 0) {
        pd_wall_text((pd_wall_t){query->until_us}, until);
        pd_stmt_bind_text(stmt, 10, until);
    }
    if (query->before_seq != 0) {
        pd_stmt_bind_int(stmt, 11, query->before_seq);
    }
    if (query->after_seq != 0) {
        pd_stmt_bind_int(stmt, 12, query->after_seq);
    }
    pd_stmt_bind_int(stmt, 13, query->limit);
}

/* --- rows ----------------------------------------------------------------- */

static json_t *text_value(const char *text)
{
    json_t *value = json_string(text);

    return value != NULL ? value : json_string("(not UTF-8)");
}

static json_t *names_value(const char *text)
{
    json_t *names = text == NULL ? NULL : json_loads(text, JSON_REJECT_DUPLICATES, NULL);

    if (!json_is_array(names)) {
        json_decref(names); /* NULL is fine */
        return json_array();
    }
    return names;
}

static json_t *row_value(const pd_stmt_t *stmt)
{
    json_t *row = json_object();
    int count = pd_stmt_columns(stmt);
    int i;

    for (i = 0; row != NULL && i < count; i++) {
        const char *name = pd_stmt_name(stmt, i);
        json_t *value;

        if (strcmp(name, "arg_names") == 0) {
            value = names_value(pd_stmt_text(stmt, i));
        } else if (pd_stmt_is_null(stmt, i)) {
            value = json_null();
        } else if (pd_stmt_is_int(stmt, i)) {
            value = json_integer(pd_stmt_int(stmt, i));
        } else {
            value = text_value(pd_stmt_text(stmt, i));
        }
        if (json_object_set_new(row, name, value) != 0) {
            json_decref(row);
            row = NULL;
        }
    }
    return row;
}

static pd_status_t read_rows(pd_stmt_t *stmt, json_t *rows)
{
    int has_row = 0;
    pd_status_t status = pd_stmt_step(stmt, &has_row);

    while (status == PD_OK && has_row) {
        if (json_array_append_new(rows, row_value(stmt)) != 0) {
            status = PD_E_NOMEM;
        } else {
            status = pd_stmt_step(stmt, &has_row);
        }
    }
    return status;
}

pd_status_t pd_audit_query_list(pd_sqlite_t *db, const pd_audit_query_t *query, json_t **ret_rows)
{
    char sql[SQL_BYTES];
    char since[TIME_BYTES];
    char until[TIME_BYTES];
    pd_stmt_t *stmt = NULL;
    json_t *rows;
    pd_status_t status;

    if (query->limit < 1 || query->limit > LIMIT_MAX) {
        return PD_E_INVALID;
    }
    build(query, sql);
    status = pd_sqlite_prepare(db, sql, &stmt);
    if (status != PD_OK) {
        return status;
    }
    rows = json_array();
    if (rows == NULL) {
        status = PD_E_NOMEM;
    } else {
        bind_values(stmt, query, since, until);
        status = read_rows(stmt, rows);
    }
    pd_stmt_free(db, &stmt);
    if (status != PD_OK) {
        json_decref(rows);
        return status;
    }
    *ret_rows = rows;
    return PD_OK;
}

pd_status_t pd_audit_query_one(pd_sqlite_t *db, int64_t seq, json_t **ret_row)
{
    pd_stmt_t *stmt = NULL;
    json_t *row = NULL;
    int has_row = 0;
    pd_status_t status =
        pd_sqlite_prepare(db, "SELECT " COLUMNS " FROM audit_trail WHERE seq = ?1", &stmt);

    if (status != PD_OK) {
        return status;
    }
    pd_stmt_bind_int(stmt, 1, seq);
    status = pd_stmt_step(stmt, &has_row);
    if (status == PD_OK && !has_row) {
        status = PD_E_NOT_FOUND;
    }
    if (status == PD_OK) {
        row = row_value(stmt);
        status = row == NULL ? PD_E_NOMEM : PD_OK;
    }
    pd_stmt_free(db, &stmt);
    if (status == PD_OK) {
        *ret_row = row;
    }
    return status;
}
