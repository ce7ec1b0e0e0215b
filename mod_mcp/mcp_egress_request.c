/* What a request may hold before it is handed to the library. Pure. */
#include "mcp_egress_request.h"

#include <string.h>
#include <strings.h>

#define METHOD_BYTES_MAX 32

static int is_token(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        int is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_word && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return 0;
    }
    return bytes > 0;
}

/* Fields that frame the message or name its host are ours: a second reading of them is how
 * requests are smuggled. */
static int is_own_field(const char *text, size_t bytes)
{
    static const char *const names[] = {"Connection",
                                        "Content-Length",
                                        "Expect",
                                        "Host",
                                        "Keep-Alive",
                                        "Proxy-Connection",
                                        "TE",
                                        "Trailer",
                                        "Transfer-Encoding",
                                        "Upgrade",
                                        "Proxy-Authorization"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == bytes && strncasecmp(text, names[i], bytes) == 0)
            return 1;
    }
    return 0;
}

int mcp_egress_request_has_sendable_header(const char *text)
{
    size_t name_bytes = strcspn(text, ":");
    if (text[name_bytes] != ':' || !is_token(text, name_bytes) || is_own_field(text, name_bytes))
        return 0;
    for (const char *c = text + name_bytes + 1; *c != '\0'; c++) {
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return 0;
    }
    return 1;
}

int mcp_egress_request_has_sendable_method(const mcp_request_t *request)
{
    size_t bytes = strlen(request->method);
    if (bytes == 0 || bytes > METHOD_BYTES_MAX ||
        strspn(request->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != bytes)
        return 0;
    if (strcmp(request->method, "HEAD") == 0)
        return request->body == NULL || request->body_bytes == 0;
    return strcmp(request->method, "CONNECT") != 0;
}
