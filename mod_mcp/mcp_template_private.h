/* What the files of the template room share: one parameter with its value, the styles, the body. */
#ifndef MCP_TEMPLATE_PRIVATE_H
#define MCP_TEMPLATE_PRIVATE_H

#include <stdint.h>

#include <jansson.h>

#include "mcp_encode.h"
#include "mcp_err.h"
#include "mcp_template.h"

#define MCP_TEMPLATE_PARAMS 512          /* parameters or body fields of one operation */
#define MCP_TEMPLATE_HEADER (16u * 1024) /* bytes of one header line */
#define MCP_TEMPLATE_BODY_BYTES (16u * 1024 * 1024)

/* Where a parameter goes; a bit set for the styles' table. */
typedef enum mcp_template_in {
    MCP_TEMPLATE_PATH = 1,
    MCP_TEMPLATE_QUERY = 2,
    MCP_TEMPLATE_HEADER_LINE = 4,
    MCP_TEMPLATE_COOKIE = 8
} mcp_template_in_t;

/* A style as a row of RFC 6570 section 3.2: what stands first, between exploded items, between
 * items of a list that is not exploded, and whether items carry names. */
typedef struct mcp_template_style {
    const char *name;
    unsigned places; /* mcp_template_in_t bits */
    const char *first;
    const char *between;
    const char *list;
    int is_named;
    int is_deep;  /* deepObject */
    int explodes; /* default of `explode` */
} mcp_template_style_t;

typedef struct mcp_template_param {
    const char *arg;  /* the argument's name; the wire name for a fixed one */
    const char *name; /* on the wire */
    mcp_template_in_t in;
    const mcp_template_style_t *style;
    int explode;
    int is_required;
    int is_fixed;
    int is_multi;
    int is_url;
    const json_t *value; /* NULL: left out */
} mcp_template_param_t;

/* Everything that the parts of one expansion look at. */
typedef struct mcp_template {
    const json_t *operation;
    const json_t *args;
    const char *base; /* without a trailing slash */
    const char *method;
    apr_pool_t *pool;
    mcp_template_param_t *params;
    size_t count;
    const char *auth_type; /* "none", "header", "query" */
    const char *auth_name; /* NULL for none */
    const char *auth_value;
    const char *auth_cookie; /* name of the cookie that auth sets, or NULL */
    const char *literals;    /* query literals of the path, encoded, or NULL */
} mcp_template_t;

/* jansson's iterators want a mutable object though they change nothing. */
static inline json_t *mcp_template_iterable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

/* --- definition (mcp_template_read.c) --- */

/* Reads base, method, credential and parameters into t, which has operation, args and pool; checks
 * each value. */
apr_status_t mcp_template_read(mcp_template_t *t, const char *base, const json_t *auth,
                               mcp_err_t *err);

/* Headers that belong to the connection, the framing or the credential, never to an argument. */
int mcp_template_is_reserved(const char *name);

/* 1 if a string anywhere in value holds a control character, or just NUL. Deeper than `left` counts
 * as holding one. */
int mcp_template_holds_control(const json_t *value, int is_any, size_t left);

/* --- errors (mcp_template_value.c) --- */

apr_status_t mcp_template_broken(const mcp_template_t *t, mcp_err_t *err);
apr_status_t mcp_template_invalid(const mcp_template_t *t, mcp_err_t *err, const char *arg,
                                  const char *what);
apr_status_t mcp_template_restricted(const mcp_template_t *t, mcp_err_t *err);

/* --- values (mcp_template_value.c) --- */

/* The row of a style by name (NULL: the place's default); NULL where the place has no such style.
 */
const mcp_template_style_t *mcp_template_style(const char *name, mcp_template_in_t in);

/* 1 if the value is null, an empty list or object, or a list or object of nothing but nulls:
 * nothing to send. */
int mcp_template_is_void(const json_t *value);

/* Text of a scalar, JSON text of anything else; true, false and null by name. NULL: no memory. */
const char *mcp_template_scalar(const json_t *value, apr_pool_t *pool, size_t *ret_bytes);

/* Appends the parameter in its style. Values in a header stay as they are, all others are
 * percent-encoded; members of an object in a header, or in a path label, that would run into each
 * other there are refused. */
apr_status_t mcp_template_put(const mcp_template_t *t, const mcp_template_param_t *param,
                              mcp_encode_buf_t *buf, mcp_err_t *err);

/* name=value pairs joined by '&' for a form body or deepObject: members as name[key]. */
apr_status_t mcp_template_put_deep(const mcp_template_t *t, const char *name, const json_t *value,
                                   mcp_encode_buf_t *buf, mcp_err_t *err);

/* A path of several segments, each encoded by itself; one leading and one trailing slash are
 * tolerated (the trailing one is kept), dot segments and empty inner ones refused. */
apr_status_t mcp_template_put_segments(const mcp_template_t *t, const char *arg, const char *text,
                                       mcp_encode_buf_t *buf, mcp_err_t *err);

/* --- names that callers choose (mcp_template_names.c) --- */

/* Refuses a key of an exploded object or a deepObject that a receiver could take for another name
 * of the same location: a parameter's, the credential's, a literal's, another object's key. Where
 * the schema declares the key, only the very same name is another's. */
apr_status_t mcp_template_check_names(const mcp_template_t *t, mcp_err_t *err);

/* The same for the members of a form's body that is the argument arg: names that the schema declares
 * for it are those of others. */
apr_status_t mcp_template_check_members(const mcp_template_t *t, const char *arg,
                                        const json_t *value, mcp_err_t *err);

/* Refuses a form's field name, if a member of its value would go out as another field's name. */
apr_status_t mcp_template_check_field(const mcp_template_t *t, const char *arg, const char *name,
                                      const json_t *value, const char *other, mcp_err_t *err);

/* --- body (mcp_template_body.c) --- */

typedef struct mcp_template_body {
    const char *content_type; /* NULL: no body */
    const char *data;
    size_t bytes;
} mcp_template_body_t;

apr_status_t mcp_template_make_body(const mcp_template_t *t, mcp_template_body_t *ret,
                                    mcp_err_t *err);

#endif
