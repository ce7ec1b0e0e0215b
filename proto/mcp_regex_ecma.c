/* The ECMA-262 side of the regex room: translates a pattern (unicode mode) to PCRE2's
 * syntax, item by item, so that nothing of PCRE2's own language reaches it from outside,
 * and sets the callouts that spend the budget of a match.  Pure, without PCRE2. */
#include "mcp_regex_private.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_regex.h"

#define OUTPUT_MAX   (512u * 1024) /* bytes of a translated pattern */
#define REPEAT_MAX   65535u        /* PCRE2's largest count */
#define CODE_MAX     0x10ffffu

/* MCP_REGEX_AT_…, all of one length. */
#define CALLOUT         "(?C0)"
#define CALLOUT_REF     "(?C1)"
#define CALLOUT_REF_RUN "(?C2)"

#define FLAG_ICASE  0x1u
#define FLAG_DOTALL 0x2u
#define FLAG_LINES  0x4u
#define GROUP_LOOK  0x8u /* a look-around: may not be repeated */

typedef struct translator {
    const unsigned char *at;
    const unsigned char *end;
    char *out;
    size_t used;
    size_t room;
    size_t row; /* characters since the last callout */
    size_t stretch;
    unsigned captures;
    unsigned depth;
    unsigned char flags[MCP_REGEX_MAX_GROUPS + 1]; /* of each open group */
    bool has_no_memory;
} translator_t;

/* One member of a class, or an escape outside of one: a character or a ready-made set. */
typedef struct atom {
    bool is_set;
    uint32_t code;  /* a character */
    const char *in; /* a set: its members, as they stand inside [ ] */
    char text[96];
} atom_t;

/* White space and line terminators of ECMA-262, and all other characters. */
#define SPACES                                                               \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
    "\\x{202f}\\x{205f}\\x{3000}\\x{feff}"
#define NO_SPACES                                                            \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}" \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"   \
    "\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"
#define LINE_ENDS "\\x{a}\\x{d}\\x{2028}\\x{2029}"
#define ANYTHING  "\\x{0}-\\x{10ffff}"

/* General categories under their long names; PCRE2 knows the short ones only. */
static const struct category {
    const char *name;
    const char *brief;
} categories[] = {
    {"Cased_Letter", "L&"},         {"LC", "L&"},
    {"Close_Punctuation", "Pe"},    {"Combining_Mark", "M"},
    {"Connector_Punctuation", "Pc"}, {"Control", "Cc"},
    {"Currency_Symbol", "Sc"},      {"Dash_Punctuation", "Pd"},
    {"Decimal_Number", "Nd"},       {"Enclosing_Mark", "Me"},
    {"Final_Punctuation", "Pf"},    {"Format", "Cf"},
    {"Initial_Punctuation", "Pi"},  {"Letter", "L"},
    {"Letter_Number", "Nl"},        {"Line_Separator", "Zl"},
    {"Lowercase_Letter", "Ll"},     {"Mark", "M"},
    {"Math_Symbol", "Sm"},          {"Modifier_Letter", "Lm"},
    {"Modifier_Symbol", "Sk"},      {"Nonspacing_Mark", "Mn"},
    {"Number", "N"},                {"Open_Punctuation", "Ps"},
    {"Other", "C"},                 {"Other_Letter", "Lo"},
    {"Other_Number", "No"},         {"Other_Punctuation", "Po"},
    {"Other_Symbol", "So"},         {"Paragraph_Separator", "Zp"},
    {"Private_Use", "Co"},          {"Punctuation", "P"},
    {"Separator", "Z"},             {"Space_Separator", "Zs"},
    {"Spacing_Mark", "Mc"},         {"Symbol", "S"},
    {"Titlecase_Letter", "Lt"},     {"Unassigned", "Cn"},
    {"Uppercase_Letter", "Lu"},     {"cntrl", "Cc"},
    {"digit", "Nd"},                {"punct", "P"},
};

/* --- output ---------------------------------------------------------------- */

static bool put_bytes(translator_t *t, const char *text, size_t bytes)
{
    if (bytes > t->room - t->used) {
        size_t room = t->room == 0 ? 1024 : t->room * 2;
        char *out;

        while (room - t->used < bytes) {
            room *= 2;
        }
        if (room > OUTPUT_MAX) {
            return false;
        }
        out = realloc(t->out, room);
        if (out == NULL) {
            t->has_no_memory = true;
            return false;
        }
        t->out = out;
        t->room = room;
    }
    memcpy(t->out + t->used, text, bytes);
    t->used += bytes;
    return true;
}

static bool put(translator_t *t, const char *text)
{
    return put_bytes(t, text, strlen(text));
}

static bool put_callout(translator_t *t, const char *callout)
{
    t->row = 0;
    return put(t, callout);
}

/* size more characters are matched before the next callout. */
static void lengthen(translator_t *t, size_t size)
{
    t->row += size;
    if (t->row > t->stretch) {
        t->stretch = t->row;
    }
}

static bool is_digit(unsigned c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(unsigned c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A character that stands for itself; letters and digits apart, all are written as numbers,
 * so none can mean anything to PCRE2. */
static bool put_code(translator_t *t, uint32_t code)
{
    char text[16];

    if (is_digit(code) || is_letter(code)) {
        text[0] = (char)code;
        return put_bytes(t, text, 1);
    }
    (void)snprintf(text, sizeof(text), "\\x{%x}", (unsigned)code); /* fits: 6 digits */
    return put(t, text);
}

/* --- input ----------------------------------------------------------------- */

static bool has_next(const translator_t *t, unsigned char c)
{
    return t->at < t->end && *t->at == c;
}

static bool has_text(const translator_t *t, const char *text)
{
    size_t bytes = strlen(text);

    return (size_t)(t->end - t->at) >= bytes && memcmp(t->at, text, bytes) == 0;
}

/* The next character; false at the end and for what is not UTF-8. */
static bool take_code(translator_t *t, uint32_t *ret)
{
    static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
    size_t left = (size_t)(t->end - t->at);
    size_t more;
    uint32_t code;

    if (left == 0) {
        return false;
    }
    if (t->at[0] < 0x80) {
        *ret = *t->at++;
        return true;
    }
    more = t->at[0] >= 0xf0 ? 3 : t->at[0] >= 0xe0 ? 2 : 1;
    if (t->at[0] < 0xc2 || t->at[0] > 0xf4 || left <= more) {
        return false;
    }
    code = t->at[0] & (0x3fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((t->at[i] & 0xc0) != 0x80) {
            return false;
        }
        code = (code << 6) | (t->at[i] & 0x3fu);
    }
    if (code < least[more] || code > CODE_MAX || (code >= 0xd800 && code <= 0xdfff)) {
        return false;
    }
    t->at += more + 1;
    *ret = code;
    return true;
}

static bool take_hex(translator_t *t, size_t least, size_t most, uint32_t *ret)
{
    uint32_t value = 0;
    size_t n = 0;

    for (; n < most && t->at < t->end; n++, t->at++) {
        unsigned c = *t->at;

        if (is_digit(c)) {
            value = value * 16 + (c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            value = value * 16 + ((c | 0x20) - 'a' + 10);
        } else {
            break;
        }
        if (value > CODE_MAX) {
            return false;
        }
    }
    *ret = value;
    return n >= least;
}

static bool take_number(translator_t *t, uint32_t *ret)
{
    uint32_t value = 0;

    if (t->at >= t->end || !is_digit(*t->at)) {
        return false;
    }
    for (; t->at < t->end && is_digit(*t->at); t->at++) {
        value = value * 10 + (*t->at - (uint32_t)'0');
        if (value > REPEAT_MAX) {
            value = REPEAT_MAX + 1; /* stays too large */
        }
    }
    *ret = value;
    return true;
}

/* --- escapes --------------------------------------------------------------- */

/* After \u: four digits, a surrogate pair as eight, or {…}. */
static bool take_unicode(translator_t *t, uint32_t *ret)
{
    uint32_t code;
    uint32_t low;

    if (has_next(t, '{')) {
        t->at++;
        if (!take_hex(t, 1, 16, &code) || !has_next(t, '}')) {
            return false;
        }
        t->at++;
    } else if (!take_hex(t, 4, 4, &code)) {
        return false;
    } else if (code >= 0xd800 && code <= 0xdbff && has_text(t, "\\u")) {
        t->at += 2;
        if (!take_hex(t, 4, 4, &low) || low < 0xdc00 || low > 0xdfff) {
            return false;
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *ret = code;
    /* Half a pair can be in no text. */
    return code < 0xd800 || code > 0xdfff;
}

/* After \p or \P: {Name} or {Name=Value}.  Unknown ones are for PCRE2 to refuse. */
static bool take_property(translator_t *t, bool is_negated, atom_t *ret)
{
    char name[64];
    const char *value = name;
    size_t n = 0;

    if (!has_next(t, '{')) {
        return false;
    }
    for (t->at++; t->at < t->end && *t->at != '}'; t->at++) {
        unsigned c = *t->at;

        if (n + 1 >= sizeof(name) || !(is_letter(c) || is_digit(c) || c == '_' || c == '=')) {
            return false;
        }
        name[n++] = (char)c;
    }
    if (n == 0 || !has_next(t, '}')) {
        return false;
    }
    t->at++;
    name[n] = '\0';
    if (strncmp(name, "gc=", 3) == 0) {
        value = name + 3;
    } else if (strncmp(name, "General_Category=", 17) == 0) {
        value = name + 17;
    }
    ret->is_set = true;
    if (strcmp(name, "ASCII") == 0) {
        ret->in = is_negated ? "\\x{80}-\\x{10ffff}" : "\\x{0}-\\x{7f}";
        return true;
    }
    if (strcmp(name, "Assigned") == 0) {
        value = "Cn";
        is_negated = !is_negated;
    }
    for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
        if (strcmp(value, categories[i].name) == 0) {
            value = categories[i].brief;
            break;
        }
    }
    (void)snprintf(ret->text, sizeof(ret->text), "\\%c{%s}", is_negated ? 'P' : 'p', value);
    ret->in = ret->text; /* it fits: 63 and 4 */
    return true;
}

/* An escape that means the same inside and outside a class; t->at is behind the backslash. */
static bool take_escape(translator_t *t, atom_t *ret)
{
    static const char plain[] = "t\tn\nv\vf\fr\r";
    static const struct {
        char letter;
        const char *in;
    } sets[] = {{'d', "0-9"},     {'D', "\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}"},
                {'w', "\\w"},     {'W', "\\W"},
                {'s', SPACES},    {'S', NO_SPACES}};
    uint32_t c;

    memset(ret, 0, sizeof(*ret));
    if (!take_code(t, &c)) {
        return false;
    }
    for (size_t i = 0; i + 1 < sizeof(plain); i += 2) {
        if (c == (unsigned char)plain[i]) {
            ret->code = (unsigned char)plain[i + 1];
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        if (c == (unsigned char)sets[i].letter) {
            ret->is_set = true;
            ret->in = sets[i].in;
            return true;
        }
    }
    if (c == 'c' && t->at < t->end && is_letter(*t->at)) {
        ret->code = *t->at++ & 0x1fu;
        return true;
    }
    if (c == '0') {
        return t->at >= t->end || !is_digit(*t->at); /* \0, not octal */
    }
    if (c == 'x') {
        return take_hex(t, 2, 2, &ret->code);
    }
    if (c == 'u') {
        return take_unicode(t, &ret->code);
    }
    if (c == 'p' || c == 'P') {
        return take_property(t, c == 'P', ret);
    }
    ret->code = c;
    return !is_letter(c) && !is_digit(c);
}

/* --- items ----------------------------------------------------------------- */

static unsigned flags_now(const translator_t *t)
{
    return t->flags[t->depth];
}

/* {n}, {n,} or {n,m} at t->at; without one t->at stays. */
static bool take_braces(translator_t *t, uint32_t *least, uint32_t *most, bool *is_open)
{
    const unsigned char *start = t->at;

    t->at++;
    *is_open = false;
    if (take_number(t, least)) {
        *most = *least;
        if (has_next(t, ',')) {
            t->at++;
            *is_open = !take_number(t, most);
        }
        if (has_next(t, '}')) {
            t->at++;
            return true;
        }
    }
    t->at = start;
    return false;
}

/* A quantifier, if there is one, behind what was just written.  was_repeated tells. */
static bool take_quantifier(translator_t *t, bool *was_repeated)
{
    char text[32];
    uint32_t least = 0;
    uint32_t most = 0;
    bool is_open = true;

    *was_repeated = false;
    if (t->at >= t->end) {
        return true;
    }
    if (*t->at == '*' || *t->at == '+' || *t->at == '?') {
        least = *t->at == '+';
        text[0] = (char)*t->at++;
        text[1] = '\0';
    } else if (*t->at == '{' && take_braces(t, &least, &most, &is_open)) {
        if (least > REPEAT_MAX || (!is_open && (most < least || most > REPEAT_MAX))) {
            return false;
        }
        if (is_open) {
            (void)snprintf(text, sizeof(text), "{%u,}", (unsigned)least);
        } else {
            (void)snprintf(text, sizeof(text), "{%u,%u}", (unsigned)least, (unsigned)most);
        }
    } else {
        return true;
    }
    *was_repeated = true;
    lengthen(t, least);
    if (!put(t, text)) {
        return false;
    }
    if (has_next(t, '?')) {
        t->at++;
        return put(t, "?");
    }
    return true;
}

/* Ends an item of one character's width. */
static bool end_item(translator_t *t)
{
    bool was_repeated;

    lengthen(t, 1);
    return take_quantifier(t, &was_repeated) && (!was_repeated || put_callout(t, CALLOUT));
}

static bool take_class_atom(translator_t *t, atom_t *ret)
{
    if (!has_next(t, '\\')) {
        memset(ret, 0, sizeof(*ret));
        return take_code(t, &ret->code);
    }
    t->at++;
    if (has_next(t, 'b')) {
        t->at++;
        memset(ret, 0, sizeof(*ret));
        ret->code = '\b';
        return true;
    }
    return take_escape(t, ret);
}

static bool put_class_atom(translator_t *t, const atom_t *atom)
{
    return atom->is_set ? put(t, atom->in) : put_code(t, atom->code);
}

/* One member or range of a class. */
static bool translate_member(translator_t *t)
{
    atom_t low;
    atom_t high;

    if (!take_class_atom(t, &low) || !put_class_atom(t, &low)) {
        return false;
    }
    if (!has_next(t, '-') || t->end - t->at < 2 || t->at[1] == ']') {
        return true;
    }
    t->at++;
    if (!take_class_atom(t, &high)) {
        return false;
    }
    if (low.is_set || high.is_set) {
        return put(t, "\\x{2d}") && put_class_atom(t, &high);
    }
    return low.code <= high.code && put(t, "-") && put_code(t, high.code);
}

static bool translate_class(translator_t *t)
{
    bool is_negated = has_next(t, '^');

    if (is_negated) {
        t->at++;
    }
    if (has_next(t, ']')) {
        t->at++;
        return put(t, is_negated ? "[" ANYTHING "]" : "[^" ANYTHING "]") && end_item(t);
    }
    if (!put(t, is_negated ? "[^" : "[")) {
        return false;
    }
    while (!has_next(t, ']')) {
        if (!translate_member(t)) {
            return false; /* also where the pattern ends too early */
        }
    }
    t->at++;
    return put(t, "]") && end_item(t);
}

/* A back reference: \1 … or \k<name>.  What is compared shows in no callout when it
 * differs, so the callout before it pays. */
static bool translate_reference(translator_t *t)
{
    char text[80];
    uint32_t number = 0;
    bool was_repeated = false;
    size_t mark;

    if (!put_callout(t, CALLOUT_REF)) {
        return false;
    }
    mark = t->used;
    if (has_text(t, "k<")) {
        size_t n = 0;

        t->at += 2;
        while (n < 64 && t->at < t->end && *t->at != '>') {
            unsigned c = t->at[0];

            if (!is_letter(c) && !is_digit(c) && c != '_') {
                return false;
            }
            text[n++] = (char)c;
            t->at++;
        }
        if (n == 0 || !has_next(t, '>')) {
            return false;
        }
        t->at++;
        if (!put(t, "\\k<") || !put_bytes(t, text, n) || !put(t, ">")) {
            return false;
        }
    } else {
        if (!take_number(t, &number) || number == 0 || number > t->captures) {
            return false;
        }
        (void)snprintf(text, sizeof(text), "\\g{%u}", (unsigned)number);
        if (!put(t, text)) {
            return false;
        }
    }
    if (!take_quantifier(t, &was_repeated)) {
        return false;
    }
    if (was_repeated) {
        memcpy(t->out + mark - strlen(CALLOUT_REF_RUN), CALLOUT_REF_RUN, strlen(CALLOUT_REF_RUN));
    }
    return put_callout(t, CALLOUT);
}

static bool translate_escape(translator_t *t)
{
    atom_t atom;

    if (has_next(t, 'b') || has_next(t, 'B')) {
        return put(t, *t->at++ == 'b' ? "\\b" : "\\B");
    }
    if (has_text(t, "k<") || (t->at < t->end && *t->at >= '1' && *t->at <= '9')) {
        return translate_reference(t);
    }
    if (!take_escape(t, &atom)) {
        return false;
    }
    if (!atom.is_set) {
        return put_code(t, atom.code) && end_item(t);
    }
    return put(t, "[") && put(t, atom.in) && put(t, "]") && end_item(t);
}

/* Letters of (?ims-ims: or of a leading (?ims). */
static bool take_flags(translator_t *t, unsigned char last, unsigned *flags)
{
    bool is_off = false;

    for (; t->at < t->end && *t->at != last; t->at++) {
        unsigned bit = *t->at == 'i'   ? FLAG_ICASE
                       : *t->at == 's' ? FLAG_DOTALL
                       : *t->at == 'm' ? FLAG_LINES
                                       : 0;

        if (*t->at == '-' && !is_off) {
            is_off = true;
        } else if (bit == 0) {
            return false;
        } else {
            *flags = is_off ? *flags & ~bit : *flags | bit;
        }
    }
    if (t->at >= t->end) {
        return false;
    }
    t->at++;
    return true;
}

/* Behind "(?": writes the opening of the group and says what flags hold in it. */
static bool translate_opening(translator_t *t, unsigned *flags)
{
    static const char *const looks[] = {"=", "!", "<=", "<!"};

    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        if (has_text(t, looks[i])) {
            t->at += strlen(looks[i]);
            *flags |= GROUP_LOOK;
            return put(t, "(?") && put(t, looks[i]);
        }
    }
    if (has_next(t, '<')) {
        const unsigned char *name = ++t->at;

        while (t->at < t->end && (is_letter(*t->at) || is_digit(*t->at) || *t->at == '_')) {
            t->at++;
        }
        if (t->at == name || !has_next(t, '>') || !put(t, "(?<") ||
            !put_bytes(t, (const char *)name, (size_t)(t->at - name))) {
            return false;
        }
        t->at++;
        return put(t, ">");
    }
    if (!take_flags(t, ':', flags)) {
        return false;
    }
    return put(t, (*flags & FLAG_ICASE) != 0 ? "(?i:" : "(?-i:");
}

static bool translate_open(translator_t *t)
{
    unsigned flags = flags_now(t) & ~GROUP_LOOK;

    if (t->depth >= MCP_REGEX_MAX_GROUPS) {
        return false;
    }
    if (has_next(t, '?')) {
        t->at++;
        if (!translate_opening(t, &flags)) {
            return false;
        }
    } else if (!put(t, "(")) {
        return false;
    }
    t->flags[++t->depth] = (unsigned char)flags;
    return put_callout(t, CALLOUT);
}

static bool translate_close(translator_t *t)
{
    bool is_look = (flags_now(t) & GROUP_LOOK) != 0;
    bool was_repeated;

    if (t->depth == 0) {
        return false;
    }
    t->depth--;
    return put(t, ")") && take_quantifier(t, &was_repeated) && !(is_look && was_repeated) &&
           put_callout(t, CALLOUT);
}

static bool translate_anchor(translator_t *t, uint32_t c)
{
    if ((flags_now(t) & FLAG_LINES) == 0) {
        return put(t, c == '^' ? "^" : "$");
    }
    return put(t, c == '^' ? "(?:^|(?<=[" LINE_ENDS "]))" : "(?:$|(?=[" LINE_ENDS "]))");
}

/* The next item of the pattern. */
static bool translate_item(translator_t *t)
{
    uint32_t c;
    uint32_t least;
    uint32_t most;
    bool is_open;

    if (has_next(t, '{') && take_braces(t, &least, &most, &is_open)) {
        return false; /* nothing to repeat */
    }
    if (!take_code(t, &c)) {
        return false;
    }
    switch (c) {
    case '\\':
        return translate_escape(t);
    case '[':
        return translate_class(t);
    case '(':
        return translate_open(t);
    case ')':
        return translate_close(t);
    case '|':
        return put(t, "|") && put_callout(t, CALLOUT);
    case '^':
    case '$':
        return translate_anchor(t, c);
    case '.':
        return put(t, (flags_now(t) & FLAG_DOTALL) != 0 ? "[" ANYTHING "]" : "[^" LINE_ENDS "]") &&
               end_item(t);
    case '*':
    case '+':
    case '?':
        return false; /* nothing to repeat */
    default:
        return put_code(t, c) && end_item(t);
    }
}

/* Capturing groups of the whole pattern: \9 may refer to one that comes later. */
static unsigned count_captures(const char *pattern, size_t bytes)
{
    unsigned n = 0;
    bool is_class = false;

    for (size_t i = 0; i < bytes; i++) {
        if (pattern[i] == '\\') {
            i++;
        } else if (is_class) {
            is_class = pattern[i] != ']';
        } else if (pattern[i] == '[') {
            is_class = true;
        } else if (pattern[i] == '(') {
            size_t left = bytes - i;

            if (left < 2 || pattern[i + 1] != '?') {
                n++;
            } else if (left > 3 && pattern[i + 2] == '<' && pattern[i + 3] != '=' &&
                       pattern[i + 3] != '!') {
                n++;
            }
        }
    }
    return n;
}

/* (?i), (?s), (?m) or several of them at the very start hold for the whole pattern. */
static bool has_leading_flags(const translator_t *t)
{
    const unsigned char *at = t->at + 2;

    if (!has_text(t, "(?")) {
        return false;
    }
    while (at < t->end && (*at == 'i' || *at == 's' || *at == 'm')) {
        at++;
    }
    return at > t->at + 2 && at < t->end && *at == ')';
}

static bool translate(translator_t *t)
{
    if (has_leading_flags(t)) {
        unsigned flags = 0;

        t->at += 2;
        if (!take_flags(t, ')', &flags)) {
            return false;
        }
        t->flags[0] = (unsigned char)flags;
        if ((flags & FLAG_ICASE) != 0 && !put(t, "(?i)")) {
            return false;
        }
    }
    if (!put_callout(t, CALLOUT)) {
        return false;
    }
    while (t->at < t->end) {
        if (!translate_item(t)) {
            return false;
        }
    }
    return t->depth == 0;
}

mcp_wire_status_t mcp_regex_translate(const char *pattern, size_t bytes, mcp_regex_source_t *ret)
{
    translator_t t;

    memset(&t, 0, sizeof(t));
    t.at = (const unsigned char *)pattern;
    t.end = t.at + bytes;
    t.captures = count_captures(pattern, bytes);
    if (!translate(&t)) {
        free(t.out);
        return t.has_no_memory ? MCP_E_NOMEM : MCP_E_FIELD;
    }
    ret->text = t.out;
    ret->bytes = t.used;
    ret->stretch = t.stretch;
    return MCP_OK;
}
