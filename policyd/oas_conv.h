/* What the converting rooms share: oas_conv.c (the whole), oas_conv_servers.c (where operations are served), oas_conv_auth.c (how they are signed
 * in), oas_conv_operation.c (one operation), oas_conv_params.c (its parameters), oas_conv_body.c (its body), oas_conv_ids.c (its name). */
#ifndef OAS_CONV_H
#define OAS_CONV_H

#include <apr_hash.h>

#include "oas_private.h"

#define OAS_MAX_OPERATIONS 5000
#define OAS_MAX_NOTES      500 /* of each list of a report */
#define OAS_HOST_PATTERN   "[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"

/* Where an operation is served: a base URL in the form of connector files. */
typedef struct oas_server {
    const char *authority; /* "https://{host}" */
    const char *path;      /* "" or "/v1", no slash at its end; may hold {variables} */
    json_t *variables;     /* of both, as a connector file has them; owned by the pool */
} oas_server_t;

/* The scheme that a connector is signed in by. */
typedef struct oas_scheme {
    const char *name;  /* NULL: none */
    json_t *auth;      /* of a connector file; owned by the pool */
    const char *in;    /* of an api_key: where and under which name, so that it is no argument too; else NULL */
    const char *key;
} oas_scheme_t;

/* One operation, found and not yet converted. */
typedef struct oas_found {
    const char *method; /* upper case */
    const char *path;   /* as the document has it */
    oas_at_t item;      /* the path item */
    oas_at_t operation;
    const char *id;     /* given by oas_ids_give() */
    const oas_server_t *server;
} oas_found_t;

typedef struct oas_conv {
    oas_doc_t *doc;
    int version; /* 20, 30, 31 */
    const oas_options_t *options;
    apr_pool_t *pool;
    oas_scheme_t scheme;
    apr_array_header_t *found; /* of oas_found_t */
    oas_schema_counts_t counts;
    size_t cut_descriptions;
    size_t ids_missing, ids_duplicate;
    json_t *left_out, *changed; /* lists of the report; owned by the pool */
    json_t *others;             /* schemes that are not used: [{"name","type","why"}]; owned by the pool */
} oas_conv_t;

/* Gives the reference to the pool; answers value. */
json_t *oas_keep(apr_pool_t *pool, json_t *value);
/* A row of the report; where may be NULL. */
void oas_note(oas_conv_t *conv, json_t *list, const char *where, const char *what, const char *why);
/* "METHOD /path" */
const char *oas_where(const oas_conv_t *conv, const oas_found_t *found);
/* A description, reduced and cut; counted. NULL: there is none. */
const char *oas_describe(oas_conv_t *conv, const json_t *value, const char *member, size_t limit);
/* 1 if a GLOB ('*' any text, '?' one character) fits. Linear but for the number of stars. */
int oas_fits(const char *glob, const char *text);

/* oas_conv_servers.c. The server of the place nearest to an operation; never NULL. */
const oas_server_t *oas_servers_of(oas_conv_t *conv, const oas_found_t *found);

/* oas_conv_auth.c. Chooses by what most operations ask for. */
void oas_auth_choose(oas_conv_t *conv);

/* oas_conv_ids.c. Gives every operation an id of its own that does not depend on the order of the document. */
void oas_ids_give(oas_conv_t *conv);

/* oas_conv_params.c. The parameters, path ones in the order of the template; new reference. path: the cleaned template, to which missing ones are
 * added. *ret_body: the body's place where a parameter is one (2.0), value NULL where none; *ret_form: those of a form (2.0), array of oas_at_t. */
json_t *oas_params(oas_conv_t *conv, const oas_found_t *found, const char *path, oas_at_t *ret_body,
                   apr_array_header_t *ret_form);
/* The schema of a parameter or header, with its size; new reference. */
json_t *oas_param_schema(oas_conv_t *conv, oas_at_t at, size_t max_bytes);

/* oas_conv_body.c. The body, or NULL; new reference. count: parameters that there are beside it. */
json_t *oas_body(oas_conv_t *conv, const oas_found_t *found, oas_at_t body, const apr_array_header_t *form, size_t count);

/* oas_conv_operation.c. One operation of a connector file, or NULL with a note why it is left out; new reference. prefix: what stands before its path. */
json_t *oas_operation(oas_conv_t *conv, const oas_found_t *found, const char *prefix);

#endif
