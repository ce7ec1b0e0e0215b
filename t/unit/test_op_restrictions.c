/* The restrictions resource over the real store: what is pinned, refused and warned of, and what
 * explain says. */
#include "policy_shop.h"

#include "../../policyd/pd_rules.h"

static json_t *get(const char *named)
{
    return world_do(world_root(), "restrictions__get", json_pack("{s:s}", "restriction", named));
}

static const char *create(const char *args)
{
    return shop_id("restrictions__create", args, "restriction");
}

static size_t list_size(const char *args)
{
    json_t *list = shop_do("restrictions__list", args);
    size_t size = shop_size(list, "items");

    json_decref(list);
    return size;
}

/* --- writing --------------------------------------------------------------------- */

static void a_rule_is_named_by_slugs_and_kept_by_ids(void **state)
{
    json_t *made = shop_do("restrictions__create",
                           "{\"effect\":\"allow\",\"target\":{\"role\":\"Member\"},\"name\":\"base\","
                           "\"note\":\"why\",\"items\":[{\"connector\":\"desk\"},"
                           "{\"connector\":\"shop\",\"operation\":\"list\"}]}");
    const char *id = apr_pstrdup(world.scratch, shop_str(made, "restriction"));
    json_t *by_id = get(id);
    json_t *by_name = get("base");

    (void)state;
    assert_true(strncmp(id, "rst_", 4) == 0);
    assert_true(json_equal(by_id, by_name));
    assert_int_equal(shop_size(made, "warnings"), 0);
    assert_int_equal(json_object_del(made, "warnings"), 0);
    assert_true(json_equal(made, by_id));
    assert_string_equal(shop_str(json_object_get(made, "target"), "role"), "Member");
    assert_int_equal(mcp_json_int(made, "items_count", 0), 2);
    assert_true(strncmp(shop_str(shop_at(made, "items", 0), "connector"), "con_", 4) == 0);
    assert_string_equal(shop_str(shop_at(made, "items", 0), "slug"), "desk");
    assert_string_equal(shop_str(shop_at(made, "items", 0), "label"), "The desk");
    assert_string_equal(shop_str(shop_at(made, "items", 1), "operation"), "list");
    assert_null(json_object_get(made, "empty"));
    assert_string_equal(shop_str(made, "note"), "why");
    assert_non_null(strstr(world.rows[world.seq - 2].detail, id));
    json_decref(made);
    json_decref(by_id);
    json_decref(by_name);
}

static void a_member_is_shown_with_the_email(void **state)
{
    const char *id = create("{\"effect\":\"block\",\"target\":{\"member\":\"ADA@example.com\"},"
                            "\"items\":[{\"connector\":\"shop\"}]}");
    json_t *shown = get(id);

    (void)state;
    assert_string_equal(shop_str(json_object_get(shown, "target"), "member"), ada->member_id);
    assert_string_equal(shop_str(json_object_get(shown, "target"), "email"), "ada@example.com");
    json_decref(shown);
}

#define ROLE_RULE(effect, items)                                                                   \
    "{\"effect\":\"" effect "\",\"target\":{\"role\":\"Member\"},\"items\":[" items "]}"

static void what_can_not_be_meant_is_refused(void **state)
{
    static const struct {
        const char *args;
        mcp_code_t code;
        const char *part; /* of the message */
    } table[] = {
        {"{\"effect\":\"allow\",\"target\":{},\"items\":[]}", MCP_CODE_INVALID_REQUEST, "target"},
        {"{\"effect\":\"allow\",\"target\":{\"role\":\"Member\",\"member\":\"ada@example.com\"},"
         "\"items\":[]}",
         MCP_CODE_INVALID_REQUEST, "target"},
        {"{\"effect\":\"deny\",\"target\":{\"role\":\"Member\"},\"items\":[]}",
         MCP_CODE_INVALID_REQUEST, "effect"},
        {"{\"effect\":\"allow\",\"target\":{\"role\":\"Nobody\"},\"items\":[]}", MCP_CODE_NOT_FOUND,
         "role"},
        {"{\"effect\":\"allow\",\"target\":{\"member\":\"x@example.com\"},\"items\":[]}",
         MCP_CODE_NOT_FOUND, "member"},
        {ROLE_RULE("allow", "{\"connector\":\"none\"}"), MCP_CODE_NOT_FOUND, "\"none\""},
        {ROLE_RULE("allow", "{\"connector\":\"desk\"},{\"connector\":\"shop\",\"operation\":\"x\"}"),
         MCP_CODE_NOT_FOUND, "Item number 2: the connector shop has no operation \"x\""},
        {ROLE_RULE("block", "{\"connector\":\"shop\",\"operation\":\"x\"}"), MCP_CODE_NOT_FOUND,
         "\"x\""},
        {ROLE_RULE("allow", "{\"tool\":\"acc__nothing\"}"), MCP_CODE_NOT_FOUND, "acc__nothing"},
        {ROLE_RULE("block", "{\"tool\":\"elaichi__members__list\"}"), MCP_CODE_INVALID_REQUEST,
         "no connected tool"},
        {ROLE_RULE("block", "{\"tool\":\"corp-tools__x\"}"), MCP_CODE_INVALID_REQUEST,
         "no connected tool"},
        {ROLE_RULE("allow", "{\"tool\":\"elaichi__members__list\"}"), MCP_CODE_INVALID_REQUEST,
         "no connected tool"},
        {ROLE_RULE("block", "{\"tool\":\"a b\"}"), MCP_CODE_INVALID_REQUEST, "such a name"},
        {ROLE_RULE("block", "{\"connector\":\"shop\",\"tool\":\"acc__list\"}"),
         MCP_CODE_INVALID_REQUEST, "Item number 1"},
        {ROLE_RULE("block", "{\"operation\":\"list\"}"), MCP_CODE_INVALID_REQUEST, "Item number 1"},
        {ROLE_RULE("block", "{}"), MCP_CODE_INVALID_REQUEST, "Item number 1"},
        {ROLE_RULE("block", "{\"connector\":\"shop\",\"pins\":[]}"), MCP_CODE_INVALID_REQUEST,
         "Item number 1"},
        {ROLE_RULE("block", "{\"tool\":\"acc__list\",\"pins\":[{\"connector\":\"shop\","
                            "\"operation\":\"x\"}]}"),
         MCP_CODE_NOT_FOUND, "\"x\""},
        {"{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":[],\"name\":\"rst_1\"}",
         MCP_CODE_INVALID_REQUEST, "name"},
        {"{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":[],\"name\":\"explain\"}",
         MCP_CODE_INVALID_REQUEST, "name"},
        {"{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":[],\"name\":\"a/b\"}",
         MCP_CODE_INVALID_REQUEST, "name"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(table); i++) {
        mcp_code_t code = shop_refused("restrictions__create", table[i].args);

        if (code != table[i].code || strstr(world.message, table[i].part) == NULL) {
            fail_msg("%s: %s: %s", table[i].args, mcp_code_text(code), world.message);
        }
    }
    assert_int_equal(list_size("{}"), 0);
}

static void a_name_is_taken_once(void **state)
{
    (void)state;
    (void)create("{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":[],"
                 "\"name\":\"one\"}");
    assert_int_equal(shop_refused("restrictions__create",
                                  "{\"effect\":\"block\",\"target\":{\"role\":\"Guest\"},"
                                  "\"items\":[],\"name\":\"one\"}"),
                     MCP_CODE_CONFLICT);
}

static void the_same_item_twice_is_one(void **state)
{
    json_t *made = shop_do(
        "restrictions__create",
        ROLE_RULE("block", "{\"connector\":\"shop\"},{\"connector\":\"shop\",\"operation\":\"get\"},"
                           "{\"connector\":\"shop\"},{\"connector\":\"shop\",\"operation\":\"get\"},"
                           "{\"tool\":\"acc__list\"},{\"tool\":\"acc__list\",\"pins\":[{"
                           "\"connector\":\"desk\",\"operation\":\"list\"}]}"));

    (void)state;
    assert_int_equal(shop_size(made, "items"), 3);
    assert_int_equal(shop_size(shop_at(made, "items", 2), "pins"), 2);
    json_decref(made);
}

static void naming_nothing_is_warned_of(void **state)
{
    json_t *made = shop_do("restrictions__create", ROLE_RULE("allow", ""));

    (void)state;
    assert_true(shop_warns(made, "denies every connected tool"));
    assert_true(json_is_true(json_object_get(made, "empty")));
    json_decref(made);
    made = shop_do("restrictions__create", ROLE_RULE("block", ""));
    assert_true(shop_warns(made, "blocks nothing"));
    json_decref(made);
}

/* --- names ----------------------------------------------------------------------- */

static void a_name_block_pins_what_anybody_has_by_that_name(void **state)
{
    json_t *made;
    const json_t *item;

    (void)state;
    shop_done("connections__create",
              "{\"connector\":\"shop\",\"label\":\"mine\",\"owner\":\"ada@example.com\"}");
    shop_done("connections__create",
              "{\"connector\":\"desk\",\"label\":\"mine\",\"owner\":\"bob@example.com\"}");
    made = shop_do("restrictions__create", ROLE_RULE("block", "{\"tool\":\"mine__list\"}"));
    item = shop_at(made, "items", 0);
    assert_string_equal(shop_str(item, "tool"), "mine__list");
    assert_int_equal(shop_size(item, "pins"), 2);
    assert_string_equal(shop_str(shop_at(item, "pins", 0), "slug"), "desk");
    assert_string_equal(shop_str(shop_at(item, "pins", 1), "slug"), "shop");
    assert_int_equal(shop_size(made, "warnings"), 0);
    json_decref(made);
}

static void a_name_block_pins_what_an_entry_has_by_that_name(void **state)
{
    json_t *made;

    (void)state;
    shop_done("toolboxes__create",
              "{\"name\":\"box\",\"entries\":[{\"connector\":\"shop\",\"operation\":\"get\","
              "\"connections\":[\"acc\"],\"name\":\"look\"}]}");
    made = shop_do("restrictions__create", ROLE_RULE("block", "{\"tool\":\"box__look\"}"));
    assert_string_equal(shop_str(shop_at(shop_at(made, "items", 0), "pins", 0), "operation"),
                        "get");
    json_decref(made);
}

static void a_name_block_that_matches_nothing_is_kept(void **state)
{
    json_t *made =
        shop_do("restrictions__create", ROLE_RULE("block", "{\"tool\":\"later__list\"}"));
    const char *id = apr_pstrdup(world.scratch, shop_str(made, "restriction"));
    json_t *shown;

    (void)state;
    assert_true(shop_warns(made, "later__list"));
    assert_true(json_is_true(json_object_get(made, "empty")));
    assert_true(json_is_true(json_object_get(shop_at(made, "items", 0), "missing")));
    assert_int_equal(shop_size(shop_at(made, "items", 0), "pins"), 0);
    json_decref(made);
    shop_done("connections__create",
              "{\"connector\":\"shop\",\"label\":\"later\",\"shared\":true}");
    shown = get(id);
    assert_null(json_object_get(shown, "empty"));
    json_decref(shown);
}

static void an_allow_keeps_the_operation_and_the_name_as_a_label(void **state)
{
    json_t *made = shop_do("restrictions__create", ROLE_RULE("allow", "{\"tool\":\"acc__get\"}"));
    json_t *explained;

    (void)state;
    assert_string_equal(shop_str(shop_at(shop_at(made, "items", 0), "pins", 0), "operation"),
                        "get");
    json_decref(made);
    /* the account gets another name, and a new one the name that is allowed */
    shop_done("connections__update", "{\"connection\":\"acc\",\"label\":\"other\"}");
    shop_done("connections__create", "{\"connector\":\"desk\",\"label\":\"acc\",\"shared\":true}");
    explained = shop_do("restrictions__explain",
                        "{\"member\":\"ada@example.com\",\"tool\":\"other__get\"}");
    assert_string_equal(shop_str(explained, "answer"), "ok");
    json_decref(explained);
    explained = shop_do("restrictions__explain",
                        "{\"member\":\"ada@example.com\",\"tool\":\"acc__list\"}");
    assert_string_equal(shop_str(explained, "answer"), "not on the allowlist");
    json_decref(explained);
}

static void pins_that_are_given_are_united_with_what_is_found(void **state)
{
    json_t *made = shop_do("restrictions__create",
                           ROLE_RULE("allow", "{\"tool\":\"acc__get\",\"pins\":[{\"connector\":"
                                              "\"desk\",\"operation\":\"list\"}]},"
                                              "{\"tool\":\"gone__get\",\"pins\":[{\"connector\":"
                                              "\"shop\",\"operation\":\"get\"}]}"));

    (void)state;
    assert_int_equal(shop_size(shop_at(made, "items", 0), "pins"), 2);
    assert_int_equal(shop_size(shop_at(made, "items", 1), "pins"), 1);
    json_decref(made);
}

static void writing_a_block_again_does_not_free_a_renamed_account(void **state)
{
    const char *id = create(ROLE_RULE("block", "{\"tool\":\"acc__get\"}"));
    json_t *again;

    (void)state;
    shop_done("connections__update", "{\"connection\":\"acc\",\"label\":\"other\"}");
    again = world_do(world_root(), "restrictions__update",
                     json_pack("{s:s, s:[{s:s}]}", "restriction", id, "items", "tool", "acc__get"));
    assert_int_equal(shop_size(shop_at(again, "items", 0), "pins"), 1);
    json_decref(again);
    again = shop_do("restrictions__explain",
                    "{\"member\":\"ada@example.com\",\"tool\":\"other__get\"}");
    assert_string_equal(shop_str(again, "answer"), "blocked");
    json_decref(again);
}

/* --- twins ----------------------------------------------------------------------- */

static void tearing_twins_apart_is_warned_of(void **state)
{
    static const struct {
        const char *rule;
        int is_warned;
    } table[] = {
        {ROLE_RULE("block", "{\"connector\":\"shop\",\"operation\":\"twin-b\"}"), 1},
        {ROLE_RULE("block", "{\"tool\":\"acc__twin-b\"}"), 1},
        {ROLE_RULE("allow", "{\"connector\":\"shop\",\"operation\":\"twin-a\"}"), 1},
        {ROLE_RULE("allow", "{\"connector\":\"shop\"}"), 0},
        {ROLE_RULE("block", "{\"connector\":\"shop\"}"), 0},
        {ROLE_RULE("block", "{\"connector\":\"shop\",\"operation\":\"get\"}"), 0},
        {ROLE_RULE("block", "{\"connector\":\"shop\",\"operation\":\"twin-a\"},"
                            "{\"connector\":\"shop\",\"operation\":\"twin-b\"}"),
         0},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(table); i++) {
        json_t *made = shop_do("restrictions__create", table[i].rule);

        assert_int_equal(shop_warns(made, "twin-a") && shop_warns(made, "twin-b"),
                         table[i].is_warned);
        world_done(world_root(), "restrictions__delete",
                   json_pack("{s:s}", "restriction", shop_str(made, "restriction")));
        json_decref(made);
    }
}

static void twins_are_judged_by_all_rules_of_the_target(void **state)
{
    json_t *made;

    (void)state;
    (void)create(ROLE_RULE("block", "{\"connector\":\"shop\",\"operation\":\"twin-a\"}"));
    made = shop_do("restrictions__create",
                   ROLE_RULE("block", "{\"connector\":\"shop\",\"operation\":\"twin-b\"}"));
    assert_int_equal(shop_size(made, "warnings"), 0);
    json_decref(made);
    made = shop_do("restrictions__create",
                   "{\"effect\":\"block\",\"target\":{\"member\":\"ada@example.com\"},\"items\":["
                   "{\"connector\":\"shop\",\"operation\":\"twin-b\"}]}");
    assert_int_equal(shop_size(made, "warnings"), 1);
    json_decref(made);
}

/* --- update ---------------------------------------------------------------------- */

static void an_update_replaces_what_is_given(void **state)
{
    const char *id = create("{\"effect\":\"allow\",\"target\":{\"role\":\"Member\"},\"name\":\"n\","
                            "\"note\":\"x\",\"items\":[{\"connector\":\"shop\"}]}");
    json_t *shown =
        world_do(world_root(), "restrictions__update",
                 json_pack("{s:s, s:n, s:s, s:i}", "restriction", "n", "note", "name", "m",
                           "if_revision", 1));

    (void)state;
    assert_null(json_object_get(shown, "note"));
    assert_string_equal(shop_str(shown, "name"), "m");
    assert_int_equal(shop_size(shown, "items"), 1);
    assert_int_equal(mcp_json_int(shown, "revision", 0), 2);
    json_decref(shown);
    assert_int_equal(world_refused(world_root(), "restrictions__get",
                                   json_pack("{s:s}", "restriction", "n")),
                     MCP_CODE_NOT_FOUND);
    assert_int_equal(world_refused(world_root(), "restrictions__update",
                                   json_pack("{s:s, s:s, s:i}", "restriction", id, "effect",
                                             "block", "if_revision", 1)),
                     MCP_CODE_REVISION_MISMATCH);
    /* the items as they were shown */
    shown = get("m");
    world_done(world_root(), "restrictions__update",
               json_pack("{s:s, s:O}", "restriction", "m", "items",
                         json_object_get(shown, "items")));
    json_decref(shown);
}

static void another_effect_reads_the_items_anew(void **state)
{
    const char *id = create(ROLE_RULE("block", "{\"tool\":\"later__list\"}"));
    const char *other = create(ROLE_RULE("block", "{\"tool\":\"acc__list\"}"));
    json_t *shown;

    (void)state;
    assert_int_equal(
        world_refused(world_root(), "restrictions__update",
                      json_pack("{s:s, s:s}", "restriction", id, "effect", "allow")),
        MCP_CODE_NOT_FOUND);
    shown = world_do(world_root(), "restrictions__update",
                     json_pack("{s:s, s:s}", "restriction", other, "effect", "allow"));
    assert_string_equal(shop_str(shown, "effect"), "allow");
    assert_int_equal(shop_size(shop_at(shown, "items", 0), "pins"), 1);
    json_decref(shown);
}

/* The shop loses an operation. */
static void drop_operation(void)
{
    json_t *file = shop_json(SHOP_FILE("shop", SHOP_OP("list", "get", "/items", "")));

    json_object_set_new(file, "connector", json_string("shop"));
    world_done(world_root(), "connectors__update", file);
}

static void what_vanished_stays_in_the_rule_and_is_marked(void **state)
{
    const char *id =
        create(ROLE_RULE("allow", "{\"connector\":\"shop\",\"operation\":\"get\"}"));
    json_t *shown;

    (void)state;
    drop_operation();
    shown = get(id);
    assert_true(json_is_true(json_object_get(shown, "empty")));
    assert_true(json_is_true(json_object_get(shop_at(shown, "items", 0), "missing")));
    json_decref(shown);
    assert_int_equal(
        shop_refused("restrictions__create",
                     ROLE_RULE("allow", "{\"connector\":\"shop\",\"operation\":\"get\"}")),
        MCP_CODE_NOT_FOUND);
    shown = world_do(world_root(), "restrictions__update",
                     json_pack("{s:s, s:[{s:s, s:s}, {s:s}]}", "restriction", id, "items",
                               "connector", "shop", "operation", "get", "connector", "desk"));
    assert_null(json_object_get(shown, "empty"));
    assert_int_equal(shop_size(shown, "items"), 2);
    json_decref(shown);
    /* it goes on denying */
    shown = shop_do("restrictions__explain",
                    "{\"member\":\"ada@example.com\",\"tool\":\"acc__list\"}");
    assert_string_equal(shop_str(shown, "answer"), "not on the allowlist");
    json_decref(shown);
}

/* --- list and delete ------------------------------------------------------------- */

static void a_list_is_filtered(void **state)
{
    (void)state;
    (void)create(ROLE_RULE("allow", "{\"connector\":\"shop\"}"));
    (void)create(ROLE_RULE("block", "{\"tool\":\"support__list\"}"));
    (void)create("{\"effect\":\"block\",\"target\":{\"member\":\"ada@example.com\"},\"items\":["
                 "{\"connector\":\"shop\",\"operation\":\"wipe\"}]}");
    assert_int_equal(list_size("{}"), 3);
    assert_int_equal(list_size("{\"role\":\"Member\"}"), 2);
    assert_int_equal(list_size("{\"role\":\"Guest\"}"), 0);
    assert_int_equal(list_size("{\"member\":\"ada@example.com\"}"), 1);
    assert_int_equal(list_size("{\"member\":\"bob@example.com\"}"), 0);
    assert_int_equal(list_size("{\"effect\":\"block\"}"), 2);
    assert_int_equal(list_size("{\"connector\":\"shop\"}"), 2);
    assert_int_equal(list_size("{\"connector\":\"desk\"}"), 1);
    assert_int_equal(list_size("{\"connector\":\"desk\",\"effect\":\"allow\"}"), 0);
    assert_int_equal(shop_refused("restrictions__list", "{\"role\":\"none\"}"), MCP_CODE_NOT_FOUND);
    assert_int_equal(shop_refused("restrictions__list", "{\"cursor\":\"mem_1\"}"),
                     MCP_CODE_INVALID_REQUEST);
}

static void a_list_shows_the_first_items_and_get_all(void **state)
{
    json_t *items = json_array();
    json_t *shown;
    int i;

    (void)state;
    for (i = 0; i < 60; i++) {
        json_array_append_new(items, json_pack("{s:s}", "tool",
                                               apr_psprintf(world.scratch, "x__t%d", i)));
    }
    shown = world_do(world_root(), "restrictions__create",
                     json_pack("{s:s, s:{s:s}, s:o}", "effect", "block", "target", "role", "Member",
                               "items", items));
    assert_int_equal(shop_size(shown, "items"), 60);
    assert_null(json_object_get(shown, "more_items"));
    json_decref(shown);
    shown = shop_do("restrictions__list", "{}");
    assert_int_equal(shop_size(shop_at(shown, "items", 0), "items"), 50);
    assert_true(json_is_true(json_object_get(shop_at(shown, "items", 0), "more_items")));
    assert_int_equal(mcp_json_int(shop_at(shown, "items", 0), "items_count", 0), 60);
    json_decref(shown);
}

static void a_deleted_rule_is_gone(void **state)
{
    const char *id = create(ROLE_RULE("block", "{\"connector\":\"shop\"}"));

    (void)state;
    assert_int_equal(world_refused(world_root(), "restrictions__delete",
                                   json_pack("{s:s, s:i}", "restriction", id, "if_revision", 7)),
                     MCP_CODE_REVISION_MISMATCH);
    world_done(world_root(), "restrictions__delete", json_pack("{s:s}", "restriction", id));
    assert_int_equal(list_size("{}"), 0);
    assert_int_equal(world_refused(world_root(), "restrictions__get",
                                   json_pack("{s:s}", "restriction", id)),
                     MCP_CODE_NOT_FOUND);
}

static void a_dry_run_writes_nothing(void **state)
{
    json_t *shown = shop_do("restrictions__create",
                            "{\"effect\":\"block\",\"target\":{\"role\":\"Member\"},\"items\":["
                            "{\"connector\":\"shop\"}],\"dry_run\":true}");

    (void)state;
    assert_non_null(json_object_get(shown, "impact"));
    assert_non_null(json_object_get(shown, "warnings"));
    json_decref(shown);
    assert_int_equal(list_size("{}"), 0);
}

static void rules_need_their_permissions(void **state)
{
    static const char *const reader[] = {"restriction:read", NULL};

    (void)state;
    assert_int_equal(world_refused(ada, "restrictions__list", json_object()),
                     MCP_CODE_PERMISSION_DENIED);
    assert_int_equal(
        world_refused(world_holder(reader), "restrictions__create",
                      shop_json(ROLE_RULE("block", "{\"connector\":\"shop\"}"))),
        MCP_CODE_PERMISSION_DENIED);
    world_done(world_holder(reader), "restrictions__list", json_object());
}

/* --- roles and members that are named -------------------------------------------- */

static void a_role_that_policy_names_stays(void **state)
{
    const char *role = shop_id("roles__create", "{\"name\":\"Ops\",\"permissions\":[]}", "role");
    const char *rule =
        world_take(world_do(world_root(), "restrictions__create",
                            json_pack("{s:s, s:{s:s}, s:[]}", "effect", "block", "target", "role",
                                      role, "items")),
                   "restriction");
    json_t *shown = get(rule);

    (void)state;
    assert_string_equal(shop_str(json_object_get(shown, "target"), "role"), "Ops");
    json_decref(shown);
    assert_int_equal(shop_refused("roles__delete", "{\"role\":\"Ops\"}"), MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.hint, "restrictions list"));
    world_done(world_root(), "restrictions__delete", json_pack("{s:s}", "restriction", rule));
    shop_done("toolboxes__create",
              "{\"name\":\"box\",\"roles\":[\"Ops\"],\"entries\":[]}");
    assert_int_equal(shop_refused("roles__delete", "{\"role\":\"Ops\"}"), MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.hint, "toolboxes list"));
    shop_done("toolboxes__update", "{\"toolbox\":\"box\",\"roles\":[]}");
    shop_done("roles__delete", "{\"role\":\"Ops\"}");
}

static void a_removed_member_leaves_no_rule_and_no_assignment(void **state)
{
    json_t *box;

    (void)state;
    (void)create("{\"effect\":\"block\",\"target\":{\"member\":\"ada@example.com\"},\"items\":[]}");
    (void)create(ROLE_RULE("block", ""));
    shop_done("toolboxes__create",
              "{\"name\":\"box\",\"members\":[\"ada@example.com\",\"bob@example.com\"],"
              "\"entries\":[]}");
    shop_done("members__remove", "{\"member\":\"ada@example.com\"}");
    assert_int_equal(list_size("{}"), 1);
    box = shop_do("toolboxes__get", "{\"toolbox\":\"box\"}");
    assert_int_equal(shop_size(box, "members"), 1);
    assert_string_equal(json_string_value(shop_at(box, "members", 0)), bob->member_id);
    json_decref(box);
    assert_int_equal(
        world_refused(world_root(), "restrictions__create",
                      json_pack("{s:s, s:{s:s}, s:[]}", "effect", "block", "target", "member",
                                ada->member_id, "items")),
        MCP_CODE_CONFLICT);
}

/* --- explain --------------------------------------------------------------------- */

static json_t *explain(const char *more)
{
    return shop_do("restrictions__explain",
                   apr_pstrcat(world.scratch, "{\"member\":\"ada@example.com\",", more, "}",
                               (char *)NULL));
}

static const char *point(const json_t *explained, const char *name)
{
    return shop_str(json_object_get(json_object_get(explained, "points"), name), "answer");
}

static void without_rules_everything_is_ok(void **state)
{
    json_t *explained = explain("\"tool\":\"acc__get\"");

    (void)state;
    assert_string_equal(shop_str(explained, "governed"), "none");
    assert_string_equal(shop_str(explained, "answer"), "ok");
    assert_true(json_is_null(json_object_get(explained, "decided_by")));
    assert_string_equal(point(explained, "browse"), "ok");
    assert_string_equal(point(explained, "connect"), "ok");
    assert_string_equal(point(explained, "advertise"), "ok");
    assert_string_equal(point(explained, "execute"), "ok");
    assert_string_equal(shop_str(json_object_get(explained, "url"), "verdict"), "allow");
    assert_int_equal(shop_size(json_object_get(explained, "url"), "claimed_by"), 0);
    assert_string_equal(shop_str(explained, "connector_slug"), "shop");
    json_decref(explained);
}

static void the_rule_that_decides_is_named(void **state)
{
    const char *role_rule =
        create(ROLE_RULE("block", "{\"connector\":\"shop\",\"operation\":\"get\"}"));
    const char *user_rule;
    json_t *explained = explain("\"tool\":\"acc__get\"");
    const json_t *decided = json_object_get(explained, "decided_by");

    (void)state;
    assert_string_equal(shop_str(explained, "governed"), "roles");
    assert_string_equal(shop_str(explained, "answer"), "blocked");
    assert_string_equal(shop_str(decided, "restriction"), role_rule);
    assert_string_equal(shop_str(decided, "effect"), "block");
    assert_string_equal(shop_str(decided, "item"), "operation");
    assert_string_equal(point(explained, "browse"), "blocked");
    assert_string_equal(point(explained, "connect"), "ok");
    assert_string_equal(shop_str(json_object_get(explained, "url"), "verdict"), "block");
    json_decref(explained);
    /* rules of the member's own replace those of the roles */
    user_rule = create("{\"effect\":\"allow\",\"target\":{\"member\":\"ada@example.com\"},"
                       "\"items\":[{\"connector\":\"shop\"}]}");
    explained = explain("\"tool\":\"acc__get\"");
    decided = json_object_get(explained, "decided_by");
    assert_string_equal(shop_str(explained, "governed"), "user");
    assert_string_equal(shop_str(explained, "answer"), "ok");
    assert_string_equal(shop_str(decided, "restriction"), user_rule);
    assert_string_equal(shop_str(decided, "item"), "connector");
    json_decref(explained);
    explained = explain("\"tool\":\"support__list\"");
    assert_string_equal(shop_str(explained, "answer"), "not on the allowlist");
    assert_true(json_is_null(json_object_get(explained, "decided_by")));
    assert_string_equal(point(explained, "connect"), "not on the allowlist");
    json_decref(explained);
}

static void the_rules_that_govern_are_listed(void **state)
{
    const char *named = create("{\"effect\":\"allow\",\"target\":{\"role\":\"Member\"},\"name\":\"only-shop\","
                               "\"items\":[{\"connector\":\"shop\"}]}");
    const char *own;
    json_t *explained = explain("\"tool\":\"support__list\"");
    const json_t *rule = shop_at(explained, "rules", 0);

    (void)state;
    assert_int_equal(shop_size(explained, "rules"), 1);
    assert_string_equal(shop_str(rule, "restriction"), named);
    assert_string_equal(shop_str(rule, "name"), "only-shop");
    assert_string_equal(shop_str(rule, "effect"), "allow");
    assert_string_equal(shop_str(rule, "role"), "Member");
    assert_null(json_object_get(rule, "item"));
    json_decref(explained);
    explained = explain("\"tool\":\"acc__get\"");
    assert_string_equal(shop_str(json_object_get(explained, "decided_by"), "name"), "only-shop");
    json_decref(explained);
    /* those that a member's own replace are not among them */
    own = create("{\"effect\":\"block\",\"target\":{\"member\":\"ada@example.com\"},\"items\":[]}");
    explained = explain("\"tool\":\"acc__get\"");
    assert_int_equal(shop_size(explained, "rules"), 1);
    assert_string_equal(shop_str(shop_at(explained, "rules", 0), "restriction"), own);
    assert_null(json_object_get(shop_at(explained, "rules", 0), "name"));
    json_decref(explained);
}

static void values_that_lead_to_a_withheld_operation_are_told(void **state)
{
    json_t *explained;
    const json_t *url;

    (void)state;
    (void)create(ROLE_RULE("block", "{\"connector\":\"shop\",\"operation\":\"admin\"},"
                                    "{\"connector\":\"shop\",\"operation\":\"twin-b\"}"));
    explained = explain("\"tool\":\"acc__get\"");
    url = json_object_get(explained, "url");
    assert_string_equal(shop_str(url, "verdict"), "allow");
    assert_int_equal(shop_size(url, "claimed_by"), 1);
    assert_string_equal(shop_str(shop_at(url, "claimed_by", 0), "operation"), "admin");
    assert_string_equal(shop_str(shop_at(url, "claimed_by", 0), "verdict"), "block");
    json_decref(explained);
    explained = explain("\"tool\":\"acc__twin-a\"");
    url = json_object_get(explained, "url");
    assert_string_equal(shop_str(shop_at(url, "claimed_by", 0), "operation"), "twin-b");
    json_decref(explained);
}

static void all_paths_to_an_operation_are_shown(void **state)
{
    json_t *explained;
    const json_t *path;

    (void)state;
    shop_done("connections__create",
              "{\"connector\":\"shop\",\"label\":\"mine\",\"owner\":\"ada@example.com\"}");
    shop_done("toolboxes__create",
              "{\"name\":\"box\",\"roles\":[\"Member\"],\"entries\":[{\"connector\":\"shop\","
              "\"operation\":\"list\",\"connections\":[\"acc\"],\"frozen\":{\"q\":\"x\"}}]}");
    shop_done("toolboxes__create",
              "{\"name\":\"far\",\"roles\":[\"Guest\"],\"entries\":[{\"connector\":\"shop\","
              "\"operation\":\"list\",\"connections\":[\"acc\"]}]}");
    explained = explain("\"tool\":\"box__list\"");
    assert_string_equal(shop_str(explained, "answer"), "ok");
    assert_int_equal(shop_size(explained, "paths"), 4);
    path = shop_at(explained, "paths", 0);
    assert_string_equal(shop_str(path, "tool"), "mine__list");
    assert_string_equal(shop_str(path, "via"), "connection");
    assert_false(mcp_json_bool(path, "frozen"));
    path = shop_at(explained, "paths", 2);
    assert_string_equal(shop_str(path, "tool"), "box__list");
    assert_string_equal(shop_str(path, "via"), "toolbox");
    assert_string_equal(shop_str(path, "account"), "box");
    assert_true(mcp_json_bool(path, "frozen"));
    path = shop_at(explained, "paths", 3);
    assert_string_equal(shop_str(path, "tool"), "far__list");
    assert_string_equal(shop_str(path, "answer"), "toolbox of others");
    json_decref(explained);
}

static void what_nobody_has_is_unknown(void **state)
{
    json_t *explained = explain("\"tool\":\"acc__nothing\"");

    (void)state;
    assert_string_equal(shop_str(explained, "answer"), "unknown");
    assert_null(json_object_get(explained, "connector"));
    assert_true(json_is_null(json_object_get(explained, "url")));
    assert_int_equal(shop_size(explained, "paths"), 0);
    json_decref(explained);
}

static void an_operation_can_be_asked_about_without_a_name(void **state)
{
    json_t *explained = explain("\"connector\":\"shop\",\"operation\":\"get\"");

    (void)state;
    assert_string_equal(shop_str(explained, "tool"), "acc__get");
    assert_string_equal(shop_str(explained, "answer"), "ok");
    json_decref(explained);
    shop_done("connections__delete", "{\"connection\":\"acc\"}");
    explained = explain("\"connector\":\"shop\",\"operation\":\"get\"");
    assert_null(json_object_get(explained, "tool"));
    assert_string_equal(shop_str(explained, "answer"), "unknown");
    assert_string_equal(point(explained, "browse"), "ok");
    json_decref(explained);
    assert_int_equal(shop_refused("restrictions__explain",
                                  "{\"member\":\"ada@example.com\",\"connector\":\"shop\"}"),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(shop_refused("restrictions__explain", "{\"member\":\"ada@example.com\"}"),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(shop_refused("restrictions__explain",
                                  "{\"member\":\"ada@example.com\",\"connector\":\"shop\","
                                  "\"operation\":\"x\"}"),
                     MCP_CODE_NOT_FOUND);
}

static void what_is_forbidden_or_anothers_says_so(void **state)
{
    json_t *explained;

    (void)state;
    shop_done("connections__create",
              "{\"connector\":\"shop\",\"label\":\"bobs\",\"owner\":\"bob@example.com\"}");
    explained = explain("\"tool\":\"bobs__get\"");
    assert_string_equal(shop_str(explained, "answer"), "connection of another member");
    assert_true(json_is_null(json_object_get(explained, "decided_by")));
    json_decref(explained);
    explained = explain("\"tool\":\"acc__nuke\"");
    assert_string_equal(shop_str(explained, "answer"), "classified forbidden");
    json_decref(explained);
}

/* -------------------------------------------------------------------------------- */

#define TEST(name) cmocka_unit_test_setup_teardown(name, shop_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_rule_is_named_by_slugs_and_kept_by_ids),
        TEST(a_member_is_shown_with_the_email),
        TEST(what_can_not_be_meant_is_refused),
        TEST(a_name_is_taken_once),
        TEST(the_same_item_twice_is_one),
        TEST(naming_nothing_is_warned_of),
        TEST(a_name_block_pins_what_anybody_has_by_that_name),
        TEST(a_name_block_pins_what_an_entry_has_by_that_name),
        TEST(a_name_block_that_matches_nothing_is_kept),
        TEST(an_allow_keeps_the_operation_and_the_name_as_a_label),
        TEST(pins_that_are_given_are_united_with_what_is_found),
        TEST(writing_a_block_again_does_not_free_a_renamed_account),
        TEST(tearing_twins_apart_is_warned_of),
        TEST(twins_are_judged_by_all_rules_of_the_target),
        TEST(an_update_replaces_what_is_given),
        TEST(another_effect_reads_the_items_anew),
        TEST(what_vanished_stays_in_the_rule_and_is_marked),
        TEST(a_list_is_filtered),
        TEST(a_list_shows_the_first_items_and_get_all),
        TEST(a_deleted_rule_is_gone),
        TEST(a_dry_run_writes_nothing),
        TEST(rules_need_their_permissions),
        TEST(a_role_that_policy_names_stays),
        TEST(a_removed_member_leaves_no_rule_and_no_assignment),
        TEST(without_rules_everything_is_ok),
        TEST(the_rule_that_decides_is_named),
        TEST(the_rules_that_govern_are_listed),
        TEST(values_that_lead_to_a_withheld_operation_are_told),
        TEST(all_paths_to_an_operation_are_shown),
        TEST(what_nobody_has_is_unknown),
        TEST(an_operation_can_be_asked_about_without_a_name),
        TEST(what_is_forbidden_or_anothers_says_so)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
