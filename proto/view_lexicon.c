/* Names of applications and ordinary words: see view_lexicon.h. */
#include "view_lexicon.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_body.h"
#include "view_words.h"

struct mcp_view_lexicon {
    const mcp_view_lexicon_t *base;
    apr_hash_t *ordinary; /* words */
    apr_hash_t *stems;    /* stems of them */
    apr_hash_t
        *distinctive; /* phrases that name an application although all their words are ordinary */
    apr_hash_t *applications; /* phrase to mcp_view_application_t */
};

#define NAME_BYTES 128 /* of a name; a longer one is left out */
#define PHRASE_BYTES (MCP_VIEW_LEXICON_PARTS * (MCP_VIEW_WORD_BYTES + 1))
#define NAMES_OF_ONE 32

/* The words of a name, or of a line. */
typedef struct phrase {
    char text[PHRASE_BYTES];   /* words with a space between */
    char joined[PHRASE_BYTES]; /* without */
    size_t words;
    size_t bytes, joined_bytes;
    int is_too_long;
} phrase_t;

static int take_word(const mcp_view_word_t *word, void *ctx)
{
    phrase_t *phrase = ctx;

    if (word->form == MCP_VIEW_FORM_JOINED || word->form == MCP_VIEW_FORM_SINGLE) {
        return 0;
    }
    if (phrase->words == MCP_VIEW_LEXICON_PARTS) {
        phrase->is_too_long = 1;
        return 1;
    }
    if (phrase->words++ > 0) {
        phrase->text[phrase->bytes++] = ' ';
    }
    memcpy(phrase->text + phrase->bytes, word->text, word->bytes + 1);
    phrase->bytes += word->bytes;
    memcpy(phrase->joined + phrase->joined_bytes, word->text, word->bytes + 1);
    phrase->joined_bytes += word->bytes;
    return 0;
}

/* 0 if there is no phrase in it. */
static int read_phrase(const char *text, size_t bytes, phrase_t *phrase)
{
    memset(phrase, 0, sizeof(*phrase));
    if (bytes <= NAME_BYTES) {
        mcp_view_words(text, bytes, take_word, phrase);
    }
    return phrase->words > 0 && !phrase->is_too_long;
}

/* --- questions ------------------------------------------------------------- */

static int has(const mcp_view_lexicon_t *lexicon, const char *word, const char *stem)
{
    for (; lexicon != NULL; lexicon = lexicon->base) {
        if (apr_hash_get(lexicon->ordinary, word, APR_HASH_KEY_STRING) != NULL ||
            apr_hash_get(lexicon->stems, stem, APR_HASH_KEY_STRING) != NULL) {
            return 1;
        }
    }
    return 0;
}

int mcp_view_lexicon_is_ordinary(const mcp_view_lexicon_t *lexicon, const char *word)
{
    char stem[MCP_VIEW_WORD_BYTES + 1];
    size_t bytes = strlen(word);

    if (bytes > MCP_VIEW_WORD_BYTES) {
        return 0;
    }
    memcpy(stem, word, bytes + 1);
    mcp_view_words_stem(stem, bytes);
    return has(lexicon, word, stem);
}

/* The shipped lexicon knows more names of an application than a connector's label tells: the base
 * is asked first. */
static const mcp_view_application_t *find_phrase(const mcp_view_lexicon_t *lexicon,
                                                 const char *phrase)
{
    const mcp_view_application_t *found = NULL;

    if (lexicon->base != NULL) {
        found = apr_hash_get(lexicon->base->applications, phrase, APR_HASH_KEY_STRING);
    }
    return found != NULL ? found : apr_hash_get(lexicon->applications, phrase, APR_HASH_KEY_STRING);
}

const mcp_view_application_t *mcp_view_lexicon_application(const mcp_view_lexicon_t *lexicon,
                                                           const char *const *folded, size_t count,
                                                           size_t *words)
{
    char phrase[PHRASE_BYTES];
    size_t ends[MCP_VIEW_LEXICON_PARTS], bytes = 0;

    if (lexicon == NULL) {
        return NULL;
    }
    count = count < MCP_VIEW_LEXICON_PARTS ? count : MCP_VIEW_LEXICON_PARTS;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(folded[i]);

        if (length > MCP_VIEW_WORD_BYTES) {
            count = i;
            break;
        }
        if (i > 0) {
            phrase[bytes++] = ' ';
        }
        memcpy(phrase + bytes, folded[i], length);
        bytes += length;
        ends[i] = bytes;
    }
    for (size_t i = count; i > 0; i--) {
        const mcp_view_application_t *found;

        phrase[ends[i - 1]] = '\0';
        found = find_phrase(lexicon, phrase);
        if (found != NULL) {
            *words = i;
            return found;
        }
    }
    return NULL;
}

/* --- a blob into a lexicon --------------------------------------------------- */

/* 1 if a search recognises the phrase: not by a letter or a number alone, nor by ordinary words. */
static int is_recognised(const mcp_view_lexicon_t *lexicon, const char *phrase)
{
    char word[MCP_VIEW_WORD_BYTES + 1];
    int is_all_ordinary = 1;

    if (apr_hash_get(lexicon->distinctive, phrase, APR_HASH_KEY_STRING) != NULL) {
        return 1;
    }
    if (strlen(phrase) < 2 || strspn(phrase, "0123456789 ") == strlen(phrase)) {
        return 0;
    }
    for (const char *at = phrase; is_all_ordinary && *at != '\0';) {
        size_t bytes = strcspn(at, " ");

        memcpy(word, at, bytes);
        word[bytes] = '\0';
        is_all_ordinary =
            mcp_view_lexicon_is_ordinary(lexicon, word) || mcp_view_words_is_function(word);
        at += bytes + (at[bytes] == ' ');
    }
    return !is_all_ordinary;
}

static int add_phrase(mcp_view_lexicon_t *lexicon, mcp_view_application_t *application,
                      const char **phrases, const char *text, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, text);

    if (copy == NULL) {
        return 0;
    }
    phrases[application->phrase_count++] = copy;
    if (is_recognised(lexicon, copy) &&
        apr_hash_get(lexicon->applications, copy, APR_HASH_KEY_STRING) == NULL) {
        apr_hash_set(lexicon->applications, copy, APR_HASH_KEY_STRING, application);
    }
    return 1;
}

static mcp_wire_status_t add_application(mcp_view_lexicon_t *lexicon, const json_t *names,
                                         apr_pool_t *pool)
{
    size_t count = json_array_size(names);
    mcp_view_application_t *application = apr_pcalloc(pool, sizeof(*application));
    const char **phrases = apr_pcalloc(pool, (2 * count + 1) * sizeof(*phrases));

    if (count == 0 || count > NAMES_OF_ONE) {
        return MCP_E_FIELD;
    }
    if (application == NULL || phrases == NULL) {
        return MCP_E_NOMEM;
    }
    application->phrases = phrases;
    for (size_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(names, i);
        const char *text = json_string_value(name);
        phrase_t phrase;

        if (text == NULL) {
            return MCP_E_FIELD;
        }
        if (i == 0) {
            application->name = apr_pstrmemdup(pool, text, json_string_length(name));
        }
        if (!read_phrase(text, json_string_length(name), &phrase)) {
            continue;
        }
        /* HubSpot is hubspot too; Google Docs isn't googledocs */
        if (!add_phrase(lexicon, application, phrases, phrase.text, pool) ||
            (phrase.words > 1 && strchr(text, ' ') == NULL &&
             phrase.joined_bytes <= MCP_VIEW_WORD_BYTES &&
             !add_phrase(lexicon, application, phrases, phrase.joined, pool))) {
            return MCP_E_NOMEM;
        }
    }
    return application->name != NULL ? MCP_OK : MCP_E_NOMEM;
}

static mcp_wire_status_t add_applications(mcp_view_lexicon_t *lexicon, const json_t *list,
                                          apr_pool_t *pool)
{
    mcp_wire_status_t status = MCP_OK;
    size_t names = 0;

    if (list != NULL && !json_is_array(list)) {
        return MCP_E_FIELD;
    }
    for (size_t i = 0; status == MCP_OK && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        names += json_array_size(one);
        status = names > MCP_VIEW_LEXICON_NAMES ? MCP_E_SIZE : add_application(lexicon, one, pool);
    }
    return status;
}

static mcp_wire_status_t add_distinctive(mcp_view_lexicon_t *lexicon, const json_t *list,
                                         apr_pool_t *pool)
{
    if (list != NULL && !json_is_array(list)) {
        return MCP_E_FIELD;
    }
    if (json_array_size(list) > MCP_VIEW_LEXICON_NAMES) {
        return MCP_E_SIZE;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *name = json_array_get(list, i);
        phrase_t phrase;

        if (!json_is_string(name)) {
            return MCP_E_FIELD;
        }
        if (read_phrase(json_string_value(name), json_string_length(name), &phrase)) {
            apr_hash_set(lexicon->distinctive, apr_pstrdup(pool, phrase.text), APR_HASH_KEY_STRING,
                         "");
            apr_hash_set(lexicon->distinctive, apr_pstrdup(pool, phrase.joined),
                         APR_HASH_KEY_STRING, "");
        }
    }
    return MCP_OK;
}

static mcp_wire_status_t add_words(mcp_view_lexicon_t *lexicon, const json_t *text,
                                   apr_pool_t *pool)
{
    size_t count = 0;
    char *at;

    if (text == NULL) {
        return MCP_OK;
    }
    if (!json_is_string(text)) {
        return MCP_E_FIELD;
    }
    at = apr_pstrmemdup(pool, json_string_value(text), json_string_length(text));
    if (at == NULL) {
        return MCP_E_NOMEM;
    }
    while (*at != '\0') {
        size_t bytes = strcspn(at, " "), stem_bytes;
        int is_last = at[bytes] == '\0';

        if (bytes > 0 && bytes <= MCP_VIEW_WORD_BYTES) {
            char stem[MCP_VIEW_WORD_BYTES + 1];

            if (++count > MCP_VIEW_LEXICON_WORDS) {
                return MCP_E_SIZE;
            }
            at[bytes] = '\0';
            memcpy(stem, at, bytes + 1);
            stem_bytes = mcp_view_words_stem(stem, bytes);
            apr_hash_set(lexicon->ordinary, at, (apr_ssize_t)bytes, "");
            if (apr_hash_get(lexicon->stems, stem, (apr_ssize_t)stem_bytes) == NULL) {
                char *copy = apr_pstrmemdup(pool, stem, stem_bytes);

                if (copy == NULL) {
                    return MCP_E_NOMEM;
                }
                apr_hash_set(lexicon->stems, copy, (apr_ssize_t)stem_bytes, "");
            }
        }
        at += bytes + (is_last ? 0 : 1);
    }
    return MCP_OK;
}

/* Words first: whether a name is recognised depends on them. */
static mcp_wire_status_t fill(mcp_view_lexicon_t *lexicon, const json_t *blob, apr_pool_t *pool)
{
    static const char *const known[] = {"applications", "distinctive", "words"};
    size_t members = 0;
    mcp_wire_status_t status;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        members += json_object_get(blob, known[i]) != NULL;
    }
    if (members != json_object_size(blob)) {
        return MCP_E_FIELD;
    }
    status = add_words(lexicon, json_object_get(blob, "words"), pool);
    if (status == MCP_OK) {
        status = add_distinctive(lexicon, json_object_get(blob, "distinctive"), pool);
    }
    return status == MCP_OK ? add_applications(lexicon, json_object_get(blob, "applications"), pool)
                            : status;
}

mcp_wire_status_t mcp_view_lexicon_parse(const char *bytes, size_t size,
                                         const mcp_view_lexicon_t *base, apr_pool_t *pool,
                                         mcp_view_lexicon_t **ret)
{
    json_t *blob = NULL;
    apr_pool_t *own = NULL;
    mcp_view_lexicon_t *lexicon;
    mcp_wire_status_t status;

    if (size > MCP_VIEW_LEXICON_BYTES) {
        return MCP_E_SIZE;
    }
    status = mcp_body_parse(bytes, size, &blob);
    if (status != MCP_OK) {
        return status;
    }
    if (apr_pool_create(&own, pool) != APR_SUCCESS) {
        json_decref(blob);
        return MCP_E_NOMEM;
    }
    lexicon = apr_pcalloc(own, sizeof(*lexicon));
    if (lexicon != NULL) {
        lexicon->base = base;
        lexicon->ordinary = apr_hash_make(own);
        lexicon->stems = apr_hash_make(own);
        lexicon->distinctive = apr_hash_make(own);
        lexicon->applications = apr_hash_make(own);
    }
    status = lexicon != NULL ? fill(lexicon, blob, own) : MCP_E_NOMEM;
    json_decref(blob);
    if (status != MCP_OK) {
        apr_pool_destroy(own);
        return status;
    }
    *ret = lexicon;
    return MCP_OK;
}

/* --- the shipped files into a blob's value ------------------------------------ */

typedef struct lines {
    const char *at, *end;
    size_t number;
} lines_t;

/* The next line that is neither empty nor a comment, without its end; 0: there is none. */
static int next_line(lines_t *lines, const char **ret, size_t *bytes)
{
    while (lines->at != NULL && lines->at < lines->end) {
        const char *feed = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
        const char *line = lines->at, *stop = feed != NULL ? feed : lines->end;

        lines->number++;
        lines->at = feed != NULL ? feed + 1 : lines->end;
        if (stop > line && stop[-1] == '\r') {
            stop--;
        }
        if (stop > line && *line != '#') {
            *ret = line;
            *bytes = (size_t)(stop - line);
            return 1;
        }
    }
    return 0;
}

/* Cuts what stands before `until` from the text, without blanks around. */
static int next_part(const char **text, size_t *bytes, char until, const char **ret,
                     size_t *ret_bytes)
{
    const char *mark;

    if (*text == NULL) {
        return 0;
    }
    mark = memchr(*text, until, *bytes);
    *ret = *text;
    *ret_bytes = mark != NULL ? (size_t)(mark - *text) : *bytes;
    *bytes = mark != NULL ? *bytes - *ret_bytes - 1 : 0;
    *text = mark != NULL ? mark + 1 : NULL;
    while (*ret_bytes > 0 && **ret == ' ') {
        (*ret)++;
        (*ret_bytes)--;
    }
    while (*ret_bytes > 0 && (*ret)[*ret_bytes - 1] == ' ') {
        (*ret_bytes)--;
    }
    return 1;
}

/* name TAB category TAB other names TAB distinctive */
static mcp_wire_status_t pack_application(const char *line, size_t bytes, json_t *applications,
                                          json_t *distinctive)
{
    const char *name, *others = "", *part;
    size_t name_bytes, others_bytes = 0, part_bytes;
    json_t *names = json_array();
    int is_distinctive = 0, failed = names == NULL;

    if (!next_part(&line, &bytes, '\t', &name, &name_bytes) || name_bytes == 0) {
        json_decref(names);
        return MCP_E_FIELD;
    }
    failed |= json_array_append_new(names, json_stringn(name, name_bytes)) != 0;
    if (next_part(&line, &bytes, '\t', &part, &part_bytes)) {
        next_part(&line, &bytes, '\t', &others, &others_bytes);
    }
    if (next_part(&line, &bytes, '\t', &part, &part_bytes) && part_bytes > 0) {
        is_distinctive =
            part_bytes == strlen("distinctive") && memcmp(part, "distinctive", part_bytes) == 0;
        failed |= !is_distinctive;
    }
    while (next_part(&others, &others_bytes, ',', &part, &part_bytes)) {
        if (part_bytes > 0) {
            failed |= json_array_append_new(names, json_stringn(part, part_bytes)) != 0;
        }
    }
    for (size_t i = 0; is_distinctive && i < json_array_size(names); i++) {
        failed |= json_array_append_new(distinctive, json_incref(json_array_get(names, i))) != 0;
    }
    failed |= json_array_size(names) > NAMES_OF_ONE;
    failed |= json_array_append_new(applications, names) != 0;
    return failed ? MCP_E_FIELD : MCP_OK;
}

/* The words of the file with a space between. */
static mcp_wire_status_t pack_words(lines_t *lines, size_t size, json_t **ret)
{
    char *text = malloc(size + 1);
    const char *line;
    size_t bytes, used = 0;
    int is_plain = 1;

    if (text == NULL) {
        return MCP_E_NOMEM;
    }
    while (is_plain && next_line(lines, &line, &bytes)) {
        for (size_t i = 0; i < bytes; i++) {
            is_plain = is_plain && (unsigned char)line[i] > ' ';
        }
        if (used > 0) {
            text[used++] = ' ';
        }
        memcpy(text + used, line, bytes);
        used += bytes;
    }
    *ret = is_plain ? json_stringn(text, used) : NULL;
    free(text);
    return *ret != NULL ? MCP_OK : MCP_E_FIELD;
}

static mcp_wire_status_t pack(json_t *blob, lines_t *applications, lines_t *words,
                              size_t words_size, size_t *line_number)
{
    json_t *list = json_array(), *distinctive = json_array(), *text = NULL;
    mcp_wire_status_t status = list == NULL || distinctive == NULL ? MCP_E_NOMEM : MCP_OK;
    const char *line;
    size_t bytes;

    while (status == MCP_OK && next_line(applications, &line, &bytes)) {
        status = pack_application(line, bytes, list, distinctive);
        *line_number = applications->number;
    }
    if (status == MCP_OK) {
        status = pack_words(words, words_size, &text);
        *line_number = words->number;
    }
    if (json_object_set_new(blob, "applications", list) != 0 ||
        json_object_set_new(blob, "distinctive", distinctive) != 0 ||
        (text != NULL && json_object_set_new(blob, "words", text) != 0)) {
        status = status != MCP_OK ? status : MCP_E_NOMEM;
    }
    return status;
}

mcp_wire_status_t mcp_view_lexicon_pack(const char *applications, size_t applications_size,
                                        const char *words, size_t words_size, json_t **ret,
                                        size_t *line)
{
    lines_t names = {.at = applications,
                     .end = applications != NULL ? applications + applications_size : NULL};
    lines_t list = {.at = words, .end = words != NULL ? words + words_size : NULL};
    json_t *blob;
    mcp_wire_status_t status;

    *line = 0;
    if (applications_size > MCP_VIEW_LEXICON_BYTES || words_size > MCP_VIEW_LEXICON_BYTES) {
        return MCP_E_SIZE;
    }
    blob = json_object();
    status = blob != NULL ? pack(blob, &names, &list, words_size, line) : MCP_E_NOMEM;
    if (status != MCP_OK) {
        json_decref(blob);
        return status;
    }
    *ret = blob;
    return MCP_OK;
}
