/* Auth schemes of connectors: what a file may say, what a credential must hold, and what a plan
 * carries of it. See pd_catalog.h. No message ever holds a credential's value. */
#include "pd_catalog.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "pd_catalog_private.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_SECRET                                                                                 \
    8192 /* bytes of a token or password: bearer tokens of some providers reach 4 KiB */
#define MAX_USER 256

/* --- the scheme of a file ---------------------------------------------------- */

/* Members that only one type has. */
static const struct {
    const char *member;
    const char *type;
} members[] = {{"in", "api_key"}, {"name", "api_key"}, {"prefix", "bearer"}};

pd_status_t pd_check_auth(const pd_check_t *check, const json_t *doc)
{
    const json_t *auth = json_object_get(doc, "auth");
    const char *type = mcp_json_str(auth, "type");
    const char *name = mcp_json_str(auth, "name");
    size_t i;

    for (i = 0; i < COUNT(members); i++) {
        if (json_object_get(auth, members[i].member) != NULL &&
            strcmp(type, members[i].type) != 0) {
            return pd_check_fault(check, "/auth", NULL, "\"%s\" belongs to type %s; remove it",
                                  members[i].member, members[i].type);
        }
    }
    if (strcmp(type, "api_key") != 0 || strcmp(mcp_json_str(auth, "in"), "header") != 0) {
        return PD_OK;
    }
    if (!pd_check_is_token(name)) {
        return pd_check_fault(check, "/auth/name", NULL, "\"%s\" is no name of a header",
                              pd_check_quote(check, name));
    }
    if (strcasecmp(name, "Authorization") != 0 && pd_check_is_reserved_header(name)) {
        return pd_check_fault(
            check, "/auth/name", NULL,
            "a credential can't be sent in the header %s; it belongs to the transport",
            pd_check_quote(check, name));
    }
    return PD_OK;
}

/* --- credentials -------------------------------------------------------------- */

static int is_visible(const char *text) /* no space, no control, ASCII */
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~') {
            return 0;
        }
    }
    return 1;
}

static int is_header_value(const char *text) /* RFC 9110 5.5, without tab and obs-text */
{
    size_t length = strlen(text);
    size_t i;

    for (i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            return 0;
        }
    }
    return length == 0 || (text[0] != ' ' && text[length - 1] != ' ');
}

static int is_without_control(const char *text)
{
    return !pd_check_has_control(text);
}

static int is_user(const char *text) /* RFC 7617: the first colon ends it */
{
    return !pd_check_has_control(text) && strchr(text, ':') == NULL;
}

typedef struct secret_field {
    const char *type; /* of the scheme */
    const char *in;   /* api_key only, else NULL */
    const char *name;
    size_t max;
    int may_be_empty;
    int (*is_sound)(const char *text);
    const char *rule;
} secret_field_t;

static const secret_field_t fields[] = {
    {"api_key", "header", "value", MAX_SECRET, 0, is_header_value,
     "printable ASCII without spaces at its ends"},
    {"api_key", "query", "value", MAX_SECRET, 0, is_without_control,
     "text without control characters"},
    {"basic", NULL, "username", MAX_USER, 0, is_user, "text without ':' and control characters"},
    {"basic", NULL, "password", MAX_SECRET, 1, is_without_control,
     "text without control characters"},
    {"bearer", NULL, "token", MAX_SECRET, 0, is_visible, "printable ASCII without spaces"}};

static int field_applies(const secret_field_t *field, const json_t *auth)
{
    const char *in = mcp_json_str(auth, "in");

    return strcmp(field->type, mcp_json_str(auth, "type")) == 0 &&
           (field->in == NULL || (in != NULL && strcmp(field->in, in) == 0));
}

static const char *scheme_form(const char *type)
{
    static const struct {
        const char *type;
        const char *form;
    } forms[] = {{"none", "This connector needs no credential; leave it out."},
                 {"api_key", "Its form is {\"value\": KEY}."},
                 {"basic", "Its form is {\"username\": NAME, \"password\": PASSWORD}."},
                 {"bearer", "Its form is {\"token\": TOKEN}."}};
    size_t i;

    for (i = 0; i < COUNT(forms); i++) {
        if (strcmp(forms[i].type, type) == 0) {
            return forms[i].form;
        }
    }
    return NULL;
}

static pd_status_t check_field(const secret_field_t *field, const json_t *value, const char *form,
                               pd_fault_t *fault)
{
    const char *text = json_string_value(value);

    if (text == NULL) {
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, form,
                        "/credential/%s: a string is needed here", field->name);
    }
    if (json_string_length(value) != strlen(text) || json_string_length(value) > field->max ||
        (text[0] == '\0' && !field->may_be_empty)) {
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, form,
                        "/credential/%s: needs %d to %lu bytes", field->name,
                        field->may_be_empty ? 0 : 1, (unsigned long)field->max);
    }
    if (!field->is_sound(text)) {
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, form, "/credential/%s: must be %s",
                        field->name, field->rule);
    }
    return PD_OK;
}

pd_status_t pd_catalog_credential_check(const json_t *doc, const json_t *credential,
                                        pd_fault_t *fault)
{
    const json_t *auth = json_object_get(doc, "auth");
    const char *form;
    size_t known = 0;
    size_t i;

    if (mcp_json_str(auth, "type") == NULL) {
        return PD_E_INVALID;
    }
    form = scheme_form(mcp_json_str(auth, "type"));
    if (!json_is_object(credential)) {
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, form, "/credential: must be an object");
    }
    for (i = 0; i < COUNT(fields); i++) {
        if (field_applies(&fields[i], auth)) {
            pd_status_t status =
                check_field(&fields[i], json_object_get(credential, fields[i].name), form, fault);

            if (status != PD_OK) {
                return status;
            }
            known++;
        }
    }
    if (known != json_object_size(credential)) {
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, form,
                        "/credential: holds members that this scheme does not have; remove them");
    }
    return PD_OK;
}

int pd_catalog_needs_credential(const json_t *doc)
{
    const char *type = mcp_json_str(json_object_get(doc, "auth"), "type");

    return type == NULL || strcmp(type, "none") != 0;
}

/* --- what a plan carries -------------------------------------------------------- */

static pd_status_t plan_value(const char *where, const char *name, const char *value, json_t **ret)
{
    json_t *plan = json_object();

    if (json_object_set_new(plan, "type", json_string(where)) != 0 ||
        json_object_set_new(plan, "name", json_string(name)) != 0 ||
        json_object_set_new(plan, "value", json_string(value)) != 0) {
        json_decref(plan);
        return PD_E_NOMEM;
    }
    *ret = plan;
    return PD_OK;
}

static pd_status_t plan_api_key(const json_t *auth, const json_t *credential, json_t **ret)
{
    return plan_value(mcp_json_str(auth, "in"), mcp_json_str(auth, "name"),
                      mcp_json_str(credential, "value"), ret);
}

static pd_status_t plan_bearer(const json_t *auth, const json_t *credential, json_t **ret)
{
    const char *prefix = mcp_json_str(auth, "prefix");
    const char *token = mcp_json_str(credential, "token");
    size_t prefix_bytes;
    size_t bytes;
    char *value;
    pd_status_t status;

    if (prefix == NULL) {
        prefix = "Bearer";
    }
    prefix_bytes = strlen(prefix);
    bytes = prefix_bytes + 1 + strlen(token) + 1;
    value = malloc(bytes);
    if (value == NULL) {
        return PD_E_NOMEM;
    }
    memcpy(value, prefix, prefix_bytes);
    value[prefix_bytes] = ' ';
    memcpy(value + prefix_bytes + 1, token, strlen(token) + 1);
    status = plan_value("header", "Authorization", value, ret);
    mcp_wipe(value, bytes);
    free(value);
    return status;
}

static pd_status_t plan_basic(const json_t *auth, const json_t *credential, json_t **ret)
{
    static const char scheme[] = "Basic ";
    const char *user = mcp_json_str(credential, "username");
    const char *password = mcp_json_str(credential, "password");
    size_t user_bytes = strlen(user);
    size_t pair_bytes = user_bytes + 1 + strlen(password);
    size_t bytes = sizeof(scheme) + 4 * ((pair_bytes + 2) / 3);
    char *pair = malloc(pair_bytes + 1);
    char *value = malloc(bytes);
    pd_status_t status = PD_E_NOMEM;

    (void)auth; /* one form for all plan functions */
    if (pair != NULL && value != NULL) {
        memcpy(pair, user, user_bytes);
        pair[user_bytes] = ':';
        memcpy(pair + user_bytes + 1, password, strlen(password) + 1);
        memcpy(value, scheme, sizeof(scheme));
        mcp_b64(pair, pair_bytes, value + sizeof(scheme) - 1);
        status = plan_value("header", "Authorization", value, ret);
        mcp_wipe(pair, pair_bytes);
        mcp_wipe(value, bytes);
    }
    free(pair);
    free(value);
    return status;
}

static const struct {
    const char *type;
    pd_status_t (*plan)(const json_t *auth, const json_t *credential, json_t **ret);
} plans[] = {{"api_key", plan_api_key}, {"basic", plan_basic}, {"bearer", plan_bearer}};

pd_status_t pd_catalog_auth(const json_t *doc, const json_t *credential, json_t **ret)
{
    const json_t *auth = json_object_get(doc, "auth");
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    json_t *plan;
    size_t i;

    if (!pd_catalog_needs_credential(doc)) {
        plan = json_object();
        if (json_object_set_new(plan, "type", json_string("none")) != 0) {
            json_decref(plan);
            return PD_E_NOMEM;
        }
        *ret = plan;
        return PD_OK;
    }
    /* A credential sealed for an earlier form of the connector must not get through half. */
    if (credential == NULL || pd_catalog_credential_check(doc, credential, &fault) != PD_OK) {
        return PD_E_INVALID;
    }
    for (i = 0; i < COUNT(plans); i++) {
        if (strcmp(plans[i].type, mcp_json_str(auth, "type")) == 0) {
            return plans[i].plan(auth, credential, ret);
        }
    }
    return PD_E_INVALID;
}
