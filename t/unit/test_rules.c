/* Restrictions compiled and applied: what each sentence about them means, as a question and its
 * answer. */
#include "rules_fixture.h"

#include <time.h>

#define ALLOW_NOTHING "{'effect':'allow','target':{'role':'Member'},'items':[]}"
#define ALLOW_CRM "{'effect':'allow','target':{'role':'Member'},'items':[{'connector':'crm'}]}"
#define ALLOW_CRM_READ                                                                             \
    "{'effect':'allow','target':{'role':'Member'},'items':[{'connector':'crm','operation':'read'}" \
    "]}"
#define BLOCK_CRM "{'effect':'block','target':{'role':'Member'},'items':[{'connector':'crm'}]}"
#define BLOCK_CRM_READ                                                                             \
    "{'effect':'block','target':{'role':'Member'},'items':[{'connector':'crm','operation':'read'}" \
    "]}"

static void assert_rule(const char *id, pd_item_t item)
{
    assert_string_equal(last_rule, id);
    assert_int_equal(last_item, item);
}

/* --- rules -------------------------------------------------------------------------------- */

static void no_rule_at_all_allows_everything(void **state)
{
    (void)state;
    assert_int_equal(
        ask((const char *const[]){NULL}, "mem_a", "Member", "crm", "read", "crm__read"),
        PD_VERDICT_ALLOWED);
    assert_int_equal(last_governed, PD_GOVERNED_FREE);
    assert_rule("", PD_ITEM_NONE);
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", "crm__read",
                         "{'effect':'allow','target':{'role':'Admin'},'items':[]}",
                         "{'effect':'allow','target':{'member':'mem_b'},'items':[]}"),
                     PD_VERDICT_ALLOWED); /* rules of others are no rules of his */
    assert_int_equal(last_governed, PD_GOVERNED_FREE);
}

static void a_target_is_a_role_or_one_user_and_nothing_else(void **state)
{
    static const char *const targets[] = {"{}",
                                          "{'role':''}",
                                          "{'member':''}",
                                          "{'role':'A','member':'m'}",
                                          "{'role':1}",
                                          "{'role':['A']}",
                                          "{'org':true}",
                                          "{'role':'A','org':true}",
                                          "'role'",
                                          "null",
                                          "[]",
                                          "{'role':'A\\u0000B'}",
                                          "{'role':null}"};
    pd_rule_t *made = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(targets); i++) {
        json_t *doc =
            json(apr_psprintf(pool, "{'effect':'block','target':%s,'items':[]}", targets[i]));

        if (pd_rule_make("rul_1", doc, &made) != PD_E_INVALID) {
            fail_msg("taken: %s", targets[i]);
        }
        json_decref(doc);
    }
    assert_null(made);
    made = rule("rul_1", "{'effect':'block','target':{'role':'A'},'items':[]}");
    assert_string_equal(made->role, "A");
    assert_null(made->member);
    pd_rule_release(&made);
    made = rule("rul_1", "{'effect':'block','target':{'member':'mem_a'},'items':[]}");
    assert_string_equal(made->member, "mem_a");
    assert_null(made->role);
    pd_rule_release(&made);
    assert_null(made);
}

/* A target called like one of everything is a name like any other. */
static void there_is_no_organisation_wide_rule(void **state)
{
    static const char *const names[] = {"*", "all", "everyone", "organisation", " "};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++) {
        const char *doc = apr_psprintf(
            pool, "{'effect':'block','target':{'role':'%s'},'items':[{'connector':'crm'}]}",
            names[i]);

        assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, doc), PD_VERDICT_ALLOWED);
        assert_int_equal(ASK("mem_a", names[i], "crm", "read", NULL, doc), PD_VERDICT_BLOCKED);
    }
}

static void an_effect_is_allow_or_block(void **state)
{
    static const char *const effects[] = {"'deny'", "''",   "'ALLOW'",       "1",
                                          "true",   "null", "'allow\\u0000'"};
    pd_rule_t *made = NULL;
    json_t *doc;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(effects); i++) {
        doc =
            json(apr_psprintf(pool, "{'effect':%s,'target':{'role':'A'},'items':[]}", effects[i]));
        assert_int_equal(pd_rule_make("rul_1", doc, &made), PD_E_INVALID);
        json_decref(doc);
    }
    doc = json("{'target':{'role':'A'},'items':[]}");
    assert_int_equal(pd_rule_make("rul_1", doc, &made), PD_E_INVALID);
    json_decref(doc);
    assert_null(made);
}

static void an_item_of_an_unknown_form_refuses_the_rule(void **state)
{
    static const char *const items[] = {
        "{}",
        "'crm'",
        "null",
        "1",
        "[]",
        "{'connector':1}",
        "{'connector':''}",
        "{'operation':'read'}",
        "{'connector':'crm','operation':1}",
        "{'connector':'crm','operation':''}",
        "{'connector':'crm','operation':null}",
        "{'connector':'crm','class':'read'}",
        "{'connector':'crm','operation':'read','account':'a'}",
        "{'connector':'crm','slug':1}",
        "{'tool':'crm__read'}",
        "{'tool':'crm__read','pins':{}}",
        "{'tool':'','pins':[]}",
        "{'tool':1,'pins':[]}",
        "{'tool':'crm__read','pins':[{'connector':'crm'}]}",
        "{'tool':'crm__read','pins':['read']}",
        "{'tool':'crm__read','connector':'crm','pins':[]}",
        "{'tool':'crm__read','pins':[{'connector':'crm','operation':'read','x':1}]}",
        "{'tool':'crm__read','pins':[],'connector':'crm','operation':'read'}",
        "{'connector':'crm\\u0000x'}",
        "{'connector':'crm','operation':'a\\u0000b'}",
        "{'tool':'a\\u0000b','pins':[]}",
        "{'pins':[]}",
        "{'connector':'crm','pins':[]}"};
    static const char *const effects[] = {"allow", "block"};
    pd_rule_t *made = NULL;
    size_t i;
    size_t k;

    (void)state;
    for (i = 0; i < COUNT(items); i++) {
        for (k = 0; k < COUNT(effects); k++) {
            json_t *doc = json(apr_psprintf(
                pool, "{'effect':'%s','target':{'role':'A'},'items':[{'connector':'ok'},%s]}",
                effects[k], items[i]));

            if (pd_rule_make("rul_1", doc, &made) != PD_E_INVALID) {
                fail_msg("taken: %s", items[i]);
            }
            json_decref(doc);
        }
    }
    assert_null(made);
}

static void items_are_an_array_of_bounded_length(void **state)
{
    static const char *const items[] = {"{}", "null", "'crm'", "1"};
    json_t *doc;
    json_t *many = json_array();
    pd_rule_t *made = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(items); i++) {
        doc = json(
            apr_psprintf(pool, "{'effect':'allow','target':{'role':'A'},'items':%s}", items[i]));
        assert_int_equal(pd_rule_make("rul_1", doc, &made), PD_E_INVALID);
        json_decref(doc);
    }
    doc = json(
        "{'effect':'allow','target':{'role':'A'}}"); /* no items is not the same as none given */
    assert_int_equal(pd_rule_make("rul_1", doc, &made), PD_E_INVALID);
    for (i = 0; i < PD_MAX_ITEMS; i++) {
        json_array_append_new(many, json_pack("{s:s,s:s}", "connector", "crm", "operation",
                                              apr_psprintf(pool, "op%d", (int)(i % 7))));
    }
    json_object_set_new(doc, "items", many);
    assert_int_equal(pd_rule_make("rul_1", doc, &made), PD_OK);
    assert_int_equal(((pd_rule_part_t *)apr_hash_get(made->parts, "crm", APR_HASH_KEY_STRING))
                         ->operations->nelts,
                     7); /* each once */
    pd_rule_release(&made);
    json_array_append_new(many, json_pack("{s:s}", "connector", "crm"));
    assert_int_equal(pd_rule_make("rul_1", doc, &made), PD_E_INVALID);
    json_decref(doc);
    assert_null(made);
}

static void other_members_of_the_document_are_ignored(void **state)
{
    (void)state;
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL,
                         "{'effect':'block','note':'x','revision':7,'created':{'by':'m'},'target':{"
                         "'role':'Member'},"
                         "'items':[{'connector':'crm','slug':'crm-app'}],'id':'other'}"),
                     PD_VERDICT_BLOCKED);
    assert_rule("rul_0", PD_ITEM_CONNECTOR);
}

static void items_are_whole_connectors_or_single_operations(void **state)
{
    static const struct {
        const char *doc;
        const char *connector;
        const char *operation;
        pd_verdict_t expected;
    } cases[] = {
        {ALLOW_CRM, "crm", "read", PD_VERDICT_ALLOWED},
        {ALLOW_CRM, "crm", "write", PD_VERDICT_ALLOWED},
        {ALLOW_CRM, "crm2", "read", PD_VERDICT_NOT_ALLOWED},
        {ALLOW_CRM_READ, "crm", "read", PD_VERDICT_ALLOWED},
        {ALLOW_CRM_READ, "crm", "write", PD_VERDICT_NOT_ALLOWED},
        {ALLOW_CRM_READ, "crm", "rea", PD_VERDICT_NOT_ALLOWED},
        {ALLOW_CRM_READ, "crm", "read2", PD_VERDICT_NOT_ALLOWED},
        {ALLOW_CRM_READ, "crm", "READ", PD_VERDICT_NOT_ALLOWED},
        {ALLOW_CRM_READ, "wiki", "read", PD_VERDICT_NOT_ALLOWED},
        {BLOCK_CRM, "crm", "read", PD_VERDICT_BLOCKED},
        {BLOCK_CRM, "crm", "write", PD_VERDICT_BLOCKED},
        {BLOCK_CRM, "wiki", "read", PD_VERDICT_ALLOWED},
        {BLOCK_CRM_READ, "crm", "read", PD_VERDICT_BLOCKED},
        {BLOCK_CRM_READ, "crm", "write", PD_VERDICT_ALLOWED},
        {BLOCK_CRM_READ, "wiki", "read", PD_VERDICT_ALLOWED},
        /* the connector by itself: only what is said of all of it counts */
        {ALLOW_CRM, "crm", NULL, PD_VERDICT_ALLOWED},
        {ALLOW_CRM_READ, "crm", NULL, PD_VERDICT_NOT_ALLOWED},
        {BLOCK_CRM, "crm", NULL, PD_VERDICT_BLOCKED},
        {BLOCK_CRM_READ, "crm", NULL, PD_VERDICT_ALLOWED},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        assert_int_equal(
            ASK("mem_a", "Member", cases[i].connector, cases[i].operation, NULL, cases[i].doc),
            cases[i].expected);
    }
}

/* --- layers --------------------------------------------------------------------------------- */

#define USER_BLOCK_WIKI                                                                            \
    "{'effect':'block','target':{'member':'mem_a'},'items':[{'connector':'wiki'}]}"
#define USER_ALLOW_WIKI                                                                            \
    "{'effect':'allow','target':{'member':'mem_a'},'items':[{'connector':'wiki'}]}"
#define USER_BLOCK_NONE "{'effect':'block','target':{'member':'mem_a'},'items':[]}"

static void user_rules_replace_the_roles_rules(void **state)
{
    (void)state;
    /* the role blocks crm and the user's rules do not: crm is open to him */
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, BLOCK_CRM, USER_BLOCK_WIKI),
                     PD_VERDICT_ALLOWED);
    assert_int_equal(last_governed, PD_GOVERNED_BY_USER);
    assert_int_equal(ASK("mem_a", "Member", "wiki", "read", NULL, BLOCK_CRM, USER_BLOCK_WIKI),
                     PD_VERDICT_BLOCKED);
    /* the role's allowlist is not his */
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, ALLOW_NOTHING, USER_BLOCK_WIKI),
                     PD_VERDICT_ALLOWED);
    /* nor is what it allows */
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, ALLOW_CRM, USER_ALLOW_WIKI),
                     PD_VERDICT_NOT_ALLOWED);
    /* others of the role stay under it */
    assert_int_equal(ASK("mem_b", "Member", "crm", "read", NULL, BLOCK_CRM, USER_BLOCK_WIKI),
                     PD_VERDICT_BLOCKED);
    assert_int_equal(last_governed, PD_GOVERNED_BY_ROLES);
}

static void any_user_rule_replaces_them_an_empty_one_too(void **state)
{
    (void)state;
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, BLOCK_CRM, USER_BLOCK_NONE),
                     PD_VERDICT_ALLOWED);
    assert_int_equal(last_governed, PD_GOVERNED_BY_USER);
}

static void otherwise_the_rules_of_all_roles_hold(void **state)
{
    static const char block_a[] =
        "{'effect':'block','target':{'role':'A'},'items':[{'connector':'crm'}]}";
    static const char block_b[] =
        "{'effect':'block','target':{'role':'B'},'items':[{'connector':'wiki'}]}";
    static const char allow_a[] =
        "{'effect':'allow','target':{'role':'A'},'items':[{'connector':'crm','operation':'read'}]}";
    static const char allow_b[] = "{'effect':'allow','target':{'role':'B'},'items':[{'connector':'"
                                  "crm','operation':'write'}]}";
    static const struct {
        const char *docs[3];
        const char *roles;
        const char *connector;
        const char *operation;
        pd_verdict_t expected;
    } cases[] = {
        {{block_a, block_b}, "A,B", "crm", "read", PD_VERDICT_BLOCKED},
        {{block_a, block_b}, "A,B", "wiki", "read", PD_VERDICT_BLOCKED},
        {{block_a, block_b}, "B", "crm", "read", PD_VERDICT_ALLOWED},
        {{block_a, block_b}, "C,B,D", "wiki", "read", PD_VERDICT_BLOCKED},
        {{block_a, block_b}, "C", "wiki", "read", PD_VERDICT_ALLOWED},
        {{block_a, block_b}, "", "wiki", "read", PD_VERDICT_ALLOWED},
        {{allow_a, allow_b}, "A,B", "crm", "read", PD_VERDICT_ALLOWED},
        {{allow_a, allow_b}, "B,A", "crm", "write", PD_VERDICT_ALLOWED},
        {{allow_a, allow_b}, "A", "crm", "write", PD_VERDICT_NOT_ALLOWED},
        {{allow_a, allow_b}, "A,B", "crm", "other", PD_VERDICT_NOT_ALLOWED},
        /* one role's allowlist engages for the member, whatever the other role leaves open */
        {{allow_a, block_b}, "A,B", "crm", "write", PD_VERDICT_NOT_ALLOWED},
        {{allow_a, block_b}, "A,C", "mail", "send", PD_VERDICT_NOT_ALLOWED},
        {{allow_a, block_a}, "A,A", "crm", "read", PD_VERDICT_BLOCKED},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        pd_verdict_t verdict = ask(cases[i].docs, "mem_a", cases[i].roles, cases[i].connector,
                                   cases[i].operation, NULL);

        if (verdict != cases[i].expected) {
            fail_msg("case %d: %s", (int)i, pd_verdict_text(verdict));
        }
    }
}

static void an_admin_peer_that_is_no_member_has_no_rules(void **state)
{
    (void)state;
    assert_int_equal(
        ASK(NULL, "Member", "crm", "read", NULL, BLOCK_CRM, ALLOW_NOTHING, "?role:Member"),
        PD_VERDICT_ALLOWED);
    assert_int_equal(last_governed, PD_GOVERNED_FREE);
}

/* --- what governs, taken together ------------------------------------------------------------- */

static void allows_unite(void **state)
{
    static const char wiki[] =
        "{'effect':'allow','target':{'role':'Member'},'items':[{'connector':'wiki'}]}";

    (void)state;
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, ALLOW_CRM_READ, wiki),
                     PD_VERDICT_ALLOWED);
    assert_int_equal(ASK("mem_a", "Member", "wiki", "x", NULL, ALLOW_CRM_READ, wiki),
                     PD_VERDICT_ALLOWED);
    assert_int_equal(ASK("mem_a", "Member", "crm", "x", NULL, ALLOW_CRM_READ, wiki),
                     PD_VERDICT_NOT_ALLOWED);
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, ALLOW_NOTHING, ALLOW_CRM_READ),
                     PD_VERDICT_ALLOWED);
}

static void blocks_unite(void **state)
{
    static const char wiki[] =
        "{'effect':'block','target':{'role':'Member'},'items':[{'connector':'wiki'}]}";

    (void)state;
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, BLOCK_CRM_READ, wiki),
                     PD_VERDICT_BLOCKED);
    assert_int_equal(ASK("mem_a", "Member", "wiki", "x", NULL, BLOCK_CRM_READ, wiki),
                     PD_VERDICT_BLOCKED);
    assert_int_equal(ASK("mem_a", "Member", "crm", "x", NULL, BLOCK_CRM_READ, wiki),
                     PD_VERDICT_ALLOWED);
}

/* Every way to block against every way to allow, in both orders of their ids. */
static void blocks_beat_allows(void **state)
{
    static const char *const allows[] = {
        ALLOW_CRM, ALLOW_CRM_READ,
        "{'effect':'allow','target':{'role':'Other'},'items':[{'connector':'crm'}]}",
        "{'effect':'allow','target':{'role':'Member'},'items':[{'tool':'acc__read','pins':[{'"
        "connector':'crm',"
        "'operation':'read'}]}]}"};
    static const char *const blocks[] = {
        BLOCK_CRM,
        BLOCK_CRM_READ,
        "{'effect':'block','target':{'role':'Other'},'items':[{'connector':'crm'}]}",
        "{'effect':'block','target':{'role':'Other'},'items':[{'connector':'crm','operation':'read'"
        "}]}",
        "{'effect':'block','target':{'role':'Member'},'items':[{'tool':'acc__read','pins':[]}]}",
        "{'effect':'block','target':{'role':'Member'},'items':[{'tool':'gone__x','pins':[{'"
        "connector':'crm',"
        "'operation':'read'}]}]}"};
    size_t i;
    size_t k;

    (void)state;
    for (i = 0; i < COUNT(allows); i++) {
        for (k = 0; k < COUNT(blocks); k++) {
            assert_int_equal(
                ASK("mem_a", "Member,Other", "crm", "read", "acc__read", allows[i], blocks[k]),
                PD_VERDICT_BLOCKED);
            assert_string_equal(last_rule, "rul_1");
            assert_int_equal(
                ASK("mem_a", "Member,Other", "crm", "read", "acc__read", blocks[k], allows[i]),
                PD_VERDICT_BLOCKED);
            assert_string_equal(last_rule, "rul_0");
            assert_int_equal(ASK("mem_a", "Member,Other", "crm", "read", "acc__read", allows[i]),
                             PD_VERDICT_ALLOWED);
        }
    }
}

static void an_allow_rule_with_no_items_denies_everything(void **state)
{
    (void)state;
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", "crm__read", ALLOW_NOTHING),
                     PD_VERDICT_NOT_ALLOWED);
    assert_rule("", PD_ITEM_NONE);
    assert_int_equal(ASK("mem_a", "Member", "crm", NULL, NULL, ALLOW_NOTHING),
                     PD_VERDICT_NOT_ALLOWED);
    assert_int_equal(ASK("mem_a", "Admin,Member", "wiki", "x", NULL, ALLOW_NOTHING),
                     PD_VERDICT_NOT_ALLOWED);
    assert_int_equal(ASK("mem_a", "Admin", "wiki", "x", NULL,
                         "{'effect':'allow','target':{'member':'mem_a'},'items':[]}"),
                     PD_VERDICT_NOT_ALLOWED);
}

static void a_block_rule_with_no_items_takes_nothing_away(void **state)
{
    (void)state;
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", "crm__read",
                         "{'effect':'block','target':{'role':'Member'},'items':[]}"),
                     PD_VERDICT_ALLOWED);
    assert_int_equal(last_governed, PD_GOVERNED_BY_ROLES);
}

static void a_rule_whose_items_vanished_from_the_catalog_goes_on_denying(void **state)
{
    static const char gone[] =
        "{'effect':'allow','target':{'role':'Member'},'empty':true,'items':[{'connector':"
        "'gone'},{'connector':'crm','operation':'gone'}]}";

    (void)state;
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", NULL, gone), PD_VERDICT_NOT_ALLOWED);
    assert_int_equal(ASK("mem_a", "Member", "wiki", "x", NULL, gone), PD_VERDICT_NOT_ALLOWED);
}

/* --- names ------------------------------------------------------------------------------------ */

#define PINNED(effect, name)                                                                       \
    "{'effect':'" effect "','target':{'role':'Member'},'items':[{'tool':'" name                    \
    "','pins':[{'connector':'crm','operation':'read'},{'connector':'wiki','operation':'read'}]}]}"

static void a_block_matches_the_advertised_name_or_the_pinned_operation(void **state)
{
    static const struct {
        const char *connector;
        const char *operation;
        const char *name;
        pd_verdict_t expected;
        pd_item_t item;
    } cases[] = {
        {"crm", "read", "acc__read", PD_VERDICT_BLOCKED, PD_ITEM_OPERATION}, /* both */
        {"crm", "read", "renamed__read", PD_VERDICT_BLOCKED, PD_ITEM_OPERATION},
        {"wiki", "read", "box__entry", PD_VERDICT_BLOCKED, PD_ITEM_OPERATION},
        {"crm", "read", NULL, PD_VERDICT_BLOCKED, PD_ITEM_OPERATION},
        {"mail", "send", "acc__read", PD_VERDICT_BLOCKED, PD_ITEM_NAME},
        {"crm", "write", "acc__read", PD_VERDICT_BLOCKED, PD_ITEM_NAME},
        {"crm", "write", "acc__write", PD_VERDICT_ALLOWED, PD_ITEM_NONE},
        {"mail", "send", "acc__rea", PD_VERDICT_ALLOWED, PD_ITEM_NONE},
        {"mail", "send", "acc__read2", PD_VERDICT_ALLOWED, PD_ITEM_NONE},
        {"mail", "send", NULL, PD_VERDICT_ALLOWED, PD_ITEM_NONE},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        assert_int_equal(ASK("mem_a", "Member", cases[i].connector, cases[i].operation,
                             cases[i].name, PINNED("block", "acc__read")),
                         cases[i].expected);
        assert_rule(cases[i].item != PD_ITEM_NONE ? "rul_0" : "", cases[i].item);
    }
}

static void an_allow_matches_the_pinned_operation_only(void **state)
{
    (void)state;
    assert_int_equal(
        ASK("mem_a", "Member", "crm", "read", "acc__read", PINNED("allow", "acc__read")),
        PD_VERDICT_ALLOWED);
    assert_rule("rul_0", PD_ITEM_OPERATION);
    assert_int_equal(
        ASK("mem_a", "Member", "crm", "read", "other__name", PINNED("allow", "acc__read")),
        PD_VERDICT_ALLOWED);
    /* the name itself says nothing: whoever labels an account so gains nothing by it */
    assert_int_equal(
        ASK("mem_a", "Member", "mail", "send", "acc__read", PINNED("allow", "acc__read")),
        PD_VERDICT_NOT_ALLOWED);
    assert_int_equal(ASK("mem_a", "Member", "mail", "send", "acc__read",
                         "{'effect':'allow','target':{'role':'Member'},'items':[{'tool':'acc__read'"
                         ",'pins':[]}]}"),
                     PD_VERDICT_NOT_ALLOWED);
}

static void renaming_an_account_neither_escapes_a_block_nor_gains_an_allow(void **state)
{
    static const char *const names[] = {"acc__read", "new__read", "acc__write", "x__y", NULL};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++) {
        assert_int_equal(
            ASK("mem_a", "Member", "crm", "read", names[i], PINNED("block", "acc__read")),
            PD_VERDICT_BLOCKED);
        assert_int_equal(
            ASK("mem_a", "Member", "crm", "write", names[i], PINNED("allow", "acc__read")),
            PD_VERDICT_NOT_ALLOWED);
    }
}

static void a_name_that_matched_nothing_blocks_what_gets_it_later(void **state)
{
    static const char later[] =
        "{'effect':'block','target':{'role':'Member'},'items':[{'tool':'later__read','pins':[]}]}";

    (void)state;
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", "crm__read", later), PD_VERDICT_ALLOWED);
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", "later__read", later),
                     PD_VERDICT_BLOCKED);
    assert_rule("rul_0", PD_ITEM_NAME);
    /* also where the connector's own answer is one for all of it */
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", "later__read", ALLOW_CRM, later),
                     PD_VERDICT_BLOCKED);
    assert_int_equal(ASK("mem_a", "Member", "crm", "read", "later__read", ALLOW_NOTHING, later),
                     PD_VERDICT_BLOCKED);
}

/* --- rules that can't be read ----------------------------------------------------------------- */

static void rules_that_could_not_be_read_are_not_no_rules(void **state)
{
    static const struct {
        const char *docs[3];
        const char *member;
        const char *roles;
        pd_verdict_t expected;
        pd_governed_t governed;
    } cases[] = {
        {{"?role:Member"}, "mem_a", "Member", PD_VERDICT_UNREADABLE, PD_GOVERNED_UNREADABLE},
        {{"?role:Member", ALLOW_CRM},
         "mem_a",
         "Member",
         PD_VERDICT_UNREADABLE,
         PD_GOVERNED_UNREADABLE},
        {{"?role:Member", BLOCK_CRM},
         "mem_a",
         "Member",
         PD_VERDICT_UNREADABLE,
         PD_GOVERNED_UNREADABLE},
        {{"?role:B", ALLOW_CRM},
         "mem_a",
         "Member,B",
         PD_VERDICT_UNREADABLE,
         PD_GOVERNED_UNREADABLE},
        {{"?role:B", ALLOW_CRM}, "mem_a", "Member", PD_VERDICT_ALLOWED, PD_GOVERNED_BY_ROLES},
        {{"?role:B"}, "mem_a", "Member", PD_VERDICT_ALLOWED, PD_GOVERNED_FREE},
        {{"?member:mem_a", ALLOW_CRM},
         "mem_a",
         "Member",
         PD_VERDICT_UNREADABLE,
         PD_GOVERNED_UNREADABLE},
        {{"?member:mem_b", ALLOW_CRM}, "mem_a", "Member", PD_VERDICT_ALLOWED, PD_GOVERNED_BY_ROLES},
        /* his own rules can be read and replace the roles': those do not matter, readable or not */
        {{"?role:Member", USER_BLOCK_WIKI},
         "mem_a",
         "Member",
         PD_VERDICT_ALLOWED,
         PD_GOVERNED_BY_USER},
        {{"?member:mem_a", USER_BLOCK_WIKI},
         "mem_a",
         "",
         PD_VERDICT_UNREADABLE,
         PD_GOVERNED_UNREADABLE},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        pd_verdict_t verdict =
            ask(cases[i].docs, cases[i].member, cases[i].roles, "crm", "read", "crm__read");

        if (verdict != cases[i].expected || last_governed != cases[i].governed) {
            fail_msg("case %d: %s, %s", (int)i, pd_verdict_text(verdict),
                     pd_governed_text(last_governed));
        }
    }
}

static void a_layer_without_rules_is_one_that_could_not_be_read(void **state)
{
    apr_array_header_t *none = apr_array_make(pool, 1, sizeof(pd_rule_t *));
    pd_layer_t *layer = NULL;

    (void)state;
    assert_int_equal(pd_layer_make(none, 1, &layer), PD_E_INVALID);
    assert_null(layer);
    assert_int_equal(pd_layer_make(none, 0, &layer), PD_OK);
    assert_false(layer->is_readable);
    pd_layer_release(&layer);
}

static void a_target_has_a_bounded_number_of_rules(void **state)
{
    apr_array_header_t *rules = apr_array_make(pool, 16, sizeof(pd_rule_t *));
    pd_rule_t *one = rule("rul_1", BLOCK_CRM);
    pd_layer_t *layer = NULL;
    int i;

    (void)state;
    for (i = 0; i < PD_MAX_RULES; i++) {
        APR_ARRAY_PUSH(rules, pd_rule_t *) = one;
    }
    assert_int_equal(pd_layer_make(rules, 1, &layer), PD_OK);
    pd_layer_release(&layer);
    APR_ARRAY_PUSH(rules, pd_rule_t *) = one;
    assert_int_equal(pd_layer_make(rules, 1, &layer), PD_E_INVALID);
    assert_int_equal(one->refs, 1);
    pd_rule_release(&one);
}

static void nothing_that_is_zero_means_allowed(void **state)
{
    pd_rules_t rules;
    pd_bearing_t bearing;
    pd_verdict_t verdict;

    (void)state;
    memset(&rules, 0, sizeof(rules));
    memset(&verdict, 0, sizeof(verdict));
    assert_int_equal(verdict, PD_VERDICT_UNREADABLE);
    memset(&bearing, 0, sizeof(bearing));
    bearing.rules = &rules;
    assert_int_equal(pd_rules_judge(&bearing, "read", "crm__read", NULL), PD_VERDICT_UNREADABLE);
}

static void a_layer_keeps_its_rules_alive(void **state)
{
    apr_array_header_t *rules = apr_array_make(pool, 1, sizeof(pd_rule_t *));
    pd_rule_t *one = rule("rul_1", BLOCK_CRM);
    pd_layer_t *layer = NULL;
    pd_layer_t *again;

    (void)state;
    APR_ARRAY_PUSH(rules, pd_rule_t *) = one;
    assert_int_equal(pd_layer_make(rules, 1, &layer), PD_OK);
    assert_int_equal(one->refs, 2);
    pd_rule_release(&one);
    pd_layer_retain(layer);
    again = layer;
    pd_layer_release(&layer);
    assert_null(layer);
    assert_string_equal(APR_ARRAY_IDX(again->rules, 0, pd_rule_t *)->id, "rul_1");
    pd_layer_release(&again);
    pd_layer_release(&again); /* none is fine */
    pd_rule_release(&one);
}

/* --- which rule decided ----------------------------------------------------------------------- */

static void the_deciding_rule_is_the_first_by_kind_and_then_by_id(void **state)
{
    static const char name[] =
        "{'effect':'block','target':{'role':'Member'},'items':[{'tool':'crm__read','pins':[]}]}";
    static const char other[] =
        "{'effect':'block','target':{'role':'Other'},'items':[{'tool':'crm__read','pins':[]}]}";
    static const char both[] = "{'effect':'allow','target':{'role':'Member'},'items':[{'connector':"
                               "'crm','operation':'read'},"
                               "{'connector':'crm'}]}";
    static const char other_allow[] =
        "{'effect':'allow','target':{'role':'Other'},'items':[{'connector':'crm'}]}";
    static const struct {
        const char *docs[5];
        const char *rule;
        pd_item_t item;
    } cases[] = {
        {{ALLOW_CRM_READ}, "rul_0", PD_ITEM_OPERATION},
        {{ALLOW_NOTHING, ALLOW_CRM_READ, ALLOW_CRM}, "rul_1", PD_ITEM_OPERATION},
        {{ALLOW_CRM, ALLOW_CRM_READ}, "rul_0", PD_ITEM_CONNECTOR},
        {{both}, "rul_0", PD_ITEM_CONNECTOR},
        {{other_allow, ALLOW_CRM_READ}, "rul_0", PD_ITEM_CONNECTOR}, /* over layers too */
        {{ALLOW_CRM_READ, other_allow}, "rul_0", PD_ITEM_OPERATION},
        {{name, BLOCK_CRM_READ, BLOCK_CRM, ALLOW_CRM}, "rul_2", PD_ITEM_CONNECTOR},
        {{name, BLOCK_CRM_READ, ALLOW_CRM}, "rul_1", PD_ITEM_OPERATION},
        {{BLOCK_CRM_READ, BLOCK_CRM_READ}, "rul_0", PD_ITEM_OPERATION},
        {{BLOCK_CRM, BLOCK_CRM}, "rul_0", PD_ITEM_CONNECTOR},
        {{name, name}, "rul_0", PD_ITEM_NAME},
        {{name, other}, "rul_0", PD_ITEM_NAME},
        {{other, name}, "rul_0", PD_ITEM_NAME},
        {{ALLOW_NOTHING, name}, "rul_1", PD_ITEM_NAME},
        {{"{'effect':'block','target':{'role':'Member'},'items':[]}"}, "", PD_ITEM_NONE},
    };
    size_t i;
    int k;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        for (k = 0; k < 2; k++) { /* whatever order the roles come in */
            (void)ask(cases[i].docs, "mem_a", k == 0 ? "Member,Other" : "Other,Member", "crm",
                      "read", "crm__read");
            assert_rule(cases[i].rule, cases[i].item);
        }
    }
}

static void every_answer_has_its_word(void **state)
{
    (void)state;
    assert_string_equal(pd_verdict_text(PD_VERDICT_UNREADABLE), "unreadable");
    assert_string_equal(pd_verdict_text(PD_VERDICT_ALLOWED), "allowed");
    assert_string_equal(pd_verdict_text(PD_VERDICT_NOT_ALLOWED), "not_allowed");
    assert_string_equal(pd_verdict_text(PD_VERDICT_BLOCKED), "blocked");
    assert_string_equal(pd_governed_text(PD_GOVERNED_UNREADABLE), "unreadable");
    assert_string_equal(pd_governed_text(PD_GOVERNED_FREE), "none");
    assert_string_equal(pd_governed_text(PD_GOVERNED_BY_ROLES), "roles");
    assert_string_equal(pd_governed_text(PD_GOVERNED_BY_USER), "user");
}

/* --- time ------------------------------------------------------------------------------------- */

#define ROLES 200
#define CONNECTORS 400
#define OPERATIONS 50 /* of each */
#define ITEMS 500     /* of each role */

static double now_us(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* fails for a bad id only */
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A role of 480 operations and connectors allowed and 20 operations and names blocked. */
static json_t *big_rule(int role, const char *effect, int count)
{
    json_t *items = json_array();
    int i;

    for (i = 0; i < count; i++) {
        int connector = (role * 131 + i * 7) % CONNECTORS;
        const char *id = apr_psprintf(pool, "con_%05d", connector);

        if (strcmp(effect, "block") == 0 && i % 10 == 0) {
            json_array_append_new(
                items, json_pack("{s:s,s:[]}", "tool",
                                 apr_psprintf(pool, "acc%d__gone%d", connector, i), "pins"));
        } else if (i % 16 == 0) {
            json_array_append_new(items, json_pack("{s:s}", "connector", id));
        } else {
            json_array_append_new(
                items, json_pack("{s:s,s:s}", "connector", id, "operation",
                                 apr_psprintf(pool, "operation_%02d", (i * 3) % OPERATIONS)));
        }
    }
    return json_pack("{s:s,s:{s:s},s:o}", "effect", effect, "target", "role",
                     apr_psprintf(pool, "role%d", role), "items", items);
}

static void what_three_roles_say_of_20000_operations_is_soon_known(void **state)
{
    static char connector_ids[CONNECTORS][32];
    static char operation_ids[OPERATIONS][32];
    static char names[OPERATIONS][40];
    double times[51];
    policy_t policy = {apr_hash_make(pool), apr_hash_make(pool)};
    double begun = now_us();
    double built;
    int allowed = 0;
    size_t round;
    int i;
    int k;

    (void)state;
    for (i = 0; i < ROLES; i++) {
        apr_array_header_t *rules = apr_array_make(pool, 2, sizeof(pd_rule_t *));
        pd_layer_t *layer = NULL;

        for (k = 0; k < 2; k++) {
            json_t *doc = big_rule(i, k == 0 ? "allow" : "block", k == 0 ? ITEMS - 20 : 20);
            pd_rule_t *made = NULL;

            assert_int_equal(pd_rule_make(apr_psprintf(pool, "rul_%d_%d", i, k), doc, &made),
                             PD_OK);
            APR_ARRAY_PUSH(rules, pd_rule_t *) = made;
            json_decref(doc);
        }
        assert_int_equal(pd_layer_make(rules, 1, &layer), PD_OK);
        for (k = 0; k < 2; k++) {
            pd_rule_release(&APR_ARRAY_IDX(rules, k, pd_rule_t *));
        }
        apr_hash_set(policy.by_role, apr_psprintf(pool, "role%d", i), APR_HASH_KEY_STRING, layer);
    }
    built = now_us() - begun;
    for (i = 0; i < CONNECTORS; i++) {
        (void)snprintf(connector_ids[i], sizeof(connector_ids[i]), "con_%05d", i);
    }
    for (i = 0; i < OPERATIONS; i++) {
        (void)snprintf(operation_ids[i], sizeof(operation_ids[i]), "operation_%02d", i);
        (void)snprintf(names[i], sizeof(names[i]), "account__operation_%02d", i);
    }
    for (round = 0; round < COUNT(times); round++) {
        apr_pool_t *scratch;
        pd_rules_t rules;

        assert_int_equal(apr_pool_create(&scratch, pool), APR_SUCCESS);
        begun = now_us();
        pd_rules_choose(policy.by_role, policy.by_member, "mem_a", list("role7,role70,role170"),
                        scratch, &rules);
        for (i = 0; i < CONNECTORS; i++) {
            pd_bearing_t bearing;

            pd_rules_bear(&rules, connector_ids[i], scratch, &bearing);
            for (k = 0; k < OPERATIONS; k++) {
                allowed += pd_rules_judge(&bearing, operation_ids[k], names[k], NULL) ==
                           PD_VERDICT_ALLOWED;
            }
        }
        times[round] = now_us() - begun;
        apr_pool_destroy(scratch);
    }
    qsort(times, COUNT(times), sizeof(times[0]), by_time);
    print_message(
        "# %d roles, %d items, %d operations: rules made in %.0f ms; 3 roles over all operations, "
        "names blocked too: p50 %.2f ms, max %.2f ms (%d of %d allowed)\n",
        ROLES, ROLES * ITEMS, CONNECTORS * OPERATIONS, built / 1e3, times[COUNT(times) / 2] / 1e3,
        times[COUNT(times) - 1] / 1e3, allowed / (int)COUNT(times), CONNECTORS * OPERATIONS);
    assert_true(allowed > 0);
    policy_free(&policy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

static int begin(void **state)
{
    (void)state;
    json_object_seed(1);
    return apr_initialize() == APR_SUCCESS ? 0 : -1;
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
        TEST(no_rule_at_all_allows_everything),
        TEST(a_target_is_a_role_or_one_user_and_nothing_else),
        TEST(there_is_no_organisation_wide_rule),
        TEST(an_effect_is_allow_or_block),
        TEST(an_item_of_an_unknown_form_refuses_the_rule),
        TEST(items_are_an_array_of_bounded_length),
        TEST(other_members_of_the_document_are_ignored),
        TEST(items_are_whole_connectors_or_single_operations),
        TEST(user_rules_replace_the_roles_rules),
        TEST(any_user_rule_replaces_them_an_empty_one_too),
        TEST(otherwise_the_rules_of_all_roles_hold),
        TEST(an_admin_peer_that_is_no_member_has_no_rules),
        TEST(allows_unite),
        TEST(blocks_unite),
        TEST(blocks_beat_allows),
        TEST(an_allow_rule_with_no_items_denies_everything),
        TEST(a_block_rule_with_no_items_takes_nothing_away),
        TEST(a_rule_whose_items_vanished_from_the_catalog_goes_on_denying),
        TEST(a_block_matches_the_advertised_name_or_the_pinned_operation),
        TEST(an_allow_matches_the_pinned_operation_only),
        TEST(renaming_an_account_neither_escapes_a_block_nor_gains_an_allow),
        TEST(a_name_that_matched_nothing_blocks_what_gets_it_later),
        TEST(rules_that_could_not_be_read_are_not_no_rules),
        TEST(a_layer_without_rules_is_one_that_could_not_be_read),
        TEST(a_target_has_a_bounded_number_of_rules),
        TEST(nothing_that_is_zero_means_allowed),
        TEST(a_layer_keeps_its_rules_alive),
        TEST(the_deciding_rule_is_the_first_by_kind_and_then_by_id),
        TEST(every_answer_has_its_word),
        TEST(what_three_roles_say_of_20000_operations_is_soon_known),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
