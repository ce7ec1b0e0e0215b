/* Reports of conversions and imports for people: see policyctl_import.h. */
#include "policyctl_import.h"

#include <string.h>

#include "../proto/mcp_body.h"

#define TOLD 20 /* rows of a list that are shown; --json or -o json shows all */

static const char *text_in(const json_t *object, const char *name)
{
    const char *text = mcp_json_str(object, name);

    return text != NULL ? text : "";
}

static void put(FILE *to, const char *before, const char *text, const char *after)
{
    (void)fputs(before, to);
    ctl_print_text(to, text);
    (void)fputs(after, to);
}

static long long number(const json_t *object, const char *name)
{
    return (long long)mcp_json_int(object, name, 0);
}

/* "12 read, 3 write, 1 destructive" */
static void put_classes(FILE *to, const json_t *by_class)
{
    static const char *const names[] = {"read", "write", "destructive", "forbidden"};
    const char *gap = "";
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (number(by_class, names[i]) > 0) {
            (void)fprintf(to, "%s%lld %s", gap, number(by_class, names[i]), names[i]);
            gap = ", ";
        }
    }
}

/* Rows {where, what, why}, the first ones. */
static void put_notes(FILE *to, const json_t *rows, const char *title)
{
    size_t count = json_array_size(rows);
    size_t i;

    if (count == 0) {
        return;
    }
    (void)fprintf(to, "%s (%lu):\n", title, (unsigned long)count);
    for (i = 0; i < count && i < TOLD; i++) {
        const json_t *row = json_array_get(rows, i);

        put(to, "  ", text_in(row, "where"), ": ");
        put(to, "", text_in(row, "what"), text_in(row, "why")[0] != '\0' ? " - " : "");
        put(to, "", text_in(row, "why"), "\n");
    }
    if (count > TOLD) {
        (void)fprintf(to, "  and %lu more; -o json shows all\n", (unsigned long)(count - TOLD));
    }
}

static void put_auth(FILE *to, const json_t *auth)
{
    json_t *row;
    size_t i;

    if (auth == NULL) {
        return;
    }
    put(to, "sign-in: ", text_in(auth, "type")[0] != '\0' ? text_in(auth, "type") : "none", "");
    if (text_in(auth, "chosen")[0] != '\0') {
        put(to, " (", text_in(auth, "chosen"), ")");
    }
    (void)fputs("\n", to);
    json_array_foreach(json_object_get(auth, "others"), i, row)
    {
        put(to, "  not used: ", text_in(row, "name"), "");
        put(to, " (", text_in(row, "type"), "); ");
        put(to, "", text_in(row, "why"), "\n");
    }
}

void ctl_report_conversion(FILE *to, const json_t *report)
{
    const json_t *cut = json_object_get(report, "cut");

    if (report == NULL) {
        return;
    }
    put(to, "", text_in(report, "title"), "");
    put(to, " ", text_in(report, "version"), "");
    put(to, " (OpenAPI ", text_in(report, "openapi"), "): ");
    (void)fprintf(to, "%lld operations", number(report, "operations"));
    if (number(report, "operations") > 0) {
        (void)fputs(", ", to);
        put_classes(to, json_object_get(report, "by_class"));
    }
    (void)fputs("\n", to);
    put_auth(to, json_object_get(report, "auth"));
    put_notes(to, json_object_get(report, "left_out"), "left out");
    put_notes(to, json_object_get(report, "changed"), "changed");
    if (number(cut, "characters") > 0 || number(cut, "schemas") > 0) {
        (void)fprintf(to, "shortened: %lld descriptions by %lld characters, %lld schemas\n", number(cut, "descriptions"),
                      number(cut, "characters"), number(cut, "schemas"));
    }
}

/* Ids of a list with commas, the first ones; more: how many the answer left out. */
static void put_ids(FILE *to, const json_t *connector, const char *name, const char *more, const char *title)
{
    const json_t *list = json_object_get(connector, name);
    size_t count = json_array_size(list);
    size_t i;

    if (count == 0) {
        return;
    }
    (void)fprintf(to, "  %s %lld: ", title, (long long)count + number(connector, more));
    for (i = 0; i < count && i < TOLD; i++) {
        const json_t *row = json_array_get(list, i);

        put(to, i > 0 ? ", " : "", json_is_string(row) ? json_string_value(row) : text_in(row, "operation"), "");
    }
    (void)fputs(count > TOLD ? ", …\n" : "\n", to);
}

static void put_held(FILE *to, const json_t *connector)
{
    const json_t *held = json_object_get(connector, "held");
    json_t *row;
    size_t i;

    if (json_array_size(held) == 0) {
        return;
    }
    (void)fputs("  held back until somebody accepts it:\n", to);
    json_array_foreach(held, i, row)
    {
        if (i < TOLD) {
            put(to, "    ", text_in(row, "operation"), "");
            put(to, ": ", text_in(row, "why"), "\n");
        }
    }
    if (i > TOLD || number(connector, "more_held") > 0) {
        (void)fprintf(to, "    and %lld more\n", (long long)i - TOLD + number(connector, "more_held"));
    }
    put(to, "  policyctl connectors accept ", text_in(connector, "slug"),
        " takes all of it, --operations some; review shows it again, dismiss drops it\n");
}

static void put_connector(FILE *to, const json_t *connector)
{
    put(to, "", text_in(connector, "slug"), ": ");
    put(to, "", text_in(connector, "action"), "");
    (void)fprintf(to, ", %lld operations in force", number(connector, "operations"));
    if (number(connector, "operations") > 0) {
        (void)fputs(" (", to);
        put_classes(to, json_object_get(connector, "by_class"));
        (void)fputs(")", to);
    }
    (void)fputs("\n", to);
    put_ids(to, connector, "added", "more_added", "added");
    put_ids(to, connector, "removed", "more_removed", "removed");
    put_ids(to, connector, "changed", "more_changed", "changed");
    put_ids(to, connector, "reclassified", "more_reclassified", "reclassified");
    put_held(to, connector);
    if (json_array_size(json_object_get(connector, "needs_reauth")) > 0) {
        put_ids(to, connector, "needs_reauth", "more_needs_reauth", "have to be connected again:");
    }
}

static void put_warnings(FILE *to, const json_t *answer)
{
    const json_t *warnings = json_object_get(answer, "warnings");
    long long all = (long long)json_array_size(warnings) + number(answer, "more_warnings");
    json_t *row;
    size_t i;

    if (all == 0) {
        return;
    }
    (void)fprintf(to, "advice (%lld; policyctl tools lint shows all):\n", all);
    json_array_foreach(warnings, i, row)
    {
        if (i < TOLD) {
            put(to, "  ", text_in(row, "operation"), " ");
            put(to, "", text_in(row, "message"), "\n");
        }
    }
}

void ctl_report_import(FILE *to, const json_t *answer)
{
    json_t *connector;
    size_t i;

    json_array_foreach(json_object_get(answer, "connectors"), i, connector)
    {
        put_connector(to, connector);
    }
    put_warnings(to, answer);
    ctl_view_impact(to, json_object_get(answer, "impact"));
}
