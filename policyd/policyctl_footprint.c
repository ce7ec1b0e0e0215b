/* What `footprint get` answered, as a table that is read from left to right and as a chart: see policyctl.h. */
#include "policyctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../proto/mcp_body.h"
#include "policyctl_chart.h"

#define MAX_PATH   4000
#define CONNECTORS 20 /* bars of them in a chart */
#define NAME_CHARS 48

/* What a list is made of, in the order in which it is shown. */
static const struct {
    const char *name, *label;
} parts[] = {{"instructions", "instructions"},
             {"descriptions", "tool descriptions"},
             {"parameters", "parameter text"},
             {"names", "names and types"},
             {"schemas", "serialised schemas"},
             {"definitions", "serialised definitions"}};

static json_int_t number_of(const json_t *list, const char *part, const char *unit)
{
    return mcp_json_int(json_object_get(list, part), unit, 0);
}

/* --- in words ---------------------------------------------------------------- */

/* Why the list is as it is. */
static const char *reason_of(const char *why)
{
    static const struct {
        const char *why, *text;
    } reasons[] = {{"few", "few tools: below the threshold and every budget"},
                   {"nothing_to_hide", "there is no connected tool that could be hidden"},
                   {"mode", "the setting collapse.mode says so"},
                   {"threshold", "more tools than collapse.threshold"},
                   {"budget_tokens", "more tokens than collapse.budget_tokens"},
                   {"budget_percent", "more of the context than collapse.budget_percent"}};
    size_t i;

    for (i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (why != NULL && strcmp(reasons[i].why, why) == 0) {
            return reasons[i].text;
        }
    }
    return "for a reason that this program does not know";
}

static void put_count(FILE *to, const char *label, const json_t *result, const char *name)
{
    if (json_is_integer(json_object_get(result, name))) {
        (void)fprintf(to, "  %-12s %lld\n", label, (long long)mcp_json_int(result, name, 0));
    }
}

static void put_head(FILE *to, const json_t *result)
{
    const char *mode = mcp_json_str(result, "mode");
    const char *client = mcp_json_str(result, "client");

    (void)fputs("Tool list ", to);
    if (client != NULL) {
        (void)fputs("for client ", to);
        ctl_print_text(to, client);
        (void)fputc(' ', to);
    }
    (void)fputs("of ", to);
    ctl_print_text(to, mcp_json_str(result, "member") != NULL ? mcp_json_str(result, "member") : "you");
    (void)fputs(": ", to);
    ctl_print_text(to, mode != NULL ? mode : "?");
    (void)fprintf(to, " (%s)\n\nTools\n", reason_of(mcp_json_str(result, "why")));
    put_count(to, "registered", result, "registered");
    put_count(to, "callable", result, "callable");
    put_count(to, "listed", result, "listed");
}

static void put_lists(FILE *to, const json_t *result)
{
    const json_t *flat = json_object_get(result, "flat");
    const json_t *collapsed = json_object_get(result, "collapsed");
    json_int_t saved = mcp_json_int(result, "saved_per_mille", 0);
    size_t i;

    (void)fprintf(to, "\n%-24s %22s  %22s\n%-24s %11s %10s  %11s %10s\n", "", "flat", "collapsed", "",
                  "characters", "tokens*", "characters", "tokens*");
    for (i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        (void)fprintf(to, "%-24s %11lld %10lld", parts[i].label,
                      (long long)number_of(flat, parts[i].name, "characters"),
                      (long long)number_of(flat, parts[i].name, "tokens"));
        if (collapsed != NULL) {
            (void)fprintf(to, "  %11lld %10lld", (long long)number_of(collapsed, parts[i].name, "characters"),
                          (long long)number_of(collapsed, parts[i].name, "tokens"));
        } else {
            (void)fprintf(to, "  %11s %10s", "-", "-");
        }
        (void)fputc('\n', to);
    }
    if (collapsed != NULL) {
        (void)fprintf(to, "Collapsing saves %s%lld.%lld %% of the characters of definitions.\n", saved < 0 ? "-" : "",
                      llabs((long long)saved) / 10, llabs((long long)saved) % 10);
    }
}

/* A name, cut, with numbers behind it in columns. */
static void put_row(FILE *to, const char *name, json_int_t first, json_int_t second, json_int_t third)
{
    ctl_text_t shown = {NULL, 0, 0};
    size_t width;

    ctl_text_visible(&shown, name != NULL ? name : "?", NAME_CHARS);
    width = ctl_text_width(ctl_text_of(&shown));
    (void)fprintf(to, "  %s%*s", ctl_text_of(&shown), (int)(width < NAME_CHARS ? NAME_CHARS - width : 0), "");
    if (first >= 0) {
        (void)fprintf(to, " %7lld", (long long)first);
    }
    (void)fprintf(to, " %11lld %10lld\n", (long long)second, (long long)third);
    free(shown.bytes);
}

static void put_groups(FILE *to, const json_t *result)
{
    const json_t *control = json_object_get(result, "control");
    const json_t *each;
    size_t i;

    (void)fprintf(to, "\n%-*s %7s %11s %10s\n", NAME_CHARS + 2, "Definitions of (flat)", "tools", "characters", "tokens*");
    put_row(to, "(operations)", mcp_json_int(control, "tools", 0), number_of(control, "definitions", "characters"),
            number_of(control, "definitions", "tokens"));
    json_array_foreach(json_object_get(result, "connectors"), i, each)
    {
        put_row(to, mcp_json_str(each, "connector"), mcp_json_int(each, "tools", 0),
                number_of(each, "definitions", "characters"), number_of(each, "definitions", "tokens"));
    }
    (void)fprintf(to, "\n%-*s %11s %10s\n", NAME_CHARS + 2, "Heaviest tools", "characters", "tokens*");
    json_array_foreach(json_object_get(result, "heaviest"), i, each)
    {
        put_row(to, mcp_json_str(each, "name"), -1, mcp_json_int(each, "characters", 0),
                mcp_json_int(each, "tokens", 0));
    }
}

static void put_results(FILE *to, const json_t *result)
{
    static const struct {
        const char *name, *label;
    } kinds[] = {{"search", "searches"}, {"tools", "other calls"}};
    const json_t *results = json_object_get(result, "results");
    size_t i;

    (void)fputs(json_object_size(results) > 0 ? "\nAnswers by the audit trail\n" : "", to);
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const json_t *kind = json_object_get(results, kinds[i].name);

        if (kind != NULL) {
            (void)fprintf(to, "  %-12s %lld bytes on average (the last %lld)\n", kinds[i].label,
                          (long long)mcp_json_int(kind, "mean_bytes", 0), (long long)mcp_json_int(kind, "calls", 0));
        }
    }
}

void ctl_footprint_view(FILE *to, const json_t *result)
{
    put_head(to, result);
    put_lists(to, result);
    put_groups(to, result);
    put_results(to, result);
    (void)fputs("\nDefinitions digest: ", to);
    ctl_print_text(to, mcp_json_str(result, "digest") != NULL ? mcp_json_str(result, "digest") : "?");
    (void)fputs("\n* Characters are exact. Tokens are estimated as characters/4: rough; not a tokenizer's result, not\n"
                "  billing. Definitions hold schemas, which hold parameter text, names and types.\n",
                to);
}

/* --- as a chart ---------------------------------------------------------------- */

typedef struct bars {
    ctl_chart_bar_t all[CTL_CHART_BARS];
    size_t count;
} bars_t;

/* The groups below have fewer bars in all than there is room for. */
static void add_bar(bars_t *bars, const char *heading, const char *label, json_int_t value, ctl_chart_hue_t hue)
{
    if (bars->count < CTL_CHART_BARS) {
        bars->all[bars->count++] = (ctl_chart_bar_t){heading, label, value, hue};
    }
}

static void add_lists(bars_t *bars, const json_t *result)
{
    const json_t *flat = json_object_get(result, "flat");
    const json_t *collapsed = json_object_get(result, "collapsed");

    add_bar(bars, "Whole list, characters", NULL, 0, CTL_CHART_PART);
    add_bar(bars, NULL, "definitions, flat", number_of(flat, "definitions", "characters"), CTL_CHART_BEFORE);
    if (collapsed != NULL) {
        add_bar(bars, NULL, "definitions, collapsed", number_of(collapsed, "definitions", "characters"),
                CTL_CHART_AFTER);
    }
    add_bar(bars, NULL, "instructions, flat", number_of(flat, "instructions", "characters"), CTL_CHART_BEFORE);
    if (collapsed != NULL) {
        add_bar(bars, NULL, "instructions, collapsed", number_of(collapsed, "instructions", "characters"),
                CTL_CHART_AFTER);
    }
}

static void add_groups(bars_t *bars, const json_t *result)
{
    const json_t *connectors = json_object_get(result, "connectors");
    const json_t *each;
    size_t i;

    add_bar(bars, "Definitions by connector, characters", NULL, 0, CTL_CHART_PART);
    add_bar(bars, NULL, "(operations)", number_of(json_object_get(result, "control"), "definitions", "characters"),
            CTL_CHART_PART);
    for (i = 0; i < json_array_size(connectors) && i < CONNECTORS; i++) {
        const char *name = mcp_json_str(json_array_get(connectors, i), "connector");

        add_bar(bars, NULL, name != NULL ? name : "?",
                number_of(json_array_get(connectors, i), "definitions", "characters"), CTL_CHART_PART);
    }
    if (json_array_size(connectors) > CONNECTORS) {
        add_bar(bars, "and further connectors, each smaller", NULL, 0, CTL_CHART_PART);
    }
    add_bar(bars, "Heaviest tools, characters", NULL, 0, CTL_CHART_PART);
    json_array_foreach(json_object_get(result, "heaviest"), i, each)
    {
        const char *name = mcp_json_str(each, "name");

        add_bar(bars, NULL, name != NULL ? name : "?", mcp_json_int(each, "characters", 0), CTL_CHART_PART);
    }
}

/* New text of malloc, NULL without memory. */
static char *draw(const json_t *result)
{
    const char *member = mcp_json_str(result, "member");
    char title[160], description[320];
    bars_t bars = {.count = 0};

    (void)snprintf(title, sizeof title, "What the tool list of %.80s takes of a prompt", member != NULL ? member : "you");
    (void)snprintf(description, sizeof description,
                   "Bars of characters. Definitions take %lld characters listed flat and %lld collapsed.",
                   (long long)number_of(json_object_get(result, "flat"), "definitions", "characters"),
                   (long long)number_of(json_object_get(result, "collapsed"), "definitions", "characters"));
    if (json_object_get(result, "collapsed") == NULL) {
        (void)snprintf(description, sizeof description, "Bars of characters. Definitions take %lld characters.",
                       (long long)number_of(json_object_get(result, "flat"), "definitions", "characters"));
    }
    add_lists(&bars, result);
    add_groups(&bars, result);
    return ctl_chart(title, description, bars.all, bars.count).bytes;
}

static int write_text(FILE *to, const char *text)
{
    int failed = fputs(text, to) < 0;

    failed |= fflush(to) != 0;
    return failed || ferror(to) ? -1 : 0;
}

/* Beside the file and then over it: nobody ever reads half of one. */
static int write_file(const char *path, const char *text)
{
    char made[MAX_PATH + 8];
    int status, fd;
    FILE *file;

    if (snprintf(made, sizeof made, "%s.XXXXXX", path) >= (int)sizeof made) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkstemp(made);
    if (fd < 0) {
        return -1;
    }
    file = fdopen(fd, "w");
    if (file == NULL) {
        (void)close(fd);
        (void)unlink(made);
        return -1;
    }
    status = write_text(file, text);
    status |= fclose(file);
    status = status == 0 ? rename(made, path) : status;
    if (status != 0) {
        int cause = errno;

        (void)unlink(made);
        errno = cause;
    }
    return status;
}

int ctl_footprint_svg(const json_t *result, const char *path, char *why, size_t size)
{
    char *text = draw(result);
    int status;

    if (text == NULL) {
        (void)snprintf(why, size, "out of memory");
        return -1;
    }
    status = strcmp(path, "-") == 0 ? write_text(stdout, text) : write_file(path, text);
    if (status != 0) {
        (void)snprintf(why, size, "%.200s can't be written: %s", path, strerror(errno));
    }
    free(text);
    return status;
}

int ctl_footprint_take(char **words, int *count, const char **ret_path, char *why, size_t size)
{
    int kept = 0;
    int i;

    for (i = 0; i < *count; i++) {
        if (strncmp(words[i], "--svg=", 6) == 0) {
            *ret_path = words[i] + 6;
        } else if (strcmp(words[i], "--svg") == 0 && i + 1 < *count) {
            *ret_path = words[++i];
        } else if (strcmp(words[i], "--svg") == 0) {
            (void)snprintf(why, size, "--svg needs a file, or - for standard output");
            return -1;
        } else {
            words[kept++] = words[i];
        }
    }
    *count = kept;
    return 0;
}
