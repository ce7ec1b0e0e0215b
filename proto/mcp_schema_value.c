/* The schema room's view of JSON values: numbers as numbers, equality of whole values, and
 * uniqueness of items, all within the budget of a validation. */
#include "mcp_schema_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_A_UNIT 16u

/* jansson's iterators take a changeable object, but only look. */
static json_t *changeable(const json_t *json)
{
    json_t *ret;

    memcpy(&ret, &json, sizeof(ret));
    return ret;
}

void *mcp_schema_first(const json_t *object)
{
    return json_object_iter(changeable(object));
}

void *mcp_schema_next(const json_t *object, void *member)
{
    return json_object_iter_next(changeable(object), member);
}

/* --- numbers ---------------------------------------------------------------- */

static int compare_mixed(json_int_t a, double b)
{
    json_int_t whole;
    double rest;

    if (b >= 0x1p63) {
        return -1;
    }
    if (b < -0x1p63) {
        return 1;
    }
    whole = (json_int_t)b; /* towards 0, exact */
    if (a != whole) {
        return a < whole ? -1 : 1;
    }
    rest = b - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

int mcp_schema_compare(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        json_int_t x = json_integer_value(a);
        json_int_t y = json_integer_value(b);

        return x < y ? -1 : x > y;
    }
    if (json_is_integer(a)) {
        return compare_mixed(json_integer_value(a), json_real_value(b));
    }
    if (json_is_integer(b)) {
        return -compare_mixed(json_integer_value(b), json_real_value(a));
    }
    return json_real_value(a) < json_real_value(b) ? -1 : json_real_value(a) > json_real_value(b);
}

bool mcp_schema_is_integer(const json_t *json)
{
    double value;

    if (!json_is_real(json)) {
        return json_is_integer(json);
    }
    value = json_real_value(json);
    return isfinite(value) && !(value < floor(value)) && !(value > floor(value));
}

/* The digits that name the double and no other, as the sender most likely wrote them. */
static void shortest(double value, char *text, size_t room)
{
    for (int digits = 14; digits <= 16; digits++) {
        double back;

        (void)snprintf(text, room, "%.*e", digits, value); /* room is enough for 17 digits */
        back = strtod(text, NULL);
        if (!(back < value) && !(back > value)) {
            return;
        }
    }
}

mcp_schema_decimal_t mcp_schema_decimal(const json_t *number)
{
    mcp_schema_decimal_t ret = {0, 0};

    if (json_is_integer(number)) {
        json_int_t value = json_integer_value(number);

        ret.digits = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    } else {
        char text[48];
        const char *at = text;
        int places = -1;

        shortest(fabs(json_real_value(number)), text, sizeof(text));
        /* Whatever is no digit is the decimal point, in any locale. */
        for (; *at != '\0' && *at != 'e'; at++) {
            if (*at >= '0' && *at <= '9') {
                ret.digits = ret.digits * 10 + (uint64_t)(*at - '0');
                places++;
            }
        }
        ret.exponent = *at == 'e' ? (int)strtol(at + 1, NULL, 10) - places : 0;
    }
    while (ret.digits != 0 && ret.digits % 10 == 0) {
        ret.digits /= 10;
        ret.exponent++;
    }
    return ret;
}

__extension__ typedef unsigned __int128 wide_t;

bool mcp_schema_is_multiple(mcp_schema_decimal_t a, mcp_schema_decimal_t b)
{
    uint64_t rest;

    if (a.digits == 0) {
        return true;
    }
    if (b.digits == 0 || a.exponent < b.exponent) {
        return false; /* b has a factor 10 that a, stripped of its zeros, lacks */
    }
    rest = a.digits % b.digits;
    for (int k = a.exponent - b.exponent; k > 0 && rest != 0; k--) {
        rest = (uint64_t)((wide_t)rest * 10 % b.digits);
    }
    return rest == 0;
}

/* --- equality ---------------------------------------------------------------- */

static mcp_schema_verdict_t equal(mcp_schema_run_t *run, const json_t *a, const json_t *b,
                                  unsigned depth);

static mcp_schema_verdict_t equal_arrays(mcp_schema_run_t *run, const json_t *a, const json_t *b,
                                         unsigned depth)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;
    size_t n = json_array_size(a);

    if (n != json_array_size(b)) {
        return MCP_SCHEMA_INVALID;
    }
    for (size_t i = 0; i < n && verdict == MCP_SCHEMA_VALID; i++) {
        verdict = equal(run, json_array_get(a, i), json_array_get(b, i), depth + 1);
    }
    return verdict;
}

static mcp_schema_verdict_t equal_objects(mcp_schema_run_t *run, const json_t *a, const json_t *b,
                                          unsigned depth)
{
    mcp_schema_verdict_t verdict = MCP_SCHEMA_VALID;

    if (json_object_size(a) != json_object_size(b)) {
        return MCP_SCHEMA_INVALID;
    }
    for (void *at = mcp_schema_first(a); at != NULL && verdict == MCP_SCHEMA_VALID;
         at = mcp_schema_next(a, at)) {
        const json_t *other = json_object_get(b, json_object_iter_key(at));

        if (other == NULL) {
            return MCP_SCHEMA_INVALID;
        }
        verdict = equal(run, json_object_iter_value(at), other, depth + 1);
    }
    return verdict;
}

static mcp_schema_verdict_t equal(mcp_schema_run_t *run, const json_t *a, const json_t *b,
                                  unsigned depth)
{
    size_t bytes;

    if (depth > MCP_SCHEMA_MAX_DEPTH || !mcp_schema_spend(run, 2)) {
        return MCP_SCHEMA_LIMIT;
    }
    if (json_is_number(a) && json_is_number(b)) {
        return mcp_schema_compare(a, b) == 0 ? MCP_SCHEMA_VALID : MCP_SCHEMA_INVALID;
    }
    if (json_typeof(a) != json_typeof(b)) {
        return MCP_SCHEMA_INVALID;
    }
    if (json_is_array(a)) {
        return equal_arrays(run, a, b, depth);
    }
    if (json_is_object(a)) {
        return equal_objects(run, a, b, depth);
    }
    if (!json_is_string(a)) {
        return MCP_SCHEMA_VALID; /* null, true, false */
    }
    bytes = json_string_length(a);
    if (bytes != json_string_length(b)) {
        return MCP_SCHEMA_INVALID;
    }
    if (!mcp_schema_spend(run, bytes / BYTES_A_UNIT)) {
        return MCP_SCHEMA_LIMIT;
    }
    return memcmp(json_string_value(a), json_string_value(b), bytes) == 0 ? MCP_SCHEMA_VALID
                                                                          : MCP_SCHEMA_INVALID;
}

mcp_schema_verdict_t mcp_schema_equal(mcp_schema_run_t *run, const json_t *a, const json_t *b)
{
    return equal(run, a, b, 0);
}

/* --- uniqueness --------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t hash_bytes(const char *text, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    }
    return hash;
}

/* Equal numbers have equal hashes, whatever their form. */
static uint64_t hash_number(const json_t *json)
{
    double real;
    uint64_t bits;

    if (json_is_integer(json)) {
        return mix(1, (uint64_t)json_integer_value(json));
    }
    real = json_real_value(json);
    if (mcp_schema_is_integer(json) && real >= -0x1p63 && real < 0x1p63) {
        return mix(1, (uint64_t)(json_int_t)real);
    }
    memcpy(&bits, &real, sizeof(bits));
    return mix(2, bits);
}

/* A hash that agrees with mcp_schema_equal(); members count in any order.  It is not keyed:
 * made-up collisions only lead to more comparisons, which the budget ends. */
static bool hash_json(mcp_schema_run_t *run, const json_t *json, unsigned depth, uint64_t *ret)
{
    uint64_t hash = mix(3, (uint64_t)json_typeof(json));
    uint64_t sum = 0;
    uint64_t inner;
    size_t bytes;

    if (depth > MCP_SCHEMA_MAX_DEPTH || !mcp_schema_spend(run, 4)) {
        return false;
    }
    if (json_is_number(json)) {
        hash = hash_number(json);
    } else if (json_is_string(json)) {
        bytes = json_string_length(json);
        if (!mcp_schema_spend(run, bytes / BYTES_A_UNIT)) {
            return false;
        }
        hash = mix(hash, hash_bytes(json_string_value(json), bytes));
    } else if (json_is_array(json)) {
        for (size_t i = 0; i < json_array_size(json); i++) {
            if (!hash_json(run, json_array_get(json, i), depth + 1, &inner)) {
                return false;
            }
            hash = mix(hash, inner);
        }
    } else if (json_is_object(json)) {
        for (void *at = mcp_schema_first(json); at != NULL; at = mcp_schema_next(json, at)) {
            const char *key = json_object_iter_key(at);

            bytes = strlen(key);
            if (!mcp_schema_spend(run, bytes / BYTES_A_UNIT) ||
                !hash_json(run, json_object_iter_value(at), depth + 1, &inner)) {
                return false;
            }
            sum += mix(hash_bytes(key, bytes), inner);
        }
        hash = mix(hash, sum);
    }
    *ret = hash;
    return true;
}

typedef struct hashed {
    uint64_t hash;
    size_t index;
} hashed_t;

static int by_hash(const void *left, const void *right)
{
    const hashed_t *a = left;
    const hashed_t *b = right;

    if (a->hash != b->hash) {
        return a->hash < b->hash ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Compares items of equal hash pair by pair. */
static mcp_schema_verdict_t find_equal(mcp_schema_run_t *run, const json_t *array,
                                       const hashed_t *sorted, size_t n, size_t *first,
                                       size_t *second)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n && sorted[k].hash == sorted[i].hash; k++) {
            mcp_schema_verdict_t verdict =
                mcp_schema_equal(run, json_array_get(array, sorted[i].index),
                                 json_array_get(array, sorted[k].index));

            if (verdict == MCP_SCHEMA_VALID) {
                *first = sorted[i].index;
                *second = sorted[k].index;
                return MCP_SCHEMA_INVALID;
            }
            if (verdict != MCP_SCHEMA_INVALID) {
                return verdict;
            }
        }
    }
    return MCP_SCHEMA_VALID;
}

mcp_schema_verdict_t mcp_schema_unique(mcp_schema_run_t *run, const json_t *array, size_t *first,
                                       size_t *second)
{
    mcp_schema_verdict_t verdict;
    size_t n = json_array_size(array);
    hashed_t *sorted;

    /* Paid before memory is asked for: sorting costs a few units an item. */
    if (n < 2) {
        return MCP_SCHEMA_VALID;
    }
    if (n > run->units || !mcp_schema_spend(run, (uint64_t)n * 4)) {
        return MCP_SCHEMA_LIMIT;
    }
    sorted = calloc(n, sizeof(*sorted));
    if (sorted == NULL) {
        return MCP_SCHEMA_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i].index = i;
        if (!hash_json(run, json_array_get(array, i), 0, &sorted[i].hash)) {
            free(sorted);
            return MCP_SCHEMA_LIMIT;
        }
    }
    qsort(sorted, n, sizeof(*sorted), by_hash);
    verdict = find_equal(run, array, sorted, n, first, second);
    free(sorted);
    return verdict;
}
