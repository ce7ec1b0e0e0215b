/* Dry runs: nothing stays of them, and what they say of who gains and loses which tools is what a slow recount before and after the
 * real change says. */
#include "policy_random.h"

#include "../../policyd/pd_impact.h"
#include "../../policyd/pd_reach.h"
#include "../../policyd/pd_roles.h"
#include "../../policyd/pd_snapshot.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWER 10
#else
#define SLOWER 1
#endif

/* --- the slow recount -------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every name that any tool of the organisation has. */
static apr_array_header_t *all_names(const pd_snapshot_t *snapshot)
{
    apr_array_header_t *names = apr_array_make(world.scratch, 64, sizeof(const char *));
    apr_hash_index_t *at;
    int i;
    int k;

    for (at = apr_hash_first(world.scratch, snapshot->ground->connections); at != NULL;
         at = apr_hash_next(at)) {
        const pd_connection_t *connection = apr_hash_this_val(at);

        for (i = 0; i < connection->tools->nelts; i++) {
            APR_ARRAY_PUSH(names, const char *) =
                APR_ARRAY_IDX(connection->tools, i, pd_tool_t).name;
        }
    }
    for (i = 0; i < snapshot->toolboxes->sorted->nelts; i++) {
        const pd_toolbox_t *toolbox =
            APR_ARRAY_IDX(snapshot->toolboxes->sorted, i, const pd_toolbox_t *);

        for (k = 0; k < toolbox->entries->nelts; k++) {
            APR_ARRAY_PUSH(names, const char *) =
                APR_ARRAY_IDX(toolbox->entries, k, pd_entry_t).tool_name;
        }
    }
    qsort(names->elts, (size_t)names->nelts, sizeof(const char *), by_text);
    return names;
}

static int may_execute(pd_tx_t *tx, const json_t *roles)
{
    const char *const *held = NULL;
    int is_owner = 0;

    assert_int_equal(pd_roles_permissions(tx, roles, world.scratch, &held, &is_owner), PD_OK);
    for (; *held != NULL; held++) {
        if (strcmp(*held, "tool:execute") == 0) {
            return 1;
        }
    }
    return 0;
}

/* The names that one member has, one by one, in an object name -> true. */
static json_t *names_of(pd_tx_t *tx, const pd_object_t *member, const apr_array_header_t *names)
{
    const json_t *roles = json_object_get(member->doc, "roles");
    size_t count = json_array_size(roles);
    const char **texts = apr_pcalloc(world.scratch, (count + 1) * sizeof(*texts));
    pd_subject_t subject = {member->id, texts};
    json_t *has = json_object();
    size_t i;
    int k;

    if (strcmp(mcp_json_str(member->doc, "state"), "active") != 0 || !may_execute(tx, roles)) {
        return has;
    }
    for (i = 0; i < count; i++) {
        texts[i] = json_string_value(json_array_get(roles, i));
    }
    for (k = 0; k < names->nelts; k++) {
        const char *name = APR_ARRAY_IDX(names, k, const char *);
        pd_found_t found;

        if (pd_reach_tool(world.core.policy->snapshot, &subject, name, world.scratch, &found,
                          NULL) == PD_REACH_OK) {
            json_object_set_new(has, name, json_true());
        }
    }
    return has;
}

/* {email: names} of everybody. */
static pd_status_t recount_unit(pd_tx_t *tx, void *baton)
{
    json_t *all = baton;
    apr_array_header_t *members = NULL;
    const apr_array_header_t *names = all_names(world.core.policy->snapshot);
    int i;

    assert_int_equal(pd_tx_list(tx, "member", NULL, NULL, 1000, &members), PD_OK);
    for (i = 0; i < members->nelts; i++) {
        const pd_object_t *member = APR_ARRAY_IDX(members, i, const pd_object_t *);
        const char *email = mcp_json_str(member->doc, "email");

        json_object_set_new(all, email, names_of(tx, member, names));
    }
    return PD_OK;
}

static json_t *recount(void)
{
    json_t *all = json_object();

    assert_int_equal(world_unit(PD_LANE_LOOP, recount_unit, all), PD_OK);
    return all;
}

/* Sorted names of `one` that `other` (may be NULL) lacks. */
static json_t *lacking(const json_t *one, const json_t *other)
{
    apr_array_header_t *names = apr_array_make(world.scratch, 16, sizeof(const char *));
    json_t *list = json_array();
    const char *name;
    json_t *value;
    int i;

    json_object_foreach((json_t *)(uintptr_t)one, name, value)
    {
        if (json_object_get(other, name) == NULL) {
            APR_ARRAY_PUSH(names, const char *) = name;
        }
    }
    qsort(names->elts, (size_t)names->nelts, sizeof(const char *), by_text);
    for (i = 0; i < names->nelts; i++) {
        json_array_append_new(list, json_string(APR_ARRAY_IDX(names, i, const char *)));
    }
    return list;
}

/* --- asking ------------------------------------------------------------------------ */

static json_t *dry(const json_t *args)
{
    json_t *copy = json_deep_copy(args);

    json_object_set_new(copy, "dry_run", json_true());
    return copy;
}

static int64_t revision(void)
{
    return world.core.policy->snapshot->revision;
}

/* The group that names the email, or NULL. */
static const json_t *group_of(const json_t *impact, const char *email)
{
    const json_t *group;
    size_t i;
    size_t k;

    json_array_foreach(json_object_get(impact, "groups"), i, group)
    {
        const json_t *members = json_object_get(group, "members");

        for (k = 0; k < json_array_size(members); k++) {
            if (strcmp(json_string_value(json_array_get(members, k)), email) == 0) {
                return group;
            }
        }
    }
    return NULL;
}

static void check_member(const char *what, const json_t *impact, const char *email,
                         const json_t *before, const json_t *after, int counts[3])
{
    json_t *gains = lacking(after, before);
    json_t *loses = lacking(before, after);
    const json_t *group = group_of(impact, email);
    int is_touched = json_array_size(gains) > 0 || json_array_size(loses) > 0;

    counts[0] += is_touched;
    counts[1] += json_array_size(gains) > 0;
    counts[2] += json_array_size(loses) > 0;
    if (is_touched != (group != NULL)) {
        fail_msg("%s: %s %s touched", what, email, is_touched ? "is, and is not told to be," : "is not");
    }
    if (group != NULL) {
        assert_true(json_equal(json_object_get(group, "gains"), gains));
        assert_true(json_equal(json_object_get(group, "loses"), loses));
        assert_int_equal(mcp_json_int(group, "gain_count", -1), json_array_size(gains));
        assert_int_equal(mcp_json_int(group, "lose_count", -1), json_array_size(loses));
    }
    json_decref(gains);
    json_decref(loses);
}

static void check_impact(const char *what, const json_t *impact, const json_t *before,
                         const json_t *after)
{
    int counts[3] = {0, 0, 0};
    const char *email;
    json_t *names;

    json_object_foreach((json_t *)(uintptr_t)after, email, names)
    {
        check_member(what, impact, email, json_object_get(before, email), names, counts);
    }
    if (mcp_json_int(impact, "members", -1) != counts[0] ||
        mcp_json_int(impact, "gains", -1) != counts[1] ||
        mcp_json_int(impact, "loses", -1) != counts[2]) {
        fail_msg("%s: other counts", what);
    }
    assert_null(json_object_get(impact, "is_cut"));
}

/* One random change, dry and then real. 1 when it could be made. */
static int compare_once(int *touched)
{
    const char *name;
    json_t *args = random_call(1, &name);
    int64_t was = revision();
    json_t *before = recount();
    json_t *told = world_try(name, dry(args));
    mcp_code_t code = world.code;
    json_t *done;
    json_t *after;

    assert_int_equal(revision(), was);
    done = world_try(name, args);
    assert_int_equal(world.code, code); /* a dry run is refused where the change would be */
    if (done == NULL) {
        assert_null(told);
        json_decref(before);
        return 0;
    }
    assert_non_null(told);
    assert_true(json_is_true(json_object_get(told, "dry_run")));
    assert_null(json_object_get(done, "dry_run"));
    assert_null(json_object_get(done, "impact"));
    after = recount();
    check_impact(name, json_object_get(told, "impact"), before, after);
    *touched += mcp_json_int(json_object_get(told, "impact"), "members", 0) > 0;
    json_decref(before);
    json_decref(after);
    json_decref(told);
    json_decref(done);
    return 1;
}

static void a_slow_recount_before_and_after_says_the_same(void **state)
{
    int made = 0;
    int touched = 0;
    int i;

    (void)state;
    random_policy(7, 40);
    for (i = 0; i < 400; i++) {
        made += compare_once(&touched);
        apr_pool_clear(world.scratch);
    }
    print_message("%d of 400 random changes could be made, %d of them touched somebody\n", made,
                  touched);
    assert_true(made > 100);
    assert_true(touched > 25);
}

/* --- what stays -------------------------------------------------------------------- */

static void make_shop(void)
{
    random_state = 99;
    world_done("connectors__create",
               json_pack("{s:s,s:s,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s}]}", "slug",
                         "shop", "label", "Shop", "base_url", "https://shop.example.com", "auth",
                         "type", "none", "operations", "id", "list", "method", "GET", "path", "/a",
                         "description", "Lists.", "id", "wipe", "method", "DELETE", "path", "/a",
                         "description", "Wipes."));
    world_done("connections__create", json_pack("{s:s,s:s,s:b}", "connector", "shop", "label",
                                                "shop", "shared", 1));
}

static json_t *block_wipe(void)
{
    return json_pack("{s:s,s:s,s:{s:s},s:[{s:s,s:s}]}", "name", "no-wipe", "effect", "block",
                     "target", "role", "Member", "items", "connector", "shop", "operation", "wipe");
}

static void a_dry_run_leaves_two_rows_and_nothing_else(void **state)
{
    int64_t was;
    int64_t head;
    json_t *result;
    json_t *block = block_wipe();
    world_rows_t rows;

    (void)state;
    make_shop();
    (void)world_member("ada@example.com", "Member");
    was = revision();
    head = world_head();
    result = world_do("restrictions__create", dry(block));
    json_decref(block);
    assert_int_equal(revision(), was);
    assert_non_null(json_object_get(result, "restriction"));
    json_decref(result);
    assert_null(world_try("restrictions__get", json_pack("{s:s}", "restriction", "no-wipe")));
    assert_int_equal(world.code, MCP_CODE_NOT_FOUND);
    rows = world_rows(head);
    assert_int_equal(rows.count, 3);
    assert_int_equal(rows.rows[0].kind, PD_RECORD_BEGIN);
    assert_int_equal(rows.rows[1].kind, PD_RECORD_END);
    assert_string_equal(rows.rows[1].outcome, "ok");
    assert_null(rows.rows[1].error_code);
    assert_non_null(strstr(rows.rows[1].detail, " dry_run"));
}

static void one_who_loses_a_tool_is_named_with_it(void **state)
{
    json_t *block = block_wipe();
    json_t *result;
    json_t *wanted;

    (void)state;
    make_shop();
    (void)world_member("bob@example.com", "Member");
    (void)world_member("ada@example.com", "Member");
    (void)world_member("eve@example.com", "Guest");
    result = world_do("restrictions__create", dry(block));
    wanted = json_pack("{s:i,s:i,s:i,s:[{s:i,s:[s,s],s:[s],s:i,s:[],s:i,s:[s]}]}", "members", 2,
                       "gains", 0, "loses", 2, "groups", "member_count", 2, "members",
                       "ada@example.com", "bob@example.com", "roles", "Member", "gain_count", 0,
                       "gains", "lose_count", 1, "loses", "shop__wipe");
    assert_true(json_equal(json_object_get(result, "impact"), wanted));
    json_decref(wanted);
    json_decref(result);
    json_decref(block);
}

static json_t *impact_of(const char *name, json_t *args)
{
    json_t *result = world_do(name, dry(args));
    json_t *impact = json_incref(json_object_get(result, "impact"));

    assert_non_null(impact);
    json_decref(result);
    json_decref(args);
    return impact;
}

static void expect(const char *name, json_t *args, int members, int gains, int loses)
{
    json_t *impact = impact_of(name, args);

    assert_int_equal(mcp_json_int(impact, "members", -1), members);
    assert_int_equal(mcp_json_int(impact, "gains", -1), gains);
    assert_int_equal(mcp_json_int(impact, "loses", -1), loses);
    json_decref(impact);
}

static void whoever_loses_tool_execute_loses_every_tool(void **state)
{
    (void)state;
    make_shop();
    world_done("roles__create",
               json_pack("{s:s,s:[s,s]}", "name", "Ops", "permissions", "tool:execute", "tool:read"));
    (void)world_member("ada@example.com", "Ops");
    world_done("members__create",
               json_pack("{s:s,s:[s,s]}", "email", "bob@example.com", "roles", "Ops", "Member"));
    expect("roles__update", json_pack("{s:s,s:[s]}", "role", "Ops", "permissions", "tool:read"), 1,
           0, 1);
    expect("members__update", json_pack("{s:s,s:[s]}", "member", "bob@example.com", "roles", "Guest"),
           1, 0, 1);
    expect("members__update", json_pack("{s:s,s:[s]}", "member", "bob@example.com", "roles", "Ops"),
           0, 0, 0);
}

static void the_suspended_have_none_and_the_new_gain_all(void **state)
{
    (void)state;
    make_shop();
    (void)world_member("ada@example.com", "Member");
    expect("members__create", json_pack("{s:s}", "email", "new@example.com"), 1, 1, 0);
    expect("members__suspend", json_pack("{s:s}", "member", "ada@example.com"), 1, 0, 1);
    expect("members__remove", json_pack("{s:s,s:b}", "member", "ada@example.com", "erase", 1), 1, 0,
           1);
    world_done("members__suspend", json_pack("{s:s}", "member", "ada@example.com"));
    expect("restrictions__create", block_wipe(), 0, 0, 0);
    expect("members__reinstate", json_pack("{s:s}", "member", "ada@example.com"), 1, 1, 0);
}

/* The same role, and something of one's own: classes of their own. The one who comes first by id must not stand for the others. */
static void what_one_member_has_alone_is_told_of_him_alone(void **state)
{
    (void)state;
    make_shop();
    (void)world_member("ada@example.com", "Member");
    (void)world_member("bob@example.com", "Member");
    expect("toolboxes__create",
           json_pack("{s:s,s:[s],s:[{s:s,s:s,s:[s]}]}", "name", "kit", "members", "ada@example.com",
                     "entries", "connector", "shop", "operation", "list", "connections", "shop"),
           1, 1, 0);
    expect("restrictions__create",
           json_pack("{s:s,s:{s:s},s:[{s:s}]}", "effect", "block", "target", "member",
                     "ada@example.com", "items", "connector", "shop"),
           1, 0, 1);
    expect("connections__create", json_pack("{s:s,s:s,s:s}", "connector", "shop", "label", "mine",
                                            "owner", "ada@example.com"),
           1, 1, 0);
}

static void dry_run_false_is_the_change_itself(void **state)
{
    json_t *file = random_connector("mail");

    (void)state;
    json_object_set_new(file, "dry_run", json_false());
    world_done("connectors__create", file); /* nor is it taken for a member of the file */
    world_done("connectors__get", json_pack("{s:s}", "connector", "mail"));
}

/* --- who may see what --------------------------------------------------------------- */

static json_t *ask_as(const char *const *permissions, const char *name, json_t *args)
{
    pd_actor_t actor = {.label = "unix:1000", .roles = "", .permissions = permissions,
                        .surface = MCP_SURFACE_ADMIN, .scopes = 15};
    world_call_t made = {NULL, 0};

    assert_int_equal(pd_invoke(&world.core, pd_ops_find(name), &actor, args, NULL, pd_boot_in(30000),
                               world.scratch, world_on_done, &made),
                     PD_OK);
    world_wait(&made.is_done);
    json_decref(args);
    return made.result;
}

static void emails_and_tools_of_others_are_for_who_may_read_them(void **state)
{
    static const char *const blind[] = {"connector:write", "role:write", NULL};
    static const char *const half[] = {"connector:write", "member:read", NULL};
    static const char *const seeing[] = {"connection:read_all", "connector:write", "member:read",
                                         NULL};
    json_t *result;
    json_t *group;
    json_t *update;

    (void)state;
    make_shop();
    world_done("connections__delete", json_pack("{s:s}", "connection", "shop"));
    (void)world_member("ada@example.com", "Member");
    world_done("connections__create", json_pack("{s:s,s:s,s:s}", "connector", "shop", "label",
                                                "private", "owner", "ada@example.com"));
    update = json_pack("{s:s,s:s,s:s,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s}],s:b}", "connector", "shop",
                       "slug", "shop", "label", "Shop", "base_url", "https://shop.example.com",
                       "auth", "type", "none", "operations", "id", "list", "method", "GET", "path",
                       "/a", "description", "Lists.", "dry_run", 1);
    result = ask_as(blind, "connectors__update", json_deep_copy(update));
    assert_non_null(result);
    assert_true(mcp_json_bool(json_object_get(result, "impact"), "only_you"));
    assert_int_equal(mcp_json_int(json_object_get(result, "impact"), "members", -1), 0);
    json_decref(result);
    result = ask_as(half, "connectors__update", json_deep_copy(update));
    assert_null(json_object_get(json_object_get(result, "impact"), "only_you"));
    group = json_array_get(json_object_get(json_object_get(result, "impact"), "groups"), 0);
    assert_int_equal(mcp_json_int(group, "member_count", -1), 1);
    assert_int_equal(json_array_size(json_object_get(group, "loses")), 0);
    assert_int_equal(mcp_json_int(group, "lose_count", -1), 1);
    json_decref(result);
    result = ask_as(seeing, "connectors__update", update);
    group = json_array_get(json_object_get(json_object_get(result, "impact"), "groups"), 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(group, "members"), 0)),
                        "ada@example.com");
    assert_string_equal(json_string_value(json_array_get(json_object_get(group, "loses"), 0)),
                        "private__wipe");
    json_decref(result);
}

/* --- bounds ------------------------------------------------------------------------- */

typedef struct crowd {
    int members;
    int roles;
} crowd_t;

/* Straight into the store: the operations' own checks are not what is measured. */
static pd_status_t crowd_unit(pd_tx_t *tx, void *baton)
{
    const crowd_t *crowd = baton;
    int i;

    for (i = 0; i < crowd->roles; i++) {
        const char *name = apr_psprintf(world.scratch, "R%03d", i);
        const char *keys[] = {apr_pstrcat(world.scratch, "name:", name, (char *)NULL), NULL};
        json_t *doc = json_pack("{s:s,s:[s]}", "name", name, "permissions", "tool:execute");

        assert_int_equal(pd_tx_insert(tx, "role", apr_psprintf(world.scratch, "rol_%026d", i), NULL,
                                      doc, keys),
                         PD_OK);
        json_decref(doc);
    }
    for (i = 0; i < crowd->members; i++) {
        const char *email = apr_psprintf(world.scratch, "p%05d@example.com", i);
        const char *keys[] = {apr_pstrcat(world.scratch, "email:", email, (char *)NULL), NULL};
        json_t *doc = json_pack("{s:s,s:[s],s:s}", "email", email, "roles",
                                apr_psprintf(world.scratch, "R%03d", i % crowd->roles), "state",
                                "active");

        assert_int_equal(pd_tx_insert(tx, "member", apr_psprintf(world.scratch, "mem_%026d", i),
                                      NULL, doc, keys),
                         PD_OK);
        json_decref(doc);
    }
    return PD_OK;
}

/* A connector of so many operations, and that many connections on it. */
static void make_large(int operations, int connections)
{
    json_t *list = json_array();
    int i;

    for (i = 0; i < operations; i++) {
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:s}", "id", apr_psprintf(world.scratch, "op%04d", i),
                            "method", "GET", "path", apr_psprintf(world.scratch, "/%d", i),
                            "description", "Does it."));
    }
    world_done("connectors__create",
               json_pack("{s:s,s:s,s:s,s:{s:s},s:o}", "slug", "large", "label", "Large", "base_url",
                         "https://large.example.com", "auth", "type", "none", "operations", list));
    for (i = 0; i < connections; i++) {
        world_done("connections__create",
                   json_pack("{s:s,s:s,s:b}", "connector", "large", "label",
                             apr_psprintf(world.scratch, "l%d", i), "shared", 1));
    }
}

static int64_t timed_us(const char *what, const char *name, json_t *args, int members)
{
    int64_t start = world_clock_us(CLOCK_MONOTONIC);
    json_t *impact = impact_of(name, args);
    int64_t took = world_clock_us(CLOCK_MONOTONIC) - start;

    assert_int_equal(mcp_json_int(impact, "members", -1), members);
    print_message("%s: %lld ms\n", what, (long long)(took / 1000));
    json_decref(impact);
    return took;
}

static void ten_thousand_members_in_two_hundred_roles_take_less_than_two_seconds(void **state)
{
    const int64_t limit = (int64_t)2000000 * SLOWER;
    crowd_t crowd = {10000, 200};
    json_t *toolbox;

    (void)state;
    make_large(1000, 2);
    assert_int_equal(world_unit(PD_LANE_WRITE, crowd_unit, &crowd), PD_OK);
    assert_true(timed_us("a block for one role", "restrictions__create",
                         json_pack("{s:s,s:{s:s},s:[{s:s,s:s}]}", "effect", "block", "target",
                                   "role", "R007", "items", "connector", "large", "operation",
                                   "op0500"),
                         50) < limit);
    assert_true(timed_us("a connection for all", "connections__create",
                         json_pack("{s:s,s:s,s:b}", "connector", "large", "label", "l9", "shared", 1),
                         10000) < limit);
    assert_true(timed_us("a connection gone", "connections__delete",
                         json_pack("{s:s}", "connection", "l0"), 10000) < limit);
    toolbox = json_pack("{s:s,s:[s,s],s:[{s:s,s:s,s:[s]}]}", "name", "kit", "roles", "R001", "R002",
                        "entries", "connector", "large", "operation", "op0001", "connections", "l1");
    assert_true(timed_us("a toolbox for two roles", "toolboxes__create", toolbox, 100) < limit);
}

static void what_is_shown_is_bounded_and_the_counts_are_whole(void **state)
{
    crowd_t crowd = {60 * 25, 60};
    json_t *impact;
    json_t *group;

    (void)state;
    make_large(100, 0);
    assert_int_equal(world_unit(PD_LANE_WRITE, crowd_unit, &crowd), PD_OK);
    impact = impact_of("connections__create",
                       json_pack("{s:s,s:s,s:b}", "connector", "large", "label", "l0", "shared", 1));
    assert_int_equal(mcp_json_int(impact, "members", -1), 1500);
    assert_int_equal(mcp_json_int(impact, "gains", -1), 1500);
    assert_true(json_is_true(json_object_get(impact, "is_cut")));
    assert_int_equal(json_array_size(json_object_get(impact, "groups")), PD_IMPACT_GROUPS);
    group = json_array_get(json_object_get(impact, "groups"), 0);
    assert_int_equal(json_array_size(json_object_get(group, "members")), PD_IMPACT_MEMBERS);
    assert_int_equal(mcp_json_int(group, "member_count", -1), 25);
    assert_int_equal(json_array_size(json_object_get(group, "gains")), PD_IMPACT_NAMES);
    assert_int_equal(mcp_json_int(group, "gain_count", -1), 100);
    json_decref(impact);
}

static pd_status_t late_unit(pd_tx_t *tx, void *baton)
{
    pd_impact_t *impact = NULL;

    (void)baton;
    return pd_impact_begin(tx, world.core.policy->snapshot, NULL, pd_boot_now(), pd_tx_pool(tx), &impact);
}

static void past_the_deadline_nothing_is_compared(void **state)
{
    (void)state;
    assert_int_equal(world_unit(PD_LANE_LOOP, late_unit, NULL), PD_E_TIMEOUT);
}

/* --- the registry -------------------------------------------------------------------- */

static void policy_operations_and_no_others_take_dry_run(void **state)
{
    static const char *const policy[] = {"members",     "roles",     "connectors", "connections",
                                         "restrictions", "toolboxes"};
    int found = 0;
    int i;

    (void)state;
    for (i = 0; pd_ops_row(i) != NULL; i++) {
        const pd_op_t *op = pd_ops_row(i);
        int wanted = strcmp(op->resource, "policy") == 0 && strcmp(op->verb, "apply") == 0;
        size_t k;

        for (k = 0; k < sizeof(policy) / sizeof(policy[0]); k++) {
            wanted |= op->lane == PD_LANE_WRITE && strcmp(op->resource, policy[k]) == 0;
        }
        if ((op->is_policy != 0) != wanted || pd_ops_knows(op, "dry_run") != wanted) {
            fail_msg("%s %s", op->resource, op->verb);
        }
        found += wanted;
    }
    assert_true(found >= 21);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_slow_recount_before_and_after_says_the_same),
        TEST(a_dry_run_leaves_two_rows_and_nothing_else),
        TEST(one_who_loses_a_tool_is_named_with_it),
        TEST(whoever_loses_tool_execute_loses_every_tool),
        TEST(the_suspended_have_none_and_the_new_gain_all),
        TEST(what_one_member_has_alone_is_told_of_him_alone),
        TEST(dry_run_false_is_the_change_itself),
        TEST(emails_and_tools_of_others_are_for_who_may_read_them),
        TEST(ten_thousand_members_in_two_hundred_roles_take_less_than_two_seconds),
        TEST(what_is_shown_is_bounded_and_the_counts_are_whole),
        TEST(past_the_deadline_nothing_is_compared),
        TEST(policy_operations_and_no_others_take_dry_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
