/* Built-in roles as the contract names them, custom ones, and nobody giving what they don't hold.
 */
#include "ops_world.h"

static int holds(const char *role, const char *permission)
{
    const char *const *list = pd_roles_builtin(role);

    assert_non_null(list);
    for (; *list != NULL; list++) {
        if (strcmp(*list, permission) == 0) {
            return 1;
        }
    }
    return 0;
}

static size_t count(const char *role)
{
    const char *const *list = pd_roles_builtin(role);
    size_t n = 0;

    while (list[n] != NULL) {
        n++;
    }
    return n;
}

static void built_in_roles_are_sorted_lists_of_known_permissions(void **state)
{
    int i;

    (void)state;
    for (i = 0; pd_roles_builtin_name(i) != NULL; i++) {
        const char *const *list = pd_roles_builtin(pd_roles_builtin_name(i));
        size_t n;

        assert_non_null(pd_roles_builtin_text(pd_roles_builtin_name(i)));
        for (n = 0; list[n] != NULL; n++) {
            assert_true(pd_roles_is_permission(list[n]));
            assert_true(n == 0 || strcmp(list[n - 1], list[n]) < 0);
        }
        assert_true(n > 0);
    }
    assert_int_equal(i, 6);
    assert_null(pd_roles_builtin("owner"));
    assert_null(pd_roles_builtin(NULL));
    assert_false(pd_roles_is_permission("member:reads"));
}

static void tool_execute_is_held_by_owner_admin_and_member_alone(void **state)
{
    (void)state;
    assert_true(holds("Owner", "tool:execute"));
    assert_true(holds("Admin", "tool:execute"));
    assert_true(holds("Member", "tool:execute"));
    assert_false(holds("Guest", "tool:execute"));
    assert_false(holds("Auditor", "tool:execute"));
    assert_false(holds("Billing Admin", "tool:execute"));
}

static void owner_and_admin_hold_every_permission_of_the_registry(void **state)
{
    int i;

    (void)state;
    for (i = 0; pd_ops_row(i) != NULL; i++) {
        if (pd_ops_row(i)->permission != NULL) {
            assert_true(holds("Owner", pd_ops_row(i)->permission));
            assert_true(holds("Admin", pd_ops_row(i)->permission));
        }
    }
    assert_int_equal(count("Owner"), count("Admin"));
}

static void the_auditor_holds_every_read_and_nothing_else(void **state)
{
    const char *const *all = pd_roles_builtin("Owner");

    (void)state;
    for (; *all != NULL; all++) {
        int is_read = strstr(*all, ":read") != NULL;

        assert_int_equal(holds("Auditor", *all), is_read);
    }
}

static void guest_and_billing_hold_what_the_contract_lists(void **state)
{
    (void)state;
    assert_int_equal(count("Guest"), 2);
    assert_true(holds("Guest", "connector:read") && holds("Guest", "grant:read"));
    assert_int_equal(count("Billing Admin"), 2);
    assert_true(holds("Billing Admin", "usage:read") && holds("Billing Admin", "member:read"));
}

static void a_member_reaches_about_a_dozen_operations(void **state)
{
    int reached = 0;
    int i;

    (void)state;
    for (i = 0; pd_ops_row(i) != NULL; i++) {
        const char *permission = pd_ops_row(i)->permission;

        reached += permission == NULL || holds("Member", permission);
    }
    assert_in_range(reached, 8, 20);
    assert_false(holds("Member", "grant:write"));
    assert_false(holds("Member", "connection:admin"));
}

static void roles_unite_and_a_role_that_is_gone_gives_nothing(void **state)
{
    const pd_actor_t *root = world_root();
    const pd_actor_t *actor;

    (void)state;
    world_done(root, "roles__create",
               json_pack("{s:s, s:[s, s]}", "name", "Helper", "permissions", "setting:read",
                         "connector:read"));
    actor = world_member("union@example.com", "Helper", "mcp:read", MCP_SURFACE_REST);
    assert_true(pd_actor_may(actor, "setting:read"));
    assert_false(pd_actor_may(actor, "member:read"));
    assert_string_equal(actor->permissions[0], "connector:read");
    assert_null(actor->permissions[2]);
    world_done(root, "members__update",
               json_pack("{s:s, s:[s, s]}", "member", "union@example.com", "roles", "Helper",
                         "Billing Admin"));
    json_decref(world_do(root, "members__get", json_pack("{s:s}", "member", "union@example.com")));
    assert_int_equal(world_refused(root, "roles__delete", json_pack("{s:s}", "role", "Helper")),
                     MCP_CODE_CONFLICT);
    world_done(root, "members__update",
               json_pack("{s:s, s:[s]}", "member", "union@example.com", "roles", "Guest"));
    world_done(root, "roles__delete", json_pack("{s:s}", "role", "Helper"));
}

static void names_of_roles_have_a_form_and_are_not_taken(void **state)
{
    static const struct {
        const char *name;
        mcp_code_t code;
    } cases[] = {{"owner", MCP_CODE_CONFLICT},       {"Billing admin", MCP_CODE_CONFLICT},
                 {"a,b", MCP_CODE_INVALID_REQUEST},  {" a", MCP_CODE_INVALID_REQUEST},
                 {"a ", MCP_CODE_INVALID_REQUEST},   {"rol_x", MCP_CODE_INVALID_REQUEST},
                 {"a\nb", MCP_CODE_INVALID_REQUEST}, {"", MCP_CODE_INVALID_REQUEST}};
    const pd_actor_t *root = world_root();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            world_refused(root, "roles__create",
                          json_pack("{s:s, s:[]}", "name", cases[i].name, "permissions")),
            cases[i].code);
    }
    world_done(root, "roles__create", json_pack("{s:s, s:[]}", "name", "Once", "permissions"));
    assert_int_equal(world_refused(root, "roles__create",
                                   json_pack("{s:s, s:[]}", "name", "Once", "permissions")),
                     MCP_CODE_CONFLICT);
    assert_int_equal(
        world_refused(root, "roles__create",
                      json_pack("{s:s, s:[s]}", "name", "New", "permissions", "no:such")),
        MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "roles__update",
                                   json_pack("{s:s, s:[]}", "role", "Guest", "permissions")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "roles__delete", json_pack("{s:s}", "role", "Admin")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "roles__get", json_pack("{s:s}", "role", "Nobody")),
                     MCP_CODE_NOT_FOUND);
    world_done(root, "roles__delete", json_pack("{s:s}", "role", "Once"));
}

static void a_role_holds_no_more_than_its_maker(void **state)
{
    static const char *const some[] = {"member:read", "role:write", NULL};
    const pd_actor_t *maker = world_holder(some);

    (void)state;
    assert_int_equal(
        world_refused(maker, "roles__create",
                      json_pack("{s:s, s:[s]}", "name", "More", "permissions", "audit:read")),
        MCP_CODE_PERMISSION_DENIED);
    assert_non_null(strstr(world.message, "audit:read"));
    assert_string_equal(world_last()->outcome, "denied");
    world_done(maker, "roles__create",
               json_pack("{s:s, s:[s]}", "name", "Same", "permissions", "member:read"));
    assert_int_equal(
        world_refused(maker, "roles__update",
                      json_pack("{s:s, s:[s]}", "role", "Same", "permissions", "tool:execute")),
        MCP_CODE_PERMISSION_DENIED);
    world_done(maker, "roles__delete", json_pack("{s:s}", "role", "Same"));
}

static void an_edited_role_works_at_once_and_by_revision(void **state)
{
    const pd_actor_t *root = world_root();
    json_t *role = world_do(root, "roles__create",
                            json_pack("{s:s, s:[s], s:s}", "name", "Edited", "permissions",
                                      "audit:read", "description", "first"));
    const char *id = apr_pstrdup(world.scratch, mcp_json_str(role, "role"));

    (void)state;
    assert_int_equal(strncmp(id, "rol_", 4), 0);
    json_decref(role);
    assert_int_equal(world_refused(root, "roles__update",
                                   json_pack("{s:s, s:s, s:i}", "role", id, "description", "x",
                                             "if_revision", 2)),
                     MCP_CODE_REVISION_MISMATCH);
    role = world_do(
        root, "roles__update",
        json_pack("{s:s, s:[s], s:i}", "role", id, "permissions", "member:read", "if_revision", 1));
    assert_int_equal(mcp_json_int(role, "revision", 0), 2);
    assert_string_equal(mcp_json_str(role, "description"), "first");
    assert_string_equal(json_string_value(json_array_get(json_object_get(role, "permissions"), 0)),
                        "member:read");
    json_decref(role);
    world_done(root, "roles__delete", json_pack("{s:s}", "role", "Edited"));
}

static void a_list_of_roles_pages_through_built_in_and_custom(void **state)
{
    const pd_actor_t *root = world_root();
    size_t limit;

    (void)state;
    world_done(root, "roles__create", json_pack("{s:s, s:[]}", "name", "L1", "permissions"));
    world_done(root, "roles__create", json_pack("{s:s, s:[]}", "name", "L2", "permissions"));
    for (limit = 1; limit <= 9; limit++) {
        const char *cursor = NULL;
        size_t items = 0;
        size_t pages = 0;

        do {
            json_t *page =
                world_do(root, "roles__list",
                         json_pack("{s:i, s:s*}", "limit", (int)limit, "cursor", cursor));
            const char *next = mcp_json_str(page, "next_cursor");

            assert_true(json_array_size(json_object_get(page, "items")) <= limit);
            items += json_array_size(json_object_get(page, "items"));
            cursor = next != NULL ? apr_pstrdup(world.scratch, next) : NULL;
            json_decref(page);
            pages++;
        } while (cursor != NULL && pages < 100);
        assert_int_equal(items, 8);
        assert_int_equal(pages, (8 + limit - 1) / limit);
    }
    world_done(root, "roles__delete", json_pack("{s:s}", "role", "L1"));
    world_done(root, "roles__delete", json_pack("{s:s}", "role", "L2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_roles_are_sorted_lists_of_known_permissions),
        cmocka_unit_test(tool_execute_is_held_by_owner_admin_and_member_alone),
        cmocka_unit_test(owner_and_admin_hold_every_permission_of_the_registry),
        cmocka_unit_test(the_auditor_holds_every_read_and_nothing_else),
        cmocka_unit_test(guest_and_billing_hold_what_the_contract_lists),
        cmocka_unit_test(a_member_reaches_about_a_dozen_operations),
        cmocka_unit_test(roles_unite_and_a_role_that_is_gone_gives_nothing),
        cmocka_unit_test(names_of_roles_have_a_form_and_are_not_taken),
        cmocka_unit_test(a_role_holds_no_more_than_its_maker),
        cmocka_unit_test(an_edited_role_works_at_once_and_by_revision),
        cmocka_unit_test(a_list_of_roles_pages_through_built_in_and_custom),
    };

    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
