/* Definitions of the meta-tools: see view_meta.h. The words are for models: when, how, and what nothing means. */
#include "view_meta.h"

#include <string.h>

#define J(...) #__VA_ARGS__

static const char *const search_arguments[] = {"query", "account", "limit", "detail", NULL};
static const char *const execute_arguments[] = {"name", "arguments", NULL};

static const struct {
    const char *name;
    const char *const *arguments;
    const char *definition;
} metas[MCP_METAS] = {
    {MCP_META_EXECUTE, execute_arguments,
     J({"name":"execute_tool",
        "description":"Runs a tool that search_tools found: its exact name, and arguments as its inputSchema says. It is the same as calling that tool itself.",
        "inputSchema":{"type":"object","properties":{
            "name":{"type":"string","description":"Name as search_tools answered it","minLength":1,"maxLength":256},
            "arguments":{"type":"object","description":"Arguments of that tool"}},
            "required":["name"],"additionalProperties":false},
        "annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}})},
    {MCP_META_SEARCH, search_arguments,
     J({"name":"search_tools",
        "description":"Finds tools of the connected applications, which are not listed one by one. Search when a task needs an application and no listed tool serves it; one search should do. query: two to four keywords (product, verb, thing), such as \"github create issue\", not a sentence. Run what fits by execute_tool. No items: no tool that you may use fits. unmatched names words that no tool has; suggest, if given, is a query worth one retry. Don't repeat a search with the same words.",
        "inputSchema":{"type":"object","properties":{
            "query":{"type":"string","description":"Two to four keywords: product, verb, thing","maxLength":65536},
            "account":{"type":"string","description":"Only this account or connector","maxLength":64},
            "limit":{"type":"integer","minimum":1,"maximum":20,"default":5},
            "detail":{"type":"string","enum":["full","summary"],"default":"full","description":"summary leaves out schemas"}},
            "required":["query"],"additionalProperties":false},
        "annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}})},
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
