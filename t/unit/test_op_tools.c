/* tools list and get, and footprint get: whose tools they are, what a definition holds, and that a count is that of what is
 * advertised. */
#include "ops_world.h"

#include "../../proto/view_footprint.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const pd_actor_t *member_with(const char *name, const char *role, const char *scope,
                                     mcp_surface_t surface)
{
    return world_member(apr_pstrcat(world.scratch, name, "@example.com", (char *)NULL), role, scope,
                        surface);
}

static const pd_actor_t *member(const char *name, const char *role)
{
    return member_with(name, role, "mcp:destructive", MCP_SURFACE_MCP);
}

/* The connector "store" with a read, a write and a forbidden operation. */
static void create_store(void)
{
    world_done(world_root(), "connectors__create",
               json_pack("{s:s,s:s,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s,s:[{s:s,s:s,s:b,"
                         "s:s,s:{s:s}}]},{s:s,s:s,s:s,s:s,s:s}]}",
                         "slug", "store", "label", "Store", "base_url", "https://s.example", "auth",
                         "type", "none", "operations", "id", "list", "method", "GET", "path", "/items",
                         "summary", "All items", "description", "Lists.", "id", "add", "method", "POST",
                         "path", "/items/{item}", "description", "Adds.", "parameters", "name", "item",
                         "in", "path", "required", 1, "description", "Its name", "schema", "type",
                         "string", "id", "leak", "method", "GET", "path", "/secrets", "description",
                         "Leaks.", "classification", "forbidden"));
}

static void link_store(const char *label, const char *owner)
{
    json_t *args = json_pack("{s:s,s:s}", "connector", "store", "label", label);

    if (owner != NULL) {
        json_object_set_new(args, "owner", json_string(owner));
    } else {
        json_object_set_new(args, "shared", json_true());
    }
    world_done(world_root(), "connections__create", args);
}

static const char *names_of(json_t *result, const char *list)
{
    const json_t *array = json_object_get(result, list);
    const char *text = "";
    const json_t *item;
    size_t i;

    json_array_foreach(array, i, item)
    {
        text = apr_pstrcat(world.scratch, text, i == 0 ? "" : " ",
                           json_is_string(item) ? json_string_value(item) : mcp_json_str(item, "name"),
                           (char *)NULL);
    }
    json_decref(result);
    return text;
}

static const char *listed(const pd_actor_t *actor, json_t *args)
{
    return names_of(world_do(actor, "tools__list", args), "items");
}

/* --- list ---------------------------------------------------------------------------- */

static void a_list_holds_what_the_member_can_have(void **state)
{
    const pd_actor_t *ada = member("ada", "Member");
    const pd_actor_t *eve = member("eve", "Member");
    json_t *list;
    const json_t *first;

    (void)state;
    create_store();
    link_store("ours", NULL);
    link_store("hers", "ada@example.com");
    assert_string_equal(listed(ada, json_object()), "hers__add hers__list ours__add ours__list");
    assert_string_equal(listed(eve, json_object()), "ours__add ours__list");
    list = world_do(ada, "tools__list", json_object());
    first = json_array_get(json_object_get(list, "items"), 0);
    assert_string_equal(mcp_json_str(first, "connector"), "store");
    assert_string_equal(mcp_json_str(first, "account"), "hers");
    assert_string_equal(mcp_json_str(first, "classification"), "write");
    assert_int_equal(json_object_size(first), 4);
    json_decref(list);
}

static void a_list_is_filtered_and_paged(void **state)
{
    const pd_actor_t *ada = member("ada", "Member");
    const char *cursor;

    (void)state;
    create_store();
    link_store("ours", NULL);
    link_store("hers", "ada@example.com");
    assert_string_equal(listed(ada, json_pack("{s:s}", "query", "LIST")), "hers__list ours__list");
    assert_string_equal(listed(ada, json_pack("{s:s}", "account", "ours")), "ours__add ours__list");
    assert_string_equal(listed(ada, json_pack("{s:s,s:s}", "account", "store", "query", "add")),
                        "hers__add ours__add");
    assert_string_equal(listed(ada, json_pack("{s:s}", "account", "none")), "");
    cursor = world_take(world_do(ada, "tools__list", json_pack("{s:i}", "limit", 3)), "next_cursor");
    assert_string_equal(listed(ada, json_pack("{s:s}", "cursor", cursor)), "ours__list");
    assert_int_equal(world_refused(ada, "tools__list", json_pack("{s:s}", "cursor", "no tool")),
                     MCP_CODE_INVALID_REQUEST);
}

static void a_list_is_of_what_the_grant_can_call(void **state)
{
    const pd_actor_t *reader = member_with("bob", "Member", "mcp:read", MCP_SURFACE_MCP);

    (void)state;
    create_store();
    link_store("ours", NULL);
    assert_string_equal(listed(reader, json_object()), "ours__list");
    assert_string_equal(listed(reader, json_pack("{s:s}", "query", "add")), "");
    assert_string_equal(listed(reader, json_pack("{s:s}", "member", "bob@example.com")), "ours__list");
    assert_string_equal(listed(world_root(), json_pack("{s:s}", "member", "bob@example.com")),
                        "ours__add ours__list");
    world_done(world_root(), "settings__set",
               json_pack("{s:s,s:b}", "key", "advertise.step_up", "value", 1));
    assert_string_equal(listed(reader, json_object()), "ours__add ours__list");
}

static void anothers_list_takes_member_read_and_does_not_tell_who_exists(void **state)
{
    static const char *const operations[] = {"tools__list", "footprint__get"};
    const pd_actor_t *ada = member("ada", "Member");
    size_t i;

    (void)state;
    create_store();
    link_store("hers", "ada@example.com");
    (void)member("eve", "Member");
    for (i = 0; i < COUNT(operations); i++) {
        world_done(ada, operations[i], json_pack("{s:s}", "member", "ADA@example.com"));
        world_done(ada, operations[i], json_pack("{s:s}", "member", ada->member_id));
        assert_int_equal(
            world_refused(ada, operations[i], json_pack("{s:s}", "member", "eve@example.com")),
            MCP_CODE_PERMISSION_DENIED);
        assert_string_equal(world_last()->detail, "lacks=member:read");
        assert_int_equal(
            world_refused(ada, operations[i], json_pack("{s:s}", "member", "nobody@example.com")),
            MCP_CODE_PERMISSION_DENIED);
        assert_int_equal(world_refused(world_root(), operations[i],
                                       json_pack("{s:s}", "member", "nobody@example.com")),
                         MCP_CODE_NOT_FOUND);
    }
    assert_string_equal(listed(world_root(), json_pack("{s:s}", "member", "ada@example.com")),
                        "hers__add hers__list");
    assert_string_equal(listed(world_root(), json_object()), "");
    world_done(world_root(), "members__remove", json_pack("{s:s}", "member", "eve@example.com"));
}

/* --- get ------------------------------------------------------------------------------ */

static json_t *get(const pd_actor_t *actor, const char *a, const char *b)
{
    return world_do(actor, "tools__get", b != NULL ? json_pack("{s:[s,s]}", "names", a, b)
                                                   : json_pack("{s:[s]}", "names", a));
}

static void a_definition_is_the_one_that_is_advertised(void **state)
{
    const pd_actor_t *ada = member("ada", "Member");
    json_t *result;
    const json_t *def;

    (void)state;
    create_store();
    link_store("ours", NULL);
    result = get(ada, "ours__add", "elaichi__whoami__get");
    assert_int_equal(json_array_size(json_object_get(result, "unknown")), 0);
    def = json_array_get(json_object_get(result, "items"), 0);
    assert_string_equal(mcp_json_str(def, "name"), "ours__add");
    assert_string_equal(mcp_json_str(def, "description"), "Adds.");
    assert_string_equal(mcp_json_str(def, "connector"), "store");
    assert_string_equal(mcp_json_str(def, "account"), "ours");
    assert_string_equal(mcp_json_str(def, "classification"), "write");
    assert_non_null(json_object_get(
        json_object_get(json_object_get(def, "inputSchema"), "properties"), "item"));
    assert_true(json_is_false(json_object_get(json_object_get(def, "annotations"), "readOnlyHint")));
    def = json_array_get(json_object_get(result, "items"), 1);
    assert_string_equal(mcp_json_str(def, "name"), "elaichi__whoami__get");
    assert_string_equal(mcp_json_str(def, "classification"), "read");
    assert_non_null(json_object_get(def, "inputSchema"));
    json_decref(result);
}

static void what_the_actor_can_not_have_is_unknown_whatever_the_reason(void **state)
{
    static const char *const names[] = {"nobody__add",           "ours__nothing",
                                        "ours__leak",            "hers__list",
                                        "elaichi__members__list", "elaichi__nothing__get",
                                        "elaichi__",             "whoami__get",
                                        "elaichi__grants__create", "x"};
    const pd_actor_t *eve = member("eve", "Member");
    const pd_actor_t *reader = member_with("bob", "Member", "mcp:read", MCP_SURFACE_MCP);
    size_t i;

    (void)state;
    (void)member("ada", "Member");
    create_store();
    link_store("ours", NULL);
    link_store("hers", "ada@example.com");
    for (i = 0; i < COUNT(names); i++) {
        json_t *result = get(eve, names[i], "ours__list");

        assert_int_equal(json_array_size(json_object_get(result, "items")), 1);
        assert_string_equal(names_of(result, "unknown"), names[i]);
    }
    assert_string_equal(names_of(get(reader, "ours__add", "ours__list"), "unknown"), "ours__add");
    world_done(world_root(), "settings__set",
               json_pack("{s:s,s:b}", "key", "advertise.step_up", "value", 1));
    assert_string_equal(names_of(get(reader, "ours__add", "elaichi__connections__create"), "items"),
                        "ours__add elaichi__connections__create");
}

/* A connection whose label is a resource's name stands beside the operations, not before them. */
static void a_label_like_a_resource_hides_no_operation(void **state)
{
    const pd_actor_t *ada = member("ada", "Member");

    (void)state;
    create_store();
    link_store("connections", NULL);
    assert_string_equal(names_of(get(ada, "connections__list", "elaichi__connections__list"), "items"),
                        "connections__list elaichi__connections__list");
}

static void one_to_five_different_names_are_asked(void **state)
{
    const pd_actor_t *ada = member("ada", "Member");

    (void)state;
    assert_int_equal(world_refused(ada, "tools__get", json_pack("{s:[]}", "names")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(ada, "tools__get", json_pack("{s:[s,s]}", "names", "a", "a")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(ada, "tools__get",
                                   json_pack("{s:[s,s,s,s,s,s]}", "names", "a", "b", "c", "d", "e", "f")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(member("gus", "Guest"), "tools__get", json_pack("{s:[s]}", "names", "a")),
                     MCP_CODE_PERMISSION_DENIED);
}

/* --- footprint ------------------------------------------------------------------------ */

static json_int_t characters(const json_t *sum, const char *part)
{
    return mcp_json_int(json_object_get(sum, part), "characters", -1);
}

static void a_footprint_counts_what_is_advertised(void **state)
{
    static const char *const names[] = {"ours__add", "ours__list"};
    const pd_actor_t *ada = member("ada", "Member");
    mcp_footprint_t wanted = {0};
    json_t *result;
    const json_t *connected;
    size_t i;

    (void)state;
    create_store();
    link_store("ours", NULL);
    for (i = 0; i < COUNT(names); i++) {
        json_t *def = NULL;

        assert_int_equal(pd_view_definition(&world.core, ada, names[i], &def), PD_OK);
        assert_int_equal(json_object_del(def, "connector"), 0); /* beside the definition, not in the list */
        assert_int_equal(json_object_del(def, "account"), 0);
        assert_int_equal(json_object_del(def, "classification"), 0);
        assert_int_equal(mcp_footprint_add(def, &wanted), MCP_OK);
        json_decref(def);
    }
    result = world_do(ada, "footprint__get", json_object());
    connected = json_object_get(result, "connected");
    assert_int_equal(mcp_json_int(connected, "tools", -1), 2);
    assert_int_equal(characters(connected, "descriptions"), wanted.descriptions);
    assert_int_equal(characters(connected, "parameters"), wanted.parameters);
    assert_int_equal(characters(connected, "names"), wanted.names);
    assert_int_equal(characters(connected, "schemas"), wanted.schemas);
    assert_int_equal(characters(connected, "definitions"), wanted.definitions);
    assert_int_equal(mcp_json_int(json_object_get(connected, "schemas"), "tokens", -1),
                     mcp_footprint_tokens(wanted.schemas));
    assert_string_equal(
        mcp_json_str(json_array_get(json_object_get(result, "connectors"), 0), "connector"), "store");
    assert_string_equal(mcp_json_str(result, "mode"), "flat");
    assert_non_null(strstr(mcp_json_str(result, "note"), MCP_FOOTPRINT_NOTE));
    json_decref(result);
}

static void a_footprint_is_of_what_the_grant_lists(void **state)
{
    const pd_actor_t *reader = member_with("bob", "Member", "mcp:read", MCP_SURFACE_MCP);
    unsigned char bits[PD_CONTROL_BITS];
    json_t *result;
    int mine = pd_control_select(reader, bits);

    (void)state;
    create_store();
    link_store("ours", NULL);
    result = world_do(reader, "footprint__get", json_object());
    assert_int_equal(mcp_json_int(json_object_get(result, "connected"), "tools", -1), 1);
    assert_int_equal(mcp_json_int(json_object_get(result, "control"), "tools", -1), mine);
    assert_int_equal(mcp_json_int(result, "tools", -1), mine + 1);
    json_decref(result);
    /* asked about by another, all that his policy lets him have */
    result = world_do(world_root(), "footprint__get", json_pack("{s:s}", "member", "bob@example.com"));
    assert_int_equal(mcp_json_int(json_object_get(result, "connected"), "tools", -1), 2);
    assert_true(mcp_json_int(json_object_get(result, "control"), "tools", -1) > mine);
    assert_int_equal(json_array_size(json_object_get(result, "heaviest")), 10);
    json_decref(result);
}

static void a_footprint_tells_both_lists_and_what_collapsing_saves(void **state)
{
    const pd_actor_t *ada = member("ada", "Member");
    json_t *result;
    json_t *other;
    const json_t *flat;
    const json_t *collapsed;
    json_int_t saved;

    (void)state;
    result = world_do(ada, "footprint__get", json_object());
    assert_null(json_object_get(result, "collapsed")); /* nothing to hide */
    assert_null(json_object_get(result, "saved_per_mille"));
    assert_null(json_object_get(result, "registered"));
    other = result;
    create_store();
    link_store("ours", NULL);
    result = world_do(ada, "footprint__get", json_object());
    assert_string_not_equal(mcp_json_str(result, "digest"), mcp_json_str(other, "digest"));
    json_decref(other);
    flat = json_object_get(result, "flat");
    collapsed = json_object_get(result, "collapsed");
    assert_int_equal(characters(flat, "definitions"),
                     characters(json_object_get(result, "control"), "definitions") +
                         characters(json_object_get(result, "connected"), "definitions"));
    assert_int_equal(mcp_json_int(collapsed, "tools", -1),
                     mcp_json_int(json_object_get(result, "control"), "tools", -1) + 2);
    assert_true(characters(collapsed, "instructions") > characters(flat, "instructions"));
    saved = (characters(flat, "definitions") - characters(collapsed, "definitions")) * 1000 /
            characters(flat, "definitions");
    assert_int_equal(mcp_json_int(result, "saved_per_mille", -9999), saved);
    assert_int_equal(mcp_json_int(result, "callable", -1), mcp_json_int(result, "tools", -2));
    assert_int_equal(mcp_json_int(result, "listed", -1), mcp_json_int(result, "tools", -2));
    other = world_do(ada, "footprint__get", json_object());
    assert_string_equal(mcp_json_str(result, "digest"), mcp_json_str(other, "digest"));
    json_decref(other);
    json_decref(result);
    result = world_do(world_root(), "footprint__get", json_pack("{s:s}", "member", "ada@example.com"));
    assert_int_equal(mcp_json_int(result, "registered", -1), pd_control_count() + 3); /* one of them forbidden */
    json_decref(result);
}

static void who_runs_nothing_lists_nothing(void **state)
{
    json_t *result;

    (void)state;
    (void)member_with("gus", "Guest", "mcp:read", MCP_SURFACE_REST);
    create_store();
    link_store("ours", NULL);
    result = world_do(world_root(), "footprint__get", json_pack("{s:s}", "member", "gus@example.com"));
    assert_int_equal(mcp_json_int(result, "tools", -1), 0);
    assert_int_equal(characters(json_object_get(result, "control"), "definitions"), 0);
    json_decref(result);
    assert_string_equal(listed(world_root(), json_pack("{s:s}", "member", "gus@example.com")), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_list_holds_what_the_member_can_have),
        TEST(a_list_is_filtered_and_paged),
        TEST(a_list_is_of_what_the_grant_can_call),
        TEST(anothers_list_takes_member_read_and_does_not_tell_who_exists),
        TEST(a_definition_is_the_one_that_is_advertised),
        TEST(what_the_actor_can_not_have_is_unknown_whatever_the_reason),
        TEST(a_label_like_a_resource_hides_no_operation),
        TEST(one_to_five_different_names_are_asked),
        TEST(a_footprint_counts_what_is_advertised),
        TEST(a_footprint_is_of_what_the_grant_lists),
        TEST(a_footprint_tells_both_lists_and_what_collapsing_saves),
        TEST(who_runs_nothing_lists_nothing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
