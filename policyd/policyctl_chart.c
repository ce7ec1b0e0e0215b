/* A bar chart as an SVG document: see policyctl_chart.h.
 *
 * Labels come from members and connector files, so every text is first made visible as for a terminal (no control or
 * direction characters), cut, and then quoted for XML.  The chart paints its own background: it is legible wherever it is
 * put, and dark where the reader prefers that. */
#include "policyctl_chart.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH       860
#define LEFT        330 /* where bars begin; labels end before */
#define BAR_WIDTH   420 /* of the longest */
#define ROW         24
#define MARGIN      18
#define TITLE_ROOM  34
#define LABEL_CHARS 40
#define TITLE_CHARS 90
#define WORDS_CHARS 400

static void add(ctl_text_t *to, const char *text)
{
    ctl_text_add(to, text, strlen(text));
}

static void add_number(ctl_text_t *to, long long number)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%lld", number);
    add(to, text);
}

/* 12,345: easier to compare than 12345. */
static void add_grouped(ctl_text_t *to, long long number)
{
    char digits[32];
    size_t count, i;

    (void)snprintf(digits, sizeof digits, "%lld", number < 0 ? 0 : number);
    count = strlen(digits);
    for (i = 0; i < count; i++) {
        ctl_text_add(to, digits + i, 1);
        if (i + 1 < count && (count - i - 1) % 3 == 0) {
            add(to, ",");
        }
    }
}

/* A text of somebody's, as content or attribute of XML. */
static void add_text(ctl_text_t *to, const char *text, size_t limit)
{
    static const struct {
        char plain;
        const char *quoted;
    } quotes[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    ctl_text_t visible = {NULL, 0, 0};
    const char *at;
    size_t i;

    ctl_text_visible(&visible, text != NULL ? text : "", limit);
    for (at = ctl_text_of(&visible); *at != '\0'; at++) {
        for (i = 0; i < sizeof quotes / sizeof quotes[0] && quotes[i].plain != *at; i++) {
        }
        if (i < sizeof quotes / sizeof quotes[0]) {
            add(to, quotes[i].quoted);
        } else {
            ctl_text_add(to, at, 1);
        }
    }
    free(visible.bytes);
}

/* "<NAME x=.. y=.. class=..": open for more. */
static void open_at(ctl_text_t *to, const char *name, const char *class, long long x, long long y)
{
    add(to, "<");
    add(to, name);
    add(to, " class=\"");
    add(to, class);
    add(to, "\" x=\"");
    add_number(to, x);
    add(to, "\" y=\"");
    add_number(to, y);
    add(to, "\"");
}

static void put_words(ctl_text_t *to, const char *class, long long x, long long y, const char *text,
                      size_t limit)
{
    open_at(to, "text", class, x, y);
    add(to, ">");
    add_text(to, text, limit);
    add(to, "</text>\n");
}

/* The largest value of the group that bar `at` belongs to, at least 1. */
static json_int_t largest(const ctl_chart_bar_t *bars, size_t count, size_t at)
{
    json_int_t most = 1;
    size_t i = at;

    while (i > 0 && bars[i].label != NULL) {
        i--;
    }
    for (i += bars[i].label == NULL; i < count && bars[i].label != NULL; i++) {
        most = bars[i].value > most ? bars[i].value : most;
    }
    return most;
}

static void put_bar(ctl_text_t *to, const ctl_chart_bar_t *bar, json_int_t most, long long y)
{
    static const char *const classes[] = {"before", "after", "part"};
    json_int_t value = bar->value < 0 ? 0 : bar->value;
    /* as a fraction first: the product could overflow */
    long long width = (long long)((double)value / (double)most * BAR_WIDTH);

    put_words(to, "label", LEFT - 10, y + 15, bar->label, LABEL_CHARS);
    open_at(to, "rect", classes[bar->hue], LEFT, y + 3);
    add(to, " width=\"");
    add_number(to, width < 1 ? 1 : width);
    add(to, "\" height=\"16\"/>\n");
    open_at(to, "text", "value", LEFT + 8 + (width < 1 ? 1 : width), y + 15);
    add(to, ">");
    add_grouped(to, value);
    add(to, "</text>\n");
}

static void put_head(ctl_text_t *to, const char *title, const char *description, long long height)
{
    add(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"title desc\" viewBox=\"0 0 ");
    add_number(to, WIDTH);
    add(to, " ");
    add_number(to, height);
    add(to, "\" width=\"");
    add_number(to, WIDTH);
    add(to, "\" height=\"");
    add_number(to, height);
    add(to, "\">\n<title id=\"title\">");
    add_text(to, title, TITLE_CHARS);
    add(to, "</title>\n<desc id=\"desc\">");
    add_text(to, description, WORDS_CHARS);
    add(to, "</desc>\n<style>\n"
            "text{font:13px sans-serif;fill:#1f2328}.head{font-size:16px;font-weight:bold}.group{font-weight:bold}\n"
            ".label{text-anchor:end}.ground{fill:#ffffff}.before{fill:#a05a00}.after{fill:#1a7f4b}.part{fill:#3b6fb6}\n"
            "@media (prefers-color-scheme:dark){text{fill:#e6e9ed}.ground{fill:#14181d}.before{fill:#e09a3e}\n"
            ".after{fill:#4cc38a}.part{fill:#7aa7e0}}\n"
            "</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
    put_words(to, "head", MARGIN, MARGIN + 14, title, TITLE_CHARS);
}

ctl_text_t ctl_chart(const char *title, const char *description, const ctl_chart_bar_t *bars, size_t count)
{
    ctl_text_t to = {NULL, 0, 0};
    size_t shown = count > CTL_CHART_BARS ? CTL_CHART_BARS : count;
    long long y = MARGIN + TITLE_ROOM;
    size_t i;

    put_head(&to, title, description,
             y + (long long)(shown + (shown < count)) * ROW + MARGIN);
    for (i = 0; i < shown; i++, y += ROW) {
        if (bars[i].label == NULL) {
            put_words(&to, "group", MARGIN, y + 17, bars[i].heading, TITLE_CHARS);
        } else {
            put_bar(&to, &bars[i], largest(bars, count, i), y);
        }
    }
    if (shown < count) {
        char more[64];

        (void)snprintf(more, sizeof more, "and %zu more", count - shown);
        put_words(&to, "group", MARGIN, y + 17, more, TITLE_CHARS);
    }
    add(&to, "</svg>\n");
    return to;
}
