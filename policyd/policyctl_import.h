/* policyctl connectors import, convert, add, catalog: API descriptions into the catalog. They are read and converted here (oas.h), so that
 * policyd never parses what a stranger wrote; what it gets are connector files, which it judges as any other. */
#ifndef POLICYCTL_IMPORT_H
#define POLICYCTL_IMPORT_H

#include <stdio.h>

#include <apr_pools.h>
#include <apr_tables.h>
#include <jansson.h>

#include "oas.h"
#include "policyctl.h"

/* --- policyctl_import.c: the commands ---------------------------------------------- */

/* 1 for `connectors VERB` that is ours (resource and verb as typed; verb may be NULL). */
int ctl_import_is_command(const char *resource, const char *verb);
/* 1 when it talks to policyd. */
int ctl_import_needs_link(const char *verb);
/* Runs it with the words behind the verb; link may be NULL where none is needed. Exit status. */
int ctl_import_run(ctl_link_t *link, ctl_format_t format, const char *verb, int count, char *const *words);
void ctl_import_help(FILE *to, const char *verb);
/* Its flags, one a line, for completion. */
void ctl_import_words(FILE *to, const char *verb);

/* --- policyctl_convert.c: one document ------------------------------------------------ */

typedef struct ctl_source {
    const char *name;     /* a file, "-" or, with is_fetched, an address */
    int is_fetched;
    const char *ref_root; /* folder that references may lead into; NULL: the parent of the document's */
    const apr_array_header_t *allow; /* of const char *: origins that may be private */
} ctl_source_t;

typedef struct ctl_converted {
    json_t *files;  /* connector files, new reference */
    json_t *report; /* oas_convert()'s; NULL where the document was a connector file already; new reference */
    char sha256[65];
} ctl_converted_t;

/* Reads and converts. 0, or -1 with why. Everything else in pool. */
int ctl_convert(const ctl_source_t *source, const oas_options_t *options, apr_pool_t *pool, ctl_converted_t *ret,
                char *why, size_t size);
void ctl_converted_clear(ctl_converted_t *converted);

/* --- policyctl_report.c: what came of it, for people ------------------------------------- */

/* What conversion did; report may be NULL. */
void ctl_report_conversion(FILE *to, const json_t *report);
/* What policyd answered to connectors import. */
void ctl_report_import(FILE *to, const json_t *answer);

/* --- policyctl_index.c: the shipped catalog ------------------------------------------------ */

typedef struct ctl_index_row {
    const char *slug, *name, *category, *address, *file, *home; /* "" where there is none */
} ctl_index_row_t;

/* Reads DIR/index.tsv; rows (of ctl_index_row_t) in pool. NULL with why. */
const apr_array_header_t *ctl_index_read(const char *dir, apr_pool_t *pool, char *why, size_t size);
/* The row of a slug or name (ASCII letters of any case), or NULL. */
const ctl_index_row_t *ctl_index_find(const apr_array_header_t *rows, const char *name);
/* Rows whose slug, name or category holds the text (NULL: all), as a list {"items":[…]}; new reference. */
json_t *ctl_index_list(const apr_array_header_t *rows, const char *query, apr_pool_t *pool);

#endif
