/* Templates against one reading of a URL. Specificity is the contract's: literals before
 * placeholders, left to right, a placeholder over several segments last, then required query
 * literals. */
#include "mcp_urlguard_private.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "mcp_encode.h"

#define SCORE_MULTI                                                                                \
    1u /* part of a placeholder over several segments; its own literals add to it                  \
        */
#define SCORE_SINGLE 10000u /* a placeholder; literals around it add to it */
#define SCORE_LITERAL                                                                              \
    1000000u /* above any of them: a template has at most MCP_GUARD_PATH literal bytes */

typedef enum part_kind {
    PART_LITERAL,
    PART_PATTERN, /* literals around one or more placeholders */
    PART_MULTI    /* {+name}: one or more segments, literal before the first and after the last */
} part_kind_t;

struct mcp_guard_part {
    part_kind_t kind;
    const mcp_guard_text_t
        *texts[2]; /* the literals, as written and folded: count of placeholders + 1 */
    size_t count;
    uint32_t literal_bytes;
};

/* --- compiling ------------------------------------------------------------ */

/* Literal text of a template, percent-decoded as the URL's segments are. */
static mcp_guard_text_t literal(const char *data, size_t bytes, int is_folded, apr_pool_t *pool)
{
    char *copy = apr_pstrmemdup(pool, data, bytes);
    size_t used = mcp_encode_decode(copy, bytes, copy);

    if (is_folded) {
        used = mcp_guard_lenient_fold(copy, used);
    }
    return (mcp_guard_text_t){copy, used};
}

/* The literals of one segment: before, between and after placeholders. 0, or -1 for unpaired
 * braces. */
static int split_part(const char *text, size_t bytes, int is_folded, apr_pool_t *pool,
                      mcp_guard_text_t *ret, size_t *ret_count, int *ret_is_multi)
{
    const char *end = text + bytes;
    size_t used = 0;

    *ret_is_multi = 0;
    for (;;) {
        const char *open = memchr(text, '{', (size_t)(end - text));
        const char *stop = open != NULL ? open : end;

        if (memchr(text, '}', (size_t)(stop - text)) != NULL || used == MCP_GUARD_PARTS) {
            return -1;
        }
        ret[used++] = literal(text, (size_t)(stop - text), is_folded, pool);
        if (open == NULL) {
            *ret_count = used;
            return 0;
        }
        text = memchr(open, '}', (size_t)(end - open));
        if (text == NULL || memchr(open + 1, '{', (size_t)(text - open) - 1) != NULL) {
            return -1;
        }
        *ret_is_multi |= open[1] == '+';
        ++text;
    }
}

static int compile_part(const char *text, size_t bytes, apr_pool_t *pool, mcp_guard_part_t *ret)
{
    for (int is_folded = 0; is_folded <= 1; ++is_folded) {
        mcp_guard_text_t texts[MCP_GUARD_PARTS];
        mcp_guard_text_t last;
        int is_multi;

        if (split_part(text, bytes, is_folded, pool, texts, &ret->count, &is_multi) != 0) {
            return -1;
        }
        ret->kind = ret->count == 1 ? PART_LITERAL : is_multi ? PART_MULTI : PART_PATTERN;
        if (ret->kind == PART_MULTI) { /* others in the same segment are swallowed by it */
            last = texts[ret->count - 1];
            texts[1] = last;
            ret->count = 2;
        }
        if (ret->kind == PART_LITERAL && is_folded) {
            mcp_guard_lenient_trim(&texts[0]);
        }
        ret->texts[is_folded] = apr_pmemdup(pool, texts, ret->count * sizeof(texts[0]));
    }
    ret->literal_bytes = 0;
    for (size_t i = 0; i < ret->count; ++i) {
        ret->literal_bytes += (uint32_t)ret->texts[0][i].bytes;
    }
    return 0;
}

static int compile_path(const char *path, size_t bytes, apr_pool_t *pool, mcp_guard_op_t *ret)
{
    mcp_guard_part_t *parts = apr_pcalloc(pool, MCP_GUARD_PARTS * sizeof(*parts));
    size_t used = 0;

    while (bytes > 0) {
        const char *slash = memchr(path, '/', bytes);
        size_t length = slash != NULL ? (size_t)(slash - path) : bytes;

        if (length > 0) {
            if (used == MCP_GUARD_PARTS || compile_part(path, length, pool, &parts[used]) != 0) {
                return -1;
            }
            ++used;
        }
        length += slash != NULL ? 1 : 0;
        path += length;
        bytes -= length;
    }
    ret->parts = parts;
    ret->count = used;
    return 0;
}

static int add_literal(mcp_guard_pair_t *pairs[2], size_t *used, const char *name,
                       size_t name_bytes, const char *value, size_t value_bytes, apr_pool_t *pool)
{
    if (*used == MCP_GUARD_LITERALS) {
        return -1;
    }
    for (int is_folded = 0; is_folded <= 1; ++is_folded) {
        pairs[is_folded][*used].name = literal(name, name_bytes, is_folded, pool);
        pairs[is_folded][*used].value = literal(value, value_bytes, is_folded, pool);
    }
    ++*used;
    return 0;
}

/* Required query literals: those of the blob's list and those that stand in the path itself. */
static int compile_query(const json_t *list, const char *query, size_t bytes, apr_pool_t *pool,
                         mcp_guard_op_t *ret)
{
    mcp_guard_pair_t *pairs[2] = {apr_pcalloc(pool, MCP_GUARD_LITERALS * sizeof(mcp_guard_pair_t)),
                                  apr_pcalloc(pool, MCP_GUARD_LITERALS * sizeof(mcp_guard_pair_t))};
    const char *end = query + bytes;
    size_t used = 0;

    for (size_t i = 0; i < json_array_size(list); ++i) {
        const json_t *row = json_array_get(list, i);
        const char *name = json_string_value(json_array_get(row, 0));
        const char *value = json_string_value(json_array_get(row, 1));

        if (name == NULL || value == NULL ||
            add_literal(pairs, &used, name, strlen(name), value, strlen(value), pool) != 0) {
            return -1;
        }
    }
    while (query < end) {
        const char *amp = memchr(query, '&', (size_t)(end - query));
        size_t length = (size_t)((amp != NULL ? amp : end) - query);
        const char *equals = memchr(query, '=', length);
        size_t name_bytes = equals != NULL ? (size_t)(equals - query) : length;
        const char *value = equals != NULL ? equals + 1 : query + length;

        if (length > 0 && add_literal(pairs, &used, query, name_bytes, value,
                                      (size_t)(query + length - value), pool) != 0) {
            return -1;
        }
        query += length + (amp != NULL ? 1 : 0);
    }
    ret->literals[0] = pairs[0];
    ret->literals[1] = pairs[1];
    ret->literal_count = used;
    return 0;
}

static void put_shape(mcp_encode_buf_t *buf, const mcp_guard_text_t *text)
{
    mcp_encode_part(buf, text->data, text->bytes,
                    ""); /* encoded, so that the marks between can't come from data */
}

static int order_of_pairs(const mcp_guard_pair_t *a, const mcp_guard_pair_t *b)
{
    size_t bytes = a->name.bytes < b->name.bytes ? a->name.bytes : b->name.bytes;
    int order = memcmp(a->name.data, b->name.data, bytes);

    if (order == 0 && a->name.bytes == b->name.bytes) {
        bytes = a->value.bytes < b->value.bytes ? a->value.bytes : b->value.bytes;
        order = memcmp(a->value.data, b->value.data, bytes);
        return order != 0 ? order
                          : (a->value.bytes > b->value.bytes) - (a->value.bytes < b->value.bytes);
    }
    return order != 0 ? order : (a->name.bytes > b->name.bytes) - (a->name.bytes < b->name.bytes);
}

/* The folded template without placeholder names, its query literals in order. NULL if too long. */
static const char *shape_of(const mcp_guard_op_t *op, apr_pool_t *pool)
{
    static const char *const marks[] = {
        [PART_LITERAL] = "", [PART_PATTERN] = "{}", [PART_MULTI] = "{+}"};
    const mcp_guard_pair_t *sorted[MCP_GUARD_LITERALS];
    mcp_encode_buf_t buf;

    mcp_encode_start(&buf, pool, 64 * MCP_GUARD_PATH);
    for (size_t i = 0; i < op->count; ++i) {
        const mcp_guard_part_t *part = &op->parts[i];

        mcp_encode_text(&buf, "/");
        for (size_t k = 0; k < part->count; ++k) {
            mcp_encode_text(&buf, k > 0 ? marks[part->kind] : "");
            put_shape(&buf, &part->texts[1][k]);
        }
    }
    for (size_t i = 0; i < op->literal_count; ++i) {
        size_t at = i;

        for (; at > 0 && order_of_pairs(&op->literals[1][i], sorted[at - 1]) < 0; --at) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = &op->literals[1][i];
    }
    for (size_t i = 0; i < op->literal_count; ++i) {
        mcp_encode_text(&buf, "?");
        put_shape(&buf, &sorted[i]->name);
        mcp_encode_text(&buf, "=");
        put_shape(&buf, &sorted[i]->value);
    }
    return mcp_encode_finish(&buf);
}

int mcp_guard_match_compile(const json_t *row, apr_pool_t *pool, mcp_guard_op_t *ret)
{
    const char *id = mcp_json_str(row, "id");
    const char *method = mcp_json_str(row, "method");
    const char *path = mcp_json_str(row, "path");
    const json_t *query = json_object_get(row, "query");
    mcp_guard_op_t op = {0};
    size_t path_bytes;
    size_t query_bytes;
    char *upper;

    if (id == NULL || method == NULL || path == NULL || strlen(path) > MCP_GUARD_PATH ||
        (query != NULL && !json_is_array(query))) {
        return -1;
    }
    op.id = apr_pstrdup(pool, id);
    upper = apr_pstrdup(pool, method);
    for (char *at = upper; *at != '\0'; ++at) {
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    }
    op.method = upper;
    /* A fragment tells twins of a document apart and is never sent. */
    path_bytes = strcspn(path, "?#");
    query_bytes = path[path_bytes] == '?' ? strcspn(path + path_bytes + 1, "#") : 0;
    if (compile_path(path, path_bytes, pool, &op) != 0 ||
        compile_query(query, path + path_bytes + (query_bytes > 0 ? 1 : 0), query_bytes, pool,
                      &op) != 0) {
        return -1;
    }
    op.shape = shape_of(&op, pool);
    if (op.shape == NULL) {
        return -1;
    }
    *ret = op;
    return 0;
}

/* --- matching ------------------------------------------------------------- */

static int is_equal(const mcp_guard_text_t *a, const mcp_guard_text_t *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static int starts_with(const mcp_guard_text_t *text, const mcp_guard_text_t *head)
{
    return text->bytes > head->bytes && memcmp(text->data, head->data, head->bytes) == 0;
}

static int ends_with(const mcp_guard_text_t *text, const mcp_guard_text_t *tail)
{
    return text->bytes > tail->bytes &&
           memcmp(text->data + text->bytes - tail->bytes, tail->data, tail->bytes) == 0;
}

/* Literals in order with at least one byte for each placeholder between them. Taking each at its
 * leftmost place misses no match: what is left for the rest is longest then. */
static int matches_pattern(const mcp_guard_text_t *literals, size_t count,
                           const mcp_guard_text_t *segment)
{
    mcp_guard_text_t rest = *segment;

    if (!starts_with(&rest, &literals[0])) {
        return 0;
    }
    rest.data += literals[0].bytes;
    rest.bytes -= literals[0].bytes;
    for (size_t i = 1; i + 1 < count; ++i) {
        const char *found = rest.bytes > 1 ? memmem(rest.data + 1, rest.bytes - 1, literals[i].data,
                                                    literals[i].bytes)
                                           : NULL;

        if (found == NULL) {
            return 0;
        }
        rest.bytes -= (size_t)(found - rest.data) + literals[i].bytes;
        rest.data = found + literals[i].bytes;
    }
    return ends_with(&rest, &literals[count - 1]);
}

static int matches_segment(const mcp_guard_part_t *part, const mcp_guard_text_t *segment,
                           int is_loose)
{
    const mcp_guard_text_t *texts = part->texts[is_loose];

    return part->kind == PART_LITERAL ? is_equal(&texts[0], segment)
                                      : matches_pattern(texts, part->count, segment);
}

static uint32_t score_of(const mcp_guard_part_t *part)
{
    return part->kind == PART_LITERAL ? SCORE_LITERAL : SCORE_SINGLE + part->literal_bytes;
}

/* 1 if a multi part may begin with, or end with, the segment when it takes more than that one. */
static int may_begin(const mcp_guard_text_t *texts, const mcp_guard_text_t *segment)
{
    return texts[0].bytes == 0 || starts_with(segment, &texts[0]);
}

static int may_end(const mcp_guard_text_t *texts, const mcp_guard_text_t *segment)
{
    return texts[1].bytes == 0 || ends_with(segment, &texts[1]);
}

static int has_multi(const mcp_guard_op_t *op)
{
    for (size_t i = 0; i < op->count; ++i) {
        if (op->parts[i].kind == PART_MULTI) {
            return 1;
        }
    }
    return 0;
}

/* can[j][i]: the parts from j on take exactly the segments from i on. */
typedef uint8_t can_t[MCP_GUARD_PARTS + 1][MCP_GUARD_SEGMENTS + 1];

/* The hardening flag that zeroes every local would clear 16 KiB an operation here, of which a few bytes are
 * used: those are cleared by hand. */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define CLEARED_BY_HAND __attribute__((uninitialized))
#endif
#endif
#ifndef CLEARED_BY_HAND
#define CLEARED_BY_HAND
#endif

/* Fills the row of one part from the row of the next. Each segment is looked at once, so that many
 * segments against many templates stay cheap. */
static void fill_row(const mcp_guard_part_t *part, const mcp_guard_reading_t *reading,
                     const uint8_t *next, uint8_t *row)
{
    const mcp_guard_text_t *texts = part->texts[reading->is_loose];
    int has_end = 0; /* a later segment can be the multi part's last one */

    for (size_t at = reading->count; at-- > 0;) {
        const mcp_guard_text_t *segment = &reading->segments[at];

        if (part->kind == PART_MULTI) {
            row[at] = (has_end && may_begin(texts, segment)) ||
                      (next[at + 1] && matches_pattern(texts, part->count, segment));
            has_end = has_end || (next[at + 1] && may_end(texts, segment));
        } else {
            row[at] = next[at + 1] && matches_segment(part, segment, reading->is_loose);
        }
    }
}

/* The last segment of the part that begins at `first`, which the table says can: a multi part takes
 * as few as it can, which leaves the more specific parts behind it leftmost. */
static size_t last_of(const mcp_guard_part_t *part, const mcp_guard_reading_t *reading,
                      const uint8_t *next, size_t first)
{
    const mcp_guard_text_t *texts = part->texts[reading->is_loose];
    size_t last = first;

    if (part->kind != PART_MULTI ||
        (next[first + 1] && matches_pattern(texts, part->count, &reading->segments[first]))) {
        return first;
    }
    for (++last; last + 1 < reading->count; ++last) {
        if (next[last + 1] && may_end(texts, &reading->segments[last])) {
            break;
        }
    }
    return last;
}

static int match_multi(const mcp_guard_op_t *op, const mcp_guard_reading_t *reading,
                       mcp_guard_score_t *ret)
{
    can_t can CLEARED_BY_HAND;
    size_t at = 0;

    if (reading->count < op->count) {
        return 0;
    }
    for (size_t j = 0; j <= op->count; ++j) {
        memset(can[j], 0, reading->count + 1);
    }
    can[op->count][reading->count] = 1;
    for (size_t j = op->count; j-- > 0;) {
        fill_row(&op->parts[j], reading, can[j + 1], can[j]);
    }
    if (!can[0][0]) {
        return 0;
    }
    for (size_t j = 0; j < op->count; ++j) {
        const mcp_guard_part_t *part = &op->parts[j];
        size_t last = last_of(part, reading, can[j + 1], at);

        for (; at <= last && at < reading->count; ++at) {
            ret->segments[at] =
                part->kind == PART_MULTI ? SCORE_MULTI + part->literal_bytes : score_of(part);
        }
    }
    ret->count = reading->count;
    return 1;
}

static int match_path(const mcp_guard_op_t *op, const mcp_guard_reading_t *reading,
                      mcp_guard_score_t *ret)
{
    if (has_multi(op)) {
        return match_multi(op, reading, ret);
    }
    if (op->count != reading->count) {
        return 0;
    }
    for (size_t i = 0; i < op->count; ++i) {
        if (!matches_segment(&op->parts[i], &reading->segments[i], reading->is_loose)) {
            return 0;
        }
        ret->segments[i] = score_of(&op->parts[i]);
    }
    ret->count = reading->count;
    return 1;
}

/* Every required literal is among the URL's pairs. */
static int match_query(const mcp_guard_op_t *op, const mcp_guard_reading_t *reading)
{
    const mcp_guard_pair_t *literals = op->literals[reading->is_loose];

    for (size_t i = 0; i < op->literal_count; ++i) {
        int is_found = 0;

        for (size_t k = 0; k < reading->pair_count && !is_found; ++k) {
            is_found = is_equal(&literals[i].name, &reading->pairs[k].name) &&
                       is_equal(&literals[i].value, &reading->pairs[k].value);
        }
        if (!is_found) {
            return 0;
        }
    }
    return 1;
}

int mcp_guard_match(const mcp_guard_op_t *op, const mcp_guard_reading_t *reading,
                    mcp_guard_score_t *ret)
{
    if (reading->count > MCP_GUARD_SEGMENTS || !match_query(op, reading) ||
        !match_path(op, reading, ret)) {
        return 0;
    }
    ret->literals = op->literal_count;
    return 1;
}

int mcp_guard_match_order(const mcp_guard_score_t *a, const mcp_guard_score_t *b)
{
    /* Both match the same reading, so they have equally many segments. */
    for (size_t i = 0; i < a->count && i < b->count; ++i) {
        if (a->segments[i] != b->segments[i]) {
            return a->segments[i] < b->segments[i] ? -1 : 1;
        }
    }
    return (a->literals > b->literals) - (a->literals < b->literals);
}
