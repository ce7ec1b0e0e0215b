/* Importing connector files over the real store: what is new, what changes, what waits until somebody accepts it, and that a call is all or
 * nothing. */
#include "ops_world.h"

#include "../../policyd/pd_lint.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An operation; klass NULL: by method. */
static json_t *op(const char *id, const char *method, const char *path, const char *klass)
{
    return json_pack("{s:s,s:s,s:s,s:s+,s:s*}", "id", id, "method", method, "path", path, "description",
                     "Does what its name says, to ", id, "classification", klass);
}

/* A file of the shop with these operations (stolen). */
static json_t *file(json_t *operations)
{
    return json_pack("{s:s,s:s,s:s,s:{s:s},s:o}", "slug", "shop", "label", "The Shop", "base_url",
                     "https://shop.example/v1", "auth", "type", "bearer", "operations", operations);
}

static json_t *first(void)
{
    return file(json_pack("[o,o,o]", op("list", "GET", "/items", NULL), op("add", "POST", "/items", NULL),
                          op("drop", "DELETE", "/items/all", NULL)));
}

/* Arguments of an import of one file (stolen). accept (stolen) may be NULL. */
static json_t *with(json_t *one, json_t *accept)
{
    return json_pack("{s:[o],s:o*}", "connectors", one, "accept", accept);
}

static apr_status_t let_go(void *answer)
{
    json_decref(answer);
    return APR_SUCCESS;
}

/* What an import answers of its first file, kept until the test ends. */
static const json_t *import(json_t *args)
{
    json_t *answer = world_do(world_root(), "connectors__import", args);

    apr_pool_cleanup_register(world.scratch, answer, let_go, apr_pool_cleanup_null);
    return json_array_get(json_object_get(answer, "connectors"), 0);
}

static void assert_action(const json_t *shown, const char *action)
{
    assert_string_equal(mcp_json_str(shown, "action"), action);
}

/* Ids of a list, joined by blanks. */
static const char *ids(const json_t *shown, const char *list)
{
    const char *all = "";
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(shown, list), i, row)
    {
        const char *id = json_is_string(row) ? json_string_value(row) : mcp_json_str(row, "operation");

        all = apr_pstrcat(world.scratch, all, i > 0 ? " " : "", id, NULL);
    }
    return all;
}

static const char *in_force(const char *operation, const char *member)
{
    json_t *shown = world_do(world_root(), "connectors__get", json_pack("{s:s}", "connector", "shop"));
    const char *text = "";
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(shown, "operations"), i, row)
    {
        if (strcmp(mcp_json_str(row, "id"), operation) == 0) {
            text = apr_pstrdup(world.scratch, mcp_json_str(row, member));
        }
    }
    json_decref(shown);
    return text;
}

static json_t *review(void)
{
    return world_do(world_root(), "connectors__review", json_pack("{s:s}", "connector", "shop"));
}

/* --- new ones ------------------------------------------------------------------------------- */

static void a_new_connector_is_in_force_at_once_whatever_it_does(void **state)
{
    const json_t *shown = import(with(first(), NULL));

    (void)state;
    assert_action(shown, "created");
    assert_int_equal(mcp_json_int(shown, "operations", 0), 3);
    assert_int_equal(mcp_json_int(json_object_get(shown, "by_class"), "destructive", 0), 1);
    assert_null(json_object_get(shown, "held"));
    assert_non_null(strstr(world_last()->detail, "connector=con_"));
    assert_string_equal(in_force("drop", "classification"), "destructive");
}

static void the_same_again_changes_nothing(void **state)
{
    const json_t *shown;

    (void)state;
    (void)import(with(first(), NULL));
    shown = import(with(first(), NULL));
    assert_action(shown, "unchanged");
    assert_int_equal(mcp_json_int(shown, "revision", 0), 1);
    assert_string_equal(ids(shown, "changed"), "");
    assert_int_equal(world_refused(world_root(), "connectors__review", json_pack("{s:s}", "connector", "shop")),
                     MCP_CODE_NOT_FOUND);
}

static void one_bad_file_of_several_leaves_none(void **state)
{
    json_t *bad = first();
    json_t *list;

    (void)state;
    json_object_set_new(bad, "slug", json_string("other"));
    json_array_append_new(json_object_get(bad, "operations"), op("bad", "GET", "no slash", NULL));
    assert_int_equal(world_refused(world_root(), "connectors__import", json_pack("{s:[o,o]}", "connectors", first(), bad)),
                     MCP_CODE_INVALID_REQUEST);
    list = world_do(world_root(), "connectors__list", json_object());
    assert_int_equal(json_array_size(json_object_get(list, "items")), 0);
    json_decref(list);
}

static void a_connector_without_operations_is_taken(void **state)
{
    (void)state;
    assert_int_equal(mcp_json_int(import(with(file(json_array()), NULL)), "operations", -1), 0);
}

/* --- changes ----------------------------------------------------------------------------------- */

static void what_neither_widens_nor_destroys_takes_effect(void **state)
{
    json_t *next = file(json_pack("[o,o,o]", op("list", "GET", "/items", "write"), op("add", "POST", "/items", NULL),
                                  op("find", "GET", "/found", NULL)));
    const json_t *shown;

    (void)state;
    json_object_set_new(json_array_get(json_object_get(next, "operations"), 1), "description",
                        json_string("Adds an item to the shop."));
    (void)import(with(first(), NULL));
    shown = import(with(next, NULL));
    assert_action(shown, "updated");
    assert_string_equal(ids(shown, "added"), "find");
    assert_string_equal(ids(shown, "removed"), "drop");
    assert_string_equal(ids(shown, "changed"), "list add");
    assert_string_equal(ids(shown, "reclassified"), "list");
    assert_string_equal(ids(shown, "held"), "");
    assert_string_equal(in_force("list", "classification"), "write");
    assert_string_equal(in_force("drop", "id"), "");
    assert_string_equal(in_force("add", "description"), "Adds an item to the shop.");
}

typedef struct row {
    const char *what;
    const char *id, *method, *path, *klass; /* the operation of the next file beside `list` */
    const char *held;
} row_t;

static void what_widens_or_destroys_waits(void **state)
{
    static const row_t rows[] = {
        {"a new destructive one", "wipe", "DELETE", "/everything", NULL, "wipe"},
        {"a new one raised to destructive", "wipe", "POST", "/everything", "destructive", "wipe"},
        {"a new forbidden one", "wipe", "DELETE", "/everything", "forbidden", ""},
        {"a weaker class", "drop", "DELETE", "/items/all", "write", "drop"},
        {"weaker still", "drop", "DELETE", "/items/all", "read", "drop"},
        {"a stronger class", "drop", "DELETE", "/items/all", "forbidden", ""},
        {"another path", "drop", "DELETE", "/customers/all", NULL, "drop"},
        {"another method", "drop", "POST", "/items/all", "destructive", "drop"},
        {"another literal of the query", "drop", "DELETE", "/items/all?hard", NULL, "drop"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        const json_t *shown;

        (void)import(with(first(), json_string("all")));
        shown = import(with(file(json_pack("[o,o,o,o*]", op("list", "GET", "/items", NULL), op("add", "POST", "/items", NULL),
                                           op(rows[i].id, rows[i].method, rows[i].path, rows[i].klass),
                                           strcmp(rows[i].id, "drop") != 0 ? op("drop", "DELETE", "/items/all", NULL) : NULL)),
                            NULL));
        if (strcmp(ids(shown, "held"), rows[i].held) != 0) {
            fail_msg("%s: held is \"%s\"", rows[i].what, ids(shown, "held"));
        }
        assert_action(shown, rows[i].held[0] == '\0' ? "updated" : "held");
        if (strcmp(rows[i].held, "drop") == 0) {
            assert_string_equal(in_force("drop", "method"), "DELETE");
            assert_string_equal(in_force("drop", "path"), "/items/all");
            assert_string_equal(in_force("drop", "classification"), "destructive");
        } else if (rows[i].held[0] != '\0') {
            assert_string_equal(in_force("wipe", "id"), "");
        }
    }
}

static void what_rules_stand_on_is_not_taken_away(void **state)
{
    const json_t *shown;

    (void)state;
    (void)import(with(first(), NULL));
    world_done(world_root(), "restrictions__create",
               json_pack("{s:s,s:{s:s},s:[{s:s,s:s}]}", "effect", "block", "target", "role", "Member", "items",
                         "connector", "shop", "operation", "add"));
    shown = import(with(file(json_pack("[o]", op("list", "GET", "/items", NULL))), NULL));
    assert_action(shown, "updated");
    assert_string_equal(ids(shown, "removed"), "add drop");
    assert_string_equal(ids(shown, "held"), "add");
    assert_string_equal(in_force("add", "id"), "add");
    assert_string_equal(in_force("drop", "id"), "");
}

static void another_place_or_scheme_holds_the_whole_file_back(void **state)
{
    json_t *moved = file(json_pack("[o]", op("find", "GET", "/found", NULL)));
    json_t *signs_otherwise = first();
    const json_t *shown;

    (void)state;
    (void)import(with(first(), NULL));
    json_object_set_new(moved, "base_url", json_string("https://other.example/v1"));
    shown = import(with(json_incref(moved), NULL));
    assert_action(shown, "held");
    assert_string_equal(ids(shown, "held"), "@base_url");
    assert_string_equal(in_force("list", "id"), "list");
    assert_string_equal(in_force("find", "id"), "");
    shown = import(with(moved, json_pack("[s]", "@base_url")));
    assert_action(shown, "updated");
    assert_string_equal(in_force("find", "id"), "find");
    assert_string_equal(in_force("list", "id"), "");

    (void)import(with(first(), json_string("all")));
    json_object_set_new(signs_otherwise, "auth", json_pack("{s:s}", "type", "none"));
    shown = import(with(json_incref(signs_otherwise), NULL));
    assert_action(shown, "held");
    assert_string_equal(ids(shown, "held"), "@auth");
    shown = import(with(signs_otherwise, json_string("all")));
    assert_action(shown, "updated");
}

static void an_update_that_was_accepted_drops_credentials_of_another_origin(void **state)
{
    json_t *moved = first();
    const json_t *shown;

    (void)state;
    (void)import(with(first(), NULL));
    world_done(world_root(), "connections__create",
               json_pack("{s:s,s:s,s:b,s:{s:s}}", "connector", "shop", "label", "ours", "shared", 1, "credential",
                         "token", "s3cret"));
    json_object_set_new(moved, "base_url", json_string("https://other.example/v1"));
    shown = import(with(moved, json_string("all")));
    assert_int_equal(json_array_size(json_object_get(shown, "needs_reauth")), 1);
}

/* --- accepting ------------------------------------------------------------------------------------ */

static json_t *wider(void)
{
    json_t *next = first();

    json_array_append_new(json_object_get(next, "operations"), op("wipe", "DELETE", "/everything", NULL));
    json_array_append_new(json_object_get(next, "operations"), op("burn", "DELETE", "/house", NULL));
    return next;
}

static void what_waits_is_shown_and_accepted_one_by_one_or_whole(void **state)
{
    json_t *shown;

    (void)state;
    (void)import(with(first(), NULL));
    (void)import(with(wider(), NULL));
    shown = review();
    assert_string_equal(ids(shown, "held"), "wipe burn");
    json_decref(shown);
    shown = world_do(world_root(), "connectors__list", json_object());
    assert_int_equal(mcp_json_int(json_array_get(json_object_get(shown, "items"), 0), "pending", 0), 2);
    json_decref(shown);

    assert_int_equal(world_refused(world_root(), "connectors__accept",
                                   json_pack("{s:s,s:[s]}", "connector", "shop", "operations", "wip")),
                     MCP_CODE_INVALID_REQUEST);
    world_done(world_root(), "connectors__accept", json_pack("{s:s,s:[s]}", "connector", "shop", "operations", "burn"));
    assert_string_equal(in_force("burn", "id"), "burn");
    assert_string_equal(in_force("wipe", "id"), "");
    shown = review();
    assert_string_equal(ids(shown, "held"), "wipe");
    json_decref(shown);

    world_done(world_root(), "connectors__accept", json_pack("{s:s}", "connector", "shop"));
    assert_string_equal(in_force("wipe", "id"), "wipe");
    assert_int_equal(world_refused(world_root(), "connectors__review", json_pack("{s:s}", "connector", "shop")),
                     MCP_CODE_NOT_FOUND);
    shown = world_do(world_root(), "connectors__list", json_object());
    assert_null(json_object_get(json_array_get(json_object_get(shown, "items"), 0), "pending"));
    json_decref(shown);
}

static void what_waits_can_be_dismissed(void **state)
{
    (void)state;
    (void)import(with(first(), NULL));
    (void)import(with(wider(), NULL));
    world_done(world_root(), "connectors__dismiss", json_pack("{s:s}", "connector", "shop"));
    assert_int_equal(world_refused(world_root(), "connectors__accept", json_pack("{s:s}", "connector", "shop")),
                     MCP_CODE_NOT_FOUND);
    assert_string_equal(in_force("wipe", "id"), "");
    assert_action(import(with(first(), NULL)), "unchanged");
}

static void a_later_import_takes_the_place_of_what_waits(void **state)
{
    json_t *shown;

    (void)state;
    (void)import(with(first(), NULL));
    (void)import(with(wider(), NULL));
    (void)import(with(file(json_pack("[o,o,o,o]", op("list", "GET", "/items", NULL), op("add", "POST", "/items", NULL),
                                     op("drop", "DELETE", "/items/all", NULL), op("sink", "DELETE", "/boats", NULL))),
                      NULL));
    shown = review();
    assert_string_equal(ids(shown, "held"), "sink");
    json_decref(shown);
    world_done(world_root(), "connectors__accept", json_pack("{s:s}", "connector", "shop"));
    assert_string_equal(in_force("wipe", "id"), "");
}

static void an_update_by_hand_and_a_deletion_forget_what_waits(void **state)
{
    json_t *whole = first();

    (void)state;
    (void)import(with(first(), NULL));
    (void)import(with(wider(), NULL));
    json_object_set_new(whole, "connector", json_string("shop"));
    world_done(world_root(), "connectors__update", whole);
    assert_int_equal(world_refused(world_root(), "connectors__review", json_pack("{s:s}", "connector", "shop")),
                     MCP_CODE_NOT_FOUND);
    (void)import(with(wider(), NULL));
    world_done(world_root(), "connectors__delete", json_pack("{s:s}", "connector", "shop"));
    (void)import(with(first(), NULL));
    assert_int_equal(world_refused(world_root(), "connectors__review", json_pack("{s:s}", "connector", "shop")),
                     MCP_CODE_NOT_FOUND);
}

/* --- advice ---------------------------------------------------------------------------------------- */

static int has_finding(const json_t *findings, const char *operation, const char *rule)
{
    json_t *row;
    size_t i;

    json_array_foreach(findings, i, row)
    {
        if (strcmp(mcp_json_str(row, "operation"), operation) == 0 && strcmp(mcp_json_str(row, "rule"), rule) == 0) {
            return 1;
        }
    }
    return 0;
}

static void advice_names_what_a_model_stumbles_over(void **state)
{
    json_t *one = json_pack(
        "{s:s,s:[{s:s,s:s,s:s},{s:s,s:s,s:s},{s:s,s:s,s:s},{s:s,s:s},{s:s,s:s,s:s,s:[{s:s,s:s,s:{}}]},{s:s,s:s,s:s},{s:s,s:s,s:s,s:[s]}]}", "slug",
        "x", "operations", "id", "list_users", "method", "GET", "description", "Lists all users of the place.", "id", "listUser",
        "method", "GET", "description", "Lists all users of the place.", "id", "short", "method", "GET", "description", "Gets.", "id",
        "silent", "method", "GET", "id", "vague", "method", "GET", "description", "Gets something by something else.", "parameters", "name",
        "q", "in", "query", "schema", "id", "sendMail", "method", "POST", "description", "Writes to somebody outside at once.", "id",
        "send_tagged", "method", "POST", "description", "Writes to somebody outside too, and says so.", "tags", "sends");
    json_t *findings = json_array();

    (void)state;
    assert_non_null(one);
    pd_lint(one, world.scratch, findings);
    assert_true(has_finding(findings, "listUser", "look-alike"));
    assert_true(has_finding(findings, "listUser", "same-description"));
    assert_true(has_finding(findings, "short", "short-description"));
    assert_true(has_finding(findings, "silent", "no-description"));
    assert_true(has_finding(findings, "vague", "untyped-argument"));
    assert_true(has_finding(findings, "sendMail", "sends-untagged"));
    assert_int_equal(json_array_size(findings), 6);
    json_decref(findings);
    json_decref(one);
}

static void advice_is_given_on_what_is_seen_alone(void **state)
{
    json_t *found;

    (void)state;
    (void)import(with(file(json_pack("[o,{s:s,s:s,s:s,s:s}]", op("list", "GET", "/items", NULL), "id", "x", "method", "GET", "path",
                                     "/x", "description", "X.")),
                      NULL));
    found = world_do(world_root(), "tools__lint", json_pack("{s:s}", "connector", "shop"));
    assert_true(has_finding(json_object_get(found, "items"), "x", "short-description"));
    json_decref(found);
    found = world_do(world_root(), "tools__lint", json_object());
    assert_true(has_finding(json_object_get(found, "items"), "x", "short-description"));
    assert_null(json_object_get(found, "next_cursor"));
    json_decref(found);
    assert_int_equal(world_refused(world_root(), "tools__lint", json_pack("{s:s}", "cursor", "x")), MCP_CODE_INVALID_REQUEST);
}

/* ------------------------------------------------------------------------------------------------- */

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_connector_is_in_force_at_once_whatever_it_does),
        TEST(the_same_again_changes_nothing),
        TEST(one_bad_file_of_several_leaves_none),
        TEST(a_connector_without_operations_is_taken),
        TEST(what_neither_widens_nor_destroys_takes_effect),
        TEST(what_widens_or_destroys_waits),
        TEST(what_rules_stand_on_is_not_taken_away),
        TEST(another_place_or_scheme_holds_the_whole_file_back),
        TEST(an_update_that_was_accepted_drops_credentials_of_another_origin),
        TEST(what_waits_is_shown_and_accepted_one_by_one_or_whole),
        TEST(what_waits_can_be_dismissed),
        TEST(a_later_import_takes_the_place_of_what_waits),
        TEST(an_update_by_hand_and_a_deletion_forget_what_waits),
        TEST(advice_names_what_a_model_stumbles_over),
        TEST(advice_is_given_on_what_is_seen_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
