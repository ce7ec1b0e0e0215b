/* The one way an operation runs: its steps in order, its rows, and what happens when a row can't be
 * written. */
#include "ops_world.h"

static int is_created(const char *email)
{
    json_t *found = world_invoke(world_root(), "members__get", json_pack("{s:s}", "member", email));
    int is = found != NULL;

    json_decref(found);
    return is;
}

static const char *audit_text(int64_t seq)
{
    static char text[48];

    pd_trail_id(NULL, seq, text);
    return text;
}

/* --- steps ----------------------------------------------------------------------- */

static void every_operation_asks_its_permission_first_and_leaves_one_denied_row(void **state)
{
    static const char *const nothing[] = {NULL};
    int i;

    (void)state;
    for (i = 0; pd_ops_row(i) != NULL; i++) {
        const pd_op_t *op = pd_ops_row(i);
        int64_t before = world.seq;
        char name[64];

        if (op->permission == NULL) {
            continue;
        }
        pd_ops_name(op, name);
        /* arguments that no schema takes: the permission is asked before them */
        if (world_refused(world_holder(nothing), name, json_pack("{s:i}", "nonsense", 1)) !=
            MCP_CODE_PERMISSION_DENIED) {
            fail_msg("%s: %s", name, mcp_code_text(world.code));
        }
        assert_non_null(strstr(world.message, op->permission));
        assert_int_equal(world.seq, before + 1);
        assert_string_equal(world_last()->operation, name);
        assert_string_equal(world_last()->outcome, "denied");
        assert_string_equal(world_last()->code, "permission_denied");
        assert_int_equal(world_last()->kind, PD_RECORD_END);
        assert_int_equal(world_last()->begin_seq, 0);
        assert_string_equal(world_last()->actor, "unix:1000");
        assert_string_equal(world.audit, audit_text(world.seq));
    }
}

static void every_operation_with_its_permission_gets_as_far_as_its_schema(void **state)
{
    int i;

    (void)state;
    for (i = 0; pd_ops_row(i) != NULL; i++) {
        const char *held[2] = {pd_ops_row(i)->permission, NULL};
        char name[64];

        pd_ops_name(pd_ops_row(i), name);
        if (world_refused(world_holder(held), name,
                          json_pack("{s:{}, s:{}, s:{}}", "limit", "slug", "nonsense")) !=
            MCP_CODE_INVALID_REQUEST) {
            fail_msg("%s: %s", name, mcp_code_text(world.code));
        }
        assert_string_equal(world_last()->outcome, "error");
    }
}

static void the_mcp_door_asks_tool_execute_before_everything(void **state)
{
    const pd_actor_t *auditor =
        world_member("door@example.com", "Auditor", "mcp:read", MCP_SURFACE_MCP);
    pd_actor_t *rest = apr_pmemdup(world.scratch, auditor, sizeof(*auditor));

    (void)state;
    assert_int_equal(world_refused(auditor, "members__list", json_object()),
                     MCP_CODE_PERMISSION_DENIED);
    assert_non_null(strstr(world.message, "tool:execute"));
    assert_int_equal(world_refused(auditor, "whoami__get", json_object()),
                     MCP_CODE_PERMISSION_DENIED);
    rest->surface = MCP_SURFACE_REST;
    world_done(rest, "members__list", json_object());
    world_done(rest, "whoami__get", json_object());
}

static void secrets_never_pass_the_mcp_door(void **state)
{
    pd_actor_t *owner = apr_pmemdup(world.scratch, world_root(), sizeof(pd_actor_t));

    (void)state;
    owner->surface = MCP_SURFACE_MCP;
    owner->scopes = 0; /* no scope cures a door: it is said first */
    assert_int_equal(world_refused(owner, "grants__create", json_object()),
                     MCP_CODE_USE_OTHER_DOOR);
    assert_string_equal(world.hint,
                        "Use policyctl grants create, or POST /grants of the REST API.");
    assert_string_equal(world_last()->outcome, "denied");
    assert_int_equal(world_refused(owner, "connections__create",
                                   json_pack("{s:{s:s}}", "credential", "value", "x")),
                     MCP_CODE_USE_OTHER_DOOR);
    assert_int_equal(world_refused(owner, "connections__create", json_object()),
                     MCP_CODE_INSUFFICIENT_SCOPE);
    owner->scopes = MCP_SCOPE_WRITE;
    assert_int_equal(world_refused(owner, "connections__create", json_object()),
                     MCP_CODE_INVALID_REQUEST);
}

static void the_class_needs_its_rung_at_mcp_and_rest_alone(void **state)
{
    static const struct {
        const char *name;
        unsigned needed;
    } cases[] = {{"members__list", MCP_SCOPE_READ},
                 {"members__create", MCP_SCOPE_WRITE},
                 {"members__remove", MCP_SCOPE_DESTRUCTIVE}};
    static const mcp_surface_t surfaces[] = {MCP_SURFACE_MCP, MCP_SURFACE_REST, MCP_SURFACE_ADMIN};
    size_t i;
    size_t j;
    unsigned scopes;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (j = 0; j < sizeof(surfaces) / sizeof(surfaces[0]); j++) {
            for (scopes = 0; scopes < 16; scopes++) {
                pd_actor_t *actor = apr_pmemdup(world.scratch, world_root(), sizeof(pd_actor_t));
                int may = surfaces[j] == MCP_SURFACE_ADMIN ||
                          (mcp_scope_close(scopes) & cases[i].needed) == cases[i].needed;

                actor->surface = surfaces[j];
                actor->scopes = scopes;
                /* refused by the schema: the scope was enough */
                assert_int_equal(
                    world_refused(actor, cases[i].name, json_pack("{s:i}", "nonsense", 1)),
                    may ? MCP_CODE_INVALID_REQUEST : MCP_CODE_INSUFFICIENT_SCOPE);
                if (!may) {
                    assert_non_null(strstr(world.message, mcp_scope_text(cases[i].needed)));
                }
            }
        }
    }
}

static void arguments_above_the_limit_are_refused(void **state)
{
    size_t size;

    (void)state;
    /* {"member":"…"} has 13 bytes beside the text */
    for (size = 64 * 1024 - 13; size <= 64 * 1024 - 12; size++) {
        char *text = apr_palloc(world.scratch, size + 1);

        memset(text, 'a', size);
        text[size] = '\0';
        assert_int_equal(
            world_refused(world_root(), "members__get", json_pack("{s:s}", "member", text)),
            MCP_CODE_INVALID_REQUEST);
        assert_int_equal(strstr(world.message, "65536") != NULL, size == 64 * 1024 - 12);
    }
}

static void a_schema_error_names_place_and_rule_and_no_value(void **state)
{
    (void)state;
    assert_int_equal(world_refused(world_root(), "members__create",
                                   json_pack("{s:s, s:[s, s]}", "email", "x@example.com", "roles",
                                             "hush", "hush")),
                     MCP_CODE_INVALID_REQUEST);
    assert_non_null(strstr(world.message, "/roles"));
    assert_non_null(strstr(world.message, "uniqueItems"));
    assert_null(strstr(world.message, "hush"));
}

/* --- rows ------------------------------------------------------------------------ */

static void a_read_leaves_one_row_with_known_names_and_counts_the_rest(void **state)
{
    int64_t before = world.seq;

    (void)state;
    world_done(world_root(), "members__list",
               json_pack("{s:s, s:i}", "query", "a-secret-value", "limit", 5));
    assert_int_equal(world.seq, before + 1);
    assert_int_equal(world_last()->kind, PD_RECORD_END);
    assert_string_equal(world_last()->outcome, "ok");
    assert_string_equal(world_last()->code, "");
    assert_string_equal(world_last()->arg_names, "[\"query\",\"limit\"]");
    assert_int_equal(world_last()->arg_count, 2);
    assert_int_equal(world_last()->arg_unknown, 0);
    assert_string_equal(world_last()->surface, "admin");
    assert_string_equal(world_last()->classification, "read");
    assert_string_equal(world_last()->trace, "trace");
    (void)world_refused(world_root(), "members__list",
                        json_pack("{s:s, s:i}", "query", "x", "a-secret-name", 5));
    assert_string_equal(world_last()->arg_names, "[\"query\"]");
    assert_int_equal(world_last()->arg_count, 2);
    assert_int_equal(world_last()->arg_unknown, 1);
}

static void a_change_is_begun_before_and_ended_after(void **state)
{
    int64_t before = world.seq;
    int64_t changed = world.changed;
    const char *id;

    (void)state;
    id = world_take(
        world_do(world_root(), "members__create", json_pack("{s:s}", "email", "rows@example.com")),
        "member");
    assert_int_equal(world.seq, before + 2);
    assert_int_equal(world.rows[before + 1].kind, PD_RECORD_BEGIN);
    assert_string_equal(world.rows[before + 1].outcome, "");
    assert_int_equal(world_last()->kind, PD_RECORD_END);
    assert_int_equal(world_last()->begin_seq, before + 1);
    assert_string_equal(world_last()->outcome, "ok");
    assert_non_null(strstr(world_last()->detail, id));
    assert_true(world.changed > changed);
    assert_int_equal(world_last()->revision, world.changed);
    assert_string_equal(world.audit, audit_text(before + 1));
    assert_string_equal(world.member_id, id);
    assert_string_equal(world.member_email, "rows@example.com");
}

static void a_refused_change_ends_its_attempt_and_changes_nothing(void **state)
{
    int64_t before;
    int64_t changed;
    int told;

    (void)state;
    world_done(world_root(), "members__create", json_pack("{s:s}", "email", "twice@example.com"));
    before = world.seq;
    changed = world.changed;
    told = world.members_told;
    assert_int_equal(world_refused(world_root(), "members__create",
                                   json_pack("{s:s}", "email", "Twice@example.com")),
                     MCP_CODE_CONFLICT);
    assert_int_equal(world.seq, before + 2);
    assert_string_equal(world_last()->outcome, "error");
    assert_string_equal(world_last()->code, "conflict");
    assert_int_equal(world_last()->begin_seq, before + 1);
    assert_int_equal(world.changed, changed);
    assert_int_equal(world.members_told, told);
}

typedef struct found {
    const char *audit_id;
    int64_t revision;
    int is_done;
} found_t;

static pd_status_t find_audit(pd_tx_t *tx, void *baton)
{
    found_t *found = baton;

    return pd_tx_audit_find(tx, found->audit_id, &found->revision);
}

static void on_found(pd_status_t status, int64_t revision, void *baton)
{
    (void)revision;
    assert_int_equal(status, PD_OK);
    ((found_t *)baton)->is_done = 1;
}

static void the_store_keeps_the_audit_id_beside_the_revision(void **state)
{
    found_t found = {NULL, 0, 0};

    (void)state;
    world_done(world_root(), "members__create", json_pack("{s:s}", "email", "beside@example.com"));
    found.audit_id = world.audit;
    assert_int_equal(pd_store_submit(world.core.store, PD_LANE_LOOP, pd_boot_in(30000), find_audit,
                                     on_found, &found),
                     PD_OK);
    world_wait(&found.is_done);
    assert_int_equal(found.revision, world.changed);
}

/* --- a trail that fails ---------------------------------------------------------- */

static void without_a_begin_nothing_is_done(void **state)
{
    int how;

    (void)state;
    for (how = 1; how <= 2; how++) {
        world.fail_begin = how;
        assert_int_equal(world_refused(world_root(), "members__create",
                                       json_pack("{s:s}", "email", "nobegin@example.com")),
                         MCP_CODE_POLICY_UNAVAILABLE);
        assert_string_equal(world.audit, "");
        world.fail_begin = 0;
        assert_false(is_created("nobegin@example.com"));
    }
}

static void a_change_without_an_end_says_that_it_may_have_happened(void **state)
{
    static const char *const emails[] = {"noend1@example.com", "noend2@example.com"};
    int how;

    (void)state;
    for (how = 1; how <= 2; how++) {
        world.fail_end = how;
        assert_int_equal(world_refused(world_root(), "members__create",
                                       json_pack("{s:s}", "email", emails[how - 1])),
                         MCP_CODE_OUTCOME_UNRECORDED);
        assert_true(world.audit[0] != '\0');
        world.fail_end = 0;
        assert_true(is_created(emails[how - 1]));
    }
}

static void a_refusal_without_an_end_does_not_claim_a_change(void **state)
{
    (void)state;
    world.fail_end = 1;
    assert_int_equal(
        world_refused(world_root(), "members__create", json_pack("{s:s}", "email", "no-email")),
        MCP_CODE_POLICY_UNAVAILABLE);
    world.fail_end = 0;
}

static void what_can_not_be_recorded_is_not_read(void **state)
{
    int how;

    (void)state;
    for (how = 1; how <= 2; how++) {
        world.fail_end = how;
        assert_int_equal(world_refused(world_root(), "members__list", json_object()),
                         MCP_CODE_POLICY_UNAVAILABLE);
        assert_int_equal(world_refused(world_root(), "whoami__get", json_object()),
                         MCP_CODE_POLICY_UNAVAILABLE);
        world.fail_end = 0;
    }
}

/* --- time ------------------------------------------------------------------------ */

static void a_deadline_that_passed_runs_nothing(void **state)
{
    static const char *const names[] = {"members__list", "members__create", "members__get"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_t *args = i == 0   ? json_object()
                       : i == 1 ? json_pack("{s:s}", "email", "late@example.com")
                                : json_pack("{s:s}", "member", "late@example.com");
        world_call_t made = {NULL, 0, NULL, args};

        assert_int_equal(apr_pool_create(&made.pool, world.pool), APR_SUCCESS);
        assert_int_equal(pd_invoke(&world.core, pd_ops_find(names[i]), world_root(), args, NULL,
                                   (pd_boot_t){pd_boot_now().us - 1}, made.pool, world_on_done,
                                   &made),
                         PD_OK);
        world_wait(&made.is_done);
        assert_int_equal(world.code, MCP_CODE_OVERLOADED);
        assert_string_equal(world_last()->outcome, "denied");
    }
    assert_false(is_created("late@example.com"));
}

static void a_right_taken_away_in_between_changes_nothing_any_more(void **state)
{
    const pd_actor_t *admin =
        world_member("between@example.com", "Admin", "mcp:destructive", MCP_SURFACE_REST);
    const pd_actor_t *other =
        world_member("between2@example.com", "Admin", "mcp:destructive", MCP_SURFACE_REST);
    const pd_actor_t *third =
        world_member("between3@example.com", "Admin", "mcp:destructive", MCP_SURFACE_REST);

    (void)state;
    world_done(admin, "members__create", json_pack("{s:s}", "email", "before@example.com"));
    world_done(world_root(), "members__update",
               json_pack("{s:s, s:[s]}", "member", "between@example.com", "roles", "Member"));
    assert_int_equal(
        world_refused(admin, "members__create", json_pack("{s:s}", "email", "after@example.com")),
        MCP_CODE_PERMISSION_DENIED);
    world_done(world_root(), "grants__revoke", json_pack("{s:s}", "grant", other->grant_id));
    assert_int_equal(
        world_refused(other, "members__create", json_pack("{s:s}", "email", "after@example.com")),
        MCP_CODE_GRANT_REVOKED);
    world_done(world_root(), "members__suspend",
               json_pack("{s:s}", "member", "between3@example.com"));
    assert_int_equal(
        world_refused(third, "members__create", json_pack("{s:s}", "email", "after@example.com")),
        MCP_CODE_MEMBER_SUSPENDED);
    assert_string_equal(world_last()->outcome, "denied");
    assert_false(is_created("after@example.com"));
}

/* --- op.invoke ------------------------------------------------------------------- */

static void ask(const char *token, const char *surface, const char *op, json_t *args)
{
    char hash[MCP_DIGEST_HEX + 1];
    pd_ask_t question = {&world.core, NULL, MCP_KIND_OP_INVOKE, NULL, pd_boot_in(30000), NULL};

    mcp_token_hash(token, strlen(token), hash);
    assert_int_equal(apr_pool_create(&question.pool, world.pool), APR_SUCCESS);
    question.body = json_pack("{s:s, s:s, s:s, s:{s:s, s:s}, s:s, s:o, s:s}", "token_hash", hash,
                              "surface", surface, "resource", WORLD_RESOURCE, "client", "name",
                              "agent", "version", "1", "op", op, "args", args, "trace_id", "t1");
    assert_non_null(question.body);
    world.is_answered = 0;
    world.refused = MCP_CODE_NONE;
    pd_on_op_invoke(&question);
    world_wait(&world.is_answered);
    assert_int_equal(world.is_answered, 1);
}

static const char *token_for(const char *email, const char *role, const char **ret_grant)
{
    json_t *grant;

    world_done(world_root(), "members__create",
               json_pack("{s:s, s:[s]}", "email", email, "roles", role));
    grant = world_do(world_root(), "grants__create",
                     json_pack("{s:s, s:s, s:s, s:[s]}", "member", email, "client", "test",
                               "resource", WORLD_RESOURCE, "scopes", "mcp:read"));
    *ret_grant = apr_pstrdup(world.scratch, mcp_json_str(grant, "grant"));
    return world_take(grant, "token");
}

static void a_question_over_the_link_runs_as_the_tokens_member(void **state)
{
    const char *grant = NULL;
    const char *token = token_for("link@example.com", "Member", &grant);
    const json_t *result;

    (void)state;
    ask(token, "mcp", "whoami__get", json_object());
    assert_int_equal(world.refused, MCP_CODE_NONE);
    result = json_object_get(world.reply, "result");
    assert_string_equal(mcp_json_str(result, "email"), "link@example.com");
    assert_string_equal(mcp_json_str(result, "grant"), grant);
    assert_string_equal(mcp_json_str(result, "client"), "agent/1");
    assert_string_equal(mcp_json_str(world.reply, "audit"), audit_text(world.seq));
    assert_string_equal(world_last()->grant, grant);
    assert_string_equal(world_last()->surface, "mcp");
    assert_string_equal(world_last()->trace, "t1");
    ask(token, "mcp", "members__list", json_object());
    assert_int_equal(world.refused, MCP_CODE_PERMISSION_DENIED);
    assert_string_equal(world.refused_permission, "member:read");
    assert_int_equal(world.refused_scopes, 0);
    assert_true(world.refusal_audit[0] != '\0');
}

static void a_missing_scope_is_named_to_the_asker(void **state)
{
    const char *grant = NULL;
    const char *token = token_for("scope@example.com", "Owner", &grant);

    (void)state;
    ask(token, "rest", "members__create", json_pack("{s:s}", "email", "new@example.com"));
    assert_int_equal(world.refused, MCP_CODE_INSUFFICIENT_SCOPE);
    assert_int_equal(world.refused_scopes, MCP_SCOPE_WRITE);
    assert_string_equal(world.refused_permission, "");
}

static void an_operation_that_nobody_has_leaves_a_row_without_its_odd_name(void **state)
{
    const char *grant = NULL;
    const char *token = token_for("odd@example.com", "Member", &grant);
    int64_t before = world.seq;

    (void)state;
    ask(token, "mcp", "members__explode", json_object());
    assert_int_equal(world.refused, MCP_CODE_UNKNOWN_TOOL);
    assert_string_equal(world_last()->operation, "members__explode");
    assert_string_equal(world_last()->code, "unknown_tool");
    ask(token, "mcp", "my password is hunter2\n", json_pack("{s:s}", "secret", "x"));
    assert_int_equal(world.refused, MCP_CODE_UNKNOWN_TOOL);
    assert_int_equal(strncmp(world_last()->operation, "#23:", 4), 0);
    assert_string_equal(world_last()->arg_names, "[]");
    assert_int_equal(world_last()->arg_unknown, 1);
    assert_int_equal(world.seq, before + 2);
}

static void a_grant_that_no_longer_stands_is_denied_and_recorded(void **state)
{
    const char *grant = NULL;
    const char *token = token_for("gone@example.com", "Member", &grant);
    int64_t before;

    (void)state;
    world_done(world_root(), "grants__revoke", json_pack("{s:s}", "grant", grant));
    before = world.seq;
    ask(token, "rest", "whoami__get", json_object());
    assert_int_equal(world.refused, MCP_CODE_GRANT_REVOKED);
    assert_int_equal(world.seq, before + 1);
    assert_string_equal(world_last()->grant, grant);
    assert_string_equal(world_last()->code, "grant_revoked");
    token = token_for("gone2@example.com", "Member", &grant);
    world_done(world_root(), "members__remove", json_pack("{s:s}", "member", "gone2@example.com"));
    ask(token, "rest", "whoami__get", json_object());
    assert_int_equal(world.refused, MCP_CODE_MEMBER_SUSPENDED);
    assert_string_equal(world_last()->code, "member_suspended");
}

static void an_unknown_token_leaves_no_row(void **state)
{
    int64_t before = world.seq;

    (void)state;
    ask("mcp_nobody", "mcp", "whoami__get", json_object());
    assert_int_equal(world.refused, MCP_CODE_INVALID_TOKEN);
    assert_string_equal(world.refusal_audit, "");
    assert_int_equal(world.seq, before);
}

static void the_link_never_speaks_for_the_admin_door(void **state)
{
    static const char *const surfaces[] = {"admin", "oauth", "", "MCP"};
    const char *grant = NULL;
    const char *token = token_for("noadmin@example.com", "Owner", &grant);
    int64_t before = world.seq;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(surfaces) / sizeof(surfaces[0]); i++) {
        ask(token, surfaces[i], "whoami__get", json_object());
        assert_int_equal(world.refused, MCP_CODE_MALFORMED);
    }
    assert_int_equal(world.seq, before);
}

/* --- dry runs -------------------------------------------------------------------- */

typedef struct begun {
    mcp_code_t code;
    int is_done;
} begun_t;

static void on_begun(const pd_op_call_t *call, const char *audit_id, void *baton)
{
    begun_t *begun = baton;

    (void)audit_id;
    begun->code = call->fault.code;
    begun->is_done = 1;
}

static void begin_role(const char *name, int is_dry, begun_t *ret)
{
    json_t *args = json_pack("{s:s, s:[], s:b}", "name", name, "permissions", "dry_run", is_dry);

    assert_int_equal(pd_invoke(&world.core, pd_ops_find("roles__create"), world_root(), args, NULL,
                               pd_boot_in(30000), world.scratch, on_begun, ret),
                     PD_OK);
    world_wait(&ret->is_done);
    json_decref(args);
}

static void one_dry_run_is_made_at_a_time(void **state)
{
    json_t *args = json_pack("{s:s, s:[], s:b}", "name", "Dry", "permissions", "dry_run", 1);
    begun_t first = {MCP_CODE_NONE, 0};
    begun_t second = {MCP_CODE_NONE, 0};
    begun_t real = {MCP_CODE_NONE, 0};
    begun_t third = {MCP_CODE_INTERNAL, 0};

    (void)state;
    assert_int_equal(pd_invoke(&world.core, pd_ops_find("roles__create"), world_root(), args, NULL,
                               pd_boot_in(30000), world.scratch, on_begun, &first),
                     PD_OK);
    assert_false(first.is_done);
    begin_role("Dry", 1, &second);
    assert_int_equal(second.code, MCP_CODE_OVERLOADED);
    begin_role("Wet", 0, &real); /* a change waits its turn as ever */
    assert_int_equal(real.code, MCP_CODE_NONE);
    world_wait(&first.is_done);
    assert_int_equal(first.code, MCP_CODE_NONE);
    begin_role("Dry", 1, &third);
    assert_int_equal(third.code, MCP_CODE_NONE);
    json_decref(args);
    world_done(world_root(), "roles__delete", json_pack("{s:s}", "role", "Wet"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_asks_its_permission_first_and_leaves_one_denied_row),
        cmocka_unit_test(every_operation_with_its_permission_gets_as_far_as_its_schema),
        cmocka_unit_test(the_mcp_door_asks_tool_execute_before_everything),
        cmocka_unit_test(one_dry_run_is_made_at_a_time),
        cmocka_unit_test(secrets_never_pass_the_mcp_door),
        cmocka_unit_test(the_class_needs_its_rung_at_mcp_and_rest_alone),
        cmocka_unit_test(arguments_above_the_limit_are_refused),
        cmocka_unit_test(a_schema_error_names_place_and_rule_and_no_value),
        cmocka_unit_test(a_read_leaves_one_row_with_known_names_and_counts_the_rest),
        cmocka_unit_test(a_change_is_begun_before_and_ended_after),
        cmocka_unit_test(a_refused_change_ends_its_attempt_and_changes_nothing),
        cmocka_unit_test(the_store_keeps_the_audit_id_beside_the_revision),
        cmocka_unit_test(without_a_begin_nothing_is_done),
        cmocka_unit_test(a_change_without_an_end_says_that_it_may_have_happened),
        cmocka_unit_test(a_refusal_without_an_end_does_not_claim_a_change),
        cmocka_unit_test(what_can_not_be_recorded_is_not_read),
        cmocka_unit_test(a_deadline_that_passed_runs_nothing),
        cmocka_unit_test(a_right_taken_away_in_between_changes_nothing_any_more),
        cmocka_unit_test(a_question_over_the_link_runs_as_the_tokens_member),
        cmocka_unit_test(a_missing_scope_is_named_to_the_asker),
        cmocka_unit_test(an_operation_that_nobody_has_leaves_a_row_without_its_odd_name),
        cmocka_unit_test(a_grant_that_no_longer_stands_is_denied_and_recorded),
        cmocka_unit_test(an_unknown_token_leaves_no_row),
        cmocka_unit_test(the_link_never_speaks_for_the_admin_door),
    };

    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
