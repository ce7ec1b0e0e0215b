/* Compiling of toolboxes: what a stored document becomes, whom it is for, and what is refused. */
#include "../../policyd/pd_toolbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"
#include "../../proto/mcp_names.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    size_t at = 0;

    if (mcp_json_parse(text, strlen(text), MCP_MAX_DEPTH, &value, &at) != MCP_OK) {
        fail_msg("the test's own JSON is bad at byte %lu: %s", (unsigned long)at, text);
    }
    return value;
}

/* One entry; cases change one member of it. */
static json_t *entry(const char *id, const char *name)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:[s],s:{},s:{},s:b}", "entry", id, "name", name, "connector",
                     "con_1", "connector_slug", "shop", "operation", "get_item", "connections", "cxn_1",
                     "defaults", "frozen", "always_visible", 0);
}

/* entries: array, stolen. */
static json_t *box(json_t *entries)
{
    return json_pack("{s:s,s:[s,s],s:[s],s:o}", "name", "sales", "roles", "Sales", "Support", "members",
                     "mem_1", "entries", entries);
}

/* doc: stolen. */
static pd_toolbox_t *made(json_t *doc)
{
    pd_toolbox_t *toolbox = NULL;

    assert_non_null(doc);
    assert_int_equal(pd_toolbox_make("tbx_1", doc, &toolbox), PD_OK);
    json_decref(doc); /* nothing of it is kept */
    return toolbox;
}

/* doc: stolen. */
static void refused(json_t *doc, const char *what)
{
    pd_toolbox_t *toolbox = NULL;

    assert_non_null(doc);
    if (pd_toolbox_make("tbx_1", doc, &toolbox) != PD_E_INVALID) {
        fail_msg("taken: %s", what);
    }
    assert_null(toolbox);
    json_decref(doc);
}

static pd_entry_t *only_entry(const pd_toolbox_t *toolbox)
{
    assert_int_equal(toolbox->entries->nelts, 1);
    return &APR_ARRAY_IDX(toolbox->entries, 0, pd_entry_t);
}

static void a_document_becomes_what_it_says(void **state)
{
    json_t *doc = parse(
        "{\"name\":\"sales\",\"description\":\"For sales.\",\"roles\":[\"Sales\"],\"members\":[],\"entries\":["
        "{\"entry\":\"ent_1\",\"connector\":\"con_1\",\"connector_slug\":\"shop\",\"operation\":\"get_item\","
        "\"connections\":[\"cxn_2\",\"cxn_1\"],\"name\":\"look\",\"title\":\"Look\",\"description\":\"Looks.\","
        "\"defaults\":{\"fields\":\"all\"},\"frozen\":{\"/where/id\":7},\"always_visible\":true},"
        "{\"entry\":\"ent_2\",\"connector\":\"con_2\",\"connector_slug\":\"mail\",\"operation\":\"send\","
        "\"connections\":[\"@own\"],\"name\":\"Inform\",\"defaults\":{},\"frozen\":{},\"always_visible\":false}]}");
    pd_toolbox_t *toolbox = made(doc);
    const pd_entry_t *look;
    const pd_entry_t *inform;

    (void)state;
    assert_string_equal(toolbox->id, "tbx_1");
    assert_string_equal(toolbox->name, "sales");
    assert_string_equal(toolbox->description, "For sales.");
    assert_int_equal(toolbox->refs, 1);
    assert_int_equal(toolbox->entries->nelts, 2);
    inform = &APR_ARRAY_IDX(toolbox->entries, 0, pd_entry_t); /* bytewise: capitals first */
    look = &APR_ARRAY_IDX(toolbox->entries, 1, pd_entry_t);
    assert_string_equal(look->tool_name, "sales__look");
    assert_string_equal(look->id, "ent_1");
    assert_string_equal(look->name, "look");
    assert_string_equal(look->connector_id, "con_1");
    assert_string_equal(look->connector_slug, "shop");
    assert_string_equal(look->operation_id, "get_item");
    assert_string_equal(look->title, "Look");
    assert_string_equal(look->description, "Looks.");
    assert_string_equal(mcp_json_str(look->defaults, "fields"), "all");
    assert_int_equal(mcp_json_int(look->frozen, "/where/id", 0), 7);
    assert_int_equal(look->is_own, 0);
    assert_int_equal(look->connection_ids->nelts, 2);
    assert_string_equal(APR_ARRAY_IDX(look->connection_ids, 0, const char *), "cxn_2");
    assert_int_equal(look->is_always_visible, 1);
    assert_ptr_equal(look->toolbox, toolbox);
    assert_int_equal(apr_hash_count(look->made), 0);
    assert_string_equal(inform->tool_name, "sales__Inform");
    assert_null(inform->title);
    assert_null(inform->description);
    assert_int_equal(inform->is_own, 1);
    assert_int_equal(inform->connection_ids->nelts, 0);
    assert_int_equal(inform->is_always_visible, 0);
    assert_int_equal(json_object_size(inform->frozen), 0);
    assert_ptr_equal(apr_hash_get(toolbox->by_name, "sales__look", APR_HASH_KEY_STRING), look);
    assert_ptr_equal(apr_hash_get(toolbox->by_name, "sales__Inform", APR_HASH_KEY_STRING), inform);
    assert_int_equal(apr_hash_count(toolbox->by_name), 2);
    pd_toolbox_release(&toolbox);
    assert_null(toolbox);
}

static void values_are_copies_of_the_documents(void **state)
{
    json_t *doc = box(json_pack("[o]", entry("ent_1", "look")));
    json_t *frozen = json_object_get(json_array_get(json_object_get(doc, "entries"), 0), "frozen");
    pd_toolbox_t *toolbox = NULL;

    (void)state;
    json_object_set_new(frozen, "team", json_pack("{s:s}", "id", "before"));
    assert_int_equal(pd_toolbox_make("tbx_1", doc, &toolbox), PD_OK);
    json_object_set_new(json_object_get(frozen, "team"), "id", json_string("after"));
    assert_string_equal(mcp_json_str(json_object_get(only_entry(toolbox)->frozen, "team"), "id"),
                        "before");
    json_decref(doc);
    pd_toolbox_release(&toolbox);
}

static void the_last_of_several_holders_frees_it(void **state)
{
    pd_toolbox_t *toolbox = made(box(json_array()));
    pd_toolbox_t *second = toolbox;
    pd_toolbox_t *none = NULL;

    (void)state;
    pd_toolbox_retain(toolbox);
    pd_toolbox_release(&toolbox);
    assert_null(toolbox);
    assert_string_equal(second->name, "sales");
    pd_toolbox_release(&second);
    pd_toolbox_release(&none);
}

static void it_is_for_named_members_and_for_those_of_a_named_role(void **state)
{
    static const char *const none[] = {NULL};
    static const char *const sales[] = {"Member", "Sales", NULL};
    static const char *const others[] = {"sales", "Member", "", NULL};
    pd_toolbox_t *toolbox = made(box(json_array()));

    (void)state;
    assert_true(pd_toolbox_is_for(toolbox, "mem_1", none));
    assert_true(pd_toolbox_is_for(toolbox, "mem_1", NULL));
    assert_true(pd_toolbox_is_for(toolbox, "mem_2", sales));
    assert_false(pd_toolbox_is_for(toolbox, "mem_2", none));
    assert_false(pd_toolbox_is_for(toolbox, "mem_2", others)); /* names of roles are exact */
    assert_false(pd_toolbox_is_for(toolbox, "Sales", none));   /* a member is no role */
    assert_false(pd_toolbox_is_for(toolbox, NULL, sales));     /* an admin peer that is no member */
    pd_toolbox_release(&toolbox);
}

static void an_empty_toolbox_is_one(void **state)
{
    pd_toolbox_t *toolbox = made(json_pack("{s:s,s:n,s:[],s:[],s:[]}", "name", "empty", "description",
                                           "roles", "members", "entries"));

    (void)state;
    assert_null(toolbox->description);
    assert_int_equal(toolbox->entries->nelts, 0);
    pd_toolbox_release(&toolbox);
}

static void an_entry_that_lost_its_connections_stays(void **state)
{
    json_t *orphan = entry("ent_1", "look");
    pd_toolbox_t *toolbox;

    (void)state;
    json_object_set_new(orphan, "connections", json_array());
    toolbox = made(box(json_pack("[o]", orphan)));
    assert_int_equal(only_entry(toolbox)->is_own, 0);
    assert_int_equal(only_entry(toolbox)->connection_ids->nelts, 0);
    pd_toolbox_release(&toolbox);
}

static void a_name_out_of_form_is_made_one_as_for_any_tool(void **state)
{
    char wanted[MCP_MAX_TOOL_NAME + 1];
    char name[MCP_MAX_TOOL_NAME + 1];
    pd_toolbox_t *toolbox = made(box(json_pack("[o]", entry("ent_1", "Look at item"))));

    (void)state;
    assert_int_equal(mcp_name_tool("sales", "shop", "Look at item", wanted, sizeof(wanted)), MCP_OK);
    assert_string_equal(only_entry(toolbox)->tool_name, wanted);
    assert_int_equal(strncmp(wanted, "sales__Look_at_item_", 20), 0);
    assert_int_equal(pd_toolbox_tool_name("sales", "shop", "Look at item", name, sizeof(name)), PD_OK);
    assert_string_equal(name, wanted);
    assert_int_equal(pd_toolbox_tool_name("Sales", "shop", "x", name, sizeof(name)), PD_E_INVALID);
    assert_int_equal(pd_toolbox_tool_name("sales", "shop", "x", name, 10), PD_E_INVALID);
    pd_toolbox_release(&toolbox);
}

static void two_entries_of_one_name_are_refused(void **state)
{
    pd_toolbox_t *toolbox;

    (void)state;
    refused(box(json_pack("[o,o]", entry("ent_1", "look"), entry("ent_2", "look"))), "two of one name");
    refused(box(json_pack("[o,o]", entry("ent_1", "look"), entry("ent_1", "see"))), "two of one id");
    toolbox = made(box(json_pack("[o,o]", entry("ent_1", "look"), entry("ent_2", "see"))));
    pd_toolbox_release(&toolbox);
    /* what differs only in what is replaced ends in a hash of its own */
    toolbox = made(box(json_pack("[o,o]", entry("ent_1", "a b"), entry("ent_2", "a:b"))));
    assert_int_equal(toolbox->entries->nelts, 2);
    pd_toolbox_release(&toolbox);
}

static json_t *many_entries(int count)
{
    json_t *entries = json_array();
    int i;

    for (i = 0; i < count; i++) {
        char id[32];
        char name[32];

        (void)snprintf(id, sizeof(id), "ent_%d", i);
        (void)snprintf(name, sizeof(name), "look_%d", i);
        json_array_append_new(entries, entry(id, name));
    }
    return box(entries);
}

static void more_entries_than_one_toolbox_may_have_are_refused(void **state)
{
    pd_toolbox_t *toolbox = made(many_entries(PD_MAX_ENTRIES));
    int i;

    (void)state;
    assert_int_equal(toolbox->entries->nelts, PD_MAX_ENTRIES);
    for (i = 1; i < toolbox->entries->nelts; i++) {
        assert_true(strcmp(APR_ARRAY_IDX(toolbox->entries, i - 1, pd_entry_t).tool_name,
                           APR_ARRAY_IDX(toolbox->entries, i, pd_entry_t).tool_name) < 0);
    }
    pd_toolbox_release(&toolbox);
    refused(many_entries(PD_MAX_ENTRIES + 1), "one entry too many");
}

/* A box whose only entry has `count` of something in it. */
static json_t *with_many(const char *member, int count)
{
    json_t *one = entry("ent_1", "look");
    json_t *many = strcmp(member, "connections") == 0 ? json_array() : json_object();
    int i;

    for (i = 0; i < count; i++) {
        char key[32];

        (void)snprintf(key, sizeof(key), "key_%d", i);
        if (json_is_array(many)) {
            json_array_append_new(many, json_string(key));
        } else {
            json_object_set_new(many, key, json_integer(i));
        }
    }
    json_object_set_new(one, member, many);
    return box(json_pack("[o]", one));
}

static void each_list_of_an_entry_has_its_bound(void **state)
{
    static const struct {
        const char *member;
        int most;
    } cases[] = {{"connections", PD_MAX_CHOICES}, {"defaults", PD_MAX_FROZEN}, {"frozen", PD_MAX_FROZEN}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        pd_toolbox_t *toolbox = made(with_many(cases[i].member, cases[i].most));

        pd_toolbox_release(&toolbox);
        refused(with_many(cases[i].member, cases[i].most + 1), cases[i].member);
    }
}

static void a_malformed_toolbox_is_refused(void **state)
{
    static const struct {
        const char *member;
        const char *value; /* NULL: taken away */
    } cases[] = {{"name", NULL},         {"name", "\"\""},        {"name", "\"Sales\""},
                 {"name", "\"-a\""},     {"name", "7"},           {"description", "7"},
                 {"roles", NULL},        {"roles", "\"Sales\""},  {"roles", "[7]"},
                 {"roles", "[\"\"]"},    {"members", NULL},       {"members", "{}"},
                 {"members", "[null]"},  {"entries", NULL},       {"entries", "{}"},
                 {"entries", "[7]"},     {"entries", "[[]]"},     {"entries", "[null]"},
                 {"roles", "null"},      {"entries", "null"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        json_t *doc = box(json_array());

        if (cases[i].value == NULL) {
            assert_int_equal(json_object_del(doc, cases[i].member), 0);
        } else {
            json_object_set_new(doc, cases[i].member,
                                json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        }
        refused(doc, cases[i].member);
    }
    refused(json_array(), "an array");
    refused(json_string("x"), "a text");
}

static void a_malformed_entry_is_refused(void **state)
{
    static const struct {
        const char *member;
        const char *value; /* NULL: taken away */
    } cases[] = {{"entry", NULL},
                 {"entry", "\"\""},
                 {"name", NULL},
                 {"name", "\"\""},
                 {"name", "[]"},
                 {"connector", NULL},
                 {"connector", "null"},
                 {"connector_slug", NULL},
                 {"connector_slug", "\"Not A Slug\""},
                 {"operation", NULL},
                 {"operation", "\"\""},
                 {"connections", NULL},
                 {"connections", "\"@own\""},
                 {"connections", "[7]"},
                 {"connections", "[\"\"]"},
                 {"connections", "[\"cxn_1\",\"cxn_1\"]"},
                 {"connections", "[\"@own\",\"cxn_1\"]"},
                 {"connections", "[\"cxn_1\",\"@own\"]"},
                 {"connections", "[\"@own\",\"@own\"]"},
                 {"title", "7"},
                 {"description", "[]"},
                 {"defaults", NULL},
                 {"defaults", "[]"},
                 {"frozen", NULL},
                 {"frozen", "null"},
                 {"frozen", "\"x\""},
                 {"always_visible", NULL},
                 {"always_visible", "1"}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        json_t *one = entry("ent_2", "see");
        char what[64];

        if (cases[i].value == NULL) {
            assert_int_equal(json_object_del(one, cases[i].member), 0);
        } else {
            json_object_set_new(one, cases[i].member, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        }
        (void)snprintf(what, sizeof(what), "%s %s", cases[i].member,
                       cases[i].value != NULL ? cases[i].value : "(none)");
        refused(box(json_pack("[o,o]", entry("ent_1", "look"), one)), what); /* a sound one beside it */
    }
}

static int begin(void **state)
{
    (void)state;
    json_object_seed(1);
    return apr_initialize() == APR_SUCCESS && mcp_hash_init() == MCP_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    apr_terminate();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_becomes_what_it_says),
        cmocka_unit_test(values_are_copies_of_the_documents),
        cmocka_unit_test(the_last_of_several_holders_frees_it),
        cmocka_unit_test(it_is_for_named_members_and_for_those_of_a_named_role),
        cmocka_unit_test(an_empty_toolbox_is_one),
        cmocka_unit_test(an_entry_that_lost_its_connections_stays),
        cmocka_unit_test(a_name_out_of_form_is_made_one_as_for_any_tool),
        cmocka_unit_test(two_entries_of_one_name_are_refused),
        cmocka_unit_test(more_entries_than_one_toolbox_may_have_are_refused),
        cmocka_unit_test(each_list_of_an_entry_has_its_bound),
        cmocka_unit_test(a_malformed_toolbox_is_refused),
        cmocka_unit_test(a_malformed_entry_is_refused),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
