/* The index of applications that ships with the product: see policyctl_import.h. Tab-separated columns slug, name, category, address of its API
 * description, file in the same folder, home; lines that begin with '#' are comments. */
#include "policyctl_import.h"

#include <string.h>
#include <strings.h>

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_lib.h>
#include <apr_strings.h>

#define MAX_INDEX (4u * 1024 * 1024)
#define COLUMNS   6

static char *read_whole(const char *path, apr_pool_t *pool)
{
    apr_file_t *file;
    apr_finfo_t info;
    apr_size_t bytes;
    char *text;

    if (apr_file_open(&file, path, APR_FOPEN_READ, APR_FPROT_OS_DEFAULT, pool) != APR_SUCCESS) {
        return NULL;
    }
    if (apr_file_info_get(&info, APR_FINFO_SIZE, file) != APR_SUCCESS || info.size < 0 || info.size > MAX_INDEX) {
        (void)apr_file_close(file);
        return NULL;
    }
    bytes = (apr_size_t)info.size;
    text = apr_pcalloc(pool, bytes + 1);
    if (apr_file_read_full(file, text, bytes, NULL) != APR_SUCCESS) {
        text = bytes == 0 ? text : NULL;
    }
    (void)apr_file_close(file);
    return text;
}

/* One line, cut in place; a line with other than six columns is passed over. */
static void take_line(char *line, apr_array_header_t *rows)
{
    const char *columns[COLUMNS] = {NULL};
    int count = 0;

    while (line != NULL && count < COLUMNS) {
        columns[count++] = line;
        line = strchr(line, '\t');
        if (line != NULL) {
            *line++ = '\0';
        }
    }
    if (count == COLUMNS && line == NULL && columns[0][0] != '\0' && columns[0][0] != '#') {
        APR_ARRAY_PUSH(rows, ctl_index_row_t) =
            (ctl_index_row_t){columns[0], columns[1], columns[2], columns[3], columns[4], columns[5]};
    }
}

const apr_array_header_t *ctl_index_read(const char *dir, apr_pool_t *pool, char *why, size_t size)
{
    char *text = read_whole(apr_pstrcat(pool, dir, "/index.tsv", (char *)NULL), pool);
    apr_array_header_t *rows = apr_array_make(pool, 512, sizeof(ctl_index_row_t));

    if (text == NULL) {
        (void)snprintf(why, size, "there is no index of applications in %.300s; --catalog DIR names another folder", dir);
        return NULL;
    }
    while (text != NULL) {
        char *end = strchr(text, '\n');

        if (end != NULL) {
            *end++ = '\0';
        }
        take_line(text, rows);
        text = end;
    }
    return rows;
}

const ctl_index_row_t *ctl_index_find(const apr_array_header_t *rows, const char *name)
{
    int i;

    for (i = 0; i < rows->nelts; i++) {
        const ctl_index_row_t *row = &APR_ARRAY_IDX(rows, i, ctl_index_row_t);

        if (strcasecmp(row->slug, name) == 0 || strcasecmp(row->name, name) == 0) {
            return row;
        }
    }
    return NULL;
}

/* 1 if text holds part, ASCII letters of any case. */
static int holds(const char *text, const char *part)
{
    size_t bytes = strlen(part);

    for (; *text != '\0'; text++) {
        if (strncasecmp(text, part, bytes) == 0) {
            return 1;
        }
    }
    return bytes == 0;
}

json_t *ctl_index_list(const apr_array_header_t *rows, const char *query, apr_pool_t *pool)
{
    json_t *items = json_array();
    int i;

    (void)pool; /* rows are in it */
    for (i = 0; i < rows->nelts; i++) {
        const ctl_index_row_t *row = &APR_ARRAY_IDX(rows, i, ctl_index_row_t);
        const char *from = row->file[0] != '\0' ? "shipped" : row->address[0] != '\0' ? "--fetch" : "-";

        if (query == NULL || holds(row->slug, query) || holds(row->name, query) || holds(row->category, query)) {
            (void)json_array_append_new(items, json_pack("{s:s,s:s,s:s,s:s,s:s}", "slug", row->slug, "name", row->name,
                                                         "category", row->category, "from", from, "address",
                                                         row->address)); /* a list for eyes */
        }
    }
    return json_pack("{s:o}", "items", items);
}
