/* What the rooms of the conversion share: oas_convert.c (the whole and its frame), oas_collect.c
 * (operations and their ids), oas_servers.c (one server), oas_origins.c (servers of all operations),
 * oas_auth.c (sign-in), oas_path.c (path templates), oas_params.c, oas_body.c, oas_operation.c (one
 * operation), oas_words.c (what names say), oas_report.c (notes). */
#ifndef OAS_CONVERT_PRIVATE_H
#define OAS_CONVERT_PRIVATE_H

#include <apr_hash.h>

#include "oas_private.h"

#define OAS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Limits of the connector file (doc/connector-file.md). */
#define OAS_MAX_OPERATIONS 5000
#define OAS_MAX_CONNECTORS 64 /* of one document */
#define OAS_MAX_ID         200
#define OAS_MAX_PATH       1024
#define OAS_MAX_BASE       1024
#define OAS_MAX_PARAMETERS 256
#define OAS_MAX_NAME       128 /* of a parameter */
#define OAS_MAX_TITLE      300
#define OAS_MAX_LABEL      100
#define OAS_MAX_SLUG       32
#define OAS_MAX_TAG        64
#define OAS_MAX_TAGS       16
#define OAS_MAX_VARIABLES  16
#define OAS_MAX_VALUE      512 /* of a variable */
#define OAS_MAX_CHOICES    256
#define OAS_MAX_LITERALS   16 /* of a path's query */

/* A server as the format has it. */
typedef struct oas_base {
    const char *scheme;    /* "https" or "http" */
    const char *authority; /* may hold {variables} */
    const char *path;      /* "" or "/a/{b}", no slash at its end */
    json_t *variables;     /* of both, by their names there */
    const char *origin;    /* equal for servers that share a connector */
    int is_open;           /* the document names no host */
} oas_base_t;

/* A connector in the making. */
typedef struct oas_origin {
    const oas_base_t *base; /* the first that was met */
    const char *path;       /* what all its bases begin with */
    json_t *operations;     /* array */
    size_t order;
} oas_origin_t;

/* An operation of the document. */
typedef struct oas_op {
    const char *path;  /* key in `paths` */
    const char *method;
    const char *where; /* "GET /path": for reports and globs */
    oas_at_t item;     /* its path item, resolved */
    oas_at_t beside;   /* what stands beside that one's $ref; value NULL: none */
    oas_at_t at;
    const char *own_id; /* operationId in characters that the format takes, or NULL */
    const char *id;
    const oas_base_t *base;
    oas_origin_t *origin;
} oas_op_t;

typedef struct oas_work {
    oas_doc_t *doc;
    oas_options_t options; /* with defaults filled in */
    apr_pool_t *pool;
    apr_pool_t *round; /* cleared after each operation */
    oas_at_t root;
    int version; /* 20, 30, 31 */
    int failed;  /* out of memory, or text that is not UTF-8 */
    char *why;
    size_t why_size;

    apr_array_header_t *ops;     /* of oas_op_t *: those that are wanted */
    apr_array_header_t *origins; /* of oas_origin_t * */
    json_t *auth;                /* of the connector files */
    apr_array_header_t *secrets; /* of oas_secret_t: where credentials are sent */

    json_t *left_out;
    json_t *changed;
    json_t *auth_report;
    apr_hash_t *noted; /* kind, what and why -> entry */
    size_t missing_ids;
    size_t duplicate_ids;
    size_t cut_descriptions;
    size_t cut_characters;
    size_t dangling;
    oas_schema_counts_t schemas;
} oas_work_t;

typedef struct oas_secret {
    const char *in;
    const char *name;
} oas_secret_t;

/* --- oas_report.c --------------------------------------------------------------------------- */

/* json_object_set_new, json_array_append_new; a failure is kept in `failed`. */
void oas_put(oas_work_t *work, json_t *object, const char *name, json_t *value);
void oas_add(oas_work_t *work, json_t *array, json_t *value);
/* The value lives as long as the pool. */
json_t *oas_own(apr_pool_t *pool, json_t *value);

/* An entry of the report. Entries that say the same of several places are one, with "count". */
void oas_left_out(oas_work_t *work, const char *where, const char *what, const char *why);
void oas_changed(oas_work_t *work, const char *where, const char *what, const char *why);
/* The report; new reference. */
json_t *oas_report(oas_work_t *work, const json_t *files);

/* At most `max` bytes of text, whole characters. */
const char *oas_clip(apr_pool_t *pool, const char *text, size_t max);
/* Text between double quotes, for a report. */
const char *oas_quoted(apr_pool_t *pool, const char *text);
/* First `digits` hexadecimal digits of a hash. */
const char *oas_hash(apr_pool_t *pool, const char *text, size_t digits);
/* String member as plain text of at most `limit` characters (0: no limit), counted where cut; "" where
 * there is none. */
const char *oas_plain(oas_work_t *work, oas_at_t at, const char *name, size_t limit);
/* Cuts plain text, and counts. */
const char *oas_shorten(oas_work_t *work, const char *text, size_t limit);

/* oas_text.c: the cutting half of oas_text(). */
const char *oas_text_cut(const char *text, size_t limit, apr_pool_t *pool, size_t *ret_cut);

/* --- oas_collect.c -------------------------------------------------------------------------- */

/* Finds all operations, gives them ids, keeps those that are wanted. OAS_FAIL with why. */
int oas_collect(oas_work_t *work);
/* 1 if the glob fits the operation's id or "METHOD /path". */
int oas_op_fits(const oas_op_t *op, const char *glob);
/* A member of the operation, else of its path item; resolved. */
oas_at_t oas_op_member(oas_work_t *work, const oas_op_t *op, const char *name);

/* --- oas_servers.c, oas_origins.c ------------------------------------------------------------- */

/* Reads an URL template with the `variables` object of its server (value NULL: none). NULL with *ret_why:
 * it can't be used. */
const oas_base_t *oas_server(oas_work_t *work, const char *url, oas_at_t variables,
                             const char **ret_why);
/* Sets `base` and `origin` of each operation, and origins. OAS_FAIL with why. */
int oas_origins(oas_work_t *work);
/* base_url and variables of a connector file. */
void oas_origin_frame(oas_work_t *work, const oas_origin_t *origin, json_t *file);
/* What goes before the operation's path; in pool. */
const char *oas_origin_prefix(const oas_op_t *op, apr_pool_t *pool);

/* --- oas_auth.c ----------------------------------------------------------------------------------- */

/* Chooses the scheme; sets auth, secrets, auth_report. OAS_FAIL with why. */
int oas_auth(oas_work_t *work);
/* Says what the operation needs beyond the chosen scheme. */
void oas_auth_note(oas_work_t *work, const oas_op_t *op);

/* --- oas_path.c ------------------------------------------------------------------------------------- */

/* A placeholder of a template. */
typedef struct oas_place {
    const char *name; /* as the template has it now */
    const char *own;  /* as the document has it */
    int is_segment;   /* a whole one */
    int is_multi;     /* written as a list of segments */
} oas_place_t;

typedef struct oas_path {
    const char *text;             /* percent-encoded, without a query */
    apr_array_header_t *places;   /* of oas_place_t */
    apr_array_header_t *literals; /* of oas_literal_t */
    apr_array_header_t *queries;  /* of oas_literal_t: name={value} */
    int had_fragment;
} oas_path_t;

typedef struct oas_literal {
    const char *name;  /* decoded */
    const char *value; /* decoded; of a query: the placeholder's name */
    int has_value;
} oas_literal_t;

/* Reads the operation's path behind prefix; NULL, or why it can't be converted. */
const char *oas_path(oas_work_t *work, const oas_op_t *op, const char *prefix, oas_path_t *ret);
/* The path with its literals, as the file has it. */
const char *oas_path_text(const oas_path_t *path, apr_pool_t *pool);
/* 1 if the query has that literal. */
int oas_path_has_literal(const oas_path_t *path, const char *name);

/* --- oas_params.c, oas_body.c ------------------------------------------------------------------------- */

typedef struct oas_param {
    const char *name;
    const char *in;
    oas_at_t at; /* value NULL: the document does not describe it */
} oas_param_t;

/* Parameters of path item and operation (of oas_param_t), those of bodies too. */
apr_array_header_t *oas_params_of(oas_work_t *work, const oas_op_t *op);
/* "parameters" of the operation; new reference. *room: bytes left for schemas. path: literals may be
 * added. NULL with *ret_why: can't be. */
json_t *oas_params(oas_work_t *work, const oas_op_t *op, const apr_array_header_t *params,
                   oas_path_t *path, size_t *room, const char **ret_why);
/* "body" of the operation; new reference, NULL: none. fields: how many members may lie flat. */
json_t *oas_body(oas_work_t *work, const oas_op_t *op, const apr_array_header_t *params,
                 size_t fields, size_t room);
/* A schema at a place within max_bytes, {} instead of what is no object; new reference. */
json_t *oas_schema_within(oas_work_t *work, oas_at_t at, size_t max_bytes);
/* The schema that a parameter of 2.0 is itself; new reference. */
json_t *oas_schema_inline(oas_work_t *work, oas_at_t at, size_t max_bytes);

/* --- oas_operation.c, oas_words.c ------------------------------------------------------------------------ */

/* One operation; new reference. NULL with *ret_why: left out. */
json_t *oas_operation(oas_work_t *work, const oas_op_t *op, const char **ret_why);
/* Lower case, runs of other characters than a-z 0-9 become '-', none at the ends; in pool, may be "". */
const char *oas_slug(const char *text, size_t max, apr_pool_t *pool);
/* 1 if the operation sends or publishes something to somebody. summary: plain text. */
int oas_words_send(const oas_op_t *op, const char *summary, apr_pool_t *pool);
/* The word that says that an operation changes something; NULL: none does. */
const char *oas_words_change(const oas_op_t *op, const char *summary, apr_pool_t *pool);

#endif
