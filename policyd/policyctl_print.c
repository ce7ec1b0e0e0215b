/* Results as tables, JSON and CSV: see policyctl.h.
 *
 * A table is for eyes: a list's rows show the fields whose values are scalars or lists of scalars, empty
 * columns are left out, long cells are cut, and what a terminal would obey or hide is shown as an escape.  JSON and CSV
 * hold everything as it is. */
#include "policyctl.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/mcp_body.h"

#define MAX_COLUMNS 64
#define CELL_CHARS  60  /* of a list's cell; objects are shown whole */
#define LINE_CHARS  200 /* further columns of a list are left out */
#define CELL_KEYS   8   /* of an object in a cell */
#define KEY_CHARS   22  /* of an object's keys, at least */
#define MAX_NAME    64
#define OBJECT_DEPTH 3
#define GAP         2

/* --- values ---------------------------------------------------------------- */

static int is_scalar(const json_t *value)
{
    return value != NULL && !json_is_object(value) && !json_is_array(value);
}

/* 1 for what one cell can show: scalars, lists and small objects of them. */
static int is_flat(json_t *value)
{
    const char *name;
    json_t *member;
    size_t i;

    for (i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        if (!is_scalar(json_array_get(value, i))) {
            return 0;
        }
    }
    json_object_foreach(value, name, member)
    {
        if (!is_scalar(member)) {
            return 0;
        }
    }
    return json_object_size(value) <= CELL_KEYS;
}

static void add_scalar(ctl_text_t *to, const json_t *value, size_t limit)
{
    char *text;

    if (value == NULL || json_is_null(value)) {
        return;
    }
    if (json_is_string(value)) {
        ctl_text_visible(to, json_string_value(value), limit);
        return;
    }
    text = mcp_json_text(value, NULL);
    if (text != NULL) {
        ctl_text_visible(to, text, limit);
        free(text);
    }
}

/* `key=value,...` */
static void add_members(ctl_text_t *to, json_t *object, size_t limit)
{
    const char *gap = "";
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        ctl_text_add(to, gap, strlen(gap));
        if (limit > 0 && ctl_text_width(ctl_text_of(to)) >= limit) {
            ctl_text_add(to, "...", 3);
            return;
        }
        ctl_text_visible(to, name, limit);
        ctl_text_add(to, "=", 1);
        add_scalar(to, value, limit);
        gap = ",";
    }
}

/* A cell's text: scalars, lists and objects of them with commas, anything deeper as JSON. */
static void add_cell(ctl_text_t *to, json_t *value, size_t limit)
{
    size_t i;

    if (json_is_object(value) && is_flat(value)) {
        add_members(to, value, limit);
        return;
    }
    if (!json_is_array(value) || !is_flat(value)) {
        add_scalar(to, value, limit);
        return;
    }
    for (i = 0; i < json_array_size(value); i++) {
        if (i > 0) {
            ctl_text_add(to, ",", 1);
        }
        if (limit > 0 && ctl_text_width(ctl_text_of(to)) >= limit) {
            ctl_text_add(to, "...", 3);
            return;
        }
        add_scalar(to, json_array_get(value, i), limit);
    }
}

static int is_empty(const json_t *value)
{
    return value == NULL || json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* --- lists ----------------------------------------------------------------- */

typedef struct columns {
    const char *names[MAX_COLUMNS];
    size_t widths[MAX_COLUMNS];
    size_t count;
} columns_t;

static int has_column(const columns_t *columns, const char *name)
{
    size_t i;

    for (i = 0; i < columns->count; i++) {
        if (strcmp(columns->names[i], name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* 1 if the row names the same thing better: an id whose slug stands beside it. */
static int has_slug(const json_t *row, const char *name)
{
    char slug[MAX_NAME];

    if (strcmp(name, "connector") == 0 && json_object_get(row, "slug") != NULL) {
        return 1;
    }
    return (size_t)snprintf(slug, sizeof slug, "%s_slug", name) < sizeof slug &&
           json_object_get(row, slug) != NULL;
}

/* Columns in the order in which the rows show them; for a table those that some row fills with something flat. */
static void find_columns(const json_t *rows, int is_table, columns_t *ret)
{
    size_t i;
    json_t *row;

    ret->count = 0;
    json_array_foreach(rows, i, row)
    {
        const char *name;
        json_t *value;

        json_object_foreach(row, name, value)
        {
            int is_wanted =
                !is_table || (is_flat(value) && !is_empty(value) && !has_slug(row, name));

            if (is_wanted && ret->count < MAX_COLUMNS && !has_column(ret, name)) {
                ret->widths[ret->count] = 0;
                ret->names[ret->count++] = name;
            }
        }
    }
}

static void put_padded(FILE *to, const char *text, size_t width, int is_last)
{
    size_t chars = ctl_text_width(text);

    (void)fputs(text, to);
    for (width = chars > width ? chars : width; !is_last && chars < width + GAP; chars++) {
        (void)fputc(' ', to);
    }
}

/* A time to the second: its fraction tells nobody anything but in the order of an audit. */
static int add_date(ctl_text_t *to, const char *name, const json_t *value)
{
    size_t bytes = strlen(name);
    const char *text = json_string_value(value);
    const char *dot = text == NULL ? NULL : strchr(text, '.');

    if (dot == NULL || bytes < 3 || strcmp(name + bytes - 3, "_at") != 0 ||
        dot[1 + strspn(dot + 1, "0123456789")] != 'Z') {
        return 0;
    }
    ctl_text_add(to, text, (size_t)(dot - text));
    ctl_text_add(to, "Z", 1);
    return 1;
}

static void cell_text(ctl_text_t *to, const json_t *row, const char *name)
{
    json_t *value = json_object_get(row, name);

    to->count = 0;
    if (to->bytes != NULL) {
        to->bytes[0] = '\0';
    }
    if (is_empty(value) || !is_flat(value)) {
        ctl_text_add(to, "-", 1);
    } else if (!add_date(to, name, value)) {
        add_cell(to, value, CELL_CHARS);
    }
}

static void widen(const json_t *rows, columns_t *columns, size_t c)
{
    ctl_text_t cell = {NULL, 0, 0};
    size_t i;
    json_t *row;

    columns->widths[c] = ctl_text_width(columns->names[c]);
    json_array_foreach(rows, i, row)
    {
        size_t chars;

        cell_text(&cell, row, columns->names[c]);
        chars = ctl_text_width(ctl_text_of(&cell));
        if (chars > columns->widths[c]) {
            columns->widths[c] = chars;
        }
    }
    free(cell.bytes);
}

/* 1 if every row has the same there: what a line without room can do without. */
static int is_constant(const json_t *rows, const char *name)
{
    const json_t *first = json_object_get(json_array_get(rows, 0), name);
    size_t i;

    for (i = 1; i < json_array_size(rows); i++) {
        if (!json_equal(first, json_object_get(json_array_get(rows, i), name))) {
            return 0;
        }
    }
    return json_array_size(rows) > 1;
}

/* Sets the widths and keeps the columns that a line takes: all, or those that tell rows apart, from the left.
 * Returns how many were left out. */
static size_t fit(const json_t *rows, columns_t *columns)
{
    size_t c, total = 0, kept = 0, before = columns->count;

    for (c = 0; c < before; c++) {
        widen(rows, columns, c);
        total += columns->widths[c] + GAP;
    }
    if (total <= LINE_CHARS) {
        return 0;
    }
    total = 0;
    for (c = 0; c < before; c++) {
        if (c > 0 && (is_constant(rows, columns->names[c]) ||
                      total + columns->widths[c] + GAP > LINE_CHARS)) {
            continue;
        }
        total += columns->widths[c] + GAP;
        columns->names[kept] = columns->names[c];
        columns->widths[kept] = columns->widths[c];
        kept++;
    }
    columns->count = kept;
    return before - kept;
}

static void print_name(ctl_text_t *to, const char *name)
{
    size_t i;

    to->count = 0;
    ctl_text_visible(to, name, CELL_CHARS);
    for (i = 0; i < to->count; i++) {
        if (to->bytes[i] >= 'a' && to->bytes[i] <= 'z') {
            to->bytes[i] = (char)(to->bytes[i] - 'a' + 'A');
        }
    }
}

void ctl_print_rows(FILE *to, const json_t *rows, const char *indent)
{
    ctl_text_t cell = {NULL, 0, 0};
    columns_t columns;
    size_t c, i, left_out;
    json_t *row;

    find_columns(rows, 1, &columns);
    left_out = fit(rows, &columns);
    (void)fputs(indent, to);
    for (c = 0; c < columns.count; c++) {
        print_name(&cell, columns.names[c]);
        put_padded(to, ctl_text_of(&cell), columns.widths[c], c + 1 == columns.count);
    }
    (void)fputc('\n', to);
    json_array_foreach(rows, i, row)
    {
        (void)fputs(indent, to);
        for (c = 0; c < columns.count; c++) {
            cell_text(&cell, row, columns.names[c]);
            put_padded(to, ctl_text_of(&cell), columns.widths[c], c + 1 == columns.count);
        }
        (void)fputc('\n', to);
    }
    if (left_out > 0) {
        (void)fprintf(stderr, "%zu more column%s left out; -o json shows all\n", left_out,
                      left_out == 1 ? " is" : "s are");
    }
    free(cell.bytes);
}

static int are_objects(const json_t *rows)
{
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        if (!json_is_object(json_array_get(rows, i))) {
            return 0;
        }
    }
    return json_array_size(rows) > 0;
}

static void print_list(FILE *to, const json_t *rows, const char *indent)
{
    ctl_text_t cell = {NULL, 0, 0};
    size_t i;

    if (are_objects(rows)) {
        ctl_print_rows(to, rows, indent);
        return;
    }
    if (json_array_size(rows) == 0) {
        (void)fprintf(to, "%s(none)\n", indent);
    }
    for (i = 0; i < json_array_size(rows); i++) {
        cell.count = 0;
        ctl_text_add(&cell, "", 0);
        add_cell(&cell, json_array_get(rows, i), 0);
        (void)fprintf(to, "%s%s\n", indent, ctl_text_of(&cell));
    }
    free(cell.bytes);
}

/* --- objects --------------------------------------------------------------- */

/* The widest dotted key of an object down to `depth`, at least `width`. */
static size_t key_width(json_t *object, size_t before, int depth, size_t width)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        size_t chars = before + ctl_text_width(name);

        if (json_is_object(value) && depth > 0 && json_object_size(value) > 0) {
            width = key_width(value, chars + 1, depth - 1, width);
        } else if (chars > width && !are_objects(value)) {
            width = chars;
        }
    }
    return width;
}

/* `key  value` lines; nested objects with dotted keys down to `depth`, lists of objects as tables below. */
static void print_object(FILE *to, json_t *object, const char *prefix, int depth, size_t width)
{
    ctl_text_t text = {NULL, 0, 0};
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        text.count = 0;
        ctl_text_visible(&text, prefix, 0);
        ctl_text_visible(&text, name, 0);
        if (json_is_object(value) && depth > 0 && json_object_size(value) > 0) {
            ctl_text_add(&text, ".", 1);
            print_object(to, value, ctl_text_of(&text), depth - 1, width);
        } else if (are_objects(value)) {
            (void)fprintf(to, "%s:\n", ctl_text_of(&text));
            ctl_print_rows(to, value, "  ");
        } else {
            put_padded(to, ctl_text_of(&text), width, 0);
            text.count = 0;
            ctl_text_add(&text, "", 0);
            add_cell(&text, value, 0);
            (void)fprintf(to, "%s\n", is_empty(value) ? "-" : ctl_text_of(&text));
        }
    }
    free(text.bytes);
}

/* The rows of {"items":[...]}, or of a bare list; NULL for anything else, as an object that has items among other things and
 * a revision of its own. */
static json_t *rows_of(json_t *result)
{
    json_t *items = json_is_array(result) ? result : json_object_get(result, "items");

    return json_is_array(items) && json_object_get(result, "revision") == NULL ? items : NULL;
}

static void print_table(FILE *to, json_t *result)
{
    json_t *rows = rows_of(result);
    const char *name;
    json_t *value;

    if (rows == NULL && json_is_object(result)) {
        print_object(to, result, "", OBJECT_DEPTH, key_width(result, 0, OBJECT_DEPTH, KEY_CHARS));
        return;
    }
    if (rows == NULL) {
        ctl_text_t text = {NULL, 0, 0};

        add_cell(&text, result, 0);
        (void)fprintf(to, "%s\n", ctl_text_of(&text));
        free(text.bytes);
        return;
    }
    print_list(to, rows, "");
    /* what a list says beside its items: unmatched words of a search, and the like */
    json_object_foreach(result, name, value)
    {
        if (strcmp(name, "items") != 0 && strcmp(name, "next_cursor") != 0 && !is_empty(value)) {
            ctl_text_t text = {NULL, 0, 0};

            ctl_text_visible(&text, name, 0);
            ctl_text_add(&text, ": ", 2);
            add_cell(&text, value, 0);
            (void)fprintf(to, "%s\n", ctl_text_of(&text));
            free(text.bytes);
        }
    }
}

/* --- JSON and CSV ---------------------------------------------------------- */

static void print_json(FILE *to, json_t *result)
{
    char *text = json_dumps(result, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));

    if (text != NULL) {
        (void)fprintf(to, "%s\n", text);
        free(text);
    }
}

static void print_jsonl(FILE *to, json_t *result)
{
    json_t *rows = rows_of(result);
    size_t i, count = rows == NULL ? 1 : json_array_size(rows);

    for (i = 0; i < count; i++) {
        char *text = mcp_json_text(rows == NULL ? result : json_array_get(rows, i), NULL);

        if (text != NULL) {
            (void)fprintf(to, "%s\n", text);
            free(text);
        }
    }
}

/* RFC 4180: quoted where needed, quotes doubled. */
static void put_csv(FILE *to, const char *text)
{
    if (strpbrk(text, "\",\r\n") == NULL) {
        (void)fputs(text, to);
        return;
    }
    (void)fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            (void)fputc('"', to);
        }
        (void)fputc(*text, to);
    }
    (void)fputc('"', to);
}

static void put_csv_value(FILE *to, const json_t *value)
{
    char *text;

    if (value == NULL || json_is_null(value)) {
        return;
    }
    if (json_is_string(value)) {
        put_csv(to, json_string_value(value));
        return;
    }
    text = mcp_json_text(value, NULL);
    if (text != NULL) {
        put_csv(to, text);
        free(text);
    }
}

static void print_csv(FILE *to, json_t *result)
{
    json_t *rows = rows_of(result);
    columns_t columns;
    size_t c, i;
    json_t *row;

    rows = rows == NULL ? json_pack("[O]", result) : json_incref(rows);
    find_columns(rows, 0, &columns);
    for (c = 0; c < columns.count; c++) {
        put_csv(to, columns.names[c]);
        (void)fputs(c + 1 == columns.count ? "\r\n" : ",", to);
    }
    json_array_foreach(rows, i, row)
    {
        for (c = 0; c < columns.count; c++) {
            put_csv_value(to, json_object_get(row, columns.names[c]));
            (void)fputs(c + 1 == columns.count ? "\r\n" : ",", to);
        }
    }
    json_decref(rows);
}

/* --- formats --------------------------------------------------------------- */

static const struct {
    const char *name;
    ctl_format_t format;
    void (*print)(FILE *to, json_t *result);
} formats[] = {{"table", CTL_TABLE, print_table},
               {"json", CTL_JSON, print_json},
               {"jsonl", CTL_JSONL, print_jsonl},
               {"csv", CTL_CSV, print_csv}};

int ctl_print_format(const char *text, ctl_format_t *ret)
{
    size_t i;

    for (i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, text) == 0) {
            *ret = formats[i].format;
            return 0;
        }
    }
    return -1;
}

void ctl_print(FILE *to, json_t *result, ctl_format_t format)
{
    size_t i;

    for (i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i].format == format) {
            formats[i].print(to, result);
        }
    }
}
