/* The table of settings, and which layer holds. */
#include "ops_world.h"

#include "../../policyd/pd_settings.h"

static void every_default_is_within_its_own_rule(void **state)
{
    const pd_setting_t *row;
    int i;

    (void)state;
    for (i = 0; (row = pd_settings_row(i)) != NULL; i++) {
        pd_fault_t fault = {.code = MCP_CODE_NONE};
        json_t *value = pd_settings_default(row);

        if (!json_is_null(value) && pd_settings_check(row, value, &fault) != PD_OK) {
            fail_msg("%s: %s", row->key, fault.message);
        }
        if (i > 0 && strcmp(pd_settings_row(i - 1)->key, row->key) >= 0) {
            fail_msg("%s is out of order", row->key);
        }
        assert_ptr_equal(pd_settings_find(row->key), row);
        assert_true(strlen(row->description) > 20);
        json_decref(value);
    }
    assert_int_equal(i, 12);
    assert_null(pd_settings_find("collapse.thresholds"));
    assert_null(pd_settings_find(NULL));
}

static void defaults_are_those_of_the_contract(void **state)
{
    static const struct {
        const char *key;
        const char *json;
    } cases[] = {{"collapse.threshold", "30"},
                 {"collapse.mode", "\"auto\""},
                 {"collapse.budget_tokens", "0"},
                 {"collapse.budget_percent", "0"},
                 {"collapse.context_tokens", "200000"},
                 {"connections.max_own", "50"},
                 {"endpoint.resource", "null"},
                 {"advertise.step_up", "false"},
                 {"search.closest", "0"},
                 {"search.unknown_words", "\"ordinary\""},
                 {"execution.timeout_ms", "30000"},
                 {"execution.max_bytes", "10485760"}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *value = pd_settings_default(pd_settings_find(cases[i].key));
        char *text = json_dumps(value, JSON_ENCODE_ANY);

        assert_string_equal(text, cases[i].json);
        free(text);
        json_decref(value);
    }
}

static void values_out_of_range_or_of_another_type_are_refused(void **state)
{
    static const struct {
        const char *key;
        const char *json;
        int is_good;
    } cases[] = {
        {"collapse.threshold", "0", 1},
        {"collapse.threshold", "100000", 1},
        {"collapse.threshold", "-1", 0},
        {"collapse.threshold", "100001", 0},
        {"collapse.threshold", "\"30\"", 0},
        {"collapse.threshold", "30.0", 0},
        {"collapse.threshold", "true", 0},
        {"collapse.threshold", "null", 0},
        {"collapse.mode", "\"never\"", 1},
        {"collapse.mode", "\"Never\"", 0},
        {"collapse.mode", "\"\"", 0},
        {"collapse.mode", "1", 0},
        {"collapse.budget_percent", "100", 1},
        {"collapse.budget_percent", "101", 0},
        {"search.closest", "3", 1},
        {"search.closest", "4", 0},
        {"search.unknown_words", "\"count\"", 1},
        {"search.unknown_words", "\"none\"", 0},
        {"advertise.step_up", "true", 1},
        {"advertise.step_up", "1", 0},
        {"endpoint.resource", "\"https://mcp.example.com/mcp\"", 1},
        {"endpoint.resource", "\"http://127.0.0.1:8080/mcp\"", 1},
        {"endpoint.resource", "\"https://mcp.example.com\"", 1},
        {"endpoint.resource", "\"https://[::1]:8443/mcp\"", 1},
        {"endpoint.resource", "\"/mcp\"", 0},
        {"endpoint.resource", "\"ftp://mcp.example.com/mcp\"", 0},
        {"endpoint.resource", "\"https:///mcp\"", 0},
        {"endpoint.resource", "\"https://:80/mcp\"", 0},
        {"endpoint.resource", "\"https://ada@mcp.example.com/mcp\"", 0},
        {"endpoint.resource", "\"https://mcp.example.com/mcp?x\"", 0},
        {"endpoint.resource", "\"https://mcp.example.com/mcp#x\"", 0},
        {"endpoint.resource", "\"https://mcp.example.com/a b\"", 0},
        {"endpoint.resource", "\"https://mcp.example.com/a\\nb\"", 0},
        {"endpoint.resource", "\"https://m\\u00fcp.example.com/\"", 0},
        {"endpoint.resource", "null", 0},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pd_fault_t fault = {.code = MCP_CODE_NONE};
        json_t *value = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        pd_status_t status = pd_settings_check(pd_settings_find(cases[i].key), value, &fault);

        if ((status == PD_OK) != cases[i].is_good) {
            fail_msg("%s = %s", cases[i].key, cases[i].json);
        }
        assert_int_equal(fault.code, cases[i].is_good ? MCP_CODE_NONE : MCP_CODE_INVALID_REQUEST);
        json_decref(value);
    }
}

static void an_url_is_at_most_512_bytes(void **state)
{
    char text[600];

    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text, "https://a/", 10);
    text[512] = '\0';
    assert_true(pd_settings_is_url(text));
    text[512] = 'a';
    text[513] = '\0';
    assert_false(pd_settings_is_url(text));
}

static json_int_t threshold(const pd_actor_t *actor, const char *client, const char *grant,
                            const char *source)
{
    json_t *args = json_pack("{s:s, s:s*, s:s*}", "key", "collapse.threshold", "client", client,
                             "grant", grant);
    json_t *shown = world_do(actor, "settings__get", args);
    json_int_t value = mcp_json_int(shown, "value", -1);

    assert_string_equal(mcp_json_str(shown, "source"), source);
    json_decref(shown);
    return value;
}

static void the_narrower_setting_wins(void **state)
{
    const pd_actor_t *root = world_root();
    const char *grant;

    (void)state;
    world_done(root, "members__create", json_pack("{s:s}", "email", "narrow@example.com"));
    grant = world_take(world_do(root, "grants__create",
                                json_pack("{s:s, s:s, s:s}", "member", "narrow@example.com",
                                          "client", "c", "resource", WORLD_RESOURCE)),
                       "grant");
    assert_int_equal(threshold(root, "cursor", grant, "default"), 30);
    world_done(root, "settings__set",
               json_pack("{s:s, s:i}", "key", "collapse.threshold", "value", 40));
    assert_int_equal(threshold(root, "cursor", grant, "organisation"), 40);
    world_done(
        root, "settings__set",
        json_pack("{s:s, s:i, s:s}", "key", "collapse.threshold", "value", 50, "client", "cursor"));
    assert_int_equal(threshold(root, "cursor", grant, "client"), 50);
    assert_int_equal(threshold(root, "claude", grant, "organisation"), 40);
    world_done(
        root, "settings__set",
        json_pack("{s:s, s:i, s:s}", "key", "collapse.threshold", "value", 60, "grant", grant));
    assert_int_equal(threshold(root, "cursor", grant, "grant"), 60);
    assert_int_equal(threshold(root, "cursor", NULL, "client"), 50);
    world_done(root, "settings__unset",
               json_pack("{s:s, s:s}", "key", "collapse.threshold", "grant", grant));
    assert_int_equal(threshold(root, "cursor", grant, "client"), 50);
    world_done(root, "settings__unset", json_pack("{s:s}", "key", "collapse.threshold"));
    world_done(root, "settings__unset", json_pack("{s:s}", "key", "collapse.threshold"));
    assert_int_equal(threshold(root, NULL, NULL, "default"), 30);
    world_done(root, "settings__unset",
               json_pack("{s:s, s:s}", "key", "collapse.threshold", "client", "cursor"));
}

static void what_does_not_fit_is_refused_by_name(void **state)
{
    const pd_actor_t *root = world_root();

    (void)state;
    assert_int_equal(
        world_refused(root, "settings__set", json_pack("{s:s, s:i}", "key", "no.such", "value", 1)),
        MCP_CODE_NOT_FOUND);
    assert_int_equal(
        world_refused(root, "settings__set",
                      json_pack("{s:s, s:s}", "key", "collapse.mode", "value", "sometimes")),
        MCP_CODE_INVALID_REQUEST);
    assert_string_equal(world.message, "collapse.mode takes auto, always or never.");
    assert_int_equal(world_refused(root, "settings__set",
                                   json_pack("{s:s, s:s, s:s}", "key", "endpoint.resource", "value",
                                             WORLD_RESOURCE, "client", "c")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "settings__set",
                                   json_pack("{s:s, s:s, s:s, s:s}", "key", "collapse.mode",
                                             "value", "auto", "client", "c", "grant", "gra_x")),
                     MCP_CODE_INVALID_REQUEST);
    assert_int_equal(world_refused(root, "settings__set",
                                   json_pack("{s:s, s:s, s:s}", "key", "collapse.mode", "value",
                                             "auto", "grant", "gra_none")),
                     MCP_CODE_NOT_FOUND);
}

static void a_setting_changes_only_from_the_revision_named(void **state)
{
    const pd_actor_t *root = world_root();
    json_t *shown;

    (void)state;
    assert_int_equal(world_refused(root, "settings__set",
                                   json_pack("{s:s, s:i, s:i}", "key", "search.closest", "value", 1,
                                             "if_revision", 1)),
                     MCP_CODE_REVISION_MISMATCH);
    shown = world_do(root, "settings__set",
                     json_pack("{s:s, s:i}", "key", "search.closest", "value", 1));
    assert_int_equal(mcp_json_int(shown, "revision", 0), 1);
    json_decref(shown);
    shown = world_do(
        root, "settings__set",
        json_pack("{s:s, s:i, s:i}", "key", "search.closest", "value", 2, "if_revision", 1));
    assert_int_equal(mcp_json_int(shown, "revision", 0), 2);
    json_decref(shown);
    assert_int_equal(
        world_refused(root, "settings__unset",
                      json_pack("{s:s, s:i}", "key", "search.closest", "if_revision", 1)),
        MCP_CODE_REVISION_MISMATCH);
    world_done(root, "settings__unset",
               json_pack("{s:s, s:i}", "key", "search.closest", "if_revision", 2));
}

static void a_list_of_settings_pages_through_table_and_store(void **state)
{
    const pd_actor_t *root = world_root();
    const char *cursor = NULL;
    size_t items = 0;
    int pages = 0;

    (void)state;
    world_done(
        root, "settings__set",
        json_pack("{s:s, s:i, s:s}", "key", "collapse.threshold", "value", 1, "client", "a"));
    world_done(
        root, "settings__set",
        json_pack("{s:s, s:i, s:s}", "key", "collapse.threshold", "value", 2, "client", "b"));
    do {
        json_t *page = world_do(root, "settings__list",
                                json_pack("{s:i, s:s*}", "limit", 1, "cursor", cursor));
        const char *next = mcp_json_str(page, "next_cursor");

        items += json_array_size(json_object_get(page, "items"));
        cursor = next != NULL ? apr_pstrdup(world.scratch, next) : NULL;
        json_decref(page);
        pages++;
    } while (cursor != NULL && pages < 100);
    assert_int_equal(items, 14);
    assert_int_equal(pages, 14);
    assert_int_equal(world_refused(root, "settings__list", json_pack("{s:s}", "cursor", "mem_1")),
                     MCP_CODE_INVALID_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_within_its_own_rule),
        cmocka_unit_test(defaults_are_those_of_the_contract),
        cmocka_unit_test(values_out_of_range_or_of_another_type_are_refused),
        cmocka_unit_test(an_url_is_at_most_512_bytes),
        cmocka_unit_test(the_narrower_setting_wins),
        cmocka_unit_test(what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(a_setting_changes_only_from_the_revision_named),
        cmocka_unit_test(a_list_of_settings_pages_through_table_and_store),
    };

    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
