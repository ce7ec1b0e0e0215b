/* How a connector's requests are signed in: see oas_conv.h. A document has several schemes, a connector has one: the one that serves most
 * operations, and among equals the one that asks least of people. */
#include "oas_conv.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

typedef struct candidate {
    const char *name;
    const char *type;   /* for the report */
    json_t *auth;       /* NULL: can't be done */
    const char *note;   /* what a person has to know; NULL: nothing */
    int rank;           /* smaller is better */
    int operations;     /* that it serves alone */
} candidate_t;

/* --- schemes ---------------------------------------------------------------------------------- */

static json_t *bearer(void)
{
    return json_pack("{s:s}", "type", "bearer");
}

/* 1 for a header name that a connector may use. */
static int is_header_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!#$%&'*+^`|~") == strlen(name);
}

static int is_taken_header(const char *name)
{
    static const char *const names[] = {"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer",
                                        "Upgrade", "HTTP2-Settings", "Expect", "Cookie", "Cookie2", "X-HTTP-Method",
                                        "X-HTTP-Method-Override", "X-Method-Override"};
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(names[i], name) == 0) {
            return 1;
        }
    }
    return strncasecmp(name, "Proxy-", 6) == 0 || strncasecmp(name, "Mcp-", 4) == 0;
}

static void read_api_key(const json_t *scheme, candidate_t *c)
{
    const char *in = mcp_json_str(scheme, "in");
    const char *name = mcp_json_str(scheme, "name");

    c->type = "apiKey";
    c->rank = 2;
    if (in == NULL || name == NULL || name[0] == '\0' || strlen(name) > 128) {
        c->note = "says neither where the key goes nor under which name";
    } else if (strcasecmp(in, "header") == 0 && is_header_name(name) && !is_taken_header(name)) {
        c->auth = json_pack("{s:s,s:s,s:s}", "type", "api_key", "in", "header", "name", name);
        c->note = strcasecmp(name, "Authorization") == 0 ? "the value is sent as it is: with the word that the vendor wants before it, such as Bearer" : NULL;
    } else if (strcasecmp(in, "query") == 0) {
        c->auth = json_pack("{s:s,s:s,s:s}", "type", "api_key", "in", "query", "name", name);
        c->rank = 4;
    } else {
        c->note = strcasecmp(in, "cookie") == 0 ? "keys in cookies can't be sent yet" : "can't be sent in that place";
    }
}

static void read_http(const json_t *scheme, candidate_t *c)
{
    const char *word = mcp_json_str(scheme, "scheme");

    if (word != NULL && strcasecmp(word, "bearer") == 0) {
        c->type = "http bearer";
        c->auth = bearer();
        c->rank = 1;
    } else if (word != NULL && strcasecmp(word, "basic") == 0) {
        c->type = "http basic";
        c->auth = json_pack("{s:s}", "type", "basic");
        c->rank = 3;
    } else {
        c->type = "http";
        c->note = "is a scheme of HTTP that can't be done";
    }
}

static void read_oauth(const char *type, candidate_t *c)
{
    c->type = type;
    c->auth = bearer();
    c->rank = 5;
    c->note = "a token is given to the connection by hand";
}

static void read_scheme(const json_t *scheme, candidate_t *c)
{
    const char *type = mcp_json_str(scheme, "type");

    c->rank = 9;
    if (type == NULL) {
        c->type = "none";
        c->note = "says no type";
    } else if (strcasecmp(type, "apiKey") == 0) {
        read_api_key(scheme, c);
    } else if (strcasecmp(type, "http") == 0) {
        read_http(scheme, c);
    } else if (strcasecmp(type, "basic") == 0) {
        c->type = "basic";
        c->auth = json_pack("{s:s}", "type", "basic");
        c->rank = 3;
    } else if (strcasecmp(type, "oauth2") == 0) {
        read_oauth("oauth2", c);
    } else if (strcasecmp(type, "openIdConnect") == 0) {
        read_oauth("openIdConnect", c);
    } else {
        c->type = "other";
        c->note = "is a scheme that can't be done";
    }
}

static apr_array_header_t *read_schemes(oas_conv_t *conv)
{
    apr_array_header_t *list = apr_array_make(conv->pool, 4, sizeof(candidate_t));
    oas_at_t at = oas_doc_root(conv->doc);
    const char *name;
    json_t *value;

    at = conv->version == 20 ? oas_member(conv->doc, at, "securityDefinitions")
                             : oas_member(conv->doc, oas_member(conv->doc, at, "components"), "securitySchemes");
    json_object_foreach(oas_iterable(at.value), name, value)
    {
        oas_at_t scheme = {value, at.file};
        candidate_t *c;
        char ignored[64];

        if (oas_resolve(conv->doc, scheme, &scheme, NULL, ignored, sizeof ignored) != OAS_OK) {
            continue;
        }
        c = apr_array_push(list);
        memset(c, 0, sizeof(*c));
        c->name = name;
        read_scheme(scheme.value, c);
        (void)oas_keep(conv->pool, c->auth);
    }
    return list;
}

/* --- the choice ---------------------------------------------------------------------------------- */

static candidate_t *find(const apr_array_header_t *list, const char *name)
{
    int i;

    for (i = 0; i < list->nelts; i++) {
        candidate_t *c = &APR_ARRAY_IDX(list, i, candidate_t);

        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

/* Counts for each scheme the operations that it serves alone; *ret_open: those that need none. */
static void count(oas_conv_t *conv, const apr_array_header_t *list, int *ret_open, int *ret_joint)
{
    const json_t *global = json_object_get(oas_doc_root(conv->doc).value, "security");
    int i;

    for (i = 0; i < conv->found->nelts; i++) {
        const json_t *security =
            json_object_get(APR_ARRAY_IDX(conv->found, i, oas_found_t).operation.value, "security");
        json_t *one;
        size_t k;

        security = json_is_array(security) ? security : global;
        *ret_open += json_array_size(security) == 0;
        json_array_foreach(security, k, one)
        {
            void *at = json_object_iter(one);
            candidate_t *c = at != NULL ? find(list, json_object_iter_key(at)) : NULL;

            if (c != NULL && json_object_size(one) == 1) {
                c->operations++;
            }
            *ret_joint += json_object_size(one) > 1;
        }
    }
}

static int is_better(const candidate_t *c, const candidate_t *best)
{
    return best == NULL || c->operations > best->operations || (c->operations == best->operations && c->rank < best->rank);
}

static void add_other(oas_conv_t *conv, const candidate_t *c, const char *why)
{
    (void)json_array_append_new(conv->others, json_pack("{s:s,s:s,s:s}", "name", c->name, "type", c->type, "why", why));
}

static void take(oas_conv_t *conv, const candidate_t *c)
{
    const char *type = mcp_json_str(c->auth, "type");

    conv->scheme.name = c->name;
    conv->scheme.auth = c->auth;
    if (strcmp(type, "api_key") == 0) {
        conv->scheme.in = mcp_json_str(c->auth, "in");
        conv->scheme.key = mcp_json_str(c->auth, "name");
    }
    if (c->note != NULL) {
        oas_note(conv, conv->changed, NULL, apr_psprintf(conv->pool, "the scheme %s (%s)", c->name, c->type), c->note);
    }
}

void oas_auth_choose(oas_conv_t *conv)
{
    apr_array_header_t *list = read_schemes(conv);
    candidate_t *best = NULL;
    int open = 0;
    int joint = 0;
    int used = 0;
    int i;

    conv->scheme.auth = oas_keep(conv->pool, json_pack("{s:s}", "type", "none"));
    count(conv, list, &open, &joint);
    for (i = 0; i < list->nelts; i++) {
        candidate_t *c = &APR_ARRAY_IDX(list, i, candidate_t);

        used += c->operations;
        if (conv->options->auth != NULL ? strcmp(conv->options->auth, c->name) == 0 && c->auth != NULL
                                        : c->auth != NULL && is_better(c, best)) {
            best = c;
        }
    }
    /* schemes that are defined and asked for by nothing: documents forget `security` more often than they define what they do not use */
    if (best != NULL && conv->options->auth == NULL && best->operations == 0 && used > 0) {
        best = NULL;
    }
    if (best != NULL) {
        take(conv, best);
    }
    for (i = 0; i < list->nelts; i++) {
        const candidate_t *c = &APR_ARRAY_IDX(list, i, candidate_t);

        if (c != best) {
            add_other(conv, c, c->auth == NULL ? c->note : "another scheme serves as many operations or more");
        }
    }
    if (best != NULL && open > 0 && open < conv->found->nelts) {
        oas_note(conv, conv->changed, NULL, apr_psprintf(conv->pool, "%d operations", open), "need no credential, and get it all the same");
    }
    if (joint > 0) {
        oas_note(conv, conv->changed, NULL, apr_psprintf(conv->pool, "%d times several schemes at once", joint),
                 "a connector has one; the others can be parameters");
    }
}
