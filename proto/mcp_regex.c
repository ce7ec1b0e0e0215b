/* Regular expressions with limits: the one door to PCRE2.  Compiles what
 * mcp_regex_ecma.c translated and matches under a budget of work (see the header). */
#include "mcp_regex.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "mcp_regex_private.h"

#define MATCH_LIMIT  10000000u
#define DEPTH_LIMIT  200000u
#define HEAP_KIB     16384u /* what one match may hold for turning back */
#define CALLOUT_COST 16u

struct mcp_regex {
    pcre2_code *code;
    size_t stretch; /* see mcp_regex_source_t */
};

/* --- compiling ------------------------------------------------------------- */

static apr_status_t free_code(void *code)
{
    pcre2_code_free(code);
    return APR_SUCCESS;
}

mcp_wire_status_t mcp_regex_compile(const char *pattern, size_t bytes, apr_pool_t *pool,
                                    mcp_regex_t **ret)
{
    const uint32_t options = PCRE2_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C |
                             PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF;
    mcp_regex_source_t source;
    mcp_wire_status_t status;
    pcre2_code *code;
    mcp_regex_t *regex;
    PCRE2_SIZE where;
    int error = 0;

    if (bytes > MCP_REGEX_MAX_PATTERN) {
        return MCP_E_SIZE;
    }
    status = mcp_regex_translate(pattern, bytes, &source);
    if (status != MCP_OK) {
        return status;
    }
    code = pcre2_compile((PCRE2_SPTR)source.text, source.bytes, options, &error, &where, NULL);
    free(source.text);
    if (code == NULL) {
        return error == PCRE2_ERROR_HEAP_FAILED ? MCP_E_NOMEM : MCP_E_FIELD;
    }
    apr_pool_cleanup_register(pool, code, free_code, apr_pool_cleanup_null);
    regex = apr_palloc(pool, sizeof(*regex));
    regex->code = code;
    regex->stretch = source.stretch;
    *ret = regex;
    return MCP_OK;
}

size_t mcp_regex_bytes(const mcp_regex_t *regex)
{
    size_t bytes = 0;

    /* It can't fail: the code is one, and the size always known. */
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_SIZE, &bytes);
    return sizeof(*regex) + bytes;
}

/* --- matching -------------------------------------------------------------- */

typedef struct meter {
    uint64_t work;
    size_t last; /* position at the last callout */
    size_t stretch;
} meter_t;

/* Bytes that the back references at hand may have to compare. */
static size_t longest_capture(const pcre2_callout_block *block)
{
    size_t longest = 0;

    for (uint32_t i = 1; i < block->capture_top; i++) {
        PCRE2_SIZE from = block->offset_vector[2 * i];
        PCRE2_SIZE to = block->offset_vector[2 * i + 1];

        if (from != PCRE2_UNSET && to != PCRE2_UNSET && to > from && to - from > longest) {
            longest = to - from;
        }
    }
    return longest;
}

/* Pays for what was done since the last callout and for what may come unseen before the
 * next.  A position further back costs nothing: every place that matching can go back to
 * has its own callout. */
static int spend(pcre2_callout_block *block, void *data)
{
    meter_t *meter = data;
    size_t cost = CALLOUT_COST + meter->stretch;

    if (block->current_position > meter->last) {
        cost += block->current_position - meter->last;
    }
    if (block->callout_number == MCP_REGEX_AT_REF) {
        cost += longest_capture(block);
    } else if (block->callout_number == MCP_REGEX_AT_REF_RUN) {
        cost += block->subject_length - block->current_position;
    }
    meter->last = block->current_position;
    if (cost > meter->work) {
        meter->work = 0;
        return PCRE2_ERROR_CALLOUT;
    }
    meter->work -= cost;
    return 0;
}

int mcp_regex_match_within(const mcp_regex_t *regex, const char *text, size_t bytes,
                           uint64_t *work)
{
    /* Searching a first character and checking UTF-8 run over the text without callouts. */
    const uint64_t base = CALLOUT_COST + bytes / 2;
    meter_t meter = {0, 0, regex->stretch};
    pcre2_match_context *context;
    pcre2_match_data *data;
    int found = PCRE2_ERROR_NOMEMORY;

    if (*work < base) {
        *work = 0;
        return -1;
    }
    meter.work = *work - base;
    context = pcre2_match_context_create(NULL);
    data = pcre2_match_data_create(1, NULL);
    if (context != NULL && data != NULL) {
        /* These setters only fail on a NULL context. */
        (void)pcre2_set_callout(context, spend, &meter);
        (void)pcre2_set_match_limit(context, MATCH_LIMIT);
        (void)pcre2_set_depth_limit(context, DEPTH_LIMIT);
        (void)pcre2_set_heap_limit(context, HEAP_KIB);
        found = pcre2_match(regex->code, (PCRE2_SPTR)(bytes == 0 ? "" : text), bytes, 0, 0, data,
                            context);
    }
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    *work = meter.work;
    if (found >= 0) {
        return 1;
    }
    return found == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

int mcp_regex_match(const mcp_regex_t *regex, const char *text, size_t bytes)
{
    uint64_t work = MCP_REGEX_WORK;

    return mcp_regex_match_within(regex, text, bytes, &work);
}
