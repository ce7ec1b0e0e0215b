/* Parsing of spans and moments: see pd_span.h. */
#include "pd_span.h"

#include <string.h>
#include <time.h>

#define MAX_SECONDS (INT64_C(200) * 366 * 86400)
#define MAX_DIGITS 12

/* `digits` digits at *at, or as many as there are when digits is 0; 1 and moves on, or 0. */
static int read_number(const char **at, int digits, int64_t *ret)
{
    int64_t value = 0;
    int count = 0;

    while (**at >= '0' && **at <= '9' && (digits == 0 || count < digits)) {
        if (count == MAX_DIGITS) {
            return 0;
        }
        value = value * 10 + (**at - '0');
        count++;
        (*at)++;
    }
    *ret = value;
    return digits == 0 ? count > 0 : count == digits;
}

int pd_span_parse(const char *text, int64_t *ret_seconds)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    int64_t unit = 0;
    int64_t count = 0;
    size_t i;

    if (text == NULL || !read_number(&text, 0, &count)) {
        return 0;
    }
    if (*text == '\0') {
        unit = 1;
    }
    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (*text == units[i].letter && text[1] == '\0') {
            unit = units[i].seconds;
        }
    }
    if (unit == 0 || count > MAX_SECONDS / unit) {
        return 0;
    }
    *ret_seconds = count * unit;
    return 1;
}

/* Fields of fixed width with the character that follows each but the last. */
static int read_fields(const char **at, const char *pattern, int64_t *fields)
{
    for (; *pattern != '\0'; pattern++) {
        if (*pattern >= '1' && *pattern <= '9') {
            if (!read_number(at, *pattern - '0', fields++)) {
                return 0;
            }
        } else if (**at == *pattern) {
            (*at)++;
        } else {
            return 0;
        }
    }
    return 1;
}

static int read_fraction(const char **at, int64_t *ret_us)
{
    int64_t us = 0;
    int64_t place = 100000;

    *ret_us = 0;
    if (**at != '.') {
        return 1;
    }
    (*at)++;
    if (**at < '0' || **at > '9') {
        return 0;
    }
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        us += place * (**at - '0');
        place /= 10;
    }
    *ret_us = us;
    return 1;
}

/* "Z", "+hh:mm", "-hh:mm" or nothing, up to the end of the text. */
static int read_offset(const char *at, int64_t *ret_seconds)
{
    int64_t fields[2] = {0, 0};
    int sign = *at == '-' ? -1 : 1;

    *ret_seconds = 0;
    if (*at == '\0' || ((*at == 'Z' || *at == 'z') && at[1] == '\0')) {
        return 1;
    }
    if (*at != '+' && *at != '-') {
        return 0;
    }
    at++;
    if (!read_fields(&at, "2:2", fields) || *at != '\0' || fields[0] > 23 || fields[1] > 59) {
        return 0;
    }
    *ret_seconds = sign * (fields[0] * 3600 + fields[1] * 60);
    return 1;
}

int pd_span_moment(const char *text, int64_t now_us, int64_t *ret_us)
{
    int64_t day[3] = {0, 0, 0};
    int64_t clock[3] = {0, 0, 0};
    int64_t offset = 0;
    int64_t us = 0;
    int64_t seconds;
    const char *at = text;
    struct tm parts;

    if (text == NULL) {
        return 0;
    }
    if (pd_span_parse(text, &seconds)) {
        *ret_us = now_us - seconds * 1000000;
        return 1;
    }
    if (!read_fields(&at, "4-2-2", day)) {
        return 0;
    }
    if (*at == 'T' || *at == 't' || *at == ' ') {
        at++;
        if (!read_fields(&at, "2:2:2", clock) || !read_fraction(&at, &us) ||
            !read_offset(at, &offset)) {
            return 0;
        }
    } else if (*at != '\0') {
        return 0;
    }
    if (day[0] < 1970 || clock[0] > 23 || clock[1] > 59 || clock[2] > 60) {
        return 0;
    }
    memset(&parts, 0, sizeof(parts));
    parts.tm_year = (int)day[0] - 1900;
    parts.tm_mon = (int)day[1] - 1;
    parts.tm_mday = (int)day[2];
    seconds = (int64_t)timegm(&parts);
    /* timegm() takes 31 February as a day of March: such a date is refused */
    if (parts.tm_mon != (int)day[1] - 1 || parts.tm_mday != (int)day[2]) {
        return 0;
    }
    *ret_us = (seconds + clock[0] * 3600 + clock[1] * 60 + clock[2] - offset) * 1000000 + us;
    return 1;
}
