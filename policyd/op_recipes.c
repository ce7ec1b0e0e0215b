/* recipes list, get, create, update, delete, render: see op_recipes.h. */
#include "op_recipes.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "op_find.h"
#include "op_roles.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define KIND "recipe"
#define PREFIX "rcp_"
#define MAX_ARGUMENT 64
#define MAX_TEXT (64 * 1024)
#define MAX_RENDERED (1024 * 1024)

/* --- showing and finding --------------------------------------------------------- */

static json_t *show_members(const pd_object_t *object, const char *const *members, size_t count)
{
    json_t *shown = json_pack("{s:s}", "recipe", object->id);
    int failed = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        const json_t *value = json_object_get(object->doc, members[i]);

        if (value != NULL) {
            failed |= json_object_set_new(shown, members[i], json_deep_copy(value));
        }
    }
    if (shown == NULL || failed != 0 || pd_op_stamp(shown, object) != 0) {
        json_decref(shown);
        return NULL;
    }
    return shown;
}

static json_t *show_item(const pd_op_call_t *call, const pd_object_t *object)
{
    static const char *const members[] = {"name", "title", "description", "arguments", "roles"};

    (void)call;
    return show_members(object, members, COUNT(members));
}

static json_t *show_recipe(const pd_op_call_t *call, const pd_object_t *object)
{
    static const char *const members[] = {"name",      "title", "description",
                                          "arguments", "roles", "text"};

    (void)call;
    return show_members(object, members, COUNT(members));
}

static int has_role(const pd_actor_t *actor, const char *name)
{
    size_t i;

    for (i = 0; name != NULL && actor->role_names != NULL && actor->role_names[i] != NULL; i++) {
        if (strcmp(actor->role_names[i], name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether the recipe is for the actor. */
static int is_for(const pd_op_call_t *call, const pd_object_t *object)
{
    const json_t *roles = json_object_get(object->doc, "roles");
    size_t i;

    if (json_array_size(roles) == 0 || pd_actor_may(call->actor, "recipe:write")) {
        return 1;
    }
    for (i = 0; i < json_array_size(roles); i++) {
        if (has_role(call->actor, json_string_value(json_array_get(roles, i)))) {
            return 1;
        }
    }
    return 0;
}

static const char *name_key(const pd_op_call_t *call, const char *name)
{
    return apr_pstrcat(call->pool, "name:", name, (char *)NULL);
}

static pd_status_t find_recipe(pd_op_call_t *call, pd_object_t **ret)
{
    const char *named = pd_op_text(call, "recipe");
    pd_status_t status = PD_E_NOT_FOUND;

    if (strncmp(named, PREFIX, strlen(PREFIX)) == 0) {
        status = pd_tx_get(call->tx, KIND, named, ret);
    }
    if (status == PD_E_NOT_FOUND) {
        status = pd_tx_find(call->tx, KIND, name_key(call, named), ret);
    }
    if (status == PD_E_NOT_FOUND || (status == PD_OK && !is_for(call, *ret))) {
        return pd_fault(&call->fault, MCP_CODE_NOT_FOUND, "recipes list shows them.",
                        "There is no such recipe; name one by id or name.");
    }
    return status;
}

/* --- list and get ---------------------------------------------------------------- */

/* baton: the query in lower case, or NULL. */
static int is_wanted(const pd_op_call_t *call, const pd_object_t *object, const void *baton)
{
    static const char *const searched[] = {"name", "title", "description"};
    const char *query = baton;
    int matches = query == NULL;
    size_t i;

    for (i = 0; !matches && i < COUNT(searched); i++) {
        const char *text = mcp_json_str(object->doc, searched[i]);

        matches = text != NULL && strstr(pd_op_lower(call, text), query) != NULL;
    }
    return matches && is_for(call, object);
}

pd_status_t pd_op_recipes_list(pd_op_call_t *call)
{
    const char *query = pd_op_text(call, "query");
    const pd_op_list_t list = {
        KIND, PREFIX, NULL, is_wanted, query != NULL ? pd_op_lower(call, query) : NULL, show_item};

    return pd_op_list_answer(call, &list);
}

pd_status_t pd_op_recipes_get(pd_op_call_t *call)
{
    pd_object_t *recipe = NULL;
    pd_status_t status = find_recipe(call, &recipe);

    return status == PD_OK ? pd_op_answer(call, show_recipe(call, recipe)) : status;
}

/* --- placeholders ---------------------------------------------------------------- */

static int is_argument_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* The next placeholder of a text from `at` on; NULL: there is none. *ret_bytes is the length of its name, which begins two bytes later; 0:
 * what begins there is no placeholder. */
static const char *next_placeholder(const char *at, size_t *ret_bytes)
{
    const char *open = strstr(at, "{{");
    size_t bytes = 0;

    if (open == NULL) {
        return NULL;
    }
    while (bytes <= MAX_ARGUMENT && is_argument_byte(open[2 + bytes])) {
        bytes++;
    }
    *ret_bytes =
        bytes <= MAX_ARGUMENT && strncmp(open + 2 + bytes, "}}", 2) == 0 ? bytes : 0;
    return open;
}

static const json_t *find_argument(const json_t *arguments, const char *name, size_t bytes)
{
    size_t i;

    for (i = 0; i < json_array_size(arguments); i++) {
        const json_t *argument = json_array_get(arguments, i);
        const char *own = mcp_json_str(argument, "name");

        if (own != NULL && strlen(own) == bytes && strncmp(own, name, bytes) == 0) {
            return argument;
        }
    }
    return NULL;
}

/* Every placeholder names an argument, and no two arguments have one name. */
static pd_status_t check_recipe(pd_op_call_t *call, const json_t *doc)
{
    const json_t *arguments = json_object_get(doc, "arguments");
    const char *text = mcp_json_str(doc, "text");
    const char *open;
    size_t bytes = 0;
    size_t i;

    for (i = 0; i < json_array_size(arguments); i++) {
        const json_t *argument = json_array_get(arguments, i);
        const char *name = mcp_json_str(argument, "name");

        if (name == NULL || find_argument(arguments, name, strlen(name)) != argument) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, NULL,
                            "/arguments/%u/name: another argument has this name", (unsigned)i);
        }
    }
    if (text == NULL) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Give `text`, or delete it.",
                        "This recipe is damaged: it has no text.");
    }
    if (strlen(text) > MAX_TEXT) {
        return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, NULL,
                        "/text: has more than %d bytes", MAX_TEXT);
    }
    for (open = next_placeholder(text, &bytes); open != NULL;
         open = next_placeholder(open + 2 + bytes, &bytes)) {
        if (bytes == 0) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                            "Write {{name}}, with the name of an argument and no blanks.",
                            "/text: the {{ at byte %lu begins no placeholder",
                            (unsigned long)(open - text));
        }
        if (find_argument(arguments, open + 2, bytes) == NULL) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST,
                            "Add the argument to `arguments`, or take the placeholder out.",
                            "/text: the placeholder at byte %lu names no argument",
                            (unsigned long)(open - text));
        }
    }
    return PD_OK;
}

/* --- create, update, delete ------------------------------------------------------ */

static const char *const fields[] = {"name", "title", "description", "arguments", "text", "roles"};

/* Puts the arguments over a document and judges what comes of it. */
static pd_status_t merge(pd_op_call_t *call, json_t *doc)
{
    size_t i;
    pd_status_t status;

    for (i = 0; i < COUNT(fields); i++) {
        const json_t *value = json_object_get(call->args, fields[i]);

        if (json_is_array(value) && json_array_size(value) == 0) {
            (void)json_object_del(doc, fields[i]); /* absent is fine */
        } else if (value != NULL &&
                   json_object_set_new(doc, fields[i], json_deep_copy(value)) != 0) {
            return PD_E_NOMEM;
        }
    }
    status = check_recipe(call, doc);
    return status == PD_OK ? pd_op_roles_exist(call, json_object_get(call->args, "roles"))
                           : status;
}

static pd_status_t name_taken(pd_op_call_t *call)
{
    return pd_fault(&call->fault, MCP_CODE_CONFLICT, "recipes update changes it.",
                    "A recipe with this name exists.");
}

pd_status_t pd_op_recipes_create(pd_op_call_t *call)
{
    const char *id = pd_store_new_id("rcp", call->pool);
    json_t *doc = pd_op_keep(call, json_object());
    const char *keys[2] = {name_key(call, pd_op_text(call, "name")), NULL};
    pd_status_t status;

    if (id == NULL || doc == NULL) {
        return id == NULL ? PD_E_CRYPTO : PD_E_NOMEM;
    }
    status = merge(call, doc);
    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "recipe=%s", id);
    status = pd_tx_insert(call->tx, KIND, id, NULL, doc, keys);
    if (status == PD_E_CONFLICT) {
        return name_taken(call);
    }
    return status == PD_OK ? pd_op_answer_again(call, KIND, id, show_item) : status;
}

pd_status_t pd_op_recipes_update(pd_op_call_t *call)
{
    pd_object_t *old = NULL;
    json_t *doc = NULL;
    const char *keys[2] = {NULL, NULL};
    pd_status_t status = find_recipe(call, &old);

    if (status == PD_OK) {
        doc = pd_op_copy(call, old->doc);
        status = doc != NULL ? merge(call, doc) : PD_E_NOMEM;
    }
    if (status != PD_OK) {
        return status;
    }
    if (mcp_json_str(doc, "name") == NULL) {
        return pd_fault(&call->fault, MCP_CODE_CONFLICT, "Give `name`, or delete it.",
                        "This recipe is damaged: it has no name.");
    }
    keys[0] = name_key(call, mcp_json_str(doc, "name"));
    pd_op_detail(call, "recipe=%s", old->id);
    status = pd_tx_update(call->tx, KIND, old->id, NULL, doc, keys, pd_op_if_revision(call), NULL);
    if (status == PD_E_CONFLICT) {
        return name_taken(call);
    }
    return status == PD_OK ? pd_op_answer_again(call, KIND, old->id, show_item) : status;
}

pd_status_t pd_op_recipes_delete(pd_op_call_t *call)
{
    pd_object_t *recipe = NULL;
    pd_status_t status = find_recipe(call, &recipe);

    if (status != PD_OK) {
        return status;
    }
    pd_op_detail(call, "recipe=%s", recipe->id);
    status = pd_tx_delete(call->tx, KIND, recipe->id, pd_op_if_revision(call));
    return status == PD_OK
               ? pd_op_answer(call, json_pack("{s:s, s:b}", "recipe", recipe->id, "deleted", 1))
               : status;
}

/* --- render ---------------------------------------------------------------------- */

/* What is given is known, and what is required is given. */
static pd_status_t check_given(pd_op_call_t *call, const json_t *arguments, const json_t *given)
{
    const char *key;
    json_t *value;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)given, key, value)
    {
        if (find_argument(arguments, key, strlen(key)) == NULL) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "recipes get shows them.",
                            "/arguments: the recipe has no argument of a name that is given");
        }
    }
    for (i = 0; i < json_array_size(arguments); i++) {
        const json_t *argument = json_array_get(arguments, i);
        const char *name = mcp_json_str(argument, "name");

        if (name != NULL && mcp_json_bool(argument, "required") &&
            mcp_json_str(given, name) == NULL) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "recipes get shows them.",
                            "/arguments: \"%s\" is required", name);
        }
    }
    return PD_OK;
}

/* Appends; 0 where the text would grow beyond its bound. */
static int append(apr_array_header_t *into, const char *text, size_t bytes)
{
    if (bytes > (size_t)(MAX_RENDERED - into->nelts)) {
        return 0;
    }
    if (bytes > 0) {
        size_t used = (size_t)into->nelts;
        size_t room = (size_t)into->nalloc;

        while (room < used + bytes) {
            room *= 2;
        }
        if (room > (size_t)into->nalloc) {
            char *grown = apr_palloc(into->pool, room);

            memcpy(grown, into->elts, used);
            into->elts = grown;
            into->nalloc = (int)room;
        }
        memcpy(into->elts + used, text, bytes);
        into->nelts = (int)(used + bytes);
    }
    return 1;
}

/* The text with its placeholders filled in, in the call's pool. */
static pd_status_t fill_in(pd_op_call_t *call, const char *text, const json_t *given,
                           const char **ret)
{
    apr_array_header_t *made = apr_array_make(call->pool, 4096, sizeof(char));
    const char *open;
    size_t bytes = 0;
    int fits = 1;

    for (open = next_placeholder(text, &bytes); fits && open != NULL && bytes > 0;
         open = next_placeholder(text, &bytes)) {
        const char *value =
            mcp_json_str(given, apr_pstrmemdup(call->pool, open + 2, bytes));

        fits = append(made, text, (size_t)(open - text)) &&
               (value == NULL || append(made, value, strlen(value)));
        text = open + bytes + 4;
    }
    if (!fits || !append(made, text, strlen(text))) {
        return pd_fault(&call->fault, MCP_CODE_RESULT_TOO_LARGE, "Give shorter arguments.",
                        "The text would have more than %d bytes.", MAX_RENDERED);
    }
    *ret = apr_pstrmemdup(call->pool, made->elts, (apr_size_t)made->nelts);
    return PD_OK;
}

pd_status_t pd_op_recipes_render(pd_op_call_t *call)
{
    const json_t *given = json_object_get(call->args, "arguments");
    pd_object_t *recipe = NULL;
    const char *filled = NULL;
    const char *text = NULL;
    pd_status_t status = find_recipe(call, &recipe);

    if (status == PD_OK) {
        text = mcp_json_str(recipe->doc, "text");
        status = text != NULL
                     ? check_given(call, json_object_get(recipe->doc, "arguments"), given)
                     : pd_fault(&call->fault, MCP_CODE_CONFLICT, "recipes update gives it one.",
                                "This recipe is damaged: it has no text.");
    }
    if (status == PD_OK) {
        status = fill_in(call, text, given, &filled);
    }
    if (status != PD_OK) {
        return status;
    }
    return pd_op_answer(call, json_pack("{s:s, s:s*, s:s*, s:s}", "recipe", recipe->id, "name",
                                        mcp_json_str(recipe->doc, "name"), "title",
                                        mcp_json_str(recipe->doc, "title"), "text", filled));
}
