/* The whole of a conversion: see oas.h. Operations are found, named, grouped by where they are served, and converted one by one; what can't be
 * taken is left out with its reason, so that one odd operation does not cost a document. */
#include "oas_conv.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

#define MAX_SLUG 32

/* --- what the rooms share ----------------------------------------------------------------------- */

static apr_status_t let_go(void *value)
{
    json_decref(value);
    return APR_SUCCESS;
}

json_t *oas_keep(apr_pool_t *pool, json_t *value)
{
    if (value != NULL) {
        apr_pool_cleanup_register(pool, value, let_go, apr_pool_cleanup_null);
    }
    return value;
}

void oas_note(oas_conv_t *conv, json_t *list, const char *where, const char *what, const char *why)
{
    (void)conv;
    if (json_array_size(list) < OAS_MAX_NOTES) {
        (void)json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "where", where != NULL ? where : "document", "what", what, "why", why));
    }
}

const char *oas_where(const oas_conv_t *conv, const oas_found_t *found)
{
    return apr_pstrcat(conv->pool, found->method, " ", found->path, (char *)NULL);
}

const char *oas_describe(oas_conv_t *conv, const json_t *value, const char *member, size_t limit)
{
    const char *text = mcp_json_str(value, member);
    size_t cut = 0;

    if (text == NULL) {
        return NULL;
    }
    text = oas_text(text, limit, conv->pool, &cut);
    conv->counts.cut_text += cut;
    conv->cut_descriptions += cut > 0;
    return text;
}

int oas_fits(const char *glob, const char *text)
{
    const char *star = NULL;
    const char *mark = text;

    while (*text != '\0') {
        if (*glob == '*') {
            star = glob++;
            mark = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++;
            text++;
        } else if (star != NULL) {
            glob = star + 1;
            text = ++mark;
        } else {
            return 0;
        }
    }
    while (*glob == '*') {
        glob++;
    }
    return *glob == '\0';
}

/* --- finding operations ---------------------------------------------------------------------------- */

static int fits_any(const oas_conv_t *conv, const apr_array_header_t *globs, const oas_found_t *found)
{
    int i;

    for (i = 0; i < globs->nelts; i++) {
        const char *glob = APR_ARRAY_IDX(globs, i, const char *);

        if (oas_fits(glob, found->id) || oas_fits(glob, oas_where(conv, found))) {
            return 1;
        }
    }
    return 0;
}

static void find_in_item(oas_conv_t *conv, const char *path, oas_at_t item)
{
    static const char *const methods[][2] = {{"get", "GET"},         {"put", "PUT"},   {"post", "POST"},   {"delete", "DELETE"},
                                             {"options", "OPTIONS"}, {"head", "HEAD"}, {"patch", "PATCH"}, {"trace", "TRACE"}};
    size_t i;

    for (i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        oas_found_t found = {methods[i][1], path, item, oas_member(conv->doc, item, methods[i][0]), NULL, NULL};

        if (!json_is_object(found.operation.value)) {
            continue;
        }
        if (strcmp(found.method, "TRACE") == 0) {
            oas_note(conv, conv->left_out, oas_where(conv, &found), "the operation", "TRACE is not sent");
            continue;
        }
        APR_ARRAY_PUSH(conv->found, oas_found_t) = found;
    }
}

static void find_all(oas_conv_t *conv)
{
    oas_at_t paths = oas_member(conv->doc, oas_doc_root(conv->doc), "paths");
    const char *path;
    json_t *value;

    json_object_foreach(oas_iterable(paths.value), path, value)
    {
        oas_at_t item = {value, paths.file};
        char why[200] = "";

        if (strncasecmp(path, "x-", 2) == 0 || !json_is_object(value)) {
            continue;
        }
        if (oas_resolve(conv->doc, item, &item, NULL, why, sizeof why) != OAS_OK) {
            oas_note(conv, conv->left_out, path, "the path", why);
            continue;
        }
        find_in_item(conv, path, item);
    }
}

/* Leaves out what is not wanted. Ids are given before, so that they are the same whatever is left out. */
static void filter(oas_conv_t *conv)
{
    apr_array_header_t *kept = apr_array_make(conv->pool, conv->found->nelts + 1, sizeof(oas_found_t));
    const oas_options_t *options = conv->options;
    int i;

    for (i = 0; i < conv->found->nelts; i++) {
        const oas_found_t *found = &APR_ARRAY_IDX(conv->found, i, oas_found_t);
        int is_old = options->no_deprecated && json_is_true(json_object_get(found->operation.value, "deprecated"));

        if (is_old || (options->include != NULL && options->include->nelts > 0 && !fits_any(conv, options->include, found)) ||
            (options->exclude != NULL && fits_any(conv, options->exclude, found))) {
            continue;
        }
        APR_ARRAY_PUSH(kept, oas_found_t) = *found;
    }
    conv->found = kept;
}

/* --- connectors ----------------------------------------------------------------------------------------- */

typedef struct origin {
    const char *key;
    const oas_server_t *server; /* the first of it */
    const char *path;           /* that all its servers begin with */
    apr_array_header_t *found;  /* of const oas_found_t * */
} origin_t;

/* The part of two paths that is the same, by whole segments. */
static const char *common_path(const char *a, const char *b, apr_pool_t *pool)
{
    size_t same = 0;
    size_t i;

    for (i = 0;; i++) {
        if ((a[i] == '\0' || a[i] == '/') && (b[i] == '\0' || b[i] == '/')) {
            same = i;
        }
        if (a[i] != b[i] || a[i] == '\0') {
            return apr_pstrmemdup(pool, a, same);
        }
    }
}

static apr_array_header_t *group(oas_conv_t *conv)
{
    apr_array_header_t *origins = apr_array_make(conv->pool, 4, sizeof(origin_t *));
    apr_hash_t *by_key = apr_hash_make(conv->pool);
    int i;

    for (i = 0; i < conv->found->nelts; i++) {
        oas_found_t *found = &APR_ARRAY_IDX(conv->found, i, oas_found_t);
        const char *key;
        origin_t *origin;

        found->server = oas_servers_of(conv, found);
        key = strchr(found->server->path, '{') != NULL
                  ? apr_pstrcat(conv->pool, found->server->authority, found->server->path, (char *)NULL)
                  : found->server->authority;
        origin = apr_hash_get(by_key, key, APR_HASH_KEY_STRING);
        if (origin == NULL) {
            origin = apr_pcalloc(conv->pool, sizeof(*origin));
            origin->key = key;
            origin->server = found->server;
            origin->path = found->server->path;
            origin->found = apr_array_make(conv->pool, 16, sizeof(oas_found_t *));
            apr_hash_set(by_key, key, APR_HASH_KEY_STRING, origin);
            APR_ARRAY_PUSH(origins, origin_t *) = origin;
        }
        if (strchr(found->server->path, '{') == NULL) {
            origin->path = common_path(origin->path, found->server->path, conv->pool);
        }
        APR_ARRAY_PUSH(origin->found, const oas_found_t *) = found;
    }
    if (origins->nelts == 0) {
        origin_t *origin = apr_pcalloc(conv->pool, sizeof(*origin));

        origin->server = oas_servers_of(conv, NULL);
        origin->path = origin->server->path;
        origin->found = apr_array_make(conv->pool, 1, sizeof(oas_found_t *));
        APR_ARRAY_PUSH(origins, origin_t *) = origin;
    }
    return origins;
}

/* The title as a slug. */
static const char *slug_of(const char *title, apr_pool_t *pool)
{
    char *slug = apr_pcalloc(pool, strlen(title) + 16);
    size_t count = 0;

    for (; *title != '\0' && count < MAX_SLUG - 3; title++) {
        if (isalnum((unsigned char)*title) && (unsigned char)*title < 128) {
            slug[count++] = (char)tolower((unsigned char)*title);
        } else if (count > 0 && slug[count - 1] != '-') {
            slug[count++] = '-';
        }
    }
    while (count > 0 && slug[count - 1] == '-') {
        count--;
    }
    slug[count] = '\0';
    return count > 0 ? slug : "imported";
}

static json_t *make_file(oas_conv_t *conv, const origin_t *origin, const char *slug, const char *label, int number)
{
    json_t *file = json_object();
    json_t *operations = json_array();
    const json_t *info = json_object_get(oas_doc_root(conv->doc).value, "info");
    const char *text = oas_describe(conv, info, "description", 500);
    int i;

    (void)json_object_set_new(file, "slug", number == 1 ? json_string(slug) : json_sprintf("%.*s-%d", MAX_SLUG - 4, slug, number));
    (void)json_object_set_new(file, "label", number == 1 ? json_string(label) : json_sprintf("%.80s (%.15s)", label, origin->server->authority + 8));
    if (text != NULL && text[0] != '\0') {
        (void)json_object_set_new(file, "description", json_string(text));
    }
    (void)json_object_set_new(file, "base_url", json_sprintf("%s%s", origin->server->authority, origin->path));
    if (json_object_size(origin->server->variables) > 0) {
        (void)json_object_set_new(file, "variables", json_incref(origin->server->variables));
    }
    (void)json_object_set_new(file, "auth", json_incref(conv->scheme.auth));
    for (i = 0; i < origin->found->nelts; i++) {
        const oas_found_t *found = APR_ARRAY_IDX(origin->found, i, const oas_found_t *);
        json_t *operation = oas_operation(conv, found, found->server->path + strlen(origin->path));

        if (operation != NULL) {
            (void)json_array_append_new(operations, operation);
        }
    }
    (void)json_object_set_new(file, "operations", operations);
    return file;
}

/* --- the report ------------------------------------------------------------------------------------------- */

static void count_in(json_t *counts, const char *name)
{
    (void)json_object_set_new(counts, name, json_integer(json_integer_value(json_object_get(counts, name)) + 1));
}

static json_t *report(oas_conv_t *conv, const json_t *files)
{
    const json_t *root = oas_doc_root(conv->doc).value;
    const json_t *info = json_object_get(root, "info");
    const char *version = mcp_json_str(root, conv->version == 20 ? "swagger" : "openapi");
    const char *type = mcp_json_str(conv->scheme.auth, "type");
    const char *title = oas_describe(conv, info, "title", 200);
    json_t *by_class = json_object();
    json_t *methods = json_object();
    json_t *names = json_array();
    json_int_t operations = 0;
    json_t *file;
    json_t *operation;
    size_t i;
    size_t k;
    int n;

    json_array_foreach(oas_iterable(files), i, file)
    {
        json_array_foreach(json_object_get(file, "operations"), k, operation)
        {
            const char *klass = mcp_json_str(operation, "classification");
            const char *method = mcp_json_str(operation, "method");

            count_in(by_class, klass != NULL ? klass : mcp_class_text(mcp_class_of_method(method)));
            count_in(methods, method);
            operations++;
        }
    }
    for (n = 0; n < oas_doc_files(conv->doc)->nelts; n++) {
        (void)json_array_append_new(names, json_string(APR_ARRAY_IDX(oas_doc_files(conv->doc), n, const char *)));
    }
    return json_pack("{s:s,s:s*,s:s,s:o,s:I,s:o,s:o,s:{s:s?,s:s,s:O},s:O,s:O,s:{s:I,s:I},s:{s:I,s:I,s:I},s:I}", "title",
                     title != NULL ? title : "", "version", oas_describe(conv, info, "version", 60), "openapi", version != NULL ? version : "2.0", "files",
                     names, "operations", operations, "by_class", by_class, "methods", methods, "auth", "chosen",
                     conv->scheme.name, "type", type, "others", conv->others, "left_out", conv->left_out, "changed",
                     conv->changed, "ids", "missing", (json_int_t)conv->ids_missing, "duplicate",
                     (json_int_t)conv->ids_duplicate, "cut", "descriptions", (json_int_t)conv->cut_descriptions,
                     "characters", (json_int_t)conv->counts.cut_text, "schemas", (json_int_t)conv->counts.cut_schemas,
                     "dangling", (json_int_t)conv->counts.dangling);
}

/* --- the whole ------------------------------------------------------------------------------------------------ */

/* 20, 30, 31, or 0. A version that was written as a number counts too. */
static int version_of(const json_t *root)
{
    const json_t *swagger = json_object_get(root, "swagger");
    const json_t *openapi = json_object_get(root, "openapi");
    const char *text = json_string_value(openapi);

    if (json_is_string(swagger) ? strncmp(json_string_value(swagger), "2", 1) == 0 : json_is_number(swagger) && json_number_value(swagger) >= 2) {
        return 20;
    }
    if (text != NULL && strncmp(text, "3.", 2) == 0) {
        return text[2] == '0' ? 30 : 31;
    }
    return json_is_number(openapi) ? (json_number_value(openapi) < 3.1 ? 30 : 31) : 0;
}

static void note_ignored(oas_conv_t *conv)
{
    const json_t *root = oas_doc_root(conv->doc).value;
    size_t hooks = json_object_size(json_object_get(root, "webhooks"));

    if (hooks > 0) {
        oas_note(conv, conv->left_out, "webhooks", apr_psprintf(conv->pool, "%lu webhooks", (unsigned long)hooks),
                 "they are requests that the application makes");
    }
}

int oas_convert(oas_doc_t *doc, const oas_options_t *options, apr_pool_t *pool, json_t **ret_files,
                json_t **ret_report, char *why, size_t size)
{
    oas_conv_t conv;
    apr_array_header_t *origins;
    const char *title;
    json_t *files;
    int i;

    memset(&conv, 0, sizeof conv);
    conv.doc = doc;
    conv.options = options;
    conv.pool = pool;
    conv.version = version_of(oas_doc_root(doc).value);
    conv.found = apr_array_make(pool, 64, sizeof(oas_found_t));
    conv.left_out = oas_keep(pool, json_array());
    conv.changed = oas_keep(pool, json_array());
    conv.others = oas_keep(pool, json_array());
    if (conv.version == 0) {
        return oas_fail(why, size, "it is neither OpenAPI 3 nor Swagger 2.0: it has no member openapi or swagger of such a version");
    }
    find_all(&conv);
    oas_ids_give(&conv);
    filter(&conv);
    if (conv.found->nelts > OAS_MAX_OPERATIONS) {
        return oas_fail(why, size, "it has %d operations, and a connector at most %d: choose with --include what people need",
                        conv.found->nelts, OAS_MAX_OPERATIONS);
    }
    oas_auth_choose(&conv);
    note_ignored(&conv);
    origins = group(&conv);
    title = oas_describe(&conv, json_object_get(oas_doc_root(doc).value, "info"), "title", 90);
    title = title != NULL && title[0] != '\0' ? title : "Imported";
    files = json_array();
    for (i = 0; i < origins->nelts; i++) {
        (void)json_array_append_new(files, make_file(&conv, APR_ARRAY_IDX(origins, i, const origin_t *),
                                                     options->slug != NULL ? options->slug : slug_of(title, pool),
                                                     options->label != NULL ? options->label : title, i + 1));
    }
    *ret_report = report(&conv, files);
    *ret_files = files;
    if (*ret_report == NULL) {
        json_decref(files);
        return oas_fail(why, size, "out of memory");
    }
    return OAS_OK;
}
