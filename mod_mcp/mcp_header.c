/* Values of mirrored headers: the sentinel encoding of `Mcp-Name` and `Mcp-Param-*`,
 * and the `x-mcp-header` annotations of a tool's schema (1.5).  Second file of the room mcp_era. */
#include "mcp_era.h"

#include <string.h>

#include <apr_cstr.h>
#include <apr_strings.h>

#include "../proto/mcp_hash.h"

#define ANNOTATION "x-mcp-header"
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* --- encoding -------------------------------------------------------------- */

static const char prefix[] = "=?base64?";
static const char suffix[] = "?=";
#define PREFIX_BYTES (sizeof prefix - 1)
#define SUFFIX_BYTES (sizeof suffix - 1)

static apr_status_t refuse_value(const char *why, apr_pool_t *pool, mcp_err_t *err)
{
    return mcp_err_set(err, pool, MCP_FAIL_HEADER, MCP_CODE_NONE,
                       "encode values that are not printable ASCII as =?base64?...?=",
                       "Header mismatch: %s", why);
}

apr_status_t mcp_era_decode(const char *value, apr_pool_t *pool, const char **ret, mcp_err_t *err)
{
    while (*value == ' ' || *value == '\t')
        value++;
    size_t bytes = strlen(value);
    while (bytes > 0 && (value[bytes - 1] == ' ' || value[bytes - 1] == '\t'))
        bytes--;
    for (size_t i = 0; i < bytes; i++)
        if ((value[i] < 0x20 || value[i] > 0x7e) && value[i] != '\t')
            return refuse_value("a value has bytes outside printable ASCII", pool, err);

    if (bytes < PREFIX_BYTES + SUFFIX_BYTES || memcmp(value, prefix, PREFIX_BYTES) != 0 ||
        memcmp(value + bytes - SUFFIX_BYTES, suffix, SUFFIX_BYTES) != 0) {
        *ret = apr_pstrmemdup(pool, value, bytes);
        return APR_SUCCESS;
    }
    const char *inner = value + PREFIX_BYTES;
    size_t inner_bytes = bytes - PREFIX_BYTES - SUFFIX_BYTES;
    size_t size = inner_bytes / 4 * 3 + 3;
    size_t decoded_bytes = 0;
    char *decoded = apr_palloc(pool, size + 1);
    if (mcp_unb64(inner, inner_bytes, (unsigned char *)decoded, size, &decoded_bytes) != MCP_OK)
        return refuse_value("a value is not canonical base64", pool, err);
    if (!mcp_rpc_is_utf8(decoded, decoded_bytes))
        return refuse_value("an encoded value is not UTF-8", pool, err);
    decoded[decoded_bytes] = '\0';
    *ret = decoded;
    return APR_SUCCESS;
}

/* --- validity of annotations ------------------------------------------------ */

/* Where a schema has schemas below it. Members not named here (default, const, enum, examples and
 * whatever is unknown) are data. */
typedef enum schema_place { PLACE_ONE, PLACE_LIST, PLACE_MAP } schema_place_t;

static const struct {
    const char *keyword;
    schema_place_t place;
    int is_properties; /* annotations may stand on what lies directly here */
} keywords[] = {
    {"properties", PLACE_MAP, 1},
    {"patternProperties", PLACE_MAP, 0},
    {"$defs", PLACE_MAP, 0},
    {"definitions", PLACE_MAP, 0},
    {"dependentSchemas", PLACE_MAP, 0},
    {"dependencies", PLACE_MAP, 0},
    {"items", PLACE_ONE, 0},
    {"items", PLACE_LIST, 0}, /* draft-07 */
    {"additionalItems", PLACE_ONE, 0},
    {"prefixItems", PLACE_LIST, 0},
    {"contains", PLACE_ONE, 0},
    {"additionalProperties", PLACE_ONE, 0},
    {"unevaluatedItems", PLACE_ONE, 0},
    {"unevaluatedProperties", PLACE_ONE, 0},
    {"propertyNames", PLACE_ONE, 0},
    {"contentSchema", PLACE_ONE, 0},
    {"allOf", PLACE_LIST, 0},
    {"anyOf", PLACE_LIST, 0},
    {"oneOf", PLACE_LIST, 0},
    {"not", PLACE_ONE, 0},
    {"if", PLACE_ONE, 0},
    {"then", PLACE_ONE, 0},
    {"else", PLACE_ONE, 0},
};

typedef struct annotations {
    const char *names[MCP_ERA_MAX_ANNOTATIONS];
    size_t count;
} annotations_t;

static int equals_caseless(const char *a, const char *b)
{
    return apr_cstr_casecmp(a, b) == 0;
}

static int is_token(const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    if (*text == '\0')
        return 0;
    for (; *text != '\0'; text++) {
        char c = *text;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr(others, c) != NULL))
            return 0;
    }
    return 1;
}

/* The header name of an annotated property; NULL when the annotation is none that counts. */
static const char *annotation_of(const json_t *property)
{
    static const char *const types[] = {"string", "integer", "boolean"};
    const char *name = json_string_value(json_object_get(property, ANNOTATION));
    const char *type = json_string_value(json_object_get(property, "type"));
    if (name == NULL || type == NULL || !is_token(name))
        return NULL;
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(types[i], type) == 0)
            return name;
    return NULL;
}

static int note_annotation(const json_t *property, annotations_t *seen)
{
    const char *name = annotation_of(property);
    if (name == NULL || seen->count == MCP_ERA_MAX_ANNOTATIONS)
        return 0;
    for (size_t i = 0; i < seen->count; i++)
        if (equals_caseless(seen->names[i], name))
            return 0;
    seen->names[seen->count] = name;
    seen->count++;
    return 1;
}

/* One schema. may_annotate: a property of the root reached through `properties` alone;
 * is_reachable: its own properties would be such. Recursion ends at MCP_MAX_DEPTH. */
static int walk_schema(const json_t *schema, int may_annotate, int is_reachable, int depth,
                       annotations_t *seen);

static int walk_keyword(json_t *value, schema_place_t place, int is_reachable, int depth,
                        annotations_t *seen)
{
    const char *key;
    json_t *below;
    size_t i;
    if (place == PLACE_ONE)
        return walk_schema(value, 0, 0, depth, seen);
    if (place == PLACE_LIST) {
        json_array_foreach(value, i, below)
        {
            if (!walk_schema(below, 0, 0, depth, seen))
                return 0;
        }
        return 1;
    }
    json_object_foreach(value, key, below)
    {
        if (!walk_schema(below, is_reachable, is_reachable, depth, seen))
            return 0;
    }
    return 1;
}

static int walk_schema(const json_t *schema, int may_annotate, int is_reachable, int depth,
                       annotations_t *seen)
{
    if (!json_is_object(schema))
        return 1; /* true, false, or nothing that could hold an annotation */
    if (depth > MCP_MAX_DEPTH)
        return 0;
    if (json_object_get(schema, ANNOTATION) != NULL &&
        (!may_annotate || !note_annotation(schema, seen)))
        return 0;
    for (size_t i = 0; i < COUNT(keywords); i++) {
        json_t *value = json_object_get(schema, keywords[i].keyword);
        if (value != NULL && !walk_keyword(value, keywords[i].place,
                                           is_reachable && keywords[i].is_properties, depth + 1,
                                           seen))
            return 0;
    }
    return 1;
}

int mcp_era_annotations_valid(const json_t *schema)
{
    annotations_t seen;
    seen.count = 0;
    return walk_schema(schema, 0, 1, 0, &seen);
}

/* --- Mcp-Param-* ------------------------------------------------------------ */

typedef struct param_check {
    const char *(*get)(void *, const char *);
    void *baton;
    apr_pool_t *pool;
    mcp_err_t *err;
} param_check_t;

/* The canonical decimal of `-?\d+(\.0+)?`: no leading zeros, no fraction, no -0. NULL for
 * others. */
static const char *canonical_integer(const char *text, apr_pool_t *pool)
{
    int is_negative = *text == '-';
    const char *digits = text + is_negative;
    size_t count = strspn(digits, "0123456789");
    const char *rest = digits + count;
    if (count == 0)
        return NULL;
    if (*rest == '.') {
        size_t zeros = strspn(rest + 1, "0");
        if (zeros == 0)
            return NULL;
        rest += 1 + zeros;
    }
    if (*rest != '\0')
        return NULL;
    while (count > 1 && *digits == '0') {
        digits++;
        count--;
    }
    if (count == 1 && *digits == '0')
        is_negative = 0;
    return apr_pstrcat(pool, is_negative ? "-" : "", apr_pstrmemdup(pool, digits, count), NULL);
}

/* An integer as decimal digits; NULL for a number that is none within +-(2^53-1). */
static const char *integer_text(const json_t *value, apr_pool_t *pool)
{
    static const json_int_t largest = 9007199254740991;
    json_int_t integer;
    if (json_is_integer(value)) {
        integer = json_integer_value(value);
    } else {
        double real = json_real_value(value);
        if (!(real >= -9007199254740991.0 && real <= 9007199254740991.0))
            return NULL;
        integer = (json_int_t)real;
        if ((double)integer < real || (double)integer > real)
            return NULL;
    }
    if (integer > largest || integer < -largest)
        return NULL;
    /* not JSON_INTEGER_FORMAT: APR prints "lld" as it stands */
    return apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)integer);
}

static int value_matches(const json_t *value, const char *decoded, apr_pool_t *pool)
{
    if (json_is_string(value))
        return strcmp(decoded, json_string_value(value)) == 0;
    if (json_is_boolean(value))
        return strcmp(decoded, json_is_true(value) ? "true" : "false") == 0;
    const char *expected = integer_text(value, pool);
    const char *sent = canonical_integer(decoded, pool);
    return expected != NULL && sent != NULL && strcmp(expected, sent) == 0;
}

static apr_status_t check_one(const json_t *property, const json_t *value,
                              const param_check_t *check)
{
    const char *name = annotation_of(property);
    const char *decoded = NULL;
    const char *why = NULL;
    if (name == NULL || value == NULL || json_is_null(value))
        return APR_SUCCESS; /* absent or null: a stray header is ignored */
    if (json_is_object(value) || json_is_array(value))
        return APR_SUCCESS; /* has no header form; argument validation refuses it */
    if (json_is_real(value) && integer_text(value, check->pool) == NULL)
        return APR_SUCCESS; /* the same */
    const char *header = apr_pstrcat(check->pool, "Mcp-Param-", name, NULL);
    const char *sent = check->get(check->baton, header);
    if (sent == NULL)
        why = "is missing";
    else if (mcp_era_decode(sent, check->pool, &decoded, NULL) != APR_SUCCESS)
        why = "is malformed";
    else if (!value_matches(value, decoded, check->pool))
        why = "differs from the body";
    if (why == NULL)
        return APR_SUCCESS;
    return mcp_err_set(check->err, check->pool, MCP_FAIL_HEADER, MCP_CODE_NONE,
                       "send the header with the argument's value", "Header mismatch: %s %s",
                       header, why);
}

/* properties of one object level, beside its arguments. Recursion ends at MCP_MAX_DEPTH, beyond
 * which a schema is not valid anyway. */
static apr_status_t check_level(const json_t *schema, const json_t *arguments, int depth,
                                const param_check_t *check)
{
    const char *key;
    json_t *property;
    json_t *properties = json_object_get(schema, "properties");
    if (depth > MCP_MAX_DEPTH || !json_is_object(arguments))
        return APR_SUCCESS;
    json_object_foreach(properties, key, property)
    {
        const json_t *value = json_object_get(arguments, key);
        apr_status_t status = check_one(property, value, check);
        if (status == APR_SUCCESS)
            status = check_level(property, value, depth + 1, check);
        if (status != APR_SUCCESS)
            return status;
    }
    return APR_SUCCESS;
}

apr_status_t mcp_era_check_params(const json_t *schema, const json_t *arguments,
                                  const char *(*get)(void *, const char *), void *baton,
                                  apr_pool_t *pool, mcp_err_t *err)
{
    param_check_t check = {get, baton, pool, err};
    return check_level(schema, arguments, 0, &check);
}
