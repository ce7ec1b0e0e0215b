/* Text into folded words: see view_words.h. */
#include "view_words.h"

#include <stdint.h>
#include <string.h>

#include "view_words_fold.h"

/* What a character is to a word. */
typedef enum mark {
    MARK_BREAK, /* ends a word */
    MARK_SKIP,  /* accents, joiners, directions: as if it weren't there */
    MARK_LOWER, /* also letters without case */
    MARK_UPPER,
    MARK_DIGIT,
    MARK_HAN, /* and kana: pairs go across the two */
    MARK_THAI,
    MARK_LAO,
    MARK_KHMER,
    MARK_MYANMAR
} mark_t;

typedef struct range {
    uint32_t first, last;
    uint8_t mark;
} range_t;

/* Beyond ASCII, ordered; what stands in no range is a letter. */
static const range_t ranges[] = {
    {0x80, 0xa9, MARK_BREAK},       {0xab, 0xac, MARK_BREAK},     {0xad, 0xad, MARK_SKIP},
    {0xae, 0xb4, MARK_BREAK},       {0xb6, 0xb9, MARK_BREAK},     {0xbb, 0xbf, MARK_BREAK},
    {0xd7, 0xd7, MARK_BREAK},       {0xf7, 0xf7, MARK_BREAK},     {0x2c2, 0x2df, MARK_BREAK},
    {0x300, 0x36f, MARK_SKIP},      {0x37e, 0x37e, MARK_BREAK},   {0x387, 0x387, MARK_BREAK},
    {0x483, 0x489, MARK_SKIP},      {0x55a, 0x55f, MARK_BREAK},   {0x589, 0x58a, MARK_BREAK},
    {0x591, 0x5bd, MARK_SKIP},      {0x5be, 0x5be, MARK_BREAK},   {0x5bf, 0x5bf, MARK_SKIP},
    {0x5c0, 0x5c0, MARK_BREAK},     {0x5c1, 0x5c2, MARK_SKIP},    {0x5c3, 0x5c3, MARK_BREAK},
    {0x5c4, 0x5c7, MARK_SKIP},      {0x5f3, 0x5f4, MARK_BREAK},   {0x600, 0x60f, MARK_BREAK},
    {0x610, 0x61a, MARK_SKIP},      {0x61b, 0x61f, MARK_BREAK},   {0x640, 0x640, MARK_SKIP},
    {0x64b, 0x65f, MARK_SKIP},      {0x660, 0x669, MARK_DIGIT},   {0x66a, 0x66d, MARK_BREAK},
    {0x670, 0x670, MARK_SKIP},      {0x6d4, 0x6d4, MARK_BREAK},   {0x6d6, 0x6ed, MARK_SKIP},
    {0x6f0, 0x6f9, MARK_DIGIT},     {0x6fd, 0x6fe, MARK_BREAK},   {0x964, 0x965, MARK_BREAK},
    {0x966, 0x96f, MARK_DIGIT},     {0xe3f, 0xe3f, MARK_BREAK},   {0xe4f, 0xe4f, MARK_BREAK},
    {0xe50, 0xe59, MARK_DIGIT},     {0xe5a, 0xe5b, MARK_BREAK},   {0xe00, 0xe7f, MARK_THAI},
    {0xed0, 0xed9, MARK_DIGIT},     {0xe80, 0xeff, MARK_LAO},     {0x104a, 0x104f, MARK_BREAK},
    {0x1000, 0x109f, MARK_MYANMAR}, {0x17d4, 0x17da, MARK_BREAK}, {0x17e0, 0x17e9, MARK_DIGIT},
    {0x1780, 0x17ff, MARK_KHMER},   {0x1ab0, 0x1aff, MARK_SKIP},  {0x1dc0, 0x1dff, MARK_SKIP},
    {0x2000, 0x200b, MARK_BREAK},   {0x200c, 0x200f, MARK_SKIP},  {0x2010, 0x2029, MARK_BREAK},
    {0x202a, 0x202e, MARK_SKIP},    {0x202f, 0x205f, MARK_BREAK}, {0x2060, 0x206f, MARK_SKIP},
    {0x2070, 0x20cf, MARK_BREAK},   {0x20d0, 0x20ff, MARK_SKIP},  {0x2100, 0x2bff, MARK_BREAK},
    {0x2e00, 0x2e7f, MARK_BREAK},   {0x2e80, 0x2fdf, MARK_HAN},   {0x2ff0, 0x3004, MARK_BREAK},
    {0x3005, 0x3007, MARK_HAN},     {0x3008, 0x3020, MARK_BREAK}, {0x3021, 0x3029, MARK_HAN},
    {0x302a, 0x3030, MARK_BREAK},   {0x3031, 0x3035, MARK_HAN},   {0x3036, 0x303f, MARK_BREAK},
    {0x3099, 0x309c, MARK_SKIP},    {0x3040, 0x309f, MARK_HAN},   {0x30a0, 0x30a0, MARK_BREAK},
    {0x30fb, 0x30fb, MARK_BREAK},   {0x30a1, 0x312f, MARK_HAN},   {0x3190, 0x31ff, MARK_HAN},
    {0x3200, 0x33ff, MARK_BREAK},   {0x3400, 0x4dbf, MARK_HAN},   {0x4dc0, 0x4dff, MARK_BREAK},
    {0x4e00, 0x9fff, MARK_HAN},     {0xd800, 0xf8ff, MARK_BREAK}, {0xf900, 0xfaff, MARK_HAN},
    {0xfe00, 0xfe0f, MARK_SKIP},    {0xfe10, 0xfe1f, MARK_BREAK}, {0xfe20, 0xfe2f, MARK_SKIP},
    {0xfe30, 0xfe6f, MARK_BREAK},   {0xfeff, 0xfeff, MARK_SKIP},  {0xff00, 0xff0f, MARK_BREAK},
    {0xff10, 0xff19, MARK_DIGIT},   {0xff1a, 0xff20, MARK_BREAK}, {0xff21, 0xff3a, MARK_UPPER},
    {0xff3b, 0xff40, MARK_BREAK},   {0xff41, 0xff5a, MARK_LOWER}, {0xff5b, 0xff65, MARK_BREAK},
    {0xff66, 0xff9d, MARK_HAN},     {0xff9e, 0xff9f, MARK_SKIP},  {0xffe0, 0xffff, MARK_BREAK},
    {0x1f000, 0x1fbff, MARK_BREAK}, {0x20000, 0x3ffff, MARK_HAN}, {0xe0000, 0x10ffff, MARK_SKIP}};

#define RUN_LETTERS 128 /* of an unbroken stretch; a longer one is taken as several */
#define RUN_PARTS 3     /* of one whose whole is a word too */

typedef struct letter {
    uint32_t folded;
    uint32_t second; /* of what folds to two letters, else 0 */
    uint8_t mark;
    size_t from, to;
} letter_t;

typedef struct walk {
    mcp_view_words_take *take;
    void *ctx;
    letter_t letters[RUN_LETTERS];
    size_t count;
    size_t run;
} walk_t;

/* The character at text[0], whose bytes are answered; 1 byte and U+0000 for what is no UTF-8. */
static size_t decode(const unsigned char *text, size_t bytes, uint32_t *ret)
{
    unsigned char lead = text[0];
    size_t need = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = 0;

    *ret = 0;
    if (need == 1) {
        *ret = lead;
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4 || bytes < need) {
        return 1;
    }
    c = lead & (0xffu >> (need + 1));
    for (size_t i = 1; i < need; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 1;
        }
        c = c << 6 | (text[i] & 0x3fu);
    }
    if (c < least[need] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        return 1;
    }
    *ret = c;
    return need;
}

static size_t encode(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static mark_t mark_of(uint32_t c)
{
    size_t low = 0, high = sizeof(ranges) / sizeof(ranges[0]);

    /* The ranges' ends are ordered except where a wide one stands behind narrow ones that it holds;
     * the first whose end isn't below c is the right one either way. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ranges[middle].last < c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < sizeof(ranges) / sizeof(ranges[0]) && ranges[low].last >= c; low++) {
        if (ranges[low].first <= c) {
            return (mark_t)ranges[low].mark;
        }
        if (ranges[low].first > c + 0x100) {
            break;
        }
    }
    return MARK_LOWER;
}

/* The value of a digit beyond ASCII: blocks of ten begin at a multiple of 16, or 6 behind one. */
static uint32_t digit_of(uint32_t c)
{
    uint32_t low = c & 0xf;

    return '0' + (c >= 0x966 && c <= 0x96f ? low - 6 : low);
}

/* A table entry into the letter. */
static void fold_entry(uint16_t entry, letter_t *letter)
{
    uint32_t base = entry & (uint32_t)~MCP_VIEW_FOLD_UPPER;

    letter->mark = entry & MCP_VIEW_FOLD_UPPER ? MARK_UPPER : MARK_LOWER;
    letter->folded = base;
    if (base == 0xe6) { /* æ */
        letter->folded = 'a';
        letter->second = 'e';
    } else if (base == 0x153) { /* œ */
        letter->folded = 'o';
        letter->second = 'e';
    } else if (base == 0xfe) { /* þ */
        letter->folded = 't';
        letter->second = 'h';
    }
}

static void fold_wide(uint32_t c, letter_t *letter)
{
    letter->folded = c;
    if (c >= 0xc0 && c <= 0x24f) {
        fold_entry(mcp_view_fold_00c0[c - 0xc0], letter);
        if (c == 0xdf) { /* ß */
            letter->folded = letter->second = 's';
        }
    } else if (c >= 0x370 && c <= 0x52f) {
        fold_entry(mcp_view_fold_0370[c - 0x370], letter);
    } else if (c >= 0x1e00 && c <= 0x1fff) {
        fold_entry(mcp_view_fold_1e00[c - 0x1e00], letter);
    } else if (c >= 0x531 && c <= 0x556) { /* Armenian */
        letter->folded = c + 0x30;
        letter->mark = MARK_UPPER;
    } else if (c >= 0xff21 && c <= 0xff5a) { /* full width */
        letter->folded = (c - 0xff21) % 32 + 'a';
    }
}

/* What character c is, folded. */
static void read_letter(uint32_t c, letter_t *letter)
{
    letter->second = 0;
    letter->folded = c;
    if (c < 0x80) {
        letter->mark = MARK_BREAK;
        if (c >= 'a' && c <= 'z') {
            letter->mark = MARK_LOWER;
        } else if (c >= 'A' && c <= 'Z') {
            letter->mark = MARK_UPPER;
            letter->folded = c + 32;
        } else if (c >= '0' && c <= '9') {
            letter->mark = MARK_DIGIT;
        }
        return;
    }
    letter->mark = (uint8_t)mark_of(c);
    if (letter->mark == MARK_DIGIT) {
        letter->folded = digit_of(c);
    } else if (letter->mark == MARK_LOWER || letter->mark == MARK_UPPER) {
        fold_wide(c, letter);
    }
}

/* Tells letters[from..to) as one word. */
static int tell(walk_t *walk, size_t from, size_t to, mcp_view_form_t form)
{
    char text[MCP_VIEW_WORD_BYTES + 8];
    mcp_view_word_t word = {.text = text, .run = walk->run, .form = form};

    for (size_t i = from; i < to; i++) {
        const letter_t *letter = &walk->letters[i];

        if (word.bytes + 8 > MCP_VIEW_WORD_BYTES) {
            break;
        }
        word.bytes += encode(letter->folded, text + word.bytes);
        word.letters++;
        if (letter->second != 0) {
            word.bytes += encode(letter->second, text + word.bytes);
            word.letters++;
        }
    }
    text[word.bytes] = '\0';
    word.from = walk->letters[from].from;
    word.to = walk->letters[to - 1].to;
    return walk->take(&word, walk->ctx);
}

/* Where the part that begins at `from` ends: digits; capitals before what begins with a capital and
 * a small letter ("HTML|Page"), with the s of a plural ("URLs"); small letters with the capital
 * before them. */
static size_t part_end(const walk_t *walk, size_t from)
{
    const letter_t *letters = walk->letters;
    size_t to = from, capitals;

    if (letters[from].mark == MARK_DIGIT) {
        while (to < walk->count && letters[to].mark == MARK_DIGIT) {
            to++;
        }
        return to;
    }
    while (to < walk->count && letters[to].mark == MARK_UPPER) {
        to++;
    }
    capitals = to - from;
    if (capitals > 1) {
        if (to == walk->count || letters[to].mark != MARK_LOWER) {
            return to;
        }
        if (letters[to].folded == 's' &&
            (to + 1 == walk->count || letters[to + 1].mark != MARK_LOWER)) {
            return to + 1;
        }
        return to - 1;
    }
    while (to < walk->count && letters[to].mark == MARK_LOWER) {
        to++;
    }
    return to;
}

/* A stretch of letters and digits: its parts, each two neighbours joined, and the whole of three.
 * */
static int end_letters(walk_t *walk)
{
    size_t ends[RUN_LETTERS + 1], parts = 0, from = 0;
    int ended = 0;

    ends[0] = 0;
    while (from < walk->count && ended == 0) {
        size_t to = part_end(walk, from);
        mcp_view_form_t form =
            walk->letters[from].mark == MARK_DIGIT ? MCP_VIEW_FORM_NUMBER : MCP_VIEW_FORM_WORD;

        ended = tell(walk, from, to, form);
        ends[++parts] = from = to;
    }
    for (size_t i = 0; i + 2 <= parts && ended == 0; i++) {
        ended = tell(walk, ends[i], ends[i + 2], MCP_VIEW_FORM_JOINED);
    }
    if (parts == RUN_PARTS && ended == 0) {
        ended = tell(walk, 0, walk->count, MCP_VIEW_FORM_JOINED);
    }
    return ended;
}

/* A stretch of an unspaced script. */
static int end_unspaced(walk_t *walk)
{
    int ended = 0;

    if (walk->count == 1) {
        return tell(walk, 0, 1, MCP_VIEW_FORM_PAIR);
    }
    for (size_t i = 0; i + 2 <= walk->count && ended == 0; i++) {
        ended = tell(walk, i, i + 2, MCP_VIEW_FORM_PAIR);
    }
    for (size_t i = 0; i < walk->count && ended == 0; i++) {
        ended = tell(walk, i, i + 1, MCP_VIEW_FORM_SINGLE);
    }
    return ended;
}

static int end_run(walk_t *walk)
{
    int ended = 0;

    if (walk->count > 0) {
        ended = walk->letters[0].mark >= MARK_HAN ? end_unspaced(walk) : end_letters(walk);
        walk->run++;
        walk->count = 0;
    }
    return ended;
}

/* Scripts that may stand in one stretch. */
static int is_one_stretch(uint8_t a, uint8_t b)
{
    return a >= MARK_HAN || b >= MARK_HAN ? a == b : 1;
}

int mcp_view_words(const char *text, size_t bytes, mcp_view_words_take *take, void *ctx)
{
    const unsigned char *at = (const unsigned char *)text;
    walk_t walk = {.take = take, .ctx = ctx};
    int ended = 0;

    for (size_t i = 0; i < bytes && ended == 0;) {
        letter_t letter;
        uint32_t c;
        size_t length = decode(at + i, bytes - i, &c);

        read_letter(c, &letter);
        letter.from = i;
        letter.to = i + length;
        i += length;
        if (letter.mark == MARK_SKIP) {
            if (walk.count > 0) {
                walk.letters[walk.count - 1].to = letter.to;
            }
            continue;
        }
        if (letter.mark == MARK_BREAK || walk.count == RUN_LETTERS ||
            (walk.count > 0 && !is_one_stretch(walk.letters[0].mark, letter.mark))) {
            ended = end_run(&walk);
        }
        if (letter.mark != MARK_BREAK) {
            walk.letters[walk.count++] = letter;
        }
    }
    return ended != 0 ? ended : end_run(&walk);
}

/* --- stems ---------------------------------------------------------------- */

static int ends_with(const char *word, size_t bytes, const char *end)
{
    size_t length = strlen(end);

    return bytes >= length && memcmp(word + bytes - length, end, length) == 0;
}

/* Plural. */
static size_t strip_plural(char *word, size_t bytes)
{
    if (bytes > 4 && ends_with(word, bytes, "ies")) {
        word[bytes - 3] = 'y';
        return bytes - 2;
    }
    if (ends_with(word, bytes, "sses") || ends_with(word, bytes, "shes") ||
        ends_with(word, bytes, "ches") || ends_with(word, bytes, "xes") ||
        ends_with(word, bytes, "zes")) {
        return bytes - 2;
    }
    if (ends_with(word, bytes, "s") && !ends_with(word, bytes, "ss") &&
        !ends_with(word, bytes, "us") && !ends_with(word, bytes, "is")) {
        return bytes - 1;
    }
    return bytes;
}

/* -ing or -ed, if what stays has three letters and a vowel; of a doubled consonant one stays. */
static size_t strip_verb(const char *word, size_t bytes)
{
    size_t left = bytes;

    if (bytes >= 6 && ends_with(word, bytes, "ing")) {
        left = bytes - 3;
    } else if (bytes >= 5 && ends_with(word, bytes, "ed")) {
        left = bytes - 2;
    }
    if (left == bytes || strcspn(word, "aeiouy") >= left) {
        return bytes;
    }
    if (left > 3 && word[left - 1] == word[left - 2] && strchr("lsz", word[left - 1]) == NULL) {
        left--;
    }
    return left;
}

size_t mcp_view_words_stem(char *word, size_t bytes)
{
    if (bytes <= 3 || strspn(word, "abcdefghijklmnopqrstuvwxyz") < bytes) {
        return bytes;
    }
    bytes = strip_plural(word, bytes);
    bytes = strip_verb(word, bytes);
    if (bytes > 4 && word[bytes - 1] == 'e') {
        bytes--;
    }
    word[bytes] = '\0';
    return bytes;
}
