/* What operations do not give away: by what they show, by what they refuse, by what they take off. */
#include "policy_shop.h"

#define ENTRY(operation, more)                                                                     \
    "{\"connector\":\"shop\",\"operation\":\"" operation "\",\"connections\":[\"acc\"]" more "}"

/* A member of a role of his own, with these permissions as JSON. */
static const pd_actor_t *holder(const char *email, const char *role, const char *permissions)
{
    shop_done("roles__create", apr_pstrcat(world.scratch, "{\"name\":\"", role,
                                           "\",\"permissions\":", permissions, "}", (char *)NULL));
    return world_member(email, role, "mcp:destructive", MCP_SURFACE_REST);
}

static mcp_code_t refused_as(const pd_actor_t *actor, const char *name, const char *args)
{
    return world_refused(actor, name, shop_json(args));
}

static json_t *do_as(const pd_actor_t *actor, const char *name, const char *args)
{
    return world_do(actor, name, shop_json(args));
}

/* --- connectors that policy names ------------------------------------------------- */

static void a_connector_that_policy_names_stays(void **state)
{
    const char *rule;

    (void)state;
    shop_done("connections__delete", "{\"connection\":\"acc\"}");
    rule = shop_id("restrictions__create",
                   "{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":"
                   "[{\"connector\":\"shop\",\"operation\":\"get\"}]}",
                   "restriction");
    assert_int_equal(shop_refused("connectors__delete", "{\"connector\":\"shop\"}"),
                     MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.hint, "restrictions list"));
    world_done(world_root(), "restrictions__delete", json_pack("{s:s}", "restriction", rule));
    shop_done("toolboxes__create",
              "{\"name\":\"box\",\"entries\":[{\"connector\":\"shop\",\"operation\":\"list\","
              "\"connections\":[\"@own\"]}]}");
    assert_int_equal(shop_refused("connectors__delete", "{\"connector\":\"shop\"}"),
                     MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.hint, "toolboxes list"));
    shop_done("toolboxes__update", "{\"toolbox\":\"box\",\"entries\":[]}");
    shop_done("connectors__delete", "{\"connector\":\"shop\"}");
}

static void what_a_name_was_pinned_to_keeps_its_connector_too(void **state)
{
    (void)state;
    shop_done("restrictions__create", "{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},"
                                      "\"items\":[{\"tool\":\"acc__get\"}]}");
    shop_done("connections__delete", "{\"connection\":\"acc\"}");
    assert_int_equal(shop_refused("connectors__delete", "{\"connector\":\"shop\"}"),
                     MCP_CODE_CONFLICT);
}

/* --- explain and restrictions ----------------------------------------------------- */

static void explaining_another_takes_reading_members(void **state)
{
    const pd_actor_t *blind = holder("eve@example.com", "RR", "[\"restriction:read\"]");
    const pd_actor_t *seeing =
        holder("max@example.com", "RM", "[\"restriction:read\",\"member:read\"]");
    static const char about_ada[] =
        "{\"member\":\"ada@example.com\",\"connector\":\"shop\",\"operation\":\"get\"}";
    static const char about_nobody[] =
        "{\"member\":\"zoe@example.com\",\"connector\":\"shop\",\"operation\":\"get\"}";
    json_t *shown;

    (void)state;
    world_done(ada, "connections__create",
               shop_json("{\"connector\":\"shop\",\"label\":\"her-secret\"}"));
    assert_int_equal(refused_as(blind, "restrictions__explain", about_ada),
                     MCP_CODE_PERMISSION_DENIED);
    assert_non_null(strstr(world.message, "member:read"));
    assert_int_equal(refused_as(blind, "restrictions__explain", about_nobody),
                     MCP_CODE_PERMISSION_DENIED);
    json_decref(do_as(blind, "restrictions__explain",
                      "{\"member\":\"eve@example.com\",\"tool\":\"acc__get\"}"));
    shown = do_as(seeing, "restrictions__explain", about_ada);
    assert_false(shop_holds(shown, "her-secret"));
    assert_true(shop_holds(shown, "(private)"));
    assert_true(shop_holds(shown, "acc__get"));
    json_decref(shown);
    shown = do_as(world_root(), "restrictions__explain", about_ada);
    assert_true(shop_holds(shown, "her-secret__get"));
    json_decref(shown);
    /* that somebody has such a label is not told either */
    shown = do_as(seeing, "restrictions__explain",
                  "{\"member\":\"max@example.com\",\"tool\":\"her-secret__get\"}");
    assert_string_equal(shop_str(shown, "answer"), "unknown");
    json_decref(shown);
}

static void whom_a_rule_is_for_is_told_by_id_to_those_who_read_no_members(void **state)
{
    const pd_actor_t *blind = holder("eve@example.com", "RR", "[\"restriction:read\"]");
    json_t *shown;

    (void)state;
    shop_done("restrictions__create", "{\"effect\":\"block\",\"name\":\"r\",\"target\":"
                                      "{\"member\":\"ada@example.com\"},\"items\":[]}");
    shown = do_as(blind, "restrictions__list", "{}");
    assert_false(shop_holds(shown, "ada@example.com"));
    assert_true(shop_holds(shown, ada->member_id));
    json_decref(shown);
    shown = do_as(blind, "restrictions__get", "{\"restriction\":\"r\"}");
    assert_false(shop_holds(shown, "ada@example.com"));
    json_decref(shown);
    assert_int_equal(refused_as(blind, "restrictions__list", "{\"member\":\"ada@example.com\"}"),
                     MCP_CODE_PERMISSION_DENIED);
    json_decref(do_as(blind, "restrictions__list", "{\"member\":\"eve@example.com\"}"));
    shown = shop_do("restrictions__get", "{\"restriction\":\"r\"}");
    assert_true(shop_holds(shown, "ada@example.com"));
    json_decref(shown);
}

/* --- toolboxes -------------------------------------------------------------------- */

#define TOOLBOX_WRITER "[\"toolbox:read\",\"toolbox:write\",\"connector:read\"]"

static void emails_of_a_toolbox_are_for_those_who_read_members(void **state)
{
    const pd_actor_t *writer = holder("eve@example.com", "TW", TOOLBOX_WRITER);
    json_t *shown;

    (void)state;
    shop_done("toolboxes__create",
              "{\"name\":\"box\",\"members\":[\"ada@example.com\"],\"entries\":[]}");
    shown = do_as(writer, "toolboxes__get", "{\"toolbox\":\"box\"}");
    assert_null(json_object_get(shown, "emails"));
    assert_int_equal(shop_size(shown, "members"), 1);
    json_decref(shown);
    shown = shop_do("toolboxes__get", "{\"toolbox\":\"box\"}");
    assert_string_equal(json_string_value(shop_at(shown, "emails", 0)), "ada@example.com");
    json_decref(shown);
}

static void what_is_withheld_is_in_no_toolbox_that_one_writes(void **state)
{
    static const char *const there[] = {
        "{\"name\":\"b\",\"entries\":[" ENTRY("make", ",\"frozen\":{\"zzz\":1}") "]}",
        "{\"name\":\"b\",\"entries\":[{\"connector\":\"desk\",\"operation\":\"list\","
        "\"connections\":[\"support\"],\"frozen\":{\"zzz\":1}}]}",
        "{\"name\":\"b\",\"entries\":[" ENTRY("list", "") ",{\"connector\":\"shop\","
        "\"operation\":\"get\",\"connections\":[\"support\"]}]}"};
    static const char *const not_there[] = {
        "{\"name\":\"b\",\"entries\":[" ENTRY("mako", ",\"frozen\":{\"zzz\":1}") "]}",
        "{\"name\":\"b\",\"entries\":[{\"connector\":\"dusk\",\"operation\":\"list\","
        "\"connections\":[\"support\"],\"frozen\":{\"zzz\":1}}]}",
        "{\"name\":\"b\",\"entries\":[" ENTRY("list", "") ",{\"connector\":\"shop\","
        "\"operation\":\"get\",\"connections\":[\"supporx\"]}]}"};
    const pd_actor_t *writer = holder("eve@example.com", "TW", TOOLBOX_WRITER);
    size_t i;

    (void)state;
    shop_done("restrictions__create",
              "{\"effect\":\"block\",\"target\":{\"role\":\"TW\"},\"items\":[{\"connector\":\"shop\","
              "\"operation\":\"make\"},{\"connector\":\"desk\"}]}");
    for (i = 0; i < COUNT(there); i++) {
        char message[512];
        char hint[512];
        char *at;

        assert_int_equal(refused_as(writer, "toolboxes__create", there[i]), MCP_CODE_NOT_FOUND);
        (void)snprintf(message, sizeof(message), "%s", world.message);
        (void)snprintf(hint, sizeof(hint), "%s", world.hint);
        assert_int_equal(refused_as(writer, "toolboxes__create", not_there[i]),
                         MCP_CODE_NOT_FOUND);
        assert_string_equal(hint, world.hint);
        at = strstr(message, i == 0 ? "make" : i == 1 ? "desk" : "support\"");
        assert_non_null(at);
        at[i == 0 ? 3 : i == 1 ? 1 : 6] = i == 0 ? 'o' : i == 1 ? 'u' : 'x';
        assert_string_equal(message, world.message);
    }
    json_decref(do_as(writer, "toolboxes__create",
                      "{\"name\":\"b\",\"entries\":[" ENTRY("list", "") "]}"));
}

/* entries of the box as the actor is shown them, changed by `more` (members of the first). */
static json_t *update_of(json_t *shown, const char *more)
{
    json_t *entries = json_deep_copy(json_object_get(shown, "entries"));
    json_t *change = shop_json(more);

    assert_int_equal(json_object_update(json_array_get(entries, 0), change), 0);
    json_decref(change);
    return json_pack("{s:s, s:o}", "toolbox", "box", "entries", entries);
}

static void an_entry_on_what_is_withheld_stays_as_it_is(void **state)
{
    static const char *const changes[] = {
        "{\"title\":\"t\"}", "{\"name\":\"other\"}", "{\"frozen\":{\"title\":\"s3cret\"}}",
        "{\"frozen\":{}}", "{\"defaults\":{}}", "{\"connections\":[\"@own\"]}",
        "{\"always_visible\":true}", "{\"description\":\"d\"}"};
    const pd_actor_t *writer = holder("eve@example.com", "TW", TOOLBOX_WRITER);
    json_t *args;
    json_t *shown;
    json_t *again;
    size_t i;

    (void)state;
    shop_done("toolboxes__create",
              "{\"name\":\"box\",\"entries\":[" ENTRY(
                  "make", ",\"frozen\":{\"title\":\"s3cret\"},\"defaults\":{\"meta\":{\"owner\":"
                          "\"s3cret\"}}") "," ENTRY("list", "") "]}");
    shop_done("restrictions__create",
              "{\"effect\":\"block\",\"target\":{\"role\":\"TW\"},\"items\":[{\"connector\":\"shop\","
              "\"operation\":\"make\"}]}");
    shown = do_as(writer, "toolboxes__get", "{\"toolbox\":\"box\"}");
    assert_false(shop_holds(shown, "s3cret"));
    assert_true(mcp_json_bool(shop_at(shown, "entries", 0), "withheld"));
    assert_null(json_object_get(shop_at(shown, "entries", 1), "withheld"));
    for (i = 0; i < COUNT(changes); i++) {
        if (world_refused(writer, "toolboxes__update", update_of(shown, changes[i])) !=
            MCP_CODE_CONFLICT) {
            fail_msg("%s: %s", changes[i], world.message);
        }
    }
    args = update_of(shown, "{}");
    (void)json_object_del(json_array_get(json_object_get(args, "entries"), 0), "entry");
    assert_int_equal(world_refused(writer, "toolboxes__update", args), MCP_CODE_NOT_FOUND);
    /* as it is shown it is written again, and others may change beside it */
    args = update_of(shown, "{}");
    json_object_set_new(json_array_get(json_object_get(args, "entries"), 1), "title",
                        json_string("T"));
    again = world_do(writer, "toolboxes__update", args);
    assert_string_equal(shop_str(shop_at(again, "entries", 1), "title"), "T");
    json_decref(again);
    json_decref(shown);
    shown = shop_do("toolboxes__get", "{\"toolbox\":\"box\"}");
    assert_string_equal(
        shop_str(json_object_get(shop_at(shown, "entries", 0), "frozen"), "title"), "s3cret");
    assert_true(shop_holds(json_object_get(shop_at(shown, "entries", 0), "defaults"), "s3cret"));
    json_decref(shown);
}

static void a_document_takes_somebody_who_sees_the_entries(void **state)
{
    const pd_actor_t *writer =
        holder("eve@example.com", "TW", "[\"toolbox:write\",\"policy:read\",\"policy:write\"]");

    (void)state;
    shop_done("toolboxes__create", "{\"name\":\"box\",\"entries\":[" ENTRY(
                                       "make", ",\"frozen\":{\"title\":\"s3cret\"}") "]}");
    json_decref(do_as(writer, "policy__export", "{\"sections\":[\"toolboxes\"]}"));
    shop_done("restrictions__create",
              "{\"effect\":\"block\",\"target\":{\"role\":\"TW\"},\"items\":[{\"connector\":\"shop\","
              "\"operation\":\"make\"}]}");
    assert_int_equal(refused_as(writer, "policy__export", "{\"sections\":[\"toolboxes\"]}"),
                     MCP_CODE_CONFLICT);
    assert_int_equal(refused_as(writer, "policy__apply",
                                "{\"policy\":{\"version\":1,\"toolboxes\":[]},\"prune\":true}"),
                     MCP_CODE_CONFLICT);
}

/* --- one's own roles -------------------------------------------------------------- */

static void nobody_takes_off_himself_what_he_is_restricted_by(void **state)
{
    static const char permissions[] = "[\"member:write\",\"member:read\",\"tool:execute\"]";
    const pd_actor_t *eve = holder("eve@example.com", "Bound", permissions);

    (void)state;
    shop_done("roles__create", apr_pstrcat(world.scratch, "{\"name\":\"Free\",\"permissions\":",
                                           permissions, "}", (char *)NULL));
    shop_done("members__update", "{\"member\":\"ada@example.com\",\"roles\":[\"Bound\"]}");
    json_decref(do_as(eve, "members__update",
                      "{\"member\":\"eve@example.com\",\"roles\":[\"Bound\",\"Free\"]}"));
    shop_done("restrictions__create", "{\"effect\":\"block\",\"target\":{\"role\":\"Bound\"},"
                                      "\"items\":[{\"connector\":\"shop\"}]}");
    assert_int_equal(refused_as(eve, "members__update",
                                "{\"member\":\"eve@example.com\",\"roles\":[\"Free\"]}"),
                     MCP_CODE_PERMISSION_DENIED);
    assert_non_null(strstr(world.message, "restriction:write"));
    assert_int_equal(refused_as(eve, "members__update",
                                "{\"member\":\"eve@example.com\",\"roles\":[]}"),
                     MCP_CODE_PERMISSION_DENIED);
    /* roles that nothing is about come and go, and others' are no matter of one's own */
    json_decref(do_as(eve, "members__update",
                      "{\"member\":\"eve@example.com\",\"roles\":[\"Bound\"]}"));
    json_decref(do_as(eve, "members__update",
                      "{\"member\":\"ada@example.com\",\"roles\":[\"Free\"]}"));
    shop_done("roles__update", "{\"role\":\"Bound\",\"permissions\":[\"member:write\","
                               "\"member:read\",\"tool:execute\",\"restriction:write\"]}");
    assert_int_equal(world_access("none", MCP_SURFACE_REST, WORLD_RESOURCE, NULL),
                     MCP_CODE_INVALID_TOKEN);
    json_decref(do_as(eve, "members__update",
                      "{\"member\":\"eve@example.com\",\"roles\":[\"Free\"]}"));
}

/* --- connections ------------------------------------------------------------------ */

static void a_taken_label_does_not_say_by_what(void **state)
{
    static const char *const labels[] = {"acc", "mine", "box", "elaichi", "corp-tools"};
    char message[512] = "";
    char hint[512] = "";
    size_t i;

    (void)state;
    shop_done("toolboxes__create", "{\"name\":\"box\",\"entries\":[]}");
    json_decref(do_as(ada, "connections__create", "{\"connector\":\"shop\",\"label\":\"mine\"}"));
    json_decref(do_as(ada, "connections__create", "{\"connector\":\"shop\",\"label\":\"else\"}"));
    for (i = 0; i < COUNT(labels); i++) {
        assert_int_equal(world_refused(ada, "connections__create",
                                       json_pack("{s:s, s:s}", "connector", "shop", "label",
                                                 labels[i])),
                         MCP_CODE_CONFLICT);
        assert_true(i == 0 || strcmp(message, world.message) == 0);
        assert_true(i == 0 || strcmp(hint, world.hint) == 0);
        (void)snprintf(message, sizeof(message), "%s", world.message);
        (void)snprintf(hint, sizeof(hint), "%s", world.hint);
        assert_int_equal(world_refused(ada, "connections__update",
                                       json_pack("{s:s, s:s}", "connection", "else", "label",
                                                 labels[i])),
                         MCP_CODE_CONFLICT);
        assert_string_equal(message, world.message);
        assert_string_equal(hint, world.hint);
    }
    assert_int_equal(shop_refused("connections__create",
                                  "{\"connector\":\"shop\",\"label\":\"mine\",\"shared\":true}"),
                     MCP_CODE_CONFLICT);
    assert_string_equal(message, world.message);
}

static void what_serves_toolboxes_alone_is_shown_to_whom_it_serves(void **state)
{
    const pd_actor_t *reader =
        holder("eve@example.com", "CR", "[\"connection:read\",\"connection:read_all\"]");
    json_t *shown;

    (void)state;
    shop_done("connections__update", "{\"connection\":\"acc\",\"toolbox_only\":true}");
    shop_done("toolboxes__create", "{\"name\":\"box\",\"members\":[\"ada@example.com\"],"
                                   "\"entries\":[" ENTRY("list", "") "]}");
    shown = do_as(bob, "connections__list", "{}");
    assert_false(shop_holds(shown, "\"acc\""));
    assert_true(shop_holds(shown, "\"support\""));
    json_decref(shown);
    assert_int_equal(refused_as(bob, "connections__get", "{\"connection\":\"acc\"}"),
                     MCP_CODE_NOT_FOUND);
    shown = do_as(ada, "connections__get", "{\"connection\":\"acc\"}");
    assert_null(json_object_get(shown, "base"));
    assert_null(json_object_get(shown, "variables"));
    json_decref(shown);
    shown = do_as(ada, "connections__list", "{}");
    assert_true(shop_holds(shown, "\"acc\""));
    assert_false(shop_holds(shown, "https://shop.example"));
    json_decref(shown);
    shown = do_as(reader, "connections__get", "{\"connection\":\"acc\"}");
    assert_string_equal(shop_str(shown, "base"), "https://shop.example");
    json_decref(shown);
    /* one's own is one's own */
    json_decref(do_as(bob, "connections__create",
                      "{\"connector\":\"shop\",\"label\":\"bobs\",\"toolbox_only\":true}"));
    shown = do_as(bob, "connections__get", "{\"connection\":\"bobs\"}");
    assert_string_equal(shop_str(shown, "base"), "https://shop.example");
    json_decref(shown);
}

static mcp_code_t connect_as(const pd_actor_t *actor, const char *label, const char *owner)
{
    json_t *made = world_invoke(actor, "connections__create",
                                json_pack("{s:s, s:s, s:s*}", "connector", "shop", "label", label,
                                          "owner", owner));

    json_decref(made);
    return world.code;
}

static void own_connections_have_a_bound(void **state)
{
    (void)state;
    shop_done("settings__set", "{\"key\":\"connections.max_own\",\"value\":2}");
    world_follow();
    assert_int_equal(connect_as(ada, "one", NULL), MCP_CODE_NONE);
    assert_int_equal(connect_as(ada, "two", NULL), MCP_CODE_NONE);
    assert_int_equal(connect_as(ada, "three", NULL), MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.hint, "connections.max_own"));
    assert_int_equal(connect_as(world_root(), "three", "ada@example.com"), MCP_CODE_CONFLICT);
    assert_int_equal(connect_as(bob, "one", NULL), MCP_CODE_NONE);
    shop_done("connections__create", "{\"connector\":\"shop\",\"label\":\"all\",\"shared\":true}");
    json_decref(do_as(ada, "connections__delete", "{\"connection\":\"one\"}"));
    assert_int_equal(connect_as(ada, "three", NULL), MCP_CODE_NONE);
    shop_done("settings__set", "{\"key\":\"connections.max_own\",\"value\":0}");
    assert_int_equal(connect_as(bob, "more", NULL), MCP_CODE_CONFLICT);
}

static void a_dry_run_of_somebody_who_reads_no_members_is_about_himself(void **state)
{
    json_t *shown = do_as(ada, "connections__create",
                          "{\"connector\":\"shop\",\"label\":\"hers\",\"dry_run\":true}");
    const json_t *impact = json_object_get(shown, "impact");
    const json_t *group = shop_at(impact, "groups", 0);

    (void)state;
    assert_true(mcp_json_bool(impact, "only_you"));
    assert_int_equal(mcp_json_int(impact, "members", -1), 1);
    assert_true(shop_holds(json_object_get(group, "gains"), "hers__list"));
    json_decref(shown);
    shown = shop_do("connectors__create", SHOP_FILE("third", DESK_OPS));
    json_decref(shown);
    shown = shop_do("connections__create", "{\"connector\":\"third\",\"label\":\"ours\","
                                           "\"shared\":true,\"dry_run\":true}");
    assert_null(json_object_get(json_object_get(shown, "impact"), "only_you"));
    assert_true(mcp_json_int(json_object_get(shown, "impact"), "members", -1) >= 2);
    json_decref(shown);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, shop_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connector_that_policy_names_stays),
        TEST(what_a_name_was_pinned_to_keeps_its_connector_too),
        TEST(explaining_another_takes_reading_members),
        TEST(whom_a_rule_is_for_is_told_by_id_to_those_who_read_no_members),
        TEST(emails_of_a_toolbox_are_for_those_who_read_members),
        TEST(what_is_withheld_is_in_no_toolbox_that_one_writes),
        TEST(an_entry_on_what_is_withheld_stays_as_it_is),
        TEST(a_document_takes_somebody_who_sees_the_entries),
        TEST(nobody_takes_off_himself_what_he_is_restricted_by),
        TEST(a_taken_label_does_not_say_by_what),
        TEST(what_serves_toolboxes_alone_is_shown_to_whom_it_serves),
        TEST(own_connections_have_a_bound),
        TEST(a_dry_run_of_somebody_who_reads_no_members_is_about_himself)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
