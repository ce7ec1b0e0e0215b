/* What a search knows about words before it sees a tool: names of applications, and ordinary
 * English words. Made of two files that ship with the product and of the connectors that a caller
 * may browse. A lexicon is immutable once parsed; any number of threads may read it. Pure. */
#ifndef MCP_VIEW_LEXICON_H
#define MCP_VIEW_LEXICON_H

#include <apr_pools.h>
#include <jansson.h>

#include "mcp_proto.h"

typedef struct mcp_view_lexicon mcp_view_lexicon_t;

#define MCP_VIEW_LEXICON_BYTES (2u * 1024 * 1024) /* of a blob, or of a file */
#define MCP_VIEW_LEXICON_NAMES 20000              /* names and other names of one blob */
#define MCP_VIEW_LEXICON_WORDS 100000             /* ordinary words of one blob */
#define MCP_VIEW_LEXICON_PARTS 6                  /* words of a name; a longer name is left out */

/* Reads a blob:
 *   {"applications": [["Google Sheets", "gsheets"], ["Box"], …],
 *    "distinctive": ["slack", …], "words": "about above …"}
 * Each member of `applications` is one application: its name, and behind it other names of the
 * same. `words`: folded words, a space between. `distinctive`: words that name an application
 * although they are ordinary ones. Each member may be absent, others are refused. An application is
 * recognised by a name unless that consists of ordinary words alone (one word: Box, Linear;
 * several: Help Desk) that are not all distinctive. base: NULL, or a lexicon that this one adds to
 * (the shipped one, below a caller's connectors); it must live as long. Everything is copied into
 * pool. MCP_E_JSON, MCP_E_FIELD, MCP_E_SIZE, MCP_E_NOMEM; nothing stays in the pool then. */
mcp_wire_status_t mcp_view_lexicon_parse(const char *bytes, size_t size,
                                         const mcp_view_lexicon_t *base, apr_pool_t *pool,
                                         mcp_view_lexicon_t **ret);

/* The blob's value from the text of the shipped files: applications (a line each: name TAB category
 * TAB other names, comma between, or empty TAB "distinctive" or empty; what follows is ignored;
 * lines with '#' in front are comments) and words (one a line, comments alike). Either may be NULL.
 * *ret: a new reference. MCP_E_FIELD: a malformed line, whose number is in *line; MCP_E_SIZE;
 * MCP_E_NOMEM. */
mcp_wire_status_t mcp_view_lexicon_pack(const char *applications, size_t applications_size,
                                        const char *words, size_t words_size, json_t **ret,
                                        size_t *line);

/* 1 if the folded word is an ordinary English one, or an inflection of one. */
int mcp_view_lexicon_is_ordinary(const mcp_view_lexicon_t *lexicon, const char *word);

/* An application, as its names. */
typedef struct mcp_view_application {
    const char *name; /* as written */
    const char *const
        *phrases; /* folded words of each of its names, a space between; the own name first */
    size_t phrase_count;
} mcp_view_application_t;

/* The application whose name is a beginning of these folded words: the longest name wins. *words
 * gets how many it took. NULL: none. */
const mcp_view_application_t *mcp_view_lexicon_application(const mcp_view_lexicon_t *lexicon,
                                                           const char *const *folded, size_t count,
                                                           size_t *words);

#endif
