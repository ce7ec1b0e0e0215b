/* Documents that no operation wrote: nothing ends the daemon, one that is damaged hides no other, and what is damaged can be
 * deleted and, where it can be said anew, written again. */
#include "policy_shop.h"

static json_t *list_of(const char *operation)
{
    return shop_do(operation, "{}");
}

/* --- shapes ----------------------------------------------------------------------- */

static const char *const shapes[] = {"{}",
                                     "[]",
                                     "{\"name\":5,\"slug\":[],\"label\":{},\"email\":1,\"state\":[]}",
                                     "{\"operations\":[1,{},{\"id\":\"x\"}],\"entries\":[7,{}],"
                                     "\"items\":[null,{}],\"roles\":[1],\"members\":{},"
                                     "\"permissions\":3,\"scopes\":\"x\"}",
                                     "{\"entries\":[{\"connections\":[1],\"frozen\":3}],\"roles\":3,"
                                     "\"name\":\"n\",\"items\":[{\"tool\":3,\"pins\":[1]}],"
                                     "\"target\":[],\"effect\":\"block\",\"arguments\":[1,{}]}",
                                     "{\"operations\":[{\"id\":\"x\",\"classification\":\"read\","
                                     "\"path\":\"/x\",\"query\":[[1,2],3]}],\"slug\":\"shop\","
                                     "\"label\":\"y\",\"base_url\":3,\"auth\":[]}"};

static void whatever_is_stored_is_listed_shown_and_deleted(void **state)
{
    static const struct {
        const char *kind, *id, *resource, *argument;
        int is_deleted;
    } kinds[] = {{"member", "mem_damaged", "members", "member", 0},
                 {"role", "rol_damaged", "roles", "role", 1},
                 {"grant", "gra_damaged", "grants", "grant", 0},
                 {"connector", "con_damaged", "connectors", "connector", 1},
                 {"connection", "cxn_damaged", "connections", "connection", 1},
                 {"recipe", "rcp_damaged", "recipes", "recipe", 1},
                 {"setting", "set_damaged", "settings", NULL, 0},
                 {"toolbox", "tbx_damaged", "toolboxes", "toolbox", 1},
                 {"restriction", "rst_damaged", "restrictions", "restriction", 1}};
    size_t i;
    size_t k;

    (void)state;
    for (i = 0; i < COUNT(kinds); i++) {
        const char *list = apr_pstrcat(world.scratch, kinds[i].resource, "__list", (char *)NULL);
        const char *get = apr_pstrcat(world.scratch, kinds[i].resource, "__get", (char *)NULL);
        const char *update =
            apr_pstrcat(world.scratch, kinds[i].resource, "__update", (char *)NULL);

        for (k = 0; k < COUNT(shapes); k++) {
            json_t *before = list_of(list);
            json_t *after;

            if (strcmp(kinds[i].kind, "connector") == 0) {
                world_put("connector_summary", kinds[i].id, NULL, NULL, shop_json(shapes[k]));
            }
            world_put(kinds[i].kind, kinds[i].id, NULL, NULL, shop_json(shapes[k]));
            after = list_of(list);
            assert_true(shop_size(after, "items") >= shop_size(before, "items"));
            json_decref(before);
            json_decref(after);
            if (kinds[i].argument != NULL) {
                json_t *args = json_pack("{s:s}", kinds[i].argument, kinds[i].id);

                json_decref(world_invoke(world_root(), get, json_deep_copy(args)));
                if (pd_ops_find(update) != NULL && strcmp(kinds[i].kind, "connector") != 0) {
                    json_decref(world_invoke(world_root(), update, json_deep_copy(args)));
                }
                if (kinds[i].is_deleted) {
                    world_done(world_root(),
                               apr_pstrcat(world.scratch, kinds[i].resource, "__delete",
                                           (char *)NULL),
                               json_deep_copy(args));
                    assert_int_equal(world_refused(world_root(), get, json_deep_copy(args)),
                                     MCP_CODE_NOT_FOUND);
                }
                json_decref(args);
            }
            json_decref(world_invoke(world_root(), "policy__export", json_object()));
        }
    }
}

/* --- connectors ------------------------------------------------------------------- */

static void a_damaged_connector_is_replaced_by_its_file(void **state)
{
    const char *id = shop_id("connectors__get", "{\"connector\":\"shop\"}", "connector");
    json_t *file = shop_json(SHOP_FILE("shop", SHOP_OPS));
    size_t k;

    (void)state;
    for (k = 0; k < COUNT(shapes); k++) {
        world_put("connector", id, NULL, "slug:shop", shop_json(shapes[k]));
        json_object_set_new(file, "connector", json_string(id));
        world_done(world_root(), "connectors__update", json_deep_copy(file));
        json_decref(shop_do("restrictions__explain",
                            "{\"member\":\"ada@example.com\",\"tool\":\"acc__get\"}"));
    }
    json_decref(file);
}

/* --- restrictions and toolboxes --------------------------------------------------- */

static const char *answer(void)
{
    return world_take(shop_do("restrictions__explain",
                              "{\"member\":\"ada@example.com\",\"tool\":\"acc__get\"}"),
                      "answer");
}

static void a_damaged_restriction_is_written_again(void **state)
{
    static const char *const damaged[] = {
        "{\"target\":{\"role\":\"Member\"}}",
        "{\"target\":{\"role\":\"Member\"},\"effect\":7,\"items\":{},\"name\":[],\"note\":1}",
        "{\"target\":{\"role\":\"Member\"},\"effect\":\"allow\",\"items\":[{\"connector\":1},3]}"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(damaged); i++) {
        world_put("restriction", "rst_x", NULL, NULL, shop_json(damaged[i]));
        assert_string_not_equal(answer(), "ok");
        assert_int_equal(
            shop_refused("restrictions__update", "{\"restriction\":\"rst_x\",\"note\":\"n\"}"),
            MCP_CODE_CONFLICT);
        if (i < 2) {
            assert_int_equal(
                shop_refused("restrictions__update",
                             "{\"restriction\":\"rst_x\",\"effect\":\"allow\"}"),
                MCP_CODE_CONFLICT);
        }
        assert_string_not_equal(answer(), "ok");
        shop_done("restrictions__update", "{\"restriction\":\"rst_x\",\"effect\":\"block\","
                                          "\"items\":[{\"connector\":\"desk\"}]}");
        assert_string_equal(answer(), "ok");
    }
}

static void a_lost_target_is_found_by_the_owner_alone(void **state)
{
    (void)state;
    world_put("restriction", "rst_x", ada->member_id, NULL, shop_json("{\"target\":7}"));
    shop_done("restrictions__update",
              "{\"restriction\":\"rst_x\",\"effect\":\"block\",\"items\":[]}");
    assert_string_equal(answer(), "ok");
    world_put("restriction", "rst_y", NULL, NULL, shop_json("{\"target\":7}"));
    assert_int_equal(shop_refused("restrictions__update",
                                  "{\"restriction\":\"rst_y\",\"effect\":\"block\",\"items\":[]}"),
                     MCP_CODE_CONFLICT);
    assert_string_not_equal(answer(), "ok");
    shop_done("restrictions__delete", "{\"restriction\":\"rst_y\"}");
    assert_string_equal(answer(), "ok");
}

static void a_damaged_toolbox_is_written_again(void **state)
{
    json_t *shown;
    size_t k;

    (void)state;
    for (k = 0; k < COUNT(shapes); k++) {
        world_put("toolbox", "tbx_x", NULL, NULL, shop_json(shapes[k]));
        assert_int_equal(
            shop_refused("toolboxes__update", "{\"toolbox\":\"tbx_x\",\"roles\":[\"Member\"]}"),
            MCP_CODE_CONFLICT);
        assert_int_equal(shop_refused("toolboxes__update",
                                      "{\"toolbox\":\"tbx_x\",\"roles\":[\"Member\"],"
                                      "\"entries\":[]}"),
                         MCP_CODE_CONFLICT);
        shown = shop_do("toolboxes__update",
                        "{\"toolbox\":\"tbx_x\",\"name\":\"box\",\"description\":null,\"roles\":"
                        "[\"Member\"],\"members\":[],\"entries\":[{\"connector\":\"shop\","
                        "\"operation\":\"list\",\"connections\":[\"acc\"]}]}");
        assert_string_equal(shop_str(shop_at(shown, "entries", 0), "tool"), "box__list");
        json_decref(shown);
        shown = world_do(ada, "toolboxes__get", shop_json("{\"toolbox\":\"box\"}"));
        assert_int_equal(shop_size(shown, "entries"), 1);
        json_decref(shown);
    }
}

static void an_old_entry_that_is_damaged_is_no_name_for_anything(void **state)
{
    (void)state;
    world_put("toolbox", "tbx_x", NULL, "name:box",
              shop_json("{\"name\":\"box\",\"roles\":[],\"members\":[],\"entries\":[{\"entry\":"
                        "\"ent_1\",\"name\":\"a\",\"connector\":\"con_gone\",\"operation\":\"o\","
                        "\"connections\":[3,\"cxn_gone\"]}]}"));
    json_decref(shop_do("toolboxes__get", "{\"toolbox\":\"box\"}"));
    assert_int_equal(shop_refused("toolboxes__update", "{\"toolbox\":\"box\",\"name\":\"crate\"}"),
                     MCP_CODE_CONFLICT);
    assert_int_equal(shop_refused("toolboxes__update",
                                  "{\"toolbox\":\"box\",\"entries\":[{\"entry\":\"ent_1\","
                                  "\"name\":\"a\",\"connector\":\"con_gone\",\"operation\":\"o\","
                                  "\"connections\":[\"cxn_gone\"]}]}"),
                     MCP_CODE_NOT_FOUND);
    shop_done("toolboxes__update", "{\"toolbox\":\"box\",\"entries\":[]}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, shop_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(whatever_is_stored_is_listed_shown_and_deleted),
                                       TEST(a_damaged_connector_is_replaced_by_its_file),
                                       TEST(a_damaged_restriction_is_written_again),
                                       TEST(a_lost_target_is_found_by_the_owner_alone),
                                       TEST(a_damaged_toolbox_is_written_again),
                                       TEST(an_old_entry_that_is_damaged_is_no_name_for_anything)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
