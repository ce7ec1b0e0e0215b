/* Descriptions for models: see oas.h. One pass that drops what is markup, one that folds white space, one that cuts. */
#include "oas_private.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#define MAX_COMMENT 4000  /* bytes of markup that is looked for its end */
#define MAX_READ    65536 /* bytes of a description that are read */

typedef struct out {
    char *bytes;
    size_t count;
} out_t;

static int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int is_alnum(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static void put(out_t *out, char c)
{
    out->bytes[out->count++] = c;
}

/* --- parts of markup: each gives the bytes it takes from `at`, 0 for none ------------------------ */

/* An entity; what it stands for goes out. */
static size_t entity(const char *at, out_t *out)
{
    static const struct {
        const char *name;
        char c;
    } rows[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}, {"&apos;", '\''}, {"&nbsp;", ' '}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = strlen(rows[i].name);

        if (strncasecmp(at, rows[i].name, bytes) == 0) {
            put(out, rows[i].c);
            return bytes;
        }
    }
    return 0;
}

/* A tag, comment or declaration. A block's borders part words. */
static size_t tag(const char *at, out_t *out)
{
    const char *end;

    if (strncmp(at, "<!--", 4) == 0) {
        for (end = at + 4; *end != '\0' && end - at < MAX_COMMENT; end++) {
            if (strncmp(end, "-->", 3) == 0) {
                return (size_t)(end - at) + 3;
            }
        }
        return 0;
    }
    if (at[1] != '/' && at[1] != '!' && !((at[1] | 32) >= 'a' && (at[1] | 32) <= 'z')) {
        return 0;
    }
    end = at + 1;
    while (*end != '\0' && *end != '>' && *end != '<' && end - at < 2000) {
        end++;
    }
    if (*end != '>') {
        return 0;
    }
    if (memchr(at, '@', (size_t)(end - at)) != NULL || strncasecmp(at, "<http", 5) == 0) {
        return 0; /* an address between brackets */
    }
    if (!(strncasecmp(at, "<b>", 3) == 0 || strncasecmp(at, "</b>", 4) == 0 || strncasecmp(at, "<i>", 3) == 0 ||
          strncasecmp(at, "</i>", 4) == 0 || strncasecmp(at, "<code>", 6) == 0 || strncasecmp(at, "</code>", 7) == 0 ||
          strncasecmp(at, "<a", 2) == 0 || strncasecmp(at, "</a>", 4) == 0)) {
        put(out, ' ');
    }
    return (size_t)(end - at) + 1;
}

/* "[text](target)": the text stays; "![text](target)": nothing does. Gives the bytes before the text, and marks where the target begins. */
static size_t link_end(const char *at)
{
    const char *close = at;
    int depth = 0;

    if (*at != '(') {
        return 0;
    }
    for (; *close != '\0' && *close != '\n' && close - at < 2000; close++) {
        depth += *close == '(';
        depth -= *close == ')';
        if (depth == 0) {
            return (size_t)(close - at) + 1;
        }
    }
    return 0;
}

/* The text of a link that begins at `[`: its length, or 0; *ret_whole: bytes of all of it. */
static size_t link_text(const char *at, size_t *ret_whole)
{
    const char *close = at + 1;
    size_t target;

    while (*close != '\0' && *close != ']' && *close != '[' && close - at < 1000) {
        close++;
    }
    if (*close != ']') {
        return 0;
    }
    target = link_end(close + 1);
    *ret_whole = (size_t)(close - at) + 1 + target;
    return target > 0 ? (size_t)(close - at) - 1 : 0;
}

/* What begins a line of Markdown and says nothing: heading, quotation, rule, table's border, fence. */
static size_t line_mark(const char *at)
{
    size_t bytes = strspn(at, "#");

    if (bytes > 0 && bytes <= 6 && at[bytes] == ' ') {
        return bytes;
    }
    bytes = strspn(at, "|:- \t");
    if (at[0] == '|' && (at[bytes] == '\n' || at[bytes] == '\0' || at[bytes] == '\r')) {
        return bytes;
    }
    if (strncmp(at, "```", 3) == 0 || strncmp(at, "~~~", 3) == 0) {
        return strcspn(at, "\r\n");
    }
    bytes = strspn(at, "-=*_");
    if (bytes >= 3 && (at[bytes] == '\n' || at[bytes] == '\0' || at[bytes] == '\r')) {
        return bytes;
    }
    if (at[0] == '>' && (at[1] == ' ' || at[1] == '>' || at[1] == '\n')) {
        return 1;
    }
    return 0;
}

/* Bytes of a character that shows nothing: controls, zero widths, direction marks, tags of Unicode. */
static size_t invisible(const unsigned char *at)
{
    if ((*at < ' ' && !is_space((char)*at)) || *at == 0x7f) {
        return 1;
    }
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f) {
        return 2;
    }
    if (at[0] == 0xe2 && at[1] == 0x80 && ((at[2] >= 0x8b && at[2] <= 0x8f) || (at[2] >= 0xaa && at[2] <= 0xae))) {
        return 3;
    }
    if (at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa0 && at[2] <= 0xaf) {
        return 3;
    }
    if (at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf) {
        return 3;
    }
    return at[0] == 0xf3 && at[1] == 0xa0 && at[2] != 0 && at[3] != 0 ? 4 : 0;
}

/* One mark of emphasis or code that stands at a word's border. */
static int is_emphasis(const char *text, const char *at)
{
    char before = at > text ? at[-1] : ' ';

    if (*at == '`') {
        return 1;
    }
    if (*at != '*' && *at != '_' && !(*at == '~' && at[1] == '~')) {
        return 0;
    }
    return !(is_alnum(before) && is_alnum(at[1])) && !(is_space(before) && is_space(at[1]));
}

/* --- the passes ------------------------------------------------------------------------------------ */

static char *reduce(const char *text, apr_pool_t *pool)
{
    out_t out = {apr_palloc(pool, strlen(text) + 1), 0};
    const char *at = text;
    int begins = 1; /* a line */
    const char *label_end = NULL; /* of a link whose text goes out now */
    size_t rest = 0;              /* bytes of its end */

    while (*at != '\0') {
        size_t taken = invisible((const unsigned char *)at);
        size_t whole = 0;

        if (at == label_end) {
            at += rest;
            label_end = NULL;
            continue;
        }
        if (taken == 0 && begins) {
            taken = line_mark(at);
        }
        if (taken == 0 && *at == '<') {
            taken = tag(at, &out);
        }
        if (taken == 0 && *at == '&') {
            taken = entity(at, &out);
        }
        if (taken == 0 && *at == '!' && at[1] == '[') {
            (void)link_text(at + 1, &whole);
            taken = whole > 0 && link_end(strchr(at, ']') != NULL ? strchr(at, ']') + 1 : "") > 0 ? whole + 1 : 0;
        }
        if (taken == 0 && *at == '[' && label_end == NULL) {
            size_t bytes = link_text(at, &whole);

            if (bytes > 0) {
                label_end = at + 1 + bytes;
                rest = whole - 1 - bytes;
                taken = 1;
            }
        }
        if (taken == 0 && *at == '\\' && at[1] != '\0' && strchr("\\`*_{}[]()#+-.!|<>", at[1]) != NULL) {
            put(&out, at[1]);
            taken = 2;
        }
        if (taken == 0 && is_emphasis(text, at)) {
            taken = 1;
        }
        if (taken == 0 && *at == '|' && (begins || is_space(at[-1]))) {
            put(&out, ' ');
            taken = 1;
        }
        begins = *at == '\n' || (begins && (*at == ' ' || *at == '\t'));
        if (taken > 0) {
            at += taken;
        } else {
            put(&out, *at++);
        }
    }
    out.bytes[out.count] = '\0';
    return out.bytes;
}

/* White space to single blanks, none at the ends. In place. */
static void fold(char *text)
{
    char *to = text;
    const char *at;

    for (at = text; *at != '\0'; at++) {
        if (!is_space(*at)) {
            *to++ = *at;
        } else if (to > text && to[-1] != ' ') {
            *to++ = ' ';
        }
    }
    while (to > text && to[-1] == ' ') {
        to--;
    }
    *to = '\0';
}

/* Bytes that hold `limit` characters; *ret_count: characters of all. */
static size_t measure(const char *text, size_t limit, size_t *ret_count)
{
    size_t at = strlen(text);
    size_t count = 0;
    size_t i;

    for (i = 0; text[i] != '\0'; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) {
            if (count == limit) {
                at = i;
            }
            count++;
        }
    }
    *ret_count = count;
    return count > limit ? at : i;
}

/* Where to cut a text of `bytes` bytes: behind the last sentence of its second half, else before its last word. */
static size_t cut_at(const char *text, size_t bytes, int *ret_is_sentence)
{
    size_t i;

    for (i = bytes; i > bytes / 2; i--) {
        if ((text[i] == ' ' || text[i] == '\0') && strchr(".!?", text[i - 1]) != NULL && !(i > 2 && text[i - 3] == ' ' && text[i - 1] == '.')) {
            *ret_is_sentence = 1;
            return i;
        }
    }
    *ret_is_sentence = 0;
    for (i = bytes; i > bytes / 2; i--) {
        if (text[i] == ' ') {
            return i;
        }
    }
    return bytes;
}

/* 1 for text that JSON takes. */
static int is_utf8(const char *text)
{
    json_t *value = json_string(text);
    int is = value != NULL;

    json_decref(value);
    return is;
}

const char *oas_text(const char *from, size_t limit, apr_pool_t *pool, size_t *ret_cut)
{
    size_t given = strlen(from);
    char *text;
    size_t count = 0;
    size_t bytes;
    size_t kept = 0;
    int is_sentence = 0;

    if (given > MAX_READ) {
        for (given = MAX_READ; given > 0 && ((unsigned char)from[given] & 0xc0) == 0x80; given--) {
        }
        from = apr_pstrmemdup(pool, from, given);
    }
    text = is_utf8(from) ? reduce(from, pool) : apr_pstrdup(pool, "");
    fold(text);
    bytes = measure(text, limit, &count);
    if (ret_cut != NULL) {
        *ret_cut = 0;
    }
    if (limit == 0 || count <= limit) {
        return text;
    }
    bytes = cut_at(text, bytes - (bytes > 3 ? 3 : 0), &is_sentence);
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80) {
        bytes--;
    }
    text[bytes] = '\0';
    (void)measure(text, limit, &kept);
    if (ret_cut != NULL) {
        *ret_cut = count - kept;
    }
    return is_sentence ? text : apr_pstrcat(pool, text, "…", (char *)NULL);
}
