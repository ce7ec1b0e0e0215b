/* Values of directives: pure parsers that take all of a text or nothing, and whose refusals say
 * what to write instead. */
#include "mcp_parse.h"

#include <arpa/inet.h>
#include <limits.h>
#include <string.h>

#include <apr_cstr.h>
#include <apr_strings.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* --- numbers ---------------------------------------------------------------- */

/* Digits at text: how many there are, 0 also for a number above INT64_MAX (*is_big is set then) or
 * with a leading zero. */
static size_t read_digits(const char *text, int64_t *ret, int *is_big)
{
    size_t count = strspn(text, "0123456789");
    int64_t value = 0;
    *is_big = 0;
    if (count > 1 && text[0] == '0')
        return 0;
    for (size_t i = 0; i < count; i++) {
        int digit = text[i] - '0';
        if (value > (INT64_MAX - digit) / 10) {
            *is_big = 1;
            return 0;
        }
        value = value * 10 + digit;
    }
    *ret = value;
    return count;
}

typedef struct parse_unit {
    const char *word;
    int64_t factor;
} parse_unit_t;

typedef struct parse_units {
    const char *what;    /* for the error: "a duration" */
    const char *example; /* "30s" */
    const char *list;    /* "ms, s, m or h" */
    const parse_unit_t *units; /* largest last */
    size_t count;
} parse_units_t;

static const parse_unit_t duration_units[] = {{"ms", 1000},
                                              {"s", 1000 * 1000},
                                              {"m", 60LL * 1000 * 1000},
                                              {"h", 3600LL * 1000 * 1000}};
static const parse_unit_t size_units[] = {
    {"B", 1}, {"K", 1024}, {"M", 1024 * 1024}, {"G", 1024LL * 1024 * 1024}};

static const parse_units_t durations = {"a duration", "30s", "ms, s, m or h", duration_units,
                                        COUNT(duration_units)};
static const parse_units_t sizes = {"a size", "64K", "B, K, M or G", size_units,
                                    COUNT(size_units)};

/* The value in its largest whole unit, for errors. */
static const char *in_units(apr_pool_t *pool, int64_t value, const parse_units_t *kind)
{
    for (size_t i = kind->count; i > 0; i--) {
        const parse_unit_t *unit = &kind->units[i - 1];
        if (value % unit->factor == 0 && (value != 0 || i == 1))
            return apr_psprintf(pool, "%" APR_INT64_T_FMT "%s", value / unit->factor, unit->word);
    }
    /* finer than the finest unit: limits are whole ones, this only keeps the function total */
    return apr_psprintf(pool, "%" APR_INT64_T_FMT "%s", value / kind->units[0].factor,
                        kind->units[0].word);
}

static const char *out_of_range(apr_pool_t *pool, const parse_units_t *kind, int64_t min,
                                int64_t max)
{
    return apr_psprintf(pool, "%s out of range; write one from %s to %s", kind->what,
                        in_units(pool, min, kind), in_units(pool, max, kind));
}

static const char *parse_with_unit(apr_pool_t *pool, const char *text, const parse_units_t *kind,
                                   int64_t min, int64_t max, int64_t *ret)
{
    int64_t value = 0;
    int is_big;
    size_t digits = read_digits(text, &value, &is_big);
    const parse_unit_t *unit = NULL;
    if (is_big)
        return out_of_range(pool, kind, min, max);
    if (digits == 0)
        return apr_psprintf(pool, "not %s; write digits and a unit (%s), for example %s",
                            kind->what, kind->list, kind->example);
    if (text[digits] == '\0')
        return apr_psprintf(pool, "%s needs a unit; add one of %s, for example %s", kind->what,
                            kind->list, kind->example);
    for (size_t i = 0; i < kind->count; i++)
        if (strcmp(text + digits, kind->units[i].word) == 0)
            unit = &kind->units[i];
    if (unit == NULL)
        return apr_psprintf(pool, "unknown unit or trailing text in %s; the units are %s, for "
                            "example %s", kind->what, kind->list, kind->example);
    if (value > max / unit->factor || value * unit->factor < min)
        return out_of_range(pool, kind, min, max);
    *ret = value * unit->factor;
    return NULL;
}

const char *mcp_parse_duration(apr_pool_t *pool, const char *text, apr_interval_time_t min_us,
                               apr_interval_time_t max_us, apr_interval_time_t *ret_us)
{
    return parse_with_unit(pool, text, &durations, min_us, max_us, ret_us);
}

const char *mcp_parse_size(apr_pool_t *pool, const char *text, size_t min, size_t max,
                           size_t *ret_bytes)
{
    int64_t low = min > INT64_MAX ? INT64_MAX : (int64_t)min;
    int64_t high = max > INT64_MAX ? INT64_MAX : (int64_t)max;
    int64_t value = 0;
    const char *error = parse_with_unit(pool, text, &sizes, low, high, &value);
    if (error == NULL)
        *ret_bytes = (size_t)value;
    return error;
}

const char *mcp_parse_int(apr_pool_t *pool, const char *text, int64_t min, int64_t max,
                          int64_t *ret)
{
    int64_t value = 0;
    int is_big;
    size_t digits = read_digits(text, &value, &is_big);
    if (!is_big && (digits == 0 || text[digits] != '\0'))
        return apr_psprintf(pool, "not a number; write digits alone, from %" APR_INT64_T_FMT
                            " to %" APR_INT64_T_FMT, min, max);
    if (is_big || value < min || value > max)
        return apr_psprintf(pool, "number out of range; write one from %" APR_INT64_T_FMT
                            " to %" APR_INT64_T_FMT, min, max);
    *ret = value;
    return NULL;
}

/* --- words -------------------------------------------------------------------- */

const char *mcp_parse_enum(apr_pool_t *pool, const char *text, const mcp_parse_word_t *table,
                           size_t count, int *ret)
{
    const char *list = "";
    for (size_t i = 0; i < count; i++) {
        if (apr_cstr_casecmp(text, table[i].word) == 0) {
            *ret = table[i].value;
            return NULL;
        }
        list = apr_pstrcat(pool, list, i == 0 ? "" : i + 1 == count ? " or " : ", ", table[i].word,
                           NULL);
    }
    return apr_pstrcat(pool, "unknown word; write ", list, NULL);
}

const char *mcp_parse_flag(apr_pool_t *pool, const char *text, int *ret)
{
    static const mcp_parse_word_t words[] = {{"on", 1}, {"off", 0}};
    return mcp_parse_enum(pool, text, words, COUNT(words), ret);
}

/* --- URLs ---------------------------------------------------------------------- */

static const char *lower_case(apr_pool_t *pool, const char *text, size_t bytes)
{
    char *out = apr_pstrmemdup(pool, text, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (out[i] >= 'A' && out[i] <= 'Z')
            out[i] = (char)(out[i] - 'A' + 'a');
    return out;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A last label that starts with a digit and is all digits, or hexadecimal: what URL parsers read as
 * an IPv4 address in one of its odd forms. */
static int looks_like_ipv4(const char *host)
{
    const char *dot = strrchr(host, '.');
    const char *label = dot != NULL ? dot + 1 : host;
    if (label[0] == '0' && label[1] == 'x')
        return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
    return *label != '\0' && strspn(label, "0123456789") == strlen(label);
}

/* NULL, or what is wrong with a host that is no address in brackets. host is lower-case. */
static const char *check_name(const char *host)
{
    struct in_addr address;
    size_t label = 0;
    size_t bytes = strlen(host);
    if (bytes == 0)
        return "the host is missing; write http://HOST or https://HOST";
    if (bytes > 253)
        return "the host is longer than 253 bytes; write a shorter one";
    for (size_t i = 0; i < bytes; i++) {
        char c = host[i];
        if ((unsigned char)c >= 0x80)
            return "the host is not ASCII; write its xn-- form";
        if (c == '.') {
            if (label == 0 || i + 1 == bytes)
                return "the host has an empty label; write it without the extra dot";
            label = 0;
            continue;
        }
        label++;
        if (!((c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_'))
            return "the host has a character that no host has; write http://HOST[:PORT]";
        if (label > 63)
            return "the host has a label longer than 63 bytes; write a shorter one";
    }
    if (looks_like_ipv4(host) && inet_pton(AF_INET, host, &address) != 1)
        return "the host is an odd form of an IPv4 address; write four decimal numbers";
    return NULL;
}

/* An address in brackets, without them, into its one normal form. */
static const char *normal_ipv6(apr_pool_t *pool, const char *text, size_t bytes, const char **ret)
{
    struct in6_addr address;
    char normal[INET6_ADDRSTRLEN];
    if (inet_pton(AF_INET6, apr_pstrmemdup(pool, text, bytes), &address) != 1 ||
        inet_ntop(AF_INET6, &address, normal, sizeof normal) == NULL)
        return "the host in brackets is not an IPv6 address; write for example http://[::1]";
    *ret = apr_pstrcat(pool, "[", normal, "]", NULL);
    return NULL;
}

/* Host and port, which end before `rest`. */
static const char *parse_authority(apr_pool_t *pool, const char *text, size_t bytes,
                                   int64_t default_port, const char **ret)
{
    const char *host = NULL;
    const char *error = NULL;
    const char *port_text = NULL;
    const char *end = text + bytes;
    int64_t port = default_port;

    if (memchr(text, '@', bytes) != NULL)
        return "a URL with a user name is refused; leave out everything before the @";
    if (bytes > 0 && text[0] == '[') {
        const char *close = memchr(text, ']', bytes);
        if (close == NULL || (close + 1 < end && close[1] != ':'))
            return "the brackets of the host are not closed; write for example http://[::1]:8080";
        error = normal_ipv6(pool, text + 1, (size_t)(close - text - 1), &host);
        if (close + 1 < end)
            port_text = close + 2;
    } else {
        const char *colon = memchr(text, ':', bytes);
        size_t host_bytes = colon != NULL ? (size_t)(colon - text) : bytes;
        host = lower_case(pool, text, host_bytes);
        error = check_name(host);
        if (colon != NULL)
            port_text = colon + 1;
    }
    if (error != NULL)
        return error;
    if (port_text != NULL &&
        mcp_parse_int(pool, apr_pstrmemdup(pool, port_text, (size_t)(end - port_text)), 1, 65535,
                      &port) != NULL)
        return "the port is not a number from 1 to 65535; correct it or leave it out";
    *ret = port == default_port
               ? host
               : apr_psprintf(pool, "%s:%" APR_INT64_T_FMT, host, port);
    return NULL;
}

/* Scheme and authority; *rest is what follows. */
static const char *parse_start(apr_pool_t *pool, const char *text, const char **ret,
                               const char **rest)
{
    static const struct {
        const char *scheme;
        int64_t port;
    } schemes[] = {{"http://", 80}, {"https://", 443}};
    const char *authority = NULL;
    if (*text == '\0')
        return "the value is empty; write http://HOST[:PORT] or https://HOST[:PORT]";
    if (strlen(text) > MCP_PARSE_MAX_URL)
        return "the value is longer than 2048 bytes; write a shorter one";
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p <= 0x20 || *p == 0x7f || *p == '\\')
            return "the value has a blank, a control character or a backslash; leave it out";
    for (size_t i = 0; i < COUNT(schemes); i++) {
        size_t bytes = strlen(schemes[i].scheme);
        if (apr_cstr_casecmpn(text, schemes[i].scheme, bytes) != 0)
            continue;
        const char *host = text + bytes;
        size_t host_bytes = strcspn(host, "/?#");
        const char *error =
            parse_authority(pool, host, host_bytes, schemes[i].port, &authority);
        if (error != NULL)
            return error;
        *ret = apr_pstrcat(pool, schemes[i].scheme, authority, NULL);
        *rest = host + host_bytes;
        return NULL;
    }
    return "the value does not start with http:// or https://; write it in full";
}

const char *mcp_parse_origin(apr_pool_t *pool, const char *text, const char **ret)
{
    const char *origin = NULL;
    const char *rest = NULL;
    const char *error = parse_start(pool, text, &origin, &rest);
    if (error != NULL)
        return error;
    if (*rest != '\0')
        return apr_pstrcat(pool, "an origin has no path, query or fragment; write ", origin, NULL);
    *ret = origin;
    return NULL;
}

/* Path and query in the characters of RFC 3986, escapes whole. */
static const char *check_rest(const char *rest)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                              "-._~!$&'()*+,;=:@/?";
    static const char hex[] = "0123456789ABCDEFabcdef";
    for (const char *p = rest; *p != '\0'; p++) {
        if (*p == '#')
            return "a URL with a fragment is refused; leave out the # and what follows";
        if (*p == '%') {
            if (p[1] == '\0' || strchr(hex, p[1]) == NULL || p[2] == '\0' ||
                strchr(hex, p[2]) == NULL)
                return "the URL has an incomplete escape; write % and two hexadecimal digits";
            p += 2;
        } else if (strchr(set, *p) == NULL) {
            return "the URL has a character that needs an escape; write it as % and two "
                   "hexadecimal digits";
        }
    }
    return NULL;
}

const char *mcp_parse_url(apr_pool_t *pool, const char *text, const char **ret)
{
    const char *origin = NULL;
    const char *rest = NULL;
    const char *error = parse_start(pool, text, &origin, &rest);
    if (error == NULL)
        error = check_rest(rest);
    if (error != NULL)
        return error;
    *ret = apr_pstrcat(pool, origin, rest, NULL);
    return NULL;
}
