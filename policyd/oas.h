/* From an API description (OpenAPI 2.0, 3.0 or 3.1) to connector files, as doc/connector-file.md has them. Pure but for the files that
 * its caller reads. policyctl converts; policyd never parses a foreign document. Messages go into `why` (of `size` bytes), in the words
 * that a person at a terminal needs. One thread; pools are the caller's. */
#ifndef OAS_H
#define OAS_H

#include <stddef.h>

#include <apr_pools.h>
#include <apr_tables.h>
#include <jansson.h>

#define OAS_OK   0
#define OAS_FAIL (-1) /* why tells */

#define OAS_MAX_BYTES (64u * 1024 * 1024) /* of all files of a document together */
#define OAS_MAX_DEPTH 200                 /* of nesting, in a file */
#define OAS_MAX_NODES 5000000             /* values, aliases followed */
#define OAS_MAX_FILES 200                 /* that references may name */
#define OAS_MAX_HOPS  64                  /* from reference to reference */

/* --- oas_read.c: text to values ----------------------------------------------------- */

/* Reads JSON or YAML (told by what it holds, not by a name) as jansson values. YAML by the core schema of YAML 1.2: only true/false are
 * boolean and only what looks like a JSON, hexadecimal or octal number is one, dates and yes/no/on/off are text; keys become text; `<<`
 * merges; an alias is followed up to the limits; further documents of the stream are ignored. Of a doubled key the last wins. A
 * byte order mark is skipped; UTF-8 that is broken, a NUL in a key, more than OAS_MAX_DEPTH levels, OAS_MAX_NODES values or
 * OAS_MAX_BYTES are refused with the line. Whole numbers beyond 64 bit become real ones, real ones beyond a double text.
 * *ret: new reference. Time and memory are linear in the bytes but for aliases, which the limits bound. */
int oas_read(const char *bytes, size_t count, json_t **ret, char *why, size_t size);

/* --- oas_refs.c: a document of one or more files -------------------------------------- */

typedef struct oas_doc oas_doc_t;

/* Reads one more file, named by the path of the file that refers to it ("" for the first) and what the reference says before '#'.
 * *ret_name: its name for messages and for further references, in pool; *ret: its text, in pool. Must refuse what lies outside of what may be
 * read; OAS_FAIL with why. NULL: the document is one file, references to others are dangling. */
typedef int oas_load_fn(void *baton, const char *from, const char *target, apr_pool_t *pool,
                        const char **ret_name, const char **ret, size_t *ret_bytes, char *why, size_t size);

/* A place in a document: the value and the file that it stands in (an index). */
typedef struct oas_at {
    const json_t *value; /* borrowed from the document */
    int file;
} oas_at_t;

/* root: stolen. The document lives as long as pool. */
int oas_doc_make(json_t *root, const char *name, oas_load_fn *load, void *baton, apr_pool_t *pool,
                 oas_doc_t **ret, char *why, size_t size);
oas_at_t oas_doc_root(const oas_doc_t *doc);
/* Names of the files that were read beside the first, array of const char *. */
const apr_array_header_t *oas_doc_files(const oas_doc_t *doc);
/* The place that is meant: follows `$ref` (local, to other files, with JSON Pointer escapes and percent-encoding) until there is none, at
 * most OAS_MAX_HOPS times. Members beside a `$ref` do not count here. OAS_FAIL: dangling, circular, or a URL: nothing is fetched.
 * *ret_name (may be NULL): the last segment of the last reference, a name for a definition; NULL where none was followed. */
int oas_resolve(oas_doc_t *doc, oas_at_t at, oas_at_t *ret, const char **ret_name, char *why, size_t size);
/* The member of an object, resolved; value NULL where it is absent or dangling. */
oas_at_t oas_member(oas_doc_t *doc, oas_at_t at, const char *name);

/* --- oas_schema.c: schemas ------------------------------------------------------------- */

typedef struct oas_schema_options {
    int version;           /* 20, 30 or 31 */
    size_t max_bytes;      /* of one schema with all its definitions, as compact JSON; what is deeper is cut */
    size_t max_text;       /* characters of a description within a schema; 0: none is kept */
} oas_schema_options_t;

typedef struct oas_schema_counts {
    size_t cut_schemas;    /* places where a schema was replaced by one that takes anything of its type */
    size_t cut_text;       /* characters of descriptions left out */
    size_t dangling;       /* references to nothing: replaced by a schema that takes anything */
} oas_schema_counts_t;

/* A request's schema at that place as a self-contained JSON Schema 2020-12: references to `#/$defs/NAME` with what they need; circular ones stay
 * references. Translates what older versions say differently (nullable, x-nullable, type file, exclusive bounds as booleans,
 * items as a list, example, discriminator, xml, readOnly: left out of properties and required; format and enum kept), merges allOf of
 * plain objects into one with the union of properties and required where nothing contradicts, keeps oneOf/anyOf. What is no
 * schema becomes {}. Keywords that JSON Schema does not know are dropped, `pattern`s that our engine refuses too (counted as cut).
 * Over max_bytes the deepest definitions are replaced by {"type":T} first, so that the result always fits and takes every value that the
 * original took. Always a new reference but for lack of memory (NULL). counts is added to. */
json_t *oas_schema(oas_doc_t *doc, oas_at_t at, const oas_schema_options_t *options, oas_schema_counts_t *counts,
                   apr_pool_t *pool);

/* --- oas_text.c: descriptions ------------------------------------------------------------ */

/* Vendor's Markdown or HTML as plain text for a model: tags, entities, images, link targets, emphasis, headings and tables reduced to their words,
 * code kept without fences, white space folded, control and invisible characters out. At most `limit` characters (0: no limit), cut at
 * the end of a sentence where there is one in the last half, else at a word with "…". In pool. *ret_cut (may be NULL): characters of the
 * reduced text that were left out. Linear time; any bytes. */
const char *oas_text(const char *from, size_t limit, apr_pool_t *pool, size_t *ret_cut);

/* --- oas_conv.c: the whole -------------------------------------------------------------- */

typedef struct oas_classify {
    const char *glob; /* of operation ids or "METHOD /path" */
    const char *klass;
} oas_classify_t;

typedef struct oas_options {
    const char *slug;     /* NULL: made of the title */
    const char *label;    /* NULL: the title */
    const char *base_url; /* NULL: the document's server; relative and missing ones get a {host} variable */
    const char *server;   /* of several servers the one with this URL or description; NULL: the first */
    const char *auth;     /* name of a security scheme; NULL: the best that we can do, see the report */
    const apr_array_header_t *include;  /* of const char *: GLOBs over operation ids and "METHOD /path"; NULL or empty: all */
    const apr_array_header_t *exclude;  /* of const char * */
    const apr_array_header_t *classify; /* of oas_classify_t; the last that fits counts */
    int no_deprecated;     /* leaves deprecated operations out */
    size_t max_description; /* characters of a tool's description; 0: 600 */
    size_t max_parameter;   /* characters of an argument's; 0: 300 */
    size_t max_schema;      /* bytes of an operation's input schema; 0: 24576 */
} oas_options_t;

/* Converts a document. *ret_files: array of connector files, one for each origin that its operations are served from, the one with the most
 * first (slug, slug-2, …), new reference; a document without operations has one file with an empty list. *ret_report, new reference:
 *   {"title","version","openapi","files":[names],"operations":n,"by_class":{…},"methods":{"GET":n,…},
 *    "auth":{"chosen":name|null,"type","others":[{"name","type","why"}]},
 *    "left_out":[{"where","what","why"}], "changed":[{"where","what","why"}],
 *    "ids":{"missing":n,"duplicate":n},"cut":{"descriptions":n,"characters":n,"schemas":n},"dangling":n}
 * OAS_FAIL: no such document, nothing that can be converted, more than 5000 operations (says to use include); why. */
int oas_convert(oas_doc_t *doc, const oas_options_t *options, apr_pool_t *pool, json_t **ret_files,
                json_t **ret_report, char *why, size_t size);

#endif
