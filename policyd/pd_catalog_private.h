/* What the catalog's files share: pd_catalog.c (the file as a whole), pd_catalog_op.c (one
 * operation), pd_catalog_body.c (its body and the names of its arguments), pd_catalog_schema.c
 * (its inputSchema), pd_catalog_base.c (base URL), pd_catalog_auth.c (auth scheme),
 * pd_catalog_text.c (rules of text), pd_catalog_compile.c (the compiled form). */
#ifndef PD_CATALOG_PRIVATE_H
#define PD_CATALOG_PRIVATE_H

#include "pd_catalog.h"

/* One judging of a file. */
typedef struct pd_check {
    apr_pool_t *pool;  /* of the file */
    apr_pool_t *round; /* of the operation at hand, cleared after it */
    pd_fault_t *fault;
    const char *slug;
    const json_t *auth;
} pd_check_t;

/* Sets the fault "AT: what to change" (at: JSON Pointer) and returns PD_E_INVALID. Arguments of
 * the format that come from the file go through pd_check_quote() first. */
pd_status_t pd_check_fault(const pd_check_t *check, const char *at, const char *hint,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Text of the file, cut and escaped, fit for a message. */
const char *pd_check_quote(const pd_check_t *check, const char *text);

/* pd_catalog.c. The path of a completed operation with its query's literals behind it, as a file
 * has it; NULL: the operation is not a completed one. */
const char *pd_catalog_file_path(apr_pool_t *pool, const json_t *op);

/* pd_catalog_op.c. Completes `op` (element `index` of operations) in place. */
pd_status_t pd_check_operation(pd_check_t *check, json_t *op, size_t index);

/* pd_catalog_body.c. The body, if there is one; then the names of all arguments (`arg`). */
pd_status_t pd_check_body(const pd_check_t *check, const char *at, json_t *op);
pd_status_t pd_check_arguments(const pd_check_t *check, const char *at, json_t *op);

/* pd_catalog_schema.c. The inputSchema of a completed operation; new reference. at: pointer of the
 * operation. */
pd_status_t pd_catalog_input_schema(const pd_check_t *check, const char *at, const json_t *op,
                                    json_t **ret);

/* pd_catalog_base.c. base_url and variables of a file. */
pd_status_t pd_check_base(const pd_check_t *check, const json_t *doc);

/* pd_catalog_auth.c. The auth scheme of a file. */
pd_status_t pd_check_auth(const pd_check_t *check, const json_t *doc);

/* pd_catalog_text.c. 1 if `c` is an ASCII letter or digit. */
int pd_check_is_alnum(char c);
/* 1 if `c` may stand in a literal path segment as it is (RFC 3986 pchar but '%'). */
int pd_check_is_pchar(char c);
/* Value of a hexadecimal digit, or -1. */
int pd_check_hex(char c);
/* Bytes of the percent-encoded triplet at text that may stand in a literal path (3), or 0: not
 * hexadecimal, or an encoded slash, backslash, dot, percent sign or control character. */
size_t pd_check_triplet(const char *text);
/* 1 if a file may not use the header: it belongs to HTTP, to the transport or to the credential. */
int pd_check_is_reserved_header(const char *name);
/* 1 if text is a token of RFC 9110 (5.6.2). */
int pd_check_is_token(const char *text);
/* 1 if text holds a control character. */
int pd_check_has_control(const char *text);

#endif
