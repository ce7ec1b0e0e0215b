/* Text to values: see oas.h. The only room that knows libyaml.
 *
 * Vendors' documents are JSON that is not quite JSON, and YAML that was written by hand. Events of the parser become values one by one on a stack of our own, so
 * that depth is a number and not our stack; an alias takes another reference to what it names, and counts as all that it holds, so
 * that a few lines cannot become gigabytes further on. */
#include "oas_private.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <yaml.h>

#define MAX_KEY 4096

/* --- numbers of YAML's core schema ------------------------------------------------------ */

static int has_only(const char *text, size_t bytes, const char *set)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        if (strchr(set, text[i]) == NULL) {
            return 0;
        }
    }
    return bytes > 0;
}

/* A whole number in some base; one beyond 64 bits becomes a real one. NULL: it is none. */
static json_t *whole(const char *text, int base)
{
    long long value;
    char *end;

    errno = 0;
    value = strtoll(text, &end, base);
    if (*end != '\0') {
        return NULL;
    }
    return errno == 0 ? json_integer(value) : json_real(strtod(text, NULL));
}

/* The value of plain text that looks like a number; NULL: it is text. */
static json_t *number(const char *text, size_t bytes)
{
    size_t sign = text[0] == '-' || text[0] == '+';
    const char *digits = text + sign;
    size_t count = bytes - sign;
    char *end;
    double value;

    if (count == 0 || count > 400) {
        return NULL;
    }
    if (has_only(digits, count, "0123456789")) {
        return whole(text, 10);
    }
    if (sign == 0 && count > 2 && digits[0] == '0' && digits[1] == 'x' &&
        has_only(digits + 2, count - 2, "0123456789abcdefABCDEF")) {
        return whole(digits + 2, 16);
    }
    if (sign == 0 && count > 2 && digits[0] == '0' && digits[1] == 'o' && has_only(digits + 2, count - 2, "01234567")) {
        return whole(digits + 2, 8);
    }
    if (!has_only(digits, count, "0123456789.eE+-") || strpbrk(digits, "0123456789") == NULL ||
        !(isdigit((unsigned char)digits[0]) || digits[0] == '.')) {
        return NULL;
    }
    value = strtod(text, &end);
    return *end == '\0' && isfinite(value) ? json_real(value) : NULL;
}

/* What a scalar without quotes says. */
static json_t *plain_value(const char *text, size_t bytes)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const truths[] = {"true", "True", "TRUE"};
    static const char *const lies[] = {"false", "False", "FALSE"};
    json_t *value;
    size_t i;

    for (i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        if (strcmp(text, nulls[i]) == 0) {
            return json_null();
        }
    }
    for (i = 0; i < sizeof truths / sizeof truths[0]; i++) {
        if (strcmp(text, truths[i]) == 0) {
            return json_true();
        }
        if (strcmp(text, lies[i]) == 0) {
            return json_false();
        }
    }
    value = number(text, bytes);
    return value != NULL ? value : json_stringn(text, bytes);
}

/* --- events to values ------------------------------------------------------------------- */

/* A collection that is not complete yet. */
typedef struct level {
    json_t *value;
    char *key;      /* of the member that comes next; NULL: a key comes next */
    int is_merge;   /* the next value's members are to be merged in */
    int is_waiting; /* a key that is a collection: what it holds is passed over */
    size_t from;    /* nodes that there were when it began */
    char *anchor;
} level_t;

typedef struct anchor {
    json_t *value;
    size_t nodes;
} anchor_t;

typedef struct building {
    apr_pool_t *pool;
    apr_hash_t *anchors; /* name -> anchor_t * */
    level_t levels[OAS_MAX_DEPTH];
    int depth;
    size_t nodes;
    json_t *root;
    const char *wrong; /* set: reading ends */
} building_t;

static int is_merge_key(const char *text, int is_plain)
{
    return is_plain && strcmp(text, "<<") == 0;
}

/* Members that are there already stay: they stand nearer. */
static void merge(building_t *b, json_t *into, const json_t *from)
{
    const json_t *one;
    size_t i;

    if (json_is_array(from)) {
        json_array_foreach(oas_iterable(from), i, one)
        {
            if (json_is_object(one)) {
                (void)json_object_update_missing(into, oas_iterable(one));
            }
        }
    } else if (json_is_object(from)) {
        (void)json_object_update_missing(into, oas_iterable(from));
    } else {
        b->wrong = "a << that names no mapping";
    }
}

/* Puts a complete value (stolen) where it belongs. */
static void place(building_t *b, json_t *value)
{
    level_t *level = b->depth > 0 ? &b->levels[b->depth - 1] : NULL;
    int failed = 0;

    if (value == NULL) {
        b->wrong = "out of memory, or text that is no UTF-8";
        return;
    }
    if (level == NULL) {
        b->root = value;
        return;
    }
    if (json_is_array(level->value)) {
        failed = json_array_append_new(level->value, value);
    } else if (level->is_waiting) { /* the value of a key that is no text */
        level->is_waiting = 0;
        json_decref(value);
    } else if (level->is_merge) {
        level->is_merge = 0;
        merge(b, level->value, value);
        json_decref(value);
    } else {
        failed = json_object_set_new(level->value, level->key, value);
        free(level->key);
        level->key = NULL;
    }
    if (failed != 0) {
        b->wrong = "out of memory, or a key that is no UTF-8";
    }
}

static int takes_key(const building_t *b)
{
    const level_t *level = b->depth > 0 ? &b->levels[b->depth - 1] : NULL;

    return level != NULL && json_is_object(level->value) && level->key == NULL && !level->is_merge && !level->is_waiting;
}

static void count(building_t *b, size_t nodes)
{
    b->nodes += nodes;
    if (b->nodes > OAS_MAX_NODES) {
        b->wrong = "it has too many values, aliases followed";
    }
}

static void remember(building_t *b, const char *name, json_t *value, size_t nodes)
{
    anchor_t *anchor;

    if (name == NULL || value == NULL) {
        return;
    }
    anchor = apr_hash_get(b->anchors, name, APR_HASH_KEY_STRING);
    if (anchor != NULL) {
        json_decref(anchor->value); /* a name may be given again */
    } else {
        anchor = apr_palloc(b->pool, sizeof(*anchor));
    }
    anchor->value = value; /* the tree holds it, or the building's list below */
    anchor->nodes = nodes;
    json_incref(value);
    apr_hash_set(b->anchors, apr_pstrdup(b->pool, name), APR_HASH_KEY_STRING, anchor);
}

static void on_scalar(building_t *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t bytes = event->data.scalar.length;
    int is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && event->data.scalar.plain_implicit;
    json_t *value;

    count(b, 1);
    if (takes_key(b)) {
        level_t *level = &b->levels[b->depth - 1];

        if (bytes > MAX_KEY || strlen(text) != bytes) {
            b->wrong = "a key that is too long or holds a NUL";
            return;
        }
        level->is_merge = is_merge_key(text, is_plain);
        level->key = level->is_merge ? NULL : strdup(text);
        if (event->data.scalar.anchor != NULL) {
            value = json_stringn(text, bytes);
            remember(b, (const char *)event->data.scalar.anchor, value, 1);
            json_decref(value);
        }
        return;
    }
    value = is_plain ? plain_value(text, bytes) : json_stringn(text, bytes);
    remember(b, (const char *)event->data.scalar.anchor, value, 1);
    place(b, value);
}

static void on_alias(building_t *b, const yaml_event_t *event)
{
    const anchor_t *anchor = apr_hash_get(b->anchors, event->data.alias.anchor, APR_HASH_KEY_STRING);

    if (anchor == NULL) {
        b->wrong = "an alias of nothing that stands before it";
        return;
    }
    count(b, anchor->nodes);
    if (!takes_key(b)) {
        place(b, json_incref(anchor->value));
    } else if (json_is_string(anchor->value)) {
        b->levels[b->depth - 1].key = strdup(json_string_value(anchor->value));
    } else {
        b->levels[b->depth - 1].is_waiting = 1;
    }
}

static void on_start(building_t *b, json_t *value, const yaml_char_t *anchor)
{
    level_t *level;

    count(b, 1);
    if (b->depth >= OAS_MAX_DEPTH || value == NULL || takes_key(b)) {
        b->wrong = b->depth >= OAS_MAX_DEPTH ? "it is nested too deeply" : "a key that is no text";
        json_decref(value);
        return;
    }
    level = &b->levels[b->depth++];
    memset(level, 0, sizeof(*level));
    level->value = value;
    level->from = b->nodes;
    level->anchor = anchor != NULL ? strdup((const char *)anchor) : NULL;
}

static void on_end(building_t *b)
{
    level_t *level = &b->levels[--b->depth];

    remember(b, level->anchor, level->value, b->nodes - level->from + 1);
    free(level->anchor);
    free(level->key);
    level->anchor = NULL;
    level->key = NULL;
    place(b, level->value);
}

/* 1 when the first document has ended. */
static int on_event(building_t *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        on_scalar(b, event);
        break;
    case YAML_ALIAS_EVENT:
        on_alias(b, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        on_start(b, json_array(), event->data.sequence_start.anchor);
        break;
    case YAML_MAPPING_START_EVENT:
        on_start(b, json_object(), event->data.mapping_start.anchor);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_end(b);
        break;
    case YAML_DOCUMENT_END_EVENT:
    case YAML_STREAM_END_EVENT:
        return 1;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_START_EVENT:
        break;
    }
    return 0;
}

/* Lets go of what is only half there, and of the anchors' own references. */
static void let_go(building_t *b)
{
    apr_hash_index_t *at;

    while (b->depth > 0) {
        level_t *level = &b->levels[--b->depth];

        json_decref(level->value);
        free(level->key);
        free(level->anchor);
    }
    for (at = apr_hash_first(b->pool, b->anchors); at != NULL; at = apr_hash_next(at)) {
        anchor_t *anchor = apr_hash_this_val(at);

        json_decref(anchor->value);
    }
}

static int read_yaml(const char *bytes, size_t count, apr_pool_t *pool, json_t **ret, char *why, size_t size)
{
    building_t *b = apr_pcalloc(pool, sizeof(*b));
    yaml_parser_t parser;
    int is_over = 0;
    int status = OAS_OK;

    b->pool = pool;
    b->anchors = apr_hash_make(pool);
    if (!yaml_parser_initialize(&parser)) {
        return oas_fail(why, size, "out of memory");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, count);
    while (!is_over && status == OAS_OK) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            status = oas_fail(why, size, "line %lu: %.200s", (unsigned long)parser.problem_mark.line + 1,
                              parser.problem != NULL ? parser.problem : "this is no YAML");
            break;
        }
        is_over = on_event(b, &event);
        if (b->wrong != NULL) {
            status = oas_fail(why, size, "line %lu: %s", (unsigned long)event.start_mark.line + 1, b->wrong);
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    let_go(b);
    if (status == OAS_OK && b->root == NULL) {
        status = oas_fail(why, size, "it is empty");
    }
    if (status != OAS_OK) {
        json_decref(b->root);
        return status;
    }
    *ret = b->root;
    return OAS_OK;
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* 1 while no more levels are open than may be: jansson has a limit of its own, which is higher. */
static int is_shallow(const char *bytes, size_t count)
{
    int depth = 0;
    int is_text = 0;
    size_t i;

    for (i = 0; i < count && depth <= OAS_MAX_DEPTH; i++) {
        char c = bytes[i];

        if (is_text) {
            i += c == '\\';
            is_text = c != '"';
        } else if (c == '"') {
            is_text = 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return depth <= OAS_MAX_DEPTH;
}

/* Real numbers that are whole become so again. Recursion is bounded by the depth that was judged before. */
static json_t *wholes(json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    void *next;

    if (json_is_real(value)) {
        double real = json_real_value(value);

        return real == floor(real) && fabs(real) < 9007199254740992.0 ? json_integer((json_int_t)real)
                                                                      : json_incref(value);
    }
    if (json_is_array(value)) {
        json_array_foreach(value, i, member)
        {
            (void)json_array_set_new(value, i, wholes(member));
        }
    } else if (json_is_object(value)) {
        json_object_foreach_safe(value, next, key, member)
        {
            (void)json_object_set_new(value, key, wholes(member));
        }
    }
    return json_incref(value);
}

static json_t *parse_json(const char *bytes, size_t count, json_error_t *error)
{
    json_t *value = json_loadb(bytes, count, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, error);
    json_t *again;

    if (value != NULL || json_error_code(error) != json_error_numeric_overflow) {
        return value;
    }
    value = json_loadb(bytes, count, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, error);
    if (value == NULL) {
        return NULL;
    }
    again = wholes(value);
    json_decref(value);
    return again;
}

static int read_json(const char *bytes, size_t count, apr_pool_t *pool, json_t **ret, char *why, size_t size)
{
    json_error_t error;
    char ignored[256] = "";

    if (!is_shallow(bytes, count)) {
        return oas_fail(why, size, "it is nested too deeply");
    }
    *ret = parse_json(bytes, count, &error);
    if (*ret != NULL) {
        return OAS_OK;
    }
    /* a flow mapping of YAML begins like JSON, and so does JSON with a comma too many or a key twice, which YAML's reader takes */
    if (read_yaml(bytes, count, pool, ret, ignored, sizeof ignored) == OAS_OK) {
        return OAS_OK;
    }
    return oas_fail(why, size, "line %d: %.200s", error.line, error.text);
}

/* --- the whole -------------------------------------------------------------------------------- */

int oas_read(const char *bytes, size_t count, json_t **ret, char *why, size_t size)
{
    apr_pool_t *pool;
    size_t at = 0;
    int status;

    *ret = NULL;
    if (count > OAS_MAX_BYTES) {
        return oas_fail(why, size, "it is larger than 64 MiB");
    }
    if (count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        bytes += 3;
        count -= 3;
    }
    while (at < count && strchr(" \t\r\n", bytes[at]) != NULL && bytes[at] != '\0') {
        at++;
    }
    if (at == count) {
        return oas_fail(why, size, "it is empty");
    }
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return oas_fail(why, size, "out of memory");
    }
    status = bytes[at] == '{' || bytes[at] == '[' ? read_json(bytes, count, pool, ret, why, size)
                                                  : read_yaml(bytes, count, pool, ret, why, size);
    apr_pool_destroy(pool);
    return status;
}
