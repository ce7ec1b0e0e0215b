/* Text into the words that a search compares: Unicode letters and digits, folded (case, accents,
 * full width), cut at case borders (camelCase), at letter/digit borders and at everything that is
 * neither; scripts written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) as pairs of
 * neighbouring characters. Any bytes are text: what is no UTF-8, and NUL, separates. No locale, no
 * allocation. Pure, thread-safe. */
#ifndef MCP_VIEW_WORDS_H
#define MCP_VIEW_WORDS_H

#include <stddef.h>

#define MCP_VIEW_WORD_BYTES 64 /* of a folded word without NUL; a longer one is cut */

typedef enum mcp_view_form {
    MCP_VIEW_FORM_WORD,   /* letters */
    MCP_VIEW_FORM_NUMBER, /* digits alone */
    MCP_VIEW_FORM_PAIR,   /* two characters of an unspaced script, or one that stands alone */
    MCP_VIEW_FORM_SINGLE, /* each character of an unspaced stretch, told after its pairs */
    MCP_VIEW_FORM_JOINED  /* what borders cut, whole: GitHub is git, hub, github */
} mcp_view_form_t;

typedef struct mcp_view_word {
    const char *text; /* folded UTF-8, NUL-terminated, valid during the call it is told in */
    size_t bytes;
    size_t letters;  /* characters of it */
    size_t from, to; /* where it stands in the text */
    size_t run;      /* number of the unbroken stretch of letters and digits it is of, from 0 */
    mcp_view_form_t form;
} mcp_view_word_t;

/* Called for one word after another; 0 goes on, anything else ends the walk. */
typedef int mcp_view_words_take(const mcp_view_word_t *word, void *ctx);

/* Tells each word of text. Answers what ended the walk, or 0. Time grows with bytes alone. */
int mcp_view_words(const char *text, size_t bytes, mcp_view_words_take *take, void *ctx);

/* The stem of a folded word, in place: without the endings of plural, -ing and -ed; words of three
 * letters, and words that are not a to z, stay. Answers its bytes (NUL-terminated). */
size_t mcp_view_words_stem(char *word, size_t bytes);

/* Folded English words that say nothing about which tool is wanted: articles, pronouns,
 * prepositions and the like. */
int mcp_view_words_is_function(const char *word);
/* Words that any search for a tool may carry: tool, api, server, … */
int mcp_view_words_is_generic(const char *word);
/* Words that a gateway writes into descriptions itself; they never match a description. Takes words
 * and stems. */
int mcp_view_words_is_silent(const char *word);

/* What a stretch of a query is that holds no words of a search, but a value for an argument, or the
 * name of a place on the net. */
typedef enum mcp_view_value {
    MCP_VIEW_VALUE_NONE,
    MCP_VIEW_VALUE_QUOTED,  /* 'Daily Standup', "…", “…” */
    MCP_VIEW_VALUE_ADDRESS, /* an URL, or an e-mail address */
    MCP_VIEW_VALUE_ID,      /* ENG-123, 2025-01-31, 10pm, t3_1abcdef, pi_789XYZ */
    MCP_VIEW_VALUE_DOMAIN   /* cal.com: labels, dots, an ending that applications have */
} mcp_view_value_t;

/* The first such stretch at or behind `at`: its kind, with its bounds (without quotation marks) in
 * from and to, and where to go on in next. */
mcp_view_value_t mcp_view_words_value(const char *text, size_t bytes, size_t at, size_t *from,
                                      size_t *to, size_t *next);

#endif
