/* The control plane as tools: what the chunk holds, what it must not hold, and whose its tools are. */
#include "ops_world.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- reading it ------------------------------------------------------------------ */

static json_t *chunk(void)
{
    size_t count = 0;
    const char *bytes = pd_control_bytes(&count);
    json_t *parsed = NULL;

    assert_non_null(bytes);
    assert_int_equal(mcp_json_parse(bytes, count, MCP_MAX_DEPTH, &parsed, NULL), MCP_OK);
    return parsed;
}

static const json_t *tool_named(const json_t *parsed, const char *name)
{
    const json_t *tool;
    size_t i;

    json_array_foreach(json_object_get(parsed, "tools"), i, tool)
    {
        if (strcmp(mcp_json_str(tool, "name"), name) == 0) {
            return tool;
        }
    }
    return NULL;
}

static const json_t *hint(const json_t *tool, const char *name)
{
    return json_object_get(json_object_get(json_object_get(tool, "def"), "annotations"), name);
}

static const pd_actor_t *holder_of(const char *role, unsigned scopes)
{
    pd_actor_t *actor = world_actor(MCP_SURFACE_MCP);

    actor->permissions = pd_roles_builtin(role);
    actor->is_owner = strcmp(role, "Owner") == 0;
    actor->scopes = scopes;
    return actor;
}

static int has_bit(const unsigned char *bits, size_t i)
{
    return (bits[i >> 3] >> (i & 7)) & 1;
}

/* --- tests ------------------------------------------------------------------------ */

static void every_row_is_a_tool_but_those_that_always_answer_a_secret(void **state)
{
    json_t *parsed = chunk();
    int tools = 0;
    int i;

    (void)state;
    for (i = 0; pd_ops_row(i) != NULL; i++) {
        const pd_op_t *op = pd_ops_row(i);
        const json_t *tool;
        char name[64];

        pd_ops_name(op, name);
        tool = tool_named(parsed, name);
        assert_int_equal(tool != NULL, op->secret != PD_SECRET_ALWAYS);
        if (tool != NULL) {
            tools++;
            assert_string_equal(mcp_json_str(tool, "class"), mcp_class_text(op->klass));
            assert_string_equal(mcp_json_str(tool, "op"), name);
        }
    }
    assert_true(i >= 40);
    assert_int_equal(tools, pd_control_count());
    assert_null(tool_named(parsed, "grants__create"));
    json_decref(parsed);
}

static void its_tools_are_sorted_bytewise_and_defined_without_a_name(void **state)
{
    json_t *parsed = chunk();
    const char *before = "";
    const json_t *tool;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(parsed, "tools"), i, tool)
    {
        const json_t *def = json_object_get(tool, "def");

        assert_true(strcmp(before, mcp_json_str(tool, "name")) < 0);
        before = mcp_json_str(tool, "name");
        assert_null(json_object_get(def, "name"));
        assert_non_null(mcp_json_str(def, "description"));
        assert_string_equal(mcp_json_str(json_object_get(def, "inputSchema"), "type"), "object");
    }
    json_decref(parsed);
}

static void hints_follow_from_the_class_and_the_method(void **state)
{
    static const struct {
        const char *name;
        int read, destructive, idempotent;
    } cases[] = {{"whoami__get", 1, 0, 1},
                 {"members__create", 0, 0, 0},
                 {"members__remove", 0, 1, 1},
                 {"settings__set", 0, 0, 1},
                 {"recipes__render", 1, 0, 1}};
    json_t *parsed = chunk();
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        const json_t *tool = tool_named(parsed, cases[i].name);

        assert_non_null(tool);
        assert_int_equal(json_is_true(hint(tool, "readOnlyHint")), cases[i].read);
        assert_int_equal(json_is_true(hint(tool, "destructiveHint")), cases[i].destructive);
        assert_int_equal(json_is_true(hint(tool, "idempotentHint")), cases[i].idempotent);
        assert_true(json_is_false(hint(tool, "openWorldHint")));
    }
    json_decref(parsed);
}

static void no_tool_takes_a_credential(void **state)
{
    static const char *const names[] = {"connections__create", "connections__update"};
    size_t count = 0;
    json_t *parsed = chunk();
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++) {
        const json_t *def = json_object_get(tool_named(parsed, names[i]), "def");
        const json_t *properties =
            json_object_get(json_object_get(def, "inputSchema"), "properties");

        assert_non_null(json_object_get(properties, "label"));
        assert_null(json_object_get(properties, "credential"));
        assert_non_null(json_object_get(properties, "variables"));
    }
    assert_null(strstr(pd_control_bytes(&count), "\"credential\":"));
    json_decref(parsed);
}

static void its_digest_is_of_its_bytes_and_a_second_making_gives_the_same(void **state)
{
    size_t count = 0;
    const char *bytes = pd_control_bytes(&count);
    char digest[MCP_DIGEST_HEX + 1];

    (void)state;
    mcp_digest_hex(bytes, count, digest);
    assert_string_equal(pd_control_digest(), digest);
    assert_int_equal(pd_control_make(world.pool), PD_OK);
    assert_string_equal(pd_control_digest(), digest);
}

static void permission_and_scope_select_together(void **state)
{
    static const struct {
        const char *role;
        unsigned scopes;
    } cases[] = {{"Owner", 0xf},
                 {"Admin", MCP_SCOPE_DESTRUCTIVE},
                 {"Admin", MCP_SCOPE_WRITE | MCP_SCOPE_TOOLS},
                 {"Member", MCP_SCOPE_READ},
                 {"Member", MCP_SCOPE_WRITE},
                 {"Member", MCP_SCOPE_TOOLS},
                 {"Member", 0}};
    json_t *parsed = chunk();
    const json_t *tools = json_object_get(parsed, "tools");
    size_t i;
    size_t k;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        const pd_actor_t *actor = holder_of(cases[i].role, cases[i].scopes);
        unsigned char bits[PD_CONTROL_BITS];
        int wanted = 0;

        memset(bits, 0xff, sizeof(bits));
        for (k = 0; k < json_array_size(tools); k++) {
            const pd_op_t *op = pd_ops_find(mcp_json_str(json_array_get(tools, k), "name"));
            unsigned needed = mcp_scope_of_class(op->klass);

            wanted += (op->permission == NULL || pd_actor_may(actor, op->permission)) &&
                      (mcp_scope_close(cases[i].scopes) & needed) == needed;
        }
        assert_int_equal(pd_control_select(actor, bits), wanted);
        for (k = 0; k < sizeof(bits) * 8; k++) {
            const pd_op_t *op;
            json_t *def = NULL;

            if (!has_bit(bits, k)) {
                continue;
            }
            wanted--;
            assert_true(k < json_array_size(tools));
            op = pd_ops_find(mcp_json_str(json_array_get(tools, k), "name"));
            assert_true(op->permission == NULL || pd_actor_may(actor, op->permission));
            assert_int_equal(
                pd_control_definition(actor, mcp_json_str(json_array_get(tools, k), "name"), &def),
                PD_OK);
            assert_true(json_equal(def, json_object_get(json_array_get(tools, k), "def")));
            json_decref(def);
        }
        assert_int_equal(wanted, 0);
    }
    json_decref(parsed);
}

static void nobody_without_tool_execute_has_any(void **state)
{
    static const char *const roles[] = {"Guest", "Auditor", "Billing Admin"};
    static const unsigned char none[PD_CONTROL_BITS] = {0};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(roles); i++) {
        const pd_actor_t *actor = holder_of(roles[i], 0xf);
        unsigned char bits[PD_CONTROL_BITS];
        json_t *def = NULL;

        memset(bits, 0xff, sizeof(bits));
        assert_int_equal(pd_control_select(actor, bits), 0);
        assert_memory_equal(bits, none, sizeof(bits));
        assert_int_equal(pd_control_definition(actor, "whoami__get", &def), PD_E_NOT_FOUND);
    }
}

static void a_definition_that_is_not_the_actors_is_not_found(void **state)
{
    static const char *const names[] = {"members__remove", "grants__create", "nothing__get", "", "whoami"};
    const pd_actor_t *member = holder_of("Member", 0xf);
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++) {
        json_t *def = NULL;

        assert_int_equal(pd_control_definition(member, names[i], &def), PD_E_NOT_FOUND);
        assert_null(def);
    }
}

/* Looks for words that a model need not read anywhere in a schema, down to a depth that no schema of ours has. */
static void must_be_terse(const char *tool, json_t *schema, int depth)
{
    static const char *const words[] = {"maxLength", "minLength", "uniqueItems", "maxItems",
                                        "readOnly"};
    const char *name;
    json_t *value;
    size_t i;

    assert_true(depth > 0);
    for (i = 0; i < COUNT(words); i++) {
        if (json_object_get(schema, words[i]) != NULL) {
            fail_msg("%s says %s", tool, words[i]);
        }
    }
    assert_false(json_is_false(json_object_get(schema, "additionalProperties")));
    json_object_foreach(json_object_get(schema, "properties"), name, value)
    {
        assert_false(mcp_json_bool(value, "readOnly"));
        must_be_terse(tool, value, depth - 1);
    }
    value = json_object_get(schema, "items");
    if (value != NULL) {
        must_be_terse(tool, value, depth - 1);
    }
}

static void schemas_say_what_a_model_needs_and_no_more(void **state)
{
    json_t *parsed = chunk();
    const json_t *tool;
    const json_t *items;
    json_t *limit;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(parsed, "tools"), i, tool)
    {
        const json_t *def = json_object_get(tool, "def");

        must_be_terse(mcp_json_str(tool, "name"), json_object_get(def, "inputSchema"), 12);
        assert_null(json_object_get(def, "title"));
    }
    /* a page's size and cursor explain themselves; choices, names and what is required stay */
    limit = json_object_get(json_object_get(json_object_get(json_object_get(tool_named(parsed, "members__list"), "def"),
                                                            "inputSchema"), "properties"), "limit");
    assert_int_equal(json_object_size(limit), 1);
    items = json_object_get(json_object_get(tool_named(parsed, "restrictions__create"), "def"), "inputSchema");
    assert_int_equal(json_array_size(json_object_get(items, "required")), 3);
    assert_int_equal(json_array_size(json_object_get(json_object_get(json_object_get(items, "properties"), "effect"),
                                                     "enum")), 2);
    items = json_object_get(json_object_get(json_object_get(items, "properties"), "items"), "items");
    assert_non_null(json_object_get(json_object_get(items, "properties"), "operation"));
    assert_null(json_object_get(json_object_get(items, "properties"), "slug"));
    /* what is validated still has all of it */
    assert_non_null(strstr(pd_ops_find("restrictions__create")->schema, "maxItems"));
    json_decref(parsed);
}

static void a_tool_in_short_asks_for_what_a_call_needs(void **state)
{
    const pd_actor_t *owner = holder_of("Owner", 0xf);
    json_t *parsed = chunk();
    const json_t *tool;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(parsed, "tools"), i, tool)
    {
        const json_t *def = json_object_get(tool, "def");
        const json_t *brief = json_object_get(tool, "brief");
        const json_t *schema = json_object_get(brief, "inputSchema");
        const char *said = mcp_json_str(brief, "description");
        json_t *own = NULL;
        const char *name;
        json_t *property;

        assert_int_equal(pd_control_brief(owner, mcp_json_str(tool, "name"), &own), PD_OK);
        assert_true(json_equal(own, (json_t *)(uintptr_t)brief));
        json_decref(own);
        assert_true(json_equal(json_object_get(brief, "annotations"), json_object_get(def, "annotations")));
        assert_true(json_object_get(schema, "required") == NULL ||
                    json_equal(json_object_get(schema, "required"),
                               json_object_get(json_object_get(def, "inputSchema"), "required")));
        assert_int_equal(json_object_size(json_object_get(schema, "properties")),
                         json_array_size(json_object_get(schema, "required")));
        json_object_foreach(json_object_get(schema, "properties"), name, property)
        {
            assert_null(json_object_get(property, "description"));
        }
        /* the first clause, as one sentence */
        assert_in_range(strlen(said), 5, 140);
        assert_ptr_equal(strchr(said, '.'), said + strlen(said) - 1);
        assert_memory_equal(said, mcp_json_str(def, "description"), strlen(said) - 1);
        assert_true(json_dumpb(brief, NULL, 0, JSON_COMPACT) <= json_dumpb(def, NULL, 0, JSON_COMPACT));
    }
    json_decref(parsed);
}

/* A model reads this on every turn. */
static void what_a_member_lists_is_small(void **state)
{
    const pd_actor_t *actor = holder_of("Member", 0xf);
    json_t *parsed = chunk();
    unsigned char bits[PD_CONTROL_BITS];
    int selected = pd_control_select(actor, bits);
    size_t whole = 0;
    size_t bytes = 0;
    size_t briefs = 0;
    const json_t *tool;
    size_t i;

    (void)state;
    (void)pd_control_bytes(&whole);
    json_array_foreach(json_object_get(parsed, "tools"), i, tool)
    {
        if (has_bit(bits, i)) {
            size_t own = json_dumpb(json_object_get(tool, "def"), NULL, 0, JSON_COMPACT);

            print_message("#   %s: %lu bytes\n", mcp_json_str(tool, "name"), (unsigned long)own);
            bytes += own;
            briefs += json_dumpb(json_object_get(tool, "brief"), NULL, 0, JSON_COMPACT);
        }
    }
    print_message("# the chunk: %d tools, %lu bytes; a Member's: %d tools, %lu bytes\n",
                  pd_control_count(), (unsigned long)whole, selected, (unsigned long)bytes);
    assert_in_range(selected, 10, 24);
    assert_in_range(bytes, 1, 7800);
    assert_in_range(briefs, 1, 4400);
    json_decref(parsed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_row_is_a_tool_but_those_that_always_answer_a_secret),
        TEST(its_tools_are_sorted_bytewise_and_defined_without_a_name),
        TEST(hints_follow_from_the_class_and_the_method),
        TEST(no_tool_takes_a_credential),
        TEST(its_digest_is_of_its_bytes_and_a_second_making_gives_the_same),
        TEST(permission_and_scope_select_together),
        TEST(nobody_without_tool_execute_has_any),
        TEST(a_definition_that_is_not_the_actors_is_not_found),
        TEST(schemas_say_what_a_model_needs_and_no_more),
        TEST(a_tool_in_short_asks_for_what_a_call_needs),
        TEST(what_a_member_lists_is_small)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
