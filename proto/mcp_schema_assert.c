/* Evaluation of the keywords that judge an instance by itself (Validation 2020-12, section
 * 6), and their messages. */
#include "mcp_schema_private.h"

#include <string.h>

const char *const mcp_schema_type_names[MCP_SCHEMA_TYPES] = {
    "null", "boolean", "object", "array", "number", "string", "integer"};

enum { TYPE_NULL, TYPE_BOOLEAN, TYPE_OBJECT, TYPE_ARRAY, TYPE_NUMBER, TYPE_STRING, TYPE_INTEGER };

#define BIT(type) (1u << (type))

/* The types an instance has, and the one a message calls it. */
static unsigned types_of(const json_t *instance, unsigned *named)
{
    switch (json_typeof(instance)) {
    case JSON_OBJECT:
        *named = TYPE_OBJECT;
        break;
    case JSON_ARRAY:
        *named = TYPE_ARRAY;
        break;
    case JSON_STRING:
        *named = TYPE_STRING;
        break;
    case JSON_INTEGER:
        *named = TYPE_INTEGER;
        return BIT(TYPE_INTEGER) | BIT(TYPE_NUMBER);
    case JSON_REAL:
        *named = TYPE_NUMBER;
        return mcp_schema_is_integer(instance) ? BIT(TYPE_INTEGER) | BIT(TYPE_NUMBER)
                                               : BIT(TYPE_NUMBER);
    case JSON_TRUE:
    case JSON_FALSE:
        *named = TYPE_BOOLEAN;
        break;
    case JSON_NULL:
    default:
        *named = TYPE_NULL;
        break;
    }
    return BIT(*named);
}

mcp_schema_verdict_t mcp_schema_eval_type(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                          const mcp_schema_keyword_t *keyword)
{
    unsigned named;
    bool is_first = true;
    mcp_schema_text_t text;

    if ((types_of(spot->instance, &named) & keyword->types) != 0) {
        return MCP_SCHEMA_VALID;
    }
    if (!mcp_schema_is_loud(run)) {
        return MCP_SCHEMA_INVALID;
    }
    text = mcp_schema_error_start(run->err, spot->path, keyword->name);
    mcp_schema_text_add(&text, "expected ");
    for (unsigned type = 0; type < MCP_SCHEMA_TYPES; type++) {
        if ((keyword->types & BIT(type)) != 0) {
            mcp_schema_text_add(&text, is_first ? "" : " or ");
            mcp_schema_text_add(&text, mcp_schema_type_names[type]);
            is_first = false;
        }
    }
    mcp_schema_text_add(&text, is_first ? "nothing, got " : ", got ");
    mcp_schema_text_add(&text, mcp_schema_type_names[named]);
    return MCP_SCHEMA_INVALID;
}

mcp_schema_verdict_t mcp_schema_eval_const(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                           const mcp_schema_keyword_t *keyword)
{
    mcp_schema_verdict_t verdict = mcp_schema_equal(run, keyword->value, spot->instance);
    mcp_schema_text_t text;

    if (verdict == MCP_SCHEMA_INVALID && mcp_schema_is_loud(run)) {
        text = mcp_schema_error_start(run->err, spot->path, keyword->name);
        mcp_schema_text_add(&text, "must be ");
        mcp_schema_text_json(&text, keyword->value);
    }
    return verdict;
}

static void say_enum(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                     const mcp_schema_keyword_t *keyword)
{
    mcp_schema_text_t text = mcp_schema_error_start(run->err, spot->path, keyword->name);
    size_t n = json_array_size(keyword->value);

    mcp_schema_text_add(&text, n == 0 ? "no value is allowed" : "must be one of: ");
    for (size_t i = 0; i < n && i < MCP_SCHEMA_LISTED; i++) {
        mcp_schema_text_add(&text, i == 0 ? "" : ", ");
        mcp_schema_text_json(&text, json_array_get(keyword->value, i));
    }
    if (n > MCP_SCHEMA_LISTED) {
        mcp_schema_text_add(&text, " and ");
        mcp_schema_text_count(&text, n - MCP_SCHEMA_LISTED);
        mcp_schema_text_add(&text, " more");
    }
}

mcp_schema_verdict_t mcp_schema_eval_enum(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                          const mcp_schema_keyword_t *keyword)
{
    for (size_t i = 0; i < json_array_size(keyword->value); i++) {
        mcp_schema_verdict_t verdict =
            mcp_schema_equal(run, json_array_get(keyword->value, i), spot->instance);

        if (verdict != MCP_SCHEMA_INVALID) {
            return verdict;
        }
    }
    if (mcp_schema_is_loud(run)) {
        say_enum(run, spot, keyword);
    }
    return MCP_SCHEMA_INVALID;
}

/* --- numbers ------------------------------------------------------------------------ */

/* keyword->types: the signs of the comparison that fail, 1 below, 2 equal, 4 above. */
mcp_schema_verdict_t mcp_schema_eval_bound(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                           const mcp_schema_keyword_t *keyword)
{
    static const char *const words[] = {"", "at least ", "", "greater than ", "at most ", "",
                                        "less than ", ""};
    mcp_schema_text_t text;
    int sign;

    if (!json_is_number(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    sign = mcp_schema_compare(spot->instance, keyword->value);
    if ((keyword->types & (sign < 0 ? 1u : sign == 0 ? 2u : 4u)) == 0) {
        return MCP_SCHEMA_VALID;
    }
    if (mcp_schema_is_loud(run)) {
        text = mcp_schema_error_start(run->err, spot->path, keyword->name);
        mcp_schema_text_add(&text, "must be ");
        mcp_schema_text_add(&text, words[keyword->types & 7u]);
        mcp_schema_text_json(&text, keyword->value);
    }
    return MCP_SCHEMA_INVALID;
}

mcp_schema_verdict_t mcp_schema_eval_multiple(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                              const mcp_schema_keyword_t *keyword)
{
    mcp_schema_text_t text;

    if (!json_is_number(spot->instance) ||
        mcp_schema_is_multiple(mcp_schema_decimal(spot->instance), keyword->divisor)) {
        return MCP_SCHEMA_VALID;
    }
    if (mcp_schema_is_loud(run)) {
        text = mcp_schema_error_start(run->err, spot->path, keyword->name);
        mcp_schema_text_add(&text, "must be a multiple of ");
        mcp_schema_text_json(&text, keyword->value);
    }
    return MCP_SCHEMA_INVALID;
}

/* --- sizes --------------------------------------------------------------------------- */

static mcp_schema_verdict_t judge_size(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                       const mcp_schema_keyword_t *keyword, size_t size,
                                       const char *one, const char *many)
{
    mcp_schema_text_t text;
    size_t bound = size < keyword->least ? keyword->least : keyword->most;

    if (size >= keyword->least && size <= keyword->most) {
        return MCP_SCHEMA_VALID;
    }
    if (mcp_schema_is_loud(run)) {
        text = mcp_schema_error_start(run->err, spot->path, keyword->name);
        mcp_schema_text_add(&text, "must have at ");
        mcp_schema_text_add(&text, size < keyword->least ? "least " : "most ");
        mcp_schema_text_count(&text, bound);
        mcp_schema_text_add(&text, bound == 1 ? one : many);
    }
    return MCP_SCHEMA_INVALID;
}

/* Length in characters: in bytes that begin one. */
mcp_schema_verdict_t mcp_schema_eval_length(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                            const mcp_schema_keyword_t *keyword)
{
    const char *text;
    size_t bytes;
    size_t length = 0;

    if (!json_is_string(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    text = json_string_value(spot->instance);
    bytes = json_string_length(spot->instance);
    if (!mcp_schema_spend(run, bytes / 16)) {
        return MCP_SCHEMA_LIMIT;
    }
    for (size_t i = 0; i < bytes; i++) {
        length += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return judge_size(run, spot, keyword, length, " character", " characters");
}

mcp_schema_verdict_t mcp_schema_eval_items(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                           const mcp_schema_keyword_t *keyword)
{
    if (!json_is_array(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    return judge_size(run, spot, keyword, json_array_size(spot->instance), " item", " items");
}

mcp_schema_verdict_t mcp_schema_eval_members(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                             const mcp_schema_keyword_t *keyword)
{
    if (!json_is_object(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    return judge_size(run, spot, keyword, json_object_size(spot->instance), " property",
                      " properties");
}

/* --- the rest ------------------------------------------------------------------------- */

mcp_schema_verdict_t mcp_schema_eval_pattern(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                             const mcp_schema_keyword_t *keyword)
{
    mcp_schema_text_t text;
    int found;

    if (!json_is_string(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    found = mcp_regex_match_within(keyword->regex, json_string_value(spot->instance),
                                   json_string_length(spot->instance), &run->work);
    if (found != 0) {
        return found > 0 ? MCP_SCHEMA_VALID : MCP_SCHEMA_LIMIT;
    }
    if (mcp_schema_is_loud(run)) {
        text = mcp_schema_error_start(run->err, spot->path, keyword->name);
        mcp_schema_text_add(&text, "must match the pattern ");
        mcp_schema_text_add(&text, json_string_value(keyword->value));
    }
    return MCP_SCHEMA_INVALID;
}

mcp_schema_verdict_t mcp_schema_eval_unique(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                            const mcp_schema_keyword_t *keyword)
{
    mcp_schema_text_t text;
    mcp_schema_verdict_t verdict;
    size_t first = 0;
    size_t second = 0;

    if (!json_is_array(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    verdict = mcp_schema_unique(run, spot->instance, &first, &second);
    if (verdict == MCP_SCHEMA_INVALID && mcp_schema_is_loud(run)) {
        text = mcp_schema_error_start(run->err, spot->path, keyword->name);
        mcp_schema_text_add(&text, "items must differ, but those at ");
        mcp_schema_text_count(&text, first);
        mcp_schema_text_add(&text, " and ");
        mcp_schema_text_count(&text, second);
        mcp_schema_text_add(&text, " are equal");
    }
    return verdict;
}

/* All that are missing are named, so that one correction is enough. */
static void say_missing(mcp_schema_run_t *run, const mcp_schema_spot_t *spot, const char *rule,
                        const char *beside, const char *const *names, size_t n, size_t missing)
{
    mcp_schema_text_t text = mcp_schema_error_start(run->err, spot->path, rule);
    size_t listed = 0;

    mcp_schema_text_add(&text, missing == 1 ? "missing property " : "missing properties ");
    for (size_t i = 0; i < n && listed < MCP_SCHEMA_LISTED; i++) {
        if (json_object_get(spot->instance, names[i]) == NULL) {
            mcp_schema_text_add(&text, listed == 0 ? "" : ", ");
            mcp_schema_text_quote(&text, names[i]);
            listed++;
        }
    }
    if (missing > listed) {
        mcp_schema_text_add(&text, " and ");
        mcp_schema_text_count(&text, missing - listed);
        mcp_schema_text_add(&text, " more");
    }
    if (beside != NULL) {
        mcp_schema_text_add(&text, ", required beside ");
        mcp_schema_text_quote(&text, beside);
    }
}

mcp_schema_verdict_t mcp_schema_require(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                        const char *rule, const char *beside,
                                        const char *const *names, size_t n)
{
    size_t missing = 0;

    if (!mcp_schema_spend(run, n)) {
        return MCP_SCHEMA_LIMIT;
    }
    for (size_t i = 0; i < n; i++) {
        missing += json_object_get(spot->instance, names[i]) == NULL;
    }
    if (missing == 0) {
        return MCP_SCHEMA_VALID;
    }
    if (mcp_schema_is_loud(run)) {
        say_missing(run, spot, rule, beside, names, n, missing);
    }
    return MCP_SCHEMA_INVALID;
}

mcp_schema_verdict_t mcp_schema_eval_required(mcp_schema_run_t *run, const mcp_schema_spot_t *spot,
                                              const mcp_schema_keyword_t *keyword)
{
    if (!json_is_object(spot->instance)) {
        return MCP_SCHEMA_VALID;
    }
    return mcp_schema_require(run, spot, keyword->name, NULL, keyword->names, keyword->n);
}
