/* Two connectors, accounts on them and two members, for the tests of restrictions and toolboxes. */
#ifndef POLICY_SHOP_H
#define POLICY_SHOP_H

#include "ops_world.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static UNUSED json_t *shop_json(const char *text)
{
    json_t *value = NULL;

    if (mcp_json_parse(text, strlen(text), 32, &value, NULL) != MCP_OK) {
        fail_msg("not JSON: %s", text);
    }
    return value;
}

/* Runs an operation as root with arguments as text. */
static UNUSED json_t *shop_do(const char *name, const char *args)
{
    return world_do(world_root(), name, shop_json(args));
}

static UNUSED void shop_done(const char *name, const char *args)
{
    json_decref(shop_do(name, args));
}

static UNUSED mcp_code_t shop_refused(const char *name, const char *args)
{
    return world_refused(world_root(), name, shop_json(args));
}

/* An operation of a connector file. */
#define SHOP_OP(id, method, path, more)                                                            \
    "{\"id\":\"" id "\",\"method\":\"" method "\",\"path\":\"" path                               \
    "\",\"description\":\"d\"" more "}"
#define SHOP_PARAM(name, in, schema)                                                               \
    "{\"name\":\"" name "\",\"in\":\"" in "\",\"required\":true,\"schema\":" schema "}"
#define SHOP_ID SHOP_PARAM("id", "path", "{\"type\":\"string\"}")
#define SHOP_FILE(slug, ops)                                                                       \
    "{\"slug\":\"" slug "\",\"label\":\"The " slug "\",\"base_url\":\"https://" slug              \
    ".example\",\"auth\":{\"type\":\"none\"},\"operations\":[" ops "]}"

#define SHOP_OPS                                                                                   \
    SHOP_OP("list", "get", "/items",                                                               \
            ",\"parameters\":[" SHOP_PARAM("q", "query", "{\"type\":\"string\"}") ","             \
            SHOP_PARAM("max", "query", "{\"type\":\"integer\"}") "]")                             \
    "," SHOP_OP("get", "get", "/items/{id}", ",\"parameters\":[" SHOP_ID "]")                     \
    "," SHOP_OP("admin", "get", "/items/admin", "")                                               \
    "," SHOP_OP("twin-a", "get", "/things/{id}", ",\"parameters\":[" SHOP_ID "]")                 \
    "," SHOP_OP("twin-b", "get", "/things/{name}",                                                \
                ",\"parameters\":[" SHOP_PARAM("name", "path", "{\"type\":\"string\"}") "]")      \
    "," SHOP_OP("make", "post", "/items",                                                          \
                ",\"body\":{\"content_type\":\"application/json\",\"schema\":{\"type\":\"object\"," \
                "\"properties\":{\"title\":{\"type\":\"string\"},\"meta\":{\"type\":\"object\","   \
                "\"properties\":{\"owner\":{\"type\":\"string\"}},\"additionalProperties\":false}}," \
                "\"required\":[\"title\"]}}")                                                     \
    "," SHOP_OP("wipe", "delete", "/items", "")                                                   \
    "," SHOP_OP("nuke", "delete", "/all", ",\"classification\":\"forbidden\"")
#define DESK_OPS                                                                                   \
    SHOP_OP("list", "get", "/tickets", "") "," SHOP_OP("close.all", "post", "/close", "")

static const pd_actor_t *ada; /* a Member */
static const pd_actor_t *bob;

/* id of what a create made. */
static UNUSED const char *shop_id(const char *operation, const char *args, const char *member)
{
    return world_take(shop_do(operation, args), member);
}

static UNUSED int shop_setup(void **state)
{
    if (world_setup(state) != 0) {
        return -1;
    }
    shop_done("connectors__create", SHOP_FILE("shop", SHOP_OPS));
    shop_done("connectors__create", SHOP_FILE("desk", DESK_OPS));
    shop_done("connections__create", "{\"connector\":\"shop\",\"label\":\"acc\",\"shared\":true}");
    shop_done("connections__create",
              "{\"connector\":\"desk\",\"label\":\"support\",\"shared\":true}");
    ada = world_member("ada@example.com", "Member", "mcp:destructive", MCP_SURFACE_REST);
    bob = world_member("bob@example.com", "Member", "mcp:destructive", MCP_SURFACE_REST);
    return 0;
}

/* The i-th element of a member array, by member names. */
static UNUSED const json_t *shop_at(const json_t *object, const char *name, size_t i)
{
    return json_array_get(json_object_get(object, name), i);
}

static UNUSED size_t shop_size(const json_t *object, const char *name)
{
    return json_array_size(json_object_get(object, name));
}

static UNUSED const char *shop_str(const json_t *object, const char *name)
{
    const char *text = mcp_json_str(object, name);

    if (text == NULL) {
        fail_msg("no text %s", name);
    }
    return text;
}

/* 1 when a sentence of `warnings` holds the part. */
static UNUSED int shop_warns(const json_t *answer, const char *part)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(answer, "warnings"), i, one)
    {
        if (strstr(json_string_value(one), part) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* 1 when the text stands anywhere in the value. */
static UNUSED int shop_holds(const json_t *value, const char *text)
{
    char *dump = mcp_json_text(value, NULL);
    int holds = dump != NULL && strstr(dump, text) != NULL;

    free(dump);
    return holds;
}

#endif
