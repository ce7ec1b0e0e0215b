/* The connectors resource over the real store: what is written, what an update means for
 * connections, what is refused; and what of the catalog somebody with restrictions sees and connects. */
#include "ops_world.h"

#include "../../policyd/pd_catalog.h"
#include "../../policyd/pd_seal.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static json_t *file_with(const char *slug, const char *base_url, json_t *auth)
{
    return json_pack(
        "{s:s,s:s,s:s,s:s,s:{s:{s:s,s:s}},s:o,s:[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s}]}", "slug",
        slug, "label", "The Shop", "description", "Sells things", "base_url", base_url, "variables",
        "host", "default", "a.example", "pattern", "[a-z.]+", "auth", auth, "operations", "id",
        "list", "method", "get", "path", "/items", "description", "Lists.", "id", "wipe", "method",
        "DELETE", "path", "/items?all", "description", "Wipes.");
}

static json_t *bearer(void)
{
    return json_pack("{s:s}", "type", "bearer");
}

static json_t *shop(void)
{
    return file_with("shop", "https://{host}/api", bearer());
}

static const char *create_shop(void)
{
    return world_take(world_do(world_root(), "connectors__create", shop()), "connector");
}

static const char *connect_shop(const char *label, json_t *variables)
{
    return world_take(
        world_do(world_root(), "connections__create",
                 json_pack("{s:s,s:s,s:b,s:o,s:{s:s}}", "connector", "shop", "label", label,
                           "shared", 1, "variables", variables, "credential", "token", "s3cret")),
        "connection");
}

static json_t *get(const char *named)
{
    return world_do(world_root(), "connectors__get", json_pack("{s:s}", "connector", named));
}

static const char *connection_text(const char *id, const char *member)
{
    return world_take(
        world_do(world_root(), "connections__get", json_pack("{s:s}", "connection", id)), member);
}

/* --- looking into the store ------------------------------------------------------------ */

typedef struct look {
    const char *id;
    int has_secret;
    int has_summary;
    int is_done;
} look_t;

static pd_status_t look_unit(pd_tx_t *tx, void *baton)
{
    look_t *look = baton;
    const void *bytes = NULL;
    size_t count = 0;
    pd_object_t *object = NULL;

    look->has_secret = pd_tx_secret_get(tx, "connection", look->id, &bytes, &count) == PD_OK;
    look->has_summary = pd_tx_get(tx, "connector_summary", look->id, &object) == PD_OK;
    return PD_OK;
}

static void look_done(pd_status_t status, int64_t revision, void *baton)
{
    look_t *look = baton;

    (void)revision;
    assert_int_equal(status, PD_OK);
    look->is_done = 1;
}

static look_t look_at(const char *id)
{
    look_t look = {.id = id};

    assert_int_equal(pd_store_submit(world.core.store, PD_LANE_JOB, pd_boot_in(30000), look_unit,
                                     look_done, &look),
                     PD_OK);
    world_wait(&look.is_done);
    return look;
}

/* --- create, get, list ------------------------------------------------------------------- */

static void a_connector_is_created_and_shown_as_its_file(void **state)
{
    json_t *made = world_do(world_root(), "connectors__create", shop());
    const char *id = apr_pstrdup(world.scratch, mcp_json_str(made, "connector"));
    json_t *shown;
    json_t *by_slug;
    const json_t *operations;

    (void)state;
    assert_true(strncmp(id, "con_", 4) == 0);
    assert_int_equal(mcp_json_int(made, "revision", 0), 1);
    assert_int_equal(mcp_json_int(made, "operations", 0), 2);
    assert_int_equal(mcp_json_int(json_object_get(made, "by_class"), "destructive", 0), 1);
    assert_non_null(strstr(world_last()->detail, id));
    shown = get(id);
    by_slug = get("shop");
    assert_true(json_equal(shown, by_slug));
    assert_string_equal(mcp_json_str(shown, "slug"), "shop");
    operations = json_object_get(shown, "operations");
    assert_string_equal(mcp_json_str(json_array_get(operations, 1), "path"), "/items?all");
    assert_null(json_object_get(json_array_get(operations, 1), "query"));
    assert_int_equal(mcp_json_int(json_object_get(shown, "by_class"), "read", 0), 1);
    json_decref(by_slug);
    json_decref(shown);
    json_decref(made);
}

static void a_slug_is_taken_once(void **state)
{
    (void)state;
    (void)create_shop();
    assert_int_equal(world_refused(world_root(), "connectors__create", shop()), MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.message, "\"shop\""));
}

static void a_bad_file_leaves_nothing(void **state)
{
    json_t *file = shop();
    json_t *list;

    (void)state;
    json_array_clear(json_object_get(file, "operations"));
    json_array_append_new(json_object_get(file, "operations"),
                          json_pack("{s:s,s:s,s:s,s:s}", "id", "a", "method", "GET", "path", "a",
                                    "description", "d"));
    assert_int_equal(world_refused(world_root(), "connectors__create", file),
                     MCP_CODE_INVALID_REQUEST);
    assert_non_null(strstr(world.message, "/operations/0/path: "));
    list = world_do(world_root(), "connectors__list", json_object());
    assert_int_equal(json_array_size(json_object_get(list, "items")), 0);
    json_decref(list);
}

static void a_list_shows_summaries_and_is_paged(void **state)
{
    static const char *const slugs[] = {"alpha", "beta", "gamma"};
    json_t *page;
    const json_t *item;
    const char *cursor;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(slugs); i++) {
        world_done(world_root(), "connectors__create",
                   file_with(slugs[i], "https://{host}", bearer()));
    }
    page = world_do(world_root(), "connectors__list", json_pack("{s:i}", "limit", 2));
    assert_int_equal(json_array_size(json_object_get(page, "items")), 2);
    item = json_array_get(json_object_get(page, "items"), 0);
    assert_string_equal(mcp_json_str(item, "slug"), "alpha");
    assert_string_equal(mcp_json_str(item, "auth"), "bearer");
    assert_int_equal(mcp_json_int(item, "operations", 0), 2);
    assert_int_equal(mcp_json_int(json_object_get(item, "by_class"), "read", 0), 1);
    assert_non_null(mcp_json_str(item, "connector"));
    cursor = world_take(page, "next_cursor");
    page = world_do(world_root(), "connectors__list", json_pack("{s:s}", "cursor", cursor));
    assert_int_equal(json_array_size(json_object_get(page, "items")), 1);
    assert_null(json_object_get(page, "next_cursor"));
    json_decref(page);
    page = world_do(world_root(), "connectors__list", json_pack("{s:s}", "query", "GAM"));
    assert_int_equal(json_array_size(json_object_get(page, "items")), 1);
    json_decref(page);
    page = world_do(world_root(), "connectors__list", json_pack("{s:s}", "query", "sells"));
    assert_int_equal(json_array_size(json_object_get(page, "items")), 3);
    json_decref(page);
    assert_int_equal(
        world_refused(world_root(), "connectors__list", json_pack("{s:s}", "cursor", "mem_1")),
        MCP_CODE_INVALID_REQUEST);
}

/* --- update ------------------------------------------------------------------------------- */

static void what_get_shows_update_takes(void **state)
{
    const char *id = create_shop();
    json_t *shown = get(id);
    json_t *again;
    json_t *list;

    (void)state;
    json_object_set_new(shown, "label", json_string("New label"));
    again = world_do(world_root(), "connectors__update", shown);
    assert_int_equal(mcp_json_int(again, "revision", 0), 2);
    assert_int_equal(json_array_size(json_object_get(again, "needs_reauth")), 0);
    json_decref(again);
    list = world_do(world_root(), "connectors__list", json_object());
    assert_string_equal(mcp_json_str(json_array_get(json_object_get(list, "items"), 0), "label"),
                        "New label");
    json_decref(list);
}

static void an_update_needs_the_revision_that_it_names(void **state)
{
    json_t *shown;

    (void)state;
    (void)create_shop();
    shown = get("shop");
    json_object_set_new(shown, "if_revision", json_integer(7));
    assert_int_equal(world_refused(world_root(), "connectors__update", shown),
                     MCP_CODE_REVISION_MISMATCH);
    shown = get("shop");
    json_object_set_new(shown, "if_revision", json_integer(1));
    world_done(world_root(), "connectors__update", shown);
}

static void a_slug_stays(void **state)
{
    json_t *shown;

    (void)state;
    (void)create_shop();
    shown = get("shop");
    json_object_set_new(shown, "slug", json_string("store"));
    assert_int_equal(world_refused(world_root(), "connectors__update", shown),
                     MCP_CODE_INVALID_REQUEST);
    assert_non_null(strstr(world.message, "/slug: must stay \"shop\""));
}

static void another_path_moves_connections_and_keeps_their_credential(void **state)
{
    const char *connection;
    json_t *answer;
    json_t *file = shop();

    (void)state;
    (void)create_shop();
    connection = connect_shop("acc", json_pack("{s:s}", "host", "b.example"));
    json_object_set_new(file, "connector", json_string("shop"));
    json_object_set_new(file, "base_url", json_string("https://{host}/v2"));
    json_object_set_new(json_object_get(file, "auth"), "description", json_string("A token."));
    answer = world_do(world_root(), "connectors__update", file);
    assert_int_equal(json_array_size(json_object_get(answer, "needs_reauth")), 0);
    json_decref(answer);
    assert_string_equal(connection_text(connection, "base"), "https://b.example/v2");
    assert_string_equal(connection_text(connection, "state"), "ready");
    assert_true(look_at(connection).has_secret);
    /* still found by its label */
    assert_string_equal(connection_text("acc", "connection"), connection);
}

static void another_origin_drops_credentials(void **state)
{
    const char *connection;
    json_t *answer;
    json_t *file = shop();

    (void)state;
    (void)create_shop();
    connection = connect_shop("acc", json_pack("{s:s}", "host", "b.example"));
    json_object_set_new(file, "connector", json_string("shop"));
    json_object_set_new(file, "base_url", json_string("https://api.{host}"));
    answer = world_do(world_root(), "connectors__update", file);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(answer, "needs_reauth"), 0)), "acc");
    json_decref(answer);
    assert_string_equal(connection_text(connection, "base"), "https://api.b.example");
    assert_string_equal(connection_text(connection, "state"), "needs_reauth");
    assert_false(look_at(connection).has_secret);
}

static void another_scheme_of_the_same_host_is_another_origin(void **state)
{
    const char *connection;
    json_t *file = shop();

    (void)state;
    (void)create_shop();
    connection = connect_shop("acc", json_object());
    json_object_set_new(file, "connector", json_string("shop"));
    json_object_set_new(file, "base_url", json_string("http://{host}/api"));
    world_done(world_root(), "connectors__update", file);
    assert_false(look_at(connection).has_secret);
}

static void another_auth_drops_credentials(void **state)
{
    static const char *const auths[] = {"{\"type\":\"basic\"}",
                                        "{\"type\":\"bearer\",\"prefix\":\"Token\"}",
                                        "{\"type\":\"api_key\",\"in\":\"query\",\"name\":\"k\"}"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(auths); i++) {
        const char *slug = apr_psprintf(world.scratch, "shop%d", (int)i);
        const char *connection;
        json_t *file = file_with(slug, "https://{host}/api", bearer());
        json_t *auth = NULL;

        world_done(world_root(), "connectors__create", json_deep_copy(file));
        connection =
            world_take(world_do(world_root(), "connections__create",
                                json_pack("{s:s,s:s,s:b,s:{s:s}}", "connector", slug, "label", slug,
                                          "shared", 1, "credential", "token", "s3cret")),
                       "connection");
        assert_true(look_at(connection).has_secret);
        assert_int_equal(mcp_json_parse(auths[i], strlen(auths[i]), 8, &auth, NULL), MCP_OK);
        json_object_set_new(file, "connector", json_string(slug));
        json_object_set_new(file, "auth", auth);
        world_done(world_root(), "connectors__update", file);
        assert_string_equal(connection_text(connection, "state"), "needs_reauth");
        assert_false(look_at(connection).has_secret);
    }
}

static void no_auth_at_all_needs_none_again(void **state)
{
    const char *connection;
    json_t *answer;
    json_t *file = file_with("shop", "https://{host}/api", json_pack("{s:s}", "type", "none"));

    (void)state;
    (void)create_shop();
    connection = connect_shop("acc", json_object());
    json_object_set_new(file, "connector", json_string("shop"));
    answer = world_do(world_root(), "connectors__update", file);
    assert_int_equal(json_array_size(json_object_get(answer, "needs_reauth")), 0);
    json_decref(answer);
    assert_string_equal(connection_text(connection, "state"), "ready");
    assert_false(look_at(connection).has_secret);
}

static void an_update_that_a_connection_does_not_fit_changes_nothing(void **state)
{
    const char *connection;
    json_t *file = shop();
    json_t *shown;

    (void)state;
    (void)create_shop();
    connection = connect_shop("acc", json_pack("{s:s}", "host", "b.example"));
    json_object_set_new(file, "connector", json_string("shop"));
    json_object_set_new(json_object_get(json_object_get(file, "variables"), "host"), "pattern",
                        json_string("a\\.example"));
    assert_int_equal(world_refused(world_root(), "connectors__update", file), MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.message, connection));
    shown = get("shop");
    assert_int_equal(mcp_json_int(shown, "revision", 0), 1);
    json_decref(shown);
    assert_true(look_at(connection).has_secret);
}

/* --- delete --------------------------------------------------------------------------------- */

static void a_connector_in_use_stays(void **state)
{
    const char *id = create_shop();
    const char *connection = connect_shop("acc", json_object());

    (void)state;
    assert_int_equal(
        world_refused(world_root(), "connectors__delete", json_pack("{s:s}", "connector", "shop")),
        MCP_CODE_CONFLICT);
    assert_non_null(strstr(world.message, connection));
    world_done(world_root(), "connections__delete", json_pack("{s:s}", "connection", connection));
    assert_int_equal(world_refused(world_root(), "connectors__delete",
                                   json_pack("{s:s,s:i}", "connector", "shop", "if_revision", 9)),
                     MCP_CODE_REVISION_MISMATCH);
    assert_true(look_at(id).has_summary);
    world_done(world_root(), "connectors__delete", json_pack("{s:s}", "connector", id));
    assert_false(look_at(id).has_summary);
    assert_int_equal(
        world_refused(world_root(), "connectors__get", json_pack("{s:s}", "connector", "shop")),
        MCP_CODE_NOT_FOUND);
    (void)create_shop(); /* the slug is free again */
}

static void what_does_not_exist_is_not_found(void **state)
{
    static const char *const names[] = {"connectors__get", "connectors__delete"};
    json_t *file = shop();
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++) {
        assert_int_equal(
            world_refused(world_root(), names[i], json_pack("{s:s}", "connector", "con_none")),
            MCP_CODE_NOT_FOUND);
    }
    json_object_set_new(file, "connector", json_string("shop"));
    assert_int_equal(world_refused(world_root(), "connectors__update", file), MCP_CODE_NOT_FOUND);
}

/* --- what is withheld ------------------------------------------------------------------------ */

typedef struct rule_put {
    json_t *doc;
    int is_done;
} rule_put_t;

static pd_status_t put_rule_unit(pd_tx_t *tx, void *baton)
{
    rule_put_t *put = baton;

    return pd_tx_insert(tx, "restriction", pd_store_new_id("rst", pd_tx_pool(tx)), NULL, put->doc,
                        NULL);
}

static void put_rule_done(pd_status_t status, int64_t revision, void *baton)
{
    rule_put_t *put = baton;

    assert_int_equal(status, PD_OK);
    pd_policy_changed(&world.core, revision);
    put->is_done = 1;
}

/* A rule as the store keeps it; `items` is stolen. */
static void restrict_role(const char *effect, const char *role, json_t *items)
{
    rule_put_t put = {json_pack("{s:s,s:{s:s},s:o}", "effect", effect, "target", "role", role,
                                "items", items),
                      0};

    assert_int_equal(pd_store_submit(world.core.store, PD_LANE_WRITE, pd_boot_in(30000),
                                     put_rule_unit, put_rule_done, &put),
                     PD_OK);
    world_wait(&put.is_done);
    json_decref(put.doc);
}

static json_t *whole(const char *connector_id)
{
    return json_pack("[{s:s}]", "connector", connector_id);
}

static json_t *single(const char *connector_id, const char *operation)
{
    return json_pack("[{s:s,s:s}]", "connector", connector_id, "operation", operation);
}

/* A shop of four operations, one of each class. */
static const char *create_store(const char *slug)
{
    return world_take(
        world_do(world_root(), "connectors__create",
                 json_pack("{s:s,s:s,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,"
                           "s:s,s:s},{s:s,s:s,s:s,s:s,s:s}]}",
                           "slug", slug, "label", "Store", "base_url", "https://s.example", "auth",
                           "type", "none", "operations", "id", "list", "method", "GET", "path",
                           "/items", "description", "Lists.", "id", "add", "method", "POST", "path",
                           "/items", "description", "Adds.", "id", "wipe", "method", "DELETE",
                           "path", "/items", "description", "Wipes.", "id", "leak", "method", "GET",
                           "path", "/secrets", "description", "Leaks.", "classification",
                           "forbidden")),
        "connector");
}

static const pd_actor_t *member(const char *name, const char *role)
{
    return world_member(apr_pstrcat(world.scratch, name, "@example.com", (char *)NULL), role,
                        "mcp:destructive", MCP_SURFACE_REST);
}

/* "SLUG:OPERATIONS:READ/WRITE/DESTRUCTIVE/FORBIDDEN" of each item, in a row. */
static const char *listed(const pd_actor_t *actor)
{
    json_t *list = world_do(actor, "connectors__list", json_object());
    const char *text = "";
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const json_t *by_class = json_object_get(item, "by_class");

        text = apr_psprintf(world.scratch, "%s%s%s:%d:%d/%d/%d/%d", text, i == 0 ? "" : " ",
                            mcp_json_str(item, "slug"), (int)mcp_json_int(item, "operations", -1),
                            (int)mcp_json_int(by_class, "read", -1),
                            (int)mcp_json_int(by_class, "write", -1),
                            (int)mcp_json_int(by_class, "destructive", -1),
                            (int)mcp_json_int(by_class, "forbidden", -1));
    }
    json_decref(list);
    return text;
}

/* Ids of the operations that get shows. */
static const char *shown(const pd_actor_t *actor, const char *connector)
{
    json_t *got = world_do(actor, "connectors__get", json_pack("{s:s}", "connector", connector));
    const char *text = "";
    const json_t *op;
    size_t i;

    json_array_foreach(json_object_get(got, "operations"), i, op)
    {
        text = apr_pstrcat(world.scratch, text, i == 0 ? "" : " ", mcp_json_str(op, "id"),
                           (char *)NULL);
    }
    json_decref(got);
    return text;
}

/* All that a refused caller is told. */
static const char *refusal(const pd_actor_t *actor, const char *operation, json_t *args)
{
    mcp_code_t code = world_refused(actor, operation, args);

    return apr_psprintf(world.scratch, "%s|%s|%s", mcp_code_text(code), world.message, world.hint);
}

static void a_forbidden_operation_is_seen_by_those_alone_who_write_connectors(void **state)
{
    const pd_actor_t *plain = member("ada", "Member");
    const pd_actor_t *admin = member("eve", "Admin");

    (void)state;
    (void)create_store("store");
    assert_string_equal(listed(plain), "store:3:1/1/1/0");
    assert_string_equal(shown(plain, "store"), "list add wipe");
    assert_string_equal(listed(admin), "store:4:1/1/1/1");
    assert_string_equal(shown(admin, "store"), "list add wipe leak");
    assert_string_equal(shown(world_root(), "store"), "list add wipe leak");
}

static void a_withheld_operation_is_in_no_answer_and_no_count(void **state)
{
    const char *id = create_store("store");
    const pd_actor_t *plain = member("ada", "Member");
    const pd_actor_t *other = member("eve", "Admin");

    (void)state;
    restrict_role("block", "Member", single(id, "add"));
    assert_string_equal(listed(plain), "store:2:1/0/1/0");
    assert_string_equal(shown(plain, "store"), "list wipe");
    assert_string_equal(shown(plain, id), "list wipe");
    assert_string_equal(listed(other), "store:4:1/1/1/1");
}

static void a_withheld_connector_is_as_one_that_never_was(void **state)
{
    const char *id = create_store("store");
    const pd_actor_t *plain = member("ada", "Member");
    const char *never;
    size_t i;
    const char *const names[] = {"store", id};

    (void)state;
    (void)create_store("open");
    restrict_role("block", "Member", whole(id));
    assert_string_equal(listed(plain), "open:3:1/1/1/0");
    never = refusal(plain, "connectors__get", json_pack("{s:s}", "connector", "nothing"));
    for (i = 0; i < COUNT(names); i++) {
        assert_string_equal(
            refusal(plain, "connectors__get", json_pack("{s:s}", "connector", names[i])), never);
        assert_non_null(strstr(world_last()->detail, id));
        assert_string_equal(refusal(plain, "connections__create",
                                    json_pack("{s:s,s:s}", "connector", names[i], "label", "mine")),
                            never);
        assert_string_equal(refusal(plain, "connections__list",
                                    json_pack("{s:s}", "connector", names[i])),
                            never);
    }
}

static void an_allow_rule_without_items_shows_no_connector(void **state)
{
    const pd_actor_t *plain = member("ada", "Member");

    (void)state;
    (void)create_store("store");
    restrict_role("allow", "Member", json_array());
    assert_string_equal(listed(plain), "");
    assert_int_equal(
        world_refused(plain, "connectors__get", json_pack("{s:s}", "connector", "store")),
        MCP_CODE_NOT_FOUND);
    assert_int_equal(world_refused(plain, "connections__create",
                                   json_pack("{s:s,s:s}", "connector", "store", "label", "mine")),
                     MCP_CODE_NOT_FOUND);
}

static void rules_that_can_not_be_read_show_nothing(void **state)
{
    const pd_actor_t *plain = member("ada", "Member");

    (void)state;
    (void)create_store("store");
    restrict_role("sometimes", "Member", json_array());
    assert_string_equal(listed(plain), "");
    assert_int_equal(
        world_refused(plain, "connectors__get", json_pack("{s:s}", "connector", "store")),
        MCP_CODE_NOT_FOUND);
}

static void without_a_policy_nothing_is_shown(void **state)
{
    static const struct {
        const char *operation, *argument;
    } cases[] = {{"connectors__list", NULL},         {"connectors__get", "connector"},
                 {"connections__list", NULL},        {"connections__get", "connection"},
                 {"connections__delete", "connection"}};
    size_t i;

    (void)state;
    (void)create_store("store");
    world.core.policy = NULL;
    for (i = 0; i < COUNT(cases); i++) {
        assert_int_equal(
            world_refused(world_root(), cases[i].operation,
                          cases[i].argument != NULL ? json_pack("{s:s}", cases[i].argument, "store")
                                                    : json_object()),
            MCP_CODE_POLICY_UNAVAILABLE);
    }
    world.core.policy = &world.policy;
}

/* A replacement, or an end, of what somebody does not see whole would take from others what he never saw. */
static void nobody_replaces_or_deletes_what_he_does_not_see_whole(void **state)
{
    const char *id = create_store("store");
    const pd_actor_t *admin = member("eve", "Admin");
    json_t *got;

    (void)state;
    restrict_role("block", "Admin", single(id, "add"));
    got = world_do(admin, "connectors__get", json_pack("{s:s}", "connector", "store"));
    assert_int_equal(world_refused(admin, "connectors__update", got), MCP_CODE_CONFLICT);
    assert_true(world.hint[0] != '\0');
    assert_int_equal(
        world_refused(admin, "connectors__delete", json_pack("{s:s}", "connector", "store")),
        MCP_CODE_CONFLICT);
    assert_string_equal(shown(world_root(), "store"), "list add wipe leak");
    restrict_role("block", "Admin", whole(id));
    got = get("store");
    assert_int_equal(world_refused(admin, "connectors__update", got), MCP_CODE_NOT_FOUND);
    assert_int_equal(
        world_refused(admin, "connectors__delete", json_pack("{s:s}", "connector", "store")),
        MCP_CODE_NOT_FOUND);
}

/* A rule reaches also what is forbidden: writing connectors shows it, but not past a rule. */
static void a_rule_withholds_a_forbidden_operation_too(void **state)
{
    const char *id = create_store("store");
    const pd_actor_t *admin = member("eve", "Admin");

    (void)state;
    restrict_role("block", "Admin", single(id, "leak"));
    assert_string_equal(shown(admin, "store"), "list add wipe");
    assert_string_equal(listed(admin), "store:3:1/1/1/0");
}

static const char *connections_of(const pd_actor_t *actor)
{
    json_t *list = world_do(actor, "connections__list", json_object());
    const char *text = "";
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        text = apr_pstrcat(world.scratch, text, i == 0 ? "" : " ", mcp_json_str(item, "label"),
                           (char *)NULL);
    }
    json_decref(list);
    return text;
}

static void connections_on_a_withheld_connector_are_hidden_but_from_those_who_see_all(void **state)
{
    const char *id = create_store("store");
    const pd_actor_t *plain = member("ada", "Member");
    const pd_actor_t *admin = member("eve", "Admin");
    static const char *const operations[] = {"connections__get", "connections__update",
                                             "connections__delete"};
    size_t i;

    (void)state;
    (void)create_store("open");
    world_done(plain, "connections__create", json_pack("{s:s,s:s}", "connector", "store", "label", "mine"));
    world_done(plain, "connections__create", json_pack("{s:s,s:s}", "connector", "open", "label", "free"));
    world_done(world_root(), "connections__create",
               json_pack("{s:s,s:s,s:b}", "connector", "store", "label", "ours", "shared", 1));
    assert_string_equal(connections_of(plain), "mine free ours");
    restrict_role("block", "Member", whole(id));
    assert_string_equal(connections_of(plain), "free");
    for (i = 0; i < COUNT(operations); i++) {
        const char *never =
            refusal(plain, operations[i], json_pack("{s:s}", "connection", "nothing"));

        assert_string_equal(refusal(plain, operations[i], json_pack("{s:s}", "connection", "mine")),
                            never);
        assert_string_equal(refusal(plain, operations[i], json_pack("{s:s}", "connection", "ours")),
                            never);
    }
    assert_string_equal(connections_of(admin), "mine free ours");
    restrict_role("block", "Admin", whole(id));
    assert_string_equal(connections_of(admin), "mine free ours");
    assert_int_equal(world_refused(admin, "connections__update",
                                   json_pack("{s:s,s:s}", "connection", "ours", "label", "theirs")),
                     MCP_CODE_NOT_FOUND);
    world_done(admin, "connections__delete", json_pack("{s:s}", "connection", "ours"));
}

static void nobody_connects_another_to_what_that_one_can_not_have(void **state)
{
    const char *id = create_store("store");
    const pd_actor_t *plain = member("ada", "Member");
    const char *connection;

    (void)state;
    connection = world_take(
        world_do(world_root(), "connections__create",
                 json_pack("{s:s,s:s,s:s}", "connector", "store", "label", "hers", "owner", "ada@example.com")),
        "connection");
    restrict_role("block", "Member", whole(id));
    assert_int_equal(world_refused(world_root(), "connections__create",
                                   json_pack("{s:s,s:s,s:s}", "connector", "store", "label", "more",
                                             "owner", plain->member_id)),
                     MCP_CODE_CONFLICT);
    assert_true(world.hint[0] != '\0');
    assert_int_equal(world_refused(world_root(), "connections__update",
                                   json_pack("{s:s,s:s}", "connection", connection, "label", "more")),
                     MCP_CODE_CONFLICT);
    assert_string_equal(world_last()->outcome, "error");
    world_done(world_root(), "connections__create",
               json_pack("{s:s,s:s,s:b}", "connector", "store", "label", "ours", "shared", 1));
}

/* -------------------------------------------------------------------------------- */

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connector_is_created_and_shown_as_its_file),
        TEST(a_slug_is_taken_once),
        TEST(a_bad_file_leaves_nothing),
        TEST(a_list_shows_summaries_and_is_paged),
        TEST(what_get_shows_update_takes),
        TEST(an_update_needs_the_revision_that_it_names),
        TEST(a_slug_stays),
        TEST(another_path_moves_connections_and_keeps_their_credential),
        TEST(another_origin_drops_credentials),
        TEST(another_scheme_of_the_same_host_is_another_origin),
        TEST(another_auth_drops_credentials),
        TEST(no_auth_at_all_needs_none_again),
        TEST(an_update_that_a_connection_does_not_fit_changes_nothing),
        TEST(a_connector_in_use_stays),
        TEST(what_does_not_exist_is_not_found),
        TEST(a_forbidden_operation_is_seen_by_those_alone_who_write_connectors),
        TEST(a_withheld_operation_is_in_no_answer_and_no_count),
        TEST(a_withheld_connector_is_as_one_that_never_was),
        TEST(an_allow_rule_without_items_shows_no_connector),
        TEST(rules_that_can_not_be_read_show_nothing),
        TEST(without_a_policy_nothing_is_shown),
        TEST(nobody_replaces_or_deletes_what_he_does_not_see_whole),
        TEST(a_rule_withholds_a_forbidden_operation_too),
        TEST(connections_on_a_withheld_connector_are_hidden_but_from_those_who_see_all),
        TEST(nobody_connects_another_to_what_that_one_can_not_have)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
