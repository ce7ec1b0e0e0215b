/* The recipes resource over the real store: what is written and refused, who sees what, and filling in. */
#include "ops_world.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const pd_actor_t *member(const char *name, const char *role)
{
    return world_member(apr_pstrcat(world.scratch, name, "@example.com", (char *)NULL), role,
                        "mcp:destructive", MCP_SURFACE_MCP);
}

/* A recipe of a role (NULL: for all) with a required and an optional argument. */
static json_t *letter(const char *name, const char *role)
{
    json_t *recipe = json_pack(
        "{s:s,s:s,s:s,s:[{s:s,s:b,s:s},{s:s}]}", "name", name, "title", "A letter", "text",
        "Dear {{to}},\nabout {{what}}. Yours, {{to}}", "arguments", "name", "to", "required", 1,
        "description", "Whom", "name", "what");

    if (role != NULL) {
        json_object_set_new(recipe, "roles", json_pack("[s]", role));
    }
    return recipe;
}

static const char *create(const char *name, const char *role)
{
    return world_take(world_do(world_root(), "recipes__create", letter(name, role)), "recipe");
}

static json_t *get(const pd_actor_t *actor, const char *named)
{
    return world_do(actor, "recipes__get", json_pack("{s:s}", "recipe", named));
}

static const char *listed(const pd_actor_t *actor, json_t *args)
{
    json_t *list = world_do(actor, "recipes__list", args);
    const char *text = "";
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        assert_null(json_object_get(item, "text"));
        text = apr_pstrcat(world.scratch, text, i == 0 ? "" : " ", mcp_json_str(item, "name"),
                           (char *)NULL);
    }
    json_decref(list);
    return text;
}

static const char *render(const pd_actor_t *actor, const char *named, json_t *arguments)
{
    return world_take(world_do(actor, "recipes__render",
                               json_pack("{s:s,s:o}", "recipe", named, "arguments", arguments)),
                      "text");
}

static const char *refusal(const pd_actor_t *actor, const char *operation, json_t *args)
{
    mcp_code_t code = world_refused(actor, operation, args);

    return apr_psprintf(world.scratch, "%s|%s|%s", mcp_code_text(code), world.message, world.hint);
}

/* --- writing ---------------------------------------------------------------------- */

static void a_recipe_is_kept_as_it_was_given(void **state)
{
    const char *id = create("letter", "Member");
    json_t *by_id = get(world_root(), id);
    json_t *by_name = get(world_root(), "letter");
    json_t *given = letter("letter", "Member");
    const char *key;
    json_t *value;

    (void)state;
    assert_true(strncmp(id, "rcp_", 4) == 0);
    assert_true(json_equal(by_id, by_name));
    json_object_foreach(given, key, value)
    {
        assert_true(json_equal(json_object_get(by_id, key), value));
    }
    assert_int_equal(mcp_json_int(by_id, "revision", 0), 1);
    json_decref(given);
    json_decref(by_name);
    json_decref(by_id);
}

static void a_name_has_a_form_and_is_taken_once(void **state)
{
    static const char *const bad[] = {"", "-a", "a-", "A", "a_b", "a b", "rcp_1", "ä"};
    char name[66];
    size_t i;

    (void)state;
    (void)create("letter", NULL);
    assert_int_equal(world_refused(world_root(), "recipes__create", letter("letter", NULL)),
                     MCP_CODE_CONFLICT);
    for (i = 0; i < COUNT(bad); i++) {
        assert_int_equal(world_refused(world_root(), "recipes__create", letter(bad[i], NULL)),
                         MCP_CODE_INVALID_REQUEST);
    }
    memset(name, 'a', sizeof(name));
    name[65] = '\0';
    assert_int_equal(world_refused(world_root(), "recipes__create", letter(name, NULL)),
                     MCP_CODE_INVALID_REQUEST);
    name[64] = '\0';
    (void)create(name, NULL);
}

static void a_placeholder_names_an_argument(void **state)
{
    static const struct {
        const char *text;
        int is_fine;
    } cases[] = {{"no placeholder", 1},
                 {"{{to}}", 1},
                 {"{{to}}{{what}}", 1},
                 {"{ {to}} }} {to} {", 1},
                 {"{{other}}", 0},
                 {"{{TO}}", 0},
                 {"{{ to }}", 0},
                 {"{{}}", 0},
                 {"{{to}", 0},
                 {"{{to", 0},
                 {"{{{to}}}", 0},
                 {"{{", 0},
                 {"{{to}} and {{#if}}", 0}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        const char *name = apr_psprintf(world.scratch, "case-%d", (int)i);
        json_t *recipe = letter(name, NULL);

        json_object_set_new(recipe, "text", json_string(cases[i].text));
        if (cases[i].is_fine) {
            world_done(world_root(), "recipes__create", recipe);
        } else {
            assert_int_equal(world_refused(world_root(), "recipes__create", recipe),
                             MCP_CODE_INVALID_REQUEST);
            assert_non_null(strstr(world.message, "/text: "));
        }
    }
}

static void two_arguments_of_one_name_are_refused(void **state)
{
    json_t *recipe = letter("letter", NULL);

    (void)state;
    json_array_append_new(json_object_get(recipe, "arguments"), json_pack("{s:s}", "name", "to"));
    assert_int_equal(world_refused(world_root(), "recipes__create", recipe), MCP_CODE_INVALID_REQUEST);
    assert_non_null(strstr(world.message, "/arguments/2/name"));
}

static void a_text_has_at_most_64_kib(void **state)
{
    static char text[64 * 1024 + 2];
    json_t *recipe = letter("letter", NULL);
    size_t i;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    json_object_set_new(recipe, "text", json_string(text));
    assert_int_equal(world_refused(world_root(), "recipes__create", recipe), MCP_CODE_INVALID_REQUEST);
    for (i = 0; i + 2 < sizeof(text); i += 2) {
        memcpy(text + i, "\xc3\xa4", 2); /* half as many characters */
    }
    text[sizeof(text) - 2] = 'x';
    recipe = letter("letter", NULL);
    json_object_set_new(recipe, "text", json_string(text));
    assert_int_equal(world_refused(world_root(), "recipes__create", recipe), MCP_CODE_INVALID_REQUEST);
    text[sizeof(text) - 2] = '\0';
    recipe = letter("letter", NULL);
    json_object_set_new(recipe, "text", json_string(text));
    world_done(world_root(), "recipes__create", recipe);
}

static void a_role_that_does_not_exist_is_refused(void **state)
{
    (void)state;
    assert_int_equal(world_refused(world_root(), "recipes__create", letter("letter", "Nobody")),
                     MCP_CODE_NOT_FOUND);
}

static void an_update_replaces_what_is_given(void **state)
{
    json_t *got;

    (void)state;
    (void)create("letter", "Member");
    world_done(world_root(), "recipes__update",
               json_pack("{s:s,s:s,s:[],s:i}", "recipe", "letter", "name", "note", "roles",
                         "if_revision", 1));
    got = get(world_root(), "note");
    assert_string_equal(mcp_json_str(got, "title"), "A letter");
    assert_null(json_object_get(got, "roles"));
    assert_int_equal(mcp_json_int(got, "revision", 0), 2);
    json_decref(got);
    assert_int_equal(
        world_refused(world_root(), "recipes__get", json_pack("{s:s}", "recipe", "letter")),
        MCP_CODE_NOT_FOUND);
    assert_int_equal(world_refused(world_root(), "recipes__update",
                                   json_pack("{s:s,s:s,s:i}", "recipe", "note", "title", "x",
                                             "if_revision", 1)),
                     MCP_CODE_REVISION_MISMATCH);
    /* without its arguments the text would have placeholders of nothing */
    assert_int_equal(world_refused(world_root(), "recipes__update",
                                   json_pack("{s:s,s:[]}", "recipe", "note", "arguments")),
                     MCP_CODE_INVALID_REQUEST);
    (void)create("letter", NULL);
    assert_int_equal(world_refused(world_root(), "recipes__update",
                                   json_pack("{s:s,s:s}", "recipe", "note", "name", "letter")),
                     MCP_CODE_CONFLICT);
}

static void a_deleted_recipe_is_gone_and_its_name_free(void **state)
{
    (void)state;
    (void)create("letter", NULL);
    world_done(world_root(), "recipes__delete", json_pack("{s:s}", "recipe", "letter"));
    assert_int_equal(
        world_refused(world_root(), "recipes__delete", json_pack("{s:s}", "recipe", "letter")),
        MCP_CODE_NOT_FOUND);
    (void)create("letter", NULL);
}

/* --- who sees what ------------------------------------------------------------------ */

static void a_recipe_of_other_roles_is_as_one_that_never_was(void **state)
{
    static const char *const operations[] = {"recipes__get", "recipes__render"};
    const pd_actor_t *plain;
    const char *id;
    size_t i;

    (void)state;
    world_done(world_root(), "roles__create",
               json_pack("{s:s,s:[s,s]}", "name", "Writer", "permissions", "tool:execute", "recipe:read"));
    id = create("inner", "Writer");
    (void)create("open", NULL);
    (void)create("mine", "Member");
    plain = member("ada", "Member");
    assert_string_equal(listed(plain, json_object()), "open mine");
    assert_string_equal(listed(plain, json_pack("{s:s}", "query", "MIN")), "mine");
    for (i = 0; i < COUNT(operations); i++) {
        const char *never = refusal(plain, operations[i], json_pack("{s:s}", "recipe", "nothing"));

        assert_string_equal(refusal(plain, operations[i], json_pack("{s:s}", "recipe", "inner")), never);
        assert_string_equal(refusal(plain, operations[i], json_pack("{s:s}", "recipe", id)), never);
    }
    assert_string_equal(listed(member("eve", "Writer"), json_object()), "inner open");
    assert_string_equal(listed(member("bob", "Admin"), json_object()), "inner open mine");
    assert_int_equal(world_refused(plain, "recipes__create", letter("more", NULL)),
                     MCP_CODE_PERMISSION_DENIED);
}

static void a_list_is_paged(void **state)
{
    const char *cursor;

    (void)state;
    (void)create("a", NULL);
    (void)create("b", NULL);
    (void)create("c", NULL);
    cursor = world_take(world_do(world_root(), "recipes__list", json_pack("{s:i}", "limit", 2)),
                        "next_cursor");
    assert_string_equal(listed(world_root(), json_pack("{s:s}", "cursor", cursor)), "c");
    assert_int_equal(
        world_refused(world_root(), "recipes__list", json_pack("{s:s}", "cursor", "con_1")),
        MCP_CODE_INVALID_REQUEST);
}

/* --- rendering ---------------------------------------------------------------------- */

static void placeholders_are_filled_in(void **state)
{
    (void)state;
    (void)create("letter", NULL);
    assert_string_equal(render(world_root(), "letter", json_pack("{s:s,s:s}", "to", "Ada", "what", "B")),
                        "Dear Ada,\nabout B. Yours, Ada");
    /* an optional one that is not given is nothing */
    assert_string_equal(render(world_root(), "letter", json_pack("{s:s}", "to", "Ada")),
                        "Dear Ada,\nabout . Yours, Ada");
    assert_string_equal(render(world_root(), "letter", json_pack("{s:s}", "to", "")),
                        "Dear ,\nabout . Yours, ");
}

static void what_is_filled_in_is_not_read_again(void **state)
{
    (void)state;
    (void)create("letter", NULL);
    assert_string_equal(
        render(world_root(), "letter", json_pack("{s:s,s:s}", "to", "{{what}}", "what", "{{")),
        "Dear {{what}},\nabout {{. Yours, {{what}}");
}

static void missing_and_unknown_arguments_are_refused(void **state)
{
    (void)state;
    (void)create("letter", NULL);
    assert_int_equal(
        world_refused(world_root(), "recipes__render", json_pack("{s:s}", "recipe", "letter")),
        MCP_CODE_INVALID_REQUEST);
    assert_non_null(strstr(world.message, "\"to\""));
    assert_int_equal(world_refused(world_root(), "recipes__render",
                                   json_pack("{s:s,s:{s:s,s:s}}", "recipe", "letter", "arguments",
                                             "to", "Ada", "s3cret-name", "x")),
                     MCP_CODE_INVALID_REQUEST);
    assert_null(strstr(world.message, "s3cret-name"));
    assert_int_equal(world_refused(world_root(), "recipes__render",
                                   json_pack("{s:s,s:{s:i}}", "recipe", "letter", "arguments", "to", 1)),
                     MCP_CODE_INVALID_REQUEST);
}

static void a_rendered_text_is_bounded(void **state)
{
    static char many[64 * 1024 + 1];
    static char long_value[4096];
    json_t *recipe = letter("letter", NULL);
    size_t i;

    (void)state;
    for (i = 0; i + 6 < sizeof(many); i += 6) {
        memcpy(many + i, "{{to}}", 6);
    }
    json_object_set_new(recipe, "text", json_string(many));
    world_done(world_root(), "recipes__create", recipe);
    memset(long_value, 'x', sizeof(long_value) - 1);
    assert_int_equal(world_refused(world_root(), "recipes__render",
                                   json_pack("{s:s,s:{s:s}}", "recipe", "letter", "arguments", "to",
                                             long_value)),
                     MCP_CODE_RESULT_TOO_LARGE);
    assert_int_equal(strlen(render(world_root(), "letter", json_pack("{s:s}", "to", "0123456789"))),
                     sizeof(many) / 6 * 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_recipe_is_kept_as_it_was_given),
                                       TEST(a_name_has_a_form_and_is_taken_once),
                                       TEST(a_placeholder_names_an_argument),
                                       TEST(two_arguments_of_one_name_are_refused),
                                       TEST(a_text_has_at_most_64_kib),
                                       TEST(a_role_that_does_not_exist_is_refused),
                                       TEST(an_update_replaces_what_is_given),
                                       TEST(a_deleted_recipe_is_gone_and_its_name_free),
                                       TEST(a_recipe_of_other_roles_is_as_one_that_never_was),
                                       TEST(a_list_is_paged),
                                       TEST(placeholders_are_filled_in),
                                       TEST(what_is_filled_in_is_not_read_again),
                                       TEST(missing_and_unknown_arguments_are_refused),
                                       TEST(a_rendered_text_is_bounded)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
