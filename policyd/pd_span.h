/* Spans and moments as people write them: "90d", "2026-03-01T12:00:00Z". Pure, thread-safe. */
#ifndef PD_SPAN_H
#define PD_SPAN_H

#include <stdint.h>

/* A count of seconds, or a count with s, m, h, d or w. 1 and *ret_seconds, or 0. NULL gives 0. */
int pd_span_parse(const char *text, int64_t *ret_seconds);

/* An RFC 3339 date ("2026-03-01", UTC) or date and time (fraction and offset optional; UTC where
 * none is given) in microseconds since the epoch, or a span before now_us. 1 and *ret_us, or 0. */
int pd_span_moment(const char *text, int64_t now_us, int64_t *ret_us);

#endif
