/* Making of the control chunk, and selecting from it: see pd_control.h. */
#include "pd_control.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "../proto/mcp_kind_text.h"
#include "pd_ops.h"

#define MAX_TOOLS (PD_CONTROL_BITS * 8)
#define CREDENTIAL "credential"
#define MAX_SCHEMA_DEPTH 12 /* of the registry's own */

typedef struct control_tool {
    const pd_op_t *op;
    const char *name;
    json_t *def;   /* without `name` */
    json_t *brief; /* the same in short */
} control_tool_t;

/* Made by pd_control_make before threads, read only afterwards. */
static struct {
    control_tool_t tools[MAX_TOOLS];
    int count;
    const char *bytes;
    size_t byte_count;
    char digest[MCP_DIGEST_HEX + 1];
} control;

static apr_status_t forget(void *unused)
{
    int i;

    (void)unused;
    for (i = 0; i < control.count; i++) {
        json_decref(control.tools[i].def);
        json_decref(control.tools[i].brief);
    }
    memset(&control, 0, sizeof(control));
    return APR_SUCCESS;
}

/* --- definitions ----------------------------------------------------------------- */

/* The hints that follow from a row: what it does is in its class, and a method that is safe to repeat is so here too. */
static json_t *annotations(const pd_op_t *op)
{
    int is_read = op->klass == MCP_CLASS_READ;
    int is_idempotent =
        is_read || strcmp(op->rest_method, "PUT") == 0 || strcmp(op->rest_method, "DELETE") == 0;

    return json_pack("{s:b,s:b,s:b,s:b}", "readOnlyHint", is_read, "destructiveHint",
                     op->klass == MCP_CLASS_DESTRUCTIVE, "idempotentHint", is_idempotent,
                     "openWorldHint", 0);
}

/* Takes a property out of an object schema, and its name out of `required`. */
static void take_out(json_t *schema, const char *name)
{
    json_t *required = json_object_get(schema, "required");
    size_t i = json_array_size(required);

    (void)json_object_del(json_object_get(schema, "properties"), name); /* absent is fine */
    while (i-- > 0) {
        const char *each = json_string_value(json_array_get(required, i));

        if (each != NULL && strcmp(each, name) == 0) {
            (void)json_array_remove(required, i); /* i is inside */
        }
    }
}

/* Words of a schema that a model need not read: bounds that no honest value comes near, and that other keys are refused. What they
 * forbid is refused all the same, by the schema as it stands in the registry and with a message that names the rule. */
static int is_verbose(const char *word, const json_t *value)
{
    static const char *const words[] = {"minLength", "maxLength", "minimum", "minItems", "maxItems",
                                        "uniqueItems", "minProperties", "maxProperties"};
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], word) == 0) {
            return 1;
        }
    }
    return (strcmp(word, "additionalProperties") == 0 && json_is_false(value)) ||
           (strcmp(word, "required") == 0 && json_array_size(value) == 0);
}

/* Makes a schema of the registry terse, down to `depth`: without such words, and without the keys that only an answer has. */
static void make_terse(json_t *schema, int depth)
{
    json_t *properties = json_object_get(schema, "properties");
    const char *word;
    json_t *value;
    void *next;

    json_object_foreach_safe(schema, next, word, value)
    {
        if (is_verbose(word, value)) {
            (void)json_object_del(schema, word); /* it is there */
        } else if (depth > 0 && json_is_object(value) && value != properties) {
            make_terse(value, depth - 1);
        }
    }
    json_object_foreach_safe(properties, next, word, value)
    {
        if (mcp_json_bool(value, "readOnly")) {
            (void)json_object_del(properties, word); /* it is there */
        } else if (depth > 0) {
            make_terse(value, depth - 1);
        }
    }
}

/* A schema as a model reads it: looser than what is validated, never stricter. */
static json_t *input_schema(const pd_op_t *op, const json_t *described)
{
    /* the same in every list, and an answer that goes on says so */
    static const struct {
        const char *name, *word;
    } paging[] = {{"limit", "default"}, {"limit", "maximum"}, {"cursor", "description"}};
    json_t *schema = json_deep_copy(json_object_get(described, "schema"));
    size_t i;

    if (op->secret == PD_SECRET_WITH_CREDENTIAL) {
        take_out(schema, CREDENTIAL);
    }
    make_terse(schema, MAX_SCHEMA_DEPTH);
    for (i = 0; i < sizeof(paging) / sizeof(paging[0]); i++) {
        json_t *property = json_object_get(json_object_get(schema, "properties"), paging[i].name);

        (void)json_object_del(property, paging[i].word); /* absent is fine */
    }
    return schema;
}

/* Without a title: it would say the name once more. */
static json_t *definition(const pd_op_t *op, const json_t *described)
{
    return json_pack("{s:s,s:o,s:o}", "description", op->description, "inputSchema",
                     input_schema(op, described), "annotations", annotations(op));
}

/* The first clause of a description, as a sentence: what the operation is for. */
static json_t *first_clause(const char *description)
{
    size_t bytes = strlen(description);
    const char *semicolon = strchr(description, ';');
    const char *stop = strstr(description, ". ");

    if (semicolon != NULL) {
        bytes = (size_t)(semicolon - description);
    }
    if (stop != NULL && (size_t)(stop - description) < bytes) {
        bytes = (size_t)(stop - description);
    }
    if (bytes > 0 && description[bytes - 1] == '.') {
        bytes--;
    }
    return json_sprintf("%.*s.", (int)bytes, description); /* a literal of the registry: short */
}

static int is_required(const json_t *schema, const char *name)
{
    const json_t *each;
    size_t i;

    json_array_foreach(json_object_get(schema, "required"), i, each)
    {
        if (strcmp(json_string_value(each), name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* What a list shows in which other tools have collapsed: what it is for, and what a call can't be without. The rest is asked for. */
static json_t *in_short(const pd_op_t *op, const json_t *def)
{
    json_t *brief = json_deep_copy(def);
    json_t *schema = json_object_get(brief, "inputSchema");
    json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *property;
    void *next;

    json_object_foreach_safe(properties, next, name, property)
    {
        (void)json_object_del(is_required(schema, name) ? property : properties,
                              is_required(schema, name) ? "description" : name); /* absent is fine */
    }
    if (json_object_set_new(brief, "description", first_clause(op->description)) != 0) {
        json_decref(brief);
        return NULL;
    }
    return brief;
}

/* --- the chunk --------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const control_tool_t *)a)->name, ((const control_tool_t *)b)->name);
}

/* One row of the registry's description. */
static pd_status_t add_row(const json_t *described, apr_pool_t *pool)
{
    const char *name = mcp_json_str(described, "name");
    const pd_op_t *op = pd_ops_find(name);
    control_tool_t *tool = &control.tools[control.count];

    if (op == NULL) {
        return PD_E_INTERNAL;
    }
    if (op->secret == PD_SECRET_ALWAYS) {
        return PD_OK;
    }
    if (control.count >= MAX_TOOLS) {
        return PD_E_FULL;
    }
    tool->op = op;
    tool->name = apr_pstrdup(pool, name);
    tool->def = definition(op, described);
    tool->brief = tool->def != NULL ? in_short(op, tool->def) : NULL;
    control.count++; /* forget() lets go of what there is */
    if (tool->brief == NULL) {
        return PD_E_NOMEM;
    }
    return PD_OK;
}

static pd_status_t add_rows(apr_pool_t *pool)
{
    json_t *rows = pd_ops_describe();
    pd_status_t status = rows != NULL ? PD_OK : PD_E_NOMEM;
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        status = add_row(row, pool);
        if (status != PD_OK) {
            break;
        }
    }
    json_decref(rows);
    return status;
}

static pd_status_t serialise(apr_pool_t *pool)
{
    json_t *tools = json_array();
    json_t *chunk;
    char *text;
    int failed = 0;
    int i;

    for (i = 0; i < control.count; i++) {
        const control_tool_t *tool = &control.tools[i];

        failed |= json_array_append_new(
            tools, json_pack("{s:s,s:O,s:O,s:s,s:s}", "name", tool->name, "def", tool->def, "brief",
                             tool->brief, "class", mcp_class_text(tool->op->klass), "op", tool->name));
    }
    chunk = json_pack("{s:o}", "tools", tools);
    text = failed == 0 && chunk != NULL ? mcp_json_text(chunk, &control.byte_count) : NULL;
    json_decref(chunk);
    if (text == NULL) {
        return PD_E_NOMEM;
    }
    control.bytes = apr_pstrmemdup(pool, text, control.byte_count);
    free(text);
    mcp_digest_hex(control.bytes, control.byte_count, control.digest);
    return PD_OK;
}

pd_status_t pd_control_make(apr_pool_t *pool)
{
    pd_status_t status;

    (void)forget(NULL);
    apr_pool_cleanup_register(pool, NULL, forget, apr_pool_cleanup_null);
    status = add_rows(pool);
    if (status == PD_OK) {
        qsort(control.tools, (size_t)control.count, sizeof(control.tools[0]), by_name);
        status = serialise(pool);
    }
    if (status != PD_OK) {
        (void)forget(NULL);
    }
    return status;
}

const char *pd_control_digest(void)
{
    return control.digest;
}

const char *pd_control_bytes(size_t *count)
{
    *count = control.byte_count;
    return control.bytes;
}

int pd_control_count(void)
{
    return control.count;
}

/* --- whose ------------------------------------------------------------------------- */

static int is_his(const pd_actor_t *actor, const pd_op_t *op)
{
    unsigned needed = mcp_scope_of_class(op->klass);

    return (mcp_scope_close(actor->scopes) & needed) == needed &&
           (op->permission == NULL || pd_actor_may(actor, op->permission));
}

int pd_control_select(const pd_actor_t *actor, unsigned char *bits)
{
    int may_execute = pd_actor_may(actor, "tool:execute");
    int selected = 0;
    int i;

    memset(bits, 0, PD_CONTROL_BITS);
    for (i = 0; may_execute && i < control.count; i++) {
        if (is_his(actor, control.tools[i].op)) {
            bits[i >> 3] = (unsigned char)(bits[i >> 3] | (1u << (i & 7)));
            selected++;
        }
    }
    return selected;
}

static const control_tool_t *find_his(const pd_actor_t *actor, const char *name)
{
    const control_tool_t wanted = {NULL, name, NULL, NULL};
    const control_tool_t *tool = bsearch(&wanted, control.tools, (size_t)control.count,
                                         sizeof(control.tools[0]), by_name);

    return tool != NULL && pd_actor_may(actor, "tool:execute") && is_his(actor, tool->op) ? tool : NULL;
}

/* A copy of a definition that is there; NULL: it is not. */
static pd_status_t copy(const json_t *def, json_t **ret)
{
    json_t *copied = json_deep_copy(def);

    if (copied == NULL) {
        return def != NULL ? PD_E_NOMEM : PD_E_NOT_FOUND;
    }
    *ret = copied;
    return PD_OK;
}

pd_status_t pd_control_definition(const pd_actor_t *actor, const char *name, json_t **ret)
{
    const control_tool_t *tool = find_his(actor, name);

    return copy(tool != NULL ? tool->def : NULL, ret);
}

pd_status_t pd_control_brief(const pd_actor_t *actor, const char *name, json_t **ret)
{
    const control_tool_t *tool = find_his(actor, name);

    return copy(tool != NULL ? tool->brief : NULL, ret);
}
