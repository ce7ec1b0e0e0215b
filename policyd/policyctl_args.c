/* Words of the command line to an operation's arguments: see policyctl.h.
 *
 * The schema decides what a word means; what it does not decide is left to policyd, which checks all
 * arguments again.  Flags are gathered apart and laid over the --json object at the end: a flag that names a
 * whole key replaces it, a dotted one changes only what it names. */
#include "policyctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../proto/mcp_body.h"

#define MAX_PATH_PARTS 8
#define MAX_KEY        128
#define MAX_REFS       8

#define TYPE_STRING  0x01u
#define TYPE_INTEGER 0x02u
#define TYPE_NUMBER  0x04u
#define TYPE_BOOLEAN 0x08u
#define TYPE_ARRAY   0x10u
#define TYPE_OBJECT  0x20u
#define TYPE_NULL    0x40u
#define TYPE_ANY     0x7fu

typedef struct reader {
    const json_t *root; /* schema of the operation */
    json_t *flags;
    json_t *whole; /* keys of flags that were given as a whole */
    int has_positional;
    char *why;
    size_t size;
} reader_t;

static int refuse(char *why, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(char *why, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, size, format, args);
    va_end(args);
    return -1;
}

int ctl_args_same(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        char x = *a == '_' ? '-' : *a;
        char y = *b == '_' ? '-' : *b;

        if (x != y) {
            return 0;
        }
        a++;
        b++;
    }
    return *a == *b;
}

/* --- schema ---------------------------------------------------------------- */

/* Follows `$ref`s into the document, a bounded number of them. */
static const json_t *resolve(const json_t *schema, const json_t *root)
{
    int i;

    for (i = 0; i < MAX_REFS; i++) {
        const char *ref = mcp_json_str(schema, "$ref");
        const json_t *at = root;

        if (ref == NULL || strncmp(ref, "#/", 2) != 0) {
            return schema;
        }
        ref += 2;
        while (at != NULL && *ref != '\0') {
            char part[MAX_KEY];
            size_t bytes = strcspn(ref, "/");

            if (bytes >= sizeof part) {
                return schema;
            }
            memcpy(part, ref, bytes);
            part[bytes] = '\0';
            at = json_object_get(at, part);
            ref += bytes + (ref[bytes] == '/');
        }
        if (at == NULL) {
            return schema;
        }
        schema = at;
    }
    return schema;
}

static unsigned type_bit(const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } types[] = {{"string", TYPE_STRING}, {"integer", TYPE_INTEGER}, {"number", TYPE_NUMBER | TYPE_INTEGER},
                 {"boolean", TYPE_BOOLEAN}, {"array", TYPE_ARRAY}, {"object", TYPE_OBJECT},
                 {"null", TYPE_NULL}};
    size_t i;

    for (i = 0; name != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return types[i].bit;
        }
    }
    return 0;
}

/* The types that a value may have; a schema that does not say takes any. */
static unsigned types_of(const json_t *schema, const json_t *root)
{
    const json_t *type;
    unsigned bits = 0;
    size_t i;

    schema = resolve(schema, root);
    type = json_object_get(schema, "type");
    if (json_is_string(type)) {
        bits = type_bit(json_string_value(type));
    } else {
        for (i = 0; i < json_array_size(type); i++) {
            bits |= type_bit(json_string_value(json_array_get(type, i)));
        }
    }
    return bits == 0 ? TYPE_ANY : bits;
}

static unsigned type_of_value(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return TYPE_OBJECT;
    case JSON_ARRAY:
        return TYPE_ARRAY;
    case JSON_STRING:
        return TYPE_STRING;
    case JSON_INTEGER:
        return TYPE_INTEGER;
    case JSON_REAL:
        return TYPE_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE:
        return TYPE_BOOLEAN;
    case JSON_NULL:
        return TYPE_NULL;
    default:
        return 0;
    }
}

const char *ctl_args_type(const json_t *schema, const json_t *root)
{
    unsigned types = types_of(schema, root);

    switch (types) {
    case TYPE_STRING:
        return "TEXT";
    case TYPE_INTEGER:
        return "INTEGER";
    case TYPE_NUMBER | TYPE_INTEGER:
        return "NUMBER";
    case TYPE_BOOLEAN:
        return "true|false";
    case TYPE_OBJECT:
        return "JSON";
    case TYPE_ARRAY:
        return types_of(json_object_get(resolve(schema, root), "items"), root) == TYPE_OBJECT ? "JSON"
                                                                                           : "A,B,...";
    default:
        return "VALUE";
    }
}

static int is_required(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");
    size_t i;

    for (i = 0; i < json_array_size(required); i++) {
        const char *text = json_string_value(json_array_get(required, i));

        if (text != NULL && strcmp(text, name) == 0) {
            return 1;
        }
    }
    return 0;
}

const char *ctl_args_positional(const json_t *schema, int *ret_is_file)
{
    json_t *properties = json_object_get(schema, "properties");
    const char *only = NULL;
    const char *name;
    json_t *property;
    int required = 0;

    json_object_foreach(properties, name, property)
    {
        if (json_object_get(property, "contentMediaType") != NULL) {
            *ret_is_file = 1;
            return name;
        }
        if (is_required(schema, name)) {
            required++;
            only = name;
        }
    }
    if (required != 1) {
        return NULL;
    }
    *ret_is_file = types_of(json_object_get(properties, only), schema) == TYPE_OBJECT;
    return only;
}

/* --- values ---------------------------------------------------------------- */

/* Elements of a comma-separated text, appended to `list`. */
static int split_into(json_t *list, const json_t *items, const json_t *root, const char *text, char *why,
                      size_t size);

/* New reference, or NULL with why set. `flag` is for messages. */
static json_t *value_of(const json_t *schema, const json_t *root, const char *flag, const char *text,
                        char *why, size_t size)
{
    unsigned types = types_of(schema, root);
    json_t *value = NULL;

    if (types != TYPE_STRING &&
        mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, &value, NULL) == MCP_OK) {
        unsigned type = type_of_value(value);

        if ((types & type) != 0) {
            return value;
        }
        json_decref(value);
    }
    if ((types & TYPE_ARRAY) != 0 && (types & TYPE_STRING) == 0) {
        value = json_array();
        if (*text == '[' || split_into(value, json_object_get(resolve(schema, root), "items"), root, text,
                                       why, size) != 0) {
            json_decref(value);
            (void)refuse(why, size, "--%s takes %s", flag, "a list: A,B,... or JSON");
            return NULL;
        }
        return value;
    }
    if ((types & TYPE_STRING) != 0) {
        value = json_string(text);
        if (value == NULL) {
            (void)refuse(why, size, "--%s is not UTF-8", flag);
        }
        return value;
    }
    (void)refuse(why, size, "--%s takes %s", flag, ctl_args_type(schema, root));
    return NULL;
}

/* One element of a list: never a list itself, so that this ends. */
static json_t *element_of(const json_t *items, const json_t *root, const char *text)
{
    unsigned types = items == NULL ? TYPE_ANY : types_of(items, root);
    json_t *value = NULL;

    if (types != TYPE_STRING &&
        mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, &value, NULL) == MCP_OK) {
        if ((types & type_of_value(value)) != 0) {
            return value;
        }
        json_decref(value);
    }
    return (types & TYPE_STRING) != 0 ? json_string(text) : NULL;
}

static int split_into(json_t *list, const json_t *items, const json_t *root, const char *text, char *why,
                      size_t size)
{
    /* an object's own commas separate nothing */
    int is_one = *text == '{';

    while (*text != '\0') {
        size_t bytes = is_one ? strlen(text) : strcspn(text, ",");
        char *part = strndup(text, bytes);
        json_t *value = part == NULL ? NULL : element_of(items, root, part);

        free(part);
        if (value == NULL || json_array_append_new(list, value) != 0) {
            return refuse(why, size, "an element of the list has another type");
        }
        text += bytes + (text[bytes] == ',');
    }
    return 0;
}

/* --- files ----------------------------------------------------------------- */

/* malloc'd text with a NUL, or NULL with why set. */
static char *read_file(const char *path, size_t *ret_bytes, char *why, size_t size)
{
    int is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    size_t room = 65536, count = 0;
    char *text = malloc(room + 1);
    ssize_t got = 1;

    if (fd < 0 || text == NULL) {
        (void)refuse(why, size, "%s can't be read: %s", path, strerror(errno));
        free(text);
        return NULL;
    }
    while (got != 0) {
        if (count == room) {
            char *more = room >= CTL_MAX_FILE ? NULL : realloc(text, room * 2 + 1);

            if (more == NULL) {
                (void)refuse(why, size, "%s is larger than %u bytes", path, CTL_MAX_FILE);
                break;
            }
            text = more;
            room *= 2;
        }
        got = read(fd, text + count, room - count);
        if (got < 0 && errno != EINTR) {
            (void)refuse(why, size, "%s can't be read: %s", path, strerror(errno));
            break;
        }
        count += got > 0 ? (size_t)got : 0;
    }
    if (!is_stdin) {
        (void)close(fd); /* only read */
    }
    if (got != 0) {
        free(text);
        return NULL;
    }
    text[count] = '\0';
    *ret_bytes = count;
    return text;
}

json_t *ctl_args_file(const char *path, char *why, size_t size)
{
    size_t bytes = 0, at = 0;
    char *text = read_file(path, &bytes, why, size);
    json_t *value = NULL;

    if (text == NULL) {
        return NULL;
    }
    if (mcp_json_parse(text, bytes, MCP_MAX_DEPTH, &value, &at) != MCP_OK) {
        (void)refuse(why, size, "%s is not JSON without duplicate keys (near byte %zu)", path, at);
    } else if (!json_is_object(value)) {
        (void)refuse(why, size, "%s is not a JSON object", path);
        json_decref(value);
        value = NULL;
    }
    free(text);
    return value;
}

static json_t *file_value(const json_t *schema, const json_t *root, const char *path, char *why,
                          size_t size)
{
    size_t bytes = 0;
    char *text;
    json_t *value;

    if (types_of(schema, root) == TYPE_OBJECT) {
        return ctl_args_file(path, why, size);
    }
    text = read_file(path, &bytes, why, size);
    if (text == NULL) {
        return NULL;
    }
    value = json_stringn(text, bytes);
    free(text);
    if (value == NULL) {
        (void)refuse(why, size, "%s is not UTF-8 text", path);
    }
    return value;
}

/* --- flags ----------------------------------------------------------------- */

/* The property's own spelling of a name that may mix '-' and '_', or NULL. */
static const char *spelling(const json_t *schema, const char *name)
{
    json_t *properties = json_object_get(schema, "properties");
    const char *key;
    json_t *property;

    if (json_object_get(properties, name) != NULL) {
        return name;
    }
    json_object_foreach(properties, key, property)
    {
        if (ctl_args_same(key, name)) {
            return key;
        }
    }
    return NULL;
}

/* One step down: the schema of `name` within an object's schema, NULL for any value, and the name to use.
 * 0, or -1 when the object has no such key. */
static int step(const json_t *schema, const json_t *root, const char *name, const json_t **ret_schema,
                const char **ret_key)
{
    const json_t *object = resolve(schema, root);
    const json_t *rest = json_object_get(object, "additionalProperties");
    const char *key = spelling(object, name);

    *ret_key = key == NULL ? name : key;
    *ret_schema = json_is_object(rest) ? rest : NULL;
    if (key != NULL) {
        *ret_schema = json_object_get(json_object_get(object, "properties"), key);
        return 0;
    }
    return json_is_false(rest) || (types_of(object, root) & TYPE_OBJECT) == 0 ? -1 : 0;
}

/* Where a dotted key leads: parent object within flags, last key, and its schema (NULL: any). */
typedef struct place {
    json_t *parent;
    char key[MAX_KEY];
    const json_t *schema;
    int is_dotted;
} place_t;

static int find_place(reader_t *reader, const char *flag, place_t *ret)
{
    const json_t *schema = reader->root;
    json_t *parent = reader->flags;
    const char *at = flag;
    int depth;

    for (depth = 0; depth < MAX_PATH_PARTS; depth++) {
        char part[MAX_KEY];
        size_t bytes = strcspn(at, ".");
        const char *key = part;
        json_t *child;

        if (bytes == 0 || bytes >= sizeof part) {
            return refuse(reader->why, reader->size, "--%s is no flag", flag);
        }
        memcpy(part, at, bytes);
        part[bytes] = '\0';
        if (schema != NULL && step(schema, reader->root, part, &schema, &key) != 0) {
            return refuse(reader->why, reader->size, "there is no flag --%s here; --help lists them", flag);
        }
        if (at[bytes] == '\0') {
            ret->parent = parent;
            (void)snprintf(ret->key, sizeof ret->key, "%s", key); /* both fit */
            ret->schema = schema;
            ret->is_dotted = depth > 0;
            return 0;
        }
        child = json_object_get(parent, key);
        if (child == NULL) {
            child = json_object();
            if (json_object_set_new(parent, key, child) != 0) {
                return refuse(reader->why, reader->size, "--%s is not UTF-8", flag);
            }
        }
        if (!json_is_object(child)) {
            return refuse(reader->why, reader->size, "--%s goes into a value that is no object", flag);
        }
        parent = child;
        at += bytes + 1;
    }
    return refuse(reader->why, reader->size, "--%s is nested too deeply", flag);
}

/* Puts a value (stolen) at its place; lists grow, anything else is given once. */
static int put(reader_t *reader, const place_t *place, const char *flag, json_t *value)
{
    json_t *before = json_object_get(place->parent, place->key);

    if (before != NULL && json_is_array(before) && json_is_array(value)) {
        int failed = json_array_extend(before, value);

        json_decref(value);
        return failed == 0 ? 0 : refuse(reader->why, reader->size, "out of memory");
    }
    if (before != NULL) {
        json_decref(value);
        return refuse(reader->why, reader->size, "--%s is given twice", flag);
    }
    if (json_object_set_new(place->parent, place->key, value) != 0) {
        return refuse(reader->why, reader->size, "--%s is not UTF-8", flag);
    }
    if (!place->is_dotted) {
        (void)json_object_set_new(reader->whole, place->key, json_true()); /* fails only out of memory */
    }
    return 0;
}

/* One flag; *ret_used is 2 when the next word was its value. */
static int take_flag(reader_t *reader, const char *word, const char *next, int *ret_used)
{
    char flag[MAX_KEY * 2];
    const char *equals = strchr(word, '=');
    size_t bytes = equals == NULL ? strlen(word) : (size_t)(equals - word);
    const char *text = equals == NULL ? NULL : equals + 1;
    unsigned types;
    json_t *value;
    place_t place;

    if (bytes >= sizeof flag) {
        return refuse(reader->why, reader->size, "a flag is too long");
    }
    memcpy(flag, word, bytes);
    flag[bytes] = '\0';
    if (find_place(reader, flag, &place) != 0) {
        return -1;
    }
    types = place.schema == NULL ? TYPE_ANY : types_of(place.schema, reader->root);
    *ret_used = 1;
    if (text == NULL && (types == TYPE_BOOLEAN) &&
        (next == NULL || (strcmp(next, "true") != 0 && strcmp(next, "false") != 0))) {
        return put(reader, &place, flag, json_true());
    }
    if (text == NULL) {
        if (next == NULL || strncmp(next, "--", 2) == 0) {
            return refuse(reader->why, reader->size, "--%s needs a value (write --%s=VALUE if it begins with --)",
                          flag, flag);
        }
        text = next;
        *ret_used = 2;
    }
    value = json_object_get(place.schema, "contentMediaType") != NULL
                ? file_value(place.schema, reader->root, text, reader->why, reader->size)
                : value_of(place.schema, reader->root, flag, text, reader->why, reader->size);
    return value == NULL ? -1 : put(reader, &place, flag, value);
}

static int take_positional(reader_t *reader, const char *word)
{
    int is_file = 0;
    const char *name = ctl_args_positional(reader->root, &is_file);
    const json_t *schema;
    json_t *value;
    place_t place;

    if (name == NULL || reader->has_positional) {
        return refuse(reader->why, reader->size, "\"%.60s\" is one word too many; arguments are --key value",
                      word);
    }
    reader->has_positional = 1;
    if (find_place(reader, name, &place) != 0) {
        return -1;
    }
    schema = json_object_get(json_object_get(reader->root, "properties"), name);
    value = is_file ? file_value(schema, reader->root, word, reader->why, reader->size)
                    : value_of(schema, reader->root, name, word, reader->why, reader->size);
    return value == NULL ? -1 : put(reader, &place, name, value);
}

/* --- merging --------------------------------------------------------------- */

/* Lays `over` on `under` key by key, objects into objects; at most `depth` levels. */
static int lay_over(json_t *under, json_t *over, int depth)
{
    const char *key;
    json_t *value;

    json_object_foreach(over, key, value)
    {
        json_t *below = json_object_get(under, key);

        if (depth > 0 && json_is_object(below) && json_is_object(value)) {
            if (lay_over(below, value, depth - 1) != 0) {
                return -1;
            }
        } else if (json_object_set_new(under, key, json_incref(value)) != 0) {
            return -1;
        }
    }
    return 0;
}

static json_t *merge(const reader_t *reader, const json_t *base)
{
    json_t *args = base == NULL ? json_object() : json_deep_copy(base);
    const char *key;
    json_t *value;

    json_object_foreach(reader->whole, key, value)
    {
        (void)json_object_del(args, key); /* absent: nothing to replace */
    }
    if (args == NULL || lay_over(args, reader->flags, MAX_PATH_PARTS) != 0) {
        json_decref(args);
        (void)refuse(reader->why, reader->size, "out of memory");
        return NULL;
    }
    return args;
}

json_t *ctl_args_read(const json_t *schema, const json_t *base, int count, char *const *words, char *why,
                      size_t size)
{
    reader_t reader = {schema, json_object(), json_object(), 0, why, size};
    json_t *args = NULL;
    int i = 0, status = 0;

    while (i < count && status == 0) {
        int used = 1;

        if (strncmp(words[i], "--", 2) == 0 && words[i][2] != '\0') {
            status = take_flag(&reader, words[i] + 2, i + 1 < count ? words[i + 1] : NULL, &used);
        } else {
            status = take_positional(&reader, words[i]);
        }
        i += used;
    }
    if (status == 0) {
        args = merge(&reader, base);
    }
    json_decref(reader.flags);
    json_decref(reader.whole);
    return args;
}
