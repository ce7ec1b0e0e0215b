/* The endpoint's own words to a model: see view_text.h. */
#include "view_text.h"

#include <stdio.h>
#include <string.h>

#define APPLICATIONS_BYTES 900 /* that names of applications take at most */

/* Appends a text if it fits whole. */
static size_t add(char *buf, size_t size, size_t used, const char *text)
{
    size_t bytes = strlen(text);

    if (bytes >= size - used) {
        return used;
    }
    memcpy(buf + used, text, bytes + 1);
    return used + bytes;
}

/* "Applications: a, b, c and 4 more. " */
static size_t add_applications(const mcp_view_about_t *about, char *buf, size_t size, size_t used)
{
    char list[APPLICATIONS_BYTES + 64] = "Applications: ";
    size_t at = strlen(list);
    size_t i;

    for (i = 0; i < about->application_count; i++) {
        const char *name = about->applications[i];
        size_t bytes = strlen(name);

        if (at + bytes + 2 > APPLICATIONS_BYTES) {
            break;
        }
        if (i > 0) {
            memcpy(list + at, ", ", 2);
            at += 2;
        }
        memcpy(list + at, name, bytes);
        at += bytes;
    }
    if (i == 0) {
        return used;
    }
    if (i < about->application_count) {
        int more = snprintf(list + at, sizeof(list) - at, " and %zu more", about->application_count - i);

        at += more > 0 && (size_t)more < sizeof(list) - at ? (size_t)more : 0;
    }
    (void)snprintf(list + at, sizeof(list) - at, ". "); /* there is room for it: the bound is below the size */
    return add(buf, size, used, list);
}

size_t mcp_view_text_instructions(const mcp_view_about_t *about, char *buf, size_t size)
{
    char control[256];
    size_t used = 0;

    if (size == 0) {
        return 0;
    }
    buf[0] = '\0';
    used = add(buf, size, used, "This endpoint serves the tools that your organisation allows you to use. ");
    used = add_applications(about, buf, size, used);
    if (about->is_collapsed) {
        used = add(buf, size, used,
                   "Their tools are not listed one by one: find them by search_tools with two to four keywords "
                   "(product, verb, thing) and run one by execute_tool. An empty result means that no tool you may "
                   "use fits; it names the words that no tool has. ");
    }
    used = add(buf, size, used,
               "A tool's name is ACCOUNT__OPERATION: before the two underscores stands the connected account, or a "
               "toolbox of your organisation. ");
    (void)snprintf(control, sizeof(control),
                   "Tools that begin with %.32s__ manage this gateway itself: who you are, what is connected. ",
                   about->prefix);
    used = add(buf, size, used, control);
    if (about->is_collapsed) {
        (void)snprintf(control, sizeof(control),
                       "They are listed in short: %.32s__tools__get shows all arguments of one. ", about->prefix);
        used = add(buf, size, used, control);
    }
    return add(buf, size, used,
               "A tool's annotations say whether it only reads, or changes or deletes things. Every call is recorded.");
}

const char *mcp_view_text_server(int is_collapsed)
{
    return is_collapsed
               ? "Gateway to the applications that your organisation has connected: find their tools by search_tools "
                 "with two to four keywords (product, verb, thing), run one by execute_tool; an empty result means "
                 "that no tool you may use fits."
               : "Gateway to the applications that your organisation has connected: search its tools by two to four "
                 "keywords (product, verb, thing); their names are ACCOUNT__OPERATION.";
}
