/* Reading of the shipped words: see pd_lexicon.h. */
#include "pd_lexicon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "pd_log.h"

static const char *blob;
static size_t blob_bytes;
static char blob_digest[MCP_DIGEST_HEX + 1];
static const mcp_view_lexicon_t *parsed;

static apr_status_t forget(void *baton)
{
    (void)baton;
    blob = NULL;
    parsed = NULL;
    return APR_SUCCESS;
}

/* A whole file in pool; NULL when it can't be read, which is logged. */
static char *slurp(const char *dir, const char *name, apr_pool_t *pool, size_t *ret_bytes)
{
    const char *path = apr_pstrcat(pool, dir, "/", name, NULL);
    FILE *in = fopen(path, "rbe");
    char *text = NULL;

    *ret_bytes = 0;
    if (in != NULL) {
        text = apr_palloc(pool, MCP_VIEW_LEXICON_BYTES + 1);
        *ret_bytes = fread(text, 1, MCP_VIEW_LEXICON_BYTES + 1, in);
        if (ferror(in) != 0 || *ret_bytes > MCP_VIEW_LEXICON_BYTES) {
            text = NULL;
        }
        (void)fclose(in); /* it was only read */
    }
    if (text == NULL) {
        pd_log(PD_LOG_WARNING, 210, "%s can't be read: searches know fewer words", path);
    }
    return text;
}

pd_status_t pd_lexicon_load(const char *dir, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    size_t names_bytes = 0;
    size_t words_bytes = 0;
    size_t line = 0;
    size_t bytes = 0;
    json_t *value = NULL;
    mcp_view_lexicon_t *made = NULL;
    const char *names;
    const char *words;
    char *text;

    if (apr_pool_create(&scratch, pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    names = slurp(dir, "applications.txt", scratch, &names_bytes);
    words = slurp(dir, "words.txt", scratch, &words_bytes);
    if (mcp_view_lexicon_pack(names, names_bytes, words, words_bytes, &value, &line) != MCP_OK) {
        pd_log(PD_LOG_WARNING, 211, "the words in %s are malformed at line %lu: searches know none", dir,
               (unsigned long)line);
        value = json_object();
    }
    apr_pool_destroy(scratch);
    text = mcp_json_text(value, &bytes);
    json_decref(value);
    if (text == NULL) {
        return PD_E_NOMEM;
    }
    blob = apr_pstrmemdup(pool, text, bytes);
    blob_bytes = bytes;
    free(text);
    mcp_digest_hex(blob, blob_bytes, blob_digest);
    if (mcp_view_lexicon_parse(blob, blob_bytes, NULL, pool, &made) != MCP_OK) {
        return PD_E_NOMEM;
    }
    parsed = made;
    apr_pool_cleanup_register(pool, NULL, forget, apr_pool_cleanup_null);
    return PD_OK;
}

const char *pd_lexicon_digest(void)
{
    return blob != NULL ? blob_digest : NULL;
}

int pd_lexicon_blob(const char *digest, const void **bytes, size_t *count)
{
    if (blob == NULL || strcmp(digest, blob_digest) != 0) {
        return 0;
    }
    *bytes = blob;
    *count = blob_bytes;
    return 1;
}

const mcp_view_lexicon_t *pd_lexicon(void)
{
    return parsed;
}
