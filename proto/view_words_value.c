/* Stretches of a query that are values or places on the net: see view_words.h. */
#include "view_words.h"

#include <stdlib.h>
#include <string.h>

#define QUOTED_BYTES 1024 /* of a quotation; what has no end within is none */
#define CHUNK_BYTES 512   /* looked at before and behind for what makes an address */

/* Endings of the domains that applications are called by, in the order of their bytes. Endings that
 * are English words, or those of file names, are left out. */
static const char *const endings[] = {
    "ai", "app", "au",  "biz", "br", "ca", "ch", "cn", "co", "com", "cz", "de", "dev",
    "dk", "es",  "eu",  "fi",  "fm", "fr", "gg", "hq", "io", "jp",  "kr", "ly", "net",
    "nl", "nz",  "org", "pl",  "pt", "ru", "se", "so", "tv", "uk",  "xyz"};

typedef struct quote {
    const char *open, *close;
    int is_apostrophe; /* also stands within words */
} quote_t;

static const quote_t quotes[] = {{"'", "'", 1},
                                 {"\"", "\"", 0},
                                 {"`", "`", 0},
                                 {"\xe2\x80\x9c", "\xe2\x80\x9d", 0},  /* “ ” */
                                 {"\xe2\x80\x98", "\xe2\x80\x99", 1},  /* ‘ ’ */
                                 {"\xc2\xab", "\xc2\xbb", 0},          /* « » */
                                 {"\xe3\x80\x8c", "\xe3\x80\x8d", 0}}; /* 「 」 */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A byte of a word; all beyond ASCII count. */
static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           (unsigned char)c >= 0x80;
}

static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

/* A byte that a stretch without spaces may go on with. */
static int is_joint(char c)
{
    return c == '.' || c == ':' || c == '/' || c == '#' || c == '-';
}

static int begins(const char *text, size_t bytes, size_t at, const char *what)
{
    size_t length = strlen(what);

    return bytes - at >= length && memcmp(text + at, what, length) == 0;
}

/* 1 if a mark beyond ASCII stands there that opens a quotation: scripts without spaces go on into
 * it. */
static int opens(const char *text, size_t bytes, size_t at)
{
    int is_open = 0;

    for (size_t q = 0; q < sizeof(quotes) / sizeof(quotes[0]) && (unsigned char)text[at] >= 0x80;
         q++) {
        is_open |= begins(text, bytes, at, quotes[q].open);
    }
    return is_open;
}

/* The quotation that opens at `at`. */
static int find_quoted(const char *text, size_t bytes, size_t at, size_t *from, size_t *to,
                       size_t *next)
{
    for (size_t q = 0; q < sizeof(quotes) / sizeof(quotes[0]); q++) {
        size_t open = strlen(quotes[q].open), close = strlen(quotes[q].close);

        if (!begins(text, bytes, at, quotes[q].open) ||
            (open == 1 && at > 0 && is_word(text[at - 1]))) {
            continue;
        }
        for (size_t i = at + open; i < bytes && i - at < QUOTED_BYTES && text[i] != '\n'; i++) {
            if (begins(text, bytes, i, quotes[q].close) &&
                !(quotes[q].is_apostrophe && i + close < bytes && is_word(text[i + close]))) {
                *from = at + open;
                *to = i;
                *next = i + close;
                return 1;
            }
        }
    }
    return 0;
}

/* An URL or an e-mail address from `at` to the next space. */
static int find_address(const char *text, size_t bytes, size_t at, size_t *to)
{
    size_t end = at, sign = 0;
    int is_url = begins(text, bytes, at, "www."), is_mail = 0;

    while (end < bytes && end - at < CHUNK_BYTES && !is_space(text[end])) {
        if (begins(text, bytes, end, "://")) {
            is_url = 1;
        } else if (text[end] == '@' && end > at) {
            sign = end;
        } else if (text[end] == '.' && sign != 0 && end > sign + 1 && end + 1 < bytes &&
                   is_word(text[end + 1])) {
            is_mail = 1;
        }
        end++;
    }
    *to = end;
    return is_url || is_mail;
}

static int compare(const void *key, const void *row)
{
    return strcmp(key, *(const char *const *)row);
}

/* labels.ending, of ASCII letters, digits and inner hyphens. */
static int is_domain(const char *text, size_t bytes)
{
    char last[8];
    size_t dot = 0, length;

    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];

        if ((unsigned char)c >= 0x80 || !(is_word(c) || c == '.' || c == '-') || c == '_') {
            return 0;
        }
        if (c == '.') {
            if (i == 0 || !is_word(text[i - 1])) {
                return 0;
            }
            dot = i;
        }
    }
    length = bytes - dot - 1;
    if (dot == 0 || length < 2 || length >= sizeof(last)) {
        return 0;
    }
    for (size_t i = 0; i < length; i++) {
        char c = text[dot + 1 + i];

        last[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    last[length] = '\0';
    return bsearch(last, endings, sizeof(endings) / sizeof(endings[0]), sizeof(endings[0]),
                   compare) != NULL;
}

/* Two digits and something else, or one in front of up to three letters (3rd, 9am). */
static int is_id(const char *text, size_t bytes)
{
    size_t digits = 0;

    for (size_t i = 0; i < bytes; i++) {
        digits += (size_t)is_digit(text[i]);
    }
    return digits < bytes &&
           (digits >= 2 || (digits == 1 && is_digit(text[0]) && bytes <= 4 && text[1] != '-'));
}

mcp_view_value_t mcp_view_words_value(const char *text, size_t bytes, size_t at, size_t *from,
                                      size_t *to, size_t *next)
{
    while (at < bytes) {
        size_t end = at;

        if (!is_word(text[at]) || (unsigned char)text[at] >= 0x80) {
            if (find_quoted(text, bytes, at, from, to, next)) {
                return MCP_VIEW_VALUE_QUOTED;
            }
            if (!is_word(text[at])) {
                at++;
                continue;
            }
        }
        *from = at;
        if (find_address(text, bytes, at, next)) {
            *to = *next;
            return MCP_VIEW_VALUE_ADDRESS;
        }
        while (end < bytes && (is_word(text[end]) || is_joint(text[end]))) {
            if (end > at && opens(text, bytes, end)) {
                break;
            }
            end++;
        }
        *next = end;
        while (end > at && is_joint(text[end - 1])) {
            end--;
        }
        *to = end;
        if (is_domain(text + at, end - at)) {
            return MCP_VIEW_VALUE_DOMAIN;
        }
        if (is_id(text + at, end - at)) {
            return MCP_VIEW_VALUE_ID;
        }
        at = *next;
    }
    *next = bytes;
    return MCP_VIEW_VALUE_NONE;
}
