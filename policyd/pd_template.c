/* Comparing URL templates: see pd_template.h. */
#include "pd_template.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#define MAX_SEGMENTS 64 /* what the worker's guard takes */
#define MAX_PAIRS 32

typedef enum part_kind { PART_MULTI, PART_PATTERN, PART_LITERAL } part_kind_t;

/* One segment. Of a pattern the literals at both ends are kept. */
typedef struct part {
    part_kind_t kind;
    const char *head; /* the whole text of a literal */
    const char *tail;
    size_t literal_bytes;
} part_t;

struct pd_template {
    const char *shape;
    part_t *parts;
    size_t count;
    size_t literals; /* of the query */
};

/* --- reading --------------------------------------------------------------------- */

static char *lower(const char *text, size_t bytes, apr_pool_t *pool)
{
    char *copy = apr_pstrmemdup(pool, text, bytes);
    char *at;

    for (at = copy; *at != '\0'; at++) {
        if (*at >= 'A' && *at <= 'Z') {
            *at = (char)(*at - 'A' + 'a');
        }
    }
    return copy;
}

/* Text with each {name} as {} and each {+name} as {+}. */
static const char *blank_names(const char *text, size_t bytes, apr_pool_t *pool)
{
    char *made = lower(text, bytes, pool);
    char *to = made;
    const char *from = made;

    while (*from != '\0') {
        const char *close = *from == '{' ? strchr(from, '}') : NULL;

        if (close == NULL) {
            *to++ = *from++;
            continue;
        }
        *to++ = '{';
        if (from[1] == '+') {
            *to++ = '+';
        }
        *to++ = '}';
        from = close + 1;
    }
    *to = '\0';
    return made;
}

static part_t read_part(const char *text, size_t bytes, apr_pool_t *pool)
{
    const char *end = text + bytes;
    const char *open = memchr(text, '{', bytes);
    part_t part = {PART_LITERAL, "", "", 0};
    const char *at;
    int is_inside = 0;

    if (open == NULL) {
        part.head = lower(text, bytes, pool);
        part.literal_bytes = bytes;
        return part;
    }
    part.kind = PART_PATTERN;
    part.head = lower(text, (size_t)(open - text), pool);
    for (at = text; at < end; at++) {
        is_inside |= *at == '{';
        part.literal_bytes += !is_inside;
        if (*at == '{' && at + 1 < end && at[1] == '+') {
            part.kind = PART_MULTI;
        }
        if (*at == '}') {
            is_inside = 0;
            part.tail = lower(at + 1, (size_t)(end - at) - 1, pool);
        }
    }
    return part;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The query's literals in order, joined; *ret_count of them. */
static const char *read_query(const char *query, apr_pool_t *pool, size_t *ret_count)
{
    const char *pairs[MAX_PAIRS];
    const char *joined = "";
    size_t count = 0;
    size_t i;

    while (*query != '\0' && count < MAX_PAIRS) {
        size_t bytes = strcspn(query, "&");

        if (bytes > 0) {
            pairs[count++] = lower(query, bytes, pool);
        }
        query += bytes + (query[bytes] == '&');
    }
    qsort(pairs, count, sizeof(pairs[0]), by_text);
    for (i = 0; i < count; i++) {
        joined = apr_pstrcat(pool, joined, "?", pairs[i], (char *)NULL);
    }
    *ret_count = count;
    return joined;
}

const pd_template_t *pd_template_read(const pd_operation_t *operation, apr_pool_t *pool)
{
    const char *path = operation->path;
    size_t bytes = strcspn(path, "?#");
    const char *end = path + bytes;
    pd_template_t *made = apr_pcalloc(pool, sizeof(*made));
    const char *query = *end == '?' ? apr_pstrmemdup(pool, end + 1, strcspn(end + 1, "#")) : "";
    const char *at;
    size_t slashes = 0;

    for (at = path; at < end; at++) {
        slashes += *at == '/';
    }
    made->parts = apr_pcalloc(pool, (slashes + 1) * sizeof(*made->parts));
    for (at = path; at < end && made->count < MAX_SEGMENTS;) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t length = (size_t)((slash != NULL ? slash : end) - at);

        if (length > 0) {
            made->parts[made->count++] = read_part(at, length, pool);
        }
        at += length + (slash != NULL);
    }
    made->shape = apr_pstrcat(pool, operation->method, " ", blank_names(path, bytes, pool),
                              read_query(query, pool, &made->literals), (char *)NULL);
    return made;
}

const char *pd_template_shape(const pd_template_t *a)
{
    return a->shape;
}

/* --- comparing ------------------------------------------------------------------- */

static int begins(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

static int ends(const char *text, const char *tail)
{
    size_t bytes = strlen(text);
    size_t tail_bytes = strlen(tail);

    return bytes >= tail_bytes && strcmp(text + bytes - tail_bytes, tail) == 0;
}

static int parts_meet(const part_t *a, const part_t *b)
{
    if (a->kind == PART_LITERAL && b->kind == PART_LITERAL) {
        return strcmp(a->head, b->head) == 0;
    }
    if (a->kind == PART_LITERAL || b->kind == PART_LITERAL) {
        const part_t *literal = a->kind == PART_LITERAL ? a : b;
        const part_t *pattern = a->kind == PART_LITERAL ? b : a;

        /* a placeholder takes one byte at least */
        return strlen(literal->head) > strlen(pattern->head) + strlen(pattern->tail) &&
               begins(literal->head, pattern->head) && ends(literal->head, pattern->tail);
    }
    return (begins(a->head, b->head) || begins(b->head, a->head)) &&
           (ends(a->tail, b->tail) || ends(b->tail, a->tail));
}

static int has_multi(const pd_template_t *a)
{
    size_t i;

    for (i = 0; i < a->count; i++) {
        if (a->parts[i].kind == PART_MULTI) {
            return 1;
        }
    }
    return 0;
}

/* What stands before the first placeholder over several segments, and behind the last, has to meet;
 * what is between may be anything. */
static int multi_overlaps(const pd_template_t *a, const pd_template_t *b)
{
    size_t i;

    for (i = 0; i < a->count && i < b->count; i++) {
        if (a->parts[i].kind == PART_MULTI || b->parts[i].kind == PART_MULTI) {
            break;
        }
        if (!parts_meet(&a->parts[i], &b->parts[i])) {
            return 0;
        }
    }
    for (i = 1; i <= a->count && i <= b->count; i++) {
        const part_t *x = &a->parts[a->count - i];
        const part_t *y = &b->parts[b->count - i];

        if (x->kind == PART_MULTI || y->kind == PART_MULTI) {
            break;
        }
        if (!parts_meet(x, y)) {
            return 0;
        }
    }
    /* it takes at least one segment for each of its parts */
    return (has_multi(a) || a->count >= b->count) && (has_multi(b) || b->count >= a->count);
}

int pd_template_overlaps(const pd_template_t *a, const pd_template_t *b)
{
    size_t i;

    if (has_multi(a) || has_multi(b)) {
        return multi_overlaps(a, b);
    }
    if (a->count != b->count) {
        return 0;
    }
    for (i = 0; i < a->count; i++) {
        if (!parts_meet(&a->parts[i], &b->parts[i])) {
            return 0;
        }
    }
    return 1;
}

int pd_template_order(const pd_template_t *a, const pd_template_t *b)
{
    size_t i;

    for (i = 0; i < a->count && i < b->count; i++) {
        const part_t *x = &a->parts[i];
        const part_t *y = &b->parts[i];

        if (x->kind != y->kind) {
            return x->kind < y->kind ? -1 : 1;
        }
        if (x->kind != PART_LITERAL && x->literal_bytes != y->literal_bytes) {
            return x->literal_bytes < y->literal_bytes ? -1 : 1;
        }
    }
    return (a->literals > b->literals) - (a->literals < b->literals);
}
