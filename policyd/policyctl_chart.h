/* A bar chart as an SVG document, for policyctl's own results. */
#ifndef POLICYCTL_CHART_H
#define POLICYCTL_CHART_H

#include "policyctl.h"

#define CTL_CHART_BARS 48 /* that a chart has at most; what is more is left out and counted */

typedef enum ctl_chart_hue { CTL_CHART_BEFORE, CTL_CHART_AFTER, CTL_CHART_PART } ctl_chart_hue_t;

/* One bar, or with a NULL label and a heading, the line above a group of them. Texts are whatever somebody chose. */
typedef struct ctl_chart_bar {
    const char *heading;
    const char *label;
    json_int_t value; /* negative is drawn as 0 */
    ctl_chart_hue_t hue;
} ctl_chart_bar_t;

/* The chart: a document without scripts and outside references, its texts quoted and cut, its bars in proportion within a group.
 * title and description are for those who cannot see it. What cannot be drawn for want of memory is missing: text.bytes NULL then. */
ctl_text_t ctl_chart(const char *title, const char *description, const ctl_chart_bar_t *bars, size_t count);

#endif
