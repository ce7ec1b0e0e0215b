/* Who asks: every way a grant, a member or a peer is refused, in which order, and what an actor holds. */
#include "policy_world.h"

#include "../../policyd/pd_snapshot.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Everything of an actor that a test looks at, out of the asker's pool. */
typedef struct asked {
    mcp_code_t code;
    int is_known;
    pd_actor_t actor;
    int is_done;
} asked_t;

static void on_access(mcp_code_t code, const pd_actor_t *actor, void *baton)
{
    asked_t *asked = baton;

    asked->code = code;
    asked->is_known = actor != NULL;
    if (actor != NULL) {
        asked->actor = *actor;
    }
    asked->is_done++;
}

static asked_t by_token_until(const char *hash, const char *resource, const char *client,
                              pd_boot_t deadline)
{
    asked_t asked;

    memset(&asked, 0, sizeof(asked));
    asked.code = MCP_CODE_COUNT;
    pd_access_token(&world.core, hash, MCP_SURFACE_MCP, resource, client, deadline, world.scratch,
                    on_access, &asked);
    world_wait(&asked.is_done);
    assert_int_equal(asked.is_done, 1);
    return asked;
}

static asked_t by_token(const char *hash)
{
    return by_token_until(hash, WORLD_RESOURCE, NULL, pd_boot_in(30000));
}

static asked_t by_peer(long uid)
{
    asked_t asked;

    memset(&asked, 0, sizeof(asked));
    asked.code = MCP_CODE_COUNT;
    pd_access_peer(&world.core, uid, pd_boot_in(30000), world.scratch, on_access, &asked);
    world_wait(&asked.is_done);
    assert_int_equal(asked.is_done, 1);
    return asked;
}

static json_t *member_arg(const char *member)
{
    return json_pack("{s:s}", "member", member);
}

/* --- tokens ---------------------------------------------------------------------------- */

static void a_good_token_gives_its_member_roles_and_scopes(void **state)
{
    const char *member = world_member("ada@example.com", "Member");
    const char *grant = NULL;
    const char *hash = world_grant("ada@example.com", json_pack("[s,s]", "mcp:write", "mcp:tools"), &grant);
    asked_t asked = by_token(hash);

    (void)state;
    assert_int_equal(asked.code, MCP_CODE_NONE);
    assert_string_equal(asked.actor.member_id, member);
    assert_string_equal(asked.actor.email, "ada@example.com");
    assert_string_equal(asked.actor.grant_id, grant);
    assert_string_equal(asked.actor.roles, "Member");
    assert_string_equal(asked.actor.role_names[0], "Member");
    assert_null(asked.actor.role_names[1]);
    assert_string_equal(asked.actor.client, "test"); /* the grant's, where the asker says nothing */
    assert_int_equal(asked.actor.surface, MCP_SURFACE_MCP);
    /* a rung holds those below it, and nothing else */
    assert_int_equal(asked.actor.scopes, MCP_SCOPE_READ | MCP_SCOPE_WRITE | MCP_SCOPE_TOOLS);
    assert_int_equal(asked.actor.is_owner, 0);
    assert_true(pd_actor_may(&asked.actor, "tool:execute"));
    assert_false(pd_actor_may(&asked.actor, "member:write"));
    assert_true(asked.actor.revision > 0);
    assert_null(asked.actor.label);
    asked = by_token_until(hash, WORLD_RESOURCE, "claude/1", pd_boot_in(30000));
    assert_string_equal(asked.actor.client, "claude/1");
}

static void an_unknown_token_is_nobody(void **state)
{
    asked_t asked = by_token("0000000000000000000000000000000000000000000000000000000000000000");

    (void)state;
    assert_int_equal(asked.code, MCP_CODE_INVALID_TOKEN);
    assert_false(asked.is_known);
}

static void what_the_store_keeps_is_no_token(void **state)
{
    const char *hash = NULL;
    const char *key;

    (void)state;
    (void)world_member("ada@example.com", "Member");
    hash = world_grant("ada@example.com", json_pack("[s]", "mcp:tools"), NULL);
    key = pd_access_token_key(hash, world.scratch);
    assert_int_equal(strncmp(key, "token:", 6), 0);
    assert_null(strstr(key, hash));
    assert_int_equal(by_token(key + 6).code, MCP_CODE_INVALID_TOKEN); /* a copy of the store lets nobody in */
    assert_int_equal(by_token(hash).code, MCP_CODE_NONE);
}

static void a_grant_is_for_one_resource(void **state)
{
    static const char *const others[] = {"", "https://mcp.example.com/mcp/", "https://mcp.example.com",
                                         "https://MCP.example.com/mcp", "https://other.example/mcp"};
    const char *hash;
    size_t i;

    (void)state;
    (void)world_member("ada@example.com", "Member");
    hash = world_grant("ada@example.com", json_pack("[s]", "mcp:tools"), NULL);
    for (i = 0; i < COUNT(others); i++) {
        asked_t asked = by_token_until(hash, others[i], NULL, pd_boot_in(30000));

        assert_int_equal(asked.code, MCP_CODE_INVALID_TOKEN);
        assert_true(asked.is_known); /* whose it is stands in the record of the denial */
    }
}

static void revoking_suspending_and_removing_hold_at_once(void **state)
{
    const char *grant = NULL;
    const char *hash;
    const char *again;

    (void)state;
    (void)world_member("ada@example.com", "Member");
    hash = world_grant("ada@example.com", json_pack("[s]", "mcp:tools"), &grant);
    again = world_grant("ada@example.com", json_pack("[s]", "mcp:tools"), NULL);
    assert_int_equal(by_token(hash).code, MCP_CODE_NONE);
    world_done("members__suspend", member_arg("ada@example.com"));
    assert_int_equal(by_token(hash).code, MCP_CODE_MEMBER_SUSPENDED);
    assert_string_equal(by_token(hash).actor.grant_id, grant);
    world_done("members__reinstate", member_arg("ada@example.com"));
    assert_int_equal(by_token(hash).code, MCP_CODE_NONE);
    world_done("grants__revoke", json_pack("{s:s}", "grant", grant));
    assert_int_equal(by_token(hash).code, MCP_CODE_GRANT_REVOKED);
    assert_int_equal(by_token(again).code, MCP_CODE_NONE); /* that one alone */
    world_done("members__remove", member_arg("ada@example.com"));
    assert_int_equal(by_token(again).code, MCP_CODE_MEMBER_SUSPENDED);
}

static void a_grant_ends_when_its_time_is_over(void **state)
{
    json_t *result;
    const char *token;
    char hash[MCP_DIGEST_HEX + 1];

    (void)state;
    (void)world_member("ada@example.com", "Member");
    result = world_do("grants__create", json_pack("{s:s,s:s,s:s,s:[s],s:i}", "member", "ada@example.com",
                                                  "client", "c", "resource", WORLD_RESOURCE, "scopes",
                                                  "mcp:tools", "expires_in", 3600));
    token = mcp_json_str(result, "token");
    mcp_token_hash(token, strlen(token), hash);
    json_decref(result);
    assert_int_equal(by_token(hash).code, MCP_CODE_NONE);
    assert_true(by_token(hash).actor.expires_us > pd_wall_now().us);
    world_pass_ms(3599000);
    assert_int_equal(by_token(hash).code, MCP_CODE_NONE);
    world_pass_ms(2000);
    assert_int_equal(by_token(hash).code, MCP_CODE_GRANT_EXPIRED);
    assert_true(by_token(hash).is_known);
    (void)world_member("bob@example.com", "Member"); /* the trail has this time now */
    atomic_fetch_sub(&world_wall_ahead_us, (int64_t)86400 * 1000000);
    assert_int_equal(by_token(hash).code, MCP_CODE_GRANT_EXPIRED); /* a clock set back revives nothing */
}

/* --- grants as they should never stand in the store ------------------------------------- */

typedef struct raw_grant {
    const char *hash;
    const char *member;
    const char *doc;
} raw_grant_t;

static pd_status_t insert_grant(pd_tx_t *tx, void *baton)
{
    const raw_grant_t *raw = baton;
    const char *keys[2] = {pd_access_token_key(raw->hash, pd_tx_pool(tx)), NULL};
    json_t *doc = json_loads(raw->doc, 0, NULL);
    pd_status_t status =
        pd_tx_insert(tx, "grant", pd_store_new_id("grt", pd_tx_pool(tx)), raw->member, doc, keys);

    json_decref(doc);
    return status;
}

#define DOC(state, expires, resource)                                                              \
    "{\"scopes\":[\"mcp:destructive\",\"mcp:tools\"]," state expires resource "\"client\":\"x\"}"
#define ACTIVE   "\"state\":\"active\","
#define REVOKED  "\"state\":\"revoked\","
#define FOREVER  "\"expires_us\":0,"
#define OVER     "\"expires_us\":1000,"
#define RIGHT    "\"resource\":\"" WORLD_RESOURCE "\","
#define WRONG    "\"resource\":\"https://other.example/mcp\","

/* The steps in their written order; the first that fails answers. And what can't be read denies. */
static void the_first_reason_in_the_written_order_is_told(void **state)
{
    static const struct {
        const char *doc;
        int is_suspended;
        mcp_code_t code;
    } cases[] = {{DOC(ACTIVE, FOREVER, RIGHT), 0, MCP_CODE_NONE},
                 {DOC(REVOKED, OVER, WRONG), 1, MCP_CODE_GRANT_REVOKED},
                 {DOC(REVOKED, FOREVER, RIGHT), 0, MCP_CODE_GRANT_REVOKED},
                 {DOC(ACTIVE, OVER, WRONG), 1, MCP_CODE_GRANT_EXPIRED},
                 {DOC(ACTIVE, FOREVER, WRONG), 1, MCP_CODE_MEMBER_SUSPENDED},
                 {DOC(ACTIVE, FOREVER, RIGHT), 1, MCP_CODE_MEMBER_SUSPENDED},
                 {DOC(ACTIVE, FOREVER, WRONG), 0, MCP_CODE_INVALID_TOKEN},
                 {DOC("", FOREVER, RIGHT), 0, MCP_CODE_GRANT_REVOKED},
                 {DOC("\"state\":\"ACTIVE\",", FOREVER, RIGHT), 0, MCP_CODE_GRANT_REVOKED},
                 {DOC("\"state\":true,", FOREVER, RIGHT), 0, MCP_CODE_GRANT_REVOKED},
                 {DOC(ACTIVE, "\"expires_us\":\"never\",", RIGHT), 0, MCP_CODE_GRANT_EXPIRED},
                 {DOC(ACTIVE, "\"expires_us\":null,", RIGHT), 0, MCP_CODE_GRANT_EXPIRED},
                 {DOC(ACTIVE, "\"expires_us\":-1,", RIGHT), 0, MCP_CODE_GRANT_EXPIRED},
                 {DOC(ACTIVE, "", RIGHT), 0, MCP_CODE_NONE},
                 {DOC(ACTIVE, FOREVER, ""), 0, MCP_CODE_INVALID_TOKEN},
                 {DOC(ACTIVE, FOREVER, "\"resource\":[],"), 0, MCP_CODE_INVALID_TOKEN}};
    const char *member = world_member("ada@example.com", "Member");
    const char *suspended = world_member("bob@example.com", "Member");
    size_t i;

    (void)state;
    world_done("members__suspend", member_arg(suspended));
    for (i = 0; i < COUNT(cases); i++) {
        raw_grant_t raw = {NULL, cases[i].is_suspended ? suspended : member, cases[i].doc};
        char hash[MCP_DIGEST_HEX + 1];
        asked_t asked;

        mcp_digest_hex(&i, sizeof(i), hash);
        raw.hash = hash;
        assert_int_equal(world_unit(PD_LANE_WRITE, insert_grant, &raw), PD_OK);
        asked = by_token(hash);
        if (asked.code != cases[i].code) {
            fail_msg("case %u: %s instead of %s", (unsigned)i, mcp_code_text(asked.code),
                     mcp_code_text(cases[i].code));
        }
        assert_true(asked.is_known);
        assert_non_null(asked.actor.grant_id);
    }
}

static void a_grant_of_nobody_is_of_no_active_member(void **state)
{
    raw_grant_t raw = {"1111111111111111111111111111111111111111111111111111111111111111", "mem_none",
                       DOC(ACTIVE, FOREVER, RIGHT)};
    asked_t asked;

    (void)state;
    assert_int_equal(world_unit(PD_LANE_WRITE, insert_grant, &raw), PD_OK);
    asked = by_token(raw.hash);
    assert_int_equal(asked.code, MCP_CODE_MEMBER_SUSPENDED);
    assert_true(asked.is_known);
    assert_null(asked.actor.member_id);
    assert_string_equal(asked.actor.roles, "");
    assert_false(pd_actor_may(&asked.actor, "tool:execute"));
}

static void a_store_that_is_too_late_is_no_answer(void **state)
{
    const char *hash;
    asked_t asked;

    (void)state;
    (void)world_member("ada@example.com", "Member");
    hash = world_grant("ada@example.com", json_pack("[s]", "mcp:tools"), NULL);
    asked = by_token_until(hash, WORLD_RESOURCE, NULL, pd_boot_in(-1));
    assert_int_equal(asked.code, MCP_CODE_POLICY_UNAVAILABLE);
    assert_false(asked.is_known);
}

/* --- roles --------------------------------------------------------------------------------- */

static void roles_are_read_anew_each_time_and_united(void **state)
{
    const char *hash;
    asked_t asked;

    (void)state;
    world_done("roles__create", json_pack("{s:s,s:[s,s]}", "name", "Curator", "permissions",
                                          "connector:read", "connector:write"));
    (void)world_member("ada@example.com", "Guest");
    hash = world_grant("ada@example.com", json_pack("[s]", "mcp:tools"), NULL);
    asked = by_token(hash);
    assert_false(pd_actor_may(&asked.actor, "tool:execute"));
    assert_false(pd_actor_may(&asked.actor, "connector:write"));
    world_done("members__update", json_pack("{s:s,s:[s,s]}", "member", "ada@example.com", "roles", "Curator",
                                            "Auditor"));
    asked = by_token(hash);
    assert_string_equal(asked.actor.roles, "Curator,Auditor");
    assert_true(pd_actor_may(&asked.actor, "connector:write"));
    assert_true(pd_actor_may(&asked.actor, "audit:read"));
    assert_false(pd_actor_may(&asked.actor, "tool:execute"));
    world_done("members__update",
               json_pack("{s:s,s:[s]}", "member", "ada@example.com", "roles", "Owner"));
    asked = by_token(hash);
    assert_int_equal(asked.actor.is_owner, 1);
    assert_true(pd_actor_may(&asked.actor, "tool:execute"));
    assert_true(pd_actor_may(&asked.actor, "anything:at_all"));
}

static pd_status_t take_permissions(pd_tx_t *tx, void *baton)
{
    const char *keys[2] = {"name:Curator", NULL};
    json_t *doc = json_pack("{s:s,s:[]}", "name", "Curator", "permissions");
    pd_object_t *role = NULL;
    pd_status_t status = pd_tx_find(tx, "role", keys[0], &role);

    (void)baton;
    if (status == PD_OK) {
        status = pd_tx_update(tx, "role", role->id, NULL, doc, keys, 0, NULL);
    }
    json_decref(doc);
    return status;
}

static void a_custom_role_that_changed_anywhere_is_so_on_the_next_question(void **state)
{
    const char *hash;
    asked_t asked;

    (void)state;
    world_done("roles__create",
               json_pack("{s:s,s:[s]}", "name", "Curator", "permissions", "connector:write"));
    (void)world_member("ada@example.com", "Curator");
    hash = world_grant("ada@example.com", json_pack("[s]", "mcp:tools"), NULL);
    asked = by_token(hash);
    assert_true(pd_actor_may(&asked.actor, "connector:write"));
    asked = by_token(hash); /* from memory */
    assert_true(pd_actor_may(&asked.actor, "connector:write"));
    assert_null(asked.actor.permissions[1]);
    assert_int_equal(apr_hash_count(world.core.policy->snapshot->roles), 1);
    world_done("roles__update", json_pack("{s:s,s:[s,s]}", "role", "Curator", "permissions",
                                          "connector:read", "connector:write"));
    asked = by_token(hash);
    assert_true(pd_actor_may(&asked.actor, "connector:read"));
    world.is_elsewhere = 1; /* the policy in force does not know yet */
    assert_int_equal(world_unit(PD_LANE_WRITE, take_permissions, NULL), PD_OK);
    asked = by_token(hash);
    assert_false(pd_actor_may(&asked.actor, "connector:read"));
    assert_false(pd_actor_may(&asked.actor, "connector:write"));
}

typedef struct raw_member {
    const char *email;
    const char *doc;
    const char *id; /* out */
} raw_member_t;

static pd_status_t insert_member(pd_tx_t *tx, void *baton)
{
    raw_member_t *raw = baton;
    const char *keys[2] = {apr_pstrcat(pd_tx_pool(tx), "email:", raw->email, NULL), NULL};
    json_t *doc = json_loads(raw->doc, 0, NULL);
    const char *id = pd_store_new_id("mem", pd_tx_pool(tx));
    pd_status_t status = pd_tx_insert(tx, "member", id, NULL, doc, keys);

    raw->id = apr_pstrdup(world.pool, id);
    json_decref(doc);
    return status;
}

static void roles_that_are_none_give_nothing(void **state)
{
    static const char *const docs[] = {
        "{\"email\":\"m@example.com\",\"state\":\"active\",\"roles\":[\"NoSuchRole\",17,null,{}]}",
        "{\"email\":\"m@example.com\",\"state\":\"active\",\"roles\":\"Owner\"}",
        "{\"email\":\"m@example.com\",\"state\":\"active\",\"roles\":{\"Owner\":true}}",
        "{\"email\":\"m@example.com\",\"state\":\"active\",\"roles\":[\"owner\",\"OWNER\",\"Owner \"]}",
        "{\"email\":\"m@example.com\",\"state\":\"active\"}"};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(docs); i++) {
        raw_member_t member = {apr_psprintf(world.scratch, "m%u@example.com", (unsigned)i), docs[i], NULL};
        raw_grant_t grant = {NULL, NULL, DOC(ACTIVE, FOREVER, RIGHT)};
        char hash[MCP_DIGEST_HEX + 1];
        asked_t asked;

        assert_int_equal(world_unit(PD_LANE_WRITE, insert_member, &member), PD_OK);
        mcp_digest_hex(docs[i], strlen(docs[i]), hash);
        grant.hash = hash;
        grant.member = member.id;
        assert_int_equal(world_unit(PD_LANE_WRITE, insert_grant, &grant), PD_OK);
        asked = by_token(hash);
        assert_int_equal(asked.code, MCP_CODE_NONE);
        assert_int_equal(asked.actor.is_owner, 0);
        assert_false(pd_actor_may(&asked.actor, "tool:execute"));
        assert_false(pd_actor_may(&asked.actor, "connector:read"));
    }
}

static void nobody_gives_what_they_do_not_hold(void **state)
{
    static const char *const held[] = {"audit:read", "member:read", NULL};
    static const char *const one[] = {"member:read", NULL};
    static const char *const more[] = {"member:read", "grant:write", "audit:read", NULL};
    static const char *const none[] = {NULL};
    const char *missing = NULL;
    pd_actor_t actor;
    pd_actor_t owner;

    (void)state;
    memset(&actor, 0, sizeof(actor));
    memset(&owner, 0, sizeof(owner));
    owner.is_owner = 1;
    assert_true(pd_actor_covers(&actor, none, NULL));
    assert_true(pd_actor_covers(&actor, NULL, NULL));
    assert_false(pd_actor_covers(&actor, one, &missing)); /* who holds nothing */
    assert_string_equal(missing, "member:read");
    actor.permissions = held;
    assert_true(pd_actor_covers(&actor, one, NULL));
    assert_true(pd_actor_covers(&actor, held, NULL));
    missing = NULL;
    assert_false(pd_actor_covers(&actor, more, &missing));
    assert_string_equal(missing, "grant:write");
    assert_false(pd_actor_covers(&actor, more, NULL));
    assert_true(pd_actor_covers(&owner, more, NULL));
    assert_false(pd_actor_may(&actor, "member"));
    assert_false(pd_actor_may(&actor, "member:read_all"));
    assert_false(pd_actor_may(&actor, ""));
}

/* --- peers ------------------------------------------------------------------------------------ */

static void map_peer(long uid, const char *email)
{
    pd_config_actor_t *actor = apr_array_push(world.config.actors);

    actor->uid = uid;
    actor->email = email;
}

static void root_is_owner_and_others_are_whom_the_file_names(void **state)
{
    const char *member;
    asked_t asked = by_peer(0);

    (void)state;
    assert_int_equal(asked.code, MCP_CODE_NONE);
    assert_int_equal(asked.actor.is_owner, 1);
    assert_string_equal(asked.actor.label, "unix:0");
    assert_string_equal(asked.actor.roles, "Owner");
    assert_null(asked.actor.member_id);
    assert_null(asked.actor.grant_id);
    assert_int_equal(asked.actor.surface, MCP_SURFACE_ADMIN);

    asked = by_peer(1000); /* in no line */
    assert_int_equal(asked.code, MCP_CODE_PERMISSION_DENIED);
    assert_string_equal(asked.actor.label, "unix:1000");
    assert_int_equal(asked.actor.is_owner, 0);

    map_peer(1000, "Ada@Example.com");
    asked = by_peer(1000); /* in a line, but no member */
    assert_int_equal(asked.code, MCP_CODE_PERMISSION_DENIED);
    assert_null(asked.actor.member_id);
    assert_false(pd_actor_may(&asked.actor, "member:read"));

    member = world_member("ada@example.com", "Auditor");
    asked = by_peer(1000);
    assert_int_equal(asked.code, MCP_CODE_NONE);
    assert_string_equal(asked.actor.member_id, member);
    assert_true(pd_actor_may(&asked.actor, "audit:read"));
    assert_false(pd_actor_may(&asked.actor, "member:write"));
    assert_int_equal(asked.actor.scopes, 15);

    world_done("members__suspend", member_arg(member));
    asked = by_peer(1000);
    assert_int_equal(asked.code, MCP_CODE_MEMBER_SUSPENDED);
    world_done("members__remove", member_arg(member));
    assert_int_equal(by_peer(1000).code, MCP_CODE_PERMISSION_DENIED); /* its email is free again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_good_token_gives_its_member_roles_and_scopes, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(an_unknown_token_is_nobody, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_the_store_keeps_is_no_token, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_grant_is_for_one_resource, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(revoking_suspending_and_removing_hold_at_once, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_grant_ends_when_its_time_is_over, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(the_first_reason_in_the_written_order_is_told, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_grant_of_nobody_is_of_no_active_member, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_store_that_is_too_late_is_no_answer, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(roles_are_read_anew_each_time_and_united, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(
            a_custom_role_that_changed_anywhere_is_so_on_the_next_question, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(roles_that_are_none_give_nothing, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(nobody_gives_what_they_do_not_hold, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(root_is_owner_and_others_are_whom_the_file_names, world_setup,
                                        world_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
