/* References: see oas.h. A document is one or more files; a place is a value and the file it stands in, since `#/x` means the file that
 * it is written in. */
#include "oas_private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"

typedef struct oas_file {
    const char *name;
    json_t *root;
} oas_file_t;

struct oas_doc {
    apr_pool_t *pool;
    oas_load_fn *load;
    void *baton;
    apr_array_header_t *files; /* of oas_file_t; the first is the document */
    apr_array_header_t *names; /* of const char *: the others' */
    apr_hash_t *by_target;     /* "file\ntarget" -> index + 1 as int *, 0: can't be read */
    size_t bytes;              /* of all files but the first */
};

static apr_status_t let_go(void *baton)
{
    oas_doc_t *doc = baton;
    int i;

    for (i = 0; i < doc->files->nelts; i++) {
        json_decref(APR_ARRAY_IDX(doc->files, i, oas_file_t).root);
    }
    return APR_SUCCESS;
}

int oas_doc_make(json_t *root, const char *name, oas_load_fn *load, void *baton, apr_pool_t *pool,
                 oas_doc_t **ret, char *why, size_t size)
{
    oas_doc_t *doc = apr_pcalloc(pool, sizeof(*doc));

    doc->pool = pool;
    doc->load = load;
    doc->baton = baton;
    doc->files = apr_array_make(pool, 4, sizeof(oas_file_t));
    doc->names = apr_array_make(pool, 4, sizeof(const char *));
    doc->by_target = apr_hash_make(pool);
    APR_ARRAY_PUSH(doc->files, oas_file_t) = (oas_file_t){name, root};
    apr_pool_cleanup_register(pool, doc, let_go, apr_pool_cleanup_null);
    *ret = doc;
    return json_is_object(root) ? OAS_OK : oas_fail(why, size, "it is no API description: its root is no object");
}

oas_at_t oas_doc_root(const oas_doc_t *doc)
{
    return (oas_at_t){APR_ARRAY_IDX(doc->files, 0, oas_file_t).root, 0};
}

const apr_array_header_t *oas_doc_files(const oas_doc_t *doc)
{
    return doc->names;
}

/* --- other files ---------------------------------------------------------------------------- */

static int read_file(oas_doc_t *doc, int from, const char *target, int *ret, char *why, size_t size)
{
    const char *name = NULL;
    const char *text = NULL;
    size_t bytes = 0;
    json_t *root = NULL;
    int i;

    if (doc->load == NULL || strstr(target, "://") != NULL) {
        return oas_fail(why, size, "%.200s is not fetched: only references within the document's folder are followed", target);
    }
    if (doc->files->nelts > OAS_MAX_FILES) {
        return oas_fail(why, size, "it refers to more than %d files", OAS_MAX_FILES);
    }
    if (doc->load(doc->baton, APR_ARRAY_IDX(doc->files, from, oas_file_t).name, target, doc->pool, &name, &text, &bytes,
                  why, size) != OAS_OK) {
        return OAS_FAIL;
    }
    for (i = 0; i < doc->files->nelts; i++) { /* two spellings of one file */
        if (strcmp(APR_ARRAY_IDX(doc->files, i, oas_file_t).name, name) == 0) {
            *ret = i;
            return OAS_OK;
        }
    }
    doc->bytes += bytes;
    if (doc->bytes > OAS_MAX_BYTES) {
        return oas_fail(why, size, "its files are larger than 64 MiB together");
    }
    if (oas_read(text, bytes, &root, why, size) != OAS_OK) {
        return OAS_FAIL;
    }
    APR_ARRAY_PUSH(doc->files, oas_file_t) = (oas_file_t){name, root};
    APR_ARRAY_PUSH(doc->names, const char *) = name;
    *ret = doc->files->nelts - 1;
    return OAS_OK;
}

/* The index of the file that a reference in `from` names; what can't be read is not tried again. */
static int file_of(oas_doc_t *doc, int from, const char *target, int *ret, char *why, size_t size)
{
    const char *key = apr_psprintf(doc->pool, "%d\n%s", from, target);
    int *known = apr_hash_get(doc->by_target, key, APR_HASH_KEY_STRING);

    if (known == NULL) {
        known = apr_pcalloc(doc->pool, sizeof(*known));
        apr_hash_set(doc->by_target, key, APR_HASH_KEY_STRING, known);
        if (read_file(doc, from, target, ret, why, size) != OAS_OK) {
            return OAS_FAIL;
        }
        *known = *ret + 1;
        return OAS_OK;
    }
    *ret = *known - 1;
    return *known > 0 ? OAS_OK : oas_fail(why, size, "%.200s can't be read", target);
}

/* --- pointers --------------------------------------------------------------------------------- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A segment without its escapes: %XX, then ~1 and ~0. */
static char *unescape(const char *from, size_t bytes, apr_pool_t *pool)
{
    char *text = apr_pstrmemdup(pool, from, bytes);
    char *to = text;
    const char *at;

    for (at = text; *at != '\0'; at++) {
        if (*at == '%' && hex_of(at[1]) >= 0 && hex_of(at[2]) >= 0 && (at[1] != '0' || at[2] != '0')) {
            *to++ = (char)(hex_of(at[1]) * 16 + hex_of(at[2]));
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    to = text;
    for (at = text; *at != '\0'; at++) {
        if (*at == '~' && (at[1] == '0' || at[1] == '1')) {
            *to++ = at[1] == '0' ? '~' : '/';
            at++;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return text;
}

static const json_t *element(const json_t *array, const char *segment)
{
    char *end;
    unsigned long index = strtoul(segment, &end, 10);

    return *segment >= '0' && *segment <= '9' && *end == '\0' ? json_array_get(array, (size_t)index) : NULL;
}

/* What a pointer (behind '#') names; NULL: nothing. *ret_name: its last segment. */
static const json_t *point(const oas_doc_t *doc, const json_t *root, const char *pointer, const char **ret_name)
{
    const json_t *at = root;

    while (at != NULL && *pointer == '/') {
        size_t bytes = strcspn(pointer + 1, "/");
        const char *segment = unescape(pointer + 1, bytes, doc->pool);

        at = json_is_array(at) ? element(at, segment) : json_object_get(at, segment);
        *ret_name = segment;
        pointer += bytes + 1;
    }
    return *pointer == '\0' ? at : NULL;
}

int oas_resolve(oas_doc_t *doc, oas_at_t at, oas_at_t *ret, const char **ret_name, char *why, size_t size)
{
    const char *name = NULL;
    int hops;

    for (hops = 0; hops <= OAS_MAX_HOPS; hops++) {
        const char *ref = mcp_json_str(at.value, "$ref");
        const char *fragment;

        if (ref == NULL) {
            *ret = at;
            if (ret_name != NULL) {
                *ret_name = name;
            }
            return at.value != NULL ? OAS_OK : oas_fail(why, size, "there is nothing");
        }
        fragment = strchr(ref, '#');
        if (fragment != ref) {
            size_t bytes = fragment != NULL ? (size_t)(fragment - ref) : strlen(ref);
            const char *target = apr_pstrmemdup(doc->pool, ref, bytes);
            const char *slash = strrchr(target, '/');

            if (file_of(doc, at.file, target, &at.file, why, size) != OAS_OK) {
                return OAS_FAIL;
            }
            name = slash != NULL ? slash + 1 : target;
        }
        at.value = point(doc, APR_ARRAY_IDX(doc->files, at.file, oas_file_t).root, fragment != NULL ? fragment + 1 : "", &name);
        if (at.value == NULL) {
            return oas_fail(why, size, "%.200s names nothing", ref);
        }
    }
    return oas_fail(why, size, "its references go in a circle");
}

oas_at_t oas_member(oas_doc_t *doc, oas_at_t at, const char *name)
{
    oas_at_t found = {json_object_get(at.value, name), at.file};
    char ignored[64];

    if (found.value == NULL || oas_resolve(doc, found, &found, NULL, ignored, sizeof ignored) != OAS_OK) {
        return (oas_at_t){NULL, at.file};
    }
    return found;
}
