/* The last check before anything is sent. An upstream, or something in front of it, may read a URL
 * otherwise than we wrote it: decode once more, merge slashes, drop matrix parameters, ignore case.
 * So the URL is taken in every such reading, and in none may it belong to an operation that this
 * caller does not have.
 *
 * Readings. Level 0 is the URL as written: split at '/', each segment decoded once. Level n > 0 is
 * the path decoded n times and split afterwards, at '/' and '\', until decoding changes nothing
 * more; overlong UTF-8 counts as the character it hides. Each level is read plainly and with any of
 *   LOOSE   case, full-width forms and blanks or dots at the end of a segment ignored
 *   PARAMS  ";x=y" cut off each segment
 *   CUT     the path ended at a decoded '?' or NUL, what follows '?' taken for a query; at a
 *           decoded '#' in the last segment too, in others only that segment: "C#" and "#general"
 *           are common names, so one that begins a segment cuts nothing
 * The plain reading of level 0 must be claimed by the operation called, or one that the caller has.
 * Every other one may also be claimed by nobody: "a%2Fb" is a fine id as long as a/b is nobody's. A
 * dot segment in any reading refuses. */
#include "mcp_urlguard.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "mcp_encode.h"
#include "mcp_urlguard_private.h"

#define MAX_OPERATIONS 20000
#define MAX_ROUNDS 4   /* decodings until the text must be stable */
#define MAX_PAIRS 1024 /* of a query; looked at only where a template has query literals */

#define READ_LOOSE 1u
#define READ_PARAMS 2u
#define READ_CUT 4u
#define READ_ALL (READ_LOOSE | READ_PARAMS | READ_CUT)

struct mcp_guard {
    mcp_guard_op_t *ops;
    size_t count;
    int has_literals;
};

/* One judgement. */
typedef struct trial {
    const mcp_guard_t *guard;
    const char *verdicts; /* as many as the guard has operations */
    const char *method;
    const mcp_guard_op_t *called;
    const char *query;
    size_t query_bytes;
    apr_pool_t *pool;
    mcp_guard_text_t levels[MAX_ROUNDS + 1];
    size_t level_count;
} trial_t;

/* How one reading looks at a path. */
typedef struct view {
    size_t level;
    unsigned flags;
    size_t written_slashes; /* of the path as written */
} view_t;

typedef enum finding {
    FOUND_REFUSED, /* the zero value refuses */
    FOUND_NOBODY,
    FOUND_CLAIMED
} finding_t;

static apr_status_t restricted(apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(
        err, pool, MCP_FAIL_TOOL, MCP_CODE_URL_RESTRICTED,
        "Use plain names or ids, without path separators, dot segments or percent escapes.",
        "An argument would lead outside the URL of this tool.");
}

apr_status_t mcp_urlguard_compile(const json_t *blob, apr_pool_t *pool, mcp_guard_t **ret,
                                  mcp_err_t *err)
{
    const json_t *rows = json_object_get(blob, "operations");
    mcp_guard_t *guard = apr_pcalloc(pool, sizeof(*guard));

    guard->count = json_array_size(rows);
    if (!json_is_array(rows) || guard->count > MAX_OPERATIONS) {
        return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "This tool's URL rules can't be read.");
    }
    guard->ops = apr_pcalloc(pool, (guard->count + 1) * sizeof(*guard->ops));
    for (size_t i = 0; i < guard->count; ++i) {
        if (mcp_guard_match_compile(json_array_get(rows, i), pool, &guard->ops[i]) != 0) {
            return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                               "This tool's URL rules can't be read.");
        }
        guard->has_literals = guard->has_literals || guard->ops[i].literal_count > 0;
    }
    *ret = guard;
    return APR_SUCCESS;
}

size_t mcp_urlguard_rows(const mcp_guard_t *guard)
{
    return guard->count;
}

/* --- readings ------------------------------------------------------------- */

/* Decodes until stable. 0, or -1 if it is not after MAX_ROUNDS. */
static int rounds_of(const mcp_guard_text_t *text, apr_pool_t *pool, mcp_guard_text_t *levels,
                     size_t *ret_count)
{
    size_t count = 0;

    levels[count++] = *text;
    for (;;) {
        const mcp_guard_text_t *last = &levels[count - 1];
        mcp_guard_text_t next = mcp_guard_lenient_decode(last, pool);

        if (next.bytes == last->bytes && memcmp(next.data, last->data, next.bytes) == 0) {
            *ret_count = count;
            return 0;
        }
        if (count == MAX_ROUNDS + 1) {
            return -1;
        }
        levels[count++] = next;
    }
}

static mcp_guard_text_t folded(const mcp_guard_text_t *text, apr_pool_t *pool)
{
    char *copy = apr_pstrmemdup(pool, text->data, text->bytes);

    return (mcp_guard_text_t){copy, mcp_guard_lenient_fold(copy, text->bytes)};
}

/* One name or value of the query: decoded at least once, '+' is a blank. */
static mcp_guard_text_t query_text(const char *data, size_t bytes, size_t level, unsigned flags,
                                   apr_pool_t *pool)
{
    char *copy = apr_pstrmemdup(pool, data, bytes);
    mcp_guard_text_t text = {copy, bytes};

    for (size_t i = 0; i < bytes; ++i) {
        copy[i] = copy[i] == '+' ? ' ' : copy[i];
    }
    for (size_t i = 0; i < (level > 1 ? level : 1); ++i) {
        text = mcp_guard_lenient_decode(&text, pool);
    }
    return (flags & READ_LOOSE) != 0 ? folded(&text, pool) : text;
}

/* Appends the query's pairs. 0, or -1 if there are too many. */
static int read_pairs(const char *query, size_t bytes, size_t level, unsigned flags,
                      apr_pool_t *pool, mcp_guard_pair_t *pairs, size_t *count)
{
    const char *end = query + bytes;

    while (query < end) {
        const char *amp = memchr(query, '&', (size_t)(end - query));
        size_t length = (size_t)((amp != NULL ? amp : end) - query);
        const char *equals = memchr(query, '=', length);
        size_t name = equals != NULL ? (size_t)(equals - query) : length;
        size_t value = equals != NULL ? name + 1 : length;

        if (length > 0) {
            if (*count == MAX_PAIRS) {
                return -1;
            }
            pairs[*count].name = query_text(query, name, level, flags, pool);
            pairs[*count].value = query_text(query + value, length - value, level, flags, pool);
            ++*count;
        }
        query += length + (amp != NULL ? 1 : 0);
    }
    return 0;
}

static const char *find_any(const mcp_guard_text_t *text, const char *set, size_t set_bytes)
{
    for (size_t i = 0; i < text->bytes; ++i) {
        if (memchr(set, text->data[i], set_bytes) != NULL) {
            return text->data + i;
        }
    }
    return NULL;
}

/* A dot segment, also with blanks around it, which some file systems drop. */
static int is_dot_segment(const mcp_guard_text_t *segment)
{
    const char *data = segment->data;
    size_t bytes = segment->bytes;

    while (bytes > 0 && (unsigned char)data[0] <= 0x20) {
        ++data;
        --bytes;
    }
    while (bytes > 0 && (unsigned char)data[bytes - 1] <= 0x20) {
        --bytes;
    }
    return mcp_encode_is_dots(data, bytes);
}

static size_t slashes_in(const mcp_guard_text_t *text)
{
    size_t count = 0;

    for (size_t i = 0; i < text->bytes; ++i) {
        count += text->data[i] == '/' ? 1 : 0;
    }
    return count;
}

/* A segment as this reading sees it; *ret_tail gets what a cut of the path left over (data NULL: no
 * cut). is_last: no written segment follows. */
static mcp_guard_text_t read_segment(const mcp_guard_text_t *raw, const view_t *view, int is_last,
                                     apr_pool_t *pool, mcp_guard_text_t *ret_tail)
{
    mcp_guard_text_t segment = *raw;
    const char *stop;

    if (view->level == 0) {
        segment = mcp_guard_lenient_decode(raw, pool);
        if ((view->flags & READ_LOOSE) != 0) {
            segment = folded(&segment, pool);
        }
    }
    *ret_tail = (mcp_guard_text_t){NULL, 0};
    stop = (view->flags & READ_CUT) != 0 ? find_any(&segment, "?", 2) : NULL; /* 2: the NUL too */
    if (stop != NULL) {
        *ret_tail = (mcp_guard_text_t){stop, segment.bytes - (size_t)(stop - segment.data)};
        segment.bytes = (size_t)(stop - segment.data);
    }
    stop = (view->flags & READ_CUT) != 0 ? find_any(&segment, "#", 1) : NULL;
    if (stop != NULL && stop > segment.data) {
        segment.bytes = (size_t)(stop - segment.data);
        if (is_last) {
            *ret_tail = (mcp_guard_text_t){stop, 1};
        }
    }
    stop = (view->flags & READ_PARAMS) != 0 ? find_any(&segment, ";", 1) : NULL;
    if (stop != NULL) {
        segment.bytes = (size_t)(stop - segment.data);
    }
    return segment;
}

/* Splits one level into segments, empty ones dropped. 0, or -1 for a dot segment or too many. */
static int read_segments(const mcp_guard_text_t *text, const view_t *view, apr_pool_t *pool,
                         mcp_guard_text_t *segments, size_t *ret_count, mcp_guard_text_t *ret_tail)
{
    const char *at = text->data;
    const char *end = text->data + text->bytes;
    size_t slashes = 0;
    size_t count = 0;

    *ret_tail = (mcp_guard_text_t){NULL, 0};
    while (at < end && ret_tail->data == NULL) {
        mcp_guard_text_t rest = {at, (size_t)(end - at)};
        const char *slash = find_any(&rest, "/\\", 2); /* a written URL has no '\' */
        mcp_guard_text_t raw = {at, (size_t)((slash != NULL ? slash : end) - at)};
        mcp_guard_text_t segment =
            read_segment(&raw, view, slashes >= view->written_slashes, pool, ret_tail);

        if (is_dot_segment(&segment)) {
            return -1;
        }
        if ((view->flags & READ_LOOSE) != 0) {
            mcp_guard_lenient_trim(&segment);
        }
        if (segment.bytes > 0) {
            if (count == MCP_GUARD_SEGMENTS) {
                return -1;
            }
            segments[count++] = segment;
        }
        if (ret_tail->data != NULL && slash != NULL && view->level > 0) {
            /* What follows is the query's, slashes and all. */
            ret_tail->bytes = (size_t)(end - ret_tail->data);
        }
        slashes += slash != NULL ? 1 : 0;
        at = slash != NULL ? slash + 1 : end;
    }
    *ret_count = count;
    return 0;
}

/* --- verdict --------------------------------------------------------------- */

static char verdict_of(const trial_t *trial, const mcp_guard_op_t *op)
{
    return trial->verdicts[op - trial->guard->ops];
}

/* Whether the best templates, all equally specific, leave the reading to the caller. Among
 * identical templates a block refuses, a twin that the caller merely lacks does not. Equally
 * specific but different ones must each be allowed. */
static finding_t judge_best(const trial_t *trial, const mcp_guard_op_t *const *best, size_t count)
{
    const mcp_guard_op_t *own = NULL;

    for (size_t i = 0; i < count; ++i) {
        char verdict = verdict_of(trial, best[i]);

        if (verdict != MCP_GUARD_ALLOW && verdict != MCP_GUARD_DENY) {
            return FOUND_REFUSED;
        }
        if (best[i] == trial->called || (own == NULL && verdict == MCP_GUARD_ALLOW)) {
            own = best[i];
        }
    }
    if (own == NULL) {
        return FOUND_REFUSED;
    }
    for (size_t i = 0; i < count; ++i) {
        if (verdict_of(trial, best[i]) != MCP_GUARD_ALLOW &&
            strcmp(best[i]->shape, own->shape) != 0) {
            return FOUND_REFUSED;
        }
    }
    return FOUND_CLAIMED;
}

static finding_t judge_reading(const trial_t *trial, const mcp_guard_reading_t *reading,
                               apr_pool_t *pool)
{
    const mcp_guard_op_t **best = apr_palloc(pool, (trial->guard->count + 1) * sizeof(*best));
    mcp_guard_score_t top;
    mcp_guard_score_t score;
    size_t count = 0;

    top.count = 0;
    top.literals = 0;
    for (size_t i = 0; i < trial->guard->count; ++i) {
        const mcp_guard_op_t *op = &trial->guard->ops[i];
        int order;

        if (strcmp(op->method, trial->method) != 0 || !mcp_guard_match(op, reading, &score)) {
            continue;
        }
        order = count > 0 ? mcp_guard_match_order(&score, &top) : 1;
        if (order > 0) {
            count = 0;
            top = score;
        }
        if (order >= 0) {
            best[count++] = op;
        }
    }
    return count > 0 ? judge_best(trial, best, count) : FOUND_NOBODY;
}

/* One reading of one level. */
static finding_t judge_level(const trial_t *trial, size_t level, unsigned flags, apr_pool_t *pool)
{
    size_t used = level < trial->level_count ? level : trial->level_count - 1;
    mcp_guard_text_t text = trial->levels[used];
    view_t view = {used, flags, slashes_in(&trial->levels[0])};
    mcp_guard_text_t *segments = apr_palloc(pool, MCP_GUARD_SEGMENTS * sizeof(*segments));
    mcp_guard_pair_t *pairs = NULL;
    mcp_guard_reading_t reading = {.is_loose = (flags & READ_LOOSE) != 0, .segments = segments};
    mcp_guard_text_t tail;

    if ((flags & READ_LOOSE) != 0 && used > 0) {
        text = folded(&text, pool); /* before splitting: a look-alike of '/' splits too */
    }
    if (read_segments(&text, &view, pool, segments, &reading.count, &tail) != 0) {
        return FOUND_REFUSED;
    }
    if (trial->guard->has_literals) {
        pairs = apr_palloc(pool, MAX_PAIRS * sizeof(*pairs));
        if (read_pairs(trial->query, trial->query_bytes, level, flags, pool, pairs,
                       &reading.pair_count) != 0) {
            return FOUND_REFUSED;
        }
        if (tail.data != NULL && tail.data[0] == '?' &&
            read_pairs(tail.data + 1, tail.bytes - 1, level, flags, pool, pairs,
                       &reading.pair_count) != 0) {
            return FOUND_REFUSED;
        }
        reading.pairs = pairs;
    }
    return judge_reading(trial, &reading, pool);
}

/* The flags that make a difference on this URL. */
static unsigned flags_for(const mcp_guard_text_t *last)
{
    unsigned flags = READ_LOOSE;

    flags |= find_any(last, ";", 1) != NULL ? READ_PARAMS : 0;
    flags |= find_any(last, "?#", 3) != NULL ? READ_CUT : 0;
    /* A look-alike of these shows up by folding only. */
    for (size_t i = 0; i < last->bytes; ++i) {
        flags |= (unsigned char)last->data[i] >= 0x80 ? READ_ALL : 0;
    }
    return flags;
}

/* Every reading; the plain one of level 0 must be claimed. */
static int is_ours(const trial_t *trial, size_t levels)
{
    unsigned useful = flags_for(&trial->levels[trial->level_count - 1]);
    apr_pool_t *scratch = NULL;
    int is_fine = 1;

    if (apr_pool_create(&scratch, trial->pool) != APR_SUCCESS) {
        return 0;
    }
    for (size_t level = 0; level < levels && is_fine; ++level) {
        for (unsigned flags = 0; flags <= READ_ALL && is_fine; ++flags) {
            finding_t finding;

            if ((flags & ~useful) != 0) {
                continue;
            }
            apr_pool_clear(scratch);
            finding = judge_level(trial, level, flags, scratch);
            is_fine =
                finding == FOUND_CLAIMED || (finding == FOUND_NOBODY && (level > 0 || flags != 0));
        }
    }
    apr_pool_destroy(scratch);
    return is_fine;
}

/* The URL's path below the base, from its '/' on. 0, or -1 when url is not below base. */
static int below_base(const mcp_encode_url_t *base, const mcp_encode_url_t *url,
                      mcp_guard_text_t *ret)
{
    size_t bytes = base->path_bytes;

    while (bytes > 0 && base->path[bytes - 1] == '/') {
        --bytes;
    }
    if (url->is_https != base->is_https || url->port != base->port ||
        url->host_bytes != base->host_bytes ||
        strncasecmp(url->host, base->host, base->host_bytes) != 0) {
        return -1;
    }
    if (url->path_bytes < bytes || memcmp(url->path, base->path, bytes) != 0 ||
        (url->path_bytes > bytes && url->path[bytes] != '/')) {
        return -1;
    }
    ret->data = url->path + bytes;
    ret->bytes = url->path_bytes - bytes;
    return 0;
}

/* The base itself has no dot segments in any reading: variables of the connection are filled in
 * there. */
static int is_plain_base(const mcp_encode_url_t *base, apr_pool_t *pool)
{
    mcp_guard_text_t path = {base->path, base->path_bytes};
    mcp_guard_text_t levels[MAX_ROUNDS + 1];
    mcp_guard_text_t *segments = apr_palloc(pool, MCP_GUARD_SEGMENTS * sizeof(*segments));
    mcp_guard_text_t tail;
    size_t count = 0;
    size_t ignored;

    if (base->query != NULL || rounds_of(&path, pool, levels, &count) != 0) {
        return 0;
    }
    for (size_t level = 0; level < count; ++level) {
        view_t view = {level, READ_PARAMS, slashes_in(&path)};

        if (read_segments(&levels[level], &view, pool, segments, &ignored, &tail) != 0) {
            return 0;
        }
    }
    return 1;
}

static const char *upper(const char *text, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, text);

    for (char *at = copy; *at != '\0'; ++at) {
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    }
    return copy;
}

static const mcp_guard_op_t *find_called(const mcp_guard_t *guard, const char *operation)
{
    for (size_t i = 0; i < guard->count; ++i) {
        if (strcmp(guard->ops[i].id, operation) == 0) {
            return &guard->ops[i];
        }
    }
    return NULL;
}

/* Verdicts of another guard, or of another edition of this one, say nothing about these rows. */
static int are_verdicts_of(const mcp_guard_t *guard, const char *verdicts)
{
    static const char known[] = {MCP_GUARD_ALLOW, MCP_GUARD_DENY, MCP_GUARD_BLOCK, '\0'};

    return verdicts != NULL && strspn(verdicts, known) == guard->count &&
           verdicts[guard->count] == '\0';
}

apr_status_t mcp_urlguard_check(const mcp_guard_t *guard, const char *verdicts, const char *base,
                                const char *method, const char *operation, const char *url,
                                apr_pool_t *pool, mcp_err_t *err)
{
    trial_t trial = {.guard = guard,
                     .verdicts = verdicts,
                     .method = upper(method, pool),
                     .query = "",
                     .pool = pool};
    mcp_encode_url_t base_parts;
    mcp_encode_url_t parts;
    mcp_guard_text_t path;
    mcp_guard_text_t query_levels[MAX_ROUNDS + 1];
    size_t levels;

    if (!are_verdicts_of(guard, verdicts)) {
        return mcp_err_set(err, pool, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "This tool's URL rules can't be read.");
    }
    trial.called = find_called(guard, operation);
    if (trial.called == NULL || strlen(url) > MCP_URL_BYTES ||
        mcp_encode_split(base, &base_parts) != 0 || mcp_encode_split(url, &parts) != 0 ||
        !is_plain_base(&base_parts, pool) || below_base(&base_parts, &parts, &path) != 0 ||
        rounds_of(&path, pool, trial.levels, &trial.level_count) != 0) {
        return restricted(pool, err);
    }
    levels = trial.level_count;
    if (parts.query != NULL) {
        mcp_guard_text_t query = {parts.query, parts.query_bytes};
        size_t count = 0;

        trial.query = parts.query;
        trial.query_bytes = parts.query_bytes;
        if (guard->has_literals && rounds_of(&query, pool, query_levels, &count) != 0) {
            return restricted(pool, err);
        }
        levels = count > levels ? count : levels;
    }
    if (!is_ours(&trial, levels)) {
        return restricted(pool, err);
    }
    return APR_SUCCESS;
}
