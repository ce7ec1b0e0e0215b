/* The reference pages that follow from tables of the sources: operations (doc/operations.md), built-in roles (a table in
 * doc/roles.md) and settings (a table in doc/settings.md). The tests make each text anew and compare it with the page;
 * `test_reference --write` writes the pages. The source tree is $top_srcdir. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <jansson.h>

#include "../../policyd/pd_ops.h"
#include "../../policyd/pd_roles.h"
#include "../../policyd/pd_settings.h"
#include "../../proto/mcp_body.h"

#define MAX_PAGE (1024 * 1024)

static apr_pool_t *pool;

/* --- pieces ---------------------------------------------------------------------- */

/* Text for a cell of a Markdown table. */
static void put_cell(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|') {
            (void)fputc('\\', to);
        }
        (void)fputc(*text, to);
    }
}

static void put_words(FILE *to, const json_t *words)
{
    size_t i;
    const json_t *word;

    json_array_foreach(words, i, word)
    {
        (void)fprintf(to, "%s`%s`", i == 0 ? "" : ", ", json_string_value(word));
    }
}

/* Bounds of a number or of what is counted. min NULL: nobody needs to know the lower one. */
static void put_bounds(FILE *to, const json_t *schema, const char *min, const char *max)
{
    const json_t *low = min != NULL ? json_object_get(schema, min) : NULL;
    const json_t *high = json_object_get(schema, max);

    if (low != NULL && high != NULL) {
        (void)fprintf(to, ", %lld to %lld", (long long)json_integer_value(low),
                      (long long)json_integer_value(high));
    } else if (high != NULL) {
        (void)fprintf(to, ", at most %lld", (long long)json_integer_value(high));
    } else if (low != NULL) {
        (void)fprintf(to, ", from %lld", (long long)json_integer_value(low));
    }
}

static void put_type(FILE *to, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    const char *name = json_string_value(type);

    if (json_object_get(schema, "enum") != NULL) {
        (void)fputs("one of ", to);
        put_words(to, json_object_get(schema, "enum"));
    } else if (json_is_array(type)) {
        size_t i;
        const json_t *each;

        json_array_foreach(type, i, each)
        {
            (void)fprintf(to, "%s%s", i == 0 ? "" : " or ", json_string_value(each));
        }
    } else if (name != NULL && strcmp(name, "array") == 0) {
        const json_t *items = json_object_get(schema, "items");

        if (json_object_get(items, "enum") != NULL) {
            (void)fputs("array of ", to);
            put_words(to, json_object_get(items, "enum"));
        } else {
            (void)fprintf(to, "array of %ss", mcp_json_str(items, "type"));
        }
        put_bounds(to, schema, "minItems", "maxItems");
    } else if (name != NULL && strcmp(name, "string") == 0) {
        (void)fputs(name, to);
        put_bounds(to, schema, NULL, "maxLength");
    } else if (name != NULL) {
        (void)fputs(name, to);
        put_bounds(to, schema, "minimum", "maximum");
    }
}

static int is_required(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");
    const json_t *each;
    size_t i;

    json_array_foreach(required, i, each)
    {
        if (strcmp(json_string_value(each), name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* --- operations ------------------------------------------------------------------- */

static void put_arguments(FILE *to, const json_t *schema)
{
    json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *each;

    if (json_object_size(properties) == 0) {
        (void)fputs("No arguments.\n\n", to);
        return;
    }
    (void)fputs("| argument | | type | |\n| --- | --- | --- | --- |\n", to);
    json_object_foreach(properties, name, each)
    {
        const char *description = mcp_json_str(each, "description");

        (void)fprintf(to, "| `%s` | %s | ", name, is_required(schema, name) ? "required" : "");
        put_type(to, each);
        (void)fputs(" | ", to);
        put_cell(to, description != NULL ? description : "");
        (void)fputs(" |\n", to);
    }
    (void)fputc('\n', to);
}

/* A command with every argument that is needed; arguments too large for a command line come in a file. */
static void put_command(FILE *to, const json_t *row)
{
    json_t *schema = json_object_get(row, "schema");
    json_t *properties = json_object_get(schema, "properties");
    const char *resource = mcp_json_str(row, "resource");
    const char *verb = mcp_json_str(row, "verb");
    const char *name;
    json_t *each;
    int needs_file = 0;

    json_object_foreach(properties, name, each)
    {
        const char *items = mcp_json_str(json_object_get(each, "items"), "type");

        needs_file |= is_required(schema, name) && items != NULL && strcmp(items, "object") == 0;
    }
    (void)fprintf(to, "    policyctl %s %s", resource, verb);
    json_object_foreach(properties, name, each)
    {
        char upper[64];
        size_t i;

        if (!is_required(schema, name) || needs_file) {
            continue;
        }
        for (i = 0; name[i] != '\0' && i + 1 < sizeof(upper); i++) {
            upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
        }
        upper[i] = '\0';
        (void)fprintf(to, " --%s %s", name, upper);
    }
    (void)fputs(needs_file ? " --json FILE\n\n" : "\n\n", to);
}

static void put_operation(FILE *to, const json_t *row)
{
    static const struct {
        const char *secret;
        const char *text;
    } secrets[] = {{"always", "answers one, so it works at no door that a model reads"},
                   {"with_credential", "a `credential` is taken at no door that a model reads"}};
    const char *permission = mcp_json_str(row, "permission");
    const char *secret = mcp_json_str(row, "secret");
    const json_t *rest = json_object_get(row, "rest");
    size_t i;

    (void)fprintf(to, "### %s %s\n\n%s\n\n", mcp_json_str(row, "resource"), mcp_json_str(row, "verb"),
                  mcp_json_str(row, "description"));
    put_command(to, row);
    (void)fprintf(to, "- Name: `%s`\n", mcp_json_str(row, "name"));
    if (permission != NULL) {
        (void)fprintf(to, "- Permission: `%s`\n", permission);
    } else {
        (void)fputs("- Permission: none; any active member\n", to);
    }
    (void)fprintf(to, "- Class: %s\n", mcp_json_str(row, "classification"));
    (void)fprintf(to, "- REST: `%s /api/v1%s`\n", mcp_json_str(rest, "method"),
                  mcp_json_str(rest, "path"));
    (void)fprintf(to, "- Size: at most %lld bytes of arguments\n",
                  (long long)mcp_json_int(row, "max_bytes", 0));
    for (i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        if (strcmp(secret, secrets[i].secret) == 0) {
            (void)fprintf(to, "- Secret: %s\n", secrets[i].text);
        }
    }
    (void)fputc('\n', to);
    put_arguments(to, json_object_get(row, "schema"));
}

static void make_operations(FILE *to)
{
    json_t *all = pd_ops_describe();
    const char *before = "";
    const json_t *row;
    size_t i;

    (void)fputs(
        "# Operations of the control plane\n"
        "\n"
        "<!-- made of the registry in policyd/pd_ops.c by t/guards/operations.sh --write; do not edit -->\n"
        "\n"
        "Each operation is one row of one registry: a name, a JSON Schema of its arguments, a permission, a class and\n"
        "a handler. There are four doors, which take the same arguments, give the same result and leave the same audit row:\n"
        "`policyctl`; the admin socket, for whoever speaks JSON-RPC 2.0, one message a line; the REST API ([rest.md](rest.md));\n"
        "and MCP, where `members__list` is the tool `elaichi__members__list`, listed for whoever has its permission and scope. What\n"
        "answers a secret, or is given one, does not work over MCP.\n"
        "\n"
        "Arguments that the schema does not know are refused; the members of a connector file have a schema of their own,\n"
        "[connector-file.md](connector-file.md). An object that can be changed has a `revision`; with\n"
        "`if_revision` a change is made only if it is still that one. Lists answer `{\"items\",\"next_cursor\"?}`. Every\n"
        "call leaves one row in the audit trail, refused ones too. [roles.md](roles.md) says which role holds which\n"
        "permission, [errors.md](errors.md) what goes wrong.\n"
        "\n",
        to);
    json_array_foreach(all, i, row)
    {
        const char *resource = mcp_json_str(row, "resource");

        if (strcmp(before, resource) != 0) {
            (void)fprintf(to, "## %s\n\n", resource);
        }
        put_operation(to, row);
        before = resource;
    }
    json_decref(all);
}

/* --- roles ------------------------------------------------------------------------ */

static int holds(const char *role, const char *permission)
{
    const char *const *held = pd_roles_builtin(role);
    size_t i;

    for (i = 0; held[i] != NULL; i++) {
        if (strcmp(held[i], permission) == 0) {
            return 1;
        }
    }
    return 0;
}

static void make_roles(FILE *to)
{
    const char *const *all = pd_roles_builtin("Owner"); /* every permission that exists, sorted */
    size_t i;
    int role;

    (void)fputs("| permission |", to);
    for (role = 0; pd_roles_builtin_name(role) != NULL; role++) {
        (void)fprintf(to, " %s |", pd_roles_builtin_name(role));
    }
    (void)fputs("\n| --- |", to);
    for (role = 0; pd_roles_builtin_name(role) != NULL; role++) {
        (void)fputs(" :-: |", to);
    }
    (void)fputc('\n', to);
    for (i = 0; all[i] != NULL; i++) {
        (void)fprintf(to, "| `%s` |", all[i]);
        for (role = 0; pd_roles_builtin_name(role) != NULL; role++) {
            (void)fputs(holds(pd_roles_builtin_name(role), all[i]) ? " x |" : " |", to);
        }
        (void)fputc('\n', to);
    }
}

/* --- settings --------------------------------------------------------------------- */

static void make_settings(FILE *to)
{
    int i;

    (void)fputs("| setting | type | default | narrower | |\n| --- | --- | --- | --- | --- |\n", to);
    for (i = 0; pd_settings_row(i) != NULL; i++) {
        const pd_setting_t *row = pd_settings_row(i);
        json_t *value = pd_settings_default(row);
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        size_t word;

        (void)fprintf(to, "| `%s` | ", row->key);
        if (row->type == PD_SETTING_INT) {
            (void)fprintf(to, "integer, %lld to %lld", (long long)row->min, (long long)row->max);
        } else if (row->type == PD_SETTING_WORD) {
            for (word = 0; row->words[word] != NULL; word++) {
                (void)fprintf(to, "%s`%s`", word == 0 ? "" : ", ", row->words[word]);
            }
        } else {
            (void)fputs(pd_settings_type_text(row->type), to);
        }
        (void)fprintf(to, " | `%s` | %s | ", json_is_null(value) ? "unset" : text,
                      row->may_narrow ? "client, grant" : "");
        put_cell(to, row->description);
        (void)fputs(" |\n", to);
        free(text);
        json_decref(value);
    }
}

/* --- pages ------------------------------------------------------------------------- */

/* block NULL: the whole page, else what stands between <!-- block:begin --> and <!-- block:end -->. */
typedef struct page {
    const char *file;
    const char *block;
    void (*make)(FILE *to);
} page_t;

static const page_t pages[] = {{"doc/operations.md", NULL, make_operations},
                               {"doc/roles.md", "permissions", make_roles},
                               {"doc/settings.md", "settings", make_settings}};

static char *made_text(const page_t *page)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    assert_non_null(to);
    page->make(to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static const char *path_of(const page_t *page)
{
    const char *root = getenv("top_srcdir");

    return apr_pstrcat(pool, root != NULL ? root : "..", "/", page->file, NULL);
}

/* The page as it is, in malloc'd memory; NULL if it can't be read. */
static char *read_page(const page_t *page)
{
    FILE *file = fopen(path_of(page), "rb");
    char *text;
    size_t bytes;

    if (file == NULL) {
        return NULL;
    }
    text = malloc(MAX_PAGE);
    assert_non_null(text);
    bytes = fread(text, 1, MAX_PAGE - 1, file);
    text[bytes] = '\0';
    (void)fclose(file);
    return text;
}

/* Sets where the made text belongs in a page; 0 if the page has no such block. */
static int find_block(const page_t *page, const char *text, const char **ret_from, const char **ret_to)
{
    const char *begin;
    const char *end;

    *ret_from = text;
    *ret_to = text + strlen(text);
    if (page->block == NULL) {
        return 1;
    }
    begin = apr_pstrcat(pool, "<!-- ", page->block, ":begin -->\n", NULL);
    end = apr_pstrcat(pool, "<!-- ", page->block, ":end -->\n", NULL);
    *ret_from = strstr(text, begin);
    *ret_to = strstr(text, end);
    if (*ret_from == NULL || *ret_to == NULL) {
        return 0;
    }
    *ret_from += strlen(begin);
    return *ret_from <= *ret_to;
}

static void compare(const page_t *page)
{
    char *made = made_text(page);
    char *text = read_page(page);
    const char *from;
    const char *to;
    size_t same = 0;
    unsigned line = 1;

    if (text == NULL || !find_block(page, text, &from, &to)) {
        fail_msg("%s is not there, or has no block %s; top_srcdir must name the source tree", page->file,
                 page->block != NULL ? page->block : "");
        return;
    }
    while (from + same < to && made[same] == from[same]) {
        line += made[same] == '\n';
        same++;
    }
    if (made[same] != '\0' || from + same != to) {
        fail_msg("%s differs from the sources in line %u of the text that is made; run "
                 "t/guards/operations.sh --write",
                 page->file, line);
    }
    free(text);
    free(made);
}

static void write_page(const page_t *page)
{
    char *made = made_text(page);
    char *text = read_page(page);
    const char *from = "";
    const char *to = "";
    FILE *file;

    if (text == NULL ? page->block != NULL : !find_block(page, text, &from, &to)) {
        fail_msg("%s is not there, or has no block %s", page->file, page->block);
        return;
    }
    file = fopen(path_of(page), "wb");
    assert_non_null(file);
    if (text != NULL) {
        (void)fwrite(text, 1, (size_t)(from - text), file);
    }
    (void)fputs(made, file);
    (void)fputs(to, file);
    assert_int_equal(fclose(file), 0);
    free(text);
    free(made);
}

/* --- tests ------------------------------------------------------------------------- */

static void the_page_of_operations_is_what_the_registry_says(void **state)
{
    (void)state;
    compare(&pages[0]);
}

static void the_table_of_permissions_is_what_the_roles_hold(void **state)
{
    (void)state;
    compare(&pages[1]);
}

static void the_table_of_settings_is_what_the_settings_say(void **state)
{
    (void)state;
    compare(&pages[2]);
}

static void the_pages_are_written(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        write_page(&pages[i]);
    }
}

static int set_up(void **state)
{
    char why[256] = "";

    (void)state;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return -1;
    }
    if (pd_ops_init(pool, why, sizeof(why)) != PD_OK) {
        (void)fprintf(stderr, "%s\n", why);
        return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_of_operations_is_what_the_registry_says),
        cmocka_unit_test(the_table_of_permissions_is_what_the_roles_hold),
        cmocka_unit_test(the_table_of_settings_is_what_the_settings_say),
    };
    const struct CMUnitTest writing[] = {cmocka_unit_test(the_pages_are_written)};

    if (argc == 2 && strcmp(argv[1], "--write") == 0) {
        return cmocka_run_group_tests(writing, set_up, tear_down);
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
