/* Reading the other files of a description: see oas_files.h. */
#include "oas_files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_strings.h>

#include "oas_private.h"

struct oas_files {
    const char *root; /* real path, without a slash at the end */
};

static const char *folder_of(const char *path, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? "." : slash == path ? "/" : apr_pstrmemdup(pool, path, (apr_size_t)(slash - path));
}

static const char *real_path(const char *path, apr_pool_t *pool)
{
    char *real = realpath(path, NULL);
    const char *kept = real != NULL ? apr_pstrdup(pool, real) : NULL;

    free(real);
    return kept;
}

int oas_files_make(const char *document, const char *root, apr_pool_t *pool, oas_files_t **ret, char *why, size_t size)
{
    oas_files_t *files = apr_pcalloc(pool, sizeof(*files));
    const char *real = real_path(document, pool);

    if (real == NULL) {
        return oas_fail(why, size, "there is no such file");
    }
    files->root = root != NULL ? real_path(root, pool) : folder_of(folder_of(real, pool), pool);
    if (files->root == NULL) {
        return oas_fail(why, size, "there is no folder %.300s", root);
    }
    *ret = files;
    return OAS_OK;
}

int oas_files_is_description(const char *name)
{
    static const char *const ends[] = {".json", ".yaml", ".yml"};
    size_t bytes = strlen(name);
    size_t i;

    for (i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t tail = strlen(ends[i]);

        if (bytes > tail && strcmp(name + bytes - tail, ends[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* 1 for a real path below the root that hides nothing. */
static int is_within(const oas_files_t *files, const char *path)
{
    size_t bytes = strcmp(files->root, "/") == 0 ? 0 : strlen(files->root);

    return strncmp(path, files->root, bytes) == 0 && path[bytes] == '/' && strstr(path + bytes, "/.") == NULL;
}

static int read_whole(const char *path, apr_pool_t *pool, const char **ret, size_t *ret_bytes)
{
    apr_file_t *file;
    apr_finfo_t info;
    char *text = NULL;

    if (apr_file_open(&file, path, APR_FOPEN_READ, APR_FPROT_OS_DEFAULT, pool) != APR_SUCCESS) {
        return OAS_FAIL;
    }
    if (apr_file_info_get(&info, APR_FINFO_SIZE | APR_FINFO_TYPE, file) == APR_SUCCESS && info.filetype == APR_REG &&
        info.size > 0 && info.size <= (apr_off_t)OAS_MAX_BYTES) {
        *ret_bytes = (size_t)info.size;
        text = apr_palloc(pool, *ret_bytes + 1);
        text[*ret_bytes] = '\0';
        if (apr_file_read_full(file, text, *ret_bytes, NULL) != APR_SUCCESS) {
            text = NULL;
        }
    }
    (void)apr_file_close(file);
    *ret = text;
    return text != NULL ? OAS_OK : OAS_FAIL;
}

int oas_files_load(void *baton, const char *from, const char *target, apr_pool_t *pool, const char **ret_name,
                   const char **ret, size_t *ret_bytes, char *why, size_t size)
{
    const oas_files_t *files = baton;
    const char *path = target[0] == '/' ? target : apr_pstrcat(pool, folder_of(from, pool), "/", target, (char *)NULL);
    const char *real = real_path(path, pool);

    if (real == NULL || !is_within(files, real) || !oas_files_is_description(real)) {
        return oas_fail(why, size, "%.200s is not read: it is not there, or not a description below %.200s (--ref-root)", target,
                        files->root);
    }
    if (read_whole(real, pool, ret, ret_bytes) != OAS_OK) {
        return oas_fail(why, size, "%.200s can't be read", target);
    }
    *ret_name = real;
    return OAS_OK;
}
