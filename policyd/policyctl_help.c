/* Help and completion, made of the registry: see policyctl.h. */
#include "policyctl.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/mcp_body.h"
#include "policyctl_import.h"

#define WIDTH 78

void ctl_help_usage(FILE *to)
{
    (void)fputs(
        "usage: policyctl RESOURCE OPERATION [--key value ...] [--json FILE|-] [-o table|json|jsonl|csv]\n"
        "                 [--all] [--socket PATH]\n"
        "       policyctl export [-o FILE|DIR] [--sections A,B,...]\n"
        "       policyctl apply -f FILE|DIR|- [--prune] [--dry-run] [--yes]\n"
        "       policyctl help [RESOURCE [OPERATION]]\n"
        "       policyctl completion bash\n"
        "       policyctl -h | -V\n"
        "An operation of a resource that has only `get` may be left out, as in `policyctl whoami`.\n"
        "The socket is $POLICYD_SOCKET, or /run/policyd/admin.sock. See policyctl(1).\n",
        to);
}

/* Text in lines of at most WIDTH bytes, each after `indent` spaces. */
static void put_wrapped(FILE *to, const char *text, int indent)
{
    int column = 0;

    while (*text != '\0') {
        size_t word = strcspn(text, " \n");
        char buf[512];

        if (word >= sizeof buf) {
            word = sizeof buf - 1;
        }
        memcpy(buf, text, word);
        buf[word] = '\0';
        if (word > 0 && column > 0 && column + 1 + (int)word > WIDTH) {
            (void)fputc('\n', to);
            column = 0;
        }
        if (word > 0) {
            column += fprintf(to, "%*s", column == 0 ? indent : 1, "");
            ctl_print_text(to, buf);
            column += (int)word;
        }
        text += word;
        text += strspn(text, " \n");
    }
    (void)fputc('\n', to);
}

static int starts_resource(const json_t *operations, size_t i)
{
    const char *resource = mcp_json_str(json_array_get(operations, i), "resource");
    size_t j;

    for (j = 0; j < i; j++) {
        const char *other = mcp_json_str(json_array_get(operations, j), "resource");

        if (resource == NULL || (other != NULL && strcmp(resource, other) == 0)) {
            return 0;
        }
    }
    return resource != NULL;
}

static void put_verbs(FILE *to, const json_t *operations, const char *resource, const char *between)
{
    const char *gap = "";
    size_t i;
    json_t *row;

    json_array_foreach(operations, i, row)
    {
        const char *other = mcp_json_str(row, "resource");
        const char *verb = mcp_json_str(row, "verb");

        if (other != NULL && verb != NULL && strcmp(other, resource) == 0) {
            (void)fprintf(to, "%s%s", gap, verb);
            gap = between;
        }
    }
}

void ctl_help_all(FILE *to, const json_t *operations)
{
    size_t i;

    ctl_help_usage(to);
    (void)fputs("\nResources and their operations:\n", to);
    for (i = 0; i < json_array_size(operations); i++) {
        const char *resource = mcp_json_str(json_array_get(operations, i), "resource");

        if (starts_resource(operations, i)) {
            (void)fprintf(to, "  %-14s ", resource);
            put_verbs(to, operations, resource, ", ");
            (void)fputc('\n', to);
        }
    }
    (void)fputs("\nexport and apply read and write the policy as files: policyctl help export.\n", to);
    (void)fputs("policyctl RESOURCE says what each operation does, policyctl RESOURCE OPERATION --help how "
                "it is called.\n",
                to);
}

int ctl_help_resource(FILE *to, const json_t *operations, const char *resource)
{
    int found = 0;
    size_t i;
    json_t *row;

    json_array_foreach(operations, i, row)
    {
        const char *other = mcp_json_str(row, "resource");
        const char *verb = mcp_json_str(row, "verb");
        const char *title = mcp_json_str(row, "title");

        if (other != NULL && verb != NULL && ctl_args_same(other, resource)) {
            if (!found) {
                (void)fprintf(to, "Operations of %s:\n", other);
            }
            (void)fprintf(to, "  %-14s %s\n", verb, title == NULL ? "" : title);
            found = 1;
        }
    }
    if (found) {
        (void)fprintf(to, "policyctl %s OPERATION --help says how one is called.\n", resource);
    }
    return found;
}

static void put_flag_name(FILE *to, const char *name)
{
    for (; *name != '\0'; name++) {
        (void)fputc(*name == '_' ? '-' : *name, to);
    }
}

/* What a value looks like: its choices where it has some, else its type. */
static void put_type(FILE *to, const json_t *property, const json_t *root)
{
    const json_t *choices = json_object_get(property, "enum");
    size_t i;

    for (i = 0; i < json_array_size(choices); i++) {
        const char *text = json_string_value(json_array_get(choices, i));

        (void)fprintf(to, "%s%s", i == 0 ? "" : "|", text == NULL ? "?" : text);
    }
    if (i == 0) {
        (void)fputs(ctl_args_type(property, root), to);
    }
}

/* The keys of an object, or of a list's elements; not those that only an answer has. */
static void put_keys(FILE *to, const json_t *property, const json_t *root)
{
    const json_t *object = ctl_schema_keys(property, root);
    const char *name;
    json_t *key;

    json_object_foreach(json_object_get(object, "properties"), name, key)
    {
        const char *description = mcp_json_str(key, "description");

        if (mcp_json_bool(key, "readOnly")) {
            continue;
        }
        (void)fprintf(to, "      %s=", name);
        put_type(to, key, root);
        (void)fprintf(to, "%s", ctl_schema_requires(object, name) ? "  (required)" : "");
        if (description != NULL) {
            (void)fputs("  ", to);
            ctl_print_text(to, description);
        }
        (void)fputc('\n', to);
    }
}

static void put_default(FILE *to, const json_t *property)
{
    json_t *otherwise = json_object_get(property, "default");

    if (otherwise != NULL) {
        char *text = mcp_json_text(otherwise, NULL);

        (void)fprintf(to, "      default %s\n", text == NULL ? "?" : text);
        free(text);
    }
}

typedef enum form { FORM_FLAG, FORM_WORD, FORM_FILE } form_t;

static void put_flag(FILE *to, const char *name, const json_t *property, const json_t *schema,
                     form_t form)
{
    static const char *const also[] = {[FORM_FLAG] = "",
                                       [FORM_WORD] = "  (or the word alone)",
                                       [FORM_FILE] = "  (or a file's name alone)"};
    const char *description = mcp_json_str(property, "description");

    (void)fputs("  --", to);
    put_flag_name(to, name);
    (void)fputc(' ', to);
    if (form == FORM_FILE) {
        (void)fputs("JSON", to);
    } else {
        put_type(to, property, schema);
    }
    (void)fprintf(to, "%s%s\n", ctl_schema_requires(schema, name) ? "  (required)" : "", also[form]);
    if (description != NULL) {
        put_wrapped(to, description, 6);
    }
    if (form != FORM_FILE) {
        put_keys(to, property, schema);
    }
    if (form == FORM_FLAG && ctl_schema_types(property, schema) == CTL_TYPE_OBJECT &&
        json_is_object(json_object_get(property, "additionalProperties"))) {
        (void)fputs("      or --", to);
        put_flag_name(to, name);
        (void)fputs(".KEY VALUE, once for each\n", to);
    }
    put_default(to, property);
}

static void put_flags(FILE *to, const json_t *schema)
{
    json_t *properties = json_object_get(schema, "properties");
    int is_file = 0;
    const char *positional = ctl_args_positional(schema, &is_file);
    const char *name;
    json_t *property;

    if (json_object_size(properties) == 0) {
        (void)fputs("\nIt takes no arguments.\n", to);
        return;
    }
    (void)fputs("\nArguments, also as the members of one object, --json FILE|-:\n", to);
    json_object_foreach(properties, name, property)
    {
        form_t word = is_file ? FORM_FILE : FORM_WORD;

        put_flag(to, name, property, schema,
                 positional != NULL && strcmp(positional, name) == 0 ? word : FORM_FLAG);
    }
}

static int is_footprint(const json_t *operation)
{
    const char *name = mcp_json_str(operation, "name");

    return name != NULL && strcmp(name, CTL_FOOTPRINT) == 0;
}

void ctl_help_operation(FILE *to, const json_t *operation)
{
    const char *resource = mcp_json_str(operation, "resource");
    const char *verb = mcp_json_str(operation, "verb");
    const char *title = mcp_json_str(operation, "title");
    const char *description = mcp_json_str(operation, "description");
    const char *permission = mcp_json_str(operation, "permission");
    const char *klass = mcp_json_str(operation, "classification");
    const char *secret = mcp_json_str(operation, "secret");
    const json_t *rest = json_object_get(operation, "rest");

    (void)fprintf(to, "policyctl %s %s - %s\n\n", resource, verb, title == NULL ? "" : title);
    if (description != NULL) {
        put_wrapped(to, description, 0);
    }
    put_flags(to, json_object_get(operation, "schema"));
    if (is_footprint(operation)) {
        (void)fputs("\nOf policyctl itself:\n  --svg FILE|-  draws the answer as a bar chart, an SVG document\n", to);
    }
    (void)fputc('\n', to);
    if (mcp_json_str(rest, "method") != NULL && mcp_json_str(rest, "path") != NULL) {
        (void)fprintf(to, "REST:       %s /api/v1%s\n", mcp_json_str(rest, "method"),
                      mcp_json_str(rest, "path"));
    }
    (void)fprintf(to, "Permission: %s\n", permission == NULL ? "none; any active member" : permission);
    if (klass != NULL) {
        (void)fprintf(to, "Class:      %s\n", klass);
    }
    if (secret != NULL && strcmp(secret, "no") != 0) {
        (void)fputs("Secret:     it takes or answers a secret, and does not work over MCP\n", to);
    }
}

/* --- completion ------------------------------------------------------------ */

void ctl_help_bash(FILE *to)
{
    (void)fputs("# bash completion for policyctl: source it, or put it into bash_completion.d\n"
                "_policyctl()\n"
                "{\n"
                "    local IFS=$'\\n'\n"
                "    COMPREPLY=($(compgen -W \"$(policyctl completion words -- \\\n"
                "        \"${COMP_WORDS[@]:1:COMP_CWORD-1}\" 2>/dev/null)\" -- \\\n"
                "        \"${COMP_WORDS[COMP_CWORD]}\"))\n"
                "}\n"
                "complete -o default -F _policyctl policyctl\n",
                to);
}

static void put_flag_words(FILE *to, const json_t *operation)
{
    json_t *properties = json_object_get(json_object_get(operation, "schema"), "properties");
    const char *name;
    json_t *property;

    json_object_foreach(properties, name, property)
    {
        (void)fputs("--", to);
        put_flag_name(to, name);
        (void)fputc('\n', to);
    }
    (void)fputs(is_footprint(operation) ? "--svg\n" : "", to);
    (void)fputs("--json\n-o\n--all\n--socket\n--help\n", to);
}

void ctl_help_words(FILE *to, const json_t *operations, int count, char *const *words)
{
    const json_t *operation;
    size_t i;

    if (count == 0) {
        for (i = 0; i < json_array_size(operations); i++) {
            if (starts_resource(operations, i)) {
                (void)fprintf(to, "%s\n", mcp_json_str(json_array_get(operations, i), "resource"));
            }
        }
        (void)fputs("export\napply\nhelp\ncompletion\n", to);
        return;
    }
    if (ctl_policy_is_command(words[0])) {
        ctl_policy_words(to, words[0]);
        return;
    }
    if (count == 1) {
        put_verbs(to, operations, words[0], "\n");
        (void)fputs(ctl_args_same(words[0], "connectors") ? "\nconvert\nadd\ncatalog\n" : "\n", to);
        return;
    }
    if (ctl_import_is_command(words[0], words[1])) {
        ctl_import_words(to, words[1]);
        if (ctl_find(operations, words[0], words[1]) == NULL) {
            return;
        }
    }
    operation = ctl_find(operations, words[0], words[1]);
    if (operation == NULL) {
        operation = ctl_find(operations, words[0], NULL);
    }
    if (operation != NULL) {
        put_flag_words(to, operation);
    }
}
