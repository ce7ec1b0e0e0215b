/* policyctl's rooms: link, arguments, output, help.
 *
 * No operation is known to the program.  It asks policyd for the registry (rpc.describe: an array of
 * {"name","resource","verb","title","description","permission"?,"classification","secret","rest","schema"})
 * and makes commands, flags, help and completion of it.  One thread, one request at a time. */
#ifndef POLICYCTL_H
#define POLICYCTL_H

#include <jansson.h>
#include <stdio.h>

#define CTL_DONE   0 /* exit statuses */
#define CTL_FAILED 1
#define CTL_USAGE  2

#define CTL_MAX_FILE (16u * 1024 * 1024) /* bytes of --json and of files that arguments name */
#define CTL_WHY      512

typedef enum ctl_format { CTL_TABLE, CTL_JSON, CTL_JSONL, CTL_CSV } ctl_format_t;

/* --- policyctl_link.c: one connection to the admin socket ------------------- */

typedef struct ctl_link ctl_link_t;

/* NULL with why set when nobody answers at the path. */
ctl_link_t *ctl_link_open(const char *path, char *why, size_t size);
void ctl_link_close(ctl_link_t *link);
/* One request. 0 with the result, or with *ret_error {"code","message","hint"?,"audit"?}; -1 with why when the
 * exchange itself failed. New references. */
int ctl_link_call(ctl_link_t *link, const char *method, const json_t *params, json_t **ret_result,
                  json_t **ret_error, char *why, size_t size);

/* --- policyctl_schema.c: what a schema says of an argument ------------------- */

#define CTL_TYPE_STRING  0x01u
#define CTL_TYPE_INTEGER 0x02u
#define CTL_TYPE_NUMBER  0x04u
#define CTL_TYPE_BOOLEAN 0x08u
#define CTL_TYPE_ARRAY   0x10u
#define CTL_TYPE_OBJECT  0x20u
#define CTL_TYPE_NULL    0x40u
#define CTL_TYPE_ANY     0x7fu

/* Follows `$ref`s into the document `root`, a bounded number of them. */
const json_t *ctl_schema_resolve(const json_t *schema, const json_t *root);
/* The types that a value may have; a schema that does not say takes any. */
unsigned ctl_schema_types(const json_t *schema, const json_t *root);
/* The one type of a value. */
unsigned ctl_schema_type_of(const json_t *value);
/* The object whose keys `key=value,...` fills: the schema itself, or that of a list's elements; NULL where no keys are known. */
const json_t *ctl_schema_keys(const json_t *schema, const json_t *root);
int ctl_schema_requires(const json_t *schema, const char *name);
/* One step down: the schema of `name` within an object's schema, NULL for any value, and the name to use.
 * 0, or -1 when the object has no such key. */
int ctl_schema_step(const json_t *schema, const json_t *root, const char *name,
                    const json_t **ret_schema, const char **ret_key);
/* Words for a schema's type, for help: "INTEGER", "A,B,...", "KEY=VALUE,...", "JSON", ... */
const char *ctl_args_type(const json_t *schema, const json_t *root);
/* Name of the property that a positional word fills, or NULL; *ret_is_file: the word is a file's name. */
const char *ctl_args_positional(const json_t *schema, int *ret_is_file);
/* 1 if two names are the same but for '-' and '_'. */
int ctl_args_same(const char *a, const char *b);

/* --- policyctl_args.c: words of the command line to arguments --------------- */

/* Reads the words behind the operation by its schema over `base` (arguments of --json, or NULL): flags
 * `--key value`, `--key=value`, `--key.sub value`, and at most one positional word; an object, or an element of a list of them, as
 * JSON or as `key=value,...`. New reference, or NULL with why set. Reads files only where the schema says that an argument is one. */
json_t *ctl_args_read(const json_t *schema, const json_t *base, int count, char *const *words, char *why,
                      size_t size);
/* A JSON object from a file, "-" for standard input. New reference, or NULL with why set. */
json_t *ctl_args_file(const char *path, char *why, size_t size);

/* --- policyctl_text.c: texts for a terminal ---------------------------------- */

/* A growing text; once an allocation failed it stays as it was. bytes: the owner frees them. */
typedef struct ctl_text {
    char *bytes;
    size_t count, room;
} ctl_text_t;

void ctl_text_add(ctl_text_t *to, const char *bytes, size_t count);
/* Appends text as a terminal may have it, at most `limit` columns of it (0: all). */
void ctl_text_visible(ctl_text_t *to, const char *from, size_t limit);
/* Columns that a text takes. */
size_t ctl_text_width(const char *text);
/* Never NULL. */
const char *ctl_text_of(const ctl_text_t *text);
/* Writes a text as a terminal may have it, for messages. */
void ctl_print_text(FILE *to, const char *from);

/* --- policyctl_print.c: results --------------------------------------------- */

/* -1 if the text names no format. */
int ctl_print_format(const char *text, ctl_format_t *ret);
/* Writes a result. Control and invisible formatting characters never reach a table. */
void ctl_print(FILE *to, json_t *result, ctl_format_t format);
/* The rows of a list alone, as a table, each line after `indent`. */
void ctl_print_rows(FILE *to, const json_t *rows, const char *indent);

/* --- policyctl_views.c: results that a plain table would not make readable ---- */

/* Writes what an operation answered, as a table or in words made for it. Changes the result. */
void ctl_view(FILE *to, const char *operation, json_t *result);
/* Who gains and loses which tools, as a dry run tells it; impact may be NULL. */
void ctl_view_impact(FILE *to, const json_t *impact);
/* Warnings of a result, one a line. */
void ctl_view_warnings(FILE *to, const json_t *result);

/* --- policyctl_footprint.c: what a list of tools takes of a prompt ------------ */

#define CTL_FOOTPRINT "footprint__get" /* the operation */

/* Writes what it answered as a table. */
void ctl_footprint_view(FILE *to, const json_t *result);
/* Writes it as a chart into a file, which is replaced whole, or "-": to standard output. 0, or -1 with why set. */
int ctl_footprint_svg(const json_t *result, const char *path, char *why, size_t size);
/* Takes `--svg FILE` out of the words; *ret_path stays as it is without. 0, or -1 with why set. */
int ctl_footprint_take(char **words, int *count, const char **ret_path, char *why, size_t size);

/* --- policyctl_fail.c: what went wrong, on standard error ------------------- */

/* Each returns the exit status. */
int ctl_fail_usage(const char *why);
/* The same of an operation's arguments: points to its own help. */
int ctl_fail_usage_of(const json_t *operation, const char *why);
int ctl_fail_usage_at(const char *command, const char *why);
int ctl_fail(const char *why);
/* A refusal of policyd's, with hint and audit id. error: released. */
int ctl_fail_refused(json_t *error);

/* --- policyctl_again.c: what get showed, sent back ---------------------------- */

/* Makes arguments of an update that are what `get` showed, edited, ones that it takes: see there. Exit status; what is wrong
 * is told. */
int ctl_again(ctl_link_t *link, const json_t *operations, const json_t *operation, json_t *args,
              char *why, size_t size);

/* --- policyctl_policy.c: policy as files ------------------------------------ */

/* `policyctl export` and `policyctl apply` with the words behind them; exit status. format is for what apply answers. */
int ctl_policy_export(ctl_link_t *link, int count, char *const *words);
int ctl_policy_apply(ctl_link_t *link, ctl_format_t format, int count, char *const *words);
/* 1 if the word is one of these commands: their words are not policyctl's own options. */
int ctl_policy_is_command(const char *word);
/* Help of such a command, and its flags, one a line. */
void ctl_policy_help(FILE *to, const char *command);
void ctl_policy_words(FILE *to, const char *command);

/* --- policyctl_files.c: documents in files ---------------------------------- */

/* The document at `path`: "-", a file, or the *.json of a directory in the order of their names, joined. New reference, or NULL with why
 * set, which names both files where two hold the same object. */
json_t *ctl_files_read(const char *path, char *why, size_t size);
/* 1 if `path` is a directory, or is written as one. */
int ctl_files_is_directory(const char *path);
/* Writes the document to a file, or one file a section and connector into a directory, which may hold no other *.json. Files are replaced whole, readable for
 * the owner alone. 0, or -1 with why set. */
int ctl_files_write(const char *path, const json_t *document, char *why, size_t size);

/* --- policyctl_help.c: help and completion ---------------------------------- */

void ctl_help_usage(FILE *to);
void ctl_help_all(FILE *to, const json_t *operations);
/* 0 if there is no such resource. */
int ctl_help_resource(FILE *to, const json_t *operations, const char *resource);
void ctl_help_operation(FILE *to, const json_t *operation);
void ctl_help_bash(FILE *to);
/* Candidates for the next word after `words`, one a line. */
void ctl_help_words(FILE *to, const json_t *operations, int count, char *const *words);

/* --- policyctl.c ------------------------------------------------------------- */

/* The operation of a resource and verb ('-' and '_' alike), or NULL; verb NULL: the only one, if it is `get`. */
const json_t *ctl_find(const json_t *operations, const char *resource, const char *verb);

#endif
