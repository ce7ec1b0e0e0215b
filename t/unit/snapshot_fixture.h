/* Shared by the tests of snapshots: the real store, documents of every kind, a snapshot as one text, and random changes. */
#ifndef SNAPSHOT_FIXTURE_H
#define SNAPSHOT_FIXTURE_H

#include "store_fixture.h"

#include <apr_strings.h>

#include "../../policyd/pd_log.h"
#include "../../policyd/pd_snapshot.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNUSED       __attribute__((unused))

static apr_pool_t *pool; /* of one test */

/* --- the store ------------------------------------------------------------------------------- */

typedef struct work {
    pd_unit_fn *unit;
    void *baton;
    unit_result_t result;
} work_t;

static UNUSED pd_status_t work_run(pd_tx_t *tx, void *baton)
{
    const work_t *work = baton;

    return work->unit(tx, work->baton);
}

static UNUSED void work_done(pd_status_t status, int64_t revision, void *baton)
{
    work_t *work = baton;

    unit_done(status, revision, &work->result);
}

/* Runs a unit to its end. */
static UNUSED pd_status_t in_unit(fixture_t *fix, pd_lane_t lane, pd_unit_fn *unit, void *baton)
{
    work_t work = {unit, baton, {PD_E_INTERNAL, 0}};

    assert_int_equal(
        pd_store_submit(fix->store, lane, pd_boot_in(WATCHDOG_MS), work_run, work_done, &work), PD_OK);
    wait_for(fix, &work.result.is_done);
    return work.result.status;
}

typedef struct change {
    const char *kind;
    const char *id;
    const char *owner;
    json_t *doc; /* NULL: away with it */
} change_t;

/* Writes an object, whether or not it is there. */
static UNUSED pd_status_t put_object(pd_tx_t *tx, const change_t *change)
{
    pd_status_t status;

    if (change->doc == NULL) {
        status = pd_tx_delete(tx, change->kind, change->id, 0);
        return status == PD_E_NOT_FOUND ? PD_OK : status;
    }
    status = pd_tx_update(tx, change->kind, change->id, change->owner, change->doc, NULL, 0, NULL);
    if (status == PD_E_NOT_FOUND) {
        status = pd_tx_insert(tx, change->kind, change->id, change->owner, change->doc, NULL);
    }
    return status;
}

static UNUSED pd_status_t change_unit(pd_tx_t *tx, void *baton)
{
    return put_object(tx, baton);
}

/* doc: stolen; NULL deletes. */
static UNUSED void put(fixture_t *fix, const char *kind, const char *id, const char *owner, json_t *doc)
{
    change_t change = {kind, id, owner, doc};

    assert_int_equal(in_unit(fix, PD_LANE_WRITE, change_unit, &change), PD_OK);
    json_decref(doc);
}

static UNUSED pd_status_t load_unit(pd_tx_t *tx, void *baton)
{
    return pd_snapshot_load(tx, baton);
}

static UNUSED pd_snapshot_t *load(fixture_t *fix)
{
    pd_snapshot_t *made = NULL;

    assert_int_equal(in_unit(fix, PD_LANE_LOOP, load_unit, &made), PD_OK);
    return made;
}

typedef struct following {
    const pd_snapshot_t *old;
    pd_snapshot_t *made;
} following_t;

static UNUSED pd_status_t follow_unit(pd_tx_t *tx, void *baton)
{
    following_t *following = baton;

    return pd_snapshot_follow(tx, following->old, &following->made);
}

static UNUSED pd_snapshot_t *follow(fixture_t *fix, pd_lane_t lane, const pd_snapshot_t *old)
{
    following_t following = {old, NULL};

    assert_int_equal(in_unit(fix, lane, follow_unit, &following), PD_OK);
    return following.made;
}

/* --- documents ------------------------------------------------------------------------------- */

/* A connector of `count` operations op_0, op_1, … */
static UNUSED json_t *connector_doc(const char *slug, int count)
{
    json_t *operations = json_array();
    json_t *file;
    json_t *doc = NULL;
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    int i;

    for (i = 0; i < count; i++) {
        json_array_append_new(operations, json_pack("{s:o,s:s,s:o,s:s}", "id", json_sprintf("op_%d", i),
                                                    "method", i % 2 ? "GET" : "POST", "path",
                                                    json_sprintf("/things/%d?a=b%%20c&d", i),
                                                    "description", "Does."));
    }
    file = json_pack("{s:s,s:s,s:s,s:{s:s},s:o}", "slug", slug, "label", "Shop", "base_url",
                     "https://shop.example", "auth", "type", "none", "operations", operations);
    if (pd_catalog_check(file, &doc, &fault) != PD_OK) {
        fail_msg("connector: %s", fault.message);
    }
    json_decref(file);
    return doc;
}

static UNUSED json_t *connection_doc(const char *connector, const char *label)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:b}", "connector", connector, "label", label, "base",
                     "https://shop.example", "state", "ready", "toolbox_only", 0);
}

/* What a rule allows or blocks: one whole connector. kind: "role" or "member". */
static UNUSED json_t *rule_doc(const char *effect, const char *kind, const char *target)
{
    return json_pack("{s:s,s:{s:s},s:[{s:s,s:s}]}", "effect", effect, "target", kind, target, "items",
                     "connector", "con_1", "slug", "shop");
}

static UNUSED json_t *toolbox_doc(const char *name, const char *role)
{
    return json_pack("{s:s,s:[s],s:[],s:[{s:s,s:s,s:s,s:s,s:s,s:[s],s:{},s:{s:i},s:b}]}", "name", name,
                     "roles", role, "members", "entries", "entry", "ent_1", "name", "look", "connector",
                     "con_1", "connector_slug", "shop", "operation", "op_1", "connections", "cxn_1",
                     "defaults", "frozen", "a", 1, "always_visible", 1);
}

static UNUSED json_t *setting_doc(const char *key, int value)
{
    return json_pack("{s:s,s:i}", "key", key, "value", value);
}

/* Two of everything: con_1 with cxn_1 (shared) and cxn_2 (mem_1's), con_2 with cxn_3; rules for the roles A and B and for mem_1;
 * two toolboxes; a setting. */
static UNUSED void fill(fixture_t *fix)
{
    put(fix, "connector", "con_1", NULL, connector_doc("shop", 3));
    put(fix, "connector", "con_2", NULL, connector_doc("mail", 2));
    put(fix, "connection", "cxn_1", NULL, connection_doc("con_1", "shop"));
    put(fix, "connection", "cxn_2", "mem_1", connection_doc("con_1", "mine"));
    put(fix, "connection", "cxn_3", NULL, connection_doc("con_2", "mail"));
    put(fix, "restriction", "rst_1", NULL, rule_doc("block", "role", "A"));
    put(fix, "restriction", "rst_2", NULL, rule_doc("allow", "role", "A"));
    put(fix, "restriction", "rst_3", NULL, rule_doc("block", "role", "B"));
    put(fix, "restriction", "rst_4", "mem_1", rule_doc("allow", "member", "mem_1"));
    put(fix, "toolbox", "tbx_1", NULL, toolbox_doc("sales", "A"));
    put(fix, "toolbox", "tbx_2", NULL, toolbox_doc("support", "B"));
    put(fix, "setting", "set_1", NULL, setting_doc("a.b", 1));
}

/* --- looking at a snapshot ------------------------------------------------------------------- */

static UNUSED void *in(apr_hash_t *table, const char *key)
{
    return apr_hash_get(table, key, APR_HASH_KEY_STRING);
}

static UNUSED int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static UNUSED apr_array_header_t *keys_of(apr_hash_t *table)
{
    apr_array_header_t *keys = apr_array_make(pool, 16, sizeof(const char *));
    apr_hash_index_t *i;

    for (i = apr_hash_first(pool, table); i != NULL; i = apr_hash_next(i)) {
        APR_ARRAY_PUSH(keys, const char *) = apr_hash_this_key(i);
    }
    qsort(keys->elts, (size_t)keys->nelts, sizeof(const char *), by_text);
    return keys;
}

/* "key=what tell() says of the value" for each, in the order of keys. */
static UNUSED const char *table_text(const char *title, apr_hash_t *table, const char *(*tell)(const void *))
{
    apr_array_header_t *keys = keys_of(table);
    const char *text = apr_psprintf(pool, "%s\n", title);
    int i;

    for (i = 0; i < keys->nelts; i++) {
        const char *key = APR_ARRAY_IDX(keys, i, const char *);

        text = apr_pstrcat(pool, text, "  ", key, " = ", tell(in(table, key)), "\n", NULL);
    }
    return text;
}

static UNUSED const char *tell_text(const void *value)
{
    return value;
}

static UNUSED const char *tell_presence(const void *value)
{
    return value != NULL ? "yes" : "no";
}

static UNUSED const char *tell_json(const void *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS);
    const char *copy = apr_pstrdup(pool, text);

    free(text);
    return copy;
}

static UNUSED const char *tell_connector(const void *value)
{
    const pd_connector_t *c = value;

    return apr_psprintf(pool, "%s %s %d %s", c->id, c->slug, c->operations->nelts, c->guard_digest);
}

static UNUSED const char *tell_connection(const void *value)
{
    const pd_connection_t *c = value;
    const char *text =
        apr_psprintf(pool, "%s label=%s owner=%s base=%s %d%d of %s:", c->id, c->label,
                     c->owner != NULL ? c->owner : "-", c->base, c->is_ready, c->is_toolbox_only,
                     c->connector->id);
    int i;

    assert_int_equal(apr_hash_count(c->by_name), c->tools->nelts);
    for (i = 0; i < c->tools->nelts; i++) {
        const pd_tool_t *tool = &APR_ARRAY_IDX(c->tools, i, pd_tool_t);

        assert_ptr_equal(pd_snapshot_tool(c, tool->name), tool);
        text = apr_pstrcat(pool, text, " ", tool->name, "=", tool->operation->digest, NULL);
    }
    return text;
}

static UNUSED const char *tell_connections(const void *value)
{
    const apr_array_header_t *list = value;
    const char *text = "";
    int i;

    for (i = 0; i < list->nelts; i++) {
        text = apr_pstrcat(pool, text, "[", tell_connection(APR_ARRAY_IDX(list, i, pd_connection_t *)),
                           "]", NULL);
    }
    return text;
}

static UNUSED const char *tell_part(const void *value)
{
    const pd_rule_part_t *part = value;

    return apr_psprintf(pool, "%d%s%s", part->is_whole, part->operations->nelts > 0 ? " " : "",
                        apr_array_pstrcat(pool, part->operations, ' '));
}

static UNUSED const char *tell_rule(const void *value)
{
    const pd_rule_t *r = value;

    return apr_psprintf(pool, "%s %d role=%s member=%s %s %s", r->id, (int)r->effect,
                        r->role != NULL ? r->role : "-", r->member != NULL ? r->member : "-",
                        table_text("parts", r->parts, tell_part),
                        table_text("names", r->names, tell_text));
}

static UNUSED const char *tell_layer(const void *value)
{
    const pd_layer_t *layer = value;
    const char *text = apr_psprintf(pool, "%d%d:", layer->is_readable, layer->has_allow);
    int i;

    for (i = 0; i < layer->rules->nelts; i++) {
        text = apr_pstrcat(pool, text, " ", APR_ARRAY_IDX(layer->rules, i, pd_rule_t *)->id, NULL);
    }
    return text;
}

static UNUSED const char *tell_toolbox(const void *value)
{
    const pd_toolbox_t *box = value;
    const char *text = apr_pstrcat(pool, box->id, " ", box->name, table_text("roles", box->roles, tell_text),
                                   table_text("members", box->members, tell_text), NULL);
    int i;

    for (i = 0; i < box->entries->nelts; i++) {
        const pd_entry_t *entry = &APR_ARRAY_IDX(box->entries, i, pd_entry_t);

        assert_ptr_equal(in(box->by_name, entry->tool_name), entry);
        text = apr_pstrcat(pool, text, entry->tool_name, "=", entry->connector_id, "/",
                           entry->operation_id, " ", tell_json(entry->frozen), NULL);
    }
    return text;
}

static UNUSED const char *sorted_text(const apr_array_header_t *boxes)
{
    const char *text = "sorted:";
    int i;

    for (i = 0; i < boxes->nelts; i++) {
        text = apr_pstrcat(pool, text, " ", APR_ARRAY_IDX(boxes, i, pd_toolbox_t *)->id, NULL);
    }
    return text;
}

/* Everything that a snapshot tells, as one text. */
static UNUSED const char *snapshot_text(const pd_snapshot_t *s)
{
    const pd_ground_t *g = s->ground;
    const pd_rulebook_t *r = s->rulebook;
    const pd_toolboxes_t *t = s->toolboxes;

    return apr_pstrcat(
        pool, table_text("connectors", g->connectors, tell_connector),
        table_text("by_slug", g->by_slug, tell_connector),
        table_text("connections", g->connections, tell_connection), "shared ", tell_connections(g->shared),
        "\n", table_text("by_label", g->by_label, tell_connection),
        table_text("by_owner", g->by_owner, tell_connections),
        table_text("any_label", g->any_label, tell_presence),
        table_text("left_out", g->left_out, tell_text), table_text("rules", r->rules, tell_rule),
        table_text("targets", r->targets, tell_text), table_text("by_role", r->by_role, tell_layer),
        table_text("by_member", r->by_member, tell_layer), r->has_lost_target ? "lost\n" : "none lost\n",
        table_text("toolboxes", t->by_id, tell_toolbox), table_text("by_name", t->by_name, tell_toolbox),
        sorted_text(t->sorted), "\n", table_text("settings", s->settings, tell_json), NULL);
}

static UNUSED void expect_equal(const char *got, const char *wanted, int round)
{
    if (strcmp(got, wanted) != 0) {
        fail_msg("round %d: got:\n%s\nwanted:\n%s", round, got, wanted);
    }
}

static UNUSED void expect_as_loaded(fixture_t *fix, const pd_snapshot_t *followed, int round)
{
    pd_snapshot_t *loaded = load(fix);

    assert_int_equal(followed->revision, loaded->revision);
    expect_equal(snapshot_text(followed), snapshot_text(loaded), round);
    pd_snapshot_free(&loaded);
}

static UNUSED void rules_for(const pd_snapshot_t *s, const char *member, const char *role, pd_rules_t *ret)
{
    const char *const roles[] = {role, NULL};

    pd_snapshot_rules(s, member, roles, pool, ret);
}

static UNUSED pd_governed_t governed(const pd_snapshot_t *s, const char *member, const char *role)
{
    pd_rules_t rules;

    rules_for(s, member, role, &rules);
    assert_non_null(rules.layers);
    return rules.governed;
}

/* --- random changes ------------------------------------------------------------------------------- */

typedef struct random_writes {
    unsigned seed;
    json_t *connectors[3];
} random_writes_t;

static UNUSED int pick(random_writes_t *writes, int below)
{
    writes->seed = writes->seed * 1103515245u + 12345u;
    return (int)(writes->seed >> 16) % below;
}

static UNUSED change_t random_connector(apr_pool_t *p, random_writes_t *writes)
{
    change_t change = {"connector", apr_psprintf(p, "con_%d", pick(writes, 3)), NULL, NULL};

    switch (pick(writes, 4)) {
    case 0:
        break;
    case 1: /* one that can't be compiled: such a store was written by others */
        change.doc = json_pack("{s:s}", "slug", "broken");
        break;
    default:
        change.doc = json_deep_copy(writes->connectors[pick(writes, 3)]);
    }
    return change;
}

static UNUSED change_t random_connection(apr_pool_t *p, random_writes_t *writes)
{
    static const char *const owners[] = {NULL, "mem_1", "mem_2"};
    int place = pick(writes, 6);
    change_t change = {"connection", apr_psprintf(p, "cxn_%d", place), owners[pick(writes, 3)], NULL};

    if (pick(writes, 4) == 0) {
        return change;
    }
    /* con_3 never is; labels are sometimes another's */
    change.doc = json_pack("{s:o,s:o,s:s,s:s,s:b}", "connector", json_sprintf("con_%d", pick(writes, 4)),
                           "label", json_sprintf("l%d-%d", pick(writes, 8) ? place : 0, pick(writes, 2)),
                           "base", pick(writes, 2) ? "https://a.example" : "https://b.example", "state",
                           pick(writes, 3) ? "ready" : "needs_reauth", "toolbox_only",
                           pick(writes, 4) == 0);
    if (pick(writes, 8) == 0) {
        (void)json_object_del(change.doc, pick(writes, 2) ? "base" : "connector");
    } else if (pick(writes, 8) == 0) {
        json_object_set_new(change.doc, "label", json_string("Not A Label"));
    }
    return change;
}

static UNUSED change_t random_rule(apr_pool_t *p, random_writes_t *writes)
{
    change_t change = {"restriction", apr_psprintf(p, "rst_%d", pick(writes, 8)), NULL, NULL};
    int of_role = pick(writes, 3) != 0;

    if (pick(writes, 4) == 0) {
        return change;
    }
    change.doc = rule_doc(pick(writes, 2) ? "allow" : "block", of_role ? "role" : "member",
                          of_role ? (pick(writes, 2) ? "A" : "B") : (pick(writes, 2) ? "mem_1" : "A"));
    switch (pick(writes, 8)) {
    case 0: /* can't be read */
        json_object_set_new(change.doc, "items", json_string("all"));
        break;
    case 1: /* nor whom it is for */
        json_object_set_new(change.doc, "target", json_array());
        break;
    case 2:
        json_object_set_new(change.doc, "items", json_array());
        break;
    case 3:
        json_object_set_new(change.doc, "items",
                            json_pack("[{s:s,s:[{s:s,s:s}]},{s:s,s:o}]", "tool", "shop__op_1", "pins",
                                      "connector", "con_1", "operation", "op_1", "connector", "con_2",
                                      "operation", json_sprintf("op_%d", pick(writes, 3))));
        break;
    default:
        break;
    }
    return change;
}

static UNUSED change_t random_toolbox(apr_pool_t *p, random_writes_t *writes)
{
    int place = pick(writes, 4);
    change_t change = {"toolbox", apr_psprintf(p, "tbx_%d", place), NULL, NULL};

    if (pick(writes, 4) != 0) {
        change.doc = toolbox_doc(apr_psprintf(p, "box-%d", pick(writes, 8) ? place : 0),
                                 pick(writes, 2) ? "A" : "B");
        if (pick(writes, 6) == 0) {
            json_object_set_new(change.doc, "entries", json_integer(1));
        }
    }
    return change;
}

static UNUSED change_t random_setting(apr_pool_t *p, random_writes_t *writes)
{
    int place = pick(writes, 4);
    change_t change = {"setting", apr_psprintf(p, "set_%d", place), NULL, NULL};

    if (pick(writes, 3) == 0) {
        return change;
    }
    change.doc = json_pack("{s:o,s:i}", "key", json_sprintf("k.%d", place / 2), "value", pick(writes, 5));
    if (place == 1) {
        json_object_set_new(change.doc, "client", json_string("claude"));
    } else if (place == 3) {
        json_object_set_new(change.doc, "grant", json_string("grt_1"));
    }
    return change;
}

static UNUSED change_t random_other(apr_pool_t *p, random_writes_t *writes)
{
    return (change_t){"role", apr_psprintf(p, "rol_%d", pick(writes, 3)), NULL,
                      json_pack("{s:i}", "n", pick(writes, 100))};
}

static UNUSED pd_status_t write_some(pd_tx_t *tx, random_writes_t *writes)
{
    static change_t (*const kinds[])(apr_pool_t *, random_writes_t *) = {
        random_connector, random_connection, random_connection, random_rule, random_rule,
        random_toolbox,   random_setting,    random_other};
    int left = 1 + pick(writes, 4);
    pd_status_t status = PD_OK;

    for (; status == PD_OK && left > 0; left--) {
        change_t change = kinds[pick(writes, (int)COUNT(kinds))](pd_tx_pool(tx), writes);

        status = put_object(tx, &change);
        json_decref(change.doc);
    }
    return status;
}

static UNUSED pd_status_t write_unit(pd_tx_t *tx, void *baton)
{
    return write_some(tx, baton);
}

/* A dry run: writes, follows, and undoes. */
typedef struct trial {
    random_writes_t *writes;
    const pd_snapshot_t *old;
    const char *followed;
    const char *loaded;
    int64_t revision;
} trial_t;

static UNUSED pd_status_t try_unit(pd_tx_t *tx, void *baton)
{
    trial_t *trial = baton;
    pd_snapshot_t *made = NULL;
    pd_snapshot_t *loaded = NULL;
    pd_status_t status = write_some(tx, trial->writes);

    if (status == PD_OK) {
        status = pd_snapshot_follow(tx, trial->old, &made);
    }
    if (status == PD_OK) {
        status = pd_snapshot_load(tx, &loaded);
    }
    if (status == PD_OK) {
        trial->followed = snapshot_text(made);
        trial->loaded = snapshot_text(loaded);
        trial->revision = made->revision;
        status = PD_E_ROLLBACK;
    }
    pd_snapshot_free(&made);
    pd_snapshot_free(&loaded);
    return status;
}

static UNUSED void random_writes_begin(random_writes_t *writes, unsigned seed)
{
    writes->seed = seed;
    writes->connectors[0] = connector_doc("shop", 3);
    writes->connectors[1] = connector_doc("shop", 2); /* two may share a slug in a store of others */
    writes->connectors[2] = connector_doc("mail", 2);
}

static UNUSED void random_writes_end(random_writes_t *writes)
{
    size_t i;

    for (i = 0; i < COUNT(writes->connectors); i++) {
        json_decref(writes->connectors[i]);
    }
}

/* --- life ----------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    if (apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK ||
        apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return -1;
    }
    pd_log_open(0, PD_LOG_ERR);
    return set_up(state);
}

static int end(void **state)
{
    int code = tear_down(state);

    apr_pool_destroy(pool);
    apr_terminate();
    return code;
}

#define SNAPSHOT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
