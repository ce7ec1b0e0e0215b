/* Base URLs of connectors: a template with variables, judged when the file comes and expanded for
 * each connection. Everything that reaches the host or port of an URL passes here.
 * See pd_catalog.h. */
#include "pd_catalog.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_regex.h"
#include "pd_catalog_private.h"
#include "pd_log.h"

#define MAX_BASE_BYTES 2048 /* of the expanded URL: the plan's field (PROTOCOL.md) */
#define MAX_VALUE 512
#define MAX_VARIABLE 64
#define QUOTE_BYTES 100

static int is_host_char(char c)
{
    return pd_check_is_alnum(c) || (c != '\0' && strchr("-._:[]", c) != NULL);
}

/* --- the template as pieces ----------------------------------------------------- */

/* A piece is a run of literal text or one {variable}. */
typedef struct piece {
    const char *text;
    int is_variable;
    int is_authority; /* host and port, else path */
} piece_t;

/* Why a template can't be cut into pieces, or NULL. */
static const char *cut_part(const char *part, int is_authority, apr_pool_t *pool,
                            apr_array_header_t *pieces)
{
    while (*part != '\0') {
        const char *open = strchr(part, '{');
        const char *close;
        piece_t *piece = apr_array_push(pieces);

        piece->is_authority = is_authority;
        piece->is_variable = open == part;
        if (open == part) {
            close = strchr(part, '}');
            if (close == NULL || close == part + 1) {
                return "a '{' begins a variable: {name}";
            }
            piece->text = apr_pstrmemdup(pool, part + 1, (apr_size_t)(close - part - 1));
            part = close + 1;
        } else {
            size_t bytes = open == NULL ? strlen(part) : (size_t)(open - part);

            piece->text = apr_pstrmemdup(pool, part, bytes);
            part += bytes;
        }
    }
    return NULL;
}

/* "http" or "https", or NULL; *rest points behind "://". */
static const char *scheme_of(const char *url, const char **rest)
{
    static const char *const schemes[] = {"https", "http"};
    size_t i;

    for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t bytes = strlen(schemes[i]);

        if (strncmp(url, schemes[i], bytes) == 0 && strncmp(url + bytes, "://", 3) == 0) {
            *rest = url + bytes + 3;
            return schemes[i];
        }
    }
    return NULL;
}

/* Cuts base_url; NULL or why it can't be. */
static const char *cut(const char *base_url, apr_pool_t *pool, const char **ret_scheme,
                       apr_array_header_t **ret)
{
    apr_array_header_t *pieces = apr_array_make(pool, 8, sizeof(piece_t));
    const char *rest;
    const char *slash;
    const char *why;
    const char *scheme = scheme_of(base_url, &rest);

    if (scheme == NULL) {
        return "must begin with http:// or https:// in lower case, with no variable in it";
    }
    slash = strchr(rest, '/');
    if (slash == NULL) {
        slash = rest + strlen(rest);
    }
    if (slash == rest) {
        return "has no host";
    }
    why = cut_part(apr_pstrmemdup(pool, rest, (apr_size_t)(slash - rest)), 1, pool, pieces);
    if (why == NULL) {
        why = cut_part(slash, 0, pool, pieces);
    }
    *ret_scheme = scheme;
    *ret = pieces;
    return why;
}

/* Whether literal text may stand where it does; NULL or why not. */
static const char *judge_literal(const piece_t *piece)
{
    const char *c = piece->text;

    while (*c != '\0') {
        size_t triplet = pd_check_triplet(c);

        if (piece->is_authority) {
            if (*c == '@') {
                return "must not name a user; the credential belongs to the connection";
            }
            if (!is_host_char(*c)) {
                return "has a character that no host or port has; write names of other scripts in "
                       "punycode";
            }
            c++;
        } else if (triplet != 0) {
            c += triplet;
        } else if (*c == '?' || *c == '#') {
            return "must have no query and no fragment; a fixed parameter serves for what is "
                   "always sent";
        } else if (*c != '/' && !pd_check_is_pchar(*c)) {
            return "has a character that must be percent-encoded, or an encoded slash or dot";
        } else {
            c++;
        }
    }
    return !piece->is_authority && strstr(piece->text, "//") != NULL ? "has a doubled slash" : NULL;
}

/* --- the file ------------------------------------------------------------------- */

static int is_variable_name(const char *name)
{
    const char *c;

    for (c = name; *c != '\0'; c++) {
        if (!pd_check_is_alnum(*c) && *c != '_' && *c != '-') {
            return 0;
        }
    }
    return c != name && c - name <= MAX_VARIABLE;
}

/* For a match of the whole value; the pattern alone first, so that none can close our group. */
static mcp_regex_t *whole_pattern(const char *pattern, apr_pool_t *pool)
{
    const char *whole = apr_pstrcat(pool, "^(?:", pattern, ")$", NULL);
    mcp_regex_t *regex = NULL;

    if (mcp_regex_compile(pattern, strlen(pattern), pool, &regex) != MCP_OK ||
        mcp_regex_compile(whole, strlen(whole), pool, &regex) != MCP_OK) {
        return NULL;
    }
    return regex;
}

/* NULL, or why the variable can't have the value. */
static const char *judge_value(const json_t *variable, const char *value, apr_pool_t *pool)
{
    const json_t *choices = json_object_get(variable, "enum");
    const char *pattern = mcp_json_str(variable, "pattern");
    const json_t *choice;
    size_t i;

    if (strlen(value) > MAX_VALUE) {
        return "is longer than 512 bytes";
    }
    if (choices != NULL) {
        int is_choice = 0;

        json_array_foreach(choices, i, choice)
        {
            is_choice |= strcmp(json_string_value(choice), value) == 0;
        }
        if (!is_choice) {
            return "is none of the values of its enum";
        }
    }
    if (pattern != NULL) {
        const mcp_regex_t *regex = whole_pattern(pattern, pool);

        if (regex == NULL || mcp_regex_match(regex, value, strlen(value)) != 1) {
            return "does not match its pattern as a whole";
        }
    }
    return NULL;
}

static pd_status_t check_variable(const pd_check_t *check, const char *name, const json_t *variable,
                                  int in_authority)
{
    const char *at;
    const char *value = mcp_json_str(variable, "default");
    const char *pattern = mcp_json_str(variable, "pattern");
    const char *why;

    if (!is_variable_name(name)) {
        return pd_check_fault(
            check, "/variables", NULL,
            "\"%s\" is no name of a variable; use 1 to %d of A-Z, a-z, 0-9, '_' and '-'",
            pd_check_quote(check, name), MAX_VARIABLE);
    }
    at = apr_psprintf(check->round, "/variables/%s", name);
    if (pattern != NULL && whole_pattern(pattern, check->round) == NULL) {
        return pd_check_fault(check, at, NULL, "its pattern is no regular expression");
    }
    if (in_authority && pattern == NULL && json_object_get(variable, "enum") == NULL) {
        return pd_check_fault(check, at, NULL,
                              "a variable in host or port needs an enum or a pattern, "
                              "so that no connection can point it elsewhere");
    }
    why = value == NULL ? NULL : judge_value(variable, value, check->round);
    return why == NULL ? PD_OK : pd_check_fault(check, at, NULL, "its default %s", why);
}

/* Each variable is declared, and each declared one is used. */
static pd_status_t check_variables(const pd_check_t *check, const json_t *doc,
                                   const apr_array_header_t *pieces)
{
    json_t *variables = json_object_get(doc, "variables");
    apr_hash_t *used = apr_hash_make(check->pool);
    const char *name;
    json_t *variable;
    int i;

    for (i = 0; i < pieces->nelts; i++) {
        const piece_t *piece = &((const piece_t *)(const void *)pieces->elts)[i];

        if (!piece->is_variable) {
            continue;
        }
        if (json_object_get(variables, piece->text) == NULL) {
            return pd_check_fault(check, "/base_url", NULL,
                                  "{%s} is not declared; add it to \"variables\"",
                                  pd_check_quote(check, piece->text));
        }
        if (apr_hash_get(used, piece->text, APR_HASH_KEY_STRING) == NULL || piece->is_authority) {
            apr_hash_set(used, piece->text, APR_HASH_KEY_STRING, piece);
        }
    }
    json_object_foreach(variables, name, variable)
    {
        const piece_t *piece = apr_hash_get(used, name, APR_HASH_KEY_STRING);
        pd_status_t status;

        status = check_variable(check, name, variable, piece != NULL && piece->is_authority);
        if (status != PD_OK) {
            return status;
        }
        if (piece == NULL) {
            return pd_check_fault(check, apr_psprintf(check->round, "/variables/%s", name), NULL,
                                  "base_url does not use it; remove it");
        }
    }
    return PD_OK;
}

static int all_have_defaults(const json_t *doc)
{
    json_t *variables = json_object_get(doc, "variables");
    const char *name;
    json_t *variable;

    json_object_foreach(variables, name, variable)
    {
        if (json_object_get(variable, "default") == NULL) {
            return 0;
        }
    }
    return 1;
}

pd_status_t pd_check_base(const pd_check_t *check, const json_t *doc)
{
    apr_array_header_t *pieces;
    const char *scheme;
    const char *base;
    const char *why = cut(mcp_json_str(doc, "base_url"), check->pool, &scheme, &pieces);
    pd_status_t status;
    int i;

    for (i = 0; why == NULL && i < pieces->nelts; i++) {
        const piece_t *piece = &((const piece_t *)(const void *)pieces->elts)[i];

        why = piece->is_variable ? NULL : judge_literal(piece);
    }
    if (why != NULL) {
        return pd_check_fault(check, "/base_url", NULL, "%s", why);
    }
    status = check_variables(check, doc, pieces);
    if (status == PD_OK && all_have_defaults(doc)) {
        status = pd_catalog_base_url(doc, NULL, check->pool, &base, check->fault);
    }
    return status;
}

/* --- a connection --------------------------------------------------------------- */

/* Whether a value may stand in host or port; the whole authority is judged afterwards. */
static const char *judge_authority_value(const char *value)
{
    for (; *value != '\0'; value++) {
        if (!is_host_char(*value)) {
            return "has a character that no host or port has";
        }
    }
    return NULL;
}

static const char *judge_path_value(const char *value)
{
    for (; *value != '\0'; value++) {
        if ((unsigned char)*value < 0x20 || *value == 0x7f || *value == '\\' || *value == '%') {
            return "has a control character, backslash or percent sign";
        }
    }
    return NULL;
}

/* Appends a path value: slashes stay, what can't stand in a segment is encoded. */
static void append_path(char *to, size_t *used, const char *value)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;

        if (*value == '/' || pd_check_is_pchar(*value)) {
            to[(*used)++] = *value;
        } else {
            to[(*used)++] = '%';
            to[(*used)++] = digits[c >> 4];
            to[(*used)++] = digits[c & 15];
        }
    }
}

static int is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits >= 1 && digits <= 5 && text[digits] == '\0' && text[0] != '0' &&
           (digits < 5 || strcmp(text, "65535") <= 0);
}

static int is_host(const char *host, size_t bytes)
{
    size_t i;

    if (bytes > 2 && host[0] == '[') {
        size_t inner = strspn(host + 1, "0123456789abcdef:.");

        return inner == bytes - 2 && host[bytes - 1] == ']' && memchr(host, ':', bytes) != NULL;
    }
    if (bytes == 0 || bytes > 253 || host[0] == '.' || host[bytes - 1] == '.') {
        return 0;
    }
    for (i = 0; i < bytes; i++) {
        if (!pd_check_is_alnum(host[i]) && host[i] != '-' && host[i] != '_' &&
            (host[i] != '.' || host[i - 1] == '.')) {
            return 0;
        }
    }
    return 1;
}

/* Lower case, judged, without a default port; in place. 1 if it is host[:port]. */
static int tidy_authority(char *authority, const char *scheme)
{
    const char *standard = strcmp(scheme, "https") == 0 ? ":443" : ":80";
    char *bracket;
    char *colon;
    char *c;

    for (c = authority; *c != '\0'; c++) {
        if (*c >= 'A' && *c <= 'Z') {
            *c = (char)(*c - 'A' + 'a');
        }
    }
    bracket = strrchr(authority, ']');
    colon = strchr(bracket == NULL ? authority : bracket, ':');
    if (!is_host(authority, colon == NULL ? strlen(authority) : (size_t)(colon - authority)) ||
        (colon != NULL && !is_port(colon + 1))) {
        return 0;
    }
    if (colon != NULL && strcmp(colon, standard) == 0) {
        *colon = '\0';
    }
    return 1;
}

/* Doubled slashes of empty values and the one at the end go; 0 when a dot segment remains. */
static int tidy_path(char *path)
{
    const char *from;
    char *to = path;
    const char *segment;

    for (from = path; *from != '\0'; from++) {
        if (*from != '/' || from[1] != '/') {
            *to++ = *from;
        }
    }
    if (to > path && to[-1] == '/') {
        to--;
    }
    *to = '\0';
    for (segment = path; *segment == '/';) {
        size_t bytes = strcspn(segment + 1, "/");

        if (bytes <= 2 && bytes > 0 && strncmp(segment + 1, "..", bytes) == 0) {
            return 0;
        }
        segment += 1 + bytes;
    }
    return 1;
}

typedef struct expansion {
    const json_t *doc;
    const json_t *variables;
    apr_pool_t *pool;
    pd_fault_t *fault;
} expansion_t;

static pd_status_t refuse_value(const expansion_t *x, const char *name, const char *why)
{
    char quoted[QUOTE_BYTES];

    return pd_fault(x->fault, MCP_CODE_INVALID_REQUEST, NULL, "/variables/%s: the value %s",
                    pd_log_quote(name, quoted, sizeof(quoted)), why);
}

/* Value of one variable, judged. */
static pd_status_t value_of(const expansion_t *x, const piece_t *piece, const char **ret)
{
    const json_t *variable = json_object_get(json_object_get(x->doc, "variables"), piece->text);
    const json_t *given = json_object_get(x->variables, piece->text);
    const char *value =
        given != NULL ? json_string_value(given) : mcp_json_str(variable, "default");
    const char *why;

    if (given != NULL && (value == NULL || strlen(value) != json_string_length(given))) {
        return refuse_value(x, piece->text, "must be a string");
    }
    if (value == NULL) {
        return refuse_value(x, piece->text, "is missing; it has no default");
    }
    why = judge_value(variable, value, x->pool);
    if (why == NULL) {
        why = piece->is_authority ? judge_authority_value(value) : judge_path_value(value);
    }
    if (why != NULL) {
        return refuse_value(x, piece->text, why);
    }
    *ret = value;
    return PD_OK;
}

static pd_status_t refuse_unknown_variables(const expansion_t *x)
{
    const json_t *declared = json_object_get(x->doc, "variables");
    json_t *given;
    const char *name;
    json_t *value;

    if (x->variables == NULL) {
        return PD_OK;
    }
    if (!json_is_object(x->variables)) {
        return pd_fault(x->fault, MCP_CODE_INVALID_REQUEST, NULL, "/variables: must be an object");
    }
    given = json_deep_copy(x->variables); /* jansson iterates no const object */
    json_object_foreach(given, name, value)
    {
        if (json_object_get(declared, name) == NULL) {
            pd_status_t status =
                refuse_value(x, name, "is for a variable that base_url does not have; remove it");

            json_decref(given);
            return status;
        }
    }
    json_decref(given);
    return PD_OK;
}

/* Appends the pieces of one part to buf. */
static pd_status_t append_part(const expansion_t *x, const apr_array_header_t *pieces,
                               int is_authority, char *buf, size_t size)
{
    size_t used = 0;
    int i;

    for (i = 0; i < pieces->nelts; i++) {
        const piece_t *piece = &((const piece_t *)(const void *)pieces->elts)[i];
        const char *text = piece->text;

        if (piece->is_authority != is_authority) {
            continue;
        }
        if (piece->is_variable) {
            pd_status_t status = value_of(x, piece, &text);

            if (status != PD_OK) {
                return status;
            }
        }
        if (3 * strlen(text) >= size - used) { /* 3: each byte may be encoded */
            return pd_fault(x->fault, MCP_CODE_INVALID_REQUEST, NULL,
                            "/base_url: longer than %d bytes with these values", MAX_BASE_BYTES);
        }
        if (piece->is_variable && !is_authority) {
            append_path(buf, &used, text);
        } else {
            memcpy(buf + used, text, strlen(text));
            used += strlen(text);
        }
    }
    buf[used] = '\0';
    return PD_OK;
}

pd_status_t pd_catalog_base_url(const json_t *doc, const json_t *variables, apr_pool_t *pool,
                                const char **ret, pd_fault_t *fault)
{
    const expansion_t x = {.doc = doc, .variables = variables, .pool = pool, .fault = fault};
    const size_t size = 4 * MAX_BASE_BYTES; /* room before the slashes are tidied */
    char *authority = apr_palloc(pool, size);
    char *path = apr_palloc(pool, size);
    apr_array_header_t *pieces;
    const char *scheme;
    const char *base_url = mcp_json_str(doc, "base_url");
    pd_status_t status = refuse_unknown_variables(&x);

    if (status != PD_OK) {
        return status;
    }
    if (base_url == NULL || cut(base_url, pool, &scheme, &pieces) != NULL) {
        return PD_E_INVALID; /* not a normalised document */
    }
    status = append_part(&x, pieces, 1, authority, size);
    if (status == PD_OK) {
        status = append_part(&x, pieces, 0, path, size);
    }
    if (status != PD_OK) {
        return status;
    }
    if (!tidy_authority(authority, scheme)) {
        return pd_fault(
            fault, MCP_CODE_INVALID_REQUEST, NULL,
            "/base_url: what stands between \"//\" and the next \"/\" must be host or host:port");
    }
    if (!tidy_path(path)) {
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, NULL,
                        "/base_url: must have no segment \".\" or \"..\"");
    }
    if (strlen(scheme) + 3 + strlen(authority) + strlen(path) > MAX_BASE_BYTES) {
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, NULL,
                        "/base_url: longer than %d bytes with these values", MAX_BASE_BYTES);
    }
    *ret = apr_pstrcat(pool, scheme, "://", authority, path, NULL);
    return PD_OK;
}

const char *pd_catalog_origin(const char *base_url, apr_pool_t *pool)
{
    const char *rest;

    if (scheme_of(base_url, &rest) == NULL || rest[0] == '\0' || rest[0] == '/') {
        return NULL;
    }
    return apr_pstrmemdup(pool, base_url, (apr_size_t)(rest - base_url) + strcspn(rest, "/"));
}
