/* Keywords that speak of members' names: propertyNames and patternProperties without the frozen
 * ones. */
#include "view_schema_private.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_DEPTH 32 /* schemas within a schema of names, references included */

static void *first(const json_t *object)
{
    return json_object_iter(mcp_vschema_iterable(object));
}

static void *next(const json_t *object, void *at)
{
    return json_object_iter_next(mcp_vschema_iterable(object), at);
}

static int is_frozen(const mcp_vschema_node_t *node, const char *name)
{
    mcp_vschema_spot_t below;

    return (mcp_vschema_member(node->run, node->spot, name, &below) & MCP_VSCHEMA_IS_FROZEN) != 0;
}

/* 1 if a schema for names, or one that it refers to, has a frozen name in it. The recursion ends
 * with `left`. */
static int names_frozen(mcp_vschema_node_t *node, const json_t *value, int left)
{
    const char *text = json_string_value(value);

    if (left == 0 || mcp_vschema_spend(node->run, 1) != 0) {
        return 1;
    }
    if (text != NULL) {
        return is_frozen(node, text);
    }
    for (size_t i = 0; i < json_array_size(value); ++i) {
        if (names_frozen(node, json_array_get(value, i), left - 1)) {
            return 1;
        }
    }
    for (void *at = json_is_object(value) ? first(value) : NULL; at != NULL; at = next(value, at)) {
        const json_t *member = json_object_iter_value(at);
        const char *key = json_object_iter_key(at);

        if (names_frozen(node, member, left - 1) ||
            (json_is_string(member) &&
             (strcmp(key, "$ref") == 0 || strcmp(key, "$dynamicRef") == 0) &&
             names_frozen(node,
                          mcp_vschema_resolve(node->run, json_string_value(member), NULL, NULL),
                          left - 1))) {
            return 1;
        }
    }
    return 0;
}

/* The schema of names without the frozen ones, which the caller need not send: his list of names
 * gets shorter; what says it in other words goes as a whole, and the original decides. */
int mcp_vschema_take_allowed(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    json_t *copy;
    json_t *list;
    int is_shorter = 0;

    if (!json_is_object(value) || node->spot.frozen == 0 ||
        !names_frozen(node, value, NAMES_DEPTH)) {
        return node->run->status == MCP_OK ? mcp_vschema_take_copy(node, key, value) : -1;
    }
    mcp_vschema_touch(node);
    copy = mcp_vschema_copy(node->run, value);
    list = json_object_get(copy, "enum");
    for (size_t i = json_array_size(list); i > 0; --i) {
        const char *name = json_string_value(json_array_get(list, i - 1));

        if (name != NULL && is_frozen(node, name)) {
            (void)json_array_remove(list, i - 1);
            is_shorter = 1;
        }
    }
    if (is_shorter && json_array_size(list) == 0) {
        (void)json_object_del(copy, "enum");
    }
    if (json_is_string(json_object_get(copy, "const")) &&
        is_frozen(node, json_string_value(json_object_get(copy, "const")))) {
        (void)json_object_del(copy, "const");
    }
    if (copy == NULL || node->run->status != MCP_OK || json_object_size(copy) == 0 ||
        names_frozen(node, copy, NAMES_DEPTH)) {
        json_decref(copy);
        return node->run->status == MCP_OK && copy != NULL ? 0 : -1;
    }
    return mcp_vschema_set(node->run, node->out, key, copy);
}

/* The name that a literal of a pattern, of `bytes` bytes, stands for, into name (of size bytes); 0,
 * or -1 if it is no plain literal. */
static int literal_name(const char *text, size_t bytes, char *name, size_t size)
{
    size_t count = 0;

    for (size_t i = 0; i < bytes; ++i) {
        int is_escaped = text[i] == '\\';

        i += is_escaped ? 1 : 0;
        /* an escaped letter or digit is a class, a reference and the like */
        if (i == bytes || count + 1 >= size || (unsigned char)text[i] < ' ' ||
            (is_escaped ? strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                                 text[i]) != NULL
                        : strchr("^$.|?*+()[]{}", text[i]) != NULL)) {
            return -1;
        }
        name[count++] = text[i];
    }
    name[count] = '\0';
    return 0;
}

/* A pattern without the frozen names that it lists, into out, which has room for it: "^name$" and
 * "^(one|two)$" list names; others speak of names without naming them. 1: nothing is left; -1: none
 * is frozen. */
static int thin_pattern(const mcp_vschema_node_t *node, const char *pattern, char *out)
{
    size_t bytes = strlen(pattern);
    size_t head = strncmp(pattern, "^(?:", 4) == 0 ? 4 : strncmp(pattern, "^(", 2) == 0 ? 2 : 1;
    size_t tail = head > 1 ? 2 : 1;
    const char *end = pattern + (bytes >= tail ? bytes - tail : 0);
    const char *at = pattern + head;
    int is_thinner = 0;
    size_t left = 0;
    char *to = out;

    if (pattern[0] != '^' || bytes < head + tail || strcmp(end, tail == 2 ? ")$" : "$") != 0) {
        return -1;
    }
    memcpy(to, pattern, head);
    to += head;
    for (;;) {
        char name[MCP_VIEW_SCHEMA_POINTER + 1];
        size_t part = 0;

        while (at + part < end && at[part] != '|') {
            part += at[part] == '\\' && at + part + 1 < end ? 2 : 1;
        }
        if ((head == 1 && at + part != end) || literal_name(at, part, name, sizeof(name)) != 0) {
            return -1;
        }
        if (is_frozen(node, name)) {
            is_thinner = 1;
        } else {
            if (left++ > 0) {
                *to++ = '|';
            }
            memcpy(to, at, part);
            to += part;
        }
        if (at + part >= end) {
            break;
        }
        at += part + 1;
    }
    memcpy(to, end, tail + 1);
    return !is_thinner ? -1 : left == 0;
}

/* A frozen member's own pattern goes with it, for callers' values there are dropped. */
int mcp_vschema_take_patterns(mcp_vschema_node_t *node, const char *key, const json_t *value)
{
    json_t *map;
    int status = 0;

    if (!json_is_object(value)) {
        return mcp_vschema_take_copy(node, key, value);
    }
    map = json_object();
    for (void *at = first(value); status == 0 && at != NULL; at = next(value, at)) {
        const char *pattern = json_object_iter_key(at);
        char *thinner = malloc(strlen(pattern) + 1);
        int what;

        if (thinner == NULL) {
            status = mcp_vschema_fail(node->run, MCP_E_NOMEM, "Out of memory.");
            break;
        }
        what = thin_pattern(node, pattern, thinner);
        if (what >= 0) {
            mcp_vschema_touch(node);
        }
        if (what <= 0) {
            status = mcp_vschema_set(node->run, map, what == 0 ? thinner : pattern,
                                     mcp_vschema_copy(node->run, json_object_iter_value(at)));
        }
        free(thinner);
    }
    if (status != 0 || (json_object_size(map) == 0 && json_object_size(value) > 0)) {
        json_decref(map);
        return status;
    }
    return mcp_vschema_set(node->run, node->out, key, map);
}
