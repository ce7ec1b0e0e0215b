/* policyctl connectors import, convert, add, catalog: see policyctl_import.h. */
#include "policyctl_import.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_general.h>
#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "oas_files.h"

#ifndef MCP_DATA_DIR
#define MCP_DATA_DIR "/usr/share/mod_mcp"
#endif
#define MAX_SLUG  32
#define MAX_DEPTH 16 /* folders below --dir */

/* --- words of the command line ----------------------------------------------------------- */

typedef struct options {
    oas_options_t oas;
    apr_array_header_t *include, *exclude, *classify, *accept, *allow;
    const char *source;
    const char *dir, *ref_root, *catalog, *query;
    const char *max_description, *max_schema;
    int is_fetched, accepts_all, is_dry_run;
} options_t;

typedef enum kind { TEXT, LIST, TRUTH } kind_t;

typedef struct flag {
    const char *verbs; /* with blanks around each */
    const char *name;
    kind_t kind;
    size_t at; /* offset in options_t of what it sets */
    const char *value;
    const char *help;
} flag_t;

#define AT(member) offsetof(options_t, member)
#define ALL " import convert add "

static const flag_t flags[] = {
    {" import ", "--dir", TEXT, AT(dir), "FOLDER", "every .json, .yaml and .yml below it, one connector each"},
    {" import convert add ", "--fetch", TRUTH, AT(is_fetched), NULL, "get the document from its address, under the rules of outbound calls"},
    {ALL, "--allow-origin", LIST, AT(allow), "ORIGIN", "an origin that --fetch may ask although it is private or not https"},
    {ALL, "--slug", TEXT, AT(oas.slug), "SLUG", "its name in rules and files; made of the title if not given"},
    {ALL, "--label", TEXT, AT(oas.label), "TEXT", "its name for people"},
    {ALL, "--base-url", TEXT, AT(oas.base_url), "URL", "where it is, instead of what the document says"},
    {ALL, "--server", TEXT, AT(oas.server), "URL|TEXT", "of several servers the one with this address or description"},
    {ALL, "--auth", TEXT, AT(oas.auth), "NAME", "of several security schemes this one"},
    {ALL, "--include", LIST, AT(include), "GLOB", "only operations whose id or \"METHOD /path\" fits; may be repeated"},
    {ALL, "--exclude", LIST, AT(exclude), "GLOB", "none of these; may be repeated"},
    {ALL, "--classify", LIST, AT(classify), "GLOB=CLASS", "read, write, destructive or forbidden; may be repeated, the last that fits counts"},
    {ALL, "--no-deprecated", TRUTH, AT(oas.no_deprecated), NULL, "leave deprecated operations out"},
    {ALL, "--max-description", TEXT, AT(max_description), "N", "characters of a tool's description (600)"},
    {ALL, "--max-schema", TEXT, AT(max_schema), "N", "bytes of an operation's schema (24576)"},
    {ALL, "--ref-root", TEXT, AT(ref_root), "FOLDER", "where references to other files may lead; the folder above the document's"},
    {" import add ", "--accept", LIST, AT(accept), "ID,...", "take these changes, which would be held back"},
    {" import add ", "--accept-all", TRUTH, AT(accepts_all), NULL, "take all of them"},
    {" import add ", "--dry-run", TRUTH, AT(is_dry_run), NULL, "tell what would change, and change nothing"},
    {" add catalog ", "--catalog", TEXT, AT(catalog), "FOLDER", "the folder of the index, instead of the installed one"},
    {" catalog ", "--query", TEXT, AT(query), "TEXT", "part of slug, name or category"},
};

#define FLAGS (sizeof flags / sizeof flags[0])

static const struct {
    const char *verb;
    const char *text;
} commands[] = {
    {"import",
     "policyctl connectors import FILE|-|URL - an API description into the catalog\n\n"
     "Takes OpenAPI 2.0, 3.0 and 3.1 as JSON or YAML, and connector files. A connector that is\n"
     "there is compared: what neither widens nor destroys takes effect, the rest is held back\n"
     "until it is accepted. All or nothing for a document.\n"},
    {"convert",
     "policyctl connectors convert FILE|-|URL - an API description as a connector file\n\n"
     "Writes the connector files that import would send, to be read and edited. policyd is not asked.\n"},
    {"add",
     "policyctl connectors add NAME - an application of the shipped catalog\n\n"
     "Imports the hand-written file of an application; with --fetch, where there is none, the\n"
     "vendor's own description. policyctl connectors catalog lists them.\n"},
    {"catalog", "policyctl connectors catalog - applications that can be added\n\n"},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

int ctl_import_is_command(const char *resource, const char *verb)
{
    size_t i;

    if (verb == NULL || strcmp(resource, "connectors") != 0) {
        return 0;
    }
    for (i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].verb, verb) == 0) {
            return 1;
        }
    }
    return 0;
}

int ctl_import_needs_link(const char *verb)
{
    return strcmp(verb, "import") == 0 || strcmp(verb, "add") == 0;
}

static int is_of(const flag_t *flag, const char *verb)
{
    const char *at = strstr(flag->verbs, verb);

    return at != NULL && at[-1] == ' ' && at[strlen(verb)] == ' ';
}

void ctl_import_help(FILE *to, const char *verb)
{
    size_t i;

    for (i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].verb, verb) == 0) {
            (void)fputs(commands[i].text, to);
        }
    }
    (void)fputs("\nArguments:\n", to);
    for (i = 0; i < FLAGS; i++) {
        if (is_of(&flags[i], verb)) {
            (void)fprintf(to, "  %s%s%s\n      %s\n", flags[i].name, flags[i].value == NULL ? "" : " ",
                          flags[i].value == NULL ? "" : flags[i].value, flags[i].help);
        }
    }
}

void ctl_import_words(FILE *to, const char *verb)
{
    size_t i;

    for (i = 0; i < FLAGS; i++) {
        if (is_of(&flags[i], verb)) {
            (void)fprintf(to, "%s\n", flags[i].name);
        }
    }
    (void)fputs("-o\n--socket\n--help\n", to);
}

static const flag_t *find_flag(const char *verb, const char *word, size_t bytes)
{
    size_t i;

    for (i = 0; i < FLAGS; i++) {
        if (strlen(flags[i].name) == bytes && strncmp(flags[i].name, word, bytes) == 0 && is_of(&flags[i], verb)) {
            return &flags[i];
        }
    }
    return NULL;
}

static int set_flag(options_t *options, const flag_t *flag, const char *value)
{
    void *at = (char *)options + flag->at;

    if (flag->kind == TRUTH) {
        *(int *)at = 1;
    } else if (flag->kind == TEXT) {
        *(const char **)at = value;
    } else {
        APR_ARRAY_PUSH(*(apr_array_header_t **)at, const char *) = value;
    }
    return 0;
}

/* A whole number above 0, or 0. */
static size_t number_of(const char *text)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);

    return text[0] >= '1' && text[0] <= '9' && *end == '\0' && value <= 10000000 ? (size_t)value : 0;
}

/* GLOB=CLASS; 0, or -1. */
static int add_class(apr_array_header_t *to, const char *text, apr_pool_t *pool)
{
    const char *klass = strrchr(text, '=');

    if (klass == NULL || klass == text || mcp_class_from_text(klass + 1) == MCP_CLASS_NONE) {
        return -1;
    }
    APR_ARRAY_PUSH(to, oas_classify_t) =
        (oas_classify_t){apr_pstrmemdup(pool, text, (apr_size_t)(klass - text)), klass + 1};
    return 0;
}

static int finish_options(options_t *options, apr_pool_t *pool, char *why, size_t size)
{
    apr_array_header_t *classes = apr_array_make(pool, 4, sizeof(oas_classify_t));
    int i;

    for (i = 0; i < options->classify->nelts; i++) {
        if (add_class(classes, APR_ARRAY_IDX(options->classify, i, const char *), pool) != 0) {
            (void)snprintf(why, size, "--classify takes GLOB=CLASS, with read, write, destructive or forbidden");
            return -1;
        }
    }
    options->oas.include = options->include;
    options->oas.exclude = options->exclude;
    options->oas.classify = classes;
    options->oas.max_description = options->max_description != NULL ? number_of(options->max_description) : 0;
    options->oas.max_schema = options->max_schema != NULL ? number_of(options->max_schema) : 0;
    if ((options->max_description != NULL && options->oas.max_description == 0) ||
        (options->max_schema != NULL && options->oas.max_schema == 0)) {
        (void)snprintf(why, size, "--max-description and --max-schema take a whole number above 0");
        return -1;
    }
    return 0;
}

static int read_words(const char *verb, int count, char *const *words, options_t *options, apr_pool_t *pool,
                      char *why, size_t size)
{
    apr_array_header_t **const lists[] = {&options->include, &options->exclude, &options->classify, &options->accept,
                                          &options->allow};
    size_t k;
    int i;

    memset(options, 0, sizeof *options);
    for (k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        *lists[k] = apr_array_make(pool, 4, sizeof(const char *));
    }
    for (i = 0; i < count; i++) {
        size_t bytes = strcspn(words[i], "=");
        const flag_t *flag = words[i][0] == '-' && words[i][1] != '\0' ? find_flag(verb, words[i], bytes) : NULL;
        const char *value = words[i][bytes] == '=' ? words[i] + bytes + 1 : NULL;

        if (flag == NULL && (words[i][0] != '-' || words[i][1] == '\0') && options->source == NULL) {
            options->source = words[i];
            continue;
        }
        if (flag == NULL || (flag->kind == TRUTH && value != NULL)) {
            (void)snprintf(why, size, "%.60s is no argument of connectors %s", words[i], verb);
            return -1;
        }
        if (flag->kind != TRUTH && value == NULL) {
            value = ++i < count ? words[i] : NULL;
        }
        if (flag->kind != TRUTH && value == NULL) {
            (void)snprintf(why, size, "%s needs a value", flag->name);
            return -1;
        }
        (void)set_flag(options, flag, value);
    }
    return finish_options(options, pool, why, size);
}

/* --- one document --------------------------------------------------------------------------- */

/* Ids of all --accept flags, which may have commas. */
static json_t *accepted(const options_t *options)
{
    json_t *ids = json_array();
    int i;

    if (options->accepts_all) {
        json_decref(ids);
        return json_string("all");
    }
    for (i = 0; i < options->accept->nelts; i++) {
        const char *text = APR_ARRAY_IDX(options->accept, i, const char *);

        while (*text != '\0') {
            size_t bytes = strcspn(text, ",");

            if (bytes > 0) {
                (void)json_array_append_new(ids, json_stringn(text, bytes)); /* no text: is refused */
            }
            text += bytes + (text[bytes] == ',');
        }
    }
    if (json_array_size(ids) == 0) {
        json_decref(ids);
        return NULL;
    }
    return ids;
}

/* At most so many bytes of a text as JSON, or NULL. */
static json_t *cut_text(const char *text, size_t max)
{
    size_t bytes = text == NULL ? 0 : strlen(text);

    if (bytes > max) {
        for (bytes = max; bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80; bytes--) {
        }
    }
    return bytes == 0 ? NULL : json_stringn(text, bytes);
}

/* Arguments of connectors import; new reference. */
static json_t *import_args(const options_t *options, const ctl_converted_t *converted, const char *address)
{
    json_t *source = json_pack("{s:o*,s:o*,s:s,s:o*}", "title", cut_text(mcp_json_str(converted->report, "title"), 200),
                               "version", cut_text(mcp_json_str(converted->report, "version"), 100), "sha256",
                               converted->sha256, "address", cut_text(address, 500));

    return json_pack("{s:O,s:o*,s:o*,s:o*}", "connectors", converted->files, "accept", accepted(options), "source", source,
                     "dry_run", options->is_dry_run ? json_true() : NULL);
}

/* Why policyd refused, as one text; error: released. */
static void refusal(json_t *error, char *why, size_t size)
{
    const char *hint = mcp_json_str(error, "hint");
    const char *message = mcp_json_str(error, "message");

    (void)snprintf(why, size, "%.300s%s%.180s", message != NULL ? message : "refused", hint != NULL ? " - " : "",
                   hint != NULL ? hint : "");
    json_decref(error);
}

/* Converts and sends. *ret: {"conversion"?,"import"}, new reference. 0, or -1 with why. */
static int import_one(ctl_link_t *link, const ctl_source_t *source, const options_t *options, apr_pool_t *pool,
                      json_t **ret, char *why, size_t size)
{
    ctl_converted_t converted;
    json_t *args;
    json_t *answer = NULL;
    json_t *error = NULL;
    int status;

    if (ctl_convert(source, &options->oas, pool, &converted, why, size) != 0) {
        return -1;
    }
    args = import_args(options, &converted, source->is_fetched ? source->name : NULL);
    status = ctl_link_call(link, "connectors__import", args, &answer, &error, why, size);
    json_decref(args);
    if (status == 0 && error != NULL) {
        refusal(error, why, size);
        status = -1;
    }
    if (status == 0) {
        *ret = json_pack("{s:O*,s:o}", "conversion", converted.report, "import", answer);
    }
    ctl_converted_clear(&converted);
    return status;
}

static int flush(void)
{
    return fflush(stdout) != 0 || ferror(stdout) ? ctl_fail("standard output can't be written") : CTL_DONE;
}

static int run_import_one(ctl_link_t *link, ctl_format_t format, const ctl_source_t *source, const options_t *options,
                          apr_pool_t *pool)
{
    char why[CTL_WHY] = "";
    json_t *result = NULL;

    if (import_one(link, source, options, pool, &result, why, sizeof why) != 0) {
        return ctl_fail(why);
    }
    if (format == CTL_TABLE) {
        ctl_report_conversion(stdout, json_object_get(result, "conversion"));
        ctl_report_import(stdout, json_object_get(result, "import"));
    } else {
        ctl_print(stdout, result, format);
    }
    json_decref(result);
    return flush();
}

/* --- a folder of documents ------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the documents of a folder and those below it; names that begin with a dot and links are passed over. */
static void collect(const char *folder, int depth, apr_array_header_t *found, apr_pool_t *pool)
{
    apr_dir_t *dir;
    apr_finfo_t info;

    if (depth > MAX_DEPTH || apr_dir_open(&dir, folder, pool) != APR_SUCCESS) {
        return;
    }
    for (;;) {
        apr_status_t status = apr_dir_read(&info, APR_FINFO_NAME | APR_FINFO_TYPE, dir);
        const char *path;

        if (status != APR_SUCCESS && status != APR_INCOMPLETE) {
            break;
        }
        if (info.name == NULL || info.name[0] == '.') {
            continue;
        }
        path = apr_pstrcat(pool, folder, "/", info.name, (char *)NULL);
        if (info.filetype == APR_DIR) {
            collect(path, depth + 1, found, pool);
        } else if (info.filetype == APR_REG && oas_files_is_description(info.name)) {
            APR_ARRAY_PUSH(found, const char *) = path;
        }
    }
    (void)apr_dir_close(dir);
}

/* A path below the folder as a slug: its words joined by dashes, without those that say nothing. */
static const char *slug_of(const char *path, apr_pool_t *pool)
{
    static const char *const idle[] = {"openapi", "swagger", "api", "spec", "index"};
    char *slug = apr_pcalloc(pool, strlen(path) + MAX_SLUG);
    size_t count = 0;
    size_t i;
    const char *end = strrchr(path, '.');
    const char *from = path;

    for (i = 0; end != NULL && i < sizeof idle / sizeof idle[0]; i++) {
        size_t bytes = strlen(idle[i]);

        if (end >= path + bytes + 1 && strncmp(end - bytes, idle[i], bytes) == 0 && end[-(int)bytes - 1] == '/') {
            end -= bytes + 1; /* FOLDER/openapi.json is FOLDER */
            break;
        }
    }
    for (; *from != '\0' && from != end; from++) {
        char c = (char)(*from >= 'A' && *from <= 'Z' ? *from + 32 : *from);

        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            slug[count++] = c;
        } else if (count > 0 && slug[count - 1] != '-') {
            slug[count++] = '-';
        }
    }
    while (count > 0 && slug[count - 1] == '-') {
        count--;
    }
    slug[count] = '\0';
    if (count > MAX_SLUG) { /* what was cut off still tells two apart */
        char hash[MCP_DIGEST_HEX + 1];

        mcp_digest_hex(slug, count, hash);
        count = MAX_SLUG - 7;
        while (slug[count - 1] == '-') {
            count--;
        }
        (void)apr_snprintf(slug + count, 8, "-%.6s", hash);
    }
    return slug;
}

typedef struct tally {
    long long documents, refused, operations;
    json_t *rows; /* {"document","slug","operations"|"why"} */
} tally_t;

static void show_progress(const tally_t *tally, int all, const char *name)
{
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r\033[K[%lld/%d] ", tally->documents + tally->refused, all);
        ctl_print_text(stderr, name);
        (void)fflush(stderr);
    }
}

static void end_progress(void)
{
    if (isatty(STDERR_FILENO)) {
        (void)fputs("\r\033[K", stderr);
    }
}

static void note(tally_t *tally, const char *name, const char *slug, const json_t *result, const char *why,
                 ctl_format_t format)
{
    json_int_t operations = mcp_json_int(json_object_get(result, "import"), "operations", 0);

    tally->documents += result != NULL;
    tally->refused += result == NULL;
    tally->operations += operations;
    (void)json_array_append_new(tally->rows, result != NULL ? json_pack("{s:s,s:s,s:I}", "document", name, "slug", slug,
                                                                        "operations", operations)
                                                            : json_pack("{s:s,s:s,s:s}", "document", name, "slug",
                                                                        slug, "why", why)); /* a report */
    if (format == CTL_TABLE) {
        end_progress();
        (void)fputs("  ", stdout);
        ctl_print_text(stdout, slug);
        if (result != NULL) {
            (void)printf(": %lld operations\n", (long long)operations);
        } else {
            (void)fputs(": refused: ", stdout);
            ctl_print_text(stdout, why);
            (void)fputs("\n", stdout);
        }
    }
}

static void import_listed(ctl_link_t *link, ctl_format_t format, const options_t *options,
                          const apr_array_header_t *found, tally_t *tally, apr_pool_t *pool)
{
    apr_hash_t *slugs = apr_hash_make(pool);
    int i;

    for (i = 0; i < found->nelts; i++) {
        const char *path = APR_ARRAY_IDX(found, i, const char *);
        const char *name = path + strlen(options->dir) + 1;
        const char *slug = slug_of(name, pool);
        const char *other = apr_hash_get(slugs, slug, APR_HASH_KEY_STRING);
        char why[CTL_WHY] = "";
        ctl_source_t source = {path, 0, options->ref_root != NULL ? options->ref_root : options->dir, NULL};
        options_t own = *options;
        json_t *result = NULL;
        apr_pool_t *round;

        show_progress(tally, found->nelts, name);
        own.oas.slug = slug;
        if (other != NULL) {
            (void)snprintf(why, sizeof why, "%.200s has given the slug %s already; import it alone with --slug", other, slug);
        } else if (apr_pool_create(&round, pool) == APR_SUCCESS) { /* a document at a time */
            if (import_one(link, &source, &own, round, &result, why, sizeof why) == 0) {
                apr_hash_set(slugs, slug, APR_HASH_KEY_STRING, name);
            }
            apr_pool_destroy(round);
        }
        note(tally, name, slug, result, why, format);
        json_decref(result);
    }
    end_progress();
}

static int run_import_dir(ctl_link_t *link, ctl_format_t format, const options_t *options, apr_pool_t *pool)
{
    apr_array_header_t *found = apr_array_make(pool, 512, sizeof(const char *));
    tally_t tally = {0, 0, 0, json_array()};
    int status;

    collect(options->dir, 0, found, pool);
    if (found->nelts == 0) {
        json_decref(tally.rows);
        return ctl_fail("there are no .json, .yaml or .yml files in that folder");
    }
    qsort(found->elts, (size_t)found->nelts, sizeof(const char *), by_text);
    import_listed(link, format, options, found, &tally, pool);
    if (format == CTL_TABLE) {
        json_decref(tally.rows);
        (void)printf("%lld of %d documents imported, %lld operations in force; %lld refused\n", tally.documents,
                     found->nelts, tally.operations, tally.refused);
    } else {
        json_t *all = json_pack("{s:o,s:I,s:I,s:I}", "items", tally.rows, "imported", (json_int_t)tally.documents,
                                "refused", (json_int_t)tally.refused, "operations", (json_int_t)tally.operations);

        ctl_print(stdout, all, format);
        json_decref(all);
    }
    status = flush();
    return status == CTL_DONE && tally.refused > 0 ? CTL_FAILED : status;
}

/* --- commands ----------------------------------------------------------------------------------- */

static int is_address(const char *text)
{
    return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
}

/* Why the words don't go together, or NULL. */
static const char *contradiction(const options_t *options, const char *verb)
{
    if (options->dir != NULL && (options->source != NULL || options->oas.slug != NULL || options->oas.label != NULL ||
                                 options->is_fetched)) {
        return "--dir goes with neither a document, --slug, --label nor --fetch";
    }
    if (options->dir == NULL && options->source == NULL && strcmp(verb, "catalog") != 0) {
        return strcmp(verb, "add") == 0 ? "name an application; policyctl connectors catalog lists them"
                                        : "name a document: a file, - or, with --fetch, its address";
    }
    if (strcmp(verb, "add") == 0 || options->source == NULL) {
        return NULL;
    }
    if (is_address(options->source) && !options->is_fetched) {
        return "an address is only fetched with --fetch";
    }
    return options->is_fetched && !is_address(options->source) ? "--fetch takes an address: https://…" : NULL;
}

static int run_convert(ctl_format_t format, const ctl_source_t *source, const options_t *options, apr_pool_t *pool)
{
    char why[CTL_WHY] = "";
    ctl_converted_t converted;
    char *text;

    if (ctl_convert(source, &options->oas, pool, &converted, why, sizeof why) != 0) {
        return ctl_fail(why);
    }
    if (format == CTL_TABLE) {
        ctl_report_conversion(stderr, converted.report);
    }
    text = json_dumps(json_array_size(converted.files) == 1 ? json_array_get(converted.files, 0) : converted.files,
                      JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    ctl_converted_clear(&converted);
    if (text == NULL) {
        return ctl_fail("out of memory");
    }
    (void)puts(text);
    free(text);
    return flush();
}

static int run_catalog(ctl_format_t format, const apr_array_header_t *rows, const options_t *options, apr_pool_t *pool)
{
    json_t *list = ctl_index_list(rows, options->query, pool);

    ctl_print(stdout, list, format);
    json_decref(list);
    return flush();
}

/* The source of an application in the index; 0, or -1 with why. */
static int find_application(const apr_array_header_t *rows, options_t *options, const char *dir, apr_pool_t *pool,
                            ctl_source_t *source, char *why, size_t size)
{
    const ctl_index_row_t *row = ctl_index_find(rows, options->source);

    if (row == NULL) {
        (void)snprintf(why, size, "%.100s is not in the catalog; policyctl connectors catalog --query lists what is", options->source);
        return -1;
    }
    if (row->file[0] != '\0' && strchr(row->file, '/') == NULL) {
        source->name = apr_pstrcat(pool, dir, "/", row->file, (char *)NULL);
        return 0;
    }
    if (row->address[0] == '\0') {
        (void)snprintf(why, size, "no address of a description of %.100s is known; import its document by name", row->name);
        return -1;
    }
    if (!options->is_fetched) {
        (void)snprintf(why, size, "%.100s has no file of its own here; --fetch gets %.300s", row->name, row->address);
        return -1;
    }
    source->name = row->address;
    source->is_fetched = 1;
    options->oas.slug = options->oas.slug != NULL ? options->oas.slug : row->slug;
    options->oas.label = options->oas.label != NULL ? options->oas.label : row->name;
    return 0;
}

static int run(ctl_link_t *link, ctl_format_t format, const char *verb, options_t *options, apr_pool_t *pool)
{
    const char *dir = options->catalog != NULL ? options->catalog : MCP_DATA_DIR "/connectors";
    ctl_source_t source = {options->source, options->is_fetched, options->ref_root, options->allow};
    const apr_array_header_t *rows = NULL;
    char why[CTL_WHY] = "";

    if (strcmp(verb, "add") == 0 || strcmp(verb, "catalog") == 0) {
        rows = ctl_index_read(dir, pool, why, sizeof why);
        if (rows == NULL) {
            return ctl_fail(why);
        }
    }
    if (strcmp(verb, "catalog") == 0) {
        return run_catalog(format, rows, options, pool);
    }
    if (strcmp(verb, "convert") == 0) {
        return run_convert(format, &source, options, pool);
    }
    if (rows != NULL) {
        source.is_fetched = 0;
        if (find_application(rows, options, dir, pool, &source, why, sizeof why) != 0) {
            return ctl_fail(why);
        }
    }
    return options->dir != NULL ? run_import_dir(link, format, options, pool)
                                : run_import_one(link, format, &source, options, pool);
}

int ctl_import_run(ctl_link_t *link, ctl_format_t format, const char *verb, int count, char *const *words)
{
    char why[CTL_WHY] = "";
    const char *wrong;
    options_t options;
    apr_pool_t *pool;
    int status;

    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS || mcp_hash_init() != MCP_OK) {
        return ctl_fail("out of memory");
    }
    if (read_words(verb, count, words, &options, pool, why, sizeof why) != 0) {
        return ctl_fail_usage_at("connectors", why);
    }
    wrong = contradiction(&options, verb);
    status = wrong != NULL ? ctl_fail_usage_at("connectors", wrong) : run(link, format, verb, &options, pool);
    apr_pool_destroy(pool);
    apr_terminate();
    return status;
}
