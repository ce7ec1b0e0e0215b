/* Definitions of the meta-tools: see view_meta.h. The words are for models: when, how, and what nothing means. */
#include "view_meta.h"

#include <string.h>

/* Text of JSON; a line by itself, so that no blank of the source becomes one of the text. */
#define J(...) #__VA_ARGS__

static const char *const search_arguments[] = {"query", "account", "limit", "detail", NULL};
static const char *const execute_arguments[] = {"name", "arguments", NULL};

static const struct {
    const char *name;
    const char *const *arguments;
    const char *definition;
} metas[MCP_METAS] = {
    {MCP_META_EXECUTE, execute_arguments,
     J({"name":"execute_tool",)
     J("description":"Runs a tool that search_tools found.",)
     J("inputSchema":{"type":"object","properties":{"name":{"type":"string"},)
     J("arguments":{"type":"object","description":"As its inputSchema says"}},"required":["name"]},)
     J("annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}})},
    {MCP_META_SEARCH, search_arguments,
     J({"name":"search_tools",)
     J("description":"Finds tools of the connected applications, which are not listed. Search once when a task needs an application and no listed tool serves it. query: two to four keywords (product, verb, thing) such as \"github create issue\". No items: no tool that you may use fits; unmatched names words that no tool has, suggest is a query worth one retry.",)
     J("inputSchema":{"type":"object","properties":{"query":{"type":"string"},)
     J("account":{"type":"string","description":"Account or connector"},)
     J("limit":{"type":"integer","maximum":20},)
     J("detail":{"enum":["full","summary"],"description":"summary: no schemas"}},"required":["query"]},)
     J("annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}})},
};

mcp_meta_t mcp_view_meta(const char *name)
{
    int i;

    for (i = 0; i < MCP_METAS; i++) {
        if (strcmp(metas[i].name, name) == 0) {
            return (mcp_meta_t)i;
        }
    }
    return MCP_META_NONE;
}

const char *mcp_view_meta_name(mcp_meta_t meta)
{
    return metas[meta].name;
}

const char *mcp_view_meta_definition(mcp_meta_t meta)
{
    return metas[meta].definition;
}

int mcp_view_meta_knows(mcp_meta_t meta, const char *argument)
{
    const char *const *at = meta >= 0 && meta < MCP_METAS ? metas[meta].arguments : NULL;

    for (; at != NULL && *at != NULL; at++) {
        if (strcmp(*at, argument) == 0) {
            return 1;
        }
    }
    return 0;
}
