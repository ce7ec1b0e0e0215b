/* Rules of text that the catalog's files share: characters of URLs, headers that no file may set.
 * See pd_catalog_private.h. */
#include "pd_catalog_private.h"

#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- URLs --------------------------------------------------------------------- */

int pd_check_is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

int pd_check_is_pchar(char c)
{
    return pd_check_is_alnum(c) || (c != '\0' && strchr("-._~!$&'()*+,;=:@", c) != NULL);
}

int pd_check_hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t pd_check_triplet(const char *text)
{
    int high;
    int low;
    int byte;

    if (text[0] != '%') {
        return 0;
    }
    high = pd_check_hex(text[1]);
    low = high < 0 ? -1 : pd_check_hex(text[2]);
    if (low < 0) {
        return 0;
    }
    byte = high * 16 + low;
    return byte < 0x20 || byte == 0x7f || strchr("/\\.%", byte) != NULL ? 0 : 3;
}

/* --- headers ------------------------------------------------------------------ */

static const char *const reserved_headers[] = {
    "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer",
    "Upgrade", "HTTP2-Settings", "Expect", "Authorization", "Cookie", "Cookie2",
    /* many frameworks take another method from these than the one that was decided */
    "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override"};
static const char *const reserved_prefixes[] = {"Proxy-", "Mcp-"};

int pd_check_is_reserved_header(const char *name)
{
    size_t i;

    for (i = 0; i < COUNT(reserved_headers); i++) {
        if (strcasecmp(name, reserved_headers[i]) == 0) {
            return 1;
        }
    }
    for (i = 0; i < COUNT(reserved_prefixes); i++) {
        if (strncasecmp(name, reserved_prefixes[i], strlen(reserved_prefixes[i])) == 0) {
            return 1;
        }
    }
    return 0;
}

int pd_check_is_token(const char *text)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    const char *c;

    for (c = text; *c != '\0'; c++) {
        if (!pd_check_is_alnum(*c) && strchr(marks, *c) == NULL) {
            return 0;
        }
    }
    return c != text;
}

int pd_check_has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < 0x20 || c == 0x7f) {
            return 1;
        }
    }
    return 0;
}
