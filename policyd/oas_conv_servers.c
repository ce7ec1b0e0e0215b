/* Where operations are served: see oas_conv.h. A server becomes an authority and a path in the form of connector files; what a vendor leaves
 * open (a relative address, no host at all) becomes the variable {host}, which each connection sets. */
#include "oas_conv.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

#define MAX_VALUES 256

/* --- variables ----------------------------------------------------------------------------- */

/* A scalar as text, or NULL. */
static const char *text_of(const json_t *value, apr_pool_t *pool)
{
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    if (json_is_integer(value)) {
        return apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)json_integer_value(value));
    }
    return json_is_boolean(value) ? (json_is_true(value) ? "true" : "false") : NULL;
}

static int holds(const json_t *list, const char *text)
{
    json_t *entry;
    size_t i;

    json_array_foreach(list, i, entry)
    {
        if (strcmp(json_string_value(entry), text) == 0) {
            return 1;
        }
    }
    return 0;
}

/* 1 if a value stands between "//" and "/" as a host, with or without a port. */
static int is_host(const char *text)
{
    size_t host = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
    size_t port = text[host] == ':' ? strspn(text + host + 1, "0123456789") : 0;

    return host > 0 && text[0] != '.' && text[0] != '-' && text[host - 1] != '.' && text[host - 1] != '-' &&
           (text[host] == '\0' || (port > 0 && port <= 5 && text[host + 1 + port] == '\0'));
}

/* 1 if a default can stand there; one of a list may be a part of a host, a dot even. */
static int is_default(const char *text, int place, int is_listed)
{
    if (place == 1 && is_listed) {
        return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == strlen(text);
    }
    return place == 0 || (place == 1 ? is_host(text) : text[0] != '\0' && strlen(text) <= 5 && strspn(text, "0123456789") == strlen(text));
}

/* A variable as a connector file has it; new reference. place: 0 path, 1 host, 2 port. */
static json_t *variable(oas_conv_t *conv, const json_t *from, int place)
{
    static const char *const patterns[] = {NULL, OAS_HOST_PATTERN, "[0-9]{1,5}"};
    json_t *made = json_object();
    json_t *values = json_array();
    const char *text = text_of(json_object_get(from, "default"), conv->pool);
    json_t *value;
    size_t i;

    json_array_foreach(json_object_get(from, "enum"), i, value)
    {
        const char *one = text_of(value, conv->pool);

        if (one != NULL && is_default(one, place, 1) && strlen(one) <= 512 && !holds(values, one) && json_array_size(values) < MAX_VALUES) {
            (void)json_array_append_new(values, json_string(one));
        }
    }
    text = text != NULL && place == 0 ? text + strspn(text, "/") : text; /* the slash stands in the template */
    if (text != NULL && strlen(text) <= 512 && is_default(text, place, json_array_size(values) > 0)) {
        (void)json_object_set_new(made, "default", json_string(text));
        if (json_array_size(values) > 0 && !holds(values, text)) {
            (void)json_array_append_new(values, json_string(text));
        }
    }
    if (json_array_size(values) > 0) {
        (void)json_object_set_new(made, "enum", json_incref(values));
    } else if (patterns[place] != NULL) {
        (void)json_object_set_new(made, "pattern", json_string(patterns[place]));
    }
    json_decref(values);
    text = oas_describe(conv, from, "description", 300);
    if (text != NULL) {
        (void)json_object_set_new(made, "description", json_string(text));
    }
    return made;
}

/* The variables of both parts, declared or not. */
static void collect(oas_conv_t *conv, oas_server_t *server, const char *part, int is_path, const json_t *declared)
{
    const char *open = strchr(part, '{');

    while (open != NULL) {
        const char *close = strchr(open, '}');
        const char *name;
        int place;

        if (close == NULL) {
            return;
        }
        name = apr_pstrmemdup(conv->pool, open + 1, (apr_size_t)(close - open - 1));
        place = is_path ? 0 : open > part && open[-1] == ':' ? 2 : 1;
        if (json_object_get(server->variables, name) == NULL) {
            (void)json_object_set_new(server->variables, name, variable(conv, json_object_get(declared, name), place));
        }
        open = strchr(close, '{');
    }
}

/* --- addresses ---------------------------------------------------------------------------------- */

/* The variable that a connection has to set. */
static void add_host(oas_conv_t *conv, oas_server_t *server)
{
    (void)conv;
    server->authority = "https://{host}";
    (void)json_object_set_new(server->variables, "host",
                              json_pack("{s:s,s:s}", "pattern", OAS_HOST_PATTERN, "description",
                                        "Host name of your installation, with :port where it is not 443"));
}

/* The path of a server without its end, doubled slashes, query and fragment. */
static const char *clean_path(const char *from, apr_pool_t *pool)
{
    char *path = apr_pcalloc(pool, strlen(from) + 2);
    size_t count = 0;
    const char *at;

    for (at = from; *at != '\0' && *at != '?' && *at != '#'; at++) {
        if (count == 0 && *at != '/') {
            path[count++] = '/';
        }
        if (*at == '/' && count > 0 && path[count - 1] == '/') {
            continue;
        }
        if (*at != ' ') {
            path[count++] = *at;
        }
    }
    while (count > 0 && path[count - 1] == '/') {
        count--;
    }
    path[count] = '\0';
    return path;
}

/* 1 for what stands between "//" and the next "/" of an address that can be one. */
static int is_authority(const char *text)
{
    if (text[0] == '\0' || text[0] == ':') {
        return 0;
    }
    for (; *text != '\0'; text++) {
        if (strchr("{}.-_:[]", *text) == NULL && !(*text >= '0' && *text <= '9') && !((*text | 32) >= 'a' && (*text | 32) <= 'z')) {
            return 0;
        }
    }
    return 1;
}

/* "https" unless the address, or the variable that stands for its scheme, says http alone. */
static const char *scheme_of(oas_conv_t *conv, const char *url, const json_t *declared)
{
    const char *close = url[0] == '{' ? strchr(url, '}') : NULL;

    if (close != NULL) {
        const json_t *variable = json_object_get(declared, apr_pstrmemdup(conv->pool, url + 1, (apr_size_t)(close - url - 1)));
        const char *word = mcp_json_str(variable, "default");

        return word != NULL && strcasecmp(word, "http") == 0 ? "http" : "https";
    }
    return strncasecmp(url, "http:", 5) == 0 ? "http" : "https";
}

/* Where the authority of an address ends: before the path, which a variable may begin that says so by its default. */
static size_t authority_end(oas_conv_t *conv, const char *rest, const json_t *declared)
{
    size_t bytes = strcspn(rest, "/?#");
    const char *open = strchr(rest, '{');

    while (open != NULL && (size_t)(open - rest) < bytes) {
        const char *close = strchr(open, '}');
        const char *word;

        if (close == NULL) {
            break;
        }
        word = mcp_json_str(json_object_get(declared, apr_pstrmemdup(conv->pool, open + 1, (apr_size_t)(close - open - 1))), "default");
        if (word != NULL && word[0] == '/' && open != rest) {
            return (size_t)(open - rest);
        }
        open = strchr(close, '{');
    }
    return bytes;
}

/* An address of a document; declared: its variables, may be NULL. */
static const oas_server_t *read_url(oas_conv_t *conv, const char *url, const json_t *declared)
{
    oas_server_t *server = apr_pcalloc(conv->pool, sizeof(*server));
    const char *scheme = "https";
    const char *rest = strstr(url, "://");
    const char *authority;

    server->variables = oas_keep(conv->pool, json_object());
    if (rest != NULL && rest - url <= 40) {
        scheme = scheme_of(conv, url, declared);
        rest += 3;
    } else if (strncmp(url, "//", 2) == 0) {
        rest = url + 2;
    } else if (url[0] != '/' && strcspn(url, "/.") < strcspn(url, "/") && strcspn(url, "/") > 3) {
        rest = url; /* api.example.com/v1 */
    } else {
        add_host(conv, server);
        server->path = clean_path(url, conv->pool);
        collect(conv, server, server->path, 1, declared);
        return server;
    }
    authority = apr_pstrmemdup(conv->pool, rest, authority_end(conv, rest, declared));
    server->path = clean_path(rest + strlen(authority), conv->pool);
    if (strchr(authority, '@') != NULL) {
        authority = strchr(authority, '@') + 1;
    }
    if (!is_authority(authority)) {
        add_host(conv, server);
    } else {
        server->authority = apr_pstrcat(conv->pool, scheme, "://", authority, (char *)NULL);
        collect(conv, server, authority, 0, declared);
    }
    collect(conv, server, server->path, 1, declared);
    return server;
}

/* --- the nearest ---------------------------------------------------------------------------------- */

/* Of a list the one that is asked for, else the first that is http. */
static const json_t *choose(const oas_conv_t *conv, const json_t *list)
{
    const char *wanted = conv->options->server;
    const json_t *first = NULL;
    json_t *server;
    size_t i;

    json_array_foreach(list, i, server)
    {
        const char *url = mcp_json_str(server, "url");
        const char *text = mcp_json_str(server, "description");

        if (url == NULL || strncasecmp(url, "ws", 2) == 0) {
            continue;
        }
        if (wanted != NULL && (strcmp(url, wanted) == 0 || (text != NULL && strcasecmp(text, wanted) == 0))) {
            return server;
        }
        first = first == NULL ? server : first;
    }
    return first;
}

static const oas_server_t *of_list(oas_conv_t *conv, const json_t *holder)
{
    const json_t *server = choose(conv, json_object_get(holder, "servers"));

    return server != NULL ? read_url(conv, mcp_json_str(server, "url"), json_object_get(server, "variables")) : NULL;
}

/* Swagger 2.0: scheme, host and basePath. */
static const oas_server_t *of_host(oas_conv_t *conv, const oas_found_t *found)
{
    const json_t *root = oas_doc_root(conv->doc).value;
    const json_t *schemes = json_object_get(found != NULL ? found->operation.value : NULL, "schemes");
    const char *host = mcp_json_str(root, "host");
    const char *path = mcp_json_str(root, "basePath");
    const char *scheme = "https";
    json_t *one;
    size_t i;

    if (!json_is_array(schemes)) {
        schemes = json_object_get(root, "schemes");
    }
    json_array_foreach(schemes, i, one)
    {
        if (i == 0 && json_is_string(one) && strcasecmp(json_string_value(one), "http") == 0) {
            scheme = "http";
        }
        if (json_is_string(one) && strcasecmp(json_string_value(one), "https") == 0) {
            scheme = "https";
            break;
        }
    }
    path = path == NULL ? "" : path;
    if (host == NULL || host[0] == '\0') {
        return read_url(conv, path[0] == '/' ? path : apr_pstrcat(conv->pool, "/", path, (char *)NULL), NULL);
    }
    if (strstr(host, "://") != NULL) {
        host = strstr(host, "://") + 3;
    }
    return read_url(conv, apr_pstrcat(conv->pool, scheme, "://", host, path[0] == '/' ? "" : "/", path, (char *)NULL), NULL);
}

const oas_server_t *oas_servers_of(oas_conv_t *conv, const oas_found_t *found)
{
    const oas_server_t *server = NULL;

    if (conv->options->base_url != NULL) {
        return read_url(conv, conv->options->base_url, NULL);
    }
    if (conv->version == 20) {
        return of_host(conv, found);
    }
    if (found != NULL) {
        server = of_list(conv, found->operation.value);
        server = server != NULL ? server : of_list(conv, found->item.value);
    }
    server = server != NULL ? server : of_list(conv, oas_doc_root(conv->doc).value);
    return server != NULL ? server : read_url(conv, "/", NULL);
}
