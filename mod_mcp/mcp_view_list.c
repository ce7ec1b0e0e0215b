/* The texts of lists: tool objects joined, whole and in pages. See mcp_view.h. */
#include "mcp_view_private.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/view_meta.h"
#include "mcp_failure.h"

#define NAME_HEAD "{\"name\":\""

static size_t row_bytes(const mcp_view_row_t *row, int is_old)
{
    size_t bytes = is_old ? row->tool->old_bytes : row->tool->bytes;

    if (!row->is_control) {
        return bytes;
    }
    /* the name and its quote for the opening brace; a comma where more follows */
    return sizeof(NAME_HEAD) - 1 + strlen(row->name) + 1 + (bytes > 2 ? 1 : 0) + bytes - 1;
}

static void put_row(char *to, const mcp_view_row_t *row, int is_old)
{
    const char *text = is_old ? row->tool->old_text : row->tool->text;
    size_t bytes = is_old ? row->tool->old_bytes : row->tool->bytes;
    size_t name_bytes = strlen(row->name);

    if (row->is_control) {
        memcpy(to, NAME_HEAD, sizeof(NAME_HEAD) - 1);
        to += sizeof(NAME_HEAD) - 1;
        memcpy(to, row->name, name_bytes); /* has the form of a tool's name: nothing to quote */
        to += name_bytes;
        *to++ = '"';
        if (bytes > 2) {
            *to++ = ',';
        }
        text++;
        bytes--;
    }
    memcpy(to, text, bytes);
}

/* Tool objects as one text with the offset of each. */
static void join(const mcp_view_row_t *rows, int count, int is_old, apr_pool_t *own, const char **ret,
                 const size_t **ret_offsets, size_t *ret_bytes)
{
    size_t *offsets = apr_palloc(own, sizeof(*offsets) * (size_t)(count + 1));
    size_t total = 0;
    char *joined;
    int i;

    for (i = 0; i < count; i++) {
        offsets[i] = total;
        total += row_bytes(&rows[i], is_old) + 1; /* and a comma */
    }
    offsets[count] = total;
    joined = apr_palloc(own, total + 1);
    for (i = 0; i < count; i++) {
        put_row(joined + offsets[i], &rows[i], is_old);
        joined[offsets[i + 1] - 1] = ',';
    }
    joined[total] = '\0';
    *ret = joined;
    *ret_offsets = offsets;
    *ret_bytes += total + sizeof(*offsets) * (size_t)(count + 1);
}

static int has_titles(const mcp_view_row_t *rows, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        if (rows[i].tool->old_text != rows[i].tool->text) {
            return 1;
        }
    }
    return 0;
}

static void join_both(mcp_list_t *list, const mcp_view_row_t *rows, apr_pool_t *own, size_t *ret_bytes)
{
    join(rows, list->count, 0, own, &list->joined, &list->offsets, ret_bytes);
    if (has_titles(rows, list->count)) {
        join(rows, list->count, 1, own, &list->old_joined, &list->old_offsets, ret_bytes);
    } else {
        list->old_joined = list->joined;
        list->old_offsets = list->offsets;
    }
}

/* The list that nearly every client asks for, ready to be sent as it lies here: copying a thousand tools for each
 * request would cost more than sending them. */
static void make_whole(mcp_list_t *list, apr_pool_t *own, apr_pool_t *scratch, size_t *ret_bytes)
{
    mcp_era_t modern;

    memset(&modern, 0, sizeof(modern));
    modern.is_modern = 1;
    list->whole = apr_pstrcat(
        own, "{", mcp_failure_result_head(&modern, scratch), ",\"tools\":[",
        list->count > 0 ? apr_pstrmemdup(scratch, list->joined, list->offsets[list->count] - 1) : "",
        "]" MCP_VIEW_LIST_TAIL "}", NULL);
    list->whole_bytes = strlen(list->whole);
    *ret_bytes += list->whole_bytes;
}

void mcp_view_list(const mcp_view_row_t *rows, int count, apr_pool_t *own, apr_pool_t *scratch,
                   mcp_list_t *ret, size_t *ret_bytes)
{
    ret->count = count;
    join_both(ret, rows, own, ret_bytes);
    make_whole(ret, own, scratch, ret_bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mcp_view_row_t *)a)->name, ((const mcp_view_row_t *)b)->name);
}

/* A meta-tool as a row: its definition has its name and no title. */
static void push_meta(apr_array_header_t *kept, mcp_meta_t meta, apr_pool_t *scratch)
{
    mcp_chunk_tool_t *tool = apr_pcalloc(scratch, sizeof(*tool));
    mcp_view_row_t *row = apr_array_push(kept);

    tool->name = mcp_view_meta_name(meta);
    tool->text = mcp_view_meta_definition(meta);
    tool->bytes = strlen(tool->text);
    tool->old_text = tool->text;
    tool->old_bytes = tool->bytes;
    tool->is_named = 1;
    memset(row, 0, sizeof(*row));
    row->name = tool->name;
    row->tool = tool;
}

/* A row as a collapsed list shows it. */
static void push_kept(apr_array_header_t *kept, const mcp_view_row_t *row, apr_pool_t *scratch)
{
    mcp_view_row_t *pushed = apr_array_push(kept);
    mcp_chunk_tool_t *tool;

    *pushed = *row;
    if (row->tool->brief == NULL) {
        return;
    }
    tool = apr_pmemdup(scratch, row->tool, sizeof(*tool));
    tool->text = tool->old_text = tool->brief;
    tool->bytes = tool->old_bytes = tool->brief_bytes;
    pushed->tool = tool;
}

void mcp_view_list_collapsed(const mcp_view_row_t *rows, int count, apr_pool_t *own, apr_pool_t *scratch,
                             mcp_list_t *ret, size_t *ret_bytes)
{
    apr_array_header_t *kept = apr_array_make(scratch, 64, sizeof(mcp_view_row_t));
    int i;

    for (i = 0; i < count; i++) {
        if (rows[i].is_control || rows[i].tool->is_pinned) {
            push_kept(kept, &rows[i], scratch);
        }
    }
    if (kept->nelts == count) {
        return;
    }
    push_meta(kept, MCP_META_IS_EXECUTE, scratch);
    push_meta(kept, MCP_META_IS_SEARCH, scratch);
    qsort(kept->elts, (size_t)kept->nelts, sizeof(mcp_view_row_t), by_name);
    mcp_view_list((const mcp_view_row_t *)(const void *)kept->elts, kept->nelts, own, scratch, ret,
                  ret_bytes);
}
