/* policy apply: see op_policy.h. The whole plan is made first and then followed, each step by the handler of its operation. */
#include "op_policy.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "op_find.h"
#include "op_policy_private.h"
#include "pd_snapshot.h"

#define MAX_CHANGES 1000 /* shown */
#define MAX_WARNINGS 100 /* shown */
#define MAX_DETAIL   16000 /* bytes of the record that name objects; it takes some more */

/* --- the plan --------------------------------------------------------------------- */

typedef enum effect { CREATES, UPDATES, DELETES, EFFECTS } effect_t;

/* One step. */
typedef struct change {
    const pd_section_t *section;
    const pd_op_t *op;
    effect_t effect;
    json_t *args; /* kept by the call's pool */
    const char *name;
    size_t number; /* place in the document, from 1; 0: none */
} change_t;

typedef struct applying {
    pd_paper_t paper;
    pd_op_call_t *call;
    int is_pruning;
    apr_array_header_t *writes;   /* of change_t, in the order of sections */
    apr_array_header_t *removals; /* of change_t, the same: they are run from the end */
    int counts[EFFECTS];
    int unchanged;
    json_t *warnings;
    pd_snapshot_t *current;        /* as the last steps left it; NULL: as the unit began */
    const pd_section_t *following; /* whose steps run */
    int is_behind;                 /* steps were made since `current` */
    char *named;     /* for the record: "created role=rol_…, deleted …"; MAX_DETAIL bytes */
    size_t named_bytes;
    int unnamed;     /* steps that it had no room for */
} applying_t;

/* Where in the document something is wrong, before what is wrong. */
static pd_status_t place_fault(pd_op_call_t *call, const pd_section_t *section, size_t number,
                               const char *name)
{
    pd_fault_t fault = call->fault;
    char place[96];

    memset(&call->fault, 0, sizeof(call->fault));
    if (number > 0) {
        (void)apr_snprintf(place, sizeof(place), "%s[%lu]", section->name,
                           (unsigned long)number - 1);
    } else {
        (void)apr_snprintf(place, sizeof(place), "%s", section->name);
    }
    memcpy(call->fault.permission, fault.permission, sizeof(fault.permission));
    return pd_fault(&call->fault, fault.code, fault.hint[0] != '\0' ? fault.hint : NULL,
                    "%s%s%.64s%s: %.320s", place, name != NULL ? " (" : "",
                    name != NULL ? name : "", name != NULL ? ")" : "", fault.message);
}

/* A bare status of a step, in words. */
static pd_status_t word_status(pd_op_call_t *call, pd_status_t status)
{
    static const struct {
        pd_status_t status;
        mcp_code_t code;
        const char *message;
    } table[] = {
        {PD_E_NOT_FOUND, MCP_CODE_NOT_FOUND, "There is no such object."},
        {PD_E_CONFLICT, MCP_CODE_CONFLICT, "A name is taken, or the object is in use."},
        {PD_E_REVISION, MCP_CODE_REVISION_MISMATCH, "The object has another revision."},
    };
    size_t i;

    for (i = 0; call->fault.code == MCP_CODE_NONE && i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].status == status) {
            return pd_fault(&call->fault, table[i].code, NULL, "%s", table[i].message);
        }
    }
    return status;
}

/* args is stolen; NULL: out of memory. */
static pd_status_t plan(applying_t *a, const pd_section_t *section, effect_t effect, json_t *args,
                        const char *name, size_t number)
{
    const char *const ops[EFFECTS] = {section->create, section->update, section->remove};
    change_t *change = apr_array_push(effect == DELETES && number == 0 ? a->removals : a->writes);

    change->section = section;
    change->op = pd_ops_find(ops[effect]);
    change->effect = effect;
    change->args = pd_op_keep(a->call, args);
    change->name = name;
    change->number = number;
    a->counts[effect]++;
    return args != NULL && change->op != NULL ? PD_OK : PD_E_NOMEM;
}

/* What no document has a place for, though the operation takes it. */
static pd_status_t check_members(pd_op_call_t *call, const json_t *given)
{
    static const char *const never[] = {"credential", "dry_run", "if_revision"};
    size_t i;

    for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (json_object_get(given, never[i]) != NULL) {
            return pd_fault(&call->fault, MCP_CODE_INVALID_REQUEST, "Take it out.",
                            "a document has no place for \"%s\"", never[i]);
        }
    }
    return PD_OK;
}

/* Whether an update can't bring about what is wanted. */
static int must_be_made_anew(const pd_section_t *section, const json_t *wanted, const json_t *held)
{
    size_t i;

    for (i = 0; section->lasting != NULL && section->lasting[i] != NULL; i++) {
        if (json_object_get(held, section->lasting[i]) != NULL &&
            json_object_get(wanted, section->lasting[i]) == NULL) {
            return 1;
        }
    }
    return section->fixed != NULL && !json_equal(json_object_get(held, section->fixed),
                                                 json_object_get(wanted, section->fixed));
}

static pd_status_t plan_difference(applying_t *a, const pd_section_t *section,
                                   const pd_holding_t *held, const json_t *file, json_t *wanted,
                                   const char *name, size_t number)
{
    pd_holding_t whole = *held;
    pd_status_t status;

    whole.file = (json_t *)(uintptr_t)file;
    if (!must_be_made_anew(section, wanted, file)) {
        return plan(a, section, UPDATES, section->update_args(&a->paper, &whole, wanted), name,
                    number);
    }
    if (section->is_fixed_refused) {
        return pd_fault(&a->call->fault, MCP_CODE_CONFLICT,
                        "Delete it first, or give the new one another name.",
                        "its %s can't change: its credential would be lost", section->fixed);
    }
    status = plan(a, section, DELETES, section->remove_args(held), name, number);
    return status == PD_OK ? plan(a, section, CREATES, json_incref(wanted), name, number) : status;
}

/* Compares with what is held, if anything; wanted is in canonical form. */
static pd_status_t plan_item(applying_t *a, const pd_section_t *section, pd_holding_t *held,
                             json_t *wanted, const char *name, size_t number)
{
    json_t *file = NULL;
    pd_status_t status;
    int is_same;

    if (held == NULL) {
        return plan(a, section, CREATES, json_incref(wanted), name, number);
    }
    status = pd_paper_file(&a->paper, section, held, &file);
    if (status != PD_OK) {
        return status;
    }
    is_same = section->is_same != NULL ? section->is_same(wanted, file) : json_equal(wanted, file);
    if (is_same) {
        a->unchanged++;
    } else {
        status = plan_difference(a, section, held, file, wanted, name, number);
    }
    json_decref(file);
    return status;
}

/* A large file that is the very one that is held needs no judging. */
static pd_status_t is_held_as_given(applying_t *a, const pd_section_t *section,
                                    const pd_holding_t *held, const json_t *given, int *ret)
{
    json_t *file = NULL;
    pd_status_t status = pd_paper_file(&a->paper, section, held, &file);

    *ret = status == PD_OK && json_equal((json_t *)(uintptr_t)given, file);
    json_decref(file);
    return status;
}

/* The section's objects by identity; those without a name of their own may stand several times. */
typedef struct known {
    apr_hash_t *held; /* identity, with its number among equal ones -> pd_holding_t * */
    apr_hash_t *seen; /* identity -> how often, as an int * */
} known_t;

static const char *numbered(applying_t *a, apr_hash_t *seen, const char *identity)
{
    int *count = apr_hash_get(seen, identity, APR_HASH_KEY_STRING);

    if (count == NULL) {
        count = apr_pcalloc(a->call->pool, sizeof(*count));
        apr_hash_set(seen, identity, APR_HASH_KEY_STRING, count);
    }
    return apr_psprintf(a->call->pool, "%s\n%d", identity, (*count)++);
}

static int is_nameless(const char *identity)
{
    return identity[0] == PD_PAPER_NAMELESS[0];
}

static pd_status_t find_held(applying_t *a, known_t *known, const char *identity,
                             pd_holding_t **ret)
{
    const char *key = numbered(a, known->seen, identity);

    if (!is_nameless(identity) && strcmp(key + strlen(identity), "\n0") != 0) {
        return pd_fault(&a->call->fault, MCP_CODE_INVALID_REQUEST, "Leave one of them out.",
                        "an earlier one of the section has the same name");
    }
    *ret = apr_hash_get(known->held, key, APR_HASH_KEY_STRING);
    if (*ret != NULL) {
        (*ret)->is_wanted = 1;
    }
    return PD_OK;
}

static pd_status_t judge_given(applying_t *a, const pd_section_t *section, known_t *known,
                               const json_t *given, size_t number, const char **name)
{
    pd_op_call_t *call = a->call;
    pd_holding_t *held = NULL;
    const char *identity;
    json_t *wanted = NULL;
    int is_same = 0;
    pd_status_t status =
        pd_boot_left_ms(call->deadline) > 0 ? check_members(call, given) : PD_E_TIMEOUT;

    if (status == PD_OK) {
        status = pd_ops_check(pd_ops_find(section->create), given, &call->fault);
    }
    if (status == PD_OK && section->is_large) {
        *name = section->title(&a->paper, given);
        identity = section->identity(&a->paper, given);
        status = find_held(a, known, identity, &held);
        if (status == PD_OK && held != NULL) {
            status = is_held_as_given(a, section, held, given, &is_same);
        }
        a->unchanged += is_same;
    }
    if (status != PD_OK || is_same) {
        return status;
    }
    status = section->canonical(&a->paper, given, &wanted);
    if (status != PD_OK) {
        return status;
    }
    (void)pd_op_keep(call, wanted); /* the pool's from here */
    if (!section->is_large) {
        *name = section->title(&a->paper, wanted);
        identity = section->identity(&a->paper, wanted);
        status = identity != NULL ? find_held(a, known, identity, &held) : PD_E_NOMEM;
    }
    return status == PD_OK ? plan_item(a, section, held, wanted, *name, number) : status;
}

static void index_held(applying_t *a, const apr_array_header_t *all, known_t *ret)
{
    int i;

    ret->held = apr_hash_make(a->call->pool);
    ret->seen = apr_hash_make(a->call->pool);
    for (i = 0; i < all->nelts; i++) {
        pd_holding_t *held = &APR_ARRAY_IDX(all, i, pd_holding_t);

        apr_hash_set(ret->held, numbered(a, ret->seen, held->identity), APR_HASH_KEY_STRING, held);
    }
    ret->seen = apr_hash_make(a->call->pool);
}

static pd_status_t plan_section(applying_t *a, const pd_section_t *section, const json_t *list)
{
    pd_op_call_t *call = a->call;
    const pd_op_t *create = pd_ops_find(section->create);
    apr_array_header_t *all = NULL;
    const json_t *given;
    known_t known;
    size_t i;
    int k;
    pd_status_t status = create != NULL
                             ? pd_paper_permission(call, create->permission, section->name)
                             : PD_E_INTERNAL;

    if (status == PD_OK) {
        status = pd_paper_list(&a->paper, section, &all);
    }
    if (status != PD_OK) {
        return status;
    }
    index_held(a, all, &known);
    json_array_foreach(list, i, given)
    {
        const char *name = NULL;

        status = judge_given(a, section, &known, given, i + 1, &name);
        if (status != PD_OK) {
            return call->fault.code != MCP_CODE_NONE ? place_fault(call, section, i + 1, name)
                                                     : status;
        }
    }
    for (k = 0; status == PD_OK && a->is_pruning && k < all->nelts; k++) {
        const pd_holding_t *held = &APR_ARRAY_IDX(all, k, pd_holding_t);

        if (!held->is_wanted && held->file != NULL) {
            status = pd_paper_may_name(call, section, held->file); /* the plan does */
        }
        if (status == PD_OK && !held->is_wanted) {
            status = plan(a, section, DELETES, section->remove_args(held), held->name, 0);
        }
    }
    return status;
}

static pd_status_t plan_all(applying_t *a, const json_t *document)
{
    const pd_section_t *section;
    pd_status_t status = PD_OK;

    for (section = pd_sections; status == PD_OK && section->name != NULL; section++) {
        const json_t *list = json_object_get(document, section->name);

        if (list != NULL) {
            status = plan_section(a, section, list);
        }
    }
    return status;
}

/* --- following it ------------------------------------------------------------------ */

/* A section's operations decide by a policy that holds what the sections before it were made to be. */
static pd_status_t catch_up(applying_t *a, const pd_section_t *section)
{
    pd_snapshot_t *made = NULL;
    pd_status_t status;

    if (a->call->snapshot == NULL || !a->is_behind || a->following == section) {
        a->following = section;
        return PD_OK;
    }
    /* from the beginning each time: all of the unit's changes have one revision */
    status = pd_snapshot_follow(a->call->tx, a->call->snapshot, &made);
    if (status == PD_OK) {
        pd_snapshot_free(&a->current);
        a->current = made;
        a->following = section;
        a->is_behind = 0;
    }
    return status;
}

static pd_status_t take_warning(applying_t *a, const change_t *change, const char *text)
{
    const char *warning;

    if (text == NULL || json_array_size(a->warnings) >= MAX_WARNINGS) {
        return PD_OK;
    }
    warning = apr_psprintf(a->call->pool, "%s %s: %s", change->section->name, change->name, text);
    return json_array_append_new(a->warnings, json_string(warning)) == 0 ? PD_OK : PD_E_NOMEM;
}

/* What an operation says beside its result: its warnings, and connections that lost their credentials. */
static pd_status_t take_warnings(applying_t *a, const change_t *change, const json_t *result)
{
    const json_t *warnings = json_object_get(result, "warnings");
    const json_t *lost = json_object_get(result, "needs_reauth");
    pd_status_t status = PD_OK;
    size_t i;

    for (i = 0; status == PD_OK && i < json_array_size(warnings); i++) {
        status = take_warning(a, change, json_string_value(json_array_get(warnings, i)));
    }
    for (i = 0; status == PD_OK && i < json_array_size(lost); i++) {
        const char *label = json_string_value(json_array_get(lost, i));

        status = take_warning(a, change,
                              apr_psprintf(a->call->pool, "the connection %s lost its credential",
                                           label != NULL ? label : "?"));
    }
    return status;
}

/* Adds what a step did to the record: its operation's own detail, which holds ids. Once there is no room, all that come later are counted. */
static void name_step(applying_t *a, const change_t *change, const char *detail)
{
    static const char *const words[EFFECTS] = {"created", "updated", "deleted"};
    const char *text = detail != NULL ? detail : change->section->name;
    size_t bytes = strlen(words[change->effect]) + strlen(text) + 3;

    if (a->unnamed > 0 || a->named_bytes + bytes >= MAX_DETAIL) {
        a->unnamed++;
        return;
    }
    a->named_bytes += (size_t)apr_snprintf(a->named + a->named_bytes, MAX_DETAIL - a->named_bytes,
                                           "%s%s %s", a->named_bytes > 0 ? ", " : "",
                                           words[change->effect], text);
}

static pd_status_t run_handler(applying_t *a, const change_t *change, apr_pool_t *pool)
{
    pd_op_call_t sub = *a->call;
    pd_status_t status;

    sub.op = change->op;
    sub.args = change->args;
    sub.pool = pool;
    sub.snapshot = a->current != NULL ? a->current : a->call->snapshot;
    sub.result = NULL;
    sub.detail = NULL;
    status = pd_paper_permission(&sub, change->op->permission, change->section->name);
    if (status == PD_OK) {
        status = pd_ops_check(change->op, change->args, &sub.fault);
    }
    if (status == PD_OK) {
        status = change->op->handler(&sub);
    }
    if (status == PD_OK) {
        name_step(a, change, sub.detail);
        status = take_warnings(a, change, sub.result);
    }
    json_decref(sub.result);
    if (status == PD_OK) {
        return PD_OK;
    }
    a->call->fault = sub.fault;
    return word_status(a->call, status);
}

static pd_status_t run_change(applying_t *a, const change_t *change)
{
    pd_op_call_t *call = a->call;
    apr_pool_t *pool = NULL;
    pd_status_t status =
        pd_boot_left_ms(call->deadline) > 0 ? catch_up(a, change->section) : PD_E_TIMEOUT;

    if (status == PD_OK && apr_pool_create(&pool, call->pool) != APR_SUCCESS) {
        status = PD_E_NOMEM;
    }
    if (status != PD_OK) {
        return status;
    }
    status = run_handler(a, change, pool);
    apr_pool_destroy(pool);
    a->is_behind = 1;
    return status != PD_OK && call->fault.code != MCP_CODE_NONE
               ? place_fault(call, change->section, change->number, change->name)
               : status;
}

static pd_status_t run_all(applying_t *a)
{
    pd_status_t status = PD_OK;
    int i;

    for (i = 0; status == PD_OK && i < a->writes->nelts; i++) {
        status = run_change(a, &APR_ARRAY_IDX(a->writes, i, const change_t));
    }
    for (i = a->removals->nelts - 1; status == PD_OK && i >= 0; i--) {
        status = run_change(a, &APR_ARRAY_IDX(a->removals, i, const change_t));
    }
    return status;
}

/* --- the answer --------------------------------------------------------------------- */

typedef pd_status_t each_fn(const change_t *change, void *baton);

/* Every step in the order in which it runs. */
static pd_status_t each_change(const applying_t *a, each_fn *each, void *baton)
{
    pd_status_t status = PD_OK;
    int i;

    for (i = 0; status == PD_OK && i < a->writes->nelts; i++) {
        status = each(&APR_ARRAY_IDX(a->writes, i, const change_t), baton);
    }
    for (i = a->removals->nelts - 1; status == PD_OK && i >= 0; i--) {
        status = each(&APR_ARRAY_IDX(a->removals, i, const change_t), baton);
    }
    return status;
}

typedef struct digest {
    unsigned char hash[MCP_HASH_BYTES];
} digest_t;

/* A chain over operations and arguments: another step, or the same ones in another order, is another plan. */
static pd_status_t add_to_digest(const change_t *change, void *baton)
{
    digest_t *digest = baton;
    char *text = json_dumps(change->args, JSON_COMPACT | JSON_SORT_KEYS);
    size_t bytes = text != NULL ? strlen(text) : 0;
    unsigned char own[2 * MCP_HASH_BYTES];
    char name[64];

    if (text == NULL) {
        return PD_E_NOMEM;
    }
    pd_ops_name(change->op, name);
    memcpy(own, digest->hash, MCP_HASH_BYTES);
    mcp_sha256_label(name, text, bytes, own + MCP_HASH_BYTES);
    mcp_sha256(own, sizeof(own), digest->hash);
    free(text);
    return PD_OK;
}

/* The plan's digest, and whether it is the one that was looked at. */
static pd_status_t check_plan(applying_t *a, char hex[MCP_DIGEST_HEX + 1])
{
    const char *expected = pd_op_text(a->call, "plan");
    digest_t digest = {{0}};
    pd_status_t status = each_change(a, add_to_digest, &digest);

    if (status != PD_OK) {
        return status;
    }
    mcp_hex(digest.hash, sizeof(digest.hash), hex);
    if (expected == NULL || strcmp(expected, hex) == 0) {
        return PD_OK;
    }
    return pd_fault(&a->call->fault, MCP_CODE_REVISION_MISMATCH, "Make a dry run again.",
                    "The policy has changed since the plan was made: other changes would be made "
                    "now.");
}

static pd_status_t show_change(const change_t *change, void *baton)
{
    json_t *list = baton;
    char name[64];

    if (json_array_size(list) >= MAX_CHANGES) {
        return PD_OK;
    }
    pd_ops_name(change->op, name);
    return json_array_append_new(list, json_pack("{s:s, s:s}", "op", name, "name", change->name)) ==
                   0
               ? PD_OK
               : PD_E_NOMEM;
}

static pd_status_t answer(applying_t *a, const char *plan_digest)
{
    int count = a->writes->nelts + a->removals->nelts;
    json_t *list = json_array();
    pd_status_t status = list != NULL ? each_change(a, show_change, list) : PD_E_NOMEM;

    pd_op_detail(a->call, "created=%d updated=%d deleted=%d%s%s%s", a->counts[CREATES],
                 a->counts[UPDATES], a->counts[DELETES], a->named_bytes > 0 ? ": " : "", a->named,
                 a->unnamed > 0
                     ? apr_psprintf(a->call->pool, ", and %d more", a->unnamed)
                     : "");
    if (status != PD_OK) {
        json_decref(list);
        return status;
    }
    return pd_op_answer(a->call,
                        json_pack("{s:o, s:i, s:i, s:i, s:i, s:O, s:s, s:o*}", "changes", list,
                                  "created", a->counts[CREATES], "updated", a->counts[UPDATES],
                                  "deleted", a->counts[DELETES], "unchanged", a->unchanged,
                                  "warnings", a->warnings, "plan", plan_digest, "is_cut",
                                  count > MAX_CHANGES ? json_true() : NULL));
}

pd_status_t pd_op_policy_apply(pd_op_call_t *call)
{
    applying_t a = {.paper = {.call = call},
                    .call = call,
                    .is_pruning = mcp_json_bool(call->args, "prune"),
                    .writes = apr_array_make(call->pool, 16, sizeof(change_t)),
                    .removals = apr_array_make(call->pool, 16, sizeof(change_t)),
                    .warnings = pd_op_keep(call, json_array()),
                    .named = apr_pcalloc(call->pool, MAX_DETAIL)};
    char plan_digest[MCP_DIGEST_HEX + 1];
    pd_status_t status = plan_all(&a, json_object_get(call->args, "policy"));

    if (status == PD_OK) {
        status = check_plan(&a, plan_digest);
    }
    if (status == PD_OK) {
        status = run_all(&a);
    }
    pd_snapshot_free(&a.current);
    return status == PD_OK ? answer(&a, plan_digest) : status;
}
