/* One API description, from its bytes to connector files: see policyctl_import.h. */
#include "policyctl_import.h"

#include <string.h>

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "oas_files.h"
#include "policyctl_fetch.h"

/* --- bytes ------------------------------------------------------------------------------- */

static int fail(char *why, size_t size, const char *name, const char *what)
{
    (void)snprintf(why, size, "%.300s: %s", name, what);
    return -1;
}

/* Reads to the end, a piece at a time: standard input has no size. */
static int read_stream(apr_file_t *file, const char *name, apr_pool_t *pool, const char **ret, size_t *ret_bytes,
                       char *why, size_t size)
{
    size_t room = 256 * 1024;
    size_t count = 0;
    char *text = apr_palloc(pool, room + 1);

    for (;;) {
        apr_size_t got = room - count;
        apr_status_t status = apr_file_read_full(file, text + count, got, &got);

        count += got;
        if (status == APR_EOF || got == 0) {
            text[count] = '\0';
            *ret = text;
            *ret_bytes = count;
            return 0;
        }
        if (status != APR_SUCCESS) {
            return fail(why, size, name, "can't be read");
        }
        if (count == room) {
            char *larger;

            if (room >= OAS_MAX_BYTES) {
                return fail(why, size, name, "is larger than 64 MiB");
            }
            larger = apr_palloc(pool, 2 * room + 1);
            memcpy(larger, text, count);
            text = larger;
            room *= 2;
        }
    }
}

static int read_source(const ctl_source_t *source, apr_pool_t *pool, const char **ret, size_t *ret_bytes, char *why,
                       size_t size)
{
    apr_file_t *file = NULL;
    apr_status_t status;
    int result;

    if (source->is_fetched) {
        return ctl_fetch(source->name, source->allow, pool, ret, ret_bytes, why, size);
    }
    status = strcmp(source->name, "-") == 0
                 ? apr_file_open_stdin(&file, pool)
                 : apr_file_open(&file, source->name, APR_FOPEN_READ, APR_FPROT_OS_DEFAULT, pool);
    if (status != APR_SUCCESS) {
        char text[128];

        return fail(why, size, source->name, apr_strerror(status, text, sizeof text));
    }
    result = read_stream(file, source->name, pool, ret, ret_bytes, why, size);
    (void)apr_file_close(file);
    return result;
}

/* --- values ------------------------------------------------------------------------------- */

/* A connector file of our own form needs no conversion. */
static int is_connector_file(const json_t *root)
{
    return json_is_object(root) && json_is_array(json_object_get(root, "operations")) &&
           json_is_string(json_object_get(root, "slug"));
}

/* Takes it as it is, but for the name it is to have here. root: stolen. */
static int take_file(json_t *root, const oas_options_t *options, ctl_converted_t *ret)
{
    int failed = 0;

    if (options->slug != NULL) {
        failed |= json_object_set_new(root, "slug", json_string(options->slug));
    }
    if (options->label != NULL) {
        failed |= json_object_set_new(root, "label", json_string(options->label));
    }
    if (options->base_url != NULL) {
        failed |= json_object_set_new(root, "base_url", json_string(options->base_url));
    }
    ret->files = json_pack("[o]", root);
    return failed == 0 && ret->files != NULL ? 0 : -1;
}

/* root: stolen. */
static int convert(const ctl_source_t *source, json_t *root, const oas_options_t *options, apr_pool_t *pool,
                   ctl_converted_t *ret, char *why, size_t size)
{
    int is_file = !source->is_fetched && strcmp(source->name, "-") != 0;
    oas_files_t *files = NULL;
    oas_doc_t *doc = NULL;
    char reason[CTL_WHY] = "";

    if (is_file && oas_files_make(source->name, source->ref_root, pool, &files, reason, sizeof reason) != OAS_OK) {
        json_decref(root);
        return fail(why, size, source->name, reason);
    }
    if (oas_doc_make(root, is_file ? source->name : "", is_file ? oas_files_load : NULL, files, pool, &doc, reason,
                     sizeof reason) != OAS_OK ||
        oas_convert(doc, options, pool, &ret->files, &ret->report, reason, sizeof reason) != OAS_OK) {
        return fail(why, size, source->name, reason);
    }
    return 0;
}

int ctl_convert(const ctl_source_t *source, const oas_options_t *options, apr_pool_t *pool, ctl_converted_t *ret,
                char *why, size_t size)
{
    const char *bytes = NULL;
    size_t count = 0;
    json_t *root = NULL;
    char reason[CTL_WHY] = "";

    memset(ret, 0, sizeof *ret);
    if (read_source(source, pool, &bytes, &count, why, size) != 0) {
        return -1;
    }
    mcp_digest_hex(bytes, count, ret->sha256);
    if (oas_read(bytes, count, &root, reason, sizeof reason) != OAS_OK) {
        return fail(why, size, source->name, reason);
    }
    if (is_connector_file(root)) {
        return take_file(root, options, ret) == 0 ? 0 : fail(why, size, source->name, "out of memory");
    }
    return convert(source, root, options, pool, ret, why, size);
}

void ctl_converted_clear(ctl_converted_t *converted)
{
    json_decref(converted->files);
    json_decref(converted->report);
    memset(converted, 0, sizeof *converted);
}
