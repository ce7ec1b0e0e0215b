/* The endpoint's own words to a model: see view_text.h. */
#include "view_text.h"

#include <stdio.h>

size_t mcp_view_text_instructions(const char *prefix, char *buf, size_t size)
{
    int bytes = snprintf(
        buf, size,
        "This endpoint serves the tools that your organisation allows you to use. Tool names are "
        "ACCOUNT__OPERATION: the part before the two underscores is the connected account, or a toolbox of "
        "your organisation. Tools whose names begin with %s__ manage this gateway itself: who you are, which "
        "accounts are connected, and what its administrators may see and change. A tool's annotations say "
        "whether it only reads, or changes or deletes things. Every call is recorded.",
        prefix);

    return bytes < 0 ? 0 : (size_t)bytes < size ? (size_t)bytes : size - 1;
}
