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
#define MAX_NAMES      160 /* of keys in a message */

typedef struct reader {
    const json_t *root;  /* schema of the operation */
    const json_t *start; /* the object that is filled: the root, or one within it */
    const char *within;  /* flag whose `key=value,...` is read, or NULL: those hold no others */
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

/* --- values ---------------------------------------------------------------- */

/* Elements of a comma-separated text, appended to `list`. */
static int split_into(json_t *list, const json_t *items, const json_t *root, const char *text);
static json_t *pairs_of(const reader_t *reader, const json_t *object, const char *flag,
                        const char *text);

/* Names of an object's keys for a message, but those that an answer shows and nobody sends. */
static void name_keys(const json_t *object, char *buf, size_t size)
{
    json_t *properties = json_object_get(object, "properties");
    const char *name;
    json_t *property;
    size_t used = 0;

    buf[0] = '\0';
    json_object_foreach(properties, name, property)
    {
        int wrote = 0;

        if (!mcp_json_bool(property, "readOnly")) {
            wrote = snprintf(buf + used, size - used, "%s%s", used == 0 ? "" : ", ", name);
        }
        used += wrote > 0 ? (size_t)wrote : 0;
        if (used >= size) {
            return;
        }
    }
}

/* Says what a flag takes; NULL. */
static json_t *wrong_value(const reader_t *reader, const json_t *schema, const char *flag)
{
    const json_t *object = ctl_schema_keys(schema, reader->root);
    int is_list = ctl_schema_types(schema, reader->root) == CTL_TYPE_ARRAY;
    char keys[MAX_NAMES];

    if (object == NULL && ctl_schema_types(schema, reader->root) == CTL_TYPE_OBJECT) {
        (void)refuse(reader->why, reader->size, "--%s takes JSON, or --%s.KEY VALUE once for each", flag,
                     flag);
        return NULL;
    }
    if (object == NULL) {
        (void)refuse(reader->why, reader->size, "--%s takes %s", flag,
                     is_list ? "a list: A,B,... or JSON" : ctl_args_type(schema, reader->root));
        return NULL;
    }
    name_keys(object, keys, sizeof keys);
    (void)refuse(reader->why, reader->size, "--%s takes KEY=VALUE,... or JSON%s; its keys: %s", flag,
                 is_list ? ", once for each element" : "", keys);
    return NULL;
}

/* A value that is written as JSON, if the type takes it. 1 with it, 0 if it is something else, -1 with why set if it
 * can't be anything else. */
static int json_value(const reader_t *reader, unsigned types, const char *flag, const char *text,
                      json_t **ret)
{
    size_t at = 0;

    if (types == CTL_TYPE_STRING) {
        return 0;
    }
    if (mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, ret, &at) != MCP_OK) {
        return (*text == '{' || *text == '[') && (types & CTL_TYPE_STRING) == 0
                   ? refuse(reader->why, reader->size,
                            "--%s is not JSON without duplicate keys (near byte %zu)", flag, at)
                   : 0;
    }
    if ((types & ctl_schema_type_of(*ret)) != 0) {
        return 1;
    }
    json_decref(*ret);
    return 0;
}

/* New reference, or NULL with why set. `flag` is for messages. */
static json_t *value_of(const reader_t *reader, const json_t *schema, const char *flag,
                        const char *text)
{
    const json_t *root = reader->root;
    unsigned types = ctl_schema_types(schema, root);
    const json_t *object = (types & CTL_TYPE_STRING) == 0 ? ctl_schema_keys(schema, root) : NULL;
    json_t *value = NULL;
    int status = json_value(reader, types, flag, text, &value);

    if (status != 0) {
        return status > 0 ? value : NULL;
    }
    if ((types & CTL_TYPE_STRING) != 0) {
        value = json_string(text);
        if (value == NULL) {
            (void)refuse(reader->why, reader->size, "--%s is not UTF-8", flag);
        }
        return value;
    }
    if (object != NULL && *text != '{' && *text != '[' && strchr(text, '=') != NULL &&
        reader->within == NULL) {
        value = pairs_of(reader, object, flag, text);
        return value != NULL && (types & CTL_TYPE_ARRAY) != 0 ? json_pack("[o]", value) : value;
    }
    value = (types & CTL_TYPE_ARRAY) != 0 && *text != '[' ? json_array() : NULL;
    if (value != NULL && split_into(value, json_object_get(ctl_schema_resolve(schema, root), "items"),
                                    root, text) == 0) {
        return value;
    }
    json_decref(value);
    return wrong_value(reader, schema, flag);
}

/* One element of a list: never a list itself, so that this ends. */
static json_t *element_of(const json_t *items, const json_t *root, const char *text)
{
    unsigned types = items == NULL ? CTL_TYPE_ANY : ctl_schema_types(items, root);
    json_t *value = NULL;

    if (types != CTL_TYPE_STRING &&
        mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, &value, NULL) == MCP_OK) {
        if ((types & ctl_schema_type_of(value)) != 0) {
            return value;
        }
        json_decref(value);
    }
    return (types & CTL_TYPE_STRING) != 0 ? json_string(text) : NULL;
}

static int split_into(json_t *list, const json_t *items, const json_t *root, const char *text)
{
    /* an object's own commas separate nothing */
    int is_one = *text == '{';

    while (*text != '\0') {
        size_t bytes = is_one ? strlen(text) : strcspn(text, ",");
        char *part = strndup(text, bytes);
        json_t *value = part == NULL ? NULL : element_of(items, root, part);

        free(part);
        if (value == NULL || json_array_append_new(list, value) != 0) {
            return -1;
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

    if (ctl_schema_types(schema, root) == CTL_TYPE_OBJECT) {
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

/* Where a dotted key leads: parent object within flags, last key, and its schema (NULL: any). */
typedef struct place {
    json_t *parent;
    char key[MAX_KEY];
    const json_t *schema;
    int is_dotted;
} place_t;

/* Nothing of that name: says what there is. `flag` goes down to `schema` with its first `depth` bytes. */
static int unknown_key(const reader_t *reader, const char *flag, int depth, const json_t *schema)
{
    const json_t *object = ctl_schema_keys(schema, reader->root);
    const char *outer = reader->within != NULL ? reader->within : flag;
    int outer_bytes = reader->within != NULL ? (int)strlen(outer) : depth - 1;
    char keys[MAX_NAMES];

    if (object == NULL || (depth == 0 && reader->within == NULL)) {
        return refuse(reader->why, reader->size, "there is no flag --%s here; --help lists them", flag);
    }
    name_keys(object, keys, sizeof keys);
    if (object != ctl_schema_resolve(schema, reader->root)) {
        return refuse(reader->why, reader->size,
                      "--%.*s is a list: write --%.*s KEY=VALUE,... once for each element; its keys: %s",
                      outer_bytes, outer, outer_bytes, outer, keys);
    }
    return refuse(reader->why, reader->size, "--%.*s has no key \"%s\"; its keys: %s", outer_bytes,
                  outer, flag + depth, keys);
}

static int find_place(reader_t *reader, const char *flag, place_t *ret)
{
    const json_t *schema = reader->start;
    json_t *parent = reader->flags;
    const char *at = flag;
    int depth;

    for (depth = 0; depth < MAX_PATH_PARTS; depth++) {
        char part[MAX_KEY];
        size_t bytes = strcspn(at, ".");
        const char *key = part;
        const json_t *below = NULL;
        json_t *child;

        if (bytes == 0 || bytes >= sizeof part) {
            return refuse(reader->why, reader->size, "--%s is no flag", flag);
        }
        memcpy(part, at, bytes);
        part[bytes] = '\0';
        if (schema != NULL && ctl_schema_step(schema, reader->root, part, &below, &key) != 0) {
            return unknown_key(reader, flag, (int)(at - flag), schema);
        }
        schema = below;
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
    types = place.schema == NULL ? CTL_TYPE_ANY : ctl_schema_types(place.schema, reader->root);
    *ret_used = 1;
    if (text == NULL && (types == CTL_TYPE_BOOLEAN) &&
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
                : value_of(reader, place.schema, flag, text);
    return value == NULL ? -1 : put(reader, &place, flag, value);
}

/* One part of `key=value,...`: a pair, or one more element of the list before it, whose key is in `key`. */
static int take_pair(reader_t *reader, const char *part, char *key)
{
    const char *equals = strchr(part, '=');
    int used = 0;
    place_t place;
    json_t *list;

    if (equals != NULL && equals != part && (size_t)(equals - part) < MAX_KEY) {
        memcpy(key, part, (size_t)(equals - part));
        key[equals - part] = '\0';
        return take_flag(reader, part, NULL, &used);
    }
    list = key[0] != '\0' && find_place(reader, key, &place) == 0
               ? json_object_get(place.parent, place.key)
               : NULL;
    if (!json_is_array(list)) {
        /* without repeating it: it may be a part of what nobody should see */
        return refuse(reader->why, reader->size,
                      "--%s: a part%s%s is no KEY=VALUE; a text with a comma needs JSON", reader->within,
                      key[0] == '\0' ? "" : " behind ", key);
    }
    return split_into(list, json_object_get(ctl_schema_resolve(place.schema, reader->root), "items"),
                      reader->root, part) == 0
               ? 0
               : refuse(reader->why, reader->size, "--%s: an element of %s has another type",
                        reader->within, key);
}

/* `key=value,...` as an object; new reference, or NULL with why set. */
static json_t *pairs_of(const reader_t *reader, const json_t *object, const char *flag,
                        const char *text)
{
    reader_t inner = *reader;
    char key[MAX_KEY] = "";
    int status = 0;

    inner.start = object;
    inner.within = flag;
    inner.flags = json_object();
    inner.whole = json_object();
    while (*text != '\0' && status == 0) {
        size_t bytes = strcspn(text, ",");
        char *part = strndup(text, bytes);

        status = part == NULL ? refuse(reader->why, reader->size, "out of memory")
                              : take_pair(&inner, part, key);
        free(part);
        text += bytes + (text[bytes] == ',');
    }
    json_decref(inner.whole);
    if (status != 0) {
        json_decref(inner.flags);
        return NULL;
    }
    return inner.flags;
}

static int take_positional(reader_t *reader, const char *word)
{
    int is_file = 0;
    const char *name = ctl_args_positional(reader->root, &is_file);
    const json_t *schema;
    json_t *value;
    place_t place;

    if (name == NULL || reader->has_positional) {
        return refuse(reader->why, reader->size, "\"%.60s\" is one word too many; arguments are --key value, or --json FILE",
                      word);
    }
    reader->has_positional = 1;
    if (find_place(reader, name, &place) != 0) {
        return -1;
    }
    schema = json_object_get(json_object_get(reader->root, "properties"), name);
    value = is_file ? file_value(schema, reader->root, word, reader->why, reader->size)
                    : value_of(reader, schema, name, word);
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
    reader_t reader = {schema, schema, NULL, json_object(), json_object(), 0, why, size};
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
