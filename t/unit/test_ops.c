/* The registry's rows, and what the operations do: members, grants, connections, audit, whoami. */
#include "ops_world.h"

/* --- registry -------------------------------------------------------------------- */

static void rows_are_found_by_name_and_described(void **state)
{
    json_t *all = pd_ops_describe();
    int i;

    (void)state;
    for (i = 0; pd_ops_row(i) != NULL; i++) {
        const json_t *shown = json_array_get(all, (size_t)i);
        char name[64];

        pd_ops_name(pd_ops_row(i), name);
        assert_ptr_equal(pd_ops_find(name), pd_ops_row(i));
        assert_string_equal(mcp_json_str(shown, "name"), name);
        assert_string_equal(mcp_json_str(json_object_get(shown, "schema"), "type"), "object");
        assert_null(json_object_get(shown, "handler"));
    }
    assert_int_equal(json_array_size(all), i);
    assert_null(pd_ops_row(-1));
    assert_null(pd_ops_find("members__creates"));
    assert_null(pd_ops_find("elaichi__members__create"));
    assert_null(pd_ops_find(NULL));
    json_decref(all);
}

static void secret_operations_are_flagged(void **state)
{
    static const struct {
        const char *name;
        pd_secret_t secret;
    } cases[] = {{"grants__create", PD_SECRET_ALWAYS},
                 {"connections__create", PD_SECRET_WITH_CREDENTIAL},
                 {"connections__update", PD_SECRET_WITH_CREDENTIAL}};
    size_t i;
    int row;
    int flagged = 0;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(pd_ops_find(cases[i].name)->secret, cases[i].secret);
    }
    for (row = 0; pd_ops_row(row) != NULL; row++) {
        flagged += pd_ops_row(row)->secret != PD_SECRET_NO;
    }
    assert_int_equal(flagged, 3);
}

static void endings_are_destructive(void **state)
{
    static const char *const names[] = {"members__remove", "roles__delete", "grants__revoke",
                                        "connectors__delete", "connections__delete"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(pd_ops_find(names[i])->klass, MCP_CLASS_DESTRUCTIVE);
    }
}

static void only_names_of_the_schema_are_known(void **state)
{
    const pd_op_t *op = pd_ops_find("members__create");

    (void)state;
    assert_true(pd_ops_knows(op, "email"));
    assert_false(pd_ops_knows(op, "password"));
    assert_false(pd_ops_knows(op, ""));
}

/* --- whoami ---------------------------------------------------------------------- */

static void whoami_says_who_and_what(void **state)
{
    const pd_actor_t *actor =
        world_member("who@example.com", "Guest", "mcp:write", MCP_SURFACE_REST);
    json_t *me = world_do(actor, "whoami__get", json_object());

    (void)state;
    assert_string_equal(mcp_json_str(me, "email"), "who@example.com");
    assert_string_equal(mcp_json_str(me, "member"), actor->member_id);
    assert_string_equal(json_string_value(json_array_get(json_object_get(me, "roles"), 0)),
                        "Guest");
    assert_int_equal(json_array_size(json_object_get(me, "permissions")), 2);
    assert_int_equal(json_array_size(json_object_get(me, "scopes")), 3);
    assert_non_null(mcp_json_str(me, "expires_at"));
    json_decref(me);
    me = world_do(world_root(), "whoami__get", json_object());
    assert_null(json_object_get(me, "member"));
    assert_string_equal(mcp_json_str(me, "label"), "unix:0");
    assert_true(json_array_size(json_object_get(me, "permissions")) > 10);
    json_decref(me);
}

/* --- members --------------------------------------------------------------------- */

static void an_email_has_a_form(void **state)
{
    static const struct {
        const char *email;
        int is_good;
    } cases[] = {{"a@b", 1},
                 {"form.one+x@example.com", 1},
                 {"o'neil@example.com", 1},
                 {"@b", 0},
                 {"a@", 0},
                 {"ab", 0},
                 {"a@b@c", 0},
                 {"a b@c", 0},
                 {"a@b\n", 0},
                 {"<a@b>", 0},
                 {"a,b@c", 0},
                 {"\"a\"@b", 0},
                 {"\xc3\xa4@b", 0}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *made = world_invoke(world_root(), "members__create",
                                    json_pack("{s:s}", "email", cases[i].email));

        if ((made != NULL) != cases[i].is_good) {
            fail_msg("%s", cases[i].email);
        }
        json_decref(made);
    }
}

static void a_member_is_named_by_id_or_email_in_any_case(void **state)
{
    json_t *made = world_do(world_root(), "members__create",
                            json_pack("{s:s, s:s}", "email", "Named@Example.com", "name", "Nora"));
    const char *id = apr_pstrdup(world.scratch, mcp_json_str(made, "member"));
    const char *const names[] = {id, "named@example.com", "NAMED@EXAMPLE.COM"};
    size_t i;

    (void)state;
    assert_int_equal(strncmp(id, "mem_", 4), 0);
    assert_string_equal(mcp_json_str(made, "email"), "Named@Example.com");
    assert_string_equal(json_string_value(json_array_get(json_object_get(made, "roles"), 0)),
                        "Member");
    assert_int_equal(mcp_json_int(made, "revision", 0), 1);
    json_decref(made);
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_string_equal(world_take(world_do(world_root(), "members__get",
                                                json_pack("{s:s}", "member", names[i])),
                                       "member"),
                            id);
    }
    assert_int_equal(
        world_refused(world_root(), "members__get", json_pack("{s:s}", "member", "mem_none")),
        MCP_CODE_NOT_FOUND);
    assert_int_equal(world_refused(world_root(), "members__create",
                                   json_pack("{s:s, s:[s]}", "email", "x@y", "roles", "Nobody")),
                     MCP_CODE_NOT_FOUND);
}

static void an_email_that_comes_back_is_another_member(void **state)
{
    const pd_actor_t *root = world_root();
    const char *first = world_take(
        world_do(root, "members__create", json_pack("{s:s}", "email", "back@example.com")),
        "member");
    const char *second;
    json_t *shown;

    (void)state;
    shown = world_do(root, "members__remove", json_pack("{s:s}", "member", "back@example.com"));
    assert_string_equal(mcp_json_str(shown, "state"), "removed");
    json_decref(shown);
    assert_string_equal(world.member_email, "back@example.com");
    second = world_take(
        world_do(root, "members__create", json_pack("{s:s}", "email", "back@example.com")),
        "member");
    assert_string_not_equal(first, second);
    assert_int_equal(world_refused(root, "members__reinstate", json_pack("{s:s}", "member", first)),
                     MCP_CODE_CONFLICT);
    assert_int_equal(world_refused(root, "members__update",
                                   json_pack("{s:s, s:s}", "member", first, "name", "x")),
                     MCP_CODE_CONFLICT);
    shown = world_do(root, "members__remove", json_pack("{s:s, s:b}", "member", first, "erase", 1));
    assert_null(json_object_get(shown, "email"));
    json_decref(shown);
    assert_string_equal(world.member_id, first);
    assert_string_equal(world.member_email, "");
    json_decref(world_do(root, "members__get", json_pack("{s:s}", "member", second)));
}

static void saving_one_field_leaves_the_others(void **state)
{
    const pd_actor_t *root = world_root();
    json_t *shown;

    (void)state;
    world_done(root, "members__create",
               json_pack("{s:s, s:s, s:[s, s]}", "email", "keep@example.com", "name", "K", "roles",
                         "Member", "Auditor"));
    shown = world_do(root, "members__update",
                     json_pack("{s:s, s:s}", "member", "keep@example.com", "name", "L"));
    assert_string_equal(mcp_json_str(shown, "name"), "L");
    assert_int_equal(json_array_size(json_object_get(shown, "roles")), 2);
    assert_int_equal(mcp_json_int(shown, "revision", 0), 2);
    json_decref(shown);
    assert_int_equal(world_refused(root, "members__update",
                                   json_pack("{s:s, s:s, s:i}", "member", "keep@example.com",
                                             "name", "M", "if_revision", 1)),
                     MCP_CODE_REVISION_MISMATCH);
    world_done(root, "members__update",
               json_pack("{s:s, s:s}", "member", "keep@example.com", "email", "kept@example.com"));
    assert_int_equal(
        world_refused(root, "members__get", json_pack("{s:s}", "member", "keep@example.com")),
        MCP_CODE_NOT_FOUND);
    world_done(root, "members__create", json_pack("{s:s}", "email", "keep@example.com"));
    assert_int_equal(world_refused(root, "members__update",
                                   json_pack("{s:s, s:s}", "member", "keep@example.com", "email",
                                             "kept@example.com")),
                     MCP_CODE_CONFLICT);
}

static void suspension_holds_on_the_next_call_and_ends(void **state)
{
    const pd_actor_t *root = world_root();
    const char *token;

    (void)state;
    world_done(root, "members__create", json_pack("{s:s}", "email", "pause@example.com"));
    token = world_take(world_do(root, "grants__create",
                                json_pack("{s:s, s:s, s:s}", "member", "pause@example.com",
                                          "client", "c", "resource", WORLD_RESOURCE)),
                       "token");
    assert_int_equal(world_access(token, MCP_SURFACE_MCP, WORLD_RESOURCE, NULL), MCP_CODE_NONE);
    world_done(root, "members__suspend", json_pack("{s:s}", "member", "pause@example.com"));
    world_done(root, "members__suspend", json_pack("{s:s}", "member", "pause@example.com"));
    assert_int_equal(world_access(token, MCP_SURFACE_MCP, WORLD_RESOURCE, NULL),
                     MCP_CODE_MEMBER_SUSPENDED);
    assert_int_equal(world_refused(root, "grants__create",
                                   json_pack("{s:s, s:s, s:s}", "member", "pause@example.com",
                                             "client", "c", "resource", WORLD_RESOURCE)),
                     MCP_CODE_CONFLICT);
    world_done(root, "members__reinstate", json_pack("{s:s}", "member", "pause@example.com"));
    assert_int_equal(world_access(token, MCP_SURFACE_MCP, WORLD_RESOURCE, NULL), MCP_CODE_NONE);
    world_done(root, "members__remove", json_pack("{s:s}", "member", "pause@example.com"));
    assert_int_equal(world_access(token, MCP_SURFACE_MCP, WORLD_RESOURCE, NULL),
                     MCP_CODE_MEMBER_SUSPENDED);
}

static void lists_of_members_filter_and_page(void **state)
{
    const pd_actor_t *root = world_root();
    const char *cursor = NULL;
    size_t items = 0;
    int pages = 0;
    int i;

    (void)state;
    for (i = 0; i < 7; i++) {
        char email[64];

        (void)snprintf(email, sizeof(email), "Page%d@paging.example", i);
        world_done(
            root, "members__create",
            json_pack("{s:s, s:[s]}", "email", email, "roles", i % 2 == 0 ? "Guest" : "Auditor"));
    }
    world_done(root, "members__remove", json_pack("{s:s}", "member", "page6@paging.example"));
    do {
        json_t *page = world_do(
            root, "members__list",
            json_pack("{s:s, s:i, s:s*}", "query", "PAGING.", "limit", 2, "cursor", cursor));
        const char *next = mcp_json_str(page, "next_cursor");

        items += json_array_size(json_object_get(page, "items"));
        cursor = next != NULL ? apr_pstrdup(world.scratch, next) : NULL;
        json_decref(page);
        pages++;
    } while (cursor != NULL && pages < 100);
    assert_int_equal(items, 6);
    assert_int_equal(pages, 3);
    for (i = 0; i < 2; i++) {
        json_t *page = world_do(
            root, "members__list",
            json_pack("{s:s, s:s}", "query", "paging", "role", i == 0 ? "Guest" : "Auditor"));

        assert_int_equal(json_array_size(json_object_get(page, "items")), 3);
        json_decref(page);
    }
    assert_int_equal(world_refused(root, "members__list", json_pack("{s:s}", "cursor", "gra_1")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "members__list", json_pack("{s:i}", "limit", 1001)),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "members__list", json_pack("{s:i}", "limit", 0)),
                     MCP_CODE_INVALID_REQUEST);
}

/* --- nobody gives what they don't hold ------------------------------------------- */

static void nobody_gives_what_they_do_not_hold(void **state)
{
    static const char *const helper_holds[] = {
        "connector:read", "grant:read", "grant:write", "member:read",
        "member:write",   "role:write", "usage:read",  NULL};
    static const struct {
        const char *role; /* of the one it is about */
        mcp_code_t helper, admin, root;
    } cases[] = {
        {"Guest", MCP_CODE_NONE, MCP_CODE_NONE, MCP_CODE_NONE},
        {"Billing Admin", MCP_CODE_NONE, MCP_CODE_NONE, MCP_CODE_NONE},
        {"Member", MCP_CODE_PERMISSION_DENIED, MCP_CODE_NONE, MCP_CODE_NONE},
        {"Auditor", MCP_CODE_PERMISSION_DENIED, MCP_CODE_NONE, MCP_CODE_NONE},
        {"Admin", MCP_CODE_PERMISSION_DENIED, MCP_CODE_NONE, MCP_CODE_NONE},
        {"Owner", MCP_CODE_PERMISSION_DENIED, MCP_CODE_PERMISSION_DENIED, MCP_CODE_NONE},
    };
    const pd_actor_t *admin =
        world_member("giver@example.com", "Admin", "mcp:destructive", MCP_SURFACE_REST);
    const pd_actor_t *actors[3];
    size_t i;
    size_t j;
    size_t k;

    (void)state;
    world_done(world_root(), "members__create",
               json_pack("{s:s, s:[s]}", "email", "keeper@example.com", "roles", "Owner"));
    actors[0] = world_holder(helper_holds);
    actors[1] = admin;
    actors[2] = world_root();
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const mcp_code_t wanted[] = {cases[i].helper, cases[i].admin, cases[i].root};

        for (j = 0; j < 3; j++) {
            const char *email =
                apr_psprintf(world.scratch, "target%d-%d@example.com", (int)i, (int)j);
            const char *email2 =
                apr_psprintf(world.scratch, "made%d-%d@example.com", (int)i, (int)j);
            json_t *tries[5];

            world_done(world_root(), "members__create",
                       json_pack("{s:s, s:[s]}", "email", email, "roles", cases[i].role));
            /* create with the role, give the role to another, act as one who has it, take over the
             * sign-in, reinstate */
            tries[0] =
                world_invoke(actors[j], "members__create",
                             json_pack("{s:s, s:[s]}", "email", email2, "roles", cases[i].role));
            if (wanted[j] != world.code) {
                fail_msg("create %s by %d: %s", cases[i].role, (int)j, world.message);
            }
            world_done(world_root(), "members__create",
                       json_pack("{s:s, s:[s]}", "email",
                                 apr_pstrcat(world.scratch, "x", email2, (char *)NULL), "roles",
                                 "Guest"));
            tries[1] = world_invoke(actors[j], "members__update",
                                    json_pack("{s:s, s:[s]}", "member",
                                              apr_pstrcat(world.scratch, "x", email2, (char *)NULL),
                                              "roles", cases[i].role));
            assert_int_equal(world.code, wanted[j]);
            tries[2] = world_invoke(actors[j], "grants__create",
                                    json_pack("{s:s, s:s, s:s}", "member", email, "client", "c",
                                              "resource", WORLD_RESOURCE));
            assert_int_equal(world.code, wanted[j]);
            tries[3] =
                world_invoke(actors[j], "members__update",
                             json_pack("{s:s, s:s}", "member", email, "email",
                                       apr_pstrcat(world.scratch, "y", email, (char *)NULL)));
            assert_int_equal(world.code, wanted[j]);
            world_done(world_root(), "members__suspend",
                       json_pack("{s:s}", "member",
                                 wanted[j] == MCP_CODE_NONE
                                     ? apr_pstrcat(world.scratch, "y", email, (char *)NULL)
                                     : email));
            tries[4] =
                world_invoke(actors[j], "members__reinstate",
                             json_pack("{s:s}", "member",
                                       wanted[j] == MCP_CODE_NONE
                                           ? apr_pstrcat(world.scratch, "y", email, (char *)NULL)
                                           : email));
            assert_int_equal(world.code, wanted[j]);
            for (k = 0; k < 5; k++) {
                json_decref(tries[k]);
            }
        }
    }
}

static void an_owner_is_ended_by_owners_alone_and_never_the_last(void **state)
{
    const pd_actor_t *root = world_root();
    const pd_actor_t *admin =
        world_member("ender@example.com", "Admin", "mcp:destructive", MCP_SURFACE_REST);
    static const char *const ends[] = {"members__suspend", "members__remove"};
    json_t *owners;
    size_t i;

    (void)state;
    world_done(root, "members__create",
               json_pack("{s:s, s:[s]}", "email", "boss@example.com", "roles", "Owner"));
    for (i = 0; i < 2; i++) {
        assert_int_equal(
            world_refused(admin, ends[i], json_pack("{s:s}", "member", "boss@example.com")),
            MCP_CODE_PERMISSION_DENIED);
    }
    assert_int_equal(
        world_refused(admin, "members__update",
                      json_pack("{s:s, s:[s]}", "member", "boss@example.com", "roles", "Guest")),
        MCP_CODE_PERMISSION_DENIED);
    assert_int_equal(
        world_refused(admin, "members__update",
                      json_pack("{s:s, s:s}", "member", "boss@example.com", "name", "x")),
        MCP_CODE_PERMISSION_DENIED);
    /* all other Owners go, and then there is one */
    owners = world_do(root, "members__list", json_pack("{s:s}", "role", "Owner"));
    for (i = 0; i < json_array_size(json_object_get(owners, "items")); i++) {
        const json_t *owner = json_array_get(json_object_get(owners, "items"), i);

        if (strcmp(mcp_json_str(owner, "email"), "boss@example.com") != 0 &&
            strcmp(mcp_json_str(owner, "state"), "removed") != 0) {
            world_done(root, "members__remove",
                       json_pack("{s:s}", "member", mcp_json_str(owner, "member")));
        }
    }
    json_decref(owners);
    for (i = 0; i < 2; i++) {
        assert_int_equal(
            world_refused(root, ends[i], json_pack("{s:s}", "member", "boss@example.com")),
            MCP_CODE_CONFLICT);
    }
    assert_int_equal(
        world_refused(root, "members__update",
                      json_pack("{s:s, s:[s]}", "member", "boss@example.com", "roles", "Admin")),
        MCP_CODE_CONFLICT);
    /* a suspended Owner is none that keeps the house */
    world_done(root, "members__create",
               json_pack("{s:s, s:[s]}", "email", "boss2@example.com", "roles", "Owner"));
    world_done(root, "members__suspend", json_pack("{s:s}", "member", "boss2@example.com"));
    assert_int_equal(
        world_refused(root, "members__suspend", json_pack("{s:s}", "member", "boss@example.com")),
        MCP_CODE_CONFLICT);
    world_done(root, "members__reinstate", json_pack("{s:s}", "member", "boss2@example.com"));
    world_done(root, "members__suspend", json_pack("{s:s}", "member", "boss@example.com"));
}

/* --- grants ---------------------------------------------------------------------- */

static void a_token_is_shown_once_and_works_until_revoked(void **state)
{
    const pd_actor_t *root = world_root();
    json_t *made;
    const char *token;
    const char *id;
    char *text;

    (void)state;
    world_done(root, "members__create", json_pack("{s:s}", "email", "token@example.com"));
    made = world_do(root, "grants__create",
                    json_pack("{s:s, s:s, s:s}", "member", "token@example.com", "client", "cli",
                              "resource", WORLD_RESOURCE));
    token = apr_pstrdup(world.scratch, mcp_json_str(made, "token"));
    id = apr_pstrdup(world.scratch, mcp_json_str(made, "grant"));
    assert_int_equal(strncmp(token, "mcp_", 4), 0);
    assert_int_equal(strlen(token), 47);
    assert_string_equal(json_string_value(json_array_get(json_object_get(made, "scopes"), 0)),
                        "mcp:read");
    assert_string_equal(json_string_value(json_array_get(json_object_get(made, "scopes"), 1)),
                        "mcp:tools");
    assert_string_equal(mcp_json_str(made, "resource"), WORLD_RESOURCE);
    assert_string_equal(mcp_json_str(made, "state"), "active");
    assert_string_equal(mcp_json_str(made, "created_by"), "unix:0");
    json_decref(made);
    made = world_do(root, "grants__get", json_pack("{s:s}", "grant", id));
    text = json_dumps(made, 0);
    assert_null(strstr(text, "token"));
    assert_null(strstr(text, token));
    free(text);
    json_decref(made);
    assert_int_equal(world_access(token, MCP_SURFACE_MCP, WORLD_RESOURCE, NULL), MCP_CODE_NONE);
    assert_int_equal(world_access(token, MCP_SURFACE_MCP, "https://other.example.com/mcp", NULL),
                     MCP_CODE_INVALID_TOKEN);
    world_done(root, "grants__revoke", json_pack("{s:s}", "grant", id));
    assert_int_equal(world_access(token, MCP_SURFACE_MCP, WORLD_RESOURCE, NULL),
                     MCP_CODE_GRANT_REVOKED);
    made = world_do(root, "grants__revoke", json_pack("{s:s}", "grant", id));
    assert_string_equal(mcp_json_str(made, "state"), "revoked");
    assert_int_equal(mcp_json_int(made, "revision", 0), 2);
    json_decref(made);
}

static void a_grant_is_for_the_endpoint_that_is_set(void **state)
{
    const pd_actor_t *root = world_root();
    static char first[] = "https://first.example.com/mcp";

    (void)state;
    world_done(root, "members__create", json_pack("{s:s}", "email", "aud@example.com"));
    assert_int_equal(
        world_refused(root, "grants__create",
                      json_pack("{s:s, s:s}", "member", "aud@example.com", "client", "c")),
        MCP_CODE_INVALID_REQUEST);
    assert_non_null(strstr(world.hint, "endpoint.resource"));
    world.policy.first_resource = first;
    assert_string_equal(
        world_take(world_do(root, "grants__create",
                            json_pack("{s:s, s:s}", "member", "aud@example.com", "client", "c")),
                   "resource"),
        first);
    world_done(root, "settings__set",
               json_pack("{s:s, s:s}", "key", "endpoint.resource", "value", WORLD_RESOURCE));
    assert_string_equal(
        world_take(world_do(root, "grants__create",
                            json_pack("{s:s, s:s}", "member", "aud@example.com", "client", "c")),
                   "resource"),
        WORLD_RESOURCE);
    world.policy.first_resource = NULL;
    assert_int_equal(world_refused(root, "grants__create",
                                   json_pack("{s:s, s:s, s:s}", "member", "aud@example.com",
                                             "client", "c", "resource", "mcp.example.com/mcp")),
                     MCP_CODE_INVALID_REQUEST);
    world_done(root, "settings__unset", json_pack("{s:s}", "key", "endpoint.resource"));
}

static void the_life_of_a_grant_is_a_number_or_a_span(void **state)
{
    static const struct {
        const char *json;
        int64_t seconds; /* 0: refused */
    } cases[] = {{"null", 90 * 86400},
                 {"60", 60},
                 {"\"60\"", 60},
                 {"\"12h\"", 43200},
                 {"\"2w\"", 1209600},
                 {"315360000", 315360000},
                 {"315360001", 0},
                 {"0", 0},
                 {"-1", 0},
                 {"\"never\"", 0},
                 {"\"0d\"", 0},
                 {"1.5", 0}};
    size_t i;

    (void)state;
    world_done(world_root(), "members__create", json_pack("{s:s}", "email", "life@example.com"));
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *args = json_pack("{s:s, s:s, s:s}", "member", "life@example.com", "client", "c",
                                 "resource", WORLD_RESOURCE);
        json_t *value = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        json_t *made;

        if (!json_is_null(value)) {
            json_object_set_new(args, "expires_in", value);
        }
        made = world_invoke(world_root(), "grants__create", args);
        if ((made != NULL) != (cases[i].seconds != 0)) {
            fail_msg("%s: %s", cases[i].json, world.message);
        }
        if (made != NULL) {
            char wanted[32];
            const char *is = mcp_json_str(made, "expires_at");

            /* to the hour: the test is not about the clock */
            pd_wall_text((pd_wall_t){pd_wall_now().us + cases[i].seconds * 1000000}, wanted);
            assert_memory_equal(is, wanted, 10);
        }
        json_decref(made);
    }
}

static void scopes_are_named_and_not_beyond_the_askers(void **state)
{
    const pd_actor_t *narrow =
        world_member("narrow2@example.com", "Admin", "mcp:write", MCP_SURFACE_REST);

    (void)state;
    assert_int_equal(
        world_refused(world_root(), "grants__create",
                      json_pack("{s:s, s:s, s:s, s:[s]}", "member", "narrow2@example.com", "client",
                                "c", "resource", WORLD_RESOURCE, "scopes", "mcp:all")),
        MCP_CODE_INVALID_REQUEST);
    assert_int_equal(
        world_refused(narrow, "grants__create",
                      json_pack("{s:s, s:s, s:s, s:[s]}", "member", "narrow2@example.com", "client",
                                "c", "resource", WORLD_RESOURCE, "scopes", "mcp:destructive")),
        MCP_CODE_PERMISSION_DENIED);
    world_done(narrow, "grants__create",
               json_pack("{s:s, s:s, s:s, s:[s, s, s]}", "member", "narrow2@example.com", "client",
                         "c", "resource", WORLD_RESOURCE, "scopes", "mcp:read", "mcp:write",
                         "mcp:tools"));
}

static size_t items_of(const pd_actor_t *actor, const char *name, json_t *args)
{
    json_t *page = world_do(actor, name, args);
    size_t count = json_array_size(json_object_get(page, "items"));

    json_decref(page);
    return count;
}

static void grants_of_others_are_as_if_they_did_not_exist(void **state)
{
    const pd_actor_t *guest =
        world_member("own1@example.com", "Guest", "mcp:read", MCP_SURFACE_REST);
    const pd_actor_t *other =
        world_member("own2@example.com", "Guest", "mcp:read", MCP_SURFACE_REST);
    const pd_actor_t *auditor =
        world_member("own3@example.com", "Auditor", "mcp:read", MCP_SURFACE_REST);

    (void)state;
    assert_int_equal(items_of(guest, "grants__list", json_object()), 1);
    assert_int_equal(
        items_of(guest, "grants__list", json_pack("{s:s}", "member", "own1@example.com")), 1);
    assert_int_equal(
        items_of(guest, "grants__list", json_pack("{s:s}", "member", "own2@example.com")), 0);
    assert_int_equal(
        items_of(guest, "grants__list", json_pack("{s:s}", "member", "nobody@example.com")), 0);
    assert_int_equal(
        items_of(auditor, "grants__list", json_pack("{s:s}", "member", "own2@example.com")), 1);
    world_done(guest, "grants__get", json_pack("{s:s}", "grant", guest->grant_id));
    assert_int_equal(
        world_refused(guest, "grants__get", json_pack("{s:s}", "grant", other->grant_id)),
        MCP_CODE_NOT_FOUND);
    {
        char *message = apr_pstrdup(world.scratch, world.message);

        assert_int_equal(
            world_refused(guest, "grants__get", json_pack("{s:s}", "grant", "gra_none")),
            MCP_CODE_NOT_FOUND);
        assert_string_equal(world.message, message);
    }
    world_done(auditor, "grants__get", json_pack("{s:s}", "grant", other->grant_id));
}

/* --- connections ----------------------------------------------------------------- */

static void add_connector(const char *slug)
{
    json_t *file = json_loads(
        "{\"slug\":\"x\",\"label\":\"X\",\"base_url\":\"https://{host}/{path}\","
        "\"variables\":{\"host\":{\"default\":\"a.example.com\",\"enum\":[\"a.example.com\","
        "\"b.example.com\"]},\"path\":{\"default\":\"v1\"}},"
        "\"auth\":{\"type\":\"bearer\"},\"operations\":[{\"id\":\"get\",\"method\":\"GET\","
        "\"path\":\"/items\",\"description\":\"Gets\"}]}",
        0, NULL);

    assert_non_null(file);
    json_object_set_new(file, "slug", json_string(slug));
    world_done(world_root(), "connectors__create", file);
}

static json_t *connection(const char *connector, const char *label)
{
    return json_pack("{s:s, s:s, s:{s:s}}", "connector", connector, "label", label, "credential",
                     "token", "hunter2-secret");
}

/* The same without a credential, shared or owned. */
static json_t *bare(const char *label, const char *owner, int is_shared)
{
    json_t *args =
        json_pack("{s:s, s:s, s:s*}", "connector", "app", "label", label, "owner", owner);

    if (is_shared) {
        json_object_set_new(args, "shared", json_true());
    }
    return args;
}

static void a_credential_appears_nowhere_and_binds_to_its_origin(void **state)
{
    const pd_actor_t *me =
        world_member("conn@example.com", "Member", "mcp:destructive", MCP_SURFACE_REST);
    json_t *shown;
    char *text;

    (void)state;
    add_connector("app");
    shown = world_do(me, "connections__create", connection("app", "mine"));
    assert_string_equal(mcp_json_str(shown, "state"), "ready");
    assert_string_equal(mcp_json_str(shown, "owner"), me->member_id);
    assert_string_equal(mcp_json_str(shown, "base"), "https://a.example.com/v1");
    text = json_dumps(shown, 0);
    assert_null(strstr(text, "hunter2"));
    free(text);
    json_decref(shown);
    assert_null(strstr(world_last()->detail, "hunter2"));
    assert_non_null(strstr(world_last()->arg_names, "credential"));
    /* another path of the same origin keeps it, another host drops it, given again it is there */
    shown = world_do(me, "connections__update",
                     json_pack("{s:s, s:{s:s}}", "connection", "mine", "variables", "path", "v2"));
    assert_string_equal(mcp_json_str(shown, "state"), "ready");
    assert_string_equal(mcp_json_str(shown, "base"), "https://a.example.com/v2");
    json_decref(shown);
    shown = world_do(
        me, "connections__update",
        json_pack("{s:s, s:{s:s}}", "connection", "mine", "variables", "host", "b.example.com"));
    assert_string_equal(mcp_json_str(shown, "state"), "needs_reauth");
    assert_string_equal(mcp_json_str(shown, "base"), "https://b.example.com/v1");
    json_decref(shown);
    shown = world_do(me, "connections__update",
                     json_pack("{s:s, s:{s:s}, s:{s:s}}", "connection", "mine", "variables", "host",
                               "a.example.com", "credential", "token", "again"));
    assert_string_equal(mcp_json_str(shown, "state"), "ready");
    json_decref(shown);
    shown = world_do(me, "connections__update",
                     json_pack("{s:s, s:b}", "connection", "mine", "toolbox_only", 1));
    assert_string_equal(mcp_json_str(shown, "state"), "ready");
    assert_true(mcp_json_bool(shown, "toolbox_only"));
    json_decref(shown);
    assert_int_equal(world_refused(me, "connections__update",
                                   json_pack("{s:s, s:{s:s}}", "connection", "mine", "variables",
                                             "host", "evil.example.com")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(me, "connections__update",
                                   json_pack("{s:s, s:{s:s}}", "connection", "mine", "credential",
                                             "password", "x")),
                     MCP_CODE_INVALID_REQUEST);
    shown = world_do(me, "connections__create",
                     json_pack("{s:s, s:s}", "connector", "app", "label", "bare"));
    assert_string_equal(mcp_json_str(shown, "state"), "needs_reauth");
    json_decref(shown);
    world_done(me, "connections__delete", json_pack("{s:s}", "connection", "mine"));
    assert_int_equal(
        world_refused(me, "connections__get", json_pack("{s:s}", "connection", "mine")),
        MCP_CODE_NOT_FOUND);
}

static void labels_are_unique_where_they_meet(void **state)
{
    const pd_actor_t *ada =
        world_member("ada@labels.example", "Member", "mcp:destructive", MCP_SURFACE_REST);
    const pd_actor_t *bob =
        world_member("bob@labels.example", "Member", "mcp:destructive", MCP_SURFACE_REST);
    static const struct {
        const char *label;
        mcp_code_t code;
    } cases[] = {{"elaichi", MCP_CODE_CONFLICT},
                 {"corp-tools", MCP_CODE_CONFLICT},
                 {"Ada", MCP_CODE_INVALID_REQUEST},
                 {"-a", MCP_CODE_INVALID_REQUEST},
                 {"a_b", MCP_CODE_INVALID_REQUEST},
                 {"", MCP_CODE_INVALID_REQUEST},
                 {"abcdefghijklmnopqrstuvwxyzabcdefg", MCP_CODE_INVALID_REQUEST}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(world_refused(ada, "connections__create", bare(cases[i].label, NULL, 0)),
                         cases[i].code);
    }
    world_done(ada, "connections__create", bare("wiki", NULL, 0));
    assert_int_equal(world_refused(ada, "connections__create", bare("wiki", NULL, 0)),
                     MCP_CODE_CONFLICT);
    world_done(bob, "connections__create", bare("wiki", NULL, 0));
    assert_int_equal(world_refused(world_root(), "connections__create", bare("wiki", NULL, 1)),
                     MCP_CODE_CONFLICT);
    world_done(world_root(), "connections__create", bare("crm", NULL, 1));
    assert_int_equal(world_refused(world_root(), "connections__create", bare("crm", NULL, 1)),
                     MCP_CODE_CONFLICT);
    assert_int_equal(world_refused(ada, "connections__create", bare("crm", NULL, 0)),
                     MCP_CODE_CONFLICT);
    assert_int_equal(world_refused(ada, "connections__update",
                                   json_pack("{s:s, s:s}", "connection", "wiki", "label", "crm")),
                     MCP_CODE_CONFLICT);
    world_done(ada, "connections__update",
               json_pack("{s:s, s:s}", "connection", "wiki", "label", "wiki"));
    world_done(ada, "connections__update",
               json_pack("{s:s, s:s}", "connection", "wiki", "label", "wiki2"));
    assert_int_equal(
        world_refused(ada, "connections__get", json_pack("{s:s}", "connection", "wiki")),
        MCP_CODE_NOT_FOUND);
    world_done(bob, "connections__delete", json_pack("{s:s}", "connection", "wiki"));
    world_done(world_root(), "connections__create", bare("wiki", NULL, 1));
    /* leaving frees what was theirs alone */
    assert_int_equal(world_refused(world_root(), "connections__create", bare("wiki2", NULL, 1)),
                     MCP_CODE_CONFLICT);
    world_done(world_root(), "members__remove", json_pack("{s:s}", "member", "ada@labels.example"));
    world_done(world_root(), "connections__create", bare("wiki2", NULL, 1));
}

static void shared_connections_and_those_of_others_take_connection_admin(void **state)
{
    const pd_actor_t *ada =
        world_member("ada@shared.example", "Member", "mcp:destructive", MCP_SURFACE_REST);
    const pd_actor_t *auditor =
        world_member("aud@shared.example", "Auditor", "mcp:destructive", MCP_SURFACE_REST);
    const char *theirs;

    (void)state;
    world_done(world_root(), "members__create", json_pack("{s:s}", "email", "bob@shared.example"));
    assert_int_equal(world_refused(ada, "connections__create", bare("sh1", NULL, 1)),
                     MCP_CODE_PERMISSION_DENIED);
    assert_int_equal(
        world_refused(ada, "connections__create", bare("sh1", "bob@shared.example", 0)),
        MCP_CODE_PERMISSION_DENIED);
    assert_int_equal(
        world_refused(ada, "connections__create", bare("sh1", "nobody@shared.example", 0)),
        MCP_CODE_PERMISSION_DENIED);
    world_done(ada, "connections__create", bare("sh1", "ADA@shared.example", 0));
    assert_int_equal(world_refused(world_root(), "connections__create", bare("sh2", NULL, 0)),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(
        world_refused(world_root(), "connections__create", bare("sh2", "bob@shared.example", 1)),
        MCP_CODE_INVALID_REQUEST);
    theirs = world_take(
        world_do(world_root(), "connections__create", bare("sh2", "bob@shared.example", 0)),
        "connection");
    world_done(world_root(), "connections__create", bare("sh3", NULL, 1));
    assert_int_equal(
        world_refused(ada, "connections__get", json_pack("{s:s}", "connection", theirs)),
        MCP_CODE_NOT_FOUND);
    assert_int_equal(
        world_refused(ada, "connections__delete", json_pack("{s:s}", "connection", theirs)),
        MCP_CODE_NOT_FOUND);
    world_done(ada, "connections__get", json_pack("{s:s}", "connection", "sh3"));
    assert_int_equal(
        world_refused(ada, "connections__delete", json_pack("{s:s}", "connection", "sh3")),
        MCP_CODE_PERMISSION_DENIED);
    assert_int_equal(world_refused(ada, "connections__update",
                                   json_pack("{s:s, s:s}", "connection", "sh3", "label", "sh4")),
                     MCP_CODE_PERMISSION_DENIED);
    assert_int_equal(items_of(ada, "connections__list", json_pack("{s:s}", "query", "sh")), 2);
    assert_int_equal(
        items_of(ada, "connections__list", json_pack("{s:s, s:b}", "query", "sh", "shared", 1)), 1);
    assert_int_equal(
        items_of(ada, "connections__list", json_pack("{s:s}", "owner", "ada@shared.example")), 1);
    assert_int_equal(
        items_of(ada, "connections__list", json_pack("{s:s}", "owner", "bob@shared.example")), 0);
    assert_int_equal(
        items_of(ada, "connections__list", json_pack("{s:s}", "owner", "nobody@shared.example")),
        0);
    assert_int_equal(
        items_of(auditor, "connections__list", json_pack("{s:s}", "owner", "bob@shared.example")),
        1);
    world_done(auditor, "connections__get", json_pack("{s:s}", "connection", theirs));
    assert_int_equal(
        world_refused(ada, "connections__list", json_pack("{s:s}", "connector", "no-such")),
        MCP_CODE_NOT_FOUND);
}

/* --- connectors: the rows lead to their handlers --------------------------------- */

static void connectors_come_and_go_through_the_registry(void **state)
{
    json_t *shown;

    (void)state;
    add_connector("gone");
    assert_int_equal(
        items_of(world_root(), "connectors__list", json_pack("{s:s}", "query", "gone")), 1);
    shown = world_do(world_root(), "connectors__get", json_pack("{s:s}", "connector", "gone"));
    assert_string_equal(mcp_json_str(shown, "slug"), "gone");
    world_done(world_root(), "connectors__update", shown);
    world_done(world_root(), "connectors__delete", json_pack("{s:s}", "connector", "gone"));
    assert_int_equal(
        world_refused(world_root(), "connectors__create", json_pack("{s:s}", "slug", "half")),
        MCP_CODE_INVALID_REQUEST);
}

/* --- audit ----------------------------------------------------------------------- */

static void audit_filters_reach_the_query(void **state)
{
    const pd_actor_t *root = world_root();
    int64_t now = pd_wall_now().us;
    json_t *page;

    (void)state;
    world.rows_to_list = 5;
    page = world_do(root, "audit__list",
                    json_pack("{s:s, s:s, s:i, s:s}", "since", "1h", "until",
                              "2023-11-14T22:13:20Z", "limit", 3, "cursor", "1-77"));
    assert_in_range(world.query.since_us, now - INT64_C(3600000000),
                    pd_wall_now().us - INT64_C(3600000000));
    assert_int_equal(world.query.until_us, INT64_C(1700000000000000));
    assert_int_equal(world.query.limit, 3);
    assert_int_equal(world.query.before_seq, 77);
    assert_false(world.query.oldest_first);
    assert_string_equal(mcp_json_str(page, "next_cursor"), "1-98");
    json_decref(page);
    page = world_do(root, "audit__list", json_pack("{s:s}", "after", "1-12"));
    assert_int_equal(world.query.limit, 100);
    assert_int_equal(world.query.after_seq, 12);
    assert_true(world.query.oldest_first);
    assert_null(json_object_get(page, "next_cursor"));
    json_decref(page);
    assert_int_equal(world_refused(root, "audit__list", json_pack("{s:s}", "since", "soon")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "audit__list", json_pack("{s:s}", "cursor", "x")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "audit__list", json_pack("{s:s}", "after", "1-")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "audit__list", json_pack("{s:s}", "outcome", "fine")),
                     MCP_CODE_INVALID_REQUEST);
    world_done(root, "audit__get", json_pack("{s:s}", "audit", "1-1"));
    assert_int_equal(world_refused(root, "audit__get", json_pack("{s:s}", "audit", "1-2")),
                     MCP_CODE_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_by_name_and_described),
        cmocka_unit_test(secret_operations_are_flagged),
        cmocka_unit_test(endings_are_destructive),
        cmocka_unit_test(only_names_of_the_schema_are_known),
        cmocka_unit_test(whoami_says_who_and_what),
        cmocka_unit_test(an_email_has_a_form),
        cmocka_unit_test(a_member_is_named_by_id_or_email_in_any_case),
        cmocka_unit_test(an_email_that_comes_back_is_another_member),
        cmocka_unit_test(saving_one_field_leaves_the_others),
        cmocka_unit_test(suspension_holds_on_the_next_call_and_ends),
        cmocka_unit_test(lists_of_members_filter_and_page),
        cmocka_unit_test(nobody_gives_what_they_do_not_hold),
        cmocka_unit_test(an_owner_is_ended_by_owners_alone_and_never_the_last),
        cmocka_unit_test(a_token_is_shown_once_and_works_until_revoked),
        cmocka_unit_test(a_grant_is_for_the_endpoint_that_is_set),
        cmocka_unit_test(the_life_of_a_grant_is_a_number_or_a_span),
        cmocka_unit_test(scopes_are_named_and_not_beyond_the_askers),
        cmocka_unit_test(grants_of_others_are_as_if_they_did_not_exist),
        cmocka_unit_test(a_credential_appears_nowhere_and_binds_to_its_origin),
        cmocka_unit_test(labels_are_unique_where_they_meet),
        cmocka_unit_test(shared_connections_and_those_of_others_take_connection_admin),
        cmocka_unit_test(connectors_come_and_go_through_the_registry),
        cmocka_unit_test(audit_filters_reach_the_query),
    };

    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
