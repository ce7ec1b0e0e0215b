/* Counting of tool definitions: see view_footprint.h. */
#include "view_footprint.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_body.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

size_t mcp_footprint_characters(const char *text)
{
    size_t count = 0;

    for (; text != NULL && *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return count;
}

size_t mcp_footprint_tokens(size_t characters)
{
    return characters / 4 + (characters % 4 != 0);
}

static int is_among(const char *key, const char *const *list, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (strcmp(list[i], key) == 0) {
            return 1;
        }
    }
    return 0;
}

/* What stands at a place of a schema document: a schema, a map of schemas by name, or values that are data. */
typedef enum place { PLACE_SCHEMA, PLACE_MAP, PLACE_NAMED_MAP, PLACE_DATA } place_t;

static place_t place_of(const char *keyword)
{
    static const char *const named[] = {"properties"};
    static const char *const maps[] = {"patternProperties", "$defs", "definitions",
                                       "dependentSchemas"};
    static const char *const data[] = {"enum", "const", "default", "examples", "example",
                                       "required"};

    if (is_among(keyword, named, COUNT(named))) {
        return PLACE_NAMED_MAP;
    }
    if (is_among(keyword, maps, COUNT(maps))) {
        return PLACE_MAP;
    }
    return is_among(keyword, data, COUNT(data)) ? PLACE_DATA : PLACE_SCHEMA;
}

/* Characters of a type, or of the types of a list. */
static size_t type_text(const json_t *type)
{
    size_t count = mcp_footprint_characters(json_string_value(type));
    const json_t *each;
    size_t i;

    json_array_foreach(type, i, each)
    {
        count += mcp_footprint_characters(json_string_value(each));
    }
    return count;
}

/* What a keyword of a schema says itself. */
static void add_keyword(const char *keyword, const json_t *value, mcp_footprint_t *sum)
{
    if (strcmp(keyword, "description") == 0 || strcmp(keyword, "title") == 0) {
        sum->parameters += mcp_footprint_characters(json_string_value(value));
    } else if (strcmp(keyword, "type") == 0) {
        sum->names += type_text(value);
    }
}

/* Names, types and descriptions of parameters below a value; `depth` bounds the descent as it bounds what is read. */
static void add_parameters(const json_t *value, place_t place, int depth, mcp_footprint_t *sum)
{
    const char *key;
    const json_t *member;
    size_t i;

    if (place == PLACE_DATA || depth > MCP_MAX_DEPTH) {
        return;
    }
    json_array_foreach(value, i, member)
    {
        add_parameters(member, place, depth + 1, sum);
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        if (place == PLACE_SCHEMA) {
            add_keyword(key, member, sum);
            add_parameters(member, place_of(key), depth + 1, sum);
        } else {
            sum->names += place == PLACE_NAMED_MAP ? mcp_footprint_characters(key) : 0;
            add_parameters(member, PLACE_SCHEMA, depth + 1, sum);
        }
    }
}

static mcp_wire_status_t serialised(const json_t *value, size_t *ret)
{
    char *text = value != NULL ? mcp_json_text(value, NULL) : NULL;

    if (value != NULL && text == NULL) {
        return MCP_E_NOMEM;
    }
    *ret = mcp_footprint_characters(text);
    free(text);
    return MCP_OK;
}

mcp_wire_status_t mcp_footprint_add(const json_t *def, mcp_footprint_t *sum)
{
    const json_t *schema = json_object_get(def, "inputSchema");
    mcp_footprint_t one = {.tools = 1};
    mcp_wire_status_t status;

    if (!json_is_object(def)) {
        return MCP_E_FIELD;
    }
    status = serialised(schema, &one.schemas);
    if (status == MCP_OK) {
        status = serialised(def, &one.definitions);
    }
    if (status != MCP_OK) {
        return status;
    }
    one.descriptions = mcp_footprint_characters(mcp_json_str(def, "title")) +
                       mcp_footprint_characters(mcp_json_str(def, "description"));
    add_parameters(schema, PLACE_SCHEMA, 0, &one);
    mcp_footprint_join(&one, sum);
    return MCP_OK;
}

void mcp_footprint_join(const mcp_footprint_t *part, mcp_footprint_t *sum)
{
    sum->tools += part->tools;
    sum->descriptions += part->descriptions;
    sum->parameters += part->parameters;
    sum->names += part->names;
    sum->schemas += part->schemas;
    sum->definitions += part->definitions;
}
