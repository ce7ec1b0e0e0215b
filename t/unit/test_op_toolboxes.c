/* The toolboxes resource over the real store: what is pinned, refused and warned of, who sees what
 * of it, and the name space that it shares with connections. */
#include "policy_shop.h"

#define ENTRY(operation, more)                                                                     \
    "{\"connector\":\"shop\",\"operation\":\"" operation "\",\"connections\":[\"acc\"]" more "}"
#define BOX(entries) "{\"name\":\"box\",\"roles\":[\"Member\"],\"entries\":[" entries "]}"

static json_t *get_as(const pd_actor_t *actor, const char *named)
{
    return world_do(actor, "toolboxes__get", json_pack("{s:s}", "toolbox", named));
}

static json_t *get(const char *named)
{
    return get_as(world_root(), named);
}

static size_t list_size(const pd_actor_t *actor, const char *args)
{
    json_t *list = world_do(actor, "toolboxes__list", shop_json(args));
    size_t size = shop_size(list, "items");

    json_decref(list);
    return size;
}

/* --- create ---------------------------------------------------------------------- */

static void a_toolbox_is_named_by_labels_and_kept_by_ids(void **state)
{
    json_t *made =
        shop_do("toolboxes__create",
                "{\"name\":\"box\",\"description\":\"d\",\"roles\":[\"Member\"],"
                "\"members\":[\"ada@example.com\"],\"entries\":[{\"connector\":\"shop\","
                "\"operation\":\"list\",\"connections\":[\"acc\"],\"name\":\"find\",\"title\":\"T\","
                "\"description\":\"Finds.\",\"defaults\":{\"q\":\"a\"},\"frozen\":{\"max\":5},"
                "\"always_visible\":true},{\"connector\":\"desk\",\"operation\":\"close.all\","
                "\"connections\":[\"@own\"]}]}");
    const char *id = apr_pstrdup(world.scratch, shop_str(made, "toolbox"));
    const json_t *entry = shop_at(made, "entries", 0);
    json_t *by_id = get(id);
    json_t *by_name = get("box");

    (void)state;
    assert_true(strncmp(id, "tbx_", 4) == 0);
    assert_true(json_equal(by_id, by_name));
    assert_string_equal(json_string_value(shop_at(made, "members", 0)), ada->member_id);
    assert_string_equal(json_string_value(shop_at(made, "emails", 0)), "ada@example.com");
    assert_true(strncmp(shop_str(entry, "entry"), "ent_", 4) == 0);
    assert_true(strncmp(shop_str(entry, "connector"), "con_", 4) == 0);
    assert_string_equal(shop_str(entry, "tool"), "box__find");
    assert_string_equal(json_string_value(shop_at(entry, "connections", 0)), "acc");
    assert_int_equal(mcp_json_int(json_object_get(entry, "frozen"), "max", 0), 5);
    assert_true(mcp_json_bool(entry, "always_visible"));
    entry = shop_at(made, "entries", 1);
    assert_string_equal(shop_str(entry, "name"), "close_all");
    assert_string_equal(json_string_value(shop_at(entry, "connections", 0)), "@own");
    assert_non_null(strstr(world.rows[world.seq - 2].detail, id));
    assert_int_equal(mcp_json_int(made, "tools", 0), 2);
    json_decref(made);
    json_decref(by_id);
    json_decref(by_name);
}

static void a_connection_goes_on_by_its_id(void **state)
{
    json_t *shown;

    (void)state;
    shop_done("toolboxes__create", BOX(ENTRY("list", "")));
    shop_done("connections__update", "{\"connection\":\"acc\",\"label\":\"other\"}");
    shown = get("box");
    assert_string_equal(json_string_value(shop_at(shop_at(shown, "entries", 0), "connections", 0)),
                        "other");
    json_decref(shown);
    shop_done("connections__delete", "{\"connection\":\"other\"}");
    shown = get("box");
    assert_int_equal(shop_size(shop_at(shown, "entries", 0), "missing"), 1);
    /* what is shown can be written again, with what is missing */
    world_done(world_root(), "toolboxes__update",
               json_pack("{s:s, s:O}", "toolbox", "box", "entries",
                         json_object_get(shown, "entries")));
    json_decref(shown);
}

#define LONG40 "a234567890b234567890c234567890d234567890"

static void what_can_not_be_meant_is_refused(void **state)
{
    static const struct {
        const char *args;
        mcp_code_t code;
        const char *part; /* of the message */
    } table[] = {
        {"{\"name\":\"Box\",\"entries\":[]}", MCP_CODE_INVALID_REQUEST, "32 characters"},
        {"{\"name\":\"elaichi\",\"entries\":[]}", MCP_CODE_CONFLICT, "reserved"},
        {"{\"name\":\"corp-tools\",\"entries\":[]}", MCP_CODE_CONFLICT, "reserved"},
        {"{\"name\":\"acc\",\"entries\":[]}", MCP_CODE_CONFLICT, "label"},
        {"{\"name\":\"box\"}", MCP_CODE_INVALID_REQUEST, "entries"},
        {"{\"name\":\"box\",\"roles\":[\"None\"],\"entries\":[]}", MCP_CODE_NOT_FOUND, "role"},
        {"{\"name\":\"box\",\"members\":[\"x@example.com\"],\"entries\":[]}", MCP_CODE_NOT_FOUND,
         "member"},
        {BOX("{\"connector\":\"none\",\"operation\":\"list\",\"connections\":[\"acc\"]}"),
         MCP_CODE_NOT_FOUND, "\"none\""},
        {BOX(ENTRY("list", "") "," ENTRY("none", "")), MCP_CODE_NOT_FOUND,
         "Entry number 2: the connector shop has no operation \"none\""},
        {BOX(ENTRY("nuke", "")), MCP_CODE_INVALID_REQUEST, "forbidden"},
        {BOX("{\"connector\":\"shop\",\"operation\":\"list\",\"connections\":[]}"),
         MCP_CODE_INVALID_REQUEST, "connections"},
        {BOX("{\"connector\":\"shop\",\"operation\":\"list\",\"connections\":[\"none\"]}"),
         MCP_CODE_NOT_FOUND, "\"none\""},
        {BOX("{\"connector\":\"shop\",\"operation\":\"list\",\"connections\":[\"support\"]}"),
         MCP_CODE_INVALID_REQUEST, "on the connector desk"},
        {BOX("{\"connector\":\"shop\",\"operation\":\"list\",\"connections\":[\"acc\",\"@own\"]}"),
         MCP_CODE_INVALID_REQUEST, "beside no other"},
        {BOX(ENTRY("list", ",\"name\":\"a.b\"")), MCP_CODE_INVALID_REQUEST, "letters, digits"},
        {BOX(ENTRY("list", ",\"name\":\"" LONG40 "a234567890b234567890\"")),
         MCP_CODE_INVALID_REQUEST, "59 at most"},
        {BOX(ENTRY("list", ",\"name\":\"x_abcdefghij23\"")), MCP_CODE_INVALID_REQUEST, "hashed"},
        {BOX(ENTRY("list", "") "," ENTRY("get", ",\"name\":\"list\"")), MCP_CODE_CONFLICT,
         "Entry number 2"},
        {BOX(ENTRY("list", ",\"entry\":\"ent_1\"")), MCP_CODE_NOT_FOUND, "no such entry"},
        {BOX(ENTRY("list", ",\"frozen\":{\"zzz\":\"s3cret\"}")), MCP_CODE_INVALID_REQUEST,
         "`frozen`"},
        {BOX(ENTRY("make", ",\"frozen\":{\"/meta/zzz\":\"s3cret\"}")), MCP_CODE_INVALID_REQUEST,
         "`frozen`"},
        {BOX(ENTRY("list", ",\"defaults\":{\"zzz\":\"s3cret\"}")), MCP_CODE_INVALID_REQUEST,
         "`defaults`"},
        {BOX(ENTRY("list", ",\"frozen\":{\"max\":\"s3cret\"}")), MCP_CODE_INVALID_REQUEST,
         "none that its argument takes"},
        {BOX(ENTRY("list", ",\"defaults\":{\"max\":\"s3cret\"}")), MCP_CODE_INVALID_REQUEST,
         "none that its argument takes"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(table); i++) {
        mcp_code_t code = shop_refused("toolboxes__create", table[i].args);

        if (code != table[i].code || strstr(world.message, table[i].part) == NULL) {
            fail_msg("%s: %s: %s", table[i].args, mcp_code_text(code), world.message);
        }
        assert_null(strstr(world.message, "s3cret"));
        assert_null(strstr(world.hint, "s3cret"));
        assert_null(strstr(world.message, "zzz"));
    }
    assert_int_equal(list_size(world_root(), "{}"), 0);
}

static void an_unknown_key_is_answered_with_the_arguments(void **state)
{
    (void)state;
    assert_int_equal(
        shop_refused("toolboxes__create", BOX(ENTRY("list", ",\"frozen\":{\"qq\":1}"))),
        MCP_CODE_INVALID_REQUEST);
    assert_non_null(strstr(world.hint, "q, max"));
}

static void a_place_inside_an_argument_can_be_frozen(void **state)
{
    json_t *made =
        shop_do("toolboxes__create",
                BOX(ENTRY("make", ",\"frozen\":{\"/meta/owner\":\"me\",\"title\":\"t\"}")));

    (void)state;
    assert_string_equal(
        shop_str(json_object_get(shop_at(made, "entries", 0), "frozen"), "/meta/owner"), "me");
    json_decref(made);
}

static void another_members_connection_serves_no_toolbox(void **state)
{
    const char *id = shop_id("connections__create",
                             "{\"connector\":\"shop\",\"label\":\"mine\","
                             "\"owner\":\"ada@example.com\"}",
                             "connection");

    (void)state;
    assert_int_equal(
        world_refused(world_root(), "toolboxes__create",
                      json_pack("{s:s, s:[{s:s, s:s, s:[s]}]}", "name", "box", "entries",
                                "connector", "shop", "operation", "list", "connections", id)),
        MCP_CODE_NOT_FOUND);
}

/* --- the name space -------------------------------------------------------------- */

static void names_and_labels_are_one_name_space(void **state)
{
    (void)state;
    shop_done("connections__create",
              "{\"connector\":\"shop\",\"label\":\"mine\",\"owner\":\"ada@example.com\"}");
    assert_int_equal(shop_refused("toolboxes__create", "{\"name\":\"mine\",\"entries\":[]}"),
                     MCP_CODE_CONFLICT);
    shop_done("toolboxes__create", "{\"name\":\"box\",\"entries\":[]}");
    assert_int_equal(shop_refused("toolboxes__create", "{\"name\":\"box\",\"entries\":[]}"),
                     MCP_CODE_CONFLICT);
    assert_int_equal(shop_refused("connections__create",
                                  "{\"connector\":\"shop\",\"label\":\"box\",\"shared\":true}"),
                     MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.message, "toolbox"));
    assert_int_equal(world_refused(ada, "connections__create",
                                   shop_json("{\"connector\":\"shop\",\"label\":\"box\"}")),
                     MCP_CODE_CONFLICT);
    assert_int_equal(
        shop_refused("connections__update", "{\"connection\":\"acc\",\"label\":\"box\"}"),
        MCP_CODE_CONFLICT);
    assert_int_equal(shop_refused("toolboxes__update", "{\"toolbox\":\"box\",\"name\":\"acc\"}"),
                     MCP_CODE_CONFLICT);
    assert_int_equal(shop_refused("toolboxes__update", "{\"toolbox\":\"box\",\"name\":\"mine\"}"),
                     MCP_CODE_CONFLICT);
    /* own labels meet shared ones as before */
    assert_int_equal(shop_refused("connections__create",
                                  "{\"connector\":\"shop\",\"label\":\"mine\",\"shared\":true}"),
                     MCP_CODE_CONFLICT);
    assert_int_equal(world_refused(bob, "connections__create",
                                   shop_json("{\"connector\":\"shop\",\"label\":\"acc\"}")),
                     MCP_CODE_CONFLICT);
    world_done(bob, "connections__create",
               shop_json("{\"connector\":\"shop\",\"label\":\"mine\"}"));
    /* a name that is given up is free */
    shop_done("toolboxes__update", "{\"toolbox\":\"box\",\"name\":\"crate\"}");
    shop_done("connections__create",
              "{\"connector\":\"shop\",\"label\":\"box\",\"shared\":true}");
    shop_done("toolboxes__delete", "{\"toolbox\":\"crate\"}");
    shop_done("connections__update", "{\"connection\":\"box\",\"label\":\"crate\"}");
}

static pd_status_t spoil_unit(pd_tx_t *tx, void *baton)
{
    static const char *const keys[] = {"slug:shop", NULL};
    json_t *doc = json_pack("{s:s}", "slug", "shop");
    pd_object_t *connector = NULL;
    pd_status_t status = pd_tx_find(tx, "connector", "slug:shop", &connector);

    (void)baton;
    if (status == PD_OK) {
        status = pd_tx_update(tx, "connector", connector->id, NULL, doc, keys, 0, NULL);
    }
    json_decref(doc);
    return status;
}

static void spoil_done(pd_status_t status, int64_t revision, void *baton)
{
    int *is_done = baton;

    (void)revision;
    assert_int_equal(status, PD_OK);
    *is_done = 1;
}

static void a_label_out_of_use_stays_taken(void **state)
{
    int is_done = 0;

    (void)state;
    shop_done("connections__create",
              "{\"connector\":\"shop\",\"label\":\"mine\",\"owner\":\"ada@example.com\"}");
    assert_int_equal(pd_store_submit(world.core.store, PD_LANE_WRITE, pd_boot_in(30000), spoil_unit,
                                     spoil_done, &is_done),
                     PD_OK);
    world_wait(&is_done);
    world_follow();
    assert_null(apr_hash_get(world.policy.snapshot->ground->any_label, "mine",
                             APR_HASH_KEY_STRING));
    assert_int_equal(shop_refused("toolboxes__create", "{\"name\":\"mine\",\"entries\":[]}"),
                     MCP_CODE_CONFLICT);
    assert_int_equal(shop_refused("connections__create",
                                  "{\"connector\":\"desk\",\"label\":\"mine\",\"shared\":true}"),
                     MCP_CODE_CONFLICT);
}

/* --- update ---------------------------------------------------------------------- */

static void an_entry_that_is_renamed_keeps_its_id(void **state)
{
    json_t *made = shop_do("toolboxes__create", BOX(ENTRY("list", "") "," ENTRY("get", "")));
    const char *list = apr_pstrdup(world.scratch, shop_str(shop_at(made, "entries", 0), "entry"));
    const char *by_name = apr_pstrdup(world.scratch, shop_str(shop_at(made, "entries", 1), "entry"));
    json_t *entries = shop_json("{\"a\":[" ENTRY("get", "") "," ENTRY("list", ",\"name\":\"find\"")
                                "," ENTRY("list", "") "]}");
    json_t *shown;

    (void)state;
    json_object_set_new(json_array_get(json_object_get(entries, "a"), 1), "entry",
                        json_string(list));
    shown = world_do(world_root(), "toolboxes__update",
                     json_pack("{s:s, s:O}", "toolbox", "box", "entries",
                               json_object_get(entries, "a")));
    assert_string_equal(shop_str(shop_at(shown, "entries", 0), "entry"), by_name);
    assert_string_equal(shop_str(shop_at(shown, "entries", 1), "entry"), list);
    assert_string_equal(shop_str(shop_at(shown, "entries", 1), "tool"), "box__find");
    assert_string_not_equal(shop_str(shop_at(shown, "entries", 2), "entry"), list);
    assert_string_equal(shop_str(shop_at(shown, "entries", 2), "tool"), "box__list");
    json_decref(shown);
    json_object_set_new(json_array_get(json_object_get(entries, "a"), 0), "entry",
                        json_string(list));
    assert_int_equal(world_refused(world_root(), "toolboxes__update",
                                   json_pack("{s:s, s:O}", "toolbox", "box", "entries",
                                             json_object_get(entries, "a"))),
                     MCP_CODE_INVALID_REQUEST);
    json_decref(entries);
    json_decref(made);
}

static void an_update_replaces_what_is_given(void **state)
{
    json_t *shown;

    (void)state;
    shop_done("toolboxes__create",
              "{\"name\":\"box\",\"description\":\"d\",\"roles\":[\"Member\"],\"entries\":[" ENTRY(
                  "list", "") "]}");
    shown = shop_do("toolboxes__update", "{\"toolbox\":\"box\",\"description\":null,"
                                         "\"members\":[\"bob@example.com\"],\"if_revision\":1}");
    assert_null(json_object_get(shown, "description"));
    assert_int_equal(shop_size(shown, "roles"), 1);
    assert_int_equal(shop_size(shown, "members"), 1);
    assert_int_equal(shop_size(shown, "entries"), 1);
    json_decref(shown);
    assert_int_equal(shop_refused("toolboxes__update",
                                  "{\"toolbox\":\"box\",\"roles\":[],\"if_revision\":1}"),
                     MCP_CODE_REVISION_MISMATCH);
    shown = shop_do("toolboxes__update", "{\"toolbox\":\"box\",\"entries\":[]}");
    assert_int_equal(shop_size(shown, "entries"), 0);
    json_decref(shown);
}

static void another_name_has_to_leave_room_for_the_tools(void **state)
{
    (void)state;
    shop_done("toolboxes__create", BOX(ENTRY("list", ",\"name\":\"" LONG40 "\"")));
    assert_int_equal(
        shop_refused("toolboxes__update",
                     "{\"toolbox\":\"box\",\"name\":\"a-name-of-twenty-six-letter\"}"),
        MCP_CODE_INVALID_REQUEST);
    shop_done("toolboxes__update", "{\"toolbox\":\"box\",\"name\":\"crate\"}");
}

static void an_operation_that_vanished_may_stay_but_not_change(void **state)
{
    json_t *file = shop_json(SHOP_FILE("shop", SHOP_OP("list", "get", "/items", "")));
    json_t *shown;
    json_t *entries;

    (void)state;
    shop_done("toolboxes__create",
              BOX(ENTRY("make", ",\"frozen\":{\"title\":\"t\"}") "," ENTRY("list", "")));
    json_object_set_new(file, "connector", json_string("shop"));
    world_done(world_root(), "connectors__update", file);
    shown = get("box");
    entries = json_object_get(shown, "entries");
    assert_true(json_is_true(json_object_get(json_array_get(entries, 0), "operation_missing")));
    world_done(world_root(), "toolboxes__update",
               json_pack("{s:s, s:O}", "toolbox", "box", "entries", entries));
    json_object_set_new(json_object_get(json_array_get(entries, 0), "frozen"), "title",
                        json_string("u"));
    assert_int_equal(world_refused(world_root(), "toolboxes__update",
                                   json_pack("{s:s, s:O}", "toolbox", "box", "entries", entries)),
                     MCP_CODE_CONFLICT);
    json_decref(shown);
}

/* --- warnings -------------------------------------------------------------------- */

static void freezing_what_is_reached_plainly_is_warned_of(void **state)
{
    json_t *made =
        shop_do("toolboxes__create", BOX(ENTRY("list", ",\"frozen\":{\"q\":\"x\"}")));

    (void)state;
    assert_true(shop_warns(made, "acc"));
    json_decref(made);
    shop_done("connections__update", "{\"connection\":\"acc\",\"toolbox_only\":true}");
    made = shop_do("toolboxes__update",
                   "{\"toolbox\":\"box\",\"entries\":[" ENTRY("list", ",\"frozen\":{\"q\":\"x\"}") "]}");
    assert_int_equal(shop_size(made, "warnings"), 0);
    json_decref(made);
    made = shop_do("toolboxes__update",
                   "{\"toolbox\":\"box\",\"entries\":[{\"connector\":\"shop\",\"operation\":"
                   "\"list\",\"connections\":[\"@own\"],\"frozen\":{\"q\":\"x\"}}]}");
    assert_true(shop_warns(made, "own connections"));
    json_decref(made);
}

/* --- who sees what --------------------------------------------------------------- */

static void frozen_values_are_shown_to_writers_alone(void **state)
{
    static const char *const auditor[] = {"toolbox:read", "toolbox:read_all", NULL};
    static const char *const writer[] = {"toolbox:read", "toolbox:write", NULL};
    json_t *shown;

    (void)state;
    shop_done("toolboxes__create", BOX(ENTRY("list", ",\"frozen\":{\"q\":\"s3cret\"}")));
    shown = get_as(world_holder(writer), "box");
    assert_true(shop_holds(shown, "s3cret"));
    json_decref(shown);
    shown = get_as(world_holder(auditor), "box");
    assert_false(shop_holds(shown, "s3cret"));
    assert_false(shop_holds(shown, "\"q\""));
    assert_true(json_is_true(json_object_get(shop_at(shown, "entries", 0), "frozen")));
    json_decref(shown);
    shown = get_as(ada, "box");
    assert_false(shop_holds(shown, "s3cret"));
    assert_false(shop_holds(shown, "\"q\""));
    assert_true(json_is_true(json_object_get(shop_at(shown, "entries", 0), "frozen")));
    json_decref(shown);
    assert_int_equal(list_size(world_holder(auditor), "{}"), 1);
}

static void a_member_sees_what_is_for_him_and_what_he_can_have(void **state)
{
    json_t *shown;

    (void)state;
    shop_done("toolboxes__create",
              BOX(ENTRY("list", "") "," ENTRY("get", "") ","
                  "{\"connector\":\"desk\",\"operation\":\"list\",\"connections\":[\"@own\"],"
                  "\"name\":\"tickets\"}"));
    shop_done("toolboxes__create",
              "{\"name\":\"far\",\"members\":[\"bob@example.com\"],\"entries\":[]}");
    shop_done("restrictions__create",
              "{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":["
              "{\"connector\":\"shop\",\"operation\":\"get\"}]}");
    assert_int_equal(list_size(world_root(), "{}"), 2);
    assert_int_equal(list_size(ada, "{}"), 1);
    assert_int_equal(list_size(bob, "{}"), 2);
    assert_int_equal(
        world_refused(ada, "toolboxes__get", json_pack("{s:s}", "toolbox", "far")),
        MCP_CODE_NOT_FOUND);
    shown = get_as(ada, "box");
    assert_int_equal(shop_size(shown, "entries"), 1);
    assert_int_equal(mcp_json_int(shown, "tools", 0), 1);
    assert_string_equal(shop_str(shop_at(shown, "entries", 0), "tool"), "box__list");
    assert_null(json_object_get(shown, "roles"));
    assert_null(json_object_get(shown, "members"));
    json_decref(shown);
    world_done(ada, "connections__create",
               shop_json("{\"connector\":\"desk\",\"label\":\"mine\"}"));
    shown = get_as(ada, "box");
    assert_int_equal(shop_size(shown, "entries"), 2);
    json_decref(shown);
    assert_int_equal(world_refused(ada, "toolboxes__list", shop_json("{\"role\":\"Member\"}")),
                     MCP_CODE_PERMISSION_DENIED);
    assert_int_equal(world_refused(ada, "toolboxes__delete", shop_json("{\"toolbox\":\"box\"}")),
                     MCP_CODE_PERMISSION_DENIED);
}

static void a_list_is_filtered_and_has_no_entries(void **state)
{
    json_t *list;

    (void)state;
    shop_done("toolboxes__create", BOX(ENTRY("list", "")));
    shop_done("toolboxes__create",
              "{\"name\":\"far\",\"description\":\"Away\",\"members\":[\"bob@example.com\"],"
              "\"entries\":[]}");
    assert_int_equal(list_size(world_root(), "{\"role\":\"Member\"}"), 1);
    assert_int_equal(list_size(world_root(), "{\"role\":\"Guest\"}"), 0);
    assert_int_equal(list_size(world_root(), "{\"member\":\"bob@example.com\"}"), 1);
    assert_int_equal(list_size(world_root(), "{\"query\":\"AWAY\"}"), 1);
    assert_int_equal(list_size(world_root(), "{\"query\":\"box\"}"), 1);
    assert_int_equal(list_size(world_root(), "{\"connector\":\"shop\"}"), 1);
    assert_int_equal(list_size(world_root(), "{\"connector\":\"sho\"}"), 0);
    assert_int_equal(list_size(world_root(), "{\"connector\":\"shop\",\"query\":\"far\"}"), 0);
    list = shop_do("toolboxes__list", "{\"query\":\"box\"}");
    assert_null(json_object_get(shop_at(list, "items", 0), "entries"));
    assert_int_equal(mcp_json_int(shop_at(list, "items", 0), "tools", 0), 1);
    json_decref(list);
}

static void frozen_values_are_in_no_record(void **state)
{
    int64_t i;

    (void)state;
    shop_done("toolboxes__create", BOX(ENTRY("list", ",\"frozen\":{\"q\":\"s3cret\"}")));
    assert_int_equal(
        shop_refused("toolboxes__create", BOX(ENTRY("list", ",\"frozen\":{\"max\":\"s3cret\"}"))),
        MCP_CODE_INVALID_REQUEST);
    for (i = 1; i <= world.seq; i++) {
        assert_null(strstr(world.rows[i].detail, "s3cret"));
        assert_null(strstr(world.rows[i].arg_names, "s3cret"));
    }
}

static void a_deleted_toolbox_is_gone(void **state)
{
    (void)state;
    shop_done("toolboxes__create", BOX(ENTRY("list", "")));
    assert_int_equal(
        shop_refused("toolboxes__delete", "{\"toolbox\":\"box\",\"if_revision\":9}"),
        MCP_CODE_REVISION_MISMATCH);
    shop_done("toolboxes__delete", "{\"toolbox\":\"box\"}");
    assert_int_equal(shop_refused("toolboxes__get", "{\"toolbox\":\"box\"}"), MCP_CODE_NOT_FOUND);
}

/* -------------------------------------------------------------------------------- */

#define TEST(name) cmocka_unit_test_setup_teardown(name, shop_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_toolbox_is_named_by_labels_and_kept_by_ids),
        TEST(a_connection_goes_on_by_its_id),
        TEST(what_can_not_be_meant_is_refused),
        TEST(an_unknown_key_is_answered_with_the_arguments),
        TEST(a_place_inside_an_argument_can_be_frozen),
        TEST(another_members_connection_serves_no_toolbox),
        TEST(names_and_labels_are_one_name_space),
        TEST(a_label_out_of_use_stays_taken),
        TEST(an_entry_that_is_renamed_keeps_its_id),
        TEST(an_update_replaces_what_is_given),
        TEST(another_name_has_to_leave_room_for_the_tools),
        TEST(an_operation_that_vanished_may_stay_but_not_change),
        TEST(freezing_what_is_reached_plainly_is_warned_of),
        TEST(frozen_values_are_shown_to_writers_alone),
        TEST(a_member_sees_what_is_for_him_and_what_he_can_have),
        TEST(a_list_is_filtered_and_has_no_entries),
        TEST(frozen_values_are_in_no_record),
        TEST(a_deleted_toolbox_is_gone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
